"""`group_queries`: move the rows of a data frame until every query is in a single partition."""

from __future__ import annotations

from typing import Any

import dask.dataframe as dd
import pandas as pd
from dask import delayed

from sklearn_rankcal.dask._documents import INDEX, read_collections
from sklearn_rankcal.dask._query_ids import group_frames
from sklearn_rankcal.utils._names import did_you_mean
from sklearn_rankcal.utils._parameters import check_count


def group_queries(frame: Any, group_column: str, npartitions: int | None = None) -> Any:
    """Bring the rows of each query to the same partition, lazily.

    Parameters
    ----------
    frame : dask data frame
        One row per query-document pair, in any partitions.
    group_column : str
        Name of the column that contains the query ids: numbers, times or text.
    npartitions : int, default=None
        Number of partitions of the result; None keeps the number of `frame`.

    Returns
    -------
    grouped : dask data frame
        The rows of `frame` with their columns and their index. Every query is in a single
        partition, in which the rows keep their order. Its divisions are not known.

    Raises
    ------
    TypeError
        If `frame` is not a dask data frame.
    ValueError
        If there is no such column, if a query id is missing, or if the categories of a column are
        not known or differ between partitions.

    Notes
    -----
    The rows move every time that the result is computed. So persist it, or write a file for each
    partition by ``grouped.to_parquet(folder, write_index=False)``, which
    ``dask.dataframe.read_parquet(folder, split_row_groups=False)`` reads without cutting a query.
    Pass ``whole_queries=True`` to what uses it.

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
    _check_frame(frame, group_column)
    check_count(npartitions, "npartitions", or_none=True)
    data = read_collections(frame, group_column)
    parts = group_frames(data.frames(index=True), data.meta_of(index=True), npartitions)
    return dd.from_delayed(
        [delayed(_columns_of_user)(part, data.form, data.index_name) for part in parts],
        meta=frame._meta,
        verify_meta=True,
    )


def _check_frame(frame: Any, group_column: str) -> None:
    if not isinstance(frame, dd.DataFrame):
        raise TypeError(
            f"frame must be a dask data frame; got {type(frame).__name__}. Make one with "
            "dask.dataframe.read_parquet or dask.dataframe.from_pandas(frame, npartitions=4)."
        )
    if not isinstance(group_column, str):
        raise TypeError(
            f"group_column must be the name of a column, a string; got {group_column!r}."
        )
    names = list(frame.columns)
    if group_column not in names:
        hint = did_you_mean(group_column, [name for name in names if isinstance(name, str)])
        raise ValueError(f"{group_column!r} is not among the columns {names[:20]} of frame.{hint}")


def _columns_of_user(frame: pd.DataFrame, form: Any, index_name: Any) -> pd.DataFrame:
    """Return the columns and the index that a partition has in the data frame of the user."""
    return form.table(frame).set_axis(pd.Index(frame[INDEX], name=index_name), axis=0)
