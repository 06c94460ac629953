"""
See how close more queries bring you to the best ranking
========================================================

How many training queries do you need, and which part of a ranker helps most? `make_ranking` draws
grades from a known distribution, so the best possible ranking is known. With context columns, 400
queries come close to it. Without them, rankers stay far below.
"""


# %%
# Train five rankers
# ------------------
#
# The first four rankers are boosted trees.
#
# * *labels, columns of X* learns the labels from the columns of X. Its targets are not centred.
# * *labels, context and centring* learns the labels, too, but with context columns and with targets
#   centred in each query, like `CalibratedRanker`.
# * *'boosting', context=None* learns the targets for NDCG without context columns.
# * *'boosting'* learns the targets for NDCG with context columns.
# * *'stacked'* combines four models: boosted trees for the targets for NDCG, for net Borda scores
#   and for the labels, and a forest.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.losses import DCG
from sklearn_rankcal.metrics import ndcg_score
from sklearn_rankcal.models import default_regressor

data = make_ranking(800, (8, 30), 12, query_effect=2.0, random_state=0)
test = data.groups >= 400
y_test, groups_test = data.y[test], data.groups[test]

n_queries = [30, 100, 400]
curves = {
    "labels, columns of X": [],
    "labels, context and centring": [],
    "'boosting', context=None": [],
    "'boosting'": [],
    "'stacked'": [],
}
for n in n_queries:
    train = data.groups < n
    X, y, groups = data.X[train], data.y[train], data.groups[train]
    plain = default_regressor(len(y)).fit(X, y)
    labels = CalibratedRanker("boosting", loss=DCG(gain="linear")).fit(X, y, groups=groups)
    rows = CalibratedRanker("boosting", loss="ndcg@10", context=None).fit(X, y, groups=groups)
    ranker = CalibratedRanker("boosting", loss="ndcg@10").fit(X, y, groups=groups)
    stack = CalibratedRanker("stacked", loss="ndcg@10").fit(X, y, groups=groups)
    scores = [
        plain.predict(data.X[test]),
        labels.decision_function(data.X[test], groups=groups_test),
        rows.decision_function(data.X[test]),
        ranker.decision_function(data.X[test], groups=groups_test),
        stack.decision_function(data.X[test], groups=groups_test),
    ]
    for curve, score in zip(curves.values(), scores, strict=True):
        curve.append(ndcg_score(y_test, score, k=10, groups=groups_test))

best = ndcg_score(y_test, ranks=data.bayes_ranks[test], k=10, groups=groups_test)

# %%
# Compare the learning curves
# ---------------------------
#
# Differences between queries contain no information about rankings. With centring and context
# columns, trees waste no splits on them. More queries then bring them close to the best possible
# ranking. With the same columns and centring, the plain labels do as well as the targets for NDCG
# in this example.

figure, axes = plt.subplots(figsize=(5.2, 5.4), layout="constrained")
for name, curve in curves.items():
    axes.plot(n_queries, curve, marker="o", label=name)
axes.axhline(best, color="black", linestyle="--", label="best possible ranking")
axes.set(
    title="More queries, and the best possible ranking",
    xscale="log",
    xlabel="training queries",
    ylabel="NDCG@10 on 400 new queries",
)
axes.set_xticks(n_queries, [str(n) for n in n_queries])
axes.minorticks_off()
axes.margins(y=0.1)
figure.legend(loc="outside lower center")
print({name: np.round(curve, 3).tolist() for name, curve in curves.items()}, round(best, 3))
plt.show()
