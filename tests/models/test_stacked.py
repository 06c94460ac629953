"""CalibratedRanker("stacked"): the boosters of the default in more folds, and a forest."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from sklearn_rankcal import CalibratedRanker, preference_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.metrics import get_ranking_scorer
from sklearn_rankcal.models import BoostingCV, ResidualPairModel, ResidualProductModel, Training
from sklearn_rankcal.queries import Queries

from ..conftest import limit_trees
from ..covering import covering

pytestmark = pytest.mark.usefixtures("few_trees")

DATA = make_ranking(n_queries=20, n_documents=8, n_features=5, n_informative=3, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups
ALL = ["targets", "pd_by_scores", "labels", "forest"]
QUERIES = Queries.from_groups(G)


def fit(*args, **parameters):
    return CalibratedRanker(*args, **parameters).fit(X, Y, groups=G)


@pytest.fixture(scope="module")
def usual():
    """The stack of the data above, which no test changes."""
    with pytest.MonkeyPatch.context() as patch:
        limit_trees(patch)
        return fit("stacked")


def forest_by_hand(inside, y, seed):
    forest = ExtraTreesRegressor(20, min_samples_leaf=5, max_features=0.2, random_state=seed)
    return forest.fit(X[inside], y[inside])


# -------------------------------------------------------------------- what is fitted


def test_the_stack_and_the_single_model_can_be_requested(usual):
    assert list(usual.model_.weights_) == ALL
    assert list(fit("boosting").model_.weights_) == ["targets"]
    with pytest.raises(ValueError, match="'regressor' parameter of CalibratedRanker must be"):
        fit("forest")


def test_many_rows_have_three_folds(usual, monkeypatch):
    assert usual.model_.cv == 5
    monkeypatch.setattr("sklearn_rankcal.rankers._calibrated._ROWS_OF_FIVE_FOLDS", len(Y) - 1)
    assert fit("stacked").model_.cv == 3


def test_the_mean_forest_of_the_folds_is_added_to_the_boosters(usual):
    model = usual.model_
    forest = np.zeros(len(Y))
    for fold in range(5):
        inside, _ = QUERIES.select(model.fold_of_query_ != fold)
        forest += forest_by_hand(inside, Y, fold).predict(X) / 5
    boosted = model.regressor_.predict(model._table(X, QUERIES)[0])
    wanted = boosted + model.weights_["forest"] * forest
    scores = usual.decision_function(X, groups=G)
    np.testing.assert_allclose(scores, wanted, rtol=1e-6, atol=1e-9)
    assert model.weights_["forest"] > 0 and sum(model.shares_.values()) == pytest.approx(1)
    assert f"forest, share {model.shares_['forest']:.2f}" in model.summary()


def test_boosters_of_logarithms_are_summands_beside_the_forest():
    labels = (Y == QUERIES.broadcast(QUERIES.max(Y.astype(float)))).astype(float)
    losses = ("poisson", "poisson_labels")
    known = Training(X, labels, QUERIES, labels=labels)
    model = BoostingCV((None, *losses, "forest"), cv=4).fit(known)
    weights = model.weights_
    assert list(weights) == ["targets", *losses, "forest"] and min(weights.values()) >= 0
    linear = BoostingCV((None,), cv=4).fit(known)
    wanted = weights["targets"] / linear.weights_["targets"] * linear.predict(X, QUERIES)
    for name in losses:
        wanted += weights[name] * BoostingCV((name,), cv=4).fit(known).predict(X, QUERIES)
    for fold in range(4):
        inside, _ = QUERIES.select(model.fold_of_query_ != fold)
        wanted += weights["forest"] * forest_by_hand(inside, labels, fold).predict(X) / 4
    np.testing.assert_allclose(model.predict(X, QUERIES), wanted, rtol=1e-6)


def test_validation_queries_take_the_place_of_the_folds():
    ranker = fit("stacked", validation_queries=0.25, random_state=0)
    model = ranker.model_
    assert len(model.forests_) == 1 and not hasattr(model, "fold_of_query_")
    assert ranker.n_iter_ == sum(n_trees for n_trees, _ in model.sizes_.values())
    held = np.isin(G, ranker.validation_queries_)
    again = forest_by_hand(~held, Y, model.forests_[0].random_state)
    np.testing.assert_array_equal(model.forests_[0].predict(X), again.predict(X))
    measure = get_ranking_scorer("ndcg")(ranker, X[held], Y[held], groups=G[held])
    assert ranker.validation_scores_ == pytest.approx([measure])
    framed = CalibratedRanker("stacked", validation_queries=0.25, random_state=0)
    framed.fit(pd.DataFrame(X).add_prefix("x"), Y, groups=G)
    assert framed.validation_scores_ == ranker.validation_scores_


@pytest.mark.parametrize("share", [None, 0.25])
@pytest.mark.parametrize(
    ("loss", "model"), [("pd", ResidualPairModel), ("map", ResidualProductModel)]
)
def test_losses_on_pairs_have_the_stack_for_their_scores(loss, model, share):
    y = np.minimum(Y, 1) if loss == "map" else Y
    ranker = CalibratedRanker("stacked", loss=loss, validation_queries=share, random_state=0)
    ranker.fit(X, y, groups=G)
    assert isinstance(ranker.model_, model)
    names = list(ranker.model_.scores_.weights_)
    assert names == [name for name in ALL if loss != "pd" or name != "pd_by_scores"]
    ranks = ranker.predict(X, G)
    assert all(sorted(ranks[q == G]) == list(range(1, 9)) for q in np.unique(G))


@pytest.mark.parametrize("loss", ["pd", "pd_by_scores"])
def test_preferences_have_neither_boosters_of_labels_nor_a_forest(loss):
    first = np.flatnonzero(np.append(True, G[1:] != G[:-1]))
    pairs = np.column_stack([first, first + 1])
    ranker = CalibratedRanker("stacked", loss=loss).fit(X, preference_labels(pairs, G))
    model = ranker.model_ if loss == "pd_by_scores" else ranker.model_.scores_
    assert list(model.weights_) == ["targets"] and model.has_table


def test_the_trees_of_the_forest_are_limited_where_rows_are_many(usual, monkeypatch):
    def most_leaves(model):
        return max(tree.get_n_leaves() for forest in model.forests_ for tree in forest)

    monkeypatch.setattr("sklearn_rankcal.models._boosting_cv._LEAVES_OF_FORESTS", 10)
    assert most_leaves(usual.model_) > 10
    monkeypatch.setattr("sklearn_rankcal.models._boosting_cv._ROWS_OF_FULL_TREES", len(Y) - 1)
    assert most_leaves(fit("stacked").model_) == 10


def test_seeds_threads_and_the_order_of_rows():
    first, second = fit("stacked", random_state=1), fit("stacked", random_state=2)
    again = fit("stacked", random_state=1, n_jobs=2)
    scores = [one.decision_function(X, groups=G) for one in (first, second, again)]
    np.testing.assert_array_equal(scores[0], scores[2])
    assert (scores[0] != scores[1]).any()
    order = np.random.default_rng(0).permutation(len(Y))
    other = CalibratedRanker("stacked", random_state=1).fit(X[order], Y[order], groups=G[order])
    assert other.model_.shares_ == pytest.approx(first.model_.shares_, abs=0.1)


def test_a_forest_needs_labels_of_one_number():
    targets = QUERIES.center(Y.astype(float))
    with pytest.raises(ValueError, match="needs the labels"):
        BoostingCV((None, "forest")).fit(Training(X, targets, QUERIES))
    alone = BoostingCV(("forest",)).fit(Training(X, targets, QUERIES, labels=Y.astype(float)))
    assert list(alone.weights_) == ["targets", "forest"]


# -------------------------------------------------------------------- tables


def test_tables_that_a_forest_cannot_read():
    large = X.copy()
    large[0, 0] = 1e39  # more than float32 can hold
    ranker = CalibratedRanker("stacked").fit(large, Y, groups=G)
    model = ranker.model_  # losses can then be dropped
    assert "forest" not in model.weights_ and {*model.weights_, *model.dropped_} == set(ALL[:3])
    brands = pd.DataFrame(X).add_prefix("x").assign(k=pd.Categorical(np.where(G % 2, "u", "v")))
    ranker = CalibratedRanker("stacked").fit(brands, Y, groups=G)
    assert "forest" not in ranker.model_.weights_
    missing = X.copy()
    missing[::7, 1] = np.nan
    ranker = CalibratedRanker("stacked").fit(missing, Y, groups=G)
    assert list(ranker.model_.weights_) == ALL
    assert ranker.predict(missing, G).max() == 8


def test_numbers_beyond_float32_in_new_rows():
    """float32 cannot hold them; for a tree they only are larger than all others."""
    ranker = fit("stacked", context=None)
    assert list(ranker.model_.weights_) == ALL

    def scores(number, container=np.asarray):
        table = X.copy()
        table[::7, 0], table[1::7, 1] = number, -number
        return ranker.decision_function(container(table), groups=G)

    for number in (1e300, np.inf):
        np.testing.assert_array_equal(scores(number), scores(1e30))
    ranker.fit(pd.DataFrame(X), Y, groups=G)
    np.testing.assert_array_equal(scores(np.inf, pd.DataFrame), scores(1e30, pd.DataFrame))


def test_a_column_with_numbers_in_one_query_only():
    """Histogram boosting refuses a column of NaN, which every such column is without its fold."""
    table = X.copy()
    table[np.unique(G)[0] != G, 1] = np.nan
    usual = CalibratedRanker("stacked").fit(table, Y, groups=G)
    assert list(usual.model_.weights_) == ALL
    assert usual.score(table, Y, groups=G) > 0.9
    assert np.isnan(table[:, 1]).sum() == 152  # the table was not written to


def test_frames_with_a_group_column_and_of_sparse_columns():
    """scikit-learn makes sparse matrices of the latter, which histogram boosting refuses."""
    frame = pd.DataFrame(np.round(X), columns=list("abcde"))
    usual = CalibratedRanker("stacked", context=None).fit(frame, Y, groups=G)
    ranks = usual.predict(frame, G)
    named = CalibratedRanker("stacked", context=None, group_column="qid")
    np.testing.assert_array_equal(named.fit(frame.assign(qid=G), Y).predict(frame, G), ranks)
    sparse = frame.astype(pd.SparseDtype(float, 0.0))
    ranker = CalibratedRanker("stacked", context=None).fit(sparse, Y, groups=G)
    np.testing.assert_array_equal(ranker.predict(sparse, G), ranks)


# -------------------------------------------------------------------- weights of rows


@pytest.mark.parametrize(
    ("heavy", "loss"),
    covering(itertools.product([1e2, 1e20, 1e49], ["ndcg", "pd_by_scores"])),
)
def test_a_query_that_outweighs_all_others(heavy, loss):
    """The forests without it learn as much from the small weights of the other queries."""
    weight = np.where(np.unique(G)[0] == G, heavy, 1 / heavy)
    ranker = CalibratedRanker("stacked", loss=loss).fit(X, Y, groups=G, sample_weight=weight)
    assert ranker.score(X, Y, groups=G, sample_weight=weight) > 0.95
    spreads = [np.std(forest.predict(X)) for forest in ranker.model_.forests_]
    # Weights that underflowed leave a single query, from which a forest may learn nothing.
    known = [spread for spread in spreads if spread > 0]
    assert not known or max(spreads) < 10 * min(known)


def test_only_ratios_of_weights_count(usual):
    weight = 1.0 + (np.arange(len(Y)) % 3)
    for model in (BoostingCV(), "stacked"):
        weighted = CalibratedRanker(model).fit(X, Y, groups=G, sample_weight=weight)
        for factor in (1e-49, 1e48):
            scaled = CalibratedRanker(model).fit(X, Y, groups=G, sample_weight=factor * weight)
            np.testing.assert_array_equal(scaled.predict(X, G), weighted.predict(X, G), str(factor))
    assert (weighted.decision_function(X, G) != usual.decision_function(X, G)).any()


def test_fit_shows_progress(capsys):
    fit("stacked", verbose=1)
    printed = capsys.readouterr().out
    assert "[CalibratedRanker] fitting BoostingCV to 160 rows, 5 columns ..." in printed
    assert "; forest, share " in printed
