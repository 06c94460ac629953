"""Average precision and reciprocal rank, which depend on the places of relevant documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sklearn_rankcal.measures._base import BinaryMeasure, Floats, check_cutoff, divide
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.utils._typing import Bools, Ints


@dataclass(frozen=True, kw_only=True)
class _FirstPlaces(BinaryMeasure):
    """Base class of measures to which relevant documents below place k add 0.

    They are undefined for a query without a relevant document.
    """

    k: int | None = None

    def check(self, labels: Floats) -> None:
        check_cutoff("k", self.k)
        super().check(labels)

    def normalizer(self, gains: Floats, queries: Queries) -> Floats:
        """Number of relevant documents of each query; 0 where the measure is undefined."""
        return queries.sum(gains)

    def defined(self, labels: Floats, queries: Queries) -> Bools:
        return queries.max(self.relevant(labels))


class AveragePrecision(_FirstPlaces):
    """Average precision: the sum of the precision at the places of relevant documents <= k.

    It is divided by the number of all relevant documents of the query. Its mean over queries is
    called MAP.
    """

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        # Ties are averaged in closed form. Let a block have m rows, n of them relevant, and let k0
        # rows stand above it, c0 of them relevant. Then the t-th place of the block contributes on
        # average
        #     (n / m) (c0 + 1 + (t - 1) (n - 1) / (m - 1)) / (k0 + t).
        # Here n / m is the probability that the t-th row is relevant. Given that it is, each of the
        # t - 1 rows of the block above it is relevant with probability (n - 1) / (m - 1).
        queries = ranking.queries
        relevant = self.relevant(labels)
        hits = ranking.take(relevant).astype(np.int64)
        position = queries.place + 1
        if ranking.start is None:  # precision = relevant rows down to this place / position
            value = hits * queries.cumsum(hits) / position
        else:
            above, inside, length = _tied_counts(ranking, hits)
            others = (position - 1 - ranking.start) * (inside - 1) / np.maximum(length - 1, 1)
            value = inside / length * (above + 1 + others) / position
        if self.k is not None:
            value = np.where(position <= self.k, value, 0.0)
        return divide(ranking.sum(value), queries.sum(relevant.astype(np.int64)))


class ReciprocalRank(_FirstPlaces):
    """Reciprocal rank: 1 / place of the first relevant document, 0 if that is beyond k.

    Its mean over queries is called MRR.
    """

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        # Ties: let the block that holds the first relevant row have m rows, n of them relevant.
        # Then the first relevant row is the t-th of the block with probability
        # C(m - t, n - 1) / C(m, n).
        queries = ranking.queries
        relevant = self.relevant(labels)
        hits = ranking.take(relevant).astype(np.int64)
        position = queries.place + 1
        # chance: the probability that the first relevant row of the query stands at this place
        if ranking.start is None:
            chance = ((hits == 1) & (queries.cumsum(hits) == 1)).astype(np.float64)
        else:
            above, n, m = _tied_counts(ranking, hits)
            t = position - ranking.start
            # only the first block with relevant rows counts, and n - 1 relevant rows must follow
            possible = (above == 0) & (n > 0) & (t <= m - n + 1)
            t, n, m = np.where(possible, [t, n, m], 1)
            log_chance = _log_binomial(m - t, n - 1) - _log_binomial(m, n)
            chance = np.where(possible, np.exp(log_chance), 0.0)
        if self.k is not None:
            chance = np.where(position <= self.k, chance, 0.0)
        return np.where(queries.max(relevant), ranking.sum(chance / position), np.nan)


def _tied_counts(ranking: Ranking, relevant: Ints) -> tuple[Ints, Ints, Ints]:
    """Count rows at each place: relevant ones above and in the block of ties, and all in it.

    A row that is not tied is a block of one row.
    """
    assert ranking.start is not None and ranking.stop is not None
    base = ranking.queries.repeat(ranking.queries.offsets[:-1])
    total = np.concatenate([[0], np.cumsum(relevant)])
    above = total[ranking.start + base]
    inside = total[ranking.stop + base] - above
    return above - total[base], inside, ranking.stop - ranking.start


def _log_binomial(n: NDArray[Any], k: NDArray[Any]) -> Floats:
    """The logarithm of the binomial coefficient C(n, k)."""
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
