"""Logistic regression of many outputs: against scikit-learn, against refitting, edge cases."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from sklearn_rankcal.label_ranking import _blend
from sklearn_rankcal.label_ranking._blend import fit_logistic, logistic_leave_one_out


@pytest.fixture
def one_penalty(monkeypatch):
    """A function that leaves a single penalty to choose from, and intercepts without a penalty."""

    def choose(alpha):
        monkeypatch.setattr(_blend, "PENALTIES", np.array([alpha]))
        monkeypatch.setattr(_blend, "_INTERCEPT_PENALTY", 1e-12)
        monkeypatch.setattr(_blend, "_TOLERANCE", 1e-16)

    return choose


def noisy(n=60, m=3, n_outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, m))
    z = Z @ rng.normal(size=(m, n_outputs)) + 0.5
    weight = rng.uniform(0.5, 1.5, size=n)
    return Z, np.sign(expit(z) - rng.uniform(size=z.shape)), weight / weight.mean()


@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
def test_agrees_with_scikit_learn(one_penalty, alpha):
    """Each output is a `LogisticRegression`, which takes 1 / alpha for C."""
    Z, y, weight = noisy()
    one_penalty(alpha)
    model = logistic_leave_one_out(Z, y, weight)[2]
    for k in range(2):
        peer = LogisticRegression(C=1 / alpha, solver="newton-cholesky", tol=1e-10)
        peer.fit(Z, y[:, k] > 0, weight)
        np.testing.assert_allclose(model.coef[:, k], peer.coef_[0], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(model.intercept[k], peer.intercept_[0], rtol=1e-5, atol=1e-7)
        wanted = 2 * peer.predict_proba(Z)[:, 1] - 1
        np.testing.assert_allclose(model.predict(Z)[:, k], wanted, atol=1e-6)


def test_a_target_inside_the_interval_is_a_probability(one_penalty):
    """A row of target .3 is a row of target 1 and weight .3, and one of target 0 and weight .7."""
    Z, _, weight = noisy(n_outputs=1)
    share = np.random.default_rng(1).uniform(size=60)
    share[:2] = 0, 1  # the interval is that of the targets
    one_penalty(1.0)
    model = logistic_leave_one_out(Z, 10 + 4 * share[:, None], weight)[2]
    peer = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-10)
    peer.fit(np.r_[Z, Z], np.repeat([1, 0], 60), np.r_[weight * share, weight * (1 - share)])
    wanted = 10 + 4 * peer.predict_proba(Z)[:, 1]
    np.testing.assert_allclose(model.predict(Z)[:, 0], wanted, atol=1e-5)


def test_leave_one_out_is_close_to_refitting_without_the_row(one_penalty):
    Z, y, weight = noisy()
    one_penalty(1.0)
    _, held_out, model = logistic_leave_one_out(Z, y, weight)
    refitted = np.empty_like(y)
    for row in range(60):
        rest = np.arange(60) != row
        refitted[row] = logistic_leave_one_out(Z[rest], y[rest], weight[rest])[2].predict(
            Z[row : row + 1]
        )[0]
    moved = np.abs(refitted - model.predict(Z)).max()
    assert np.abs(refitted - held_out).max() < 0.1 * moved and moved > 0.1


def test_the_penalty_has_the_least_leave_one_out_error(monkeypatch):
    Z, y, weight = noisy(n=80, m=10)
    found = logistic_leave_one_out(Z, y, weight)[0]
    errors = []
    for alpha in _blend.PENALTIES:
        monkeypatch.setattr(_blend, "PENALTIES", np.array([alpha]))
        errors.append(logistic_leave_one_out(Z, y, weight)[0])
    assert found == pytest.approx(min(errors), rel=1e-3) and max(errors) > 1.05 * found


def test_separable_and_constant_targets_are_finite():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 2))
    y = np.c_[np.sign(Z[:, 0]), np.full(40, 3.0), np.where(np.arange(40) == 0, -1.0, 1.0)]
    error, held_out, model = logistic_leave_one_out(Z, y, np.ones(40))
    assert np.isfinite(error) and np.isfinite(held_out).all()
    new = model.predict(100 * rng.normal(size=(50, 2)))
    assert ((new >= y.min(axis=0)) & (new <= y.max(axis=0))).all()
    np.testing.assert_array_equal(new[:, 1], 3.0)
    assert (np.sign(model.predict(Z)[:, 0]) == y[:, 0]).all()


@pytest.mark.parametrize("heavy_tails", [False, True])
def test_features_are_compressed_if_that_has_a_smaller_error(heavy_tails):
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, size=(200, 4)) if heavy_tails else rng.normal(size=(200, 4))
    X /= X.std(axis=0)
    Z = np.arcsinh(X) if heavy_tails else X
    y = np.sign(Z @ rng.normal(size=(4, 3)))
    held_out, columns, model = fit_logistic(X, y, np.ones(200), 0)
    assert (columns[0].func is np.arcsinh) == heavy_tails
    error, wanted, alone = logistic_leave_one_out(Z, y, np.ones(200))
    np.testing.assert_array_equal(held_out, wanted)
    np.testing.assert_array_equal(model.predict(columns.transform(X)), alone.predict(Z))
    other = logistic_leave_one_out(X if heavy_tails else np.arcsinh(X), y, np.ones(200))[0]
    assert error < 0.95 * other


def test_newton_steps_are_halved_where_they_would_overshoot():
    """From a start far away a full step overshoots; the solution is the same as from 0."""
    Z, y, weight = noisy()
    penalty, targets = np.full(3, 1.0), (y + 1) / 2
    wanted = _blend._newton(Z, targets, weight, penalty, np.zeros((3, 2)))
    start = np.array([[8.0, -6.0], [-7.0, 9.0], [6.0, 8.0]])
    found = _blend._newton(Z, targets, weight, penalty, start)
    np.testing.assert_allclose(found, wanted, atol=1e-3)


def test_with_many_rows_the_penalty_is_searched_on_some():
    """On all rows the solution is that of the penalty found, or of one close to it."""
    Z, y, weight = noisy(n=300)
    rows = np.arange(0, 300, 3)
    held_out, columns, model = fit_logistic(Z, y, weight, 0, rows)
    _, some, start = fit_logistic(Z[rows], y[rows], weight[rows], 0)
    assert held_out.shape == y.shape and columns[0].func is some[0].func
    assert np.isclose(model.alpha / start.alpha, [0.1, 1, 10]).any()
    wanted = logistic_leave_one_out(columns.transform(Z), y, weight, np.array([model.alpha]))
    np.testing.assert_allclose(held_out, wanted[1], atol=1e-3)
