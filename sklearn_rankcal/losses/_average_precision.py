"""MAP by scores: average precision's targets on the diagonal (P1, theorem 4 and corollary 5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal._queries import Queries
from sklearn_rankcal._ranked import Ranked, average_precision
from sklearn_rankcal.losses._base import BinaryLoss, NormalizedLoss, check_cutoff


class MAPByScores(NormalizedLoss, BinaryLoss):
    """Mean average precision, ranked by scores.

    Parameters
    ----------
    k : int, default=None
        Cutoff of the measure (not of the targets); None counts every place.
    threshold : float, default=None
        Relevance from which a document is relevant. None: labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` draws the normaliser to its mean over queries, to lower the targets'
        variance. "auto" is 300 / (300 + number of training queries), 0 the calibrated targets as
        such. The measure is not affected. See `NormalizedLoss`.

    Notes
    -----
    Targets: y_i / sum(y). Calibrated where P1's condition holds, not everywhere: with labels
    (0, 0, 1, 0) of probability .3 and (1, 1, 0, 1) of probability .7, sorting puts document 3
    first (E[AP] = .7472), while the best ranking puts it last (E[AP] = .775). No scores are
    calibrated for MAP over all distributions (P2, theorem 3.3). Undefined for a query without a
    relevant document.
    """

    calibrated_everywhere = False
    calibrated_over = (
        "the distributions of P_reinforce (P1, theorem 4 and corollary 5): u_ii >= u_jj implies "
        "u_ii >= u_jj + sum_g (u_jg - u_ig)_+ for u_ij = E[Y_i Y_j / sum(Y)]"
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

    def check(self, relevance: NDArray[np.float64]) -> None:
        check_cutoff("k", self.k)
        super().check(relevance)

    def normalizer(self, worth: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return queries.sum(worth)

    def measure(self, ranked: Ranked, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        return average_precision(ranked, self.relevant(relevance), self.k)
