"""`_compiled_context.pyx` in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Number of arrays of the size of `values` that `describe` holds at the same time.
N_TEMPORARIES = 4


def describe(
    values: NDArray[Any],
    source: slice | NDArray[np.int64],
    offsets: NDArray[np.int64],
    out: NDArray[Any],
    target: slice | NDArray[np.int64],
    zscore: int,
    difference: int,
    slopes: Floats,
) -> None:
    """Write the z-scores and the differences from the mean of whole queries.

    `values` (n_rows, width) are float32 or float64. The means ignore NaN and infinite values, which
    are written unchanged. Query q has the places ``offsets[q]`` to ``offsets[q + 1] - 1`` of
    `source`, which are rows of `values`; `target` are the matching rows of `out`. `zscore` and
    `difference` are the first column of `out` for columns of this kind, or -1 for none. `slopes`
    (n_queries, width) receives 1 / sd of each query, and 0 for a query with sd = 0.
    """
    width = values.shape[1]
    by_query = _ByQuery(offsets)
    block = values[source].astype(np.float64)
    sizes = by_query.sizes[:, None].astype(np.float64)
    # 1. The smallest and largest finite values, and their number, at least 1 because it divides.
    missing = ~np.isfinite(block)
    some_missing = bool(missing.any())
    known = by_query.reduce(np.add, (~missing).astype(np.float64)) if some_missing else sizes
    count = np.maximum(known, 1.0)
    low = by_query.reduce(np.minimum, np.where(missing, np.inf, block) if some_missing else block)
    high = by_query.reduce(np.maximum, np.where(missing, -np.inf, block) if some_missing else block)
    if some_missing:
        low, high = np.where(known > 0, low, 0.0), np.where(known > 0, high, 0.0)
    # 2. The smallest power of two above the spread, 2^exponent. 1e308 - (-1e308) overflows.
    with np.errstate(over="ignore"):
        spread = high - low
    large = np.isinf(spread)
    exponent = np.frexp(np.where(large, 0.5 * high - 0.5 * low, spread))[1] + large
    exponent = np.maximum(exponent, -1023)  # because 2^1024 would overflow
    factor = np.ldexp(1.0, -exponent)
    # 3. above = (x - low) / 2^exponent. If all values are equal, it is exactly 0, unlike x - mean.
    # The division is exact, 0 <= above < 1, and squares cannot overflow.
    with np.errstate(invalid="ignore"):  # infinite values times 0
        above = block * by_query.repeat(factor)
    above -= by_query.repeat(low * factor)
    if some_missing:
        above[missing] = 0.0
    # 4. deviation = (x - mean) / 2^exponent, and sd = sqrt(mean of its squares) in the same unit. A
    # query of n rows has n < 2^bits.
    bits = np.frexp(sizes)[1]
    deviation = above
    deviation -= by_query.repeat(_exact_sum(above, bits, by_query) / count)
    squares = np.square(deviation)
    if some_missing:
        squares[missing] = 0.0
    scale = np.sqrt(_exact_sum(squares, bits, by_query) / count)
    inverse = np.where(scale > 0, 1.0 / np.where(scale > 0, scale, 1.0), 0.0)
    # 5. Write the columns, with all columns of one kind side by side.
    if zscore >= 0:
        own = deviation * by_query.repeat(inverse)
        if some_missing:
            own[missing] = block[missing]
        with np.errstate(over="ignore"):  # an infinite value of float64 may be written as float32
            out[target, zscore : zscore + width] = own.reshape(-1, width)
    if difference >= 0:
        # 2^1024 and 2^1025 exceed the largest number: multiply by 2^1000 and then by the rest.
        first = np.minimum(exponent, 1000)
        own = deviation * by_query.repeat(np.ldexp(1.0, first))
        with np.errstate(over="ignore"):
            own *= by_query.repeat(np.ldexp(1.0, exponent - first))
        if some_missing:
            own[missing] = block[missing]
        with np.errstate(over="ignore"):
            out[target, difference : difference + width] = own.reshape(-1, width)
    # 6. 1 / sd in the unit of x. It overflows for a spread below 1e-308, which is treated as 0.
    with np.errstate(over="ignore"):
        slopes[:] = np.ldexp(inverse, -exponent).reshape(-1, width)
    slopes[~np.isfinite(slopes)] = 0.0


def find_bins(bounds: Floats, values: Floats) -> NDArray[np.int64]:
    """Return, for each value, the number of ascending bounds (at least one) that are <= it."""
    return np.searchsorted(bounds, values, side="right")


class _ByQuery:
    """Sums over queries of an array (row, column), and repetition of values per query."""

    def __init__(self, offsets: NDArray[np.int64]) -> None:
        self.first, self.sizes = offsets[:-1], np.diff(offsets)

    def reduce(self, ufunc: np.ufunc, rows: NDArray[Any]) -> NDArray[Any]:
        return ufunc.reduceat(rows, self.first, axis=0)

    def repeat(self, per_query: NDArray[Any]) -> NDArray[Any]:
        return np.repeat(per_query, self.sizes, axis=0)


def _exact_sum(values: Floats, bits: NDArray[np.int32], by_query: _ByQuery) -> Floats:
    """Sum over each query with a result that does not depend on the order of the rows.

    The last digit of a floating-point sum depends on the order of its terms, and a tree may split
    at exactly that digit. Therefore values in [0, 1] are first rounded to 51 - bits binary places,
    for queries of fewer than 2^bits rows. Every partial sum of the rounded values is exact.
    """
    # Adding 1.5 * 2^(bits + 1) leaves 51 - bits binary places; subtracting it again is exact.
    constant = by_query.repeat(np.ldexp(1.5, bits + 1))
    rounded = values + constant
    rounded -= constant
    return by_query.reduce(np.add, rounded)
