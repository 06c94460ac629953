"""Leaderboards of few votes, few judges and exact ties: what they must not be sure of."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import beta
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation import BradleyTerry
from sklearn_rankcal.aggregation._errors import probability_first  # the formula by itself

from ..covering import covering

pytestmark = pytest.mark.simulation

KINDS = ("information", "robust", "resamples")


def board_of(votes, kind, **options):
    if kind == "resamples":
        return aggregate(votes, n_resamples=400, **options)
    return aggregate(votes, intervals=kind, **options)


def repeat(**counts):
    """Votes such as a_b=3 for three votes in which a beat b."""
    return [pair for key, n in counts.items() for pair in [tuple(key.split("_"))] * n]


# ---------------------------------------------------------------- few votes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_newcomer_that_won_few_votes_is_not_first(kind, n):
    board = board_of([*repeat(a_b=150, b_a=50), *[("new", "a")] * n], kind)
    assert board.items[board.rows_of()[0]] == "new"
    assert not board.is_first_clear() and "first place is open" in str(board)
    assert board.rank_high[board.items.tolist().index("new")] > 1
    if kind != "resamples":
        assert {"new", "a"} <= set(board.may_be_first())
        low, high = board.simultaneous_ranks()
        assert low[1] == 1 and high[0] > 1


@pytest.mark.parametrize("kind", ["information", "robust"])
def test_a_newcomer_that_won_all_of_many_votes_is_first(kind):
    n = 20
    board = board_of([*repeat(a_b=3000, b_a=3000), *[("new", "a"), ("new", "b")] * (n // 2)], kind)
    assert board.is_first_clear() and board.may_be_first().tolist() == ["new"]


@pytest.mark.parametrize("wins, n", [(0, 1), (1, 1), (1, 2), (2, 3), (4, 5), (3, 10), (29, 30)])
@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_the_ends_of_few_votes_are_those_of_clopper_and_pearson(wins, n, ties):
    """With opponents that many votes measure, the share at each end is exact."""
    strong = repeat(a_b=90_000, b_a=30_000)
    votes = [*strong, *[("new", "a")] * wins, *[("a", "new")] * (n - wins)]
    board = aggregate(votes, BradleyTerry(ties=ties), intervals="information")
    place = {name: k for k, name in enumerate(board.items.tolist())}
    if 0 < wins < n:
        board = board.rescale("logit", anchor=("a", 0.0))
        ends = [beta.ppf(0.025, wins, n - wins + 1), beta.ppf(0.975, wins + 1, n - wins)]
        found = [board.score_low[place["new"]], board.score_high[place["new"]]]
        # the normal interval of the log-odds reaches farther down where nearly all were won
        if wins < 29:
            np.testing.assert_allclose(expit(found), ends, atol=2e-3)
        assert expit(found[0]) <= ends[0] + 2e-3 and expit(found[1]) >= ends[1] - 2e-3
    else:
        infinite = board.score_high if wins else board.score_low
        assert np.isinf(infinite[place["new"]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_ties_say_little(kind, n):
    votes = Judgements.from_pairs([("a", "b")] * n, tied=[True] * n)
    board = board_of(votes, kind)
    assert (board.score_high - board.score_low > 0.8).all() and board.ranks.tolist() == [1, 1]
    assert (board.rank_low == 1).all() and (board.rank_high == 2).all()


def false_first(n, kind, repeats, seed):
    """How often a newcomer is first that is as good as the best, and how often its interval holds.

    By the number of its votes, against an item that is as good and one that is not.
    """
    rng = np.random.default_rng([n, seed])
    first = alone = held = 0
    for _ in range(repeats):
        k = rng.binomial(200, 0.5)
        votes = repeat(a_b=k, b_a=200 - k, a_c=150, c_a=50, b_c=150, c_b=50)
        for _ in range(n):
            rival = "ab"[rng.integers(2)]
            votes.append(("new", rival) if rng.random() < 0.5 else (rival, "new"))
        board = board_of(votes, kind)
        best = board.items[board.rows_of()[0]]
        first += best == "new" and board.is_first_clear()
        if kind != "resamples":
            alone += board.may_be_first().tolist() == ["new"]
        row = board.items.tolist().index("new")
        held += board.score_low[row] <= np.log(3) / 4 <= board.score_high[row]
    return first / repeats, alone / repeats, held / repeats


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "n"), covering(itertools.product(KINDS, [1, 2, 3, 5, 7, 10])))
def test_a_newcomer_is_seldom_first_by_chance(kind, n):
    repeats = 60 if kind == "resamples" else 200
    first, alone, held = false_first(n, kind, repeats, seed=0)
    noise = 3 * np.sqrt(0.025 / repeats)
    assert max(first, alone) <= 0.025 + noise and held >= 0.93 - noise


# ---------------------------------------------------------------- few judges


def votes_of_judges(rng, n_judges_of_item, taste, n_votes=1500, n_items=8, n_judges=60):
    """Votes of 60 judges; one item has 60 votes, of few of them."""
    true = np.linspace(-1, 1, n_items)
    tastes = taste * rng.standard_normal((n_judges, n_items))
    item = n_items // 2
    judge = rng.integers(n_judges, size=n_votes)
    i = rng.integers(n_items, size=n_votes)
    j = (i + rng.integers(1, n_items, size=n_votes)) % n_items
    kept = (i != item) & (j != item)
    few = rng.choice(n_judges, n_judges_of_item, replace=False)[np.arange(60) % n_judges_of_item]
    rival = rng.integers(n_items - 1, size=60)
    judge = np.append(judge[kept], few)
    i, j = np.append(i[kept], np.full(60, item)), np.append(j[kept], rival + (rival >= item))
    lead = true[i] - true[j] + tastes[judge, i] - tastes[judge, j]
    won = rng.random(len(i)) < expit(lead)
    pairs = np.column_stack([np.where(won, i, j), np.where(won, j, i)])
    return Judgements.from_pairs(pairs, judge=judge), item


def limits(taste, n_items=8):
    """The scores that infinitely many judges would give."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    true = np.linspace(-1, 1, n_items)
    votes = [
        ((i, j), 1e6 * float(weights @ expit(true[i] - true[j] + taste * np.sqrt(2) * nodes)))
        for i, j in itertools.permutations(range(n_items), 2)
    ]
    pairs, count = zip(*votes, strict=True)
    board = aggregate(Judgements.from_pairs(pairs, weight=np.array(count)))
    return board.scores[np.argsort(board.items)]


def judges_coverage(n_judges, taste, repeats, seed=0):
    """How often the robust interval of an item of few judges holds, and those of the others."""
    true, rng = limits(taste), np.random.default_rng([n_judges, seed])
    held = []
    for _ in range(repeats):
        votes, item = votes_of_judges(rng, n_judges, taste)
        board = aggregate(votes, intervals="robust")
        order = np.argsort(board.items)
        inside = (board.score_low[order] <= true) & (true <= board.score_high[order])
        held.append([inside[item], np.delete(inside, item).mean()])
    return np.mean(held, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_judges", "taste"), covering(itertools.product([1, 2, 3, 5, 10, 30], [0.0, 0.7]))
)
def test_robust_intervals_hold_for_items_of_few_judges(n_judges, taste):
    held, others = judges_coverage(n_judges, taste, 150)
    noise = 2 * np.sqrt(0.05 * 0.95 / 150)
    assert held >= 0.95 - noise and others >= 0.95 - noise


def test_what_a_single_judge_says_of_an_item_has_no_robust_ends():
    votes, item = votes_of_judges(np.random.default_rng(0), 1, 0.0)
    board = aggregate(votes, intervals="robust")
    plain = aggregate(votes, intervals="information")
    row = board.items.tolist().index(item)
    assert np.isinf([board.score_low[row], board.score_high[row]]).all()
    assert f"few judges in effect: {item} (1)" in str(board)
    assert (board.rank_low[row], board.rank_high[row]) == (1, 8)
    # a few more have ends, and are not shorter than those of independent votes
    votes, item = votes_of_judges(np.random.default_rng(0), 2, 0.0)
    board = aggregate(votes, intervals="robust")
    row = board.items.tolist().index(item)
    assert 2 < board.score_high[row] - board.score_low[row] < np.inf
    assert "(2.0)" in str(board) and np.isfinite(plain.score_low).all()


def test_resamples_of_judges_have_no_ends_where_one_judge_says_all():
    votes, item = votes_of_judges(np.random.default_rng(0), 1, 0.0, n_votes=600)
    board = aggregate(votes, n_resamples=100, resample="judges")
    row = board.items.tolist().index(item)
    assert np.isinf([board.score_low[row], board.score_high[row]]).all()
    assert np.isfinite(np.delete(board.score_low, row)).all()


@pytest.mark.parametrize("n", [100, 200, 600])  # few do not bound it
def test_an_effect_that_one_judge_varies_has_no_ends(n):
    rng = np.random.default_rng(1)
    a = rng.integers(5, size=n)
    b = (a + rng.integers(1, 5, size=n)) % 5
    judge = rng.integers(20, size=n)
    x = np.where(judge == 3, rng.normal(size=n), 0.0)
    winner = np.where(rng.random(n) < 0.5, "model_a", "model_b")
    table = pd.DataFrame({"length": x, "noise": rng.normal(size=n)})
    votes = Judgements.from_votes(a, b, winner, covariates=table, judge=judge)
    board = aggregate(votes, intervals="robust")
    length, noise = board.coefficients
    assert (length.low, length.high) == (-np.inf, np.inf) and np.isfinite(noise.low)
    assert "few judges in effect: the effect of length (1)" in str(board)


# ---------------------------------------------------------------- the first place


def test_the_first_place_is_clear_only_if_all_rivals_are_beaten_at_once():
    """Thirteen of twenty against each of twenty tied rivals: each pair is nearly certain."""
    rivals = [f"r{k}" for k in range(20)]
    votes = [pair for r in rivals for pair in [("best", r)] * 13 + [(r, "best")] * 7]
    votes += [pair for one, other in itertools.combinations(rivals, 2) for pair in
              [(one, other)] * 5 + [(other, one)] * 5]  # fmt: skip
    for kind in KINDS:
        board = board_of(votes, kind)
        joint, pairs = float(board._intervals.first[0]), board.probability_matrix()[0, 1:]
        assert joint <= pairs.min() and board.is_first_clear() == (joint >= 0.975)
        if pairs.min() >= 0.975 > joint:
            assert "is above all others at once" in str(board)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_the_probability_to_be_first_is_that_of_the_joint_normal_distribution(n):
    """Equal and independent errors, where one integral has the answer."""
    scores = np.append(1.7, np.zeros(n - 1))
    covariance = np.eye(n) / 2  # differences have the variance 1
    z = scores[:, None] - scores
    found = probability_first(z, covariance, 0, np.arange(1, n), 0.5)
    draws = np.random.default_rng(7).standard_normal((400_000, n)) / np.sqrt(2) + scores
    assert found == pytest.approx((draws[:, 1:] < draws[:, :1]).all(axis=1).mean(), abs=0.006)


def test_what_is_said_of_the_first_place_agrees():
    """Each answer that says more than another one implies it, also where few votes decide."""
    rng = np.random.default_rng(3)
    for seed in range(60):
        r = int(rng.integers(2, 7))
        n = int(rng.integers(r, 40 * r))
        strength = rng.normal(size=r) * rng.choice([0.3, 1.0, 2.5])
        i = rng.integers(r, size=n)
        j = (i + rng.integers(1, r, size=n)) % r
        won = rng.random(n) < expit(strength[i] - strength[j])
        votes = np.column_stack([np.where(won, i, j), np.where(won, j, i)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            board = aggregate(votes, intervals=("robust", "information")[seed % 2])
        rows = board.rows_of()
        low, high = board.simultaneous_ranks()
        clear, first = board.is_first_clear(), board.may_be_first()
        assert (low <= board.rank_low[rows]).all() and (high >= board.rank_high[rows]).all()
        assert clear == (len(first) == 1)
        assert not clear or board.rank_high[rows[0]] == 1
        assert set(first) <= set(board.items[rows[low == 1]])
        assert not board.is_first_clear(anytime=True) or clear
        assert ("first place: " in str(board)) == clear


@pytest.mark.parametrize("n_judges", [2, 3, 5])
def test_intervals_of_two_items_agree_with_the_first_place(n_judges):
    """Of two items, one is clearly first exactly if the interval of its score is above 0."""
    rng = np.random.default_rng(n_judges)
    clear = []
    for _ in range(25):
        chance = expit(1.5 + rng.normal(size=n_judges))
        first = rng.random((10, n_judges)) < chance
        words = np.where(first, "a", "b").ravel()
        judge = np.tile(np.arange(n_judges), 10)
        votes = Judgements.from_votes(["a"] * len(words), ["b"] * len(words), words, judge=judge)
        board = aggregate(votes, intervals="robust")
        clear.append(board.is_first_clear())
        assert clear[-1] == bool((board.score_low > 0).any())
        assert clear[-1] == (len(board.may_be_first()) == 1)
    assert 0 < sum(clear) < 25


def test_items_of_the_same_record_are_treated_alike():
    """Six items, of which four have the same record, in twelve orders of votes and items."""
    votes = [(f"i{a}", f"i{b}") for a in range(6) for b in range(6) if a != b for _ in range(10)]
    votes += [(f"i{a}", f"i{b}") for a in range(2) for b in range(2, 6) for _ in range(7)]
    rng, found = np.random.default_rng(0), set()
    for _ in range(12):
        shuffled = [votes[k] for k in rng.permutation(len(votes))]
        for kind in ("robust", "information"):
            board = aggregate(shuffled, intervals=kind)
            first = frozenset(board.may_be_first())
            assert len(first & {"i2", "i3", "i4", "i5"}) in (0, 4)
            found.add((kind, first, float(np.round(board._intervals.first[0], 9))))
    assert len(found) == 2


# ---------------------------------------------------------------- separated effects


@pytest.mark.parametrize(
    ("kind", "scale"),
    [("information", 1.0), ("robust", 1.0), ("information", 1e-6), ("robust", 1e6)],
)
def test_a_sparse_covariate_that_decides_its_votes_has_an_open_end(kind, scale):
    rng = np.random.default_rng(0)
    a = rng.integers(5, size=400)
    b = (a + rng.integers(1, 5, size=400)) % 5
    refusal = np.zeros(400)
    refusal[:20] = scale
    won = (rng.random(400) < 0.5) & (refusal == 0)
    winner = np.where(won, "model_a", "model_b")
    table = pd.DataFrame({"refusal": refusal})
    votes = Judgements.from_votes(a, b, winner, covariates=table)
    board = aggregate(votes, intervals=kind)
    one = board.coefficients[0]
    assert one.low == -np.inf and one.standard_error == np.inf
    # twenty of twenty would be lost with a probability of .025 if each were with .83
    assert scale * one.high == pytest.approx(logit(1 - 0.025 ** (1 / 20)), abs=0.3)
    assert np.isfinite(one.value) and -8 < scale * one.value < scale * one.high
    assert "the votes do not bound these effects, only the penalty does: refusal" in str(board)
    if scale == 1 and kind == "robust":
        probes = {probe.name: probe for probe in board.audit().probes}
        assert probes["unbounded"].fires and "refusal" in probes["unbounded"].finding


def test_one_vote_the_other_way_bounds_an_effect():
    a, b = ["x", "y"] * 50, ["y", "x"] * 50
    column = np.zeros(100)
    column[:10] = 1.0
    winner = np.array(["model_a", "model_a", "model_b", "model_b"] * 25)
    winner[:10] = "model_a"
    read = lambda: Judgements.from_votes(a, b, winner, covariates=column[:, None])  # noqa: E731
    assert aggregate(read(), intervals="information").coefficients[0].high == np.inf
    winner[4] = "model_b"
    one = aggregate(read(), intervals="information").coefficients[0]
    assert np.isfinite([one.low, one.high]).all()


def test_the_parameter_of_ties_can_be_without_a_bound():
    pairs = [("a", "b")] * 30 + [("c", "d")] * 10 + [("b", "c")] * 4
    winner = ["model_a"] * 30 + ["tie"] * 10 + ["model_a"] * 4
    votes = Judgements.from_votes(*zip(*pairs, strict=True), winner)
    for ties in ("davidson", "rao_kupper"):
        one = aggregate(votes, BradleyTerry(ties=ties), intervals="information").coefficients[0]
        assert one.name == "ties" and one.high == np.inf and np.isfinite(one.low)


def test_scores_of_features_that_the_votes_do_not_bound_have_open_ends():
    features = pd.DataFrame({"size": [3.0, 1.0, 1.0, 0.0]}, index=list("abcd"))
    votes = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "b"), ("b", "c"), ("c", "d")] * 9
    first, second = zip(*votes, strict=True)
    read = Judgements.from_votes(first, second, ["model_a"] * len(votes), item_features=features)
    board = aggregate(read, BradleyTerry(own_effects=False), intervals="information")
    place = {name: k for k, name in enumerate(board.items.tolist())}
    assert board.score_high[place["a"]] == np.inf and board.score_low[place["d"]] == -np.inf
    assert np.isfinite(board.score_low[place["a"]])


def test_audits_do_not_warn_of_effects_that_nobody_passed():
    """The first item won every vote: an audit tries the position, which decides all of them."""
    votes = Judgements.from_votes(
        ["a", "b", "c", "a"] * 20, ["b", "c", "a", "c"] * 20, ["model_a"] * 80
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        aggregate(votes).audit()


# ---------------------------------------------------------------- parts


def test_the_largest_part_is_the_board_and_the_rest_is_below():
    rng = np.random.default_rng(0)
    i = rng.integers(8, size=900)
    j = (i + rng.integers(1, 8, size=900)) % 8
    strength = np.append(3.0, np.linspace(0, 1, 7))
    won = rng.random(900) < expit(strength[i] - strength[j])
    pairs = np.column_stack([np.where(won, i, j), np.where(won, j, i)]).tolist()
    pairs += [[20, 21]] * 9 + [[21, 22]] * 9 + [[22, 20]] * 1
    for kind in KINDS:
        with pytest.warns(UserWarning, match="The comparisons do not connect all items"):
            board = board_of(pairs, kind)
        assert sorted(board.items[board.rows_of()[8:]].tolist()) == [20, 21, 22]
        assert sorted(board.ranks[board.parts == 1].tolist()) == list(range(1, 9))
        assert board.is_first_clear() and board.items[board.rows_of()[0]] == 0
        assert "first place: 0 is above the other 7 items of part 1 at once" in str(board)
    with pytest.warns(UserWarning, match="The comparisons do not connect all items"):
        halves = aggregate([("a", "b")] * 9 + [("c", "d")] * 9, intervals="information")
    assert not halves.is_first_clear()
    assert "first place is open: no part has more than half of the items" in str(halves)


# ---------------------------------------------------------------- likelihoods without a maximum


@pytest.mark.parametrize("ties", ["davidson", "rao_kupper"])
def test_an_item_that_never_lost_has_no_upper_end_where_ties_have_a_parameter(ties):
    """Wins and ties alone keep their shares while the other item's wins become impossible."""
    votes = Judgements.from_votes(["a"] * 8, ["b"] * 8, ["a"] * 3 + ["tie"] * 5)
    board = aggregate(votes, BradleyTerry(ties=ties), intervals="information")
    a, b = np.argsort(board.items)
    effect = board.coefficients[0]
    assert abs(board.scores[a]) < 3 and -5 < effect.low < effect.value < 5 and effect.high == np.inf
    assert board.score_high[a] == np.inf and board.score_low[b] == -np.inf
    assert -5 < board.score_low[a] < 0 < board.score_high[b] < 5
    relative = board.rescale("logit", anchor=("b", 0.0))
    assert relative.score_high[a] == np.inf and np.isfinite(relative.score_low[a])
    assert not board.is_first_clear() and board.ranks[a] == 1


def test_a_position_that_decides_all_votes_leaves_nothing_for_the_items():
    rng = np.random.default_rng(0)
    a = rng.integers(4, size=40)
    votes = Judgements.from_votes(a, (a + 1 + rng.integers(3, size=40)) % 4, a, position=True)
    board = aggregate(votes, intervals="information")
    assert np.isinf([board.score_low, board.score_high]).all()
    assert board.coefficients[0].high == np.inf


@pytest.mark.parametrize("kind", ["information", "robust"])
def test_without_a_penalty_and_a_maximum_there_are_no_ends(kind):
    """They would depend on where the iterations stop."""
    rng = np.random.default_rng(1)
    a, x = rng.integers(3, size=80), rng.normal(size=80)
    won = rng.random(80) < 0.5
    b = (a + 1 + rng.integers(2, size=80)) % 3
    a, b = np.append(a, 3), np.append(b, 0)
    table = pd.DataFrame({"length": np.append(x, 0.3)})
    votes = Judgements.from_votes(
        a, b, np.where(np.append(won, True), a, b), covariates=table, position=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        board = aggregate(votes, BradleyTerry(penalty=0), intervals=kind)
    new = board.items.tolist().index(3)
    assert np.isinf([board.score_low, board.score_high]).all() and board.ranks[new] == 1
    kept = aggregate(votes, BradleyTerry(), intervals=kind).coefficients
    for one, other in zip(board.coefficients, kept, strict=True):
        assert one.low < one.value < one.high
        assert [one.low, one.high] == pytest.approx([other.low, other.high], abs=0.1)
    assert np.isinf(board.rescale(anchor=(3, 0.0)).score_low[board.items != 3]).all()


def test_ends_of_an_unbounded_parameter_of_ties_start_at_zero():
    """Rao and Kupper's parameter is positive."""
    votes = Judgements.from_votes([1, 0], [2, 1], [1, "tie"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        board = aggregate(votes, BradleyTerry(penalty=1, ties="rao_kupper"), intervals="robust")
    assert 0 <= board.coefficients[0].low < board.coefficients[0].high == np.inf


def test_an_open_effect_contains_its_estimate():
    """Where the votes are unlikely at the penalised estimate, too."""
    first, second = list("3310223223333230"), list("0233010130202023")
    winner = [*second[:12], "tie", *second[13:]]
    votes = Judgements.from_votes(first, second, winner, position=True)
    structure = BradleyTerry(penalty=1.0, ties="davidson")
    for one in aggregate(votes, structure, intervals="information").coefficients:
        assert one.low <= one.value <= one.high


def test_audits_of_two_items_with_a_position_do_not_divide_by_zero():
    votes = Judgements.from_votes(list("abab"), list("baba"), list("abaa"), position=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        aggregate(votes, intervals="information").audit()
