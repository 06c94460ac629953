"""`is_first_clear(anytime=True)`: the bound of the paper, for each rival."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation._errors import anytime_bound  # the bound by itself

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
