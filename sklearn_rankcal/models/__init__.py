"""Models are fitted to targets, and their predictions are decoded to rankings.

`DocumentModel`, `StackedModel` and `DistilledModel` predict a score for each document, and the
others predict pairs of documents. A model has no name: pass the object as `regressor`.
"""

from typing import Any

from sklearn_rankcal.models._bilinear_pairs import BilinearPairs
from sklearn_rankcal.models._boosting_cv import BoostingCV
from sklearn_rankcal.models._distilled import DistilledModel, default_student
from sklearn_rankcal.models._document import DocumentModel, default_regressor
from sklearn_rankcal.models._model import Model
from sklearn_rankcal.models._pairs import PairModel
from sklearn_rankcal.models._pairwise_ridge import PairwiseRidge
from sklearn_rankcal.models._residual_pairs import ResidualPairModel, ResidualProductModel
from sklearn_rankcal.models._stacked import StackedModel, default_members
from sklearn_rankcal.models._training import Training
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS
from sklearn_rankcal.targets._space import Space

__all__ = [
    "BilinearPairs",
    "BoostingCV",
    "DistilledModel",
    "DocumentModel",
    "Model",
    "PairModel",
    "PairwiseRidge",
    "ResidualPairModel",
    "ResidualProductModel",
    "StackedModel",
    "Training",
    "default_members",
    "default_model",
    "default_regressor",
    "default_student",
    "is_model",
]


#: The default model of each space of pairs. Its first parameter is a model of documents.
_DEFAULT_PAIR_MODELS: dict[Space, Any] = {
    PAIRS: ResidualPairModel,
    SYMMETRIC_PAIRS: ResidualProductModel,
}


def default_model(space: Space, documents: DocumentModel) -> Any:
    """Return the default model of a space: `documents`, or a residual model of pairs around it."""
    return documents if space == SCORES else _DEFAULT_PAIR_MODELS[space](documents)


def is_model(regressor: Any) -> bool:
    """Return whether `regressor` is a model of this package, and not a regressor of rows."""
    return isinstance(regressor, Model)
