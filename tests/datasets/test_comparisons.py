"""The generator of comparisons from graded relevance: distributions, scores and bad input."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2

from sklearn_rankcal.aggregation import Judgements
from sklearn_rankcal.datasets import make_comparisons
from sklearn_rankcal.labels import preference_labels

RELEVANCE = np.array([2.0, 0.0, 1.0, 5.0, 1.0, 1.0, -1.0])
GROUPS = np.array(["a", "b", "a", "single", "b", "a", "a"])


def test_frequencies_follow_the_model():
    # Every ordered pair has a known probability: query, unordered pair, then equation (26).
    n, noise = 200_000, 0.7
    data = make_comparisons(RELEVANCE, GROUPS, n, noise=noise, random_state=1)
    expected = np.zeros((7, 7))
    for query in ("a", "b"):
        rows = np.flatnonzero(GROUPS == query)
        for i in rows:
            for j in rows:
                if i != j:
                    chance = expit((RELEVANCE[i] - RELEVANCE[j]) / noise)
                    expected[i, j] = n / 2 / (len(rows) * (len(rows) - 1) / 2) * chance
    observed = np.zeros((7, 7))
    np.add.at(observed, (data.pairs[:, 0], data.pairs[:, 1]), 1)
    possible = expected > 0
    assert observed[~possible].sum() == 0
    statistic = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
    # 6 + 1 unordered pairs in both directions, whose counts have one known sum
    assert statistic < chi2.ppf(1 - 1e-6, possible.sum() - 1)


def test_scores_are_the_mean_log_odds():
    for noise in (1.0, 0.3):
        scores = make_comparisons(RELEVANCE, GROUPS, 1, noise=noise, random_state=0).scores
        for i, (group, value) in enumerate(zip(GROUPS, RELEVANCE, strict=True)):
            others = np.flatnonzero((GROUPS == group) & (np.arange(7) != i))
            difference = (value - RELEVANCE[others]) / noise
            # Equation (27) as it is printed, with noise
            terms = np.log1p(np.exp(difference)) - np.log1p(np.exp(-difference))
            expected = terms.mean() if len(others) else 0.0
            assert scores[i] == pytest.approx(expected, abs=1e-12)


def test_entries_agree_with_each_other():
    data = make_comparisons(RELEVANCE, GROUPS, 500, random_state=3)
    assert data.pairs.shape == (500, 2) and data.groups is GROUPS
    labels = preference_labels(data.pairs, GROUPS)
    for name in ("query", "row", "size"):
        assert np.array_equal(data.y[name], labels[name])
    for ours, others in zip(data.y["wins"], labels["wins"], strict=True):
        assert np.array_equal(ours, others)
    judgements = Judgements.from_labels(data.y)
    assert judgements.n_judgements == 500
    again = make_comparisons(RELEVANCE, GROUPS, 500, random_state=3)
    assert np.array_equal(again.pairs, data.pairs)
    assert not np.array_equal(
        make_comparisons(RELEVANCE, GROUPS, 500, random_state=4).pairs, data.pairs
    )


def test_large_differences_do_not_overflow():
    data = make_comparisons([1e50, 0.0], [0, 0], 50, noise=1e-50, random_state=0)
    assert (data.pairs == [0, 1]).all()
    np.testing.assert_allclose(data.scores, [1e100, -1e100])
    data = make_comparisons([1e-50, 0.0], [0, 0], 50, noise=1e50, random_state=0)
    np.testing.assert_allclose(data.scores, [1e-100, -1e-100])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_comparisons": 0}, "n_comparisons must be a whole number >= 1; got 0"),
        ({"noise": 0.0}, "noise must be a finite number > 0"),
        ({"noise": np.inf}, "noise must be a finite number > 0"),
        ({"relevance": [1.0, np.nan, 0.0]}, "relevance contains NaN or infinity .first at row 1"),
        ({"relevance": [[1.0, 0.0, 2.0]]}, "relevance must be 1-D"),
        ({"relevance": ["a", "b", "c"]}, "relevance must be real numbers"),
        ({"relevance": [1.1e50, 0.0, 0.0]}, "relevance has 1.1e.50"),
        ({"relevance": [0.9e-50, 0.0, 0.0]}, "relevance has 9e-51"),
        ({"noise": 1e-51}, "noise has 1e-51"),
        ({"groups": [0, 0]}, "groups has 2 entries"),
        ({"groups": [0, 1, 2]}, "No query has two documents"),
    ],
)
def test_bad_arguments(change, message):
    arguments = {"relevance": [1.0, 0.0, 2.0], "groups": [0, 0, 0], "n_comparisons": 5, **change}
    with pytest.raises(ValueError, match=message):
        make_comparisons(**arguments)
