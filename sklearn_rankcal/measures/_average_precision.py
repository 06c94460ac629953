"""Average precision: the mean, over relevant documents, of the precision at their places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.measures._base import BinaryMeasure, check_cutoff, divide
from sklearn_rankcal.queries import Queries, Ranking


@dataclass(frozen=True, kw_only=True)
class AveragePrecision(BinaryMeasure):
    """Average precision, whose mean over queries is MAP; places beyond k count nothing."""

    k: int | None = None

    def check(self, labels: NDArray[np.float64]) -> None:
        check_cutoff("k", self.k)
        super().check(labels)

    def gains(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 for a relevant document, 0 for another."""
        return self.relevant(relevance).astype(np.float64)

    def normalizer(self, gains: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        """Number of relevant documents of each query; 0 where the measure is undefined."""
        return queries.sum(gains)

    def defined(self, labels: NDArray[np.float64], queries: Queries) -> NDArray[np.bool_]:
        return self.normalizer(self.gains(labels), queries) > 0

    def per_query(self, ranking: Ranking, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        return average_precision(ranking, self.relevant(labels), self.k)


def tied_counts(
    ranking: Ranking, relevant: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Per place: relevant rows above its block, in its block, and the block's length."""
    assert ranking.start is not None and ranking.stop is not None
    base = ranking.queries.repeat(ranking.queries.offsets[:-1])
    total = np.concatenate([[0], np.cumsum(relevant)])
    above = total[ranking.start + base]
    inside = total[ranking.stop + base] - above
    return above - total[base], inside, ranking.stop - ranking.start


def average_precision(
    ranking: Ranking, relevant: NDArray[np.bool_], k: int | None = None
) -> NDArray[np.float64]:
    """(1 / number relevant) sum over relevant rows at places <= k of the precision there.

    Undefined (NaN) without a relevant row. Ties in closed form: in a block of m rows with n
    relevant, below k0 rows with c0 relevant, the t-th row contributes on average
    (n / m) (c0 + 1 + (t - 1)(n - 1) / (m - 1)) / (k0 + t).
    """
    queries = ranking.queries
    hits = ranking.take(relevant).astype(np.int64)
    position = queries.place + 1
    if ranking.start is None:
        value = hits * queries.cumsum(hits) / position
    else:
        above, inside, length = tied_counts(ranking, hits)
        others = (position - 1 - ranking.start) * (inside - 1) / np.maximum(length - 1, 1)
        value = inside / length * (above + 1 + others) / position
    if k is not None:
        value = np.where(position <= k, value, 0.0)
    return divide(ranking.sum(value), ranking.sum(hits))
