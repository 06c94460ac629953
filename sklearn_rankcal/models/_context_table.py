"""The table that a regressor is fitted to: the columns of X and context columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from sklearn_rankcal.models._automatic_context import columns_that_differ
from sklearn_rankcal.models._column_parameters import (
    constrained_places,
    ignored_places,
    match_parameters,
    places_without_context,
)
from sklearn_rankcal.models._context import SHARE, add_context, check_context, columns_of_kinds
from sklearn_rankcal.models._early_stopping import BoostingRun, fit_until_best
from sklearn_rankcal.models._model import Model
from sklearn_rankcal.models._training import Validation
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._catboost import readable_table
from sklearn_rankcal.utils._features import (
    category_columns,
    frequent_categories,
    is_dataframe,
    keep_categories,
    note_columns,
    numeric_columns,
    stored_columns,
    take_rows,
)
from sklearn_rankcal.utils._memory import PREDICTION_BYTES, rows_per_block
from sklearn_rankcal.utils._sklearn_compat import HISTOGRAMS
from sklearn_rankcal.utils._typing import Floats


class ContextTableModel(Model):
    """Base class of models of scores that fit one regressor to a table with context columns.

    A subclass has the parameters `regressor` and `context`. Its `fit` calls `_choose_columns`
    first, and `match_parameters` before it fits the regressor.
    """

    regressor: Any
    regressor_: Any
    has_table = True
    context: str | Sequence[str] | None
    #: dtype of tables with context columns. None keeps float32 and converts the rest to float64.
    _dtype: Any = None

    @property
    def needs_queries(self) -> bool:  # type: ignore[override]
        """Whether the score of a document depends on the other documents of its query."""
        return self._auto or bool(check_context(self.context))

    @property
    def needs_dense(self) -> bool:  # type: ignore[override]
        """Whether the regressor is the default, which needs a dense table."""
        return self.regressor is None

    @property
    def takes_categories(self) -> bool:  # type: ignore[override]
        """Whether the regressor is the default, which supports categories of a data frame."""
        return self.regressor is None

    def _choose_columns(self, X: Any, queries: Queries) -> None:
        """Choose the columns that get context columns, and set `context_`."""
        judged, others = self.candidates(X)
        self._set_columns(X, others + columns_that_differ(X, judged, queries))

    def candidates(self, X: Any) -> tuple[list[Any], list[Any]]:
        """Return the columns that get context columns if they differ, and those that always do."""
        kinds = () if self._auto else check_context(self.context)
        numbers = numeric_columns(X)
        # an encoder for a table of only categories would encode the shares, too
        encoded = self._auto and not numbers and hasattr(self.regressor, "steps")
        described = SHARE in kinds or (self._auto and not encoded)
        categories = category_columns(X) if described else []
        return (numbers + categories, []) if self._auto else (categories, numbers)

    @property
    def _auto(self) -> bool:
        return isinstance(self.context, str) and self.context == "auto"

    def _set_columns(self, X: Any, columns: list[Any]) -> None:
        """Set `context_` for these columns of tables of the form of X."""
        names = list(X.columns) if is_dataframe(X) else range(X.shape[1])
        place = {name: number for number, name in enumerate(names)}
        categories = set(category_columns(X))
        kinds = self.context
        if self._auto:  # constraints hold for differences, but not for z-scores
            constrained = columns and constrained_places(self.regressor, X)
            signed = constrained and constrained & {place[name] for name in columns}
            kinds = ["difference" if signed else "zscore", SHARE]
        self.context_: dict[str, list[Any]] = {}
        self._columns: list[Any] = []  # numeric columns with context columns
        kinds = check_context(kinds)
        possible = columns_of_kinds(X, kinds)
        for kind in kinds:
            if kind == SHARE:
                left_out = ignored_places(self.regressor, X)
            else:
                left_out = places_without_context(self.regressor, X, kinds)
            kept = [
                name
                for name in columns
                if (name in categories) == (kind == SHARE) and place[name] not in left_out
            ]
            # `add_context` raises an error for a requested kind without any possible column
            if kept or not (self._auto or possible[kind]):
                self.context_[kind] = kept
                self._columns = self._columns if kind == SHARE else kept
        #: the categories that are not made missing, for columns with too many for the regressor
        self._frequent = self._categories_to_keep(X)
        self._kinds = tuple(self.context_)
        self._n_columns = X.shape[1]
        #: kind of each context column, and place of its column of X
        self._added = [(kind, place[name]) for kind, own in self.context_.items() for name in own]

    def _categories_to_keep(self, X: Any) -> dict[Any, list[Any]]:
        """Return the most frequent categories of columns with more than histograms have bins."""
        regressor = HistGradientBoostingRegressor() if self.regressor is None else self.regressor
        if not is_dataframe(X) or not isinstance(regressor, HISTOGRAMS):
            return {}
        # for scikit-learn, a missing text is a category of its own
        return frequent_categories(X, regressor.max_bins - 1)

    def match_parameters(self, regressor: Any, X: Any) -> None:
        """Extend parameters of columns, such as monotone constraints, to context columns."""
        match_parameters(regressor, X, [place for _, place in self._added])

    def _table(self, X: Any, queries: Queries) -> tuple[Any, Floats | None]:
        """Return the table of the regressor, and the mean slopes of z-scores."""
        slopes = None
        if self._kinds:
            X, slopes = add_context(X, queries, self.context_, self._dtype)
        return readable_table(self.regressor, keep_categories(X, self._frequent)), slopes

    def _fit_to_table(
        self,
        regressor: Any,
        table: Any,
        targets: NDArray[Any],
        weights: dict[str, Any],
        validation: Validation | None,
        as_scores: Callable[[Any], Floats],
    ) -> Any:
        """Fit a regressor. Validation queries, if any, choose the number of iterations."""
        try:
            if validation is None:
                return regressor.fit(table, targets, **weights)
            held_out, _ = self._table(validation.held_out.X, validation.held_out.queries)
            return fit_until_best(
                BoostingRun(regressor, table, targets, weights, validation, held_out, as_scores)
            )
        except (TypeError, ValueError) as error:
            note_columns(error, table)
            raise

    def table_names(self, names: list[str]) -> list[str]:
        """Return the column names of the table of the regressor, given the names of X."""
        return [*names, *(f"{names[place]}__{kind}" for kind, place in self._added)]

    def _predict_blocks(
        self,
        X: Any,
        queries: Queries,
        predict: Callable[[Any], Floats],
        n_bytes: int = PREDICTION_BYTES,
    ) -> Floats:
        """Predict the score of each document in blocks of about `n_bytes` bytes."""
        scores = np.empty(queries.n_rows)
        # without context columns, blocks need not consist of whole queries
        parts = queries if self._kinds else Queries.uniform(queries.n_rows, 1)
        n_columns = stored_columns(X) + len(self._added)
        step = rows_per_block(8 * n_columns, n_bytes)
        for rows, part in parts.chunks(step):
            whole = isinstance(rows, slice) and part.n_rows == queries.n_rows
            table, _ = self._table(X if whole else take_rows(X, rows), part)
            if part.n_rows <= step:
                scores[rows] = predict(table)
                continue
            # a query that is larger than a block
            starts = range(0, part.n_rows, step)
            scores[rows] = np.concatenate(
                [predict(take_rows(table, slice(a, a + step))) for a in starts]
            )
        return scores

    def own_importances(self) -> NDArray[Any]:
        """Return the importances of the fitted regressor per column of X."""
        regressor = self.regressor_
        if not hasattr(regressor, "feature_importances_"):
            raise AttributeError(
                f"{type(regressor).__name__} has no feature_importances_, so a ranker or stack "
                "with it has none. inspection.permutation_importance supports all rankers."
            )
        return self.column_importances(regressor.feature_importances_)

    def column_importances(self, values: NDArray[Any]) -> NDArray[Any]:
        """Add the importance of each context column to its column of X."""
        return self._sum_by_column(values, dict.fromkeys(self._kinds, 1.0))

    def _sum_by_column(self, values: NDArray[Any], factors: dict[str, Any]) -> NDArray[Any]:
        """Add each context column, times the factor of its kind, to its column of X."""
        values = np.asarray(values)
        total = np.array(values[..., : self._n_columns], dtype=np.float64)
        if not self._kinds:
            return total
        added = values[..., self._n_columns :]
        if added.shape[-1] != len(self._added):
            raise AttributeError("The columns of the regressor do not match those of X.")
        for kind in self._kinds:
            own = [number for number, (other, _) in enumerate(self._added) if other == kind]
            places = [self._added[number][1] for number in own]
            total[..., places] += added[..., own] * factors[kind]
        return total
