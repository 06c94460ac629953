"""Regressors of CatBoost in every ranker: categories, missing ones, and parameters with lists."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sklearn_rankcal import (
    CalibratedLabelRanker,
    CalibratedRanker,
    QueryKFold,
    RelevanceRegressor,
    ScoreRegressor,
    distill,
    relevance_labels,
)
from sklearn_rankcal.cost_sensitive import LowRankClassifier
from sklearn_rankcal.metrics import get_ranking_scorer
from sklearn_rankcal.models import DocumentModel
from tests.column_tools import boosted, documents

pytest.importorskip("catboost")

NUMBERS, _, G = documents()
KIND = np.random.default_rng(1).integers(0, 4, len(G))
Y = (KIND == 2) + 2 * (KIND == 0)  # no threshold on the codes sorts the kinds
FRAME = NUMBERS.assign(kind=pd.Categorical.from_codes(KIND, categories=list("wxyz")))
CODES = NUMBERS.assign(kind=KIND)


def catboost(**parameters):
    return boosted("catboost", **{"n": 15} | parameters)


TABLES = {
    "text": (FRAME, {}),
    "whole numbers": (FRAME.assign(kind=pd.Categorical(KIND)), {}),
    "floats": (FRAME.assign(kind=pd.Categorical(KIND + 0.5)), {}),
    "named": (FRAME, {"cat_features": ["kind"]}),
    "numbered": (FRAME, {"cat_features": [3]}),
    "codes": (CODES, {"cat_features": ["kind"]}),
    "array": (CODES.to_numpy(), {"cat_features": [3]}),
    "array of whole numbers": (CODES.round().to_numpy().astype(int), {"cat_features": (3,)}),
    "objects": (FRAME.astype(object).to_numpy(), {"cat_features": [3]}),
    "polars": (
        pl.DataFrame({name: CODES[name].to_numpy() for name in NUMBERS}).with_columns(
            kind=pl.Series([*"wxyz"]).gather(KIND).cast(pl.Categorical)
        ),
        {},
    ),
}


@pytest.mark.parametrize("context", ["auto", None])
@pytest.mark.parametrize("name", TABLES)
def test_categories(name, context):
    table, parameters = TABLES[name]
    ranker = CalibratedRanker(catboost(**parameters), context=context).fit(table, Y, groups=G)
    assert ranker.score(table, Y, groups=G) > 0.99
    again = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(again.predict(table, groups=G), ranker.predict(table, groups=G))


def test_missing_and_unseen_categories():
    missing = FRAME.copy()
    missing.loc[KIND == 2, "kind"] = np.nan
    ranker = CalibratedRanker(catboost()).fit(missing, Y, groups=G)
    assert ranker.score(missing, Y, groups=G) > 0.99
    unseen = FRAME.assign(kind=pd.Categorical(["new"] * len(G)))
    assert np.isfinite(ranker.decision_function(unseen, groups=G)).all()


LISTS = {
    "cat_features": ["kind"],
    "monotone_constraints": {"price": 1},
    "feature_weights": [1.0, 2.0, 1.0, 1.0],
}


@pytest.mark.parametrize("name", LISTS)
def test_parameters_with_lists_and_dicts_in_every_ranker(name):
    inner = catboost(**{name: LISTS[name]})
    for regressor in (inner, DocumentModel(inner)):
        one = clone(CalibratedRanker(regressor)).fit(FRAME, Y, groups=G)
        assert one.score(FRAME, Y, groups=G) > 0.99
    if name == "cat_features":
        student = distill(one, FRAME, G, inner)
        assert student.score(FRAME, Y, groups=G) > 0.99
    assert clone(CalibratedRanker(inner)).regressor.get_params() == inner.get_params()
    search = GridSearchCV(
        CalibratedRanker(inner, group_column="qid"),
        {"regressor__depth": [1, 3]},
        scoring=get_ranking_scorer("ndcg@5"),
        cv=QueryKFold(2),
    ).fit(FRAME.assign(qid=G), relevance_labels(Y, G))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    scores = ScoreRegressor(CalibratedRanker(inner)).fit(FRAME, relevance_labels(Y, G))
    assert np.isfinite(scores.predict(FRAME, groups=G)).all()
    if name == "cat_features":
        relevance = RelevanceRegressor(inner).fit(FRAME, relevance_labels(Y, G))
        assert clone(relevance).regressor is not inner


@pytest.mark.parametrize("name", [None, *LISTS])
def test_label_rankers_and_classifiers(name):
    given = {} if name is None else {name: LISTS[name]}
    orders = np.array([[1, 2, 3], [3, 1, 2], [2, 3, 1], [1, 3, 2]])[KIND]
    for loss in ("RMSE", "MultiRMSE"):
        one = CalibratedLabelRanker(catboost(loss_function=loss, n=40, **given))
        assert clone(one).fit(FRAME, orders).score(FRAME, orders) > 0.95
    low_rank = LowRankClassifier(catboost(n=40, **given)).fit(FRAME, KIND)
    assert (low_rank.predict(FRAME) == KIND).mean() > 0.95


def test_a_label_ranker_of_arrays():
    orders = np.array([[1, 2, 3], [3, 1, 2], [2, 3, 1], [1, 3, 2]])[KIND]
    for table in (CODES.to_numpy(), FRAME.astype(object).to_numpy()):
        one = CalibratedLabelRanker(catboost(n=40, cat_features=[3])).fit(table, orders)
        assert one.score(table, orders) > 0.95


def test_validation_queries():
    ranker = CalibratedRanker(catboost(cat_features=["kind"]), validation_queries=0.25)
    ranker.set_params(random_state=0, n_iter_no_change=5).fit(FRAME, Y, groups=G)
    assert ranker.score(FRAME, Y, groups=G) > 0.99 and ranker.n_iter_ <= 15


def test_pairs_name_what_to_do():
    with pytest.raises(ValueError, match=r"cat_features.*pd_by_scores"):
        CalibratedRanker(catboost(cat_features=["kind"]), loss="pd").fit(CODES, Y, groups=G)
