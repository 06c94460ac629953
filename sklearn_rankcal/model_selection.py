"""Splitters that keep queries whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from sklearn_rankcal._queries import Queries
from sklearn_rankcal._tables import is_frame
from sklearn_rankcal.labels import groups_of_labels
from sklearn_rankcal.utils._sklearn_compat import split_under_way

__all__ = ["QueryKFold"]


class QueryKFold(BaseCrossValidator):
    """K-fold over queries: every fold holds whole queries, the same number of them within one.

    Unlike `sklearn.model_selection.GroupKFold`, which balances rows, it balances queries, since
    ranking measures are means over queries; and it reads the queries from the structured labels of
    `relevance_labels` when no `groups` are passed, so that it also works in nested searches with
    metadata routing off.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Deal the queries out at random instead of in blocks by first appearance.
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

    def get_n_splits(
        self, X: Any = None, y: Any = None, groups: ArrayLike | None = None
    ) -> int:
        """Number of folds."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Row indices of each fold's training and test queries.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            Only its length is used.
        y : array-like of shape (n_documents,), default=None
            Used when it is the structured array of `relevance_labels` and `groups` is None.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row.

        Yields
        ------
        train, test : ndarray
            Ascending row indices.

        Raises
        ------
        ValueError
            Neither groups nor structured labels, fewer queries than folds, n_splits < 2.
        """
        n_rows = _num_samples(X)
        n_splits = self.n_splits
        if isinstance(n_splits, bool) or not isinstance(n_splits, (int, np.integer)):
            raise ValueError(f"n_splits must be a whole number; got {n_splits!r}.")
        if n_splits < 2:
            raise ValueError(f"n_splits must be at least 2; got {n_splits}.")
        if groups is None:
            groups = groups_of_labels(y)
        if groups is None:
            raise ValueError(
                "QueryKFold needs the query of each row: pass groups=, or labels that carry it "
                "as y: relevance_labels(y, groups)."
            )
        queries = Queries.from_groups(groups, n_rows)
        if queries.n_queries < n_splits:
            raise ValueError(
                f"Cannot have n_splits={n_splits} folds of {queries.n_queries} queries."
            )
        fold = np.arange(queries.n_queries) * n_splits // queries.n_queries
        if self.shuffle:
            fold = check_random_state(self.random_state).permutation(fold)
        fold_of_row = queries.broadcast(fold)
        for number in range(n_splits):
            test = fold_of_row == number
            yield np.flatnonzero(~test), np.flatnonzero(test)


def splitter_cuts_queries(column: str | None) -> bool:
    """Whether the cross-validation around `fit` does not keep the test queries whole."""
    split = split_under_way()
    if split is None:
        return False
    X, ids, train, test = split
    if column is not None and is_frame(X) and column in list(X.columns):
        ids = X[column]
    if ids is None or len(ids) != _num_samples(X):  # RFECV has cut the groups already
        return False
    queries = Queries.from_groups(ids)
    codes = queries.codes
    tested = np.bincount(codes[test], minlength=queries.n_queries)
    trained = np.bincount(codes[train], minlength=queries.n_queries)
    return bool(((tested > 0) & ((tested < queries.sizes) | (trained > 0))).any())
