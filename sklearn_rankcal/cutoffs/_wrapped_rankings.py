"""Fit and rank with any estimator: a ranker, a regressor, or a pipeline or search around one.

Also choose the calibration queries, and check that there are enough and that they are held out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from sklearn_rankcal.decoders import Sort
from sklearn_rankcal.labels import relevance_labels
from sklearn_rankcal.labels._relevance import GROUPS_REMEDY, agreed_queries
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._ranking import check_scores, tie_rounded
from sklearn_rankcal.rankers._wrapped_predictions import predict_scores
from sklearn_rankcal.utils._features import check_features, is_dataframe, split_column
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._rounding import ROUNDING
from sklearn_rankcal.utils._row_hashes import hash_rows
from sklearn_rankcal.utils._typing import Bools, Floats, Ints
from sklearn_rankcal.utils._wrapped import (
    call_with_groups,
    innermost_estimator,
    predicts_positions,
    takes_ranking_labels,
)


def has_scores(ranker: Any) -> bool:
    """Whether a ranker has scores. Other estimators predict scores."""
    final = innermost_estimator(ranker)
    return not predicts_positions(final) or hasattr(final, "decision_function")


def group_column(ranker: Any) -> str | None:
    """Return the name of the column of X with the query ids, if the ranker has one."""
    return getattr(innermost_estimator(ranker), "group_column", None)


def read_ids(
    ranker: Any, X: Any, groups: ArrayLike | None, of_labels: Queries | None = None
) -> tuple[Queries, NDArray[Any]]:
    """Return the queries from groups, labels or `group_column`, and the query id of each row."""
    column = group_column(ranker)
    if groups is None and column is not None and is_dataframe(X):
        groups = split_column(X, column)[1]
    given = None if groups is None else Queries.from_groups(groups, _num_samples(X))
    queries = agreed_queries(given, of_labels)
    if queries is None:
        raise ValueError(
            "The query id of each row is missing, and cutoffs are chosen for queries. "
            f"{GROUPS_REMEDY} For a single query, pass groups=numpy.zeros(len(X)) to predict."
        )
    return queries, queries.ids[queries.codes]


def fit_ranker(ranker: Any, X: Any, relevance: Floats, ids: NDArray[Any], named: bool) -> Any:
    """Fit a clone of a ranker or regressor; `named`: whether ids are from the user."""
    fitted = clone(ranker)
    if not takes_ranking_labels(ranker):
        return fitted.fit(X, relevance)
    if named and predicts_positions(ranker):
        return fitted.fit(X, relevance, groups=ids)
    return fitted.fit(X, relevance_labels(relevance, ids))


def rank_rows(ranker: Any, X: Any, groups: ArrayLike | None) -> tuple[Queries, Floats | None, Ints]:
    """Return the queries of the rows, their scores (or None) and their positions.

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


def _hash(ranker: Any, X: Any, rows: Ints) -> NDArray[np.uint64]:
    table = np.reshape(X, (-1, 1)) if np.ndim(X) == 1 else check_features(X)
    column = group_column(ranker)
    if column is not None and is_dataframe(table):
        table, _ = split_column(table, column)
    return hash_rows(table, rows)


# ---------------------------------------------------------------- calibration queries


def draw_queries(n_queries: int, share: float, random_state: Any) -> Bools:
    """Choose a random share of the queries, independently of their contents."""
    if n_queries < 2:
        raise ValueError(
            "At least 2 queries are needed, to fit the ranker and to choose the cutoff; got 1."
        )
    n_drawn = min(max(1, round(share * n_queries)), n_queries - 1)
    drawn = np.zeros(n_queries, dtype=bool)
    drawn[check_random_state(random_state).permutation(n_queries)[:n_drawn]] = True
    return drawn


def queries_needed(alpha: float) -> int:
    """Return the smallest n with 1 / (n + 1) <= alpha, the calibration queries for alpha."""
    return max(1, math.ceil((1 - ROUNDING) / alpha) - 1)


def check_enough(defined: Bools, alpha: float, alpha_silent: float) -> None:
    """Raise an error if alpha needs more calibration queries with a `defined` risk."""
    needed = max(queries_needed(part) for part in (alpha - alpha_silent, alpha_silent) if part > 0)
    if defined.sum() < needed:
        silent = f" with alpha_silent={alpha_silent!r}" if alpha_silent else ""
        raise ValueError(
            f"alpha={alpha!r}{silent} needs at least {needed} calibration queries with a "
            f"defined risk, for example with a relevant document; {defined.sum()} of "
            f"{len(defined)} have one. Pass more queries, a larger calibration_queries, or a "
            "larger alpha."
        )


def warn_if_fitted(ranker: Any, X: Any, ids: NDArray[Any], relevance: Floats) -> None:
    """Warn if the ranker was fitted on some of the queries."""
    if getattr(innermost_estimator(ranker), "_fitted_queries", None) is None:
        return
    if seen := call_with_groups(ranker, "_count_fitted", X, ids, labels=relevance):
        warn(
            f"The ranker was fitted on {seen} of the calibration queries. It ranks them "
            "better than new queries, and the guarantee does not hold. Pass other queries, "
            "or pass the ranker without FrozenEstimator to hold out queries in fit."
        )
