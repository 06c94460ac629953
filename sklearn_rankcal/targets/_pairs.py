"""Targets of pairs of documents. Labels come in; a matrix of r^2 targets per query comes out.

r is the number of documents of the query. The targets of pairwise disagreement are antisymmetric
differences t_ij = y_ij - y_ji, and those of average precision are symmetric products. Matrices are
computed a few queries at a time, because those of all queries seldom fit in memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._rankings import PairWeight, weigh
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets._space import PAIRS, SYMMETRIC_PAIRS, PairSpace

Floats = NDArray[np.float64]


class PairTargets:
    """Base class of the targets that a model of pairs learns.

    Attributes
    ----------
    queries : Queries
    space : PairSpace
        Whether t_ij = -t_ji (`PAIRS`) or t_ij = t_ji (`SYMMETRIC_PAIRS`).
    """

    space: PairSpace = PAIRS

    def __init__(self, queries: Queries) -> None:
        self.queries = queries

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        """The targets (n, width, width) of the queries at these places of the grouped layout.

        An entry is 0 if either document is beyond the size of its query.
        """
        raise NotImplementedError

    def largest(self) -> float:
        """A bound of ``abs(t_ij)`` that is at most a few times too large. O(sum r^2)."""
        chunks = self.queries.pair_blocks()
        return max((float(np.abs(self.matrices(*chunk)).max()) for chunk in chunks), default=0.0)

    def row_sums(self, weight: Floats | None = None) -> Floats:
        """sum_j weight_j t_ij of every row: for differences the net Borda score. O(sum r^2)."""
        queries = self.queries
        grouped_weight = None if weight is None else queries.gather(weight)
        grouped = np.empty(queries.n_rows)
        for inside, valid in queries.pair_blocks():
            matrices = self.matrices(inside, valid)
            sums = (
                matrices.sum(axis=2)
                if grouped_weight is None
                else np.einsum("qij,qj->qi", matrices, grouped_weight[inside] * valid)
            )
            grouped[inside[valid]] = sums[valid]
        return queries.scatter(grouped)

    def diagonal(self) -> Floats:
        """t_ii of every row, row layout. O(sum r^2)."""
        grouped = np.empty(self.queries.n_rows)
        for inside, valid in self.queries.pair_blocks():
            entries = np.einsum("qii->qi", self.matrices(inside, valid))
            grouped[inside[valid]] = entries[valid]
        return self.queries.scatter(grouped)

    def flat(self) -> Floats:
        """Entries above the diagonal (on it too, where symmetric), query after query.

        The order of ``numpy.triu_indices``: what decoders take. O(sum r^2) memory.
        """
        queries = self.queries
        starts = np.append(0, np.cumsum(self.space.n_entries(queries.sizes)))
        values = np.empty(int(starts[-1]))
        for inside in queries.equal_pair_blocks():
            rows, columns = self.space.indices(inside.shape[1])
            number = np.searchsorted(queries.offsets, inside[:, 0], side="right") - 1
            matrices = self.matrices(inside, np.ones(inside.shape, dtype=bool))
            if number[-1] - number[0] == len(number) - 1:  # neighbours: no index needed
                part = values[starts[number[0]] : starts[number[-1] + 1]]
                part.reshape(len(number), -1)[...] = matrices[:, rows, columns]
            else:
                values[starts[number][:, None] + np.arange(len(rows))] = matrices[:, rows, columns]
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
        kind: PairWeight,
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

    def largest(self) -> float:
        """O(n), unless h is a function."""
        if callable(self.kind):
            return super().largest()
        queries, value = self.queries, self._grouped
        spread = queries.reduce(np.maximum, value) - queries.reduce(np.minimum, value)
        if self.kind == "binary":
            spread = np.sign(spread)
        return float(np.max(spread * np.abs(self.factor)))

    def weights(self, inside: NDArray[np.int64]) -> Floats:
        """(n, r, r) weights y_ij of the whole queries at these places."""
        return np.maximum(self.matrices(inside, np.ones(inside.shape, dtype=bool)), 0.0)

    def below_and_above(self, graded: bool) -> tuple[Floats, Floats]:
        """For every row, the number of documents of its query with less, and with more, relevance.

        If `graded`, it is the sum of the differences in relevance instead. O(n log r).
        """
        queries, value = self.queries, self._above_least()
        sides = _mass_beside(value, np.ones_like(value), queries)
        if graded:
            below, above = _mass_beside(value, value, queries)
            sides = sides[0] * value - below, above - sides[1] * value
        return queries.scatter(sides[0]), queries.scatter(sides[1])

    def _above_least(self) -> Floats:
        """Labels minus the smallest of their query, so that sums keep the digits of differences."""
        return self._grouped - self.queries.repeat(self.queries.reduce(np.minimum, self._grouped))

    def row_sums(self, weight: Floats | None = None) -> Floats:
        """O(n) where graded, O(n log r) where binary."""
        if callable(self.kind):
            return super().row_sums(weight)
        queries = self.queries
        mass = np.ones(queries.n_rows) if weight is None else queries.gather(weight)
        starts = queries.offsets[:-1]
        if self.kind == "graded":
            total = np.add.reduceat(mass, starts)
            value = self._above_least()
            moment = np.add.reduceat(mass * value, starts)
            sums = np.repeat(total, queries.sizes) * value
            sums -= np.repeat(moment, queries.sizes)
        else:
            below, above = _mass_beside(self._grouped, mass, queries)
            sums = below - above
        return queries.scatter(sums * self._factor)


def _mass_beside(grouped: Floats, mass: Floats, queries: Queries) -> tuple[Floats, Floats]:
    """For each row, the mass of the rows of its query with a smaller, and with a larger, value."""
    owner = np.repeat(np.arange(queries.n_queries), queries.sizes)
    order = np.lexsort((grouped, owner))
    value, weight = grouped[order], mass[order]
    # Sums run inside each query. In sums over all queries a large one would spoil its neighbours.
    upward = _sums_before(weight, queries)
    backward = Queries(queries.n_rows - queries.offsets[::-1])
    downward = _sums_before(weight[::-1], backward)[::-1]
    new = np.append(True, (value[1:] != value[:-1]) | (owner[1:] != owner[:-1]))
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(value)) - 1
    block = np.cumsum(new) - 1
    sides = np.empty((2, len(grouped)))
    sides[:, order] = upward[first][block], downward[last][block]
    return sides[0], sides[1]


def _sums_before(grouped: Floats, queries: Queries) -> Floats:
    """The sum of the values before each place in its query."""
    sums = np.empty_like(grouped)
    sums[1:] = queries.cumsum(grouped)[:-1]
    sums[queries.offsets[:-1]] = 0.0
    return sums


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
        weights = self.weights(inside)
        return weights - weights.transpose(0, 2, 1)

    def largest(self) -> float:
        """The largest weight. O(number of pairs)."""
        pairs = self._preferences
        weight = pairs.weight * np.abs(self._factor[self.queries.codes[pairs.winner]])
        return float(weight.max(initial=0.0))

    def weights(self, inside: NDArray[np.int64]) -> Floats:
        """(n, width, width) weights y_ij of the queries at these places."""
        number = np.searchsorted(self.queries.offsets, inside[:, 0], side="right") - 1
        return self._preferences.matrices(inside) * self._factor[number][:, None, None]

    def comparisons(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats]:
        """Rows i and j, y_ij and y_ji of every pair that is compared, once. O(pairs log pairs)."""
        pairs, n_rows = self._preferences, self.queries.n_rows
        i, j = pairs.winner, pairs.loser
        weight = pairs.weight * self._factor[self.queries.codes[i]]
        place = self.queries.scatter(np.arange(n_rows))
        key, turned = place[i] * n_rows + j, place[j] * n_rows + i  # ascending: see Preferences
        at = np.minimum(np.searchsorted(key, turned), len(key) - 1)
        both = key[at] == turned
        once = ~both | (i < j)
        return i[once], j[once], weight[once], np.where(both, weight[at], 0.0)[once]

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

    space = SYMMETRIC_PAIRS

    def __init__(self, relevance: Floats, queries: Queries, total: Floats) -> None:
        super().__init__(queries)
        scale = 1.0 / np.sqrt(np.where(total > 0, total, 1.0))
        self._grouped = queries.gather(relevance) * np.repeat(scale, queries.sizes)

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        factor = self._grouped[inside] * valid
        return factor[:, :, None] * factor[:, None, :]

    def largest(self) -> float:
        """O(n)."""
        return float(np.abs(self._grouped).max(initial=0.0)) ** 2

    def diagonal(self) -> Floats:
        """O(n)."""
        return self.queries.scatter(self._grouped**2)


class Residuals(PairTargets):
    """Targets minus a fit of them, off the diagonal; 0 on the diagonal.

    Parameters
    ----------
    targets, fitted : PairTargets
        Of one space.
    """

    def __init__(self, targets: PairTargets, fitted: PairTargets) -> None:
        super().__init__(targets.queries)
        self.space = targets.space
        self._targets, self._fitted = targets, fitted

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        rest = self._targets.matrices(inside, valid) - self._fitted.matrices(inside, valid)
        np.einsum("qii->qi", rest)[...] = 0.0
        return rest


def flat_targets(targets: Floats | PairTargets) -> Floats:
    """Targets of any space as a vector: of rows, or of pairs in the order of `PairTargets.flat`."""
    return targets.flat() if isinstance(targets, PairTargets) else targets
