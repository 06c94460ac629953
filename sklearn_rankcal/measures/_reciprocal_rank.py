"""The measure reciprocal rank: one over the place of the first relevant document.

A ranking and its labels come in; the reciprocal rank of every query comes out.
"""

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
    """Reciprocal rank: one over the place of the first relevant document.

    Its mean over queries is called MRR.

    Parameters
    ----------
    k : int, default=None
        Number of places that count. The value is 0 if no relevant document is among the first k.
        None counts every place.
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. None: labels must be 0 or 1.

    Notes
    -----
    The measure is undefined for a query without a relevant document. Where scores tie, the value is
    the mean over the orders of the tied documents.
    """

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
    """1 / position of the first relevant row, 0 if that is beyond k, averaged over ties.

    The value is NaN for a query without a relevant row. Let the block that holds the first relevant
    row have m rows, n of them relevant. Then the first relevant row is the t-th of the block with
    probability C(m - t, n - 1) / C(m, n).
    """
    queries = ranking.queries
    hits = ranking.take(relevant).astype(np.int64)
    position = queries.place + 1
    # chance: the probability that the first relevant row of the query stands at this place
    if ranking.start is None:
        value = (hits == 1) & (queries.cumsum(hits) == 1)
        chance = value.astype(np.float64)
    else:
        above, n, m = tied_counts(ranking, hits)
        t = position - ranking.start
        # only the first block with relevant rows counts, and n - 1 relevant rows must follow
        possible = (above == 0) & (n > 0) & (t <= m - n + 1)
        t, n_, m_ = np.where(possible, t, 1), np.where(possible, n, 1), np.where(possible, m, 1)
        log_chance = _log_binomial(m_ - t, n_ - 1) - _log_binomial(m_, n_)
        chance = np.where(possible, np.exp(log_chance), 0.0)
    if k is not None:
        chance = np.where(position <= k, chance, 0.0)
    found = ranking.sum(chance / position)
    return np.where(ranking.sum(hits) > 0, found, np.nan)


def _log_binomial(n: NDArray[Any], k: NDArray[Any]) -> NDArray[np.float64]:
    """The logarithm of the binomial coefficient C(n, k)."""
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
