"""
Choose the next pairs to vote on
================================

Votes cost time or money. Which pairs should you ask about next? A leaderboard knows which of its
scores are uncertain, and `Aggregate.next_comparisons` uses this to choose pairs. This example
collects the same number of votes in three ways: on random pairs, on pairs chosen for the first
place, and on pairs chosen for all places. Chosen pairs reach the same certainty with far fewer
votes, if they are chosen for the question that you ask.
"""


# %%
# Simulate the voters
# -------------------
#
# There are eight models. The first two are close, and most others are clearly worse. A vote on two
# bad models says little about the first place.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_rankcal import Judgements, aggregate

strength = np.array([0.8, 0.45, 0.1, 0.0, -0.1, -0.3, -0.4, -0.55])
names = ["osprey", "heron", "kestrel", "wren", "finch", "robin", "swift", "plover"]


def vote(pairs, rng):
    """Draw the winner of each pair (first, second) of names, and return (winner, loser)."""
    first, second = np.array([[names.index(name) for name in pair] for pair in pairs]).T
    won = rng.random(len(first)) < 1 / (1 + np.exp(strength[second] - strength[first]))
    return [pair if w else pair[::-1] for pair, w in zip(pairs, won, strict=True)]


def random_pairs(n, rng):
    return [tuple(rng.choice(names, size=2, replace=False).tolist()) for _ in range(n)]


# %%
# Collect votes in batches
# ------------------------
#
# All three ways start from the same 160 votes on random pairs, and make a new leaderboard after
# every 40 votes. `Aggregate.next_comparisons` returns 40 pairs at a time. It chooses each pair as
# if the previous ones had been answered already. This avoids 40 copies of the same pair.


def collect(ask, n_votes, seed):
    rng = np.random.default_rng(seed)
    votes = vote(random_pairs(160, rng), rng)
    boards = []
    while True:
        judgements = Judgements.from_pairs(votes, items=names)
        boards.append(aggregate(judgements, intervals="robust"))
        if len(votes) >= n_votes:
            return boards
        votes += vote(ask(boards[-1], rng), rng)


ways = {
    "random pairs": lambda board, rng: random_pairs(40, rng),
    "pairs for the first place": lambda board, rng: board.next_comparisons(40, target="first"),
    "pairs for all places": lambda board, rng: board.next_comparisons(40, target="all"),
}
boards = {name: collect(ask, 1200, seed=1) for name, ask in ways.items()}
print(boards["pairs for the first place"][-1])

# %%
# Which pairs were asked about?
# -----------------------------
#
# The column ``votes`` shows that pairs chosen for the first place hardly include models that are
# clearly not the first.

frame = boards["pairs for the first place"][-1].to_frame()
print(frame[["rank", "item", "score", "votes", "win_share"]])

# %%
# Plot how certainty grows
# ------------------------
#
# The left plot shows the standard error of the difference between the two best models, the right
# plot the mean error of a rank. Both are means over 10 repetitions. The best choice depends on what
# you want to know: pairs for the first place leave the other ranks open.


def gap_error(board):
    """Return the standard error of the difference between the two best models."""
    relative = board.rescale("logit", anchor=("osprey", 0.0))
    row = relative.items.tolist().index("heron")
    return (relative.score_high[row] - relative.score_low[row]) / (2 * 1.96)


def rank_error(board):
    true_rank = {name: k + 1 for k, name in enumerate(names)}
    return np.mean(np.abs([true_rank[item] for item in board.items] - board.ranks))


n_votes = np.arange(160, 1201, 40)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, ask in ways.items():
    runs = [collect(ask, 1200, seed) for seed in range(10)]
    for ax, value in zip(axes, (gap_error, rank_error), strict=True):
        ax.plot(n_votes, np.mean([[value(b) for b in run] for run in runs], axis=0), label=name)
axes[0].set(xlabel="votes", ylabel="standard error of osprey - heron")
axes[1].set(xlabel="votes", ylabel="mean error of a rank")
axes[0].legend()
plt.show()

# %%
# When can you stop?
# ------------------
#
# If you look after each batch and stop as soon as the first place is clear, use ``anytime=True``.
# This bound holds for all looks together. Without it, the confidence level holds only for a single
# look.

for name, found in boards.items():
    clear = [board.is_first_clear(anytime=True) for board in found]
    stop = f"clear after {n_votes[clear.index(True)]:,} votes" if any(clear) else "not clear yet"
    print(f"{name}: the first place is {stop}")
