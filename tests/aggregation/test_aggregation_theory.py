"""Theory of aggregation: net preferences are consistent if judgements are aggregated before.

Duchi, Mackey and Jordan (2013), section 5.3: the surrogate (23), `DifferenceGraph`, is consistent
for pairwise disagreement at the mean graph of a query, if that is acyclic. The surrogates (12) and
(13), `WeightedComparisons` with weights and with required margins, and (23) itself for single
judgements, are not.
tests/consistency/test_surrogate_calibration.py has their counterexamples of low noise.
"""

import itertools
import math

import numpy as np
import pytest

from sklearn_rankcal import Judgements
from sklearn_rankcal.aggregation import STRUCTURES, aggregate
from sklearn_rankcal.consistency import (
    LabelDistribution,
    find_counterexample,
    ranking_regret,
    satisfies_dag,
    suboptimality,
    surrogate_regret,
)
from sklearn_rankcal.consistency._regrets import ExpectedSurrogates, minimizers  # many at once
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import (
    SURROGATES,
    DifferenceGraph,
    WeightedComparisons,
    get_surrogate,
)
from sklearn_rankcal.surrogates._pair_sums import MARGINS as PHI

from .. import oracles
from ..covering import covering
from ..label_distributions import single_edges
from ..surrogate_data import MARGINS, name_of, required_margin

pytestmark = pytest.mark.simulation

#: Inside the condition of acyclic mean preferences, but outside low noise: the mean graph is
#: 1 > 2 > 3 with net weights .10, .14 and .36, and document 2 has the largest net score.
WRONG_BY_SCORES = {(0, 1): 0.20, (1, 0): 0.10, (1, 2): 0.36, (0, 2): 0.24, (2, 0): 0.10}
#: Weights of a cyclic mean graph of four documents, whose best order is 4, 1, 3, 2.
CYCLIC = {(3, 0): 6, (2, 1): 5, (1, 3): 4, (0, 2): 3, (3, 2): 2, (0, 1): 1}


def mean_graph(distribution):
    return np.tensordot(distribution.probabilities, distribution.labels, axes=1)


def aggregated(graph):
    """The distribution of a query whose judgements are aggregated: its mean graph is certain."""
    return np.asarray(graph)[None], [1.0]


def draw_mean_graph(rng, r, acyclic):
    """The mean of judgements that are edges, orders or graphs, with a given kind of net graph."""
    while True:
        judgements = np.zeros((rng.integers(2, 8), r, r))
        for one in judgements:
            kind = rng.integers(3)
            if kind == 0:
                i, j = rng.choice(r, 2, replace=False)
                one[i, j] = 1
            elif kind == 1:
                ranks = rng.permutation(r)
                one[:] = ranks[:, None] < ranks
            else:
                one[:] = rng.integers(0, 3, (r, r)) * (rng.random((r, r)) < 0.4)
                np.fill_diagonal(one, 0)
        mean = np.tensordot(rng.dirichlet(np.ones(len(judgements))), judgements, axes=1)
        net = mean - mean.T
        # Rounding must not decide which way an edge goes, and there must be something to learn.
        if (np.abs(net) > 0.02).any() and not ((np.abs(net) > 0) & (np.abs(net) < 0.02)).any():
            if bool(satisfies_dag(mean)) == acyclic:
                return mean


# ------------------------------------------------------------------ (23) at the aggregated graph


@pytest.mark.parametrize("margin", MARGINS)
def test_net_preferences_are_consistent_at_acyclic_mean_graphs(margin):
    """A regret of epsilon costs at least phi(0) epsilon of the surrogate.

    The infimum of (23) is 0 at an acyclic graph: let the differences of scores grow. A ranking with
    a regret of epsilon contradicts edges with a net weight of epsilon, because the best one
    contradicts none. Each of these costs its net weight times phi(0) or more, because phi does not
    increase.
    """
    rng = np.random.default_rng(0)
    at_zero = float(PHI[margin].at(np.zeros(1))[0][0])
    assert at_zero > 0
    for r in (3, 4):
        distribution = aggregated(draw_mean_graph(rng, r, acyclic=True))
        ranks = np.array([oracles.ranks_of(order) for order in oracles.all_orders(r)])
        regrets = np.unique(ranking_regret(ranks, distribution, "pd").round(12))
        positive = regrets[regrets > 1e-9]
        least = suboptimality(positive, distribution, "pd", DifferenceGraph(margin))
        assert (least >= at_zero * positive * (1 - 1e-6)).all()


@pytest.mark.parametrize("margin", MARGINS)
def test_minimisers_at_acyclic_mean_graphs_have_no_regret(margin):
    rng = np.random.default_rng(1)
    contradicted = 0
    for r in (3, 4, 5) * 2:
        mean = draw_mean_graph(rng, r, acyclic=True)
        problem = ExpectedSurrogates.of_distribution(
            LabelDistribution(*aggregated(mean)), get_loss("pd"), DifferenceGraph(margin)
        )
        s = minimizers(problem)[0]  # finite scores, at which no derivative is left
        net = mean - mean.T
        # Equation (23) asks that every net preference is in the order of the scores.
        assert (s[:, None] - s)[net > 0].min() > 0
        ranks = np.array(oracles.ranks_of(np.argsort(-s)))
        assert ranking_regret(ranks, aggregated(mean), "pd") == pytest.approx(0, abs=1e-12)
        # Sorting by net scores, which low noise would justify, is not enough.
        ranks = np.array(oracles.ranks_of(np.argsort(-net.sum(axis=1))))
        contradicted += ranking_regret(ranks, aggregated(mean), "pd") > 1e-9
    assert contradicted > 0


@pytest.mark.parametrize("margin", ["logistic", "squared_hinge"])
def test_net_preferences_fail_at_some_cyclic_mean_graphs(margin):
    surrogate = DifferenceGraph(margin)
    example = mean_graph(single_edges({edge: w / 21 for edge, w in CYCLIC.items()}, 4))
    assert not satisfies_dag(example)
    rng = np.random.default_rng(0)
    regrets = []
    for graph in [example, *(draw_mean_graph(rng, 4, acyclic=False) for _ in range(8))]:
        distribution = aggregated(graph)
        problem = ExpectedSurrogates.of_distribution(
            LabelDistribution(*distribution), get_loss("pd"), surrogate
        )
        s = minimizers(problem)[0]
        assert surrogate_regret(s, distribution, "pd", surrogate) < 1e-9
        ranks = np.array(oracles.ranks_of(np.argsort(-s)))
        regrets.append(ranking_regret(ranks, distribution, "pd"))
    regrets = np.array(regrets)
    assert regrets[0] > 0.01  # the example of four documents
    assert (regrets > 1e-3).sum() >= 2 and (regrets < 1e-9).any()


# ------------------------------------------------------------------ single judgements


def test_single_judgements_are_wrong_where_their_mean_graph_is_right():
    distribution = single_edges(WRONG_BY_SCORES)
    assert satisfies_dag(distribution)
    assert ranking_regret([1, 2, 3], distribution, "pd") == pytest.approx(0, abs=1e-12)
    wrong = ranking_regret([2, 1, 3], distribution, "pd")
    assert wrong == pytest.approx(0.10)
    for margin in ("logistic", "exponential", "squared_hinge"):
        for surrogate in (WeightedComparisons(margin), DifferenceGraph(margin)):
            # The order 2, 1, 3 costs nothing, and the best order does.
            assert suboptimality(wrong, distribution, "pd", surrogate) == 0
        at_mean = aggregated(mean_graph(distribution))
        assert suboptimality(wrong, at_mean, "pd", DifferenceGraph(margin)) > 0.01
        # Aggregating does not help (12), which adds up both directions of a pair.
        assert suboptimality(wrong, at_mean, "pd", WeightedComparisons(margin)) == 0


@pytest.mark.parametrize("margin", MARGINS)
def test_net_preferences_of_single_judgements_are_comparisons(margin):
    """The mean of (23) over judgements without opposite edges is the mean of (12)."""
    rng = np.random.default_rng(2)
    distribution = single_edges(WRONG_BY_SCORES)
    for s in rng.normal(size=(5, 3)):
        values = [
            ExpectedSurrogates.of_distribution(distribution, get_loss("pd"), surrogate).value(
                s[None]
            )[0]
            for surrogate in (DifferenceGraph(margin), WeightedComparisons(margin))
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-12)
    # With both directions in one judgement they differ.
    both = np.array([[0.0, 2.0], [1.0, 0.0]])
    one, other = (
        ExpectedSurrogates.of_distribution(
            LabelDistribution(*aggregated(both)), get_loss("pd"), surrogate
        ).value(np.zeros((1, 2)))[0]
        for surrogate in (DifferenceGraph(margin), WeightedComparisons(margin))
    )
    assert 3 * one == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize(
    "surrogate",
    covering(
        [
            (kind(margin),)
            for kind in (WeightedComparisons, required_margin, DifferenceGraph)
            for margin in MARGINS
        ],
        lambda surrogate: (type(surrogate), surrogate.margin),
    ),
    ids=name_of,
)
def test_counterexamples_with_acyclic_mean_graphs_are_found(surrogate):
    """Judgements are single comparisons, as in a log of them."""
    edges = np.eye(9).reshape(9, 3, 3)[~np.eye(3, dtype=bool).ravel()]
    found = find_counterexample(
        "pd", surrogate, labels=edges, condition=satisfies_dag, n_trials=600, random_state=0
    )
    assert found is not None and found.regret > 0.05
    assert satisfies_dag(found.distribution)
    # At the mean graph of the same judgements, (23) is right.
    at_mean = aggregated(mean_graph(found.distribution))
    least = suboptimality(found.regret / 2, at_mean, "pd", DifferenceGraph("logistic"))
    assert least >= math.log(2) * found.regret / 2 * (1 - 1e-6)


def test_subsets_of_enough_judgements_repair_net_preferences():
    """The U-statistic of order k of (23): wrong for single judgements, right for large subsets."""
    distribution = single_edges(WRONG_BY_SCORES)
    chances = list(WRONG_BY_SCORES.values())
    regrets = {}
    for k in (1, 2, 4, 8, 16):
        # All samples of k judgements, with their multinomial probabilities.
        counts = np.array(
            [np.diff([-1, *bars, k + 4]) - 1 for bars in itertools.combinations(range(k + 4), 4)]
        )
        chance = np.array(
            [
                math.factorial(k)
                * math.prod(p**m / math.factorial(m) for p, m in zip(chances, row, strict=True))
                for row in counts.tolist()
            ]
        )
        assert chance.sum() == pytest.approx(1)
        labels = np.tensordot(counts / k, distribution.labels, axes=1)
        problem = ExpectedSurrogates.of_distribution(
            LabelDistribution(labels, chance), get_loss("pd"), DifferenceGraph("logistic")
        )
        ranks = np.array(oracles.ranks_of(np.argsort(-minimizers(problem)[0])))
        regrets[k] = float(ranking_regret(ranks, distribution, "pd"))
    assert regrets.pop(1) == pytest.approx(0.10)
    assert max(regrets.values()) == pytest.approx(0, abs=1e-12)


# ------------------------------------------------------------------ limiting scores of structures


def test_structures_are_consistent_for_their_limiting_scores_and_not_for_disagreement():
    """All judgements of all users together, which are what k judgements tend to."""
    right = {"copeland", "kemeny", "rank_centrality"}
    distribution = single_edges(WRONG_BY_SCORES, 3)
    judgements = Judgements.from_pairs(
        list(WRONG_BY_SCORES), count=[round(1e6 * p) for p in WRONG_BY_SCORES.values()]
    )
    for name, structure in STRUCTURES.items():
        if structure.takes == "clicks":
            continue
        result = aggregate(judgements, name)
        ranks = result.ranks[np.argsort(result.items)]
        assert ranks.tolist() == ([1, 2, 3] if name in right else [2, 1, 3]), name
        regret = ranking_regret(ranks, distribution, "pd")
        assert regret == pytest.approx(0.0 if name in right else 0.1)
    ranknet = get_surrogate("ranknet")
    # RankNet, the logistic margin of binary comparisons, is as wrong as the latter
    problem = ExpectedSurrogates.of_distribution(distribution, get_loss("pd"), ranknet)
    assert np.argsort(-minimizers(problem)[0]).tolist() == [1, 0, 2]


@pytest.mark.parametrize("name", list(SURROGATES))
def test_which_surrogates_are_affine_in_the_utilities(name):
    """The gradient by the scores is then affine, and the mean over subsets that at the mean."""
    surrogate = get_surrogate(name)
    rng = np.random.default_rng(0)
    queries, worst = Queries.single(4), 0.0
    v = rng.uniform(0.1, 1.0, (20, 4))
    surrogate = surrogate.resolve(np.append(v, 1.0))
    for one, other in itertools.pairwise(v):
        s = rng.uniform(0.2, 2.0, 4)
        first, second, mean = (
            surrogate.evaluate(u, s, queries).gradient for u in (one, other, (one + other) / 2)
        )
        worst = max(worst, np.abs(mean - (first + second) / 2).max())
    assert (worst < 1e-12) == surrogate.affine
