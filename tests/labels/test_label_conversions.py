"""Conversions to preferences: from relevance, and from rankings."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_rankcal.labels import ranking_labels, read_edges
from sklearn_rankcal.labels._label_rankings import read_label_rankings  # what losses see
from sklearn_rankcal.labels._labels import read_preferences
from sklearn_rankcal.labels._rankings import relevance_preferences, weigh_pairs
from sklearn_rankcal.queries import Queries

from .. import oracles
from ..preference_data import check, drawn


def relevance_table(y, groups):
    wanted = np.zeros((len(y), len(y)))
    for part in oracles.split(groups):
        for i, j in itertools.permutations(part, 2):
            wanted[i, j] = y[i] > y[j]
    return wanted


@drawn
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 3)), min_size=1, max_size=25))
def test_relevance_preferences(rows):
    groups, y = [g for g, _ in rows], np.array([v for _, v in rows], dtype=float)
    queries = Queries.from_groups(groups)
    check(relevance_preferences(y, queries), groups, relevance_table(y, groups))


def test_relevance_of_queries_of_many_sizes(monkeypatch):
    """The queries fall into several buckets of size and are converted in several blocks."""
    monkeypatch.setattr("sklearn_rankcal.labels._rankings._BLOCK_BYTES", 1600)
    rng = np.random.default_rng(3)
    for shuffle in (False, True):
        groups = np.repeat(np.arange(30), rng.integers(1, 12, size=30))
        if shuffle:
            rng.shuffle(groups)
        y = rng.integers(0, 4, size=len(groups)).astype(float)
        found = relevance_preferences(y, Queries.from_groups(groups))
        check(found, groups.tolist(), relevance_table(y, groups))


@pytest.mark.parametrize(
    ("h", "message"),
    [
        ("cubic", "Unknown pair_weight 'cubic'. Known: 'binary', 'graded'"),
        (np.array([1, 2]), r"Unknown pair_weight array\(\[1, 2\]\)"),
        (lambda d: -d, "finite weights >= 0; got -1.0 for a difference of 1.0"),
        (lambda d: d * np.nan, "finite weights >= 0; got nan"),
        (lambda d: 1.0, r"shape \(\) for differences of shape \(1,\)"),
    ],
)
def test_bad_pair_weights(h, message):
    with pytest.raises(ValueError, match=message):
        weigh_pairs(np.array([[1.0, 0.0]]), np.ones((1, 2), dtype=bool), h)


ranks_drawn = st.lists(
    st.lists(st.sampled_from([1.0, 1.5, 2.0, 3.0, 9.0, np.nan]), min_size=4, max_size=4),
    min_size=1,
    max_size=6,
)


@drawn
@given(st.lists(st.integers(0, 2), min_size=4, max_size=4), ranks_drawn)
def test_ranking_labels(groups, columns):
    """Each column is one judgement, which ranks the documents that are not NaN in it."""
    ranks, counted = np.array(columns).T, np.zeros((4, 4))
    for part in oracles.split(groups):
        for i, j in itertools.permutations(part, 2):
            counted[i, j] = sum(a < b for a, b in zip(ranks[i], ranks[j], strict=True))
    if not counted.any():
        with pytest.raises(ValueError, match="contain no preference"):
            ranking_labels(ranks, groups)
        return
    labels = ranking_labels(ranks, groups)
    check(read_preferences(labels), groups, counted)
    for row in labels:
        for beaten, judge in zip(row["wins"], row["judgement"], strict=True):
            assert ranks[row["row"], judge] < ranks[beaten, judge]
    if len(columns) == 1:
        alone = ranking_labels(ranks[:, 0], groups)
        assert alone["judgement"].tolist() == [None] * 4
        check(read_preferences(alone), groups, counted)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ranking_labels([0, 1, 2], [1, 1, 1]), "ranks start at 1 .best.; got 0"),
        (lambda: ranking_labels([1, np.inf], [1, 1]), "ranks must be finite"),
        (lambda: ranking_labels(["x", "y"], [1, 1]), "ranks must be real numbers, not text"),
        (lambda: ranking_labels([], []), "non-empty"),
        (lambda: ranking_labels([1, 2], [1]), "groups has 1 entry, but ranks has 2"),
        (lambda: ranking_labels([1, 1], [1, 1]), "contain no preference"),
        (lambda: ranking_labels([1, 2], [1, 2]), "contain no preference"),
    ],
)
def test_bad_rankings(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_judge_may_have_judged_nothing():
    labels = ranking_labels([[np.nan, 2], [np.nan, 1]], [0, 0])
    assert labels["wins"][1].tolist() == [0] and labels["judgement"][1].tolist() == [1]


@pytest.mark.parametrize(
    "read",
    [
        lambda number: read_label_rankings([[number, 0]], 1, "relevance")[1][0, 0],
        lambda number: read_edges([("q", "a", "b", number)]).weight[0],
    ],
    ids=["label rankings", "edges"],
)
def test_numbers_are_read_in_their_range(read):
    for number in (1e50, 1e-50):
        assert read(number) == number
    for number in (1.1e50, 0.9e-50):
        with pytest.raises(ValueError, match=r"must be between 1e-50 and 1e\+50"):
            read(number)
