"""Judgements of every format say what loops read from them; leaderboards follow from the scores."""

from __future__ import annotations

from collections import defaultdict
from itertools import permutations

import numpy as np
import pandas as pd

import sklearn_rankcal as public

from .values import _IDS, GROUP_WORDS, draw_groups, spoiled_groups, spoiled_numbers

_A = public.aggregation
_METHODS = (
    "btl", "plackett_luce", "borda", "budgeted_borda", "copeland", "least_squares", "log_odds",
    "principal_eigenvector", "rank_centrality", "kemeny",
)  # fmt: skip


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


def _tiers(case):
    """A random order of some of six items, as a list of tiers."""
    listed = case.rng.permutation(6)[: case.whole(1, 6)].tolist()
    tiers = []
    while listed:
        size = case.whole(1, min(2, len(listed)))
        tiers.append(listed[:size])
        listed = listed[size:]
    return tiers


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
    """Pairs, votes, orders, tables of ranks and selections."""
    case.choose([_pairs, _votes, _orders, _ranks, _selections])(case)


def _pairs(case):
    names, n = _names(case), case.whole(1, 3 * case.size)
    codes, groups = _queries(case, n)
    rows = [case.rng.permutation(6)[:2].tolist() for _ in range(n)]
    options, factor, tied = {}, [1.0] * n, [False] * n
    if case.chance(0.4):
        factor = case.rng.choice([0, 0.5, 1, 3], n).tolist()
        options["weight"] = case.choose([list, np.array, pd.Series])(factor)
    if case.chance(0.4):
        tied = (case.rng.random(n) < 0.3).tolist()
        options["tied"] = case.choose([list, np.array, pd.Series])(tied)
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


def _order_totals(orders, codes, counts, options, known):
    """The sums of the comparisons of orders, which are lists of tiers."""
    wanted = defaultdict(float)
    for tiers, q, count in zip(orders, codes, counts, strict=True):
        rest = sorted(known[q] - {item for tier in tiers for item in tier})
        full = [*tiers, rest] if options["unlisted"] == "last" and rest else tiers
        for t, tier in enumerate(full):
            for i in tier:
                for j in (item for lower in full[t + 1 :] for item in lower):
                    wanted[q, i, j] += count
                for j in tier:
                    wanted[q, i, j] += count / 2 * (i != j and options["ties"] == "half")
    return wanted


def _draw_orders(case):
    orders = [_tiers(case) for _ in range(case.whole(1, case.size))]
    codes, groups = _queries(case, len(orders))
    options = {"unlisted": case.choose(["ignore", "last"]), "ties": case.choose(["ignore", "half"])}
    counts = [1] * len(orders)
    if case.chance(0.5):
        counts = case.rng.integers(0, 4, len(orders)).tolist()
        options["count"] = counts
    elif case.chance(0.3):
        options["judge"] = [f"judge {k}" for k in case.rng.integers(0, 2, len(orders))]
    known = defaultdict(set)
    for tiers, q in zip(orders, codes, strict=True):
        known[q].update(item for tier in tiers for item in tier)
    return orders, codes, groups, counts, options, known


def _orders(case):
    names = _names(case)
    orders, codes, groups, counts, options, known = _draw_orders(case)
    # Ids that are containers themselves would be read as tiers.
    plain = not any(isinstance(name, (tuple, frozenset)) for name in names)
    made = [
        [names[tier[0]] if plain and len(tier) == 1 else [names[i] for i in tier] for tier in tiers]
        for tiers in orders
    ]
    read = case.call(_A.Judgements.from_orders, made, groups=groups, **options)
    _expect_totals(case, read, names, _order_totals(orders, codes, counts, options, known))


def _ranks(case):
    orders, codes, groups, counts, options, known = _draw_orders(case)
    table = np.full((len(orders), 6), np.nan)
    for row, tiers in zip(table, orders, strict=True):
        for t, tier in enumerate(tiers):
            row[tier] = 1.5 * t + 1
    names = list(range(6))
    if case.chance(0.5):
        names = _names(case)
        options["items"] = names
    if groups is None:  # every column is an item, also those that no order lists
        known[0] = set(range(6))
    read = case.call(_A.Judgements.from_ranks, table, groups=groups, **options)
    _expect_totals(case, read, names, _order_totals(orders, codes, counts, options, known))


def _selections(case):
    names, n = _names(case), case.whole(1, case.size)
    codes, groups = _queries(case, n)
    shown = [case.rng.permutation(6)[: case.whole(1, 6)].tolist() for _ in range(n)]
    chosen = [[item for item in items if case.chance(0.4)] for items in shown]
    wanted = defaultdict(float)
    for items, winners, q in zip(shown, chosen, codes, strict=True):
        for i in winners:
            for j in set(items) - set(winners):
                wanted[q, i, j] += 1
    read = case.call(
        _A.Judgements.from_selections,
        [[names[i] for i in items] for items in shown],
        [[names[i] for i in winners] for winners in chosen],
        groups=groups,
    )
    _expect_totals(case, read, names, wanted)


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


def leaderboard(case):
    """Ranks follow from scores, intervals are in order, and Borda and Kemeny agree with loops."""
    names, n = _names(case), case.whole(1, 4 * case.size)
    codes, groups = _queries(case, n)
    rows = [case.rng.permutation(6)[:2].tolist() for _ in range(n)]
    pairs = [(names[i], names[j]) for i, j in rows]
    method = case.choose(_METHODS)
    n_resamples = case.choose([0, 1, 3, 70])
    result = case.call(_A.aggregate, pairs, method, groups, n_resamples=n_resamples)
    number = {name: k for k, name in enumerate(names)}
    items = [number[item] for item in result.items.tolist()]
    query = result.judgements.queries.codes.tolist()
    scores, ranks = result.scores.tolist(), result.ranks.tolist()
    case.expect(np.isfinite(result.scores).all(), "no score for an item that is compared")
    parts = result.parts.tolist()
    for k, q in enumerate(query):
        mine = [j for j, other in enumerate(query) if other == q]
        main = 2 * sum(parts[j] == 1 for j in mine) > len(mine)
        # the items of a part with more than half of them are above all others
        key = {j: (main and parts[j] == 1, scores[j]) for j in mine}
        above = sum(key[j] > key[k] for j in mine)
        case.expect(ranks[k] == 1 + above, "ranks that do not follow from scores")
    lines = str(result).splitlines()
    titles = [line.split() for line in lines]
    found = any("rank" in cells[:2] and "item" in cells[:6] for cells in titles)
    case.expect(found, "a text without a leaderboard")
    if method == "borda":
        for k, q in enumerate(query):
            mine = [pair for pair, code in zip(rows, codes, strict=True) if code == q]
            net = sum((i == items[k]) - (j == items[k]) for i, j in mine)
            case.equal(scores[k], net / len(mine), "another Borda count")
    if method == "kemeny":
        for q in range(max(codes) + 1):
            mine = [pair for pair, c in zip(rows, codes, strict=True) if c == q]
            orders = permutations({item for pair in mine for item in pair})
            lost = min(sum(o.index(i) > o.index(j) for i, j in mine) for o in orders)
            case.equal(result.objective[q], lost, "another weight of contradicted comparisons")
            case.expect(result.optimal[q], "no proof for six items")
            place = {items[k]: (ranks[k], result.best_low[k], result.best_high[k])
                     for k, code in enumerate(query) if code == q}  # fmt: skip
            own = sum(place[i][0] > place[j][0] for i, j in mine)
            case.equal(own, lost, "ranks that are no best ranking")
            ends = all(low <= rank <= high for rank, low, high in place.values())
            case.expect(ends, "a position that no best ranking has")
    if n_resamples:
        # NaN where no resample compares the item
        gap = (result.score_high - result.score_low)[~np.isnan(result.score_low)]
        case.expect((gap >= 0).all(), "intervals that end before they begin")
        inside = (result.rank_low <= result.ranks) & (result.ranks <= result.rank_high)
        case.expect(inside.all(), "intervals of ranks without the rank")
        matrix = result.probability_matrix(result.judgements.queries.ids[0])
        parts = result.parts[result.rows_of(result.judgements.queries.ids[0])]
        same = parts[:, None] == parts
        total = np.where(same, 1.0, np.nan)
        case.equal(matrix + matrix.T, total, "probabilities that do not add up")


def symmetry(case):
    """Items that a symmetry exchanges share a rank, in whatever order the judgements come.

    Those of Kemeny share the positions that they have in all best rankings.
    """
    n, method = case.whole(2, 7), case.choose(_METHODS)
    votes = []  # (judgement, weight), closed under the symmetry
    twins = case.chance(0.5)
    for _ in range(case.whole(1, 2 * case.size)):
        order = case.rng.permutation(n)[: case.whole(2, n)].tolist()
        weight = float(case.choose([1.0, 0.1, 0.3, 1 / 3]))
        if twins:  # of the items 0 and 1
            swap = {0: 1, 1: 0}
            images = [order, [swap.get(i, i) for i in order]]
        else:  # a rotation of all items
            images = [[(i + k) % n for i in order] for k in range(n)]
        votes += [(image, weight) for image in images]
    as_orders = method == "plackett_luce" and case.chance(0.5)
    equal = [0, 1] if twins else list(range(n))
    boards, n_resamples = [], case.choose([0, 0, 40])
    for _ in range(2):
        if as_orders:
            made = _A.Judgements.from_orders([order for order, _ in votes])
        else:
            made = _A.Judgements.from_pairs(
                [order[:2] for order, _ in votes], weight=[weight for _, weight in votes]
            )
        result = case.call(_A.aggregate, made, method, n_resamples=n_resamples)
        ranks = dict(zip(result.items.tolist(), result.ranks.tolist(), strict=True))
        shared = ranks
        if method == "kemeny":
            ends = zip(result.best_low.tolist(), result.best_high.tolist(), strict=True)
            shared = dict(zip(result.items.tolist(), ends, strict=True))
        found = {shared[item] for item in equal if item in shared}
        case.expect(len(found) <= 1, "items that are equal by symmetry have different ranks")
        boards.append(ranks)
        votes = [votes[k] for k in case.rng.permutation(len(votes))]
    case.expect(boards[0] == boards[1], "ranks that depend on the order of the votes")


def _symmetric_pairs(case, names, least):
    """Votes, as often as a symmetry of the items wants: of two twins, or a rotation of all."""
    n = len(names)
    counts = np.zeros((n, n), dtype=int)
    for _ in range(case.whole(1, 5)):
        i, j = case.rng.permutation(n)[:2].tolist()
        counts[i, j] += case.whole(1, 6)
    counts += least * (1 - np.eye(n, dtype=int))
    if case.chance(0.5):  # the items 0 and 1 have the same record
        swap = [1, 0, *range(2, n)]
        counts = counts + counts[np.ix_(swap, swap)]
    else:
        turns = [[(k + turn) % n for k in range(n)] for turn in range(n)]
        counts = sum(counts[np.ix_(turn, turn)] for turn in turns)
    return [(names[i], names[j]) for i, j in np.argwhere(counts) for _ in range(counts[i, j])]


def reordered(case):
    """Audits and plans of a board do not depend on the order of votes and items."""
    names = [f"m{k}" for k in range(case.whole(3, 5))]
    pairs = _symmetric_pairs(case, names, case.whole(0, 2))
    target = case.choose(["first", "all", names[0]])
    influence = len(names) == 3 and len(pairs) < 60
    found = []
    for _ in range(2):
        made = _A.Judgements.from_pairs(
            [pairs[k] for k in case.rng.permutation(len(pairs))],
            items=[names[k] for k in case.rng.permutation(len(names))],
        )
        board = case.call(_A.aggregate, made)
        said = [case.call(board.next_comparisons, 4, target=target)]
        if influence:
            audit = case.call(board.audit)
            said.append([(probe.name, probe.fires, probe.finding) for probe in audit.probes])
        found.append(said)
    case.expect(found[0] == found[1], "an audit or a plan that depends on the order of the votes",
                f"{found[0]} and {found[1]}")  # fmt: skip


def many_boards(case):
    """What is said of all queries together depends on no order, and is what each query says."""
    names = [f"m{k}" for k in range(case.whole(3, 5))]
    queries = {f"q{k}": _symmetric_pairs(case, names, case.whole(0, 2)) for k in range(3)}
    rows = [(query, *pair) for query, pairs in queries.items() for pair in pairs]
    shown = [case.chance(0.5) for _ in rows]  # whether the winner is shown second
    target, found = case.choose(["first", "all"]), []
    for _ in range(2):
        order = case.rng.permutation(len(rows)).tolist()
        first, second = ([rows[k][2 - i if shown[k] else 1 + i] for k in order] for i in (0, 1))
        winner, groups = ([rows[k][i] for k in order] for i in (1, 0))
        made = _A.Judgements.from_votes(first, second, winner, groups=groups)
        board = case.call(_A.aggregate, made)
        plan = case.call(board.next_comparisons, 3, target=target)
        alone = [
            (query, *pair)
            for query in made.queries.ids.tolist()
            for pair in case.call(board.next_comparisons, 3, target=target, group=query)
        ]
        case.expect(plan == alone, "a plan of all queries that is not that of each")
        audit = case.call(board.audit)
        found.append([sorted(plan), [(one.name, one.fires, one.finding) for one in audit.probes]])
    case.expect(found[0] == found[1], "an audit or a plan that depends on the order of the votes",
                f"{found[0]} and {found[1]}")  # fmt: skip


def unanimous(case):
    """Up to five judgements that all agree decide nothing; two hundred decide everything."""
    n, method, names = case.choose([1, 2, 3, 4, 5, 200]), case.choose(_METHODS), _names(case)
    pairs = [(names[0], other) for other in names[1 : 3 if n < 3 else 2]]
    options = {"n_resamples": case.choose([64, 100, 200])}
    if case.chance(0.3) and n > 1:
        judge = np.repeat(np.arange(n), len(pairs)).tolist()
        made = _A.Judgements.from_pairs(pairs * n, judge=judge)
        result = case.call(_A.aggregate, made, method, resample="judges", **options)
    else:
        result = case.call(_A.aggregate, pairs * n, method, **options)
    clear = case.call(result.is_first_clear)
    case.expect(clear == (n == 200), "a few unanimous judgements that decide, or many that do not")
    case.expect("certain" not in str(result), "a text that says certain")
    best = result.rows_of()[0]
    case.expect(result.score_low[best] < result.scores[best] or method in ("copeland", "kemeny"),
                "unanimous judgements without an interval")  # fmt: skip


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
