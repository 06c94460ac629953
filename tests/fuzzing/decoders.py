"""Decoders: every order is tried, in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import sklearn_rankcal as public
from tests import matrices, oracles

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


def _matrix(case, r, symmetric):
    families = dict(matrices.SYMMETRIC_FAMILIES if symmetric else matrices.FAMILIES)
    own = ["votes", "near", "beyond_2_53", "tiny", "scaled", "huge_negative"]
    kind = case.choose([*families, *own])
    rng = case.rng
    if kind in families:
        u = families[kind](r, rng)
    elif kind == "votes":
        u = rng.choice([0.0, 0.1, 0.2, 0.3, 0.7], (r, r))
    elif kind == "near":
        u = 1 + rng.integers(0, 3, (r, r)) * 2.0**-52
    elif kind == "beyond_2_53":
        u = np.array([[2**53 + int(v) for v in row] for row in rng.integers(0, 9, (r, r))])
    elif kind == "tiny":
        u = rng.integers(0, 9, (r, r)) * 1e-49
    elif kind == "scaled":
        u = rng.integers(0, 4, (r, r)) * 10.0 ** case.whole(-49, 49)
    else:
        u = rng.integers(-4, 1, (r, r)) * 1e49
    if symmetric and kind not in families:
        u = np.triu(u) + np.triu(u, 1).T
    return u


def _losses(u, symmetric):
    """Exact loss of every order, as `matrices.all_ranks` lists them."""
    r = len(u)
    exact = [[Fraction(v) for v in row] for row in np.asarray(u).tolist()]
    found = []
    for ranks in matrices.all_ranks(r).tolist():
        if symmetric:
            gained = sum((exact[i][j] / max(ranks[i], ranks[j])
                          for i in range(r) for j in range(i + 1)), Fraction(0))  # fmt: skip
            found.append(1 - gained)
        else:
            found.append(sum((exact[i][j] for i in range(r) for j in range(r)
                              if i != j and ranks[i] > ranks[j]), Fraction(0)))  # fmt: skip
    return found


def _judge(case, u, result, symmetric, method):
    r = len(u)
    ranks = np.asarray(result.ranks).tolist()
    case.expect(sorted(ranks) == list(range(1, r + 1)), "no permutation", str(ranks))
    losses = _losses(u, symmetric)
    known = dict(zip(map(tuple, matrices.all_ranks(r).tolist()), losses, strict=True))
    own, best, worst = known[tuple(ranks)], min(losses), max(losses)
    size = max(abs(best), abs(worst), *(abs(Fraction(v)) for v in np.ravel(u).tolist()))
    slack = Fraction(1, 10**11) * (worst - best)
    if symmetric:  # its sums are of the entries themselves, not of differences
        slack += Fraction(1, 10**13) * max(abs(Fraction(v)) for v in np.ravel(u).tolist())
    if result.optimal:
        case.expect(own - best <= slack, f"a false proof by {method}",
                    f"loses {float(own - best):g} more than it must")  # fmt: skip
    if method == "exact" or (method == "auto" and r <= 8):
        case.expect(bool(result.optimal), f"{method} without a proof")
    rounding = Fraction(1, 10**12) * size
    case.expect(abs(Fraction(result.objective) - own) <= rounding, "another objective",
                f"{result.objective} for {float(own)}")  # fmt: skip
    case.expect(Fraction(result.lower_bound) - best <= rounding, "a bound above the best",
                f"{result.lower_bound} for {float(best)}")  # fmt: skip
    case.expect(result.gap >= 0, "a negative gap")
    edges = oracles.preference_edges([[Fraction(v) for v in row] for row in np.asarray(u).tolist()])
    if not symmetric and method == "greedy_dag" and not oracles.has_cycle(r, edges):
        case.expect(own == best, "greedy_dag loses on acyclic preferences")


def preferences(case):
    """`decode_preferences` against all orders."""
    _decode(case, _D.decode_preferences, _PREFERENCES, symmetric=False)


def average_precision(case):
    """`decode_average_precision` against all orders."""
    _decode(case, _D.decode_average_precision, _AVERAGE_PRECISION, symmetric=True)


def _decode(case, function, methods, symmetric):
    method = case.choose(methods)
    r = case.whole(1, min(6, case.size + 1))
    form = case.choose(["one", "one", "list", "stack", "padded", "layout"])
    given = {}
    if method == "greedy_dag":
        given["order"] = case.choose(["ranked_pairs", "topological"])
    if method in ("local_search", "auto", "exact") and case.chance(0.3):
        given["n_perturbations"] = 3
    if form in ("one", "layout"):
        u = _matrix(case, r, symmetric)
        shown = u
        if form == "layout":
            shown = case.choose([np.asfortranarray(u), u.tolist(), u[::-1].copy()[::-1],
                                 np.ma.array(u, mask=False), u.astype(object)])  # fmt: skip
        outcome = case.attempt(function, shown, method, **given)
        if outcome.error is not None:
            case.expect(np.abs(u).max() > 2**53 and u.dtype.kind in "iuO", "refuses good input",
                        outcome.describe())  # fmt: skip
            return
        _judge(case, u, outcome.value, symmetric, method)
        return
    sizes = [case.whole(1, r) for _ in range(case.whole(1, 4))]
    if form == "stack":
        sizes = [r] * len(sizes)
    us = [_matrix(case, own, symmetric).astype(float) for own in sizes]
    if form == "list":
        result = case.call(function, us, method, **given)
    else:
        widest = max(sizes)
        padded = np.full((len(us), widest, widest), 7.0 if form == "stack" else 1e9)
        for q, u in enumerate(us):
            padded[q, : len(u), : len(u)] = u
        result = case.call(function, padded, method, sizes=np.array(sizes), **given)
    for q, u in enumerate(us):
        one = case.call(function, u, method, **given)
        ranks = np.asarray(result.ranks[q])
        case.expect(ranks[: len(u)].tolist() == one.ranks.tolist(), "depends on the batch")
        case.expect((ranks[len(u) :] == 0).all(), "ranks in the padding")
        case.expect(result.objective[q] == one.objective, "the objective depends on the batch")
        _judge(case, u, one, symmetric, method)


def exact_votes(case):
    """Votes and averages tie orders up to rounding: the exact decoder still ends with a proof."""
    if _D.KERNELS == "numpy":
        return  # the same code in Python takes too long
    r = case.whole(17, 19)
    tenths = case.rng.choice([0, 1, 2, 3, 7], (r, r))
    exact = case.call(_D.decode_preferences, tenths.astype(float), "exact")
    shown = case.call(_D.decode_preferences, tenths / 10, "exact")
    case.expect(bool(shown.optimal) and bool(exact.optimal), "loses its proof")
    case.equal(10 * shown.objective, exact.objective, "another optimum")


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
