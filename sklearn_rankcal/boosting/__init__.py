"""Surrogates as objectives of LightGBM and XGBoost, and measures as their metrics.

labels, scores -> **gradient and curvature of a surrogate** -> the trees of a library
"""

from sklearn_rankcal.boosting._lightgbm import lightgbm_metric, lightgbm_objective
from sklearn_rankcal.boosting._xgboost import xgboost_metric, xgboost_objective

__all__ = [
    "lightgbm_metric",
    "lightgbm_objective",
    "xgboost_metric",
    "xgboost_objective",
]
