"""Scorers. test_sklearn_tools.py uses it on relevance labels in scikit-learn's tools."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import kendalltau
from sklearn.base import BaseEstimator, clone
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import get_routing_for_object

from sklearn_rankcal import (
    CalibratedLabelRanker,
    CalibratedRanker,
    MissingGroupsWarning,
    QueryKFold,
    preference_labels,
    relevance_labels,
)
from sklearn_rankcal.datasets import make_label_ranking, make_ranking
from sklearn_rankcal.labels._label_rankings import read_label_rankings  # what scorers read
from sklearn_rankcal.losses import MEASURES
from sklearn_rankcal.losses._base import BinaryMeasure
from sklearn_rankcal.losses._registry import settable_parameters
from sklearn_rankcal.metrics import evaluate_rankings, get_ranking_scorer, ndcg_score
from sklearn_rankcal.models import BilinearPairs, PairwiseRidge

from .. import oracles
from ..covering import covering
from ..preference_data import preferences_of_ranks

DATA = make_ranking(50, (3, 9), 6, n_levels=2, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups
RANKER = CalibratedRanker(Ridge()).fit(X, Y, G)
NAMES = [name if kind.greater_is_better else f"neg_{name}" for name, kind in MEASURES.items()]


def has_cutoff(base):
    return "k" in settable_parameters(base)


@pytest.mark.parametrize("name", NAMES)
def test_every_named_scorer_is_the_metric_of_predict(name):
    base = name.removeprefix("neg_")
    cutoff = "@3" if has_cutoff(base) else ""
    scorer = get_ranking_scorer(name + cutoff)
    ranks = RANKER.predict(X, G)
    wanted = evaluate_rankings(Y, ranks=ranks, groups=G, metrics=[base + cutoff])[base + cutoff]
    sign = 1 if MEASURES[base].greater_is_better else -1
    assert scorer(RANKER, X, Y, groups=G) == pytest.approx(sign * wanted)
    assert scorer(RANKER, X, relevance_labels(Y, G)) == pytest.approx(sign * wanted)


def test_a_loss_is_negated_with_and_without_the_prefix():
    plain = get_ranking_scorer("pairwise_disagreement")
    assert plain == get_ranking_scorer("neg_pairwise_disagreement")
    assert repr(plain) == "get_ranking_scorer('neg_pairwise_disagreement')"
    assert plain(RANKER, X, Y, groups=G) < 0


def test_other_estimators_are_scored_by_their_predictions():
    plain = Ridge().fit(X, Y)
    scorer = get_ranking_scorer("ndcg@5")
    wanted = ndcg_score(Y, plain.predict(X), k=5, groups=G)
    assert scorer(plain, X, Y, groups=G) == pytest.approx(wanted)


def test_scorers_find_rankers_in_pipelines_and_searches():
    scorer = get_ranking_scorer("ndcg")
    wanted = scorer(RANKER, X, Y, groups=G)
    pipe = make_pipeline(make_pipeline(StandardScaler(with_mean=False, with_std=False), RANKER))
    pipe.fit(X, relevance_labels(Y, G))
    assert scorer(pipe, X, Y, groups=G) == pytest.approx(wanted)
    search = GridSearchCV(RANKER, {"center": [True]}, cv=[(np.arange(len(Y)),) * 2])
    search.fit(X, relevance_labels(Y, G))
    assert scorer(search, X, Y, groups=G) == pytest.approx(wanted)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(qid=G)
    by_column = CalibratedRanker(Ridge(), group_column="qid").fit(frame, Y)
    assert scorer(by_column, frame, Y) == pytest.approx(wanted)
    assert scorer(make_pipeline("passthrough", by_column), frame, Y) == pytest.approx(wanted)


def test_a_scorer_without_queries_raises_and_never_guesses():
    with pytest.raises(ValueError, match=r"cannot determine which rows belong.*relevance_labels"):
        get_ranking_scorer("ndcg")(RANKER, X, Y)
    with pytest.warns(MissingGroupsWarning):
        groupless = CalibratedRanker(Ridge()).fit(X, Y)
    with pytest.raises(ValueError, match="cannot determine which rows belong"):
        get_ranking_scorer("ndcg")(groupless, X, Y)
    with pytest.raises(ValueError, match="different queries"):
        get_ranking_scorer("ndcg")(RANKER, X, relevance_labels(Y, G), groups=np.roll(G, 1))
    with pytest.raises(ValueError, match="splitter has cut it"):
        get_ranking_scorer("ndcg")(RANKER, X[1:], relevance_labels(Y, G)[1:])


def test_parameters():
    graded = get_ranking_scorer("map", threshold=2)
    assert np.isnan(_quiet(graded, RANKER, X, Y, G))
    assert get_ranking_scorer("map", threshold=2, zero_division=0)(RANKER, X, Y, groups=G) == 0
    assert repr(get_ranking_scorer("map", threshold=2, zero_division=0)) == (
        "get_ranking_scorer('map', threshold=2, zero_division=0)"
    )


def _quiet(scorer, ranker, X, Y, G):
    with pytest.warns(UserWarning, match="undefined on all"):
        return scorer(ranker, X, Y, groups=G)


def test_scorers_follow_the_protocol_of_scikit_learn():
    scorer = get_ranking_scorer("err@3", max_relevance=4)
    assert scorer == pickle.loads(pickle.dumps(scorer)) and hash(scorer) == hash(scorer)
    assert clone(scorer, safe=False) == scorer
    assert scorer != get_ranking_scorer("err@3")
    request = get_routing_for_object(scorer)
    assert request.score.requests == {"groups": True, "sample_weight": True}


def test_bad_parameters():
    with pytest.raises(ValueError, match="drop the prefix"):
        get_ranking_scorer("neg_ndcg")
    with pytest.raises(TypeError, match="gian"):
        get_ranking_scorer("ndcg", gian="exp2")
    with pytest.raises(ValueError, match="zero_division"):
        get_ranking_scorer("ndcg", zero_division="drop")


# -------------------------------------------------------------------- labels made of preferences


def random_preferences(seed=0):
    """Return weighted pairs, of which some are opposed or repeated, and the matrix of weights."""
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, len(Y), (2, 4000))
    i, j = np.stack([i, j])[:, (i != j) & (G[i] == G[j]) & (G[i] % 7 > 0)]
    weight = rng.integers(1, 4, len(i)).astype(float)
    matrix = np.zeros((len(Y),) * 2)
    np.add.at(matrix, (i, j), weight)
    return preference_labels(np.stack([i, j], axis=1), G, weight), matrix


PREFERENCES, WEIGHT = random_preferences()


def kept(scores):
    """Return the share of the weight of each query that the scores keep; a tie keeps half."""
    shares = []
    for rows in oracles.split(G):
        total = sum(WEIGHT[i, j] for i in rows for j in rows)
        good = sum(
            WEIGHT[i, j] * (1.0 if scores[i] > scores[j] else 0.5 * (scores[i] == scores[j]))
            for i in rows
            for j in rows
        )
        shares.append(good / total if total else np.nan)
    return np.array(shares)


class GivenScores(BaseEstimator):
    """A ranker of another package, whose predict returns scores."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.round(X[:, 0])


def test_preferences_are_scored_by_their_weights():
    weight = np.where(G < 10, 1.0, 2.0)
    in_query = weight[[rows[0] for rows in oracles.split(G)]]
    for estimator, scores in (
        (RANKER, -RANKER.predict(X, G)),
        (GivenScores().fit(X, Y), np.round(X[:, 0])),
    ):
        shares = kept(scores)
        defined = ~np.isnan(shares)
        assert 0 < defined.sum() < len(shares)
        for name, wanted in (
            ("kendall_tau", 2 * shares - 1),
            ("pairwise_disagreement", shares - 1),
            ("neg_pairwise_disagreement", shares - 1),
        ):
            scorer = get_ranking_scorer(name)
            found = scorer(estimator, X, PREFERENCES)
            assert found == pytest.approx(wanted[defined].mean())
            assert scorer(estimator, X, PREFERENCES, groups=G) == found
            found = scorer(estimator, X, PREFERENCES, sample_weight=weight)
            assert found == pytest.approx(np.average(wanted[defined], weights=in_query[defined]))
    lost = get_ranking_scorer("pairwise_disagreement", normalize=False, zero_division=0)
    total = np.array([WEIGHT[np.ix_(rows, rows)].sum() for rows in oracles.split(G)])
    wanted = ((1 - np.nan_to_num(kept(np.round(X[:, 0])), nan=1)) * total).mean()
    assert -lost(GivenScores(), X, PREFERENCES) == pytest.approx(wanted)


def test_preferences_of_relevance_are_scored_as_relevance():
    i, j = np.nonzero((G[:, None] == G) & (Y[:, None] > Y))
    labels = preference_labels(np.stack([i, j], axis=1), G)
    for name in ("kendall_tau", "pairwise_disagreement"):
        scorer = get_ranking_scorer(name)
        for estimator in (RANKER, GivenScores()):
            assert scorer(estimator, X, labels) == pytest.approx(scorer(estimator, X, Y, groups=G))


def test_other_metrics_refuse_preferences():
    for name in set(NAMES) - {"kendall_tau", "neg_pairwise_disagreement"}:
        base = name.removeprefix("neg_")
        with pytest.raises(
            ValueError,
            match=r"needs a relevance.*use 'kendall_tau' or 'pairwise_disagreement'",
        ):
            scorer = get_ranking_scorer(name + ("@3" if has_cutoff(base) else ""))
            scorer(RANKER, X, PREFERENCES)
    with pytest.raises(ValueError, match="different queries"):
        get_ranking_scorer("kendall_tau")(RANKER, X, PREFERENCES, groups=np.roll(G, 1))
    with pytest.raises(ValueError, match="splitter has cut it"):
        get_ranking_scorer("kendall_tau")(RANKER, X[1:], PREFERENCES[1:])


SCORERS = {name: get_ranking_scorer(name) for name in ("kendall_tau", "pairwise_disagreement")}


def by_hand(estimator, splits, labels, groups):
    """Return Kendall's tau of every fold, computed by hand."""
    taus = []
    for train, test in splits:
        fitted = clone(estimator).fit(X[train], labels[train])
        scores = np.zeros(len(Y))
        scores[test] = -fitted.predict(X[test], groups=groups[test])
        taus.append(np.nanmean(2 * kept(scores)[np.unique(groups[test])] - 1))
    return np.array(taus)


@pytest.mark.parametrize("routing", [False, True])
def test_tools_on_preferences(routing):
    pipe = make_pipeline(StandardScaler(), CalibratedRanker(BilinearPairs(), loss="pd"))
    grid = {"calibratedranker__regressor__alpha": [1e-3, 10.0]}
    with sklearn.config_context(enable_metadata_routing=routing):
        cv = QueryKFold(3)
        found = cross_validate(
            pipe, X, PREFERENCES, cv=cv, scoring=SCORERS, params={}, error_score="raise"
        )
        wanted = by_hand(pipe, cv.split(X, PREFERENCES), PREFERENCES, G)
        np.testing.assert_allclose(found["test_kendall_tau"], wanted)
        np.testing.assert_allclose(found["test_pairwise_disagreement"], (wanted - 1) / 2)
        for scoring, options in (
            (SCORERS["kendall_tau"], {}),
            (SCORERS, {"refit": "pairwise_disagreement"}),
        ):
            search = GridSearchCV(
                pipe, grid, cv=cv, scoring=scoring, error_score="raise", **options
            ).fit(X, PREFERENCES)
            best = SCORERS["kendall_tau"](search, X, PREFERENCES)
            scores = -search.best_estimator_.predict(X, groups=G)
            assert best == pytest.approx(np.nanmean(2 * kept(scores) - 1))
        splits = GroupKFold(3)
        routed = {"params": {"groups": G}} if routing else {"groups": G}
        found = cross_val_score(
            pipe, X, PREFERENCES, cv=splits, scoring=SCORERS["kendall_tau"], **routed
        )
        wanted = by_hand(pipe, splits.split(X, PREFERENCES, G), PREFERENCES, G)
        np.testing.assert_allclose(found, wanted)
        found = cross_val_score(
            GivenScores(), X, PREFERENCES, cv=cv, scoring=SCORERS["kendall_tau"], params={}
        )
        assert np.isfinite(found).all()


def test_permutation_importance_on_preferences():
    fitted = CalibratedRanker(PairwiseRidge(), loss="pd").fit(X, PREFERENCES)
    found = permutation_importance(
        fitted, X, PREFERENCES, scoring=SCORERS, n_repeats=2, random_state=0
    )
    tau, lost = (found[name].importances for name in SCORERS)
    assert tau.shape == (6, 2) and np.abs(tau).max() > 0
    np.testing.assert_allclose(tau, 2 * lost)


# -------------------------------------------------------------------- label ranking

RANKINGS = make_label_ranking(90, 4, 3, kind="mallows", noise=0.5, random_state=0)
XL, YL = RANKINGS.X, RANKINGS.Y.astype(float)
LABEL_RANKER = CalibratedLabelRanker(Ridge()).fit(XL, YL)
TAU = SCORERS["kendall_tau"]


def with_missing(share=0.3):
    return np.where(np.random.default_rng(0).random(YL.shape) < share, np.nan, YL)


LABEL_RANKINGS = {"ranks": YL, "missing": with_missing(), "weights": preferences_of_ranks(YL)}


@pytest.mark.parametrize(
    "Y",
    [
        YL,
        np.minimum(YL, 3),
        with_missing(),
        np.minimum(with_missing(), 2),
        preferences_of_ranks(YL),
        np.random.default_rng(1).integers(0, 3, (90, 4, 4)).astype(float),
        pd.DataFrame(YL),
        YL.tolist(),
    ],
    ids=["complete", "tied", "missing", "both", "weights", "opposed", "frame", "lists"],
)
def test_tau_of_label_rankings(Y):
    """The scorer is the mean over rows; `score` counts rows by the weight that they judge."""
    tau = TAU(LABEL_RANKER, XL, Y)
    _, P = read_label_rankings(Y, 90, "auto")
    P = P * (1 - np.eye(4)) if P.ndim == 3 else preferences_of_ranks(P)
    ranks = LABEL_RANKER.predict(XL)
    total = P.sum(axis=(1, 2))
    against = (P * (ranks[:, :, None] > ranks[:, None])).sum(axis=(1, 2))
    some = total > 0
    assert tau == pytest.approx(np.mean(1 - 2 * against[some] / total[some]))
    assert LABEL_RANKER.score(XL, Y) == pytest.approx(1 - 2 * against.sum() / total.sum())
    weight = np.arange(90.0)
    found, whole = TAU(LABEL_RANKER, XL, Y, sample_weight=weight), LABEL_RANKER.score(XL, Y, weight)
    shares = 1 - 2 * against[some] / total[some]
    assert found == pytest.approx(np.average(shares, weights=weight[some]))
    assert whole == pytest.approx(1 - 2 * (weight @ against) / (weight @ total))
    lost = SCORERS["pairwise_disagreement"](LABEL_RANKER, XL, Y, groups=np.zeros(90))
    assert lost == pytest.approx((tau - 1) / 2)


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_of_label_rankings(name):
    """A row is a query, and the relevance of a label is r - rank."""
    base = name.removeprefix("neg_")
    full = base + ("@2" if has_cutoff(base) else "")
    threshold = {"threshold": 2} if issubclass(MEASURES[base], BinaryMeasure) else {}
    for Y in (YL, np.minimum(YL, 3)):
        wanted = evaluate_rankings(
            (4 - Y).ravel(),
            ranks=LABEL_RANKER.predict(XL).ravel(),
            groups=np.repeat(np.arange(90), 4),
            metrics=[full],
            **threshold,
        )[full]
        found = get_ranking_scorer(full, **threshold)(LABEL_RANKER, XL, Y)
        assert found == pytest.approx(wanted if MEASURES[base].greater_is_better else -wanted)


def test_relevance_of_labels():
    relevance = np.random.default_rng(0).integers(0, 3, YL.shape).astype(float)
    ranker = CalibratedLabelRanker(Ridge(), loss="ndcg@2", y_type="relevance").fit(XL, relevance)
    scorer = get_ranking_scorer("ndcg@2")
    assert scorer(ranker, XL, relevance) == pytest.approx(ranker.score(XL, relevance))
    positions = 4 - ranker.predict(XL)
    wanted = evaluate_rankings(relevance, ranks=positions, metrics=["ndcg@2"])["ndcg@2"]
    assert scorer(ranker, XL, relevance) == pytest.approx(wanted)
    missing = np.where(np.random.default_rng(1).random(YL.shape) < 0.3, np.nan, relevance)
    ranks, lost = positions, {"binary": [], "graded": []}
    for y, own in zip(missing, ranks, strict=True):
        seen = ~np.isnan(y)
        order = np.argsort(own[seen]).tolist()
        for pair_weight, losses in lost.items():
            losses.append(oracles.disagreement(y[seen].tolist(), order, pair_weight))
    assert TAU(ranker, XL, missing) == pytest.approx(1 - 2 * np.nanmean(lost["binary"]))
    for pair_weight, losses in lost.items():
        scorer = get_ranking_scorer("pairwise_disagreement", pair_weight=pair_weight)
        assert scorer(ranker, XL, missing) == pytest.approx(-np.nanmean(losses))


def test_other_estimators_predict_positions_of_labels():
    plain = Ridge().fit(XL, YL)
    ranks = np.argsort(np.argsort(plain.predict(XL), axis=1), axis=1) + 1
    taus = [kendalltau(a, b).statistic for a, b in zip(ranks, YL, strict=True)]
    assert TAU(plain, XL, YL) == pytest.approx(np.mean(taus))
    plain.predict = lambda X: np.ones((len(X), 4))  # a tied pair costs half
    assert TAU(plain, XL, YL) == 0
    assert TAU(plain, XL, with_missing()) == 0
    mean = np.mean([oracles.ndcg([3, 2, 1, 0], order, 1) for order in oracles.all_orders(4)])
    assert get_ranking_scorer("ndcg@1")(plain, XL, YL) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("Y", "name", "message"),
    [
        (with_missing(), "ndcg", "'ndcg' needs a relevance.*missing entries, use"),
        (preferences_of_ranks(YL), "spearman", "'spearman' needs a relevance of every row"),
        (YL, "precision@1", "threshold=t"),
        (YL - 1, "kendall_tau", "Ranks start at 1"),
        (YL[:5], "kendall_tau", "y has 5 rows, but X has 90"),
        (YL[:, :3], "kendall_tau", r"shape \(90, 4\), but y has 90 rows .* shape \(90, 3\)"),
    ],
)
def test_bad_label_rankings(Y, name, message):
    with pytest.raises(ValueError, match=message):
        get_ranking_scorer(name)(LABEL_RANKER, XL, Y)


def test_document_rankers_are_not_scored_on_label_rankings():
    with pytest.raises(ValueError, match="Add up the columns"):
        TAU(RANKER, X, np.ones((len(Y), 3)), groups=G)


@pytest.mark.parametrize(
    ("kind", "routing"), covering(itertools.product(LABEL_RANKINGS, [False, True]))
)
def test_tools_on_label_rankings(kind, routing):
    Y = LABEL_RANKINGS[kind]
    pipe = make_pipeline(StandardScaler(), CalibratedLabelRanker(Ridge()))
    grid = {"calibratedlabelranker__regressor__alpha": [0.1, 1000.0]}
    groups = np.arange(90) % 9
    with sklearn.config_context(enable_metadata_routing=routing):
        wanted = [
            TAU(clone(pipe).fit(XL[train], Y[train]), XL[test], Y[test])
            for train, test in GroupKFold(3).split(XL, Y, groups)
        ]
        routed = {"params": {"groups": groups}} if routing else {"groups": groups}
        found = cross_validate(
            pipe, XL, Y, cv=GroupKFold(3), scoring=SCORERS, error_score="raise", **routed
        )
        np.testing.assert_allclose(found["test_kendall_tau"], wanted)
        np.testing.assert_allclose(found["test_pairwise_disagreement"], (np.array(wanted) - 1) / 2)
        search = GridSearchCV(
            pipe, grid, cv=KFold(3), scoring=SCORERS, refit="kendall_tau", error_score="raise"
        ).fit(XL, Y)
        assert TAU(search, XL, Y) == pytest.approx(TAU(search.best_estimator_, XL, Y))
        found = cross_val_score(
            search, XL, Y, cv=KFold(3), scoring=TAU, error_score="raise", params={}
        )
        assert np.isfinite(found).all()
    importances = permutation_importance(
        search.best_estimator_, XL, Y, scoring=SCORERS, n_repeats=2, random_state=0
    )
    tau, lost = (importances[name].importances for name in SCORERS)
    assert np.abs(tau).max() > 0
    np.testing.assert_allclose(tau, 2 * lost)
