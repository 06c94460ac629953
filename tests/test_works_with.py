"""Rankers with the tools of doc/works_with.rst that have no test file of their own."""

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import BoostedRanker, CalibratedRanker, LinearRanker, relevance_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.metrics import ndcg_score

DATA = make_ranking(n_queries=30, n_documents=8, random_state=0)
X, Y, GROUPS = DATA.X, DATA.y, DATA.groups
LABELS = relevance_labels(Y, GROUPS)
RANKERS = [
    CalibratedRanker("boosting"),
    CalibratedRanker("stacked"),
    CalibratedRanker("boosting", loss="pd"),
    LinearRanker(),
    make_pipeline(StandardScaler(), CalibratedRanker(Ridge())),
]
BOOSTED = [("lightgbm", "LGBMRegressor"), ("xgboost", "XGBRegressor")]
REGRESSORS = [*BOOSTED, ("catboost", "CatBoostRegressor")]


def regressor_of(library, name):
    quiet = {
        "lightgbm": {"verbose": -1},
        "xgboost": {},
        "catboost": {"verbose": 0, "allow_writing_files": False},
    }[library]
    return getattr(pytest.importorskip(library), name)(n_estimators=20, **quiet)


@pytest.mark.parametrize(("library", "name"), REGRESSORS)
def test_regressors_of_boosting_libraries(library, name):
    ranker = CalibratedRanker(regressor_of(library, name), loss="ndcg@5")
    scores = ranker.fit(X, LABELS).decision_function(X, groups=GROUPS)
    assert ndcg_score(Y, scores, groups=GROUPS, k=5) > 0.8
    table = ranker.transform_table(X, groups=GROUPS)
    np.testing.assert_allclose(ranker.model_.regressor_.predict(table), scores)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_data_frames(make):
    columns = {f"f{k}": column for k, column in enumerate(X.T)}
    frame = make(columns | {"qid": [f"query {g}" for g in GROUPS]})
    ranker = CalibratedRanker("boosting", group_column="qid").fit(frame, Y)
    assert list(ranker.feature_names_in_) == list(frame.columns)
    plain = CalibratedRanker("boosting").fit(X, Y, groups=GROUPS)
    np.testing.assert_array_equal(ranker.predict(frame), plain.predict(X, groups=GROUPS))


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_joblib_files(tmp_path, ranker):
    ranker.fit(X, LABELS)
    joblib.dump(ranker, tmp_path / "ranker.joblib", compress=3)
    again = joblib.load(tmp_path / "ranker.joblib")
    np.testing.assert_array_equal(again.predict(X, groups=GROUPS), ranker.predict(X, groups=GROUPS))


def skops_again(ranker):
    io = pytest.importorskip("skops.io")
    data = io.dumps(ranker)
    unknown = io.get_untrusted_types(data=data)
    assert unknown  # the classes of this package, which a user reads before trusting them
    return io.loads(data, trusted=unknown), unknown


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_skops_files(ranker):
    ranker.fit(X, LABELS)
    again, unknown = skops_again(ranker)
    np.testing.assert_array_equal(again.predict(X, groups=GROUPS), ranker.predict(X, groups=GROUPS))
    assert all(name.startswith(("sklearn_rankcal.", "sklearn.")) for name in unknown)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_skops_files_of_boosted_rankers(library):
    pytest.importorskip(library)
    ranker = BoostedRanker(regressor=library).fit(X, Y, groups=GROUPS)
    again, unknown = skops_again(ranker)
    np.testing.assert_array_equal(
        again.decision_function(X, groups=GROUPS), ranker.decision_function(X, groups=GROUPS)
    )
    assert any(name.startswith(f"{library}.") for name in unknown)
