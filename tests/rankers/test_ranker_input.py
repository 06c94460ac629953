"""Input of CalibratedRanker: the tables that it takes, and what it refuses."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal import (
    CalibratedRanker,
    LinearRanker,
    QueryKFold,
    context_columns,
    relevance_labels,
)
from sklearn_rankcal.losses import LOSSES, MAP, Positional
from sklearn_rankcal.metrics import evaluate_run, ndcg_score, to_run
from sklearn_rankcal.models import BilinearPairs, BoostingCV, DocumentModel, Model, PairwiseRidge
from sklearn_rankcal.utils import _features  # limits, and keys that no ranker shows
from sklearn_rankcal.utils._features import hash_rows

from ..ranker_data import G, X, Y

pytestmark = pytest.mark.usefixtures("few_trees")

# -------------------------------------------------------------------- tables


def frame_of(kind):
    names = [f"f{j}" for j in range(X.shape[1])]
    if kind == "pandas":
        return pd.DataFrame(X, columns=names).assign(qid=[f"q{g}" for g in G])
    return pl.DataFrame(X, schema=names).with_columns(pl.Series("qid", [f"q{g}" for g in G]))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("place", [0, -1])
def test_groups_stand_in_for_the_group_column(kind, place):
    frame = frame_of(kind)
    columns = list(frame.columns)
    columns.insert(place % len(columns), columns.pop())
    frame = frame[columns]
    bare = frame[[name for name in columns if name != "qid"]]
    ranker = CalibratedRanker(Ridge(), group_column="qid").fit(frame, Y)
    wanted = ranker.predict(frame)
    np.testing.assert_array_equal(ranker.predict(bare, groups=G), wanted)
    assert ranker.score(bare, Y, groups=G) == ranker.score(frame, Y)
    with pytest.raises(ValueError, match="qid"):
        ranker.predict(bare)
    with pytest.raises(ValueError, match="feature names"):
        ranker.predict(bare[bare.columns[::-1]], groups=G)
    with pytest.raises(ValueError, match="feature names"):
        ranker.predict(bare[bare.columns[1:]], groups=G)
    with pytest.raises(ValueError, match="different queries"):
        ranker.predict(frame, groups=np.zeros(len(G)))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_group_column(kind):
    frame = frame_of(kind)
    ranker = CalibratedRanker(Ridge(), group_column="qid").fit(frame, Y)
    plain = CalibratedRanker(Ridge()).fit(X, Y, G)
    np.testing.assert_array_equal(ranker.predict(frame), plain.predict(X, G))
    np.testing.assert_allclose(ranker.decision_function(frame), plain.decision_function(X, G))
    assert ranker.score(frame, Y) == plain.score(X, Y, G)
    assert ranker.n_features_in_ == 7 and ranker.grouped_
    if kind == "pandas":  # ids are of any type
        tuples = frame.assign(qid=[("shop", g) for g in G])
        np.testing.assert_array_equal(ranker.predict(tuples), ranker.predict(frame))
    np.testing.assert_array_equal(ranker.predict(frame, groups=G), ranker.predict(frame))
    with pytest.raises(ValueError, match="needs X as a data frame"):
        ranker.fit(X, Y)
    with pytest.raises(ValueError, match="not among the columns"):
        clone(ranker).set_params(group_column="nope").fit(frame, Y)


@pytest.mark.parametrize("regressor", ["boosting", "stacked"])
def test_categories_and_missing_values_pass_through(regressor):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "price": np.where(rng.uniform(size=len(Y)) < 0.2, np.nan, X[:, 0]),
            "brand": pd.Categorical(rng.choice(["a", "b", "c"], size=len(Y))),
            "stock": pd.array(rng.integers(0, 9, size=len(Y)), dtype="Int64"),
            "new": rng.integers(0, 2, size=len(Y)).astype(bool),
        }
    )
    ranker = CalibratedRanker(regressor).fit(frame, Y, G)
    assert ranker.model_.regressor_.feature_names_in_.tolist() == [
        "price",
        "brand",
        "stock",
        "new",
        "price__difference",
        "stock__difference",
        "new__difference",
        "brand__share",
    ]
    assert ranker.model_.regressor_.is_categorical_.tolist() == [False, True] + 6 * [False]
    shuffle = rng.permutation(len(Y))
    ranks = ranker.predict(frame, G)
    np.testing.assert_array_equal(ranker.predict(frame.iloc[shuffle], G[shuffle]), ranks[shuffle])
    encode = ColumnTransformer([("brand", OneHotEncoder(), ["brand"])])
    linear = CalibratedRanker(make_pipeline(encode, Ridge())).fit(frame, Y, G)
    # With only three brands nearly all documents tie. The tie rule reads text columns as well.
    ranks = linear.predict(frame, G)
    np.testing.assert_array_equal(linear.predict(frame.iloc[shuffle], G[shuffle]), ranks[shuffle])


def test_importances_and_coefficients_have_one_entry_per_input_column():
    groups = np.repeat(np.arange(50), 8)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 3)) * [1, 10, 1]
    y = (values[:, 1] > 0).astype(int)
    forest = CalibratedRanker(ExtraTreesRegressor(10, random_state=0)).fit(values, y, groups)
    assert forest.feature_importances_.shape == (3,)
    assert forest.feature_importances_.sum() == pytest.approx(1)
    assert forest.feature_importances_.argmax() == 1
    for context in (None, "zscore", "difference", ["difference", "zscore"]):
        linear = CalibratedRanker(Ridge(), context=context).fit(values, y, groups)
        assert linear.coef_.shape == (3,)
        assert np.abs(linear.coef_ * [1, 10, 1]).argmax() == 1
    # With the context "difference" the scores order the rows of a query as x @ coef_ does.
    linear = CalibratedRanker(Ridge(), context="difference").fit(values, y, groups)
    np.testing.assert_array_equal(
        np.argsort(values[:8] @ linear.coef_),
        np.argsort(linear.decision_function(values[:8], groups[:8])),
    )
    assert not hasattr(CalibratedRanker(Ridge(), context="rank").fit(values, y, groups), "coef_")
    assert not hasattr(linear, "feature_importances_")
    assert not hasattr(CalibratedRanker(Ridge()), "coef_")


# -------------------------------------------------------------------- bad input

BAD = {
    "lengths of y": (lambda r: r.fit(X, Y[:-1], G), "y has .* entries, but X has"),
    "lengths of groups": (lambda r: r.fit(X, Y, G[:-1]), "groups has .* entries, but X has"),
    "lengths of weights": (lambda r: r.fit(X, Y, G, [1.0]), "one weight per row"),
    "NaN in y": (lambda r: r.fit(X, Y * np.nan, G), "y contains NaN or infinity"),
    "NaN in groups": (lambda r: r.fit(X, Y, G * np.nan), "missing or infinite id at row 0"),
    "NaN in weights": (lambda r: r.fit(X, Y, G, Y * np.nan), "sample_weight contains NaN"),
    "negative weights": (lambda r: r.fit(X, Y, G, Y - 1.0), "Negative values"),
    "zero weights": (lambda r: r.fit(X, Y, G, 0.0 * Y), "zero for every row"),
    "negative gains": (lambda r: r.fit(X, Y - 1, G), "relevance must be >= 0"),
    "gains beyond the range": (lambda r: r.fit(X, Y * 1000, G), r"gain='exp2' exceeds 1e\+100"),
    "nothing to learn": (lambda r: r.fit(X, 0 * Y, G), "undefined on all 60 queries"),
    "graded for a binary loss": (
        lambda r: r.set_params(loss="wta").fit(X, Y, G),
        "binary relevance, 0 or 1; got .*threshold=t",
    ),
    "y missing": (lambda r: r.fit(X, None, G), "requires y to be passed"),
    "strings": (lambda r: r.fit(X, Y.astype(str), ["g"]), "groups has 1 entry"),
    "text labels": (lambda r: r.fit(X, np.full(len(Y), "good"), G), "y must be real numbers"),
    "clicks and carts": (lambda r: r.fit(X, np.c_[Y, Y], G), r"np.asarray\(y\) @ \[1, 2\]"),
    "unknown loss": (lambda r: r.set_params(loss="lambdarank").fit(X, Y, G), "Unknown loss"),
    "unknown decoder": (
        lambda r: r.set_params(decoder="greedy_dag").fit(X, Y, G),
        "Unknown decoder 'greedy_dag' for a loss on scores. Known: auto, sort",
    ),
    "unknown context": (
        lambda r: r.set_params(context="mean").fit(X, Y, G),
        "Unknown context 'mean'",
    ),
    "empty": (lambda r: r.fit(X[:0], Y[:0], G[:0]), "0 sample"),
    "a feature too few": (lambda r: r.fit(X, Y, G).predict(X[:, 1:], G), "expecting 6 features"),
    "k below 1": (lambda r: r.fit(X, Y, G).predict_order(X, G, k=0), "k must be a whole number"),
    "groups against labels": (
        lambda r: r.fit(X, relevance_labels(Y, G), np.roll(G, 1)),
        "different queries",
    ),
    "a query cut by a splitter": (
        lambda r: r.fit(X[1:], relevance_labels(Y, G)[1:]),
        "1 of 60 queries are incomplete: .* A splitter has cut it. Split by query: cv=QueryKFold",
    ),
    "unknown structured labels": (
        lambda r: r.fit(X, np.zeros(len(Y), dtype=[("event", "?")]), G),
        "structured labels have the fields",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        call(CalibratedRanker(Ridge()))


class _PairDecoder:
    space = "pairs"

    def decode(self, u, queries, tie_breakers=None):
        raise AssertionError("not reached")


def test_other_bad_input():
    with pytest.raises(ValueError, match="_PairDecoder decodes pairs, but the loss predicts"):
        CalibratedRanker(Ridge(), decoder=_PairDecoder()).fit(X, Y, G)
    with pytest.raises(NotFittedError):
        CalibratedRanker().predict(X, G)
    with pytest.raises(NotFittedError):
        check_is_fitted(CalibratedRanker())
    with pytest.raises(TypeError, match="lazy frame"):
        CalibratedRanker(Ridge()).fit(pl.DataFrame(X).lazy(), Y, G)
    with pytest.raises(ValueError, match=r"must contain hashable ids"):
        CalibratedRanker(Ridge()).fit(X, Y, [[g] * 2 for g in G])


# -------------------------------------------------------------------- kinds of X


@pytest.mark.parametrize(
    "ranker",
    [
        CalibratedRanker(),
        CalibratedRanker(DocumentModel(context="zscore")),
        CalibratedRanker(loss="pd"),
        CalibratedRanker(PairwiseRidge(), loss="pd"),
        CalibratedRanker(BilinearPairs(), loss="pd"),
        CalibratedRanker(Ridge(), loss="pd"),
        CalibratedRanker(loss=MAP(threshold=2)),
    ],
    ids=str,
)
def test_models_that_need_a_dense_table_take_a_sparse_one(monkeypatch, ranker):
    """`load_svmlight_file`, for example, returns a sparse table."""
    wanted = clone(ranker).fit(X, Y, groups=G).predict(X, groups=G)
    table = sparse.csr_array(X)
    found = clone(ranker).fit(table, Y, groups=G)
    np.testing.assert_array_equal(found.predict(table, groups=G), wanted)
    np.testing.assert_array_equal(found.predict(X, groups=G), wanted)
    assert get_tags(ranker).input_tags.sparse
    monkeypatch.setattr(_features, "DENSE_BYTES", table.shape[0] * table.shape[1] * 8 - 1)
    for call in (lambda: clone(ranker).fit(table, Y, groups=G), lambda: found.predict(table, G)):
        with pytest.raises(ValueError, match=r"takes? sparse tables, such as .*Ridge"):
            call()


def test_boosting_refuses_sparse_tables_of_many_columns():
    table = sparse.hstack([sparse.csr_array(X), sparse.csr_array((len(Y), 995))], format="csr")
    for ranker in (CalibratedRanker(), CalibratedRanker("stacked"), CalibratedRanker(BoostingCV())):
        with pytest.raises(ValueError, match=r"for boosting, 1,000 columns. .* SelectKBest"):
            ranker.fit(table, Y, groups=G)
    CalibratedRanker(PairwiseRidge(), loss="pd").fit(table, Y, groups=G)
    CalibratedRanker(Ridge(), context=None).fit(table, Y, groups=G)


def test_errors_about_text_name_the_column():
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(title=[f"t{i}" for i in range(len(X))])
    frame["when"] = pd.Timestamp("2020-01-01")
    for ranker in (
        CalibratedRanker(),
        CalibratedRanker(PairwiseRidge(), loss="pd"),
        CalibratedRanker(Ridge(), loss="pd"),
    ):
        with pytest.raises(ValueError, match=r"Columns 'title', 'when' of X contain text .*'t0'"):
            ranker.fit(frame, Y, groups=G)
        with pytest.raises(ValueError, match="Column 'when' of X contains text or times"):
            ranker.fit(frame.drop(columns="title"), Y, groups=G)
        with pytest.raises(ValueError, match="Column number 6 of X contains text"):
            ranker.fit(frame.to_numpy()[:, :7], Y, groups=G)
    with pytest.raises(ValueError) as caught:  # these models of pairs take no categories
        CalibratedRanker(PairwiseRidge(), loss="pd").fit(frame, Y, groups=G)
    assert "categor" not in str(caught.value)
    with pytest.raises(ValueError, match="group_column='title'"):
        CalibratedRanker().fit(frame, Y, groups=G)
    kinds = frame.assign(title=["red", "blue"] * (len(X) // 2) + ["red"] * (len(X) % 2))
    with pytest.raises((TypeError, ValueError)) as caught:
        CalibratedRanker(Ridge()).fit(kinds, Y, groups=G)
    assert caught.value.__notes__ == [
        "Columns of X with text or times: ['title', 'when']. If the regressor takes categories, "
        "make text a category: X = X.astype({'title': 'category'}). Otherwise drop the columns, or "
        "encode them, for example with sklearn's OrdinalEncoder in a pipeline before the ranker, "
        "or with its TargetEncoder in a pipeline with the regressor."
    ]
    for ranker in (CalibratedRanker(Ridge()), CalibratedRanker()):  # titles of documents
        with pytest.raises((TypeError, ValueError)) as caught:
            ranker.fit(frame, Y, groups=G)
        said = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
        assert "Nearly every row has another text in ['title']. Ids are no features" in said
        assert "astype" not in said


def test_what_errors_about_text_recommend_takes_labels_with_query_ids():
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(kind=np.resize(["u", "v", "w"], len(X)))
    y = relevance_labels(Y, G)
    target = ColumnTransformer([("k", TargetEncoder(cv=2), ["kind"])], remainder="passthrough")
    ordinal = ColumnTransformer([("k", OrdinalEncoder(), ["kind"])], remainder="passthrough")
    inside = CalibratedRanker(make_pipeline(target, Ridge())).fit(frame, y)
    assert inside.score(frame, y) > 0.7
    assert make_pipeline(ordinal, CalibratedRanker(Ridge())).fit(frame, y).score(frame, y) > 0.7


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("regressor", ["boosting", HistGradientBoostingRegressor(max_iter=2)])
def test_errors_about_text_show_code_that_makes_it_a_category(library, regressor):
    found = {library: pytest.importorskip(library)}
    frame = {f"x{j}": X[:, j].tolist() for j in range(X.shape[1])}
    frame["kind"] = ["red" if each > 0 else "blue" for each in X[:, 0]]
    found["X"] = found[library].DataFrame(frame)
    ranker = CalibratedRanker(regressor)
    with pytest.raises(ValueError) as caught:
        ranker.fit(found["X"], Y, groups=G)
    said = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    code = (
        said.partition("make text a category: ")[2] or said.partition("Make text a category: ")[2]
    )
    exec(code.partition(". Otherwise")[0], found)
    assert len(ranker.fit(found["X"], Y, groups=G).predict(found["X"], groups=G)) == len(Y)


def test_importances_are_aligned_with_the_names_of_the_columns():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame.insert(2, "qid", G)
    for regressor, attribute in (
        (DecisionTreeRegressor(max_depth=3), "feature_importances_"),
        (Ridge(), "coef_"),
        (PairwiseRidge(), "coef_"),
    ):
        loss = "pd" if isinstance(regressor, PairwiseRidge) else "ndcg"
        ranker = CalibratedRanker(regressor, loss=loss, group_column="qid").fit(frame, Y)
        plain = CalibratedRanker(regressor, loss=loss).fit(X, Y, groups=G)
        values = getattr(ranker, attribute)
        named = dict(zip(ranker.feature_names_in_, values, strict=True))
        assert named.pop("qid") == 0
        np.testing.assert_allclose(list(named.values()), getattr(plain, attribute))


def test_coefficients_are_in_the_unit_of_the_targets():
    y = np.ldexp(Y.astype(float), -80)
    loss = Positional(utility=lambda y, queries: y, discount=[1.0, 0.5])
    tiny, plain = (
        CalibratedRanker(Ridge(), loss=loss).fit(X, labels, groups=G).coef_ for labels in (y, Y)
    )
    np.testing.assert_allclose(np.ldexp(tiny, 80), plain, rtol=1e-9)


class NoFit(Model):
    """A model that lacks both methods."""


class NoPredict(Model):
    def fit(self, training):
        return self


@pytest.mark.parametrize(
    ("model", "lacks"), [(NoFit, r"fit\(training\)"), (NoPredict, r"predict\(X, queries\)")]
)
def test_a_model_without_a_method_says_which(model, lacks):
    with pytest.raises(NotImplementedError, match=f"{model.__name__} must define {lacks}"):
        CalibratedRanker(model()).fit(X, Y, groups=G).predict(X, groups=G)


class Sparse(Ridge):
    """A Ridge that says that it takes sparse tables, which scikit-learn's says from 1.7 on."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@pytest.mark.parametrize("wrap", [lambda own, **kw: CalibratedRanker(own, **kw), DocumentModel])
@pytest.mark.parametrize(
    ("context", "sparse_is_taken"), [(None, True), ("zscore", False), (["rank"], False)]
)
def test_tags_know_that_context_columns_need_a_dense_table(wrap, context, sparse_is_taken):
    ranker = wrap(Sparse(), context=context)
    assert get_tags(ranker).input_tags.sparse == sparse_is_taken
    assert not get_tags(ranker).input_tags.allow_nan
    assert get_tags(wrap(HistGradientBoostingRegressor(), context=context)).input_tags.allow_nan


@pytest.mark.parametrize("kind", ["pandas", "pandas without names", "Categorical", "Enum"])
def test_a_text_that_is_no_category_is_missing(kind):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"brand": rng.choice(["a", "b", "c"], 160), "price": rng.normal(size=160)})
    groups, y = np.repeat(np.arange(20), 8), rng.integers(0, 3, size=160)
    new = pd.DataFrame({"brand": ["a", "new", "b", None], "price": [0.0, 1.0, 2.0, 3.0]})
    every = [frame.astype({"brand": "category"}), new, new.assign(brand=["a", None, "b", None])]
    if kind == "pandas without names":
        every = [table.set_axis([0, 1], axis=1) for table in every]
    elif kind != "pandas":
        every = list(map(pl.from_pandas, every))
        dtype = pl.Categorical if kind == "Categorical" else pl.Enum(["a", "b", "c"])
        every[0] = every[0].with_columns(pl.col("brand").cast(pl.String).cast(dtype))
    ranker = CalibratedRanker("boosting").fit(every[0], y, groups=groups)
    new, missing = (ranker.decision_function(table, groups=[0] * 4) for table in every[1:])
    np.testing.assert_array_equal(new, missing)


# -------------------------------------------------------------------- containers


def boosted():
    return CalibratedRanker(HistGradientBoostingRegressor(max_iter=9))


def tables():
    rng = np.random.default_rng(0)
    shift = np.repeat(rng.normal(scale=3, size=12), 5)
    numbers = pd.DataFrame(rng.normal(size=(60, 3)) + shift[:, None], columns=list("abc"))
    numbers["kind"] = pd.Categorical(rng.choice(["u", "v", "w", "x", "y", "z"], 60))
    y = rng.integers(0, 2, 60) + (numbers["kind"] == "v")
    y[::5] = 2
    return numbers, y.to_numpy(), np.repeat(np.arange(12), 5)


def as_polars(table):
    return pl.DataFrame(
        {
            name: pl.Series(list(table[name])).cast(pl.Categorical)
            if name == "kind"
            else table[name].to_numpy()
            for name in table
        }
    )


def test_categories_may_come_in_another_container_than_in_fit():
    table, y, groups = tables()
    frames = [table, as_polars(table)]
    for one, other in (frames, frames[::-1]):
        ranker = boosted().fit(one, y, groups=groups)
        assert "share" in ranker.model_.context_
        np.testing.assert_array_equal(
            ranker.decision_function(one, groups=groups),
            ranker.decision_function(other, groups=groups),
        )
    with (
        pytest.warns(UserWarning, match="X does not have valid feature names"),
        pytest.raises(TypeError, match=r"must be a data frame, as in fit, because \['kind'\]"),
    ):
        ranker.predict(np.zeros((60, 4)), groups=groups)
    ranker = clone(ranker).fit(table, y, groups=groups)
    with pytest.warns(UserWarning, match="none of the 1 categories of 'kind', such as 1, .* 'u'"):
        ranker.predict(table.assign(kind=1), groups=groups)


def test_categories_that_are_all_unknown_warn():
    table, y, groups = tables()
    ranker = boosted().fit(table, y, groups=groups)
    upper = table["kind"].astype(str).str.upper()
    for unknown in (upper, upper.astype("category")):
        with pytest.warns(
            UserWarning, match=r"none of the 6 categories of 'kind', such as 'U'.*'u'"
        ):
            ranker.predict(table.assign(kind=unknown), groups=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few = pd.Series(["new", "newer"] * 30).astype("category")
        ranker.predict(table.assign(kind=few), groups=groups)
        ranker.predict(table.assign(kind=upper.where(groups > 0, "u")), groups=groups)


def test_the_names_of_arrow_tables_are_kept_and_checked():
    pa = pytest.importorskip("pyarrow")
    table, y, groups = tables()
    table = pa.table({"qid": pa.array([f"q{g}" for g in groups]).dictionary_encode(), **table})
    ranker = boosted().set_params(group_column="qid").fit(table, y)
    assert ranker.feature_names_in_.tolist() == ["qid", "a", "b", "c", "kind"]
    assert ranker.get_feature_names_out()[:4].tolist() == ["a", "b", "c", "kind"]
    assert "kind" in ranker.model_.context_["share"]
    scores = ranker.decision_function(table)
    for other in (table.to_batches()[0], table.to_pandas(), pl.from_arrow(table)):
        np.testing.assert_array_equal(ranker.decision_function(other), scores)
    with pytest.raises(ValueError, match="feature names"):
        ranker.predict(table.select(["qid", "b", "a", "c", "kind"]))
    added = context_columns(table.select(["a", "kind"]), table["qid"], ["zscore", "share"])
    assert list(added.columns) == ["a", "kind", "a__zscore", "kind__share"]


@pytest.mark.parametrize("dtype", ["large_string", "dictionary"])
def test_arrow_arrays_are_vectors(dtype):
    pa = pytest.importorskip("pyarrow")
    ids, y = pa.array([f"q{g}" for g in G]), pa.array(Y.tolist()).cast(pa.decimal128(21, 2))
    ids = ids.dictionary_encode() if dtype == "dictionary" else ids.cast(pa.large_string())
    ids, y, plain = pa.chunked_array([ids[:7], ids[7:]]), pa.chunked_array([y[:9], y[9:]]), Y
    ranker, wanted = (CalibratedRanker(Ridge()).fit(X, *one) for one in ((y, ids), (plain, G)))
    np.testing.assert_array_equal(ranker.predict(X, ids), wanted.predict(X, G))
    assert ndcg_score(y, X[:, 0], groups=ids) == ndcg_score(plain, X[:, 0], groups=G)
    assert relevance_labels(y, ids).tolist() == relevance_labels(plain, G).tolist()
    folds = [[test.tolist() for _, test in QueryKFold(3).split(X, y, one)] for one in (ids, G)]
    assert folds[0] == folds[1]
    documents = pa.array([f"d{row}" for row in range(len(Y))])
    run = to_run(groups=ids, document_ids=documents, y_score=pa.array(X[:, 0]))
    listed = ([f"q{g}" for g in G], documents.to_pylist())
    assert run.equals(to_run(groups=listed[0], document_ids=listed[1], y_score=X[:, 0]))
    qrels = pa.table({"query_id": ids, "doc_id": documents, "relevance": y})
    assert evaluate_run(qrels, run, metrics=["ndcg@5"])["ndcg@5"] > 0


def test_tables_that_are_not_in_memory_say_what_to_do():
    dd, duckdb = pytest.importorskip("dask.dataframe"), pytest.importorskip("duckdb")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    ranker = CalibratedRanker(Ridge()).fit(frame, Y, groups=G)
    with pytest.raises(TypeError, match="DaskCalibratedRanker"):
        ranker.fit(dd.from_pandas(frame, npartitions=2), Y, groups=G)
    relation = duckdb.sql("select * from frame")
    np.testing.assert_array_equal(ranker.predict(relation, G), ranker.predict(frame, G))


def test_what_is_no_feature_is_refused_by_name():
    periods = pd.period_range("2020-01", periods=len(Y), freq="M")
    cells = {"lists": [[1.0, 2.0]] * len(Y), "structs": [{"a": 1}] * len(Y)}
    for what, column in (cells | {"periods": periods, "complex numbers": X[:, 0] * 1j}).items():
        columns = {"a": X[:, 0], "b": column}
        tables = [pd.DataFrame(columns), pd.DataFrame(columns).astype(object)]
        if what in cells:
            tables += [pl.DataFrame(columns), pytest.importorskip("pyarrow").table(columns)]
        for table in tables:
            with pytest.raises(TypeError, match=rf"Column 'b' of X has {what} \(dtype .*\. \w+ "):
                CalibratedRanker(Ridge()).fit(table, Y, groups=G)


def test_hashes_are_those_of_values():
    """In every container and dtype, whatever the other rows are."""
    values = np.array([[0.0, 1.5, -2.0], [3.0, 0.0, 0.0], [-0.0, 1.5, -2.0], [0.0, 0.0, 0.0]])
    keys, rows = hash_rows(values, np.arange(4)), np.arange(4)
    assert keys[0] == keys[2] and len(set(keys.tolist())) == 3 and keys[3] == 0
    for other in (values.astype(np.float32), values.astype(object), sparse.csr_array(values)):
        np.testing.assert_array_equal(hash_rows(other, rows), keys)
    lists = {"flag": [True, None, False, True], "kind": ["a", None, "b", "nan"]}
    lists["number"] = [1, 2, None, 4]
    plain = pd.DataFrame(lists).astype({"flag": "boolean", "number": "Int64", "kind": "category"})
    decimals = [None if v is None else Decimal(v) for v in lists["number"]]
    texts = [None if v is None else str(v) for v in lists["number"]]
    tables = [plain, plain.astype(object), plain.assign(number=decimals).astype(object)]
    tables += [pl.DataFrame(lists), pl.DataFrame(lists | {"number": decimals})]
    tables += [pl.DataFrame(lists | {"number": texts}), plain[:1]]
    keys = [hash_rows(one, np.arange(len(one))) for one in map(_features.check_features, tables)]
    for other in keys:
        np.testing.assert_array_equal(other, keys[0][: len(other)])


@pytest.mark.parametrize("loss", [name for name in LOSSES if name not in ("precision", "recall")])
def test_the_default_of_every_loss_reads_a_shop(loss):
    rng = np.random.default_rng(0)
    days = pd.Series(pd.to_datetime("2026-01-01") - pd.to_timedelta(rng.integers(0, 99, 60), "D"))
    shop, y, groups = tables()
    shop = shop.assign(
        a=shop["a"].where(rng.random(60) > 0.2), kind=shop["kind"].where(rng.random(60) > 0.1),
        new=rng.random(60) < 0.5, age=(pd.Timestamp("2026-01-01") - days).dt.days,
        stock=pd.array(rng.integers(0, 9, 60), dtype="Int64"),
    )  # fmt: skip
    for regressor in (None, "boosting", "stacked") if loss in ("pd", "map") else (None,):
        ranker = CalibratedRanker(regressor, loss=loss).fit(shop, y > 0, groups=groups)
        assert ranker.score(shop, y > 0, groups=groups) > (0.2 if loss == "choice" else 0.5)
        np.testing.assert_array_equal(
            ranker.predict(pl.from_pandas(shop), groups), ranker.predict(shop, groups)
        )


def test_text_after_an_array_is_named():
    table, y, groups = tables()
    ranker = CalibratedRanker(Ridge()).fit(table[list("abc")].to_numpy(), y, groups=groups)
    with (
        pytest.warns(UserWarning, match="X has feature names"),
        pytest.raises(ValueError, match="Column 'b' of X contains text"),
    ):
        ranker.predict(table[list("abc")].assign(b="new"), groups=groups)


# -------------------------------------------------------------------- after an error, or before it


def test_a_fit_that_fails_leaves_the_ranker_as_it_was():
    ranker = CalibratedRanker(Ridge())
    with pytest.raises(ValueError, match="NaN"):
        ranker.fit(X[:, :3], Y * np.nan, groups=G)
    with pytest.raises(NotFittedError):
        ranker.predict(X, groups=G)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    expected = ranker.fit(frame, Y, groups=G).predict(frame, groups=G)
    with pytest.raises(ValueError, match="NaN"):
        ranker.fit(X[:, :3], Y * np.nan, groups=G)
    assert ranker.n_features_in_ == 6 and list(ranker.feature_names_in_) == list("abcdef")
    np.testing.assert_array_equal(ranker.predict(frame, groups=G), expected)


def test_the_column_of_ids_is_that_of_fit():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    ranker = CalibratedRanker(Ridge(), context=None).fit(
        frame.assign(qid=np.arange(len(Y)) % 7), Y, groups=G
    )
    ranker.set_params(group_column="qid")
    assert len(ranker.coef_) == len(ranker.get_feature_names_out()) == 7


def test_advice_comes_before_the_error_that_it_explains():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    ranker = CalibratedRanker(Ridge(), context=None)
    with pytest.warns(UserWarning, match="Pass group_column='qid'"), pytest.raises(ValueError):
        ranker.fit(frame.assign(qid=[f"q{g}" for g in G]), Y, groups=G)
    codes = 2**60 + G.astype(np.int64)  # float64 would round them
    with pytest.warns(UserWarning, match="'code' of X has the query id of each row"):
        ranker.fit(frame.assign(code=codes), Y, groups=codes)
    amounts = np.where(G == G[0], 50.0 * Y, Y)
    early = HistGradientBoostingRegressor(max_iter=2)
    for seed in range(3):  # whichever queries are held out
        ranker = CalibratedRanker(early, validation_queries=0.5, random_state=seed)
        with pytest.warns(UserWarning, match="Are the labels amounts"):
            ranker.fit(X, amounts, groups=G)
    shuffled = pd.Series(Y, index=np.random.default_rng(0).permutation(len(Y)))
    with pytest.warns(UserWarning, match="indexes of X and y"):
        LinearRanker(solver="sgd").partial_fit(frame, shuffled, groups=G)
