"""Surrogate regret bounds hold for random and for adversarial scores, and how tight they are."""

import itertools

import numpy as np
import pytest

from sklearn_rankcal.consistency import (
    bayes_ranking,
    bregman_regret_bound,
    expected_targets,
    ranking_regret,
    ranking_risk,
    regret_bound,
    surrogate_regret,
)
from sklearn_rankcal.losses import NDCG, Positional, get_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import (
    SURROGATES,
    Bregman,
    Cosine,
    DuchiMackeyJordan,
    GeneralizedKullbackLeibler,
    PairwiseMargin,
    PairwiseSquared,
    PointwiseMargin,
    PointwiseSquared,
    Softmax,
)

from ..surrogate_data import decreasing_fit, name_of

pytestmark = pytest.mark.simulation

ETA = 2.0
#: psi(x) = x^2 + x^4 / 4, with psi'' >= 2, and the link s^3 + s.
STRONGLY_CONVEX = Bregman(
    lambda x: x**2 + x**4 / 4,
    lambda x: 2 * x + x**3,
    lambda x: 2 + 3 * x**2,
    lambda s: s,
    np.ones_like,
    strong_convexity=2.0,
)
#: Surrogates with a constant.
BOUNDED = [
    PointwiseSquared(),
    PointwiseMargin("logistic", ETA),
    PointwiseMargin("exponential", ETA),
    PointwiseMargin("squared_hinge", ETA),
    PointwiseMargin("squared_hinge", ETA, t=0.5),
    *(PointwiseMargin("smooth_hinge", ETA, 1 / width) for width in (0.3, 0.6, 0.8, 1.0, 3.9)),
    PairwiseSquared(),
    PairwiseMargin("logistic"),
    PairwiseMargin("exponential"),
    GeneralizedKullbackLeibler(),
    Softmax(),
    Cosine(),
    Bregman(),
    STRONGLY_CONVEX,
    DuchiMackeyJordan(),
    DuchiMackeyJordan(nu=3.0),
]


class Climbers:
    """Expected utilities u, discounts phi and scores s of n queries of r documents.

    The scores minimise the surrogate for utilities that are pooled along a random order, so that
    documents tie as in the worst case for that order, plus a disturbance. Ties are sorted in the
    worst way. A quarter of the queries start with two large utilities that nearly tie, in the wrong
    order, and discounts that see the first place only, as if there were two documents.
    """

    def __init__(self, surrogate, n, r, seed):
        self.surrogate, self.n, self.r = surrogate, n, r
        self.rng = np.random.default_rng(seed)
        self.queries = Queries.uniform(n, r)
        self.positive = not isinstance(surrogate, PointwiseSquared | PairwiseSquared | Bregman)
        self.limit = getattr(surrogate, "eta", None)
        self.points = 0
        self.state = self.draw()
        self.best = self.ratio(self.state)

    def draw(self):
        n, r, rng = self.n, self.r, self.rng
        u = rng.gamma(rng.choice([0.3, 1.0, 5.0], (n, 1)), size=(n, r))
        # Half of the queries nearly tie, where the quadratic lower bounds are the best.
        u[: n // 2] = u[: n // 2, :1] * (1 + 0.1 * rng.normal(size=(n // 2, r)))
        phi = -np.sort(-(rng.random((n, r)) ** rng.choice([0.3, 1.0, 4.0], (n, 1))), axis=1)
        phi[rng.random((n, r)).cumsum(axis=1) > r * rng.random((n, 1)) * 2] = 0.0
        order = np.argsort(self.allowed(u), axis=1)
        some = rng.random(n) < 0.5
        order[some] = np.argsort(rng.random((some.sum(), r)), axis=1)
        noise = rng.normal(size=(n, r)) * 10 ** rng.uniform(-5, 0.5, (n, 1))
        noise[rng.random(n) < 0.5] = 0.0
        two = slice(0, n // 4)
        u[two, 2:] *= 1e-6
        phi[two, 1:] = 0.0
        order[two] = np.argsort(-self.allowed(u[two]), axis=1)
        order[two, :2] = order[two, 1::-1]
        noise[two] = 0.0
        return self.allowed(u), phi, order, noise

    def allowed(self, u):
        if not self.positive:
            return u
        u = np.abs(u)
        return np.clip(u, 1e-4, np.inf if self.limit is None else self.limit - 1e-4)

    def moved(self, step):
        """Return a disturbance of the points, smaller for larger steps."""
        u, phi, order, noise = self.state
        rng, size = self.rng, 0.5 * 0.92**step
        u = self.allowed(u * (1 + size * rng.normal(size=u.shape)))
        phi = -np.sort(-np.maximum(phi + size * rng.normal(size=phi.shape) / 2, 0.0), axis=1)
        order = order.copy()
        swapped = rng.random(self.n) < 0.3
        a, b = rng.integers(0, self.r, (2, self.n))
        rows = np.flatnonzero(swapped)
        order[rows, a[rows]], order[rows, b[rows]] = order[rows, b[rows]], order[rows, a[rows]]
        return u, phi, order, noise * rng.uniform(0, 1.2, (self.n, 1))

    def scores(self, state):
        u, _, order, noise = state
        fit = decreasing_fit(np.take_along_axis(u, order, axis=1))
        pooled = np.empty_like(fit)
        np.put_along_axis(pooled, order, fit, axis=1)
        return self.minimizer(pooled) + noise

    def minimizer(self, u):
        if self.surrogate is STRONGLY_CONVEX:
            return u.copy()
        return self.surrogate.minimizer(u.ravel(), self.queries).reshape(u.shape)

    def ratio(self, state):
        """Return regret / bound, and check that it is not above 1."""
        u, phi, _, _ = state
        s = self.scores(state)
        self.points += self.n
        value = self.surrogate.evaluate(u.ravel(), s.ravel(), self.queries).value
        least = self.surrogate.evaluate(u.ravel(), self.minimizer(u).ravel(), self.queries).value
        # The terms of both values have rounding errors, which count as surrogate regret.
        terms = (np.abs(u) * (1 + np.abs(s))).sum(axis=1)
        rounding = 1e-14 * (np.abs(value) + np.abs(least) + terms) * self.r
        excess = np.maximum(value - least, 0.0)
        ranked = np.take_along_axis(u, np.lexsort((u, -s), axis=1), axis=1)
        regret = (phi * (-np.sort(-u, axis=1) - ranked)).sum(axis=1)
        half = self.r // 2
        spread = np.linalg.norm(phi[:, :half] - phi[:, ::-1][:, :half], axis=1)
        constant = np.array([self.surrogate.constant(self.r, row.max(), row.sum()) for row in u])
        assert (regret <= constant * spread * np.sqrt(excess + rounding) + 1e-12).all()
        reliable = (excess > 1e5 * rounding) & (spread > 0)
        bound = constant * spread * np.sqrt(excess)
        return np.where(reliable, regret / np.where(reliable, bound, 1.0), 0.0)

    def climb(self, steps):
        for step in range(steps):
            tried = self.moved(step)
            ratio = self.ratio(tried)
            better = ratio > self.best
            self.state = tuple(
                np.where(better[:, None], new, old)
                for new, old in zip(tried, self.state, strict=True)
            )
            self.best = np.maximum(self.best, ratio)
        return self.best.max()


@pytest.mark.parametrize("surrogate", BOUNDED, ids=name_of)
def test_bounds_hold_for_climbers(surrogate):
    """Each of 50 climbers takes 40 steps, for queries of 2 and 5 documents."""
    for r in (2, 5):
        climbers = Climbers(surrogate, 50, r, seed=r)
        first = climbers.best.mean()
        climbers.climb(40)
        assert climbers.best.mean() > first + 0.05  # the climbers do climb
        assert climbers.points == 2050


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", BOUNDED, ids=name_of)
def test_bounds_hold_on_many_points_and_are_attained(surrogate):
    """40,000 points for each size; run with -s to see the largest ratios."""
    reached = {}
    for r in (2, 3, 5, 8):
        climbers = Climbers(surrogate, 400, r, seed=r)
        reached[r] = float(climbers.climb(100))
        assert climbers.points >= 40_000
    print(name_of(surrogate), {r: round(ratio, 4) for r, ratio in reached.items()})
    assert reached[2] > 0.999 and min(reached.values()) > 0.99


def test_every_surrogate_with_a_constant_is_tested():
    constant = {
        type(surrogate)
        for surrogate in (kind() for kind in SURROGATES.values())
        if surrogate.order_preserving and surrogate.constant(3, 1.0) is not None
    }
    assert constant == {type(surrogate) for surrogate in BOUNDED}


# ------------------------------------------------------------------ constants that are printed


def worst_regret(u, s, phi):
    """The regret of the worst ranking by scores, where documents tie."""
    ranked = u[np.lexsort((u, -s))]
    return float(phi @ (-np.sort(-u) - ranked))


def test_the_printed_constant_of_the_smooth_hinge_is_exceeded():
    """Calauzènes et al., table 2: 4 sqrt(eta / width), for a width of less than eta / 2.

    Their hinge of a width is the width times ours with t = 1 / width, of scores / width.
    """
    surrogate, queries = PointwiseMargin("smooth_hinge", 8.0, t=1 / 3.9), Queries.single(2)
    u, s, phi = np.array([4.0, 2.4]), np.array([0.499, 0.501]) / 3.9, np.array([1.0, 0.0])
    value = surrogate.evaluate(u, s, queries).value[0]
    excess = value - surrogate.evaluate(u, surrogate.minimizer(u, queries), queries).value[0]
    regret = worst_regret(u, s, phi)
    printed = 4 * np.sqrt(8 / 3.9) * np.sqrt(3.9 * excess)
    assert regret == pytest.approx(1.6) and printed == pytest.approx(1.17, abs=0.005)
    assert regret <= regret_bound(Positional(discount=phi), excess, 2, surrogate=surrogate)
    for width in (0.3, 0.6, 1.0):  # below 1 it is true, and twice as large as necessary
        ours = PointwiseMargin("smooth_hinge", 8.0, 1 / width).constant(2, 4.0)
        assert ours / np.sqrt(width) == pytest.approx(4 * np.sqrt(8 / width) / 2)


# ------------------------------------------------------------------ formulas that are printed


def test_softmax_bounds_can_be_equal_for_more_documents():
    for name, equal in (("precision@1", True), ("ndcg", False)):
        one = bregman_regret_bound(name, 0.01, 6, 1 / 1.5, dual_norm=np.inf)
        other = regret_bound(name, 0.01, 6, surrogate="softmax", total=1.5)
        assert (one == pytest.approx(other)) == equal and one <= other + 1e-12


# ------------------------------------------------------------------ lemmas 4.1 and 5.1


def test_discount_constants_follow_the_formula():
    for name in ("dcg", "ndcg@3", "precision@2", "recall@2", "auc", "eru"):
        loss = get_loss(name)
        for r in range(1, 8):
            phi = loss.discounts(r)
            gaps = [phi[i] - phi[r - 1 - i] for i in range(r // 2)]
            for p in (1, 2, 3.5):
                wanted = sum(gap**p for gap in gaps) ** (1 / p)
                assert loss.discount_constant(r, p) == pytest.approx(wanted)
            assert loss.discount_constant(r, np.inf) == pytest.approx(phi[0] - phi[-1])
            assert loss.regret_constant(r) == pytest.approx(np.sqrt(2) * loss.discount_constant(r))
    assert [get_loss("spearman").discount_constant(r) for r in (2, 5)] == pytest.approx(
        [1.0, np.sqrt(20) / (5 * np.sqrt(2))]
    )


# ------------------------------------------------------------------ bounds for distributions


@pytest.mark.parametrize("name", ["dcg", "ndcg@2", "precision@2", "recall@2", "auc", "spearman"])
@pytest.mark.parametrize(
    "surrogate",
    [one for one in BOUNDED if getattr(one, "eta", None) is None and one is not STRONGLY_CONVEX]
    + [PointwiseMargin("logistic"), PointwiseMargin("smooth_hinge")],
    ids=name_of,
)
def test_bounds_hold_for_distributions(name, surrogate):
    """Regret and surrogate regret of random scores, under distributions of labels."""
    if name == "spearman" and not surrogate.takes_negative:
        pytest.skip("the targets of Spearman's rho can be negative")
    rng = np.random.default_rng(0)
    for _ in range(4):
        labels = rng.integers(0, 2 if name in ("precision@2", "recall@2", "auc") else 4, (4, 4))
        labels[0] = [0, 1, 1, 0]  # every measure is defined for it
        distribution = labels, rng.dirichlet(np.ones(4))
        u = expected_targets(distribution, name)
        scores = rng.normal(size=(20, 4))
        scores[:5] = u + 1e-3 * scores[:5]
        ranks = np.argsort(np.argsort(-scores, axis=1), axis=1) + 1
        regret = ranking_regret(ranks, distribution, name)
        excess = surrogate_regret(scores, distribution, name, surrogate)
        fixed = surrogate
        if hasattr(surrogate, "eta"):
            targets = get_loss(name).encode(labels.ravel().astype(float), Queries.uniform(4, 4))
            fixed = surrogate.resolve(targets)
        largest = np.abs(u).max()
        bound = regret_bound(name, excess, 4, surrogate=fixed, largest=largest)
        assert (regret <= bound + 1e-9).all()
        if name in ("auc", "spearman"):
            continue
        best = -ranking_risk(bayes_ranking(distribution, name), distribution, name)
        weaker = regret_bound(name, excess, 4, surrogate=fixed, best_value=best)
        assert (weaker >= bound - 1e-12).all() or isinstance(surrogate, Softmax | Cosine)
        assert (regret <= weaker + 1e-9).all()


def test_corollary_a_2_bounds_the_mean_of_queries_with_different_utilities():
    rng = np.random.default_rng(1)
    r, n, exceeded = 4, 60, 0
    phi = 1 / np.log2(2 + np.arange(r))
    for surrogate in (*map(PairwiseMargin, ("logistic", "exponential")), Softmax(), Cosine()):
        for _ in range(20):
            u = rng.gamma(0.5, size=(n, r)) * 10 ** rng.uniform(-1, 2, (n, 1)) + 1e-3
            order = np.argsort(u, axis=1)
            queries = Queries.uniform(n, r)
            tied = np.empty_like(u)
            fit = decreasing_fit(np.take_along_axis(u, order, axis=1))
            np.put_along_axis(tied, order, fit, axis=1)
            s = surrogate.minimizer(tied.ravel(), queries)
            value = surrogate.evaluate(u.ravel(), s, queries).value
            least = surrogate.evaluate(
                u.ravel(), surrogate.minimizer(u.ravel(), queries), queries
            ).value
            excess = np.maximum(value - least, 0.0)
            regret = [worst_regret(*row, phi) for row in zip(u, s.reshape(n, r), strict=True)]
            best = (-np.sort(-u, axis=1) @ phi).mean()
            bound = regret_bound("dcg", excess.mean(), r, surrogate=surrogate, best_value=best)
            assert np.mean(regret) <= bound
            small = surrogate.constant(r, np.median(u)) * get_loss("dcg").discount_constant(r)
            exceeded += np.mean(regret) > small * np.sqrt(excess.mean())
    assert exceeded > 5  # a typical utility in the place of the largest is not enough


# ------------------------------------------------------------------ theorem 10 in other norms


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
def test_the_reversal_has_the_largest_dual_norm(p):
    for r in (2, 3, 4, 5):
        phi = NDCG().discounts(r)
        far = max(
            np.linalg.norm(phi - phi[list(order)], ord=p)
            for order in itertools.permutations(range(r))
        )
        bound = bregman_regret_bound("ndcg", 0.5, r, 1.0, dual_norm=p)
        assert bound == pytest.approx(far)
        # theorem 10 itself: C_F = 2 ||phi||_*, and C_phi is half the strong convexity
        assert bound <= 2 * np.linalg.norm(phi, ord=p) / np.sqrt(0.5) * np.sqrt(0.5)


def test_theorem_10_contains_the_row_of_bregman_divergences():
    for r in (2, 5, 9):
        one = bregman_regret_bound("ndcg", 0.3, r, 2.0)
        other = regret_bound("ndcg", 0.3, r, surrogate=STRONGLY_CONVEX)
        assert one == pytest.approx(other)


def test_softmax_in_the_1_norm():
    """Pinsker's inequality leads to a bound that is never weaker than table 2, and never fails."""
    rng = np.random.default_rng(2)
    closest = 0.0
    for r in (2, 3, 6):
        phi = NDCG().discounts(r)
        queries = Queries.single(r)
        for _ in range(150):
            u = rng.gamma(1.0, size=r) + 1e-3
            if rng.random() < 0.5:
                u = 1 + 0.05 * rng.normal(size=r)
            order = np.argsort(u)[None]
            s = np.empty(r)
            s[order[0]] = np.log(decreasing_fit(u[order])[0])
            value = (
                Softmax().evaluate(u, s, queries).value[0]
                - Softmax().evaluate(u, np.log(u), queries).value[0]
            )
            excess = max(value, 0.0)
            bound = bregman_regret_bound("ndcg", excess, r, 1 / u.sum(), dual_norm=np.inf)
            table = regret_bound("ndcg", excess, r, surrogate="softmax", total=u.sum())
            regret = worst_regret(u, s, phi)
            assert regret <= bound + 1e-9 and bound <= table + 1e-12
            closest = max(closest, regret / max(bound, 1e-6))
    assert closest > 0.99


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: regret_bound("pd", 1.0, 3, surrogate="softmax", total=1),
            "a positional loss",
        ),
        (
            lambda: regret_bound("err", 1.0, 3, surrogate="softmax", total=1),
            "a positional loss",
        ),
        (lambda: regret_bound("ndcg", 1.0, 3, surrogate="ranknet"), "not order preserving"),
        (
            lambda: regret_bound("ndcg", 1.0, 3, surrogate=PointwiseSquared("own")),
            "proposition 7",
        ),
        (lambda: regret_bound("ndcg", 1.0, 3, surrogate="softmax"), "pass largest, total or"),
        (lambda: regret_bound("ndcg", 1.0, 3, surrogate="pairwise_margin"), "no regret bound of"),
        (
            lambda: regret_bound("ndcg", 1.0, 3, surrogate=DuchiMackeyJordan("quartic"), largest=1),
            "no regret bound of",
        ),
        (
            lambda: regret_bound("ndcg", 1.0, 3, 0.1, surrogate="softmax", total=1),
            "gap is only for",
        ),
        (lambda: regret_bound("ndcg", 1.0, 3, largest=1.0), "largest is only used together"),
        (lambda: regret_bound("ndcg", 1.0, 3, best_value=1.0), "best_value is only used"),
        (
            lambda: regret_bound("ndcg", 1.0, 3, surrogate="softmax", largest=1, best_value=1),
            "best_value replaces",
        ),
        (
            lambda: regret_bound("auc", 1.0, 3, surrogate="softmax", best_value=1),
            "needs a measure with discounts >= 0",
        ),
        (
            lambda: regret_bound("ndcg", 1.0, 3, surrogate="pointwise_logistic", best_value=1),
            "does not determine eta",
        ),
        (
            lambda: regret_bound("ndcg", 1.0, 3, surrogate="softmax", total=-1),
            "total must be finite and >= 0",
        ),
        (
            lambda: regret_bound("ndcg", [1, 2, 3], 3, surrogate="softmax", total=[1, 2]),
            "must have shapes that broadcast",
        ),
        (lambda: regret_bound("ndcg", 1.0, 3, surrogate="listnet"), "the nearest is 'softmax'"),
        (lambda: bregman_regret_bound("pd", 1.0, 3, 1.0), "a positional loss"),
        (lambda: bregman_regret_bound("ndcg", 1.0, 3, 0.0), "strong_convexity must be positive"),
        (lambda: bregman_regret_bound("ndcg", 1.0, 3, 1.0, dual_norm=0.5), "number >= 1"),
        (lambda: bregman_regret_bound("ndcg", 0.5, 0, 1.0), "whole numbers >= 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_shapes_of_surrogate_bounds():
    one = [
        regret_bound("ndcg", excess, r, surrogate="pairwise_logistic", largest=largest)
        for excess, r, largest in ((1.0, 2, 0.5), (0.5, 5, 0.7))
    ]
    several = regret_bound(
        "ndcg", [1.0, 0.5], [2, 5], surrogate="pairwise_logistic", largest=[0.5, 0.7]
    )
    np.testing.assert_allclose(several, one)
    assert isinstance(one[0], float)
    grid = regret_bound("ndcg", [[1.0], [2.0]], [2, 3, 4], surrogate="pointwise_squared")
    assert grid.shape == (2, 3)
    np.testing.assert_allclose(grid, regret_bound("ndcg", [[1.0], [2.0]], [2, 3, 4]))
