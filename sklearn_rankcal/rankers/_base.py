"""What rankers share: tags and metadata, and reading X, y and groups into tables and queries."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from sklearn_rankcal.exceptions import MissingGroupsWarning
from sklearn_rankcal.labels import GROUPS_REMEDY, agreed_queries, read_either
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import check_features, is_dataframe, split_column
from sklearn_rankcal.utils._sklearn_compat import (
    argument_of,
    calls_under_way,
    inside,
    split_under_way,
)

_SELECTION = ("sklearn.model_selection.", "sklearn.feature_selection.")
_DRAW_ROWS = (
    "sklearn.ensemble._bagging",
    "sklearn.ensemble._weight_boosting",
    "sklearn.linear_model._ransac",
)
_SPLIT_BY_QUERY = "Split by query: cv=QueryKFold(), or GroupKFold() with groups=."


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

    def to_frame(self) -> Any:
        """Return the lists as a pandas data frame, a row for each listed document.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_listed, 3)
            Columns ``query`` (group id), ``position`` (1 = top of its query) and ``row`` (index
            into X).

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_rankcal import QueryOrder
        >>> order = QueryOrder(np.array([2, 0, 1]), np.array([0, 2, 3]), np.array(["a", "b"]))
        >>> print(order.to_frame().to_string(index=False))
        query  position  row
            a         1    2
            a         2    0
            b         1    1
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas (pip install pandas); rows, offsets and queries hold the "
                "same as arrays."
            ) from error
        lengths = np.diff(self.offsets)
        first = np.repeat(self.offsets[:-1], lengths)
        return pd.DataFrame(
            {
                "query": np.repeat(self.queries, lengths),
                "position": np.arange(len(self.rows)) - first + 1,
                "row": self.rows,
            }
        )


class FittedQueries:
    """The queries that `fit` saw inside one of scikit-learn's tools, for `predict` in the same one.

    A splitter that cuts queries tests on rows of queries that it also trains on. So a ranker that
    was fitted inside a tool that selects models refuses, inside the same call of that tool, rows of
    a query that `fit` saw, unless all rows are those of `fit`, as they are for training scores.

    Parameters
    ----------
    queries : Queries
        The queries of `fit`, with the user's ids.
    calls : frozenset
        The calls of scikit-learn's that are under way, as `calls_under_way` identifies them.
    """

    def __init__(self, queries: Queries, calls: frozenset[Any]) -> None:
        self.calls = calls
        self.ids = queries.ids
        self.rows = _fingerprint(queries)

    def refuse_cut(self, queries: Queries) -> None:
        """Raise where the rows to rank belong to queries of which `fit` saw other rows."""
        if not self.calls & calls_under_way(*_SELECTION) or _fingerprint(queries) == self.rows:
            return
        seen = set(self.ids.tolist())
        cut = [query for query in queries.ids.tolist() if query in seen]
        if cut:
            raise ValueError(
                f"The cross-validation under way trains on some rows of a query and tests on "
                f"others: it cuts {len(cut)} of {queries.n_queries} test queries, such as "
                f"{cut[0]!r}. {_SPLIT_BY_QUERY}"
            )


def _fingerprint(queries: Queries) -> tuple[int, int, int]:
    """Number of rows, and hashes of their query numbers and of the ids."""
    codes = np.ascontiguousarray(queries.codes, dtype=np.int64)
    return queries.n_rows, crc32(codes.data), hash(tuple(queries.ids.tolist()))


class RankerMixin:
    """What every ranker of the package shares: its tags and `score`.

    A ranker's `predict(X, groups=None)` returns positions, 1 = top, not scores.
    """

    _estimator_type = "ranker"
    # see utils/_wrapped.py
    _predicts_positions = True
    _takes_ranking_labels = True
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


class QueryInputMixin:
    """How a ranker reads its input; it has `group_column` and, once fitted, `grouped_`."""

    group_column: str | None
    grouped_: bool
    _fitted_queries: FittedQueries | None

    def _read(
        self, X: Any, y: Any, groups: ArrayLike | None, reset: bool
    ) -> tuple[Any, Any, Queries, bool]:
        """Checked table, labels, queries, and whether anybody said what the queries are.

        Labels are a relevance of every row, or `Preferences`.
        """
        if reset:
            _refuse_drawn_rows()
        X, given = self._table_and_queries(X, groups, reset)
        labels, of_labels = read_either(y, X.shape[0])
        queries = agreed_queries(given, of_labels)
        if reset:
            self._remember(given, of_labels)
        if queries is not None:
            if reset and _splitter_cuts_queries(self.group_column):
                raise ValueError(
                    "The cross-validation under way tests on parts of queries, or trains on one "
                    f"part and tests on another. {_SPLIT_BY_QUERY}"
                )
            if reset:
                _refuse_shuffled_queries()
            return X, labels, queries, True
        if not reset and self.grouped_:
            raise ValueError(
                "This ranker was fitted with query ids and needs them. "
                f"{_dropped_by_pipeline()}{GROUPS_REMEDY}"
            )
        if inside(*_SELECTION, "sklearn.ensemble."):
            raise ValueError(
                "Query ids did not reach the ranker: scikit-learn passes groups= to the splitter "
                f"only, unless metadata routing is on. {GROUPS_REMEDY} (cross_val_predict with "
                "method='decision_function' takes y for classes and loses them in every way: use "
                "its default method with group_column.)"
            )
        warnings.warn(
            f"No query ids: all {X.shape[0]} rows are ranked as ONE query. {GROUPS_REMEDY}",
            MissingGroupsWarning,
            stacklevel=4,
        )
        return X, labels, Queries.single(X.shape[0]), False

    def _remember(self, given: Queries | None, of_labels: Queries | None) -> None:
        """Keep the queries of a `fit` inside a tool of scikit-learn's, for `_refuse_cut`.

        Structured labels know the sizes of their queries, and number them: the numbers of a part
        are not those of the whole, so that only ids of a user's own are compared.
        """
        self._fitted_queries = None
        if given is not None and (of_labels is None or self.group_column is not None):
            calls = calls_under_way(*_SELECTION)
            if calls:
                self._fitted_queries = FittedQueries(given, calls)

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
                _refuse_some_rows()
        memory = None if reset else getattr(self, "_fitted_queries", None)
        if memory is not None and queries is not None:
            memory.refuse_cut(queries)
        return table, queries


def _refuse_some_rows() -> None:
    """Raise inside a `permutation_importance` that scores a sample of the rows.

    A sample holds parts of queries, and a column of ids does not show what is missing.
    """
    what = ("permutation_importance", "sklearn.inspection.")
    sampled, table = argument_of(*what, "max_samples", None), argument_of(*what, "X", None)
    if sampled is None or table is None or (isinstance(sampled, float) and sampled == 1.0):
        return
    if sampled < table.shape[0]:
        raise ValueError(
            "permutation_importance with max_samples below the number of rows scores parts of "
            "queries. Leave max_samples=1.0; to save time, pass the rows of fewer queries."
        )


def _refuse_shuffled_queries() -> None:
    """Raise inside a `permutation_test_score` that shuffles labels from one query to another.

    The queries that it scores then have labels, or rows, of other queries, so that their best
    ranking and the score of a random one differ from those of the data.
    """
    if argument_of("permutation_test_score", _SELECTION[0], "groups", ()) is None:
        raise ValueError(
            "permutation_test_score shuffles y from one query to another unless it gets groups=, "
            "which it refuses when metadata routing is on. Turn routing off for this call "
            "(sklearn.config_context(enable_metadata_routing=False)) and pass groups= beside "
            "labels that carry their query: permutation_test_score(ranker, X, "
            "relevance_labels(y, groups), groups=groups, cv=QueryKFold())."
        )


def _refuse_drawn_rows() -> None:
    """Raise inside the tools that fit each of their estimators on rows drawn at random."""
    if inside(*_DRAW_ROWS):
        raise ValueError(
            "BaggingRegressor, AdaBoostRegressor and RANSACRegressor draw rows at random, and so "
            "train rankers on parts of queries. Put them inside the ranker: "
            "CalibratedRanker(BaggingRegressor(...))."
        )


def _dropped_by_pipeline() -> str:
    """What to say first where a pipeline is between the user and a ranker without query ids."""
    if not inside("sklearn.pipeline"):
        return ""
    return (
        "(With metadata routing off, the score of a Pipeline drops groups=, also where you did "
        "pass them: get_ranking_scorer('ndcg@10')(pipe, X, y, groups=groups) takes them.) "
    )


def _splitter_cuts_queries(column: str | None) -> bool:
    """Whether the cross-validation around `fit` does not keep the test queries whole."""
    split = split_under_way()
    if split is None:
        return False
    X, ids, train, test = split
    if column is not None and is_dataframe(X) and column in list(X.columns):
        ids = X[column]
    if ids is None or len(ids) != _num_samples(X):  # RFECV has cut the groups already
        return False
    queries = Queries.from_groups(ids)
    codes = queries.codes
    tested = np.bincount(codes[test], minlength=queries.n_queries)
    trained = np.bincount(codes[train], minlength=queries.n_queries)
    return bool(((tested > 0) & ((tested < queries.sizes) | (trained > 0))).any())
