"""CalibratedLabelRanker: losses, decoders, missing entries, weights; and scikit-learn's checks."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import kendalltau, rankdata
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_iris
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import BaggingRegressor, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_rankcal import CalibratedLabelRanker, Judgements
from sklearn_rankcal.datasets import label_ranking_from_classes, make_label_ranking
from sklearn_rankcal.decoders import DECODERS, decode_average_precision, decode_preferences
from sklearn_rankcal.label_ranking._blend import TableEncoder  # codes of columns
from sklearn_rankcal.labels._label_rankings import look_like_positions, read_names
from sklearn_rankcal.losses import AUC, LOSSES, MAP, NDCG, PD, MAPByScores, PDByScores, Recall
from sklearn_rankcal.metrics import get_ranking_scorer

from .. import oracles
from ..covering import covering_checks
from ..preference_data import preferences_of_ranks


@covering_checks(
    parametrize_with_checks(
        [
            CalibratedLabelRanker(Ridge()),
            CalibratedLabelRanker(Ridge(), loss="spearman"),
            CalibratedLabelRanker(Ridge(), loss="ndcg"),
            CalibratedLabelRanker(Ridge(), loss=MAP(threshold=1), missing="pairwise"),
            CalibratedLabelRanker(Ridge(), loss="ndcg", y_type="relevance"),
        ]
    )
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return make_label_ranking(240, 4, 3, kind="mallows", noise=0.5, random_state=0)


def test_signs_are_regressed_and_decoded(data):
    """Targets written out; the exact decoder minimises what they say is lost."""
    ranker = CalibratedLabelRanker(LinearRegression(), decoder="exact").fit(data.X, data.Y)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    signs = np.array([[np.sign(row[j] - row[i]) for i, j in pairs] for row in data.Y])
    wanted = LinearRegression().fit(data.X, signs).predict(data.X)
    found = ranker.predict_preferences(data.X)
    np.testing.assert_allclose([[d[i, j] for i, j in pairs] for d in found], wanted)
    np.testing.assert_array_equal(found, -found.transpose(0, 2, 1))
    ranks = ranker.predict(data.X)
    for d, own in zip(found, ranks, strict=True):
        for _ in range(20):
            other = np.random.default_rng(0).permutation(4)
            lost = [np.maximum(d, 0)[r[:, None] > r].sum() for r in (own, other)]
            assert lost[0] <= lost[1] + 1e-12


def ranks_as_relevance(row):
    """r - rank, ties sharing the best of their places; written out."""
    return [len(row) - 1 - sum(other < rank for other in row) for rank in row]


def binary(measure, threshold):
    return lambda y, order: measure([float(value >= threshold) for value in y], order)


# for r labels: the loss, and what it measures of a relevance, with the default of 2 relevant labels
ON_RANKS = {
    "precision": lambda r: ("precision@2", binary(lambda y, o: oracles.precision(y, o, 2), r - 2)),
    "eru": lambda r: ("eru", oracles.eru),
    "dcg": lambda r: ("dcg@2", lambda y, o: oracles.dcg(y, o, 2)),
    "ndcg": lambda r: (NDCG(3, shrinkage=0), lambda y, o: oracles.ndcg(y, o, 3)),
    "recall": lambda r: (
        Recall(2, shrinkage=0), binary(lambda y, o: oracles.recall(y, o, 2), r - 2)
    ),
    "auc": lambda r: (AUC(threshold=1, shrinkage=0), binary(oracles.auc, 1)),
    "spearman": lambda r: ("spearman", oracles.spearman),
    "choice": lambda r: ("choice", oracles.choice),
    "err": lambda r: ("err", lambda y, o: oracles.err(y, o, top=r - 1)),
    "map": lambda r: (MAP(threshold=r - 2, shrinkage=0), binary(oracles.average_precision, r - 2)),
    "map_by_scores": lambda r: (
        MAPByScores(2), binary(lambda y, o: oracles.average_precision(y, o, 2), r - 2)
    ),
    "pd": lambda r: (PD(equal_queries=True), oracles.kendall_tau),
    "pd_by_scores": lambda r: ("pd_by_scores", oracles.kendall_tau),
    "positional": lambda r: ("positional", lambda y, o: oracles.dcg(y, o, gain=float)),
}  # fmt: skip
ON_BINARY = {
    "precision": ("precision@2", lambda y, o: oracles.precision(y, o, 2)),
    "recall": (Recall(2, shrinkage=0), lambda y, o: oracles.recall(y, o, 2)),
    "auc": (AUC(shrinkage=0), oracles.auc),
    "map": (MAP(shrinkage=0), oracles.average_precision),
    "map_by_scores": (MAPByScores(shrinkage=0), oracles.average_precision),
}
EVERY = [
    (name, decoder)
    for name, loss in LOSSES.items()
    for space, decoder in DECODERS
    if space == loss.space
]


def orders_of(ranks):
    return [np.argsort(row).tolist() for row in ranks]


@pytest.mark.parametrize(("name", "decoder"), EVERY)
def test_every_loss_and_decoder(data, name, decoder):
    """`score` is the measure written out, and better than what there is to learn from noise."""
    loss, measure = ON_RANKS[name](4)
    options = {"loss": loss, "decoder": decoder}
    X, Y, new, Z = data.X[:200], data.Y[:200], data.X[200:], data.Y[200:]
    ranker = CalibratedLabelRanker(Ridge(), **options).fit(X, Y)
    ranks = ranker.predict(new)
    assert ranks.dtype == np.int64 and (np.sort(ranks, axis=1) == [1, 2, 3, 4]).all()
    values = [
        measure(ranks_as_relevance(row), order)
        for row, order in zip(Z, orders_of(ranks), strict=True)
    ]
    assert ranker.score(new, Z) == pytest.approx(np.mean(values))
    noise = np.random.default_rng(0).permutation(Y)
    assert ranker.score(new, Z) > CalibratedLabelRanker(Ridge(), **options).fit(X, noise).score(
        new, Z
    )
    assert hasattr(ranker, "predict_preferences") == (ranker.loss_.space != "scores")
    if ranker.loss_.space != "scores":
        u = ranker.predict_preferences(new)
        symmetric = ranker.loss_.space == "symmetric_pairs"
        turned = u.transpose(0, 2, 1)
        np.testing.assert_array_equal(u, turned if symmetric else -turned)
        decode = decode_average_precision if symmetric else decode_preferences
        best = decode(u if symmetric else np.maximum(u, 0), "exact")
        again = CalibratedLabelRanker(Ridge(), **options | {"decoder": "exact"}).fit(X, Y)
        np.testing.assert_array_equal(again.predict(new), best.ranks)


@pytest.mark.parametrize(("y_type", "r"), [("ranks", 3), ("relevance", 4)])
@pytest.mark.parametrize(
    ("name", "decoder"),
    [
        (name, decoder)
        for name, decoder in EVERY
        if LOSSES[name]().calibrated_everywhere
        and (decoder in ("auto", "exact", "local_search") or LOSSES[name].space == "scores")
    ],
)
def test_the_best_ranking_in_expectation_is_found(name, decoder, y_type, r):
    """Conditional means as predictions: no ranking does better, by enumeration."""
    rng = np.random.default_rng(r)
    n_contexts, n_rows = 12, 5
    loss, measure = ON_RANKS[name](r)
    if y_type == "ranks":
        Y = rng.integers(1, r + 1, size=(n_contexts, n_rows, r)).astype(float)
        y = [[ranks_as_relevance(row) for row in rows] for rows in Y]
    elif name in ON_BINARY:
        loss, measure = ON_BINARY[name]
        Y = y = rng.integers(0, 2, size=(n_contexts, n_rows, r)).astype(float)
    else:
        Y = y = rng.integers(0, r, size=(n_contexts, n_rows, r)).astype(float)
    X = np.repeat(np.eye(n_contexts), n_rows, axis=0)
    ranker = CalibratedLabelRanker(
        DecisionTreeRegressor(random_state=0), loss=loss, decoder=decoder, y_type=y_type
    ).fit(X, Y.reshape(-1, r))
    different = 0
    ranks = ranker.predict(np.eye(n_contexts))
    ranks = r - ranks if y_type == "relevance" else ranks
    for rows, order in zip(y, orders_of(ranks), strict=True):
        expected = {
            other: np.nanmean([0, *(measure(row, other) for row in rows)])  # 0: never all NaN
            for other in oracles.all_orders(r)
        }
        assert expected[tuple(order)] == pytest.approx(max(expected.values()), abs=1e-9)
        different += min(expected.values()) < max(expected.values()) - 1e-6
    assert different > n_contexts / 2


def test_pairwise_disagreement_by_scores(data):
    """For complete rankings Spearman's targets, times a constant; with weights their net sums."""
    fit = CalibratedLabelRanker(LinearRegression(), loss="pd_by_scores").fit
    ranks = fit(data.X, data.Y).predict(data.X)
    spearman = CalibratedLabelRanker(LinearRegression(), loss="spearman").fit(data.X, data.Y)
    np.testing.assert_array_equal(ranks, spearman.predict(data.X))
    weights = preferences_of_ranks(data.Y)
    by_weights = fit(data.X, weights)
    assert by_weights.regressor_.coef_.shape == (4, 3)
    np.testing.assert_array_equal(by_weights.predict(data.X), ranks)
    Y = np.where(np.random.default_rng(0).random(data.Y.shape) < 0.4, np.nan, data.Y)
    borda = CalibratedLabelRanker(LinearRegression(), decoder="borda", missing="pairwise").fit(
        data.X, Y
    )
    pairwise = CalibratedLabelRanker(
        LinearRegression(), loss="pd_by_scores", missing="pairwise"
    ).fit(data.X, Y)
    np.testing.assert_array_equal(pairwise.predict(data.X), borda.predict(data.X))
    imputed = fit(data.X, Y)
    assert imputed.regressor_.coef_.shape == (4, 3)
    assert abs(imputed.score(data.X, data.Y) - borda.score(data.X, data.Y)) < 0.05


def test_other_scores_are_of_the_judged_pairs(data):
    Y = np.where(np.random.default_rng(0).random(data.Y.shape) < 0.4, np.nan, data.Y)
    rows = (~np.isnan(Y)).sum(axis=1) > 1
    wins = (preferences_of_ranks(Y) - preferences_of_ranks(Y).transpose(0, 2, 1)).sum(axis=2)
    model = LinearRegression().fit(data.X[rows], wins[rows] / 4)
    for labels in (Y, preferences_of_ranks(Y)):
        ranker = CalibratedLabelRanker(
            LinearRegression(), loss=PDByScores(score_function="copeland")
        )
        ranker.fit(data.X, labels)
        np.testing.assert_allclose(ranker.regressor_.coef_, model.coef_, atol=1e-12)


@pytest.mark.parametrize("loss", [PD("graded"), PDByScores("graded"), PD(np.sqrt), "pd"])
def test_relevance_is_weighed_by_h(data, loss):
    """Missing or not, and given as weights of the same preferences."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, size=data.Y.shape).astype(float)
    missing = np.where(rng.random(y.shape) < 0.3, np.nan, y)
    power = {"graded": 1.0, "binary": 0.0}.get(getattr(loss, "pair_weight", "binary"), 0.5)

    def weights(relevance):
        gap = relevance[:, :, None] - relevance[:, None, :]
        return np.where(gap > 0, np.abs(gap) ** power, 0)

    for relevance in (y, missing):
        ranker = CalibratedLabelRanker(
            LinearRegression(), loss=loss, y_type="relevance", missing="pairwise"
        )
        ranker.fit(data.X, relevance)
        ranks = 4 - ranker.predict(data.X)
        w = weights(relevance)
        lost = (w * (ranks[:, :, None] > ranks[:, None, :])).sum(axis=(1, 2))
        total = w.sum(axis=(1, 2))
        tau = 1 - 2 * lost.sum() / total.sum()
        assert ranker.score(data.X, relevance) == pytest.approx(tau)
    if ranker.loss_.space == "pairs":
        found = ranker.predict_preferences(data.X)
        both = ~np.isnan(missing[:, 0]) & ~np.isnan(missing[:, 1])
        model = LinearRegression().fit(data.X[both], (w[:, 0, 1] - w[:, 1, 0])[both])
        np.testing.assert_allclose(found[:, 0, 1], model.predict(data.X))


def test_fit_takes_the_targets_of_less_variance(data):
    y = np.random.default_rng(0).integers(1, 5, size=data.Y.shape)
    y[np.arange(len(y)), y[:, 0] % y.shape[1]] = 5  # the largest gain of every row
    ndcg, dcg = (
        CalibratedLabelRanker(LinearRegression(), loss=loss, y_type="relevance").fit(data.X, y)
        for loss in (NDCG(shrinkage=1), "dcg")
    )
    ratio = ndcg.regressor_.coef_ / dcg.regressor_.coef_
    np.testing.assert_allclose(ratio, ratio[0, 0])


def test_only_the_order_of_ranks_counts(data):
    for loss in ("pd", PD("graded"), "ndcg", "precision@1"):
        fit = CalibratedLabelRanker(Ridge(), loss=loss, y_type="ranks").fit
        ranker, far = fit(data.X, data.Y), fit(data.X, 10 * data.Y**2)
        np.testing.assert_array_equal(far.predict(data.X), ranker.predict(data.X))
        assert far.score(data.X, 10 * data.Y**2) == ranker.score(data.X, data.Y)


def test_rows_that_say_nothing_are_left_out(data):
    """Of weight 0; without a relevant label; without a judged pair."""
    half = np.arange(240) % 2 == 0
    y = (data.Y == 1).astype(float)
    for labels, nothing, options in [
        (data.Y, data.Y[::-1], {}),
        (y, np.zeros_like(y), {"loss": "map", "y_type": "relevance"}),
        (data.Y, np.where(data.Y > 1, np.nan, data.Y), {"unlisted": "ignore"}),
    ]:
        ranker = CalibratedLabelRanker(Ridge(), **options)
        some = np.where(half[:, None], labels, nothing)
        weight = half.astype(float) if not options else None
        found = ranker.fit(data.X, some, weight).predict(data.X)
        wanted = ranker.fit(data.X[half], labels[half]).predict(data.X)
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(ValueError, match="No row of positive weight"):
        ranker.fit(data.X, some, (~half).astype(float))
    alone = np.where((np.arange(240) == 0)[:, None] | [False, True, True, True], data.Y, np.nan)
    ranker = CalibratedLabelRanker(Ridge(), missing="pairwise")
    ranker.fit(data.X, alone, (np.arange(240) > 0).astype(float))
    assert [one is None for one in ranker.regressors_] == [True] * 3 + [False] * 3


def test_a_missing_entry_changes_no_other_row():
    """Rows all tied prefer nothing, whether or not another row lacks an entry."""
    X = np.zeros((12, 1))
    Y = np.array([[1, 2, 3.0]] * 3 + [[1, 1, 1]] * 8 + [[3, 2, 1]])
    whole = CalibratedLabelRanker(DummyRegressor()).fit(X, Y)
    np.testing.assert_allclose(whole.predict_preferences(X[:1])[0, 0], [0, 0.5, 0.5])
    Y[-1, 0] = np.nan
    for missing in ("impute", "pairwise"):
        ranker = CalibratedLabelRanker(DummyRegressor(), missing=missing).fit(X, Y)
        found = ranker.predict_preferences(X[:1])[0]
        np.testing.assert_allclose([found[0, 1], found[0, 2], found[1, 2]], [1, 1, 0.5])


def test_masked_entries_are_missing(data):
    Y = np.where(np.random.default_rng(0).random(data.Y.shape) < 0.3, np.nan, data.Y)
    masked = np.ma.masked_array(np.where(np.isnan(Y), 7, Y).astype(int), np.isnan(Y))
    one, two = (CalibratedLabelRanker(Ridge()).fit(data.X, y) for y in (Y, masked))
    np.testing.assert_array_equal(one.predict(data.X), two.predict(data.X))
    assert one.score(data.X, Y) == two.score(data.X, masked)


def test_missing_pairs_are_imputed_by_conditional_means(data):
    Y = np.where(np.random.default_rng(0).random(data.Y.shape) < 0.3, np.nan, data.Y)
    Y = Y[(~np.isnan(Y)).sum(axis=1) > 1]
    X, weight = data.X[: len(Y)], np.random.default_rng(1).random(len(Y))
    i, j = np.triu_indices(4, 1)
    targets = np.sign(Y[:, j] - Y[:, i])
    for goal in targets.T:
        rows = ~np.isnan(goal)
        goal[~rows] = Ridge(20).fit(X[rows], goal[rows], weight[rows]).predict(X[~rows])
    wanted = Ridge(20).fit(X, targets, weight).predict(X)
    ranker = CalibratedLabelRanker(Ridge(20)).fit(X, Y, weight)
    assert ranker.regressors_ is None
    np.testing.assert_allclose(ranker.predict_preferences(X)[:, i, j], wanted)


def test_missing_entries_are_left_out_pair_by_pair(data):
    rng = np.random.default_rng(0)
    Y = np.where(rng.random(data.Y.shape) < 0.3, np.nan, data.Y)
    ranker = CalibratedLabelRanker(LinearRegression(), missing="pairwise").fit(data.X, Y)
    found = ranker.predict_preferences(data.X)
    for i in range(4):
        for j in range(i + 1, 4):
            rows = ~np.isnan(Y[:, i]) & ~np.isnan(Y[:, j])
            model = LinearRegression().fit(data.X[rows], np.sign(Y[rows, j] - Y[rows, i]))
            np.testing.assert_allclose(found[:, i, j], model.predict(data.X))
    whole = CalibratedLabelRanker(LinearRegression()).fit(data.X, data.Y)
    assert abs(ranker.score(data.X, data.Y) - whole.score(data.X, data.Y)) < 0.05
    # a ranking of the judged labels, with a pair that no one judges
    Y[:, 0] = np.where(np.isnan(Y[:, 1]), Y[:, 0], np.nan)
    ranker = CalibratedLabelRanker(LinearRegression(), missing="pairwise").fit(data.X, Y)
    assert ranker.regressors_[0] is None
    assert (ranker.predict_preferences(data.X)[:, 0, 1] == 0).all()


def test_ties_and_weights_are_preferences(data):
    tied = np.minimum(data.Y, 3)
    by_ranks = CalibratedLabelRanker(Ridge()).fit(data.X, tied)
    weights = preferences_of_ranks(data.Y)
    by_weights = CalibratedLabelRanker(Ridge()).fit(data.X, weights)
    whole = CalibratedLabelRanker(Ridge()).fit(data.X, data.Y)
    np.testing.assert_array_equal(by_weights.predict(data.X), whole.predict(data.X))
    assert by_weights.score(data.X, weights) == pytest.approx(whole.score(data.X, data.Y))
    assert by_weights.score(data.X, weights + 5 * np.eye(4)) == by_weights.score(data.X, weights)
    perfect = CalibratedLabelRanker(DecisionTreeRegressor(random_state=0)).fit(data.X, tied)
    assert by_ranks.score(data.X, tied) < perfect.score(data.X, tied) == 1


def test_the_default_is_good_and_repeats_itself():
    X, y = load_iris(return_X_y=True)
    Y = label_ranking_from_classes(X, y)
    scores = cross_val_score(
        CalibratedLabelRanker(random_state=0), X, Y, cv=KFold(3, shuffle=True, random_state=0)
    )
    assert scores.mean() > 0.9
    once, again = (CalibratedLabelRanker(random_state=3).fit(X, Y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    np.testing.assert_array_equal(
        CalibratedLabelRanker(Ridge(), n_jobs=2).fit(X, Y).predict(X),
        CalibratedLabelRanker(Ridge()).fit(X, Y).predict(X),
    )


X4 = np.random.default_rng(0).normal(size=(6, 2))
Y4 = np.tile([1.0, 2.0, 3.0], (6, 1))


@pytest.mark.parametrize(
    ("Y", "options", "message"),
    [
        (Y4[:5], {}, "y has 5 rows, but X has 6"),
        (Y4 - 1, {}, "Ranks start at 1"),
        (np.where(Y4 == 2, np.inf, Y4), {}, "infinity"),
        (np.full((6, 3), np.nan), {}, "judges no pair"),
        (np.ones((6, 3, 2)), {}, "preference weights; it has shape"),
        (-np.ones((6, 3, 3)), {}, "finite and >= 0"),
        (np.ones((6, 3, 3)), {"loss": "spearman"}, "needs a relevance of every row"),
        (np.where(Y4 == 2, np.nan, Y4), {"loss": "spearman"}, "'pd_by_scores' accept missing"),
        (Y4, {"y_type": "scores"}, "The 'y_type' parameter .* must be a str among .*'ranks'"),
        (Y4, {"missing": "drop"}, "The 'missing' parameter .*'pairwise'"),
        (Y4, {"y_type": "weights"}, r"y of shape \(n_samples, r, r\); it has \(6, 3\)"),
        (np.ones((6, 3, 3)), {"y_type": "ranks"}, r"y of shape \(n_samples, r\); it has"),
        (Y4, {"loss": "map"}, r"MAP\(threshold=t\) .* threshold=2 means .* y_type='relevance'"),
        (Y4, {"loss": "auc"}, r"AUC\(threshold=t\) .* threshold=2 means"),
        (Y4, {"loss": "precision@3"}, "the first 3 labels are relevant, but there are only 3"),
        (Y4, {"loss": "map", "y_type": "relevance"}, "needs binary relevance"),
        (-Y4, {"loss": "ndcg", "y_type": "relevance"}, "must be >= 0"),
        (np.zeros((6, 3)), {"loss": "map", "y_type": "relevance"}, "MAP is undefined"),
        (np.ones((6, 2, 2, 2)), {}, "must have shape"),
        (None, {}, "requires y"),
        (Y4, {"decoder": "sort", "loss": "nope"}, "Unknown loss"),
    ],
)
def test_bad_input(Y, options, message):
    with pytest.raises(ValueError, match=message):
        CalibratedLabelRanker(Ridge(), **options).fit(X4, Y)


def test_score_wants_the_same_labels():
    ranker = CalibratedLabelRanker(Ridge()).fit(X4, Y4)
    with pytest.raises(ValueError, match="y has 2 labels, but fit saw 3"):
        ranker.score(X4, Y4[:, :2])
    with pytest.warns(UndefinedMetricWarning, match="undefined on all 6"):
        assert np.isnan(ranker.score(X4, np.ones((6, 3))))
    half = np.where(np.arange(6)[:, None] < 3, Y4, 1.0)
    with pytest.raises(ValueError, match="0 on every query where PD is defined"):
        ranker.score(X4, half, np.arange(6) >= 3)


# ------------------------------------------------------------------ directions

Y_TYPES = {
    "ranks": lambda positions: positions,
    "relevance": lambda positions: positions.shape[1] - positions,
    "relevance with gaps": lambda positions: 10.0**-positions,
}


@pytest.mark.parametrize("what", Y_TYPES)
def test_no_tool_of_scikit_learn_reverses_a_ranking(data, what):
    y = Y_TYPES[what](data.Y)
    y_type = what.split()[0]
    make = CalibratedLabelRanker(Ridge(1e-3), loss="spearman", y_type=y_type)
    train, test = slice(None, 160), slice(160, None)
    plain = clone(make).fit(data.X[train], y[train])
    assert plain.score(data.X[test], y[test]) > 0.4
    best = plain.predict(data.X[test])
    for tool in (
        BaggingRegressor(make, n_estimators=5, random_state=0),
        TransformedTargetRegressor(make),
    ):
        found = tool.fit(data.X[train], y[train]).predict(data.X[test])
        agree = [kendalltau(a, b).statistic for a, b in zip(found, best, strict=True)]
        assert np.mean(agree) > 0.8
        for name in ("ndcg", "spearman"):
            scorer = get_ranking_scorer(name)
            assert scorer(tool, data.X[test], y[test]) > scorer(plain, data.X[test], y[test]) - 0.1
    if what != "relevance with gaps":  # whose size is not that of the predictions
        for scoring in ("r2", "neg_mean_squared_error", "explained_variance"):
            shuffled = np.random.default_rng(0).permuted(y, axis=1)
            right, chance = (
                cross_val_score(make, data.X, values, cv=4, scoring=scoring, error_score="raise")
                for values in (y, shuffled)
            )
            assert right.mean() > chance.mean() + 0.1
    # a search selects the penalty that ranks best, by scikit-learn's scorer or its own
    for scoring in ("r2", None) if what != "relevance with gaps" else (None,):
        search = GridSearchCV(make, {"regressor__alpha": [1e-3, 1e9]}, cv=4, scoring=scoring)
        assert search.fit(data.X, y).best_params_ == {"regressor__alpha": 1e-3}


# ------------------------------------------------------------------ what X and the regressor may be


def people(n=120, seed=0):
    """A table of numbers, categories and text with missing values, and rankings it determines."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, size=n).astype(float)
    city = rng.choice(["north", "south"], size=n)
    plan = rng.choice(["free", "paid", "trial"], size=n)
    likes = np.c_[age / 20, 3.0 * (city == "north"), 2.0 * (plan == "paid"), np.ones(n)]
    Y = (-likes).argsort(axis=1).argsort(axis=1) + 1
    age[::9] = np.nan
    X = pd.DataFrame({"age": age, "city": city, "plan": plan})
    X.loc[::11, "plan"] = None
    return X, Y


FRAMES = {
    "pandas": lambda X: X,
    "categories": lambda X: X.astype({"city": "category", "plan": "category"}),
    "polars": pl.from_pandas,
    "objects": lambda X: X.to_numpy(dtype=object),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_the_default_takes_categories_text_and_missing_values(kind):
    X, Y = people()
    X = FRAMES[kind](X)
    ranker = CalibratedLabelRanker(random_state=0).fit(X[:80], Y[:80])
    numbers = people()[0][["age"]]
    age_alone = CalibratedLabelRanker(random_state=0).fit(numbers[:80], Y[:80])
    assert ranker.score(X[80:], Y[80:]) > 0.85 > 0.6 > age_alone.score(numbers[80:], Y[80:])
    assert ranker.predict(X[80:81]).tolist() == ranker.predict(X[80:])[:1].tolist()


def test_unknown_and_rare_categories_are_zero():
    X = np.array([[f"c{k}"] for k in range(40)] * 3, dtype=object)
    encoder = TableEncoder().fit(X)
    one = encoder.transform(np.array([["c3"], ["new"], ["c39"]], dtype=object))
    assert one.sum(axis=1).tolist() == [1, 0, 0] and one.shape == (3, 32)
    X = pd.DataFrame({"when": pd.to_datetime(["2026-01-01"] * 6)})
    with pytest.raises(ValueError, match="Column 'when' of X must be real numbers, not dates"):
        CalibratedLabelRanker().fit(X, Y4)


def test_frames_and_missing_values_reach_the_regressor():
    X, Y = people()
    X = X.astype({"city": "category", "plan": "category"})
    boosting = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=20)
    plain, wrapped = (
        CalibratedLabelRanker(one).fit(X[:80], Y[:80])
        for one in (boosting, MultiOutputRegressor(boosting))
    )
    np.testing.assert_array_equal(plain.predict(X), wrapped.predict(X))
    assert list(plain.regressor_.estimators_[0].feature_names_in_) == ["age", "city", "plan"]
    assert plain.score(X[80:], Y[80:]) > 0.6
    missing = Y.astype(float)
    missing[::2, 1] = np.nan
    for X_kind in (X, pl.from_pandas(X)):
        ranker = CalibratedLabelRanker(boosting).fit(X_kind, missing)
        assert ranker.score(X_kind, Y) > 0.6


def test_text_in_a_column_of_numbers_names_the_column():
    X, Y = people()
    ranker = CalibratedLabelRanker().fit(X, Y)
    with pytest.raises(ValueError, match="Column 'age' of X must be real numbers, not text"):
        ranker.predict(X[:2].assign(age="old"))


def test_a_regressor_that_takes_no_text_names_the_columns():
    X, Y = people()
    with pytest.raises(ValueError, match="could not convert string to float") as caught:
        CalibratedLabelRanker(Ridge()).fit(X[["age", "city"]].fillna(0), Y)
    assert "Columns of X with text or times: ['city']" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="contains NaN"):
        CalibratedLabelRanker(Ridge()).fit(X[["age"]], Y)


BOOSTING = HistGradientBoostingRegressor(max_iter=5)


@pytest.mark.parametrize(
    "regressor",
    [
        BOOSTING,
        make_pipeline(StandardScaler(), BOOSTING),
        GridSearchCV(BOOSTING, {"max_iter": [2, 5]}, cv=2),
        BaggingRegressor(BOOSTING, n_estimators=2),
    ],
    ids=["boosting", "pipeline", "search", "bagging"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_regressors_of_one_output_are_wrapped(data, regressor):
    found, wanted = (
        CalibratedLabelRanker(one, random_state=0).fit(data.X, data.Y).predict_preferences(data.X)
        for one in (regressor, MultiOutputRegressor(regressor))
    )
    np.testing.assert_array_equal(found, wanted)


def test_regressors_that_refuse_outputs_by_errors_of_their_own_are_wrapped(data):
    class Refusal(Exception):
        pass

    class OneOutput(Ridge):  # as CatBoostRegressor, whose errors are CatBoostError
        def fit(self, X, y, sample_weight=None):
            if np.ndim(y) > 1:
                raise Refusal("only multi-regression objectives work with multidimensional target")
            return super().fit(X, y, sample_weight)

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.target_tags.multi_output = False
            return tags

    ranker = CalibratedLabelRanker(OneOutput()).fit(data.X, data.Y)
    assert isinstance(ranker.regressor_, MultiOutputRegressor)


def test_a_wrapped_pipeline_receives_weights(data):
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(data.Y))
    found, wanted = (
        CalibratedLabelRanker(one).fit(data.X, data.Y, weight).predict_preferences(data.X)
        for one in (make_pipeline(BOOSTING), BOOSTING)
    )
    np.testing.assert_array_equal(found, wanted)
    plain = CalibratedLabelRanker(BOOSTING).fit(data.X, data.Y).predict_preferences(data.X)
    assert np.abs(plain - wanted).max() > 0.01


def test_regressors_of_many_outputs_are_not_wrapped(data):
    for regressor in (Ridge(), MLPRegressor(hidden_layer_sizes=(2,), solver="lbfgs", max_iter=20)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            ranker = CalibratedLabelRanker(regressor, random_state=0).fit(data.X, data.Y)
        assert type(ranker.regressor_) is type(regressor)


# ------------------------------------------------------------------ names of labels

NAMES = ["tea", "coffee", "juice", "milk"]


def as_orders(Y, join):
    """The rows of Y, positions without ties, as orders of names."""
    return [join([NAMES[k] for k in np.argsort(row)]) for row in Y]


def test_a_frame_of_names_comes_back(data):
    X = pd.DataFrame(data.X, index=np.arange(240) + 500)
    Y = pd.DataFrame(data.Y, columns=NAMES)
    plain = CalibratedLabelRanker(Ridge()).fit(data.X, data.Y)
    ranker = CalibratedLabelRanker(Ridge()).fit(X, Y)
    found = ranker.predict(X)
    wanted = plain.predict(data.X)
    pd.testing.assert_frame_equal(found, pd.DataFrame(wanted, index=X.index, columns=NAMES))
    assert ranker.labels_.tolist() == NAMES and plain.labels_.tolist() == [0, 1, 2, 3]
    order = ranker.predict_order(X)
    assert all(
        row[order[n]].tolist() == [1, 2, 3, 4] for n, (_, row) in enumerate(found.iterrows())
    )
    np.testing.assert_array_equal(plain.predict_order(data.X), np.argsort(wanted, axis=1))
    # the columns of y in another order, and the scorer
    other = Y[NAMES[::-1]]
    assert ranker.score(X, other) == ranker.score(X, Y) == plain.score(data.X, data.Y)
    tau = get_ranking_scorer("kendall_tau")
    assert tau(ranker, X, other) == tau(plain, data.X, data.Y)
    for wrong in (Y.rename(columns={"tea": "cola"}), Y[NAMES[:3]], Y.assign(cola=5)):
        with pytest.raises(ValueError, match="columns of y must be the labels of fit"):
            ranker.score(X, wrong)
    with pytest.raises(ValueError, match="not unique"):
        ranker.fit(X, Y.set_axis(["tea", "tea", "milk", "juice"], axis=1))


def test_polars_and_set_output(data):
    Y = pl.DataFrame(data.Y, schema=NAMES)
    ranker = CalibratedLabelRanker(Ridge()).fit(data.X, Y)
    found = ranker.predict(data.X)
    assert isinstance(found, pl.DataFrame) and found.columns == NAMES
    assert ranker.score(data.X, Y[NAMES[::-1]]) == ranker.score(data.X, Y)
    frame = clone(CalibratedLabelRanker(Ridge()).set_output(predict="pandas"))
    by_array = frame.fit(data.X, data.Y).predict(data.X)
    assert isinstance(by_array, pd.DataFrame) and list(by_array.columns) == [0, 1, 2, 3]
    assert isinstance(frame.set_output(predict="default").predict(data.X), np.ndarray)
    with pytest.raises(ValueError, match="predict"):
        frame.set_output(predict="numpy")
    relevance = CalibratedLabelRanker(Ridge(), y_type="relevance").fit(
        data.X, pl.DataFrame(4 - data.Y, schema=NAMES)
    )
    np.testing.assert_array_equal(relevance.predict(data.X), 4 - found.to_numpy())


ORDERS = {
    "strings": lambda Y: as_orders(Y, " > ".join),
    "column": lambda Y: pd.Series(as_orders(Y, ">".join)),
    "polars column": lambda Y: pl.Series(as_orders(Y, ">".join)),
    "lists with spaces": lambda Y: [[" " + name for name in row] for row in as_orders(Y, list)],
    "frame": lambda Y: pd.DataFrame(as_orders(Y, list), columns=["1st", "2nd", "3rd", "4th"]),
    "frame of one column": lambda Y: pd.DataFrame({"order": as_orders(Y, " > ".join)}),
    "array of one column": lambda Y: np.array(as_orders(Y, " > ".join))[:, None],
}


@pytest.mark.parametrize("kind", ORDERS)
def test_orders_of_names(data, kind):
    y = ORDERS[kind](data.Y)
    ranker = CalibratedLabelRanker(Ridge()).fit(data.X, y)
    plain = CalibratedLabelRanker(Ridge()).fit(data.X, data.Y)
    assert ranker.labels_.tolist() == sorted(NAMES)
    wanted = np.array(NAMES)[np.argsort(plain.predict(data.X), axis=1)]
    np.testing.assert_array_equal(ranker.predict_order(data.X), wanted)
    assert isinstance(ranker.predict(data.X), pd.DataFrame) == (
        kind in ("column", "frame", "frame of one column")
    )
    assert ranker.score(data.X, y) == pytest.approx(plain.score(data.X, data.Y))
    tau = get_ranking_scorer("kendall_tau")
    assert tau(ranker, data.X, y) == pytest.approx(tau(plain, data.X, data.Y))
    folds = KFold(3, shuffle=True, random_state=0)
    found, wanted = (cross_val_score(ranker, data.X, goal, cv=folds) for goal in (y, data.Y))
    np.testing.assert_allclose(found, wanted)


def test_orders_with_ties_and_gaps():
    y = ["b > a = c", ["c", ["a", "b"]], "", ["a", None, "c"], None, "a = b > c"]
    ranks, names = read_names(y)
    assert names.tolist() == ["a", "b", "c"]
    nan = np.nan
    wanted = [[2, 1, 2], [2, 2, 1], [nan] * 3, [1, nan, 2], [nan] * 3, [1, 1, 3]]
    np.testing.assert_array_equal(ranks, wanted)
    again, _ = read_names(["b > c"], known=names)
    np.testing.assert_array_equal(again, [[nan, 1, 2]])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a > b", "a > a"] * 3, "Row 1 of y has the label 'a' twice"),
        (["a > b", "a > "] * 3, "Row 1 of y, 'a > ', is no order of names"),
        (["a > b", 3] * 3, "Row 1 of y is 3, but other rows are orders of names"),
        ([["a", "b"], ["a", 3]] * 3, r"Row 1 of y, \['a', 3\], is no order of names"),
        (["a > b"] * 5, "y has 5 rows, but X has 6"),
        (["1", "2"] * 3, "must be real numbers, not text"),
        (["a, b", "b"] * 3, "y has the text 'a, b' without '>'"),
        (["b", "a < b"] * 3, "y has the text 'a < b' without '>'"),
        (["b ≻ a", "a ≻ b"] * 3, "y has the text 'b ≻ a' without '>'"),
        (["a > b", "b -> a"] * 3, "Row 1 of y, 'b -> a', has '->'. Write orders as"),
        ([1, 2] * 3, r"y must have shape \(n_samples, r\), or .*; it has \(6,\)"),
        (pd.DataFrame({"a": [1, 2] * 3, "b": [2, "-"] * 3}), "Column 'b' of y contains text .*'-'"),
    ],
)
def test_bad_orders(y, message):
    with pytest.raises(ValueError, match=message):
        CalibratedLabelRanker(Ridge()).fit(X4, y)


def test_orders_are_ranks_of_known_labels():
    with pytest.raises(ValueError, match="y_type is 'relevance'; use 'ranks'"):
        CalibratedLabelRanker(Ridge(), y_type="relevance").fit(X4, ["a > b"] * 6)
    ranker = CalibratedLabelRanker(Ridge()).fit(X4, ["a > b", "b > a"] * 3)
    with pytest.raises(ValueError, match=r"label 'c', which fit did not see. The labels are \['a'"):
        ranker.score(X4, ["a > b", "a > c"] * 3)


@pytest.mark.parametrize(
    "text", ["tea , coffee", "tea < coffee", "tea ≻ coffee", "tea/coffee", "milk > tea, coffee"]
)
def test_another_separator_in_one_row_is_an_error(text):
    """Without the error, the row would have a label of its own."""
    y = ["tea > coffee", "milk > coffee > tea", text, *["coffee > tea = milk"] * 3]
    with pytest.raises(ValueError, match=r"Row 2 of y has the name .*, but its parts are names"):
        CalibratedLabelRanker(Ridge()).fit(X4, y)
    with pytest.raises(ValueError, match=r"Entry 2 of orders has the name .*, but its parts are"):
        Judgements.from_orders(y)


def test_names_with_commas():
    """They are one name if many rows have it, if the parts are no names, or in lists."""
    for name, n in (("tea, milk", 3), ("tea, green", 1)):
        read_names(["tea > milk", "milk > tea"] * 9 + [f"{name} > tea > milk"] * n)
    read_names([["tea", "milk"], ["tea, milk", "tea"]] * 2)
    # not even then, if the parts are in no other row
    read_names(["salt, pepper > salt > pepper", "sugar > salt, pepper"])
    favourites = [["salt, pepper"], ["sugar"]] * 3
    assert read_names(favourites)[1].tolist() == ["salt, pepper", "sugar"]


@pytest.mark.parametrize("name", ["Tea", "TEA", "ｔｅａ"])  # noqa: RUF001
@pytest.mark.parametrize("share", [1, 10])
def test_two_spellings_that_differ_in_case_give_a_warning(name, share):
    y = [f"{name} > coffee > milk"] * share + ["coffee > tea > milk"] * 11
    match = f"The label '{name}' is in {share} row.* as 'tea', which is in 11 rows"
    with pytest.warns(UserWarning, match=match):
        read_names(y)
    read_names([*y, f"{name} > tea"])  # together in a row, they are two labels


# ------------------------------------------------------------------ labels without a rank


def test_unlisted_labels_are_last(data):
    """Tied below the others, as written out; without this, much is lost."""
    top = np.where(data.Y <= 2, data.Y, np.nan)
    tied = np.minimum(data.Y, 3)
    train, test = slice(0, 200), slice(200, None)
    last = CalibratedLabelRanker(Ridge(), unlisted="last").fit(data.X[train], top[train])
    by_hand = CalibratedLabelRanker(Ridge()).fit(data.X[train], tied[train])
    np.testing.assert_array_equal(
        last.predict_preferences(data.X), by_hand.predict_preferences(data.X)
    )
    assert last.score(data.X, top) == by_hand.score(data.X, tied)
    tau = get_ranking_scorer("kendall_tau")
    assert tau(last, data.X, top) == tau(by_hand, data.X, tied)
    with pytest.warns(UserWarning, match="200 of 200 rows of y leave out labels"):
        auto = CalibratedLabelRanker(Ridge()).fit(data.X[train], top[train])
    ignore = CalibratedLabelRanker(Ridge(), unlisted="ignore").fit(data.X[train], top[train])
    np.testing.assert_array_equal(auto.predict(data.X), ignore.predict(data.X))
    full = data.Y[test]
    assert last.score(data.X[test], full) > ignore.score(data.X[test], full) + 0.1
    # of a favourite alone, only "last" can learn
    first = np.where(data.Y == 1, 1, np.nan)
    assert (
        CalibratedLabelRanker(Ridge(), unlisted="last").fit(data.X, first).score(data.X, data.Y)
        > 0.3
    )
    with pytest.raises(ValueError, match=r"judges no pair.*unlisted='last'"):
        CalibratedLabelRanker(Ridge(), unlisted="ignore").fit(data.X, first)
    with pytest.raises(ValueError, match="unlisted='last' needs ranks, but y has relevance"):
        CalibratedLabelRanker(Ridge(), unlisted="last", y_type="relevance").fit(data.X, data.Y)


def test_a_misspelt_label_gives_one_warning():
    rng = np.random.default_rng(0)
    orders = [list(rng.permutation(["tea", "coffee", "water"])) for _ in range(50)]
    orders[7][orders[7].index("coffee")] = "cofee"
    with pytest.warns(UserWarning) as caught:
        CalibratedLabelRanker(Ridge()).fit(rng.normal(size=(50, 2)), orders)
    assert [str(one.message)[:18] for one in caught] == ["The label 'cofee' "]
    # a label that few rows list among their first is no reason to be silent
    orders[7] = ["water", "tea"]
    with pytest.warns(UserWarning, match="1 of 50 rows of y leave out labels"):
        CalibratedLabelRanker(Ridge()).fit(rng.normal(size=(50, 2)), orders)
    favourites = [order[:1] for order in orders] + [["milk"]]
    with pytest.warns(UserWarning, match="51 of 51 rows of y leave out labels"):
        CalibratedLabelRanker(Ridge(), unlisted="auto").fit(
            rng.normal(size=(51, 2)), [[*one, "juice"] for one in favourites]
        )


@pytest.mark.parametrize(
    "orders",
    [
        [
            "red > blue > green",
            "red/blue > red > green",
            "blue > green > red",
            "green > red > blue",
        ],
        ["pasta > rice", "pasta/rice > rice", "rice > pasta"],
    ],
)
def test_a_name_beside_its_own_part_is_a_name(orders):
    """A row with another separator never lists the part, too."""
    X = np.arange(2.0 * len(orders)).reshape(-1, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows leave out labels
        ranker = CalibratedLabelRanker(Ridge()).fit(X, orders)
    assert any("/" in name for name in ranker.labels_)


def test_favourites_with_a_rare_one_in_each_row_leave_out_labels():
    X = np.random.default_rng(0).normal(size=(50, 2))
    orders = [f"{'ABC'[k % 3]} > {'BCA'[k % 3]} > niche number {k}" for k in range(50)]
    with pytest.warns(UserWarning, match="50 of 50 rows of y leave out labels"):
        CalibratedLabelRanker(Ridge()).fit(X, orders)


def test_when_the_tail_is_said_to_be_missing(data):
    """Not if gaps or the numbers of labels show otherwise, and not for a few rows."""
    rng = np.random.default_rng(0)
    gone = rng.random(data.Y.shape) < 0.4
    gaps = np.where(gone, np.nan, data.Y)
    anew = pd.DataFrame(gaps).rank(axis=1).to_numpy()
    few = data.Y.copy()
    few[:2, :] = np.where(few[:2] <= 2, few[:2], np.nan)
    for y in (gaps, anew, few, data.Y):
        CalibratedLabelRanker(Ridge()).fit(data.X, y)
    with pytest.warns(UserWarning, match="1 of 6 rows of y leave out labels"):
        CalibratedLabelRanker(Ridge()).fit(data.X[:6], ["a > b > c"] * 5 + ["b > a"])


# ------------------------------------------------------------------ ratings that are no ranks


@pytest.mark.parametrize(
    ("method", "share"),
    [("min", 0.3), ("max", 0.3), ("average", 0.3), ("dense", 0.0), ("dense", 0.3)],
)
def test_rankings_look_like_positions(method, share):
    rng = np.random.default_rng(0)
    for r in (2, 3, 6):
        ranks = rankdata(rng.integers(0, 2 * r, (200, r)), method, axis=1).astype(float)
        if method == "dense":  # fewer tiers look like ratings
            ranks = ranks[2 * np.max(ranks, axis=1) >= r]
        ranks[rng.random(ranks.shape) < share] = np.nan
        if method == "dense" and share:
            ranks = ranks[[2 * len(set(row) - {np.nan}) >= len(row) for row in ranks]]
        assert look_like_positions(ranks).all()


@pytest.mark.parametrize(
    ("row", "fits"),
    [
        ([1, 4, 3, 2], True),  # stars without ties cannot be told from ranks
        ([5, 4, 4, 1], False),
        ([3, 2, 2, 2], False),
        ([1, 2, 99, 99], False),
        ([0.5, 1, 2, 3], False),
        ([2, np.nan, 4, np.nan], True),
        ([2, np.nan, 5, np.nan], False),
        ([1, 1, 1, 2], True),
        ([2, 2, 1, 1], True),
        ([np.nan] * 4, True),
        ([2.5, 2.5, 2.5, 2.5], True),
    ],
)
def test_rows_that_look_like_positions(row, fits):
    assert look_like_positions(np.array([row], dtype=float)).tolist() == [fits]


def test_ratings_are_told_from_ranks(data):
    stars = np.random.default_rng(0).integers(1, 6, (240, 4)).astype(float)
    with pytest.warns(UserWarning, match=r"rows of y do not look like .* pass y_type='relevance'"):
        CalibratedLabelRanker(Ridge()).fit(data.X, stars)
    for y_type in ("ranks", "relevance"):
        CalibratedLabelRanker(Ridge(), y_type=y_type).fit(data.X, stars)


# ------------------------------------------------------------------ little to learn from


def test_little_data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=2), "b": ["x", "y"]})
    two = CalibratedLabelRanker(random_state=0).fit(X, ["a > b > c", "c > b > a"])
    assert two.predict_order(X).tolist() == [["a", "b", "c"], ["c", "b", "a"]]
    one = CalibratedLabelRanker(random_state=0).fit(X[:1], ["b > c > a"])
    assert one.predict_order(X).tolist() == [["b", "c", "a"]] * 2
    alike = CalibratedLabelRanker(random_state=0).fit(pd.concat([X] * 6), [["b", "a"]] * 12)
    assert alike.predict_order(X).tolist() == [["b", "a"]] * 2
    same_row = CalibratedLabelRanker(random_state=0).fit(
        np.ones((9, 1)), ["a > b"] * 6 + ["b > a"] * 3
    )
    assert same_row.predict_order([[1.0]]).tolist() == [["a", "b"]]
    only = CalibratedLabelRanker(random_state=0).fit(X, pd.DataFrame({"a": [1, 1]}))
    assert only.predict(X).to_numpy().tolist() == [[1], [1]]
    Y = np.array([[1, 2, 3.0]] * 6 + [[np.nan] * 3])
    empty_row = CalibratedLabelRanker(random_state=0).fit(rng.normal(size=(7, 2)), Y)
    assert empty_row.predict(rng.normal(size=(1, 2))).tolist() == [[1, 2, 3]]
