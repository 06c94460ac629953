"""The loss of expected reciprocal rank. Labels come in; one target per document comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sklearn_rankcal.losses._base import Loss
from sklearn_rankcal.queries import Queries


class ERR(Loss):
    """Expected reciprocal rank: sum_j (1 / F(j)) R_(j) prod_{l < j} (1 - R_(l)).

    R_(j) = G(y) is the probability that the document at place j, whose label is y, satisfies the
    user.

    Parameters
    ----------
    k : int, default=None
        Number of places that count in the measure. If None, every place counts.
    max_relevance : float, default=None
        The top grade of the whole collection. If None, it is the largest label that is passed to
        `fit` or to a metric, which may lack the top grade. It must be None if `gain` is a function.
    gain : {"exp2", "linear"} or callable, default="exp2"
        G: ``(2**y - 1) / 2**max_relevance``, ``y / max_relevance``, or a function that maps an
        array of labels to an array of probabilities.
    discount : callable, default=None
        F, a function that maps the array of places 1, 2, ... to numbers of at least 1 which do not
        decrease. None is the place itself. The targets do not depend on it.

    Notes
    -----
    The targets are the probabilities R_i of the documents. They are calibrated if the labels of the
    documents of a query are independent given the query (Duchi, Mackey and Jordan, 2013, equation
    16 and lemma 1), but not for every distribution (Calauzènes et al., 2013, theorem 3.3). For
    example, let the labels be (1, 1, 0, 0) or (0, 0, 1, 1) with probability one half each. The
    expected scores tie, but the ranking 1, 3, 2, 4 has a larger expected ERR (43/96) than
    1, 2, 3, 4 (41/96).
    """

    _measure = "err"
    calibrated_everywhere = False
    graded_targets = True
    calibrated_over = (
        "product distributions, in which labels are independent given the query (Duchi et al., "
        "2013, lemma 1); not all distributions (Calauzènes et al., 2013, theorem 3.3)"
    )

    def __init__(
        self,
        k: int | None = None,
        *,
        max_relevance: float | None = None,
        gain: Any = "exp2",
        discount: Any = None,
    ) -> None:
        self.k = k
        self.max_relevance = max_relevance
        self.gain = gain
        self.discount = discount

    def resolve(self, relevance: NDArray[np.float64]) -> ERR:
        self.check(relevance)
        return clone(self).set_params(max_relevance=self.measure.resolve(relevance).max_relevance)

    def encode(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        chances: NDArray[np.float64] = self.measure.satisfaction(relevance)
        return chances
