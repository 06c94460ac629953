"""Targets of pairs: made a few queries at a time, because all of them seldom fit in memory.

A query of r documents has r^2 of them: antisymmetric differences t_ij = y_ij - y_ji for pairwise
disagreement, symmetric products for average precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal._queries import Queries
from sklearn_rankcal.labels._preferences import Preferences
from sklearn_rankcal.labels._rankings import weigh

Floats = NDArray[np.float64]
#: Matrix entries made at a time: 16 MB.
SQUARE_ENTRIES = 2**21


def square_chunks(queries: Queries) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Padded views of the queries, `SQUARE_ENTRIES` matrix entries at a time."""
    return queries.squares(SQUARE_ENTRIES)


class PairTargets:
    """What a model of pairs learns.

    Attributes
    ----------
    queries : Queries
    symmetric : bool
        Whether t_ij = t_ji; otherwise t_ij = -t_ji.
    """

    symmetric = False

    def __init__(self, queries: Queries) -> None:
        self.queries = queries

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        """(n, width, width) targets of the queries at these places of the grouped layout.

        0 where either document is beyond its query's size.
        """
        raise NotImplementedError

    def row_sums(self, weight: Floats | None = None) -> Floats:
        """sum_j weight_j t_ij of every row: for differences the net Borda score. O(sum r^2)."""
        queries = self.queries
        grouped_weight = None if weight is None else queries.gather(weight)
        grouped = np.empty(queries.n_rows)
        for inside, valid in square_chunks(queries):
            matrices = self.matrices(inside, valid)
            sums = (
                matrices.sum(axis=2)
                if grouped_weight is None
                else np.einsum("qij,qj->qi", matrices, grouped_weight[inside] * valid)
            )
            grouped[inside[valid]] = sums[valid]
        return queries.scatter(grouped)

    def flat(self) -> Floats:
        """Entries above the diagonal (on it too, where symmetric), query after query.

        The order of ``numpy.triu_indices``: what decoders take. O(sum r^2) memory.
        """
        shift = 1 if self.symmetric else -1
        sizes = self.queries.sizes
        counts = sizes * (sizes + shift) // 2
        stops = np.cumsum(counts)
        values = np.empty(int(stops[-1]))
        for r in np.unique(sizes):
            member = np.flatnonzero(sizes == r)
            rows, columns = np.triu_indices(r, 0 if self.symmetric else 1)
            step = max(1, SQUARE_ENTRIES // (r * r))
            for first in range(0, len(member), step):
                some = member[first : first + step]
                inside = self.queries.offsets[some][:, None] + np.arange(r)
                matrices = self.matrices(inside, np.ones(inside.shape, dtype=bool))
                places = (stops - counts)[some][:, None] + np.arange(len(rows))
                values[places] = matrices[:, rows, columns]
        return values


class RelevanceDifferences(PairTargets):
    """t_ij = h(y_i - y_j) for y_i > y_j, minus it for y_i < y_j, times a factor of the query.

    Parameters
    ----------
    relevance : ndarray of shape (n_rows,)
    queries : Queries
    kind : "binary", "graded" or callable
        h: 1, the difference itself, or any function of arrays of positive differences.
    factor : ndarray of shape (n_queries,)
    """

    def __init__(
        self,
        relevance: Floats,
        queries: Queries,
        kind: str | Callable[[Floats], Floats],
        factor: Floats,
    ) -> None:
        super().__init__(queries)
        self.kind = kind
        self.factor = factor
        self._grouped = queries.gather(relevance)
        self._factor = np.repeat(factor, queries.sizes)  # grouped layout

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        relevance = self._grouped[inside]
        difference = relevance[:, :, None] - relevance[:, None, :]
        if callable(self.kind):
            size = np.abs(difference)
            some = size > 0
            size[some] = weigh(self.kind, size[some])
            difference = np.sign(difference) * size
        elif self.kind == "binary":
            difference = np.sign(difference)
        difference *= self._factor[inside[:, :1]][:, :, None]
        difference *= valid[:, :, None] & valid[:, None, :]
        return difference

    def row_sums(self, weight: Floats | None = None) -> Floats:
        """O(n) where graded, O(n log r) where binary."""
        if callable(self.kind):
            return super().row_sums(weight)
        queries = self.queries
        mass = np.ones(queries.n_rows) if weight is None else queries.gather(weight)
        starts = queries.offsets[:-1]
        if self.kind == "graded":
            total = np.add.reduceat(mass, starts)
            moment = np.add.reduceat(mass * self._grouped, starts)
            sums = np.repeat(total, queries.sizes) * self._grouped
            sums -= np.repeat(moment, queries.sizes)
        else:
            sums = _net_mass(self._grouped, mass, queries)
        return queries.scatter(sums * self._factor)


def _net_mass(grouped: Floats, mass: Floats, queries: Queries) -> Floats:
    """Mass of the documents with a smaller value in the query, minus that with a larger one."""
    owner = np.repeat(np.arange(queries.n_queries), queries.sizes)
    order = np.lexsort((grouped, owner))
    value, weight = grouped[order], mass[order]
    before = np.cumsum(weight) - weight
    new = np.append(True, (value[1:] != value[:-1]) | (owner[1:] != owner[:-1]))
    block = np.cumsum(new) - 1
    first = np.flatnonzero(new)
    in_block = np.add.reduceat(weight, first)
    start = np.repeat(before[queries.offsets[:-1]], queries.sizes)
    total = np.repeat(np.add.reduceat(weight, queries.offsets[:-1]), queries.sizes)
    smaller = before[first][block] - start
    larger = total - smaller - in_block[block]
    net = np.empty_like(grouped)
    net[order] = smaller - larger
    return net


class PreferenceDifferences(PairTargets):
    """t_ij = y_ij - y_ji of given preferences, times a factor of the query.

    Parameters
    ----------
    preferences : Preferences
    factor : ndarray of shape (n_queries,)
    """

    def __init__(self, preferences: Preferences, factor: Floats) -> None:
        super().__init__(preferences.queries)
        self._preferences = preferences
        self._factor = factor

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        weights = self._preferences.matrices(inside)
        number = np.searchsorted(self.queries.offsets, inside[:, 0], side="right") - 1
        return (weights - weights.transpose(0, 2, 1)) * self._factor[number][:, None, None]

    def row_sums(self, weight: Floats | None = None) -> Floats:
        """O(number of pairs)."""
        pairs = self._preferences
        winner, loser = pairs.winner, pairs.loser
        signed = pairs.weight * self._factor[self.queries.codes[winner]]
        for_winner = signed if weight is None else signed * weight[loser]
        for_loser = signed if weight is None else signed * weight[winner]
        n_rows = self.queries.n_rows
        net = np.bincount(winner, for_winner, n_rows) - np.bincount(loser, for_loser, n_rows)
        return net.astype(np.float64, copy=False)


class RelevanceProducts(PairTargets):
    """t_ij = v_i v_j, v = y / sqrt(sum y): average precision's targets.

    Parameters
    ----------
    relevance : ndarray of shape (n_rows,)
        0 or 1.
    queries : Queries
    total : ndarray of shape (n_queries,)
        What stands for sum y.
    """

    symmetric = True

    def __init__(self, relevance: Floats, queries: Queries, total: Floats) -> None:
        super().__init__(queries)
        scale = 1.0 / np.sqrt(np.where(total > 0, total, 1.0))
        self._grouped = queries.gather(relevance) * np.repeat(scale, queries.sizes)

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        factor = self._grouped[inside] * valid
        return factor[:, :, None] * factor[:, None, :]
