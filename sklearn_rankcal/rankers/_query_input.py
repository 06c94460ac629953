"""Read the X, y and groups of a user into a table, labels and queries."""

from __future__ import annotations

import warnings
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_rankcal.exceptions import MissingGroupsWarning
from sklearn_rankcal.labels._labels import read_any_labels
from sklearn_rankcal.labels._relevance import GROUPS_REMEDY, agreed_queries
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._cut_queries import (
    SPLIT_BY_QUERY,
    FittedQueries,
    inside_model_fitting_tool,
    refuse_drawn_rows,
    refuse_sampled_rows,
    refuse_shuffled_labels,
    running_cross_validations,
    splitter_cuts_queries,
)
from sklearn_rankcal.utils._features import check_features, split_column
from sklearn_rankcal.utils._sklearn_compat import inside


class QueryInputMixin:
    """Methods that read the input of a ranker.

    The ranker has a parameter `group_column` and, once fitted, an attribute `grouped_`.
    """

    loss: str | Loss
    group_column: str | None
    grouped_: bool
    _fitted_queries: FittedQueries | None

    def _read(
        self, X: Any, y: Any, groups: ArrayLike | None, reset: bool, stacklevel: int = 4
    ) -> tuple[Any, Any, Queries, bool]:
        """Check and convert X, y and groups, for `fit` (with ``reset=True``) and `score`.

        Returns
        -------
        X : array-like, sparse matrix or data frame
            The table, without `group_column`.
        labels : ndarray of shape (n_documents,), Preferences or Judgements
            The relevance of every row, the preferences between rows, or judgements about them.
        queries : Queries
            The queries of the rows.
        grouped : bool
            False if no query ids were given, so that all rows are one query.
        """
        if reset:
            refuse_drawn_rows()
        X, given = self._table_and_queries(X, groups, reset)
        labels, of_labels = read_any_labels(y, X.shape[0], get_loss(self.loss).takes)
        queries = agreed_queries(given, of_labels)
        if reset:
            self._remember_queries(given, of_labels)
        if queries is not None:
            if reset and splitter_cuts_queries(self.group_column):
                raise ValueError(
                    "The running cross-validation tests on parts of queries, or trains on one "
                    f"part and tests on another. {SPLIT_BY_QUERY}"
                )
            if reset:
                refuse_shuffled_labels()
            return X, labels, queries, True
        if not reset and self.grouped_:
            raise ValueError(
                "This ranker was fitted with query ids and needs them. "
                f"{_dropped_by_pipeline()}{GROUPS_REMEDY}"
            )
        if inside_model_fitting_tool():
            raise ValueError(
                "Query ids did not reach the ranker: scikit-learn passes groups= to the splitter "
                f"only, unless metadata routing is on. {GROUPS_REMEDY} (cross_val_predict with "
                "method='decision_function' treats y as classes and always loses the query ids: "
                "use its default method with group_column.)"
            )
        warnings.warn(
            f"No query ids: all {X.shape[0]} rows are ranked as ONE query. {GROUPS_REMEDY}",
            MissingGroupsWarning,
            stacklevel=stacklevel,
        )
        return X, labels, Queries.single(X.shape[0]), False

    def _remember_queries(self, given: Queries | None, of_labels: Queries | None) -> None:
        """Keep the queries of a `fit` inside a cross-validation, see `FittedQueries`.

        Only query ids that the user gave can be compared between `fit` and `predict`. The numbers
        that structured labels give to their queries cannot, because the numbers of a part differ
        from those of the whole. Structured labels do not need the comparison: they know the sizes
        of their queries.
        """
        self._fitted_queries = None
        if given is not None and (of_labels is None or self.group_column is not None):
            calls = running_cross_validations()
            if calls:
                self._fitted_queries = FittedQueries(given, calls)

    def _read_queries(
        self, X: Any, groups: ArrayLike | None, required: bool | None = None
    ) -> tuple[Any, Queries]:
        """Check X and groups, for `predict` and other methods without y.

        Without groups all rows are one query, unless query ids are `required` (default: if `fit`
        had them).
        """
        check_is_fitted(self)
        X, queries = self._table_and_queries(X, groups, reset=False)
        if queries is None:
            if self.grouped_ if required is None else required:
                raise ValueError(
                    "This ranker was fitted with query ids and needs them: pass groups=<query id "
                    "of each row>, for one query groups=numpy.zeros(len(X)). cross_val_predict and "
                    "the predict of a search cannot pass them: use group_column='qid' with data "
                    "frames, or search.best_estimator_.predict(X, groups=...)."
                )
            queries = Queries.single(X.shape[0])
        return X, queries

    def _table_and_queries(
        self, X: Any, groups: ArrayLike | None, reset: bool
    ) -> tuple[Any, Queries | None]:
        """The table without `group_column`, and the queries of `groups` or of that column."""
        table = check_features(X)
        validate_data(self, X=table, reset=reset, skip_check_array=True)
        queries = None if groups is None else Queries.from_groups(groups, table.shape[0])
        if self.group_column is not None:
            table, column = split_column(table, self.group_column)
            of_column = Queries.from_groups(column, table.shape[0])
            if queries is not None and not queries.same_partition(of_column):
                raise ValueError(
                    f"groups and the column {self.group_column!r} put the rows in different "
                    "queries."
                )
            queries = of_column
            if not reset:
                refuse_sampled_rows()
        fitted_queries = None if reset else getattr(self, "_fitted_queries", None)
        if fitted_queries is not None and queries is not None:
            fitted_queries.refuse_cut(queries)
        return table, queries


def _dropped_by_pipeline() -> str:
    """A sentence on pipelines for errors on missing query ids, empty outside of a pipeline."""
    if not inside("sklearn.pipeline"):
        return ""
    return (
        "(With metadata routing off, the score method of a Pipeline drops groups= even if you "
        "pass them. get_ranking_scorer('ndcg@10')(pipe, X, y, groups=groups) passes them on.) "
    )
