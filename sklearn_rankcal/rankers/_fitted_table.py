"""The table that the fitted regressor of a ranker sees, for tools that explain regressors.

The X of a user comes in. The table with context columns comes out, with the names of its columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.losses import Loss
from sklearn_rankcal.models import LinearModel, StackedModel
from sklearn_rankcal.models._context_table import ContextTableMixin
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._names import checks_keywords


class FittedTableMixin:
    """A mix-in class with the methods `transform_table` and `get_feature_names_out`."""

    group_column: str | None
    loss_: Loss
    model_: Any
    n_features_in_: int
    _group_place: int
    _needs_queries: Callable[[], bool]
    _read_queries: Callable[..., tuple[Any, Queries]]

    @checks_keywords
    def transform_table(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """Return the table that the fitted regressor sees, for tools such as SHAP.

        It has the columns of X without `group_column`, and the context columns. Tools that explain
        a regressor take ``ranker.model_.regressor_`` and this table.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row. A ranker with context columns needs it unless X has the column
            `group_column`.

        Returns
        -------
        table : array, sparse matrix or data frame of shape (n_documents, n_columns)
            It is in the container of X; without context columns and `group_column`, it is X itself.
            `get_feature_names_out` returns the names of its columns.

        Raises
        ------
        TypeError
            If the ranker has fitted a stack or a model of pairs of documents. These have no table
            of their own with one row for each document.
        ValueError
            If query ids are needed and missing, or if X has other columns than in `fit`.

        Notes
        -----
        The scores of `decision_function` are ``regressor_.predict(table)``, with these exceptions:

        - A `BoostedRanker` adds the constant ``model_.start_``.
        - If the largest target of a `CalibratedRanker` is below 2^-16 or above 2^64, the regressor
          has learned the targets divided by a power of 2, and its predictions are multiplied by it.
        - If the regressor is a classifier, scores are expected targets; see `models.DocumentModel`.
        - A `LinearRanker` has no ``regressor_``. Its ``model_.coef_`` and ``model_.intercept_`` are
          those of this table.

        With ``center=True`` the mean of each query is subtracted from the targets of `fit`, but
        nothing is subtracted from predictions.

        Context columns copy the table. The time is O(n_documents * n_columns), plus a sort of each
        column for ``context="rank"``.

        Examples
        --------
        >>> from sklearn.linear_model import Ridge
        >>> from sklearn_rankcal import CalibratedRanker
        >>> X, y, groups = [[1.0], [3.0], [7.0], [9.0]], [0, 1, 0, 1], ["a", "a", "b", "b"]
        >>> ranker = CalibratedRanker(Ridge(), loss="ndcg", context="zscore")
        >>> ranker = ranker.fit(X, y, groups=groups)
        >>> ranker.transform_table(X, groups=groups).tolist()
        [[1.0, -1.0], [3.0, 1.0], [7.0, -1.0], [9.0, 1.0]]
        >>> ranker.get_feature_names_out().tolist()
        ['x0', 'x0__zscore']

        With SHAP, the values of a document explain its score, also by its context columns. The
        table must consist of numbers: encode categories before the ranker.

        >>> import shap  # doctest: +SKIP
        >>> table = ranker.transform_table(X, groups=groups)  # doctest: +SKIP
        >>> explainer = shap.TreeExplainer(ranker.model_.regressor_)  # doctest: +SKIP
        >>> values = explainer.shap_values(table)  # doctest: +SKIP
        """
        self._check_has_table("transform_table")
        table, queries = self._read_queries(X, groups, required=self._needs_queries())
        if isinstance(self.model_, LinearModel):
            return table
        return self.model_._table(table, queries)[0]

    def get_feature_names_out(self) -> NDArray[Any]:
        """Return the names of the columns of `transform_table`.

        Returns
        -------
        names : ndarray of shape (n_columns,)
            The names of the columns of X, ``x0``, ``x1`` and so on if they have none, without
            `group_column`; and for each context column ``<column>__<kind>``.

        Raises
        ------
        TypeError
            As in `transform_table`.
        """
        self._check_has_table("get_feature_names_out")
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{column}" for column in range(self.n_features_in_)]
        names = list(names)
        if self.group_column is not None:
            del names[self._group_place]
        if not isinstance(self.model_, LinearModel):
            names = self.model_.table_names(names)
        return np.array(names, dtype=object)

    def _check_has_table(self, method: str) -> None:
        """Raise an error if the fitted model has no table with one row for each document."""
        check_is_fitted(self)
        model = self.model_
        if isinstance(model, ContextTableMixin | LinearModel):
            return
        start = f"{method} needs a ranker that fits one regressor to rows of documents"
        if isinstance(model, StackedModel):
            raise TypeError(
                f"{start}, but this one is a stack of {len(model.members_)} models with tables of "
                "their own, which are in model_.members_. Fit it with regressor='boosting' or with "
                "a regressor of your own."
            )
        if self.loss_.space.is_pairwise:
            raise TypeError(
                f"{start}, but loss={type(self.loss_).__name__} fits a model of pairs of "
                f"documents, {type(model).__name__}. Fit a ranker with regressor='boosting' and a "
                "loss on scores, such as 'pd_by_scores', 'map_by_scores' or 'ndcg'. "
                "inspection.permutation_importance takes all rankers."
            )
        raise TypeError(
            f"{start}, but this one has fitted {type(model).__name__}, which does not say what "
            "table it sees. inspection.permutation_importance takes all rankers."
        )
