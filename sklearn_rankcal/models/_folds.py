"""Folds of whole queries that depend on the content of the queries, and not on their order."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._row_hashes import hash_rows

#: The first columns usually suffice to tell queries apart.
FIRST_COLUMNS = 8


def query_folds(
    X: Any, queries: Queries, n_folds: int, labels: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Assign each query to one of `n_folds` folds, at most the number of queries.

    The folds depend on hashes of the contents of the queries, and thus not on the order of the
    queries or of their rows. Queries with equal documents share a fold, so that no held-out query
    was seen in training. But if more than ``n_queries // n_folds`` queries have equal documents,
    these are distributed over the folds, because a fold cannot hold them all; `labels` of the rows
    then determine the order in which they are. If no two queries have equal documents, the numbers
    of queries in two folds differ by at most one. No fold is empty.
    """
    n = queries.n_queries
    if n_folds == 1:
        return np.zeros(n, dtype=np.int64)
    places = queries.gather(np.arange(queries.n_rows))
    some = X.iloc[:, :FIRST_COLUMNS] if hasattr(X, "iloc") else X[:, :FIRST_COLUMNS]
    keys, rows = hash_queries(some, places, queries)
    order = np.argsort(keys, kind="stable")
    if (np.diff(keys[order]) > 0).all():
        return folds_of_keys(keys, n_folds)
    # Sort by all columns, and then by the documents together with their labels.
    if X.shape[1] > FIRST_COLUMNS:
        keys, rows = hash_queries(X, places, queries)
    ties = np.zeros(n, dtype=np.uint64)
    if labels is not None:
        # The upper 53 bits of a hash are exact in float64.
        both = np.column_stack([rows >> np.uint64(11), labels[places]])
        ties, _ = hash_queries(both, np.arange(len(places)), queries)
    return folds_of_keys(keys, n_folds, ties)


def folds_of_keys(
    keys: NDArray[np.uint64], n_folds: int, ties: NDArray[np.uint64] | None = None
) -> NDArray[np.int64]:
    """Assign queries to folds by hashes of their contents, as `query_folds` does.

    `ties` determine the order in which queries with equal keys are distributed.
    """
    n = len(keys)
    folds = np.empty(n, dtype=np.int64)
    order = np.argsort(keys, kind="stable") if ties is None else np.lexsort((ties, keys))
    # Step 1: find the runs of equal queries, and cut those that are too long.
    begins = np.append(True, np.diff(keys[order]) > 0)
    if begins.all():
        folds[order] = np.arange(n) % n_folds
        return folds
    sizes = np.diff(np.append(np.flatnonzero(begins), n))
    begins |= np.repeat(sizes > n // n_folds, sizes)
    starts = np.flatnonzero(begins)
    sizes = np.diff(np.append(starts, n))
    # Step 2: assign the longest runs first, each to the fold with the fewest queries.
    heap = [(0, fold) for fold in range(n_folds)]
    for run in np.argsort(-sizes, kind="stable").tolist():
        start, size = int(starts[run]), int(sizes[run])
        held, fold = heap[0]
        folds[order[start : start + size]] = fold
        heapq.heapreplace(heap, (held + size, fold))
    return folds


def hash_queries(
    X: Any, places: NDArray[np.int64], queries: Queries
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the hash of each query and of each row, the rows in grouped layout."""
    rows = hash_rows(X, places)
    return queries.reduce(np.add, rows), rows
