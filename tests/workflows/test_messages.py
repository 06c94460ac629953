"""First guesses of users: the right number, or a message with the remedy."""

import unicodedata
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedLabelRanker, CalibratedRanker, Judgements, aggregate
from sklearn_rankcal.aggregation import BradleyTerry
from sklearn_rankcal.decoders import Sort
from sklearn_rankcal.metrics import precision_at_k_score

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
GRADES, QUERIES = np.tile([0, 1, 2, 0], 10), np.repeat(np.arange(10), 4)
TEAMS = ["ajax", "benfica", "celtic", "dortmund"]


def matches(n=200, ties=0, seed=0):
    """Votes between four teams as columns of home, guest and winner."""
    rng = np.random.default_rng(seed)
    home = rng.integers(4, size=n)
    guest = (home + rng.integers(1, 4, size=n)) % 4
    teams = np.array(TEAMS)
    winner = np.where(rng.random(n) < 0.6, teams[home], teams[guest]).astype(object)
    winner[:ties] = "tie"
    return teams[home], teams[guest], winner


# ---------------------------------------------------------------- metrics


def test_a_column_is_queries_of_one_document():
    """The shape is (n_queries, n_documents) for one document, too; a column is told how to."""
    with pytest.warns(UserWarning, match=r"2 queries with one document each.*ravel\(\)"):
        assert precision_at_k_score([[1], [0]], [[0.3], [0.9]], k=1) == 0.5


# ---------------------------------------------------------------- leaderboards


def probe(votes, name):
    return next(one for one in aggregate(votes).audit().probes if one.name == name)


def test_ties_of_all_votes_are_100_percent():
    votes = Judgements.from_votes(["a", "b"] * 5, ["b", "a"] * 5, ["tie"] * 10)
    assert probe(votes, "ties").finding.startswith("100 % of the votes are ties")


def between(one, other):
    """Votes that connect two names, and a third item."""
    pairs = [(one, other), (other, one), (one, "another"), ("another", one)]
    return [pair for pair in pairs for _ in range(20)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Zoë", unicodedata.normalize("NFD", "Zoë")),
        ("\uff41lpha", "alpha"),
        (1, "1"),
        (1.0, "1"),
        ("gpt-4", "GPT 4"),
        ("zero\u200bwidth", "zerowidth"),
    ],
)
def test_names_that_are_the_same(one, other):
    found = probe(between(one, other), "same names")
    assert found.fires
    shown = found.finding.partition(": ")[2].partition(". If")[0].split(" = ")
    assert shown[0] != shown[1], "the two look the same in the message"


@pytest.mark.parametrize(("one", "other"), [("😀", "😁"), ("!", "?"), ("की", "कि"), (1, "2")])
def test_names_that_are_different(one, other):
    assert not probe(between(one, other), "same names").fires


def test_teams_as_features():
    """A table of teams: the column of ids, text, and one column of each category."""
    table = pd.DataFrame({"club": TEAMS, "budget": [3.0, 1, 2, 4], "league": list("nppn")})

    def board(features, **options):
        votes = Judgements.from_votes(*matches(), item_features=features)
        return aggregate(votes, BradleyTerry(**options))

    with pytest.raises(ValueError, match=r"lacks 4 items.*set_index\('club'\)"):
        board(table)
    table = table.set_index("club")
    with pytest.raises(TypeError, match=r"pandas.Series.*|series.to_frame\(\)"):
        board(table["budget"])
    with pytest.raises(ValueError, match="get_dummies"):
        board(table)
    # the advice for columns that add up must not be what the user has done already
    for options in ({"penalty": 1}, {"own_effects": False}):
        with pytest.raises(ValueError, match="drop_first=True") as caught:
            board(pd.get_dummies(table), **options)
        assert "own_effects" not in str(caught.value)
        board(pd.get_dummies(table, drop_first=True), **options)


def test_ties_are_not_predicted_as_impossible():
    """26 % of the votes are ties: a model that has none for them says None, and not 0."""
    columns = matches(100, ties=26)
    first, tie, second = aggregate(Judgements.from_votes(*columns)).predict_vote(*TEAMS[:2])
    assert tie is None and first + second == pytest.approx(1)
    davidson = aggregate(Judgements.from_votes(*columns), BradleyTerry(ties="davidson"))
    assert 0.15 < davidson.predict_vote(*TEAMS[:2]).tie < 0.4
    assert aggregate(Judgements.from_votes(*matches())).predict_vote(*TEAMS[:2]).tie == 0


def test_ties_of_another_query_do_not_count():
    votes = Judgements.from_votes(
        ["a", "b", "a", "b"], ["b", "a", "b", "a"], ["a", "tie", "a", "a"], groups=[0, 0, 1, 1]
    )
    board = aggregate(votes)
    assert board.predict_vote("a", "b", group=0).tie is None
    assert board.predict_vote("a", "b", group=1).tie == 0


# ---------------------------------------------------------------- rankers


def test_negative_labels_name_the_losses_that_take_them():
    with pytest.raises(ValueError, match=r"constant.*'spearman', 'pd_by_scores' or 'pd'"):
        CalibratedRanker(Ridge()).fit(X, GRADES - 1, groups=QUERIES)
    for loss in ("spearman", "pd_by_scores", "pd"):
        CalibratedRanker(Ridge(), loss=loss).fit(X, GRADES - 1, groups=QUERIES)


def test_position_points_to_clicks():
    with pytest.raises(TypeError, match="click_labels"):
        CalibratedRanker(Ridge()).fit(X, GRADES, groups=QUERIES, position=np.tile(range(4), 10))


class ArrayDecoder(Sort):
    def decode(self, *args, **options):
        return super().decode(*args, **options).ranks


def test_a_decoder_that_returns_an_array():
    ranker = CalibratedRanker(Ridge(), decoder=ArrayDecoder()).fit(X, GRADES, groups=QUERIES)
    with pytest.raises(TypeError, match=r"ArrayDecoder.decode must return.*DecodeResult"):
        ranker.predict(X, groups=QUERIES)
    labels = CalibratedLabelRanker(Ridge(), loss="spearman", decoder=ArrayDecoder())
    labels.fit(X, np.tile([1, 2, 3], (40, 1)))
    with pytest.raises(TypeError, match=r"ArrayDecoder.decode must return.*DecodeResult"):
        labels.predict(X)


class Bare:
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize("ranker", [CalibratedRanker, CalibratedLabelRanker])
def test_a_regressor_without_base_class(ranker):
    options = {"groups": QUERIES} if ranker is CalibratedRanker else {}
    y = GRADES if options else np.tile([1, 2, 3], (40, 1))
    with pytest.raises(TypeError, match=r"class Bare\(RegressorMixin, BaseEstimator\)"):
        ranker(Bare()).fit(X, y, **options)


# ---------------------------------------------------------------- tables of a shop


def shop(n_searches=40):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"search": np.repeat(np.arange(n_searches), 10)})
    table["price"] = rng.normal(size=len(table))
    table["label"] = rng.integers(0, 4, len(table))
    return table


def test_the_label_among_the_features():
    table = shop()
    ranker = CalibratedRanker(Ridge(), group_column="search")
    with pytest.warns(UserWarning, match=r"Column 'label' of X has the label of each row.*Drop it"):
        ranker.fit(table, table["label"])
    with pytest.warns(UserWarning, match="Column 'label' of X has the label of each row"):
        CalibratedRanker(Ridge()).fit(
            table[["price", "label"]].astype({"label": bool}),
            (table["label"] > 0).astype(int),
            groups=table["search"],
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker.fit(table[["search", "price"]], table["label"])
        ranker.fit(table.assign(label=table["label"] + 1), table["label"])


def test_one_sign_too_many_may_be_that_of_the_query_ids():
    table = shop()
    constrained = HistGradientBoostingRegressor(monotonic_cst=[0, -1])
    ranker = CalibratedRanker(constrained, group_column="search")
    with pytest.raises(ValueError, match="2 entries, but X has 1 column without the query ids"):
        ranker.fit(table[["search", "price"]], table["label"])


# ---------------------------------------------------------------- matches of a club


def test_a_column_that_names_the_team_at_home():
    first, second, winner = matches()
    home = np.where(np.arange(200) < 50, second, first)
    with pytest.raises(ValueError, match=r"position has text.*\(home == first\)\.astype"):
        Judgements.from_votes(first, second, winner, position=home)
    with pytest.raises(ValueError, match=r"position has booleans.*If False is neutral ground"):
        Judgements.from_votes(first, second, winner, position=home == first)
    signs = (home == first).astype(int) - (home == second).astype(int)
    names = [one.name for one in aggregate(Judgements.from_votes(
        first, second, winner, position=signs)).coefficients]  # fmt: skip
    assert names == ["position"]
    Judgements.from_votes(first, second, winner, position=np.ones(200, dtype=bool))


def test_words_for_home_guest_and_draw():
    first, second, winner = matches()
    words = np.where(winner == first, "H", "A")
    with pytest.raises(ValueError, match="replace other words for the items by these"):
        Judgements.from_votes(first, second, words, tie="D")


# ---------------------------------------------------------------- prices of a shop


def prices(n_searches=120):
    """Products whose price matters in comparison with that of the others of the search."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"search": np.repeat(np.arange(n_searches), 10)})
    level = np.repeat(rng.lognormal(3, 1, n_searches), 10)
    table["price"] = level * rng.uniform(0.5, 1.8, len(table))
    appeal = -2 * table["price"] / level + 0.3 * rng.normal(size=len(table))
    table["label"] = np.digitize(appeal, [-3, -2, -1.4])
    return table, table["search"] < 80


def test_decimals_of_a_data_base_are_numbers(few_trees):
    table, old = prices()
    floats = table[["search", "price"]].assign(price=table["price"].round(2))
    decimals = floats.assign(price=[Decimal(f"{price:.2f}") for price in floats["price"]])
    fitted = [
        CalibratedRanker("boosting", group_column="search").fit(X[old], table["label"][old])
        for X in (floats, decimals)
    ]
    assert fitted[1].model_.context_ == fitted[0].model_.context_ == {"zscore": ["price"]}
    ranks = [ranker.predict(X) for ranker, X in zip(fitted, (floats, decimals), strict=True)]
    np.testing.assert_array_equal(*ranks)
