"""RiskControlledCutoff: the promise by enumeration, its limits, and the class around any ranker."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_rankcal import (
    CalibratedRanker,
    CutQueriesWarning,
    LinearRanker,
    QueryKFold,
    RiskControlledCutoff,
    predict_order,
    predict_scores,
    relevance_labels,
)
from sklearn_rankcal.cutoffs import added_values, controlled_threshold, queries_needed, score_levels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.estimator_checks import yield_ranker_checks
from sklearn_rankcal.losses import get_measure
from sklearn_rankcal.metrics import get_ranking_scorer, ndcg_score
from sklearn_rankcal.queries import Queries, Ranking

from ..covering import covering_checks

DATA = make_ranking(120, (1, 9), 5, n_informative=3, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups
TRAIN, NEW = G < 60, G >= 60
RANKER = CalibratedRanker(Ridge())
FITTED = clone(RANKER).fit(X[TRAIN], Y[TRAIN], groups=G[TRAIN])
FRAME = pd.DataFrame(X, columns=list("abcde")).assign(qid=G)
RISKS = ["recall", "best_relevance", "ndcg"]


class FirstColumn(BaseEstimator):
    """Scores are the first column; nothing is learned."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]


SCORES = FrozenEstimator(FirstColumn().fit(np.zeros((1, 2)), None))


def err_of_the_first(relevance):
    """The expected reciprocal rank of the first k documents, k = 1, ..., r."""
    chance = relevance / 4
    reached = np.append(1, np.cumprod(1 - chance)[:-1])
    return np.cumsum(reached * chance / np.arange(1, len(relevance) + 1))


def draw_world(rng, n_queries, ties=False):
    """Scores, binary relevance with at least one relevant document, and queries of 1 to 8."""
    queries = Queries(np.append(0, np.cumsum(rng.integers(1, 9, n_queries))))
    relevance = (rng.random(queries.n_rows) < 0.3).astype(float)
    relevance[queries.offsets[:-1]] = 1
    scores = (
        rng.normal(size=queries.n_rows) + relevance * rng.exponential(size=n_queries)[queries.codes]
    )
    return (np.round(scores) if ties else scores), relevance, queries


def losses_of_parts(rule, scores, relevance, queries, risk):
    """The level, the loss added if hidden, and the query of each document."""
    ranks = queries.rank(queries.sort(scores))
    added, defined = added_values(risk, Ranking.from_ranks(ranks, queries), relevance)
    assert defined.all()
    levels = score_levels(scores, queries)[0]
    return (levels if rule == "score" else np.where(ranks == 1, -np.inf, ranks)), added


# -------------------------------------------------------------------- the threshold


@pytest.mark.parametrize("seed", range(40))
def test_the_threshold_is_the_smallest_that_satisfies_the_inequality_of_the_theorem(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    query = rng.integers(0, n, 20)
    levels = rng.integers(0, 8, 20).astype(float)
    levels[rng.random(20) < 0.1] = -np.inf
    added = rng.random(20) / 20
    alpha = rng.uniform(1 / (n + 1), 0.5)
    found, bound = controlled_threshold(levels, added, n, alpha)

    def attained(threshold):
        losses = [added[(query == q) & (levels > threshold)].sum() for q in range(n)]
        return (sum(losses) + 1) / (n + 1)

    right = [t for t in np.unique(levels) if attained(t) <= alpha]
    assert found == min(right)
    assert bound == pytest.approx(attained(found)) and bound <= alpha


@pytest.mark.parametrize("rule", ["score", "count"])
@pytest.mark.parametrize("risk", [*RISKS, "ndcg@2", err_of_the_first])
@pytest.mark.parametrize("ties", [False, True])
def test_the_promise_holds_exactly_when_each_query_of_a_bag_is_the_new_one(rule, risk, ties):
    """Theorem 1. The new query is any of n + 1 exchangeable ones: their mean loss is the risk."""
    rng = np.random.default_rng(0)
    closest = 0.0
    for _ in range(40):
        n = int(rng.integers(5, 16))
        alpha = rng.uniform(1 / (n + 1), 0.4)
        scores, relevance, queries = draw_world(rng, n + 1, ties)
        levels, added = losses_of_parts(rule, scores, relevance, queries, risk)
        lost = []
        for new in range(n + 1):
            own = queries.codes == new
            threshold, _ = controlled_threshold(levels[~own], added[~own], n, alpha)
            lost.append(added[own & (levels > threshold)].sum())
        assert np.mean(lost) <= alpha + 1e-12
        closest = max(closest, np.mean(lost) / alpha)
    if risk in RISKS and not ties:
        assert closest > 0.8  # without 1 / (n + 1) for the new query, some bags exceed alpha


def one_relevant(rng, n_queries, n_classes=6):
    """Classification as ranking: the classes of a sample are documents, and one is relevant."""
    probabilities = rng.dirichlet(np.full(n_classes, 0.6), n_queries)
    truth = np.array([rng.choice(n_classes, p=p) for p in probabilities])
    relevance = np.zeros((n_queries, n_classes))
    relevance[np.arange(n_queries), truth] = 1
    return probabilities, truth, relevance


@pytest.mark.parametrize("n", [19, 20, 57, 100])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_one_relevant_document_for_each_query_is_split_conformal_prediction(n, alpha):
    probabilities, truth, relevance = one_relevant(np.random.default_rng(n), n)
    features = np.column_stack([probabilities.ravel(), np.zeros(probabilities.size)])
    groups = np.repeat(np.arange(n), 6)
    cutoff = RiskControlledCutoff(SCORES, alpha=alpha).fit(features, relevance.ravel(), groups)
    # Scores add up to 1, so that their mean is the same for each query.
    conformity = np.sort(1 - probabilities[np.arange(n), truth])
    quantile = conformity[math.ceil((n + 1) * (1 - alpha) - 1e-9) - 1]
    wanted = 1 - probabilities <= quantile + 1e-9
    wanted |= probabilities == probabilities.max(axis=1, keepdims=True)
    np.testing.assert_array_equal(cutoff.predict_shown(features, groups).reshape(n, 6), wanted)


def test_the_risk_is_tight_for_continuous_scores():
    """Theorem 2: at least alpha - 2 / (n + 1), here for a relevant document at any place."""
    rng = np.random.default_rng(0)
    for n, alpha in [(19, 0.2), (40, 0.1), (99, 0.05)]:
        levels, query = rng.normal(size=n + 1), np.arange(n + 1)
        lost = []
        for new in range(n + 1):
            threshold, _ = controlled_threshold(levels[query != new], np.ones(n), n, alpha)
            lost.append(levels[new] > threshold)
        assert np.mean(lost) == math.floor(alpha * (n + 1) + 1e-9) / (n + 1)
        assert alpha - 2 / (n + 1) <= np.mean(lost) <= alpha


# -------------------------------------------------------------------- what documents add


VALUES = {
    "recall": lambda shown, all_of: sum(shown) / sum(all_of),
    "best_relevance": lambda shown, all_of: max([0, *shown]) / max(all_of),
    "ndcg": lambda shown, all_of: (
        sum((2**y - 1) / math.log2(k + 2) for k, y in enumerate(shown))
        / sum((2**y - 1) / math.log2(k + 2) for k, y in enumerate(sorted(all_of)[::-1]))
    ),
    "ndcg@3": lambda shown, all_of: (
        sum((2**y - 1) / math.log2(k + 2) for k, y in enumerate(shown[:3]))
        / sum((2**y - 1) / math.log2(k + 2) for k, y in enumerate(sorted(all_of)[::-1][:3]))
    ),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("shuffled", [False, True])
def test_what_documents_add_is_the_difference_of_the_values_of_lists(name, shuffled):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), rng.integers(1, 8, 30))
    if shuffled:
        groups = rng.permutation(groups)
    queries = Queries.from_groups(groups)
    relevance = rng.integers(0, 2 if name == "recall" else 5, len(groups)) * (groups % 5 > 0) * 1.0
    ranks = queries.rank(queries.sort(rng.normal(size=len(groups))))
    added, defined = added_values(name, Ranking.from_ranks(ranks, queries), relevance)
    for q, group in enumerate(queries.ids):
        rows = np.flatnonzero(groups == group)
        rows = rows[np.argsort(ranks[rows])]
        values = relevance[rows].tolist()
        assert defined[q] == (max(values) > 0)
        for k in range(len(rows) + 1):
            wanted = VALUES[name](values[:k], values) if defined[q] else 0.0
            assert added[rows[:k]].sum() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    "name, function",
    [
        ("recall", lambda y: np.cumsum(y) / y.sum() if y.any() else y * np.nan),
        ("best_relevance", lambda y: np.maximum.accumulate(y) if y.any() else y * np.nan),
    ],
)
def test_a_function_is_the_risk_that_it_computes(name, function):
    options = {"threshold": 3, "alpha": 0.2}
    one = RiskControlledCutoff(FrozenEstimator(FITTED), risk=name, **options)
    other = RiskControlledCutoff(FrozenEstimator(FITTED), risk=function, **options)
    one, other = (each.fit(X[NEW], Y[NEW], groups=G[NEW]) for each in (one, other))
    assert one.cutoff_ == other.cutoff_
    assert one.n_calibration_queries_ == other.n_calibration_queries_ < 60
    assert one.calibrated_risk_ == pytest.approx(other.calibrated_risk_)


def test_a_measure_may_be_an_object():
    by_name = RiskControlledCutoff(FrozenEstimator(FITTED), risk="ndcg@5")
    linear = clone(by_name).set_params(risk=get_measure("ndcg", gain="linear"))
    object_ = clone(by_name).set_params(risk=get_measure("ndcg", k=5))
    fits = [each.fit(X[NEW], Y[NEW], groups=G[NEW]) for each in (by_name, object_, linear)]
    assert fits[0].cutoff_ == fits[1].cutoff_ != fits[2].cutoff_


# -------------------------------------------------------------------- the class


RANKERS = {
    "ranker": CalibratedRanker(Ridge()),
    "linear": LinearRanker(),
    "pipeline": make_pipeline(StandardScaler(), CalibratedRanker(Ridge())),
    "search": GridSearchCV(
        CalibratedRanker(Ridge()), {"center": [True, False]}, cv=QueryKFold(2),
        scoring=get_ranking_scorer("ndcg"),
    ),
    "regressor": RandomForestRegressor(5, random_state=0),
    "pairs": CalibratedRanker(Ridge(), loss="pd"),
}  # fmt: skip


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("labels", [False, True])
def test_any_ranker_can_be_cut(name, labels):
    rule = "count" if name == "pairs" else "score"
    cutoff = RiskControlledCutoff(
        RANKERS[name], alpha=0.2, rule=rule, threshold=2, calibration_queries=0.4, random_state=0
    )
    if labels:
        cutoff.fit(X, relevance_labels(Y, G))
    else:
        cutoff.fit(X, Y, groups=G)
    assert cutoff.calibrated_risk_ <= 0.2
    shown = cutoff.predict_shown(X, groups=G)
    ranks = cutoff.predict(X, groups=G)
    order = cutoff.predict_order(X, groups=G)
    assert 0.2 < shown.mean() < 0.95 and shown[ranks == 1].all()
    np.testing.assert_array_equal(order.queries, np.arange(120))
    for q in range(120):
        listed = order.rows[order.offsets[q] : order.offsets[q + 1]]
        assert set(listed) == set(np.flatnonzero(shown & (G == q)))
        np.testing.assert_array_equal(ranks[listed], np.arange(1, len(listed) + 1))
    assert len(cutoff.predict_order(X, groups=G, k=1).rows) == 120
    if name == "pairs":
        assert not hasattr(cutoff, "decision_function")
        assert np.diff(order.offsets).max() == cutoff.cutoff_
        np.testing.assert_array_equal(ranks, cutoff.ranker_.predict(X, groups=G))
    else:
        scores = predict_scores(cutoff, X, G)
        np.testing.assert_array_equal(scores, predict_scores(cutoff.ranker_, X, G))
        if name in ("ranker", "linear"):
            np.testing.assert_array_equal(ranks, cutoff.ranker_.predict(X, groups=G))


def test_the_ranker_does_not_see_the_calibration_queries():
    seen = {}

    class Remembers(FirstColumn):
        def fit(self, X, y):
            seen["fit"] = set(X[:, 1])
            return super().fit(X, y)

        def predict(self, X):
            seen["predict"] = set(X[:, 1])
            return super().predict(X)

    features = np.column_stack([X[:, 0], G])
    for seed in (0, 1):
        RiskControlledCutoff(Remembers(), risk="ndcg", random_state=seed).fit(features, Y, groups=G)
        assert len(seen["predict"]) == 24 and len(seen["fit"]) == 96
        assert not seen["fit"] & seen["predict"]
        seen[seed] = seen["predict"]
    assert seen[0] != seen[1]


def test_frames_carry_the_queries_through_scikit_learn():
    cutoff = RiskControlledCutoff(
        CalibratedRanker(Ridge(), group_column="qid"), risk="ndcg", random_state=0
    )
    fitted = clone(cutoff).fit(FRAME, Y)
    plain = RiskControlledCutoff(RANKER, risk="ndcg", random_state=0).fit(X, Y, groups=G)
    assert fitted.cutoff_ == pytest.approx(plain.cutoff_)
    np.testing.assert_array_equal(fitted.predict_shown(FRAME), plain.predict_shown(X, groups=G))
    assert fitted.n_features_in_ == 6 and fitted.feature_names_in_.tolist() == [*"abcde", "qid"]
    assert fitted.group_column == "qid" and plain.group_column is None


def test_ties_are_broken_as_by_the_ranker():
    ranker = CalibratedRanker(Ridge(), group_column="qid", context=None)
    frame = FRAME[["qid", *"abcde"]].assign(e=1.0)  # the coefficient of e is 0
    cutoff = RiskControlledCutoff(ranker, risk="ndcg", random_state=0).fit(frame, Y)
    tied = frame.assign(a=0.0, b=0.0, c=0.0, d=0.0, e=np.arange(len(Y)))
    assert np.ptp(cutoff.decision_function(tied)) == 0
    np.testing.assert_array_equal(cutoff.predict(tied), cutoff.ranker_.predict(tied))
    assert cutoff.predict_shown(tied).all()


@pytest.mark.parametrize("routing", [False, True])
def test_cross_validation_by_query(routing):
    cutoff = RiskControlledCutoff(RANKER, risk="ndcg", alpha=0.15, random_state=0)
    with sklearn.config_context(enable_metadata_routing=routing):
        labels, y = relevance_labels(Y, G), Y
        if routing:
            found = cross_val_score(cutoff, X, y, cv=QueryKFold(4), params={"groups": G})
        else:
            found = cross_val_score(cutoff, X, labels, cv=QueryKFold(4))
        for (train, test), value in zip(QueryKFold(4).split(X, labels), found, strict=True):
            fitted = clone(cutoff).fit(X[train], Y[train], groups=G[train])
            assert value == pytest.approx(fitted.score(X[test], Y[test], groups=G[test]))
        grid = {"ranker__center": [True, False], "rule": ["score", "count"]}
        search = GridSearchCV(cutoff, grid, cv=QueryKFold(3)).fit(X, labels)
        assert 0.7 < search.best_score_ <= 1
        ndcg = get_ranking_scorer("ndcg@3")
        ranking = search.best_estimator_.ranker_
        assert ndcg(search, X, labels) == ndcg(ranking, X, labels)
        whole = predict_order(search, X, G)
        assert whole.rows.tolist() == search.best_estimator_.predict_order(X, G).rows.tolist()


@pytest.mark.parametrize("table", [sparse.csr_matrix(X), X.tolist()], ids=["sparse", "list"])
def test_containers(table):
    cutoff = RiskControlledCutoff(CalibratedRanker(Ridge(), context=None), risk="ndcg")
    cutoff.set_params(random_state=0)
    plain = clone(cutoff).fit(X, Y, groups=G)
    found = clone(cutoff).fit(table, Y, groups=G)
    assert found.cutoff_ == pytest.approx(plain.cutoff_, abs=1e-6)
    np.testing.assert_array_equal(found.predict(table, groups=G), plain.predict(X, groups=G))


def test_the_last_step_of_a_pipeline():
    cutoff = RiskControlledCutoff(RANKER, risk="ndcg", random_state=0)
    inside = make_pipeline(StandardScaler(), cutoff).fit(X, relevance_labels(Y, G))
    alone = clone(cutoff).fit(StandardScaler().fit_transform(X), Y, groups=G)
    wanted = alone.predict_order(StandardScaler().fit_transform(X), groups=G)
    np.testing.assert_array_equal(predict_order(inside, X, G).rows, wanted.rows)
    np.testing.assert_array_equal(predict_order(inside, X, G).offsets, wanted.offsets)
    assert predict_scores(inside, X, G).shape == Y.shape
    found = get_ranking_scorer("ndcg")(inside, X, relevance_labels(Y, G))
    assert found == pytest.approx(ndcg_score(Y, predict_scores(inside, X, G), groups=G))


def test_score_is_what_the_lists_keep():
    cutoff = RiskControlledCutoff(FrozenEstimator(FITTED), alpha=0.2, threshold=3)
    cutoff.fit(X[NEW], Y[NEW], groups=G[NEW])
    shown = cutoff.predict_shown(X, groups=G)
    good = Y >= 3
    recalls = {q: shown[good & (G == q)].mean() for q in np.unique(G[good])}
    assert len(recalls) < 120
    assert cutoff.score(X, Y, groups=G) == pytest.approx(np.mean(list(recalls.values())))
    assert cutoff.score(X, relevance_labels(Y, G)) == cutoff.score(X, Y, groups=G)
    weight = np.where(G < 20, 3.0, 1.0)
    wanted = np.average(list(recalls.values()), weights=[3 if q < 20 else 1 for q in recalls])
    found = cutoff.score(X, Y, groups=G, sample_weight=weight)
    assert found == pytest.approx(wanted)


def test_tied_documents_are_shown_together_and_batches_do_not_matter():
    features = np.round(X, 0)  # many ties
    cutoff = RiskControlledCutoff(SCORES, risk="ndcg", alpha=0.2).fit(features, Y, groups=G)
    shown = cutoff.predict_shown(features, groups=G)
    for q in range(120):
        rows = np.flatnonzero(G == q)
        for value in np.unique(features[rows, 0]):
            assert len(set(shown[rows][features[rows, 0] == value])) == 1
        alone = np.random.default_rng(q).permutation(rows)
        one = cutoff.predict_shown(features[alone], groups=np.zeros(len(alone)))
        np.testing.assert_array_equal(one, shown[alone])


def test_the_last_bits_of_scores_do_not_hide_a_document():
    """Scores of a row differ in the last bits from batch to batch."""
    rng = np.random.default_rng(0)
    one = np.array([0.1, 0.2, 0.3, 0.7, 1.1, 1.3])
    rows = np.concatenate([rng.permutation(6) for _ in range(50)])
    groups, relevance = np.repeat(np.arange(50), 6), (rows == 2) * 1.0
    cutoff = RiskControlledCutoff(SCORES, alpha=0.1)
    cutoff.fit(one[rows][:, None] * [1, 1], relevance, groups=groups)
    for factor in (1, 1 - 3e-16, 1 + 3e-16):
        noisy = one[rows] * np.where(rng.random(300) < 0.5, factor, 1)
        shown = cutoff.predict_shown(noisy[:, None] * [1, 1], groups=groups)
        np.testing.assert_array_equal(shown, rows >= 2)


def test_queries_without_a_relevant_document_are_left_out():
    good = np.unique(G[NEW & (Y >= 3)])
    some, all_of = NEW & np.isin(G, good), NEW
    cutoff = RiskControlledCutoff(FrozenEstimator(FITTED), alpha=0.2, threshold=3)
    one = clone(cutoff).fit(X[some], Y[some], groups=G[some])
    other = clone(cutoff).fit(X[all_of], Y[all_of], groups=G[all_of])
    assert some.sum() < all_of.sum()
    assert one.cutoff_ == pytest.approx(other.cutoff_)
    assert one.calibrated_risk_ == other.calibrated_risk_
    assert one.n_calibration_queries_ == other.n_calibration_queries_ == len(good)


# -------------------------------------------------------------------- showing nothing


@pytest.mark.parametrize("rule", ["score", "count"])
@pytest.mark.parametrize("risk", RISKS)
def test_both_promises_hold_when_lists_may_be_empty(rule, risk):
    """Each query of a bag is the new one, as above, with the estimator itself."""
    rng = np.random.default_rng(0)
    alpha, silent, empty = 0.3, 0.12, 0
    for _ in range(4):
        scores, relevance, queries = draw_world(rng, 21)
        features, groups = np.column_stack([scores, scores]), queries.codes
        ranks = queries.rank(queries.sort(scores))
        added, _ = added_values(risk, Ranking.from_ranks(ranks, queries), relevance)
        lost, lost_by_silence = [], []
        for new in range(21):
            own = groups == new
            cutoff = RiskControlledCutoff(
                SCORES, risk=risk, alpha=alpha, alpha_silent=silent, rule=rule
            ).fit(features[~own], relevance[~own], groups=groups[~own])
            assert cutoff.calibrated_risk_ <= alpha
            shown = cutoff.predict_shown(features[own], groups=groups[own])
            lost.append(added[own][~shown].sum())
            lost_by_silence.append(0.0 if shown.any() else added[own].sum())
            empty += not shown.any()
        assert np.mean(lost) <= alpha and np.mean(lost_by_silence) <= silent
    assert empty > 0


def test_queries_that_have_nothing_to_show_are_silent_first():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(600), 8)
    hopeless = groups % 2 == 0  # no relevant document, and no score that stands out
    relevance = (rng.random(len(groups)) < 0.3) * ~hopeless * 1.0
    scores = 0.4 * rng.normal(size=len(groups)) + 3 * relevance
    features = np.column_stack([scores, scores])
    old = groups < 200
    cutoff = RiskControlledCutoff(SCORES, alpha=0.2, alpha_silent=0.1)
    cutoff.fit(features[old], relevance[old], groups=groups[old])
    order = cutoff.predict_order(features[~old], groups=groups[~old])
    empty = np.diff(order.offsets) == 0
    assert empty[0::2].mean() > 0.8 and empty[1::2].mean() < 0.15
    assert np.isfinite(cutoff.silence_cutoff_)
    always = clone(cutoff).set_params(alpha_silent=0.0)
    always.fit(features[old], relevance[old], groups=groups[old])
    assert always.silence_cutoff_ == -np.inf
    assert np.diff(always.predict_order(features, groups=groups).offsets).min() == 1


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize("alpha", [0.5, 0.3, 0.2, 0.1, 0.07, 0.05, 0.01])
def test_alpha_needs_so_many_queries_and_no_more(alpha):
    n = queries_needed(alpha)
    assert 1 / (n + 1) <= alpha * (1 + 1e-12) and (n == 1 or 1 / n > alpha)
    data = make_ranking(n, 5, random_state=0)
    cutoff = RiskControlledCutoff(SCORES, risk="ndcg", alpha=alpha)
    assert cutoff.fit(data.X, data.y + 1, groups=data.groups).calibrated_risk_ <= alpha * (
        1 + 1e-12
    )
    if n > 1:
        fewer = data.groups > 0
        with pytest.raises(
            ValueError, match=rf"needs at least {n} calibration.*{n - 1} of {n - 1}"
        ):
            cutoff.fit(data.X[fewer], data.y[fewer] + 1, groups=data.groups[fewer])


PROBLEMS = {
    "too few": ({"alpha": 0.02}, {}, r"alpha=0.02 needs at least 49 calibration queries"),
    "too few for silence": (
        {"alpha": 0.1, "alpha_silent": 0.01}, {},
        r"alpha=0.1 with alpha_silent=0.01 needs at least 99 ",
    ),
    "silence is all": ({"alpha": 0.1, "alpha_silent": 0.1}, {}, "must be smaller"),
    "no groups": ({}, {"groups": None}, r"query id of each row is missing.*relevance_labels"),
    "NaN": ({}, {"y": np.where(G == 3, np.nan, Y)}, r"Input y contains NaN"),
    "no label": ({}, {"y": None}, "y is None"),
    "grades": ({"risk": "recall"}, {}, "needs labels 0 and 1.*threshold=t"),
    "no relevant document": ({"threshold": 9}, {}, r"at least 9 cal.*; 0 of 24 have one"),
    "costs": ({"risk": "best_relevance"}, {"y": Y - 2.0}, "needs relevance >= 0; got -2"),
    "costs of ndcg": ({}, {"y": Y - 2.0}, "Negative values"),
    "negative values": ({"risk": lambda y: -y}, {}, "nondecreasing values between 0 and 1"),
    "large values": ({"risk": np.cumsum}, {}, "nondecreasing values between 0 and 1"),
    "precision": (
        {"risk": lambda y: np.cumsum(y > 1) / np.arange(1, len(y) + 1)}, {},
        "must return nondecreasing values",
    ),
    "a number": ({"risk": lambda y: 1.0}, {}, r"one value per document, for the first 1, 2"),
    "not a monotone measure": ({"risk": "auc", "threshold": 2}, {}, "its loss can grow"),
    "no bounded measure": ({"risk": "dcg"}, {}, "its loss can grow"),
    "unknown": ({"risk": "recal"}, {}, "Did you mean 'recall'"),
    "one query": ({"alpha": 0.5}, {"groups": np.zeros(len(Y))}, "At least 2 queries are needed"),
    "alpha": ({"alpha": 1.0}, {}, "'alpha' parameter"),
    "rule": ({"rule": "top"}, {}, "'rule' parameter"),
}  # fmt: skip


@pytest.mark.parametrize("problem", PROBLEMS)
def test_bad_input_is_refused(problem):
    parameters, data, message = PROBLEMS[problem]
    cutoff = RiskControlledCutoff(RANKER, **{"risk": "ndcg", "random_state": 0, **parameters})
    with pytest.raises(ValueError, match=message):
        cutoff.fit(X, **{"y": Y, "groups": G, **data})


def test_scores_are_needed_where_they_are():
    pairs = CalibratedRanker(Ridge(), loss="pd")
    for parameters in ({}, {"rule": "count", "alpha_silent": 0.05}):
        with pytest.raises(TypeError, match=r"loss='pd'\) has no scores. Pass rule='count'"):
            RiskControlledCutoff(pairs, risk="ndcg", **parameters).fit(X, Y, groups=G)
    bad = np.where(np.arange(len(Y)) == 7, np.nan, X[:, 0])
    with pytest.raises(ValueError, match="The prediction of the ranker contains NaN"):
        RiskControlledCutoff(SCORES, risk="ndcg").fit(np.column_stack([bad, bad]), Y, groups=G)
    cutoff = RiskControlledCutoff(RANKER)
    for method in (cutoff.predict, cutoff.predict_shown, cutoff.predict_order):
        with pytest.raises(NotFittedError):
            method(X, groups=G)
    fitted = RiskControlledCutoff(SCORES, risk="ndcg").fit(X, Y, groups=G)
    with pytest.raises(ValueError, match=r"pass groups=numpy.zeros\(len\(X\)\) to predict"):
        fitted.predict_shown(X)
    with pytest.raises(ValueError, match="k must be"):
        fitted.predict_order(X, groups=G, k=0)


@pytest.mark.parametrize("wrapped", [False, True])
def test_calibration_queries_that_were_trained_on_give_a_warning(wrapped):
    ranker = FITTED
    if wrapped:
        ranker = make_pipeline("passthrough", FITTED)
    cutoff = RiskControlledCutoff(FrozenEstimator(ranker), risk="ndcg")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cutoff.fit(X[NEW], Y[NEW], groups=G[NEW] - 60)  # new queries with ids of fitted ones
    both = G >= 40
    with pytest.warns(UserWarning, match="fitted on 20 of the calibration queries.*FrozenEst") as w:
        cutoff.fit(X[both], Y[both], groups=G[both] + 1000)  # the ids do not matter
    assert [each.filename for each in w] == [__file__]


def test_a_fitted_ranker_is_kept_and_copies_are_equal():
    cutoff = RiskControlledCutoff(FrozenEstimator(FITTED), risk="ndcg")
    cutoff.fit(X[NEW], Y[NEW], groups=G[NEW])
    np.testing.assert_array_equal(cutoff.predict(X, groups=G), FITTED.predict(X, groups=G))
    np.testing.assert_array_equal(
        cutoff.decision_function(X, groups=G), FITTED.decision_function(X, groups=G)
    )
    again = pickle.loads(pickle.dumps(cutoff))
    np.testing.assert_array_equal(
        again.predict_shown(X, groups=G), cutoff.predict_shown(X, groups=G)
    )
    half = TRAIN & (np.arange(len(Y)) % 2 == 0)
    with pytest.warns(CutQueriesWarning):
        get_ranking_scorer("ndcg")(cutoff, X[half], Y[half], groups=G[half])


def test_lightgbm_rankers_are_kept_in_frozen_estimators():
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMRanker(n_estimators=5, min_child_samples=2, verbose=-1, n_jobs=1)
    sizes = np.unique(G[TRAIN], return_counts=True)[1]
    model.fit(X[TRAIN], Y[TRAIN], group=sizes)
    cutoff = RiskControlledCutoff(FrozenEstimator(model), risk="ndcg", alpha=0.2)
    cutoff.fit(X[NEW], Y[NEW], groups=G[NEW])
    assert cutoff.n_calibration_queries_ == 50  # the others have no document with gain
    found = ndcg_score(Y, ranks=cutoff.predict(X, groups=G), groups=G)
    assert found == pytest.approx(ndcg_score(Y, model.predict(X), groups=G, ties="first"), abs=0.05)


@pytest.mark.parametrize(
    "check", yield_ranker_checks(), ids=lambda check: check.__name__.removeprefix("check_ranker_")
)
def test_ranker_checks(check):
    cutoff = RiskControlledCutoff(
        CalibratedRanker(Ridge(), context=None), risk="ndcg", alpha=0.3, calibration_queries=0.4
    )
    if "predict_order" in check.__name__:  # which wants the documents that are not shown, too
        with pytest.raises(AssertionError):
            check(cutoff)
    else:
        check(cutoff)


class WithGroups(RiskControlledCutoff):
    """The checks of scikit-learn pass no groups: `fit` has queries of 4 rows, `predict` of one."""

    def fit(self, X, y, groups=None):
        n = np.shape(X)[0] if np.ndim(X) else 1
        return super().fit(X, y, np.arange(n) // 4 if groups is None else groups)

    def predict(self, X, groups=None):
        return super().predict(X, np.arange(np.shape(X)[0]) if groups is None else groups)

    def decision_function(self, X, groups=None):
        return super().decision_function(X, np.zeros(np.shape(X)[0]) if groups is None else groups)

    def score(self, X, y, groups=None, sample_weight=None):
        return super().score(X, y, np.arange(np.shape(X)[0]), sample_weight)


@covering_checks(
    parametrize_with_checks(
        [WithGroups(CalibratedRanker(Ridge(), context=None), alpha=0.5, threshold=-1e300)],
        expected_failed_checks=lambda _: {
            "check_fit2d_1sample": "the error is about one query, and not about one sample"
        },
    )
)
@pytest.mark.filterwarnings("ignore:A label is above 31")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
