"""BlendedRegressor, and its logistic regressions between bounds."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_rankcal.label_ranking import BlendedRegressor, _blend  # limits that tests lower
from sklearn_rankcal.label_ranking._blend import (
    fit_logistic,
    logistic_leave_one_out,
    ridge_leave_one_out,
)


@parametrize_with_checks(
    [BlendedRegressor(n_estimators=5)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": (
            "bootstrap samples and the kernels' basis draw rows, whatever their weight"
        )
    },
)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_refitting_without_the_row(monkeypatch, weighted):
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(14, 3)), rng.normal(size=(14, 2))
    weight = rng.uniform(0.5, 2, size=14) if weighted else np.ones(14)
    errors = {}
    for alpha in (0.1, 3.0):
        refitted = np.empty_like(y)
        for row in range(14):
            rest = np.arange(14) != row
            model = Ridge(alpha).fit(Z[rest], y[rest], weight[rest])
            refitted[row] = model.predict(Z[row : row + 1])[0]
        monkeypatch.setattr(_blend, "ALPHAS", np.array([alpha]))
        error, held_out, coef, intercept = ridge_leave_one_out(Z, y, weight)
        # The closed form centres with the mean of all rows, and is exact all the same.
        np.testing.assert_allclose(held_out, refitted, atol=1e-9)
        whole = Ridge(alpha).fit(Z, y, weight)
        np.testing.assert_allclose(coef.T, whole.coef_, atol=1e-9)
        np.testing.assert_allclose(intercept, whole.intercept_, atol=1e-9)
        errors[alpha] = error
    monkeypatch.setattr(_blend, "ALPHAS", np.array([0.1, 3.0]))
    assert ridge_leave_one_out(Z, y, weight)[0] == pytest.approx(min(errors.values()))


def test_weights_and_predictions_are_convex():
    X, y = load_diabetes(return_X_y=True)
    Y = np.c_[y, -y, X[:, 0]]
    model = BlendedRegressor(n_estimators=50, random_state=0).fit(X[:300], Y[:300])
    assert model.weights_.min() >= 0 and model.weights_.sum() == pytest.approx(1)
    parts = [model.forest_.predict(X[300:])]
    scaled = model.scaler_.transform(X[300:])
    parts += [f.transform(scaled) @ coef + intercept for f, coef, intercept in model.kernels_]
    parts.append(model.logistic_.predict(model.columns_.transform(scaled)))
    unit = 2.0 ** np.frexp(np.abs(Y[:300]).max())[1]  # the parts learn targets below 1
    wanted = unit * np.tensordot(model.weights_, parts, axes=1)
    np.testing.assert_allclose(model.predict(X[300:]), wanted)
    again = clone(model).fit(X[:300], Y[:300])
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_held_out_predictions_learn_the_weights():
    """Where the truth is linear the logistic regression has nearly all weight, elsewhere little."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    linear = np.sign(X @ rng.normal(size=(8, 3)))
    model = BlendedRegressor(random_state=0)
    held_out = model.fit_held_out(X[:200], linear[:200])
    assert model.weights_[-1] > 0.8
    assert (np.sign(model.predict(X[200:])) == linear[200:]).mean() > 0.93
    steps = np.sign(X[:, :3] * X[:, 3:6])
    assert BlendedRegressor(random_state=0).fit(X, steps).weights_[-1] < 0.1
    # Held-out predictions have the error of new rows, and not that of the rows of `fit`.
    noise = np.sign(rng.normal(size=(200, 3)))
    blind = model.fit_held_out(X[:200], noise)
    assert np.mean((blind - noise) ** 2) > 0.97 > np.mean((model.predict(X[:200]) - noise) ** 2)
    assert held_out.shape == (200, 3) and np.isfinite(held_out).all()


def test_only_ratios_of_weights_count():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(200, 3)), rng.normal(size=(200, 2)), rng.gamma(1.0, size=200)
    fits = (BlendedRegressor(random_state=0).fit(X, y, factor * weight) for factor in (1, 3))
    np.testing.assert_allclose(*(fit.predict(X) for fit in fits), rtol=1e-12)


def test_rows_without_held_out_predictions_have_nan(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    weight = (np.arange(60) < 50).astype(float)
    held_out = BlendedRegressor(random_state=0).fit_held_out(X, y, weight)
    np.testing.assert_array_equal(np.isnan(held_out), weight == 0)
    assert np.isnan(BlendedRegressor(random_state=0).fit_held_out(X[:4], y[:4])).all()
    monkeypatch.setattr(_blend, "MAX_SAMPLES", 30)
    drawn = BlendedRegressor(random_state=0).fit_held_out(X, y, weight)
    assert np.isfinite(drawn).sum() == 30


@pytest.mark.parametrize("unit", [2.0**-3, 2.0**40])
def test_the_unit_of_the_targets_does_not_matter(unit):
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, y**2 / 100])[:80]
    one, other = (
        BlendedRegressor(n_estimators=20, random_state=0).fit(X[:80], u * Y) for u in (1, unit)
    )
    np.testing.assert_array_equal(other.predict(X), unit * one.predict(X))


def test_more_shrinkage_brings_weights_closer_to_equal(monkeypatch):
    X, y = (part[:200] for part in load_diabetes(return_X_y=True))
    distances = []
    for shrinkage in (0.0, 100.0, 1e4):
        monkeypatch.setattr(_blend, "SHRINKAGE", shrinkage)
        weights = BlendedRegressor(n_estimators=50, random_state=0).fit(X, y).weights_
        distances.append(np.abs(weights - 1 / 4).max())
    assert distances == sorted(distances, reverse=True) and distances[-1] < 0.05


def test_many_columns_are_projected():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3)) @ rng.normal(size=(3, 130)) + 0.01 * rng.normal(size=(160, 130))
    y = np.sign(X[:, 0])
    model = BlendedRegressor(random_state=0).fit(X[:120], y[:120])
    assert model.logistic_.coef.shape == (100, 1)
    assert (np.sign(model.predict(X[120:])) == y[120:]).mean() > 0.9
    few = BlendedRegressor(random_state=0).fit(X[:20], y[:20])
    assert few.logistic_.coef.shape == (20, 1)


def test_beyond_its_limits_it_draws_rows(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(600, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1]
    for name, value in (("N_COMPONENTS", 80), ("MAX_SAMPLES", 400), ("MAX_SEARCH", 200)):
        monkeypatch.setattr(_blend, name, value)
    assert BlendedRegressor(random_state=0).fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.95


@pytest.mark.parametrize("n", [1, 2, 9])
def test_few_rows_equal_rows_and_constants(n):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, 3)), np.sign(rng.normal(size=(n, 4)))
    for table, goal in ((X, Y), (np.repeat(X, 30, axis=0), np.repeat(Y, 30, axis=0)),
                        (np.ones((n, 3)), np.zeros((n, 4)))):  # fmt: skip
        model = BlendedRegressor(n_estimators=20, random_state=0)
        found = model.fit(table, goal).predict(X)
        assert found.shape == (n, 4) and np.isfinite(found).all()
    with pytest.raises(ValueError, match=r"0 for every row|at least one non-zero"):
        BlendedRegressor().fit(X, Y, np.zeros(n))


def test_missing_values_are_marked_for_all_members():
    """That a value is missing says something, and a column without any value says nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    X[rng.random(300) < 0.4, 0] = np.nan
    y = np.isnan(X[:, 0]) + 0.1 * X[:, 1]
    model = BlendedRegressor(n_estimators=30, random_state=0).fit(X[:200], y[:200])
    for weights in np.eye(4):
        model.weights_ = weights
        assert model.score(X[200:], y[200:]) > 0.9
    empty = np.column_stack([X, np.full(300, np.nan)])
    again = BlendedRegressor(n_estimators=30, random_state=0).fit(empty[:200], y[:200])
    assert again.score(empty[200:], y[200:]) > 0.9
    assert np.isfinite(again.predict(np.full((1, 3), np.nan))).all()
    with pytest.raises(ValueError, match="infinity"):
        model.predict([[np.inf, 0.0]])


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
