"""Parameters of the same name at every depth of an estimator: its seeds, and how much it prints."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_random_state


def set_random_states(estimator: Any, random_state: Any) -> Any:
    """Set every ``random_state`` of an estimator from one; None leaves them as they are.

    Returns the estimator.
    """
    if random_state is not None:
        seeds = check_random_state(random_state)
        for name in sorted(estimator.get_params()):
            if name.split("__")[-1] == "random_state":
                estimator.set_params(**{name: seeds.randint(2**31 - 1)})
    return estimator


def set_verbose(estimator: Any, verbose: int) -> None:
    """Set every ``verbose`` of an estimator that is 0 or False; do nothing if `verbose` is 0."""
    if verbose > 0:
        for name, value in estimator.get_params().items():
            if name.split("__")[-1] == "verbose" and isinstance(value, int) and value == 0:
                estimator.set_params(**{name: verbose})
