"""Preference labels: from the pairs of a user to `Preferences`, after any splitter."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import CalibratedRanker, QueryKFold, relevance_labels
from sklearn_rankcal.decoders import decode_preferences
from sklearn_rankcal.labels import Preferences, preference_labels
from sklearn_rankcal.labels._labels import read_preferences, read_relevance  # what rankers read
from sklearn_rankcal.labels._rankings import relevance_preferences
from sklearn_rankcal.queries import Queries

from .. import oracles
from ..preference_data import PAIRS, G, check, drawn, judged, table, table_of


def test_structured_array_by_hand():
    labels = preference_labels(PAIRS, G, [1, 2, 3, 4, 5], judgement=[8, 8, 9, 9, 7])
    assert labels["query"].tolist() == [0, 1, 0, 0, 1, 2]
    assert labels["row"].tolist() == list(range(6))
    assert labels["size"].tolist() == [3, 2, 3, 3, 2, 1]
    assert [w.tolist() for w in labels["wins"]] == [[2, 2], [], [0], [0], [1], []]
    assert [w.tolist() for w in labels["weights"]] == [[1, 4], [], [2], [3], [5], []]
    assert [w.tolist() for w in labels["judgement"]] == [[8, 9], [], [8], [9], [7], []]
    assert {w.dtype for w in labels["wins"]} == {np.dtype("int64")}
    assert {w.dtype for w in labels["weights"]} == {np.dtype("float64")}
    assert {w.dtype for w in labels["judgement"]} == {np.dtype("int64")}
    plain = preference_labels(PAIRS, G)
    assert plain["judgement"].tolist() == [None] * 6
    assert [w.tolist() for w in plain["weights"]] == [[1, 1], [], [1], [1], [1], []]


@pytest.mark.parametrize(
    "pairs",
    [
        np.array(PAIRS, dtype=np.uint8),
        np.array(PAIRS, dtype=float),
        pd.DataFrame(PAIRS, columns=["better", "worse"]),
        [tuple(p) for p in PAIRS],
    ],
    ids=["uint8", "float", "frame", "tuples"],
)
def test_pairs_may_be_any_container_of_whole_numbers(pairs):
    preferences = read_preferences(preference_labels(pairs, pd.Series(G)))
    check(preferences, G, table(PAIRS, [1] * 5, 6))


@drawn
@given(judged())
def test_preferences_read_from_labels_are_those_of_the_user(data):
    groups, pairs, weight = data
    labels = preference_labels(pairs, groups, weight)
    check(read_preferences(labels, len(groups)), groups, table(pairs, weight, len(groups)))


@drawn
@given(judged(), st.data())
def test_labels_survive_permutations_of_rows_and_choices_of_queries(data, more):
    """Labels of whole queries, in any order of rows, give the preferences of those rows."""
    groups, pairs, weight = data
    rows = np.array(more.draw(st.permutations(range(len(groups)))))
    kept = more.draw(st.sets(st.sampled_from(sorted(set(groups))), min_size=1))
    rows = rows[[groups[row] in kept for row in rows]]
    labels = preference_labels(pairs, groups, weight)[rows]
    y = table(pairs, weight, len(groups))[np.ix_(rows, rows)]
    preferences = read_preferences(labels, len(rows))
    check(preferences, [groups[row] for row in rows], y)
    copies = pickle.loads(pickle.dumps(labels)), labels.copy()
    for copy in copies:
        np.testing.assert_array_equal(table_of(read_preferences(copy)), y)
    assert joblib.hash(copies[0]) == joblib.hash(pickle.loads(pickle.dumps(labels)))


@drawn
@given(judged(), judged(), st.data())
def test_labels_of_two_calls_put_together_are_refused(one, other, more):
    first = preference_labels(one[1], one[0], one[2])
    second = preference_labels(other[1], other[0], other[2])
    for labels in (np.concatenate([first, first]), np.concatenate([first, second])):
        order = np.array(more.draw(st.permutations(range(len(labels)))))
        with pytest.raises(ValueError, match=r"concatenated.*preference_labels once"):
            read_preferences(labels[order])


def test_parts_of_two_calls_are_refused():
    # The queries are whole, so that their sizes agree, but both calls number the rows from 0.
    one = preference_labels([[0, 1]], [5, 5, 6, 6])
    other = preference_labels([[2, 0]], [1, 2, 1, 2])
    labels = np.concatenate([one[one["query"] == 0], other[other["query"] == 1]])
    with pytest.raises(ValueError, match="a row occurs twice"):
        read_preferences(labels)
    # The query has one row of each call, and row 0 beats a row that is missing.
    mixed = np.concatenate([one[:1], other[3:]])
    mixed["query"] = 0
    with pytest.raises(ValueError, match="preferred to a row that is not in its query"):
        read_preferences(mixed)
    # Row 9 is beyond all rows that are present.
    beyond = preference_labels([[0, 9]], [0] * 10)[:2]
    beyond["size"] = 2
    with pytest.raises(ValueError, match="preferred to a row that is not in its query"):
        read_preferences(beyond)
    swapped = one.copy()
    swapped["query"] = [0, 1, 0, 1]
    with pytest.raises(ValueError, match="preferred to a row that is not in its query"):
        read_preferences(swapped)


@drawn
@given(judged(), st.data())
def test_a_cut_query_is_refused(data, more):
    groups, pairs, weight = data
    labels = preference_labels(pairs, groups, weight)
    large = [part for part in oracles.split(groups) if len(part) > 1]
    dropped = more.draw(st.sampled_from([row for part in large for row in part]))
    with pytest.raises(ValueError, match=r"are incomplete.*A splitter has cut it"):
        read_preferences(np.delete(labels, dropped))


def test_repeated_rows_are_refused():
    labels = preference_labels(PAIRS, G)
    with pytest.raises(ValueError, match="a row occurs twice"):
        read_preferences(labels[[0, 0, 2]])  # there are as many rows as the query has
    with pytest.raises(ValueError, match="more rows than its labels state"):
        read_preferences(labels[[0, 2, 3, 3]])


class Counts(BaseEstimator):
    """A stand-in for a ranker: it reads the labels that scikit-learn's tools pass to it."""

    def __init__(self, level=0):
        self.level = level

    def fit(self, X, y):
        self.seen_ = read_preferences(y, len(X)).total().sum()
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        return read_preferences(y, len(X)).total().sum()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_labels_survive_scikit_learn(n_jobs):
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(20), 5))
    relevance = rng.integers(0, 3, size=100)
    found = relevance_preferences(relevance, Queries.from_groups(groups))
    labels = preference_labels(np.column_stack([found.winner, found.loser]), groups)
    X = rng.normal(size=(100, 2))
    for cv, extra in ((QueryKFold(4), {}), (GroupKFold(4), {"groups": groups})):
        scores = [
            found.total()[np.isin(found.queries.ids, groups[test])].sum()
            for _, test in cv.split(X, labels, **extra)
        ]
        search = GridSearchCV(
            make_pipeline(StandardScaler(), Counts()),
            {"counts__level": [1, 2]},
            cv=cv,
            n_jobs=n_jobs,
        )
        with parallel_config("threading"):  # other processes cannot import this test
            search.fit(X, labels, **extra)
        assert [search.cv_results_[f"split{k}_test_score"][0] for k in range(4)] == scores
        assert search.best_estimator_[-1].seen_ == found.total().sum()
    with pytest.raises(ValueError, match=r"A splitter has cut it"), parallel_config("threading"):
        cross_validate(Counts(), X, labels, cv=KFold(4), error_score="raise", n_jobs=n_jobs)
    with pytest.raises(ValueError, match=r"A splitter has cut it"):
        Counts().fit(*train_test_split(X, labels, random_state=0)[::2])


def test_each_reader_refuses_the_labels_of_the_other():
    labels = preference_labels(PAIRS, G)
    with pytest.raises(ValueError, match=r"'wins'.*the labels of relevance_labels"):
        read_relevance(labels)
    with pytest.raises(ValueError, match=r"relevance.*the labels of preference_labels"):
        read_preferences(relevance_labels(range(6), G))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], G), "pairs is empty"),
        ((np.empty((0, 2), dtype=int), G), "pairs is empty"),
        (([0, 1], G), r"must have shape \(n_pairs, 2\).*\(2,\)"),
        (([[0, 2, 3]], G), r"must have shape \(n_pairs, 2\).*\(1, 3\)"),
        (([[0.5, 2]], G), "pairs must be whole numbers; it has 0.5"),
        (([[0, np.nan]], G), "pairs must be whole numbers; it has nan"),
        (([["0", "2"]], G), "pairs must be row numbers of X"),
        (([[True, False]], G), "pairs must be whole numbers; the entries are booleans"),
        ((np.ma.array([[0, 2]], mask=[[0, 1]]), G), "masked entries"),
        (
            ([[0, 2], [0, 6]], G),
            r"Pair 1 has the row 6, but the rows of groups are numbered 0 to 5",
        ),
        (([[-1, 2]], G), r"Pair 0 has the row -1, but the rows of groups are numbered 0 to 5"),
        (([[0, np.inf]], G), "pairs must be whole numbers; it has inf"),
        ((np.array([[0, 2**64 - 1]], dtype=np.uint64), G), "beyond the 64-bit integers"),
        (([[0, 2], [3, 3]], G), "Pair 1 prefers row 3 to itself"),
        (
            ([[0, 2], [3, 1], [5, 0]], G),
            "Pair 1 has rows of different queries: row 3 of query a and row 1 of query b",
        ),
        ((PAIRS, G, [1, 2]), "weight has 2 entries, but pairs has 5"),
        ((PAIRS, G, 2.0), r"weight must be a 1-D array; it has shape \(\)"),
        ((PAIRS, G, [1, 2, -1, 0, 0]), "finite and >= 0; entry 2 is -1.0"),
        ((PAIRS, G, [1, np.nan, 1, 0, 0]), "finite and >= 0; entry 1 is nan"),
        ((PAIRS, G, [1, 0, 1, 0, np.inf]), "finite and >= 0; entry 4 is inf"),
        ((PAIRS, G, [1e308] * 5), "must be between 1e-50 and"),
        ((PAIRS, G, list("abcde")), "weight must be real numbers, not text"),
        ((PAIRS, G, np.ma.array([1] * 5, mask=[1, 0, 0, 0, 0])), "weight has masked entries"),
        (
            (PAIRS, G, None, [1, 2]),
            "judgement has 2 entries, but pairs has 5",
        ),
        ((PAIRS, G, None, [0.5] * 5), "judgement must be whole numbers"),
        ((PAIRS, []), "groups is empty"),
        ((PAIRS, [*G[:5], None]), "missing or infinite id at row 5"),
    ],
)
def test_bad_pairs(arguments, message):
    with pytest.raises(ValueError, match=message):
        preference_labels(*arguments)


@pytest.mark.parametrize(
    ("y", "n_rows", "message"),
    [
        (None, None, "the target y is None"),
        (np.array(PAIRS), None, r"shape \(5, 2\).*do not survive cross-validation.*preference_la"),
        (PAIRS, None, r"shape \(5, 2\).*do not survive cross-validation"),
        ([0, 1, 2], None, r"shape \(3,\) and does not contain preferences"),
        (preference_labels(PAIRS, G), 5, "y has 6 entries, but X has 5 rows"),
        (preference_labels(PAIRS, G)[:0], None, "y is empty"),
        (preference_labels(PAIRS, G)[:, None], None, r"1-D array with one entry per row.*\(6, 1\)"),
    ],
)
def test_bad_labels(y, n_rows, message):
    with pytest.raises(ValueError, match=message):
        read_preferences(y, n_rows)


def test_bare_pairs_are_refused_by_the_ranker():
    with pytest.raises(ValueError, match=r"do not survive cross-validation.*preference_labels"):
        CalibratedRanker().fit(np.zeros((5, 1)), np.array(PAIRS), groups=[0] * 5)


def test_queries_without_pairs_are_legal():
    labels = preference_labels(PAIRS, G)
    preferences = read_preferences(labels[[5]])
    check(preferences, ["c"], np.zeros((1, 1)))
    groups = [0, 0, 1, 1]
    without = read_preferences(preference_labels([[0, 1]], groups)[2:])
    check(without, groups[2:], np.zeros((2, 2)))


def test_preferences_of_a_user_reach_a_decoder():
    """The decoder contradicts the lightest edge, 2 > 0, of the cycle 0 > 1 > 2 > 0."""
    labels = preference_labels([[0, 1], [1, 2], [2, 0]], [0] * 3, [3, 2, 1])
    preferences = read_preferences(labels)
    assert isinstance(preferences, Preferences)
    assert decode_preferences(preferences.matrices(np.arange(3)[None])[0]).ranks.tolist() == [
        1,
        2,
        3,
    ]
