"""The table that a model of documents fits a regressor to: the columns of X and context columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.models._automatic_context import columns_that_differ
from sklearn_rankcal.models._column_parameters import (
    constrained_places,
    match_parameters,
    places_without_context,
)
from sklearn_rankcal.models._context import add_context, check_context
from sklearn_rankcal.models._tables import PREDICTION_BYTES, stored_columns
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._catboost import readable_table
from sklearn_rankcal.utils._features import is_dataframe, numeric_columns, take_rows
from sklearn_rankcal.utils._memory import rows_per_block


class ContextTableMixin:
    """The part of a model of documents that is about context columns.

    The model has the parameters `regressor` and `context`. Its `fit` calls `_choose_columns` first,
    and `match_parameters` before it fits the regressor.
    """

    regressor: Any
    context: str | Sequence[str] | None
    #: The dtype of tables with context columns; None keeps float32 and converts others to float64.
    _dtype: Any = None

    def _choose_columns(self, X: Any, queries: Queries) -> None:
        """Choose the columns that context columns describe, and set `context_`."""
        columns = numeric_columns(X)
        self._set_columns(X, columns_that_differ(X, columns, queries) if self._auto else columns)

    @property
    def _auto(self) -> bool:
        return isinstance(self.context, str) and self.context == "auto"

    def _set_columns(self, X: Any, columns: list[Any]) -> None:
        """Set `context_`, for a table of the form of X and the columns to describe."""
        # The positions of the columns, which are names in a data frame.
        names = list(X.columns) if is_dataframe(X) else range(X.shape[1])
        place = {name: number for number, name in enumerate(names)}
        kinds = self.context
        if self._auto:  # a constraint holds for differences, and not for z-scores
            constrained = columns and constrained_places(self.regressor, X)
            signed = constrained and constrained & {place[name] for name in columns}
            kinds = "difference" if signed else "zscore"
        self._kinds = check_context(kinds)
        left_out = places_without_context(self.regressor, X, self._kinds) if self._kinds else ()
        kept = [name for name in columns if place[name] not in left_out]
        if not kept and (self._auto or columns):
            self._kinds = ()
        self._columns = kept
        self.context_ = {kind: list(kept) for kind in self._kinds}
        self._n_columns = X.shape[1]
        self._described = np.array([place[name] for name in kept], dtype=np.int64)

    def match_parameters(self, regressor: Any, X: Any) -> None:
        """Let parameters of columns, such as monotone constraints, hold for context columns."""
        match_parameters(regressor, X, self._described.tolist(), len(self._kinds))

    def _table(self, X: Any, queries: Queries) -> tuple[Any, NDArray[np.float64] | None]:
        """Return the columns that the regressor sees, and the mean slopes of "zscore"."""
        slopes = None
        if self._kinds:
            X, slopes = add_context(X, queries, self._kinds, self._columns, self._dtype)
        return readable_table(self.regressor, X), slopes

    def table_names(self, names: list[str]) -> list[str]:
        """Return the names of the columns that the regressor sees, given those of X."""
        added = [f"{names[place]}__{kind}" for kind in self._kinds for place in self._described]
        return [*names, *added]

    def _predict_blocks(
        self,
        X: Any,
        queries: Queries,
        predict: Callable[[Any], NDArray[np.float64]],
        n_bytes: int = PREDICTION_BYTES,
    ) -> NDArray[np.float64]:
        """Predict the score of each document, by blocks of a table of about `n_bytes` bytes."""
        scores = np.empty(queries.n_rows)
        # Without context columns, the score of a document does not depend on its query. A block
        # then need not consist of whole queries.
        parts = queries if self._kinds else Queries.uniform(queries.n_rows, 1)
        n_columns = stored_columns(X) + len(self._columns) * len(self._kinds)
        step = rows_per_block(8 * n_columns, n_bytes)
        for rows, part in parts.chunks(step):
            whole = isinstance(rows, slice) and part.n_rows == queries.n_rows
            table, _ = self._table(X if whole else take_rows(X, rows), part)
            if part.n_rows <= step:
                scores[rows] = predict(table)
                continue
            # a query that is longer than a block
            starts = range(0, part.n_rows, step)
            scores[rows] = np.concatenate(
                [predict(take_rows(table, slice(a, a + step))) for a in starts]
            )
        return scores

    def own_importances(self) -> NDArray[Any]:
        """Return the importances of the fitted regressor per column of X."""
        regressor: Any = self.regressor_  # type: ignore[attr-defined]
        if not hasattr(regressor, "feature_importances_"):
            raise AttributeError(
                f"{type(regressor).__name__} has no feature_importances_, and so a ranker or stack "
                "with it. inspection.permutation_importance takes all rankers."
            )
        return self.column_importances(regressor.feature_importances_)

    def column_importances(self, values: NDArray[Any]) -> NDArray[Any]:
        """Add the importances of context columns to those of the columns that they describe."""
        return self._sum_by_column(values, dict.fromkeys(self._kinds, 1.0))

    def _sum_by_column(self, values: NDArray[Any], factors: dict[str, Any]) -> NDArray[Any]:
        """Add the values of context columns, times the factor of their kind, to those of X."""
        values = np.asarray(values)
        total = np.array(values[..., : self._n_columns], dtype=np.float64)
        if not self._kinds:
            return total
        added = values[..., self._n_columns :]
        width = len(self._described)
        if added.shape[-1] != width * len(self._kinds):
            raise AttributeError("The columns of the regressor do not correspond to those of X.")
        for number, kind in enumerate(self._kinds):
            part = added[..., number * width : (number + 1) * width]
            total[..., self._described] += part * factors[kind]
        return total
