"""Trees of LightGBM, XGBoost and scikit-learn that minimise a surrogate.

labels, scores -> **gradient and curvature of a surrogate** -> the trees of a library
"""

from sklearn_rankcal.boosting._boosted_ranker import BoostedRanker
from sklearn_rankcal.boosting._derivatives import (
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)

__all__ = [
    "BoostedRanker",
    "lightgbm_metric",
    "lightgbm_objective",
    "xgboost_metric",
    "xgboost_objective",
]
