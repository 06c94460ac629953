"""`group_queries`: move the rows of a data frame until each query is in a single partition."""

from __future__ import annotations

from functools import partial
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd

from sklearn_rankcal.dask._collections import Rows, read_collections
from sklearn_rankcal.dask._workers import for_each
from sklearn_rankcal.utils._messages import check_count
from sklearn_rankcal.utils._row_hashes import hash_values

#: Columns that are moved along with the user's: a hash of the query id, by which dask chooses the
#: partition; the index; and the row number, (partition) * 2^36 + (place in the partition).
_HASH, _INDEX, _ROW = "hash", "index", "row"
_PARTITION_BITS = 36


def group_queries(frame: Any, group_column: str, npartitions: int | None = None) -> Any:
    """Bring the rows of each query to the same partition, lazily.

    Parameters
    ----------
    frame : dask data frame
        One row per query-document pair, in any partitions.
    group_column : str
        Name of the column of query ids, which can be numbers, times or text.
    npartitions : int, default=None
        Number of partitions of the result. None keeps the number of partitions of `frame`.

    Returns
    -------
    grouped : dask data frame
        The rows of `frame` with their columns and index. Each query is in a single partition, with
        its rows in the original order. The divisions are unknown.

    Raises
    ------
    TypeError
        If `frame` is not a dask data frame.
    ValueError
            If `group_column` is not a column, if a query id is missing, or if the categories of a
            column are unknown or differ between partitions.

    Notes
    -----
    The rows move every time the result is computed. To move them once, persist the result or save
    it with ``grouped.to_parquet(folder, write_index=False)``. This writes one file per partition,
    and ``dask.dataframe.read_parquet(folder, split_row_groups=False)`` reads it back without
    splitting a query. Convert arrays to a data frame first:
    ``dask.dataframe.from_dask_array(X, columns=names)``.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from sklearn_rankcal.dask import group_queries
    >>> frame = pd.DataFrame({"qid": [1, 2, 1, 2, 1], "x": [10, 20, 11, 21, 12]})
    >>> grouped = group_queries(dd.from_pandas(frame, npartitions=3), "qid", npartitions=2)
    >>> grouped.npartitions
    2
    >>> rows = grouped.compute()
    >>> [rows["x"][rows["qid"] == query].tolist() for query in (1, 2)]
    [[10, 11, 12], [20, 21]]
    """
    if not isinstance(frame, dd.DataFrame):
        raise TypeError(
            f"frame must be a dask data frame; got {type(frame).__name__}. Make one with "
            "dask.dataframe.read_parquet or dask.dataframe.from_pandas(frame, npartitions=4)."
        )
    if not isinstance(group_column, str):
        raise TypeError(
            f"group_column must be the name of a column, a string; got {group_column!r}."
        )
    check_count(npartitions, "npartitions", or_none=True)
    data, columns = read_collections(frame, group_column), frame._meta
    meta = _numbered(columns, np.empty(0, np.uint64), 0, columns)
    parts = data.map(partial(_number_rows, columns=columns), range(data.n_partitions), empty=meta)
    moved = dd.from_delayed(parts, meta=meta)
    moved = moved.shuffle(on=_HASH, npartitions=npartitions or data.n_partitions)
    grouped = for_each(partial(_in_order, columns=columns), moved.to_delayed())
    return dd.from_delayed(grouped, meta=columns)


def _number_rows(rows: Rows, number: int, columns: pd.DataFrame) -> pd.DataFrame:
    queries = rows.queries
    return _numbered(rows.given["X"], hash_values(queries.ids)[queries.codes], number, columns)


def _numbered(part: pd.DataFrame, hashes: Any, number: int, columns: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a partition with the extra columns needed to move them.

    Columns are renamed to text, because dask can only move frames with text names between workers.
    `columns` is a frame without rows; the dtypes of a partition can differ from it.
    """
    rows, index = (number << _PARTITION_BITS) + np.arange(len(part)), part.index.array
    part = part.astype(columns.dtypes).reset_index(drop=True)
    part = part.set_axis([f"x{place}" for place in range(part.shape[1])], axis=1)
    return part.assign(**{_HASH: hashes, _INDEX: index, _ROW: rows})


def _in_order(moved: pd.DataFrame, columns: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in their original order, with the user's columns and index."""
    moved = moved.sort_values(_ROW)
    index = pd.Index(moved[_INDEX], name=columns.index.name)
    moved = moved.drop(columns=[_HASH, _INDEX, _ROW])
    moved = moved.set_axis(columns.columns, axis=1).set_axis(index)
    # older versions of dask return objects as strings
    objects = [name for name, dtype in columns.dtypes.items() if dtype is np.dtype(object)]
    return moved.astype(dict.fromkeys(objects, object))
