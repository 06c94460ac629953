"""What rankers share: tags and metadata, and reading X, y and groups into tables and queries."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_rankcal._queries import Queries
from sklearn_rankcal._tables import check_table, split_column
from sklearn_rankcal.exceptions import MissingGroupsWarning
from sklearn_rankcal.labels import GROUPS_REMEDY, agreed_queries, read_either
from sklearn_rankcal.model_selection import splitter_cuts_queries
from sklearn_rankcal.utils._sklearn_compat import inside


class QueryOrder(NamedTuple):
    """Rows best first, query by query.

    Attributes
    ----------
    rows : ndarray of shape (n_listed,)
        Row indices into X, best first inside each query.
    offsets : ndarray of shape (n_queries + 1,)
        Query q owns ``rows[offsets[q]:offsets[q + 1]]``.
    queries : ndarray of shape (n_queries,)
        Group id of each query, in order of first appearance.
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    queries: NDArray[Any]


class RankerMixin:
    """What every ranker of the package shares: its tags and `score`.

    A ranker's `predict(X, groups=None)` returns positions, 1 = top, not scores.
    """

    _estimator_type = "ranker"
    # groups are passed wherever scikit-learn routes metadata, with no set_*_request call
    __metadata_request__fit = {"groups": True}
    __metadata_request__predict = {"groups": True}
    __metadata_request__decision_function = {"groups": True}
    __metadata_request__score = {"groups": True, "sample_weight": True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        return tags


def seeded(estimator: Any, random_state: Any) -> Any:
    """The estimator, every ``random_state`` in it set from one; None leaves it as it is."""
    if random_state is not None:
        seeds = check_random_state(random_state)
        for name in sorted(estimator.get_params()):
            if name.split("__")[-1] == "random_state":
                estimator.set_params(**{name: seeds.randint(2**31 - 1)})
    return estimator


def loud(estimator: Any, verbose: int) -> None:
    """Set every parameter ``verbose`` of the estimator that is 0 or False, where positive."""
    if verbose > 0:
        for name, value in estimator.get_params().items():
            if name.split("__")[-1] == "verbose" and isinstance(value, int) and value == 0:
                estimator.set_params(**{name: verbose})


class QueryReader:
    """How a ranker reads its input; it has `group_column` and, once fitted, `grouped_`."""

    group_column: str | None
    grouped_: bool

    def _read(
        self, X: Any, y: Any, groups: ArrayLike | None, reset: bool
    ) -> tuple[Any, Any, Queries, bool]:
        """Checked table, labels, queries, and whether anybody said what the queries are.

        Labels are a relevance of every row, or `Preferences`.
        """
        X, queries = self._table_and_queries(X, groups, reset)
        labels, of_labels = read_either(y, X.shape[0])
        queries = agreed_queries(queries, of_labels)
        if queries is not None:
            if reset and of_labels is None and splitter_cuts_queries(self.group_column):
                raise ValueError(
                    "The cross-validation under way tests on parts of queries, or trains on one "
                    "part and tests on another. Split by query: cv=QueryKFold(), or GroupKFold() "
                    "with groups=."
                )
            return X, labels, queries, True
        if not reset and self.grouped_:
            raise ValueError(
                f"This ranker was fitted with query ids and needs them. {GROUPS_REMEDY}"
            )
        if inside("sklearn.model_selection.", "sklearn.feature_selection."):
            raise ValueError(
                "Query ids did not reach the ranker: scikit-learn passes groups= to the splitter "
                f"only, unless metadata routing is on. {GROUPS_REMEDY} (cross_val_predict with "
                "method='decision_function' takes y for classes and loses them in every way: use "
                "its default method with group_column.)"
            )
        warnings.warn(
            f"No query ids: all {X.shape[0]} rows are ranked as ONE query. {GROUPS_REMEDY}",
            MissingGroupsWarning,
            stacklevel=3,
        )
        return X, labels, Queries.single(X.shape[0]), False

    def _read_queries(
        self, X: Any, groups: ArrayLike | None, required: bool | None = None
    ) -> tuple[Any, Queries]:
        """Checked table and queries, for `predict` and the like."""
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
        table = check_table(X)
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
