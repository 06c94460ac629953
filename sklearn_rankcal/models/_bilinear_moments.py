"""The normal equations of `BilinearPairs`: sums over queries that can be added and solved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.models._moments import Moments, scaled_weights, solve_ridge
from sklearn_rankcal.models._tables import row_blocks
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PairTargets
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._scales import exponent_of

Floats = NDArray[np.float64]
Features = Callable[[NDArray[np.int64]], Floats]
_LARGEST_FEATURE = 1e70  # fourth powers of features stay below 1e280


@dataclass(frozen=True, eq=False)
class BilinearMoments(Moments):
    """The normal equations of u_ij = z_i' A z_j and, if A is symmetric, of u_ii = z_i'w.

    Here z_i are the features of document i, v_i is its weight, and t_ij are the targets. Each query
    has a matrix Z of features, with one row per document, a vector v and a matrix T of targets. The
    moments of two parts of the queries can be added only if the parts have the same features, so a
    feature map must be fitted beforehand.

    Attributes
    ----------
    gram : ndarray of shape (m (m + 1) / 2, m (m + 1) / 2)
        Sum over queries of vec(G) vec(G)', where G = Z' diag(v) Z and vec lists the upper triangle.
        In the symmetric case the pairs i = j are left out: v_i^2 vec(z_i z_i') vec(z_i z_i')' is
        subtracted for each document.
    moment : ndarray of shape (m, m)
        Sum over queries of Z' diag(v) T diag(v) Z. In the symmetric case the diagonal of T is
        replaced by zeros.
    diagonal_gram : ndarray of shape (m, m)
        Sum of v_i z_i z_i' over the documents.
    diagonal_moment : ndarray of shape (m,)
        Sum of v_i z_i t_ii over the documents.
    symmetric : bool
    mass, pair_mass : float
        Sums of v_i over the documents, and of v_i v_j over the pairs.
    weight_exponent : int
        The weights were divided by 2^weight_exponent before they were used in these sums.
    """

    gram: Floats
    moment: Floats
    diagonal_gram: Floats
    diagonal_moment: Floats
    symmetric: bool

    _n_weights: ClassVar[dict[str, int]] = {
        "mass": 1,
        "pair_mass": 2,
        "gram": 2,
        "moment": 2,
        "diagonal_gram": 1,
        "diagonal_moment": 1,
    }

    @classmethod
    def of(
        cls,
        features: Features,
        targets: PairTargets,
        queries: Queries,
        weight: Floats | None = None,
    ) -> BilinearMoments:
        """Compute the moments of whole queries.

        Parameters
        ----------
        features : callable
            Receives an array of row numbers, of any shape, and returns the features z of these
            rows. The result has one more dimension, of length m.
        targets : PairTargets
            Their space determines whether A is symmetric or skew-symmetric.
        queries : Queries
            The partition of the rows into queries.
        weight : ndarray of shape (n_documents,), default=None
            Weights v_i of the documents; None means that all are 1.

        Returns
        -------
        moments : BilinearMoments

        Raises
        ------
        ValueError
            If fourth powers of the features would overflow.
        """
        fold_of = np.zeros(queries.n_queries, dtype=np.int64)
        return cls.in_folds(features, targets, queries, weight, fold_of, 1)[0]

    @classmethod
    def in_folds(
        cls,
        features: Features,
        targets: PairTargets,
        queries: Queries,
        weight: Floats | None,
        fold_of: NDArray[np.int64],
        n_folds: int,
    ) -> list[BilinearMoments]:
        """Compute the moments of each fold of the queries in one pass.

        Parameters
        ----------
        features, targets, queries, weight
            As in `of`.
        fold_of : ndarray of shape (n_queries,)
            Fold of each query, from 0 to n_folds - 1.
        n_folds : int
            The number of folds.

        Returns
        -------
        parts : list of BilinearMoments
            The moments of each fold.

        Raises
        ------
        ValueError
            If fourth powers of the features would overflow.
        """
        symmetric = targets.space.symmetric
        order = queries.gather(np.arange(queries.n_rows))
        v_all, exponent = scaled_weights(weight, queries.n_rows)
        v_all = queries.gather(v_all)
        m = features(order[:1]).shape[-1]
        rows, columns = np.triu_indices(m)
        gram = np.zeros((n_folds, len(rows), len(rows)))
        moment, diagonal_gram = np.zeros((n_folds, m, m)), np.zeros((n_folds, m, m))
        diagonal_moment, mass, pair_mass = (
            np.zeros((n_folds, m)),
            np.zeros(n_folds),
            np.zeros(n_folds),
        )
        for inside, valid in _square_blocks(queries, m):
            fold = fold_of[np.searchsorted(queries.offsets, inside[:, 0], side="right") - 1]
            z, v = features(order[inside]), v_all[inside] * valid
            if not np.abs(z).max() < _LARGEST_FEATURE:
                raise ValueError(
                    "The features of X are so large that sums of their fourth powers would "
                    "overflow. Scale the columns of X."
                )
            t = targets.matrices(inside, valid)
            weighted = z * v[:, :, None]
            turned = weighted.transpose(0, 2, 1)
            # Z' diag(v) T diag(v) Z and G = Z' diag(v) Z of each query
            products, squares = turned @ (t @ weighted), turned @ z
            flat_squares = squares[:, rows, columns]
            own = np.diagonal(t, axis1=1, axis2=2)
            if symmetric:  # leave out the pairs i = j, which have a model of their own
                products -= turned @ (weighted * own[:, :, None])
            for k in range(n_folds):
                some = fold == k
                gram[k] += flat_squares[some].T @ flat_squares[some]
                if symmetric:
                    gram[k] -= _fourth_moments((z * np.sqrt(v)[:, :, None])[some].reshape(-1, m))
                    diagonal_moment[k] += own[some].reshape(-1) @ weighted[some].reshape(-1, m)
                moment[k] += products[some].sum(axis=0)
                diagonal_gram[k] += squares[some].sum(axis=0)
                mass[k] += v[some].sum()
                pair_mass[k] += (v[some].sum(axis=1) ** 2).sum()
        sums = (mass, pair_mass, gram, moment, diagonal_gram, diagonal_moment)
        return [
            cls(
                float(mass),
                float(pair_mass),
                exponent,
                gram,
                moment,
                diagonal_gram,
                diagonal_moment,
                symmetric,
            )
            for mass, pair_mass, gram, moment, diagonal_gram, diagonal_moment in zip(
                *sums, strict=True
            )
        ]

    def _check_alike(self, other: BilinearMoments) -> None:
        if self.moment.shape != other.moment.shape or self.symmetric != other.symmetric:
            raise ValueError(
                "Moments can be added if both have the same number of features and the same "
                f"symmetry; got {len(self.moment)} features with symmetric={self.symmetric}, and "
                f"{len(other.moment)} features with symmetric={other.symmetric}."
            )

    def feature_sizes(self) -> Floats:
        """Root mean square of each feature, of shape (m,); 1 for a feature that is always 0."""
        sizes = np.sqrt(np.diagonal(self.diagonal_gram) / (self.mass or 1.0))
        sizes[sizes == 0] = 1.0
        return sizes

    def free_entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Indices (a, b) of the entries that determine A: those above the diagonal.

        A symmetric A has those on the diagonal, too.
        """
        return np.triu_indices(len(self.moment), 0 if self.symmetric else 1)

    def normal_equations(self, sizes: Floats) -> tuple[Floats, Floats]:
        """The normal equations of the free entries of A, each feature divided by its size.

        Minimising sum_ij v_i v_j (u_ij - t_ij)^2 over the vector theta of the free entries gives
        ``normal @ theta = wanted``.

        Write u_ij = sum_(a, b) theta_ab (z_ia z_jb + sign z_ib z_ja), where sign is 1 for a
        symmetric A and -1 for a skew-symmetric A. With G the Gram matrix of a query, two such terms
        (a, b) and (c, d) have the sum over its pairs 2 (G_ac G_bd + sign G_ad G_bc). The product of
        a term and the targets has the sum M_ab + sign M_ba, where M is `moment`. A diagonal entry
        of a symmetric A has the term z_ia z_ja once, and not twice, so its terms are halved.

        Parameters
        ----------
        sizes : ndarray of shape (m,)
            The size of each feature.

        Returns
        -------
        normal : ndarray of shape (n_free, n_free)
            The matrix of the equations.
        wanted : ndarray of shape (n_free,)
            Their right-hand side.
        """
        m = len(self.moment)
        # number[a, b]: where vec, which lists the upper triangle, has G_ab = G_ba
        number = np.zeros((m, m), dtype=np.int64)
        rows, columns = np.triu_indices(m)
        number[rows, columns] = number[columns, rows] = np.arange(len(rows))
        a, b = self.free_entries()
        sign = 1.0 if self.symmetric else -1.0
        normal = self.gram[number[a[:, None], a], number[b[:, None], b]]
        normal = 2.0 * (normal + sign * self.gram[number[a[:, None], b], number[b[:, None], a]])
        wanted = self.moment[a, b] + sign * self.moment[b, a]
        if self.symmetric:
            half = np.where(a == b, 0.5, 1.0)
            normal *= half * half[:, None]
            wanted *= half
        unit = sizes[a] * sizes[b]
        return normal / unit / unit[:, None], wanted / unit

    def solve(self, alpha: float, sizes: Floats | None = None) -> tuple[Floats, Floats | None]:
        """Fit A, and w where A is symmetric, by ridge regression.

        Parameters
        ----------
        alpha : float
            Penalty on the squared entries of A and w, in units of the mean over pairs and of the
            mean over documents. In the symmetric case the constants, A_00 and w_0, are free.
        sizes : ndarray of shape (m,), default=None
            The penalty applies to the coefficients of the features divided by these sizes. None
            means that all are 1.

        Returns
        -------
        A : ndarray of shape (m, m)
        w : ndarray of shape (m,) or None
        """
        m = len(self.moment)
        sizes = np.ones(m) if sizes is None else sizes
        a, b = self.free_entries()
        normal, wanted = self.normal_equations(sizes)
        total = self.pair_mass or 1.0
        theta = solve_ridge(normal / total, wanted / total, alpha * (a + b > 0))
        theta /= sizes[a] * sizes[b]
        A = np.zeros((m, m))
        A[a, b] = theta
        A[b, a] = theta if self.symmetric else -theta
        if not self.symmetric:
            return A, None
        # Least squares of t_ii on z_i over the documents
        own = self.diagonal_gram / (self.mass or 1.0) / sizes / sizes[:, None]
        diagonal_moment = self.diagonal_moment / ((self.mass or 1.0) * sizes)
        return A, solve_ridge(own, diagonal_moment, alpha * (np.arange(m) > 0)) / sizes


def best_penalty(parts: list[BilinearMoments], sizes: Floats, penalties: Floats) -> float:
    """Choose the penalty with the smallest squared error in a cross-validation over the folds.

    Parameters
    ----------
    parts : list of BilinearMoments
        The moments of the folds, with the same `weight_exponent`.
    sizes : ndarray of shape (m,)
        The size of each feature, as in `BilinearMoments.solve`.
    penalties : ndarray of shape (n_penalties,)
        The penalties to choose from.

    Returns
    -------
    penalty : float

    Notes
    -----
    Let N theta = w be the normal equations of a fold. The squared error on this fold of
    coefficients theta that were fitted to the other folds is theta' N theta - 2 theta' w, up to a
    constant. No second pass over the data is therefore needed.
    """
    equations = zip(*(part.normal_equations(sizes) for part in parts), strict=True)
    normals, wanted = (np.stack(part) for part in equations)
    wanted = np.ldexp(wanted, -exponent_of(wanted))  # errors are squares of targets
    whole, moment = normals.sum(axis=0), wanted.sum(axis=0)
    pair_mass = np.array([part.pair_mass for part in parts])
    errors = np.zeros(len(penalties))
    for k, mass in enumerate(pair_mass):
        rest = (pair_mass.sum() - mass) or 1.0
        # One eigendecomposition of the other folds' equations gives theta for all penalties.
        values, vectors = np.linalg.eigh((whole - normals[k]) / rest)
        turned = vectors.T @ (moment - wanted[k]) / rest
        theta = vectors @ (turned[:, None] / (np.maximum(values, 0.0)[:, None] + penalties))
        errors += (theta * (normals[k] @ theta)).sum(axis=0) - 2.0 * wanted[k] @ theta
    return float(penalties[np.argmin(errors)])


def _square_blocks(
    queries: Queries, m: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Split the blocks of `Queries.pair_blocks` so that (n_queries, m, m) fits in a block, too."""
    step = rows_per_block(8 * m**2)
    for inside, valid in queries.pair_blocks():
        for first in range(0, len(inside), step):
            yield inside[first : first + step], valid[first : first + step]


def _fourth_moments(z: Floats) -> Floats:
    """Sum over the rows z_i of vec(z_i z_i') vec(z_i z_i')', where vec lists upper triangles."""
    rows, columns = np.triu_indices(z.shape[1])
    moments = np.zeros((len(rows), len(rows)))
    for some in row_blocks(len(z), len(rows)):
        block = np.ascontiguousarray(z[some].T)
        products = block[rows]
        products *= block[columns]
        moments += products @ products.T
    return moments
