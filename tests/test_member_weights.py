"""The weights of members of a combination, on held-out scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.special import log_softmax

from sklearn_rankcal.models._member_weights import (
    _listwise,
    _masses,
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
    total = 0.0
    for start, stop in zip(QUERIES.offsets[:-1], QUERIES.offsets[1:], strict=True):
        part = slice(start, stop)
        total -= weight[part].mean() * (targets[part] @ log_softmax(scores[part]))
    return total


def test_cross_entropy_and_its_derivatives():
    wanted = by_hand(SCORES[:, 0], TARGETS, WEIGHT)
    assert listwise_error(SCORES[:, 0], TARGETS, QUERIES, WEIGHT) == pytest.approx(wanted)
    plain = by_hand(SCORES[:, 0], TARGETS, np.ones(N))
    assert listwise_error(SCORES[:, 0], TARGETS, QUERIES) == pytest.approx(plain)
    mass, total = _masses(TARGETS, QUERIES, WEIGHT)
    off = check_grad(
        lambda s: _listwise(s, mass, total, QUERIES)[0],
        lambda s: _listwise(s, mass, total, QUERIES)[1],
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
    """Without a penalty, against a search that starts elsewhere; the factor is that of the unit."""
    found, shares = listwise_weights(list("abc"), SCORES, TARGETS, QUERIES, weight, 0.0)
    values = np.array(list(found.values()))
    assert (values >= 0).all() and sum(shares.values()) == pytest.approx(1)

    def error(weights):
        return listwise_error(SCORES @ weights, TARGETS, QUERIES, weight)

    best = minimize(error, np.ones(3), method="Powell", bounds=[(0, 9)] * 3, tol=1e-10).x
    if not values.any() or not best.any():
        pytest.fail("the example says nothing")
    np.testing.assert_allclose(values / values.sum(), best / best.sum(), atol=1e-3)
    centred = QUERIES.center(SCORES @ values)
    assert centred @ QUERIES.center(TARGETS) == pytest.approx(centred @ centred)


def test_a_large_penalty_makes_weights_equal_and_useless_members_have_none():
    _, shares = listwise_weights(list("abc"), SCORES, TARGETS, QUERIES, None, 1e6)
    np.testing.assert_allclose(list(shares.values()), 1 / 3, atol=1e-3)
    constant = QUERIES.broadcast(RNG.normal(size=QUERIES.n_queries))
    two = np.column_stack([SCORES[:, 0], constant])
    found, shares = listwise_weights(list("ab"), two, TARGETS, QUERIES, None, 30.0)
    assert shares == {"a": 1.0, "b": 0.0} and found["b"] == 0
    for columns, targets in ((two[:, 1:], TARGETS), (SCORES[:, :1], np.zeros(N))):
        found, _ = listwise_weights(["a"], columns, targets, QUERIES, None, 30.0)
        assert np.isfinite(found["a"])


def test_a_member_that_is_right_outweighs_noise():
    right = np.column_stack([np.log(TARGETS + 0.01), RNG.normal(size=N)])
    _, shares = listwise_weights(list("ab"), right, TARGETS, QUERIES, None, 30.0)
    assert shares["a"] > 0.6
