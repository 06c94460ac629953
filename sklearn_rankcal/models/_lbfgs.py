"""Minimise a smooth function by L-BFGS, also where it is infinite far from the start."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]
Function = Callable[[Floats], tuple[float, Floats]]
# A trial point is replaced if its value is this many times farther above that of the iterate than
# the tangent falls.
_STEEP = 100.0


class Minimum(NamedTuple):
    """The last iterate, its value, the number of iterations, and whether a criterion was met."""

    x: Floats
    value: float
    n_iter: int
    converged: bool
    message: str


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


def minimize_smooth(
    function: Function,
    start: Floats,
    *,
    max_iter: int,
    gradient_tolerance: float,
    value_tolerance: float,
    progress: Callable[[int, float, float], None] | None = None,
) -> Minimum:
    """Minimise a function from a start at which it is finite.

    Parameters
    ----------
    function : callable
        Maps a point to its value and gradient, which may be infinite or NaN.
    start : ndarray of shape (n,)
    max_iter : int
    gradient_tolerance : float
        The iterations end when no entry of the gradient is larger.
    value_tolerance : float
        They also end when an iteration lowers the value by less than this, times the value if that
        is above 1.
    progress : callable, default=None
        Called after each iteration with its number, the value and the largest entry of the
        gradient.

    Returns
    -------
    minimum : Minimum
    """
    guard = _LineGuard(function, start)
    count = 0

    def after_iteration(x: Floats) -> None:
        nonlocal count
        count += 1
        guard.accept(x)
        if progress is not None:
            progress(count, guard.value, float(np.abs(guard.slope).max(initial=0.0)))

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
    small = float(np.abs(guard.slope).max(initial=0.0)) <= gradient_tolerance
    return Minimum(
        guard.iterate, guard.value, int(result.nit), bool(result.success or small), result.message
    )
