"""Surrogates: values against formulas, derivatives against differences, and extreme scores."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.special import expit

from sklearn_rankcal.estimator_checks import check_surrogate
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import (  # both ways to add pairs, to compare them
    SURROGATES,
    Bregman,
    Cosine,
    DifferenceGraph,
    DuchiMackeyJordan,
    PairwiseMargin,
    PointwiseMargin,
    PointwiseSquared,
    Softmax,
    WeightedComparisons,
    _pair_sums,
    get_surrogate,
)
from sklearn_rankcal.surrogates._pair_sums import MARGINS as _MARGINS

from ..surrogate_data import EVERY, MARGINS, draw, itakura_saito, name_of, required_margin

PHI = {
    "logistic": lambda d: np.log(1 + np.exp(-d)),
    "exponential": lambda d: np.exp(-d),
    "hinge": lambda d: max(0.0, 1 - d),
    "squared_hinge": lambda d: max(0.0, 1 - d) ** 2,
    "smooth_hinge": lambda d: 0.0 if d > 1 else (1 - d) ** 2 / 2 if d > 0 else 0.5 - d,
}


def smooth(x):
    return 0.0 if x <= 0 else x * x / 2 if x <= 1 else x - 1 / 2


def pairs(v, s, weight, phi):
    r = range(len(v))
    return sum(weight(v[i], v[j]) * phi(s[i] - s[j], v[i] - v[j]) for i in r for j in r if i != j)


#: The formulas of the docstrings for a single query, written out.
FORMULAS = {
    PointwiseSquared(): lambda v, s: ((v - s) ** 2).sum(),
    PointwiseMargin("logistic", 3.0): lambda v, s: (
        v * np.log(1 + np.exp(-s)) + (3 - v) * np.log(1 + np.exp(s))
    ).sum(),
    PointwiseMargin("exponential", 3.0): lambda v, s: (v * np.exp(-s) + (3 - v) * np.exp(s)).sum(),
    PointwiseMargin("squared_hinge", 3.0, 2.0): lambda v, s: sum(
        a * max(0, 2 - b) ** 2 + (3 - a) * max(0, b) ** 2 for a, b in zip(v, s, strict=True)
    ),
    PointwiseMargin("smooth_hinge", 3.0, 0.4): lambda v, s: sum(
        a * smooth(0.4 - b) + (3 - a) * smooth(b) for a, b in zip(v, s, strict=True)
    ),
    get_surrogate("pairwise_squared"): lambda v, s: pairs(
        v, s, lambda a, b: 0.5, lambda d, y: (y - d) ** 2
    ),
    Softmax(): lambda v, s: -(v * np.log(np.exp(s) / np.exp(s).sum())).sum(),
    Cosine(): lambda v, s: 0.5 * (1 - v @ s / np.sqrt(s @ s)),
    get_surrogate("generalized_kl"): lambda v, s: (
        np.where(v > 0, v * np.log(np.maximum(v, 1e-300)), 0) - v * s - v + np.exp(s)
    ).sum(),
    get_surrogate("duchi_mackey_jordan"): lambda v, s: (-v * s + 0.5 * s**2).sum(),
    Bregman(): lambda v, s: ((v - s) ** 2).sum(),
    get_surrogate("ranksvm"): lambda v, s: pairs(
        v, s, lambda a, b: a > b, lambda d, y: PHI["hinge"](d)
    ),
    get_surrogate("ranknet"): lambda v, s: pairs(
        v, s, lambda a, b: a > b, lambda d, y: PHI["logistic"](d)
    ),
    get_surrogate("rankboost"): lambda v, s: pairs(
        v, s, lambda a, b: a > b, lambda d, y: PHI["exponential"](d)
    ),
} | {
    kind(margin): formula(PHI[margin])
    for margin in MARGINS
    for kind, formula in {
        PairwiseMargin: lambda phi: lambda v, s: pairs(v, s, lambda a, b: a, lambda d, y: phi(d)),
        WeightedComparisons: lambda phi: (
            lambda v, s: pairs(v, s, lambda a, b: max(a - b, 0), lambda d, y: phi(d))
        ),
        DifferenceGraph: lambda phi: (
            lambda v, s: pairs(v, s, lambda a, b: max(a - b, 0), lambda d, y: phi(d))
        ),
        required_margin: lambda phi: (
            lambda v, s: pairs(v, s, lambda a, b: a > b, lambda d, y: phi(d - y))
        ),
    }.items()
}


@pytest.mark.parametrize("surrogate", FORMULAS, ids=name_of)
def test_values_follow_the_formulas(surrogate):
    v, s, queries = draw(np.random.default_rng(0))
    expected = [
        FORMULAS[surrogate](v[queries.codes == q], s[queries.codes == q])
        for q in range(queries.n_queries)
    ]
    np.testing.assert_allclose(
        surrogate.evaluate(v, s, queries).value, expected, rtol=1e-12, atol=1e-12
    )


def positive(surrogate, v):
    """Utilities that a surrogate can take."""
    return v + 0.25 if isinstance(surrogate, Bregman) and surrogate.potential else v


@pytest.mark.parametrize("surrogate", EVERY, ids=name_of)
@pytest.mark.parametrize("seed", range(3))
def test_surrogates_are_what_they_declare(surrogate, seed):
    of_user = isinstance(surrogate, Bregman) and surrogate.potential
    check_surrogate(
        surrogate,
        levels=(0.25, 0.75, 1.25) if of_user else None,
        exact_curvature=not of_user,  # leaves out a term, see the next test
        random_state=seed,
    )


def test_curvature_of_bregman_is_exact_where_the_link_meets_the_utility():
    v = np.array([0.5, 1.0, 3.0])
    queries = Queries.single(3)
    s, step = np.log(v), 1e-6
    high = itakura_saito().evaluate(v, s + step, queries).gradient
    low = itakura_saito().evaluate(v, s - step, queries).gradient
    bend = (high - low) / (2 * step)
    np.testing.assert_allclose(itakura_saito().evaluate(v, s, queries).curvature, bend, rtol=1e-6)


@pytest.mark.parametrize("surrogate", EVERY, ids=name_of)
def test_extreme_scores_give_no_nan(surrogate):
    random = np.random.default_rng(3)
    for _ in range(10):
        v, s, queries = draw(random)
        v = positive(surrogate, v)
        s = random.choice([-1e3, 0.0, 1e3, 1e3 + 1, -500.0], len(s))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if isinstance(surrogate, Bregman) and surrogate.potential:
                continue  # the functions of a user may overflow as they like
            result = surrogate.evaluate(v, s, queries)
        for part in result:
            assert not np.isnan(part).any()
        if surrogate.convex:
            assert (result.curvature >= 0).all()


@pytest.mark.parametrize(
    "surrogate", [one for one in EVERY if "xponential" in name_of(one)], ids=name_of
)
def test_exponential_margins_are_straight_where_sums_could_overflow(surrogate):
    queries, v = Queries.single(2), np.array([1.0, 0.0])
    low, high, *beyond = (
        surrogate.evaluate(v, [0.0, d], queries).value[0]
        for d in (380.0, 390.0, 900.0, 950.0, 1000.0)
    )
    assert high == pytest.approx(low * np.exp(10.0), rel=1e-9)
    assert beyond[0] > high
    first, second = np.diff(beyond)
    assert first > 0 and second == pytest.approx(first, rel=1e-9)
    slope = surrogate.evaluate(v, [0.0, 900.0], queries).gradient[1]
    assert slope == pytest.approx(first / 50, rel=1e-9)
    if not callable(getattr(surrogate, "required", None)):  # a user's function may overflow
        largest = surrogate.evaluate(v * 1e100, [0.0, 900.0], queries)
        assert all(np.isfinite(part).all() for part in largest)
    with pytest.raises(ValueError, match=r"targets must be at most 1e\+100"):
        surrogate.evaluate(v * 1.01e100, [0.0, 900.0], queries)


def test_logistic_margins_far_apart():
    """The fast sum takes exponentials of scores, which must not lose pairs that are far apart."""
    queries = Queries.single(3)
    for far in (400.0, 599.0, 601.0, 2000.0):
        result = PairwiseMargin("logistic").evaluate([1.0, 2.0, 0.0], [0.0, 0.5, far], queries)
        near = 1 * np.log1p(np.exp(0.5)) + 2 * np.log1p(np.exp(-0.5))
        assert result.value[0] == pytest.approx(near + far + 2 * (far - 0.5), rel=1e-14)
        assert result.gradient[2] == pytest.approx(3.0)
        assert result.gradient[0] == pytest.approx(-1 - expit(0.5) + 2 * expit(-0.5))


@pytest.mark.parametrize("r", [511, 512, 513, 1030])
def test_products_of_long_queries_do_not_overflow(r):
    random = np.random.default_rng(r)
    v, s = random.integers(0, 3, r) / 2, random.normal(size=r)
    for surrogate, weights in (
        (PairwiseMargin("logistic"), np.where(np.eye(r), 0.0, v[:, None])),
        (get_surrogate("ranknet"), (v[:, None] > v).astype(float)),
        (WeightedComparisons(), np.maximum(v[:, None] - v, 0)),
    ):
        losses = weights * np.logaddexp(0, s - s[:, None])
        value = surrogate.evaluate(v, s, Queries.single(r)).value[0]
        assert value == pytest.approx(losses.sum(), rel=1e-12)


@pytest.mark.skipif(_pair_sums.kernels.pair_sums is None, reason="needs the compiled kernel")
@pytest.mark.parametrize(
    ("weight", "required"),
    [(None, None), *itertools.product(["binary", "difference"], [None, "binary", "difference"])],
)
@pytest.mark.parametrize("margin", MARGINS)
def test_kernel_and_its_twin_agree(monkeypatch, margin, weight, required):
    random = np.random.default_rng(4)
    v, s, queries = draw(random, sizes=(1, 2, 3, 40, 7, 7), interleaved=False)
    arguments = v, s, queries, _MARGINS[margin]
    fast = _pair_sums.pair_sums(*arguments, weight=weight, required=required)
    shared = _pair_sums.pair_sums(*arguments, weight=weight, required=required, n_jobs=2)
    monkeypatch.setattr(_pair_sums.kernels, "pair_sums", None)
    slow = _pair_sums.pair_sums(*arguments, weight=weight, required=required)
    for one, other, third in zip(fast, slow, shared, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(one, third)


def test_threads_share_the_queries(monkeypatch):
    monkeypatch.setattr(_pair_sums, "_PAIRS_PER_THREAD", 10)
    random = np.random.default_rng(5)
    v, s, queries = draw(random, sizes=(5,) * 30)
    one = PairwiseMargin("logistic").evaluate(v, s, queries)
    several = PairwiseMargin("logistic").evaluate(v, s, queries, n_jobs=3)
    for a, b in zip(one, several, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("working_memory", [1e-4, 1e-2])
def test_numpy_sums_of_long_queries_take_little_memory(monkeypatch, working_memory):
    """A query longer than a block is added a few documents at a time."""
    from sklearn import config_context

    random = np.random.default_rng(6)
    v, s, queries = draw(random, sizes=(3, 70, 31))
    whole = PairwiseMargin("squared_hinge").evaluate(v, s, queries)
    monkeypatch.setattr(_pair_sums.kernels, "pair_sums", None)
    with config_context(working_memory=working_memory):
        parts = PairwiseMargin("squared_hinge").evaluate(v, s, queries)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "surrogate",
    [
        get_surrogate("ranksvm"),
        get_surrogate("ranknet"),
        get_surrogate("rankboost"),
        WeightedComparisons("squared_hinge"),
        WeightedComparisons("logistic", "binary", "difference"),
        WeightedComparisons("exponential", "binary", "difference"),
        DifferenceGraph("smooth_hinge"),
    ],
    ids=name_of,
)
def test_preferences_and_utilities_agree(surrogate):
    """Preferences with the weights v_i - v_j are the same data as utilities."""
    v, s, queries = draw(np.random.default_rng(7))
    i, j = np.nonzero((v[:, None] > v) & (queries.codes[:, None] == queries.codes))
    preferences = Preferences.from_pairs(i, j, v[i] - v[j], queries)
    by_pairs, by_utilities = (surrogate.evaluate(y, s, queries) for y in (preferences, v))
    for a, b in zip(by_pairs, by_utilities, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_difference_graph_cancels_opposite_preferences():
    queries = Queries.from_groups([0, 0, 0, 1, 1])
    winner, loser = np.array([0, 1, 1, 3, 4]), np.array([1, 0, 2, 4, 3])
    preferences = Preferences.from_pairs(winner, loser, np.array([3, 1, 2, 5, 5.0]), queries)
    s = np.array([0.0, 1.0, 2.0, 0.0, 0.0])
    value = DifferenceGraph("hinge").evaluate(preferences, s, queries).value
    assert value.tolist() == [2 * 2 + 2 * 2, 0.0]
    both = WeightedComparisons("hinge").evaluate(preferences, s, queries).value
    assert both.tolist() == [3 * 2 + 1 * 0 + 2 * 2, 10.0]


@pytest.mark.parametrize("surrogate", EVERY, ids=name_of)
def test_no_other_invariance_holds(surrogate):
    v, s, queries = draw(np.random.default_rng(9), sizes=(4, 6))
    v = positive(surrogate, v)
    value = surrogate.evaluate(v, s, queries).value
    shifted = surrogate.evaluate(v, s + queries.broadcast(np.array([0.5, -2.0])), queries).value
    assert np.allclose(value, shifted) == surrogate.shift_invariant
    scaled = surrogate.evaluate(v, 3 * s, queries).value
    assert np.allclose(value, scaled) == surrogate.scale_invariant


def test_bad_input_is_refused():
    queries = Queries.single(2)
    with pytest.raises(ValueError, match="utilities of at most eta=1"):
        PointwiseMargin("logistic", 1.0).evaluate([2.0, 0.0], [0.0, 0.0], queries)
    for eta in (0.0, -1.0, np.inf, np.nan, True, "two"):
        with pytest.raises(ValueError, match="eta must be a finite number > 0"):
            PointwiseMargin("exponential", eta).evaluate([1.0, 0.0], [0.0, 0.0], queries)
    for name in SURROGATES:
        surrogate = get_surrogate(name)
        if surrogate.takes_negative:
            surrogate.evaluate([-1.0, 1.0], [0.0, 0.0], queries)
        else:
            with pytest.raises(ValueError, match=r"\w+ needs utilities >= 0; got -1"):
                surrogate.evaluate([-1.0, 1.0], [0.0, 0.0], queries)
        with pytest.raises(ValueError, match="scores contains NaN"):
            surrogate.evaluate([1.0, 1.0], [0.0, np.nan], queries)
        with pytest.raises(ValueError, match="one number for each of the 2"):
            surrogate.evaluate([1.0], [0.0, 0.0], queries)
    for bad, match in (
        (PairwiseMargin("squared"), "Did you mean 'squared_hinge'"),
        (WeightedComparisons(weight="differences"), "Did you mean 'difference'"),
        (WeightedComparisons(required=3), "Unknown required 3"),
        (Softmax("ndcg"), "Unknown normalization"),
        (PointwiseMargin("squared_hinge", t=0), "t must be a finite number > 0"),
        (PointwiseMargin("hinge"), "Unknown margin 'hinge'"),
        (get_surrogate("duchi_mackey_jordan", penalty="square"), "Did you mean 'squared'"),
        (get_surrogate("duchi_mackey_jordan", nu=0), "nu must be a finite number > 0"),
        (Bregman(np.square), "must all be functions"),
        (Bregman(strong_convexity=0), "strong_convexity must be a finite number > 0"),
    ):
        with pytest.raises(ValueError, match=match):
            bad.evaluate([1.0, 0.0], [0.0, 0.0], queries)
    with pytest.raises(ValueError, match="derivatives must be 0, 1 or 2"):
        Softmax().evaluate([1.0, 0.0], [0.0, 0.0], queries, derivatives=3)
    preferences = Preferences.from_pairs(np.array([0]), np.array([1]), np.ones(1), queries)
    with pytest.raises(ValueError, match="does not take preferences"):
        Softmax().evaluate(preferences, [0.0, 0.0], queries)
    with pytest.raises(ValueError, match="documents of other queries"):
        get_surrogate("ranknet").evaluate(preferences, [0.0, 0.0], Queries.from_groups([0, 1]))


def test_names():
    assert get_surrogate("pointwise_logistic", eta=2.0).eta == 2.0
    own = Softmax()
    assert get_surrogate(own) is own
    with pytest.raises(TypeError, match="has no parameter 'eta'"):
        get_surrogate("ranknet", eta=1)
    with pytest.raises(TypeError, match="has no parameter 'margin'"):
        get_surrogate("ranknet", margin="hinge")  # which would be another surrogate
    assert get_surrogate("required_margin", margin="logistic").margin == "logistic"
    with pytest.raises(ValueError, match="Surrogate 'softmax' has no cutoff"):
        get_surrogate("softmax@10")
    with pytest.raises(ValueError, match="the nearest is 'softmax'"):
        get_surrogate("listnet")
    with pytest.raises(ValueError, match="Did you mean 'pairwise_logistic'"):
        get_surrogate("pairwise_logistics")


@pytest.mark.parametrize("kind", [PointwiseSquared, Cosine, Softmax])
def test_the_normalization_of_listwise_methods_is_not_order_preserving(kind):
    assert kind().order_preserving and "order preserving" in kind().theorem
    assert not kind("own").order_preserving and "proposition 7" in kind("own").theorem


def test_bregman_without_functions_is_least_squares():
    u, queries = [0.5, -1.0], Queries.single(2)
    assert Bregman().minimizer(u, queries).tolist() == u
    assert itakura_saito().minimizer([0.5, 1.0], queries) is None


def test_the_constant_of_duchi_mackey_jordan_is_that_of_least_squares():
    """With nu = 1/2 the surrogate is half the squared error, up to a constant."""
    half = DuchiMackeyJordan(nu=0.5)
    v, s, queries = draw(np.random.default_rng(0))
    squared = (
        PointwiseSquared().evaluate(v, s, queries).value
        - PointwiseSquared().evaluate(v, v, queries).value
    )
    excess = (
        half.evaluate(v, s, queries).value
        - half.evaluate(v, half.minimizer(v, queries), queries).value
    )
    np.testing.assert_allclose(excess, squared / 2, atol=1e-12)
    assert half.constant(3, 1.0) == pytest.approx(PointwiseSquared().constant(3, 1.0) * 2**0.5)


def test_targets_are_those_of_the_loss():
    y, queries = np.array([2.0, 0.0, 1.0, 1.0, 0.0]), Queries.from_groups([0, 0, 0, 1, 1])
    loss = get_loss("ndcg", shrinkage=0.0)
    targets = Softmax().targets(loss, y, queries)
    np.testing.assert_array_equal(targets, loss.encode(y, queries))
    gains = 2**y - 1
    np.testing.assert_array_equal(PointwiseSquared("own").targets(loss, y, queries), gains)
    np.testing.assert_allclose(
        Cosine("own").targets(loss, y, queries), gains / np.sqrt([10, 10, 10, 1, 1])
    )
    shares = np.exp(y) / np.array([np.exp(y[:3]).sum()] * 3 + [np.exp(y[3:]).sum()] * 2)
    np.testing.assert_allclose(Softmax("own").targets(loss, y, queries), shares)
    with pytest.raises(ValueError, match="Use loss='pd_by_scores' or 'map_by_scores'"):
        Softmax().targets(get_loss("pd"), y, queries)
    with pytest.raises(ValueError, match="needs utilities >= 0"):
        Softmax().targets(get_loss("spearman"), y, queries)
    with pytest.raises(ValueError, match="needs the gains of a document"):
        Cosine("own").targets(get_loss("spearman"), y, queries)


def test_eta_follows_the_data():
    surrogate = PointwiseMargin("logistic").resolve(np.array([0.0, 3.0]))
    assert surrogate.eta == 6.0 and PointwiseMargin("logistic").resolve(np.zeros(2)).eta == 1.0
    queries = Queries.single(2)
    alone = PointwiseMargin("logistic").evaluate([0.0, 3.0], [1.0, -1.0], queries).value
    assert alone == surrogate.evaluate([0.0, 3.0], [1.0, -1.0], queries).value
