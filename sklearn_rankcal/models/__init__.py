"""Models are fitted to targets and return the predictions that a decoder turns into a ranking.

`DocumentModel` fits a regressor to one row per document, and predicts scores. `PairModel` fits a
regressor to one row per pair of documents. `PairwiseRidge` and `BilinearPairs` are fitted to all
pairs of every query in closed form, through `PairMoments` and `BilinearMoments`, which are sums
over queries. `ResidualPairModel`, for pairwise disagreement, and `ResidualProductModel`, for
average precision, fit scores first and then pairs to the residuals. `StackedModel` combines the
scores of several models by weights that it learns on held-out queries. `BlendedRegressor` is a
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
from sklearn_rankcal.models._stacked import StackedModel, default_members
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS, Space

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
    "StackedModel",
    "default_members",
    "default_model",
    "default_regressor",
    "is_model",
]


#: The default models of the spaces of pairs, each built on a model of documents.
_DEFAULT_PAIR_MODELS: dict[Space, Any] = {
    PAIRS: ResidualPairModel,
    SYMMETRIC_PAIRS: ResidualProductModel,
}


def default_model(space: Space, documents: DocumentModel) -> Any:
    """Return the model that a ranker uses for a space: `documents`, or a model of pairs on it."""
    return documents if space == SCORES else _DEFAULT_PAIR_MODELS[space](documents)


def is_model(regressor: Any) -> bool:
    """Whether `regressor` is a model of this package, rather than a regressor to put in one."""
    return hasattr(regressor, "space")
