"""Models are fitted to targets, and their predictions are decoded to rankings.

`DocumentModel` fits a regressor to one row per document, and predicts scores. `BoostedModel` fits
trees of LightGBM or XGBoost to the gradients of a surrogate. `PairModel` fits a
regressor to one row per pair of documents. `PairwiseRidge` and `BilinearPairs` are fitted to all
pairs of every query in closed form. They are computed from `PairMoments` and `BilinearMoments`,
which are sums over queries. `DocumentMoments` are such sums for `Ridge` and `LinearRegression`.
`ResidualPairModel` and `ResidualProductModel` fit scores first, and
then a model of pairs to the residuals; they are the default models of pairwise disagreement and of
average precision. `StackedModel` combines the scores of several models by weights that it learns on
held-out queries. `LinearModel` predicts linear scores that minimise a surrogate. `BlendedRegressor`
is a regressor with many outputs, for label ranking.
"""

from typing import Any

from sklearn_rankcal.models._bilinear_moments import BilinearMoments
from sklearn_rankcal.models._bilinear_pairs import BilinearPairs
from sklearn_rankcal.models._blend import BlendedRegressor
from sklearn_rankcal.models._boosted import BoostedModel
from sklearn_rankcal.models._document import DocumentModel, default_regressor
from sklearn_rankcal.models._document_moments import DocumentMoments
from sklearn_rankcal.models._linear import LinearModel
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
    "BoostedModel",
    "DocumentModel",
    "DocumentMoments",
    "LinearModel",
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


#: The default model of each space of pairs. Its first parameter is a model of documents.
_DEFAULT_PAIR_MODELS: dict[Space, Any] = {
    PAIRS: ResidualPairModel,
    SYMMETRIC_PAIRS: ResidualProductModel,
}


def default_model(space: Space, documents: DocumentModel) -> Any:
    """Return the default model of a space.

    Parameters
    ----------
    space : Space
        The space of the targets.
    documents : DocumentModel
        The model that predicts scores.

    Returns
    -------
    model : estimator
        `documents` itself for `targets.SCORES`. For a space of pairs, a residual model whose scores
        are predicted by `documents`.
    """
    return documents if space == SCORES else _DEFAULT_PAIR_MODELS[space](documents)


def is_model(regressor: Any) -> bool:
    """Return whether `regressor` is a model of this package, and not a regressor of rows.

    Parameters
    ----------
    regressor : estimator or None

    Returns
    -------
    is_model : bool
    """
    return hasattr(regressor, "space")
