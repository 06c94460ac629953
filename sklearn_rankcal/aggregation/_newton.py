"""Newton's method for many convex functions in one batch, one per component."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

_HALVINGS = 40  # of the step length
_ROUNDING = 1e-15  # relative to the unit of the gradient
_TINY = np.finfo(np.float64).tiny
_TIGHTEST, _LOOSEST = 1e-6, 0.1  # relative residual of the linear systems


class Minimum(NamedTuple):
    """The parameters, the value of each part, and the unfinished parts."""

    x: Floats
    value: Floats
    unfinished: Bools


def minimize(
    objective: Any,
    tol: float,
    max_iter: int,
    start: Floats | None = None,
    longest: float = np.inf,
) -> Minimum:
    """Minimise a convex function for each of many parts by Newton's method with a line search.

    `objective.evaluate` returns the value of each of `objective.parts`, the gradient, its unit, and
    a state. The unit is the sum of the absolute values of the terms of each derivative, which
    bounds its rounding error. `solve` uses the state to divide by the Hessian matrix, with a
    relative residual for each part. `take` returns the objective of some parts, and the indices of
    their parameters. The value is infinite where the function is undefined. No step of a parameter
    is longer than `longest`.

    A part is finished when a step changes none of its parameters by more than `tol`. The accuracy
    of linear systems follows the gradient, for superlinear convergence. When half of the parts are
    finished, they are dropped. SciPy minimises one function at a time, which is far too slow for
    many small functions.
    """
    result = np.zeros(objective.parts.n_rows) if start is None else start.copy()
    values = np.zeros(objective.parts.n_queries)
    unfinished = np.zeros(len(values), dtype=bool)
    where, numbers = np.arange(len(result)), np.arange(len(values))  # of the current objective
    x = result.copy()
    value, gradient, unit, state = objective.evaluate(x)
    going = ~unfinished
    for _ in range(max_iter):
        parts = objective.parts
        size = parts.max(np.abs(gradient) / np.maximum(unit, _TINY))
        going &= size > _ROUNDING
        n_going = np.count_nonzero(going)
        if not n_going:
            break
        if 2 * n_going < len(going):
            result[where], values[numbers] = x, value
            objective, nodes = objective.take(going)
            where, x = where[nodes], x[nodes]
            numbers, size = numbers[going], size[going]
            value, gradient, unit, state = objective.evaluate(x)
            going = np.ones(len(size), dtype=bool)
            parts = objective.parts
        tolerance = np.minimum(np.maximum(size, _TIGHTEST), _LOOSEST)
        tolerance[~going] = 1.0
        direction = objective.solve(state, -gradient, tolerance) * parts.repeat(going)
        largest = parts.max(np.abs(direction))
        slope = parts.sum(gradient * direction)
        slack = 1e-13 * np.abs(value)  # the rounding error of the value
        step = np.minimum(1.0, longest / np.maximum(largest, 1e-300))
        for _ in range(_HALVINGS):
            trial = x + parts.repeat(step) * direction
            new = objective.evaluate(trial)
            high = ~(new[0] <= value + 1e-4 * step * slope + slack)
            if not np.count_nonzero(high):
                break
            step = np.where(high, step / 2, step)
        x, (value, gradient, unit, state) = trial, new
        going &= largest > tol
    result[where], values[numbers] = x, value
    unfinished[numbers[going]] = True
    return Minimum(result, values, unfinished)


def warn_not_converged(
    name: str, unfinished: Bools, rows: Ints, parts: Queries, queries: Queries, max_iter: int
) -> None:
    """Warn about queries with unfinished components; `rows` are the rows of their nodes."""
    if unfinished.any():
        first = rows[parts.offsets[:-1][unfinished]]  # a row of each of these components
        n_queries = len(np.unique(queries.codes[first]))
        warn(
            (
                f"{name} did not converge in max_iter={max_iter} iterations for {n_queries} of "
                f"{queries.n_queries} queries. Increase max_iter, penalty or smoothing."
            ),
            ConvergenceWarning,
        )
