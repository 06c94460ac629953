"""Input that DaskCalibratedRanker refuses, and what the errors say; what it takes unexpectedly."""

import pickle
from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from sklearn_rankcal import preference_labels, relevance_labels
from sklearn_rankcal.aggregation import AggregatedLoss
from sklearn_rankcal.dask import DaskCalibratedRanker
from sklearn_rankcal.linear import LinearModel
from sklearn_rankcal.models import BilinearPairs, DocumentModel, PairwiseRidge

from ..dask_data import collection_of
from ..python_process import run_python

FEATURES = ["a", "b", "c"]
QUERIES = np.repeat(np.arange(8), 6)
# partitions of two queries each; the rows of every query are together
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(48, 3)), columns=FEATURES).assign(
    qid=QUERIES, y=np.tile([0, 1, 2], 16), w=1.0
)
PARTS = [FRAME.iloc[start : start + 12] for start in range(0, 48, 12)]
DATA = collection_of(PARTS)
X, Y = DATA[[*FEATURES, "qid"]], DATA["y"]


def array(name):
    columns = FEATURES if name == "X" else name
    return collection_of([part[columns].to_numpy() for part in PARTS])


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def fitted():
    with dask.config.set(scheduler="synchronous"):
        return make().fit(X, Y)


def make(regressor=None, **parameters):
    return DaskCalibratedRanker(regressor, **{"group_column": "qid", **parameters})


def changed(collection, value, name=None, partition=1):
    """Return the collection with another value in row 2 of a partition."""
    parts = list(dask.compute(*collection.to_delayed()))
    part = parts[partition]
    values = (part if name is None else part[name]).astype(object).to_numpy().copy()
    values[2] = value
    parts = [part.astype(float if name is None else {name: float}) for part in parts]
    column = pd.Series(values, part.index, dtype=float)
    parts[partition] = column if name is None else part.assign(**{name: column})
    return collection_of(parts)


# name: (X, y, keyword arguments), error
BAD_COLLECTIONS = {
    "pandas": (lambda: (FRAME[[*FEATURES, "qid"]], Y), "use CalibratedRanker for data in memory"),
    "numpy": (lambda: (FRAME[FEATURES].to_numpy(), Y), "dask data frame or a dask array; got nda"),
    "polars": (lambda: (pl.DataFrame({"a": [1]}), Y), "dask data frame or a dask array; got Data"),
    "a list": (lambda: ([[1.0]], Y), "dask data frame or a dask array; got list"),
    "a series": (lambda: (X["a"], Y), "dask data frame or a dask array; got Series"),
    "delayed": (lambda: (dask.delayed(X), Y), "dask data frame or a dask array; got Delayed"),
    "labels of pandas": (lambda: (X, FRAME["y"]), "y must be a dask series or array.*got Series"),
    "labels in a list": (lambda: (X, [1] * 48), "y must be a dask series or array.*got list"),
    "no labels": (lambda: (X, None), "y must be a dask series or array; got None"),
    "two columns of labels": (lambda: (X, DATA[["y", "w"]]), "y must be a dask series"),
    "fewer partitions": (lambda: (X, Y.repartition(npartitions=2)), "y has 2 partitions, but X"),
    "fewer labels": (
        lambda: (X, collection_of([part["y"].iloc[: 12 - n] for n, part in enumerate(PARTS)])),
        r"y has \d+ rows in partition [1-3], but X has 12",
    ),
    "another index": (
        lambda: (X, collection_of([part["y"].iloc[::-1] for part in PARTS])),
        r"index of y differs from that of X in partition \d",
    ),
    "missing label": (
        lambda: (X, changed(Y, np.nan)),
        r"In partition 1: Input y contains NaN or infinity \(first at row 2\)",
    ),
    "infinite label": (lambda: (X, changed(Y, np.inf)), "In partition 1: Input y contains NaN"),
    "negative label": (lambda: (X, changed(Y, -1.0)), "relevance must be >= 0; got -1"),
    "text as a label": (lambda: (X, Y.astype(str)), r"partition \d: y must be real numbers, not t"),
    "equal labels": (lambda: (X, Y * 0), "undefined on all 8 queries"),
    "missing id": (
        lambda: (changed(X, np.nan, "qid"), Y),
        "In partition 1: groups has a missing or infinite id at row 2",
    ),
    "infinite id": (
        lambda: (changed(X, np.inf, "qid"), Y),
        "In partition 1: groups has a missing or infinite id at row 2",
    ),
    "no query ids": (lambda: (X[FEATURES], Y), "group_column='qid' is not among the columns"),
    "nothing but query ids": (lambda: (X[["qid"]], Y), "at least one feature"),
    "an array with group_column": (lambda: (array("X"), array("y")), "needs X as a dask data fra"),
    "text column": (
        lambda: (X.assign(t="x"), Y),
        # pandas 2 says only when it is computed that a column of objects is text
        r"Ridge needs numbers, but columns of X contain text or times: 't' \(.*encode it"
        "|could not convert string to float",
    ),
    "times": (lambda: (X.assign(t=pd.Timestamp("2026-01-01")), Y), "text or times: 't'"),
    "missing feature": (lambda: (changed(X, np.nan, "a"), Y), "Input X contains NaN"),
    "complex column": (lambda: (X.astype({"a": complex}), Y), "Column 'a' of X has complex"),
    "columns of the same name": (
        lambda: (collection_of([part.set_axis([*"aabcde"], axis=1) for part in PARTS]), Y),
        "several columns of the same name",
    ),
    "unknown categories": (
        lambda: (X.assign(t=X["qid"].astype("category").cat.as_unknown()), Y),
        r"categories of column 't' are not known.*X.categorize\(\)",
    ),
    "categories that differ": (
        lambda: (
            dd.from_map(
                lambda n: PARTS[n][["a", "qid"]].assign(t=pd.Categorical([n] * 12)),
                range(4),
                meta=PARTS[0][["a", "qid"]].assign(t=pd.Categorical([0] * 12)).iloc[:0],
            ),
            Y,
        ),
        "categories of column 't' differ between partitions",
    ),
    "no rows": (lambda: (X[X["a"] > 99], Y[X["a"] > 99]), "X has no rows"),
}


@pytest.mark.parametrize("name", BAD_COLLECTIONS)
def test_bad_collections_are_refused_with_a_reason(name):
    made, message = BAD_COLLECTIONS[name]
    with pytest.raises((TypeError, ValueError), match=message):
        make().fit(*made())


BAD_ARRAYS = {
    "1-D": (lambda: {"X": array("X")[:, 0]}, "Expected 2D array, got 1D"),
    "sparse blocks": (
        lambda: {"X": array("X").map_blocks(csr_matrix)},
        r"block.toarray\(\)\) makes them dense",
    ),
    "blocks that become sparse": (
        lambda: {"X": array("X").map_blocks(csr_matrix, meta=np.empty((0, 0)))},
        r"Block \d of X is of type csr_matrix.*block.toarray",
    ),
    "complex": (lambda: {"X": array("X") * 1j}, "Complex data not supported"),
    "text": (lambda: {"X": array("X").astype(str)}, "X must be real numbers; its dtype is <U"),
    "objects": (lambda: {"X": da.full((48, 3), "x", dtype=object, chunks=(12, 3))}, "'x'"),
    "no columns": (lambda: {"X": array("X")[:, :0]}, r"0 feature\(s\)"),
    "2-D groups": (lambda: {"groups": array("qid")[:, None]}, "groups must have one dimension"),
    "2-D labels": (lambda: {"y": array("X")}, "y must have one dimension"),
    "no groups": (lambda: {"groups": None}, "No query ids. Pass groups="),
    "missing id": (
        lambda: {"groups": da.from_array(np.array([None, "a"] * 24, dtype=object), chunks=12)},
        r"In partition \d: groups has a missing or infinite id at row 0",
    ),
    "fewer labels": (lambda: {"y": array("y")[:-1]}, "y has 47 entries, but X has 48 rows"),
    "structured labels": (
        lambda: {"y": da.from_array(relevance_labels(FRAME["y"], QUERIES), chunks=12)},
        r"In partition \d: y .*records",
    ),
    "preferences": (
        lambda: {"y": da.from_array(preference_labels([[0, 1]], QUERIES), chunks=12)},
        r"In partition \d: y .*records",
    ),
    "negative weight": (
        lambda: {"sample_weight": array("w") - 2},
        r"In partition \d: Negative values in data passed to sample_weight",
    ),
    "missing weight": (lambda: {"sample_weight": array("w") * np.nan}, r"In partition \d: Input s"),
    "weights of 0": (lambda: {"sample_weight": array("w") * 0}, "sample_weight is zero for every"),
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_arrays_are_refused_with_a_reason(name):
    made, message = BAD_ARRAYS[name]
    given = {"X": array("X"), "y": array("y"), "groups": array("qid"), **made()}
    with pytest.raises((TypeError, ValueError), match=message):
        DaskCalibratedRanker().fit(**given)


BAD_PARAMETERS = {
    "boosting": ({"regressor": "boosting"}, "lightgbm.DaskLGBMRegressor"),
    "a class": ({"regressor": Ridge}, "must be an estimator object"),
    "histograms": (
        {"regressor": HistGradientBoostingRegressor()},
        "HistGradientBoostingRegressor cannot be fitted to partitions.*Ridge.*partial_fit.*xgboost",
    ),
    "a pipeline": ({"regressor": make_pipeline(StandardScaler(), Ridge())}, "Pipeline cannot be f"),
    "positive ridge": ({"regressor": Ridge(positive=True)}, "Ridge cannot be fitted to partitions"),
    "a model": ({"regressor": DocumentModel(Ridge())}, "DocumentModel cannot be fitted"),
    "logistic": ({"regressor": LogisticRegression()}, "LogisticRegression cannot be fitted"),
    "a classifier": ({"regressor": SGDClassifier()}, "SGDClassifier is a classifier"),
    "negative alpha": ({"regressor": Ridge(alpha=-1)}, "'alpha' parameter of Ridge"),
    "scores for pd": (
        {"regressor": Ridge(), "loss": "pd"},
        "Ridge predicts scores, but loss='pd' needs pairs.*pd_by_scores",
    ),
    "pairs for ndcg": ({"regressor": PairwiseRidge()}, "predicts pairs, but loss='ndcg' needs s"),
    "pairs for map": (
        {"regressor": PairwiseRidge(), "loss": "map"},
        "predicts pairs, but loss='map' needs symmetric_pairs",
    ),
    "products for pd": (
        {"regressor": BilinearPairs(symmetric=True), "loss": "pd"},
        "predicts symmetric_pairs, but loss='pd' needs pairs",
    ),
    "batch descent": ({"regressor": LinearModel()}, "needs solver='sgd'"),
    "judgements": ({"loss": AggregatedLoss()}, "takes judgements.*aggregate the judgements first"),
    "loss": ({"loss": "ndgc"}, "Unknown loss 'ndgc'"),
    "decoder": ({"decoder": "nope"}, "Unknown decoder 'nope'"),
    "context": ({"context": "nope"}, "Unknown context 'nope'"),
    "center": ({"center": "yes"}, "center must be True or False"),
    "n_passes": ({"n_passes": 0}, "n_passes must be a whole number >= 1"),
    "group_column": ({"group_column": 3}, "group_column must be a string or None"),
    "a similar column": ({"group_column": "quid"}, "Did you mean 'qid'"),
}


@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_bad_parameters_are_refused_with_a_reason(name):
    parameters, message = BAD_PARAMETERS[name]
    with pytest.raises((TypeError, ValueError), match=message):
        make(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("keyword", "message"),
    [
        ("group", "Pass groups=<query id of each row>"),
        ("qid", "Pass groups=<query id of each row>"),
        ("eval_set", "takes no validation queries"),
        ("eval_metric", "get_ranking_scorer"),
    ],
)
def test_foreign_keywords_are_explained(keyword, message):
    with pytest.raises(TypeError, match=message):
        make().fit(X, Y, **{keyword: None})


@pytest.mark.parametrize(
    "method", ["fit", "predict", "decision_function", "predict_order", "score"]
)
def test_queries_that_partitions_cut_are_refused(method, fitted):
    cut = collection_of([FRAME.iloc[:13], FRAME.iloc[13:]])
    table, y = cut[[*FEATURES, "qid"]], cut["y"]
    arguments = {"X": table, "y": y} if method in ("fit", "score") else {"X": table}
    message = (
        "Rows of 1 query are in several partitions. Query 2 is in partitions 0 and 1. .*group_q"
    )
    with pytest.raises(ValueError, match=message):
        result = getattr(make() if method == "fit" else fitted, method)(**arguments)
        result.compute()


def test_rows_that_dask_moves_unnoticed_are_refused(tmp_path):
    """A column that dask joins by the index moves the rows of X, but not those of its ids."""
    for number, part in enumerate(PARTS):
        part.to_parquet(tmp_path / f"{number}.parquet", index=False)
    table = dd.read_parquet(tmp_path)
    series = collection_of([part.reset_index(drop=True)["w"].rename("z") for part in PARTS])
    joined = table[[*FEATURES, "qid"]].assign(z=series)
    # Where the rows go depends on the shuffle of dask; one of three checks notices it.
    messages = "y has 12 rows in|The index of y differs|because X was joined with a collection"
    with pytest.raises(ValueError, match=messages):
        make().fit(joined, table["y"])
    ranker = make().fit(table[[*FEATURES, "qid"]], table["y"])
    moved = table[["a", "b", "qid"]].assign(c=series)[[*FEATURES, "qid"]]
    with pytest.raises(ValueError, match="because X was joined with a collection"):
        ranker.predict(moved).compute()


def test_predict_refuses_other_columns(fitted):
    with pytest.raises(ValueError, match="now missing"):
        fitted.predict(X[["a", "b", "qid"]])
    with pytest.raises(ValueError, match="same order as they were in fit"):
        fitted.predict(X[["b", "a", "c", "qid"]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        fitted.predict(X.assign(d=1.0))
    with pytest.raises(ValueError, match="already"):
        fitted.predict(X, groups=X["qid"])
    with pytest.raises(TypeError, match="got DataFrame"):
        fitted.predict(FRAME[[*FEATURES, "qid"]])
    with pytest.raises(TypeError, match="Pass groups="):
        fitted.predict(X, qid=X["qid"])
    with pytest.raises(ValueError, match="k must be a whole number >= 1"):
        fitted.predict_order(X, k=0)
    of_array = DaskCalibratedRanker().fit(array("X"), array("y"), groups=array("qid"))
    with pytest.raises(ValueError, match="expecting 3 features"):
        of_array.predict(array("X")[:, :2], groups=array("qid"))


def test_score_refuses_what_fit_refuses(fitted):
    with pytest.raises(TypeError, match="y must be a dask series or array; got None"):
        fitted.score(X, None)
    with pytest.raises(ValueError, match="In partition 1: Input y contains NaN"):
        fitted.score(X, changed(Y, np.nan))
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        fitted.score(X, Y, sample_weight=DATA["w"] * 0)
    only_0 = (X["qid"] > 0).astype(int)
    with pytest.raises(ValueError, match="sample_weight is 0 on every query where NDCG is defined"):
        fitted.score(X, Y * (1 - only_0), sample_weight=DATA["w"] * only_0)
    with pytest.warns(UndefinedMetricWarning, match="NDCG is undefined on all 8 queries"):
        assert np.isnan(fitted.score(X, Y * 0))


def test_an_unfitted_ranker_says_so():
    for call in (
        lambda: make().predict(X),
        lambda: make().predict_order(X),
        lambda: make().score(X, Y),
    ):
        with pytest.raises(NotFittedError):
            call()
    with pytest.raises(AttributeError, match="model_"):
        make().model_  # noqa: B018


def test_pairs_have_no_scores():
    ranker = make(loss="pd").fit(X, Y)
    assert not hasattr(ranker, "decision_function")
    assert hasattr(make(), "decision_function")


def test_unusual_partitions_are_taken():
    # empty partitions, partitions of one query, and unknown divisions
    edges = [0, 0, 6, 12, 48, 48]
    parts = [FRAME.iloc[a:b] for a, b in pairwise(edges)]
    cut = collection_of(parts)
    assert not cut.known_divisions
    wanted = make().fit(X, Y)
    ranker = make().fit(cut[[*FEATURES, "qid"]], cut["y"])
    np.testing.assert_allclose(ranker.model_.regressor_.coef_, wanted.model_.regressor_.coef_)
    ranks = ranker.predict(cut[[*FEATURES, "qid"]]).compute()
    assert ranks.tolist() == wanted.predict(X).compute().tolist()


def test_rows_that_are_queries_of_their_own_are_warned_of():
    table = X.assign(qid=X.index.to_series())
    with pytest.warns(UserWarning, match="Each of the 48 rows is a query of its own"):
        make(loss="dcg").fit(table, Y)


def test_other_forms_of_the_same_input_give_the_same_model(fitted):
    wanted = fitted.model_.regressor_.coef_
    numbers = array("X").astype(object)
    unknown = Y.to_dask_array()  # its chunks are not known
    for given, ranker in (
        ({"X": X, "y": DATA[["y"]]}, make()),
        ({"X": X, "y": unknown}, make()),
        ({"X": X[FEATURES], "y": Y, "groups": X["qid"]}, DaskCalibratedRanker()),
        ({"X": numbers, "y": Y, "groups": array("qid")}, DaskCalibratedRanker()),
        ({"X": array("X").rechunk((12, 2)), "y": array("y"), "groups": array("qid").rechunk(9)},
         DaskCalibratedRanker()),
    ):  # fmt: skip
        np.testing.assert_allclose(ranker.fit(**given).model_.regressor_.coef_, wanted, atol=1e-12)


def test_clone_parameters_pickle_and_repr(fitted):
    ranker = make(SGDRegressor(), loss="dcg@3", n_passes=2)
    assert clone(ranker).get_params()["regressor__alpha"] == 0.0001
    assert ranker.set_params(regressor__alpha=0.1, loss="err") is ranker
    assert "n_passes=2" in repr(ranker) and "SGDRegressor" in ranker._repr_html_()
    assert "DaskCalibratedRanker" in fitted._repr_html_()
    kept = pickle.loads(pickle.dumps(fitted))
    assert kept.predict(X).compute().tolist() == fitted.predict(X).compute().tolist()
    alone = pickle.loads(pickle.dumps(fitted.ranker_))
    assert alone.predict(FRAME[[*FEATURES, "qid"]]).tolist() == fitted.predict(X).compute().tolist()
    assert not hasattr(clone(fitted), "ranker_")
    tags = get_tags(fitted)
    assert tags.estimator_type == "ranker" and tags.target_tags.required


def test_the_package_does_not_import_dask_and_names_the_extra_without_it():
    code = "import sys, sklearn_rankcal; print('dask' in sys.modules); sys.modules['dask'] = None"
    ran = run_python(f"{code}; import sklearn_rankcal.dask")
    assert ran.stdout.strip() == "False"
    assert ran.returncode == 1 and 'pip install "sklearn_rankcal[dask]"' in ran.stderr
