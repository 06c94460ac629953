"""Rankers of every kind pass scikit-learn's checks of estimators and our checks of rankers."""

import itertools
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_rankcal import BoostedRanker, CalibratedRanker, LinearRanker
from sklearn_rankcal.estimator_checks import (
    check_ranker,
    expected_failed_checks,
    yield_ranker_checks,
)
from sklearn_rankcal.linear import LinearModel
from sklearn_rankcal.losses import LOSSES, MAP, MAPByScores, Precision
from sklearn_rankcal.models import BilinearPairs, DocumentModel, PairwiseRidge
from sklearn_rankcal.queries import Queries

from ..boosting_tools import regressor
from ..covering import covering, covering_checks

pytestmark = pytest.mark.usefixtures("few_trees")

CHECKED = [
    CalibratedRanker(),
    CalibratedRanker(Ridge()),
    CalibratedRanker(Ridge(), loss="dcg"),
    CalibratedRanker(Ridge(), loss="err"),
    CalibratedRanker(Ridge(), loss=MAPByScores(threshold=1)),
    CalibratedRanker(Ridge(), loss=Precision(threshold=1), context=None, center=False),
    CalibratedRanker(DecisionTreeRegressor(max_depth=3)),
    CalibratedRanker(LogisticRegression(), loss="dcg"),
    CalibratedRanker(LogisticRegression(), loss="ndcg"),
    CalibratedRanker(loss="pd", decoder="greedy_dag"),
    CalibratedRanker(PairwiseRidge(), loss="pd"),
    CalibratedRanker(BilinearPairs(), loss="pd"),
    CalibratedRanker(loss=MAP(threshold=1)),
    CalibratedRanker(BilinearPairs(symmetric=True), loss=MAP(threshold=1, shrinkage=0)),
    CalibratedRanker(LinearModel("pairwise_squared")),
    LinearRanker(),
    LinearRanker("pointwise_squared", loss="dcg"),
    LinearRanker("pairwise_logistic", solver="sgd", max_iter=2),
]
if find_spec("lightgbm") is not None:
    CHECKED += [BoostedRanker(regressor=regressor("lightgbm", 5), loss="dcg")]
if find_spec("xgboost") is not None:
    CHECKED += [BoostedRanker("cosine", regressor=regressor("xgboost", 5), loss="err")]


# scikit-learn's checks fit without groups, which makes a ranker warn.
@pytest.mark.filterwarnings("ignore::sklearn_rankcal.exceptions.MissingGroupsWarning")
# On the tiny data of check_estimators_overwrite_params and others, lbfgs may stop early.
@pytest.mark.filterwarnings("ignore:.*lbfgs failed to converge.*")
# The labels 1 and 2 of check_sample_weights_shape and others are all relevant from 1 on.
@pytest.mark.filterwarnings("ignore:.*has learned nothing.*")
@covering_checks(parametrize_with_checks(CHECKED, expected_failed_checks=expected_failed_checks))
def test_scikit_learn_checks(estimator, check):
    check(estimator)


CHECKS = {check.__name__: check for check in yield_ranker_checks()}
RANKERS = {
    "default": CalibratedRanker(),
    "ridge": CalibratedRanker(Ridge()),
    "no context": CalibratedRanker(Ridge(), context=None),
    "all contexts": CalibratedRanker(Ridge(), context=["zscore", "difference", "rank"]),
    "uncentred trees": CalibratedRanker(DecisionTreeRegressor(max_depth=4), center=False),
    "classifier of levels": CalibratedRanker(LogisticRegression(), loss="dcg"),
    "classifier of shares": CalibratedRanker(LogisticRegression(), loss="ndcg"),
    "classifier by margins": CalibratedRanker(RidgeClassifier(), loss="spearman"),
    "pipeline": CalibratedRanker(make_pipeline(StandardScaler(), Ridge())),
    "model": CalibratedRanker(DocumentModel(Ridge(), context="rank")),
    "pairs": CalibratedRanker(loss="pd"),
    "closed form": CalibratedRanker(PairwiseRidge(), loss="pd", decoder="greedy_dag"),
    "products": CalibratedRanker(loss=MAP(threshold=1)),
    "linear model": CalibratedRanker(LinearModel(alpha=0.1)),
    "linear": LinearRanker(alpha=0.1),
    "linear, squared": LinearRanker("pointwise_squared", alpha=0.1),
    "linear, comparisons": LinearRanker("ranknet", n_jobs=2),
    "linear, stochastic": LinearRanker("pairwise_logistic", solver="sgd"),
}


@pytest.mark.parametrize(("name", "check"), covering(itertools.product(RANKERS, CHECKS)), ids=str)
def test_ranker_checks(name, check):
    CHECKS[check](RANKERS[name])


@pytest.mark.parametrize(("name", "check"), covering(itertools.product(LOSSES, CHECKS)), ids=str)
def test_every_loss_passes_the_ranker_checks(name, check):
    CHECKS[check](CalibratedRanker(Ridge(), loss=LOSSES[name]()))


class _WorstFirst(CalibratedRanker):
    def decision_function(self, X, groups=None):
        return -super().decision_function(X, groups)

    def predict(self, X, groups=None):
        ranks = super().predict(X, groups)
        queries = Queries.from_groups(groups, len(ranks))
        return queries.broadcast(queries.sizes) + 1 - ranks


class _ByRow(CalibratedRanker):
    def predict(self, X, groups=None):
        queries = Queries.from_groups(groups, len(X))
        return queries.rank(queries.sort(np.zeros(queries.n_rows)))


def test_the_checks_catch_a_bad_ranker():
    with pytest.raises(AssertionError, match="Kendall's tau"):
        check_ranker(_WorstFirst(Ridge()))
    with pytest.raises(AssertionError):
        check_ranker(_ByRow(Ridge()))
