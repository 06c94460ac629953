"""Folds of whole queries, and tables and weights for fits to folds."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from sklearn_rankcal.models._model import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import is_dataframe
from sklearn_rankcal.utils._memory import ROWS_FOR_THREADS, allowed_threads
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints
from sklearn_rankcal.utils._row_hashes import _as_numbers as as_numbers
from sklearn_rankcal.utils._row_hashes import hash_rows

#: Number of columns that usually distinguish queries.
FIRST_COLUMNS = 8


def query_folds(X: Any, queries: Queries, n_folds: int, labels: Floats | None = None) -> Ints:
    """Assign each query to one of `n_folds` folds, at most the number of queries.

    The folds depend on hashes of the contents of the queries, not on the order of queries or rows.
    Queries with equal documents share a fold. Otherwise, a held-out query could have been seen in
    training. If more than ``n_queries // n_folds`` queries have equal documents, they do not fit in
    one fold and are distributed over the folds, in an order determined by `labels` of the rows. If
    no two queries have equal documents, the sizes of two folds differ by at most one query. No fold
    is empty.
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
    # use all columns, and break ties by documents with their labels
    if X.shape[1] > FIRST_COLUMNS:
        keys, rows = hash_queries(X, places, queries)
    ties = np.zeros(n, dtype=np.uint64)
    if labels is not None:
        # the upper 53 bits of a hash are exact in float64
        both = np.column_stack([rows >> np.uint64(11), labels[places]])
        ties, _ = hash_queries(both, np.arange(len(places)), queries)
    return folds_of_keys(keys, n_folds, ties)


@dataclass(eq=False)
class Fold:
    """Training queries and held-out queries, with their rows in the whole table.

    `bins` caches the bins of histogram boosting.
    """

    inside: Training
    outside: Training
    rows: Any
    held: Any
    bins: list[Any] = field(default_factory=list)


def split_queries(training: Training, out: Bools) -> Fold:
    """Split `training` into a fold, with the queries of the mask `out` held out."""
    (rows, some), (held, others) = training.queries.select(~out), training.queries.select(out)
    inside, weight = training.take(rows, some), training.weight
    if weight is not None:
        # A regressor with a penalty learns less from smaller weights. Scale them to the mean of all
        # weights. Otherwise, the scores of different folds could have different scales.
        weight = weight[rows] * (weight.mean() / weight[rows].mean())
    inside = replace(inside, X=fill_empty_columns(inside.X), weight=weight)
    return Fold(inside, training.take(held, others), rows, held)


def divide_queries(model: Any, training: Training) -> Ints:
    """Assign each query to one of `model.cv` folds. Raise ValueError for fewer queries."""
    queries, labels = training.queries, training.labels
    if queries.n_queries < model.cv:
        raise ValueError(
            f"{type(model).__name__} divides the queries into cv={model.cv} folds, but there are "
            f"only {counted(queries.n_queries, 'query')} to learn from."
        )
    known = labels if isinstance(labels, np.ndarray) else training.targets
    return query_folds(training.X, queries, model.cv, known)


def fits_at_once(n_jobs: int | None, n_rows: int) -> int | None:
    """Return the number of jobs for fits in threads (see `n_jobs` of `BoostingCV`)."""
    given = n_jobs is not None or effective_n_jobs(None) > 1
    return n_jobs if given or n_rows >= ROWS_FOR_THREADS else allowed_threads()


def folds_of_keys(
    keys: NDArray[np.uint64], n_folds: int, ties: NDArray[np.uint64] | None = None
) -> Ints:
    """Assign queries to folds by hashes of their contents, as `query_folds` does.

    `ties` determine the order in which queries with equal keys are distributed.
    """
    n = len(keys)
    folds = np.empty(n, dtype=np.int64)
    order = np.argsort(keys, kind="stable") if ties is None else np.lexsort((ties, keys))
    # Step 1: find runs of equal queries. Split runs that are longer than a fold.
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
    X: Any, places: Ints, queries: Queries
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the hash of each query and of each row, the rows in grouped layout."""
    rows = hash_rows(X, places)
    return queries.reduce(np.add, rows), rows


#: Trees of scikit-learn read float32, and refuse infinity and numbers above 3e38. They also sum all
#: numbers of a table. 10^8 numbers up to this limit do not overflow.
LARGEST = 1e30


def suits_forests(values: Any) -> bool:
    """Whether all numbers of an array are between -1e30 and 1e30, or NaN."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return True  # integers are far smaller
    return not (np.abs(values) > LARGEST).any()


def without_sparse_columns(X: Any) -> Any:
    """Return a pandas frame with sparse columns made dense, or X itself.

    scikit-learn converts a frame of only sparse columns to a sparse matrix, which histogram
    boosting does not support.
    """
    if not hasattr(X, "iloc"):
        return X
    dense = {
        name: dtype.subtype
        for name, dtype in X.dtypes.items()
        if hasattr(dtype, "subtype") and hasattr(dtype, "fill_value")
    }
    return X.astype(dense) if dense else X


def fill_empty_columns(part: Any) -> Any:
    """Return a table with 0 in columns that are entirely missing.

    Histogram boosting of scikit-learn does not support such columns. A constant column has no
    effect.
    """
    if hasattr(part, "iloc"):
        # scikit-learn supports empty category columns
        others = part.select_dtypes(exclude="category")
        empty = list(others.columns[others.isna().all()])
        if empty:
            part = part.copy()
            part[empty] = 0.0
        return part
    if is_dataframe(part):
        empty = [name for name in part.columns if _is_empty_in_polars(part[name])]
        return part.with_columns(**dict.fromkeys(empty, 0.0)) if empty else part
    if not isinstance(part, np.ndarray) or part.dtype.kind not in "fOSU":
        return part
    candidates = np.flatnonzero(np.isnan(as_numbers(part[0])))
    lacking = [place for place in candidates if np.isnan(as_numbers(part[:, place])).all()]
    if lacking:
        part = part.copy()
        part[:, lacking] = 0.0
    return part


def _is_empty_in_polars(column: Any) -> bool:
    """Whether a column of numbers has only null and NaN."""
    if str(column.dtype).startswith(("Cat", "Enum")):
        return False
    lacking = column.is_null()
    return bool((lacking | column.is_nan() if column.dtype.is_float() else lacking).all())
