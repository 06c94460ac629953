"""Iterated local search: the options of the public functions, the random kicks, the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sklearn_rankcal.decoders._backend import expect

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: A kick moves this many documents, at least and at most, each by up to a fifth of the list. On
#: matrices of known optimum that found it more often than fewer, longer or shorter moves.
MOVES = (8, 24)
REACH = 0.2
#: A descent ends by itself; rounding alone could keep it going, so it is bounded.
MAX_SWEEPS = 1000
#: Kicks that may be asked for: 38 MB of them.
MOST_PERTURBATIONS = 100_000
#: Beyond this many the kicks are not kept for the next query.
KEPT_KICKS = 2000
#: Seconds that NumPy takes for a local search of r documents, divided by r^2.
SECONDS_NUMPY = 5e-6


class SearchOptions(NamedTuple):
    """What iterated local search needs to know."""

    n_perturbations: int
    seed: int
    time_limit: float | None = None


def draw_kicks(n_perturbations: int, seed: int) -> Floats:
    """The kicks of a search, drawn once for all queries of a batch."""
    return (
        _kept_kicks(n_perturbations, seed)
        if n_perturbations <= KEPT_KICKS
        else _draw_kicks(n_perturbations, seed)
    )


def _draw_kicks(n_perturbations: int, seed: int) -> Floats:
    """(n_perturbations, 2 * most moves) moves from and to, as fractions of r; a move may stay."""
    rng = np.random.default_rng(seed)
    least, most = MOVES
    moves = rng.random((n_perturbations, most, 2))
    start, by = moves[..., 0], REACH * (2 * moves[..., 1] - 1)
    idle = np.arange(most) >= rng.integers(least, most + 1, size=(n_perturbations, 1))
    moves[..., 1] = np.where(idle, start, np.clip(start + by, 0.0, np.nextafter(1.0, 0.0)))
    kicks = moves.reshape(n_perturbations, 2 * most)
    kicks.flags.writeable = False
    return kicks


_kept_kicks = lru_cache(maxsize=8)(_draw_kicks)


def check_options(
    method: str,
    methods: Iterable[str],
    n_perturbations: int,
    time_limit: float | None,
    random_state: int | np.random.RandomState | None,
) -> SearchOptions:
    """The options of a decoding function, checked."""
    if not isinstance(method, str) or method not in methods:
        raise ValueError(f"Unknown method {method!r}. Known: {', '.join(methods)}.")
    if (
        not isinstance(n_perturbations, Integral)
        or isinstance(n_perturbations, bool)
        or n_perturbations < 0
    ):
        raise ValueError(f"n_perturbations must be an integer, 0 or more; got {n_perturbations!r}.")
    if n_perturbations > MOST_PERTURBATIONS:
        raise ValueError(
            f"n_perturbations must be at most {MOST_PERTURBATIONS:,}; got {n_perturbations!r}. "
            "For a longer search, keep the best of several with different random_state."
        )
    timed = isinstance(time_limit, Real) and not isinstance(time_limit, bool)
    if time_limit is not None and not (timed and time_limit > 0):
        raise ValueError(f"time_limit must be a positive number of seconds; got {time_limit!r}.")
    if isinstance(random_state, Integral) and 0 <= random_state < 2**32:
        seed = int(random_state)  # a RandomState takes longer to make than many a query to decode
    else:
        seed = int(check_random_state(random_state).randint(2**31 - 1))
    return SearchOptions(
        int(n_perturbations), seed, None if time_limit is None else float(time_limit)
    )


def search(
    kernel: Callable[..., tuple[Ints, int]],
    matrix: Floats,
    starts: Ints,
    cost: Callable[[Ints], Floats],
    options: SearchOptions,
    ends: float | None,
) -> tuple[Ints, int]:
    """Iterated local search from each of `starts` (n_starts, r), the kicks shared out; the best.

    `cost` gives the costs of orders (n_orders, r). A chain that runs long stays in its valley, so
    a few shorter ones find more than one of their total length. Kicks wander among equal orders:
    what they found counts only if it is better than what the first descents did.
    """
    late = until(ends)
    expect((options.n_perturbations + len(starts)) * SECONDS_NUMPY * len(matrix) ** 2)
    # what the sums along a row can be off by, added up; a smaller gain is no gain
    tolerance = np.finfo(np.float64).eps * float(np.abs(matrix).sum())
    kicks = draw_kicks(options.n_perturbations, options.seed)
    found: list[Ints] = []
    sweeps = 0
    for start in starts:
        if found and late is not None and late():
            break
        order, more = kernel(matrix, start, kicks[:0], tolerance, MAX_SWEEPS, late)
        found.append(order)
        sweeps += more
    n_descents = len(found)
    for chain, order in enumerate(found[:n_descents]):
        if late is not None and late():
            break
        own = np.ascontiguousarray(kicks[chain :: len(starts)])
        order, more = kernel(matrix, order, own, tolerance, MAX_SWEEPS, late)
        found.append(order)
        sweeps += more
    costs = cost(np.array(found))
    best = costs[:n_descents].argmin()
    if len(found) == n_descents:
        return found[best], sweeps
    kicked = n_descents + costs[n_descents:].argmin()
    return found[kicked if costs[kicked] < costs[best] - tolerance else best], sweeps


def until(ends: float | None) -> Callable[[], bool] | None:
    """Whether the clock has passed `ends`: what kernels ask. None without an end."""
    return None if ends is None else lambda: time.monotonic() > ends
