"""Models are fitted to targets, and a decoder converts their predictions to rankings.

`DocumentModel` and `BoostingCV` predict one score per document. The other models predict one number
per pair of documents. Pass a model object as `regressor` of a
`CalibratedRanker`.
"""

from typing import TYPE_CHECKING

from sklearn_rankcal.models._boosting_cv import BoostingCV
from sklearn_rankcal.models._document import DocumentModel, default_regressor
from sklearn_rankcal.models._model import Model, Training
from sklearn_rankcal.utils import load_on_use

if TYPE_CHECKING:
    from sklearn_rankcal.pairs import (
        BilinearPairs,
        PairModel,
        PairwiseRidge,
        ResidualPairModel,
        ResidualProductModel,
    )

__all__ = [
    "BilinearPairs",
    "BoostingCV",
    "DocumentModel",
    "Model",
    "PairModel",
    "PairwiseRidge",
    "ResidualPairModel",
    "ResidualProductModel",
    "Training",
    "default_regressor",
]


#: Models that are imported on first use, by folder.
_LAZY = {
    "BilinearPairs": "pairs",
    "PairModel": "pairs",
    "PairwiseRidge": "pairs",
    "ResidualPairModel": "pairs",
    "ResidualProductModel": "pairs",
}


__getattr__, __dir__ = load_on_use(__name__, __all__, _LAZY)
