"""Checks of the parameters of models.

scikit-learn's constraints are more permissive: its ``Interval`` accepts True as a count, and its
``HasMethods`` accepts a class instead of an object.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from sklearn_rankcal.utils._names import did_you_mean

#: No table has more rows. Larger numbers overflow NumPy's 64-bit integers.
MOST = 2**63 - 1


def check_count(
    value: Any, name: str, or_none: bool = False, *, least: int = 1, most: int = MOST
) -> None:
    """Raise an error unless the value is a whole number in a range, or None if allowed."""
    if or_none and value is None:
        return
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= int(value) <= most:
        bounded = most < MOST or (whole and int(value) > most)
        known = f"from {least} to {most}" if bounded else f">= {least}"
        none = ", or None" if or_none else ""
        raise ValueError(f"{name} must be a whole number {known}{none}; got {value!r}.")


def check_number(value: Any, name: str, within: str = "(0, inf)", also: str = "") -> None:
    """Raise an error unless the value is a finite number in an interval such as "[0, 1)".

    `also` describes other accepted values in the message, for example ``"'auto' or"``.
    """
    low, high = map(float, within[1:-1].split(","))
    real = isinstance(value, Real) and not isinstance(value, bool)
    number: Any = value.item() if isinstance(value, np.generic) else value  # float32 overflows
    if (
        not real
        or not abs(number) <= sys.float_info.max  # NaN, infinity, or an integer beyond float64
        or not low <= number <= high
        or (number == low and within[0] == "(")
        or (number == high and within[-1] == ")")
    ):
        known = _INTERVALS.get(within, f"a number in {within}")
        raise ValueError(f"{name} must be {f'{also} {known}'.strip()}; got {value!r}.")


_INTERVALS = {
    "(0, inf)": "a finite number > 0",
    "[0, inf)": "a finite number >= 0",
    "(-inf, inf)": "a finite number",
}


def check_choice(value: Any, name: str, known: Iterable[str]) -> None:
    """Raise an error unless the value is one of the known names."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        hint = did_you_mean(value, names) if isinstance(value, str) else ""
        raise ValueError(f"Unknown {name} {value!r}.{hint} Known: {', '.join(names)}.")


def check_flag(value: Any, name: str) -> None:
    """Raise an error unless the value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_nested(estimator: Any, parameters: dict[str, Any], regressor: str) -> None:
    """Raise an error for a parameter of an object that `fit` makes from a name or None.

    `regressor` is code for a regressor that the user can pass instead.
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
