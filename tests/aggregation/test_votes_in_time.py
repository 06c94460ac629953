"""Votes in time: weights that fade, and periods."""

import datetime

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.datasets import make_arena

pytestmark = pytest.mark.simulation


def read(data, kept=slice(None), **options):
    options = {"position": True, "time": data.time[kept], **options}
    return Judgements.from_votes(
        data.model_a[kept], data.model_b[kept], data.winner[kept], **options
    )


# ---------------------------------------------------------------- fading


@pytest.mark.parametrize(
    "half_life",
    ["30 days", "30d", "720 hours", "4.285714285714286 weeks", datetime.timedelta(days=30),
     np.timedelta64(30, "D")],
)  # fmt: skip
def test_faded_votes_are_votes_of_smaller_weight(half_life):
    data = make_arena(800, n_models=4, random_state=0)
    age = (data.time.max() - data.time) / np.timedelta64(1, "D")
    by_hand = read(data, weight=0.5 ** (age / 30))
    faded = read(data).faded(half_life)
    one, other = aggregate(faded, intervals="robust"), aggregate(by_hand, intervals="robust")
    assert_allclose(one.scores, other.scores, atol=1e-7)
    assert_allclose(one.score_low, other.score_low, atol=1e-7)
    assert np.abs(one.scores - aggregate(read(data)).scores).max() > 0.01


def test_numbers_as_times_and_another_now():
    votes = Judgements.from_votes(["a"] * 3, ["b"] * 3, ["a", "b", "tie"], time=[0, 5, 10])
    found = votes.faded(5, now=20).preferences()
    assert_allclose(found.weight, [1 / 16 + 1 / 8, 1 / 8 + 1 / 8])
    assert_allclose(votes.faded(5).faded(10, now=10).preferences().weight[0], 1 / 4 * 1 / 2 + 1 / 2)


def test_weights_of_faded_votes_are_no_counts():
    data = make_arena(800, n_models=4, random_state=0)
    faded = read(data).faded("20 days")
    with pytest.raises(ValueError, match="would read the weights of these votes"):
        aggregate(faded, intervals="information")
    # the old votes count little, so that intervals are longer than those of all votes
    board, full = aggregate(faded, intervals="robust"), aggregate(read(data), intervals="robust")
    assert ((board.score_high - board.score_low) > (full.score_high - full.score_low)).all()
    # and they are those of resamples
    drawn = aggregate(faded, n_resamples=300)
    ratio = (drawn.score_high - drawn.score_low) / (board.score_high - board.score_low)
    assert 0.85 < ratio.mean() < 1.15


def test_a_count_of_faded_votes_is_as_many_rows():
    data = make_arena(300, n_models=4, random_state=0)
    count = np.random.default_rng(0).integers(1, 4, size=300)
    rows = np.repeat(np.arange(300), count)
    boards = [
        aggregate(votes.faded("20 days"), intervals="robust")
        for votes in (read(data, count=count), read(data, rows))
    ]
    assert_allclose(boards[0].score_low, boards[1].score_low, atol=1e-7)


@pytest.mark.parametrize(
    ("half_life", "options", "match"),
    [
        ("soon", {}, "half_life must be a duration > 0, such as '30 days'"),
        ("0 days", {}, "half_life must be a duration > 0"),
        ("3 months", {}, "half_life must be a duration > 0"),
        (30, {}, "half_life must be a duration > 0"),
        ("30 days", {"now": 7}, "now must be a time stamp, like the times of the votes"),
        ("30 days", {"now": "2026-01-05"}, "now=2026-01-05T00:00:00.000000 is before"),
        ("30 days", {"now": "late"}, "now must be numbers or time stamps"),
    ],
)
def test_half_lives_and_times_that_are_refused(half_life, options, match):
    votes = read(make_arena(100, random_state=0))
    with pytest.raises(ValueError, match=match):
        votes.faded(half_life, **options)


UTC, EAST = datetime.UTC, datetime.timezone(datetime.timedelta(hours=2))
NOON = datetime.datetime(2026, 1, 1, 12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "time",
    [
        ["2026-01-01T14:00:00+02:00", "2026-01-01T12:00:00Z"],
        ["2026-01-01 14:00:00.000+0200", "2026-01-01 12:00+00:00"],
        [NOON.replace(hour=14, tzinfo=EAST), NOON.replace(tzinfo=UTC)],
        [NOON.replace(hour=14, tzinfo=EAST), "2026-01-01T12:00:00Z"],
        ["2026-01-01T12:00:00", "2026-01-01 12:00"],
    ],
)
def test_times_of_different_zones_are_the_same_moment(time):
    votes = Judgements.from_votes(["a", "a"], ["b", "b"], ["a", "b"], time=time)
    assert votes.details.time.tolist() == [NOON, NOON]


@pytest.mark.parametrize(
    ("time", "match"),
    [
        (
            ["2026-01-01T12:00:00", "2026-01-01T12:00:00Z"],
            "mixes .* row 0 has 2026-01-01T12:00:00,",
        ),
        ([NOON, NOON.replace(tzinfo=UTC)], "mixes time stamps with and without a time zone"),
        ([NOON, None], "time is missing for 1 vote, first in row 1"),
        (
            ["2026-01-01T12:00:00Z", np.datetime64("NaT", "s")],
            "missing for 1 vote, first in row 1",
        ),
        (["noon", "noon"], "time must be numbers or time stamps"),
        (["2026-01-01T12:00:00Z"], "time has 1 entry"),
    ],
)
def test_times_that_cannot_be_read_are_refused(time, match):
    with pytest.raises(ValueError, match=match):
        Judgements.from_votes(["a", "a"], ["b", "b"], ["a", "b"], time=time)


def test_votes_without_times_are_refused():
    votes = Judgements.from_votes(["a"], ["b"], ["a"])
    for call in (lambda: votes.faded(3), lambda: votes.between(1, 2)):
        with pytest.raises(ValueError, match="needs the time of each vote"):
            call()
    numbers = Judgements.from_votes(["a"], ["b"], ["a"], time=[1])
    with pytest.raises(ValueError, match="half_life must be a number, like the times"):
        numbers.faded("3 days")
    with pytest.raises(ValueError, match="now must be a number, like the times"):
        numbers.faded(3, now="2026-01-01")


# ---------------------------------------------------------------- periods


@pytest.mark.parametrize("grouped", [False, True])
def test_votes_of_a_period_are_those_of_the_table(grouped):
    data = make_arena(6000, n_models=4, n_judges=20, n_categories=3, random_state=1)
    judge, groups = data.judge, data.category if grouped else None
    start, end = np.datetime64("2026-02-01"), np.datetime64("2026-02-20")
    kept = (data.time >= start) & (data.time < end)
    options = {"covariates": data.log_length, "judge": judge, "groups": groups}
    taken = {name: None if value is None else value[kept] for name, value in options.items()}
    one = read(data, **options).between(start, end)
    other = read(data, kept, **taken)
    assert one.n_judgements == kept.sum() == other.n_judgements
    boards = [aggregate(votes, intervals="robust") for votes in (one, other)]
    keys = [sorted(zip(b.groups.tolist(), b.items.tolist(), b.scores.round(7), b.score_low.round(6),
                       strict=True)) for b in boards]  # fmt: skip
    assert [key[:2] for key in keys[0]] == [key[:2] for key in keys[1]]
    assert_allclose([key[2:] for key in keys[0]], [key[2:] for key in keys[1]], atol=1e-6)
    assert (one.details.time == other.details.time).all()


def test_ends_of_periods():
    votes = Judgements.from_votes(["a"] * 4, ["b", "b", "c", "d"], ["a"] * 4, time=[1, 2, 3, 4])
    assert votes.between(2, 4).n_judgements == 2
    assert votes.between(2, 4).items.tolist() == ["a", "b", "c"]
    assert votes.between(end=3).items.tolist() == ["a", "b"]
    assert votes.between(3).items.tolist() == ["a", "c", "d"]
    assert votes.between().n_judgements == 4
    with pytest.raises(ValueError, match="No vote is between 5 and None; the first is at 1"):
        votes.between(5)
