"""The ways in which the queries of a ranker can travel, and scores computed by hand.

The loops of this file decide what the right number of a tool of scikit-learn is. They use the
ranker's `fit` and `predict` with groups, and measures of their own.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold

from sklearn_rankcal import CalibratedRanker, QueryKFold, relevance_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.metrics import get_ranking_scorer

DATA = make_ranking(24, (4, 9), 5, n_informative=3, random_state=0)
SHUFFLE = np.random.RandomState(0).permutation(len(DATA.y))  # rows of a query stand apart
X, Y, G = DATA.X[SHUFFLE], DATA.y[SHUFFLE], DATA.groups[SHUFFLE]
LABELS = relevance_labels(Y, G)
NAMES = list("abcde")
COLUMNS = dict(zip(NAMES, X.T, strict=True)) | {"qid": G}
ALPHAS = [0.1, 300.0]
N_FOLDS = 3


class Way(NamedTuple):
    """How the queries travel: the table, the labels, the splitter and what is passed as groups."""

    X: Any
    y: Any
    cv: Any
    groups: Any = None
    column: str | None = None
    frames: str = "default"


WAYS = {
    "groups": Way(X, Y, GroupKFold(N_FOLDS), G),
    "labels": Way(X, LABELS, QueryKFold(N_FOLDS)),
    "both": Way(X, LABELS, GroupKFold(N_FOLDS), G),
    "column": Way(pd.DataFrame(COLUMNS), Y, GroupKFold(N_FOLDS), G, "qid", "pandas"),
    "polars": Way(pl.DataFrame(COLUMNS), Y, GroupKFold(N_FOLDS), G, "qid", "polars"),
}


def make_ranker(way, alpha=1.0, context="auto"):
    return CalibratedRanker(Ridge(alpha), loss="ndcg@3", context=context, group_column=way.column)


both_routings = pytest.mark.parametrize("routing", ["off", "on"], indirect=True)
only_on = pytest.mark.parametrize("routing", ["on"], indirect=True)
only_off = pytest.mark.parametrize("routing", ["off"], indirect=True)


# ------------------------------------------------------------------ by hand


def ndcg(y, ranks, k):
    places = np.arange(1, min(k, len(y)) + 1)
    best = (np.sort(2.0**y - 1)[::-1][: len(places)] / np.log2(places + 1)).sum()
    top = ranks <= k
    return ((2.0**y - 1) / np.log2(ranks + 1))[top].sum() / best if best else np.nan


def average_precision(y, ranks):
    found = np.sort(ranks[y >= 2])
    return (np.arange(1, len(found) + 1) / found).mean() if len(found) else np.nan


NDCG_3, NDCG_10 = partial(ndcg, k=3), partial(ndcg, k=10)
SCORER = get_ranking_scorer("ndcg@10")
# For each name: scoring= of the tool, and the measures that it stands for.
SCORINGS = {
    "score": (None, {"score": NDCG_3}),
    "scorer": (SCORER, {"score": NDCG_10}),
    "several": (
        {"ndcg": SCORER, "map": get_ranking_scorer("map", threshold=2)},
        {"ndcg": NDCG_10, "map": average_precision},
    ),
}


def mean_measure(measure, ranks, rows, weight=None):
    """Return the mean over the queries of `rows`, where `ranks` holds the positions of the rows."""
    values, weights = [], []
    for query in np.unique(G[rows]):
        mine = G[rows] == query
        values.append(measure(Y[rows][mine], ranks[mine]))
        weights.append(1.0 if weight is None else weight[rows][mine].mean())
    values, weights = np.array(values), np.array(weights)
    known = ~np.isnan(values)
    return np.average(values[known], weights=weights[known])


def fold_score(measure, train, test, alpha=1.0, *, columns=None, scale=(), weight=None):
    """Fit a ranker on `train` and score it on `test`, with the groups passed by hand."""
    key = (id(measure), train.tobytes(), test.tobytes(), alpha, repr(columns), repr(scale))
    key += () if weight is None else (weight.tobytes(),)
    if key not in _FOLD_SCORES:
        _FOLD_SCORES[key] = _fold_score(measure, train, test, alpha, columns, scale, weight)
    return _FOLD_SCORES[key]


_FOLD_SCORES: dict[Any, float] = {}  # many cells of the table need the same fold


def _fold_score(measure, train, test, alpha, columns, scale, weight):
    table = X.copy()
    for j in scale:
        table[:, j] = (table[:, j] - table[train, j].mean()) / table[train, j].std()
    table = table if columns is None else table[:, columns]
    ranker = CalibratedRanker(Ridge(alpha), loss="ndcg@3")
    ranker.fit(
        table[train],
        Y[train],
        groups=G[train],
        sample_weight=None if weight is None else weight[train],
    )
    return mean_measure(measure, ranker.predict(table[test], groups=G[test]), test, weight)


def splits(way):
    return list(way.cv.split(X, Y, G))


def fold_scores(way, measure, alpha=1.0, **how):
    return [fold_score(measure, train, test, alpha, **how) for train, test in splits(way)]


def to_function(way, on):
    """Return the arguments that pass the groups to cross_validate and similar functions."""
    if not on:
        return {"groups": way.groups}
    # The dict is empty, and not None, because scikit-learn 1.6.0 fails on None and 1.6.1 does not.
    # Drop it when 1.7 is the minimum.
    return {"params": {} if way.groups is None else {"groups": way.groups}}


def to_fit(way):
    return {} if way.groups is None else {"groups": way.groups}


def ranks_by_hand(way, train, test):
    ranker = CalibratedRanker(Ridge(), loss="ndcg@3").fit(X[train], Y[train], groups=G[train])
    return ranker.predict(X[test], groups=G[test])


def eliminate(measure, train, test):
    """Return the scores with 1, 2, .. 5 features; the smallest coefficient is dropped each time."""
    left, scores = np.arange(5), []
    while True:
        ranker = CalibratedRanker(Ridge(), loss="ndcg@3", context=None)
        ranker.fit(X[train][:, left], Y[train], groups=G[train])
        ranks = ranker.predict(X[test][:, left], groups=G[test])
        scores.append(mean_measure(measure, ranks, test))
        if len(left) == 1:
            return scores[::-1], left
        left = np.delete(left, np.abs(ranker.model_.regressor_.coef_).argmin())


def mean_score(way, measure, y):
    """Return the mean score of the folds, where `y` holds the labels for fit and score."""
    scores = []
    for train, test in splits(way):
        ranker = CalibratedRanker(Ridge(), loss="ndcg@3").fit(X[train], y[train], groups=G[train])
        ranks = ranker.predict(X[test], groups=G[test])
        values = [measure(y[test][G[test] == q], ranks[G[test] == q]) for q in np.unique(G[test])]
        scores.append(np.nanmean(values))
    return np.mean(scores)
