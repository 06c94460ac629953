"""Readers of preferences: files of PrefLib, and edges."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from sklearn_rankcal.decoders import decode_preferences
from sklearn_rankcal.labels import (
    preference_labels,
    rankings_to_preferences,
    read_edges,
    read_preferences,
    read_preflib,
)

from .preference_data import G, drawn, judged

# ------------------------------------------------------------------ PrefLib

PREFLIB = Path(__file__).parents[2] / "shared" / "data" / "preferences" / "preflib"
FILES = sorted(PREFLIB.iterdir()) if PREFLIB.exists() else []
#: The numbers of alternatives, orders and voters. They were counted in the files, because some
#: headers are out of date.
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
    """Yield (count, {alternative: tier}) for each line, which is read character by character."""
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
    # Alternative 9 has no name and is not listed. The names of the others are in another order.
    names = read_preflib(PREFLIB / "education_courses2.soi").alternatives
    assert names[8] == "9" and names[0] == "Physics" and names[4] == "Computer Architecture"
    # Alternative 12 has no name, but it is listed.
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
        ("# NUMBER ALTERNATIVES: 2\n1: 1,3\n", "as 2, but the file lists or names alternative 3"),
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
    """If the ids of the rows are given, edges between ids become the pairs of these rows.

    Without them the pairs are the same, up to the order of the rows.
    """
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
        (lambda: read_edges([("q", "a")]), "rows of 3 or 4 entries.*rows of 2 entries"),
        (lambda: read_edges([("q", "a", "b"), ("q", "a", "b", 1)]), "rows of 3 or 4 entries"),
        (lambda: read_edges(np.arange(3)), "rows of 3 or 4 entries"),
        (lambda: read_edges([("q", "a", "b", "x")]), "weight must be real numbers, not text"),
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
