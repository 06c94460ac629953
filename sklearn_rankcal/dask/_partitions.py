"""Partitions of whole queries: made by moving rows, written to parquet files, and read again.

A data frame comes in whose partitions may cut queries. A data frame comes out in which all rows of
a query are in the same partition.
"""

from __future__ import annotations

from os import PathLike
from typing import Any
from uuid import uuid4

import dask
import dask.dataframe as dd
import pandas as pd
from dask import delayed
from dask.utils import natural_sort_key
from fsspec.core import url_to_fs

from sklearn_rankcal.dask._documents import INDEX, read_collections
from sklearn_rankcal.dask._query_ids import (
    check_whole,
    find_cut_query,
    group_frames,
    ids_of_column,
)
from sklearn_rankcal.utils._names import did_you_mean
from sklearn_rankcal.utils._parameters import check_count, check_flag

_ENDINGS = (".parquet", ".parq", ".pq")


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
    The rows move every time that the result is computed: persist it, or write it to files by
    `write_queries`. Pass ``whole_queries=True`` to what uses it.

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
    _check_columns([group_column], list(frame.columns), "frame")


def _check_columns(wanted: list[Any], names: list[Any], where: str) -> None:
    for name in wanted:
        if name not in names:
            known = [known for known in names if isinstance(known, str)]
            hint = did_you_mean(name, known) if isinstance(name, str) else ""
            raise ValueError(f"{name!r} is not among the columns {names[:20]} of {where}.{hint}")


def _columns_of_user(frame: pd.DataFrame, form: Any, index_name: Any) -> pd.DataFrame:
    """Return the columns and the index that a partition has in the data frame of the user."""
    return form.table(frame).set_axis(pd.Index(frame[INDEX], name=index_name), axis=0)


def write_queries(
    frame: Any,
    path: str | PathLike[str],
    group_column: str,
    *,
    whole_queries: bool = False,
    npartitions: int | None = None,
    overwrite: bool = False,
) -> None:
    """Write a data frame to a folder of parquet files, with every query in a single file.

    Parameters
    ----------
    frame : dask data frame
        One row per query-document pair.
    path : path or URL
        The folder. All workers must be able to write to it.
    group_column : str
        Name of the column that contains the query ids.
    whole_queries : bool, default=False
        Whether every query is in a single partition of `frame` already, which is checked first. If
        it is False, the rows are moved as by `group_queries`.
    npartitions : int, default=None
        Number of files; None keeps the number of partitions. It is an error with
        ``whole_queries=True``. Files of 50 to 200 MB are good partitions.
    overwrite : bool, default=False
        Whether the parquet files that the folder contains are deleted, after the new ones were
        written. Without it, such a folder is an error.

    Raises
    ------
    TypeError
        If `frame` is not a dask data frame, or if the query ids are categories.
    ValueError
        If there is no such column, if a query id is missing, if a query is in several partitions
        although `whole_queries` is True, or if `npartitions` is passed with it.
    FileExistsError
        If the folder contains parquet files and `overwrite` is False.

    Notes
    -----
    If an error stops the writing, the new files are deleted, and old ones stay. The index is not
    written. At the end the query ids are read from the files, and compared.

    Examples
    --------
    >>> import tempfile
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from sklearn_rankcal.dask import read_queries, write_queries
    >>> frame = pd.DataFrame({"qid": [1, 2, 1, 2, 1], "x": [10, 20, 11, 21, 12]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_queries(dd.from_pandas(frame, npartitions=3), folder, "qid", npartitions=2)
    ...     queries = read_queries(folder, "qid")
    ...     rows = queries.compute()
    >>> queries.npartitions, rows["x"][rows["qid"] == 1].tolist()
    (2, [10, 11, 12])
    """
    _check_frame(frame, group_column)
    check_flag(whole_queries, "whole_queries")
    check_flag(overwrite, "overwrite")
    if isinstance(frame._meta[group_column].dtype, pd.CategoricalDtype):
        raise TypeError(
            f"The query ids in {group_column!r} are categories, whose kind a file does not keep. "
            "Convert them, for example by astype(str)."
        )
    filesystem, folder = url_to_fs(path)
    old = _parquet_files(filesystem, folder)
    if old and not overwrite:
        raise FileExistsError(
            f"{path} contains {len(old)} parquet files, and files that are left over would repeat "
            "queries. Choose another folder, or pass overwrite=True to delete its files."
        )
    if whole_queries:
        if npartitions is not None:
            raise ValueError(
                "npartitions has no effect if whole_queries=True: each partition becomes a file. "
                "frame.repartition(npartitions=...) with a smaller number keeps queries whole."
            )
        check_whole(list(dask.compute(*ids_of_column(frame, group_column))))
    else:
        frame = group_queries(frame, group_column, npartitions)
    # Old files are deleted at the end, because `frame` can be read from them.
    token = f".{uuid4().hex[:8]}" if old else ""
    cut = None
    complete = False
    try:
        frame.to_parquet(
            path, write_index=False, name_function=lambda number: f"part.{number}{token}.parquet"
        )
        new = [file for file in _parquet_files(filesystem, folder) if file not in old]
        written = dd.read_parquet(
            [filesystem.unstrip_protocol(file) for file in new], split_row_groups=False
        )
        cut = find_cut_query(list(dask.compute(*ids_of_column(written, group_column))))
        complete = cut is None
    finally:
        files = _parquet_files(filesystem, folder)
        for file in old if complete else [file for file in files if file not in old]:
            filesystem.rm(file)
    if cut is not None:
        raise ValueError(
            "Rows moved between partitions while frame was computed, so that queries were cut; the "
            "files were deleted. If a series of another frame was added, add it as a dask array "
            "(series.to_dask_array()), or leave out whole_queries."
        )


def _parquet_files(filesystem: Any, folder: str) -> list[str]:
    """Return the parquet files of a folder, in the natural order of their names."""
    if not filesystem.isdir(folder):
        return []
    filesystem.invalidate_cache()
    names = [name for name in filesystem.ls(folder, detail=False) if name.endswith(_ENDINGS)]
    return sorted(names, key=natural_sort_key)


def read_queries(
    path: str | PathLike[str], group_column: str, *, columns: list[str] | None = None
) -> Any:
    """Read a folder of parquet files, each with whole queries, as a lazy data frame.

    Each file becomes one partition. The column of query ids is read at once to check that no query
    is in two files; all else is lazy.

    Parameters
    ----------
    path : path or URL
        A folder of `write_queries`, or of any program that writes every query to a single file.
    group_column : str
        Name of the column that contains the query ids.
    columns : list of str, default=None
        The columns to read; None reads all. The column of query ids is always read.

    Returns
    -------
    frame : dask data frame
        One partition for each file, in the natural order of their names. Pass
        ``whole_queries=True`` to what uses it.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or if it contains no parquet file.
    ValueError
        If a column does not exist, if a query id is missing, or if a query is in several files.

    Notes
    -----
    ``dask.dataframe.read_parquet`` can cut queries, because by default it makes several partitions
    of large files.

    Examples
    --------
    The example of `write_queries` reads the files that it writes.
    """
    filesystem, folder = url_to_fs(path)
    if not filesystem.exists(folder):
        raise FileNotFoundError(f"There is no folder {path}.")
    files = _parquet_files(filesystem, folder) if filesystem.isdir(folder) else [folder]
    if not files:
        raise FileNotFoundError(f"{path} contains no parquet file ({', '.join(_ENDINGS)}).")
    frame = dd.read_parquet(path, split_row_groups=False)
    if len(files) != frame.npartitions:
        raise ValueError(
            f"{path} contains parquet files in subfolders. Read it with "
            "dask.dataframe.read_parquet and pass the frame to write_queries."
        )
    names = list(frame.columns)
    wanted = names if columns is None else [columns] if isinstance(columns, str) else list(columns)
    _check_columns([group_column, *wanted], names, str(path))
    if group_column not in wanted:
        wanted = [group_column, *wanted]
    found = find_cut_query(list(dask.compute(*ids_of_column(frame, group_column))))
    if found is not None:
        n_queries, query, one, two = found
        raise ValueError(
            f"{n_queries:,} queries are in several files of {path}. Query {query!s} is in the "
            f"files with the numbers {one} and {two}, counted from 0. Bring them together: "
            f"write_queries(dask.dataframe.read_parquet(path), other_path, {group_column!r})."
        )
    dtypes = dict(frame._meta.dtypes)  # those of all files

    def read(file: str, columns: list[str] | None = None) -> pd.DataFrame:
        part = pd.read_parquet(file, columns=columns)
        other = {
            name: dtype
            for name, dtype in dtypes.items()
            if name in part
            and part[name].dtype != dtype
            and not isinstance(dtype, pd.CategoricalDtype)
        }
        return part.astype(other) if other else part

    # Unlike read_parquet, from_map never merges partitions of few columns. A merged partition is
    # whole, but dask cannot add a column to it that has the partitions of the files.
    files = [filesystem.unstrip_protocol(file) for file in files]
    whole = dd.from_map(read, files, meta=frame._meta, label="read-queries")
    return whole if columns is None else whole[wanted]
