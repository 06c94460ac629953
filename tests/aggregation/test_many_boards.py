"""Thousands of small boards at once: refusals, labels of a table, pooled audits, plans of all."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation import BradleyTerry, _boards  # limits that tests lower
from sklearn_rankcal.labels import preference_labels

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_rankcal.exceptions.DisconnectedComparisonsWarning"
)


def make_votes(n_queries=80, n_items=6, n_votes=12, position=0.0, noise=1.0, seed=0):
    """Votes of many queries as a table; ties, refusals, and the advantage of the first item."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=(n_queries, n_items)) / noise
    query = np.repeat(np.arange(n_queries), n_votes)
    first = rng.integers(n_items, size=len(query))
    second = (first + rng.integers(1, n_items, size=len(query))) % n_items
    # pairs of the second half of each query are those of the first half, in the other order
    shape = (n_queries, n_votes)
    first, second = first.reshape(shape), second.reshape(shape)
    middle = n_votes // 2
    first[:, middle : 2 * middle], second[:, middle : 2 * middle] = (
        second[:, :middle].copy(), first[:, :middle].copy(),
    )  # fmt: skip
    first, second = first.ravel(), second.ravel()
    lead = strength[query, first] - strength[query, second] + position
    won = rng.random(len(query)) < expit(lead)
    word = np.where(won, "model_a", "model_b").astype(object)
    word[rng.random(len(query)) < 0.1] = "tie"
    table = pd.DataFrame({"query": query, "first": first, "second": second, "winner": word})
    table["refused"] = rng.random(len(query)) < 0.05
    return table


def read(table, **options):
    return Judgements.from_votes(
        table["first"], table["second"], table["winner"], groups=table["query"], **options
    )


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("word", ["refused", None, np.nan, pd.NA])
def test_votes_without_an_answer_are_counted_and_left_out(word):
    table = make_votes()
    marked = table.assign(winner=table["winner"].where(~table["refused"], word))
    refused = word if isinstance(word, str) else None
    votes = read(marked, refused=refused, position=True)
    expected = np.bincount(table["query"], table["refused"])
    np.testing.assert_array_equal(votes.refused, expected)
    kept = read(table[~table["refused"]], position=True)
    assert votes.n_judgements == kept.n_judgements == (~table["refused"]).sum()
    found, wanted = (one.to_labels(*_table(table)) for one in (votes, kept))
    assert _as_pairs(found) == _as_pairs(wanted)
    with pytest.raises(ValueError, match=r"refused=|missing"):
        read(marked)


def test_items_and_queries_of_refused_votes_stay():
    votes = Judgements.from_votes(
        ["a", "a", "c"], ["b", "b", "d"], ["a", "?", "?"], groups=[1, 1, 2], refused="?"
    )
    assert votes.items.tolist() == ["a", "b", "c", "d"] and votes.refused.tolist() == [1, 1]
    audit = aggregate(votes).audit()
    found = {probe.name: probe for probe in audit.probes}["no answer"]
    assert found.fires and "67 % of the votes" in found.finding and "1 query" in found.finding
    # a part of the queries, in another order, keeps its own numbers
    two = votes._of_query(1)[0]
    assert two.refused.tolist() == [1]


def test_a_word_cannot_have_two_meanings():
    with pytest.raises(ValueError, match="refused is 'tie', which is the word for a tie"):
        Judgements.from_votes(["a"], ["b"], ["a"], refused="tie")


# ---------------------------------------------------------------- labels


def _table(votes, seed=0):
    """The query and the document of each row of a feature table, in any order."""
    rows = pd.concat([votes[["query", name]].set_axis(["query", "document"], axis=1)
                      for name in ("first", "second")]).drop_duplicates()  # fmt: skip
    rows = rows.sample(frac=1, random_state=seed)
    return rows["query"].to_numpy(), rows["document"].to_numpy()


def _as_pairs(labels):
    return {
        (row, int(other)): weight
        for row, entry in enumerate(labels)
        for other, weight in zip(
            *np.unique(entry["wins"], return_inverse=True)[:1],
            np.bincount(np.unique(entry["wins"], return_inverse=True)[1], entry["weights"]),
            strict=True,
        )
    }


def test_labels_are_those_of_row_numbers():
    table = make_votes()
    groups, documents = _table(table)
    row = {key: k for k, key in enumerate(zip(groups, documents, strict=True))}
    pairs, weight, owner = [], [], []
    for k, vote in enumerate(table.itertuples()):
        one, other = (row[vote.query, name] for name in (vote.first, vote.second))
        if vote.winner == "tie":
            pairs += [(one, other), (other, one)]
            weight += [0.5, 0.5]
            owner += [k, k]
        else:
            pairs.append((one, other) if vote.winner == "model_a" else (other, one))
            weight.append(1.0)
            owner.append(k)
    wanted = preference_labels(pairs, groups, weight, owner)
    found = read(table).to_labels(groups, documents)
    assert _as_pairs(found) == _as_pairs(wanted)
    assert Judgements.from_labels(found).n_judgements == len(table)


def test_rows_without_votes_and_votes_without_rows():
    votes = Judgements.from_votes(["a"], ["b"], ["a"], groups=["q"], count=[3])
    labels = votes.to_labels(["q", "z", "q", "q"], ["b", "a", "c", "a"])
    assert [one.tolist() for one in labels["wins"]] == [[], [], [], [0]]
    assert labels["weights"][3].tolist() == [3.0]
    with pytest.raises(ValueError, match="compare 'b' of query 'q', which is not in the table"):
        votes.to_labels(["q", "q"], ["a", "c"])
    with pytest.raises(ValueError, match="document 'a' of query 'q' twice, the second time in row"):
        votes.to_labels(["q", "q", "q"], ["a", "b", "a"])


# ---------------------------------------------------------------- the audit of all queries


def audit_of(table, **options):
    return {probe.name: probe for probe in aggregate(read(table, **options)).audit().probes}


def test_the_effect_of_the_position_is_found_whatever_the_scores_are():
    """The estimate is .6 for items that are nearly equal, and for those that are far apart."""
    effects = []
    for noise in (0.4, 1.0, 5.0):
        found = audit_of(make_votes(2000, position=0.6, noise=noise, seed=1))["position"]
        assert found.fires
        effects.append(float(found.finding.split("score were ")[1].split()[0]))
    np.testing.assert_allclose(effects, 0.6, atol=0.08)


@pytest.mark.slow
@pytest.mark.simulation
@pytest.mark.parametrize("noise", [0.4, 3.0])
def test_the_position_fires_by_chance_as_often_as_the_level_says(noise):
    p = [audit_of(make_votes(100, noise=noise, seed=k))["position"].p_value for k in range(200)]
    assert 0.01 <= np.mean(np.array(p) < 0.05) <= 0.09  # 3.1 standard errors around .05


def test_cyclic_triangles_are_counted():
    table = make_votes(40, n_items=5, n_votes=16, noise=3.0)
    votes = read(table)
    cyclic = total = 0
    for _, part in table.groupby("query"):
        net = np.zeros((5, 5))
        for vote in part.itertuples():
            sign = {"model_a": 1, "model_b": -1, "tie": 0}[vote.winner]
            net[vote.first, vote.second] += sign
            net[vote.second, vote.first] -= sign
        for i, j, k in combinations(range(5), 3):
            edges = np.sign([net[i, j], net[j, k], net[k, i]])
            total += bool(edges.all())
            cyclic += bool(abs(edges.sum()) == 3)
    found = {probe.name: probe for probe in aggregate(votes).audit().probes}["cycles"]
    assert f" of {total} triangles" in found.finding
    assert float(found.finding.split()[0]) == pytest.approx(100 * cyclic / total, rel=0.05)


def test_the_audit_does_not_depend_on_names_or_the_order_of_votes():
    table = make_votes(position=0.5)
    shuffled = table.sample(frac=1, random_state=3)
    shuffled["first"] = "d" + shuffled["first"].astype(str)
    shuffled["second"] = "d" + shuffled["second"].astype(str)
    shuffled["query"] = -shuffled["query"]
    one, other = (audit_of(t, refused="?") for t in (table, shuffled))
    assert [p.finding for p in one.values()] == [p.finding for p in other.values()]


def test_pairs_in_one_order_leave_the_position_unknown():
    table = make_votes(position=1.0)
    table = table[table["first"] < table["second"]]
    found = audit_of(table)["position"]
    assert found.fires is None and "both orders" in found.finding
    pairs = Judgements.from_pairs([("a", "b"), ("a", "b")], groups=[1, 2])
    found = {probe.name: probe for probe in aggregate(pairs).audit().probes}
    assert found["position"].fires is None and found["no answer"].fires is None
    with pytest.raises(ValueError, match="Pass group="):
        aggregate(pairs).audit().plot()


def test_the_audit_of_a_query_is_that_of_its_votes_alone():
    table = make_votes(n_votes=60)
    board = aggregate(read(table, position=True))
    alone = aggregate(read(table[table["query"] == 7], position=True))
    assert str(board.audit(group=7)) == str(alone.audit())


def test_one_query_is_asked_about_without_the_models_of_the_others(monkeypatch):
    """One of 2,000 queries took 34 s, because the models of all were fitted."""
    board, fitted = aggregate(read(make_votes(50, n_votes=30))), []
    fit = _boards.fit_board
    monkeypatch.setattr(
        _boards, "fit_board", lambda *args, **k: fitted.append(1) or fit(*args, **k)
    )
    board.next_comparisons(2, group=3)
    assert len(fitted) == 1
    board.audit(group=3)
    assert len(fitted) < 10
    board.next_comparisons(2)
    board.audit()
    assert len(fitted) < 10


# ---------------------------------------------------------------- plans of all queries


@pytest.mark.parametrize("target", ["first", "all"])
@pytest.mark.parametrize("structure", [BradleyTerry(), BradleyTerry(penalty=0.3)])
def test_plans_of_all_queries_are_those_of_each(structure, target):
    table = make_votes(30, n_items=5, n_votes=6, noise=0.5)
    extra = make_votes(10, n_items=8, n_votes=4, seed=4).assign(query=lambda t: t["query"] + 50)
    board = aggregate(read(pd.concat([table, extra], ignore_index=True)), structure)
    together = board.next_comparisons(4, target=target)
    ids = board.judgements.queries.ids.tolist()
    alone = [(q, *pair) for q in ids for pair in board.next_comparisons(4, target=target, group=q)]
    assert together == alone
    with_position = aggregate(read(table, position=True), structure)  # a model of its own each
    assert len(with_position.next_comparisons(2)) == 60


def test_a_target_in_all_queries_must_not_be_an_item():
    with pytest.raises(ValueError, match="several queries"):
        aggregate(read(make_votes(4))).next_comparisons(1, target=3)


@pytest.mark.parametrize("make", [list, tuple, pd.Series, lambda v: np.array(v, dtype=object)])
def test_missing_answers_beside_ids_of_any_type(make):
    """As an array of text, NaN was the word "nan", and pairs as ids had no shape."""
    for one, other in (("a", "b"), (("shop", 1), ("shop", 2)), (1, 2)):
        winner = make([one, np.nan, "tie", None])
        votes = Judgements.from_votes([one] * 4, [other] * 4, winner, refused=None)
        assert votes.refused.tolist() == [2] and votes.query.tolist() == [0, 0]


def test_a_winner_that_is_no_column_is_refused():
    for winner in ("a", 3, None):
        with pytest.raises(ValueError, match=r"winner must be (a sequence|the column)"):
            Judgements.from_votes(["a"], ["b"], winner, refused=None)
