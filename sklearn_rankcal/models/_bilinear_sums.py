"""The normal equations of `BilinearPairs`: sums over the queries of each fold, and their solution.

The model is u_ij = z_i' A z_j and, if A is symmetric, u_ii = z_i'w.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.models._sums import Sums, solve_ridge
from sklearn_rankcal.models._tables import row_blocks
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PairTargets
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._rounding import first_smallest

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BilinearSums(Sums):
    """Sums over the queries of each fold.

    Each query has a matrix Z of features, with one row per document, a vector v of weights and a
    matrix T of targets. vec lists the upper triangle of a matrix, and G = Z' diag(v) Z.
    """

    n_queries: int  # of all folds
    mass: Floats  # sums of v_i over the documents, of shape (n_folds,)
    pair_mass: Floats  # sums of v_i v_j over the pairs, i = j included
    # sum of vec(G) vec(G)'; if symmetric, v_i^2 vec(z_i z_i') vec(z_i z_i')' is subtracted
    gram: Floats
    moment: Floats  # sum of Z' diag(v) T diag(v) Z, with zeros on the diagonal of a symmetric T
    diagonal_gram: Floats  # sum of v_i z_i z_i' over the documents
    diagonal_moment: Floats  # sum of v_i z_i t_ii over the documents

    @classmethod
    def of(
        cls,
        features: Callable[[Ints], Floats],
        targets: PairTargets,
        queries: Queries,
        weight: Floats | None,
        fold_of: Ints,
        n_folds: int,
    ) -> BilinearSums:
        """Add up whole queries in one pass.

        `features` receives row numbers of any shape, and returns the m features z of these rows in
        one more dimension. `fold_of` has the fold of each query.
        """
        symmetric = targets.space.symmetric
        order = queries.gather(np.arange(queries.n_rows))
        v_all = np.ones(queries.n_rows) if weight is None else queries.gather(weight)
        m = features(order[:1]).shape[-1]
        rows, columns = np.triu_indices(m)
        gram = np.zeros((n_folds, len(rows), len(rows)))
        moment, diagonal_gram = np.zeros((n_folds, m, m)), np.zeros((n_folds, m, m))
        diagonal_moment = np.zeros((n_folds, m))
        mass, pair_mass = np.zeros(n_folds), np.zeros(n_folds)
        for inside, valid in _square_blocks(queries, m):
            fold = fold_of[np.searchsorted(queries.offsets, inside[:, 0], side="right") - 1]
            z, v = features(order[inside]), v_all[inside] * valid
            t = targets.matrices(inside, valid)
            weighted = z * v[:, :, None]
            turned = weighted.transpose(0, 2, 1)
            # Z' diag(v) T diag(v) Z and G = Z' diag(v) Z of each query
            products, squares = turned @ (t @ weighted), turned @ z
            flat_squares = squares[:, rows, columns]
            own = np.diagonal(t, axis1=1, axis2=2)
            if symmetric:
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
        return cls(queries.n_queries, mass, pair_mass, gram, moment, diagonal_gram, diagonal_moment)


def solve_pairs(sums: BilinearSums, alpha: float, symmetric: bool) -> Floats:
    """Return the matrix A (m, m), fitted to all folds by ridge regression.

    The penalty is relative to the mean over pairs. In the symmetric case the constant A_00 is free.
    """
    m = sums.moment.shape[1]
    a, b = _free_entries(m, symmetric)
    normal, wanted = _normal_equations(sums.gram.sum(axis=0), sums.moment.sum(axis=0), symmetric)
    total = float(sums.pair_mass.sum()) or 1.0
    theta = solve_ridge(normal / total, wanted / total, alpha * (a + b > 0))
    A = np.zeros((m, m))
    A[a, b] = theta
    A[b, a] = theta if symmetric else -theta
    return A


def solve_documents(sums: BilinearSums, alpha: float) -> Floats:
    """Return w (m,) by ridge regression of t_ii on z_i over the documents; w_0 is free."""
    mass = float(sums.mass.sum()) or 1.0
    gram, moment = sums.diagonal_gram.sum(axis=0), sums.diagonal_moment.sum(axis=0)
    return solve_ridge(gram / mass, moment / mass, alpha * (np.arange(len(moment)) > 0))


def best_penalty(sums: BilinearSums, penalties: Floats) -> float:
    """Choose the penalty of a skew-symmetric A by a cross-validation over the folds.

    Let N theta = w be the normal equations of a fold. The squared error on this fold of
    coefficients theta that were fitted to the other folds is theta' N theta - 2 theta' w, up to a
    constant. No second pass over the data is therefore needed.
    """
    equations = [
        _normal_equations(gram, moment, False)
        for gram, moment in zip(sums.gram, sums.moment, strict=True)
    ]
    normals, wanted = (np.stack(part) for part in zip(*equations, strict=True))
    whole, moment = normals.sum(axis=0), wanted.sum(axis=0)
    errors = np.zeros(len(penalties))
    for k, mass in enumerate(sums.pair_mass):
        rest = (sums.pair_mass.sum() - mass) or 1.0
        # One eigendecomposition of the other folds' equations gives theta for all penalties.
        values, vectors = np.linalg.eigh((whole - normals[k]) / rest)
        turned = vectors.T @ (moment - wanted[k]) / rest
        theta = vectors @ (turned[:, None] / (np.maximum(values, 0.0)[:, None] + penalties))
        errors += (theta * (normals[k] @ theta)).sum(axis=0) - 2.0 * wanted[k] @ theta
    return float(penalties[first_smallest(errors)])


def _free_entries(m: int, symmetric: bool) -> tuple[Ints, Ints]:
    """The entries that determine A: those above the diagonal, and on it if symmetric."""
    return np.triu_indices(m, 0 if symmetric else 1)


def _normal_equations(gram: Floats, moment: Floats, symmetric: bool) -> tuple[Floats, Floats]:
    """The equations of the free entries theta of A.

    Write u_ij = sum_(a, b) theta_ab (z_ia z_jb + sign z_ib z_ja), where sign is 1 for a symmetric A
    and -1 for a skew-symmetric A. With G the Gram matrix of a query, two such terms (a, b) and
    (c, d) have the sum over its pairs 2 (G_ac G_bd + sign G_ad G_bc). The product of a term and the
    targets has the sum M_ab + sign M_ba, where M is `moment`. A diagonal entry of a symmetric A has
    the term z_ia z_ja once, and not twice, so its terms are halved.
    """
    m = len(moment)
    # number[a, b]: where vec, which lists the upper triangle, has G_ab = G_ba
    number = np.zeros((m, m), dtype=np.int64)
    rows, columns = np.triu_indices(m)
    number[rows, columns] = number[columns, rows] = np.arange(len(rows))
    a, b = _free_entries(m, symmetric)
    sign = 1.0 if symmetric else -1.0
    normal = gram[number[a[:, None], a], number[b[:, None], b]]
    normal = 2.0 * (normal + sign * gram[number[a[:, None], b], number[b[:, None], a]])
    wanted = moment[a, b] + sign * moment[b, a]
    if symmetric:
        half = np.where(a == b, 0.5, 1.0)
        normal *= half * half[:, None]
        wanted *= half
    return normal, wanted


def _square_blocks(queries: Queries, m: int) -> Iterator[tuple[Ints, NDArray[np.bool_]]]:
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
