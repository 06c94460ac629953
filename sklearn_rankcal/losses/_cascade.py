"""The cascade: expected reciprocal rank, where a user stops at the first satisfying document."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.losses._base import Loss, check_cutoff, check_real, exp2_minus_1
from sklearn_rankcal.measures._formulas import Ranking, expected_reciprocal_rank
from sklearn_rankcal.queries._queries import Queries


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

    positive_only = True
    calibrated_everywhere = False
    calibrated_over = (
        "product distributions: documents independent given the query (P3, lemma 1); not all "
        "distributions (P2, theorem 3.3)"
    )

    def __init__(self, k: int | None = None, *, max_relevance: float | None = None) -> None:
        self.k = k
        self.max_relevance = max_relevance

    def check(self, relevance: NDArray[np.float64]) -> None:
        check_cutoff("k", self.k)
        if self.max_relevance is not None:
            check_real("max_relevance", self.max_relevance)
        super().check(relevance)
        top = relevance.max()
        if self.max_relevance is None:
            if top > 1000:
                raise ValueError(
                    f"Relevance of {top:g} overflows 2**y. Rescale the labels to a few grades."
                )
        elif not 0 <= self.max_relevance <= 1000:
            raise ValueError(f"max_relevance must be in [0, 1000]; got {self.max_relevance!r}.")
        elif top > self.max_relevance:
            raise ValueError(
                f"Relevance {top:g} exceeds max_relevance={self.max_relevance:g}. Pass the top "
                "grade of the whole collection: ERR(max_relevance=...), since training data may "
                "lack it."
            )

    def resolve(self, relevance: NDArray[np.float64]) -> ERR:
        self.accept(relevance)
        top = relevance.max() if self.max_relevance is None else self.max_relevance
        return ERR(self.k, max_relevance=float(top))

    def satisfaction(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        """R: the probability that a document satisfies the user."""
        top = relevance.max() if self.max_relevance is None else self.max_relevance
        return exp2_minus_1(relevance) / np.exp2(top)

    def encode(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return self.satisfaction(relevance)

    def encode_documents(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.satisfaction(relevance)

    def measure(self, ranked: Ranking, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        # satisfaction is asked for part of the labels, the top grade is that of all
        return expected_reciprocal_rank(
            ranked, relevance, self.resolve(relevance).satisfaction, self.k
        )
