"""
Normalize listwise losses for NDCG
==================================

Which normalization makes a listwise surrogate consistent for NDCG? Divide the gains of a query by
its largest DCG. This is the default of the surrogates in this package. As published, squared error,
RankCosine and ListNet normalize differently and can tend to the wrong ranking, however much data
there is. This example illustrates proposition 7 of Ravikumar, Tewari and Yang (2011).
"""


# %%
# Two documents and two labels
# ----------------------------
#
# A query has two documents. Their labels are (1, 5) with probability p, and (2, 1) otherwise. The
# best ranking for NDCG sorts the documents by the expectation of their gains divided by the largest
# DCG of the label. Listwise surrogates sort by expectations, too, but as published they use other
# normalizations: squared error uses none, the cosine uses the Euclidean norm of the gains
# (RankCosine), and cross-entropy uses a softmax of the labels (ListNet).
#
# How to read the figure
# ----------------------
#
# On the left, a circle is a label: the utilities of its two documents. A star is the mean of the
# two labels. Above the diagonal, document 2 is ranked first; below it, document 1. In each panel
# the two normalizations disagree: their stars are on different sides of the diagonal.
#
# On the right, p varies. The lines show how far the stars are above the diagonal. In the grey
# interval they are on different sides, and the surrogate as published ranks the documents in the
# wrong order. With the normalization by the largest DCG, there is no such interval.
#
# The gains of squared error go up to 31. The plot divides them by the largest DCG of the first
# label.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_rankcal.consistency import (
    LabelDistribution,
    bayes_ranking,
    is_calibrated_numerically,
    ranking_regret,
)
from sklearn_rankcal.losses import NDCG
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import Cosine, PointwiseSquared, Softmax

labels = np.array([[1.0, 5.0], [2.0, 1.0]])
loss = NDCG(shrinkage=0.0)
queries = Queries.uniform(2, 2)
consistent = loss.encode(labels.ravel(), queries).reshape(2, 2)
# The unit of the gains of the squared error is the largest DCG of the first label.
unit = loss.normalizer(loss.gains(labels[0]), Queries.single(2))[0]
surrogates = {
    "squared error": (PointwiseSquared, 0.2, unit),
    "cosine": (Cosine, 0.38, 1.0),
    "cross-entropy": (Softmax, 0.35, 1.0),
}
chances = np.linspace(0, 1, 2001)
figure, panels = plt.subplots(3, 2, figsize=(5.2, 9.2), layout="constrained")
for (left, right), (name, (kind, p, scale)) in zip(panels, surrogates.items(), strict=True):
    own = kind("own").targets(loss, labels.ravel(), queries).reshape(2, 2) / scale
    leads = []
    for utilities, color, title in (
        (consistent, "tab:green", "divided by the largest DCG"),
        (own, "tab:blue", "as published"),
    ):
        star = {"color": color, "ms": 11, "mec": "black", "mew": 0.6, "zorder": 3}
        mean = p * utilities[0] + (1 - p) * utilities[1]
        left.plot(*utilities.T, "o-", color=color, lw=1)
        left.plot(*mean, "*", **star, label=title)
        above = utilities[:, 1] - utilities[:, 0]
        leads.append(chances * above[0] + (1 - chances) * above[1])
        right.plot(chances, leads[-1], color=color)
        right.plot(p, mean[1] - mean[0], "*", **star)
    left.plot([0, 1], [0, 1], color="black", lw=1)
    left.set(
        title=name,
        xlabel="utility of document 1",
        ylabel="utility of document 2",
        xlim=(0, 1),
        ylim=(0, 1),
        aspect="equal",
    )
    wrong = chances[leads[0] * leads[1] < 0]
    shown = (wrong.min() - 0.05, wrong.max() + 0.05)
    height = max(np.abs(lead[(chances > shown[0]) & (chances < shown[1])]).max() for lead in leads)
    right.axvspan(wrong.min(), wrong.max(), color="0.85", label="wrong ranking")
    right.axhline(0, color="black", lw=1)
    right.set(
        title=f"p = {p}",
        xlabel="p",
        ylabel="utility 2 - utility 1",
        xlim=shown,
        ylim=(-height, height),
    )

    distribution = LabelDistribution(labels, [p, 1 - p])
    best = bayes_ranking(distribution, loss)
    print(f"{name}: wrong ranking for p from {wrong.min():.3f} to {wrong.max():.3f}; loses "
          f"{ranking_regret(3 - best, distribution, loss):.4f} of NDCG at p = {p}")  # fmt: skip
handles, names = left.get_legend_handles_labels()
figure.legend(
    [*handles, *right.get_legend_handles_labels()[0]],
    [*names, "wrong ranking"],
    loc="outside lower center",
)
plt.show()

# %%
# Search for failures
# -------------------
#
# The proposition says that such labels exist. `is_calibrated_numerically` searches for them among
# random distributions of labels from 0 to 3. As published, each surrogate fails on some
# distribution of three documents. With the normalization by the largest DCG, the search finds no
# failure.

for name, (kind, *_) in surrogates.items():
    own = is_calibrated_numerically(kind("own"), loss, n_trials=5000, random_state=0)
    ours = is_calibrated_numerically(kind(), loss, n_trials=5000, random_state=0)
    result = "no failure found" if ours else "failure"
    lost = own.counterexample.regret
    print(f"{name}: as published, loses {lost:.3f} of NDCG; with the largest DCG, {result}")
