"""Models are fitted to targets and return the predictions that a decoder turns into a ranking.

`DocumentModel` fits a regressor to one row per document, and predicts scores. `PairModel` fits a
regressor to one row per pair of documents. `PairwiseRidge` and `BilinearPairs` are fitted to all
pairs of every query in closed form, through `PairMoments` and `BilinearMoments`, which are sums
over queries. `ResidualPairModel`, for pairwise disagreement, and `ResidualProductModel`, for
average precision, fit scores first and then pairs to the residuals. `BlendedRegressor` is a
regressor with many outputs, for label ranking.
"""

from typing import Any

from sklearn_rankcal.models._bilinear_moments import BilinearMoments
from sklearn_rankcal.models._bilinear_pairs import BilinearPairs
from sklearn_rankcal.models._blend import BlendedRegressor
from sklearn_rankcal.models._document import DocumentModel, default_regressor
from sklearn_rankcal.models._moments import PairMoments
from sklearn_rankcal.models._pairs import PairModel
from sklearn_rankcal.models._pairwise_ridge import PairwiseRidge
from sklearn_rankcal.models._residual_pairs import ResidualPairModel, ResidualProductModel

__all__ = [
    "BilinearMoments",
    "BilinearPairs",
    "BlendedRegressor",
    "DocumentModel",
    "PairModel",
    "PairMoments",
    "PairwiseRidge",
    "ResidualPairModel",
    "ResidualProductModel",
    "default_regressor",
    "is_model",
]


def is_model(regressor: Any) -> bool:
    """Whether `regressor` is a model of this package, rather than a regressor to put in one."""
    return hasattr(regressor, "space")
