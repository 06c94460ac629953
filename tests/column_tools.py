"""Boosted regressors of the four libraries with constraints, and documents with a rising value.

`behind` counts documents that another one overtakes although nothing but their own value rose.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from sklearn_rankcal.utils._numbers import exceeds  # what counts as more than rounding
from tests.boosting_tools import regressor as gradient_boosting

LIBRARIES = ("sklearn", "lightgbm", "xgboost", "catboost")
#: The parameter of monotone constraints.
MONOTONE = dict.fromkeys(LIBRARIES, "monotone_constraints") | {"sklearn": "monotonic_cst"}
NAMES = ["price", "match", "fresh"]


def boosted(library, n=25, **parameters):
    """An untrained regressor with n trees of one library, which is skipped where it is absent."""
    if library == "sklearn":
        return HistGradientBoostingRegressor(
            max_iter=n, min_samples_leaf=5, max_leaf_nodes=7, random_state=0, **parameters
        )
    if library == "catboost":
        module = pytest.importorskip(library)
        common = {"iterations": n, "depth": 3, "learning_rate": 0.2, "verbose": 0}
        common |= {"allow_writing_files": False, "thread_count": 1, "random_seed": 0}
        return module.CatBoostRegressor(**common | parameters)
    return gradient_boosting(library, n, **parameters)


def documents(seed=0, n_queries=80, size=8, fall=1.0):
    """Return a frame, labels and query ids. Its first column has a different level in each query.

    The labels fall with the first column where it is far above the rest of its query, against a
    constraint that lets scores rise with it. `fall` says how far they fall.
    """
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_queries), size)
    X = rng.normal(size=(n_queries * size, 3))
    level = rng.normal(scale=2.0, size=(n_queries, 3))[groups]
    spread = np.exp(rng.normal(size=(n_queries, 3)))[groups]
    standing = X[:, 0] - fall * 2 * np.maximum(X[:, 0], 0)
    y = np.digitize(standing + 0.7 * X[:, 1] + 0.3 * rng.normal(size=len(X)), [-1.0, 0.0, 1.0])
    return pd.DataFrame(X * spread + level, columns=NAMES), y, groups


def behind(ranker, X, groups, place=0, sign=1, rises=(0.1, 1.0, 10.0), frame=True):
    """Count documents that another one overtakes when their own value alone moves by `sign`."""
    table = X.to_numpy()
    found = 0
    for query in np.unique(groups):
        rows = np.flatnonzero(groups == query)
        n, part = len(rows), table[rows]
        n_copies = 1 + n * len(rises)
        copies = np.tile(part, (n_copies, 1, 1))
        for number in range(1, n_copies):
            copies[number, (number - 1) % n, place] += sign * rises[(number - 1) // n]
        flat = copies.reshape(-1, table.shape[1])
        given = pd.DataFrame(flat, columns=X.columns) if frame else flat
        scores = ranker.decision_function(given, groups=np.repeat(np.arange(n_copies), n))
        scores = scores.reshape(n_copies, n)
        largest = np.abs(scores).max()
        for number in range(1, n_copies):
            one = (number - 1) % n
            before, after = scores[0], scores[number]
            led = exceeds(before[one], before, largest)
            found += bool(np.any(led & exceeds(after, after[one], largest)))
    return found
