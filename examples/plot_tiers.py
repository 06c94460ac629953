"""
Group a leaderboard into tiers
==============================

A committee compared ten projects, two at a time. A ranking of all ten says more than the votes do:
some projects are clearly ahead, and others cannot be told apart. Which groups do the votes support?
`Aggregate.tiers` finds the tiers that people often draw by hand below a leaderboard.
"""


# %%
# Simulate the votes
# ------------------

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(1)
projects = np.array(["Atlas", "Beacon", "Cedar", "Delta", "Ember", "Fjord", "Grove", "Harbor",
                     "Iris", "Juno"])  # fmt: skip
strength = np.array([2.2, 2.0, 1.9, 0.9, 0.8, 0.8, 0.7, -0.4, -0.5, -1.6])
one = rng.integers(0, 10, 600)
two = (one + rng.integers(1, 10, 600)) % 10
wins = rng.random(600) < 1 / (1 + np.exp(strength[two] - strength[one]))
votes = [(projects[a], projects[b]) if won else (projects[b], projects[a])
         for a, b, won in zip(one, two, wins, strict=True)]  # fmt: skip

# %%
# Find the tiers
# --------------
#
# `aggregate` makes a leaderboard. Resamples of the votes show how certain each pair is, and tiers
# separate the pairs that are certain enough. Leaving a pair undecided costs as much as deciding it
# when it is wrong with a probability of 2.5 %.

from sklearn_rankcal import aggregate

board = aggregate(votes, n_resamples=1000)
rows = board.rows_of()
tiers = board.tiers()
for row, rank, tier in zip(rows, board.ranks[rows], tiers, strict=True):
    print(f"{rank:2d}  {board.items[row]:7s} tier from place {tier}")

# %%
# Plot the tiers
# --------------
#
# The plot shows the scores with their intervals. Each tier has its own colour.

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
places = np.arange(len(rows))
colors = plt.colormaps["tab10"].colors
for number, tier in enumerate(np.unique(tiers)):
    inside = tiers == tier
    own = rows[inside]
    errors = [board.scores[own] - board.score_low[own], board.score_high[own] - board.scores[own]]
    ax.errorbar(board.scores[own], places[inside], xerr=errors, fmt="o", color=colors[number],
                label=f"from place {tier}")  # fmt: skip
ax.set_yticks(places, board.items[rows])
ax.invert_yaxis()
ax.set_xlabel("score with its 95 % interval")
ax.legend(title="tier")
plt.show()

# %%
# A ranker of queries can do the same with its predictions: ``decoder=Tiers(margin=...)`` leaves a
# pair undecided if its predicted difference is not worth the margin. See :ref:`tiers`.
