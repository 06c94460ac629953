"""
Rank models from votes, with error bars
=======================================

People were shown the answers of two language models to the same question, and said which one they
preferred, or that both were equally good. This example turns their votes into a leaderboard: a
score and a rank for each model, how certain they are, and which differences between models the
votes have decided. The short version is on the page :ref:`votes`.

The votes are a table with one row for each vote. Here they are simulated, so that the leaderboard
can be compared with the truth. In the simulation, each model has a strength, and each person has
tastes of their own: for this person, every model is better or worse by a random amount. Two of the
models are nearly equal.
"""

import numpy as np
import pandas as pd

strengths = {
    "osprey-large": 0.9,
    "heron-2": 0.62,
    "heron-2-mini": 0.6,
    "kestrel": 0.2,
    "osprey-small": -0.1,
    "wren-7b": -0.5,
    "wren-3b": -0.7,
    "finch-1": -1.0,
}
models = np.array(list(strengths))
n_votes, n_judges, spread_of_tastes = 4000, 60, 0.8


def draw_votes(n_votes, n_judges, rng):
    """A table of random votes."""
    judge = rng.integers(n_judges, size=n_votes)
    liked = np.array(list(strengths.values())) + rng.normal(
        scale=spread_of_tastes, size=(n_judges, len(models))
    )
    a = rng.integers(len(models), size=n_votes)
    b = (a + rng.integers(1, len(models), size=n_votes)) % len(models)
    gap = liked[judge, a] - liked[judge, b] + rng.logistic(size=n_votes)
    winner = np.select([np.abs(gap) < 0.3, gap > 0], ["tie", "model_a"], "model_b")
    return pd.DataFrame(
        {"model_a": models[a], "model_b": models[b], "winner": winner, "judge": judge}
    )


table = draw_votes(n_votes, n_judges, np.random.default_rng(0))
print(table.head())

# %%
# `Judgements.from_votes` reads the table, and `aggregate` makes the leaderboard. Its default method
# is called after Bradley, Terry and Luce, and finds the scores that make the votes most probable. A
# difference of 1 between two scores means that the better model is expected to win 73 % of the
# votes between the two, where a tie is half a vote for each. The scores add up to 0.
#
# How certain are the scores? With other votes they would have been different. The bootstrap finds
# out by how much. It draws 4,000 votes at random from the 4,000 votes of the table, so that some
# are drawn twice and others not at all. This is a resample. It computes the scores of 1,000
# resamples. An interval is the range in which most of these scores lie.
#
# The column ``ranks`` lists the places that this leaves to a model. The ranks "2-4" of eight models
# mean that one model is clearly better and four are clearly worse.

from sklearn_rankcal import Judgements, aggregate

votes = Judgements.from_votes(
    table["model_a"], table["model_b"], table["winner"], judge=table["judge"]
)
leaderboard = aggregate(votes, n_resamples=1000)
print(leaderboard)

# %%
# These intervals take the votes to be independent of each other. But the votes of one person are
# not, because people have tastes. With other people, the scores would differ by more than with
# other votes of the same people. If the leaderboard is to hold for people in general, draw the
# judges, each with all of their votes. The intervals become longer.

by_judge = aggregate(votes, n_resamples=1000, resample="judges")
print(by_judge)
longer = (by_judge.score_high - by_judge.score_low) / (
    leaderboard.score_high - leaderboard.score_low
)
print(f"\nIntervals from judges are {longer.mean():.2f} times as long as those from votes.")

# %%
# The plot shows the leaderboard with the intervals from judges. Dots are scores, lines are their
# intervals, and the possible ranks are on the right.

import matplotlib.pyplot as plt

from sklearn_rankcal.plotting import plot_aggregate, plot_probability_above

figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
plot_aggregate(by_judge, ax=ax)
ax.set(title="Scores of the models")
plt.show()

# %%
# Is the first place clear? It is if the first model is above each other one in at least 97.5 % of
# the resamples. The nearest rival decides, which is the second of the leaderboard here. A model
# that is further down says nothing about the first place, however clear the difference is.

print("Is the first place clear?", by_judge.is_first_clear())
first, second, third = by_judge.items[by_judge.rows_of()[:3]]
for one, other in (first, second), (first, third), (second, third):
    share = by_judge.probability_above(one, other)
    print(f"{one} is above {other} in {share:.1%} of the resamples.")

# %%
# The matrix has these shares for all pairs of models. Where the number is in bold letters, the
# order is clear.

figure, ax = plt.subplots(figsize=(5.2, 4.8), layout="constrained")
plot_probability_above(by_judge, ax=ax)
ax.set(title="Which differences the votes have decided")
plt.show()

# %%
# Comparison with the truth. The strengths of the simulation are those of a single person without
# tastes. The scores are about the votes of all people together. Where tastes differ, these votes
# are closer to one half than those of a single person, so that the scores are closer to 0 than the
# strengths. The true scores are those that very many votes of very many people lead to; here we
# draw 500,000 votes of 5,000 people.

many = draw_votes(500_000, 5000, np.random.default_rng(1))
true = aggregate(Judgements.from_votes(many["model_a"], many["model_b"], many["winner"])).to_frame()
true_scores = dict(zip(true["item"], true["score"], strict=True))
compared = by_judge.to_frame()[["item", "score_low", "score_high"]]
compared["true score"] = compared["item"].map(true_scores)
compared["strength"] = compared["item"].map(strengths)
compared["contains the true score"] = compared["true score"].between(
    compared["score_low"], compared["score_high"]
)
print(compared.round(2).to_string(index=False))

# %%
# The intervals contain the true scores. Some of the strengths are outside, because they are a
# different number.
#
# Another method needs no model of the votes. The ranking of Kemeny contradicts as few votes as
# possible: a vote is contradicted if its loser is ranked above its winner, and a tie is half a vote
# in each direction. The text says how many votes the ranking contradicts, and what is proved: here,
# that all other rankings contradict more.

kemeny = aggregate(votes, "kemeny")
print(kemeny)

# %%
# Do both methods agree? Models whose order the votes have not decided can change places.

both = by_judge.to_frame()[["item", "rank"]].merge(
    kemeny.to_frame()[["item", "rank"]], on="item", suffixes=(" btl", " kemeny")
)
print(both.to_string(index=False))
