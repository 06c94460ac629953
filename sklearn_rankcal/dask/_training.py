"""What `fit` learns from labels alone, and the training data of one partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any

import dask
import numpy as np
import pandas as pd
from dask import delayed
from numpy.typing import NDArray

from sklearn_rankcal.dask._documents import LABEL, WEIGHT, Collections, Form
from sklearn_rankcal.dask._query_ids import group_frames, queries_of, query_ids
from sklearn_rankcal.dask._tasks import for_each
from sklearn_rankcal.losses import LabelSums, Loss
from sklearn_rankcal.models._automatic_context import (
    SAMPLE_ROWS,
    columns_of_sample_that_differ,
    sampled_queries,
    thinned_rows,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._training import TrainingData
from sklearn_rankcal.targets import PairTargets
from sklearn_rankcal.utils._features import take_rows
from sklearn_rankcal.utils._row_hashes import hash_values
from sklearn_rankcal.utils._typing import Floats, Ints


def read_weight(frame: pd.DataFrame) -> Floats | None:
    """Return the weights of the rows, or None if there are none."""
    return frame[WEIGHT].to_numpy() if WEIGHT in frame else None


def extremes(frame: pd.DataFrame, loss: Loss) -> Floats | None:
    """Check labels; return -min and max of the labels, and -min and max of the weights.

    They are over the rows of positive weight, so that the maxima of two partitions are those of
    both. None means that the partition has no such row.
    """
    labels, weight = frame[LABEL].to_numpy(), read_weight(frame)
    weight = np.ones(len(frame)) if weight is None else weight
    labels, weight = labels[weight > 0], weight[weight > 0]
    if not len(weight):
        return None
    loss.check(labels)
    return np.array([-labels.min(), labels.max(), -weight.min(), weight.max()])


@dataclass(frozen=True)
class Counts:
    """Sums over the queries of the training data.

    The first three are over all queries, and the others over the rows of positive weight of queries
    on which the loss is defined. `sample` has the hashes of ids, the sizes and the ids of the
    queries that `sampled_queries` chooses.
    """

    n_queries: int
    n_documents: int
    longest: int
    n_kept: int
    n_rows: int
    sums: LabelSums
    weight: float
    sample: tuple[NDArray[np.uint64], Ints, NDArray[Any]]

    @classmethod
    def of(cls, frame: pd.DataFrame, loss: Loss) -> Counts | None:
        """Return the sums of a partition."""
        if not len(frame):
            return None
        every = queries_of(frame)
        of_all = every.n_queries, len(frame), int(every.sizes.max())
        data = training_data(frame, None, loss)
        if data is None:
            nothing = (np.empty(0, np.uint64), np.empty(0, np.int64), every.ids[:0])
            return cls(*of_all, 0, 0, LabelSums(), 0.0, nothing)
        queries = data.queries
        weight = float(queries.n_rows if data.weight is None else data.weight.sum())
        sums = loss.label_sums(data.labels, queries)
        sample = _sample(hash_values(queries.ids), queries.sizes, queries.ids)
        return cls(*of_all, queries.n_queries, queries.n_rows, sums, weight, sample)

    def __add__(self, other: Counts) -> Counts:
        pairs = zip(self.sample, other.sample, strict=True)
        return Counts(
            self.n_queries + other.n_queries,
            self.n_documents + other.n_documents,
            max(self.longest, other.longest),
            self.n_kept + other.n_kept,
            self.n_rows + other.n_rows,
            self.sums.plus(other.sums),
            self.weight + other.weight,
            _sample(*(np.concatenate(pair) for pair in pairs)),
        )


def _sample(hashes: Any, sizes: Any, ids: Any) -> tuple[Any, Any, Any]:
    chosen = sampled_queries(hashes, sizes)
    return hashes[chosen], sizes[chosen], ids[chosen]


def training_data(frame: pd.DataFrame, form: Form | None, loss: Loss) -> TrainingData | None:
    """Return the rows of positive weight of the queries on which the loss is defined, if any.

    The partition has whole queries. If `form` is None, the columns of X are left out.
    """
    if not len(frame):
        return None
    X = np.empty((len(frame), 0)) if form is None else form.features(frame)
    labels = frame[LABEL].to_numpy()
    data = TrainingData(X, labels, queries_of(frame), read_weight(frame))
    if data.weight is not None and not data.weight.any():
        return None
    data = data.without_zero_weights()
    defined = loss.defined(data.labels, data.queries)
    if not defined.any():
        return None
    return data if defined.all() else data.take_queries(defined)


@dataclass(frozen=True)
class Plan:
    """How the rows of a partition become training data. All partitions have the same plan.

    `loss` and `sums` are those of all data. Weights are divided by `weight_unit`, or left out if it
    is None.
    """

    form: Form
    loss: Loss
    sums: LabelSums
    weight_unit: float | None

    def data(self, frame: pd.DataFrame, *, table: bool = True) -> TrainingData | None:
        """Return the training data of a partition, or None if it has none."""
        data = training_data(frame, self.form if table else None, self.loss)
        if data is None or data.weight is None:
            return data
        weight = None if self.weight_unit is None else data.weight / self.weight_unit
        return data._replace(weight=weight)

    def targets(self, data: TrainingData) -> Any:
        """Return the targets of the rows, or of their pairs."""
        return self.loss.targets_of_part(data.labels, data.queries, self.sums)

    def for_each(
        self, function: Callable[..., Any], frames: list[Any], *more: Any, empty: Any = None
    ) -> list[Any]:
        """Return delayed ``function(X, targets, queries, weight, *more)`` for each partition.

        A partition without training data has the value `empty`.
        """

        def call(frame: pd.DataFrame, *more: Any) -> Any:
            data = self.data(frame)
            if data is None:
                return empty
            return function(data.X, self.targets(data), data.queries, data.weight, *more)

        return for_each(call, frames, *more)

    def largest(self, frame: pd.DataFrame, center: bool) -> Floats | None:
        """Return the largest absolute target of a partition, and of centred ones if `center`."""
        data = self.data(frame, table=False)
        if data is None:
            return None
        targets = self.targets(data)
        if isinstance(targets, PairTargets):
            return np.array([targets.largest(), 0.0])
        centred = data.queries.center(targets, data.weight) if center else targets
        return np.array([np.abs(targets).max(), np.abs(centred).max()])


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
