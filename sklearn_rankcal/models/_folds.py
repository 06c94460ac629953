"""Folds of whole queries that depend on the content of the queries, and not on their order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._row_hashes import hash_rows


def query_folds(X: Any, queries: Queries, n_folds: int) -> NDArray[np.int64]:
    """Assign each query to a fold.

    The fold depends on a hash of the query's content, and thus not on the order of the queries or
    of their rows. The numbers of queries in two folds differ by at most one.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_documents, n_features)
    queries : Queries
    n_folds : int

    Returns
    -------
    folds : ndarray of shape (n_queries,)
        Numbers from 0 to ``n_folds - 1``.
    """
    if n_folds == 1:
        return np.zeros(queries.n_queries, dtype=np.int64)
    order = queries.gather(np.arange(queries.n_rows))
    # The first 8 columns suffice to tell queries apart.
    some = X[:, :8] if isinstance(X, np.ndarray) else X
    keys = np.add.reduceat(hash_rows(some, order), queries.offsets[:-1])
    folds = np.empty(queries.n_queries, dtype=np.int64)
    folds[np.argsort(keys, kind="stable")] = np.arange(queries.n_queries) % n_folds
    return folds
