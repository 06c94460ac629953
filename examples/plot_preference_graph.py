"""
Predicted preferences, before and after decoding
================================================

What a ranker on pairs sees of one query: a predicted difference for each pair of documents, here
with cycles. On the left the preferences as a graph and as a matrix; on the right the same in the
order of the decoded ranking. Red arrows, and blue cells above the diagonal, are what the ranking
has to contradict; no ranking contradicts less, and the last lines say how often such a proof was to
be had.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.datasets import make_preferences
from sklearn_rankcal.plotting import plot_matrix, plot_preference_graph

options = {"n_documents": 7, "n_features": 4, "kind": "cyclic", "noise": 0.3}
train = make_preferences(300, **options, random_state=0)
test = make_preferences(100, **options, random_state=1)
ranker = CalibratedRanker(loss="pd", decoder="exact").fit(train.X, train.y)

query = test.groups == 0
differences = ranker.predict_preferences(test.X[query], groups=test.groups[query])[0]
ranks = ranker.predict(test.X[query], groups=test.groups[query])

figure, panels = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
plot_preference_graph(differences, ax=panels[0, 0])
plot_preference_graph(differences, ranks, ax=panels[0, 1])
plot_matrix(differences, ax=panels[1, 0])
plot_matrix(differences, ranks, ax=panels[1, 1])
panels[0, 0].set_title("predicted preferences")
panels[0, 1].set_title("in the order of the ranking")
lost = np.maximum(differences, 0)[ranks[:, None] > ranks].sum()
print(f"weight contradicted: {lost:.3f} of {np.maximum(differences, 0).sum():.3f}")
plt.show()

# %%
# `diagnose` says the same of all queries: whether scores would have been enough, and with labels of
# held-out queries how much the rankings can lose in expectation. That bound contains the noise of
# the labels, one judgement of each pair here, and is a long way above the truth.

diagnosis = ranker.diagnose(test.X, y=test.y)
print(diagnosis)
diagnosis.plot()
plt.show()
