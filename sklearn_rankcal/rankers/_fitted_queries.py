"""Notice that queries which are scored were fitted with other rows.

The measure of a part of a query is not that of the query, and rows of a fitted query are no test.
A ranker therefore remembers hashes of the queries of its last `fit`, in memory and never in a
pickle.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._row_hashes import hash_values
from sklearn_rankcal.utils._sklearn_compat import _safe_indexing

_COLUMNS = 2  # of X that are hashed; all columns would take as long as the fit of Ridge


class FittedQueries:
    """Hashes of the ids, the features and the labels of the queries of a table.

    The hashes of features and of labels are sums over the rows of a query, so that the order of the
    rows does not matter. Only a relevance of every row is hashed as a label.
    """

    def __init__(self, queries: Queries, X: Any, labels: Any) -> None:
        hashes = _hash_ids(queries)
        self.order = np.argsort(hashes)
        self.ids = hashes[self.order]
        self.features = self._sums(queries, _hash_some_columns(X))
        self.labels = self.features
        if isinstance(labels, np.ndarray):
            self.labels = self._sums(queries, hash_values(labels))

    def _sums(self, queries: Queries, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return queries.sum(hashes + np.uint64(1))[self.order]  # modulo 2^64; 1 counts the rows

    def share_ids(self, queries: Queries) -> bool:
        """Whether one of the ids is that of a query of this table."""
        return bool(np.isin(_hash_ids(queries), self.ids).any())

    def count_fitted(self, queries: Queries, X: Any, labels: Any) -> int:
        """Return how many queries have the rows of a query of this table, whatever their ids."""
        other = FittedQueries(queries, X, labels)
        fitted = np.isin(other.features, self.features)
        if self.labels is not self.features:
            fitted &= np.isin(other.labels, self.labels)
        return int(fitted.sum())

    def describe_cut(self, queries: Queries, X: Any, labels: Any) -> str | None:
        """Return what is wrong if queries to score were fitted with other rows, else None.

        The rows are the same if their features are, or their labels, since the transformers of a
        pipeline can change features between `fit` and `score`. If a column is permuted between
        queries, as `permutation_importance` does, the sums over all queries remain the same.
        """
        scored = FittedQueries(queries, X, labels)
        _, here, there = np.intersect1d(self.ids, scored.ids, return_indices=True)
        other = self.features[here] != scored.features[there]
        changed = other & (self.labels[here] != scored.labels[there])
        if not changed.any() or self.features[here].sum() == scored.features[there].sum():
            return None
        example = queries.ids[scored.order[there[changed.argmax()]]]
        example = example.item() if isinstance(example, np.generic) else example
        return (
            f"{other.sum()} of {counted(queries.n_queries, 'query')} to be scored, such as "
            f"{example!r}, were "
            "fitted with other rows. The rest of a fitted query is no test of new queries, and the "
            "measure of a part of a query is usually larger, because a shorter query is easier to "
            "rank. Split by query: cv=QueryKFold(), or GroupKFold() or GroupShuffleSplit() with "
            "groups=. Give queries that differ different ids. If the cut is meant, as for queries "
            "that are users whose next choice is predicted: "
            'warnings.filterwarnings("ignore", category=CutQueriesWarning).'
        )


def _hash_ids(queries: Queries) -> NDArray[np.int64]:
    ids = queries.ids
    if ids.dtype.kind in "iu":
        return ids.astype(np.int64)
    return np.array([_hash_id(one) for one in ids.tolist()], dtype=np.int64)


def _hash_id(one: Any) -> int:
    """Return a whole number itself, of any type, and a hash of anything else."""
    whole = int(one) if issubclass(type(one), Real) else None
    if whole is not None and whole == one and -(2**63) <= whole < 2**63:
        return whole
    return hash((one, str(one)))  # Python's hash of a long double is that of the nearest double


def _hash_some_columns(X: Any) -> NDArray[np.uint64]:
    """Return a hash of a few columns of each row."""
    hashes = np.zeros(X.shape[0], dtype=np.uint64)
    for column in np.unique(np.linspace(0, X.shape[1] - 1, _COLUMNS).astype(int)).tolist():
        values = (
            X[:, [column]].toarray() if sparse.issparse(X) else _safe_indexing(X, column, axis=1)
        )
        hashes = hashes * np.uint64(3) + hash_values(np.asarray(values).ravel())
    return hashes
