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

from sklearn_rankcal.utils._typing import Bools, Floats

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
