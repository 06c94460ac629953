"""Documents of dask collections, joined to one data frame for each partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from numpy.typing import NDArray

from sklearn_rankcal.dask._query_ids import (
    ID,
    PARTITION_BITS,
    ROW,
    group_frames,
    id_meta,
    in_order,
    partitions_of,
    read_ids,
)
from sklearn_rankcal.dask._tasks import for_each
from sklearn_rankcal.labels._relevance import check_relevance
from sklearn_rankcal.queries import check_weight
from sklearn_rankcal.utils._names import did_you_mean
from sklearn_rankcal.utils._numbers import read_numbers

#: The columns that a frame has besides those of X, `ID` and `ROW`.
LABEL, WEIGHT, INDEX = "__label__", "__weight__", "__index__"


class Column(NamedTuple):
    """How numbers of rows are read: the user's name for them, a check, and their dtype."""

    shown: str
    check: Callable[[Any], Any]
    dtype: Any = np.float64


def _check_weight(values: Any) -> NDArray[np.float64]:
    weight = read_numbers(values, "sample_weight")
    if weight.any():  # weights of one partition can all be 0
        check_weight(weight, len(weight))
    return weight


WEIGHTS = Column("sample_weight", _check_weight)
_IDS = Column("groups", lambda values: values)


@dataclass(frozen=True)
class Form:
    """The columns of a table, whose partitions all have them.

    `columns` are the names of the columns of X in the frames, and `names` those in X, or None if X
    is an array. `categories` has those of each categorical column, by its name in the frames.
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

    `parts` are the delayed partitions of ``"X"``, if there is a table, and of each column by its
    name in a frame; `columns` say how the latter are read, and `form` what the table is. `meta` is
    a frame without rows, with the columns of a joined partition. `chunks` (numbers of rows) and
    `index_name` (of the index of X) are None if they are not known.
    """

    parts: dict[str, list[Any]]
    columns: dict[str, Column]
    form: Any  # a Form, or None if there is no table
    meta: pd.DataFrame
    chunks: tuple[int, ...] | None = None
    index_name: Any = None

    @property
    def n_partitions(self) -> int:
        return len(next(iter(self.parts.values())))

    @property
    def by_index(self) -> bool:
        """Whether rows of series must have equal indexes, which those of arrays do not have."""
        return self.form is None or not self.form.is_array

    @property
    def first(self) -> str:
        """The user's name of what the others must have the partitions of."""
        return "X" if self.form is not None else next(iter(self.columns.values())).shown

    def frames(self, *, table: bool = True, index: bool = False) -> list[Any]:
        """Return one delayed frame for each partition, as `meta_of` describes them."""
        names = [name for name in self.parts if table or name != "X"]
        if table and self.form is not None and self.form.group_column is not None:
            names.remove(ID)  # X contains it
        described = replace(self, parts={}, meta=self.meta_of(table=table, index=index))
        join = partial(_join, names=names, described=described)
        return for_each(join, range(self.n_partitions), *(self.parts[name] for name in names))

    def meta_of(self, *, table: bool = True, index: bool = False) -> pd.DataFrame:
        """Return the frame without rows for `frames`: with the columns of X, and its index."""
        names = [*self.columns, ID, ROW, *([INDEX] if index else [])]
        features = self.form.columns if self.form is not None and table else []
        return self.meta[[*features, *dict.fromkeys(n for n in names if n in self.meta)]]

    def grouped(self, *, table: bool = True, index: bool = False) -> list[Any]:
        """Return delayed frames of rows that are moved so that queries are in one partition."""
        return group_frames(
            self.frames(table=table, index=index), self.meta_of(table=table, index=index)
        )

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
        return for_each(in_order, moved)

    def add(self, name: str, column: Column, values: Any) -> None:
        """Add query ids or numbers of rows, after checking that they have the same partitions."""
        shown = column.shown
        if isinstance(values, dd.DataFrame) and len(values.columns) == 1:
            values = values[values.columns[0]]
        if not isinstance(values, dd.Series | da.Array):
            raise TypeError(
                f"{shown} must be a dask series or array; got {type(values).__name__}. For data in "
                "memory use CalibratedRanker and sklearn_rankcal.metrics."
            )
        if getattr(values.dtype, "names", None) is not None:
            raise ValueError(
                f"{shown} is a structured array with the fields {values.dtype.names}. Pass a "
                "relevance of every row, and the query ids apart."
            )
        if isinstance(values, da.Array):
            if values.ndim != 1:
                raise ValueError(f"{shown} must have one dimension; its shape is {values.shape}.")
            if not self.parts and not np.isnan(values.shape[0]):
                self.chunks = values.chunks[0]
            if self.chunks is not None and not np.isnan(values.shape[0]):
                if values.shape[0] != sum(self.chunks):
                    raise ValueError(
                        f"{shown} has {values.shape[0]} entries, but {self.first} has "
                        f"{sum(self.chunks)} rows."
                    )
                values = values.rechunk((self.chunks,))
            meta, parts = pd.Series(np.empty(0, values.dtype)), list(values.to_delayed())
        else:
            meta, parts = values._meta, partitions_of(values)
        if self.parts and len(parts) != self.n_partitions:
            raise ValueError(
                f"{shown} has {len(parts)} partitions, but {self.first} has {self.n_partitions}. "
                "Take both from one data frame, for example X.drop(columns='label') and X['label']."
            )
        if name == ID:
            self.meta[ID] = id_meta(meta)
        else:
            self.meta[name] = np.empty(0, column.dtype)
        self.columns[name], self.parts[name] = column, parts


def read_columns(given: dict[str, tuple[Column, Any]], groups: Any) -> Collections:
    """Check dask series or arrays of the same rows, without computing anything.

    The first one says what the partitions are.
    """
    collections = Collections({}, {}, None, pd.DataFrame({ROW: np.empty(0, np.int64)}))
    for name, (column, values) in given.items():
        collections.add(name, column, values)
    collections.add(ID, _IDS, groups)
    return collections


def read_collections(
    X: Any,
    group_column: str | None,
    groups: Any = None,
    y: Any = None,
    sample_weight: Any = None,
) -> Collections:
    """Check dask collections, without computing anything."""
    if isinstance(X, dd.DataFrame):
        collections = _read_frame(X, group_column)
    elif isinstance(X, da.Array):
        collections = _read_array(X, group_column)
    else:
        raise TypeError(
            f"X must be a dask data frame or a dask array; got {type(X).__name__}. Make one, for "
            "example by dask.dataframe.from_pandas, or use CalibratedRanker for data in memory."
        )
    if group_column is not None and groups is not None:
        raise ValueError(
            f"The query ids are in the column {group_column!r} already (group_column). Leave out "
            "groups."
        )
    labels = Column("y", check_relevance)
    for name, column, values in (
        (ID, _IDS, groups),
        (LABEL, labels, y),
        (WEIGHT, WEIGHTS, sample_weight),
    ):
        if values is not None:
            collections.add(name, column, values)
    if group_column is None and groups is None:
        raise ValueError(
            "No query ids. Pass groups=<a dask collection with the query id of each row>, or name "
            "the column of X that contains them: group_column='qid'."
        )
    return collections


def check_labels_passed(y: Any) -> None:
    """Raise an error if y is None."""
    if y is None:
        raise ValueError(
            "This ranker requires y to be passed, but the target y is None. Pass a relevance of "
            "every row as a dask series or array with the partitions of X."
        )


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
    parts = {"X": partitions_of(X)}
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
        parts[ID] = partitions_of(X[group_column])
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
        joined[ID] = id_meta(meta[group_column])
    joined[INDEX] = meta.index.to_numpy() if meta.index.dtype.kind in "iuf" else meta.index
    read = {} if group_column is None else {ID: _IDS}
    return Collections(parts, read, form, joined, None, meta.index.name)


def _column_names(n: int) -> list[str]:
    return [f"x{number}" for number in range(n)]


def _read_array(X: Any, group_column: str | None) -> Collections:
    if group_column is not None:
        raise ValueError(
            f"group_column={group_column!r} needs X as a dask data frame with that column. For an "
            "array pass groups=<a dask array of query ids>."
        )
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
    if not isinstance(X._meta, np.ndarray):
        raise TypeError(f"The blocks of X are of type {type(X._meta).__name__}. {_DENSE}")
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
    return Collections(parts, {}, Form(columns, None, None), meta, chunks)


_DENSE = (
    "Only dense blocks are taken: X.map_blocks(lambda block: block.toarray()) makes them dense."
)


def _join(number: int, *given: Any, names: list[str], described: Collections) -> pd.DataFrame:
    """Join partition `number` of the collections `names` to one frame."""
    parts, meta = dict(zip(names, given, strict=True)), described.meta
    form = described.form if "X" in names else None
    first, index = given[0], None
    if form is not None and form.is_array and not isinstance(first, np.ndarray):
        raise TypeError(f"Block {number} of X is of type {type(first).__name__}. {_DENSE}")
    if form is not None and form.group_column is not None:
        parts[ID] = first[form.group_column]
    joined: dict[str, Any] = {}
    for name, values in parts.items():
        shown = "X" if name == "X" else described.columns[name].shown
        if len(values) != len(first):
            raise ValueError(
                f"{shown} has {len(values)} rows in partition {number}, but {described.first} has "
                f"{len(first)}."
            )
        of_values = getattr(values, "index", None) if described.by_index else None
        if index is not None and of_values is not None and not of_values.equals(index):
            raise ValueError(
                f"The index of {shown} differs from that of {described.first} in partition "
                f"{number}. Take both from one data frame."
            )
        index = of_values if index is None else index
        if name == ID:
            joined[ID] = read_ids(number, values, meta[ID].dtype)
        elif name != "X":
            joined[name] = _read_numbers(number, values, described.columns[name])
    joined[ROW] = (number << PARTITION_BITS) + np.arange(len(first))
    if form is None:
        return pd.DataFrame(joined).astype(dict(meta.dtypes))[list(meta.columns)]
    if form.is_array:
        table = pd.DataFrame(np.asarray(first), columns=form.columns)
    else:
        table = first[form.names].set_axis(form.columns, axis=1).reset_index(drop=True)
        if INDEX in meta:
            joined[INDEX] = first.index.array
        for name, categories in form.categories.items():
            if not table[name].cat.categories.equals(categories):
                raise ValueError(
                    f"The categories of column {name!r} differ between partitions, and so do their "
                    "codes. Pass X.categorize() or encode the column."
                )
    frame = pd.concat([table, pd.DataFrame(joined)], axis=1)[list(meta.columns)]
    # Partitions can have other dtypes than the collection says, for example whole numbers.
    other = {n: t for n, t in meta.dtypes.items() if frame.dtypes[n] != t}
    return frame.astype(other) if other else frame


def _read_numbers(number: int, values: Any, column: Column) -> NDArray[Any]:
    """Return the numbers of a partition, after checking them."""
    if not len(values):
        return np.empty(0, column.dtype)
    try:
        return column.check(values)
    except (TypeError, ValueError) as error:
        raise type(error)(f"In partition {number}: {error}") from error


def _number_partitions(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(__partition__=frame[ROW] // 2**PARTITION_BITS)
