"""Least squares over all pairs of every query, without forming them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_array

from sklearn_rankcal._pair_targets import PairTargets, square_chunks
from sklearn_rankcal._queries import Queries

Floats = NDArray[np.float64]
_N0 = 300  # training queries at which the "auto" penalty of `BilinearPairs` is 1
_BLOCK = 1 << 16  # rows turned to float64 at a time


def numeric_table(X: Any) -> NDArray[Any]:
    """X as a dense, finite array of numbers."""
    return check_array(X, dtype=[np.float64, np.float32], input_name="X")


class _Moments:
    """Mean and spread of the columns inside queries, and their scaled covariance."""

    def __init__(self, X: NDArray[Any], queries: Queries, weight: Floats | None) -> None:
        self.shift = X.mean(axis=0, dtype=np.float64)
        n_columns = X.shape[1]
        gram = np.zeros((n_columns, n_columns))
        self.pair_mass = 0.0
        # sum over ordered pairs of v_i v_j (x_i - x_j)(x_i - x_j)' = 2 (V S2 - S1 S1') a query
        for rows, part in queries.chunks(_BLOCK):
            block = X[rows] - self.shift
            mass = np.ones(part.n_rows) if weight is None else weight[rows]
            total = np.add.reduceat(mass, part.offsets[:-1])
            sums = np.add.reduceat(block * mass[:, None], part.offsets[:-1], axis=0)
            gram += block.T @ (block * (mass * np.repeat(total, part.sizes))[:, None])
            gram -= sums.T @ sums
            self.pair_mass += float((total**2).sum() - (mass**2).sum())
        self.gram = 2.0 * gram


class PairwiseRidge(BaseEstimator):
    """Linear scores that fit the differences of ALL pairs, in one pass over the documents.

    Minimises the mean over ordered pairs of a query of (w'(x_i - x_j) - t_ij)^2 plus
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

    space = "pairs"

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
            A pair weighs the product of its documents' weights.

        Returns
        -------
        self : PairwiseRidge
        """
        table = numeric_table(X)
        moments = _Moments(table, queries, sample_weight)
        sums = targets.row_sums(sample_weight)
        if sample_weight is not None:
            sums = sums * sample_weight
        # the row sums of a query add up to 0, so that the shift does not matter
        moment = 2.0 * (table.T @ sums.astype(table.dtype, copy=False)).astype(np.float64)
        mass = max(moments.pair_mass, 1.0)
        spread = np.sqrt(np.diagonal(moments.gram) / mass)
        scale = np.where(spread > 1e-12 * np.abs(moments.shift), spread, np.inf)
        gram = moments.gram / mass / scale / scale[:, None]
        gram[np.diag_indices_from(gram)] += self.alpha + 1e-12
        self.coef_ = solve(gram, moment / mass / scale, assume_a="pos") / scale
        return self

    def predict_scores(self, X: Any) -> Floats:
        """Scores w'x, of which the predictions are the differences."""
        return numeric_table(X) @ self.coef_

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Differences s_i - s_j, i < j, query after query (``numpy.triu_indices(r, 1)``)."""
        return flat_differences(self.predict_scores(X), queries)


def flat_differences(scores: Floats, queries: Queries) -> Floats:
    """s_i - s_j of the pairs i < j of every query, in the order of `PairTargets.flat`."""
    return _ScoreDifferences(scores, queries).flat()


class _ScoreDifferences(PairTargets):
    def __init__(self, scores: Floats, queries: Queries) -> None:
        super().__init__(queries)
        self._grouped = queries.gather(np.asarray(scores, dtype=np.float64))

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        scores = self._grouped[inside]
        difference = scores[:, :, None] - scores[:, None, :]
        difference *= valid[:, :, None] & valid[:, None, :]
        return difference


class BilinearPairs(BaseEstimator):
    """u_ij = z_i' A z_j with z = [1, phi(x)], fitted to all pairs in closed form.

    A is skew-symmetric for preferences, which lets the model express cycles, and symmetric for
    average precision. The column of ones makes scores a part of it.

    Parameters
    ----------
    feature_map : transformer, default=None
        phi, fitted on the documents: any scikit-learn transformer with a dense result, such as
        ``make_pipeline(StandardScaler(), Nystroem(n_components=32))``. None: the principal
        components of the columns, scaled to spread 1 inside queries, at most `n_components`.
    n_components : int, default=16
        Number of principal components; with a `feature_map` not used.
    symmetric : bool, default=False
        True for the space ``"sym_pairs"``.
    alpha : "auto" or float, default="auto"
        Penalty on the entries of A, in units of the mean over pairs. "auto" is 300 over the number
        of training queries, which tends to 0.

    Attributes
    ----------
    matrix_ : ndarray of shape (m + 1, m + 1)
        A.
    feature_map_ : transformer or None
        The fitted feature map.

    Notes
    -----
    The Gram matrix of vec A is sum_q G_q (x) G_q with G_q = Z_q'Z_q. O(n m^2 + Q m^4 + sum_q r_q^2)
    time, O(m^4) memory beside a block of queries; m = 32 is a good size, m = 100 is not.
    """

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
    def space(self) -> str:
        """``"pairs"``, or ``"sym_pairs"`` where symmetric."""
        return "sym_pairs" if self.symmetric else "pairs"

    def fit(
        self,
        X: Any,
        targets: PairTargets,
        queries: Queries,
        sample_weight: Floats | None = None,
    ) -> BilinearPairs:
        """Fit A.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
        targets : PairTargets
            Of the symmetry of the model.
        queries : Queries
        sample_weight : ndarray of shape (n_documents,), default=None
            A pair weighs the product of its documents' weights.

        Returns
        -------
        self : BilinearPairs
        """
        if self.feature_map is None:
            table = numeric_table(X)
            moments = _Moments(table, queries, sample_weight)
            self.feature_map_ = None
            self._shift = moments.shift
            self._axes = _principal(moments, self.n_components)
        else:
            self.feature_map_ = clone(self.feature_map).fit(X)
        z = queries.gather(self._features(X))
        m = z.shape[1]
        rows, columns = np.triu_indices(m)
        grams = np.zeros((len(rows), len(rows)))
        moment = np.zeros((m, m))
        mass = np.ones(queries.n_rows) if sample_weight is None else queries.gather(sample_weight)
        pair_mass = 0.0
        for inside, valid in square_chunks(queries):
            weight = mass[inside] * valid
            block = z[inside] * weight[:, :, None]
            moment += np.einsum(
                "qia,qib->ab", block, targets.matrices(inside, valid) @ block, optimize=True
            )
            gram = (block.transpose(0, 2, 1) @ z[inside])[:, rows, columns]
            grams += gram.T @ gram
            pair_mass += float((weight.sum(axis=1) ** 2).sum())
        alpha = _N0 / queries.n_queries if self.alpha == "auto" else float(self.alpha)
        self.matrix_ = _solve_bilinear(grams / pair_mass, moment / pair_mass, self.symmetric, alpha)
        return self

    def _features(self, X: Any) -> Floats:
        if self.feature_map_ is None:
            z = (numeric_table(X) - self._shift) @ self._axes
        else:
            z = np.asarray(self.feature_map_.transform(X), dtype=np.float64)
        return np.concatenate([np.ones((len(z), 1)), z], axis=1)

    def predict(self, X: Any, queries: Queries) -> Floats:
        """u_ij of the pairs i < j (i <= j where symmetric), in the order of `PairTargets.flat`."""
        return _BilinearForm(queries.gather(self._features(X)), self.matrix_, queries).flat()


class _BilinearForm(PairTargets):
    def __init__(self, z: Floats, matrix: Floats, queries: Queries) -> None:
        super().__init__(queries)
        self.symmetric = bool((matrix == matrix.T).all() and matrix.any())
        self._left, self._right = z @ matrix, z

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        return self._left[inside] @ self._right[inside].transpose(0, 2, 1)


def _principal(moments: _Moments, n_components: int) -> Floats:
    """(d, m) axes of the largest spread inside queries, the columns scaled first."""
    mass = max(moments.pair_mass, 1.0)
    spread = np.sqrt(np.diagonal(moments.gram) / mass)
    scale = np.where(spread > 1e-12 * np.abs(moments.shift), spread, np.inf)
    values, vectors = np.linalg.eigh(moments.gram / mass / scale / scale[:, None])
    largest = np.argsort(-values)[:n_components]
    largest = largest[values[largest] > 1e-10]
    return vectors[:, largest] / np.sqrt(values[largest]) / scale[:, None]


def _solve_bilinear(grams: Floats, moment: Floats, symmetric: bool, alpha: float) -> Floats:
    """A of least squares from sum_q vec G_q vec G_q' (upper triangles) and sum_q Z' T Z."""
    m = len(moment)
    number = np.zeros((m, m), dtype=np.int64)
    rows, columns = np.triu_indices(m)
    number[rows, columns] = number[columns, rows] = np.arange(len(rows))
    a, b = np.triu_indices(m, 0 if symmetric else 1)
    sign = 1.0 if symmetric else -1.0
    # u_ij = sum_ab A_ab (z_ia z_jb + sign z_ib z_ja), halved on the diagonal
    normal = grams[number[a[:, None], a], number[b[:, None], b]]
    normal = 2.0 * (normal + sign * grams[number[a[:, None], b], number[b[:, None], a]])
    wanted = moment[a, b] + sign * moment[b, a]
    if symmetric:
        half = np.where(a == b, 0.5, 1.0)
        normal *= half * half[:, None]
        wanted *= half
    normal[np.diag_indices_from(normal)] += alpha + 1e-12
    theta = solve(normal, wanted, assume_a="pos")
    matrix = np.zeros((m, m))
    matrix[a, b] = theta
    matrix[b, a] = sign * theta
    return matrix
