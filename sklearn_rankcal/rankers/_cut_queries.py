"""Refuse to fit or rank parts of queries, as tools of scikit-learn that are unaware of them do.

The best ranking of a part of a query, and its score, are not those of the whole query. A ranker
cannot see from its arguments that rows are missing. The functions of this module look at the call
stack instead, and only ever decide whether to refuse.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from sklearn.utils.validation import _num_samples

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import is_dataframe
from sklearn_rankcal.utils._sklearn_compat import (
    argument_of,
    calls_under_way,
    inside,
    split_under_way,
)

SPLIT_BY_QUERY = "Split by query: cv=QueryKFold(), or GroupKFold() with groups=."
_MODEL_SELECTION = "sklearn.model_selection."
_FEATURE_SELECTION = "sklearn.feature_selection."
_ENSEMBLES_OF_DRAWN_ROWS = (
    "sklearn.ensemble._bagging",
    "sklearn.ensemble._weight_boosting",
    "sklearn.linear_model._ransac",
)


def running_cross_validations() -> frozenset[Any]:
    """An identity of each running call of scikit-learn that splits rows into folds."""
    return calls_under_way(_MODEL_SELECTION, _FEATURE_SELECTION)


def inside_model_fitting_tool() -> bool:
    """Whether a cross-validation or an ensemble of scikit-learn called the ranker."""
    return inside(_MODEL_SELECTION, _FEATURE_SELECTION, "sklearn.ensemble.")


class FittedQueries:
    """The queries that `fit` saw inside a cross-validation, to be compared with those of `predict`.

    A splitter that cuts queries trains on some rows of a query and tests on others. A ranker that
    was fitted inside a cross-validation therefore refuses rows of a query that `fit` saw, as long
    as the same cross-validation is running. There is one exception: all rows are those of `fit`,
    as they are when training scores are computed.

    Parameters
    ----------
    queries : Queries
        The queries of `fit`, with the user's ids.
    calls : frozenset
        The running calls of scikit-learn, as `running_cross_validations` identifies them.
    """

    def __init__(self, queries: Queries, calls: frozenset[Any]) -> None:
        self.calls = calls
        self.ids = queries.ids
        self.rows = _fingerprint(queries)

    def refuse_cut(self, queries: Queries) -> None:
        """Raise if the rows to rank belong to queries of which `fit` saw other rows."""
        if not self.calls & running_cross_validations() or _fingerprint(queries) == self.rows:
            return
        seen = set(self.ids.tolist())
        cut = [query for query in queries.ids.tolist() if query in seen]
        if cut:
            raise ValueError(
                f"The running cross-validation trains on some rows of a query and tests on "
                f"others: it cuts {len(cut)} of {queries.n_queries} test queries, such as "
                f"{cut[0]!r}. {SPLIT_BY_QUERY}"
            )


def _fingerprint(queries: Queries) -> tuple[int, int, int]:
    """Number of rows, and hashes of their query numbers and of the ids."""
    codes = np.ascontiguousarray(queries.codes, dtype=np.int64)
    return queries.n_rows, crc32(codes.data), hash(tuple(queries.ids.tolist()))


def splitter_cuts_queries(column: str | None) -> bool:
    """Whether the cross-validation around `fit` cuts a test query.

    A test query is cut when some of its rows are in the training rows, or are in neither the
    training rows nor the test rows.
    """
    split = split_under_way()
    if split is None:
        return False
    X, ids, train, test = split
    if column is not None and is_dataframe(X) and column in list(X.columns):
        ids = X[column]
    # RFECV has taken the training rows of groups already
    if ids is None or len(ids) != _num_samples(X):
        return False
    queries = Queries.from_groups(ids)
    codes = queries.codes
    tested = np.bincount(codes[test], minlength=queries.n_queries)
    trained = np.bincount(codes[train], minlength=queries.n_queries)
    return bool(((tested > 0) & ((tested < queries.sizes) | (trained > 0))).any())


def refuse_drawn_rows() -> None:
    """Raise inside ensembles that fit each of their estimators on rows drawn at random."""
    if inside(*_ENSEMBLES_OF_DRAWN_ROWS):
        raise ValueError(
            "BaggingRegressor, AdaBoostRegressor and RANSACRegressor draw rows at random, and so "
            "train rankers on parts of queries. Put the ensemble inside the ranker: "
            "CalibratedRanker(BaggingRegressor(...))."
        )


def refuse_sampled_rows() -> None:
    """Raise inside a `permutation_importance` that scores a sample of the rows.

    A sample contains parts of queries, and a column of query ids does not show which rows are
    missing.
    """
    what = ("permutation_importance", "sklearn.inspection.")
    sampled, table = argument_of(*what, "max_samples", None), argument_of(*what, "X", None)
    if sampled is None or table is None or (isinstance(sampled, float) and sampled == 1.0):
        return
    if sampled < table.shape[0]:
        raise ValueError(
            "permutation_importance with max_samples below the number of rows scores parts of "
            "queries. Leave max_samples=1.0. To save time, pass the rows of fewer queries."
        )


def refuse_shuffled_labels() -> None:
    """Raise inside a `permutation_test_score` that shuffles labels between queries.

    The queries that it scores then have labels, or rows, of other queries. Their best possible
    ranking, and the score of a random ranking, differ from those of the data.
    """
    if argument_of("permutation_test_score", _MODEL_SELECTION, "groups", ()) is None:
        raise ValueError(
            "permutation_test_score shuffles y between queries unless it gets groups=, "
            "which it refuses when metadata routing is on. Turn routing off for this call "
            "(sklearn.config_context(enable_metadata_routing=False)) and pass groups= beside "
            "labels that carry their query: permutation_test_score(ranker, X, "
            "relevance_labels(y, groups), groups=groups, cv=QueryKFold())."
        )
