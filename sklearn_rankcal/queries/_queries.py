"""Queries: which rows belong together. Group ids come in; order and offsets come out.

Every per-query sum, mean, sort and rank of the package is a method of `Queries`, so that no
other module loops over queries. Two layouts of an array of length ``n_rows`` occur:

* *row layout*: as the user passed it, element i belongs to row i of X;
* *grouped layout*: the rows of query 0, then those of query 1, and so on.

When the rows of every query already stand together the two are the same, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.utils._memory import check_memory, rows_per_block
from sklearn_rankcal.utils._numbers import is_missing, read_whole

_MANY_ROWS, _SOME_ROWS = 10**8, 10**6  # of `sizes_to_groups`, where n_rows is not given
_LADDER = 1.25  # a padded bucket holds queries whose sizes differ by at most this factor


class Queries:
    """The partition of rows into queries.

    Use `from_groups` or `uniform`; the constructor trusts its input.

    Parameters
    ----------
    offsets : ndarray of shape (n_queries + 1,)
        Query q owns the places ``offsets[q]`` to ``offsets[q + 1] - 1`` of the grouped layout.
    order : ndarray of shape (n_rows,) or None
        Row at each place of the grouped layout; None when it is ``arange(n_rows)``.
    ids : ndarray of shape (n_queries,) or None
        Group id of each query, in order of first appearance; None: ``0 .. n_queries - 1``.
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
        """Index group ids of any type, in any order.

        Parameters
        ----------
        groups : array-like of shape (n_rows,)
            Ids: integers, finite floats, strings or any hashable objects. Rows of one query need
            not be contiguous.
        n_rows : int, default=None
            Expected length.

        Returns
        -------
        Queries
            Queries are numbered in order of first appearance.

        Raises
        ------
        ValueError
            Wrong length or shape, no rows, or a missing id.

        Notes
        -----
        O(n) when queries are contiguous or ids are not numbers (one dictionary pass), else a
        stable sort.

        Examples
        --------
        >>> from sklearn_rankcal.queries._queries import Queries
        >>> queries = Queries.from_groups(["b", "a", "b"])
        >>> queries.offsets.tolist(), queries.order.tolist(), queries.ids.tolist()
        ([0, 2, 3], [0, 2, 1], ['b', 'a'])
        """
        values = _check_groups(groups, n_rows)
        if values.dtype.kind == "O":  # such values may not even compare: number them first
            codes, ids = _number_objects(values.tolist())
            starts = _run_starts(codes)
            if len(starts) == len(ids):
                return cls(np.append(starts, len(values)), None, ids)
            return cls._from_codes(codes, ids)
        starts = _run_starts(values)
        # a run of equal ids is numbered once: usually there are few
        runs = values[starts]
        if runs.dtype.kind in "SU":
            codes, ids = _number_objects(runs.tolist())
            ids = ids.astype(runs.dtype)
        else:
            codes, ids = _number_values(runs)
        if len(ids) == len(runs):
            return cls(np.append(starts, len(values)), None, ids)
        return cls._from_codes(np.repeat(codes, np.diff(np.append(starts, len(values)))), ids)

    @classmethod
    def _from_codes(cls, codes: NDArray[Any], ids: NDArray[Any] | None) -> Queries:
        # a stable sort of 16-bit numbers is a radix sort: two of them for up to 2^32 queries
        order = np.argsort(codes.astype(np.uint16), kind="stable")
        if len(codes) and codes.max() > np.iinfo(np.uint16).max:
            high = (codes >> 16).astype(np.uint16)
            order = order[np.argsort(high[order], kind="stable")]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
        return cls(offsets, order, ids)

    @classmethod
    def uniform(cls, n_queries: int, size: int) -> Queries:
        """`n_queries` queries of `size` contiguous rows each."""
        return cls(np.arange(n_queries + 1, dtype=np.int64) * size)

    @classmethod
    def single(cls, n_rows: int) -> Queries:
        """All rows as one query."""
        return cls.uniform(1, n_rows)

    # ---------------------------------------------------------------- the two layouts

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """Row layout to grouped layout (no copy when they are the same)."""
        return values if self.order is None else values[self.order]

    def scatter(self, grouped: NDArray[Any]) -> NDArray[Any]:
        """Grouped layout to row layout (no copy when they are the same)."""
        if self.order is None:
            return grouped
        values = np.empty_like(grouped)
        values[self.order] = grouped
        return values

    @property
    def place(self) -> NDArray[np.int64]:
        """0-based place inside the query, in grouped layout."""
        if self._place is None:
            self._place = np.arange(self.n_rows) - self.repeat(self.offsets[:-1])
        return self._place

    @property
    def codes(self) -> NDArray[np.int64]:
        """Query number of each row, in row layout."""
        return self.scatter(self.repeat(np.arange(self.n_queries)))

    def repeat(self, per_query: NDArray[Any]) -> NDArray[Any]:
        """One value per query to grouped layout."""
        return np.repeat(per_query, self.sizes, axis=0)

    def broadcast(self, per_query: NDArray[Any]) -> NDArray[Any]:
        """One value per query to row layout."""
        return self.scatter(self.repeat(per_query))

    # ---------------------------------------------------------------- per-query reductions

    def reduce(self, ufunc: np.ufunc, grouped: NDArray[Any]) -> NDArray[Any]:
        """`ufunc` over each query of an array in grouped layout."""
        return ufunc.reduceat(grouped, self.offsets[:-1], axis=0)

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over each query of an array in row layout."""
        return self.reduce(np.add, self.gather(values))

    def max(self, values: NDArray[Any]) -> NDArray[Any]:
        """Largest value of each query of an array in row layout."""
        return self.reduce(np.maximum, self.gather(values))

    def min(self, values: NDArray[Any]) -> NDArray[Any]:
        """Smallest value of each query of an array in row layout."""
        return self.reduce(np.minimum, self.gather(values))

    def mean(
        self, values: NDArray[Any], weight: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """(Weighted) mean of each query; 0 for a query whose weights are all 0."""
        if weight is None:
            return self.sum(values) / self.sizes
        total = self.sum(weight)
        return self.sum(values * weight) / np.where(total > 0, total, 1.0)

    def center(
        self, values: NDArray[Any], weight: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Values minus the (weighted) mean of their query, in row layout."""
        return values - self.broadcast(self.mean(values, weight))

    def cumsum(self, grouped: NDArray[Any]) -> NDArray[Any]:
        """Running sum inside each query, grouped layout. No query's sum depends on another's."""
        if grouped.dtype.kind == "f":  # a difference of global sums would lose small values
            sums = np.empty_like(grouped)
            for inside, valid in self.buckets():
                sums[inside[valid]] = np.cumsum(grouped[inside], axis=1)[valid]
            return sums
        total = np.cumsum(grouped)
        before = total[self.offsets[:-1]] - grouped[self.offsets[:-1]]
        return total - self.repeat(before)

    # ---------------------------------------------------------------- sorting

    def sort(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Rows, best first inside each query; equal scores keep row order.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,)
            Finite, row layout; larger is better.

        Returns
        -------
        order : ndarray of shape (n_rows,)
            Row at each place of the grouped layout.

        Notes
        -----
        O(n log r) with r the size of the largest query, in a handful of vectorised sorts: queries
        of similar size share one padded array.
        """
        key = -self.gather(scores if scores.dtype.kind == "f" else scores + 0.0)
        if self.is_uniform:
            matrix = key.reshape(self.n_queries, -1)
            local = np.argsort(matrix, axis=1)  # much faster than a stable sort, and as good
            ordered = np.take_along_axis(matrix, local, axis=1)
            if (ordered[:, 1:] == ordered[:, :-1]).any():  # without ties
                local = np.argsort(matrix, axis=1, kind="stable")
            places = (local + self.offsets[:-1, None]).reshape(-1)
        else:
            places = np.empty(self.n_rows, dtype=np.int64)
            for inside, valid in self.buckets():
                # padding is +inf and stands last already: a stable sort leaves it there
                padded = np.where(valid, key[inside], np.inf)
                local = np.argsort(padded, axis=1, kind="stable") + inside[:, :1]
                places[inside[valid]] = local[valid]
        return places if self.order is None else self.order[places]

    def sort_values(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of each query in descending order, grouped layout (faster than `sort`)."""
        key = -self.gather(values)
        if self.is_uniform:
            return -np.sort(key.reshape(self.n_queries, -1), axis=1).reshape(-1)
        result = np.empty_like(key)
        for inside, valid in self.buckets():
            result[inside[valid]] = -np.sort(np.where(valid, key[inside], np.inf), axis=1)[valid]
        return result

    def rank(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Position of each row (1 = top), in row layout, of an `order` as `sort` returns it."""
        ranks = np.empty(self.n_rows, dtype=np.int64)
        ranks[order] = self.place + 1
        return ranks

    @property
    def is_uniform(self) -> bool:
        """Whether all queries have the same size: then a grouped array is a matrix."""
        return bool((self.sizes == self.sizes[0]).all())

    def buckets(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        """Padded views of the grouped layout, queries of similar size together.

        Yields
        ------
        inside : ndarray of shape (n_queries_of_bucket, width)
            Consecutive places of the grouped layout, row by row; beyond a query's size any valid
            place.
        valid : ndarray of the same shape
            False there.
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
        """`buckets`, a few queries at a time: arrays of all their pairs stay small.

        Parameters
        ----------
        pair_bytes : int, default=8
            Bytes of an entry of an array (queries, width, width).
        block_bytes : int, default=None
            Largest size of such an array, as far as a single query allows; None is 16 MiB.

        Raises
        ------
        ValueError
            The pairs of the largest query alone do not fit in memory.
        """
        self.check_pairs_fit()
        for inside, valid in self.buckets():
            step = rows_per_block(pair_bytes * inside.shape[1] ** 2, block_bytes)
            for first in range(0, len(inside), step):
                yield inside[first : first + step], valid[first : first + step]

    def equal_pair_blocks(self) -> Iterator[NDArray[np.int64]]:
        """Places (n, r) of whole queries of the same size r, as many at a time as `pair_blocks`."""
        self.check_pairs_fit()
        for r in np.unique(self.sizes):
            starts = self.offsets[:-1][self.sizes == r]
            step = rows_per_block(8 * int(r) ** 2)
            for first in range(0, len(starts), step):
                yield starts[first : first + step, None] + np.arange(r)

    def check_pairs_fit(self) -> None:
        """Raise when the pairs of the largest query alone do not fit in memory."""
        r = int(self.sizes.max(initial=0))
        check_memory(
            4 * 8 * r * r,
            f"All pairs of a query of {r:,} documents",
            "Shorten the query, or rank it by scores: loss='map_by_scores', or 'pd_by_scores' with "
            "pair_weight and score_function given by name.",
        )

    # ---------------------------------------------------------------- parts

    def select(self, keep: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Queries]:
        """Rows (ascending) of the queries kept, and the `Queries` of those rows alone."""
        rows = np.flatnonzero(self.broadcast(keep))
        new = np.cumsum(keep) - 1
        ids = None if self._ids is None else self._ids[keep]
        if self.order is None:
            return rows, Queries(np.append(0, np.cumsum(self.sizes[keep])), None, ids)
        return rows, Queries._from_codes(new[self.codes[rows]], ids)

    def chunks(
        self, limit: int, squared: bool = False
    ) -> Iterator[tuple[slice | NDArray[np.int64], Queries]]:
        """Runs of whole queries of about `limit` rows: (their rows, their `Queries`).

        With `squared` the squares of the queries' sizes add up to less than `limit`. Rows come
        as a slice where queries are contiguous. A query beyond the limit is a chunk of its own.
        """
        # a row costs as much as some pairs: many short queries would make too long a table
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
        """Whether two objects group the rows alike, whatever the ids are called."""
        return self.n_queries == other.n_queries and np.array_equal(self.codes, other.codes)


def _check_groups(groups: ArrayLike, n_rows: int | None) -> NDArray[Any]:
    """Group ids as a 1-D array of a hashable, comparable dtype, with nothing missing."""
    if np.isscalar(groups):
        raise ValueError(
            f"groups must be one id per row, a 1-D array; got {groups!r}. A column of a data frame "
            "is named by the ranker's group_column."
        )
    if isinstance(groups, (Mapping, set, frozenset)):
        raise ValueError(
            f"groups must be one id per row, in the order of the rows; got a "
            f"{type(groups).__name__}, which has no order of rows."
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
        # an array of text is as wide as its longest entry, and drops NUL at the end: number the
        # texts as they are
        plain = len(kinds) <= 1 and not issubclass(next(iter(kinds), int), (str, bytes))
        plain = plain and (not listed or np.isscalar(listed[0]))
        values = np.asarray(listed) if plain else as_objects(listed)
        if kinds == {int} and values.dtype.kind == "f":  # too large for any integer type
            values = as_objects(listed)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"groups must be one id per row, a 1-D array; it has shape {values.shape}."
        )
    if n_rows is not None and len(values) != n_rows:
        raise ValueError(f"groups has {len(values)} entries, but X has {n_rows} rows.")
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


def _missing_id(row: int, value: Any) -> ValueError:
    return ValueError(
        f"groups has a missing or infinite id at row {row} ({value!r}). "
        "Every row must belong to a query; drop such rows or give them an id."
    )


def _run_starts(values: NDArray[Any]) -> NDArray[np.int64]:
    """Places at which a new run of equal values begins."""
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])


def _number_objects(listed: list[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Number of each object by first appearance, and the distinct objects: one dictionary pass."""
    try:
        numbers = {value: number for number, value in enumerate(dict.fromkeys(listed))}
    except TypeError as error:
        raise ValueError(f"groups must hold one hashable id per row: {error}.") from error
    for value in numbers:
        infinite = isinstance(value, (float, np.floating)) and not np.isfinite(value)
        if infinite or is_missing(value):
            row = next(i for i, other in enumerate(listed) if other is value)
            raise _missing_id(row, value)
    codes = np.fromiter(map(numbers.__getitem__, listed), np.int64, count=len(listed))
    return codes, as_objects(list(numbers))


def _number_values(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Number of each value by first appearance, and the distinct values."""
    if values.dtype.kind in "iu" and int(values.max()) - int(values.min()) < 4 * len(values) + 64:
        low = values.min()
        small = (values.astype(np.int64) if values.dtype.kind == "i" else values) - low
        place = small.astype(np.int64)
        first = np.full(int(place.max()) + 1, -1)
        first[place[::-1]] = np.arange(len(place) - 1, -1, -1)  # the last write is the first row
        present = first >= 0
        first, codes = first[present], (np.cumsum(present) - 1)[place]
    else:
        _, first, codes = np.unique(values, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    number = np.empty_like(by_appearance)
    number[by_appearance] = np.arange(len(first))
    return number[codes], values[first[by_appearance]]


def as_objects(listed: list[Any]) -> NDArray[Any]:
    """A 1-D array of objects, also where they are sequences themselves."""
    values = np.empty(len(listed), dtype=object)
    for row, value in enumerate(listed):
        values[row] = value
    return values


def sizes_to_groups(sizes: ArrayLike, n_rows: int | None = None) -> NDArray[np.int64]:
    """Turn group sizes (LightGBM's convention) into one group id per row.

    Parameters
    ----------
    sizes : array-like of shape (n_queries,)
        Number of consecutive rows of each query, at least 1 each.
    n_rows : int, default=None
        Number of rows that the sizes must add up to, ``len(X)``. It guards against query ids in
        the place of sizes, and is needed for more than 100 million rows.

    Returns
    -------
    groups : ndarray of shape (sum(sizes),)
        0 for the rows of the first query, 1 for those of the second, and so on.

    Raises
    ------
    ValueError
        Sizes that are not whole numbers >= 1 or do not add up to `n_rows`. Without `n_rows` also
        sizes of more than a million rows in which equal numbers stand together, as in query ids,
        and sizes of more than 100 million rows.

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
            f"sizes must be at least 1; got {counts.min()}. Query ids need no conversion: pass "
            "them as groups=."
        )
    total = sum(counts.tolist())
    if n_rows is not None and total != n_rows:
        raise ValueError(
            f"sizes add up to {total} rows, but n_rows is {n_rows}. Query ids need no conversion: "
            "pass them as groups=."
        )
    if n_rows is None and (total > _MANY_ROWS or (total > _SOME_ROWS and _look_like_ids(counts))):
        raise ValueError(
            f"{len(counts)} sizes add up to {total} rows. They look like query ids: those need no "
            "conversion, pass them as groups=. If they are sizes, say so by n_rows=len(X)."
        )
    check_memory(8 * total, f"Groups of {total:,} rows", "Check that sizes are not query ids.")
    return np.repeat(np.arange(len(counts)), counts)


def _look_like_ids(numbers: NDArray[np.int64]) -> bool:
    """Whether equal numbers stand together, two or more on average, as ids of rows do."""
    n_different = len(np.unique(numbers))
    return 2 <= n_different <= len(numbers) / 2 and len(_run_starts(numbers)) == n_different


def order_to_ranks(order: ArrayLike) -> NDArray[np.int64]:
    """Positions (1 = top) from an order of indices, best first.

    Parameters
    ----------
    order : array-like of shape (n_rows,)
        A permutation of ``0 .. n_rows - 1``: `order[k]` is the row at place k.

    Returns
    -------
    ranks : ndarray of shape (n_rows,)
        `ranks[i]` is the position of row i.

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
    """Order of indices, best first, from positions (1 = top): inverse of `order_to_ranks`.

    Parameters
    ----------
    ranks : array-like of shape (n_rows,)
        A permutation of ``1 .. n_rows``: `ranks[i]` is the position of row i.

    Returns
    -------
    order : ndarray of shape (n_rows,)
        `order[k]` is the row at place k.

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
        raise ValueError(f"{name} must be 1-D; it has shape {array.shape}.")
    if not np.array_equal(np.sort(array), lowest + np.arange(len(array))):
        raise ValueError(
            f"{name} must be a permutation of {lowest} .. {lowest + len(array) - 1}; got {array!r}."
        )
    return array
