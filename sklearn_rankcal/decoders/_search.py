"""Options, time limit and tolerance of both local searches.

A descent moves one document at a time to a better place until no such move is left. The search then
perturbs the order at random and descends again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from sklearn_rankcal._kernels import KERNELS, WANTED
from sklearn_rankcal.exceptions import UncompiledKernelsWarning
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._parameters import check_choice, check_count
from sklearn_rankcal.utils._typing import Floats

#: Limit for descents, which could cycle because of rounding errors.
MAX_SWEEPS = 1000
#: Largest number of perturbations. They take 38 MB.
MAX_PERTURBATIONS = 100_000
#: Warn if all calls of a process together are expected to spend more seconds in NumPy's kernels.
WORTH_A_WARNING = 1.0
_expected = 0.0


class SearchOptions(NamedTuple):
    """Options of iterated local search, after validation."""

    n_perturbations: int
    seed: int
    time_limit: float | None = None


def check_options(
    method: str,
    methods: Iterable[str],
    n_perturbations: int,
    time_limit: float | None,
    random_state: int | np.random.RandomState | None,
) -> SearchOptions:
    """Validate the options of a decoding function and resolve the random state to a seed."""
    check_choice(method, "method", methods)
    check_count(n_perturbations, "n_perturbations", least=0)
    if n_perturbations > MAX_PERTURBATIONS:
        raise ValueError(
            f"n_perturbations must be at most {MAX_PERTURBATIONS:,}; got {n_perturbations!r}. "
            "For a longer search, decode with several values of random_state and keep the best "
            "result."
        )
    timed = isinstance(time_limit, Real) and not isinstance(time_limit, bool)
    if time_limit is not None and not (timed and time_limit > 0):  # infinity is no limit
        raise ValueError(f"time_limit must be a positive number of seconds; got {time_limit!r}.")
    if isinstance(random_state, Integral) and 0 <= random_state < 2**32:
        seed = int(random_state)  # creating a RandomState takes longer than decoding a small query
    else:
        seed = int(check_random_state(random_state).randint(2**31 - 1))
    return SearchOptions(
        int(n_perturbations), seed, None if time_limit is None else float(time_limit)
    )


def rounding(matrix: Floats) -> float:
    """Return a bound on the rounding error of sums along rows. Smaller gains do not count."""
    return float(np.finfo(np.float64).eps * np.abs(matrix).sum())


def deadline_check(deadline: float | None) -> Callable[[], bool] | None:
    """Return a function that says whether `deadline` has passed, or None without a deadline."""
    return None if deadline is None else lambda: time.monotonic() > deadline


def warn_if_slow(seconds: float) -> None:
    """Warn once per process if the calls announced so far take long with NumPy's kernels.

    Do not warn with compiled kernels, or if SKLEARN_RANKCAL_KERNELS=numpy requests NumPy.
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
