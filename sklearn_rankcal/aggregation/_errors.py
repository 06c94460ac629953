"""Errors of scores, and `Intervals`: how sure the scores and ranks of a leaderboard are.

The normal approximation fails if a score rests on few votes or few judges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array, hstack
from scipy.special import betaincinv, logit, ndtr, ndtri, ndtri_exp, stdtr, stdtrit

from sklearn_rankcal.aggregation._contest_model import ContestFit
from sklearn_rankcal.aggregation._contests import FEW_VOTES
from sklearn_rankcal.aggregation._likelihoods import log_probabilities, result_probabilities
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, add_up, exceeds, is_largest


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
        The model-based covariance; the same array as `covariance` if errors are not robust.
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
        if self.covariance is not self.information:
            degrees = np.minimum(self.degrees[:, None], self.degrees)
            z = _ratio(distance, pair_errors(self.covariance))
            if np.isfinite(degrees).any():
                z = _normal_scores(z, degrees)
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
            if self.covariance is not self.information:
                robust = np.diag(self.covariance)
                few = (self.degrees < FREE) | (self.low > 0) | (self.high > 0)
                # The mean of the items inherits the uncertainty of items with few votes. Of two
                # items, a score is half of the difference, whose error is known from both.
                lacking = np.where(few & (size > 2), self.pooled + finite - robust, 0.0)
                lacking = np.maximum(lacking, 0.0)
                others = np.bincount(self.part, lacking)[self.part] - lacking
                error = np.sqrt(np.maximum(robust + others / size**2, 0.0))
                found = quantile * error
                if np.isfinite(self.degrees).any():
                    found = student_width(error, self.degrees, level)
                width = np.where(few, np.maximum(width, found), found)
            # without a penalty and a maximum, very large widths depend on the last iteration
            ends.append(np.where(width > FARTHEST, np.inf, width))
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
            if self.covariance is not self.information:
                degrees = np.minimum(self.degrees, self.degrees[item])
                error = pair_errors(self.covariance)[:, item]
                found = student_width(error, degrees, level)
                few = self._few(degrees[:, None], one)[:, 0]
                width = np.where(few, np.maximum(width, found), found)
            width[item] = 0.0
            ends.append(np.where(width > FARTHEST, np.inf, width))
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


# ---------------------------------------------------------------- few votes

# For an item with fewer than 15 wins or 15 losses, the ends come from the interval of Clopper and
# Pearson (1934) for its share of wins, with its opponents at their scores. They are exact if all
# opponents are equally strong. Otherwise they are conservative: the number of wins is less spread
# (Hoeffding, 1956, On the distribution of the number of successes in independent trials).


#: The normal approximation is used from this number of wins and losses on.
_MANY = 15
_NEWTON_STEPS = 20
#: Log-odds beyond which probabilities do not change, also for steps in directions of recession.
FARTHEST = 1000.0


def item_information(fit: ContestFit) -> tuple[Floats, Floats]:
    """Return the information of each contest about its lead, and its sum for each item."""
    lead2 = fit.slopes().lead2
    first, second = fit.votes.first, fit.votes.second
    return lead2, add_up(first, lead2, fit.n_items) + add_up(second, lead2, fit.n_items)


def exact_excess(fit: ContestFit, level: float) -> tuple[Floats, Floats, Floats]:
    """Return the added variances of exact ends of items, and the shares of their opponents.

    For an item with few wins or few losses, let p be an end of the interval of Clopper and Pearson
    for its share of wins. The end of its score is where its expected share of wins is p, with its
    opponents at their scores. The added variance extends the normal interval with fixed opponents
    to this end, and is 0 if the interval is already longer. A tie is half a win.
    """
    n, votes = fit.n_items, fit.votes
    first, second, total = votes.first, votes.second, votes.total
    low, high = np.zeros((2, n))

    def of_items(by_first: Floats, by_second: Floats) -> Floats:
        return add_up(first, by_first, n) + add_up(second, by_second, n)

    weight = of_items(total, total)
    square = votes.squares.sum(axis=0)
    # the effective number of votes, for weights of different size
    number = np.divide(weight**2, of_items(square, square), np.zeros(n), where=weight > 0)
    scale = np.divide(number, weight, np.zeros(n), where=weight > 0)
    won = of_items(votes.counts[0], votes.counts[1]) * scale
    lost = of_items(votes.counts[1], votes.counts[0]) * scale
    few = (weight > 0) & (np.minimum(won, lost) < _MANY)
    if not few.any() or not fit.own_effects or fit.leans:
        return low, high, np.zeros((0, 0))
    lead2, information = item_information(fit)
    number_of = np.full(n, -1)
    number_of[few] = np.arange(int(few.sum()))
    one, two = few[first], few[second]
    lead = fit.leads()
    own = _OwnVotes(
        fit,
        np.append(number_of[first[one]], number_of[second[two]]),
        np.append(lead[one], -lead[two]),
        np.append(total[one], total[two]),
        np.ones(int(one.sum() + two.sum())),
    )
    known = information[few] + fit.ridge[:n][few]
    low[few], high[few] = own.excess(won[few], lost[few], number[few], known, level)
    across = add_up(first * n + second, lead2, n * n).reshape(n, n)
    shared = (across + across.T) / np.where(information > 0, information, 1.0)[:, None]
    return low, high, shared


def exact_effect_excess(fit: ContestFit, level: float) -> tuple[Floats, Floats]:
    """Return the added variances of exact ends of effects, as `exact_excess` for items.

    The votes of an effect are the votes with a nonzero covariate. Its wins are the votes for the
    item that the covariate favours.
    """
    n, votes, p = fit.n_items, fit.votes, fit.votes.X.shape[1]
    low, high = np.zeros((2, len(fit.weights) - n))
    if fit.leans:
        return low, high
    lead, lead2 = fit.leads(), fit.slopes().lead2
    for k in range(p):
        some = np.flatnonzero(votes.X[:, k])
        x, total, square = votes.X[some, k], votes.total[some], votes.squares.sum(axis=0)[some]
        number = float(total.sum() ** 2 / square.sum())
        scale = number / float(total.sum())
        first, second = votes.counts[0, some], votes.counts[1, some]
        won = float(np.where(x > 0, first, second).sum()) * scale
        lost = float(np.where(x > 0, second, first).sum()) * scale
        if min(won, lost) >= _MANY:
            continue
        own = _OwnVotes(fit, np.zeros_like(some), np.sign(x) * lead[some], total, np.abs(x))
        known = lead2[some] @ x**2 + fit.ridge[n + k]
        of_one = [np.array([value]) for value in (won, lost, number, known)]
        below, beyond = own.excess(of_one[0], of_one[1], of_one[2], of_one[3], level)
        low[k], high[k] = below[0], beyond[0]
    return low, high


class _OwnVotes(NamedTuple):
    """The votes of items, or of an effect, from their perspective.

    A change of 1 of a parameter changes the `leads` of its votes by `slopes`.
    """

    fit: ContestFit
    parameter: Ints  # of each vote
    leads: Floats
    weights: Floats
    slopes: Floats

    def excess(
        self, won: Floats, lost: Floats, number: Floats, known: Floats, level: float
    ) -> tuple[Floats, Floats]:
        """Return the added variances, given the numbers of votes and the information."""
        tail, quantile = (1 - level) / 2, float(ndtri((1 + level) / 2))
        wins = np.clip((won + number - lost) / 2, 0.0, number)
        losses = number - wins
        share = [np.zeros(len(wins)), np.ones(len(wins))]
        some, other = wins > 0, losses > 0
        share[0][some] = betaincinv(wins[some], losses[some] + 1, tail)
        share[1][other] = betaincinv(wins[other] + 1, losses[other], 1 - tail)
        found = []
        for wanted, sign in zip(share, (-1.0, 1.0), strict=True):
            reach = np.full(len(wins), np.inf)
            inner = (wanted > 0) & (wanted < 1)
            reach[inner] = np.maximum(sign * self._move(wanted, inner)[inner], 0.0)
            found.append(np.maximum((reach / quantile) ** 2 - 1 / known, 0.0))
        return found[0], found[1]

    def _move(self, wanted: Floats, inner: Bools) -> Floats:
        """Return the changes of the parameters that give the target shares of wins.

        Newton's method for the log-odds of the share, which are nearly linear in the parameter.
        Entries outside `inner` stay 0.
        """
        n, item = len(wanted), self.parameter
        moved = np.zeros(n)
        goal = logit(np.where(inner, wanted, 0.5))
        size = np.divide(add_up(item, self.weights * self.slopes, n), add_up(item, self.weights, n))

        def log_odds() -> Floats:
            leads = self.leads + self.slopes * moved[item]
            win, lose, tie = result_probabilities(leads, self.fit.model, self.fit.tie)
            # both sides are sums of positive terms, to avoid cancellation
            up = add_up(item, self.weights * (win + tie / 2), n)
            down = add_up(item, self.weights * (lose + tie / 2), n)
            return np.asarray(np.log(up) - np.log(down))

        step = 1e-4 / size
        for _ in range(_NEWTON_STEPS):
            here = log_odds()
            moved += step
            slope = np.maximum((log_odds() - here) / step, 0.1 * size)
            moved -= step
            change = np.where(inner, np.clip((goal - here) / slope, -4 / size, 4 / size), 0.0)
            moved += change
            if np.abs(change * size).max(initial=0.0) < 1e-10:
                break
        return moved


def open_interval(
    fit: ContestFit, effect: int, ends: tuple[float, float], level: float
) -> tuple[float, float]:
    """Return the interval of an effect that the votes may not bound.

    One end is then infinite. At the other end, the votes that the direction of recession makes more
    likely have their observed results with probability (1 - level) / 2.
    """
    assert fit.recession is not None
    low, high = ends
    down, up = (fit.recession.directions.get((effect, sign)) for sign in (-1, 1))
    if down is not None and up is not None:
        return -np.inf, np.inf
    direction = down if up is None else up
    if direction is None:
        return ends
    at, step = fit.n_items + effect, _exact_step(fit, direction, (1 - level) / 2)
    if step is None or step > 0:  # the votes are as unlikely at the estimate already
        return (low, np.inf) if down is None else (-np.inf, high)
    end = float(fit.weights[at] + direction[at] * step)
    return (end, np.inf) if down is None else (-np.inf, end)


def _exact_step(fit: ContestFit, direction: Floats, tail: float) -> float | None:
    """Return the step from the fit that gives the votes of a direction this probability.

    None if there is no such step, because two results stay possible in the limit.
    """
    weights = np.array([fit.weights, direction])
    leads, steps = (fit.votes.leads(w, fit.n_items) for w in weights)
    tie, tie_step = weights[:, -1] if fit.has_tie else (0.0, 0.0)
    known = fit.votes.counts > 0

    def value(step: float) -> Floats:
        return log_probabilities(leads + step * steps, fit.model, tie + step * tie_step)[known]

    counts = np.where(np.abs(value(1.0) - value(0.0)) > 1e-12, fit.votes.counts[known], 0.0)

    def excess(step: float) -> float:
        return float(counts @ value(step)) - float(np.log(tail))

    least = -np.inf
    if fit.model == "rao_kupper" and tie_step > 0:  # their parameter of ties is positive
        least = -tie / tie_step * (1 - 1e-9)
    # the probability of these votes rises along the direction
    reach = 1.0
    while reach < FARTHEST and (excess(max(-reach, least)) > 0 or excess(reach) < 0):
        reach *= 2
    return float(brentq(excess, max(-reach, least), reach)) if reach < FARTHEST else None


# ---------------------------------------------------------------- few judges

# The share of a judge is the fraction of the information of an item that comes from this judge.
# Robust errors use the correction of Bell and McCaffrey (2002, Survey Methodology 28), as if the
# score were a mean over judges: residuals are divided by 1 minus the share, and quantiles are from
# Student's t distribution. Without it, a judge with all votes on an item would seem to have no
# error, because the residuals of an item add up to 0 at the fit. If a single judge has 99 % or
# more, there is no robust error.


#: A judge with a larger share of the information counts as the only judge.
_ALL = 0.99


class JudgeShares(NamedTuple):
    """The share of each judge in the information of each item and each effect."""

    items: csr_array  # (n_judges, n_items)
    effects: Floats  # (n_judges, n_parameters - n_items)
    own: Floats  # as `effects`, with each effect as the only parameter
    spread: Floats  # the variance that differences between judges add to each effect

    def degrees(self) -> tuple[Floats, Floats]:
        """Return the degrees of freedom of items and of effects; 0 for a single judge."""
        fitted, own = (judge_degrees(csr_array(one)) for one in (self.effects, self.own))
        return judge_degrees(self.items), np.minimum(fitted, own)

    def numbers(self) -> tuple[Floats, Floats]:
        """Return the effective number of judges of items and effects."""
        found = []
        for shares in (self.items, csr_array(self.effects), csr_array(self.own)):
            squares = np.asarray(shares.multiply(shares).sum(axis=0)).ravel()
            found.append(np.divide(1.0, squares, np.zeros(len(squares)), where=squares > 0))
        return found[0], np.minimum(found[1], found[2])


def judge_shares(fit: ContestFit, judge: Ints, inverse: Floats) -> JudgeShares:
    """Compute the shares of judges, numbered from 0, for votes that are not merged.

    The information of an item comes from its own votes. The information of an effect is conditional
    on scores and other effects, where `inverse` is the model-based covariance. Because votes with a
    constant covariate then also have a share in its effect, through the scores, the shares of the
    effect as the only parameter count as well.
    """
    n, votes, n_judges = fit.n_items, fit.votes, int(judge.max()) + 1
    lead2, information = item_information(fit)
    ends = np.tile(judge, 2), np.append(votes.first, votes.second)
    items = csr_array((np.tile(lead2, 2), ends), shape=(n_judges, n))
    items.sum_duplicates()  # early versions of SciPy keep them
    known = np.divide(1.0, information, np.zeros(n), where=information > 0)
    n_effects = len(fit.weights) - n
    effects, alone = np.empty((2, n_judges, n_effects))
    for k in range(n_effects):
        if fit.has_tie and k == n_effects - 1:  # every vote has the same information about ties
            of_vote = own = votes.total
        else:
            own = lead2 * votes.X[:, k] ** 2
            of_vote = lead2 * votes.leads(inverse[:, n + k], n) ** 2
        effects[:, k] = np.bincount(judge, of_vote, n_judges)
        alone[:, k] = np.bincount(judge, own, n_judges)
    for one in (effects, alone):
        total = one.sum(axis=0)
        np.divide(one, total, one, where=total > 0)
    items.data *= known[items.indices]
    return JudgeShares(items, effects, alone, np.zeros(n_effects))


def pooled_variances(fit: ContestFit, shares: JudgeShares, robust: Floats, plain: Floats) -> Floats:
    """Return the variance of each item for the average correlation of the votes of a judge.

    If any two votes of a judge have the correlation r, for n votes by m judges in equal parts, the
    variance by the information is multiplied by 1 + (n / m - 1) r (Kish, 1965). `robust` and
    `plain` are the variances of the scores.
    """
    n, votes = fit.n_items, fit.votes
    number = add_up(votes.first, votes.total, n) + add_up(votes.second, votes.total, n)
    judges = shares.numbers()[0]
    each = np.divide(number, judges, np.ones(n), where=judges > 0) - 1
    some = (shares.degrees()[0] > 0) & (plain > 0)
    alike = float((robust[some] / plain[some] - 1).sum() / max(each[some].sum(), 1e-300))
    return plain * (1 + np.maximum(each, 0.0) * float(np.clip(alike, 0.0, 1.0)))


def judge_degrees(shares: csr_array) -> Floats:
    """Return Satterthwaite's degrees of freedom of means over judges with these shares, by column.

    A mean over judges with shares s and residuals e has the bias-reduced variance sum of s^2 e^2 /
    (1 - s), and 1 / sum of (s_g^2 if g = h, else s_g^2 s_h^2 / ((1 - s_g) (1 - s_h))) degrees of
    freedom: n - 1 for n equal shares.
    """
    square = shares.multiply(shares).tocsr()
    left = 1 - np.minimum(shares.tocsr().data, _ALL)
    over = square.copy()
    over.data = square.data / left
    sums = [np.asarray(one.sum(axis=0)).ravel() for one in (square, over, over.multiply(over))]
    degrees = 1 / np.maximum(sums[0] + sums[1] ** 2 - sums[2], 1e-300)
    top = np.asarray(shares.max(axis=0).toarray()).ravel()
    return np.where((top > _ALL) | (sums[0] == 0), 0.0, degrees)


def clustered_covariance(
    fit: ContestFit, judge: Ints, outcome: Ints, weight: Floats, bread: Floats
) -> tuple[Floats, JudgeShares]:
    """Return the covariance of the parameters clustered by judge, and the shares of the judges.

    `outcome` and `weight` refer to votes that are not merged, and `bread` is the model-based
    covariance. The sums of the scores of a judge are divided by the root of 1 minus the judge's
    share, unless this is 0: with a single judge, there is no robust error.
    """
    shares = judge_shares(fit, judge, bread)
    votes, slopes, at = fit.votes, fit.slopes(), np.arange(len(outcome))
    lead = weight * slopes.lead[outcome, at]
    n = shares.items.shape[0]
    ends = np.tile(judge, 2), np.append(votes.first, votes.second)
    # the same judges and items as in the shares, in the same order
    items = csr_array((np.append(lead, -lead), ends), shape=shares.items.shape)
    items.sum_duplicates()
    items.data /= np.sqrt(_left(shares.items.data))
    effects = [np.bincount(judge, lead * x, n) for x in votes.X.T]
    if fit.has_tie:
        effects.append(np.bincount(judge, weight * slopes.tie[outcome, at], n))
    scaled = np.array(effects).reshape(len(effects), n).T / np.sqrt(_left(shares.effects))
    scores = hstack([items, csr_array(scaled)], format="csr")
    meat = csr_array(scores.T @ scores)
    pull = fit.ridge * fit.weights  # the sum of the scores of all judges
    if pull.any():
        meat = csr_array(meat - np.outer(pull, pull) / n)
    spread = _spread(fit, judge, lead, shares, bread)
    return sandwich(bread, meat), shares._replace(spread=spread)


def _spread(
    fit: ContestFit, judge: Ints, lead: Floats, shares: JudgeShares, inverse: Floats
) -> Floats:
    """Return the variance that differences between judges add to each effect.

    If the effects of judges have the variance t^2, it adds t^2 sum of s^2 to an effect with shares
    s of the judges. The variance t^2 is estimated as in DerSimonian and Laird (1986), Controlled
    Clinical Trials 7, from the effect of each judge by one Newton step. `lead` has the scores of
    the votes.
    """
    n, votes = fit.n_items, fit.votes
    found = np.zeros(shares.effects.shape[1])
    for k in range(votes.X.shape[1]):
        s, variance = shares.effects[:, k], float(inverse[n + k, n + k])
        some = s > 0
        steps = np.bincount(judge, lead * votes.leads(inverse[:, n + k], n), len(s))[some]
        total = float((steps**2 / (s[some] * variance)).sum())
        left = 1 - float((s**2).sum())
        if left > 0:
            found[k] = max(0.0, (total - (some.sum() - 1)) * variance / left) * float((s**2).sum())
    return found


def sandwich(bread: Floats, meat: csr_array) -> Floats:
    """Return the product with the inverse information on both sides."""
    sparse = meat.nnz < 0.1 * bread.size  # for example with many items and few comparisons
    return np.asarray(bread @ ((meat if sparse else meat.toarray()) @ bread))


def _left(shares: Floats) -> Floats:
    """Return 1 minus the share of a judge; 1 for a single judge."""
    return np.where(shares > _ALL, 1.0, 1 - shares)
