"""Local search for both kinds of matrices: its options, its random perturbations, its time limit.

A descent moves one document at a time to a better place until no such move is left. A perturbation
is a small random disturbance of the order, after which a further descent begins. The search for
average precision, `search`, repeats both. The search for preferences, `search_preferences`, also
combines the orders that it has found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from sklearn_rankcal._kernels import KERNELS, WANTED
from sklearn_rankcal.exceptions import UncompiledKernelsWarning
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._typing import Floats, Ints

#: Smallest and largest number of documents that a perturbation moves, and the largest distance of a
#: move as a fraction of the list. On matrices whose optimum is known, these values found it more
#: often than fewer, longer or shorter moves did.
MOVES = (8, 24)
REACH = 0.2
#: A descent ends by itself, but rounding errors could keep it going. This bounds it.
MAX_SWEEPS = 1000
#: Largest number of perturbations that may be asked for. They take 38 MB.
MAX_PERTURBATIONS = 100_000
#: Up to this number, perturbations are kept for the next query. Larger numbers are drawn again.
MAX_CACHED = 2000
#: Seconds that one descent on r documents takes with NumPy's kernels: for average precision divided
#: by r^2, and for preferences divided by r.
SECONDS_NUMPY, SECONDS_NUMPY_PREFERENCES = 5e-6, 2e-4
#: Warn when all calls of a process together are expected to spend more seconds in NumPy's kernels.
WORTH_A_WARNING = 1.0
_expected = 0.0


class SearchOptions(NamedTuple):
    """Options of iterated local search, after validation."""

    n_perturbations: int
    seed: int
    time_limit: float | None = None


def draw_perturbations(n_perturbations: int, seed: int) -> Floats:
    """Return the perturbations of a search, which are the same for every query of a batch.

    A larger number of them begins with the same ones.
    """
    return (
        _cached_perturbations(n_perturbations, seed)
        if n_perturbations <= MAX_CACHED
        else _draw_perturbations(n_perturbations, seed)
    )


def _draw_perturbations(n_perturbations: int, seed: int) -> Floats:
    """Draw moves (from, to) as fractions of the number of documents.

    Returns an array of shape (n_perturbations, 2 * MOVES[1]), with from and to in turn.
    """
    least, most = MOVES
    # One row of numbers for each perturbation, so that more perturbations begin with the same ones.
    numbers = np.random.default_rng(seed).random((n_perturbations, 2 * most + 1))
    moves = numbers[:, 1:].reshape(n_perturbations, most, 2).copy()
    start, by = moves[..., 0], REACH * (2 * moves[..., 1] - 1)
    # A perturbation of fewer than MOVES[1] moves is filled up with moves that stay where they are.
    idle = np.arange(most) >= (least + numbers[:, :1] * (most - least + 1)).astype(np.int64)
    moves[..., 1] = np.where(idle, start, np.clip(start + by, 0.0, np.nextafter(1.0, 0.0)))
    perturbations = moves.reshape(n_perturbations, 2 * most)
    perturbations.flags.writeable = False
    return perturbations


_cached_perturbations = lru_cache(maxsize=8)(_draw_perturbations)


def check_options(
    method: str,
    methods: Iterable[str],
    n_perturbations: int,
    time_limit: float | None,
    random_state: int | np.random.RandomState | None,
) -> SearchOptions:
    """Validate the options of a decoding function and resolve the random state to a seed."""
    if not isinstance(method, str) or method not in methods:
        raise ValueError(f"Unknown method {method!r}. Known: {', '.join(methods)}.")
    if (
        not isinstance(n_perturbations, Integral)
        or isinstance(n_perturbations, bool)
        or n_perturbations < 0
    ):
        raise ValueError(
            f"n_perturbations must be an integer, 0 or larger; got {n_perturbations!r}."
        )
    if n_perturbations > MAX_PERTURBATIONS:
        raise ValueError(
            f"n_perturbations must be at most {MAX_PERTURBATIONS:,}; got {n_perturbations!r}. "
            "For a longer search, decode with several values of random_state and keep the best "
            "result."
        )
    timed = isinstance(time_limit, Real) and not isinstance(time_limit, bool)
    if time_limit is not None and not (timed and time_limit > 0):
        raise ValueError(f"time_limit must be a positive number of seconds; got {time_limit!r}.")
    if isinstance(random_state, Integral) and 0 <= random_state < 2**32:
        seed = int(random_state)  # creating a RandomState takes longer than decoding a small query
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
    deadline: float | None,
) -> tuple[Ints, int]:
    """Run iterated local search from each start and return the best order and the sweeps made.

    `kernel` is `average_precision_search`, `cost` gives the costs of orders (n_orders, r), and
    `deadline` is a time by `time.monotonic`. The perturbations are shared out among the starts
    (n_starts, r), because several short chains of descents find better orders than one long chain,
    which stays near one local optimum. More perturbations never end with an order that costs more,
    up to rounding.
    """
    time_is_up = deadline_check(deadline)
    warn_if_slow((options.n_perturbations + len(starts)) * SECONDS_NUMPY * len(matrix) ** 2)
    tolerance = rounding(matrix)
    perturbations = draw_perturbations(options.n_perturbations, options.seed)
    found: list[Ints] = []
    sweeps = 0
    # First descend from every start. Then apply the perturbations to the results.
    for start in starts:
        if found and time_is_up is not None and time_is_up():
            break
        order, more = kernel(matrix, start, perturbations[:0], tolerance, MAX_SWEEPS, time_is_up)
        found.append(order)
        sweeps += more
    n_descents = len(found)
    for chain, order in enumerate(found[:n_descents]):
        if time_is_up is not None and time_is_up():
            break
        own = np.ascontiguousarray(perturbations[chain :: len(starts)])
        order, more = kernel(matrix, order, own, tolerance, MAX_SWEEPS, time_is_up)
        found.append(order)
        sweeps += more
    # Perturbations also move among orders of equal cost. Their best order counts only if it is
    # better than the best one of the first descents.
    costs = cost(np.array(found))
    best = costs[:n_descents].argmin()
    if len(found) == n_descents:
        return found[best], sweeps
    perturbed = n_descents + costs[n_descents:].argmin()
    return found[perturbed if costs[perturbed] < costs[best] - tolerance else best], sweeps


def search_preferences(
    kernel: Callable[..., tuple[Ints, int]],
    d: Floats,
    starts: Ints,
    options: SearchOptions,
    time_is_up: Callable[[], bool] | None,
) -> tuple[Ints, int]:
    """Search for the order that contradicts the least weight of differences d, and count sweeps.

    `kernel` is `preference_search` of the kernels; `_compiled_local_search.pyx` describes it.
    """
    warn_if_slow((options.n_perturbations + len(starts)) * SECONDS_NUMPY_PREFERENCES * len(d))
    return kernel(
        d, starts, options.n_perturbations, options.seed, rounding(d), MAX_SWEEPS, time_is_up
    )


def rounding(matrix: Floats) -> float:
    """A bound on the rounding error of all sums along the rows. A smaller gain does not count."""
    return float(np.finfo(np.float64).eps * np.abs(matrix).sum())


def deadline_check(deadline: float | None) -> Callable[[], bool] | None:
    """Return a function that tells whether `deadline` has passed, or None if there is none."""
    return None if deadline is None else lambda: time.monotonic() > deadline


def warn_if_slow(seconds: float) -> None:
    """Warn once in a process, when the calls announced so far would take NumPy's kernels long.

    Does not warn if the compiled kernels run, or if SKLEARN_RANKCAL_KERNELS=numpy asked for NumPy.
    """
    global _expected
    if KERNELS == "compiled" or WANTED == "numpy" or _expected > WORTH_A_WARNING:
        return
    _expected += seconds
    if _expected > WORTH_A_WARNING:
        warn(
            "The decoders run without compiled kernels. Exact and greedy decoding therefore take "
            "5 to 40 times as long, and local search takes 50 to 300 times as long. "
            "Install the package with a C compiler (pip install --no-binary sklearn_rankcal "
            "sklearn_rankcal), or set the environment variable SKLEARN_RANKCAL_KERNELS=numpy to "
            "use the NumPy kernels without this warning.",
            UncompiledKernelsWarning,
        )
