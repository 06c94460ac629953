"""What `fit` learns from labels alone, and the training data of one partition.

Targets and columns of a query depend on a few numbers of all queries. They are reductions over
frames that contain labels, query ids and weights, but not the columns of X.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_rankcal.dask._documents import ID, LABEL, WEIGHT, Form
from sklearn_rankcal.losses import LabelSums, Loss
from sklearn_rankcal.models._automatic_context import sampled_queries
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._training import TrainingData
from sklearn_rankcal.targets import PairTargets
from sklearn_rankcal.utils._row_hashes import hash_values

Floats = NDArray[np.float64]


def query_ids(frame: pd.DataFrame) -> NDArray[Any]:
    """Return the query id of each row as an array of numbers, times or objects."""
    ids = frame[ID]
    return ids.to_numpy(dtype=object) if ids.dtype == "string" else ids.to_numpy()


def queries_of(frame: pd.DataFrame) -> Queries:
    """Return the partition of the rows of a frame into queries."""
    return Queries.from_groups(query_ids(frame), len(frame))


def read_weight(frame: pd.DataFrame) -> Floats | None:
    """Return the weights of the rows, or None if there are none."""
    return frame[WEIGHT].to_numpy() if WEIGHT in frame else None


@dataclass(frozen=True)
class Ranges:
    """The extremes of labels and weights over rows of positive weight.

    Attributes
    ----------
    labels : tuple of float
        The smallest and the largest label.
    weights : tuple of float
        The smallest and the largest weight; 1 if there are none.
    """

    labels: tuple[float, float]
    weights: tuple[float, float]

    @classmethod
    def of(cls, frame: pd.DataFrame, loss: Loss) -> Ranges | None:
        """Check that labels are in the range of the loss, and return the extremes.

        None means that the partition has no row of positive weight.
        """
        if not len(frame):
            return None
        weight = read_weight(frame)
        labels = frame[LABEL].to_numpy()
        if weight is not None:
            labels, weight = labels[weight > 0], weight[weight > 0]
            if not len(weight):
                return None
        loss.check(labels)
        weights = (1.0, 1.0) if weight is None else (float(weight.min()), float(weight.max()))
        return cls((float(labels.min()), float(labels.max())), weights)

    def plus(self, other: Ranges) -> Ranges:
        """Return the extremes over the rows of both."""
        pairs = ((self.labels, other.labels), (self.weights, other.weights))
        return Ranges(*((min(one[0], two[0]), max(one[1], two[1])) for one, two in pairs))


@dataclass(frozen=True)
class Counts:
    """Sums over the queries of the training data.

    Attributes
    ----------
    n_queries, n_documents : int
        The numbers of queries and of rows.
    longest : int
        The number of rows of the longest query.
    n_kept, n_rows : int
        The number of queries on which the loss is defined, and of their rows of positive weight.
    sums : LabelSums
        Sums over these queries.
    weight : float
        Sum of the weights of these rows.
    sample : tuple of ndarray
        Hashes of ids, sizes and ids of the queries that `sampled_queries` chooses.
    """

    n_queries: int
    n_documents: int
    longest: int
    n_kept: int
    n_rows: int
    sums: LabelSums
    weight: float
    sample: tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[Any]]

    @classmethod
    def of(cls, frame: pd.DataFrame, loss: Loss) -> Counts | None:
        """Return the sums of a partition."""
        if not len(frame):
            return None
        every = queries_of(frame)
        n_queries, longest = every.n_queries, int(every.sizes.max())
        data = training_data(frame, None, loss)
        if data is None:
            nothing = (np.empty(0, np.uint64), np.empty(0, np.int64), every.ids[:0])
            return cls(n_queries, len(frame), longest, 0, 0, LabelSums(), 0.0, nothing)
        queries = data.queries
        weight = queries.n_rows if data.weight is None else data.weight.sum()
        hashes = hash_values(queries.ids)
        chosen = sampled_queries(hashes, queries.sizes)
        return cls(
            n_queries,
            len(frame),
            longest,
            queries.n_queries,
            queries.n_rows,
            loss.label_sums(data.labels, queries),
            float(weight),
            (hashes[chosen], queries.sizes[chosen], queries.ids[chosen]),
        )

    def plus(self, other: Counts) -> Counts:
        """Return the sums over the queries of both."""
        hashes, sizes, ids = (
            np.concatenate(pair) for pair in zip(self.sample, other.sample, strict=True)
        )
        chosen = sampled_queries(hashes, sizes)
        return Counts(
            self.n_queries + other.n_queries,
            self.n_documents + other.n_documents,
            max(self.longest, other.longest),
            self.n_kept + other.n_kept,
            self.n_rows + other.n_rows,
            self.sums.plus(other.sums),
            self.weight + other.weight,
            (hashes[chosen], sizes[chosen], ids[chosen]),
        )


def training_data(frame: pd.DataFrame, form: Form | None, loss: Loss) -> TrainingData | None:
    """Return the rows of positive weight of the queries on which the loss is defined.

    Parameters
    ----------
    frame : pandas.DataFrame
        A partition with whole queries.
    form : Form or None
        None leaves out the columns of X.
    loss : Loss

    Returns
    -------
    data : TrainingData or None
        None if there is no such row.
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

    Attributes
    ----------
    form : Form
    loss : Loss
        The loss, with parameters left to the data filled in.
    sums : LabelSums
        Sums over all queries on which the loss is defined.
    weight_unit : float or None
        Weights are divided by it. None leaves them out.
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


@dataclass(frozen=True)
class TargetRange:
    """The largest absolute values of targets, and of targets minus the mean of their query."""

    largest: float
    largest_centred: float

    @classmethod
    def of(cls, frame: pd.DataFrame, plan: Plan, center: bool) -> TargetRange | None:
        """Return the largest targets of a partition."""
        data = plan.data(frame, table=False)
        if data is None:
            return None
        targets = plan.targets(data)
        if isinstance(targets, PairTargets):
            return cls(float(targets.largest()), 0.0)
        largest = float(np.abs(targets).max())
        if center:
            targets = data.queries.center(targets, data.weight)
        return cls(largest, float(np.abs(targets).max()))

    def plus(self, other: TargetRange) -> TargetRange:
        """Return the largest values of both."""
        return TargetRange(
            max(self.largest, other.largest), max(self.largest_centred, other.largest_centred)
        )
