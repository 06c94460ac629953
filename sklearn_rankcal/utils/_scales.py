"""The ranges of weights and targets that regressors can learn from."""

from __future__ import annotations

import numpy as np

from sklearn_rankcal.utils._typing import Floats

# The largest absolute target passed to a regressor is between these limits. scikit-learn's trees do
# not split a node of variance 2e-16, and its histogram boosting has 32-bit gradients.
_SMALLEST_TARGET, _LARGEST_TARGET = 2.0**-16, 2.0**64
# Beyond these limits, predictions in the unit of the targets would lose digits or overflow.
_SMALLEST_UNIT, _LARGEST_UNIT = 1e-290, 1e290
# A user's regressor receives the weights unscaled, or products of two weights for pairs. It may
# convert them to 32 bits.
_SMALLEST_WEIGHT, _LARGEST_WEIGHT = 1e-12, 1e12


def mean_one(weight: Floats) -> Floats | None:
    """Scale weights to mean 1. Return None if all are equal, which is the same as no weights."""
    if (weight == weight[0]).all():
        return None
    return weight / weight.mean()


def power_above(value: float) -> float:
    """Return the smallest power of two above a number, or 1 for 0."""
    return float(np.ldexp(1.0, np.frexp(value)[1]))


def target_unit(largest: float) -> float:
    """Return a power of two to divide targets by for regressors, 1 if they are moderate.

    `largest` is the largest absolute target.
    """
    if largest == 0 or _SMALLEST_TARGET <= largest <= _LARGEST_TARGET:
        return 1.0
    return power_above(largest)


def check_unit(largest: float) -> None:
    """Raise ValueError if the largest absolute target is outside the range and not 0."""
    if largest != 0 and not _SMALLEST_UNIT <= largest <= _LARGEST_UNIT:
        up = "up" if largest < 1 else "down"
        raise ValueError(
            f"The largest target computed from the labels is {largest:g}. It must be between "
            f"{_SMALLEST_UNIT:g} and {_LARGEST_UNIT:g} for float64. Scale the labels, or the "
            f"weights of preferences, {up}."
        )


def check_weight_range(weight: Floats, regressor: str) -> None:
    """Raise ValueError if a user's regressor may not work with the weights."""
    largest = float(weight.max())
    if not _SMALLEST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise ValueError(
            f"The largest sample_weight is {largest:g}. {regressor} receives the weights unscaled "
            f"and needs a largest weight between {_SMALLEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}. "
            "Scale the weights to mean 1: sample_weight / sample_weight.mean()."
        )
