"""Targets of a label ranker that are not known: predict them by regressors of those that are.

The parameter `fit_one` is a function of X, targets (n, n_targets) and weights. It returns a fitted
regressor and its held-out predictions, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_rankcal.utils._features import take_rows
from sklearn_rankcal.utils._typing import Bools, Floats

FitOne = Callable[[Any, Floats, Floats | None], tuple[Any, Any]]
N_IMPUTATIONS = 2  # fits of `impute_together`


def fit_each(
    fit_one: FitOne, X: Any, targets: Floats, known: Bools, weight: Floats | None
) -> list[Any]:
    """Fit a regressor to each target, on the rows where it is known; None if there is no row."""
    return [
        fit_one(
            take_rows(X, np.flatnonzero(rows)),
            target[rows, None],
            None if weight is None else weight[rows],
        )[0]
        if rows.any()
        else None
        for target, rows in zip(targets.T, known.T, strict=True)
    ]


def predict_each(regressors: list[Any], X: Any) -> Floats:
    """Predict one column with each regressor; the column is 0 if there is no regressor."""
    return np.column_stack(
        [
            np.zeros(X.shape[0]) if one is None else np.asarray(one.predict(X)).reshape(-1)
            for one in regressors
        ]
    )


def impute_together(
    fit_one: FitOne, X: Any, targets: Floats, known: Bools, weight: Floats | None
) -> Floats:
    """Replace targets that are not known by held-out predictions of a fit to all of them.

    With many targets, this takes much less time than a regressor for each.
    """
    filled = fill_unknown(targets, known, weight)
    for _ in range(N_IMPUTATIONS):
        regressor, held_out = fit_one(X, filled, weight)
        without = np.isnan(held_out).any(axis=1)  # few rows, or more than are drawn
        if without.any():
            held_out[without] = regressor.predict(take_rows(X, np.flatnonzero(without)))
        filled = fill_unknown(targets, known, weight, held_out)
    return filled


def fill_unknown(
    targets: Floats, known: Bools, weight: Floats | None, predicted: Floats | None = None
) -> Floats:
    """Return targets in which predictions replace those that are not known, or first their means.

    The predictions come from a fit to such targets, and are therefore drawn to the means. A common
    factor, by least squares over the known targets, makes up for this.
    """
    counts = known if weight is None else known * weight[:, None]
    mean = (counts * targets).sum(axis=0) / np.maximum(counts.sum(axis=0), np.finfo(float).tiny)
    if predicted is None:
        return np.where(known, targets, mean)
    deviation = predicted - mean
    size = float((counts * deviation**2).sum())
    gain = float((counts * deviation * (targets - mean)).sum())
    factor = max(gain / size, 0.0) if size > 0 else 0.0
    return np.where(known, targets, mean + factor * deviation)
