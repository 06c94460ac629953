"""Distributions and best rankings: numbers of the papers, and comparisons with loops."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.consistency import (
    LabelDistribution,
    bayes_ranking,
    expected_targets,
    find_counterexample,
    is_low_noise,
    ranking_regret,
    ranking_risk,
    regret_bound,
    satisfies_dag,
    satisfies_reinforce,
    satisfies_score_condition,
)
from sklearn_rankcal.decoders import PreferenceDecoder, decode_preferences
from sklearn_rankcal.losses import DCG, ERR, LOSSES, NDCG, MAPByScores, PDByScores

from .. import oracles
from ..label_distributions import every_order, single_edges
from ..pair_scores import SCORES_OF_PAIRS

TIED = ([[1, 1, 0, 0], [0, 0, 1, 1]], [0.5, 0.5])
SIX_EDGES = [[0, 1, 3, 0], [0, 0, 0, 4], [0, 5, 0, 0], [6, 0, 2, 0]]
INSIDE_DAG = {(0, 1): 0.20, (1, 0): 0.10, (1, 2): 0.36, (0, 2): 0.24, (2, 0): 0.10}


# ------------------------------------------------------------------ the numbers of the papers


@pytest.mark.parametrize(
    ("loss", "mixed", "apart"),
    [
        ("map", Fraction(2, 3), Fraction(17, 24)),
        ("map_by_scores", Fraction(2, 3), Fraction(17, 24)),
        ("err", Fraction(43, 96), Fraction(41, 96)),
        (ERR(max_relevance=1), Fraction(43, 96), Fraction(41, 96)),
    ],
)
def test_theorem_3_3_of_calauzenes_et_al(loss, mixed, apart):
    """The values are means; Calauzènes et al. print the sums over both labels, -1/12 and +1/24."""
    values = -ranking_risk([[1, 3, 2, 4], [1, 2, 3, 4]], TIED, loss)
    np.testing.assert_allclose(values, [float(mixed), float(apart)], atol=1e-14)
    printed = Fraction(-1, 12) if "map" in str(loss) else Fraction(1, 24)
    loss = "map" if "map" in str(loss) else "err"
    assert mixed - apart == printed / 2
    regret = ranking_regret([[1, 3, 2, 4], [1, 2, 3, 4]], TIED, loss)
    np.testing.assert_allclose(np.sort(regret), [0, abs(float(mixed - apart))], atol=1e-14)


@pytest.mark.parametrize("f", SCORES_OF_PAIRS)
def test_scores_fail_inside_p_dag(f):
    distribution = single_edges(INSIDE_DAG)
    w = expected_targets(distribution, "pd")
    np.testing.assert_allclose(w[np.triu_indices(3, 1)], [0.10, 0.14, 0.36])
    assert satisfies_dag(distribution)
    assert satisfies_score_condition(distribution, f).violations == ((0, 1),)
    scores = expected_targets(distribution, PDByScores(score_function=f))
    ranks = np.argsort(np.argsort(-scores)) + 1
    assert ranks.tolist() == [2, 1, 3]
    assert ranking_regret(ranks, distribution, "pd") == pytest.approx(0.10)
    assert bayes_ranking(distribution, "pd").tolist() == [1, 2, 3]
    for method in ("greedy_dag", "exact"):
        assert decode_preferences(w, method).ranks.tolist() == [1, 2, 3]


def test_low_noise_with_equality():
    distribution = single_edges({(0, 1): 0.25, (1, 2): 0.01, (0, 2): 0.5, (2, 0): 0.24})
    w = expected_targets(distribution, "pd")
    np.testing.assert_allclose([w[0, 2], w[0, 1] + w[1, 2]], 0.26)
    assert is_low_noise(distribution) and is_low_noise(w)
    assert bayes_ranking(distribution, "pd").tolist() == [1, 2, 3]


# ------------------------------------------------------------------ rankings, compared with loops

RISKS = {
    "precision": lambda y, o: -oracles.precision(y, o, 2),
    "eru": lambda y, o: -oracles.eru(y, o),
    "dcg": lambda y, o: -oracles.dcg(y, o),
    "ndcg": lambda y, o: -oracles.ndcg(y, o),
    "recall": lambda y, o: -oracles.recall(y, o, 2),
    "auc": lambda y, o: -oracles.auc(y, o),
    "spearman": lambda y, o: -oracles.spearman(y, o),
    "choice": lambda y, o: -oracles.choice(y, o),
    "err": lambda y, o: -oracles.err(y, o, top=2),
    "map": lambda y, o: -oracles.average_precision(y, o),
    "map_by_scores": lambda y, o: -oracles.average_precision(y, o),
    "pd": lambda y, o: oracles.disagreement(y, o, normalize=False),
    "pd_by_scores": lambda y, o: oracles.disagreement(y, o, normalize=False),
    "positional": lambda y, o: -oracles.dcg(y, o, gain=oracles.gain_linear),
}
PARAMETERS = {"precision": {"k": 2}, "recall": {"k": 2}, "err": {"max_relevance": 2}}


def example(name):
    return LOSSES[name](**PARAMETERS.get(name, {}))


@pytest.mark.parametrize("name", LOSSES)
def test_risk_regret_and_best_ranking_equal_loops_over_labels(name):
    rng = np.random.default_rng(0)
    loss = example(name)
    top = 2 if hasattr(loss, "threshold") else 3
    for r in (1, 2, 3, 4):
        orders, ranks = every_order(r)
        for _ in range(5):
            labels = np.vstack([rng.integers(0, top, (3, r)), rng.integers(0, 1, (1, r))])
            chance = rng.dirichlet(np.ones(4))
            risks = np.array([[RISKS[name](y, o) for o in orders] for y in labels.tolist()])
            # Labels for which the loss is undefined are left out.
            counts = ~np.isnan(risks[:, 0])
            if not counts.any():
                with pytest.raises(ValueError, match="undefined for every label"):
                    ranking_risk(ranks, (labels, chance), loss)
                continue
            wanted = chance[counts] @ risks[counts] / chance[counts].sum()
            got = ranking_risk(ranks, (labels, chance), loss)
            np.testing.assert_allclose(got, wanted, atol=1e-12)
            regret = ranking_regret(ranks, (labels, chance), loss)
            np.testing.assert_allclose(regret, wanted - wanted.min(), atol=1e-12)
            best = bayes_ranking((labels, chance), loss)
            first = ranks[np.flatnonzero(wanted <= wanted.min() + 1e-12)[0]]
            np.testing.assert_array_equal(best, first)
            assert ranking_risk(best, (labels, chance), loss) == pytest.approx(wanted.min())


def test_rankings_that_only_rounding_tells_apart_are_equally_good():
    labels = [[0, 1], [0, 1], [1, 0], [0, 0]]
    assert bayes_ranking((labels, [0.1, 0.2, 0.3, 0.4]), "precision@1").tolist() == [1, 2]


def test_expected_targets_are_means():
    y, p = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1.0]]), np.array([0.5, 0.2, 0.3])
    np.testing.assert_allclose(expected_targets((y, p), "precision@1"), p @ y)
    share = y / y.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(expected_targets((y, p), "map_by_scores"), p @ share)
    products = np.einsum("m,mi,mj->ij", p, y, share)
    np.testing.assert_allclose(expected_targets((y, p), "map"), products)
    weights = np.random.default_rng(0).random((3, 3, 3)) * ~np.eye(3, dtype=bool)
    mean = np.einsum("m,mij->ij", p, weights)
    np.testing.assert_allclose(expected_targets((weights, p), "pd"), mean - mean.T)
    borda = (mean - mean.T).sum(axis=1) / 3
    np.testing.assert_allclose(expected_targets((weights, p), "pd_by_scores"), borda)
    # A label for which the loss is undefined is left out; it does not count as 0.
    np.testing.assert_allclose(
        expected_targets(([[0, 0], [1, 0]], [0.5, 0.5]), "map_by_scores"), [1, 0]
    )


@pytest.mark.parametrize("loss", ["pd", "map", "ndcg", NDCG(3), "spearman"])
def test_exact_decoders_take_over_beyond_eight_documents(loss, monkeypatch):
    rng = np.random.default_rng(1)
    for r, limit in ((5, 4), (10, 8)):
        labels = rng.integers(0, 2, (5, r))
        if loss == "pd":
            labels = rng.integers(0, 4, (5, r, r)) * ~np.eye(r, dtype=bool)
        distribution = (labels, rng.dirichlet(np.ones(5)))
        expected = bayes_ranking(distribution, loss) if r == 5 else None
        monkeypatch.setattr("sklearn_rankcal.consistency._distributions.LARGEST", limit)
        ranks = bayes_ranking(distribution, loss)
        risk = ranking_risk(ranks, distribution, loss)
        monkeypatch.undo()
        if r == 5:
            assert risk == pytest.approx(ranking_risk(expected, distribution, loss))
        elif loss == "pd":
            mean = np.einsum("m,mij->ij", distribution[1], labels)
            assert risk == pytest.approx(oracles.least_preference_loss_by_sets(mean))
        elif loss == "map":
            least = oracles.least_average_precision_loss_by_sets(
                expected_targets(distribution, loss)
            )
            assert risk + 1 == pytest.approx(least)
        assert ranking_regret(ranks, distribution, loss) == pytest.approx(0)


# ------------------------------------------------------------------ bad input

EDGE = [[0, 1], [0, 0]]
GOOD = ([[1, 0]], [1.0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: LabelDistribution([[1, 0]], [0.9]), ValueError, r"sum to 1; got \[0\.9\]"),
        (lambda: LabelDistribution([[1, 0]] * 2, [1.5, -0.5]), ValueError, r">= 0 and .* -0\.5"),
        (lambda: LabelDistribution([[1, 0]], [0.5, 0.5]), ValueError, r"shape \(1,\)"),
        (lambda: LabelDistribution([[1, 0]], 1.0), ValueError, r"it has shape \(\)"),
        (lambda: LabelDistribution([[1, np.nan]], [1]), ValueError, r"first at \[0, 1\]"),
        (lambda: LabelDistribution([[1, 0]], [np.nan]), ValueError, "probabilities contains NaN"),
        (lambda: LabelDistribution([1, 0], [1]), ValueError, r"\(n_labels, n_documents\)"),
        (lambda: LabelDistribution(np.ones((1, 2, 3)), [1]), ValueError, r"shape \(1, 2, 3\)"),
        (lambda: LabelDistribution(np.ones((0, 2)), []), ValueError, r"shape \(0, 2\)"),
        (lambda: LabelDistribution([[[0, -1], [0, 0]]], [1]), ValueError, "weights must be >= 0"),
        (lambda: LabelDistribution([np.eye(2)], [1]), ValueError, "prefers document 0 to itself"),
        (lambda: LabelDistribution([["a", "b"]], [1]), ValueError, "real numbers"),
        (lambda: LabelDistribution([[1j, 0]], [1]), ValueError, "Complex data"),
        (lambda: LabelDistribution([[1, 0], [1]], [0.5, 0.5]), ValueError, "array of real"),
        (lambda: LabelDistribution(np.ma.array([[1, 0]], mask=[[0, 1]]), [1]), ValueError, "mask"),
        (lambda: bayes_ranking([[1, 0]], "dcg"), TypeError, "tuple .labels, probabilities"),
        (lambda: bayes_ranking(([EDGE], [1.0]), "ndcg"), ValueError, "relevance of every row"),
        (lambda: bayes_ranking(([[2, 0]], [1.0]), "map"), ValueError, "threshold=t"),
        (lambda: bayes_ranking(([[0, 0]], [1.0]), "map"), ValueError, "undefined for every"),
        (
            lambda: bayes_ranking(([[1] * 9], [1.0]), "err"),
            ValueError,
            "too many to enumerate",
        ),
        (lambda: bayes_ranking(([[1] * 9], [1.0]), MAPByScores()), ValueError, "loss='map'"),
        (lambda: bayes_ranking(([[1] * 25], [1.0]), "map"), ValueError, "24 documents"),
        (lambda: ranking_risk([1, 2, 3], GOOD, "dcg"), ValueError, r"\(2,\) or \(n_rankings, 2\)"),
        (lambda: ranking_risk([0, 1], GOOD, "dcg"), ValueError, "permutation of 1 .. r"),
        (lambda: ranking_regret([[1, 2], [1, 1]], GOOD, DCG()), ValueError, "permutation of 1"),
        (lambda: satisfies_dag([[0, 1]]), ValueError, r"it has shape \(1, 2\)"),
        (lambda: satisfies_dag([[0, np.inf], [0, 0]]), ValueError, "NaN or infinity"),
        (lambda: satisfies_dag(EDGE, tol=-1), ValueError, "tol must be a finite number >= 0"),
        (lambda: satisfies_dag(EDGE, tol=None), ValueError, ">= 0; got None"),
        (lambda: satisfies_dag(EDGE, tol=np.nan), ValueError, ">= 0; got nan"),
        (lambda: satisfies_reinforce(EDGE), ValueError, "must be symmetric"),
        (lambda: satisfies_score_condition(EDGE), ValueError, "expected scores themselves"),
        (lambda: satisfies_score_condition(EDGE, [1, 2, 3]), ValueError, "2 expected scores"),
        (
            lambda: satisfies_score_condition(([EDGE], [1.0]), "saaty"),
            ValueError,
            "Unknown score_function",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_repr_of_long_distributions_is_cut():
    many = repr(LabelDistribution(np.ones((30, 2)), np.full(30, 1 / 30)))
    assert many.endswith("and 10 more labels") and len(many.splitlines()) == 22
    weights = repr(LabelDistribution([SIX_EDGES, np.zeros((4, 4))], [0.5, 0.5]))
    assert "3 > 0: 6" in weights and "no preference" in weights


def test_a_matrix_of_two_tuples_is_a_matrix():
    assert satisfies_dag(((0, 1), (0, 0))) and satisfies_reinforce(((1, 0), (0, 1)))


def test_a_label_of_probability_0_changes_nothing():
    """For example, the default max_relevance of ERR ignores the grades of such a label."""
    one = ranking_risk([1, 2], ([[1, 0]], [1.0]), "err")
    assert ranking_risk([1, 2], ([[1, 0], [5, 0]], [1.0, 0.0]), "err") == one


def test_a_distribution_keeps_its_own_numbers():
    labels = np.array([[1.0, 0.0]])
    distribution = LabelDistribution(labels, [1.0])
    labels[0, 0] = np.nan
    assert distribution.labels.tolist() == [[1, 0]]


def test_the_limits_of_exact_rankings_warn_or_raise():
    weights = np.random.RandomState(0).rand(1, 40, 40) * (1 - np.eye(40))
    with pytest.warns(ConvergenceWarning):
        ranks = bayes_ranking((weights, [1.0]), "pd", time_limit=0.1)
    assert sorted(ranks.tolist()) == list(range(1, 41))
    with pytest.raises(ValueError, match="up to 24 documents; got 25"):
        bayes_ranking((np.ones((1, 25)), [1.0]), "map")


def test_unusual_arguments_of_find_counterexample():
    def spoils(y):
        y *= 0
        return y

    found = find_counterexample(
        "map", spoils, 4, labels=[[1, 1, 0, 0], [0, 0, 1, 1]], n_trials=100, random_state=0
    )
    assert found is not None and found.distribution.labels.any(axis=1).all()
    with pytest.raises(TypeError, match="not the class"):
        find_counterexample("pd", PreferenceDecoder)
    with pytest.raises(ValueError, match=r"whole number >= 1; got 10\.5"):
        find_counterexample("pd", n_trials=10.5)
    with pytest.raises(TypeError, match="condition must be a function"):
        find_counterexample("pd", condition="dag")
    with pytest.raises(ValueError, match="must have shapes that broadcast"):
        regret_bound("pd", [1, 2, 3], [2, 3])


@pytest.mark.parametrize("size", [1e-50, 1e50])
def test_the_range_of_labels_and_of_matrices(size):
    """At both ends of the range results are right, and just beyond they are refused."""
    beyond = size * (0.9 if size < 1 else 1.1)

    def world(unit):
        return [[unit, 0], [0, unit]], [0.75, 0.25]

    assert bayes_ranking(world(size), DCG(gain="linear")).tolist() == [1, 2]
    assert ranking_regret([2, 1], world(size), DCG(gain="linear")) == pytest.approx(
        0.5 * size * (1 - 1 / np.log2(3))
    )
    assert satisfies_dag([[0, size], [0, 0]])
    with pytest.raises(ValueError, match="labels has"):
        bayes_ranking(world(beyond), "dcg")
    with pytest.raises(ValueError, match="u has"):
        satisfies_dag([[0, beyond], [0, 0]])
