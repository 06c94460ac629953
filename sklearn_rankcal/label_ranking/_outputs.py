"""Fit a regressor to many outputs, whether or not it takes more than one."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from sklearn_rankcal.label_ranking._blend import BlendedRegressor
from sklearn_rankcal.models._column_parameters import match_parameters
from sklearn_rankcal.models._document import weight_arguments
from sklearn_rankcal.utils._catboost import clone
from sklearn_rankcal.utils._nested import set_random_states


def prepare_regressor(
    regressor: Any, X: Any, weight: NDArray[np.float64] | None, random_state: Any
) -> tuple[Any, dict[str, Any]]:
    """Return a clone for the table X, and the keyword arguments that pass weights to its fit.

    None means `BlendedRegressor`.
    """
    prepared = BlendedRegressor() if regressor is None else clone(regressor)
    match_parameters(prepared, X)
    weights = weight_arguments(prepared, weight, is_default=regressor is None)
    return set_random_states(prepared, random_state), weights


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
