"""The training data of a partition, and what `fit` learns from labels alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dask
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_rankcal.dask._collections import Collections, Rows, Table
from sklearn_rankcal.losses import LabelSums, Loss
from sklearn_rankcal.models import Training
from sklearn_rankcal.models._context import (
    SAMPLE_ROWS,
    columns_that_differ,
    sampled_queries,
    thinned_rows,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PairTargets
from sklearn_rankcal.utils._features import take_rows
from sklearn_rankcal.utils._numbers import Floats, Ints
from sklearn_rankcal.utils._row_hashes import hash_values


def documents(rows: Rows, table: Table) -> Training:
    """Return the rows of a partition, without columns if X was not read."""
    n_rows = rows.queries.n_rows
    X = table.features(rows.given["X"]) if "X" in rows.given else np.empty((n_rows, 0))
    weight = rows.numbers.get("sample_weight")
    return Training(X, None, rows.queries, weight, rows.numbers["y"])


def of_positive_weight(data: Training | None) -> Training | None:
    """Return the rows of positive weight, or None if there are none."""
    if data is None or (data.weight is not None and not data.weight.any()):
        return None
    return data.without_zero_weights()


def extremes(data: Training | None, loss: Loss) -> Floats | None:
    """Check labels; return -min and max of the labels, and -min and max of the weights.

    Only rows of positive weight count; None means that the partition has none. Because all entries
    are maxima, the elementwise maximum of two partitions is correct for both together.
    """
    data = of_positive_weight(data)
    if data is None:
        return None
    labels, weight = data.labels, data.weight
    loss.check(labels)
    weight = np.ones(1) if weight is None else weight
    return np.array([-labels.min(), labels.max(), -weight.min(), weight.max()])


def learnable(data: Training | None, loss: Loss) -> Training | None:
    """Return the rows of positive weight in queries with a defined loss, or None if none exist."""
    data = of_positive_weight(data)
    if data is None:
        return None
    defined = loss.defined(data.labels, data.queries)
    if not defined.any():
        return None
    return data if defined.all() else data.take_queries(defined)


@dataclass(frozen=True)
class Counts:
    """Sums over the queries of the training data.

    The first two count all queries. The remaining fields count only rows of positive weight in
    queries with a defined loss. `sample` has the hashes of ids, the sizes and the ids of the
    queries chosen by `sampled_queries`.
    """

    n_queries: int
    n_documents: int
    n_kept: int
    n_rows: int
    sums: LabelSums
    weight: float
    sample: tuple[NDArray[np.uint64], Ints, NDArray[Any]]

    @classmethod
    def of(cls, every: Training | None, loss: Loss) -> Counts | None:
        """Return the sums of a partition."""
        if every is None:
            return None
        of_all = every.queries.n_queries, every.queries.n_rows
        data = learnable(every, loss)
        if data is None:
            nothing = np.empty(0, np.uint64), np.empty(0, np.int64), every.queries.ids[:0]
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
            self.n_kept + other.n_kept,
            self.n_rows + other.n_rows,
            self.sums.plus(other.sums),
            self.weight + other.weight,
            _sample(*(np.concatenate(pair) for pair in pairs)),
        )


def _sample(hashes: Any, sizes: Any, ids: Any) -> tuple[Any, Any, Any]:
    chosen = sampled_queries(hashes, sizes)
    return hashes[chosen], sizes[chosen], ids[chosen]


@dataclass(frozen=True)
class TrainingPlan:
    """The rules that turn the rows of a partition into training data, equal for all partitions.

    `loss` and `sums` come from all data. Weights are divided by `weight_unit`, or left out if it is
    None.
    """

    table: Table
    loss: Loss
    sums: LabelSums
    weight_unit: float | None

    def data(self, every: Training | None) -> Training | None:
        """Return the training data of a partition, or None if it has none."""
        data = learnable(every, self.loss)
        if data is None or data.weight is None:
            return data
        weight = None if self.weight_unit is None else data.weight / self.weight_unit
        return replace(data, weight=weight)

    def targets(self, data: Training) -> Any:
        """Return the targets of the rows, or of their pairs."""
        return self.loss.targets_of_part(data.labels, data.queries, self.sums)

    def map(
        self, function: Callable[..., Any], collections: Collections, *more: Any, empty: Any = None
    ) -> list[Any]:
        """Return delayed ``function(training, *more)`` for each partition.

        A partition without training data gives `empty`.
        """

        def call(rows: Rows, *more: Any) -> Any:
            data = self.data(documents(rows, self.table))
            if data is None:
                return empty
            return function(replace(data, targets=self.targets(data)), *more)

        return collections.map(call, *more, empty=empty)

    def largest(self, every: Training | None, center: bool) -> Floats | None:
        """Return the largest absolute target of a partition, and if `center` of centred targets."""
        data = self.data(every)
        if data is None:
            return None
        targets = self.targets(data)
        if isinstance(targets, PairTargets):
            return np.array([targets.largest(), 0.0])
        centred = data.queries.center(targets, data.weight) if center else targets
        return np.array([np.abs(targets).max(), np.abs(centred).max()])


def chosen_columns(columns: list[Any], data: Collections, counts: Counts) -> list[Any]:
    """Return the candidate columns that `CalibratedRanker` would choose."""
    _, sizes, ids = counts.sample
    step = int(sizes.sum()) // SAMPLE_ROWS if counts.n_rows > SAMPLE_ROWS else 1
    read = partial(_sample_of, ids=pd.Index(ids), table=data.table, columns=columns, step=step)
    parts = [part for part in dask.compute(data.map(read))[0] if part is not None]
    sample = pd.concat([part[0] for part in parts], ignore_index=True)
    queries = Queries.from_groups(np.concatenate([part[1] for part in parts]))
    return columns_that_differ(
        sample.to_numpy() if data.table.is_array else sample, columns, queries
    )


def _sample_of(
    rows: Rows, ids: pd.Index, table: Table, columns: list[Any], step: int
) -> tuple[pd.DataFrame, NDArray[Any]] | None:
    """Return columns and query ids of the rows of some queries, every `step`-th row if above 1."""
    data = of_positive_weight(documents(rows, table))
    if data is None:
        return None
    chosen = pd.Index(data.queries.ids).isin(ids)
    if not chosen.any():
        return None
    data = data.take_queries(chosen)
    X, groups = data.X, data.queries.ids[data.queries.codes]
    if step > 1:
        kept, _ = thinned_rows(X, data.queries, step)
        X, groups = take_rows(X, kept), groups[kept]
    return pd.DataFrame(X) if table.is_array else X[columns], groups
