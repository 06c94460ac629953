"""Convex functions of a margin, by how much the score of the better document is larger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from sklearn_rankcal.utils._typing import Floats


@dataclass(frozen=True)
class Margin:
    """A function phi of the margin d, with its first two derivatives: phi(d) = f(end - d).

    `code` is the number by which the compiled kernels know phi. f increases and is convex, and `f`,
    `f_slope` and `f_curvature` are f and its derivatives. A hinge is 0 from the margin `end` on. At
    the corner of "hinge", the slope of phi is that to the right of it, and the curvature is 0.
    """

    name: str
    code: int
    end: float
    f: Callable[[Floats], Any]
    f_slope: Callable[[Floats], Any]
    f_curvature: Callable[[Floats], Any]

    def value(self, d: Floats) -> Any:
        return self.f(self.end - d)

    def slope(self, d: Floats) -> Any:
        return -self.f_slope(self.end - d)

    def curvature(self, d: Floats) -> Any:
        return self.f_curvature(self.end - d)


_LARGEST_EXPONENT = 400.0


def capped_exp(x: Floats) -> Floats:
    """Compute e^x up to x = 400, and e^400 above: the slope of `straightened_exp`."""
    return np.exp(np.minimum(x, _LARGEST_EXPONENT))


def straightened_exp(x: Floats) -> Floats:
    """Compute e^x up to x = 400, and its tangent above, so that sums and products stay finite."""
    return capped_exp(x) * (1.0 + np.maximum(x - _LARGEST_EXPONENT, 0.0))


def _positive_part(x: Floats) -> Floats:
    return np.maximum(x, 0.0)


def _smooth_hinge(x: Floats) -> Floats:
    x = _positive_part(x)
    return np.where(x <= 1.0, x * x / 2, x - 0.5)


#: "logistic" is log(1 + e^-d), "exponential" e^-d (a straight line below d = -400), "hinge"
#: max(0, 1 - d), "squared_hinge" its square, and "smooth_hinge" is x^2 / 2 for
#: x = max(0, 1 - d) <= 1, and x - 1/2 above.
MARGINS = {
    margin.name: margin
    for margin in (
        Margin(
            "logistic",
            0,
            0.0,
            lambda x: np.logaddexp(0.0, x),
            expit,
            lambda x: expit(x) * expit(-x),
        ),
        Margin("exponential", 1, 0.0, straightened_exp, capped_exp, capped_exp),
        Margin(
            "hinge",
            2,
            1.0,
            _positive_part,
            lambda x: (x > 0).astype(np.float64),
            lambda x: np.zeros(x.shape),
        ),
        Margin(
            "squared_hinge",
            3,
            1.0,
            lambda x: np.square(_positive_part(x)),
            lambda x: 2 * _positive_part(x),
            lambda x: 2.0 * (x > 0),
        ),
        Margin(
            "smooth_hinge",
            4,
            1.0,
            _smooth_hinge,
            lambda x: np.clip(x, 0.0, 1.0),
            lambda x: ((x > 0) & (x < 1)).astype(np.float64),
        ),
    )
}
