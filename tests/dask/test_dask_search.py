"""Model selection with the joblib backend of Dask: the same choice as without it."""

import joblib
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from sklearn_rankcal import CalibratedRanker, relevance_labels
from sklearn_rankcal.metrics import get_ranking_scorer
from sklearn_rankcal.model_selection import QueryKFold

from ..ranker_data import G, X, Y


# distributed 2025.1 leaves a socket open
@pytest.mark.filterwarnings("default")
def test_a_search_on_workers_chooses_the_same_parameters():
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(qid=G)
    grid = {"regressor__alpha": [1e-3, 1e2, 1e6], "loss": ["ndcg@3", "dcg"]}
    cases = (
        (CalibratedRanker(Ridge()), X, relevance_labels(Y, G), {}),
        (CalibratedRanker(Ridge(), group_column="qid"), frame, Y, {"groups": G}),
    )
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        for ranker, table, labels, given in cases:
            found = []
            for backend in ("threading", "dask"):
                search = GridSearchCV(
                    ranker, grid, scoring=get_ranking_scorer("ndcg@3"), cv=QueryKFold(3)
                )
                with joblib.parallel_config(backend=backend):
                    found.append(search.fit(table, labels, **given))
            one, two = found
            assert one.best_params_ == two.best_params_
            np.testing.assert_allclose(
                one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
            )
            assert len(set(one.cv_results_["mean_test_score"])) > 1
