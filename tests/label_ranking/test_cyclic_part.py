"""The cyclic part of predicted preferences, and its weight in `CalibratedLabelRanker`."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_predict

from sklearn_rankcal import CalibratedLabelRanker
from sklearn_rankcal.datasets import make_label_ranking
from sklearn_rankcal.label_ranking._outputs import confirmed_share, cyclic_part, net_scores

FIRST, SECOND = np.triu_indices(4, 1)


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
