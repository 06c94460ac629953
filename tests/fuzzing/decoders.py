"""Decoders: scores in any container, and what is refused."""

from __future__ import annotations

import numpy as np

import sklearn_rankcal as public

from .values import (
    GROUP_WORDS,
    draw_codes,
    draw_groups,
    draw_numbers,
    rows_of,
    spoiled_groups,
    spoiled_numbers,
)

_D = public.decoders
_PREFERENCES = ("auto", "exact", "local_search", "greedy_dag", "borda", "copeland", "sort")
_AVERAGE_PRECISION = ("auto", "exact", "local_search", "diagonal")


def bad_matrix(case):
    """Matrices and options without a meaning."""
    function, methods = case.choose(
        [
            (_D.decode_preferences, _PREFERENCES),
            (_D.decode_average_precision, _AVERAGE_PRECISION),
        ]
    )
    good = np.eye(3)
    bad = case.choose([
        [], [[]], np.zeros((2, 3)), np.zeros((0, 0)), [[np.nan, 0], [0, 0]], [[0, np.inf], [1, 0]],
        np.ma.array(good, mask=np.eye(3, dtype=bool)), good * 1j, np.full((2, 2), 1e300), "ab",
        None, 3.0, [good, [[1, 2]]], [good, None], [["a", "b"], ["c", "d"]], np.zeros((1, 1, 1, 1)),
        np.full((2, 2), np.datetime64("NaT", "D")), np.array([["0", "1"], ["1", "0"]]), {},
        [[1, 2], [3]],
        np.full((2, 2), np.timedelta64("NaT", "D")), [[None, 1], [1, None]], [[10**400, 0], [0, 1]],
        [np.eye(2), np.ma.array(np.eye(2), mask=True)],
    ])  # fmt: skip
    if case.chance(0.6):
        case.refuses(function, bad, case.choose(methods))
        return
    name, values = case.choose([
        ("sizes", [[3, 3], [0], 3, "3", [2.5], [4]]),
        ("n_perturbations", [-1, 2.5, True, "3", None]),
        ("time_limit", [0, -1, "1", True, float("nan"), []]),
        ("random_state", ["x", 2.5, []]), ("method", ["best", None, 3, [], ["auto"]]),
    ])  # fmt: skip
    given = {name: case.choose(values)}
    case.refuses(function, good[None] if name == "sizes" else good, **given)


def scores(case):
    """`decode_scores`: best first, ties by key, then by row."""
    codes = draw_codes(case)
    u = draw_numbers(case, codes)
    keys = case.rng.integers(0, 3, len(codes)) if case.chance(0.4) else None
    outcome = case.attempt(_D.decode_scores, u.value, draw_groups(case, codes), tie_breakers=keys)
    if outcome.error is not None:
        case.expect(not u.sure or u.exact is None, "refuses good scores", outcome.describe())
        return
    case.expect(u.exact is not None, "accepts what is no number")
    ranks = outcome.value.ranks.tolist()
    for rows in rows_of(codes):
        order = sorted(rows, key=lambda i: (-u.exact[i], 0 if keys is None else keys[i], i))
        wanted = {row: place for place, row in enumerate(order, 1)}
        case.expect(all(ranks[i] == wanted[i] for i in rows), "another order of scores",
                    f"{ranks} in {codes}")  # fmt: skip


def bad_scores(case):
    """Scores and groups without a meaning."""
    if case.chance(0.5):
        bad, kind = spoiled_numbers(case, 3)
        words = () if kind in ("short", "long") else ("score",)
        case.refuses(_D.decode_scores, bad, [0, 0, 1], words=words)
    else:
        case.refuses(_D.decode_scores, [1.0, 2.0, 3.0], spoiled_groups(case, [0, 0, 1]),
                     words=GROUP_WORDS)  # fmt: skip


def bad_rules(case):
    """Rules without a meaning."""
    bad = case.choose([
        {"place": [1, 2]}, {"place": [1, 2, -3]}, {"place": [1, 2, 0.5]}, {"place": [1, 1, 0]},
        {"place": ["a", "b", "c"]}, {"place": [4, 0, 0]}, {"earliest": [np.inf, 0, 0]},
        {"blocked": [0, 2, 0]}, {"blocked": [True]}, {"blocked": [True, None, False]},
        {"blocked": ["yes", "no", "no"]}, {"blocked": np.ma.array([1, 0, 0], mask=[0, 1, 0])},
        {"latest": [1, 1, 1]}, {"place": "column"},
        {"before": [(0, 3)]}, {"before": [(-1, 0)]}, {"before": [(1, 1)]}, {"before": [(0.5, 1)]},
        {"before": [(0, 1), (1, 0)]}, {"soft": -1.0}, {"soft": np.nan}, {"quotas": [3]},
        {"place": np.ma.array([1, 2, 3], mask=[0, 0, 1])}, {"place": [[1, 2, 3]]},
    ])  # fmt: skip
    case.refuses(lambda **given: _D.decode_scores([3.0, 2.0, 1.0], rules=_D.Rules(**given)), **bad)
    quota = case.choose([
        {"first": 0, "at_most": 1}, {"first": 2}, {"first": [2, 3], "at_most": [1, 2, 3]},
        {"first": 2, "at_most": -1}, {"first": 1.5, "at_most": 1}, {"first": 2, "at_least": "x"},
        {"first": [], "at_most": 1}, {"first": True, "at_most": 1}, {"first": 2, "at_least": 3},
    ])  # fmt: skip
    of = ["x", "x", "y"]
    case.refuses(lambda **given: _D.decode_scores(
        [3.0, 2.0, 1.0], rules=_D.Rules(quotas=[_D.Quota(of, **given)])
    ), **quota)  # fmt: skip
