"""The coordinates of linear models, and L-BFGS where a function is infinite."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from sklearn_rankcal import LinearRanker
from sklearn_rankcal.linear import _linear_objective  # the coordinates, which a fit does not show
from sklearn_rankcal.linear._linear_objective import LinearObjective, QueryBatches, minimize_smooth
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import get_surrogate

from ..ranker_data import G, X, Y

UNITS = np.array([1e-5, 1.0, 1e4, 10.0, 0.1, 1.0])


def make_metric(surrogate, table=X, groups=G, y=Y, alpha=0.7):
    queries = Queries.from_groups(groups)
    surrogate = get_surrogate(surrogate).resolve(y)
    weight = 1.0 + groups % 3
    objective = LinearObjective(QueryBatches(table, y, queries, weight), surrogate, alpha)
    return _linear_objective.make_coordinates(objective, np.zeros(table.shape[1]), 0.0, alpha)


def second_derivatives(surrogate, alpha=0.7):
    """H, written out: weighted products of centred columns, with their shares of few rows."""
    queries = Queries.from_groups(G)
    surrogate = get_surrogate(surrogate).resolve(Y)
    bend = surrogate.evaluate(Y, np.zeros(len(Y)), queries).curvature * (1.0 + G % 3)
    table = X * UNITS
    for q in range(60) if surrogate.shift_invariant else [None]:
        rows = slice(None) if q is None else G == q
        if bend[rows].any():
            table[rows] -= np.average(table[rows], axis=0, weights=bend[rows])
    products = table.T @ (bend[:, None] * table)
    squares = np.diag(np.diag(products))
    share = (6 / (6 + len(Y))) ** 2
    return (1 - share) * products + share * squares + alpha * np.eye(6)


@pytest.mark.parametrize("surrogate", ["pairwise_logistic", "pointwise_logistic"])
def test_second_derivatives_are_one_in_the_coordinates(surrogate, monkeypatch):
    expected = second_derivatives(surrogate)
    shuffle = np.random.RandomState(0).permutation(len(Y))
    for block_bytes in (_linear_objective._BLOCK_BYTES, 8 * 6 * 50, 8 * 6 * 5):
        monkeypatch.setattr(_linear_objective, "_BLOCK_BYTES", block_bytes)
        for kind in (np.asarray, sparse.csr_matrix, sparse.csr_array):
            table = kind((X * UNITS)[shuffle])
            metric = make_metric(surrogate, table, G[shuffle], Y[shuffle])
            found = metric.matrix.T @ expected @ metric.matrix
            np.testing.assert_allclose(found, np.eye(6), atol=1e-6)
            product = metric.matrix.T @ metric.matrix
            np.testing.assert_allclose(np.diag(product), metric.squares, rtol=1e-6)
            np.testing.assert_allclose(metric.matrix @ metric.inverse, np.eye(6), atol=1e-6)
            w = np.arange(6.0)
            coef, intercept = metric.point(metric.coordinates(w, 3.0))
            np.testing.assert_allclose(coef, w, atol=1e-6)
            assert intercept == pytest.approx(0.0 if metric.intercept is None else 3.0, abs=1e-6)
            slopes = metric.gradient(w, 0.0)[:6]
            np.testing.assert_allclose(slopes, metric.matrix.T @ w, rtol=1e-12)


@pytest.mark.parametrize("surrogate", ["pairwise_logistic", "pointwise_logistic"])
def test_many_columns_have_a_diagonal_metric(surrogate, monkeypatch):
    monkeypatch.setattr(_linear_objective, "_MAX_CORRELATED", 5)
    expected = np.diag(second_derivatives(surrogate))
    for kind in (np.asarray, sparse.csr_matrix):
        metric = make_metric(surrogate, kind(X * UNITS))
        assert metric.matrix is None
        np.testing.assert_allclose(metric.squares, 1 / expected, rtol=1e-6)
        w = np.arange(6.0)
        np.testing.assert_allclose(metric.point(metric.coordinates(w, 0.0))[0], w, rtol=1e-12)
        slopes = metric.gradient(w, 0.0)[:6]
        np.testing.assert_allclose(slopes, w / np.sqrt(expected), rtol=1e-6)
    ranker = LinearRanker(surrogate, tol=1e-9).fit(X, Y, groups=G)
    monkeypatch.undo()
    other = LinearRanker(surrogate, tol=1e-9).fit(X, Y, groups=G)
    np.testing.assert_allclose(ranker.coef_, other.coef_, rtol=1e-6)


def test_the_origin_has_the_best_intercept():
    surrogate = get_surrogate("pointwise_squared")
    for mean in (0.0, 2.0):  # at 0, the slope is 0, and no unit of the intercept
        batches = QueryBatches(X[:3], mean + np.array([-1.0, 0.0, 1.0]), Queries.single(3))
        objective = LinearObjective(batches, surrogate, 1.0)
        (coef, intercept), _ = _linear_objective.find_origin(objective, 1.0)
        assert not coef.any() and intercept == pytest.approx(mean, abs=1e-6)


def test_sampled_rows_give_nearly_the_same_coordinates(monkeypatch):
    monkeypatch.setattr(_linear_objective, "_BLOCK_BYTES", 8 * 6 * 20)
    expected = second_derivatives("pairwise_logistic")
    monkeypatch.setattr(_linear_objective, "_ROWS_PER_COLUMN", 25)
    metric = make_metric("pairwise_logistic", X * UNITS)
    found = np.linalg.eigvalsh(metric.matrix.T @ expected @ metric.matrix)
    assert 0.3 < found[0] < 0.999 and found[-1] < 3


def test_lbfgs_returns_from_where_a_function_is_infinite():
    """A barrier: -log(1 - x) - log(1 + x) - 3 x + a steep exponential, from near its edge."""
    calls = []

    def function(x):
        calls.append(x.copy())
        with np.errstate(all="ignore"):
            value = -np.log(1 - x).sum() - np.log(1 + x).sum() - 3 * x.sum() + np.exp(7000 * x[0])
            slope = 1 / (1 - x) - 1 / (1 + x) - 3 + np.array([7000, 0]) * np.exp(7000 * x[0])
        return float(value), slope

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = minimize_smooth(
            function, np.array([-0.9, -0.9]), max_iter=200, gradient_tolerance=1e-6,
            value_tolerance=0.0,
        )  # fmt: skip
    values = np.array([function(x)[0] for x in list(calls)])
    assert not np.isfinite(values).all()  # the guard was needed
    assert np.isfinite(found.x).all() and found.success
    assert np.abs(function(found.x)[1]).max() < 1e-5
    assert found.x[1] == pytest.approx((np.sqrt(10) - 1) / 3, abs=1e-6)  # 2 x = 3 (1 - x^2)
