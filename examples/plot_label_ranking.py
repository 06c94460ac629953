"""
Rank the same few choices for every person
==========================================

An app has six sections, and each user should find them in the order of their own interests. In a
survey, people were asked to order the sections, and most of them left some sections out. This
example learns from these incomplete orders to predict the whole order for a new user, from what is
known about the user. This is called label ranking: the things to rank are the same few labels each
time, and they need no columns of their own.

The survey is simulated, so that we know how good a prediction can be at all.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_rankcal.datasets import make_label_ranking

SECTIONS = ["news", "sports", "travel", "food", "music", "science"]
people = make_label_ranking(700, 6, noise=1.0, random_state=0)
X_train, X_test = people.X[:400], people.X[400:]
Y = pd.DataFrame(people.Y.astype(int), columns=SECTIONS)
Y_train, Y_test = Y[:400], Y[400:]


def leave_out(Y, share):
    """Return the ranks of the sections that are left if people leave out some at random."""
    left_out = np.random.default_rng(0).random(Y.shape) < share
    return Y.mask(left_out).rank(axis=1)


Y_survey = leave_out(Y_train, 0.4)
print(Y_survey.head().to_string(index=False))

# %%
# Each row is a person, 1 is the best section, and NaN is a section that the person left out. Here
# 40 % of the entries are missing. `CalibratedLabelRanker` takes such a table as it is. It is scored
# by Kendall's tau on 300 new people who ordered all sections. Tau is 1 if the predicted order is
# that of the person, 0 if it is as good as chance, and -1 if it is the reverse.
#
# The baseline is one order for all people, which contradicts the survey as little as possible.

from sklearn_rankcal import CalibratedLabelRanker, Judgements, aggregate
from sklearn_rankcal.metrics import kendall_tau_score

ranker = CalibratedLabelRanker(random_state=0).fit(X_train, Y_survey)


def score_one_order(Y):
    answered = Y.notna().any(axis=1)
    order = aggregate(Judgements.from_ranks(Y[answered]), "kemeny")
    scores = dict(zip(order.items.tolist(), order.scores.tolist(), strict=True))
    same = np.tile([scores[section] for section in SECTIONS], (len(Y_test), 1))
    return kendall_tau_score(-Y_test, same)  # relevance, where larger is better


best = kendall_tau_score(-Y_test, ranks=people.bayes_ranks[400:])
print(f"one order for all:    {score_one_order(Y_survey):.3f}")
print(f"label ranker:         {ranker.score(X_test, Y_test):.3f}")
print(f"best in expectation:  {best:.3f}")

# %%
# No single order suits these people: it is no better than chance. The ranker is much closer to the
# best prediction. Here are its orders for three of the new people, each above the order that the
# person gave. The columns of the table that `fit` received are the names.

for predicted, given in zip(ranker.predict_order(X_test[:3]), Y_test.to_numpy(), strict=False):
    print("predicted:", " > ".join(predicted))
    print("given:    ", " > ".join(np.array(SECTIONS)[given.argsort()]), end="\n\n")

# %%
# How complete do the answers have to be? The ranker is trained again, with more and more entries
# left out of the same answers. The plot shows that it loses little until half of the entries are
# missing, and that it still learns something when four fifths are missing. One order for all
# remains hardly better than chance, even from complete answers.

shares = [0, 0.2, 0.4, 0.6, 0.8]
taus = []
for share in shares:
    again = CalibratedLabelRanker(random_state=0).fit(X_train, leave_out(Y_train, share))
    taus.append(again.score(X_test, Y_test))

figure, ax = plt.subplots(figsize=(5.2, 3.8), layout="constrained")
ax.axhline(best, color="black", linestyle="--", label="best in expectation")
ax.plot(shares, taus, marker="o", label="label ranker")
ax.axhline(score_one_order(Y_train), color="tab:orange", linestyle="-.", label="one order for all")
ax.set(
    title="Incomplete answers: Kendall's tau on new people",
    xlabel="share of the entries that are missing",
    ylabel="Kendall's tau",
    ylim=(-0.1, 1),
)
ax.legend()
plt.show()
