"""
Rank when preferences form cycles
=================================

Can you learn preferences that go round in a circle, as in rock, paper, scissors? Scores cannot
express them, however many queries they are learned from. A model of pairs with an exact decoder
can, and finds the best possible ranking.
"""


# %%
# Cyclic data
# -----------
#
# The documents lie on a circle. Each document is preferred, with some noise, to the documents up to
# half a turn behind it. The expected preferences are therefore cyclic. The best possible ranking is
# known, because the data are simulated. It contradicts some preferences, too, because no ranking
# agrees with all preferences of a cycle.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.datasets import make_preferences
from sklearn_rankcal.models import BilinearPairs, PairwiseRidge

options = {"n_documents": 8, "n_features": 4, "kind": "cyclic", "noise": 0.3}
test = make_preferences(1000, **options, random_state=1)

rankers = {
    "score: trees on the net Borda score": CalibratedRanker(
        ExtraTreesRegressor(100, min_samples_leaf=5, n_jobs=2, random_state=0),
        loss="pd_by_scores",
    ),
    "score: PairwiseRidge": CalibratedRanker(PairwiseRidge(), loss="pd"),
    "pairs: BilinearPairs, greedy_dag": CalibratedRanker(
        BilinearPairs(), loss="pd", decoder="greedy_dag"
    ),
    "pairs: BilinearPairs, exact": CalibratedRanker(BilinearPairs(), loss="pd", decoder="exact"),
    "scores and pairs: the default of loss='pd'": CalibratedRanker(loss="pd"),
}


def contradicted(ranks):
    """Return the expected share of preferences that rankings of the test queries contradict."""
    shares = []
    for q, probability in enumerate(test.probabilities):
        own = ranks[test.groups == q]
        shares.append((probability * (own[:, None] > own)).sum() / (len(own) * (len(own) - 1) / 2))
    return np.mean(shares)


n_queries = [10, 30, 100, 300, 1000]
curves = {name: [] for name in rankers}
for n in n_queries:
    train = make_preferences(n, **options, random_state=0)
    for name, ranker in rankers.items():
        ranker.fit(train.X, train.y)
        curves[name].append(contradicted(ranker.predict(test.X, groups=test.groups)))

# %%
# Compare scores and pairs
# ------------------------
#
# Rankers that predict scores contradict the most preferences, even with 1,000 queries. Models of
# pairs with the exact decoder reach the best possible ranking, also as part of the default ranker.
# The decoder ``greedy_dag`` is algorithm 1 of Ramaswamy, Agarwal and Tewari (2013). It is
# consistent only if the expected preferences are acyclic, so its curve levels off above the best
# possible ranking, but far below the curves of the scores.

best = contradicted(test.bayes_ranks)
figure, axes = plt.subplots(figsize=(5.2, 5.4), layout="constrained")
for name, curve in curves.items():
    axes.plot(n_queries, curve, marker="o", label=name)
axes.axhline(best, color="black", linestyle="--", label="best possible ranking")
axes.set(
    title="Preferences contradicted, on cyclic data",
    xscale="log",
    xlabel="training queries",
    ylabel="share of preferences contradicted",
)
axes.set_xticks(n_queries, [str(n) for n in n_queries])
axes.minorticks_off()
figure.legend(loc="outside lower center", ncols=1)
for name, curve in curves.items():
    print(f"{name:36}", np.round(curve, 3).tolist())
print(f"{'best possible':36}", round(best, 3))
plt.show()
