"""The model of contests: covariates, position, ties as data, and intervals without resamples."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from scipy.stats import t as student

from sklearn_rankcal import Judgements, aggregate

# private: limits that tests lower
from sklearn_rankcal.aggregation import Borda, BradleyTerry, _contest_model, _contests, _likelihoods
from sklearn_rankcal.aggregation._boards import fit_boards

from ..structure_oracles import judges_sandwich

pd = pytest.importorskip("pandas")


def make_votes(n=400, m=6, p=2, seed=0, ties=0.0, position=0.3):
    """Votes of the model: columns first, second, winner, and covariates."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=m)
    a = rng.integers(m, size=n)
    b = (a + rng.integers(1, m, size=n)) % m
    X = rng.normal(size=(n, p))
    d = scores[a] - scores[b] + X @ np.linspace(0.5, -0.5, p) + position
    noise = rng.logistic(size=n)
    winner = np.where(np.abs(d + noise) < ties, "tie", np.where(d + noise > 0, "first", "second"))
    frame = pd.DataFrame({"first": a, "second": b, "winner": winner})
    return frame, pd.DataFrame(X, columns=[f"x{k}" for k in range(p)])


def read(frame, X=None, position=True, **options):
    return Judgements.from_votes(
        frame["first"], frame["second"], frame["winner"], position=position, covariates=X, **options
    )


def oracle(frame, X, ties, penalty=0.0):
    """Maximum likelihood by a general optimiser, written from the papers' probabilities."""
    items = np.unique(np.append(frame["first"], frame["second"]))
    n, m = len(frame), len(items)
    design = np.zeros((n, m + 1 + X.shape[1]))
    design[np.arange(n), np.searchsorted(items, frame["first"])] = 1
    design[np.arange(n), np.searchsorted(items, frame["second"])] -= 1
    design[:, m] = 1
    design[:, m + 1 :] = X
    win, lose = (frame["winner"] == "first").to_numpy(), (frame["winner"] == "second").to_numpy()
    draw = ~win & ~lose

    def loss(w):
        d, tie = design @ w[:-1], w[-1]
        if ties == "half":
            value = np.where(win, log_expit(d), log_expit(-d))
            value[draw] = (log_expit(d) + log_expit(-d))[draw] / 2
        elif ties == "davidson":
            one, other = np.exp(d / 2), np.exp(-d / 2)
            total = one + other + np.exp(tie)
            value = np.log(np.select([win, lose], [one, other], np.exp(tie)) / total)
        else:
            theta = np.exp(np.exp(tie))  # as in the paper: p = pi_i / (pi_i + theta pi_j)
            one, other = 1 / (1 + theta * np.exp(-d)), 1 / (1 + theta * np.exp(d))
            value = np.log(np.select([win, lose], [one, other], 1 - one - other))
        return -value.sum() + 1e-7 * w[:m].sum() ** 2 + penalty / 2 * (w[:m] ** 2).sum()

    start = np.zeros(design.shape[1] + 1)
    w = start
    for _ in range(3):
        w = minimize(loss, w, method="BFGS", options={"gtol": 1e-7, "maxiter": 2000}).x
    return w[:m] - w[:m].mean(), w[m:-1], w[-1]


@pytest.mark.parametrize("ties", ["half", "davidson", "rao_kupper"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_fit_is_the_maximum_likelihood_of_the_papers(ties, seed):
    frame, X = make_votes(seed=seed, ties=0.5)
    scores, effects, tie = oracle(frame, X.to_numpy(), ties)
    board = aggregate(read(frame, X), BradleyTerry(ties=ties))
    assert_allclose(board.scores[np.argsort(board.items)], scores, atol=1e-4)
    found = {one.name: one.value for one in board.coefficients}
    assert_allclose([found[name] for name in ("position", "x0", "x1")], effects, atol=1e-4)
    if ties == "davidson":
        assert_allclose(found["ties"], tie, atol=1e-4)
    if ties == "rao_kupper":
        assert_allclose(found["ties"], np.exp(tie), atol=1e-4)


def logistic_with_dummies(frame, X):
    """Newton's method for logistic regression with dummies of all items but the first."""
    n, m = len(frame), int(max(frame["first"].max(), frame["second"].max())) + 1
    design = np.zeros((n, m))
    design[np.arange(n), frame["first"]] = 1
    design[np.arange(n), frame["second"]] -= 1
    design = np.column_stack([design[:, 1:], np.ones(n), X])
    y = np.select([frame["winner"] == "first", frame["winner"] == "second"], [1.0, 0.0], 0.5)
    w = np.zeros(design.shape[1])
    for _ in range(50):
        p = expit(design @ w)
        hessian = (design * (p * (1 - p))[:, None]).T @ design
        step = np.linalg.solve(hessian, design.T @ (y - p))
        w += step
        if np.abs(step).max() < 1e-13:
            break
    scores = np.append(0.0, w[: m - 1])
    return scores - scores.mean(), w[m - 1 :], np.linalg.inv(hessian), design, y - p


def test_equal_to_logistic_regression_with_dummies_on_100_random_designs():
    for seed in range(100):
        rng = np.random.default_rng(1000 + seed)
        p = int(rng.integers(0, 4))
        frame, X = make_votes(300, int(rng.integers(3, 8)), p, seed, ties=rng.choice([0.0, 0.4]))
        scores, effects, covariance, *_ = logistic_with_dummies(frame, X.to_numpy())
        board = aggregate(read(frame, X), intervals="information")
        assert_allclose(board.scores[np.argsort(board.items)], scores, atol=1e-8)
        assert_allclose([one.value for one in board.coefficients], effects, atol=1e-8)
        errors = np.sqrt(np.diag(covariance))[len(scores) - 1 :]
        assert_allclose([one.standard_error for one in board.coefficients], errors, atol=1e-8)


def cox_snell(design, outcome, theta, ties):
    """The bias of maximum likelihood of Cox and Snell (1968), equation 20, by differences.

    The columns of the design are those of the leads; the parameter of ties comes last in theta.
    """
    tie = ties != "half"

    def log_p(d, t):
        if ties == "rao_kupper":
            up, down = expit(d - t), expit(-d - t)
            return np.log([up, down, 1 - up - down])
        powers = np.array([d / 2, -d / 2, t + 0 * d] if tie else [d / 2, -d / 2])
        return powers - np.log(np.exp(powers).sum(axis=0))

    def differentiate(f, h=1e-2):
        """Add the derivative by d, and by t, as a new first axis."""
        return lambda d, t: (
            np.array([f(d + h, t) - f(d - h, t), f(d, t + h) - f(d, t - h)][: 1 + tie]) / (2 * h)
        )

    functions = [log_p]
    for _ in range(3):
        functions.append(differentiate(functions[-1]))
    k = design.shape[1]
    at = design @ theta[:k], theta[-1] if tie else 0.0
    p, first, second, third = (f(*at) for f in functions)
    p = np.exp(p)
    n = np.arange(len(design))
    jacobian = np.zeros((1 + tie, len(design), k + tie))
    jacobian[0, :, :k] = design
    if tie:
        jacobian[1, :, k] = 1.0
    observed = second[:, :, outcome, n]
    V = np.linalg.inv(-np.einsum("anr,abn,bns->rs", jacobian, observed, jacobian))
    spread = np.einsum("anr,rs,bns->abn", jacobian, V, jacobian)
    expected = (p * third).sum(axis=3)
    product = (p * second[:, None] * first[None, :, None]).sum(axis=3)  # [r, t, u]
    pull = np.einsum("tun,rtun->rn", spread, expected + 2 * product) / 2
    return V @ np.einsum("rn,rnk->k", pull, jacobian)


@pytest.mark.parametrize("ties", ["half", "davidson", "rao_kupper"])
def test_intervals_of_effects_allow_for_the_bias_of_maximum_likelihood(ties):
    frame, X = make_votes(300, 12, seed=4, ties=0.0 if ties == "half" else 0.5)
    board = aggregate(read(frame, X), BradleyTerry(ties=ties, tol=1e-10), intervals="information")
    design = logistic_with_dummies(frame, X.to_numpy())[3]
    outcome = frame["winner"].map({"first": 0, "second": 1, "tie": 2}).to_numpy()
    scores = board.scores[np.argsort(board.items)]
    values = [one.value for one in board.coefficients]
    bias = cox_snell(design, outcome, np.append(scores[1:] - scores[0], values), ties)
    moved = [one.value - (one.low + one.high) / 2 for one in board.coefficients]
    assert_allclose(moved, bias[11:], rtol=1e-3)
    assert np.abs(moved).max() > 0.01


@pytest.mark.parametrize("clustered", [False, True])
def test_robust_errors_are_the_sandwich(clustered):
    frame, X = make_votes(ties=0.4, seed=3)
    judge = np.random.default_rng(0).integers(25, size=len(frame))
    _, _, inverse, design, residual = logistic_with_dummies(frame, X.to_numpy())
    scores = design * residual[:, None]
    n, k = design.shape
    expected = inverse @ scores.T @ scores @ inverse * (n - 1) / (n - k)
    variance, degrees = expected[0, 0], np.inf  # the dummy of item 1, relative to item 0
    if clustered:
        m = k - 2
        first, second = frame["first"].to_numpy(), frame["second"].to_numpy()
        p = np.select([frame["winner"] == "first", frame["winner"] == "second"], [1.0, 0.0], 0.5)
        p = p - residual
        expected, free = judges_sandwich(
            first, second, design[:, m - 1 :], p * (1 - p), residual, judge, m
        )
        variance = expected[0, 0] + expected[1, 1] - 2 * expected[0, 1]
        degrees = min(free[:2])
    votes = read(frame, X, judge=judge if clustered else None)
    board = aggregate(votes, intervals="robust")
    errors = [one.standard_error for one in board.coefficients]
    assert_allclose(errors, np.sqrt(np.diag(expected))[-3:], atol=1e-8)
    item = {name: k for k, name in enumerate(board.items.tolist())}
    difference = board.scores[item[1]] - board.scores[item[0]]
    above = board.probability_above(1, 0)
    assert_allclose(above, student(degrees).cdf(difference / np.sqrt(variance)), atol=1e-7)


def test_weights_are_no_numbers_of_votes():
    frame, _ = make_votes(300, 5, 0, seed=9)
    plain = aggregate(read(frame), intervals="robust")
    doubled = aggregate(read(frame, weight=np.full(300, 2.0)), intervals="robust")
    assert_allclose(doubled.score_high - doubled.score_low, plain.score_high - plain.score_low)
    twice = aggregate(read(frame, count=np.full(300, 2)), intervals="robust")
    narrower = (twice.score_high - twice.score_low) / (plain.score_high - plain.score_low)
    assert_allclose(narrower, np.sqrt(0.5), rtol=0.02)
    with pytest.raises(ValueError, match="weights of these votes as numbers"):
        aggregate(read(frame, weight=np.full(300, 2.0)), intervals="information")
    assert aggregate(read(frame, count=np.full(300, 2)), intervals="information") is not None


def test_features_of_items_with_and_without_own_effects():
    frame, _ = make_votes(2000, 8, 1, seed=2, position=0.0)
    rng = np.random.default_rng(0)
    features = pd.DataFrame({"price": rng.normal(size=8)}, index=range(8))
    votes = read(frame, None, position=False, item_features=features)
    with pytest.raises(ValueError, match="'price' is a sum of differences of the items"):
        aggregate(votes)
    by_price = aggregate(votes, BradleyTerry(own_effects=False))
    slope = by_price.coefficients[0].value
    centred = features["price"] - features["price"].mean()
    assert_allclose(by_price.scores, slope * centred[by_price.items], atol=1e-10)
    x = features["price"].to_numpy()
    gap = x[frame["first"]] - x[frame["second"]]
    y = frame["winner"] == "first"
    w = minimize(lambda w: -np.where(y, log_expit(w * gap), log_expit(-w * gap)).sum(), 0.0).x[0]
    assert_allclose(slope, w, atol=1e-5)
    # a strong penalty leaves little of the own effects, and a weak one the scores without features
    shrunk = aggregate(votes, BradleyTerry(penalty=1e6))
    assert_allclose(shrunk.scores, by_price.scores, atol=1e-2)
    free = aggregate(read(frame, position=False))
    assert_allclose(aggregate(votes, BradleyTerry(penalty=1e-4)).scores, free.scores, atol=1e-3)


def test_features_of_items_without_votes_are_left_out_with_a_warning_or_ranked():
    one, other = ["a", "b", "b", "a", "c"], ["b", "a", "c", "c", "a"]
    prices = pd.DataFrame({"price": [1.0, 8.0, 2.0, 4.0, 9.0]}, index=["a", "new", "b", "c", "z"])
    with pytest.warns(UserWarning, match="has 2 items without votes, such as 'new'"):
        votes = Judgements.from_votes(one, other, one, item_features=prices)
    assert votes.items.tolist() == ["a", "b", "c"]
    method = BradleyTerry(own_effects=False)
    board = aggregate(votes, method)
    votes = Judgements.from_votes(one, other, one, item_features=prices, items=prices.index)
    ranked = aggregate(votes, method)
    slope = ranked.coefficients[0].value
    assert_allclose(slope, board.coefficients[0].value, atol=1e-10)
    assert_allclose(ranked.scores, slope * (prices["price"] - prices["price"].mean()), atol=1e-10)


@pytest.mark.parametrize("kind", ["information", "robust"])
def test_intervals_without_own_effects_are_those_of_the_features(kind):
    frame, _ = make_votes(2000, 8, 1, seed=2, position=0.0)
    price = np.random.default_rng(0).normal(size=8)
    features = pd.DataFrame({"price": price}, index=range(8))
    votes = read(frame, None, position=False, item_features=features)
    board = aggregate(votes, BradleyTerry(own_effects=False), intervals=kind)
    slope, x = board.coefficients[0], price[frame["first"]] - price[frame["second"]]
    p = expit(slope.value * x)
    bread = 1 / (x**2 * p * (1 - p)).sum()
    residual = (frame["winner"] == "first") - p
    meat = (x**2 * residual**2).sum() if kind == "robust" else 1 / bread
    error = np.sqrt(bread * meat * bread)  # one parameter, so that n - k is n - 1
    assert_allclose(slope.standard_error, error, rtol=1e-6)
    half = 1.959964 * error * np.abs(price - price.mean())[board.items]
    assert_allclose(board.score_high - board.scores, half, rtol=1e-5)


def test_the_bootstrap_draws_votes_with_their_covariates():
    frame, X = make_votes(300, 4, 1, seed=4, ties=0.3)
    votes = read(frame, X)
    analytic = aggregate(votes, intervals="robust")
    drawn = aggregate(votes, n_resamples=200)
    width = analytic.score_high - analytic.score_low
    assert_allclose(drawn.score_high - drawn.score_low, width, rtol=0.25)
    assert_allclose(drawn.scores, analytic.scores)


def test_queries_are_fitted_one_by_one():
    frame, X = make_votes(seed=8)
    groups = np.where(np.arange(len(frame)) % 3 == 0, "a", "b")
    both = aggregate(read(frame, X, groups=groups), intervals="robust")
    mine = groups == "b"
    alone = aggregate(read(frame[mine], X[mine]), intervals="robust")
    chosen = both.groups == "b"
    assert_allclose(both.scores[chosen], alone.scores, atol=1e-9)
    assert_allclose(both.score_low[chosen], alone.score_low, atol=1e-9)
    effects = [one.value for one in both.coefficients if one.group == "b"]
    assert_allclose(effects, [one.value for one in alone.coefficients], atol=1e-9)
    assert_allclose(both.probability_matrix("b"), alone.probability_matrix(), atol=1e-9)


@pytest.mark.parametrize("kind", ["information", "robust"])
def test_an_item_without_votes_has_no_interval(kind):
    pairs = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")]
    with pytest.warns(UserWarning, match="compares 1 of the items"):
        board = aggregate(Judgements.from_pairs(pairs, items=list("abcd")), intervals=kind)
    assert np.isnan([board.scores[3], board.score_low[3], board.score_high[3]]).all()
    assert np.isfinite(board.score_low[:3]).all()


def bad(match, error=ValueError, method="btl", **options):
    return pytest.param(options, method, error, match, id=match[:30])


@pytest.mark.parametrize(
    ("options", "method", "error", "match"),
    [
        bad("'c' is 2 in all votes", X=pd.DataFrame({"c": np.full(60, 2.0)})),
        bad("'c' is 0 in all votes", X=pd.DataFrame({"c": np.zeros(60)})),
        bad("'c' is nan in 1 row, first in row 3",
            X=pd.DataFrame({"c": np.where(np.arange(60) == 3, np.nan, 1.0)})),
        bad("'c' must be numbers", X=pd.DataFrame({"c": ["short"] * 60})),
        bad("Two covariates have the name 'position'",
            X=pd.DataFrame({"position": np.arange(60)})),
        bad("covariates has 59 rows", X=np.ones((59, 1))),
        bad("row 2 has 2", position=np.arange(60) % 3),
        bad("position has 3 entries", position=[1, 0, 1]),
        bad("index of item_features lacks 3 items",
            item_features=pd.DataFrame({"price": [1.0]}, index=[0])),
        bad("must be a pandas data frame", TypeError, item_features=np.ones((4, 1))),
        bad("mixes time stamps", time=[pd.Timestamp("2026-01-01")] * 59
            + [pd.Timestamp("2026-01-01", tz="UTC")]),
        bad("time is missing for 1 vote", time=np.append(np.nan, np.arange(59.0))),
        bad("judgement cannot be combined", judgement=np.arange(60)),
        bad("Borda() cannot use", method=Borda()),
        bad("Unknown ties 'newman'", method=BradleyTerry(ties="newman")),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_name(options, method, error, match):
    frame, _ = make_votes(60, 4, 1)
    with pytest.raises(error, match=re.escape(match)):
        aggregate(read(frame, **{"position": True, "X": None, **options}), method)


def test_intervals_without_resamples_are_refused_where_there_are_none():
    frame, _ = make_votes(60, 4, 1)
    votes = read(frame, position=False)
    with pytest.raises(ValueError, match="needs BradleyTerry"):
        aggregate(votes, "borda", intervals="robust")
    with pytest.raises(ValueError, match="not both"):
        aggregate(votes, intervals="robust", n_resamples=10)
    with pytest.raises(ValueError, match="orders or selections"):
        aggregate(Judgements.from_orders([[1, 2, 3], [2, 1, 3]]), intervals="robust")
    with pytest.raises(ValueError, match="several judges"):
        aggregate(read(frame, judge=[0] * 60), intervals="robust")
    with pytest.raises(ValueError, match="needs the errors of the scores"):
        aggregate(votes, n_resamples=10).may_be_first()


def test_a_covariate_that_decides_all_votes_leaves_the_position_without_ends():
    frame, _ = make_votes(200, 4, 1)
    X = pd.DataFrame({"fate": np.where(frame["winner"] == "first", 1.0, -1.0)})
    board = aggregate(read(frame, X), intervals="robust")
    position, fate = board.coefficients
    assert (position.low, position.high, fate.high) == (-np.inf, np.inf, np.inf)
    assert np.isfinite(fate.low)
    assert "only the penalty does: fate" in str(board)


def test_a_collinear_covariate_is_named():
    frame, X = make_votes(200, 4, 2)
    X["sum"] = X["x0"] + X["x1"]
    with pytest.raises(ValueError, match="'sum' is a sum of 'position', 'x0', 'x1', and"):
        aggregate(read(frame, X))


def test_simultaneous_ranks_of_two_items_are_the_two_sided_test():
    votes = [("a", "b")] * 60 + [("b", "a")] * 40
    board = aggregate(votes, intervals="information")
    z = 2 * board.scores[0] * np.sqrt(100 * 0.24)
    assert z == pytest.approx(np.log(1.5) * np.sqrt(24), rel=1e-6)  # 1.986: above 1.96
    assert board.simultaneous_ranks()[1].tolist() == [1, 2]
    assert board.may_be_first().tolist() == ["a"]
    closer = aggregate([("a", "b")] * 57 + [("b", "a")] * 43, intervals="information")
    assert closer.simultaneous_ranks()[1].tolist() == [2, 2]
    assert closer.may_be_first().tolist() == ["a", "b"]


@pytest.mark.slow
@pytest.mark.parametrize("m", [5, 15])
def test_simultaneous_ranks_hold_for_all_items_at_once(m):
    joint, best, single, n = 0, 0, 0, 300
    scores = np.linspace(0.3, -0.3, m)
    for seed in range(n):
        rng = np.random.default_rng(seed)
        a = rng.integers(m, size=60 * m)
        b = (a + rng.integers(1, m, size=60 * m)) % m
        won = rng.random(60 * m) < expit(scores[a] - scores[b])
        votes = Judgements.from_votes(
            a, b, np.where(won, "model_a", "model_b"), items=list(range(m))
        )
        board = aggregate(votes, intervals="information")
        rows = board.rows_of()
        low, high = board.simultaneous_ranks()
        truth = board.items[rows] + 1
        joint += bool(((low <= truth) & (truth <= high)).all())
        best += 0 in board.may_be_first()
        marginal = (board.rank_low <= board.items + 1) & (board.items + 1 <= board.rank_high)
        single += bool(marginal.all())
    assert joint >= 0.95 * n - 3 * np.sqrt(0.95 * 0.05 * n)
    assert best >= 0.95 * n - 3 * np.sqrt(0.95 * 0.05 * n)
    if m == 15:
        assert single < joint  # intervals for each item by itself fail for some item more often


def ranker_data(frame, X):
    """Each vote as a query of two rows, whose features differ by the covariates of the vote."""
    from sklearn_rankcal import preference_labels

    n = len(frame)
    rows = np.zeros((2 * n, X.shape[1]))
    rows[::2] = X
    first = (frame["winner"] == "first").to_numpy()
    tie = (frame["winner"] == "tie").to_numpy()
    one, other = 2 * np.arange(n), 2 * np.arange(n) + 1
    pairs = np.column_stack([np.where(first, one, other), np.where(first, other, one)])
    pairs = np.concatenate([pairs, pairs[tie][:, ::-1]])
    weight = np.concatenate([np.where(tie, 0.5, 1.0), np.full(tie.sum(), 0.5)])
    groups = np.repeat(np.arange(n), 2)
    return rows, preference_labels(pairs, groups, weight=weight)


def test_a_linear_ranker_finds_the_same_coefficients():
    """Votes of two items whose scores are equal, so that only the covariates are left."""
    from sklearn_rankcal import LinearRanker
    from sklearn_rankcal.surrogates import WeightedComparisons

    frame, X = make_votes(500, 2, 2, seed=1, ties=0.4, position=0.0)
    features = pd.DataFrame({"zero": [0.0, 1.0]}, index=[0, 1])
    votes = read(frame, X, position=False, item_features=features)
    board = aggregate(votes, BradleyTerry(own_effects=False))
    gap = features["zero"].to_numpy()
    table = np.column_stack([X, gap[frame["first"]] - gap[frame["second"]]])
    rows, y = ranker_data(frame, table)
    ranker = LinearRanker(WeightedComparisons(), loss="pd_by_scores", alpha=1e-9, tol=1e-10)
    coef = ranker.fit(rows, y).coef_
    assert_allclose(coef, [one.value for one in board.coefficients], atol=1e-5)


@pytest.mark.parametrize("columns", ["items", "features"])
def test_a_linear_ranker_finds_the_plackett_luce_model_with_features(columns):
    """Each choice of an order is a query: the items that are left, of which one is chosen."""
    from sklearn_rankcal import LinearRanker
    from sklearn_rankcal.surrogates import Softmax

    rng = np.random.default_rng(0)
    m, n, k = 6, 200, 4
    features = rng.normal(size=(m, 2))
    utility = features @ [1.0, -0.5] + rng.gumbel(size=(n, m))
    shown = np.argsort(rng.random((n, m)), axis=1)[:, :k]
    best = np.argsort(-np.take_along_axis(utility, shown, 1), axis=1)
    orders = np.take_along_axis(shown, best, axis=1)
    left = [order[p:] for order in orders for p in range(k - 1)]
    table = np.eye(m)[:, 1:] if columns == "items" else features
    rows, sizes = table[np.concatenate(left)], [len(some) for some in left]
    y = np.concatenate([np.arange(size) == 0 for size in sizes]).astype(int)
    groups = np.repeat(np.arange(len(left)), sizes)
    coef = LinearRanker(Softmax(), alpha=1e-10, tol=1e-12).fit(rows, y, groups=groups).coef_
    if columns == "items":
        board = aggregate(Judgements.from_orders(orders.tolist()), "plackett_luce")
        scores = np.append(0.0, coef)
        assert_allclose(board.scores[np.argsort(board.items)], scores - scores.mean(), atol=1e-6)
        return

    def loss(w):
        s = features @ w
        return sum(np.log(np.exp(s[some]).sum()) - s[some[0]] for some in left)

    assert_allclose(coef, minimize(loss, np.zeros(2), options={"gtol": 1e-8}).x, atol=1e-5)


def test_surrogates_that_leave_out_weights_or_ties_say_so():
    from sklearn_rankcal import LinearRanker

    frame, X = make_votes(300, 2, 1, seed=1, ties=0.4, position=0.0)
    rows, y = ranker_data(frame, X.to_numpy())
    with pytest.warns(UserWarning, match="counts each preferred pair once"):
        LinearRanker("ranknet", loss="pd_by_scores").fit(rows, y)
    with pytest.warns(UserWarning, match="the same weight in both directions"):
        LinearRanker("difference_graph", loss="pd_by_scores").fit(rows, y)


#: Agresti (2002), Categorical Data Analysis, table 10.10: wins of the home team and of the visitors
#: among the teams of the American League's Eastern Division in 1987, in the order of `TEAMS`.
TEAMS = ("Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore")
HOME = [[None, (4, 3), (4, 2), (4, 3), (6, 1), (4, 2), (6, 0)],
        [(3, 3), None, (4, 2), (4, 3), (6, 0), (6, 1), (4, 3)],
        [(2, 5), (4, 3), None, (2, 4), (4, 3), (4, 2), (6, 0)],
        [(3, 3), (5, 1), (2, 5), None, (4, 3), (4, 2), (6, 1)],
        [(5, 1), (2, 5), (3, 3), (4, 2), None, (5, 2), (6, 0)],
        [(2, 5), (3, 3), (3, 4), (4, 3), (4, 2), None, (2, 4)],
        [(2, 5), (1, 5), (1, 6), (2, 4), (1, 6), (3, 4), None]]  # fmt: skip


def test_baseball_with_home_advantage_is_as_printed():
    """Table 10.11 of Agresti, which BradleyTerry2 reproduces."""
    first, second, winner, count = [], [], [], []
    for i, row in enumerate(HOME):
        for j, wins in enumerate(row):
            for k in range(2 if wins else 0):
                first.append(TEAMS[i])
                second.append(TEAMS[j])
                winner.append(TEAMS[i] if k == 0 else TEAMS[j])
                count.append(wins[k])
    plain = aggregate(
        Judgements.from_votes(first, second, winner, count=count), intervals="information"
    )
    scores = np.sort(plain.scores) - plain.scores.min()
    assert_allclose(scores[1:], [0.68, 1.11, 1.25, 1.29, 1.44, 1.58], atol=0.0051)
    board = aggregate(Judgements.from_votes(first, second, winner, count=count, position=True))
    strength = np.sort(np.exp(board.scores))
    printed = [0.044, 0.088, 0.137, 0.157, 0.164, 0.190, 0.220]
    assert_allclose(strength / strength.sum(), printed, atol=0.00051)
    assert board.coefficients[0].value == pytest.approx(0.302, abs=0.00051)


def test_journal_citations_are_as_printed():
    """Stigler (1994); the coefficients are those of the vignette of BradleyTerry2."""
    names = ["Biometrika", "Comm Statist", "JASA", "JRSS-B"]
    cited = [[714, 730, 498, 221], [33, 425, 68, 17], [320, 813, 1072, 142], [284, 276, 325, 188]]
    pairs = [(one, other) for one in names for other in names if one != other]
    count = [cited[names.index(one)][names.index(other)] for one, other in pairs]
    board = aggregate(Judgements.from_pairs(pairs, count=count), intervals="information")
    found = dict(zip(board.items.tolist(), board.scores.tolist(), strict=True))
    relative = [found[name] - found["Biometrika"] for name in names[1:]]
    assert_allclose(relative, [-2.949, -0.480, 0.269], atol=0.00051)


# ---------------------------------------------------------------- ways to the same fit


@pytest.mark.parametrize("ties", ["half", "davidson", "rao_kupper"])
@pytest.mark.parametrize(
    ("module", "constant", "value"),
    [(_contests, "_DENSE", 0), (_likelihoods, "BLOCK", 7)],
    ids=["conjugate gradients", "blocks"],
)
def test_fits_of_many_items_and_votes_are_those_of_few(ties, module, constant, value, monkeypatch):
    frame, X = make_votes(600, 12, ties=0.4, seed=5)
    boards = []
    for change in (False, True):
        if change:
            monkeypatch.setattr(module, constant, value)
        board = aggregate(read(frame, X), BradleyTerry(ties=ties), intervals="robust")
        errors = [one.standard_error for one in board.coefficients]
        values = [one.value for one in board.coefficients]
        boards.append(np.concatenate([board.scores, board.score_low, values, errors]))
    assert_allclose(boards[1], boards[0], atol=1e-8)


@pytest.mark.filterwarnings("ignore:BradleyTerry did not converge")
@pytest.mark.parametrize("max_iter", [1, 100])
def test_a_bad_start_is_no_obstacle(max_iter):
    """Scores that are far from the truth, where votes hardly bend the likelihood."""
    frame, X = make_votes(600, 12, seed=5)
    board = fit_boards(read(frame, X), BradleyTerry())[0]
    start = board.fit.weights.copy()
    start[:12] += 30 * np.linspace(1, -1, 12)
    found = _contest_model.fit_contests(
        board.fit.votes,
        12,
        ("position", "x0", "x1"),
        BradleyTerry(max_iter=max_iter),
        np.zeros(12),
        np.zeros(12, dtype=int),
        start=start,
    ).weights
    if max_iter == 1:
        change = found - start
        assert np.ptp(change[:12]) <= 10 + 1e-9  # a step changes no parameter by more than 5
    else:
        assert_allclose(found, board.fit.weights, atol=1e-8)


def test_features_without_own_effects_of_many_items():
    """Five thousand items, of which elimination would need minutes."""
    rng = np.random.default_rng(0)
    price = rng.normal(size=5000)
    a = np.append(np.arange(5000), rng.integers(5000, size=5000))
    b = (a + rng.integers(1, 5000, size=10_000)) % 5000
    won = rng.random(10_000) < expit(0.7 * (price[a] - price[b]))
    votes = Judgements.from_votes(
        a, b, np.where(won, a, b), item_features=pd.DataFrame({"price": price})
    )
    board = aggregate(votes, BradleyTerry(own_effects=False))
    y, x = won.astype(float), price[a] - price[b]
    w = 0.0
    for _ in range(30):
        p = expit(w * x)
        w += x @ (y - p) / (x**2 @ (p * (1 - p)))
    assert_allclose(board.coefficients[0].value, w, atol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_a_covariate_does_not_matter(unit):
    frame, X = make_votes(300, 5, seed=2)
    plain = aggregate(read(frame, X), intervals="robust")
    scaled = aggregate(read(frame, X * [unit, 1.0]), intervals="robust")
    assert_allclose(scaled.scores, plain.scores, atol=1e-8)
    assert_allclose(scaled.score_low, plain.score_low, atol=1e-8)
    one, other = scaled.coefficients[1], plain.coefficients[1]
    assert_allclose([one.value * unit, one.low * unit], [other.value, other.low], atol=1e-8)
    assert f"effect of x0: {one.value:.{4 if unit < 1 else 3}{'f' if unit < 1 else 'g'}}" in str(
        scaled
    )


# ---------------------------------------------------------------- predictions


@pytest.mark.parametrize("ties", ["half", "davidson", "rao_kupper"])
def test_predictions_of_a_vote_are_those_of_the_model(ties):
    frame, X = make_votes(600, 5, ties=0.4, seed=1)
    board = aggregate(read(frame, X), BradleyTerry(ties=ties))
    effect = {one.name: one.value for one in board.coefficients}
    score = dict(zip(board.items.tolist(), board.scores.tolist(), strict=True))
    d = score[3] - score[1] + effect["position"] - 2 * effect["x1"]
    if ties == "half":
        expected = [expit(d), np.nan, expit(-d)]  # a model without ties does not predict them
    elif ties == "davidson":
        shares = np.exp([d / 2, effect["ties"], -d / 2])
        expected = shares / shares.sum()
    else:
        win, lose = expit(d - effect["ties"]), expit(-d - effect["ties"])
        expected = [win, 1 - win - lose, lose]
    found = np.array(board.predict_vote(3, 1, {"position": 1, "x1": -2}), dtype=float)
    assert_allclose(found, expected, atol=1e-12)
    turned = np.array(board.predict_vote(1, 3, {"position": -1, "x1": 2}), dtype=float)
    assert_allclose(turned, expected[::-1], atol=1e-12)


def test_predictions_from_features_and_what_cannot_be_predicted():
    prices = pd.DataFrame({"price": [1.0, 2.0, 4.0]}, index=["a", "b", "c"])
    pairs = [("a", "b")] * 5 + [("b", "a")] * 2 + [("b", "c")] * 4 + [("c", "b")]
    one, other = zip(*pairs, strict=True)
    votes = Judgements.from_votes(one, other, one, item_features=prices)
    board = aggregate(votes, BradleyTerry(own_effects=False))
    slope = board.coefficients[0].value
    assert_allclose(board.predict_vote("a", "c").first, expit(-3 * slope))
    for call, match in (
        (lambda: board.predict_vote("a", "d"), "no item 'd'"),
        (lambda: board.predict_vote("a", "b", {"price": 1}), "no covariate 'price'"),
        (lambda: board.rescale().predict_vote("a", "b"), "before rescale"),
        (
            lambda: aggregate(pairs, "borda").predict_vote("a", "b"),
            "needs the scores of BradleyTerry or PlackettLuce",
        ),
    ):
        with pytest.raises(ValueError, match=match):
            call()
    frame, X = make_votes(60, 4, 1)
    with pytest.raises(ValueError, match="'x0' must be a finite number; got nan"):
        aggregate(read(frame, X)).predict_vote(0, 1, {"x0": np.nan})
    with pytest.warns(UserWarning, match="do not connect"):
        apart = aggregate([("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")])
    with pytest.raises(ValueError, match="do not connect 'a' and 'c'"):
        apart.predict_vote("a", "c")
