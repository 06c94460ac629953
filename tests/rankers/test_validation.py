"""Validation queries: early stopping of boosted regressors on the measure of the loss."""

import pickle
from itertools import pairwise, product
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn import ensemble
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import CalibratedRanker, QueryKFold, preference_labels, relevance_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.estimator_checks import check_ranker
from sklearn_rankcal.metrics import get_ranking_scorer
from sklearn_rankcal.models import (
    BilinearPairs,
    DocumentModel,
    PairwiseRidge,
    ResidualPairModel,
    default_regressor,
)
from sklearn_rankcal.models._model import Validation  # the curve, which tests record
from sklearn_rankcal.queries import Queries

from ..covering import covering

DATA = make_ranking(90, (3, 10), 6, random_state=0)
# NDCG is defined on every query: its first document is relevant.
DATA.y[np.unique(DATA.groups, return_index=True)[1]] = 2
OUT = DATA.groups >= 65
X, Y, G = DATA.X[~OUT], DATA.y[~OUT], DATA.groups[~OUT]
X_VAL, Y_VAL, G_VAL = DATA.X[OUT], DATA.y[OUT], DATA.groups[OUT]
VAL = {"X_val": X_VAL, "y_val": Y_VAL, "groups_val": G_VAL}


def boosting(name, n, **parameters):
    """An untrained regressor or classifier with at most n iterations, by the name of its class."""
    if name.startswith("Hist"):
        parameters = {"max_iter": n, "early_stopping": False, **parameters}
    elif name.startswith("Gradient"):
        parameters = {"n_estimators": n, "random_state": 0, **parameters}
    elif name.startswith("CatBoost"):
        parameters = {"iterations": n, "verbose": False, "allow_writing_files": False, **parameters}
    else:
        parameters = {"n_estimators": n, **parameters}
    if name.startswith("LGBM"):
        parameters = {"verbose": -1, "min_child_samples": 5, **parameters}
    if name.startswith(("LGBM", "XGB")):
        parameters = {"n_jobs": 1, **parameters}  # threads of parallel test processes would compete
    for library in ("lightgbm", "xgboost", "catboost"):
        if {"lightgbm": "LGBM", "xgboost": "XGB", "catboost": "CatBoost"}[library] in name:
            return getattr(pytest.importorskip(library), name)(**parameters)
    return getattr(ensemble, name)(**parameters)


@pytest.fixture(scope="module")
def plain():
    return CalibratedRanker(n_iter_no_change=5, random_state=0).fit(X, Y, G, **VAL)


def kept_score(ranker):
    """The measure of the validation queries after the iterations that were kept."""
    return ranker.validation_scores_[ranker.n_iter_ - 1]


REGRESSORS = [
    "HistGradientBoostingRegressor",
    "GradientBoostingRegressor",
    "LGBMRegressor",
    "XGBRegressor",
    "CatBoostRegressor",
]
CLASSIFIERS = [
    "HistGradientBoostingClassifier",
    "GradientBoostingClassifier",
    "LGBMClassifier",
    "XGBClassifier",
]

# -------------------------------------------------------------------- which regressor is kept


@pytest.mark.parametrize(("name", "loss"), covering(product(REGRESSORS, ["ndcg@5", "err"])))
def test_the_regressor_is_the_one_with_the_best_number_of_iterations(name, loss, monkeypatch):
    """It is the last one with a new best measure, or a new least error of the targets."""
    seen, record = [], Validation.record
    monkeypatch.setattr(
        Validation,
        "record",
        lambda self, scores: (seen.append(scores.copy()), record(self, scores)),
    )
    learning_rate = {} if name.startswith("Cat") else {"learning_rate": 0.05}
    ranker = CalibratedRanker(boosting(name, 150, **learning_rate), loss=loss, n_iter_no_change=9)
    ranker.fit(X, Y, G, **VAL)
    curve, best = ranker.validation_scores_, ranker.n_iter_
    queries = Queries.from_groups(G_VAL)
    targets = queries.center(ranker.loss_.training_targets(Y_VAL, queries))
    errors = [np.mean((queries.center(scores) - targets) ** 2) for scores in seen]
    assert best == max(np.argmin(errors), np.argmax(curve)) + 1
    assert len(curve) == len(seen) == min(best + 9, 150)
    assert ranker.score(X_VAL, Y_VAL, G_VAL) == pytest.approx(curve[best - 1], abs=1e-12)
    np.testing.assert_array_equal(ranker.validation_queries_, np.unique(G_VAL))
    if name.startswith("Cat"):  # its default learning rate depends on the number of iterations
        learning_rate = {"learning_rate": ranker.model_.regressor_.learning_rate_}
    fixed = CalibratedRanker(boosting(name, best, **learning_rate), loss=loss).fit(X, Y, G)
    np.testing.assert_allclose(
        ranker.decision_function(X_VAL, G_VAL), fixed.decision_function(X_VAL, G_VAL), atol=1e-6
    )
    if hasattr(fixed.model_.regressor_, "feature_importances_"):
        np.testing.assert_allclose(ranker.feature_importances_, fixed.feature_importances_)
    if best == 1:
        return
    fewer = CalibratedRanker(boosting(name, best - 1, **learning_rate), loss=loss).fit(X, Y, G)
    assert fewer.score(X_VAL, Y_VAL, G_VAL) == pytest.approx(curve[best - 2])


@pytest.mark.parametrize(
    "regressor",
    [
        HistGradientBoostingRegressor(max_iter=60, max_features=0.4, min_samples_leaf=3),
        HistGradientBoostingRegressor(max_iter=60, max_features=0.4, random_state=3),
        GradientBoostingRegressor(
            n_estimators=60, subsample=0.5, random_state=np.random.RandomState(0)
        ),
        GradientBoostingRegressor(n_estimators=5),  # fewer than n_iter_no_change
    ],
)
def test_random_trees_are_those_that_were_evaluated(regressor):
    ranker = CalibratedRanker(regressor, n_iter_no_change=7).fit(X, Y, G, **VAL)
    assert ranker.score(X_VAL, Y_VAL, G_VAL) == kept_score(ranker)
    fitted, given = ranker.model_.regressor_, regressor.get_params()
    after = fitted.get_params()
    assert {name: after[name] for name in given if name != "random_state"} == {
        name: given[name] for name in given if name != "random_state"
    }


class LoggedBoosting(HistGradientBoostingRegressor):
    """Histogram boosting that remembers from how many trees to how many each `fit` went."""

    log: ClassVar[list[tuple[int, int]]] = []

    def fit(self, X, y, sample_weight=None):
        before = self.n_iter_ if self.warm_start and hasattr(self, "_predictors") else 0
        self.log.append((before, self.max_iter))
        return super().fit(X, y, sample_weight)


def test_histogram_boosting_grows_in_steps_and_fits_no_tree_twice():
    LoggedBoosting.log.clear()
    regressor = LoggedBoosting(max_iter=250, learning_rate=0.03, max_leaf_nodes=7)
    ranker = CalibratedRanker(regressor, n_iter_no_change=10)
    ranker.fit(X, Y, G, X_val=X, y_val=Y, groups_val=G + 1000)  # improves for long
    steps = LoggedBoosting.log
    ends = [0, 20, 40, 60, 90, 135, 202, 250]
    assert len(steps) > 4
    assert steps == list(pairwise(ends))[: len(steps)]
    assert ranker.n_iter_ == ranker.model_.regressor_.n_iter_ <= steps[-1][1]


def test_steps_of_histogram_boosting_share_their_bins(monkeypatch):
    found = []
    bin_data = HistGradientBoostingRegressor._bin_data

    def count(self, *arguments, **options):
        found.append(self)
        return bin_data(self, *arguments, **options)

    monkeypatch.setattr(HistGradientBoostingRegressor, "_bin_data", count)
    LoggedBoosting.log.clear()
    regressor = LoggedBoosting(max_iter=90, learning_rate=0.03, max_bins=9, max_leaf_nodes=7)
    ranker = CalibratedRanker(regressor, n_iter_no_change=10, context=None)
    ranker.fit(X, Y, G, X_val=X, y_val=Y, groups_val=G + 1000)
    assert len(found) == 1 < len(LoggedBoosting.log)
    assert "_bin_data" not in vars(ranker.model_.regressor_)
    # the trees are those of one fit
    alone = clone(regressor).set_params(max_iter=ranker.n_iter_, early_stopping=False)
    at_once = CalibratedRanker(alone, context=None).fit(X, Y, G)
    np.testing.assert_array_equal(ranker.decision_function(X, G), at_once.decision_function(X, G))


@pytest.mark.parametrize(
    ("measure", "steady", "n_iter"),
    [
        ([3, 1, 1, 1, 1, 1, 1, 1, 1], [1, 2, 3, 4, 5, 4, 4, 4, 4], 5),  # the error still improves
        ([1, 2, 3, 4, 5, 5, 5, 5, 5], [1, 3, 2, 2, 2, 2, 2, 2, 2], 5),  # the measure does
        ([2, 3, 1, 1, 1, 9, 1, 1, 1], [2, 3, 3, 3, 1, 9, 1, 1, 1], 2),  # neither does in time
    ],
)
def test_training_goes_on_while_the_measure_or_the_error_improves(measure, steady, n_iter):
    values, steadier = iter(measure), iter(-10.0 + np.array(steady))
    validation = Validation(None, lambda u: next(values), 3, steady=lambda u: next(steadier))
    while not validation.stops:
        validation.record(np.zeros(1))
    assert validation.n_iter == n_iter and validation.scores == measure[: n_iter + 3]


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize(("loss", "top"), [("dcg@5", 1), ("ndcg@5", 2)])
def test_classifiers_stop_early(name, loss, top):
    y, y_val = np.minimum(Y, top), np.minimum(Y_VAL, top)
    ranker = CalibratedRanker(boosting(name, 20), loss=loss, n_iter_no_change=8)
    ranker.fit(X, y, G, X_val=X_VAL, y_val=y_val, groups_val=G_VAL)
    assert ranker.score(X_VAL, y_val, G_VAL) == pytest.approx(kept_score(ranker))
    assert len(ranker.validation_scores_) == min(ranker.n_iter_ + 8, 20)


def test_the_default_regressor_has_up_to_1000_trees(plain):
    assert plain.model_.regressor_.get_params()["max_iter"] == 1000
    assert plain.model_.regressor_.n_iter_ == plain.n_iter_ < 1000
    assert default_regressor(10).max_iter == 100
    bare = CalibratedRanker(DocumentModel(), n_iter_no_change=5).fit(X, Y, G, **VAL)
    assert bare.model_.regressor_.max_iter == 1000


# -------------------------------------------------------------------- which queries are held out


def test_a_share_holds_out_whole_queries():
    ranker = CalibratedRanker(validation_queries=0.25, n_iter_no_change=5, random_state=0)
    ranker.fit(X, Y, G)
    held_out = ranker.validation_queries_
    assert len(held_out) == round(0.25 * 65) and ranker.n_queries_ == 65
    out = np.isin(G, held_out)
    same = CalibratedRanker(n_iter_no_change=5, random_state=0)
    same.fit(X[~out], Y[~out], G[~out], X_val=X[out], y_val=Y[out], groups_val=G[out])
    np.testing.assert_array_equal(same.validation_scores_, ranker.validation_scores_)
    np.testing.assert_array_equal(
        same.decision_function(X_VAL, G_VAL), ranker.decision_function(X_VAL, G_VAL)
    )
    again = clone(ranker).fit(X, Y, G)
    np.testing.assert_array_equal(again.validation_queries_, held_out)
    other = clone(ranker).set_params(random_state=1).fit(X, Y, G)
    assert set(other.validation_queries_) != set(held_out)


def test_undefined_queries_are_neither_drawn_nor_evaluated():
    """NDCG is undefined on queries of equal labels 0; weights of 0 drop a query too."""
    y, weight = Y.copy(), np.ones(len(Y))
    y[np.isin(G, np.arange(30))] = 0
    weight[np.isin(G, [40, 41])] = 0
    ranker = CalibratedRanker(validation_queries=0.5, n_iter_no_change=3, random_state=0)
    ranker.fit(X, y, G, weight)
    defined = [q for q in range(65) if y[q == G].any() and weight[q == G].any()]
    assert len(ranker.validation_queries_) == round(0.5 * len(defined))
    assert set(ranker.validation_queries_) <= set(defined)
    y_val = np.where(np.isin(G_VAL, [65, 66]), 0, Y_VAL)
    passed = CalibratedRanker(n_iter_no_change=3)
    passed.fit(X, Y, G, X_val=X_VAL, y_val=y_val, groups_val=G_VAL)
    assert not {65, 66} & set(passed.validation_queries_)
    assert passed.score(X_VAL, y_val, G_VAL) == kept_score(passed)


def test_weights_of_validation_rows_are_those_of_score():
    weight = np.random.default_rng(0).uniform(size=len(Y_VAL)) ** 4
    ranker = CalibratedRanker(n_iter_no_change=5).fit(X, Y, G, **VAL, sample_weight_val=weight)
    best = kept_score(ranker)
    assert ranker.score(X_VAL, Y_VAL, G_VAL, sample_weight=weight) == best
    assert ranker.score(X_VAL, Y_VAL, G_VAL) != best
    other = CalibratedRanker(validation_queries=0.3, n_iter_no_change=5, random_state=0)
    heavy = np.linspace(1, 50, len(DATA.y))
    other.fit(DATA.X, DATA.y, DATA.groups, heavy)
    out = np.isin(DATA.groups, other.validation_queries_)
    rows = DATA.X[out], DATA.y[out], DATA.groups[out]
    assert other.score(*rows, sample_weight=heavy[out]) == kept_score(other)
    assert other.score(*rows) != kept_score(other)


@pytest.mark.parametrize("kind", ["pandas", "polars", "labels", "sparse", "shuffled"])
def test_containers_and_ways_to_pass_queries(plain, kind):
    """All give the fit of arrays with groups."""
    parameters = {"n_iter_no_change": 5, "random_state": 0}
    if kind in ("pandas", "polars"):
        ranker = CalibratedRanker(**parameters, group_column="qid")
        frame = pd.DataFrame if kind == "pandas" else pl.DataFrame
        columns = {f"c{i}": DATA.X[:, i] for i in range(6)}
        table, table_val = (
            frame({"qid": DATA.groups[rows], **{name: c[rows] for name, c in columns.items()}})
            for rows in (~OUT, OUT)
        )
        ranker.fit(table, Y, X_val=table_val, y_val=Y_VAL)
        with pytest.raises(ValueError, match=r"\(X_val, y_val, ...\): The feature names"):
            ranker.fit(table, Y, X_val=table_val[["qid", "c1"]], y_val=Y_VAL)
    elif kind == "labels":
        ranker = CalibratedRanker(**parameters)
        labels = relevance_labels(Y, G), relevance_labels(Y_VAL, G_VAL)
        ranker.fit(X, labels[0], X_val=X_VAL, y_val=labels[1])
    elif kind == "sparse":
        ranker = CalibratedRanker(**parameters, context="difference")
        ranker.fit(
            sparse.csr_matrix(X),
            Y,
            G,
            X_val=sparse.csr_matrix(X_VAL),
            y_val=Y_VAL,
            groups_val=G_VAL,
        )
    else:
        rows = np.random.default_rng(0).permutation(len(Y_VAL))
        ranker = CalibratedRanker(**parameters)
        ranker.fit(
            X, Y, G, X_val=X_VAL[rows], y_val=Y_VAL[rows], groups_val=G_VAL[rows].astype(str)
        )
    np.testing.assert_allclose(ranker.validation_scores_, plain.validation_scores_, rtol=1e-12)


def test_sparse_tables_reach_lightgbm_as_they_are():
    regressor = boosting("LGBMRegressor", 60)
    ranker = CalibratedRanker(regressor, context=None, n_iter_no_change=5)
    tables = sparse.csr_matrix(X), sparse.csr_matrix(X_VAL)
    ranker.fit(tables[0], Y, G, X_val=tables[1], y_val=Y_VAL, groups_val=G_VAL)
    assert ranker.score(tables[1], Y_VAL, G_VAL) == kept_score(ranker)


# -------------------------------------------------------------------- losses on pairs


@pytest.mark.parametrize("loss", ["pd", "map"])
def test_default_models_of_pairs_stop_their_scores(loss, monkeypatch):
    """The curve is the measure of the rankings by the scores alone, and they have the targets."""
    seen, record = [], Validation.record
    monkeypatch.setattr(
        Validation, "record", lambda self, u: (seen.append(u.copy()), record(self, u))
    )
    y, y_val = (np.minimum(each, 1) for each in (Y, Y_VAL))
    ranker = CalibratedRanker(loss=loss, n_iter_no_change=5)
    ranker.fit(X, y, G, X_val=X_VAL, y_val=y_val, groups_val=G_VAL)
    scores = ranker.model_.scores_
    assert scores.regressor_.n_iter_ == ranker.n_iter_
    by_scores = CalibratedRanker(loss=f"{loss}_by_scores", context="zscore").fit(X, y, G)
    by_scores.model_ = scores
    assert by_scores.score(X_VAL, y_val, G_VAL) == pytest.approx(kept_score(ranker))
    used = np.isin(G_VAL, ranker.validation_queries_)
    queries = Queries.from_groups(G_VAL[used])
    targets = ranker.loss_.training_targets(y_val[used], queries)
    wanted = queries.center(ranker.model_._score_targets(targets, None))
    errors = [np.mean((queries.center(u) - wanted) ** 2) for u in seen]
    assert ranker.n_iter_ == 1 + max(np.argmin(errors), np.argmax(ranker.validation_scores_))


def test_models_of_pairs_without_boosted_scores_are_refused():
    for model in (BilinearPairs(), PairwiseRidge()):
        with pytest.raises(TypeError, match=r"cannot stop early.*ResidualPairModel"):
            CalibratedRanker(model, loss="pd").fit(X, Y, G, **VAL)
    boosted = boosting("HistGradientBoostingRegressor", 30)
    with pytest.raises(TypeError, match=r"PairModel cannot stop early.*DocumentModel"):
        CalibratedRanker(boosted, loss="pd", validation_queries=0.2).fit(X, Y, G)
    model = ResidualPairModel(DocumentModel(boosted))
    ranker = CalibratedRanker(model, loss="pd", n_iter_no_change=5).fit(X, Y, G, **VAL)
    assert ranker.model_.scores_.regressor_.n_iter_ == ranker.n_iter_


# -------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("regressor", "message"),
    [
        (Ridge(), "Ridge cannot stop early.*These regressors can: HistGradientBoosting"),
        (RandomForestRegressor(), "RandomForestRegressor cannot stop early"),
        (
            make_pipeline(StandardScaler(), HistGradientBoostingRegressor()),
            "Pipeline cannot stop early.*the ranker at the end of the pipeline",
        ),
        (
            TransformedTargetRegressor(HistGradientBoostingRegressor()),
            "TransformedTargetRegressor cannot stop early",
        ),
        (DocumentModel(Ridge()), "Ridge cannot stop early"),
    ],
)
def test_regressors_that_cannot_stop_early(regressor, message):
    ranker = CalibratedRanker(regressor, validation_queries=0.2)
    with pytest.raises(TypeError, match=message):
        ranker.fit(X, Y, G)
    with pytest.raises(TypeError, match=message):
        ranker.set_params(validation_queries=None).fit(X, Y, G, **VAL)


@pytest.mark.filterwarnings("ignore:.* stops early on rows that it holds out")
@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("HistGradientBoostingRegressor", {"early_stopping": True}, "early_stopping=True"),
        ("GradientBoostingRegressor", {"n_iter_no_change": 5}, "n_iter_no_change=5"),
        ("XGBRegressor", {"early_stopping_rounds": 5}, "early_stopping_rounds=5"),
        ("XGBRegressor", {"booster": "gblinear"}, "booster='gblinear'"),
        ("XGBRegressor", {"booster": "dart"}, "booster='dart'"),
        ("XGBRFRegressor", {}, "XGBRFRegressor cannot stop early"),
        ("LGBMRegressor", {"early_stopping_round": 5}, "early_stopping_round=5"),
        ("LGBMRegressor", {"metric": "l1"}, "metric='l1'"),
        ("LGBMRegressor", {"boosting_type": "dart"}, "boosting_type='dart'"),
        ("CatBoostRegressor", {"od_wait": 5}, "od_wait=5"),
        ("CatBoostClassifier", {}, "CatBoostClassifier cannot stop early"),
    ],
)
@pytest.mark.filterwarnings("ignore:`XGBRFRegressor` is deprecated:FutureWarning")  # XGBoost 3.4
def test_parameters_that_contradict_validation_queries(name, parameters, message):
    regressor = boosting(name, 20, **parameters)
    ranker = CalibratedRanker(regressor, loss="dcg", validation_queries=0.2)
    with pytest.raises((TypeError, ValueError), match=message):
        ranker.fit(X, Y, G)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("validation_queries", [0.0, 1.0, -0.1, 1.5, np.nan, "half", True, [0.2]]),
        ("n_iter_no_change", [0, -1, 2.5, None, "x", np.nan, True]),
    ],
)
def test_bad_parameters(name, values):
    for value in values:
        with pytest.raises(ValueError, match=name):
            CalibratedRanker(**{name: value}).fit(X, Y, G)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y_val": None}, "X_val was passed without y_val"),
        ({"X_val": None}, "y_val was passed without X_val"),
        ({"X_val": None, "y_val": None}, "groups_val was passed without X_val"),
        ({"groups_val": None}, "the validation rows have none. Pass groups_val"),
        ({"groups_val": G_VAL - 1}, "1 of 25 validation queries, such as 64, are also training"),
        ({"groups_val": G_VAL[1:]}, r"\(X_val, y_val, ...\): groups has"),
        ({"y_val": Y_VAL[1:]}, r"\(X_val, y_val, ...\): y has"),
        ({"y_val": np.where(Y_VAL == 1, np.inf, Y_VAL)}, r"\(X_val, y_val, ...\): .* NaN"),
        ({"y_val": 0 * Y_VAL}, r"\(X_val, y_val, ...\): NDCG is undefined on all 25 queries"),
        ({"X_val": X_VAL[:, 1:]}, r"\(X_val, y_val, ...\): X has 5 features.* 6 features"),
        ({"sample_weight_val": -np.ones(len(Y_VAL))}, r"\(X_val, y_val, ...\): Negative"),
        ({"sample_weight_val": [1.0]}, r"\(X_val, y_val, ...\): sample_weight.shape"),
    ],
)
def test_bad_validation_data(changed, message):
    with pytest.raises(ValueError, match=message):
        CalibratedRanker().fit(X, Y, G, **{**VAL, **changed})


def test_validation_queries_that_cannot_choose():
    """Every ranking is equally good on all of them."""
    with pytest.raises(ValueError, match="In all 25 queries, all documents have the same label"):
        CalibratedRanker().fit(X, Y, G, **{**VAL, "y_val": 1 + 0 * Y_VAL})
    first = np.unique(G, return_index=True)[1]
    small = np.isin(np.arange(len(Y)), first) | (G >= 60)  # five queries have several documents
    ranker = CalibratedRanker(validation_queries=0.02, random_state=0)
    with pytest.raises(ValueError, match="In the only query, all documents have the same label"):
        ranker.fit(X[small], Y[small], G[small])
    ranker.set_params(validation_queries=0.9, n_iter_no_change=2).fit(X[small], Y[small], G[small])
    y_val, weight = np.where(G_VAL == 65, Y_VAL, 0), 1.0 * (G_VAL != 65)
    with pytest.raises(ValueError, match=r"\(X_val, y_val, ...\): sample_weight is 0 on every"):
        CalibratedRanker().fit(X, Y, G, **{**VAL, "y_val": y_val}, sample_weight_val=weight)


@pytest.mark.parametrize("n_queries", [1, 2, 3, 5])
@pytest.mark.parametrize("n_undefined", [0, 2])
def test_few_validation_queries(n_queries, n_undefined):
    few = np.isin(G_VAL, np.unique(G_VAL)[: n_queries + n_undefined])
    y_val = np.where(np.isin(G_VAL, np.unique(G_VAL)[:n_undefined]), 0, Y_VAL)[few]
    ranker = CalibratedRanker(n_iter_no_change=5)
    ranker.fit(X, Y, G, X_val=X_VAL[few], y_val=y_val, groups_val=G_VAL[few])
    np.testing.assert_array_equal(
        ranker.validation_queries_, np.unique(G_VAL)[n_undefined : n_queries + n_undefined]
    )
    assert ranker.score(X_VAL[few], y_val, G_VAL[few]) == kept_score(ranker)


def test_other_bad_validation_data():
    with pytest.raises(ValueError, match="Use only one of the two"):
        CalibratedRanker(validation_queries=0.2).fit(X, Y, G, **VAL)
    with pytest.raises(ValueError, match=r"at least 2 queries.* There is 1"):
        CalibratedRanker(validation_queries=0.2).fit(X[:9], Y[:9], np.zeros(9))
    one = CalibratedRanker(validation_queries=0.01, n_iter_no_change=3).fit(X, Y, G)
    assert len(one.validation_queries_) == 1


def test_one_query_remains_for_training():
    few = np.isin(G, np.unique(G)[:3])
    ranker = CalibratedRanker(validation_queries=0.95, n_iter_no_change=3, random_state=0)
    ranker.fit(X[few], Y[few], G[few])  # 95 % of 3 queries would be all of them
    assert len(ranker.validation_queries_) == 2


def test_labels_of_another_kind():
    labels = preference_labels([(0, 1)], G_VAL)
    with pytest.raises((TypeError, ValueError), match=r"\(X_val, y_val, ...\).*elevance"):
        CalibratedRanker().fit(X, Y, G, X_val=X_VAL, y_val=labels)


def test_preferences_as_labels():
    """They say which documents of a query are more relevant than others, and give no ids."""

    def preferences(y, groups):
        rows = np.argwhere((groups[:, None] == groups) & (y[:, None] > y))
        return preference_labels(rows, groups)

    ranker = CalibratedRanker(loss="pd_by_scores", n_iter_no_change=5)
    ranker.fit(X, preferences(Y, G), X_val=X_VAL, y_val=preferences(Y_VAL, G_VAL))
    best = kept_score(ranker)
    assert ranker.score(X_VAL, preferences(Y_VAL, G_VAL)) == best


def test_labels_beyond_the_range_of_the_loss():
    with pytest.raises(ValueError, match="max_relevance"):
        CalibratedRanker(loss="err").fit(
            X, Y, G, X_val=X_VAL, y_val=Y_VAL + Y.max(), groups_val=G_VAL
        )


# -------------------------------------------------------------------- early stopping of its own


@pytest.mark.parametrize(
    ("regressor", "n_rows"),
    [
        (HistGradientBoostingRegressor(early_stopping=True, max_iter=3), 100),
        (HistGradientBoostingRegressor(max_iter=3), 10_002),
        (GradientBoostingRegressor(n_iter_no_change=2, n_estimators=3), 100),
        (SGDRegressor(early_stopping=True), 100),
        (make_pipeline(StandardScaler(), SGDRegressor(early_stopping=True)), 100),
        (DocumentModel(HistGradientBoostingRegressor(early_stopping=True, max_iter=3)), 100),
    ],
)
def test_a_split_of_rows_warns(regressor, n_rows):
    rng = np.random.default_rng(0)
    table, y, groups = rng.normal(size=(n_rows, 2)), rng.integers(2, size=n_rows), np.arange(n_rows)
    with pytest.warns(UserWarning, match=r"splits queries between.*validation_queries") as caught:
        CalibratedRanker(regressor).fit(table, y, groups // 3)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    "regressor",
    [
        HistGradientBoostingRegressor(max_iter=3),
        HistGradientBoostingRegressor(max_iter=3, early_stopping=True, validation_fraction=None),
        GradientBoostingRegressor(n_estimators=3),
        None,
    ],
)
@pytest.mark.usefixtures("few_trees")
def test_no_warning_without_a_split(regressor):
    CalibratedRanker(regressor).fit(X, Y, G)


# -------------------------------------------------------------------- tools of scikit-learn


@pytest.mark.parametrize("name", REGRESSORS)
def test_pickles_and_clones(name):
    ranker = CalibratedRanker(boosting(name, 30), n_iter_no_change=5).fit(X, Y, G, **VAL)
    again = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(
        again.decision_function(X_VAL, G_VAL), ranker.decision_function(X_VAL, G_VAL)
    )
    np.testing.assert_array_equal(again.validation_scores_, ranker.validation_scores_)
    assert not hasattr(clone(ranker), "n_iter_")
    # the fitted regressor has no part of the validation left, and can be fitted by itself
    clone(ranker.model_.regressor_).fit(X, Y)
    clone(ranker).set_params(regressor=clone(ranker.model_.regressor_)).fit(X, Y, G, **VAL)


@pytest.mark.usefixtures("few_trees")
def test_a_fit_without_validation_forgets_the_last_one():
    ranker = CalibratedRanker(n_iter_no_change=5).fit(X, Y, G, **VAL)
    ranker.fit(X, Y, G)
    for name in ("n_iter_", "validation_scores_", "validation_queries_"):
        assert not hasattr(ranker, name)


@pytest.mark.usefixtures("few_trees")
def test_ranker_checks():
    check_ranker(CalibratedRanker(validation_queries=0.3, n_iter_no_change=5, random_state=0))


@pytest.mark.usefixtures("few_trees")
def test_metadata_routing_passes_validation_queries():
    plain = CalibratedRanker(n_iter_no_change=5).fit(X, Y, G, **VAL)
    scaled = StandardScaler().fit(X)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            CalibratedRanker(n_iter_no_change=5),
            {"center": [True]},
            cv=QueryKFold(2),
            scoring=get_ranking_scorer("ndcg@5"),
            error_score="raise",
        )
        search.fit(X, Y, groups=G, **VAL)
        np.testing.assert_array_equal(
            search.best_estimator_.validation_scores_, plain.validation_scores_
        )
        with pytest.raises(ValueError, match=r"validation queries, such as .* training queries"):
            search.fit(X, Y, groups=G, X_val=X[:200], y_val=Y[:200], groups_val=G[:200])
        pipeline = Pipeline(
            [("scale", StandardScaler()), ("rank", CalibratedRanker(n_iter_no_change=5))],
            transform_input=["X_val"],
        )
        pipeline.fit(X, Y, groups=G, **VAL)
        by_hand = CalibratedRanker(n_iter_no_change=5)
        by_hand.fit(scaled.transform(X), Y, G, **{**VAL, "X_val": scaled.transform(X_VAL)})
        np.testing.assert_array_equal(pipeline[-1].validation_scores_, by_hand.validation_scores_)
    routed_off = {f"calibratedranker__{name}": value for name, value in VAL.items()}
    alone = make_pipeline("passthrough", CalibratedRanker(n_iter_no_change=5))
    alone.fit(X, Y, calibratedranker__groups=G, **routed_off)
    np.testing.assert_array_equal(alone[-1].validation_scores_, plain.validation_scores_)


# -------------------------------------------------------------------- what users see


@pytest.mark.parametrize("name", REGRESSORS)
def test_verbose_shows_the_progress(name, capsys):
    ranker = CalibratedRanker(boosting(name, 25), n_iter_no_change=40, verbose=1)
    ranker.fit(X, Y, G, **VAL)
    lines = [line for line in capsys.readouterr().out.splitlines() if "iteration" in line]
    assert "of at most 25: " in lines[0] and "s remain" in lines[0]
    assert lines[-1].partition("(")[0].endswith(f"with {ranker.n_iter_} iterations ")
    assert len(lines) <= 22
    ranker.set_params(verbose=0).fit(X, Y, G, **VAL)
    assert capsys.readouterr().out == ""
