"""The table that the regressor of a ranker sees: its rows explain the scores."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import BoostedRanker, CalibratedRanker, LinearRanker
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.models import Model

from ..boosting_tools import regressor as gradient_boosting

pytestmark = pytest.mark.usefixtures("few_trees")

DATA = make_ranking(n_queries=40, n_documents=8, n_features=6, random_state=0)
X, Y, GROUPS = DATA.X, DATA.y, DATA.groups
COLUMNS = list("abcdef")
HB = HistGradientBoostingRegressor(max_iter=10)


@pytest.mark.parametrize("context", [None, "auto", "zscore", "rank", ["difference", "zscore"]])
@pytest.mark.parametrize("regressor", [HB, Ridge(), make_pipeline(StandardScaler(), Ridge())])
def test_predictions_of_the_table_are_the_scores(regressor, context):
    ranker = CalibratedRanker(regressor, loss="ndcg", context=context).fit(X, Y, groups=GROUPS)
    table = ranker.transform_table(X, groups=GROUPS)
    scores = ranker.decision_function(X, groups=GROUPS)
    np.testing.assert_array_equal(ranker.model_.regressor_.predict(table), scores)
    names = ranker.get_feature_names_out()
    assert names.shape == (table.shape[1],) and names.dtype == object
    kinds = {"auto": ["difference"], "zscore": ["zscore"], "rank": ["rank"], None: []}
    kinds = context if isinstance(context, list) else kinds[context]
    columns = ranker.model_.context_.get("zscore", range(6))
    own = [f"x{k}" for k in range(6)]
    assert names.tolist() == own + [f"x{k}__{kind}" for kind in kinds for k in columns]
    if context is None:
        np.testing.assert_array_equal(table, X)
    few = GROUPS < 3  # context columns depend on the rows of the same query only
    np.testing.assert_array_equal(
        ranker.transform_table(X[few], groups=GROUPS[few]), np.asarray(table)[few]
    )


def test_extreme_targets_are_divided_by_a_power_of_two():
    ranker = CalibratedRanker(HB, loss="dcg").fit(X, Y * 1e-49, groups=GROUPS)
    table = ranker.transform_table(X, groups=GROUPS)
    scores = ranker.decision_function(X, groups=GROUPS)
    unit = ranker.model_._unit
    assert unit < 1e-48 and np.frexp(unit)[0] == 0.5
    np.testing.assert_array_equal(ranker.model_.regressor_.predict(table) * unit, scores)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_type_and_lose_the_group_column(make):
    frame = make(dict(zip(COLUMNS, X.T, strict=True)) | {"qid": GROUPS})
    frame = frame[["a", "qid", *COLUMNS[1:]]]
    ranker = CalibratedRanker(HB, loss="ndcg", context="zscore", group_column="qid").fit(frame, Y)
    table = ranker.transform_table(frame)
    assert type(table) is make
    names = COLUMNS + [f"{column}__zscore" for column in COLUMNS]
    assert list(table.columns) == names == ranker.get_feature_names_out().tolist()
    np.testing.assert_array_equal(
        ranker.model_.regressor_.predict(table), ranker.decision_function(frame)
    )
    plain = CalibratedRanker(HB, loss="ndcg", context="zscore").fit(X, Y, groups=GROUPS)
    np.testing.assert_array_equal(table.to_numpy(), plain.transform_table(X, groups=GROUPS))


def test_names_of_columns_that_are_not_text():
    frame = pd.DataFrame(X)
    ranker = CalibratedRanker(HB, loss="ndcg", context="zscore").fit(frame, Y, groups=GROUPS)
    table = ranker.transform_table(frame, groups=GROUPS)
    names = [f"x{k}" for k in range(6)] + [f"x{k}__zscore" for k in range(6)]
    assert table.shape[1] == 12 and ranker.get_feature_names_out().tolist() == names


def test_sparse_tables():
    table = sparse.csr_matrix(X)
    ranker = CalibratedRanker(Ridge(), loss="ndcg", context=None).fit(table, Y, groups=GROUPS)
    seen = ranker.transform_table(table, groups=GROUPS)
    assert sparse.issparse(seen)
    np.testing.assert_array_equal(
        ranker.model_.regressor_.predict(seen), ranker.decision_function(table, groups=GROUPS)
    )


@pytest.mark.parametrize("group_column", [None, "qid"])
def test_linear_rankers_see_the_columns_of_x(group_column):
    ranker = LinearRanker("pairwise_squared", group_column=group_column)
    if group_column is None:
        given, groups = X, GROUPS
    else:
        given, groups = pd.DataFrame({"qid": GROUPS} | dict(zip(COLUMNS, X.T, strict=True))), None
    ranker.fit(given, Y, groups=groups)
    table = ranker.transform_table(given, groups=groups)
    np.testing.assert_array_equal(np.asarray(table), X)
    scores = ranker.decision_function(given, groups=groups)
    np.testing.assert_allclose(
        np.asarray(table) @ ranker.model_.coef_ + ranker.model_.intercept_, scores
    )
    names = COLUMNS if group_column else [f"x{k}" for k in range(6)]
    assert ranker.get_feature_names_out().tolist() == names


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_boosted_rankers_add_a_constant(library):
    pytest.importorskip(library)
    ranker = BoostedRanker("pointwise_logistic", regressor=library, context="zscore")
    ranker.fit(X, Y, groups=GROUPS)
    table = ranker.transform_table(X, groups=GROUPS)
    predicted = np.asarray(ranker.model_.regressor_.predict(table), dtype=np.float64)
    np.testing.assert_array_equal(
        predicted + ranker.model_.start_, ranker.decision_function(X, groups=GROUPS)
    )
    assert ranker.get_feature_names_out()[-1] == "x5__zscore"


# -------------------------------------------------------------------- errors


class Constant(Model):
    """A model of a user's own that does not say what table it sees."""

    def fit(self, training):
        return self

    def predict(self, X, queries):
        return np.zeros(queries.n_rows)


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (
            CalibratedRanker("stacked"),
            "adds the scores of a forest.* distill replaces it with one regressor",
        ),
        (CalibratedRanker("boosting", loss="pd"), r"loss=PD, fits .* ResidualPairModel.*by_scores"),
        (CalibratedRanker(Ridge(), loss="map"), "loss=MAP, fits a model of pairs .* PairModel"),
        (CalibratedRanker(Constant()), "has fitted Constant, which does not provide its table"),
    ],
)
@pytest.mark.filterwarnings("ignore:.* has learned nothing")
def test_models_without_a_table_say_what_to_do(ranker, message):
    few = GROUPS < 12
    labels = np.minimum(Y, 1) if ranker.loss == "map" else Y
    ranker.fit(X[few], labels[few], groups=GROUPS[few])
    with pytest.raises(TypeError, match="transform_table needs a ranker.*" + message):
        ranker.transform_table(X, groups=GROUPS)
    with pytest.raises(TypeError, match="get_feature_names_out needs a ranker.*" + message):
        ranker.get_feature_names_out()
    assert type(ranker).__name__ in ranker._repr_html_()


def test_the_input_is_checked():
    ranker = CalibratedRanker(HB, loss="ndcg", context="zscore")
    for call in (lambda: ranker.transform_table(X), ranker.get_feature_names_out):
        with pytest.raises(NotFittedError):
            call()
    ranker.fit(X, Y, groups=GROUPS)
    with pytest.raises(ValueError, match="fitted with query ids and needs them"):
        ranker.transform_table(X)
    with pytest.raises(ValueError, match="features"):
        ranker.transform_table(X[:, :2], groups=GROUPS)
    with pytest.raises(TypeError, match="no parameter 'qid'"):
        ranker.transform_table(X, qid=GROUPS)


# -------------------------------------------------------------------- SHAP


@pytest.mark.filterwarnings("ignore")  # SHAP's own warnings at import
@pytest.mark.parametrize("regressor", [None, "boosting", "lightgbm", "xgboost"])
def test_shap_values_add_up_to_scores(regressor):
    shap = pytest.importorskip("shap")
    if regressor in (None, "boosting"):
        ranker = CalibratedRanker(regressor, loss="ndcg", context="zscore" if regressor else "auto")
    else:
        pytest.importorskip(regressor)
        ranker = BoostedRanker(regressor=regressor, context="zscore")
    ranker.fit(X, Y, groups=GROUPS)
    table = ranker.transform_table(X, groups=GROUPS)
    explainer = shap.TreeExplainer(ranker.model_.regressor_)
    values = explainer(table, check_additivity=False)
    assert values.shape == (len(X), len(ranker.get_feature_names_out()))
    total = values.values.sum(axis=1) + values.base_values + getattr(ranker.model_, "start_", 0.0)
    np.testing.assert_allclose(total, ranker.decision_function(X, groups=GROUPS), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_shap_reads_categories_of_boosting_libraries(library):
    shap = pytest.importorskip("shap")
    pytest.importorskip(library)
    options = {"enable_categorical": True} if library == "xgboost" else {}
    frame = pd.DataFrame(X, columns=COLUMNS)
    frame["brand"] = pd.Categorical(np.where(X[:, 0] > 0, "a", "b"))
    ranker = CalibratedRanker(gradient_boosting(library, 20, **options)).fit(frame, Y, GROUPS)
    table = ranker.transform_table(frame, groups=GROUPS)
    values = shap.TreeExplainer(ranker.model_.regressor_)(table)
    total = values.values.sum(axis=1) + values.base_values
    np.testing.assert_allclose(total, ranker.decision_function(frame, groups=GROUPS), atol=1e-5)
