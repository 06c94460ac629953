"""Judgements of pairs and votes say what loops read from them, and bad ones are refused."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pandas as pd

import sklearn_rankcal as public

from .values import _IDS, GROUP_WORDS, draw_groups, spoiled_groups, spoiled_numbers

_A = public.aggregation


def _queries(case, n):
    """The query of each of n judgements, by first appearance, and groups to pass; or None."""
    if case.chance(0.4):
        return [0] * n, None
    numbers = case.rng.integers(0, 3, n).tolist()
    first = {number: k for k, number in enumerate(dict.fromkeys(numbers))}
    codes = [first[number] for number in numbers]
    return codes, draw_groups(case, codes)


def _names(case):
    """Six ids of the same odd type."""
    kinds = [kind for kind in _IDS if kind != "mixed"]
    make = _IDS["mixed" if case.chance(0.1) else case.choose(kinds)]
    return [make(k) for k in range(6)]


def _expect_totals(case, read, names, wanted):
    """The sums of weights equal the sums of a loop."""
    number = {name: k for k, name in enumerate(names)}
    items = [number[item] for item in read.items.tolist()]
    codes, preferences = read.queries.codes, read.preferences()
    found = defaultdict(float)
    for i, j, weight in zip(preferences.winner.tolist(), preferences.loser.tolist(),
                            preferences.weight.tolist(), strict=True):  # fmt: skip
        case.expect(codes[i] == codes[j], "compares items of two queries")
        found[int(codes[i]), items[i], items[j]] += weight
    keys = sorted({*found, *wanted})
    case.equal([found[k] for k in keys], [wanted[k] for k in keys], "other sums of comparisons")


def formats(case):
    """Pairs and votes."""
    case.choose([_pairs, _votes])(case)


def _pairs(case):
    names, n = _names(case), case.whole(1, 3 * case.size)
    codes, groups = _queries(case, n)
    rows = [case.rng.permutation(6)[:2].tolist() for _ in range(n)]
    options, factor, tied = {}, [1.0] * n, [False] * n
    if case.chance(0.4):
        factor = case.rng.choice([0, 0.5, 1, 3], n).tolist()
        options["weight"] = case.choose([list, np.array])(factor)
    if case.chance(0.4):
        tied = (case.rng.random(n) < 0.3).tolist()
        options["tied"] = case.choose([list, np.array])(tied)
    extra = case.choose(["count", "judgement", "judge", None])
    if extra == "count":
        options["count"] = case.rng.integers(0, 4, n)
        factor = [f * c for f, c in zip(factor, options["count"].tolist(), strict=True)]
    elif extra is not None:
        options[extra] = [_IDS["text"](k) for k in case.rng.integers(0, 3, n).tolist()]
    made = [(names[i], names[j]) for i, j in rows]
    if case.chance(0.3):
        made = [list(pair) for pair in made]
    elif case.chance(0.3):
        columns = [np.empty(n, dtype=object) for _ in range(2)]
        for k, pair in enumerate(made):
            columns[0][k], columns[1][k] = pair
        made = pd.DataFrame({"loser": columns[1], "winner": columns[0]}, dtype=object)
    read = case.call(_A.Judgements.from_pairs, made, groups=groups, **options)
    wanted = defaultdict(float)
    for (i, j), q, f, tie in zip(rows, codes, factor, tied, strict=True):
        wanted[q, i, j] += f / 2 if tie else f
        wanted[q, j, i] += f / 2 if tie else 0.0
    _expect_totals(case, read, names, wanted)
    if extra == "judgement":
        n = len(set(zip(codes, options["judgement"], strict=True)))
    case.expect(read.n_judgements == n, "counts judgements wrongly")


def _votes(case):
    names, n = _names(case), case.whole(1, 3 * case.size)
    codes, groups = _queries(case, n)
    rows = [case.rng.permutation(6)[:2].tolist() for _ in range(n)]
    refusing = case.chance(0.3)
    outcomes = [case.whole(0, 3 if refusing else 2) for _ in range(n)]
    words = ["model_a", "model_b", "tie", case.choose(["no", None, np.nan])]
    winner = [
        names[pair[outcome]] if outcome < 2 and case.chance(0.5) else words[outcome]
        for pair, outcome in zip(rows, outcomes, strict=True)
    ]
    columns = [[names[pair[k]] for pair in rows] for k in (0, 1)]
    options = {"refused": words[3] if isinstance(words[3], str) else None} if refusing else {}
    read = case.call(_A.Judgements.from_votes, *columns, winner, groups=groups, **options)
    wanted = defaultdict(float)
    for (i, j), q, outcome in zip(rows, codes, outcomes, strict=True):
        wanted[q, i, j] += (1.0, 0.0, 0.5, 0.0)[outcome]
        wanted[q, j, i] += (0.0, 1.0, 0.5, 0.0)[outcome]
    _expect_totals(case, read, names, wanted)
    case.expect(read.n_judgements == n - outcomes.count(3), "counts votes wrongly")
    if refusing:
        case.expect(read.refused.sum() == outcomes.count(3), "counts refusals wrongly")
    if read.n_judgements:
        _expect_labels(case, read, names, wanted)


def _expect_labels(case, read, names, wanted):
    """The labels of a table have the same sums for any order of its rows."""
    order = case.rng.permutation(read.queries.n_rows)
    codes, ids = read.queries.codes[order], read.items[order]
    labels = case.call(read.to_labels, read.queries.ids[codes], ids)
    found = _A.Judgements.from_labels(labels)
    found.items = ids
    number = {code: k for k, code in enumerate(dict.fromkeys(codes.tolist()))}
    moved = {(number[q], i, j): weight for (q, i, j), weight in wanted.items()}
    _expect_totals(case, found, names, defaultdict(float, moved))


_NO_PAIRS = [
    [], None, 7, "ab", ["ab"], [("a",)], [("a", "b", "c")], [("a", "a")], [(None, "a")],
    [(float("nan"), 1.0)], [(float("inf"), 1.0)], np.array([[1.0, np.nan]]), {"a": "b"},
    np.array([[1.0, np.inf]]),
    [([1], [2])], np.zeros((2, 3)), np.ma.array([[0, 1]], mask=[[True, False]]), [7],
    pd.DataFrame({"a": [1], "b": [2], "c": [3]}), pd.DataFrame({"a": [1], "b": [None]}),
    np.zeros((0, 2)), [(pd.NA, 1)], [(np.datetime64("NaT", "D"), "a")],
]  # fmt: skip
_NO_ORDERS = [
    [], None, 7, "abc", [[]], ["ab"], [[["a"], []]], [["a", "a"]], [["a", ["b", "a"]]], [[None]],
    [[float("nan")]], [7], {"a": 1}, [{"a": 1}], [[["a", ["b"]]]],
]  # fmt: skip
_NO_RANKS = [
    [], None, 7, "ab", [1, 2], [[np.nan, np.nan]], [[0, 1]], [[-1, 2]], [[np.inf, 1]], [["a", "b"]],
    np.ones((2, 2, 2)), [[1, 2], [1]],
]  # fmt: skip


def bad_formats(case):
    """Judgements, and what belongs to them, without a meaning."""
    J = _A.Judgements
    which = case.choose(
        ["pairs", "votes", "orders", "ranks", "selections", "option", "groups", "preflib"]
    )
    if which == "votes":
        votes = case.choose([
            (["a"], ["b"], ["c"]), (["a"], ["b"], [None]), (["a"], ["a"], ["a"]), ("a", "b", "a"),
            (["a"], ["b", "c"], ["a"]), ([], [], []), (["a"], ["b"], [[]]), (["a"], ["tie"], "tie"),
            (["model_b"], ["b"], ["model_b"]), (None, None, None), (["a"], [np.nan], ["a"]),
        ])  # fmt: skip
        case.refuses(J.from_votes, *votes, words=("first", "second", "winner", "item"))
    elif which == "pairs":
        case.refuses(J.from_pairs, case.choose(_NO_PAIRS), words=("pair",))
    elif which == "orders":
        case.refuses(J.from_orders, case.choose(_NO_ORDERS), words=("order",))
    elif which == "ranks":
        case.refuses(J.from_ranks, case.choose(_NO_RANKS), words=("rank",))
    elif which == "selections":
        shown, chosen = case.choose([
            ([["a", "b"]], ["c"]), ([["a", "b"]], [["a", "a"]]), ([["a", "a"]], ["a"]),
            ([[]], [[]]), ([["a"]], []), ([["a"]], [None]), ([["a"]], None), ([], []),
            (None, None), (["ab"], ["a"]), ([["a", "b"]], [[["a"]]]), ([["a"]], "a b"),
        ])  # fmt: skip
        case.refuses(J.from_selections, shown, chosen, words=("shown", "selected"))
    elif which == "groups":
        spoiled = spoiled_groups(case, [0, 0, 1])
        case.refuses(J.from_pairs, [(0, 1)] * 3, groups=spoiled, words=(*GROUP_WORDS, "group"))
    elif which == "preflib":
        bad = case.choose([None, 7, [], {}, [[1, 2]], object()])
        case.refuses(J.from_preflib, bad, words=("source",))
    else:
        _bad_option(case)


def _bad_option(case):
    J = _A.Judgements
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    name = case.choose(["weight", "count", "tied", "judgement", "judge", "items", "unlisted"])
    if name in ("weight", "count"):
        bad, _ = spoiled_numbers(case, 3)
        if case.chance(0.3):
            bad = case.choose([[-1, 1, 1], [1e308] * 3, [0.5, 1, np.nan]])
        case.refuses(J.from_pairs, pairs, **{name: bad}, words=(name,))
    elif name == "tied":
        bad = case.choose([[0, 2, 0], [True], ["no"] * 3, None.__class__, [[True]] * 3])
        case.refuses(J.from_pairs, pairs, tied=bad, words=("tied",))
    elif name in ("judgement", "judge"):
        bad = case.choose([[1, 2], [None, 1, 2], [[1], [2], [3]], "abc", 7, [[]] * 3])
        case.refuses(J.from_pairs, pairs, **{name: bad}, words=(name,))
    elif name == "items":
        bad = case.choose([["a"], ["a", "a", "b", "c"], [], "abc", [None, "a", "b", "c"]])
        case.refuses(J.from_orders, pairs, items=bad, words=("item",))
    else:
        bad = case.choose(["first", None, 3, True, ["last"]])
        option = case.choose(["unlisted", "ties"])
        case.refuses(J.from_orders, pairs, **{option: bad}, words=(option,))


def bad_leaderboard(case):
    """Methods, options and judgements without a meaning."""
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    name, values = case.choose([
        ("method", ["elo", "", None, 3, ["btl"], _A.BradleyTerry, "cascade", "Kemeny"]),
        ("n_resamples", [-1, 1.5, "3", None, True, np.nan, 10**15, [3]]),
        ("resample", ["judges", "voters", None, 3, ["judges"]]),
        ("confidence_level", [0, 1, -0.5, 95, "0.9", None, np.nan, True, [0.9]]),
        ("random_state", ["a", 1.5, [[1]], object()]),
        ("groups", [[1], [1, None, 2], "abc", 7, [[1, 2, 3]]]),
    ])  # fmt: skip
    words = {"method": ("method", "clicks"), "random_state": ("seed", "random")}
    case.refuses(_A.aggregate, pairs, **{name: case.choose(values)},
                 words=words.get(name, (name, "group", "judge")))  # fmt: skip
    if case.chance(0.3):
        case.refuses(_A.aggregate, case.choose(_NO_PAIRS), "borda", words=("pair", "label"))
    if case.chance(0.3):
        case.refuses(_A.Kemeny(*case.choose([("best",), (None,), (3,)])).check, words=("method",))
