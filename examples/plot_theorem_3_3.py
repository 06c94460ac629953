"""
See why scores fail for AP and ERR
==================================

Can sorting by scores be optimal for average precision (AP) or expected reciprocal rank (ERR)? Not
always. In this example all scores are tied, but the rankings are not equally good. It illustrates
theorem 3.3 of Calauzènes, Usunier and Gallinari (2013).
"""


# %%
# Two kinds of documents
# ----------------------
#
# Of four documents, the first two are relevant with probability p, and otherwise the last two. A
# line in the figure is the expected AP or ERR of one of the 24 rankings.
#
# At p = 1/2, all documents are relevant with the same probability, and a score that treats
# documents alike cannot distinguish them. Expected scores tie all four, so sorting may return any
# ranking. But AP is best if the two documents that are relevant together are next to each other,
# and ERR is best if they are apart.

import itertools

import matplotlib.pyplot as plt
import numpy as np

from sklearn_rankcal.consistency import LabelDistribution, bayes_ranking, ranking_risk
from sklearn_rankcal.losses import ERR, MAP

labels = [[1, 1, 0, 0], [0, 0, 1, 1]]
chances = np.linspace(0.2, 0.8, 61)
rankings = [np.array(ranks) for ranks in itertools.permutations((1, 2, 3, 4))]
figure, panels = plt.subplots(2, 1, figsize=(5.2, 7.4), layout="constrained")
losses = {"average precision": MAP(), "ERR": ERR(max_relevance=1)}
for axes, (title, loss) in zip(panels, losses.items(), strict=True):
    half = LabelDistribution(labels, [0.5, 0.5])
    for ranks in rankings:
        values = [
            -ranking_risk(ranks, LabelDistribution(labels, [p, 1 - p]), loss) for p in chances
        ]
        # Documents of the same kind are two places apart if the kinds alternate.
        apart = abs(ranks[0] - ranks[1]) == 2
        axes.plot(chances, values, color="tab:orange" if apart else "0.7", lw=1)
    best = bayes_ranking(half, loss)
    means = np.mean([-ranking_risk(ranks, half, loss) for ranks in rankings])
    axes.axhline(means, ls=":", color="black", label="tied scores: mean of all 24 at p = 1/2")
    axes.plot(0.5, -ranking_risk(best, half, loss), "k*", ms=12, label="best ranking at p = 1/2")
    axes.plot([], [], color="0.7", label="other rankings")
    axes.plot([], [], color="tab:orange", label="rankings that alternate the two kinds")
    axes.set(title=f"expected {title}", xlabel="P(first two are relevant)")
    print(f"{title}: kinds together {-ranking_risk([1, 2, 3, 4], half, loss):.6f}, "
          f"alternating {-ranking_risk([1, 3, 2, 4], half, loss):.6f}")  # fmt: skip
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center")
plt.show()

# %%
# The differences in numbers
# --------------------------
#
# With documents of the same kind together, the expected AP is 17/24; with kinds alternating, it is
# 2/3, which is 1/24 less. The expected ERR is 41/96 and 43/96, a difference of 1/48. The paper
# prints the differences 1/12 and 1/24, which are sums over the two labels instead of means. The
# theorem is not affected.
#
# ``loss="map"`` predicts a number for each pair of documents, and finds the ranking that keeps
# documents of the same kind together.
