"""Comparison of computed numbers that may be exactly equal.

Two numbers that are mathematically equal, such as the scores of items with mirrored records, can
have different rounding errors. The errors depend on the processor, the order of the rows and the
unit. Comparing computed numbers therefore needs a tolerance relative to their size.

All comparisons use this module, except for scores of items (`aggregation._base.tie_scores`). Given
numbers and sums of small whole numbers need no tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: Numbers are equal if their difference is at most this number times their size.
ROUNDING = 1e-9


def exceeds(one: ArrayLike, other: ArrayLike, size: ArrayLike) -> Bools:
    """Return where one number is larger than another by more than rounding.

    `size` is the size of the terms that the numbers were computed from. It can be larger than the
    numbers, for example if they are differences.
    """
    return np.asarray(np.asarray(one) - other > ROUNDING * np.asarray(size))


def first_smallest(values: Sequence[float] | Floats) -> int:
    """Return the place of the first value that equals the smallest value up to rounding."""
    return int(is_largest(-np.asarray(values, dtype=np.float64)).argmax())


def is_largest(values: Floats, size: ArrayLike | None = None, axis: int = -1) -> Bools:
    """Return which values equal the largest along an axis, up to rounding.

    By default, `size` is the largest finite absolute value.
    """
    top = values.max(axis=axis, keepdims=True)
    if size is None:
        size = np.abs(np.where(np.isfinite(values), values, 0.0)).max(axis=axis, keepdims=True)
    with np.errstate(invalid="ignore"):
        close = top - values <= ROUNDING * np.asarray(size)
    return np.asarray((values == top) | close)


def tie(values: Floats, size: ArrayLike) -> Floats:
    """Make neighbouring values equal if they differ only by rounding, along the last axis.

    Neighbours are taken in descending order. `size`, as in `exceeds`, has one entry per vector.
    """
    order = np.argsort(-values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    first = np.zeros(values.shape, dtype=np.int64)  # the place of the first value of the level
    new = exceeds(ordered[..., :-1], ordered[..., 1:], np.asarray(size)[..., None])
    first[..., 1:] = np.where(new, np.arange(1, values.shape[-1]), 0)
    first = np.maximum.accumulate(first, axis=-1)
    tied = np.empty_like(ordered)
    np.put_along_axis(tied, order, np.take_along_axis(ordered, first, axis=-1), axis=-1)
    return tied


def order_from_largest(values: Floats, *then: Ints, size: ArrayLike | None = None) -> Ints:
    """Return the order from the largest value to the smallest.

    In descending order, a value equals the one before it if they differ only by rounding. Equal
    values are ordered by `then`, from small to large. `size` is as in `is_largest`.
    """
    values = np.asarray(values)
    if size is None:
        size = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    order = np.argsort(-values, kind="stable")
    with np.errstate(invalid="ignore"):
        new = exceeds(values[order[:-1]], values[order[1:]], size)
    place = np.zeros(len(values), dtype=np.int64)
    place[order[1:]] = np.cumsum(new)
    return np.lexsort((*then[::-1], place))
