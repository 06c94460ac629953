"""Tables of votes: who won is read from words and names, and what could be misread is refused."""

import numpy as np
import pytest

from sklearn_rankcal import Judgements, aggregate

pd = pytest.importorskip("pandas")


def totals(judgements):
    """{(preferred item, other item): weight}, without weights of 0."""
    found = judgements.preferences()
    names = judgements.items.tolist()
    triples = zip(found.winner.tolist(), found.loser.tolist(), found.weight.tolist(), strict=True)
    return {(names[i], names[j]): weight for i, j, weight in triples if weight}


def arena(n=60, seed=0):
    """A table of votes as arenas publish it."""
    random = np.random.RandomState(seed)
    names = np.array(["owl", "cat", "eel", "asp"], dtype=object)
    i = random.randint(4, size=n)
    j = (i + random.randint(1, 4, size=n)) % 4
    winner = np.array(["model_a", "model_b", "tie", "tie (bothbad)"], dtype=object)
    return pd.DataFrame(
        {
            "judge": [f"judge {k}" for k in random.randint(20, size=n)],
            "winner": winner[random.randint(4, size=n)],
            "model_b": names[j],
            "model_a": names[i],
        }
    )


def literal(table):
    """The sums of a loop over the rows."""
    found = {}
    for row in table.to_dict("records"):
        a, b, won = row["model_a"], row["model_b"], row["winner"]
        share = {"model_a": 1.0, a: 1.0, "model_b": 0.0, b: 0.0}.get(won, 0.5)
        found[a, b] = found.get((a, b), 0) + share
        found[b, a] = found.get((b, a), 0) + 1 - share
    return {pair: weight for pair, weight in found.items() if weight}


KINDS = ["words", "names", "both", "own columns", "lists", "integers", "categories", "objects"]


@pytest.mark.parametrize("kind", KINDS)
def test_winners_by_words_and_by_names(kind):
    table = arena()
    expected = literal(table)
    named = table["winner"].where(table["winner"] != "model_a", table["model_a"])
    named = named.where(named != "model_b", table["model_b"])
    if kind == "names":
        table["winner"] = named
    elif kind == "both":
        table["winner"] = table["winner"].where(table.index % 2 == 0, named)
    elif kind == "own columns":
        table = table.rename(columns={"model_a": "left", "model_b": "right"})
        table["winner"] = table["winner"].replace({"model_a": "left", "model_b": "right"})
        found = Judgements.from_votes(table["left"], table["right"], table["winner"])
        assert totals(found) == expected
        return
    elif kind == "integers":
        numbers = {"owl": 7, "cat": 3, "eel": 5, "asp": 1}
        for name in ("model_a", "model_b"):
            table[name] = table[name].map(numbers).astype(np.int64)
        expected = {(numbers[i], numbers[j]): w for (i, j), w in expected.items()}
    columns = [table[name] for name in ("model_a", "model_b", "winner")]
    if kind == "lists":
        columns = [column.tolist() for column in columns]
    elif kind in ("categories", "objects"):
        columns = [c.astype("category" if kind == "categories" else object) for c in columns]
    found = Judgements.from_votes(*columns, judge=table["judge"])
    assert totals(found) == expected
    pairs = np.column_stack([table["model_a"], table["model_b"]]).reshape(-1)
    assert found.items.tolist() == list(dict.fromkeys(pairs.tolist()))  # by first appearance
    assert found.n_judgements == 60 and len(found.judges) == table["judge"].nunique()
    if kind == "integers":
        assert found.items.dtype == np.int64


def test_votes_without_ties_are_the_pairs_of_winner_and_loser():
    table = arena()
    table = table[~table["winner"].str.startswith("tie")]
    won = table["winner"] == "model_a"
    pairs = pd.DataFrame(
        {
            "loser": table["model_b"].where(won, table["model_a"]),
            "winner": table["model_a"].where(won, table["model_b"]),
        }
    )
    votes = Judgements.from_votes(table["model_a"], table["model_b"], table["winner"])
    by_name, by_place = Judgements.from_pairs(pairs), pairs[["winner", "loser"]].to_numpy()
    assert totals(votes) == totals(by_name) == totals(Judgements.from_pairs(by_place))
    assert votes.comparisons.weight is None
    numbered = pd.DataFrame(by_place)
    assert totals(Judgements.from_pairs(numbered)) == totals(votes)


def test_other_words_for_a_tie():
    columns = ["a", "b"], ["b", "c"], [0.5, "b"]
    assert totals(Judgements.from_votes(*columns, tie=0.5)) == {
        ("a", "b"): 0.5,
        ("b", "a"): 0.5,
        ("b", "c"): 1.0,
    }
    with pytest.raises(ValueError, match=r"Row 0 has the winner 0.5"):
        Judgements.from_votes(*columns)
    with pytest.raises(ValueError, match="tie is 'model_a', which is the word for the first item"):
        Judgements.from_votes(*columns, tie="model_a")


def test_probabilities_of_0_and_1_are_hard_votes_and_one_half_is_a_tie():
    table = arena()
    columns = [table[name] for name in ("model_a", "model_b", "winner")]
    options = {"judge": table["judge"], "position": True, "tie": "tie"}
    options["refused"] = "tie (bothbad)"
    hard = Judgements.from_votes(*columns, **options)
    share = table["winner"].map({"model_a": 1, "model_b": 0, "tie": 0.5})  # missing if refused
    soft = Judgements.from_votes(*columns[:2], columns[2].where(share.isna(), "model_a"),
                                 probability=share, **options)  # fmt: skip
    assert totals(soft) == totals(hard) and soft.refused == hard.refused
    boards = [aggregate(one, intervals="robust").to_frame() for one in (hard, soft)]
    pd.testing.assert_frame_equal(*boards)
    pairs = [("a", "b"), ("b", "c")]
    found = Judgements.from_pairs(pairs, probability=[0.25, 1], weight=[2, 3])
    assert totals(found) == {("a", "b"): 0.5, ("b", "a"): 1.5, ("b", "c"): 3.0}
    for bad, words in (([1.5, 1], "entry 0 is 1.5.*expit"), ([1, np.nan], "entry 1 is nan")):
        with pytest.raises(ValueError, match=f"probability must be between 0 and 1; {words}"):
            Judgements.from_pairs(pairs, probability=bad)


def test_columns_in_the_other_order_are_read_by_their_names():
    table = arena()
    swapped = Judgements.from_votes(table["model_b"], table["model_a"], table["winner"])
    assert totals(swapped) == literal(table)


@pytest.mark.parametrize(
    "first, second, winner, words",
    [
        (["a", "b"], ["b", "a"], ["a", None], r"winner has a missing .*\(None, row 1, counted"),
        (["a", None], ["b", "a"], ["a", "a"], "first has a missing or infinite id .*row 1"),
        (["a", "b"], ["b", "c"], ["b", "a"], "Row 1 has the winner 'a'. It must be .*'b' and 'c'"),
        (["a", "b"], ["b", "c"], ["b", "b wins"], "'model_a', 'model_b', 'tie'"),
        (["a", "b"], ["b", "b"], ["b", "b"], "Row 1 compares item 'b' with itself"),
        (["a", "b"], ["b"], ["b", "b"], "second has 1 entry, but first has 2"),
        (["a", "tie"], ["b", "c"], ["b", "tie"], "the word for a tie. Rename"),
        ([], [], [], "first is empty"),
    ],
)
def test_votes_that_cannot_be_read_are_refused_by_row(first, second, winner, words):
    with pytest.raises(ValueError, match=words):
        Judgements.from_votes(first, second, winner)


def test_a_misspelt_item_is_refused_if_the_items_are_known():
    pairs = [("owl", "cat"), ("Owl ", "cat")]
    with pytest.raises(ValueError, match=r"'Owl ' \(pair 1, .*not in items. Did you mean 'owl'\?"):
        Judgements.from_pairs(pairs, items=["cat", "owl"])
    with pytest.raises(ValueError, match=r"the item 1 \(row 0, .* Did you mean '1'\?"):
        Judgements.from_votes([1], ["2"], [1], items=["1", "2"])
    known = Judgements.from_pairs(pairs[:1], items=["eel", "cat", "owl"])
    assert known.items.tolist() == ["eel", "cat", "owl"]
    assert totals(known) == {("owl", "cat"): 1.0}


@pytest.mark.parametrize(
    "names, words",
    [
        (["model_a", "model_b"], "has the columns 'model_a', 'model_b', but"),
        (["left", "right", "winner"], r"Judgements.from_votes\(first, second, winner\)"),
        (["winner", "loser", "tied"], r"frame\[\['winner', 'loser'\]\], and other columns by name"),
        ([1, 0], "must have 'winner' and 'loser'"),
    ],
)
def test_frames_that_do_not_say_who_was_preferred_are_refused(names, words):
    frame = pd.DataFrame([["a", "b", "c", "d"][: len(names)]], columns=names)
    for read in (Judgements.from_pairs, aggregate):
        with pytest.raises(ValueError, match=words):
            read(frame)


def test_rows_that_do_not_belong_together_are_refused():
    table = arena()
    shuffled = table.sample(frac=1, random_state=0)
    pairs = table[["model_a", "model_b"]].set_axis(["winner", "loser"], axis=1)
    orders = pd.Series([["a", "b"], ["b", "a"]])
    other = pd.Series([1, 2], index=[1, 0])
    calls = [
        lambda: Judgements.from_pairs(pairs, tied=shuffled["winner"] == "tie"),
        lambda: Judgements.from_pairs(pairs.to_numpy(), judge=table["judge"],
                                      weight=pd.Series(1.0, shuffled.index)),
        lambda: Judgements.from_votes(table["model_a"], table["model_b"], shuffled["winner"]),
        lambda: Judgements.from_orders(orders, count=other),
        lambda: Judgements.from_ranks(pd.DataFrame({"a": [1, 2], "b": [2, 1]}), judge=other),
        lambda: Judgements.from_selections(orders, pd.Series(["a", "b"]), groups=other),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ValueError, match=r"different indexes.*sort_index\(\).*reset_index"):
            call()
    together = Judgements.from_pairs(
        pairs.loc[shuffled.index], tied=shuffled["winner"].str.startswith("tie")
    )
    expected = Judgements.from_pairs(pairs, tied=table["winner"].str.startswith("tie"))
    assert totals(together) == totals(expected)
    # an array has no index
    Judgements.from_pairs(pairs, tied=(shuffled["winner"] == "tie").to_numpy())


@pytest.mark.parametrize(
    "tied, words",
    [
        (["tie", "a"], "True or False for each entry: tied must be real numbers, not text"),
        ([True, None], r"True or False .* missing entry \(None, number 1\)"),
        (pd.Series([True, pd.NA], dtype="boolean"), "number 1"),
    ],
)
def test_ties_that_are_not_true_or_false_are_named(tied, words):
    with pytest.raises(ValueError, match=words):
        Judgements.from_pairs([("a", "b"), ("b", "c")], tied=tied)


def test_errors_name_the_function_that_is_needed():
    with pytest.raises(TypeError, match=r"Judgements.from_pairs\(pairs, tied=tied\)"):
        aggregate([("a", "b")], tied=[True])
    with pytest.raises(TypeError, match=r"from_pairs.. has no parameter 'judges'. Did you mean"):
        Judgements.from_pairs([("a", "b")], judges=["x"])
