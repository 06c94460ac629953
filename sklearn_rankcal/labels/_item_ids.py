"""Number the ids of items, which can be of any hashable type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries._groups import number_values, object_array
from sklearn_rankcal.utils._numbers import check_no_mask, frame_columns, is_missing

Ints = NDArray[np.int64]


def read_ids(values: Any, name: str) -> NDArray[Any]:
    """Return a column of ids as a 1-D array: of numbers or text if all are, else of objects.

    Raises
    ------
    ValueError
        If `values` is not a 1-D sequence.
    """
    check_no_mask(values, name)
    if isinstance(values, (str, bytes, Mapping, set, frozenset)) or np.isscalar(values):
        raise ValueError(f"{name} must be a sequence with one id per entry; got {values!r}.")
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"{name} must be a 1-D array; it has shape {values.shape}.")
        return values if values.dtype.kind in "iufbUSmM" else values.astype(object)
    return _ids_of_list(list(values), name)


def read_id_pairs(pairs: Any) -> NDArray[Any]:
    """Return the ids of pairs as an array of shape (2 n_pairs,), the two of a pair side by side."""
    check_no_mask(pairs, "pairs")
    columns = frame_columns(pairs)
    if columns is not None:
        if len(columns) != 2:
            raise ValueError(
                "pairs must have 2 columns, the preferred item and the other item; the data frame "
                f"has {len(columns)} columns. Pass weights as weight= and queries as groups=."
            )
        one, other = (read_ids(column, "pairs") for column in columns)
        if one.dtype.kind != other.dtype.kind:
            one, other = one.astype(object), other.astype(object)
        pairs = np.column_stack([one, other])
    if isinstance(pairs, np.ndarray):
        if pairs.size == 0:
            raise ValueError("pairs is empty: at least one comparison is needed.")
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(
                "pairs must have shape (n_pairs, 2), the preferred item and the other item; it has "
                f"shape {pairs.shape}. Pass weights as weight= and queries as groups=."
            )
        flat = pairs.reshape(-1)
        return flat if flat.dtype.kind in "iufbUSmM" else flat.astype(object)
    if isinstance(pairs, (str, bytes, Mapping)) or not isinstance(pairs, Iterable):
        raise ValueError(f"pairs must be a sequence of (preferred, other); got {pairs!r}.")
    ids: list[Any] = []
    for k, pair in enumerate(pairs):  # a loop over a list of the user's
        if isinstance(pair, (str, bytes)) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(
                f"Entry {k} of pairs is {pair!r}, but an entry has two items: (preferred, other)."
            )
        ids.extend(pair)
    if not ids:
        raise ValueError("pairs is empty: at least one comparison is needed.")
    return _ids_of_list(ids, "pairs")


def _ids_of_list(ids: list[Any], name: str) -> NDArray[Any]:
    kinds = set(map(type, ids))
    if kinds and all(issubclass(kind, (int, np.integer)) for kind in kinds) and bool not in kinds:
        if all(-(2**63) <= value < 2**63 for value in ids):
            return np.array(ids, dtype=np.int64)
    return object_array(ids)


def number_ids(ids: NDArray[Any], name: str) -> tuple[Ints, NDArray[Any]]:
    """Number ids by first appearance: return the number of each, and the different ids.

    Raises
    ------
    ValueError
        If an id is missing or not hashable.
    """
    if ids.dtype.kind != "O":
        missing = None
        if ids.dtype.kind == "f":
            missing = ~np.isfinite(ids)
        elif ids.dtype.kind in "mM":
            missing = np.isnat(ids)
        if missing is not None and missing.any():
            raise _missing(name, int(np.argmax(missing)), ids[np.argmax(missing)])
        if len(ids) == 0:
            return np.zeros(0, dtype=np.int64), ids
        return number_values(ids)
    listed = ids.tolist()
    try:
        numbers = {value: number for number, value in enumerate(dict.fromkeys(listed))}
    except TypeError as error:
        raise ValueError(f"{name} must contain hashable ids: {error}.") from None
    for value in numbers:
        if is_missing(value) or (isinstance(value, float) and np.isinf(value)):
            place = next(k for k, other in enumerate(listed) if other is value)
            raise _missing(name, place, value)
    codes = np.fromiter(map(numbers.__getitem__, listed), np.int64, count=len(listed))
    return codes, object_array(list(numbers))


def _missing(name: str, place: int, value: Any) -> ValueError:
    return ValueError(f"{name} has a missing or infinite id ({show_id(value)}, entry {place}).")


def number_items(
    codes: Ints, n_ids: int, query: Ints, n_queries: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Number the different (query, id), so that those of a query are next to each other.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Numbers of ids, below `n_ids`. The same id can occur in several queries, and is a different
        item in each.
    query : ndarray of shape (n,)
        Query numbers, below `n_queries`.

    Returns
    -------
    rows : ndarray of shape (n,)
        The number of the item of each entry.
    item_code, item_query : ndarray of shape (n_items,)
        The number of the id, and the query, of each item.
    sizes : ndarray of shape (n_queries,)
        The number of items of each query.
    """
    # If no id occurs in two queries, the items are the ids.
    owner = np.zeros(n_ids, dtype=np.int64)
    owner[codes] = query
    if (owner[codes] == query).all():
        item_code, rows = np.arange(n_ids), codes
        item_query = owner
    else:
        key = query * n_ids + codes
        rows, keys = number_values(key)
        item_query, item_code = np.divmod(keys, n_ids)
    if (item_query[1:] < item_query[:-1]).any():
        order = np.argsort(item_query, kind="stable")
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        rows, item_code, item_query = number[rows], item_code[order], item_query[order]
    return rows, item_code, item_query, np.bincount(item_query, minlength=n_queries)


def show_id(value: Any) -> str:
    """Return the id as error messages show it: text in quotes, NumPy's numbers as numbers."""
    return repr(value.item() if isinstance(value, np.generic) else value)
