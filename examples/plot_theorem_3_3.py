"""
Why no scores are calibrated for AP and ERR
===========================================

This example illustrates theorem 3.3 of Calauzènes, Usunier and Gallinari (2013). Of four documents
the first two are relevant with probability p, and otherwise the last two. Each line is the expected
average precision (AP), or the expected reciprocal rank (ERR), of one of the 24 rankings. At p = 1/2
every document is relevant with the same probability, and no score that treats the documents alike
can distinguish them. Expected scores therefore tie all four documents, and a sort may return any
ranking. However, the rankings are not equally good. For average precision it is best to rank the
two documents that are relevant together next to each other, and for ERR it is best to separate
them.
"""

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
    axes.axhline(means, ls=":", color="black", label="scores: the mean of all 24 at p = 1/2")
    axes.plot(0.5, -ranking_risk(best, half, loss), "k*", ms=12, label="the best ranking")
    axes.plot([], [], color="0.7", label="the other rankings")
    axes.plot([], [], color="tab:orange", label="1, 3, 2, 4 and the like: kinds alternate")
    axes.set(title=f"expected {title}", xlabel="P(first two are relevant)")
    print(f"{title}: kinds together {-ranking_risk([1, 2, 3, 4], half, loss):.6f}, "
          f"alternating {-ranking_risk([1, 3, 2, 4], half, loss):.6f}")  # fmt: skip
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center")
plt.show()

# %%
# If documents of the same kind are together, the expected average precision is 17/24, and if the
# kinds alternate, it is 2/3, a difference of 1/24. The expected ERR is 41/96 and 43/96, a
# difference of 1/48. The paper prints the differences 1/12 and 1/24, which are the sums over the
# two labels instead of their means. The theorem is not affected. ``loss="map"`` predicts a number
# for each pair of documents, and finds the ranking that keeps documents of the same kind together.
