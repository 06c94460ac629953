"""The weights of members of a combination, on held-out scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize, nnls

from sklearn_rankcal.losses import NDCG
from sklearn_rankcal.models import Training
from sklearn_rankcal.models._member_weights import (  # weights without a fit of members
    _listwise,
    _nonnegative_weights,
    listwise_error,
    listwise_weights,
    nonnegative_weights,
)
from sklearn_rankcal.queries import Queries

RNG = np.random.default_rng(0)
QUERIES = Queries.from_codes(np.repeat(np.arange(40), RNG.integers(1, 7, 40)))
N = QUERIES.n_rows
SCORES = RNG.normal(size=(N, 3))
TARGETS = RNG.random(N) * (RNG.random(N) < 0.4)
WEIGHT = RNG.integers(1, 4, N).astype(float)


def by_hand(scores, targets, weight):
    """A row of weight 2 counts as two rows."""
    rows = np.repeat(np.arange(N), weight.astype(int))
    total = 0.0
    for query in range(QUERIES.n_queries):
        part = rows[QUERIES.codes[rows] == query]
        largest = scores[part].max()
        share = np.log(np.exp(scores[part] - largest).sum()) + largest
        total += targets[part] @ (share - scores[part])
    return total


def test_cross_entropy_and_its_derivatives():
    wanted = by_hand(SCORES[:, 0], TARGETS, WEIGHT)
    assert listwise_error(SCORES[:, 0], TARGETS, QUERIES, WEIGHT) == pytest.approx(wanted)
    plain = by_hand(SCORES[:, 0], TARGETS, np.ones(N))
    assert listwise_error(SCORES[:, 0], TARGETS, QUERIES) == pytest.approx(plain)
    off = check_grad(
        lambda s: _listwise(s, TARGETS, QUERIES, WEIGHT)[0],
        lambda s: _listwise(s, TARGETS, QUERIES, WEIGHT)[1],
        SCORES[:, 0],
    )
    assert off < 1e-4


def test_levels_of_queries_and_huge_scores():
    """A constant added to the scores of a query changes nothing."""
    level = QUERIES.broadcast(RNG.normal(size=QUERIES.n_queries) * 1e3)
    same = listwise_error(SCORES[:, 0] + level, TARGETS, QUERIES)
    assert same == pytest.approx(listwise_error(SCORES[:, 0], TARGETS, QUERIES), rel=1e-9)
    assert np.isfinite(listwise_error(1e6 * SCORES[:, 0], TARGETS, QUERIES))


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_weights_have_the_least_cross_entropy_of_all(weight):
    """Without a penalty, against another search; the level makes the means equal.

    One more query of equal shares counts, which bounds the weights of scores without errors.
    """
    equal = QUERIES.broadcast(QUERIES.mean(TARGETS))
    targets = TARGETS + (equal - TARGETS) / (1 + np.count_nonzero(QUERIES.sizes > 1))
    found, shares, level = listwise_weights(
        list("abc"), SCORES, Training(None, TARGETS, QUERIES, weight), 0.0
    )
    values = np.array(list(found.values()))
    assert (values >= 0).all() and sum(shares.values()) == pytest.approx(1)

    def error(weights):
        return listwise_error(SCORES @ weights, targets, QUERIES, weight)

    best = minimize(error, np.ones(3), method="Powell", bounds=[(0, 9)] * 3, tol=1e-10).x
    if not values.any() or not best.any():
        pytest.fail("the example says nothing")
    np.testing.assert_allclose(values, best, atol=1e-3)
    mass = np.ones(N) if weight is None else weight
    assert mass @ np.exp(SCORES @ values + level) == pytest.approx(mass @ targets)
    right = Training(None, TARGETS, QUERIES, weight)
    for scores in (TARGETS, 50 * TARGETS):  # without an error
        found, _, _ = listwise_weights(["a"], np.log(scores + 1e-9)[:, None], right, 0.0)
        assert found["a"] < 5


def test_a_large_penalty_makes_weights_equal_and_useless_members_have_none():
    _, shares, _ = listwise_weights(list("abc"), SCORES, Training(None, TARGETS, QUERIES), 1e6)
    np.testing.assert_allclose(list(shares.values()), 1 / 3, atol=1e-3)
    constant = QUERIES.broadcast(RNG.normal(size=QUERIES.n_queries))
    two = np.column_stack([SCORES[:, 0], constant])
    found, shares, _ = listwise_weights(list("ab"), two, Training(None, TARGETS, QUERIES), 30.0)
    assert shares == {"a": 1.0, "b": 0.0} and found["b"] == 0
    for columns, targets in ((two[:, 1:], TARGETS), (SCORES[:, :1], np.zeros(N))):
        found, _, _ = listwise_weights(["a"], columns, Training(None, targets, QUERIES), 30.0)
        assert np.isfinite(found["a"])


# -------------------------------------------------------------------- least squares


def weigh(columns, targets=TARGETS, queries=QUERIES, weight=None, alpha=0.0):
    """Return weights and shares of the columns, held-out scores of as many members."""
    columns = np.column_stack(columns)
    names = [str(number) for number in range(columns.shape[1])]
    found = nonnegative_weights(names, columns, Training(None, targets, queries, weight), alpha)
    return tuple(np.array(list(one.values())) for one in found)


def test_weights_are_the_best_nonnegative_ones():
    """On every subset of the members, the free weights solve the normal equations."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, m, penalty = 30, int(rng.integers(1, 5)), float(rng.choice([0.0, 0.1, 10.0]))
        columns, target = rng.normal(size=(n, m)), rng.normal(size=n)
        share = rng.random(n)
        share /= share.sum()
        gram = columns.T @ (columns * share[:, None])
        equal = max(0.0, (columns.T @ (share * target)).sum()) / max(1.0, gram.sum())

        def risk(w, columns=columns, target=target, share=share, penalty=penalty, equal=equal):
            return share @ (target - columns @ w) ** 2 + penalty * ((w - equal) ** 2).sum()

        best = np.inf
        for free in itertools.chain.from_iterable(
            itertools.combinations(range(m), size) for size in range(m + 1)
        ):
            w, some = np.zeros(m), list(free)
            if some:
                left = gram[np.ix_(some, some)] + penalty * np.eye(len(some))
                right = columns[:, some].T @ (share * target) + penalty * equal
                w[some] = np.linalg.solve(left, right)
            if (w >= 0).all():
                best = min(best, risk(w))
        found = _nonnegative_weights(columns, target, share, penalty)
        assert (found >= 0).all()
        assert risk(found) == pytest.approx(best, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("weight", [None, WEIGHT, np.where(QUERIES.codes < 20, 2.0, 1.0)])
def test_weights_minimise_the_error_of_queries_of_equal_weight(weight):
    """Scores and targets are centred by the weighted mean of their query, which may differ."""
    found, _ = weigh(SCORES.T, weight=weight)
    root = np.sqrt((1 if weight is None else weight) / QUERIES.broadcast(QUERIES.sizes))
    columns = np.column_stack([root * QUERIES.center(scores, weight) for scores in SCORES.T])
    expected, _ = nnls(columns, root * QUERIES.center(TARGETS, weight))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)


def test_equal_constant_and_wrong_members():
    """No non-negative weights of wrong members are better than 0, but a ranking is needed."""
    good = TARGETS + SCORES[:, 0]
    np.testing.assert_allclose(weigh([good, good], alpha=30.0)[1], [0.5, 0.5])
    weights, shares = weigh([np.full(N, 0.1), good])
    assert weights[0] == 0 and shares.tolist() == [0.0, 1.0]
    assert weigh([-TARGETS, -(TARGETS**3)])[1].tolist() == [0.5, 0.5]
    assert np.isfinite(weigh([np.full(N, 0.1)])[0]).all()


def test_members_that_nearly_cancel_each_other_get_no_large_weights():
    """The best equal weights are about 10^6, and multiply what is left of two columns."""
    column = SCORES[:, 0]
    both = [column, 1e-8 * SCORES[:, 1] - column]
    targets = TARGETS + 1e7 * (both[0] + both[1])  # of the size of the targets
    assert weigh(both, targets, alpha=30.0)[0].max() < 10


@pytest.mark.parametrize("exponent", [-160, -60, 60, 160])
def test_the_unit_of_the_targets_changes_no_share(exponent):
    good = [TARGETS + scores for scores in SCORES.T]
    usual, shares = weigh(good, alpha=30.0)
    scaled, others = weigh(good, np.ldexp(TARGETS, exponent), alpha=30.0)
    np.testing.assert_allclose(others, shares)
    np.testing.assert_allclose(np.ldexp(scaled, -exponent), usual)


def test_the_penalty_draws_to_equal_shares_and_vanishes():
    good = [TARGETS + SCORES[:, 0], TARGETS + 2 * SCORES[:, 1]]

    def spread(alpha):
        return np.ptp(weigh(good, alpha=alpha)[1])

    assert spread(0.0) > spread(30.0) > spread(1e6)
    assert spread(1e9) == pytest.approx(0.0, abs=1e-6)


def test_queries_of_one_document_change_no_weight():
    queries = Queries.from_groups(np.append(QUERIES.codes, 1000 + np.arange(200)))
    good = np.column_stack([TARGETS + scores for scores in SCORES.T])
    table = np.vstack([good, RNG.normal(size=(200, 3))])
    several, _ = weigh(table.T, np.append(TARGETS, np.ones(200)), queries, alpha=30.0)
    np.testing.assert_allclose(several, weigh(good.T, alpha=30.0)[0])
    only_such = weigh(SCORES[:40].T, np.ones(40), Queries.uniform(40, 1), alpha=30.0)
    np.testing.assert_allclose(only_such[1], 1 / 3)


# -------------------------------------------------------------------- consistency


def test_a_member_with_the_expected_targets_makes_the_sum_consistent():
    """Two documents. With probability 1/2 the labels are (1, 0), else (2, 4).

    The expected labels are (1.5, 2), but the expected NDCG targets rank the first document higher.
    A member that converges to the expected labels is not enough.
    """
    queries, labels = Queries.uniform(2, 2), np.array([1.0, 0.0, 2.0, 4.0])
    targets = NDCG(shrinkage=0.0).training_targets(labels, queries)
    by_labels, by_targets = (
        np.tile(one.reshape(2, 2).mean(axis=0), 2) for one in (labels, targets)
    )
    assert by_targets[0] > by_targets[1] and by_labels[0] < by_labels[1]
    weights, shares = weigh([by_labels, by_targets], targets, queries)
    total = weights @ [by_labels[:2], by_targets[:2]]
    assert total[0] > total[1] and shares[1] > 0.9
    weights, _ = weigh([by_labels], targets, queries)
    assert weights[0] > 0


def test_a_member_that_only_ranks_perfectly_does_not_make_the_sum_consistent():
    """Two kinds of queries, with certain labels. It is the example of the page on theory."""
    labels, perfect = np.array([[1.0, 6, 0], [1, 2, 0]]), np.array([[0.0, 1, -1], [0, 3, -3]])
    other, two = np.array([[0.0, 1, -1], [-2, 1, 1]]), Queries.uniform(2, 3)
    assert (np.argsort(perfect) == np.argsort(labels)).all()
    members = [perfect.ravel(), other.ravel()]
    weights, _ = weigh(members, labels.ravel(), two)
    np.testing.assert_allclose(weights, [0.538, 0.615], atol=1e-3)
    np.testing.assert_allclose((weights @ members)[3:], [-1.23, 2.23, -1.0], atol=0.01)
    members.append(labels.ravel())
    scores = weigh(members, labels.ravel(), two)[0] @ members
    assert (np.argsort(scores.reshape(2, 3)) == np.argsort(labels)).all()
