"""Label ranking: predict a ranking of the same labels for each row."""

from sklearn_rankcal.label_ranking._blend import BlendedRegressor
from sklearn_rankcal.label_ranking._label_ranker import CalibratedLabelRanker

__all__ = ["BlendedRegressor", "CalibratedLabelRanker"]
