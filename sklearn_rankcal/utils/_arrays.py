"""Plain arrays that describe a fitted model: their shapes are checked as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def read_arrays(arrays: Mapping[str, Any], shapes: dict[str, tuple[str, ...]]) -> dict[str, Floats]:
    """Finite arrays of numbers by name, of shapes that agree.

    Parameters
    ----------
    arrays : mapping of str to array-like
    shapes : dict of str to tuple of str
        Of each array the names of its dimensions. Equal names are equal lengths, and "m + 1" is
        one more than "m".

    Raises
    ------
    ValueError
        An array is absent, has NaN or infinity, or its shape is not that.
    """
    absent = [name for name in shapes if name not in arrays]
    if absent:
        raise ValueError(
            f"The array {absent[0]!r} is absent; there are {sorted(arrays)}. Pass what to_arrays "
            "returned."
        )
    read = {name: np.array(arrays[name], dtype=np.float64) for name in shapes}
    lengths: dict[str, int] = {}
    for name, dimensions in shapes.items():
        array = read[name]
        known = array.ndim == len(dimensions)
        for dimension, length in zip(dimensions, array.shape, strict=known):
            letter, _, more = dimension.partition(" + ")
            known = known and lengths.setdefault(letter, length - int(more or 0)) == (
                length - int(more or 0)
            )
        if not known:
            raise ValueError(
                f"The array {name!r} has shape {array.shape}, but must have "
                f"({', '.join(dimensions)}), where {lengths}."
            )
        if not np.isfinite(array).all():
            raise ValueError(f"The array {name!r} contains NaN or infinity.")
    return read
