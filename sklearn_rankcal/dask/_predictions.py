"""Rankings of dask collections by a ranker for one machine, one partition at a time, lazily."""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed

from sklearn_rankcal.dask._documents import INDEX, Collections, Form
from sklearn_rankcal.dask._query_ids import (
    ID,
    PARTITION_BITS,
    ROW,
    check_same_queries,
    check_whole,
    fingerprint,
    ids_of_partition,
    query_ids,
)
from sklearn_rankcal.dask._tasks import for_each, in_one_layer

_VALUE = "__value__"


def whole_frames(data: Collections, whole_queries: bool, *, index: bool = False) -> list[Any]:
    """Return delayed frames of whole queries, whose partitions are checked or made anew.

    If the caller says that the partitions contain whole queries, no frame is computed before this
    was checked.
    """
    if not whole_queries:
        return data.grouped(index=index)
    frames = data.frames(index=index)
    ids = for_each(ids_of_partition, data.frames(table=False))
    checked = in_one_layer(delayed(check_whole)(ids))
    expected = for_each(fingerprint, ids)
    return for_each(check_same_queries, frames, expected, repeat(checked, len(frames)))


def predict_values(
    data: Collections,
    ranker: Any,
    method: str,
    dtype: Any,
    whole_queries: bool,
    needs_queries: bool = True,
) -> Any:
    """Return what a method of a ranker returns for each row, as a dask array in their order.

    There is one block for each partition of X. A series would be worse: if the divisions of X are
    not known, as those of parquet files, dask joins a column to X by its index, which can repeat.
    `needs_queries` is whether the value of a row depends on its query.
    """
    meta = data.meta[[ROW]].assign(**{_VALUE: np.empty(0, dtype)})
    shared = delayed(ranker)
    stay = whole_queries or not needs_queries
    frames = whole_frames(data, whole_queries) if needs_queries else data.frames()
    predict = partial(_values_of, form=data.form, method=method, dtype=dtype)
    parts = for_each(predict, frames, repeat(shared, len(frames)))
    if not stay:
        parts = data.restored(parts, meta)
    series = for_each(_column_of_values, parts)
    values = dd.from_delayed(series, meta=_column_of_values(meta), verify_meta=True)
    return values.to_dask_array(lengths=data.chunks)


def _values_of(
    frame: pd.DataFrame, ranker: Any, form: Form, method: str, dtype: Any
) -> pd.DataFrame:
    if len(frame):
        values = getattr(ranker, method)(form.table(frame), **groups_of(frame, form))
    else:
        values = np.empty(0, dtype)
    return frame[[ROW]].assign(**{_VALUE: np.asarray(values, dtype=dtype)})


def groups_of(frame: pd.DataFrame, form: Form) -> dict[str, Any]:
    return {} if form.group_column is not None else {"groups": query_ids(frame)}


def _column_of_values(frame: pd.DataFrame) -> pd.Series:
    return frame[_VALUE]


def predict_order(data: Collections, ranker: Any, k: int | None, whole_queries: bool) -> Any:
    """Return a dask frame with the first rows of each query, best first.

    Its columns are those of `QueryOrder.to_frame`.
    """
    if data.form.is_array and data.chunks is None:
        raise ValueError(
            "predict_order returns numbers of rows, but the lengths of the blocks of X are not "
            "known. Call X.compute_chunk_sizes() first."
        )
    starts = None if data.chunks is None else np.cumsum((0, *data.chunks))
    shared = delayed(ranker)
    frames = whole_frames(data, whole_queries, index=True)
    rows = data.meta[ROW] if data.form.is_array else data.meta[INDEX]
    meta = pd.DataFrame(
        {"query": data.meta[ID], "position": np.empty(0, np.int64), "row": rows.array}
    )
    list_rows = partial(_order_of, form=data.form, k=k, starts=starts, meta=meta)
    parts = for_each(list_rows, frames, repeat(shared, len(frames)))
    return dd.from_delayed(parts, meta=meta, verify_meta=True)


def _order_of(
    frame: pd.DataFrame, ranker: Any, form: Form, k: int | None, starts: Any, meta: pd.DataFrame
) -> pd.DataFrame:
    if not len(frame):
        return meta
    order = ranker.predict_order(form.table(frame), k=k, **groups_of(frame, form))
    listed = order.to_frame()
    rows = frame[ROW].to_numpy()[order.rows]
    if form.is_array:
        labels = starts[rows >> PARTITION_BITS] + rows % (1 << PARTITION_BITS)
    else:
        labels = frame[INDEX].array[order.rows]
    ids = frame[ID].array[order.rows]
    return pd.DataFrame({"query": ids, "position": listed["position"], "row": labels})
