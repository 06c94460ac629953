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

    for module in ("rankers._distill", "models._document"):
        name = f"sklearn_rankcal.{module}.HistGradientBoostingRegressor"
        monkeypatch.setattr(name, make)
    monkeypatch.setattr("sklearn_rankcal.models._boosting_cv._AT_FIRST", N_TREES)
    for name in ("_MOST_TREES", "_MOST_OF_MANY_ROWS"):
        monkeypatch.setattr(f"sklearn_rankcal.models._boosting_cv.{name}", N_TREES)
