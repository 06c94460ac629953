"""The audit of a leaderboard: each probe fires on a planted board, and not on a clean one."""

from __future__ import annotations

from itertools import combinations_with_replacement

import matplotlib
import numpy as np
import pytest

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation._audit_data import draw_votes  # not visible in its audit
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning

matplotlib.use("Agg")
NAMES = np.array([f"m{k}" for k in range(12)])


def votes_of(
    seed=0, n=6000, m=8, position=0.0, tied=0.3, judges=60, cycle=0.0, strange=None, names=NAMES,
    gap=1.0, **options,
):  # fmt: skip
    """Votes of the model, or with something planted; `strange(judge, lead, a, b)` changes leads."""
    rng = np.random.default_rng(seed)
    scores = gap * np.linspace(1, -1, m)
    a = rng.integers(m, size=n)
    b = (a + rng.integers(1, m, size=n)) % m
    judge = rng.integers(judges, size=n)
    lead = scores[a] - scores[b] + position
    turn = (b - a) % m  # the next item on a circle is preferred
    lead = lead + cycle * np.where(turn <= m // 2, 1.0, -1.0) * (turn * 2 != m)
    if strange is not None:
        lead = strange(judge, lead, a, b)
    noise = lead + rng.logistic(size=n)
    winner = np.where(np.abs(noise) < tied, "tie", np.where(noise > 0, "model_a", "model_b"))
    known = {"judge": judge} if options.pop("with_judges", True) else {}
    return Judgements.from_votes(names[a], names[b], winner, **known, **options)


def probes(votes, **options):
    return {probe.name: probe for probe in aggregate(votes).audit(**options).probes}


def test_a_clean_board_passes_all_probes():
    found = probes(votes_of())
    assert [name for name, probe in found.items() if probe.fires] == []
    assert all(probe.fires is False for probe in found.values())


def test_counts_are_votes_and_so_are_votes_with_probabilities():
    pairs = [("a", "b"), ("b", "c"), ("c", "a"), ("b", "a"), ("c", "b"), ("a", "c")]
    times = [30, 25, 15, 20, 24, 26]
    read = Judgements.from_pairs
    known = probes(read(np.repeat(pairs, times, axis=0)))["cycles"]
    # sums of 140 votes and of six counts are rounded differently, depending on the processor
    rounded = known._replace(p_value=pytest.approx(known.p_value, rel=1e-12))
    assert probes(read(pairs, count=times))["cycles"] == rounded
    met = [50, 49, 41]
    share = np.repeat(np.divide(times[:3], met), met)
    soft = probes(read(np.repeat(pairs[:3], met, axis=0), probability=share))
    assert soft["cycles"].p_value == pytest.approx(known.p_value)
    assert soft["first place"].fires is None


def against(judge, lead, a, b):
    return np.where(judge == 3, -2 * lead, lead)


def at_random(judge, lead, a, b):
    return np.where(judge == 3, 0.0, lead)


def partial(judge, lead, a, b):
    return np.where((judge == 3) & (a == 5), 4.0, np.where((judge == 3) & (b == 5), -4.0, lead))


@pytest.mark.parametrize(
    ("probe", "options", "text"),
    [
        ("position", {"position": 0.4}, "as if its score were"),
        ("cycles", {"cycle": 0.5}, "cyclic"),
        ("opposed judges", {"strange": against}, "1 of 60 judges contradict all others: 3 "),
        (
            "opposed judges",
            {"strange": against, "n": 600, "judges": 12},
            "contradict all others: 3",
        ),
        ("random judges", {"strange": at_random, "n": 12000}, "look random: 3 "),
        ("partial judges", {"strange": partial, "n": 12000}, "3 for 'm5'"),
        ("few votes", {"n": 70, "judges": 40}, "Too few votes"),
        ("first place", {"gap": 0.05, "tied": 0.0}, "would be first instead of"),
        ("same names", {"names": np.array(["GPT-4", "gpt 4", *NAMES[2:]])}, "'GPT-4' = 'gpt 4'"),
    ],
)
def test_a_planted_fault_is_found(probe, options, text):
    found = probes(votes_of(**options))
    assert found[probe].fires
    assert text in found[probe].finding


def test_unbounded_and_unconnected_items_are_found():
    chain = [("a", "b"), ("b", "c"), ("c", "b")] * 20
    assert "'a'" in probes(Judgements.from_pairs(chain))["unbounded"].finding
    with pytest.warns(UserWarning, match="do not connect"):
        apart = probes(Judgements.from_pairs([*chain, ("x", "y"), ("y", "x")]))
    assert "2 parts" in apart["unbounded"].finding


def test_a_tie_convention_that_moves_ranks_is_found():
    # b ties with nearly all others and never loses; half wins make it average, wins alone first
    rng = np.random.default_rng(0)
    first, second, winner = [], [], []
    for other in "acdef":
        first += ["b"] * 200
        second += [other] * 200
        winner += ["tie"] * 185 + ["b"] * 14 + [other]
    for one in "acdef":
        for other in "acdef":
            if one < other:
                n = 200
                first += [one] * n
                second += [other] * n
                winner += np.where(rng.random(n) < 0.72, one, other).tolist()
    found = probes(Judgements.from_votes(first, second, winner))
    assert found["ties"].fires
    assert "without ties" in found["ties"].finding


def test_other_readings_of_the_votes_have_ranks_of_their_own():
    audit = aggregate(votes_of(position=1.0, strange=at_random, n=20_000)).audit()
    readings = ["as fitted", "with position", "without ties", "without these judges"]
    assert [name for name in audit.alternatives if "ties:" not in name] == readings
    assert sorted(name for name in audit.alternatives if "ties:" in name) == [
        "ties: davidson",
        "ties: rao_kupper",
    ]
    for ranks in audit.alternatives.values():
        assert sorted(ranks.tolist()) == list(range(1, 9))


def test_a_busy_judge_and_clones_are_found():
    votes = votes_of()
    rng = np.random.default_rng(0)
    judge = np.where(rng.random(6000) < 0.4, 0, rng.integers(1, 60, size=6000))
    busy = Judgements(
        votes.queries, votes.items, votes.query, comparisons=votes.comparisons, judge=judge,
        judges=np.arange(60), details=votes.details,
    )  # fmt: skip
    assert "0 (4" in probes(busy)["busy judges"].finding
    first, second = ["a", "b", "c", "d"] * 300, ["b", "c", "d", "a"] * 300
    winner = rng.choice(["model_a", "model_b"], size=1200)
    clone = np.array(first) == "a"
    winner = np.where(clone & (rng.random(1200) < 0.9), "tie", winner)
    assert (
        "'a' and 'b' tie"
        in probes(Judgements.from_votes(first, second, winner))["same names"].finding
    )


def with_a_misspelling(name):
    votes = votes_of(n=3000, m=7)
    winner, loser = votes.comparisons[:2]
    pairs = np.array([(votes.items[i], votes.items[j]) for i, j in zip(winner, loser, strict=True)])
    return np.append(pairs.astype(object), [[name, "m0"]], axis=0)


@pytest.mark.parametrize("name", ["m00", "0m", "M0 "])
def test_one_misspelt_name_among_many_votes_is_named(name):
    board = aggregate(Judgements.from_pairs(with_a_misspelling(name)), intervals="robust")
    assert f"fewer than 30 votes: {name} (1)" in str(board)
    found = {probe.name: probe for probe in board.audit().probes}
    assert found["same names"].fires
    assert "'m0'" in found["same names"].finding and repr(name) in found["same names"].finding
    # the finding is about this item, although it moves the mean of all scores
    assert found["unbounded"].finding.startswith("1 item never lost, or never won, against the")
    assert found["few votes"].finding.startswith("Too few votes for 1 item")
    assert found["first place"].fires
    assert "Without 1 vote (" in found["first place"].finding


@pytest.mark.parametrize("name", ["owl", "m9", "mine"])
def test_a_rare_item_with_a_name_of_its_own_is_not_misspelt(name):
    board = aggregate(Judgements.from_pairs(with_a_misspelling(name)))
    assert not {probe.name: probe for probe in board.audit().probes}["same names"].fires


def test_orders_are_audited_by_votes_of_disjoint_pairs():
    orders = [["a", ["b", "c"], "d", "e"], ["e", "a"], ["b"]] * 30
    read = Judgements.from_orders(orders, judge=[0, 1, 2] * 30)
    votes = draw_votes(read, np.random.default_rng(0))
    winner, loser, _, _ = votes.comparisons
    pairs = read.items[np.column_stack([winner, loser])].tolist()
    of_first = [tuple(pair) for pair, judge in zip(pairs, votes.judge, strict=True) if judge == 0]
    better = "ab ac ad ae bd be cd ce de".split()  # each pair but the tie, about equally often
    counts = [of_first.count(tuple(pair)) for pair in better]
    assert sum(counts) == len(of_first) and 2 <= min(counts) and max(counts) <= 12
    assert len(of_first) <= 2 * 30 and sum(votes.judge == 1) == 30 and not (votes.judge == 2).any()

    rng = np.random.default_rng(0)
    scores = np.linspace(1.5, -1.5, 8) * np.where(np.arange(200) % 10, 1, -1)[:, None]
    orders = np.argsort(-scores - rng.gumbel(size=scores.shape), axis=1).tolist()
    found = probes(Judgements.from_orders(orders, judge=np.arange(200) % 10))
    assert list(found) == [
        "cycles",
        "random judges",
        "opposed judges",
        "partial judges",
        "busy judges",
        "same names",
    ]
    assert [name for name, probe in found.items() if probe.fires] == ["opposed judges"]


def test_what_is_not_known_is_said():
    found = probes(votes_of(with_judges=False))
    assert found["opposed judges"].fires is None
    pairs = Judgements.from_pairs([("a", "b"), ("b", "c"), ("c", "a"), ("b", "a")] * 5)
    assert probes(pairs)["position"].fires is None
    always = Judgements.from_votes(
        ["a", "a", "a"] * 20, ["b", "c", "d"] * 20, (["model_a"] * 3 + ["model_b"]) * 15
    )
    assert "always first" in probes(always)["position"].finding
    with pytest.raises(ValueError, match="audit of orders needs the group"):
        aggregate(Judgements.from_orders([[1, 2, 3], [3, 1, 2]], groups=[0, 1])).audit()
    with pytest.raises(ValueError, match="level must be"):
        aggregate(pairs).audit(level=2.0)
    tied = Judgements.from_orders([[["a", "b"]]] * 3)
    for nothing in (tied, Judgements.from_votes(["a"], ["b"], ["tie"], weight=[0])):
        no_vote = pytest.raises(ValueError, match="no vote between two items")
        with pytest.warns(DisconnectedComparisonsWarning), no_vote:
            aggregate(nothing).audit()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # an endless effect
def test_what_few_votes_and_judges_cannot_show_is_unknown():
    """A probe is not "ok" where no finding is possible."""
    one = probes(votes_of(n=400, judges=1))
    names = [f"{kind} judges" for kind in ("random", "opposed", "partial")]
    assert [one[name].fires for name in names] == [None] * 3
    assert one["busy judges"].fires and "All votes are by 0." in one["busy judges"].finding
    few = probes(votes_of(n=8, m=3, judges=4, tied=0.0))
    assert few["position"].fires is None and "8 decided votes only" in few["position"].finding
    assert [few[name].fires for name in names] == [None] * 3
    assert probes(votes_of(n=400, judges=2))["random judges"].fires is False
    quiet = probes(votes_of())["position"]
    assert quiet.finding.startswith("No effect of the first place was found (p = ")


def test_votes_without_an_answer_are_reported():
    votes = votes_of(n=500, judges=20, tied=0.3, tie=(), refused="tie")
    n = int(votes.refused.sum())
    assert n > 50
    found = probes(votes)["no answer"]
    assert found.fires is False and f"{100 * n / 500:.2g} % of the votes ({n})" in found.finding
    assert f"{500 - n} judgements ({n} without an answer left out)" in str(aggregate(votes))
    assert "no answer" not in probes(votes_of())
    assert "left out" not in str(aggregate(votes_of()))


def test_intervals_by_the_information_say_what_they_ignore():
    for n, text in ((1, " of one judge"), (9, ", which ignores differences between 9 judges")):
        board = aggregate(votes_of(n=500, judges=n), intervals="information")
        assert f"95 % intervals by the information of the votes{text}" in str(board)


def test_a_table_of_winners_and_losers_says_nothing_of_the_position():
    rng = np.random.default_rng(0)
    a = rng.integers(8, size=2000)
    b = (a + rng.integers(1, 8, size=2000)) % 8
    won = np.where(rng.random(2000) < 0.1, "tie", "model_a")
    shown = rng.choice([-1, 1], 2000)
    found = {
        given: probes(Judgements.from_votes(a, b, won, position=position))["position"]
        for given, position in (("not", False), ("wrong", True), ("right", shown))
    }
    assert found["not"].fires is None and found["wrong"].fires is True
    assert found["right"].fires is False and "allows for it" in found["right"].finding
    assert all("winners and losers" in found[given].finding for given in ("not", "wrong"))


def first_item(pairs):
    board = aggregate(Judgements.from_pairs(pairs, items=["a", "b", "c"]))
    top = board.items[board.ranks == 1]
    return str(top[0]) if len(top) == 1 else None


@pytest.mark.parametrize("seed", range(6))
def test_the_fewest_votes_that_change_the_first_place_are_exact_on_small_boards(seed):
    rng = np.random.default_rng(seed)
    kinds = [("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")]
    counts = np.array([4, 3, 5, 3, 4, 3]) + rng.integers(0, 2, size=6)
    pairs = [kind for kind, n in zip(kinds, counts, strict=True) for _ in range(n)]
    audit = aggregate(Judgements.from_pairs(pairs)).audit()
    found = audit.influence
    leader = first_item(pairs)
    size = next(
        m for m in range(1, 10)
        if any(
            (np.bincount(some, minlength=6) <= counts).all()
            and (first_item(
                [kind for kind, n in zip(kinds, counts - np.bincount(some, minlength=6),
                                         strict=True) for _ in range(n)]
            )) not in (leader, None)
            for some in combinations_with_replacement(range(6), m)
        )
    )  # fmt: skip
    assert found.n_votes == size == found.at_least
    kept = [pair for k, pair in enumerate(pairs) if k not in set(found.votes.tolist())]
    assert len(kept) == len(pairs) - size
    assert first_item(kept) != leader


def shuffled_influences(pairs, n=6):
    """What the influence says of the same votes in other orders, in terms of ids."""
    found = set()
    for seed in range(n):
        some = [pairs[k] for k in np.random.default_rng(seed).permutation(len(pairs))]
        board = aggregate(Judgements.from_pairs(some))
        one = board.audit().influence
        removed = tuple(sorted(some[k] for k in one.votes.tolist()))
        first, rival = (str(board.items[k]) for k in (one.first, one.rival))
        found.add((one.n_votes, one.at_least, first, rival, removed))
    return found


def times(counts):
    return [tuple(pair) for pair, n in counts.items() for _ in range(n)]


def test_a_tie_for_the_first_place_is_no_other_first_item():
    # without three votes for a over b, the two tie
    counts = {"ab": 5, "ba": 3, "ac": 5, "ca": 3, "bc": 4, "cb": 4}
    assert shuffled_influences(times(counts)) == {(4.0, 4, "a", "b", (("a", "b"),) * 4)}


def test_the_influence_does_not_depend_on_the_order_of_the_votes():
    # b, c and d have the same record, and votes of several kinds have the same effect
    even = {one + other: 5 for one in "bcd" for other in "bcd" if one != other}
    counts = {**even, **{"a" + one: 14 for one in "bcd"}, **{one + "a": 7 for one in "bcd"}}
    assert len(shuffled_influences(times(counts))) == 1


def with_another_part():
    """Votes of eight items, and of three others that met each other only."""
    votes = votes_of(n=800, tied=0.0, with_judges=False, gap=0.3)
    winner, loser = votes.comparisons[:2]
    pairs = [
        (votes.items[i], votes.items[j])
        for i, j in zip(winner.tolist(), loser.tolist(), strict=True)
    ]
    return pairs, [("x", "y"), ("y", "z"), ("z", "x"), ("x", "y")]


def test_the_largest_part_is_the_board():
    pairs, apart = with_another_part()
    alone = aggregate(Judgements.from_pairs(pairs)).audit()
    with pytest.warns(UserWarning, match="do not connect"):
        board = aggregate(Judgements.from_pairs([*apart, *pairs]))
    audit = board.audit()
    assert audit.items[:8].tolist() == alone.items.tolist()
    assert set(audit.items[8:].tolist()) == set("xyz")
    found = audit.influence
    assert found is not None and found.n_votes == alone.influence.n_votes
    assert board.items[found.first] == alone.items[0]
    text = {probe.name: probe.finding for probe in audit.probes}["unbounded"]
    assert "The largest has 8 items" in text and "3 items cannot be compared" in text
    never = [("best", item) for item in alone.items[:3].tolist()]
    with pytest.warns(UserWarning, match="do not connect"):
        text = probes(Judgements.from_pairs([*apart, *pairs, *never]))["unbounded"].finding
    assert "In the largest, 1 item never lost, or never won, against the rest: 'best'." in text
    # of two parts of three items each, none is the board
    other = [("u", "v"), ("v", "w"), ("w", "u"), ("u", "v")]
    with pytest.warns(UserWarning, match="do not connect"):
        equal = aggregate(Judgements.from_pairs([*apart, *other])).audit()
    assert equal.influence is None
    assert (
        "None has more than half"
        in {probe.name: probe.finding for probe in equal.probes}["unbounded"]
    )


def test_two_items_that_share_the_first_place_are_not_first_instead():
    """The position changes who is first only if one item alone is first."""
    counts = {"ab": 6, "ba": 6, "ac": 9, "ca": 3, "bc": 9, "cb": 3}
    board = aggregate(Judgements.from_pairs(times(counts)))
    audit = board.audit()
    assert audit.influence is None
    assert "several items share the first place" in str(audit)
    assert audit.alternatives["as fitted"].tolist() == [1, 1, 3]


def audits_of_shuffled(columns, n=4, **options):
    """The probes of the same votes in other orders."""
    found = []
    for seed in range(n):
        order = np.random.default_rng(seed).permutation(len(columns[0]))
        one, other, judge = (np.array(column)[order] for column in columns)
        votes = Judgements.from_votes(one, other, one, judge=judge, **options)
        found.append({probe.name: probe for probe in aggregate(votes).audit().probes})
    return found


@pytest.mark.filterwarnings("ignore::sklearn_rankcal.exceptions.DisconnectedComparisonsWarning")
def test_cycles_of_one_judge_each_are_by_chance_in_any_order_of_the_votes():
    # no sign of a judge changes the statistic, which rounding must not take for more than all draws
    rows = []
    for judge in range(16):
        a, b, c = (f"{name}{judge}" for name in "abc")
        counts = {(a, b): 5, (b, a): 2 + judge % 3, (b, c): 6, (c, b): 3, (c, a): 5,
                  (a, c): 3 + judge % 2}  # fmt: skip
        rows += [(*pair, judge) for pair, n in counts.items() for _ in range(n)]
    for found in audits_of_shuffled(list(zip(*rows, strict=True))):
        assert found["cycles"].p_value == 1.0 and not found["cycles"].fires


def test_votes_that_are_even_but_for_rounding_have_no_cycles():
    pairs = [(one, other) for one in "abcd" for other in "abcd" if one < other]
    rows = [*pairs, *pairs, *[(other, one) for one, other in pairs]]
    weight = np.repeat([0.1, 0.2, 0.3], 6)
    assert 0.1 + 0.2 - 0.3 != 0
    board = aggregate(Judgements.from_pairs(rows, weight=weight))
    finding = {probe.name: probe.finding for probe in board.audit().probes}["cycles"]
    assert finding.startswith("0 % of the strength of the preferences is cyclic")


def test_names_in_findings_do_not_depend_on_the_order_of_the_votes():
    rng = np.random.default_rng(0)
    rows = []
    for judge in range(20):
        for one in "abcdef":
            rows += [(one, other, judge) for other in "abcdef" if one < other]
            rows += [(other, one, judge) for other in "abcdef" if one < other]
    # judges 3 and 7 always vote for a against b, of two equal items
    rows = [(*sorted(row[:2]), row[2]) if row[2] in (3, 7) and {*row[:2]} == {"a", "b"} else row
            for row in rows]  # fmt: skip
    rows += [("a", "b", judge) for judge in (3, 7) for _ in range(20)]
    rows += [("b", "a", judge) for judge in (5, 9, 11, 12) for _ in range(10)]
    rows = [rows[k] for k in rng.permutation(len(rows))]
    found = audits_of_shuffled(list(zip(*rows, strict=True)))
    texts = [{name: probe.finding for name, probe in one.items()} for one in found]
    assert all(one == texts[0] for one in texts)
    assert "3 for 'a', 3 against 'b', 7 for 'a' and 1 more" in texts[0]["partial judges"]


def test_the_table_and_the_picture():
    pd = pytest.importorskip("pandas")
    audit = aggregate(votes_of(position=0.4)).audit()
    text = str(audit)
    assert text.startswith("audit of 8 items, 6,000 votes: ")
    assert max(map(len, text.splitlines())) <= 100
    frame = audit.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == ["name", "fires", "finding", "p_value"]
    axes = audit.plot()
    assert len(axes.lines) == 8
    assert [label.get_text() for label in axes.get_yticklabels()] == audit.items.tolist()
