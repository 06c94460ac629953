"""Fit a regressor to many outputs, whether or not it takes more than one."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from sklearn_rankcal.utils._catboost import clone


def fit_outputs(regressor: Any, X: Any, y: NDArray[np.float64], arguments: dict[str, Any]) -> Any:
    """Fit a regressor to y of shape (n_samples,) or (n_samples, n_outputs), and return it.

    It is wrapped in `MultiOutputRegressor` if it does not take the outputs together. Its tag is no
    proof of that: searches, bagging, neural networks and most regressors of users lack the tag.
    """
    if y.ndim == 1 or get_tags(regressor).target_tags.multi_output:
        return regressor.fit(X, y, **arguments)
    # Regressors of one output refuse y before they compute anything, with errors of any class, such
    # as CatBoostError. If there is another reason to refuse, each output alone is refused for it.
    with contextlib.suppress(Exception):
        return clone(regressor).fit(X, y, **arguments)
    return MultiOutputRegressor(regressor).fit(X, y, **arguments)
