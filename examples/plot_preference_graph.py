"""
Look inside a ranker of pairs
=============================

A ranker with a loss on pairs predicts a preference for each pair of documents. What if these
preferences contradict each other? The decoder finds the ranking that contradicts the least weight.
This example shows the predicted preferences of a query before and after decoding, and `diagnose`,
which reports how many rankings are proved to be optimal.
"""


# %%
# Predicted preferences
# ---------------------
#
# The predictions of this query contain cycles. They are shown as a graph and as a matrix.

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

figure, panels = plt.subplots(2, 1, figsize=(5.2, 6.8), layout="constrained")
plot_preference_graph(differences, ax=panels[0])
plot_matrix(differences, ax=panels[1])
panels[0].set_title("predicted preferences")
plt.show()

# %%
# The same preferences, in the order of the ranking
# -------------------------------------------------
#
# Documents are now in the order of the ranking, clockwise from the top. The ranking contradicts the
# orange arrows, which are the blue cells above the diagonal of the matrix. The exact decoder proves
# that no ranking contradicts less weight.

figure, panels = plt.subplots(2, 1, figsize=(5.2, 7.2), layout="constrained")
plot_preference_graph(differences, ranks, ax=panels[0])
plot_matrix(differences, ranks, ax=panels[1])
panels[0].set_title("in the order of the ranking")
lost = np.maximum(differences, 0)[ranks[:, None] > ranks].sum()
print(f"weight contradicted: {lost:.3f} of {np.maximum(differences, 0).sum():.3f}")
plt.show()

# %%
# All queries
# -----------
#
# `diagnose` reports on the rankings of all queries: how many are proved to be optimal for their
# predictions, and for how many queries sorting by scores would have been enough. With labels of
# held-out queries, it also bounds the expected regret. The bound includes the noise of the labels.
# Here each label is a single judgement of each pair, so the bound is far above the regret.

diagnosis = ranker.diagnose(test.X, y=test.y)
print(diagnosis)
figure, panels = plt.subplots(2, 1, figsize=(5.2, 5.6), layout="constrained")
diagnosis.plot(panels)
plt.show()
