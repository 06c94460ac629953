"""Dask collections of documents: check that they match, and read their partitions on the workers.

All rows of a query must be in one partition. Partitions can then be read and computed
independently. Only `group_queries` moves rows. The last functions make delayed calls for
partitions, and detect workers that are lost during a fit.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.system import CPU_COUNT
from dask.utils import ensure_dict
from numpy.typing import NDArray
from sklearn.utils import check_array

from sklearn_rankcal.labels._labels import check_relevance
from sklearn_rankcal.queries import Queries, check_weight
from sklearn_rankcal.utils._features import check_features, hash_values, split_column
from sklearn_rankcal.utils._messages import check_count, counted
from sklearn_rankcal.utils._numbers import read_numbers


@dataclass(frozen=True)
class Table:
    """The type of X: `meta` is X without rows, `group_column` its column of query ids or None."""

    meta: Any
    group_column: str | None = None

    @property
    def is_array(self) -> bool:
        return isinstance(self.meta, np.ndarray)

    def features(self, X: Any) -> Any:
        """Return the columns of X without the query ids."""
        if self.is_array:
            return X
        return X[[name for name in self.meta.columns if name != self.group_column]]

    def check(self, X: Any, number: int) -> None:
        """Raise an error if partition `number` of X does not have the type of X."""
        if self.is_array:
            if not isinstance(X, np.ndarray):
                raise TypeError(f"Block {number} of X is of type {type(X).__name__}. {_DENSE}")
            return
        for name in self.meta.select_dtypes("category"):
            if name == self.group_column:
                continue
            if not X[name].cat.categories.equals(self.meta[name].cat.categories):
                raise ValueError(
                    f"The categories of column {name!r} differ between partitions, and so do their "
                    "codes. Pass X.categorize() or encode the column."
                )


_DENSE = (
    "Only dense blocks are supported. X.map_blocks(lambda block: block.toarray()) makes them dense."
)


class Rows(NamedTuple):
    """The checked rows of a partition.

    `given` holds arguments for the methods of `CalibratedRanker`: X, unless it was not read, and
    ``groups``, unless X contains the query ids. `numbers` maps the user's names to the labels,
    weights, scores or positions.
    """

    given: dict[str, Any]
    queries: Queries
    numbers: dict[str, NDArray[Any]]

    @property
    def query_weight(self) -> NDArray[np.float64]:
        """The weight of each query: the mean weight of its rows, or 1 without weights."""
        weight = self.numbers.get("sample_weight")
        return np.ones(self.queries.n_queries) if weight is None else self.queries.mean(weight)


class Collections:
    """Dask collections with the same partitions, to be read by `map`.

    `parts` and `dtypes` map the user's name of each collection to its delayed partitions and its
    dtype. `table` is the type of X, or None if there is no X. `chunks` are the numbers of rows, or
    None if unknown. `whole` is the delayed result of `check_whole`; it is None until the query ids
    have been compared.
    """

    def __init__(self, table: Table | None, chunks: tuple[int, ...] | None) -> None:
        self.table: Any = table
        self.chunks = chunks
        self.parts: dict[str, list[Any]] = {}
        self.dtypes: dict[str, Any] = {}
        self.whole: Any = None
        self._checks: dict[str, Callable[[Any], Any]] = {}

    @property
    def n_partitions(self) -> int:
        return len(next(iter(self.parts.values())))

    def add(self, name: str, values: Any, check: Callable[[Any], Any] | None = None) -> None:
        """Add query ids, or row values with a function that checks them, in the same partitions."""
        if isinstance(values, dd.DataFrame) and len(values.columns) == 1:
            values = values[values.columns[0]]
        if not isinstance(values, dd.Series | da.Array):
            raise TypeError(
                f"{name} must be a dask series or array; got {type(values).__name__}. For data in "
                "memory use CalibratedRanker and sklearn_rankcal.metrics."
            )
        first = next(iter(self.parts), name)
        if isinstance(values, da.Array):
            if values.ndim != 1:
                raise ValueError(f"{name} must have one dimension; its shape is {values.shape}.")
            if not self.parts and not np.isnan(values.shape[0]):
                self.chunks = values.chunks[0]
            if self.chunks is not None and not np.isnan(values.shape[0]):
                if values.shape[0] != sum(self.chunks):
                    raise ValueError(
                        f"{name} has {values.shape[0]} entries, but {first} has "
                        f"{sum(self.chunks)} rows."
                    )
                values = values.rechunk((self.chunks,))
            parts = list(values.to_delayed())
        else:
            parts = partitions_of(values)
        if self.parts and len(parts) != self.n_partitions:
            raise ValueError(
                f"{name} has {len(parts)} partitions, but {first} has {self.n_partitions}. "
                "Take both from one data frame, for example X.drop(columns='label') and X['label']."
            )
        self.parts[name], self.dtypes[name] = parts, values.dtype
        if check is not None:
            self._checks[name] = check

    def map(
        self, function: Callable[..., Any], *more: Any, table: bool = True, empty: Any = None
    ) -> list[Any]:
        """Return delayed ``function(rows, *more)`` for each partition.

        `more` are as in `for_each`. A partition without rows gives `empty`. If `table` is False, X
        is not read.
        """
        column = None if self.table is None else self.table.group_column
        unread = "X" if not table else "groups" if column is not None else None
        names = [name for name in self.parts if name != unread]
        n_collections, checks, described = len(names), dict(self._checks), self.table

        def call(number: int, whole: Any, *arguments: Any) -> Any:
            values = dict(zip(names, arguments[:n_collections], strict=True))
            rows = _read_rows(number, values, checks, described)
            if rows is None:
                return empty
            if whole is not None and _fingerprint(rows.queries.ids) != whole[number]:
                raise ValueError(_OTHER_QUERIES)
            return function(rows, *arguments[n_collections:])

        parts = (self.parts[name] for name in names)
        return for_each(call, range(self.n_partitions), repeat(self.whole), *parts, *more)

    def check_queries(self) -> None:
        """Make every read wait until the ids show that no query is in two partitions."""
        whole = delayed(check_whole)(self.map(ids_of, table=False))
        # Each task that takes a value copies its list of layers. With one layer per partition, P
        # tasks would take O(P^2) time.
        layers = {whole.key: MaterializedLayer(ensure_dict(whole.__dask_graph__()))}
        self.whole = Delayed(whole.key, HighLevelGraph(layers, {whole.key: set()}))


def _read_rows(
    number: int, parts: dict[str, Any], checks: dict[str, Callable[[Any], Any]], table: Any
) -> Rows | None:
    """Check the parts of partition `number`; return None if it has no rows."""
    given: dict[str, Any] = {name: parts[name] for name in ("X", "groups") if name in parts}
    if "X" in given:
        table.check(given["X"], number)
    first = next(iter(parts))
    # ids that are read without X come from a column of X
    shown = "X" if first == "groups" and table is not None else first
    n_rows, index = len(parts[first]), getattr(parts[first], "index", None)
    for name, values in parts.items():
        if len(values) != n_rows:
            raise ValueError(
                f"{name} has {len(values)} rows in partition {number}, but {shown} has {n_rows}."
            )
        of_values = getattr(values, "index", None)
        if index is not None and of_values is not None and not of_values.equals(index):
            raise ValueError(
                f"The index of {name} differs from that of {shown} in partition {number}. Take "
                "both from one data frame."
            )
    if not n_rows:
        return None
    ids = given["groups"] if "groups" in given else given["X"][table.group_column]
    try:
        numbers = {name: check(parts[name]) for name, check in checks.items()}
        return Rows(given, Queries.from_groups(ids), numbers)
    except (TypeError, ValueError) as error:
        raise type(error)(f"In partition {number}: {error}") from error


# ---------------------------------------------------------------- whole queries


def ids_of(rows: Any) -> NDArray[Any] | None:
    """Return the unique query ids of a partition, or None if it has no rows."""
    return None if rows is None else rows.queries.ids


def check_whole(ids: list[Any]) -> list[int | None]:
    """Raise an error if a query is in two partitions, given the unique ids of each or None.

    Returns
    -------
    fingerprints : list
        A number that identifies the ids of each partition. The check above reads only the query
        ids, which is cheap. However, if X was joined with another collection, dask can move rows
        when it computes X but not when it computes the ids. The fingerprints reveal this.
    """
    parts = {number: pd.Series(part) for number, part in enumerate(ids) if part is not None}
    every = pd.concat(parts.values(), ignore_index=True) if parts else pd.Series([])
    twice = every[every.duplicated()]
    if len(twice):
        query = twice.iloc[0]
        one, two = [number for number, part in parts.items() if (part == query).any()][:2]
        raise ValueError(
            f"Rows of {counted(twice.nunique(), 'query')} are in several partitions. Query "
            f"{query!s} is in partitions {one} and {two}. Bring the rows of each query together "
            "first, for example by frame = group_queries(frame, 'qid') of sklearn_rankcal.dask."
        )
    return [None if part is None else _fingerprint(part) for part in ids]


def _fingerprint(ids: NDArray[Any]) -> int:
    return int(hash_values(ids).sum())


_OTHER_QUERIES = (
    "The queries in a partition of X differ from its query ids, because X was joined with a "
    "collection that dask aligns by the index. Pass X.persist()."
)


# ---------------------------------------------------------------- reading what the user passes


def partitions_of(collection: Any) -> list[Any]:
    """Return the partitions of a data frame or series, as many as its `npartitions`.

    By default, `to_delayed` merges the partitions of a parquet data set if only a few columns are
    read. The partitions of X and of one column of X would then differ.
    """
    return list(collection.simplify().to_delayed(optimize_graph=False))


def read_weight(values: Any) -> NDArray[np.float64]:
    """Check the weights of a partition. All of them may be 0."""
    weight = read_numbers(values, "sample_weight")
    if weight.any():
        check_weight(weight, len(weight))
    return weight


def read_collections(X: Any, group_column: str | None, groups: Any = None) -> Collections:
    """Check X and the query ids without computing anything."""
    if isinstance(X, dd.DataFrame):
        data = _read_frame(X, group_column)
    elif isinstance(X, da.Array):
        data = _read_array(X, group_column)
    else:
        raise TypeError(
            f"X must be a dask data frame or a dask array; got {type(X).__name__}. Make one, for "
            "example with dask.dataframe.from_pandas, or use CalibratedRanker for data in memory."
        )
    if group_column is None and groups is None:
        raise ValueError(
            "No query ids. Pass groups=<a dask collection with the query id of each row>, or name "
            "the column of X that contains them: group_column='qid'."
        )
    if groups is not None:
        if group_column is not None:
            raise ValueError(
                f"The query ids are already in the column {group_column!r} (group_column). Leave "
                "out groups."
            )
        data.add("groups", groups)
    return data


def add_labels(data: Collections, y: Any, sample_weight: Any) -> None:
    """Add the labels of the rows, and the weights if there are any."""
    data.add("y", y, check_relevance)
    if sample_weight is not None:
        data.add("sample_weight", sample_weight, read_weight)


def _read_frame(X: Any, group_column: str | None) -> Collections:
    meta = X._meta
    if not meta.columns.is_unique:
        raise ValueError("X has several columns of the same name. Rename them.")
    checked = check_features(X._meta_nonempty)  # refuses complex numbers, for example
    features = checked if group_column is None else split_column(checked, group_column)[0]
    for name in features.columns:
        if isinstance(meta[name].dtype, pd.CategoricalDtype) and not X[name].cat.known:
            raise ValueError(
                f"The categories of column {name!r} are not known, and their codes can differ "
                "between partitions. Pass X.categorize() or encode the column."
            )
    data = Collections(Table(meta, group_column), None)
    data.parts["X"] = partitions_of(X)
    if group_column is not None:
        # take the ids from the same partitions: only this column is read
        data.add("groups", X[group_column])
    return data


def _read_array(X: Any, group_column: str | None) -> Collections:
    if group_column is not None:
        raise ValueError(
            f"group_column={group_column!r} needs X as a dask data frame with that column. For an "
            "array pass groups=<a dask array of query ids>."
        )
    if not isinstance(X._meta, np.ndarray):
        raise TypeError(f"The blocks of X are of type {type(X._meta).__name__}. {_DENSE}")
    if X.dtype.kind not in "biufcO":
        raise ValueError(
            f"X must be real numbers; its dtype is {X.dtype}. Convert it first, for example by "
            "X.astype(float), or encode its columns."
        )
    check_array(np.zeros((1, *X.shape[1:]), X.dtype))
    if X.dtype == object:  # like CalibratedRanker
        X = X.astype(np.float64)
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    known = not np.isnan(X.shape[0])
    chunks = tuple(int(size) for size in X.chunks[0]) if known else None
    data = Collections(Table(np.empty((0, X.shape[1]), X.dtype)), chunks)
    data.parts["X"] = list(X.to_delayed().reshape(-1))
    return data


#: Columns that are moved along with the user's: a hash of the query id, by which dask chooses the
#: partition; the index; and the row number, (partition) * 2^36 + (place in the partition).
_HASH, _INDEX, _ROW = "hash", "index", "row"
_PARTITION_BITS = 36


def group_queries(frame: Any, group_column: str, npartitions: int | None = None) -> Any:
    """Bring the rows of each query to the same partition, lazily.

    Parameters
    ----------
    frame : dask data frame
        One row per query-document pair, in any partitions, with known categories.
    group_column : str
        Name of the column of query ids, which can be numbers, times or text.
    npartitions : int, default=None
        Number of partitions of the result. None keeps the number of partitions of `frame`.

    Returns
    -------
    grouped : dask data frame
        The rows of `frame` with their columns and index. Each query is in a single partition, with
        its rows in the original order. The divisions are unknown.

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


#: Minutes that LightGBM's workers wait for each other, unless the regressor sets its own limit.
#: LightGBM's default is 120. XGBoost waits 5 minutes (``coll_cfg``).
LIGHTGBM_MINUTES = 5
_SECONDS_BETWEEN_LOOKS = 1.0
#: Number of partial results to add in one task.
_FAN_IN = 8


def for_each(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return one delayed call of a function for each entry of the arguments, like `map`.

    An argument can be endless, such as `itertools.repeat` of a delayed value used in all calls.
    Bind common arguments with `functools.partial`: dask searches every argument of every call for
    collections, which takes longer than the call itself.
    """
    call = delayed(function, pure=False)
    return [call(*each) for each in zip(*arguments, strict=False)]


def add_up(parts: list[Any], add: Callable[[Any, Any], Any] = operator.add) -> Any:
    """Compute the sum of delayed values, a few at a time. None counts as zero."""
    return dask.compute(delayed_sum(parts, add))[0]


def delayed_sum(parts: list[Any], add: Callable[[Any, Any], Any] = operator.add) -> Any:
    """Return the delayed value of `add_up`."""

    def added(*values: Any) -> Any:
        total = None
        for value in values:
            total = value if total is None else total if value is None else add(total, value)
        return total

    call = delayed(added, pure=False)
    while len(parts) > 1:
        parts = [call(*parts[first : first + _FAN_IN]) for first in range(0, len(parts), _FAN_IN)]
    return parts[0]


# ---------------------------------------------------------------- workers


def is_from(regressor: Any, *modules: str) -> bool:
    """Return whether the regressor's class or one of its base classes is from a module."""
    return any(kind.__module__.startswith(modules) for kind in type(regressor).__mro__)


def wait_less_long(regressor: Any) -> Any:
    """Set the time-out of a LightGBM regressor, unless it is already set."""
    if is_from(regressor, "lightgbm.dask"):
        if regressor.get_params().get("time_out") is None:
            regressor.set_params(time_out=LIGHTGBM_MINUTES)
    return regressor


@contextmanager
def refuse_lost_workers(regressor: Any) -> Iterator[None]:
    """Raise an error if a worker is lost in the block, instead of waiting for it forever.

    LightGBM and XGBoost train in tasks tied to a worker and its part of the data. If that worker is
    lost, no other worker can run its task. Therefore the futures of the block are cancelled as soon
    as a worker is missing.
    """
    client = _client()
    if client is None:
        yield
        return
    before = set(client.futures)
    # Do not use `scheduler_info`: it returns a cached answer, which a callback of the client
    # overwrites every two seconds with an answer that lists no workers.
    workers = set(client.nthreads())
    lost: set[str] = set()
    stop = threading.Event()

    def look() -> None:
        from distributed import Future

        while not stop.wait(_SECONDS_BETWEEN_LOOKS):
            missing = workers - set(client.nthreads())
            if missing:
                lost.update(missing)
                keys = [key for key in list(client.futures) if key not in before]
                # Cancelling a task with dependents fails inside the scheduler (2026.8).
                try:
                    keys = client.run_on_scheduler(_without_dependents, keys=keys)
                finally:  # also if this package is not installed on the scheduler
                    client.cancel([Future(key, client) for key in keys])
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        # The library can notice the lost worker before the next look.
        stop.wait(_SECONDS_BETWEEN_LOOKS)
        lost.update(workers - set(client.nthreads()))
        if lost:
            raise _lost_worker(regressor, lost) from error
        raise
    finally:
        stop.set()
        thread.join(timeout=10)
    if lost:
        raise _lost_worker(regressor, lost)


def _without_dependents(dask_scheduler: Any, keys: list[Any]) -> list[Any]:
    tasks = dask_scheduler.tasks
    return [key for key in keys if key in tasks and not tasks[key].dependents]


def n_threads() -> int:
    """Return the number of tasks that the workers, or this machine's threads, run in parallel."""
    client = _client()
    if client is not None:
        return max(1, sum(client.nthreads().values()))
    if dask.config.get("scheduler", None) in ("sync", "synchronous", "single-threaded"):
        return 1
    return dask.config.get("num_workers", None) or CPU_COUNT


def _lost_worker(regressor: Any, lost: set[str]) -> RuntimeError:
    return RuntimeError(
        f"{len(lost)} of the workers ({', '.join(sorted(lost))}) was lost while "
        f"{type(regressor).__name__} was fitted, with its part of the data. No model was kept. "
        "Call fit again. If the worker ran out of memory, use more workers or smaller partitions."
    )


def _client() -> Any:
    """Return the active client of distributed, or None."""
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None
