"""The weights of members of a combination, on held-out scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

from sklearn_rankcal.models import Training
from sklearn_rankcal.models._member_weights import (
    _listwise,
    listwise_error,
    listwise_weights,
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
    """Without a penalty, against another search; the level makes the means equal."""
    found, shares, level = listwise_weights(
        list("abc"), SCORES, Training(None, TARGETS, QUERIES, weight), 0.0
    )
    values = np.array(list(found.values()))
    assert (values >= 0).all() and sum(shares.values()) == pytest.approx(1)

    def error(weights):
        return listwise_error(SCORES @ weights, TARGETS, QUERIES, weight)

    best = minimize(error, np.ones(3), method="Powell", bounds=[(0, 9)] * 3, tol=1e-10).x
    if not values.any() or not best.any():
        pytest.fail("the example says nothing")
    np.testing.assert_allclose(values, best, atol=1e-3)
    mass = np.ones(N) if weight is None else weight
    assert mass @ np.exp(SCORES @ values + level) == pytest.approx(mass @ TARGETS)


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


def test_a_member_that_is_right_outweighs_noise():
    right = np.column_stack([np.log(TARGETS + 0.01), RNG.normal(size=N)])
    _, shares, _ = listwise_weights(list("ab"), right, Training(None, TARGETS, QUERIES), 30.0)
    assert shares["a"] > 0.6
