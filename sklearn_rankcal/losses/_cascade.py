"""The loss of ERR, expected reciprocal rank. Labels come in; one target per document comes out.

In the cascade model a user reads a ranking from the top and stops at the first satisfying document.
The formula of the measure is in `sklearn_rankcal.measures`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal import measures
from sklearn_rankcal.losses._base import Loss
from sklearn_rankcal.queries import Queries


class ERR(Loss):
    """Expected reciprocal rank: sum_j (1 / j) R_(j) prod_{l < j} (1 - R_(l)).

    Parameters
    ----------
    k : int, default=None
        Number of places that count in the measure. None counts every place.
    max_relevance : float, default=None
        The top grade of the whole collection, with which R = (2^y - 1) / 2^max_relevance is a
        probability. It is one constant for all queries. None takes the largest label that is passed
        to `fit` or to a metric. Set it when folds are compared, because a fold may lack the top
        grade.

    Notes
    -----
    The targets are R_i. They are calibrated if the labels of the documents of a query are
    independent given the query (Duchi, Mackey and Jordan, 2013, lemma 1), and not for every
    distribution (Calauzènes et al., 2013, theorem 3.3). For example, let the labels be (1, 1, 0, 0)
    or (0, 0, 1, 1) with probability one half each. Scores that were best for every distribution,
    called standardization functions, would have to tie the four documents (Calauzènes et al., lemma
    B.2). However, the ranking 1, 3, 2, 4 has a larger expected ERR (43/96) than 1, 2, 3, 4 (41/96).
    """

    calibrated_everywhere = False
    calibrated_over = (
        "product distributions, in which documents are independent given the query (Duchi et al., "
        "2013, lemma 1); not all distributions (Calauzènes et al., 2013, theorem 3.3)"
    )

    def __init__(self, k: int | None = None, *, max_relevance: float | None = None) -> None:
        self.k = k
        self.max_relevance = max_relevance

    @property
    def measure(self) -> measures.ERR:
        return measures.ERR(k=self.k, max_relevance=self.max_relevance)

    def resolve(self, relevance: NDArray[np.float64]) -> ERR:
        self.check(relevance)
        return ERR(self.k, max_relevance=self.measure.resolve(relevance).max_relevance)

    def encode(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return self.encode_documents(relevance)

    def encode_documents(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.measure.satisfaction(relevance)
