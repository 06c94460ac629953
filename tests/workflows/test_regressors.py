"""What users of gradient boosting write first: it gives the right number, or says what to do."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import (
    BoostedRanker,
    CalibratedLabelRanker,
    CalibratedRanker,
    LinearRanker,
    QueryKFold,
    distill,
    relevance_labels,
)
from sklearn_rankcal.losses import NDCG
from sklearn_rankcal.metrics import get_ranking_scorer
from tests.column_tools import boosted, documents

pytestmark = pytest.mark.usefixtures("few_trees")

FRAME, Y, G = documents(n_queries=40)
X = FRAME.to_numpy()
LABELS = relevance_labels(Y, G)
SHOP = FRAME.assign(brand=np.array(["a", "b", "c", "d"])[np.arange(len(Y)) % 4], query=G)


# -------------------------------------------------------------------- tuning


def test_a_grid_over_the_cutoff_of_a_loss_by_name():
    message = r"loss__k cannot be set, because loss='ndcg'.*loss=sklearn_rankcal.losses.get_loss"
    with pytest.raises(ValueError, match=message):
        GridSearchCV(CalibratedRanker(Ridge()), {"loss__k": [1, 5]}, cv=QueryKFold(2)).fit(
            X, LABELS
        )
    with pytest.raises(ValueError, match=message):
        make_pipeline(StandardScaler(), CalibratedRanker()).set_params(calibratedranker__loss__k=5)
    search = GridSearchCV(
        CalibratedRanker(Ridge(), loss=NDCG()), {"loss__k": [1, 5]}, cv=QueryKFold(2)
    )
    assert search.fit(X, LABELS).best_params_["loss__k"] in (1, 5)


@pytest.mark.parametrize(
    "ranker, name, words",
    [
        (LinearRanker(), "loss__k", "get_loss"),
        (LinearRanker(), "surrogate__eta", "surrogates.SURROGATES"),
        (BoostedRanker(), "regressor__num_leaves", "regressor=lightgbm.LGBMRegressor"),
        (BoostedRanker(), "surrogate__eta", "surrogates.SURROGATES"),
        (CalibratedRanker(), "regressor__max_iter", "default_regressor"),
        (CalibratedRanker(loss="pd"), "decoder__time_limit", "DECODERS"),
        (CalibratedLabelRanker(), "loss__equal_queries", "get_loss"),
        (CalibratedLabelRanker(), "regressor__alpha", "BlendedRegressor"),
    ],
)
def test_parameters_of_what_has_a_name(ranker, name, words):
    with pytest.raises(ValueError, match=f"{name} cannot be set.*{words}"):
        ranker.set_params(**{name: 1})


def test_the_name_of_a_loss_as_a_scorer():
    for loss, measure in {
        "pd": "neg_pairwise_disagreement",
        "neg_pd": "neg_pairwise_disagreement",
        "pd_by_scores": "neg_pairwise_disagreement",
        "map_by_scores": "map",
        "wta": "precision@1",
    }.items():
        assert get_ranking_scorer(loss).name == measure
    ranker = CalibratedRanker(Ridge(), loss="pd").fit(X, Y, groups=G)
    found = get_ranking_scorer("pd")(ranker, X, Y, groups=G)
    assert found == get_ranking_scorer("neg_pairwise_disagreement")(ranker, X, Y, groups=G) < 0


# -------------------------------------------------------------------- regressors that rank


@pytest.mark.parametrize(
    "library, parameters",
    [
        ("lightgbm", {"objective": "lambdarank"}),
        ("lightgbm", {"objective": "xe_ndcg"}),
        ("lightgbm", {"objective_type": "lambdarank"}),
        ("xgboost", {"objective": "rank:ndcg"}),
        ("catboost", {"loss_function": "YetiRank"}),
        ("catboost", {"objective": "QueryRMSE"}),
        ("catboost", {"loss_function": "LambdaMart"}),
    ],
)
def test_an_objective_that_ranks(library, parameters):
    for loss in ("ndcg", "pd"):
        ranker = CalibratedRanker(boosted(library, **parameters), loss=loss)
        with pytest.raises(ValueError, match=r"has the ranking objective '.*'.*Remove the obj"):
            ranker.fit(X, Y, groups=G)


@pytest.mark.parametrize("ranker", [CalibratedRanker, BoostedRanker])
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_early_stopping_of_the_library(library, ranker):
    one = ranker(regressor=boosted(library, early_stopping_rounds=5))
    with pytest.raises(ValueError, match=r"early_stopping_rounds=5.*validation_queries=0.2"):
        one.fit(X, Y, groups=G)
    if library == "lightgbm":
        one = ranker(regressor=boosted(library, n_iter_no_change=5))
        with pytest.raises(ValueError, match=r"n_iter_no_change=5.*validation_queries=0.2"):
            one.fit(X, Y, groups=G)
    one = ranker(regressor=boosted(library), validation_queries=0.2, n_iter_no_change=5)
    assert one.set_params(random_state=0).fit(X, Y, groups=G).n_iter_ >= 1


def test_the_ranker_of_lightgbm_for_dask():
    lightgbm = pytest.importorskip("lightgbm")
    module = pytest.importorskip("sklearn_rankcal.dask")
    dd = pytest.importorskip("dask.dataframe")
    one = module.DaskCalibratedRanker(lightgbm.DaskLGBMRanker(), group_column="query")
    frame = dd.from_pandas(SHOP.drop(columns="brand").assign(y=Y), npartitions=1)
    with pytest.raises(TypeError, match="DaskLGBMRanker is a ranker"):
        one.fit(frame.drop(columns="y"), frame["y"])


# -------------------------------------------------------------------- columns


def test_text_beside_a_column_of_query_ids():
    ranker = CalibratedRanker(group_column="query")
    with pytest.raises(ValueError, match=r"X = X.astype\(\{'brand': 'category'\}\)") as caught:
        ranker.fit(SHOP, Y)
    assert "group_column" not in str(caught.value)  # it is set
    with pytest.raises(ValueError, match="times to numbers, for example to days"):
        ranker.fit(SHOP.assign(brand=pd.Timestamp("2020-01-01")), Y)


@pytest.mark.parametrize("library", ["sklearn", "lightgbm", "xgboost", "catboost"])
def test_text_in_predict_becomes_the_categories_of_fit(library):
    frame = SHOP.drop(columns="query")
    fitted = frame.astype({"brand": "category"})
    y = np.where(frame["brand"] == "c", 2, 0) + (frame["brand"] == "a")
    given = {"enable_categorical": True} if library == "xgboost" else {}
    ranker = CalibratedRanker(boosted(library, **given)).fit(fitted, y, groups=G)
    ranks = ranker.predict(fitted, groups=G)
    np.testing.assert_array_equal(ranker.predict(frame, groups=G), ranks)
    one = frame.iloc[::-1]  # in another order, and in queries without some of the brands
    np.testing.assert_array_equal(
        ranker.decision_function(one, groups=G[::-1])[::-1],
        ranker.decision_function(fitted, groups=G),
    )


def test_rare_categories_are_missing_where_there_are_too_many():
    """Histograms have at most 255 bins; the most frequent categories keep theirs."""
    rng = np.random.default_rng(0)
    n, n_kinds = 3000, 400
    code = np.where(rng.random(n) < 0.5, rng.integers(5, size=n), rng.integers(n_kinds, size=n))
    kinds = np.array([f"k{k}" for k in code])
    groups = np.repeat(np.arange(n // 10), 10)
    x = rng.normal(size=n)
    y = ((code == 3) + 0.3 * x + 0.3 * rng.normal(size=n) > 0.5).astype(int)
    y[np.unique(groups, return_index=True)[1]] = 1  # NDCG is defined on all queries
    frame = pd.DataFrame({"x": x, "kind": pd.Categorical(kinds)})
    for regressor in ("boosting", HistGradientBoostingRegressor(max_bins=100, max_iter=20)):
        ranker = CalibratedRanker(regressor).fit(frame, y, groups=groups)
        assert ranker.score(frame, y, groups=groups) > 0.75
        kept = ranker.model_._frequent["kind"]
        assert len(kept) == (254 if regressor == "boosting" else 99)
        assert kept[:5] == sorted(["k0", "k1", "k2", "k3", "k4"], key=lambda k: -(kinds == k).sum())
        assert min((kinds == k).sum() for k in kept) >= max(
            (kinds == k).sum() for k in {*kinds} - {*kept}
        )
        order = rng.permutation(n)
        again = clone(ranker).fit(frame.iloc[order], y[order], groups=groups[order])
        assert again.model_._frequent == ranker.model_._frequent
    # a rare category has the score of a missing one
    one = CalibratedRanker(regressor, context=None).fit(frame, y, groups=groups)
    missing = frame.assign(kind=frame["kind"].where(np.isin(kinds, kept)))
    np.testing.assert_array_equal(
        one.decision_function(frame, groups=groups), one.decision_function(missing, groups=groups)
    )


def test_many_categories_inside_a_pipeline_say_what_to_do():
    kinds = pd.Categorical([f"k{i % 300}" for i in range(len(Y))])
    frame = FRAME.assign(kind=kinds)
    steps = make_pipeline("passthrough", HistGradientBoostingRegressor(max_bins=100))
    with pytest.raises(ValueError, match="cardinality") as caught:
        CalibratedRanker(steps, context=None).fit(frame, Y, groups=G)
    assert "TargetEncoder" in caught.value.__notes__[0]


def test_predictions_of_one_column_are_scores():
    assert CalibratedRanker(PLSRegression(2)).fit(X, Y, groups=G).score(X, Y, groups=G) > 0.5


# -------------------------------------------------------------------- serving


def test_a_stored_ranker_in_another_process(tmp_path):
    ranker = CalibratedRanker(boosted("sklearn", monotonic_cst=[1, 0, 0])).fit(X, Y, groups=G)
    pd.to_pickle((ranker, X, G), tmp_path / "ranker.pkl")
    code = (
        "import sys, pandas, numpy; ranker, X, G = pandas.read_pickle(sys.argv[1]); "
        "numpy.save(sys.argv[2], ranker.predict(X, groups=G))"
    )
    paths = [str(tmp_path / name) for name in ("ranker.pkl", "ranks.npy")]
    subprocess.run([sys.executable, "-c", code, *paths], check=True)
    np.testing.assert_array_equal(np.load(paths[1]), ranker.predict(X, groups=G))


def test_treelite_predicts_as_a_student():
    treelite = pytest.importorskip("treelite")
    teacher = CalibratedRanker("boosting").fit(FRAME, Y, groups=G)
    student = distill(teacher, FRAME, G, boosted("lightgbm", n=10), context=None)
    regressor = student.model_.regressor_
    model = treelite.frontend.from_lightgbm(regressor.booster_)
    found = treelite.gtil.predict(model, X.astype(np.float64)).ravel()
    np.testing.assert_allclose(found, regressor.predict(FRAME), rtol=1e-5, atol=1e-6)
