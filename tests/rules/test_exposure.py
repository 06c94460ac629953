"""Randomised rankings with fair exposure: `exposure_policy`."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from sklearn_rankcal.decoders import exposure_policy


def discounts(r):
    return 1 / np.log2(np.arange(2, r + 2))


def best_by_enumeration(u, of, targets):
    """The largest expected measure by one variable for each of the r! rankings, or None."""
    placed = np.array([discounts(len(u))[list(p)] for p in itertools.permutations(range(len(u)))])
    shares = np.array([placed[:, of == name].mean(axis=1) for name in np.unique(of)])
    ones = np.ones((1, len(placed)))
    solved = linprog(-(placed @ u), A_ub=-shares, b_ub=-targets, A_eq=ones, b_eq=[1])
    return None if solved.x is None else -solved.fun


@pytest.mark.parametrize("target", ["equal", "merit"])
@pytest.mark.parametrize("ratio", [0.4, 1.0])
def test_policies_are_the_best_of_all_distributions(target, ratio):
    rng = np.random.default_rng(0)
    impossible = 0
    for _ in range(8):
        r = int(rng.integers(1, 6))
        u, of = rng.standard_normal(r).round(1), rng.integers(0, 3, r)
        merit = rng.random(r) ** 2 if target == "merit" else None
        worth = np.ones(r) if merit is None else merit
        means = np.array([worth[of == name].mean() for name in np.unique(of)])
        targets = ratio * discounts(r).mean() * means / worth.mean()
        wanted = best_by_enumeration(u, of, targets)
        if wanted is None:
            with pytest.raises(ValueError, match="largest possible ratio"):
                exposure_policy(u, of=of, target=target, merit=merit, ratio=ratio)
            impossible += 1
            continue
        policy = exposure_policy(u, of=of, target=target, merit=merit, ratio=ratio)
        assert policy.expected[0] == pytest.approx(wanted, abs=1e-4)
        assert policy.price[0] == pytest.approx(np.sort(u)[::-1] @ discounts(r) - wanted, abs=1e-4)
        shares = [policy.exposure[of == name].mean() for name in np.unique(of)]
        assert (shares >= targets - 1e-5).all()
        # what it says is what its rankings are
        matrix = policy.matrix()
        assert matrix.sum(axis=0) == pytest.approx(1)
        assert matrix.sum(axis=1) == pytest.approx(1)
        assert matrix @ discounts(r) == pytest.approx(policy.exposure)
        assert u @ policy.exposure == pytest.approx(policy.expected[0])
        rankings, probabilities = policy.rankings[0], policy.probabilities[0]
        assert (np.sort(rankings, axis=1) == np.arange(1, r + 1)).all()
        assert probabilities.min() > 0
        assert probabilities.sum() == pytest.approx(1)
        assert len(rankings) <= len(np.unique(of)) + 1
    assert impossible == 0 or target == "merit"


def test_documents_are_groups_by_default():
    policy = exposure_policy([3.0, 2.0, 1.0])
    assert policy.exposure == pytest.approx(np.full(3, discounts(3).mean()), abs=1e-5)
    assert policy.expected == pytest.approx(6 * discounts(3).mean(), abs=1e-4)
    # without a demand it is the sort
    free = exposure_policy([3.0, 2.0, 1.0], ratio=0)
    assert free.rankings[0].tolist() == [[1, 2, 3]]
    assert free.price.tolist() == [0.0]
    # documents without a group are not protected
    some = exposure_policy([3.0, 2.0, 1.0], of=[None, "x", "x"], ratio=1.0)
    assert some.exposure[1:].mean() >= discounts(3).mean() - 1e-5


def test_groups_of_booleans_and_other_discounts():
    scores, of = np.arange(8.0), np.array([True, False] * 4)
    phi = (np.arange(8) < 2) / 2.0
    policy = exposure_policy(scores, of=of, discounts=phi)
    assert policy.exposure[of].mean() == pytest.approx(policy.exposure[~of].mean(), abs=1e-5)
    assert policy.exposure.sum() == pytest.approx(1.0)


def test_draws_have_the_probabilities_and_depend_on_query_and_key():
    rng = np.random.default_rng(0)
    scores, groups = rng.standard_normal(24), np.repeat(["a", "b", "c"], 8)
    of = rng.integers(0, 2, 24)
    policy = exposure_policy(scores, groups, of=of)
    draws = np.array([policy.draw(random_state=seed) for seed in range(1500)])
    seen = discounts(8)[draws - 1].mean(axis=0)
    assert seen == pytest.approx(policy.exposure, abs=0.03)
    keyed = np.array([policy.draw(key=day) for day in range(1500)])
    assert discounts(8)[keyed - 1].mean(axis=0) == pytest.approx(policy.exposure, abs=0.03)
    assert (policy.draw(key="today") == policy.draw(key="today")).all()
    # the draw of a query does not depend on the others, nor on the order of the rows
    alone = groups == "b"
    again = exposure_policy(scores[alone], groups[alone], of=of[alone])
    assert (again.draw(key="today") == policy.draw(key="today")[alone]).all()
    order = rng.permutation(24)
    mixed = exposure_policy(scores[order], groups[order], of=of[order])
    assert sorted(mixed.expected) == pytest.approx(sorted(policy.expected), abs=1e-4)
    assert mixed.exposure.sum() == pytest.approx(policy.exposure.sum())
    assert np.allclose(policy.matrix("b").sum(axis=0), 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"ratio": 1.5}, "ratio must be between 0 and 1"),
        ({"target": "fair"}, "Unknown target"),
        ({"target": "merit"}, "needs merit"),
        ({"merit": [1, 1, 1]}, "does not use it"),
        ({"target": "merit", "merit": [1, -1, 1]}, "merit must be finite numbers >= 0"),
        ({"of": ["x"]}, "1 group, but X has 3 rows"),
        ({"discounts": [0, -1, -2]}, "must not be negative"),
        ({"target": "merit", "merit": [1, 0, 0]}, "largest possible ratio"),
    ],
)
def test_bad_demands_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        exposure_policy([3.0, 2.0, 1.0], **arguments)


def test_bad_draws_are_refused():
    policy = exposure_policy([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="not both"):
        policy.draw(key=1, random_state=0)
    with pytest.raises(ValueError, match="one of the 2 queries"):
        policy.matrix()


def test_many_documents_and_groups():
    rng = np.random.default_rng(0)
    scores, of = rng.standard_normal(100), rng.integers(0, 8, 100)
    policy = exposure_policy(scores, of=of)
    shares = [policy.exposure[of == name].mean() for name in range(8)]
    assert shares == pytest.approx(np.full(8, discounts(100).mean()), abs=1e-5)
    assert len(policy.rankings[0]) <= 9


UNITS = [1e-12, 1e-6, 1e-5, 5e-5, 1e-4, 0.1, 0.3, 0.7, 1e4, 1e12]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("what", ["scores", "discounts", "both"])
def test_units_do_not_change_the_policy(what, unit):
    a = 1.0 if what == "discounts" else unit
    b = 1.0 if what == "scores" else unit
    scores, of = np.array([0.9, 0.8, 0.7, 0.6]), ["x", "x", "y", "y"]
    policy = exposure_policy(a * scores, of=of, discounts=b * discounts(4))
    assert policy.expected[0] / (a * b) == pytest.approx(1.9562, abs=2e-5)
    assert policy.price[0] / (a * b) == pytest.approx(0.05693, abs=1e-5)
    wanted = exposure_policy(scores, of=of)
    assert policy.price[0] / (a * b) == pytest.approx(wanted.price[0], rel=1e-6)
    assert policy.exposure / b == pytest.approx(wanted.exposure, abs=1e-6)


@pytest.mark.parametrize("shift", [-1e4, 1.0, 1e4, 1e6])
def test_a_constant_of_the_scores_does_not_change_the_policy(shift):
    scores, of = np.array([0.9, 0.8, 0.7, 0.6]), ["x", "x", "y", "y"]
    wanted = exposure_policy(scores, of=of)
    policy = exposure_policy(scores + shift, of=of)
    assert policy.price == pytest.approx(wanted.price, rel=1e-6)
    assert policy.expected == pytest.approx(wanted.expected + shift * discounts(4).sum())
    assert policy.exposure == pytest.approx(wanted.exposure, abs=1e-6)


@pytest.mark.parametrize("decay", [0.5, 0.999, 0.99999])
def test_nearly_equal_discounts_have_an_exact_price(decay):
    # A constant of the discounts gives all documents the same exposure.
    scores, of, d = np.array([3.0, 1.0, 4.0, 1.5, 5.0]), [0, 1, 0, 1, 0], decay ** np.arange(5)
    wanted = exposure_policy(scores, of=of, discounts=(d - d[-1]) / (d[0] - d[-1]))
    policy = exposure_policy(scores, of=of, discounts=d)
    assert policy.price / (d[0] - d[-1]) == pytest.approx(wanted.price, rel=1e-3)


def test_equal_shares_are_always_possible():
    for unit in UNITS:
        policy = exposure_policy([3.0, 2.0, 1.0], discounts=unit * discounts(3))
        assert policy.exposure / unit == pytest.approx(np.full(3, discounts(3).mean()), abs=1e-7)
    none = exposure_policy([3.0, 2.0, 1.0], discounts=[0.0, 0.0, 0.0])
    assert none.exposure.tolist() == [0, 0, 0]
