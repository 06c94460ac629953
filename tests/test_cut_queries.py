"""If a splitter of scikit-learn cuts queries, the ranker notices, and no tool returns a number.

The ranker has two lines of defence. The first compares the queries that it scores or predicts with
those that it was fitted on. The second looks at the local variables of scikit-learn's functions.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, cross_val_score, permutation_test_score

from sklearn_rankcal import QueryKFold, relevance_labels
from sklearn_rankcal.rankers import _cut_queries

from .sklearn_table import CELLS, MESSAGES
from .sklearn_tools import TOOLS, fitted_search, use_cross_validate
from .sklearn_ways import N_FOLDS, NAMES, SCORER, WAYS, G, X, Y, both_routings, make_ranker


@pytest.fixture
def no_second_line(monkeypatch):
    """Switch off the second line, the look at local variables of scikit-learn's functions."""
    monkeypatch.setattr(_cut_queries, "split_under_way", lambda: None)


@both_routings
@pytest.mark.parametrize(
    "tool",
    ["permutation_test_of_rows", "RFECV_of_rows", "cross_val_predict_of_rows"],
)
@pytest.mark.parametrize("way", ["column", "groups"])
def test_the_first_line_alone_notices_that_queries_are_cut(routing, no_second_line, tool, way):
    outcome = CELLS[tool, "on" if routing else "off", way]
    with pytest.raises(ValueError, match=f"(?s){MESSAGES[outcome]}"):
        TOOLS[tool][0](WAYS[way], "scorer", routing)


@both_routings
def test_the_first_line_alone_gives_no_number_in_cross_validation(routing, no_second_line):
    way = WAYS["column"]
    by_rows = {"cv": KFold(N_FOLDS), "scoring": SCORER, "params": {}}  # {}: see to_function
    with pytest.warns(UserWarning, match="(?s)Scoring failed.*it cuts .* test queries, such as"):
        assert np.isnan(cross_val_score(make_ranker(way), way.X, way.y, **by_rows)).all()
    got, wanted = use_cross_validate(way, "scorer", routing)  # training scores too
    np.testing.assert_allclose(got, wanted)


@both_routings
@pytest.mark.parametrize("splitter", ["rows in neither part", "mirrored"])
def test_some_cut_queries_are_found_by_the_second_line_only(routing, splitter):
    """Two splitters that the first line cannot recognise.

    With the first, a query has rows that are neither in training nor in test. With the second, the
    halves of all queries have the same query ids in the same order.
    """
    if splitter == "mirrored":
        groups, cv = np.tile(np.arange(6), 8), KFold(2)
        table = pd.DataFrame(X[:48], columns=NAMES).assign(qid=groups)
    else:
        table = WAYS["column"].X
        cv = [(np.flatnonzero(G < 12), np.flatnonzero(G == 20)[:-1])]
    ranker = make_ranker(WAYS["column"])
    what = {"cv": cv, "scoring": SCORER, "params": {}}  # {}: see to_function
    with pytest.raises(ValueError, match=MESSAGES["refuse"]):
        cross_val_score(ranker, table, Y[: len(table)], **what)
    with pytest.raises(ValueError, match=MESSAGES["refuse"]):
        permutation_test_score(ranker, table, Y[: len(table)], **what)


def test_a_fitted_search_predicts_other_data_with_the_same_ids():
    """The ranker remembers its queries only inside the call that fitted it."""
    way = WAYS["column"]
    search = fitted_search(way, SCORER)
    some = way.X.iloc[::2]
    ranks = search.predict(some)
    np.testing.assert_array_equal(ranks, search.best_estimator_.predict(some))
    assert 0 < search.score(some, Y[::2]) <= 1
    frozen = FrozenEstimator(search.best_estimator_)
    labels = relevance_labels(Y[::2], G[::2])
    scores = cross_val_score(frozen, some, labels, cv=QueryKFold(3), scoring=SCORER)
    assert np.isfinite(scores).all()
