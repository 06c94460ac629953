"""Minimisers of expected surrogates: sorted as expected utilities, or a counterexample is found."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from sklearn_rankcal.consistency import (
    LabelDistribution,
    bayes_ranking,
    expected_targets,
    find_counterexample,
    is_calibrated_numerically,
    is_low_noise,
    ranking_regret,
    satisfies_dag,
    satisfies_score_condition,
    suboptimality,
    surrogate_regret,
)
from sklearn_rankcal.consistency._regrets import ExpectedSurrogates, minimizers  # many at once
from sklearn_rankcal.losses import DCG, get_loss
from sklearn_rankcal.surrogates import (
    SURROGATES,
    Bregman,
    Cosine,
    DifferenceGraph,
    DuchiMackeyJordan,
    PairwiseMargin,
    PairwiseSquared,
    PointwiseMargin,
    PointwiseSquared,
    Softmax,
    WeightedComparisons,
    get_surrogate,
)

from ..covering import covering
from ..label_distributions import single_edges
from ..surrogate_data import EVERY, MARGINS, name_of, required_margin, surrogate_risk

pytestmark = pytest.mark.simulation

GOOD = [surrogate for surrogate in EVERY if surrogate.order_preserving]
BAD = [one for one in EVERY if not one.order_preserving] + [PointwiseSquared("own")]
#: The margins of theorem 2 of Duchi et al. with weights, and of theorem 3 with required margins.
COMPARISONS = [
    WeightedComparisons(margin, *functions)
    for margin in MARGINS
    for functions in (
        ("difference",),
        ("binary",),
        ("binary", "difference"),
        ("binary", "binary"),
    )
]


def test_every_surrogate_is_in_one_of_the_lists():
    listed = {type(surrogate) for surrogate in GOOD + BAD}
    assert listed == {type(make()) for make in SURROGATES.values()}


# ------------------------------------------------------------------ minimisers


def mixtures(surrogate, n, r, seed):
    """Expected surrogates of n distributions with up to 5 labels, all utilities above 0."""
    rng = np.random.default_rng(seed)
    pool = rng.integers(0, 9, (400, r)) / 4 + 1 / 16
    if surrogate.takes_negative and not (isinstance(surrogate, Bregman) and surrogate.potential):
        pool -= 1.0
    weight = rng.dirichlet(np.full(5, 0.7), n)
    weight[: n // 2] = rng.integers(0, 4, (n // 2, 5)) + np.eye(5)[0]
    weight /= weight.sum(axis=1, keepdims=True)
    label = rng.integers(0, len(pool), (n, 5))
    return ExpectedSurrogates(surrogate.resolve(pool.ravel()), pool, label, weight)


@pytest.mark.parametrize("surrogate", GOOD, ids=name_of)
def test_minimisers_are_sorted_as_expected_utilities(surrogate):
    """1,000 distributions of 3 and of 5 documents."""
    compared = 0
    for r in (3, 5):
        problems = mixtures(surrogate, 1000, r, seed=r)
        u, s = problems.expected, minimizers(problems)
        lead, above = u[:, :, None] - u[:, None], s[:, :, None] - s[:, None]
        apart = lead > 1e-5
        compared += apart.sum()
        assert (above[apart] > 0).all()
        # Documents with equal expected utilities have equal scores.
        assert (np.abs(above[np.abs(lead) < 1e-14]) < 1e-4).all()
    assert compared > 10_000


@pytest.mark.parametrize("surrogate", GOOD + BAD, ids=name_of)
def test_minimisers_are_not_beaten_by_scipy(surrogate):
    """Derivative-free searches from the minimiser, and from afar, find nothing lower."""
    problems = mixtures(surrogate, 1, 3, seed=1)
    s = minimizers(problems)
    least = problems.value(s)
    for k in range(problems.n):
        one = problems.take(np.array([k]))

        def value(scores, one=one):
            return float(one.value(np.atleast_2d(scores))[0])

        for start in (s[k], np.arange(3.0)):
            found = minimize(value, start, method="Nelder-Mead", options={"xatol": 1e-9})
            assert least[k] <= found.fun + 1e-9 * (1 + abs(found.fun))


# ------------------------------------------------------------------ counterexamples


def check_genuine(found, loss, surrogate):
    """The scores are a near-minimiser, and the ranking that they lead to has the stated regret."""
    p = found.distribution
    assert ranking_regret(found.ranks, p, loss) == pytest.approx(found.regret)
    assert ranking_regret(found.best, p, loss) == pytest.approx(0, abs=1e-12)
    nothing = 1e-8 * (1 + surrogate_risk(np.zeros(p.n_documents), p, loss, surrogate))
    assert surrogate_regret(found.u, p, loss, surrogate) < nothing
    assert (np.diff(found.u[np.argsort(found.ranks)]) < 1e-6).all()
    # Among the scores of the rankings that are as bad, some minimise the surrogate.
    assert suboptimality(0.999 * found.regret, p, loss, surrogate) < nothing


@pytest.mark.parametrize(
    "surrogate",
    covering(
        [(surrogate,) for surrogate in BAD],
        lambda one: [getattr(one, name, "") for name in ("name", "margin", "weight", "required")],
    ),
    ids=name_of,
)
def test_a_violation_is_found_for_each_that_is_not_order_preserving(surrogate):
    own = getattr(surrogate, "normalization", "") == "own"
    loss = "ndcg" if own else "dcg"
    found = find_counterexample(loss, surrogate, n_trials=600, random_state=0)
    assert found is not None and found.regret > 0.005
    check_genuine(found, loss, surrogate)
    # Remark 2 of Calauzènes et al. and proposition 7 of Ravikumar et al. are about orders.
    u = expected_targets(found.distribution, loss)
    assert (np.diff(u[np.argsort(found.best)]) < 1e-9).all()
    assert (np.diff(u[np.argsort(found.ranks)]) > 1e-3).any()


@pytest.mark.parametrize(
    ("surrogate", "loss"),
    covering(itertools.product(GOOD, ["dcg", "ndcg", "precision@1", "auc", "recall@2"])),
    ids=lambda value: value if isinstance(value, str) else name_of(value),
)
def test_nothing_is_found_for_those_that_are_order_preserving(surrogate, loss):
    """2,000 distributions of 3 and of 4 documents for each loss."""
    if isinstance(surrogate, Bregman) and surrogate.potential:
        pytest.skip("needs positive utilities")
    for r in (3, 4):
        assert find_counterexample(loss, surrogate, r, n_trials=2000, random_state=r) is None


def with_extreme_parameters():
    """Every calibrated surrogate with a parameter, from 1e-4 to 1e4; eta is above all utilities."""
    for size in (1e-4, 0.01, 1.0, 100.0, 1e4):
        for penalty in ("squared", "quartic", "cosh"):
            yield DuchiMackeyJordan(penalty, nu=size)
        yield PointwiseMargin("squared_hinge", t=size)
        yield PointwiseMargin("smooth_hinge", t=1 / size)
        if size >= 10:
            for margin in ("logistic", "exponential"):
                yield PointwiseMargin(margin, eta=size)
            yield PointwiseMargin("squared_hinge", eta=size, t=1 / size)
            yield PointwiseMargin("smooth_hinge", eta=size, t=size)


@pytest.mark.parametrize("surrogate", with_extreme_parameters(), ids=name_of)
def test_nothing_is_found_at_extreme_parameters(surrogate):
    """Minimisers may differ by little, and the surrogate may be large beside its own changes."""
    assert find_counterexample("dcg", surrogate, n_trials=1500, random_state=0) is None
    check = is_calibrated_numerically(surrogate, "dcg", n_trials=1, random_state=0)
    assert check and 0 < check.margin < np.inf


@pytest.mark.parametrize(
    ("surrogate", "unit"),
    [
        (get_surrogate("ranknet"), 1e-4),
        (get_surrogate("ranksvm"), 1e4),
        (PairwiseMargin("hinge"), 1e-4),
    ],
    ids=lambda value: value if isinstance(value, float) else name_of(value),
)
def test_failures_are_found_in_every_unit_of_the_labels(surrogate, unit):
    """The least notable difference follows the unit, so that no failure hides in a small one."""
    labels = unit * np.array(list(itertools.product(range(4), repeat=3)))
    found = find_counterexample(
        DCG(gain="linear"), surrogate, labels=labels, n_trials=600, random_state=0
    )
    assert found.regret > 1e-3 * unit


@pytest.mark.parametrize("surrogate", [PointwiseSquared(), PairwiseSquared(), DuchiMackeyJordan()])
def test_nothing_is_found_for_spearman(surrogate):
    assert find_counterexample("spearman", surrogate, 4, n_trials=1000, random_state=0) is None


@pytest.mark.parametrize(
    "surrogate",
    covering(
        [(surrogate,) for surrogate in COMPARISONS],
        lambda surrogate: (type(surrogate), *surrogate.get_params().values()),
    ),
    ids=name_of,
)
def test_comparisons_fail_in_low_noise(surrogate):
    """Theorems 2 and 3 of Duchi et al. (2013)."""
    found = find_counterexample(
        "pd", surrogate, condition=is_low_noise, n_trials=1500, random_state=0
    )
    assert found is not None and found.regret > 0.01 and is_low_noise(found.distribution)
    check_genuine(found, "pd", surrogate)
    # Sorting by the net Borda score is right, which low noise implies.
    assert satisfies_score_condition(found.distribution)


def test_the_example_of_theorem_3():
    """The order 1, 3, 2 costs no surrogate regret, although the best order is 1, 2, 3."""
    distribution = single_edges({(0, 1): 0.25, (1, 2): 0.01, (0, 2): 0.5, (2, 0): 0.24})
    assert is_low_noise(distribution)
    assert bayes_ranking(distribution, "pd").tolist() == [1, 2, 3]
    regret = ranking_regret([1, 3, 2], distribution, "pd")
    assert regret == pytest.approx(0.01)
    for margin in MARGINS:
        for surrogate in (required_margin(margin), WeightedComparisons(margin)):
            assert suboptimality(regret / 2, distribution, "pd", surrogate) < 1e-9


@pytest.mark.parametrize(
    ("surrogate", "p", "ndcg", "own"),
    [
        (Cosine("own"), 0.38, [0.5243, 0.5432], [0.6004, 0.5759]),
        (Softmax("own"), 0.35, [0.5481, 0.5220], [0.4815, 0.5185]),
    ],
    ids=["cosine", "cross-entropy"],
)
def test_proposition_7_of_ravikumar_et_al(surrogate, p, ndcg, own):
    """Labels (1, 5) with probability p, and (2, 1)."""
    distribution = LabelDistribution([[1, 5], [2, 1]], [p, 1 - p])
    u = expected_targets(distribution, "ndcg")
    np.testing.assert_allclose(u, ndcg, atol=5e-5)
    problem = ExpectedSurrogates.of_distribution(distribution, get_loss("ndcg"), surrogate)
    np.testing.assert_allclose(problem.expected[0], own, atol=5e-5)
    assert (u[0] > u[1]) != (own[0] > own[1])
    regret = ranking_regret([1, 2] if own[0] > own[1] else [2, 1], distribution, "ndcg")
    assert regret > 0.005
    assert suboptimality(regret, distribution, "ndcg", surrogate) == 0
    consistent = type(surrogate)()
    assert suboptimality(regret, distribution, "ndcg", consistent) > 1e-5


def test_arguments_of_find_counterexample():
    by_name = find_counterexample("dcg", "ranknet", n_trials=300, random_state=0)
    by_object = find_counterexample("dcg", get_surrogate("ranknet"), n_trials=300, random_state=0)
    assert by_name.regret == by_object.regret
    np.testing.assert_array_equal(by_name.u, by_object.u)
    with pytest.raises(TypeError, match="decoder or surrogate object and not the class"):
        find_counterexample("dcg", WeightedComparisons)
    with pytest.raises(ValueError, match="Use loss='pd_by_scores' or 'map_by_scores'"):
        find_counterexample("pd", Softmax())
    with pytest.raises(ValueError, match="needs utilities >= 0"):
        find_counterexample("spearman", Softmax())
    with pytest.raises(ValueError, match="needs the gains of a document"):
        find_counterexample("spearman", Cosine("own"))
    only = find_counterexample(
        "ndcg", Cosine("own"), 2, labels=[[1, 5], [2, 1]], n_trials=500, random_state=0
    )
    assert {tuple(label) for label in only.distribution.labels.tolist()} == {(1, 5), (2, 1)}


# ------------------------------------------------------------------ calibration


@pytest.mark.parametrize(
    ("surrogate", "loss", "condition"),
    covering(
        [
            (get_surrogate("ranknet"), "dcg", None),
            (get_surrogate("ranksvm"), "auc", None),
            (get_surrogate("ranknet"), "precision@1", None),
            (Softmax(), "err", None),
            (PointwiseSquared(), "err", None),
            (PointwiseSquared(), "map_by_scores", None),
            (PairwiseMargin(), "map_by_scores", None),
            (PointwiseSquared(), "pd_by_scores", satisfies_dag),
            *((DifferenceGraph(margin), "pd", satisfies_dag) for margin in MARGINS),
        ],
        lambda surrogate, loss, _: (type(surrogate), loss, getattr(surrogate, "margin", None)),
    ),
    ids=lambda value: getattr(value, "__name__", name_of(value)),
)
def test_every_pair_that_is_not_calibrated_is_found(surrogate, loss, condition):
    """Within a twentieth of the default budget."""
    check = is_calibrated_numerically(
        surrogate, loss, condition=condition, n_trials=1000, n_cones=50, random_state=1
    )
    assert not check and check.counterexample.regret > 0.001 and check.margin == 0
    check_genuine(check.counterexample, loss, surrogate)
    assert "not calibrated" in repr(check)


@pytest.mark.parametrize("surrogate", GOOD, ids=name_of)
def test_those_that_are_calibrated_pass(surrogate):
    if isinstance(surrogate, Bregman) and surrogate.potential:
        pytest.skip("needs positive utilities")
    for loss, r in (("dcg", 3), ("ndcg", 4)):
        check = is_calibrated_numerically(
            surrogate, loss, r, n_trials=500, n_cones=20, random_state=0
        )
        assert check and check.counterexample is None and 0 < check.margin < np.inf
        assert check.n_distributions == (500, 20)
        constant = surrogate.resolve(np.array([7.0, 0.0])).constant(r, 7.0)
        if constant is not None and loss == "dcg":
            assert check.margin >= (constant * get_loss(loss).discount_constant(r)) ** -2


def test_near_minimisers_are_searched():
    """A hinge of pairs ties documents of different utilities, on a part of the distributions.

    With one distribution, the first step seldom meets such a tie. The second step finds those of
    50 distributions.
    """
    surrogate = PairwiseMargin("hinge")
    labels = [[2, 0, 3], [0, 3, 1], [0, 1, 2], [1, 0, 3], [2, 3, 3]]
    results = [
        is_calibrated_numerically(
            surrogate, "dcg", labels=labels, n_trials=1, n_cones=50, random_state=seed
        )
        for seed in range(10)
    ]
    assert not any(results)
    second = [check for check in results if check.n_distributions[1]]
    assert len(second) >= 5
    for check in second:
        check_genuine(check.counterexample, "dcg", surrogate)


def test_labels_that_leave_nothing_to_rank_and_bad_input(monkeypatch):
    monkeypatch.setattr("sklearn_rankcal.consistency._calibration.DRAWS", 2)
    check = is_calibrated_numerically("softmax", "dcg", 2, labels=[[1, 1]], n_trials=5)
    assert check and check.margin == np.inf
    for arguments, message in (
        ({"n_documents": 6}, "from 2 to 5; got 6"),
        ({"n_documents": 2.0}, "n_documents must be a whole number"),
        ({"n_cones": 0}, "n_cones must be a whole number >= 1"),
        ({"n_trials": 0}, "n_trials must be a whole number >= 1"),
        ({"condition": lambda p: False, "n_trials": 5}, "None of .* distributions"),
    ):
        with pytest.raises(ValueError, match=message):
            is_calibrated_numerically("softmax", "dcg", **arguments)
