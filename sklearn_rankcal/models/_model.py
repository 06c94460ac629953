"""What every model is: it is fitted to one parcel, predicts, and answers questions about itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from sklearn_rankcal.models._training import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.targets._space import Space
from sklearn_rankcal.utils._catboost import ClonesCatBoost
from sklearn_rankcal.utils._estimators import reduce_with_versions
from sklearn_rankcal.utils._typing import Floats


class Model(ClonesCatBoost):
    """Base class of models, which a `CalibratedRanker` takes in the place of a regressor.

    A subclass has `fit` and `predict`, and overrides the answers below that are not its own. Its
    parameters are those of ``__init__``, as those of all estimators of scikit-learn.

    Attributes
    ----------
    space : Space, default=targets.SCORES
        Whether there is one target and one prediction for each document, or for each pair.
    needs_queries : bool, default=False
        Whether the score of a document depends on the other documents of its query.
    needs_dense : bool, default=False
        Whether X has to be a dense table of numbers. A ranker then converts a sparse one.
    takes_categories : bool, default=False
        Whether such a table can be a data frame with columns of categories.
    stops_early : bool, default=False
        Whether `fit` chooses a number of iterations by ``training.validation``.
    learns_targets : bool, default=True
        Whether predictions estimate the expected targets, given enough data.
    has_table : bool, default=False
        Whether one regressor, `regressor_`, is fitted to a table with a row per document.

    Examples
    --------
    A slope for the first column, by least squares inside queries:

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
        """Fit the model to the targets of some queries, and return it."""
        raise NotImplementedError

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the score of each document, or the target of each pair (`PairTargets.flat`)."""
        raise NotImplementedError

    def predict_scores(self, X: Any, queries: Queries) -> Floats | None:
        """Of a model of pairs: scores whose differences are its predictions, or None."""
        return None

    def learners(self) -> Iterator[Any]:
        """Yield the model and the estimators in it that learn targets."""
        yield self
        for value in self.get_params(deep=True).values():
            if hasattr(value, "get_params") and not isinstance(value, type):
                yield value

    def own_importances(self) -> Floats:
        """Return the importances of the fitted regressor per column of X."""
        raise AttributeError(f"{type(self).__name__} has no importances.")

    def own_coefficients(self) -> Floats:
        """Return the coefficients per column of X: average slopes inside a query."""
        raise AttributeError(f"{type(self).__name__} has no coef_.")

    def why_no_table(self) -> str:
        """Say which table there is in the place of one with a row per document (`has_table`)."""
        return f"has fitted {type(self).__name__}, which does not say what table it sees"


class PairwiseModel(Model):
    """Base class of models of pairs, which take a dense table of finite numbers."""

    needs_dense = True

    def why_no_table(self) -> str:
        """Say that the regressor, if there is one, sees pairs."""
        return (
            f"fits a model of pairs of documents, {type(self).__name__}. Fit a ranker with "
            "regressor='boosting' and a loss on scores, such as 'pd_by_scores', 'map_by_scores' "
            "or 'ndcg'"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # a ranker makes a sparse table dense
        return tags
