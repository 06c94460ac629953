"""Objectives and metrics of LightGBM and XGBoost, called as the libraries call them."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_rankcal import BoostedRanker, sizes_to_groups
from sklearn_rankcal.boosting import (
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)
from sklearn_rankcal.boosting._derivatives import Derivatives  # as libraries call it
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.losses import NDCG, PD, get_loss
from sklearn_rankcal.metrics import map_score, ndcg_score, pairwise_disagreement_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import SURROGATES, Bregman, PointwiseMargin, Softmax, get_surrogate

from ..boosting_tools import regressor
from ..metric_data import per_query

DATA = make_ranking(40, (3, 9), 6, random_state=0)
DATA.y[np.unique(DATA.groups, return_index=True)[1]] = 2  # NDCG is defined on every query
SIZES = np.bincount(DATA.groups)
QUERIES = Queries.from_groups(DATA.groups)
N = len(DATA.y)
SCORES = np.random.default_rng(0).normal(size=N) * 0.3


def targets_of(surrogate, loss="ndcg"):
    loss = get_loss(loss).resolve(DATA.y.astype(float))
    return surrogate.targets(loss, DATA.y.astype(float), QUERIES)


# -------------------------------------------------------------------- the numbers


@pytest.mark.parametrize("name", SURROGATES)
def test_derivatives_are_those_of_the_surrogate_times_one_number(name):
    surrogate = get_surrogate(name)
    targets = targets_of(surrogate)
    surrogate = surrogate.resolve(targets)
    derivatives = Derivatives(surrogate, targets, QUERIES)
    gradient, curvature = derivatives(SCORES)
    _, slope, bend = surrogate.evaluate(targets, SCORES + derivatives.start, QUERIES)
    factor = gradient @ slope / (slope @ slope)
    assert factor > 0
    np.testing.assert_allclose(gradient, factor * slope, rtol=1e-9, atol=1e-12)
    assert (curvature > 0).all()
    above = bend * factor > curvature.min() * 1e-9
    np.testing.assert_array_less(bend[above] * factor, curvature[above] * (1 + 1e-9))
    _, at_start = derivatives(np.zeros(N))
    if name not in ("ranksvm", "required_margin"):  # the hinge has no curvature
        assert at_start.mean() == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize(
    "surrogate, wanted",
    [
        ("pointwise_squared", lambda v: v),
        ("pointwise_logistic", lambda v: np.log(v / (2 * 1.0 - v))),
        ("generalized_kl", np.log),
        ("softmax", lambda v: 0.0),
        ("cosine", lambda v: 1.0),
        (
            Bregman(lambda x: x**2, lambda x: 2 * x, lambda x: 2 + 0 * x, np.sinh, np.cosh),
            np.arcsinh,
        ),
    ],
)
def test_boosting_starts_at_the_best_constant_score(surrogate, wanted):
    v = np.array([1.0, 0.25, 0.0, 0.5])
    derivatives = Derivatives(get_surrogate(surrogate), v, Queries.uniform(2, 2))
    assert derivatives.start == pytest.approx(wanted(v.mean()), abs=1e-9)
    weighted = Derivatives(get_surrogate(surrogate), v, Queries.uniform(2, 2), np.array([3.0, 1.0]))
    assert weighted.start == pytest.approx(wanted((3 * 1.25 + 0.5) / 8), abs=1e-9)


def test_utilities_of_0_start_at_0():
    gradient, curvature = Derivatives(Softmax(), np.zeros(4), Queries.uniform(2, 2))(np.zeros(4))
    assert gradient.tolist() == curvature.tolist() == [0.0] * 4
    assert Derivatives(get_surrogate("generalized_kl"), np.zeros(4), Queries.single(4)).start == 0


@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("size", [1e3, 1e30])
def test_no_number_overflows_or_is_nan(name, size):
    gradient, curvature = lightgbm_objective(name)(DATA.y, SCORES * size, None, SIZES)
    for numbers in (gradient, curvature):
        assert np.isfinite(numbers.astype(np.float32)).all()
    assert (curvature > 0).all()


@pytest.mark.parametrize("name", ["softmax", "pairwise_logistic", "cosine", "ranksvm"])
def test_the_scale_of_gains_and_weights_does_not_matter(name):
    objective = lightgbm_objective(name, loss=NDCG(gain=lambda y: y))
    larger = lightgbm_objective(name, loss=NDCG(gain=lambda y: 1000 * y))
    weight = np.repeat(np.random.default_rng(2).random(len(SIZES)) + 0.1, SIZES)
    one = objective(DATA.y, SCORES, weight, SIZES)
    for other in (
        larger(DATA.y, SCORES, weight, SIZES),
        objective(DATA.y, SCORES, 1e6 * weight, SIZES),
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_the_weight_of_a_query_is_the_mean_of_its_rows():
    objective = lightgbm_objective()
    rng = np.random.default_rng(3)
    rows = rng.random(N) + 0.1
    mean = np.repeat([rows[DATA.groups == q].mean() for q in range(len(SIZES))], SIZES)
    one, other = (objective(DATA.y, SCORES, w, SIZES) for w in (rows, mean))
    np.testing.assert_allclose(one, other, rtol=1e-12)
    plain = objective(DATA.y, SCORES, None, SIZES)
    for number in (0, 1):
        ratio = one[number] / plain[number]
        np.testing.assert_allclose(ratio / ratio[0], mean / mean[0], rtol=1e-9)
    for name in ("softmax", "pointwise_squared"):
        _, curvature = lightgbm_objective(name)(DATA.y, np.zeros(N), rows, SIZES)
        assert curvature.mean() == pytest.approx(1.0)
    floor = lightgbm_objective("ranksvm")(DATA.y, SCORES, rows, SIZES)[1]
    ratio = floor / lightgbm_objective("ranksvm")(DATA.y, SCORES, None, SIZES)[1]
    np.testing.assert_allclose(ratio / ratio[0], mean / mean[0], rtol=1e-9)


@pytest.mark.parametrize("left_out", ["undefined", "weight"])
def test_queries_that_do_not_count_have_no_gradient(left_out):
    y, weight = DATA.y.copy(), np.repeat(1.0 + np.arange(len(SIZES)) % 3, SIZES)
    out = np.isin(DATA.groups, [0, 7, 39])
    (y if left_out == "undefined" else weight)[out] = 0
    for name in ("softmax", "pointwise_squared"):
        gradient, curvature = lightgbm_objective(name)(y, SCORES, weight, SIZES)
        assert not gradient[out].any() and not curvature[out].any()
        sizes = np.delete(SIZES, [0, 7, 39])
        alone = lightgbm_objective(name)(y[~out], SCORES[~out], weight[~out], sizes)
        np.testing.assert_allclose((gradient[~out], curvature[~out]), alone, rtol=1e-12)


def test_utilities_are_computed_once_for_each_data_set(monkeypatch):
    calls = []
    encode = NDCG.training_targets
    monkeypatch.setattr(NDCG, "training_targets", lambda *given: calls.append(1) or encode(*given))
    objective = lightgbm_objective()
    y, sizes = DATA.y.copy(), SIZES.copy()
    for _ in range(3):
        objective(y, SCORES, None, sizes)
        objective(y[::-1], SCORES, None, sizes[::-1])  # a second data set in turn
    assert len(calls) == 2
    before = objective(y, SCORES, None, sizes)[0]
    y[0] = 3  # the same memory with another label
    after = objective(y, SCORES, None, sizes)[0]
    assert len(calls) == 3 and (before != after).any()


def test_copies_and_pickles_contain_no_data():
    for function in (lightgbm_objective("ranknet"), lightgbm_metric("ndcg@5")):
        empty = len(pickle.dumps(function))
        function(DATA.y, SCORES, None, SIZES)
        assert len(pickle.dumps(function)) == empty
        again = copy.deepcopy(function)
        one, other = (each(DATA.y, SCORES, None, SIZES) for each in (function, again))
        np.testing.assert_equal(other, one)


def test_metrics_are_those_of_the_package():
    weight = np.repeat(np.arange(len(SIZES)) + 1.0, SIZES)
    scores = SCORES.round(1)  # with ties
    name, value, larger = lightgbm_metric("ndcg@3")(DATA.y, scores, weight, SIZES)
    assert (name, larger) == ("ndcg@3", True)
    wanted = ndcg_score(DATA.y, scores, k=3, groups=DATA.groups, sample_weight=weight)
    assert value == pytest.approx(wanted)
    shuffle = np.random.default_rng(0).permutation(N)
    share = 1 - per_query(pairwise_disagreement_loss, DATA.y, scores, groups=DATA.groups)
    total = PD().query_weight(DATA.y, QUERIES)
    value = lightgbm_metric("pd_by_scores")(DATA.y, scores, None, SIZES)[1]
    assert value == pytest.approx(np.average(share, weights=total))
    assert abs(value - share.mean()) > 1e-4
    metric = xgboost_metric("ndcg@3", groups=DATA.groups[shuffle])
    assert metric.__name__ == "ndcg@3"
    assert metric(DATA.y[shuffle], scores[shuffle], weight[shuffle]) == pytest.approx(wanted)


@pytest.mark.parametrize("name", ["softmax", "pairwise_logistic"])
def test_xgboost_objective_for_rows_in_any_order(name):
    wanted = lightgbm_objective(name)(DATA.y, SCORES, None, SIZES)
    shuffle = np.random.default_rng(0).permutation(N)
    names = np.array([f"query {g}" for g in DATA.groups])[shuffle]
    found = xgboost_objective(name, groups=names)(DATA.y[shuffle], SCORES[shuffle])
    np.testing.assert_allclose(found, np.array(wanted)[:, shuffle], rtol=1e-9)


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize("make", [lightgbm_objective, lambda: lightgbm_metric("ndcg")])
@pytest.mark.parametrize(
    "sizes, words",
    [
        (None, "no query sizes. Use LGBMRanker"),
        ([], "no query sizes"),
        (SIZES[1:], "add up to"),
        (np.append(SIZES, 0), "at least one row"),
    ],
)
def test_query_sizes_that_do_not_fit(make, sizes, words):
    with pytest.raises(ValueError, match=words):
        make()(DATA.y, SCORES, None, sizes)


def test_other_errors():
    with pytest.raises(ValueError, match="Unknown surrogate"):
        lightgbm_objective("sofmax")
    with pytest.raises(ValueError, match="Unknown loss"):
        xgboost_objective(loss="ndgc")
    with pytest.raises(ValueError, match="undefined on all 40 queries"):
        lightgbm_objective()(0 * DATA.y, SCORES, None, SIZES)
    with pytest.raises(ValueError, match="is a function of scores"):
        lightgbm_objective(loss="pd")(DATA.y, SCORES, None, SIZES)
    with pytest.raises(ValueError, match="groups has 3 entries"):
        xgboost_objective(groups=[0, 0, 1])(DATA.y, SCORES)
    with pytest.raises(ValueError, match="does not know the queries"):
        xgboost_objective()(DATA.y, SCORES)
    with pytest.raises(ValueError, match="There are 5 weights"):
        xgboost_objective(groups=DATA.groups)(DATA.y, SCORES, np.ones(5))
    hinge = lightgbm_objective(PointwiseMargin("smooth_hinge", eta=1e-6))
    with pytest.raises(ValueError, match="utilities of at most eta"):
        hinge(DATA.y, SCORES, None, SIZES)


# -------------------------------------------------------------------- inside the libraries


def rankers(**parameters):
    module = pytest.importorskip("lightgbm")
    inner = regressor("lightgbm", **parameters)
    return module.LGBMRanker(metric="None", **inner.get_params() | {"objective": None}), inner


@pytest.mark.parametrize("name", ["softmax", "pairwise_logistic", "pointwise_squared", "cosine"])
@pytest.mark.parametrize("weighted", [False, True])
def test_lightgbm_ranker_equals_boosted_ranker(name, weighted):
    ranker, inner = rankers()
    weight = np.repeat(np.arange(len(SIZES)) % 3 + 1.0, SIZES) if weighted else None
    ranker.set_params(objective=lightgbm_objective(name, "ndcg@10"))
    ranker.fit(DATA.X, DATA.y, group=SIZES, sample_weight=weight)
    ours = BoostedRanker(name, loss="ndcg@10", regressor=inner, context=None)
    ours.fit(DATA.X, DATA.y, groups=DATA.groups, sample_weight=weight)
    scores = ours.decision_function(DATA.X, groups=DATA.groups) - ours.model_.start_
    np.testing.assert_allclose(ranker.predict(DATA.X), scores, rtol=1e-6, atol=1e-9)
    assert np.ptp(scores) > 0.1


@pytest.mark.parametrize("scale", [0.5, 40.0])
def test_lightgbm_takes_float_labels_and_labels_above_31(scale):
    ranker, _ = rankers(n=5)
    y = DATA.y * scale
    ranker.set_params(objective=lightgbm_objective(loss=NDCG(gain="linear")))
    ranker.fit(
        DATA.X, y, group=SIZES, eval_X=DATA.X, eval_y=y, eval_group=[SIZES],
        eval_metric=lightgbm_metric(NDCG(gain="linear")),
    )  # fmt: skip
    found = ranker.evals_result_["training"]["ndcg"]
    wanted = ndcg_score(y, ranker.predict(DATA.X), groups=DATA.groups, gain="linear")
    assert found[-1] == pytest.approx(wanted) and found[-1] > found[0]


@pytest.mark.parametrize("name", ["softmax", "pointwise_logistic"])
def test_xgboost_regressor_train_and_boosted_ranker_agree(name):
    xgboost = pytest.importorskip("xgboost")
    inner = regressor("xgboost")
    bound = xgboost_objective(name, "ndcg", DATA.groups)
    of_regressor = clone(inner).set_params(objective=bound).fit(DATA.X, DATA.y)
    matrix = xgboost.DMatrix(DATA.X, DATA.y, qid=DATA.groups)
    parameters = {"max_depth": 3, "eta": 0.2, "base_score": 0.0, "nthread": 1}
    results: dict = {}
    booster = xgboost.train(
        parameters, matrix, 30, obj=xgboost_objective(name, "ndcg"), evals=[(matrix, "train")],
        custom_metric=xgboost_metric("ndcg@3"),
        evals_result=results, verbose_eval=False,
    )  # fmt: skip
    wanted = of_regressor.predict(DATA.X)
    np.testing.assert_allclose(booster.predict(matrix), wanted, rtol=1e-4, atol=1e-5)
    ours = BoostedRanker(name, regressor=inner, context=None)
    ours.fit(DATA.X, DATA.y, groups=DATA.groups)
    scores = ours.decision_function(DATA.X, groups=DATA.groups) - ours.model_.start_
    np.testing.assert_allclose(scores, wanted, rtol=1e-4, atol=1e-5)
    last = results["train"]["ndcg@3"][-1]
    assert last == pytest.approx(ndcg_score(DATA.y, wanted, k=3, groups=DATA.groups), abs=1e-6)


def test_xgboost_regressor_with_a_metric_and_weights():
    pytest.importorskip("xgboost")
    out = DATA.groups >= 25
    groups = DATA.groups[~out]
    inner = regressor(
        "xgboost",
        objective=xgboost_objective(groups=groups),
        eval_metric=xgboost_metric("ndcg@5", groups=DATA.groups[out]),
    )
    weight = np.repeat(np.arange(25) + 1.0, SIZES[:25])
    inner.fit(
        DATA.X[~out], DATA.y[~out], sample_weight=weight,
        eval_set=[(DATA.X[out], DATA.y[out])], verbose=False,
    )  # fmt: skip
    value = inner.evals_result()["validation_0"]["ndcg@5"][-1]
    wanted = ndcg_score(DATA.y[out], inner.predict(DATA.X[out]), k=5, groups=DATA.groups[out])
    assert value == pytest.approx(wanted, abs=1e-6)


def test_xgboost_ranker_refuses_functions():
    """The documentation says so; if this fails, XGBRanker can be supported."""
    xgboost = pytest.importorskip("xgboost")
    with pytest.raises(ValueError, match="custom objective function not supported"):
        xgboost.XGBRanker(objective=xgboost_objective(groups=DATA.groups))


def test_the_metric_of_average_precision():
    y = (DATA.y >= 2).astype(float)
    _, value, _ = lightgbm_metric("map_by_scores")(y, SCORES, None, SIZES)
    assert value == pytest.approx(map_score(y, SCORES, groups=sizes_to_groups(SIZES)))
