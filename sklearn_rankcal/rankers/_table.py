"""The table that the fitted regressor of a ranker sees, for tools that explain regressors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.models import StackedModel
from sklearn_rankcal.rankers._input import read_queries


def transform_table(ranker: Any, X: Any, groups: ArrayLike | None) -> Any:
    """Return the table with context columns, without `group_column`."""
    _check_has_table(ranker, "transform_table")
    table, queries = read_queries(ranker, X, groups, required=ranker._needs_queries())
    return ranker.model_._table(table, queries)[0]


def feature_names(ranker: Any) -> NDArray[Any]:
    """Return the names of the columns of `transform_table`."""
    _check_has_table(ranker, "get_feature_names_out")
    default = [f"x{column}" for column in range(ranker.n_features_in_)]
    names = list(getattr(ranker, "feature_names_in_", default))
    if ranker.group_column is not None:
        del names[ranker._group_place]
    return np.array(ranker.model_.table_names(names), dtype=object)


def _check_has_table(ranker: Any, method: str) -> None:
    """Raise an error if the fitted model has no table with one row for each document."""
    check_is_fitted(ranker)
    model = ranker.model_
    if hasattr(model, "table_names"):
        return
    start = f"{method} needs a ranker that fits one regressor to rows of documents"
    if isinstance(model, StackedModel):
        raise TypeError(
            f"{start}, but this one is a stack of {len(model.members_)} models with tables of "
            "their own, which are in model_.members_. distill makes one regressor of it."
        )
    if ranker.loss_.space.is_pairwise:
        raise TypeError(
            f"{start}, but loss={type(ranker.loss_).__name__} fits a model of pairs of "
            f"documents, {type(model).__name__}. Fit a ranker with regressor='boosting' and a "
            "loss on scores, such as 'pd_by_scores', 'map_by_scores' or 'ndcg'. "
            "inspection.permutation_importance takes all rankers."
        )
    raise TypeError(
        f"{start}, but this one has fitted {type(model).__name__}, which does not say what "
        "table it sees. inspection.permutation_importance takes all rankers."
    )
