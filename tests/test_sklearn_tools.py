"""scikit-learn's tools over a ranker: the right number, or an error with the remedy.

`TABLE` says what each tool does, for every way in which the queries can travel, with metadata
routing off and on; doc/scikit_learn.rst shows the same table. "Right" is decided by loops written
out here, which use the ranker's `fit` and `predict` with groups, and measures of their own.
"""

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.exceptions import FitFailedWarning, UnsetMetadataPassedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SelectKBest,
    SequentialFeatureSelector,
    f_regression,
)
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import RANSACRegressor, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.fixes import parse_version

from sklearn_rankcal import (
    CalibratedRanker,
    QueryKFold,
    RelevanceRegressor,
    ScoreRegressor,
    relevance_labels,
)
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.metrics import get_ranking_scorer
from sklearn_rankcal.model_selection import query_cross_val_predict
from sklearn_rankcal.rankers import _cut_queries

DATA = make_ranking(24, (4, 9), 5, n_informative=3, random_state=0)
SHUFFLE = np.random.RandomState(0).permutation(len(DATA.y))  # rows of a query stand apart
X, Y, G = DATA.X[SHUFFLE], DATA.y[SHUFFLE], DATA.groups[SHUFFLE]
LABELS = relevance_labels(Y, G)
NAMES = list("abcde")
COLUMNS = dict(zip(NAMES, X.T, strict=True)) | {"qid": G}
ALPHAS = [0.1, 300.0]
N_FOLDS = 3


class Way(NamedTuple):
    """How the queries travel: the table, the labels, the splitter and what is passed as groups."""

    X: Any
    y: Any
    cv: Any
    groups: Any = None
    column: str | None = None
    frames: str = "default"


WAYS = {
    "groups": Way(X, Y, GroupKFold(N_FOLDS), G),
    "labels": Way(X, LABELS, QueryKFold(N_FOLDS)),
    "both": Way(X, LABELS, GroupKFold(N_FOLDS), G),
    "column": Way(pd.DataFrame(COLUMNS), Y, GroupKFold(N_FOLDS), G, "qid", "pandas"),
    "polars": Way(pl.DataFrame(COLUMNS), Y, GroupKFold(N_FOLDS), G, "qid", "polars"),
}


def make_ranker(way, alpha=1.0, context="auto"):
    return CalibratedRanker(Ridge(alpha), loss="ndcg@3", context=context, group_column=way.column)


@pytest.fixture
def routing(request):
    """Metadata routing as the test's parameter `routing` says."""
    with sklearn.config_context(enable_metadata_routing=request.param == "on"):
        yield request.param == "on"


both_routings = pytest.mark.parametrize("routing", ["off", "on"], indirect=True)
only_on = pytest.mark.parametrize("routing", ["on"], indirect=True)
only_off = pytest.mark.parametrize("routing", ["off"], indirect=True)


# ------------------------------------------------------------------ by hand


def ndcg(y, ranks, k):
    places = np.arange(1, min(k, len(y)) + 1)
    best = (np.sort(2.0**y - 1)[::-1][: len(places)] / np.log2(places + 1)).sum()
    top = ranks <= k
    return ((2.0**y - 1) / np.log2(ranks + 1))[top].sum() / best if best else np.nan


def average_precision(y, ranks):
    found = np.sort(ranks[y >= 2])
    return (np.arange(1, len(found) + 1) / found).mean() if len(found) else np.nan


NDCG_3, NDCG_10 = partial(ndcg, k=3), partial(ndcg, k=10)
SCORER = get_ranking_scorer("ndcg@10")
# scoring= of the tool, and the measures that it stands for
SCORINGS = {
    "score": (None, {"score": NDCG_3}),
    "scorer": (SCORER, {"score": NDCG_10}),
    "several": (
        {"ndcg": SCORER, "map": get_ranking_scorer("map", threshold=2)},
        {"ndcg": NDCG_10, "map": average_precision},
    ),
}


def mean_measure(measure, ranks, rows, weight=None):
    """Mean over the queries among `rows`, whose positions are `ranks`."""
    values, weights = [], []
    for query in np.unique(G[rows]):
        mine = G[rows] == query
        values.append(measure(Y[rows][mine], ranks[mine]))
        weights.append(1.0 if weight is None else weight[rows][mine].mean())
    values, weights = np.array(values), np.array(weights)
    known = ~np.isnan(values)
    return np.average(values[known], weights=weights[known])


def fold_score(measure, train, test, alpha=1.0, *, columns=None, scale=(), weight=None):
    """Score on `test` of a ranker fitted on `train`, groups passed by hand."""
    key = (id(measure), train.tobytes(), test.tobytes(), alpha, repr(columns), repr(scale))
    key += () if weight is None else (weight.tobytes(),)
    if key not in _FOLD_SCORES:
        _FOLD_SCORES[key] = _fold_score(measure, train, test, alpha, columns, scale, weight)
    return _FOLD_SCORES[key]


_FOLD_SCORES: dict[Any, float] = {}  # many cells of the table ask for the same fold


def _fold_score(measure, train, test, alpha, columns, scale, weight):
    table = X.copy()
    for j in scale:
        table[:, j] = (table[:, j] - table[train, j].mean()) / table[train, j].std()
    table = table if columns is None else table[:, columns]
    ranker = CalibratedRanker(Ridge(alpha), loss="ndcg@3")
    ranker.fit(
        table[train],
        Y[train],
        groups=G[train],
        sample_weight=None if weight is None else weight[train],
    )
    return mean_measure(measure, ranker.predict(table[test], groups=G[test]), test, weight)


def splits(way):
    return list(way.cv.split(X, Y, G))


def fold_scores(way, measure, alpha=1.0, **how):
    return [fold_score(measure, train, test, alpha, **how) for train, test in splits(way)]


# ------------------------------------------------------------------ the tools


def to_function(way, on):
    """Arguments that give the groups to cross_validate and the like."""
    if not on:
        return {"groups": way.groups}
    # an empty dict, not None: scikit-learn 1.6.0 trips over None (1.6.1 does not); drop when 1.7
    # is the minimum
    return {"params": {} if way.groups is None else {"groups": way.groups}}


def to_fit(way):
    return {} if way.groups is None else {"groups": way.groups}


def use_cross_val_score(way, scoring, on):
    what, measures = SCORINGS[scoring]
    got = cross_val_score(
        make_ranker(way), way.X, way.y, cv=way.cv, scoring=what, **to_function(way, on)
    )
    return got, fold_scores(way, measures["score"])


def use_cross_validate(way, scoring, on, make=make_ranker, **by_hand):
    what, measures = SCORINGS[scoring]
    got = cross_validate(
        make(way),
        way.X,
        way.y,
        cv=way.cv,
        scoring=what,
        return_train_score=True,
        **to_function(way, on),
    )
    wanted = [
        [
            [fold_score(m, train, rows, **by_hand) for rows in (train, test)]
            for train, test in splits(way)
        ]
        for m in measures.values()
    ]
    scores = [np.transpose([got[f"train_{name}"], got[f"test_{name}"]]) for name in measures]
    return scores, wanted


def search_scores(search, way, measures):
    """Scores per measure, candidate and fold; and the same by hand."""
    results = search.cv_results_
    got = [[results[f"split{i}_test_{name}"] for i in range(N_FOLDS)] for name in measures]
    wanted = [
        np.transpose([fold_scores(way, m, p["regressor__alpha"]) for p in results["params"]])
        for m in measures.values()
    ]
    # the ranker that predicts afterwards is the best one, fitted on everything
    alpha = search.best_params_["regressor__alpha"]
    best = CalibratedRanker(Ridge(alpha), loss="ndcg@3").fit(X, Y, groups=G)
    mine = search.best_estimator_
    ranks = mine.predict(way.X) if way.column else mine.predict(way.X, groups=G)
    np.testing.assert_array_equal(ranks, best.predict(X, groups=G))
    return got, wanted


def use_search(way, scoring, on, search=GridSearchCV, **options):
    what, measures = SCORINGS[scoring]
    refit = "map" if scoring == "several" else True
    found = search(
        make_ranker(way),
        {"regressor__alpha": ALPHAS},
        cv=way.cv,
        scoring=what,
        refit=refit,
        **options,
    ).fit(way.X, way.y, **to_fit(way))
    got, wanted = search_scores(found, way, measures)
    last = list(measures)[-1]
    assert found.best_score_ == pytest.approx(found.cv_results_[f"mean_test_{last}"].max())
    return got, wanted


def use_halving(way, scoring, on, **options):
    """Halving with a resource that is not rows: no query is cut."""
    what, measures = SCORINGS[scoring]
    search = options.pop("search", HalvingGridSearchCV)(
        make_ranker(way),
        {"regressor__alpha": ALPHAS},
        cv=way.cv,
        scoring=what,
        random_state=0,
        **({"resource": "regressor__max_iter", "max_resources": 6} | options),
    ).fit(way.X, way.y, **to_fit(way))
    return search_scores(search, way, measures)


def inner_splitter(way):
    return type(way.cv)(2)


def use_nested(way, scoring, on, inner=inner_splitter):
    what, measures = SCORINGS[scoring]
    refit = "map" if scoring == "several" else True
    search = GridSearchCV(
        make_ranker(way), {"regressor__alpha": ALPHAS}, cv=inner(way), scoring=what, refit=refit
    )
    # scoring=None of the outer loop is the search's own score, that is its refit measure
    got = cross_validate(search, way.X, way.y, cv=way.cv, scoring=what, **to_function(way, on))
    choose = list(measures.values())[-1]
    wanted = []
    for train, test in splits(way):
        folds = list(inner(way).split(X[train], Y[train], G[train]))
        inner_means = [
            np.mean([fold_score(choose, train[a], train[b], alpha) for a, b in folds])
            for alpha in ALPHAS
        ]
        alpha = ALPHAS[int(np.argmax(inner_means))]
        wanted.append([fold_score(m, train, test, alpha) for m in measures.values()])
    return [got[f"test_{name}"] for name in measures], np.transpose(wanted)


def use_pipeline(way, scoring, on):
    return use_cross_validate(
        way,
        scoring,
        on,
        lambda way: make_pipeline(StandardScaler(), make_ranker(way)),
        scale=range(5),
    )


def use_column_transformer(way, scoring, on):
    def make(way):
        scaled = ["a", "b"] if way.column else [0, 1]
        transformer = ColumnTransformer(
            [("scale", StandardScaler(), scaled)],
            remainder="passthrough",
            verbose_feature_names_out=False,
        ).set_output(transform=way.frames)
        return make_pipeline(transformer, make_ranker(way))

    return use_cross_validate(way, scoring, on, make, scale=[0, 1])


def use_permutation_importance(way, scoring, on, **options):
    what, measures = SCORINGS[scoring]
    ranker = make_ranker(way).fit(way.X, way.y, **to_fit(way))
    with warnings.catch_warnings():
        # permutation_importance makes an array of a polars frame
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        result = permutation_importance(
            ranker, way.X, way.y, scoring=what, n_repeats=2, random_state=0, **options
        )
    result = result if scoring == "several" else {"score": result}
    by_hand = CalibratedRanker(Ridge(), loss="ndcg@3").fit(X, Y, groups=G)
    everything = np.arange(len(Y))

    def score(measure, table):
        return mean_measure(measure, by_hand.predict(table, groups=G), everything)

    seed = check_random_state(0).randint(np.iinfo(np.int32).max + 1)
    got, wanted = [], []
    for name, measure in measures.items():
        got.append(result[name].importances[:5])  # the sixth column of a frame is the query
        for column in range(5):
            random, table, shuffle = np.random.RandomState(seed), X.copy(), np.arange(len(Y))
            for _ in range(2):
                random.shuffle(shuffle)
                table[:, column] = table[shuffle, column]
                wanted.append(score(measure, X) - score(measure, table))
    return np.ravel(got), wanted


def use_learning_curve(way, scoring, on):
    what, measures = SCORINGS[scoring]
    sizes, _, got = learning_curve(
        make_ranker(way),
        way.X,
        way.y,
        cv=way.cv,
        scoring=what,
        train_sizes=[0.4, 1.0],
        **to_function(way, on),
    )
    wanted = [
        [fold_score(measures["score"], train[:n], test) for train, test in splits(way)]
        for n in sizes
    ]
    return got, wanted


def eliminate(measure, train, test):
    """Scores with 1, 2, ... 5 features, dropping the smallest coefficient each time."""
    left, scores = np.arange(5), []
    while True:
        ranker = CalibratedRanker(Ridge(), loss="ndcg@3", context=None)
        ranker.fit(X[train][:, left], Y[train], groups=G[train])
        ranks = ranker.predict(X[test][:, left], groups=G[test])
        scores.append(mean_measure(measure, ranks, test))
        if len(left) == 1:
            return scores[::-1], left
        left = np.delete(left, np.abs(ranker.model_.regressor_.coef_).argmin())


def use_rfecv(way, scoring, on):
    what, measures = SCORINGS[scoring]
    selector = RFECV(make_ranker(way, context=None), cv=way.cv, scoring=what)
    selector.fit(way.X, way.y, **to_fit(way))
    got = [selector.cv_results_[f"split{i}_test_score"] for i in range(N_FOLDS)]
    return got, [eliminate(measures["score"], train, test)[0] for train, test in splits(way)]


def use_sequential_selector(way, scoring, on):
    what, measures = SCORINGS[scoring]
    selector = SequentialFeatureSelector(
        make_ranker(way), n_features_to_select=2, cv=way.cv, scoring=what
    ).fit(way.X, way.y, **to_fit(way))
    chosen = []
    for _ in range(2):
        means = {
            j: np.mean(fold_scores(way, measures["score"], columns=sorted([*chosen, j])))
            for j in set(range(5)) - set(chosen)
        }
        chosen.append(max(means, key=means.get))
    return selector.get_support(indices=True), sorted(chosen)


def use_rfe_as_estimator(way, scoring, on):
    """Cross-validate a feature selection that ends in the ranker."""
    what, measures = SCORINGS[scoring]
    selector = RFE(make_ranker(way, context=None), n_features_to_select=1)
    got = cross_val_score(selector, way.X, way.y, cv=way.cv, scoring=what, **to_function(way, on))
    return got, [eliminate(measures["score"], train, test)[0][0] for train, test in splits(way)]


def ranks_by_hand(way, train, test):
    ranker = CalibratedRanker(Ridge(), loss="ndcg@3").fit(X[train], Y[train], groups=G[train])
    return ranker.predict(X[test], groups=G[test])


def use_cross_val_predict(way, scoring, on):
    got = cross_val_predict(make_ranker(way), way.X, way.y, cv=way.cv, **to_function(way, on))
    wanted = np.empty(len(Y), dtype=int)
    for train, test in splits(way):
        wanted[test] = ranks_by_hand(way, train, test)
    return got, wanted


def use_validation_curve(way, scoring, on):
    what, measures = SCORINGS[scoring]
    train_scores, test_scores = validation_curve(
        make_ranker(way),
        way.X,
        way.y,
        param_name="regressor__alpha",
        param_range=ALPHAS,
        cv=way.cv,
        scoring=what,
        error_score="raise",
        **to_function(way, on),
    )
    wanted = [
        [
            [
                fold_score(measures["score"], train, rows, alpha)
                for train, test in splits(way)
                for rows in ((train, test)[which],)
            ]
            for alpha in ALPHAS
        ]
        for which in (0, 1)
    ]
    return [train_scores, test_scores], wanted


def mean_score(way, measure, y):
    """Mean score of the folds, the ranker fitted on and scored with other labels."""
    scores = []
    for train, test in splits(way):
        ranker = CalibratedRanker(Ridge(), loss="ndcg@3").fit(X[train], y[train], groups=G[train])
        ranks = ranker.predict(X[test], groups=G[test])
        values = [measure(y[test][G[test] == q], ranks[G[test] == q]) for q in np.unique(G[test])]
        scores.append(np.nanmean(values))
    return np.mean(scores)


def use_permutation_test(way, scoring, on):
    what, measures = SCORINGS[scoring]
    groups = to_function(way, on)
    if not on and way.groups is None:
        groups = {"groups": G}  # so that labels are shuffled inside queries
    score, permuted, _ = permutation_test_score(
        make_ranker(way),
        way.X,
        way.y,
        cv=way.cv,
        scoring=what,
        n_permutations=2,
        random_state=0,
        **groups,
    )
    random, wanted = np.random.RandomState(0), [mean_score(way, measures["score"], Y)]
    for _ in range(2):
        rows = np.arange(len(Y))
        for query in np.unique(G):
            rows[G == query] = random.permutation(rows[G == query])
        wanted.append(mean_score(way, measures["score"], Y[rows]))
    return [score, *permuted], wanted


def fitted_search(way, scoring=None):
    search = GridSearchCV(make_ranker(way), {"center": [True]}, cv=way.cv, scoring=scoring)
    return search.fit(way.X, way.y, **to_fit(way))


def use_search_predict(way, scoring, on):
    everything = np.arange(len(Y))
    return fitted_search(way).predict(way.X), ranks_by_hand(way, everything, everything)


def use_search_score(way, scoring, on):
    what, measures = SCORINGS[scoring]
    search = fitted_search(way, what)
    got = search.score(way.X, way.y, **(to_fit(way) if on else {}))
    everything = np.arange(len(Y))
    return got, fold_score(measures["score"], everything, everything)


def use_integer_cv(way, scoring, on):
    with warnings.catch_warnings():
        # since 1.7 scikit-learn says so when groups go to a splitter that does not use them
        warnings.filterwarnings("ignore", "The groups parameter is ignored by KFold", UserWarning)
        cross_val_score(make_ranker(way), way.X, way.y, cv=N_FOLDS, **to_function(way, on))
    pytest.fail("KFold cuts queries: no number is right")


def use_halving_of_rows(way, scoring, on):
    use_halving(way, scoring, on, resource="n_samples", min_resources=40, max_resources="auto")
    pytest.fail("a fold of some rows of a query: no number is right")


def by_rows(use):
    """The same tool with a splitter that cuts queries."""

    def refused(way, scoring, on):
        # GroupKFold's place holder of groups is ignored by KFold, which 1.7 says
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The groups parameter is ignored by KFold")
            use(way._replace(cv=KFold(N_FOLDS)), scoring, on)
        pytest.fail("KFold cuts queries: no number is right")

    return refused


def use_importance_of_some_rows(way, scoring, on):
    use_permutation_importance(way, scoring, on, max_samples=0.5)
    pytest.fail("half of the rows of a query: no number is right")


def use_wrapper(way, scoring, on, make):
    """Fit a wrapper that is not seen through, and score what its predict returns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        wrapper = make(make_ranker(way, context=None)).fit(way.X, way.y, **to_fit(way))
    SCORER(wrapper, way.X, LABELS)
    pytest.fail("positions of rows of several queries mixed: no number is right")


def use_stacked_scores(way, scoring, on):
    """Stacking of the score view: positions never enter."""
    stack = StackingRegressor(
        [("ranker", ScoreRegressor(make_ranker(way, context=None)))],
        final_estimator=RelevanceRegressor(Ridge()),
        cv=QueryKFold(N_FOLDS) if way.cv is None or way.column is None else splits(way),
    ).fit(way.X, way.y, **to_fit(way))
    scores = np.empty(len(Y))
    for train, test in splits(way) if way.column else QueryKFold(N_FOLDS).split(X, LABELS):
        ranker = CalibratedRanker(Ridge(), loss="ndcg@3", context=None)
        scores[test] = ranker.fit(X[train], Y[train], groups=G[train]).decision_function(X[test])
    ranker.fit(X, Y, groups=G)
    final = Ridge().fit(scores[:, None], Y)
    return stack.predict(way.X), final.predict(ranker.decision_function(X)[:, None])


def use_voting_on_scores(way, scoring, on):
    voting = VotingRegressor([("ranker", ScoreRegressor(make_ranker(way, context=None)))])
    voting.fit(way.X, way.y, **to_fit(way))
    ranker = CalibratedRanker(Ridge(), loss="ndcg@3", context=None).fit(X, Y, groups=G)
    return voting.predict(way.X), ranker.decision_function(X)


def use_partial_dependence(way, scoring, on):
    """Of the score view of a fitted ranker."""
    view = ScoreRegressor(make_ranker(way, context=None).fit(way.X, way.y, **to_fit(way)))
    found = partial_dependence(view, way.X, [0], grid_resolution=3)
    ranker = CalibratedRanker(Ridge(), loss="ndcg@3", context=None).fit(X, Y, groups=G)
    wanted = []
    for value in found["grid_values"][0]:
        table = X.copy()
        table[:, 0] = value
        wanted.append(ranker.decision_function(table).mean())
    return found["average"][0], wanted


def use_rfe(way, scoring, on):
    selector = RFE(make_ranker(way, context=None), n_features_to_select=1)
    selector.fit(way.X, way.y, **to_fit(way))
    left = np.arange(5)
    while len(left) > 1:
        ranker = CalibratedRanker(Ridge(), loss="ndcg@3", context=None)
        ranker.fit(X[:, left], Y, groups=G)
        left = np.delete(left, np.abs(ranker.coef_).argmin())
    return selector.get_support(indices=True), left


def use_query_cross_val_predict(way, scoring, on):
    got = query_cross_val_predict(
        make_ranker(way), way.X, way.y, groups=way.groups, cv=way.cv, method="predict"
    )
    wanted = np.empty(len(Y), dtype=int)
    for train, test in splits(way):
        wanted[test] = ranks_by_hand(way, train, test)
    return got, wanted


def use_builtin_scorer(way, scoring, on):
    """scikit-learn's own scorers take positions for predictions of y."""
    got = cross_val_score(
        make_ranker(way),
        way.X,
        way.y,
        cv=way.cv,
        scoring="neg_mean_squared_error",
        **to_function(way, on),
    )
    return got, np.full(N_FOLDS, np.inf)  # no number is right


# ------------------------------------------------------------------ the table

# name in TABLE: function, values of scoring= to try
TOOLS = {
    "cross_val_score": (use_cross_val_score, ["score", "scorer"]),
    "cross_validate": (use_cross_validate, ["score", "scorer", "several"]),
    "GridSearchCV": (use_search, ["score", "scorer", "several"]),
    "RandomizedSearchCV": (
        partial(use_search, search=RandomizedSearchCV, n_iter=2, random_state=0),
        ["score", "several"],
    ),
    "HalvingGridSearchCV": (use_halving, ["score", "scorer"]),
    "halving_of_rows": (use_halving_of_rows, ["scorer"]),
    "nested": (use_nested, ["score", "several"]),
    "nested_QueryKFold": (
        partial(use_nested, inner=lambda way: QueryKFold(2)),
        ["scorer"],
    ),
    "Pipeline": (use_pipeline, ["score", "scorer", "several"]),
    "ColumnTransformer": (use_column_transformer, ["score", "several"]),
    "permutation_importance": (use_permutation_importance, ["score", "several"]),
    "importance_of_some_rows": (use_importance_of_some_rows, ["score", "scorer"]),
    "learning_curve": (use_learning_curve, ["score", "scorer"]),
    "validation_curve": (use_validation_curve, ["score", "scorer"]),
    "permutation_test_score": (use_permutation_test, ["score", "scorer"]),
    "HalvingRandomSearchCV": (
        partial(use_halving, search=HalvingRandomSearchCV, n_candidates=2),
        ["scorer"],
    ),
    "permutation_test_of_rows": (by_rows(use_permutation_test), ["score", "scorer"]),
    "RFECV_of_rows": (by_rows(use_rfecv), ["scorer"]),
    "SequentialFeatureSelector_of_rows": (by_rows(use_sequential_selector), ["scorer"]),
    "cross_val_predict_of_rows": (by_rows(use_cross_val_predict), ["score"]),
    "validation_curve_of_rows": (by_rows(use_validation_curve), ["score"]),
    "RFE": (use_rfe, ["score"]),
    "query_cross_val_predict": (use_query_cross_val_predict, ["score"]),
    "partial_dependence": (use_partial_dependence, ["score"]),
    "VotingRegressor_of_scores": (use_voting_on_scores, ["score"]),
    "StackingRegressor_of_scores": (use_stacked_scores, ["score"]),
    "VotingRegressor": (
        partial(use_wrapper, make=lambda ranker: VotingRegressor([("a", ranker)])),
        ["score"],
    ),
    "StackingRegressor": (
        partial(use_wrapper, make=lambda ranker: StackingRegressor([("a", ranker)])),
        ["score"],
    ),
    "TransformedTargetRegressor": (
        partial(use_wrapper, make=TransformedTargetRegressor),
        ["score"],
    ),
    "BaggingRegressor": (partial(use_wrapper, make=BaggingRegressor), ["score"]),
    "AdaBoostRegressor": (partial(use_wrapper, make=AdaBoostRegressor), ["score"]),
    "RANSACRegressor": (
        partial(use_wrapper, make=partial(RANSACRegressor, min_samples=50)),
        ["score"],
    ),
    "MultiOutputRegressor": (partial(use_wrapper, make=MultiOutputRegressor), ["score"]),
    "CalibratedClassifierCV": (partial(use_wrapper, make=CalibratedClassifierCV), ["score"]),
    "OneVsRestClassifier": (partial(use_wrapper, make=OneVsRestClassifier), ["score"]),
    "search_of_rows": (by_rows(use_search), ["score", "scorer"]),
    "RFECV": (use_rfecv, ["scorer"]),
    "RFECV_without_scoring": (use_rfecv, ["score"]),
    "RFE_as_estimator": (use_rfe_as_estimator, ["scorer"]),
    "SequentialFeatureSelector": (use_sequential_selector, ["scorer"]),
    "cross_val_predict": (use_cross_val_predict, ["score"]),
    "search.predict": (use_search_predict, ["score"]),
    "search.score": (use_search_score, ["score", "scorer"]),
    "integer_cv": (use_integer_cv, ["score"]),
    "builtin_scorer": (use_builtin_scorer, ["score"]),
}

# What each tool does. The ways: `groups`, plain y and groups=; `labels`, relevance_labels and
# QueryKFold; `both`, relevance_labels, GroupKFold and groups=; `column`, a pandas frame with
# group_column, GroupKFold and groups= for the splitter; `polars`, the same with polars.
#                         routing off                         routing on
#                         groups labels both   column polars  groups labels both   column polars
TABLE = """
cross_val_score           remedy right  right  right  right   right  right  right  right  right
cross_validate            remedy right  right  right  right   right  right  right  right  right
GridSearchCV              remedy right  right  right  right   right  right  right  right  right
RandomizedSearchCV        remedy right  right  right  right   right  right  right  right  right
HalvingGridSearchCV       remedy right  right  right  right   right  right  right  right  right
nested                    inner  right  inner  inner  inner   right  right  right  right  right
nested_QueryKFold         query  right  right  query  query   right  right  right  right  right
Pipeline                  remedy right  right  frame  frame   right  right  right  frame  frame
ColumnTransformer         remedy right  right  right  right   right  right  right  right  right
search.score              remedy right  right  right  right   right  right  right  right  right
permutation_importance    remedy right  right  right  array   remedy right  right  right  array
RFECV                     remedy right  right  frame  frame   right  right  right  frame  frame
SequentialFeatureSelector switch right  switch switch switch  right  right  right  frame  frame
RFE_as_estimator          remedy right  right  frame  frame   right  right  right  frame  frame
learning_curve            remedy nan    nan    right  right   right  nan    nan    right  right
cross_val_predict         remedy ranks  ranks  right  right   ranks  ranks  ranks  right  right
search.predict            remedy ranks  ranks  right  right   ranks  ranks  ranks  right  right
RFECV_without_scoring     remedy scorer scorer frame  frame   scorer scorer scorer frame  frame
builtin_scorer            remedy named  named  named  named   named  named  named  named  named
integer_cv                remedy cut    cut    refuse refuse  refuse cut    cut    refuse refuse
halving_of_rows           remedy cut    cut    refuse refuse  refuse cut    cut    refuse refuse
importance_of_some_rows   remedy cut    cut    sample array   remedy cut    cut    sample array
validation_curve          remedy right  right  right  right   right  right  right  right  right
HalvingRandomSearchCV     remedy right  right  right  right   right  right  right  right  right
permutation_test_score    remedy right  right  right  right   across across across across across
permutation_test_of_rows  remedy cut    cut    refuse refuse  refuse cut    cut    refuse refuse
RFECV_of_rows             remedy cut    cut    frame  frame   refuse cut    cut    frame  frame
SequentialFeatureSelector_of_rows switch cut switch switch switch refuse cut cut frame frame
cross_val_predict_of_rows remedy cut    cut    refuse refuse  ranks  cut    cut    refuse refuse
validation_curve_of_rows  remedy cut    cut    refuse refuse  refuse cut    cut    refuse refuse
search_of_rows            remedy cut    cut    refuse refuse  refuse cut    cut    refuse refuse
RFE                       right  right  right  frame  frame   right  right  right  frame  frame
query_cross_val_predict   right  right  right  right  right   right  right  right  right  right
partial_dependence        right  right  right  right  polars  right  right  right  right  polars
VotingRegressor_of_scores switch right switch switch switch right right right right right
StackingRegressor_of_scores switch right switch switch switch right right right right right
VotingRegressor           switch class switch switch switch class class class class class
StackingRegressor         switch class switch switch switch class class class class class
TransformedTargetRegressor hidden numbers numbers hidden hidden hidden numbers numbers hidden hidden
BaggingRegressor          switch draw switch switch switch draw draw draw draw draw
AdaBoostRegressor         extra draw extra extra extra extra draw extra extra extra
RANSACRegressor           switch numbers switch switch switch draw numbers numbers draw draw
MultiOutputRegressor      two two two two two two two two two two
CalibratedClassifierCV    any any any any any any any any any any
OneVsRestClassifier       any any any any any any any any any any
"""
CELLS = {
    (line.split()[0], routing, way): outcome
    for line in TABLE.strip().splitlines()
    for (routing, way), outcome in zip(
        [(routing, way) for routing in ("off", "on") for way in WAYS],
        line.split()[1:],
        strict=True,
    )
}
# What stands in the error; or, for those of NAN, in the warning that comes with NaN.
MESSAGES = {
    # the refusal, not MissingGroupsWarning, which is an error here and has the same remedy
    "remedy": r"(did not reach the ranker|and needs them|cannot tell the queries).*"
    r"relevance_labels\(y, groups\).*group_column.*enable_metadata_routing=True",
    "inner": "The 'groups' parameter should not be None",  # GroupKFold's own words
    "query": r"QueryKFold needs the query of each row\. .*relevance_labels\(y, groups\)",
    "frame": r"group_column='qid' needs X as a data frame",
    "array": "group_column='qid' needs X as a data frame|cannot tell the queries.*relevance_labels",
    "switch": "only supported if enable_metadata_routing=True",  # scikit-learn's own words
    "ranks": r"use group_column='qid'.*best_estimator_\.predict\(X, groups=",
    "scorer": r"scoring=get_ranking_scorer\(",
    "cut": "A splitter has cut it.*QueryKFold",
    "refuse": "QueryKFold|GroupKFold",
    "nan": "A splitter has cut it",
    "class": "should be a regressor",  # scikit-learn's own words, and so on
    "numbers": "dtype='numeric' is not compatible",
    "extra": "unexpected keyword argument 'groups'",
    "two": "at least two dimensions",
    "any": "",
    "polars": r"object has no attribute '(kind|copy)'",  # scikit-learn's, 1.6: copy
    "hidden": r"holds a ranker \(CalibratedRanker\).*Put ScoreRegressor\(ranker\)",
    "draw": r"draw rows at random.*CalibratedRanker\(BaggingRegressor",
    "sample": r"max_samples below the number of rows.*Leave max_samples=1\.0",
    "across": r"shuffles y between queries.*routing off.*"
    r"permutation_test_score\(ranker, X, relevance_labels\(y, groups\), groups=groups",
    "named": r"get_ranking_scorer\(",
    "lost": r"Query ids did not reach|fitted with query ids.*relevance_labels\(y, groups\)",
}
NAN = {"nan": FitFailedWarning, "named": UserWarning, "lost": UserWarning}


# Up to scikit-learn 1.7, routing with scoring=None asks a router (a pipeline, a search) nothing
# about groups: NaN with a warning. Drop when 1.8 is the minimum.
OLD_DEFAULT_SCORER = parse_version(sklearn.__version__) < parse_version("1.8")
ROUTERS = {"Pipeline", "ColumnTransformer", "nested"}


def cells():
    for (tool, routing, way), outcome in CELLS.items():
        for scoring in TOOLS[tool][1]:
            old = OLD_DEFAULT_SCORER and tool in ROUTERS and routing == "on"
            here = "lost" if old and way == "groups" and scoring == "score" else outcome
            yield pytest.param(
                tool,
                routing,
                way,
                scoring,
                here,
                id=f"{tool}-{routing}-{way}-{scoring}",
            )


@pytest.mark.parametrize(
    ("tool", "routing", "way", "scoring", "outcome"), cells(), indirect=["routing"]
)
def test_the_right_number_or_the_remedy(tool, routing, way, scoring, outcome):
    use = partial(TOOLS[tool][0], WAYS[way], scoring, routing)
    if outcome == "right":
        got, wanted = use()
        np.testing.assert_allclose(got, wanted, rtol=1e-9)
    elif outcome in NAN:
        with pytest.warns(NAN[outcome], match=f"(?s){MESSAGES[outcome]}"):
            got, wanted = use()
        assert np.isnan(got).any()
        # what is not NaN is right
        np.testing.assert_allclose(np.where(np.isnan(got), wanted, got), wanted)
    else:
        errors = (ValueError, TypeError, AttributeError)
        with pytest.raises(errors, match=f"(?s){MESSAGES[outcome]}"):
            use()


# ------------------------------------------------------------------ what the table leaves out


@only_off
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_groups_lost_on_the_way_raise_with_the_remedy_also_from_workers(routing, n_jobs):
    ranker = make_ranker(WAYS["groups"])
    what = {"cv": GroupKFold(N_FOLDS), "n_jobs": n_jobs}
    message = f"(?s)All the 3 fits failed.*{MESSAGES['remedy']}"
    with pytest.raises(ValueError, match=message):
        cross_val_score(ranker, X, Y, groups=G, scoring=SCORER, **what)
    with pytest.raises(ValueError, match=message.replace("3", "6")):
        GridSearchCV(ranker, {"regressor__alpha": ALPHAS}, **what).fit(X, Y, groups=G)
    with pytest.raises(ValueError, match=f"^Query ids {MESSAGES['remedy']}"):
        cross_validate(ranker, X, Y, groups=G, error_score="raise", **what)  # stops the workers


@both_routings
@pytest.mark.parametrize("way", ["labels", "column", "groups"])
def test_workers_return_the_right_number(routing, way):
    if way == "groups" and not routing:
        pytest.skip("groups do not travel with routing off")
    way = WAYS[way]
    got = cross_val_score(
        make_ranker(way),
        way.X,
        way.y,
        cv=way.cv,
        scoring=SCORER,
        n_jobs=2,
        **to_function(way, routing),
    )
    np.testing.assert_allclose(got, fold_scores(way, NDCG_10))


@only_on
def test_groups_are_passed_in_params_when_routing_is_on(routing):
    with pytest.raises(ValueError, match="pass `groups` alongside other metadata via the `params`"):
        cross_val_score(make_ranker(WAYS["groups"]), X, Y, groups=G, cv=GroupKFold(N_FOLDS))


@only_off
def test_groups_for_fit_alone_give_no_number(routing):
    """params= reaches fit with routing off, but not score."""
    ranker = make_ranker(WAYS["groups"])
    what = {"cv": GroupKFold(N_FOLDS), "groups": G, "params": {"groups": G}}
    for scoring in (None, SCORER):
        with pytest.warns(UserWarning, match=f"(?s)Scoring failed.*{MESSAGES['remedy']}"):
            assert np.isnan(cross_val_score(ranker, X, Y, scoring=scoring, **what)).all()
        with pytest.raises(ValueError, match=MESSAGES["remedy"]):
            cross_val_score(ranker, X, Y, scoring=scoring, error_score="raise", **what)


@only_off
@pytest.mark.parametrize("scoring", SCORINGS)
def test_nested_search_over_a_frame_needs_the_labels_too(routing, scoring):
    way = WAYS["column"]._replace(y=LABELS, cv=QueryKFold(N_FOLDS), groups=None)
    got, wanted = use_nested(way, scoring, routing)
    np.testing.assert_allclose(got, wanted)


@both_routings
@pytest.mark.parametrize("way", ["column", "polars"])
def test_a_group_column_lost_in_a_transformer_is_named(routing, way):
    way = WAYS[way]
    for remainder, names in (("drop", r"\['a', 'b'\]"), ("passthrough", "remainder__qid")):
        transformer = ColumnTransformer(
            [("scale", StandardScaler(), ["a", "b"])],
            remainder=remainder,
            verbose_feature_names_out=remainder == "passthrough",
        )
        pipe = make_pipeline(transformer.set_output(transform=way.frames), make_ranker(way))
        with pytest.raises(ValueError, match=f"'qid' is not among the columns.*{names}"):
            pipe.fit(way.X, Y)


@both_routings
@pytest.mark.parametrize("scoring", ["score", "scorer"])
def test_sample_weight(routing, scoring):
    """Weights reach fit and score: with routing by request, without it as fit parameters."""
    weight = np.random.RandomState(1).uniform(0.1, 3.0, size=len(Y))
    what, measures = SCORINGS[scoring]
    way = WAYS["both"]
    ranker = make_ranker(way)
    if routing:
        with pytest.raises(UnsetMetadataPassedError, match=r"set_fit_request\({metadata}=True"):
            GridSearchCV(ranker, {"center": [True]}, cv=way.cv, scoring=what).fit(
                way.X, way.y, groups=G, sample_weight=weight
            )
        ranker.set_fit_request(sample_weight=True)
    search = GridSearchCV(ranker, {"center": [True]}, cv=way.cv, scoring=what)
    search.fit(way.X, way.y, groups=G, sample_weight=weight)
    got = [search.cv_results_[f"split{i}_test_score"][0] for i in range(N_FOLDS)]
    # without routing, scikit-learn passes weights to scorers since 1.7
    weighted = routing or parse_version(sklearn.__version__) >= parse_version("1.7")
    wanted = weighted_scores(way, measures["score"], weight, weight if weighted else None)
    np.testing.assert_allclose(got, wanted)
    if routing:  # weights for the scores only
        search.estimator.set_fit_request(sample_weight=False)
        search.fit(way.X, way.y, groups=G, sample_weight=weight)
        got = [search.cv_results_[f"split{i}_test_score"][0] for i in range(N_FOLDS)]
        np.testing.assert_allclose(got, weighted_scores(way, measures["score"], None, weight))


def weighted_scores(way, measure, fit_weight, score_weight):
    scores = []
    for train, test in splits(way):
        ranker = CalibratedRanker(Ridge(), loss="ndcg@3")
        weight = None if fit_weight is None else fit_weight[train]
        ranker.fit(X[train], Y[train], groups=G[train], sample_weight=weight)
        ranks = ranker.predict(X[test], groups=G[test])
        scores.append(mean_measure(measure, ranks, test, score_weight))
    return scores


@both_routings
def test_selection_inside_a_pipeline(routing):
    """RFE as a step: structured labels tell it the queries."""
    way = WAYS["labels"]
    first = make_ranker(way, context=None)
    pipe = make_pipeline(RFE(first, n_features_to_select=1), make_ranker(way, context=None))
    got = cross_val_score(pipe, X, LABELS, cv=way.cv, scoring=SCORER, **to_function(way, routing))
    wanted = [eliminate(NDCG_10, train, test)[0][0] for train, test in splits(way)]
    np.testing.assert_allclose(got, wanted)


@both_routings
def test_selectors_that_would_guess_are_refused(routing):
    with pytest.raises(ValueError, match=MESSAGES["remedy"]):
        SelectFromModel(make_ranker(WAYS["groups"])).fit(X, Y)
    with pytest.raises(TypeError):
        SelectKBest(f_regression, k=2).fit(X, LABELS)


@pytest.mark.xfail(
    strict=True,
    reason="f_classif, the default of SelectKBest, takes each (relevance, query, size) for a "
    "class of its own: columns chosen at random, silently. It is scikit-learn's; say it in the "
    "docs",
)
def test_select_k_best_refuses_structured_labels():
    with pytest.raises((TypeError, ValueError)):
        SelectKBest(k=2).fit(X, LABELS)


@both_routings
@pytest.mark.parametrize("wrap", ["pipeline of a search", "frozen"])
def test_the_scorer_finds_the_ranker_wherever_it_is(routing, wrap):
    way = WAYS["column"]
    ranker = make_ranker(way).fit(way.X, Y)
    if wrap == "frozen":
        wrapped = FrozenEstimator(ranker)
    else:
        search = GridSearchCV(make_ranker(way), {"center": [True]}, cv=splits(way))
        wrapped = make_pipeline("passthrough", search).fit(way.X, Y)
    wanted = mean_measure(NDCG_10, ranker.predict(way.X), np.arange(len(Y)))
    assert SCORER(ranker, way.X, LABELS) == pytest.approx(wanted)
    assert SCORER(wrapped, way.X, LABELS) == pytest.approx(wanted)


@both_routings
@pytest.mark.parametrize("way", ["labels", "column"])
def test_cross_val_predict_of_scores_is_refused_with_a_reason(routing, way):
    way = WAYS[way]
    with pytest.raises((AttributeError, ValueError), match="decision_function"):
        cross_val_predict(
            make_ranker(way),
            way.X,
            way.y,
            cv=way.cv,
            method="decision_function",
            **to_function(way, routing),
        )


@both_routings
def test_validation_curve_hides_errors_unless_asked(routing):
    """scikit-learn's, and in the docs: NaN without a warning; never a number."""
    way = WAYS["column"]._replace(cv=KFold(N_FOLDS), groups=None)
    curves = validation_curve(
        make_ranker(way),
        way.X,
        way.y,
        param_name="regressor__alpha",
        param_range=ALPHAS,
        cv=way.cv,
        **to_function(way, routing),
    )
    assert np.isnan(curves).all()


@pytest.fixture
def no_second_line(monkeypatch):
    """Without the look at local variables of scikit-learn's functions."""
    monkeypatch.setattr(_cut_queries, "split_under_way", lambda: None)


@both_routings
@pytest.mark.parametrize(
    "tool",
    ["permutation_test_of_rows", "RFECV_of_rows", "cross_val_predict_of_rows"],
)
@pytest.mark.parametrize("way", ["column", "groups"])
def test_the_ranker_itself_notices_that_queries_are_cut(routing, no_second_line, tool, way):
    outcome = CELLS[tool, "on" if routing else "off", way]
    with pytest.raises(ValueError, match=f"(?s){MESSAGES[outcome]}"):
        TOOLS[tool][0](WAYS[way], "scorer", routing)


@both_routings
def test_the_first_line_gives_no_number_in_cross_validation(routing, no_second_line):
    way = WAYS["column"]
    by_rows = {"cv": KFold(N_FOLDS), "scoring": SCORER, "params": {}}  # {}: see to_function
    with pytest.warns(UserWarning, match="(?s)Scoring failed.*it cuts .* test queries, such as"):
        assert np.isnan(cross_val_score(make_ranker(way), way.X, way.y, **by_rows)).all()
    got, wanted = use_cross_validate(way, "scorer", routing)  # training scores too
    np.testing.assert_allclose(got, wanted)


@both_routings
@pytest.mark.parametrize("splitter", ["rows in neither part", "mirrored"])
def test_what_only_the_second_line_sees(routing, splitter):
    """A test query of which other rows are nowhere; halves of all queries that look alike."""
    if splitter == "mirrored":
        groups, cv = np.tile(np.arange(6), 8), KFold(2)
        table = pd.DataFrame(X[:48], columns=NAMES).assign(qid=groups)
    else:
        table = WAYS["column"].X
        cv = [(np.flatnonzero(G < 12), np.flatnonzero(G == 20)[:-1])]
    ranker = make_ranker(WAYS["column"])
    what = {"cv": cv, "scoring": SCORER, "params": {}}  # {}: see to_function
    with pytest.raises(ValueError, match=MESSAGES["refuse"]):
        cross_val_score(ranker, table, Y[: len(table)], **what)
    with pytest.raises(ValueError, match=MESSAGES["refuse"]):
        permutation_test_score(ranker, table, Y[: len(table)], **what)


def test_a_fitted_search_predicts_other_data_with_the_same_ids():
    """Only inside the call that fitted the ranker are its queries remembered."""
    way = WAYS["column"]
    search = fitted_search(way, SCORER)
    some = way.X.iloc[::2]
    ranks = search.predict(some)
    np.testing.assert_array_equal(ranks, search.best_estimator_.predict(some))
    assert 0 < search.score(some, Y[::2]) <= 1
    frozen = FrozenEstimator(search.best_estimator_)
    labels = relevance_labels(Y[::2], G[::2])
    scores = cross_val_score(frozen, some, labels, cv=QueryKFold(3), scoring=SCORER)
    assert np.isfinite(scores).all()


def top_relevance(estimator, X, y):
    """A scorer of a user's own, which knows that predict returns positions."""
    return float(np.mean(y[estimator.predict(X) == 1]))


@both_routings
@pytest.mark.parametrize("scoring", [top_relevance, {"top": top_relevance}])
def test_scorers_of_the_users_own(routing, scoring):
    way = WAYS["column"]
    name = "test_top" if isinstance(scoring, dict) else "test_score"
    got = cross_validate(
        make_ranker(way),
        way.X,
        way.y,
        cv=way.cv,
        scoring=scoring,
        error_score="raise",
        **to_function(way, routing),
    )[name]
    wanted = [np.mean(Y[b][ranks_by_hand(way, a, b) == 1]) for a, b in splits(way)]
    np.testing.assert_allclose(got, wanted)


@both_routings
def test_workers_lose_warnings_so_that_a_failed_score_is_a_bare_nan(routing):
    """scikit-learn's, and in the docs: error_score="raise" shows the error."""
    way = WAYS["labels"]
    use = partial(
        cross_val_score,
        make_ranker(way),
        way.X,
        way.y,
        cv=way.cv,
        scoring="neg_mean_squared_error",
        **to_function(way, routing),
    )
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")  # "error" would reach the workers since scikit-learn 1.7
        assert np.isnan(use(n_jobs=2)).all()
    assert seen == []
    with pytest.raises(ValueError, match=MESSAGES["named"]):
        use(error_score="raise")


@both_routings
def test_plain_search_score_is_refused(routing):
    search = fitted_search(WAYS["labels"], SCORER)
    with pytest.raises(ValueError, match=MESSAGES["remedy"]):
        search.score(X, Y)
    if not routing:
        with pytest.raises(ValueError, match=MESSAGES["switch"]):
            search.score(X, Y, groups=G)
