"""Ends of intervals of items and effects with few wins or few losses.

For an item with fewer than 15 wins or 15 losses, the ends come from the interval of Clopper and
Pearson (1934) for its share of wins, with its opponents at their scores. They are exact if all
opponents are equally strong. Otherwise they are conservative: the number of wins is less spread
(Hoeffding, 1956).

References: Clopper and Pearson (1934), The use of confidence or fiducial limits, Biometrika 26.
Hoeffding (1956), On the distribution of the number of successes in independent trials, Ann. Math.
Statist. 27.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, logit, ndtri

from sklearn_rankcal.aggregation._contest_model import ContestFit
from sklearn_rankcal.aggregation._vote_models import log_probabilities, result_probabilities
from sklearn_rankcal.utils._numbers import add_up
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

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
            up, down = (add_up(item, self.weights * (p + tie / 2), n) for p in (win, lose))
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
