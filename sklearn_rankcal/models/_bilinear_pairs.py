"""A bilinear form on pairs of documents, fitted to all pairs of every query in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklearn_rankcal.models._bilinear_sums import (
    BilinearSums,
    best_penalty,
    solve_documents,
    solve_pairs,
)
from sklearn_rankcal.models._folds import query_folds
from sklearn_rankcal.models._sums import PairSums
from sklearn_rankcal.models._tables import numeric_table, row_blocks
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS, SYMMETRIC_PAIRS, PairTargets
from sklearn_rankcal.targets._space import Space
from sklearn_rankcal.utils._memory import check_memory
from sklearn_rankcal.utils._parameters import check_count, check_flag, check_number
from sklearn_rankcal.utils._pickles import reduce_with_versions

Floats = NDArray[np.float64]
# The penalty "auto" without folds is this number over the number of training queries.
_PENALTY_TIMES_QUERIES = 300
_N_FOLDS = 5  # folds of queries by which the penalty "auto" is chosen
_PENALTIES = 10.0 ** np.arange(-6, 4.5, 0.5)


class BilinearPairs(BaseEstimator):
    """A bilinear form u_ij = z_i' A z_j with z = [1, phi(x)], fitted to all pairs in closed form.

    phi computes principal components of the columns, scaled so that their differences inside
    queries have mean square 1. For preferences A is skew-symmetric, which lets the model express
    cycles. For average precision A is symmetric. Because z contains a constant, differences (or
    sums) of linear scores are a special case. For other features, put a transformer such as
    `Nystroem` before the ranker in a pipeline.

    Parameters
    ----------
    n_components : int, default=16
        The largest number of principal components.
    symmetric : bool, default=False
        True for the space `targets.SYMMETRIC_PAIRS`, and False for `targets.PAIRS`. Symmetric
        targets with i = j describe a single document, and depend on its features in another way
        than the targets of pairs do. Therefore A is fitted to the pairs i != j only, and
        u_ii = z_i'w is fitted to the documents separately.
    alpha : "auto" or float, default="auto"
        Penalty on the squared entries of A, relative to the mean over pairs, and of w, relative to
        the mean over documents. In the symmetric case the constants are not penalised. "auto"
        chooses the penalty with the smallest squared error in a cross-validation with five folds
        of queries. In the symmetric case, and with fewer than 10 queries, "auto" is 300 divided by
        the number of training queries.

    Attributes
    ----------
    alpha_ : float
        The penalty that was used.
    matrix_ : ndarray of shape (m + 1, m + 1)
        A, where m is the number of features phi(x).
    diagonal_ : ndarray of shape (m + 1,) or None
        The coefficients w if `symmetric`, else None.

    Notes
    -----
    The time is O(n m^2 + Q m^4 + m sum_q r_q^2 + m^6) for Q queries of r_q documents, plus O(n m^4)
    if symmetric. The memory is O(m^4) in addition to a block of queries. m = 32 is a good size;
    m = 100 is too large.
    """

    _center: Floats
    _axes: Floats

    def __init__(
        self, *, n_components: int = 16, symmetric: bool = False, alpha: str | float = "auto"
    ) -> None:
        self.n_components = n_components
        self.symmetric = symmetric
        self.alpha = alpha

    __reduce__ = reduce_with_versions

    @property
    def space(self) -> Space:
        """`targets.SYMMETRIC_PAIRS` if `symmetric`, else `targets.PAIRS`."""
        return SYMMETRIC_PAIRS if self.symmetric else PAIRS

    def fit(
        self,
        X: Any,
        targets: PairTargets,
        queries: Queries,
        sample_weight: Floats | None = None,
    ) -> BilinearPairs:
        """Fit A and, if symmetric, w.

        Parameters
        ----------
        X, targets, queries, sample_weight
            As in `PairwiseRidge.fit`; the targets have the symmetry of the model. In the fit of w a
            document has the weight v_i, and not v_i^2.

        Returns
        -------
        self : BilinearPairs

        Raises
        ------
        ValueError
            If a parameter or X is not valid, or if the sums of so many features would not fit in
            memory.
        """
        self.set_features(self.spread(X, queries, sample_weight))
        n_folds = self.n_folds(queries.n_queries)
        folds = query_folds(numeric_table(X), queries, n_folds)
        return self.solve(self.sums(X, targets, queries, sample_weight, folds, n_folds))

    def spread(self, X: Any, queries: Queries, sample_weight: Floats | None = None) -> PairSums:
        """Compute what `set_features` needs of some queries. Such sums can be added."""
        if self.alpha != "auto":
            check_number(self.alpha, "alpha", positive=False, also="'auto' or")
        check_flag(self.symmetric, "symmetric")
        check_count(self.n_components, "n_components")
        return PairSums.of(numeric_table(X), None, queries, sample_weight)

    def set_features(self, spread: PairSums) -> BilinearPairs:
        """Set phi to the principal components of all queries that were added up."""
        self._center = spread.total / (spread.mass or 1.0)
        scale = spread.scale()
        values, vectors = np.linalg.eigh(spread.scaled_gram(scale))
        kept = np.argsort(-values)[: self.n_components]
        kept = kept[values[kept] > 1e-10]
        self._axes = vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]
        m = len(kept) + 1
        check_memory(
            8 * 8 * (m * (m + 1) // 2) ** 2,
            f"A form of {m - 1} features",
            "Lower n_components.",
        )
        return self

    def n_folds(self, n_queries: int) -> int:
        """Return the number of folds that choose the penalty of so many queries; 1 if none do."""
        chosen = self.alpha == "auto" and not self.symmetric and n_queries >= 2 * _N_FOLDS
        return _N_FOLDS if chosen else 1

    def sums(
        self,
        X: Any,
        targets: PairTargets,
        queries: Queries,
        sample_weight: Floats | None = None,
        folds: NDArray[np.int64] | None = None,
        n_folds: int = 1,
    ) -> BilinearSums:
        """Compute what `solve` needs of some queries, after `set_features`. Such sums can be added.

        `folds` has the fold of each query, from 0 to ``n_folds - 1``; None puts all into one fold.
        Queries of all parts with equal documents should share a fold.
        """
        if folds is None:
            folds = np.zeros(queries.n_queries, dtype=np.int64)
        table = numeric_table(X)
        return BilinearSums.of(
            lambda rows: self._features(table, rows),
            targets,
            queries,
            sample_weight,
            folds,
            n_folds,
        )

    def solve(self, sums: BilinearSums) -> BilinearPairs:
        """Set the penalty and the coefficients to those that fit the queries of the sums best."""
        if len(sums.mass) > 1:
            self.alpha_ = best_penalty(sums, _PENALTIES)
        elif self.alpha == "auto":
            self.alpha_ = _PENALTY_TIMES_QUERIES / sums.n_queries
        else:
            self.alpha_ = float(self.alpha)
        self.matrix_ = solve_pairs(sums, self.alpha_, self.symmetric)
        self.diagonal_ = solve_documents(sums, self.alpha_) if self.symmetric else None
        return self

    def _features(self, table: NDArray[Any], rows: NDArray[np.int64]) -> Floats:
        """Compute the features z of rows of the table, of shape ``(*rows.shape, m + 1)``."""
        listed = rows.reshape(-1)
        z = np.ones((len(listed), self._axes.shape[1] + 1))
        for some in row_blocks(len(listed), table.shape[1]):
            z[some, 1:] = (table[listed[some]] - self._center) @ self._axes
        return z.reshape(*rows.shape, -1)

    def predict_scores(self, X: Any, queries: Queries) -> Floats | None:
        """Return the score 0 of each document if all predictions are 0, and None otherwise."""
        return None if self.symmetric or self.matrix_.any() else np.zeros(queries.n_rows)

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict u_ij for the pairs i < j of every query, or i <= j if symmetric.

        They are in the order of `PairTargets.flat`.
        """
        return _BilinearForm(self, X, queries).flat()


class _BilinearForm(PairTargets):
    """The predictions of a fitted model, computed for a few queries at a time."""

    def __init__(self, model: BilinearPairs, X: Any, queries: Queries) -> None:
        super().__init__(queries)
        self.space = model.space
        self._model = model
        self._table = numeric_table(X)
        self._order = queries.gather(np.arange(queries.n_rows))

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        z = self._model._features(self._table, self._order[inside])
        form = z @ self._model.matrix_ @ z.transpose(0, 2, 1)
        if self._model.diagonal_ is not None:
            place = np.arange(inside.shape[1])
            form[:, place, place] = z @ self._model.diagonal_
        return form
