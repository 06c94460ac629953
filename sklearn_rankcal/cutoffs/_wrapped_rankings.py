"""Fit and rank with any estimator: a ranker, a regressor, or a pipeline or search around one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from sklearn_rankcal.decoders import Sort
from sklearn_rankcal.labels import relevance_labels
from sklearn_rankcal.labels._relevance import GROUPS_REMEDY, agreed_queries
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._ranking import check_scores, tie_rounded
from sklearn_rankcal.rankers._wrapped_predictions import predict_scores
from sklearn_rankcal.utils._features import check_features, is_dataframe, split_column
from sklearn_rankcal.utils._row_hashes import hash_rows
from sklearn_rankcal.utils._typing import Floats
from sklearn_rankcal.utils._wrapped import (
    call_with_groups,
    innermost_estimator,
    predicts_positions,
    takes_ranking_labels,
)


def has_scores(ranker: Any) -> bool:
    """Whether a ranker has scores. Any other estimator predicts them."""
    final = innermost_estimator(ranker)
    return not predicts_positions(final) or hasattr(final, "decision_function")


def group_column(ranker: Any) -> str | None:
    """Return the name of the column of X with the query ids, if the ranker has one."""
    return getattr(innermost_estimator(ranker), "group_column", None)


def read_ids(
    ranker: Any, X: Any, groups: ArrayLike | None, of_labels: Queries | None = None
) -> tuple[Queries, NDArray[Any]]:
    """Return the queries of groups, labels or `group_column`, and the query id of each row."""
    column = group_column(ranker)
    if groups is None and column is not None and is_dataframe(X):
        groups = split_column(X, column)[1]
    given = None if groups is None else Queries.from_groups(groups, _num_samples(X))
    queries = agreed_queries(given, of_labels)
    if queries is None:
        raise ValueError(
            "The query of each row is needed, as the promise of a cut-off is about queries. "
            f"{GROUPS_REMEDY} For a single query, pass groups=numpy.zeros(len(X)) to predict."
        )
    return queries, queries.ids[queries.codes]


def fit_ranker(ranker: Any, X: Any, relevance: Floats, ids: NDArray[Any], named: bool) -> Any:
    """Fit a clone of a ranker, or of a plain regressor; `named` is whether ids are the user's."""
    fitted = clone(ranker)
    if not takes_ranking_labels(ranker):
        return fitted.fit(X, relevance)
    if named and predicts_positions(ranker):
        return fitted.fit(X, relevance, groups=ids)
    return fitted.fit(X, relevance_labels(relevance, ids))


def rank_rows(
    ranker: Any, X: Any, groups: ArrayLike | None
) -> tuple[Queries, Floats | None, NDArray[np.int64]]:
    """Return the queries of the rows, their scores, or None if there are none, and positions.

    Rows with equal scores are ordered by a hash of their features, as by `predict` of a ranker.
    """
    queries, _ = read_ids(ranker, X, groups)
    if not has_scores(ranker):
        return queries, None, call_with_groups(ranker, "predict", X, groups)
    predicted = predict_scores(ranker, X, groups)
    scores = check_scores(predicted, queries.n_rows, "The prediction of the ranker").astype(float)
    scores = tie_rounded(scores, queries)
    ranks = Sort().decode(scores, queries, lambda rows: _hash(ranker, X, rows)).ranks
    return queries, scores, ranks


def _hash(ranker: Any, X: Any, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    table = np.reshape(X, (-1, 1)) if np.ndim(X) == 1 else check_features(X)
    column = group_column(ranker)
    if column is not None and is_dataframe(table):
        table, _ = split_column(table, column)
    return hash_rows(table, rows)
