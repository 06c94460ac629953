"""Each tool of scikit-learn applied to a ranker, and the same numbers computed by hand.

`WAYS` are the ways in which queries can travel. A function `use_<tool>(way, scoring, on)` returns
the result of the tool and the right result: `way` is an entry of `WAYS`, `scoring` a key of
`SCORINGS`, and `on` says whether metadata routing is on. The right result comes from loops with the
ranker's `fit` and `predict` with groups, and measures of their own.
"""

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import AdaBoostRegressor, BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SequentialFeatureSelector
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import RANSACRegressor, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

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
# For each name: scoring= of the tool, and the measures that it stands for.
SCORINGS = {
    "score": (None, {"score": NDCG_3}),
    "scorer": (SCORER, {"score": NDCG_10}),
    "several": (
        {"ndcg": SCORER, "map": get_ranking_scorer("map", threshold=2)},
        {"ndcg": NDCG_10, "map": average_precision},
    ),
}


def mean_measure(measure, ranks, rows, weight=None):
    """Return the mean over the queries of `rows`, where `ranks` holds the positions of the rows."""
    values, weights = [], []
    for query in np.unique(G[rows]):
        mine = G[rows] == query
        values.append(measure(Y[rows][mine], ranks[mine]))
        weights.append(1.0 if weight is None else weight[rows][mine].mean())
    values, weights = np.array(values), np.array(weights)
    known = ~np.isnan(values)
    return np.average(values[known], weights=weights[known])


def fold_score(measure, train, test, alpha=1.0, *, columns=None, scale=()):
    """Fit a ranker on `train` and score it on `test`, with the groups passed by hand."""
    key = (id(measure), train.tobytes(), test.tobytes(), alpha, repr(columns), repr(scale))
    if key not in _FOLD_SCORES:
        _FOLD_SCORES[key] = _fold_score(measure, train, test, alpha, columns, scale)
    return _FOLD_SCORES[key]


_FOLD_SCORES: dict[Any, float] = {}  # many cells of the table need the same fold


def _fold_score(measure, train, test, alpha, columns, scale):
    table = X.copy()
    for j in scale:
        table[:, j] = (table[:, j] - table[train, j].mean()) / table[train, j].std()
    table = table if columns is None else table[:, columns]
    ranker = CalibratedRanker(Ridge(alpha), loss="ndcg@3")
    ranker.fit(table[train], Y[train], groups=G[train])
    return mean_measure(measure, ranker.predict(table[test], groups=G[test]), test)


def splits(way):
    return list(way.cv.split(X, Y, G))


def fold_scores(way, measure, alpha=1.0, **how):
    return [fold_score(measure, train, test, alpha, **how) for train, test in splits(way)]


def to_function(way, on):
    """Return the arguments that pass the groups to cross_validate and similar functions."""
    if not on:
        return {"groups": way.groups}
    # The dict is empty, and not None, because scikit-learn 1.6.0 fails on None and 1.6.1 does not.
    # Drop it when 1.7 is the minimum.
    return {"params": {} if way.groups is None else {"groups": way.groups}}


def to_fit(way):
    return {} if way.groups is None else {"groups": way.groups}


def ranks_by_hand(way, train, test):
    ranker = CalibratedRanker(Ridge(), loss="ndcg@3").fit(X[train], Y[train], groups=G[train])
    return ranker.predict(X[test], groups=G[test])


def eliminate(measure, train, test):
    """Return the scores with 1, 2, .. 5 features; the smallest coefficient is dropped each time."""
    left, scores = np.arange(5), []
    while True:
        ranker = CalibratedRanker(Ridge(), loss="ndcg@3", context=None)
        ranker.fit(X[train][:, left], Y[train], groups=G[train])
        ranks = ranker.predict(X[test][:, left], groups=G[test])
        scores.append(mean_measure(measure, ranks, test))
        if len(left) == 1:
            return scores[::-1], left
        left = np.delete(left, np.abs(ranker.model_.regressor_.coef_).argmin())


def mean_score(way, measure, y):
    """Return the mean score of the folds, where `y` holds the labels for fit and score."""
    scores = []
    for train, test in splits(way):
        ranker = CalibratedRanker(Ridge(), loss="ndcg@3").fit(X[train], y[train], groups=G[train])
        ranks = ranker.predict(X[test], groups=G[test])
        values = [measure(y[test][G[test] == q], ranks[G[test] == q]) for q in np.unique(G[test])]
        scores.append(np.nanmean(values))
    return np.mean(scores)


# ------------------------------------------------------------------ the tools


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
    """Return the scores for each measure, candidate and fold, and the same by hand."""
    results = search.cv_results_
    got = [[results[f"split{i}_test_{name}"] for i in range(N_FOLDS)] for name in measures]
    wanted = [
        np.transpose([fold_scores(way, m, p["regressor__alpha"]) for p in results["params"]])
        for m in measures.values()
    ]
    if np.isnan(got).all():
        return got, wanted
    # The ranker that predicts afterwards is the best candidate, fitted on all rows.
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
    best = found.cv_results_[f"mean_test_{last}"].max()
    assert found.best_score_ == pytest.approx(best, nan_ok=True)
    return got, wanted


def use_halving(way, scoring, on, **options):
    """Run a halving search with a resource other than rows, which would cut queries."""
    what, measures = SCORINGS[scoring]
    search = HalvingGridSearchCV(
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
    # scoring=None of the outer loop is the score of the search, which is its refit measure.
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
        # permutation_importance converts a polars frame to an array
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
        got.append(result[name].importances[:5])  # the sixth column of a frame has the query ids
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


def use_cross_val_predict(way, scoring, on):
    got = cross_val_predict(make_ranker(way), way.X, way.y, cv=way.cv, **to_function(way, on))
    return got, positions_by_hand(way)


def positions_by_hand(way):
    wanted = np.empty(len(Y), dtype=int)
    for train, test in splits(way):
        wanted[test] = ranks_by_hand(way, train, test)
    return wanted


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


def use_permutation_test(way, scoring, on):
    what, measures = SCORINGS[scoring]
    groups = to_function(way, on)
    if not on and way.groups is None:
        groups = {"groups": G}  # labels are then shuffled inside queries
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
        # scikit-learn warns since 1.7 if a splitter does not use the groups that it gets
        warnings.filterwarnings("ignore", "The groups parameter is ignored by KFold", UserWarning)
        ranker = make_ranker(way)
        return cross_val_score(ranker, way.X, way.y, cv=N_FOLDS, **to_function(way, on)), None


def use_halving_of_rows(way, scoring, on):
    rows = {"resource": "n_samples", "min_resources": 40, "max_resources": "auto"}
    return use_halving(way, scoring, on, **rows)


def by_rows(use):
    """Return the same tool with a splitter that cuts queries."""

    def use_by_rows(way, scoring, on):
        # KFold ignores the groups that were meant for GroupKFold; scikit-learn warns since 1.7
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The groups parameter is ignored by KFold")
            return use(way._replace(cv=KFold(N_FOLDS)), scoring, on)

    return use_by_rows


def use_importance_of_some_rows(way, scoring, on):
    return use_permutation_importance(way, scoring, on, max_samples=0.5)


def use_wrapper(way, scoring, on, make):
    """Fit a wrapper in which the ranker is hidden, and score what its predict returns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        wrapper = make(make_ranker(way, context=None)).fit(way.X, way.y, **to_fit(way))
    SCORER(wrapper, way.X, LABELS)
    pytest.fail("Positions of several queries were combined, and no such score is right.")


def use_stacked_scores(way, scoring, on):
    """Stack the scores of the ranker; its positions are never used."""
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
    """Compute the partial dependence of the scores of a fitted ranker."""
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
    return got, positions_by_hand(way)


def use_builtin_scorer(way, scoring, on):
    """Score with a scorer of scikit-learn, which takes positions for predictions of y."""
    got = cross_val_score(
        make_ranker(way),
        way.X,
        way.y,
        cv=way.cv,
        scoring="neg_mean_squared_error",
        **to_function(way, on),
    )
    return got, np.full(N_FOLDS, np.inf)  # no number is right


# ------------------------------------------------------------------ the tools by name

# For each name of TABLE: the function, and the values of scoring= to try.
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
    "search_of_rows": (by_rows(use_search), ["score", "scorer"]),
    "RFECV": (use_rfecv, ["scorer"]),
    "RFECV_without_scoring": (use_rfecv, ["score"]),
    "RFE_as_estimator": (use_rfe_as_estimator, ["scorer"]),
    "SequentialFeatureSelector": (use_sequential_selector, ["scorer"]),
    "cross_val_predict": (use_cross_val_predict, ["score"]),
    "search.predict": (use_search_predict, ["score"]),
    "search.score": (use_search_score, ["scorer"]),
    "search.score_by_default": (use_search_score, ["score"]),
    "integer_cv": (use_integer_cv, ["score"]),
    "builtin_scorer": (use_builtin_scorer, ["score"]),
}
