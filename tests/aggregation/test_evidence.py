"""How sure a leaderboard is: one more vote, or judge, against each of its statements."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from scipy.stats import binom, norm
from scipy.stats import t as student

from sklearn_rankcal import Judgements, aggregate

# private: the limit of the exact form, and the two forms by themselves
from sklearn_rankcal.aggregation import BradleyTerry, _evidence, aggregate_categories
from sklearn_rankcal.aggregation._boards import anytime_bound, evidence_of, fit_boards

from ..structure_oracles import vote_likelihood
from . import worlds

KINDS = ("information", "robust")
AB, BA = ("a", "b"), ("b", "a")


def board_of(votes, kind, **options):
    if kind == "resamples":
        return aggregate(votes, n_resamples=400, **options)
    return aggregate(votes, intervals=kind, **options)


def rows(board):
    return {item: row for row, item in enumerate(board.items.tolist())}


# ---------------------------------------------------------------- two items


@pytest.mark.parametrize("n", worlds.SIZES)
def test_two_items_enumerated(n):
    found = worlds.two_item_rates(n)
    assert found["scores"] <= 0.055 and found["wrong first"] <= 0.05
    if n >= 10:  # a test of Clopper and Pearson finds .74 and 1
        assert found["power at .9"] >= (0.73 if n == 10 else 0.95)


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_the_probability_of_two_items_is_that_of_a_formula(ties):
    """The deviance of a wins and b losses from an even chance, with one more loss."""
    table = {(1, 0): 0.5, (2, 0): 0.72, (3, 0): 0.847, (5, 0): 0.956, (6, 0): 0.977,
             (9, 1): 0.986, (10, 0): 0.9983, (1, 1): 0.5, (2, 1): 0.5}  # fmt: skip
    for (a, b), printed in table.items():
        board = aggregate([AB] * a + [BA] * b, BradleyTerry(ties=ties), intervals="information")
        q, z = a / (a + b + 1), 0.0
        if q > 0.5:
            z = np.sqrt(2 * (a * np.log(2 * q) + (b + 1) * np.log(2 * (1 - q))))
        share = board.probability_above("a", "b")
        assert share == pytest.approx(norm.cdf(z), abs=1e-3)
        assert share == pytest.approx(printed, abs=2e-3)
        shared = Judgements.from_pairs([AB] * (a + b), probability=[a / (a + b)] * (a + b))
        for kind in KINDS:  # votes with probabilities: each has a share for each item
            hard, soft = [
                aggregate(votes, intervals=kind) for votes in ([AB] * a + [BA] * b, shared)
            ]
            share = hard.probability_above("a", "b")
            assert soft.probability_above("a", "b") == pytest.approx(share, abs=1e-9)


def test_an_end_is_infinite_where_less_than_two_losses_are_known():
    for a, b, ends in ((10, 0, 1), (9, 1, 1), (8, 2, 0), (1, 0, 2), (1, 1, 2), (3, 3, 0)):
        board = aggregate([AB] * a + [BA] * b, intervals="information")
        row = rows(board)["a"]
        low, high = board.score_low[row], board.score_high[row]
        assert np.isinf([low, high]).sum() == ends and (low == -np.inf or low < board.scores[row])
        assert ends != 1 or high == np.inf


# ---------------------------------------------------------------- laws


@pytest.mark.slow
@pytest.mark.simulation
@pytest.mark.parametrize("soft", [False, True])
def test_one_more_win_never_makes_an_item_less_sure(soft):
    assert worlds.added_wins(200, soft=soft).min() >= -1e-5


def random_votes(seed, n=40, r=5):
    """Votes of the model on random pairs: the items that are first and second, and the winners."""
    random = np.random.default_rng(seed)
    first = random.integers(r, size=n)
    second = (first + random.integers(1, r, size=n)) % r
    scores = random.normal(size=r)
    won = random.random(n) < expit(scores[first] - scores[second])
    return first, second, np.where(won, "model_a", "model_b")


def assert_same(board, other, sign=1, atol=1e-6):
    """Compare the statements of two boards of the same items."""
    found = []
    for one in (board, other):
        order, place = np.argsort(one.items), np.argsort(one.items[one.rows_of()])
        ends = one.score_low[order], one.score_high[order]
        found.append((one._quantiles(None)[0][np.ix_(place, place)], *ends))
    z, low, high = (sign * one for one in found[1])
    for one, same in zip(found[0], (z, *(low, high)[::sign]), strict=True):
        assert_allclose(one, same, atol=atol)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", KINDS)
def test_orders_names_mirrors_and_units_change_nothing(kind):
    first, second, words = random_votes(0)
    x, judge = np.random.default_rng(1).normal(size=(40, 1)), np.arange(40) % 7
    turned = np.where(words == "model_a", "model_b", "model_a")

    def board(words=words, unit=1.0, names=0, order=slice(None)):
        sides = first[order] + names, second[order] + names, words[order]
        read = Judgements.from_votes(*sides, judge=judge[order], covariates=unit * x[order])
        return aggregate(read, intervals=kind)

    plain, shuffled = board(), board(order=np.random.default_rng(2).permutation(40))
    assert_same(plain, shuffled)
    assert_same(plain, board(turned, unit=-1.0), sign=-1)
    assert_same(plain, board(names=10), atol=0)
    for other, unit in ((shuffled, 1.0), (board(unit=1e9), 1e9), (board(unit=1e-9), 1e-9)):
        assert_same(plain, other)
        one, same = other.coefficients[0], plain.coefficients[0]
        ends = np.array([one.low, one.value, one.high]) * unit
        assert_allclose(ends, [same.low, same.value, same.high], atol=1e-6)
        value = f"{one.value:.3g}" if unit > 1 else f"{one.value:.4f}"
        assert f"effect of x0: {value}" in str(other)


@pytest.mark.parametrize("seed", range(5))
def test_more_votes_of_the_same_kind_are_surer(seed):
    first, second, words = random_votes(seed)
    z = []
    for times in (1, 2, 4):
        votes = Judgements.from_votes(first, second, words, count=np.full(40, times))
        z.append(aggregate(votes, intervals="information")._quantiles(None)[0])
    for less, more in itertools.pairwise(z):
        assert (np.abs(more) >= np.abs(less) - 1e-6).all() and (more * less >= 0).all()


@pytest.mark.parametrize("judges", [0, 2, 3, 5, 12])
def test_robust_is_never_surer(judges):
    first, second, words = random_votes(judges, n=120)
    judge = None if judges == 0 else np.arange(120) % judges
    read = Judgements.from_votes(first, second, words, judge=judge)
    plain, robust = (aggregate(read, intervals=kind) for kind in KINDS)
    z, y = plain._quantiles(None)[0], robust._quantiles(None)[0]
    assert (np.abs(y) <= np.abs(z) + 1e-9).all() and (y * z >= 0).all()
    assert (robust.score_low <= plain.score_low + 1e-9).all()
    assert (robust.score_high >= plain.score_high - 1e-9).all()
    if 0 < judges < 4:
        assert (np.abs(y) < norm.ppf(0.975)).all()


@pytest.mark.parametrize("ties", [False, True])
def test_items_of_the_same_record_are_treated_alike(ties):
    """Six items, of which four have the same record, in some orders of votes and items."""
    votes = [(f"i{a}", f"i{b}") for a in range(6) for b in range(6) if a != b for _ in range(10)]
    votes += [(f"i{a}", f"i{b}") for a in range(2) for b in range(2, 6) for _ in range(7)]
    tied = [ties and k < 300 and k % 10 == 0 for k in range(len(votes))]
    random = np.random.default_rng(0)
    for _ in range(4):
        order = random.permutation(len(votes))
        read = Judgements.from_pairs([votes[k] for k in order], tied=[tied[k] for k in order])
        for kind in KINDS:
            board = aggregate(read, intervals=kind)
            same = [row for item, row in rows(board).items() if item in ("i2", "i3", "i4", "i5")]
            for ends in (board.score_low, board.score_high):
                assert_allclose(ends[same], ends[same[0]], atol=1e-6)
            assert len({"i2", "i3", "i4", "i5"} & set(board.may_be_first())) in (0, 4)


# ---------------------------------------------------------------- the likelihood


def brute_force(value, contrast, at, m):
    """z of a contrast above a value: two maximisations by a general optimiser."""
    sign, size = 1.0, len(contrast)
    start = np.full(size, 0.1)
    free = np.linalg.svd(contrast[None])[2][1:].T
    fixed = contrast * at / (contrast @ contrast)
    options = {"gtol": 1e-6, "maxiter": 2000}

    def maximum(loss, start):
        for _ in range(3):
            start = minimize(loss, start, method="BFGS", options=options).x
        return start, -loss(start)

    tied = maximum(lambda u: -value(fixed + free @ u, m), free.T @ start)[1]
    for sign in (1.0, -1.0):

        def against(w, sign=sign):
            return -value(w, m) - log_expit(sign * (at - contrast @ w))

        best, most = maximum(against, start)
        if sign * (contrast @ best - at) > 0:
            return sign * np.sqrt(max(2 * (most + np.log(2) - tied), 0.0))
    return 0.0


@pytest.mark.parametrize("ties", ["half", "davidson", "rao_kupper"])
@pytest.mark.parametrize("seed", [0, 1])
def test_statements_are_those_of_brute_force(ties, seed):
    """The maximum with one more vote against, for pairs, scores and effects of a small board."""
    m, n = 4, 30
    first, second, words = random_votes(seed, n, m)
    random = np.random.default_rng(seed)
    words = np.where(random.random(n) < 0.2, "tie", words)
    X = 3.0 * random.normal(size=(n, 1)) * (random.random((n, 1)) < 0.7)
    votes = Judgements.from_votes(first, second, words, covariates=X)
    board = aggregate(votes, BradleyTerry(ties=ties), intervals="information")
    value, row = vote_likelihood(first, second, words, X, ties), rows(board)
    size = m + 1 + (ties != "half")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of the optimiser
        for one, other in ((0, 1), (1, 2), (3, 0)):
            z = brute_force(value, np.eye(size)[one] - np.eye(size)[other], 0.0, m)
            found = norm.ppf(board.probability_above(one, other))
            assert found == pytest.approx(z, abs=2e-3)
        # at an end of an interval, z is the quantile; for a score of the difference to the others
        contrast = np.eye(size)[0] - np.append(np.ones(m), np.zeros(size - m)) / m
        contrast *= m / (m - 1)
        ends = [end[row[0]] * m / (m - 1) for end in (board.score_low, board.score_high)]
        checked = [(contrast, *ends)]
        known, usual = evidence(votes, ties=ties), np.sqrt(np.mean(X[X != 0] ** 2))
        ends = known.ends(np.eye(1, size, m) * usual / known.unit[m])
        checked.append((usual * np.eye(size)[m], *np.ravel(ends)))
        for contrast, low, high in checked:
            for end, sign in ((low, 1), (high, -1)):
                if np.isfinite(end):
                    z = brute_force(value, contrast, end, m)
                    assert z == pytest.approx(sign * norm.ppf(0.975), abs=5e-3)


def evidence(votes, kind="information", **options):
    structure = BradleyTerry(**options)
    return evidence_of(votes, fit_boards(votes, structure)[0], structure, kind, 0.95)


@pytest.mark.skipif(_evidence.kernels.fit_profiles is None, reason="built without a C compiler")
@pytest.mark.parametrize("n", [12, 25, 60])
def test_the_compiled_loop_fits_as_numpy_does(n, monkeypatch):
    first, second, words = random_votes(n, n)
    read = Judgements.from_votes(first, second, words)
    board = aggregate(read, intervals="information")
    monkeypatch.setattr(_evidence.kernels, "fit_profiles", None)
    assert_same(board, aggregate(read, intervals="information"))


@pytest.mark.parametrize(("won", "lost"), [(3, 0), (10, 0), (9, 1), (30, 20), (5, 4)])
def test_the_cheap_form_of_two_items_is_the_exact_one(won, lost):
    found = evidence(Judgements.from_pairs([AB] * won + [BA] * lost))
    contrast = np.array([[1.0, -1.0]])
    psi, variance, _ = found.moments(contrast)
    assert_allclose(_evidence.z_of_two(psi, variance), found.z(contrast), rtol=1e-3, atol=1e-7)
    ends = np.ravel(_evidence.ends_of_two(psi, variance, found.quantile))
    exact = np.ravel(found.ends(contrast))
    assert (np.isfinite(ends) == np.isfinite(exact)).all()
    assert_allclose(ends, exact, atol=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_many_items_have_the_exact_form_at_the_top_and_nearly_so_elsewhere(kind, monkeypatch):
    first, second, words = random_votes(3, n=600, r=25)
    read = Judgements.from_votes(first, second, words, judge=np.arange(600) % 20)
    cheap = aggregate(read, intervals=kind)
    monkeypatch.setattr(_evidence, "_EXACT", 100)
    exact = aggregate(read, intervals=kind)
    z, y = cheap._quantiles(None)[0], exact._quantiles(None)[0]
    nearest = np.argsort(z[0, 1:])[:15] + 1
    assert_allclose(z[0, nearest], y[0, nearest], atol=1e-9)
    assert_allclose(z[0].min(), y[0].min(), atol=1e-9)
    near = np.abs(y) < 2.5
    assert (np.abs(z - y) <= 0.03 + 0.12 * np.abs(y))[near].all()
    assert_allclose(cheap.score_low, exact.score_low, atol=0.15)


# ---------------------------------------------------------------- few votes and few judges


@pytest.mark.parametrize("kind", [*KINDS, "resamples"])
@pytest.mark.parametrize("n", [1, 3, 5])
def test_a_newcomer_that_won_few_votes_is_not_first(kind, n):
    board = board_of([AB] * 150 + [BA] * 50 + [("new", "a")] * n, kind)
    assert board.items[board.rows_of()[0]] == "new"
    assert not board.is_first_clear() and "first place is open: new is above a" in str(board)
    assert board.rank_high[rows(board)["new"]] > 1
    assert {"new", "a"} <= set(board.may_be_first())
    low, high = board.simultaneous_ranks()
    assert low[1] == 1 and high[0] > 1


@pytest.mark.parametrize("votes", [1, 5])
def test_judges_who_are_unanimous_are_as_few_as_they_are(votes):
    """Each says the same in all votes, as by a fair coin: all numbers of heads, enumerated."""
    for n in range(2, 11):
        clear = np.zeros(n + 1)
        for heads in range(n + 1):
            pairs = ([AB] * heads + [BA] * (n - heads)) * votes
            judge = np.tile(np.arange(n), votes)
            board = aggregate(Judgements.from_pairs(pairs, judge=judge), intervals="robust")
            clear[heads] = board.is_first_clear()
        # as a mean of n ones and of one minus one; single votes cannot show that judges agree
        share = student.cdf((n - 1) / 2, n)
        assert votes == 1 or board.probability_above("a", "b") == pytest.approx(share, abs=1e-6)
        assert clear @ binom.pmf(np.arange(n + 1), n, 0.5) <= 0.05
        assert clear[n] == (n >= 6)


@pytest.mark.parametrize("method", ["borda", "copeland", "kemeny"])
@pytest.mark.parametrize("n", [10, 20])
def test_resamples_of_two_items_enumerated(method, n):
    clear = [board_of([AB] * k + [BA] * (n - k), "resamples", method=method).is_first_clear()
             for k in range(n + 1)]  # fmt: skip
    assert binom.pmf(np.arange(n + 1), n, 0.5) @ clear <= 0.05 and clear[0] and clear[n]


@pytest.mark.parametrize("spread", [None, 0.0, 0.3, np.inf])
def test_six_votes_in_categories_decide_nothing(spread):
    """A covariate without votes in a category has an interval that does not end there."""
    first, second, x = list("abaabb"), list("bacccc"), np.array([[0, 0, 1, -1, 1, -1.0]]).T
    votes = Judgements.from_votes(first, second, first, covariates=x)
    for kind in KINDS:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.filterwarnings("ignore", "The comparisons do not connect all items")
            board = aggregate_categories(votes, [0, 0, 1, 1, 1, 1], spread=spread, intervals=kind)
        assert (board.rank_low == 1).all() and not np.isnan(board.coefficients[0][1:5]).any()


@pytest.mark.slow
@pytest.mark.simulation
@pytest.mark.parametrize(
    ("name", "n", "bounds"),
    [
        ("new item", 3, {"scores": 0.1, "first": 0.06}),
        ("two groups, robust", 2, {"scores": 0.1, "pairs": 0.1}),
        ("position", 12, {"effects": 0.1, "scores": 0.1}),
        ("sparse covariate", 3, {"effects": 0.1}),
        ("davidson", 20, {"effects": 0.1, "scores": 0.1}),
        ("six items, spread .3", 50, {"ranks": 0.06}),
        ("audit, 30 judges", 500, dict.fromkeys(worlds.TESTS, 0.12)),
        ("audit, 30 judges", 20, {"cycles": 0.06}),
        ("judges, tastes 20", 4, {"first": 0.06}),
        ("judges, tastes 3", 5, {"first": 0.06, "pairs": 0.08}),
        ("four items, judges", 5, {"scores": 0.1, "first": 0.06}),
        ("four items, judges, soft votes", 5, {"scores": 0.1, "first": 0.06}),
        ("thin cut", 3, {"pairs and scores": 0.1}),
    ],
)
def test_simulated_boards_hold_what_they_say(name, n, bounds):
    world, statements, options = worlds.WORLDS[name]
    statements = {key: statements[key] for key in bounds}
    found = worlds.rates(world, statements, n, 80, **options)
    assert all(found[key] <= bound for key, bound in bounds.items()), found


def test_a_single_judge_gives_no_robust_ends():
    """Neither for an item that only one judge compared, nor for an effect that only one varies."""
    first, second, words = random_votes(5, n=400)
    judge = 1 + np.arange(400) % 20
    new = np.full(60, 9)
    x = np.where(judge == 3, np.random.default_rng(0).normal(size=400), 0.0)
    read = Judgements.from_votes(
        np.append(first, new),
        np.append(second, np.arange(60) % 5),
        np.append(words, np.resize(["model_a", "model_b"], 60)),
        judge=np.append(judge, np.full(60, 30)),
        covariates=pd.DataFrame({"length": np.append(x, np.zeros(60))}),
    )
    board = aggregate(read, intervals="robust")
    one, row = board.coefficients[0], rows(board)[9]
    assert (one.low, one.high) == (-np.inf, np.inf) and np.isfinite(board.score_low[:row]).all()
    assert np.isinf([board.score_low[row], board.score_high[row]]).all()
    assert (board.rank_low[row], board.rank_high[row]) == (1, 6)
    assert "few judges in effect: 9 (1), the effect of length (1)" in str(board)
    assert np.isfinite(aggregate(read, intervals="information").score_low).all()


@pytest.mark.parametrize("votes", [1, 3])
def test_a_long_chain_of_few_votes_says_little_of_its_ends(votes):
    """Estimates and variances add up along the chain; the sum is not that of many votes."""
    items = np.arange(30)
    board = aggregate(np.repeat(np.column_stack([items[:-1], items[1:]]), votes, axis=0),
                      intervals="information")  # fmt: skip
    matrix = board.probability_matrix()
    assert matrix.max() < (0.51 if votes == 1 else 0.998)
    assert (board.score_high[:10] == np.inf).all() and board.rank_high[1] == 30


# ---------------------------------------------------------------- the first place


@pytest.mark.parametrize("seed", range(30))
def test_what_is_said_of_the_first_place_agrees(seed):
    """Each answer that says more than another one implies it, also where few votes decide."""
    random = np.random.default_rng(seed)
    r = int(random.integers(2, 7))
    n = int(random.integers(r, 40 * r))
    first, second, words = random_votes(seed, n, r)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = Judgements.from_votes(first, second, words, judge=np.arange(n) % 6)
        board = board_of(read, [*KINDS, "resamples"][seed % 3])
    order = board.rows_of()
    low, high = board.simultaneous_ranks()
    clear, candidates = board.is_first_clear(), board.may_be_first()
    matrix = board.probability_matrix()
    assert (low <= board.rank_low[order]).all() and (high >= board.rank_high[order]).all()
    assert clear == (len(candidates) == 1) == ("first place: " in str(board))
    assert (
        clear == (np.nan_to_num(matrix[0, 1:], nan=0.0).min() >= 0.975 - 1e-9)
        or (board.parts > 1).any()
    )
    assert not clear or board.rank_high[order[0]] == 1
    assert set(candidates) <= set(board.items[order[low == 1]])
    if board.intervals:
        assert not board.is_first_clear(anytime=True) or clear


@pytest.mark.parametrize("kind", [*KINDS, "resamples"])
def test_the_largest_part_is_the_board_and_the_rest_is_below(kind):
    first, second, words = random_votes(0, n=900, r=8)
    won = np.where(words == "model_a", first, second), np.where(words == "model_a", second, first)
    pairs = [*np.column_stack(won).tolist(), *[[8, k] for k in range(8)] * 9]
    pairs += [[20, 21]] * 9 + [[21, 22]] * 9 + [[22, 20]] * 1
    with pytest.warns(UserWarning, match="The comparisons do not connect all items"):
        board = board_of(pairs, kind)
    assert sorted(board.items[board.rows_of()[9:]].tolist()) == [20, 21, 22]
    assert board.is_first_clear() and board.items[board.rows_of()[0]] == 8
    assert "first place: 8 is above the other 8 items of part 1, each" in str(board)
    with pytest.warns(UserWarning, match="The comparisons do not connect all items"):
        halves = board_of([AB] * 9 + [("c", "d")] * 9, kind)
    assert not halves.is_first_clear()
    assert "first place is open: no part has more than half of the items" in str(halves)


# ---------------------------------------------------------------- the first place at any time


def test_the_bound_is_the_asymptotic_confidence_sequence_of_the_paper():
    """sigma sqrt(2 (t rho^2 + 1) / (t^2 rho^2) log(sqrt(t rho^2 + 1) / alpha)) at t votes."""
    sigma, t, alpha = 2.3, np.array([10.0, 300.0, 5000.0]), 0.03
    rho2 = 0.5**2 / sigma**2
    paper = sigma * np.sqrt(
        2 * (t * rho2 + 1) / (t**2 * rho2) * np.log(np.sqrt(t * rho2 + 1) / alpha)
    )
    assert_allclose(anytime_bound(sigma / np.sqrt(t), alpha), paper)


@pytest.mark.parametrize("times", [1, 2, 4, 9])
def test_boards_use_the_bound_for_each_rival(times):
    wins = {("a", "b"): 20, ("b", "a"): 11, ("a", "c"): 22, ("c", "a"): 9, ("b", "c"): 16,
            ("c", "b"): 13}  # fmt: skip
    pairs = [pair for pair, n in wins.items() for _ in range(n * times)]
    board = aggregate(pairs, intervals="information", confidence_level=0.9)
    # the standard errors with one more vote against
    lead, z = board.scores[0] - board.scores[1:], board._quantiles(None)[0][0, 1:]
    clear = bool((lead > anytime_bound(lead / z, 0.1 / 2)).all())
    assert board.is_first_clear(anytime=True) == clear == (times >= 4)
    assert board.rescale().is_first_clear(anytime=True) == clear
    assert board.is_first_clear() or not clear


def test_few_votes_and_items_apart_are_never_certain():
    assert not aggregate([("a", "b")] * 29, intervals="robust").is_first_clear(anytime=True)
    many = [("a", "b")] * 400 + [("b", "a")] * 20
    board = aggregate(many, intervals="robust")
    assert board.is_first_clear(anytime=True)
    new = aggregate([*many, ("a", "c"), ("c", "b"), ("b", "c")], intervals="robust")
    assert not new.is_first_clear(anytime=True)
    lonely = Judgements.from_pairs(many, items=["a", "b", "c"])
    with pytest.warns(UserWarning, match="No judgement compares 1 of the items"):
        board = aggregate(lonely, intervals="robust")
    assert board.is_first_clear(anytime=True)  # among those that were compared
    assert "first place: a is above all others that were compared, each" in str(board)


def test_one_query_of_several():
    pairs = [("a", "b")] * 400 + [("b", "a")] * 20 + [("c", "d"), ("d", "c")] * 200
    board = aggregate(pairs, groups=[0] * 420 + [1] * 400, intervals="robust")
    assert board.is_first_clear(0, anytime=True) and not board.is_first_clear(1, anytime=True)


def test_resamples_have_no_standard_errors():
    with pytest.raises(ValueError, match=r"needs standard errors.*intervals='robust'"):
        aggregate([("a", "b")] * 9, n_resamples=20).is_first_clear(anytime=True)


# ---------------------------------------------------------------- open ends


@pytest.mark.parametrize(("kind", "scale"), [("information", 1e-6), ("robust", 1.0)])
def test_a_sparse_covariate_that_decides_its_votes_has_an_open_end(kind, scale):
    first, second, words = random_votes(0, n=400)
    refusal = np.zeros(400)
    refusal[:20] = scale
    words[:20] = "model_b"
    table = pd.DataFrame({"refusal": refusal})
    board = aggregate(Judgements.from_votes(first, second, words, covariates=table), intervals=kind)
    one = board.coefficients[0]
    assert one.low == -np.inf and one.low < one.value < one.high < -1 / scale
    assert "the votes do not bound these effects, only the penalty does: refusal" in str(board)
    words[:3] = "model_a"
    board = aggregate(Judgements.from_votes(first, second, words, covariates=table), intervals=kind)
    assert np.isfinite([board.coefficients[0].low, board.coefficients[0].high]).all()


@pytest.mark.parametrize("ties", ["davidson", "rao_kupper"])
def test_open_ends_where_ties_have_a_parameter(ties):
    method = BradleyTerry(ties=ties)
    votes = Judgements.from_votes(["a"] * 8, ["b"] * 8, ["a"] * 3 + ["tie"] * 5)
    board = aggregate(votes, method, intervals="information")
    a, b = np.argsort(board.items)
    assert board.score_high[a] == np.inf and board.score_low[b] == -np.inf
    assert -5 < board.score_low[a] <= board.scores[a] < 3 and not board.is_first_clear()
    relative = board.rescale("logit", anchor=("b", 0.0))
    assert relative.score_high[a] == np.inf and np.isfinite(relative.score_low[a])
    pairs = [AB] * 30 + [("c", "d")] * 10 + [("b", "c")] * 4
    winner = ["model_a"] * 30 + ["tie"] * 10 + ["model_a"] * 4
    votes = Judgements.from_votes(*zip(*pairs, strict=True), winner)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = aggregate(votes, method, intervals="information").coefficients[0]
    assert one.name == "ties" and one.high == np.inf and np.isfinite(one.low)
    assert ties == "davidson" or one.low > 0


def test_scores_of_features_that_the_votes_do_not_bound_have_open_ends():
    features = pd.DataFrame({"size": [3.0, 1.0, 1.0, 0.0]}, index=list("abcd"))
    votes = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "b"), ("b", "c"), ("c", "d")] * 9
    first, second = zip(*votes, strict=True)
    read = Judgements.from_votes(first, second, first, item_features=features)
    board = aggregate(read, BradleyTerry(own_effects=False), intervals="information")
    place = rows(board)
    assert board.score_high[place["a"]] == np.inf and board.score_low[place["d"]] == -np.inf
    assert np.isfinite(board.score_low[place["a"]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("structure", [BradleyTerry(penalty=1.0, ties="davidson"), BradleyTerry()])
def test_intervals_contain_their_estimates(kind, structure):
    """Where the votes are unlikely at the penalised estimate, or decided by the position."""
    first, second = list("3310223223333230"), list("0233010130202023")
    for winner in ([*second[:12], "tie", *second[13:]], first):
        votes = Judgements.from_votes(first, second, winner, position=True)
        board = aggregate(votes, structure, intervals=kind)
        assert (board.score_low <= board.scores).all() and (board.scores <= board.score_high).all()
        for one in board.coefficients:
            assert one.low <= one.value <= one.high


@pytest.mark.parametrize("position", [False, True])
def test_audits_of_few_votes_do_not_warn(position):
    """The first item won every vote, or two items have four of them."""
    first, second, winner = list("abca") * 20, list("bcac") * 20, ["model_a"] * 80
    if position:
        first, second, winner = list("abab"), list("baba"), list("abaa")
    votes = Judgements.from_votes(first, second, winner, position=position)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        aggregate(votes, intervals="information").audit()
