"""Linear scores fitted to all pairs of every query in closed form, without forming the pairs."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.models._moments import PairMoments
from sklearn_rankcal.models._tables import numeric_table, row_blocks
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS, PairSpace, PairTargets
from sklearn_rankcal.utils._arrays import read_arrays
from sklearn_rankcal.utils._pickles import VersionedPickle

Floats = NDArray[np.float64]


def check_penalty(alpha: Any, auto: bool = False) -> None:
    """Check that `alpha` is a finite number >= 0 or, if `auto` is true, the string "auto"."""
    if auto and isinstance(alpha, str) and alpha == "auto":
        return
    if isinstance(alpha, str) or not isinstance(alpha, Real) or not 0 <= float(alpha) < np.inf:
        known = "'auto' or a finite number >= 0" if auto else "a finite number >= 0"
        raise ValueError(f"alpha must be {known}; got {alpha!r}.")


class PairwiseRidge(VersionedPickle, BaseEstimator):
    """Ridge regression of pairwise targets on the differences of the documents' features.

    The model is a score s(x) = w'x for each document, and predicts u_ij = s(x_i) - s(x_j) for a
    pair. It is fitted to all pairs of every query in one pass over the documents. Because the
    prediction is a difference of scores, the model cannot express a cycle of preferences.

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

    See Also
    --------
    PairMoments : The sums over queries through which this model is fitted.

    Notes
    -----
    For a query q with r_q documents and the feature matrix X_q, the Gram matrix of all differences
    is 2 r_q X_q'X_q - 2 (sum x)(sum x)'. The product of the differences and the targets is
    2 sum_i x_i b_i, where b_i = sum_j t_ij are the row sums of the targets. Fitting takes O(n d^2)
    time, and O(d^2) memory in addition to a block of rows.
    """

    space: PairSpace = PAIRS

    def __init__(self, alpha: float = 1e-3) -> None:
        self.alpha = alpha

    def fit(
        self,
        X: Any,
        targets: PairTargets,
        queries: Queries,
        sample_weight: Floats | None = None,
    ) -> PairwiseRidge:
        """Fit the slopes.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            Dense, finite numbers.
        targets : PairTargets
            Antisymmetric targets t_ij.
        queries : Queries
            The partition of the rows into queries.
        sample_weight : ndarray of shape (n_documents,), default=None
            A pair has the product of the weights of its two documents as its weight. Only the
            ratios of the weights matter.

        Returns
        -------
        self : PairwiseRidge

        Raises
        ------
        ValueError
            If `alpha` is not a finite number >= 0, or if X is not numeric and finite.
        """
        self._check_parameters()
        moments = PairMoments.of(numeric_table(X), targets, queries, sample_weight)
        self.coef_ = moments.solve(self.alpha)
        return self

    def _check_parameters(self) -> None:
        check_penalty(self.alpha)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted model as plain arrays, which any version of any software can read.

        Returns
        -------
        arrays : dict of str to ndarray
            ``"coef"``, the slopes w of shape (n_features,).
        """
        check_is_fitted(self)
        return {"coef": self.coef_.copy()}

    def from_arrays(self, arrays: Mapping[str, Any]) -> PairwiseRidge:
        """Restore the model from the arrays that `to_arrays` returned.

        Parameters
        ----------
        arrays : mapping of str to array-like

        Returns
        -------
        self : PairwiseRidge

        Raises
        ------
        ValueError
            If an array is absent, has another shape or is not finite.
        """
        (self.coef_,) = read_arrays(arrays, {"coef": ("d",)}).values()
        return self

    def predict_scores(self, X: Any) -> Floats:
        """Predict the score w'x of each document.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)

        Returns
        -------
        scores : ndarray of shape (n_documents,)
        """
        table = numeric_table(X)
        return np.concatenate([table[rows] @ self.coef_ for rows in row_blocks(*table.shape)])

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict s(x_i) - s(x_j) for all pairs of every query.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
        queries : Queries

        Returns
        -------
        u : ndarray of shape (n_pairs,)
            One query after another. In a query of r documents the pairs have the order of
            ``numpy.triu_indices(r, 1)``.
        """
        return ScoreDifferences(self.predict_scores(X), queries).flat()


class ScoreDifferences(PairTargets):
    """Pairwise targets s_i - s_j, given a score for each row."""

    def __init__(self, scores: Floats, queries: Queries) -> None:
        super().__init__(queries)
        self._grouped = queries.gather(np.asarray(scores, dtype=np.float64))

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        scores = self._grouped[inside]
        difference = scores[:, :, None] - scores[:, None, :]
        difference *= valid[:, :, None] & valid[:, None, :]
        return difference
