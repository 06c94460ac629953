"""Context columns: their formulas, and the table that a ranker gives to its regressor."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker, context_columns
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.models._context import add_context  # columns of queries of one size
from sklearn_rankcal.queries import Queries

from .. import oracles

DATA = make_ranking(20, random_state=0)
RANKING = make_ranking(60, (3, 12), 6, random_state=0)
X, Y, G = RANKING.X, RANKING.y, RANKING.groups


@pytest.mark.parametrize("context", ["zscore", "rank", ["difference", "zscore"]])
@pytest.mark.parametrize("frame", [False, True])
def test_the_table_is_what_the_regressor_sees(context, frame):
    X = DATA.X
    if frame:
        X = pd.DataFrame(X, columns=[f"f{number}" for number in range(X.shape[1])])
    shuffled = np.random.RandomState(0).permutation(len(DATA.y))
    X = X.iloc[shuffled] if frame else X[shuffled]
    groups = DATA.groups[shuffled]
    ranker = CalibratedRanker(Ridge(), context=context).fit(X, DATA.y[shuffled], groups=groups)
    table = context_columns(X, groups, context)
    assert type(table) is type(X)
    np.testing.assert_array_equal(table, ranker.transform_table(X, groups=groups))
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


def test_ranks_are_the_share_of_values_below():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, size=(30, 3)).astype(float)
    values[rng.uniform(size=values.shape) < 0.1] = np.nan
    groups = rng.integers(0, 6, size=30)
    table = context_columns(values, groups, "rank")
    np.testing.assert_array_equal(table[:, :3], values)
    for rows in oracles.split(groups):
        for column, got in zip(values[rows].T, table[rows, 3:].T, strict=True):
            known = column[~np.isnan(column)]
            below = [(known < x).sum() + (known == x).sum() / 2 for x in column]
            wanted = np.where(np.isnan(column), np.nan, np.divide(below, len(known) or 1) - 0.5)
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-15)


def test_several_kinds_of_context_stand_side_by_side():
    queries, kinds = Queries.from_groups(G), ("rank", "zscore", "difference")
    table, _ = add_context(X, queries, kinds)
    parts = [add_context(X, queries, (kind,))[0][:, X.shape[1] :] for kind in kinds]
    np.testing.assert_array_equal(table, np.hstack([X, *parts]))


def test_a_column_named_like_a_context_column():
    frame = pd.DataFrame(X[:, :2], columns=["a", "a__difference"])
    with pytest.raises(ValueError, match="'a__difference', which is the name of a context column"):
        CalibratedRanker(Ridge()).fit(frame, Y, G)
    twice = CalibratedRanker(Ridge(), context=["rank", "rank"]).fit(X, Y, G)
    assert twice.model_.regressor_.n_features_in_ == 12


def test_infinities_are_the_regressors_business():
    values = np.array([[np.inf], [0.0], [np.nan], [1.0]])
    queries = Queries.single(4)
    np.testing.assert_allclose(
        add_context(values, queries, ("rank",))[0][:, 1], [1 / 3, -1 / 3, np.nan, 0], atol=1e-15
    )
    np.testing.assert_array_equal(
        add_context(values, queries, ("zscore",))[0][:, 1], [np.inf, -1, np.nan, 1]
    )
    infinite = X.copy()
    infinite[3, 2] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        CalibratedRanker(Ridge()).fit(infinite, Y, G)
