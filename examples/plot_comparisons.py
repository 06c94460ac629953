"""
From a log of comparisons to a ranker
=====================================

A shop asks its visitors which of two offers they like better. Its log has 60,000 answers: pairs of
the offer that was preferred and the other one, both from the results of one search. We want a
function of the columns of an offer that ranks the results of new searches.

The usual way is a pairwise loss: the logistic loss of every comparison. It learns how likely an
offer is to win. It does not learn how much a good place is worth to the visitor, because a
comparison does not say by how much the winner is better. This matters when the columns cannot
express everything. In this shop, one column (`match`) tells poor offers from ordinary ones, which
are most of the offers. Another column (`bargain`) is almost irrelevant, except that offers above a
threshold are excellent. No weighted sum of the two columns is right about both. Most pairs contain
no excellent offer, so the pairwise loss mostly sorts poor and ordinary offers. A visitor who reads
from the top wants the excellent offers first, which is what NDCG measures.

Many comparisons together do say by how much one offer is better than another: it wins more often.
The log-odds of an offer are the logarithm of its wins divided by its losses. If one offer wins 95 %
and another one 60 % of its comparisons, their log-odds are 2.9 and 0.4. `AggregatedLoss` therefore
takes k comparisons of a search at a time, and computes the mean log-odds of each offer against the
others. This is the score of the offer. It turns the scores into the targets of NDCG, the numbers
that a regressor learns, and takes the mean of the targets over many such subsets. Duchi, Mackey and
Jordan (2013) show that this is consistent if k grows with the data, but not too fast, and that
learning from comparisons one by one, in general, is not.
"""

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
print(f"{len(X)} offers, of which {np.mean(quality > 1.5):.0%} are excellent")

# %%
# The log. `make_comparisons` draws a search, two of its offers, and the answer of a visitor, who
# prefers an offer that is better by d with probability 1 / (1 + exp(-d)). Labels for `fit` are made
# by `preference_labels` from the pairs. `log.y` is ``preference_labels(log.pairs, groups)``.

log = make_comparisons(quality, groups, 60_000, random_state=0)
for preferred, other in log.pairs[:3]:
    print(f"search {groups[preferred]}: offer {preferred} was preferred to offer {other}")

# %%
# Three rankers. The first two have the same columns and are both linear: their score is a weighted
# sum of the columns. Only the loss differs.
#
# * The baseline has the pairwise loss: ``WeightedComparisons("logistic")`` is the logistic loss of
#   every comparison, and ``loss="pd_by_scores"`` counts the comparisons that a ranking contradicts.
# * The second one has the same kind of surrogate, the squared differences of scores, but learns the
#   aggregated targets of NDCG.
# * The third is the default ranker of this package with the same labels. It is not linear, so it
#   can express the threshold. So can boosted trees with the pairwise loss. The choice of the loss
#   matters most if a ranker cannot express everything.
#
# New searches are judged by NDCG@10. It needs a grade of each offer, its gain. Here it is the
# strength of the offer in the model by which visitors answer: an offer of strength 4 is preferred
# to one of strength 1 four times as often as the reverse.

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
# How many comparisons to aggregate. We draw the log five times, and plot the risk 1 - NDCG@10 with
# 95 % intervals against the size k of the subsets. Single comparisons (k = 1) are no better than
# the pairwise loss: the mean of their targets grows in proportion to how often an offer wins, and
# 99 % is hardly more than 95 %. Larger subsets show how much better the excellent offers are. A
# search has 300 comparisons on average, and larger subsets make no difference, because no search
# has many more. ``subset_size="auto"`` is 2 n^0.45 for n comparisons, rounded up, which is 283
# here.

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
    xlabel="comparisons that are aggregated at a time (k)",
    ylabel="risk on new searches: 1 - NDCG@10",
    title="The same log and the same columns:\nonly the loss differs",
)
figure.legend(loc="outside lower center", ncols=2)
plt.show()
