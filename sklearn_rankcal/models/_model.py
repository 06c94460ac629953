"""Base classes of models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from sklearn_rankcal.models._training import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.targets._targets import Space
from sklearn_rankcal.utils._catboost import ClonesCatBoost
from sklearn_rankcal.utils._estimators import reduce_with_versions
from sklearn_rankcal.utils._typing import Floats


class Model(ClonesCatBoost):
    """Base class of models, which `CalibratedRanker` accepts as `regressor`.

    A subclass defines `fit` and `predict`, and overrides the attributes below that differ. As for
    all estimators of scikit-learn, the arguments of ``__init__`` are its parameters.

    Attributes
    ----------
    space : Space, default=targets.SCORES
        Whether targets and predictions are one number per document or one number per pair.
    needs_queries : bool, default=False
        Whether the score of a document depends on the other documents of its query.
    needs_dense : bool, default=False
        Whether X must be a dense table of numbers. The ranker converts sparse X.
    takes_categories : bool, default=False
        Whether a dense table may be a data frame with category columns.
    stops_early : bool, default=False
        Whether `fit` chooses a number of iterations by ``training.validation``.
    learns_targets : bool, default=True
        Whether predictions estimate the expected targets, given enough data.
    has_table : bool, default=False
        Whether `fit` fits one regressor, ``regressor_``, to a table with one row per document.

    Examples
    --------
    A model with a slope for the first column, by least squares within queries:

    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.models import Model
    >>> class FirstColumn(Model):
    ...     def fit(self, training):
    ...         inside = training.queries.center(training.X[:, 0])
    ...         self.slope_ = inside @ training.targets / (inside @ inside)
    ...         return self
    ...
    ...     def predict(self, X, queries):
    ...         return self.slope_ * X[:, 0]
    >>> X, y, groups = [[1.0], [2.0], [1.0], [2.0]], [0, 2, 1, 2], [0, 0, 1, 1]
    >>> CalibratedRanker(FirstColumn()).fit(X, y, groups=groups).predict(X, groups).tolist()
    [2, 1, 2, 1]
    """

    space: Space = SCORES
    needs_queries: bool = False
    needs_dense: bool = False
    takes_categories: bool = False
    stops_early: bool = False
    learns_targets: bool = True
    has_table: bool = False

    __reduce__ = reduce_with_versions

    def fit(self, training: Training) -> Self:
        """Fit the model.

        Parameters
        ----------
        training : Training
            Documents, targets and queries.

        Returns
        -------
        self : Model
            The fitted model.
        """
        raise self._lacks("fit(training)")

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the score of each document, or the target of each pair.

        Parameters
        ----------
        X : {ndarray, sparse matrix, data frame} of shape (n_documents, n_features)
            The table, without query ids.
        queries : Queries
            The rows of each query.

        Returns
        -------
        predictions : ndarray of shape (n_documents,) or (n_pairs,)
            Scores in the order of the rows, or pairs in the order of `PairTargets.flat`.
        """
        raise self._lacks("predict(X, queries)")

    def _lacks(self, method: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} must define {method}. See the documentation of models.Model."
        )

    def predict_scores(self, X: Any, queries: Queries) -> Floats | None:
        """Predict scores whose differences are the predictions of a model of pairs.

        Parameters
        ----------
        X, queries
            As in `predict`.

        Returns
        -------
        scores : ndarray of shape (n_documents,) or None
            None if the predictions are not differences of scores.
        """
        return None

    def learners(self) -> Iterator[Any]:
        """Iterate over the model and the estimators inside it that learn targets.

        Yields
        ------
        estimator : estimator
            The model, or an estimator among its parameters.
        """
        yield self
        for value in self.get_params(deep=True).values():
            if hasattr(value, "get_params") and not isinstance(value, type):
                yield value

    def own_importances(self) -> Floats:
        """Return the importances of the fitted regressor per column of X.

        Returns
        -------
        importances : ndarray of shape (n_features,)
            Raises AttributeError if there are none.
        """
        raise AttributeError(f"{type(self).__name__} has no importances.")

    def own_coefficients(self) -> Floats:
        """Return the coefficients per column of X: average slopes within a query.

        Returns
        -------
        coefficients : ndarray of shape (n_features,)
            Raises AttributeError if there are none.
        """
        raise AttributeError(f"{type(self).__name__} has no coef_.")

    def why_no_table(self) -> str:
        """Return the end of an error message: why the model has no table (see `has_table`).

        Returns
        -------
        text : str
            A predicate, such as ``"is a stack of 4 models"``.
        """
        return f"has fitted {type(self).__name__}, which does not provide its table"


class PairwiseModel(Model):
    """Base class of models of pairs. They need a dense table of finite numbers."""

    needs_dense = True

    def why_no_table(self) -> str:
        """Return the end of an error message: the regressor is fitted to pairs."""
        return (
            f"fits a model of pairs of documents, {type(self).__name__}. Fit a ranker with "
            "regressor='boosting' and a loss on scores, such as 'pd_by_scores', 'map_by_scores' "
            "or 'ndcg'"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # the ranker converts sparse tables
        return tags
