"""Number the ids of items, which can be of any hashable type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries._groups import number_values, object_array
from sklearn_rankcal.utils._numbers import check_no_mask, is_missing

Ints = NDArray[np.int64]


def read_ids(values: Any, name: str) -> NDArray[Any]:
    """Return a column of ids as a 1-D array: of numbers or text if all are, else of objects.

    Raises
    ------
    ValueError
        If `values` is not a 1-D sequence.
    """
    check_no_mask(values, name)
    if isinstance(values, (str, bytes, Mapping, set, frozenset)) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} must be a sequence with one id per entry; got {values!r}.")
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"{name} must be a 1-D array; it has shape {values.shape}.")
        return values if values.dtype.kind in "iufbUSmM" else values.astype(object)
    return ids_of_list(list(values))


def ids_of_list(ids: list[Any]) -> NDArray[Any]:
    """Return ids as an array of integers if all are, else of objects."""
    kinds = set(map(type, ids))
    if kinds and all(issubclass(kind, (int, np.integer)) for kind in kinds) and bool not in kinds:
        if all(-(2**63) <= value < 2**63 for value in ids):
            return np.array(ids, dtype=np.int64)
    return object_array(ids)


def number_ids(
    ids: NDArray[Any], name: str, where: Callable[[int], str] = "entry {}".format
) -> tuple[Ints, NDArray[Any]]:
    """Number ids by first appearance: return the number of each, and the different ids.

    `where` names a place in the words of the user, for errors.

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
            place = int(np.argmax(missing))
            raise _missing(name, where(place), ids[place])
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
            raise _missing(name, where(place), value)
    codes = np.fromiter(map(numbers.__getitem__, listed), np.int64, count=len(listed))
    return codes, object_array(list(numbers))


def _missing(name: str, where: str, value: Any) -> ValueError:
    return ValueError(
        f"{name} has a missing or infinite id ({show_id(value)}, {where}, counted from 0). "
        "Drop it or fill it in."
    )


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


def similar_id(value: Any, known: Iterable[Any]) -> str:
    """Return a hint such as `` Did you mean 'owl'?``, or "" if no known id looks similar."""
    written: dict[str, Any] = {}  # the ids that look the same except for case and spaces
    for one in known:
        written.setdefault(str(one).strip().casefold(), one)
    close = get_close_matches(str(value).strip().casefold(), written, n=1)
    return f" Did you mean {show_id(written[close[0]])}?" if close else ""


def known_items(
    items: Any, ids: NDArray[Any], name: str, where: Callable[[int], str]
) -> tuple[NDArray[Any], Ints]:
    """Return the ids of all items, and the item of each entry; refuse ids that are not known."""
    known = read_ids(items, "items")
    if len(known) == 0:
        raise ValueError("items is empty: at least one item is needed.")
    if len(number_ids(known, "items")[1]) < len(known):
        raise ValueError("items has an id twice.")
    number_ids(ids, name, where)  # refuses missing ids
    codes, different = number_ids(
        np.concatenate([known.astype(object), ids.astype(object)]), "items"
    )
    codes = codes[len(known) :]
    if len(different) > len(known):
        unknown = different[len(known)]
        place = where(int(np.argmax(codes == len(known))))
        raise ValueError(
            f"{name} has the item {show_id(unknown)} ({place}, counted from 0), which is not in "
            f"items.{similar_id(unknown, known.tolist())}"
        )
    return known, codes
