"""Read labels that are relevance or preferences, and take rows of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels._preferences import PREFERENCE_DTYPE, Preferences, read_preferences
from sklearn_rankcal.labels._relevance import check_relevance, read_relevance
from sklearn_rankcal.queries import Queries

#: One relevance per row, or weighted preferences between rows.
Labels = NDArray[np.float64] | Preferences


def read_labels(y: Any, n_rows: int | None = None) -> tuple[Labels, Queries | None]:
    """Read relevance or preferences, and the queries of structured labels, or None."""
    names = y.dtype.names if isinstance(y, np.ndarray) else None
    if names is None:
        return check_relevance(y, n_rows), None
    if names == PREFERENCE_DTYPE.names:
        preferences = read_preferences(y, n_rows)
        return preferences, preferences.queries
    if "clicks" in names:
        raise ValueError(
            "The labels come from click_labels(shown, clicked, groups). Clicks must be aggregated "
            "to relevance: use loss=AggregatedLoss('dcg', 'inverse_propensity'), or "
            "AggregatedLoss('err', 'cascade')."
        )
    return read_relevance(y, n_rows)


def take_labels(labels: Any, rows: NDArray[np.int64], queries: Queries) -> Any:
    """Take the labels of some rows with these queries. Pairs with any other row are dropped."""
    return labels[rows] if isinstance(labels, np.ndarray) else labels.take_rows(rows, queries)
