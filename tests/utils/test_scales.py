"""Weights and targets of any magnitude in the range of numbers: only ratios matter."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from sklearn_rankcal import (
    CalibratedLabelRanker,
    CalibratedRanker,
    LowRankClassifier,
    mean_cost_loss,
    preference_labels,
)
from sklearn_rankcal.datasets import make_label_ranking, make_ranking
from sklearn_rankcal.label_ranking import BlendedRegressor
from sklearn_rankcal.labels._labels import read_preferences  # labels as losses see them
from sklearn_rankcal.losses import MAP, PD, PDByScores
from sklearn_rankcal.models import BilinearPairs, DocumentModel, PairModel, PairwiseRidge
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PairTargets, RelevanceDifferences, RelevanceProducts

from ..preference_data import preferences_of_ranks

pytestmark = pytest.mark.usefixtures("few_trees")

DATA = make_ranking(25, (3, 8), 6, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups
WEIGHT = np.random.default_rng(0).uniform(0.5, 2, len(Y))
PAIRS = np.array(
    [(i, j) for i in range(len(Y)) for j in range(len(Y)) if G[i] == G[j] and Y[i] > Y[j]]
)
PAIR_WEIGHT = np.random.default_rng(1).uniform(0.5, 2, len(PAIRS))
EXPONENTS = [-160, -90, -30, 30, 90, 160]  # of 2, so that all is exact

# The regressors and losses for which the scale of sample_weight does not matter.
INVARIANT = {
    "PairwiseRidge": (PairwiseRidge(), "pd"),
    "PairwiseRidge, penalty": (PairwiseRidge(alpha=10.0), PD(equal_queries=True)),
    "BilinearPairs": (BilinearPairs(), "pd"),
    "BilinearPairs, symmetric": (BilinearPairs(symmetric=True), MAP(threshold=2)),
    "ResidualPairModel": (None, "pd"),
    "ResidualProductModel": (None, MAP(threshold=2)),
    "PairModel": (PairModel(), "pd"),
    "default": (None, "ndcg"),
    "DocumentModel": (DocumentModel(), "ndcg"),
    "BlendedRegressor": (BlendedRegressor(n_estimators=5, random_state=0), "ndcg"),
}


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("name", INVARIANT)
def test_rankings_do_not_depend_on_the_scale_of_sample_weight(name):
    """Products of two weights used to underflow, sums overflowed, and trees got weights of 0."""
    regressor, loss = INVARIANT[name]
    ranker = CalibratedRanker(regressor, loss=loss)
    wanted = ranker.fit(X, Y, groups=G, sample_weight=WEIGHT).predict(X, groups=G)
    for exponent in EXPONENTS if name.startswith(("PairwiseRidge", "Bilinear")) else EXPONENTS[::5]:
        ranker.fit(X, Y, groups=G, sample_weight=np.ldexp(WEIGHT, exponent))
        np.testing.assert_array_equal(ranker.predict(X, groups=G), wanted, err_msg=str(exponent))


@pytest.mark.parametrize("exponent", [-45, 45])
@pytest.mark.parametrize(
    "regressor",
    [
        Ridge(),
        make_pipeline(StandardScaler(), Ridge()),
        PairModel(Ridge()),
        HistGradientBoostingRegressor(max_iter=5),
    ],
    ids=["regressor", "pipeline", "pairs", "boosting"],
)
def test_a_regressor_of_the_user_needs_weights_of_an_ordinary_scale(regressor, exponent):
    loss = "pd" if isinstance(regressor, PairModel) else "ndcg"
    ranker = CalibratedRanker(regressor, loss=loss)
    with pytest.raises(ValueError, match=r"largest sample_weight is .* Scale the weights to mean"):
        ranker.fit(X, Y, groups=G, sample_weight=np.ldexp(WEIGHT, exponent))


def test_a_regressor_of_the_user_gets_the_weights_as_they_are():
    """The penalty is relative to the sum of the weights, so that weight 2 equals two copies."""
    one, two = (
        CalibratedRanker(Ridge(), loss="dcg", context=None)
        .fit(X[rows], Y[rows], groups=G[rows], sample_weight=weight)
        .coef_
        for rows, weight in (
            (np.arange(len(Y)), np.full(len(Y), 2.0)),
            (np.repeat(np.arange(len(Y)), 2), None),
        )
    )
    np.testing.assert_allclose(one, two, rtol=1e-9)


class Recorder(LinearRegression):
    seen: list = []

    def fit(self, X, y, sample_weight=None):
        self.seen.append(sample_weight)
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("value, passed", [(1.0, False), (3.0, True)])
def test_weights_that_are_all_1_are_not_passed_on(value, passed):
    """Histogram boosting takes many times longer with weights."""
    weight = np.full(len(Y), value)
    weight[:3] = 0  # such rows are left out
    Recorder.seen.clear()
    CalibratedRanker(Recorder()).fit(X, Y, groups=G, sample_weight=weight)
    CalibratedRanker(PairModel(Recorder()), loss="pd").fit(X, Y, groups=G, sample_weight=weight)
    LowRankClassifier(Recorder()).fit(X, Y, sample_weight=weight)
    data = make_label_ranking(40, 3, 2, random_state=0)
    CalibratedLabelRanker(Recorder()).fit(data.X, data.Y, sample_weight=weight[3:43])
    assert len(Recorder.seen) == 4
    assert [one is not None for one in Recorder.seen] == [passed] * 4


@pytest.mark.parametrize("loss", ["ndcg", "pd", MAP(threshold=2)], ids=str)
def test_the_default_regressor_gets_no_weights_if_all_are_equal(monkeypatch, loss):
    seen = []
    fit = HistGradientBoostingRegressor.fit

    def recorded(self, X, y, sample_weight=None):
        seen.append(sample_weight)
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(HistGradientBoostingRegressor, "fit", recorded)
    equal = {"groups": G, "sample_weight": np.full(len(Y), 0.3)}
    CalibratedRanker("boosting", loss=loss).fit(X, Y, **equal)
    CalibratedRanker("stacked", loss=loss).fit(X, Y, **equal)
    assert len(seen) > 1 and set(seen) == {None}


@pytest.mark.parametrize(
    "regressor, loss",
    [
        (PairwiseRidge(), "pd"),
        (BilinearPairs(), "pd"),
        (None, "pd"),
        (PairModel(DecisionTreeRegressor(max_depth=4, random_state=0)), "pd"),
        (None, "pd_by_scores"),
        (None, PDByScores(score_function="least_squares")),
        (DecisionTreeRegressor(max_depth=4, random_state=0), PDByScores(score_function="row_sums")),
        (BlendedRegressor(n_estimators=5, random_state=0), "pd_by_scores"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_rankings_do_not_depend_on_the_unit_of_preferences(regressor, loss):
    """Squares of tiny targets used to underflow: penalties were arbitrary, trees did not split."""
    ranker = CalibratedRanker(regressor, loss=loss)
    first = ranker.fit(X, preference_labels(PAIRS, G, PAIR_WEIGHT))
    wanted = first.predict(X, groups=G)
    for exponent in (-160, -30, 90, 160):
        labels = preference_labels(PAIRS, G, np.ldexp(PAIR_WEIGHT, exponent))
        found = ranker.fit(X, labels).predict(X, groups=G)
        if isinstance(regressor, BlendedRegressor):  # trees stop at an absolute variance
            assert (found == wanted).mean() > 0.9
        else:
            np.testing.assert_array_equal(found, wanted, err_msg=str(exponent))


def test_log_odds_of_tiny_weights_do_not_vanish():
    """log(y + c) - log(z + c) used to be 0 if both weights are negligible compared with c."""
    ranker = CalibratedRanker(LinearRegression(), loss=PDByScores(score_function="log_odds"))
    labels = [preference_labels(PAIRS, G, PAIR_WEIGHT * unit) for unit in (1e-9, 1e-30, 1e-49)]
    wanted, *found = (ranker.fit(X, one).predict(X, groups=G) for one in labels)
    for ranks in found:
        np.testing.assert_array_equal(ranks, wanted)
    loss = PDByScores(score_function="log_odds", smoothing=0.25)
    for y, z in ((1.0, 0.0), (0.0, 3.0), (0.5, 0.4), (1e49, 0.0), (0.0, 1e49), (2.0, 2.0)):
        given = [(0, 1)] * (y > 0) + [(1, 0)] * (z > 0)
        weight = [y] * (y > 0) + [z] * (z > 0)
        preferences = read_preferences(preference_labels(given, [0, 0], weight))
        expected = np.log((y + 0.25) / (z + 0.25)) / 2
        np.testing.assert_allclose(
            loss.encode(preferences, preferences.queries), [expected, -expected], rtol=1e-12
        )


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize(
    "regressor",
    [None, RandomForestRegressor(5, random_state=0), Ridge()],
    ids=["default", "forest", "ridge"],
)
def test_label_rankings_do_not_depend_on_the_unit_of_weights(regressor):
    data = make_label_ranking(60, 3, 3, random_state=0)
    weights = preferences_of_ranks(data.Y)
    ranker = CalibratedLabelRanker(regressor, random_state=0)
    wanted = ranker.fit(data.X, weights).predict(data.X)
    for exponent in (-160, -60, 160):
        found = ranker.fit(data.X, np.ldexp(weights, exponent))
        assert (found.predict(data.X) == wanted).mean() > 0.95
        largest = np.abs(found.predict_preferences(data.X)).max()
        assert 0.1 < np.ldexp(largest, -exponent) < 3


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_decisions_do_not_depend_on_the_unit_of_costs_or_weights():
    table, y = (part[::3] for part in load_wine(return_X_y=True))
    costs = np.array([[0, 1, 1, 0.4], [1, 0, 1, 0.4], [10, 10, 0, 0.4]])
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    options = {"targets": [0, 1, 2, -1], "random_state": 0}
    for regressor, units in (
        (BlendedRegressor(n_estimators=10), ((0, 160), (-150, -160))),
        (HistGradientBoostingRegressor(max_iter=5), ((-150, 0), (150, 0))),
    ):
        fits = [
            LowRankClassifier(regressor, loss_matrix=np.ldexp(costs, cost), **options).fit(
                table, y, sample_weight=np.ldexp(weight, unit)
            )
            for cost, unit in ((0, 0), *units)
        ]
        wanted = fits[0].predict(table)
        for fit in fits[1:]:
            assert (fit.recalibrator_ is None) == (fits[0].recalibrator_ is None)
            assert (fit.predict(table) == wanted).mean() > 0.95
    huge = np.ldexp(weight, 160)
    mean = mean_cost_loss(y, y[::-1], costs[:, :3], classes=[0, 1, 2], sample_weight=huge)
    assert mean == pytest.approx(np.average(costs[y, y[::-1]], weights=weight))


@pytest.mark.parametrize("kind", ["binary", "graded", lambda difference: difference**2])
def test_the_largest_target_is_found_without_making_them(kind):
    queries = Queries.from_groups(G)
    factor = np.linspace(0.1, 1, queries.n_queries)
    targets = RelevanceDifferences(Y.astype(float), queries, kind, factor)
    assert targets.largest() == pytest.approx(PairTargets.largest(targets))
    relevant = (Y > 1).astype(float)
    products = RelevanceProducts(relevant, queries, queries.sum(relevant))
    assert products.largest() == pytest.approx(PairTargets.largest(products))
