"""Surrogate risks, infima and suboptimality, against loops and scipy; and order-preserving maps."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.consistency import (
    LabelDistribution,
    ranking_regret,
    suboptimality,
    surrogate_regret,
)
from sklearn_rankcal.consistency import _regrets as minima  # limits that tests lower
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import NDCG, get_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import (
    Bregman,
    PointwiseSquared,
    Softmax,
    Surrogate,
    WeightedComparisons,
    get_surrogate,
)

from ..covering import covering
from ..surrogate_data import EVERY, decreasing_fit, itakura_saito, name_of, surrogate_risk

pytestmark = pytest.mark.simulation

CONVEX = [surrogate for surrogate in EVERY if surrogate.convex]


def draw(rng, r, m=4):
    return LabelDistribution(rng.integers(1, 4, (m, r)), rng.dirichlet(np.ones(m)))


# ------------------------------------------------------------------ risks


@pytest.mark.parametrize("surrogate", EVERY, ids=name_of)
def test_risks_are_means_over_labels(surrogate):
    rng = np.random.default_rng(0)
    distribution = draw(rng, 4)
    scores = rng.normal(size=(7, 4))
    loss, queries = get_loss("dcg"), Queries.single(4)
    labels = distribution.labels
    targets = np.array([surrogate.targets(loss, y, queries) for y in labels])
    fixed = surrogate.resolve(targets.ravel())
    wanted = [
        sum(
            p * fixed.evaluate(v, s, queries).value[0]
            for p, v in zip(distribution.probabilities, targets, strict=True)
        )
        for s in scores
    ]
    got = surrogate_risk(scores, distribution, "dcg", surrogate)
    np.testing.assert_allclose(got, wanted, rtol=1e-12)
    one = surrogate_risk(scores[0], distribution, "dcg", surrogate)
    assert isinstance(one, float) and one == pytest.approx(wanted[0])


def test_risks_of_preferences_are_means_over_labels():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, (5, 3, 3)) * ~np.eye(3, dtype=bool)
    p, s, queries = rng.dirichlet(np.ones(5)), rng.normal(size=3), Queries.single(3)
    for name in ("ranksvm", "weighted_comparisons", "required_margin", "difference_graph"):
        surrogate = get_surrogate(name)
        wanted = 0.0
        for chance, y in zip(p, labels, strict=True):
            i, j = np.nonzero(y)
            preferences = Preferences.from_pairs(i, j, y[i, j].astype(float), queries)
            wanted += chance * surrogate.evaluate(preferences, s, queries).value[0]
        for loss in ("pd", "pd_by_scores"):
            assert surrogate_risk(s, (labels, p), loss, surrogate) == pytest.approx(wanted)


def test_shrinkage_and_undefined_labels_are_left_out():
    """The utilities are those of `expected_targets`, whatever the shrinkage of the loss is."""
    distribution = ([[3, 1, 0], [0, 1, 1], [0, 0, 0]], [0.25, 0.25, 0.5])
    defined = ([[3, 1, 0], [0, 1, 1]], [0.5, 0.5])
    s = [0.2, 0.1, 0.0]
    risks = {
        surrogate_risk(s, one, loss, Softmax())
        for one in (distribution, defined)
        for loss in ("ndcg", NDCG(shrinkage=0.0), NDCG(shrinkage=0.7))
    }
    assert len({round(risk, 12) for risk in risks}) == 1


# ------------------------------------------------------------------ infima and cones


def by_scipy(surrogate, distribution, loss, order):
    """Minimise over the scores of an order by scipy, from several starting points."""
    r = distribution.n_documents
    into = np.zeros((r, r))
    into[order] = np.triu(np.ones((r, r)))
    labels = distribution.labels.ravel()
    queries = Queries.uniform(len(labels) // r, r)
    targets = surrogate.targets(get_loss(loss), labels, queries)
    fixed, p = surrogate.resolve(targets), distribution.probabilities

    def risk(z):
        result = fixed.evaluate(targets, np.tile(into @ z, len(p)), queries, derivatives=1)
        return p @ result.value, into.T @ (p @ result.gradient.reshape(len(p), r))

    bounds = [(0, 40)] * (r - 1) + [(-40, 40)]
    return min(
        minimize(risk, start, jac=True, bounds=bounds, method="L-BFGS-B").fun
        for start in (np.full(r, 0.3), np.arange(r) / 2.0)
    )


@pytest.mark.parametrize(
    "surrogate",
    covering(
        [(surrogate,) for surrogate in CONVEX],
        lambda one: [type(one), *(getattr(one, name, "") for name in ("margin", "required"))],
    ),
    ids=name_of,
)
def test_suboptimality_equals_a_search_by_scipy(surrogate):
    rng = np.random.default_rng(2)
    smooth = getattr(surrogate, "margin", "") != "hinge"
    for r in (2, 3):
        distribution = draw(rng, r)
        orders = [list(order) for order in itertools.permutations(range(r))]
        ranks = np.argsort(orders, axis=1) + 1
        regrets = ranking_regret(ranks, distribution, "dcg")
        values = np.array([by_scipy(surrogate, distribution, "dcg", order) for order in orders])
        size = 1 + surrogate_risk(np.zeros(r), distribution, "dcg", surrogate)
        epsilons = np.unique(regrets)
        h = suboptimality(epsilons, distribution, "dcg", surrogate)
        for epsilon, got in zip(epsilons, h, strict=True):
            least = values[regrets >= epsilon].min() - values.min()
            if smooth:
                assert got == pytest.approx(least, abs=2e-6 * size)
            else:  # scipy stops at corners, above the minimum
                assert surrogate_risk(np.zeros(r), distribution, "dcg", surrogate) >= got >= 0
                inf = values.min() - surrogate_regret(np.zeros(r), distribution, "dcg", surrogate)
                assert inf <= values.min() + 1e-9
    assert suboptimality(regrets.max() + 0.01, distribution, "dcg", surrogate) == np.inf
    assert suboptimality(0.0, distribution, "dcg", surrogate) == pytest.approx(0, abs=1e-9 * size)


def hinge_oracle(surrogate, distribution, top):
    """Hinges of whole numbers have whole minimisers, which are enumerated for every order."""
    r = distribution.n_documents
    grid = np.array(list(itertools.product(range(top + 1), repeat=r)), dtype=float)
    risks = surrogate_risk(grid, distribution, "dcg", surrogate)
    least = {}
    for order in itertools.permutations(range(r)):
        inside = (np.diff(grid[:, list(order)], axis=1) <= 0).all(axis=1)
        least[order] = risks[inside].min()
    return least, risks.min()


@pytest.mark.parametrize(
    ("surrogate", "top"),
    [
        (WeightedComparisons("hinge", "binary"), 2),
        (WeightedComparisons("hinge"), 2),
        (WeightedComparisons("hinge", "binary", "binary"), 4),
    ],
    ids=name_of,
)
def test_suboptimality_of_hinges_equals_an_enumeration(surrogate, top):
    rng = np.random.default_rng(3)
    for _ in range(10):
        distribution = draw(rng, 3)
        least, infimum = hinge_oracle(surrogate, distribution, top)
        regret = {
            order: ranking_regret(np.argsort(order) + 1, distribution, "dcg") for order in least
        }
        epsilons = sorted(set(regret.values()))
        h = suboptimality(epsilons, distribution, "dcg", surrogate)
        for epsilon, got in zip(epsilons, h, strict=True):
            wanted = min(least[o] for o in least if regret[o] >= epsilon) - infimum
            assert got == pytest.approx(wanted, abs=1e-9)
        s = rng.normal(size=3)
        excess = surrogate_risk(s, distribution, "dcg", surrogate) - infimum
        assert surrogate_regret(s, distribution, "dcg", surrogate) == pytest.approx(excess)


def test_suboptimality_of_the_squared_error_is_the_distance_to_the_cone():
    rng = np.random.default_rng(4)
    for r in (3, 5):
        distribution = draw(rng, r)
        u = distribution.probabilities @ (2.0**distribution.labels - 1)
        orders = np.array(list(itertools.permutations(range(r))))
        along = u[orders]
        distance = ((along - decreasing_fit(along)) ** 2).sum(axis=1)
        regrets = ranking_regret(np.argsort(orders, axis=1) + 1, distribution, "dcg")
        epsilons = rng.uniform(0, regrets.max(), 20)
        wanted = [distance[regrets >= epsilon].min() for epsilon in epsilons]
        got = suboptimality(epsilons, distribution, "dcg", PointwiseSquared())
        np.testing.assert_allclose(got, wanted, atol=1e-10)
        assert (np.diff(got[np.argsort(epsilons)]) >= 0).all()  # H does not decrease


def test_infima_that_are_not_attained():
    """Scores go to infinity where all labels agree, or where a document has no utility."""
    certain = ([[2, 1, 0]], [1.0])
    for surrogate in ("ranknet", "rankboost", "weighted_comparisons"):
        assert surrogate_regret([60.0, 0.0, -60.0], certain, "dcg", surrogate) < 1e-9
        risk = surrogate_risk([2.0, 1.0, 0.0], certain, "dcg", surrogate)
        assert surrogate_regret([2.0, 1.0, 0.0], certain, "dcg", surrogate) == pytest.approx(risk)
    without = ([[1, 0], [1, 0]], [0.5, 0.5])
    for surrogate in ("softmax", "generalized_kl", "pairwise_logistic"):
        h = suboptimality(0.1, without, "dcg", surrogate)
        assert 0 < h < 1
        assert h == pytest.approx(surrogate_regret([np.log(0.5)] * 2, without, "dcg", surrogate))


def test_a_surrogate_of_a_user():
    """A surrogate that only has `_evaluate` is minimised by Newton steps."""

    class Quartic(Surrogate):
        def _evaluate(self, v, s, queries, derivatives, n_jobs):
            from sklearn_rankcal.surrogates import Evaluation

            d = s - v
            return Evaluation(queries.reduce(np.add, d**4 + d**2), 4 * d**3 + 2 * d, None)

    distribution = ([[1, 0], [0, 1]], [0.5, 0.5])
    risk = surrogate_risk([0.5, 0.5], distribution, "dcg", Quartic())
    assert surrogate_regret([0.5, 0.5], distribution, "dcg", Quartic()) == pytest.approx(0)
    assert risk == pytest.approx(2 * (0.5**4 + 0.5**2))
    assert suboptimality(0.0, distribution, "dcg", Quartic()) == 0


def test_a_bregman_divergence_of_a_user_is_minimised_numerically():
    """Its minimiser is g(s) = E[v]; the link is e^s."""
    rng = np.random.default_rng(6)
    distribution = draw(rng, 4)
    u = distribution.probabilities @ (2.0**distribution.labels - 1)
    regret = surrogate_regret(np.log(u), distribution, "dcg", itakura_saito())
    assert regret == pytest.approx(0, abs=1e-10)
    assert surrogate_regret(np.log(u) + 0.1, distribution, "dcg", itakura_saito()) > 1e-3


def test_a_minimum_that_is_missed_warns(monkeypatch):
    monkeypatch.setattr(minima, "STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="was not minimised: a derivative of"):
        surrogate_regret([0.0, 0.0, 1.0], ([[2, 1, 0], [0, 2, 1]], [0.6, 0.4]), "dcg", "ranknet")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: surrogate_risk([1, 2, 3], d, "dcg", "softmax"), r"\(2,\) or \(n_scores, 2\)"),
        (lambda d: surrogate_risk([1, np.inf], d, "dcg", "softmax"), "scores contains NaN"),
        (lambda d: surrogate_regret([1, 2], d, "dcg", "soft"), "Unknown surrogate 'soft'"),
        (lambda d: surrogate_regret([1, 2], d, "map", "softmax"), "map_by_scores"),
        (lambda d: suboptimality(-1, d, "dcg", "softmax"), "epsilon must be finite and >= 0"),
        (lambda d: suboptimality(np.nan, d, "dcg", "softmax"), "epsilon must be finite"),
        (lambda d: suboptimality(1, ([[1] * 6], [1]), "dcg", "softmax"), "up to 5 documents"),
        (lambda d: surrogate_regret([1, 2], d, "dcg", itakura_saito()), "infinite or undefined"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # the function of a user
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(([[1, 0], [0, 1]], [0.5, 0.5]))


def test_bregman_without_functions_has_a_closed_form():
    d = ([[1, 0], [0, 1]], [0.7, 0.3])
    assert surrogate_regret([0.7, 0.3], d, "dcg", Bregman()) == 0
