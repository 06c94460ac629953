"""
How close to the best possible ranking?
=======================================

`make_ranking` draws grades from a known distribution, so the best possible ranking is known too:
the dashed line. Three rankers with the same trees learn from more and more queries: least squares
on the labels as they are; `CalibratedRanker` on the rows alone (targets for NDCG, centred in each
query); and its default, which also shows the trees where a document stands in its query.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.metrics import ndcg_score
from sklearn_rankcal.models import default_regressor

data = make_ranking(1400, (8, 30), 12, query_effect=2.0, random_state=0)
test = data.groups >= 1000
y_test, groups_test = data.y[test], data.groups[test]

n_queries = [30, 100, 300, 1000]
curves = {
    "least squares on labels": [],
    "CalibratedRanker(context=None)": [],
    "CalibratedRanker()": [],
}
for n in n_queries:
    train = data.groups < n
    X, y, groups = data.X[train], data.y[train], data.groups[train]
    plain = default_regressor(len(y)).fit(X, y)
    rows = CalibratedRanker(loss="ndcg@10", context=None).fit(X, y, groups=groups)
    ranker = CalibratedRanker(loss="ndcg@10").fit(X, y, groups=groups)
    scores = [
        plain.predict(data.X[test]),
        rows.decision_function(data.X[test]),
        ranker.decision_function(data.X[test], groups=groups_test),
    ]
    for curve, score in zip(curves.values(), scores, strict=True):
        curve.append(ndcg_score(y_test, score, k=10, groups=groups_test))

best = ndcg_score(y_test, ranks=data.bayes_ranks[test], k=10, groups=groups_test)

# %%
# Differences between queries carry no information about rankings. Centring and context keep the
# trees from spending themselves on them; more queries close most of the gap that is left.

figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, curve in curves.items():
    axes.plot(n_queries, curve, marker="o", label=name)
axes.axhline(best, color="black", linestyle="--", label="best possible ranking")
axes.set(xscale="log", xlabel="training queries", ylabel="NDCG@10 on 400 new queries")
axes.set_xticks(n_queries, [str(n) for n in n_queries])
axes.minorticks_off()
axes.legend()
print({name: np.round(curve, 3).tolist() for name, curve in curves.items()}, round(best, 3))
plt.show()
