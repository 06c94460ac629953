"""The outputs of a label ranker: scores of many labels, missing targets, and the cyclic part."""

import itertools

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import cross_val_predict

from sklearn_rankcal import CalibratedLabelRanker
from sklearn_rankcal.datasets import make_label_ranking
from sklearn_rankcal.label_ranking import BlendedRegressor, _blend, _outputs  # limits, and steps
from sklearn_rankcal.label_ranking._outputs import (
    confirmed_share,
    cyclic_part,
    fill_unknown,
    goes_by_scores,
    make_label_targets,
    net_scores,
    scores_of_labels,
)
from sklearn_rankcal.losses import PD, PDByScores
from sklearn_rankcal.queries import Queries

from ..preference_data import preferences_of_ranks

FIRST, SECOND = np.triu_indices(4, 1)


@pytest.fixture
def two_are_many(monkeypatch):
    monkeypatch.setattr(_outputs, "MAX_LABELS_BY_PAIRS", 2)


@pytest.fixture(scope="module")
def data():
    return make_label_ranking(240, 4, 3, kind="mallows", noise=0.5, random_state=0)


def test_scores_are_those_of_pd_by_scores():
    ranks = np.random.default_rng(0).integers(1, 6, (50, 6)).astype(float)
    wanted = PDByScores().encode((6 - ranks).ravel(), Queries.uniform(50, 6)).reshape(50, 6)
    np.testing.assert_allclose(scores_of_labels("ranks", ranks), wanted, atol=1e-12)
    np.testing.assert_allclose(scores_of_labels("relevance", 9 - ranks), wanted, atol=1e-12)
    some = np.where(np.random.default_rng(1).random(ranks.shape) < 0.3, np.nan, ranks)
    untied = some + np.arange(6) / 10  # in weights, a tie cannot be told from a missing pair
    np.testing.assert_allclose(
        scores_of_labels("weights", preferences_of_ranks(untied)),
        scores_of_labels("ranks", untied),
        atol=1e-12,
    )


@pytest.mark.parametrize("size", [2, 3, 5])
def test_scores_of_a_part_are_unbiased(size):
    """Their mean over all parts of a size that have the label is the score of the whole."""
    ranks = np.array([[3.0, 1, 5, 2, 4]])
    parts = list(itertools.combinations(range(5), size))
    shown = np.full((len(parts), 5), np.nan)
    for row, part in enumerate(parts):
        shown[row, part] = ranks[0, part]
    scores = scores_of_labels("ranks", shown)
    np.testing.assert_array_equal(np.isnan(scores), np.isnan(shown))
    np.testing.assert_allclose(np.nanmean(scores, axis=0), scores_of_labels("ranks", ranks)[0])


def test_when_scores_take_the_place_of_pairs():
    assert goes_by_scores(PD(), "auto", 21) and not goes_by_scores(PD(), "auto", 20)
    for loss, decoder in [
        (PD("graded"), "auto"),
        (PD(equal_queries=True), "auto"),
        (PD(), "local_search"),
        (PDByScores(), "auto"),
    ]:
        assert not goes_by_scores(loss, decoder, 100)


def test_the_ranker_learns_scores(data, two_are_many):
    ranker = CalibratedLabelRanker(LinearRegression()).fit(data.X, data.Y)
    by_scores = CalibratedLabelRanker(LinearRegression(), loss="pd_by_scores").fit(data.X, data.Y)
    np.testing.assert_allclose(ranker.regressor_.coef_, by_scores.regressor_.coef_, atol=1e-12)
    assert ranker.by_scores_ and not by_scores.by_scores_
    np.testing.assert_array_equal(ranker.predict(data.X), by_scores.predict(data.X))
    assert ranker.score(data.X, data.Y) == by_scores.score(data.X, data.Y)
    scores = by_scores.regressor_.predict(data.X)
    np.testing.assert_allclose(
        ranker.predict_preferences(data.X),
        scores[:, :, None] - scores[:, None, :],
        atol=1e-12,
    )
    weights = CalibratedLabelRanker(LinearRegression()).fit(data.X, preferences_of_ranks(data.Y))
    np.testing.assert_array_equal(weights.predict(data.X), ranker.predict(data.X))
    pairs = CalibratedLabelRanker(LinearRegression(), decoder="exact").fit(data.X, data.Y)
    assert pairs.regressor_.coef_.shape == (6, 3) and not pairs.by_scores_


def test_rows_without_a_preference_are_left_out(data, two_are_many):
    half = np.arange(240) % 2 == 0
    for nothing in (np.ones(4), np.array([np.nan, 1, np.nan, np.nan])):
        Y = np.where(half[:, None], data.Y, nothing)
        ranker = CalibratedLabelRanker(LinearRegression(), unlisted="ignore").fit(data.X, Y)
        wanted = CalibratedLabelRanker(LinearRegression()).fit(data.X[half], data.Y[half])
        np.testing.assert_allclose(ranker.regressor_.coef_, wanted.regressor_.coef_, atol=1e-12)
    with pytest.raises(ValueError, match="judges no pair"):
        ranker.fit(data.X, np.ones((240, 4)))
    tied = make_label_targets(PD(), "ranks", np.array([[1.0, 1, np.nan], [1, 1, 1]]), True)
    assert tied.defined.tolist() == [True, False]


def test_predictions_of_unknown_scores_are_scaled_back():
    rng = np.random.default_rng(0)
    truth = rng.normal([0, 1, 5], size=(400, 3))
    known = rng.random(truth.shape) < 0.5
    weight = rng.uniform(0.1, 2, size=400)
    shown = np.where(known, truth, 0.0)
    means = fill_unknown(shown, known, weight)
    for k in range(3):
        own = known[:, k]
        mean = np.average(truth[own, k], weights=weight[own])
        np.testing.assert_allclose(means[:, k], np.where(own, truth[:, k], mean))
    drawn = np.where(known, truth, means)
    center = np.array([means[~known[:, k], k][0] for k in range(3)])
    shrunk = center + 0.3 * (truth - center)  # as a fit to these means is
    np.testing.assert_allclose(fill_unknown(shown, known, weight, shrunk), truth)
    useless = np.broadcast_to(center, truth.shape)
    np.testing.assert_allclose(fill_unknown(shown, known, weight, useless), drawn)
    opposite = center - (truth - center)
    np.testing.assert_allclose(fill_unknown(shown, known, weight, opposite), drawn)


@pytest.mark.parametrize("missing", ["impute", "pairwise"])
def test_scores_with_missing_entries(data, two_are_many, missing):
    Y = np.where(np.random.default_rng(0).random(data.Y.shape) < 0.3, np.nan, data.Y)
    ranker = CalibratedLabelRanker(LinearRegression(), missing=missing).fit(data.X, Y)
    scores = scores_of_labels("ranks", Y)
    own = np.column_stack(
        [
            LinearRegression().fit(data.X[some], scores[some, k]).predict(data.X)
            for k, some in enumerate(~np.isnan(scores).T)
        ]
    )
    assert (ranker.regressors_ is None) == (missing == "impute")
    if missing == "impute":
        rows = ~np.isnan(scores).all(axis=1)
        filled = np.where(np.isnan(scores), own, scores)[rows]
        own = LinearRegression().fit(data.X[rows], filled).predict(data.X)
    found = ranker.predict_preferences(data.X)
    np.testing.assert_allclose(found, own[:, :, None] - own[:, None, :], atol=1e-12)


def many(n, r, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    utility = np.tanh(X @ rng.normal(size=(5, r))) + 0.5 * rng.gumbel(size=(n, r))
    return X, (-utility).argsort(axis=1).argsort(axis=1) + 1.0


def test_the_default_imputes_all_labels_together():
    X, Y = many(300, 24)
    gone = np.random.default_rng(1).random(Y.shape) < 0.6
    regressor = BlendedRegressor(n_estimators=20)
    whole, part, blind = (
        CalibratedLabelRanker(regressor, random_state=0).fit(X[:200], y)
        for y in (
            Y[:200],
            np.where(gone, np.nan, Y)[:200],
            np.random.default_rng(2).permuted(np.where(gone, np.nan, Y)[:200], axis=1),
        )
    )
    assert part.by_scores_ and part.regressors_ is None
    of_whole, of_part, of_blind = (one.score(X[200:], Y[200:]) for one in (whole, part, blind))
    assert of_whole - 0.06 < of_part and of_blind < 0.1 < of_part - 0.2
    tiny = CalibratedLabelRanker(regressor, random_state=0).fit(
        X[:3], np.where(gone, np.nan, Y)[:3]
    )
    assert sorted(tiny.predict(X[:1])[0]) == list(range(1, 25))


def test_score_in_blocks(data):
    Y = np.where(np.random.default_rng(0).random(data.Y.shape) < 0.3, np.nan, data.Y)
    ranker = CalibratedLabelRanker(Ridge()).fit(data.X, data.Y)
    weight = np.random.default_rng(1).random(240)
    for y in (Y, data.Y):
        whole = ranker.score(data.X, y, weight)
        with config_context(working_memory=0.01):
            assert ranker.score(data.X, y, weight) == pytest.approx(whole, abs=1e-12)


def test_large_forests_have_larger_leaves(monkeypatch):
    X, Y = many(60, 3)
    model = BlendedRegressor(n_estimators=40, random_state=0)
    assert model.fit(X, Y).forest_.min_samples_leaf == 1
    monkeypatch.setattr(_blend, "FOREST_BYTES", 16 * 40 * 60 * 3 // 4)
    large = model.fit(X, Y).forest_
    assert large.min_samples_leaf == 4
    size = sum(tree.tree_.value.nbytes for tree in large.estimators_)
    assert size <= _blend.FOREST_BYTES


class HeldOutRidge(RegressorMixin, BaseEstimator):
    """Ridge regression with held-out predictions by cross-validation."""

    def fit(self, X, y, sample_weight=None):
        self.fit_held_out(X, y, sample_weight)
        return self

    def fit_held_out(self, X, y, sample_weight=None):
        self.model_ = Ridge().fit(X, y, sample_weight)
        return cross_val_predict(Ridge(), X, y)

    def predict(self, X):
        return self.model_.predict(X)


def test_the_parts_are_orthogonal_and_add_up():
    rng = np.random.default_rng(0)
    u, scores = rng.normal(size=(20, 6)), rng.normal(size=(20, 4))
    differences = scores[:, FIRST] - scores[:, SECOND]
    rest = cyclic_part(u, 4)
    np.testing.assert_allclose((rest * differences).sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(cyclic_part(differences, 4), 0, atol=1e-12)
    np.testing.assert_allclose(cyclic_part(rest, 4), rest)
    own = net_scores(u, 4)
    np.testing.assert_allclose(own[:, FIRST] - own[:, SECOND] + rest, u)


def test_the_share_is_that_of_least_squares():
    rng = np.random.default_rng(0)
    truth, noise = rng.normal(size=(500, 6)), rng.normal(size=(500, 6))
    weight, judged = rng.uniform(size=500), rng.random((500, 6)) < 0.7
    targets = truth + rng.normal(size=(500, 6))
    assert confirmed_share(truth, targets, 4) == pytest.approx(1, abs=0.1)
    assert confirmed_share(noise, targets, 4) < 0.1
    assert confirmed_share(-truth, targets, 4) == 0
    held_out = truth + noise
    rest = cyclic_part(held_out, 4)
    steps = np.linspace(0, 1, 1001)
    for mask, rows in ((None, None), (judged, weight)):
        counts = (1 if mask is None else mask) * (1 if rows is None else rows[:, None])
        errors = [(counts * (held_out - (1 - s) * rest - targets) ** 2).sum() for s in steps]
        share = confirmed_share(held_out, targets, 4, mask, rows)
        assert share == pytest.approx(steps[np.argmin(errors)], abs=1e-3) and 0.4 < share < 0.6
    held_out[:50] = np.nan
    wanted = confirmed_share(held_out[50:], targets[50:], 4)
    assert confirmed_share(held_out, targets, 4) == wanted


def test_without_a_cyclic_part_the_share_is_one():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(30, 4))
    differences = scores[:, FIRST] - scores[:, SECOND]
    assert confirmed_share(differences, rng.normal(size=(30, 6)), 4) == 1
    assert confirmed_share(np.full((30, 6), np.nan), differences, 4) == 1
    assert confirmed_share(np.ones((30, 1)), np.ones((30, 1)), 2) == 1


def test_cyclic_preferences_are_kept_and_noise_is_not():
    """In a cyclic world the factor is near 1; where the order is pure noise it is near 0."""
    cyclic = make_label_ranking(400, 4, 2, kind="cyclic", noise=0.3, random_state=0)
    ranker = CalibratedLabelRanker(HeldOutRidge()).fit(cyclic.X, cyclic.Y)
    assert ranker.cyclic_weight_ > 0.9
    rng = np.random.default_rng(0)
    noise = rng.permuted(np.tile(np.arange(1.0, 5), (100, 1)), axis=1)
    ranker.fit(rng.normal(size=(100, 8)), noise)
    assert ranker.cyclic_weight_ < 0.5
    plain = CalibratedLabelRanker(Ridge()).fit(cyclic.X, cyclic.Y)
    assert plain.cyclic_weight_ == 1


@pytest.mark.parametrize("missing", ["impute", "pairwise"])
def test_predictions_have_the_cyclic_part_times_the_factor(missing):
    data = make_label_ranking(150, 4, 3, noise=2.0, random_state=1)
    Y = np.where(np.random.default_rng(0).random(data.Y.shape) < 0.2, np.nan, data.Y)
    for y in (data.Y, Y):
        ranker = CalibratedLabelRanker(HeldOutRidge(), missing=missing).fit(data.X, y)
        plain = CalibratedLabelRanker(Ridge(), missing=missing).fit(data.X, y)
        u, wanted = (one.predict_preferences(data.X)[:, FIRST, SECOND] for one in (ranker, plain))
        if ranker.regressors_ is None:
            assert 0 <= ranker.cyclic_weight_ < 0.9
        else:
            assert ranker.cyclic_weight_ == 1
        rest = cyclic_part(wanted, 4)
        np.testing.assert_allclose(u, wanted - (1 - ranker.cyclic_weight_) * rest, atol=1e-12)
    borda = CalibratedLabelRanker(HeldOutRidge(), decoder="borda").fit(data.X, data.Y)
    plain = CalibratedLabelRanker(Ridge(), decoder="borda").fit(data.X, data.Y)
    np.testing.assert_array_equal(borda.predict(data.X), plain.predict(data.X))


@pytest.mark.parametrize(("most_pairs", "n_fits"), [(900, 7), (899, 3)])
def test_many_missing_pairs_are_imputed_together(monkeypatch, most_pairs, n_fits):
    """A regressor for each of six pairs, or two for all of them, and the last one."""
    monkeypatch.setattr("sklearn_rankcal.label_ranking._label_ranker._MOST_PAIRS", most_pairs)
    fits = []

    class Logged(HeldOutRidge):
        def fit_held_out(self, X, y, sample_weight=None):
            fits.append(np.shape(y))
            return super().fit_held_out(X, y, sample_weight)

    data = make_label_ranking(150, 4, 3, random_state=1)
    Y = data.Y.copy()
    Y[::3, 1] = np.nan
    ranker = CalibratedLabelRanker(Logged()).fit(data.X, Y)
    assert len(fits) == n_fits and fits[-1] == (150, 6)
    assert ranker.score(data.X, data.Y) > 0.5


@pytest.mark.parametrize("loss", ["pd_by_scores", "ndcg"])
def test_losses_of_scores_have_no_cyclic_part(loss):
    data = make_label_ranking(60, 4, 3, random_state=0)
    ranker = CalibratedLabelRanker(HeldOutRidge(), loss=loss).fit(data.X, data.Y)
    plain = CalibratedLabelRanker(Ridge(), loss=loss).fit(data.X, data.Y)
    assert ranker.cyclic_weight_ == 1
    np.testing.assert_array_equal(ranker.predict(data.X), plain.predict(data.X))
