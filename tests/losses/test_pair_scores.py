"""`PDByScores` with every score function: its targets, and distributions on which it fails."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from sklearn_rankcal import CalibratedRanker, QueryKFold, preference_labels
from sklearn_rankcal.estimator_checks import check_loss
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._rankings import relevance_preferences  # preferences as losses see them
from sklearn_rankcal.losses import PD, PDByScores
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.targets import RelevanceDifferences

from .. import oracles
from ..covering import covering
from ..pair_scores import SCORES_OF_PAIRS

H = {"binary": np.ones_like, "graded": lambda d: d}
WAYS = covering(itertools.product(SCORES_OF_PAIRS, [1, 100, 2**21], [False, True]))


def weights_of(y, h):
    h = H.get(h, h)
    return np.where(y[:, None] > y, h(np.abs(y[:, None] - y)), 0.0)


def check_scores_of_pairs(loss, labels, queries, weights, oracle):
    """Compare the targets of `loss` with the oracle.

    `weights` holds the matrix of each query, with its documents in the order of the rows.
    """
    scores = loss.encode(labels, queries)
    for q, y in enumerate(weights):
        if loss.equal_queries and y.sum() > 0:
            y = y / y.sum()
        wanted = oracle(y.tolist()) if y.any() else np.zeros(len(y))
        np.testing.assert_allclose(scores[queries.codes == q], wanted, rtol=1e-9, atol=1e-12)


def shuffled_queries(rng):
    groups = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 8, 40)))
    return Queries.from_groups(groups)


@pytest.mark.parametrize(("f", "entries", "normalize"), WAYS)
def test_scores_of_relevance(f, entries, normalize, monkeypatch):
    monkeypatch.setattr("sklearn_rankcal.utils._memory.BLOCK_BYTES", 8 * entries)
    rng = np.random.default_rng(0)
    for h in (*H, lambda difference: np.floor(1.5 * difference)):
        queries = shuffled_queries(rng)
        y = rng.integers(0, 4, queries.n_rows) / 2
        weights = [weights_of(y[queries.codes == q], h) for q in range(40)]
        loss = PDByScores(h, score_function=f, equal_queries=normalize)
        check_scores_of_pairs(loss, y, queries, weights, SCORES_OF_PAIRS[f])


def test_sums_of_the_differences_below_and_above_a_row():
    rng = np.random.default_rng(0)
    queries = shuffled_queries(rng)
    y = rng.integers(0, 4, queries.n_rows) / 2
    targets = RelevanceDifferences(y, queries, "graded", np.ones(40))
    same = queries.codes[:, None] == queries.codes
    gap = np.where(same, y[:, None] - y, 0.0)
    for graded, size in ((False, np.abs(np.sign(gap))), (True, np.abs(gap))):
        below, above = targets.below_and_above(graded)
        np.testing.assert_allclose(below, np.where(gap > 0, size, 0.0).sum(axis=1), atol=1e-12)
        np.testing.assert_allclose(above, np.where(gap < 0, size, 0.0).sum(axis=1), atol=1e-12)


@pytest.mark.parametrize(("f", "entries", "normalize"), WAYS)
def test_scores_of_preferences(f, entries, normalize, monkeypatch):
    """Random graphs have isolated documents, several components, opposed pairs and weights of 0."""
    monkeypatch.setattr("sklearn_rankcal.utils._memory.BLOCK_BYTES", 8 * entries)
    rng = np.random.default_rng(1)
    for share in (0.05, 0.2, 0.6, 1.0):
        queries = shuffled_queries(rng)
        weights, pairs = [], []
        for rows in oracles.split(queries.codes):
            y = np.triu(rng.integers(0, 4, (len(rows),) * 2), 1) * (rng.random() < 0.9)
            y = (y + rng.permutation([0, 1])[0] * y.T)[rng.permutation(len(rows))]
            y = np.where(rng.random(y.shape) < share, y[:, rng.permutation(len(rows))], 0.0)
            np.fill_diagonal(y, 0.0)
            weights.append(y)
            listed = [
                (rows[i], rows[j], y[i, j])
                for i in range(len(rows))
                for j in range(len(rows))
                if i != j and (y[i, j] > 0 or rng.random() < 0.1)
            ]
            pairs += listed
        pairs = rng.permutation(pairs)
        labels = Preferences.from_pairs(*pairs[:, :2].T.astype(int), pairs[:, 2], queries)
        loss = PDByScores(score_function=f, equal_queries=normalize)
        check_scores_of_pairs(loss, labels, queries, weights, SCORES_OF_PAIRS[f])


def test_least_squares_of_a_long_chain_is_exact():
    steps = np.arange(1, 2001)
    weight = np.random.default_rng(0).integers(1, 5, 2000).astype(float)
    labels = Preferences.from_pairs(steps - 1, steps, weight, Queries.single(2001))
    x = PDByScores(score_function="least_squares").encode(labels, labels.queries)
    np.testing.assert_allclose(x[:-1] - x[1:], weight, rtol=1e-7)
    assert abs(x.sum()) < 1e-6


def test_queries_without_a_preference_have_scores_of_0():
    y, queries = np.array([1, 1, 0, 0.0]), Queries.from_groups(["a", "a", "b", "c"])
    nothing = Preferences.from_pairs(*np.empty((2, 0), dtype=int), np.empty(0), queries)
    for f in SCORES_OF_PAIRS:
        for labels in (y, nothing):
            np.testing.assert_array_equal(
                PDByScores(score_function=f).encode(labels, queries), np.zeros(4)
            )


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("f", SCORES_OF_PAIRS)
def test_every_score_function_passes_check_loss(f, normalize):
    for h in ("binary", "graded", np.sqrt):
        check_loss(
            PDByScores(h, score_function=f, equal_queries=normalize),
            n_documents=(1, 2, 4),
            n_distributions=20,
        )


def outcomes(chances):
    """Return labels of three documents with one preference each, and their probabilities."""
    pairs = np.array(list(chances))
    rows = pairs + 3 * np.arange(len(pairs))[:, None]
    queries = Queries.uniform(len(pairs), 3)
    labels = Preferences.from_pairs(*rows.T, np.ones(len(pairs)), queries)
    return labels, np.array(list(chances.values()))


@pytest.mark.parametrize("f", SCORES_OF_PAIRS)
def test_pd_by_scores_fails_outside_its_condition(f):
    """The expected preferences are acyclic, 1 > 2 > 3, and every score function puts 2 first.

    The expected differences are .10 (1 > 2), .14 (1 > 3) and .36 (2 > 3).
    """
    chances = {(0, 1): 0.20, (1, 0): 0.10, (1, 2): 0.36, (0, 2): 0.24, (2, 0): 0.10}
    labels, chance = outcomes(chances)
    expected = chance @ PDByScores(score_function=f).encode(labels, labels.queries).reshape(-1, 3)
    assert np.argsort(-expected).tolist() == [1, 0, 2]
    risk = {
        order: sum(p for (i, j), p in chances.items() if order.index(i) > order.index(j))
        for order in oracles.all_orders(3)
    }
    assert min(risk, key=risk.get) == (0, 1, 2)
    assert risk[1, 0, 2] - risk[0, 1, 2] == pytest.approx(0.10)
    # No score function can tell 1 from 2 here, although 1 is preferred to 2.
    labels, chance = outcomes(chances | {(1, 2): 0.35, (0, 2): 0.25})
    expected = chance @ PDByScores(score_function=f).encode(labels, labels.queries).reshape(-1, 3)
    assert expected[0] == pytest.approx(expected[1], abs=1e-12)


@pytest.mark.parametrize("r", [3, 4])
@pytest.mark.parametrize("f", SCORES_OF_PAIRS)
def test_theorem_6_of_ramaswamy_et_al(f, r):
    """Inside P_f every sort of the expected scores has the least loss; outside, some have more."""
    rng = np.random.default_rng(0)
    n, m = 600, 4
    y = rng.integers(0, 3, (n, m, r, r)) * (rng.random((n, m, r, r)) < 0.5)
    y[..., np.arange(r), np.arange(r)] = 0
    member, i, j = np.nonzero(y.reshape(-1, r, r))
    labels = Preferences.from_pairs(
        member * r + i, member * r + j, y[y > 0].astype(float), Queries.uniform(n * m, r)
    )
    chance = rng.dirichlet(np.full(m, 0.7), n)
    scores = PDByScores(score_function=f).encode(labels, labels.queries).reshape(n, m, r)
    scores = np.einsum("nm,nmr->nr", chance, scores)
    expected = np.einsum("nm,nmij->nij", chance, y)
    orders = oracles.all_orders(r)
    ranks = np.array([oracles.ranks_of(order) for order in orders])
    lost = np.einsum("nij,oij->no", expected, ranks[:, :, None] > ranks[:, None, :])
    inside = failed = 0
    for u, s, losses in zip(expected, scores, lost, strict=True):
        holds = all(
            s[i] > s[j] + 1e-9 for i in range(r) for j in range(r) if u[i, j] > u[j, i] + 1e-12
        )
        sorts = [k for k, o in enumerate(orders) if (np.diff(s[list(o)]) <= 1e-12).all()]
        regret = losses[sorts].max() - losses.min()
        inside += holds
        failed += regret > 0.01
        assert not holds or regret < 1e-9
    assert inside > 30 and failed > 30


def test_grid_search_over_score_functions():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(200, 3)), np.repeat(np.arange(40), 5)
    pairs = [(i, j) for i, j in rng.integers(0, 200, (3000, 2)) if i != j and i // 5 == j // 5]
    pairs = [(i, j) for i, j in pairs if X[i, 0] + rng.logistic() > X[j, 0]]
    search = GridSearchCV(
        CalibratedRanker(Ridge(), loss=PDByScores()),
        {"loss__score_function": [*SCORES_OF_PAIRS], "loss__equal_queries": [False, True]},
        cv=QueryKFold(4),
        error_score="raise",
    ).fit(X, preference_labels(pairs, groups))
    assert search.best_score_ > 0.6
    assert len(set(search.cv_results_["mean_test_score"].round(6))) > 2


def test_ties_cost_half_a_preference():
    """Relevance given as preferences has the same loss, the mean over the orders of ties."""
    rng = np.random.default_rng(0)
    queries = shuffled_queries(rng)
    y, scores = rng.integers(0, 3, (2, queries.n_rows)).astype(float)
    ranking = Ranking.from_scores(scores, queries)
    labels = relevance_preferences(y, queries)
    labels.weight = y[labels.winner] - y[labels.loser]
    np.testing.assert_allclose(
        PD().contradicted(ranking, labels), PD("graded").contradicted(ranking, y)
    )
    assert ranking.start is not None
