"""Click labels, structures of clicks, propensities by regression-EM, and simulated clicks."""

import itertools
import math
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split

from sklearn_rankcal import QueryKFold, preference_labels
from sklearn_rankcal.aggregation import (
    CascadeSatisfaction,
    ClickThroughRate,
    InversePropensity,
    estimate_relevance,
)
from sklearn_rankcal.clicks import click_labels, estimate_propensities, read_clicks
from sklearn_rankcal.clicks._propensities import count_cells  # counts that no result shows
from sklearn_rankcal.datasets import make_clicks
from sklearn_rankcal.queries import Queries

from .. import oracles
from ..preference_data import drawn

#: Three queries; the rows of the first are 0, 2, 3 and 6.
G = ["a", "b", "a", "a", "b", "c", "a"]
SHOWN = [[2, 0, 3], [1, 4], [3, 2], [5], [0, 6, 2]]
CLICKED = [[2], None, [1, 2], [], [3, 1]]


def sessions_of(clicks):
    """Return (rows, clicked positions, count) of each session."""
    result = []
    for s in range(clicks.n_judgements):
        inside = slice(clicks.offsets[s], clicks.offsets[s + 1])
        positions = (np.flatnonzero(clicks.clicked[inside]) + 1).tolist()
        count = 1 if clicks.count is None else clicks.count[s]
        result.append((clicks.row[inside].tolist(), positions, count))
    return result


@st.composite
def logs(draw):
    """Groups in any layout, lists of rows of one query, clicked positions and perhaps counts."""
    groups = draw(st.lists(st.integers(0, 3), min_size=1, max_size=12))
    shown, clicked = [], []
    for _ in range(draw(st.integers(1, 8))):
        query = draw(st.sampled_from(groups))
        rows = draw(st.permutations([i for i, g in enumerate(groups) if g == query]))
        shown.append(rows[: draw(st.integers(1, len(rows)))])
        clicked.append([k for k in range(1, len(shown[-1]) + 1) if draw(st.booleans())])
    count = None
    if draw(st.booleans()):
        count = draw(st.lists(st.integers(0, 5), min_size=len(shown), max_size=len(shown)))
    return groups, shown, clicked, count


# ------------------------------------------------------------------ labels


def test_structured_array_by_hand():
    labels = click_labels(SHOWN, CLICKED, G, count=[1, 2, 3, 4, 0.5])
    assert labels["query"].tolist() == [0, 1, 0, 0, 1, 2, 0]
    assert labels["row"].tolist() == list(range(7))
    assert labels["size"].tolist() == [4, 2, 4, 4, 2, 1, 4]
    assert [s.tolist() for s in labels["sessions"]] == [
        [0, 4],
        [1],
        [0, 2, 4],
        [0, 2],
        [1],
        [3],
        [4],
    ]
    assert [p.tolist() for p in labels["positions"]] == [
        [2, 1],
        [1],
        [1, 2, 3],
        [3, 1],
        [2],
        [1],
        [2],
    ]
    assert [c.tolist() for c in labels["clicks"]] == [
        [True, True], [False], [False, True, True], [False, True], [False], [False], [False],
    ]  # fmt: skip
    assert labels["counts"][2].tolist() == [1, 3, 0.5]
    assert {s.dtype for s in labels["sessions"]} == {np.dtype("int64")}
    assert {c.dtype for c in labels["clicks"]} == {np.dtype("bool")}
    assert click_labels(SHOWN, CLICKED, G)["counts"].tolist() == [None] * 7


def same(first, second):
    for name in ("row", "clicked", "offsets", "query"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.count is None) == (second.count is None)
    if first.count is not None:
        np.testing.assert_array_equal(first.count, second.count)
    assert first.queries.same_partition(second.queries)


@pytest.mark.parametrize(
    "clicked",
    [
        [np.array([2]), [], (1, 2), None, [1, 3]],
        [2, None, np.array([1, 2]), None, [1, 3]],
        [[False, True, False], [False] * 2, [True] * 2, [False], [True, False, True]],
    ],
    ids=["arrays", "single", "booleans"],
)
@pytest.mark.parametrize("arrays", [False, True])
def test_forms_of_lists(clicked, arrays):
    shown = [np.array(rows) for rows in SHOWN] if arrays else tuple(map(tuple, SHOWN))
    same(read_clicks(click_labels(shown, clicked, G)), read_clicks(click_labels(SHOWN, CLICKED, G)))


def test_arrays_and_data_frames():
    shown = np.array([[0, 2, 3], [3, 0, 6], [1, 4, 1]])[:2]
    marks = np.array([[True, False, False], [False, True, True]])
    wanted = read_clicks(click_labels(shown.tolist(), [1, [2, 3]], G))
    same(read_clicks(click_labels(shown, marks, G)), wanted)
    same(read_clicks(click_labels(shown.astype(float), np.array([[1], [2]]), G)),
         read_clicks(click_labels(shown.tolist(), [1, 2], G)))  # fmt: skip
    # one entry per impression; the order of the impressions of a session is the order shown
    frame = pd.DataFrame({
        "session": list("xyxyxy"),
        "row": [0, 3, 2, 0, 3, 6],
        "clicked": [1, 0, 0, 1, 0, 1],
    })  # fmt: skip
    labels = click_labels(
        frame["row"], frame["clicked"], pd.Series(G), sessions=frame["session"], count=[2, 3]
    )
    same(read_clicks(labels), read_clicks(click_labels(shown, marks, G, count=[2, 3])))


@drawn
@given(logs())
def test_labels_give_back_the_log(log):
    groups, shown, clicked, count = log
    clicks = read_clicks(click_labels(shown, clicked, groups, count=count))
    numbers = {g: code for code, g in enumerate(dict.fromkeys(groups))}
    order = sorted(range(len(shown)), key=lambda s: numbers[groups[shown[s][0]]])
    counts = [1] * len(shown) if count is None else count
    assert sessions_of(clicks) == [(shown[s], clicked[s], counts[s]) for s in order]
    assert clicks.query.tolist() == [numbers[groups[shown[s][0]]] for s in order]
    assert clicks.last_click.tolist() == [max(clicked[s], default=0) for s in order]
    assert clicks.position.tolist() == [k + 1 for s in order for k in range(len(shown[s]))]
    of_query = [0] * len(numbers)
    for s, rows in enumerate(shown):
        of_query[numbers[groups[rows[0]]]] += counts[s]
    assert clicks.per_query.tolist() == of_query


@drawn
@given(logs(), st.randoms(use_true_random=False))
def test_whole_queries_survive_slicing(log, random):
    groups, shown, clicked, count = log
    labels = click_labels(shown, clicked, groups, count=count)
    kept = [i for i, g in enumerate(groups) if g != groups[-1]] or list(range(len(groups)))
    random.shuffle(kept)
    new = {row: place for place, row in enumerate(kept)}
    clicks = read_clicks(labels[kept], len(kept))
    counts = [1] * len(shown) if count is None else count
    wanted = [
        ([new[row] for row in rows], clicked[s], counts[s])
        for s, rows in enumerate(shown)
        if rows[0] in new
    ]
    assert sorted(sessions_of(clicks)) == sorted(wanted)


def test_splitters_and_pickles():
    data = make_clicks(np.arange(40) % 3, np.arange(40) // 4, 500, random_state=0)
    X = np.zeros((40, 1))
    total = 0
    for train, test in QueryKFold(5).split(X, data.y):
        parts = read_clicks(data.y[train]), read_clicks(data.y[test])
        assert sum(part.n_judgements for part in parts) == 500
        total += parts[1].n_judgements
    assert total == 500
    same(read_clicks(pickle.loads(pickle.dumps(data.y))), read_clicks(data.y))
    with pytest.raises(ValueError, match="are incomplete"):
        read_clicks(train_test_split(X, data.y, random_state=0)[2])


def test_a_query_without_sessions():
    clicks = read_clicks(click_labels([[0, 2]], [1], G)[[1, 4, 5]])
    assert clicks.n_judgements == 0
    assert clicks.per_query.tolist() == [0, 0]
    for structure in (CascadeSatisfaction(), InversePropensity([1, 0.5]), ClickThroughRate()):
        assert np.isnan(structure.scores(clicks)).all()


BAD = {
    "no sessions": (([], [], G), {}, "shown is empty"),
    "an empty list": (([[0], []], [None, None], G), {}, "Session 1 has an empty list"),
    "twice": (([[0, 2], [2, 3, 2]], [1, 1], G), {}, "Session 1 shows the row 2 twice"),
    "other queries": (
        ([[0, 1]], [1], G), {}, "different queries: row 0 of query a and row 1 of query b"
    ),
    "ids": (([["h1", "h2"]], [1], G), {}, "shown must be row numbers of X, counted from 0, but"),
    "ids in columns": (
        (["h1", "h2"], [1, 0], G), {"sessions": [0, 0]}, "shown must be row numbers of X, counted"
    ),
    "text clicked": (([0, 2], ["1", "0"], G), {"sessions": [0, 0]}, "clicked must be True or"),
    "unknown row": (([[0, 7]], [1], G), {}, "row 7, but the rows of groups are numbered 0 to 6"),
    "negative row": (([[0, -1]], [1], G), {}, "row -1, but"),
    "half a row": (([[0, 0.5]], [1], G), {}, "shown must be whole numbers; it has 0.5"),
    "row NaN": (([[0, np.nan]], [1], G), {}, "shown must be whole numbers; it has nan"),
    "nested rows": (([[0, [2]]], [1], G), {}, "shown must be"),
    "text": ((["02"], [1], G), {}, "Entry 0 of shown is '02', not a list of row numbers"),
    "1-D": (([0, 2], [1, 0], G), {}, "sessions=frame"),
    "1-D array": ((np.array([0, 2]), [1, 0], G), {}, "sessions=frame"),
    "no list": ((3, [1], G), {}, "Entry 0 of shown is 3, not a list of row numbers"),
    "frame": ((pd.DataFrame({"row": [0]}), [1], G), {}, "shown=frame"),
    "beyond the list": (([[0, 2]], [3], G), {}, "position 3, but it shows 2 documents"),
    "position 0": (([[0, 2]], [0], G), {}, "click at position 0"),
    "repeated": (([[0, 2]], [[1, 1]], G), {}, "Session 0 has 2 clicks at position 1"),
    "half a position": (([[0, 2]], [1.5], G), {}, "clicked must be whole numbers; it has 1.5"),
    "position NaN": (([[0, 2]], [np.nan], G), {}, "clicked must be whole numbers; it has nan"),
    "no clicks": (([[0, 2]], None, G), {}, "Entry 0 of clicked is None, not a list of positions"),
    "too many": (([[0, 2]], [1, 2], G), {}, "clicked has 2 entries, but shown has 1 session"),
    "too few": (([[0], [2]], [1], G), {}, "clicked has 1 entry, but shown has 2 sessions"),
    "marks of another shape": (
        ([[0, 2], [3]], np.ones((2, 2), bool), G), {}, "2 booleans for session 1"
    ),
    "marks of another length": (
        ([[0, 2], [3]], [[True, False], [True, True]], G), {}, "2 booleans for session 1"
    ),
    "marks of another length, flat": (
        ([0, 2], [1], G), {"sessions": [0, 0]}, "shapes (2,), (1,) and (2,)"
    ),
    "marks NaN": (([0, 2], [0, np.nan], G), {"sessions": [0, 0]}, "must be True or False"),
    "sessions too short": (([0, 2], [0, 1], G), {"sessions": [0]}, "shapes (2,), (2,) and (1,)"),
    "sessions missing": (([0, 2], [0, 1], G), {"sessions": [0, None]}, "sessions cannot be read"),
    "2-D with sessions": (([[0, 2]], [[0, 1]], G), {"sessions": [0]}, "shapes (1, 2)"),
    "negative count": (([[0]], [1], G), {"count": [-1]}, "count must be finite and >= 0"),
    "large count": (([[0]], [1], G), {"count": [1.1e50]}, "count has 1.1e+50"),
    "small count": (([[0]], [1], G), {"count": [0.9e-50]}, "count has 9e-51"),
    "count too long": (([[0]], [1], G), {"count": [1, 1]}, "count has 2 entries, but shown has 1"),
    "group missing": (([[0]], [1], ["a", None]), {}, "missing or infinite id at row 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_logs_are_refused(case):
    args, options, message = BAD[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        click_labels(*args, **options)


def test_rows_of_documents_as_the_error_says():
    """What it says works if a document is in several queries."""
    groups, ids = np.array(["a", "a", "b", "b"]), np.array(["h1", "h2", "h2", "h1"])
    queries, shown = ["b", "b", "a"], ["h1", "h2", "h2"]
    with pytest.raises(ValueError, match="must be row numbers") as caught:
        click_labels(shown, [1, 0, 1], groups, sessions=[0, 0, 1])
    code = re.search(r"pandas(\.MultiIndex.*?queries, shown\]\))", str(caught.value))[1]
    rows = eval("pd" + code, {"pd": pd, **locals()})
    assert rows.tolist() == [3, 2, 1]
    click_labels(rows, [1, 0, 1], groups, sessions=[0, 0, 1])


def test_documents_shown_twice_in_queries_of_more_than_64():
    rows = np.random.default_rng(0).permutation(200)
    click_labels([rows], [1], np.zeros(200))
    for first, second in [(3, 150), (63, 64), (0, 199)]:
        bad = rows.copy()
        bad[second] = bad[first]
        with pytest.raises(ValueError, match=f"Session 1 shows the row {bad[first]} twice"):
            click_labels([rows, bad], [1, 1], np.zeros(200))


def test_bad_labels_are_refused():
    labels = click_labels(SHOWN, CLICKED, G)
    for y, message in (
        (None, "the target y is None"),
        ([1, 2], "does not contain clicks"),
        (preference_labels([[0, 1]], [0, 0]), "have the fields"),
        (labels[:0], "y is empty"),
        (labels.reshape(7, 1), "1-D"),
        (labels[1:], "incomplete"),
        (np.concatenate([labels, labels]), "were concatenated"),
    ):
        with pytest.raises(ValueError, match=message):
            read_clicks(y)
    with pytest.raises(ValueError, match="y has 7 entries, but X has 6 rows"):
        read_clicks(labels, 6)
    # rows of two calls whose sizes agree, but whose sessions do not
    other = click_labels([[0, 1], [1, 0], [2]], [1, 1, 1], [0, 0, 1])
    mixed = np.concatenate([other[:1], click_labels([[1, 0]], [1], [0, 0])[1:2]])
    with pytest.raises(ValueError, match="a session lacks one of its documents"):
        read_clicks(mixed)


def test_resample_copies_queries():
    clicks = read_clicks(click_labels(SHOWN, CLICKED, G, count=[1, 2, 3, 4, 5]))
    sessions = sessions_of(clicks)
    rng = np.random.default_rng(0)
    parent = rng.integers(0, 3, 20)
    rows_of = [[0, 2, 3, 6], [1, 4], [5]]
    copy = rng.integers(0, 20, 100)
    taken = np.array([rng.choice(np.flatnonzero(clicks.query == parent[c])) for c in copy])
    many = clicks.resample(taken, copy, parent)
    assert many.queries.sizes.tolist() == [len(rows_of[q]) for q in parent]
    assert many.items.tolist() == [row for q in parent for row in rows_of[q]]
    assert many.query.tolist() == copy.tolist()
    starts = many.queries.offsets
    assert sessions_of(many) == [
        ([starts[c] + rows_of[parent[c]].index(row) for row in sessions[s][0]], *sessions[s][1:])
        for s, c in zip(taken, copy, strict=True)
    ]
    again = many.resample(np.arange(100), np.zeros(100, int), np.zeros(1, int))
    assert set(again.items.tolist()) == set(rows_of[parent[0]])


def test_take_rows_of_whole_queries():
    labels = click_labels(SHOWN, CLICKED, G, count=[1, 2, 3, 4, 5])
    clicks = read_clicks(labels)
    rows = np.array([6, 1, 3, 4, 2, 0])
    part = clicks.take_rows(rows, Queries.from_groups([0, 1, 0, 1, 0, 0]))
    assert part.items.tolist() == rows.tolist()
    assert sorted(sessions_of(part)) == sorted(sessions_of(read_clicks(labels[rows])))
    assert part.query.tolist() == [0, 0, 0, 1]
    assert repr(part) == "Clicks(n_judgements=4, n_rows=6, n_queries=2)"


def test_impressions_keep_their_positions_if_documents_are_left_out():
    clicks = read_clicks(click_labels([[0, 1, 2], [2, 0, 1], [1]], [[1, 3], 2, None], [0, 0, 0]))
    part = clicks.take_rows(np.array([1, 0]), Queries.single(2))
    assert part.row.tolist() == [1, 0, 1, 0, 0]
    assert part.position.tolist() == [1, 2, 2, 3, 1]
    assert part.last_click.tolist() == [3, 2, 0]
    scores = CascadeSatisfaction().scores
    assert scores(part).tolist() == scores(clicks)[[1, 0]].tolist()
    again = part.take_rows(np.array([0]), Queries.single(1))
    assert again.position.tolist() == [2, 3, 1] and again.last_click.tolist() == [3, 2, 0]
    copies = again.resample(np.array([2, 0]), np.array([0, 1]), np.array([0, 0]))
    assert copies.position.tolist() == [1, 2] and copies.last_click.tolist() == [0, 3]
    assert clicks.take_rows(np.array([2]), Queries.single(1)).n_judgements == 2


# ------------------------------------------------------------------ structures


@drawn
@given(logs(), st.sampled_from([None, (1, 1), (0.5, 3)]))
def test_structures_are_their_formulas(log, smoothing):
    groups, shown, clicked, count = log
    clicks = read_clicks(click_labels(shown, clicked, groups, count=count))
    sessions = sessions_of(clicks)
    n = len(groups)
    theta = [1, 0.7, 0.5, 0.2, *([0.1] * 8)]
    for structure, wanted in (
        (CascadeSatisfaction(smoothing), oracles.cascade_satisfaction(
            sessions, n, *(smoothing or (0, 0)))),
        (ClickThroughRate(), oracles.weighted_clicks(sessions, n, [1] * 12)),
        (InversePropensity(theta), oracles.weighted_clicks(sessions, n, [1 / t for t in theta])),
        (InversePropensity(theta, clip=3), oracles.weighted_clicks(
            sessions, n, [min(1 / t, 3) for t in theta])),
    ):  # fmt: skip
        np.testing.assert_allclose(structure.scores(clicks), wanted, rtol=1e-12)


def outcomes(lists, gamma, theta=None):
    """Yield (probability, clicked marks of all lists) of each outcome; theta None: cascade."""
    per_list = []
    for rows in lists:
        found = []
        if theta is None:
            rest = 1.0
            for place, row in enumerate(rows):
                found.append((rest * gamma[row], [k == place for k in range(len(rows))]))
                rest *= 1 - gamma[row]
            found.append((rest, [False] * len(rows)))
        else:
            for marks in itertools.product([False, True], repeat=len(rows)):
                chances = [theta[k] * gamma[row] for k, row in enumerate(rows)]
                p = math.prod(c if mark else 1 - c for c, mark in zip(chances, marks, strict=True))
                found.append((p, list(marks)))
        per_list.append(found)
    for parts in itertools.product(*per_list):
        yield math.prod(p for p, _ in parts), [marks for _, marks in parts]


LISTS = [[0, 1, 2], [2, 0, 1], [0, 2]]
GAMMA = np.array([0.5, 0.9, 0.2])


def expected_scores(structure, theta=None):
    """The expectation by enumeration of all outcomes of all clicks."""
    total = np.zeros(3)
    chance = 0.0
    for p, marks in outcomes(LISTS, GAMMA, theta):
        total += p * structure.scores(read_clicks(click_labels(LISTS, marks, [0, 0, 0])))
        chance += p
    assert chance == pytest.approx(1, abs=1e-13)
    return total


def test_inverse_propensity_is_unbiased_and_the_rate_of_clicks_is_not():
    theta = np.array([0.9, 0.6, 0.25])
    found = expected_scores(InversePropensity(theta), theta)
    np.testing.assert_allclose(found, GAMMA, rtol=0, atol=1e-12)
    rate = expected_scores(ClickThroughRate(), theta)
    mean_theta = [(0.9 + 0.6 + 0.9) / 3, (0.6 + 0.25) / 2, (0.25 + 0.9 + 0.6) / 3]
    np.testing.assert_allclose(rate, GAMMA * mean_theta, rtol=0, atol=1e-12)
    assert np.argmax(rate) == 0  # the best document, 1, was shown further down
    assert np.argmax(found) == 1
    # the bias of clipping that the docstring states
    clipped = [np.mean(np.minimum(1, 2 * theta[at])) for at in ([0, 1, 0], [1, 2], [2, 0, 1])]
    np.testing.assert_allclose(
        expected_scores(InversePropensity(theta, clip=2), theta), GAMMA * clipped, atol=1e-12
    )


def adaptive(gamma, shows, n_sessions):
    """The expected mean, sum and number of sessions of a document that is shown by its own clicks.

    `shows` says from the clicks so far whether the next session shows it.
    """
    mean = total = number = 0.0
    logs = [(1.0, ())]  # the chance of each history; None where the document is not shown
    for _ in range(n_sessions):
        logs = [
            (p * chance, (*marks, mark))
            for p, marks in logs
            for chance, mark in (
                [(gamma, True), (1 - gamma, False)] if shows(marks) else [(1.0, None)]
            )
        ]
    for p, marks in logs:
        seen = [mark for mark in marks if mark is not None]
        labels = click_labels([[0]] * len(seen), [[mark] for mark in seen], [0])
        score = InversePropensity([1.0]).scores(read_clicks(labels))[0]
        mean, total, number = mean + p * score, total + p * sum(seen), number + p * len(seen)
    return mean, total, number


def test_the_mean_is_biased_if_a_document_is_shown_by_its_own_clicks():
    found = adaptive(0.4, lambda marks: not any(marks), 2)
    assert found[0] == pytest.approx(0.52)
    assert adaptive(0.4, lambda marks: all(marks), 2)[0] == pytest.approx(0.28)
    # a worse document that is shown until it is clicked is ahead of a better one always shown
    worse = adaptive(0.4, lambda marks: True not in marks, 10)
    better = adaptive(0.5, lambda marks: True, 10)
    assert worse[0] > 0.6 > better[0] == pytest.approx(0.5)
    # sums over sessions are right whatever the rule, and means where it does not ask for clicks
    for rule in (lambda m: True not in m, lambda m: all(m), lambda m: len(m) % 2 == 0):
        for gamma in (0.2, 0.4, 0.9):
            mean, total, number = adaptive(gamma, rule, 6)
            assert total == pytest.approx(gamma * number)
    assert mean == pytest.approx(gamma)


@pytest.mark.parametrize(
    "structure", [CascadeSatisfaction(), InversePropensity(), ClickThroughRate()]
)
def test_structures_take_clicks_only(structure):
    with pytest.raises(TypeError, match=r"needs clicks: pass read_clicks\(labels\)"):
        structure.scores(click_labels([[0]], [1], [0]))


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (CascadeSatisfaction((1, 0)), "smoothing must be"),
        (CascadeSatisfaction(1), "smoothing must be"),
        (CascadeSatisfaction((1, np.nan)), "smoothing must be"),
        (CascadeSatisfaction((1, True)), "smoothing must be"),
        (InversePropensity([1, 0]), r"in \(0, 1\].*position 2 has 0"),
        (InversePropensity([1, 1.5]), r"in \(0, 1\].*position 2 has 1.5"),
        (InversePropensity([1, np.nan]), r"in \(0, 1\].*position 2 has nan"),
        (InversePropensity([[1, 0.5]]), "1-D"),
        (InversePropensity([]), "1-D"),
        (InversePropensity("known"), "must be 'estimate' or an array.*got 'known'"),
        (InversePropensity([1, 0.5], clip=0.5), "clip must be None or a finite number >= 1"),
        (InversePropensity([1, 0.5], clip=np.inf), "clip must be None or a finite number >= 1"),
        (
            InversePropensity([1]),
            "A session shows 2 documents, but there are only 1 propensities",
        ),
    ],
)
def test_bad_parameters_of_structures(structure, message):
    clicks = read_clicks(click_labels([[0, 1]], [1], [0, 0]))
    with pytest.raises(ValueError, match=message):
        structure.scores(clicks)


# ------------------------------------------------------------------ propensities


def world(n_queries=100, size=8, seed=0, n_sessions=100_000, **options):
    rng = np.random.default_rng(seed)
    relevance = rng.integers(0, 4, n_queries * size)
    groups = np.repeat(np.arange(n_queries), size)
    data = make_clicks(relevance, groups, n_sessions, n_shown=5, random_state=seed, **options)
    return relevance, data


def test_one_step_of_regression_em_is_its_formula():
    shown = [[0, 1, 2], [2, 1, 0], [3, 4], [4, 3], [1, 0]]
    clicked = [[1, 2], [1, 3], [1], [2], [2]]
    labels = click_labels(shown, clicked, [0, 0, 0, 1, 1, 1], count=[3, 1, 2, 1, 4])
    sessions = sessions_of(read_clicks(labels))
    impressions, n_clicks = np.zeros(6), np.zeros(6)
    for rows, marks, count in sessions:
        for k, row in enumerate(rows, start=1):
            impressions[row] += count
            n_clicks[row] += count * (k in marks)
    theta, gamma = [1, 1 / 2, 1 / 3], (n_clicks + 1) / (impressions + 2)
    for n_steps in (1, 2, 7):
        with pytest.warns(ConvergenceWarning, match=f"max_iter={n_steps} iterations"):
            found = estimate_propensities(labels, max_iter=n_steps, tol=1e-12)
        wanted = oracles.propensity_steps(theta, gamma, sessions, n_steps)
        np.testing.assert_allclose(found.propensities, wanted[0], rtol=1e-12)
        np.testing.assert_allclose(found.relevance, wanted[1], rtol=1e-12)
        assert found.n_iter == n_steps
        assert not found.converged
        np.testing.assert_allclose(
            found.log_likelihood[-1], oracles.position_log_likelihood(*wanted, sessions), rtol=1e-12
        )


@pytest.mark.parametrize("seed", range(2))
def test_regression_em_recovers_propensities(seed):
    _, data = world(seed=seed, temperature=1.0, ranking=np.random.default_rng(seed).normal(
        size=800), propensities=[1, 0.8, 0.5, 0.3, 0.1])  # fmt: skip
    found = estimate_propensities(data.y)
    assert found.converged
    # Positions are shown 100,000 times each. Over 20 seeds, the largest error was 0.016.
    np.testing.assert_allclose(found.propensities, data.propensities, atol=0.025)
    assert found.propensities[0] == 1
    steps = np.diff(found.log_likelihood)
    assert (steps >= -1e-13).all()
    assert steps[:10].min() > 1e-7
    # relevance is recovered as well: about 600 sessions show each document
    assert np.sqrt(np.mean((found.relevance - data.probabilities) ** 2)) < 0.06
    # what the structure does when it is told to estimate
    clicks = read_clicks(data.y)
    np.testing.assert_array_equal(
        InversePropensity().scores(clicks), InversePropensity(found.propensities).scores(clicks)
    )


@pytest.mark.slow
def test_regression_em_maximises_the_likelihood():
    _, data = world(n_queries=1, size=4, n_sessions=2000, propensities=[1, 0.6, 0.5, 0.3])
    found = estimate_propensities(data.y, tol=1e-10, max_iter=20_000)
    sessions = sessions_of(read_clicks(data.y))

    def cost(logits):
        p = 1 / (1 + np.exp(-np.asarray(logits)))
        return -oracles.position_log_likelihood([1, *p[:3]], p[3:], sessions)

    best = minimize(cost, np.zeros(7), method="BFGS", options={"gtol": 1e-7})
    p = 1 / (1 + np.exp(-best.x))
    np.testing.assert_allclose(found.propensities, [1, *p[:3]], atol=1e-4)
    np.testing.assert_allclose(found.relevance, p[3:], atol=1e-4)
    assert -found.log_likelihood[-1] <= best.fun + 1e-9


def test_regression_em_with_features_needs_no_variation_of_rankings():
    # every query has one ranking, so that clicks alone do not determine the propensities
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 1))
    relevance, groups = (X[:, 0] > 0).astype(int), np.arange(1000) // 5
    data = make_clicks(
        relevance, groups, 20_000, ranking=rng.normal(size=1000), random_state=0,
        propensities=[1, 0.7, 0.5, 0.3, 0.2],
    )  # fmt: skip
    with pytest.raises(ValueError, match="The clicks do not determine the propensities"):
        estimate_propensities(data.y)
    with pytest.raises(ValueError, match=r"propensities=estimate_propensities\(clicks, X\)\.prop"):
        estimate_relevance(data.y, X)
    columns = np.column_stack([relevance, rng.normal(size=1000)])
    frame = pd.DataFrame({"kind": pd.Categorical(relevance.astype(str)), "x": columns[:, 1]})
    for table, classifier in ((frame, None), (columns, LogisticRegression(C=np.inf))):
        found = estimate_propensities(data.y, table, classifier=classifier)
        assert found.converged
        np.testing.assert_allclose(found.propensities, data.propensities, atol=0.05)
        np.testing.assert_allclose(found.relevance.mean(), data.probabilities.mean(), atol=0.05)
    # maximum likelihood in the M-step: the likelihood does not decrease
    assert (np.diff(found.log_likelihood) > -1e-9).all()


def test_documents_that_were_never_shown():
    labels = click_labels([[0, 1], [1, 0]] * 5, [1, 2, [1, 2], None, 1] * 2, [0, 0, 0, 1])
    assert np.isnan(estimate_propensities(labels).relevance).tolist() == [False, False, True, True]
    found = estimate_propensities(labels, np.arange(4)[:, None], classifier=LogisticRegression())
    assert np.isfinite(found.relevance).all()


def test_documents_that_were_never_clicked_link_no_positions():
    # row 2 was shown at both positions, but its clicks do not compare them
    labels = click_labels([[0, 2], [2, 1]] * 3, [1, 2] * 3, [0, 0, 0])
    with pytest.raises(ValueError, match="link position 2 to position 1"):
        estimate_propensities(labels)


def test_positions_without_clicks():
    labels = click_labels([[0, 1, 2], [1, 0, 2], [2, 1]], [1, [1, 2], 1], [0, 0, 0])
    with pytest.raises(ValueError, match=r"1 positions cannot be estimated.*never clicked: 3"):
        estimate_propensities(labels)
    with pytest.raises(ValueError, match="position 1 has no clicks"):
        estimate_propensities(click_labels([[0, 1], [1, 0]], [2, None], [0, 0]))


def test_resolved_propensities_are_positive_at_positions_without_clicks():
    labels = click_labels([[0, 1, 2], [1, 0, 2], [2, 1]], [1, [1, 2], 1], [0, 0, 0])
    clicks = read_clicks(labels)
    resolved = InversePropensity(clip=9).resolve(clicks)
    assert resolved.clip == 9
    assert resolved.propensities[0] == 1
    assert resolved.propensities[2] == resolved.propensities[1] < 1
    assert np.isfinite(InversePropensity().scores(clicks)).all()
    np.testing.assert_array_equal(resolved.scores(clicks), InversePropensity(clip=9).scores(clicks))
    known = InversePropensity([1, 0.5, 0.2])
    assert known.resolve(clicks) is known


def test_propensities_of_sessions_that_have_lost_documents():
    # the positions that are left are beyond the number of documents that are left
    rng = np.random.default_rng(0)
    shown = [rng.permutation(4).tolist() for _ in range(300)]
    clicked = [[k for k in range(1, 5) if rng.random() < 0.6 / k] for _ in shown]
    clicks = read_clicks(click_labels(shown, clicked, [0] * 4))
    part = clicks.take_rows(np.array([1, 3]), Queries.single(2))
    sessions = [
        ([{1: 0, 3: 1}[row] if row in (1, 3) else None for row in rows], marks)
        for rows, marks in zip(shown, clicked, strict=True)
    ]
    wanted = np.zeros((2, 4, 2))  # row, position, clicked
    for rows, marks in sessions:
        for k, row in enumerate(rows, start=1):
            if row is not None:
                wanted[row, k - 1, int(k in marks)] += 1
    row, position, n_shown, n_clicked = count_cells(part)
    assert list(zip(row, position, strict=True)) == list(itertools.product([0, 1], [1, 2, 3, 4]))
    np.testing.assert_array_equal(n_shown, wanted.sum(axis=2).reshape(-1))
    np.testing.assert_array_equal(n_clicked, wanted[:, :, 1].reshape(-1))
    assert len(estimate_propensities(part).propensities) == 4


def test_sparse_cells_are_counted_like_dense_ones():
    # a session of many documents among short ones: the table of all cells would be mostly empty
    lists = [[0, 1], [1, 0]] * 3
    more = [*lists, list(range(2, 4000))]
    marks = [1, 2, [1, 2], None, 1, 2]
    few = estimate_propensities(click_labels(lists, marks, [0, 0]))
    labels = click_labels(more, [*marks, 3], [0, 0, *([1] * 3998)], count=[1] * 6 + [0])
    np.testing.assert_allclose(
        InversePropensity().scores(read_clicks(labels))[:2],
        InversePropensity([*few.propensities, *[1] * 3996]).scores(read_clicks(labels))[:2],
    )


def test_columns_that_a_classifier_does_not_take_are_named():
    y = click_labels([[0, 1], [1, 0]], [1, 2], [0, 0])
    X = pd.DataFrame({"price": [1.0, 2.0], "id": ["s-1", "s-2"]})
    with pytest.raises(ValueError, match="could not convert") as caught:
        estimate_propensities(y, X.astype({"id": "category"}), classifier=LogisticRegression())
    assert "Columns of X with categories: ['id']" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"classifier": LogisticRegression()}, ValueError, "pass X"),
        ({"X": np.zeros((3, 1))}, ValueError, "one row for each of the 2 documents"),
        (
            {"X": np.zeros((2, 1)), "classifier": LinearRegression()},
            TypeError,
            "must be a scikit-learn classifier",
        ),
        (
            {"X": np.zeros((2, 1)), "classifier": LogisticRegression},
            TypeError,
            "must be a scikit-learn classifier",
        ),
        ({"max_iter": 0}, ValueError, "max_iter must be a whole number >= 1"),
        ({"tol": 0}, ValueError, "tol must be"),
        ({"tol": np.nan}, ValueError, "tol must be"),
    ],
)
def test_bad_parameters_of_the_estimation(options, error, message):
    with pytest.raises(error, match=message):
        estimate_propensities(click_labels([[0, 1], [1, 0]], [1, 2], [0, 0]), **options)


# ------------------------------------------------------------------ simulated clicks


@pytest.mark.parametrize("ranking", [None, "fixed", "varied"])
@pytest.mark.parametrize("model", ["position", "cascade"])
def test_simulated_clicks_have_the_probabilities_of_their_model(model, ranking):
    relevance, groups = [2, 0, 1, 1, 0], ["a", "b", "a", "a", "b"]
    scores = None if ranking is None else [0, 1, 2, 1, 0]
    data = make_clicks(
        relevance, groups, 100_000, model=model, n_shown=2, ranking=scores, noise=0.2,
        temperature=0.5 if ranking == "varied" else 0, random_state=0,
    )  # fmt: skip
    gamma = np.array([1, 0.2, 0.2 + 0.8 / 3, 0.2 + 0.8 / 3, 0.2])
    np.testing.assert_allclose(data.probabilities, gamma, atol=1e-12)
    first, second = data.shown.reshape(-1, 2).T
    clicked = data.clicked.reshape(-1, 2)
    np.testing.assert_array_equal(data.sessions, np.repeat(np.arange(100_000), 2))
    for rows, chances in (
        ([0, 2, 3], {None: [1, 1, 1], "fixed": [0, 1, 0], "varied": np.exp([0, 4, 2])}),
        ([1, 4], {None: [1, 1], "fixed": [1, 0], "varied": np.exp([2, 0])}),
    ):
        inside = np.isin(first, rows)
        assert abs(inside.mean() - 0.5) < 0.01
        assert np.isin(second[inside], rows).all()
        chances = np.divide(chances[ranking], np.sum(chances[ranking]))
        for row, chance in zip(rows, chances, strict=True):
            assert abs((first[inside] == row).mean() - chance) < 0.01
    for row in range(5):
        top, low = first == row, second == row
        if top.any():
            assert abs(clicked[top, 0].mean() - gamma[row]) < 0.02
        if low.any():
            missed = low & ~clicked[:, 0]
            if model == "cascade":
                assert not clicked[low & clicked[:, 0], 1].any()
                if missed.sum() > 500:
                    assert abs(clicked[missed, 1].mean() - gamma[row]) < 0.05
            else:
                assert abs(clicked[low, 1].mean() - gamma[row] / 2) < 0.02
    same(
        read_clicks(data.y),
        read_clicks(click_labels(data.shown, data.clicked, groups, sessions=data.sessions)),
    )


def test_simulated_lists_of_short_queries_and_relevance_of_one_kind():
    data = make_clicks([0, 0, 0], [0, 1, 1], 50, random_state=0)
    assert data.probabilities.tolist() == [0.1] * 3
    assert sorted(set(np.bincount(data.sessions).tolist())) == [1, 2]
    assert len(data.propensities) == 2
    again = make_clicks([0, 0, 0], [0, 1, 1], 50, random_state=0)
    np.testing.assert_array_equal(data.shown, again.shown)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_sessions": 0}, "n_sessions must be a whole number >= 1"),
        ({"n_shown": 0}, "n_shown must be a whole number >= 1"),
        ({"model": "casade"}, "Did you mean 'cascade'"),
        ({"noise": 1}, r"noise must be a number in \[0, 1\)"),
        ({"noise": np.nan}, r"noise must be a number in \[0, 1\)"),
        ({"temperature": -1}, "temperature must be"),
        ({"propensities": [1]}, "propensities has 1 entry, but sessions show 2"),
        ({"propensities": [1, 2]}, r"in \(0, 1\]"),
        ({"model": "cascade", "propensities": [1, 0.5]}, "no propensities"),
        ({"ranking": [1]}, "ranking has 1 entry"),
        ({"relevance": [1, -1]}, "relevance must be at least 0"),
        ({"relevance": [1, np.nan]}, "NaN"),
        ({"relevance": [1]}, "groups has 2 entries"),
    ],
)
def test_bad_parameters_of_the_generator(options, message):
    arguments = {"relevance": [1, 0], "groups": [0, 0], "n_sessions": 10, **options}
    with pytest.raises(ValueError, match=message):
        make_clicks(**arguments)
