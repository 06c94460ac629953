"""Functions that set `random_state` and `verbose` in an estimator and in those that it contains."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_random_state


def set_random_states(estimator: Any, random_state: Any) -> Any:
    """Set every ``random_state`` of an estimator and of the estimators inside it, and return it.

    Each receives a seed that is drawn from `random_state`. If `random_state` is None, nothing is
    changed.
    """
    if random_state is not None:
        seeds = check_random_state(random_state)
        for name in sorted(estimator.get_params()):
            if name.split("__")[-1] == "random_state":
                estimator.set_params(**{name: seeds.randint(2**31 - 1)})
    return estimator


def set_verbose(estimator: Any, verbose: int) -> None:
    """Set every ``verbose`` that is 0 or False, of an estimator and of the estimators inside it.

    An estimator inside another that reports its fits, such as a member of a stack or the regressor
    of a search, receives 1 less, because these fits are many. A pipeline, whose ``verbose`` is True
    or False, is not counted. Nothing is set to 0 or less.
    """
    values = {
        name.removesuffix("verbose"): value
        for name, value in estimator.get_params().items()
        if name.split("__")[-1] == "verbose" and isinstance(value, int)
    }
    for prefix, value in values.items():
        around = [
            outer
            for outer, of_outer in values.items()
            if prefix != outer and prefix.startswith(outer) and not isinstance(of_outer, bool)
        ]
        if value == 0 and verbose > len(around):
            estimator.set_params(**{f"{prefix}verbose": verbose - len(around)})
