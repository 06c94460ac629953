"""Elo and Glicko: ratings that are updated game by game, as baselines for leaderboards."""

from __future__ import annotations

from itertools import pairwise
from math import tanh
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels import Judgements
from sklearn_rankcal.labels._contests import Contests, contests_of, has_covariates, is_weighted
from sklearn_rankcal.labels._times import read_duration
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._parameters import check_number
from sklearn_rankcal.utils._typing import Floats, Ints

_POINTS = 400 / np.log(10)  # Elo points per unit of the log-odds
_Q = 1 / _POINTS  # the constant q of Glickman's paper


class Ratings(NamedTuple):
    """Ratings of the items after all games.

    Attributes
    ----------
    items : ndarray of shape (n_items,)
        The id of each item.
    ratings : ndarray of shape (n_items,)
        The ratings on Elo's scale; larger is better.
    deviations : ndarray of shape (n_items,) or None
        The rating deviations (RD) of Glicko, which are standard deviations.
    """

    items: NDArray[Any]
    ratings: Floats
    deviations: Floats | None


@checks_keywords
def elo_ratings(judgements: Judgements, *, k: float = 32.0, start: float = 1000.0) -> Ratings:
    """Update Elo ratings game by game.

    After each game, the rating of the first item grows by k times its result (1, 1/2 or 0) minus
    1 / (1 + 10^((r_second - r_first) / 400)), and that of the second item falls by as much.

    **The ratings depend on the order of the games**, since the last ones count most: the same votes
    in another order give other ratings. Use `aggregate` if strengths do not change, and
    `Judgements.faded` if they do; both use all votes at once, and have intervals.

    Parameters
    ----------
    judgements : Judgements
        Votes of one query. Games are in the order of their times, if these are known, and else in
        the order in which they were given.
    k : float, default=32
        The largest change of a rating by a game, in points.
    start : float, default=1000
        The rating of an item before its first game.

    Returns
    -------
    ratings : Ratings
        About a second for a million games.

    Raises
    ------
    ValueError
        If the judgements are not votes of one query, or if they have weights or covariates.

    References
    ----------
    Elo (1978), The Rating of Chessplayers, Past and Present.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import elo_ratings
    >>> games = [("owl", "cat"), ("owl", "cat"), ("cat", "owl")]
    >>> elo_ratings(Judgements.from_pairs(games)).ratings.round().tolist()  # owl and cat
    [1012.0, 988.0]
    >>> elo_ratings(Judgements.from_pairs(games[::-1])).ratings.round().tolist()  # cat and owl
    [983.0, 1017.0]
    """
    check_number(k, "k")
    check_number(abs(start), "start", positive=False)
    contests, _ = _read_games(judgements)
    rating = [float(start)] * judgements.queries.n_rows
    result = np.array([1.0, 0.0, 0.5])[contests.outcome]
    step, scale = float(k), np.log(10) / 800
    games = zip(contests.first.tolist(), contests.second.tolist(), result.tolist(), strict=True)
    for i, j, won in games:  # a recursion over games, which takes less than a microsecond each
        expected = 0.5 + 0.5 * tanh((rating[i] - rating[j]) * scale)
        change = step * (won - expected)
        rating[i] += change
        rating[j] -= change
    return Ratings(judgements.items, np.array(rating), None)


@checks_keywords
def glicko_ratings(
    judgements: Judgements,
    *,
    period: Any = None,
    c: float = 0.0,
    start: float = 1500.0,
    deviation: float = 350.0,
) -> Ratings:
    """Update Glicko ratings and their deviations, period by period.

    **The ratings depend on the order of the games**, since those of a period start from the ratings
    of the one before. Use `aggregate` if strengths do not change, and `Judgements.faded` if they
    do.

    Parameters
    ----------
    judgements : Judgements
        Votes of one query.
    period : str, timedelta or float, default=None
        The length of a rating period, such as ``"7 days"``, or a number if the times are numbers.
        None means that all games are in the same period, of which no order matters.
    c : float, default=0
        By how much a rating becomes uncertain in a period: its deviation RD becomes sqrt(RD^2 +
        c^2), and not larger than `deviation`.
    start, deviation : float, default=1500 and 350
        The rating and the deviation of an item before its first game.

    Returns
    -------
    ratings : Ratings

    Raises
    ------
    ValueError
        If the judgements are not votes of one query, if they have weights or covariates, or if
        `period` is given and times are not known.

    References
    ----------
    Glickman (1999), Parameter estimation in large dynamic paired comparison experiments, Applied
    Statistics 48; and The Glicko system, glicko.net, whose worked example is a test.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import glicko_ratings
    >>> found = glicko_ratings(Judgements.from_pairs([("owl", "cat"), ("owl", "cat")]))
    >>> found.ratings.round().tolist(), found.deviations.round().tolist()
    ([1747.0, 1253.0], [253.0, 253.0])
    """
    check_number(c, "c", positive=False)
    check_number(deviation, "deviation")
    check_number(abs(start), "start", positive=False)
    contests, time = _read_games(judgements)
    number = np.zeros(len(contests.first), dtype=np.int64)
    if period is not None:
        if time is None:
            raise ValueError("period needs times. Pass time= to Judgements.from_votes.")
        number = np.floor((time - time[0]) / read_duration(period, time, "period")).astype(np.int64)
    n = judgements.queries.n_rows
    rating, spread = np.full(n, float(start)), np.full(n, float(deviation))
    ends = np.append(np.flatnonzero(np.append(True, number[1:] != number[:-1])), len(number))
    result = np.array([1.0, 0.0, 0.5])[contests.outcome]
    before = 0
    for begin, end in pairwise(ends.tolist()):  # a loop over periods
        passed = int(number[begin]) - before  # also periods without games
        spread = np.minimum(np.sqrt(spread**2 + passed * c**2), deviation)
        before += passed
        games = slice(begin, end)
        rating, spread = glicko_period(
            rating, spread, contests.first[games], contests.second[games], result[games]
        )
    return Ratings(judgements.items, rating, spread)


def glicko_period(
    rating: Floats, deviation: Floats, first: Ints, second: Ints, result: Floats
) -> tuple[Floats, Floats]:
    """Update ratings by the games of a period: step 2 of Glickman's paper.

    `result` is 1 if the first item won, 1/2 for a tie and 0 otherwise.
    """
    n = len(rating)
    player, opponent = np.append(first, second), np.append(second, first)
    score = np.append(result, 1.0 - result)
    g = 1 / np.sqrt(1 + 3 * _Q**2 * deviation[opponent] ** 2 / np.pi**2)
    expected = 1 / (1 + np.exp(-_Q * g * (rating[player] - rating[opponent])))
    information = _Q**2 * np.bincount(player, g**2 * expected * (1 - expected), n)  # 1 / d^2
    variance = 1 / (1 / deviation**2 + information)
    change = _Q * variance * np.bincount(player, g * (score - expected), n)
    return rating + change, np.sqrt(variance)


def _read_games(judgements: Any) -> tuple[Contests, NDArray[Any] | None]:
    """Return the games in the order of their times, and the times."""
    if not isinstance(judgements, Judgements) or judgements.queries.n_queries > 1:
        raise ValueError("judgements must be Judgements of one query, made without groups=.")
    if has_covariates(judgements) or is_weighted(judgements) or judgements.count is not None:
        raise ValueError(
            "Ratings of games cannot use weights, counts, a position or covariates. Read the votes "
            "without them."
        )
    contests = contests_of(judgements)
    details = judgements.details
    if details is None or details.time is None:
        return contests, None
    time = details.time[contests.judgement]
    order = np.argsort(time, kind="stable")
    return contests.take(order), time[order]
