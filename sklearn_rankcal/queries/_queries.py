"""`Queries` assigns rows to queries, given their ids, and computes sums and sorts over queries.

An array with one entry per row has one of two layouts:

* *row layout*: entry i belongs to row i of X;
* *grouped layout*: the rows of query 0, then the rows of query 1, and so on.

If the rows of every query are contiguous, the layouts are equal and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.utils._memory import check_memory, rows_per_block
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._numbers import Ints, as_array, is_missing

_LADDER = 1.25  # the sizes of the queries in a padded bucket differ by at most this factor


class Queries:
    """The assignment of rows to queries, with sums, means and sorts over queries.

    Use `from_groups`, `uniform` or `single` to make one. The constructor checks nothing.

    An array in *row layout* has one entry per row, in the order of the rows of X. In *grouped
    layout*, the rows of query 0 come first, then the rows of query 1, and so on.

    Parameters
    ----------
    offsets : ndarray of shape (n_queries + 1,)
        Query q has the places ``offsets[q]`` to ``offsets[q + 1] - 1`` of the grouped layout.
    order : ndarray of shape (n_rows,) or None
        The row at each place of the grouped layout. If None, ``arange(n_rows)``.
    ids : ndarray of shape (n_queries,) or None
        Group id of each query, in order of first appearance. If None, ``0 .. n_queries - 1``.

    Attributes
    ----------
    sizes : ndarray of shape (n_queries,)
        Number of rows of each query.
    n_queries : int
        Number of queries.
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries
    >>> queries = Queries.from_groups(["b", "a", "b"])
    >>> queries.sizes.tolist(), queries.sum(np.array([1.0, 2.0, 3.0])).tolist()
    ([2, 1], [4.0, 2.0])
    """

    def __init__(
        self,
        offsets: NDArray[np.int64],
        order: NDArray[np.int64] | None = None,
        ids: NDArray[Any] | None = None,
    ) -> None:
        self.offsets = offsets
        self.order = order
        self._ids = ids
        self.sizes = np.diff(offsets)
        self.n_queries = len(self.sizes)
        self.n_rows = int(offsets[-1])
        self._place: NDArray[np.int64] | None = None

    @property
    def ids(self) -> NDArray[Any]:
        """Group id of each query, in order of first appearance."""
        return np.arange(self.n_queries) if self._ids is None else self._ids

    # ---------------------------------------------------------------- construction

    @classmethod
    def from_groups(cls, groups: ArrayLike, n_rows: int | None = None) -> Queries:
        """Make queries from group ids.

        Parameters
        ----------
        groups : array-like of shape (n_rows,)
            Query id of each row: integers, finite floats, strings or any hashable objects, in any
            order.
        n_rows : int, default=None
            Expected number of rows. If None, the number is not checked.

        Returns
        -------
        queries : Queries
            Queries are numbered in order of first appearance.

        Notes
        -----
        The cost is O(n) if queries are contiguous, or if ids are not numbers (one dictionary
        look-up per id). Otherwise, the ids are sorted.

        Examples
        --------
        >>> from sklearn_rankcal.queries import Queries
        >>> queries = Queries.from_groups(["b", "a", "b"])
        >>> queries.offsets.tolist(), queries.order.tolist(), queries.ids.tolist()
        ([0, 2, 3], [0, 2, 1], ['b', 'a'])
        """
        values: Any = groups
        whole = type(values) is np.ndarray and values.dtype.kind in "iu" and len(values.shape) == 1
        if not whole or not len(values) or (n_rows is not None and len(values) != n_rows):
            values = check_groups(groups, n_rows)
        ids = None
        if values.dtype.kind == "O":  # objects that may not be comparable: use a dictionary
            values, ids = number_objects(values.tolist())
        # Number runs of equal ids instead of rows, because there are usually few runs.
        starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])
        runs = values[starts]
        if ids is not None:
            codes = runs
        elif runs.dtype.kind in "SU":
            codes, ids = number_objects(runs.tolist())
            ids = ids.astype(runs.dtype)
        else:
            codes, ids = number_values(runs)
        offsets = np.append(starts, len(values))
        if len(ids) == len(runs):
            return cls(offsets, None, ids)
        return cls.from_codes(np.repeat(codes, np.diff(offsets)), ids)

    @classmethod
    def from_codes(cls, codes: NDArray[Any], ids: NDArray[Any] | None = None) -> Queries:
        """Make queries from their numbers 0 .. n_queries - 1, each at least once."""
        order = stable_order(codes)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
        return cls(offsets, order, ids)

    @classmethod
    def uniform(cls, n_queries: int, size: int) -> Queries:
        """Make `n_queries` queries with `size` contiguous rows each."""
        return cls(np.arange(n_queries + 1, dtype=np.int64) * size)

    @classmethod
    def single(cls, n_rows: int) -> Queries:
        """Make one query with all rows."""
        return cls.uniform(1, n_rows)

    # ---------------------------------------------------------------- the two layouts

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """Convert from row layout to grouped layout (without a copy if they are the same)."""
        return values if self.order is None else values[self.order]

    def scatter(self, grouped: NDArray[Any]) -> NDArray[Any]:
        """Convert from grouped layout to row layout (without a copy if they are the same)."""
        if self.order is None:
            return grouped
        values = np.empty_like(grouped)
        values[self.order] = grouped
        return values

    @property
    def place(self) -> NDArray[np.int64]:
        """The place of each row in its query, from 0, in grouped layout."""
        if self._place is None:
            self._place = np.arange(self.n_rows) - self.repeat(self.offsets[:-1])
        return self._place

    @property
    def codes(self) -> NDArray[np.int64]:
        """The query number of each row, in row layout."""
        return self.scatter(self.repeat(np.arange(self.n_queries)))

    def repeat(self, per_query: NDArray[Any]) -> NDArray[Any]:
        """Repeat one value per query for all of its rows, in grouped layout."""
        return np.repeat(per_query, self.sizes, axis=0)

    def broadcast(self, per_query: NDArray[Any]) -> NDArray[Any]:
        """Repeat one value per query for all of its rows, in row layout."""
        return self.scatter(self.repeat(per_query))

    # ---------------------------------------------------------------- per-query reductions

    def reduce(self, ufunc: np.ufunc, grouped: NDArray[Any]) -> NDArray[Any]:
        """Reduce each query of an array in grouped layout by `ufunc`."""
        return ufunc.reduceat(grouped, self.offsets[:-1], axis=0)

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over each query of an array in row layout."""
        return self.reduce(np.add, self.gather(values))

    def max(self, values: NDArray[Any]) -> NDArray[Any]:
        """Maximum over each query of an array in row layout."""
        return self.reduce(np.maximum, self.gather(values))

    def min(self, values: NDArray[Any]) -> NDArray[Any]:
        """Minimum over each query of an array in row layout."""
        return self.reduce(np.minimum, self.gather(values))

    def have_equal(self, values: NDArray[Any]) -> bool:
        """Return whether all rows of a query have the same value, for every query."""
        return bool((self.max(values) == self.min(values)).all())

    def mean(
        self, values: NDArray[Any], weight: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Mean over each query of an array in row layout, optionally weighted.

        The mean is 0 if all weights of the query are 0.
        """
        if weight is None:
            return self.sum(values) / self.sizes
        total = self.sum(weight)
        return self.sum(values * weight) / np.where(total > 0, total, 1.0)

    def center(
        self, values: NDArray[Any], weight: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Subtract the mean of the query from each value, in row layout; see `mean`."""
        if weight is None:
            return values - self.broadcast(self.sum(values) / self.sizes)
        return values - self.broadcast(self.mean(values, weight))

    def cumsum(self, grouped: NDArray[Any]) -> NDArray[Any]:
        """Cumulative sum within each query, in grouped layout."""
        if grouped.dtype.kind == "f":  # differences of sums over all queries lose small values
            sums = np.empty_like(grouped)
            for inside, valid in self.buckets():
                sums[inside[valid]] = np.cumsum(grouped[inside], axis=1)[valid]
            return sums
        total = np.cumsum(grouped)
        before = total[self.offsets[:-1]] - grouped[self.offsets[:-1]]
        return total - self.repeat(before)

    # ---------------------------------------------------------------- sorting

    def sort(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Sort the rows of each query by descending score.

        `scores` (n_rows,) are finite and in row layout, larger is better. Equal scores keep the
        order of the rows. Return the row at each place of the grouped layout. The cost is
        O(n log r) for queries with at most r rows. Queries of similar size are sorted together in
        one padded array.
        """
        key = -self.gather(scores if scores.dtype.kind == "f" else scores + 0.0)
        if self.is_uniform:
            matrix = key.reshape(self.n_queries, -1)
            # The default sort is much faster than a stable sort, which only ties need.
            local = np.argsort(matrix, axis=1)
            ordered = np.take_along_axis(matrix, local, axis=1)
            if (ordered[:, 1:] == ordered[:, :-1]).any():
                local = np.argsort(matrix, axis=1, kind="stable")
            places = (local + self.offsets[:-1, None]).reshape(-1)
        else:
            places = np.empty(self.n_rows, dtype=np.int64)
            for inside, valid in self.buckets():
                # The padding is +inf at the end of each row. A stable sort leaves it there.
                padded = np.where(valid, key[inside], np.inf)
                local = np.argsort(padded, axis=1, kind="stable") + inside[:, :1]
                places[inside[valid]] = local[valid]
        return places if self.order is None else self.order[places]

    def sort_values(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sort the values of each query in descending order, in grouped layout."""
        key = -self.gather(values)
        if self.is_uniform:
            return -np.sort(key.reshape(self.n_queries, -1), axis=1).reshape(-1)
        result = np.empty_like(key)
        for inside, valid in self.buckets():
            result[inside[valid]] = -np.sort(np.where(valid, key[inside], np.inf), axis=1)[valid]
        return result

    def rank(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Convert the result of `sort` to the position of each row, 1 = top, in row layout."""
        ranks = np.empty(self.n_rows, dtype=np.int64)
        ranks[order] = self.place + 1
        return ranks

    @property
    def is_uniform(self) -> bool:
        """Whether all queries have the same size."""
        return bool((self.sizes == self.sizes[0]).all())

    def buckets(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        """Yield the places of queries of similar size as padded arrays (inside, valid).

        Each row of `inside` (n_queries_of_bucket, width) contains the consecutive places of one
        query in the grouped layout, padded with any valid place. `valid`, of the same shape, is
        False for the padding.
        """
        sizes = np.unique(self.sizes)
        while len(sizes):
            stop = np.searchsorted(sizes, sizes[0] * _LADDER, side="right")
            width = sizes[stop - 1]
            member = np.flatnonzero((self.sizes >= sizes[0]) & (self.sizes <= width))
            inside = self.offsets[member][:, None] + np.arange(width)
            valid = np.arange(width) < self.sizes[member][:, None]
            yield np.minimum(inside, self.n_rows - 1), valid
            sizes = sizes[stop:]

    def pair_blocks(
        self, pair_bytes: int = 8, block_bytes: int | None = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        """Split `buckets` into blocks of a few queries, to limit the memory of all pairs.

        An array of shape (n_queries_of_block, width, width) with `pair_bytes` per pair takes at
        most `block_bytes` (16 MiB if None), unless a single query takes more. Raise ValueError if
        the pairs of the largest query do not fit in memory.
        """
        self.check_pairs_fit()
        for inside, valid in self.buckets():
            step = rows_per_block(pair_bytes * inside.shape[1] ** 2, block_bytes)
            for first in range(0, len(inside), step):
                yield inside[first : first + step], valid[first : first + step]

    def equal_pair_blocks(self) -> Iterator[NDArray[np.int64]]:
        """Yield the places of a few queries of equal size r at a time, without padding.

        Each array has shape (n_queries_of_block, r). Blocks are as large as in `pair_blocks`.
        """
        self.check_pairs_fit()
        for r in np.unique(self.sizes):
            starts = self.offsets[:-1][self.sizes == r]
            step = rows_per_block(8 * int(r) ** 2)
            for first in range(0, len(starts), step):
                yield starts[first : first + step, None] + np.arange(r)

    def check_pairs_fit(self) -> None:
        """Raise an error if the pairs of the largest query do not fit in memory."""
        r = int(self.sizes.max(initial=0))
        check_memory(
            4 * 8 * r * r,
            f"All pairs of a query with {r:,} documents",
            "Shorten the query, or rank it by scores: loss='map_by_scores', or 'pd_by_scores' with "
            "pair_weight and score_function given by name.",
        )

    # ---------------------------------------------------------------- parts

    def select(self, keep: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Queries]:
        """Keep some queries: return their rows in ascending order, and their `Queries`."""
        rows = np.flatnonzero(self.broadcast(keep))
        new = np.cumsum(keep) - 1
        ids = None if self._ids is None else self._ids[keep]
        if self.order is None:
            return rows, Queries(np.append(0, np.cumsum(self.sizes[keep])), None, ids)
        return rows, Queries.from_codes(new[self.codes[rows]], ids)

    def take(self, rows: NDArray[np.int64]) -> Queries:
        """Return the queries of some rows, in order of first appearance."""
        kept = Queries.from_groups(self.codes[rows])
        return Queries(kept.offsets, kept.order, self.ids[kept.ids])

    def copies(
        self, parent: NDArray[np.int64]
    ) -> tuple[Queries, NDArray[np.int64], NDArray[np.int64]]:
        """Copy queries, possibly several times.

        `parent` (n_copies,) is the original query of each copy. Return the `Queries` of all copies,
        the original row of each row, and the shift of each copy: a row of the copy is the place of
        its original row in the grouped layout, plus the shift.
        """
        sizes = self.sizes[parent]
        offsets = np.append(0, np.cumsum(sizes))
        shift = offsets[:-1] - self.offsets[parent]
        places = np.arange(offsets[-1]) - np.repeat(shift, sizes)
        return Queries(offsets), places if self.order is None else self.order[places], shift

    def chunks(
        self, limit: int, squared: bool = False
    ) -> Iterator[tuple[slice | NDArray[np.int64], Queries]]:
        """Split the queries into chunks of whole queries with about `limit` rows each.

        If `squared`, the sum of the squared query sizes is limited instead. A larger query is a
        chunk of its own. Yield the rows of each chunk (a slice if the rows of every query are
        contiguous) and their `Queries`.
        """
        # A row costs as much as about 15 pairs. Without this cost, a chunk of many short queries
        # would have too many rows.
        cost = self.sizes * (self.sizes + 15) if squared else self.sizes
        stops = np.append(0, np.cumsum(cost))
        first = 0
        while first < self.n_queries:
            last = int(np.searchsorted(stops, stops[first] + limit, "right")) - 1
            last = max(last, first + 1)
            start, stop = int(self.offsets[first]), int(self.offsets[last])
            rows = slice(start, stop) if self.order is None else self.order[start:stop]
            yield rows, Queries(self.offsets[first : last + 1] - start)
            first = last

    def same_partition(self, other: Queries) -> bool:
        """Return whether `other` groups the rows in the same way. Ids may differ."""
        return self.n_queries == other.n_queries and np.array_equal(self.codes, other.codes)


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
        values = as_array(groups)
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


def ranges(offsets: Ints, numbers: Ints) -> tuple[Ints, Ints]:
    """Return the concatenated entries of the parts `numbers`, and the start of each part."""
    counts = offsets[numbers + 1] - offsets[numbers]
    starts = np.append(0, np.cumsum(counts))
    return np.arange(starts[-1]) + np.repeat(offsets[numbers] - starts[:-1], counts), starts
