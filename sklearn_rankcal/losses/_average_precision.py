"""Losses whose measure is average precision: MAP, from pairs of documents, and MAPByScores.

Labels come in, and targets come out. For a query of r documents MAP has r (r + 1) / 2 targets, the
products of labels (Ramaswamy, Agarwal and Tewari, 2013, theorem 3). MAPByScores has only the r
products on the diagonal. The formula of the measure is in `sklearn_rankcal.measures`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal import measures
from sklearn_rankcal.losses._base import NormalizedLoss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import SYMMETRIC_PAIRS, RelevanceProducts


class _AveragePrecision(NormalizedLoss):
    """Base class of the losses of average precision."""

    _half = 1000


class MAP(_AveragePrecision):
    """Mean average precision, learned from the products of the labels of all pairs of documents.

    Parameters
    ----------
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. None: labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` moves the normalizer sum(y) towards its mean over queries, as in
        `MAPByScores`.

    Notes
    -----
    The targets of a query of r documents are the r (r + 1) / 2 products y_i y_j / sum(y), i <= j,
    because document i at place k adds y_i / k times the number of relevant documents above it and
    itself, over sum(y). Least squares on these targets, decoded exactly, is calibrated for every
    distribution (Ramaswamy et al., 2013, theorem 3). Decoded by ``"diagonal"`` it is calibrated
    under the condition P_reinforce (theorem 4), where `MAPByScores` is the cheaper choice. The
    measure is undefined for a query without a relevant document.
    """

    space = SYMMETRIC_PAIRS

    @property
    def calibrated_over(self) -> str:
        return self._as_shrunken(
            "every distribution, decoded exactly (Ramaswamy et al., 2013, theorem 3)"
        )

    def __init__(self, *, threshold: float | None = None, shrinkage: str | float = "auto") -> None:
        self.threshold = threshold
        self.shrinkage = shrinkage

    @property
    def measure(self) -> measures.AveragePrecision:
        return measures.AveragePrecision(threshold=self.threshold)

    def shrunken_targets(
        self, relevance: NDArray[np.float64], queries: Queries, share: float
    ) -> RelevanceProducts:
        gains = self.measure.gains(relevance)
        return RelevanceProducts(gains, queries, self.shrunken_normalizer(gains, queries, share))

    def regret_constant(self, n_documents: int) -> float:
        """sqrt(2 (H_r - sum_i (H_r - H_{r - i}) / i)), H_r the r-th harmonic number.

        A ranking has the vector of the numbers 1 / max(sigma(i), sigma(j)), i <= j. The constant is
        the distance between the vectors of a ranking and of its reverse, and no two rankings are
        farther apart. The proof: every vector has squared norm H_r, so the inner product of two
        vectors has to be minimised. With 1 / m = sum_{k >= m} (1 / k - 1 / (k + 1)) this product is
        a sum over k and l, with positive weights, of n (n + 1) / 2. Here n counts the documents
        that one ranking has in its first k places and the other in its first l places. n is at
        least k + l - r and at least 0. For a ranking and its reverse it equals the larger of the
        two, for all k and l.
        """
        harmonic = np.cumsum(np.append(0.0, 1.0 / np.arange(1, n_documents + 1)))
        i = np.arange(1, n_documents + 1)
        product = ((harmonic[-1] - harmonic[n_documents - i]) / i).sum()
        return float(np.sqrt(max(2 * (harmonic[-1] - product), 0.0)))


class MAPByScores(_AveragePrecision):
    """Mean average precision, learned from one score per document.

    Parameters
    ----------
    k : int, default=None
        Number of places that count in the measure; the targets do not depend on it. None counts
        every place.
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. None: labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` moves the normalizer sum(y) of each query towards its mean over queries, which
        lowers the variance of the targets. "auto" is 1000 / (1000 + number of training queries),
        and 0 leaves the calibrated targets unchanged. A fixed number above 0 gives up calibration.
        The measure is not affected. See `NormalizedLoss`.

    Notes
    -----
    The targets are y_i / sum(y). They are calibrated under the condition P_reinforce of Ramaswamy
    et al. (2013), and not for every distribution. For example, let the labels be (0, 0, 1, 0) with
    probability .3 and (1, 1, 0, 1) with probability .7. Sorting by expected targets puts document 3
    first (E[AP] = .7472), but the best ranking puts it last (E[AP] = .775). No expected scores are
    calibrated for MAP over all distributions (Calauzènes et al., 2013, theorem 3.3). The measure is
    undefined for a query without a relevant document.
    """

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

    @property
    def measure(self) -> measures.AveragePrecision:
        return measures.AveragePrecision(k=self.k, threshold=self.threshold)
