"""Surrogates, and the linear rankers that minimise them."""

from __future__ import annotations

import numpy as np

from . import public
from .rankers import WIDTH
from .values import draw_codes

_SURROGATES = public.surrogates.SURROGATES
COVERS = ("LinearRanker", "LinearModel", "get_surrogate", "SURROGATES",
          *(kind.__name__ for kind in _SURROGATES.values()))  # fmt: skip


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
