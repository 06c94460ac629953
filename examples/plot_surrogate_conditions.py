"""
See where each pairwise surrogate fails
=======================================

People compare three documents, two at a time, and a surrogate loss ranks the documents from the
votes. When can you trust it? Least squares on net votes and the difference graph are right wherever
a known condition holds. RankNet and the required margin can fail even under low noise, the
strictest of the conditions.
"""

# %%
# Distributions and conditions
# ----------------------------
#
# Documents are numbered 0, 1 and 2. Each point of the maps is a distribution of votes. A share x of
# the votes prefers 1 to 2, and a share z prefers 2 to 0. A quarter prefers 0 to 1, and the rest
# prefer 0 to 2. Three lines divide the maps. Each condition implies the next:
#
# * `is_low_noise`: preferences reinforce each other.
# * `satisfies_score_condition` (P_f): the net votes for a document sort the documents.
# * `satisfies_dag`: the majorities have no cycle. Above this line, they go round in a circle.

from bisect import bisect_left

import matplotlib.pyplot as plt
import numpy as np

from sklearn_rankcal.consistency import (
    is_low_noise,
    satisfies_dag,
    satisfies_score_condition,
    suboptimality,
)

VOTES = np.zeros((4, 3, 3))
VOTES[range(4), [0, 1, 2, 0], [1, 2, 0, 2]] = 1  # 0 > 1, 1 > 2, 2 > 0, 0 > 2
SHARES = np.linspace(0.005, 0.495, 11)
FINE = np.linspace(0.005, 0.5, 100)


def distribution(x, z):
    return VOTES, [0.25, x, z, 0.75 - x - z]


def border(holds):
    """Return the largest share z for which a condition holds, for each x; NaN if there is none."""
    shares = np.linspace(0, 0.5, 501)
    n = [bisect_left(shares, 1, key=lambda z, x=x: x + z > 0.75 or not holds(distribution(x, z)))
         for x in FINE]  # fmt: skip
    return np.append(np.nan, shares)[n]


borders = {
    "low noise": border(is_low_noise),
    "P_f": border(satisfies_score_condition),
    "no cycle": border(satisfies_dag),
}

# %%
# Test the surrogates
# -------------------
#
# `suboptimality` is positive if all sequences of scores that minimise a surrogate lead to the best
# ranking. It is 0 if the surrogate can fail.
#
# RankNet and the margin that each preference requires see single votes. Least squares on net votes
# (``"pd_by_scores"``) is the surrogate of Duchi, Mackey and Jordan. `DifferenceGraph` receives all
# votes of a query in one label, the mean graph.


def consistent(surrogate, loss="pd"):
    return lambda world: suboptimality(1e-4, world, loss, surrogate) > 1e-9


def consistent_when_aggregated(surrogate):
    def holds(world):
        votes, shares = world
        mean = np.tensordot(shares, votes, 1)[None]
        return suboptimality(1e-4, (mean, [1.0]), "pd", surrogate) > 1e-9

    return holds


def where(holds):
    """Return 1 where it holds, 0 where it does not, and NaN where a share would be negative."""
    return [[holds(distribution(x, z)) if x + z <= 0.75 else np.nan for x in SHARES]
            for z in SHARES]  # fmt: skip


surrogates = {
    "RankNet,\nsingle votes": where(consistent("ranknet")),
    "required margin,\nsingle votes": where(consistent("required_margin")),
    "least squares\non net votes": where(consistent("pointwise_squared", "pd_by_scores")),
    "difference graph,\nall votes": where(consistent_when_aggregated("difference_graph")),
}

# %%
# Plot the maps
# -------------
#
# Least squares on net votes is right wherever P_f holds, and the difference graph wherever there is
# no cycle. RankNet and the required margin fail inside the region of low noise, where ranking is as
# easy as it can be (Duchi, Mackey and Jordan, 2013, theorems 2 and 3).

figure, axes = plt.subplots(
    2, 2, figsize=(5.2, 6.6), sharex=True, sharey=True, layout="constrained"
)
colors = {"low noise": "tab:green", "P_f": "tab:blue", "no cycle": "tab:red"}
for axis, (name, right) in zip(axes.flat, surrogates.items(), strict=True):
    axis.pcolormesh(SHARES, SHARES, right, cmap="Greys_r", vmin=-0.6, vmax=1.4, shading="nearest")
    for condition, z in borders.items():
        axis.plot(FINE, z, color=colors[condition], linewidth=2, label=condition)
    axis.set_title(name, fontsize="medium")
for axis in axes[-1]:
    axis.set_xlabel("share of 1 over 2")
for axis in axes[:, 0]:
    axis.set_ylabel("share of 2 over 0")
figure.legend(
    *axes[0, 0].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=3,
    title="light: right, dark: can fail, white: no such distribution\n"
    "Each condition holds below its line.",
)
plt.show()
