"""Everything in this package that depends on private parts of scikit-learn, or lacks types there.

`_fit_context` and `available_if` are scikit-learn's decorators with a type: without one, type
checkers take every method that they decorate for `Any`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sklearn.base import _fit_context as _untyped_fit_context
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if as _untyped_available_if

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "_fit_context",
    "_safe_indexing",
    "available_if",
    "bins_once",
    "cut_iterations",
    "shorten_requests",
    "tags_of",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_HISTOGRAMS = (HistGradientBoostingRegressor, HistGradientBoostingClassifier)


def _fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_Function], _Function]:
    decorate: Callable[[_Function], _Function] = _untyped_fit_context(
        prefer_skip_nested_validation=prefer_skip_nested_validation
    )
    return decorate


def available_if(check: Callable[[Any], bool]) -> Callable[[_Function], _Function]:
    decorate: Callable[[_Function], _Function] = _untyped_available_if(check)
    return decorate


def tags_of(estimator: Any) -> Any:
    """Return the tags of an estimator inside another one, or raise TypeError if it has none."""
    # scikit-learn 1.6 has tags for estimators of older libraries, which have parameters at least
    if not (hasattr(estimator, "__sklearn_tags__") or hasattr(estimator, "get_params")):
        name = type(estimator).__name__
        raise TypeError(
            f"{name} is not an estimator of scikit-learn: it has no tags and no parameters. Derive "
            f"its class from the base classes, class {name}(RegressorMixin, BaseEstimator), which "
            "are in sklearn.base."
        )
    return get_tags(estimator)


def cut_iterations(regressor: Any, n_iter: int) -> bool:
    """Remove all but the first iterations of histogram boosting; False for other regressors."""
    if not isinstance(regressor, _HISTOGRAMS):
        return False
    regressor._predictors = regressor._predictors[:n_iter]
    return True


@contextmanager
def bins_once(regressor: Any) -> Iterator[None]:
    """Let histogram boosting keep the bins of its training data for further fits to the same data.

    Each step of a warm start finds the same bins again, which takes as long as dozens of trees.
    """
    if not isinstance(regressor, _HISTOGRAMS):
        yield
        return
    bin_data = regressor._bin_data
    kept: list[Any] = []

    def bin_data_once(*arguments: Any, **options: Any) -> Any:
        if not kept:
            binned = bin_data(*arguments, **options)
            kept.extend([regressor._bin_mapper, binned])
        regressor._bin_mapper = kept[0]
        return kept[1]

    regressor._bin_data = bin_data_once
    try:
        yield
    finally:
        del regressor._bin_data


class _Request:
    """Choose what a meta-estimator passes on by metadata routing: True, False, None or a name."""

    def __init__(self, long: Any) -> None:
        self.long = long

    def __get__(self, instance: Any, owner: Any) -> Any:
        method = self.long.__get__(instance, owner)
        method.__doc__ = self.__doc__
        return method


def shorten_requests(estimator: type) -> None:
    """Replace the docstrings of scikit-learn's ``set_*_request``, of 35 lines and more each."""
    for name, method in list(vars(estimator).items()):
        if name.startswith("set_") and name.endswith("_request"):
            setattr(estimator, name, _Request(method))
