"""Convex functions of a margin, by how much the score of the better document is larger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from sklearn_rankcal.utils._names import did_you_mean
from sklearn_rankcal.utils._typing import Floats


@dataclass(frozen=True)
class Margin:
    """A function phi of the margin d, with its first two derivatives.

    `code` is the number by which the compiled kernels know it. Where phi has a corner, so that it
    is not `differentiable`, the slope is that to the right of it, and the curvature is 0.
    """

    name: str
    code: int
    value: Callable[[Floats], Any]
    slope: Callable[[Floats], Any]
    curvature: Callable[[Floats], Any]
    differentiable: bool = True


_LARGEST_EXPONENT = 400.0


def capped_exp(x: Floats) -> Floats:
    """Compute e^x up to x = 400, and e^400 above: the slope of `straightened_exp`."""
    return np.exp(np.minimum(x, _LARGEST_EXPONENT))


def straightened_exp(x: Floats) -> Floats:
    """Compute e^x up to x = 400, and its tangent above, so that sums and products stay finite."""
    return capped_exp(x) * (1.0 + np.maximum(x - _LARGEST_EXPONENT, 0.0))


def _falling(d: Floats) -> Floats:
    """1 - d where this is positive, and 0 elsewhere."""
    return np.maximum(1.0 - d, 0.0)


def _smooth_hinge(d: Floats) -> Floats:
    short = _falling(d)
    return np.where(short <= 1.0, short * short / 2, short - 0.5)


#: "logistic" is log(1 + e^-d), "exponential" e^-d (a straight line below d = -400), "hinge"
#: max(0, 1 - d), "squared_hinge" its square, and "smooth_hinge" is x^2 / 2 for
#: x = max(0, 1 - d) <= 1, and x - 1/2 above.
MARGINS = {
    margin.name: margin
    for margin in (
        Margin(
            "logistic",
            0,
            lambda d: np.logaddexp(0.0, -d),
            lambda d: -expit(-d),
            lambda d: expit(d) * expit(-d),
        ),
        Margin(
            "exponential",
            1,
            lambda d: straightened_exp(-d),
            lambda d: -capped_exp(-d),
            lambda d: capped_exp(-d),
        ),
        Margin(
            "hinge",
            2,
            _falling,
            lambda d: -(d < 1).astype(np.float64),
            lambda d: np.zeros(d.shape),
            differentiable=False,
        ),
        Margin(
            "squared_hinge",
            3,
            lambda d: np.square(_falling(d)),
            lambda d: -2 * _falling(d),
            lambda d: 2.0 * (d < 1),
        ),
        Margin(
            "smooth_hinge",
            4,
            _smooth_hinge,
            lambda d: -np.minimum(_falling(d), 1.0),
            lambda d: ((d > 0) & (d < 1)).astype(np.float64),
        ),
    )
}


def find_margin(name: Any) -> Margin:
    """Return the margin function of a name, or raise an error."""
    if not isinstance(name, str) or name not in MARGINS:
        hint = did_you_mean(name, MARGINS) if isinstance(name, str) else ""
        raise ValueError(
            f"margin must be one of {', '.join(map(repr, MARGINS))}; got {name!r}.{hint}"
        )
    return MARGINS[name]
