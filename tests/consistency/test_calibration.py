"""Calibration of every loss with every decoder of its space, as the registries list them.

Inside the condition of its theorem, a loss with a decoder finds the best of all r! rankings on
thousands of distributions with r = 3, 4 and 5. Outside, the tests show a distribution on which it
does not.
"""

import itertools
from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.consistency import (
    LabelDistribution,
    bayes_ranking,
    expected_targets,
    find_counterexample,
    ranking_regret,
    satisfies_dag,
    satisfies_reinforce,
    satisfies_score_condition,
)
from sklearn_rankcal.consistency._distributions import (  # enumerations, shared for their speed
    all_ranks,
    all_targets,
    as_queries,
    calibrated_values,
    ranking_numbers,
)
from sklearn_rankcal.decoders import (
    DECODERS,
    AveragePrecisionDecoder,
    PreferenceDecoder,
    decode_preferences,
)
from sklearn_rankcal.losses import AUC, ERR, LOSSES, MAP, NDCG, PD, MAPByScores, PDByScores, Recall
from sklearn_rankcal.losses._base import BinaryMeasure, without_shrinkage
from sklearn_rankcal.models import PairModel
from sklearn_rankcal.models._context import add_context
from sklearn_rankcal.queries import Queries, mean_over_queries
from sklearn_rankcal.targets import flat_targets

from .. import oracles
from ..covering import REST
from ..pair_scores import SCORES_OF_PAIRS


def independent(distribution):
    """Whether the probability of each label is the product of the probabilities of its grades."""
    y, p = distribution.labels, distribution.probabilities
    product = np.ones(len(y))
    for column in y.T:
        product *= (column[:, None] == column) @ p
    return np.allclose(product, p, rtol=1e-9, atol=1e-12) and abs(product.sum() - 1) < 1e-9


def mean_graph(distribution):
    """Return E[Y]. Like `reinforced` it is much faster than `expected_targets`."""
    return np.tensordot(distribution.probabilities, distribution.labels, 1)


def reinforced(distribution):
    y, p = distribution.labels, distribution.probabilities
    return satisfies_reinforce((y * (p / y.sum(axis=1))[:, None]).T @ y)


def acyclic(distribution):
    return satisfies_dag(mean_graph(distribution))


def totally_ordered(distribution):
    """Whether P_DAG holds and no pair is tied in expectation, which makes a total order."""
    u = mean_graph(distribution)
    every = np.abs(u - u.T)[np.triu_indices(len(u), 1)] > 1e-9 * u.max()
    return every.all() and satisfies_dag(u)


def ordered_by_scores(distribution, loss=None):
    """The score condition, from the expected graph and the expected scores, which is faster."""
    loss = PDByScores() if loss is None else loss
    scores = distribution.probabilities @ all_targets(loss, distribution.labels)
    return satisfies_score_condition(mean_graph(distribution), scores)


@pytest.mark.parametrize("f", SCORES_OF_PAIRS)
def test_the_score_condition_of_expectations_is_that_of_the_distribution(f):
    rng = np.random.default_rng(0)
    loss = PDByScores(score_function=f)
    holds = []
    for r in (3, 4):
        pool = defined(loss, pool_of(loss, r, rng))
        for p in mixtures(pool, 15, rng):
            distribution = LabelDistribution(pool[p > 0], p[p > 0])
            holds.append(bool(ordered_by_scores(distribution, loss)))
            condition = satisfies_score_condition(distribution, loss)
            assert bool(condition) == holds[-1]
    assert 20 < sum(holds) < 110


def proved(distribution):
    """A placeholder for the condition that the decoder itself reports an optimal ranking."""
    raise AssertionError


#: The condition inside which a loss is calibrated with a decoder. Where a loss and a decoder are
#: calibrated over all distributions, there is no entry.
CONDITIONS = {
    ("err", "sort"): independent,  # Duchi et al. (2013), lemma 1
    ("map_by_scores", "sort"): reinforced,  # Ramaswamy et al. (2013), corollary 5
    ("map", "diagonal"): reinforced,  # Ramaswamy et al. (2013), theorem 4
    ("map", "local_search"): proved,
    ("pd_by_scores", "sort"): ordered_by_scores,  # Ramaswamy et al. (2013), theorem 6
    ("pd", "greedy_dag"): acyclic,  # Ramaswamy et al. (2013), theorem 7
    ("pd", "borda"): ordered_by_scores,  # it sorts by the expected net Borda scores
    ("pd", "copeland"): totally_ordered,
    ("pd", "sort"): totally_ordered,
    ("pd", "local_search"): proved,
}
#: The number of distributions that a search draws, whether or not there is something to find.
BUDGET = 2000
#: Exact decoders. A loss that claims all distributions must be calibrated over them with these.
EXACT = ("sort", "exact", "auto")


def condition_of(name, loss, decoder):
    if name == "pd_by_scores":
        return partial(ordered_by_scores, loss=loss)
    if (name, decoder) in CONDITIONS:
        return CONDITIONS[name, decoder]
    needs_none = loss.calibrated_everywhere and decoder in EXACT
    assert needs_none, f"CONDITIONS has no entry for {name!r} with {decoder!r}."
    return None


def variants():
    """Yield every loss with every decoder of its space, with a small cutoff if it has a cutoff."""
    for name, kind in LOSSES.items():
        losses = [kind(k=2)] if "k" in kind().get_params() else []
        # The default cutoff of precision and recall is larger than these queries.
        if name not in ("precision", "recall"):
            losses += [kind()]
        if name == "pd_by_scores":
            losses = [kind(score_function=f) for f in SCORES_OF_PAIRS]
        for loss in losses:
            for space, decoder in DECODERS:
                if space == loss.space:
                    yield pytest.param(name, loss, decoder, id=f"{loss!r}-{decoder}")


# ------------------------------------------------------------------ distributions over a pool


def pool_of(loss, r, rng):
    """Return all labels of few grades or, for preferences, single ones, total orders and graphs."""
    if not loss.takes_preferences:
        levels = range(2) if isinstance(loss, BinaryMeasure) else range(3)
        return np.array(list(itertools.product(levels, repeat=r)), float)
    single = np.eye(r * r).reshape(-1, r, r)[~np.eye(r, dtype=bool).ravel()]
    ranks = all_ranks(r)[rng.permutation(len(all_ranks(r)))[:20]]
    graphs = rng.integers(0, 4, (40, r, r)) * (rng.random((40, r, r)) < 0.3)
    graphs[:20] = np.triu(graphs[:20])
    graphs *= ~np.eye(r, dtype=bool)
    return np.concatenate([single, ranks[:, :, None] < ranks[:, None, :], graphs]).astype(float)


def mixtures(pool, n, rng):
    """Return probabilities (4 n, m) of the m labels of the pool, a quarter of each kind.

    The kinds are few labels, few labels with equal probabilities, one label that dominates, and
    either independent grades or preferences that agree with one order.
    """
    m = len(pool)
    few = rng.gamma(0.7, size=(n, m)) * (rng.random((n, m)) < 4 / m)
    few[np.arange(n), rng.integers(m, size=n)] += 0.1
    even = (few > 0).astype(float)
    dominant = few / few.sum(axis=1, keepdims=True)
    dominant[np.arange(n), rng.integers(m, size=n)] += 4
    if pool.ndim == 2:
        levels = pool.astype(int)
        grades = rng.dirichlet(np.ones(levels.max() + 1), (n, pool.shape[1]))
        special = np.prod([grades[:, i, levels[:, i]] for i in range(pool.shape[1])], axis=0)
    else:
        in_order = ~np.tril(pool).any(axis=(1, 2))
        special = few * in_order
        special[np.arange(n), rng.choice(np.flatnonzero(in_order), n)] += 0.1
    chance = np.concatenate([few, even, dominant, special])
    return chance / chance.sum(axis=1, keepdims=True)


def decoded(loss, decoder, pool, chance, rng):
    """Decode expected targets with a tiny noise, and enumerate the values of all rankings.

    Returns the result, its regrets, and the ranges of the values.
    """
    n, r = len(chance), pool.shape[1]
    loss = loss.resolve(as_queries(pool)[0])
    value = calibrated_values(loss, pool, all_ranks(r))
    u = chance @ all_targets(loss, pool)
    # The noise breaks ties at random, as estimates do.
    u = u + 1e-12 * np.abs(u).max() * rng.normal(size=u.shape)
    result = DECODERS[loss.space, decoder]().decode(u.ravel(), Queries.uniform(n, r))
    chosen = ranking_numbers(result.ranks.reshape(n, r))
    expected = chance @ value
    regret = expected.max(axis=1) - expected[np.arange(n), chosen]
    return result, regret, np.ptp(expected, axis=1)


def defined(loss, pool):
    return pool[loss.defined(*as_queries(pool))]


@pytest.mark.parametrize(
    ("share", "least"), [(4, 20), pytest.param(1, 100, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("name", "loss", "decoder"), variants())
def test_a_loss_is_calibrated_inside_the_condition_of_its_decoder(
    name, loss, decoder, share, least
):
    rng = np.random.default_rng(0)
    condition = condition_of(name, loss, decoder)
    for r in (3, 4, 5):
        pool = defined(loss, pool_of(loss, r, rng))
        n = 100 if decoder == "local_search" else 500 if condition is None else 120
        chance = mixtures(pool, n // share, rng)
        result, regret, spread = decoded(loss, decoder, pool, chance, rng)
        inside = np.ones(len(chance), bool)
        if condition is proved:
            inside = result.optimal
        elif condition is not None:
            inside = [bool(condition(LabelDistribution(pool[p > 0], p[p > 0]))) for p in chance]
        assert np.sum(inside) >= least
        assert (spread[inside] > 0.01).sum() >= least / 2  # many rankings are worse than the best
        np.testing.assert_array_less(regret[inside], 1e-9)


#: For some pairs the loss, the decoder and the number of documents with which they fail outside.
FAILURES = {
    ("pd", "greedy_dag"): (PD(), "greedy_dag", 4),  # deleting from a cycle of three is exact
    ("pd", "local_search"): (PD(), PreferenceDecoder("local_search", n_perturbations=0), 5),
    ("map", "local_search"): (MAP(), AveragePrecisionDecoder("local_search", n_perturbations=0), 6),
}


@pytest.mark.parametrize(("name", "decoder"), CONDITIONS)
def test_a_decoder_fails_outside_its_condition(name, decoder):
    loss, method, r = FAILURES.get((name, decoder), (LOSSES[name](), decoder, 3))
    found = find_counterexample(loss, method, r, n_trials=BUDGET, random_state=0)
    assert found.regret > 0.01
    regret = ranking_regret([found.ranks, found.best], found.distribution, found.loss)
    np.testing.assert_allclose(regret, [found.regret, 0], atol=1e-12)
    made = DECODERS[loss.space, method]() if isinstance(method, str) else method
    again = made.decode(found.u, Queries.single(r))
    np.testing.assert_array_equal(again.ranks, found.ranks)
    if decoder == "local_search":
        assert not again.optimal and again.gap >= found.regret - 1e-9
    else:
        assert not CONDITIONS[name, decoder](found.distribution)


@pytest.mark.parametrize("space", ["pairs", "symmetric_pairs"])
def test_the_gap_of_every_decoder_bounds_its_regret(space):
    rng = np.random.default_rng(1)
    loss = {"pairs": PD(), "symmetric_pairs": MAP()}[space]
    pool = defined(loss, pool_of(loss, 4, rng))
    chance = mixtures(pool, 20, rng)
    for kind, decoder in DECODERS:
        if kind == space:
            result, regret, _ = decoded(loss, decoder, pool, chance, rng)
            assert (regret <= result.gap + 1e-9).all()
            assert (regret[result.optimal] < 1e-9).all()


# ------------------------------------------------------------------ the search


@pytest.mark.parametrize("budget", [BUDGET // 4, pytest.param(BUDGET, marks=REST)])
@pytest.mark.parametrize(
    ("name", "loss", "decoder"),
    [case for case in variants() if condition_of(*case.values) is not proved],
)
def test_the_search_finds_nothing_where_there_is_nothing(name, loss, decoder, budget):
    condition = condition_of(name, loss, decoder)
    found = find_counterexample(
        loss, decoder, 4, condition=condition, n_trials=budget, random_state=0
    )
    assert found is None


def test_the_search_finds_that_any_score_fails_for_err_and_average_precision():
    """Calauzènes et al. (2013), theorem 3.3. By lemma B.2 scores are y g(n) + h(n), n = sum(y)."""
    rng = np.random.default_rng(0)
    labels = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    for loss in (ERR(), MAPByScores(), MAP()):
        for _ in range(10):
            g, h = rng.gamma(1.0, size=5), rng.normal(size=5)

            def score(y, g=g, h=h):
                n = y.sum(axis=1, keepdims=True).astype(int)
                return y * g[n] + h[n]

            found = find_counterexample(
                loss, score, 4, labels=labels, n_trials=5000, random_state=0
            )
            assert found.regret > 0.01
            # The distribution of the paper is enough. The scores tie, and their sorts differ.
            tied = labels[[3, 12]]
            found = find_counterexample(loss, score, 4, labels=tied, n_trials=500, random_state=0)
            assert found.regret == pytest.approx(1 / 48 if isinstance(loss, ERR) else 1 / 24)
            np.testing.assert_allclose(found.u, found.u[0], atol=1e-9)


def test_the_search_breaks_ties_at_random():
    """Without noise, documents with tied scores keep their order, which happens to be best here."""
    tied = np.array([[1, 1, 0, 0], [0, 0, 1, 1.0]])
    assert ranking_regret([1, 2, 3, 4], (tied, [0.5, 0.5]), "map") == pytest.approx(0)
    found = find_counterexample("map", lambda y: y, 4, labels=tied, n_trials=500, random_state=0)
    np.testing.assert_allclose(found.distribution.probabilities, 0.5)


def test_the_search_repeats_itself_and_takes_objects():
    one, two = (find_counterexample(ERR(2), n_documents=3, random_state=7) for _ in range(2))
    assert one.regret == two.regret and repr(one) == repr(two)
    assert repr(one).startswith("Counterexample for ERR(k=2, max_relevance=3.0): positions [")
    oracle = [
        sum(
            p * oracles.err(y, np.argsort(ranks), 2, top=3)
            for y, p in zip(one.distribution.labels, one.distribution.probabilities, strict=True)
        )
        for ranks in (one.best, one.ranks)
    ]
    assert oracle[0] - oracle[1] == pytest.approx(one.regret)
    assert find_counterexample(NDCG(), "sort", 2, n_trials=300, random_state=0) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: find_counterexample("dcg", n_documents=7), "from 2 to 6; got 7"),
        (lambda: find_counterexample("dcg", n_documents=1), "got 1"),
        (lambda: find_counterexample("dcg", n_documents=3.0), "got 3.0"),
        (lambda: find_counterexample("dcg", "greedy_dag"), "Unknown decoder 'greedy_dag'"),
        (lambda: find_counterexample("pd", DECODERS["scores", "sort"]()), "decodes scores"),
        (lambda: find_counterexample("dcg", labels=[[1, 0]]), "labels have 2 documents"),
        (lambda: find_counterexample("map", labels=[[0, 0, 0]]), "undefined for every label"),
        (lambda: find_counterexample("dcg", lambda y: y[:, :1]), r"\(64, 3\) finite scores"),
        (lambda: find_counterexample("dcg", lambda y: y * np.nan), "finite scores"),
        (lambda: find_counterexample("dcg", n_trials=0), "whole number >= 1; got 0"),
        (lambda: find_counterexample("dcg", 3), "must be a name or have a decode method; got 3"),
    ],
)
def test_bad_input_of_the_search(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


# ------------------------------------------------------------------ what gives up calibration

#: Distributions in which the normalizer of a query is uncertain: the labels, their counts, and a
#: lower bound on the regret.
UNCERTAIN = {
    NDCG: ([[1, 0, 0, 0, 0], [0, 1, 1, 1, 1]], [4, 5], 0.13),
    Recall: ([[0, 0, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0]], [3, 5, 4], 0.08),
    AUC: ([[0, 1, 1, 1], [0, 0, 0, 1], [1, 1, 0, 0]], [2, 2, 5], 0.009),
    MAPByScores: ([[1, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 1, 0, 0, 0]], [4, 3, 5], 0.06),
    MAP: ([[0, 1, 0, 0, 0], [1, 0, 1, 1, 1]], [5, 4], 0.3),
}


def loss_of(kind, **parameters):
    return kind(k=1, **parameters) if kind is Recall else kind(**parameters)


def limit_regret(loss, labels, counts):
    """Return the regret of the mean training targets if labels occur in proportion to `counts`."""
    copies = 400
    y, queries = as_queries(np.repeat(np.array(labels, float), np.array(counts) * copies, axis=0))
    targets = flat_targets(loss.training_targets(y, queries))
    mean = targets.reshape(queries.n_queries, -1).mean(axis=0)
    decoder = DECODERS[loss.space, "sort" if loss.space == "scores" else "exact"]()
    ranks = decoder.decode(mean, Queries.single(len(labels[0]))).ranks
    return ranking_regret(ranks, (labels, np.array(counts) / sum(counts)), loss)


@pytest.mark.parametrize("kind", UNCERTAIN)
def test_a_fixed_shrinkage_gives_up_calibration_and_reports_it(kind):
    labels, counts, least = UNCERTAIN[kind]
    for shrinkage in (0, 0.0, "auto"):
        loss = loss_of(kind, shrinkage=shrinkage)
        assert "certain" not in loss.calibrated_over
        assert limit_regret(loss, labels, counts) == 0
    loss = loss_of(kind, shrinkage=1)
    assert limit_regret(loss, labels, counts) > least
    assert not loss.calibrated_everywhere
    for a in (1, 1.0, 0.25, np.float32(0.5)):
        said = loss_of(kind, shrinkage=a).calibrated_over
        assert said.startswith(
            "only the distributions under which the normalizer and the largest gain of a query are "
            "certain, because"
        )
        assert said.endswith(loss_of(kind).calibrated_over)
    # Distributions are judged by the targets without shrinkage, which lose nothing.
    assert without_shrinkage(loss).calibrated_everywhere == (kind is not MAPByScores)


@pytest.mark.parametrize("kind", UNCERTAIN)
def test_a_fixed_shrinkage_stays_calibrated_where_the_normalizer_is_certain(kind):
    rng = np.random.default_rng(0)
    for _ in range(20):
        y = rng.permuted(np.tile([1, 1, 0, 0, 0], (3, 1)), axis=1)
        counts = rng.integers(1, 9, 3)
        regrets = [
            limit_regret(loss_of(kind, shrinkage=a), y.tolist(), counts.tolist()) for a in (0, 1)
        ]
        assert regrets[0] == pytest.approx(regrets[1])


def test_beyond_eight_documents_the_best_ranking_does_not_depend_on_shrinkage():
    rng = np.random.default_rng(0)
    world = (rng.integers(0, 3, (4, 10)), np.full(4, 0.25))
    best = [bayes_ranking(world, NDCG(shrinkage=a)).tolist() for a in ("auto", 0, 0.7)]
    assert best[0] == best[1] == best[2]


#: Classifiers with enough parameters to fit each document of a world.
FLEXIBLE = {
    "tree": DecisionTreeClassifier(),
    "logistic": LogisticRegression(C=1e4, max_iter=10_000, tol=1e-8),
    "exponential": GradientBoostingClassifier(
        loss="exponential", n_estimators=400, max_depth=4, learning_rate=0.2
    ),
    "squared hinge": LinearSVC(C=1e4, dual=False, tol=1e-8),
    "squared error": RidgeClassifier(1e-6),
}


@pytest.mark.parametrize("name", FLEXIBLE)
@pytest.mark.parametrize("kind", [kind for kind in UNCERTAIN if kind is not MAP])
def test_a_classifier_stays_calibrated_where_probabilities_of_labels_are_not_enough(kind, name):
    """The classifier learns the normalized targets as weights of two classes.

    Expected gains under the exact probabilities of the labels do not contain the normalizer.
    """
    labels, counts, least = UNCERTAIN[kind]
    y = np.repeat(labels, counts, axis=0)
    new = np.eye(y.shape[1])  # each document has a column of its own
    X, groups = np.tile(new, (len(y), 1)), np.repeat(range(len(y)), len(new))
    world = (labels, np.array(counts) / sum(counts))
    loss = loss_of(kind, shrinkage=0)
    ranker = CalibratedRanker(FLEXIBLE[name], loss=loss, context=None).fit(X, y.ravel(), groups)
    assert ranker.calibrated_over_ == loss.calibrated_over
    scores = ranker.decision_function(new, groups=[0] * len(new))
    if name != "exponential":
        np.testing.assert_allclose(scores, expected_targets(world, loss), atol=1e-3)
    assert ranking_regret(ranker.predict(new, groups=[0] * len(new)), world, loss) == 0
    gains = world[1] @ loss.gains(np.array(labels, float))
    by_gains = np.argsort(np.argsort(-gains, kind="stable")) + 1
    assert ranking_regret(by_gains, world, loss) > least


@pytest.mark.parametrize("name", [name for name in LOSSES if LOSSES[name]().space == "scores"])
def test_a_classifier_predicts_expected_targets_up_to_a_shift(name):
    """Whether targets are classes or weights, and also if they are negative, in random worlds."""
    rng, loss = np.random.default_rng(0), LOSSES[name]()
    for _ in range(20):
        pool = defined(loss, pool_of(NDCG() if name.startswith("pd") else loss, 4, rng))
        y = pool[rng.integers(len(pool), size=6)]
        X, groups = np.tile(np.arange(4), 6)[:, None], np.repeat(range(6), 4)
        if len(np.unique(y)) == 1:
            continue
        ranker = CalibratedRanker(DecisionTreeClassifier(), loss=loss, context=None)
        ranker.fit(X, y.ravel(), groups)
        targets = ranker.loss_.training_targets(y.ravel(), Queries.uniform(6, 4))
        expected = targets.reshape(6, 4).mean(axis=0)
        scores = ranker.decision_function(X[:4], groups=groups[:4])
        np.testing.assert_allclose(scores - scores.mean(), expected - expected.mean(), atol=1e-9)
        assert ranker.calibrated_over_ == ranker.loss_.calibrated_over
        assert hasattr(ranker.model_, "levels_") == loss.graded_targets
        assert hasattr(ranker.model_, "eta_") != loss.graded_targets


@pytest.mark.parametrize("name", LOSSES)
def test_graded_targets_depend_on_the_label_of_the_document_alone(name):
    loss, rng = LOSSES[name](), np.random.default_rng(0)
    if not loss.graded_targets:
        return
    y = rng.integers(0, 2, 12).astype(float)
    loss = loss.resolve(y)
    for queries in (Queries.uniform(3, 4), Queries.uniform(12, 1)):
        np.testing.assert_array_equal(
            loss.training_targets(y, queries), loss.encode(y, Queries.single(12))
        )


# ------------------------------------------------------------------ limits of the claims


def test_query_context_does_not_tell_all_queries_apart():
    """Documents 10 and 11 have equal columns in both queries, but different ones are better."""
    values = np.array([[10, 11, 0, 4, 5], [10, 11, 1, 2, 6]], dtype=float)
    kinds = ("zscore", "difference", "rank")
    table, _ = add_context(values.reshape(-1, 1), Queries.uniform(2, 5), kinds)
    rows = table.reshape(2, 5, 4)
    np.testing.assert_array_equal(rows[0, :2], rows[1, :2])
    labels = np.array([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]])
    copies = 40
    X, y = np.tile(values.reshape(-1, 1), (copies, 1)), np.tile(labels.ravel(), copies)
    groups = np.repeat(np.arange(2 * copies), 5)
    third = np.repeat((values**3).sum(axis=1), 5)[:, None]
    third = (third - third.mean()) / third.std()
    nearest = KNeighborsRegressor(n_neighbors=1)  # it remembers every row
    for model, loss, context in ((nearest, "dcg", list(kinds)), (PairModel(nearest), "pd", None)):
        ranker = CalibratedRanker(model, loss=loss, context=context).fit(X, y, groups)
        ranks = ranker.predict(values.reshape(-1, 1), groups=np.repeat([0, 1], 5)).reshape(2, 5)
        assert (ranks[0, 0] < ranks[0, 1]) == (ranks[1, 0] < ranks[1, 1])
        regrets = [ranking_regret(ranks[q], (labels[[q]], [1.0]), "pd") for q in (0, 1)]
        # A function of the whole query, as in theorem 3, would have no regret.
        assert max(regrets) >= 1
        # A richer context, here with the third moment, tells the two queries apart.
        more = np.c_[X, np.tile(third, (copies, 1))]
        ranker = CalibratedRanker(model, loss=loss, context=None).fit(more, y, groups)
        ranks = ranker.predict(np.c_[values.reshape(-1, 1), third], groups=np.repeat([0, 1], 5))
        for q in (0, 1):
            assert ranking_regret(ranks.reshape(2, 5)[q], (labels[[q]], [1.0]), "pd") == 0


def test_copeland_and_sort_need_that_no_pair_is_tied():
    """The graphs are acyclic and compare every pair, but the decoders fail as some pairs tie."""
    five = [[0, 2, 2, 2, 1], [1, 0, 1, 2, 1], [1, 1, 0, 2, 1], [1, 1, 1, 0, 2], [1, 1, 1, 1, 0]]
    three = [[0, 1, 1], [2, 0, 1], [1, 2, 0]]
    for weights, method, got, best in ((five, "copeland", 11, 10), (three, "sort", 4, 3)):
        compared = np.array(weights) + np.eye(len(weights)) > 0
        assert compared.all() and satisfies_dag(weights)
        assert not totally_ordered(LabelDistribution([weights], [1.0]))
        result = decode_preferences(weights, method)
        assert result.objective == got
        assert oracles.preference_loss(weights, np.argsort(result.ranks).tolist()) == got
        assert oracles.least_loss(oracles.preference_loss, weights) == best


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("weight", ["binary", "graded", np.sqrt])
def test_score_is_what_pd_is_calibrated_for(weight, equal):
    """Queries that look the same: the exact decoder maximises `score` over all rankings.

    The cross product of two documents of one column each is +1 or -1 in one column, that of the
    pair, so that least squares predicts the mean difference of each pair.

    In the first world, and not only there, the mean over queries of the share and the share of all
    queries together have different best rankings.
    """

    def cross(pairs):
        return np.cross(pairs[:, :3], pairs[:, 3:])

    least_squares = LinearRegression(fit_intercept=False)
    loss = PD(weight, equal_queries=equal)
    random = np.random.RandomState(0)
    worlds = [np.repeat([[0.0, 2, 2], [2, 0, 1], [0, 1, 0]], [1, 5, 4], axis=0)]
    worlds += [random.randint(0, 4, (10, 3)).astype(float) for _ in range(8)]
    differ = 0
    for y in worlds:
        X, queries = np.tile(np.eye(3), (10, 1)), Queries.uniform(10, 3)
        ranker = CalibratedRanker(
            PairModel(make_pipeline(FunctionTransformer(cross), least_squares)),
            loss=loss,
            decoder="exact",
        )
        ranker.fit(X, y.ravel(), groups=queries.codes)
        total = loss.query_weight(y.ravel(), queries)
        assert (total is None) == equal
        other = None if total is not None else PD(weight).query_weight(y.ravel(), queries)
        values = [loss.metric(y.ravel(), np.tile(ranks, 10), queries) for ranks in all_ranks(3)]
        scores = [mean_over_queries(v, queries, None, "PD", total) for v in values]
        others = [mean_over_queries(v, queries, None, "PD", other) for v in values]
        assert ranker.score(X, y.ravel(), groups=queries.codes) == pytest.approx(max(scores))
        differ += others[np.argmax(scores)] < max(others) - 1e-9
    assert differ >= 1


@pytest.mark.parametrize("kind", LOSSES.values())
def test_the_mean_that_rankers_report_is_what_targets_are_calibrated_for(kind):
    """The calibrated value minus the weighted measure is the same for all rankings of a query."""
    pool = np.array(list(itertools.product(range(2), repeat=4)), dtype=float)
    loss = kind().resolve(pool.ravel())
    queries = as_queries(pool)[1]
    weight = loss.query_weight(pool.ravel(), queries)
    weight = np.ones(len(pool)) if weight is None else weight
    calibrated = calibrated_values(loss, pool, all_ranks(4))
    measure = np.stack(
        [loss.metric(pool.ravel(), np.tile(ranks, len(pool)), queries) for ranks in all_ranks(4)], 1
    )
    apart = (calibrated - weight[:, None] * measure)[~np.isnan(measure[:, 0])]
    assert np.ptp(apart, axis=1).max() < 1e-12
