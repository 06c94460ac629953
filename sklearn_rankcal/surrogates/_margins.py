"""Convex functions of a margin: the score of the better document minus the score of the worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_rankcal.utils._numbers import Floats


@dataclass(frozen=True)
class Margin:
    """A function phi of the margin d, with its first two derivatives: phi(d) = f(end - d).

    `code` identifies phi in the compiled kernels. f is increasing and convex, and ``f(x)`` returns
    its value and two derivatives. A hinge is 0 for margins of at least `end`. At the corner of
    "hinge", the slope of phi is the right-hand slope, and the curvature is 0.
    """

    name: str
    code: int
    end: float
    f: Callable[[Floats], tuple[Floats, Floats, Floats]]

    def at(self, d: Floats) -> tuple[Floats, Floats, Floats]:
        """Return phi(d), phi'(d) and phi''(d)."""
        value, slope, curvature = self.f(self.end - d)
        return value, -slope, curvature


_LARGEST_EXPONENT = 400.0


def capped_exp(x: Floats) -> Floats:
    """Compute e^x up to x = 400, and e^400 above: the slope of `straightened_exp`."""
    return np.exp(np.minimum(x, _LARGEST_EXPONENT))


def straightened_exp(x: Floats) -> Floats:
    """Compute e^x up to x = 400 and its tangent above, which keeps sums and products finite."""
    return capped_exp(x) * (1.0 + np.maximum(x - _LARGEST_EXPONENT, 0.0))


def _logistic(x: Floats) -> tuple[Floats, Floats, Floats]:
    small = np.exp(-np.abs(x))  # neither overflows nor cancels
    total = 1.0 + small
    slope: Floats = np.where(x > 0, 1.0, small) / total
    return np.maximum(x, 0.0) + np.log1p(small), slope, small / (total * total)


def _exponential(x: Floats) -> tuple[Floats, Floats, Floats]:
    slope = capped_exp(x)
    return straightened_exp(x), slope, slope


def _hinge(x: Floats) -> tuple[Floats, Floats, Floats]:
    return np.maximum(x, 0.0), (x > 0).astype(np.float64), np.zeros(x.shape)


def _squared_hinge(x: Floats) -> tuple[Floats, Floats, Floats]:
    short = np.maximum(x, 0.0)
    return np.square(short), 2.0 * short, np.where(x > 0, 2.0, 0.0)


def _smooth_hinge(x: Floats) -> tuple[Floats, Floats, Floats]:
    short = np.maximum(x, 0.0)
    slope = np.minimum(short, 1.0)
    return slope * (short - slope / 2), slope, ((x > 0) & (x < 1)).astype(np.float64)


#: "logistic" is log(1 + e^-d). "exponential" is e^-d, continued as a straight line below d = -400.
#: "hinge" is max(0, 1 - d), and "squared_hinge" is its square. "smooth_hinge" is x^2 / 2 for
#: x = max(0, 1 - d) <= 1, and x - 1/2 above.
MARGINS = {
    margin.name: margin
    for margin in (
        Margin("logistic", 0, 0.0, _logistic),
        Margin("exponential", 1, 0.0, _exponential),
        Margin("hinge", 2, 1.0, _hinge),
        Margin("squared_hinge", 3, 1.0, _squared_hinge),
        Margin("smooth_hinge", 4, 1.0, _smooth_hinge),
    )
}
