"""The cascade: expected reciprocal rank, where a user stops at the first satisfying document."""

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
        Cutoff of the measure; None counts every place.
    max_relevance : float, default=None
        The top grade of the collection, so that R = (2^y - 1) / 2^max_relevance is a probability:
        one constant for all queries and folds. None: the largest label seen (by `fit`, or in the
        call of a metric); pass it when folds are compared, since a fold may lack the top grade.

    Notes
    -----
    Targets: R_i. Calibrated when the documents of a query are independent given the query (P3,
    lemma 1), not for every distribution (P2, theorem 3.3): with labels (1, 1, 0, 0) or
    (0, 0, 1, 1), half each, scores that were best for every distribution, standardisation
    functions, would have to tie the four documents (lemma B.2), yet 1, 3, 2, 4 has a larger
    expected ERR (43/96) than 1, 2, 3, 4 (41/96). P3 is Duchi, Mackey & Jordan (2013).
    """

    calibrated_everywhere = False
    calibrated_over = (
        "product distributions: documents independent given the query (P3, lemma 1); not all "
        "distributions (P2, theorem 3.3)"
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
