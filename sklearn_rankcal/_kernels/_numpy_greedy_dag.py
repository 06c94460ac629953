"""Algorithm 1 and ranked pairs in NumPy: the function `greedy_dag` of `_compiled_graphs.pyx`.

The docstring there describes the steps and their cost. A set of documents is a Python integer
here: document j is in the set if bit j is 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TimeIsUp = Callable[[], bool] | None


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
    """Eliminate as in `_compiled_elimination.pyx`, for all queries at once."""
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
