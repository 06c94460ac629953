"""The columns that a ranker shows its regressor, written out for learners of other packages."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin

from sklearn_rankcal import CalibratedRanker, context_columns
from sklearn_rankcal.datasets import make_ranking

DATA = make_ranking(20, random_state=0)


class Spy(RegressorMixin, BaseEstimator):
    """Keeps the table that it is fitted on."""

    def fit(self, X, y):
        self.table_ = X
        return self

    def predict(self, X):
        return np.zeros(X.shape[0])


@pytest.mark.parametrize("context", ["zscore", "rank", ["difference", "zscore"]])
@pytest.mark.parametrize("frame", [False, True])
def test_the_table_is_what_the_regressor_sees(context, frame):
    X = DATA.X
    if frame:
        X = pd.DataFrame(X, columns=[f"f{number}" for number in range(X.shape[1])])
    shuffled = np.random.RandomState(0).permutation(len(DATA.y))
    X = X.iloc[shuffled] if frame else X[shuffled]
    groups = DATA.groups[shuffled]
    ranker = CalibratedRanker(Spy(), context=context).fit(X, DATA.y[shuffled], groups=groups)
    table = context_columns(X, groups, context)
    assert type(table) is type(X)
    np.testing.assert_array_equal(table, ranker.model_.regressor_.table_)
    assert table.shape == (len(groups), X.shape[1] * (3 if isinstance(context, list) else 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: context_columns(DATA.X, DATA.groups[1:]), "groups has"),
        (lambda: context_columns(DATA.X, DATA.groups, "sd"), "Unknown context 'sd'"),
        (lambda: context_columns(DATA.X, DATA.groups, None), "name at least one of 'zscore'"),
        (lambda: context_columns(sparse.csr_array(DATA.X), DATA.groups), "dense table"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
