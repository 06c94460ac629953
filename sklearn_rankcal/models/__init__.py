"""Models: targets come in, surrogate predictions come out. What the wrapped regressor sees.

`DocumentModel` shows it one row per document and predicts scores, `PairModel` one row per pair.
`PairwiseRidge` and `BilinearPairs` fit all pairs of every query in closed form;
`ResidualPairModel`, for pairwise disagreement, and `ResidualProductModel`, for average precision, join the two kinds.
`BlendedRegressor` is a regressor of many outputs.
"""

from typing import Any

from sklearn_rankcal.models._blend import BlendedRegressor
from sklearn_rankcal.models._closed_forms import BilinearPairs, PairwiseRidge
from sklearn_rankcal.models._document import DocumentModel, default_regressor
from sklearn_rankcal.models._pairs import PairModel
from sklearn_rankcal.models._residual_pairs import ResidualPairModel, ResidualProductModel

__all__ = [
    "BilinearPairs",
    "BlendedRegressor",
    "DocumentModel",
    "PairModel",
    "PairwiseRidge",
    "ResidualPairModel",
    "ResidualProductModel",
    "default_regressor",
    "is_model",
]


def is_model(regressor: Any) -> bool:
    """Whether it is a model of documents or pairs, and not a plain regressor to wrap in one."""
    return hasattr(regressor, "space")
