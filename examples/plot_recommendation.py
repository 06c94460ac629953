"""
Recommend films from what users selected
========================================

A site shows each user a page of six films, and the user starts one of them, or none. Nobody grades
a film. How do you learn from such selections which films to recommend to new users? Take into
account what was shown. Films that are shown more often are also selected more often, even if users
like them no more. Labels that ignore this recommend what the site promoted.
"""


# %%
# Simulate the log
# ----------------
#
# Each user is a query, and the films that could be recommended to the user are its documents. The
# site promotes its own productions and shows them more often than other films. Later, in a trial,
# new users get random pages. Only the trial shows what users like, so it serves as the test.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
GENRES = ["comedy", "crime", "drama", "family", "space"]
n_films, n_users, n_candidates = 80, 400, 30
genres = rng.dirichlet(np.full(5, 0.4), n_films)
films = pd.DataFrame(
    {
        "year": rng.integers(1970, 2026, n_films),
        "fame": rng.normal(size=n_films).round(2),
        "own": (rng.random(n_films) < 0.3).astype(int),
    }
)
tastes = rng.dirichlet(np.full(5, 0.6), n_users)  # the genres that a user has watched so far

user = np.repeat(np.arange(n_users), n_candidates)
film = np.concatenate([rng.choice(n_films, n_candidates, replace=False) for _ in range(n_users)])
X = films.iloc[film].reset_index(drop=True)
X["match"] = (genres[film] * tastes[user]).sum(axis=1).round(3)
X[[f"film: {genre}" for genre in GENRES]] = genres[film].round(2)
X[[f"user: {genre}" for genre in GENRES]] = tastes[user].round(2)
is_trial = user >= 300

liking = (0.8 * X["fame"] + 5 * X["match"] + 0.8 * (X["year"] > 2005)).to_numpy()
shown, selected, visitor = [], [], []
for u in range(n_users):
    rows = np.flatnonzero(user == u)
    weight = np.ones(n_candidates) if u >= 300 else 1 + 4 * X["own"].to_numpy()[rows]
    for _ in range(12):
        page = rng.choice(rows, 6, replace=False, p=weight / weight.sum())
        best = np.argmax(np.append(liking[page], 3.0) + rng.gumbel(size=7))
        shown.append(page.tolist())
        selected.append([] if best == 6 else [page.tolist()[best]])  # the seventh choice is none
        visitor.append(u)

# %%
# The table has a row for each user and film, with columns for the film, the user, and both
# together. ``match`` is large if the user has watched films of the same genres. The log has a line
# for each page, with row numbers of the table.

print(X.iloc[:4, :6].to_string())
print(f"\n{len(shown)} pages; something was selected on {np.mean([len(s) for s in selected]):.0%}")
for k in range(4, 8):
    print(f"user {visitor[k]}: shown {shown[k]}, selected {selected[k]}")

# %%
# Make labels from the log in three ways
# --------------------------------------
#
# * *selected or not*: a film is relevant if the user selected it at least once.
# * *share of pages*: the label is the share of pages with the film on which the user selected it.
# * *preferred on the page*: a selected film was preferred to the five other films of the page.
#   `Judgements.from_selections` reads the log this way, `preference_labels` turns the pairs into
#   labels, and `AggregatedLoss` turns the pairs of a user into targets.
#
# For the first two, only films that were shown to the user have a label.

from sklearn_rankcal import CalibratedRanker, Judgements, preference_labels
from sklearn_rankcal.aggregation import AggregatedLoss

n_shown = np.bincount(np.concatenate(shown), minlength=len(user))
n_selected = np.bincount(np.concatenate(selected).astype(int), minlength=len(user))
was_selected, share = (n_selected > 0).astype(int), n_selected / np.maximum(n_shown, 1)

judgements = Judgements.from_selections(shown, selected, groups=visitor)
comparisons, row_of = judgements.comparisons, np.asarray(judgements.items)
pairs = np.column_stack([row_of[comparisons.winner], row_of[comparisons.loser]])
preferences = preference_labels(pairs, user, judgement=judgements.of_comparison)
print(f"{judgements}, {len(pairs)} pairs")

train, known = ~is_trial, ~is_trial & (n_shown > 0)
rankers = {
    "selected or not": CalibratedRanker("boosting", loss="ndcg@10").fit(
        X[known], was_selected[known], groups=user[known]
    ),
    "share of pages": CalibratedRanker("boosting", loss="ndcg@10").fit(
        X[known], share[known], groups=user[known]
    ),
    "preferred on the page": CalibratedRanker("boosting", loss=AggregatedLoss("ndcg@10")).fit(
        X[train], preferences[train], groups=user[train]
    ),
}

# %%
# Test the rankers on the trial
# -----------------------------
#
# A good ranking puts the films that a user selected in the trial at the top. The rankers have seen
# none of these users. The baseline is the same ranking for all users: the films that were selected
# most often before the trial.

from sklearn_rankcal.metrics import compare_rankings, evaluate_rankings

trial = is_trial & (n_shown > 0)
y, users = was_selected[trial], user[trial]
most_selected = np.bincount(film[train], n_selected[train], n_films)
scores = {"most selected films": most_selected[film[trial]]}
for name, ranker in rankers.items():
    scores[name] = ranker.decision_function(X[trial], groups=users)

options = {"groups": users, "metrics": ["ndcg@10", "recall@5", "mrr"]}
table = {name: evaluate_rankings(y, values, **options) for name, values in scores.items()}
print(pd.DataFrame(table).T.round(3).to_string())
for one, other in [(1, 0), (2, 0), (1, 2)]:
    one, other = list(rankers)[one], list(rankers)[other]
    print(f"NDCG@10, {one} - {other}:")
    print("   ", compare_rankings(y, scores[one], scores[other], groups=users))

# %%
# All rankers have higher means than the baseline. The two that take into account what was shown
# beat the one that does not: their intervals are above 0. 100 users are too few to decide which of
# the two is better. The plot shows the share of a user's selected films among the first k.

from sklearn_rankcal.plotting import MetricAtKDisplay

figure, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
for name in ["share of pages", "selected or not", "most selected films"]:
    options = {"groups": users, "metric": "recall", "ax": ax, "name": name}
    MetricAtKDisplay.from_predictions(y, scores[name], **options)
ax.set(title="Share of the selected films\namong the first k, 100 new users")
plt.show()

# %%
# Find the reason for the difference
# ----------------------------------
#
# How many of the first five films are the site's own productions? Before the trial, most films on
# the pages were its own, because it promoted them. The baseline and *selected or not* mistake this
# for the taste of the users. In the trial, where all films had the same chance to be shown, about a
# third of the selected films were the site's own. *preferred on the page* reduces the error, and
# *share of pages* removes it here.

promoted = X["own"].to_numpy()
own_shares = {"shown before the trial": np.average(promoted[train], weights=n_shown[train])}
for name, values in scores.items():
    first = pd.Series(values).groupby(users).rank(ascending=False, method="first") <= 5
    own_shares[f"first five: {name}"] = promoted[trial][first].mean()
own_shares["selected in the trial"] = promoted[trial][y == 1].mean()

figure, ax = plt.subplots(figsize=(5.2, 3), layout="constrained")
colors = ["tab:gray", *["tab:blue"] * len(scores), "tab:gray"]
bars = ax.barh(list(own_shares), list(own_shares.values()), color=colors)
ax.bar_label(bars, fmt="{:.0%}", padding=3)
ax.invert_yaxis()
ax.set_xlim(0, 1)
figure.suptitle("Share of the site's own productions")
plt.show()

# %%
# Recommend films to a new user
# -----------------------------
#
# Here are the recommendations for one new user, best first. A new user needs no selections, because
# the ranker only uses the columns of the table.

one_user = user == 399
order = rankers["share of pages"].predict_order(X[one_user], groups=user[one_user], k=5)
print("watched so far:", dict(zip(GENRES, tastes[399].round(2).tolist(), strict=True)))
print(X[one_user].iloc[order.rows, :9].round(2).to_string(index=False))
