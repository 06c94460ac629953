"""
Train a ranker from a log of comparisons
========================================

A shop asks its visitors which of two offers they prefer. Each answer is a pair: the preferred offer
and the rejected one, both from the results of one search. How do you turn 60,000 answers into a
function that ranks the results of new searches by the columns of the offers? The usual pairwise
loss works, but it does not optimise NDCG. `AggregatedLoss` does, and ranks new searches better with
the same log and the same columns.
"""


# %%
# Why the pairwise loss is not enough
# -----------------------------------
#
# The usual choice is the logistic loss of each comparison. It learns how likely an offer is to win.
# It does not learn by how much the winner is better, because a single comparison does not say so.
# This matters when the model cannot express everything.
#
# In this shop, the column ``match`` separates poor offers from ordinary ones, and most offers are
# one or the other. The column ``bargain`` is almost irrelevant, except that offers above a
# threshold are excellent. No weighted sum of the two columns gets both right. Most pairs contain no
# excellent offer, so the pairwise loss mostly sorts poor and ordinary offers. But visitors read
# from the top and want the excellent offers first. NDCG measures this.
#
# What aggregation adds
# ---------------------
#
# Many comparisons together do say by how much one offer is better: it wins more often. The log-odds
# of an offer are the logarithm of its wins divided by its losses. An offer that wins 95 % of its
# comparisons has log-odds of 2.9, and one that wins 60 % has log-odds of 0.4.
#
# `AggregatedLoss` takes k comparisons of a search at a time. The score of an offer is its mean
# log-odds against the other offers. The scores become targets for NDCG, the numbers that a
# regressor learns. The targets are averaged over many such subsets of comparisons. Duchi, Mackey
# and Jordan (2013) show that this is consistent if k grows with the data, but not too fast, and
# that learning from single comparisons is in general not consistent.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_rankcal import CalibratedRanker, LinearRanker
from sklearn_rankcal.aggregation import AggregatedLoss
from sklearn_rankcal.datasets import make_comparisons
from sklearn_rankcal.metrics import ndcg_score
from sklearn_rankcal.surrogates import WeightedComparisons


def make_searches(n_searches, seed):
    """Return the columns of the offers, how good they are, and the search of each offer."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_searches), rng.integers(5, 41, n_searches))
    match, bargain, *others = rng.normal(size=(6, len(groups)))
    quality = np.tanh(2 * match) + 3 * (bargain > 1.2)
    return np.column_stack([match, bargain, *others]), quality, groups


X, quality, groups = make_searches(200, seed=0)
X_new, quality_new, groups_new = make_searches(200, seed=1)
print(f"{len(X)} offers, {np.mean(quality > 1.5):.0%} of them excellent")

# %%
# Simulate the log
# ----------------
#
# `make_comparisons` samples a search, two of its offers, and the answer of a visitor. If one offer
# is better by d, the visitor prefers it with probability 1 / (1 + exp(-d)). `preference_labels`
# turns pairs into labels for `fit`. Here ``log.y`` is the same as ``preference_labels(log.pairs,
# groups)``.

log = make_comparisons(quality, groups, 60_000, random_state=0)
for preferred, other in log.pairs[:3]:
    print(f"search {groups[preferred]}: offer {preferred} was preferred to offer {other}")

# %%
# Compare three rankers
# ---------------------
#
# The first two rankers are linear and use the same columns. They differ only in the loss.
#
# * The baseline uses the pairwise loss. ``WeightedComparisons("logistic")`` is the logistic loss of
#   each comparison, and ``loss="pd_by_scores"`` counts the comparisons that a ranking contradicts.
# * The second ranker also learns from pairs of offers, by squared differences of scores, but its
#   targets are the aggregated targets of NDCG.
# * The third ranker is the default ranker of this package with the same aggregated labels. It is
#   not linear, so it can express the threshold. Boosted trees with the pairwise loss can do so,
#   too: the loss matters most if the model cannot express everything.
#
# NDCG@10 on new searches needs a gain for each offer. Here the gain is the strength of the offer in
# the model that generates the answers: an offer of strength 4 is preferred to one of strength 1
# four times as often as the reverse.

strength_new = np.exp(make_comparisons(quality_new, groups_new, 1, random_state=0).scores)


def evaluate(ranker):
    scores = ranker.decision_function(X_new, groups=groups_new)
    return ndcg_score(strength_new, scores, groups=groups_new, gain="linear", k=10)


def fit_baseline(y):
    return LinearRanker(WeightedComparisons("logistic"), loss="pd_by_scores").fit(X, y)


def fit_aggregated(y, k):
    loss = AggregatedLoss("ndcg", structure="log_odds", subset_size=k, n_subsets=20)
    return LinearRanker("pairwise_squared", loss=loss).fit(X, y)


rankers = {
    "pairwise logistic, linear": fit_baseline(log.y),
    "aggregated, linear": fit_aggregated(log.y, "auto"),
    "aggregated, default ranker": CalibratedRanker(loss=AggregatedLoss("ndcg")).fit(X, log.y),
}
for name, ranker in rankers.items():
    print(f"{name:28} NDCG@10 of new searches: {evaluate(ranker):.3f}")
for name in list(rankers)[:2]:
    match, bargain = rankers[name].coef_[:2]
    print(f"{name:28} weight of bargain / weight of match: {bargain / match:.2f}")

# %%
# Choose how many comparisons to aggregate
# ----------------------------------------
#
# We sample the log five times and plot the risk 1 - NDCG@10 against the subset size k, with 95 %
# intervals. Single comparisons (k = 1) are no better than the pairwise loss: their mean target
# grows in proportion to how often an offer wins, and 99 % is hardly more than 95 %. Larger subsets
# show how much better the excellent offers are. A search has 300 comparisons on average, so subsets
# of more than 300 change little. The default, ``subset_size="auto"``, is 2 n^0.45 for n
# comparisons, rounded up. Here it is 283.

sizes = [1, 3, 10, 30, 100, 300, "all"]
risks = {"baseline": [], **{k: [] for k in sizes}}
for seed in range(5):
    y = make_comparisons(quality, groups, 60_000, random_state=seed).y
    risks["baseline"].append(1 - evaluate(fit_baseline(y)))
    for k in sizes:
        risks[k].append(1 - evaluate(fit_aggregated(y, k)))


def mean_and_interval(values):
    # 2.776 is the quantile of the t distribution for five values
    return np.mean(values), 2.776 * np.std(values, ddof=1) / np.sqrt(len(values))


figure, axis = plt.subplots(figsize=(5.2, 4.4), layout="constrained")
mean, half = np.transpose([mean_and_interval(risks[k]) for k in sizes])
axis.errorbar(
    range(len(sizes)), mean, half, marker="o", capsize=4, label="aggregated, linear", zorder=3
)
level, half = mean_and_interval(risks["baseline"])
axis.axhline(level, color="tab:red", label="pairwise logistic, linear")
axis.axhspan(level - half, level + half, color="tab:red", alpha=0.2, lw=0)
axis.set_xticks(range(len(sizes)), [str(k) for k in sizes])
axis.set(
    xlabel="comparisons aggregated at a time (k)",
    ylabel="risk on new searches: 1 - NDCG@10",
    title="Same log, same columns:\nonly the loss differs",
)
figure.legend(loc="outside lower center", ncols=2)
plt.show()
