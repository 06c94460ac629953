"""Minimise expected surrogates, over all scores or over the scores that lead to given rankings."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.consistency._expected import ExpectedSurrogates
from sklearn_rankcal.surrogates import DifferenceGraph, PairwiseMargin, WeightedComparisons
from sklearn_rankcal.surrogates._pair_sums import function_of
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: A minimum is accepted if no derivative exceeds this share of their size at scores of 0
#: (`ExpectedSurrogates.scale`), and a closed form if none exceeds the second number. The search
#: goes on beyond `ACCEPTED` up to `TOLERANCE`.
TOLERANCE, ACCEPTED = 1e-11, 1e-6
#: Newton steps, halvings of a step, and the longest step of a score.
STEPS, HALVINGS, LONGEST = 100, 30, 5.0
#: Linear programs that are solved together.
PROGRAMS = 256


def minimizers(problems: ExpectedSurrogates) -> Floats:
    """Return scores (n, r) that minimise each expected surrogate."""
    if is_piecewise_linear(problems):
        return _solve_programs(problems, None)
    start = problems.closed_form(problems.expected)
    if start is None:
        start = np.zeros((problems.n, problems.r))
    return _newton(problems, start, None)


def cone_minimizers(problems: ExpectedSurrogates, orders: Ints) -> Floats:
    """Return scores (n, r) that minimise each expected surrogate among those of a ranking.

    They do not increase along `orders` (n, r), the documents of each ranking, best first.
    """
    if is_piecewise_linear(problems):
        return _solve_programs(problems, orders)
    start = None
    if problems.expected is not None:
        # Where documents tie at the minimum, they have the scores of their mean utility.
        sorted_ = decreasing_fit(np.take_along_axis(problems.expected, orders, axis=1))
        pooled = np.empty_like(sorted_)
        np.put_along_axis(pooled, orders, sorted_, axis=1)
        start = problems.closed_form(pooled)
    if start is None:
        start = np.zeros((problems.n, problems.r))
    return _newton(problems, start, orders)


def decreasing_fit(values: Floats) -> Floats:
    """Return the non-increasing rows that are nearest to the rows of values (n, r).

    The formula is min_{a <= k} max_{b >= k} mean(values a .. b) for entry k.
    """
    n, r = values.shape
    sums = np.hstack([np.zeros((n, 1)), np.cumsum(values, axis=1)])
    mean = np.full((r, r, n), -np.inf)  # [a, b] = mean of the entries a .. b
    for a in range(r):
        for b in range(a, r):
            mean[a, b] = (sums[:, b + 1] - sums[:, a]) / (b + 1 - a)
    fit = np.empty((n, r))
    for k in range(r):
        fit[:, k] = mean[: k + 1, k:].max(axis=1).min(axis=0)
    # Rounding must not make neighbours increase.
    return np.minimum.accumulate(fit, axis=1)


def is_piecewise_linear(problems: ExpectedSurrogates) -> bool:
    """Whether the surrogate is a sum of hinges."""
    surrogate = problems.surrogate
    return isinstance(surrogate, PairwiseMargin | WeightedComparisons) and (
        surrogate.margin == "hinge"
    )


# ---------------------------------------------------------------- smooth surrogates


def _newton(problems: ExpectedSurrogates, start: Floats, orders: Ints | None) -> Floats:
    """Minimise by Newton steps, over all scores or over the cones of rankings.

    With a ranking, the unknowns are z >= 0: the differences between the scores of neighbours, and
    the lowest score, which is free. Without one, they are the scores, and all are free.
    """
    n, r = start.shape
    if orders is None:
        shape, free = np.broadcast_to(np.eye(r), (n, r, r)), np.ones(r, dtype=bool)
        z = start.copy()
    else:
        # s_(k) = z_k + .. + z_r for the document at place k of the ranking
        shape = np.zeros((n, r, r))
        np.put_along_axis(
            shape, orders[:, :, None], np.broadcast_to(np.triu(np.ones((r, r))), (n, r, r)), 1
        )
        sorted_ = np.take_along_axis(start, orders, axis=1)
        z = np.append(sorted_[:, :-1] - sorted_[:, 1:], sorted_[:, -1:], axis=1)
        free = np.arange(r) == r - 1
        z[:, ~free] = np.maximum(z[:, ~free], 0.0)
    scale = problems.scale()
    if not np.isfinite(problems.value(np.einsum("nij,nj->ni", shape, z))).all():
        raise ValueError(
            f"{problems.surrogate!r} is infinite or undefined for some of these utilities."
        )
    active = np.arange(n)
    rest = problems
    for _ in range(STEPS):
        # Step 1: drop the problems that are solved.
        some, into = z[active], shape[active]
        scores = np.einsum("nij,nj->ni", into, some)
        value, by_score = rest.evaluate(scores)
        assert by_score is not None
        slope = np.einsum("nij,ni->nj", into, by_score)
        open_ = _violation(some, slope, free) > TOLERANCE * scale[active]
        if not open_.any():
            return np.einsum("nij,nj->ni", shape, z)
        if open_.mean() < 0.7:
            active, rest = active[open_], rest.take(np.flatnonzero(open_))
            some, into, scores = some[open_], into[open_], scores[open_]
            value, by_score, slope = value[open_], by_score[open_], slope[open_]
        # Step 2: take Newton directions in the unknowns that are not held at their bound.
        held = ~free & (some <= 1e-12) & (slope > 0)
        hessian = _hessian(rest, scores, by_score)
        if problems.surrogate.shift_invariant:  # do not follow rounding along a common shift
            hessian += scale[active, None, None]
        bend = np.einsum("nki,nkl,nlj->nij", into, hessian, into)
        bend[held[:, :, None] | held[:, None, :]] = 0.0
        bend += held[:, :, None] * np.eye(r) * scale[active, None, None]
        direction = -_solve(bend, np.where(held, 0.0, slope), scale[active])
        longest = np.abs(direction).max(axis=1, keepdims=True)
        direction *= np.minimum(1.0, LONGEST / np.maximum(longest, 1e-300))
        # Step 3: halve the steps that do not lower the value enough.
        size, best, waiting = np.ones(len(some)), some.copy(), np.arange(len(some))
        part = rest
        for _ in range(HALVINGS):
            tried = some[waiting] + size[waiting, None] * direction[waiting]
            tried = np.where(free, tried, np.maximum(tried, 0.0))
            gain = np.einsum("nj,nj->n", slope[waiting], tried - some[waiting])
            lower = part.value(np.einsum("nij,nj->ni", into[waiting], tried))
            # The last term allows for rounding, near a minimum.
            fine = lower <= value[waiting] + 1e-4 * gain + 1e-15 * np.abs(value[waiting])
            best[waiting[fine]] = tried[fine]
            if fine.all():
                break
            waiting = waiting[~fine]
            part = part.take(np.flatnonzero(~fine))
            size[waiting] /= 2
        moved = np.abs(best - some).max(axis=1) > 0
        z[active] = best
        if not moved.any():
            break
        if not moved.all():  # rounding stops the others here
            active, rest = active[moved], rest.take(np.flatnonzero(moved))
    scores = np.einsum("nij,nj->ni", shape, z)
    slope = np.einsum("nij,ni->nj", shape, problems.gradient(scores))
    left = (_violation(z, slope, free) / scale).max()
    if left > ACCEPTED:
        warn(
            f"The expected value of {problems.surrogate!r} was not minimised: a derivative of "
            f"{left:.1e} is left, in units of those at scores of 0. Its infimum may be lower.",
            ConvergenceWarning,
        )
    return scores


def _violation(z: Floats, slope: Floats, free: Bools) -> Floats:
    """Return the largest derivative (n,) that an allowed step can follow."""
    step = np.where(free, slope, np.minimum(np.maximum(slope, 0.0), z) + np.minimum(slope, 0.0))
    return np.abs(step).max(axis=1)


def _hessian(problems: ExpectedSurrogates, scores: Floats, gradient: Floats) -> Floats:
    """Return the second derivatives (n, r, r), from differences of gradients."""
    n, r = scores.shape
    hessian = np.empty((n, r, r))
    step = 1e-6
    for i in range(r):
        moved = scores.copy()
        moved[:, i] += step
        hessian[:, i] = (problems.gradient(moved) - gradient) / step
    return (hessian + hessian.transpose(0, 2, 1)) / 2


def _solve(bend: Floats, slope: Floats, scale: Floats) -> Floats:
    """Solve bend x = slope, with |eigenvalues| in the place of small and negative ones."""
    value, vector = np.linalg.eigh(bend)
    # A direction in which nothing bends is followed by a long step, if it slopes at all.
    value = np.maximum(np.abs(value), 1e-9 * np.abs(value).max(axis=1, keepdims=True))
    value = np.maximum(value, 1e-14 * scale[:, None])
    along = np.einsum("nij,ni->nj", vector, slope)
    solved: Floats = np.einsum("nij,nj->ni", vector, along / value)
    return solved


# ---------------------------------------------------------------- sums of hinges


def _solve_programs(problems: ExpectedSurrogates, orders: Ints | None) -> Floats:
    """Minimise sums of weight max(0, 1 + required - (s_i - s_j)) by linear programs."""
    scores = np.empty((problems.n, problems.r))
    for first in range(0, problems.n, PROGRAMS):
        rows = np.arange(first, min(first + PROGRAMS, problems.n))
        few = orders[rows] if orders is not None else None
        scores[rows] = _solve_some_programs(problems.take(rows), few)
    return scores


def _solve_some_programs(problems: ExpectedSurrogates, orders: Ints | None) -> Floats:
    n, r = problems.n, problems.r
    at, i, j, weight, needed = _hinges(problems)
    n_terms = len(at)
    # The unknowns are the n r scores, and a slack for each term: s_j - s_i - slack <= -needed.
    term = np.arange(n_terms)
    rows = np.concatenate([term, term, term])
    columns = np.concatenate([at * r + j, at * r + i, n * r + term])
    entries = np.concatenate([np.ones(n_terms), -np.ones(n_terms), -np.ones(n_terms)])
    bound = -needed
    if orders is not None:  # the score at place k + 1 minus that at place k is at most 0
        base = np.arange(n)[:, None] * r
        upper, lower = (base + orders[:, :-1]).ravel(), (base + orders[:, 1:]).ravel()
        more = n_terms + np.arange(len(upper))
        rows = np.concatenate([rows, more, more])
        columns = np.concatenate([columns, lower, upper])
        entries = np.concatenate([entries, np.ones(len(more)), -np.ones(len(more))])
        bound = np.append(bound, np.zeros(len(more)))
    matrix = sparse.csr_array((entries, (rows, columns)), (len(bound), n * r + n_terms))
    # Some best scores differ by sums of needed margins only.
    width = (r - 1) * max(float(np.abs(needed).max(initial=0.0)), 1.0)
    result = linprog(
        np.append(np.zeros(n * r), weight),
        A_ub=matrix,
        b_ub=bound,
        bounds=np.vstack([np.tile([0.0, width], (n * r, 1)), np.tile([0.0, np.inf], (n_terms, 1))]),
        method="highs-ds",
    )
    if result.x is None:
        raise RuntimeError(f"The linear program of the surrogate failed: {result.message}")
    scores: Floats = result.x[: n * r].reshape(n, r)
    return scores


def _hinges(problems: ExpectedSurrogates) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Return problem, i, j, weight and needed margin of each term of the expected surrogates."""
    surrogate, targets, r = problems.surrogate, problems.targets, problems.r
    if isinstance(surrogate, PairwiseMargin):
        assert problems.expected is not None
        weights = np.where(np.eye(r, dtype=bool), 0.0, problems.expected[:, :, None])
        at, i, j = np.nonzero(weights > 0)
        return at, i, j, weights[at, i, j], np.ones(len(at))
    assert isinstance(surrogate, WeightedComparisons)
    weight, required = function_of(surrogate.weight), function_of(surrogate.required)
    assert weight is not None
    y = targets
    if targets.ndim == 2:
        y = np.maximum(targets[:, :, None] - targets[:, None, :], 0.0)
    elif isinstance(surrogate, DifferenceGraph):
        y = np.maximum(targets - targets.transpose(0, 2, 1), 0.0)
    some = y > 0
    weights = np.zeros(y.shape)
    weights[some] = weight(y[some])
    if required is None:
        mean = np.einsum("nk,nkij->nij", problems.chance, weights[problems.labels])
        at, i, j = np.nonzero(mean > 0)
        return at, i, j, mean[at, i, j], np.ones(len(at))
    needed = np.ones(y.shape)
    needed[some] += required(y[some])
    each = problems.chance[:, :, None, None] * weights[problems.labels]
    at, k, i, j = np.nonzero(each > 0)
    return at, i, j, each[at, k, i, j], needed[problems.labels[at, k], i, j]
