"""CalibratedLabelRanker: rankings, ties, missing entries, weights; and scikit-learn's checks."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_rankcal import CalibratedLabelRanker
from sklearn_rankcal.datasets import label_ranking_from_classes, make_label_ranking
from sklearn_rankcal.labels import rankings_to_preferences

DATA = Path(__file__).parents[2] / "shared" / "data" / "label_ranking"


@parametrize_with_checks(
    [CalibratedLabelRanker(Ridge()), CalibratedLabelRanker(Ridge(), loss="spearman")]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return make_label_ranking(240, 4, 3, kind="mallows", noise=0.5, random_state=0)


def test_score_is_kendalls_tau(data):
    ranker = CalibratedLabelRanker(Ridge()).fit(data.X[:200], data.Y[:200])
    ranks = ranker.predict(data.X[200:])
    assert ranks.dtype == np.int64 and (np.sort(ranks, axis=1) == [1, 2, 3, 4]).all()
    taus = [kendalltau(a, b).statistic for a, b in zip(ranks, data.Y[200:], strict=True)]
    assert ranker.score(data.X[200:], data.Y[200:]) == pytest.approx(np.mean(taus))
    weight = np.arange(40.0)
    weighted = ranker.score(data.X[200:], data.Y[200:], weight)
    assert weighted == pytest.approx(np.average(taus, weights=weight))


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


@pytest.mark.parametrize("loss", ["spearman", "ndcg@2", "dcg", "pd_by_scores"])
def test_losses_on_scores(data, loss):
    ranker = CalibratedLabelRanker(Ridge(), loss=loss).fit(data.X[:200], data.Y[:200])
    rng = np.random.default_rng(0)
    shuffled = CalibratedLabelRanker(Ridge(), loss=loss).fit(
        data.X[:200], rng.permutation(data.Y[:200])
    )
    new = data.X[200:], data.Y[200:]
    assert ranker.score(*new) > shuffled.score(*new)
    with pytest.raises(AttributeError, match="loss='pd' only"):
        ranker.predict_preferences(data.X)


def test_missing_entries_are_left_out_pair_by_pair(data):
    rng = np.random.default_rng(0)
    Y = np.where(rng.random(data.Y.shape) < 0.3, np.nan, data.Y)
    ranker = CalibratedLabelRanker(LinearRegression()).fit(data.X, Y)
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
    ranker = CalibratedLabelRanker(LinearRegression()).fit(data.X, Y)
    assert ranker.regressors_[0] is None
    assert (ranker.predict_preferences(data.X)[:, 0, 1] == 0).all()


def test_ties_and_weights_are_preferences(data):
    tied = np.minimum(data.Y, 3)
    by_ranks = CalibratedLabelRanker(Ridge()).fit(data.X, tied)
    weights = rankings_to_preferences(data.Y)
    by_weights = CalibratedLabelRanker(Ridge()).fit(data.X, weights)
    whole = CalibratedLabelRanker(Ridge()).fit(data.X, data.Y)
    np.testing.assert_array_equal(by_weights.predict(data.X), whole.predict(data.X))
    assert by_weights.score(data.X, weights) == pytest.approx(whole.score(data.X, data.Y))
    best = np.argsort(np.argsort(tied, axis=1, kind="stable"), axis=1) + 1
    assert (best >= 1).all() and by_ranks.score(data.X, tied) <= 1


def test_the_best_ranking_is_approached():
    """Outside what scores can say: the Bayes ranking of a cyclic world is reached."""
    data = make_label_ranking(3000, 4, 2, kind="cyclic", noise=0.3, random_state=0)
    forest = ExtraTreesRegressor(60, min_samples_leaf=20, random_state=0)
    ranker = CalibratedLabelRanker(forest, decoder="exact").fit(data.X[:2000], data.Y[:2000])
    best = 1 - 2 * data.bayes_pd
    assert ranker.score(data.X[2000:], data.Y[2000:]) > best - 0.1


def test_default_search_and_pipeline():
    X, y = load_iris(return_X_y=True)
    Y = label_ranking_from_classes(X, y)
    scores = cross_val_score(
        CalibratedLabelRanker(random_state=0), X, Y, cv=KFold(3, shuffle=True, random_state=0)
    )
    assert scores.mean() > 0.9
    pipe = make_pipeline(StandardScaler(), CalibratedLabelRanker(Ridge()))
    search = GridSearchCV(
        pipe,
        {
            "calibratedlabelranker__decoder": ["exact", "borda"],
            "calibratedlabelranker__regressor__alpha": [0.1, 10.0],
        },
        cv=KFold(3, shuffle=True, random_state=0),
        error_score="raise",
    ).fit(X, Y)
    assert search.best_score_ > 0.6
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
        (-np.ones((6, 3, 3)), {}, "not negative"),
        (np.ones((6, 3, 3)), {"loss": "spearman"}, "loss='pd' only"),
        (np.where(Y4 == 2, np.nan, Y4), {"loss": "spearman"}, "loss='pd' only"),
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


@pytest.mark.skipif(not DATA.exists(), reason="the label ranking benchmark is not here")
@pytest.mark.parametrize(("name", "published"), [("glass", 0.89), ("wine", 0.94)])
def test_benchmark(name, published):
    """A single 5-fold run, below the published ten times ten."""
    with gzip.open(DATA / f"{name}.csv.gz", "rt") as lines:
        header = lines.readline().strip().split(",")
        table = np.loadtxt(lines, delimiter=",")
    is_label = np.array([column.startswith("L") for column in header])
    X, Y = table[:, ~is_label], table[:, is_label]
    folds = KFold(5, shuffle=True, random_state=0)
    scores = cross_val_score(CalibratedLabelRanker(random_state=0), X, Y, cv=folds)
    assert scores.mean() > published - 0.02
