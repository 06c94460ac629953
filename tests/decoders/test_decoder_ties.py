"""Decisions of decoders, losses and surrogates between numbers that are equal but for rounding."""

import numpy as np
import pytest

from sklearn_rankcal.decoders import (
    Quota,
    Rules,
    decode_average_precision,
    decode_preferences,
    decode_scores,
    decode_tiers,
)
from sklearn_rankcal.labels import preference_labels, read_preferences
from sklearn_rankcal.losses import PDByScores
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import DifferenceGraph, PointwiseMargin
from sklearn_rankcal.utils._numbers import tie

UNITS = [0.1, 0.3, 0.7, 1e-12, 1e12]
# .1 + .2 is more than .3 in floating point
PAIRS, WEIGHTS = [(0, 1), (0, 1), (1, 0), (1, 2)], [0.1, 0.2, 0.3, 1.0]


def votes(seed, r, n_cases):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 5, (r, r)) * 1.0 for _ in range(n_cases)]


def test_values_are_tied_in_chains():
    values = np.array([[0.3, 1.0, 0.1 + 0.2, 0.3 + 3e-10, 0.5], [1.0, 2.0, 3.0, 4.0, 4.0]])
    tied = tie(values, [1.0, 1.0])
    assert len(set(tied[0, [0, 2, 3]])) == 1
    assert tied[0, [1, 4]].tolist() == [1.0, 0.5]
    assert tied[1].tolist() == values[1].tolist()


def test_borda_ranks_do_not_depend_on_the_unit_and_ties_are_in_document_order():
    for u in votes(0, 6, 60):
        wanted = np.argsort(-(u - u.T).sum(axis=1), kind="stable")  # of whole numbers
        for unit in UNITS:
            result = decode_preferences(u * unit, "borda")
            assert np.argsort(result.ranks).tolist() == wanted.tolist()


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_exact_decoders_have_the_same_objective_and_proof_in_each_unit(method):
    for u in votes(1, 6, 20):
        order = np.random.default_rng(0).permutation(6)
        one, ap = decode_preferences(u, method), decode_average_precision(u + u.T, method)
        for unit in UNITS:
            for v in (u * unit, (u * unit)[np.ix_(order, order)]):
                other = decode_preferences(v, method)
                assert other.objective / unit == pytest.approx(one.objective)
                assert other.optimal and one.optimal
                other = decode_average_precision(v + v.T, method)
                assert (1 - other.objective) / unit == pytest.approx(1 - ap.objective, rel=1e-3)
                assert other.optimal and ap.optimal


def test_tiers_do_not_depend_on_the_unit():
    for case, u in enumerate(votes(2, 6, 60)):
        margin = float(case % 4)
        one = decode_tiers(u, margin)
        for unit in UNITS:
            other = decode_tiers(u * unit, margin * unit)
            assert other.ranks.tolist() == one.ranks.tolist()
            assert other.objective / unit == pytest.approx(one.objective)
            assert other.optimal


def test_a_search_under_rules_descends_in_each_unit():
    """A tolerance of 1e-12 of 1 stopped it at once where weights were small."""
    for u in votes(3, 18, 3):
        rules = Rules(place=np.where(np.arange(18) == 4, 3, 0))
        one = decode_preferences(u, "local_search", rules=rules)
        # the unit is a power of two, by which the search does not change at all
        for unit in (2.0**-60, 2.0**-40, 2.0**40):
            other = decode_preferences(u * unit, "local_search", rules=rules)
            assert other.ranks.tolist() == one.ranks.tolist()
            assert other.optimal == one.optimal


@pytest.mark.parametrize("shift", [1e3, 1e6, 1e9, -1e9])
def test_integer_programs_do_not_depend_on_a_constant_of_the_scores(shift):
    rng = np.random.default_rng(5)
    discounts = 1 / np.log2(np.arange(2, 9))
    for _ in range(40):
        r = int(rng.integers(4, 7))
        scores = rng.integers(0, 4, r) / 8
        of = [rng.random(r) < 0.5 for _ in range(2)]
        rules = Rules(quotas=[Quota(one, first=2, at_most=1) for one in of], soft=10.0)
        one, other = (decode_scores(u, rules=rules) for u in (scores, scores + shift))
        gains = [scores @ discounts[found.ranks - 1] for found in (one, other)]
        assert gains[0] == pytest.approx(gains[1])
        assert one.violation.tolist() == other.violation.tolist()


def test_weights_that_are_equal_but_for_rounding_are_ties():
    labels = read_preferences(preference_labels(PAIRS, [0] * 3, WEIGHTS))
    scores = PDByScores(score_function="copeland").encode(labels, labels.queries)
    assert scores.tolist() == pytest.approx([0, 1 / 3, -1 / 3])
    kept = DifferenceGraph()._pairs(labels)
    assert kept.winner.tolist() == [1] and kept.loser.tolist() == [2]


def test_the_smooth_hinge_gives_equal_utilities_equal_scores():
    surrogate = PointwiseMargin("smooth_hinge", eta=0.6, t=5.0)
    expected = np.array([0.1 + 0.2, 0.3, 0.3 - 2**-54, 0.2, 0.4])
    score = surrogate.minimizer(expected, Queries.single(5))
    assert score[:3].tolist() == [2.5, 2.5, 2.5]
    assert score[3] == pytest.approx(5 - score[4])
