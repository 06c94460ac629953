"""Boosting whose size held-out queries choose, alone and inside CalibratedRanker."""

from __future__ import annotations

import pickle
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from sklearn_rankcal import CalibratedRanker, preference_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.decoders import KERNELS
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.models import BoostingCV, DocumentModel, ResidualPairModel, Training
from sklearn_rankcal.models import _boosting_cv as module  # limits that tests lower
from sklearn_rankcal.models import _held_out as division  # limits that tests lower
from sklearn_rankcal.models._held_out import Fold
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._sklearn_compat import BinnedTable, Booster, FlatTrees, merge_boosters

DATA = make_ranking(n_queries=24, n_documents=8, n_features=5, n_informative=3, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups
QUERIES = Queries.from_groups(G)
Y[QUERIES.offsets[:-1]] = 2  # NDCG is defined on all queries
TARGETS = get_loss("ndcg").resolve(Y).training_targets(Y, QUERIES)
CENTRED = QUERIES.center(TARGETS)
LOSSES = (None, "pd_by_scores", "labels")


SMALL = {
    "_MOST_TREES": 60,
    "_MOST_SPARE": 2_600,
    "_PATIENCE": 5,
    "_AT_FIRST": 70,
    "_FEWEST_SLOW": 150,
    "_SHARE_OF_COLUMNS": 1.0,  # trees are then those of scikit-learn, which draws other columns
}


@pytest.fixture
def small(monkeypatch):
    for name, value in SMALL.items():
        monkeypatch.setattr(module, name, value)


@pytest.fixture
def all_losses(monkeypatch):
    """No loss is dropped."""
    monkeypatch.setattr(module._SizeSearch, "_gain", lambda *_: 1.0)


@pytest.fixture(scope="module")
def usual():
    """The default with small boosters, which no test changes."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(module, name, value)
        return CalibratedRanker().fit(X, Y, groups=G)


def fit(losses=(None,), context="zscore", **parameters):
    model = BoostingCV(losses, context=context, **parameters)
    return model.fit(Training(X, TARGETS, QUERIES, labels=Y.astype(float)))


def fit_to_part(regressor, table, rows, y):
    """Fit a booster of scikit-learn to rows of a table, by the categories and bins of all rows."""
    whole = clone(regressor).set_params(max_iter=1).fit(table, np.ones(len(table)))
    for name in ("is_categorical_", "n_features_in_", "_preprocessor", "_is_categorical_remapped"):
        setattr(regressor, name, getattr(whole, name, None))

    def preprocess(X, *, reset):
        encoded = whole._preprocess_X(X, reset=False)
        return (encoded, None) if reset else encoded

    def bin_data(X, *_, **__):
        regressor._bin_mapper = whole._bin_mapper
        return regressor._bin_mapper.transform(X)

    regressor._preprocess_X, regressor._bin_data = preprocess, bin_data
    return regressor.fit(table.iloc[rows] if hasattr(table, "iloc") else table[rows], y[rows])


def boosters(model, leaves, n_trees, table, y, queries=QUERIES, **parameters):
    """One booster without each fold, by scikit-learn alone."""
    found = []
    for fold in range(3):
        inside, _ = queries.select(model.fold_of_query_ != fold)
        regressor = HistGradientBoostingRegressor(
            learning_rate=0.1, max_iter=n_trees, max_leaf_nodes=leaves, early_stopping=False,
            min_samples_leaf=max(1, len(inside) // 50), random_state=0, max_bins=32,
            **{"l2_regularization": 50.0, **parameters},
        )  # fmt: skip
        found.append(fit_to_part(regressor, table, inside, y))
    return found


def errors_of_folds(model, leaves, n_trees, table, y):
    """The held-out squared error of all folds after each tree."""
    total = np.zeros(n_trees)
    for fold, regressor in enumerate(boosters(model, leaves, n_trees, table, y)):
        out, others = QUERIES.select(model.fold_of_query_ == fold)
        wanted = others.center(y[out])
        staged = regressor.staged_predict(table[out])
        total += [np.square(others.center(scores) - wanted).sum() for scores in staged]
    return total


# -------------------------------------------------------------------- trees


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize("n_leaves", [7, 31])
@pytest.mark.parametrize("lacks", [False, True])
def test_trees_are_those_of_scikit_learn(loss, weighs, n_leaves, lacks):
    """With all columns at each split: numbers, categories and missing values."""
    rng = np.random.default_rng(n_leaves)
    n = 1500
    values = rng.normal(size=(n, 6))
    values[:, 1] = values[:, 1].round(1)  # few bins
    codes = np.column_stack([rng.integers(0, 60, n), rng.integers(0, 3, n)]).astype(float)
    if lacks:
        values[rng.random(values.shape) < 0.1] = np.nan
        codes[rng.random(n) < 0.1, 0] = np.nan
    score = np.nan_to_num(np.sin(codes[:, 0]) + values[:, 0] * codes[:, 1]) + rng.normal(size=n)
    y = rng.poisson(np.exp(score / 2)).astype(float) if loss == "poisson" else score
    table = pd.DataFrame(values, columns=list("abcdef")).assign(
        k=pd.Categorical(codes[:, 0]), a=pd.Categorical(codes[:, 1])
    )
    weight = rng.random(n) + 0.1 if weighs else None
    like = HistGradientBoostingRegressor(
        loss=loss, max_iter=40, max_leaf_nodes=n_leaves, l2_regularization=0.5, random_state=0,
        early_stopping=False,
    )  # fmt: skip
    binned, rows = BinnedTable(table, weight, None, 0), np.arange(n)
    theirs = clone(like).set_params(max_bins=binned.regressor.max_bins).fit(table, y, weight)
    ours = Booster(like, binned, rows, rows[:0], y, weight, 0)
    list(ours.grow([0.1] * 40))
    ours = merge_boosters([ours], [40], [1.0], 0.0 if loss == "poisson" else None)
    sets = 0
    for (one,), (other,) in zip(ours._predictors, theirs._predictors, strict=True):
        inner = other.nodes["is_leaf"] == 0
        for name in set(one.nodes.dtype.names) - {"value", "gain", "num_threshold"}:
            np.testing.assert_array_equal(one.nodes[name], other.nodes[name])
        for name in ("value", "gain"):
            np.testing.assert_allclose(one.nodes[name], other.nodes[name], rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(
            one.nodes["num_threshold"][inner], other.nodes["num_threshold"][inner]
        )
        np.testing.assert_array_equal(one.raw_left_cat_bitsets, other.raw_left_cat_bitsets)
        np.testing.assert_array_equal(one.binned_left_cat_bitsets, other.binned_left_cat_bitsets)
        sets += len(one.raw_left_cat_bitsets)
    assert sets > 40
    np.testing.assert_allclose(ours.predict(table), theirs.predict(table), rtol=1e-12)


def test_held_out_rows_have_the_scores_that_the_regressor_predicts():
    """Also if a value is missing, or a category unknown, among the held-out rows alone."""
    table = frame(kind=pd.Categorical(np.where(G == 0, "rare", np.where(X[:, 0] > 0, "u", "v"))))
    table.loc[G == 1, ["a", "kind"]] = np.nan
    rows, held = np.flatnonzero(G > 7), np.flatnonzero(G <= 7)
    like = HistGradientBoostingRegressor(max_leaf_nodes=15, max_features=0.4, random_state=0)
    more = table.iloc[:50].assign(kind=pd.Categorical(["other"] * 50))
    binned = BinnedTable(table, None, more, 0)
    held = np.append(held, len(table) + np.arange(50))
    booster = Booster(like.set_params(min_samples_leaf=3), binned, rows, held, Y[rows], None, 0)
    *_, scores = booster.grow([0.1] * 30)
    others = pd.concat([table.iloc[held[:-50]], more])
    np.testing.assert_allclose(
        merge_boosters([booster], [30], [1.0]).predict(others), scores, rtol=1e-12
    )
    # another seed draws other columns
    other = Booster(like, binned, rows, held, Y[rows], None, 1)
    assert (list(other.grow([0.1] * 30))[-1] != scores).any()


# -------------------------------------------------------------------- sizes


def test_the_size_has_the_least_error_of_all_folds(small):
    model = fit()
    table, _ = model._table(X, QUERIES)
    n_trees, leaves = model.sizes_["targets"]
    errors = errors_of_folds(model, leaves, n_trees + 5, table, CENTRED)
    assert 5 < n_trees < 60 and n_trees == 1 + np.argmin(errors)
    # trees of the other size do not rank held-out queries better after as many leaves
    other = {7: 15, 15: 7}[leaves]
    theirs = errors_of_folds(model, other, 70 // other, table, CENTRED)
    assert errors_of_folds(model, leaves, 70 // leaves, table, CENTRED).min() <= theirs.min()


def test_the_mean_of_the_folds_is_one_regressor(small):
    model = fit()
    table, _ = model._table(X, QUERIES)
    n_trees, leaves = model.sizes_["targets"]
    assert model.regressor_.n_iter_ == 3 * n_trees
    scores = [one.predict(table) for one in boosters(model, leaves, n_trees, table, CENTRED)]
    wanted = model.weights_["targets"] * np.mean(scores, axis=0)
    np.testing.assert_allclose(model.predict(X, QUERIES), wanted, rtol=1e-9, atol=1e-12)
    assert model.shares_ == {"targets": 1.0}


def test_many_trees_are_fitted_once_more_to_all_queries(monkeypatch):
    monkeypatch.setattr(module, "_MOST_SPARE", 20)
    monkeypatch.setattr(module, "_SHARE_OF_COLUMNS", 1.0)
    model = fit()
    n_trees, leaves = model.sizes_["targets"]
    assert 2 * n_trees > 20 and model.regressor_.n_iter_ == n_trees
    table, _ = model._table(X, QUERIES)
    again = HistGradientBoostingRegressor(
        learning_rate=0.1, max_iter=n_trees, max_leaf_nodes=leaves, min_samples_leaf=len(Y) // 75,
        l2_regularization=50.0, early_stopping=False, random_state=0, max_bins=32,
    )  # fmt: skip
    wanted = model.weights_["targets"] * again.fit(table, CENTRED).predict(table)
    np.testing.assert_allclose(model.predict(X, QUERIES), wanted, rtol=1e-9, atol=1e-12)


def test_the_rate_doubles_as_the_trees_do(small, monkeypatch):
    monkeypatch.setattr(module, "_MOST_SPARE", 0)
    monkeypatch.setattr(module, "_SLOW_TREES", 10)
    model = fit()
    table, _ = model._table(X, QUERIES)
    n_trees, _ = model.sizes_["targets"]
    assert 10 < n_trees == model.regressor_.n_iter_
    assert n_trees > 20
    by_hand = clone(model.regressor_).set_params(warm_start=True)
    for size, rate in ((10, 0.1), (20, 0.2), (n_trees, 0.4)):
        by_hand.set_params(max_iter=size, learning_rate=rate).fit(table, CENTRED)
    wanted = model.weights_["targets"] * by_hand.predict(table)
    np.testing.assert_allclose(model.predict(X, QUERIES), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("start, length, wanted", [(100, 30, 135), (100, 40, 100), (30, 25, 60),
                                                   (30, 35, 30)])  # fmt: skip
def test_plateaus_are_left_if_they_are_no_longer_than_a_third_of_the_trees_before(
    monkeypatch, start, length, wanted
):
    """Or than 30 trees: the error falls, stays, and falls five times more."""
    falls = np.linspace(2, 1, start)
    curve = np.concatenate([falls, np.full(length, 1.5), np.linspace(0.9, 0.5, 5), np.ones(900)])
    monkeypatch.setattr(
        module.BoosterGrowth,
        "_errors",
        lambda self, one, n_trees: (
            curve[self.n_grown : n_trees],
            curve[self.n_grown : n_trees, None],
        ),
    )
    fold = Fold(np.arange(len(Y)), np.arange(len(Y)), QUERIES, None, None)
    booster, table = HistGradientBoostingRegressor(max_leaf_nodes=7), BinnedTable(X, None, None, 0)
    growth = module.BoosterGrowth(
        booster.set_params(random_state=0), table, 5, [fold], fold.held, Y, Y, 1
    )
    growth.grow_to(module._MOST_TREES)
    assert growth.n_trees == wanted


# -------------------------------------------------------------------- several losses


def test_the_weighted_sum_of_losses_is_one_regressor(small, all_losses):
    model = fit(LOSSES)
    assert list(model.sizes_) == ["targets", "pd_by_scores", "labels"]
    assert model.sizes_["pd_by_scores"][1] == model.sizes_["targets"][1]
    total = np.zeros(len(Y))
    for loss, (name, weight) in zip(LOSSES, model.weights_.items(), strict=True):
        if weight:
            alone = fit((loss,), context=None if loss == "labels" else "zscore")
            assert name == "pd_by_scores" or alone.sizes_[name] == model.sizes_[name]
            total += weight / alone.weights_[name] * alone.predict(X, QUERIES)
    np.testing.assert_allclose(
        QUERIES.center(model.predict(X, QUERIES)), QUERIES.center(total), rtol=1e-9, atol=1e-9
    )
    assert sum(model.shares_.values()) == pytest.approx(1)


@pytest.mark.parametrize("losses", [("labels",), ("labels", None), (None, "labels")])
def test_the_regressor_reads_the_table_of_the_model(small, losses):
    """Whatever the order of the losses, and if none of them has context columns."""
    ranker = CalibratedRanker(BoostingCV(losses, context="zscore")).fit(X, Y, groups=G)
    table = ranker.transform_table(X, groups=G)
    assert table.shape[1] == (5 if losses == ("labels",) else 10)
    scores = ranker.decision_function(X, groups=G)
    np.testing.assert_allclose(ranker.model_.regressor_.predict(table), scores, atol=1e-12)


def test_it_repeats_itself_and_does_not_see_the_order_of_rows(small, usual):
    order = np.random.default_rng(1).permutation(len(Y))
    other = CalibratedRanker(n_jobs=2).fit(X[order], Y[order], groups=G[order])
    np.testing.assert_array_equal(
        usual.predict(X, groups=G)[order], other.predict(X[order], groups=G[order])
    )
    assert other.model_.sizes_ == usual.model_.sizes_


def test_weights_of_rows(small, usual):
    """Rows without weight change nothing but the counts of leaves, and only ratios count."""
    weight = np.random.default_rng(0).integers(1, 4, len(Y)).astype(float)
    one, other = (
        CalibratedRanker().fit(X, Y, groups=G, sample_weight=factor * weight) for factor in (1, 1e6)
    )
    np.testing.assert_array_equal(one.predict(X, groups=G), other.predict(X, groups=G))
    equal = CalibratedRanker().fit(X, Y, groups=G, sample_weight=np.full(len(Y), 3.0))
    np.testing.assert_array_equal(equal.predict(X, groups=G), usual.predict(X, groups=G))
    assert (one.predict(X, groups=G) != usual.predict(X, groups=G)).any()


def test_a_loss_is_dropped_that_does_not_decrease_the_held_out_error(small):
    """Labels that are noise do not; the targets themselves do, with a smaller penalty."""
    rng = np.random.default_rng(0)
    noise = rng.permutation(Y).astype(float)
    for labels, helps in ((noise, False), (TARGETS, True)):
        model = BoostingCV((None, "labels"), context="zscore")
        model.fit(Training(X, TARGETS, QUERIES, labels=labels))
        assert ("labels" in model.sizes_) == ("labels" in model.shares_) == helps
        assert ("labels" in model.dropped_) == ("labels dropped" in model.summary()) == (not helps)


def test_a_loss_is_compared_with_as_many_trees_of_the_losses_before_it(small):
    search = module._SizeSearch(fit(), Training(X, TARGETS, QUERIES, labels=Y.astype(float)))
    search.learn(None)
    first = search.grown["targets"]
    n_grown = [70 // first.n_leaves * 2**k for k in range(len(first.stages))]
    assert len(first.stages) > 1 and n_grown[-2] < first.n_grown
    for stage in range(len(first.stages)):
        other = module._SizeSearch(search._model, search._training)
        other_first = other._first_trees(None, (first.n_leaves,), first.wanted * first.scale)
        other_first.grow_to(n_grown[stage])
        np.testing.assert_array_equal(
            np.concatenate(first.stages[stage]), np.concatenate(other_first._held)
        )


# -------------------------------------------------------------------- logarithms


def purchases(n_queries=60):
    """One document is relevant: the best one, more or less, of each query."""
    rng = np.random.default_rng(0)
    queries = Queries.uniform(n_queries, 10)
    table = rng.normal(size=(queries.n_rows, 5))
    utility = table @ [2.0, -2.0, 1.0, 1.0, 0.0] + rng.gumbel(size=queries.n_rows)
    labels = (utility == queries.broadcast(queries.max(utility))).astype(float)
    return table, labels, queries


@pytest.mark.parametrize("weighs", [False, True])
def test_a_leaf_is_a_newton_step_of_the_cross_entropy_of_its_queries(weighs):
    """With the curvature of the Poisson deviance, whose level is the best one for each query."""
    table, labels, queries = purchases()
    weight = np.random.default_rng(1).choice([0.5, 2.0], queries.n_rows) if weighs else None
    mass = np.ones(queries.n_rows) if weight is None else weight
    like = HistGradientBoostingRegressor(
        loss="poisson", max_leaf_nodes=7, l2_regularization=0.5, random_state=0
    )
    codes = np.append(queries.codes, queries.codes + queries.n_queries)
    binned = BinnedTable(table, weight, table, 0, codes)
    rows, start = np.arange(queries.n_rows), table[:, 0]
    what = rows, rows + queries.n_rows, labels, weight, 0
    booster = Booster(like, binned, *what, start=np.append(start, start))
    scores = booster.baseline + start
    for after in booster.grow([0.1] * 5):
        share = mass * np.exp(scores)
        share *= queries.broadcast(queries.sum(mass * labels) / queries.sum(share))
        steps = np.round(after - scores, 12)
        assert len(np.unique(steps)) == 7
        for step in np.unique(steps):
            leaf = steps == step
            wanted = 0.1 * (mass * labels - share)[leaf].sum() / (share[leaf].sum() + 0.5)
            assert step == pytest.approx(wanted, rel=1e-5)
        scores = after


@pytest.mark.parametrize("loss", ["poisson", "poisson_labels"])
def test_poisson_boosters_have_the_least_cross_entropy(small, monkeypatch, loss):
    monkeypatch.setattr(module, "_MOST_SPARE", 7_000)
    table, labels, queries = purchases()
    model = BoostingCV((loss,)).fit(Training(table, labels, queries, labels=labels))
    n_trees, leaves = model.sizes_[loss]
    n_more = min(n_trees + 5, 60)
    errors, scores = np.zeros(n_more), np.zeros(len(labels))
    like = HistGradientBoostingRegressor(
        loss="poisson", max_leaf_nodes=leaves, l2_regularization=5.0, random_state=0,
        min_samples_leaf=len(labels) * 2 // 150,
    )  # fmt: skip
    binned = BinnedTable(table, None, None, 0, queries.codes)
    for fold in range(3):
        inside = np.flatnonzero(queries.broadcast(model.fold_of_query_ != fold))
        out, others = queries.select(model.fold_of_query_ == fold)
        booster = Booster(like, binned, inside, out, labels[inside], None, fold)
        for number, found in enumerate(booster.grow([0.1] * n_more)):
            share = np.exp(found) / others.broadcast(others.sum(np.exp(found)))
            errors[number] -= labels[out] @ np.log(share)
        scores += np.log(merge_boosters([booster], [n_trees], [1.0], 0.0).predict(table)) / 3
    assert 10 < n_trees == 1 + np.argmin(errors)
    # the mean of the logarithms, with a power and a level that suit the held-out labels
    found = np.log(model.predict(table, queries))
    weight = model.weights_[loss]
    np.testing.assert_allclose(np.ptp(found - weight * scores), 0, atol=1e-9)
    assert model.regressor_.loss == "poisson" and model.learns_targets == (loss == "poisson")
    np.testing.assert_allclose(model.regressor_.predict(table), np.exp(found), rtol=1e-12)
    assert model.predict(table, queries).mean() == pytest.approx(0.1, abs=0.03)


def test_the_unit_of_targets_does_not_matter_to_logarithms(small):
    table, labels, queries = purchases()
    losses = (None, "poisson", "poisson_labels")
    models = {
        factor: BoostingCV(losses).fit(
            Training(table, factor * labels, queries, labels=factor * labels)
        )
        for factor in (1, 1e-9, 1e6)
    }
    wanted = models[1].predict(table, queries)
    for factor, model in models.items():
        assert model.sizes_ == models[1].sizes_
        np.testing.assert_allclose(model.predict(table, queries), factor * wanted, rtol=1e-5)


def test_scores_of_rare_documents_are_what_is_expected_of_them():
    """So that rules, which weigh them against each other, are decoded for the best expectation."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, 12_000)
    chance = np.array([0.005, 0.02, 0.1, 0.4])
    labels = (rng.random(len(kind)) < chance[kind]).astype(float)
    table, queries = np.eye(4)[kind], Queries.uniform(600, 20)
    model = BoostingCV((None, "poisson", "poisson_labels"))
    model.fit(Training(table, labels, queries, labels=labels))
    scores = model.predict(np.eye(4), Queries.single(4))
    np.testing.assert_allclose(scores / scores.sum(), chance / chance.sum(), atol=0.05)


@pytest.mark.parametrize("loss", ["ndcg", "spearman"])
def test_the_poisson_deviance_learns_the_expected_targets(loss):
    """It is a Bregman divergence; negative targets are shifted, by the same number in a query."""
    rng = np.random.default_rng(0)
    kinds = np.tile(np.arange(3), 400)
    y = np.where(kinds == 0, rng.choice([0, 4], len(kinds)), kinds)
    groups = np.repeat(np.arange(400), 3)
    counts = HistGradientBoostingRegressor(
        loss="poisson", learning_rate=0.3, max_iter=200, min_samples_leaf=1
    )
    ranker = CalibratedRanker(counts, loss=loss, context=None).fit(kinds[:, None], y, groups=groups)
    queries = Queries.from_groups(groups)
    targets = ranker.loss_.training_targets(y, queries)
    targets = targets - queries.broadcast(np.minimum(queries.min(targets), 0))
    means = [targets[kinds == kind].mean() for kind in range(3)]
    scores = ranker.decision_function(np.arange(3)[:, None])
    np.testing.assert_allclose(scores, means, rtol=1e-3)
    assert ranker.score(kinds[:, None], y, groups=groups) > 0


def test_the_members_rank_for_the_loss_and_not_for_net_borda_scores():
    """A document of grade 4 or 0 has the larger gain, and one of grade 2 is preferred more often.

    Net Borda scores alone are therefore not consistent for NDCG, and as a second member they do no
    harm.
    """
    rng = np.random.default_rng(0)
    kinds = np.tile(np.repeat([0, 1], 3), 500)
    y = np.where(kinds == 0, rng.choice([0, 4], len(kinds), p=[0.55, 0.45]), 2)
    groups = np.repeat(np.arange(500), 6)
    orders, values = {}, {}
    for loss in ("ndcg", "pd_by_scores"):
        ranker = CalibratedRanker(loss=loss).fit(kinds[:, None], y, groups=groups)
        orders[loss] = ranker.predict([[0], [1]], groups=[0, 0]).tolist()
        ranks = ranker.predict(kinds[:, None], groups=groups)
        values[loss] = get_loss("ndcg").metric(y, ranks, Queries.from_groups(groups)).mean()
    assert orders == {"ndcg": [1, 2], "pd_by_scores": [2, 1]}
    assert values["ndcg"] > values["pd_by_scores"] + 0.05


def test_which_labels_have_poisson_boosters(few_trees, usual, all_losses):
    table, labels, queries = purchases()
    groups = queries.codes
    names = ["targets", "poisson", "poisson_labels"]
    table[:, 0] += groups  # a column with a context
    graded = np.where(labels > 0, 1.0 + (groups > 30), 0.0)
    graded[np.arange(len(labels)) % 17 == 0] = 1.0
    for y in (labels, 5 + 2.0 * labels[::-1], graded):
        default = CalibratedRanker().fit(table, y, groups=groups)
        found = list(default.model_.sizes_)
        assert found == names[:1] + ["pd_by_scores"] * (y is graded) + names[1:]
        assert default.calibrated_over_ == usual.calibrated_over_
        single = CalibratedRanker("boosting").fit(table, y, groups=groups)
        assert list(single.model_.sizes_) == ["poisson"]
    stack = CalibratedRanker("stacked").fit(table, labels, groups=groups).model_
    assert list(stack.weights_) == ["targets", "pd_by_scores", *names[1:], "forest"]
    frequent = labels + (np.arange(len(labels)) % 5 == 0)
    assert "poisson" not in CalibratedRanker().fit(table, frequent, groups=groups).model_.sizes_
    pairs = CalibratedRanker(loss="pd").fit(table, labels, groups=groups)
    assert "poisson" not in pairs.model_.scores_.sizes_


@pytest.mark.parametrize("seed", range(12))
def test_any_table_with_few_relevant_documents_is_learned(few_trees, seed):
    """Levels, weights, losses, columns and queries of all kinds; the order of rows is not seen."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, rng.integers(5, 12))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    y = (rng.random(len(groups)) < 0.1) * rng.choice([0.5, 1, 3, 1000.0]) + rng.choice([0, -1, 2])
    table = rng.normal(size=(len(y), 3)) * rng.choice([0, 1e-9, 1, 1e9], 3)
    table[rng.random(table.shape) < 0.1] = np.nan
    weight = rng.choice([0.0, 0.5, 1, 7], len(y)) if seed % 2 else np.ones(len(y))
    loss = rng.choice(["dcg@5", "precision@2", "spearman", "pd_by_scores"])
    if (
        loss == "precision@2"
        or np.ptp(y) == 0
        or (loss == "dcg@5" and (y.min() < 0 or y.max() > 9))
    ):
        y = np.where(np.arange(len(y)) == sizes[0], 1.0, 0.0)
    ranker = CalibratedRanker(rng.choice([None, "boosting"]), loss=str(loss))
    order = rng.permutation(len(y))
    scores = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rows in (slice(None), order):
            try:
                ranker.fit(table[rows], y[rows], groups=groups[rows], sample_weight=weight[rows])
            except ValueError as error:
                assert "weight" in str(error) or "undefined" in str(error), error
                scores.append(np.zeros(len(y))[rows])
                continue
            scores.append(ranker.decision_function(table[rows], groups=groups[rows]))
    assert np.isfinite(scores[0]).all()
    # around few relevant documents, splits of several columns are equally good
    if np.count_nonzero((y > y.min()) & (weight > 0)) > 5:
        np.testing.assert_allclose(scores[0][order], scores[1], rtol=1e-6, atol=1e-9)


def test_a_fold_without_a_relevant_document_has_no_logarithm(small):
    table, labels, queries = purchases(6)
    labels[10:] = 0.0
    ranker = CalibratedRanker(loss="dcg").fit(table, labels, groups=queries.codes)
    assert list(ranker.model_.sizes_) == ["targets"]
    table, labels, queries = purchases(6)
    weight = np.where((labels > 0) & (queries.codes > 0), 0.0, 1.0)  # only one has a weight
    ranker.fit(table, labels, groups=queries.codes, sample_weight=weight)
    assert list(ranker.model_.sizes_) == ["targets"]
    model = BoostingCV(("poisson", "poisson_labels")).fit(
        Training(
            table, labels * (queries.codes == 0), queries, labels=labels * (queries.codes == 0)
        )
    )
    assert list(model.sizes_) == ["targets"]


def test_targets_that_are_the_same_in_each_query_are_learned_once(small, all_losses):
    table, labels, queries = purchases()
    for losses in ((None, "pd_by_scores"), ("poisson", "poisson_labels")):
        for context, wanted in ((None, 1), ("zscore", 1 if losses[0] is None else 2)):
            model = BoostingCV(losses, context=context)
            model.fit(Training(table, labels, queries, labels=labels))
            assert len(model.sizes_) == wanted


# -------------------------------------------------------------------- inside the ranker


def test_when_it_is_the_default(small, all_losses):
    found = CalibratedRanker().fit(X, Y, groups=G).model_
    assert list(found.sizes_) == ["targets", "pd_by_scores", "labels"]
    by_borda = CalibratedRanker(loss="pd_by_scores").fit(X, Y, groups=G)
    assert list(by_borda.model_.sizes_) == ["targets", "labels"]
    boosting = CalibratedRanker("boosting").fit(X, Y, groups=G)
    assert list(boosting.model_.sizes_) == ["targets"]
    first = np.flatnonzero(np.append(True, G[1:] != G[:-1]))
    labels = preference_labels(np.column_stack([first, first + 1]), G)
    votes = CalibratedRanker(loss="pd_by_scores").fit(X, labels)
    assert list(votes.model_.sizes_) == ["targets"]
    pairs = CalibratedRanker(loss="pd").fit(X, Y, groups=G)
    assert isinstance(pairs.model_, ResidualPairModel)
    assert list(pairs.model_.scores_.sizes_) == ["targets", "labels"]


CANNOT_CHOOSE = r"^\d (query|queries) of .* so it has \d+ trees of 7 leaves. X_val, y_val"


@pytest.mark.parametrize("n_queries", [1, 2, 4, 5])
def test_few_queries(small, n_queries):
    some = np.isin(G, np.unique(G)[:n_queries])
    for name in (None, "boosting"):
        with nullcontext() if n_queries >= 5 else pytest.warns(UserWarning, match=CANNOT_CHOOSE):
            ranker = CalibratedRanker(name).fit(X[some], Y[some], groups=G[some])
        assert type(ranker.model_) is (BoostingCV if n_queries >= 5 else DocumentModel)
        assert ranker.score(X[some], Y[some], groups=G[some]) > 0.7


def test_queries_that_are_left_out_do_not_count(few_trees):
    few = np.isin(G, np.unique(G)[:5])
    y = np.where(G == G[0], 0, Y)  # NDCG is undefined on the first query
    with pytest.warns(UserWarning, match=CANNOT_CHOOSE):
        ranker = CalibratedRanker().fit(X[few], y[few], groups=G[few])
    assert type(ranker.model_) is DocumentModel


def test_queries_of_one_document_do_not_count(small):
    groups = np.where(G == G[0], G.max() + 1 + np.arange(len(G)), G)
    few = np.isin(G, np.unique(G)[:5])
    with pytest.warns(UserWarning, match=CANNOT_CHOOSE):
        ranker = CalibratedRanker().fit(X[few], Y[few], groups=groups[few])
    assert type(ranker.model_) is DocumentModel


def test_many_rows_and_relevant_documents_have_fewer_folds(small, monkeypatch):
    monkeypatch.setattr(division, "_PARTS", 3)
    monkeypatch.setattr(division, "_ROWS_TO_LEARN", 8 / 7 * len(Y))
    relevant = int((Y > QUERIES.broadcast(QUERIES.min(Y))).sum())
    for most, shares in ((0, [3, 1]), (relevant, [3, 1]), (1.7 * relevant, [3, 3])):
        monkeypatch.setattr(division, "_RELEVANT_TO_LEARN", most)
        ranker = CalibratedRanker("boosting").fit(X, Y, groups=G)
        model = ranker.model_
        fold, part = (division.query_folds(X, QUERIES, n, Y) for n in (7, 3))
        n_trees, leaves = model.sizes_["targets"]
        like = clone(model.regressor_).set_params(max_leaf_nodes=leaves, l2_regularization=50.0)
        table, errors, boosters = model._table(X, QUERIES)[0], 0, []
        binned = BinnedTable(table, None, None, 0)
        for number, n_parts in enumerate(shares):
            of_fold = model.fold_of_query_ == number
            np.testing.assert_array_equal(of_fold, (fold == number) & (part < n_parts))
            rows, _ = QUERIES.select((fold != number) & (part < n_parts))
            held, others = QUERIES.select(of_fold)
            boosters.append(Booster(like, binned, rows, held, CENTRED[rows], None, number))
            wanted, staged = CENTRED[held], boosters[-1].grow([0.1] * 60)
            errors += np.array([np.square(others.center(s) - wanted).sum() for s in staged])
        assert n_trees == 1 + np.argmin(errors[: n_trees + 5])
        # boosters count by their share of the queries
        scales = model.weights_["targets"] * np.array(shares) / sum(shares)
        merged = merge_boosters(boosters, [n_trees] * 2, scales)
        np.testing.assert_allclose(model.regressor_.predict(table), merged.predict(table))
        passed = CalibratedRanker(BoostingCV(context="auto")).fit(X, Y, groups=G)
        assert passed.model_.summary() == model.summary()
    monkeypatch.setattr(division, "_RELEVANT_TO_LEARN", 2 * relevant)
    assert set(CalibratedRanker().fit(X, Y, groups=G).model_.fold_of_query_) == {0, 1, 2}


def test_few_relevant_documents_are_learned_with_a_share_of_the_others(monkeypatch):
    monkeypatch.setattr(division, "_ROWS_TO_LEARN", 0)
    n, model = 100 * 30, BoostingCV()
    rng = np.random.default_rng(0)
    table, y = np.where(rng.random((n, 1)) < 0.5, 0.0, rng.normal(size=(n, 2))), np.zeros(n)
    y[::30] = 1  # the first of each query; half of the rows are equal
    queries = Queries.from_groups(np.arange(n) // 30)
    weight = rng.choice([1.0, 3.0], n)
    drawn = []
    for rows in (np.arange(n), rng.permutation(n)):
        data = Training(table[rows], y[rows], queries.take(rows), weight[rows])
        _, folds = division.divide_queries(model, data, all_rows=False)
        drawn.append([set(rows[fold.rows]) for fold in folds])
        for fold in folds:
            others, equal = data.targets[fold.rows] == 0, data.X[fold.rows, 0] == 0
            assert (~others).sum() == n // 30 - fold.queries.n_queries
            assert others.sum() == pytest.approx(20 * (~others).sum(), rel=0.05)
            assert equal.mean() == pytest.approx(0.5, abs=0.03)
            ratios = fold.weight / data.weight[fold.rows]
            np.testing.assert_allclose(ratios[others] / ratios[~others][0], 29 / 20)
    # the order of rows does not matter, but which of several equal ones are drawn
    for some, same in zip(*drawn, strict=True):
        assert {i for i in some if table[i, 0]} == {i for i in same if table[i, 0]}


def test_a_seed_is_any_that_scikit_learn_takes(small):
    scores = [
        CalibratedRanker(BoostingCV(random_state=seed)).fit(X, Y, groups=G).decision_function(X, G)
        for seed in (3, np.int32(3), None, np.random.RandomState(3))
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    with pytest.raises(ValueError, match="cannot be used to seed"):
        CalibratedRanker(BoostingCV(random_state="3")).fit(X, Y, groups=G)


def test_fit_says_what_it_chose(small, capsys):
    ranker = CalibratedRanker(verbose=1).fit(X, Y, groups=G)
    n_trees, leaves = ranker.model_.sizes_["labels"]
    printed = capsys.readouterr().out
    assert "fitted HistGradientBoostingRegressor: targets, " in printed
    assert f"labels, {n_trees} trees of {leaves} leaves, share 0." in printed


# -------------------------------------------------------------------- tables


def frame(**columns):
    return pd.DataFrame(X, columns=list("abcde")).assign(**columns)


def test_categories_have_boosters_that_are_fitted_to_all_queries(small, all_losses):
    kind = pd.Categorical(np.where(G == G[0], "rare", np.where(X[:, 0] > 0, "u", "v")))
    table = frame(kind=kind)
    ranker = CalibratedRanker().fit(table, Y, groups=G)
    model = ranker.model_
    assert model.regressor_.n_iter_ == sum(
        n_trees for name, (n_trees, _) in model.sizes_.items() if model.weights_[name]
    )
    # by hand, with the encoders of each booster
    seen, _ = model._table(table, QUERIES)
    total = np.zeros(len(Y))
    for name, loss in zip(model.sizes_, LOSSES, strict=True):
        n_trees, leaves = model.sizes_[name]
        plain = name == "labels" and bool(model.context_)
        learned = Y if name == "labels" else QUERIES.center(
            TARGETS if loss is None else get_loss(loss).training_targets(Y, QUERIES)
        )  # fmt: skip
        booster = clone(model.regressor_).set_params(
            max_iter=n_trees, max_leaf_nodes=leaves,
            l2_regularization=5.0 if name == "labels" else 50.0,
        )  # fmt: skip
        booster.fit(table if plain else seen, learned)
        total += model.weights_[name] * booster.predict(table if plain else seen)
    np.testing.assert_allclose(model.predict(table, QUERIES), total, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [None, "boosting"])  # tests/models/test_stacked.py has the other
def test_columns_that_a_fold_does_not_know(few_trees, name):
    inside = G == G[0]
    tables = [
        frame(k=pd.Categorical(np.where(inside, "u", None))),
        frame(k=np.where(inside, 1.5, np.nan)),
        frame(k=np.nan),
        frame(k=1.0),
        frame(k=pd.array(np.where(inside, True, None), dtype="boolean")),
        np.column_stack([X, np.where(inside, np.inf, 0.0)]),
    ]
    for table in tables if name is None else tables[::3]:
        ranker = CalibratedRanker(name).fit(table, Y, groups=G)
        assert ranker.score(table, Y, groups=G) > 0.8


@pytest.mark.parametrize("regressor", ["boosting", HistGradientBoostingRegressor(max_iter=20)])
def test_a_column_without_a_number(few_trees, regressor):
    """Whether models are fitted to all queries, or early stopping holds some of them out."""
    table = X.copy()
    table[:, 1] = np.nan
    polars = pytest.importorskip("polars")
    frame = pd.DataFrame(table, columns=list("abcde"))
    for each in (table, frame.astype({"b": "Float64"}), polars.from_pandas(frame)):
        for share in (None, 0.2):
            ranker = CalibratedRanker(regressor, validation_queries=share, random_state=0)
            assert ranker.fit(each, Y, groups=G).score(each, Y, G) > 0.8


def test_a_grade_in_one_query_only(small):
    y = np.minimum(Y, 1)
    y[np.flatnonzero(G == G[0])[0]] = 4
    assert CalibratedRanker().fit(X, y, groups=G).score(X, y, groups=G) > 0.7


def test_columns_that_are_constant_have_nothing_to_split(small):
    with pytest.warns(UserWarning, match="has learned nothing"):
        ranker = CalibratedRanker().fit(np.ones((len(Y), 2)), Y, groups=G)
    assert np.ptp(ranker.decision_function(np.ones((len(Y), 2)), groups=G)) == 0


def test_without_the_targets_of_the_loss_nothing_is_promised(small, usual):
    ranker = CalibratedRanker(BoostingCV(("labels",))).fit(X, Y, groups=G)
    assert ranker.calibrated_over_.startswith("no distributions")
    both = CalibratedRanker(BoostingCV(("labels", None))).fit(X, Y, groups=G)
    assert both.calibrated_over_ == usual.calibrated_over_


def test_a_saved_model_does_not_hold_the_rows(usual):
    arrays = [value for value in vars(usual.model_).values() if isinstance(value, np.ndarray)]
    assert arrays and len(Y) not in map(len, arrays)


def test_wrong_parameters():
    with pytest.raises(ValueError, match="cv must be a whole number >= 2; got 1"):
        fit(cv=1)
    with pytest.raises(ValueError, match="cv=30 folds, but there are only 24 queries"):
        fit(cv=30)
    for losses in ("labels", ()):
        with pytest.raises(ValueError, match="losses must be a list of losses"):
            fit(losses)
    with pytest.raises(ValueError, match=r"Boosters learn scores, but .* are pairs"):
        fit(("pd",))
    with pytest.raises(ValueError, match="needs the labels"):
        BoostingCV(("labels",)).fit(Training(X, TARGETS, QUERIES))
    assert clone(BoostingCV(("labels",), cv=4)).get_params()["cv"] == 4


# -------------------------------------------------------------------- predictions


def with_gaps():
    rng = np.random.default_rng(0)
    table = X.copy()
    for value in (np.nan, np.inf, -np.inf):
        table[rng.random(X.shape) < 0.07] = value
    return table


@pytest.mark.parametrize("n_leaves", [2, 3, 31, 64, 65, None])
@pytest.mark.parametrize("least", [1, len(Y)])  # with all rows in a leaf, it is the only one
def test_trees_in_arrays_predict_the_same(n_leaves, least):
    table = np.tile(with_gaps(), 60)  # a number of columns that 8 bits cannot hold
    regressor = HistGradientBoostingRegressor(
        max_iter=20, max_leaf_nodes=n_leaves, min_samples_leaf=least, early_stopping=False
    ).fit(table, Y)
    few = n_leaves is not None and n_leaves <= 64
    assert FlatTrees.suits(regressor, table) == (KERNELS == "compiled" and few)
    for n_rows in (1, 31, 32, 33, len(table)):
        if FlatTrees.suits(regressor, table):
            found = FlatTrees(regressor).predict(table[:n_rows])
            np.testing.assert_array_equal(found, regressor.predict(table[:n_rows]))


def test_a_ranker_reads_trees_as_arrays(small):
    table = with_gaps()
    regressor = HistGradientBoostingRegressor(max_iter=20, early_stopping=False).fit(table, Y)
    for other in (
        HistGradientBoostingRegressor(max_iter=2, loss="gamma").fit(table, Y + 1),
        HistGradientBoostingRegressor(max_iter=2, categorical_features=[0]).fit(
            np.column_stack([G % 3, table]), Y
        ),
    ):
        assert not FlatTrees.suits(other, table)
    ranker = CalibratedRanker(regressor, context=None).fit(table, Y, groups=G)
    before = len(pickle.dumps(ranker))
    scores = ranker.decision_function(table, groups=G)
    assert len(pickle.dumps(ranker)) == before  # the arrays are not stored
    wanted = ranker.model_.regressor_.predict(table) * ranker.model_._unit
    np.testing.assert_array_equal(scores, wanted)
    named = pd.DataFrame(table, columns=list("abcde"))
    again = CalibratedRanker(regressor, context=None).fit(named, Y, groups=G)
    np.testing.assert_array_equal(again.decision_function(named, groups=G), wanted)
    usual = CalibratedRanker(regressor).fit(table, Y, groups=G).decision_function(table, groups=G)
    again = CalibratedRanker(regressor).fit(named, Y, groups=G)  # with context columns
    np.testing.assert_array_equal(again.decision_function(named, groups=G), usual)
    # another regressor in its place is not confused with the first
    ranker.model_.regressor_ = HistGradientBoostingRegressor(max_iter=1).fit(table, -Y)
    assert (ranker.decision_function(table, groups=G) != scores).any()


KINDS = {
    "text": [f"brand {k}" for k in range(60)],
    "numbers": [5, 3, 40, -1],
    "fractions": [0.5, 1.0, 2.5],
    "yes or no": [True, False],
}


def with_categories(n, rng, n_known=None):
    """A frame of numbers and categories with missing entries, and a target that needs both."""
    table = pd.DataFrame({"b": rng.normal(size=n)})
    for name, known in KINDS.items():
        column = pd.Series(rng.choice(np.array(known[:n_known], dtype=object), n)).astype(object)
        column[rng.random(n) < 0.05] = None
        table[name] = column.astype(pd.CategoricalDtype(known[:n_known]))
    table["a"] = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)).astype(np.float32)
    table["whole"] = rng.integers(0, 9, n)
    effect = sum(table[name].cat.codes % 3 for name in KINDS)
    return table, effect + table["b"] + rng.normal(size=n)


@pytest.mark.parametrize("n_known", [3, 40])
def test_missing_categories_of_polars(small, n_known):
    """To scikit-learn, they are a category: scores are those of the fitted regressor."""
    pl = pytest.importorskip("polars")
    kinds = [None if k % 5 == 0 else f"k{k % n_known}" for k in range(len(Y))]
    table = pl.DataFrame({"a": X[:, 0], "k": pl.Series(kinds).cast(pl.Categorical)})
    y = np.where(np.arange(len(Y)) % 5 == 0, 2, Y > 1)
    ranker = CalibratedRanker().fit(table, y, groups=G)
    wanted = ranker.model_.regressor_.predict(ranker.transform_table(table, groups=G))
    np.testing.assert_array_equal(ranker.decision_function(table, groups=G), wanted)


def test_weights_without_weights_of_the_validation_rows(small):
    held, weight = G > 15, np.arange(1.0, len(Y) + 1)
    what = {"X_val": X[held], "y_val": Y[held], "groups_val": G[held]}
    ranker = CalibratedRanker(BoostingCV(LOSSES))
    ranker.fit(X[~held], Y[~held], groups=G[~held], sample_weight=weight[~held], **what)
    assert ranker.score(X[held], Y[held], groups=G[held]) > 0.7


@pytest.mark.skipif(KERNELS != "compiled", reason="the booster itself predicts without a compiler")
@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_trees_in_arrays_read_categories_as_the_booster_does(loss):
    """Also in another order of the categories, with missing and with unknown ones."""
    rng = np.random.default_rng(0)
    table, y = with_categories(2000, rng, n_known=3)
    table["empty"] = pd.Categorical([None] * len(table), categories=["x"])
    regressor = HistGradientBoostingRegressor(
        loss=loss, max_iter=40, categorical_features="from_dtype"
    )
    regressor.fit(table, np.exp(y / 4) if loss == "poisson" else y)
    assert any(tree.nodes["is_categorical"].any() for (tree,) in regressor._predictors)
    flat = FlatTrees(regressor)
    for n_known in (3, None):
        other, _ = with_categories(300, rng, n_known)
        other["empty"] = pd.Categorical(["x", None] * 150)
        others = [other, other.iloc[:1], other.iloc[:0]]
        for name in KINDS:
            turned = other[name].cat.reorder_categories(other[name].cat.categories[::-1])
            others.append(other.assign(**{name: turned}))
        for each in others:
            assert FlatTrees.suits(regressor, each)
            found = flat.predict(each)
            wanted = regressor.predict(each) if len(each) else np.zeros(0)
            np.testing.assert_array_equal(found, wanted)
    assert not FlatTrees.suits(regressor, other.assign(text=other["text"].astype(object)))


@pytest.mark.skipif(KERNELS != "compiled", reason="the booster itself predicts without a compiler")
def test_the_default_ranks_few_and_many_rows_with_categories_alike(small, few_trees, monkeypatch):
    rng = np.random.default_rng(0)
    table, y = with_categories(600, rng)
    groups = np.repeat(np.arange(60), 10)
    ranker = CalibratedRanker(loss="ndcg").fit(table, (y > 2).astype(int), groups=groups)
    assert FlatTrees.suits(
        ranker.model_.regressor_, ranker.model_._table(table, Queries.from_groups(groups))[0]
    )
    fast = ranker.decision_function(table, groups=groups)
    monkeypatch.setattr(FlatTrees, "suits", lambda *_: False)
    np.testing.assert_array_equal(fast, ranker.decision_function(table, groups=groups))
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(fast, fast[0])


def test_boosters_of_labels_read_frequent_categories_too(small, few_trees):
    """They read X without context columns, and histograms take no more than 255 categories."""
    rng = np.random.default_rng(0)
    table, y = with_categories(900, rng)
    table["many"] = pd.Categorical([f"k{k}" for k in rng.integers(400, size=900)])
    groups = np.repeat(np.arange(90), 10)
    model = BoostingCV((None, "labels"), context="auto")
    ranker = CalibratedRanker(model).fit(table, (y > 2).astype(int), groups=groups)
    assert ranker.model_.context_ and "labels" in ranker.model_.sizes_
    assert len(ranker.model_._frequent["many"]) == 254
    assert np.isfinite(ranker.decision_function(table, groups=groups)).all()


def test_merged_boosters_predict_the_weighted_sum():
    rows, binned = np.arange(100), BinnedTable(X, None, None, 0)
    held, parts = np.arange(100, len(Y)), []
    for n, n_columns in ((3, None), (8, 2)):  # the second reads the first two columns alone
        like = HistGradientBoostingRegressor(max_leaf_nodes=7, random_state=0)
        y = Y[rows].astype(float)
        parts.append(Booster(like, binned, rows, held, y, None, 0, n_columns))
        *_, scores = parts[-1].grow([0.1] * n)
        alone = merge_boosters(parts[-1:], [n], [1.0])
        np.testing.assert_allclose(alone.predict(X[held]), scores, rtol=1e-12)
    splits = [node for (tree,) in alone._predictors for node in tree.nodes if not node["is_leaf"]]
    assert {node["feature_idx"] for node in splits} == {0, 1}
    both = [
        merge_boosters([one], [n], [1.0]).predict(X) for one, n in zip(parts, (3, 8), strict=True)
    ]
    merged = merge_boosters(parts, [3, 8], [2.0, -0.5])
    np.testing.assert_allclose(merged.predict(X), 2 * both[0] - 0.5 * both[1], rtol=1e-12)
    assert merged.n_iter_ == merged.max_iter == 11
    level = merge_boosters(parts, [3, 8], [2.0, -0.5], 1.5)
    np.testing.assert_allclose(level.predict(X), np.exp(merged.predict(X) + 1.5), rtol=1e-12)
    nothing = merge_boosters(parts, [3, 8], [0.0, 0.0])
    assert (nothing.predict(X) == 0).all()
