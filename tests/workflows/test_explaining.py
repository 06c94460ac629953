"""What the pages promise to those who explain the default ranker by SHAP."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.inspection import permutation_importance


def explained(ranker, X, groups):
    """The sums of SHAP values and base value, which are the scores."""
    shap = pytest.importorskip("shap")
    table = ranker.transform_table(X, groups=groups)
    values = shap.TreeExplainer(ranker.model_.regressor_)(table)
    return values.values.sum(axis=1) + values.base_values


def test_shap_explains_the_fitted_default():
    data = make_ranking(n_queries=60, random_state=0)
    ranker = CalibratedRanker().fit(data.X, data.y, groups=data.groups)
    scores = ranker.decision_function(data.X, groups=data.groups)
    np.testing.assert_allclose(explained(ranker, data.X, data.groups), scores, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n_queries", [100, 1000])
def test_the_default_is_explained_as_one_regressor(n_queries):
    """With few rows and with 20,000, from which on queries are held out."""
    data = make_ranking(
        n_queries=n_queries, n_documents=21, n_features=4, n_informative=4, random_state=0
    )
    ranker = CalibratedRanker().fit(data.X, data.y, groups=data.groups)
    scores = ranker.decision_function(data.X, groups=data.groups)
    np.testing.assert_allclose(explained(ranker, data.X, data.groups), scores, atol=1e-9)
    stack = CalibratedRanker("stacked").fit(data.X, data.y, groups=data.groups)
    with pytest.raises(TypeError, match="distill replaces it with one regressor"):
        stack.transform_table(data.X, groups=data.groups)


@pytest.mark.parametrize(("library", "name"), [("lightgbm", "LGBMRegressor"),
                                               ("xgboost", "XGBRegressor")])  # fmt: skip
def test_shap_reads_categories_of_boosting_libraries(library, name):
    quiet = {"verbose": -1} if library == "lightgbm" else {"enable_categorical": True}
    regressor = getattr(pytest.importorskip(library), name)(n_estimators=20, **quiet)
    data = make_ranking(n_queries=60, random_state=0)
    frame = pd.DataFrame(data.X, columns=[f"f{j}" for j in range(data.X.shape[1])])
    frame["brand"] = pd.Categorical(np.where(data.X[:, 0] > 0, "a", "b"))
    ranker = CalibratedRanker(regressor).fit(frame, data.y, groups=data.groups)
    scores = ranker.decision_function(frame, groups=data.groups)
    np.testing.assert_allclose(explained(ranker, frame, data.groups), scores, atol=1e-5)


def test_a_feature_of_the_query_has_an_importance():
    """A model that needs a column is not told that the column is worth nothing."""
    random = np.random.default_rng(0)
    groups = np.repeat(np.arange(200), 10)
    X = random.normal(size=(2000, 3))
    X[:, 0] = (random.random(200) < 0.5)[groups]
    y = (np.where(X[:, 0] > 0, X[:, 1], X[:, 2]) > 0.8).astype(float)
    train, test = groups < 120, groups >= 120
    ranker = CalibratedRanker("boosting").fit(X[train], y[train], groups=groups[train])
    found = permutation_importance(ranker, X[test], y[test], groups[test], random_state=0)
    assert found.between_queries.tolist() == [True, False, False]
    assert found.importances_mean[0] > 0.05
    without = CalibratedRanker(Ridge()).fit(X[train][:, 1:], y[train], groups=groups[train])
    assert found.baseline > without.score(X[test][:, 1:], y[test], groups=groups[test]) + 0.05
