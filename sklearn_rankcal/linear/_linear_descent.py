"""Minimise the objective of a linear model by L-BFGS, in coordinates without units.

The coordinates are scaled by the curvature at the origin. All second derivatives there are about 1,
which gives a tolerance the same meaning for every surrogate, data set and penalty. Convergence does
not depend on the units or correlations of the columns: L-BFGS takes 3 to 6 iterations, where it
took 350 to 840 with z-scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import OptimizeResult, minimize

from sklearn_rankcal.linear._linear_objective import Batch, LinearObjective, QueryBatches
from sklearn_rankcal.utils._numbers import Floats

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
    *,
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
