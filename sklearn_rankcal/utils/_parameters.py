"""Checks of the parameters of models.

scikit-learn's constraints are more generous: its ``Interval`` accepts True as a count, and its
``HasMethods`` accepts a class where an object is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from sklearn_rankcal.utils._names import did_you_mean


def check_count(value: Any, name: str, or_none: bool = False) -> None:
    """Raise an error unless the value is a whole number >= 1, or None if that is allowed."""
    if or_none and value is None:
        return
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < 1:
        known = "a whole number >= 1, or None" if or_none else "a whole number >= 1"
        raise ValueError(f"{name} must be {known}; got {value!r}.")


def check_number(value: Any, name: str, positive: bool = True, also: str = "") -> None:
    """Raise an error unless the value is a finite number, positive or at least not negative.

    `also` describes other values that the caller accepts, for the message, such as ``"'auto' or"``.
    """
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not number or not np.isfinite(value) or value < 0 or (positive and value == 0):
        known = f"{also} a finite number {'> 0' if positive else '>= 0'}".strip()
        raise ValueError(f"{name} must be {known}; got {value!r}.")


def check_choice(value: Any, name: str, known: Iterable[str]) -> None:
    """Raise an error unless the value is one of some names."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        hint = did_you_mean(value, names) if isinstance(value, str) else ""
        raise ValueError(f"Unknown {name} {value!r}.{hint} Known: {', '.join(names)}.")


def check_flag(value: Any, name: str) -> None:
    """Raise an error unless the value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_nested(estimator: Any, parameters: dict[str, Any], regressor: str) -> None:
    """Raise an error if a parameter belongs to an object that `fit` makes from a name or None.

    `regressor` is code that makes a regressor to pass instead.
    """
    instead = {
        "regressor": regressor,
        "loss": "sklearn_rankcal.losses.get_loss({!r})",
        "surrogate": "sklearn_rankcal.surrogates.get_surrogate({!r})",
        "decoder": "sklearn_rankcal.decoders.get_decoder({!r}, get_loss(loss).space)",
    }
    given = estimator.get_params(deep=False) | parameters
    for path in parameters:
        name, _, inner = path.partition("__")
        value = given.get(name)
        if inner and name in instead and (value is None or isinstance(value, str)):
            raise ValueError(
                f"{path} cannot be set, because {name}={value!r} chooses the {name} in fit. Pass "
                f"an object, such as {name}={instead[name].format(value)}, whose parameters can be "
                "set and searched."
            )


def check_methods(value: Any, name: str, kind: str, *methods: str) -> None:
    """Raise an error unless the value is None or an object (not a class) with these methods."""
    lacking = [method for method in methods if not hasattr(value, method)]
    if value is not None and (lacking or isinstance(value, type)):
        raise TypeError(
            f"{name} must be None or {kind}, an object with the methods {' and '.join(methods)}; "
            f"got {value!r}."
        )
