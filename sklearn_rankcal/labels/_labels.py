"""Functions for labels of either kind, relevance or preferences: read them, and take rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels._preferences import PREFERENCE_DTYPE, Preferences, read_preferences
from sklearn_rankcal.labels._relevance import is_structured, read_relevance
from sklearn_rankcal.queries import Queries

#: One relevance per row, or weighted preferences between rows.
Labels = NDArray[np.float64] | Preferences


def read_any_labels(y: Any, n_rows: int | None = None) -> tuple[Labels, Queries | None]:
    """Read labels of either kind.

    Parameters
    ----------
    y : array-like or structured ndarray of shape (n_rows,)
        Relevance, or the structured array of `relevance_labels` or `preference_labels`.
    n_rows : int, default=None
        The expected length.

    Returns
    -------
    labels : ndarray of shape (n_rows,) or Preferences
        One relevance per row, or preferences between rows.
    queries : Queries or None
        The queries of the rows if `y` is structured, else None.
    """
    if is_structured(y) and y.dtype.names == PREFERENCE_DTYPE.names:
        preferences = read_preferences(y, n_rows)
        return preferences, preferences.queries
    return read_relevance(y, n_rows)


def take_labels(labels: Labels, rows: NDArray[np.int64], queries: Queries) -> Labels:
    """Take the labels of some rows; pairs with a row that is not taken are dropped.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,) or Preferences
    rows : ndarray of shape (n_taken,)
        Row numbers.
    queries : Queries
        The partition of the taken rows into queries.

    Returns
    -------
    taken : ndarray of shape (n_taken,) or Preferences
        Labels of the same kind.
    """
    if not isinstance(labels, Preferences):
        return labels[rows]
    new = np.full(labels.n_rows, -1)  # the new number of each row, -1 if it is not taken
    new[rows] = np.arange(len(rows))
    winner, loser = new[labels.winner], new[labels.loser]
    kept = (winner >= 0) & (loser >= 0)
    return Preferences.from_pairs(winner[kept], loser[kept], labels.weight[kept], queries)
