"""Checks of the parameters of models.

scikit-learn's constraints are more generous: its ``Interval`` accepts True as a count, and its
``HasMethods`` accepts a class where an object is needed.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np


def check_count(value: Any, name: str, or_none: bool = False) -> None:
    """Raise an error unless the value is a whole number >= 1, or None if that is allowed."""
    if or_none and value is None:
        return
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < 1:
        known = "a whole number >= 1, or None" if or_none else "a whole number >= 1"
        raise ValueError(f"{name} must be {known}; got {value!r}.")


def check_flag(value: Any, name: str) -> None:
    """Raise an error unless the value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_methods(value: Any, name: str, kind: str, *methods: str) -> None:
    """Raise an error unless the value is None or an object (not a class) with these methods."""
    lacking = [method for method in methods if not hasattr(value, method)]
    if value is not None and (lacking or isinstance(value, type)):
        raise TypeError(
            f"{name} must be None or {kind}, an object with the methods {' and '.join(methods)}; "
            f"got {value!r}."
        )
