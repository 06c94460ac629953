"""
Rank search results and inspect the queries
===========================================

You have documents graded by hand, from 0 for useless to 4 for perfect, and want to rank the results
of new queries. Is a ranker better than a regression on the grades, and on which queries? Here the
ranker has a higher NDCG@10 on most queries. A table lists the queries that need attention.

The data are generated, so we know how good a ranking can be. To use your own file in LETOR format
(lines such as ``2 qid:7 1:0.3 2:0.8``), replace `make_ranking` by ``load_letor("train.txt")``. The
result has the same entries ``X``, ``y`` and ``groups``.
"""


# %%
# Load the data
# -------------
#
# A search engine found about twenty documents for each query.

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from sklearn_rankcal import CalibratedRanker, context_columns
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.metrics import compare_rankings, evaluate_rankings
from sklearn_rankcal.plotting import MetricAtKDisplay, QueryDifferencesDisplay

data = make_ranking(n_queries=450, n_documents=(8, 30), random_state=0)
X, y, groups = data.X, data.y, data.groups
print(f"{len(y)} documents of {len(set(groups))} queries, with {X.shape[1]} columns")
first_rows = pd.DataFrame(X[:5, :4]).add_prefix("column ").round(2)
first_rows.insert(0, "query", groups[:5])
first_rows.insert(1, "grade", y[:5])
print(first_rows.to_string(index=False))

# %%
# Train a ranker
# --------------
#
# Each row is a document that was found for a query, and `groups` contains the query of each row. We
# hold out whole queries for the test, because the ranker will be used on new queries.
#
# `CalibratedRanker` is trained for NDCG@10. This metric adds up the gains of the first ten
# documents of a query. The first place counts most, and sorting by the true grades gives 1. A
# ranker knows two things that a regression does not: which documents compete in a query, and which
# metric matters.

train, test = groups < 300, groups >= 300
ranker = CalibratedRanker(loss="ndcg@10", random_state=0)
ranker.fit(X[train], y[train], groups=groups[train])
scores = ranker.decision_function(X[test], groups=groups[test])

# %%
# Train a regression
# ------------------
#
# The baseline predicts the grade of a document and sorts by the prediction. It uses boosted trees,
# as the ranker does. A second baseline also gets columns that compare each document with the other
# documents of its query. `CalibratedRanker` adds such columns itself.

regression = HistGradientBoostingRegressor(max_iter=100, learning_rate=0.05, random_state=0)
grades = regression.fit(X[train], y[train]).predict(X[test])

wide = context_columns(X, groups, "zscore")
grades_wide = regression.fit(wide[train], y[train]).predict(wide[test])

# %%
# Compare four metrics
# --------------------
#
# For reciprocal rank (``mrr``) and average precision (``map``), grades of 3 and above count as
# relevant. The last row is the ranking that is best in expectation, known because the data are
# generated. It does not reach 1, because part of each grade is random and cannot be predicted.

y_test, groups_test, best_ranks = y[test], groups[test], data.bayes_ranks[test]
options = {"groups": groups_test, "metrics": ["ndcg@5", "ndcg@10", "mrr", "map"], "threshold": 3}
table = {
    "ranker": evaluate_rankings(y_test, scores, **options),
    "regression": evaluate_rankings(y_test, grades, **options),
    "regression, more columns": evaluate_rankings(y_test, grades_wide, **options),
    "best in expectation": evaluate_rankings(y_test, ranks=best_ranks, **options),
}
print(pd.DataFrame(table).T.round(3).to_string())

# %%
# Is the difference more than chance?
# -----------------------------------
#
# `compare_rankings` computes an interval for the mean difference of NDCG@10 over the queries.

for name, other in {"regression": grades, "regression, more columns": grades_wide}.items():
    print(f"ranker - {name}:")
    print("   ", compare_rankings(y_test, scores, other, groups=groups_test))

# %%
# Both intervals are above 0. Most of the difference disappears if the regression gets the columns
# that compare a document with its query. Two differences remain: the ranker learns targets made for
# NDCG@10, and it combines boosted trees for these targets, for net Borda scores and for the grades.
#
# Plot NDCG at each cutoff
# ------------------------
#
# The plot shows NDCG of the first k documents, with an interval for the mean of each ranking. On
# 150 queries, the ranking that is best in expectation need not be the highest at every cutoff.

figure, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
shared = {"groups": groups_test, "k": 15, "ax": ax}
MetricAtKDisplay.from_predictions(y_test, ranks=best_ranks, **shared, name="best in expectation")
MetricAtKDisplay.from_predictions(y_test, scores, **shared, name="ranker")
MetricAtKDisplay.from_predictions(y_test, grades, **shared, name="regression")
ax.set(title="NDCG of the first k documents of 150 new queries")
plt.show()

# %%
# Compare query by query
# ----------------------
#
# The bands do not tell whether one ranking is better than another, because the same queries are
# difficult for all of them. The next plot compares two rankings on each query. A bar is a query,
# and its height is the difference in NDCG@10 between the ranker and the regression. The legend
# counts the queries: the ranker is better on most, and worse on some.

figure, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
display = QueryDifferencesDisplay.from_predictions(
    y_test, scores, grades, groups=groups_test, names=("ranker", "regression"), ax=ax
)
ax.set(title="Ranker against regression, query by query")
plt.show()

# %%
# Find the worst queries
# ----------------------
#
# A mean hides the queries that fail. With ``return_per_query=True``, the metrics become a table
# with one row per query. Sort it to see the worst queries first. The column ``best`` is the NDCG@10
# of the ranking that is best in expectation. If it is low, too, the grades are hard to predict from
# the columns. If it is much higher, there may be more to learn.

options = {"groups": groups_test, "metrics": "ndcg@10", "return_per_query": True}
report = pd.DataFrame(evaluate_rankings(y_test, scores, **options)).set_index("query")
report["best"] = evaluate_rankings(y_test, ranks=best_ranks, **options)["ndcg@10"]
graded = pd.Series(y_test).groupby(groups_test)
report["documents"], report["highest grade"] = graded.size(), graded.max()
report = report.sort_values("ndcg@10")
print(report.head(6).round(2).to_string())

# %%
# Look at one query
# -----------------
#
# What is at the top of the worst query? `predict_order` lists the first documents of each query,
# and `to_frame` makes a table of them. Its column ``row`` is the row of the document in the data
# passed to `predict_order`. The last line lists the grades of all documents of the query. With real
# data, look next at documents with good grades that are not at the top, and ask which column could
# tell them apart.

top = ranker.predict_order(X[test], groups=groups_test, k=5).to_frame()
top["grade"] = y_test[top["row"]]
top["score"] = scores[top["row"]].round(3)
worst = report.index[0]
print(top[top["query"] == worst].to_string(index=False))
print("grades of the query:", sorted(y_test[groups_test == worst].tolist(), reverse=True))
