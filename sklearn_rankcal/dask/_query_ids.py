"""Query ids of partitions: how they are read, and whether every query is in a single partition."""

from __future__ import annotations

from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_rankcal.dask._tasks import for_each
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import counted

#: The columns of a frame with the query id and the number of each row. A row has the number
#: (partition) * 2^36 + (place in the partition).
ID, ROW = "__query__", "__row__"
PARTITION_BITS = 36


def partitions_of(collection: Any) -> list[Any]:
    """Return the partitions of a data frame or series, as many as it says that it has.

    The default of `to_delayed` merges partitions of a parquet data set of which few columns are
    read, so that those of X and of a column of X would differ.
    """
    return list(collection.simplify().to_delayed(optimize_graph=False))


def id_meta(ids: pd.Series) -> pd.Series:
    """Return the dtype that query ids have in all partitions: numbers, times or text."""
    dtype = ids.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    kind = getattr(dtype, "kind", "O")
    if kind in "biu":
        wanted: Any = np.uint64 if str(dtype).lower() == "uint64" else np.int64
    elif kind in "fmM":
        wanted = np.float64 if kind == "f" else dtype
    else:
        wanted = pd.StringDtype("pyarrow")
    return pd.Series(pd.array([], dtype=wanted), name=ID)


def read_ids(number: int, values: Any, dtype: Any) -> Any:
    """Return the query ids of a partition in the dtype of all partitions."""
    ids = pd.Series(values).reset_index(drop=True)
    if isinstance(ids.dtype, pd.CategoricalDtype):
        ids = ids.astype(ids.cat.categories.dtype)
    missing = ids.isna() | ~np.isfinite(ids) if ids.dtype.kind == "f" else ids.isna()
    if missing.any():
        raise ValueError(
            f"groups: the query id of row {int(np.argmax(missing))} of partition {number} is "
            "missing."
        )
    if ids.dtype.kind == "f":
        ids = ids + 0.0  # -0.0 becomes 0.0, which is the same id but has another hash
    if isinstance(dtype, pd.StringDtype):
        others = [value for value in ids if not isinstance(value, str)][:1]
        if others:
            raise TypeError(
                f"groups: partition {number} has the query id {others[0]!r}, which is not text "
                "as the others are. Convert the ids to text or to numbers."
            )
        return ids.astype(dtype).array
    converted = ids.astype(dtype)
    changed = (converted != ids).to_numpy()
    if changed.any():
        raise ValueError(
            f"groups: partition {number} has the query id {ids[changed].iloc[0]!s}, but the dtype "
            f"of the collection is {dtype}. Give all partitions one dtype, for example by astype."
        )
    return converted.array


def query_ids(frame: pd.DataFrame) -> NDArray[Any]:
    """Return the query id of each row as an array of numbers, times or objects."""
    ids = frame[ID]
    return ids.to_numpy(dtype=object) if ids.dtype == "string" else ids.to_numpy()


def queries_of(frame: pd.DataFrame) -> Queries:
    """Return the partition of the rows of a frame into queries."""
    return Queries.from_groups(query_ids(frame), len(frame))


def group_frames(
    frames: list[Any], meta: pd.DataFrame, n_partitions: int | None = None
) -> list[Any]:
    """Move the rows of delayed frames, which have ids and numbers, to bring queries together.

    The rows of a partition keep the order that they have in the collection. Partitions can be
    empty. By default there are as many of them as frames.
    """
    frame = dd.from_delayed(frames, meta=meta, verify_meta=True)
    moved = frame.shuffle(on=ID, npartitions=n_partitions or len(frames))
    return for_each(in_order, moved.to_delayed())


def in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in the order that they have in the collection."""
    return frame.sort_values(ROW, ignore_index=True)


# ---------------------------------------------------------------- whole queries


def ids_of_partition(frame: pd.DataFrame) -> pd.Series:
    """Return the query ids of a partition, each once."""
    return frame[ID].drop_duplicates()


def check_whole(ids: list[pd.Series]) -> None:
    """Raise an error that names a query in two partitions, given the ids of each, each once."""
    every = pd.concat(ids, ignore_index=True)
    twice = every[every.duplicated()]
    if len(twice):
        query = twice.iloc[0]
        one, two = [k for k, part in enumerate(ids) if (part == query).any()][:2]
        raise ValueError(
            f"whole_queries=True, but rows of {counted(twice.nunique(), 'query')} are in several "
            "partitions. Query "
            f"{query!s} is in partitions {one} and {two}. Leave out whole_queries, or "
            "bring the rows of each query together first (group_queries)."
        )


def fingerprint(ids: pd.Series) -> int:
    """Return a number that tells the ids of two partitions apart."""
    return int(pd.util.hash_pandas_object(ids, index=False).sum())


def check_same_queries(frame: pd.DataFrame, expected: int, checked: None) -> pd.DataFrame:
    """Return the frame if the fingerprint of its ids is the expected one.

    Partitions are checked by their query ids alone, which are cheap to read. If X was joined with
    another collection, dask can move its rows when it computes X, but not when it computes the ids.
    """
    if fingerprint(ids_of_partition(frame)) != expected:
        raise ValueError(
            "whole_queries=True, but a partition of X has other queries than its query ids say, "
            "because X was joined with a collection that dask aligns by the index. Pass "
            "X.persist(), or leave out whole_queries."
        )
    return frame
