"""Rankers: estimators that learn to rank the documents of queries."""

from sklearn_rankcal.rankers._calibrated import CalibratedRanker
from sklearn_rankcal.rankers._order import QueryOrder
from sklearn_rankcal.rankers._query_ranker import RankerMixin
from sklearn_rankcal.rankers._wrapped_predictions import predict_order, predict_scores
from sklearn_rankcal.rankers._wrappers import RelevanceRegressor, ScoreRegressor

__all__ = [
    "CalibratedRanker",
    "QueryOrder",
    "RankerMixin",
    "RelevanceRegressor",
    "ScoreRegressor",
    "predict_order",
    "predict_scores",
]
