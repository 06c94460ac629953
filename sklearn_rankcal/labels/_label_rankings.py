"""Read the `y` of a label ranker. The r labels of a sample become the documents of a query."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.utils.validation import check_array

from sklearn_rankcal.labels._label_names import read_names
from sklearn_rankcal.labels._preferences import Preferences
from sklearn_rankcal.labels._rankings import PairWeight, check_pair_weight, weigh
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._numbers import Bools, Floats, check_range, read_numbers

_WEIGHTS_HELP = "y of shape (n_samples, r, r) holds preference weights"


def read_label_rankings(y: Any, n_rows: int, y_type: str) -> tuple[str, Floats]:
    """Return the type of `y`, "ranks", "relevance" or "weights", and its values as float64.

    `y_type` is one of these or "auto": ranks if `y` is 2-D, and weights if it is 3-D. NaN marks a
    missing rank or relevance.
    """
    if y is None:
        raise ValueError("This ranker requires y to be passed, but the target y is None.")
    numbers = read_numbers(y, "y", missing=True)
    if numbers.ndim not in (2, 3):
        raise ValueError(
            f"y must have shape (n_samples, r), or (n_samples, r, r); it has {numbers.shape}."
        )
    values = check_array(numbers, allow_nd=True, ensure_all_finite="allow-nan", input_name="y")
    check_range(values, "y")
    if len(values) != n_rows:
        raise ValueError(f"y has {counted(len(values), 'row')}, but X has {n_rows}.")
    kind = y_type if y_type != "auto" else "ranks" if values.ndim == 2 else "weights"
    if values.ndim != (3 if kind == "weights" else 2):
        wanted = "(n_samples, r, r)" if kind == "weights" else "(n_samples, r)"
        raise ValueError(f"y_type={y_type!r} requires y of shape {wanted}; it has {values.shape}.")
    if kind == "weights":
        if values.shape[1] != values.shape[2]:
            raise ValueError(f"{_WEIGHTS_HELP}; it has shape {values.shape}.")
        if np.isnan(values).any() or values.min() < 0:
            raise ValueError(f"{_WEIGHTS_HELP}, which must be finite and >= 0.")
    elif kind == "ranks" and values.shape[1] > 1 and np.nanmin(values, initial=np.inf) < 1:
        raise ValueError(
            f"Ranks start at 1 (best); y contains {np.nanmin(values):g}. Convert an order of label "
            "numbers to ranks with order_to_ranks. If larger is better, pass y_type='relevance'."
        )
    return kind, values


def place_unlisted(kind: str, Y: Floats, unlisted: str) -> Floats:
    """Return ranks; if `unlisted` is "last", labels without a rank are tied at the bottom.

    Rows without any rank stay as they are.
    """
    if unlisted != "last":
        return Y
    if kind != "ranks":
        raise ValueError(
            f"unlisted='last' needs ranks, but y has {kind}. Replace missing entries yourself."
        )
    missing = np.isnan(Y)
    lowest = np.where(missing, -np.inf, Y).max(axis=1, initial=-np.inf, keepdims=True)
    return np.where(missing & np.isfinite(lowest), lowest + 1, Y)


def read_as_in_fit(y: Any, n_rows: int, ranker: Any) -> tuple[str, Floats]:
    """Read `y` as `read_label_rankings` does, with the names and parameters of a label ranker.

    If `ranker` is not a label ranker, the defaults are used.
    """
    y_type = getattr(ranker, "y_type", "auto")
    numbers, _ = read_names(y, y_type, getattr(ranker, "_names", None))
    kind, Y = read_label_rankings(numbers, n_rows, y_type)
    return kind, place_unlisted(kind, Y, getattr(ranker, "unlisted", "auto"))


def labels_of_rankings(
    kind: str, Y: Floats, pair_weight: PairWeight | None, name: str
) -> tuple[Any, Bools | None]:
    """Convert the result of `read_label_rankings` to labels that losses accept.

    The labels are relevance if no entry is missing, otherwise preferences with weights from
    `pair_weight`. `pair_weight` is None if the loss, called `name` in errors, does not accept
    preferences. Also return whether each pair i < j of each sample was judged, shape
    (n_samples, r (r - 1) / 2), or None if the labels are relevance.
    """
    r = Y.shape[1]
    if kind == "weights":
        i, j = np.triu_indices(r, 1)
        weights = np.where(np.eye(r, dtype=bool), 0.0, Y)
        judged = weights[:, i, j] + weights[:, j, i] > 0
    else:
        if kind == "ranks":
            # relevance of a label: r - 1 minus the number of labels above it, equal for ties
            missing = np.isnan(Y)
            above = rankdata(np.where(missing, np.inf, Y), "min", axis=1) - 1
            Y = np.where(missing, np.nan, r - 1.0 - above)
        if not np.isnan(Y).any():
            return Y.ravel(), None
        if pair_weight is None:
            raise ValueError(
                f"{name} needs every entry of y. Only loss='pd' and loss='pd_by_scores' accept "
                "missing entries (NaN), because they learn from judged pairs."
            )
        i, j = np.triu_indices(r, 1)
        gap = Y[:, :, None] - Y[:, None, :]
        judged = ~np.isnan(gap[:, i, j])
        weights = np.zeros_like(gap)
        weights[gap > 0] = weigh(check_pair_weight(pair_weight), gap[gap > 0])
    row, winner, loser = np.nonzero(weights)
    queries = Queries.uniform(len(Y), r)
    weight = weights[row, winner, loser]
    return Preferences(queries, row * r + winner, row * r + loser, weight), judged
