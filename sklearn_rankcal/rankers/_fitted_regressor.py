"""Attributes of the fitted regressor, per column of the X that the ranker received."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.models import LinearModel, PairwiseRidge, StackedModel


class FittedRegressorMixin:
    """`feature_importances_` and `coef_` of rankers that fit a regressor."""

    model_: Any
    _with_group_column: Callable[[NDArray[np.float64]], NDArray[np.float64]]

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The regressor's importances per column of X, context columns folded in.

        Aligned with ``feature_names_in_``: `group_column` has 0.
        """
        check_is_fitted(self)
        model = self.model_
        if isinstance(model, StackedModel):
            return self._with_group_column(model.feature_importances_)
        return self._with_group_column(model.own_importances())

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The regressor's coefficients per column of X: average slopes inside a query.

        Aligned with ``feature_names_in_``: `group_column` has 0.
        """
        check_is_fitted(self)
        if isinstance(self.model_, PairwiseRidge | LinearModel):
            return self._with_group_column(self.model_.coef_)
        if isinstance(self.model_, StackedModel):
            raise AttributeError(
                "A stack has no coef_. The models of its members are in model_.members_."
            )
        return self._with_group_column(
            self.model_.column_coefficients(self.model_.regressor_.coef_)
        )
