"""The model of contests: covariates, position, ties as data, and intervals without resamples."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from scipy.stats import norm
from scipy.stats import t as student

from sklearn_rankcal import Judgements, aggregate

# private: limits that tests lower
from sklearn_rankcal.aggregation import Borda, BradleyTerry, _contest_model, _contests, _likelihoods
from sklearn_rankcal.aggregation._boards import fit_boards

from ..structure_oracles import vote_likelihood

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


@pytest.mark.parametrize("ties", ["half", "davidson", "rao_kupper"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_fit_is_the_maximum_likelihood_of_the_papers(ties, seed):
    frame, X = make_votes(seed=seed, ties=0.5)
    names = {"first": "model_a", "second": "model_b", "tie": "tie"}
    words, columns = frame["winner"].map(names).to_numpy(), np.column_stack([np.ones(400), X])
    sides = frame["first"].to_numpy(), frame["second"].to_numpy()
    value, w = vote_likelihood(*sides, words, columns, ties, 2e-7), np.full(10, 0.1)
    for _ in range(3):
        w = minimize(lambda w: -value(w, 6), w, method="BFGS", options={"gtol": 1e-7}).x
    scores, effects, tie = w[:6] - w[:6].mean(), w[6:9], w[-1]
    board = aggregate(read(frame, X), BradleyTerry(ties=ties))
    assert_allclose(board.scores[np.argsort(board.items)], scores, atol=1e-4)
    found = {one.name: one.value for one in board.coefficients}
    assert_allclose([found[name] for name in ("position", "x0", "x1")], effects, atol=1e-4)
    if ties != "half":
        assert_allclose(found["ties"], tie, atol=1e-4)


def design_with_dummies(frame, X):
    """Dummies of all items but the first, a constant for the position, and the covariates."""
    rows = np.arange(len(frame))
    design = np.zeros((len(frame), max(frame["first"].max(), frame["second"].max()) + 1))
    design[rows, frame["first"]] = 1
    design[rows, frame["second"]] -= 1
    return np.column_stack([design[:, 1:], np.ones(len(frame)), X])


def firth_with_dummies(design, y):
    """Firth's logistic regression: the scores with leverages h are those of y + h (1/2 - p).

    Also return the inverse information of the votes with h / 2 wins and h / 2 losses more.
    """
    w = np.zeros(design.shape[1])
    for _ in range(100):
        p = expit(design @ w)
        weight = p * (1 - p)
        inverse = np.linalg.inv((design * weight[:, None]).T @ design)
        h = weight * ((design @ inverse) * design).sum(axis=1)
        w += inverse @ design.T @ (y - p + h * (0.5 - p))
    return w, np.linalg.inv((design * (weight * (1 + h))[:, None]).T @ design), p


def of_judges(pull, weight, residual, judge):
    """The variance of an estimate by Bell and McCaffrey (2002), the number of judges, and degrees.

    `pull` is how much the residual of each vote moves the estimate.
    """
    names = np.unique(judge)
    score = np.array([(residual * pull)[judge == name].sum() for name in names])
    share = np.array([(weight * pull**2)[judge == name].sum() for name in names])
    share = share / share.sum()
    variance = ((score - share * score.sum()) ** 2 / (1 - share)).sum()
    products = np.outer(share, share) / np.sqrt(np.outer(1 - share, 1 - share))
    np.fill_diagonal(products, share)
    return variance, 1 / (share**2).sum(), 1 / (products**2).sum()


@pytest.mark.parametrize("kind", ["information", "robust", "judges"])
def test_errors_and_robust_verdicts_are_those_of_regressions(kind):
    """Student's t with one more judge, who is undecided, and the smaller one of both verdicts."""
    frame, X = make_votes(ties=0.4, seed=3)
    judge = np.random.default_rng(0).integers(15, size=len(frame)) if kind == "judges" else None
    design = design_with_dummies(frame, X)
    y = np.select([frame["winner"] == "first", frame["winner"] == "second"], [1.0, 0.0], 0.5)
    w, inverse, p = firth_with_dummies(design, y)
    n, k = design.shape
    votes = read(frame, X, judge=judge)
    plain = aggregate(votes, intervals="information")
    board = aggregate(votes, intervals="information" if kind == "information" else "robust")
    effects = board.coefficients
    for c, row in enumerate(np.eye(k)):
        pull = design @ inverse @ row
        variance, number, degrees = inverse[c, c], np.inf, np.inf
        if kind == "robust":
            variance = ((y - p) ** 2 * pull**2).sum() * (n - 1) / (n - k)
            number = 1 / ((p * (1 - p) * pull**2) ** 2).sum()
            number *= (p * (1 - p) * pull**2).sum() ** 2
            degrees = number - 1
        elif kind == "judges":
            variance, number, degrees = of_judges(pull, p * (1 - p), y - p, judge)
        if c >= k - 3:  # the position and the covariates
            error = effects[c - k + 3].standard_error
            assert error == pytest.approx(np.sqrt(variance), rel=2e-3)
        elif kind != "information":  # items 1, 2, ..., relative to item 0
            z = norm.ppf(plain.probability_above(c + 1, 0))
            t = w[c] / np.sqrt(variance + (w[c] / number) ** 2)
            z = min(z, norm.ppf(student.cdf(t, degrees + 1)), key=abs)
            # judges who seldom contradict themselves count as a little against
            found = norm.ppf(board.probability_above(c + 1, 0))
            assert found == pytest.approx(z, rel=0.05 if kind == "judges" else 2e-3)


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
    assert_allclose(slope.standard_error, error, rtol=2e-3)
    half = 1.959964 * error * np.abs(price - price.mean())[board.items]
    assert_allclose(board.score_high - board.score_low, 2 * half, rtol=0.03)


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
    pairs = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")] * 3
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
    with pytest.raises(ValueError, match="pass n_resamples=1000 instead"):
        aggregate(votes, "borda", intervals="robust")
    with pytest.raises(ValueError, match="not both"):
        aggregate(votes, intervals="robust", n_resamples=10)
    with pytest.raises(ValueError, match="'plackett_luce'"):
        aggregate(Judgements.from_orders([[1, 2, 3], [2, 1, 3]]), intervals="robust")
    with pytest.raises(ValueError, match="several judges"):
        aggregate(read(frame, judge=[0] * 60), intervals="robust")


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


@pytest.mark.parametrize(("won", "clear"), [(60, False), (63, True)])
def test_simultaneous_ranks_of_two_items_are_the_two_sided_test(won, clear):
    """With one more loss, z is 1.90 and 2.17."""
    board = aggregate([("a", "b")] * won + [("b", "a")] * 40, intervals="information")
    assert board.simultaneous_ranks()[1].tolist() == [2 - clear, 2]
    assert board.may_be_first().tolist() == ["a", "b"][: 2 - clear]


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
