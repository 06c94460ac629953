"""Mean average precision: targets in r^2 dimensions (P1, theorem 3), or only their diagonal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal import measures
from sklearn_rankcal.losses._base import NormalizedLoss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import SYMMETRIC_PAIRS, RelevanceProducts


class _AveragePrecision(NormalizedLoss):
    """What the losses of average precision share: its normaliser."""

    _half = 1000


class MAP(_AveragePrecision):
    """Mean average precision, from the products of labels.

    Parameters
    ----------
    threshold : float, default=None
        Relevance from which a document is relevant. None: labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        As in `MAPByScores`.

    Notes
    -----
    Targets: the r(r+1)/2 products y_i y_j / sum(y) of a query, i <= j, because a document at place
    k adds (y_i / k) times the relevant documents above it and itself. Least squares on them,
    decoded exactly, is calibrated for every distribution (P1, theorem 3); decoded by
    ``"diagonal"``, under P_reinforce (P1, theorem 4), where `MAPByScores` is the cheaper choice.
    Undefined for a query without a relevant document.
    """

    space = SYMMETRIC_PAIRS

    @property
    def calibrated_over(self) -> str:
        return self._as_shrunken("every distribution, decoded exactly (P1, theorem 3)")

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

        That is the distance between the vectors 1 / max(sigma(i), sigma(j)), i <= j, of a ranking
        and its reverse, and no two rankings are farther apart. Each has squared norm H_r. With
        1 / m = sum_{k >= m} (1 / k - 1 / (k + 1)), the product of two of them is a sum over k and
        l, of positive weight, of n (n + 1) / 2, where n counts the documents that one ranking has
        in its first k places and the other in its first l. It is at least k + l - r and at least
        0, and for a ranking and its reverse equal to the larger of the two, for all k and l.
        """
        harmonic = np.cumsum(np.append(0.0, 1.0 / np.arange(1, n_documents + 1)))
        i = np.arange(1, n_documents + 1)
        product = ((harmonic[-1] - harmonic[n_documents - i]) / i).sum()
        return float(np.sqrt(max(2 * (harmonic[-1] - product), 0.0)))


class MAPByScores(_AveragePrecision):
    """Mean average precision, ranked by scores.

    Parameters
    ----------
    k : int, default=None
        Cutoff of the measure (not of the targets); None counts every place.
    threshold : float, default=None
        Relevance from which a document is relevant. None: labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` draws the normaliser to its mean over queries, to lower the targets'
        variance. "auto" is 1000 / (1000 + number of training queries), 0 the calibrated targets as
        such; a fixed number above 0 gives up calibration. The measure is not affected. See
        `NormalizedLoss`.

    Notes
    -----
    Targets: y_i / sum(y). Calibrated where P1's condition holds, not everywhere: with labels
    (0, 0, 1, 0) of probability .3 and (1, 1, 0, 1) of probability .7, sorting puts document 3
    first (E[AP] = .7472), while the best ranking puts it last (E[AP] = .775). No expected scores
    are calibrated for MAP over all distributions (P2, theorem 3.3). Undefined for a query without a
    relevant document.
    """

    calibrated_everywhere = False

    @property
    def calibrated_over(self) -> str:
        return self._as_shrunken(
            "the distributions of P_reinforce (P1, theorem 4 and corollary 5): u_ii >= u_jj "
            "implies u_ii >= u_jj + sum_g (u_jg - u_ig)_+ for u_ij = E[Y_i Y_j / sum(Y)]"
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
