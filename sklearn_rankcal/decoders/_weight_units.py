"""Powers of 2 and common units of weights, for exact scaling and for strict proofs."""

from __future__ import annotations

import numpy as np

from sklearn_rankcal.utils._typing import Floats

#: A weight counts as a multiple of a unit if it differs by at most this fraction of itself.
RELATIVE_TOLERANCE = 1e-12
#: Largest number of units in a weight. With more, any weights would be multiples of something.
MAX_UNITS = 1e6


def power_of_2(value: float) -> float:
    """The largest power of 2 that is not above the value; 1 if the value is 0."""
    return float(2.0 ** np.floor(np.log2(value))) if value > 0 else 1.0


def common_unit(weights: Floats) -> float:
    """The largest unit found of which all weights are multiples, up to rounding; 0 if none is.

    Integers, possibly scaled by a power of 2, have a greatest common divisor. Decimals such as 0.2
    and 0.3, and averages such as 1 / 3 and 1 / 2, have no useful common divisor as binary floats.
    For them Euclid's algorithm runs on the floats and takes a remainder of at most 1e-12 of the
    weight for 0.
    """
    distinct = np.unique(weights[weights > 0])
    if len(distinct) == 0:
        return 0.0
    # Every float is an integer of 53 bits times a power of 2. last_bit is the exponent of the
    # lowest bit that is 1 in any weight. In units of it all weights are integers.
    mantissa, exponent = np.frexp(distinct)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    last_bit = int((exponent - 53 + np.log2(digits & -digits).astype(np.int64)).min())
    binary = 0.0
    if int(exponent.max()) - last_bit <= 62:
        shifts = exponent.astype(np.int64) - 53 - last_bit
        left, right = np.maximum(shifts, 0), np.maximum(-shifts, 0)
        counts = (digits >> right) << left
        binary = float(np.ldexp(float(np.gcd.reduce(counts)), last_bit))
    if binary and distinct[-1] <= MAX_UNITS * binary:
        return binary
    # Euclid's algorithm: replace the unit by the smallest remainder that is not rounding error.
    unit = distinct[0]
    while distinct[-1] <= MAX_UNITS * unit:
        rest = np.abs(distinct - unit * np.round(distinct / unit))
        rest = rest[rest > RELATIVE_TOLERANCE * distinct]
        if len(rest) == 0:
            # Take the unit from the sum of the weights, because the rounding error of the smallest
            # weight would be multiplied.
            return float(distinct.sum() / np.round(distinct / unit).sum())
        unit = rest.min()  # at most half of what it was
    return binary
