"""The comparison of computed numbers that may be exactly equal.

Two numbers that mathematics makes equal, such as the scores of items with mirrored records, come
out of a computation with errors that depend on the processor, on the order of the rows and on the
unit. A decision between computed numbers therefore needs a tolerance that is relative to their
size. Scores of items have one of their own, `aggregation._base.tie_scores`; everything else is
compared here. Numbers that were given, and sums of small whole numbers, need no tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: The largest difference of two numbers that count as equal, relative to their size.
ROUNDING = 1e-9


def exceeds(one: ArrayLike, other: ArrayLike, size: ArrayLike) -> Bools:
    """Return where a number is larger than another one by more than rounding.

    `size` is the size of the terms that the numbers were computed from. It can be larger than the
    numbers, which may be differences.
    """
    return np.asarray(np.asarray(one) - other > ROUNDING * np.asarray(size))


def first_smallest(values: Sequence[float] | Floats) -> int:
    """Return the place of the first value that equals the smallest one, up to rounding."""
    return int(is_largest(-np.asarray(values, dtype=np.float64)).argmax())


def is_largest(values: Floats, size: ArrayLike | None = None, axis: int = -1) -> Bools:
    """Return which values equal the largest along an axis, up to rounding.

    `size` is by default the largest absolute value that is finite.
    """
    top = values.max(axis=axis, keepdims=True)
    if size is None:
        size = np.abs(np.where(np.isfinite(values), values, 0.0)).max(axis=axis, keepdims=True)
    with np.errstate(invalid="ignore"):
        close = top - values <= ROUNDING * np.asarray(size)
    return np.asarray((values == top) | close)


def tie(values: Floats, size: ArrayLike) -> Floats:
    """Make values along the last axis equal if, in descending order, none exceeds the next one.

    `size`, as in `exceeds`, has one entry for each vector of values.
    """
    order = np.argsort(-values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    first = np.zeros(values.shape, dtype=np.int64)  # the place of the first of the same level
    new = exceeds(ordered[..., :-1], ordered[..., 1:], np.asarray(size)[..., None])
    first[..., 1:] = np.where(new, np.arange(1, values.shape[-1]), 0)
    first = np.maximum.accumulate(first, axis=-1)
    tied = np.empty_like(ordered)
    np.put_along_axis(tied, order, np.take_along_axis(ordered, first, axis=-1), axis=-1)
    return tied


def order_from_largest(values: Floats, *then: Ints, size: ArrayLike | None = None) -> Ints:
    """Return the order from the largest value to the smallest.

    Of the values in descending order, each counts as equal to the one before it if rounding
    explains their difference. Equal values are in the order of `then`, from small to large. `size`
    is as in `is_largest`.
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
