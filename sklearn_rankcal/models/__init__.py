"""Models are fitted to targets, and a decoder converts their predictions to rankings.

`DocumentModel` and `BoostingCV` predict one score per document. The other models predict one number
per pair of documents. Pass a model object as `regressor` of a
`CalibratedRanker`.
"""

from typing import TYPE_CHECKING, Any

from sklearn_rankcal.models._boosting_cv import BoostingCV
from sklearn_rankcal.models._document import DocumentModel, default_regressor
from sklearn_rankcal.models._model import Model, Training
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS
from sklearn_rankcal.targets._targets import Space
from sklearn_rankcal.utils._lazy import load_on_use

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
    "default_model",
    "default_regressor",
    "is_model",
]


#: Models that are imported on first use, by folder.
_LAZY = {
    "BilinearPairs": "pairs",
    "PairModel": "pairs",
    "PairwiseRidge": "pairs",
    "ResidualPairModel": "pairs",
    "ResidualProductModel": "pairs",
}
#: Default model for each space of pairs. Its first parameter is a model of documents.
_DEFAULTS = {PAIRS: "ResidualPairModel", SYMMETRIC_PAIRS: "ResidualProductModel"}


__getattr__, __dir__ = load_on_use(__name__, __all__, _LAZY)


def default_model(space: Space, documents: DocumentModel) -> Any:
    """Get the default model of a space of predictions.

    Parameters
    ----------
    space : Space
        `targets.SCORES`, `targets.PAIRS` or `targets.SYMMETRIC_PAIRS`.
    documents : DocumentModel
        The model of scores.

    Returns
    -------
    model : model
        `documents` for scores. For pairs, a model that adds a model of pairs to `documents`.

    Examples
    --------
    >>> from sklearn_rankcal.models import DocumentModel, default_model
    >>> from sklearn_rankcal.targets import PAIRS
    >>> type(default_model(PAIRS, DocumentModel())).__name__
    'ResidualPairModel'
    """
    return documents if space == SCORES else __getattr__(_DEFAULTS[space])(documents)


def is_model(regressor: Any) -> bool:
    """Return whether `regressor` is a model of this package, and not a plain regressor.

    Parameters
    ----------
    regressor : object
        Any object.

    Returns
    -------
    answer : bool
        Whether `regressor` is an instance of `Model`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal.models import DocumentModel, is_model
    >>> is_model(DocumentModel(Ridge())), is_model(Ridge())
    (True, False)
    """
    return isinstance(regressor, Model)
