"""Readers of preferences: files of PrefLib, and edges."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from sklearn_rankcal.aggregation import Judgements
from sklearn_rankcal.decoders import decode_preferences
from sklearn_rankcal.labels import preference_labels, read_edges
from sklearn_rankcal.labels._labels import read_preferences  # what rankers read

from ..preference_data import drawn, judged

# ------------------------------------------------------------------ PrefLib

PREFLIB = Path(__file__).parents[3] / "shared" / "data" / "preferences" / "preflib"
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
@pytest.mark.filterwarnings("ignore:.*education_courses.* states '# NUMBER ")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_preflib_files(path):
    data = Judgements.from_preflib(path)
    r = len(data.items)
    if path.name in SHAPES:
        assert (r, data.n_judgements, data.count.sum()) == SHAPES[path.name]
    wanted, last = np.zeros((r, r)), np.zeros((r, r))
    for row, (count, tiers) in enumerate(literal_orders(path)):
        assert data.count[row] == count
        for i, j in itertools.permutations(range(1, r + 1), 2):
            if i in tiers:
                wanted[i - 1, j - 1] += count * (tiers[i] < tiers.get(j, -1))
                last[i - 1, j - 1] += count * (tiers[i] < tiers.get(j, r))
    np.testing.assert_array_equal(matrix_of(data), wanted)
    every = Judgements.from_preflib(path, unlisted="last")
    np.testing.assert_array_equal(matrix_of(every), last)
    result = decode_preferences(matrix_of(data), "local_search")
    assert sorted(result.ranks) == list(range(1, r + 1))


def matrix_of(judgements):
    preferences = judgements.preferences()
    matrix = np.zeros((len(judgements.items),) * 2)
    matrix[preferences.winner, preferences.loser] = preferences.weight
    return matrix


@pytest.mark.parametrize("header", ["# NUMBER VOTERS: 7", "# NUMBER UNIQUE ORDERS: 3"])
def test_preflib_files_that_were_cut_short(tmp_path, header):
    path = tmp_path / "a.soi"
    path.write_text(f"# NUMBER ALTERNATIVES: 2\n{header}\n2: 1,2\n1: 2,1\n")
    with pytest.warns(UserWarning, match=f"states '{header}', but its orders have [23]. The file"):
        Judgements.from_preflib(path)


@pytest.mark.skipif(not FILES, reason="the PrefLib files are not here")
@pytest.mark.filterwarnings("ignore:.*education_courses.* states '# NUMBER ")
def test_preflib_names():
    assert Judgements.from_preflib(PREFLIB / "netflix.soc").items.tolist() == [
        "Mean Girls",
        "Beverly Hills Cop",
        "The Mummy Returns",
        "Mission: Impossible II",
    ]
    # Alternative 9 has no name and is not listed. The names of the others are in another order.
    names = Judgements.from_preflib(PREFLIB / "education_courses2.soi").items
    assert names[8] == "9" and names[0] == "Physics" and names[4] == "Computer Architecture"
    # Alternative 12 has no name, but it is listed.
    data = Judgements.from_preflib(PREFLIB / "education_courses.toi")
    assert data.items[11] == "12" and (data.orders.item == 11).any()


def test_preflib_text(tmp_path):
    path = tmp_path / "a.toi.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\ufeff# TITLE: Thé: un essai\n# NUMBER ALTERNATIVES: 4\n\n")
        file.write("# ALTERNATIVE NAME 3: Thé: vert \n 2 : {3, 1}, 2\n1:2\n")
    data = Judgements.from_preflib(str(path))
    assert data.items.tolist() == ["1", "2", "Thé: vert", "4"] and data.count.tolist() == [2, 1]
    assert data.orders.item.tolist() == [2, 0, 1, 1] and data.orders.tier.tolist() == [0, 0, 1, 0]
    every = Judgements.from_preflib(path, unlisted="last")
    assert matrix_of(every)[2].tolist() == [0, 2, 0, 2]
    with pytest.raises(ValueError, match=r"Unknown unlisted 'first'. Known: 'ignore', 'last'"):
        Judgements.from_preflib(path, unlisted="first")


NUMBER = "# NUMBER ALTERNATIVES: 3\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no orders"),
        (NUMBER, "has no orders"),
        ("1: 1,2\n", "or no header '# NUMBER ALTERNATIVES: 3'"),
        ("3\n1,a\n", "line 1: '3' cannot be read: an order is 'count: 3"),
        (NUMBER + "1 2 3: 1,2", "line 2: '1 2 3: 1,2' cannot be read: an order is"),
        (NUMBER + "1: 1 2 3", "line 2: '1: 1 2 3' cannot be read: an order is"),
        (NUMBER + "1: 1,,2\n", "line 2: '1: 1,,2' cannot be read"),
        (NUMBER + "1: 1,{2,3\n", "an order is"),
        (NUMBER + "1: {1,{2}}\n", "an order is"),
        (NUMBER + "1: 1.5,2\n", "an order is"),
        (NUMBER + "1_0: 1,2\n", "an order is"),
        (NUMBER + "\u0661: 1,2\n", "an order is"),
        (NUMBER + "1:\n", "an order is|lists no item"),
        (NUMBER + "-1: 1,2\n", "an order is"),
        (NUMBER + f"{2**53 + 1}: 1,2\n", "an order is"),
        (NUMBER + "1: 1,{}\n", "an order is"),
        (NUMBER + "1: 1,2\n1: 2,1,2\n", r"Entry 1 of .*a\.soi has item 2 twice"),
        (NUMBER + "1: 1,2\n1: {1,2}\n", r"a\.soi, line 3: .*'soi' has strict orders, but .* a tie"),
        ("# DATA TYPE: soc\n" + NUMBER + "1: 1,2\n", "complete orders, but this one lists 2 of 3"),
        ("# DATA TYPE: toc\n" + NUMBER + "1: {1,2}\n", "line 3: .* lists 2 of 3. .*TYPE: toi"),
        (NUMBER + "1: 1,2,\n", "line 2: '1: 1,2,' cannot be read: .* without a comma at its end"),
        (NUMBER + "1: 0,1\n", r"a\.soi has the item 0 \(entry 0, .* which is not in items"),
        (NUMBER + "1: 1,4\n", r"a\.soi has the item 4 \(entry 0, .* which is not in items"),
        ("# NUMBER ALTERNATIVES: two\n1: 1,2\n", "line 1: .*two' cannot be read: invalid lit"),
        ("# NUMBER ALTERNATIVES: 1000000000\n1: 1,2\n", "names 0 of 1,000,000,000 alternatives"),
        ("# DATA TYPE: wmd\n1: 1,2\n", "the data type is not one of soc, soi, toc, toi"),
        (b"\xff\xfe1: 1\n", "line 1: byte 0xff is not text in UTF-8"),
        (b"# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: Caf\xe9\n1: 1\n", "line 2: byte 0xe9"),
    ],
)
def test_bad_preflib(tmp_path, text, message):
    path = tmp_path / "a.soi"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        Judgements.from_preflib(path)
    with pytest.raises(FileNotFoundError):
        Judgements.from_preflib(tmp_path / "b.soi")


# ------------------------------------------------------------------ edges

EDGES = [("q1", "x", "y"), ("q2", "y", "x"), ("q1", "z", "x"), ("q1", "x", "y")]


def test_edges_of_a_file_that_pandas_read(tmp_path):
    path = tmp_path / "e.csv.gz"
    text = "\n".join(map(",".join, EDGES)) + "\n"
    path.write_bytes(gzip.compress(text.encode()))
    data = read_edges(pd.read_csv(path, header=None))
    assert data.groups.tolist() == ["q1", "q1", "q2", "q2", "q1"]
    assert data.documents.tolist() == ["x", "y", "y", "x", "z"]
    assert data.pairs.tolist() == [[0, 1], [2, 3], [4, 0], [0, 1]] and data.weight is None
    preferences = read_preferences(preference_labels(data.pairs, data.groups))
    assert preferences.weight.tolist() == [2, 1, 1]


@drawn
@given(judged())
def test_read_edges_finds_the_rows(data):
    """Edges between the ids of rows are the pairs of these rows, up to the order of the rows."""
    groups, pairs, weight = data
    ids = [f"d{row % 7}{row}" for row in range(len(groups))]
    edges = [(groups[i], ids[i], ids[j], w) for (i, j), w in zip(pairs, weight, strict=True)]
    alone = read_edges(edges)
    rows = [ids.index(document) for document in alone.documents]
    assert alone.groups.tolist() == [groups[row] for row in rows]
    assert [[rows[i], rows[j]] for i, j in alone.pairs] == [list(p) for p in pairs]
    assert len(set(rows)) == len(rows) and alone.weight.tolist() == weight


def test_ids_of_edges():
    data = read_edges([(1, 10, 20, 0.5), (1, 20, 7, 2), (2, 10, 20, 0)])
    assert data.groups.dtype == data.documents.dtype == np.int64
    assert data.documents.tolist() == [10, 20, 7, 10, 20] and data.weight.tolist() == [0.5, 2, 0]
    table = pd.DataFrame({"q": [2, 1, 2, 1, 1], "d": [20, 7, 10, 10, 20], "x": range(5)})
    X = table.set_index(["q", "d"]).loc[list(zip(data.groups, data.documents, strict=True))]
    assert X["x"].to_numpy()[data.pairs].tolist() == [[3, 4], [4, 1], [2, 0]]
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
        (
            lambda: read_edges("edges.csv"),
            r"must be rows of .* got 'edges\.csv'",
        ),
        (lambda: read_edges([("q", "a")]), "3 or 4 entries in each row.*got 2"),
        (lambda: read_edges([("q", "a", "b"), ("q", "a", "b", 1)]), "3 or 4 entries in each row"),
        (lambda: read_edges(np.arange(3)), "3 or 4 entries in each row"),
        (lambda: read_edges([("q", "a", "b", "x")]), "weight must be real numbers, not text"),
    ],
)
def test_bad_edges(call, message):
    with pytest.raises(ValueError, match=message):
        call()
