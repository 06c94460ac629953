"""The composite stochastic gradient method of linear models, with averaged iterates."""

from __future__ import annotations

from typing import Any

import numpy as np

from sklearn_rankcal.linear._linear_objective import (
    Coordinates,
    LinearObjective,
    Point,
    QueryBatches,
    batch_gradient,
)
from sklearn_rankcal.surrogates import Surrogate
from sklearn_rankcal.utils._numbers import Floats, Ints, exceeds

#: For each rule, the step size and the averaging weight of an iterate, as functions of the step
#: number t >= 1, the largest step c, and the strong convexity mu of the penalty.
STEP_SIZES: dict[str, Any] = {
    "sqrt": (lambda t, c, mu: c / np.sqrt(t), lambda t, c, mu: 1.0),
    "inverse": (lambda t, c, mu: 1.0 / (mu * t + 1.0 / c), lambda t, c, mu: t + 1.0 / (mu * c)),
}
#: The largest step is chosen on this many queries, with this many passes per trial. A single pass
#: does not reveal steps that diverge later.
_TRIAL_QUERIES, _TRIAL_PASSES = 200, 5
#: About how many queries get new targets at once. Structures are faster on many queries.
_DRAWN_TOGETHER = 256
#: Ratio of successive trial values of the largest step, and the maximum number of trials.
_FACTOR, _TRIALS = 4.0, 12


class Diverged(ValueError):
    """The stochastic gradient method diverged."""


class StochasticGradient:
    """The state of the method: iterate, average and number of steps.

    The objective is the mean over queries of w_q psi_q / (mean of the w_q), plus
    lambda / 2 ||w||^2. A step minimises the sum of three terms: the tangent of the surrogate at the
    queries of the step, the penalty, and the squared distance from the iterate divided by twice the
    step size (Duchi et al., 2013, equation 25). The distance is sqrt((w - w')' H (w - w')), where H
    approximates the second derivatives of the objective. This makes the method independent of the
    units and correlations of the columns. The state is stored in `Coordinates`, where H and the
    penalty are diagonal.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        coordinates: Coordinates,
        data: QueryBatches,
        alpha: float,
        rule: str,
        start: Point,
        largest_step: float,
    ) -> None:
        self.surrogate = surrogate
        self.rule = rule
        self.largest_step = largest_step
        self.coordinates = coordinates
        # The objective is a mean: its H is the H of the sum, divided by the total weight.
        self.factor = float(data.weight.sum())
        self.mean_weight = self.factor / data.n_queries
        self.x = coordinates.coordinates(*start)
        # lambda in each coordinate; lambda ||w||^2 >= mu times the squared length in H
        self.shrinkage = np.zeros(len(self.x))
        self.shrinkage[: data.n_features] = alpha * coordinates.squares
        self.convexity = float(self.shrinkage[: data.n_features].min())
        self.n_steps = 0
        self.mass = 0.0  # the sum of the weights of the average
        self.mean_x = self.x.copy()

    def result(self) -> tuple[Floats, float]:
        """Return the averaged coefficients and intercept."""
        return self.coordinates.point(self.mean_x)

    def refuse_divergence(self, objective: LinearObjective, start: float) -> None:
        """Raise an error if the average has a much larger objective than the start."""
        value = objective.evaluate(*self.result()).value
        if not value <= start + abs(start):
            raise self._diverged()

    def _diverged(self) -> Diverged:
        return Diverged(
            f"The stochastic gradient method diverged, after {self.n_steps} steps of at most "
            f"{self.largest_step:g}. Pass a smaller largest_step, or use solver='lbfgs'."
        )

    def pass_over(
        self, data: QueryBatches, order: Ints, batch_size: int, redraw: bool = False
    ) -> None:
        """Make steps on the queries in this order, `batch_size` queries at a time.

        If `redraw`, draw new targets of a query before its step.
        """
        together = batch_size * max(1, _DRAWN_TOGETHER // batch_size)
        for first in range(0, len(order), batch_size):
            if redraw and first % together == 0:
                data.redraw(order[first : first + together])
            self._step(data, order[first : first + batch_size])

    def _step(self, data: QueryBatches, numbers: Ints) -> None:
        batch = data.take(numbers)
        point = self.coordinates.point(self.x)
        _, of_coef, of_shift = batch_gradient(data, self.surrogate, batch, *point)
        self.n_steps += 1
        size_of, weight_of = STEP_SIZES[self.rule]
        size = size_of(self.n_steps, self.largest_step, self.convexity)
        factor = size * self.factor / (self.mean_weight * len(numbers))
        with np.errstate(over="ignore", invalid="ignore"):
            self.x -= factor * self.coordinates.gradient(of_coef, of_shift)
            self.x /= 1.0 + size * self.shrinkage
            if not np.isfinite(self.x @ self.x):
                raise self._diverged()
        weight = weight_of(self.n_steps, self.largest_step, self.convexity)
        self.mass += weight
        self.mean_x += weight / self.mass * (self.x - self.mean_x)


def choose_largest_step(
    data: QueryBatches, order: Ints, alpha: float, batch_size: int, make: Any
) -> float:
    """Try largest steps on the first 200 queries, and return the one with the smallest objective.

    The objective is computed for the averaged coefficients after some passes. `make` makes a
    `StochasticGradient` from the largest step, a power of 4.
    """
    tried = order[: max(_TRIAL_QUERIES, batch_size)]
    batches = [data.take(tried[first : first + 20]) for first in range(0, len(tried), 20)]

    def value_after(step: float) -> float:
        state = make(step)
        try:
            for _ in range(_TRIAL_PASSES):
                state.pass_over(data, tried, batch_size)
        except Diverged:
            return np.inf
        coef, intercept = state.result()
        total = sum(
            batch_gradient(data, state.surrogate, batch, coef, intercept)[0] for batch in batches
        )
        own = alpha / 2 * float(coef @ coef) * len(tried) / data.n_queries
        return total + own if np.isfinite(total + own) else np.inf

    # The value first falls and then rises with the step.
    step, best = 1.0, value_after(1.0)
    for _ in range(_TRIALS):
        if np.isfinite(best):
            break
        step /= _FACTOR
        best = value_after(step)
    for factor in (_FACTOR, 1.0 / _FACTOR):
        for _ in range(_TRIALS):
            value = value_after(step * factor)
            if not exceeds(best, value, abs(value)):
                break
            step, best = step * factor, value
    return step
