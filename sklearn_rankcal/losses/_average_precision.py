"""Losses whose measure is average precision: products of the labels of pairs, or one score each."""

from __future__ import annotations

import numpy as np

from sklearn_rankcal.losses._base import NormalizedLoss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import SYMMETRIC_PAIRS, RelevanceProducts
from sklearn_rankcal.utils._typing import Floats


class _AveragePrecision(NormalizedLoss):
    """Base class of the losses whose measure is average precision."""

    _half = 1000
    _measure = "map"


class MAP(_AveragePrecision):
    """Mean average precision, learned from the products of the labels of all pairs of documents.

    Parameters
    ----------
    threshold : float, default=None
        A label of at least `threshold` is relevant. If None, labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        As in `NDCG`.

    Notes
    -----
    The targets of a query of r documents are the r (r + 1) / 2 products y_i y_j / sum(y), i <= j,
    because average precision is their sum with the weights 1 / max(sigma(i), sigma(j)), where
    sigma(i) is the place of document i. Least squares on these targets, decoded exactly, is
    calibrated for every distribution (Ramaswamy et al., 2013, theorem 3). Decoded by
    ``"diagonal"``, it is calibrated under P_reinforce (theorem 4), under which `MAPByScores` is
    the cheaper choice. The measure is undefined for a query without a relevant document.
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

    def shrunken_targets(
        self, relevance: Floats, queries: Queries, share: float, mean: float | None = None
    ) -> RelevanceProducts:
        gains = self.measure.gains(relevance)
        normalizer = self.shrunken_normalizer(gains, queries, share, mean)
        return RelevanceProducts(gains, queries, normalizer)

    def regret_constant(self, n_documents: int) -> float:
        """Return sqrt(2 (H_r - sum_i (H_r - H_{r - i}) / i)), where H_r is a harmonic number.

        It is the distance between the vectors 1 / max(sigma(i), sigma(j)), i <= j, of a ranking and
        its reverse, the largest of all. Proof: every vector has the squared norm H_r. With
        1 / m = sum_{k >= m} (1 / k - 1 / (k + 1)), the inner product is a sum of n (n + 1) / 2
        over k and l, with positive weights, where n is the number of documents that one ranking
        has in its first k places and the other in its first l. Always n >= max(0, k + l - r), with
        equality for a ranking and its reverse.
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
        Number of places that count in the measure. If None, every place counts. The targets do not
        depend on it.
    threshold : float, default=None
        A label of at least `threshold` is relevant. If None, labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        As in `NDCG`.

    Notes
    -----
    The targets are y_i / sum(y). They are calibrated under the condition P_reinforce of Ramaswamy
    et al. (2013), and no scores are for every distribution (Calauzènes et al., 2013, theorem 3.3).
    For example, let the labels be (0, 0, 1, 0) with probability .3 and (1, 1, 0, 1) with
    probability .7. Sorting by expected targets puts document 3 first (E[AP] = .7472), but the best
    ranking puts it last (.775). The measure is undefined for a query without a relevant document.
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
