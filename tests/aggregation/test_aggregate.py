"""`aggregate`: scores, ranks and certificates of all formats of judgements, and bad input."""

import warnings
from itertools import permutations

import numpy as np
import pytest

from sklearn_rankcal import Judgements
from sklearn_rankcal.aggregation import STRUCTURES, Kemeny, _kemeny, aggregate  # limits
from sklearn_rankcal.aggregation._base import ComparisonStructure
from sklearn_rankcal.aggregation._graphs import number_components
from sklearn_rankcal.aggregation._kemeny import others_are_as_good
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning
from sklearn_rankcal.labels import Preferences, preference_labels
from sklearn_rankcal.queries import Queries


class NetWins(ComparisonStructure):
    """The weight won minus the weight lost."""

    def _scores(self, preferences, n_judgements):
        n = preferences.n_rows
        won = np.bincount(preferences.winner, preferences.weight, n)
        return won - np.bincount(preferences.loser, preferences.weight, n)


def random_votes(seed, n=300, n_items=6, n_queries=3):
    """Pairs of letters and their queries; every pair of items is compared in every query."""
    random = np.random.RandomState(seed)
    every = list(permutations("abcdefgh"[:n_items], 2))
    pairs = every * n_queries + [every[k] for k in random.randint(len(every), size=n)]
    groups = np.concatenate(
        [np.repeat(np.arange(n_queries), len(every)), random.randint(n_queries, size=n)]
    )
    order = random.permutation(len(pairs))
    return [pairs[k] for k in order], groups[order] * 10


def by_item(result, name):
    """{(query, item): value}."""
    keys = zip(result.groups.tolist(), result.items.tolist(), strict=True)
    return dict(zip(keys, getattr(result, name).tolist(), strict=True))


def test_scores_and_ranks_are_those_of_a_literal_count():
    pairs, groups = random_votes(0)
    result = aggregate(pairs, NetWins(), groups)
    scores = by_item(result, "scores")
    for (query, item), score in scores.items():
        won = sum(p[0] == item and g == query for p, g in zip(pairs, groups, strict=True))
        lost = sum(p[1] == item and g == query for p, g in zip(pairs, groups, strict=True))
        assert score == won - lost
    for (query, item), rank in by_item(result, "ranks").items():
        above = [s for (q, _), s in scores.items() if q == query and s > scores[query, item]]
        assert rank == 1 + len(above)
    assert result.ranks.dtype == np.int64
    assert result.objective is result.lower_bound is result.optimal is None


METHODS = [name for name, kind in STRUCTURES.items() if kind.takes != "clicks"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("steps", [(1,), (1, 2)])
def test_items_that_are_equal_by_symmetry_share_a_rank(method, steps):
    """Item i beats the next items of a circle three times, and loses once to the next one."""
    votes = [(i, (i + step) % 5) for i in range(5) for step in steps] * 3
    votes += [((i + 1) % 5, i) for i in range(5)]
    shuffled = [votes[k] for k in np.random.RandomState(0).permutation(len(votes))]
    for order in (votes, votes[::-1], shuffled):
        result = aggregate(order, method, n_resamples=20)
        if method == "kemeny":  # it shows one of several best rankings
            assert sorted(result.ranks.tolist()) == [1, 2, 3, 4, 5]
            assert (result.best_low.tolist(), result.best_high.tolist()) == ([1] * 5, [5] * 5)
            assert np.ptp(Kemeny().scores(result.judgements)) == 0
        else:
            assert result.ranks.tolist() == [1] * 5
            assert np.ptp(result.scores) == 0
        assert result.rank_low.tolist() == [1] * 5


@pytest.mark.parametrize("method", METHODS)
def test_twins_share_a_rank_and_no_order_of_the_votes_changes_one(method):
    for seed in range(30):
        random = np.random.RandomState(seed)
        votes = []  # item 5 gets a copy of each vote of item 0
        for _ in range(random.randint(5, 30)):
            pair, weight = random.permutation(5)[:2].tolist(), random.choice([0.1, 0.2, 0.7, 1 / 3])
            votes.append((*pair, weight))
            if 0 in pair:
                votes.append((*[5 if item == 0 else item for item in pair], weight))
        if not any(0 in vote[:2] for vote in votes):
            continue
        found = []
        for order in (votes, votes[::-1], [votes[k] for k in random.permutation(len(votes))]):
            pairs = [vote[:2] for vote in order]
            weight = [vote[2] for vote in order] if seed % 2 else None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DisconnectedComparisonsWarning)
                result = aggregate(Judgements.from_pairs(pairs, weight=weight), method)
            found.append(by_item(result, "ranks"))
            for name in ("best_low", "best_high") if method == "kemeny" else ("ranks",):
                value = by_item(result, name)
                assert value[0, 0] == value[0, 5]
        assert found[0] == found[1] == found[2]


def test_equal_items_are_above_each_other_in_half_of_the_resamples():
    """The comparisons of two twins with a third item are one judgement, so all resamples tie."""
    pairs = [("a", "c"), ("b", "c")] * 3 + [("c", "a"), ("c", "b")] * 2
    judgements = Judgements.from_pairs(pairs, judgement=np.repeat(np.arange(5), 2))
    for method in METHODS:
        result = aggregate(judgements, method, n_resamples=64)
        assert result.probability_above("a", "b") == 0.5, method


@pytest.mark.parametrize("method", METHODS)
def test_rounding_of_sums_of_weights_decides_nothing(method):
    """In floating point, .1 + .2 is more than .3."""
    votes = [(("a", "b"), 0.1), (("a", "b"), 0.2), (("b", "a"), 0.3)]
    for order in (votes, votes[::-1]):
        pairs, weight = zip(*order, strict=True)
        result = aggregate(Judgements.from_pairs(list(pairs), weight=list(weight)), method)
        if method == "kemeny":
            assert (result.best_low.tolist(), result.best_high.tolist()) == ([1, 1], [2, 2])
            assert by_item(result, "ranks") == {(0, "a"): 1, (0, "b"): 2}
        else:
            assert result.ranks.tolist() == [1, 1]


def test_a_structure_says_which_scores_are_equal():
    class Close(NetWins):
        def _scores(self, preferences, n_judgements):
            return 1000 * (super()._scores(preferences, n_judgements) == 0) + np.arange(3) * 1e-7

    pairs = [("a", "b"), ("b", "c")]
    assert aggregate(pairs, Close()).ranks.tolist() == [2, 1, 2]  # below 1e-9 times the largest
    Close.tolerance = 1e-12
    assert aggregate(pairs, Close()).ranks.tolist() == [3, 1, 2]


def test_formats():
    expected = {"a": 2.0, "b": -1.0, "c": -1.0}
    pairs = [("a", "b"), ("a", "c")]
    orders = Judgements.from_orders([["a", ["b", "c"]]])
    results = [aggregate(pairs, NetWins()), aggregate(orders, NetWins())]
    frame = pytest.importorskip("pandas").DataFrame(pairs)
    results.append(aggregate(frame, NetWins()))
    for result in results:
        assert dict(zip(result.items.tolist(), result.scores.tolist(), strict=True)) == expected
    labels = preference_labels([[0, 1], [0, 2], [3, 4]], [7, 7, 7, 9, 9])
    result = aggregate(labels, NetWins())
    assert result.scores.tolist() == [2.0, -1.0, -1.0, 1.0, -1.0]
    assert result.ranks.tolist() == [1, 2, 2, 1, 2]


def test_kemeny_ranks_items_without_comparison_last():
    # a and b tie; all rankings with c below d, which is below a and b, are equally good
    judgements = Judgements.from_orders(
        [["d", "c"], ["a", "d", "c"], ["b", "d", "c"]], items=["x", "c", "b", "d", "a", "y"]
    )
    with pytest.warns(
        DisconnectedComparisonsWarning, match=r"compares 2 of the items \('x', 'y'\)"
    ):
        result = aggregate(judgements, "kemeny")
    ranks = dict(zip(result.items.tolist(), result.ranks.tolist(), strict=True))
    assert ranks == {"a": 1, "b": 2, "d": 3, "c": 4, "x": 5, "y": 5}
    assert result.best_low.tolist() == [5, 4, 1, 3, 1, 5]
    assert result.best_high.tolist() == [6, 4, 2, 3, 2, 6]
    assert np.isnan(result.scores[[0, 5]]).all() and np.isfinite(result.scores[1:5]).all()
    with pytest.warns(DisconnectedComparisonsWarning):
        assert "nan" in str(aggregate(judgements, NetWins()))


def test_disconnected_comparisons_warn_and_say_how_many():
    pairs = [("a", "b"), ("c", "d"), ("a", "b"), ("e", "f")]
    with pytest.warns(DisconnectedComparisonsWarning) as caught:
        result = aggregate(pairs, NetWins(), ["x", "x", "y", "z"])
    assert len(caught) == 1 and caught[0].filename == __file__
    assert "1 of 3 queries" in str(caught[0].message)
    assert "query 'x' fall into 2 parts, 'a', 'b'; 'c', 'd'." in str(caught[0].message)
    assert "NaN" not in str(caught[0].message)
    assert np.isfinite(result.scores).all()
    assert "the items of 1 of 3 queries are in several parts" in str(result)
    with pytest.warns(DisconnectedComparisonsWarning, match="No judgement compares 1 of"):
        weighted = Judgements.from_pairs([("a", "b"), ("b", "c")], weight=[1, 0])
        result = aggregate(weighted, NetWins())
    assert np.isnan(result.scores[2]) and result.ranks.tolist() == [1, 2, 3]


def test_the_parts_of_items_that_no_comparison_connects():
    pairs = [("a", "b"), ("x", "y"), ("y", "z"), ("x", "w"), ("z", "v")]
    judgements = Judgements.from_pairs(pairs, items=["none", *"abvwxyz"])
    with pytest.warns(DisconnectedComparisonsWarning) as caught:
        result = aggregate(judgements, NetWins(), n_resamples=20)
    text = str(caught[0].message)
    assert text.startswith("The comparisons do not connect all items: they fall into 2 parts, ")
    assert "'v', 'w', 'x' and 2 more; 'a', 'b'. Scores" in text
    assert "aggregate each part separately, or collect" in text
    assert "compares 1 of the items ('none')" in text
    # the part with more items is the first one
    assert result.parts.tolist() == [0, 2, 2, 1, 1, 1, 1, 1]
    assert (
        result.parts.tolist() == result.to_frame().set_index("item")["part"][result.items].tolist()
    )
    lines = str(result).splitlines()
    assert (
        lines[1]
        == "the items are in 2 parts, the largest first; scores and ranks of different parts "
        "cannot be compared"
    )
    table = lines[-8:]
    assert [line.split()[0] for line in table] == [*"11111", *"22", "-"]
    assert any(line.startswith("first place is open: x is above v with a") for line in lines)
    assert not result.is_first_clear()
    matrix = result.probability_matrix()
    parts = result.parts[result.rows_of()]
    same = (parts[:, None] == parts) & (parts > 0) | np.eye(8, dtype=bool)
    np.testing.assert_array_equal(np.isnan(matrix), ~same)
    assert np.isnan(result.probability_above("a", "x"))
    assert result.probability_above("none", "none") == 0.5
    connected = aggregate(pairs[:1], NetWins())
    assert connected.parts.tolist() == [1, 1] and "part" not in connected.to_frame()


def best_rankings(weights):
    """All rankings of least contradicted weight, by enumeration."""
    r = len(weights)
    lost = {
        order: sum(weights[order[b], order[a]] for b in range(r) for a in range(b))
        for order in permutations(range(r))
    }
    least = min(lost.values())
    return [order for order, weight in lost.items() if weight <= least + 1e-9]


def votes_of(weights, names, order=None):
    """Judgements in which item i beats item j with the weight of row i and column j."""
    winner, loser = np.nonzero(weights)
    order = np.arange(len(winner)) if order is None else order(len(winner))
    pairs = [(names[winner[k]], names[loser[k]]) for k in order]
    weight = [float(weights[winner[k], loser[k]]) for k in order]
    return Judgements.from_pairs(pairs, weight=weight)


#: Five rankings contradict 9.5; rows beat columns. To rank by the items that are always above
#: contradicts 10.5.
SIX = np.array(
    [
        [0, 2, 2.5, 0.5, 0.5, 1.5],  # m9
        [0, 0, 0.5, 1, 0, 0],  # m8
        [0.5, 0.5, 0, 0, 1, 1.5],  # m7
        [1.5, 2, 0, 0, 0.5, 0],  # m6
        [0.5, 1, 0, 1.5, 0, 2],  # m5
        [1.5, 0, 2.5, 1, 3, 0],  # m4
    ]
)
NAMES_OF_SIX = ["m9", "m8", "m7", "m6", "m5", "m4"]


def random_weights(random, r):
    """Small weights, with and without rounding errors, under which many rankings are as good."""
    weights = random.randint(0, random.choice([2, 3, 6]), size=(r, r)) * 1.0
    np.fill_diagonal(weights, 0)
    return weights * random.choice([1.0, 0.5, 0.1, 0.7, 3.0])


@pytest.mark.parametrize("together", [10, 0], ids=["together", "by parts"])
def test_kemeny_shows_a_best_ranking_and_all_positions(together, monkeypatch):
    """By enumeration: one of the best rankings, and the positions of each item in all of them."""
    monkeypatch.setattr(_kemeny, "MAX_TOGETHER", together)
    random = np.random.RandomState(0)
    cases = [SIX] + [random_weights(random, random.randint(2, 7)) for _ in range(100)]
    several = 0
    for weights in cases:
        r = len(weights)
        if not ((weights.sum(axis=0) + weights.sum(axis=1)) > 0).all():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DisconnectedComparisonsWarning)
            result = aggregate(votes_of(weights, [f"i{k}" for k in range(r)]), "kemeny")
        item = np.array([int(name[1:]) for name in result.items])
        bests = best_rankings(weights)
        lost = sum(weights[bests[0][b], bests[0][a]] for b in range(r) for a in range(b))
        positions = np.argsort(bests, axis=1)[:, item] + 1
        assert result.objective == result.lower_bound == pytest.approx(lost)
        # `ranks` have one linear extension: themselves
        assert sorted(result.ranks.tolist()) == list(range(1, r + 1))
        assert (positions == result.ranks).all(axis=1).any()
        assert result.optimal[0]
        np.testing.assert_array_equal(result.best_low, positions.min(axis=0))
        np.testing.assert_array_equal(result.best_high, positions.max(axis=0))
        np.testing.assert_array_equal(result.scores, r - result.ranks)
        if together:
            middle = (result.best_low + result.best_high) / 2
            np.testing.assert_array_equal(Kemeny().scores(result.judgements), r - middle)
        several += len(positions) > 1
        assert ("in best" in str(result)) == (len(positions) > 1)
        assert ("all other rankings contradict more" in str(result)) == (len(positions) == 1)
    assert 40 < several < 96


def test_the_best_ranking_of_six_items_with_five_is_shown():
    result = aggregate(votes_of(SIX, NAMES_OF_SIX), "kemeny")
    assert len(best_rankings(SIX)) == 5 and result.objective.tolist() == [9.5]
    exact = aggregate(votes_of(SIX, NAMES_OF_SIX), Kemeny("exact", time_limit=60))
    assert exact.optimal.tolist() == [True] and exact.objective.tolist() == [9.5]
    frame = result.to_frame()
    assert frame["item"].tolist() == ["m4", "m9", "m7", "m5", "m6", "m8"]
    assert frame["best_low"].tolist() == [1, 1, 3, 2, 2, 5]
    assert frame["best_high"].tolist() == [2, 4, 6, 5, 5, 6]
    assert str(result).splitlines()[1:6] == [
        "a best ranking contradicts comparisons of weight 9.5 of 29",
        "proved optimal, but other rankings are equally good",
        "the column 'in best' has the positions of each item in all optimal rankings",
        "rank  in best  item  score",
        "   1  1-2      m4    5.000",
    ]


def test_no_order_of_votes_or_items_and_no_unit_changes_the_ranking_of_kemeny():
    random = np.random.RandomState(1)
    cases = [SIX] + [random_weights(random, random.randint(3, 7)) for _ in range(40)]
    # beyond what is considered as a whole: tied blocks, one after the other
    chain = np.kron(np.triu(np.ones((4, 4)), 1), np.ones((4, 4)))
    cases.append(chain + np.kron(np.eye(4), np.roll(np.eye(4), 1, axis=1)))
    sparse = np.triu(random.randint(0, 12, size=(30, 30)) == 0, 1) * 1.0
    cases.append(sparse)  # no cycles: any order of what is not compared
    for weights in cases:
        names = [f"i{k}" for k in range(len(weights))]
        found = []
        for factor in (1, 0.1, 0.3, 0.7, 1e-9, 1e9):
            votes = votes_of(weights * factor, names, random.permutation)
            items = [names[k] for k in random.permutation(len(names))]
            items = [name for name in items if name in votes.items.tolist()]
            pairs, weight = votes.comparisons[:2], votes.comparisons[2]
            pairs = np.array(votes.items, dtype=object)[np.transpose(pairs)].tolist()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DisconnectedComparisonsWarning)
                made = Judgements.from_pairs(pairs, weight=weight, items=items)
                result = aggregate(made, "kemeny")
            assert result.optimal.tolist() == [True]
            values = [by_item(result, name) for name in ("ranks", "best_low", "best_high")]
            found.append(values)
        assert all(one == found[0] for one in found[1:])


def test_margins_of_one_vote_count_however_many_votes_there_are():
    votes = {("a", "b"): 500_000_001, ("b", "a"): 500_000_000}
    votes |= {("b", "c"): 500_000_001, ("c", "b"): 500_000_000}
    result = aggregate(Judgements.from_pairs(list(votes), count=list(votes.values())), "kemeny")
    assert (result.best_low.tolist(), result.best_high.tolist()) == ([1, 2, 3], [1, 2, 3])


@pytest.mark.parametrize("limit", [16, 1])
def test_positions_in_best_rankings_of_many_items(limit):
    """With the limit 1 as for many items: bounds, which are exact if there is no cycle."""
    random = np.random.RandomState(0)
    found = {True: 0, False: 0}
    for case in range(200):
        weights = random_weights(random, random.randint(3, 6))
        if case % 2:
            weights = np.triu(weights, 1)  # without cycles
        net = weights - weights.T
        rows = best_rankings(weights)
        positions = np.argsort(rows, axis=1)
        some = positions[random.randint(len(positions))]
        *values, exact = _kemeny._positions_of_parts(net, some + 1, limit)
        shown, low, high = (np.array(value) - 1 for value in values)
        assert (positions == shown).all(axis=1).any()
        assert (low <= positions).all() and (positions <= high).all()
        if exact:
            np.testing.assert_array_equal(low, positions.min(axis=0))
            np.testing.assert_array_equal(high, positions.max(axis=0))
        assert exact or (limit == 1 and not case % 2)
        found[exact] += 1
    assert found[True] >= 100 and (found[False] > 20) == (limit == 1)


def test_whether_other_rankings_contradict_as_little():
    """Where not all positions are known: what is said is right."""
    random = np.random.RandomState(0)
    found = {True: 0, None: 0}
    for case in range(200):
        weights = random.randint(0, (2, 6)[case % 2], size=(5, 5)) * (1.0, 0.1)[case % 3 == 0]
        np.fill_diagonal(weights, 0)
        best = best_rankings(weights)
        winner, loser = np.nonzero(weights)
        if len(set(winner) | set(loser)) < 5:
            continue
        preferences = Preferences.from_pairs(
            winner, loser, weights[winner, loser], Queries.single(5)
        )
        ranking = best[random.randint(len(best))]
        answer = others_are_as_good(preferences, np.array(ranking))
        found[answer] += 1
        if answer:
            assert len(best) > 1
        else:  # no move of a single item leads to another ranking that is as good
            rest = [[item for item in ranking if item != moved] for moved in range(5)]
            moves = {
                (*rest[moved][:k], moved, *rest[moved][k:]) for moved in range(5) for k in range(5)
            }
            assert moves & set(best) == {ranking}
    assert found[True] > 50 and found[None] > 0


def test_the_text_of_kemeny_says_what_is_proved():
    opposite = Judgements.from_orders([list("abcd"), list("dcba")])
    assert str(aggregate(opposite, "kemeny")).splitlines()[1:3] == [
        "a best ranking contradicts comparisons of weight 6 of 12",
        "proved optimal, but other rankings are equally good",
    ]
    text = str(aggregate([("a", "b"), ("a", "b"), ("b", "a"), ("b", "c")], "kemeny"))
    assert "of weight 1 of 4\nproved optimal: all other rankings contradict more\n" in text
    random = np.random.RandomState(0)
    pairs = [random.permutation(30)[:2].tolist() for _ in range(400)]
    lines = str(aggregate(pairs, "kemeny")).splitlines()
    assert lines[2].startswith("every ranking contradicts at least ")
    assert lines[2].endswith('aggregate(judgements, Kemeny("exact")) may find a proof')
    assert "proved optimal" in str(aggregate(pairs, Kemeny("exact")))


def test_a_query_of_one_item_has_no_score_and_no_warning():
    judgements = Judgements.from_orders([["a"], ["b", "c"]], groups=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = aggregate(judgements, NetWins())
    assert np.isnan(result.scores[0]) and result.ranks.tolist() == [1, 1, 2]


def test_text_and_frame():
    pairs, groups = random_votes(4, n_items=8)
    result = aggregate(pairs, NetWins(), groups)
    text = str(result)
    assert text.startswith("3 queries, 24 items, 468 judgements, NetWins()\nquery ")
    lines = text.splitlines()
    for query in (0, 10, 20):  # five of the eight items of each
        start = lines.index(f"query {query}:")
        names = [line.split()[1] for line in lines[start + 2 : start + 7]]
        assert names == result.items[result.rows_of(query)[:5]].tolist()
        assert lines[start + 7] == "... 3 more items; to_frame() has all"
    many = str(aggregate([("a", "b")] * 6, NetWins(), range(6))).splitlines()
    assert sum(line.startswith("query ") for line in many) == 5
    assert many[-1] == "... 1 more query; to_frame() has all"
    frame_rows = result.rows_of(10)
    assert (np.diff(result.ranks[frame_rows]) >= 0).all() and set(result.groups[frame_rows]) == {10}
    one = aggregate([("a" * 50, "b"), ("b", "c")], NetWins())
    lines = str(one).splitlines()
    assert lines[2].split() == ["1", "a" * 27 + "...", "1.000"]
    assert [line.split()[1] for line in lines[3:]] == ["b", "c"]
    pytest.importorskip("pandas")
    frame = result.to_frame()
    columns = ["query", "rank", "item", "score", "votes", "few_votes", "win_share"]
    assert list(frame.columns) == columns
    assert frame["rank"].tolist()[:8] == sorted(result.ranks[result.rows_of(frame["query"][0])])
    for query, part in frame.groupby("query", sort=False):
        assert part["item"].tolist() == result.items[result.rows_of(query)].tolist()


@pytest.mark.parametrize(
    "judgements, options, error, words",
    [
        ([("a", "b")], {"method": "kemeni"}, ValueError, "Unknown method 'kemeni'. Did you mean"),
        ([("a", "b")], {"method": "bradley_terry"}, ValueError, "the nearest is 'btl'"),
        ([("a", "b")], {"method": "x"}, ValueError, "rank_centrality, kemeny\\.$"),
        ([("a", "b")], {"method": Kemeny}, TypeError, "must be a name or"),
        ([("a", "b")], {"method": 3}, TypeError, "3"),
        ([("a", "b")], {"method": "cascade"}, ValueError, "needs clicks, not judgements"),
        ([("a", "b")], {"method": Kemeny("exactly")}, ValueError, "exactly"),
        ([("a", "b")], {"method": Kemeny(time_limit=0)}, ValueError, "time_limit"),
        ([("a", "b")], {"groups": [1, 2]}, ValueError, "groups has 2 entries"),
        (Judgements.from_pairs([(0, 1)]), {"groups": [1]}, ValueError, "groups can only"),
        (preference_labels([[0, 1]], [0, 0]), {"groups": [1]}, ValueError, "groups can only"),
        (None, {}, ValueError, "pairs must be"),
        ([("a", "b")], {"query": [1]}, TypeError, "no parameter 'query'"),
    ],
)
def test_bad_input_is_refused_by_name(judgements, options, error, words):
    with pytest.raises(error, match=words):
        aggregate(judgements, **{"method": NetWins(), **options})


def test_a_structure_that_returns_nonsense_is_named():
    class Short(NetWins):
        def _scores(self, preferences, n_judgements):
            return np.zeros(1)

    with pytest.raises(ValueError, match=r"Short.scores must return shape \(2,\), .*; got \(1,\)"):
        aggregate([("a", "b")], Short())


def test_many_items_without_resamples():
    n = 100_000
    pairs = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
    result = aggregate(pairs, "borda")  # a matrix of all pairs would take 75 GiB
    assert (result.ranks == 1).all()
    with pytest.raises(ValueError, match="Pass a smaller n_resamples"):
        aggregate(pairs, "borda", n_resamples=1000)


def test_plackett_luce_does_not_expand_orders_to_pairs():
    random = np.random.RandomState(0)
    orders = [random.permutation(4000).tolist() for _ in range(2)]
    judgements = Judgements.from_orders(orders)
    result = aggregate(judgements, "plackett_luce")
    assert judgements._comparisons is None and judgements._preferences is None
    assert "plackett" in repr(result.method).lower() and "4,000 items" in str(result)
    assert judgements._comparisons is None
    # both orders agree about these two items
    place = np.argsort(orders, axis=1)
    best, worst = place.sum(axis=0).argmin(), place.sum(axis=0).argmax()
    scores = dict(zip(result.items.tolist(), result.scores.tolist(), strict=True))
    assert scores[best] > scores[worst] + 1


@pytest.mark.parametrize("ties", ["ignore", "half"])
def test_links_connect_what_comparisons_connect(ties):
    for seed in range(50):
        random = np.random.RandomState(seed)
        orders = []
        for _ in range(random.randint(1, 5)):
            listed = random.permutation(8)[: random.randint(1, 4)].tolist()
            orders.append([listed] if random.uniform() < 0.4 else listed)
        judgements = Judgements.from_orders(
            orders, ties=ties, items=range(8), count=random.randint(0, 3, size=len(orders))
        )
        links, preferences = judgements._links(), judgements.preferences()
        positive = preferences.weight > 0
        pairs = preferences.winner[positive], preferences.loser[positive]
        np.testing.assert_array_equal(np.unique(links), np.unique(pairs))
        one, other = (number_components(*found, 8, "weak") for found in (links, pairs))
        np.testing.assert_array_equal(one[:, None] == one, other[:, None] == other)


def test_groups_that_do_not_exist():
    result = aggregate([("a", "b"), ("a", "b")], NetWins(), ["x", "y"])
    with pytest.raises(ValueError, match="as group="):
        result.rows_of()
    with pytest.raises(ValueError, match="There is no query 'z'"):
        result.rows_of("z")
