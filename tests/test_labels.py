"""Preference labels: what the user's pairs become, after any splitter; conversions and readers."""

import gzip
import itertools
import pickle
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
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
from sklearn_rankcal.labels import (
    Preferences,
    preference_labels,
    ranking_labels,
    rankings_to_preferences,
    read_edges,
    read_preferences,
    read_preflib,
)
from sklearn_rankcal.labels._rankings import relevance_preferences
from sklearn_rankcal.labels._relevance import read_relevance
from sklearn_rankcal.queries import Queries

from . import oracles

G = ["a", "b", "a", "a", "b", "c"]
PAIRS = [[0, 2], [2, 0], [3, 0], [0, 2], [4, 1]]
drawn = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def judged(draw, min_pairs=1):
    """(groups, pairs, weight): a few queries in any layout, pairs with repeats and cycles."""
    groups = draw(st.lists(st.integers(0, 3), min_size=2, max_size=16))
    within = [p for part in oracles.split(groups) for p in itertools.permutations(part, 2)]
    if not within:
        groups, within = [7, 7], [(0, 1), (1, 0)]
    pairs = draw(st.lists(st.sampled_from(within), min_size=min_pairs, max_size=25))
    weight = draw(st.lists(st.integers(0, 5), min_size=len(pairs), max_size=len(pairs)))
    return groups, pairs, weight


def table(pairs, weight, n_rows):
    """y_ij of all rows, by a loop."""
    y = np.zeros((n_rows, n_rows))
    for (i, j), w in zip(pairs, weight, strict=True):
        y[i, j] += w
    return y


def table_of(preferences):
    y = np.zeros((preferences.n_rows, preferences.n_rows))
    y[preferences.winner, preferences.loser] = preferences.weight
    return y


def check(preferences, groups, y):
    """Every answer of `preferences` against loops over the table y of all rows."""
    parts = oracles.split(groups)
    np.testing.assert_array_equal(table_of(preferences), y)
    assert preferences.n_rows == len(groups)
    assert preferences.winner.dtype == preferences.loser.dtype == np.int64
    assert preferences.weight.dtype == np.float64
    number = {row: n for n, part in enumerate(parts) for row in part}
    triples = [
        (number[i], i, j)
        for i, j in zip(preferences.winner.tolist(), preferences.loser.tolist(), strict=True)
    ]
    assert triples == sorted(set(triples))
    owners = [q for q, _, _ in triples]
    counts = [owners.count(q) for q in range(len(parts))]
    assert np.diff(preferences.pair_offsets).tolist() == counts
    np.testing.assert_allclose(preferences.total(), [y[np.ix_(p, p)].sum() for p in parts])
    assert preferences.total().dtype == np.float64
    for inside, valid in preferences.queries.buckets():
        for matrix, places, some in zip(preferences.matrices(inside), inside, valid, strict=True):
            order = preferences.queries.order
            rows = places[some] if order is None else order[places[some]]
            padded = np.zeros_like(matrix)
            padded[: len(rows), : len(rows)] = y[np.ix_(rows, rows)]
            np.testing.assert_array_equal(matrix, padded)


# ------------------------------------------------------------------ preference_labels


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
def test_pairs_of_any_whole_numbers(pairs):
    preferences = read_preferences(preference_labels(pairs, pd.Series(G)))
    check(preferences, G, table(PAIRS, [1] * 5, 6))


@drawn
@given(judged())
def test_round_trip(data):
    groups, pairs, weight = data
    labels = preference_labels(pairs, groups, weight)
    check(read_preferences(labels, len(groups)), groups, table(pairs, weight, len(groups)))


@drawn
@given(judged(), st.data())
def test_permuted_rows_and_whole_queries(data, more):
    """Any order of the rows of any queries: the preferences are those of the rows chosen."""
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
def test_put_together_is_refused(one, other, more):
    first = preference_labels(one[1], one[0], one[2])
    second = preference_labels(other[1], other[0], other[2])
    for labels in (np.concatenate([first, first]), np.concatenate([first, second])):
        order = np.array(more.draw(st.permutations(range(len(labels)))))
        with pytest.raises(ValueError, match=r"concatenated.*preference_labels once"):
            read_preferences(labels[order])


def test_parts_of_two_calls_are_refused():
    # whole queries, so that sizes agree, but the rows are numbered alike
    one = preference_labels([[0, 1]], [5, 5, 6, 6])
    other = preference_labels([[2, 0]], [1, 2, 1, 2])
    labels = np.concatenate([one[one["query"] == 0], other[other["query"] == 1]])
    with pytest.raises(ValueError, match="a row occurs twice"):
        read_preferences(labels)
    # a query of one row of each: row 0 beats one that is not here, or is in another query
    mixed = np.concatenate([one[:1], other[3:]])
    mixed["query"] = 0
    with pytest.raises(ValueError, match="preferred to a row that its query does not have"):
        read_preferences(mixed)
    beyond = preference_labels([[0, 9]], [0] * 10)[:2]  # 9 is above all rows that are here
    beyond["size"] = 2
    with pytest.raises(ValueError, match="preferred to a row that its query does not have"):
        read_preferences(beyond)
    swapped = one.copy()
    swapped["query"] = [0, 1, 0, 1]
    with pytest.raises(ValueError, match="preferred to a row that its query does not have"):
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
        read_preferences(labels[[0, 0, 2]])  # as many rows as the query has
    with pytest.raises(ValueError, match="more rows than its labels state"):
        read_preferences(labels[[0, 2, 3, 3]])


class Counts(BaseEstimator):
    """Stands for a ranker: reads its labels wherever scikit-learn takes them."""

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


def test_other_reader_says_what_it_wants():
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
        (([["0", "2"]], G), "pairs must be real numbers, not text; it has '0'"),
        (([[True, False]], G), "pairs must be whole numbers; the entries are booleans"),
        ((np.ma.array([[0, 2]], mask=[[0, 1]]), G), "masked entries"),
        (([[0, 2], [0, 6]], G), r"Pair 1 is \(0, 6\), but the rows of groups are numbered 0 to 5"),
        (([[-1, 2]], G), r"Pair 0 is \(-1, 2\), but the rows of groups are numbered 0 to 5"),
        (([[0, np.inf]], G), "pairs must be whole numbers; it has inf"),
        ((np.array([[0, 2**64 - 1]], dtype=np.uint64), G), "beyond the 64-bit integers"),
        (([[0, 2], [3, 3]], G), "Pair 1 prefers row 3 to itself"),
        (
            ([[0, 2], [3, 1], [5, 0]], G),
            r"2 of 3 pairs .* different queries\. The rows \(3, 1\) of pair 1 belong to the "
            "queries a and b",
        ),
        ((PAIRS, G, [1, 2]), "weight has 2 entries, but pairs has 5 rows"),
        ((PAIRS, G, 2.0), r"weight must be a 1-D array with one entry per pair; it has shape \(\)"),
        ((PAIRS, G, [1, 2, -1, 0, 0]), "finite and >= 0; the weight of pair 2 is -1.0"),
        ((PAIRS, G, [1, np.nan, 1, 0, 0]), "finite and >= 0; the weight of pair 1 is nan"),
        ((PAIRS, G, [1, 0, 1, 0, np.inf]), "finite and >= 0; the weight of pair 4 is inf"),
        ((PAIRS, G, [1e308] * 5), "sum of the weights overflows"),
        ((PAIRS, G, list("abcde")), "weight must be real numbers, not text"),
        ((PAIRS, G, np.ma.array([1] * 5, mask=[1, 0, 0, 0, 0])), "weight has masked entries"),
        ((PAIRS, G, None, [1, 2]), "judgement has 2 entries, but pairs has 5 rows"),
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


# ------------------------------------------------------------------ conversions


def relevance_table(y, groups, h):
    wanted = np.zeros((len(y), len(y)))
    for part in oracles.split(groups):
        for i, j in itertools.permutations(part, 2):
            if y[i] > y[j]:
                wanted[i, j] = h(y[i] - y[j])
    return wanted


@drawn
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 3)), min_size=1, max_size=25))
def test_relevance_preferences(rows):
    groups, y = [g for g, _ in rows], np.array([v for _, v in rows], dtype=float)
    queries = Queries.from_groups(groups)
    for h, function in (
        ("binary", lambda d: 1.0),
        ("graded", lambda d: d),
        (lambda d: 2**d - 2, lambda d: 2**d - 2),
    ):
        check(relevance_preferences(y, queries, h), groups, relevance_table(y, groups, function))


def test_relevance_of_many_sizes(monkeypatch):
    """Sizes of several buckets, handled in several parts."""
    monkeypatch.setattr("sklearn_rankcal.labels._rankings._BLOCK_BYTES", 1600)
    rng = np.random.default_rng(3)
    for shuffle in (False, True):
        groups = np.repeat(np.arange(30), rng.integers(1, 12, size=30))
        if shuffle:
            rng.shuffle(groups)
        y = rng.integers(0, 4, size=len(groups)).astype(float)
        found = relevance_preferences(y, Queries.from_groups(groups), "graded")
        check(found, groups.tolist(), relevance_table(y, groups, lambda d: d))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], "cubic"), "Unknown pair_weight 'cubic'. Known: 'binary', 'graded'"),
        (([1, 0], lambda d: -d), "finite weights >= 0; it gave -1.0 for a difference of 1.0"),
        (([1, 0], lambda d: d * np.nan), "finite weights >= 0; it gave nan"),
        (([1, 0], lambda d: 1.0), r"shape \(\) for differences of shape \(1,\)"),
        (([1e308, -1e308], "graded"), "it gave inf"),
        (([1, np.nan], "graded"), "NaN or infinity"),
        (([1, 0, 1], "graded"), "y has 3 entries, but X has 2 rows"),
    ],
)
def test_bad_relevance(arguments, message):
    relevance, h = arguments
    with pytest.raises(ValueError, match=message):
        relevance_preferences(relevance, Queries.single(2), h)


ranks_drawn = st.lists(
    st.lists(st.sampled_from([1.0, 1.5, 2.0, 3.0, 9.0, np.nan]), min_size=4, max_size=4),
    min_size=1,
    max_size=6,
)


@drawn
@given(ranks_drawn, st.integers(1, 3))
def test_rankings_to_preferences(ranks, n_groups):
    weights = rankings_to_preferences(ranks)
    wanted = [[[float(a < b) for b in row] for a in row] for row in ranks]
    np.testing.assert_array_equal(weights, wanted)
    groups = [k % n_groups for k in range(len(ranks))]
    summed = [sum(np.array(wanted[k]) for k in part) for part in oracles.split(groups)]
    np.testing.assert_array_equal(rankings_to_preferences(ranks, groups), summed)


@drawn
@given(st.lists(st.integers(0, 2), min_size=4, max_size=4), ranks_drawn)
def test_ranking_labels(groups, columns):
    """Each column is a judgement, of the documents that it has ranking."""
    ranks, counted = np.array(columns).T, np.zeros((4, 4))
    for part in oracles.split(groups):
        for i, j in itertools.permutations(part, 2):
            counted[i, j] = sum(a < b for a, b in zip(ranks[i], ranks[j], strict=True))
    if not counted.any():
        with pytest.raises(ValueError, match="do not prefer any document"):
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
        (lambda: rankings_to_preferences([1, 2]), r"must have shape \(n_samples, n_labels\)"),
        (lambda: rankings_to_preferences([[0, 1, 2]]), "ranks start at 1 .best.; got 0"),
        (lambda: rankings_to_preferences([[1, np.inf]]), "ranks must be finite"),
        (lambda: rankings_to_preferences([["x", "y"]]), "ranks must be real numbers, not text"),
        (lambda: rankings_to_preferences([]), "non-empty"),
        (lambda: rankings_to_preferences([[1, 2]], [1, 2]), "groups has 2 .* ranks has 1"),
        (lambda: ranking_labels([1, 2], [1]), "groups has 1 entries, but ranks has 2"),
        (lambda: ranking_labels([1, 1], [1, 1]), "do not prefer any document"),
        (lambda: ranking_labels([1, 2], [1, 2]), "do not prefer any document"),
    ],
)
def test_bad_rankings(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_judge_who_judged_nothing():
    labels = ranking_labels([[np.nan, 2], [np.nan, 1]], [0, 0])
    assert labels["wins"][1].tolist() == [0] and labels["judgement"][1].tolist() == [1]


def test_masked_ranks_are_not_judged():
    ranks = np.ma.array([[1, 2, 3]], mask=[[0, 1, 0]])
    assert np.argwhere(rankings_to_preferences(ranks)[0]).tolist() == [[0, 2]]


# ------------------------------------------------------------------ PrefLib

PREFLIB = Path(__file__).parents[2] / "shared" / "data" / "preferences" / "preflib"
FILES = sorted(PREFLIB.iterdir()) if PREFLIB.exists() else []
#: alternatives, orders, voters: counted in the files, whose headers are sometimes out of date
SHAPES = {
    "cities.soi": (36, 372, 392),
    "education_courses.soi": (13, 11, 12),
    "education_courses.toi": (12, 15, 15),
    "education_courses2.soi": (13, 11, 12),
    "education_qualities.toi": (20, 15, 15),
    "netflix.soc": (4, 24, 588),
    "shirt.soc": (11, 30, 30),
    "skaters.toc": (30, 9, 9),
}


def literal_orders(path):
    """(count, {alternative: tier}) of each line, character by character."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        count, rest = line.split(":")
        tiers, tier, inside, digits = {}, 0, False, ""
        for sign in rest.strip() + ",":
            if sign.isdigit():
                digits += sign
            else:
                if digits:
                    tiers[int(digits)] = tier
                    digits = ""
                inside = sign == "{" or (inside and sign != "}")
                tier += not inside and sign == ","
        yield int(count), tiers


@pytest.mark.skipif(not FILES, reason="the PrefLib files are not here")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_preflib_files(path):
    data = read_preflib(path)
    r = len(data.alternatives)
    if path.name in SHAPES:
        assert (r, len(data.orders), data.counts.sum()) == SHAPES[path.name]
    assert data.ranks.shape == (len(data.counts), r) and data.data_type == path.suffix[1:]
    wanted, last = np.zeros((r, r)), np.zeros((r, r))
    for row, (count, tiers) in enumerate(literal_orders(path)):
        assert data.counts[row] == count
        listed = {k + 1: t for t, tier in enumerate(data.orders[row]) for k in tier}
        assert listed == tiers
        for i, j in itertools.permutations(range(1, r + 1), 2):
            if i in tiers:
                wanted[i - 1, j - 1] += count * (tiers[i] < tiers.get(j, -1))
                last[i - 1, j - 1] += count * (tiers[i] < tiers.get(j, r))
    np.testing.assert_array_equal(data.preferences(), wanted)
    np.testing.assert_array_equal(data.preferences(unlisted="last"), last)
    each = rankings_to_preferences(data.ranks)
    np.testing.assert_array_equal(np.tensordot(data.counts, each, axes=1), wanted)
    result = decode_preferences(data.preferences(), "local_search")
    assert sorted(result.ranks) == list(range(1, r + 1))


@pytest.mark.skipif(not FILES, reason="the PrefLib files are not here")
def test_preflib_names():
    assert read_preflib(PREFLIB / "netflix.soc").alternatives == [
        "Mean Girls",
        "Beverly Hills Cop",
        "The Mummy Returns",
        "Mission: Impossible II",
    ]
    # 9 has no name here, nor is it listed; the others are named in another order
    names = read_preflib(PREFLIB / "education_courses2.soi").alternatives
    assert names[8] == "9" and names[0] == "Physics" and names[4] == "Computer Architecture"
    # 12 has no name, but is listed
    data = read_preflib(PREFLIB / "education_courses.toi")
    assert data.alternatives[11] == "12" and not np.isnan(data.ranks[:, 11]).all()


def test_preflib_text(tmp_path):
    path = tmp_path / "a.toi.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\ufeff# TITLE: Thé: un essai\n# NUMBER ALTERNATIVES: 4\n\n")
        file.write(" 2 : {3, 1}, 2\n1:2\n")
    data = read_preflib(str(path))
    assert data.title == "Thé: un essai" and data.alternatives == list("1234")
    assert data.orders == [[[2, 0], [1]], [[1]]] and data.counts.tolist() == [2, 1]
    np.testing.assert_array_equal(data.ranks, [[1, 3, 1, np.nan], [np.nan, 1, np.nan, np.nan]])
    assert data.preferences(unlisted="last")[2].tolist() == [0, 2, 0, 2]
    with pytest.raises(ValueError, match=r"Unknown unlisted 'first'. Known: 'ignore', 'last'"):
        data.preferences(unlisted="first")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no orders"),
        ("# NUMBER ALTERNATIVES: 2\n", "has no orders"),
        ("3\n1,a\n", "line 1: '3' is not an order"),
        ("1: 1,,2\n", "line 1: '1: 1,,2' is not an order"),
        ("1: 1,{2,3\n", "is not an order"),
        ("1: 1,{}\n", "is not an order"),
        ("1:\n", "is not an order"),
        ("-1: 1,2\n", "is not an order"),
        ("1: 1,2\n1: 2,{1,2}\n", "line 2: an alternative is listed twice"),
        ("1: 0,1\n", "numbered from 1"),
        ("# ALTERNATIVE NAME 0: x\n1: 1,2\n", "numbered from 1"),
        ("# NUMBER ALTERNATIVES: 2\n1: 1,3\n", "as 2, but line 2 lists or names alternative 3"),
        ("# NUMBER ALTERNATIVES: two\n1: 1,2\n", "must be a whole number; got 'two'"),
        ("# DATA TYPE: wmd\n1: 1,2\n", "unknown DATA TYPE wmd. Known: soc, soi, toc, toi"),
        (b"\xff\xfe1: 1\n", "not text in UTF-8"),
    ],
)
def test_bad_preflib(tmp_path, text, message):
    path = tmp_path / "a.soi"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        read_preflib(path)
    with pytest.raises(FileNotFoundError):
        read_preflib(tmp_path / "b.soi")


# ------------------------------------------------------------------ edges

EDGES = [("q1", "x", "y"), ("q2", "y", "x"), ("q1", "z", "x"), ("q1", "x", "y")]


@pytest.mark.parametrize("separator", [",", ", ", " ", "\t"])
@pytest.mark.parametrize("packed", [False, True])
def test_read_edges_file(tmp_path, separator, packed):
    text = "# who, what\n" + "\n".join(map(separator.join, EDGES)) + "\n\n"
    path = tmp_path / ("e.csv.gz" if packed else "e.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    data = read_edges(path)
    assert data.groups.tolist() == ["q1", "q1", "q2", "q2", "q1"]
    assert data.documents.tolist() == ["x", "y", "y", "x", "z"]
    assert data.pairs.tolist() == [[0, 1], [2, 3], [4, 0], [0, 1]] and data.weight is None
    preferences = read_preferences(preference_labels(data.pairs, data.groups))
    assert preferences.weight.tolist() == [2, 1, 1]


@drawn
@given(judged())
def test_read_edges_finds_the_rows(data):
    """Ids of rows in, the same pairs of rows out; without rows, the same up to their order."""
    groups, pairs, weight = data
    ids = [f"d{row % 7}{row}" for row in range(len(groups))]
    edges = [(groups[i], ids[i], ids[j], w) for (i, j), w in zip(pairs, weight, strict=True)]
    found = read_edges(edges, groups=groups, documents=ids)
    assert found.pairs.tolist() == [list(p) for p in pairs]
    assert found.weight.tolist() == weight and found.documents.tolist() == ids
    alone = read_edges(edges)
    rows = [ids.index(document) for document in alone.documents]
    assert alone.groups.tolist() == [groups[row] for row in rows]
    assert [[rows[i], rows[j]] for i, j in alone.pairs] == [list(p) for p in pairs]
    assert len(set(rows)) == len(rows)


def test_ids_of_edges(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("1 10 20 0.5\n1 20 7 2\n2 10 20 0\n")
    data = read_edges(path)
    assert data.groups.dtype == data.documents.dtype == np.int64
    assert data.documents.tolist() == [10, 20, 7, 10, 20] and data.weight.tolist() == [0.5, 2, 0]
    known = read_edges(path, groups=[2, 1, 2, 1, 1], documents=[20, 7, 10, 10, 20])
    assert known.pairs.tolist() == [[3, 4], [4, 1], [2, 0]]
    path.write_text("1 007 8\n")
    assert read_edges(path).documents.tolist() == ["007", "8"]
    frame = pd.DataFrame({"q": [1, 1], "a": ["x", "y"], "b": ["y", "z"]})
    assert read_edges(frame).pairs.tolist() == [[0, 1], [1, 2]]
    array = read_edges(np.array([[5, 1, 2], [5, 3, 1]]))
    assert array.groups.tolist() == [5, 5, 5] and array.documents.tolist() == [1, 2, 3]
    mixed = read_edges([("q", (1, 2), "x"), ("q", "x", 0.5)])
    assert mixed.documents.tolist() == [(1, 2), "x", 0.5]
    pairs = read_edges([("q", (1, 2), (3, 4))])
    assert pairs.documents.shape == (2,) and pairs.documents.tolist() == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: read_edges([]), "source has no preferences"),
        (lambda: read_edges([("q", "a")]), "rows of 3 or 4 entries.*rows of \\[2\\]"),
        (lambda: read_edges([("q", "a", "b"), ("q", "a", "b", 1)]), "rows of 3 or 4 entries"),
        (lambda: read_edges(np.arange(3)), "rows of 3 or 4 entries"),
        (lambda: read_edges([("q", "a", "b", "x")]), "weight must be a number"),
        (lambda: read_edges(EDGES, groups=G), "groups and documents are only useful together"),
        (
            lambda: read_edges(EDGES, groups=["q1", "q1"], documents=["x", "y"]),
            r"\('q2', 'y'\) is in the edges, but not in",
        ),
        (
            lambda: read_edges(EDGES, groups=["q1", "q1"], documents=["x", "x"]),
            "A document is given twice",
        ),
        (
            lambda: read_edges(EDGES, groups=["q1", "q1"], documents=["x"]),
            "groups has 2 entries, but documents has 1",
        ),
    ],
)
def test_bad_edges(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_bad_edge_files(tmp_path):
    path = tmp_path / "edges.txt"
    for text, message in (
        ("# nothing\n", "has no preferences"),
        ("q a b\nq a\n", "line 2: 'q a' has 2 entries"),
        ("q a b 1 2\n", "line 1: 'q a b 1 2' has 5 entries"),
        ("q a b heavy\n", "weight must be a number"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_edges(path)
    with pytest.raises(FileNotFoundError):
        read_edges(tmp_path / "none.txt")


def test_preferences_of_a_user_reach_a_decoder():
    """From labels to the decoder of pairs: a cycle a > c > b > a loses its lightest edge."""
    labels = preference_labels([[0, 1], [1, 2], [2, 0]], [0] * 3, [3, 2, 1])
    preferences = read_preferences(labels)
    assert isinstance(preferences, Preferences)
    assert decode_preferences(preferences.matrices(np.arange(3)[None])[0]).ranks.tolist() == [
        1,
        2,
        3,
    ]
