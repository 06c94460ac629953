"""The errors of the scores of one query, also for scores with few votes.

The normal approximation fails if a score rests on few votes or few judges. `_exact_ends` corrects
for few votes, and `_judge_shares` for few judges.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, ndtri_exp, stdtr, stdtrit

from sklearn_rankcal.aggregation._exact_ends import FARTHEST
from sklearn_rankcal.utils._rounding import exceeds
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: From this number of degrees of freedom on, robust errors can be below the model-based errors.
FREE = 15.0
#: Draws are cached for up to this number of rivals; for 20 rivals they take 3 MB.
_FEW_RIVALS = 20


class ScoreErrors(NamedTuple):
    """The errors of the scores of one query.

    Attributes
    ----------
    scores : ndarray of shape (n_items,)
        The scores. Only differences within a component matter.
    covariance : ndarray of shape (n_items, n_items)
        The covariance of the scores; robust for robust errors.
    information : ndarray of shape (n_items, n_items)
        The model-based covariance; the same array if errors are not robust.
    low, high : ndarray of shape (n_items,)
        The variance that an exact interval of the item's votes adds to its score, for the lower and
        the upper end. Infinite if there is no end.
    shared : ndarray of shape (n_items, n_items)
        The share of the information of the row item from votes against the column item; empty if
        `low` and `high` are 0.
    degrees : ndarray of shape (n_items,)
        The degrees of freedom of each item; infinite without judges, and 0 with a single judge.
    pooled : ndarray of shape (n_items,)
        The variance of each score if the judges differ as much as they do on average over items.
    part, block : ndarray of shape (n_items,)
        Connected and strongly connected components.
    """

    scores: Floats
    covariance: Floats
    information: Floats
    low: Floats
    high: Floats
    shared: Floats
    degrees: Floats
    pooled: Floats
    part: Ints
    block: Ints

    @property
    def robust(self) -> bool:
        return self.covariance is not self.information

    def z(self) -> Floats:
        """Return the z-statistic of the row item being above the column item.

        In units of a standard normal variable, with the tail probability of the sign of the score
        difference. Negative for items below, 0 for equal scores and on the diagonal.
        """
        scores = self.scores
        difference = scores[:, None] - scores
        size = max(1.0, float(np.abs(scores).max(initial=0.0)))
        ahead = exceeds(difference, 0.0, size)
        distance = np.where(ahead, difference, 0.0)
        few = np.ones(difference.shape, dtype=bool)
        z = np.full(difference.shape, np.inf)
        if self.robust:
            degrees = np.minimum(self.degrees[:, None], self.degrees)
            z = _normal_scores(_ratio(distance, pair_errors(self.covariance)), degrees)
            few = self._few(degrees)
        if few.any():
            exact = _ratio(distance, np.sqrt(self._exact_variance()))
            z = np.where(few, np.minimum(z, exact), z)
        return z - z.T

    def widths(self, level: float) -> tuple[Floats, Floats]:
        """Return the lengths of the interval of each score below and above it."""
        quantile = float(ndtri((1 + level) / 2))
        n = len(self.scores)
        size = np.bincount(self.part)[self.part]
        own = (1 - 1 / size) ** 2
        ends = []
        for mine, theirs in ((self.low, self.high), (self.high, self.low)):
            finite = np.where(np.isfinite(theirs), theirs, 0.0)
            others = np.bincount(self.part, finite)[self.part] - finite
            extra = np.where(mine > 0, own * mine, 0.0) + others / size**2
            variance = np.diag(self.information) + extra
            for i in np.flatnonzero(size == 2):  # a score is half of the difference
                j = int(np.flatnonzero((self.part == self.part[i]) & (np.arange(n) != i))[0])
                one, other = (i, j) if mine is self.low else (j, i)
                variance[i] = self._exact_variance(np.array([one]), np.array([other]))[0, 0] / 4
            width = quantile * np.sqrt(np.maximum(variance, 0.0))
            if self.robust:
                robust = np.diag(self.covariance)
                few = (self.degrees < FREE) | (self.low > 0) | (self.high > 0)
                # The mean of the items inherits the uncertainty of items with few votes. Of two
                # items, a score is half of the difference, whose error is known from both.
                lacking = np.where(few & (size > 2), self.pooled + finite - robust, 0.0)
                lacking = np.maximum(lacking, 0.0)
                others = np.bincount(self.part, lacking)[self.part] - lacking
                error = np.sqrt(np.maximum(robust + others / size**2, 0.0))
                found = student_width(error, self.degrees, level)
                width = np.where(few, np.maximum(width, found), found)
            ends.append(_without_end(width))
        return ends[0], ends[1]

    def relative_widths(self, item: int, level: float) -> tuple[Floats, Floats]:
        """Return the lengths of the interval of each difference to one item, below and above."""
        every, one = np.arange(len(self.scores)), np.array([item])
        quantile = float(ndtri((1 + level) / 2))
        below = self._exact_variance(every, one)[:, 0]
        above = self._exact_variance(one, every)[0]
        ends = []
        for variance in (below, above):
            width = quantile * np.sqrt(variance)
            if self.robust:
                degrees = np.minimum(self.degrees, self.degrees[item])
                error = pair_errors(self.covariance)[:, item]
                found = student_width(error, degrees, level)
                few = self._few(degrees[:, None], one)[:, 0]
                width = np.where(few, np.maximum(width, found), found)
            width[item] = 0.0
            ends.append(_without_end(width))
        return ends[0], ends[1]

    def _exact_variance(self, rows: Ints | None = None, columns: Ints | None = None) -> Floats:
        """Return the variance of each difference, for the row item above the column item.

        Votes between the two items are in the exact intervals of both, and count once.
        """
        every = np.arange(len(self.scores))
        i, j = every if rows is None else rows, every if columns is None else columns
        C = self.information
        variance = np.diag(C)[i][:, None] + np.diag(C)[j] - 2 * C[np.ix_(i, j)]
        variance = np.maximum(variance, 0.0)
        if not ((self.low > 0).any() or (self.high > 0).any()):
            return variance
        low, high = self.low[i][:, None], self.high[j]
        of_one, of_other = self.shared[np.ix_(i, j)], self.shared[np.ix_(j, i)].T
        finite = np.isfinite(low) & np.isfinite(high)
        both = np.where(finite, low, 0.0) * of_one, np.where(finite, high, 0.0) * of_other
        return np.where(finite, variance + low + high - np.minimum(*both), np.inf)

    def _few(self, degrees: Floats, columns: Ints | None = None) -> Bools:
        """Return the differences with robust errors that must not be below model-based errors."""
        j = np.arange(len(self.scores)) if columns is None else columns
        exact = (self.low > 0) | (self.high > 0)
        few = (degrees < FREE) | exact[:, None] | exact[j]
        return np.asarray(few | (self.block[:, None] != self.block[j]))


def _without_end(width: Floats) -> Floats:
    """Return widths; very large widths become infinite.

    Without a penalty and a maximum of the likelihood, they depend on the last iteration.
    """
    return np.where(width > FARTHEST, np.inf, width)


def pair_errors(covariance: Floats) -> Floats:
    """Return the standard error of the difference of each pair of scores."""
    variance = np.diag(covariance)
    return np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0.0))


def student_quantile(degrees: Floats, level: float) -> Floats:
    """Return the quantile of intervals of this level; infinite without degrees of freedom."""
    quantile = np.full(np.shape(degrees), float(ndtri((1 + level) / 2)))
    some = np.isfinite(degrees)
    quantile[some] = np.inf
    some &= degrees > 0
    quantile[some] = stdtrit(degrees[some], (1 + level) / 2)
    return quantile


def student_width(error: Floats, degrees: Floats, level: float) -> Floats:
    """Return the half-width of intervals of this level; infinite without degrees of freedom."""
    quantile = student_quantile(degrees, level)
    known = np.isfinite(quantile)
    return np.where(known, error * np.where(known, quantile, 1.0), np.inf)


def _ratio(distance: Floats, error: Floats) -> Floats:
    """Return distances in units of their errors; 0 for distance 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance > 0, distance / error, 0.0)


def _normal_scores(t: Floats, degrees: Floats) -> Floats:
    """Return the values >= 0 of a normal variable with the tail probabilities of these t values."""
    z = t.copy()
    some = np.isfinite(degrees) & (t > 0)
    z[some & (degrees <= 0)] = 0.0
    some &= degrees > 0
    with np.errstate(divide="ignore"):
        z[some] = -ndtri_exp(np.log(stdtr(degrees[some], -t[some])))
    return z


def probability_first(
    z: Floats, covariance: Floats, best: int, others: Ints, certain: float
) -> float:
    """Return the probability that an item is above all its rivals at the same time.

    If it is above a rival with a probability below `certain`, the smallest of these probabilities
    is returned.

    `z` has the values of `ScoreErrors.z`, with a joint normal distribution and the correlations of
    the score differences. The probability is a share of 20,000 draws with fixed seed. The symmetric
    root of the correlations and sorting by `z` make it independent of the order of the items and of
    the processor.
    """
    if not len(others):
        return 1.0
    order = others[np.argsort(z[best, others], kind="stable")]
    near = order[z[best, order] < 6]  # the draws would not show the errors of the rivals
    if len(near) < 2 or ndtr(z[best, near[0]]) < certain:
        return float(ndtr(z[best, near[:1]]).prod())
    C = covariance
    of_differences = C[best, best] - C[best, near] - C[near, best][:, None] + C[np.ix_(near, near)]
    scale = np.sqrt(np.maximum(np.diag(of_differences), 1e-300))
    values, vectors = np.linalg.eigh(of_differences / np.outer(scale, scale))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    n = len(near)
    draws = (_few_draws(n) if n <= _FEW_RIVALS else _normal_draws(n)) @ root
    return float((draws > -z[best, near]).all(axis=1).mean())


def _normal_draws(n: int) -> Floats:
    return np.random.default_rng(0).standard_normal((20_000, n))


_few_draws = lru_cache(maxsize=4)(_normal_draws)  # the same draws for many queries
