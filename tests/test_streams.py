"""Elo and Glicko, compared with loops and with the example of Glickman."""

import datetime

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation import elo_ratings, glicko_ratings
from sklearn_rankcal.aggregation._streams import glicko_period
from sklearn_rankcal.datasets import make_arena


def read(data, **options):
    return Judgements.from_votes(data.model_a, data.model_b, data.winner, **options)


def elo_by_hand(data, order, k, start):
    rating = dict.fromkeys(data.models.tolist(), start)
    for row in order:
        a, b = data.model_a[row], data.model_b[row]
        result = {"model_a": 1, "model_b": 0, "tie": 0.5}[data.winner[row]]
        expected = 1 / (1 + 10 ** ((rating[b] - rating[a]) / 400))
        rating[a] += k * (result - expected)
        rating[b] += k * ((1 - result) - (1 - expected))
    return rating


def by_name(found):
    return dict(zip(found.items.tolist(), found.ratings.tolist(), strict=True))


def test_elo_is_the_loop_over_games():
    data = make_arena(500, n_models=5, random_state=0)
    found = by_name(elo_ratings(read(data), k=20, start=1200))
    expected = elo_by_hand(data, range(500), 20, 1200)
    assert_allclose([found[name] for name in expected], list(expected.values()))
    assert_allclose(sum(found.values()), 5 * 1200)


def test_games_are_in_the_order_of_their_times():
    data = make_arena(300, n_models=4, random_state=1)
    time = np.random.default_rng(0).permutation(300)
    found = by_name(elo_ratings(read(data, time=time)))
    expected = elo_by_hand(data, np.argsort(time), 32, 1000)
    assert_allclose([found[name] for name in expected], list(expected.values()))
    other = by_name(elo_ratings(read(data)))
    assert max(abs(found[name] - other[name]) for name in found) > 5  # the order matters
    board, again = aggregate(read(data, time=time)), aggregate(read(data))
    assert_allclose(board.scores, again.scores)  # here it does not


def test_the_example_of_glickman():
    rating, deviation = np.array([1500.0, 1400, 1550, 1700]), np.array([200.0, 30, 100, 300])
    first, second = np.zeros(3, dtype=np.int64), np.array([1, 2, 3])
    found, spread = glicko_period(rating, deviation, first, second, np.array([1.0, 0.0, 0.0]))
    assert round(found[0]) == 1464 and round(spread[0], 1) == 151.4
    turned, width = glicko_period(rating, deviation, second, first, np.array([0.0, 1.0, 1.0]))
    assert_allclose(turned, found)
    assert_allclose(width, spread)


def test_one_period_does_not_depend_on_the_order():
    data = make_arena(400, n_models=5, random_state=0)
    one = by_name(glicko_ratings(read(data)))
    time = np.random.default_rng(0).permutation(400)
    other = by_name(glicko_ratings(read(data, time=time)))
    assert_allclose([other[name] for name in one], list(one.values()))
    board = aggregate(read(data))
    order = [name for name, _ in sorted(one.items(), key=lambda pair: -pair[1])]
    assert order == board.items[board.rows_of()].tolist()


@pytest.mark.parametrize("period", ["7 days", datetime.timedelta(days=7), np.timedelta64(1, "W")])
def test_periods_are_updated_one_after_the_other(period):
    data = make_arena(600, n_models=4, random_state=0)
    found = glicko_ratings(read(data, time=data.time), period=period, c=40.0, deviation=300.0)
    names = {name: k for k, name in enumerate(found.items.tolist())}
    rating, spread = np.full(4, 1500.0), np.full(4, 300.0)
    week = (data.time - data.time.min()) // np.timedelta64(7, "D")
    for number in range(int(week.max()) + 1):
        if number:
            spread = np.minimum(np.sqrt(spread**2 + 40.0**2), 300.0)
        mine = np.flatnonzero(week == number)
        rating, spread = glicko_period(
            rating, spread,
            np.array([names[name] for name in data.model_a[mine]]),
            np.array([names[name] for name in data.model_b[mine]]),
            np.array([{"model_a": 1.0, "tie": 0.5}.get(word, 0.0) for word in data.winner[mine]]),
        )  # fmt: skip
    assert_allclose(found.ratings, rating)
    assert_allclose(found.deviations, spread)


def test_a_period_without_games_makes_ratings_uncertain():
    games = [("a", "b"), ("b", "a"), ("a", "b"), ("b", "a")]
    first, second = zip(*games, strict=True)
    read_at = {
        last: Judgements.from_votes(first, second, first, time=[0, 0, 0, last]) for last in (1, 5)
    }
    soon, late = (glicko_ratings(votes, period=1, c=50).deviations for votes in read_at.values())
    assert (late > soon).all()
    games = np.array([0, 1, 0]), np.array([1, 0, 1]), np.ones(3)
    found, spread = glicko_period(np.full(2, 1500.0), np.full(2, 350.0), *games)
    spread = np.sqrt(spread**2 + 5 * 50**2)
    _, expected = glicko_period(found, spread, np.array([1]), np.array([0]), np.ones(1))
    assert_allclose(late, expected)


def test_deviations_are_standard_errors_of_constant_strengths():
    """With one period and a wide start, ratings are near those of the maximum likelihood."""
    data = make_arena(
        4000, n_models=4, ties=0, category_spread=0, position=0, length=0, random_state=0
    )
    found = glicko_ratings(read(data, time=np.arange(4000)), period=100)
    board = aggregate(read(data)).rescale(anchor=("m0", 1500))
    elo = dict(zip(board.items.tolist(), board.scores.tolist(), strict=True))
    rating = by_name(found)
    gaps = [rating[name] - rating["m0"] - (elo[name] - 1500) for name in rating]
    assert np.abs(gaps).max() < 60


@pytest.mark.parametrize("function", [elo_ratings, glicko_ratings])
def test_what_has_no_stream_is_refused(function):
    with pytest.raises(ValueError, match="of one query"):
        function(Judgements.from_pairs([("a", "b"), ("a", "b")], groups=[0, 1]))
    with pytest.raises(ValueError, match="of one query"):
        function([("a", "b")])
    for options in ({"weight": [2.0]}, {"count": [2]}, {"position": True}):
        votes = Judgements.from_votes(["a"], ["b"], ["a"], **options)
        with pytest.raises(ValueError, match="cannot use weights, counts, a position or covar"):
            function(votes)
    with pytest.raises(ValueError, match="orders or selections"):
        function(Judgements.from_orders([["a", "b", "c"]]))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"c": -1}, "c must be a finite number >= 0"),
        ({"deviation": 0}, "deviation must be a finite number > 0"),
        ({"start": np.nan}, "start must be"),
        ({"period": "7 days"}, "period needs times"),
    ],
)
def test_numbers_of_glicko(options, match):
    with pytest.raises(ValueError, match=match):
        glicko_ratings(Judgements.from_pairs([("a", "b")]), **options)


def test_numbers_of_elo_and_periods():
    with pytest.raises(ValueError, match="k must be a finite number > 0"):
        elo_ratings(Judgements.from_pairs([("a", "b")]), k=0)
    votes = Judgements.from_votes(["a"], ["b"], ["a"], time=[1])
    with pytest.raises(ValueError, match="period must be a number, as the times"):
        glicko_ratings(votes, period="7 days")
    far = Judgements.from_pairs([("a", "b")] * 20)  # no overflow
    assert np.isfinite(elo_ratings(far, k=1e6).ratings).all()
