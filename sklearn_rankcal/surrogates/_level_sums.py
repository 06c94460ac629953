"""Sums over the pairs of a large query with few levels of utility, without forming the pairs.

All documents of a level have the same weight for a document below the level. Sums over such pairs
are computed from sorted scores or as products of sums. `_pair_sums` handles all remaining queries.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sklearn_rankcal.surrogates._margins import Margin
from sklearn_rankcal.utils._numbers import Floats

#: In shorter queries, pairs are summed one by one.
SHORTEST = 1000
#: Time of the sums for one level, measured in pairs per document.
_SORTED_COST = 100
_NODE_COST = 10  # for each node of the integral of logistic margins and each document
_LOOP_COST = 10_000  # for each node
#: Step of the integral. The trapezoidal rule is then exact up to rounding; see `_logistic`.
_STEP = 0.25
#: Below and above these limits, the integrand for a score of 0 is negligible: e^-37 is the rounding
#: error of a double, and e^-e^3.7 is e^-40.
_LOWEST, _HIGHEST = 37.0, 3.7
_DEPTH = 60.0  # a larger margin is treated as infinite: its value is below e^-60
_WIDEST = 300.0  # scores that differ by less than this have finite products of exponentials
#: The squares of larger scores cancel or overflow, even where differences are exact.
_LARGEST = 1e5


class Sides(NamedTuple):
    """The sum of a_i b_j phi(x_i - y_j) over all i and j, and its derivatives by x and y."""

    value: float
    x_slope: Floats
    y_slope: Floats
    x_bend: Floats
    y_bend: Floats


Function = Callable[[Floats], Floats] | None


def has_level_sums(
    v: Floats, s: Floats, margin: Margin, weight: Function, required: Function
) -> bool:
    """Return whether `level_sums` of a query is faster than summing over its pairs."""
    if len(v) < SHORTEST:
        return False
    levels = np.zeros(1) if weight is None else np.unique(v)
    if _SORTED_COST * len(levels) > len(v):
        return False
    shift = 0.0
    if required is not None:
        difference = levels[:, None] - levels
        shift = float(np.abs(required(difference[difference > 0])).max(initial=0.0))
    if float(np.abs(s).max()) + shift > _LARGEST:
        return False
    if margin.name not in ("logistic", "exponential"):
        return True
    spread = float(s.max() - s.min()) + shift
    if margin.name == "exponential":
        return spread < _WIDEST
    n_active = min(spread + _LOWEST + _HIGHEST, _DEPTH + _HIGHEST) / _STEP
    cost = _NODE_COST * n_active + _LOOP_COST * spread / _STEP / len(v)
    return cost * len(levels) < len(v)


def level_sums(
    v: Floats, s: Floats, margin: Margin, weight: Function, required: Function
) -> tuple[float, Floats, Floats]:
    """Compute the result of `pair_sums` for one query, in O(r log r) time for each level of v."""
    add = _SUMS[margin.name]
    if weight is None:  # w_ij = v_i; the sum includes i = j, where the margin is 0
        all_pairs = add(s, s, v, np.ones(len(s)))
        at_zero, _, bend = margin.at(np.zeros(1))
        return (
            all_pairs.value - v.sum() * at_zero[0],
            all_pairs.x_slope + all_pairs.y_slope,
            all_pairs.x_bend + all_pairs.y_bend - 2 * v * bend[0],
        )
    value, gradient, curvature = 0.0, np.zeros(len(s)), np.zeros(len(s))
    order = np.argsort(v, kind="stable")
    edges = np.append(np.flatnonzero(np.diff(v[order])) + 1, len(v))
    for first, last in pairwise(edges):
        upper, lower = order[first:last], order[:first]
        difference = v[upper[0]] - v[lower]
        y = s[lower] if required is None else s[lower] + required(difference)
        sides = add(s[upper], y, np.ones(len(upper)), weight(difference))
        value += sides.value
        gradient[upper] += sides.x_slope
        gradient[lower] += sides.y_slope
        curvature[upper] += sides.x_bend
        curvature[lower] += sides.y_bend
    return value, gradient, curvature


def _logistic(x: Floats, y: Floats, a: Floats, b: Floats) -> Sides:
    """Integrate products of a function of x_i and a function of y_j.

    With p = e^x and q = e^y, integrate over all real u:

    - phi = log(1 + q / p) is the integral of exp(-p e^u) (1 - exp(-q e^u)).
    - -phi' = q / (p + q) is the integral of exp(-p e^u) q e^u exp(-q e^u).
    - phi'' = p q / (p + q)^2 is the integral of p e^u exp(-p e^u) q e^u exp(-q e^u).

    For a fixed u, the sum over pairs is a product of two sums. No term is negative, so nothing
    cancels. The error of the trapezoidal rule is of the order e^(-pi^2 / step) = 1e-17.
    """
    x_order, y_order = np.argsort(x), np.argsort(y)
    x, y, a, b = x[x_order], y[y_order], a[x_order], b[y_order]
    a_below, b_below = np.append(0.0, np.cumsum(a)), np.append(0.0, np.cumsum(b))
    value, x_slope, y_slope = 0.0, np.zeros(len(x)), np.zeros(len(y))
    x_bend, y_bend = np.zeros(len(x)), np.zeros(len(y))
    low, high = min(x[0], y[0]), max(x[-1], y[-1])
    # Loop over about 160 values of u, plus 4 per unit of the range of the scores. Each iteration
    # reads the documents with e^-60 < p e^u < 40. For lower scores, exp(-p e^u) is 1; for higher 0.
    for u in np.arange(-high - _LOWEST, -low + _HIGHEST, _STEP):
        first, last = np.searchsorted(x, [-_DEPTH - u, _HIGHEST - u])
        some = slice(first, last)
        p = np.exp(x[some] + u)
        x_left = np.exp(-p)
        p *= x_left
        sum_left, sum_p = a_below[first] + _dot(a[some], x_left), _dot(a[some], p)
        x_part = some
        first, last = np.searchsorted(y, [-_DEPTH - u, _HIGHEST - u])
        some = slice(first, last)
        q = np.exp(y[some] + u)
        value += sum_left * (b_below[-1] - b_below[last] - _dot(b[some], np.expm1(-q)))
        q *= np.exp(-q)
        sum_q = _dot(b[some], q)
        x_slope[: x_part.start] -= sum_q
        x_slope[x_part] -= sum_q * x_left
        y_slope[some] += sum_left * q
        x_bend[x_part] += sum_q * p
        y_bend[some] += sum_p * q
    h = _STEP
    x_back, y_back = np.argsort(x_order), np.argsort(y_order)
    return Sides(
        h * value,
        (h * a * x_slope)[x_back],
        (h * b * y_slope)[y_back],
        (h * a * x_bend)[x_back],
        (h * b * y_bend)[y_back],
    )


def _dot(one: Floats, other: Floats) -> float:
    # `@` would use BLAS threads, which wait for each other longer than the sum takes.
    return float(np.einsum("i,i->", one, other))


def _exponential(x: Floats, y: Floats, a: Floats, b: Floats) -> Sides:
    middle = (x.min() + y.max()) / 2
    up, down = a * np.exp(middle - x), b * np.exp(y - middle)
    x_terms, y_terms = up * down.sum(), down * up.sum()
    return Sides(float(x_terms.sum()), -x_terms, y_terms, x_terms, y_terms)


def _powers(
    x: Floats, y: Floats, a: Floats, b: Floats, corner: float, power: int, closed: bool = False
) -> Sides:
    """Sum a_i b_j times the power 1 or 2 of max(0, corner + y_j - x_i).

    `closed` determines whether the second derivative at the corner is the left-hand one.
    """
    y = y + corner
    up, down = np.argsort(y), np.argsort(-x)
    # Compare before subtracting: where x_i = y_j, rounding must not make a difference.
    above = np.searchsorted(y[up], x, side="left" if closed else "right")
    below = len(x) - np.searchsorted(x[down[::-1]], y, side="right" if closed else "left")
    center = float(y.mean())
    x, y = x - center, y - center
    # For each x_i, sum b_j and b_j y_j over y_j > x_i. For each y_j, sum over x_i < y_j.
    x_count, y_count = _sums_from(b[up], above), _sums_from(a[down], below)
    x_reach = _sums_from((b * y)[up], above) - x * x_count
    y_reach = y * y_count - _sums_from((a * x)[down], below)
    if power == 1:
        nothing = np.zeros(len(x)), np.zeros(len(y))
        return Sides(float(a @ x_reach), -a * x_count, b * y_count, *nothing)
    # (y - x)^2 = y^2 - x^2 - 2 x (y - x)
    squares = _sums_from((b * y * y)[up], above) - x * x * x_count - 2 * x * x_reach
    return Sides(
        float(a @ squares), -2 * a * x_reach, 2 * b * y_reach, 2 * a * x_count, 2 * b * y_count
    )


def _sums_from(terms: Floats, place: np.ndarray) -> Floats:
    """Return the sum of the terms from each place to the end."""
    sums: Floats = np.append(np.cumsum(terms[::-1])[::-1], 0.0)[place]
    return sums


def _smooth_hinge(x: Floats, y: Floats, a: Floats, b: Floats) -> Sides:
    # With e = 1 - d: e^2 / 2 for e > 0, minus (e - 1)^2 / 2 for e > 1, equals e - 1/2 for e > 1.
    near, far = _powers(x, y, a, b, 1.0, 2), _powers(x, y, a, b, 0.0, 2, closed=True)
    return Sides(
        (near.value - far.value) / 2,
        *((one - other) / 2 for one, other in zip(near[1:], far[1:], strict=True)),
    )


_SUMS: dict[str, Callable[[Floats, Floats, Floats, Floats], Sides]] = {
    "logistic": _logistic,
    "exponential": _exponential,
    "hinge": lambda x, y, a, b: _powers(x, y, a, b, 1.0, 1),
    "squared_hinge": lambda x, y, a, b: _powers(x, y, a, b, 1.0, 2),
    "smooth_hinge": _smooth_hinge,
}
