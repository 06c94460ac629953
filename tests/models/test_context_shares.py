"""Context columns of the kind "share": how many rows of the query have the category of a row."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_rankcal import (
    BoostedRanker,
    CalibratedRanker,
    ScoreRegressor,
    context_columns,
    distill,
)
from sklearn_rankcal.inspection import served_columns
from tests import oracles
from tests.boosting_tools import regressor as gradient_boosting
from tests.column_tools import LIBRARIES, MONOTONE, boosted
from tests.dask_data import Documents, cut

pytestmark = pytest.mark.usefixtures("few_trees")

RNG = np.random.default_rng(0)
G = RNG.permutation(np.repeat(np.arange(40), RNG.integers(1, 12, 40)))
N = len(G)
#: Each query has a commonest kind, and a brand that all its rows have.
MAIN = RNG.integers(0, 4, 40)[G]
KIND = np.where(RNG.random(N) < 0.6, MAIN, RNG.integers(0, 4, N))
PRICE = RNG.normal(size=N) + RNG.normal(size=40)[G]
Y = np.digitize(1.5 * (KIND == MAIN) + RNG.normal(size=N), [0.5, 1.5, 2.5]).astype(float)
FRAME = pd.DataFrame(
    {
        "kind": pd.Categorical.from_codes(KIND, list("dabc")),
        "price": PRICE,
        "brand": pd.Categorical.from_codes(RNG.integers(0, 3, 40)[G], list("xyz")),
    }
)


def shares(values, groups):
    """The shares by their definition; None is a category."""
    result = np.empty(len(values))
    for rows in oracles.split(groups):
        for row in rows:
            result[row] = np.mean([values[row] == values[other] for other in rows])
    return result


# -------------------------------------------------------------------- the numbers


@pytest.mark.parametrize("container", ["text", "numbers", "polars"])
@pytest.mark.parametrize("missing", [False, True])
def test_the_shares_are_those_of_the_definition(container, missing):
    frame = FRAME[["kind"]].copy()
    if container == "numbers":
        frame["kind"] = pd.Categorical(KIND * 1.5)
    if missing:
        frame.loc[KIND == 2, "kind"] = None
    listed = [None if pd.isna(value) else value for value in frame["kind"]]
    if container == "polars":
        frame = pytest.importorskip("polars").from_pandas(frame)
    found = np.asarray(context_columns(frame, G, "share")["kind__share"])
    np.testing.assert_array_equal(found, shares(listed, G))
    assert (found[np.isin(G, np.flatnonzero(np.bincount(G) == 1))] == 1).all()


def test_neither_rows_nor_queries_nor_the_list_of_categories_matter():
    found = context_columns(FRAME, G, "share")["kind__share"].to_numpy()
    order = RNG.permutation(N)
    moved = context_columns(FRAME.iloc[order], G[order], "share")["kind__share"]
    np.testing.assert_array_equal(moved, found[order])
    some = G < 7
    alone = context_columns(FRAME[some], G[some], "share")["kind__share"]
    np.testing.assert_array_equal(alone, found[some])
    other = FRAME.assign(kind=FRAME["kind"].cat.set_categories(["unused", *"abcd"]))
    np.testing.assert_array_equal(context_columns(other, G, "share")["kind__share"], found)
    renamed = FRAME.assign(kind=FRAME["kind"].cat.rename_categories(list("wxyz")))
    np.testing.assert_array_equal(context_columns(renamed, G, "share")["kind__share"], found)


def test_kinds_stand_side_by_side():
    table = context_columns(FRAME, G, ["zscore", "share", "rank"])
    added = ["price__zscore", "kind__share", "brand__share", "price__rank"]
    assert list(table) == [*FRAME, *added]
    for kind in ("zscore", "share", "rank"):
        alone = context_columns(FRAME, G, kind)
        names = [name for name in added if name.endswith(kind)]
        pd.testing.assert_frame_equal(table[names], alone[names])


def test_float32_stays_float32():
    table = context_columns(FRAME.astype({"price": np.float32}), G, ["share", "zscore"])
    assert table["kind__share"].dtype == np.float32


@pytest.mark.parametrize("rows", [FRAME[["price"]], FRAME[["price"]].to_numpy()])
@pytest.mark.parametrize("context", ["share", ["zscore", "share"]])
def test_a_table_without_categories(rows, context):
    for call in (
        lambda: context_columns(rows, G, context),
        lambda: CalibratedRanker(Ridge(), context=context).fit(rows, Y, groups=G),
    ):
        with pytest.raises(ValueError, match=r"'share' needs a data frame.*X.astype\(\{'brand'"):
            call()
    with pytest.raises(ValueError, match="'zscore' needs at least one numeric column"):
        context_columns(FRAME[["kind"]], G, ["share", "zscore"])


# -------------------------------------------------------------------- rankers


@pytest.mark.parametrize(
    ("context", "described"),
    [
        ("auto", {"difference": ["price"], "share": ["kind"]}),
        ("share", {"share": ["kind"]}),
        (["share", "rank"], {"share": ["kind"], "rank": ["price"]}),
        (["zscore", "difference"], {"zscore": ["price"], "difference": ["price"]}),
    ],
)
def test_the_ranker_says_what_it_added(context, described):
    ranker = CalibratedRanker("boosting", context=context).fit(FRAME, Y, groups=G)
    assert ranker.model_.context_ == described
    assert list(ranker.model_.context_) == list(described)  # in this order
    names = [f"{column}__{kind}" for kind, own in described.items() for column in own]
    table = ranker.transform_table(FRAME, G)
    assert list(table) == [*FRAME, *names] == list(ranker.get_feature_names_out())
    every = context_columns(FRAME, G, list(described))
    np.testing.assert_array_equal(table[names], every[names])
    again = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(
        again.decision_function(FRAME, groups=G), ranker.decision_function(FRAME, groups=G)
    )


def test_columns_that_are_constant_in_every_query_have_no_shares():
    bare = FRAME[["brand", "price"]]
    ranker = CalibratedRanker("boosting", context="share").fit(bare, Y, groups=G)
    assert ranker.model_.context_ == {}
    missing = FRAME.assign(brand=FRAME["brand"].where(np.arange(N) % 2 == 0))
    ranker = CalibratedRanker("boosting", context="share").fit(missing, Y, groups=G)
    assert ranker.model_.context_ == {"share": ["kind", "brand"]}  # missing is a category
    assert (context_columns(bare, G, "share")["brand__share"] == 1).all()


def test_a_frame_of_categories_alone():
    ranker = CalibratedRanker("boosting").fit(FRAME[["kind"]], Y, groups=G)
    assert ranker.model_.context_ == {"share": ["kind"]}
    with pytest.raises(ValueError, match="needs them: pass groups"):
        ranker.predict(FRAME[["kind"]])


def test_an_encoder_of_categories_alone_sees_no_shares():
    half = G < 20
    ranker = CalibratedRanker(make_pipeline(OneHotEncoder(), Ridge()))
    ranker.fit(FRAME.loc[half, ["kind"]], Y[half], groups=G[half])
    assert ranker.model_.context_ == {}
    assert np.isfinite(ranker.decision_function(FRAME[["kind"]], groups=G)).all()


def test_importances_of_shares_belong_to_their_columns():
    class Counted(Ridge):
        def fit(self, X, y, sample_weight=None):
            self.feature_importances_ = 10.0 ** np.arange(X.shape[1])
            return super().fit(X.to_numpy(dtype=float), y)

    table = FRAME.assign(kind=pd.Categorical(KIND), brand=pd.Categorical(MAIN))
    model = CalibratedRanker(Counted(), context=["share", "zscore"]).fit(table, Y, groups=G).model_
    assert list(model.context_["share"]) == ["kind"]
    np.testing.assert_array_equal(model.own_importances(), [1 + 1e3, 10 + 1e4, 100])


def test_coefficients_leave_shares_out():
    table = FRAME.assign(kind=pd.Categorical(KIND)).drop(columns="brand")
    ranker = CalibratedRanker(Ridge(), context=["share", "difference"]).fit(table, Y, groups=G)
    kind, price, _, difference = ranker.model_.regressor_.coef_ * ranker.model_._unit
    np.testing.assert_allclose(ranker.coef_, [kind, price + difference])


def test_stacks_and_students(monkeypatch):
    monkeypatch.setattr("sklearn_rankcal.rankers._distill._DRAWN_ROWS", 1_000)
    teacher = CalibratedRanker("stacked").fit(FRAME, Y, groups=G)
    assert "share" in teacher.model_.context_
    student = distill(teacher, FRAME, G)
    assert student.model_.context_["share"] == ["kind"]
    assert np.isfinite(student.decision_function(FRAME, groups=G)).all()
    bare = distill(teacher, FRAME, G, context=None)
    assert bare.model_.context_ == {} and served_columns(bare) == list(FRAME)
    with pytest.raises(ValueError, match=r"kind__share"):
        served_columns(teacher)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_a_boosted_ranker(library):
    options = {"enable_categorical": True} if library == "xgboost" else {}
    regressor = gradient_boosting(library, 5, **options)
    ranker = BoostedRanker(regressor=regressor, context="auto").fit(FRAME, Y, groups=G)
    assert ranker.model_.context_ == {"difference": ["price"], "share": ["kind"]}
    assert ranker.feature_importances_.shape == (3,)
    assert np.isfinite(ranker.decision_function(FRAME, groups=G)).all()


# -------------------------------------------------------------------- parameters of columns


@pytest.mark.parametrize(
    "library, parameters, has_share",
    [
        ("sklearn", {}, True),
        ("sklearn", {"categorical_features": ["kind", "brand"]}, True),
        ("sklearn", {"categorical_features": [True, False, True]}, True),
        ("lightgbm", {"max_bin_by_feature": [20, 30, 40]}, True),
        ("xgboost", {"feature_types": ["c", "q", "c"], "enable_categorical": True}, True),
        ("xgboost", {"feature_weights": [1, 2, 3], "enable_categorical": True}, True),
        ("catboost", {}, True),
        ("catboost", {"cat_features": ["kind", "brand"]}, True),
        ("catboost", {"feature_weights": [1.0, 2.0, 3.0]}, True),
        ("catboost", {"ignored_features": ["kind"]}, False),
        ("catboost", {"ignored_features": [0]}, False),
    ],
    ids=str,
)
def test_categories_have_shares_unless_they_are_ignored(library, parameters, has_share):
    ranker = CalibratedRanker(boosted(library, n=5, **parameters)).fit(FRAME, Y, groups=G)
    wanted = {"difference": ["price"]} | ({"share": ["kind"]} if has_share else {})
    assert ranker.model_.context_ == wanted
    assert np.isfinite(ranker.decision_function(FRAME, groups=G)).all()


def test_shares_get_no_sign_and_belong_to_the_group_of_their_column():
    given = HistGradientBoostingRegressor(
        monotonic_cst={"price": 1}, interaction_cst=[{0}, {1, 2}], max_iter=5
    )
    ranker = CalibratedRanker(given).fit(FRAME, Y, groups=G)
    assert ranker.model_.context_ == {"difference": ["price"], "share": ["kind"]}
    fitted = ranker.model_.regressor_
    assert list(fitted.monotonic_cst) == [0, 1, 0, 1, 0]
    assert [sorted(group) for group in fitted.interaction_cst] == [[0, 4], [1, 2, 3]]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_constraint_of_a_number_does_not_take_shares_away(library):
    form = (0, 1, 0) if library == "xgboost" else [0, 1, 0]
    options = {"enable_categorical": True} if library == "xgboost" else {}
    regressor = boosted(library, n=5, **{MONOTONE[library]: form}, **options)
    ranker = CalibratedRanker(regressor, context=["zscore", "share"]).fit(FRAME, Y, groups=G)
    assert ranker.model_.context_ == {"share": ["kind"]}
    ranker = CalibratedRanker(regressor).fit(FRAME, Y, groups=G)
    assert ranker.model_.context_ == {"difference": ["price"], "share": ["kind"]}


def test_partial_dependence_warns_of_a_column_of_categories():
    frame = FRAME.assign(qid=G)
    view = ScoreRegressor(CalibratedRanker("boosting", group_column="qid")).fit(frame, Y)
    with pytest.warns(UserWarning, match="'kind' has the same value in all"):
        view.predict(frame.assign(kind=pd.Categorical(["a"] * N, list("dabc"))))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        view.predict(frame)


# -------------------------------------------------------------------- dask


@pytest.mark.parametrize("context", ["auto", "share", ["share", "zscore"]])
@pytest.mark.parametrize("regressor", [Ridge(), SGDRegressor(random_state=0)], ids=repr)
def test_the_columns_of_collections_are_those_of_one_machine(context, regressor):
    from sklearn_rankcal.dask import DaskCalibratedRanker

    order = np.argsort(G, kind="stable")
    kind, brand = pd.Categorical(KIND), pd.Categorical(MAIN)
    frame = pd.DataFrame({"a": kind, "b": PRICE, "c": brand, "qid": G, "label": Y, "w": 1.0})
    frame = frame.iloc[order]
    data = Documents(cut(frame, np.cumsum(np.bincount(G))[[9, 20, 30]]))
    there = DaskCalibratedRanker(regressor, group_column="qid", context=context)
    local = CalibratedRanker(regressor, group_column="qid", context=context)
    there.fit(**data.given(local=False))
    local.fit(**data.given(local=True))
    assert there.model_.context_ == local.model_.context_
    assert there.model_.context_["share"] == ["a"]
    if isinstance(regressor, Ridge):
        np.testing.assert_allclose(
            there.model_.regressor_.coef_, local.model_.regressor_.coef_, rtol=1e-6
        )
    scores = there.ranker_.decision_function(data.given(local=True)["X"])
    np.testing.assert_allclose(there.decision_function(data.X).compute(), scores)
