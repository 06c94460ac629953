"""Folds of whole queries that depend on the content of the queries, and not on their order."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._row_hashes import hash_rows


def query_folds(
    X: Any, queries: Queries, n_folds: int, labels: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Assign each query to a fold.

    The folds depend on hashes of the contents of the queries, and thus not on the order of the
    queries or of their rows. Queries with equal documents share a fold, so that no held-out query
    was seen in training. But if more than ``n_queries // n_folds`` queries have equal documents,
    these are distributed over the folds, because a fold cannot hold them all. If no two queries
    have equal documents, the numbers of queries in two folds differ by at most one.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_documents, n_features)
    queries : Queries
    n_folds : int
        At most the number of queries.
    labels : ndarray of shape (n_documents,), default=None
        They determine the order in which queries with equal documents are distributed. Without
        them, it is the order of the queries.

    Returns
    -------
    folds : ndarray of shape (n_queries,)
        Numbers from 0 to ``n_folds - 1``. No fold is empty.
    """
    n = queries.n_queries
    if n_folds == 1:
        return np.zeros(n, dtype=np.int64)
    places = queries.gather(np.arange(queries.n_rows))
    # The first 8 columns usually suffice to tell queries apart.
    some = X.iloc[:, :8] if hasattr(X, "iloc") else X[:, :8]
    keys, rows = _hash_queries(some, places, queries)
    order = np.argsort(keys, kind="stable")
    folds = np.empty(n, dtype=np.int64)
    if (np.diff(keys[order]) > 0).all():
        folds[order] = np.arange(n) % n_folds
        return folds
    # Step 1: sort by all columns, and then by the documents together with their labels.
    if X.shape[1] > 8:
        keys, rows = _hash_queries(X, places, queries)
    ties = np.zeros(n, dtype=np.uint64)
    if labels is not None:
        # The upper 53 bits of a hash are exact in float64.
        both = np.column_stack([rows >> np.uint64(11), labels[places]])
        ties, _ = _hash_queries(both, np.arange(len(places)), queries)
    order = np.lexsort((ties, keys))
    # Step 2: find the runs of equal queries, and cut those that are too long.
    begins = np.append(True, np.diff(keys[order]) > 0)
    sizes = np.diff(np.append(np.flatnonzero(begins), n))
    begins |= np.repeat(sizes > n // n_folds, sizes)
    starts = np.flatnonzero(begins)
    sizes = np.diff(np.append(starts, n))
    # Step 3: assign the longest runs first, each to the fold with the fewest queries.
    heap = [(0, fold) for fold in range(n_folds)]
    for run in np.argsort(-sizes, kind="stable").tolist():
        start, size = int(starts[run]), int(sizes[run])
        held, fold = heap[0]
        folds[order[start : start + size]] = fold
        heapq.heapreplace(heap, (held + size, fold))
    return folds


def _hash_queries(
    X: Any, places: NDArray[np.int64], queries: Queries
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the hash of each query and of each row, the rows in grouped layout."""
    rows = hash_rows(X, places)
    return queries.reduce(np.add, rows), rows
