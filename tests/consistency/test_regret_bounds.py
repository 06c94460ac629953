"""Regret bounds hold for random and for adversarial predictions, and are attained."""

import numpy as np
import pytest

from sklearn_rankcal.consistency import regret_bound
from sklearn_rankcal.consistency._distributions import (  # enumerations, shared for their speed
    all_ranks,
    all_targets,
    as_queries,
    calibrated_values,
    ranking_numbers,
)
from sklearn_rankcal.decoders import DECODERS, decode_preferences
from sklearn_rankcal.losses import ERR, LOSSES, MAP, NDCG, PD
from sklearn_rankcal.queries import Queries

from .. import oracles
from .test_calibration import defined, mixtures, pool_of

PARAMETERS = {"precision": {"k": 2}, "recall": {"k": 2}}
BOUNDED = [name for name, kind in LOSSES.items() if kind().calibrated_everywhere]


class Problem:
    """A loss on labels of r documents: targets, values of all rankings, and its exact decoder."""

    def __init__(self, name, r, seed=0):
        rng = np.random.default_rng(seed)
        loss = LOSSES[name](**PARAMETERS.get(name, {}))
        self.pool = defined(loss, pool_of(loss, r, rng))
        self.loss, self.r = loss.resolve(as_queries(self.pool)[0]), r
        self.value = calibrated_values(self.loss, self.pool, all_ranks(r))
        self.targets = all_targets(self.loss, self.pool)
        self.decoder = DECODERS[loss.space, "sort" if loss.space == "scores" else "exact"]()

    def regret(self, chance, u):
        """Return the regrets of the rankings decoded from predictions u (n, d), by enumeration."""
        n = len(u)
        ranks = self.decoder.decode(u.ravel(), Queries.uniform(n, self.r)).ranks.reshape(n, -1)
        chosen = ranking_numbers(ranks)
        expected = chance @ self.value
        return expected.max(axis=1) - expected[np.arange(n), chosen]

    def ratio(self, chance, u):
        """Return regret / bound, and check that it is not above 1."""
        distance = ((u - chance @ self.targets) ** 2).sum(axis=1)
        regret, bound = self.regret(chance, u), regret_bound(self.loss, distance, self.r)
        assert (regret <= bound + 1e-9).all()
        return regret / np.maximum(bound, 1e-12)


@pytest.mark.parametrize("name", BOUNDED)
def test_the_bound_holds_for_predictions_found_by_hill_climbing(name):
    """Each of 60 climbers keeps the disturbance that raises its ratio, 40 times."""
    rng = np.random.default_rng(1)
    for r in (3, 5):
        problem = Problem(name, r)
        chance = mixtures(problem.pool, 15, rng)
        expected = chance @ problem.targets
        scale = np.std(expected)
        u = expected + scale * rng.normal(size=expected.shape)
        first = best = problem.ratio(chance, u)
        for step in range(40):
            shrunk = expected + rng.uniform(0.7, 1.1, (len(u), 1)) * (u - expected)
            tried = shrunk + scale * 0.5 * 0.93**step * rng.normal(size=u.shape)
            ratio = problem.ratio(chance, tried)
            u[ratio > best], best = tried[ratio > best], np.maximum(best, ratio)
        assert best.mean() > first.mean() + 0.05  # the climbers do climb


def gradient(problem):
    """Fit the values of all rankings, minus that of the first, as linear functions of targets."""
    above = problem.value - problem.value[:, :1]
    beta = np.linalg.lstsq(problem.targets, above, rcond=1e-10)[0]
    return beta, above - problem.targets @ beta


@pytest.mark.parametrize("name", LOSSES)
def test_the_constant_is_the_diameter_of_the_loss(name):
    """Theorem 3 needs loss = <alpha, beta> + c(y), as all losses calibrated everywhere have it."""
    for r in (2, 3, 4):
        problem = Problem(name, r)
        beta, rest = gradient(problem)
        constant = problem.loss.regret_constant(r)
        assert (constant is not None) == problem.loss.calibrated_everywhere
        if constant is None:
            assert r < 3 or np.abs(rest).max() > 0.01
            continue
        np.testing.assert_allclose(rest, 0, atol=1e-9)
        apart = np.linalg.norm(beta[:, :, None] - beta[:, None, :], axis=0).max()
        assert constant == pytest.approx(apart, abs=1e-9)


@pytest.mark.parametrize("name", BOUNDED)
def test_the_bound_is_attained_in_the_limit(name):
    """All documents nearly tie, and predictions are wrong by a millionth of the lead."""
    for r in (2, 3, 4, 5):
        problem = Problem(name, r)
        m = len(problem.pool)
        beta, _ = gradient(problem)
        wrong = beta[:, 0] - beta[:, -1]  # the last ranking reverses the first
        if not wrong.any():
            assert regret_bound(problem.loss, 1.0, r) == 0  # precision@2 of two documents
            continue
        # Take a distribution at which all rankings tie, and move it towards the first ranking.
        members = np.arange(r * (r - 1) if problem.loss.takes_preferences else m)
        symmetric = np.bincount(members, minlength=m) / len(members)
        rows = np.vstack([problem.targets[members].T, np.ones(len(members))])
        move = np.zeros(m)
        move[members] = np.linalg.lstsq(rows, np.append(wrong, 0), rcond=None)[0]
        np.testing.assert_allclose(move @ problem.targets, wrong, atol=1e-9)
        chance = (symmetric + 0.5 * symmetric.max() / np.abs(move).max() * move)[None]
        assert chance.min() >= 0
        u = symmetric @ problem.targets - 1e-6 * (chance - symmetric) @ problem.targets
        assert problem.ratio(chance, u)[0] > 1 - 1e-5


def test_diameters_of_average_precision_and_disagreement():
    for r, value in ((2, 0.7071), (3, 0.9718), (4, 1.1487), (5, 1.2804)):
        assert MAP().regret_constant(r) == pytest.approx(value, abs=5e-5)
    for r in range(1, 8):
        ranks = np.array([oracles.ranks_of(order) for order in oracles.all_orders(r)])
        i, j = np.triu_indices(r)
        product = 1 / np.maximum(ranks[:, i], ranks[:, j])
        turned = (ranks[:, i] > ranks[:, j])[:, i < j]
        for loss, beta in ((MAP(), product), (PD(), turned.astype(float))):
            # By symmetry one of the two rankings farthest apart can be the first.
            far = np.linalg.norm(beta - beta[0], axis=1).max()
            assert loss.regret_constant(r) == pytest.approx(far, abs=1e-12)


def test_the_bound_with_a_gap():
    """For rankings of Algorithm 1 on wrong weights, the regret is within the bound plus the gap."""
    rng = np.random.default_rng(0)
    beyond = 0
    for _ in range(300):
        mean = rng.integers(0, 4, (5, 5)).astype(float)
        u = mean + rng.choice([0.01, 1.0]) * rng.normal(size=(5, 5))
        result = decode_preferences(u, "greedy_dag")
        best = decode_preferences(u, "exact")
        distance = ((np.triu(u - u.T) - np.triu(mean - mean.T)) ** 2).sum()
        losses = [oracles.preference_loss(mean.tolist(), order) for order in oracles.all_orders(5)]
        lost = oracles.preference_loss(mean.tolist(), np.argsort(result.ranks).tolist())
        gap = max(result.objective - best.objective, 0.0)
        assert lost - min(losses) <= regret_bound("pd", distance, 5, gap) + 1e-9
        beyond += lost - min(losses) > regret_bound("pd", distance, 5) + 1e-9
    assert beyond > 3  # without the gap the bound does not hold


def test_shapes_and_bad_input():
    wanted = [NDCG().regret_constant(r) * np.sqrt(s) + 0.5 for r, s in ((2, 4.0), (5, 9.0))]
    np.testing.assert_allclose(regret_bound(NDCG(), [4.0, 9.0], [2, 5], 0.5), wanted)
    assert regret_bound("ndcg", [[1.0], [2.0]], [2, 3, 4]).shape == (2, 3)
    assert isinstance(regret_bound("pd", 0.5, 3), float)
    for arguments, message in (
        ((ERR(), 1.0, 3), "ERR has no regret bound, .* but over product"),
        (("map_by_scores", 1.0, 3), "P_reinforce"),
        (("pd_by_scores", 1.0, 3), "P_f"),
        (("ndcg", -1.0, 3), "surrogate_regret must be finite and >= 0; got -1.0"),
        (("ndcg", [1.0, np.nan], 3), "surrogate_regret must be finite"),
        (("pd", 1.0, 3, -0.1), "gap must be finite and >= 0"),
        (("pd", 1.0, 3, np.nan), "gap must be finite"),
        (("pd", 1.0, 0), "whole numbers >= 1; got 0"),
        (("pd", 1.0, 2.5), "n_documents must be whole numbers; it has 2.5"),
        (("pd", 1.0, []), "whole numbers >= 1"),
    ):
        with pytest.raises(ValueError, match=message):
            regret_bound(*arguments)
