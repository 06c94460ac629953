"""Which columns ``context="auto"`` describes, judged by a sample of queries of all partitions."""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import Any

import dask
import numpy as np
import pandas as pd
from dask import delayed
from numpy.typing import NDArray

from sklearn_rankcal.dask._documents import Collections, Form
from sklearn_rankcal.dask._query_ids import group_frames, queries_of, query_ids
from sklearn_rankcal.dask._tasks import for_each
from sklearn_rankcal.dask._training import Counts, read_weight
from sklearn_rankcal.models._automatic_context import (
    SAMPLE_ROWS,
    columns_of_sample_that_differ,
    thinned_rows,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import take_rows


def columns_that_differ(
    columns: list[Any], data: Collections, counts: Counts, whole_queries: bool
) -> list[Any]:
    """Return the columns, of these candidates, that `CalibratedRanker` would choose."""
    _, sizes, ids = counts.sample
    step = int(sizes.sum()) // SAMPLE_ROWS if counts.n_rows > SAMPLE_ROWS else 1
    wanted = delayed(pd.Index(ids))
    frames = for_each(_rows_of, data.frames(), repeat(wanted, data.n_partitions))
    if step > 1 and not whole_queries:  # to thin a query takes all of its rows
        frames = group_frames(frames, data.meta_of())
    parts = for_each(partial(_sample_of, form=data.form, columns=columns, step=step), frames)
    parts = [part for part in dask.compute(parts)[0] if part is not None]
    sample = pd.concat([part[0] for part in parts], ignore_index=True)
    queries = Queries.from_groups(np.concatenate([part[1] for part in parts]))
    table = sample if data.by_index else sample.to_numpy()
    return columns_of_sample_that_differ(table, columns, queries)


def _rows_of(frame: pd.DataFrame, ids: pd.Index) -> pd.DataFrame:
    """Return the rows of positive weight of some queries."""
    kept = pd.Series(query_ids(frame)).isin(ids).to_numpy()
    weight = read_weight(frame)
    return frame[kept if weight is None else kept & (weight > 0)]


def _sample_of(
    frame: pd.DataFrame, form: Form, columns: list[Any], step: int
) -> tuple[pd.DataFrame, NDArray[Any]] | None:
    """Return the columns and the query ids of the rows, thinned if `step` is above 1."""
    if not len(frame):
        return None
    X, groups = form.features(frame), query_ids(frame)
    if step > 1:
        rows, _ = thinned_rows(X, queries_of(frame), step)
        X, groups = take_rows(X, rows), groups[rows]
    return pd.DataFrame(X) if form.is_array else X[columns], groups
