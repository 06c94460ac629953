"""The first place: who may have it at the same time, and whether it is certain at any time.

An interval of a fixed number of votes is wrong too often if one looks after every vote and stops as
soon as it is clear. `anytime_bound` holds for all numbers of votes at the same time.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from sklearn_rankcal.aggregation._contest_boards import main_part
from sklearn_rankcal.aggregation._errors import ScoreErrors
from sklearn_rankcal.aggregation._votes_of_items import FEW_VOTES
from sklearn_rankcal.utils._rounding import is_largest
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: The standard deviation of the normal distribution over which the bound is mixed: it is best for
#: differences of about this size, in log-odds, and holds for all.
_SPREAD = 0.5


def anytime_bound(error: Floats, alpha: float) -> Floats:
    """Return what the error of an estimate exceeds at some time with probability at most alpha.

    Parameters
    ----------
    error : ndarray
        The standard error at each time. Its inverse square is the information I.
    alpha : float
        The probability, for both signs together.

    Returns
    -------
    bound : ndarray
        With the information, the estimate times I is like a Brownian motion at the time I, and
        Robbins' normal mixture gives I bound = sqrt((I + r) (log((I + r) / r) - 2 log(alpha))) with
        r = 1 / 0.5^2.
    """
    ratio = _SPREAD**2 / np.square(error)  # I / r
    return np.asarray(error * np.sqrt((1 + 1 / ratio) * (np.log1p(ratio) - 2 * np.log(alpha))))


def is_first_certain(errors: ScoreErrors, parts: Ints, votes: Floats, level: float) -> bool:
    """Whether the best item of the main part is above each other one at this level, at any time."""
    main = main_part(parts)
    if len(main) < 2:
        return False
    scores = errors.scores
    best = int(main[is_largest(scores[main])][0])
    others = main[main != best]
    # as if the differences were normal: with these errors, the intervals are those of the board
    reach = errors.relative_widths(best, level)[1][others]
    error = reach / float(ndtri((1 + level) / 2))
    ahead = scores[best] - scores[others]
    # The true first item is one of the two in len(others) differences, one of which is wrong if
    # another item is said to be first.
    alpha = (1 - level) / len(error)
    enough = (votes[main] >= FEW_VOTES).all()
    return bool(enough and (error > 0).all() and (ahead > anytime_bound(error, alpha)).all())


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
