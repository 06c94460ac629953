"""
Learn from the judgements of a language model
=============================================

You ask a language model which of two results is better, or for a grade of one result. Which
questions should you ask, and how well can a ranker learn from the answers? This example simulates a
judge with known faults, and compares what is learned with the truth. For this judge, grades work
best. Pairs come close if `Aggregate.next_comparisons` plans them and the predictions of a first
ranker are added as votes. The page :ref:`model_judgements` explains the steps.
"""


# %%
# Simulate a judge with faults
# ----------------------------
#
# The judge prefers the result that it sees first. Its noise hides small differences, but not large
# ones. On near ties it follows whims, and these contradict each other. It refuses to answer 3 % of
# the questions.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingRegressor

from sklearn_rankcal import CalibratedRanker, Judgements, QueryKFold, aggregate
from sklearn_rankcal.aggregation import AggregatedLoss, BradleyTerry
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning
from sklearn_rankcal.metrics import compare_rankings, evaluate_rankings, ndcg_score

# With few votes, some boards are in parts. The audit below says how many.
warnings.simplefilter("ignore", DisconnectedComparisonsWarning)
SIZE = 10  # documents of a query
GRADES = [-0.5, 0.4, 1.2, 2.0]  # where the grades 1 to 4 begin


def make_queries(n, rng):
    """Return features, and the usefulness of each document, of shape (n, SIZE)."""
    X = rng.normal(size=(n, SIZE, 6))
    useful = X[..., :3] @ [0.8, 0.5, 0.3] + 0.5 * np.sin(2 * X[..., 3])
    return X.reshape(-1, 6), useful + rng.normal(scale=0.4, size=useful.shape)


def prefer(useful, query, first, second, rng):
    """Ask which of two documents is better, and return a table of votes."""
    difference = useful[query, first] - useful[query, second]
    low, high = np.minimum(first, second), np.maximum(first, second)
    whim = np.where((7 * low + 13 * high + 5 * query) % 3 == 0, 1, -1)
    whim = whim * np.where(first < second, 1, -1) * np.exp(-((difference / 0.3) ** 2))
    lead = 2.5 * difference + 0.6 + whim  # 0.6 for the first one
    winner = np.where(rng.random(len(query)) < expit(lead), "model_a", "model_b").astype(object)
    winner[rng.random(len(query)) < 0.03] = "refused"
    return pd.DataFrame({"query": query, "first": first, "second": second, "winner": winner})


def grade(useful, query, document, noise, rng):
    """Ask for grades, and return the mean of those of each document, of shape (n, SIZE)."""
    seen = useful[query, document] + rng.normal(scale=noise, size=len(query))
    seen += rng.normal(scale=0.4, size=len(useful))[query]  # a query is graded generously, or not
    found = pd.DataFrame({"query": query, "document": document, "y": np.digitize(seen, GRADES)})
    found = found[rng.random(len(found)) >= 0.03].groupby(["query", "document"])["y"].mean()
    every = pd.MultiIndex.from_product([range(len(useful)), range(SIZE)])
    return found.reindex(every).fillna(found.mean()).to_numpy().reshape(useful.shape)


# %%
# Choose which pairs to ask about
# -------------------------------
#
# Each query has a budget of questions. We try three ways to spend it:
#
# * Sample pairs at random.
# * Sample pairs at random and ask about each of them in both orders.
# * Plan the pairs. Each document first meets two others, in a circle. `Aggregate.next_comparisons`
#   then plans the rest, 10 pairs of all queries at a time. Chance decides which document is shown
#   first.
#
# For comparison, we also ask for grades, as many as there are pairs: each document once, and some
# again.


def read(votes):
    """Read the table of votes; some have weights."""
    return Judgements.from_votes(
        votes["first"], votes["second"], votes["winner"], groups=votes["query"],
        weight=votes["weight"] if "weight" in votes else None, refused="refused",
    )  # fmt: skip


def random_pairs(n, k, rng):
    first = rng.integers(SIZE, size=n * k)
    return np.repeat(np.arange(n), k), first, (first + rng.integers(1, SIZE, size=n * k)) % SIZE


def ask_at_random(useful, k, rng):
    return prefer(useful, *random_pairs(len(useful), k, rng), rng)


def ask_in_both_orders(useful, k, rng):
    query, one, other = random_pairs(len(useful), k // 2, rng)
    both = np.append(one, other), np.append(other, one)
    return prefer(useful, np.append(query, query), *both, rng)


def ask_as_planned(useful, k, rng):
    order = np.argsort(rng.random(useful.shape), axis=1)
    query = np.repeat(np.arange(len(useful)), SIZE)
    votes = prefer(useful, query, order.ravel(), np.roll(order, -1, axis=1).ravel(), rng)
    for asked in range(SIZE, k, 10):
        board = aggregate(read(votes), BradleyTerry(penalty=1))
        plan = np.array(board.next_comparisons(min(10, k - asked), target="all"))
        swap = rng.random(len(plan)) < 0.5
        plan[swap, 1:] = plan[swap, :0:-1]
        votes = pd.concat([votes, prefer(useful, *plan.T, rng)], ignore_index=True)
    return votes


def ask_for_grades(useful, k, rng, noise=0.6):
    """As many grades as questions: all documents as often as possible, and some once more."""
    order = np.argsort(rng.random(useful.shape), axis=1)
    times = np.tile(order, (1, -(-k // SIZE)))[:, :k]
    return grade(useful, np.repeat(np.arange(len(useful)), k), times.ravel(), noise, rng)


def scores_of(votes, n):
    """Return the scores of the boards of all queries, of shape (n, SIZE)."""
    board = aggregate(read(votes), BradleyTerry(penalty=1))
    scores = np.zeros((n, SIZE))
    scores[board.groups, board.items] = np.nan_to_num(board.scores)
    return scores


# %%
# Check the judge
# ---------------
#
# `Aggregate.audit` returns a table of what is wrong with the judge. It counts the votes of all
# queries together, because a single query has too few. Pairs that were shown in both orders reveal
# the advantage of the first document, whatever the documents are.

rng = np.random.default_rng(0)
X, useful = make_queries(1000, rng)
votes = pd.concat([ask_as_planned(useful, 15, rng), ask_in_both_orders(useful, 4, rng)])
print(aggregate(read(votes.reset_index(drop=True)), BradleyTerry(penalty=1)).audit())

# %%
# Compare the orders
# ------------------
#
# First, how good are the orders of the judged documents themselves? We compute NDCG@10 of the
# leaderboards and of the grades, with the true grades as relevance.

pairs = {
    "pairs at random": ask_at_random,
    "pairs in both orders": ask_in_both_orders,
    "planned pairs": ask_as_planned,
}
budgets = [10, 16, 20, 30, 40]
truth = np.digitize(useful, GRADES)
quality = pd.DataFrame(index=budgets)
for k in budgets:
    for name, ask in pairs.items():
        quality.loc[k, name] = ndcg_score(truth, scores_of(ask(useful, k, rng), len(useful)))
    for noise in (0.6, 0.3):
        graded = ask_for_grades(useful, k, rng, noise)
        quality.loc[k, f"grades, noise {noise}"] = ndcg_score(truth, graded)
print(quality.round(3).to_string())

# %%
# Train rankers
# -------------
#
# A ranker learns from all queries, so the noise of single votes matters less. If votes are few,
# other queries can stand in for missing votes. A first ranker predicts the scores of each query
# from other queries, using `QueryKFold`. Its predictions are added to the votes of the judge, as
# votes with small weights.

n_train, budget, n_draws = 60, 16, 4
train, test = np.repeat(np.arange(n_train), SIZE), np.repeat(np.arange(400), SIZE)
documents = np.tile(np.arange(SIZE), n_train)
loss = AggregatedLoss("ndcg", BradleyTerry(penalty=1), subset_size="all")


def fit(X, y, groups, loss):
    trees = HistGradientBoostingRegressor(max_iter=60, random_state=0)
    return CalibratedRanker(trees, loss=loss, context=None).fit(X, y, groups=groups)


def with_predictions(votes, X):
    """Add what rankers of other queries predict, as votes of the weight 0.4 for each pair."""
    scores = scores_of(votes, n_train).ravel()
    predicted = np.zeros(len(X))
    for one, other in QueryKFold(5).split(X, groups=train):
        ranker = fit(X[one], scores[one], train[one], "spearman")
        predicted[other] = ranker.decision_function(X[other], groups=train[other])
    predicted = predicted.reshape(-1, SIZE) - predicted.reshape(-1, SIZE).mean(axis=1)[:, None]
    predicted *= (predicted.ravel() @ scores) / (predicted**2).sum()  # in the unit of the scores
    i, j = np.nonzero(~np.eye(SIZE, dtype=bool))
    query = np.repeat(np.arange(n_train), len(i))
    first, second = np.tile(i, n_train), np.tile(j, n_train)
    more = pd.DataFrame({"query": query, "first": first, "second": second, "winner": "model_a"})
    more["weight"] = 0.4 * expit(predicted[query, first] - predicted[query, second])
    return pd.concat([votes.assign(weight=1.0), more], ignore_index=True)


rankings, relevance = {}, []
for draw in range(n_draws):
    rng = np.random.default_rng(100 + draw)
    X, useful = make_queries(n_train, rng)
    X_test, useful_test = make_queries(400, rng)
    relevance.append(np.digitize(useful_test, GRADES).ravel())
    asked = {name: ask(useful, budget, rng) for name, ask in pairs.items()}
    asked["planned pairs and predictions"] = with_predictions(asked["planned pairs"], X)
    labels = {name: (read(one).to_labels(train, documents), loss) for name, one in asked.items()}
    for noise in (0.6, 0.3):
        y = ask_for_grades(useful, budget, rng, noise).ravel()
        labels[f"grades, noise {noise}"] = y, "ndcg"
    for name, (y, own) in labels.items():
        scores = fit(X, y, train, own).decision_function(X_test, groups=test)
        rankings.setdefault(name, []).append(scores)

# %%
# Compare the rankers
# -------------------
#
# We compare each ranker with the one that learned from grades with noise 0.6. Each interval is for
# a paired difference over 400 test queries. Everything is sampled four times, so each ranker has
# four intervals.

reference = "grades, noise 0.6"
rows = []
for name, scores in rankings.items():
    for draw in range(n_draws):
        found = compare_rankings(
            relevance[draw], scores[draw], rankings[reference][draw], groups=test,
            n_resamples=2000,
        )  # fmt: skip
        rows.append((name, found.first, found.difference, found.low, found.high))
table = pd.DataFrame(rows, columns=["learned from", "ndcg@10", "difference", "low", "high"])
print(table.groupby("learned from", sort=False).mean().round(4).to_string())
print(table[table["learned from"] != reference].round(4).to_string(index=False))

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 4), layout="constrained", width_ratios=[1, 1.25]
)
styles = dict(zip(quality, ["C0", "C1", "C2", "C3", "C4"], strict=True))
for name, colour in styles.items():
    left.plot(quality.index, quality[name], marker="o", color=colour, label=name)
left.set(xlabel="questions per query", ylabel="NDCG@10", title="Orders of judged documents")
figure.legend(loc="outside lower center", ncols=3)
names = [name for name in rankings if name != reference]
for place, name in enumerate(names):
    one = table[table["learned from"] == name]
    y = place + np.linspace(-0.2, 0.2, n_draws)
    colour = styles.get(name, "C5")
    right.hlines(y, one["low"], one["high"], color=colour)
    right.plot(one["difference"], y, "o", color=colour)
right.axvline(0, color="0.5", linewidth=1)
right.set_yticks(range(len(names)), [name.replace(" and ", "\nand ") for name in names])
right.invert_yaxis()
right.set(
    xlabel=f"NDCG@10 minus NDCG@10 of {reference}", title="Rankers, 60 queries, 16 questions each"
)
plt.show()

# %%
# Does the judge agree with people?
# ---------------------------------
#
# A few queries graded by people tell, with an interval. Here these are the true grades of 30
# queries.

few = np.arange(30)
human = np.digitize(useful, GRADES)[few]
for name, scores in [
    ("planned pairs", scores_of(asked["planned pairs"], n_train)),
    ("planned pairs and predictions", scores_of(asked["planned pairs and predictions"], n_train)),
    (reference, labels[reference][0].reshape(-1, SIZE)),
]:
    found = evaluate_rankings(
        human, scores[few], metrics=("ndcg@10", "kendall_tau"), confidence_level=0.95
    )
    print(name, *(f"{k} {v.mean:.3f} ({v.low:.3f} to {v.high:.3f})" for k, v in found.items()))
