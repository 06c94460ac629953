"""Targets are the numbers that a model learns. A loss computes them from the labels.

labels -> **targets** -> model -> prediction -> decoder -> ranking -> measure -> metric

There is one target per document or per pair of documents. Every loss, model and decoder has an
attribute `space`: `SCORES`, `PAIRS` or `SYMMETRIC_PAIRS`, the space of its targets, of its
predictions, or of the predictions that it decodes. A loss, a model and a decoder can be combined if
their spaces are equal.

The targets t_ij of pairwise disagreement are differences y_ij - y_ji, where y_ij is the weight of
the preference for document i over document j. The targets of average precision are symmetric
products. Matrices are computed for a few queries at a time, because the matrices of all queries
seldom fit in memory. The parameters `inside` and `valid`, of shape (n, width), come from
`Queries.buckets`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._rankings import PairWeight, weigh
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints

__all__ = ["PAIRS", "SCORES", "SYMMETRIC_PAIRS", "PairTargets"]


class Space(str):
    """A space of targets and predictions of a query: one number per document or per pair.

    A space is a string, its name. The entries of a query are one number for each document, or one
    number for each pair i < j. A symmetric space also has an entry for each i = j.

    Parameters
    ----------
    name : str
        Name of the space.
    is_pairwise : bool, default=True
        Whether there is an entry u_ij for each pair of documents.
    symmetric : bool, default=False
        Whether u_ij = u_ji. Otherwise u_ij = -u_ji.
    """

    is_pairwise: bool
    symmetric: bool

    def __new__(cls, name: str, *, is_pairwise: bool = True, symmetric: bool = False) -> Self:
        space = super().__new__(cls, name)
        space.is_pairwise, space.symmetric = is_pairwise, symmetric
        return space

    @property
    def sign(self) -> float:
        """1 if u_ij = u_ji, -1 if u_ij = -u_ji."""
        return 1.0 if self.symmetric else -1.0

    def n_entries(self, sizes: Any) -> Any:
        """Return the number of entries of a query, or of several, given the number of documents."""
        if not self.is_pairwise:
            return sizes
        return sizes * (sizes + (1 if self.symmetric else -1)) // 2

    def owners(self, queries: Queries) -> Ints:
        """Return the query number of each entry, in ascending order."""
        return np.repeat(np.arange(queries.n_queries), self.n_entries(queries.sizes))

    def remove_constants(self, entries: Floats, queries: Queries) -> Floats:
        """Subtract the constants that affect no ranking from the entries of all queries.

        This is the mean of the scores of a query. In a symmetric space, it is the mean of the
        diagonal entries and the mean of all other entries. Differences have no such constant.
        """
        if not self.is_pairwise:
            return _center(entries, self.owners(queries))
        if not self.symmetric:
            return entries
        return _center(entries, 2 * self.owners(queries) + self.on_diagonal(queries))

    # ---------------------------------------------------------------- spaces of pairs

    def indices(self, r: int) -> tuple[Ints, Ints]:
        """Return the documents i and j of each entry of a query with r documents, in order."""
        return np.triu_indices(r, 0 if self.symmetric else 1)

    def matrices(self, entries: Floats, r: int) -> Floats:
        """Convert entries (n, n_entries) of n queries with r documents to matrices (n, r, r)."""
        i, j = self.indices(r)
        matrices = np.zeros((len(entries), r, r))
        matrices[:, j, i] = self.sign * entries
        matrices[:, i, j] = entries
        return matrices

    def fold(self, there: Floats, back: Floats) -> Floats:
        """Combine predictions for (i, j) and for (j, i) into one number per pair."""
        return (there + self.sign * back) / 2

    def on_diagonal(self, queries: Queries) -> Ints:
        """Return 1 for entries with i = j of a symmetric space, and 0 for all other entries."""
        counts = self.n_entries(queries.sizes)
        first, r = queries.repeat(np.cumsum(counts) - counts), queries.repeat(queries.sizes)
        place = queries.place
        marks = np.zeros(int(counts.sum()), dtype=np.int64)
        # Row k of the upper triangle has r - k entries. Entry (i, i) follows the rows
        # 0, ..., i - 1, which have i r - i (i - 1) / 2 entries.
        marks[first + place * r - place * (place - 1) // 2] = 1
        return marks

    def __reduce__(self) -> Any:
        # Pickle only the name. Unpickling then returns the one object of the space. With
        # `SPACES.__getitem__` instead of `get_space`, pickle would store the whole dictionary, and
        # could not read it back.
        return get_space, (str(self),)


def _center(entries: Floats, kind: Ints) -> Floats:
    """Subtract the mean of the entries of the same kind from each entry."""
    sums, counts = np.bincount(kind, entries), np.bincount(kind)
    return entries - (sums / np.maximum(counts, 1))[kind]


#: The space of one number per document.
SCORES = Space("scores", is_pairwise=False)


#: The space of one difference u_ij = -u_ji per pair of documents of a query.
PAIRS = Space("pairs")


#: The space of one number u_ij = u_ji per pair of documents of a query, and u_ii per document.
SYMMETRIC_PAIRS = Space("symmetric_pairs", symmetric=True)


#: All spaces by name.
SPACES: dict[str, Space] = {space: space for space in (SCORES, PAIRS, SYMMETRIC_PAIRS)}


def get_space(space: str) -> Space:
    """Return a space by its name, such as ``"pairs"``. A `Space` is a string."""
    if space not in SPACES:
        raise ValueError(f"Unknown space {space!r}. Known: {', '.join(map(repr, SPACES))}.")
    return SPACES[space]


class RedrawnTargets(NamedTuple):
    """One target per document, and a function that samples new targets with the same expectation.

    ``draw(numbers)`` takes query numbers, and returns new targets for the documents of these
    queries, one query after the other, in grouped layout.
    """

    values: Floats
    draw: Callable[[Ints], Floats]


class PairTargets:
    """Base class of targets of pairs: t_ij = -t_ji in the space `PAIRS`, otherwise t_ij = t_ji.

    A subclass implements `matrices`. Losses make such targets in `losses.Loss.encode`.

    Parameters
    ----------
    queries : Queries
        The queries of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.losses import PD
    >>> from sklearn_rankcal.queries import Queries
    >>> targets = PD().encode(np.array([2.0, 0.0, 1.0]), Queries.single(3))
    >>> targets.row_sums().tolist()
    [2.0, -2.0, 0.0]
    """

    space: Space = PAIRS

    def __init__(self, queries: Queries) -> None:
        self.queries = queries

    def matrices(self, inside: Ints, valid: Bools) -> Floats:
        """Compute the targets of some queries, shape (n, width, width), with 0 in the padding."""
        raise NotImplementedError

    def largest(self) -> float:
        """Return the largest ``abs(t_ij)``, or an upper bound, in O(sum of r^2)."""
        chunks = self.queries.pair_blocks()
        return max((float(np.abs(self.matrices(*chunk)).max()) for chunk in chunks), default=0.0)

    def row_sums(self, weight: Floats | None = None) -> Floats:
        """Compute sum_j weight_j t_ij for every row in O(sum of r^2). By default, weights are 1.

        If the targets are differences and the weights are 1, these are the net Borda scores.
        """
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
        """Return the target t_ii of every row i, of shape (n_rows,), in O(sum of r^2)."""
        grouped = np.empty(self.queries.n_rows)
        for inside, valid in self.queries.pair_blocks():
            entries = np.einsum("qii->qi", self.matrices(inside, valid))
            grouped[inside[valid]] = entries[valid]
        return self.queries.scatter(grouped)

    def flat(self) -> Floats:
        """Return the targets of all pairs as a vector, the input format of decoders.

        The vector contains the targets of query 0, then of query 1, and so on. In a query with r
        documents, the order is ``numpy.triu_indices(r, 1)``, or ``numpy.triu_indices(r)`` if the
        targets are symmetric. The memory is O(sum of r^2).
        """
        queries = self.queries
        starts = np.append(0, np.cumsum(self.space.n_entries(queries.sizes)))
        values = np.empty(int(starts[-1]))
        for inside in queries.equal_pair_blocks():
            rows, columns = self.space.indices(inside.shape[1])
            number = np.searchsorted(queries.offsets, inside[:, 0], side="right") - 1
            matrices = self.matrices(inside, np.ones(inside.shape, dtype=bool))
            # The entries of consecutive queries are contiguous and can be written as a slice.
            if number[-1] - number[0] == len(number) - 1:
                part = values[starts[number[0]] : starts[number[-1] + 1]]
                part.reshape(len(number), -1)[...] = matrices[:, rows, columns]
            else:
                values[starts[number][:, None] + np.arange(len(rows))] = matrices[:, rows, columns]
        return values


class RelevanceDifferences(PairTargets):
    """Differences of preferences, computed from relevance.

    t_ij = factor * h(y_i - y_j) if y_i > y_j, t_ij = -factor * h(y_j - y_i) if y_i < y_j, and
    t_ij = 0 if y_i = y_j. The function h is 1 if `kind` is ``"binary"``, the difference if it is
    ``"graded"``, or `kind` itself, a function of an array of positive differences. `relevance` has
    shape (n_rows,), and `factor` shape (n_queries,).
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

    def matrices(self, inside: Ints, valid: Bools) -> Floats:
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
        """Return the largest ``abs(t_ij)``, in O(n_rows) unless `kind` is a function."""
        if callable(self.kind):
            return super().largest()
        queries, value = self.queries, self._grouped
        spread = queries.reduce(np.maximum, value) - queries.reduce(np.minimum, value)
        if self.kind == "binary":
            spread = np.sign(spread)
        return float(np.max(spread * np.abs(self.factor)))

    def weights(self, inside: Ints) -> Floats:
        """Compute the weights y_ij, of shape (n, r, r), of n queries with r documents each."""
        return np.maximum(self.matrices(inside, np.ones(inside.shape, dtype=bool)), 0.0)

    def below_and_above(self, graded: bool) -> tuple[Floats, Floats]:
        """Compare every row with the rows of its query that have less, and more, relevance.

        Return the numbers of these rows, or the sums of the absolute differences if `graded`, in
        O(n_rows log r).
        """
        queries, value = self.queries, self._above_least()
        sides = _mass_beside(value, np.ones_like(value), queries)
        if graded:
            below, above = _mass_beside(value, value, queries)
            sides = sides[0] * value - below, above - sides[1] * value
        return queries.scatter(sides[0]), queries.scatter(sides[1])

    def _above_least(self) -> Floats:
        """Return the relevance minus the smallest relevance of the query, in the grouped layout.

        This does not change differences, and reduces rounding errors of sums.
        """
        return self._grouped - self.queries.repeat(self.queries.reduce(np.minimum, self._grouped))

    def row_sums(self, weight: Floats | None = None) -> Floats:
        """Compute sum_j weight_j t_ij for every row; see `PairTargets.row_sums`.

        The cost is O(n_rows) if `kind` is "graded", and O(n_rows log r) if it is "binary".
        """
        if callable(self.kind):
            return super().row_sums(weight)
        queries = self.queries
        mass = np.ones(queries.n_rows) if weight is None else queries.gather(weight)
        starts = queries.offsets[:-1]
        if self.kind == "graded":
            # sum_j weight_j (y_i - y_j) = y_i sum_j weight_j - sum_j weight_j y_j
            total = np.add.reduceat(mass, starts)
            value = self._above_least()
            moment = np.add.reduceat(mass * value, starts)
            sums = np.repeat(total, queries.sizes) * value
            sums -= np.repeat(moment, queries.sizes)
        else:  # weight of the rows with less relevance - weight of the rows with more relevance
            below, above = _mass_beside(self._grouped, mass, queries)
            sums = below - above
        return queries.scatter(sums * self._factor)


def _mass_beside(grouped: Floats, mass: Floats, queries: Queries) -> tuple[Floats, Floats]:
    """Add up the mass of the rows with smaller, and larger, values in the query of each row.

    All arrays are in the grouped layout.
    """
    # Step 1: sort the rows of each query by value.
    owner = np.repeat(np.arange(queries.n_queries), queries.sizes)
    order = np.lexsort((grouped, owner))
    value, weight = grouped[order], mass[order]
    # Step 2: add up the mass before and after each place, separately in each query. In one
    # cumulative sum over all queries, a query with a large mass would add rounding errors to all
    # following queries.
    upward = _sums_before(weight, queries)
    backward = Queries(queries.n_rows - queries.offsets[::-1])
    downward = _sums_before(weight[::-1], backward)[::-1]
    # Step 3: rows with equal values form a block. They get the mass before the first row of the
    # block, and the mass after its last row.
    new = np.append(True, (value[1:] != value[:-1]) | (owner[1:] != owner[:-1]))
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(value)) - 1
    block = np.cumsum(new) - 1
    sides = np.empty((2, len(grouped)))
    sides[:, order] = upward[first][block], downward[last][block]
    return sides[0], sides[1]


def _sums_before(grouped: Floats, queries: Queries) -> Floats:
    """Return the sum of the preceding values of the query for each place."""
    sums = np.empty_like(grouped)
    sums[1:] = queries.cumsum(grouped)[:-1]
    sums[queries.offsets[:-1]] = 0.0
    return sums


class PreferenceDifferences(PairTargets):
    """Differences t_ij = factor * (y_ij - y_ji) of preferences with weights y_ij.

    `factor` has shape (n_queries,).
    """

    def __init__(self, preferences: Preferences, factor: Floats) -> None:
        super().__init__(preferences.queries)
        self._preferences = preferences
        self._factor = factor

    def matrices(self, inside: Ints, valid: Bools) -> Floats:
        weights = self.weights(inside)
        return weights - weights.transpose(0, 2, 1)

    def largest(self) -> float:
        """Return the largest weight, an upper bound of ``abs(t_ij)``, in O(n_pairs)."""
        pairs = self._preferences
        weight = pairs.weight * np.abs(self._factor[self.queries.codes[pairs.winner]])
        return float(weight.max(initial=0.0))

    def weights(self, inside: Ints) -> Floats:
        """Compute the weights y_ij of some queries, times the factor of the query.

        The result has shape (n, width, width), with 0 in the padding.
        """
        number = np.searchsorted(self.queries.offsets, inside[:, 0], side="right") - 1
        return self._preferences.matrices(inside) * self._factor[number][:, None, None]

    def comparisons(self) -> tuple[Ints, Ints, Floats, Floats]:
        """List each compared pair of rows once, as arrays i, j, y_ij, y_ji.

        The weights in both directions are multiplied by the factor of the query. A weight is 0 if
        there is no preference in its direction. The cost is O(n_pairs log n_pairs).
        """
        pairs, n_rows = self._preferences, self.queries.n_rows
        i, j = pairs.winner, pairs.loser
        weight = pairs.weight * self._factor[self.queries.codes[i]]
        # Look up the opposite preference (j, i) of each preference (i, j). The keys ascend, because
        # `Preferences` sorts its pairs by (i, j).
        place = self.queries.scatter(np.arange(n_rows))
        key, turned = place[i] * n_rows + j, place[j] * n_rows + i
        at = np.minimum(np.searchsorted(key, turned), len(key) - 1)
        both = key[at] == turned
        once = ~both | (i < j)  # keep only the preference with i < j of two opposite preferences
        return i[once], j[once], weight[once], np.where(both, weight[at], 0.0)[once]

    def row_sums(self, weight: Floats | None = None) -> Floats:
        """Compute sum_j weight_j t_ij for every row in O(n_pairs); see `PairTargets.row_sums`."""
        pairs = self._preferences
        winner, loser = pairs.winner, pairs.loser
        signed = pairs.weight * self._factor[self.queries.codes[winner]]
        for_winner = signed if weight is None else signed * weight[loser]
        for_loser = signed if weight is None else signed * weight[winner]
        n_rows = self.queries.n_rows
        net = np.bincount(winner, for_winner, n_rows) - np.bincount(loser, for_loser, n_rows)
        return net.astype(np.float64, copy=False)


class RelevanceProducts(PairTargets):
    """Products t_ij = y_i y_j / total of relevance y, the targets of average precision.

    `total` of shape (n_queries,) is the sum of the relevance of each query, or its value after
    shrinkage. If it is 0, the products are not divided.
    """

    space = SYMMETRIC_PAIRS

    def __init__(self, relevance: Floats, queries: Queries, total: Floats) -> None:
        super().__init__(queries)
        # t_ij = v_i v_j with v = y / sqrt(total)
        scale = 1.0 / np.sqrt(np.where(total > 0, total, 1.0))
        self._grouped = queries.gather(relevance) * np.repeat(scale, queries.sizes)

    def matrices(self, inside: Ints, valid: Bools) -> Floats:
        factor = self._grouped[inside] * valid
        return factor[:, :, None] * factor[:, None, :]

    def largest(self) -> float:
        """Return the largest ``abs(t_ij)`` in O(n_rows)."""
        return float(np.abs(self._grouped).max(initial=0.0)) ** 2

    def diagonal(self) -> Floats:
        """Return the target t_ii of every row i, of shape (n_rows,), in O(n_rows)."""
        return self.queries.scatter(self._grouped**2)


class Residuals(PairTargets):
    """Targets minus their fitted values for i != j, and 0 for i = j."""

    def __init__(self, targets: PairTargets, fitted: PairTargets) -> None:
        super().__init__(targets.queries)
        self.space = targets.space
        self._targets, self._fitted = targets, fitted

    def matrices(self, inside: Ints, valid: Bools) -> Floats:
        rest = self._targets.matrices(inside, valid) - self._fitted.matrices(inside, valid)
        np.einsum("qii->qi", rest)[...] = 0.0
        return rest


def flat_targets(targets: Floats | PairTargets) -> Floats:
    """Return targets of any space as a vector with one entry per row or per pair."""
    return targets.flat() if isinstance(targets, PairTargets) else targets
