"""
No scores for AP and ERR: a theorem drawn
=========================================

Theorem 3.3 of Calauzènes, Usunier and Gallinari (2013). Of four documents either the first two are
relevant, with probability p, or the last two. Each line is the expected average precision, or
expected reciprocal rank, of one of the 24 rankings. At p = 1/2 the documents cannot be told apart
by any scores that treat them alike: whatever is expected of one is expected of all, so scores tie
all four, and a sort may return any of the rankings. But they are not equally good. For average
precision the two that are relevant together belong together, for ERR they belong apart.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np

from sklearn_rankcal.consistency import LabelDistribution, bayes_ranking, ranking_risk
from sklearn_rankcal.losses import ERR, MAP

labels = [[1, 1, 0, 0], [0, 0, 1, 1]]
chances = np.linspace(0.2, 0.8, 61)
rankings = [np.array(ranks) for ranks in itertools.permutations((1, 2, 3, 4))]
figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
losses = {"average precision": MAP(), "ERR": ERR(max_relevance=1)}
for axes, (title, loss) in zip(panels, losses.items(), strict=True):
    half = LabelDistribution(labels, [0.5, 0.5])
    for ranks in rankings:
        values = [
            -ranking_risk(ranks, LabelDistribution(labels, [p, 1 - p]), loss) for p in chances
        ]
        apart = abs(ranks[0] - ranks[1]) == 2  # the second document of a kind is two places below
        axes.plot(chances, values, color="tab:orange" if apart else "0.7", lw=1)
    best = bayes_ranking(half, loss)
    means = np.mean([-ranking_risk(ranks, half, loss) for ranks in rankings])
    axes.axhline(means, ls=":", color="black", label="scores: the mean of all 24 at p = 1/2")
    axes.plot(0.5, -ranking_risk(best, half, loss), "k*", ms=12, label="the best ranking")
    axes.plot([], [], color="tab:orange", label="1, 3, 2, 4 and the like: kinds alternate")
    axes.set(title=f"expected {title}", xlabel="P(first two are relevant)")
    axes.legend(fontsize="small")
    print(f"{title}: kinds together {-ranking_risk([1, 2, 3, 4], half, loss):.6f}, "
          f"alternating {-ranking_risk([1, 3, 2, 4], half, loss):.6f}")  # fmt: skip
plt.show()

# %%
# By enumeration: 17/24 against 2/3 for average precision, a difference of 1/24, and 41/96 against
# 43/96 for ERR, a difference of 1/48. (The paper prints 1/12 and 1/24: the sums over the two
# labels, where means are meant. The theorem stands.) ``loss="map"`` predicts pairs, and finds the
# ranking that keeps the kinds together.
