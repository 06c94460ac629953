"""Ridge regression on all pairs of every query in closed form, without forming the pairs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sklearn_rankcal.models._model import PairwiseModel
from sklearn_rankcal.models._sums import PairSums, solve_ridge
from sklearn_rankcal.models._training import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS, PairTargets, RelevanceDifferences
from sklearn_rankcal.utils._features import numeric_table
from sklearn_rankcal.utils._memory import row_blocks
from sklearn_rankcal.utils._parameters import check_number
from sklearn_rankcal.utils._typing import Floats


class PairwiseRidge(PairwiseModel):
    """Ridge regression of pairwise targets on the differences of the documents' features.

    The model is a score s(x) = w'x for each document, and predicts u_ij = s(x_i) - s(x_j) for a
    pair. Because the prediction is a difference of scores, it cannot express a cycle of
    preferences.

    The slopes w minimise the mean over all ordered pairs (i, j) of (w'(x_i - x_j) - t_ij)^2, plus
    ``alpha * sum_k (w_k sd_k)^2``, where sd_k is the root mean square of the differences in column
    k. Pairs with i = j are counted.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the penalty, relative to the mean squared error over pairs.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The slopes w.

    Notes
    -----
    Fitting takes O(n d^2) time for n rows of d columns, and O(d^2) memory in addition to a block of
    rows, because no pairs are formed.

    Examples
    --------
    Two queries are summed separately, as on two machines, and the sum is solved:

    >>> import numpy as np
    >>> from sklearn_rankcal.models import PairwiseRidge, Training
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.targets import RelevanceDifferences
    >>> X, y = np.array([[0.0], [1.0], [2.0], [5.0]]), np.array([0.0, 1.0, 0.0, 3.0])
    >>> query, model = Queries.single(2), PairwiseRidge(alpha=0.0)
    >>> def sums(rows):
    ...     targets = RelevanceDifferences(y[rows], query, "graded", np.ones(1))
    ...     return model.sums(Training(X[rows], targets, query))
    >>> model.solve(sums(slice(0, 2)) + sums(slice(2, 4))).coef_.round(6)
    array([1.])
    """

    space = PAIRS

    def __init__(self, alpha: float = 1e-3) -> None:
        self.alpha = alpha

    def fit(self, training: Training) -> Self:
        """Fit the slopes.

        Parameters
        ----------
        training : Training
            X has dense, finite numbers, and the targets t_ij are antisymmetric `PairTargets`. A
            pair has the product of the weights of its two documents as its weight. Only the ratios
            of the weights matter.

        Returns
        -------
        self : PairwiseRidge

        Raises
        ------
        ValueError
            If `alpha` is not a finite number >= 0, or if X is not numeric and finite.
        """
        return self.solve(self.sums(training))

    def sums(self, training: Training) -> PairSums:
        """Compute what `solve` needs of some queries. Such sums can be added."""
        check_number(self.alpha, "alpha", "[0, inf)")
        table = numeric_table(training.X)
        return PairSums.of(table, training.targets, training.queries, training.weight)

    def solve(self, sums: PairSums) -> Self:
        """Set the slopes to those that fit the queries of the sums best."""
        scale = sums.scale()
        moment = sums.moment / (sums.pair_mass or 1.0) / scale
        self.coef_ = solve_ridge(sums.scaled_gram(scale), moment, self.alpha) / scale
        return self

    def own_coefficients(self) -> Floats:
        """Return the slopes."""
        return self.coef_

    def predict_scores(self, X: Any, queries: Queries) -> Floats:
        """Predict the score w'x of each document, of shape (n_documents,).

        The prediction for a pair is the difference of its scores, so that sorting by them decodes
        the predictions of all pairs, in O(n d + n log r) time for n documents in queries of r.
        """
        table = numeric_table(X)
        return np.concatenate([table[rows] @ self.coef_ for rows in row_blocks(*table.shape)])

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict s(x_i) - s(x_j) for all pairs of every query.

        They are in the order of `PairTargets.flat`.
        """
        return score_differences(self.predict_scores(X, queries), queries).flat()


def score_differences(scores: Floats, queries: Queries) -> PairTargets:
    """Return the pairwise targets s_i - s_j, given a score for each row."""
    return RelevanceDifferences(scores, queries, "graded", np.ones(queries.n_queries))
