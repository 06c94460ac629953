"""Cross-validation that keeps queries whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state, indexable
from sklearn.utils.validation import _num_samples

from sklearn_rankcal.labels import relevance_labels
from sklearn_rankcal.labels._labels import groups_of_labels, is_structured, queries_of_rows
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers import RelevanceRegressor, predict_scores
from sklearn_rankcal.rankers._wrappers import refuse_without_scores
from sklearn_rankcal.utils import _estimators
from sklearn_rankcal.utils._features import take_rows
from sklearn_rankcal.utils._messages import check_choice, check_count, checks_keywords, counted

__all__ = ["QueryKFold", "query_cross_val_predict"]


class QueryKFold(BaseCrossValidator):
    """K-fold cross-validator over queries: every fold contains whole queries.

    It differs from `sklearn.model_selection.GroupKFold` in two ways:

    - It balances the number of queries per fold instead of the number of rows, because ranking
      metrics are means over queries. The numbers differ by at most one.
    - Without `groups`, it reads the queries from the labels of `relevance_labels` or
      `preference_labels`. It therefore also works in nested searches without metadata routing.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether to assign queries to folds at random. If False, each fold is a block of queries in
        order of first appearance.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffle.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal import QueryKFold, relevance_labels
    >>> labels = relevance_labels([1, 0, 2, 0, 1, 1], groups=list("aabbcc"))
    >>> X = np.zeros((6, 1))
    >>> [test.tolist() for train, test in QueryKFold(3).split(X, labels)]
    [[0, 1], [2, 3], [4, 5]]
    """

    __metadata_request__split = {"groups": True}

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: ArrayLike | None = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object
            Ignored, present for API consistency.

        Returns
        -------
        n_splits : int
            The number of folds.
        """
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Generate indices to split data into training and test queries.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            Only its length is used.
        y : array-like of shape (n_documents,), default=None
            Only used if `groups` is None. It must then be the structured array of
            `relevance_labels` or `preference_labels`.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row.

        Yields
        ------
        train : ndarray
            Row indices of the training queries, in ascending order.
        test : ndarray
            Row indices of the test queries, in ascending order.
        """
        n_rows = _num_samples(X)
        n_splits = self.n_splits
        check_count(n_splits, "n_splits", least=2)
        if groups is None:
            groups = groups_of_labels(y)
        if groups is None:
            raise ValueError(
                "QueryKFold needs the query of each row. Pass groups=, or pass "
                "y=relevance_labels(y, groups), which contains the queries."
            )
        queries = Queries.from_groups(groups, n_rows)
        if queries.n_queries < n_splits:
            raise ValueError(
                f"n_splits={n_splits} is greater than the number of queries, {queries.n_queries}."
            )
        fold = np.arange(queries.n_queries) * n_splits // queries.n_queries
        if self.shuffle:
            fold = check_random_state(self.random_state).permutation(fold)
        fold_of_row = queries.broadcast(fold)
        for number in range(n_splits):
            test = fold_of_row == number
            yield np.flatnonzero(~test), np.flatnonzero(test)


@checks_keywords
def query_cross_val_predict(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: ArrayLike | None = None,
    cv: Any = 5,
    method: str = "decision_function",
    n_jobs: int | None = None,
) -> NDArray[Any]:
    """Compute out-of-fold scores or positions: no query is scored by a model fitted on it.

    Use this function for rankers instead of `sklearn.model_selection.cross_val_predict`, which does
    not pass groups to `predict` and treats an estimator with `decision_function` as a classifier.
    It works with metadata routing enabled or disabled. Out-of-fold scores can train a second model
    (stacking).

    Parameters
    ----------
    estimator : estimator
        A ranker, or a pipeline or search that ends in one. A regressor is fitted on the relevance,
        and its predictions are returned.
    X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
        One row per query-document pair.
    y : array-like of shape (n_documents,)
        Relevance, or the structured array of `relevance_labels` or `preference_labels`.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. Required if neither `y` nor the ranker's `group_column` contains it.
    cv : int or cross-validator, default=5
        A cross-validator, or the number of folds of a `QueryKFold`.
    method : {"decision_function", "predict"}, default="decision_function"
        Whether to return scores (larger is better) or positions (1 = top).
    n_jobs : int, default=None
        Number of folds to fit in parallel.

    Returns
    -------
    values : ndarray of shape (n_documents,)
        The score or position of each row. Scores of different queries, or of different folds,
        cannot be compared.

    Raises
    ------
    ValueError
        If the query ids are missing, if a fold splits a query, or if the folds do not test every
        row exactly once.
    TypeError
        If scores are requested from a ranker that has none, because it is fitted to pairs of
        documents.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.metrics import ndcg_score
    >>> from sklearn_rankcal.model_selection import query_cross_val_predict
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> ranker = CalibratedRanker(Ridge())
    >>> scores = query_cross_val_predict(ranker, data.X, data.y, groups=data.groups)
    >>> ndcg_score(data.y, scores, groups=data.groups) > 0.7
    True
    """
    check_choice(method, "method", ("decision_function", "predict"))
    (X,) = indexable(X)
    final = _estimators.innermost_estimator(estimator)
    if method == "decision_function" and _estimators.predicts_positions(final):
        refuse_without_scores(final)
    named = groups_of_labels(y)
    of_labels = None if named is None else Queries.from_groups(named)
    queries, groups = queries_of_rows(
        final, X, groups, of_labels, _num_samples(X), "query_cross_val_predict"
    )
    labels = y if is_structured(y) else relevance_labels(y, queries.codes)
    if not _estimators.takes_ranking_labels(estimator):
        estimator = RelevanceRegressor(estimator)
    splitter = QueryKFold(int(cv)) if isinstance(cv, int | np.integer) else cv
    splits = (
        list(splitter.split(X, labels, groups)) if hasattr(splitter, "split") else list(splitter)
    )
    _check_folds(splits, queries)
    folds = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_rank)(estimator, X, labels, queries.codes, train, test, method)
        for train, test in splits
    )
    values = np.empty(queries.n_rows, dtype=np.result_type(*folds))
    for (_, test), fold in zip(splits, folds, strict=True):
        values[test] = fold
    return values


def _fit_and_rank(
    estimator: Any, X: Any, labels: Any, codes: Any, train: Any, test: Any, method: str
) -> NDArray[Any]:
    """Fit on the training rows, and score or rank the test rows."""
    fitted = clone(estimator).fit(take_rows(X, train), labels[train])
    rows, ids = take_rows(X, test), codes[test]
    if method == "predict" and _estimators.predicts_positions(
        _estimators.innermost_estimator(fitted)
    ):
        return _estimators.call_with_groups(fitted, "predict", rows, ids)
    return predict_scores(fitted, rows, ids)


def _check_folds(splits: list[Any], queries: Queries) -> None:
    """Check that the folds test every row once and split no query."""
    tested = np.zeros(queries.n_rows, dtype=np.int64)
    for train, test in splits:
        np.add.at(tested, test, 1)
        count = np.bincount(queries.codes[test], minlength=queries.n_queries)
        trained = np.bincount(queries.codes[train], minlength=queries.n_queries)
        cut = (count > 0) & ((count != queries.sizes) | (trained > 0))
        if cut.any():
            raise ValueError(
                f"A fold splits {cut.sum()} of {counted(queries.n_queries, 'query')}: some rows of "
                "such a query are tested and other rows are not, or are used for training. Keep "
                "queries whole by cv=QueryKFold() or GroupKFold()."
            )
    if (tested != 1).any():
        raise ValueError(
            f"The folds must test every row once; row {np.flatnonzero(tested != 1)[0]} is tested "
            f"{tested[tested != 1][0]} times. Use QueryKFold or GroupKFold."
        )
