"""Reciprocal rank: one over the place of the first relevant document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sklearn_rankcal.measures._average_precision import tied_counts
from sklearn_rankcal.measures._base import BinaryMeasure, check_cutoff
from sklearn_rankcal.queries import Queries, Ranking


@dataclass(frozen=True, kw_only=True)
class ReciprocalRank(BinaryMeasure):
    """Reciprocal rank, whose mean over queries is MRR; 0 where no relevant document is among k."""

    k: int | None = None

    def check(self, labels: NDArray[np.float64]) -> None:
        check_cutoff("k", self.k)
        super().check(labels)

    def defined(self, labels: NDArray[np.float64], queries: Queries) -> NDArray[np.bool_]:
        return queries.max(self.relevant(labels))

    def per_query(self, ranking: Ranking, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        return reciprocal_rank(ranking, self.relevant(labels), self.k)


def reciprocal_rank(
    ranking: Ranking, relevant: NDArray[np.bool_], k: int | None = None
) -> NDArray[np.float64]:
    """1 / position of the first relevant row (0 beyond k), the mean of it over ties.

    Undefined (NaN) without a relevant row. In the block that holds the first relevant row, with m
    rows of which n are relevant, it stands t-th with probability C(m - t, n - 1) / C(m, n).
    """
    queries = ranking.queries
    hits = ranking.take(relevant).astype(np.int64)
    position = queries.place + 1
    if ranking.start is None:
        value = (hits == 1) & (queries.cumsum(hits) == 1)
        chance = value.astype(np.float64)
    else:
        above, n, m = tied_counts(ranking, hits)
        t = position - ranking.start
        possible = (above == 0) & (n > 0) & (t <= m - n + 1)
        t, n_, m_ = np.where(possible, t, 1), np.where(possible, n, 1), np.where(possible, m, 1)
        log_chance = _log_binomial(m_ - t, n_ - 1) - _log_binomial(m_, n_)
        chance = np.where(possible, np.exp(log_chance), 0.0)
    if k is not None:
        chance = np.where(position <= k, chance, 0.0)
    found = ranking.sum(chance / position)
    return np.where(ranking.sum(hits) > 0, found, np.nan)


def _log_binomial(n: NDArray[Any], k: NDArray[Any]) -> NDArray[np.float64]:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
