"""Rankings of a fixed set of labels come in; relevance, or preferences between labels, come out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from sklearn_rankcal.labels._preferences import Preferences
from sklearn_rankcal.labels._rankings import PairWeight, check_pair_weight, weigh
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import read_numbers

Floats = NDArray[np.float64]


_WEIGHTS_HELP = "y of shape (n_samples, r, r) holds preference weights"


def read_label_rankings(y: Any, n_rows: int, y_type: str) -> tuple[str, Floats]:
    """What y is, and y checked: (n, r) ranks or relevance with NaN, or (n, r, r) weights."""
    if y is None:
        raise ValueError("This ranker requires y to be passed, but the target y is None.")
    values = check_array(
        read_numbers(y, "y", missing=True),
        dtype=np.float64,
        allow_nd=True,
        ensure_all_finite="allow-nan",
        input_name="y",
    )
    if values.ndim not in (2, 3):
        raise ValueError(
            f"y must have shape (n_samples, r), or (n_samples, r, r); it has {values.shape}."
        )
    if len(values) != n_rows:
        raise ValueError(f"y has {len(values)} rows, but X has {n_rows}.")
    kind = y_type if y_type != "auto" else "ranks" if values.ndim == 2 else "weights"
    if values.ndim != (3 if kind == "weights" else 2):
        wanted = "(n_samples, r, r)" if kind == "weights" else "(n_samples, r)"
        raise ValueError(f"y_type={y_type!r} goes with y of shape {wanted}; it has {values.shape}.")
    if kind == "weights":
        if values.shape[1] != values.shape[2]:
            raise ValueError(f"{_WEIGHTS_HELP}; it has shape {values.shape}.")
        if np.isnan(values).any() or values.min() < 0:
            raise ValueError(f"{_WEIGHTS_HELP}: finite, and not negative.")
    elif kind == "ranks" and values.shape[1] > 1 and np.nanmin(values, initial=np.inf) < 1:
        raise ValueError(
            f"Ranks start at 1, the best; y has {np.nanmin(values):g}. An order of label numbers "
            "becomes ranks by order_to_ranks; where larger is better, say y_type='relevance'."
        )
    return kind, values


def labels_of_rankings(
    kind: str, Y: Floats, pair_weight: PairWeight | None, name: str
) -> tuple[Any, NDArray[np.bool_] | None]:
    """Labels as losses take them: relevance (n r,), or preferences and which pairs are judged."""
    r = Y.shape[1]
    i, j = np.triu_indices(r, 1)
    if kind == "weights":
        weights = np.where(np.eye(r, dtype=bool), 0.0, Y)
        judged = weights[:, i, j] + weights[:, j, i] > 0
    else:
        if kind == "ranks":
            above = (Y[:, None, :] < Y[:, :, None]).sum(axis=2)
            Y = np.where(np.isnan(Y), np.nan, r - 1.0 - above)
        if not np.isnan(Y).any():
            return Y.ravel(), None
        if pair_weight is None:
            raise ValueError(
                f"{name} needs every entry of y. Missing ones (NaN) go with "
                "loss='pd' and loss='pd_by_scores', which learn from the pairs that are judged."
            )
        gap = Y[:, :, None] - Y[:, None, :]
        judged = ~np.isnan(gap[:, i, j])
        weights = np.zeros_like(gap)
        weights[gap > 0] = weigh(check_pair_weight(pair_weight), gap[gap > 0])
    row, winner, loser = np.nonzero(weights)
    queries = Queries.uniform(len(Y), r)
    weight = weights[row, winner, loser]
    return Preferences(queries, row * r + winner, row * r + loser, weight), judged
