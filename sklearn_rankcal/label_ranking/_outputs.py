"""Fit any regressor to many outputs, with or without missing targets.

The parameter `fit_one` is a function of X, targets (n, n_targets) and weights. It returns a fitted
regressor and its held-out predictions, or None.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from sklearn_rankcal.label_ranking._blend import BlendedRegressor
from sklearn_rankcal.models._column_parameters import match_parameters
from sklearn_rankcal.models._document import weight_arguments
from sklearn_rankcal.utils._catboost import clone
from sklearn_rankcal.utils._estimators import set_random_states
from sklearn_rankcal.utils._features import take_rows
from sklearn_rankcal.utils._typing import Bools, Floats

FitOne = Callable[[Any, Floats, Floats | None], tuple[Any, Any]]
N_IMPUTATIONS = 2  # fits of `impute_together`


def prepare_regressor(
    regressor: Any, X: Any, weight: Floats | None, random_state: Any
) -> tuple[Any, dict[str, Any]]:
    """Return a clone for the table X, and the keyword arguments for the weights of its fit.

    None means `BlendedRegressor`.
    """
    prepared = BlendedRegressor() if regressor is None else clone(regressor)
    match_parameters(prepared, X)
    weights = weight_arguments(prepared, weight, is_default=regressor is None)
    return set_random_states(prepared, random_state), weights


def fit_outputs(regressor: Any, X: Any, y: Floats, arguments: dict[str, Any]) -> Any:
    """Fit a regressor to y of shape (n_samples,) or (n_samples, n_outputs), and return it.

    It is wrapped in `MultiOutputRegressor` if it does not support several outputs. Its tag does not
    decide this: searches, bagging, neural networks and most custom regressors lack the tag.
    """
    if y.ndim == 1 or get_tags(regressor).target_tags.multi_output:
        return regressor.fit(X, y, **arguments)
    # Regressors of one output reject y before they compute anything, with errors of any class, such
    # as CatBoostError. With any other reason for the error, each single output raises it again.
    with contextlib.suppress(Exception):
        return clone(regressor).fit(X, y, **arguments)
    return MultiOutputRegressor(regressor).fit(X, y, **arguments)


def fit_each(
    fit_one: FitOne, X: Any, targets: Floats, known: Bools, weight: Floats | None
) -> list[Any]:
    """Fit a regressor to each target, on the rows with a known target; None without such rows."""
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
    """Predict one column with each regressor; 0 without a regressor."""
    return np.column_stack(
        [
            np.zeros(X.shape[0]) if one is None else np.asarray(one.predict(X)).reshape(-1)
            for one in regressors
        ]
    )


def impute_together(
    fit_one: FitOne, X: Any, targets: Floats, known: Bools, weight: Floats | None
) -> Floats:
    """Replace unknown targets with held-out predictions of a joint fit.

    With many targets, this is much faster than one regressor per target.
    """
    filled = fill_unknown(targets, known, weight)
    for _ in range(N_IMPUTATIONS):
        regressor, held_out = fit_one(X, filled, weight)
        without = np.isnan(held_out).any(axis=1)  # few rows, or rows outside the random subset
        if without.any():
            held_out[without] = regressor.predict(take_rows(X, np.flatnonzero(without)))
        filled = fill_unknown(targets, known, weight, held_out)
    return filled


def fill_unknown(
    targets: Floats, known: Bools, weight: Floats | None, predicted: Floats | None = None
) -> Floats:
    """Return targets with unknown values replaced by predictions, or at first by means.

    The predictions come from a fit to such targets, and are therefore shrunk towards the means. A
    common factor, by least squares over the known targets, corrects this.
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
