"""Intervals of means over queries: the ends survive one more query against them."""

import numpy as np
import pytest
from scipy import stats

from sklearn_rankcal.losses import MEASURES
from sklearn_rankcal.metrics import compare_rankings, evaluate_rankings, evaluate_run
from sklearn_rankcal.metrics._intervals import bounds_of  # the rule by itself
from sklearn_rankcal.queries import Queries, Ranking, interval_of_mean

from .means_coverage import enumerated, simulated


def students(values, level):
    return stats.t.interval(level, len(values) - 1, values.mean(), stats.sem(values))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 10, 20, 50])
def test_values_of_two_kinds_are_covered(n):
    assert enumerated(n) >= 0.945


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("world", ["80 % zeros", "80 % ones", "95 % no difference"])
def test_values_that_repeat_are_covered(world, weighted):
    for n in (2, 5, 20):
        held, of_student, _ = simulated(world, n, 200, weighted)
        assert held >= 0.945 and of_student < 0.9


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("n", [2, 3, 8, 25])
def test_the_interval_of_different_values_is_students(n, level):
    values = np.random.default_rng(n).beta(2, 2, size=n)
    wanted = np.clip(students(values, level), 0, 1)
    assert interval_of_mean(values, level, bounds=(0, 1)) == pytest.approx(wanted, rel=1e-12)
    equal = interval_of_mean(values, level, np.full(n, 3.0), (0, 1))
    assert equal == pytest.approx(wanted, rel=1e-12)
    ties = np.zeros(n)  # without bounds, equal values make no difference
    ties[0] = 1
    assert interval_of_mean(ties, level) == pytest.approx(students(ties, level))


@pytest.mark.parametrize("weight", [None, np.full(20, 7.0)])
def test_equal_values_count_as_one_more_at_each_bound(weight):
    """With c = n, the additional query has the weight of the others."""
    ones = np.ones(20)
    low, high = interval_of_mean(ones, 0.95, weight, (0, 1))
    assert low == pytest.approx(students(np.append(ones, 0), 0.95)[0]) and high == 1
    # rounding makes no values different
    near = ones - 1e-15 * np.arange(20)
    assert interval_of_mean(near, 0.95, weight, (0, 1)) == pytest.approx((low, high))
    # one bound
    assert interval_of_mean(0 * ones, 0.95, weight, (0, np.inf)) == (0, 0)
    assert interval_of_mean(ones, 0.95, weight, (0, np.inf)) == pytest.approx((low, 1))


def test_one_query_shows_nothing():
    assert interval_of_mean(np.array([0.75]), 0.95, bounds=(0, 1)) == (0, 1)
    assert interval_of_mean(np.array([0.75]), 0.95) == (-np.inf, np.inf)
    found = compare_rankings(None, [0.75], [0.5])
    assert (found.difference, found.low, found.high) == (0.25, -1, 1)
    assert (found.n_queries, found.p_value) == (1, 1.0)
    values = np.random.default_rng(0).random(40)
    for small in (1e-4, 1e-9, 1e-300):  # and 40 queries, of which one has nearly all the weight
        weight = np.append(1, np.full(39, small))
        assert interval_of_mean(values, 0.95, weight, (0, 1)) == (0, 1)
        assert interval_of_mean(values, 0.95, weight) == (-np.inf, np.inf)


@pytest.mark.parametrize("name", MEASURES)
def test_measures_stay_within_their_bounds(name):
    """Also at the best and worst rankings, up to rounding."""
    rng = np.random.default_rng(0)
    labels, queries = rng.integers(0, 2, size=300) * 1.0, Queries.uniform(50, 6)
    low, high = bounds_of(f"{name}@3")
    for scores in (labels, -labels, rng.random(300), np.zeros(300)):
        measure = MEASURES[name]().for_labels(labels)
        values = measure.per_query(Ranking.from_scores(scores, queries), labels)
        assert np.nanmin(values) >= low - 1e-12 and np.nanmax(values) <= high + 1e-12
    assert bounds_of("mine") == (-np.inf, np.inf)


def test_intervals_use_the_bounds_of_the_metric():
    """Of `evaluate_rankings`, `evaluate_run` and `compare_rankings`; weights, undefined values."""
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(60), 5), rng.integers(0, 3, size=300)
    y[:10] = 0  # NDCG is undefined on the first two queries
    scores, weight = y + rng.normal(size=300), rng.uniform(1, 1.5, size=60)[groups]
    names = ["precision@1", "ndcg@3", "dcg", "spearman"]
    options = {"groups": groups, "metrics": names, "threshold": 2, "sample_weight": weight}
    found = evaluate_rankings(y, scores, **options, confidence_level=0.9)
    means = evaluate_rankings(y, scores, **options)
    values = evaluate_rankings(y, scores, **options, return_per_query=True)
    for name, bounds in zip(names, [(0, 1), (0, 1), (0, np.inf), (-1, 1)], strict=True):
        defined, one = ~np.isnan(values[name]), found[name]
        assert one.mean == pytest.approx(means[name], rel=1e-12)
        assert (one.n_queries, one.confidence_level) == (defined.sum(), 0.9)
        wanted = interval_of_mean(values[name][defined], 0.9, weight[::5][defined], bounds)
        assert (one.low, one.high) == pytest.approx(wanted, rel=1e-12)
    assert str(found["dcg"]).endswith("(90 % interval, 60 queries)")
    filled = evaluate_rankings(y, scores, **options, confidence_level=0.9, zero_division=0)
    assert filled["ndcg@3"].n_queries == 60 > found["ndcg@3"].n_queries
    run = evaluate_run(
        {q: {"a": 1} for q in "abcd"}, {q: {"a": 1.0} for q in "abcd"}, metrics="mrr"
    )
    assert run.intervals(0.9)["mrr"].low == interval_of_mean(np.ones(4), 0.9, bounds=(0, 1))[0]


def test_intervals_of_differences_use_the_bounds_of_differences():
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(60), 5), rng.integers(0, 2, size=300)
    options = {"groups": groups, "metrics": "precision@1", "return_per_query": True}
    first, second = y + rng.normal(size=300) / 3, y + rng.normal(size=300) * 9
    a, b = (evaluate_rankings(y, s, **options)["precision@1"] for s in (first, second))
    found = compare_rankings(y, first, second, metric="precision@1", groups=groups)
    assert (found.low, found.high) == interval_of_mean(a - b, 0.95, np.ones(60), (-1, 1))
    assert found.low > 0 and "60 queries" in str(found)
    given = compare_rankings(None, a, b, metric="precision@1")
    assert given == found
    students_own = compare_rankings(None, a, b, metric="mine")
    assert (students_own.low, students_own.high) == pytest.approx(students(a - b, 0.95))


def test_intervals_of_means_refuse():
    options = {"groups": [0, 0], "metrics": "mrr"}
    with pytest.raises(ValueError, match="either return_per_query=True or confidence_level="):
        evaluate_rankings([0, 1], [1, 2], **options, return_per_query=True, confidence_level=0.9)
    with pytest.raises(ValueError, match="confidence_level must be a number in"):
        evaluate_rankings([0, 1], [1, 2], **options, confidence_level=95)
    with pytest.raises(ValueError, match="No query with positive weight has a defined value"):
        evaluate_rankings([0, 0], [1, 2], **options, confidence_level=0.95)
