"""BoostedRanker: trees of LightGBM and XGBoost on the gradients of surrogates."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge

from sklearn_rankcal import BoostedRanker, CalibratedRanker, preference_labels
from sklearn_rankcal.boosting import _boosted_ranker as _boosted  # a search that is replaced
from sklearn_rankcal.boosting._boosted_ranker import boosted_regressor
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.estimator_checks import (
    check_ranker_frame_equals_array,
    check_ranker_sparse_equals_dense,
    yield_ranker_checks,
)
from sklearn_rankcal.losses import MAP
from sklearn_rankcal.models._model import Validation
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import PointwiseMargin

from ..boosting_tools import regressor

DATA = make_ranking(90, (3, 10), 6, random_state=0)
DATA.y[np.unique(DATA.groups, return_index=True)[1]] = 2  # NDCG is defined on every query
OUT = DATA.groups >= 65
X, Y, G = DATA.X[~OUT], DATA.y[~OUT], DATA.groups[~OUT]
X_VAL, Y_VAL, G_VAL = DATA.X[OUT], DATA.y[OUT], DATA.groups[OUT]
BOTH = pytest.mark.parametrize("library", ["lightgbm", "xgboost"])


def ranker(library, surrogate="softmax", n=20, inner=(), **parameters):
    return BoostedRanker(surrogate, regressor=regressor(library, n, **dict(inner)), **parameters)


# -------------------------------------------------------------------- what it fits


@pytest.mark.parametrize("weighted", [False, True])
def test_squared_error_equals_the_regressor_alone(weighted):
    weight = np.where(G % 2, 2.0, 1.0) if weighted else None
    # LightGBM counts the rows of a leaf by rounded sums of curvatures, which depend on their scale.
    # In later trees, rounding decides between splits that are equally good.
    inner = regressor("lightgbm", 5, min_child_weight=0, min_child_samples=0)
    ours = BoostedRanker("pointwise_squared", regressor=inner, context=None)
    ours.fit(X, Y, groups=G, sample_weight=weight)
    theirs = CalibratedRanker(inner, context=None, center=False)
    theirs.fit(X, Y, groups=G, sample_weight=weight)
    one = ours.decision_function(X_VAL, groups=G_VAL)
    other = theirs.decision_function(X_VAL, groups=G_VAL)
    np.testing.assert_allclose(one - one.mean(), other - other.mean(), atol=1e-5)
    assert np.ptp(one) > 0.1


@BOTH
@pytest.mark.parametrize("surrogate", ["softmax", "pairwise_logistic", "pointwise_logistic"])
def test_training_reduces_the_surrogate(library, surrogate):
    few, many = (ranker(library, surrogate, n=n).fit(X, Y, groups=G) for n in (1, 60))
    targets = many.surrogate_.targets(many.loss_, Y.astype(float), Queries.from_groups(G))
    queries = Queries.from_groups(G)
    values = [
        many.surrogate_.evaluate(targets, one.decision_function(X, groups=G), queries).value.sum()
        for one in (few, many)
    ]
    assert values[1] < 0.9 * values[0]
    assert many.score(X_VAL, Y_VAL, groups=G_VAL) > 0.7


@BOTH
def test_context_columns_and_importances(library):
    inner = regressor(library)
    one = BoostedRanker(regressor=inner, context=["zscore", "rank"]).fit(X, Y, groups=G)
    assert one.model_.context_ == {"zscore": [0, 1, 2, 3, 4, 5], "rank": [0, 1, 2, 3, 4, 5]}
    own = np.asarray(one.model_.regressor_.feature_importances_, dtype=float)
    assert own.shape == (18,)
    np.testing.assert_allclose(one.feature_importances_, own.reshape(3, 6).sum(axis=0))
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(qid=G)
    other = BoostedRanker(regressor=inner, group_column="qid").fit(frame, Y)
    assert other.feature_importances_.shape == (7,) and other.feature_importances_[6] == 0


@BOTH
def test_weights_are_those_of_queries(library):
    rng = np.random.default_rng(0)
    weight = rng.random(len(Y)) + 0.1
    mean = np.array([weight[G == g].mean() for g in G])
    one, other, scaled, plain = (
        ranker(library, context=None).fit(X, Y, groups=G, sample_weight=w)
        for w in (weight, mean, 1000 * mean, None)
    )
    scores = one.decision_function(X)
    np.testing.assert_allclose(other.decision_function(X), scores, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(scaled.decision_function(X), scores, rtol=1e-4, atol=1e-5)
    assert not np.allclose(plain.decision_function(X), scores, atol=1e-2)


@BOTH
def test_queries_of_weight_0_are_left_out(library):
    weight = np.where(G < 10, 0.0, 2.0)
    one = ranker(library).fit(X, Y, groups=G, sample_weight=weight)
    other = ranker(library).fit(X[G >= 10], Y[G >= 10], groups=G[G >= 10])
    assert one.n_queries_dropped_ == 10
    np.testing.assert_array_equal(
        one.predict(X_VAL, groups=G_VAL), other.predict(X_VAL, groups=G_VAL)
    )


def test_what_the_surrogate_is_calibrated_over():
    one = ranker("lightgbm", "softmax").fit(X, Y, groups=G)
    assert one.calibrated_over_ == one.loss_.calibrated_over
    other = ranker("lightgbm", "ranknet").fit(X, Y, groups=G)
    assert other.calibrated_over_.startswith("no distributions in general")
    assert "Duchi" in other.calibrated_over_


def test_the_surrogate_is_resolved():
    one = ranker("lightgbm", "pointwise_logistic").fit(X, Y, groups=G)
    assert one.surrogate_.eta == one.model_.surrogate_.eta > 0
    with pytest.raises(ValueError, match="utilities of at most eta"):
        ranker("lightgbm", PointwiseMargin("logistic", eta=1e-3)).fit(X, Y, groups=G)


def test_preferences_as_labels():
    labels = []
    for groups, y in ((G, Y), (G_VAL, Y_VAL)):
        better = (groups[:, None] == groups) & (y[:, None] > y)
        labels.append(preference_labels(np.argwhere(better), groups))
    one = ranker("lightgbm", "difference_graph", loss="pd_by_scores").fit(X, labels[0])
    assert one.score(X_VAL, labels[1]) > 0.55
    with pytest.raises(ValueError, match="needs utilities >= 0"):
        ranker("lightgbm", "softmax", loss="pd_by_scores").fit(X, labels[0])


@BOTH
def test_pickles_hold_no_training_data(library):
    one = ranker(library, n=2).fit(np.repeat(X, 20, axis=0), np.repeat(Y, 20), np.repeat(G, 20))
    text = pickle.dumps(one)
    assert len(text) < 60_000 < 8 * 20 * len(Y)
    again = pickle.loads(text)
    np.testing.assert_array_equal(
        again.predict(X_VAL, groups=G_VAL), one.predict(X_VAL, groups=G_VAL)
    )
    assert clone(one.model_.regressor_).get_params()["objective"] in (None, "reg:squarederror")


# -------------------------------------------------------------------- validation queries


@BOTH
def test_training_goes_on_while_the_measure_or_the_surrogate_improves(library, monkeypatch):
    seen, record = [], Validation.record
    monkeypatch.setattr(
        Validation, "record", lambda self, u: (seen.append(u.copy()), record(self, u))
    )
    one = ranker(library, n=120, n_iter_no_change=10).fit(
        X, Y, groups=G, X_val=X_VAL, y_val=Y_VAL, groups_val=G_VAL
    )
    scores = one.validation_scores_
    queries = Queries.from_groups(G_VAL)
    targets = one.loss_.training_targets(Y_VAL, queries)
    errors = [one.surrogate_.evaluate(targets, u, queries).value.mean() for u in seen]
    assert one.n_iter_ == max(np.argmax(scores), np.argmin(errors)) + 1
    assert len(scores) == min(120, one.n_iter_ + 10)
    assert one.score(X_VAL, Y_VAL, groups=G_VAL) == pytest.approx(scores[one.n_iter_ - 1])
    again = ranker(library, n=one.n_iter_).fit(X, Y, groups=G)
    np.testing.assert_allclose(
        again.decision_function(X_VAL, groups=G_VAL), one.decision_function(X_VAL, groups=G_VAL),
        rtol=1e-5, atol=1e-6,
    )  # fmt: skip


@BOTH
def test_queries_are_held_out(library):
    one = ranker(library, n=50, validation_queries=0.25, random_state=3, n_iter_no_change=5)
    one.fit(X, Y, groups=G)
    assert len(one.validation_queries_) == round(0.25 * 65)
    kept = ~np.isin(G, one.validation_queries_)
    other = clone(one).set_params(validation_queries=None)
    other.fit(X[kept], Y[kept], groups=G[kept], X_val=X[~kept], y_val=Y[~kept], groups_val=G[~kept])
    np.testing.assert_allclose(other.validation_scores_, one.validation_scores_)
    one.set_params(validation_queries=None).fit(X, Y, groups=G)
    assert not hasattr(one, "n_iter_")


@pytest.mark.parametrize("surrogate", ["pointwise_logistic", "pairwise_logistic", "cosine"])
def test_validation_queries_may_have_larger_utilities(surrogate):
    """The utilities of a pointwise surrogate are bounded by those of the training queries."""
    y = np.minimum(Y, 1)
    one = ranker("lightgbm", n=20, surrogate=surrogate, loss="dcg").fit(
        X, y, groups=G, X_val=X_VAL, y_val=4 * Y_VAL, groups_val=G_VAL
    )
    kept = one.validation_scores_[one.n_iter_ - 1]
    assert one.score(X_VAL, 4 * Y_VAL, groups=G_VAL) == pytest.approx(kept)


def test_the_default_has_more_trees_with_validation_queries():
    pytest.importorskip("lightgbm")
    assert boosted_regressor("lightgbm", 100).n_estimators == 100
    assert boosted_regressor("lightgbm", 100, stops_early=True).n_estimators == 1000
    assert [boosted_regressor("lightgbm", n).num_leaves for n in (10**4, 10**5, 10**6)] == [
        7,
        15,
        31,
    ]


# -------------------------------------------------------------------- what libraries do


def test_monotone_constraints_that_do_not_fit():
    wrong = {"Pass monotone_constraints as a list": "a:1", "has 1 entry": [1]}
    for words, given in wrong.items():
        with pytest.raises(ValueError, match=words):
            ranker("lightgbm", inner={"monotone_constraints": given}, context="zscore").fit(
                X, Y, groups=G
            )


@BOTH
def test_categories_and_missing_values(library):
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 4, len(Y))
    y = (kind == 2) + (kind == 0) * 2  # no threshold on the codes sorts the kinds
    value = np.where(rng.random(len(Y)) < 0.3, np.nan, rng.normal(size=len(Y)))
    frame = pd.DataFrame(
        {"kind": pd.Categorical.from_codes(kind, categories=list("wxyz")), "value": value}
    )
    parameters = {"enable_categorical": True, "tree_method": "hist"} if library == "xgboost" else {}
    if library == "lightgbm":
        parameters = {"min_data_per_group": 1, "cat_smooth": 1.0}
    one = ranker(library, inner=parameters).fit(frame, y, groups=G)
    assert list(one.model_.context_["difference"]) == ["value"]
    assert one.score(frame, y, groups=G) > 0.99
    shown = one.feature_importances_
    assert shown.shape == (2,) and shown[0] > 0


@BOTH
def test_sparse_tables(library):
    # scikit-learn's sparse zeros are numbers for LightGBM, and missing values for XGBoost
    table = np.where(np.abs(X) > 0.7, X, 0.0)
    with pytest.warns(UserWarning, match="X is sparse, and context='auto' adds z-scores to dense"):
        one = ranker(library).fit(sparse.csr_matrix(table), Y, groups=G)
    assert one.model_.context_ == {}
    if library == "lightgbm":
        other = ranker(library, context=None).fit(table, Y, groups=G)
        np.testing.assert_allclose(
            one.decision_function(sparse.csr_matrix(table), groups=G),
            other.decision_function(table),
            atol=1e-9,
        )
    assert one.score(sparse.csr_matrix(table), Y, groups=G) > 0.8


@BOTH
@pytest.mark.parametrize("surrogate", ["softmax", "pairwise_logistic"])
def test_the_checks_of_rankers(library, surrogate):
    # XGBoost reads the zeros of a sparse table as missing values, and needs pyarrow for polars
    other = {check_ranker_sparse_equals_dense, check_ranker_frame_equals_array}
    for check in yield_ranker_checks():
        if library == "lightgbm" or check not in other:
            check(ranker(library, surrogate))


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "parameters, error, words",
    [
        ({"surrogate": "sofmax"}, ValueError, "Unknown surrogate"),
        ({"loss": "pd"}, ValueError, "is a function of scores"),
        ({"loss": MAP(threshold=1)}, ValueError, "is a function of scores"),
        ({"surrogate": "softmax", "loss": "spearman"}, ValueError, "needs utilities >= 0"),
        ({"regressor": Ridge()}, TypeError, "must be an LGBMRegressor or an XGBRegressor"),
        ({"regressor": "catboost"}, ValueError, "regressor"),
        ({"context": "zscores"}, ValueError, "zscores"),
        ({"validation_queries": 1.5}, ValueError, "validation_queries"),
    ],
)
def test_bad_parameters(parameters, error, words):
    pytest.importorskip("lightgbm")
    with pytest.raises(error, match=words):
        BoostedRanker(**parameters).fit(X, Y, groups=G)


@pytest.mark.filterwarnings("ignore:`XGBRFRegressor` is deprecated:FutureWarning")  # XGBoost 3.4
@BOTH
def test_regressors_that_cannot_take_the_surrogate(library):
    module = pytest.importorskip(library)
    own = "poisson" if library == "lightgbm" else "count:poisson"
    with pytest.raises(ValueError, match="The surrogate is the objective"):
        ranker(library, inner={"objective": own}).fit(X, Y, groups=G)
    other = module.LGBMRanker() if library == "lightgbm" else module.XGBRFRegressor()
    with pytest.raises(TypeError, match="must be an LGBMRegressor or an XGBRegressor"):
        BoostedRanker(regressor=other).fit(X, Y, groups=G)
    with pytest.raises(ValueError, match="early_stopping_rounds"):
        ranker(library, inner={"early_stopping_rounds": 3}, validation_queries=0.3).fit(
            X, Y, groups=G
        )


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(_boosted, "find_spec", lambda name: None)
    for given, name in ((None, "LightGBM or XGBoost"), ("xgboost", "xgboost")):
        with pytest.raises(ImportError, match=rf"needs {name}.*sklearn_rankcal\[boosting\]"):
            BoostedRanker(regressor=given).fit(X, Y, groups=G)


def test_scores_are_no_estimates_of_targets():
    one = ranker("lightgbm").fit(X, Y, groups=G)
    assert np.isnan(one.diagnose(X_VAL, G_VAL, Y_VAL).regret_bound)
    other = CalibratedRanker(regressor("lightgbm")).fit(X, Y, groups=G)
    assert other.diagnose(X_VAL, G_VAL, Y_VAL).regret_bound > 0


@BOTH
@pytest.mark.parametrize("validation", [None, 0.3])
@pytest.mark.filterwarnings("ignore:.* has learned nothing")
def test_columns_that_cannot_be_split(library, validation):
    one = ranker(library, n=3, validation_queries=validation, random_state=0)
    one.fit(np.ones((len(Y), 2)), Y, groups=G)
    assert np.ptp(one.decision_function(np.ones((5, 2)), groups=[0] * 5)) == 0
    if validation is not None:
        assert one.n_iter_ == 1
    few = ranker(library, context=None).fit(X[:4], Y[:4], groups=[0, 0, 1, 1])
    assert np.isfinite(few.decision_function(X)).all()
