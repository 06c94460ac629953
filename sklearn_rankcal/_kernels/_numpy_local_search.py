"""The local searches in NumPy."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TimeIsUp = Callable[[], bool] | None

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
