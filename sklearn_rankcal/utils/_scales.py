"""Scaling of weights and targets, so that extreme magnitudes neither underflow nor overflow.

Only the ratios of weights count, and rankings do not depend on the unit of the targets. Both are
therefore scaled by a power of two, which is exact. Products and squares of the scaled numbers are
safe.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Regressors receive targets whose largest absolute value is between these limits, because
# scikit-learn's trees do not split a node of variance 2e-16, and its histogram boosting has
# 32-bit gradients.
_SMALLEST_TARGET, _LARGEST_TARGET = 2.0**-16, 2.0**64
# Beyond these limits, predictions in the unit of the targets would lose digits or overflow.
_SMALLEST_UNIT, _LARGEST_UNIT = 1e-290, 1e290
# A user's regressor receives the weights unscaled, and products of two weights for pairs. It may
# convert them to 32 bits.
_SMALLEST_WEIGHT, _LARGEST_WEIGHT = 1e-12, 1e12


def exponent_of(values: Floats) -> int:
    """Return the smallest e with |values| < 2^e, or 0 if all values are 0."""
    return int(np.frexp(np.abs(values).max(initial=0.0))[1])


def below_one(weight: Floats) -> Floats:
    """Multiply weights by the power of two that brings the largest into [0.5, 1)."""
    return np.ldexp(weight, -exponent_of(weight))


def mean_one(weight: Floats) -> Floats | None:
    """Scale weights to mean 1. Return None if all are equal, which is the same as no weights."""
    if (weight == weight[0]).all():
        return None
    weight = below_one(weight)
    return weight / weight.mean()


def target_exponent(targets: Floats) -> int:
    """Return the e such that regressors receive targets * 2^-e; 0 if the targets are moderate."""
    largest = np.abs(targets).max(initial=0.0)
    if largest == 0 or _SMALLEST_TARGET <= largest <= _LARGEST_TARGET:
        return 0
    return exponent_of(targets)


def target_unit(largest: float) -> float:
    """Return the power of two by which targets are divided for regressors; 1 if they are moderate.

    `largest` is the largest absolute value of a target.
    """
    if largest == 0 or _SMALLEST_TARGET <= largest <= _LARGEST_TARGET:
        return 1.0
    return 2.0 ** np.ceil(np.log2(largest))


def check_unit(largest: float) -> None:
    """Raise an error if predictions in the unit of the targets would lose digits or overflow.

    Parameters
    ----------
    largest : float
        The largest absolute value of a target.

    Raises
    ------
    ValueError
        If it is neither 0 nor between 1e-290 and 1e290.
    """
    if largest != 0 and not _SMALLEST_UNIT <= largest <= _LARGEST_UNIT:
        up = "up" if largest < 1 else "down"
        raise ValueError(
            f"The largest target computed from the labels is {largest:g}. It must be between "
            f"{_SMALLEST_UNIT:g} and {_LARGEST_UNIT:g} for float64. Scale the labels, or the "
            f"weights of preferences, {up}."
        )


def check_weight_range(weight: Floats, regressor: str) -> None:
    """Raise an error if a user's regressor cannot be expected to work with the weights.

    Parameters
    ----------
    weight : ndarray of shape (n_rows,)
    regressor : str
        The name of the regressor.

    Raises
    ------
    ValueError
        If the largest weight is not between 1e-12 and 1e12.
    """
    largest = float(weight.max())
    if not _SMALLEST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise ValueError(
            f"The largest sample_weight is {largest:g}. {regressor} receives the weights unscaled "
            f"and needs a largest weight between {_SMALLEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}. "
            "Scale the weights to mean 1: sample_weight / sample_weight.mean()."
        )
