"""`is_first_clear(anytime=True)`: looks after every vote do not make it wrong."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation._errors import anytime_bound

pytestmark = pytest.mark.simulation


def fit_all(wins, scores):
    """Fit the Bradley-Terry model of many arenas at once: Newton's method, written by itself."""
    m = wins.shape[1]
    total = wins + wins.transpose(0, 2, 1)
    for _ in range(3):
        p = expit(scores[:, :, None] - scores[:, None, :])
        gradient = (wins - total * p).sum(axis=2)
        weight = total * p * (1 - p)
        hessian = -weight
        hessian[:, np.arange(m), np.arange(m)] += weight.sum(axis=2)
        step = np.linalg.solve(hessian + 1.0, gradient[..., None])[..., 0]
        scores = scores + np.clip(step, -1, 1)
    return scores, np.linalg.inv(hessian + 1.0) - 1 / m**2


def look_after_every_vote(scores, n_arenas, n_votes, seed, adaptive=False):
    """Shares of arenas in which a wrong item is ever said to be first: anytime, and at a fixed n.

    Where two items are best, every claim is wrong. With `adaptive`, most votes are between the two
    items that lead.
    """
    random, m = np.random.default_rng(seed), len(scores)
    wins, found = np.zeros((n_arenas, m, m)), np.zeros((n_arenas, m))
    row, single = np.arange(n_arenas), (scores == scores.max()).sum() == 1
    wrong, fixed, right = np.zeros((3, n_arenas), dtype=bool)
    for t in range(n_votes):
        a = random.integers(m, size=n_arenas)
        b = (a + random.integers(1, m, size=n_arenas)) % m
        if adaptive and t >= 60 * m:
            order = np.argsort(-found, axis=1)
            top = random.random(n_arenas) < 0.8
            a, b = np.where(top, order[:, 0], a), np.where(top, order[:, 1], b)
        won = random.random(n_arenas) < expit(scores[a] - scores[b])
        np.add.at(wins, (row, np.where(won, a, b), np.where(won, b, a)), 1)
        if t < 40 * m:
            continue
        found, inverse = fit_all(wins, found)
        best = found.argmax(axis=1)
        other = np.arange(m) != best[:, None]
        variance = inverse[row, best, best][:, None] - 2 * inverse[row, best]
        error = np.sqrt(variance + np.diagonal(inverse, axis1=1, axis2=2) + ~other)
        ahead = found[row, best][:, None] - found
        enough = (wins + wins.transpose(0, 2, 1)).sum(axis=2).min(axis=1) >= 30
        said = enough & (~other | (ahead > anytime_bound(error, 0.05 / (m - 1)))).all(axis=1)
        true = (best == scores.argmax()) & single
        wrong |= said & ~true
        right |= said & true
        fixed |= enough & (~other | (ahead > 1.96 * error)).all(axis=1) & ~true
    return wrong.mean(), fixed.mean(), right.mean()


@pytest.mark.parametrize(
    ("scores", "adaptive"),
    [
        ([0.0, 0.0], False),
        pytest.param([0.0, 0.0, -1.0], False, marks=pytest.mark.slow),
        ([0.0, 0.0, -1.0], True),
        pytest.param([0.1, 0.0, 0.0], False, marks=pytest.mark.slow),
    ],
)
def test_looks_after_every_vote_are_rarely_wrong_and_fixed_intervals_often(scores, adaptive):
    wrong, fixed, _ = look_after_every_vote(np.array(scores), 300, 1000, 0, adaptive)
    assert wrong <= 0.05
    assert fixed > 0.15 or scores[0] > 0


def test_a_clear_first_place_is_found_and_sooner_with_more_votes_between_the_leaders():
    scores = np.array([0.5, 0.0, -1.0])
    wrong, _, right = look_after_every_vote(scores, 100, 900, 1)
    assert wrong <= 0.05 and right > 0.8
    _, _, sooner = look_after_every_vote(scores, 100, 450, 1, adaptive=True)
    _, _, later = look_after_every_vote(scores, 100, 450, 1)
    assert sooner > later + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("scores", [[0, 0], [0, 0, 0], [0, 0, -1, -1, -1]])
def test_the_error_rate_of_many_arenas_and_votes(scores):
    wrong, fixed, _ = look_after_every_vote(np.array(scores, dtype=float), 1000, 3000, 2)
    assert wrong <= 0.05
    assert fixed > 0.05


def test_votes_of_judges_with_tastes():
    """Two items: the log-odds, and the robust standard error of judges as clusters."""
    random, n, m = np.random.default_rng(0), 400, 40
    taste = random.normal(size=(n, m))
    won, made, wrong, fixed, naive = np.zeros((n, m)), np.zeros((n, m)), *np.zeros((3, n), bool)
    row = np.arange(n)
    for t in range(2000):
        judge = random.integers(m, size=n)
        won[row, judge] += random.random(n) < expit(taste[row, judge])
        made[row, judge] += 1
        if t < 200 or t % 5:
            continue
        p = won.sum(axis=1) / made.sum(axis=1)
        bread = 1 / (made.sum(axis=1) * p * (1 - p))
        error = bread * np.sqrt(((won - made * p[:, None]) ** 2).sum(axis=1) * m / (m - 1))
        ahead = np.abs(np.log(p / (1 - p)))
        wrong |= ahead > anytime_bound(error, 0.05)
        fixed |= ahead > 1.96 * error
        naive |= ahead > anytime_bound(np.sqrt(bread), 0.05)
    assert wrong.mean() <= 0.05
    assert fixed.mean() > 0.1
    assert naive.mean() > 0.1  # without the judges


def test_the_bound_is_the_asymptotic_confidence_sequence_of_the_paper():
    """sigma sqrt(2 (t rho^2 + 1) / (t^2 rho^2) log(sqrt(t rho^2 + 1) / alpha)) at t votes."""
    sigma, t, alpha = 2.3, np.array([10.0, 300.0, 5000.0]), 0.03
    rho2 = 0.5**2 / sigma**2
    paper = sigma * np.sqrt(
        2 * (t * rho2 + 1) / (t**2 * rho2) * np.log(np.sqrt(t * rho2 + 1) / alpha)
    )
    assert_allclose(anytime_bound(sigma / np.sqrt(t), alpha), paper)


@pytest.mark.parametrize("times", [1, 2, 4, 9])
def test_boards_use_the_bound_for_each_rival(times):
    wins = {("a", "b"): 20, ("b", "a"): 11, ("a", "c"): 22, ("c", "a"): 9, ("b", "c"): 16,
            ("c", "b"): 13}  # fmt: skip
    pairs = [pair for pair, n in wins.items() for _ in range(n * times)]
    board = aggregate(pairs, intervals="information", confidence_level=0.9)
    count = np.zeros((1, 3, 3))
    for one, other in pairs:
        count[0, "abc".index(one), "abc".index(other)] += 1
    scores, inverse = fit_all(count, np.zeros((1, 3)))
    for _ in range(5):
        scores, inverse = fit_all(count, scores)
    clear = True
    for k in (1, 2):
        error = np.sqrt(inverse[0, 0, 0] + inverse[0, k, k] - 2 * inverse[0, 0, k])
        clear &= bool(scores[0, 0] - scores[0, k] > anytime_bound(error, 0.1 / 2))
    assert board.is_first_clear(anytime=True) == clear == (times >= 4)
    assert board.rescale().is_first_clear(anytime=True) == clear
    assert board.is_first_clear() or not clear


def test_few_votes_and_items_apart_are_never_certain():
    assert not aggregate([("a", "b")] * 29, intervals="robust").is_first_clear(anytime=True)
    many = [("a", "b")] * 400 + [("b", "a")] * 20
    board = aggregate(many, intervals="robust")
    assert board.is_first_clear(anytime=True)
    new = aggregate([*many, ("a", "c"), ("c", "b"), ("b", "c")], intervals="robust")
    assert not new.is_first_clear(anytime=True)
    lonely = Judgements.from_pairs(many, items=["a", "b", "c"])
    with pytest.warns(UserWarning, match="No judgement compares 1 of the items"):
        board = aggregate(lonely, intervals="robust")
    assert board.is_first_clear(anytime=True)  # among those that were compared
    assert "first place: a is above all others that were compared at once" in str(board)


def test_one_query_of_several():
    pairs = [("a", "b")] * 400 + [("b", "a")] * 20 + [("c", "d"), ("d", "c")] * 200
    board = aggregate(pairs, groups=[0] * 420 + [1] * 400, intervals="robust")
    assert board.is_first_clear(0, anytime=True) and not board.is_first_clear(1, anytime=True)


def test_resamples_have_no_standard_errors():
    with pytest.raises(ValueError, match="There are no intervals"):
        aggregate([("a", "b")]).is_first_clear(anytime=True)
    with pytest.raises(ValueError, match=r"needs standard errors.*intervals='robust'"):
        aggregate([("a", "b")] * 9, n_resamples=20).is_first_clear(anytime=True)
