"""Doubly robust relevance, trust bias, lists that depend on clicks, and the models of cascades.

Expectations are sums over all that users can do. The users are written here a second time, step by
step, and not by the formulas of the package.
"""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.aggregation import (
    CascadeSatisfaction,
    ClickThroughRate,
    InversePropensity,
    estimate_relevance,
)
from sklearn_rankcal.clicks import click_labels, read_clicks
from sklearn_rankcal.datasets import make_clicks
from sklearn_rankcal.losses import DCG, ERU, PDByScores
from sklearn_rankcal.queries import Queries

THETA = np.array([0.9, 0.5])  # how often users examine a position
CLICK_IF_RELEVANT, CLICK_IF_NOT = np.array([1.0, 0.8]), np.array([0.4, 0.1])  # users who trust
ALPHA, BETA = THETA * (CLICK_IF_RELEVANT - CLICK_IF_NOT), THETA * CLICK_IF_NOT
GAMMA = np.array([0.3, 0.8, 0.5])
LISTS = [[0, 1], [1, 2], [0], [2, 1]]
#: a second query, so that there is one to fit the regression to
GROUPS, OTHER = [0, 0, 0, 1], [3]


class FirstColumn(RegressorMixin, BaseEstimator):
    """A regression that is what the first column says."""

    def fit(self, X, y, sample_weight=None):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return X[:, 0]


def click_chance(row, position):
    """The chance that a user clicks, one step after the other."""
    total = 0.0
    for examined, relevant in itertools.product([False, True], repeat=2):
        chance = THETA[position] if examined else 1 - THETA[position]
        chance *= GAMMA[row] if relevant else 1 - GAMMA[row]
        if examined:
            total += chance * (CLICK_IF_RELEVANT if relevant else CLICK_IF_NOT)[position]
    return total


def outcomes(lists):
    """All marks of the clicks on lists, and the chance of each."""
    chances = [click_chance(row, k) for rows in lists for k, row in enumerate(rows)]
    for flat in itertools.product([False, True], repeat=len(chances)):
        marks = iter(flat)
        yield (
            np.prod([c if mark else 1 - c for c, mark in zip(chances, flat, strict=True)]),
            [[next(marks) for _ in rows] for rows in lists],
        )


def moments(estimate, lists=LISTS):
    """The mean and the variance of what `estimate` makes of the labels of a log."""
    values, chances = [], []
    for chance, marks in outcomes(lists):
        chances.append(chance)
        values.append(estimate(click_labels([*lists, OTHER], [*marks, [True]], GROUPS))[:3])
    assert sum(chances) == pytest.approx(1)
    mean = np.average(values, axis=0, weights=chances)
    return mean, np.average((values - mean) ** 2, axis=0, weights=chances)


def robust(predicted, alpha=ALPHA, beta=BETA, least=0.0):
    X = np.append(predicted, 0.5)[:, None]
    return lambda y: estimate_relevance(
        y, X, alpha, click_noise=beta, regressor=FirstColumn(), min_exposure=least
    )


WRONG = np.array([0.9, 0.1, 0.0])


def exposure(alpha):
    """The sum of alpha over the sessions of `LISTS` that show each document."""
    total = np.zeros(3)
    for rows in LISTS:
        for k, row in enumerate(rows):
            total[row] += alpha[k]
    return total


def test_relevance_is_unbiased_if_exposure_or_regression_is_right():
    # the exposure is right: nothing is clipped
    np.testing.assert_allclose(moments(robust(WRONG))[0], GAMMA, atol=1e-12)
    # the regression is right, and the exposure in the divisor is 30 instead of about 1
    np.testing.assert_allclose(moments(robust(GAMMA, least=30.0))[0], GAMMA, atol=1e-12)
    # both are wrong
    shares = exposure(ALPHA) / 30
    found = moments(robust(WRONG, least=30.0))[0]
    np.testing.assert_allclose(found, WRONG + shares * (GAMMA - WRONG), atol=1e-12)
    assert np.abs(found - GAMMA).min() > 0.4


def test_a_right_regression_does_not_save_wrong_propensities():
    # examination is not observed, so that alpha and beta must be right in any case
    wrong = np.array([0.4, 0.1])
    found = moments(robust(GAMMA, alpha=wrong))[0]
    wanted = (GAMMA * exposure(ALPHA)) / exposure(wrong)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert np.abs(found - GAMMA).min() > 0.05
    # clicks out of trust count as relevance if they are not subtracted
    trusted = moments(robust(GAMMA, beta=None))[0]
    np.testing.assert_allclose(trusted - GAMMA, exposure(BETA) / exposure(ALPHA), atol=1e-12)


def test_variance_is_at_most_that_of_inverse_propensity():
    def inverse(y):
        # users who do not trust: alpha is theta, and all relevant documents seen are clicked
        return InversePropensity(CLICKED).scores(read_clicks(y))

    # P(click) = CLICKED gamma with beta = 0, if nobody clicks on irrelevant documents
    CLICKED = THETA * CLICK_IF_RELEVANT
    saved = CLICK_IF_NOT.copy()
    CLICK_IF_NOT[:] = 0
    try:
        mean, of_inverse = moments(inverse)
        np.testing.assert_allclose(mean, GAMMA, atol=1e-12)
        of_ratio = moments(robust(WRONG, alpha=CLICKED, beta=None))[1]
        drawn = moments(robust(WRONG, alpha=CLICKED, beta=None, least=4.0))[1]
    finally:
        CLICK_IF_NOT[:] = saved
    assert (of_ratio <= of_inverse + 1e-12).all()
    # only document 0 stood at the same position in all its sessions
    np.testing.assert_array_equal(of_ratio < of_inverse - 1e-3, [False, True, True])
    share = exposure(CLICKED) / 4
    assert share.max() < 1
    np.testing.assert_allclose(drawn, share**2 * of_ratio, rtol=1e-9)


# ------------------------------------------------------------------ lists that depend on clicks


def lists_after(clicked):
    """The ordered pairs that the system shows, and the chance of each, after some clicks."""
    weight = np.array([5.0 if row in clicked else 1.0 for row in range(3)])
    pairs = list(itertools.permutations(range(3), 2))
    chances = [weight[i] * weight[j] / weight.sum() / (weight.sum() - weight[i]) for i, j in pairs]
    return list(zip(pairs, chances, strict=True))


def histories(n_sessions):
    """All logs of a system that shows clicked documents again: (chance, lists, marks, p)."""
    logs = [(1.0, [], [], [], frozenset())]
    for _ in range(n_sessions):
        new = []
        for chance, lists, marks, shown_with, clicked in logs:
            options = lists_after(clicked)
            inside = [sum(p for pair, p in options if row in pair) for row in range(3)]
            for pair, p in options:
                for q, (mark,) in outcomes([list(pair)]):
                    more = clicked | {row for row, m in zip(pair, mark, strict=True) if m}
                    new.append((
                        chance * p * q, [*lists, list(pair)], [*marks, mark],
                        [*shown_with, [inside[row] for row in pair]], more,
                    ))  # fmt: skip
        logs = new
    assert sum(log[0] for log in logs) == pytest.approx(1)
    return logs


@pytest.mark.simulation
@pytest.mark.parametrize("known", [True, False])
def test_two_sessions_of_a_system_that_learns(known, monkeypatch):
    monkeypatch.setattr(f"{__name__}.CLICK_IF_NOT", np.zeros(2))  # for InversePropensity
    alpha = THETA * CLICK_IF_RELEVANT
    inverse, robust_mean = np.zeros(3), np.zeros(3)
    X = np.append(WRONG, 0.5)[:, None]
    for chance, lists, marks, shown_with, _ in histories(2):
        probability = [*shown_with, [1.0]] if known else None
        y = click_labels([*lists, OTHER], [*marks, [True]], GROUPS, probability=probability)
        inverse += chance * np.nan_to_num(InversePropensity(alpha).scores(read_clicks(y))[:3])
        robust_mean += chance * estimate_relevance(
            y, X, alpha, regressor=FirstColumn(), min_exposure=0
        )[:3]  # fmt: skip
    if known:
        np.testing.assert_allclose(inverse, GAMMA, atol=1e-12)
        np.testing.assert_allclose(robust_mean, GAMMA, atol=1e-12)
    else:
        assert np.abs(inverse - GAMMA).max() > 0.05
        assert np.abs(robust_mean - GAMMA).max() > 0.05


def test_a_right_regression_needs_no_right_probabilities_of_showing(monkeypatch):
    monkeypatch.setattr(f"{__name__}.CLICK_IF_NOT", np.zeros(2))
    X = np.append(GAMMA, 0.5)[:, None]
    total = np.zeros(3)
    for chance, lists, marks, shown_with, _ in histories(2):
        wrong = [[p / 2 for p in each] for each in shown_with]
        y = click_labels([*lists, OTHER], [*marks, [True]], GROUPS, probability=[*wrong, [1.0]])
        total += chance * estimate_relevance(
            y, X, THETA * CLICK_IF_RELEVANT, regressor=FirstColumn(), min_exposure=0.7
        )[:3]  # fmt: skip
    np.testing.assert_allclose(total, GAMMA, atol=1e-12)


def test_normalized_targets_of_single_sessions_are_biased():
    # the numbers of the guide: two relevant documents, examined with probability .9 and .3
    total, chance = np.zeros(2), 0.0
    for marks in ([0, 1], [1, 0], [1, 1]):
        p = np.prod([t if mark else 1 - t for t, mark in zip((0.9, 0.3), marks, strict=True)])
        y = click_labels([[0, 1]], [np.flatnonzero(marks) + 1], [0, 0])
        gains = InversePropensity([0.9, 0.3]).scores(read_clicks(y))
        total, chance = total + p * gains / gains.sum(), chance + p
    np.testing.assert_allclose(total / chance, [0.75, 0.25], atol=0.005)


# ------------------------------------------------------------------ cascades


def cascade_users(rows, attraction, goes_on):
    """Yield (chance, marks, number examined) of users who may go on after a click (DCM)."""

    def walk(k, chance, marks):
        if k == len(rows):
            yield chance, marks, k
            return
        rest = [False] * (len(rows) - k - 1)
        r = attraction[rows[k]]
        if r < 1:
            yield from walk(k + 1, chance * (1 - r), [*marks, False])
        yield chance * r * (1 - goes_on[k]), [*marks, True, *rest], k + 1
        if goes_on[k] > 0:
            yield from walk(k + 1, chance * r * goes_on[k], [*marks, True])

    return walk(0, 1.0, [])


@pytest.mark.parametrize("goes_on", [[0.0] * 3, [0.6, 0.3, 0.5]])
def test_satisfaction_from_expected_counts_of_cascades(goes_on):
    attraction = np.array([0.5, 0.9, 0.2])
    shown, marks, count = [], [], []
    clicks, at_most = np.zeros(3), np.zeros(3)
    for rows in ([0, 1, 2], [2, 0, 1], [0, 2]):
        total = 0.0
        for chance, marked, examined in cascade_users(rows, attraction, goes_on):
            total += chance
            shown.append(rows)
            marks.append(marked)
            count.append(chance)
            clicks[[row for row, mark in zip(rows, marked, strict=True) if mark]] += chance
            at_most[rows[:examined]] += chance
        assert total == pytest.approx(1)
    labels = click_labels(shown, marks, [0, 0, 0], count=count)
    found = CascadeSatisfaction().scores(read_clicks(labels))
    # clicks per true examination are the truth, whoever goes on
    np.testing.assert_allclose(clicks / at_most, attraction, atol=1e-12)
    if not any(goes_on):  # Craswell et al. (2008)
        np.testing.assert_allclose(found, attraction, atol=1e-12)
        return
    # Guo, Liu and Wang (2009): documents below the last click may have been examined
    assert (found >= attraction - 1e-12).all()
    assert found[1] > attraction[1] + 0.01
    last = [max(np.flatnonzero(m), default=len(m) - 1) for m in marks]

    def bound(r):
        """Their lower bound of the log-likelihood, without what depends on `goes_on` alone."""
        return sum(
            c * np.log(r[row] if mark else 1 - r[row])
            for c, rows, marked, n in zip(count, shown, marks, last, strict=True)
            for row, mark in zip(rows[: n + 1], marked[: n + 1], strict=True)
        )

    for row, step in itertools.product(range(3), [-0.02, 0.02]):
        moved = found.copy()
        moved[row] += step
        assert bound(moved) < bound(found)
    exact = sum(c * np.log(likelihood(s, m, found, goes_on))
                for c, s, m in zip(count, shown, marks, strict=True))  # fmt: skip
    own = sum(c * np.log(np.prod([goes_on[k] for k in np.flatnonzero(m)[:-1]])
                         * (1 - goes_on[np.flatnonzero(m)[-1]]) if any(m) else 1.0)
              for c, m in zip(count, marks, strict=True))  # fmt: skip
    assert exact > bound(found) + own


def likelihood(rows, marks, attraction, goes_on):
    """The chance of the marks: the sum over users who leave them."""
    users = cascade_users(rows, attraction, goes_on)
    return sum(chance for chance, marked, _ in users if marked == list(marks))


# ------------------------------------------------------------------ use


def small_log(n_queries=6, n_sessions=400, seed=0):
    rng = np.random.default_rng(seed)
    relevance, groups = rng.integers(0, 3, 5 * n_queries), np.repeat(np.arange(n_queries), 5)
    X = np.column_stack([relevance + rng.normal(size=len(groups)), rng.normal(size=len(groups))])
    data = make_clicks(relevance, groups, n_sessions, n_shown=3, random_state=seed)
    return X, groups, data


def test_predictions_come_from_other_queries():
    X = np.tile([[1.0], [2.0], [2.0]], (4, 1))
    groups = np.repeat(np.arange(4), 3)
    shown = [[3 * q, 3 * q + 1] for q in range(4) for _ in range(4)]
    marks = [[[1], [1], [1, 2], []]] * 4
    first = [[], [], [], []]  # other clicks in the first query

    def estimate(of_first):
        labels = click_labels(shown, [*of_first, *(m for each in marks[1:] for m in each)], groups)
        return estimate_relevance(labels, X, [1, 0.5], regressor=LinearRegression(), n_folds=4)

    one, two = estimate(marks[0]), estimate(first)
    # row 2 was never shown: its estimate is its prediction
    assert one[2] == pytest.approx(0.5)
    assert two[2] == one[2]
    assert abs(two[5] - one[5]) > 0.05


def test_formula_with_counts_and_frames():
    X, groups, data = small_log()
    theta = 1 / np.arange(1, 4)
    found = estimate_relevance(data.y, X, theta, regressor=LinearRegression(), min_exposure=30)
    frame = pd.DataFrame(X, columns=["a", "b"])
    pipeline = make_pipeline(StandardScaler(), LinearRegression())
    same = estimate_relevance(
        read_clicks(data.y), frame, theta, regressor=pipeline, min_exposure=30
    )
    np.testing.assert_allclose(same, found, atol=1e-9)
    # each session three times is a count of 3
    lists = data.shown.reshape(-1, 3), data.clicked.reshape(-1, 3)
    counted = click_labels(*lists, groups, count=np.full(400, 3))
    thrice = click_labels(*(np.repeat(part, 3, axis=0) for part in lists), groups)
    np.testing.assert_allclose(
        estimate_relevance(counted, X, theta, regressor=LinearRegression()),
        estimate_relevance(thrice, X, theta, regressor=LinearRegression()),
        atol=1e-12,
    )
    # a document with much exposure has the clicks per examination
    place = np.tile(np.arange(3), 400)
    examined = np.bincount(data.shown, theta[place], len(groups))
    rate = np.bincount(data.shown, data.clicked, len(groups)) / examined
    free = estimate_relevance(data.y, X, theta, min_exposure=examined.min())
    np.testing.assert_allclose(free, rate, atol=1e-12)
    assert np.abs(found - rate).max() > 0.01


def test_rounding_makes_nothing_negative_which_losses_would_refuse():
    X, groups, _ = small_log(n_queries=30)
    data = make_clicks((X[:, 0] > 2).astype(int), groups, 3000, noise=0, random_state=0)
    found = estimate_relevance(data.y, X, 1 / np.arange(1, 6), min_exposure=0.0)
    assert found.min() == 0
    below = estimate_relevance(
        data.y, -np.abs(X), 1 / np.arange(1, 6), regressor=FirstColumn(), min_exposure=1000
    )
    assert below.min() == 0


def test_classifiers_and_estimated_propensities():
    X, _, data = small_log(n_sessions=4000)
    known = estimate_relevance(data.y, X, 1 / np.arange(1, 4), regressor=LogisticRegression())
    estimated = estimate_relevance(data.y, X, regressor=LogisticRegression())
    assert np.abs(known - data.probabilities).mean() < 0.08
    assert np.abs(estimated - known).max() < 0.1


def test_queries_without_sessions_are_predicted_and_a_ranker_learns():
    X, groups, data = small_log(n_queries=20)
    inside = groups[data.shown] != 3
    labels = click_labels(
        data.shown[inside], data.clicked[inside], groups, sessions=data.sessions[inside]
    )
    found = estimate_relevance(labels, X, 1 / np.arange(1, 4), regressor=LinearRegression())
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert len(np.unique(found[groups == 3])) == 5
    ranker = CalibratedRanker(LinearRegression(), loss=DCG(gain="linear"))
    scores = ranker.fit(X, found, groups=groups).decision_function(X, groups=groups)
    assert np.corrcoef(scores, X[:, 0])[0, 1] > 0.8


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"X": np.zeros((3, 1))}, ValueError, "X must have one row for each of the 30 documents"),
        ({"n_folds": 1}, ValueError, "n_folds must be a whole number >= 2"),
        ({"n_folds": 2.5}, ValueError, "n_folds must be a whole number"),
        ({"min_exposure": -1}, ValueError, "min_exposure must be a finite number >= 0; got -1"),
        ({"min_exposure": np.inf}, ValueError, "min_exposure must be a finite number"),
        ({"propensities": [1, 0.5]}, ValueError, "A session shows 3 documents, but there are"),
        ({"propensities": [1, 2, 0.5]}, ValueError, r"in \(0, 1\]"),
        ({"propensities": "known"}, ValueError, "must be 'estimate' or an array.*got 'known'"),
        ({"propensities": "estimate", "click_noise": [0, 0, 0]}, ValueError, "needs known"),
        ({"click_noise": [0, 0]}, ValueError, "click_noise must have one number per propensity"),
        ({"click_noise": [0.1, 0, 0]}, ValueError, "between 0 and 1 - propensity"),
        ({"click_noise": [0, -0.1, 0]}, ValueError, "between 0 and 1 - propensity"),
        ({"regressor": KNeighborsRegressor()}, ValueError, "does not support sample_weight"),
        ({"clicks": [1, 0]}, ValueError, "does not contain clicks"),
    ],
)
def test_bad_parameters(options, error, message):
    X, _, data = small_log()
    arguments = {"clicks": data.y, "X": X, "propensities": [1, 0.5, 0.3], **options}
    with pytest.raises(error, match=message):
        estimate_relevance(**arguments)


def test_one_query_with_sessions_is_too_few():
    with pytest.raises(ValueError, match=r"At least 2 queries must have sessions.*1 of 2 have"):
        estimate_relevance(click_labels([[0, 1]], [1], [0, 0, 1]), np.zeros((3, 1)), [1, 0.5])


# ------------------------------------------------------------------ probabilities of showing


def test_probabilities_of_showing_in_all_forms():
    groups, shown, clicked = ["a", "b", "a", "a"], [[2, 0], [1], [0, 3]], [[1], None, [2]]
    p = [[0.5, 0.25], [1.0], [0.75, 0.125]]
    y = click_labels(shown, clicked, groups, probability=p)
    clicks = read_clicks(y)
    assert clicks.row.tolist() == [2, 0, 0, 3, 1]
    assert clicks.probability.tolist() == [0.5, 0.25, 0.75, 0.125, 1.0]
    columns = click_labels(
        [2, 1, 0, 0, 3], [1, 0, 0, 0, 1], groups, sessions=list("xyzxz")[:2] + list("xzz"),
        probability=[0.5, 1.0, 0.25, 0.75, 0.125],
    )  # fmt: skip
    assert read_clicks(columns).probability.tolist() == clicks.probability.tolist()
    assert read_clicks(y[[3, 2, 0]]).probability.tolist() == [0.5, 0.25, 0.75, 0.125]
    assert read_clicks(click_labels(shown, clicked, groups)).probability is None
    # two sessions of query a: 1 / (1 * 0.5) / 2 for row 2, and 1 / (0.5 * 0.125) / 2 for row 3
    assert InversePropensity([1, 0.5]).scores(clicks).tolist() == [0.0, 0.0, 1.0, 8.0]
    assert InversePropensity([1, 0.5], clip=4).scores(clicks).tolist() == [0.0, 0.0, 1.0, 2.0]
    # row 3 alone: the sum is still divided by both sessions; copies have sessions of their own
    part = clicks.take_rows(np.array([3]), Queries.single(1))
    assert part.n_judgements == 1
    assert InversePropensity([1, 0.5]).scores(part).tolist() == [8.0]
    copies = clicks.resample(np.array([1, 1, 0]), np.array([0, 0, 1]), np.array([0, 0]))
    assert InversePropensity([1, 0.5]).scores(copies).tolist() == [0, 0, 16, 0, 2, 0]
    # rates of clicks are not corrected for anything
    assert ClickThroughRate().scores(clicks).tolist() == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([[0.5, 0.5]], "probability must have one number for each document"),
        ([[0.5], [0.5, 0.5]], "probability must have one number for each document"),
        ([[0.5, 0], [0.5]], "probability must be in (0, 1], because clicks are divided by it; it"),
        ([[0.5, 1.5], [0.5]], "it has 1.5"),
        ([[0.5, np.nan], [0.5]], "it has nan"),
    ],
)
def test_bad_probabilities_of_showing(p, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        click_labels([[0, 1], [2]], [1, None], [0, 0, 1], probability=p)


def test_probabilities_of_another_length_with_columns():
    with pytest.raises(ValueError, match="probability must have one number for each document"):
        click_labels([0, 1], [1, 0], [0, 0], sessions=[0, 0], probability=[0.5])


@pytest.mark.parametrize(
    "loss, additive",
    [
        (DCG(gain="linear"), True),
        (ERU(neutral=0.0), True),
        (PDByScores("graded"), True),
        (PDByScores(), False),
        (DCG(), False),
    ],
    ids=str,
)
def test_which_targets_are_additive_over_documents(loss, additive):
    """Statement 4: the target is a y_i + b, with the same a for all and b for a query."""
    rng = np.random.default_rng(0)
    y, queries = rng.uniform(0.0, 4.0, 60), Queries.uniform(10, 6)
    targets = loss.training_targets(y, queries)
    missed = queries.center(targets) - (targets @ queries.center(y)) / (
        queries.center(y) @ queries.center(y)
    ) * queries.center(y)
    assert (np.abs(missed).max() < 1e-9) == additive
