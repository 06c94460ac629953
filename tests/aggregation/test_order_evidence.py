"""How sure a leaderboard from orders, choices or best-worst choices is."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.stats import norm

from sklearn_rankcal import Judgements, aggregate

# private: the limits of the exact form
from sklearn_rankcal.aggregation import _evidence, _maximum_likelihood

from ..structure_oracles import plackett_luce_loss
from . import worlds
from .test_evidence import KINDS, assert_same, brute_force

SHAPES = ("order", "choice", "best-worst")


def random_orders(seed, n, k, longest=4):
    """Orders of some of k items, choices and best-worst choices, each as tiers."""
    random = np.random.default_rng(seed)
    scores, found = random.normal(size=k), [[[item] for item in range(k)]]
    for m in range(n - 1):
        shown = random.permutation(k)[: random.integers(2, longest + 1)]
        found.append(worlds.judge_set(random, shown, scores, SHAPES[m % 3]))
    return found


def board_of(orders, kind="information", **options):
    read = Judgements.from_orders(orders, **options)
    return aggregate(read, "plackett_luce", intervals=kind)


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_are_those_of_the_likelihood_of_all_orders(seed):
    orders = random_orders(seed, 12, 6, longest=6)
    board = board_of(orders)
    likelihood, items = board._boards[0].orders.likelihood, board.items.astype(int)
    x = np.random.default_rng(seed).normal(size=6)

    def loss(x):
        return plackett_luce_loss(orders, np.ones(12), x[np.argsort(items)], np.full(6, 1e-4))

    value, gradient, *_ = likelihood.evaluate(x)
    assert value[0] == pytest.approx(loss(x), rel=1e-9)
    assert_allclose(gradient, approx_fprime(x, loss, 1e-7), atol=1e-5)
    columns = approx_fprime(x, lambda x: likelihood.evaluate(x)[1], 1e-7)
    assert_allclose(likelihood.hessian(x), columns, atol=1e-5)


@pytest.mark.parametrize("seed", range(2))
def test_statements_are_those_of_brute_force(seed):
    k, orders = 4, random_orders(seed, 10, 4)
    board = board_of(orders, items=range(k))

    def value(x, _):
        return -plackett_luce_loss(orders, np.ones(10), x, np.full(k, 1e-4))

    for one, other in ((0, 1), (1, 2), (3, 0)):
        z = brute_force(value, np.eye(k)[one] - np.eye(k)[other], 0.0, k)
        found = norm.ppf(board.probability_above(one, other))
        assert found == pytest.approx(z, abs=2e-3)
    contrast, ends = np.full(k, -1 / (k - 1)), (board.score_low[0], board.score_high[0])
    contrast[0] = 1.0
    for end, sign in zip(ends, (1, -1), strict=True):
        if np.isfinite(end):
            z = brute_force(value, contrast, end * k / (k - 1), k)
            assert z == pytest.approx(sign * norm.ppf(0.975), abs=5e-3)


@pytest.mark.parametrize("k", [5, 22])
@pytest.mark.parametrize("with_judges", [False, True])
def test_orders_of_two_items_say_what_votes_say(k, with_judges, monkeypatch):
    monkeypatch.setattr(_evidence, "_RIVALS", 0)  # many votes have the exact form at the top
    random = np.random.default_rng(k)
    pairs = np.array([[(i, (i + 1) % k), (i, (i + 2) % k)] for i in range(k)] * 3).reshape(-1, 2)
    pairs = np.where(random.random(len(pairs))[:, None] < 0.4, pairs[:, ::-1], pairs)
    judge = random.integers(8, size=len(pairs)) if with_judges else None
    kind = "robust" if with_judges else "information"
    votes = Judgements.from_pairs(pairs, judge=judge)
    known = aggregate(votes, intervals=kind)
    for read in (Judgements.from_orders(pairs.tolist(), judge=judge), votes):
        assert_same(aggregate(read, "plackett_luce", intervals=kind), known, atol=2e-3)


@pytest.mark.parametrize("shape", ["vote", "choice"])
def test_one_more_choice_of_an_item_never_makes_it_less_sure(shape):
    for seed in range(12):
        random = np.random.default_rng(seed)
        k = int(random.integers(3, 6))
        orders, item = random_orders(seed, 8, k), int(random.integers(k))
        rest = [other for other in range(k) if other != item]
        more = [*orders, [[item], rest if shape == "choice" else rest[:1]]]
        before, after = (board_of(some, items=range(k)) for some in (orders, more))
        gain = [norm.ppf(b.probability_above(item, r)) for b in (after, before) for r in rest]
        assert (np.subtract(*np.split(np.array(gain), 2)) >= -1e-5).all()
        assert after.score_low[item] >= before.score_low[item] - 1e-5
        assert after.score_high[item] >= before.score_high[item] - 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_counts_names_and_queries_change_nothing(kind, monkeypatch):
    orders = random_orders(0, 9, 5)
    known = board_of(orders * 2, kind)
    assert_same(board_of(orders, kind, count=[2] * 9), known, atol=1e-5)
    named = [[[f"{item}" for item in tier] for tier in order] for order in orders]
    both = board_of([*named, *orders * 2], kind, groups=["a"] * 9 + ["b"] * 18)
    assert_allclose(both.probability_matrix("b"), known.probability_matrix(), atol=1e-6)
    monkeypatch.setattr(_maximum_likelihood, "_PROFILED", 0)  # the cheap form is nearly the same
    cheap = board_of(orders * 2, kind).probability_matrix()
    assert_allclose(cheap, known.probability_matrix(), atol=0.05)


def test_robust_statements_need_judges_who_agree():
    orders, judge = [[*"abcd"]] * 24 + [[*"bacd"]] * 6, np.repeat(range(3), 10)
    few = board_of(orders, "robust", judge=judge)
    assert (few.rank_low == 1).all() and (few.rank_high == 4).all()
    alone, many = board_of(orders, "robust"), board_of(orders, "robust", judge=np.arange(30))
    assert alone.is_first_clear()  # 30 orders by as many people
    assert_allclose(many.probability_matrix(), alone.probability_matrix())
    for seed in range(4):
        orders, judge = random_orders(seed, 30, 5), np.arange(30) % 6
        boards = [board_of(orders, kind, judge=judge) for kind in KINDS]
        z = [np.abs(board._quantiles(None)[0]) for board in boards]
        assert (boards[0].rows_of() == boards[1].rows_of()).all() and (z[1] <= z[0] + 1e-9).all()


def test_messages_name_what_works():
    orders = Judgements.from_orders(random_orders(0, 20, 4))
    for method in ("plackett_luce", "btl", "kemeny", "borda"):
        board = aggregate(orders, method)
        assert not board.audit().fired
        with pytest.raises(ValueError, match=r"Pass .*n_resamples=1000") as caught:
            board.may_be_first()
        if "'robust'" in str(caught.value):
            board = aggregate(orders, method, intervals="robust")
            assert len(board.may_be_first()) >= 1
            assert method == "plackett_luce" and len(board.next_comparisons(2)) == 2
            assert board.next_comparisons(2) == aggregate(orders, method).next_comparisons(2)
            continue
        with pytest.raises(ValueError, match=r"n_resamples=1000"):
            aggregate(orders, method, intervals="robust")
        with pytest.raises(ValueError, match=re.escape("aggregate(judgements, 'plackett_luce')")):
            board.next_comparisons(2)
        assert len(aggregate(orders, method, n_resamples=20).may_be_first()) >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_items_apart_never_compared_and_queries_without_orders(kind):
    with pytest.warns(UserWarning, match="do not connect all items"):
        board = board_of([[0, 1]] * 9 + [[2, 3, 4]] * 5, kind, items=range(6))
    assert np.isnan(board.score_low[5]) and np.isnan(board.probability_matrix()[0, -1])
    with pytest.warns(UserWarning, match="No judgement compares"):
        board = board_of([[0, 1]] * 9 + [[[2, 3]]], kind, groups=["a"] * 9 + ["b"])
    assert board.probability_above(0, 1, "a") > 0.9


@pytest.mark.slow
@pytest.mark.simulation
@pytest.mark.parametrize(
    ("name", "n", "bounds"),
    [
        ("best-worst", 1, {"scores": 0.1, "pairs": 0.1, "first": 0.06}),
        ("best-worst", 5, {"scores": 0.1, "pairs": 0.1, "first": 0.06}),
        ("best-worst, respondents", 5, {"scores": 0.1, "pairs": 0.08, "first": 0.06}),
        ("best-worst, respondents", 20, {"scores": 0.1, "pairs": 0.1, "first": 0.06}),
    ],
)
def test_simulated_surveys_hold_what_they_say(name, n, bounds):
    world, statements, options = worlds.WORLDS[name]
    found = worlds.rates(world, statements, n, 80, **options)
    assert all(found[key] <= bound for key, bound in bounds.items()), found
