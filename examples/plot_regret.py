"""
Find out which methods reach zero regret
========================================

Does your method find the best ranking if it gets enough data? Not necessarily. In each of the four
worlds of this example, a calibrated loss with its decoder reaches zero regret, and common
alternatives do not. These worlds were found by searching for distributions on which the
alternatives fail. On many other distributions, some or all of them succeed.
"""


# %%
# Four worlds
# -----------
#
# A world is a distribution of labels with a known best ranking. A query has four documents, and the
# features of a document identify it. There are a few possible labels for a query. Every regressor
# here can express the expected targets. If a method still has regret with many queries, its targets
# or its decoder are the reason.

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from sklearn_rankcal import CalibratedRanker, preference_labels
from sklearn_rankcal.consistency import LabelDistribution, ranking_regret
from sklearn_rankcal.losses import DCG, MAP, NDCG, MAPByScores
from sklearn_rankcal.models import BilinearPairs, DocumentModel


def single_preferences(weights):
    """Return a distribution of labels of one preference each, with probabilities by weight."""
    r = 1 + max(max(pair) for pair in weights)
    labels = np.zeros((len(weights), r, r))
    for label, (i, j) in zip(labels, weights, strict=True):
        label[i, j] = 1.0
    return LabelDistribution(labels, np.array(list(weights.values())) / sum(weights.values()))


# The first two worlds have labels of a single preference (i, j), document i before document j, with
# a weight for each. The expected preferences of the first are acyclic, those of the second cyclic.
acyclic = single_preferences({
    (0, 1): 2, (1, 2): 5, (1, 3): 4, (2, 0): 8, (2, 1): 6, (2, 3): 1, (3, 0): 6, (3, 1): 5,
    (3, 2): 8,
})  # fmt: skip
cyclic = single_preferences({
    (0, 1): 4, (0, 3): 8, (1, 2): 7, (1, 3): 8, (2, 0): 2, (2, 1): 9, (2, 3): 5, (3, 2): 7,
})  # fmt: skip
# The last two worlds have labels of relevance.
together = LabelDistribution([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 1]], [0.44, 0.46, 0.1])
graded = LabelDistribution(
    [[0, 0, 0, 3], [3, 0, 2, 0], [0, 4, 3, 3], [2, 4, 2, 0]], [0.4, 0.11, 0.11, 0.38]
)

# %%
# The methods
# -----------
#
# A method is a function of the features, the sampled labels, the query ids and the number r of
# documents per query. It fits a ranker and returns the predicted ranks of the first query. One
# query is enough, because all queries have the same features.


def calibrated(regressor, loss, decoder="auto"):
    """Return the method that fits a `CalibratedRanker`."""

    def ranks(X, y, groups, r):
        ranker = CalibratedRanker(regressor, loss=loss, decoder=decoder, context=None)
        return ranker.fit(X, y, groups=groups).predict(X[:r], groups=groups[:r])

    return ranks


def boosting(objective):
    """Return the method that fits the ranker of LightGBM or XGBoost.

    They do not accept preferences, so each preference becomes a query of two documents.
    """

    def ranks(X, y, groups, r):
        if y.dtype.names is not None:
            rows = [(row, loser) for row, losers in enumerate(y["wins"]) for loser in losers]
            rows = np.array(rows, dtype=int).ravel()
            X_, y_, groups_ = X[rows], np.arange(len(rows)) % 2 == 0, np.arange(len(rows)) // 2
        else:
            X_, y_, groups_ = X, y, groups
        if objective.startswith("rank:"):
            from xgboost import XGBRanker

            model = XGBRanker(objective=objective, n_estimators=50, n_jobs=1)
            model.fit(X_, y_, qid=groups_)
        else:
            from lightgbm import LGBMRanker

            model = LGBMRanker(
                objective=objective, n_estimators=50, min_child_samples=1, n_jobs=1, verbose=-1
            )
            model.fit(X_, y_, group=np.bincount(groups_))
        return 1 + np.argsort(np.argsort(-model.predict(X[:r]), kind="stable"))

    return ranks


linear = DocumentModel(LinearRegression())
products = BilinearPairs(symmetric=True)
pairs = BilinearPairs()
worlds = {
    "PD, acyclic, but not in the order of scores": (acyclic, "pd", {
        "pd, exact": calibrated(pairs, "pd", "exact"),
        "pd, greedy_dag": calibrated(pairs, "pd", "greedy_dag"),
        "pd_by_scores": calibrated(linear, "pd_by_scores"),
    }),
    "PD, cyclic in expectation": (cyclic, "pd", {
        "pd, exact": calibrated(pairs, "pd", "exact"),
        "pd, greedy_dag": calibrated(pairs, "pd", "greedy_dag"),
        "pd_by_scores": calibrated(linear, "pd_by_scores"),
    }),
    "MAP, documents relevant together": (together, "map", {
        "map, exact": calibrated(products, MAP(shrinkage=0), "exact"),
        "map_by_scores": calibrated(linear, MAPByScores(shrinkage=0)),
        "scores on labels": calibrated(linear, "dcg"),
    }),
    "NDCG, graded labels": (graded, "ndcg", {
        "ndcg": calibrated(linear, NDCG(shrinkage=0)),
        "scores on gains": calibrated(linear, "dcg"),
        "scores on labels": calibrated(linear, DCG(gain="linear")),
    }),
}  # fmt: skip
if find_spec("lightgbm"):
    for _, _, methods in worlds.values():
        methods["LightGBM lambdarank"] = boosting("lambdarank")
if find_spec("xgboost"):
    for _, name, methods in worlds.values():
        methods["XGBoost"] = boosting({"pd": "rank:pairwise"}.get(name, f"rank:{name}"))


def draw(distribution, n, random):
    """Draw n queries; return their features, labels and query ids, and the number of documents."""
    r = distribution.n_documents
    which = random.choice(len(distribution.labels), size=n, p=distribution.probabilities)
    X, groups = np.tile(np.eye(r), (n, 1)), np.repeat(np.arange(n), r)
    labels = distribution.labels[which]
    if labels.ndim == 2:
        return X, labels.ravel().astype(int), groups, r
    q, i, j = np.nonzero(labels)
    return X, preference_labels(np.column_stack([q * r + i, q * r + j]), groups), groups, r


# %%
# Regret by the number of queries
# -------------------------------
n_queries, n_draws = [30, 150, 800, 4000], 5
figure, panels = plt.subplots(2, 2, figsize=(7.2, 7.6), layout="constrained", sharex=True)
for axes, (title, (distribution, loss, methods)) in zip(panels.flat, worlds.items(), strict=True):
    print(title)
    for number, (name, method) in enumerate(methods.items()):
        curve = []
        for n in n_queries:
            random = np.random.RandomState(0)
            samples = [draw(distribution, n, random) for _ in range(n_draws)]
            regrets = [ranking_regret(method(*data), distribution, loss) for data in samples]
            curve.append(np.mean(regrets))
        style = "--" if "Boost" in name or "LightGBM" in name else "-"
        axes.plot(n_queries, curve, style, marker="o", label=name, lw=3 if number == 0 else 1.5)
        print(f"  {name:22}", np.round(curve, 3).tolist())
    axes.axhline(0, color="black", lw=0.5)
    axes.set(title=title.replace(", ", ":\n", 1), xscale="log")
    axes.set_xticks(n_queries, [str(n) for n in n_queries])
    axes.minorticks_off()
    axes.tick_params(labelbottom=True)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1))  # outside, where no curve is
figure.supxlabel("training queries")
figure.supylabel("regret")
plt.show()

# %%
# Why the alternatives fail
# -------------------------
#
# The theorems are in Ramaswamy, Agarwal and Tewari (2013).
#
# - First world: sorting by scores fails although the expected preferences are acyclic, because
#   theorem 6 needs the stronger condition P_f.
# - Second world: algorithm 1, the decoder ``greedy_dag``, fails because the expected preferences
#   are cyclic (theorem 7).
# - Third world: one score per document fails for MAP, because the distribution does not satisfy
#   P_reinforce (theorem 4).
# - Fourth world: gains that are not divided by the normalizer of the query fail, because they are
#   the targets of DCG, not of NDCG.
#
# Boosting with pairs or lambdas minimises other losses. Sorting by the minimisers of these losses
# is not optimal for the measures of these worlds.
