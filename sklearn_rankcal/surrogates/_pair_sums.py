"""Sums over pairs of documents of a convex function of their margin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints


@dataclass(frozen=True)
class Margin:
    """A function phi of the margin d, with its first two derivatives: phi(d) = f(end - d).

    `code` identifies phi in the compiled kernels. f is increasing and convex, and ``f(x)`` returns
    its value and two derivatives. A hinge is 0 for margins of at least `end`. At the corner of
    "hinge", the slope of phi is the right-hand slope, and the curvature is 0.
    """

    name: str
    code: int
    end: float
    f: Callable[[Floats], tuple[Floats, Floats, Floats]]

    def at(self, d: Floats) -> tuple[Floats, Floats, Floats]:
        """Return phi(d), phi'(d) and phi''(d)."""
        value, slope, curvature = self.f(self.end - d)
        return value, -slope, curvature


_LARGEST_EXPONENT = 400.0


def capped_exp(x: Floats) -> Floats:
    """Compute e^x up to x = 400, and e^400 above: the slope of `straightened_exp`."""
    return np.exp(np.minimum(x, _LARGEST_EXPONENT))


def straightened_exp(x: Floats) -> Floats:
    """Compute e^x up to x = 400 and its tangent above, which keeps sums and products finite."""
    return capped_exp(x) * (1.0 + np.maximum(x - _LARGEST_EXPONENT, 0.0))


def _logistic(x: Floats) -> tuple[Floats, Floats, Floats]:
    small = np.exp(-np.abs(x))  # neither overflows nor cancels
    total = 1.0 + small
    slope: Floats = np.where(x > 0, 1.0, small) / total
    return np.maximum(x, 0.0) + np.log1p(small), slope, small / (total * total)


def _exponential(x: Floats) -> tuple[Floats, Floats, Floats]:
    slope = capped_exp(x)
    return straightened_exp(x), slope, slope


def _hinge(x: Floats) -> tuple[Floats, Floats, Floats]:
    return np.maximum(x, 0.0), (x > 0).astype(np.float64), np.zeros(x.shape)


def _squared_hinge(x: Floats) -> tuple[Floats, Floats, Floats]:
    short = np.maximum(x, 0.0)
    return np.square(short), 2.0 * short, np.where(x > 0, 2.0, 0.0)


def _smooth_hinge(x: Floats) -> tuple[Floats, Floats, Floats]:
    short = np.maximum(x, 0.0)
    slope = np.minimum(short, 1.0)
    return slope * (short - slope / 2), slope, ((x > 0) & (x < 1)).astype(np.float64)


#: "logistic" is log(1 + e^-d). "exponential" is e^-d, continued as a straight line below d = -400.
#: "hinge" is max(0, 1 - d), and "squared_hinge" is its square. "smooth_hinge" is x^2 / 2 for
#: x = max(0, 1 - d) <= 1, and x - 1/2 above.
MARGINS = {
    margin.name: margin
    for margin in (
        Margin("logistic", 0, 0.0, _logistic),
        Margin("exponential", 1, 0.0, _exponential),
        Margin("hinge", 2, 1.0, _hinge),
        Margin("squared_hinge", 3, 1.0, _squared_hinge),
        Margin("smooth_hinge", 4, 1.0, _smooth_hinge),
    )
}


OfDifference = Callable[[Floats], Floats]
Function = str | OfDifference
#: With fewer pairs, starting threads takes longer than summing the pairs.
_PAIRS_PER_THREAD = 1 << 20
#: Approximate time per ordered pair, in seconds, in NumPy and in the compiled kernel.
_SECONDS = {False: 1e-7, True: 6e-9}
_LONG = 1.0  # warn if one evaluation takes longer than this number of seconds
_N_TEMPORARIES = 8  # arrays of the size of a block of pairs that exist at the same time

#: Functions of a difference of utilities, by name.
FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {
    "binary": np.ones_like,
    "difference": np.positive,
}
_CODES: dict[Any, int] = {"binary": 1, "difference": 2}  # their codes in the kernel


def pair_sums(
    v: Floats,
    s: Floats,
    queries: Queries,
    margin: Margin,
    *,
    weight: Function | None = None,
    required: Function | None = None,
    n_jobs: int | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Compute sum_ij w_ij phi(s_i - s_j - h_ij) of each query, its gradient and its curvature.

    `weight` is the function w of v_i - v_j for the pairs with v_i > v_j; all other pairs have
    weight 0. If None, w_ij = v_i for all i != j. `required` is the function h of the same
    difference; None means 0. The rows of each query are contiguous.

    A large query with few levels of utility takes O(r log r) time per level (see `level_sums`). All
    other queries of r documents take O(r^2) time. The compiled kernel needs O(r) memory and, for
    logistic margins, one exponential per document. NumPy needs the memory of a block of pairs.
    """
    functions = function_of(weight), function_of(required)
    value, gradient, curvature = np.empty(queries.n_queries), np.empty_like(s), np.empty_like(s)
    alone = np.ones(queries.n_queries, dtype=bool)  # whether pairs are summed one at a time
    for q in np.flatnonzero(queries.sizes >= SHORTEST):  # a loop over few, slow queries
        rows = slice(*queries.offsets[q : q + 2])
        if has_level_sums(v[rows], s[rows], margin, *functions):
            value[q], gradient[rows], curvature[rows] = level_sums(
                v[rows], s[rows], margin, *functions
            )
            alone[q] = False
    if alone.any():
        some = np.repeat(alone, queries.sizes)
        rest = queries if alone.all() else Queries(np.append(0, np.cumsum(queries.sizes[alone])))
        sums = _add_pairs(v[some], s[some], rest, margin, weight, required, n_jobs)
        value[alone], gradient[some], curvature[some] = sums
    return value, gradient, curvature


def _add_pairs(
    v: Floats,
    s: Floats,
    queries: Queries,
    margin: Margin,
    weight: Function | None,
    required: Function | None,
    n_jobs: int | None,
) -> tuple[Floats, Floats, Floats]:
    """Sum pairs one at a time, in the compiled kernel or in NumPy."""
    largest, n_all = int(queries.sizes.max()), int(np.square(queries.sizes).sum())
    compiled = kernels.pair_sums is not None and not callable(weight) and not callable(required)
    seconds = n_all * _SECONDS[compiled] / effective_n_jobs(n_jobs)
    if seconds > _LONG:
        warn(
            f"Adding up the margins of {n_all:,} pairs of documents takes about {seconds:,.0f} s, "
            "and fitting does it many times. The largest query has "
            f"{largest:,} documents. Sums take O(r log r) time for utilities with few different "
            f"values (here up to {largest // 100:,} for hinges, less for logistic margins with "
            "widely spread scores), and for the surrogates 'softmax' and 'pairwise_squared'."
        )
    if not compiled or kernels.pair_sums is None:
        return _numpy_sums(v, s, queries, margin, function_of(weight), function_of(required))
    codes = 0 if weight is None else _CODES[weight], -1 if required is None else _CODES[required]
    v, s = np.ascontiguousarray(v), np.ascontiguousarray(s)
    value, gradient, curvature = np.empty(queries.n_queries), np.empty_like(s), np.empty_like(s)
    n_pairs = np.cumsum(queries.sizes**2)
    n_threads = int(min(effective_n_jobs(n_jobs), 1 + n_pairs[-1] // _PAIRS_PER_THREAD))
    edges = np.searchsorted(n_pairs, n_pairs[-1] * np.arange(1, n_threads) / n_threads)
    edges = np.unique(np.concatenate([[0], edges, [queries.n_queries]]))

    def add(first: int, last: int) -> None:
        kernels.pair_sums(
            v, s, queries.offsets, first, last, margin.code, *codes, value, gradient, curvature
        )

    parts = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    if len(edges) == 2:
        add(0, queries.n_queries)
    else:
        Parallel(n_jobs=n_threads, prefer="threads")(delayed(add)(*part) for part in parts)
    return value, gradient, curvature


def function_of(given: Function | None) -> OfDifference | None:
    """Return a function given by name or as a callable."""
    return FUNCTIONS[given] if isinstance(given, str) else given


def _numpy_sums(
    v: Floats,
    s: Floats,
    queries: Queries,
    margin: Margin,
    weight: Callable[[Floats], Floats] | None,
    required: Callable[[Floats], Floats] | None,
) -> tuple[Floats, Floats, Floats]:
    """`pair_sums` in NumPy."""
    value, gradient, curvature = np.zeros(queries.n_queries), np.zeros_like(s), np.zeros_like(s)
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    for upper, lower, pairs in _blocks(queries):
        difference = v[upper][:, :, None] - v[lower][:, None, :]
        if weight is None:
            pairs &= upper[:, :, None] != lower[:, None, :]
            w = np.where(pairs, v[upper][:, :, None], 0.0)
        else:
            pairs &= difference > 0
            w = np.zeros(pairs.shape)
            w[pairs] = weight(difference[pairs])
        d = s[upper][:, :, None] - s[lower][:, None, :]
        if required is not None:
            d[pairs] -= required(difference[pairs])
        # The margin of an excluded pair can be infinite, and 0 times infinity is NaN.
        counted = w != 0
        terms, slope, bend = (
            np.multiply(w, term, out=np.zeros(w.shape), where=counted) for term in margin.at(d)
        )
        np.add.at(value, query[upper[:, 0]], terms.sum(axis=(1, 2)))
        np.add.at(gradient, upper, slope.sum(axis=2))
        np.add.at(gradient, lower, -slope.sum(axis=1))
        np.add.at(curvature, upper, bend.sum(axis=2))
        np.add.at(curvature, lower, bend.sum(axis=1))
    return value, gradient, curvature


def _blocks(queries: Queries) -> Iterator[tuple[Ints, Ints, Bools]]:
    """Yield the places (n, a) of some documents of n queries, (n, b) of all, and valid pairs."""
    for inside, valid in queries.buckets():
        width = inside.shape[1]
        n_rows = rows_per_block(_N_TEMPORARIES * 8 * width)
        n_queries, n_documents = max(1, n_rows // width), min(width, n_rows)
        for first in range(0, len(inside), n_queries):
            part = slice(first, first + n_queries)
            for top in range(0, width, n_documents):
                some = slice(top, top + n_documents)
                pairs = valid[part, some, None] & valid[part, None, :]
                yield inside[part, some], inside[part], pairs


# Sums for a large query with few levels of utility, without forming the pairs. All documents of a
# level have the same weight for a document below the level, so sums are computed from sorted scores
# or as products of sums.

#: In shorter queries, pairs are summed one by one.
SHORTEST = 1000
#: Time of the sums for one level, measured in pairs per document.
_SORTED_COST = 100
_NODE_COST = 10  # for each node of the integral of logistic margins and each document
_LOOP_COST = 10_000  # for each node
#: Step of the integral. The trapezoidal rule is then exact up to rounding; see `_logistic_sides`.
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


def has_level_sums(
    v: Floats,
    s: Floats,
    margin: Margin,
    weight: OfDifference | None,
    required: OfDifference | None,
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
    v: Floats,
    s: Floats,
    margin: Margin,
    weight: OfDifference | None,
    required: OfDifference | None,
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


def _logistic_sides(x: Floats, y: Floats, a: Floats, b: Floats) -> Sides:
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


def _exponential_sides(x: Floats, y: Floats, a: Floats, b: Floats) -> Sides:
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


def _smooth_hinge_sides(x: Floats, y: Floats, a: Floats, b: Floats) -> Sides:
    # With e = 1 - d: e^2 / 2 for e > 0, minus (e - 1)^2 / 2 for e > 1, equals e - 1/2 for e > 1.
    near, far = _powers(x, y, a, b, 1.0, 2), _powers(x, y, a, b, 0.0, 2, closed=True)
    return Sides(
        (near.value - far.value) / 2,
        *((one - other) / 2 for one, other in zip(near[1:], far[1:], strict=True)),
    )


_SUMS: dict[str, Callable[[Floats, Floats, Floats, Floats], Sides]] = {
    "logistic": _logistic_sides,
    "exponential": _exponential_sides,
    "hinge": lambda x, y, a, b: _powers(x, y, a, b, 1.0, 1),
    "squared_hinge": lambda x, y, a, b: _powers(x, y, a, b, 1.0, 2),
    "smooth_hinge": _smooth_hinge_sides,
}
