"""Context columns: their formulas, and the table that a ranker gives to its regressor."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from sklearn_rankcal import CalibratedRanker, context_columns
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.models._context import add_context  # columns of queries of one size
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._input import read_queries

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


@pytest.mark.parametrize("kind", ["zscore", "difference", "rank"])
def test_context_columns_are_the_formulas(kind):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, size=(30, 3)).astype(float)
    values[rng.uniform(size=values.shape) < 0.1] = np.nan
    groups = rng.integers(0, 6, size=30)
    table = context_columns(values, groups, kind)
    assert table.shape == (30, 6)
    np.testing.assert_array_equal(table[:, :3], values)
    for rows in oracles.split(groups):
        for j in range(3):
            x = values[rows, j]
            known = x[~np.isnan(x)]
            for row, value in zip(rows, x, strict=True):
                got = table[row, 3 + j]
                if np.isnan(value):
                    assert np.isnan(got)
                elif kind == "rank":
                    below = (known < value).sum() + (known == value).sum() / 2
                    assert got == pytest.approx(below / len(known) - 0.5)
                else:
                    sd = known.std() if kind == "zscore" else 1.0
                    wanted = (value - known.mean()) / sd if sd > 0 else 0.0
                    assert got == pytest.approx(wanted, abs=1e-12)


def test_context_of_a_constant_column_is_zero_in_spite_of_rounding():
    groups = np.repeat([0, 1], 7)
    values = np.column_stack([np.repeat([0.1, 1e15 / 3], 7), np.arange(14.0)])
    tree = DecisionTreeRegressor()
    ranker = CalibratedRanker(tree, context="zscore").fit(values, np.arange(14) % 3, groups)
    table, inverse = ranker.model_._table(values, read_queries(ranker, values, groups)[1])
    assert (table[:, 2] == 0).all() and inverse[0] == 0


def test_queries_of_one_size_have_the_context_of_others():
    """Queries of one size are computed by other code than queries of several sizes."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(37, 3)).round(1)
    values[rng.uniform(size=values.shape) < 0.1] = np.nan
    groups = np.append(np.arange(36) // 6, 9)
    for kind in ("zscore", "difference", "rank"):
        one_size, _ = add_context(values[:36], Queries.from_groups(groups[:36]), (kind,))
        mixed, _ = add_context(values, Queries.from_groups(groups), (kind,))
        np.testing.assert_array_equal(one_size, mixed[:36])


@pytest.mark.parametrize("kind", ["zscore", "difference", "rank"])
def test_context_does_not_depend_on_the_order_of_rows_in_the_last_digit(kind):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 4)) * 10.0 ** rng.integers(-9, 9, size=(300, 4))
    values[rng.uniform(size=values.shape) < 0.05] = np.nan
    groups = rng.integers(0, 9, size=300)
    table, _ = add_context(values, Queries.from_groups(groups), (kind,))
    shuffle = rng.permutation(300)
    other, _ = add_context(values[shuffle], Queries.from_groups(groups[shuffle]), (kind,))
    np.testing.assert_array_equal(other, table[shuffle])


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


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_zscores_of_extreme_scales(scale):
    table, _ = add_context(X * scale, Queries.from_groups(G), ("zscore",))
    plain, _ = add_context(X, Queries.from_groups(G), ("zscore",))
    np.testing.assert_allclose(table[:, 6:], plain[:, 6:], rtol=1e-9, atol=1e-9)


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
