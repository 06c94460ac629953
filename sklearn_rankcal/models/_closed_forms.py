"""Least squares over all pairs of every query, without forming them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_array, check_is_fitted

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS, SYMMETRIC_PAIRS, PairSpace, PairTargets
from sklearn_rankcal.utils._arrays import read_arrays
from sklearn_rankcal.utils._features import check_features, take_rows
from sklearn_rankcal.utils._memory import check_memory, rows_per_block
from sklearn_rankcal.utils._parameters import check_count, check_flag, check_methods
from sklearn_rankcal.utils._pickles import VersionedPickle
from sklearn_rankcal.utils._row_hashes import hash_rows
from sklearn_rankcal.utils._scales import below_one, exponent_of

Floats = NDArray[np.float64]
_N0 = 300  # training queries at which an "auto" penalty without folds is 1
_BLOCK = 1 << 17  # numbers turned to float64 at a time: 1 MB, which stays in the cache
_LARGEST = 1e70
_N_FOLDS = 5  # of queries, for the "auto" penalty
_PENALTIES = 10.0 ** np.arange(-6, 4.5, 0.5)


def numeric_table(X: Any) -> NDArray[Any]:
    """X as a dense, finite array of numbers."""
    return check_array(X, dtype=[np.float64, np.float32], input_name="X")


def _blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Rows of a table, `_BLOCK` numbers at a time."""
    step = max(1, _BLOCK // n_columns)
    return (slice(first, first + step) for first in range(0, n_rows, step))


class _Differences:
    """Moments of x_i - x_j over all ordered pairs of every query, a block of rows at a time.

    Pairs i = j count, so that a row of weight 2 is the same as that row twice.

    Parameters
    ----------
    X : ndarray of shape (n_rows, d)
    queries : Queries
    weight : ndarray of shape (n_rows,) or None
        A pair weighs the product of its documents' weights.
    sums : ndarray of shape (n_rows,) or None
        Weighted row sums of antisymmetric targets.

    Attributes
    ----------
    center : ndarray of shape (d,)
        Means of the columns.
    scale : ndarray of shape (d,)
        Root mean square of the differences in each column, inf where they are 0.
    gram : ndarray of shape (d, d)
        Mean products of the differences, in units of `scale`.
    moment : ndarray of shape (d,)
        Mean products of differences and targets, in units of `scale`; 0 without `sums`.
    """

    def __init__(
        self, X: NDArray[Any], queries: Queries, weight: Floats | None, sums: Floats | None = None
    ) -> None:
        d = X.shape[1]
        total, gram, moment = np.zeros(d), np.zeros((d, d)), np.zeros(d)
        size = np.zeros(d)
        mass = pair_mass = 0.0
        for rows, part in queries.chunks(_BLOCK // d):
            block = X[rows].astype(np.float64)
            v = np.ones(part.n_rows) if weight is None else weight[rows]
            of_query = part.sum(v)
            sum_x = part.sum(block if weight is None else block * v[:, None])
            total += sum_x.sum(axis=0)
            np.maximum(size, np.abs(block).max(axis=0), out=size)
            mass += float(v.sum())
            pair_mass += float((of_query**2).sum())
            block -= part.repeat(sum_x / np.where(of_query > 0, of_query, 1.0)[:, None])
            # sum_ij v_i v_j (x_i - x_j)(x_i - x_j)' = 2 V sum_i v_i x_i x_i', x centred
            if sums is not None:
                moment += 2.0 * (v * sums[rows]) @ block
            block *= np.sqrt(2.0 * v * part.repeat(of_query))[:, None]
            gram += block.T @ block
        pair_mass = pair_mass or 1.0
        self.center = total / (mass or 1.0)
        spread = np.sqrt(np.diagonal(gram) / pair_mass)
        # what is constant inside queries has a spread by rounding alone
        self.scale = np.where(spread > 1e-12 * size, spread, np.inf)
        self.gram = gram / pair_mass / self.scale / self.scale[:, None]
        self.moment = moment / pair_mass / self.scale

    def principal_axes(self, n_components: int) -> Floats:
        """(d, m) axes of the largest spread, each of spread 1; the columns scaled first."""
        values, vectors = np.linalg.eigh(self.gram)
        largest = np.argsort(-values)[:n_components]
        largest = largest[values[largest] > 1e-10]
        return vectors[:, largest] / np.sqrt(values[largest]) / self.scale[:, None]


def check_penalty(alpha: Any, auto: bool = False) -> None:
    """Raise unless it is a finite number >= 0, or "auto" where that is known."""
    if auto and isinstance(alpha, str) and alpha == "auto":
        return
    if isinstance(alpha, str) or not isinstance(alpha, Real) or not 0 <= float(alpha) < np.inf:
        known = "'auto' or a finite number >= 0" if auto else "a finite number >= 0"
        raise ValueError(f"alpha must be {known}; got {alpha!r}.")


def _ridge(gram: Floats, moment: Floats, penalty: Any) -> Floats:
    """Minimiser of w'Gw - 2 w'm + sum_k penalty_k w_k^2; the Gram matrix is overwritten."""
    gram[np.diag_indices_from(gram)] += penalty + 1e-12
    return solve(gram, moment, assume_a="pos")


class PairwiseRidge(VersionedPickle, BaseEstimator):
    """Linear scores that fit the differences of ALL pairs, in one pass over the documents.

    Minimises the mean over ordered pairs, i = j counted, of (w'(x_i - x_j) - t_ij)^2 plus
    ``alpha * sum_k (w_k sd_k)^2``, sd_k the spread of column k inside queries. A score cannot
    express a cycle.

    Parameters
    ----------
    alpha : float, default=1e-3
        Penalty, in units of the mean over pairs.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Slopes w.

    Notes
    -----
    The Gram matrix of all differences is sum_q 2 r_q X_q'X_q - 2 (sum x)(sum x)', their moment
    2 sum_i x_i b_i with b the row sums of the targets. O(n d^2) time, O(d^2) memory beside a block
    of rows.
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
            Antisymmetric.
        queries : Queries
        sample_weight : ndarray of shape (n_documents,), default=None
            A pair weighs the product of its documents' weights. Only their ratios count.

        Returns
        -------
        self : PairwiseRidge
        """
        check_penalty(self.alpha)
        weight = None if sample_weight is None else below_one(sample_weight)
        pairs = _Differences(numeric_table(X), queries, weight, targets.row_sums(weight))
        self.coef_ = _ridge(pairs.gram, pairs.moment, self.alpha) / pairs.scale
        return self

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The fitted model as plain arrays, which any version of any software reads.

        Returns
        -------
        arrays : dict of str to ndarray
            ``"coef"``.
        """
        check_is_fitted(self)
        return {"coef": self.coef_.copy()}

    def from_arrays(self, arrays: Mapping[str, Any]) -> PairwiseRidge:
        """Take over what `to_arrays` returned; like `fit`, it returns the model itself.

        Raises
        ------
        ValueError
            Arrays that are absent, or of another shape or not finite.
        """
        (self.coef_,) = read_arrays(arrays, {"coef": ("d",)}).values()
        return self

    def predict_scores(self, X: Any) -> Floats:
        """Scores w'x, of which the predictions are the differences."""
        table = numeric_table(X)
        return np.concatenate([table[rows] @ self.coef_ for rows in _blocks(*table.shape)])

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Differences s_i - s_j, i < j, query after query (``numpy.triu_indices(r, 1)``)."""
        return ScoreDifferences(self.predict_scores(X), queries).flat()


class ScoreDifferences(PairTargets):
    """s_i - s_j of scores in row layout."""

    def __init__(self, scores: Floats, queries: Queries) -> None:
        super().__init__(queries)
        self._grouped = queries.gather(np.asarray(scores, dtype=np.float64))

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        scores = self._grouped[inside]
        difference = scores[:, :, None] - scores[:, None, :]
        difference *= valid[:, :, None] & valid[:, None, :]
        return difference


class BilinearPairs(VersionedPickle, BaseEstimator):
    """u_ij = z_i' A z_j with z = [1, phi(x)], fitted to all pairs in closed form.

    A is skew-symmetric for preferences, which lets the model express cycles, and symmetric for
    average precision. The column of ones makes scores a part of it.

    Parameters
    ----------
    feature_map : transformer, default=None
        phi, fitted on the documents: any scikit-learn transformer with a dense result, such as
        ``make_pipeline(StandardScaler(), Nystroem(n_components=32))``; the penalty takes its
        columns for scaled to mean square 1. None: the principal components of the columns, scaled
        to spread 1 inside queries, at most `n_components`.
    n_components : int, default=16
        Number of principal components; with a `feature_map` not used.
    symmetric : bool, default=False
        True for the space `targets.SYMMETRIC_PAIRS`. Of its targets y_i y_j / sum(y), those with i = j are
        about one document and another function of it than of a pair: A is fitted to the pairs
        i != j, and u_ii = z_i'w to a document itself.
    alpha : "auto" or float, default="auto"
        Penalty on the entries of A, in units of the mean over pairs, and on those of w, in units of
        the mean over documents; in the symmetric case not on the constants. "auto" is chosen by
        the squared error in five folds of queries, at no second look at X. In the symmetric case,
        and for fewer than 10 queries, it is 300 over the number of training queries.

    Attributes
    ----------
    alpha_ : float
        The penalty.
    matrix_ : ndarray of shape (m + 1, m + 1)
        A.
    diagonal_ : ndarray of shape (m + 1,) or None
        w; None unless symmetric.
    feature_map_ : transformer or None
        The fitted feature map.

    Notes
    -----
    The Gram matrix of vec A is sum_q G_q (x) G_q with G_q = Z_q'Z_q, less sum_i z_i z_i' (x) z_i
    z_i' where pairs i = j are left out. O(n m^2 + Q m^4 + m sum_q r_q^2 + m^6) time, O(n m^4) if
    symmetric, O(m^4) memory beside a block of queries; m = 32 is a good size, m = 100 is not.
    """

    feature_map_: Any
    _center: Floats
    _axes: Floats

    def __init__(
        self,
        feature_map: Any = None,
        *,
        n_components: int = 16,
        symmetric: bool = False,
        alpha: str | float = "auto",
    ) -> None:
        self.feature_map = feature_map
        self.n_components = n_components
        self.symmetric = symmetric
        self.alpha = alpha

    @property
    def space(self) -> PairSpace:
        """`targets.PAIRS`, or `targets.SYMMETRIC_PAIRS` where symmetric."""
        return SYMMETRIC_PAIRS if self.symmetric else PAIRS

    def fit(
        self,
        X: Any,
        targets: PairTargets,
        queries: Queries,
        sample_weight: Floats | None = None,
    ) -> BilinearPairs:
        """Fit A, and w.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
        targets : PairTargets
            Of the symmetry of the model.
        queries : Queries
        sample_weight : ndarray of shape (n_documents,), default=None
            A pair weighs the product of its documents' weights, of which only ratios count. A
            document by itself weighs v_i and not v_i^2: weight 2 is the same as that row twice.

        Returns
        -------
        self : BilinearPairs
        """
        check_penalty(self.alpha, auto=True)
        check_flag(self.symmetric, "symmetric")
        check_methods(self.feature_map, "feature_map", "a transformer", "fit", "transform")
        if sample_weight is not None:  # sums are of products of weights, of which ratios count
            sample_weight = below_one(sample_weight)
        X = self._table(X)
        if self.feature_map is None:
            check_count(self.n_components, "n_components")
            pairs = _Differences(X, queries, sample_weight)
            self.feature_map_ = None
            self._center = pairs.center
            self._axes = pairs.principal_axes(self.n_components)
        else:
            self.feature_map_ = clone(self.feature_map).fit(X)
        order = queries.gather(np.arange(queries.n_rows))
        mass = np.ones(queries.n_rows) if sample_weight is None else queries.gather(sample_weight)
        m = self._features(X, order[:1]).shape[1]
        rows, columns = np.triu_indices(m)
        check_memory(
            8 * 8 * len(rows) ** 2,
            f"A form of {m - 1} features",
            "Lower n_components, or the number of columns of the feature_map.",
        )
        judged = self.alpha == "auto" and not self.symmetric and queries.n_queries >= 2 * _N_FOLDS
        n_folds = _N_FOLDS if judged else 1
        fold_of = _folds(X, order, queries, n_folds)
        grams = np.zeros((n_folds, len(rows), len(rows)))
        moments, pair_mass = np.zeros((n_folds, m, m)), np.zeros(n_folds)
        own_gram, own_moment = np.zeros((m, m)), np.zeros(m)
        for inside, valid in _moment_chunks(queries, m):
            fold = fold_of[np.searchsorted(queries.offsets, inside[:, 0], side="right") - 1]
            z, v = self._features(X, order[inside]), mass[inside] * valid
            if not np.abs(z).max() < _LARGEST:
                raise ValueError("X is too large for sums of fourth powers: scale its columns.")
            t = targets.matrices(inside, valid)
            weighted = z * v[:, :, None]
            turned = weighted.transpose(0, 2, 1)
            products, squares = turned @ (t @ weighted), turned @ z
            if self.symmetric:
                own = np.diagonal(t, axis1=1, axis2=2)
                products -= turned @ (weighted * own[:, :, None])
                grams[0] -= _fourth_moments((z * np.sqrt(v)[:, :, None]).reshape(-1, m))
                own_moment += own.reshape(-1) @ weighted.reshape(-1, m)
            own_gram += squares.sum(axis=0)
            gram = squares[:, rows, columns]
            masses = v.sum(axis=1) ** 2
            for k in range(n_folds):
                some = fold == k
                grams[k] += gram[some].T @ gram[some]
                moments[k] += products[some].sum(axis=0)
                pair_mass[k] += masses[some].sum()
        equations = [
            _normal_equations(gram, moment, self.space)
            for gram, moment in zip(grams, moments, strict=True)
        ]
        sizes = np.ones(m)  # of the columns: principal components have spread 1
        if self.feature_map is not None:
            sizes = np.sqrt(np.diagonal(own_gram) / (mass.sum() or 1.0))
            sizes[sizes == 0] = 1.0
        a, b = self.space.indices(m)
        unit = sizes[a] * sizes[b]
        equations = [(normal / unit / unit[:, None], wanted / unit) for normal, wanted in equations]
        if judged:
            self.alpha_ = _best_penalty(equations, pair_mass)
        elif self.alpha == "auto":
            self.alpha_ = _N0 / queries.n_queries
        else:
            self.alpha_ = float(self.alpha)
        total = pair_mass.sum() or 1.0
        normal, wanted = (sum(part) / total for part in zip(*equations, strict=True))
        theta = _ridge(normal, wanted, self.alpha_ * (a + b > 0)) / unit
        self.matrix_ = np.zeros((m, m))
        self.matrix_[a, b] = theta
        self.matrix_[b, a] = self.space.sign * theta
        self.diagonal_: Floats | None = None
        if self.symmetric:
            own = own_gram / (mass.sum() or 1.0) / sizes / sizes[:, None]
            own_moment /= (mass.sum() or 1.0) * sizes
            self.diagonal_ = _ridge(own, own_moment, self.alpha_ * (np.arange(m) > 0)) / sizes
        return self

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The fitted model as plain arrays, which any version of any software reads.

        Returns
        -------
        arrays : dict of str to ndarray
            ``"center"`` c of shape (n_features,), ``"axes"`` V (n_features, m), ``"matrix"`` A
            (m + 1, m + 1) and, where symmetric, ``"diagonal"`` w (m + 1,). With z = [1, (x - c) V]
            the prediction for the pair i, j is z_i' A z_j, and for a document z_i'w.

        Raises
        ------
        ValueError
            The model has a `feature_map`, which is not made of arrays.
        """
        check_is_fitted(self)
        if self.feature_map is not None:
            raise ValueError(
                f"The feature_map {self.feature_map!r} has no form as plain arrays. Transform X "
                "before the ranker instead, and use feature_map=None."
            )
        arrays = {"center": self._center, "axes": self._axes, "matrix": self.matrix_}
        if self.diagonal_ is not None:
            arrays["diagonal"] = self.diagonal_
        return {name: array.copy() for name, array in arrays.items()}

    def from_arrays(self, arrays: Mapping[str, Any]) -> BilinearPairs:
        """Take over what `to_arrays` returned; like `fit`, it returns the model itself.

        `alpha_` is not among the arrays, and not set.

        Raises
        ------
        ValueError
            The model has a `feature_map`; arrays that are absent, or of another shape or not
            finite, or of a model of the other symmetry.
        """
        if self.feature_map is not None:
            raise ValueError("from_arrays needs feature_map=None, as to_arrays does.")
        shapes: dict[str, tuple[str, ...]] = {
            "center": ("d",),
            "axes": ("d", "m"),
            "matrix": ("m + 1", "m + 1"),
        }
        if self.symmetric:
            shapes["diagonal"] = ("m + 1",)
        read = read_arrays(arrays, shapes)
        A = read["matrix"]
        if not np.array_equal(A, A.T if self.symmetric else -A.T):
            kind = "symmetric" if self.symmetric else "skew-symmetric"
            raise ValueError(f"The array 'matrix' must be {kind}, as symmetric={self.symmetric}.")
        self.feature_map_ = None
        self._center, self._axes, self.matrix_ = read["center"], read["axes"], A
        self.diagonal_ = read.get("diagonal")
        return self

    def _table(self, X: Any) -> Any:
        return numeric_table(X) if self.feature_map is None else check_features(X)

    def _features(self, X: Any, rows: NDArray[np.int64]) -> Floats:
        """z of rows of the table, (*rows.shape, m + 1)."""
        listed = rows.reshape(-1)
        parts = []
        for some in _blocks(len(listed), X.shape[1]):
            part = take_rows(X, listed[some])
            if self.feature_map_ is None:
                part = (part - self._center) @ self._axes
            else:
                part = np.asarray(self.feature_map_.transform(part), dtype=np.float64)
            parts.append(np.concatenate([np.ones((len(part), 1)), part], axis=1))
        return np.concatenate(parts).reshape(*rows.shape, -1)

    def predict(self, X: Any, queries: Queries) -> Floats:
        """u_ij of the pairs i < j (i <= j where symmetric), in the order of `PairTargets.flat`."""
        return _BilinearForm(self, X, queries).flat()


class _BilinearForm(PairTargets):
    def __init__(self, model: BilinearPairs, X: Any, queries: Queries) -> None:
        super().__init__(queries)
        self.space = model.space
        self._model = model
        self._table = model._table(X)
        self._order = queries.gather(np.arange(queries.n_rows))

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        z = self._model._features(self._table, self._order[inside])
        form = z @ self._model.matrix_ @ z.transpose(0, 2, 1)
        if self._model.diagonal_ is not None:
            place = np.arange(inside.shape[1])
            form[:, place, place] = z @ self._model.diagonal_
        return form


def _moment_chunks(
    queries: Queries, m: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """`Queries.pair_blocks` of so few queries that an array (queries, m, m) fits a block too."""
    step = rows_per_block(8 * m**2)
    for inside, valid in queries.pair_blocks():
        for first in range(0, len(inside), step):
            yield inside[first : first + step], valid[first : first + step]


def _fourth_moments(z: Floats) -> Floats:
    """sum_i vec(z_i z_i') vec(z_i z_i')', upper triangles."""
    rows, columns = np.triu_indices(z.shape[1])
    moments = np.zeros((len(rows), len(rows)))
    for some in _blocks(len(z), len(rows)):
        block = np.ascontiguousarray(z[some].T)
        products = block[rows]
        products *= block[columns]
        moments += products @ products.T
    return moments


def _normal_equations(grams: Floats, moment: Floats, space: PairSpace) -> tuple[Floats, Floats]:
    """Of the free entries of A, from sum_q vec G_q vec G_q' (upper triangles) and sum_q Z' T Z."""
    m = len(moment)
    number = np.zeros((m, m), dtype=np.int64)
    rows, columns = np.triu_indices(m)
    number[rows, columns] = number[columns, rows] = np.arange(len(rows))
    a, b = space.indices(m)
    sign = space.sign
    # u_ij = sum_ab A_ab (z_ia z_jb + sign z_ib z_ja), halved on the diagonal
    normal = grams[number[a[:, None], a], number[b[:, None], b]]
    normal = 2.0 * (normal + sign * grams[number[a[:, None], b], number[b[:, None], a]])
    wanted = moment[a, b] + sign * moment[b, a]
    if space.symmetric:
        half = np.where(a == b, 0.5, 1.0)
        normal *= half * half[:, None]
        wanted *= half
    return normal, wanted


def _folds(X: Any, order: NDArray[np.int64], queries: Queries, n_folds: int) -> NDArray[np.int64]:
    """A fold of each query, by its content, so that the order of the queries does not count."""
    if n_folds == 1:
        return np.zeros(queries.n_queries, dtype=np.int64)
    some = X[:, :8] if isinstance(X, np.ndarray) else X  # enough to tell queries from each other
    keys = np.add.reduceat(hash_rows(some, order), queries.offsets[:-1])
    folds = np.empty(queries.n_queries, dtype=np.int64)
    folds[np.argsort(keys, kind="stable")] = np.arange(queries.n_queries) % n_folds
    return folds


def _best_penalty(equations: list[tuple[Floats, Floats]], pair_mass: Floats) -> float:
    """Of the smallest squared error on folds that the normal equations of the others predict."""
    normals, wanted = (np.stack(part) for part in zip(*equations, strict=True))
    wanted = np.ldexp(wanted, -exponent_of(wanted))  # errors are squares of targets
    whole, moment = normals.sum(axis=0), wanted.sum(axis=0)
    errors = np.zeros(len(_PENALTIES))
    for k, mass in enumerate(pair_mass):
        rest = (pair_mass.sum() - mass) or 1.0
        values, vectors = np.linalg.eigh((whole - normals[k]) / rest)
        there = vectors.T @ (moment - wanted[k]) / rest
        theta = vectors @ (there[:, None] / (np.maximum(values, 0.0)[:, None] + _PENALTIES))
        errors += (theta * (normals[k] @ theta)).sum(axis=0) - 2.0 * wanted[k] @ theta
    return float(_PENALTIES[np.argmin(errors)])
