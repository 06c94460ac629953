"""Detect scored queries that were fitted with other rows.

The measure of a part of a query is not the measure of the query, and rows of a fitted query are not
test data. A ranker therefore keeps hashes of the queries of its last `fit`, in memory but not in
pickles.
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

_COLUMNS = 2  # number of columns of X to hash; all would take as long as the fit of Ridge


class FittedQueries:
    """Hashes of the ids, the features and the labels of the queries of a table.

    Hashes of features and labels are sums over the rows of a query, so the order of rows does not
    matter. Labels are only hashed if they are relevance grades.
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
        """Whether the tables have a query id in common."""
        return bool(np.isin(_hash_ids(queries), self.ids).any())

    def count_fitted(self, queries: Queries, X: Any, labels: Any) -> int:
        """Return the number of queries with the same rows as a query of this table."""
        other = FittedQueries(queries, X, labels)
        fitted = np.isin(other.features, self.features)
        if self.labels is not self.features:
            fitted &= np.isin(other.labels, self.labels)
        return int(fitted.sum())

    def describe_cut(self, queries: Queries, X: Any, labels: Any) -> str | None:
        """Return a warning text if queries to score were fitted with other rows, else None.

        Rows are the same if their features or their labels are equal: transformers of a pipeline
        can change features between `fit` and `score`. Equal sums over all queries mean that a
        column was permuted, as by `permutation_importance`.
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
            f"{example!r}, were fitted with other rows. The rest of a fitted query does not test "
            "new queries, and the measure of a part of a query is usually larger, because a "
            "shorter query is easier to rank. Split by query: cv=QueryKFold(), or GroupKFold() or "
            "GroupShuffleSplit() with groups=. Give different queries different ids. If the split "
            "is intended, for example to predict the next choice of each user: "
            'warnings.filterwarnings("ignore", category=CutQueriesWarning).'
        )


def _hash_ids(queries: Queries) -> NDArray[np.int64]:
    ids = queries.ids
    if ids.dtype.kind in "iu":
        return ids.astype(np.int64)
    return np.array([_hash_id(one) for one in ids.tolist()], dtype=np.int64)


def _hash_id(one: Any) -> int:
    """Return whole numbers of any type as they are, and hash everything else."""
    whole = int(one) if issubclass(type(one), Real) else None
    if whole is not None and whole == one and -(2**63) <= whole < 2**63:
        return whole
    return hash((one, str(one)))  # str, because Python hashes a long double like the nearest double


def _hash_some_columns(X: Any) -> NDArray[np.uint64]:
    """Return a hash of a few columns of each row."""
    hashes = np.zeros(X.shape[0], dtype=np.uint64)
    for column in np.unique(np.linspace(0, X.shape[1] - 1, _COLUMNS).astype(int)).tolist():
        values = (
            X[:, [column]].toarray() if sparse.issparse(X) else _safe_indexing(X, column, axis=1)
        )
        hashes = hashes * np.uint64(3) + hash_values(np.asarray(values).ravel())
    return hashes
