"""Context columns, which compare a document with the rest of its query.

A calibrated surrogate maps a whole query to scores, but a regressor sees one row at a time. Context
columns give any regressor information about the query.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import (
    append_columns,
    category_codes,
    category_columns,
    check_features,
    column_values,
    is_dataframe,
    numeric_columns,
)
from sklearn_rankcal.utils._memory import CACHE_BYTES, rows_per_block
from sklearn_rankcal.utils._threads import allowed_threads, map_in_order
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

_FEWEST_BLOCKS = 8  # threads are not worth their start for fewer blocks

SHARE = "share"  # the kind for category columns; the other kinds are for numeric columns
_NOTHING_TO_DESCRIBE = (
    "context={!r} needs at least one numeric column of a dense table; pass context=None.",
    "context={!r} needs a data frame with at least one category column. Convert text columns, "
    "such as X.astype({{'brand': 'category'}}), or omit this kind.",
)
CONTEXTS = ("zscore", "difference", "rank", SHARE)


def check_context(context: Any) -> tuple[str, ...]:
    """Return the kinds of context as a tuple without repetitions; empty for None."""
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
            "list of these. CalibratedRanker and DocumentModel also accept 'auto'."
        )
    return tuple(dict.fromkeys(kinds))


def context_columns(X: Any, groups: ArrayLike, context: Any = "zscore") -> Any:
    """Add the context columns of `CalibratedRanker` to a table.

    Use this function to compare with a learner of another package on the same columns, or to
    process the columns in a pipeline.

    Parameters
    ----------
    X : {array-like, data frame} of shape (n_documents, n_features)
        A dense table with at least one numeric column. For ``"share"``, a data frame with at least
        one category column.
    groups : array-like of shape (n_documents,)
        Query id of each row, in any order.
    context : str or list of str, default="zscore"
        ``"zscore"``: (x - mean) / sd within the query. ``"difference"``: x - mean. ``"rank"``: rank
        of x. ``"share"``: share of the rows of the query with the same category; missing values are
        a category.

    Returns
    -------
    table : {ndarray, data frame} of shape (n_documents, n_features + n_added)
        The columns of X, followed, for each kind, by one column per numeric column or, for
        ``"share"``, per category column. New columns of a data frame are named
        ``<column>__<kind>``.

    Raises
    ------
    ValueError
        If a kind is unknown or none is given, if X is sparse or has no columns for a kind, if the
        lengths of X and `groups` differ, or if an id is missing.

    Notes
    -----
    Every category column gets shares, so tables of training and test queries have the same columns.
    A ranker omits shares of columns that are constant within each query of `fit`.

    Examples
    --------
    >>> from sklearn_rankcal import context_columns
    >>> context_columns([[1.0], [3.0], [7.0]], groups=["a", "a", "b"]).tolist()
    [[1.0, -1.0], [3.0, 1.0], [7.0, 0.0]]
    >>> import pandas as pd
    >>> X = pd.DataFrame({"kind": ["phone", "phone", "case", "case"]}, dtype="category")
    >>> context_columns(X, [1, 1, 1, 2], context="share")["kind__share"].round(2).tolist()
    [0.67, 0.67, 0.33, 1.0]
    """
    kinds = check_context(context)
    if not kinds:
        raise ValueError(f"context must name at least one of {', '.join(map(repr, CONTEXTS))}.")
    table = check_features(X)
    return add_context(table, Queries.from_groups(groups, table.shape[0]), kinds)[0]


def columns_of_kinds(X: Any, kinds: tuple[str, ...]) -> dict[str, list[Any]]:
    """Return all columns of X that can have context columns of each kind."""
    numbers = numeric_columns(X)
    return {kind: category_columns(X) if kind == SHARE else numbers for kind in kinds}


def add_context(
    X: Any, queries: Queries, described: dict[str, list[Any]] | tuple[str, ...], dtype: Any = None
) -> tuple[Any, Floats]:
    """Add context columns of each kind; return the table and the mean slopes of z-scores.

    Let q be the query of row i. "difference" is x_i - mean_q(x). "zscore" is this difference
    divided by the standard deviation sd_q(x), or 0 if all values of the query are equal. "rank" is
    the share of the values of the query below x_i, where equal values count one half, minus one
    half. NaN and infinite values are kept, and do not count for means. NaN does not count for
    ranks. "share" is the share of the rows of the query with the category of row i. Missing is a
    category.

    `described` has the columns of each kind, in the order of `X`, or only the kinds, for all
    possible columns. All kinds for numbers have the same columns. By default, the dtype is float32
    if the numbers of `X` are float32, and otherwise float64. The slopes are the means over queries
    of 1 / sd_q for each numeric column, where sd_q = 0 contributes 0. The columns of a row do not
    depend on the order of the rows, on other queries or on the number of threads, even in the last
    digit.
    """
    if not isinstance(described, dict):
        described = columns_of_kinds(X, described)
    for kind, own in described.items():
        if not own:
            raise ValueError(_NOTHING_TO_DESCRIBE[kind == SHARE].format(kind))
    columns: list[Any] = next((own for kind, own in described.items() if kind != SHARE), [])
    frame = is_dataframe(X)
    values = column_values(X, columns) if columns else np.empty((queries.n_rows, 0))
    n_rows, n_columns = values.shape
    width = len(columns)
    first = 0 if frame else n_columns
    start, stop = {}, first
    for kind, own in described.items():
        start[kind], stop = stop, stop + len(own)
    if dtype is None:
        dtype = np.float32 if values.dtype == np.float32 else np.float64
    table = np.empty((n_rows, stop), dtype=dtype)
    slope = np.zeros(width)
    if columns:
        slope = _describe_numbers(values, columns, queries, start, table, frame)
    for number, column in enumerate(described.get(SHARE, [])):
        table[:, start[SHARE] + number] = _shares(category_codes(X, column), queries)
    if not frame:
        return table, slope
    return append_columns(X, table, _names(X, described)), slope


def _describe_numbers(
    values: NDArray[Any],
    columns: list[Any],
    queries: Queries,
    start: dict[str, int],
    table: NDArray[Any],
    frame: bool,
) -> Floats:
    """Write the context columns of numbers to the table from `start` on; return the mean slopes.

    Also copy the columns of an array to the table.
    """
    n_rows, n_columns = values.shape
    width = len(columns)
    some = slice(None) if n_columns == width else np.array(columns)
    slope = np.zeros(width)
    if "rank" in start:  # larger blocks, because each sort has a fixed cost
        step = rows_per_block(8 * n_columns)
    else:
        step = rows_per_block(kernels.N_TEMPORARIES * 8 * n_columns, CACHE_BYTES)
    places = start.get("zscore", -1), start.get("difference", -1)
    if not frame and queries.order is not None:  # faster than by scattered rows
        table[:, :n_columns] = values
    # `describe` needs adjacent columns of these types
    dtype = np.float32 if values.dtype == np.float32 else np.float64

    def fill(block: tuple[slice | Ints, Queries]) -> Floats:
        """Write the rows of some queries; return 1 / sd of each query and column."""
        rows, part = block
        slopes = np.empty((part.n_queries, width))
        if not frame and isinstance(rows, slice):
            table[rows, :n_columns] = values[rows]
        own = np.require(values[rows][:, some], dtype, ["C", "ALIGNED"])
        kernels.describe(own, slice(0, part.n_rows), part.offsets, table, rows, *places, slopes)
        if "rank" in start:
            ranks = slice(start["rank"], start["rank"] + width)
            table[rows, ranks] = _ranks(own, np.isnan(own), part)
        return slopes

    # several large blocks of ranks at a time would need too much memory
    several = "rank" not in start and n_rows > _FEWEST_BLOCKS * step
    for slopes in map_in_order(fill, queries.chunks(step), allowed_threads() if several else 1):
        # `accumulate` adds query by query, so the last digit does not depend on the blocks
        slopes[0] += slope
        slope = np.add.accumulate(slopes, axis=0)[-1]
    return slope / queries.n_queries


def _shares(codes: Ints, queries: Queries) -> Floats:
    """Return the share of the rows of the query with the code of each row."""
    least = codes.min()
    keys = queries.codes * (codes.max() - least + 1) + (codes - least)
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[place] / queries.broadcast(queries.sizes)


def _names(X: Any, described: dict[str, list[Any]]) -> list[Any]:
    """Return the names of the new columns of a data frame."""
    present = list(X.columns)
    if not all(isinstance(name, str) for name in present):
        # scikit-learn ignores names that are not strings, but refuses mixed types
        return list(range(len(present), len(present) + sum(map(len, described.values()))))
    names = [f"{column}__{kind}" for kind, own in described.items() for column in own]
    taken = set(names) & set(present)
    if taken:
        raise ValueError(
            f"X has a column {min(taken)!r}, which is the name of a context column. Rename it or "
            "pass context=None."
        )
    return names


def _ranks(block: NDArray[Any], missing: Bools, queries: Queries) -> Floats:
    """Return the share of values of the query below each value (ties count half) minus 1/2."""
    from sklearn_rankcal.queries import Ranking

    result = np.empty(block.shape)
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
