"""Reading of the plain arrays in which a fitted model is stored, with checks of their shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def read_arrays(arrays: Mapping[str, Any], shapes: dict[str, tuple[str, ...]]) -> dict[str, Floats]:
    """Convert arrays to float64, and check that they are finite and that their shapes agree.

    Parameters
    ----------
    arrays : mapping of str to array-like
        The name of each array and its numbers. Arrays that `shapes` does not name are ignored.
    shapes : dict of str to tuple of str
        The name of each array and the names of its dimensions. Dimensions of the same name must
        have the same length, and a dimension named "m + 1" is one longer than "m".

    Returns
    -------
    read : dict of str to ndarray
        The arrays that `shapes` names.

    Raises
    ------
    ValueError
        If an array is absent, contains NaN or infinity, or has another shape.
    """
    absent = [name for name in shapes if name not in arrays]
    if absent:
        raise ValueError(
            f"The array {absent[0]!r} is absent; the arrays that were passed are "
            f"{sorted(arrays)}. Pass what to_arrays returned."
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
