"""Models are fitted to targets, and their predictions are decoded to rankings.

`DocumentModel`, `StackedModel` and `DistilledModel` predict a score for each document, and the
others predict pairs of documents. A model has no name: pass the object as `regressor`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sklearn_rankcal.models._boosting_cv import BoostingCV
from sklearn_rankcal.models._document import DocumentModel, default_regressor
from sklearn_rankcal.models._model import Model
from sklearn_rankcal.models._training import Training
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS
from sklearn_rankcal.targets._space import Space

if TYPE_CHECKING:
    from sklearn_rankcal.pairs import (
        BilinearPairs,
        PairModel,
        PairwiseRidge,
        ResidualPairModel,
        ResidualProductModel,
    )
    from sklearn_rankcal.stacking import (
        DistilledModel,
        StackedModel,
        default_members,
        default_student,
    )

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


#: What stands on models of documents is loaded when it is used, from a folder of its own.
_LAZY = {
    "BilinearPairs": "pairs",
    "PairModel": "pairs",
    "PairwiseRidge": "pairs",
    "ResidualPairModel": "pairs",
    "ResidualProductModel": "pairs",
    "DistilledModel": "stacking",
    "StackedModel": "stacking",
    "default_members": "stacking",
    "default_student": "stacking",
}
#: The default model of each space of pairs. Its first parameter is a model of documents.
_DEFAULTS = {PAIRS: "ResidualPairModel", SYMMETRIC_PAIRS: "ResidualProductModel"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"sklearn_rankcal.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'sklearn_rankcal.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def default_model(space: Space, documents: DocumentModel) -> Any:
    """Return the default model of a space: `documents`, or a residual model of pairs around it."""
    return documents if space == SCORES else __getattr__(_DEFAULTS[space])(documents)


def is_model(regressor: Any) -> bool:
    """Return whether `regressor` is a model of this package, and not a regressor of rows."""
    return isinstance(regressor, Model)
