"""Labels of either kind, relevance or preferences: they are read, and cut to some rows."""

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
    """Relevance per row, or `Preferences`; and the queries where `y` carries them."""
    if is_structured(y) and y.dtype.names == PREFERENCE_DTYPE.names:
        preferences = read_preferences(y, n_rows)
        return preferences, preferences.queries
    return read_relevance(y, n_rows)


def take_labels(labels: Labels, rows: NDArray[np.int64], queries: Queries) -> Labels:
    """Labels of some rows, of which `queries` are the queries; pairs with others are dropped."""
    if not isinstance(labels, Preferences):
        return labels[rows]
    new = np.full(labels.n_rows, -1)
    new[rows] = np.arange(len(rows))
    winner, loser = new[labels.winner], new[labels.loser]
    kept = (winner >= 0) & (loser >= 0)
    return Preferences.from_pairs(winner[kept], loser[kept], labels.weight[kept], queries)
