"""Judgements of pairs, votes, orders and ranks without a meaning are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd

import sklearn_rankcal as public

from .values import GROUP_WORDS, spoiled_groups, spoiled_numbers

_A = public.aggregation


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
        ["pairs", "votes", "orders", "ranks", "selections", "sets", "option", "groups", "preflib"]
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
    elif which == "sets":
        sets = case.choose([
            ([["a", "b"]], ["c"], ["b"]), ([["a", "b"]], ["a"], ["a"]), ([["a"]], [None], [None]),
            ([["a", "a"]], ["a"], [None]), ([["a", "b"]], ["a"], []), (["ab"], ["a"], ["b"]),
            ([[None]], ["a"], ["b"]), (None, None, None), ([["a", "b"]], [["a"]], ["b"]),
        ])  # fmt: skip
        case.refuses(J.from_best_worst, *sets, words=("sets", "best", "worst"))
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
