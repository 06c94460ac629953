"""ERR with any gain and discount: equation (16) of Duchi, Mackey and Jordan (2013)."""

import itertools
from functools import partial

import numpy as np
import pytest
from scipy.special import comb

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.losses import ERR
from sklearn_rankcal.metrics import err_score, get_ranking_scorer
from sklearn_rankcal.queries import Queries

Y = np.array([0.0, 2.0, 1.0, 3.0])


def half_gain(labels):
    return labels / 6


def log_discount(places):
    return np.log2(1 + places)


def cascade(chances, divisors):
    """One ranking, from the first place to the last."""
    reach, total = 1.0, 0.0
    for chance, divisor in zip(chances, divisors, strict=False):
        total += reach * chance / divisor
        reach *= 1 - chance
    return total


@pytest.mark.parametrize("scores", [[1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 1], [3, 9, 1, 5]])
@pytest.mark.parametrize("k", [None, 1, 2, 3])
def test_ties_are_the_mean_over_orders(scores, k):
    scores = np.array(scores, dtype=float)
    values = []
    for order in itertools.permutations(range(4)):
        if (np.diff(scores[list(order)]) <= 0).all():
            chances = half_gain(Y)[list(order)]
            values.append(cascade(chances, log_discount(np.arange(1.0, (k or 4) + 1))))
    found = err_score(Y, scores, groups=[0] * 4, k=k, gain=half_gain, discount=log_discount)
    assert found == pytest.approx(np.mean(values), rel=1e-12)


@pytest.mark.parametrize("k", [None, 3, 50])
@pytest.mark.parametrize("n_rows", [2, 30, 200])
def test_a_tied_block_by_elementary_symmetric_polynomials(n_rows, k):
    """E_t, the mean product of t of n factors, is the t-th polynomial divided by C(n, t)."""
    rng = np.random.default_rng(n_rows)
    number = np.arange(n_rows + 1)
    for chances in (
        rng.random(n_rows),
        rng.random(n_rows) * 1e-4,
        rng.integers(0, 5, n_rows) / 16,
        np.ones(n_rows),
        np.append(np.zeros(n_rows - 1), 0.5),
        np.append(np.zeros(n_rows - 1), 1.0),
    ):
        mean = np.poly(chances - 1) / comb(n_rows, number)
        wanted = (-np.diff(mean) / log_discount(number[1:]))[:k].sum()
        given = {"gain": lambda y: y, "discount": log_discount, "groups": [0] * n_rows, "k": k}
        assert err_score(chances, np.zeros(n_rows), **given) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("passing", [np.zeros(3), np.ones(3), np.array([0.0, 1.0, 0.5])])
def test_a_block_in_which_users_stop_surely_or_never(passing):
    wanted = np.mean(
        [cascade(1 - passing[list(p)], [1, 2, 4]) for p in itertools.permutations(range(3))]
    )
    given = {"gain": lambda y: y, "discount": lambda j: 2 ** (j - 1), "groups": [0] * 3}
    assert err_score(1 - passing, np.zeros(3), **given) == pytest.approx(wanted)


def test_gains_by_name():
    one = err_score(Y, -Y, groups=[0] * 4, gain="linear")
    assert one == err_score(Y, -Y, groups=[0] * 4, gain=lambda labels: labels / 3)
    assert err_score([0.0, 0.0], [1.0, 2.0], groups=[0, 0], gain="linear") == 0.0
    doubled = err_score(Y, -Y, groups=[0] * 4, gain=lambda y: np.expm1(y * np.log(2)) / 8)
    assert err_score(Y, -Y, groups=[0] * 4) == pytest.approx(doubled)


def test_the_loss_learns_the_gain_and_its_scorer_takes_the_parameters():
    data = make_ranking(60, 6, random_state=0)
    loss = ERR(gain=lambda y: y / 8, discount=np.sqrt)
    np.testing.assert_array_equal(loss.encode(Y, Queries.single(4)), loss.gain(Y))
    ranker = CalibratedRanker("boosting", loss=loss).fit(data.X, data.y, groups=data.groups)
    assert ranker.loss_.gain is loss.gain and ranker.loss_.max_relevance is None
    scorer = get_ranking_scorer("err", gain=loss.gain, discount=np.sqrt)
    found = scorer(ranker, data.X, data.y, groups=data.groups)
    assert found == pytest.approx(ranker.score(data.X, data.y, groups=data.groups))
    positions = ranker.predict(data.X, groups=data.groups)
    metric = partial(err_score, gain=loss.gain, discount=np.sqrt)
    assert found == pytest.approx(metric(data.y, ranks=positions, groups=data.groups))


@pytest.mark.parametrize(
    "given, words",
    [
        ({"gain": lambda y: y}, r"probabilities, numbers in \[0, 1\]"),
        ({"gain": lambda y: -y / 9}, "Negative values"),
        ({"gain": lambda y: y * np.nan}, "gain returned NaN"),
        ({"gain": "log"}, "gain must be 'exp2', 'linear'"),
        ({"gain": half_gain, "max_relevance": 3}, "has no effect"),
        ({"discount": lambda j: 1 / j}, "must not decrease"),
        ({"discount": lambda j: j / 2}, "at least 1"),
        ({"discount": lambda j: j * np.inf}, "must be finite"),
        ({"discount": lambda j: 1.0}, "one value for each place"),
        ({"discount": "log2"}, "discount must be a function or None"),
    ],
)
def test_bad_gains_and_discounts_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        err_score(Y, -Y, groups=[0] * 4, **given)
    with pytest.raises(ValueError, match=words):
        ERR(**given).check(Y)
