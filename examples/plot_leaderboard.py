"""
Rank models from votes, with error bars
=======================================

People were shown the answers of two language models to the same question, and said which one they
preferred, or that both were equally good. This example turns their votes into a leaderboard: a
score and a rank for each model, how certain they are, and which differences between models the
votes have decided.

The votes are simulated, so that the true strengths of the models are known. Two of the models are
nearly equal, and people have tastes of their own.
"""

import numpy as np

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
true_scores = np.array(list(strengths.values()))

rng = np.random.default_rng(0)
n_votes, n_judges = 4000, 60
judge = rng.integers(n_judges, size=n_votes)
taste = rng.normal(scale=0.8, size=(n_judges, len(models)))
left = rng.integers(len(models), size=n_votes)
right = (left + rng.integers(1, len(models), size=n_votes)) % len(models)
quality = true_scores + taste
gap = quality[judge, left] - quality[judge, right] + rng.logistic(size=n_votes)
tied = np.abs(gap) < 0.3
winner, loser = np.where(gap > 0, left, right), np.where(gap > 0, right, left)
pairs = np.column_stack([models[winner], models[loser]])

# %%
# The data are a table with one row for each vote: the winner, the loser, whether both were equally
# good, and the person who voted. The order of winner and loser does not matter for a tie.

print(f"{'winner':14} {'loser':14} {'tied':6} judge")
for k in range(5):
    print(f"{pairs[k, 0]:14} {pairs[k, 1]:14} {tied[k]!s:6} {judge[k]}")

# %%
# `Judgements` reads the table, and `aggregate` makes the leaderboard. Its default method,
# ``"btl"``, is maximum likelihood in the model of Bradley, Terry and Luce: model i is preferred to
# model j with the probability ``1 / (1 + exp(s_j - s_i))``, where ``s_i`` is the score of model i.
# Scores are centred, so that their mean is 0. A difference of 1 means that the better model is
# expected to win 73 % of the votes, where a tie is half a vote for each.
#
# The error bars come from the bootstrap: as many votes as there are, are drawn with replacement,
# and the scores are computed again, 1,000 times. The column ``ranks`` says which positions of a
# model the votes leave open.

from sklearn_rankcal import Judgements, aggregate

votes = Judgements.from_pairs(pairs, tied=tied, judge=judge)
leaderboard = aggregate(votes, "btl", n_resamples=1000)
print(leaderboard)

# %%
# Did these intervals allow for everything that is uncertain? They take the votes to be independent
# of each other. But the votes of one person are not, because people have tastes: with other people,
# the result would differ by more than with other votes of the same people. If the leaderboard is to
# hold for people in general, resample the judges, each with all of their votes. The intervals
# become longer.

by_judge = aggregate(votes, "btl", n_resamples=1000, resample="judges")
print(by_judge)
longer = (by_judge.score_high - by_judge.score_low) / (
    leaderboard.score_high - leaderboard.score_low
)
print(f"\nIntervals from judges are {longer.mean():.2f} times as long as those from votes.")

# %%
# The plot shows the leaderboard with the intervals from judges: dots are scores, lines are their
# intervals, and the possible ranks are on the right.

import matplotlib.pyplot as plt

from sklearn_rankcal.plotting import plot_aggregate, plot_probability_above

figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
plot_aggregate(by_judge, ax=ax)
ax.set(title="Scores of the models")
plt.show()

# %%
# Which differences are certain? Intervals of single scores do not answer this for a pair of models.
# The probability that one model is above another does: it is the share of the resamples in which
# its score is larger.

questions = ("osprey-large", "heron-2"), ("heron-2", "heron-2-mini"), ("wren-3b", "finch-1")
for one, other in questions:
    share = by_judge.probability_above(one, other)
    print(f"{one} is above {other} in {share:.1%} of the resamples.")
figure, ax = plt.subplots(figsize=(5.2, 4.8), layout="constrained")
plot_probability_above(by_judge, ax=ax)
ax.set(title="Which differences the votes have decided")
plt.show()

# %%
# The two models of almost equal strength remain undecided. The first of them in the leaderboard is
# even the weaker one in truth, by 0.02, which is far less than the length of the intervals. More
# votes would be needed to decide this, and more judges.
#
# Another method needs no model of the votes. Kemeny's ranking contradicts as few votes as possible:
# a vote is contradicted if its loser is ranked above its winner, and a tie is half a vote in each
# direction. The result comes with a certificate, which says whether any other ranking could
# contradict fewer votes.

kemeny = aggregate(votes, "kemeny")
print(kemeny)

# %%
# Both methods agree, except for two neighbours that the votes have not decided either. Maximum
# likelihood has the advantage that its scores say how far models are apart, and that it can be used
# where few of the pairs were compared.

position = dict(zip(kemeny.items.tolist(), kemeny.ranks.tolist(), strict=True))
for row in by_judge.rows_of():
    name = by_judge.items[row]
    print(f"{name:14} btl: {by_judge.ranks[row]}   kemeny: {position[name]}")
