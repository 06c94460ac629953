"""
Predict each person's own ranking from a survey
===============================================

In 2014, FiveThirtyEight asked people to rank six Star Wars films, and asked about their age, their
education and what else they like. Can the answers predict the whole ranking of a new person, and
how certain is the favourite? `CalibratedLabelRanker` reads the table as it is, with texts and
missing answers, and predicts better than a single order for all. A conformal set then lists the
films that may be the favourite.

The `FiveThirtyEight data <https://github.com/fivethirtyeight/data>`_ (licence CC BY 4.0) are
reduced to the 834 people who ranked all films, with shorter column names.
"""


# %%
# Read the survey
# ---------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

survey = pd.read_csv("data/star_wars_survey.csv")
films = list(survey.columns[-6:])
people, ranks = survey.drop(columns=films), survey[films]
print(people.iloc[:3, :8].to_string(index=False))
print(ranks[:3].to_string(index=False))

# %%
# Train a label ranker
# --------------------
#
# In the table of ranks, 1 is the favourite. `CalibratedLabelRanker` needs nothing else: the column
# names are the names of the films. We hold out 200 people to measure how certain the ranker is, and
# 200 others to test it.

from sklearn_rankcal import CalibratedLabelRanker, Judgements, aggregate
from sklearn_rankcal.metrics import kendall_tau_score

rest, test = train_test_split(np.arange(len(survey)), test_size=200, random_state=0)
train, kept_apart = train_test_split(rest, test_size=200, random_state=0)
ranker = CalibratedLabelRanker(random_state=0).fit(people.iloc[train], ranks.iloc[train])

one_order = aggregate(Judgements.from_ranks(ranks.iloc[train]), "kemeny")
same = one_order.scores[[one_order.items.tolist().index(film) for film in films]]
of_all = kendall_tau_score(-ranks.iloc[test], np.tile(same, (len(test), 1)))
print(f"one order for all: Kendall's tau {of_all:.2f}")
print(f"label ranker:      Kendall's tau {ranker.score(people.iloc[test], ranks.iloc[test]):.2f}")

# %%
# Here are two people of the test, with the predicted ranking and their own:

for row in test[:2]:
    person = survey.iloc[[row]]
    print(f"{person.iloc[0]['age']}, fan: {person.iloc[0]['fan']}")
    print("  predicted:", " > ".join(ranker.predict_order(person[people.columns])[0]))
    own = ranks.iloc[row].sort_values()
    print("  own:      ", " > ".join(own.index))

# %%
# How certain is each pair?
# -------------------------
#
# For two films, `predict_preferences` predicts the share of similar people who prefer the first
# one, minus the share who prefer the second. The figure turns this into a chance for the first
# person: how likely is it that this person prefers the film of the row to the film of the column?

chance = (1 + ranker.predict_preferences(people.iloc[test[:1]])[0]) / 2
order = ranker.predict_order(people.iloc[test[:1]])[0]
places = [films.index(film) for film in order]

figure, ax = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
image = ax.imshow(chance[np.ix_(places, places)], vmin=-0.3, vmax=1.3, cmap="RdBu")
ax.set_xticks(range(6), order, rotation=35, ha="right")
ax.set_yticks(range(6), order)
for i in range(6):
    for j in range(6):
        if i != j:
            ax.text(j, i, f"{100 * chance[places[i], places[j]]:.0f}", ha="center", va="center")
ax.set_title("Chance in % that the row is preferred to the column")
plt.show()

# %%
# How certain is the favourite?
# -----------------------------
#
# A film is the predicted favourite if its chances against all other films are high. The smallest of
# these chances is the firmness of the film. A *conformal set* contains all films with a firmness of
# at least some limit. The limit is chosen on the held-out people: it is the k-th smallest firmness
# of their favourites, with k = floor(0.1 (n + 1)). For new people from the same population, the set
# contains the favourite with a probability of at least 90 %, however good or bad the model is (Vovk
# et al., 2005; Angelopoulos and Bates, 2023, theorem 1).


def firmness(rows):
    """Return for each person and film the smallest chance against another film."""
    chance = (1 + ranker.predict_preferences(people.iloc[rows])) / 2
    chance[:, np.arange(6), np.arange(6)] = 1.0
    return chance.min(axis=2)


def favourite(rows):
    return ranks.iloc[rows].to_numpy().argmin(axis=1)


of_favourites = np.sort(firmness(kept_apart)[np.arange(200), favourite(kept_apart)])
limit = of_favourites[int(0.1 * 201) - 1]
sets = firmness(test) >= limit
contained = sets[np.arange(200), favourite(test)]
print(f"the favourite is in the set of {contained.mean():.0%} of the people")
for size, n_people in zip(*np.unique(sets.sum(axis=1), return_counts=True), strict=True):
    print(f"{size} in the set: {n_people} people")

figure, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
share = sets.mean(axis=0)
by_share = np.argsort(share)
ax.barh(np.array(films)[by_share], 100 * share[by_share], color="tab:blue")
ax.set(xlabel="people whose favourite may be this film, in %", xlim=(0, 100))
plt.show()
