"""`Intervals`: how sure the scores and ranks of a leaderboard are, from errors or resamples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from sklearn_rankcal.aggregation._contests import FEW_VOTES
from sklearn_rankcal.aggregation._errors import ScoreErrors
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, is_largest


@dataclass(frozen=True)
class Intervals:
    """The intervals of all items, in row layout, and the probabilities of pairs.

    `level`, the scores, the ranks and the numbers of resamples are attributes of `Aggregate`.
    """

    level: float
    score_low: Floats
    score_high: Floats
    rank_low: Ints
    rank_high: Ints
    #: for each query, the probabilities of its pairs i < j, in the order of `PAIRS`
    above: Floats
    #: for each query, the probability that its best item is above the rest; NaN if several tie
    first: Floats
    kind: str | None = None  # "information" or "robust"
    errors: list[ScoreErrors] | None = None  # of each query
    #: for each query, the effective number of judges behind each item and each effect
    judges: list[tuple[Floats, Floats]] | None = None
    n_resamples: int = 0
    resample: str | None = None
    unanimous: Bools | None = None
    n_disconnected: Ints | None = None
    n_unbounded: Ints | None = None

    @property
    def certain(self) -> float:
        """The probability from which on one item is clearly above another."""
        return (1 + self.level) / 2

    def around(self, ranks: Ints) -> Intervals:
        """Extend the intervals of ranks to these ranks."""
        low, high = np.minimum(self.rank_low, ranks), np.maximum(self.rank_high, ranks)
        return replace(self, rank_low=low, rank_high=high)


def main_part(parts: Ints) -> Ints:
    """Return the items of the part with more than half of the compared items, or none."""
    main = np.flatnonzero(parts == 1)
    return main if 2 * len(main) > np.count_nonzero(parts) else main[:0]


# ---------------------------------------------------------------- the first place

# An interval for a fixed number of votes is wrong too often if it is checked after each vote until
# it is clear. `anytime_bound` holds for all numbers of votes at the same time.

#: Standard deviation of the normal mixture of the bound. The bound holds for all differences, and
#: is tightest for differences of about this size in log-odds.
_SPREAD = 0.5


def anytime_bound(error: Floats, alpha: float) -> Floats:
    """Return the bound that the error of an estimate ever exceeds with probability at most alpha.

    Parameters
    ----------
    error : ndarray
        Standard error at each time. Its inverse square is the information I.
    alpha : float
        The probability, for both signs.

    Returns
    -------
    bound : ndarray
        The estimate times I behaves like a Brownian motion at time I, and Robbins' normal mixture
        gives I bound = sqrt((I + r) (log((I + r) / r) - 2 log(alpha))) with r = 1 / 0.5^2.
    """
    ratio = _SPREAD**2 / np.square(error)  # I / r
    return np.asarray(error * np.sqrt((1 + 1 / ratio) * (np.log1p(ratio) - 2 * np.log(alpha))))


def is_first_certain(errors: ScoreErrors, parts: Ints, votes: Floats, level: float) -> bool:
    """Whether the best item of the main part is first at this level, at any time."""
    main = main_part(parts)
    if len(main) < 2:
        return False
    scores = errors.scores
    best = int(main[is_largest(scores[main])][0])
    others = main[main != best]
    # the errors give the intervals of the board for normal differences
    reach = errors.relative_widths(best, level)[1][others]
    error = reach / float(ndtri((1 + level) / 2))
    ahead = scores[best] - scores[others]
    # The true first item occurs in len(others) differences. If another item is declared first, one
    # of these differences is wrong.
    alpha = (1 - level) / len(error)
    enough = (votes[main] >= FEW_VOTES).all()
    return bool(enough and (error > 0).all() and (ahead > anytime_bound(error, alpha)).all())


def simultaneous_ranks(z: Floats, level: float) -> tuple[Ints, Ints]:
    """Return the best and the worst rank of each item, jointly valid at this confidence level.

    `z` has the z-statistics of row item minus column item. An item is above another item if this is
    significant with Bonferroni's correction for all pairs.
    """
    n = len(z)
    above = z > -ndtri((1 - level) / max(n * (n - 1), 1))
    return 1 + above.sum(axis=0), n - above.sum(axis=1)


def may_be_first(z: Floats, level: float, clear: Bools | None) -> Bools:
    """Return which items are in a set that contains the best item.

    An item is left out if another item is significantly above it, with Bonferroni's correction for
    its own pairs. `z` refers to items in descending order of scores. `clear` marks items that the
    first item is clearly above at the same time; they are left out as well. If `clear` is None, the
    closest rival of the first item stays.
    """
    n = len(z)
    below = (z > -ndtri((1 - level) / (2 * max(n - 1, 1)))).any(axis=0)
    below[0] = False
    if clear is not None:
        below |= clear
    if clear is None and n > 1 and below[1:].all():
        below[1:][is_largest(-z[0, 1:])] = False
    return ~below
