"""A fixture for tests of what goes through the default regressors, and not of how well they fit."""

import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

N_TREES = 15


@pytest.fixture
def few_trees(monkeypatch):
    """Let the default regressor, also as a member of the default stack, have a few trees only."""

    def make(**parameters):
        n = min(N_TREES, parameters.pop("max_iter", N_TREES))
        return HistGradientBoostingRegressor(max_iter=n, **parameters)

    for module in ("_boosting_cv", "_distilled", "_document", "_stacked"):
        name = f"sklearn_rankcal.models.{module}.HistGradientBoostingRegressor"
        monkeypatch.setattr(name, make)
