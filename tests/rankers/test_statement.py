"""What `calibrated_over_` says of a loss with a decoder and a regressor."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import HuberRegressor, QuantileRegressor, Ridge, SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.decoders import DECODERS, PreferenceDecoder, Tiers
from sklearn_rankcal.losses import MAP
from sklearn_rankcal.models import DocumentModel
from sklearn_rankcal.rankers._calibrated import calibrated_over  # the sentence before a fit

DATA = make_ranking(n_queries=12, random_state=0)


def said(regressor, **parameters):
    ranker = CalibratedRanker(regressor, **parameters)
    return ranker.fit(DATA.X, DATA.y, groups=DATA.groups).calibrated_over_


@pytest.mark.parametrize(
    "regressor",
    [
        HistGradientBoostingRegressor(loss="absolute_error", max_iter=2),
        HistGradientBoostingRegressor(loss="quantile", quantile=0.5, max_iter=2),
        GradientBoostingRegressor(loss="huber", n_estimators=2),
        ExtraTreesRegressor(2, criterion="absolute_error"),
        SGDRegressor(loss="epsilon_insensitive"),
        HuberRegressor(max_iter=1000),
        QuantileRegressor(),
        SVR(),
        AdaBoostRegressor(n_estimators=2),
        make_pipeline(StandardScaler(), SVR()),
        BaggingRegressor(DecisionTreeRegressor(criterion="absolute_error"), n_estimators=2),
        GridSearchCV(SVR(), {"C": [1.0]}, cv=2),
        TransformedTargetRegressor(Ridge(), func=np.cbrt, inverse_func=lambda x: x**3),
        DocumentModel(QuantileRegressor()),
    ],
    ids=lambda regressor: str(regressor).replace("\n", "")[:60],
)
@pytest.mark.filterwarnings("ignore:.* has learned nothing")
def test_a_regressor_that_estimates_no_mean_breaks_the_theorem(regressor):
    sentence = said(regressor, loss="dcg")
    assert sentence.startswith("no distributions in general: ")
    assert sentence.endswith(" does not estimate expected targets")


@pytest.mark.parametrize(
    "regressor",
    [
        Ridge(),
        KNeighborsRegressor(),
        HistGradientBoostingRegressor(max_iter=2),
        HistGradientBoostingRegressor(loss="squared_error", max_iter=2),
        GradientBoostingRegressor(n_estimators=2),
        SGDRegressor(),
        GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=2),
        TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
        "boosting",
    ],
    ids=lambda regressor: str(regressor).replace("\n", "")[:60],
)
def test_a_regressor_of_means_keeps_the_sentence_of_the_loss(regressor):
    assert said(regressor, loss="dcg").startswith("every distribution")


def test_medians_of_targets_are_not_enough():
    # The gains of the first document are 27 with probability 1/4, those of the second always 1.
    y = np.array([[3, 1], [0, 1], [0, 1], [0, 1]] * 10)
    X, groups = np.tile([[0.0], [1.0]], (40, 1)), np.repeat(range(40), 2)
    found = {}
    for loss in ("squared_error", "absolute_error"):
        trees = HistGradientBoostingRegressor(loss=loss, min_samples_leaf=1)
        ranker = CalibratedRanker(trees, loss="dcg", center=False, context=None)
        ranker.fit(X, y.ravel(), groups)
        found[loss] = ranker.predict([[0.0], [1.0]], groups=[0, 0]).tolist()
        assert ranker.calibrated_over_.startswith("every") == (loss == "squared_error")
    assert found == {"squared_error": [1, 2], "absolute_error": [2, 1]}


@pytest.mark.parametrize(
    "decoder, begins",
    [
        ("exact", "every distribution, decoded exactly (Ramaswamy et al., 2013, theorem 3)"),
        ("auto", "every distribution, decoded exactly (Ramaswamy et al., 2013, theorem 3), which"),
        ("local_search", "no distributions in general: a local search"),
        ("borda", "no distributions in general: decoder='borda'"),
        (PreferenceDecoder("borda"), "no distributions in general: decoder='borda'"),
        ("copeland", "the distributions whose expected preferences have no cycle and no tie"),
        ("sort", "the distributions whose expected preferences have no cycle and no tie"),
        ("greedy_dag", "the distributions whose expected preferences have no cycle (Ramaswamy"),
        (Tiers(1.0), "no distributions for rankings: Tiers"),
    ],
    ids=str,
)
def test_a_decoder_of_preferences_changes_the_sentence(decoder, begins):
    sentence = said(Ridge(), loss="pd", decoder=decoder)
    assert sentence.startswith(begins)
    assert decoder in ("exact", "auto") or not sentence.startswith("every")


@pytest.mark.parametrize(
    "decoder, words",
    [
        ("exact", "every distribution, decoded exactly"),
        ("auto", "for up to 16 documents"),
        ("local_search", "no distributions in general: a local search"),
        ("diagonal", "the distributions of P_reinforce"),
    ],
)
def test_a_decoder_of_average_precision_changes_the_sentence(decoder, words):
    assert words in said(Ridge(), loss=MAP(threshold=2), decoder=decoder)


def test_every_decoder_has_a_sentence():
    from sklearn_rankcal.rankers._calibrated import _DECODED

    decoders = [make() for make in DECODERS.values()]
    assert {(type(one), getattr(one, "method", None)) for one in decoders} == set(_DECODED)


class Own(BaseEstimator):
    def decode(self, u, queries, n_jobs=None):
        raise NotImplementedError


def test_a_decoder_of_the_users_own_is_named():
    from sklearn_rankcal.losses import PD

    sentence = calibrated_over(PD(), Own(), DocumentModel(Ridge()))
    assert sentence.endswith(", if Own finds the best ranking")
