"""Regressors of LightGBM and XGBoost for tests, which skip where a library is not installed."""

import pytest


def regressor(library, n=30, **parameters):
    """An untrained regressor with n trees, on one thread."""
    module = pytest.importorskip(library)
    common = {"n_estimators": n, "n_jobs": 1, "learning_rate": 0.2}
    if library == "lightgbm":
        common |= {"num_leaves": 7, "min_child_samples": 5, "verbose": -1}
        return module.LGBMRegressor(**common | parameters)
    return module.XGBRegressor(**common | {"max_depth": 3, "base_score": 0.0} | parameters)
