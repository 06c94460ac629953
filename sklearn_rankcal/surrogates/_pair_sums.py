"""Sums over pairs of documents of a convex function of their margin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates._level_sums import SHORTEST, has_level_sums, level_sums
from sklearn_rankcal.surrogates._margins import Margin
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints

Function = str | Callable[[Floats], Floats]
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


def function_of(given: Function | None) -> Callable[[Floats], Floats] | None:
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
        terms, slope, bend = (_product(w, term, counted) for term in margin.at(d))
        np.add.at(value, query[upper[:, 0]], terms.sum(axis=(1, 2)))
        np.add.at(gradient, upper, slope.sum(axis=2))
        np.add.at(gradient, lower, -slope.sum(axis=1))
        np.add.at(curvature, upper, bend.sum(axis=2))
        np.add.at(curvature, lower, bend.sum(axis=1))
    return value, gradient, curvature


def _product(w: Floats, values: Floats, counted: Bools) -> Floats:
    """Return the product where `counted` is True, and 0 elsewhere."""
    return np.multiply(w, values, out=np.zeros(w.shape), where=counted)


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
