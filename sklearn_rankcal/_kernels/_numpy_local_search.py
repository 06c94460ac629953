"""The local searches in NumPy.

The docstrings of `_compiled_local_search.pyx` and `_compiled_average_precision.pyx` describe each
function.

The descents of `average_precision_search` compute the best moves of all documents at once, and
again after every move, which is O(r^2) a move. Those of `preference_search` look at one document
after another, as the compiled ones do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TimeIsUp = Callable[[], bool] | None

#: As in `_compiled_local_search.pyx`.
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
    begun = improved = 0  # steps: when the population began, and when it last changed
    for step in range(first, n_perturbations):
        if step - improved > PATIENCE:
            population, costs = [], []
            begun = improved = step
        # 1. Make an order. `source` is the order of the population that it replaces, if any.
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
        # 2. Descend. Of a start and of a new best order, make a local optimum.
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
        # 3. Let the order into the population.
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
    """`_descent` of the compiled kernel, with what its calls share."""

    def __init__(self, d: Floats, tolerance: float, max_looks: int, time_is_up: TimeIsUp) -> None:
        self.d, self.tolerance, self.max_looks = d, tolerance, max_looks
        self.time_is_up = time_is_up
        self.looks, self.stopped = 0, False

    def run(self, order: Ints, change: float) -> float:
        """Descend from an order, in place; return `change` plus what the moves add to it."""
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
            # The clock takes as long as looking at a few documents.
            self.stopped = looks % 64 == 0 and self.time_is_up is not None and self.time_is_up()
        self.looks += looks
        return change + lowered


def _next_move(
    order: Ints, improves: NDArray[np.bool_], seen: int, n: int
) -> tuple[int, int] | None:
    """Place of the first of the next n documents that improves, and how many are looked at.

    Documents are looked at by number, in turn, whatever their places are.
    """
    r = len(order)
    places = np.empty(r, dtype=np.int64)
    places[order] = np.arange(r)
    sequence = places[(seen + np.arange(n)) % r]
    ahead = np.flatnonzero(improves[sequence])
    return (int(sequence[ahead[0]]), int(ahead[0]) + 1) if len(ahead) else None


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
    time_is_up: TimeIsUp,
) -> tuple[float, int]:
    r = len(u)
    place = np.arange(r)
    earlier, later, same = place < place[:, None], place > place[:, None], np.eye(r, dtype=bool)
    # The step between places b and b + 1 belongs to column b of moves up, and b + 1 of moves down.
    step_up, step_down = step[None, :], np.r_[0.0, step[: r - 1]][None, :]
    total, seen, still = 0.0, 0, 0
    while seen < max_sweeps * r and still < r and not (time_is_up is not None and time_is_up()):
        # own: the prefix of the moving document (rows) just before or after it passes a place
        # (columns); up and down: the gains of all moves, as in the preference search.
        shared = u[order[:, None], order]
        mine = np.where(same, prefix[order][:, None], 0.0)
        theirs = prefix[order][None, :]
        own = np.cumsum((np.where(earlier, -shared, 0.0) + mine)[:, ::-1], axis=1)[:, ::-1]
        up = np.cumsum(np.where(earlier, (own - theirs) * step_up, 0.0)[:, ::-1], axis=1)
        own = np.cumsum(np.where(later, shared, 0.0) + mine, axis=1)
        own = np.c_[np.zeros(r), own[:, :-1]]
        down = np.cumsum(np.where(later, ((theirs - shared) - own) * step_down, 0.0), axis=1)
        most_up, most_down = up.max(axis=1), down.max(axis=1)
        best_place = np.where(
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
        total += _average_precision_move(u, order, prefix, step, p, best_place[p])
    return float(total), -(-seen // r)
