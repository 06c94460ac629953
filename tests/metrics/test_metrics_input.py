"""Input of metrics: errors for bad input, and warnings about input that is probably a mistake."""

import warnings
from functools import partial

import numpy as np
import pytest

from sklearn_rankcal import metrics as m
from sklearn_rankcal import relevance_labels
from sklearn_rankcal.exceptions import MissingGroupsWarning, PositionsAsScoresWarning

from ..metric_data import GOOD_RANKS, QUERIES, SIZES, S, Y
from .test_metrics import pytestmark  # noqa: F401, ignores warnings of what tests do on purpose


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: m.ndcg_score(Y), "Pass either y_score .* not neither"),
        (lambda: m.ndcg_score(Y, S, ranks=[1, 2, 3]), "not both"),
        (lambda: m.ndcg_score(Y, S[:2]), "y_score has 2 entries, but there are 3 rows"),
        (lambda: m.ndcg_score(Y, [0, np.nan, 1]), "y_score contains NaN or infinity"),
        (lambda: m.ndcg_score([1, np.inf, 0], S), "y contains NaN or infinity"),
        (lambda: m.ndcg_score(Y, S, groups=[1, 2]), "groups has 2 entries, but X has 3 rows"),
        (lambda: m.ndcg_score(Y, ranks=[0, 1, 2]), "permutation of 1 .. r"),
        (lambda: m.ndcg_score(Y, ranks=[1, 1, 2]), "permutation of 1 .. r"),
        (lambda: m.ndcg_score(Y, ranks=[1, 2.5, 3]), "whole numbers"),
        (lambda: m.ndcg_score(Y, ranks=[1, 2]), r"ranks has shape \(2,\)"),
        (lambda: m.ndcg_score(Y, S, ties="random"), "Unknown ties"),
        (lambda: m.ndcg_score(Y, S, zero_division=2), "zero_division must be"),
        (lambda: m.ndcg_score(Y, S, zero_division="raise"), "zero_division must be"),
        (lambda: m.ndcg_score(Y, S, k=0), "k must be a whole number >= 1"),
        (lambda: m.ndcg_score(Y, S, k=1.5), "k must be a whole number"),
        (lambda: m.ndcg_score([-1, 0, 1], S), "relevance must be >= 0"),
        (lambda: m.ndcg_score([1100, 0, 1], S), r"gain='exp2' exceeds 1e\+100"),
        (lambda: m.ndcg_score(Y, S, gain="exp"), "gain must be"),
        (lambda: m.ndcg_score(Y, S, gain=lambda y: -y), "Negative values"),
        (lambda: m.precision_at_k_score(Y, S, k=0), "k must be a whole number >= 1"),
        (lambda: m.map_score([0, 1, 2], S), "binary relevance, 0 or 1; got 2"),
        (lambda: m.eru_score(Y, S, half_life=1), "half_life must be a number in"),
        (lambda: m.err_score([0, 4, 1], S, max_relevance=3), "exceeds max_relevance=3"),
        (lambda: m.ndcg_score(Y, S, sample_weight=[1, -1, 1]), "Negative values in data"),
        (lambda: m.ndcg_score(Y, S, sample_weight=[1, np.nan, 1]), "sample_weight contains NaN"),
        (lambda: m.ndcg_score(Y, S, sample_weight=[1, 1]), "one weight per row"),
        (lambda: m.ndcg_score([], []), "empty"),
        (lambda: m.ndcg_score(Y, [1 + 1j, 2, 3]), "must be real numbers"),
        (lambda: m.map_score(Y, S, threshold=np.nan), "threshold must be None, or a finite number"),
        (lambda: m.ndcg_score([[1, 0]], [1, 0]), "y_score has shape"),
        (
            lambda: m.ndcg_score(relevance_labels(Y, [0, 0, 1]), S, groups=[0, 1, 1]),
            "different queries",
        ),
        (lambda: m.ndcg_score(relevance_labels(Y, [0, 0, 1])[1:], S[1:]), "splitter has cut it"),
        (lambda: m.evaluate_rankings(Y, S, metrics=["ndcg@x"]), "cutoff in 'ndcg@x'"),
        (lambda: m.evaluate_rankings(Y, S, metrics=["recall"]), "needs a cutoff"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# -------------------------------------------------------------------- probable mistakes


@pytest.mark.parametrize(
    "score",
    [
        m.ndcg_score,
        m.err_score,
        partial(m.map_score, threshold=2),
        m.kendall_tau_score,
        partial(m.evaluate_rankings, metrics="ndcg"),
    ],
)
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_positions_passed_as_scores_warn(score, dtype):
    with pytest.warns(PositionsAsScoresWarning, match="look like positions.* as ranks=") as record:
        score(QUERIES.y, GOOD_RANKS.astype(dtype), groups=QUERIES.groups)
    assert [warning.filename for warning in record] == [__file__]


def test_positions_passed_to_a_comparison_warn():
    ranks = GOOD_RANKS
    with pytest.warns(PositionsAsScoresWarning, match="as_ranks=True") as record:
        m.compare_rankings(QUERIES.y, ranks, -ranks, groups=QUERIES.groups, n_resamples=10)
    assert [warning.filename for warning in record] == [__file__]
    with pytest.warns(PositionsAsScoresWarning):
        systems = {"a": ranks, "b": -ranks}
        m.compare_rankings(QUERIES.y, systems, groups=QUERIES.groups, n_resamples=10)


def test_scores_that_do_not_look_like_positions_do_not_warn():
    y, groups = QUERIES.y, QUERIES.groups
    wanted = m.ndcg_score(y, ranks=GOOD_RANKS, groups=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PositionsAsScoresWarning)  # a mark would be overruled above
        for scores in (
            SIZES + 1 - GOOD_RANKS,  # 1 .. r in every query, and larger is better
            -GOOD_RANKS,
            QUERIES.latent,
        ):
            assert m.ndcg_score(y, scores, groups=groups) == pytest.approx(wanted)
        m.ndcg_score(y, GOOD_RANKS - 1, groups=groups)  # positions start at 1, and these at 0
        m.ndcg_score(y, np.where(np.arange(len(y)), GOOD_RANKS, 7), groups=groups)
        m.ndcg_score([[2, 1, 0]], [[1, 2, 3]])  # one short query can look so by chance
        m.dcg_score(np.ones(len(y)), GOOD_RANKS, groups=groups)  # all orders are equally good


def test_one_long_query_of_positions_warns():
    with pytest.warns(PositionsAsScoresWarning):
        m.ndcg_score([np.arange(12)[::-1]], [np.arange(1, 13)])


@pytest.mark.parametrize("score", [m.ndcg_score, partial(m.evaluate_rankings, metrics="ndcg")])
def test_rows_without_query_ids_are_one_query_and_warn(score):
    with pytest.warns(MissingGroupsWarning, match="all 3 rows are scored as ONE query") as record:
        without = score(Y, S)
    assert [warning.filename for warning in record] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for said in (
            score(Y, S, groups=np.zeros(3)),
            score([Y], [S]),
            score(relevance_labels(Y, [0, 0, 0]), S),
        ):
            assert said == without
        score([1], [0.5])  # a single row is always one query


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda **q: m.compare_rankings(*[QUERIES.y] * 3, metric="ndcg@10", threshold=1, **q),
            "'ndcg@10' has no parameter 'threshold'. Metrics that"
            " have it: auc, map, mrr, precision, recall",
        ),
        (lambda **q: m.ndcg_score(QUERIES.y, QUERIES.y, nothing=1, **q), "Its parameters: y_true"),
        (lambda **q: m.ndcg_score(QUERIES.y, QUERIES.y, gains="x", **q), "Did you mean 'gain'"),
        (
            lambda **q: m.compare_rankings(QUERIES.y, [QUERIES.y], **q),
            "maps the name of each ranking",
        ),
    ],
)
def test_errors_name_parameters_that_do_not_exist(call, message):
    with pytest.raises(TypeError, match=message):
        call(groups=QUERIES.groups)


@pytest.mark.parametrize("metric", ["ndcg", "dcg@5", "err", "map", "mrr"])
def test_labels_and_scores_that_are_swapped(metric):
    """Only labels that are an error may be called swapped."""
    scores = np.random.default_rng(0).normal(size=len(QUERIES.y))
    with pytest.raises(ValueError, match=r"are they swapped\? The labels, y_true, come first.*: "):
        m.evaluate_rankings(scores, QUERIES.y, groups=QUERIES.groups, metrics=metric)
    for y, given in ((scores, scores), (QUERIES.y - 9, QUERIES.y)):  # whole labels, or no labels
        with pytest.raises(ValueError, match=r"^(Negative values|This measure needs binary)"):
            m.evaluate_rankings(y, given, groups=QUERIES.groups, metrics=metric)
