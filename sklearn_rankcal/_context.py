"""Query context: features of a document inside its query, for regressors that see one document.

A calibrated surrogate maps a whole query to scores, but a regressor sees a row. Columns that say
where the row stands among the documents of its query give any regressor that view.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal._queries import Queries
from sklearn_rankcal._tables import append_columns, column_values, is_frame, numeric_columns

CONTEXTS = ("zscore", "difference", "rank")
_BLOCK = 1 << 15  # cells handled at a time: temporaries stay in the processor's cache
_RANK_BLOCK = 1 << 22  # more for ranks, whose sorts have a cost per call


def check_context(context: Any) -> tuple[str, ...]:
    """The kinds of context asked for, as a tuple; None is none.

    Raises
    ------
    ValueError
        An unknown kind.
    """
    if context is None:
        return ()
    kinds = (context,) if isinstance(context, str) else tuple(context)
    unknown = [kind for kind in kinds if kind not in CONTEXTS]
    if unknown:
        raise ValueError(
            f"Unknown context {unknown[0]!r}. Known: 'auto', None, "
            f"{', '.join(map(repr, CONTEXTS))}, or a list of these."
        )
    return kinds


def add_context(
    X: Any, queries: Queries, kinds: tuple[str, ...]
) -> tuple[Any, NDArray[np.float64]]:
    """`X` with a column of each kind for each numeric column, and the mean 1 / sd of each.

    With q the query of row i: "difference" is x_i - mean_q(x); "zscore" is that over the standard
    deviation sd_q(x), 0 where the query's values are all equal; "rank" is the share of the query's
    values below x_i, equal values counting half, minus one half. NaN stays NaN and does not enter
    means or ranks.

    Returns
    -------
    table : ndarray of shape (n_rows, n_features * (1 + len(kinds))), or a frame
        float32 when the numbers of `X` are float32, else float64. A frame keeps its columns and
        gains columns named ``<column>__<kind>``.
    inverse_scale : ndarray of shape (n_numeric,)
        Mean over queries of 1 / sd_q, with 0 where sd_q is 0: the average slope of "zscore".

    Notes
    -----
    O(n_rows * n_features), plus a sort per column for "rank"; beside the result a bounded working
    memory.
    """
    columns = numeric_columns(X)
    if not columns:
        raise ValueError(
            "context features need at least one numeric column of a dense table; pass "
            "context=None."
        )
    frame = is_frame(X)
    values = column_values(X, columns) if frame else X
    n_rows, n_columns = values.shape
    first = 0 if frame else n_columns
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    table = np.empty((n_rows, first + n_columns * len(kinds)), dtype=dtype)
    inverse = np.zeros(n_columns)
    cells = _RANK_BLOCK if "rank" in kinds else _BLOCK
    for rows, part in queries.chunks(max(1, cells // n_columns)):
        block = values[rows].astype(np.float64)
        if not frame:
            table[rows, :n_columns] = block
        inverse += _fill(table, rows, first, block, part, kinds)
    inverse /= queries.n_queries
    if not frame:
        return table, inverse
    names = [f"{column}__{kind}" for kind in kinds for column in columns]
    return append_columns(X, table, names), inverse


def _fill(
    table: NDArray[Any],
    rows: slice | NDArray[np.int64],
    first: int,
    block: NDArray[np.float64],
    queries: Queries,
    kinds: tuple[str, ...],
) -> NDArray[np.float64]:
    """Write the context of one chunk of whole queries; return the sum of 1 / sd over them."""
    width = block.shape[1]
    flat = block
    by_query: Any = queries
    sizes = queries.sizes[:, None].astype(np.float64)
    if queries.is_uniform:  # rows by queries: reductions over an axis, and no repeating
        by_query = _Uniform()
        block = block.reshape(queries.n_queries, -1, width)
        sizes = sizes[:, None]
    missing = np.isnan(block)
    some_missing = bool(missing.any())
    known = by_query.reduce(np.add, (~missing).astype(np.float64)) if some_missing else sizes
    count = np.maximum(known, 1.0)
    with np.errstate(invalid="ignore", over="ignore"):  # infinities are the regressor's business
        above = block - by_query.repeat(by_query.reduce(np.fmin, block))
        if some_missing:
            above[missing] = 0.0
        spread = by_query.reduce(np.maximum, above)  # exactly 0 when all values are equal
        mean = _exact_sum(above, spread, sizes, by_query) / count
        deviation = above
        deviation -= by_query.repeat(mean)
        squares = np.square(deviation)
        if some_missing:
            squares[missing] = 0.0
            deviation[missing] = np.nan
        scale = np.sqrt(_exact_sum(squares, np.square(spread), sizes, by_query) / count)
        inverse = np.where(scale > 0, 1.0 / np.where(scale > 0, scale, 1.0), 0.0)
    for number, kind in enumerate(kinds):
        target = slice(first + number * width, first + (number + 1) * width)
        if kind == "difference":
            table[rows, target] = deviation.reshape(-1, width)
        elif kind == "zscore":
            table[rows, target] = (deviation * by_query.repeat(inverse)).reshape(-1, width)
        else:
            table[rows, target] = _ranks(flat, missing.reshape(-1, width), queries)
    return inverse.reshape(-1, width).sum(axis=0)


class _Uniform:
    """`reduce` and `repeat` of queries of one size, as arrays (query, row, column)."""

    @staticmethod
    def reduce(ufunc: np.ufunc, grouped: NDArray[Any]) -> NDArray[Any]:
        return ufunc.reduce(grouped, axis=1, keepdims=True)

    @staticmethod
    def repeat(per_query: NDArray[Any]) -> NDArray[Any]:
        return per_query


def _exact_sum(
    values: NDArray[np.float64],
    largest: NDArray[np.float64],
    sizes: NDArray[np.float64],
    by_query: Any,
) -> NDArray[np.float64]:
    """Sums over queries that do not depend on the order of the rows.

    Floating-point sums do, in the last digit, and a tree may split just there. Non-negative values
    up to `largest` are first rounded, by adding and subtracting a large constant, to so many bits
    (51 less those of the query's size) that every partial sum is exact.
    """
    bits = np.frexp(sizes)[1]
    constant = by_query.repeat(np.ldexp(1.5, np.frexp(largest)[1] + bits + 1))
    rounded = values + constant
    rounded -= constant
    return by_query.reduce(np.add, rounded)


def _ranks(
    block: NDArray[np.float64], missing: NDArray[np.bool_], queries: Queries
) -> NDArray[np.float64]:
    from sklearn_rankcal._ranked import Ranked

    result = np.empty_like(block)
    for column in range(block.shape[1]):  # one sort per feature
        values = np.where(missing[:, column], np.inf, block[:, column])
        ranked = Ranked.from_scores(-values, queries)  # ascending values, missing ones last
        place = (
            queries.place + 0.5
            if ranked.start is None or ranked.stop is None
            else (ranked.start + ranked.stop) / 2
        )
        known = queries.reduce(np.add, (~missing[:, column]).astype(np.float64))
        share = place / queries.repeat(np.maximum(known, 1.0)) - 0.5
        result[ranked.order, column] = share
    result[missing] = np.nan
    return result
