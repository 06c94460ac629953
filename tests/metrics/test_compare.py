"""compare_rankings: intervals, p-values, several metrics and rankings, and unusual input."""

import itertools

import numpy as np
import pytest

from sklearn_rankcal import metrics as m
from sklearn_rankcal import order_to_ranks, ranks_to_order
from sklearn_rankcal.metrics import compare_rankings, ndcg_score

from ..metric_data import QUERIES, S, Y

FIRST, SECOND = np.array([0.5, 0.25, 1.0, 0.0]), np.array([0.25, 0.5, 0.5, 0.125])


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-20, 1e200, 1e307])
def test_only_ratios_of_weights_count(scale):
    weight = np.array([1.0, 2.0, 3.0, 0.0])
    wanted = compare_rankings(None, FIRST, SECOND, sample_weight=weight, n_resamples=200)
    found = compare_rankings(None, FIRST, SECOND, sample_weight=weight * scale, n_resamples=200)
    for name in ("first", "second", "difference", "low", "high", "p_value"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-3), name


@pytest.mark.parametrize(
    "given, words",
    [
        ({"second": [1.0]}, "1-D arrays of the same length"),
        ({"first": [np.nan] * 4}, "No query"),
        ({"confidence_level": 95}, "confidence_level"),
        ({"n_resamples": 0}, "n_resamples"),
        ({"sample_weight": [1, 1, -1, 1]}, "non-negative"),
        ({"sample_weight": [1, 1, np.inf, 1]}, "weight must hold one finite, non-negative number"),
        ({"first": [1, 1, np.inf, 1]}, "first and second must hold a finite number"),
        ({"second": [1e300, 1, 0, 1]}, "first and second must hold a finite number"),
        ({"n_resamples": 2.5}, "n_resamples must be a whole number"),
        ({"n_resamples": True}, "n_resamples must be a whole number"),
        ({"n_resamples": "100"}, "n_resamples must be a whole number"),
        ({"n_resamples": 10**12}, "n_resamples must be a whole number from 1 to"),
        ({"confidence_level": "0.95"}, "confidence_level must be a number in"),
        ({"confidence_level": None}, "confidence_level must be a number in"),
    ],
)
def test_values_that_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        compare_rankings(None, **{"first": FIRST, "second": SECOND, **given})


@pytest.mark.parametrize("function", [order_to_ranks, ranks_to_order])
@pytest.mark.parametrize("bad", [3, [[1, 2], [0, 1]]])
def test_orders_and_ranks_have_one_dimension(function, bad):
    with pytest.raises(ValueError, match="must be a 1-D array"):
        function(bad)


@pytest.mark.parametrize("name", ["ties", "zero_division"])
def test_an_array_is_not_an_option(name):
    with pytest.raises(ValueError, match=name):
        ndcg_score([1, 0], [0.5, 0.25], groups=[0, 0], **{name: np.array([0, 1])})


# ---------------------------------------------------------------- p-values


def flipped_sums(difference, weight):
    """The weighted mean differences with all signs."""
    signs = np.array(list(itertools.product([-1, 1], repeat=len(difference))))
    return signs @ (weight * difference) / weight.sum()


@pytest.mark.parametrize("n", [2, 3, 5, 8, 11])
def test_the_p_value_of_few_queries_is_the_share_of_all_signs(n):
    rng = np.random.default_rng(n)
    first, second = rng.integers(0, 8, size=(2, n)) / 8.0
    weight = rng.integers(1, 4, n).astype(float)
    means = flipped_sums(first - second, weight)  # sums of eighths are exact
    found = compare_rankings(None, first, second, sample_weight=weight, n_resamples=10)
    observed = np.average(first - second, weights=weight)
    share = (np.abs(means * weight.sum()) >= abs(observed * weight.sum()) - 1e-12).mean()
    assert found.p_value == pytest.approx(share, rel=1e-12)


def test_drawn_signs_give_the_p_value_of_all_signs():
    rng = np.random.default_rng(0)
    for n in (17, 18):
        difference = np.abs(rng.normal(size=n)) * np.where(rng.random(n) < 0.75, 1, -1)
        exact = (np.abs(flipped_sums(difference, np.ones(n))) >= difference.mean() - 1e-12).mean()
        found = compare_rankings(None, difference, np.zeros(n), n_resamples=40_000)
        assert found.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact / 40_000))
        assert compare_rankings(None, difference, np.zeros(n), n_resamples=1).p_value in (0.5, 1.0)
    # the observed signs count as one more draw
    certain = compare_rankings(None, np.ones(50), np.zeros(50), n_resamples=99)
    assert certain.p_value == 0.01


@pytest.mark.parametrize("n", [6, 12, 25, 60])
def test_the_p_value_depends_neither_on_the_unit_nor_on_the_order(n):
    # sums of multiples of 0.1 tie, and the ties come out with other rounding in each unit
    rng = np.random.default_rng(n)
    for _ in range(20):
        first, second = rng.integers(0, 6, size=(2, n)) * 0.1
        options = {"n_resamples": 300, "random_state": 0}
        expected = compare_rankings(None, first, second, **options).p_value
        for scale in (0.3, 0.7, 1e-3, 7e5):
            found = compare_rankings(None, scale * first, scale * second, **options)
            assert found.p_value == expected
        order = rng.permutation(n)
        assert compare_rankings(None, first[order], second[order], **options).p_value == expected
        assert compare_rankings(None, second, first, **options).p_value == expected
        assert compare_rankings(None, first + 1, second + 1, **options).p_value == expected


def test_differences_that_only_rounding_makes_do_not_count():
    first = np.full(40, 0.1 + 0.2)
    assert (first != 0.3).all()
    assert compare_rankings(None, first, np.full(40, 0.3), n_resamples=99).p_value == 1.0


def test_few_differences_widen_the_interval_to_0():
    """Student's interval of these values does not contain 0, but one of 16 sign flips is as far."""
    found = compare_rankings(None, [0.31, 0.3, 0.28, 0.33, 0.0], np.zeros(5), metric="seconds")
    assert (found.p_value, found.low) == (0.125, 0.0)


def test_large_values_overflow_nowhere():
    found = compare_rankings(None, FIRST * 9e99, SECOND * 9e99, metric="mine")
    small = compare_rankings(None, FIRST, SECOND, metric="mine")
    assert (found.low, found.high) == pytest.approx((small.low * 9e99, small.high * 9e99))


# ---------------------------------------------------------------- several metrics and rankings


def test_compare_rankings_uses_weights_and_only_defined_queries():
    y, groups = [1, 0, 0, 0, 1, 0], [0, 0, 1, 1, 2, 2]
    first, second = [1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 1, 0]
    result = m.compare_rankings(y, first, second, metric="mrr", groups=groups, n_resamples=50)
    assert (result.n_queries, result.first, result.second) == (2, 1.0, 0.75)
    weighted = m.compare_rankings(
        y,
        first,
        second,
        metric="mrr",
        groups=groups,
        sample_weight=[3, 3, 1, 1, 1, 1],
        n_resamples=50,
    )
    assert weighted.second == pytest.approx((3 * 0.5 + 1) / 4)
    ranks = [1, 2, 1, 2, 1, 2]
    assert m.compare_rankings(y, ranks, ranks, as_ranks=True, groups=groups).p_value == 1.0


def test_systems_are_compared_in_pairs_or_with_a_baseline():
    rng = np.random.default_rng(0)
    n = len(QUERIES.y)
    systems = {
        "best": QUERIES.latent,
        "noisy": QUERIES.latent + rng.normal(size=n),
        "noise": rng.normal(size=n),
        "more noise": rng.normal(size=n),
    }
    arguments = {"groups": QUERIES.groups, "metric": ["ndcg@5", "err"], "n_resamples": 500}
    table = m.compare_rankings(QUERIES.y, systems, **arguments)
    assert {len(column) for column in table.values()} == {12}
    for row in range(12):
        names = [str(table[column][row]) for column in ("metric", "first", "second")]
        single = m.compare_rankings(
            QUERIES.y, systems[names[1]], systems[names[2]], metric=names[0],
            groups=QUERIES.groups, n_resamples=500,
        )  # fmt: skip
        for column in ("difference", "low", "high", "p_value", "n_queries"):
            assert table[column][row] == getattr(single, column)
        assert table["first_mean"][row] == single.first
    assert (table["adjusted_p_value"] >= table["p_value"]).all()
    # Holm (1979) multiplies sorted p-values by m, m - 1, .., 1; they do not decrease, or exceed 1
    order = np.argsort(table["p_value"])
    holm = np.maximum.accumulate(table["p_value"][order] * np.arange(12, 0, -1)).clip(max=1)
    np.testing.assert_allclose(table["adjusted_p_value"][order], holm)
    assert holm[0] < holm[-1]
    against = m.compare_rankings(QUERIES.y, systems, baseline="noise", **arguments)
    assert against["first"].tolist() == ["best", "noisy", "more noise"] * 2
    assert set(against["second"]) == {"noise"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"first": {"a": S}}, "at least two rankings; got 1"),
        ({"first": {"a": S, "b": S}, "baseline": "c"}, "one of the rankings, 'a', 'b'; got 'c'"),
        ({"first": {"a": S, "b": S}, "metric": []}, "metrics is empty"),
    ],
)
def test_bad_comparisons_of_several_rankings(arguments, message):
    with pytest.raises(ValueError, match=message):
        m.compare_rankings(Y, groups=[0, 0, 0], **arguments)


def test_values_of_queries_are_compared_by_name():
    rng = np.random.default_rng(0)
    values = {name: rng.random(30) for name in ("a", "b", "c")}
    table = m.compare_rankings(None, values, baseline="c", metric="mine", n_resamples=100)
    single = m.compare_rankings(None, values["b"], values["c"], n_resamples=100)
    assert table["metric"].tolist() == ["mine"] * 2 and table["first"].tolist() == ["a", "b"]
    for column in ("difference", "low", "high", "p_value"):
        assert table[column][1] == getattr(single, column)


@pytest.mark.parametrize(
    ("labels", "given", "message"),
    [
        (None, {"groups": [0, 0, 0]}, "groups and as_ranks belong to the rows"),
        (None, {"metric": ["ndcg", "map"]}, "values of a single metric"),
        (None, {"threshold": 2}, "values of a single metric"),
        ({"q": {"d": 1}}, {"as_ranks": True}, "groups and as_ranks belong to the rows"),
        ({"q": {"d": 1}}, {"sample_weight": [1, 1, 1]}, "runs without sample_weight"),
    ],
)
def test_arguments_that_do_not_belong_to_the_kind_of_rankings(labels, given, message):
    with pytest.raises(TypeError, match=message):
        m.compare_rankings(labels, S, S, **given)
