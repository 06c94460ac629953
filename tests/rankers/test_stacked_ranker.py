"""The stack inside CalibratedRanker: when it is the default, and what goes through it."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from sklearn_rankcal import CalibratedRanker, QueryKFold, preference_labels, relevance_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.metrics import get_ranking_scorer
from sklearn_rankcal.models import (
    BoostingCV,
    DistilledModel,
    DocumentModel,
    ResidualPairModel,
    ResidualProductModel,
    StackedModel,
    Training,
)
from sklearn_rankcal.models._member_weights import nonnegative_weights
from sklearn_rankcal.queries import Queries

from ..covering import covering
from ..few_trees import few_trees  # noqa: F401

pytestmark = pytest.mark.usefixtures("few_trees")

DATA = make_ranking(n_queries=20, n_documents=8, n_features=5, n_informative=3, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups
ALL = ["targets", "borda", "labels", "forest"]
QUERIES = Queries.from_groups(G)


def fit(*args, **parameters):
    return CalibratedRanker(*args, **parameters).fit(X, Y, groups=G)


# -------------------------------------------------------------------- when it is the default


def test_queries_that_are_left_out_do_not_count():
    few = np.isin(G, np.unique(G)[:5])
    y = np.where(G == G[0], 0, Y)  # NDCG is undefined on the first query
    ranker = CalibratedRanker().fit(X[few], y[few], groups=G[few])
    assert type(ranker.model_) is DocumentModel


def test_the_stack_and_the_single_model_can_be_requested():
    assert list(fit("stacked").model_.weights_) == ALL
    assert type(fit("boosting").model_) is BoostingCV
    with pytest.raises(ValueError, match="'regressor' parameter of CalibratedRanker must be"):
        fit("forest")


def test_many_rows_have_three_folds(monkeypatch):
    assert fit("stacked").model_.cv == 5
    monkeypatch.setattr("sklearn_rankcal.rankers._choose_model._ROWS_OF_FIVE_FOLDS", len(Y) - 1)
    assert fit("stacked").model_.cv == 3


def test_too_few_queries_for_the_stack():
    some = np.unique(G)[:4]
    rows = np.isin(G, some)
    with pytest.raises(ValueError, match="cv=5 folds, but there are only 4 queries"):
        CalibratedRanker("stacked").fit(X[rows], Y[rows], groups=G[rows])


def test_a_stack_with_validation_queries():
    """Each member is fitted once; these queries choose the trees of boosted ones, and weights."""
    ranker = fit("stacked", validation_queries=0.25, random_state=0)
    stack = ranker.model_
    assert [len(models) for models in stack.members_.values()] == [1] * 4
    assert not hasattr(stack, "fold_of_query_") and len(ranker.validation_scores_) == 1
    boosted = [n for name in ALL[:3] for n, _ in stack.members_[name][0].sizes_.values()]
    assert ranker.n_iter_ == sum(boosted)
    held = np.isin(G, ranker.validation_queries_)
    queries, trained = Queries.from_groups(G[held]), Queries.from_groups(G[~held])
    forest = stack.members_["forest"][0]
    again = clone(forest).fit(Training(X[~held], Y[~held].astype(float), trained))
    np.testing.assert_array_equal(forest.predict(X, QUERIES), again.predict(X, QUERIES))
    scores = [stack.members_[name][0].predict(X[held], queries) for name in ALL]
    known = Training(None, ranker.loss_.training_targets(Y[held], queries), queries)
    weights, _ = nonnegative_weights(ALL, np.column_stack(scores), known, 30.0)
    assert stack.weights_ == weights
    measure = get_ranking_scorer("ndcg")(ranker, X[held], Y[held], groups=G[held])
    assert ranker.validation_scores_[0] == pytest.approx(measure)


@pytest.mark.parametrize("loss", ["pd", "map"])
def test_scores_of_pairs_can_be_a_stack_with_validation_queries(loss):
    y = np.minimum(Y, 1) if loss == "map" else Y
    ranker = CalibratedRanker("stacked", loss=loss, validation_queries=0.25, random_state=0)
    ranker.fit(X, y, groups=G)
    stack = ranker.model_.scores_
    assert [len(models) for models in stack.members_.values()] == [1] * len(stack.members_)
    assert ranker.n_iter_ > 0 and 0 < ranker.validation_scores_[0] <= 1


def test_errors_of_a_stack_with_validation_queries_name_the_member():
    members = [("bad", None, DocumentModel(ExtraTreesRegressor(-1)))]
    with pytest.raises(ValueError, match="n_estimators") as raised:
        fit(StackedModel(members), validation_queries=0.25)
    assert raised.value.__notes__ == ["This happened in the member 'bad' of the stack."]
    with pytest.raises(TypeError, match="DistilledModel cannot stop early"):
        fit(DistilledModel(), validation_queries=0.25)


# -------------------------------------------------------------------- losses and labels


@pytest.mark.parametrize(
    ("loss", "model"), [("pd", ResidualPairModel), ("map", ResidualProductModel)]
)
def test_losses_on_pairs_have_the_stack_for_their_scores(loss, model):
    y = np.minimum(Y, 1) if loss == "map" else Y
    ranker = CalibratedRanker("stacked", loss=loss).fit(X, y, groups=G)
    assert isinstance(ranker.model_, model)
    stack = ranker.model_.scores_
    assert list(stack.weights_) == [name for name in ALL if loss != "pd" or name != "borda"]
    ranks = ranker.predict(X, G)
    assert all(sorted(ranks[q == G]) == list(range(1, 9)) for q in np.unique(G))


def test_a_model_of_pairs_without_early_stopping_says_so():
    ranker = CalibratedRanker(
        ResidualPairModel(DistilledModel()), loss="pd", validation_queries=0.2
    )
    with pytest.raises(TypeError, match="DistilledModel cannot stop early"):
        ranker.fit(X, Y, groups=G)


@pytest.mark.parametrize("loss", ["pd", "pd_by_scores"])
def test_preferences_have_no_members_that_learn_labels(loss):
    first = np.flatnonzero(np.append(True, G[1:] != G[:-1]))
    pairs = np.column_stack([first, first + 1])
    ranker = CalibratedRanker("stacked", loss=loss).fit(X, preference_labels(pairs, G))
    stack = ranker.model_ if loss == "pd_by_scores" else ranker.model_.scores_
    assert list(stack.weights_) == ["targets"]


def test_calibration_needs_a_member_that_learns_the_targets():
    learns = StackedModel([("a", None, DocumentModel(Ridge()))])
    assert fit(learns).calibrated_over_ == fit(Ridge()).calibrated_over_
    other = StackedModel([("a", "labels", DocumentModel(Ridge()))])
    assert fit(other).calibrated_over_.startswith("no distributions")


# -------------------------------------------------------------------- data


def test_tables_that_a_forest_cannot_read():
    large = X.copy()
    large[0, 0] = 1e39  # more than float32 can hold
    ranker = CalibratedRanker("stacked").fit(large, Y, groups=G)
    assert list(ranker.model_.weights_) == ALL[:3]
    missing = X.copy()
    missing[::7, 1] = np.nan
    ranker = CalibratedRanker("stacked").fit(missing, Y, groups=G)
    assert list(ranker.model_.weights_) == ALL
    assert ranker.predict(missing, G).max() == 8


def test_frames_with_a_group_column():
    frame = pd.DataFrame(X, columns=list("abcde")).assign(qid=G)
    ranker = CalibratedRanker("stacked", group_column="qid").fit(frame, Y)
    np.testing.assert_array_equal(ranker.predict(frame), fit("stacked").predict(X, G))


def in_frames(table):
    frame = pd.DataFrame(table, columns=list("abcde"))
    polars = pytest.importorskip("polars")
    return [frame, frame.astype({"b": "Float64"}), polars.from_pandas(frame)]


def test_a_column_with_numbers_in_one_query_only():
    """Histogram boosting refuses a column of NaN, which every such column is without its fold."""
    table = X.copy()
    table[np.unique(G)[0] != G, 1] = np.nan
    usual = CalibratedRanker("stacked").fit(table, Y, groups=G)
    assert list(usual.model_.weights_) == ALL
    ranks = usual.predict(table, G)
    for other in in_frames(table):
        ranker = CalibratedRanker("stacked").fit(other, Y, groups=G)
        np.testing.assert_array_equal(ranker.predict(other, G), ranks)
    assert np.isnan(table[:, 1]).sum() == 152  # the table was not written to


@pytest.mark.parametrize("regressor", ["boosting", HistGradientBoostingRegressor(max_iter=20)])
@pytest.mark.parametrize("kind", range(4))
def test_a_column_without_a_number(regressor, kind):
    """Whether models are fitted to all queries, or early stopping holds some of them out."""
    table = X.copy()
    table[:, 1] = np.nan
    table = [table, *in_frames(table)][kind]
    for share in (None, 0.2):
        ranker = CalibratedRanker(regressor, validation_queries=share, random_state=0)
        assert ranker.fit(table, Y, groups=G).score(table, Y, G) > 0.8


def test_other_columns_with_values_in_one_query_only():
    inside = np.unique(G)[0] == G
    frame, _, polars = in_frames(X)
    text = np.column_stack([X.astype(str), np.where(inside, "1.5", "nan")]).astype(object)
    tables = [
        text,
        frame.assign(k=pd.Categorical(np.where(inside, "u", None))),
        frame.assign(k=pd.array(np.where(inside, True, None), dtype="boolean")),
    ]
    for value in (True, "1.5"):
        values = [value if chosen else None for chosen in inside]
        column = type(polars["a"])("k", values)
        tables += [frame.assign(k=values), polars.with_columns(column)]
    for table in tables:
        ranker = CalibratedRanker("stacked").fit(table, Y, groups=G)
        assert ranker.score(table, Y, groups=G) > 0.9


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


def test_frames_of_sparse_columns():
    """scikit-learn makes sparse matrices of them, which histogram boosting refuses."""
    frame = pd.DataFrame(np.round(X), columns=list("abcde"))
    sparse = frame.astype(pd.SparseDtype(float, 0.0))
    usual = CalibratedRanker("stacked", context=None).fit(frame, Y, groups=G)
    ranker = CalibratedRanker("stacked", context=None).fit(sparse, Y, groups=G)
    np.testing.assert_array_equal(ranker.predict(sparse, G), usual.predict(frame, G))


@pytest.mark.parametrize(
    ("heavy", "loss"),
    covering(itertools.product([1e2, 1e4, 1e20, 1e49], ["ndcg", "pd_by_scores"])),
)
def test_a_query_that_outweighs_all_others(heavy, loss):
    """The models without it learn as much from the small weights of the other queries."""
    weight = np.where(np.unique(G)[0] == G, heavy, 1 / heavy)
    ranker = CalibratedRanker("stacked", loss=loss).fit(X, Y, groups=G, sample_weight=weight)
    assert ranker.score(X, Y, groups=G, sample_weight=weight) > 0.95
    for models in ranker.model_.members_.values():
        spreads = [np.std(model.predict(X, QUERIES)) for model in models]
        # Weights that underflowed leave a single query, from which a model may learn nothing.
        assert max(spreads) < 10 * min(spread for spread in spreads if spread > 0)


def test_scores_need_the_queries():
    ranker = fit("stacked")
    with pytest.raises(ValueError, match="groups"):
        ranker.decision_function(X)
    scores = ranker.decision_function(X, groups=G)
    means = [scores[q == G].mean() for q in np.unique(G)]
    np.testing.assert_allclose(means, 0, atol=1e-12)


def test_only_ratios_of_weights_count():
    weight = 1.0 + (np.arange(len(Y)) % 3)
    usual = CalibratedRanker("stacked").fit(X, Y, groups=G, sample_weight=weight)
    for factor in (1e-49, 3.0, 1e48):
        scaled = CalibratedRanker("stacked").fit(X, Y, groups=G, sample_weight=factor * weight)
        np.testing.assert_array_equal(scaled.predict(X, G), usual.predict(X, G), str(factor))
    assert not np.array_equal(usual.decision_function(X, G), fit("stacked").decision_function(X, G))


# -------------------------------------------------------------------- as an estimator


def test_random_state_seeds_the_forest():
    first, second = fit("stacked", random_state=1), fit("stacked", random_state=2)
    same = fit("stacked", random_state=1)
    seed = first.model_.members_["forest"][0].regressor_.random_state
    assert seed == same.model_.members_["forest"][0].regressor_.random_state
    assert seed != second.model_.members_["forest"][0].regressor_.random_state
    np.testing.assert_array_equal(
        first.decision_function(X, groups=G), same.decision_function(X, groups=G)
    )


def test_search_over_kinds_of_regressors_and_members():
    stack = StackedModel(
        [
            ("linear", None, DocumentModel(Ridge(), context="zscore")),
            ("forest", "labels", DocumentModel(ExtraTreesRegressor(5, random_state=0))),
        ],
        cv=2,
    )
    grid = [
        {"regressor": [None, "boosting"]},
        {"regressor": [stack], "regressor__forest__regressor__min_samples_leaf": [1, 5]},
    ]
    search = GridSearchCV(
        CalibratedRanker(), grid, cv=QueryKFold(2), scoring=get_ranking_scorer("ndcg@5")
    ).fit(X, relevance_labels(Y, G))
    assert len(search.cv_results_["mean_test_score"]) == 4
    assert (search.cv_results_["mean_test_score"] > 0.5).all()


def test_importances_per_column_of_x():
    forest = DocumentModel(ExtraTreesRegressor(5, random_state=0), context="zscore")
    stack = StackedModel([("forest", None, forest)], cv=2)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.insert(2, "qid", G)
    ranker = CalibratedRanker(stack, group_column="qid").fit(frame, Y)
    assert ranker.feature_importances_.shape == (6,)
    assert ranker.feature_importances_[2] == 0
    assert ranker.feature_importances_.sum() == pytest.approx(1)
    assert not hasattr(fit("stacked"), "feature_importances_")


def test_a_stack_has_no_coefficients():
    with pytest.raises(AttributeError, match=r"no coef_.*model_\.members_"):
        _ = fit("stacked").coef_


def test_a_frame_of_nullable_floats_with_missing_entries():
    frame = pd.DataFrame(X, columns=list("abcde")).astype("Float64")
    frame.iloc[::7, 1] = pd.NA
    numbers = X.copy()
    numbers[::7, 1] = np.nan
    ranker = CalibratedRanker("stacked").fit(frame, Y, groups=G)
    wanted = CalibratedRanker("stacked").fit(numbers, Y, groups=G)
    np.testing.assert_array_equal(ranker.predict(frame, G), wanted.predict(numbers, G))


def test_fit_shows_progress(capsys):
    ranker = fit("stacked", verbose=2)
    ranker.predict(X, G)
    printed = capsys.readouterr().out.splitlines()
    assert "[CalibratedRanker] fitting StackedModel to 160 rows, 5 columns ..." in printed
    # One line for each boosted member and each fit of another, and none of what is inside them.
    own = [line for line in printed if line.startswith("[StackedModel] ")]
    assert len(own) == 8 and own[-1].startswith("[StackedModel] forest, fold 5 of 5: ")
    assert all(line.startswith(("[CalibratedRanker] ", "[StackedModel] ")) for line in printed)
    fit("stacked", verbose=3)
    assert "[BoostingCV] chose targets, " in capsys.readouterr().out


def test_the_ranker_can_be_cloned_and_represented():
    ranker = clone(fit("stacked"))
    assert ranker.regressor == "stacked"
    assert "stacked" in repr(ranker)
    assert "stacked" in ranker._repr_html_()


def test_a_stack_without_importances_names_the_member_and_the_remedy():
    data = make_ranking(n_queries=20, random_state=0)
    ranker = CalibratedRanker().fit(data.X, data.y, groups=data.groups)
    with pytest.raises(AttributeError, match=r"HistGradient.* stack with .*permutation_importance"):
        _ = ranker.feature_importances_


# -------------------------------------------------------------------- counts


@pytest.mark.parametrize("loss", ["ndcg", "dcg@2", "spearman"])
def test_the_poisson_deviance_learns_the_expected_targets(loss):
    """It is a Bregman divergence; negative targets are shifted, by the same number in a query."""
    rng = np.random.default_rng(0)
    kinds = np.tile(np.arange(3), 400)
    y = np.where(kinds == 0, rng.choice([0, 4], len(kinds)), kinds)
    groups = np.repeat(np.arange(400), 3)
    counts = HistGradientBoostingRegressor(
        loss="poisson", learning_rate=0.3, max_iter=200, min_samples_leaf=1
    )
    ranker = CalibratedRanker(counts, loss=loss, context=None).fit(kinds[:, None], y, groups=groups)
    queries = Queries.from_groups(groups)
    targets = ranker.loss_.training_targets(y, queries)
    targets = targets - queries.broadcast(np.minimum(queries.min(targets), 0))
    means = [targets[kinds == kind].mean() for kind in range(3)]
    scores = ranker.decision_function(np.arange(3)[:, None])
    np.testing.assert_allclose(scores, means, rtol=1e-3)
    assert ranker.score(kinds[:, None], y, groups=groups) > 0


def test_the_members_of_many_rows_rank_for_the_loss_and_not_for_net_borda_scores(monkeypatch):
    """A document of grade 4 or 0 has the larger gain, and one of grade 2 is preferred more often.

    Net Borda scores alone are therefore not consistent for NDCG, and as a second member they do no
    harm.
    """
    monkeypatch.setattr("sklearn_rankcal.rankers._choose_model._ROWS_TO_HOLD_OUT", 3000)
    rng = np.random.default_rng(0)
    kinds = np.tile(np.repeat([0, 1], 3), 500)
    y = np.where(kinds == 0, rng.choice([0, 4], len(kinds), p=[0.55, 0.45]), 2)
    groups = np.repeat(np.arange(500), 6)
    orders, values = {}, {}
    for loss in ("ndcg", "pd_by_scores"):
        ranker = CalibratedRanker(loss=loss).fit(kinds[:, None], y, groups=groups)
        orders[loss] = ranker.predict([[0], [1]], groups=[0, 0]).tolist()
        ranks = ranker.predict(kinds[:, None], groups=groups)
        values[loss] = get_loss("ndcg").metric(y, ranks, Queries.from_groups(groups)).mean()
    assert orders == {"ndcg": [1, 2], "pd_by_scores": [2, 1]}
    assert values["ndcg"] > values["pd_by_scores"] + 0.05


def test_validation_queries_know_the_targets_of_each_member():
    """What a member learns chooses its number of trees, wherever its loss is named."""
    inside = np.unique(G)[:5]
    sizes = []
    for loss, losses in (("pd_by_scores", (None,)), (None, ("pd_by_scores",))):
        stack = StackedModel([("borda", loss, BoostingCV(losses))])
        held = np.isin(G, inside)
        ranker = CalibratedRanker(stack, n_iter_no_change=5)
        ranker.fit(X[~held], Y[~held], G[~held], X_val=X[held], y_val=Y[held], groups_val=G[held])
        (member,) = ranker.model_.members_["borda"]
        sizes += member.sizes_.values()
    assert sizes[0] == sizes[1]
