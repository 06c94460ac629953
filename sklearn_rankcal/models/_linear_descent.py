"""Minimise the objective of a linear model by L-BFGS, in coordinates without units.

The curvature at the origin gives the coordinates. In these all second derivatives are about 1 and
the gradient at the origin has length 1. A tolerance then means the same for every surrogate, data
set and penalty.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.models._lbfgs import Minimum, minimize_smooth
from sklearn_rankcal.models._linear_metric import Metric
from sklearn_rankcal.models._linear_objective import LinearObjective

Floats = NDArray[np.float64]
#: Coefficients and intercept.
Point = tuple[Floats, float]
#: Rounding hides a relative change of the objective of this size.
_ROUNDING = 64 * np.finfo(np.float64).eps
#: How exactly the intercept of constant scores is found, and in how many iterations.
_INTERCEPT_TOLERANCE, _INTERCEPT_ITERATIONS = 1e-6, 100


def find_origin(
    objective: LinearObjective, alpha: float, origin: Point | None = None
) -> tuple[Point, Metric]:
    """Return the point to start from, and the coordinates that the curvature there defines.

    Parameters
    ----------
    objective : LinearObjective
    alpha : float
        A positive number that is added to the curvature by each coefficient.
    origin : tuple of ndarray and float, default=None
        The point. None means coefficients of 0, and the best intercept for them.

    Raises
    ------
    ValueError
        If the objective is not finite at the origin.
    """
    if origin is None:
        coef = np.zeros(objective.data.n_features)
        origin = coef, _best_constant(objective) if objective.fits_intercept else 0.0
    value = objective.evaluate(*origin)
    if not value.finite:
        raise ValueError(
            f"{type(objective.surrogate).__name__} or its gradient is not finite for equal scores. "
            "Scale the labels, the weights or the columns of X."
        )
    return origin, objective.metric(*origin, alpha)


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
    progress: Callable[[int, float, float], None] | None = None,
) -> tuple[Point, Minimum]:
    """Minimise the objective.

    Parameters
    ----------
    objective : LinearObjective
    origin : tuple of ndarray and float
        The point at which the length of the gradient is taken as the unit.
    metric : Metric
        That at the origin.
    start : tuple of ndarray and float
        The first iterate.
    tol : float
        The largest entry of the gradient at the end, in scaled coordinates.
    max_iter : int
    progress : callable, default=None
        Called after each iteration with its number, the objective and the largest entry of the
        scaled gradient.

    Returns
    -------
    point : tuple of ndarray and float
    minimum : Minimum
    """
    n_features = objective.data.n_features
    by_intercept = np.sqrt(metric.intercept)

    def scaled_gradient(point: Point) -> tuple[float, Floats]:
        found = objective.evaluate(*point)
        if not found.finite:
            return np.inf, np.full(n_features + objective.fits_intercept, np.nan)
        slopes = found.of_coef
        if objective.fits_intercept:
            slopes = slopes - metric.center * found.of_intercept
            scaled_slope = found.of_intercept / by_intercept
            return found.value, np.append(metric.slopes(slopes), scaled_slope)
        return found.value, metric.slopes(slopes)

    base, slopes = scaled_gradient(origin)
    unit = float(np.linalg.norm(slopes[:n_features]))
    # The objective cannot fall by more than about unit^2 / 2.
    if not unit**2 > _ROUNDING * abs(base):
        return start, Minimum(np.zeros(0), base, 0, True, "")

    def to_point(x: Floats) -> Point:
        coef = metric.coef(x[:n_features] * unit)
        if not objective.fits_intercept:
            return coef, 0.0
        return coef, float(x[-1] * unit / by_intercept) - float(metric.center @ coef)

    def scaled(x: Floats) -> tuple[float, Floats]:
        value, slopes = scaled_gradient(to_point(x))
        return (value - base) / unit**2, slopes / unit

    def shown(number: int, value: float, slope: float) -> None:
        if progress is not None:
            progress(number, base + value * unit**2, slope)

    coef, intercept = start
    x = metric.coordinates(coef) / unit
    if objective.fits_intercept:
        x = np.append(x, (intercept + float(metric.center @ coef)) * by_intercept / unit)
    found = minimize_smooth(
        scaled,
        x,
        max_iter=max_iter,
        gradient_tolerance=tol,
        value_tolerance=_ROUNDING * max(1.0, abs(base) / unit**2),
        progress=shown,
    )
    return to_point(found.x), found
