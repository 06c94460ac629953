"""Rankers: a permutation of every query, the same whatever does not matter."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge

import sklearn_rankcal as public

from .labels import MISSING
from .values import (
    GROUP_WORDS,
    draw_codes,
    draw_groups,
    read_only,
    rows_of,
    spoiled_groups,
    spoiled_numbers,
)

_L, _MODELS = public.losses, public.models
WIDTH = 3


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
    "choice": lambda: public.LinearRanker(loss="choice"),
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
        if kind == "choice":
            shares = case.call(ranker.choice_probabilities, X, groups=codes)
            totals = np.bincount(np.unique(codes, return_inverse=True)[1], shares)
            case.equal(totals, np.ones(len(totals)), "probabilities do not sum to 1", 0, 1e-9)
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
        bad, kind = spoiled_numbers(case, len(y), without=(*MISSING, "na_boolean"))
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
