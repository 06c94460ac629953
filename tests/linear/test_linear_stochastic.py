"""LinearRanker by stochastic gradients: steps, batches, convergence and divergence."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_rankcal import LinearRanker
from sklearn_rankcal.exceptions import MissingGroupsWarning
from sklearn_rankcal.linear import LinearModel
from sklearn_rankcal.models import Training
from sklearn_rankcal.queries import Queries

from ..linear_tools import UTILITIES, fit, objective_of, query_weights
from ..ranker_data import G, X, Y

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize(
    ("surrogate", "rule"),
    [("softmax", "sqrt"), ("pairwise_logistic", "inverse"), ("pointwise_squared", "sqrt")],
)
def test_the_stochastic_gradient_tends_to_the_solution_of_lbfgs(surrogate, rule):
    alpha = 30.0 if rule == "inverse" else 1.0
    best = objective_of(fit(surrogate, alpha))
    start = objective_of(fit(surrogate, 1e12))
    gaps = []
    for passes in (2, 10, 50):
        ranker = fit(
            surrogate, alpha, solver="sgd", step_size=rule, max_iter=passes, random_state=0
        )
        assert ranker.n_iter_ == passes
        gaps.append((objective_of(ranker) - best) / (start - best))
    assert 0 <= gaps[2] < gaps[1] / 2 < gaps[0] / 4
    assert gaps[2] < 2e-3


def test_the_steps_are_those_of_the_formula():
    """Two documents in a query, one column: three steps of (25), written out."""
    table, gain = (
        np.array([[1.0], [0.0], [0.0], [2.0], [1.0], [3.0]]),
        np.array([1.0, 0, 1, 0, 0, 1]),
    )
    groups, alpha = np.repeat([0, 1, 2], 2), 0.6
    difference = np.array([1.0, 2.0, 2.0])  # of the document of gain 1 from the other one
    difference[1] *= -1
    for rule in ("sqrt", "inverse"):
        ranker = LinearRanker(
            "pairwise_logistic", loss="dcg", alpha=alpha, solver="sgd", step_size=rule,
            largest_step=0.5,
        ).partial_fit(table, gain, groups=groups)  # fmt: skip
        # scale of the column: curvature 1/4 at score 0, for each document
        mean = table.reshape(3, 2).mean(axis=1).repeat(2)
        scale = (((table[:, 0] - mean) ** 2).sum() / 4 + alpha) / 3
        penalty = alpha / 3
        mu = penalty / scale
        w, total, mass = 0.0, 0.0, 0.0
        for t, d in enumerate(difference, start=1):
            size = 0.5 / np.sqrt(t) if rule == "sqrt" else 1 / (mu * t + 2)
            slope = -d / (1 + np.exp(w * d))
            w = (w - size * slope / scale) / (1 + size * penalty / scale)
            part = 1.0 if rule == "sqrt" else t + 2 / mu
            total, mass = total + part * w, mass + part
        assert ranker.coef_[0] == pytest.approx(total / mass, rel=1e-12)


@pytest.mark.parametrize(("surrogate", "batch_size"), [("softmax", 5), ("pointwise_squared", 1)])
def test_batches_of_partial_fit_are_one_pass(surrogate, batch_size):
    weight = query_weights()
    make = LinearRanker(
        surrogate, loss=UTILITIES, solver="sgd", batch_size=batch_size, largest_step=0.3
    )
    whole, parts = clone(make), clone(make)
    first, second = G < 30, G >= 30
    # The first batch determines scales and penalty; the second one continues.
    parts.partial_fit(X[first], Y[first], G[first], weight[first])
    before = parts.coef_.copy()
    parts = pickle.loads(pickle.dumps(parts))  # goes on where it was
    parts.partial_fit(X[second], Y[second], G[second], weight[second])
    assert not np.allclose(parts.coef_, before)
    assert parts.n_iter_ == 2 and parts.n_queries_ == 60
    state = parts.model_._state
    thirds = clone(make)
    for part in (first, (G >= 30) & (G < 40), (G >= 40)):
        thirds.partial_fit(X[part], Y[part], G[part], weight[part])
    np.testing.assert_allclose(thirds.coef_, parts.coef_, rtol=1e-12)
    assert thirds.model_._state.n_steps == state.n_steps
    # Repeated calls with the same queries tend to what fit finds.
    for _ in range(60):
        whole.partial_fit(X, Y, G)
    best = fit(surrogate)
    np.testing.assert_allclose(whole.coef_, best.coef_, atol=0.02)
    # A fit continues too.
    ranker = clone(make).set_params(random_state=0, max_iter=3).fit(X, Y, groups=G)
    steps = ranker.model_._state.n_steps
    assert ranker.partial_fit(X, Y, groups=G).n_iter_ == 4
    assert ranker.model_._state.n_steps == steps * 4 // 3


def test_warnings_point_at_the_caller():
    for call in ("fit", "partial_fit"):
        ranker = LinearRanker(solver="sgd", max_iter=1)
        for _ in range(2):
            with pytest.warns(MissingGroupsWarning) as caught:
                getattr(ranker, call)(X, Y)
            assert caught[0].filename == __file__


def test_partial_fit_refuses_what_does_not_continue():
    ranker = LinearRanker("pointwise_logistic", loss="dcg", solver="sgd")
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as caught:
        LinearRanker().partial_fit(X, Y, groups=G)
    assert "partial_fit needs solver='sgd'" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match="partial_fit needs solver='sgd'"):
        LinearModel().partial_fit(Training(X, Y, Queries.from_groups(G)))
    low = np.minimum(Y, 1)
    ranker.partial_fit(X, low, groups=G)
    coef = ranker.coef_.copy()
    with pytest.raises(ValueError, match="utilities of at most eta=2"):
        ranker.partial_fit(X, Y, groups=G)
    with pytest.raises(ValueError, match="X has 2 features, but LinearRanker is expecting 6"):
        ranker.partial_fit(X[:, :2], low, groups=G)
    with pytest.raises(ValueError, match="fitted with query ids and needs them"):
        ranker.partial_fit(X, low)
    np.testing.assert_array_equal(ranker.coef_, coef)
    assert ranker.n_queries_ == 60
    training = Training(X, Y, Queries.from_groups(G))
    model = LinearModel("pairwise_squared", solver="sgd").partial_fit(training)
    with pytest.raises(ValueError, match="X has 2 columns, but earlier calls had 6"):
        model.partial_fit(replace(training, X=X[:, :2]))


def test_random_state_determines_the_order_of_the_queries():
    def coef(seed, **options):
        return fit("softmax", solver="sgd", max_iter=2, random_state=seed, **options).coef_

    np.testing.assert_array_equal(coef(0), coef(0))
    assert not np.array_equal(coef(0), coef(1))


@pytest.mark.parametrize("surrogate", ["pointwise_squared", "pairwise_exponential"])
def test_divergence_is_refused(surrogate):
    ranker = LinearRanker(surrogate, solver="sgd", largest_step=1e4, alpha=1e-9, random_state=0)
    with pytest.raises(ValueError, match=r"diverged, after \d+ steps .* smaller largest_step"):
        ranker.fit(X, Y, groups=G)
