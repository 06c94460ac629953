"""
Which normalization makes listwise surrogates consistent for NDCG
=================================================================

This example illustrates proposition 7 of Ravikumar, Tewari and Yang (2011). A query has two
documents. Their labels are (1, 5) with probability p, and (2, 1) otherwise. The best ranking for
NDCG sorts the documents by the expectation of their gains divided by the largest DCG of the label.
Listwise surrogates sort by expectations as well, but when they were published, they normalized
differently: squared error not at all, the cosine by the Euclidean norm of the gains (RankCosine),
and cross-entropy by a softmax of the labels (ListNet).

Each circle in the upper row is a label, as the utilities of its two documents, and each star is the
mean of two labels. Document 2 is ranked first above the diagonal, and document 1 below it. For the
probability of each panel, the star of the surrogate's own normalization is on one side of the
diagonal, and the star of the normalization by the largest DCG on the other side. The lower row
shows for other p how far the stars are above the diagonal. In the grey interval they are on
different sides, and the surrogate with its own normalization tends to the wrong ranking, however
much data there is. With the normalization by the largest DCG, which is the default of the
surrogates of this package, no such interval exists.
"""

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
unit = loss.measure.normalizer(loss.measure.gains(labels[0]), Queries.single(2))[0]
surrogates = {
    "squared error": (PointwiseSquared, 0.2, unit, f"gains / {unit:.1f}"),
    "cosine": (Cosine, 0.38, 1.0, "gains / Euclidean norm"),
    "cross-entropy": (Softmax, 0.35, 1.0, "softmax of the labels"),
}
chances = np.linspace(0, 1, 2001)
figure, panels = plt.subplots(2, 3, figsize=(11, 8), layout="constrained", height_ratios=[1.8, 1])
for (upper, lower), (name, (kind, p, scale, own_name)) in zip(
    panels.T, surrogates.items(), strict=True
):
    own = kind("own").targets(loss, labels.ravel(), queries).reshape(2, 2) / scale
    leads = []
    for utilities, color, title in (
        (consistent, "tab:green", "gains / largest DCG"),
        (own, "tab:blue", own_name),
    ):
        star = {"color": color, "ms": 11, "mec": "black", "mew": 0.6, "zorder": 3}
        mean = p * utilities[0] + (1 - p) * utilities[1]
        upper.plot(*utilities.T, "o-", color=color, lw=1)
        upper.plot(*mean, "*", **star, label=title)
        above = utilities[:, 1] - utilities[:, 0]
        leads.append(chances * above[0] + (1 - chances) * above[1])
        lower.plot(chances, leads[-1], color=color)
        lower.plot(p, mean[1] - mean[0], "*", **star)
    upper.plot([0, 1], [0, 1], color="black", lw=1)
    upper.text(0.7, 0.93, "document 2 first", ha="center", fontsize="small")
    upper.text(0.62, 0.05, "document 1 first", ha="center", fontsize="small")
    upper.set(
        title=f"{name}, p = {p}",
        xlabel="utility of document 1",
        ylabel="utility of document 2",
        xlim=(0, 1),
        ylim=(0, 1.3),
        yticks=np.linspace(0, 1, 6),
        aspect="equal",
    )
    upper.legend(fontsize="small", loc="upper center", ncols=1)
    wrong = chances[leads[0] * leads[1] < 0]
    shown = (wrong.min() - 0.05, wrong.max() + 0.05)
    height = max(np.abs(lead[(chances > shown[0]) & (chances < shown[1])]).max() for lead in leads)
    lower.axvspan(wrong.min(), wrong.max(), color="0.85", label="wrong ranking")
    lower.axhline(0, color="black", lw=1)
    lower.set(xlabel="p", ylabel="utility 2 - utility 1", xlim=shown, ylim=(-height, height))
    lower.legend(fontsize="small", loc="upper left")

    distribution = LabelDistribution(labels, [p, 1 - p])
    best = bayes_ranking(distribution, loss)
    print(f"{name}: wrong for p from {wrong.min():.3f} to {wrong.max():.3f}; at p = {p} it loses "
          f"{ranking_regret(3 - best, distribution, loss):.4f} of NDCG")  # fmt: skip
plt.show()

# %%
# The proposition is about the existence of such labels. `is_calibrated_numerically` searches for
# them among random distributions of labels from 0 to 3. It finds distributions of three documents
# on which each surrogate with its own normalization fails. With the normalization by the largest
# DCG it finds none.

for name, (kind, *_) in surrogates.items():
    own = is_calibrated_numerically(kind("own"), loss, n_trials=5000, random_state=0)
    ours = is_calibrated_numerically(kind(), loss, n_trials=5000, random_state=0)
    result = "no failure found" if ours else "failure"
    lost = own.counterexample.regret
    print(f"{name}: loses {lost:.3f} of NDCG as published; by the largest DCG, {result}")
