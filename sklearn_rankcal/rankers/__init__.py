"""Rankers: estimators that learn to rank the documents of queries."""

from sklearn_rankcal.rankers._calibrated import CalibratedRanker
from sklearn_rankcal.rankers._predict import QueryOrder
from sklearn_rankcal.rankers._query_ranker import RankerMixin
from sklearn_rankcal.rankers._wrappers import (
    RelevanceRegressor,
    ScoreRegressor,
    predict_order,
    predict_scores,
)

__all__ = [
    "CalibratedRanker",
    "QueryOrder",
    "RankerMixin",
    "RelevanceRegressor",
    "ScoreRegressor",
    "predict_order",
    "predict_scores",
]
