"""Unusual and bad input of the paired bootstrap and of other small helpers."""

import numpy as np
import pytest

from sklearn_rankcal import order_to_ranks, ranks_to_order
from sklearn_rankcal.metrics import evaluate_rankings, ndcg_score, paired_bootstrap

FIRST, SECOND = np.array([0.5, 0.25, 1.0, 0.0]), np.array([0.25, 0.5, 0.5, 0.125])


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-20, 1e200, 1e307])
def test_only_ratios_of_weights_count(scale):
    weight = np.array([1.0, 2.0, 3.0, 0.0])
    wanted = paired_bootstrap(FIRST, SECOND, weight=weight, n_resamples=200)
    found = paired_bootstrap(FIRST, SECOND, weight=weight * scale, n_resamples=200)
    for name in ("first", "second", "difference", "low", "high", "p_value"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-3), name


@pytest.mark.parametrize(
    "given, words",
    [
        ({"weight": [1, 1, np.inf, 1]}, "weight must hold one finite, non-negative number"),
        ({"first": [1, 1, np.inf, 1]}, "first and second must hold a finite number"),
        ({"second": [1e300, 1, 0, 1]}, "first and second must hold a finite number"),
        ({"n_resamples": 2.5}, "n_resamples must be a whole number"),
        ({"n_resamples": True}, "n_resamples must be a whole number"),
        ({"n_resamples": "100"}, "n_resamples must be a whole number"),
        ({"n_resamples": 10**12}, "n_resamples must be a whole number from 1 to"),
        ({"confidence_level": "0.95"}, "confidence_level must be in"),
        ({"confidence_level": None}, "confidence_level must be in"),
    ],
)
def test_paired_bootstrap_refuses(given, words):
    with pytest.raises(ValueError, match=words):
        paired_bootstrap(**{"first": FIRST, "second": SECOND, **given})


@pytest.mark.parametrize("function", [order_to_ranks, ranks_to_order])
@pytest.mark.parametrize("bad", [3, [[1, 2], [0, 1]]])
def test_orders_and_ranks_have_one_dimension(function, bad):
    with pytest.raises(ValueError, match="must be a 1-D array"):
        function(bad)


@pytest.mark.parametrize("name", ["ties", "zero_division"])
def test_an_array_is_not_an_option(name):
    with pytest.raises(ValueError, match=name):
        ndcg_score([1, 0], [0.5, 0.25], groups=[0, 0], **{name: np.array([0, 1])})


def drawn_means(values, weight, n_resamples, seed):
    """Weighted means of bootstrap samples, one sample after the other."""
    random, means = np.random.RandomState(seed), []
    for _ in range(n_resamples):
        rows = random.randint(0, len(values), size=len(values))
        means.append(np.average(values[rows], weights=weight[rows]))
    return np.array(means)


@pytest.mark.parametrize("cells", [1, 100, 1 << 22])
def test_paired_bootstrap_resamples_queries_with_their_weights(monkeypatch, cells):
    # few cells in memory at a time must not change the samples
    monkeypatch.setattr("sklearn_rankcal.metrics._bootstrap._CELLS", cells)
    rng = np.random.default_rng(0)
    first, second, weight = rng.random(30), rng.random(30), rng.uniform(0.5, 2, 30)
    found = paired_bootstrap(first, second, weight=weight, n_resamples=99, random_state=7)
    means = drawn_means(first - second, weight, 99, seed=7)
    assert (found.low, found.high) == pytest.approx(np.quantile(means, [0.025, 0.975]))
    assert found.p_value == pytest.approx(2 * min((means <= 0).mean(), (means >= 0).mean()))


def test_one_resample():
    found = paired_bootstrap(FIRST, SECOND, n_resamples=1)
    mean = drawn_means(FIRST - SECOND, np.ones(4), 1, seed=0)[0]
    assert (found.low, found.high) == pytest.approx((mean, mean))


def test_one_query():
    found = paired_bootstrap([0.75], [0.5], n_resamples=10)
    assert (found.difference, found.low, found.high) == (0.25, 0.25, 0.25)
    assert (found.n_queries, found.p_value) == (1, 0.1)


def test_large_values_overflow_nowhere():
    found = paired_bootstrap(FIRST * 9e99, SECOND * 9e99, n_resamples=50)
    small = paired_bootstrap(FIRST, SECOND, n_resamples=50)
    assert (found.low, found.high) == pytest.approx((small.low * 9e99, small.high * 9e99))


def test_the_interval_of_a_mean_is_that_of_the_bootstrap():
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(30), 5), rng.integers(0, 3, size=150)
    y[:10] = 0  # NDCG is undefined on the first two queries
    scores, weight = rng.normal(size=150), rng.uniform(1, 2, size=30)[groups]
    metrics = ["ndcg@3", "mrr"]
    options = {"groups": groups, "metrics": metrics, "threshold": 2, "sample_weight": weight}
    found = evaluate_rankings(y, scores, **options, confidence_level=0.9, n_resamples=2000)
    means = evaluate_rankings(y, scores, **options)
    values = evaluate_rankings(y, scores, **options, return_per_query=True)
    for name in metrics:
        defined = ~np.isnan(values[name])
        assert found[name].mean == pytest.approx(means[name], rel=1e-12)
        assert found[name].n_queries == defined.sum() < 30
        assert found[name].confidence_level == 0.9
        drawn = drawn_means(values[name][defined], weight[::5][defined], 2000, seed=1)
        expected = np.quantile(drawn, [0.05, 0.95])
        np.testing.assert_allclose([found[name].low, found[name].high], expected, atol=0.02)
    filled = evaluate_rankings(y, scores, **options, confidence_level=0.9, zero_division=0)
    assert filled["ndcg@3"].n_queries == 30
    assert filled["ndcg@3"].mean < found["ndcg@3"].mean
    again = evaluate_rankings(y, scores, **options, confidence_level=0.9, random_state=7)
    assert again["mrr"].low != found["mrr"].low
    assert str(found["mrr"]).endswith(f"(90 % interval, {found['mrr'].n_queries} queries)")


def test_intervals_of_means_refuse():
    options = {"groups": [0, 0], "metrics": "mrr"}
    with pytest.raises(ValueError, match="either return_per_query=True or confidence_level="):
        evaluate_rankings([0, 1], [1, 2], **options, return_per_query=True, confidence_level=0.9)
    with pytest.raises(ValueError, match="confidence_level must be in"):
        evaluate_rankings([0, 1], [1, 2], **options, confidence_level=95)
    with pytest.raises(ValueError, match="No query of positive weight has a defined value"):
        evaluate_rankings([0, 0], [1, 2], **options, confidence_level=0.95)
