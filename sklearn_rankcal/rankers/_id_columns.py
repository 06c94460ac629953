"""Warn of columns of X with the query ids or the labels, which a ranker would learn from."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import column_at, column_values, is_dataframe, numeric_columns
from sklearn_rankcal.utils._messages import warn

_ROWS_AT_FIRST = 256  # rows to check for all columns, before single columns
_FEWEST_QUERIES = 3  # a column of zeros and ones can be the ids of two queries by chance
_FEWEST_LABELS = 20  # a column of zeros and ones can be the labels of a few rows by chance
#: With this number of queries, different consecutive numbers, or texts, are no coincidence.
_MANY_QUERIES, _MANY_TEXTS = 10, 50
_NAME_OF_IDS = re.compile(r"(^|[^A-Za-z])[Ii][Dd]$|[a-z]I[Dd]$|[QqUu]id$")


def warn_of_ids(X: Any, queries: Queries, group_column: str | None) -> None:
    """Warn of the first column with query ids as values.

    Such a column has one value per query, different for each query. Other columns can have this
    property, such as the time of a query or, with few queries, its number of documents. The column
    must therefore also equal the ids, be consecutive whole numbers, be text, or have a name of ids.
    """
    if queries.n_queries < _FEWEST_QUERIES or sparse.issparse(X):
        return
    rows = np.arange(queries.n_rows) if queries.order is None else queries.order
    starts = np.zeros(queries.n_rows, dtype=bool)
    starts[queries.offsets[:-1]] = True
    for place in _candidates(X, rows[:_ROWS_AT_FIRST], starts[:_ROWS_AT_FIRST]):
        column = _column(X, place)[rows]
        if not np.array_equal(_changes(column), starts[1:]):
            continue
        values = column[starts]
        if len(set(values.tolist())) != len(values):
            continue
        name = str(X.columns[place]) if is_dataframe(X) else ""
        equal = _equal(values, queries.ids)
        if not equal and not _like_ids(values, name):
            continue
        what = "has the query id of each row"
        if not equal:
            what = "looks like a query id: it has a different value in every query"
        remedy = "Drop it from X."
        if name and group_column is None:
            remedy = (
                f"Pass group_column={name!r}, which reads the queries from the column and removes "
                "it from the features, or drop it from X."
            )
        warn(
            f"Column {repr(name) if name else place} of X {what}. The ranker would learn the "
            f"training queries, which does not help for new queries. {remedy}"
        )
        return


def warn_of_label(X: Any, labels: Any) -> None:
    """Warn of a column of a data frame with the labels as values."""
    known = isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "biuf"
    if not known or not is_dataframe(X) or len(labels) < _FEWEST_LABELS:
        return
    if (labels == labels[0]).all():
        return
    for column in numeric_columns(X):
        values = X[column]
        if getattr(values, "ndim", 1) != 1:  # two columns of the same name
            continue
        if np.array_equal(column_values(X, [column])[:, 0], labels):
            warn(
                f"Column {str(column)!r} of X has the label of each row, y. A ranker with this "
                "column learns nothing else, and new documents have no label. Drop it from X."
            )
            return


def _candidates(X: Any, rows: NDArray[np.int64], starts: NDArray[np.bool_]) -> list[int]:
    """Return the columns that may be query ids, according to some rows."""
    if not is_dataframe(X):
        same = _changes(X[rows]) == starts[1:, None]
        return np.flatnonzero(same.all(axis=0)).tolist()
    columns = range(X.shape[1])
    return [j for j in columns if np.array_equal(_changes(_column(X, j)[rows]), starts[1:])]


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a row differs from the previous row."""
    return np.asarray(values[1:] != values[:-1], dtype=bool)


def _column(X: Any, place: int) -> NDArray[Any]:
    column = column_at(X, place)
    # missing values of pandas cannot be compared
    return column.astype(str) if column.dtype == object else column


def _equal(values: NDArray[Any], ids: NDArray[Any]) -> bool:
    ids = np.asarray(ids)
    if values.dtype.kind in "iuf" and ids.dtype.kind in "iuf":
        return bool(np.array_equal(values, ids))
    return [str(value) for value in values] == [str(name) for name in ids]


def _like_ids(values: NDArray[Any], name: str) -> bool:
    if len(values) < _MANY_QUERIES:
        return False
    text = values.dtype.kind in "OSUT"
    if not text and (values.dtype.kind not in "iuf" or (values != np.floor(values)).any()):
        return False
    if _NAME_OF_IDS.search(name):
        return True
    if text:
        return len(values) >= _MANY_TEXTS
    return float(values.max()) - float(values.min()) == len(values) - 1
