"""CalibratedRanker: the line from labels to rankings, as users call it."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal import CalibratedRanker, MissingGroupsWarning, relevance_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.estimator_checks import (
    check_ranker,
    expected_failed_checks,
    yield_ranker_checks,
)
from sklearn_rankcal.losses import ERR, LOSSES, MAP, NDCG, MAPByScores, Positional, Precision
from sklearn_rankcal.metrics import ndcg_score
from sklearn_rankcal.models import BilinearPairs, DocumentModel, PairwiseRidge
from sklearn_rankcal.rankers import _reports
from sklearn_rankcal.utils import _features
from sklearn_rankcal.utils._row_hashes import hash_rows

from . import oracles

DATA = make_ranking(60, (3, 12), 6, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups

# -------------------------------------------------------------------- estimator checks

CHECKED = [
    CalibratedRanker(),
    CalibratedRanker(Ridge()),
    CalibratedRanker(Ridge(), loss="dcg"),
    CalibratedRanker(Ridge(), loss="err"),
    CalibratedRanker(Ridge(), loss=MAPByScores(threshold=1)),
    CalibratedRanker(Ridge(), loss=Precision(threshold=1), context=None, center=False),
    CalibratedRanker(DecisionTreeRegressor(max_depth=3)),
    CalibratedRanker(LogisticRegression(), loss="dcg"),
    CalibratedRanker(loss="pd", decoder="greedy_dag"),
    CalibratedRanker(PairwiseRidge(), loss="pd"),
    CalibratedRanker(BilinearPairs(), loss="pd"),
    CalibratedRanker(loss=MAP(threshold=1)),
    CalibratedRanker(BilinearPairs(symmetric=True), loss=MAP(threshold=1, shrinkage=0)),
]


# A ranker fitted without groups warns; scikit-learn's checks fit without groups.
@pytest.mark.filterwarnings("ignore::sklearn_rankcal.exceptions.MissingGroupsWarning")
# check_estimators_overwrite_params and others feed tiny data on which lbfgs may stop early
@pytest.mark.filterwarnings("ignore:.*lbfgs failed to converge.*")
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failed_checks)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


RANKERS = {
    "default": CalibratedRanker(),
    "ridge": CalibratedRanker(Ridge()),
    "no context": CalibratedRanker(Ridge(), context=None),
    "all contexts": CalibratedRanker(Ridge(), context=["zscore", "difference", "rank"]),
    "uncentred trees": CalibratedRanker(DecisionTreeRegressor(max_depth=4), center=False),
    "classifier": CalibratedRanker(LogisticRegression(), loss="dcg"),
    "pipeline": CalibratedRanker(make_pipeline(StandardScaler(), Ridge())),
    "model": CalibratedRanker(DocumentModel(Ridge(), context="rank")),
    "pairs": CalibratedRanker(loss="pd"),
    "closed form": CalibratedRanker(PairwiseRidge(), loss="pd", decoder="greedy_dag"),
    "products": CalibratedRanker(loss=MAP(threshold=1)),
}


@pytest.mark.parametrize("check", [*yield_ranker_checks()], ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", RANKERS)
def test_ranker_checks(name, check):
    check(RANKERS[name])


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_passes_the_ranker_checks(name):
    check_ranker(CalibratedRanker(Ridge(), loss=LOSSES[name]()))


class _WorstFirst(CalibratedRanker):
    def decision_function(self, X, groups=None):
        return -super().decision_function(X, groups)

    def _decode(self, X, queries):
        return queries.broadcast(queries.sizes) + 1 - super()._decode(X, queries)


class _ByRow(CalibratedRanker):
    def _decode(self, X, queries):
        return queries.rank(queries.sort(np.zeros(queries.n_rows)))


def test_the_checks_catch_a_bad_ranker():
    with pytest.raises(AssertionError, match="Kendall's tau"):
        check_ranker(_WorstFirst(Ridge()))
    with pytest.raises(AssertionError):
        check_ranker(_ByRow(Ridge()))


# -------------------------------------------------------------------- what fit does


def test_targets_are_centred_and_degenerate_queries_dropped():
    """Ridge with a tiny penalty on one-hot rows returns its targets: look at them."""
    groups = np.array([0, 0, 0, 1, 1, 2, 2])
    y = np.array([2, 0, 1, 0, 0, 1, 1])
    eye = np.eye(7)
    ranker = CalibratedRanker(Ridge(1e-9, fit_intercept=False), loss="dcg", context=None)
    ranker.fit(eye, y, groups=groups)
    gains = 2.0**y - 1
    centred = gains - np.array([4, 4, 4, 0, 0, 3, 3]) / 3
    np.testing.assert_allclose(ranker.decision_function(eye), centred, atol=1e-6)
    ranker.set_params(center=False).fit(eye, y, groups=groups)
    np.testing.assert_allclose(ranker.decision_function(eye), gains, atol=1e-6)
    ranker.set_params(loss=NDCG(shrinkage=0), center=False).fit(eye, y, groups=groups)
    assert (ranker.n_queries_, ranker.n_queries_dropped_) == (3, 1)
    z = [3 + 1 / np.log2(3), 1 + 1 / np.log2(3)]
    wanted = [3 / z[0], 0, 1 / z[0], 0, 0, 1 / z[1], 1 / z[1]]
    np.testing.assert_allclose(ranker.decision_function(eye), wanted, atol=1e-6)
    # "auto" draws the normaliser of n = 2 queries to its mean by 300 / (300 + n)
    ranker.set_params(loss=NDCG()).fit(eye, y, groups=groups)
    a = 300 / 302
    z = (1 - a) * np.array(z) + a * np.mean(z)
    wanted = [3 / z[0], 0, 1 / z[0], 0, 0, 1 / z[1], 1 / z[1]]
    np.testing.assert_allclose(ranker.decision_function(eye), wanted, atol=1e-6)


def test_weights_centre_by_the_weighted_mean_and_zero_means_absent():
    eye, groups, y = np.eye(4), np.zeros(4), np.array([1, 0, 3, 2])
    ranker = CalibratedRanker(Ridge(1e-9, fit_intercept=False), loss="dcg", context=None)
    weight = np.array([1.0, 2.0, 0.0, 1.0])
    scores = ranker.fit(eye, y, groups=groups, sample_weight=weight).decision_function(eye)
    np.testing.assert_allclose(scores, [0, -1, 0, 2], atol=1e-6)


def test_a_pipeline_regressor_gets_the_weights_at_its_last_step():
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.1, 3, size=len(Y))
    plain = CalibratedRanker(Ridge(), context=None).fit(X, Y, G, sample_weight=weight)
    piped = CalibratedRanker(make_pipeline(Ridge()), context=None)
    piped.fit(X, Y, G, sample_weight=weight)
    np.testing.assert_allclose(plain.decision_function(X), piped.decision_function(X))
    with pytest.raises(ValueError, match="KNeighborsRegressor does not take sample_weight"):
        CalibratedRanker(KNeighborsRegressor()).fit(X, Y, G, sample_weight=weight)


def test_auto_context_only_for_known_queries_and_dense_numbers():
    assert CalibratedRanker(Ridge()).fit(X, Y, G).model_.context == "auto"
    assert CalibratedRanker(Ridge()).fit(sparse.csr_array(X), Y, G).model_.context is None
    with pytest.warns(MissingGroupsWarning):
        assert CalibratedRanker(Ridge()).fit(X, Y).model_.context is None
    with pytest.raises(ValueError, match="at least one numeric column"):
        CalibratedRanker(Ridge(), context="rank").fit(sparse.csr_array(X), Y, G)


def test_float32_stays_float32():
    ranker = CalibratedRanker(Ridge()).fit(X.astype(np.float32), Y, G)
    part = X[:5].astype(np.float32)
    assert ranker.model_._table(part, ranker._read_queries(part, G[:5])[1])[0].dtype == np.float32


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_large_input_is_predicted_in_blocks(order):
    rows = np.arange(len(Y)) if order == "sorted" else np.random.RandomState(0).permutation(len(Y))
    for context in (None, "zscore", "rank"):
        ranker = CalibratedRanker(Ridge(), context=context).fit(X[rows], Y[rows], G[rows])
        whole = ranker.decision_function(X[rows], G[rows])
        sizes = []

        def spy(table, predict=ranker.model_._predict, sizes=sizes):
            sizes.append(len(table))
            return predict(table)

        ranker.model_._predict = spy
        with sklearn.config_context(working_memory=0.01):  # about 10,000 bytes
            in_blocks = ranker.decision_function(X[rows], G[rows])
        np.testing.assert_allclose(in_blocks, whole)
        assert len(sizes) > 2 and sum(sizes) == len(Y)


# -------------------------------------------------------------------- classifiers


def test_a_classifier_predicts_expected_targets():
    forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=0)
    ranker = CalibratedRanker(forest, loss="dcg", context=None).fit(X, Y, G)
    inner = clone(forest).fit(X, Y)
    wanted = inner.predict_proba(X) @ (2.0**inner.classes_ - 1)
    np.testing.assert_allclose(ranker.decision_function(X), wanted)


def test_a_classifier_for_ndcg_ranks_by_expected_gain():
    model = LogisticRegression(max_iter=500)
    one = CalibratedRanker(model, loss="dcg").fit(X, Y, G)
    # NDCG drops queries without gain, DCG keeps them
    kept = np.isin(G, [g for g in np.unique(G) if Y[G == g].any()])
    with pytest.warns(UserWarning, match="LogisticRegression is a classifier"):
        other = CalibratedRanker(model, loss="ndcg").fit(X[kept], Y[kept], G[kept])
    again = CalibratedRanker(model, loss="dcg").fit(X[kept], Y[kept], G[kept])
    np.testing.assert_array_equal(other.predict(X, G), again.predict(X, G))
    assert one.score(X, Y, G) > 0


def test_a_classifier_needs_graded_labels():
    with pytest.raises(ValueError, match="no per-document targets"):
        CalibratedRanker(LogisticRegression(), loss="spearman").fit(X, Y, G)
    with pytest.raises(ValueError, match="at most 100 distinct targets; got 446"):
        CalibratedRanker(LogisticRegression(), loss="dcg").fit(X, np.abs(X[:, 0]), G)


# -------------------------------------------------------------------- quality


def test_default_beats_its_own_regressor_on_raw_labels_on_new_queries():
    data = make_ranking(300, 15, 8, noise=0.3, query_effect=2.0, random_state=1)
    train = data.groups < 200
    test_y, test_g = data.y[~train], data.groups[~train]
    ranker = CalibratedRanker(loss="ndcg@10").fit(data.X[train], data.y[train], data.groups[train])
    scores = ranker.decision_function(data.X[~train], groups=test_g)
    mine = ndcg_score(test_y, scores, k=10, groups=test_g)
    inner = clone(ranker.model_.regressor_).fit(data.X[train], data.y[train])
    plain = inner.predict(data.X[~train])
    best = ndcg_score(test_y, ranks=data.bayes_ranks[~train], k=10, groups=test_g)
    assert ndcg_score(test_y, plain, k=10, groups=test_g) < mine < best
    assert ranker.score(data.X[~train], test_y, groups=test_g) == pytest.approx(mine)


def test_score_is_the_measure_of_predict():
    for loss in ("ndcg@3", "dcg", "eru", "err", "spearman"):
        ranker = CalibratedRanker(Ridge(), loss=loss).fit(X, Y, G)
        ranks = ranker.predict(X, G)
        values = [
            {
                "ndcg@3": lambda y, o: (
                    oracles.dcg(y, o, 3)
                    / max(oracles.dcg(y, np.argsort([-v for v in y]), 3), 1e-300)
                ),
                "dcg": oracles.dcg,
                "eru": oracles.eru,
                "err": lambda y, o: oracles.err(y, o, top=max(Y)),
                "spearman": oracles.spearman,
            }[loss](Y[rows].tolist(), np.argsort(ranks[rows]).tolist())
            for rows in map(np.array, oracles.split(G))
            if Y[rows].any() or loss != "ndcg@3"
        ]
        assert ranker.score(X, Y, G) == pytest.approx(np.nanmean(values))


def test_score_weights_queries_by_the_mean_of_their_rows():
    ranker = CalibratedRanker(Ridge(), loss="dcg").fit(X, Y, G)
    weight = np.where(G == 5, 1.0, 0.0)
    assert ranker.score(X, Y, G, sample_weight=weight) == pytest.approx(
        ranker.score(X[G == 5], Y[G == 5], G[G == 5])
    )
    with pytest.warns(UndefinedMetricWarning, match="NDCG is undefined on all 60 queries"):
        value = clone(ranker).set_params(loss="ndcg").fit(X, Y, G).score(X, 0 * Y, G)
    assert np.isnan(value)


# -------------------------------------------------------------------- tables


def frame_of(kind):
    names = [f"f{j}" for j in range(X.shape[1])]
    if kind == "pandas":
        return pd.DataFrame(X, columns=names).assign(qid=[f"q{g}" for g in G])
    return pl.DataFrame(X, schema=names).with_columns(pl.Series("qid", [f"q{g}" for g in G]))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_group_column(kind):
    frame = frame_of(kind)
    ranker = CalibratedRanker(Ridge(), group_column="qid").fit(frame, Y)
    plain = CalibratedRanker(Ridge()).fit(X, Y, G)
    np.testing.assert_array_equal(ranker.predict(frame), plain.predict(X, G))
    np.testing.assert_allclose(ranker.decision_function(frame), plain.decision_function(X, G))
    assert ranker.score(frame, Y) == plain.score(X, Y, G)
    assert ranker.n_features_in_ == 7 and ranker.grouped_
    np.testing.assert_array_equal(ranker.predict(frame, groups=G), ranker.predict(frame))
    with pytest.raises(ValueError, match="different queries"):
        ranker.predict(frame, groups=np.roll(G, 1))
    with pytest.raises(ValueError, match="needs X as a data frame"):
        ranker.fit(X, Y)
    with pytest.raises(ValueError, match="not among the columns"):
        clone(ranker).set_params(group_column="nope").fit(frame, Y)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_column_names_reach_the_regressor(kind):
    frame = frame_of(kind).drop("qid") if kind == "polars" else frame_of(kind).drop(columns="qid")
    by_name = ColumnTransformer([("keep", "passthrough", ["f0", "f1", "f1__zscore"])])
    ranker = CalibratedRanker(make_pipeline(by_name, Ridge())).fit(frame, Y, G)
    assert ranker.model_.regressor_[-1].n_features_in_ == 3
    assert ranker.predict(frame, G).shape == Y.shape


def test_categories_and_missing_values_pass_through():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "price": np.where(rng.uniform(size=len(Y)) < 0.2, np.nan, X[:, 0]),
            "brand": pd.Categorical(rng.choice(["a", "b", "c"], size=len(Y))),
            "stock": pd.array(rng.integers(0, 9, size=len(Y)), dtype="Int64"),
            "new": rng.integers(0, 2, size=len(Y)).astype(bool),
        }
    )
    ranker = CalibratedRanker().fit(frame, Y, G)
    assert ranker.model_.regressor_.feature_names_in_.tolist() == [
        "price",
        "brand",
        "stock",
        "new",
        "price__zscore",
        "stock__zscore",
    ]
    assert ranker.model_.regressor_.is_categorical_.tolist() == [False, True] + 4 * [False]
    shuffle = rng.permutation(len(Y))
    ranks = ranker.predict(frame, G)
    np.testing.assert_array_equal(ranker.predict(frame.iloc[shuffle], G[shuffle]), ranks[shuffle])
    encode = ColumnTransformer([("brand", OneHotEncoder(), ["brand"])])
    linear = CalibratedRanker(make_pipeline(encode, Ridge())).fit(frame, Y, G)
    # three brands only: nearly all documents tie, and the tie rule reads text columns too
    ranks = linear.predict(frame, G)
    np.testing.assert_array_equal(linear.predict(frame.iloc[shuffle], G[shuffle]), ranks[shuffle])


def test_content_keys_do_not_depend_on_the_container():
    values = np.array([[0.0, 1.5, -2.0], [3.0, 0.0, 0.0], [-0.0, 1.5, -2.0], [0.0, 0.0, 0.0]])
    rows = np.arange(4)
    keys = hash_rows(values, rows)
    assert keys[0] == keys[2] and len(set(keys.tolist())) == 3 and keys[3] == 0
    frames = [pd.DataFrame(values), pl.DataFrame(values)]
    others = [values.astype(np.float32), values.astype(object), sparse.csr_array(values), *frames]
    for other in others:
        np.testing.assert_array_equal(hash_rows(other, rows), keys)
    np.testing.assert_array_equal(hash_rows(values, rows[::-1]), keys[::-1])


def test_importances_and_coefficients_per_input_column():
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
    # with x - mean the score's order inside a query is that of x @ coef_
    linear = CalibratedRanker(Ridge(), context="difference").fit(values, y, groups)
    np.testing.assert_array_equal(
        np.argsort(values[:8] @ linear.coef_),
        np.argsort(linear.decision_function(values[:8], groups[:8])),
    )
    assert not hasattr(CalibratedRanker(Ridge(), context="rank").fit(values, y, groups), "coef_")
    assert not hasattr(linear, "feature_importances_")
    assert not hasattr(CalibratedRanker(Ridge()), "coef_")


# -------------------------------------------------------------------- groups


def test_without_groups_all_rows_are_one_query_and_a_warning_says_so():
    with pytest.warns(MissingGroupsWarning, match="ranked as ONE query.*relevance_labels"):
        ranker = CalibratedRanker(Ridge()).fit(X, Y)
    assert sorted(ranker.predict(X)) == list(range(1, len(Y) + 1))
    with pytest.warns(MissingGroupsWarning):
        ranker.score(X, Y)
    assert ranker.predict(X, G).max() == 12


def test_fitted_with_groups_needs_groups():
    ranker = CalibratedRanker(Ridge()).fit(X, Y, G)
    for call in (ranker.predict, ranker.predict_order, ranker.decision_function):
        with pytest.raises(ValueError, match="fitted with query ids and needs them"):
            call(X)
    with pytest.raises(ValueError, match="fitted with query ids and needs them"):
        ranker.score(X, Y)
    plain = CalibratedRanker(Ridge(), context=None).fit(X, Y, G)
    np.testing.assert_allclose(plain.decision_function(X), plain.decision_function(X, G))
    with pytest.raises(ValueError, match="needs them"):
        plain.predict(X)


def test_random_state_seeds_nested_regressors():
    forest = make_pipeline(StandardScaler(), ExtraTreesRegressor(3))
    one, two = (CalibratedRanker(forest, random_state=3).fit(X, Y, G) for _ in range(2))
    np.testing.assert_array_equal(one.decision_function(X, G), two.decision_function(X, G))
    assert forest[-1].random_state is None
    assert one.model_.regressor_[-1].random_state is not None


def test_err_takes_the_top_grade_from_fit():
    ranker = CalibratedRanker(Ridge(), loss="err").fit(X, Y, G)
    assert ranker.loss_.max_relevance == Y.max() == 4
    low = ranker.score(X, np.minimum(Y, 2), G)
    given = CalibratedRanker(Ridge(), loss=ERR(max_relevance=4)).fit(X, Y, G)
    assert low == given.score(X, np.minimum(Y, 2), G)
    with pytest.raises(ValueError, match="exceeds max_relevance=4"):
        ranker.score(X, Y + 1, G)


def test_params_reach_into_the_loss_and_the_regressor():
    ranker = CalibratedRanker(Ridge(), loss=NDCG())
    ranker.set_params(loss__k=5, regressor__alpha=3.0, context="rank")
    shown = "CalibratedRanker(context='rank', loss=NDCG(k=5), regressor=Ridge(alpha=3.0))"
    assert repr(ranker) == shown
    ranker.fit(X, Y, G)
    assert ranker.loss_.k == 5 and ranker.loss is not ranker.loss_
    assert pickle.loads(pickle.dumps(ranker)).loss_.k == 5


def test_verbose_says_what_fit_does(capsys):
    CalibratedRanker(Ridge(), verbose=1).fit(X, Y, G)
    said = capsys.readouterr().out
    assert "documents in" in said and "queries left out" in said and "fitted Ridge" in said
    CalibratedRanker(Ridge()).fit(X, Y, G)
    assert capsys.readouterr().out == ""


def test_verbose_says_what_takes_long(capsys, monkeypatch):
    class Loud(Ridge):
        def __init__(self, verbose=0, alpha=1.0):
            super().__init__(alpha=alpha)
            self.verbose = verbose

    for verbose, passed in ((0, 0), (1, 0), (3, 2)):
        ranker = CalibratedRanker(make_pipeline(Loud()), verbose=verbose).fit(X, Y, groups=G)
        said = capsys.readouterr().out
        assert ("fitting Pipeline to" in said) == ("fitted Pipeline" in said) == (verbose > 0)
        assert ranker.model_.regressor_[-1].verbose == passed
        assert ranker.regressor[-1].verbose == 0
        ranker.predict(X, groups=G)
        assert ("ranked" in capsys.readouterr().out) == (verbose > 0)
    kept = CalibratedRanker(Loud(verbose=5), verbose=3).fit(X, Y, groups=G)
    assert kept.model_.regressor_.verbose == 5
    pairs = CalibratedRanker(PairwiseRidge(), loss="pd", verbose=1).fit(X, Y, groups=G)
    capsys.readouterr()
    monkeypatch.setattr(_reports, "_PAIRS_AT_A_TIME", 2000)
    pairs.predict(X, groups=G)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2 and "60 of 60 queries predicted and decoded" in lines[-1]


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
    "gains that overflow": (lambda r: r.fit(X, Y * 1000, G), "overflows"),
    "nothing to learn": (lambda r: r.fit(X, 0 * Y, G), "undefined on all 60 queries"),
    "graded for a binary loss": (
        lambda r: r.set_params(loss="wta").fit(X, Y, G),
        "binary relevance, 0 or 1; got .*threshold=t",
    ),
    "y missing": (lambda r: r.fit(X, None, G), "requires y to be passed"),
    "strings": (lambda r: r.fit(X, Y.astype(str), ["g"]), "groups has 1 entries"),
    "text labels": (lambda r: r.fit(X, np.full(len(Y), "good"), G), "y must be real numbers"),
    "pairs as y": (lambda r: r.fit(X, np.ones((len(Y), 2), int), G), "do not survive"),
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
    with pytest.raises(ValueError, match=r"must contain one hashable id per row"):
        CalibratedRanker(Ridge()).fit(X, Y, [[g] * 2 for g in G])


# -------------------------------------------------------------------- what reviews found


def test_a_bare_document_model_has_the_default_regressor():
    ranks = CalibratedRanker(DocumentModel(context="zscore")).fit(X, Y, G).predict(X, G)
    np.testing.assert_array_equal(ranks, CalibratedRanker().fit(X, Y, G).predict(X, G))
    forest = CalibratedRanker(DocumentModel(ExtraTreesRegressor(3)), random_state=0)
    one, two = (clone(forest).fit(X, Y, G).decision_function(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_frames_whose_columns_are_numbers():
    frame = pd.DataFrame(X)
    ranks = CalibratedRanker().fit(frame, Y, G).predict(frame, G)
    np.testing.assert_array_equal(ranks, CalibratedRanker().fit(X, Y, G).predict(X, G))


def test_context_columns_are_those_of_fit():
    flags = (X > 0).astype(int)
    ranker = CalibratedRanker(Ridge()).fit(flags, Y, G)
    np.testing.assert_array_equal(ranker.predict(X > 0, G), ranker.predict(flags, G))
    frame = pd.DataFrame(flags, columns=list("abcdef"))
    by_frame = CalibratedRanker(Ridge()).fit(frame, Y, G)
    ranks = by_frame.predict(frame.astype({"b": bool}), G)
    np.testing.assert_array_equal(ranks, by_frame.predict(frame, G))
    objects = CalibratedRanker(Ridge()).fit(X.astype(object), Y, G)
    assert objects.model_.context == "auto"
    with pytest.raises(ValueError, match="X is sparse, but the ranker was fitted on dense X"):
        ranker.predict(sparse.csr_array(flags), G)


def test_ties_of_text_do_not_depend_on_other_queries():
    encode = make_pipeline(OneHotEncoder(handle_unknown="ignore"), DummyRegressor())
    text = np.array([["1"], ["2"], ["30"], ["4"], ["x"], ["y"]], dtype=object)
    ranker = CalibratedRanker(encode).fit(text, [1, 0, 2, 1, 0, 1], groups=[0, 0, 0, 0, 1, 1])
    alone = ranker.predict(text[:4], groups=[0] * 4)
    np.testing.assert_array_equal(ranker.predict(text, groups=[0] * 4 + [1, 1])[:4], alone)


def test_labels_of_weightless_rows_do_not_count():
    y, weight = Y.astype(float), np.ones(len(Y))
    y[0], weight[0] = 5000.0, 0.0
    for loss in ("dcg", "err"):
        one = CalibratedRanker(Ridge(), loss=loss).fit(X, y, G, sample_weight=weight)
        other = CalibratedRanker(Ridge(), loss=loss).fit(X[1:], Y[1:], G[1:])
        np.testing.assert_allclose(one.decision_function(X, G), other.decision_function(X, G))


def test_searches_take_weights_and_classifiers_need_probabilities():
    inner = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=2)
    CalibratedRanker(inner).fit(X, Y, G, sample_weight=np.ones(len(Y)))
    with pytest.raises(ValueError, match="LinearSVC has no predict_proba"):
        CalibratedRanker(LinearSVC(), loss="dcg").fit(X, Y, G)


def test_labels_of_several_calls_put_together_are_refused():
    parts = relevance_labels([1, 0, 1, 0], list("aaaa"))[:2], relevance_labels([1, 0], ["b", "b"])
    with pytest.raises(ValueError, match="Call relevance_labels once"):
        CalibratedRanker(Ridge()).fit(X[:4], np.concatenate(parts))
    with pytest.raises(ValueError, match="masked"):
        CalibratedRanker(Ridge()).fit(X[:3], np.ma.array([1, 2, 3], mask=[0, 1, 0]), [0, 0, 0])


def test_a_group_for_each_row_warns():
    with pytest.warns(UserWarning, match="a query of its own"):
        CalibratedRanker(Ridge(), loss="dcg").fit(X, Y, groups=np.arange(len(Y)))


# -------------------------------------------------------------------- what X may be


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
def test_what_needs_a_dense_table_takes_a_sparse_one(monkeypatch, ranker):
    """`load_svmlight_file` returns one."""
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


def test_errors_about_text_name_the_column():
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(title=[f"t{i}" for i in range(len(X))])
    frame["when"] = pd.Timestamp("2020-01-01")
    for ranker in (
        CalibratedRanker(),
        CalibratedRanker(PairwiseRidge(), loss="pd"),
        CalibratedRanker(Ridge(), loss="pd"),
    ):
        with pytest.raises(ValueError, match=r"Column 'title' of X contains text .*'t0'"):
            ranker.fit(frame, Y, groups=G)
        with pytest.raises(ValueError, match="Column 'when' of X contains text or times"):
            ranker.fit(frame.drop(columns="title"), Y, groups=G)
        with pytest.raises(ValueError, match="Column number 6 of X contains text"):
            ranker.fit(frame.to_numpy()[:, :7], Y, groups=G)
    with pytest.raises(ValueError, match="group_column='title'"):
        CalibratedRanker().fit(frame, Y, groups=G)
    with pytest.raises((TypeError, ValueError)) as caught:
        CalibratedRanker(Ridge()).fit(frame, Y, groups=G)
    assert caught.value.__notes__ == ["Columns of X with text or times: ['title', 'when']."]
    # numbers in text, categories and booleans are none
    mixed = frame[["a", "b"]].assign(
        number=[str(i) for i in range(len(X))],
        kind=pd.Categorical(["x", "y"] * (len(X) // 2) + ["x"] * (len(X) % 2)),
        flag=X[:, 0] > 0,
    )
    mixed["number"] = mixed["number"].astype(object)
    assert _features.text_columns(mixed) == []
    polars = pytest.importorskip("polars")
    both = polars.DataFrame({"a": [1.0, 2.0], "t": ["x", "y"], "c": [True, False]})
    both = both.with_columns(polars.Series("k", ["u", "v"], dtype=polars.Categorical))
    assert _features.text_columns(both) == [("t", "x")]


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
