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
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS, Space

__all__ = [
    "BilinearPairs",
    "BlendedRegressor",
    "DocumentModel",
    "PairModel",
    "PairwiseRidge",
    "ResidualPairModel",
    "ResidualProductModel",
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
    """The model that a ranker uses for a space: `documents` itself, or a model of pairs on it."""
    return documents if space == SCORES else _DEFAULT_PAIR_MODELS[space](documents)


def is_model(regressor: Any) -> bool:
    """Whether it is a model of documents or pairs, and not a plain regressor to wrap in one."""
    return hasattr(regressor, "space")
