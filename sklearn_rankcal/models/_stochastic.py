"""The composite stochastic gradient method, one query or a few a step.

Batches of queries come in, and averaged coefficients go out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.models._linear_objective import LinearObjective, Scales, batch_gradient
from sklearn_rankcal.models._query_batches import QueryBatches
from sklearn_rankcal.surrogates import Surrogate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The step sizes by name, from the number t >= 1 of the step, the largest step c, and the strong
#: convexity mu of the penalty; and the weights with which the iterates are averaged.
STEP_SIZES: dict[str, Any] = {
    "sqrt": (lambda t, c, mu: c / np.sqrt(t), lambda t, c, mu: 1.0),
    "inverse": (lambda t, c, mu: 1.0 / (mu * t + 1.0 / c), lambda t, c, mu: t + 1.0 / (mu * c)),
}
#: The queries on which the largest step is chosen, and how often each trial passes over them. In a
#: single pass, steps can look good that diverge later.
_TRIAL_QUERIES, _TRIAL_PASSES = 200, 5
#: How much the tried values of the largest step differ, and how many there are.
_FACTOR, _TRIALS = 4.0, 12


class Diverged(ArithmeticError):
    """The coefficients of a stochastic gradient method are not finite any more."""


class StochasticGradient:
    """The state of the method: iterate, average and number of steps.

    The objective is the mean over queries of w_q psi_q / (mean of the w_q), plus
    lambda / 2 ||w||^2. A step minimises the tangent of the surrogate at the queries of the step,
    plus the penalty itself, plus the squared distance from the iterate divided by twice the step
    size (Duchi et al., 2013, equation 25). The distance is sqrt(sum_k h_k (w_k - w'_k)^2), where
    h_k is the scale of column k, so that units do not matter.

    Parameters
    ----------
    surrogate : Surrogate
        With all parameters set.
    scales : Scales
        Those of the sum over queries.
    total_weight : float
        The sum of the weights of the queries that count the penalty once.
    n_queries : int
        Their number.
    alpha : float
    rule : str
        A key of `STEP_SIZES`.
    largest_step : float
    coef : ndarray of shape (n_features,)
    intercept : float
        The start.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        scales: Scales,
        total_weight: float,
        n_queries: int,
        alpha: float,
        rule: str,
        largest_step: float,
        coef: Floats,
        intercept: float,
    ) -> None:
        self.surrogate = surrogate
        self.rule = rule
        self.largest_step = largest_step
        self.fits_intercept = not surrogate.shift_invariant
        self.mean_weight = total_weight / n_queries
        self.penalty = alpha / total_weight  # lambda
        self.center = scales.center
        self.inverse = total_weight / scales.column
        self.inverse_of_intercept = total_weight / scales.intercept
        # lambda ||w||^2 >= mu sum_k h_k w_k^2
        self.convexity = self.penalty * float(self.inverse.min())
        self.n_steps = 0
        self.coef = coef.copy()
        self.shift = intercept + float(self.center @ coef)  # the intercept of centred columns
        self.mass = 0.0  # the sum of the weights of the average
        self.mean_coef = self.coef.copy()
        self.mean_shift = self.shift

    def result(self) -> tuple[Floats, float]:
        """The averaged coefficients and intercept, of columns that are not centred."""
        intercept = self.mean_shift - float(self.center @ self.mean_coef)
        return self.mean_coef.copy(), intercept if self.fits_intercept else 0.0

    def pass_over(self, data: QueryBatches, order: Ints, batch_size: int) -> None:
        """Make steps with the queries in this order, `batch_size` of them at a time.

        Raises
        ------
        Diverged
            If the coefficients overflow.
        """
        for first in range(0, len(order), batch_size):
            self._step(data, order[first : first + batch_size])

    def _step(self, data: QueryBatches, numbers: Ints) -> None:
        batch = data.take(numbers)
        intercept = self.shift - float(self.center @ self.coef) if self.fits_intercept else 0.0
        _, slopes, of_shift = batch_gradient(data, self.surrogate, batch, self.coef, intercept)
        self.n_steps += 1
        size_of, weight_of = STEP_SIZES[self.rule]
        size = size_of(self.n_steps, self.largest_step, self.convexity)
        factor = size / (self.mean_weight * len(numbers))
        with np.errstate(over="ignore", invalid="ignore"):
            if self.fits_intercept:
                slopes = slopes - self.center * of_shift
                self.shift -= factor * of_shift * self.inverse_of_intercept
            self.coef -= factor * slopes * self.inverse
            self.coef /= 1.0 + (size * self.penalty) * self.inverse
            if not np.isfinite(self.coef @ self.coef + self.shift):
                raise Diverged
        weight = weight_of(self.n_steps, self.largest_step, self.convexity)
        self.mass += weight
        share = weight / self.mass
        self.mean_coef += share * (self.coef - self.mean_coef)
        self.mean_shift += share * (self.shift - self.mean_shift)


def choose_largest_step(
    data: QueryBatches, order: Ints, alpha: float, batch_size: int, make: Any
) -> float:
    """Try steps on some of the queries, and return the one after which their objective is least.

    Parameters
    ----------
    data : QueryBatches
    order : ndarray
        The queries in the order of the steps, of which the first 200 are tried.
    alpha : float
    batch_size : int
    make : callable
        Makes a `StochasticGradient` from the largest step.

    Returns
    -------
    largest_step : float
        A power of 4. The objective is that of the averaged coefficients after some passes.
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

    # The value falls with the step, and then rises.
    step, best = 1.0, value_after(1.0)
    for _ in range(_TRIALS):
        if np.isfinite(best):
            break
        step /= _FACTOR
        best = value_after(step)
    for factor in (_FACTOR, 1.0 / _FACTOR):
        for _ in range(_TRIALS):
            value = value_after(step * factor)
            if not value < best:
                break
            step, best = step * factor, value
    return step


def refuse_divergence(state: StochasticGradient, objective: LinearObjective, start: float) -> None:
    """Raise an error if the objective at the averaged coefficients is far above that at the start.

    Raises
    ------
    Diverged
    """
    value = objective.evaluate(*state.result()).value
    if not value <= start + abs(start):
        raise Diverged
