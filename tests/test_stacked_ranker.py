"""The stack inside CalibratedRanker: when it is the default, and what goes through it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from sklearn_rankcal import CalibratedRanker, QueryKFold, preference_labels, relevance_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.exceptions import MissingGroupsWarning
from sklearn_rankcal.metrics import get_ranking_scorer
from sklearn_rankcal.models import (
    DocumentModel,
    ResidualPairModel,
    ResidualProductModel,
    StackedModel,
)

DATA = make_ranking(n_queries=20, n_documents=8, n_features=5, n_informative=3, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups
ALL = ["targets", "borda", "labels", "forest"]


def fit(*args, **parameters):
    return CalibratedRanker(*args, **parameters).fit(X, Y, groups=G)


# -------------------------------------------------------------------- when it is the default


def test_the_default_is_the_stack_where_there_are_enough_queries():
    assert isinstance(fit().model_, StackedModel)
    few = np.isin(G, np.unique(G)[:5])
    assert isinstance(CalibratedRanker().fit(X[few], Y[few], groups=G[few]).model_, StackedModel)
    some = np.isin(G, np.unique(G)[:4])
    fewer = CalibratedRanker().fit(X[some], Y[some], groups=G[some])
    assert isinstance(fewer.model_, DocumentModel)
    np.testing.assert_array_equal(fit().predict(X, G), fit("stacked").predict(X, G))


def test_the_limits_of_the_default():
    from sklearn_rankcal.rankers import _models

    assert _models._MIN_QUERIES == 5
    assert (_models._ROWS_OF_FIVE_FOLDS, _models._MAX_ROWS) == (20_000, 100_000)


def test_the_default_is_one_model_with_many_rows_validation_or_one_query(monkeypatch):
    assert isinstance(fit(validation_queries=0.2).model_, DocumentModel)
    with pytest.warns(MissingGroupsWarning):
        assert isinstance(CalibratedRanker().fit(X, Y).model_, DocumentModel)
    monkeypatch.setattr("sklearn_rankcal.rankers._models._MAX_ROWS", len(Y))
    assert isinstance(fit().model_, DocumentModel)


def test_queries_that_are_left_out_do_not_count():
    few = np.isin(G, np.unique(G)[:5])
    y = np.where(G == G[0], 0, Y)  # NDCG is undefined on the first query
    ranker = CalibratedRanker().fit(X[few], y[few], groups=G[few])
    assert isinstance(ranker.model_, DocumentModel)


def test_the_stack_and_the_single_model_can_be_requested():
    assert list(fit("stacked").model_.weights_) == ALL
    assert isinstance(fit("boosting").model_, DocumentModel)
    with pytest.raises(ValueError, match="'regressor' parameter of CalibratedRanker must be"):
        fit("forest")


def test_many_rows_have_three_folds(monkeypatch):
    assert fit("stacked").model_.cv == 5
    monkeypatch.setattr("sklearn_rankcal.rankers._models._ROWS_OF_FIVE_FOLDS", len(Y) - 1)
    assert fit("stacked").model_.cv == 3


def test_too_few_queries_for_the_stack():
    some = np.unique(G)[:4]
    rows = np.isin(G, some)
    with pytest.raises(ValueError, match="cv=5 folds, but there are only 4 queries"):
        CalibratedRanker("stacked").fit(X[rows], Y[rows], groups=G[rows])


def test_validation_queries_are_for_a_single_model():
    with pytest.raises(TypeError, match="StackedModel cannot stop early"):
        fit("stacked", validation_queries=0.2)


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
    ranker = CalibratedRanker(ResidualPairModel(StackedModel()), loss="pd", validation_queries=0.2)
    with pytest.raises(TypeError, match="StackedModel cannot stop early"):
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


def test_scores_need_the_queries():
    ranker = fit("stacked")
    with pytest.raises(ValueError, match="groups"):
        ranker.decision_function(X)
    scores = ranker.decision_function(X, groups=G)
    means = [scores[q == G].mean() for q in np.unique(G)]
    np.testing.assert_allclose(means, 0, atol=1e-12)


@pytest.mark.parametrize("factor", [1e-200, 3.0, 1e160])
def test_only_ratios_of_weights_count(factor):
    weight = 1.0 + (np.arange(len(Y)) % 3)
    usual = CalibratedRanker("stacked").fit(X, Y, groups=G, sample_weight=weight)
    scaled = CalibratedRanker("stacked").fit(X, Y, groups=G, sample_weight=factor * weight)
    np.testing.assert_array_equal(scaled.predict(X, G), usual.predict(X, G))
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


def test_fit_shows_progress(capsys):
    fit("stacked", verbose=2)
    printed = capsys.readouterr().out
    assert "fitting StackedModel to 160 rows, 5 columns ..." in printed
    assert "[StackedModel] forest, fold 5 of 5: " in printed


def test_the_ranker_can_be_cloned_and_represented():
    ranker = clone(fit("stacked"))
    assert ranker.regressor == "stacked"
    assert "stacked" in repr(ranker)
    assert "stacked" in ranker._repr_html_()
