"""
Which surrogate is right on which side of its condition
=======================================================

People compare documents 0, 1 and 2, two at a time. Surrogates of pairwise disagreement rank the
documents from such votes, and each is right under a condition on the distribution of the votes.
Every point of the pictures is a distribution: a share x of the votes prefers 1 to 2, a share z
prefers 2 to 0, a quarter prefers 0 to 1, and the others prefer 0 to 2. Above the line of cycles,
the majorities go round in a circle. `suboptimality` is positive where every sequence of scores that
minimises a surrogate leads to the best ranking, and 0 where the surrogate can fail.
"""

# %%
# The conditions come first. `is_low_noise` asks that preferences reinforce each other,
# `satisfies_score_condition` that the net votes for a document sort the documents (P_f), and
# `satisfies_dag` that the majorities have no cycle. Each condition implies the next.

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
SHARES = np.linspace(0.005, 0.495, 16)
FINE = np.linspace(0.005, 0.495, 51)


def distribution(x, z):
    return VOTES, [0.25, x, z, 0.75 - x - z]


def on_the_grid(holds, shares=SHARES):
    """1 where it holds, 0 where it does not, NaN where shares are negative."""
    return np.array(
        [[float(bool(holds(distribution(x, z)))) if x + z <= 0.75 else np.nan for x in shares]
         for z in shares]
    )  # fmt: skip


conditions = {
    "low noise": on_the_grid(is_low_noise, FINE),
    "P_f": on_the_grid(satisfies_score_condition, FINE),
    "no cycle": on_the_grid(satisfies_dag, FINE),
}

# %%
# Then the surrogates. RankNet, and the margin that each preference requires, see single votes.
# Least squares on the net votes (``"pd_by_scores"``) is the surrogate of Duchi, Mackey and Jordan.
# `DifferenceGraph` receives all votes of the query in one label, the mean graph.


def consistent(surrogate, loss="pd"):
    return lambda world: suboptimality(1e-4, world, loss, surrogate) > 1e-9


def consistent_when_aggregated(surrogate):
    def holds(world):
        votes, shares = world
        mean = np.tensordot(shares, votes, 1)[None]
        return suboptimality(1e-4, (mean, [1.0]), "pd", surrogate) > 1e-9

    return holds


surrogates = {
    "RankNet, single votes": on_the_grid(consistent("ranknet")),
    "required margin, single votes": on_the_grid(consistent("required_margin")),
    "least squares on net votes": on_the_grid(consistent("pointwise_squared", "pd_by_scores")),
    "difference graph, all votes": on_the_grid(consistent_when_aggregated("difference_graph")),
}

# %%
# A surrogate with a condition is right on the whole side of its line: least squares on
# net votes where P_f holds, and the difference graph wherever there is no cycle. RankNet and the
# required margin fail inside the region of low noise, where ranking is as easy as it can be (Duchi,
# Mackey and Jordan, 2013, theorems 2 and 3).

figure, axes = plt.subplots(
    2, 2, figsize=(5.2, 6.6), sharex=True, sharey=True, layout="constrained"
)
colors = {"low noise": "tab:green", "P_f": "tab:blue", "no cycle": "tab:red"}
for axis, (name, right) in zip(axes.flat, surrogates.items(), strict=True):
    axis.pcolormesh(SHARES, SHARES, right, cmap="Greys_r", vmin=-0.6, vmax=1.4, shading="nearest")
    for condition, holds in conditions.items():
        axis.contour(
            FINE, FINE, np.nan_to_num(holds), levels=[0.5], colors=colors[condition],
            linewidths=2,
        )  # fmt: skip
    axis.set_title(name.replace(", ", ",\n"), fontsize="medium")
for axis in axes[-1]:
    axis.set_xlabel("share of 1 over 2")
for axis in axes[:, 0]:
    axis.set_ylabel("share of 2 over 0")
lines = [plt.Line2D([], [], color=color, linewidth=2) for color in colors.values()]
figure.legend(
    lines,
    [f"{name} holds below" for name in colors],
    loc="outside lower center",
    title="light: right, dark: can fail,\nwhite: no such distribution",
)
plt.show()
