"""Likelihoods of votes and of tied items, and Newton's method for many functions in one batch.

The *lead* d of a vote is the score of the first item minus the score of the second. A tie is half a
win for each item, or has a probability by the model of Davidson or of Rao and Kupper.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit, logsumexp
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


# ---------------------------------------------------------------- tied items of an order


_NUMBERS = 1 << 20  # in the largest temporary array
_LISTED = 5  # items of the largest tiers with a sum over all orders; beyond, quadrature is faster
_TIERS = 1 << 10  # in a block of the sum: its arrays fit in the cache


def tier_probabilities(z: Floats) -> tuple[Floats, Floats, Floats]:
    """Compute log P, its gradient and the negative of its Hessian matrix, for several tiers.

    P is the probability that all m items of a tier precede all lower items, in any order. Let w_i
    be the weights of the items, W the total weight of the lower items, and z_i = log(w_i / W). P is
    the integral over t > 0 of exp(-t) product over i of (1 - exp(-exp(z_i) t)). Here items arrive
    at rates w_i, and t is the first arrival of a lower item, in units of 1 / W. `z` has shape
    (n_tiers, m). For up to five items, P is the sum over all orders of the tier, in O(n_tiers m^3
    2^m) time. For more, the relative error is below 1e-9. The time is O(n_tiers m^2 n_nodes), with
    about 100 nodes, growing with the square root of m.
    """
    n, m = z.shape
    log_p, gradient = np.empty(n), np.empty((n, m))
    curvature = np.empty((n, m, m))
    if m <= _LISTED:
        for start in range(0, n, _TIERS):
            block = slice(start, start + _TIERS)
            log_p[block], gradient[block], curvature[block] = _sum_over_orders(z[block])
        return log_p, gradient, curvature
    # As a function of s = log(t), the integrand is log-concave and analytic. The trapezoidal rule
    # therefore converges faster than any power of its step. The step follows the width of a gamma
    # density of m + 1 degrees. The part below t = exp(-25) is at most 1.4e-11 of the integral.
    s = np.arange(-25.0, np.log(m + 14 * np.sqrt(m) + 40), 0.33 / np.sqrt(1 + m / 6))
    size = max(1, _NUMBERS // (m * len(s)))
    for start in range(0, n, size):
        block = slice(start, start + size)
        # y_i = exp(z_i) t, of shape (n_block, m, n_nodes). Beyond exp(6.5), 1 - exp(-y) is 1.
        y = np.exp(np.minimum(z[block, :, None] + s, 6.5))
        log_f = np.log(-np.expm1(-y)).sum(axis=1) + (s - np.exp(s))
        total = logsumexp(log_f, axis=1)
        density = np.exp(log_f - total[:, None])
        first = y / np.expm1(y)  # of log(1 - exp(-exp(z))) by z
        second = first * (1 - y - first)
        log_p[block] = total + np.log(s[1] - s[0])
        gradient[block] = np.einsum("nik,nk->ni", first, density)
        weighted = first * density[:, None, :]
        products = weighted @ first.transpose(0, 2, 1)
        mean = gradient[block]
        curvature[block] = mean[:, :, None] * mean[:, None, :] - products
        diagonal = np.arange(m)
        curvature[block, diagonal, diagonal] -= np.einsum("nik,nk->ni", second, density)
    return log_p, gradient, curvature


def _sum_over_orders(z: Floats) -> tuple[Floats, Floats, Floats]:
    """Compute `tier_probabilities` from the sets of items that are left.

    Let a_i = exp(z_i), and P(S) the probability that the items of S precede the lower items. One of
    them comes first: P(S) = sum over i in S of a_i P(S - i) / (1 + sum over S of a). All terms are
    positive, and nothing cancels. The derivatives are those of a mixture of the next sets.
    """
    m = z.shape[1]
    z = np.minimum(z.T, 300.0)  # beyond, P is 1
    rate = np.exp(z)
    # P(S) is divided by the product of min(a_i, 1), which can underflow
    scaled, own, at = np.maximum(rate, 1.0), np.eye(m)[:, :, None], np.arange(m)
    found: dict[Any, Any] = {(): (np.ones_like(z[0]), np.zeros_like(z), np.zeros((m, *z.shape)))}
    for size in range(1, m + 1):
        for some in combinations(range(m), size):  # a loop over all sets
            rest = zip(*(found[some[:k] + some[k + 1 :]] for k in range(size)), strict=True)
            chance, slope, bend = (np.array(one) for one in rest)
            inside, chosen = np.zeros_like(z), list(some)
            inside[chosen] = rate[chosen]
            total = 1 + inside.sum(axis=0)
            inside /= total
            share = scaled[chosen] * chance
            chance = share.sum(axis=0)
            share /= chance
            move = slope + own[chosen]
            weighted = share[:, None] * move
            mean = weighted.sum(axis=0)
            curvature = (share[:, None, None] * bend).sum(axis=0)
            curvature -= (weighted[:, :, None] * move[:, None]).sum(axis=0)
            curvature += mean[:, None] * mean - inside[:, None] * inside
            curvature[at, at] += inside
            found[some] = chance / total, mean - inside, curvature
    chance, slope, bend = found[tuple(range(m))]
    return np.minimum(z, 0.0).sum(axis=0) + np.log(chance), slope.T, bend.transpose(2, 0, 1)


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
