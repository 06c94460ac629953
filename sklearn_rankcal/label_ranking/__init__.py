"""Label ranking: each row gets a ranking of the same labels."""

from sklearn_rankcal.label_ranking._blend import BlendedRegressor
from sklearn_rankcal.label_ranking._label_ranker import CalibratedLabelRanker

__all__ = ["BlendedRegressor", "CalibratedLabelRanker"]
