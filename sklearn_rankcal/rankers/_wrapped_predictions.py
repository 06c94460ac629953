"""Functions that pass query ids to a ranker inside a pipeline, a search or another wrapper.

scikit-learn's wrappers pass `groups` only to some methods of the ranker.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.rankers._order import QueryOrder
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._wrapped import (
    call_with_groups,
    innermost_estimator,
    predicts_positions,
    predicts_scores,
    refuse_hidden_ranker,
)


@checks_keywords
def predict_scores(estimator: Any, X: Any, groups: ArrayLike | None = None) -> NDArray[np.float64]:
    """Compute the scores of a ranker, or of a pipeline or search that ends in a ranker.

    It passes `groups` without metadata routing. ``pipe.decision_function(X, groups=groups)`` needs
    routing, and the ``decision_function`` of a search does not support groups.

    Parameters
    ----------
    estimator : estimator
        A fitted ranker with scores, or a pipeline, search, `RFE` or `FrozenEstimator` that ends in
        one. For other estimators, such as a regressor or `LGBMRanker`, the function calls
        `predict`.
    X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
        One row per query-document pair.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. Not needed if scores do not depend on the query, as with
        ``context=None``.

    Returns
    -------
    scores : ndarray of shape (n_documents,)
        Larger is better. Compare scores only within a query.

    Raises
    ------
    TypeError
        If the ranker has no scores because its loss is on pairs of documents.
    ValueError
        If a ranker is inside a wrapper that this function does not know.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn_rankcal import CalibratedRanker, predict_scores, relevance_labels
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> pipe = make_pipeline(StandardScaler(), CalibratedRanker(Ridge()))
    >>> pipe = pipe.fit(data.X, relevance_labels(data.y, data.groups))
    >>> predict_scores(pipe, data.X, data.groups).shape == data.y.shape
    True
    """
    final = innermost_estimator(estimator)
    if predicts_positions(final):
        refuse_without_scores(final)
        return call_with_groups(estimator, "decision_function", X, groups)
    if predicts_scores(final):
        return call_with_groups(estimator, "predict", X, groups)
    refuse_hidden_ranker(final, "predict_scores")
    return np.asarray(estimator.predict(X))


@checks_keywords
def predict_order(
    estimator: Any, X: Any, groups: ArrayLike | None = None, k: int | None = None
) -> QueryOrder:
    """Rank the rows of each query with a ranker, or a pipeline or search that ends in one.

    Parameters
    ----------
    estimator : estimator
        A fitted ranker with any loss, or a pipeline, search, `RFE` or `FrozenEstimator` that ends
        in one.
    X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
        One row per query-document pair.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. Required if `fit` received query ids, unless X has the `group_column`
        of the ranker.
    k : int, default=None
        Number of rows to return per query. None returns all.

    Returns
    -------
    order : QueryOrder
        The row indices of each query, best first.

    Raises
    ------
    TypeError
        If `estimator` does not end in a ranker.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn_rankcal import CalibratedRanker, predict_order, relevance_labels
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> pipe = make_pipeline(StandardScaler(), CalibratedRanker(Ridge()))
    >>> pipe = pipe.fit(data.X, relevance_labels(data.y, data.groups))
    >>> predict_order(pipe, data.X, data.groups, k=3).to_frame().columns.tolist()
    ['query', 'position', 'row']
    """
    final = innermost_estimator(estimator)
    if not hasattr(final, "predict_order"):
        raise TypeError(
            "predict_order needs a fitted ranker, or a pipeline or search that ends in one; got "
            f"{type(estimator).__name__} that ends in {type(final).__name__}."
        )
    return call_with_groups(estimator, "predict_order", X, groups, k=k)


def refuse_without_scores(ranker: Any) -> None:
    """Raise TypeError if a ranker has no `decision_function`."""
    if not hasattr(ranker, "decision_function"):
        raise TypeError(
            f"{type(ranker).__name__}(loss={getattr(ranker, 'loss', None)!r}) predicts a number "
            "for each pair of documents and has no scores. Choose a loss on scores, such as "
            "'ndcg', 'pd_by_scores' or 'map_by_scores'. Or call predict for positions, or "
            "predict_preferences for the numbers of the pairs."
        )
