"""Ranking: the rows of every query, best first, with the blocks of rows whose scores tie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.utils._numbers import read_numbers, read_whole

TIES = ("average", "first", "worst", "best")


@dataclass
class Ranking:
    """Rows of every query, best first.

    Parameters
    ----------
    queries : Queries
    order : ndarray of shape (n_rows,)
        Row at each place of the grouped layout, best first inside each query.
    start, stop : ndarray of shape (n_rows,) or None
        Of each place, the first place (inside the query, 0-based) of its block of equal scores and
        the place after its last. None when no two scores tie.
    """

    queries: Queries
    order: NDArray[np.int64]
    start: NDArray[np.int64] | None = None
    stop: NDArray[np.int64] | None = None

    @classmethod
    def from_scores(
        cls,
        scores: NDArray[Any],
        queries: Queries,
        ties: str = "average",
        relevance: NDArray[np.float64] | None = None,
    ) -> Ranking:
        """Sort scores; `ties` says what equal scores mean (see `sklearn_rankcal.metrics`)."""
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
    def from_ranks(cls, ranks: NDArray[np.int64], queries: Queries) -> Ranking:
        """From positions, 1 = top, a permutation of 1 .. r in each query (trusted)."""
        order = np.empty(queries.n_rows, dtype=np.int64)
        grouped = queries.gather(ranks) - 1 + queries.repeat(queries.offsets[:-1])
        order[grouped] = np.arange(queries.n_rows) if queries.order is None else queries.order
        return cls(queries, order)

    def break_ties(self, key: NDArray[Any]) -> Ranking:
        """The same with ties broken by ascending `key` (row layout); equal keys keep row order."""
        if self.start is None:
            return self
        block = self.start + self.queries.repeat(self.queries.offsets[:-1])
        return Ranking(self.queries, self.order[np.lexsort((key[self.order], block))])

    def head(self, k: int | None) -> Ranking:
        """The first k places of every query alone, with whole blocks where ties reach across."""
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
        return top

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Row layout to best-first layout."""
        return values[self.order]

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over each query of an array in best-first layout."""
        return self.queries.reduce(np.add, values)


def equal_neighbours(grouped: NDArray[Any], queries: Queries) -> NDArray[np.bool_]:
    """Whether each place of a grouped array equals the place before it in the same query."""
    same = np.empty(len(grouped), dtype=bool)
    same[0] = False
    np.equal(grouped[1:], grouped[:-1], out=same[1:])
    same[queries.offsets[:-1]] = False
    return same


def blocks(
    tied: NDArray[np.bool_], queries: Queries
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First place and place after the last of each place's block, inside its query."""
    first = np.flatnonzero(~tied)
    length = np.diff(np.append(first, len(tied)))
    start = np.repeat(queries.place[first], length)
    return start, start + np.repeat(length, length)


def check_scores(scores: ArrayLike, n_rows: int | None, name: str) -> NDArray[np.float64]:
    """Validate scores and return them as a finite 1-D float array; float32 stays float32."""
    values = read_numbers(scores, name, keep_float32=True)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one score per row; it has shape {values.shape}.")
    if n_rows is not None and len(values) != n_rows:
        raise ValueError(f"{name} has {len(values)} entries, but there are {n_rows} rows.")
    if len(values) == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"{name} contains NaN or infinity (first at row {row}).")
    return values


def check_ranks(ranks: ArrayLike, queries: Queries) -> NDArray[np.int64]:
    """Positions as int64, each query a permutation of 1 .. r."""
    positions = read_whole(ranks, "ranks")
    if positions.shape != (queries.n_rows,):
        raise ValueError(
            f"ranks has shape {positions.shape}, but y_true has {queries.n_rows} rows."
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
            f"ranks must be a permutation of 1 .. r in every query (1 = top); in query "
            f"{queries.ids[bad]!r} of {queries.sizes[bad]} rows they are {shown.tolist()}... "
            "Pass scores as y_score instead."
        )
    return positions
