"""Comparisons of rankings: bootstrap intervals, several metrics, several systems."""

import numpy as np
import pytest

from sklearn_rankcal import metrics as m
from sklearn_rankcal.metrics._compare import _holm

from ..metric_data import QUERIES, S, Y


def test_the_bootstrap_interval_is_close_to_the_normal_interval():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.3, 1, 400), rng.normal(0, 1, 400)
    result = m.compare_rankings(None, a, b, random_state=1)
    half = 1.96 * (a - b).std() / 20
    assert result.difference == pytest.approx((a - b).mean())
    assert result.low == pytest.approx(result.difference - half, abs=0.02)
    assert result.high == pytest.approx(result.difference + half, abs=0.02)
    assert result.p_value < 0.05
    swapped = m.compare_rankings(None, b, a, random_state=1)
    assert swapped.low == pytest.approx(-result.high)
    assert "400 queries" in str(result)


@pytest.mark.filterwarnings("ignore:The interval is based on:UserWarning")  # of three queries
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"first": [1.0], "second": [1.0, 2.0]}, "1-D arrays of the same length"),
        ({"first": [np.nan], "second": [1.0]}, "No query"),
        ({"first": [1.0], "second": [1.0], "confidence_level": 95}, "confidence_level"),
        ({"first": [1.0], "second": [1.0], "n_resamples": 0}, "n_resamples"),
        ({"first": [1.0], "second": [1.0], "sample_weight": [-1.0]}, "non-negative"),
    ],
)
def test_bad_bootstrap_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        m.compare_rankings(None, **arguments)


def test_several_metrics_in_one_comparison():
    rng = np.random.default_rng(0)
    noisy = QUERIES.latent + rng.normal(size=len(QUERIES.y))
    arguments = {"groups": QUERIES.groups, "n_resamples": 200}
    found = m.compare_rankings(
        QUERIES.y, QUERIES.latent, noisy, metric=["ndcg@5", "map"], threshold=2, **arguments
    )
    one = m.compare_rankings(QUERIES.y, QUERIES.latent, noisy, metric="ndcg@5", **arguments)
    other = m.compare_rankings(
        QUERIES.y, QUERIES.latent, noisy, metric="map", threshold=2, **arguments
    )
    for column in ("difference", "low", "high", "p_value", "n_queries"):
        assert found[column].tolist() == [getattr(one, column), getattr(other, column)]
    assert found["metric"].tolist() == ["ndcg@5", "map"]
    assert set(found["first"]) == {"first"} and set(found["second"]) == {"second"}


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
    np.testing.assert_array_equal(table["adjusted_p_value"], _holm(table["p_value"]))
    against = m.compare_rankings(QUERIES.y, systems, baseline="noise", **arguments)
    assert against["first"].tolist() == ["best", "noisy", "more noise"] * 2
    assert set(against["second"]) == {"noise"}


def test_holms_correction():
    """Holm (1979) multiplies the sorted p-values by m, m - 1, .., 1.

    The results are made non-decreasing and are cut at 1.
    """
    got = _holm(np.array([0.01, 0.04, 0.03, 0.005]))
    np.testing.assert_allclose(got, [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(_holm(np.array([0.9, 0.6])), [1.0, 1.0])


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
