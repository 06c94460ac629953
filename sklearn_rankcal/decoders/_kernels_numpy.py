"""`_kernels.pyx` without a compiler: the same functions, the same results to the last bit.

Sums run in the order of the compiled loops (`cumsum` adds one by one, `sum` does not). What each
function does and costs is said there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Late = Callable[[], bool] | None


# ------------------------------------------------------------------ matrices


def differences(u: Floats) -> tuple[Floats, Floats]:
    d = u - u.transpose(0, 2, 1)
    rows, columns = np.triu_indices(u.shape[1], 1)
    low = np.where(
        u[:, rows, columns] < u[:, columns, rows], u[:, rows, columns], u[:, columns, rows]
    )
    floor = np.cumsum(low, axis=1)[:, -1] if len(rows) else np.zeros(len(u))
    return d, floor


def antisymmetric(values: Floats, r: int) -> Floats:
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
    for q in range(m):
        edges = d[q] > 0
        found, label = connected_components(edges, directed=True, connection="strong")
        smallest = np.full(found, r)
        np.minimum.at(smallest, label, np.arange(r))
        by_label = np.argsort(label, kind="stable")
        starts = np.searchsorted(label[by_label], np.arange(found))
        between = np.add.reduceat(edges[by_label], starts, axis=0, dtype=np.int64)
        between = np.add.reduceat(between[:, by_label], starts, axis=1)
        np.fill_diagonal(between, 0)
        incoming = between.sum(axis=0)
        number = np.empty(found, dtype=np.int64)
        for placed in range(found):
            best = int(np.argmin(np.where(incoming == 0, smallest, r + 1)))
            number[best] = placed
            incoming -= between[best]
            incoming[best] = -1
        labels[q], counts[q] = number[label], found
    return labels, counts


def greedy_dag(d: Floats, ranked_pairs: bool, late: Late = None) -> tuple[Ints, Floats]:
    r = d.shape[1]
    order, acyclic = _sort_topologically(d)
    threshold = np.zeros(len(d))
    cyclic = np.flatnonzero(~acyclic)
    if len(cyclic):
        order[cyclic], threshold[cyclic] = _eliminate(d[cyclic], late)
    for q in cyclic:
        t = threshold[q]
        below, above = _close(d[q] > t, order[q], late)
        closed = np.array([_row(bits, r) for bits in below], dtype=bool)
        if ranked_pairs:
            light = (d[q] > 0) & (d[q] <= t) & ~closed & ~closed.T
        else:
            light = (d[q] == t) & ~closed
        i, j = np.nonzero(light)
        sequence = np.lexsort((-(i * r + j), -d[q, i, j]))
        _insert(i[sequence].tolist(), j[sequence].tolist(), below, above, ranked_pairs, late)
        order[q] = _first_topological(below, above)
    return order, threshold


def _sort_topologically(d: Floats) -> tuple[Ints, NDArray[np.bool_]]:
    """The smallest topological orders, and which graphs are acyclic; all queries at once."""
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


def _check_time(late: Late) -> None:
    if late is not None and late():
        raise TimeoutError("time is up")


def _first_topological(below: list[int], above: list[int]) -> Ints:
    r = len(above)
    waiting = np.array([bits.bit_count() for bits in above])
    if 2 * waiting.sum() == r * (r - 1):  # one order is left
        return np.argsort(waiting)
    closed = np.array([_row(bits, r) for bits in below], dtype=np.int64)
    order = np.empty(r, dtype=np.int64)
    for k in range(r):
        v = waiting.argmin()
        order[k] = v
        waiting -= closed[v]
        waiting[v] = r * r
    return order


def _eliminate(d: Floats, late: Late) -> tuple[Ints, Floats]:
    """All queries at once."""
    m, r = d.shape[:2]
    every = np.arange(m)
    left = np.maximum(d, 0.0)  # edges to documents that are left
    heaviest, target = left.max(axis=2), left.argmax(axis=2)
    order = np.empty((m, r), dtype=np.int64)
    threshold = np.zeros(m)
    for k in range(r - 1, -1, -1):
        _check_time(late)
        v = heaviest.argmin(axis=1)
        order[:, k] = v
        np.maximum(threshold, heaviest[every, v], out=threshold)
        heaviest[every, v] = np.inf
        left[every, :, v] = 0.0
        q, w = np.nonzero((target == v[:, None]) & (heaviest < np.inf))
        rows = left[q, w]
        heaviest[q, w], target[q, w] = rows.max(axis=1), rows.argmax(axis=1)
    return order, threshold


def _close(kept: NDArray[np.bool_], order: Ints, late: Late) -> tuple[list[int], list[int]]:
    """Closure as Python integers of r bits: who is below each document, and who above."""
    r = len(order)
    edges = _integers(kept[order[:, None], order])
    reach = [0] * r
    for k in range(r - 1, -1, -1):
        _check_time(late)
        rest = edges[k]
        while rest:  # nearest first: most of the others are implied by then
            lowest = rest & -rest
            reach[k] |= lowest | reach[lowest.bit_length() - 1]
            rest &= ~reach[k]
    closed = np.zeros((r, r), dtype=bool)
    closed[order[:, None], order] = [_row(bits, r) for bits in reach]
    return _integers(closed), _integers(closed.T)


def _integers(rows: NDArray[np.bool_]) -> list[int]:
    packed = np.packbits(rows, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def _row(bits: int, r: int) -> NDArray[np.uint8]:
    packed = np.frombuffer(bits.to_bytes((r + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=r, bitorder="little")


def _insert(
    i: list[int], j: list[int], below: list[int], above: list[int], skip: bool, late: Late
) -> None:
    """Insert edges that close no cycle; end at the first that does, unless they are skipped."""
    # cost: a bit test an edge, and a union for every pair that an edge decides
    for seen, (first, second) in enumerate(zip(i, j, strict=True)):
        if seen & 4095 == 0:
            _check_time(late)
        if below[first] >> second & 1:
            continue
        if below[second] >> first & 1:
            if skip:
                continue
            return
        new_below, new_above = below[second] | 1 << second, above[first] | 1 << first
        # the others know already
        higher, lower = new_above & ~above[second], new_below & ~below[first]
        for v in _bits(higher):
            below[v] |= new_below
        for v in _bits(lower):
            above[v] |= new_above


def _bits(mask: int) -> list[int]:
    places = []
    while mask:
        lowest = mask & -mask
        places.append(lowest.bit_length() - 1)
        mask ^= lowest
    return places


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


def triangle_bound(d: Floats, late: Late = None) -> float:
    r = len(d)
    left = np.maximum(d, 0.0)
    bound = 0.0
    for i in range(r):
        if late is not None and late():
            break
        for j in range(i + 1, r - 1):
            first, second = (i, j) if left[i, j] > 0.0 else (j, i)
            edge = left[first, second]
            if edge <= 0.0:
                continue
            onward, back = left[second, j + 1 :], left[j + 1 :, first]
            spare = np.minimum(onward, back)
            used = np.cumsum(np.r_[0.0, spare])
            take = np.minimum(np.maximum(edge - used[:-1], 0.0), spare)
            onward -= take
            back -= take
            bound = np.cumsum(np.r_[bound, take])[-1]
            left[first, second] = max(edge - used[-1], 0.0)
    return float(bound)


# ------------------------------------------------------------------ subset dynamic programming


def subset_dp(
    cost: Floats, own: Floats, scale: Floats, limit: float, of_rest: bool
) -> tuple[Ints, float]:
    r = len(cost)
    turn = (1 << r) - 1 if of_rest else 0
    low_bits = r // 2
    mask = (1 << low_bits) - 1
    low, high = _sums(cost, own, 0, low_bits), _sums(cost, np.zeros(r), low_bits, r - low_bits)
    best = np.full(1 << r, np.inf)
    best[0] = 0.0
    size = np.zeros(1 << r, dtype=np.uint8)
    for bit in range(r):
        size[1 << bit : 2 << bit] = size[: 1 << bit] + 1
    by_size = np.argsort(size, kind="stable")
    ends = np.cumsum(np.bincount(size, minlength=r + 1))
    start = 0
    for k in range(r):
        layer = by_size[start : ends[k]]
        start = ends[k]
        layer = layer[(best[layer] <= limit) & (best[layer] < np.inf)]
        for v in range(r):
            sets = layer[(layer >> v) & 1 == 0]
            summed = sets ^ turn
            value = best[sets] + scale[k] * (low[summed & mask, v] + high[summed >> low_bits, v])
            sets = sets | (1 << v)
            best[sets] = np.minimum(best[sets], value)
    s = (1 << r) - 1
    if best[s] == np.inf:
        raise ValueError("no order costs at most limit")
    value = float(best[s])
    order = np.empty(r, dtype=np.int64)
    for k in range(r - 1, -1, -1):
        for v in range(r - 1, -1, -1):
            rest = s ^ (1 << v)
            summed = rest ^ turn
            added = scale[k] * (low[summed & mask, v] + high[summed >> low_bits, v])
            if rest < s and best[rest] + added == best[s]:
                order[k], s = v, rest
                break
    return order, value


def _sums(cost: Floats, own: Floats, first: int, n_bits: int) -> Floats:
    table = np.empty((1 << n_bits, len(cost)))
    table[0] = own
    for bit in range(n_bits):
        np.add(table[: 1 << bit], cost[:, first + bit], out=table[1 << bit : 2 << bit])
    return table


# ------------------------------------------------------------------ insertion local search


def preference_search(
    d: Floats, start: Ints, kicks: Floats, tolerance: float, max_sweeps: int, late: Late = None
) -> tuple[Ints, int]:
    r = len(d)
    order = np.array(start, dtype=np.int64)
    _, sweeps = _preference_descent(d, order, tolerance, max_sweeps, late)
    kept = order.copy()
    for kick in kicks:
        if late is not None and late():
            break
        change = 0.0
        for a, b in (kick.reshape(-1, 2) * r).astype(np.int64):
            change += _preference_move(d, order, a, b)
        lowered, more = _preference_descent(d, order, tolerance, max_sweeps, late)
        sweeps += more
        if change + lowered <= tolerance:
            kept[:] = order
        else:
            order[:] = kept
    return kept, sweeps


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


def _preference_descent(
    d: Floats, order: Ints, tolerance: float, max_sweeps: int, late: Late
) -> tuple[float, int]:
    """The compiled sweep looks at one document at a time; here all at once, after every move."""
    r = len(d)
    place = np.arange(r)
    earlier, later = place < place[:, None], place > place[:, None]
    total, seen, still = 0.0, 0, 0
    while seen < max_sweeps * r and still < r and not (late is not None and late()):
        moved = d[order[:, None], order]  # by place
        up = np.cumsum(np.where(earlier, -moved, 0.0)[:, ::-1], axis=1)
        down = np.cumsum(np.where(later, moved, 0.0), axis=1)
        least_up, least_down = up.min(axis=1), down.min(axis=1)
        goal = np.where(
            least_down < np.minimum(least_up, 0.0), down.argmin(axis=1), r - 1 - up.argmin(axis=1)
        )
        least = np.minimum(np.minimum(least_up, least_down), 0.0)
        found = _next_move(order, least < -tolerance, seen, min(r - still, max_sweeps * r - seen))
        if found is None:
            seen += min(r - still, max_sweeps * r - seen)
            break
        p, looked = found
        seen += looked
        still = 0
        total += least[p]
        _preference_move(d, order, p, goal[p])
    return float(total), -(-seen // r)


def _next_move(
    order: Ints, improves: NDArray[np.bool_], seen: int, n: int
) -> tuple[int, int] | None:
    """Place of the next document, of the n to look at, that moves; and how many that takes."""
    r = len(order)
    places = np.empty(r, dtype=np.int64)
    places[order] = np.arange(r)
    sequence = places[(seen + np.arange(n)) % r]
    ahead = np.flatnonzero(improves[sequence])
    return (int(sequence[ahead[0]]), int(ahead[0]) + 1) if len(ahead) else None


def average_precision_search(
    u: Floats, start: Ints, kicks: Floats, tolerance: float, max_sweeps: int, late: Late = None
) -> tuple[Ints, int]:
    r = len(u)
    order = np.array(start, dtype=np.int64)
    step = 1.0 / np.arange(1, r + 1) - 1.0 / np.arange(2, r + 2)
    prefix = _prefixes(u, order)
    _, sweeps = _average_precision_descent(u, order, prefix, step, tolerance, max_sweeps, late)
    kept, kept_prefix = order.copy(), prefix.copy()
    for kick in kicks:
        if late is not None and late():
            break
        gain = 0.0
        for a, b in (kick.reshape(-1, 2) * r).astype(np.int64):
            gain += _average_precision_move(u, order, prefix, step, a, b)
        raised, more = _average_precision_descent(
            u, order, prefix, step, tolerance, max_sweeps, late
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


def _average_precision_move(
    u: Floats, order: Ints, prefix: Floats, step: Floats, a: int, b: int
) -> float:
    v = order[a]
    if a == b:
        return 0.0
    if b < a:
        passed = order[b:a][::-1].copy()
        shared = u[v, passed]
        own = np.cumsum(np.r_[prefix[v], -shared])
        gain = np.cumsum((own[1:] - prefix[passed]) * step[b:a][::-1])[-1]
        prefix[passed] += shared
        order[b + 1 : a + 1] = passed[::-1]
    else:
        passed = order[a + 1 : b + 1].copy()
        shared = u[v, passed]
        own = np.cumsum(np.r_[prefix[v], shared])
        prefix[passed] -= shared
        gain = np.cumsum((prefix[passed] - own[:-1]) * step[a:b])[-1]
        order[a:b] = passed
    order[b] = v
    prefix[v] = own[-1]
    return float(gain)


def _average_precision_descent(
    u: Floats,
    order: Ints,
    prefix: Floats,
    step: Floats,
    tolerance: float,
    max_sweeps: int,
    late: Late,
) -> tuple[float, int]:
    r = len(u)
    place = np.arange(r)
    earlier, later, same = place < place[:, None], place > place[:, None], np.eye(r, dtype=bool)
    # the step between place b and b + 1 belongs to column b going up, to column b + 1 going down
    step_up, step_down = step[None, :], np.r_[0.0, step[: r - 1]][None, :]
    total, seen, still = 0.0, 0, 0
    while seen < max_sweeps * r and still < r and not (late is not None and late()):
        shared = u[order[:, None], order]
        mine = np.where(same, prefix[order][:, None], 0.0)
        theirs = prefix[order][None, :]
        own = np.cumsum((np.where(earlier, -shared, 0.0) + mine)[:, ::-1], axis=1)[:, ::-1]
        up = np.cumsum(np.where(earlier, (own - theirs) * step_up, 0.0)[:, ::-1], axis=1)
        own = np.cumsum(np.where(later, shared, 0.0) + mine, axis=1)
        own = np.c_[np.zeros(r), own[:, :-1]]
        down = np.cumsum(np.where(later, ((theirs - shared) - own) * step_down, 0.0), axis=1)
        most_up, most_down = up.max(axis=1), down.max(axis=1)
        goal = np.where(
            most_down > np.maximum(most_up, 0.0), down.argmax(axis=1), r - 1 - up.argmax(axis=1)
        )
        most = np.maximum(np.maximum(most_up, most_down), 0.0)
        found = _next_move(order, most > tolerance, seen, min(r - still, max_sweeps * r - seen))
        if found is None:
            seen += min(r - still, max_sweeps * r - seen)
            break
        p, looked = found
        seen += looked
        still = 0
        total += _average_precision_move(u, order, prefix, step, p, goal[p])
    return float(total), -(-seen // r)
