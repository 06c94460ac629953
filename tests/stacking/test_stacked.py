"""StackedModel: members, folds of queries, weights, consistency, and bad input."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import NDCG, get_loss
from sklearn_rankcal.models import (
    BilinearPairs,
    DocumentModel,
    ResidualPairModel,
    StackedModel,
    Training,
    default_members,
)
from sklearn_rankcal.models._folds import query_folds
from sklearn_rankcal.models._member_weights import _nonnegative_weights
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.stacking import _stacked
from sklearn_rankcal.stacking._stacked import ClippedExtraTrees

from ..few_trees import few_trees  # noqa: F401

DATA = make_ranking(n_queries=40, n_features=6, random_state=0)
X, Y, Q = DATA.X, DATA.y.astype(float), Queries.from_groups(DATA.groups)
TARGETS = get_loss("ndcg").training_targets(Y, Q)
LINEAR = DocumentModel(Ridge(), context="zscore")
FOREST = DocumentModel(ExtraTreesRegressor(10, min_samples_leaf=3, random_state=0), center=False)
MEMBERS = [("linear", None, LINEAR), ("forest", "labels", FOREST)]


def fit(members=MEMBERS, **parameters):
    return StackedModel(members, **parameters).fit(Training(X, TARGETS, Q, labels=Y))


class Predicts(RegressorMixin, BaseEstimator):
    """A regressor whose predictions are a column of X, or the same number everywhere."""

    def __init__(self, column=0, value=None):
        self.column = column
        self.value = value

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return X[:, self.column] if self.value is None else np.full(len(X), self.value)


def column(number):
    return DocumentModel(Predicts(number), center=False)


# -------------------------------------------------------------------- weights


def test_weights_are_the_best_nonnegative_ones():
    """On every subset of the members, the free weights solve the normal equations."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, m, penalty = 30, int(rng.integers(1, 5)), float(rng.choice([0.0, 0.1, 10.0]))
        columns, target = rng.normal(size=(n, m)), rng.normal(size=n)
        share = rng.random(n)
        share /= share.sum()
        gram = columns.T @ (columns * share[:, None])
        equal = max(0.0, (columns.T @ (share * target)).sum()) / max(1.0, gram.sum())

        def risk(w, columns=columns, target=target, share=share, penalty=penalty, equal=equal):
            return share @ (target - columns @ w) ** 2 + penalty * ((w - equal) ** 2).sum()

        best = np.inf
        for free in itertools.chain.from_iterable(
            itertools.combinations(range(m), size) for size in range(m + 1)
        ):
            w, some = np.zeros(m), list(free)
            if some:
                left = gram[np.ix_(some, some)] + penalty * np.eye(len(some))
                right = columns[:, some].T @ (share * target) + penalty * equal
                w[some] = np.linalg.solve(left, right)
            if (w >= 0).all():
                best = min(best, risk(w))
        found = _nonnegative_weights(columns, target, share, penalty)
        assert (found >= 0).all()
        assert risk(found) == pytest.approx(best, rel=1e-6, abs=1e-9)


def test_weights_minimise_the_error_of_held_out_queries():
    """Members that do not learn have the same held-out and other predictions."""
    model = fit([(name, None, column(k)) for k, name in enumerate("abc")], alpha=0.0)
    centred = np.column_stack([Q.center(X[:, k]) for k in range(3)])
    root = np.sqrt(1 / Q.broadcast(Q.sizes))  # every query counts the same
    target = Q.center(TARGETS)
    got = np.array(list(model.weights_.values()))
    error = ((root * (target - centred @ got)) ** 2).sum()
    for k, factor in itertools.product(range(3), (0.99, 1.01)):
        other = got.copy()
        other[k] = other[k] * factor if got[k] else 0.001
        assert ((root * (target - centred @ other)) ** 2).sum() >= error
    np.testing.assert_allclose(model.predict(X, Q), centred @ got, atol=1e-12)


def test_a_weight_of_two_counts_as_two_equal_queries():
    members = [("a", None, column(0)), ("b", None, column(1))]
    rows, _ = Q.select(np.arange(40) < 20)
    twice = np.concatenate([np.arange(len(Y)), rows])
    codes = np.concatenate([Q.codes, Q.codes[rows] + 1000])
    doubled = Queries.from_groups(codes)
    repeated = StackedModel(members, alpha=0.0).fit(Training(X[twice], TARGETS[twice], doubled))
    weight = np.where(Q.codes < 20, 2.0, 1.0)
    free = StackedModel([("a", None, _weighted(0)), ("b", None, _weighted(1))], alpha=0.0)
    weighted = free.fit(Training(X, TARGETS, Q, weight))
    assert list(weighted.weights_.values()) == pytest.approx(list(repeated.weights_.values()))


def test_weights_may_differ_inside_a_query():
    """The scores and the targets are centred by the weighted mean of their query."""
    weight = 1.0 + (np.arange(len(Y)) % 3)
    model = StackedModel([(name, None, _weighted(k)) for k, name in enumerate("abc")], alpha=0.0)
    model.fit(Training(X, TARGETS, Q, weight))
    root = np.sqrt(weight / Q.broadcast(Q.sizes))
    columns = np.column_stack([root * Q.center(X[:, k], weight) for k in range(3)])
    expected, _ = nnls(columns, root * Q.center(TARGETS, weight))
    assert list(model.weights_.values()) == pytest.approx(expected, rel=1e-5)


class TakesWeights(Predicts):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


def _weighted(number):
    return DocumentModel(TakesWeights(number), center=False)


def test_equal_members_share_the_weight():
    model = fit([(name, None, column(0)) for name in "ab"])
    assert model.shares_ == pytest.approx({"a": 0.5, "b": 0.5})


def test_members_that_nearly_cancel_each_other_get_no_large_weights():
    """The best equal weights are about 10^6, and multiply what is left of two columns."""
    rng = np.random.default_rng(0)
    table = np.column_stack([X[:, 0], -X[:, 0] + 1e-8 * rng.normal(size=len(X))])
    members = [("a", None, column(0)), ("b", None, column(1))]
    targets = TARGETS + 1e7 * (table[:, 0] + table[:, 1])  # of the size of the targets
    model = StackedModel(members).fit(Training(table, targets, Q))
    assert max(np.abs(model.predict(table, Q))) < 2 * np.abs(targets).max()
    assert max(model.weights_.values()) < 10


def test_a_member_that_is_constant_in_every_query_gets_no_weight():
    constant = DocumentModel(DummyRegressor(), center=False)
    model = fit([("constant", None, constant), ("linear", None, LINEAR)])
    assert model.weights_["constant"] == 0.0
    assert model.members_["constant"] == []
    assert model.shares_ == {"constant": 0.0, "linear": 1.0}


def test_members_that_rank_worse_than_chance_are_weighed_equally():
    """No non-negative weights are better than 0, but a ranking is needed."""
    against = np.column_stack([-TARGETS, -(TARGETS**3)])
    members = [("a", None, column(0)), ("b", None, column(1))]
    model = StackedModel(members, alpha=0.0).fit(Training(against, TARGETS, Q))
    assert model.shares_ == {"a": 0.5, "b": 0.5}
    only_constants = [("a", None, DocumentModel(DummyRegressor()))]
    model = StackedModel(only_constants).fit(Training(X, TARGETS, Q))
    np.testing.assert_allclose(model.predict(X, Q), 0.0, atol=1e-12)


@pytest.mark.parametrize("exponent", [-160, -60, 60, 160])
def test_the_unit_of_the_targets_changes_no_share(exponent):
    members = [("linear", None, LINEAR), ("column", None, column(0))]
    usual = StackedModel(members).fit(Training(X, TARGETS, Q))
    scaled = StackedModel(members).fit(Training(X, np.ldexp(TARGETS, exponent), Q))
    assert scaled.shares_ == pytest.approx(usual.shares_)
    np.testing.assert_allclose(
        np.ldexp(scaled.predict(X, Q), -exponent), usual.predict(X, Q), rtol=1e-6, atol=1e-9
    )


def test_the_penalty_draws_to_equal_shares_and_vanishes():
    def spread(alpha):
        shares = list(
            fit([("a", None, LINEAR), ("b", None, column(0))], alpha=alpha).shares_.values()
        )
        return abs(shares[0] - shares[1])

    assert spread(0.0) > spread(30.0) > spread(1e6)
    assert spread(1e9) == pytest.approx(0.0, abs=1e-6)


def test_queries_of_one_document_change_no_weight():
    members = [(name, None, column(k)) for k, name in enumerate("ab")]
    usual = StackedModel(members).fit(Training(X, TARGETS, Q))
    rng = np.random.default_rng(0)
    table = np.vstack([X, rng.normal(size=(200, X.shape[1]))])
    queries = Queries.from_groups(np.append(Q.codes, 1000 + np.arange(200)))
    several = StackedModel(members).fit(Training(table, np.append(TARGETS, np.ones(200)), queries))
    assert several.weights_ == pytest.approx(usual.weights_)
    only_such = StackedModel(members).fit(Training(X[:40], np.ones(40), Queries.uniform(40, 1)))
    assert only_such.shares_ == {"a": 0.5, "b": 0.5}


# -------------------------------------------------------------------- folds


def test_no_member_sees_the_fold_that_it_predicts():
    model = fit(cv=4)
    assert np.bincount(model.fold_of_query_).tolist() == [10, 10, 10, 10]
    for fold, member in enumerate(model.members_["linear"]):
        rows, some = Q.select(model.fold_of_query_ != fold)
        alone = clone(LINEAR).fit(Training(X[rows], TARGETS[rows], some))
        np.testing.assert_array_equal(member.regressor_.coef_, alone.regressor_.coef_)


def test_the_order_of_rows_does_not_matter():
    members = [
        ("linear", None, LINEAR),
        ("tree", "labels", DocumentModel(DecisionTreeRegressor(random_state=0))),
    ]
    usual = fit(members).predict(X, Q)
    rows = np.random.default_rng(0).permutation(len(Y))
    shuffled = Queries.from_groups(DATA.groups[rows])
    model = StackedModel(members).fit(Training(X[rows], TARGETS[rows], shuffled, labels=Y[rows]))
    np.testing.assert_allclose(model.predict(X[rows], shuffled), usual[rows], atol=1e-10)


def test_random_members_differ_between_folds_and_are_reproducible():
    first, second = fit(), fit()
    np.testing.assert_array_equal(first.predict(X, Q), second.predict(X, Q))
    seeds = [model.regressor_.random_state for model in first.members_["forest"]]
    assert seeds == [0, 1, 2, 3, 4]
    assert FOREST.regressor.random_state == 0  # the member that was passed is not changed
    largest = clone(FOREST).set_params(regressor__random_state=2**32 - 1)
    largest = fit([("forest", "labels", largest)], cv=2)
    assert [m.regressor_.random_state for m in largest.members_["forest"]] == [2**32 - 1, 0]


def test_threads_change_nothing():
    np.testing.assert_array_equal(fit(n_jobs=2).predict(X, Q), fit().predict(X, Q))


def test_a_member_with_the_loss_of_the_ranker_learns_its_targets():
    assert not np.array_equal(TARGETS, get_loss("ndcg").encode(Y, Q))
    model = fit([("own", None, LINEAR), ("named", "ndcg", LINEAR)])
    for own, named in zip(model.members_["own"], model.members_["named"], strict=True):
        np.testing.assert_array_equal(own.regressor_.coef_, named.regressor_.coef_)


def permuted(table, order):
    """Reorder queries of four documents."""
    return table.reshape(len(order), 4, -1)[order].reshape(table.shape)


def test_queries_with_equal_documents_share_a_fold():
    """The second copy of a query is not held out from models that saw the first."""
    table, rng = X[:160], np.random.default_rng(0)
    folds = query_folds(np.vstack([table, table]), Queries.uniform(80, 4), 5)
    np.testing.assert_array_equal(folds[:40], folds[40:])
    assert np.bincount(folds).tolist() == [16] * 5
    copies = rng.integers(1, 4, size=40)  # sizes of different folds are still similar
    table = np.repeat(table.reshape(40, 4, -1), copies, axis=0).reshape(-1, X.shape[1])
    folds = query_folds(table, Queries.uniform(int(copies.sum()), 4), 5)
    assert np.ptp(np.bincount(folds)) <= 3
    which = np.repeat(np.arange(40), copies)
    assert all(len(set(folds[which == number])) == 1 for number in range(40))


@pytest.mark.parametrize("n_queries", [5, 6, 9, 21])
def test_no_fold_is_empty_if_many_queries_have_equal_documents(n_queries):
    """Labels of the same documents differ; the order of the queries does not matter."""
    rng = np.random.default_rng(0)
    labels = rng.normal(size=4 * n_queries)
    for distinct in (1, 2, 3):
        kind = np.arange(n_queries) % distinct
        table = np.concatenate([X[4 * k : 4 * k + 4] for k in kind])
        queries, order = Queries.uniform(n_queries, 4), rng.permutation(n_queries)
        folds = query_folds(table, queries, 5, labels)
        assert np.bincount(folds, minlength=5).min() >= 1
        again = query_folds(permuted(table, order), queries, 5, permuted(labels, order))
        np.testing.assert_array_equal(again, folds[order])


def test_queries_with_equal_documents_and_targets_are_told_apart_by_their_labels():
    """The order of the queries does not matter, although labels do not change the targets."""
    queries, order = Queries.uniform(10, 4), np.random.default_rng(0).permutation(10)
    table, targets = np.tile(X[:4], (10, 1)), np.tile(TARGETS[:4], 10)
    model = StackedModel([("a", "labels", column(0))], cv=5)
    folds = [
        model.fit(
            Training(table, targets, queries, labels=np.repeat(numbers, 4).astype(float))
        ).fold_of_query_.tolist()
        for numbers in (np.arange(10), order)
    ]
    assert folds[1] == [folds[0][number] for number in order]


def test_folds_look_at_later_columns_if_the_first_are_equal():
    queries, order = Queries.uniform(40, 4), np.random.default_rng(0).permutation(40)
    table = np.hstack([np.zeros((160, 9)), X[:160]])
    folds = query_folds(table, queries, 5)
    np.testing.assert_array_equal(query_folds(permuted(table, order), queries, 5), folds[order])
    assert np.bincount(folds).tolist() == [8] * 5


def test_folds_are_the_same_for_all_containers():
    table = np.hstack([X[:160], X[:160] ** 2])  # more columns than the first hash reads
    queries = Queries.uniform(40, 4)
    folds = query_folds(table, queries, 5)
    for other in (pd.DataFrame(table), sparse.csr_matrix(table)):
        np.testing.assert_array_equal(query_folds(other, queries, 5), folds)


# -------------------------------------------------------------------- consistency

# Two documents. With probability 1/2 the labels are (1, 0), else (2, 4). The expected labels are
# (1.5, 2), but the expected NDCG targets rank the first document higher.
WORLD = np.array([[1.0, 0.0], [2.0, 4.0]])


def sample_world(n_queries, seed=0):
    which = np.random.default_rng(seed).integers(2, size=n_queries)
    labels = WORLD[which].reshape(-1)
    noise = np.random.default_rng(seed + 1).normal(size=2 * n_queries)  # tells queries apart
    table = np.column_stack([np.tile([0.0, 1.0], n_queries), noise])
    return table, labels, Queries.uniform(n_queries, 2)


def ranks_first_document_first(members, n_queries):
    table, labels, queries = sample_world(n_queries)
    targets = NDCG(shrinkage=0.0).training_targets(labels, queries)
    model = StackedModel(members).fit(Training(table, targets, queries, labels=labels))
    scores = model.predict(table[:2], Queries.single(2))
    return bool(scores[0] > scores[1]), model


def stump(center=False):
    return DocumentModel(DecisionTreeRegressor(max_leaf_nodes=2, random_state=0), center=center)


def test_the_stack_is_consistent_if_one_member_learns_the_targets():
    targets = get_loss("ndcg").encode(WORLD.reshape(-1), Queries.uniform(2, 2)).reshape(2, 2)
    assert targets.mean(axis=0)[0] > targets.mean(axis=0)[1]
    assert WORLD.mean(axis=0)[0] < WORLD.mean(axis=0)[1]
    wrong = [("labels", "labels", stump()), ("copy", "labels", stump(center=True))]
    right, model = ranks_first_document_first([*wrong, ("targets", None, stump())], 4000)
    assert right
    assert model.shares_["targets"] > 0.9


def test_without_a_consistent_member_the_stack_is_not_consistent():
    for n_queries in (400, 4000):
        right, _ = ranks_first_document_first([("labels", "labels", stump())], n_queries)
        assert not right


def test_a_member_that_only_ranks_perfectly_does_not_make_the_stack_consistent():
    """Two kinds of queries, with certain labels. It is the example of the page on theory."""
    labels, perfect = [[1, 6, 0], [1, 2, 0]], [[0, 1, -1], [0, 3, -3]]
    other = [[0, 1, -1], [-2, 1, 1]]
    table = np.tile(
        np.column_stack([np.ravel(perfect), np.ravel(other), np.ravel(labels)]), (50, 1)
    )
    table = np.column_stack([table, np.repeat(np.arange(100.0), 3)])  # tells queries apart
    queries, two = Queries.uniform(100, 3), Queries.uniform(2, 3)
    members = [("perfect", None, column(0)), ("other", None, column(1))]
    targets = table[:, 2]
    model = StackedModel(members, alpha=0).fit(Training(table, targets, queries, labels=targets))
    scores = model.predict(table[:6], two).reshape(2, 3)
    assert (np.argsort(perfect) == np.argsort(labels)).all()
    np.testing.assert_allclose(list(model.weights_.values()), [0.538, 0.615], atol=1e-3)
    np.testing.assert_allclose(scores[1], [-1.23, 2.23, -1.0], atol=0.01)
    members.append(("targets", None, column(2)))
    model = StackedModel(members, alpha=0).fit(Training(table, targets, queries, labels=targets))
    scores = model.predict(table[:6], two).reshape(2, 3)
    assert (np.argsort(scores) == np.argsort(labels)).all()


def test_excess_error_is_at_most_that_of_the_best_member():
    """The inequality of the argument, on the queries that chose the weights."""
    members = [("a", None, column(0)), ("b", None, column(1)), ("c", None, column(2))]
    share = 1 / Q.broadcast(Q.sizes)
    target = Q.center(TARGETS)

    def error(some):
        model = fit(some, alpha=0.0)
        return share @ (target - model.predict(X, Q)) ** 2

    together = error(members)
    assert all(together <= error([member]) + 1e-12 for member in members)


def test_members_without_a_loss_of_their_own_learn_the_targets():
    assert StackedModel().learns_targets
    assert StackedModel(MEMBERS).learns_targets
    assert not StackedModel(MEMBERS[1:]).learns_targets
    assert StackedModel([("a", None, DocumentModel(LogisticRegression()))]).learns_targets


def test_a_classifier_among_the_members_learns_shares_and_not_levels():
    graded = Training(X, Y, Q, labels=Y, graded_targets=True)
    classifier = DocumentModel(LogisticRegression())
    assert len(classifier.fit(graded).regressor_.classes_) == len(np.unique(Y)) > 2
    stack = StackedModel([("a", None, classifier)]).fit(graded)
    assert all(len(model.regressor_.classes_) == 2 for model in stack.members_["a"])


# -------------------------------------------------------------------- as an estimator


def test_parameters_of_members_are_nested():
    model = StackedModel(MEMBERS)
    assert model.get_params()["forest__regressor__min_samples_leaf"] == 3
    changed = clone(model).set_params(linear__regressor__alpha=5.0, cv=3)
    assert {name: m for name, _, m in changed.members}["linear"].regressor.alpha == 5.0
    assert [loss for _, loss, _ in changed.members] == [None, "labels"]
    assert LINEAR.regressor.alpha == 1.0
    replaced = clone(model).set_params(forest=LINEAR)
    assert replaced.members[1] == ("forest", "labels", LINEAR)
    assert "linear" not in StackedModel().get_params()


def test_pickles_predict_the_same():
    model = fit()
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict(X, Q), model.predict(X, Q))


def test_importances_are_averaged_by_the_shares():
    trees = [("a", None, FOREST), ("b", "labels", FOREST)]
    model = fit(trees)
    own = {
        name: np.mean([m.regressor_.feature_importances_ for m in models], axis=0)
        for name, models in model.members_.items()
    }
    expected = sum(model.shares_[name] * own[name] for name in own)
    np.testing.assert_allclose(model.feature_importances_, expected, atol=1e-12)
    with pytest.raises(AttributeError, match="feature_importances_"):
        _ = fit().feature_importances_


class CountsSplits(ExtraTreesRegressor):
    """A regressor whose importances do not have the sum 1, as those of LightGBM."""

    @property
    def feature_importances_(self):
        return 1000 * super().feature_importances_


def test_importances_of_every_member_have_the_same_sum():
    counts = DocumentModel(CountsSplits(10, min_samples_leaf=3, random_state=0), center=False)
    usual = fit([("a", None, FOREST), ("b", "labels", FOREST)])
    model = fit([("a", None, counts), ("b", "labels", FOREST)])
    np.testing.assert_allclose(model.feature_importances_, usual.feature_importances_)


def test_a_line_for_each_fit(capsys):
    fit(verbose=1, cv=2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("[StackedModel] linear, fold 1 of 2: ")


def test_scores_enter_pairs_as_differences():
    loss = get_loss("pd")
    targets = loss.training_targets(Y, Q)
    pairs = BilinearPairs(alpha=1e12)  # so strong a penalty that the pairs add nothing
    model = ResidualPairModel(StackedModel(MEMBERS), pairs).fit(Training(X, targets, Q, labels=Y))
    scores = model.scores_.predict(X, Q)[Q.codes == 0]
    first = model.predict(X, Q)[: len(scores) * (len(scores) - 1) // 2]
    i, j = np.triu_indices(len(scores), 1)
    np.testing.assert_allclose(first, scores[i] - scores[j], atol=1e-6)


@pytest.mark.usefixtures("few_trees")
def test_the_trees_of_the_forest_are_limited_where_rows_are_many(monkeypatch):
    def most_leaves(model):
        return max(tree.get_n_leaves() for m in model.members_["forest"] for tree in m.regressor_)

    limits = [
        default_members(n_rows=n_rows)[-1][2].regressor.max_leaf_nodes
        for n_rows in (None, 15_000, 15_001)
    ]
    assert limits == [None, None, 1000]
    monkeypatch.setattr(_stacked, "_MAX_LEAVES", 10)
    assert most_leaves(StackedModel().fit(Training(X, TARGETS, Q, labels=Y))) > 10
    monkeypatch.setattr(_stacked, "_ROWS_OF_FULL_TREES", len(Y) - 1)
    assert most_leaves(StackedModel().fit(Training(X, TARGETS, Q, labels=Y))) == 10
    ranker = CalibratedRanker("stacked").fit(X, Y, groups=DATA.groups)
    assert most_leaves(ranker.model_) == 10


def test_default_members_fit_the_data():
    assert [name for name, _, _ in default_members(relevance=False)] == ["targets", "borda"]
    assert [name for name, _, _ in default_members(forest=False)] == ["targets", "borda", "labels"]
    model = StackedModel(cv=2).fit(Training(X, TARGETS, Q, labels=Y))
    assert list(model.weights_) == ["targets", "borda", "labels", "forest"]
    assert sum(model.shares_.values()) == pytest.approx(1.0)


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], "members must be a list of"),
        (LINEAR, "members must be a list of"),
        ([("a", LINEAR)], r"got the member \('a', "),
        ([(1, None, LINEAR)], "got the member"),
        ([("a", None, LINEAR), ("a", None, FOREST)], "different names"),
        ([("a__b", None, LINEAR)], "__"),
        ([("cv", None, LINEAR)], "conflict with constructor arguments"),
        ([("a", None, Ridge())], "must predict scores.*DocumentModel"),
        ([("a", None, DocumentModel)], "must predict scores"),
        ([("a", None, BilinearPairs())], "must predict scores"),
        ([("a", "pd", LINEAR)], "learn scores.*are pairs"),
        ([("a", "no such loss", LINEAR)], "no such loss"),
    ],
)
def test_bad_members(members, message):
    with pytest.raises(ValueError, match=message):
        fit(members)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cv": 1}, "cv must be a whole number >= 2"),
        ({"cv": 2.5}, "cv must be a whole number"),
        ({"cv": 41}, "cv=41 folds.*only 40 queries"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"alpha": np.nan}, "alpha must be"),
        ({"alpha": "auto"}, "alpha must be"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(**parameters)


def test_a_member_that_fails_or_predicts_nan_is_named():
    nan = DocumentModel(Predicts(value=np.nan), center=False)
    with pytest.raises(ValueError, match="'second' of the stack predicts NaN"):
        fit([("first", None, LINEAR), ("second", None, nan)])
    broken = DocumentModel(LinearRegression(positive="maybe"))
    with pytest.raises(ValueError) as failure:
        fit([("first", None, LINEAR), ("second", None, broken)])
    assert "in the member 'second' of the stack" in failure.value.__notes__[0]


def test_members_with_losses_need_labels_of_the_right_kind():
    with pytest.raises(ValueError, match="needs the labels"):
        StackedModel(MEMBERS).fit(Training(X, TARGETS, Q))
    winner = Q.offsets[:-1]
    pairs = Preferences.from_pairs(winner, winner + 1, np.ones(len(winner)), Q)
    with pytest.raises(ValueError, match="cannot learn preferences"):
        StackedModel(MEMBERS).fit(Training(X, TARGETS, Q, labels=pairs))


def test_few_rows_of_a_forest_are_predicted_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), rng.random(400)
    X[rng.random(X.shape) < 0.1] = np.nan
    forest = ClippedExtraTrees(10, min_samples_leaf=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(forest.predict(X), ExtraTreesRegressor.predict(forest, X))
    X[0, 0] = np.inf
    assert np.isfinite(forest.predict(X)).all()


@pytest.mark.parametrize("kind", ["array", "list", "sparse"])
def test_the_forest_predicts_what_extra_trees_predict(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)), rng.normal(size=200)
    forest = ClippedExtraTrees(7, min_samples_leaf=5, random_state=0).fit(X, y)
    expected = ExtraTreesRegressor(7, min_samples_leaf=5, random_state=0).fit(X, y).predict(X)
    table = {"array": X, "list": X.tolist(), "sparse": sparse.csr_matrix(X)}[kind]
    np.testing.assert_array_equal(forest.predict(table), expected)
    with pytest.raises(ValueError, match="3 features"):
        forest.predict(X[:, :3])
