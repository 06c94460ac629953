"""Files of any origin are read as they are meant, or refused with the name and the line."""

import bz2
import gzip
import time
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_rankcal.aggregation import Judgements
from sklearn_rankcal.labels import preference_labels, read_edges
from sklearn_rankcal.utils._text_files import LineReader  # lines and their numbers, of all formats

BIG = 2**53


@pytest.fixture
def write(tmp_path):
    def write(text, name="a.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def peak(call):
    """Return the largest memory in use, in bytes, and the seconds that a call took."""
    tracemalloc.start()
    started = time.perf_counter()
    try:
        call()
        return tracemalloc.get_traced_memory()[1], time.perf_counter() - started
    finally:
        tracemalloc.stop()


# ------------------------------------------------------------------ lines


def numbered(path):
    lines = LineReader(path)
    return [(lines.number, line.rstrip("\n")) for line in lines]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_have_their_numbers(write, end):
    text = end.join(["\ufeffé b", "", " ", "", "c", "last"])
    for name, pack in (("a", bytes), ("a.gz", gzip.compress), ("a.bz2", bz2.compress)):
        path = write(pack(text.encode()), name)
        assert numbered(path) == [(1, "é b"), (5, "c"), (6, "last")]
    assert numbered(write(end * 5 + "x" + end * 3)) == [(6, "x")]
    assert numbered(write("")) == []


def test_zipped_newlines_take_no_memory(write):
    header = b"# NUMBER ALTERNATIVES: 2\n" + b"\n" * 10**6
    path = write(gzip.compress(header + b"1: 1,2\n", 9), "a.soc.gz")
    assert peak(lambda: Judgements.from_preflib(path))[0] < 10**6
    with pytest.raises(ValueError, match=f"line {10**6 + 2}: 'x' cannot be read"):
        Judgements.from_preflib(write(gzip.compress(header + b"x\n"), "b.soc.gz"))


# ------------------------------------------------------------------ edges


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_large_ids_of_frames_stay_apart(frame):
    table = frame({"q": [BIG, BIG + 1], "a": [BIG, BIG + 1], "b": [1, 1], "w": [0.5, 1.5]})
    data = read_edges(table)
    assert data.groups.tolist() == [BIG, BIG, BIG + 1, BIG + 1]
    assert data.documents.tolist() == [BIG, 1, BIG + 1, 1] and data.weight.tolist() == [0.5, 1.5]
    assert data.pairs.tolist() == [[0, 1], [2, 3]]


def test_large_ids_of_lists_stay_apart():
    data = read_edges([(2**63, 2**63 + 1, -1), (2**63, 2**63, -1)])
    assert data.documents.tolist() == [2**63 + 1, -1, 2**63]
    assert data.groups.tolist() == [2**63] * 3


def test_ids_may_be_tuples_and_text_of_any_length():
    edges = [(("q", 1), ("d", 1), ("d", 2), 1.0), (("q", 1), ("d", 2), ("d", 3), 2.0)]
    data = read_edges(edges)
    assert data.groups.tolist() == [("q", 1)] * 3
    assert data.documents.tolist() == [("d", 1), ("d", 2), ("d", 3)]
    assert preference_labels(data.pairs, data.groups, data.weight)["size"].tolist() == [3, 3, 3]
    assert data.pairs.tolist() == [[0, 1], [1, 2]]
    same = read_edges([("q", "a", "a\0")])
    assert same.pairs.tolist() == [[0, 1]] and same.documents.tolist() == ["a", "a\0"]
    # Arrays of text of a fixed width would take 4 * 10^6 * 10^4 bytes.
    long = "x" * 10**6
    many = [("q", long, f"d{k}") for k in range(10**4)]
    assert peak(lambda: read_edges(many))[0] < 200 * 2**20


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            [("q", "a", "b", float("nan"))],
            "weight must be finite and >= 0; entry 0 is nan",
        ),
        ([("q", "a", "b", "nan")], "weight must be real numbers, not text"),
        ([("q", "a", "b", -1)], "entry 0 is -1"),
        ([("q", "a", "b", None)], "weight has a missing entry"),
        ([("q", "a", "b", 1), ("q", "a", "b", "2")], "weight must be real numbers, not text"),
        (
            pd.DataFrame({"q": [1.0, np.nan], "a": 1, "b": 2}),
            "source has a missing or infinite id .nan. in row 1",
        ),
        (
            pd.DataFrame({"q": ["x", None], "a": 1, "b": 2}),
            "source has a missing or infinite id .(None|nan). in row 1",
        ),
        (pl.DataFrame({"q": [1, None], "a": [1, 1], "b": [2, 2]}), ".(None|nan). in row 1"),
        (pd.DataFrame({"q": [], "a": [], "b": []}), "source has no preferences"),
        ([("q", ["a"], "b")], "source must contain hashable ids"),
        (["qab"], "3 or 4 entries in each row"),
        ({("q", "a", "b"): 2}, "must be rows of"),
        (np.ma.array([[1, 2, 3]], mask=[[0, 0, 1]]), "source has masked entries"),
        ([np.ma.array([1, 2, 3], mask=[0, 0, 1])], "hashable|missing"),
        ([("q", "a", np.ma.masked)], "hashable|missing"),
    ],
)
def test_edges_of_rows_are_read_strictly(source, message):
    with pytest.raises(ValueError, match=message):
        read_edges(source)
