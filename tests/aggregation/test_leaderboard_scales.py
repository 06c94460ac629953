"""Leaderboards on Elo's scale, with an anchor; and what their frames say of the votes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import norm

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation import LeastSquares, PlackettLuce
from sklearn_rankcal.datasets import make_arena

POINTS = 400 / np.log(10)


def read(data, **options):
    options = {"position": True, "covariates": data.log_length, **options}
    return Judgements.from_votes(data.model_a, data.model_b, data.winner, **options)


def dummies(data, anchor, weight=None):
    """Newton's method for logistic regression on dummies of all items but the anchor."""
    items = [name for name in data.models if name != anchor]
    n = len(data.winner)
    first, second = (np.asarray(m)[:, None] == items for m in (data.model_a, data.model_b))
    design = np.column_stack([first * 1.0 - second, np.ones(n), data.log_length])
    y = np.select([data.winner == "model_a", data.winner == "model_b"], [1.0, 0.0], 0.5)
    weight = np.ones(n) if weight is None else weight
    w = np.zeros(design.shape[1])
    for _ in range(30):
        p = expit(design @ w)
        inverse = np.linalg.inv((design * (weight * p * (1 - p))[:, None]).T @ design)
        w += inverse @ design.T @ (weight * (y - p))
    scores = design * (weight * (y - p))[:, None]
    votes = inverse * (weight**2).sum() / weight.sum()
    errors = [np.sqrt(np.diag(one)) for one in (votes, inverse @ scores.T @ scores @ inverse)]
    errors = [errors[0], np.maximum(*errors)]  # robust ones are never smaller
    errors = [one[: len(items)] for one in errors]
    return items, w[: len(items)], errors, w[-2:]


@pytest.mark.parametrize("kind", ["information", "robust", "judges"])
def test_intervals_relative_to_the_anchor_are_those_of_a_regression_without_it(kind):
    data = make_arena(1500, n_models=5, n_judges=30, taste=0.5, random_state=1)
    items, scores, errors, effects = dummies(data, "m2")
    plain = aggregate(
        read(data, judge=data.judge if kind == "judges" else None),
        intervals="information" if kind == "information" else "robust",
        confidence_level=0.9,
    )
    board = plain.rescale("elo", anchor=("m2", 1200))
    rows = [board.items.tolist().index(name) for name in items]
    assert_allclose(board.scores[rows], 1200 + POINTS * scores, atol=1e-5)
    low, high = board.score_low[rows], board.score_high[rows]
    if kind != "judges":
        half = norm.ppf(0.95) * errors[kind == "robust"]
        assert_allclose(high - low, 2 * POINTS * half, rtol=0.05)
    # an interval excludes the anchor exactly if the order of the two items is clear
    shares = np.array([plain.probability_above(name, "m2") for name in items])
    assert ((low > 1200) == (shares > 0.95)).all() and ((high < 1200) == (shares < 0.05)).all()
    anchor = board.items.tolist().index("m2")
    ends = board.score_low[anchor], board.scores[anchor], board.score_high[anchor]
    assert_allclose(ends, 1200)
    assert_allclose([one.value for one in board.coefficients], POINTS * effects, atol=1e-5)
    assert "where 'm2' has 1200; the intervals are for differences to the anchor" in str(board)


def test_ten_to_one_is_400_points_and_other_numbers_do_not_change():
    votes = [("owl", "cat")] * 10 + [("cat", "owl")]
    plain = aggregate(votes, intervals="robust")
    board = plain.rescale()
    assert_allclose(board.scores, [1200, 800])
    assert_allclose(board.score_low, 1000 + POINTS * plain.score_low)
    assert board.ranks.tolist() == plain.ranks.tolist()
    assert board.probability_above("owl", "cat") == plain.probability_above("owl", "cat")
    assert plain.scores.max() < 2 and plain.notes == ()  # the first board is as it was
    logit = plain.rescale("logit", anchor=("cat", 0))
    assert_allclose(logit.scores, [np.log(10), 0])


def test_intervals_from_resamples_are_shifted_and_the_text_says_so():
    data = make_arena(400, n_models=4, random_state=0)
    plain = aggregate(read(data), n_resamples=50)
    board = plain.rescale("elo", anchor=("m1", 1000))
    assert_allclose(
        board.score_high - board.score_low, POINTS * (plain.score_high - plain.score_low)
    )
    assert_allclose(board.score_high - board.scores, POINTS * (plain.score_high - plain.scores))
    assert "the intervals are for the scores, not for differences" in str(board)


def test_ends_that_votes_do_not_bound_stay_infinite():
    ring = [(one, other) for one in "bcde" for other in "bcde" if one != other]
    board = aggregate([*ring, ("a", "b"), ("a", "c")], intervals="information")
    assert board.score_high[board.items == "a"] == np.inf
    by_other = board.rescale(anchor=("b", 1000))
    assert by_other.score_high[by_other.items == "a"] == np.inf
    assert np.isfinite(by_other.score_high[by_other.items != "a"]).all()
    by_open = board.rescale(anchor=("a", 1000))  # how far the others are below is not bounded
    assert (by_open.score_low[by_open.items != "a"] == -np.inf).all()
    assert np.isfinite(by_open.score_high).all()


def test_each_query_has_the_anchor():
    data = make_arena(2000, n_models=4, random_state=0)
    votes = read(data, groups=data.category)
    board = aggregate(votes, intervals="robust").rescale(anchor=("m0", 1000))
    assert_allclose(board.scores[board.items == "m0"], 1000)
    alone = data.category == "c1"
    data = {name: data[name][alone] for name in ("model_a", "model_b", "winner", "log_length")}
    one = aggregate(
        Judgements.from_votes(
            data["model_a"], data["model_b"], data["winner"], position=True,
            covariates=data["log_length"],
        ),
        intervals="robust",
    ).rescale(anchor=("m0", 1000))  # fmt: skip
    mine = board.groups == "c1"
    assert_allclose(board.score_low[mine], one.score_low, atol=1e-6)


@pytest.mark.parametrize("method", [LeastSquares(), PlackettLuce()])
def test_other_methods_whose_scores_are_log_odds(method):
    votes = [("owl", "cat")] * 10 + [("cat", "owl")]
    plain = aggregate(votes, method)
    board = plain.rescale(anchor=("cat", 0))
    assert_allclose(board.scores[0], POINTS * (plain.scores[0] - plain.scores[1]))


@pytest.mark.parametrize(
    ("votes", "method", "options", "match"),
    [
        ([("a", "b")], "btl", {"anchor": ("c", 1000)}, "There is no item 'c'. There are: 'a', 'b'"),
        ([("a", "b")], "btl", {"anchor": "a"}, r"must be a pair \(item, score\)"),
        ([("a", "b")], "btl", {"anchor": ("a", "x")}, "must be a finite number; got 'x'"),
        ([("a", "b")], "btl", {"anchor": ("a", np.inf)}, "must be a finite number; got inf"),
        ([("a", "b")], "btl", {"scale": "ello"}, "Unknown scale 'ello'. Did you mean 'elo'"),
        ([("a", "b")], "borda", {}, r"The scores of Borda\(\) are not log-odds"),
    ],
)
def test_what_has_no_scale_is_refused(votes, method, options, match):
    with pytest.raises(ValueError, match=match):
        aggregate(votes, method).rescale(**options)


@pytest.mark.filterwarnings("ignore::sklearn_rankcal.exceptions.DisconnectedComparisonsWarning")
def test_scales_need_comparisons():
    with pytest.raises(ValueError, match="rescaled already"):
        aggregate([("a", "b")]).rescale().rescale()
    with pytest.raises(ValueError, match="do not connect all items"):
        aggregate([("a", "b"), ("c", "d")]).rescale()
    lonely = Judgements.from_pairs([("a", "b")], items=["a", "b", "c"])
    with pytest.raises(ValueError, match="'c' has no score"):
        aggregate(lonely).rescale(anchor=("c", 1000))
    assert np.isnan(aggregate(lonely).rescale(anchor=("a", 1000)).scores[2])


# ---------------------------------------------------------------- frames


def frame_of(judgements, method="btl"):
    pytest.importorskip("pandas")
    return aggregate(judgements, method).to_frame().set_index("item")


def test_votes_are_counted_as_by_hand():
    first = ["a", "a", "b", "c", "a"]
    second = ["b", "c", "c", "a", "b"]
    winner = ["a", "tie", "c", "c", "b"]
    time = np.array(["2026-01-05", "2026-01-01", "2026-01-03", "2026-01-09", "2026-01-02"], "M8[D]")
    frame = frame_of(Judgements.from_votes(first, second, winner, time=time))
    assert frame.loc["a", "votes"] == 4 and frame.loc["b", "votes"] == 3
    assert_allclose(frame.loc[["a", "b", "c"], "win_share"], [1.5 / 4, 1 / 3, 2.5 / 3])
    assert str(frame.loc["a", "first_vote"])[:10] == "2026-01-01"
    assert str(frame.loc["a", "last_vote"])[:10] == "2026-01-09"
    assert str(frame.loc["b", "first_vote"])[:10] == "2026-01-02"
    assert str(frame.loc["b", "last_vote"])[:10] == "2026-01-05"
    assert frame["few_votes"].all()


def test_counts_judgements_of_several_pairs_and_orders():
    pairs = [("a", "b"), ("b", "a"), ("b", "c")]
    frame = frame_of(Judgements.from_pairs(pairs, count=[20, 15, 4]))
    assert frame.loc[["a", "b", "c"], "votes"].tolist() == [35, 39, 4]
    assert frame.loc[["a", "b", "c"], "few_votes"].tolist() == [False, False, True]
    assert_allclose(frame.loc["b", "win_share"], 19 / 39)
    session = Judgements.from_pairs([("a", "b"), ("a", "c"), ("b", "a")], judgement=[1, 1, 2])
    frame = frame_of(session, "borda")
    assert frame.loc[["a", "b", "c"], "votes"].tolist() == [2, 2, 1]
    orders = Judgements.from_orders([["a", "b", "c"], ["b", "a"]], count=[2, 5])
    frame = frame_of(orders, "plackett_luce")
    assert frame.loc[["a", "b", "c"], "votes"].tolist() == [7, 7, 2]
    assert "win_share" not in frame


@pytest.mark.filterwarnings("ignore::sklearn_rankcal.exceptions.DisconnectedComparisonsWarning")
def test_an_item_without_votes_has_no_share_and_no_time():
    votes = Judgements.from_votes(["a"], ["b"], ["a"], items=["a", "b", "c"], time=[5])
    frame = frame_of(votes)
    assert frame.loc["c", "votes"] == 0 and frame.loc["c", "few_votes"]
    assert frame.loc["c", ["win_share", "first_vote", "last_vote"]].isna().all()
    assert frame.loc["a", "first_vote"] == 5


# ---------------------------------------------------------------- weights


def test_weights_are_no_numbers_of_votes():
    data = make_arena(600, n_models=4, random_state=2)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, size=600)
    votes = read(data, weight=weight)
    with pytest.raises(ValueError, match="would read the weights of these votes as numbers"):
        aggregate(votes, intervals="information")
    items, scores, (_, errors), _ = dummies(data, "m2", weight)
    board = aggregate(votes, intervals="robust").rescale("logit", anchor=("m2", 0.0))
    rows = [board.items.tolist().index(name) for name in items]
    assert_allclose(board.scores[rows], scores, atol=1e-7)
    length = (board.score_high - board.score_low)[rows]
    assert_allclose(length, 2 * norm.ppf(0.975) * errors, rtol=0.1)
    # the same weight for all votes does not change the intervals
    one, other = aggregate(read(data), intervals="robust"), read(data, weight=np.full(600, 7.0))
    assert_allclose(aggregate(other, intervals="robust").score_high, one.score_high, atol=1e-6)
