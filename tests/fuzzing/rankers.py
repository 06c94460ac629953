"""Rankers: a permutation of every query, the same whatever does not matter, and the best one."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
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


def twins(case):
    """Documents with equal features keep the order of their rows, and have equal scores."""
    X, y, codes = _data(case, least=2)
    loss = case.choose(["ndcg", "spearman", "pd", "pd_by_scores"])
    ranker = public.CalibratedRanker(Ridge(), loss=loss, context=None)
    outcome = case.attempt(ranker.fit, X, y, groups=draw_groups(case, codes.tolist()))
    if outcome.error is not None:
        return  # undefined on every query
    which = case.rng.integers(0, 3, 12)
    table = (10.0 ** case.whole(-3, 3) * case.rng.normal(size=(3, WIDTH)))[which]
    ranks = case.call(ranker.predict, table, groups=np.zeros(12))
    for document in range(3):
        case.expect((np.diff(ranks[which == document]) > 0).all(), "equal rows in another order")
        if loss != "pd":
            scores = case.call(ranker.decision_function, table, groups=np.zeros(12))
            case.expect(len(set(scores[which == document])) <= 1, "equal rows, other scores")


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


def validation(case):
    """Validation queries stop training in time, alike in any order, or the error names them."""
    X, y, codes = _data(case, least=2)
    X_val, y_val, codes_val = _data(case)
    y_val = y_val * case.choose([0, 1, 1, 1])
    regressor = HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=1, early_stopping=False)
    patience = case.whole(1, 4)
    loss = case.choose(["ndcg", "dcg", "spearman", "err", "pd_by_scores", "pd"])
    if loss == "err":
        loss = _L.ERR(max_relevance=4)
    ranker = public.CalibratedRanker(regressor, loss=loss, n_iter_no_change=patience)
    if loss == "pd":
        ranker.set_params(regressor=_MODELS.ResidualPairModel(_MODELS.DocumentModel(regressor)))
    passed = {"X_val": X_val, "y_val": y_val, "groups_val": codes_val + 1000}
    outcome = case.attempt(ranker.fit, X, y, groups=codes, **passed)
    if outcome.error is not None:
        return  # undefined on every query, or all rankings of the validation queries are equal
    kept, curve = ranker.n_iter_, ranker.validation_scores_
    case.expect(len(curve) == min(8, kept + patience), "stops at another time", f"{kept}, {curve}")
    if loss != "pd":  # the scores alone are evaluated, without the pairs
        score = case.call(ranker.score, X_val, y_val, groups=codes_val)
        case.equal(score, curve[kept - 1], "not the measure that was recorded", 1e-9)
    order = case.rng.permutation(len(y_val))
    passed = {name: value[order] for name, value in passed.items()}
    case.call(ranker.fit, X, y, groups=codes, **passed)
    case.expect(ranker.n_iter_ == kept, "other rows first, other iterations")
    case.equal(ranker.validation_scores_, curve, "other rows first, another measure", 1e-9)


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
    """What does not matter changes nothing: rows, names, other queries, containers, copies."""
    fitted = _fitted(case)
    if fitted is None:
        return
    kind, ranker, X, y, codes = fitted
    ranks = case.call(ranker.predict, X, groups=codes)
    _permutations(case, ranks, codes)
    relation = case.choose(["permute", "rename", "unrelated", "part", "layout", "copy", "order",
                            "structured", "again", "scores", "frame"])  # fmt: skip
    if relation == "permute":
        order = case.rng.permutation(len(X))
        other = case.call(ranker.predict, X[order], groups=codes[order])
        case.expect(other.tolist() == ranks[order].tolist(), "depends on the order of rows", kind)
    elif relation == "rename":
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
    elif relation == "copy":
        other = pickle.loads(pickle.dumps(ranker))
        found = case.call(other.predict, X, groups=codes)
        case.expect(found.tolist() == ranks.tolist(), "a pickle predicts something else", kind)
        again = clone(ranker).fit(X, y, groups=codes)
        found = case.call(again.predict, X, groups=codes)
        case.expect(found.tolist() == ranks.tolist(), "a clone predicts something else", kind)
    elif relation == "order":
        k = case.choose([None, 1, 2, 100, np.int64(2)])
        rows, offsets, ids = case.call(ranker.predict_order, X, groups=codes, k=k)
        for q, own in enumerate(rows_of(codes.tolist())):
            wanted = sorted(own, key=lambda i: ranks[i])[:k]
            listed = rows[offsets[q] : offsets[q + 1]].tolist()
            case.expect(listed == wanted and ids[q] == codes[own[0]], "predict_order differs")
    elif relation == "structured":
        labels = public.relevance_labels(y, codes)
        other = clone(ranker).fit(X, labels)
        found = case.call(other.predict, X, groups=codes)
        case.expect(found.tolist() == ranks.tolist(), "structured labels differ from plain", kind)
        case.equal(case.call(ranker.score, X, labels), case.call(ranker.score, X, y, groups=codes),
                   "scores of structured labels differ")  # fmt: skip
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
    else:
        names = ["a", "b", "c"]
        table = case.choose([pd.DataFrame(X, columns=names, index=range(7, 7 + len(X))),
                             pl.DataFrame(dict(zip(names, X.T, strict=True)))])  # fmt: skip
        other = clone(ranker).fit(table, y, groups=codes)
        found = case.call(other.predict, table, groups=codes)
        case.expect(found.tolist() == ranks.tolist(), "frames differ from arrays", kind)


def fits_alike(case):
    """Fits that must give the same scores: rows and names permuted, weights scaled, sparse."""
    X, y, codes = _data(case, least=2)
    ranker = public.CalibratedRanker(Ridge(), loss=case.choose(["ndcg", "dcg", "spearman", "err"]),
                                     context=case.choose([None, "zscore"]))  # fmt: skip
    weight = case.rng.integers(1, 4, len(y)).astype(float)
    outcome = case.attempt(ranker.fit, X, y, groups=codes, sample_weight=weight)
    if outcome.error is not None:
        return
    scores = case.call(ranker.decision_function, X, groups=codes)
    relation = case.choose(["permute", "zero", "labels", "sparse", "float32", "dtypes"])
    other = clone(ranker)
    if relation == "permute":
        order = case.rng.permutation(len(y))
        other.fit(X[order], y[order], groups=draw_groups(case, codes[order].tolist()),
                  sample_weight=weight[order])  # fmt: skip
    elif relation == "zero":  # rows without weight are as if they were not there
        more = np.concatenate([X, X[:1] + 100]), np.append(y, 3), np.append(codes, 99)
        other.fit(more[0], more[1], groups=more[2], sample_weight=np.append(weight, 0.0))
    elif relation == "labels":
        made = case.choose([y.tolist(), y.astype(np.int8), y.astype(np.uint8), pd.Series(y),
                            pl.Series(y), y.astype(np.float16), y.astype(object),
                            np.ma.array(y)])  # fmt: skip
        case.call(other.fit, X, made, groups=codes, sample_weight=weight.tolist())
    elif relation == "sparse" and ranker.context is None:
        form = case.choose([sparse.csr_array, sparse.csc_array, sparse.coo_array,
                            sparse.csr_matrix])  # fmt: skip
        case.call(other.fit, form(X), y, groups=codes, sample_weight=weight)
        found = case.call(other.decision_function, form(X), groups=codes)
        return case.equal(found, scores, "sparse differs from dense", 1e-2, 1e-2)
    else:
        shown = case.choose([np.asfortranarray(X), X.astype(object), pd.DataFrame(X), X.tolist()])
        case.call(other.fit, shown, y, groups=codes, sample_weight=weight)
    found = case.call(other.decision_function, X, groups=codes)
    case.equal(found, scores, f"{relation} changes the fit", 1e-6, 1e-8)


def monotone(case):
    """A document whose constrained column alone moves in its direction does not fall behind."""
    X, y, codes = _data(case, least=2)
    kind = case.choose(["plain", "ties", "constant", "mirrored", "scaled"])
    if kind == "ties":
        X = X.round()
    elif kind == "constant":
        X[:, 0] = 1.0
    elif kind == "mirrored":
        X[:, 1] = -X[:, 0]
    elif kind == "scaled":
        X = X * 10.0 ** case.whole(-6, 6) + case.whole(-3, 3)
    sign = case.choose([-1, 1])
    shown = case.choose([[sign, 0, 0], {"a": sign}])
    regressor = HistGradientBoostingRegressor(
        max_iter=3, min_samples_leaf=1, monotonic_cst=shown, interaction_cst=case.choose(
            [None, "no_interactions", [{0, 1}]]
        ),
    )  # fmt: skip
    context = case.choose(["auto", "zscore", "difference", "rank", ["rank", "difference"], None])
    ranker = public.CalibratedRanker(regressor, context=context)
    outcome = case.attempt(ranker.fit, pd.DataFrame(X, columns=[*"abc"]), y, groups=codes)
    if outcome.error is not None:
        return
    one = case.whole(0, len(X) - 1)
    moved = X.copy()
    moved[one, 0] += sign * case.choose([0.1, 1.0, 100.0]) * max(1.0, np.abs(X[:, 0]).max())
    before, after = (
        case.call(ranker.decision_function, pd.DataFrame(table, columns=[*"abc"]), groups=codes)
        for table in (X, moved)
    )
    for other in np.flatnonzero(codes == codes[one]):
        behind = before[one] > before[other] and after[one] < after[other]
        case.expect(not behind, "another document overtakes", f"{context}, {kind}")


def preferences(case):
    """Fits to preferences: the scale of weights and the order of pairs change nothing."""
    X, _, codes = _data(case, least=2)
    pairs = []
    for _ in range(case.whole(2, 4 * case.size)):
        rows = case.choose(rows_of(codes.tolist()))
        pairs.append(case.rng.permutation(rows)[:2].tolist())
    weight = case.rng.integers(1, 5, len(pairs)).astype(float)
    model = case.choose([_MODELS.PairwiseRidge(), _MODELS.BilinearPairs(alpha=1.0)])
    ranker = public.CalibratedRanker(model, loss="pd")
    labels = public.preference_labels(pairs, codes, weight)
    outcome = case.attempt(ranker.fit, X, labels)
    if outcome.error is not None:
        return
    ranks = case.call(ranker.predict, X, groups=codes)
    _permutations(case, ranks, codes)
    scale = 2.0 ** case.whole(-140, 140)
    labels = public.preference_labels(pairs, codes, weight * scale)
    other = case.attempt(clone(ranker).fit, X, labels)
    if other.error is None:
        found = case.call(other.value.predict, X, groups=codes)
        share = np.mean(found == ranks)
        case.expect(share > 0.8 or len(ranks) < 6, "depends on the scale of weights",
                    f"times {scale:g}: {found.tolist()} for {ranks.tolist()}")  # fmt: skip


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


def label_ranker(case):
    """Label ranking: permutations, the same under other names of labels and other containers."""
    n, r = case.whole(2, 8), case.whole(1, 4)
    X = case.rng.normal(size=(n, 2))
    Y = np.array([1 + case.rng.permutation(r) for _ in range(n)], dtype=float)
    loss = case.choose(["pd", "spearman", "ndcg@2", "pd_by_scores", "precision@1"])
    if case.chance(0.3) and loss.startswith("pd"):
        Y[case.rng.random(Y.shape) < 0.2] = np.nan
    says = {"y_type": "ranks", "unlisted": "ignore"}
    ranker = public.CalibratedLabelRanker(Ridge(), loss=loss, **says)
    outcome = case.attempt(ranker.fit, X, Y)
    if outcome.error is not None:
        return
    ranks = case.call(ranker.predict, X)
    _permutations(case, ranks.ravel(), np.repeat(np.arange(n), r))
    value = case.call(ranker.score, X, Y)
    case.expect(np.isnan(value) or -1 - 1e-9 <= value <= np.inf, "a score out of range")
    if loss in ("pd", "spearman") and not np.isnan(Y).any() and r > 1:
        metric = _M.kendall_tau_score if loss == "pd" else _M.spearman_score
        wanted = metric((r - Y).ravel(), ranks=ranks.ravel(), groups=np.repeat(np.arange(n), r))
        case.equal(value, wanted, "score is not the mean of its metric")
    if loss != "precision@1":  # which needs a threshold of relevance
        by_relevance = clone(ranker).set_params(y_type="relevance")
        found = case.call(case.call(by_relevance.fit, X, r - Y).predict, X)
        case.expect((r - found).tolist() == ranks.tolist(), "relevance ranks otherwise", loss)
        case.equal(case.call(by_relevance.score, X, r - Y), value, "scores of relevance differ")
    if loss in ("pd", "spearman") and not np.isnan(Y).any():
        y_type, y = case.choose([("ranks", Y), ("relevance", r - Y)])
        knows = public.CalibratedLabelRanker(Memory(), loss=loss, y_type=y_type)
        found = case.call(case.call(knows.fit, X, y).predict, X)
        case.expect(found.tolist() == y.tolist(), f"predict has not the direction of {y_type}")
    shown = case.choose([Y.tolist(), np.asfortranarray(Y), pd.DataFrame(Y), 2.5 * Y,
                         np.ma.array(np.nan_to_num(Y, nan=1.0), mask=np.isnan(Y))])  # fmt: skip
    other = case.call(clone(ranker).fit, X, shown)
    found = case.call(other.predict, X)
    case.expect(np.array_equal(found, ranks), "depends on the container of y")
    if case.chance(0.5):
        bad = case.choose([Y - 1, -Y, np.where(Y == 1, np.inf, Y), Y[:-1], Y[0], Y * 1j, "ranks",
                           [["a", "a"]] * n, np.full(Y.shape, np.datetime64("NaT", "D")), None,
                           np.full(Y.shape, np.timedelta64("NaT", "D")), Y[:, :0], Y[None, None],
                           [[1, 2], [1]], np.full(Y.shape, "1")])  # fmt: skip
        if r == 1:  # nothing is ranked, whatever the numbers
            return
        case.refuses(clone(ranker).fit, X, bad)
