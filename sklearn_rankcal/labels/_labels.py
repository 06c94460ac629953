"""Functions for labels of any kind: read them, and take rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels._click_log import Clicks
from sklearn_rankcal.labels._clicks import CLICK_DTYPE, read_clicks
from sklearn_rankcal.labels._judgements import Judgements
from sklearn_rankcal.labels._preferences import PREFERENCE_DTYPE, Preferences, read_preferences
from sklearn_rankcal.labels._relevance import is_structured, read_relevance
from sklearn_rankcal.queries import Queries

#: One relevance per row, weighted preferences between rows, or judgements about rows.
Labels = NDArray[np.float64] | Preferences | Judgements | Clicks


def read_any_labels(
    y: Any, n_rows: int | None = None, takes: str = "relevance"
) -> tuple[Labels, Queries | None]:
    """Read labels of any kind, and the queries of the rows if `y` is structured, else None.

    `takes` is that of `Loss.takes`: judgements are only kept apart if the loss takes them.
    """
    if takes in ("comparisons", "orders"):
        judgements = Judgements.from_labels(y, n_rows)
        return judgements, judgements.queries
    if takes == "clicks":
        clicks = read_clicks(y, n_rows)
        return clicks, clicks.queries
    if is_structured(y) and y.dtype.names == CLICK_DTYPE.names:
        raise ValueError(
            "The labels are those of click_labels(shown, clicked, groups). Clicks have to be "
            "aggregated to relevance: use loss=AggregatedLoss('dcg', 'inverse_propensity'), or "
            "AggregatedLoss('err', 'cascade')."
        )
    if is_structured(y) and y.dtype.names == PREFERENCE_DTYPE.names:
        preferences = read_preferences(y, n_rows)
        return preferences, preferences.queries
    return read_relevance(y, n_rows)


def take_labels(labels: Labels, rows: NDArray[np.int64], queries: Queries) -> Labels:
    """Take the labels of some rows, of these queries; pairs with another row are dropped."""
    return labels[rows] if isinstance(labels, np.ndarray) else labels.take_rows(rows, queries)
