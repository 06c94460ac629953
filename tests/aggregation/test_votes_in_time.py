"""Votes in time: weights that fade, periods, and items whose strength changed."""

import datetime
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, stdtr

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation import BradleyTerry, strength_changes
from sklearn_rankcal.aggregation._changes import largest_p_values, relative_changes
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


def test_faded_intervals_contain_the_truth_of_votes_that_do_not_change():
    inside, trusting = [], []
    for seed in range(150):
        data = make_arena(
            600, n_models=4, category_spread=0, length=0, ties=0, position=0, random_state=seed
        )
        faded = read(data, position=False).faded("10 days")
        board = aggregate(faded, intervals="robust")
        truth = np.array([data.scores[int(name[1:])] for name in board.items])
        inside.append((board.score_low <= truth) & (truth <= board.score_high))
        # weights that were taken for numbers of votes would make the intervals too long
        fit = board._boards[0].fit
        half = 1.96 * np.sqrt(np.diag(fit.inverse()))
        trusting.append(np.abs(board.scores - truth) <= half)
    assert 0.92 < np.mean(inside) < 0.98
    assert np.mean(trusting) > 0.985


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


# ---------------------------------------------------------------- changes


def votes_of(rng, before, after, n, judges=None, share=None):
    """n votes in each of two periods, at the times 0 and 1; with `share`, of unequal items."""
    m, time = len(before), np.repeat([0, 1], n)
    a = rng.choice(m, size=2 * n, p=share)
    b = rng.choice(m, size=2 * n, p=share)
    if share is None:
        b = (a + rng.integers(1, m, size=2 * n)) % m
    else:
        b = np.where(a == b, (a + rng.integers(1, m, size=2 * n)) % m, b)
    scores = np.where(time[:, None] == 0, before, after)
    judge = None
    if judges is not None:
        judge = rng.integers(judges.shape[0], size=2 * n)
        scores = scores + judges[judge]
    at = np.arange(2 * n)
    won = rng.random(2 * n) < expit(scores[at, a] - scores[at, b])
    return Judgements.from_votes(
        a, b, np.where(won, a, b), time=time, judge=judge, items=list(range(m))
    )


def test_changes_are_differences_of_two_boards():
    rng = np.random.default_rng(0)
    scores = np.array([0.5, 0.2, 0.0, -0.7])
    votes = votes_of(rng, scores, scores, 400)
    found = strength_changes(votes, 1)
    boards = [aggregate(votes.between(*p), intervals="robust") for p in ((None, 1), (1, None))]
    order = [np.argsort(board.items) for board in boards]
    change = boards[1].scores[order[1]] - boards[0].scores[order[0]]
    half = [(b.score_high - b.scores)[o] for b, o in zip(boards, order, strict=True)]
    assert_allclose(found.change, change, atol=1e-6)  # none has changed: relative to all
    assert not found.changed.any()
    error = np.hypot(*half) / 1.959964
    assert_allclose(found.standard_error, error, rtol=2e-3)  # n / (n - 1) of each period


FREE = 1e6  # degrees of freedom of the normal distribution


def test_the_items_that_others_are_compared_with():
    change = np.array([2.0, 0.01, -0.01, 0.02, -0.02, 0.0])
    covariance = 0.01 * np.eye(6)
    found = relative_changes(change, covariance, np.full(6, FREE), 0.95)
    assert_allclose(found.value, change - change[1:].mean())  # without the one that has changed
    assert_allclose(found.error[0], 0.1 * np.sqrt(1 + 1 / 5))
    assert (found.p_value <= 0.05).tolist() == [True] + [False] * 5 and found.agree
    # relative to the mean of all, the others would seem to have changed as well
    assert (np.abs(change - change.mean()) / 0.1 > 2.7).all()


def p_value_of_set(change, covariance, degrees, some):
    some, n = list(some), len(some)
    contrast = np.eye(n) - 1 / n
    error = np.sqrt(np.diag(contrast @ covariance[np.ix_(some, some)] @ contrast.T))
    p = 2 * stdtr(degrees[some], -np.abs(contrast @ change[some]) / error)
    return min(1.0, p.min() * (n if n > 2 else 1))


def test_p_values_are_the_largest_of_all_sets_of_half_of_the_items():
    rng = np.random.default_rng(0)
    near, decisions = [], []
    for _ in range(60):
        m = int(rng.integers(3, 9))
        error = np.exp(rng.normal(scale=rng.choice([0, 0.5, 1]), size=m))
        covariance = np.diag(error**2) + rng.random() * np.ones((m, m))
        change = rng.multivariate_normal(np.zeros(m), covariance)
        change[: rng.integers(m // 2 + 1)] += rng.choice([2, 4, 6]) * rng.choice([1, error.max()])
        degrees = rng.choice([3.0, 20.0, FREE], size=m)
        found = largest_p_values(change, covariance, degrees)
        exact = np.zeros(m)
        for size in range((m + 1) // 2, m + 1):
            for some in combinations(range(m), size):
                p = p_value_of_set(change, covariance, degrees, some)
                exact[list(some)] = np.maximum(exact[list(some)], p)
        assert (found <= exact * (1 + 1e-9)).all()  # sets of these
        near.append((found > 0.9 * exact).mean())
        decisions.append(((found <= 0.05) == (exact <= 0.05)).mean())
    assert np.mean(near) > 0.97 and np.mean(decisions) > 0.995


#: In a few simulations chance looks like changes of unknown items.
QUIET = pytest.mark.filterwarnings(
    "ignore:Some items have changed:UserWarning", "ignore:No half of the items:UserWarning"
)


@QUIET
def test_the_reference_does_not_depend_on_precision():
    """Items 0 to 3 changed and are known less well; the limit of many votes, and a simulation."""
    changed = np.arange(9) < 4
    error = np.where(changed, 2.5, 1.0)
    for unit in (1e-6, 1e-3):
        exact = relative_changes(
            1.0 * changed, np.diag((unit * error) ** 2), np.full(9, FREE), 0.95
        )
        assert ((exact.p_value <= 0.05) == changed).all() and exact.agree
        assert_allclose(exact.value, changed, atol=1e-12)
    false, power = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = np.linspace(0.6, -0.6, 9)
        share = np.where(changed, 0.5, 3.0)
        share /= share.sum()
        votes = votes_of(rng, scores, scores + changed, 30_000, share=share)
        found = strength_changes(votes, 1)
        false.append(found.changed[~changed].any())
        power.append(found.changed[changed].mean())
        if np.isfinite(found.change).all():  # else no half of the items seems to be alike
            assert np.abs(found.change[~changed]).max() < 0.3
    assert np.mean(false) <= 0.1 and np.mean(power) > 0.9


def test_the_same_votes_backwards_tell_the_mirrored_story():
    """Two items change by the same amounts in opposite directions, and two do not."""
    n, items = 400, [0, 1, 2, 3]
    gap = np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]])  # of item 0, and with a minus sign of item 1
    rows = []
    for time in (0, 1):
        scores = np.array([gap[time, 0], -gap[time, 0], 0.0, 0.0])
        for i in items:
            for j in range(i):
                wins = round(n * expit(scores[i] - scores[j]))
                rows += [(i, j, i, time)] * wins + [(i, j, j, time)] * (n - wins)
    one, other, winner, time = map(np.array, zip(*rows, strict=True))
    found = [
        strength_changes(Judgements.from_votes(one, other, winner, time=at, items=items), 1)
        for at in (time, 1 - time)
    ]
    assert found[0].changed.tolist() == [True, True, False, False]
    assert_allclose(found[1].change, -found[0].change, atol=1e-9)
    assert_allclose(found[1].p_value, found[0].p_value, atol=1e-9)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(time))
        columns = one[order], other[order], winner[order]
        again = strength_changes(Judgements.from_votes(*columns, time=time[order], items=items), 1)
        assert_allclose(again.change, found[0].change, atol=1e-9)


def test_two_halves_that_changed_differently_are_both_possible():
    scores = np.zeros(4)
    votes = votes_of(np.random.default_rng(0), scores, np.array([1.5, 1.5, 0, 0]), 4000)
    with pytest.warns(UserWarning, match="cannot say which: [23] and [01] did not change alike"):
        found = strength_changes(votes, 1)
    assert not found.changed.any()
    assert (found.change[:2] > 0.5).all() and (found.change[2:] < -0.5).all()
    many = votes_of(np.random.default_rng(0), scores, np.array([3.0, 1.5, 0, -1.5]), 4000)
    with pytest.warns(UserWarning, match="No half of the items changed alike"):
        found = strength_changes(many, 1)
    assert not found.changed.any() and np.isnan(found.p_value).all()


def test_two_groups_that_no_votes_connect_are_refused():
    rng = np.random.default_rng(0)
    part = votes_of(rng, np.zeros(3), np.zeros(3), 300)
    winner, loser = part.comparisons[:2]
    columns = [np.concatenate([side, side + 3]) for side in (winner, loser)]
    time = np.tile(part.details.time, 2)
    votes = Judgements.from_votes(*columns, columns[0], time=time, items=list(range(6)))
    with pytest.raises(
        ValueError, match="connect 0 with 3 items and 3 with 3 others, but no votes"
    ):
        strength_changes(votes, 1)


@pytest.mark.parametrize("m", [4, 9, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unequal", [False, True])
def test_the_level_holds_when_up_to_half_of_the_items_changed(m, unequal):
    """Normal changes: unchanged items are found in at most 5 %, however large the others are."""
    n = 150 if m < 20 else 60
    for share in (0.0, 0.25, 0.5):
        changed = np.arange(m) < int(share * m)
        error = np.where(changed & unequal, 2.5, 1.0)
        for size in (3.0, 5.0, 9.0):
            rng, false, power = np.random.default_rng(m), [], []
            for _ in range(n):
                sign = rng.choice([-1, 1], size=m) if share == 0.5 else 1
                change = error * rng.normal(size=m) + size * error * changed * sign
                p = largest_p_values(change, np.diag(error**2), np.full(m, FREE))
                false.append((p[~changed] <= 0.05).any())
                power.append((p[changed] <= 0.05).mean() if changed.any() else 1.0)
            assert np.mean(false) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)
            assert np.mean(power) > 0.9 or size < 9.0 or share == 0.5


@QUIET
def test_false_alarms_are_rare_and_changes_are_found():
    false, power, wrong = [], [], []
    scores = np.linspace(0.6, -0.6, 6)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        false.append(strength_changes(votes_of(rng, scores, scores, 400), 1).changed.any())
        if seed < 100:
            after = scores + np.array([0, 0, 1.2, 0, 0, 0])
            found = strength_changes(votes_of(rng, scores, after, 600), 1).changed
            power.append(found[2])
            wrong.append(np.delete(found, 2).any())
    assert np.mean(false) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert np.mean(power) > 0.9
    assert np.mean(wrong) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)


@QUIET
def test_votes_of_the_same_judges_are_clusters():
    """Each judge votes in one period only, so that other judges look like a change."""
    m, false = 5, {"judges": [], "votes": []}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        tastes = rng.normal(scale=1.0, size=(60, m))
        time, n = np.repeat([0, 1], 1500), 3000
        judge = rng.integers(30, size=n) + 30 * time
        a = rng.integers(m, size=n)
        b = (a + rng.integers(1, m, size=n)) % m
        won = rng.random(n) < expit(tastes[judge, a] - tastes[judge, b])
        for name, known in (("judges", judge), ("votes", None)):
            votes = Judgements.from_votes(a, b, np.where(won, a, b), time=time, judge=known)
            false[name].append(strength_changes(votes, 1).changed.any())
    assert np.mean(false["judges"]) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
    assert np.mean(false["votes"]) > 0.3


@QUIET
def test_an_item_that_one_judge_votes_about_has_not_changed():
    """Nothing changed; an item has few votes, and all of them, or 95 %, are by one judge."""
    scores = np.linspace(0.6, -0.6, 6)
    often = np.array([1, 1, 1, 1, 1, 0.1]) / 5.1
    for share in (1.0, 0.95):
        false = []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            votes = votes_of(rng, scores, scores, 1500, share=often)
            winner, loser = votes.comparisons[:2]
            judge = rng.integers(30, size=3000)
            own = ((winner == 5) | (loser == 5)) & (rng.random(3000) < share)
            judge[own] = 30
            again = Judgements.from_votes(
                winner, loser, winner, time=votes.details.time, judge=judge, items=list(range(6))
            )
            false.append(strength_changes(again, 1).changed.any())
        assert np.mean(false) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)


def test_covariates_have_the_same_effect_in_both_periods():
    data = make_arena(4000, n_models=5, drift=0.0, length=1.5, ties=0.0, random_state=0)
    # in the second period the answers of the first model are longer, which is no strength
    late = data.time >= data.time[2000]
    length = data.log_length[:, 0].copy()
    rng = np.random.default_rng(0)
    longer = late * (1.0 * (data.model_a == "m0") - (data.model_b == "m0"))
    length += longer
    score = dict(zip(data.models, data.scores, strict=True))
    lead = [score[a] - score[b] for a, b in zip(data.model_a, data.model_b, strict=True)]
    won = rng.random(4000) < expit(np.array(lead) + 1.5 * length)
    winner = np.where(won, "model_a", "model_b")

    def changed(**options):
        votes = Judgements.from_votes(data.model_a, data.model_b, winner, time=data.time, **options)
        found = strength_changes(votes, data.time[2000])
        return found.items[found.changed].tolist()

    assert changed(covariates=length[:, None]) == []
    assert changed() == ["m0"]


def test_items_with_few_votes_are_not_tested():
    rng = np.random.default_rng(0)
    scores = np.linspace(0.6, -0.6, 5)
    votes = votes_of(rng, scores, scores, 400)
    first, second = votes.comparisons.winner, votes.comparisons.loser
    new = np.concatenate([first, np.full(9, 5)]), np.concatenate([second, np.arange(9) % 5])
    time = np.append(votes.details.time, np.ones(9))
    more = Judgements.from_votes(*new, new[0], time=time, items=list(range(6)))
    found = strength_changes(more, 1)
    assert np.isnan(found.change[5]) and np.isnan(found.p_value[5]) and not found.changed[5]
    assert np.isfinite(found.change[:5]).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"at": "2026-01-01"}, "at must be a number, like the times of the votes"),
        ({"at": 0}, "Only 0 items with at least 30 votes both before and after at=0"),
        ({"confidence_level": 2.0}, "confidence_level must be between"),
        ({"method": "borda"}, "must be BradleyTerry with own_effects=True"),
        ({"method": BradleyTerry(own_effects=False)}, "must be BradleyTerry with own_effects=True"),
    ],
)
def test_what_cannot_be_tested_is_refused(options, match):
    votes = votes_of(np.random.default_rng(0), np.zeros(4), np.zeros(4), 100)
    with pytest.raises(ValueError, match=match):
        strength_changes(votes, **{"at": 1, **options})


def test_changes_need_times_one_query_and_several_judges():
    votes = Judgements.from_votes(["a"], ["b"], ["a"], time=[1], judge=["ann"])
    with pytest.raises(ValueError, match="needs several judges, but there is only one"):
        strength_changes(votes, 1)
    with pytest.raises(ValueError, match="strength_changes needs the time of each vote"):
        strength_changes(Judgements.from_pairs([("a", "b")]), 1)
    grouped = Judgements.from_votes(["a"] * 2, ["b"] * 2, ["a"] * 2, groups=[0, 1], time=[0, 1])
    with pytest.raises(ValueError, match="of one query"):
        strength_changes(grouped, 1)
