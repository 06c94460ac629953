"""Noise conditions, compared with loops over documents and with exact fractions."""

import itertools

import numpy as np
import pytest

from sklearn_rankcal.consistency import (
    LabelDistribution,
    bayes_ranking,
    expected_targets,
    find_counterexample,
    is_low_noise,
    ranking_regret,
    satisfies_dag,
    satisfies_reinforce,
    satisfies_score_condition,
)
from sklearn_rankcal.consistency._distributions import targets_and_sizes  # sizes of targets
from sklearn_rankcal.losses import MAP, PD, PDByScores
from sklearn_rankcal.losses._pairs import SCORES

from .. import oracles
from ..label_distributions import every_order, single_edges

# ------------------------------------------------------------------ conditions, compared with loops


def reinforce_by_loops(u):
    r = len(u)
    return tuple(
        (i, j)
        for i in range(r)
        for j in range(r)
        if i != j
        and u[i][i] >= u[j][j]
        and not u[i][i]
        >= u[j][j] + sum(max(u[j][g] - u[i][g], 0) for g in range(r) if g not in (i, j))
    )


def low_noise_by_loops(u):
    w = [
        [a - b for a, b in zip(row, column, strict=True)]
        for row, column in zip(u, np.transpose(u), strict=True)
    ]
    return tuple(
        (i, j, k)
        for i, j, k in itertools.product(range(len(w)), repeat=3)
        if w[i][j] > 0 and w[j][k] > 0 and not w[i][k] >= w[i][j] + w[j][k]
    )


def score_condition_by_loops(u, scores):
    return tuple(
        (i, j)
        for i, j in itertools.product(range(len(u)), repeat=2)
        if u[i][j] > u[j][i] and not scores[i] > scores[j]
    )


def components_by_loops(u):
    edges = oracles.preference_edges(u)
    found = set()
    for i in range(len(u)):
        with_i = tuple(
            j
            for j in range(len(u))
            if oracles.reaches(i, j, edges) and oracles.reaches(j, i, edges)
        )
        if with_i:
            found.add(with_i)
    return tuple(sorted(found))


@pytest.mark.parametrize("r", [1, 2, 3, 4])
def test_conditions_equal_loops_over_documents(r):
    """Whole numbers make ties exact. Sparse graphs and large diagonals let the conditions hold."""
    rng = np.random.default_rng(r)
    held = np.zeros((4, 2), int)
    for _ in range(250):
        u = rng.integers(0, 4, (r, r)) * (rng.random((r, r)) < rng.random())
        half = np.triu(u) + rng.integers(0, 2) * np.diag(np.arange(r) * 3)
        symmetric, scores = half + np.triu(half, 1).T, rng.integers(0, 4, r)
        order = np.arange(r)[:, None] < np.arange(r)
        u = np.where(rng.random() < 0.5, u * order * np.subtract.outer(range(r), range(r)) ** 2, u)
        for k, (got, wanted) in enumerate(
            [
                (satisfies_reinforce(symmetric), reinforce_by_loops(symmetric.tolist())),
                (is_low_noise(u), low_noise_by_loops(u.tolist())),
                (satisfies_dag(u), components_by_loops(u.tolist())),
                (satisfies_score_condition(u, scores), score_condition_by_loops(u, scores)),
            ]
        ):
            assert got.violations == wanted
            assert bool(got) == (not wanted)
            held[k, int(bool(got))] += 1
        # Low noise implies P_f of the net Borda score, which implies P_DAG.
        borda = satisfies_score_condition(u, (u - u.T).sum(axis=1))
        assert not is_low_noise(u) or borda
        assert not borda or satisfies_dag(u)
    assert (held[:, 1] > 5).all() and (r < 3 or (held[:, 0] > 5).all())


def test_independent_documents_are_inside_p_reinforce():
    labels = np.array(list(itertools.product([0, 1], repeat=4)))
    for chance in np.random.default_rng(0).random((50, 4)):
        p = np.where(labels, chance, 1 - chance).prod(axis=1)
        assert satisfies_reinforce((labels, p))


def test_tolerance_is_relative_and_counts_as_equality():
    for scale in (1e-12, 1.0, 1e12):
        cycle = scale * np.array([[0, 1, 0], [0, 0, 1], [1e-3, 0, 0]])
        assert not satisfies_dag(cycle)
        assert satisfies_dag(cycle, tol=1e-2)
        tied = scale * np.array([[0.5, 0, 0.1], [0, 0.5 + 1e-4, 0], [0.1, 0, 0.1]])
        assert satisfies_reinforce(tied).violations == ((1, 0),)
        assert satisfies_reinforce(tied, tol=0.2)
        chain = scale * np.triu(np.ones((3, 3)), 1)
        assert is_low_noise(chain).violations == ((0, 1, 2),)
        nearly = scale * np.array([[0, 1, 1.99], [0, 0, 1], [0, 0, 0]])
        assert not is_low_noise(nearly) and is_low_noise(nearly, tol=1e-2)
        assert satisfies_score_condition(chain, scale * np.array([3, 2, 1]))
        close = satisfies_score_condition(chain, scale * np.array([3, 2, 1.9999]), tol=1e-3)
        assert close.violations == ((1, 2),)


# ------------------------------------------------------------------ exact ties


def tied_world(rng, r):
    """Draw whole weights and counts with many ties, which decimal probabilities would round."""
    m = int(rng.integers(2, 6))
    weights = rng.integers(0, 4, (m, r, r)) * (rng.random((m, r, r)) < rng.choice([0.15, 0.4]))
    if rng.random() < 0.5:  # transitive weights, for which the conditions hold
        weights = np.triu(weights) * np.abs(np.subtract.outer(range(r), range(r)))
    weights[:, range(r), range(r)] = 0
    if rng.random() < 0.5:  # each label has an opposite one, drawn with its own count
        weights = np.concatenate([weights, weights.transpose(0, 2, 1)])
    return weights, [int(c) for c in rng.integers(1, 8, len(weights))]


@pytest.mark.parametrize("r", [2, 3, 4])
def test_conditions_of_distributions_equal_those_of_exact_fractions(r):
    rng = np.random.default_rng(10 + r)
    held = np.zeros((2 + len(SCORES), 2), int)
    for trial in range(75):
        weights, counts = tied_world(rng, r)
        scale = 10.0 ** rng.integers(-6, 7)
        world = LabelDistribution(scale * weights, np.array(counts) / sum(counts))
        mean = oracles.exact_mean(weights, counts)
        cases = [
            (satisfies_dag(world), components_by_loops(mean)),
            (is_low_noise(world), low_noise_by_loops(mean)),
        ]
        if trial % 3 == 0:
            for f in SCORES:
                given = world if f != "log_odds" else (weights, world.probabilities)
                scores = oracles.exact_scores(f, weights, counts)
                wanted = score_condition_by_loops(mean, scores)
                cases.append((satisfies_score_condition(given, f), wanted))
        for k, (got, wanted) in enumerate(cases):
            assert got.violations == wanted, (weights, counts, got)
            held[k, int(bool(got))] += 1
        # Tied expected preferences have a difference of exactly 0.
        d = np.array(mean) - np.array(mean).T
        np.testing.assert_array_equal(expected_targets(world, "pd") != 0, d != 0)
        assert satisfies_dag(expected_targets(world, "pd")).violations == cases[0][1]
    assert (held[:, 1] > 2).all() and (r < 3 or (held[1:, 0] > 2).all())


@pytest.mark.parametrize("r", [2, 3, 4, 5])
def test_p_reinforce_of_distributions_equals_that_of_exact_fractions(r):
    rng = np.random.default_rng(20 + r)
    held = np.zeros(2, int)
    for _ in range(300):
        labels = rng.integers(0, 2, (int(rng.integers(1, 6)), r))
        labels[0, 0] = 1
        if rng.random() < 0.5:  # two documents have the same relevance
            labels[:, 1] = labels[:, 0]
        counts = [int(c) for c in rng.integers(1, 8, len(labels))]
        got = satisfies_reinforce((labels, np.array(counts) / sum(counts)))
        assert got.violations == reinforce_by_loops(oracles.exact_products(labels, counts))
        held[int(bool(got))] += 1
    assert held[1] > 20 and (r < 3 or held[0] > 10)


def test_rare_preferences_and_rare_relevance_are_not_ties():
    """The tolerance is relative to the terms of the pair itself, not to those of other pairs."""
    rare = single_edges({(0, 1): 1e-12, (1, 2): 0.4, (0, 2): 0.6 - 1e-12})
    assert satisfies_score_condition(rare, "borda")
    cyclic = single_edges({(0, 1): 1e-12, (1, 2): 0.4, (2, 0): 0.6 - 1e-12})
    assert satisfies_dag(cyclic).violations == ((0, 1, 2),)
    labels = [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    assert (0, 1) in satisfies_reinforce((labels, [1.5e-12, 2e-12, 1 - 3.5e-12])).violations


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 12))]
)
def test_copeland_ties_are_not_broken_by_rounding(seed):
    """One of the two documents is preferred, and the expected Copeland scores tie them."""
    labels = np.zeros((4, 2, 2))
    labels[[0, 1, 2], [0, 1, 1], [1, 0, 0]] = 1, 3, 1
    world = (labels, np.array([3, 2, 1, 5]) / 11)
    scores = expected_targets(world, PDByScores(score_function="copeland"))
    np.testing.assert_array_equal(scores, 0)
    assert satisfies_score_condition(world, "copeland").violations == ((1, 0),)
    assert ranking_regret([1, 2], world, "pd") == pytest.approx(4 / 11)
    loss = PDByScores(score_function="copeland")
    for r, pool, n_trials in ((2, labels, 600), (3, None, 600)):
        found = find_counterexample(
            loss, n_documents=r, labels=pool, n_trials=n_trials, random_state=seed,
            condition=lambda d: satisfies_score_condition(d, loss),
        )  # fmt: skip
        assert found is None  # Ramaswamy et al. (2013), theorem 6


def test_scores_whose_terms_cancel_inside_a_label_are_ties():
    """Document 0 wins .1 and .2 and loses .3, so its rounded score of 5.6e-17 counts as 0."""
    label = np.zeros((3, 3))
    label[0, 1], label[0, 2], label[2, 0] = 0.1, 0.2, 0.3
    assert label[0, 1] + label[0, 2] != label[2, 0]
    for f in ("borda", "least_squares"):
        sizes = targets_and_sizes(([label], [1.0]), PDByScores(score_function=f))[1]
        assert (sizes >= 0.1 / 3).all()
    assert expected_targets(([label], [1.0]), "pd_by_scores")[0] == 0
    label[0], label[1], label[2] = [0, 0.1, 0.2], [0.3, 0, 0], [0, 0.2, 0]  # so do all documents
    assert not expected_targets(([label], [1.0]), "pd_by_scores").any()
    assert satisfies_score_condition(([label], [1.0])).violations == ((0, 2), (1, 0), (2, 1))


def test_tied_worlds_have_low_noise():
    """Each preference is opposed by an equal one, so that there is no edge and no path."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        weights, counts = tied_world(rng, 4)
        weights = np.concatenate([weights, weights.transpose(0, 2, 1)])
        p = np.tile(counts, 2) / (2 * sum(counts))
        p[: len(counts)] = p[: len(counts)][::-1]
        p[len(counts) :] = p[: len(counts)]
        world = (weights, p)
        assert is_low_noise(world) and satisfies_dag(world)
        assert satisfies_score_condition(world, "borda")
        assert not expected_targets(world, "pd").any()
        assert bayes_ranking(world, "pd").tolist() == [1, 2, 3, 4]
        assert ranking_regret(every_order(4)[1], world, "pd").tolist() == [0.0] * 24


def test_rankings_whose_terms_cancel_are_equally_good():
    """Labels come in opposite pairs, so that all rankings tie at 0 except for rounding."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        y, p = rng.permuted(np.tile(np.arange(3.0), (3, 1)), axis=1), rng.dirichlet(np.ones(3))
        world = (np.concatenate([y, -y]), np.tile(p, 2) / 2)
        assert bayes_ranking(world, "spearman").tolist() == [1, 2, 3]
        assert ranking_regret(every_order(3)[1], world, "spearman").tolist() == [0.0] * 6


def test_conditions_of_relevance_and_of_losses_with_parameters():
    y = ([[2, 1, 0], [0, 2, 1], [0, 1, 0]], [0.5, 0.4, 0.1])
    assert satisfies_dag(y) and satisfies_dag(expected_targets(y, PD("graded")))
    loss = PDByScores("graded", score_function="copeland", equal_queries=True)
    u, scores = expected_targets(y, PD("graded", equal_queries=True)), expected_targets(y, loss)
    assert satisfies_score_condition(y, loss) == satisfies_score_condition(u, scores)
    assert satisfies_reinforce(expected_targets(y, MAP(threshold=2)))
    assert repr(satisfies_dag(y)) == "P_DAG holds"
    many = repr(is_low_noise(np.triu(np.ones((5, 5)), 1)))
    assert many.startswith("Low noise fails: paths heavier") and many.endswith("and 4 more")
