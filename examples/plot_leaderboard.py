"""
Rank models from votes, with error bars
=======================================

People saw the answers of two language models to the same question and said which one they
preferred, or that both were equally good. Which model is best, and have enough votes been cast to
know? `aggregate` turns the votes into a leaderboard with a score, a rank and error bars for each
model. It also tells which differences between models are clear. The page :ref:`votes` has the short
version.
"""


# %%
# Simulate the votes
# ------------------
#
# The votes are a table with one row for each vote. They are simulated, so we can compare the
# leaderboard with the truth. Each model has a strength. Each person has tastes: for this person,
# every model is better or worse by a random amount. Two of the models are almost equal.

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
# Make the leaderboard
# --------------------
#
# `Judgements.from_votes` reads the table, and `aggregate` makes the leaderboard. Its default method
# is the model of Bradley, Terry and Luce. It finds the scores that make the votes most probable. If
# two scores differ by 1, the better model is expected to win 73 % of the votes between the two,
# where a tie is half a vote for each. The scores add up to 0.
#
# How certain are the scores? Other votes would have given other scores. The bootstrap estimates by
# how much. A resample is 4,000 votes sampled at random from the 4,000 votes of the table: some
# votes appear twice or more, others not at all. The more the scores of 1,000 resamples vary, the
# longer the intervals.
#
# The column ``ranks`` lists the ranks that a model may have. Ranks "2-4" of eight models mean that
# one model is clearly better and four are clearly worse.

from sklearn_rankcal import Judgements, aggregate

votes = Judgements.from_votes(
    table["model_a"], table["model_b"], table["winner"], judge=table["judge"]
)
leaderboard = aggregate(votes, n_resamples=1000)
print(leaderboard)

# %%
# Allow for the tastes of the judges
# ----------------------------------
#
# These intervals assume that votes are independent. Votes of one person are not, because people
# have tastes. Other people would change the scores by more than other votes of the same people. If
# the leaderboard should hold for people in general, resample the judges, each with all of their
# votes. The intervals become longer.

by_judge = aggregate(votes, n_resamples=1000, resample="judges")
print(by_judge)
longer = (by_judge.score_high - by_judge.score_low) / (
    leaderboard.score_high - leaderboard.score_low
)
print(f"\nIntervals from judges are {longer.mean():.2f} times as long as those from votes.")

# %%
# Plot the leaderboard
# --------------------
#
# Dots are scores and lines are their intervals, from resampled judges. The possible ranks are on
# the right.

import matplotlib.pyplot as plt

from sklearn_rankcal.plotting import plot_aggregate, plot_probability_above

figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
plot_aggregate(by_judge, ax=ax)
ax.set(title="Scores of the models")
plt.show()

# %%
# Is the first place clear?
# -------------------------
#
# It is clear if the first model is above each other model with a probability of at least 97.5 %.
# The nearest rival decides. Here it is the second model of the leaderboard. Models further down say
# nothing about the first place, however clear their differences are.

print("Is the first place clear?", by_judge.is_first_clear())
first, second, third = by_judge.items[by_judge.rows_of()[:3]]
for one, other in (first, second), (first, third), (second, third):
    probability = by_judge.probability_above(one, other)
    print(f"{one} is above {other} with a probability of {probability:.1%}.")

# %%
# The matrix shows the probabilities for all pairs of models. Bold numbers mark pairs in a clear
# order.

figure, ax = plt.subplots(figsize=(5.2, 4.8), layout="constrained")
plot_probability_above(by_judge, ax=ax)
ax.set(title="Which differences the votes have decided")
plt.show()

# %%
# Compare with the truth
# ----------------------
#
# The true scores are those from very many votes of very many people. Here we simulate 500,000 votes
# of 5,000 people. They are not the same as the strengths. The strengths describe a single person
# without tastes, and the scores describe the votes of all people together. Where tastes differ,
# these votes are closer to one half, so the scores are closer to 0 than the strengths.

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
# The intervals contain the true scores. Some strengths are outside, because they measure something
# else.
#
# Use a method without a model
# ----------------------------
#
# The ranking of Kemeny assumes no model of the votes. It contradicts as few votes as possible. A
# vote is contradicted if its loser is ranked above its winner, and a tie is half a vote in each
# direction. The output says how many votes the ranking contradicts and what is proved: here, that
# every other ranking contradicts more.

kemeny = aggregate(votes, "kemeny")
print(kemeny)

# %%
# Where the votes have not decided the order of two models, the methods can disagree.

both = by_judge.to_frame()[["item", "rank"]].merge(
    kemeny.to_frame()[["item", "rank"]], on="item", suffixes=(" btl", " kemeny")
)
print(both.to_string(index=False))
