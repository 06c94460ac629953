"""Ranking: the rows of every query, best first, with blocks of tied rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._numbers import read_numbers, read_whole
from sklearn_rankcal.utils._rounding import ROUNDING

#: How a measure orders tied documents: mean over all orders, order in the data, worst, best.
TIES = ("average", "first", "worst", "best")


@dataclass
class Ranking:
    """The rows of every query, best first.

    An array in *best-first layout* has one entry per row: the rows of query 0 from best to worst,
    then the rows of query 1, and so on. Places within a query are numbered from 0.

    Parameters
    ----------
    queries : Queries
        The queries of the rows.
    order : ndarray of shape (n_rows,)
        The row at each place, in best-first layout.
    start, stop : ndarray of shape (n_rows,) or None
        Rows of a query with equal scores form a block. For each place, `start` is the first place
        of its block within the query, and `stop` is the last place + 1. Both are None if there are
        no ties.
    ranked : ndarray of shape (n_rows,) of bool, or None
        Whether the row at each place was ranked. Unranked rows are last in their queries, and
        `take` sets their values to 0. An example is a relevant document that a run did not find. If
        None, all rows were ranked.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries, Ranking
    >>> ranking = Ranking.from_scores(np.array([0.1, 0.7, 0.7]), Queries.single(3))
    >>> ranking.order.tolist(), ranking.start.tolist(), ranking.stop.tolist()
    ([1, 2, 0], [0, 0, 2], [2, 2, 3])
    """

    queries: Queries
    order: NDArray[np.int64]
    start: NDArray[np.int64] | None = None
    stop: NDArray[np.int64] | None = None
    ranked: NDArray[np.bool_] | None = None

    @classmethod
    def from_scores(
        cls,
        scores: NDArray[Any],
        queries: Queries,
        ties: str = "average",
        relevance: NDArray[np.float64] | None = None,
    ) -> Ranking:
        """Make a ranking by sorting finite scores in row layout, larger is better.

        `ties` determines the order of rows with equal scores. With ``"average"``, the ranking keeps
        them as blocks, and measures are averaged over their orders. ``"first"`` keeps the order of
        the rows. ``"worst"`` and ``"best"`` sort them by ascending or descending `relevance`
        (n_rows,).
        """
        order = queries.sort(scores)
        if ties == "first":
            return cls(queries, order)
        tied = equal_neighbours(scores[order], queries)
        if not tied.any():
            return cls(queries, order)
        ranking = cls(queries, order, *blocks(tied, queries))
        if ties == "average":
            return ranking
        assert relevance is not None
        return ranking.break_ties(-relevance if ties == "best" else relevance)

    @classmethod
    def from_found(
        cls, scores: NDArray[Any], found: NDArray[np.bool_], queries: Queries, ties: str
    ) -> Ranking:
        """Make a ranking in which only rows in `found` are ranked."""
        scores = np.where(found, scores, -np.inf)
        order = queries.sort(scores)
        ranked = found[order]
        tied = equal_neighbours(scores[order], queries) & ranked
        if ties == "first" or not tied.any():
            return cls(queries, order, ranked=ranked)
        return cls(queries, order, *blocks(tied, queries), ranked=ranked)

    @classmethod
    def from_ranks(cls, ranks: NDArray[np.int64], queries: Queries) -> Ranking:
        """Make a ranking from positions, 1 = top, in row layout.

        The positions of a query with r rows must be a permutation of 1 .. r, or tied rows must
        share the best of their positions. `check_ranks` checks permutations.
        """
        order = np.full(queries.n_rows, -1)
        grouped = queries.gather(ranks) - 1 + queries.repeat(queries.offsets[:-1])
        order[grouped] = np.arange(queries.n_rows) if queries.order is None else queries.order
        return cls(queries, order) if order.min() >= 0 else cls.from_scores(-ranks, queries)

    def break_ties(self, key: NDArray[Any]) -> Ranking:
        """Return a ranking without ties, in which each block is sorted by ascending `key`.

        `key` is in row layout. Rows with equal keys keep their order.
        """
        if self.start is None:
            return self
        block = self.start + self.queries.repeat(self.queries.offsets[:-1])
        order = self.order[np.lexsort((key[self.order], block))]
        return Ranking(self.queries, order, ranked=self.ranked)  # a block is ranked as a whole

    def head(self, k: int | None) -> Ranking:
        """Return the ranking of the first k places of every query.

        A block that begins among these places is kept as a whole.
        """
        if k is None or k >= self.queries.sizes.max():
            return self
        if self.start is None or self.stop is None:
            kept = np.minimum(self.queries.sizes, k)
        else:
            kept = self.sum((self.start < k).astype(np.int64))
        offsets = np.append(0, np.cumsum(kept))
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], kept)
        at = place + np.repeat(self.queries.offsets[:-1], kept)
        top = Ranking(Queries(offsets), self.order[at])
        if self.start is not None and self.stop is not None:
            top.start, top.stop = self.start[at], self.stop[at]
        if self.ranked is not None:
            top.ranked = self.ranked[at]
        return top

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Convert an array from row layout to best-first layout, with 0 for unranked rows."""
        taken = values[self.order]
        return taken if self.ranked is None else taken * self.ranked

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Add up an array in best-first layout over each query."""
        return self.queries.reduce(np.add, values)


def tie_rounded(scores: NDArray[Any], queries: Queries) -> NDArray[Any]:
    """Make scores of a query equal if they differ only by rounding.

    For example, rows with equal features may get scores that differ in the last bits, in an order
    that depends on the processor.
    """
    return tie_within(scores, queries, ROUNDING * queries.max(np.abs(scores)))


def tie_within(
    scores: NDArray[Any], queries: Queries, tolerance: NDArray[np.float64]
) -> NDArray[Any]:
    """Make scores of a query equal if they differ by at most the tolerance of the query.

    In descending order, each score is made equal to the previous score if they differ by at most
    the tolerance. NaN is last and stays NaN.
    """
    order = queries.sort(np.where(np.isnan(scores), -np.inf, scores))
    ordered = scores[order]
    new = np.ones(len(ordered), dtype=bool)
    gap = ordered[:-1] - ordered[1:]
    new[1:] = ~(gap <= queries.repeat(tolerance)[1:])
    new[queries.offsets[:-1]] = True
    if new.all():
        return scores
    tied = np.empty_like(scores)
    tied[order] = ordered[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return tied


def equal_neighbours(grouped: NDArray[Any], queries: Queries) -> NDArray[np.bool_]:
    """Return whether each entry of a grouped array equals the previous entry of its query."""
    same = np.empty(len(grouped), dtype=bool)
    same[0] = False
    np.equal(grouped[1:], grouped[:-1], out=same[1:])
    same[queries.offsets[:-1]] = False
    return same


def blocks(
    tied: NDArray[np.bool_], queries: Queries
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return `start` and `stop` of a `Ranking`.

    `tied` is true for each place with the same score as the previous place.
    """
    first = np.flatnonzero(~tied)
    length = np.diff(np.append(first, len(tied)))
    start = np.repeat(queries.place[first], length)
    return start, start + np.repeat(length, length)


def check_scores(scores: ArrayLike, n_rows: int | None, name: str) -> NDArray[np.float64]:
    """Check scores and return them as a 1-D array of finite floats. Errors start with `name`.

    An array of shape (n_rows, 1) is accepted. float16 and float32 are not converted to float64.
    """
    values = read_numbers(scores, name, keep_float32=True)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one score per row; it has shape {values.shape}.")
    if n_rows is not None and len(values) != n_rows:
        raise ValueError(
            f"{name} has {counted(len(values), 'entry')}, but there are {counted(n_rows, 'row')}."
        )
    if len(values) == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"{name} contains NaN or infinity (first at row {row}).")
    return values


def check_ranks(ranks: ArrayLike, queries: Queries) -> NDArray[np.int64]:
    """Check that the positions in each query are a permutation of 1 .. r.

    Parameters
    ----------
    ranks : array-like of shape (n_rows,)
        Position of each row in its query, 1 = top.
    queries : Queries
        The queries of the rows.

    Returns
    -------
    positions : ndarray of shape (n_rows,)
        The positions as int64.

    Raises
    ------
    ValueError
        If the positions of a query are not a permutation of 1 .. r.

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries, check_ranks
    >>> check_ranks([2, 1, 1], Queries.from_groups(["a", "a", "b"])).tolist()
    [2, 1, 1]
    """
    positions = read_whole(ranks, "ranks")
    if positions.shape != (queries.n_rows,):
        raise ValueError(
            f"ranks has shape {positions.shape}, but y_true has {counted(queries.n_rows, 'row')}."
        )
    grouped = queries.gather(positions)
    seen = np.zeros(queries.n_rows, dtype=bool)
    outside = (grouped < 1) | (grouped > queries.repeat(queries.sizes))
    if not outside.any():
        seen[grouped - 1 + queries.repeat(queries.offsets[:-1])] = True
    if outside.any() or not seen.all():
        bad = np.flatnonzero(
            ~queries.reduce(np.logical_and, seen)
            if not outside.any()
            else queries.reduce(np.logical_or, outside)
        )[0]
        shown = grouped[queries.offsets[bad] : queries.offsets[bad + 1]][:10]
        raise ValueError(
            f"ranks must be a permutation of 1 .. r in every query (1 = top); query "
            f"{queries.ids[bad]!r} of {counted(queries.sizes[bad], 'row')} has "
            f"{shown.tolist()}... Pass scores as y_score instead."
        )
    return positions
