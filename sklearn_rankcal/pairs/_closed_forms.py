"""Models of pairs that are fitted in closed form, from sums over all pairs of every query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from sklearn_rankcal.models._held_out import query_folds
from sklearn_rankcal.models._model import PairwiseModel, Training
from sklearn_rankcal.models._sums import Sums
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS, SYMMETRIC_PAIRS, PairTargets, RelevanceDifferences, Space
from sklearn_rankcal.utils._features import numeric_table
from sklearn_rankcal.utils._memory import CACHE_BYTES, check_memory, row_blocks, rows_per_block
from sklearn_rankcal.utils._messages import check_count, check_flag, check_number
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, first_smallest

# alpha="auto" without folds is this number divided by the number of training queries
_PENALTY_TIMES_QUERIES = 300
_N_FOLDS = 5  # folds of queries for alpha="auto"
_PENALTIES = 10.0 ** np.arange(-6, 4.5, 0.5)


def solve_ridge(gram: Floats, moment: Floats, penalty: Any) -> Floats:
    """Minimise w'Gw - 2 w'm + sum_k penalty_k w_k^2 over w. The Gram matrix G is overwritten.

    The gradient is zero if (G + diag(penalty)) w = m. The constant 1e-12 keeps the matrix positive
    definite if the penalty is 0 and columns are linearly dependent.
    """
    gram[np.diag_indices_from(gram)] += penalty + 1e-12
    return solve(gram, moment, assume_a="pos")


@dataclass(frozen=True, eq=False)
class PairSums(Sums):
    """The normal equations of linear scores fitted to all pairs of every query.

    The sums are over all ordered pairs (i, j) of documents of a query. They include i = j, so a
    document of weight 2 is equivalent to two copies of it.
    """

    # sums of v_i over documents and of v_i v_j over pairs, where v_i is the weight of document i
    mass: float
    pair_mass: float
    gram: Floats  # sum of v_i v_j (x_i - x_j)(x_i - x_j)', of shape (n_features, n_features)
    moment: Floats  # sum of v_i v_j (x_i - x_j) t_ij, or 0 without targets
    total: Floats  # sum of v_i x_i over the documents
    largest: Floats  # largest absolute value in each column

    _maxima: ClassVar[tuple[str, ...]] = ("largest",)

    @classmethod
    def of(
        cls,
        X: NDArray[Any],
        targets: PairTargets | None,
        queries: Queries,
        weight: Floats | None = None,
    ) -> PairSums:
        """Sum over whole queries in O(n d^2) time, without forming the pairs."""
        d = X.shape[1]
        v_all = np.ones(queries.n_rows) if weight is None else weight
        # b_i = sum_j v_j t_ij
        sums = None if targets is None else targets.row_sums(weight)
        gram, moment = np.zeros((d, d)), np.zeros(d)
        total, largest = np.zeros(d), np.zeros(d)
        mass = pair_mass = 0.0
        for rows, part in queries.chunks(rows_per_block(8 * d, CACHE_BYTES)):
            block = X[rows].astype(np.float64)
            v = v_all[rows]
            # V = sum_i v_i and sum_i v_i x_i of each query
            query_mass = part.sum(v)
            sum_x = part.sum(block if weight is None else block * v[:, None])
            total += sum_x.sum(axis=0)
            np.maximum(largest, np.abs(block).max(axis=0), out=largest)
            mass += float(v.sum())
            pair_mass += float((query_mass**2).sum())
            # Subtract the weighted mean of the query, so that sum_i v_i x_i = 0. No difference
            # x_i - x_j changes, and the mixed terms of the sums below vanish.
            block -= part.repeat(sum_x / np.where(query_mass > 0, query_mass, 1.0)[:, None])
            # sum_ij v_i v_j (x_i - x_j) t_ij = 2 sum_i v_i x_i b_i, as t_ij = -t_ji
            if sums is not None:
                moment += 2.0 * (v * sums[rows]) @ block
            # sum_ij v_i v_j (x_i - x_j)(x_i - x_j)' = 2 V sum_i v_i x_i x_i'
            block *= np.sqrt(2.0 * v * part.repeat(query_mass))[:, None]
            gram += block.T @ block
        return cls(mass, pair_mass, gram, moment, total, largest)

    def scale(self) -> Floats:
        """Return the root mean square of the differences in each column; infinity if all are 0.

        Division by infinity makes the coefficient of such a column 0. The computed spread of a
        column that is constant within queries is a rounding error, and counts as 0.
        """
        spread = np.sqrt(np.diagonal(self.gram) / (self.pair_mass or 1.0))
        return np.where(spread > 1e-12 * self.largest, spread, np.inf)

    def scaled_gram(self, scale: Floats) -> Floats:
        """Return the mean products of the differences, each column divided by its scale."""
        return self.gram / (self.pair_mass or 1.0) / scale / scale[:, None]


class PairwiseRidge(PairwiseModel):
    """Ridge regression of pairwise targets on differences of features.

    The prediction for a pair is u_ij = s(x_i) - s(x_j), with linear scores s(x) = w'x. A difference
    of scores cannot represent a cycle of preferences.

    The slopes w minimise the mean of (w'(x_i - x_j) - t_ij)^2 over all ordered pairs (i, j),
    including i = j, plus ``alpha * sum_k (w_k sd_k)^2``, where sd_k is the root mean square of the
    differences in column k.

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
    Fitting does not form pairs. It takes O(n d^2) time for n rows of d columns, and O(d^2) memory
    plus a block of rows.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.models import PairwiseRidge
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> ranker = CalibratedRanker(PairwiseRidge(), loss="pd")
    >>> ranker = ranker.fit(data.X, data.y, groups=data.groups)
    >>> ranker.model_.coef_.shape == (data.X.shape[1],)
    True

    Two queries can be summed separately, for example on two machines:

    >>> import numpy as np
    >>> from sklearn_rankcal.models import Training
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
        """Fit the slopes to a dense table of finite numbers and antisymmetric `PairTargets`.

        The weight of a pair is the product of the weights of its documents. Only ratios of weights
        matter.
        """
        return self.solve(self.sums(training))

    def sums(self, training: Training) -> PairSums:
        """Compute the normal equations of some queries for `solve`. Add them with ``+``."""
        check_number(self.alpha, "alpha", "[0, inf)")
        table = numeric_table(training.X)
        return PairSums.of(table, training.targets, training.queries, training.weight)

    def solve(self, sums: PairSums) -> Self:
        """Fit the slopes from the sums of all queries."""
        scale = sums.scale()
        moment = sums.moment / (sums.pair_mass or 1.0) / scale
        self.coef_ = solve_ridge(sums.scaled_gram(scale), moment, self.alpha) / scale
        return self

    def own_coefficients(self) -> Floats:
        """Return the slopes."""
        return self.coef_

    def predict_scores(self, X: Any, queries: Queries) -> Floats:
        """Predict the score w'x of each document.

        Sorting by these scores decodes the predictions of all pairs, in O(n d + n log r) time for n
        documents in queries of r documents.
        """
        table = numeric_table(X)
        return np.concatenate([table[rows] @ self.coef_ for rows in row_blocks(*table.shape)])

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict s(x_i) - s(x_j) for all pairs of each query."""
        return score_differences(self.predict_scores(X, queries), queries).flat()


def score_differences(scores: Floats, queries: Queries) -> PairTargets:
    """Return the pairwise targets s_i - s_j, given a score for each row."""
    return RelevanceDifferences(scores, queries, "graded", np.ones(queries.n_queries))


class BilinearPairs(PairwiseModel):
    """Model of pairs: a bilinear form u_ij = z_i' A z_j, fitted to all pairs in closed form.

    Here z = [1, phi(x)], and phi(x) are principal components of the columns, scaled to mean square
    1 of their differences within queries. For preferences, A is skew-symmetric, and can represent
    cycles. For average precision, A is symmetric. Because of the constant in z, differences (or
    sums) of linear scores are a special case. For other features, put a transformer such as
    `Nystroem` before the ranker in a pipeline.

    Parameters
    ----------
    n_components : int, default=16
        Largest number of principal components.
    symmetric : bool, default=False
        Whether the space is `targets.SYMMETRIC_PAIRS`, as for ``loss="map"``. A is then fitted to
        pairs i != j only, and u_ii = z_i'w is fitted separately, because targets with i = j depend
        on features in another way.
    alpha : "auto" or float, default="auto"
        Penalty on the squared entries of A, relative to the mean over pairs, and of w, relative to
        the mean over documents. If `symmetric`, constants are not penalised. ``"auto"`` chooses the
        penalty with the smallest squared error by cross-validation with five folds of queries. If
        `symmetric`, or with fewer than 10 queries, it is 300 divided by the number of training
        queries.

    Attributes
    ----------
    alpha_ : float
        The penalty that was used.
    matrix_ : ndarray of shape (m + 1, m + 1)
        A, where m is the number of features phi(x).
    diagonal_ : ndarray of shape (m + 1,) or None
        The coefficients w. None unless `symmetric`.

    Notes
    -----
    Fitting takes O(n m^2 + Q m^4 + m sum_q r_q^2 + m^6) time for Q queries of r_q documents, plus
    O(n m^4) if symmetric, and O(m^4) memory plus a block of queries. m = 32 is feasible, but
    m = 100 is too large.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.models import BilinearPairs
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> ranker = CalibratedRanker(BilinearPairs(n_components=4), loss="pd")
    >>> ranker.fit(data.X, data.y, groups=data.groups).model_.matrix_.shape
    (5, 5)
    """

    _center: Floats
    _axes: Floats

    def __init__(
        self, *, n_components: int = 16, symmetric: bool = False, alpha: str | float = "auto"
    ) -> None:
        self.n_components = n_components
        self.symmetric = symmetric
        self.alpha = alpha

    @property
    def space(self) -> Space:  # type: ignore[override]
        """`targets.SYMMETRIC_PAIRS` if `symmetric`, else `targets.PAIRS`."""
        return SYMMETRIC_PAIRS if self.symmetric else PAIRS

    def fit(self, training: Training) -> Self:
        """Fit A and, if symmetric, w, to targets with the symmetry of the model.

        For the table and the weights, see `PairwiseRidge.fit`. In the fit of w, document i has the
        weight v_i, not v_i^2.
        """
        self.set_features(self.spread(training))
        n_folds = self.n_folds(training.queries.n_queries)
        folds = query_folds(numeric_table(training.X), training.queries, n_folds)
        return self.solve(self.sums(training, folds, n_folds))

    def spread(self, training: Training) -> PairSums:
        """Compute sums over some queries for `set_features`. Add them with ``+``."""
        if self.alpha != "auto":
            check_number(self.alpha, "alpha", "[0, inf)", also="'auto' or")
        check_flag(self.symmetric, "symmetric")
        check_count(self.n_components, "n_components")
        return PairSums.of(numeric_table(training.X), None, training.queries, training.weight)

    def set_features(self, spread: PairSums) -> Self:
        """Set phi to the principal components of all queries, whose `spread` sums were added."""
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
        """Return the number of folds that choose the penalty: 1 without cross-validation."""
        chosen = self.alpha == "auto" and not self.symmetric and n_queries >= 2 * _N_FOLDS
        return _N_FOLDS if chosen else 1

    def sums(self, training: Training, folds: Ints | None = None, n_folds: int = 1) -> BilinearSums:
        """Compute sums over some queries for `solve`, after `set_features`. Add them with ``+``.

        `folds` has the fold of each query, from 0 to ``n_folds - 1``; None means one fold. Queries
        with equal documents should share a fold.
        """
        if folds is None:
            folds = np.zeros(training.queries.n_queries, dtype=np.int64)
        table = numeric_table(training.X)
        return BilinearSums.of(
            lambda rows: self._features(table, rows),
            training.targets,
            training.queries,
            training.weight,
            folds,
            n_folds,
        )

    def solve(self, sums: BilinearSums) -> Self:
        """Choose the penalty, and fit the coefficients from the sums of all queries."""
        if len(sums.mass) > 1:
            self.alpha_ = best_penalty(sums, _PENALTIES)
        elif self.alpha == "auto":
            self.alpha_ = _PENALTY_TIMES_QUERIES / sums.n_queries
        else:
            self.alpha_ = float(self.alpha)
        self.matrix_ = solve_pairs(sums, self.alpha_, self.symmetric)
        self.diagonal_ = solve_documents(sums, self.alpha_) if self.symmetric else None
        return self

    def _features(self, table: NDArray[Any], rows: Ints) -> Floats:
        """Compute the features z of rows of the table, of shape ``(*rows.shape, m + 1)``."""
        listed = rows.reshape(-1)
        z = np.ones((len(listed), self._axes.shape[1] + 1))
        for some in row_blocks(len(listed), table.shape[1]):
            z[some, 1:] = (table[listed[some]] - self._center) @ self._axes
        return z.reshape(*rows.shape, -1)

    def predict_scores(self, X: Any, queries: Queries) -> Floats | None:
        """Return zeros if all predictions are 0, and None otherwise."""
        return None if self.symmetric or self.matrix_.any() else np.zeros(queries.n_rows)

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict u_ij for the pairs i < j of each query, or i <= j if symmetric."""
        return _BilinearForm(self, X, queries).flat()


class _BilinearForm(PairTargets):
    """Predictions of a fitted model, computed for a few queries at a time."""

    def __init__(self, model: BilinearPairs, X: Any, queries: Queries) -> None:
        super().__init__(queries)
        self.space = model.space
        self._model = model
        self._table = numeric_table(X)
        self._order = queries.gather(np.arange(queries.n_rows))

    def matrices(self, inside: Ints, valid: Bools) -> Floats:
        z = self._model._features(self._table, self._order[inside])
        form = z @ self._model.matrix_ @ z.transpose(0, 2, 1)
        if self._model.diagonal_ is not None:
            place = np.arange(inside.shape[1])
            form[:, place, place] = z @ self._model.diagonal_
        return form


# ---------------------------------------------------------------- the normal equations


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
        """Sum over whole queries in one pass.

        `features` receives row numbers of any shape, and returns their m features z in a new last
        dimension. `fold_of` has the fold of each query.
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

    The penalty is relative to the mean over pairs. A symmetric A has no penalty on A_00.
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
    """Return w (m,) by ridge regression of t_ii on z_i, without penalty on w_0."""
    mass = float(sums.mass.sum()) or 1.0
    gram, moment = sums.diagonal_gram.sum(axis=0), sums.diagonal_moment.sum(axis=0)
    return solve_ridge(gram / mass, moment / mass, alpha * (np.arange(len(moment)) > 0))


def best_penalty(sums: BilinearSums, penalties: Floats) -> float:
    """Choose the penalty of a skew-symmetric A by cross-validation.

    Let N theta = w be the normal equations of a fold. The squared error on this fold of
    coefficients theta is theta' N theta - 2 theta' w, up to a constant, so cross-validation needs
    no second pass over the data.
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
        # one eigendecomposition gives theta for all penalties
        values, vectors = np.linalg.eigh((whole - normals[k]) / rest)
        turned = vectors.T @ (moment - wanted[k]) / rest
        theta = vectors @ (turned[:, None] / (np.maximum(values, 0.0)[:, None] + penalties))
        errors += (theta * (normals[k] @ theta)).sum(axis=0) - 2.0 * wanted[k] @ theta
    return float(penalties[first_smallest(errors)])


def _free_entries(m: int, symmetric: bool) -> tuple[Ints, Ints]:
    """Return the free entries of A: above the diagonal, and on it if symmetric."""
    return np.triu_indices(m, 0 if symmetric else 1)


def _normal_equations(gram: Floats, moment: Floats, symmetric: bool) -> tuple[Floats, Floats]:
    """Return the normal equations of the free entries theta of A.

    u_ij = sum_(a, b) theta_ab (z_ia z_jb + sign z_ib z_ja), where sign is 1 for a symmetric A and
    -1 for a skew-symmetric A. Let G be the Gram matrix of a query. The sum over its pairs of the
    product of the terms (a, b) and (c, d) is 2 (G_ac G_bd + sign G_ad G_bc). The sum of the product
    of a term and the targets is M_ab + sign M_ba, where M is `moment`. A diagonal entry of a
    symmetric A has the term z_ia z_ja only once, so its terms are halved.
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


def _square_blocks(queries: Queries, m: int) -> Iterator[tuple[Ints, Bools]]:
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
