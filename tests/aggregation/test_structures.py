"""Structures: scores against second implementations, recovery of the truth, and bad parameters."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.aggregation import (  # graphs and reading by themselves
    STRUCTURES,
    Borda,
    BradleyTerry,
    BudgetedBorda,
    Copeland,
    Judgements,
    Kemeny,
    LeastSquares,
    LogOdds,
    PlackettLuce,
    PrincipalEigenvector,
    RankCentrality,
    Structure,
    _graphs,
)
from sklearn_rankcal.aggregation._aggregate import get_structure
from sklearn_rankcal.aggregation._graphs import ComparedPairs, ComparisonGraph
from sklearn_rankcal.aggregation._likelihoods import tier_probabilities
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._labels import merge_pairs
from sklearn_rankcal.labels._rankings import Comparisons, Orders
from sklearn_rankcal.queries import Queries

from .. import structure_oracles as oracles

#: Structures and their second implementations, which get the matrix and the number of judgements.
FORMULAS = [
    (Borda(), oracles.borda),
    (BudgetedBorda(), oracles.budgeted_borda),
    (BudgetedBorda(conditional=True), lambda W, k: oracles.budgeted_borda(W, k, True)),
    (Copeland(), oracles.copeland),
    (LogOdds(0.5, "counts"), oracles.log_odds),
    (LogOdds(), lambda W, k: oracles.log_odds(W, k, 0.5, "conditional")),
    (LogOdds(0.05, "fractions"), lambda W, k: oracles.log_odds(W, k, 0.05, "fractions")),
    (LogOdds(0.1, "conditional"), lambda W, k: oracles.log_odds(W, k, 0.1, "conditional")),
    (LeastSquares(), oracles.least_squares),
    (LeastSquares("difference"), lambda W, k: oracles.least_squares(W, k, "difference")),
    (LeastSquares("probit", 0.2), lambda W, k: oracles.least_squares(W, k, "probit", 0.2)),
    (LeastSquares(weighted=True), lambda W, k: oracles.least_squares(W, k, weighted=True)),
    (PrincipalEigenvector(), oracles.principal_eigenvector),
    (
        PrincipalEigenvector(0.05, "fractions"),
        lambda W, k: oracles.principal_eigenvector(W, k, 0.05, "fractions"),
    ),
    (
        PrincipalEigenvector(0.1, "conditional"),
        lambda W, k: oracles.principal_eigenvector(W, k, 0.1, "conditional"),
    ),
    (RankCentrality(), oracles.rank_centrality),
    (RankCentrality(2.0), lambda W, k: oracles.rank_centrality(W, k, 2.0)),
]
LIKELIHOODS = [BradleyTerry(), BradleyTerry(0.5), PlackettLuce(), PlackettLuce(0.5)]
EVERY = [structure for structure, _ in FORMULAS] + LIKELIHOODS


def judgements_of(pairs, codes, weight=None):
    """Judgements of one pair each, about rows whose queries need not be contiguous."""
    queries = Queries.from_groups(codes)
    winner, loser = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    comparisons = Comparisons(winner, loser, weight, None)
    items = np.arange(queries.n_rows)
    return Judgements(queries, items, queries.codes[winner], comparisons=comparisons)


def draw(seed, n_pairs=60):
    """Random pairs of 30 rows in mixed order, with weights, some of which are 0.

    There are queries of one row, queries without pairs, and queries whose pairs do not connect all
    rows or of which an item wins all its pairs.
    """
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(8), [7, 6, 1, 5, 4, 3, 1, 3]))
    pairs = []
    while len(pairs) < n_pairs:
        i, j = rng.integers(0, len(codes), 2)
        if i != j and codes[i] == codes[j] and codes[i] != 7:
            pairs.append((i, j))
    weight = rng.choice([0.0, 0.5, 1.0, 1.0, 2.25], n_pairs)
    return pairs, codes, weight


def matrices(judgements):
    """The rows, the matrix and the number of judgements of each query, by loops."""
    queries = judgements.queries
    winner, loser, weight, _ = judgements.comparisons
    weight = np.ones(len(winner)) if weight is None else weight
    for q in range(queries.n_queries):
        rows = np.flatnonzero(queries.codes == q).tolist()
        W = np.zeros((len(rows), len(rows)))
        k = 0
        for i, j, value in zip(winner.tolist(), loser.tolist(), weight, strict=True):
            if i in rows:
                W[rows.index(i), rows.index(j)] += value
                k += 1
        yield rows, W, k


def test_every_registered_structure_is_tested():
    # those of clicks are in test_clicks.py, and Kemeny's decoder in test_aggregate.py
    counted = {kind for kind in STRUCTURES.values() if kind.takes != "clicks"} - {Kemeny}
    assert {type(structure) for structure in EVERY} == counted


@pytest.mark.parametrize(
    ("structure", "formula"), FORMULAS, ids=[str(structure) for structure, _ in FORMULAS]
)
@pytest.mark.parametrize("n_pairs", [25, 60, 300])
def test_scores_are_those_of_the_formula(structure, formula, n_pairs):
    for seed in range(4):
        judgements = judgements_of(*draw(seed, n_pairs))
        scores = structure.scores(judgements)
        assert scores.shape == (judgements.queries.n_rows,)
        assert scores.dtype == np.float64
        for rows, W, k in matrices(judgements):
            np.testing.assert_allclose(scores[rows], formula(W, k), atol=1e-9)


@pytest.mark.parametrize("penalty", ["auto", 0.5, 3])
@pytest.mark.parametrize("structure", [BradleyTerry, PlackettLuce])
def test_bradley_terry_scores_are_where_the_gradient_is_zero(structure, penalty):
    kinds = set()
    for seed, n_pairs in itertools.product(range(4), [25, 60, 300]):
        judgements = judgements_of(*draw(seed, n_pairs))
        scores = structure(penalty).scores(judgements)
        for rows, W, _ in matrices(judgements):
            gradient = oracles.bradley_terry_gradient(W, scores[rows], penalty)
            np.testing.assert_allclose(gradient, 0, atol=1e-8)
            np.testing.assert_allclose(scores[rows], oracles.centred(scores[rows], W), atol=1e-9)
            kinds |= set(oracles.penalties(W > 0, "auto"))
    assert kinds == {0.0, 0.1}  # some components are strongly connected, and some are not


def random_orders(rng, codes, n_orders, longest=5):
    """Orders with ties, of items of one query each, and how often each was made."""
    orders, queries = [], []
    for _ in range(n_orders):
        q = int(rng.integers(codes.max() + 1))
        rows = rng.permutation(np.flatnonzero(codes == q))[: rng.integers(1, longest + 1)]
        cuts = np.flatnonzero(rng.random(len(rows) - 1) < 0.6) + 1
        orders.append([part.tolist() for part in np.split(rows, cuts)])
        queries.append(q)
    return orders, queries, rng.integers(0, 4, n_orders).astype(float)


def judged_orders(orders, codes, count=None):
    queries = Queries.from_groups(codes)
    item = [i for tiers in orders for tier in tiers for i in tier]
    tier = [t for tiers in orders for t, tier in enumerate(tiers) for _ in tier]
    sizes = [sum(map(len, tiers)) for tiers in orders]
    entries = Orders(np.array(item), np.array(tier), np.append(0, np.cumsum(sizes)))
    query = queries.codes[entries.item[entries.offsets[:-1]]]
    items = np.arange(queries.n_rows)
    return Judgements(queries, items, query, orders=entries, count=count)


@pytest.mark.parametrize("penalty", ["auto", 0.5])
@pytest.mark.parametrize("n_orders", [8, 40])
def test_plackett_luce_maximises_the_likelihood_of_all_orders_inside_tiers(penalty, n_orders):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        codes = rng.permutation(np.repeat(np.arange(3), [5, 4, 2]))
        orders, queries, count = random_orders(rng, codes, n_orders)
        judgements = judged_orders(orders, codes, count)
        scores = PlackettLuce(penalty).scores(judgements)
        for q in range(3):
            rows = np.flatnonzero(codes == q)
            number = {row: n for n, row in enumerate(rows.tolist())}
            chosen = [m for m in range(n_orders) if queries[m] == q and count[m] > 0]
            mine = [[[number[i] for i in tier] for tier in orders[m]] for m in chosen]
            above = np.zeros((len(rows), len(rows)), dtype=bool)
            for tiers in mine:
                for high, low in itertools.combinations(tiers, 2):
                    above[np.ix_(high, low)] = True
            a = oracles.penalties(above, penalty)
            data = mine, count[chosen]
            start = scores[rows]
            best = minimize(lambda s, d=data, a=a: oracles.plackett_luce_loss(*d, s, a), start)
            assert oracles.plackett_luce_loss(*data, start, a) <= best.fun + 1e-8
            for part in set(oracles.whole_parts(above)):
                inside = list(part)
                centred = best.x[inside] - best.x[inside].mean()
                np.testing.assert_allclose(start[inside], centred, atol=2e-4)
                np.testing.assert_allclose(start[inside].sum(), 0, atol=1e-9)


def test_the_lowest_tier_and_items_that_are_not_listed_do_not_matter():
    codes = np.zeros(5)
    orders = [[[0], [1], [2]], [[2], [0], [1]], [[1], [2], [0]], [[0], [2]]]
    known = PlackettLuce().scores(judged_orders(orders, codes))
    assert known[3:].tolist() == [0.0, 0.0]
    more = [*orders, [[0, 1, 2, 3, 4]], [[3]]]
    np.testing.assert_allclose(PlackettLuce().scores(judged_orders(more, codes)), known)
    # to choose one of all is the same whether or not the others are in some order
    tied = PlackettLuce(0.2).scores(judged_orders([[[0], [1, 2, 3]]], codes))
    choice = judged_orders([[[0], [3, 1, 2]]], codes)
    np.testing.assert_allclose(PlackettLuce(0.2).scores(choice), tied, atol=1e-12)


@pytest.mark.parametrize("m", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("shift", [-12.0, -3.0, 0.0, 4.0])
def test_tiers_have_the_probability_of_all_their_orders(m, shift):
    rng = np.random.default_rng(0)
    z = rng.normal(scale=2.0, size=(5, m)) + shift
    log_p, gradient, curvature = tier_probabilities(z)
    for row in range(5):
        # item m is the lower item, of weight 1
        scores = np.append(z[row], 0.0)
        tiers = [list(range(m)), [m]]
        loss = oracles.plackett_luce_loss([tiers], [1.0], scores, np.zeros(m + 1))
        # up to five items without quadrature; the loss itself is a logarithm close to 1
        np.testing.assert_allclose(log_p[row], -loss, atol=1e-12 if m < 6 else 1.5e-9)
    step = 1e-5
    for i in range(m):
        moved = np.arange(m) == i
        up, down = (tier_probabilities(z + sign * step * moved) for sign in (1, -1))
        np.testing.assert_allclose(gradient[:, i], (up[0] - down[0]) / 2 / step, atol=1e-8)
        np.testing.assert_allclose(-curvature[:, i], (up[1] - down[1]) / 2 / step, atol=1e-8)


def test_probabilities_of_tiers_are_exact_for_scores_far_apart():
    z = np.array([[-400.0, -380.0, 2.0], [400.0, 1.0, -1.0], [500.0, 600.0, 700.0]])
    log_p, gradient, curvature = tier_probabilities(z)
    late = np.exp(2) / (1 + np.exp(2)) ** np.arange(1, 4)  # item 2 is first, second or third
    np.testing.assert_allclose(log_p[0], -780 + np.log(2 * late.sum()), rtol=1e-14)
    np.testing.assert_allclose(log_p[1], tier_probabilities(z[1:2, 1:])[0][0], atol=1e-15)
    np.testing.assert_allclose(log_p[2], 0.0, atol=1e-15)
    np.testing.assert_allclose(gradient[0, :2], 1.0)
    np.testing.assert_allclose(gradient[2], 0.0, atol=1e-15)
    assert np.isfinite(curvature).all()


def test_tiers_of_many_equal_items_have_the_probability_of_the_beta_function():
    from scipy.special import betaln

    for m, a in itertools.product([2, 30, 400], [1e-6, 0.3, 1.0, 50.0]):
        log_p, _, _ = tier_probabilities(np.full((1, m), np.log(a)))
        np.testing.assert_allclose(log_p[0], -np.log(a) + betaln(1 / a, m + 1), atol=4e-9)


# ---------------------------------------------------------------- invariance


@pytest.mark.parametrize("structure", EVERY, ids=lambda value: str(value)[:60])
def test_queries_without_comparisons_have_the_score_zero(structure):
    none = judgements_of(np.empty((0, 2)), [3, 1, 3])
    assert structure.scores(none).tolist() == [0.0, 0.0, 0.0]
    nothing = judgements_of([(0, 2)], [3, 1, 3], [0.0])
    assert structure.scores(nothing).tolist() == [0.0, 0.0, 0.0]


def test_plackett_luce_without_orders_of_two_tiers_gives_zero():
    assert PlackettLuce().scores(judged_orders([[[0, 1]], [[1]]], [0, 0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("structure", EVERY, ids=lambda value: str(value)[:60])
def test_structures_are_estimators_that_can_be_cloned(structure):
    judgements = judgements_of(*draw(0))
    before = judgements.preferences().weight.copy()
    copy = clone(structure)
    np.testing.assert_array_equal(copy.scores(judgements), structure.scores(judgements))
    assert copy.get_params() == structure.get_params()
    np.testing.assert_array_equal(judgements.preferences().weight, before)


# ---------------------------------------------------------------- recovery


def world(truth, rates, n):
    """The expected weights of n comparisons of a Bradley-Terry-Luce model, as one query.

    ``rates[i, j]`` for i < j is how often the pair is drawn, relative to others.
    """
    r = len(truth)
    rates = np.triu(rates, 1)
    rates = (rates + rates.T) / rates.sum()
    W = n * rates * expit(np.subtract.outer(truth, truth))
    i, j = np.nonzero(W)
    preferences = Preferences.from_pairs(i, j, W[i, j], Queries.single(r))
    return Expected(preferences, np.array([float(n)]))


class Expected:
    """Sums of comparisons without the comparisons."""

    orders, has_covariates = None, False

    def __init__(self, preferences, per_query):
        self._preferences = preferences
        self.per_query = per_query
        self.queries = preferences.queries

    def preferences(self):
        return self._preferences


#: These lose the right order under unequal sampling even if all pairs are compared.
UNEQUAL_FAILS = [
    Borda(),
    BudgetedBorda(),
    LogOdds(0.05, "fractions"),
    PrincipalEigenvector(0.05, "fractions"),
]
TRUTH = np.array([2.0, 1.5, 0.0])


@pytest.mark.parametrize("structure", EVERY, ids=lambda value: str(value)[:60])
def test_unequal_sampling_misleads_structures_that_count_judgements(structure):
    equal = structure.scores(world(TRUTH, np.ones((3, 3)), 1e7))
    assert np.argsort(-equal).tolist() == [0, 1, 2]
    rates = np.array([[0, 2, 2], [0, 0, 96], [0, 0, 0]])
    unequal = structure.scores(world(TRUTH, rates, 1e7))
    if str(structure) in map(str, UNEQUAL_FAILS):
        assert unequal[0] < unequal[1]
    else:
        assert np.argsort(-unequal).tolist() == [0, 1, 2]


#: These recover the scores themselves, although the best and the worst item are never compared.
MODELS = [BradleyTerry(), PlackettLuce(), LeastSquares(), RankCentrality(1e-3)]


@pytest.mark.parametrize("structure", MODELS, ids=str)
def test_structures_of_the_model_recover_its_scores_although_pairs_are_missing(structure):
    truth = np.array([1.0, 0.8, -1.8])
    rates = np.array([[0, 3, 0], [0, 0, 1], [0, 0, 0]])
    scores = structure.scores(world(truth, rates, 1e9))
    np.testing.assert_allclose(scores, truth, atol=1e-6)


@pytest.mark.parametrize(
    "structure",
    [LogOdds(), BudgetedBorda(conditional=True), PrincipalEigenvector(1.0, "conditional")],
    ids=str,
)
def test_missing_pairs_mislead_means_over_all_items(structure):
    truth = np.array([1.0, 0.8, -1.8])
    rates = np.array([[0, 3, 0], [0, 0, 1], [0, 0, 0]])
    scores = structure.scores(world(truth, rates, 1e9))
    assert np.argsort(-scores).tolist() == [1, 0, 2]


# ---------------------------------------------------------------- large and extreme graphs


def chain(n):
    """A chain of n items, each of which won 3 of 4 comparisons with the next."""
    pairs = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    return judgements_of(both, np.zeros(n), np.repeat([3.0, 1.0], n - 1))


def test_long_chains_are_solved_exactly():
    judgements = chain(3000)
    truth = -np.log(3) * np.arange(3000)
    truth -= truth.mean()
    np.testing.assert_allclose(BradleyTerry().scores(judgements), truth, rtol=1e-7, atol=1e-5)
    truth *= np.log(3.5 / 1.5) / np.log(3)
    np.testing.assert_allclose(LeastSquares().scores(judgements), truth, rtol=1e-9, atol=1e-7)


def test_long_chains_are_eliminated(monkeypatch):
    expected = LeastSquares().scores(chain(600))
    monkeypatch.setattr(_graphs, "_MANY_STEPS", 0)
    np.testing.assert_allclose(LeastSquares().scores(chain(600)), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("structure", [LeastSquares(), BradleyTerry(), BradleyTerry(0.5)], ids=str)
def test_components_can_be_eliminated_or_iterated(structure, monkeypatch):
    for seed in range(3):
        judgements = judgements_of(*draw(seed))
        expected = structure.scores(judgements)
        with monkeypatch.context() as patched:
            patched.setattr(_graphs, "_FEW_STEPS", 1)  # so that small ones are eliminated
            np.testing.assert_allclose(structure.scores(judgements), expected, atol=1e-8)
            patched.setattr(_graphs, "_MANY_STEPS", 0)
            np.testing.assert_allclose(structure.scores(judgements), expected, atol=1e-8)
    rng = np.random.default_rng(0)
    pairs = [(i, j) for i, j in rng.integers(0, 600, (6000, 2)).tolist() if i != j]
    large = judgements_of(pairs, np.zeros(600))  # too many pairs per item to be eliminated
    expected = structure.scores(large)
    monkeypatch.setattr(_graphs, "_FEW_STEPS", 1)
    np.testing.assert_allclose(structure.scores(large), expected, atol=1e-8)


@pytest.mark.parametrize("structure", [RankCentrality(), PrincipalEigenvector(), BradleyTerry()])
def test_components_above_the_size_of_dense_systems_are_solved(structure):
    rng = np.random.default_rng(0)
    r, n = 260, 4000
    judgements = judgements_of(
        [(i, j) for i, j in rng.integers(0, r, (n, 2)).tolist() if i != j], np.zeros(r)
    )
    scores = structure.scores(judgements)
    ((_, W, k),) = matrices(judgements)
    if isinstance(structure, BradleyTerry):
        gradient = oracles.bradley_terry_gradient(W, scores)
        np.testing.assert_allclose(gradient, 0, atol=1e-8)
    else:
        name = "rank_centrality" if isinstance(structure, RankCentrality) else None
        formula = getattr(oracles, name or "principal_eigenvector")
        np.testing.assert_allclose(scores, formula(W, k), atol=1e-8)


def test_rank_centrality_of_long_chains_is_eliminated():
    scores = RankCentrality().scores(chain(300))
    np.testing.assert_allclose(-np.diff(scores), np.log(3.5 / 1.5), rtol=1e-6)


def test_weights_of_very_different_size_are_solved():
    weight = [1e6, 1.0, 1e-4, 1.0, 3.0, 1e5]
    pairs = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    judgements = judgements_of(pairs, np.zeros(4), weight)
    expected = np.log([1e6, 1e-4, 3e-5])
    np.testing.assert_allclose(-np.diff(BradleyTerry().scores(judgements)), expected, rtol=1e-9)


@pytest.mark.parametrize("n_pairs", [0, 5, 400])
def test_merged_pairs_are_sums_over_equal_pairs(n_pairs):
    """With 5 pairs they are sorted, and with 400 they are added up in a table."""
    rng = np.random.default_rng(n_pairs)
    queries = Queries(np.array([0, 4, 5, 12]))
    q = rng.choice([0, 2], n_pairs)
    first, second = queries.offsets[q] + rng.integers(0, queries.sizes[q], (2, n_pairs))
    weights = rng.integers(0, 9, (2, n_pairs)).astype(float)
    chosen, sums = merge_pairs(first, second, tuple(weights), queries)
    expected = {}
    for i, j, *both in zip(first.tolist(), second.tolist(), *weights, strict=True):
        expected[i, j] = np.array(both) + expected.get((i, j), 0)
    found = list(zip(first[chosen].tolist(), second[chosen].tolist(), strict=True))
    assert found == sorted(expected)
    assert [total.dtype for total in sums] == [np.float64, np.float64]
    np.testing.assert_array_equal(
        np.transpose(sums), np.reshape([expected[pair] for pair in found], (-1, 2))
    )


# ---------------------------------------------------------------- names, parameters, convergence


def test_names_of_structures():
    for name, kind in STRUCTURES.items():
        assert type(get_structure(name)) is kind
        assert isinstance(get_structure(name), Structure)
    structure = Borda()
    assert get_structure(structure) is structure
    with pytest.raises(ValueError, match=r"Unknown structure 'bordas'. Did you mean 'borda'\?"):
        get_structure("bordas")
    with pytest.raises(ValueError, match="the nearest is 'btl'"):
        get_structure("Bradley-Terry")
    with pytest.raises(TypeError, match="structure must be a name or a Structure; got 3"):
        get_structure(3)
    with pytest.raises(TypeError, match="must be a name or a Structure"):
        get_structure(Borda)


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (BudgetedBorda(conditional="yes"), "conditional must be True or False; got 'yes'"),
        (LogOdds(0), "smoothing must be a finite number > 0; got 0"),
        (LogOdds(-1.0), "smoothing must be a finite number > 0; got -1.0"),
        (LogOdds(np.nan), "smoothing must be a finite number > 0; got nan"),
        (LogOdds(True), "smoothing must be a finite number > 0; got True"),
        (LogOdds("1"), "smoothing must be a finite number > 0; got '1'"),
        (LogOdds(added_to="count"), "Unknown added_to 'count'. Did you mean 'counts'"),
        (LeastSquares("probits"), "Unknown margin 'probits'. Did you mean 'probit'"),
        (LeastSquares(None), "Unknown margin None. Known: difference, log_odds, probit"),
        (LeastSquares(smoothing=np.inf), "smoothing must be a finite number > 0; got inf"),
        (LeastSquares(weighted=1), "weighted must be True or False; got 1"),
        (BradleyTerry(-0.1), "penalty must be 'auto' or a finite number >= 0; got -0.1"),
        (BradleyTerry(np.nan), "penalty must be 'auto' or a finite number >= 0; got nan"),
        (BradleyTerry("automatic"), "penalty must be 'auto' or a finite number >= 0"),
        (BradleyTerry(tol=0), "tol must be a finite number > 0; got 0"),
        (BradleyTerry(max_iter=0), "max_iter must be a whole number >= 1; got 0"),
        (PlackettLuce(None), "penalty must be 'auto' or a finite number >= 0; got None"),
        (PlackettLuce(max_iter=1.5), "max_iter must be a whole number >= 1; got 1.5"),
        (PrincipalEigenvector(0), "smoothing must be a finite number > 0; got 0"),
        (PrincipalEigenvector(added_to="x"), "Unknown added_to 'x'"),
        (PrincipalEigenvector(max_iter=0), "max_iter must be a whole number >= 1; got 0"),
        (RankCentrality(0), "smoothing must be a finite number > 0; got 0"),
        (RankCentrality(max_iter=-1), "max_iter must be a whole number >= 1; got -1"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(structure, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        structure.scores(judgements_of([(0, 1)], [0, 0]))


def test_likelihoods_without_a_maximum_do_not_converge_without_a_penalty():
    pairs = [(0, 1), (1, 2), (3, 4), (4, 3)]
    codes = [0, 0, 0, 1, 1]
    orders = judged_orders([[[i], [j]] for i, j in pairs], codes)
    for structure, judgements in (
        (BradleyTerry(0, max_iter=10), judgements_of(pairs, codes)),
        (PlackettLuce(0, max_iter=10), orders),
    ):
        name = type(structure).__name__
        with pytest.warns(ConvergenceWarning, match=rf"{name} .*max_iter=10.* 1 of 2 queries"):
            scores = structure.scores(judgements)
        np.testing.assert_allclose(scores[3:], 0, atol=1e-9)
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("structure", [PrincipalEigenvector(max_iter=2), BradleyTerry(max_iter=1)])
def test_few_iterations_do_not_converge(structure):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=[12] iterations for \d of 8 queries"):
        structure.scores(judgements_of(*draw(0, 300)))


def test_rank_centrality_of_a_large_query_warns_about_few_iterations():
    rng = np.random.default_rng(0)
    pairs = [(i, j) for i, j in rng.integers(0, 260, (4000, 2)).tolist() if i != j]
    with pytest.warns(ConvergenceWarning, match="max_iter=3 iterations for 1 of 1 queries"):
        RankCentrality(max_iter=3).scores(judgements_of(pairs, np.zeros(260)))


# ---------------------------------------------------------------- peers


def test_likelihoods_are_those_of_choix():
    choix = pytest.importorskip("choix")
    rng = np.random.default_rng(0)
    r, truth = 20, rng.normal(size=20)
    i = rng.integers(0, r, 1000)
    j = (i + rng.integers(1, r, 1000)) % r
    won = rng.random(1000) < expit(truth[i] - truth[j])
    pairs = np.where(won[:, None], np.stack([i, j], 1), np.stack([j, i], 1)).tolist()
    judgements = judgements_of(pairs, np.zeros(r))
    scores = BradleyTerry().scores(judgements)
    np.testing.assert_allclose(scores, choix.opt_pairwise(r, pairs, tol=1e-10), atol=1e-6)
    np.testing.assert_allclose(scores, choix.ilsr_pairwise(r, pairs, tol=1e-12), atol=1e-6)
    # choix adds alpha times the sum of squares, and this package half of the penalty times it
    penalised = choix.opt_pairwise(r, pairs, alpha=0.15, tol=1e-10)
    np.testing.assert_allclose(BradleyTerry(0.3).scores(judgements), penalised, atol=1e-6)

    orders = []
    for _ in range(150):
        shown = rng.permutation(r)[: rng.integers(2, 7)]
        orders.append(shown[np.argsort(-truth[shown] - rng.gumbel(size=len(shown)))].tolist())
    judgements = judged_orders([[[item] for item in order] for order in orders], np.zeros(r))
    scores = PlackettLuce().scores(judgements)
    np.testing.assert_allclose(scores, choix.opt_rankings(r, orders, tol=1e-10), atol=1e-6)
    np.testing.assert_allclose(scores, choix.ilsr_rankings(r, orders, tol=1e-12), atol=1e-6)


@pytest.mark.parametrize("n_pairs", [20, 400])
def test_the_product_is_that_of_the_laplacian_matrix(n_pairs):
    # 30 items: few pairs give a sparse matrix, and most of the 435 pairs a dense one
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(435, n_pairs, replace=False))
    first, second = (places[chosen] for places in np.triu_indices(30, 1))
    ones = np.ones(n_pairs)
    graph = ComparisonGraph(Queries.single(30), ComparedPairs(first, second, ones, ones), None)
    weight, vector = rng.random(n_pairs), rng.normal(size=30)
    matrix = np.zeros((30, 30))
    matrix[first, second] = matrix[second, first] = weight
    matrix = np.diag(matrix.sum(axis=0) + 0.5) - matrix
    product, diagonal = graph.laplacian(weight, np.full(30, 0.5))
    np.testing.assert_allclose(product(vector), matrix @ vector, atol=1e-13)
    np.testing.assert_allclose(diagonal, np.diag(matrix))
