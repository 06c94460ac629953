"""Gains and parameters of losses at the edges of float64."""

import math

import numpy as np
import pytest

from sklearn_rankcal import context_columns
from sklearn_rankcal.losses import DCG, ERR, ERU, NDCG, PDByScores, Positional
from sklearn_rankcal.metrics import (
    dcg_score,
    err_score,
    eru_score,
    kendall_tau_score,
    map_score,
    ndcg_score,
    pairwise_disagreement_loss,
    precision_at_k_score,
)
from sklearn_rankcal.queries import Queries

from ..metric_data import per_query


@pytest.mark.parametrize("label", [3e-12, 1e-17, 1e-49, 0.3, 0.5, 1.0, 7.0])
def test_exponential_gains_are_precise_for_small_labels(label):
    # For small y, 2**y rounds to 1. The gain was 0, and the query became undefined silently.
    wanted = math.expm1(label * math.log(2))
    assert dcg_score([label], [1.0], groups=[0]) == pytest.approx(wanted, rel=1e-12, abs=0)


def test_queries_of_small_labels_are_not_undefined():
    assert ndcg_score([1e-17, 2e-17], [1.0, 0.0], groups=[0, 0]) == pytest.approx(
        (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    )


@pytest.mark.parametrize("whole", range(12))
def test_exponential_gains_of_whole_labels_stay_exact(whole):
    assert dcg_score([whole], [0.0]) == 2.0**whole - 1


def test_a_gain_that_writes_into_its_argument_leaves_the_labels_alone():
    y = np.array([1.0, 0.0, 3.0])
    scores, groups = [0.5, 0.75, 1.0], [0, 0, 0]
    double = lambda labels: np.multiply(labels, 2, out=labels)  # noqa: E731
    found = dcg_score(y, scores, gain=double, groups=groups)
    assert found == 2 * dcg_score(y, scores, gain="linear", groups=groups)
    assert y.tolist() == [1.0, 0.0, 3.0]


def test_a_utility_that_writes_into_its_argument_leaves_the_labels_alone():
    y = np.array([1.0, 0.0, 3.0])
    loss = Positional(lambda labels, queries: np.multiply(labels, 2, out=labels))
    assert loss.encode(y, Queries.single(3)).tolist() == [2.0, 0.0, 6.0]
    assert y.tolist() == [1.0, 0.0, 3.0]


@pytest.mark.parametrize(
    "function, given, words",
    [
        (eru_score, {"half_life": "5"}, "half_life must be a number in"),
        (eru_score, {"half_life": None}, "half_life must be a number in"),
        (eru_score, {"half_life": 1.0}, "half_life must be a number in"),
        (eru_score, {"neutral": np.ones(2)}, "neutral must be a finite number"),
        (eru_score, {"neutral": 10**400}, "neutral must be a finite number"),
        (err_score, {"max_relevance": "3"}, "max_relevance must be a number in"),
        (dcg_score, {"gain": np.ones(2)}, "gain must be 'exp2', 'linear'"),
        (dcg_score, {"gain": lambda v: v * np.nan}, "gain returned NaN"),
        (map_score, {"threshold": 10**400}, "threshold must be None, or a finite number"),
        (precision_at_k_score, {"k": 10**400}, "k must be a whole number from 1 to"),
        (ndcg_score, {"k": 10**30}, "k must be a whole number from 1 to"),
    ],
)
def test_parameters_are_refused_by_name(function, given, words):
    with pytest.raises(ValueError, match=words):
        function([1, 0], [0.5, 0.25], groups=[0, 0], **given)


@pytest.mark.parametrize("loss", [DCG(), NDCG(), ERR(max_relevance=3), ERU()])
def test_targets_of_small_labels_keep_their_ratios(loss):
    targets = loss.encode(np.array([1e-13, 2e-13]), Queries.single(2))
    assert targets[1] / targets[0] == pytest.approx(2, rel=1e-9)


def test_labels_of_very_different_size_do_not_tie():
    y, scores = [-8e-24, 7e49, -5e-40, -3e-49], [0, 1, 2, 1]
    assert kendall_tau_score(y, scores, groups=[0] * 4) == kendall_tau_score(
        [0, 3, 1, 2], scores, groups=[0] * 4
    )


@pytest.mark.parametrize("scale", [1e-49, 1.0, 1e49])
def test_the_share_of_graded_preferences_does_not_depend_on_their_scale(scale):
    y = np.array([0.0, 3.0, 1.0, 2.0]) * scale
    found = per_query(
        pairwise_disagreement_loss,
        y,
        [0.0, 0.0, 1.0, 0.5],
        groups=[0, 0, 1, 1],
        pair_weight="graded",
    )
    assert found.tolist() == [0.5, 1.0]


def test_gains_utilities_and_discounts_are_taken_up_to_the_ends_of_the_range():
    y, scores, groups = np.array([0.0, 1.0]), [2.0, 1.0], [0, 0]
    for size in (1e50, 1e-50):
        found = dcg_score(y, scores, gain=lambda y, size=size: y * size, groups=groups)
        assert found == pytest.approx(size / np.log2(3))
        loss = Positional(lambda y, q, size=size: y * size, [1e50, 1e-50])
        found = loss.metric(y, np.array([2, 1]), Queries.single(2))
        assert found == pytest.approx(size * 1e50)
    assert dcg_score([332.0], [1.0], groups=[0]) == pytest.approx(2.0**332)
    for call in (
        lambda: dcg_score([332.3], [1.0], groups=[0]),
        lambda: dcg_score(y, scores, gain=lambda y: y * 1.01e50, groups=groups),
        lambda: dcg_score(y, scores, gain=lambda y: y * 0.99e-50, groups=groups),
        lambda: Positional(lambda y, q: y * 0.99e-50).encode(y, Queries.single(2)),
        lambda: Positional(discount=[1.01e50]).check(y),
        lambda: eru_score(y, scores, neutral=1.01e50, groups=groups),
        lambda: PDByScores(score_function="log_odds", smoothing=0.99e-50).check(y),
    ):
        with pytest.raises(ValueError, match="1e"):
            call()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: eru_score([1e51, 1e51], [1.0, 2.0], groups=[0, 0]), "must be between 1e-50"),
        (
            lambda: Positional(lambda y, q: y * 1e305).utilities(np.ones(2), Queries.single(2)),
            "utility returned",
        ),
    ],
)
def test_sums_that_overflow_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_context_of_infinite_values_leaks_no_warning():
    # warnings are errors here: infinity times 0 said "invalid value" before the regressor could
    table = context_columns([[np.inf], [1.0], [2.0], [2.0]], groups=[0, 0, 1, 1])
    assert table[:, 1].tolist() == [np.inf, 0.0, 0.0, 0.0]
