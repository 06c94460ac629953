"""Read group ids, group sizes, orders and ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._numbers import is_missing, read_whole

#: Without n_rows, `sizes_to_groups` raises an error if the sizes add up to more rows.
_MANY_ROWS = 10**8


def check_groups(groups: ArrayLike, n_rows: int | None) -> NDArray[Any]:
    """Return group ids as a 1-D array, and check that every row has one."""
    if np.isscalar(groups):
        named = f" such as data[{groups!r}];" if isinstance(groups, str) else ""
        raise ValueError(
            f"groups must be a 1-D array with one id per row; got {groups!r}. Pass the column "
            f"itself,{named} only the parameter group_column of rankers is a name."
        )
    if isinstance(groups, (Mapping, set, frozenset)):
        raise ValueError(
            f"groups must contain one id per row, in the order of the rows; got a "
            f"{type(groups).__name__}."
        )
    masked = None
    if isinstance(groups, np.ma.MaskedArray):
        masked, groups = np.ma.getmaskarray(groups), groups.data
    if hasattr(groups, "to_numpy"):
        values = groups.to_numpy()
    elif isinstance(groups, np.ndarray):
        values = groups
    else:
        listed = list(groups)  # type: ignore[arg-type]
        kinds = set(map(type, listed))
        if type(np.ma.masked) in kinds:
            row = next(i for i, value in enumerate(listed) if value is np.ma.masked)
            raise _missing_id(row, "masked")
        # Text is kept as objects: in an array of text, every entry takes as much memory as the
        # longest entry, and trailing NUL characters are lost.
        plain = len(kinds) <= 1 and not issubclass(next(iter(kinds), int), (str, bytes))
        plain = plain and (not listed or np.isscalar(listed[0]))
        values = np.asarray(listed) if plain else object_array(listed)
        if kinds == {int} and values.dtype.kind == "f":  # integers too large for any integer dtype
            values = object_array(listed)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"groups must be a 1-D array with one id per row; it has shape {values.shape}."
        )
    if n_rows is not None and len(values) != n_rows:
        hint = _sizes_hint(values, n_rows)
        raise ValueError(
            f"groups has {counted(len(values), 'entry')}, but X has {counted(n_rows, 'row')}.{hint}"
        )
    if len(values) == 0:
        raise ValueError("groups is empty: at least one row is needed.")
    if masked is not None and masked.any():
        row = int(np.flatnonzero(masked.reshape(len(values), -1).any(axis=1))[0])
        raise _missing_id(row, "masked")
    kind = values.dtype.kind
    missing = ~np.isfinite(values) if kind == "f" else np.isnat(values) if kind in "mM" else None
    if missing is not None and missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise _missing_id(row, values[row])
    return values if kind in "iufbmMSU" else values.astype(object)


def _sizes_hint(values: NDArray[Any], n_rows: int) -> str:
    """Return a hint for an error message if the values may be group sizes, otherwise no text."""
    if len(values) > n_rows:
        return ""
    try:
        sizes = [int(value) for value in values if value == int(value)]
    except (TypeError, ValueError, OverflowError):
        return ""
    if len(sizes) < len(values) or min(sizes, default=0) < 1 or sum(sizes) != n_rows:
        return ""
    return (
        " They add up to the number of rows. If they are group sizes, as LightGBM uses them, "
        "pass groups=sizes_to_groups(sizes)."
    )


def _missing_id(row: int, value: Any) -> ValueError:
    return ValueError(
        f"groups has a missing or infinite id at row {row} ({value!r}). "
        "Every row must belong to a query. Drop the rows without an id, or give them one."
    )


def run_starts(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the places where a new run of equal values begins."""
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])


def number_objects(
    listed: list[Any],
    name: str = "groups",
    missing: Callable[[int, Any], ValueError] = _missing_id,
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Number objects by first appearance: return the number of each, and the distinct objects.

    The cost is one dictionary look-up per object. Error messages use `name`, and `missing` makes
    the error for a missing id, given its place and the id.
    """
    try:
        numbers = {value: number for number, value in enumerate(dict.fromkeys(listed))}
    except TypeError as error:
        raise ValueError(f"{name} must contain hashable ids: {error}.") from error
    for value in numbers:
        infinite = isinstance(value, (float, np.floating)) and not np.isfinite(value)
        if infinite or is_missing(value):
            row = next(i for i, other in enumerate(listed) if other is value)
            raise missing(row, value)
    codes = np.fromiter(map(numbers.__getitem__, listed), np.int64, count=len(listed))
    return codes, object_array(list(numbers))


def number_values(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Number values by first appearance: return the number of each, and the distinct values."""
    if values.dtype.kind in "iu" and int(values.max()) - int(values.min()) < 4 * len(values) + 64:
        # Integers in a small range: look them up in a table instead of sorting them.
        low = values.min()
        small = (values.astype(np.int64) if values.dtype.kind == "i" else values) - low
        place = small.astype(np.int64)
        # First row of each value, -1 if missing. Rows are written in reverse, so the first row is
        # written last and stays.
        first = np.full(int(place.max()) + 1, -1)
        first[place[::-1]] = np.arange(len(place) - 1, -1, -1)
        present = first >= 0
        first, codes = first[present], (np.cumsum(present) - 1)[place]
    else:
        _, first, codes = np.unique(values, return_index=True, return_inverse=True)
    # renumber the values from ascending order to the order of their first rows
    by_appearance = np.argsort(first, kind="stable")
    number = np.empty_like(by_appearance)
    number[by_appearance] = np.arange(len(first))
    return number[codes], values[first[by_appearance]]


def stable_order(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the stable sort order of numbers from 0 to 2^32 - 1 in O(n)."""
    # NumPy's stable sort of 16-bit integers is a radix sort in O(n). Sort by the lower 16 bits,
    # then by the higher 16 bits.
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    if len(numbers) and numbers.max() > np.iinfo(np.uint16).max:
        high = (numbers >> 16).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order


def object_array(listed: list[Any]) -> NDArray[Any]:
    """Return a 1-D array of objects, even if the objects are sequences."""
    values = np.empty(len(listed), dtype=object)
    for row, value in enumerate(listed):
        values[row] = value
    return values


def sizes_to_groups(sizes: ArrayLike, n_rows: int | None = None) -> NDArray[np.int64]:
    """Convert group sizes, as LightGBM uses them, to one group id per row.

    Parameters
    ----------
    sizes : array-like of shape (n_queries,)
        Number of consecutive rows of each query, at least 1 each.
    n_rows : int, default=None
        Number of rows, ``len(X)``. If given, it must equal the sum of the sizes, which detects
        query ids passed by mistake. It is required for more than 100 million rows.

    Returns
    -------
    groups : ndarray of shape (sum(sizes),)
        Number of the query of each row, from 0.

    Raises
    ------
    ValueError
        If the sizes are not whole numbers >= 1 or do not add up to `n_rows`, or, without `n_rows`,
        if they add up to more than 100 million rows.

    Examples
    --------
    >>> from sklearn_rankcal import sizes_to_groups
    >>> sizes_to_groups([2, 1, 3]).tolist()
    [0, 0, 1, 2, 2, 2]
    """
    counts = read_whole(sizes, "sizes")
    if counts.ndim != 1 or len(counts) == 0:
        raise ValueError(f"sizes must be a non-empty 1-D array; it has shape {counts.shape}.")
    if counts.min() < 1:
        raise ValueError(
            f"sizes must be at least 1; got {counts.min()}. If these are query ids, pass them as "
            "groups=."
        )
    total = sum(counts.tolist())
    if n_rows is not None and total != n_rows:
        raise ValueError(
            f"sizes add up to {counted(total, 'row')}, but n_rows is {n_rows}. If these are query "
            "ids, pass them as groups=."
        )
    if n_rows is None and total > _MANY_ROWS:
        raise ValueError(
            f"{len(counts)} sizes add up to {counted(total, 'row')}. If these are query ids, pass "
            "them as groups=. If they are sizes, confirm it with n_rows=len(X)."
        )
    return np.repeat(np.arange(len(counts)), counts)


def order_to_ranks(order: ArrayLike) -> NDArray[np.int64]:
    """Convert an order of row indices, best first, to the positions of the rows, 1 = top.

    Parameters
    ----------
    order : array-like of shape (n_rows,)
        A permutation of ``0 .. n_rows - 1``: ``order[0]`` is the best row.

    Returns
    -------
    ranks : ndarray of shape (n_rows,)
        ``ranks[i]`` is the position of row i, from 1.

    Raises
    ------
    ValueError
        If `order` is not such a permutation.

    Examples
    --------
    >>> from sklearn_rankcal import order_to_ranks
    >>> order_to_ranks([2, 0, 1]).tolist()
    [2, 3, 1]
    """
    rows = _check_permutation(order, 0, "order")
    ranks = np.empty(len(rows), dtype=np.int64)
    ranks[rows] = np.arange(1, len(rows) + 1)
    return ranks


def ranks_to_order(ranks: ArrayLike) -> NDArray[np.int64]:
    """Convert positions of rows, 1 = top, to the order of row indices, best first.

    This is the inverse of `order_to_ranks`.

    Parameters
    ----------
    ranks : array-like of shape (n_rows,)
        A permutation of ``1 .. n_rows``: ``ranks[i]`` is the position of row i.

    Returns
    -------
    order : ndarray of shape (n_rows,)
        ``order[0]`` is the best row, as an index from 0.

    Raises
    ------
    ValueError
        If `ranks` is not such a permutation.

    Examples
    --------
    >>> from sklearn_rankcal import ranks_to_order
    >>> ranks_to_order([2, 3, 1]).tolist()
    [2, 0, 1]
    """
    positions = _check_permutation(ranks, 1, "ranks")
    order = np.empty(len(positions), dtype=np.int64)
    order[positions - 1] = np.arange(len(positions))
    return order


def _check_permutation(values: ArrayLike, lowest: int, name: str) -> NDArray[np.int64]:
    array = read_whole(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a 1-D array; it has shape {array.shape}.")
    if not np.array_equal(np.sort(array), lowest + np.arange(len(array))):
        raise ValueError(
            f"{name} must be a permutation of {lowest} .. {lowest + len(array) - 1}; got {array!r}."
        )
    return array
