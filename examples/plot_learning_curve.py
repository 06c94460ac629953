"""
How close to the best possible ranking?
=======================================

`make_ranking` draws grades from a known distribution, so the best possible ranking is known. It is
the dashed line. Five rankers learn from more and more queries, four of them with the same trees.
Two of these learn the labels themselves. The first of them only has the columns of X, and its
targets are not centred. The second has context columns and targets that are centred in each query,
like `CalibratedRanker`. The next two rankers learn the targets for NDCG, one without and one with
context columns. The last one is the stack of four models.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.losses import DCG
from sklearn_rankcal.metrics import ndcg_score
from sklearn_rankcal.models import default_regressor

data = make_ranking(1400, (8, 30), 12, query_effect=2.0, random_state=0)
test = data.groups >= 1000
y_test, groups_test = data.y[test], data.groups[test]

n_queries = [30, 100, 300, 1000]
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
# Differences between queries contain no information about rankings. With centring and context
# columns, the trees do not spend splits on these differences. More queries close most of the gap
# that remains to the best possible ranking. With the same columns and centring, the labels
# themselves do as well in this example as the targets for NDCG.

figure, axes = plt.subplots(figsize=(5.2, 5.4), layout="constrained")
for name, curve in curves.items():
    axes.plot(n_queries, curve, marker="o", label=name)
axes.axhline(best, color="black", linestyle="--", label="best possible ranking")
axes.set(
    title="NDCG by the number of training queries",
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
