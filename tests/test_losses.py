"""Losses: the registry is the parametrisation. Formulas, calibration, bounds, bad input."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from sklearn_rankcal import CalibratedRanker, QueryKFold, measures, preference_labels
from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.estimator_checks import check_loss
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._rankings import relevance_preferences
from sklearn_rankcal.losses import (
    AUC,
    DCG,
    ERR,
    ERU,
    LOSSES,
    MAP,
    NDCG,
    PD,
    Loss,
    MAPByScores,
    PDByScores,
    Positional,
    Precision,
    Recall,
    Spearman,
    get_loss,
)
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.targets import RelevanceDifferences

from . import oracles
from .named import named

EXAMPLES = {
    "precision": Precision(2),
    "eru": ERU(0.5, 3),
    "dcg": DCG(2),
    "ndcg": NDCG(3),
    "recall": Recall(2),
    "auc": AUC(),
    "spearman": Spearman(),
    "err": ERR(3),
    "map": MAP(shrinkage=0),
    "map_by_scores": MAPByScores(),
    "pd": PD("graded"),
    "pd_by_scores": PDByScores("graded", equal_queries=True),
    "positional": Positional(lambda y, queries: np.sqrt(y), [1.0, 0.5, 0.5]),
}
ORACLES = {
    "precision": (lambda y, o: oracles.precision(y, o, 2)),
    "eru": (lambda y, o: oracles.eru(y, o, 0.5, 3)),
    "dcg": (lambda y, o: oracles.dcg(y, o, 2)),
    "ndcg": (lambda y, o: oracles.ndcg(y, o, 3)),
    "recall": (lambda y, o: oracles.recall(y, o, 2)),
    "auc": oracles.auc,
    "spearman": oracles.spearman,
    "err": (lambda y, o: oracles.err(y, o, 3, top=1 if max(y) <= 1 else 3)),
    "map": oracles.average_precision,
    "map_by_scores": oracles.average_precision,
    "pd": (lambda y, o: 1 - oracles.disagreement(y, o, pair_weight="graded")),
    "pd_by_scores": (lambda y, o: 1 - oracles.disagreement(y, o, pair_weight="graded")),
    "positional": (
        lambda y, o: sum(np.sqrt(y[d]) * w for d, w in zip(o, [1.0, 0.5, 0.5], strict=False))
    ),
}


def test_every_registered_loss_has_an_example_here():
    assert set(EXAMPLES) == set(LOSSES) == set(ORACLES)


@pytest.mark.parametrize("name", LOSSES)
def test_registered_default_passes_check_loss(name):
    check_loss(LOSSES[name](), n_distributions=60)


@pytest.mark.parametrize("name", LOSSES)
def test_example_passes_check_loss(name):
    check_loss(EXAMPLES[name], n_documents=(1, 2, 3, 5), n_distributions=60, random_state=1)


@pytest.mark.parametrize("threshold", [1, 2.5])
@pytest.mark.parametrize("kind", [Precision, Recall, AUC, MAPByScores])
def test_threshold_makes_graded_labels_binary(kind, threshold):
    check_loss(kind(threshold=threshold), levels=(0, 1, 2, 3), n_distributions=30)
    y, queries = np.array([0, 1, 2, 3.0]), Queries.single(4)
    np.testing.assert_array_equal(
        kind(threshold=threshold).encode(y, queries),
        kind().encode((y >= threshold).astype(float), queries),
    )


@pytest.mark.parametrize("name", LOSSES)
def test_measure_is_the_formula_written_out(name):
    random = np.random.RandomState(0)
    loss, oracle = EXAMPLES[name], ORACLES[name]
    for r in (1, 2, 3, 4):
        for _ in range(10):
            y = random.randint(0, 2, size=r).astype(float)
            y[0] = max(y[0], 1.0) if name == "err" else y[0]
            for order in oracles.all_orders(r):
                ranks = np.array(oracles.ranks_of(order))
                got = loss.metric(y, ranks, Queries.single(r))[0]
                np.testing.assert_allclose(got, oracle(y.tolist(), order), atol=1e-12)


def test_targets_of_math():
    y, queries = np.array([3, 0, 1, 1.0]), Queries.from_groups(["a", "a", "a", "b"])
    z = 7 + 1 / np.log2(3)
    np.testing.assert_allclose(NDCG().encode(y, queries), [7 / z, 0, 1 / z, 1])
    np.testing.assert_allclose(NDCG(1).encode(y, queries), [1, 0, 1 / 7, 1])
    np.testing.assert_allclose(DCG(gain="linear").encode(y, queries), y)
    np.testing.assert_allclose(ERU(1).encode(y, queries), [2, 0, 0, 0])
    np.testing.assert_allclose(ERR(max_relevance=4).encode(y, queries), [7 / 16, 0, 1 / 16, 1 / 16])
    b = (y > 0).astype(float)
    np.testing.assert_allclose(Recall().encode(b, queries), [1 / 2, 0, 1 / 2, 1])
    np.testing.assert_allclose(MAPByScores().encode(b, queries), [1 / 2, 0, 1 / 2, 1])
    np.testing.assert_allclose(AUC().encode(b, queries), [1 / 2, 0, 1 / 2, 0])
    sd = np.sqrt(2 / 3)
    np.testing.assert_allclose(Spearman().encode(y, queries), [1 / sd, -1 / sd, 0, 0])


@pytest.mark.parametrize("kind", [NDCG, Recall, AUC, MAPByScores])
def test_shrinkage_tends_to_the_calibrated_targets(kind):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=4000).astype(float)
    few, many = Queries.from_groups(np.arange(40) // 8), Queries.from_groups(np.arange(4000) // 8)
    loss = kind()
    np.testing.assert_array_equal(kind(shrinkage=0).training_targets(y, many), loss.encode(y, many))
    equal = kind(shrinkage=1).training_targets(y, many)
    assert len(np.unique(equal[equal > 0].round(12))) == 1

    def distance(labels, queries):
        exact = loss.encode(labels, queries)
        moved = loss.training_targets(labels, queries) - exact
        return np.linalg.norm(moved) / np.linalg.norm(exact)

    assert distance(y, many) < 0.7 * distance(y[:40], few)
    # the measure never changes, and shrinking never changes the order inside a query
    ranks = many.rank(many.sort(rng.normal(size=4000)))
    np.testing.assert_array_equal(
        kind(shrinkage=1).metric(y, ranks, many), loss.metric(y, ranks, many)
    )
    with pytest.raises(ValueError, match=r"'auto' or a number in \[0, 1\]; got 2"):
        kind(shrinkage=2).check(y)
    with pytest.raises(ValueError, match="shrinkage must be 'auto'"):
        kind(shrinkage="none").check(y)


def test_regret_constants():
    # sqrt(2) C_phi(2) is the largest distance between phi read in two orders
    for loss in (Precision(2), ERU(), DCG(), DCG(2), NDCG(3), Recall(2), AUC()):
        for r in (1, 2, 3, 5):
            phi = loss.measure.discounts(r)
            far = max(np.linalg.norm(phi - phi[list(o)]) for o in itertools.permutations(range(r)))
            assert loss.regret_constant(r) == pytest.approx(far)
    assert ERR().regret_constant(3) is None
    assert MAPByScores().regret_constant(3) is None


@pytest.mark.parametrize("loss", [NDCG(), ERU(), Spearman()])
def test_the_bound_is_attained_up_to_a_half(loss):
    """Two documents, scores that just tie: regret / bound is 1 / sqrt(2) times what u allows."""
    y, queries = np.array([1.0, 0.0]), Queries.single(2)
    expected = loss.encode(y, queries)
    tied = np.full(2, expected.mean())
    best, worst = (loss.metric(y, np.array(r), queries)[0] for r in ([1, 2], [2, 1]))
    bound = loss.regret_constant(2) * np.linalg.norm(tied - expected)
    assert best - worst == pytest.approx(bound)


# -------------------------------------------------------------------- where scores are not enough


def expected_measure(loss, labels, chance, order):
    ranks = np.array(oracles.ranks_of(order))
    queries = Queries.single(len(order))
    return sum(p * loss.metric(y, ranks, queries)[0] for p, y in zip(chance, labels, strict=True))


def test_map_by_scores_fails_outside_its_condition():
    labels, chance = np.array([[0, 0, 1, 0], [1, 1, 0, 1.0]]), [0.3, 0.7]
    loss, queries = MAPByScores(), Queries.single(4)
    u = sum(p * loss.encode(y, queries) for p, y in zip(chance, labels, strict=True))
    assert u.argmax() == 2
    orders = oracles.all_orders(4)
    values = {o: expected_measure(loss, labels, chance, o) for o in orders}
    by_score = max(v for o, v in values.items() if o[0] == 2)
    assert by_score == pytest.approx(0.7472, abs=5e-5)
    assert max(values.values()) == pytest.approx(0.775)
    assert max(values, key=values.get)[-1] == 2


def test_err_fails_on_dependent_documents():
    labels, chance = np.array([[1, 1, 0, 0], [0, 0, 1, 1.0]]), [0.5, 0.5]
    loss = ERR(max_relevance=1)
    u = sum(p * loss.encode(y, Queries.single(4)) for p, y in zip(chance, labels, strict=True))
    assert np.ptp(u) == 0  # every order sorts these scores, yet the orders are not equally good
    assert expected_measure(loss, labels, chance, (0, 2, 1, 3)) == pytest.approx(43 / 96)
    assert expected_measure(loss, labels, chance, (0, 1, 2, 3)) == pytest.approx(41 / 96)


def test_err_is_calibrated_on_product_distributions():
    random = np.random.RandomState(0)
    loss = ERR(max_relevance=2)
    for _ in range(20):
        chances = random.dirichlet(np.ones(3), size=3)  # P(grade) of each document
        labels = np.array(list(itertools.product(range(3), repeat=3)), dtype=float)
        chance = [np.prod([chances[d, int(g)] for d, g in enumerate(y)]) for y in labels]
        u = sum(p * loss.encode(y, Queries.single(3)) for p, y in zip(chance, labels, strict=True))
        values = {
            o: expected_measure(loss, labels, chance, o) for o in itertools.permutations(range(3))
        }
        assert values[tuple(np.argsort(-u))] == pytest.approx(max(values.values()), abs=1e-12)


class _Unnormalised(NDCG):
    """NDCG with DCG's targets: what regression on gains does."""

    def encode(self, relevance, queries):
        return self.encode_documents(relevance)


class _IncreasingMeasure(measures.DCG):
    def discounts(self, n_places):
        return np.arange(n_places, dtype=float)


class _Increasing(DCG):
    @property
    def measure(self):
        return _IncreasingMeasure()


class _Undefined(DCG):
    def encode(self, relevance, queries):
        return super().encode(relevance, queries) / queries.broadcast(queries.max(relevance))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (_Unnormalised(), "not calibrated"),
        (_Increasing(), "not calibrated"),
        (_Undefined(), "finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # the broken loss divides by 0
def test_check_loss_catches_a_wrong_loss(loss, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(loss, n_documents=(3,), n_distributions=500)


# -------------------------------------------------------------------- pairs by scores


@named
def saaty(weights):
    """(n, r, r) to (n, r), as a user would write it."""
    ratio = (weights + 0.5) / (weights.transpose(0, 2, 1) + 0.5)
    values, vectors = np.linalg.eig(ratio)
    first = np.argmax(values.real, axis=1)
    x = np.abs(np.take_along_axis(vectors, first[:, None, None], axis=2)[:, :, 0])
    return x / x.sum(axis=1, keepdims=True)


SCORES_OF_PAIRS = {
    "borda": oracles.net_borda,
    "copeland": oracles.copeland,
    "row_sums": oracles.row_sums,
    "log_odds": oracles.log_odds,
    "least_squares": oracles.least_squares,
    saaty: oracles.principal_eigenvector,
}
H = {"binary": np.ones_like, "graded": lambda d: d}


def weights_of(y, h):
    h = H.get(h, h)
    return np.where(y[:, None] > y, h(np.abs(y[:, None] - y)), 0.0)


def check_scores_of_pairs(loss, labels, queries, weights, oracle):
    """`weights` holds the matrix of each query, its documents in row order."""
    scores = loss.encode(labels, queries)
    for q, y in enumerate(weights):
        if loss.equal_queries and y.sum() > 0:
            y = y / y.sum()
        wanted = oracle(y.tolist()) if y.any() else np.zeros(len(y))
        np.testing.assert_allclose(scores[queries.codes == q], wanted, rtol=1e-9, atol=1e-12)


def shuffled_queries(rng):
    groups = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 8, 40)))
    return Queries.from_groups(groups)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("entries", [1, 100, 2**21])
@pytest.mark.parametrize("f", SCORES_OF_PAIRS)
def test_scores_of_relevance(f, entries, normalize, monkeypatch):
    monkeypatch.setattr("sklearn_rankcal.utils._memory.BLOCK_BYTES", 8 * entries)
    rng = np.random.default_rng(0)
    for h in (*H, lambda difference: np.floor(1.5 * difference)):
        queries = shuffled_queries(rng)
        y = rng.integers(0, 4, queries.n_rows) / 2
        weights = [weights_of(y[queries.codes == q], h) for q in range(40)]
        loss = PDByScores(h, score_function=f, equal_queries=normalize)
        check_scores_of_pairs(loss, y, queries, weights, SCORES_OF_PAIRS[f])


def test_what_stands_beside_a_row():
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


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("entries", [1, 100, 2**21])
@pytest.mark.parametrize("f", SCORES_OF_PAIRS)
def test_scores_of_preferences(f, entries, normalize, monkeypatch):
    """Isolated documents, parts that nothing connects, opposed pairs, even ones, weights of 0."""
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
def test_every_f_passes_check_loss(f, normalize):
    for h in ("binary", "graded", np.sqrt):
        check_loss(
            PDByScores(h, score_function=f, equal_queries=normalize),
            n_documents=(1, 2, 4),
            n_distributions=20,
        )


def outcomes(chances):
    """Single preferences as labels of three documents each, and their probabilities."""
    pairs = np.array(list(chances))
    rows = pairs + 3 * np.arange(len(pairs))[:, None]
    queries = Queries.uniform(len(pairs), 3)
    labels = Preferences.from_pairs(*rows.T, np.ones(len(pairs)), queries)
    return labels, np.array(list(chances.values()))


@pytest.mark.parametrize("f", SCORES_OF_PAIRS)
def test_pd_by_scores_fails_outside_its_condition(f):
    """Acyclic expected preferences 1 > 2 > 3, by .10, .14, .36; every named f puts 2 first."""
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
    # no f can tell 1 from 2 here, although 1 is preferred to 2
    labels, chance = outcomes(chances | {(1, 2): 0.35, (0, 2): 0.25})
    expected = chance @ PDByScores(score_function=f).encode(labels, labels.queries).reshape(-1, 3)
    assert expected[0] == pytest.approx(expected[1], abs=1e-12)


@pytest.mark.parametrize("r", [3, 4])
@pytest.mark.parametrize("f", SCORES_OF_PAIRS)
def test_theorem_6(f, r):
    """Inside P_f every sort of the expected scores loses least; outside, some lose more."""
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


def test_grid_search_over_f():
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
    """Preferences as relevance: the mean over the orders that the ties allow."""
    rng = np.random.default_rng(0)
    queries = shuffled_queries(rng)
    y, scores = rng.integers(0, 3, (2, queries.n_rows)).astype(float)
    ranking = Ranking.from_scores(scores, queries)
    labels = relevance_preferences(y, queries, "graded")
    np.testing.assert_allclose(
        PD().measure.contradicted(ranking, labels), PD("graded").measure.contradicted(ranking, y)
    )
    assert ranking.start is not None


# -------------------------------------------------------------------- names and input


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ndcg", NDCG()),
        ("ndcg@10", NDCG(10)),
        ("dcg@3", DCG(3)),
        ("precision@5", Precision(5)),
        ("wta", Precision(1)),
        ("recall@7", Recall(7)),
        ("err@20", ERR(20)),
        ("eru", ERU()),
        ("auc", AUC()),
        ("spearman", Spearman()),
        ("map_by_scores", MAPByScores()),
        ("positional", Positional()),
    ],
)
def test_names(name, wanted):
    loss = get_loss(name)
    assert type(loss) is type(wanted) and loss.get_params() == wanted.get_params()


ONE_PAIR = Preferences.from_pairs(np.array([0]), np.array([1]), np.ones(1), Queries.single(2))


@pytest.mark.parametrize("h", ["binary", "graded"])
@pytest.mark.parametrize("f", ["borda", "row_sums", "copeland"])
def test_targets_of_a_query_do_not_depend_on_the_size_of_its_neighbours(h, f):
    """Whatever the magnitude of labels or of their offset, in the query or beside it."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 50, size=(6, 5)).astype(float)
    loss = PDByScores(h, score_function=f)
    alone = loss.encode(y.ravel(), Queries.uniform(6, 5)).reshape(6, 5)
    scaled = y.copy()
    scaled[0] *= 2.0**60
    scaled[3] += 2.0**48
    got = loss.encode(scaled.ravel(), Queries.uniform(6, 5)).reshape(6, 5)
    np.testing.assert_array_equal(got[1:], alone[1:])


@pytest.mark.parametrize("h", ["binary", "graded"])
def test_weighted_row_sums_do_not_depend_on_the_weights_of_other_queries(h):
    rng = np.random.default_rng(0)
    y, weight = rng.normal(size=20), rng.random(20)
    queries = Queries.uniform(4, 5)
    alone = PD(h).differences(y, queries).row_sums(weight)
    weight[:5] *= 1e17
    got = PD(h).differences(y, queries).row_sums(weight)
    np.testing.assert_array_equal(got[5:], alone[5:])


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero):RuntimeWarning")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: get_loss("nope"), ValueError, "Unknown loss 'nope'. Known: auc, dcg"),
        (lambda: get_loss("ndgc"), ValueError, r"Did you mean 'ndcg'\? Known"),
        (lambda: get_loss("NDCG@10"), ValueError, r"Did you mean 'ndcg@10'\?"),
        (lambda: get_loss("ndcg_10"), ValueError, r"Did you mean 'ndcg@10'\?"),
        (lambda: get_loss("mrr"), ValueError, "no 'mrr' here; the nearest is 'err'"),
        (lambda: get_loss("MRR@10"), ValueError, "the nearest is 'err@10'"),
        (lambda: get_loss("kendall_tau"), ValueError, "the nearest is 'pd'"),
        (
            lambda: get_loss("ndcg@10", threshold=1),
            TypeError,
            "Loss 'ndcg@10' has no parameter 'threshold'. Its parameters: k, gain, shrinkage",
        ),
        (lambda: get_loss("spearman", k=1), TypeError, "no parameter 'k'. It has no parameters"),
        (lambda: get_loss("ndcg@10", k=5), TypeError, "gives the cutoff 10, but k=5 was passed"),
        (
            lambda: get_decoder("greedy", "pairs"),
            ValueError,
            r"Did you mean 'greedy_dag'\? Known: auto",
        ),
        (lambda: get_loss("ndcg@0"), ValueError, "cutoff in 'ndcg@0'"),
        (lambda: get_loss("ndcg@ten"), ValueError, "cutoff in 'ndcg@ten'"),
        (lambda: get_loss("auc@3"), ValueError, "has no cutoff"),
        (lambda: get_loss("precision"), ValueError, "needs a cutoff"),
        (lambda: get_loss(3), TypeError, "must be a name or a Loss object"),
        (lambda: get_loss(NDCG(), k=3), TypeError, "Set the parameters of this object"),
        (lambda: get_loss("ndcg", gian="exp2"), TypeError, "gian"),
        (lambda: Precision(0).check(np.ones(2)), ValueError, "k must be at least 1; got 0"),
        (lambda: Precision(None).check(np.ones(2)), ValueError, "k must be a whole number"),
        (lambda: Recall(None).check(np.ones(2)), ValueError, "k must be a whole number"),
        (lambda: Recall(True).check(np.ones(2)), ValueError, "k must be a whole number"),
        (lambda: ERU(half_life=1).check(np.ones(2)), ValueError, "half_life must be finite"),
        (lambda: ERU(np.nan).check(np.ones(2)), ValueError, "neutral must be a finite real number"),
        (lambda: AUC().check(np.array([0, 2.0])), ValueError, "threshold=t"),
        (lambda: NDCG().check(np.array([0, -2.0])), ValueError, "relevance must be >= 0"),
        (lambda: ERR().check(np.array([0, 1200.0])), ValueError, "overflows"),
        (lambda: ERR(max_relevance=-1).check(np.ones(2)), ValueError, r"in \[0, 1000\]"),
        (lambda: DCG(gain=lambda y: y[:1]).check(np.ones(2)), ValueError, "keep the shape"),
        (lambda: DCG(gain=lambda y: y * np.nan).check(np.ones(2)), ValueError, "returned NaN"),
        (
            lambda: Positional(discount=[0.1, 0.2]).check(np.ones(2)),
            ValueError,
            "must not increase",
        ),
        (
            lambda: Positional(discount=lambda j: 1.0).check(np.ones(2)),
            ValueError,
            "one value per place",
        ),
        (
            lambda: Positional(lambda y, q: y[:1]).encode(np.ones(2), Queries.single(2)),
            ValueError,
            "one finite number per document",
        ),
        (
            lambda: PDByScores(score_function="kemeny").check(np.ones(2)),
            ValueError,
            "Unknown score_function 'kemeny'",
        ),
        (lambda: PDByScores(smoothing=0).check(np.ones(2)), ValueError, "number above 0; got 0"),
        (lambda: PDByScores(smoothing="1").check(ONE_PAIR), ValueError, "number above 0; got '1'"),
        (
            lambda: PDByScores(score_function=lambda y: y).encode(ONE_PAIR, ONE_PAIR.queries),
            ValueError,
            r"array of shape \(1, 2, 2\) for weights of shape \(1, 2, 2\); .* of shape \(1, 2\)",
        ),
        (
            lambda: PDByScores(score_function=lambda y: y[:, 0] / y[:, 1]).encode(
                ONE_PAIR, ONE_PAIR.queries
            ),
            ValueError,
            r"it returned \[nan, inf\] for the weights \[\[0.0, 1.0\], \[0.0, 0.0\]\]",
        ),
        (lambda: Spearman().encode_documents(np.ones(2)), ValueError, "no per-document targets"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


class _OnPairs(Loss):
    space = "pairs"


def test_positional_reproduces_dcg():
    y = np.array([0, 1, 3, 2.0])
    queries, ranks = Queries.single(4), np.array([2, 1, 4, 3])
    mine = Positional(lambda y, q: 2**y - 1, lambda j: 1 / np.log2(1 + j))
    assert mine.metric(y, ranks, queries) == DCG().metric(y, ranks, queries)
    default = Positional().metric(y, ranks, queries)
    assert default == DCG(gain="linear").metric(y, ranks, queries)


def test_measure_of_large_query_with_a_cutoff_takes_the_short_way():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 4, 500).astype(float), rng.normal(size=500)
    queries = Queries.from_groups(rng.integers(0, 3, 500))
    ranking = Ranking.from_scores(scores, queries)
    for rows, value in zip(
        oracles.split(queries.codes), NDCG(5).measure.per_query(ranking, y), strict=True
    ):
        rows = np.array(rows)
        order = rows[np.argsort(-scores[rows])]
        best = rows[np.argsort(-y[rows])]
        wanted = oracles.dcg(y, order.tolist(), 5) / oracles.dcg(y, best.tolist(), 5)
        # the oracle's cutoff slices the order; k=None there would be len(y)
        assert value == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("loss", "half"),
    [(NDCG(), 300), (Recall(2), 1000), (AUC(), 1000), (MAPByScores(), 1000), (MAP(), 1000)],
    ids=str,
)
def test_normalisers_are_drawn_to_their_mean_by_fewer_queries_more(loss, half):
    rng = np.random.default_rng(0)
    queries = Queries.uniform(100, 5)
    y = rng.integers(0, 2, size=500).astype(float)
    y[::5], y[1::5] = 0.0, 1.0

    def flat(targets):
        return targets if loss.space == "scores" else targets.flat()

    fixed = clone(loss).set_params(shrinkage=half / (half + 100))
    np.testing.assert_allclose(
        flat(loss.training_targets(y, queries)), flat(fixed.training_targets(y, queries))
    )
    np.testing.assert_array_equal(flat(loss.encode(y, queries)), flat(fixed.encode(y, queries)))
