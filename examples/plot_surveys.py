"""
Rank features from a MaxDiff survey
===================================

People saw sets of features of a phone, and chose the most and the least important one of each set.
Which feature matters most, and have enough people been asked to know? `aggregate` turns the answers
into scores with error bars. The page :ref:`surveys` explains each step, and ranked ballots.
"""


# %%
# Simulate the survey
# -------------------
#
# The table is as survey tools export it: one row for each set, with the items that were shown, the
# best and the worst. Each person has tastes: for this person, each feature matters more or less by
# a random amount.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.plotting import plot_aggregate, plot_probability_above

importance = {
    "price": 1.3,
    "battery": 0.8,
    "camera": 0.7,
    "screen": 0.3,
    "weight": -0.2,
    "sound": -0.5,
    "design": -0.9,
    "storage": -1.5,
}
features, mean = np.array(list(importance)), np.array(list(importance.values()))
shown = ["item1", "item2", "item3", "item4"]


def ask(n_people, seed):
    """Return the answers of random people to eight sets of four features each."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(n_people):
        taste = mean + rng.normal(scale=0.8, size=8)
        for task in range(1, 9):
            items = rng.choice(8, size=4, replace=False)
            liked = taste[items] + rng.gumbel(size=4)
            ends = items[[liked.argmax(), liked.argmin()]]
            rows.append([f"p{person}", task, *features[items], *features[ends]])
    return pd.DataFrame(rows, columns=["person", "set", *shown, "best", "worst"])


survey = ask(60, seed=11)
print(survey.head(3))

# %%
# Make the picture
# ----------------
#
# Answers of one person are alike, because people have tastes. With ``respondent=`` and
# ``intervals="robust"``, the intervals allow for this. The possible ranks are on the right.


def make_board(survey, intervals="robust"):
    choices = Judgements.from_best_worst(
        survey[shown], survey["best"], survey["worst"], respondent=survey["person"]
    )
    return aggregate(choices, method="plackett_luce", intervals=intervals)


board = make_board(survey)
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
plot_aggregate(board, ax=ax)
ax.set(title="What matters to 60 buyers of a phone")
plt.show()

# %%
# Write the sentences
# -------------------
#
# The matrix shows the probability that the feature in the row matters more than the feature in the
# column. Bold numbers mark pairs in a clear order. You may report the order of these pairs.

figure, ax = plt.subplots(figsize=(5.2, 4.8), layout="constrained")
plot_probability_above(board, ax=ax)
ax.set(title="Which differences are clear")
plt.show()

# %%
first, *others = board.items[board.rows_of()]
if board.is_first_clear():
    print(f"{first} matters most to people like those we asked.")
else:
    print(f"One of these matters most: {', '.join(board.may_be_first())}.")
for one, other in zip([first, *others], others, strict=False):
    probability = board.probability_above(one, other)
    if probability >= 0.975:
        print(f"{one} matters more than {other} ({probability:.1%}).")
    else:
        print(f"We cannot say which of {one} and {other} matters more.")

# %%
# How many people are enough?
# ---------------------------
#
# The left plot shows how many of the 28 pairs are in a clear order, and the right plot the mean
# length of an interval, which is about half as long if four times as many people answer. Both are
# means over six surveys. Intervals by the information of the answers are shorter, because they
# ignore that people differ.


def read(board):
    """Return the number of clear pairs, the mean length of intervals, and how many are right."""
    clear = (board.probability_matrix() >= 0.975).sum()
    inside = (board.score_low <= true[board.items]) & (true[board.items] <= board.score_high)
    return clear, (board.score_high - board.score_low).mean(), inside.mean()


many = make_board(ask(4000, seed=0))
true = pd.Series(many.scores, index=many.items)
n_people = [10, 20, 40, 80, 160]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for intervals in ("robust", "information"):
    means = np.array(
        [
            np.mean([read(make_board(ask(n, seed), intervals)) for seed in range(1, 7)], axis=0)
            for n in n_people
        ]
    )
    print(f"{intervals}: {means[:, 2].mean():.0%} of the intervals contain the true score")
    axes[0].plot(n_people, means[:, 0], "o-", label=intervals)
    axes[1].plot(n_people, means[:, 1], "o-", label=intervals)
axes[0].set(xlabel="people", ylabel="pairs in a clear order, of 28", xscale="log")
axes[1].set(xlabel="people", ylabel="mean length of an interval", xscale="log", ylim=0)
for ax in axes:
    ax.set_xticks(n_people, n_people)
    ax.minorticks_off()
axes[0].legend()
plt.show()

# %%
# The true scores come from 4,000 people. Robust intervals contain them about as often as they
# promise, in 95 % of the cases. Intervals by the information contain them less often.
