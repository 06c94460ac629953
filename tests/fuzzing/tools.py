"""Scorers, splitters and comparisons; wrappers that a scorer must see through, or refuse."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, VotingRegressor
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from . import public
from .values import draw_codes, draw_groups, rows_of, spoiled_numbers

_M, _S = public.metrics, public.model_selection


class Forwarding(RegressorMixin, BaseEstimator):
    """A wrapper of somebody else, which forwards `fit` and `predict`."""

    def __init__(self, inner):
        self.inner = inner

    def fit(self, X, y):
        self.inner_ = clone(self.inner).fit(X, y)
        return self

    def predict(self, X):
        return self.inner_.predict(X)


class Delegating(BaseEstimator):
    """Another, which forwards every attribute to a fitted estimator."""

    def __init__(self, wrapped):
        self.wrapped = wrapped

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.wrapped.predict(X)

    def __getattr__(self, name):
        if name.startswith("__") or "wrapped" not in vars(self):
            raise AttributeError(name)
        return getattr(self.wrapped, name)


def _data(case):
    sizes = case.rng.integers(2, 5, 8)
    codes = np.repeat(np.arange(8), sizes)
    if case.chance(0.5):
        codes = case.rng.permutation(codes)
    X = case.rng.normal(size=(len(codes), 3))
    y = case.rng.integers(0, 3, len(codes)) + (X[:, 0] > 0)
    return X, y, codes


def _ranker(column=None):
    return public.CalibratedRanker(Ridge(), loss="spearman", group_column=column)


def scorer(case):
    """A scorer through any wrapper: the value of the ranker's own ranks, or an error."""
    X, y, codes = _data(case)
    labels = public.relevance_labels(y, codes)
    name = case.choose(["ndcg", "ndcg@2", "spearman", "kendall_tau", "neg_pairwise_disagreement",
                        "dcg", "err@3"])  # fmt: skip
    function = {
        "ndcg": _M.ndcg_score,
        "ndcg@2": lambda *a, **b: _M.ndcg_score(*a, k=2, **b),
        "spearman": _M.spearman_score,
        "kendall_tau": _M.kendall_tau_score,
        "neg_pairwise_disagreement": lambda *a, **b: -_M.pairwise_disagreement_loss(*a, **b),
        "dcg": _M.dcg_score,
        "err@3": lambda *a, **b: _M.err_score(*a, k=3, **b),
    }[name]
    column = case.choose([None, "qid"])  # with it, a wrapper's own predict works
    if column is not None:
        X = pd.DataFrame(X, columns=["a", "b", "c"]).assign(qid=codes)
    make = lambda: _ranker(column)  # noqa: E731
    fitted = make().fit(X, labels)
    wanted = function(y, ranks=fitted.predict(X, groups=codes), groups=codes)
    wrappers = {
        "plain": lambda: fitted,
        "pipeline": lambda: make_pipeline(FunctionTransformer(), make()).fit(X, labels),
        "nested": lambda: make_pipeline(FunctionTransformer(),
                                        make_pipeline(FunctionTransformer(), fitted)),
        "frozen": lambda: FrozenEstimator(fitted),
        "search": lambda: GridSearchCV(make(), {"center": [True]}, cv=public.QueryKFold(2),
                                       scoring=_M.get_ranking_scorer("ndcg")).fit(X, labels),
        "frozen_pipeline": lambda: FrozenEstimator(make_pipeline(FunctionTransformer(), fitted)),
        "transformed_target": lambda: _transformed(fitted),
        "forwarding": lambda: _with(Forwarding(make()), inner_=fitted),
        "forwarding_pipeline": lambda: _with(
            Forwarding(make()), inner_=make_pipeline(FunctionTransformer(), fitted)
        ),
        "delegating": lambda: Delegating(fitted),
        "voting": lambda: _with(VotingRegressor([("one", make())]), estimators_=[fitted],
                                named_estimators_={"one": fitted}),
        "bagging": lambda: _with(BaggingRegressor(make(), n_estimators=1), estimators_=[fitted],
                                 estimators_features_=[slice(None)], n_features_in_=4),
        "multi_output": lambda: _with(MultiOutputRegressor(make()), estimators_=[fitted]),
        "pipeline_of_wrapper": lambda: make_pipeline(
            FunctionTransformer(), _with(Forwarding(make()), inner_=fitted)
        ),
        "regressor": lambda: Ridge().fit(X, y),
        "regressor_pipeline": lambda: make_pipeline(StandardScaler(), Ridge()).fit(X, y),
        "regressor_wrapper": lambda: TransformedTargetRegressor(Ridge()).fit(X, y),
    }  # fmt: skip
    if column is None:
        wrappers["rfe"] = lambda: RFE(make(), n_features_to_select=3).fit(X, labels)
    kind = case.choose(wrappers)
    estimator = wrappers[kind]()
    if kind.startswith("regressor"):
        wanted = function(y, estimator.predict(X), groups=codes)
    made = case.call(_M.get_ranking_scorer, name)
    given = case.choose([{"y": labels}, {"y": y, "groups": codes},
                         {"y": labels, "groups": draw_groups(case, codes.tolist())}])  # fmt: skip
    outcome = case.attempt(made, estimator, X, **given)
    if outcome.error is None:
        case.equal(outcome.value, wanted, f"reads {kind} wrongly")
    else:
        must = kind in ("plain", "pipeline", "frozen", "search", "rfe") or "regressor" in kind
        case.expect(not must, f"refuses {kind}", outcome.describe())
    if column is None:
        case.refuses(made, fitted, X, y, words=("group", "quer"))


def _transformed(fitted):
    """As after `fit`: scikit-learn's own does not take a structured y."""
    return _with(
        TransformedTargetRegressor(_ranker()),
        regressor_=fitted,
        transformer_=FunctionTransformer().fit(np.zeros((1, 1))),
        _training_dim=1,
    )


def _with(estimator, **fitted):
    for name, value in fitted.items():
        setattr(estimator, name, value)
    return estimator


def cut_queries(case):
    """A splitter that cuts queries of structured labels: every tool must refuse."""
    X, y, codes = _data(case)
    codes = np.arange(len(y)) % (len(y) // 4)  # rows of a query stand far apart
    labels = public.relevance_labels(y, codes)
    scoring = _M.get_ranking_scorer("ndcg")
    cv = case.choose([KFold(3), KFold(2, shuffle=True, random_state=0), 3])
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(qid=codes)
    tools = {
        "cross_val_score": lambda e, X, y: cross_val_score(e, X, y, cv=cv, scoring=scoring,
                                                           error_score="raise"),
        "cross_validate": lambda e, X, y: cross_validate(e, X, y, cv=cv, scoring=scoring,
                                                         error_score="raise"),
        "cross_val_predict": lambda e, X, y: cross_val_predict(e, X, y, cv=cv),
        "permutation_test_score": lambda e, X, y: permutation_test_score(
            e, X, y, cv=cv, scoring=scoring, n_permutations=2),
        "learning_curve": lambda e, X, y: learning_curve(
            e, X, y, cv=cv, scoring=scoring, train_sizes=[0.9], error_score="raise"),
        "validation_curve": lambda e, X, y: validation_curve(
            e, X, y, param_name="center", param_range=[True], cv=cv, scoring=scoring,
            error_score="raise"),
        "GridSearchCV": lambda e, X, y: GridSearchCV(
            e, {"center": [True]}, cv=cv, scoring=scoring, error_score="raise").fit(X, y),
    }  # fmt: skip
    tool = case.choose(tools)
    tools[tool].__qualname__ = tools[tool].__name__ = tool
    ways = [(_ranker(), X, labels), (_ranker("qid"), frame, labels)]
    case.refuses(tools[tool], *case.choose(ways), what=f"cut queries in {tool}")


def scores_of_cuts(case):
    """A warning comes exactly if a query of `fit` is scored with other rows."""
    X, _, codes = _data(case)
    y = case.rng.normal(size=len(codes))
    groups = np.array(draw_groups(case, codes.tolist()), dtype=object)
    n_queries = len(np.unique(codes))
    keep = case.rng.random(n_queries) < 0.5  # queries with all rows in training
    trained = keep[codes] | (case.rng.random(len(codes)) < case.choose([0.0, 0.5, 1.0]))
    kind = case.choose(["any", "any", "same", "new", "renamed"])
    if not trained.any():
        return
    train = case.rng.permutation(np.flatnonzero(trained))
    scored = {
        "any": lambda: case.rng.random(len(codes)) < 0.7,
        "same": lambda: np.isin(codes, codes[case.choose(train)]) & trained,
        "new": lambda: ~np.isin(codes, codes[train]),
        "renamed": lambda: ~trained,
    }[kind]()
    if not scored.any():
        return
    test = case.rng.permutation(np.flatnonzero(scored))
    names = groups[test]
    if kind == "renamed":
        names = np.array([f"another {code}" for code in codes[test]], dtype=object)
    common = np.intersect1d(codes[train], codes[test]) if kind != "renamed" else []
    cut = sum(set(train[codes[train] == q]) != set(test[codes[test] == q]) for q in common)
    ranker = _ranker()
    if (
        case.attempt(ranker.fit, X[train], y[train], groups=groups[train].tolist()).error
        is not None
    ):
        return  # no query has two rows
    score = case.choose([ranker.score, _M.get_ranking_scorer("spearman")])
    args = (X[test], y[test]) if score == ranker.score else (ranker, X[test], y[test])
    outcome = case.attempt(score, *args, groups=names.tolist())
    case.expect(outcome.error is None, "a score of cut queries is refused", str(outcome.error))
    found = [str(each.message) for each in outcome.warnings
             if each.category is public.CutQueriesWarning]  # fmt: skip
    case.expect(len(found) == (cut > 0), "a warning about cuts is wrong", f"{cut} cut, {found}")
    if cut:
        n_test = len(np.unique(codes[test]))
        text = f"{cut} of {n_test} queries to be scored"
        case.expect(found[0].startswith(text), "another number of cut queries", found[0])


def folds(case):
    """`QueryKFold`: every query is tested once, whole."""
    codes = draw_codes(case)
    n_queries = len(set(codes))
    groups = draw_groups(case, codes)
    splits = case.choose([2, 3, n_queries, np.int64(2)])
    if n_queries < 2:
        case.refuses(lambda: list(public.QueryKFold(2).split(codes, groups=groups)))
        return
    splits = min(splits, n_queries)
    cv = public.QueryKFold(splits, shuffle=case.chance(0.5), random_state=case.whole(0, 9))
    by_label = case.chance(0.3)
    y = public.relevance_labels([0] * len(codes), groups) if by_label else None
    found = case.call(lambda: list(cv.split(codes, y, None if by_label else groups)))
    tested = [row for _, test in found for row in test.tolist()]
    case.expect(sorted(tested) == list(range(len(codes))), "rows are not tested once each")
    for train, test in found:
        apart = {codes[i] for i in train}.isdisjoint(codes[i] for i in test)
        case.expect(apart, "a query is trained on and tested on")
        case.expect(sorted([*train, *test]) == list(range(len(codes))), "rows are lost")
    case.expect(len(found) == cv.get_n_splits(), "another number of folds")
    bad = case.choose([0, 1, -1, 2.5, "3", None, True, n_queries + 1, [], float("nan")])
    case.refuses(lambda: list(public.QueryKFold(bad).split(codes, groups=groups)))


def comparison(case):
    """Means, their difference, and a bootstrap that depends on the seed only."""
    codes = draw_codes(case)
    n = len(codes)
    y = case.rng.integers(0, 3, n)
    first, second = case.rng.normal(size=(2, n))
    weight = case.rng.integers(1, 4, n).astype(float) if case.chance(0.5) else None
    given = {"metric": "spearman", "groups": draw_groups(case, codes), "n_resamples": 50}
    outcome = case.attempt(_M.compare_rankings, y, first, second, sample_weight=weight, **given)
    if outcome.error is not None:
        return  # undefined everywhere
    found = outcome.value
    means = [_M.spearman_score(y, s, groups=codes, sample_weight=weight) for s in (first, second)]
    case.equal([found.first, found.second, found.difference], [*means, means[0] - means[1]],
               "other means than the metric")  # fmt: skip
    case.expect(found.low <= found.high and 0 < found.p_value <= 1, "no interval")
    if weight is not None:
        scaled = weight * 2.0 ** case.whole(-150, 150)
        again = case.call(_M.compare_rankings, y, first, second, sample_weight=scaled, **given)
        case.equal([again.low, again.high, again.p_value], [found.low, found.high, found.p_value],
                   "depends on the scale of weights")  # fmt: skip


def systems(case):
    """A table is its comparisons, one by one; Holm's p-values are ordered and larger."""
    _, y, codes = _data(case)
    named = {name: case.rng.normal(size=len(y)) for name in ("a", "b", "c")[: case.whole(2, 3)]}
    baseline = case.choose([None, "a"])
    given = {"groups": draw_groups(case, codes.tolist()), "n_resamples": 40}
    table = case.call(_M.compare_rankings, y, named, baseline=baseline, metric=["spearman", "dcg"],
                      **given)  # fmt: skip
    for k, (metric, one, other) in enumerate(
        zip(table["metric"], table["first"], table["second"], strict=True)
    ):
        found = _M.compare_rankings(y, named[one], named[other], metric=metric, **given)
        case.equal(
            [table["difference"][k], table["p_value"][k]],
            [found.difference, found.p_value],
            "differs from two rankings",
        )
        case.expect(table["p_value"][k] <= table["adjusted_p_value"][k] <= 1, "a smaller p-value")


def out_of_fold(case):
    """`query_cross_val_predict` is a loop over `QueryKFold`; positions are permutations."""
    X, y, codes = _data(case)
    labels = public.relevance_labels(y, codes)
    method = case.choose(["decision_function", "predict"])
    estimator = case.choose([_ranker(), make_pipeline(StandardScaler(), _ranker())])
    cv = case.choose([2, 3, public.QueryKFold(2, shuffle=True, random_state=0)])
    given = case.choose([{"y": labels}, {"y": y, "groups": codes}])
    found = case.call(_S.query_cross_val_predict, estimator, X, cv=cv, method=method, **given)
    splitter = public.QueryKFold(cv) if isinstance(cv, int) else cv
    wanted = np.empty(len(y))
    for train, test in splitter.split(X, groups=codes):
        fitted = clone(estimator).fit(X[train], labels[train])
        if method == "predict":
            wanted[test] = fitted.predict(X[test], groups=codes[test])
        else:
            wanted[test] = case.call(_S.predict_scores, fitted, X[test], groups=codes[test])
    case.equal(found, wanted, "differs from a loop over folds", 1e-9, 1e-9)
    cut = KFold(3)
    mixed = public.relevance_labels(y, np.arange(len(y)) % 8)
    case.refuses(_S.query_cross_val_predict, estimator, X, mixed, cv=cut, what="cut queries")


COVERS_SCORES = ("predict_scores", "predict_order", "RelevanceRegressor", "ScoreRegressor")


def scores(case):
    """`predict_scores` is `decision_function` through wrappers; a plain regressor's `predict`."""
    X, y, codes = _data(case)
    labels = public.relevance_labels(y, codes)
    fitted = _ranker().fit(X, labels)
    wanted = fitted.decision_function(X, groups=codes)
    wrapped = case.choose([fitted, make_pipeline(FunctionTransformer(), fitted),
                           FrozenEstimator(fitted)])  # fmt: skip
    case.equal(case.call(_S.predict_scores, wrapped, X, groups=codes), wanted, "other scores")
    if isinstance(wrapped, FrozenEstimator):
        wrapped = fitted
    bare = public.CalibratedRanker(Ridge(), loss="spearman", context=None).fit(X, labels)
    view = public.ScoreRegressor(bare)
    case.equal(case.call(view.predict, X), bare.decision_function(X, groups=codes),
               "the view has other scores")  # fmt: skip
    k = case.choose([None, 1, 2])
    for one, other in zip(case.call(public.predict_order, wrapped, X, codes, k),
                          fitted.predict_order(X, codes, k), strict=True):  # fmt: skip
        case.expect(np.array_equal(one, other), "another order through a wrapper")
    plain = case.call(_S.RelevanceRegressor(Ridge()).fit, X, labels)
    case.equal(plain.predict(X), Ridge().fit(X, y).predict(X), "another regression")


def context(case):
    """Context columns say where a value stands in its query."""
    codes = draw_codes(case)
    X = case.rng.normal(size=(len(codes), 2)) * 10.0 ** case.whole(-40, 40)
    X[:, 1] = case.rng.integers(0, 2, len(codes))
    table = case.call(public.context_columns, X, draw_groups(case, codes),
                      ["difference", "zscore"])  # fmt: skip
    case.expect(np.array_equal(table[:, :2], X), "changes the columns of X")
    for rows in rows_of(codes):
        away = X[rows] - X[rows].mean(axis=0)
        size = np.abs(X[rows]).max(axis=0)
        case.expect((np.abs(table[rows, 2:4] - away) <= 1e-12 * size).all(), "other differences")
        spread = X[rows].std(axis=0)
        known = np.ptp(X[rows], axis=0) > 0
        score = np.where(known, away / np.where(known, spread, 1), 0)
        case.equal(table[rows, 4:6], score, "other z-scores", 1e-6, 1e-6)


def shares(case):
    """The share of a category follows its definition for any rows, names and queries."""
    codes = draw_codes(case)
    numbers = np.array(codes)
    kind = case.rng.integers(-1, case.choose([1, 2, 4, 30]), len(codes))  # -1 is missing
    if case.chance(0.2):  # constant in every query
        kind = numbers % 3
    names = np.array([f"kind {number}" for number in range(31)])
    if case.chance(0.3):
        names = np.arange(31) * 10.0 ** case.whole(-40, 40)
    frame = pd.DataFrame({"kind": pd.Categorical.from_codes(kind, names)})
    frame["number"] = case.rng.normal(size=len(codes)) * 10.0 ** case.whole(-40, 40)
    kinds = case.choose(["share", ["share", "rank"], ["difference", "share"]])
    table = case.call(public.context_columns, frame, draw_groups(case, codes), kinds)
    found = table["kind__share"].to_numpy()
    for rows in rows_of(codes):
        same = kind[rows][:, None] == kind[rows]
        case.expect(np.array_equal(found[rows], same.mean(axis=1)), "another share")
    order = case.rng.permutation(len(codes))
    renamed = frame.assign(kind=pd.Categorical.from_codes(kind, names[::-1]))
    moved = case.call(public.context_columns, renamed.iloc[order], numbers[order],
                      kinds)  # fmt: skip
    case.expect(np.array_equal(moved["kind__share"], found[order]), "depends on order or names")


def importances(case):
    """A column that no ranking depends on has importance 0."""
    X, y, codes = _data(case)
    X[:, 1] = 7.0
    fitted = _ranker().fit(X, y, groups=codes)
    found = case.call(public.inspection.permutation_importance, fitted, X, y, groups=codes,
                      metric="dcg", n_repeats=2, random_state=case.whole(0, 9))  # fmt: skip
    case.expect(found.importances.shape == (3, 2), "another shape")
    case.equal(found.importances_mean[1], 0, "a constant column has importance")
    baseline = _M.dcg_score(y, ranks=fitted.predict(X, groups=codes), groups=codes)
    case.equal(found.baseline, baseline, "another baseline")


def bootstrap(case):
    """`compare_rankings` of values of queries: free of units and order, and clear errors."""
    n = case.choose([case.whole(1, 9), case.whole(10, 30)])
    a, b = case.rng.normal(size=(2, n))
    if case.chance(0.5):  # sums that tie
        a, b = case.rng.integers(0, 5, size=(2, n)) * 0.1
    a, b = (each * 10.0 ** case.whole(-40, 40) for each in (a, b))
    weight = case.rng.integers(0, 4, n).astype(float)
    weight[0] = 1
    given = {"n_resamples": 40}
    found = case.call(_M.compare_rankings, None, a, b, sample_weight=weight, **given)
    case.equal(found.difference, np.average(a - b, weights=weight), "another difference",
               atol=1e-12 * np.abs(a).max())  # fmt: skip
    case.expect(found.low <= found.high and 0 < found.p_value <= 1, "no interval")
    case.expect(found.p_value <= 0.05 or found.low <= 0 <= found.high, "p and interval disagree")
    case.expect(np.isfinite([found.low, found.high]).all() == (found.n_queries > 1), "an open end")
    order, unit = case.rng.permutation(n), case.choose([0.1, 0.3, 0.7, 3.0])
    moved = case.call(_M.compare_rankings, None, (unit * b)[order], (unit * a)[order],
                      sample_weight=weight[order], **given)  # fmt: skip
    case.equal(moved.p_value, found.p_value, "p depends on the unit or the order of queries")
    scaled = case.call(_M.compare_rankings, None, a, b,
                       sample_weight=weight * 2.0 ** case.whole(-150, 150), **given)  # fmt: skip
    case.equal([scaled.first, scaled.low, scaled.high], [found.first, found.low, found.high],
               "depends on the scale of weights", atol=1e-12 * np.abs(a).max())  # fmt: skip
    which = case.choose(["first", "weight", "n_resamples", "confidence_level", "random_state"])
    if which in ("first", "weight"):
        bad, _ = spoiled_numbers(case, n, without=("nan", "nan_array", "none", "none_array",
                                                      "na", "na_float", "null",
                                                      "decimal_nan"))  # fmt: skip
        if which == "first":
            case.refuses(_M.compare_rankings, None, bad, b, **given)
        else:
            case.refuses(_M.compare_rankings, None, a, b, sample_weight=bad, **given)
    else:
        bad = case.choose({"n_resamples": [0, -1, 2.5, "3", None, True, 10**12],
                           "confidence_level": [0, 1, 2, "x", None, float("nan"), 95],
                           "random_state": ["x", 2.5]}[which])  # fmt: skip
        case.refuses(_M.compare_rankings, None, a, b, **{**given, which: bad})


def names(case):
    """Names of losses, metrics and scorers: known, or refused with the known ones."""
    function = case.choose([_M.get_ranking_scorer, public.losses.get_loss])
    bad = case.choose(
        [
            "",
            "ndgc",
            "NDCG@10",
            "ndcg@",
            "ndcg@0",
            "ndcg@-1",
            "ndcg@1e3",
            "@10",
            "ndcg@10@10",
            "mrrr",
            None,
            3,
            b"ndcg",
            ["ndcg"],
            "precision",
            "neg_ndcg",
            "spearman@3",
            "\ud800",
            "ndcg@²",
            "ndcg @10",
            {},
            np.array(["ndcg"]),
        ]
    )
    case.refuses(function, bad)
    for name in public.losses.MEASURES:
        cutoff = "@3" if name in ("precision", "recall") else ""
        made = case.call(_M.get_ranking_scorer, name + cutoff)
        case.expect(made == _M.get_ranking_scorer(name + cutoff), "a scorer differs from itself")
