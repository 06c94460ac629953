"""All kernels in NumPy, with the names and results of `_compiled`.

The docstrings of the ``.pxi`` files describe each function, its steps and its cost. Unlike `sum`,
`cumsum` adds one number at a time, in the order of the compiled loops.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TimeIsUp = Callable[[], bool] | None

# `surrogates._pair_sums` has the NumPy version, which also accepts functions.
pair_sums = None
# Without a kernel, the regressor itself makes the same predictions.
add_trees: Any = None
# `aggregation._evidence` has the NumPy version, which also takes covariates and ties.
fit_profiles: Any = None
#: Number of arrays of the size of `values` that `describe` holds at the same time.
N_TEMPORARIES = 4


# ------------------------------------------------------------------ matrices


def differences(u: Floats) -> tuple[Floats, Floats]:
    d = u - u.transpose(0, 2, 1)
    rows, columns = np.triu_indices(u.shape[1], 1)
    low = np.where(
        u[:, rows, columns] < u[:, columns, rows], u[:, rows, columns], u[:, columns, rows]
    )
    unavoidable = np.cumsum(low, axis=1)[:, -1] if len(rows) else np.zeros(len(u))
    return d, unavoidable


def from_upper_triangle(values: Floats, r: int) -> Floats:
    d = np.zeros((len(values), r, r))
    rows, columns = np.triu_indices(r, 1)
    d[:, rows, columns] = values
    d[:, columns, rows] = -values
    return d


def lost_weight(d: Floats, order: Ints) -> Floats:
    later, earlier = np.tril_indices(d.shape[1], -1)
    if not len(later):
        return np.zeros(len(d))
    weight = d[np.arange(len(d))[:, None], order[:, later], order[:, earlier]]
    return np.cumsum(np.maximum(weight, 0.0), axis=1)[:, -1]


# ------------------------------------------------------------------ graphs


def components(d: Floats) -> tuple[Ints, Ints]:
    m, r = d.shape[:2]
    labels = np.empty((m, r), dtype=np.int64)
    counts = np.empty(m, dtype=np.int64)
    # Loop over queries: connected_components accepts only one graph.
    for q in range(m):
        edges = d[q] > 0
        found, label = connected_components(edges, directed=True, connection="strong")
        smallest = np.full(found, r)
        np.minimum.at(smallest, label, np.arange(r))
        # between[a, b] is the number of edges from component a to component b.
        by_label = np.argsort(label, kind="stable")
        starts = np.searchsorted(label[by_label], np.arange(found))
        between = np.add.reduceat(edges[by_label], starts, axis=0, dtype=np.int64)
        between = np.add.reduceat(between[:, by_label], starts, axis=1)
        np.fill_diagonal(between, 0)
        incoming = between.sum(axis=0)
        # Next is the component with the smallest document, among the unnumbered components
        # without edges from other unnumbered components.
        number = np.empty(found, dtype=np.int64)
        for placed in range(found):
            best = int(np.argmin(np.where(incoming == 0, smallest, r + 1)))
            number[best] = placed
            incoming -= between[best]
            incoming[best] = -1
        labels[q], counts[q] = number[label], found
    return labels, counts


def binary_insertion(d: Floats) -> Ints:
    m, r = d.shape[:2]
    order = np.empty((m, r), dtype=np.int64)
    for q, wins in enumerate((d > 0).tolist()):
        listed: list[int] = []
        for v in range(r):
            low, high = 0, v
            while low < high:
                middle = (low + high) // 2
                if wins[v][listed[middle]]:
                    high = middle
                else:
                    low = middle + 1
            listed.insert(low, v)
        order[q] = listed
    return order


def triangle_bound(d: Floats, time_is_up: TimeIsUp = None) -> float:
    r = len(d)
    left = np.maximum(d, 0.0)
    bound = 0.0
    for i in range(r):
        if time_is_up is not None and time_is_up():
            break
        for j in range(i + 1, r - 1):
            first, second = (i, j) if left[i, j] > 0.0 else (j, i)
            edge = left[first, second]
            if edge <= 0.0:
                continue
            # All cycles first -> second -> k -> first with k > j at once. used[k] is the weight
            # that the cycles before k have taken from the edge first -> second.
            onward, back = left[second, j + 1 :], left[j + 1 :, first]
            spare = np.minimum(onward, back)
            used = np.cumsum(np.r_[0.0, spare])
            take = np.minimum(np.maximum(edge - used[:-1], 0.0), spare)
            onward -= take
            back -= take
            bound = np.cumsum(np.r_[bound, take])[-1]
            left[first, second] = max(edge - used[-1], 0.0)
    return float(bound)


# ------------------------------------------------------------------ Algorithm 1 and ranked pairs
# A set of documents is a Python integer here: document j is in the set if bit j is 1.


def greedy_dag(d: Floats, ranked_pairs: bool, time_is_up: TimeIsUp = None) -> tuple[Ints, Floats]:
    r = d.shape[1]
    # 1. The topological order, which is the answer if there is no cycle.
    order, acyclic = _sort_topologically(d)
    threshold = np.zeros(len(d))
    # 2. Eliminate documents to find the weight t of the heaviest deleted edge.
    cyclic = np.flatnonzero(~acyclic)
    if len(cyclic):
        order[cyclic], threshold[cyclic] = _eliminate(d[cyclic], time_is_up)
    for q in cyclic:
        t = threshold[q]
        # 3. Compute the transitive closure of the edges heavier than t.
        below, above = _close(d[q] > t, order[q], time_is_up)
        closed = np.array([_row(bits, r) for bits in below], dtype=bool)
        # 4. Insert the undecided edges of weight t (or of weight t and less): heavier edges first,
        # equal edges in reverse document order.
        if ranked_pairs:
            light = (d[q] > 0) & (d[q] <= t) & ~closed & ~closed.T
        else:
            light = (d[q] == t) & ~closed
        i, j = np.nonzero(light)
        sequence = np.lexsort((-(i * r + j), -d[q, i, j]))
        _insert(i[sequence].tolist(), j[sequence].tolist(), below, above, ranked_pairs, time_is_up)
        # 5. Compute the lexicographically smallest topological order.
        order[q] = _smallest_topological_order(below, above)
    return order, threshold


def _sort_topologically(d: Floats) -> tuple[Ints, NDArray[np.bool_]]:
    """Return lexicographically smallest topological orders, and which graphs have no cycle."""
    # waiting[q, w]: number of documents preferred to w without a place yet; 2 r if w has a place
    m, r = d.shape[:2]
    every = np.arange(m)
    edges = d > 0
    waiting = edges.sum(axis=1)
    order = np.empty((m, r), dtype=np.int64)
    acyclic = np.ones(m, dtype=bool)
    for k in range(r):
        v = waiting.argmin(axis=1)
        acyclic &= waiting[every, v] == 0
        if not acyclic.any():
            break
        order[:, k] = v
        waiting -= edges[every, v]
        waiting[every, v] = 2 * r
    return order, acyclic


def _check_time(time_is_up: TimeIsUp) -> None:
    if time_is_up is not None and time_is_up():
        raise TimeoutError("The time limit has passed.")


def _smallest_topological_order(below: list[int], above: list[int]) -> Ints:
    r = len(above)
    waiting = np.array([bits.bit_count() for bits in above])
    if 2 * waiting.sum() == r * (r - 1):  # every pair is decided: only one order is possible
        return np.argsort(waiting)
    closed = np.array([_row(bits, r) for bits in below], dtype=np.int64)
    order = np.empty(r, dtype=np.int64)
    for k in range(r):
        v = waiting.argmin()
        order[k] = v
        waiting -= closed[v]
        waiting[v] = r * r
    return order


def _eliminate(d: Floats, time_is_up: TimeIsUp) -> tuple[Ints, Floats]:
    """Eliminate as in `_elimination.pxi`, for all queries at once."""
    # heaviest[q, w]: weight of the heaviest edge from w to a remaining document, target[q, w]. Only
    # documents that lose their target look for another one.
    m, r = d.shape[:2]
    every = np.arange(m)
    left = np.maximum(d, 0.0)  # edges to remaining documents
    heaviest, target = left.max(axis=2), left.argmax(axis=2)
    order = np.empty((m, r), dtype=np.int64)
    threshold = np.zeros(m)
    for k in range(r - 1, -1, -1):
        _check_time(time_is_up)
        v = heaviest.argmin(axis=1)
        order[:, k] = v
        np.maximum(threshold, heaviest[every, v], out=threshold)
        heaviest[every, v] = np.inf
        left[every, :, v] = 0.0
        q, w = np.nonzero((target == v[:, None]) & (heaviest < np.inf))
        rows = left[q, w]
        heaviest[q, w], target[q, w] = rows.max(axis=1), rows.argmax(axis=1)
    return order, threshold


def _close(
    kept: NDArray[np.bool_], order: Ints, time_is_up: TimeIsUp
) -> tuple[list[int], list[int]]:
    """Return the transitive closure of an acyclic graph: the sets below and above each document."""
    # Use places in `order`: all edges lead to larger numbers. reach[k] is the set below place k.
    r = len(order)
    edges = _integers(kept[order[:, None], order])
    reach = [0] * r
    for k in range(r - 1, -1, -1):
        _check_time(time_is_up)
        rest = edges[k]
        while rest:  # near places first: their sets contain most of the remaining places
            lowest = rest & -rest
            reach[k] |= lowest | reach[lowest.bit_length() - 1]
            rest &= ~reach[k]
    closed = np.zeros((r, r), dtype=bool)
    closed[order[:, None], order] = [_row(bits, r) for bits in reach]
    return _integers(closed), _integers(closed.T)


def _integers(rows: NDArray[np.bool_]) -> list[int]:
    """Convert rows of booleans to Python integers."""
    packed = np.packbits(rows, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def _row(bits: int, r: int) -> NDArray[np.uint8]:
    """Convert a Python integer to a row of r zeros and ones."""
    packed = np.frombuffer(bits.to_bytes((r + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=r, bitorder="little")


def _insert(
    i: list[int], j: list[int], below: list[int], above: list[int], skip: bool, time_is_up: TimeIsUp
) -> None:
    """Insert edges in turn. If an edge would close a cycle, skip it if `skip`, otherwise stop."""
    # The cost is one test of a bit per edge, and one union of sets per pair that an edge decides.
    for seen, (first, second) in enumerate(zip(i, j, strict=True)):
        if seen & 4095 == 0:
            _check_time(time_is_up)
        if below[first] >> second & 1:
            continue
        if below[second] >> first & 1:
            if skip:
                continue
            return
        new_below, new_above = below[second] | 1 << second, above[first] | 1 << first
        # Documents above `second` and below `first` already have these, by transitivity.
        higher, lower = new_above & ~above[second], new_below & ~below[first]
        for v in _bits(higher):
            below[v] |= new_below
        for v in _bits(lower):
            above[v] |= new_above


def _bits(mask: int) -> list[int]:
    """Return the positions of the bits that are 1."""
    places = []
    while mask:
        lowest = mask & -mask
        places.append(lowest.bit_length() - 1)
        mask ^= lowest
    return places


# ------------------------------------------------------------------ subset dynamic programming


def subset_dp(
    cost: Floats, own: Floats, scale: Floats, limit: float, sum_remaining: bool
) -> tuple[Ints, float]:
    r = len(cost)
    flip = (1 << r) - 1 if sum_remaining else 0
    low_bits = r // 2
    mask = (1 << low_bits) - 1
    low, high = _sums(cost, own, 0, low_bits), _sums(cost, np.zeros(r), low_bits, r - low_bits)
    best = np.full(1 << r, np.inf)
    best[0] = 0.0
    # Process all sets of k documents at once, for k = 0, 1, ...: a set is final in its turn.
    size = np.zeros(1 << r, dtype=np.uint8)
    for bit in range(r):
        size[1 << bit : 2 << bit] = size[: 1 << bit] + 1
    for k in range(r):
        # Sorting all sets by size would take as long in total, but would delay Ctrl-C.
        layer = np.flatnonzero(size == k)
        layer = layer[(best[layer] <= limit) & (best[layer] < np.inf)]
        for v in range(r):
            sets = layer[(layer >> v) & 1 == 0]
            summed = sets ^ flip
            value = best[sets] + scale[k] * (low[summed & mask, v] + high[summed >> low_bits, v])
            sets = sets | (1 << v)
            best[sets] = np.minimum(best[sets], value)
    s = (1 << r) - 1
    if best[s] == np.inf:
        raise ValueError("no order costs at most limit")
    value = float(best[s])
    order = np.empty(r, dtype=np.int64)
    # Walk back from the full set: the last document is the largest one that explains the value.
    for k in range(r - 1, -1, -1):
        for v in range(r - 1, -1, -1):
            rest = s ^ (1 << v)
            summed = rest ^ flip
            added = scale[k] * (low[summed & mask, v] + high[summed >> low_bits, v])
            if rest < s and best[rest] + added == best[s]:
                order[k], s = v, rest
                break
    return order, value


def _sums(cost: Floats, own: Floats, first: int, n_bits: int) -> Floats:
    """Compute own[v] + sum_{w in S} cost[v, w] for each set S of n_bits documents from `first`."""
    table = np.empty((1 << n_bits, len(cost)))
    table[0] = own
    for bit in range(n_bits):
        np.add(table[: 1 << bit], cost[:, first + bit], out=table[1 << bit : 2 << bit])
    return table


# ------------------------------------------------------------------ context columns


def describe(
    values: NDArray[Any],
    source: slice | NDArray[np.int64],
    offsets: NDArray[np.int64],
    out: NDArray[Any],
    target: slice | NDArray[np.int64],
    zscore: int,
    difference: int,
    slopes: Floats,
) -> None:
    """Write the z-scores and the differences from the mean of whole queries.

    `values` (n_rows, width) are float32 or float64. The means ignore NaN and infinite values, which
    are written unchanged. Query q has the places ``offsets[q]`` to ``offsets[q + 1] - 1`` of
    `source`, which are rows of `values`; `target` are the matching rows of `out`. `zscore` and
    `difference` are the first column of `out` for columns of this kind, or -1 for none. `slopes`
    (n_queries, width) receives 1 / sd of each query, and 0 for a query with sd = 0.
    """
    width = values.shape[1]
    by_query = _ByQuery(offsets)
    block = values[source].astype(np.float64)
    sizes = by_query.sizes[:, None].astype(np.float64)
    # 1. The smallest and largest finite values, and their number, at least 1 because it divides.
    missing = ~np.isfinite(block)
    some_missing = bool(missing.any())
    known = by_query.reduce(np.add, (~missing).astype(np.float64)) if some_missing else sizes
    count = np.maximum(known, 1.0)
    low = by_query.reduce(np.minimum, np.where(missing, np.inf, block) if some_missing else block)
    high = by_query.reduce(np.maximum, np.where(missing, -np.inf, block) if some_missing else block)
    if some_missing:
        low, high = np.where(known > 0, low, 0.0), np.where(known > 0, high, 0.0)
    # 2. The smallest power of two above the spread, 2^exponent. 1e308 - (-1e308) overflows.
    with np.errstate(over="ignore"):
        spread = high - low
    large = np.isinf(spread)
    exponent = np.frexp(np.where(large, 0.5 * high - 0.5 * low, spread))[1] + large
    exponent = np.maximum(exponent, -1023)  # because 2^1024 would overflow
    factor = np.ldexp(1.0, -exponent)
    # 3. above = (x - low) / 2^exponent. If all values are equal, it is exactly 0, unlike x - mean.
    # The division is exact, 0 <= above < 1, and squares cannot overflow.
    with np.errstate(invalid="ignore"):  # infinite values times 0
        above = block * by_query.repeat(factor)
    above -= by_query.repeat(low * factor)
    if some_missing:
        above[missing] = 0.0
    # 4. deviation = (x - mean) / 2^exponent, and sd = sqrt(mean of its squares) in the same unit. A
    # query of n rows has n < 2^bits.
    bits = np.frexp(sizes)[1]
    deviation = above
    deviation -= by_query.repeat(_exact_sum(above, bits, by_query) / count)
    squares = np.square(deviation)
    if some_missing:
        squares[missing] = 0.0
    scale = np.sqrt(_exact_sum(squares, bits, by_query) / count)
    inverse = np.where(scale > 0, 1.0 / np.where(scale > 0, scale, 1.0), 0.0)
    # 5. Write the columns, with all columns of one kind side by side.
    if zscore >= 0:
        own = deviation * by_query.repeat(inverse)
        if some_missing:
            own[missing] = block[missing]
        with np.errstate(over="ignore"):  # an infinite value of float64 may be written as float32
            out[target, zscore : zscore + width] = own.reshape(-1, width)
    if difference >= 0:
        # 2^1024 and 2^1025 exceed the largest number: multiply by 2^1000 and then by the rest.
        first = np.minimum(exponent, 1000)
        own = deviation * by_query.repeat(np.ldexp(1.0, first))
        with np.errstate(over="ignore"):
            own *= by_query.repeat(np.ldexp(1.0, exponent - first))
        if some_missing:
            own[missing] = block[missing]
        with np.errstate(over="ignore"):
            out[target, difference : difference + width] = own.reshape(-1, width)
    # 6. 1 / sd in the unit of x. It overflows for a spread below 1e-308, which is treated as 0.
    with np.errstate(over="ignore"):
        slopes[:] = np.ldexp(inverse, -exponent).reshape(-1, width)
    slopes[~np.isfinite(slopes)] = 0.0


def find_bins(bounds: Floats, values: Floats) -> NDArray[np.int64]:
    """Return, for each value, the number of ascending bounds (at least one) that are <= it."""
    return np.searchsorted(bounds, values, side="right")


class _ByQuery:
    """Sums over queries of an array (row, column), and repetition of values per query."""

    def __init__(self, offsets: NDArray[np.int64]) -> None:
        self.first, self.sizes = offsets[:-1], np.diff(offsets)

    def reduce(self, ufunc: np.ufunc, rows: NDArray[Any]) -> NDArray[Any]:
        return ufunc.reduceat(rows, self.first, axis=0)

    def repeat(self, per_query: NDArray[Any]) -> NDArray[Any]:
        return np.repeat(per_query, self.sizes, axis=0)


def _exact_sum(values: Floats, bits: NDArray[np.int32], by_query: _ByQuery) -> Floats:
    """Sum over each query with a result that does not depend on the order of the rows.

    The last digit of a floating-point sum depends on the order of its terms, and a tree may split
    at exactly that digit. Therefore values in [0, 1] are first rounded to 51 - bits binary places,
    for queries of fewer than 2^bits rows. Every partial sum of the rounded values is exact.
    """
    # Adding 1.5 * 2^(bits + 1) leaves 51 - bits binary places; subtracting it again is exact.
    constant = by_query.repeat(np.ldexp(1.5, bits + 1))
    rounded = values + constant
    rounded -= constant
    return by_query.reduce(np.add, rounded)


# ------------------------------------------------------------------ local searches

#: As in `_local_search.pxi`.
POPULATION, PATIENCE = 12, 150
FEWEST_MOVES, MORE_MOVES = 8, 16
REACH = 0.2


def preference_search(
    d: Floats,
    starts: Ints,
    n_perturbations: int,
    seed: int,
    tolerance: float,
    max_sweeps: int,
    time_is_up: TimeIsUp = None,
) -> tuple[Ints, int]:
    r, first = len(d), -len(starts)
    random = _Random(seed)
    descent = _Descent(d, tolerance, max_sweeps * r, time_is_up)
    population: list[Ints] = []
    costs: list[float] = []
    best, best_cost = np.array(starts[0], dtype=np.int64), 0.0
    begun = improved = 0  # steps of the start and the last change of the population
    for step in range(first, n_perturbations):
        if step - improved > PATIENCE:
            population, costs = [], []
            begun = improved = step
        # 1. Make an order. `source` is the member of the population that it replaces, or -1.
        source, change = -1, 0.0
        if step < 0:
            order = np.array(starts[step - first], dtype=np.int64)
        elif not population or (step % 2 and step - begun < 2 * POPULATION):
            order = _shuffled(starts[0], random)
        elif step % 2 and len(population) > 1:
            one = random.below(len(population))
            other = random.below(len(population) - 1)
            order = _combined(population[one], population[other + (other >= one)], random)
        else:
            source = random.below(len(population))
            other = random.below(len(population))
            if costs[other] < costs[source]:
                source = other
            order = population[source].copy()
            change = _perturb(d, order, random)
        # 2. Descend. Descend to a local optimum from a start or a new best order.
        change = descent.run(order, change)
        if source >= 0 and change > tolerance:
            if descent.stopped:
                break
            continue
        cost = _cost(d, order)
        if step < 0 or cost < best_cost - tolerance:
            while not descent.stopped and descent.run(order, 0.0) < 0:
                pass
            cost = _cost(d, order)
        if step == first or cost < best_cost - tolerance:
            best, best_cost = order.copy(), cost
        if descent.stopped:
            break
        # 3. Insert the order into the population.
        member = source if source >= 0 else _vacancy(costs, cost, tolerance)
        if member >= 0 and (source < 0 or cost < costs[member] - tolerance):
            improved = max(step, 0)
        if member == len(population):
            population.append(order)
            costs.append(cost)
        elif member >= 0:
            population[member], costs[member] = order, cost
    return best, -(-descent.looks // r)


def _vacancy(costs: list[float], cost: float, tolerance: float) -> int:
    if any(abs(other - cost) <= tolerance for other in costs):
        return -1
    if len(costs) < POPULATION:
        return len(costs)
    worst = int(np.argmax(costs))
    return worst if cost < costs[worst] else -1


class _Random:
    """The generator SplitMix64, for many numbers at a time."""

    def __init__(self, seed: int) -> None:
        self.state = np.array([seed], dtype=np.uint64)

    def uniform(self, n: int) -> Floats:
        z = self.state + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, n + 1, dtype=np.uint64)
        self.state = z[-1:]
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, n: int) -> int:
        return int(self.uniform(1)[0] * n)


def _shuffled(start: Ints, random: _Random) -> Ints:
    r = len(start)
    order = start.tolist()
    left = r - np.arange(r)
    for a, by in enumerate((random.uniform(r) * left).astype(np.int64).tolist()):
        order[a], order[a + by] = order[a + by], order[a]
    return np.array(order, dtype=np.int64)


def _perturb(d: Floats, order: Ints, random: _Random) -> float:
    r, change = len(d), 0.0
    n_moves = FEWEST_MOVES + random.below(MORE_MOVES + 1)
    start, by = random.uniform(2 * n_moves).reshape(n_moves, 2).T
    ends = np.clip(((start + REACH * (2.0 * by - 1.0)) * r).astype(np.int64), 0, r - 1)
    for a, b in zip((start * r).astype(np.int64).tolist(), ends.tolist(), strict=True):
        change += _preference_move(d, order, a, b)
    return change


def _combined(one: Ints, other: Ints, random: _Random) -> Ints:
    chosen = random.uniform(len(one)) < 0.5
    marked = np.zeros(len(one), dtype=np.bool_)
    marked[one[chosen]] = True
    order = one.copy()
    order[chosen] = other[marked[other]]
    return order


def _cost(d: Floats, order: Ints) -> float:
    lost = np.cumsum(np.maximum(d[order[:, None], order], 0.0), axis=1)
    return float(np.cumsum(np.r_[0.0, np.diagonal(lost, -1)])[-1])


def _preference_move(d: Floats, order: Ints, a: int, b: int) -> float:
    v = order[a]
    change = 0.0
    if b < a:
        change = -np.cumsum(d[v, order[b:a][::-1]])[-1]
        order[b + 1 : a + 1] = order[b:a].copy()
    elif b > a:
        change = np.cumsum(d[v, order[a + 1 : b + 1]])[-1]
        order[a:b] = order[a + 1 : b + 1].copy()
    order[b] = v
    return float(change)


class _Descent:
    """`_descent` of the compiled kernel, with the arguments common to its calls."""

    def __init__(self, d: Floats, tolerance: float, max_looks: int, time_is_up: TimeIsUp) -> None:
        self.d, self.tolerance, self.max_looks = d, tolerance, max_looks
        self.time_is_up = time_is_up
        self.looks, self.stopped = 0, False

    def run(self, order: Ints, change: float) -> float:
        """Descend from an order, in place. Return `change` plus the change made by the moves."""
        r, lowered, looks = len(order), 0.0, 0
        place = np.empty(r, dtype=np.int64)
        place[order] = np.arange(r)
        queue = deque(order.tolist())
        queued = np.ones(r, dtype=np.bool_)
        while queue and looks < self.max_looks and not self.stopped:
            v = queue.popleft()
            queued[v] = False
            looks += 1
            p = int(place[v])
            row = self.d[v, order]
            up, down = np.cumsum(-row[:p][::-1]), np.cumsum(row[p + 1 :])
            least, best = 0.0, p
            if p and up.min() < least:
                least, best = float(up.min()), p - 1 - int(up.argmin())
            if p < r - 1 and down.min() < least:
                least, best = float(down.min()), p + 1 + int(down.argmin())
            if least < -self.tolerance:
                _preference_move(self.d, order, p, best)
                lowered += least
                passed = order[min(p, best) : max(p, best) + 1]
                place[passed] = np.arange(min(p, best), max(p, best) + 1)
                passed = passed[~queued[passed]]
                queued[passed] = True
                queue.extend(passed.tolist())
            # Reading the clock takes as long as looking at a few documents.
            self.stopped = looks % 64 == 0 and self.time_is_up is not None and self.time_is_up()
        self.looks += looks
        return change + lowered


def average_precision_search(
    u: Floats,
    start: Ints,
    perturbations: Floats,
    tolerance: float,
    max_sweeps: int,
    time_is_up: TimeIsUp = None,
) -> tuple[Ints, int]:
    r = len(u)
    order = np.array(start, dtype=np.int64)
    step = 1.0 / np.arange(1, r + 1) - 1.0 / np.arange(2, r + 2)
    prefix = _prefixes(u, order)
    _, sweeps = _average_precision_descent(
        u, order, prefix, step, tolerance, max_sweeps, time_is_up
    )
    kept, kept_prefix = order.copy(), prefix.copy()
    for moves in perturbations:
        if time_is_up is not None and time_is_up():
            break
        gain = 0.0
        for a, b in (moves.reshape(-1, 2) * r).astype(np.int64):
            gain += _average_precision_move(u, order, prefix, step, a, b)
        raised, more = _average_precision_descent(
            u, order, prefix, step, tolerance, max_sweeps, time_is_up
        )
        sweeps += more
        if gain + raised >= -tolerance:
            kept[:], kept_prefix[:] = order, prefix
        else:
            order[:], prefix[:] = kept, kept_prefix
    return kept, sweeps


def _prefixes(u: Floats, order: Ints) -> Floats:
    sums = np.cumsum(u[order[:, None], order], axis=1)
    prefix = np.empty(len(u))
    before = np.r_[0.0, np.diagonal(sums, -1)]
    prefix[order] = before + u[order, order]
    return prefix


def _passing(
    u: Floats, order: Ints, prefix: Floats, step: Floats, a: int, b: int
) -> tuple[Ints, Floats, Floats]:
    """Return the documents, prefixes and gains on the way of a document from place a to place b."""
    v = order[a]
    passed = order[b:a][::-1] if b < a else order[a + 1 : b + 1]
    shared = u[v, passed]
    own = np.cumsum(np.r_[prefix[v], -shared if b < a else shared])
    if b < a:
        gains = (own[1:] - prefix[passed]) * step[b:a][::-1]
    else:
        gains = ((prefix[passed] - shared) - own[:-1]) * step[a:b]
    return passed.copy(), own, np.cumsum(gains)


def _average_precision_move(
    u: Floats, order: Ints, prefix: Floats, step: Floats, a: int, b: int
) -> float:
    if a == b:
        return 0.0
    v = order[a]
    passed, own, gains = _passing(u, order, prefix, step, a, b)
    prefix[v] = own[-1]
    if b < a:
        prefix[passed] += u[v, passed]
        order[b + 1 : a + 1] = passed[::-1]
    else:
        prefix[passed] -= u[v, passed]
        order[a:b] = passed
    order[b] = v
    return float(gains[-1])


def _average_precision_descent(
    u: Floats,
    order: Ints,
    prefix: Floats,
    step: Floats,
    tolerance: float,
    max_sweeps: int,
    time_is_up: TimeIsUp,
) -> tuple[float, int]:
    r = len(u)
    total, seen, still = 0.0, 0, 0
    while seen < max_sweeps * r and still < r:
        if seen % 64 == 0 and time_is_up is not None and time_is_up():
            break
        p = int(np.flatnonzero(order == seen % r)[0])
        up = _passing(u, order, prefix, step, p, 0)[2]
        down = _passing(u, order, prefix, step, p, r - 1)[2]
        seen, still, most, place = seen + 1, still + 1, 0.0, p
        if p > 0 and up.max() > most:
            most, place = float(up.max()), p - 1 - int(up.argmax())
        if p < r - 1 and down.max() > most:
            most, place = float(down.max()), p + 1 + int(down.argmax())
        if most > tolerance:
            total += _average_precision_move(u, order, prefix, step, p, place)
            still = 0
    return total, -(-seen // r)


# ------------------------------------------------------------------ trees of boosting

_LEAST_HESSIAN, _LEAST_SUPPORT = 1e-3, 10.0


@dataclass(eq=False)
class _Node:
    rows: Any
    held: Any
    sums: tuple[float, float]  # gradient and hessian
    value: float = 0.0
    depth: int = 0
    gain: float = 0.0
    split: Any = None  # column, whether each bin goes to the left, and sums of the left child
    children: tuple[_Node, ...] = ()
    tables: dict[int, Floats] = field(default_factory=dict)  # the histogram of each known column


def grow_tree(
    bins: Any, starts: Any, lacks: Any, categorical: Any, learned: Any, held: Any, gradients: Any,
    hessians: Any, raw: Floats, n_leaves: int, least: int, l2: float, rate: float, n_drawn: int,
    state: Any, sums: Floats, numbers: Floats, integers: Any, left_codes: Any,
) -> int:  # fmt: skip
    sizes, lacks = np.diff(starts), lacks.astype(bool)
    values = gradients, hessians if len(hessians) else np.ones(len(gradients))

    def count(node: _Node, columns: list[int]) -> None:
        weights = *(each[node.rows] for each in values), None
        for column in columns:
            codes = bins[node.rows, column]
            tables = [np.bincount(codes, weight, sizes[column]) for weight in weights]
            node.tables[column] = np.array(tables)

    def draw(node: _Node) -> list[int]:
        enough = len(node.rows) >= 2 * least
        return _draw_columns(len(sizes), n_drawn, state) if enough else []

    def find_split(node: _Node, columns: list[int]) -> None:
        for column in columns:
            table = node.tables[column]
            n_codes = len(table[0]) - 1 + lacks[column]
            orders, backwards = [np.arange(n_codes - 1)], np.arange(n_codes - 2, 0, -1)
            if categorical[column]:
                orders = _orders_of_codes(node, table[:, :n_codes])
            for order in orders:
                _improve_split(node, column, table, order, False, least, l2)
            if lacks[column] and not categorical[column]:
                _improve_split(node, column, table, backwards, True, least, l2)

    root = _Node(learned, held, tuple(np.cumsum(each[learned], dtype=float)[-1] for each in values))
    columns, leaves = draw(root), [root]
    count(root, columns)
    find_split(root, columns)
    while len(leaves) < n_leaves and (node := max(leaves, key=lambda leaf: leaf.gain)).split:
        leaves.remove(node)
        leaves += _split(node, bins, lacks[node.split[0]], l2)
        if len(leaves) == n_leaves:
            break
        drawn = [(child, draw(child)) for child in node.children]
        right_is_small = len(node.children[0].rows) >= len(node.children[1].rows)
        (small, of_small), (large, of_large) = drawn[::-1] if right_is_small else drawn
        known, node.tables = node.tables, {}
        count(small, [*of_small, *known.keys() & set(of_large) - set(of_small)])
        count(large, [column for column in of_large if column not in known])
        for column in known.keys() & small.tables.keys():
            large.tables[column] = known[column] - small.tables[column]
        find_split(small, of_small)
        find_split(large, of_large)
    integers[:], left_codes[:] = 0, 0
    waiting, n_nodes = [(root, -1)], 0
    while waiting:
        node, parent = waiting.pop()
        if parent >= 0:
            integers[parent, 1] = n_nodes
        value = node.value
        if node.children:
            column, goes_left, _ = node.split
            integers[n_nodes, [0, 3, 5]] = n_nodes + 1, column, goes_left[-1]
            if categorical[column]:
                bits = np.zeros(256, dtype=bool)
                bits[: len(goes_left) - 1] = goes_left[:-1]
                left_codes[n_nodes] = np.packbits(bits, bitorder="little").view("<u4")
            else:
                integers[n_nodes, 4] = goes_left[:-1].sum() - 1
            waiting += [(node.children[1], n_nodes), (node.children[0], -1)]
        else:
            value *= rate
            raw[node.rows] += value
            raw[node.held] += value
        numbers[n_nodes] = value, node.gain if node.split else -1.0
        integers[n_nodes, [2, 6]] = node.depth, len(node.rows)
        n_nodes += 1
    return n_nodes


def _draw_columns(n_columns: int, n_drawn: int, state: Any) -> list[int]:
    drawn: list[int] = []
    number, last = int(state[0]), 2**64 - 1
    for column in range(n_columns):
        number ^= number >> 12
        number ^= number << 25 & last
        number ^= number >> 27
        upper = (number * 2685821657736338717 & last) >> 32
        if upper * (n_columns - column) >> 32 < n_drawn - len(drawn):
            drawn.append(column)
    state[0] = number
    return drawn


def _orders_of_codes(node: _Node, table: Floats) -> list[Ints]:
    """Return the orders in which categories join the left child."""
    used = np.flatnonzero(table[1] * (len(node.rows) / node.sums[1]) >= _LEAST_SUPPORT)
    means = table[0, used] / (table[1, used] + _LEAST_SUPPORT)
    ranked = used[np.argsort(means, kind="stable")]
    half = (len(ranked) + 1) // 2
    return [ranked[:half], ranked[::-1][: half - 1]] if len(ranked) > 1 else []


def _improve_split(
    node: _Node, column: int, table: Floats, order: Ints, of_the_right: bool, least: int, l2: float
) -> None:
    *own, n_own = np.cumsum(table[:, order], axis=1)
    other = [total - part for total, part in zip(node.sums, own, strict=True)]
    enough = (n_own >= least) & (own[1] >= _LEAST_HESSIAN)
    rest = (len(node.rows) - n_own >= least) & (other[1] >= _LEAST_HESSIAN)
    allowed = enough & ~np.logical_or.accumulate(enough & ~rest)
    if not allowed.any():
        return
    left, right = (other, own) if of_the_right else (own, other)
    gains = np.full(len(order), node.value * node.sums[0])
    for gradient, hessian in (left, right):
        gains[allowed] -= (gradient * _value(gradient, hessian, l2))[allowed]
    gains[~allowed] = -np.inf
    best = int(np.argmax(gains))
    if gains[best] > node.gain:
        goes_left = np.full(table.shape[1], of_the_right)
        goes_left[order[: best + 1]] = not of_the_right
        node.gain = float(gains[best])
        node.split = column, goes_left, tuple(float(sums[best]) for sums in left)


def _value(gradient: Any, hessian: Any, l2: float) -> Any:
    return -gradient / (hessian + l2 + 1e-15)


def _split(node: _Node, bins: Any, lacks: bool, l2: float) -> tuple[_Node, ...]:
    column, goes_left, left_sums = node.split
    left = goes_left[bins[node.rows, column]]
    if not lacks:
        goes_left[-1] = 2 * left.sum() > len(left)
    held_left = goes_left[bins[node.held, column]]
    right_sums = tuple(total - part for total, part in zip(node.sums, left_sums, strict=True))
    node.children = tuple(
        _Node(node.rows[own], node.held[other], sums, _value(sums[0], sums[1], l2), node.depth + 1)
        for own, other, sums in ((left, held_left, left_sums), (~left, ~held_left, right_sums))
    )
    return node.children
