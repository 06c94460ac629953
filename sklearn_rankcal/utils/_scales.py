"""Weights and targets of any magnitude come in; numbers that do not under- or overflow come out.

Only ratios of weights count, and rankings do not depend on the unit of the targets. Both are
scaled by a power of two, which is exact: products and squares of what remains are safe.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# scikit-learn's trees do not split a node of variance 2e-16, and its histogram boosting has
# gradients of 32 bits: regressors get targets whose largest is between these
_SMALLEST_TARGET, _LARGEST_TARGET = 2.0**-16, 2.0**64
# beyond these, predictions in the unit of the targets would lose digits or overflow
_SMALLEST_UNIT, _LARGEST_UNIT = 1e-290, 1e290
# a regressor of the user gets weights as they are, products of two for pairs, maybe in 32 bits
_SMALLEST_WEIGHT, _LARGEST_WEIGHT = 1e-12, 1e12


def exponent_of(values: Floats) -> int:
    """The least e with |values| < 2^e; 0 where all are 0."""
    return int(np.frexp(np.abs(values).max(initial=0.0))[1])


def below_one(weight: Floats) -> Floats:
    """Weights times the power of two that brings the largest into [0.5, 1)."""
    return np.ldexp(weight, -exponent_of(weight))


def mean_one(weight: Floats) -> Floats | None:
    """Weights scaled to mean 1; None where all are equal, which is no weights at all."""
    if (weight == weight[0]).all():
        return None
    weight = below_one(weight)
    return weight / weight.mean()


def target_exponent(targets: Floats) -> int:
    """The e for which a regressor gets targets times 2^-e; 0 unless they are tiny or huge."""
    largest = np.abs(targets).max(initial=0.0)
    if largest == 0 or _SMALLEST_TARGET <= largest <= _LARGEST_TARGET:
        return 0
    return exponent_of(targets)


def check_unit(largest: float) -> None:
    """Raise where predictions in the unit of the targets would lose digits or overflow.

    Parameters
    ----------
    largest : float
        The largest absolute value of a target.

    Raises
    ------
    ValueError
        It is not 0, and not between 1e-290 and 1e290.
    """
    if largest != 0 and not _SMALLEST_UNIT <= largest <= _LARGEST_UNIT:
        up = "up" if largest < 1 else "down"
        raise ValueError(
            f"The largest target that the labels make is {largest:g}, but float64 needs it between "
            f"{_SMALLEST_UNIT:g} and {_LARGEST_UNIT:g}: scale the labels, or the weights of "
            f"preferences, {up}."
        )


def check_weight_range(weight: Floats, regressor: str) -> None:
    """Raise where a regressor of the user cannot be expected to cope with the weights.

    Parameters
    ----------
    weight : ndarray of shape (n_rows,)
    regressor : str
        Its name.

    Raises
    ------
    ValueError
        The largest weight is not between 1e-12 and 1e12.
    """
    largest = float(weight.max())
    if not _SMALLEST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise ValueError(
            f"The largest sample_weight is {largest:g}, and {regressor} gets the weights as they "
            f"are: it needs a largest weight between {_SMALLEST_WEIGHT:g} and "
            f"{_LARGEST_WEIGHT:g}. Scale the weights to mean 1: sample_weight / "
            "sample_weight.mean()."
        )
