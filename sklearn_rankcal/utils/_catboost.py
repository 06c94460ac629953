"""Special treatment of CatBoost regressors: copies, and tables that they can read.

- scikit-learn's `clone` rejects a regressor with a list or a dict among its parameters, such as
  ``cat_features=[0]``, because CatBoost copies them.
- CatBoost must be told which columns of a data frame are categories. It accepts no missing
  categories, and no array of floats with categories.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.base import clone as _clone

from sklearn_rankcal.utils._features import category_columns, is_dataframe

_MISSING = "missing value"  # the category that replaces missing values


def is_catboost(regressor: Any) -> bool:
    """Return whether an object is from CatBoost or from a subclass of a CatBoost class."""
    return any(kind.__module__.partition(".")[0] == "catboost" for kind in type(regressor).__mro__)


def clone(estimator: Any) -> Any:
    """Clone an estimator as scikit-learn does, and copy an estimator of CatBoost."""
    if is_catboost(estimator):
        return type(estimator)(**copy.deepcopy(estimator.get_params()))
    return _clone(estimator)


class ClonesCatBoost(BaseEstimator):
    """Base class of estimators with a parameter that can be a CatBoost regressor."""

    def __sklearn_clone__(self) -> Any:
        parameters = self.get_params(deep=False)
        held = {name: value for name, value in parameters.items() if is_catboost(value)}
        plain = copy.copy(self) if held else self
        for name in held:
            setattr(plain, name, None)
        cloned = super(ClonesCatBoost, plain).__sklearn_clone__()
        for name, value in held.items():
            setattr(cloned, name, clone(value))
        return cloned


def readable_table(regressor: Any, X: Any) -> Any:
    """Convert X to a table that a CatBoost regressor can read. Return X for other regressors."""
    if not is_catboost(regressor):
        return X
    if not is_dataframe(X):
        listed = regressor.get_params().get("cat_features")
        if listed is None or not isinstance(X, np.ndarray):
            return X
        import pandas as pd

        table = pd.DataFrame(X).infer_objects()
        whole = [place for place in listed if _is_whole(table[place])]
        return table.astype(dict.fromkeys(whole, np.int64))
    names = category_columns(X)
    if not names:
        return X
    if not hasattr(X, "iloc"):  # CatBoost crashes on polars categories
        import pandas as pd

        columns = {
            name: pd.Categorical(X[name].to_list()) if name in names else X[name].to_numpy()
            for name in X.columns
        }
        X = pd.DataFrame(columns)
    return X.assign(**{name: _as_texts(X[name]) for name in names})


def _is_whole(values: Any) -> bool:
    """Return whether a column has floats that are all whole. CatBoost checks other columns."""
    return values.dtype.kind == "f" and bool((values == np.round(values)).all())


def _as_texts(values: Any) -> Any:
    """Return a column of text categories, including one for missing values."""
    values = values.cat.rename_categories([str(one) for one in values.cat.categories])
    return values.cat.add_categories(_MISSING).fillna(_MISSING)
