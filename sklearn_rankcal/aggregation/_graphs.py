"""The graph of the comparisons of all queries: pairs, connected components, linear systems.

In linear systems, each component has its own step lengths and stopping rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import splu

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._labels import merge_pairs
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, add_up

#: A symmetric matrix of weights is dense up to this number of entries per compared pair, and up to
#: this number of rows, which fit in the cache.
_DENSE_ENTRIES_PER_PAIR, _MAX_DENSE_NODES = 4, 256


class ComparedPairs(NamedTuple):
    """The unordered pairs of items that were compared, each once, in ascending order."""

    first: Ints  # less than `second`
    second: Ints
    wins: Floats  # the total weight of preferences for `first`; wins + losses > 0
    losses: Floats

    @property
    def total(self) -> Floats:
        """The total weight of the comparisons of each pair, of shape (n_pairs,)."""
        return self.wins + self.losses

    @property
    def net(self) -> Floats:
        """The weight for `first` minus the weight for `second`; 0 if only a rounding error."""
        net = self.wins - self.losses
        return np.where(np.abs(net) > 1e-12 * self.total, net, 0.0)

    def sum_over(self, of_first: Floats, of_second: Floats, n_items: int) -> Floats:
        """Add up over the pairs of each item: `of_first` if it is first, else `of_second`."""
        return add_up(self.first, of_first, n_items) + add_up(self.second, of_second, n_items)

    def sum_skew(self, values: Floats, n_items: int) -> Floats:
        """Add up over the pairs of each item: `values` if it is first, else ``-values``."""
        return add_up(self.first, values, n_items) - add_up(self.second, values, n_items)

    def take(self, chosen: Ints | Bools) -> ComparedPairs:
        """Keep only some pairs, or sort them."""
        first, second = self.first[chosen], self.second[chosen]
        return ComparedPairs(first, second, self.wins[chosen], self.losses[chosen])


def compared_pairs(preferences: Preferences) -> ComparedPairs:
    """Return the pairs with positive weight, as places in the grouped layout of the queries."""
    queries = preferences.queries
    winner, loser = preferences.winner, preferences.loser
    if queries.order is not None:
        place = queries.scatter(np.arange(queries.n_rows))
        winner, loser = place[winner], place[loser]
    first, second = np.minimum(winner, loser), np.maximum(winner, loser)
    forward = winner < loser
    weight = preferences.weight
    weights = (np.where(forward, weight, 0.0), np.where(forward, 0.0, weight))
    chosen, (wins, losses) = merge_pairs(first, second, weights, queries)
    kept = wins + losses > 0
    chosen = chosen[kept]
    return ComparedPairs(first[chosen], second[chosen], wins[kept], losses[kept])


class ComparisonGraph:
    """The compared items and pairs, sorted by connected component.

    `parts` is the partition of the nodes into components, `pairs` has numbers of nodes, and `rows`
    has the row of the item of each node. Component p has the pairs ``pair_offsets[p]`` to
    ``pair_offsets[p + 1] - 1``, at least one.
    """

    def __init__(self, parts: Queries, pairs: ComparedPairs, rows: Ints) -> None:
        self.parts = parts
        self.pairs = pairs
        self.rows = rows
        self.n_nodes = parts.n_rows
        self.part_of_pair = parts.codes[pairs.first]
        counts = np.bincount(self.part_of_pair, minlength=parts.n_queries)
        self.pair_offsets = np.append(0, np.cumsum(counts))
        # The pairs are sorted by their first node, so they are a triangular matrix in CSR format.
        # SciPy converts places to the smallest type that holds them, here once for all matrices.
        starts = np.append(0, np.cumsum(np.bincount(pairs.first, minlength=self.n_nodes)))
        small = max(self.n_nodes, len(pairs.first)) <= np.iinfo(np.int32).max
        self._row_starts = starts.astype(np.int32 if small else np.int64)
        self._columns = pairs.second.astype(self._row_starts.dtype)

    @classmethod
    def from_preferences(cls, preferences: Preferences) -> ComparisonGraph:
        """Find the components of the comparisons of positive weight. O(n_pairs + n_rows)."""
        pairs = compared_pairs(preferences)
        queries = preferences.queries
        n_rows = queries.n_rows
        labels = number_components(pairs.first, pairs.second, n_rows, "weak")
        compared = np.zeros(n_rows, dtype=bool)
        compared[pairs.first] = compared[pairs.second] = True
        nodes = np.flatnonzero(compared)
        codes = np.unique(labels[nodes], return_inverse=True)[1]
        if (codes[1:] < codes[:-1]).any():
            order = np.argsort(codes, kind="stable")
            nodes, codes = nodes[order], codes[order]
        parts = Queries(np.append(0, np.cumsum(np.bincount(codes))))
        number = np.zeros(n_rows, dtype=np.int64)
        number[nodes] = np.arange(len(nodes))
        # Nodes keep their order within a component: first < second remains true.
        first, second = number[pairs.first], number[pairs.second]
        pairs = pairs._replace(first=first, second=second)
        if (first[1:] < first[:-1]).any():
            pairs = pairs.take(np.lexsort((second, first)))
        rows = nodes if queries.order is None else queries.order[nodes]
        return cls(parts, pairs, rows)

    def take(self, parts: Bools) -> tuple[ComparisonGraph, Ints]:
        """Keep only some components, and return the numbers that their nodes have here."""
        kept = self.parts.repeat(parts)
        nodes = np.flatnonzero(kept)
        number = np.cumsum(kept) - 1
        pairs = self.pairs.take(parts[self.part_of_pair])
        pairs = pairs._replace(first=number[pairs.first], second=number[pairs.second])
        offsets = np.append(0, np.cumsum(self.parts.sizes[parts]))
        return ComparisonGraph(Queries(offsets), pairs, self.rows[nodes]), nodes

    def to_rows(self, scores: Floats, n_rows: int) -> Floats:
        """Return the centred score of each row; items without comparisons have the score 0."""
        values = np.zeros(n_rows)
        if self.n_nodes:
            values[self.rows] = self.parts.center(scores)
        return values

    def upper(self, weight: Floats) -> csr_array:
        """Return the matrix with the weight of each pair at (first, second), and 0 elsewhere."""
        shape = (self.n_nodes, self.n_nodes)
        return csr_array((weight, self._columns, self._row_starts), shape=shape)

    def laplacian(self, weight: Floats, ridge: Floats) -> tuple[Callable[[Floats], Floats], Floats]:
        """Return the product of (L + diag(ridge)) and a vector, and the diagonal of the matrix.

        L is the Laplacian matrix with these weights. If few items were compared in most pairs, a
        dense matrix is faster than a sparse matrix.
        """
        diagonal = self.pairs.sum_over(weight, weight, self.n_nodes) + ridge
        n_entries = self.n_nodes**2
        if self.n_nodes <= _MAX_DENSE_NODES and n_entries <= _DENSE_ENTRIES_PER_PAIR * len(weight):
            matrix = np.diag(diagonal)
            matrix[self.pairs.first, self.pairs.second] = -weight
            matrix[self.pairs.second, self.pairs.first] = -weight
            return matrix.dot, diagonal
        upper = self.upper(weight)
        lower = upper.T
        return lambda v: diagonal * v - np.asarray(upper @ v + lower @ v), diagonal

    def strongly_connected(self) -> Bools:
        """Whether chains of wins lead from each item to each other item, per component."""
        won, lost = self.pairs.wins > 0, self.pairs.losses > 0
        winner = np.concatenate([self.pairs.first[won], self.pairs.second[lost]])
        loser = np.concatenate([self.pairs.second[won], self.pairs.first[lost]])
        labels = number_components(winner, loser, self.n_nodes, "strong")
        if labels.max() < self.parts.n_queries:  # as many as weakly connected components
            return np.ones(self.parts.n_queries, dtype=bool)
        return np.asarray(self.parts.max(labels) == self.parts.min(labels))


def number_parts(labels: Ints, compared: Bools, queries: Queries) -> Ints:
    """Number the components of each query from 1, largest first; 0 if not compared."""
    _, first, number, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    query = queries.codes[first]
    order = np.lexsort((first, -sizes * compared[first], query))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - np.searchsorted(query[order], query[order])
    return np.where(compared, place[number] + 1, 0)


def number_components(start: Ints, end: Ints, n_nodes: int, connection: str) -> Ints:
    """Number the weakly or strongly connected components of a graph, for each node."""
    if n_nodes**2 <= len(start):  # many edges occur several times
        present = np.zeros(n_nodes**2, dtype=bool)
        present[start * n_nodes + end] = True
        start, end = np.divmod(np.flatnonzero(present), n_nodes)
        begin = np.searchsorted(start, np.arange(n_nodes + 1))
        matrix = csr_array((np.ones(len(start)), end, begin), shape=(n_nodes, n_nodes))
    else:
        matrix = csr_array((np.ones(len(start)), (start, end)), shape=(n_nodes, n_nodes))
        # SciPy 1.13 keeps duplicate edges, and its search for strong components then never ends.
        matrix.sum_duplicates()
    labels = connected_components(matrix, directed=True, connection=connection)[1]
    return np.asarray(labels, dtype=np.int64)


# ---------------------------------------------------------------- linear systems


_ROUNDING = 1e-14
_FEW_STEPS, _MANY_STEPS = 100, 20_000
#: If conjugate gradients do not solve a component in a few steps, it is eliminated directly if it
#: has at most this many nodes, or at most two pairs per node, like chains and trees.
_SMALL = 500


def conjugate_gradients(
    product: Callable[[Floats], Floats],
    diagonal: Floats,
    rhs: Floats,
    parts: Queries,
    tolerance: float | Floats,
    max_iter: int,
) -> tuple[Floats, Bools]:
    """Solve a symmetric positive semidefinite system for each component.

    `product` multiplies the matrix by a vector, and its diagonal is the preconditioner. A component
    is solved when its residual, in the norm of the preconditioner, is at most `tolerance` (a
    number, or one per part) times the norm of `rhs`. Return the solution and the unsolved parts.
    """
    solution = np.zeros_like(rhs)
    residual = rhs.copy()
    scaled = residual / diagonal
    direction = scaled.copy()
    square = parts.sum(residual * scaled)
    target = square * np.asarray(tolerance) ** 2
    active = square > target
    for _ in range(max_iter):
        if not active.any():
            break
        image = product(direction)
        curvature = parts.sum(direction * image)
        # If the matrix is singular and only rounding errors are left, the direction is in its null
        # space, and a step would be huge.
        active &= curvature > _ROUNDING * parts.sum(direction * diagonal * direction)
        step = np.divide(square, curvature, out=np.zeros_like(square), where=active)
        steps = parts.repeat(step)
        solution += steps * direction
        residual -= steps * image
        scaled = residual / diagonal
        previous, square = square, parts.sum(residual * scaled)
        ratio = np.divide(square, previous, out=np.zeros_like(square), where=active)
        direction = scaled + parts.repeat(ratio) * direction
        active &= square > target
    return solution, active


def solve_laplacian(
    graph: ComparisonGraph,
    weight: Floats,
    rhs: Floats,
    ridge: Floats | None = None,
    tolerance: float | Floats = 1e-13,
) -> Floats:
    """Solve (L + diag(ridge)) x = rhs, where L is the Laplacian matrix of a graph with weights.

    Without a ridge, `rhs` adds up to 0 over each component, and the solution is unique up to a
    constant. Conjugate gradients take some tens of steps for random pairs, but one step per node
    for long chains. Chains are therefore eliminated directly, in linear time.
    """
    ridge = np.zeros(graph.n_nodes) if ridge is None else ridge
    tolerance = np.broadcast_to(tolerance, graph.parts.n_queries)
    matrix = graph.laplacian(weight, ridge)
    solution, unsolved = conjugate_gradients(*matrix, rhs, graph.parts, tolerance, _FEW_STEPS)
    if not unsolved.any():
        return solution
    n_pairs = np.diff(graph.pair_offsets)
    direct = unsolved & ((graph.parts.sizes <= _SMALL) | (n_pairs <= 2 * graph.parts.sizes))
    for chosen, eliminate in ((direct, True), (unsolved & ~direct, False)):
        if not chosen.any():
            continue
        part, nodes = graph.take(chosen)
        inside = weight[chosen[graph.part_of_pair]]
        if eliminate:
            solution[nodes] = _eliminate(part, inside, rhs[nodes], ridge[nodes])
        else:
            matrix, limits = part.laplacian(inside, ridge[nodes]), (tolerance[chosen], _MANY_STEPS)
            solution[nodes] = conjugate_gradients(*matrix, rhs[nodes], part.parts, *limits)[0]
    return solution


def _eliminate(graph: ComparisonGraph, weight: Floats, rhs: Floats, ridge: Floats) -> Floats:
    """Solve by sparse elimination. The first node of each component without a ridge becomes 0."""
    kept = np.ones(graph.n_nodes, dtype=bool)
    kept[graph.parts.offsets[:-1]] = ridge[graph.parts.offsets[:-1]] > 0
    number = np.cumsum(kept) - 1
    first, second = graph.pairs.first, graph.pairs.second
    inside = kept[first]  # the second node of a pair is not the first of its component
    diagonal = (graph.pairs.sum_over(weight, weight, graph.n_nodes) + ridge)[kept]
    one, other, negative = number[first[inside]], number[second[inside]], -weight[inside]
    place = np.arange(len(diagonal))
    entries = np.concatenate([diagonal, negative, negative])
    at = np.concatenate([place, one, other]), np.concatenate([place, other, one])
    matrix = coo_array((entries, at), shape=(len(diagonal), len(diagonal))).tocsc()
    # the matrix is symmetric positive definite: no pivoting is needed
    factors = splu(
        matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    solution = np.zeros(graph.n_nodes)
    solution[kept] = factors.solve(rhs[kept])
    return solution


# ---------------------------------------------------------------- ends that wins leave open

#: The share of the items of a connected component that its main block contains at least.
MAIN = 0.9


def open_ends(winner: Ints, loser: Ints, part: Ints, main: float = MAIN) -> tuple[Bools, Bools]:
    """Return the rows with scores that the likelihood does not bound from below, and from above.

    Relative to a strongly connected block, the likelihood bounds a score from above if a chain of
    wins leads from the block to the item. It bounds a score from below if a chain leads from the
    item to the block. Scores are relative to a block with at least the share `main` of a component,
    if there is one. Otherwise they are relative to the mean: then only a single lowest block is
    bounded from above, and only a single highest block from below. `part` has the components of the
    rows.
    """
    n = len(part)
    start: Ints
    block = number_components(winner, loser, n, "strong")
    size = np.bincount(block)[block]
    large = _main_blocks(block, part, main)
    across = block[winner] != block[loser]
    ends = []
    for one, other in ((winner, loser), (loser, winner)):
        # the items that chains from the main blocks reach, from an auxiliary node above these
        # blocks
        start, end = np.append(one, np.full(len(large), n)), np.append(other, large)
        graph = csr_array((np.ones(len(start)), (start, end)), shape=(n + 1, n + 1))
        bounded = np.zeros(n + 1, dtype=bool)
        bounded[breadth_first_order(graph, n, return_predecessors=False)] = True
        leaves = np.zeros(n, dtype=bool)
        leaves[block[one[across]]] = True
        last = ~leaves[block]  # no chain leads away from these items
        alone = np.bincount(part[last], minlength=n)[part] == size
        relative = np.isin(part, part[large])
        ends.append(np.where(relative, ~bounded[:n], ~(last & alone)))
    return ends[1], ends[0]


def _main_blocks(block: Ints, part: Ints, main: float) -> Ints:
    """Return an item of each strongly connected block of the share `main` of its component."""
    size = np.bincount(block)[block]
    order = np.lexsort((-size, part))
    largest = order[np.append(True, part[order][1:] != part[order][:-1])]  # of each component
    share = size[largest] / np.bincount(part)[part[largest]]
    return np.asarray(largest[(size[largest] > 1) & (share >= main)])


def settled_items(winner: Ints, loser: Ints, part: Ints, main: float = MAIN) -> Bools:
    """Return the items of the blocks of the share `main` of their component, or all of it.

    A block is strongly connected. The mean of other items can be far from where it seems to be.
    """
    block = number_components(winner, loser, len(part), "strong")
    large = _main_blocks(block, part, main)
    return np.asarray(~np.isin(part, part[large]) | np.isin(block, block[large]))
