"""`_compiled_local_search.pyx` in NumPy. The docstrings there describe each function.

The compiled functions look at one document at a time. These compute the best moves of all documents
at once, and again after every move, which is O(r^2) a move.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TimeIsUp = Callable[[], bool] | None


def preference_search(
    d: Floats,
    start: Ints,
    perturbations: Floats,
    tolerance: float,
    max_sweeps: int,
    time_is_up: TimeIsUp = None,
) -> tuple[Ints, int]:
    r = len(d)
    order = np.array(start, dtype=np.int64)
    _, sweeps = _preference_descent(d, order, tolerance, max_sweeps, time_is_up)
    kept = order.copy()
    for moves in perturbations:
        if time_is_up is not None and time_is_up():
            break
        change = 0.0
        for a, b in (moves.reshape(-1, 2) * r).astype(np.int64):
            change += _preference_move(d, order, a, b)
        lowered, more = _preference_descent(d, order, tolerance, max_sweeps, time_is_up)
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
    d: Floats, order: Ints, tolerance: float, max_sweeps: int, time_is_up: TimeIsUp
) -> tuple[float, int]:
    """Move documents until none has a better place; return the change and the number of sweeps."""
    # `seen` counts documents looked at, and `still` those since the last move.
    r = len(d)
    place = np.arange(r)
    earlier, later = place < place[:, None], place > place[:, None]
    total, seen, still = 0.0, 0, 0
    while seen < max_sweeps * r and still < r and not (time_is_up is not None and time_is_up()):
        # moved[p, b] is d between the documents at places p and b. up[p, k] is the change of the
        # lost weight when the document at p moves up to place r - 1 - k, down[p, b] down to b.
        moved = d[order[:, None], order]
        up = np.cumsum(np.where(earlier, -moved, 0.0)[:, ::-1], axis=1)
        down = np.cumsum(np.where(later, moved, 0.0), axis=1)
        least_up, least_down = up.min(axis=1), down.min(axis=1)
        best_place = np.where(
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
        _preference_move(d, order, p, best_place[p])
    return float(total), -(-seen // r)


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
