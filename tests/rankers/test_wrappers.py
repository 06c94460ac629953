"""Rankers inside other estimators: scorers that refuse them, ScoreRegressor, out-of-fold scores."""

import functools
import itertools
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_regressor
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_rankcal import (
    CalibratedRanker,
    MissingGroupsWarning,
    QueryKFold,
    RelevanceRegressor,
    ScoreRegressor,
    distill,
    predict_order,
    predict_scores,
    preference_labels,
    relevance_labels,
)
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.decoders import Rules
from sklearn_rankcal.metrics import get_ranking_scorer, ndcg_score
from sklearn_rankcal.model_selection import query_cross_val_predict
from sklearn_rankcal.models import PairwiseRidge

from ..covering import covering, covering_checks

DATA = make_ranking(24, (4, 9), 5, n_informative=3, random_state=0)
SHUFFLE = np.random.RandomState(0).permutation(len(DATA.y))
X, Y, G = DATA.X[SHUFFLE], DATA.y[SHUFFLE], DATA.groups[SHUFFLE]
LABELS = relevance_labels(Y, G)
FRAME = pd.DataFrame(X, columns=list("abcde")).assign(qid=G)
SCORER = get_ranking_scorer("ndcg@10")
BY_COLUMN = CalibratedRanker(Ridge(), group_column="qid").fit(FRAME, Y)
PLAIN = CalibratedRanker(Ridge(), context=None).fit(X, LABELS)
RIGHT = ndcg_score(Y, BY_COLUMN.decision_function(FRAME), k=10, groups=G)

both_routings = pytest.mark.parametrize("routing", [False, True])


class Forwards(RegressorMixin, BaseEstimator):
    """A wrapper of another package, which forwards predict to an object that it keeps."""

    def __init__(self, kept=None):
        self.kept = kept

    def predict(self, X):
        kept = self.kept
        while not callable(getattr(kept, "predict", kept)):
            kept = kept[0] if not isinstance(kept, dict) else kept["model"]
        return getattr(kept, "predict", kept)(X)


def objects(*items):
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


@covering_checks(
    parametrize_with_checks(
        [RelevanceRegressor(Ridge()), ScoreRegressor(CalibratedRanker(Ridge(), context=None))],
        expected_failed_checks=lambda estimator: (
            {
                f"check_sample_weight_equivalence_on_{kind}_data": (
                    "the targets of a ranker depend on the whole query; weights are weights of the "
                    "regression and not repetitions"
                )
                for kind in ("dense", "sparse")
            }
            if isinstance(estimator, ScoreRegressor)
            else {}
        ),
    )
)
# The checks fit without groups, and labels that are no grades.
@pytest.mark.filterwarnings("ignore::sklearn_rankcal.MissingGroupsWarning")
@pytest.mark.filterwarnings("ignore:A label is above 31")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


HIDDEN = {
    "attribute": Forwards(BY_COLUMN),
    "twice": Forwards(Forwards(BY_COLUMN)),
    "list": Forwards([BY_COLUMN]),
    "dict": Forwards({"model": BY_COLUMN}),
    "array of objects": Forwards(objects(BY_COLUMN)),
    "pipeline": Forwards(make_pipeline("passthrough", BY_COLUMN)),
    "frozen": Forwards(FrozenEstimator(BY_COLUMN)),
    "search": Forwards(
        GridSearchCV(BY_COLUMN, {"center": [True]}, cv=list(QueryKFold(2).split(X, LABELS))).fit(
            FRAME, Y
        )
    ),
    "target": TransformedTargetRegressor(BY_COLUMN).fit(FRAME, Y),
    "target of a pipeline": TransformedTargetRegressor(make_pipeline("passthrough", BY_COLUMN)).fit(
        FRAME, Y
    ),
    "one versus rest": OneVsRestClassifier(BY_COLUMN).fit(FRAME, Y),
}


@pytest.mark.parametrize("where", HIDDEN)
@pytest.mark.parametrize("how", ["labels", "groups"])
def test_a_scorer_refuses_positions_read_as_scores(where, how):
    wrapper = HIDDEN[where]
    assert np.isfinite(wrapper.predict(FRAME)).all()  # the wrapper does forward positions
    y, groups = (LABELS, {}) if how == "labels" else (Y, {"groups": G})
    with pytest.raises(ValueError, match=r"holds a ranker \(CalibratedRanker\).*ScoreRegressor"):
        SCORER(wrapper, FRAME, y, **groups)


def test_a_ranker_of_another_package_is_known_by_its_tag():
    class Other(BaseEstimator):
        def predict(self, X):
            return X[:, 0]

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.estimator_type = "ranker"
            return tags

    # Its own predictions are read as scores, as those of LGBMRanker are. Behind a wrapper nobody
    # knows what they are.
    assert SCORER(Other(), X, LABELS) == pytest.approx(ndcg_score(Y, X[:, 0], k=10, groups=G))
    with pytest.raises(ValueError, match=r"holds a ranker \(Other\)"):
        SCORER(Forwards(Other()), X, LABELS)


def test_estimators_that_are_not_rankers_are_not_refused():
    """Scores of any kind are accepted, and so is a ranker that only selects columns."""
    selects = make_pipeline(RFE(PLAIN, n_features_to_select=2), Ridge())
    for estimator in (
        Ridge(),
        RandomForestRegressor(5, random_state=0),
        TransformedTargetRegressor(Ridge()),
        BaggingRegressor(Ridge(), random_state=0),
        Forwards(Ridge().fit(X, Y)),
        Forwards(ScoreRegressor(PLAIN)),
        TransformedTargetRegressor(RelevanceRegressor(Ridge())),
    ):
        fitted = estimator.fit(X, Y) if hasattr(estimator, "fit") else estimator
        wanted = ndcg_score(Y, fitted.predict(X), k=10, groups=G)
        assert SCORER(fitted, X, LABELS) == pytest.approx(wanted)
    with sklearn.config_context(enable_metadata_routing=True):
        fitted = clone(selects)
        fitted[0].fit(X, LABELS)
        fitted[1].fit(fitted[0].transform(X), Y)
        wanted = ndcg_score(Y, fitted.predict(X), k=10, groups=G)
        assert SCORER(fitted, X, LABELS) == pytest.approx(wanted)


@both_routings
@pytest.mark.parametrize("ensemble", [BaggingRegressor, AdaBoostRegressor])
@pytest.mark.parametrize("view", [False, True])
def test_ensembles_that_draw_rows_get_no_score(routing, ensemble, view):
    ranker = CalibratedRanker(Ridge(), context=None)
    ranker = ScoreRegressor(ranker) if view else ranker
    by_weights = ensemble is BaggingRegressor and not routing  # all rows, with weights
    repeated = r"rows were repeated|incomplete"
    with sklearn.config_context(enable_metadata_routing=routing):
        if not (by_weights and view):  # scores of rankers of weighted rows can be averaged
            with pytest.raises(ValueError, match=rf"{repeated}|Put ScoreRegressor\(ranker\)"):
                SCORER(ensemble(ranker, random_state=0).fit(X, LABELS), X, LABELS)
        if ensemble is BaggingRegressor:  # plain labels lose the queries
            with pytest.warns(MissingGroupsWarning):
                ensemble(ranker, random_state=0).fit(X, Y)
        inside = CalibratedRanker(ensemble(Ridge(), random_state=0)).fit(X, Y, groups=G)
        assert SCORER(inside, X, LABELS) > 0.7


# -------------------------------------------------------------------- ScoreRegressor


def test_the_view_of_a_fitted_ranker_is_its_scores():
    view = ScoreRegressor(BY_COLUMN)
    np.testing.assert_array_equal(view.predict(FRAME), BY_COLUMN.decision_function(FRAME))
    assert is_regressor(view) and is_regressor(FrozenEstimator(view))
    assert view.n_features_in_ == 6 and view.feature_names_in_.tolist() == [*"abcde", "qid"]
    assert ndcg_score(Y, view.predict(FRAME), k=10, groups=G) == pytest.approx(RIGHT)
    assert SCORER(view, FRAME, Y) == pytest.approx(RIGHT)
    assert SCORER(FrozenEstimator(view), FRAME, LABELS) == pytest.approx(RIGHT)
    assert view.score(FRAME, Y) == BY_COLUMN.score(FRAME, Y)
    again = pickle.loads(pickle.dumps(view))
    np.testing.assert_array_equal(again.predict(FRAME), view.predict(FRAME))
    contextual = CalibratedRanker(Ridge()).fit(X, Y, groups=G)
    wanted = contextual.decision_function(X, groups=G)
    np.testing.assert_array_equal(ScoreRegressor(contextual).predict(X, groups=G), wanted)
    assert SCORER(ScoreRegressor(contextual), X, LABELS) == pytest.approx(
        ndcg_score(Y, wanted, k=10, groups=G)
    )
    with pytest.raises(ValueError, match="needs them: pass groups="):
        ScoreRegressor(contextual).predict(X)


def test_fit_fits_a_clone_and_frozen_keeps_the_fitted_ranker():
    view = ScoreRegressor(PLAIN)
    other = clone(view)
    with pytest.raises(NotFittedError):
        other.predict(X)
    half = G < 12
    before = PLAIN.decision_function(X)
    view.fit(X[half], Y[half], groups=G[half])
    np.testing.assert_array_equal(PLAIN.decision_function(X), before)
    wanted = clone(PLAIN).fit(X[half], Y[half], groups=G[half]).decision_function(X)
    np.testing.assert_array_equal(view.predict(X), wanted)
    frozen = FrozenEstimator(ScoreRegressor(PLAIN)).fit(X[half], Y[half])
    np.testing.assert_array_equal(frozen.predict(X), before)
    pipe = make_pipeline(StandardScaler(), CalibratedRanker(Ridge()))
    through = ScoreRegressor(pipe).fit(X, Y, groups=G)
    fitted = clone(pipe).fit(X, LABELS)
    np.testing.assert_allclose(through.predict(X, groups=G), predict_scores(fitted, X, G))
    assert through.score(X, Y, groups=G) == pytest.approx(fitted.score(X, LABELS))


@both_routings
def test_the_view_is_a_regressor_for_scikit_learn(routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        view = ScoreRegressor(PLAIN)
        # Its z-scores of a constant are 0.
        with pytest.warns(UserWarning, match="'a' has the same value in all .* context=None"):
            of_frame = partial_dependence(ScoreRegressor(BY_COLUMN), FRAME.astype(float), ["a"])
        assert np.isfinite(of_frame["average"]).all()
        student = distill(BY_COLUMN, FRAME, regressor=Ridge(), context=None, random_state=0)
        advised = partial_dependence(ScoreRegressor(student), FRAME.astype(float), ["a"])
        assert np.ptp(advised["average"]) > 1.5 * np.ptp(of_frame["average"])

        wanted = PLAIN.decision_function(X)
        kept = VotingRegressor([("a", FrozenEstimator(view)), ("b", RelevanceRegressor(Ridge()))])
        kept.fit(X, LABELS)
        mean = (wanted + Ridge().fit(X, Y).predict(X)) / 2
        np.testing.assert_allclose(kept.predict(X), mean)
        assert SCORER(kept, X, LABELS) == pytest.approx(ndcg_score(Y, mean, k=10, groups=G))
        again = VotingRegressor([("a", view)]).fit(X, LABELS)
        np.testing.assert_allclose(again.predict(X), wanted)
        with pytest.warns(MissingGroupsWarning):
            VotingRegressor([("a", view)]).fit(X, Y)

        importance = permutation_importance(view, X, LABELS, scoring=SCORER, n_repeats=2)
        assert importance.importances_mean.max() > 0.05
        scores = cross_val_score(view, X, LABELS, cv=QueryKFold(3), scoring=SCORER, params={})
        direct = cross_val_score(PLAIN, X, LABELS, cv=QueryKFold(3), scoring=SCORER, params={})
        np.testing.assert_allclose(scores, direct)


def test_rankers_without_scores_are_refused_with_an_alternative():
    ranker = CalibratedRanker(PairwiseRidge(), loss="pd")
    with pytest.raises(TypeError, match=r"loss='pd'.*no scores.*'pd_by_scores'"):
        ScoreRegressor(ranker).fit(X, LABELS)
    fitted = ranker.fit(X, LABELS)
    for use in (ScoreRegressor(fitted).predict, functools.partial(predict_scores, fitted)):
        with pytest.raises(TypeError, match="no scores"):
            use(X)
    with pytest.raises(TypeError, match=r"needs a ranker.*got Ridge"):
        ScoreRegressor(Ridge()).predict(X)
    with pytest.raises(TypeError, match=r"ends in a ranker|ends in Ridge"):
        predict_order(Ridge().fit(X, Y), X)
    with pytest.raises(ValueError, match="holds a ranker"):
        predict_scores(HIDDEN["target"], FRAME)


# -------------------------------------------------------------------- through wrappers


@both_routings
@pytest.mark.parametrize("wrap", ["alone", "pipeline", "nested", "search", "RFE", "frozen"])
def test_scores_and_lists_through_any_wrapper(routing, wrap):
    ranker = CalibratedRanker(Ridge(), context=None if wrap == "RFE" else "auto")
    scale = StandardScaler().fit(X)
    table = scale.transform(X) if wrap in ("pipeline", "nested", "search") else X
    if wrap == "RFE":
        table = X[:, RFE(ranker, n_features_to_select=2).fit(X, LABELS).support_]
    direct = clone(ranker).fit(table, Y, groups=G)
    with sklearn.config_context(enable_metadata_routing=routing):
        wrapped = {
            "alone": lambda: ranker,
            "pipeline": lambda: make_pipeline(StandardScaler(), ranker),
            "nested": lambda: make_pipeline("passthrough", make_pipeline(StandardScaler(), ranker)),
            "search": lambda: GridSearchCV(
                make_pipeline(StandardScaler(), ranker),
                {"calibratedranker__center": [True]},
                cv=QueryKFold(3),
            ),
            "RFE": lambda: RFE(ranker, n_features_to_select=2),
            "frozen": lambda: FrozenEstimator(direct),
        }[wrap]().fit(X, LABELS)
        scores = predict_scores(wrapped, X, G)
        np.testing.assert_allclose(scores, direct.decision_function(table, groups=G))
        order = predict_order(wrapped, X, G, k=2)
        for got, wanted in zip(order, direct.predict_order(table, groups=G, k=2), strict=True):
            np.testing.assert_array_equal(got, wanted)
        if wrap == "pipeline":  # the idiom without a function
            by_steps = wrapped[-1].decision_function(wrapped[:-1].transform(X), groups=G)
            np.testing.assert_array_equal(by_steps, scores)
            np.testing.assert_array_equal(
                wrapped.predict(X, groups=G), direct.predict(table, groups=G)
            )


def test_order_as_a_frame():
    order = BY_COLUMN.predict_order(FRAME, k=2)
    rows, offsets, queries = order  # still a tuple
    frame = order.to_frame()
    assert frame.columns.tolist() == ["query", "position", "row", "score"]
    assert len(frame) == len(rows) == offsets[-1]
    assert (frame["query"] == G[frame["row"]]).all()
    np.testing.assert_array_equal(BY_COLUMN.predict(FRAME)[frame["row"]], frame["position"])
    assert frame["query"].nunique() == len(queries)
    np.testing.assert_array_equal(BY_COLUMN.decision_function(FRAME)[frame["row"]], frame["score"])
    assert BY_COLUMN.predict_order(FRAME, rules=Rules()).scores is None
    assert pickle.loads(pickle.dumps(order)).to_frame().equals(frame)


def test_no_candidates():
    """A service asks for them; a ranker that is not fitted still says so."""
    pairs = CalibratedRanker(Ridge(), loss="pd").fit(X, Y, groups=G)
    pipe = make_pipeline(StandardScaler(), CalibratedRanker(Ridge())).fit(X, LABELS)
    assert len(predict_scores(pipe, X[:0])) == 0
    order = predict_order(pipe, X[:0], k=2)
    assert order.to_frame().columns.tolist() == ["query", "position", "row", "score"]
    assert len(order.to_frame()) == len(order.rows) == 0 and order.offsets.tolist() == [0]
    for table in (FRAME[:0], X[:0], []):
        assert (
            BY_COLUMN.predict(table).tolist() == BY_COLUMN.decision_function(table).tolist() == []
        )
        assert pairs.predict(table, groups=[]).dtype == np.int64
        with pytest.raises(NotFittedError):
            clone(pairs).predict(table)


@both_routings
def test_the_error_of_a_pipelines_score_names_what_dropped_the_groups(routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        pipe = make_pipeline(StandardScaler(), CalibratedRanker(Ridge())).fit(X, LABELS)
        if routing:
            assert pipe.score(X, Y, groups=G) == pytest.approx(pipe.score(X, LABELS))
        else:
            with pytest.raises(
                ValueError, match=r"score method of a Pipeline drops groups=.*get_ranking_scorer"
            ):
                pipe.score(X, Y, groups=G)
        assert SCORER(pipe, X, Y, groups=G) == pytest.approx(SCORER(pipe, X, LABELS))


def test_a_renamed_group_column_is_suggested():
    transformer = ColumnTransformer([("scale", StandardScaler(), ["a"])], remainder="passthrough")
    pipe = make_pipeline(transformer.set_output(transform="pandas"), clone(BY_COLUMN))
    with pytest.raises(ValueError, match="Did you mean group_column='remainder__qid'"):
        pipe.fit(FRAME, Y)
    pipe.set_params(calibratedranker__group_column="remainder__qid").fit(FRAME, Y)
    assert len(pipe.predict(FRAME)) == len(Y)
    with pytest.raises(ValueError, match=r"'qid' is not among the columns \['a', 'b'[^?]*\]\.$"):
        clone(BY_COLUMN).fit(FRAME.drop(columns="qid"), Y)


# -------------------------------------------------------------------- out of fold


@pytest.mark.parametrize(
    ("how", "method", "routing"),
    covering(
        itertools.product(
            ["groups", "labels", "column", "pipeline", "search"],
            ["decision_function", "predict"],
            [False, True],
        ),
        lambda how, method, routing: (how, (method, routing)),
    ),
)
def test_out_of_fold_values_are_those_of_rankers_that_have_not_seen_the_query(how, method, routing):
    ranker, table, y, groups = CalibratedRanker(Ridge()), X, Y, G
    scaled = how in ("pipeline", "search")
    estimator = ranker
    if how == "labels":
        y, groups = LABELS, None
    elif how == "column":
        estimator, table, groups = clone(BY_COLUMN), FRAME, None
    elif scaled:
        estimator = make_pipeline(StandardScaler(), ranker)
    if how == "search":
        estimator = GridSearchCV(
            estimator, {"calibratedranker__center": [True]}, cv=QueryKFold(2), scoring=SCORER
        )
    wanted = np.empty(len(Y))
    for train, test in QueryKFold(4).split(X, Y, G):
        scale = StandardScaler().fit(X[train])
        parts = [scale.transform(X[rows]) if scaled else X[rows] for rows in (train, test)]
        fitted = clone(ranker).fit(parts[0], Y[train], groups=G[train])
        wanted[test] = getattr(fitted, method)(parts[1], groups=G[test])
    with sklearn.config_context(enable_metadata_routing=routing):
        got = query_cross_val_predict(estimator, table, y, groups=groups, cv=4, method=method)
        with joblib.parallel_config("threading"):
            same = query_cross_val_predict(
                estimator, table, y, groups=groups, cv=QueryKFold(4), method=method, n_jobs=2
            )
    np.testing.assert_allclose(got, wanted)
    np.testing.assert_array_equal(got, same)
    assert got.dtype.kind == ("i" if method == "predict" else "f")


def test_out_of_fold_regressors_preferences_and_views():
    by_hand = np.empty(len(Y))
    for train, test in QueryKFold(3).split(X, Y, G):
        by_hand[test] = Ridge().fit(X[train], Y[train]).predict(X[test])
    for regressor in (Ridge(), RelevanceRegressor(Ridge())):
        got = query_cross_val_predict(regressor, X, Y, groups=G, cv=3)
        np.testing.assert_allclose(got, by_hand)
    i, j = np.nonzero((G[:, None] == G) & (Y[:, None] > Y))
    labels = preference_labels(np.stack([i, j], axis=1), G)
    ranks = query_cross_val_predict(
        CalibratedRanker(PairwiseRidge(), loss="pd"), X, labels, cv=3, method="predict"
    )
    assert (np.bincount(ranks)[1:] <= 24).all() and (ranks == 1).sum() == len(np.unique(G))
    voting = VotingRegressor([("a", ScoreRegressor(PLAIN))])
    np.testing.assert_allclose(
        query_cross_val_predict(voting, X, LABELS, cv=3),
        query_cross_val_predict(PLAIN, X, LABELS, cv=3),
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": list(KFold(3).split(X))}, "A fold splits .* of 24 queries.*QueryKFold"),
        ({"cv": [(np.flatnonzero(G > 3), np.flatnonzero(G <= 3))]}, "test every row once"),
        ({"groups": None}, r"cannot determine which rows belong.*relevance_labels\(y, groups\)"),
        ({"groups": G[1:]}, "entries, but X has"),
        ({"method": "predict_proba"}, "Unknown method.*decision_function, predict"),
    ],
)
def test_bad_folds(options, message):
    with pytest.raises(ValueError, match=message):
        query_cross_val_predict(clone(PLAIN), X, Y, **({"groups": G} | options))


def test_out_of_fold_scores_of_a_loss_on_pairs_are_refused_before_work_starts():
    with pytest.raises(TypeError, match="no scores"):
        query_cross_val_predict(CalibratedRanker(PairwiseRidge(), loss="pd"), X, LABELS)


# -------------------------------------------------------------------- plain regressors


@both_routings
def test_a_plain_regressor_shares_labels_and_scorer(routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        baseline = RelevanceRegressor(make_pipeline(StandardScaler(), Ridge()))
        scores = cross_val_score(baseline, X, LABELS, cv=QueryKFold(3), scoring=SCORER, params={})
        wanted = []
        for train, test in QueryKFold(3).split(X, LABELS):
            fitted = Ridge().fit(StandardScaler().fit_transform(X[train]), Y[train])
            values = fitted.predict(StandardScaler().fit(X[train]).transform(X[test]))
            wanted.append(ndcg_score(Y[test], values, k=10, groups=G[test]))
        np.testing.assert_allclose(scores, wanted)
        weight = np.linspace(0.1, 2, len(Y))
        plain = Ridge().fit(X, Y, sample_weight=weight)
        same = RelevanceRegressor(Ridge()).fit(X, LABELS, sample_weight=weight)
        np.testing.assert_allclose(same.predict(X), plain.predict(X))
        assert same.score(X, LABELS) == pytest.approx(plain.score(X, Y))
        assert is_regressor(same) and same.n_features_in_ == 5
        cut = [(np.arange(100), np.arange(100, len(Y)))]
        with pytest.raises(ValueError, match="A splitter has cut it"):
            cross_val_score(baseline, X, LABELS, cv=cut, scoring=SCORER, params={})
    with pytest.raises(ValueError, match="fields"):
        RelevanceRegressor(Ridge()).fit(X, preference_labels([[0, 1]], np.zeros(len(Y))))


def test_one_query_is_still_allowed_alone():
    with pytest.warns(MissingGroupsWarning):
        regressor = ScoreRegressor(clone(PLAIN)).fit(X, Y)
    assert len(regressor.predict(X)) == len(Y)
