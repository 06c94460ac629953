"""Minimise the objective of a linear model by L-BFGS, in coordinates without units.

In the coordinates of the curvature at the origin, all second derivatives are about 1, so that a
tolerance means the same for every surrogate, data set and penalty.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from sklearn_rankcal.linear._linear_metric import Metric, Point, make_metric
from sklearn_rankcal.linear._linear_objective import LinearObjective

Floats = NDArray[np.float64]
Function = Callable[[Floats], tuple[float, Floats]]
#: Called with the number of an iteration, the value and the largest entry of the scaled gradient.
Progress = Callable[[int, float, float], None]
#: Rounding hides a relative change of the objective of this size.
_ROUNDING = 64 * np.finfo(np.float64).eps
#: How exactly the intercept of constant scores is found, and in how many iterations.
_INTERCEPT_TOLERANCE, _INTERCEPT_ITERATIONS = 1e-6, 100
#: A trial point is replaced if its value is this many times farther above that of the iterate than
#: the tangent falls.
_STEEP = 100.0


def find_origin(
    objective: LinearObjective, alpha: float, origin: Point | None = None
) -> tuple[Point, Metric]:
    """Return the point to start from, and the coordinates that the curvature there defines.

    The origin is by default coefficients of 0, with the best intercept. `alpha` is added to the
    curvature by each coefficient. If the objective is not finite there, a ValueError is raised.
    """
    if origin is None:
        coef = np.zeros(objective.data.n_features)
        origin = coef, _best_constant(objective) if objective.fits_intercept else 0.0
    if not objective.evaluate(*origin).finite:
        raise ValueError(
            f"{type(objective.surrogate).__name__} or its gradient is not finite for equal scores. "
            "Scale the labels, the weights or the columns of X."
        )
    return origin, make_metric(objective, *origin, alpha)


def _best_constant(objective: LinearObjective) -> float:
    """Find the best intercept where all coefficients are 0."""
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
    metric: Metric,
    start: Point,
    *,
    tol: float,
    max_iter: int,
    progress: Progress | None = None,
) -> tuple[Point, OptimizeResult]:
    """Minimise the objective from a start, until no entry of the scaled gradient is above `tol`.

    `metric` and the unit of the gradient are those at the origin.
    """

    def scaled_gradient(point: Point) -> tuple[float, Floats]:
        found = objective.evaluate(*point)
        slopes = metric.gradient(found.of_coef, found.of_intercept)
        return (found.value, slopes) if found.finite else (np.inf, np.full_like(slopes, np.nan))

    base, slopes = scaled_gradient(origin)
    unit = float(np.linalg.norm(slopes[: objective.data.n_features]))
    # The objective cannot fall by more than about unit^2 / 2.
    if not unit**2 > _ROUNDING * abs(base):
        return start, OptimizeResult(nit=0, success=True)

    def scaled(x: Floats) -> tuple[float, Floats]:
        value, slopes = scaled_gradient(metric.point(x * unit))
        return (value - base) / unit**2, slopes / unit

    def shown(number: int, value: float, slope: float) -> None:
        if progress is not None:
            progress(number, base + value * unit**2, slope)

    found = minimize_smooth(
        scaled,
        metric.coordinates(*start) / unit,
        max_iter=max_iter,
        gradient_tolerance=tol,
        value_tolerance=_ROUNDING * max(1.0, abs(base) / unit**2),
        progress=shown,
    )
    return metric.point(found.x * unit), found


class _LineGuard:
    """A function whose values are moderate on the segment from the last iterate.

    Where the function is infinite, NaN or very large, the line search of L-BFGS would compute NaN,
    or a step that is far too small. There, a parabola along the segment replaces it, which falls
    like the function at the iterate, and has its minimum at a tenth of the step. It lies above the
    iterate at the trial point, so that this point is never accepted.
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
        """Note that L-BFGS moved to x, which is the point that was evaluated last."""
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
    """Minimise a function, which may be infinite or NaN, from a start at which it is finite.

    The iterations end when no entry of the gradient is above `gradient_tolerance`, or when one
    lowers the value by less than `value_tolerance`, times the value if that is above 1.
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
    # The line search also ends where rounding hides a further fall. The gradient tells.
    result.success |= guard.largest_slope() <= gradient_tolerance
    result.x = guard.iterate
    return result
