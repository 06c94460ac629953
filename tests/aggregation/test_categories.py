"""`aggregate_categories`: partial pooling, compared with integrals and with the model in full."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from scipy.stats import norm

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation import BradleyTerry, aggregate_categories
from sklearn_rankcal.aggregation._categories import _Model  # the model, for its likelihood
from sklearn_rankcal.datasets import make_arena

matplotlib.use("Agg")


def read(data, kept=slice(None), **options):
    options = {"position": True, "covariates": data.log_length[kept], **options}
    return Judgements.from_votes(
        data.model_a[kept], data.model_b[kept], data.winner[kept], **options
    )


def small(seed=0, n=60):
    rng = np.random.default_rng(seed)
    category = rng.integers(2, size=n)
    gap = np.where(category == 0, 0.8, -0.1)
    won = rng.random(n) < expit(gap)
    first = np.full(n, "a")
    return Judgements.from_votes(first, np.full(n, "b"), np.where(won, "a", "b")), category, won


@pytest.mark.parametrize("seed", [0, 1])
def test_the_marginal_likelihood_is_an_integral(seed):
    """Two items and two categories: the integral over the two differences is one over a grid."""
    judgements, category, won = small(seed)
    structure = BradleyTerry(penalty=0.0)
    model = _Model(judgements, category, np.array([0, 1]), structure, True)
    grid = np.linspace(-6, 6, 1201)
    of_votes = [
        np.exp(won[category == c].sum() * log_expit(grid) + (~won[category == c]).sum()
               * log_expit(-grid))
        for c in (0, 1)
    ]  # fmt: skip
    laplace, exact = [], []
    for spread in (0.15, 0.3, 0.6, 1.2):
        # the difference of the two categories is normal with the variance 4 spread^2
        prior = norm.pdf(grid[:, None] - grid, scale=2 * spread)
        exact.append(np.log(of_votes[0] @ prior @ of_votes[1]))
        laplace.append(model.log_marginal(spread, model.fit(spread)))
    assert_allclose(np.diff(laplace), np.diff(exact), atol=0.01)
    assert np.abs(np.diff(exact)).max() > 0.05


def test_the_spread_has_the_largest_marginal_likelihood():
    data = make_arena(4000, n_models=5, category_spread=0.5, random_state=0)
    board = aggregate_categories(read(data), data.category)
    codes = np.searchsorted(data.categories, data.category)
    model = _Model(read(data), codes, data.categories, BradleyTerry(), True)
    values = {
        spread: model.log_marginal(spread, model.fit(spread))
        for spread in board.category_spread * np.array([0.8, 0.98, 1.0, 1.02, 1.25])
    }
    assert max(values, key=values.get) == board.category_spread


def test_scores_and_intervals_are_those_of_the_model_in_full():
    """A general optimiser over overall scores, differences, the position and a covariate."""
    data = make_arena(500, n_models=3, n_categories=3, ties=0.0, random_state=4)
    m, k, spread = 3, 3, 0.4
    a, b = (np.searchsorted(data.models, side) for side in (data.model_a, data.model_b))
    c = np.searchsorted(data.categories, data.category)
    sign = np.where(data.winner == "model_a", 1.0, -1.0)

    def loss(w):
        overall, own, effects = w[:m], w[m : m + m * k].reshape(k, m), w[m + m * k :]
        lead = overall[a] + own[c, a] - overall[b] - own[c, b] + effects[0]
        lead = lead + effects[1] * data.log_length[:, 0]
        gauge = overall.sum() ** 2 / 2
        return -log_expit(sign * lead).sum() + (own**2).sum() / (2 * spread**2) + gauge

    w = minimize(loss, np.zeros(m + m * k + 2), method="BFGS", options={"gtol": 1e-6}).x
    size, step = len(w), 1e-3
    hessian = np.array([
        [
            (loss(w + step * (e + f)) - loss(w + step * (e - f)) - loss(w - step * (e - f))
             + loss(w - step * (e + f))) / (4 * step**2)
            for e in np.eye(size)
        ]
        for f in np.eye(size)
    ])  # fmt: skip
    covariance = np.linalg.inv(hessian)
    board = aggregate_categories(read(data), data.category, spread=spread)
    center = np.eye(m) - 1 / m
    for group in range(k):
        to_scores = np.zeros((m, size))
        to_scores[:, :m] = to_scores[:, m + group * m : m + (group + 1) * m] = center
        expected = to_scores @ w
        half = norm.ppf(0.975) * np.sqrt(np.diag(to_scores @ covariance @ to_scores.T))
        rows = board.rows_of(data.categories[group])
        place = np.searchsorted(data.models, board.items[rows])
        assert_allclose(board.scores[rows], expected[place], atol=1e-4)
        # one more vote against: the normal interval is shorter by some percent
        length = (board.score_high - board.score_low)[rows] / half[place] / 2
        assert (1 <= length).all() and (length < 1.15).all()
    values = [one.value for one in board.coefficients[:2]]
    errors = [one.standard_error for one in board.coefficients[:2]]
    assert_allclose(values, w[-2:], atol=1e-4)
    assert_allclose(errors, np.sqrt(np.diag(covariance))[-2:], rtol=1e-3)


def test_spread_0_is_the_overall_board_in_each_category():
    data = make_arena(1500, n_models=5, random_state=0)
    overall = aggregate(read(data), intervals="information")
    board = aggregate_categories(read(data), data.category, spread=0)
    for group in data.categories:
        rows = board.rows_of(group)
        assert board.items[rows].tolist() == overall.items[overall.rows_of()].tolist()
        assert_allclose(board.scores[rows], overall.scores[overall.rows_of()], atol=1e-9)
        assert_allclose(board.score_low[rows], overall.score_low[overall.rows_of()], atol=1e-9)
    near = aggregate_categories(read(data), data.category, spread=0.01)
    assert_allclose(near.scores, board.scores, atol=0.01)
    assert "categories are fully pooled" in str(board)


def test_a_penalty_is_one_of_the_overall_scores():
    data = make_arena(1500, n_models=5, random_state=0)
    method = BradleyTerry(penalty=300.0)
    overall = aggregate(read(data), method, intervals="information")
    near = aggregate_categories(read(data), data.category, method, spread=0.005)
    place = [overall.items.tolist().index(item) for item in near.items]
    assert_allclose(near.scores, overall.scores[place], atol=0.005)
    assert_allclose(near.score_high, overall.score_high[place], atol=0.01)
    assert np.abs(overall.scores).max() < 0.7 * np.abs(aggregate(read(data)).scores).max()


def test_an_infinite_spread_gives_separate_boards():
    data = make_arena(1500, n_models=5, random_state=0)
    votes = Judgements.from_votes(data.model_a, data.model_b, data.winner)
    board = aggregate_categories(votes, data.category, spread=np.inf)
    separate = aggregate(
        Judgements.from_votes(data.model_a, data.model_b, data.winner, groups=data.category),
        intervals="information",
    )
    for group in data.categories:
        rows, other = board.rows_of(group), separate.rows_of(group)
        assert board.items[rows].tolist() == separate.items[other].tolist()
        for name in ("scores", "score_low", "score_high", "rank_low", "rank_high"):
            atol = 0.05 if name.startswith("score_") else 1e-8  # ends are those of normal errors
            assert_allclose(getattr(board, name)[rows], getattr(separate, name)[other], atol=atol)
    far = aggregate_categories(votes, data.category, spread=1000.0)
    assert_allclose(far.scores, board.scores, atol=1e-3)
    assert_allclose(far.score_high, board.score_high, atol=0.02)


@pytest.mark.parametrize(("seed", "n"), [(0, 60), (1, 300)])  # the best spread is 0, and .55
def test_the_error_of_the_spread_is_an_integral_over_it(seed, n):
    judgements, category, _ = small(seed, n)
    model = _Model(judgements, category, np.array([0, 1]), BradleyTerry(penalty=0.0), True)
    best = model.find_spread()
    weights = model.moments(model.fit(best))[0]
    grid = np.linspace(0.01, 20, 500)
    logs, errors = [], []
    fit = model.fit(0.01)
    for spread in grid:
        fit = model.fit(spread, fit.weights)
        logs.append(model.log_marginal(spread, fit))
        errors.append(fit.inverse() + np.outer(fit.weights - weights, fit.weights - weights))
    logs = np.array(logs)
    mass = np.exp(logs - logs.max()) / (1 + grid**2)
    exact = np.tensordot(mass / mass.sum(), np.array(errors), axes=1)
    assert_allclose(np.diag(model.integrate(best, weights)), np.diag(exact), rtol=0.04)


def test_an_estimated_spread_makes_intervals_longer():
    data = make_arena(400, n_models=6, category_spread=0.35, ties=0.0, random_state=3)
    board = aggregate_categories(read(data), data.category)
    given = aggregate_categories(read(data), data.category, spread=board.category_spread)
    assert_allclose(board.scores, given.scores, atol=1e-6)
    ratio = (board.score_high - board.score_low) / (given.score_high - given.score_low)
    assert (ratio > 1.0).all() and 1.02 < ratio.mean() < 1.5


def test_robust_intervals_are_those_of_the_two_extremes():
    data = make_arena(3000, n_models=5, n_judges=30, taste=1.0, random_state=0)
    votes = read(data, judge=data.judge)
    overall = aggregate(votes, intervals="robust")
    board = aggregate_categories(votes, data.category, spread=0, intervals="robust")
    rows = board.rows_of("c1")
    assert_allclose(board.score_low[rows], overall.score_low[overall.rows_of()], atol=0.02)
    assert board.intervals == "robust" and "differences between 30 judges" in str(board)
    alone = Judgements.from_votes(data.model_a, data.model_b, data.winner, groups=data.category)
    separate = aggregate(alone, intervals="robust")
    votes = Judgements.from_votes(data.model_a, data.model_b, data.winner)
    far = aggregate_categories(votes, data.category, spread=np.inf, intervals="robust")
    for group in data.categories:  # the numbers of votes and parameters are those of all
        rows, other = far.rows_of(group), separate.rows_of(group)
        assert_allclose(far.score_low[rows], separate.score_low[other], atol=0.05)


def test_judges_who_differ_make_robust_intervals_longer():
    data = make_arena(4000, n_models=5, n_judges=30, taste=1.0, random_state=0)
    votes = read(data, judge=data.judge)
    plain, robust = (
        aggregate_categories(votes, data.category, intervals=kind)
        for kind in ("information", "robust")
    )
    assert_allclose(plain.scores, robust.scores, atol=1e-6)
    ratio = (robust.score_high - robust.score_low) / (plain.score_high - plain.score_low)
    assert ratio.mean() > 1.15
    assert robust.coefficients[0].standard_error > 0
    assert len(robust.may_be_first("c0")) >= len(plain.may_be_first("c0"))


@pytest.mark.parametrize("kind", ["information", "robust"])
def test_boards_do_not_depend_on_the_order_of_the_votes(kind):
    """All categories have the same votes, and all items the same record."""
    circle = [("a", "b"), ("b", "c"), ("c", "a")]
    pairs = circle * 5 + [(loser, winner) for winner, loser in circle] * 3
    votes, category = pairs * 3, np.repeat(["x", "y", "z"], len(pairs))
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(votes))
        shuffled = Judgements.from_pairs([votes[k] for k in order])
        board = aggregate_categories(shuffled, category[order], intervals=kind)
        assert board.ranks.tolist() == [1] * 9
        assert_allclose(board.score_low, board.score_low[0], atol=1e-9)
        assert [label.get_text() for label in board.plot().get_yticklabels()] == ["a", "b", "c"]


def test_an_item_without_votes_in_a_category_has_its_overall_score_and_a_longer_interval():
    data = make_arena(3000, n_models=5, category_spread=0.3, random_state=1)
    kept = ~((data.category == "c1") & ((data.model_a == "m0") | (data.model_b == "m0")))
    board = aggregate_categories(read(data, kept), data.category[kept])
    frame = [
        dict(zip(board.items[rows], rows, strict=True)) for rows in map(board.rows_of, ("c0", "c1"))
    ]
    lengths = [(board.score_high - board.score_low)[one["m0"]] for one in frame]
    assert np.isfinite(board.scores).all() and lengths[1] > 1.3 * lengths[0]
    separate = aggregate_categories(read(data, kept), data.category[kept], spread=np.inf)
    rows = separate.rows_of("c1")
    assert np.isnan(separate.scores[rows]).tolist() == (separate.items[rows] == "m0").tolist()
    assert separate.parts[rows].tolist() == [1, 1, 1, 1, 0]


def test_an_item_that_never_loses_has_an_open_end_in_each_category():
    votes = [(one, other) for one in "bcdefghijklm" for other in "bcdefghijklm" if one != other] * 2
    votes = Judgements.from_pairs([*votes, ("a", "b"), ("a", "c")])
    category = np.append(np.arange(len(votes.query) - 2) % 2, [0, 0])
    board = aggregate_categories(votes, category)
    best = board.items == "a"
    assert np.isfinite(board.scores).all()
    assert (board.score_high[best] == np.inf).all() and np.isfinite(board.score_high[~best]).all()


@pytest.mark.parametrize("ties", ["davidson", "rao_kupper"])
def test_ties_as_data_and_what_boards_can_do(ties):
    data = make_arena(3000, n_models=4, category_spread=0.4, random_state=2)
    board = aggregate_categories(read(data), data.category, BradleyTerry(ties=ties))
    assert [one.name for one in board.coefficients[:3]] == ["position", "x0", "ties"]
    assert 0.1 < board.category_spread < 1.0
    elo = board.rescale(anchor=("m1", 1000))
    assert_allclose(elo.scores[elo.items == "m1"], 1000)
    pairs = board.next_comparisons(3, target="all", group="c3")
    assert all(one != other for one, other in pairs)
    alone = aggregate(
        Judgements.from_votes(data.model_a, data.model_b, data.winner, position=True,
                              covariates=data.log_length),
        BradleyTerry(ties=ties), intervals="information",
    )  # fmt: skip
    same = aggregate_categories(read(data), data.category, BradleyTerry(ties=ties), spread=0)
    rows = same.rows_of("c2")
    assert_allclose(same.score_high[rows], alone.score_high[alone.rows_of()], atol=1e-8)


def test_texts_say_the_spread_and_the_votes():
    data = make_arena(1200, n_models=3, n_categories=2, category_spread=0.6, random_state=0)
    board = aggregate_categories(read(data), data.category)
    counts = [(data.category == name).sum() for name in ("c0", "c1")]
    text = str(board)
    assert f"the spread between them is {board.category_spread:.3g}" in text
    assert all(f"c{k} {count:,}" in text for k, count in enumerate(counts))
    assert text.startswith("2 categories, ") and "category 'c0':" in text and "quer" not in text
    with pytest.raises(ValueError, match=r"There are 2 categories\. Pass the id of one"):
        board.rows_of()
    with pytest.raises(ValueError, match="There is no category 'c9'"):
        board.rows_of("c9")
    pytest.importorskip("pandas")
    frame = board.to_frame()
    assert frame.groupby("category")["votes"].sum().to_dict() == {
        "c0": 2 * counts[0],
        "c1": 2 * counts[1],
    }


def bad(match, **options):
    return pytest.param(options, match, id=match[:25])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        bad("There is only one category, 'x'", category=["x"] * 4),
        bad("category has 3 entries", category=[1, 2, 3]),
        bad("spread must be a number >= 0", spread=-1.0),
        bad("spread must be a number >= 0", spread=np.nan),
        bad("confidence_level must be between", confidence_level=1.0),
        bad("Unknown intervals 'bootstrap'. Known: information, robust", intervals="bootstrap"),
        bad("must be BradleyTerry with own_effects=True", method="borda"),
        bad("must be BradleyTerry with own_effects=True", method=BradleyTerry(own_effects=False)),
    ],
)
def test_what_cannot_be_used_is_refused(options, match):
    votes = Judgements.from_pairs([("a", "b"), ("b", "a"), ("a", "b"), ("b", "a")])
    options = {"category": [0, 0, 1, 1], **options}
    with pytest.raises(ValueError, match=match):
        aggregate_categories(votes, **options)


def test_votes_that_cannot_be_pooled_are_refused():
    pairs, two = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("a", "b")], [0, 1, 0, 1, 0]
    with pytest.raises(ValueError, match="No votes connect 'c' with most other items"):
        aggregate_categories(Judgements.from_pairs(pairs), two)
    for spread in (None, np.inf):  # d never won
        with pytest.raises(ValueError, match="some scores are infinite"):
            read = Judgements.from_pairs([*pairs[:2], ("b", "d"), ("a", "d"), ("b", "a")])
            aggregate_categories(read, two, BradleyTerry(penalty=0), spread=spread)
    with pytest.raises(ValueError, match="does not support weighted or faded votes"):
        aggregate_categories(Judgements.from_pairs(pairs, weight=[1, 2, 1, 1, 1]), two)
    with pytest.raises(ValueError, match="of one query"):
        aggregate_categories(Judgements.from_pairs(pairs, groups=[0, 0, 1, 1, 0]), two)
    with pytest.raises(ValueError, match="of one query"):
        aggregate_categories(pairs, two)


VOTE = ("model_a", "model_b", "winner")


def test_categories_in_another_order_than_the_votes_are_refused():
    """A series of the same labels in another order would give each vote a wrong category."""
    data = make_arena(500, n_models=4, random_state=0)
    table = pd.DataFrame({name: data[name] for name in (*VOTE, "category")})
    table = table.sample(frac=1, random_state=1)
    columns = [table[name] for name in VOTE]
    votes = Judgements.from_votes(*columns, tie=(), refused="tie")
    kept = table[table["winner"] != "tie"]
    board = aggregate_categories(votes, kept["category"])
    assert_allclose(board.scores, aggregate_categories(votes, list(kept["category"])).scores)
    assert_allclose(
        board.scores, aggregate_categories(votes, kept["category"].reset_index(drop=True)).scores
    )
    with pytest.raises(ValueError, match="labels of the votes in another order"):
        aggregate_categories(votes, kept["category"].sort_index())


@pytest.mark.parametrize("word", ["refused", None])
def test_votes_without_an_answer_have_no_category(word):
    """The error says how to drop their categories, and what it says works."""
    data = make_arena(120, n_models=3, random_state=0)
    frame = pd.DataFrame({"a": data.model_a, "b": data.model_b, "winner": data.winner})
    frame["category"] = data.category
    frame.loc[::8, "winner"] = word
    votes = Judgements.from_votes(frame["a"], frame["b"], frame["winner"], refused=word)
    match = r"category has 120 entries, but judgements has 105: from_votes dropped 15 votes without"
    with pytest.raises(ValueError, match=match) as caught:
        aggregate_categories(votes, frame["category"])
    kept = frame["winner"].notna() if word is None else ~frame["winner"].isin([word])
    said = "category[winner.notna()]" if word is None else "category[~winner.isin("
    assert said in str(caught.value)
    assert aggregate_categories(votes, frame["category"][kept]).judgements.n_judgements == 105
    with pytest.raises(ValueError, match=r"category has 100 entries, but judgements has 105.$"):
        aggregate_categories(votes, data.category[:100])


def test_votes_without_an_answer_are_not_counted_for_each_category():
    data = make_arena(600, n_models=4, random_state=0)
    words = np.array(data.winner, dtype=object)
    words[:60] = "no answer"
    votes = Judgements.from_votes(data.model_a, data.model_b, words, refused="no answer")
    board = aggregate_categories(votes, data.category[60:])
    assert "without an answer" not in str(board)
    for audit in (board.audit(), board.audit(group=data.category[100])):
        assert "no answer" not in {probe.name for probe in audit.probes}
    assert str(board.audit(group=data.category[100])).startswith("audit without pooling of 4 items")
    assert "540 judgements (60 without an answer left out)" in str(aggregate(votes))


def test_all_categories_are_in_one_picture():
    data = make_arena(1200, n_models=5, n_categories=3, category_spread=0.6, random_state=0)
    board = aggregate_categories(read(data), data.category)
    axes = board.plot()
    ids = board.judgements.queries.ids.tolist()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ids
    names = [label.get_text() for label in axes.get_yticklabels()]
    for name, line in zip(ids, axes.lines, strict=True):
        rows = np.flatnonzero(board.groups == name)
        score = dict(zip(board.items[rows], board.scores[rows], strict=True))
        assert_allclose(line.get_xdata(), [score[name] for name in names])
        assert np.rint(line.get_ydata()).tolist() == list(range(5))
    means = np.mean([line.get_xdata() for line in axes.lines], axis=0)
    assert (np.diff(means) <= 0).all()
    segments = sum(len(lines.get_segments()) for lines in axes.collections[:-1:3])
    assert segments == 15  # an interval of each item in each category
    one = board.plot("c1")
    assert len(one.lines[0].get_xdata()) == 5 and one.get_legend() is None


def test_a_category_of_a_single_judge_has_no_short_robust_intervals():
    """The number of judges of the other categories says nothing of it."""
    rng = np.random.default_rng(0)
    n = 600
    a, c = rng.integers(4, size=n), rng.integers(3, size=n)
    b = (a + rng.integers(1, 4, size=n)) % 4
    winner = np.where(rng.random(n) < 0.6, np.minimum(a, b), np.maximum(a, b))
    judge = np.where(c == 0, 0, rng.integers(10, size=n))
    votes = Judgements.from_votes(a, b, winner, judge=judge)
    board = aggregate_categories(votes, c, intervals="robust")
    width = board.score_high - board.score_low
    assert np.isinf(width[board.groups == 0]).all() and width[board.groups != 0].max() < 2
