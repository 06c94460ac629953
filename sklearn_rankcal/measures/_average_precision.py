"""The measure average precision, the mean of the precision at the places of relevant documents.

A ranking and its labels come in; the average precision of every query comes out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.measures._base import BinaryMeasure, check_cutoff, divide
from sklearn_rankcal.queries import Queries, Ranking


@dataclass(frozen=True, kw_only=True)
class AveragePrecision(BinaryMeasure):
    """Average precision. Its mean over queries is called MAP.

    The precision at the place of each relevant document is added up, and the sum is divided by the
    number of relevant documents of the query.

    Parameters
    ----------
    k : int, default=None
        Number of places that count. A relevant document below place k adds 0, and the sum is still
        divided by the number of all relevant documents. None counts every place.
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

    def gains(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 for a relevant document, 0 for any other document."""
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
    """Count relevant rows above and in the block of tied rows at each place.

    Three arrays are returned: the number of relevant rows above the block, the number of relevant
    rows in the block, and the number of all rows in the block. A row that is not tied is a block of
    one row.
    """
    assert ranking.start is not None and ranking.stop is not None
    base = ranking.queries.repeat(ranking.queries.offsets[:-1])
    total = np.concatenate([[0], np.cumsum(relevant)])
    above = total[ranking.start + base]
    inside = total[ranking.stop + base] - above
    return above - total[base], inside, ranking.stop - ranking.start


def average_precision(
    ranking: Ranking, relevant: NDArray[np.bool_], k: int | None = None
) -> NDArray[np.float64]:
    """The sum of the precision at the places of relevant rows, over the number of relevant rows.

    With a cutoff, the sum has only the places <= k. The value is NaN for a query without a relevant
    row. Ties are averaged in closed form. Let a block have m rows, n of them relevant, and let k0
    rows stand above it, c0 of them relevant. Then the t-th place of the block contributes on
    average

        (n / m) (c0 + 1 + (t - 1) (n - 1) / (m - 1)) / (k0 + t).

    Here n / m is the probability that the t-th row is relevant. Given that it is, each of the t - 1
    rows of the block above it is relevant with probability (n - 1) / (m - 1).
    """
    queries = ranking.queries
    hits = ranking.take(relevant).astype(np.int64)
    position = queries.place + 1
    if ranking.start is None:  # no ties: precision = relevant rows down to this place / position
        value = hits * queries.cumsum(hits) / position
    else:
        above, inside, length = tied_counts(ranking, hits)
        # expected number of relevant rows among the t - 1 rows of the block above place t
        others = (position - 1 - ranking.start) * (inside - 1) / np.maximum(length - 1, 1)
        value = inside / length * (above + 1 + others) / position
    if k is not None:
        value = np.where(position <= k, value, 0.0)
    return divide(ranking.sum(value), ranking.sum(hits))
