"""The objective of linear models (a surrogate of linear scores plus a penalty) and its minimum.

L-BFGS minimises it in coordinates that are scaled by the curvature at the origin. All second
derivatives there are about 1, which gives a tolerance the same meaning for every surrogate, data
set and penalty. Convergence does not depend on the units or correlations of the columns: L-BFGS
takes 3 to 6 iterations, where it took 350 to 840 with z-scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from scipy.optimize import OptimizeResult, minimize
from sklearn.utils.validation import check_array
from threadpoolctl import threadpool_limits  # scikit-learn depends on it

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import ranges
from sklearn_rankcal.surrogates import Surrogate
from sklearn_rankcal.targets import RedrawnTargets
from sklearn_rankcal.utils import _features, _memory
from sklearn_rankcal.utils._numbers import Floats, Ints

#: Bytes of a block of rows in float64. A block stays in the processor's cache between the product
#: with the coefficients and the product with the gradient.
_BLOCK_BYTES = 1 << 22


def linear_table(X: Any) -> Any:
    """Check that X is finite and numeric; return an array or a CSR matrix of float32 or float64."""
    return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")


def block_rows(X: Any) -> int:
    """Return the number of rows in a block of a table."""
    return _memory.rows_per_block(8 * max(1, _features.stored_columns(X)), _BLOCK_BYTES)


def row_scores(X: Any, coef: Floats) -> Floats:
    """Compute X coef in float64, with equal scores for equal rows at any position."""
    if sparse.issparse(X):
        return X @ coef
    scores = np.empty(X.shape[0])
    step = block_rows(X)
    for first in range(0, len(scores), step):
        block = np.asarray(X[first : first + step], dtype=np.float64)
        # A matrix product sums the last rows of a block in a different order than earlier rows.
        scores[first : first + step] = np.einsum("ij,j->i", block, coef)
    return scores


class Batch(NamedTuple):
    """Some queries in grouped layout, each with its rows of the table, targets and a weight."""

    rows: slice | Ints
    queries: Queries
    targets: Any
    weight: Floats

    def row_weight(self) -> Floats:
        """The weight of the query of each row."""
        return self.queries.repeat(self.weight)


class QueryBatches:
    """Checked training data, split into runs or lists of queries.

    X is the output of `linear_table`. It is read in float64 blocks and not copied. Targets are in
    row layout. The weight of a query is the mean weight of its rows.
    """

    def __init__(
        self, X: Any, targets: Any, queries: Queries, sample_weight: Floats | None = None
    ) -> None:
        self.X = X
        self.queries = queries
        self._block_rows = block_rows(X)
        if sample_weight is None:
            self.weight = np.ones(queries.n_queries)
        else:
            self.weight = queries.mean(sample_weight)
        self._draw = None
        self.redraws = isinstance(targets, RedrawnTargets)  # whether new targets can be drawn
        if isinstance(targets, RedrawnTargets):
            targets, self._draw = targets
        if isinstance(targets, Preferences):
            if queries.order is not None:
                place = queries.scatter(np.arange(queries.n_rows))
                grouped = Queries(queries.offsets)
                targets = Preferences(
                    grouped, place[targets.winner], place[targets.loser], targets.weight
                )
        else:
            targets = queries.gather(np.asarray(targets, dtype=np.float64))
            if self._draw is not None:
                targets = targets.copy()  # `redraw` writes into it
        self.targets = targets
        self.center: Floats | None = None
        self._of_size: dict[int, Queries] = {}

    @property
    def n_queries(self) -> int:
        return self.queries.n_queries

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def runs(self) -> list[Batch]:
        """Split the queries into runs of consecutive queries with about one block of rows each."""
        sizes = [part.n_queries for _, part in self.queries.chunks(self._block_rows)]
        return [
            self.take(run) for run in np.split(np.arange(self.n_queries), np.cumsum(sizes)[:-1])
        ]

    def take(self, numbers: Ints) -> Batch:
        """Return the queries with these numbers, in this order."""
        starts, sizes = self.queries.offsets[numbers], self.queries.sizes[numbers]
        if len(numbers) == 1:
            part = self._single(int(sizes[0]))
        else:
            part = Queries(np.append(0, np.cumsum(sizes)))
        if (np.diff(numbers) == 1).all():
            places: slice | Ints = slice(int(starts[0]), int(starts[0]) + part.n_rows)
        else:
            places, _ = ranges(self.queries.offsets, numbers)
        order = self.queries.order
        rows = places if order is None else order[places]
        targets = self.targets
        if isinstance(targets, Preferences):
            of_query = targets.pair_offsets
            counts = of_query[numbers + 1] - of_query[numbers]
            pairs, _ = ranges(of_query, numbers)
            shift = np.repeat(part.offsets[:-1] - starts, counts)
            targets = Preferences(
                part,
                targets.winner[pairs] + shift,
                targets.loser[pairs] + shift,
                targets.weight[pairs],
            )
        else:
            targets = targets[places]
        return Batch(rows, part, targets, self.weight[numbers])

    def redraw(self, numbers: Ints) -> None:
        """Replace the targets of some queries by newly drawn ones."""
        assert self._draw is not None
        places, _ = ranges(self.queries.offsets, numbers)
        self.targets[places] = self._draw(numbers)

    def _single(self, size: int) -> Queries:
        """Return one query of this size, cached because sgd uses it in thousands of steps."""
        if size not in self._of_size:
            self._of_size[size] = Queries.single(size)
        return self._of_size[size]

    def read(self, rows: slice | Ints) -> Any:
        """Return rows of the table minus `center` as float64, or as a CSR matrix."""
        part = self.X[rows]
        if sparse.issparse(part):
            return part
        part = np.asarray(part, dtype=np.float64)
        return part if self.center is None else part - self.center

    def blocks(self, batch: Batch) -> Iterator[tuple[slice, slice | Ints]]:
        """Yield, for each block of the batch, its positions in the batch and rows of the table."""
        step, n_rows = self._block_rows, batch.queries.n_rows
        for first in range(0, n_rows, step):
            inside = slice(first, min(first + step, n_rows))
            if isinstance(batch.rows, slice):
                start = batch.rows.start
                yield inside, slice(start + inside.start, start + inside.stop)
            else:
                yield inside, batch.rows[inside]


class Value(NamedTuple):
    """The value and gradient of the objective, and whether all of these numbers are finite."""

    value: float
    of_coef: Floats
    of_intercept: float
    finite: bool


class LinearObjective:
    """f(w, b) = sum over queries of w_q psi(v_q, X_q w + b) + alpha / 2 ||w||^2.

    The surrogate psi must be resolved (`Surrogate.resolve`). `n_jobs` threads share the queries.
    """

    def __init__(
        self, data: QueryBatches, surrogate: Surrogate, alpha: float, n_jobs: int | None = None
    ) -> None:
        self.data = data
        self.surrogate = surrogate
        self.alpha = alpha
        self.fits_intercept = not surrogate.shift_invariant
        self._batches = data.runs()
        n_threads = min(effective_n_jobs(n_jobs), len(self._batches))
        sizes = np.cumsum([batch.queries.n_rows for batch in self._batches])
        edges = np.searchsorted(sizes, sizes[-1] * np.arange(1, n_threads) / n_threads)
        edges = np.unique([0, *edges, len(self._batches)])
        # Each thread sums a fixed run of batches: the sums do not depend on the threads' speed.
        self._shares = [self._batches[first:last] for first, last in pairwise(edges)]

    def evaluate(self, coef: Floats, intercept: float) -> Value:
        """Compute the value and the gradient."""
        if len(self._shares) == 1:
            parts = [_add(self.data, self.surrogate, self._shares[0], coef, intercept)]
        else:
            # Each thread uses one processor for its matrix products.
            with threadpool_limits(limits=1, user_api="blas"):
                parts = Parallel(n_jobs=len(self._shares), prefer="threads")(
                    delayed(_add)(self.data, self.surrogate, share, coef, intercept)
                    for share in self._shares
                )
        with np.errstate(over="ignore", invalid="ignore"):
            value = sum(part[0] for part in parts) + self.alpha / 2 * float(coef @ coef)
            slopes = np.sum([part[1] for part in parts], axis=0) + self.alpha * coef
            of_intercept = sum(part[2] for part in parts)
            finite = bool(np.isfinite(value + of_intercept) and np.isfinite(slopes).all())
        return Value(value, slopes, of_intercept, finite)

    def at_constant(self, intercept: float) -> tuple[float, float]:
        """Compute the value and its derivative for equal scores, without matrix products."""
        value, slope = 0.0, 0.0
        for batch in self._batches:
            scores = np.full(batch.queries.n_rows, intercept)
            own, gradient, _ = self.surrogate._derivatives(
                batch.targets, scores, batch.queries, 1, None
            )
            value += float(batch.weight @ own)
            slope += float(batch.row_weight() @ gradient)
        return value, slope

    def curvature(self, coef: Floats, intercept: float) -> Iterator[tuple[Batch, Floats]]:
        """Yield batches, each with the weighted second derivative by the score of each row.

        Where the second derivatives are all 0, use the absolute slopes instead.
        """
        for batch in self._batches:
            if coef.any():
                blocks = self.data.blocks(batch)
                scores = np.concatenate([self.data.read(rows) @ coef for _, rows in blocks])
            else:
                scores = np.zeros(batch.queries.n_rows)
            _, gradient, bend = self.surrogate._derivatives(
                batch.targets, scores + intercept, batch.queries, 2, 1
            )
            if bend is not None:
                bend = np.where(np.isfinite(bend), np.maximum(bend, 0.0), 0.0)
            if bend is None or not bend.any():
                bend = np.abs(gradient)
            yield batch, batch.row_weight() * bend


def _add(
    data: QueryBatches, surrogate: Surrogate, batches: list[Batch], coef: Floats, intercept: float
) -> tuple[float, Floats, float]:
    """Sum the values and gradients of some batches, without the penalty."""
    value, of_coef, of_intercept = 0.0, np.zeros(len(coef)), 0.0
    for batch in batches:
        own, slopes, shift = batch_gradient(data, surrogate, batch, coef, intercept)
        value += own
        of_coef += slopes
        of_intercept += shift
    return value, of_coef, of_intercept


def batch_gradient(
    data: QueryBatches, surrogate: Surrogate, batch: Batch, coef: Floats, intercept: float
) -> tuple[float, Floats, float]:
    """Return the weighted sum of a surrogate over a batch, and its derivatives by w and b.

    The results are infinite or NaN if exponentials overflow.
    """
    blocks = list(data.blocks(batch))
    # Read rows that fit in one block only once for both products.
    table = data.read(batch.rows) if len(blocks) == 1 else None
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if table is not None:
            scores = table @ coef + intercept
        else:
            scores = np.concatenate([data.read(rows) @ coef for _, rows in blocks]) + intercept
        if not np.isfinite(scores).all():
            return np.inf, np.full(len(coef), np.nan), np.nan
        value, gradient, _ = surrogate._derivatives(batch.targets, scores, batch.queries, 1, 1)
        weighted = batch.row_weight() * gradient
        if table is not None:
            of_coef = table.T @ weighted
        else:
            of_coef = np.sum([data.read(rows).T @ weighted[b] for b, rows in blocks], axis=0)
        return float(batch.weight @ value), of_coef, float(weighted.sum())


#: Coefficients and intercept.
Point = tuple[Floats, float]
Function = Callable[[Floats], tuple[float, Floats]]
#: Called with the iteration number, the value and the largest entry of the scaled gradient.
Progress = Callable[[int, float, float], None]
#: Relative changes of the objective below this size are lost in rounding.
_ROUNDING = 64 * np.finfo(np.float64).eps
#: Tolerance and maximum number of iterations for the intercept of constant scores.
_INTERCEPT_TOLERANCE, _INTERCEPT_ITERATIONS = 1e-6, 100
#: A trial point is replaced if its value exceeds that of the iterate by more than this factor times
#: the decrease along the tangent.
_STEEP = 100.0
#: Correlations are estimated for up to this many columns, from about this many rows per column.
_MAX_CORRELATED, _ROWS_PER_COLUMN = 512, 200


def find_origin(
    objective: LinearObjective, alpha: float, origin: Point | None = None
) -> tuple[Point, Coordinates]:
    """Return the starting point and the coordinates defined by the curvature there.

    By default, the origin has zero coefficients and the best intercept. `alpha` is added to the
    second derivative for each coefficient. Raises ValueError if the objective is not finite at the
    origin.
    """
    if origin is None:
        coef = np.zeros(objective.data.n_features)
        origin = coef, _best_constant(objective) if objective.fits_intercept else 0.0
    if not objective.evaluate(*origin).finite:
        raise ValueError(
            f"{type(objective.surrogate).__name__} or its gradient is not finite for equal scores. "
            "Scale the labels, the weights or the columns of X."
        )
    return origin, make_coordinates(objective, *origin, alpha)


def _best_constant(objective: LinearObjective) -> float:
    """Find the best intercept when all coefficients are 0."""
    base, unit = objective.at_constant(0.0)
    if unit == 0 or not np.isfinite(base):
        return 0.0

    def scaled(x: Floats) -> tuple[float, Floats]:
        value, slope = objective.at_constant(float(x[0]))
        return (value - base) / abs(unit), np.array([slope / abs(unit)])

    found = minimize_smooth(
        scaled,
        np.zeros(1),
        max_iter=_INTERCEPT_ITERATIONS,
        gradient_tolerance=_INTERCEPT_TOLERANCE,
        value_tolerance=_ROUNDING,
    )
    return float(found.x[0])


def descend(
    objective: LinearObjective,
    origin: Point,
    coordinates: Coordinates,
    start: Point,
    tol: float,
    max_iter: int,
    progress: Progress | None = None,
) -> tuple[Point, OptimizeResult]:
    """Minimise the objective from a start until every scaled slope is at most `tol`.

    `coordinates` and the unit of the gradient are taken at the origin.
    """

    def scaled_gradient(point: Point) -> tuple[float, Floats]:
        found = objective.evaluate(*point)
        slopes = coordinates.gradient(found.of_coef, found.of_intercept)
        return (found.value, slopes) if found.finite else (np.inf, np.full_like(slopes, np.nan))

    base, slopes = scaled_gradient(origin)
    unit = float(np.linalg.norm(slopes[: objective.data.n_features]))
    # The objective can decrease by at most about unit^2 / 2.
    if not unit**2 > _ROUNDING * abs(base):
        return start, OptimizeResult(nit=0, success=True)

    def scaled(x: Floats) -> tuple[float, Floats]:
        value, slopes = scaled_gradient(coordinates.point(x * unit))
        return (value - base) / unit**2, slopes / unit

    def shown(number: int, value: float, slope: float) -> None:
        if progress is not None:
            progress(number, base + value * unit**2, slope)

    found = minimize_smooth(
        scaled,
        coordinates.coordinates(*start) / unit,
        max_iter=max_iter,
        gradient_tolerance=tol,
        value_tolerance=_ROUNDING * max(1.0, abs(base) / unit**2),
        progress=shown,
    )
    return coordinates.point(found.x * unit), found


class _LineGuard:
    """A function that stays moderate on the segment from the last iterate.

    Where the function is infinite, NaN or very large, the line search of L-BFGS would compute NaN
    or far too small a step. The guard returns a parabola along the segment instead. The parabola
    has the slope of the function at the iterate and its minimum at a tenth of the step. Its value
    at the trial point is above the iterate's, which makes L-BFGS reject the point.
    """

    def __init__(self, function: Function, start: Floats) -> None:
        self.function = function
        self.iterate = start
        self.value, self.slope = function(start)
        self._latest = (start, self.value, self.slope)

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        if np.array_equal(x, self.iterate):
            return self.value, self.slope
        value, slope = self.function(x)
        fall = abs(float(self.slope @ (x - self.iterate)))
        wild = not (np.isfinite(value) and np.isfinite(slope).all())
        if wild or value - self.value > _STEEP * fall > 0:
            return self.value + 4 * fall, -9 * self.slope
        self._latest = (x.copy(), value, slope)
        return value, slope

    def accept(self, x: Floats) -> None:
        """Record that L-BFGS moved to x, the point evaluated last."""
        if np.array_equal(x, self._latest[0]):
            self.iterate, self.value, self.slope = self._latest

    def largest_slope(self) -> float:
        return float(np.abs(self.slope).max(initial=0.0))


def minimize_smooth(
    function: Function,
    start: Floats,
    *,
    max_iter: int,
    gradient_tolerance: float,
    value_tolerance: float,
    progress: Progress | None = None,
) -> OptimizeResult:
    """Minimise a function that is finite at the start but may be infinite or NaN elsewhere.

    Stop when no entry of the gradient is above `gradient_tolerance`, or when an iteration lowers
    the value by less than `value_tolerance` (times the absolute value, if that is above 1).
    """
    guard = _LineGuard(function, start)
    count = 0

    def after_iteration(x: Floats) -> None:
        nonlocal count
        count += 1
        guard.accept(x)
        if progress is not None:
            progress(count, guard.value, guard.largest_slope())

    result = minimize(
        guard,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=after_iteration,
        options={
            "maxiter": max_iter,
            "maxfun": 20 * max_iter + 100,
            "gtol": gradient_tolerance,
            "ftol": value_tolerance,
        },
    )
    # The line search also stops when rounding hides a further decrease: check the gradient.
    result.success |= guard.largest_slope() <= gradient_tolerance
    result.x = guard.iterate
    return result


# ---------------------------------------------------------------- the coordinates


class Coordinates(NamedTuple):
    """The map w = T y from coordinates to coefficients, where T'HT = 1.

    H approximates the second derivatives of the objective, including the penalty. T'T is diagonal
    too: the penalty is a sum over the coordinates. If there is an intercept, the last coordinate is
    the intercept of the centred columns.

    T and its inverse are None if T is diagonal.
    """

    center: Floats  # weighted means of the columns; 0 without an intercept
    intercept: float | None  # the second derivative by the intercept; None without an intercept
    squares: Floats  # the diagonal of T'T
    matrix: Floats | None
    inverse: Floats | None

    def point(self, x: Floats) -> Point:
        """Return the coefficients and the intercept that have these coordinates."""
        y = x[: len(self.squares)]
        coef = np.sqrt(self.squares) * y if self.matrix is None else self.matrix @ y
        if self.intercept is None:
            return coef, 0.0
        return coef, float(x[-1] / np.sqrt(self.intercept)) - float(self.center @ coef)

    def coordinates(self, coef: Floats, intercept: float) -> Floats:
        """Return the coordinates of coefficients and an intercept."""
        y = coef / np.sqrt(self.squares) if self.inverse is None else self.inverse @ coef
        if self.intercept is None:
            return y
        return np.append(y, (intercept + float(self.center @ coef)) * np.sqrt(self.intercept))

    def gradient(self, of_coef: Floats, of_intercept: float) -> Floats:
        """Convert derivatives with respect to w and b to derivatives in the coordinates."""
        slopes = of_coef - self.center * of_intercept
        slopes = np.sqrt(self.squares) * slopes if self.matrix is None else self.matrix.T @ slopes
        if self.intercept is None:
            return slopes
        return np.append(slopes, of_intercept / np.sqrt(self.intercept))


def make_coordinates(
    objective: LinearObjective, coef: Floats, intercept: float, penalty: float
) -> Coordinates:
    """Compute the coordinates from the curvature of an objective at a point.

    Mixed second derivatives of two scores are ignored. Columns are centred on all rows if there is
    an intercept, and within each query otherwise. The sums of squares use all rows, plus `penalty`.
    With up to 512 columns, correlations are estimated from about 200 rows per column. Raises
    ValueError if the square of a column or the curvature overflows.
    """
    data, fits_intercept = objective.data, objective.fits_intercept
    n_features = data.n_features
    first, second, total = np.zeros(n_features), np.zeros(n_features), 0.0
    products, n_sampled = np.zeros((0, 0)), 0
    sampled_first, sampled_total = np.zeros(n_features), 0.0
    correlated = 1 < n_features <= _MAX_CORRELATED
    if correlated:
        products = np.zeros((n_features, n_features))
    every = max(1, data.queries.n_rows // (_ROWS_PER_COLUMN * n_features))
    for number, (batch, bend) in enumerate(objective.curvature(coef, intercept)):
        total += float(bend.sum())
        sampled = correlated and number % every == 0
        with np.errstate(over="ignore", invalid="ignore"):
            sums, squares = _moments(data, batch, bend, not fits_intercept, sampled)
            if sampled:
                products += squares
                sampled_first += sums
                sampled_total += float(bend.sum())
                n_sampled += batch.queries.n_rows
                squares = np.diagonal(squares)
            first += sums
            second += squares
    if not (np.isfinite(total) and np.isfinite(second).all() and np.isfinite(products).all()):
        raise ValueError(
            "The squares of a column of X, times the curvature of the surrogate, are infinite. "
            "Scale the columns or the labels."
        )
    center = np.zeros(n_features)
    if fits_intercept and total > 0:
        center = first / total
        second = np.maximum(second - center * first, 0.0)
        if sampled_total > 0:
            products -= np.outer(sampled_first / sampled_total, sampled_first)
    by_intercept = (total or 1.0) if fits_intercept else None
    if not correlated:
        return Coordinates(center, by_intercept, 1.0 / (second + penalty), None, None)
    matrix, inverse, squares = _diagonalise(products, second, penalty, n_sampled)
    return Coordinates(center, by_intercept, squares, matrix, inverse)


def _diagonalise(
    products: Floats, second: Floats, penalty: float, n_rows: int
) -> tuple[Floats, Floats, Floats]:
    """Return T, its inverse and the diagonal of T'T.

    H combines the correlations of `products` with the diagonal `second`, plus the penalty.
    """
    n_features = len(second)
    size = np.sqrt(np.maximum(np.diagonal(products), 0.0))
    inverse_size = np.divide(1.0, size, out=np.zeros(n_features), where=size > 0)
    correlations = products * inverse_size * inverse_size[:, None]
    # Estimates from few rows have directions without any variance: shrink the correlations towards
    # 0, strongly if there are few rows and hardly at all if there are many.
    correlations *= 1.0 - (n_features / (n_features + n_rows)) ** 2
    np.fill_diagonal(correlations, 1.0)
    # Scale the diagonal to 1.
    unit = np.sqrt(second + penalty)
    share = np.sqrt(second) / unit
    scaled = correlations * share * share[:, None]
    np.fill_diagonal(scaled, 1.0)
    values, vectors = np.linalg.eigh(scaled)
    roots = np.sqrt(np.maximum(values, 1e-10))  # rounding can leave small negative numbers
    matrix = (vectors / roots) / unit[:, None]
    inverse = (vectors * roots).T * unit
    # Rotate the coordinates to make the penalty diagonal.
    _, rotation = np.linalg.eigh(matrix.T @ matrix)
    matrix = matrix @ rotation
    return matrix, rotation.T @ inverse, np.square(matrix).sum(axis=0)


def _moments(
    data: QueryBatches, batch: Batch, bend: Floats, within: bool, products: bool
) -> tuple[Floats, Floats]:
    """Return the weighted sums of the columns, and the sums of their squares or all products.

    If `within`, columns are centred in each query by their weighted means.
    """
    queries, blocks = batch.queries, list(data.blocks(batch))
    mass = queries.reduce(np.add, bend)
    inverse = np.divide(1.0, mass, out=np.zeros(len(mass)), where=mass > 0)
    if within and len(blocks) == 1 and not sparse.issparse(data.X):
        block = data.read(batch.rows)
        means = queries.reduce(np.add, bend[:, None] * block) * inverse[:, None]
        return np.zeros(data.n_features), _second(block - queries.repeat(means), bend, products)
    first: Any = 0.0
    second: Any = 0.0
    of_query: Any = 0.0
    # Subtract the squares of the means at the end, which is less accurate.
    for inside, rows in blocks:
        block = data.read(rows)
        first = first + block.T @ bend[inside]
        second = second + _second(block, bend[inside], products)
        if within:
            code = np.repeat(np.arange(queries.n_queries), queries.sizes)[inside]
            place = np.arange(len(code))
            shape = (queries.n_queries, len(code))
            of_query = of_query + sparse.csr_array((bend[inside], (code, place)), shape) @ block
    if within:
        second = second - _second(of_query, inverse, products)
        if not products:
            second = np.maximum(second, 0.0)
    return first, second


def _second(table: Any, weight: Floats, products: bool) -> Floats:
    """Return the weighted sums of the squares of columns, or of all pairwise products."""
    if sparse.issparse(table):
        if products:
            return (table.T @ table.multiply(weight[:, None]).tocsr()).toarray()
        return table.multiply(table).T @ weight
    if products:
        return table.T @ (weight[:, None] * table)
    return weight @ np.square(table)
