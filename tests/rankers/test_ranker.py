"""CalibratedRanker: the line from labels to rankings, as users call it."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestClassifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_rankcal import CalibratedRanker, LinearRanker, MissingGroupsWarning, relevance_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.losses import DCG, ERR, NDCG
from sklearn_rankcal.metrics import evaluate_rankings, ndcg_score
from sklearn_rankcal.models import BilinearPairs, DocumentModel, default_regressor
from sklearn_rankcal.rankers import _predict  # a limit that tests lower
from sklearn_rankcal.rankers._input import read_queries

from ..ranker_data import G, X, Y

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
    # "auto" moves normalizer / largest gain of n = 2 queries to its mean by 300 / (300 + n)
    ranker.set_params(loss=NDCG()).fit(eye, y, groups=groups)
    a = 300 / 302
    z = [(1 - a) * z[0] + a * 3 * (z[0] / 3 + z[1]) / 2, (1 - a) * z[1] + a * (z[0] / 3 + z[1]) / 2]
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
    with pytest.raises(ValueError, match="KNeighborsRegressor does not support sample_weight"):
        CalibratedRanker(KNeighborsRegressor()).fit(X, Y, G, sample_weight=weight)


def test_auto_context_only_for_known_queries_and_dense_numbers():
    assert CalibratedRanker(Ridge()).fit(X, Y, G).model_.context == "auto"
    with pytest.warns(UserWarning, match="X is sparse.*context=None to rank both in the same way"):
        ranker = CalibratedRanker(Ridge()).fit(sparse.csr_array(X), Y, G)
    assert ranker.model_.context is None
    with pytest.warns(MissingGroupsWarning):
        assert CalibratedRanker(Ridge()).fit(X, Y).model_.context is None
    with pytest.raises(ValueError, match="at least one numeric column"):
        CalibratedRanker(Ridge(), context="rank").fit(sparse.csr_array(X), Y, G)


def test_float32_stays_float32():
    ranker = CalibratedRanker(Ridge()).fit(X.astype(np.float32), Y, G)
    part = X[:5].astype(np.float32)
    assert ranker.model_._table(part, read_queries(ranker, part, G[:5])[1])[0].dtype == np.float32


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


# -------------------------------------------------------------------- quality


def test_default_beats_its_own_regressor_on_raw_labels_on_new_queries():
    data = make_ranking(200, 10, 8, noise=0.3, query_effect=2.0, random_state=1)
    train = data.groups < 100
    test_y, test_g = data.y[~train], data.groups[~train]
    ranker = CalibratedRanker(loss="ndcg@10").fit(data.X[train], data.y[train], data.groups[train])
    scores = ranker.decision_function(data.X[~train], groups=test_g)
    mine = ndcg_score(test_y, scores, k=10, groups=test_g)
    inner = default_regressor(train.sum()).fit(data.X[train], data.y[train])
    plain = inner.predict(data.X[~train])
    best = ndcg_score(test_y, ranks=data.bayes_ranks[~train], k=10, groups=test_g)
    assert ndcg_score(test_y, plain, k=10, groups=test_g) < mine < best
    assert ranker.score(data.X[~train], test_y, groups=test_g) == pytest.approx(mine)


def test_score_is_the_measure_of_predict():
    for loss in ("ndcg@3", "dcg", "eru", "err", "spearman"):
        ranker = CalibratedRanker(Ridge(), loss=loss).fit(X, Y, G)
        values = evaluate_rankings(Y, ranks=ranker.predict(X, G), groups=G, metrics=loss)
        assert ranker.score(X, Y, G) == pytest.approx(values[loss])


def test_a_score_is_nan_if_no_query_has_a_measure():
    ranker = CalibratedRanker(Ridge()).fit(X, Y, G)
    with pytest.warns(UndefinedMetricWarning, match="NDCG is undefined on all 60 queries"):
        assert np.isnan(ranker.score(X, 0 * Y, G))


# -------------------------------------------------------------------- groups


def test_without_groups_all_rows_are_one_query_and_a_warning_says_so():
    with pytest.warns(MissingGroupsWarning, match="ranked as ONE query.*relevance_labels"):
        ranker = CalibratedRanker(Ridge()).fit(X, Y)
    assert sorted(ranker.predict(X)) == list(range(1, len(Y) + 1))
    with pytest.warns(MissingGroupsWarning):
        ranker.score(X, Y)
    assert ranker.predict(X, G).max() == 12


@pytest.mark.parametrize("k", [1, 2, 3, 5, 100])
def test_the_first_rows_of_each_query(k):
    ranker = CalibratedRanker(Ridge()).fit(X, Y, G)
    rows, offsets, queries = ranker.predict_order(X, G)
    top = ranker.predict_order(X, G, k=k)
    wanted = [rows[first : min(last, first + k)] for first, last in pairwise(offsets)]
    np.testing.assert_array_equal(top.rows, np.concatenate(wanted))
    np.testing.assert_array_equal(np.diff(top.offsets), [len(one) for one in wanted])
    np.testing.assert_array_equal(top.queries, queries)


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


@pytest.mark.parametrize("regressor", [None, "boosting"])
def test_params_of_a_regressor_that_is_only_named(regressor):
    message = r"regressor__max_iter cannot be set.*regressor=(None|'boosting').*default_regressor"
    with pytest.raises(ValueError, match=message):
        CalibratedRanker(regressor).set_params(regressor__max_iter=5)
    both = {"regressor": Ridge(), "regressor__alpha": 2.0}
    assert CalibratedRanker(regressor).set_params(**both).regressor.alpha == 2


def test_verbose_says_what_fit_does(capsys):
    CalibratedRanker(Ridge(), verbose=1).fit(X, Y, G)
    said = capsys.readouterr().out
    assert "documents in" in said and "queries dropped" in said and "fitted Ridge" in said
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
    bag = BaggingRegressor(make_pipeline(Loud()), 2)
    for verbose, of_bag, of_ridge in ((2, 1, 0), (3, 2, 1)):
        regressor = CalibratedRanker(bag, verbose=verbose).fit(X, Y, groups=G).model_.regressor_
        assert (regressor.verbose, regressor.estimator[-1].verbose) == (of_bag, of_ridge)
    pairs = CalibratedRanker(BilinearPairs(), loss="pd", verbose=1).fit(X, Y, groups=G)
    capsys.readouterr()
    monkeypatch.setattr(_predict, "_PAIRS_AT_A_TIME", 2000)
    pairs.predict(X, groups=G)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2 and "60 of 60 queries predicted and decoded" in lines[-1]


# -------------------------------------------------------------------- what reviews found


def test_a_bare_document_model_has_the_default_regressor():
    ranks = CalibratedRanker(DocumentModel(context="zscore")).fit(X, Y, G).predict(X, G)
    single = CalibratedRanker(default_regressor(len(Y)), context="zscore").fit(X, Y, G)
    np.testing.assert_array_equal(ranks, single.predict(X, G))
    forest = CalibratedRanker(DocumentModel(ExtraTreesRegressor(3)), random_state=0)
    one, two = (clone(forest).fit(X, Y, G).decision_function(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_context_columns_are_those_of_fit():
    flags = (X > 0).astype(int)
    ranker = CalibratedRanker(Ridge()).fit(flags, Y, G)
    np.testing.assert_array_equal(ranker.predict(X > 0, G), ranker.predict(flags, G))
    with pytest.raises(ValueError, match="X is sparse, but the ranker was fitted on dense X"):
        ranker.predict(sparse.csr_array(flags), G)


def test_ties_of_text_do_not_depend_on_other_queries():
    encode = make_pipeline(OneHotEncoder(handle_unknown="ignore"), DummyRegressor())
    text = np.array([["1"], ["2"], ["30"], ["4"], ["x"], ["y"]], dtype=object)
    ranker = CalibratedRanker(encode)
    with pytest.warns(UserWarning, match="predicts the same for all documents"):
        ranker.fit(text, [1, 0, 2, 1, 0, 1], groups=[0, 0, 0, 0, 1, 1])
    alone = ranker.predict(text[:4], groups=[0] * 4)
    np.testing.assert_array_equal(ranker.predict(text, groups=[0] * 4 + [1, 1])[:4], alone)


def test_only_ratios_of_weights_matter_to_the_default():
    weight, ranker = np.random.default_rng(0).gamma(1.0, size=len(Y)), CalibratedRanker("stacked")
    fits = (ranker.fit(X, Y, G, sample_weight=factor * weight) for factor in (1, 3))
    np.testing.assert_allclose(*(fit.decision_function(X, G) for fit in fits), atol=1e-12)


def test_labels_of_weightless_rows_do_not_count():
    y, weight = Y.astype(float), np.ones(len(Y))
    y[0], weight[0] = 5000.0, 0.0
    for loss in ("dcg", "err"):
        one = CalibratedRanker(Ridge(), loss=loss).fit(X, y, G, sample_weight=weight)
        other = CalibratedRanker(Ridge(), loss=loss).fit(X[1:], Y[1:], G[1:])
        np.testing.assert_allclose(one.decision_function(X, G), other.decision_function(X, G))


def test_searches_take_weights():
    inner = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=2)
    CalibratedRanker(inner).fit(X, Y, G, sample_weight=np.ones(len(Y)))


def test_labels_of_several_calls_put_together_are_refused():
    parts = relevance_labels([1, 0, 1, 0], list("aaaa"))[:2], relevance_labels([1, 0], ["b", "b"])
    with pytest.raises(ValueError, match="Call relevance_labels once"):
        CalibratedRanker(Ridge()).fit(X[:4], np.concatenate(parts))


def test_a_group_for_each_row_warns():
    with pytest.warns(UserWarning, match="a query of its own"):
        CalibratedRanker(Ridge(), loss="dcg").fit(X, Y, groups=np.arange(len(Y)))


# -------------------------------------------------------------------- wide labels and amounts


@pytest.mark.parametrize(
    "fit",
    [
        lambda y: CalibratedRanker(Ridge()).fit(X, y, G),
        lambda y: CalibratedRanker(Ridge(), loss=DCG(5)).fit(X, y, G),
        lambda y: LinearRanker(loss="ndcg@5").fit(X, y, G),
        lambda y: LinearRanker(solver="sgd", random_state=0).partial_fit(X, y, G),
    ],
    ids=["ndcg", "dcg", "linear", "partial_fit"],
)
def test_labels_above_31_warn_once_and_the_warning_says_what_to_write(fit):
    fit(31 * (Y > 1))  # the warning would be an error
    with pytest.warns(UserWarning) as found:
        fit(20.0 * Y)
    (warning,) = found
    for text in ("above 31", "loss=NDCG(k=10, gain='linear')", "get_ranking_scorer("):
        assert text in str(warning.message)
    assert warning.filename == __file__


def test_amounts_do_not_warn_where_no_gain_is_exponential():
    for loss in (NDCG(gain="linear"), NDCG(gain=np.sqrt), "spearman", "pd_by_scores"):
        CalibratedRanker(Ridge(), loss=loss).fit(X, 1000.0 * Y, G)


def test_gains_that_overflow_in_score_say_where_to_write_the_linear_gain():
    ranker = CalibratedRanker(Ridge()).fit(X, Y, G)
    with pytest.raises(ValueError, match=r"exceeds.*loss=NDCG\(.*gain='linear'.*scorer"):
        ranker.score(X, 1000 * Y, G)
