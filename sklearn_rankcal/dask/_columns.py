"""Numbers of rows in dask series or arrays: one delayed frame for each of their partitions.

Labels, scores or positions, weights and query ids come in. Frames come out whose columns are those
numbers, the query id and the number of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from numpy.typing import NDArray

from sklearn_rankcal.dask._documents import (
    ID,
    PARTITION_BITS,
    ROW,
    _id_meta,
    _partitions,
    _read_ids,
)
from sklearn_rankcal.labels._relevance import check_relevance
from sklearn_rankcal.queries import check_weight
from sklearn_rankcal.queries._ranking import check_scores
from sklearn_rankcal.utils._numbers import read_numbers, read_whole


def _read_weight(values: Any) -> NDArray[np.float64]:
    weight = read_numbers(values, "sample_weight")
    if weight.any():  # weights of one partition can all be 0
        check_weight(weight, len(weight))
    return weight


#: How a column is read: the check of its values, and its dtype.
RELEVANCE: tuple[Callable[[Any], Any], Any] = (check_relevance, np.float64)
WEIGHT: tuple[Callable[[Any], Any], Any] = (_read_weight, np.float64)


def scores_named(name: str) -> tuple[Callable[[Any], Any], Any]:
    """Return how scores are read that the user passes as the parameter `name`."""
    return lambda values: check_scores(values, None, name), np.float64


def positions_named(name: str) -> tuple[Callable[[Any], Any], Any]:
    """Return how positions are read that the user passes as the parameter `name`."""
    return lambda values: read_whole(values, name), np.int64


def read_columns(
    given: Mapping[str, tuple[Any, tuple[Callable[[Any], Any], Any]]], groups: Any
) -> tuple[list[Any], pd.DataFrame]:
    """Join dask series or arrays of the same rows.

    Parameters
    ----------
    given : mapping
        It maps the name of each column to a collection and to how it is read. The first one says
        what the partitions are.
    groups : dask series or array
        Query id of each row.

    Returns
    -------
    frames : list of delayed frames
        The columns, `ID` and `ROW`. When they are computed, they raise an error if lengths or
        indexes differ, or if a value is not valid.
    meta : pandas.DataFrame
        A frame without rows and with these columns.

    Raises
    ------
    TypeError
        If something is not a dask series or array.
    ValueError
        If something does not have one dimension, or if partitions differ.
    """
    collections = {name: _series(name, values) for name, (values, _) in given.items()}
    collections["groups"] = _series("groups", groups)
    first = next(iter(collections))
    chunks = getattr(collections[first], "chunks", None)
    known = chunks is not None and not np.isnan(chunks[0]).any()
    parts = {}
    for name, values in collections.items():
        if isinstance(values, da.Array):
            if known and chunks is not None and not np.isnan(values.shape[0]):
                if values.shape[0] != sum(chunks[0]):
                    raise ValueError(
                        f"{name} has {values.shape[0]} entries, but {first} has {sum(chunks[0])}."
                    )
                values = values.rechunk(chunks)
            parts[name] = list(values.to_delayed().reshape(-1))
        else:
            parts[name] = _partitions(values)
        if len(parts[name]) != len(parts[first]):
            raise ValueError(
                f"{name} has {len(parts[name])} partitions, but {first} has {len(parts[first])}. "
                "Take both from one data frame."
            )
    meta = pd.DataFrame({name: np.empty(0, dtype) for name, (_, (_, dtype)) in given.items()})
    ids = collections["groups"]
    meta[ID] = _id_meta(ids._meta if isinstance(ids, dd.Series) else pd.Series(ids._meta))
    meta[ROW] = np.empty(0, np.int64)
    checks = delayed({name: check for name, (_, (check, _)) in given.items()}, pure=False)
    join = delayed(_join)
    frames = [
        join(number, {name: parts[name][number] for name in parts}, checks, meta)
        for number in range(len(parts[first]))
    ]
    return frames, meta


def _series(name: str, values: Any) -> Any:
    """Return a dask series or an array of one dimension."""
    if isinstance(values, dd.DataFrame) and len(values.columns) == 1:
        values = values[values.columns[0]]
    if not isinstance(values, dd.Series | da.Array):
        raise TypeError(
            f"{name} must be a dask series or array, such as a column of a dask data frame; got "
            f"{type(values).__name__}. For data in memory use sklearn_rankcal.metrics."
        )
    if isinstance(values, da.Array) and values.ndim != 1:
        raise ValueError(
            f"{name} must have one dimension; its shape is {values.shape}. Pass the query id of "
            "each row as groups."
        )
    return values


def _join(
    number: int, parts: dict[str, Any], checks: dict[str, Any], meta: pd.DataFrame
) -> pd.DataFrame:
    first = next(iter(parts))
    n_rows, index = len(parts[first]), None
    columns: dict[str, Any] = {}
    for name, values in parts.items():
        if len(values) != n_rows:
            raise ValueError(
                f"{name} has {len(values)} rows in partition {number}, but {first} has {n_rows}."
            )
        of_values = getattr(values, "index", None)
        if index is not None and of_values is not None and not of_values.equals(index):
            raise ValueError(
                f"The index of {name} differs from that of {first} in partition {number}. Take "
                "both from one data frame."
            )
        index = of_values if index is None else index
        if name == "groups":
            columns[ID] = _read_ids(number, values, meta[ID].dtype)
        elif n_rows:
            try:
                columns[name] = checks[name](values)
            except (TypeError, ValueError) as error:
                raise type(error)(f"In partition {number}: {error}") from error
        else:
            columns[name] = meta[name].array
    columns[ROW] = (number << PARTITION_BITS) + np.arange(n_rows)
    return pd.DataFrame(columns).astype(dict(meta.dtypes))[list(meta.columns)]
