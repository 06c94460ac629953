"""Context columns: they describe where a document stands among the documents of its query.

A calibrated surrogate maps a whole query to scores, but a regressor sees one row at a time. Context
columns give any regressor a part of the query: the mean, the standard deviation and the ranks of
each column. They contain neither higher moments nor what columns have in common.
`tests/test_calibration.py` shows two queries that context columns cannot tell apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import (
    append_columns,
    check_features,
    column_values,
    is_dataframe,
    numeric_columns,
)
from sklearn_rankcal.utils._memory import CACHE_BYTES, rows_per_block

CONTEXTS = ("zscore", "difference", "rank")
_N_TEMPORARIES = 4  # arrays of the size of a block that `_fill` holds at the same time


def check_context(context: Any) -> tuple[str, ...]:
    """Return the requested kinds of context as a tuple without repetitions; empty for None.

    Raises
    ------
    ValueError
        If a kind is unknown.
    """
    if context is None:
        return ()
    if not isinstance(context, str | list | tuple):
        raise ValueError(
            f"context must be None, a name or a list of names; got {context!r}. Known: "
            f"{', '.join(map(repr, CONTEXTS))}."
        )
    kinds = (context,) if isinstance(context, str) else tuple(context)
    unknown = [kind for kind in kinds if kind not in CONTEXTS]
    if unknown:
        raise ValueError(
            f"Unknown context {unknown[0]!r}. Known: None, {', '.join(map(repr, CONTEXTS))}, or a "
            "list of these; CalibratedRanker also takes 'auto' alone."
        )
    return tuple(dict.fromkeys(kinds))


def context_columns(X: Any, groups: ArrayLike, context: Any = "zscore") -> Any:
    """Add the context columns with which `CalibratedRanker` fits its regressor to a table.

    Use this function to give a learner of another package the same columns in a comparison, or to
    work on these columns in a pipeline.

    Parameters
    ----------
    X : {array-like, data frame} of shape (n_documents, n_features)
        A dense table with at least one numeric column.
    groups : array-like of shape (n_documents,)
        Query id of each row.
    context : str or list of str, default="zscore"
        ``"zscore"``, ``"difference"``, ``"rank"`` or several, as in `CalibratedRanker`.

    Returns
    -------
    table : ndarray of shape (n_documents, n_features + n_numeric * n_kinds), or a frame
        The columns of X, followed by one column of each kind for each numeric column. A data frame
        keeps its type, and its new columns are named ``<column>__<kind>``.

    Raises
    ------
    ValueError
        If a kind is unknown or none is given, if X is sparse or has no numeric column, if the
        lengths of X and `groups` differ, or if an id is missing.

    Examples
    --------
    >>> from sklearn_rankcal import context_columns
    >>> context_columns([[1.0], [3.0], [7.0]], groups=["a", "a", "b"]).tolist()
    [[1.0, -1.0], [3.0, 1.0], [7.0, 0.0]]
    """
    kinds = check_context(context)
    if not kinds:
        raise ValueError(f"context must name at least one of {', '.join(map(repr, CONTEXTS))}.")
    table = check_features(X)
    return add_context(table, Queries.from_groups(groups, table.shape[0]), kinds)[0]


def add_context(
    X: Any,
    queries: Queries,
    kinds: tuple[str, ...],
    columns: list[Any] | None = None,
    dtype: Any = None,
) -> tuple[Any, NDArray[np.float64]]:
    """Add a column of each kind for each numeric column of `X`.

    Let q be the query of row i. The kind "difference" is x_i - mean_q(x). The kind "zscore" is that
    difference divided by the standard deviation sd_q(x), and 0 if all values of the query are
    equal. The kind "rank" is the share of the query's values below x_i, where equal values count
    one half, minus one half. NaN and infinite values are kept as they are and are left out of the
    means. NaN is left out of the ranks.

    Parameters
    ----------
    X : array or data frame of shape (n_rows, n_features)
    queries : Queries
    kinds : tuple of str
    columns : list, default=None
        The columns to describe, as `numeric_columns` names them. None means the numeric columns of
        `X`.
    dtype : dtype, default=None
        The dtype of the table. None means float32 if the numbers of `X` are float32, and otherwise
        float64.

    Returns
    -------
    table : ndarray of shape (n_rows, n_features + len(columns) * len(kinds)), or a data frame
        A data frame keeps its columns, and its new columns are named ``<column>__<kind>``.
    inverse_scale : ndarray of shape (len(columns),)
        Mean over queries of 1 / sd_q, where a query with sd_q = 0 contributes 0. This is the mean
        slope of "zscore".

    Raises
    ------
    ValueError
        If there is no numeric column, or if `X` has a column with the name of a new one.

    Notes
    -----
    The time is O(n_rows * n_features), plus one sort per column for "rank". The memory in addition
    to the result is one block of rows.
    """
    columns = numeric_columns(X) if columns is None else columns
    if not columns:
        raise ValueError(
            "context features need at least one numeric column of a dense table; pass context=None."
        )
    frame = is_dataframe(X)
    values = column_values(X, columns)
    n_rows, n_columns = values.shape
    first = 0 if frame else n_columns
    if dtype is None:
        dtype = np.float32 if values.dtype == np.float32 else np.float64
    table = np.empty((n_rows, first + n_columns * len(kinds)), dtype=dtype)
    inverse = np.zeros(n_columns)
    if "rank" in kinds:  # a larger block, because each call of a sort has a cost of its own
        step = rows_per_block(8 * n_columns)
    else:
        step = rows_per_block(_N_TEMPORARIES * 8 * n_columns, CACHE_BYTES)
    for rows, part in queries.chunks(step):
        block = values[rows].astype(np.float64)
        if not frame:
            table[rows, :n_columns] = block
        inverse += _fill(table, rows, first, block, part, kinds)
    inverse /= queries.n_queries
    if not frame:
        return table, inverse
    return append_columns(X, table, _names(X, columns, kinds)), inverse


def _names(X: Any, columns: list[Any], kinds: tuple[str, ...]) -> list[Any]:
    """Names of the new columns of a data frame."""
    present = list(X.columns)
    if not all(isinstance(name, str) for name in present):
        # scikit-learn ignores names that are not strings, unless they are mixed with strings.
        return list(range(len(present), len(present) + len(columns) * len(kinds)))
    names = [f"{column}__{kind}" for kind in kinds for column in columns]
    taken = set(names) & set(present)
    if taken:
        raise ValueError(
            f"X has a column {min(taken)!r}, which is the name of a context column. Rename it, or "
            "pass context=None."
        )
    return names


def _fill(
    table: NDArray[Any],
    rows: slice | NDArray[np.int64],
    first: int,
    block: NDArray[np.float64],
    queries: Queries,
    kinds: tuple[str, ...],
) -> NDArray[np.float64]:
    """Write the context columns of one block of whole queries into the table.

    Parameters
    ----------
    table : ndarray of shape (n_rows, first + width * len(kinds))
        The result, which is changed.
    rows : slice or ndarray
        The rows of the table that the block covers.
    first : int
        The first column to write.
    block : ndarray of shape (n_rows_of_block, width)
        The values to describe.
    queries : Queries
        The queries of the block.
    kinds : tuple of str

    Returns
    -------
    inverse_scale : ndarray of shape (width,)
        Sum over the queries of 1 / sd_q.
    """
    width = block.shape[1]
    flat = block
    by_query: Any = queries
    sizes = queries.sizes[:, None].astype(np.float64)
    if queries.is_uniform:
        # With queries of one size the block is an array (query, row, column). Sums over queries
        # are then sums over an axis, and NumPy's broadcasting replaces `repeat`.
        by_query = _EqualSizes()
        block = block.reshape(queries.n_queries, -1, width)
        sizes = sizes[:, None]
    # 1. Count the finite values of each query, at least 1 to divide by.
    missing = ~np.isfinite(block)
    some_missing = bool(missing.any())
    known = by_query.reduce(np.add, (~missing).astype(np.float64)) if some_missing else sizes
    count = np.maximum(known, 1.0)
    # 2. Subtract the smallest value: above = x - min >= 0. If all values are equal, this is
    # exactly 0, which x - mean need not be.
    low = by_query.reduce(np.minimum, np.where(missing, np.inf, block) if some_missing else block)
    if some_missing:
        low = np.where(known > 0, low, 0.0)
    above = block - by_query.repeat(low)
    if some_missing:
        above[missing] = 0.0
    # 3. Divide by 2^exponent, the smallest power of two above the largest value, so that
    # 0 <= above < 1. The division is exact, squares cannot overflow, and `_exact_sum` applies.
    spread = by_query.reduce(np.maximum, above)
    exponent = np.clip(np.frexp(spread)[1], -1000, 1000)
    above *= by_query.repeat(np.ldexp(1.0, -exponent))
    # 4. deviation = (x - mean) / 2^exponent, and sd = sqrt(mean of its squares), which is in the
    # same unit. A query of n rows has n < 2^bits.
    bits = np.frexp(sizes)[1]
    deviation = above
    deviation -= by_query.repeat(_exact_sum(above, bits, by_query) / count)
    squares = np.square(deviation)
    if some_missing:
        squares[missing] = 0.0
        deviation[missing] = block[missing]  # NaN and infinities are written as they are
    scale = np.sqrt(_exact_sum(squares, bits, by_query) / count)
    inverse = np.where(scale > 0, 1.0 / np.where(scale > 0, scale, 1.0), 0.0)
    # 5. Write the columns, all of one kind side by side.
    for number, kind in enumerate(kinds):
        target = slice(first + number * width, first + (number + 1) * width)
        if kind == "difference":
            own = deviation * by_query.repeat(np.ldexp(1.0, exponent))
            table[rows, target] = own.reshape(-1, width)
        elif kind == "zscore":
            with np.errstate(invalid="ignore"):  # an infinite value, which is put back below
                own = deviation * by_query.repeat(inverse)
            if some_missing:
                own[missing] = block[missing]  # infinity times an inverse of 0 would be NaN
            table[rows, target] = own.reshape(-1, width)
        else:
            table[rows, target] = _ranks(flat, np.isnan(flat), queries)
    # 6. 1 / sd in the unit of x. It overflows for a spread below 1e-308, which counts as 0.
    with np.errstate(over="ignore"):
        slope = np.ldexp(inverse, -exponent)
    return np.where(np.isfinite(slope), slope, 0.0).reshape(-1, width).sum(axis=0)


class _EqualSizes:
    """`reduce` and `repeat` of `Queries` for queries of one size: arrays (query, row, column)."""

    @staticmethod
    def reduce(ufunc: np.ufunc, grouped: NDArray[Any]) -> NDArray[Any]:
        return ufunc.reduce(grouped, axis=1, keepdims=True)

    @staticmethod
    def repeat(per_query: NDArray[Any]) -> NDArray[Any]:
        return per_query


def _exact_sum(
    values: NDArray[np.float64], bits: NDArray[np.int32], by_query: Any
) -> NDArray[np.float64]:
    """Sum over each query so that the result does not depend on the order of the rows.

    The last digit of a floating-point sum depends on the order of its terms, and a tree may split
    at exactly that digit. Therefore values in [0, 1] of queries of fewer than 2^bits rows are first
    rounded to 51 - bits binary places. Every partial sum of the rounded values is exact.

    Rounding the finished columns to float32 instead would save about half of the time (0.12 s
    instead of 0.32 s for 200,000 rows of 100 columns, with the same memory), but does not make
    them independent of the order. Where x - mean is 0 up to rounding, all digits depend on the
    order: 8,626 of 40 million cells still differed for values with one decimal.
    """
    # Adding 1.5 * 2^(bits + 1) leaves 51 - bits binary places; subtracting it again is exact.
    constant = by_query.repeat(np.ldexp(1.5, bits + 1))
    rounded = values + constant
    rounded -= constant
    return by_query.reduce(np.add, rounded)


def _ranks(
    block: NDArray[np.float64], missing: NDArray[np.bool_], queries: Queries
) -> NDArray[np.float64]:
    """Share of the query's values below each value, equal values counting half, minus one half."""
    from sklearn_rankcal.queries import Ranking

    result = np.empty_like(block)
    for column in range(block.shape[1]):  # one sort per feature
        values = np.where(missing[:, column], np.inf, block[:, column])
        ranked = Ranking.from_scores(-values, queries)  # ascending values, missing ones last
        known = queries.repeat(queries.reduce(np.add, (~missing[:, column]).astype(np.float64)))
        place = (
            queries.place + 0.5
            if ranked.start is None or ranked.stop is None
            else (ranked.start + np.minimum(ranked.stop, known)) / 2  # +inf ties with missing ones
        )
        share = place / np.maximum(known, 1.0) - 0.5
        result[ranked.order, column] = share
    result[missing] = np.nan
    return result
