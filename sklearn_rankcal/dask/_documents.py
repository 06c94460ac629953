"""Documents of dask collections: one data frame for each partition, with whole queries in each.

Four collections come in: a table, query ids, labels and weights, as data frames or as arrays. Each
of their partitions becomes one pandas frame. If partitions may cut queries, the rows are then moved
so that every query is in one partition.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.utils import ensure_dict
from numpy.typing import NDArray

from sklearn_rankcal.labels._relevance import check_relevance
from sklearn_rankcal.queries import check_weight
from sklearn_rankcal.utils._names import did_you_mean
from sklearn_rankcal.utils._numbers import read_numbers

# The columns that a frame has besides those of X.
ID, LABEL, WEIGHT, ROW, INDEX = "__query__", "__label__", "__weight__", "__row__", "__index__"
# A row has the number (partition) * 2^36 + (place in the partition).
PARTITION_BITS = 36
_SHOWN = {ID: "groups", LABEL: "y", WEIGHT: "sample_weight", "X": "X"}
#: How many partial results are added in one task.
_FAN_IN = 8


@dataclass(frozen=True)
class Form:
    """The columns of a table, whose partitions all have them.

    Attributes
    ----------
    columns : list of str
        The names of the columns of X in the frames.
    names : list or None
        Their names in X; None if X is an array.
    group_column : str or None
        The column of X with the query ids.
    categories : dict
        The categories of each categorical column, by its name in the frames.
    """

    columns: list[str]
    names: list[Any] | None
    group_column: str | None
    categories: dict[str, Any] = field(default_factory=dict)

    @property
    def is_array(self) -> bool:
        """Whether X is an array."""
        return self.names is None

    def table(self, frame: pd.DataFrame) -> Any:
        """Return X as the user passed it: a frame, or an array."""
        table = frame[self.columns]
        if self.names is None:
            return table.to_numpy()
        return table if self.names == self.columns else table.set_axis(self.names, axis=1)

    def features(self, frame: pd.DataFrame) -> Any:
        """Return X without the column of query ids."""
        table = self.table(frame)
        return table if self.group_column is None else table.drop(columns=self.group_column)


@dataclass
class Collections:
    """Dask collections with the same partitions.

    Attributes
    ----------
    parts : dict of str to list
        The partitions of ``"X"``, and of query ids, labels and weights where they were given.
    form : Form
    meta : pandas.DataFrame
        A frame without rows and with the columns of a joined partition.
    chunks : tuple or None
        The numbers of rows of the partitions, if X is an array whose chunks are known.
    index_name : object
        The name of the index of X, if it is a data frame.
    """

    parts: dict[str, list[Any]]
    form: Form
    meta: pd.DataFrame
    chunks: tuple[int, ...] | None
    index_name: Any = None

    @property
    def n_partitions(self) -> int:
        return len(self.parts["X"])

    def frames(self, *, table: bool = True, index: bool = False) -> list[Any]:
        """Return one delayed frame for each partition, as `meta_of` describes them."""
        names = [name for name in self.parts if table or name != "X"]
        if table and self.form.group_column is not None:
            names.remove(ID)  # X contains it
        meta = self.meta_of(table=table, index=index)
        parts = (self.parts[name] for name in names)
        join = partial(_join, names=names, form=self.form, meta=meta)
        return for_each(join, range(self.n_partitions), *parts)

    def meta_of(self, *, table: bool = True, index: bool = False) -> pd.DataFrame:
        """Return the frame without rows for `frames`.

        Parameters
        ----------
        table : bool, default=True
            Whether it has the columns of X.
        index : bool, default=False
            Whether it has a column with the index of X, if X is a data frame.
        """
        names = [ID, LABEL, WEIGHT, ROW, *([INDEX] if index else [])]
        kept = [*(self.form.columns if table else []), *(n for n in names if n in self.meta)]
        return self.meta[kept]

    def grouped(
        self, frames: list[Any], meta: pd.DataFrame, n_partitions: int | None = None
    ) -> list[Any]:
        """Move the rows of delayed frames so that every query is in one partition.

        The rows of a partition keep the order that they have in the collection. Partitions can be
        empty. By default there are as many of them as frames.
        """
        return group_frames(frames, meta, n_partitions)

    def restored(self, frames: list[Any], meta: pd.DataFrame) -> list[Any]:
        """Move the rows of delayed frames to the partitions and places that they came from."""
        numbered = for_each(_number_partitions, frames)
        meta = _number_partitions(meta)
        if self.n_partitions == 1:
            moved = [delayed(pd.concat)(numbered)]
        else:
            frame = dd.from_delayed(numbered, meta=meta, verify_meta=True)
            edges = (*range(self.n_partitions), self.n_partitions)
            moved = frame.set_index("__partition__", divisions=edges).to_delayed()
        return for_each(_in_order, moved)


def read_collections(
    X: Any,
    group_column: str | None,
    groups: Any = None,
    y: Any = None,
    sample_weight: Any = None,
) -> Collections:
    """Check dask collections, without computing anything.

    Raises
    ------
    TypeError
        If X is not a dask data frame or array, or if its numbers are in sparse blocks.
    ValueError
        If the partitions of the collections differ, if there are no query ids, or if the categories
        of a column are not known.
    """
    if isinstance(X, dd.DataFrame):
        collections = _read_frame(X, group_column)
    elif isinstance(X, da.Array):
        collections = _read_array(X, group_column)
    else:
        raise TypeError(
            f"X must be a dask data frame or a dask array; got {type(X).__name__}. Make one with "
            "dask.dataframe.read_parquet, dask.dataframe.from_pandas(X, npartitions=4) or "
            "dask.array.from_array, or use CalibratedRanker for data in memory."
        )
    given = {"groups": groups, "y": y, "sample_weight": sample_weight}
    for name, values in given.items():
        if values is not None:
            part_name = next(part for part, shown in _SHOWN.items() if shown == name)
            _add(collections, name, part_name, values, X)
    if group_column is None and groups is None:
        raise ValueError(
            "No query ids. Pass groups=<a dask collection with the query id of each row>, or name "
            "the column of X that contains them: group_column='qid'."
        )
    return collections


def _read_frame(X: Any, group_column: str | None) -> Collections:
    meta = X._meta
    names = list(meta.columns)
    reserved = {ID, LABEL, WEIGHT, ROW, INDEX} & set(names)
    if reserved:
        raise ValueError(
            f"X has a column {min(reserved)!r}, a name that is used inside. Rename it."
        )
    if not meta.columns.is_unique:
        raise ValueError("X has several columns of the same name. Rename them.")
    if not names:
        raise ValueError("X has no columns: at least one feature is needed.")
    complex_columns = [name for name in names if meta[name].dtype.kind == "c"]
    if complex_columns:
        raise ValueError(f"Complex data not supported: columns {complex_columns} of X are complex.")
    parts = {"X": _partitions(X)}
    if group_column is not None:
        if group_column not in names:
            hint = did_you_mean(group_column, [name for name in names if isinstance(name, str)])
            raise ValueError(
                f"group_column={group_column!r} is not among the columns {names[:20]}.{hint}"
            )
        if len(names) == 1:
            raise ValueError(
                f"X has no column besides group_column={group_column!r}: at least one feature is "
                "needed."
            )
        # of the same partitions, so that only this column has to be read
        parts[ID] = _partitions(X[group_column])
    # Only text can name the columns of a frame whose rows are moved between workers.
    text = all(isinstance(name, str) for name in names)
    columns = names if text else _column_names(len(names))
    categories = {}
    for name, column in zip(names, columns, strict=True):
        if isinstance(meta[name].dtype, pd.CategoricalDtype) and name != group_column:
            if not X[name].cat.known:
                raise ValueError(
                    f"The categories of column {name!r} are not known, so that their codes can "
                    "differ between partitions. Pass X.categorize() or encode the column."
                )
            categories[column] = meta[name].cat.categories
    form = Form(columns, names, group_column, categories)
    joined = meta.set_axis(columns, axis=1).assign(**{ROW: np.empty(0, np.int64)})
    if group_column is not None:
        joined[ID] = _id_meta(meta[group_column])
    joined[INDEX] = meta.index.to_numpy() if meta.index.dtype.kind in "iuf" else meta.index
    return Collections(parts, form, joined, None, meta.index.name)


def check_labels_passed(y: Any) -> None:
    """Raise an error if y is None."""
    if y is None:
        raise ValueError(
            "This ranker requires y to be passed, but the target y is None. Pass a relevance of "
            "every row as a dask series or array with the partitions of X."
        )


def _column_names(n: int) -> list[str]:
    return [f"x{number}" for number in range(n)]


def _partitions(collection: Any) -> list[Any]:
    """Return the partitions of a data frame or series, as many as it says that it has.

    The default of `to_delayed` merges partitions of a parquet data set of which few columns are
    read, so that those of X and of a column of X would differ.
    """
    return list(collection.simplify().to_delayed(optimize_graph=False))


def _read_array(X: Any, group_column: str | None) -> Collections:
    if group_column is not None:
        raise ValueError(
            f"group_column={group_column!r} needs X as a dask data frame with that column. For an "
            "array pass groups=<a dask array of query ids>."
        )
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
    if not isinstance(X._meta, np.ndarray):
        raise TypeError(
            f"The blocks of X are of type {type(X._meta).__name__}. Only dense blocks are taken: "
            "X.map_blocks(lambda block: block.toarray()) makes them dense."
        )
    if X.shape[1] == 0:
        raise ValueError("X has no columns: at least one feature is needed.")
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must be real numbers.")
    if X.dtype.kind not in "biufO":
        raise ValueError(
            f"X must be real numbers; its dtype is {X.dtype}. Convert it first, for example by "
            "X.astype(float), or encode its columns."
        )
    if X.dtype == object:  # as CalibratedRanker does
        X = X.astype(np.float64)
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    columns = _column_names(X.shape[1])
    meta = pd.DataFrame(np.empty((0, len(columns)), X.dtype), columns=columns)
    meta = meta.assign(**{ROW: np.empty(0, np.int64)})
    known = not np.isnan(X.shape[0])
    chunks = tuple(int(size) for size in X.chunks[0]) if known else None
    parts = {"X": list(X.to_delayed().reshape(-1))}
    return Collections(parts, Form(columns, None, None), meta, chunks)


def _add(collections: Collections, name: str, part_name: str, values: Any, X: Any) -> None:
    """Add the partitions of query ids, labels or weights."""
    if isinstance(values, dd.DataFrame) and len(values.columns) == 1:
        values = values[values.columns[0]]
    if not isinstance(values, dd.Series | da.Array):
        raise TypeError(
            f"{name} must be a dask series or array with the partitions of X; got "
            f"{type(values).__name__}."
        )
    if getattr(values.dtype, "names", None) is not None:
        raise ValueError(
            f"{name} is a structured array with the fields {values.dtype.names}. "
            "DaskCalibratedRanker takes y as a relevance of every row, and the query ids as groups "
            "or in a column of X (group_column)."
        )
    if isinstance(values, da.Array):
        if values.ndim != 1:
            raise ValueError(f"{name} must have one dimension; its shape is {values.shape}.")
        sizes = collections.chunks
        if sizes is not None and not np.isnan(values.shape[0]):
            if values.shape[0] != sum(sizes):
                raise ValueError(
                    f"{name} has {values.shape[0]} entries, but X has {sum(sizes)} rows."
                )
            values = values.rechunk((sizes,))
        meta = pd.Series(np.empty(0, values.dtype))
        parts = list(values.to_delayed().reshape(-1))
    else:
        meta = values._meta
        parts = _partitions(values)
    if len(parts) != collections.n_partitions:
        raise ValueError(
            f"{name} has {len(parts)} partitions, but X has {collections.n_partitions}. Take both "
            "from one data frame, for example X.drop(columns='label') and X['label']."
        )
    divisions = getattr(values, "divisions", None)
    if (
        isinstance(X, dd.DataFrame)
        and isinstance(values, dd.Series)
        and X.known_divisions
        and values.known_divisions
        and divisions != X.divisions
    ):
        raise ValueError(
            f"{name} has other divisions than X. Repartition it: "
            f"{name}.repartition(divisions=X.divisions)."
        )
    if part_name == ID:
        if collections.form.group_column is not None:
            raise ValueError(
                f"The query ids are in the column {collections.form.group_column!r} already "
                "(group_column). Leave out groups."
            )
        collections.meta[ID] = _id_meta(meta)
    else:
        collections.meta[part_name] = np.empty(0)
    collections.parts[part_name] = parts


def _id_meta(ids: pd.Series) -> pd.Series:
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


def _read_ids(number: int, values: Any, dtype: Any) -> Any:
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


def _read_floats(number: int, values: Any, name: str) -> NDArray[np.float64]:
    """Return the labels or the weights of a partition, after checking them."""
    if not len(values):
        return np.empty(0)
    try:
        if name == _SHOWN[LABEL]:
            return check_relevance(values)
        weight = read_numbers(values, name)
        if weight.any():  # `check_weight` refuses weights that are all 0
            check_weight(weight, len(weight))
        return weight
    except (TypeError, ValueError) as error:
        raise type(error)(f"In partition {number}: {error}") from error


def _join(
    number: int, *given: Any, names: list[str], form: Form, meta: pd.DataFrame
) -> pd.DataFrame:
    """Join the partitions of the collections `names` to one frame."""
    parts = dict(zip(names, given, strict=True))
    first: Any = parts.get("X")
    if first is None:
        first = parts[ID]
    elif form.is_array:
        if not isinstance(first, np.ndarray):
            raise TypeError(
                f"Block {number} of X is of type {type(first).__name__}. Only dense blocks are "
                "taken: X.map_blocks(lambda block: block.toarray()) makes them dense."
            )
    elif form.group_column is not None:
        parts = {**parts, ID: first[form.group_column]}
    n_rows = len(first)
    index = None if form.is_array else getattr(first, "index", None)
    columns: dict[str, Any] = {}
    for name, values in parts.items():
        if len(values) != n_rows:
            raise ValueError(
                f"{_SHOWN[name]} has {len(values)} rows in partition {number}, but X has {n_rows}."
            )
        of_values = getattr(values, "index", None)
        if index is not None and of_values is not None and not of_values.equals(index):
            raise ValueError(
                f"The index of {_SHOWN[name]} differs from that of X in partition {number}. Take "
                "both from one data frame."
            )
        if name == ID:
            columns[ID] = _read_ids(number, values, meta[ID].dtype)
        elif name != "X":
            columns[name] = _read_floats(number, values, _SHOWN[name])
    columns[ROW] = (number << PARTITION_BITS) + np.arange(n_rows)
    if "X" not in parts:
        return pd.DataFrame(columns).astype(dict(meta.dtypes))[list(meta.columns)]
    if form.is_array:
        table = pd.DataFrame(np.asarray(first), columns=form.columns)
    else:
        table = first[form.names].set_axis(form.columns, axis=1).reset_index(drop=True)
        if index is not None and INDEX in meta:
            columns[INDEX] = index.array
        for name, categories in form.categories.items():
            if not table[name].cat.categories.equals(categories):
                raise ValueError(
                    f"The categories of column {name!r} differ between partitions, and so do their "
                    "codes. Pass X.categorize() or encode the column."
                )
    joined = pd.concat([table, pd.DataFrame(columns)], axis=1)[list(meta.columns)]
    # Partitions can have other dtypes than the collection says, for example whole numbers.
    other = {n: t for n, t in meta.dtypes.items() if joined.dtypes[n] != t}
    return joined.astype(other) if other else joined


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in the order that they have in the collection."""
    return frame.sort_values(ROW, ignore_index=True)


def group_frames(
    frames: list[Any], meta: pd.DataFrame, n_partitions: int | None = None
) -> list[Any]:
    """Move the rows of delayed frames, which have ids and numbers, as `Collections.grouped`."""
    frame = dd.from_delayed(frames, meta=meta, verify_meta=True)
    moved = frame.shuffle(on=ID, npartitions=n_partitions or len(frames))
    return for_each(_in_order, moved.to_delayed())


def _number_partitions(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(__partition__=frame[ROW] // 2**PARTITION_BITS)


def for_each(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return one delayed call of a function for each entry of the arguments, as `map` does.

    What the calls have in common is best given by `functools.partial`: dask looks for collections
    inside every argument of every call, which takes longer than the call.
    """
    call = delayed(function, pure=False)
    return [call(*each) for each in zip(*arguments, strict=True)]


def in_one_layer(value: Delayed) -> Delayed:
    """Return a delayed value whose graph is one layer.

    Each task that takes the value copies the list of its layers. If every partition has a layer of
    its own, P tasks would take O(P^2) time.
    """
    tasks = ensure_dict(value.__dask_graph__())
    layers = {value.key: MaterializedLayer(tasks)}
    return Delayed(value.key, HighLevelGraph(layers, {value.key: set()}))


def add_up(parts: list[Any], add: Callable[[Any, Any], Any] = operator.add) -> Any:
    """Return the delayed sum of delayed values, added a few at a time.

    Values can be None, which adds nothing.
    """

    def added(*values: Any) -> Any:
        total = None
        for value in values:
            total = value if total is None else total if value is None else add(total, value)
        return total

    call = delayed(added, pure=False)
    while len(parts) > 1:
        parts = [call(*parts[first : first + _FAN_IN]) for first in range(0, len(parts), _FAN_IN)]
    return parts[0]


def ids_of_partition(frame: pd.DataFrame) -> pd.Series:
    """Return the query ids of a partition, each once."""
    return frame[ID].drop_duplicates()


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


def ids_of_column(frame: Any, group_column: str) -> list[Any]:
    """Return the delayed query ids of each partition of a data frame, each once."""
    column = frame[group_column]
    read, dtype = delayed(_distinct_ids), _id_meta(column._meta).dtype
    return [read(number, part, dtype) for number, part in enumerate(_partitions(column))]


def _distinct_ids(number: int, values: pd.Series, dtype: Any) -> pd.Series:
    return pd.Series(_read_ids(number, values, dtype)).drop_duplicates()


def find_cut_query(ids: list[pd.Series]) -> tuple[int, Any, int, int] | None:
    """Find queries in several partitions, given the query ids of each, each once.

    Returns
    -------
    found : tuple or None
        The number of such queries, the id of one of them, and two of its partitions. None if there
        is no such query.
    """
    every = pd.concat(ids, ignore_index=True)
    twice = every[every.duplicated()]
    if not len(twice):
        return None
    one, two = [k for k, part in enumerate(ids) if (part == twice.iloc[0]).any()][:2]
    return twice.nunique(), twice.iloc[0], one, two


def check_whole(ids: list[pd.Series]) -> None:
    """Raise an error if a query is in two partitions, given the query ids of each, each once.

    Raises
    ------
    ValueError
        The error names a query and its partitions.
    """
    found = find_cut_query(ids)
    if found is not None:
        n_queries, query, one, two = found
        raise ValueError(
            f"whole_queries=True, but {n_queries:,} queries are in several partitions. Query "
            f"{query!s} is in partitions {one} and {two}. Leave out whole_queries, or "
            "bring the rows of each query together first (group_queries)."
        )
