"""Judgements: every format gives the comparisons that it contains, and bad input is refused."""

from collections import Counter
from datetime import datetime

import numpy as np
import pytest

from sklearn_rankcal import Judgements
from sklearn_rankcal.labels import preference_labels, ranking_labels

RNG = np.random.RandomState(0)
QUERY_IDS = np.array(["b", "a", "c"], dtype=object)


def totals(judgements):
    """{(query, preferred item, other item): weight}, without weights of 0."""
    preferences = judgements.preferences()
    query = judgements.queries.ids[judgements.queries.codes[preferences.winner]]
    keys = zip(
        query.tolist(),
        judgements.items[preferences.winner].tolist(),
        judgements.items[preferences.loser].tolist(),
        strict=True,
    )
    weights = dict(zip(keys, preferences.weight.tolist(), strict=True))
    return {key: weight for key, weight in weights.items() if weight}


def literal_order(tiers, count, query, half=False):
    """The comparisons of one order, tier by tier."""
    found = Counter()
    for t, tier in enumerate(tiers):
        for one in tier:
            for lower in tiers[t + 1 :]:
                for other in lower:
                    found[query, one, other] += count
            if half:
                for other in tier:
                    if other != one:
                        found[query, one, other] += count / 2
    return found


def random_tiers(random, names):
    """A random partial order with ties of some of the names, as a list of tiers."""
    listed = random.permutation(names)[: random.randint(1, len(names) + 1)].tolist()
    tiers = []
    while listed:
        size = random.randint(1, min(3, len(listed)) + 1)
        tiers.append(listed[:size])
        listed = listed[size:]
    return tiers


def random_pairs(random, n=200):
    pairs = [tuple(random.permutation(5)[:2].tolist()) for _ in range(n)]
    groups = QUERY_IDS[random.randint(3, size=n)]
    return pairs, groups


@pytest.mark.parametrize("kind", ["integers", "text", "mixed", "floats", "frame", "objects"])
def test_pairs_with_weights_and_ties(kind):
    random = np.random.RandomState(1)
    pairs, groups = random_pairs(random)
    names = {
        "integers": [10, 20, 30, 40, 50],
        "text": ["v", "w", "x", "y", "z"],
        "mixed": [1, "one", 2.5, ("t", 1), None.__class__],
        "floats": [0.5, 1.5, 2.0, 3.0, 4.0],
        "frame": ["v", "w", "x", "y", "z"],
        "objects": [frozenset({1}), 2**70, "x", b"y", 0],
    }[kind]
    weight = random.randint(0, 4, size=len(pairs)).astype(float)
    tied = random.uniform(size=len(pairs)) < 0.3
    named = [(names[i], names[j]) for i, j in pairs]
    expected = Counter()
    for (i, j), query, w, tie in zip(named, groups, weight, tied, strict=True):
        expected[query, i, j] += w / 2 if tie else w
        if tie:
            expected[query, j, i] += w / 2
    given = named
    if kind == "frame":
        given = pytest.importorskip("pandas").DataFrame(named)
    elif kind in ("integers", "floats"):
        given = np.array(named)
    judgements = Judgements.from_pairs(given, groups=groups, weight=weight, tied=tied)
    assert totals(judgements) == {k: v for k, v in expected.items() if v}
    assert judgements.n_judgements == len(pairs)
    # the items of a query are next to each other
    assert (np.diff(judgements.queries.codes) >= 0).all()
    numbers = dict(zip(judgements.queries.ids, judgements.per_query, strict=True))
    assert numbers == Counter(groups)


def test_pairs_of_one_judgement_and_their_judges():
    random = np.random.RandomState(2)
    pairs, groups = random_pairs(random, 60)
    session = random.randint(12, size=60)
    judgements = Judgements.from_pairs(
        pairs, groups=groups, judgement=session, judge=session % 5, weight=np.arange(60.0)
    )
    assert judgements.n_judgements == len(set(zip(groups, session, strict=True)))
    comparisons = judgements.comparisons
    for m in range(judgements.n_judgements):
        mine = slice(comparisons.offsets[m], comparisons.offsets[m + 1])
        weights = comparisons.weight[mine].astype(int)  # the weight is the number of the pair
        query = judgements.queries.ids[judgements.query[m]]
        assert {(groups[k], session[k]) for k in weights} == {(query, session[weights[0]])}
        assert judgements.judges[judgements.judge[m]] == session[weights[0]] % 5
        assert judgements.items[comparisons.winner[mine]].tolist() == [pairs[k][0] for k in weights]
        assert judgements.items[comparisons.loser[mine]].tolist() == [pairs[k][1] for k in weights]


@pytest.mark.parametrize("ties", ["ignore", "half"])
@pytest.mark.parametrize("unlisted", ["ignore", "last"])
def test_orders_with_ties(ties, unlisted):
    random = np.random.RandomState(3)
    names = ["v", "w", "x", "y", "z"]
    orders = [random_tiers(random, names) for _ in range(40)]
    groups = QUERY_IDS[random.randint(3, size=40)]
    count = random.randint(0, 4, size=40)
    known = {q: set() for q in QUERY_IDS}
    for tiers, query in zip(orders, groups, strict=True):
        known[query].update(*tiers)
    expected = Counter()
    for tiers, query, n in zip(orders, groups, count, strict=True):
        rest = sorted(known[query].difference(*tiers))
        full = [*tiers, rest] if unlisted == "last" and rest else tiers
        expected += literal_order(full, n, query, ties == "half")
    written = [[t[0] if len(t) == 1 else tuple(t) for t in tiers] for tiers in orders]
    found = Judgements.from_orders(
        written, groups=groups, count=count, unlisted=unlisted, ties=ties
    )
    assert totals(found) == {k: v for k, v in expected.items() if v}
    tiers = found.orders.tier
    same = np.repeat(np.arange(40), np.diff(found.orders.offsets))
    assert ((np.diff(tiers) >= 0) | (np.diff(same) > 0)).all()


def test_ranks_are_orders():
    table = np.array([[2, 1, np.nan, 2], [1, np.nan, np.nan, np.nan], [4, 3, 2, 1]])
    orders = [["b", ["a", "d"]], ["a"], ["d", "c", "b", "a"]]
    expected = totals(Judgements.from_orders(orders, ties="half", unlisted="last"))
    names = ["a", "b", "c", "d"]
    options = {"ties": "half", "unlisted": "last"}
    assert totals(Judgements.from_ranks(table, items=names, **options)) == expected
    frame = pytest.importorskip("pandas").DataFrame(table, columns=names)
    assert totals(Judgements.from_ranks(frame, **options)) == expected
    numbers = Judgements.from_ranks(table)
    assert numbers.items.tolist() == [0, 1, 2, 3]


def test_selections():
    shown = [["a", "b", "c"], ["b", "c"], ["a", "c"]]
    judgements = Judgements.from_selections(
        shown, ["b", ["c"], []], groups=[1, 1, 2], count=[2, 1, 5]
    )
    assert totals(judgements) == {(1, "b", "a"): 2, (1, "b", "c"): 2, (1, "c", "b"): 1}
    assert judgements.per_query.tolist() == [3, 5]  # a selection of nothing counts
    assert totals(Judgements.from_selections([[5, 6]], [(5, 6)])) == {}


@pytest.mark.parametrize("container", ["lists", "pandas", "polars"])
def test_best_worst_choices_wide_and_long(container):
    random, m = np.random.RandomState(3), 24
    sets = [random.permutation(list("vwxyz"))[: 3 + k % 2].tolist() for k in range(m)]
    best, worst = [s[0] for s in sets], [s[-1] for s in sets]
    worst[3] = best[5] = worst[5] = None  # half an answer, and none
    shown = [random.permutation(s).tolist() for s in sets]
    who, number = np.arange(m) // 4, np.arange(m) % 4
    given = zip(sets, best, worst, strict=True)
    expected = [[[b], [i for i in s if i not in (b, w)], [w]] for s, b, w in given]
    expected[3].pop()
    del expected[5]
    known = Judgements.from_orders(expected, judge=np.delete(who, 5))
    rows = [(k, item) for k in random.permutation(m) for item in shown[k]]
    of, item = np.array([k for k, _ in rows]), [item for _, item in rows]
    marks = [[item == end[k] for k, item in rows] for end in (best, worst)]
    if container != "lists":
        library = pytest.importorskip(container)
        options = {"orient": "row"} if container == "polars" else {}
        shown = library.DataFrame([s + [None] * (4 - len(s)) for s in shown], **options)
        best, worst = library.Series(best), library.Series(worst)
        item, marks = library.Series(item), list(map(library.Series, marks))
    half = pytest.warns(UserWarning, match="1 of 24 entries of sets have only a best or a worst")
    with half, pytest.warns(UserWarning, match="1 of 24 entries of sets are blank"):
        wide = Judgements.from_best_worst(shown, best, worst, respondent=who)
        long = Judgements.from_best_worst(item, *marks, set_id=number[of], respondent=who[of])
    for found in (wide, long):
        assert totals(found) == totals(known) and found.n_judgements == 23
        assert len(found.judges) == 6
        by = [[found.judges[found.judge[k]] for k in range(23)] for found in (found, known)]
        assert sorted(by[0]) == sorted(by[1])


def test_blank_orders_are_counted_and_left_out():
    orders = [["a", "b", 0], [0, 0, "0"], ["b", 0, "0"], ["c", "a", "b"]]  # text in a CSV file
    groups, count = ["x", "y", "x", "z"], [3, 5, 1, 2]
    with pytest.warns(UserWarning, match="1 of 4 entries of orders are blank and left out"):
        found = Judgements.from_orders(orders, groups=groups, count=count, unranked=0)
    kept = [["a", "b"], ["b"], ["c", "a", "b"]]
    known = Judgements.from_orders(kept, groups=["x", "x", "z"], count=[3, 1, 2])
    assert totals(found) == totals(known) and found.queries.ids.tolist() == ["x", "z"]
    with pytest.warns(UserWarning, match="1 of 3 entries"):
        ranks = Judgements.from_ranks([[1, 2], [99, 0], [2, 1]], unranked=[0, 99], judge=[7, 8, 9])
    assert ranks.judges.tolist() == [7, 9] and totals(ranks) == {(0, 0, 1): 1, (0, 1, 0): 1}
    with pytest.warns(UserWarning, match="2 of 4 entries of orders"):
        lists = Judgements.from_orders([["a", None, "b"], None, [np.nan], ["b"]])
    assert totals(lists) == {(0, "a", "b"): 1} and lists.n_judgements == 2
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="Entry 1 of orders has item"):
        Judgements.from_orders([[None], ["a", "a"]])
    with pytest.warns(UserWarning, match="'Ada' and 'Ada ' differ only by blanks"):
        Judgements.from_orders([["Ada", "Ben"], ["Ben", "Ada "]])
    shown = [["a", "b", None], ["a", "c"], ["c", "b"]]
    with pytest.warns(UserWarning, match="1 of 3 entries of shown"):
        chosen = Judgements.from_selections(shown, ["b", None, []])  # [] is an answer
    assert totals(chosen) == {(0, "b", "a"): 1} and chosen.n_judgements == 2
    ties = frame(first=[["a", "b"], "c"], second=["c", "a"])  # cells with tied items
    assert totals(Judgements.from_orders(ties))[0, "b", "c"] == 1


@pytest.mark.parametrize("unlisted", ["ignore", "last"])
def test_preflib_files_and_instances(tmp_path, unlisted):
    text = "# NUMBER ALTERNATIVES: 4\n# ALTERNATIVE NAME 1: tea\n# ALTERNATIVE NAME 2: tea\n"
    text += "# ALTERNATIVE NAME 3: milk\n# ALTERNATIVE NAME 4: ale\n"
    path = tmp_path / "drinks.toi"
    path.write_text(text + "3: 1,{2,3}\n2: 3\n")
    judgements = Judgements.from_preflib(path, unlisted=unlisted)
    assert judgements.items.tolist() == ["tea", "tea", "milk", "ale"]
    assert judgements.per_query.tolist() == [5]
    preferences = judgements.preferences()
    matrix = np.zeros((4, 4))
    matrix[preferences.winner, preferences.loser] = preferences.weight
    wanted = [[0, 3, 3, 0], [0] * 4] if unlisted == "ignore" else [[0, 3, 3, 3], [2, 2, 0, 5]]
    assert matrix[[0, 2]].tolist() == wanted and not matrix[[1, 3], :3].any()

    class Instance:  # the attributes of preflibtools.instances.OrdinalInstance
        orders = [((1,), (2, 3)), ((3,),), ((1,), (2, 3))]
        multiplicity = {((1,), (2, 3)): 3, ((3,),): 2}
        alternatives_name = {1: "tea", 2: "tea", 3: "milk", 4: "ale"}

    same = Judgements.from_preflib(Instance(), unlisted=unlisted).preferences()
    assert (same.winner == preferences.winner).all() and (same.weight == preferences.weight).all()
    with pytest.raises(TypeError, match="OrdinalInstance of preflibtools; got list"):
        Judgements.from_preflib([[0, 1]])


def test_labels_of_rows():
    random = np.random.RandomState(4)
    groups = random.permutation(np.repeat([3, 1, 2], [4, 5, 3]))
    by_query = {q: np.flatnonzero(groups == q) for q in (1, 2, 3)}
    pairs = [random.permutation(by_query[q])[:2] for q in random.randint(1, 4, size=50)]
    weight = random.uniform(size=50)
    session = random.randint(8, size=50)
    for judgement in (None, session):
        labels = preference_labels(pairs, groups, weight, judgement)
        found = Judgements.from_labels(labels)
        query = groups[np.array(pairs)[:, 0]]
        expected = Judgements.from_pairs(pairs, groups=query, weight=weight, judgement=judgement)
        assert found.n_judgements == expected.n_judgements
        names = found.queries.ids  # labels number the queries in order of first appearance
        original = groups[[np.flatnonzero(labels["query"] == q)[0] for q in names]]
        renamed = {
            (original[names.tolist().index(q)], i, j): w for (q, i, j), w in totals(found).items()
        }
        assert renamed == pytest.approx(totals(expected))
        kept = labels[groups != 1]
        part = Judgements.from_labels(kept)
        assert len(part.items) == 7
        assert part.n_judgements == (expected.query != list(expected.queries.ids).index(1)).sum()
    ranks = ranking_labels([[1, 2], [2, np.nan], [3, 1]], [0, 0, 0])
    assert Judgements.from_labels(ranks).per_query.tolist() == [2]


def some_judgements(kind, random):
    if kind == "pairs":
        pairs, groups = random_pairs(random, 80)
        tied = random.uniform(size=80) < 0.2
        return Judgements.from_pairs(
            pairs, groups=groups, tied=tied, weight=random.uniform(size=80)
        )
    if kind == "plain pairs":
        pairs, groups = random_pairs(random, 80)
        return Judgements.from_pairs(pairs, groups=groups)
    orders = [random_tiers(random, list("vwxyz")) for _ in range(30)]
    groups = QUERY_IDS[random.randint(3, size=30)]
    count = random.randint(1, 4, size=30)
    return Judgements.from_orders(orders, groups=groups, count=count, ties="half")


@pytest.mark.parametrize("kind", ["pairs", "plain pairs", "orders"])
def test_resampling_copies_queries(kind):
    random = np.random.RandomState(5)
    judgements = some_judgements(kind, random)
    parent = random.randint(3, size=7)
    copy = np.sort(random.randint(7, size=100))
    taken = np.array(
        [random.choice(np.flatnonzero(judgements.query == parent[c])) for c in copy.tolist()]
    )
    found = judgements.resample(taken, copy, parent)
    assert found.queries.sizes.tolist() == judgements.queries.sizes[parent].tolist()
    for c in range(7):
        inside = slice(found.queries.offsets[c], found.queries.offsets[c + 1])
        rows = judgements.queries.offsets[parent[c]] + np.arange(
            judgements.queries.sizes[parent[c]]
        )
        assert found.items[inside].tolist() == judgements.items[rows].tolist()
        mine = taken[copy == c]
        expected = Counter()
        for m in mine:  # one judgement at a time
            alone = judgements.resample(np.array([m]), np.array([0]), parent[[c]])
            for (_, i, j), w in totals(alone).items():
                expected[i, j] += w
        one = {(i, j): w for (q, i, j), w in totals(found).items() if q == c}
        assert one == pytest.approx(expected)
        count = np.ones(judgements.n_judgements) if judgements.count is None else judgements.count
        assert found.per_query[c] == count[mine].sum()
    everything = judgements.resample(
        np.arange(judgements.n_judgements), judgements.query, np.arange(3)
    )
    assert np.allclose(everything.preferences().weight, judgements.preferences().weight)


@pytest.mark.parametrize("kind", ["pairs", "plain pairs", "orders"])
def test_taking_rows(kind):
    from sklearn_rankcal.queries import Queries

    random = np.random.RandomState(6)
    judgements = some_judgements(kind, random)
    codes = judgements.queries.codes
    rows = np.flatnonzero((codes != 1) & (random.uniform(size=len(codes)) < 0.8))
    part = judgements.take_rows(rows, Queries.from_groups(codes[rows]))
    place = {row: k for k, row in enumerate(rows.tolist())}
    before = judgements.preferences()
    expected = {
        (place[i], place[j]): w
        for i, j, w in zip(
            before.winner.tolist(), before.loser.tolist(), before.weight.tolist(), strict=True
        )
        if i in place and j in place
    }
    after = part.preferences()
    pairs = zip(after.winner.tolist(), after.loser.tolist(), strict=True)
    assert dict(zip(pairs, after.weight.tolist(), strict=True)) == pytest.approx(expected)
    if part.orders is not None:
        assert part.items[part.orders.item].size == part.orders.offsets[-1]


PAIRS = [(0, 1), (1, 2)]


def frame(**columns):
    return pytest.importorskip("pandas").DataFrame(columns)


day = datetime(2026, 1, 1)
BAD = [
    (lambda: Judgements.from_pairs([]), "pairs is empty"),
    (lambda: Judgements.from_pairs("ab"), "sequence of \\(preferred, other\\); got 'ab'"),
    (lambda: Judgements.from_pairs([(1, 2, 3)]), "Entry 0 of pairs is \\(1, 2, 3\\)"),
    (lambda: Judgements.from_pairs([(1, 2), 5]), "Entry 1 of pairs is 5"),
    (lambda: Judgements.from_pairs(np.zeros((2, 3))), "shape \\(2, 3\\)"),
    (lambda: Judgements.from_pairs([(1, 2), (3, 3)]), "Pair 1 compares item 3 with itself"),
    (lambda: Judgements.from_pairs([(1, None)]), "missing or infinite id \\(None, pair 0, counted"),
    (lambda: Judgements.from_pairs([([], 1)]), "hashable"),
    (lambda: Judgements.from_pairs(PAIRS, groups=[1]), "groups has 1 entry, but pairs has 2"),
    (
        lambda: Judgements.from_pairs(PAIRS, weight=[1]),
        "weight has 1 entry, but pairs has 2",
    ),
    (lambda: Judgements.from_pairs(PAIRS, weight=[1, -1]), "entry 1 is -1"),
    (lambda: Judgements.from_pairs(PAIRS, weight=[1e308, 1e308]), "must be between 1e-50"),
    (lambda: Judgements.from_pairs(PAIRS, tied=[0, 2]), "True or False"),
    (lambda: Judgements.from_pairs(PAIRS, tied=[True]), "tied has 1 entry"),
    (lambda: Judgements.from_pairs(PAIRS, count=[1, 0.5]), "count must be whole numbers"),
    (lambda: Judgements.from_pairs(PAIRS, count=[1, -1]), "count must be finite and >= 0; entry 1"),
    (lambda: Judgements.from_pairs(PAIRS, count=[2**53, 2**53]), "beyond 2\\^53"),
    (lambda: Judgements.from_pairs(PAIRS, count=[1, 1], judge=[1, 1]), "cannot be combined"),
    (lambda: Judgements.from_pairs(PAIRS, judgement=[0]), "judgement has 1 entry"),
    (lambda: Judgements.from_pairs(PAIRS, judge=[0]), "judge has 1 entry"),
    (
        lambda: Judgements.from_pairs(PAIRS, judgement=[0, 0], judge=["x", "y"]),
        "A judgement has the judges 'x' and 'y'",
    ),
    (lambda: Judgements.from_orders([]), "orders is empty"),
    (lambda: Judgements.from_orders([[], []]), "No entry of orders lists an item"),
    (
        lambda: Judgements.from_orders(frame(id=range(101, 107), a=[*"abcabc"], b=[*"bcabca"])),
        "'id'",
    ),
    (lambda: Judgements.from_orders(frame(when=[day, day], a=["a", "b"], b=["b", "a"])), "'when'"),
    (lambda: Judgements.from_ranks(frame(id=range(1, 9), a=[1, 2] * 4, b=[2, 1] * 4)), "'id'"),
    (lambda: Judgements.from_ranks(frame(name=["x", "y"], a=[1, 2], b=[2, 1])), "'name'"),
    (lambda: Judgements.from_best_worst([[1, 2, 3]], [4], [1]), "Entry 0 of best has 4, which"),
    (
        lambda: Judgements.from_best_worst([[1, 2, 3]], [1], [1]),
        "and worst has an item twice",
    ),
    (lambda: Judgements.from_best_worst([[1, 2, 3]], [1, 2], [3]), "best must have one entry"),
    (
        lambda: Judgements.from_best_worst([1, 2], [1, 0], [0, 1], set_id=[1]),
        "set_id has 1 entry, but sets has 2",
    ),
    (lambda: Judgements.from_orders(["ab"]), "Entry 0 of orders is 'ab'"),
    (lambda: Judgements.from_orders([{1, 2}]), "which is not a list of items"),
    (lambda: Judgements.from_orders([[1, []]]), "Entry 0 of orders has an empty tier"),
    (lambda: Judgements.from_orders([[1, np.inf]]), "missing or infinite id"),
    (lambda: Judgements.from_orders([[1], [1, 2, 1]]), "Entry 1 of orders has item 1 twice"),
    (
        lambda: Judgements.from_orders([[1, 2]], items=[1]),
        "the item 2 .entry 0, counted from 0., which is not",
    ),
    (lambda: Judgements.from_orders([[1]], items=[1, 1]), "items contains an id twice"),
    (lambda: Judgements.from_orders([[1]], groups=[0], items=[1]), "without groups"),
    (lambda: Judgements.from_orders([[1]], unlisted="top"), "Unknown unlisted 'top'"),
    (lambda: Judgements.from_orders([[1]], ties="keep"), "Unknown ties 'keep'"),
    (lambda: Judgements.from_orders([[1]], count=[1], judge=[0]), "cannot be combined"),
    (lambda: Judgements.from_ranks([[0, 1]]), "ranks start at 1"),
    (lambda: Judgements.from_ranks([1, 2]), "ranks must have shape"),
    (lambda: Judgements.from_ranks([[1, 2]], items=["a"]), "items has 1 ids, but ranks has 2"),
    (lambda: Judgements.from_selections([[1, 2]], [3]), "3, which was not shown"),
    (lambda: Judgements.from_selections([[1, 2]], [[1, 1]]), "has an item twice"),
    (lambda: Judgements.from_selections([[]], [[]]), "Entry 0 of shown is empty"),
    (lambda: Judgements.from_selections([[1, 2]], [None]), "No entry of shown lists an item"),
    (lambda: Judgements.from_selections([[1, 2]], [1, 2]), "one entry for each of the 1"),
    (lambda: Judgements.from_labels([1, 2]), "does not contain preferences"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_input(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_long_selections_take_a_linear_number_of_comparisons():
    compared = 0

    class Name:
        def __init__(self, number):
            self.number = number

        def __hash__(self):
            return hash(self.number)

        def __eq__(self, other):
            nonlocal compared
            compared += 1
            return self.number == other.number

    names = [Name(k) for k in range(300)]
    chosen = [Name(k) for k in range(0, 300, 2)]
    judgements = Judgements.from_selections([names], [chosen])
    assert judgements.preferences().total().tolist() == [150 * 150]
    assert compared < 20 * len(names)
