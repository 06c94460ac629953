"""Whether the first place is certain, however often one looks.

An interval of a fixed number of votes is wrong too often if one looks after every vote and stops as
soon as it is clear. The bound here holds for all numbers of votes at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from sklearn_rankcal.aggregation._contest_boards import main_part
from sklearn_rankcal.aggregation._votes_of_items import FEW_VOTES, vote_columns
from sklearn_rankcal.utils._rounding import is_largest
from sklearn_rankcal.utils._typing import Floats

if TYPE_CHECKING:
    from sklearn_rankcal.aggregation._result import Aggregate

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


def is_first_certain(board: Aggregate, group: Any) -> bool:
    """Whether the best item is above each other one at the level of the board, at any time."""
    q = board._query(group)
    if board._errors is None:
        raise ValueError(
            "anytime=True needs the standard errors of intervals='robust' or 'information'; "
            "resamples have none. Pass intervals='robust' to aggregate."
        )
    rows = board._rows_of(q)
    main = main_part(board.parts[rows])
    if len(main) < 2 or not board.is_first_clear(group):
        return False
    scores = board._errors[q].scores
    best = int(main[is_largest(scores[main])][0])
    others = main[main != best]
    level = float(board.confidence_level or 0)
    # as if the differences were normal: with these errors, the intervals are those of the board
    reach = board._errors[q].relative_widths(best, level)[1][others]
    error = reach / float(ndtri((1 + level) / 2))
    ahead = scores[best] - scores[others]
    # The true first item is one of the two in len(others) differences, one of which is wrong if
    # another item is said to be first.
    alpha = (1 - level) / len(error)
    enough = (vote_columns(board.judgements)["votes"][rows[main]] >= FEW_VOTES).all()
    return bool(enough and (error > 0).all() and (ahead > anytime_bound(error, alpha)).all())
