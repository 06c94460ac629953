"""Read the X, y and groups of a user into a table, labels and queries."""

from __future__ import annotations

import warnings
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_rankcal.exceptions import CutQueriesWarning, MissingGroupsWarning
from sklearn_rankcal.labels._labels import read_any_labels
from sklearn_rankcal.labels._relevance import GROUPS_REMEDY, agreed_queries
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._fitted_queries import FittedQueries
from sklearn_rankcal.utils._features import check_features, split_column


class QueryInputMixin:
    """Methods that read the input of a ranker.

    The ranker has a parameter `group_column` and, once fitted, an attribute `grouped_`.
    """

    loss: str | Loss
    group_column: str | None
    grouped_: bool
    # of the last fit; never pickled
    _fitted_queries: FittedQueries | None = None

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
        X, given = self._table_and_queries(X, groups, reset)
        labels, of_labels = read_any_labels(y, X.shape[0], get_loss(self.loss).takes)
        queries = agreed_queries(given, of_labels)
        if not reset and queries is None and self.grouped_:
            raise ValueError(
                "This ranker was fitted with query ids and needs them. (With metadata routing off, "
                "the score method of a Pipeline drops groups= even if you pass them. "
                "get_ranking_scorer('ndcg@10')(pipe, X, y, groups=groups) passes them on.) "
                f"{GROUPS_REMEDY}"
            )
        # The numbers that structured labels give to their queries are no ids: those of a part
        # differ from those of the whole. Such labels know the sizes of their queries.
        named = given or (Queries.single(X.shape[0]) if queries is None else None)
        cut = None
        if reset:
            self._fitted_queries = None if named is None else FittedQueries(named, X, labels)
        elif named is not None and self._fitted_queries and self.grouped_ == (given is not None):
            cut = self._fitted_queries.describe_cut(named, X, labels)
        if queries is not None:
            if cut is not None:
                warnings.warn(cut, CutQueriesWarning, stacklevel=stacklevel)
            return X, labels, queries, True
        if cut is not None:
            raise ValueError(
                "Query ids did not reach the ranker: fit saw none, and score would measure the "
                "ranking of all other rows as ONE query. Inside a cross-validation, scikit-learn "
                "passes groups= to the splitter only, unless metadata routing is on. "
                f"{GROUPS_REMEDY} If all rows are one query, pass groups=numpy.zeros(len(X))."
            )
        warnings.warn(
            f"No query ids: all {X.shape[0]} rows are ranked as ONE query. {GROUPS_REMEDY}",
            MissingGroupsWarning,
            stacklevel=stacklevel,
        )
        return X, labels, Queries.single(X.shape[0]), False

    def _describe_cut(self, X: Any, groups: ArrayLike, labels: Any) -> str | None:
        """Return what is wrong if a scorer scores queries that were fitted with other rows."""
        X, queries = self._table_and_queries(X, groups, reset=False)
        if self._fitted_queries is None or queries is None or not self.grouped_:
            return None
        return self._fitted_queries.describe_cut(queries, X, labels)

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_fitted_queries"}

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
                    "frames, or search.best_estimator_.predict(X, groups=...). Scorers of "
                    "scikit-learn cannot either: pass scoring=get_ranking_scorer('ndcg@10')."
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
        return table, queries
