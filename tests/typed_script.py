"""A user's script. tests/test_types.py checks its types with mypy and pyright, and runs it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from sklearn_rankcal import (
    CalibratedLabelRanker,
    CalibratedRanker,
    Judgements,
    LinearRanker,
    QueryKFold,
    aggregate,
    relevance_labels,
)
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.metrics import compare_rankings, get_ranking_scorer, ndcg_score

Ranks = NDArray[np.int64]

data = make_ranking(n_queries=40, random_state=0)
X, y, groups = data.X, data.y, data.groups

ranker: CalibratedRanker = CalibratedRanker(Ridge(), loss="ndcg@10").fit(X, y, groups=groups)
ranks: Ranks = ranker.predict(X, groups=groups)
scores: NDArray[np.float64] = ranker.decision_function(X, groups=groups)
rows, offsets, queries = ranker.predict_order(X, groups=groups, k=3)
best: int = int(rows[offsets[0]])
report: list[str] = list(
    CalibratedRanker(Ridge(), loss="pd").fit(X, y, groups).decode_report(X, groups)
)
linear: LinearRanker = LinearRanker(random_state=0).fit(X, y, groups=groups)
n_iter: int = linear.n_iter_
mean: float = ranker.score(X, y, groups=groups) - ndcg_score(y, scores, groups=groups, k=10)

scorer = get_ranking_scorer("ndcg@10")
search = GridSearchCV(ranker, {"center": [True, False]}, scoring=scorer, cv=QueryKFold(2))
search.fit(X, relevance_labels(y, groups=groups))
value: float = scorer(ranker, X, y, groups=groups)

low: float = compare_rankings(y, scores, linear.decision_function(X), groups=groups).low
several = compare_rankings(y, scores, scores, groups=groups, metric=["ndcg@5", "err"])
names: list[str] = several["metric"][several["difference"] == 0].tolist()

board = aggregate(Judgements.from_pairs([("a", "b"), ("a", "c"), ("b", "c"), ("c", "a")]))
first: NDArray[np.float64] = board.scores[board.ranks == 1]

orders = CalibratedLabelRanker(loss="spearman").fit(X[:30], np.argsort(-X[:30, :3]).argsort() + 1)
labels = orders.predict_order(X[:2])
print(ranks[best], mean, value, low, names, first, labels.shape, n_iter, len(report))
