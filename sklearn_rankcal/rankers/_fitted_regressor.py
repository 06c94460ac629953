"""Attributes of the fitted regressor, per column of the X that the ranker received."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.models import PairwiseRidge, StackedModel
from sklearn_rankcal.queries import Queries


class FittedRegressorMixin:
    """`feature_importances_` and `coef_` of rankers, and a `classes_` that explains.

    A ranker inherits from this class before it inherits from `QueryRanker`.
    """

    group_column: str | None
    model_: Any
    _group_place: int

    @property
    def classes_(self) -> Any:
        """A ranker has none; cross_val_predict wants them for a method of scores."""
        raise AttributeError(
            "A ranker has no classes_. cross_val_predict(method='decision_function') takes every "
            "estimator for a classifier: use its default method with group_column='qid', or loop "
            "over QueryKFold().split(X, labels)."
        )

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The regressor's importances per column of X, context columns folded in.

        Aligned with ``feature_names_in_``: `group_column` has 0.
        """
        check_is_fitted(self)
        model = self.model_
        if isinstance(model, StackedModel):
            return self._with_group_column(model.feature_importances_)
        return self._with_group_column(
            model.column_importances(model.regressor_.feature_importances_)
        )

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The regressor's coefficients per column of X: average slopes inside a query.

        Aligned with ``feature_names_in_``: `group_column` has 0.
        """
        check_is_fitted(self)
        if isinstance(self.model_, PairwiseRidge):
            return self._with_group_column(self.model_.coef_)
        if isinstance(self.model_, StackedModel):
            raise AttributeError(
                "A stack has no coef_. The models of its members are in model_.members_."
            )
        return self._with_group_column(
            self.model_.column_coefficients(self.model_.regressor_.coef_)
        )

    def _table_and_queries(
        self, X: Any, groups: ArrayLike | None, reset: bool
    ) -> tuple[Any, Queries | None]:
        table, queries = super()._table_and_queries(X, groups, reset)  # type: ignore[misc]
        if reset and self.group_column is not None:
            self._group_place = list(X.columns).index(self.group_column)
        return table, queries

    def _with_group_column(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values per column that the model saw, with a 0 where `group_column` stands in X."""
        if self.group_column is None:
            return values
        return np.insert(values, self._group_place, 0.0, axis=-1)
