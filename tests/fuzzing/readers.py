"""Readers of files and edges: what a plain reading finds, and files made to harm."""

from __future__ import annotations

import functools
import gzip
import zlib
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl

import sklearn_rankcal as public

from .values import rows_of

_L = public.labels


# -------------------------------------------------------------------- edges


def bad_edges(case):
    """Edges without a meaning."""
    bad = case.choose([
        [], [("q", 1)], [("q", 1, 2, 3, 4)], [("q", 1, 2), ("q", 1, 2, 3)], None, 7, [7], ["abc"],
        [("q", 1, 2, float("nan"))], [("q", 1, 2, "nan")], [("q", 1, 2, float("inf"))],
        [("q", 1, 2, -1)], [("q", 1, 2, None)], [("q", 1, 2, 1j)], [("q", 1, 2, "x")],
        [("q", None, 2)], [(None, 1, 2)], [("q", float("nan"), 2)], [("q", [1], 2)],
        pd.DataFrame({"q": [1], "a": [None], "b": [2]}), pd.DataFrame(), np.zeros((0, 3)),
        np.ma.array([[0, 1, 2]], mask=[[0, 1, 0]]), [("q", 1, 2, 10**400)],
        pd.DataFrame({"q": [1, 1], "a": [1, 2], "b": [2, 3], "w": [1.0, None]}),
        pl.DataFrame({"q": [1, 1], "a": [1, None], "b": [2, 3]}), {"a": 1},
        np.array([["NaT", "2020-01-01", "2021-01-01"]], dtype="M8[D]"),
    ])  # fmt: skip
    outcome = case.attempt(_L.read_edges, bad)
    if outcome.error is None:  # a weight is checked by preference_labels at the latest
        found = outcome.value
        case.refuses(public.preference_labels, found.pairs, found.groups, found.weight)


# -------------------------------------------------------------------- PrefLib


def preflib(case):
    """Orders with ties: tiers, counts, and the weights they add up to."""
    r = case.whole(2, case.size + 2)
    lines = [f"# NUMBER ALTERNATIVES: {r}"]
    lines += [f"# ALTERNATIVE NAME {k}: name {k}" for k in range(1, r + 1) if case.chance(0.5)]
    orders = []
    for _ in range(case.whole(1, case.size)):
        listed = case.rng.permutation(r)[: case.whole(1, r)].tolist()
        tiers = []
        while listed:
            cut = case.whole(1, len(listed))
            tiers.append(listed[:cut] if case.chance(0.4) else listed[:1])
            listed = listed[len(tiers[-1]) :]
        orders.append((case.choose([1, 2, 30, 2**40]), tiers))
        space = case.choose(["", " "])
        parts = [
            str(t[0] + 1) if len(t) == 1 and case.chance(0.9)
            else "{" + f",{space}".join(str(k + 1) for k in t) + "}"
            for t in tiers
        ]  # fmt: skip
        lines.append(f"{orders[-1][0]}:{space}" + f",{space}".join(parts))
    content = "\n".join(lines).encode()
    name = "orders.toi"
    if case.chance(0.3):
        content, name = gzip.compress(content, mtime=0), "orders.toi.gz"
    path = case.file(name, content)
    for unlisted in ("ignore", "last"):
        data = case.call(public.aggregation.Judgements.from_preflib, path, unlisted=unlisted)
        counts = [count for count, _ in orders]
        case.expect(data.count.tolist() == counts, "reads other counts")
        found = data.preferences()
        weights = np.zeros((r, r))
        weights[found.winner, found.loser] = found.weight
        wanted = [[sum(count for count, tiers in orders if _above(i, j, tiers, unlisted))
                   for j in range(r)] for i in range(r)]  # fmt: skip
        case.equal(weights, wanted, "other weights of preferences", 1e-15)


def _above(i, j, tiers, unlisted):
    place = {d: k for k, tier in enumerate(tiers) for d in tier}
    if i not in place:
        return False
    return place[i] < place[j] if j in place else unlisted == "last"


_LETOR = b"2 qid:1 1:0.5 2:1\n0 qid:1 2:0.25\n1 qid:2 1:3\n"
_PREFLIB = b"# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: a\n2: 1,{2,3}\n1: 3,1\n"
#: Files that say one thing and must not be read as another, or that ask for gigabytes.
_HOSTILE = {
    "preflib": [
        b"1 2 3: 1,2\n", b"3 0: 1,2\n", b"3: 1 2,3\n", b"# NUMBER ALTERNATIVES: 1000000000\n1: 1\n",
        b"# ALTERNATIVE NAME 999999999: x\n1: 1\n", b"1: 1000000000\n", b"1: 1,1\n", b"1: 0\n",
        b"-1: 1\n", b"99999999999999999999999: 1,2\n", b"1: {1,2\n", b"1:\n", b": 1\n", b"1: a\n",
        b"\xff\xfe1: 1\n", b"", b"\n\n", b"# DATA TYPE: wmd\n1: 1\n",
        b"# NUMBER ALTERNATIVES: x\n1: 1\n",
        b"1: 1," * 10, b"1: {}\n", b"1: 1,,2\n", b"1.5: 1,2\n", b"1: {1},{1}\n",
        b"0" * 5000 + b": 1\n",
        b"9" * 5000 + b": 1\n", b"1: " + b"9" * 5000 + b"\n",
        b"# NUMBER ALTERNATIVES: " + b"9" * 5000 + b"\n1: 1\n", b"1: 1\0\n",
        "1: \u0661,٢\n".encode(),
        "\u0661: 1,2\n".encode(), "1: \u00b2\n".encode(),
    ],
    "letor": [
        b"1 qid:1 2000000000:1\n", b"1 qid:1 99999999999999999999:1\n", b"1 qid:1 0:1\n",
        b"1 qid:1 1:nan\n", b"nan qid:1 1:1\n", b"inf qid:1 1:1\n", b"1 1:1\n", b"1 qid:x 1:1\n",
        b"1 qid:1 1:x\n", b"x qid:1 1:1\n", b"", b"\n", b"1 qid:1 1:1 1:2\n", b"1 qid:1 2:1 1:1\n",
        b"1 qid:1 1:1\n1 1:1\n", b"1 qid:1.5 1:1\n", b"1 qid:99999999999999999999 1:1\n",
        b"1 qid:-3 1:1\n", b"1,2 qid:1 1:1\n", b"1 qid:1 -1:1\n", b"1 qid: 1:1\n",
        b"\xff qid:1 1:1\n",
        b"1 qid:1\n", b"1 qid:9223372036854775808 1:1\n", b"1 qid:1 1:1e999\n", b"1 qid:1 :1\n",
    ],
}  # fmt: skip
_READ = {
    "preflib": (public.aggregation.Judgements.from_preflib, _PREFLIB, "x.toi"),
    "letor": (public.datasets.load_letor, _LETOR, "x.txt"),
}
#: What may be read after all: the reader has its reasons.
_LEGAL = {
    "preflib": (),
    "letor": (b"1 qid:1 0:1\n", b"1 qid:1 1:nan\n", b"nan qid:1 1:1\n", b"inf qid:1 1:1\n",
              b"1 qid:-3 1:1\n", b"1 qid:1 2:1 1:1\n", b"1 qid:1\n", b"1 qid:1 1:1e999\n",
              b"1 qid:1 2000000000:1\n"),
}  # fmt: skip


def hostile_file(case):
    """Files that are broken on purpose: an error that names the file, in little time and memory."""
    kind = case.choose(_READ)
    function, good, name = _READ[kind]
    way = case.choose(["listed"] * 10 + ["truncated", "corrupt", "folder", "missing", "mutated"] * 4
                      + ["bomb"])  # fmt: skip
    if way == "listed":
        content = case.choose(_HOSTILE[kind])
        outcome = case.attempt(function, case.file(name, content))
        if outcome.error is None:
            case.expect(
                content in _LEGAL[kind],
                "reads a broken file",
                f"{content[:60]!r}: {outcome.value}"[:600],
            )
    elif way == "folder":
        case.refuses(function, case.folder)
    elif way == "missing":
        case.refuses(function, case.folder / "absent.txt", words=("absent",))
    elif way == "bomb":
        path = case.file(f"{name}.gz", _bomb(case.choose([b"\n", b" ", b"#"])))
        case.attempt(function, path, words=(name,))
    elif way == "mutated":
        content = bytearray(good)
        for _ in range(case.whole(1, 3)):
            content[case.whole(0, len(content) - 1)] = case.whole(0, 255)
        case.attempt(function, case.file(name, bytes(content)), words=(name,))
    else:
        content = bytearray(gzip.compress(good * 20, mtime=0))
        if way == "truncated":
            content = content[: case.whole(1, len(content) - 1)]
        else:
            content[case.whole(0, len(content) - 9)] ^= case.whole(1, 255)
        outcome = case.attempt(function, case.file(f"{name}.gz", bytes(content)), words=(name,))
        if outcome.error is None:
            case.expect(way == "corrupt", "reads part of a file")


@functools.cache
def _bomb(character, length=16 * 2**20, block=2**20):
    """A small file that unzips to a large one."""
    packer = zlib.compressobj(9, wbits=31)
    parts = [packer.compress(character * block) for _ in range(length // block)]
    return b"".join([*parts, packer.flush()])


def letor(case):
    """A LETOR file, by a plain reading."""
    n, width = case.whole(1, 3 * case.size), case.whole(1, 6)
    lines, X, y, qids, ids = [], np.zeros((n, width)), [], [], []
    qid, first = 1, case.whole(0, 1)  # and the number of the first feature
    for row in range(n):
        qid = qid + case.whole(0, 1) if case.chance(0.8) else 10**12 + row
        y.append(case.choose([0.0, 1.0, 4.0, 0.5, -1.0]))
        qids.append(qid)
        cells = sorted(case.rng.permutation(width)[: case.whole(0, width)].tolist())
        if row == 0:
            cells = sorted({*cells, width - 1, *([] if first else [0])})
        text = []
        for cell in cells:
            X[row, cell] = number = case.choose([0.5, -2.0, 1e-3, 3.0])
            text.append(f"{cell + first}:{number!r}")
        comment = case.choose(["", " # docid = 3", "#x"] if case.chance(0.2) else [" # docid = 3"])
        ids.append({"": None, "#x": "x"}.get(comment, "3"))  # RankLib writes the id alone
        lines.append(f"{y[-1]:g} qid:{qid} {' '.join(text)}{comment}")
    content = "\n".join(lines).encode() + b"\n"
    data = case.call(public.datasets.load_letor, case.file("x.txt", content), dtype=np.float64)
    case.expect(np.array_equal(_dense(data.X), X), "reads other features")
    case.expect(data.y.tolist() == y and data.groups.tolist() == qids, "reads other labels")
    read = [None] if data.document_ids is None else data.document_ids.tolist()
    case.expect(read == ([None] if None in ids else ids), "reads other document ids")
    case.expect(len(rows_of(qids)) == len(set(data.groups.tolist())), "other queries")
    case.expect(all(Fraction(v) == w for v, w in zip(data.y.tolist(), y, strict=True)), "labels")


def _dense(X):
    return X.toarray() if hasattr(X, "toarray") else X
