"""Surrogates, linear rankers that minimise them, their regrets, and objectives of libraries."""

from __future__ import annotations

import numpy as np

from . import public
from .rankers import WIDTH
from .values import draw_codes

_C, _SURROGATES = public.consistency, public.surrogates.SURROGATES
COVERS = ("LinearRanker", "LinearModel", "get_surrogate", "SURROGATES",
          *{type(make()).__name__ for make in _SURROGATES.values()})  # fmt: skip

COVERS_REGRETS = ("surrogate_regret", "suboptimality")
COVERS_OBJECTIVES = ("lightgbm_objective", "lightgbm_metric", "xgboost_objective",
                     "xgboost_metric")  # fmt: skip


def _draw(case):
    """A surrogate, utilities that it takes, and queries."""
    surrogate = case.call(public.surrogates.get_surrogate, case.choose(_SURROGATES))
    codes = np.array(draw_codes(case, 2))
    v = case.rng.integers(0, 4, len(codes)) / 2.0
    return surrogate, v, codes, public.Queries.from_groups(codes)


def values(case):
    """No number is NaN, slopes are below those of chords, and invariances hold."""
    surrogate, v, _, queries = _draw(case)
    fixed = case.call(surrogate.resolve, v)
    s = case.rng.normal(size=len(v)) * 10.0 ** case.whole(-2, 3)
    result = case.call(fixed.evaluate, v, s, queries)
    for name, numbers in result._asdict().items():
        case.expect(not np.isnan(numbers).any(), f"{name} is NaN", repr(surrogate))
    shift = case.rng.normal(size=queries.n_queries)
    if surrogate.shift_invariant and np.abs(s).max() < 10:
        moved = case.call(fixed.evaluate, v, s + queries.broadcast(shift), queries)
        case.equal(moved.value, result.value, "depends on a shift", 1e-6, 1e-6)
    if surrogate.scale_invariant:
        scaled = case.call(fixed.evaluate, v, s * 3.0, queries)
        case.equal(scaled.value, result.value, "depends on the scale", 1e-6, 1e-6)
    if surrogate.convex:
        t = s + case.rng.normal(size=len(v))
        other = case.call(fixed.evaluate, v, t, queries, derivatives=0).value
        with np.errstate(invalid="ignore", over="ignore"):
            tangent = result.value + queries.sum(result.gradient * (t - s))
        finite = np.isfinite(tangent) & np.isfinite(other)
        slack = 1e-9 * (1 + np.abs(result.value) + np.abs(other) + np.abs(tangent))
        case.expect((other >= tangent - slack)[finite].all(), "is not convex", repr(surrogate))


def large_query(case):
    """Values of a query of a thousand documents are finite, and do not depend on the row order."""
    surrogate = case.call(public.surrogates.get_surrogate, case.choose(_SURROGATES))
    n = case.whole(1001, 2500)
    v = np.arange(n) % case.whole(2, 5) / 2.0
    s = case.rng.normal(size=n) * case.choose([0.0, 1.0, 10.0])
    queries = public.Queries.single(n)
    result = case.call(surrogate.evaluate, v, s, queries)
    for name, numbers in result._asdict().items():
        case.expect(np.isfinite(numbers).all(), f"{name} is not finite", repr(surrogate))
    order = case.rng.permutation(n)
    moved = case.call(surrogate.evaluate, v[order], s[order], queries)
    case.equal(moved.value, result.value, "depends on the order of the rows", 1e-9, 1e-9)
    size = 1e-9 * np.abs(result.gradient).max()
    case.equal(moved.gradient, result.gradient[order], "so does the gradient", 1e-9, size)


def linear_ranker(case):
    """A linear ranker lowers its objective, and its ranks are those of its scores."""
    surrogate, _, codes, queries = _draw(case)
    X = case.rng.normal(size=(len(codes), WIDTH)) * 10.0 ** case.whole(-3, 3)
    y = case.rng.integers(0, 4, len(codes)).astype(float)
    ranker = public.LinearRanker(
        surrogate,
        loss=case.choose(["ndcg", "dcg", "eru"]),
        alpha=10.0 ** case.whole(-3, 3),
        solver=case.choose(["lbfgs", "lbfgs", "sgd"]),
        max_iter=50,
        random_state=0,
    )
    outcome = case.attempt(ranker.fit, X, y, groups=codes)
    if outcome.error is not None:
        return  # undefined on every query, or no gradient method for a cosine
    scores = case.call(ranker.decision_function, X, groups=codes)
    case.expect(np.isfinite(scores).all(), "scores are not finite", repr(surrogate))
    ranks = case.call(ranker.predict, X, groups=codes)
    case.equal(np.sort(ranks), np.sort(queries.scatter(queries.place + 1)), "no permutation")
    if surrogate.convex and ranker.solver == "lbfgs":
        defined = ranker.loss_.defined(y, queries)
        targets = surrogate.targets(ranker.loss_, y, queries)
        start = ranker.surrogate_.value(targets, np.zeros(len(y)), queries)[defined].sum()
        found = ranker.surrogate_.value(targets, scores, queries)[defined].sum()
        found += ranker.alpha / 2 * (ranker.coef_ @ ranker.coef_)
        case.expect(found <= start + 1e-9 * abs(start), "objective rises", repr(surrogate))


def regrets(case):
    """Regrets of scores follow their bounds, and no scores are better than `suboptimality`."""
    surrogate, _, _, _ = _draw(case)
    r, m = case.whole(2, 3), case.whole(1, 3)
    labels = case.rng.integers(0, 4, (m, r)).astype(float)
    labels[:, 0] += ~labels.any(axis=1)
    chances = case.rng.integers(1, 7, m)
    world = labels, chances / chances.sum()
    scores = case.rng.normal(size=r)
    ranks = np.argsort(np.argsort(-scores)) + 1
    # labels that are relevance have the gains 2^y - 1
    expected = world[1] @ (2.0**labels - 1)
    regret = case.call(_C.ranking_regret, ranks, world, "dcg")
    excess = case.call(_C.surrogate_regret, scores, world, "dcg", surrogate)
    case.expect(excess >= 0, "no regret", repr(surrogate))
    if surrogate.order_preserving and surrogate.constant(r, 1.0) is not None:
        bound = case.call(
            _C.regret_bound, "dcg", excess, r, surrogate=surrogate, largest=expected.max(),
            total=expected.sum(),
        )  # fmt: skip
        if getattr(surrogate, "eta", 1.0) is not None:
            case.expect(regret <= bound + 1e-6, "regret above its bound", repr(surrogate))
    if surrogate.convex and regret > 1e-6:
        least = case.call(_C.suboptimality, regret / 2, world, "dcg", surrogate)
        case.expect(least <= excess + 1e-5 * (1 + excess), "not the least", repr(surrogate))


def objectives(case):
    """Objectives of libraries return finite numbers, and their metrics are ours."""
    surrogate, _, codes, _ = _draw(case)
    codes = np.sort(codes)
    sizes = np.bincount(codes)[np.unique(codes)]
    y = case.rng.integers(0, 4, len(codes)).astype(float)
    y[np.unique(codes, return_index=True)[1]] = 1.0  # NDCG is defined for every query
    s = case.rng.normal(size=len(y)) * 10.0 ** case.whole(-2, 3)
    own = case.call(public.boosting.lightgbm_objective, surrogate, "dcg")
    other = case.call(public.boosting.xgboost_objective, surrogate, "dcg", codes)
    outcome = case.attempt(own, y, s, None, sizes)
    if outcome.error is not None:
        return  # the surrogate does not take these utilities
    for one, two in zip(outcome.value, case.call(other, y, s), strict=True):
        case.expect(np.isfinite(one).all(), "not finite", repr(surrogate))
        case.equal(one, two, "the libraries differ")
    case.expect((outcome.value[1] >= 0).all(), "negative curvature", repr(surrogate))
    wanted = public.metrics.ndcg_score(y, s, groups=codes)
    by_lightgbm = case.call(public.boosting.lightgbm_metric("ndcg"), y, s, None, sizes)[1]
    case.equal(by_lightgbm, wanted, "the metric of LightGBM differs")
    by_xgboost = case.call(public.boosting.xgboost_metric("ndcg", codes), y, s)
    case.equal(by_xgboost, wanted, "the metric of XGBoost differs")
