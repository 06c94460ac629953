"""What regressors of CatBoost need and no others do: copies, and tables that they can read.

- scikit-learn's `clone` refuses a regressor with a list or a dict among its parameters, such as
  ``cat_features=[0]``, because CatBoost copies them.
- CatBoost wants to be told which columns of a data frame are categories, takes no missing category,
  and no array of floats with categories.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.base import clone as _clone

from sklearn_rankcal.utils._features import category_columns, is_dataframe

_MISSING = "missing value"  # the category of missing categories


def is_catboost(regressor: Any) -> bool:
    """Whether an object belongs to CatBoost, or to a subclass of a class of CatBoost."""
    return any(kind.__module__.partition(".")[0] == "catboost" for kind in type(regressor).__mro__)


def clone(estimator: Any) -> Any:
    """Return what scikit-learn's `clone` does, and a copy of an estimator of CatBoost."""
    if is_catboost(estimator):
        return type(estimator)(**copy.deepcopy(estimator.get_params()))
    return _clone(estimator)


class ClonesCatBoost(BaseEstimator):
    """Base class of estimators with a parameter that can be a regressor of CatBoost."""

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
    """Return a table that a regressor of CatBoost reads; for any other regressor, X itself."""
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
    if not hasattr(X, "iloc"):  # CatBoost crashes on categories of polars
        import pandas as pd

        columns = {
            name: pd.Categorical(X[name].to_list()) if name in names else X[name].to_numpy()
            for name in X.columns
        }
        X = pd.DataFrame(columns)
    return X.assign(**{name: _as_texts(X[name]) for name in names})


def _is_whole(values: Any) -> bool:
    """Whether a column has floats that are whole numbers; others are left to CatBoost."""
    return values.dtype.kind == "f" and bool((values == np.round(values)).all())


def _as_texts(values: Any) -> Any:
    """A column of categories that are all text, with one for missing values."""
    values = values.cat.rename_categories([str(one) for one in values.cat.categories])
    return values.cat.add_categories(_MISSING).fillna(_MISSING)
