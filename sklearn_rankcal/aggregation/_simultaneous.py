"""Ranks of all items at the same time, and the items that may be first."""

from __future__ import annotations

from scipy.special import ndtri

from sklearn_rankcal.utils._rounding import is_largest
from sklearn_rankcal.utils._typing import Bools, Floats, Ints


def simultaneous_ranks(z: Floats, level: float) -> tuple[Ints, Ints]:
    """Return the best and the worst rank of each item, all of them right with this confidence.

    `z` is how clearly the item of each row is above that of each column. An item is above another
    one if that is clear at the level of Bonferroni for all pairs.
    """
    n = len(z)
    above = z > -ndtri((1 - level) / max(n * (n - 1), 1))
    return 1 + above.sum(axis=0), n - above.sum(axis=1)


def may_be_first(z: Floats, level: float, clear: Bools | None) -> Bools:
    """Return which items are in a set that contains the best item.

    An item is left out if another one is above it at the level of Bonferroni for its own pairs.
    `z` are those of items in descending order of their scores. If the first one is clearly above
    some others at once, these are `clear`, and left out as well. None means that it is not: then
    its closest rival stays.
    """
    n = len(z)
    below = (z > -ndtri((1 - level) / (2 * max(n - 1, 1)))).any(axis=0)
    below[0] = False
    if clear is not None:
        below |= clear
    if clear is None and n > 1 and below[1:].all():
        below[1:][is_largest(-z[0, 1:])] = False
    return ~below
