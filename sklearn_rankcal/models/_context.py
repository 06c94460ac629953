"""Query context: features of a document inside its query, for regressors that see one document.

A calibrated surrogate maps a whole query to scores, but a regressor sees a row. Columns that say
where the row stands among the documents of its query give any regressor part of that view: the
mean, the standard deviation and the rank of a column, and neither its higher moments nor what
columns have in common. `tests/test_calibration.py` shows two queries that they do not tell apart.
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

CONTEXTS = ("zscore", "difference", "rank")
_BLOCK = 1 << 15  # cells handled at a time: temporaries stay in the processor's cache
_RANK_BLOCK = 1 << 22  # more for ranks, whose sorts have a cost per call


def check_context(context: Any) -> tuple[str, ...]:
    """The kinds of context asked for, as a tuple without repetition; None is none.

    Raises
    ------
    ValueError
        An unknown kind.
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
    """Write the context columns that `CalibratedRanker` shows its regressor into a table.

    For learners of other packages, so that they see in a comparison what the ranker's regressor
    sees, and for pipelines that are to work on these columns.

    Parameters
    ----------
    X : {array-like, data frame} of shape (n_documents, n_features)
        Dense, with a numeric column.
    groups : array-like of shape (n_documents,)
        Query id of each row.
    context : str or list of str, default="zscore"
        ``"zscore"``, ``"difference"``, ``"rank"`` or several, as in `CalibratedRanker`.

    Returns
    -------
    table : ndarray of shape (n_documents, n_features + n_numeric * n_kinds), or a frame
        The columns of X, then one of each kind for each numeric column. A frame keeps its type, and
        the new columns are named ``<column>__<kind>``.

    Raises
    ------
    ValueError
        An unknown kind or none, a sparse X, no numeric column, lengths that differ, a missing id.

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
    """`X` with a column of each kind for each numeric column, and the mean 1 / sd of each.

    With q the query of row i: "difference" is x_i - mean_q(x); "zscore" is that over the standard
    deviation sd_q(x), 0 where the query's values are all equal; "rank" is the share of the query's
    values below x_i, equal values counting half, minus one half. NaN and infinities stay what they
    are and do not enter means; NaN does not enter ranks.

    Parameters
    ----------
    X : array or frame of shape (n_rows, n_features)
    queries : Queries
    kinds : tuple of str
    columns : list, default=None
        Columns to describe, as `numeric_columns` names them; None: those of `X`.
    dtype : dtype, default=None
        Of the table; None: float32 when the numbers of `X` are float32, else float64.

    Returns
    -------
    table : ndarray of shape (n_rows, n_features + len(columns) * len(kinds)), or a frame
        A frame keeps its columns and gains columns named ``<column>__<kind>``.
    inverse_scale : ndarray of shape (len(columns),)
        Mean over queries of 1 / sd_q, with 0 where sd_q is 0: the average slope of "zscore".

    Raises
    ------
    ValueError
        No numeric column, or a name that is taken.

    Notes
    -----
    O(n_rows * n_features), plus a sort per column for "rank"; beside the result a bounded working
    memory.
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
    cells = _RANK_BLOCK if "rank" in kinds else _BLOCK
    for rows, part in queries.chunks(max(1, cells // n_columns)):
        block = values[rows].astype(np.float64)
        if not frame:
            table[rows, :n_columns] = block
        inverse += _fill(table, rows, first, block, part, kinds)
    inverse /= queries.n_queries
    if not frame:
        return table, inverse
    return append_columns(X, table, _names(X, columns, kinds)), inverse


def _names(X: Any, columns: list[Any], kinds: tuple[str, ...]) -> list[Any]:
    """Names of the new columns of a frame."""
    present = list(X.columns)
    if not all(isinstance(name, str) for name in present):
        # scikit-learn ignores such names, unless strings stand among them
        return list(range(len(present), len(present) + len(columns) * len(kinds)))
    names = [f"{column}__{kind}" for kind in kinds for column in columns]
    taken = set(names) & set(present)
    if taken:
        raise ValueError(
            f"X has a column {min(taken)!r}, which is the name of a context column: rename it, or "
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
    """Write the context of one chunk of whole queries; return the sum of 1 / sd over them."""
    width = block.shape[1]
    flat = block
    by_query: Any = queries
    sizes = queries.sizes[:, None].astype(np.float64)
    if queries.is_uniform:  # rows by queries: reductions over an axis, and no repeating
        by_query = _Uniform()
        block = block.reshape(queries.n_queries, -1, width)
        sizes = sizes[:, None]
    missing = ~np.isfinite(block)
    some_missing = bool(missing.any())
    known = by_query.reduce(np.add, (~missing).astype(np.float64)) if some_missing else sizes
    count = np.maximum(known, 1.0)
    low = by_query.reduce(np.minimum, np.where(missing, np.inf, block) if some_missing else block)
    if some_missing:
        low = np.where(known > 0, low, 0.0)
    above = block - by_query.repeat(low)
    if some_missing:
        above[missing] = 0.0
    spread = by_query.reduce(np.maximum, above)  # exactly 0 when all values are equal
    # in units of a power of 2 (exact) just above the spread, so that squares cannot overflow
    exponent = np.clip(np.frexp(spread)[1], -1000, 1000)
    above *= by_query.repeat(np.ldexp(1.0, -exponent))
    bits = np.frexp(sizes)[1]
    deviation = above
    deviation -= by_query.repeat(_exact_sum(above, bits, by_query) / count)
    squares = np.square(deviation)
    if some_missing:
        squares[missing] = 0.0
        deviation[missing] = block[missing]
    scale = np.sqrt(_exact_sum(squares, bits, by_query) / count)
    inverse = np.where(scale > 0, 1.0 / np.where(scale > 0, scale, 1.0), 0.0)
    for number, kind in enumerate(kinds):
        target = slice(first + number * width, first + (number + 1) * width)
        if kind == "difference":
            own = deviation * by_query.repeat(np.ldexp(1.0, exponent))
            table[rows, target] = own.reshape(-1, width)
        elif kind == "zscore":
            own = deviation * by_query.repeat(inverse)
            if some_missing:
                own[missing] = block[missing]
            table[rows, target] = own.reshape(-1, width)
        else:
            table[rows, target] = _ranks(flat, np.isnan(flat), queries)
    with np.errstate(over="ignore"):
        slope = np.ldexp(inverse, -exponent)
    return np.where(np.isfinite(slope), slope, 0.0).reshape(-1, width).sum(axis=0)


class _Uniform:
    """`reduce` and `repeat` of queries of one size, as arrays (query, row, column)."""

    @staticmethod
    def reduce(ufunc: np.ufunc, grouped: NDArray[Any]) -> NDArray[Any]:
        return ufunc.reduce(grouped, axis=1, keepdims=True)

    @staticmethod
    def repeat(per_query: NDArray[Any]) -> NDArray[Any]:
        return per_query


def _exact_sum(
    values: NDArray[np.float64], bits: NDArray[np.int32], by_query: Any
) -> NDArray[np.float64]:
    """Sums over queries of fewer than 2^bits rows that do not depend on the order of the rows.

    Floating-point sums do, in the last digit, and a tree may split just there. Values in [0, 1] are
    first rounded to 51 - bits binary places, by adding and subtracting a large constant; then every
    partial sum is exact.
    """
    constant = by_query.repeat(np.ldexp(1.5, bits + 1))
    rounded = values + constant
    rounded -= constant
    return by_query.reduce(np.add, rounded)


def _ranks(
    block: NDArray[np.float64], missing: NDArray[np.bool_], queries: Queries
) -> NDArray[np.float64]:
    from sklearn_rankcal.queries import Ranking

    result = np.empty_like(block)
    for column in range(block.shape[1]):  # one sort per feature
        values = np.where(missing[:, column], np.inf, block[:, column])
        ranking = Ranking.from_scores(-values, queries)  # ascending values, missing ones last
        known = queries.repeat(queries.reduce(np.add, (~missing[:, column]).astype(np.float64)))
        place = (
            queries.place + 0.5
            if ranking.start is None or ranking.stop is None
            else (ranking.start + np.minimum(ranking.stop, known))
            / 2  # +inf ties with missing ones
        )
        share = place / np.maximum(known, 1.0) - 0.5
        result[ranking.order, column] = share
    result[missing] = np.nan
    return result
