"""Average precision, reciprocal rank, and the losses for average precision.

`MAP` has one target per pair of documents (the product of their labels), `MAPByScores` has one
target per document.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sklearn_rankcal.losses._base import BinaryMeasure, NormalizedLoss, divide
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.targets import SYMMETRIC_PAIRS, RelevanceProducts
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints


class _FirstPlaces(BinaryMeasure):
    """Base class of measures in which relevant documents below place k add 0.

    They are undefined for a query without a relevant document.
    """

    k: int | None

    def __init__(self, k: int | None = None, *, threshold: float | None = None) -> None:
        self.k = k
        self.threshold = threshold

    def normalizer(self, gains: Floats, queries: Queries) -> Floats:
        """Return the number of relevant documents of each query, 0 if the measure is undefined."""
        return queries.sum(gains)

    def defined(self, labels: Floats, queries: Queries) -> Bools:
        return queries.max(self.relevant(labels))


class AveragePrecision(_FirstPlaces):
    """Average precision: the mean of the precision at the places of all relevant documents.

    A relevant document below place k counts as precision 0. The mean over queries is called MAP.
    """

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        # Ties are averaged in closed form. Let a block of ties have m rows, n of them relevant, and
        # let k0 rows be above it, c0 of them relevant. On average, the t-th place of the block
        # contributes
        #     (n / m) (c0 + 1 + (t - 1) (n - 1) / (m - 1)) / (k0 + t).
        # The t-th row is relevant with probability n / m. If it is, each of the t - 1 rows of the
        # block above it is relevant with probability (n - 1) / (m - 1).
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
    """Reciprocal rank: 1 / place of the first relevant document, 0 if it is below place k.

    The mean over queries is called MRR.
    """

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        # Ties: let the block of the first relevant row have m rows, n of them relevant. The first
        # relevant row is the t-th row of the block with probability C(m - t, n - 1) / C(m, n).
        queries = ranking.queries
        relevant = self.relevant(labels)
        hits = ranking.take(relevant).astype(np.int64)
        position = queries.place + 1
        # chance: the probability that the first relevant row of the query is at this place
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
    """Return for each place the relevant rows above its block, in its block, and the block size.

    A row without ties is a block of one row.
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


class MAP(AveragePrecision, NormalizedLoss):
    """Mean average precision, learned from all pairs of documents.

    Parameters
    ----------
    threshold, shrinkage
        As in `Recall`.

    Notes
    -----
    The targets of a query with r documents are the r (r + 1) / 2 products y_i y_j / sum(y), i <= j.
    Average precision is the sum of these products with the weights 1 / max(sigma(i), sigma(j)),
    where sigma(i) is the place of document i.

    Least squares on these targets is calibrated for every distribution if it is decoded exactly
    (Ramaswamy et al., 2013, theorem 3). The decoder ``"diagonal"`` is calibrated under P_reinforce
    (theorem 4); in this case, `MAPByScores` is cheaper. The measure is undefined for a query
    without a relevant document.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import MAP
    >>> ranker = CalibratedRanker(loss=MAP(threshold=2))
    """

    space = SYMMETRIC_PAIRS
    _half = 1000
    k = None  # the measure is a sum over pairs only if every place counts

    @property
    def calibrated_over(self) -> str:
        return self._as_shrunken(
            "every distribution, decoded exactly (Ramaswamy et al., 2013, theorem 3)"
        )

    def __init__(self, *, threshold: float | None = None, shrinkage: str | float = "auto") -> None:
        self.threshold = threshold
        self.shrinkage = shrinkage

    def shrunken_targets(
        self, relevance: Floats, queries: Queries, share: float, mean: float | None = None
    ) -> RelevanceProducts:
        gains = self.gains(relevance)
        normalizer = self.shrunken_normalizer(gains, queries, share, mean)
        return RelevanceProducts(gains, queries, normalizer)

    def regret_constant(self, n_documents: int) -> float:
        """Return sqrt(2 (H_r - sum_i (H_r - H_{r - i}) / i)), where H_r is a harmonic number.

        This is the distance between the vectors 1 / max(sigma(i), sigma(j)), i <= j, of a ranking
        and its reverse. No two rankings have a larger distance. Proof: every vector has the squared
        norm H_r. With 1 / m = sum_{k >= m} (1 / k - 1 / (k + 1)), the inner product is a sum over k
        and l of n (n + 1) / 2 with positive weights. Here n is the number of documents that are
        among the first k places of one ranking and among the first l places of the other. Always
        n >= max(0, k + l - r), with equality for a ranking and its reverse.
        """
        harmonic = np.cumsum(np.append(0.0, 1.0 / np.arange(1, n_documents + 1)))
        i = np.arange(1, n_documents + 1)
        product = ((harmonic[-1] - harmonic[n_documents - i]) / i).sum()
        return float(np.sqrt(max(2 * (harmonic[-1] - product), 0.0)))


class MAPByScores(AveragePrecision, NormalizedLoss):
    """Mean average precision, learned from one score per document.

    Parameters
    ----------
    k : int, default=None
        Cutoff of the measure: only the first k places count. If None, every place counts. The
        targets do not depend on k.
    threshold, shrinkage
        As in `Recall`.

    Notes
    -----
    The targets are y_i / sum(y). They are calibrated under the condition P_reinforce of Ramaswamy
    et al. (2013). No scores are calibrated for every distribution (Calauzènes et al., 2013, theorem
    3.3). For example, let the labels be (0, 0, 1, 0) with probability .3 and (1, 1, 0, 1) with
    probability .7. Sorting by expected targets puts document 3 first (E[AP] = .7472), but the best
    ranking puts it last (.775). The measure is undefined for a query without a relevant document.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import MAPByScores
    >>> ranker = CalibratedRanker(loss=MAPByScores(threshold=2))
    """

    _half = 1000
    calibrated_everywhere = False

    @property
    def calibrated_over(self) -> str:
        return self._as_shrunken(
            "the distributions of P_reinforce (Ramaswamy et al., 2013, theorem 4 and corollary 5): "
            "u_ii >= u_jj implies u_ii >= u_jj + sum_g (u_jg - u_ig)_+ for "
            "u_ij = E[Y_i Y_j / sum(Y)]"
        )

    def __init__(
        self,
        k: int | None = None,
        *,
        threshold: float | None = None,
        shrinkage: str | float = "auto",
    ) -> None:
        self.k = k
        self.threshold = threshold
        self.shrinkage = shrinkage


def reinforce_violations(
    u: Floats, lead_slack: Floats | float, total_slack: Floats | float
) -> Bools:
    """Return which pairs (i, j) violate P_reinforce, for symmetric matrices (n, r, r).

    The slacks of the two inequalities broadcast to this shape. One pass for each i limits the
    memory to O(n r^2).
    """
    n, r, _ = u.shape
    lead_slack = np.broadcast_to(lead_slack, u.shape)
    total_slack = np.broadcast_to(total_slack, u.shape)
    own = np.einsum("qii->qi", u)
    violated = np.empty((n, r, r), dtype=bool)
    for i in range(r):
        shortfall = np.maximum(u - u[:, i : i + 1, :], 0.0)  # [q, j, g] = (u_jg - u_ig)_+
        shortfall[:, :, i] = 0.0  # the sum leaves out g = i
        np.einsum("qjj->qj", shortfall)[...] = 0.0  # and g = j
        lead = own[:, i : i + 1] - own  # [q, j] = u_ii - u_jj
        sorted_first = lead >= -lead_slack[:, i]
        violated[:, i] = sorted_first & (lead < shortfall.sum(axis=2) - total_slack[:, i])
    return violated
