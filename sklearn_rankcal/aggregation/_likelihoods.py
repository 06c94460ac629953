"""Likelihoods of votes, and Newton's method for many convex functions in one batch.

The *lead* d of a vote is the score of the first item minus the score of the second. A tie is half a
win for each item, or has a probability by the model of Davidson or of Rao and Kupper.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints

TIES = ("half", "davidson", "rao_kupper")
#: Number of votes per block: temporary arrays fit in the cache.
BLOCK = 1 << 13


class ResultSlopes(NamedTuple):
    """The log-likelihood of each result at each contest, and its derivatives.

    `value` and `lead` (by the lead) and `tie` (by the parameter of ties) have shape (3, n), one row
    for each result; `lead2`, `mixed` and `tie2` are minus the expected second derivatives summed
    with the counts, of shape (n,).
    """

    value: Floats
    lead: Floats
    tie: Floats
    lead2: Floats
    mixed: Floats
    tie2: Floats


def _half(d: Floats, tie: float, counts: Floats) -> ResultSlopes:
    up, p, q = log_expit(d), expit(d), expit(-d)
    lead, none = np.array([q, -p, (q - p) / 2]), np.zeros_like(d)
    value = np.array([up, up - d, up - d / 2])
    return ResultSlopes(value, lead, np.zeros_like(lead), counts.sum(axis=0) * p * q, none, none)


def _davidson(d: Floats, tie: float, counts: Floats) -> ResultSlopes:
    powers = np.array([d / 2, -d / 2, np.full_like(d, tie)])
    top = powers.max(axis=0)
    value = powers - (top + np.log(np.exp(powers - top).sum(axis=0)))
    win, loss, draw = np.exp(value)
    mean = (win - loss) / 2
    lead = np.array([0.5 - mean, -0.5 - mean, -mean])
    slope = np.array([-draw, -draw, 1 - draw])
    total = counts.sum(axis=0)
    lead2 = total * ((win + loss) / 4 - mean**2)
    return ResultSlopes(value, lead, slope, lead2, -total * mean * draw, total * draw * (1 - draw))


def _rao_kupper(d: Floats, tie: float, counts: Floats) -> ResultSlopes:
    up, down = log_expit(d - tie), log_expit(-d - tie)
    a, b = expit(tie - d), expit(tie + d)  # one minus the probabilities of the two wins
    grow = np.expm1(2 * np.minimum(tie, 300.0))
    value = np.array([up, down, up + down + np.log(grow)])
    lead = np.array([a, -b, a - b])
    extra = 2 * (1 + 1 / grow)
    slope = np.array([-a, -b, extra - a - b])
    for_first, for_second = counts[0] + counts[2], counts[1] + counts[2]
    one, other = for_first * a * (1 - a), for_second * b * (1 - b)
    bend = counts[2] * 4 * (1 + 1 / grow) / grow
    return ResultSlopes(value, lead, slope, one + other, other - one, one + other + bend)


VOTE_MODELS = {"half": _half, "davidson": _davidson, "rao_kupper": _rao_kupper}


def result_probabilities(d: Floats, ties: str, tie: float) -> Floats:
    """Return the probabilities of a win of the first item, of the second, and of a tie.

    The array has shape (3, n).
    """
    if ties == "half":
        return np.array([expit(d), expit(-d), np.zeros_like(d)])
    return np.exp(VOTE_MODELS[ties](d, tie, np.zeros((3, len(d)))).value)


def vote_information(d: Floats, ties: str, tie: float) -> Floats:
    """Return the expected information of one vote about its lead, of shape (n,)."""
    return VOTE_MODELS[ties](d, tie, result_probabilities(d, ties, tie)).lead2


# ---------------------------------------------------------------- sums over votes


class LogisticTerms(NamedTuple):
    """Minus the log-likelihood of wins and losses, and its derivatives by the lead.

    `size` is the sum of the absolute values of the two terms of `slope`.
    """

    value: Floats
    slope: Floats
    bend: Floats
    size: Floats


def logistic_terms(lead: Floats, won: Floats, lost: Floats) -> LogisticTerms:
    """Evaluate the Bradley-Terry model, without cancellation for nearly certain results."""
    ahead, distance, total = lead >= 0, np.abs(lead), won + lost
    small = np.exp(-distance)
    unlikely = small / (1 + small)  # the probability of the less likely result
    expected = total * unlikely
    against = np.where(ahead, lost, won)  # the weight of the less likely result
    slope = against - expected
    return LogisticTerms(
        total * np.log1p(small) + against * distance,
        np.where(ahead, slope, -slope),
        expected * (1 - unlikely),
        against + expected,
    )


class VoteSums(NamedTuple):
    """Minus the log-likelihood of all votes, and its derivatives summed over the results.

    `lead`, `lead2` and `mixed` have one entry for each contest; `mixed` is None if ties have no
    parameter.
    """

    value: float
    lead: Floats
    lead2: Floats
    mixed: Floats | None
    tie: float
    tie2: float


def sum_votes(d: Floats, counts: Floats, ties: str, tie: float) -> VoteSums:
    """Evaluate a model at the leads d, block by block."""
    model, half = VOTE_MODELS[ties], ties == "half"
    lead, lead2, mixed = np.empty((3, len(d)))
    value = by_tie = tie2 = 0.0
    for begin in range(0, len(d), BLOCK):
        b = slice(begin, begin + BLOCK)
        n = counts[:, b]
        if half:  # the sums of `_half`, with few terms
            found = logistic_terms(d[b], n[0] + n[2] / 2, n[1] + n[2] / 2)
            value += float(found.value.sum())
            lead[b], lead2[b] = found.slope, found.bend
            continue
        slopes = model(d[b], tie, n)
        value -= float((n * slopes.value).sum())
        lead[b] = -(n * slopes.lead).sum(axis=0)
        lead2[b], mixed[b] = slopes.lead2, slopes.mixed
        by_tie -= float((n * slopes.tie).sum())
        tie2 += float(slopes.tie2.sum())
    return VoteSums(value, lead, lead2, None if half else mixed, by_tie, tie2)


# ---------------------------------------------------------------- Newton's method


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
    first = rows[parts.offsets[:-1][unfinished]]  # a row of each of these components
    n_queries = len(np.unique(queries.codes[first]))
    warn(
        f"{name} did not converge in max_iter={max_iter} iterations for {n_queries} of "
        f"{queries.n_queries} queries. Increase max_iter, penalty or smoothing.",
        ConvergenceWarning,
    )
