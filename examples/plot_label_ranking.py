"""
Rank the same few options for each person
=========================================

An app has six sections. Each user should see them in the order of their own interests. A survey
asked people to rank the sections, and most people left some out. Can you predict the whole order
for a new user, from what is known about the user? Yes: this is label ranking, and
`CalibratedLabelRanker` learns it from incomplete rankings. In label ranking, everyone ranks the
same few labels, and the labels need no columns of their own.
"""


# %%
# Simulate a survey
# -----------------
#
# Because the survey is simulated, we know how good a prediction can be.

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
# Train the label ranker
# ----------------------
#
# Each row is a person. 1 is the best section, and NaN means that the person left the section out.
# Here 40 % of the entries are missing. `CalibratedLabelRanker` accepts this table without changes.
#
# We score it by Kendall's tau on 300 new people who ranked all sections. Tau is 1 if the predicted
# order equals the order of the person, 0 if it is as good as chance, and -1 if it is reversed. The
# baseline is a single order for all people, the one that contradicts the survey least.

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
# Look at predicted orders
# ------------------------
#
# No single order suits these people: it is no better than chance. The label ranker comes much
# closer to the best possible prediction. Here are its orders for three new people, with the order
# of the person below each. Section names come from the columns of the table passed to `fit`.

for predicted, given in zip(ranker.predict_order(X_test[:3]), Y_test.to_numpy(), strict=False):
    print("predicted:", " > ".join(predicted))
    print("given:    ", " > ".join(np.array(SECTIONS)[given.argsort()]), end="\n\n")

# %%
# How complete do answers have to be?
# -----------------------------------
#
# We train the ranker again with more and more entries removed from the same answers. It loses
# little while at most half of the entries are missing, and still learns something when four fifths
# are missing. A single order for all is hardly better than chance, even from complete answers.

shares = [0, 0.4, 0.6, 0.8]
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
    xlabel="share of missing entries",
    ylabel="Kendall's tau",
    ylim=(-0.1, 1),
)
ax.legend()
plt.show()
