"""Rankers: a permutation of every query, the same whatever does not matter, and the best one."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import Ridge

import sklearn_rankcal as public
from tests.metric_data import per_query

from .values import (
    GROUP_WORDS,
    draw_codes,
    draw_groups,
    read_only,
    rows_of,
    spoiled_groups,
    spoiled_numbers,
)

_L, _M, _MODELS = public.losses, public.metrics, public.models
WIDTH = 3


class Memory(RegressorMixin, BaseEstimator):
    """A regressor that knows the targets of the rows it has seen, and 0 of all others."""

    def fit(self, X, y):
        rows = np.ascontiguousarray(X, dtype=float)
        self.known_ = {row.tobytes(): value for row, value in zip(rows, y, strict=True)}
        self.shape_ = np.shape(y)[1:]
        return self

    def predict(self, X):
        rows = np.ascontiguousarray(X, dtype=float)
        found = [self.known_.get(row.tobytes(), np.zeros(self.shape_)) for row in rows]
        return np.array(found).reshape(len(rows), *self.shape_)


#: loss: its metric with the same parameters, and whether labels must be binary
_LOSSES = {
    "ndcg": (lambda: _L.NDCG(2, shrinkage=0.0), lambda **a: per_query(_M.ndcg_score, k=2, **a)),
    "ndcg_linear": (
        lambda: _L.NDCG(gain="linear", shrinkage=0.0),
        lambda **a: per_query(_M.ndcg_score, gain="linear", **a),
    ),
    "dcg": (lambda: _L.DCG(), lambda **a: per_query(_M.dcg_score, **a)),
    "precision": (
        lambda: _L.Precision(2, threshold=2),
        lambda **a: per_query(_M.precision_at_k_score, k=2, threshold=2, **a),
    ),
    "recall": (
        lambda: _L.Recall(2, threshold=1, shrinkage=0.0),
        lambda **a: per_query(_M.recall_at_k_score, k=2, threshold=1, **a),
    ),
    "auc": (
        lambda: _L.AUC(threshold=1, shrinkage=0.0),
        lambda **a: per_query(_M.auc_score, threshold=1, **a),
    ),
    "spearman": (lambda: _L.Spearman(), lambda **a: per_query(_M.spearman_score, **a)),
    "eru": (lambda: _L.ERU(half_life=3), lambda **a: per_query(_M.eru_score, half_life=3, **a)),
    "err": (
        lambda: _L.ERR(max_relevance=4), lambda **a: per_query(_M.err_score, max_relevance=4, **a),
    ),
    "map": (
        lambda: _L.MAP(threshold=2, shrinkage=0.0),
        lambda **a: per_query(_M.map_score, threshold=2, **a),
    ),
    "map_by_scores": (
        lambda: _L.MAPByScores(threshold=2, shrinkage=0.0),
        lambda **a: per_query(_M.map_score, threshold=2, **a),
    ),
    "pd": (lambda: _L.PD(), lambda **a: -per_query(_M.pairwise_disagreement_loss, **a)),
    "pd_graded": (
        lambda: _L.PD("graded", equal_queries=True),
        lambda **a: -per_query(_M.pairwise_disagreement_loss, pair_weight="graded", **a),
    ),
    "pd_by_scores": (
        lambda: _L.PDByScores(),
        lambda **a: -per_query(_M.pairwise_disagreement_loss, **a),
    ),
    "positional": (
        lambda: _L.Positional(discount=[1.0, 0.5, 0.25]),
        lambda **a: per_query(_M.dcg_score, gain="linear", k=1, **a),
    ),
}  # fmt: skip


def _data(case, least=1):
    codes = np.array(draw_codes(case, least))
    n = len(codes)
    X = case.rng.normal(size=(n, WIDTH))
    y = case.rng.integers(0, 4, n)
    y[0] = 4
    return X, y, codes


def _permutations(case, ranks, codes, what="predict"):
    for rows in rows_of(list(codes)):
        found = sorted(np.asarray(ranks)[rows].tolist())
        case.expect(found == list(range(1, len(rows) + 1)), f"{what} gives no permutation",
                    f"{found}")  # fmt: skip


def best(case):
    """A regressor that knows the targets makes the best ranking of every query."""
    name = case.choose(_LOSSES)
    make, metric = _LOSSES[name]
    X, y, codes = _data(case)
    groups = draw_groups(case, codes.tolist())
    ranker = public.CalibratedRanker(Memory(), loss=make(), center=False, context=None)
    outcome = case.attempt(ranker.fit, X, y, groups=groups)
    if outcome.error is not None:
        return  # undefined on every query
    ranks = case.call(ranker.predict, X, groups=groups)
    _permutations(case, ranks, codes)
    values = metric(y_true=y, ranks=ranks, groups=codes)
    for rows, value in zip(rows_of(codes.tolist()), values, strict=True):
        orders = np.array(list(itertools.permutations(range(1, len(rows) + 1))))
        every = metric(
            y_true=np.tile(y[rows], len(orders)),
            ranks=orders.ravel(),
            groups=np.repeat(np.arange(len(orders)), len(rows)),
        )
        if not np.isnan(every).any():
            case.equal(value, every.max(), f"not the best ranking for {name}", 1e-12)
    whole = case.attempt(ranker.score, X, y, groups=groups)
    if whole.error is None and name != "positional":
        mean = np.nan if np.isnan(values).all() else np.nanmean(values)
        shift = 1.0 if name.startswith("pd") else 0.0
        case.equal(whole.value, mean + shift, "score is not the mean of its metric", 1e-9)


_CHEAP = {
    "ndcg": lambda: public.CalibratedRanker(Ridge()),
    "no_context": lambda: public.CalibratedRanker(Ridge(), context=None, loss="dcg"),
    "rank_context": lambda: public.CalibratedRanker(Ridge(), context=["rank", "difference"]),
    "pairs": lambda: public.CalibratedRanker(Ridge(), loss="pd"),
    "pairwise_ridge": lambda: public.CalibratedRanker(_MODELS.PairwiseRidge(), loss="pd"),
    "bilinear": lambda: public.CalibratedRanker(_MODELS.BilinearPairs(alpha=1.0), loss="pd"),
    "products": lambda: public.CalibratedRanker(Ridge(), loss=_L.MAP(threshold=2)),
    "by_scores": lambda: public.CalibratedRanker(Ridge(), loss="pd_by_scores"),
    "document": lambda: public.CalibratedRanker(_MODELS.DocumentModel(Ridge()), loss="spearman"),
    "scores_and_pairs": lambda: public.CalibratedRanker(
        _MODELS.ResidualPairModel(_MODELS.DocumentModel(Ridge()), _MODELS.BilinearPairs(alpha=1.0)),
        loss="pd",
    ),
    "scores_and_products": lambda: public.CalibratedRanker(
        _MODELS.ResidualProductModel(
            _MODELS.DocumentModel(Ridge()), _MODELS.BilinearPairs(alpha=1.0, symmetric=True)
        ),
        loss=_L.MAP(threshold=2),
    ),
}


def _fitted(case):
    kind = case.choose(_CHEAP)
    X, y, codes = _data(case, least=2)
    ranker = _CHEAP[kind]()
    outcome = case.attempt(ranker.fit, X, y, groups=codes)
    if outcome.error is not None:
        return None
    return kind, ranker, X, y, codes


def same(case):
    """What does not matter changes nothing: names, other queries, layouts."""
    fitted = _fitted(case)
    if fitted is None:
        return
    kind, ranker, X, _, codes = fitted
    ranks = case.call(ranker.predict, X, groups=codes)
    _permutations(case, ranks, codes)
    relation = case.choose(["rename", "unrelated", "part", "layout", "again", "scores"])
    if relation == "rename":
        other = case.call(ranker.predict, X, groups=draw_groups(case, codes.tolist()))
        case.expect(other.tolist() == ranks.tolist(), "depends on the names of queries", kind)
    elif relation == "unrelated":
        more = case.rng.normal(size=(3, WIDTH)) * 10.0 ** case.whole(-9, 9)
        table, ids = np.concatenate([more, X]), np.concatenate([[-1] * 3, codes])
        other = case.call(ranker.predict, table, groups=ids)
        case.expect(other[3:].tolist() == ranks.tolist(), "depends on other queries", kind)
    elif relation == "part":
        q = case.choose(set(codes.tolist()))
        other = case.call(ranker.predict, X[codes == q], groups=codes[codes == q])
        case.expect(other.tolist() == ranks[codes == q].tolist(), "depends on the batch", kind)
    elif relation == "layout":
        shown = case.choose(
            [
                np.asfortranarray(X),
                read_only(X.copy()),
                X[::-1].copy()[::-1],
                X.tolist(),
                np.repeat(X, 2, axis=1)[:, ::2],
                np.ma.array(X),
            ]
        )
        other = case.call(ranker.predict, shown, groups=codes)
        case.expect(other.tolist() == ranks.tolist(), "depends on the layout", kind)
    elif relation == "again":
        before = pickle.dumps(ranker)
        case.call(ranker.predict, X[:1], groups=codes[:1])
        case.expect(pickle.dumps(ranker) == before, "predict changes the ranker", kind)
    elif relation == "scores" and hasattr(ranker, "decision_function"):
        scores = case.call(ranker.decision_function, X, groups=codes)
        for own in rows_of(codes.tolist()):
            for i, j in itertools.permutations(own, 2):
                agree = scores[i] <= scores[j] or ranks[i] < ranks[j]
                case.expect(agree, "ranks contradict scores")


def bad_fit(case):
    """Arguments of `fit` and `predict` without a meaning."""
    X, y, codes = _data(case, least=2)
    ranker = public.CalibratedRanker(Ridge())
    which = case.choose(["X", "y", "groups", "sample_weight", "parameter", "predict", "column"])
    if which == "y":
        bad, kind = spoiled_numbers(case, len(y))
        words = () if kind in ("short", "long", "empty") else ("y ", "relevance", "label")
        case.refuses(ranker.fit, X, bad, groups=codes, words=words)
    elif which == "groups":
        case.refuses(ranker.fit, X, y, groups=spoiled_groups(case, codes.tolist()),
                     words=GROUP_WORDS)  # fmt: skip
    elif which == "sample_weight":
        bad, _ = spoiled_numbers(case, len(y))
        case.refuses(ranker.fit, X, y, groups=codes, sample_weight=bad, words=("weight",))
    elif which == "predict":
        ranker.fit(X, y, groups=codes)
        case.refuses(ranker.predict, X, spoiled_groups(case, codes.tolist()), words=GROUP_WORDS)
    elif which == "column":
        frame = pd.DataFrame(X, columns=["a", "b", "qid"])
        given = case.choose(["query", "QID", "remainder__qid"])
        case.refuses(clone(ranker).set_params(group_column=given).fit, frame, y, words=("column",))
        only = pd.DataFrame({"qid": codes})
        case.refuses(clone(ranker).set_params(group_column="qid").fit, only, y)
    elif which == "X":
        bad = case.choose([
            X[:-1], X[:, :0], X[:0], X[0], X[None], "X", None, 3, X * 1j, [*X.tolist()[:-1], [1.0]],
            np.where(X == X[0, 0], np.nan, X), np.where(X == X[0, 0], np.inf, X),
            np.full(X.shape, "a"), sparse.csr_array(X)[:-1], pd.DataFrame(X)[:0],
            pl.DataFrame(X).lazy(), {"a": 1}, np.full(X.shape, object()),
        ])  # fmt: skip
        case.refuses(ranker.fit, bad, y, groups=codes)
    else:
        name, values = case.choose([
            ("regressor", ["ridge", 3, Ridge]), ("loss", ["ndgc", "ndcg@0", "ndcg@x", 3, None, "",
             "spearman@3", "precision", "ndcg@1.5", "ndcg@-1", [], "ndcg@" + "9" * 30]),
            ("decoder", ["best", 3, None, [], "copeland"]), ("center", ["yes", None, 2.5, []]),
            ("context", ["z", 3, ["zscore", "z"], [3], [], {}, [["zscore"]]]),
            ("group_column", [3, "qid", ["qid"]]), ("random_state", ["x", 2.5]),
            ("verbose", [-1, "x", None]), ("n_jobs", ["x", 2.5]),
        ])  # fmt: skip
        given = case.choose(values)
        if (name, given) == ("context", []):
            return
        case.refuses(ranker.set_params(**{name: given}).fit, X, y, groups=codes)


# -------------------------------------------------------------------- label ranking
