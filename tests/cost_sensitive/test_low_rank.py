"""LowRankLoss on random matrices: theorem 3 of Ramaswamy et al. (2013), by enumerating targets."""

import pickle
from copy import deepcopy
from itertools import permutations

import numpy as np
import pytest

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.cost_sensitive import LowRankLoss
from sklearn_rankcal.losses import Precision

from ..covering import REST

ROUNDING = 1e-10


def steps_apart(parent, a, b):
    """Count the edges between two leaves of a tree.

    `parent` holds the parent of each node, and the parent of the root is the root.
    """
    above = []
    for node in (a, b):
        path = [node]
        while parent[node] != node:
            node = parent[node]
            path.append(node)
        above.append(path)
    return len(set(above[0]) ^ set(above[1]))


def random_costs(kind, rng):
    """Draw a loss matrix with at most six labels and six targets."""
    n, k = rng.integers(2, 7, size=2)
    if kind == "real":
        return rng.normal(size=(n, k))
    if kind == "integer":
        return rng.integers(1, 4, size=(n, k)).astype(float)
    if kind == "low rank":
        d = rng.integers(1, 3)
        return rng.normal(size=(n, d)) @ rng.normal(size=(d, k)) + rng.normal(size=(n, 1))
    if kind == "cost-sensitive":
        return rng.exponential(size=(n, 1)) * (1 - np.eye(n)) * rng.integers(1, 9, size=(n, n))
    if kind == "ordinal":
        return np.abs(np.subtract.outer(np.arange(n), np.arange(n))) ** rng.choice([0.5, 1, 2])
    if kind == "hierarchical":
        parent = np.append([0, 0, 0], rng.integers(0, 3, size=n))
        return np.array([[steps_apart(parent, a, b) for a in range(3, 3 + n)]
                         for b in range(3, 3 + n)], dtype=float)  # fmt: skip
    return np.c_[1 - np.eye(n), np.full(n, rng.uniform(0.05, 0.9))]  # abstaining


KINDS = (
    "real", "integer", "low rank", "cost-sensitive", "ordinal", "hierarchical", "abstaining"
)  # fmt: skip


def zero_one(n):
    """The 0-1 loss, whose regression targets are indicators of the labels."""
    loss = LowRankLoss(np.eye(n), -np.eye(n))
    loss.intercept += 1.0
    return loss


def costs_of(loss):
    return loss.alpha @ loss.beta.T + loss.c[:, None] + loss.intercept


def distributions(n, rng, size=12):
    """Draw distributions, some with few labels, and add the distributions of a single label."""
    some = rng.dirichlet(np.full(n, rng.choice([0.2, 1.0, 5.0])), size=size)
    return np.concatenate([some, np.eye(n)])


def regrets(L, p, targets):
    risks = p @ L
    return risks[np.arange(len(p)), targets] - risks.min(axis=1)


def adversarial(loss, u, rng):
    """Return predictions at which a random target has just overtaken the best target of u.

    They are, but for a factor of 1.001, the nearest predictions to u at which the two tie.
    """
    best = loss.decode(u)
    other = rng.integers(len(loss.beta), size=len(u))
    apart = loss.beta[other] - loss.beta[best]
    gap = np.einsum("nd,nd->n", u, apart)
    square = np.maximum((apart**2).sum(axis=1), 1e-300)
    return u - 1.001 * (gap / square)[:, None] * apart


@pytest.mark.parametrize("n_draws", [100, pytest.param(400, marks=REST)])
@pytest.mark.parametrize("kind", KINDS)
def test_theorem_3(kind, n_draws):
    """Given E[alpha] the decoder minimises the risk; given any u its regret is within the bound."""
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(n_draws):
        L = random_costs(kind, rng)
        n = len(L)
        loss = LowRankLoss.from_matrix(L)
        np.testing.assert_allclose(costs_of(loss), L, atol=1e-12)
        assert loss.error < 1e-12
        p = distributions(n, rng)
        u = p @ loss.alpha
        np.testing.assert_allclose(u @ loss.beta.T + loss.intercept, p @ L, atol=1e-12)
        assert regrets(L, p, loss.decode(u)).max() < ROUNDING
        noise = rng.normal(size=u.shape) * rng.exponential(size=(len(u), 1))
        for v in (u + noise, adversarial(loss, u, rng), -u, rng.normal(size=u.shape)):
            bound = loss.regret_constant() * np.linalg.norm(v - u, axis=1)
            assert (regrets(L, p, loss.decode(v)) <= bound + ROUNDING).all()


def test_the_regret_bound_is_attained():
    """All targets of 0-1 loss are equally far apart; half way between two, either is decoded."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 6):
        loss, L = zero_one(n), 1 - np.eye(n)
        p = rng.dirichlet(np.ones(n), size=500)
        u = p @ loss.alpha
        v = adversarial(loss, u, rng)
        ratio = regrets(L, p, loss.decode(v)) / np.linalg.norm(v - u, axis=1).clip(1e-12)
        assert 0.998 < ratio.max() / loss.regret_constant() <= 1


@pytest.mark.parametrize("n_draws", [80, pytest.param(300, marks=REST)])
@pytest.mark.parametrize("kind", KINDS)
def test_an_approximation_loses_at_most_twice_its_error(kind, n_draws):
    rng = np.random.default_rng(10 + KINDS.index(kind))
    for _ in range(n_draws):
        L = random_costs(kind, rng)
        n, k = L.shape
        loss = LowRankLoss.from_matrix(L, rank=int(rng.integers(1, min(n, k) + 1)))
        approximation = costs_of(loss)
        assert loss.error == pytest.approx(np.abs(approximation - L).max(), abs=1e-12)
        p = distributions(n, rng)
        u = p @ loss.alpha
        assert regrets(L, p, loss.decode(u)).max() <= 2 * loss.error + ROUNDING
        for v in (adversarial(loss, u, rng), u + rng.normal(size=u.shape)):
            bound = loss.regret_constant() * np.linalg.norm(v - u, axis=1) + 2 * loss.error
            assert (regrets(L, p, loss.decode(v)) <= bound + ROUNDING).all()


def test_no_other_intercept_leaves_a_smaller_squared_error():
    rng = np.random.default_rng(0)
    for _ in range(100):
        L = rng.normal(size=(6, 6)) + rng.choice([0, 5]) * rng.normal(size=6)
        loss = LowRankLoss.from_matrix(L, rank=2)
        approximation = costs_of(loss)
        for b in (0, L.mean(axis=0) + 0.3 * rng.normal(size=6), rng.normal(size=6)):
            values = np.linalg.svd(L - b, compute_uv=False)
            assert ((approximation - L) ** 2).sum() <= (values[2:] ** 2).sum() + 1e-12


def test_twice_the_error_can_be_lost():
    L = np.array([[0.0, 2.0]])  # approximated by [1, 1 - 1e-9]
    loss = LowRankLoss([[1.0]], [[1.0], [1 - 1e-9]])
    error = 1.0
    assert regrets(L, np.ones((1, 1)), loss.decode([[1.0]])) == 2 * error


def test_the_rank_is_the_least_possible():
    """Constructed ranks are found, and no other intercept gives a lower rank."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, k = rng.integers(4, 12, size=2)
        d = rng.integers(1, min(n, k) - 1)
        L = rng.normal(size=(n, d)) @ rng.normal(size=(d, k))
        b = rng.normal(size=k)
        assert LowRankLoss.from_matrix(L).alpha.shape == (n, d)
        loss = LowRankLoss.from_matrix(L + b)
        assert loss.alpha.shape == (n, d) and loss.beta.shape == (k, d)
        np.testing.assert_allclose(loss.beta.T @ loss.beta, np.eye(d), atol=1e-12)
        for other in (0, L[0], rng.normal(size=k)):
            assert np.linalg.matrix_rank(L + b - other, tol=1e-9) >= d
    for kind in KINDS:
        for _ in range(50):
            L = random_costs(kind, rng)
            least = max(np.linalg.matrix_rank(L - L.mean(axis=0), tol=1e-9), 1)
            assert LowRankLoss.from_matrix(L).alpha.shape[1] == least
            assert np.linalg.matrix_rank(L - rng.normal(size=L.shape[1]), tol=1e-9) >= least


def test_a_known_intercept_saves_an_output():
    """Squared distances y^2 - 2 y t + t^2 need the outputs y and y^2, and not the third term."""
    L = np.square(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    loss = LowRankLoss.from_matrix(L)
    assert loss.alpha.shape == (9, 2) and np.any(loss.intercept)
    two = LowRankLoss.from_matrix(np.c_[1 - np.eye(2), [0.3, 0.3]])  # abstaining
    assert two.alpha.shape == (2, 1)
    p = np.random.default_rng(0).dirichlet(np.ones(2), size=100)
    assert set(two.decode(p @ two.alpha).tolist()) == {0, 1, 2}
    rng, saved = np.random.default_rng(1), 0
    for trial in range(700):
        L = random_costs(KINDS[trial % len(KINDS)], rng)
        saved += np.linalg.matrix_rank(L, tol=1e-9) - LowRankLoss.from_matrix(L).alpha.shape[1]
    assert saved > 150


def test_an_intercept_is_copied_and_counts_for_ties():
    loss = LowRankLoss([[1.0], [0.0]], [[1.0], [2.0]])
    loss.intercept = np.array([1.0, 0.5])
    assert deepcopy(loss).decode([[1.0], [0.0], [0.5]]).tolist() == [0, 1, 0]


def test_a_greater_rank_than_needed_changes_nothing():
    L = 1 - np.eye(4)
    whole, capped = LowRankLoss.from_matrix(L), LowRankLoss.from_matrix(L, rank=4)
    assert whole.alpha.shape == capped.alpha.shape == (4, 3)
    np.testing.assert_array_equal(whole.beta, capped.beta)


# ---------------------------------------------------------------- rankings as targets


@pytest.mark.parametrize("r", [2, 3, 4, 5])
def test_diameters_of_ranking_losses(r):
    ranks = np.array([np.argsort(order) + 1 for order in permutations(range(r))])
    i, j = np.tril_indices(r)
    largest = np.maximum(ranks[:, i], ranks[:, j])
    average_precision = LowRankLoss(np.eye(len(i)), -1 / largest)
    wanted = {2: 0.7071, 3: 0.9718, 4: 1.1487, 5: 1.2804}[r]
    assert average_precision.regret_constant() == pytest.approx(wanted, abs=5e-5)
    precision = LowRankLoss(np.eye(r), -1.0 * (ranks == 1))
    assert precision.regret_constant() == pytest.approx(Precision(1).regret_constant(r))
    i, j = np.triu_indices(r, 1)
    disagreement = LowRankLoss(np.eye(len(i)), 0.0 + (ranks[:, i] > ranks[:, j]))
    assert disagreement.regret_constant() == pytest.approx(np.sqrt(r * (r - 1) / 2))


# ---------------------------------------------------------------- the object


def test_many_targets_are_decoded_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    loss = LowRankLoss(rng.normal(size=(9, 3)), rng.normal(size=(50, 3)))
    u = rng.normal(size=(23, 3))
    targets, exact = loss.decode(u), loss.regret_constant()
    np.testing.assert_array_equal(targets, np.argmin(u @ loss.beta.T, axis=1))
    pairs = loss.beta[:, None] - loss.beta
    assert exact == pytest.approx(np.linalg.norm(pairs, axis=2).max())
    monkeypatch.setattr("sklearn_rankcal.utils._memory.BLOCK_BYTES", 8 * 170)
    np.testing.assert_array_equal(loss.decode(u), targets)
    assert loss.regret_constant() == exact


def test_ties_go_to_the_first_target():
    """Equal columns tie, although their factors are rounded differently."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        L = rng.uniform(size=(5, 4))
        loss = LowRankLoss.from_matrix(np.c_[L, L])
        p = rng.dirichlet(np.ones(5), size=20)
        assert loss.decode(p @ loss.alpha).max() < 4
    loss = zero_one(4)
    assert loss.decode([[0, 0.5, 0.5, 0], [0.25] * 4]).tolist() == [1, 0]
    assert LowRankLoss.from_matrix(1 - np.eye(4)).decode(np.zeros((2, 3))).tolist() == [0, 0]


def test_a_loss_is_a_value():
    """Searches copy the losses among their parameters."""
    loss = LowRankLoss.from_matrix([[0, 1, 5], [1, 0, 1], [9, 1, 0.0]], rank=1)
    for twin in (deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert twin.error == loss.error > 0
        np.testing.assert_array_equal(twin.decode([[1.0], [-1.0]]), loss.decode([[1.0], [-1.0]]))


def test_costs_that_do_not_depend_on_the_label_have_an_output_that_is_always_0():
    loss = LowRankLoss.from_matrix([[3.0, 1.0], [3.0, 1.0]])
    assert loss.alpha.tolist() == [[0], [0]] and loss.intercept.tolist() == [3, 1]
    assert loss.decode(np.zeros((3, 1))).tolist() == [1, 1, 1]


BAD_MATRICES = [
    ([[0, np.nan], [1, 0]], "loss_matrix contains NaN"),
    ([[0, 1, np.inf], [1, 0, np.inf]], "loss_matrix contains infinity"),
    ([0.0, 1.0], "Expected 2D array"),
    (np.zeros((0, 2)), "0 sample"),
    (np.zeros((2, 0)), "0 feature"),
]


@pytest.mark.parametrize("L, message", BAD_MATRICES)
def test_bad_matrices(L, message):
    with pytest.raises(ValueError, match=message):
        LowRankLoss.from_matrix(L)


@pytest.mark.parametrize("rank", [0, -1, 1.5, True, "2"])
def test_bad_ranks(rank):
    with pytest.raises(ValueError, match="rank must be a whole number >= 1, or None"):
        LowRankLoss.from_matrix(1 - np.eye(4)[:3], rank=rank)


def test_targets_may_be_free():
    """Any matrix has factors. A target that never costs anything is always decoded."""
    free = LowRankLoss.from_matrix([[0, 1, 0, 0], [1, 0, 0, 2]])
    p = np.random.default_rng(0).dirichlet(np.ones(2), size=50)
    assert set(free.decode(p @ free.alpha).tolist()) == {2}
    assert LowRankLoss.from_matrix(np.zeros((3, 2))).decode(np.zeros((1, 1))).tolist() == [0]
    assert LowRankLoss.from_matrix([[-1.0, 2.0, 0.0], [2.0, -1.0, 0.0]]).shape == (2, 3)
    assert LowRankLoss.from_matrix([[0.0, 1.0]]).decode(np.zeros((1, 1))).tolist() == [0]


@pytest.mark.parametrize(
    "parts, message",
    [
        (([[1.0]], [[1.0, 2.0]]), r"same number of columns; got \(1, 1\) and \(1, 2\)"),
        (([1.0], [[1.0]]), "Expected 2D array"),
        (([[1.0]], np.zeros((0, 1))), r"0 sample"),
        (([[np.nan]], [[1.0]]), "alpha contains NaN"),
        (([[1.0]], [[np.inf]]), "beta contains infinity"),
        (([[1.0]], [[1.0]], [1.0, 2.0]), "c must be a finite number, or 1 of them; got"),
    ],
)
def test_bad_parts(parts, message):
    with pytest.raises(ValueError, match=message):
        LowRankLoss(*parts)


def test_bad_predictions():
    loss = zero_one(3)
    with pytest.raises(ValueError, match="3 is different from 2"):
        loss.decode(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="u contains NaN"):
        loss.decode(np.full((1, 3), np.nan))


def test_a_ranker_refuses_it():
    with pytest.raises((TypeError, ValueError), match="loss"):
        CalibratedRanker(loss=zero_one(3)).fit(np.eye(4), [0, 1, 2, 1], groups=[0] * 4)


def test_small_costs_count_beside_large_ones():
    L = np.array([[0, 1, 1e10], [1, 0, 1], [1, 1, 0]])
    loss = LowRankLoss.from_matrix(L)
    for p in np.random.default_rng(0).dirichlet(np.ones(3), size=200) * [1, 1, 0]:
        p /= p.sum()
        assert loss.decode(p @ loss.alpha[None])[0] == np.argmin(p @ L)
    with pytest.raises(ValueError, match=r"must be between 1e-50 and 1e\+50"):
        LowRankLoss.from_matrix(1.7e308 * (1 - np.eye(3)))
    assert LowRankLoss(np.eye(2), [[1, 0], [0, 1], [1e13, 1e13]]).decode([[0.9, 0.1]])[0] == 1
