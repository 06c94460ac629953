"""
Rank search results, and look at the queries one by one
=======================================================

A search engine finds about twenty documents for a query, and people have graded some of them by
hand: 0 for useless documents, up to 4 for perfect ones. This example trains a ranker on the graded
documents, measures whether it is better than a regression on the grades, and shows on which queries
it is better, on which it is worse, and what it puts at the top.

The data are generated, so that we know how good a ranking can be at all. To use a file of your own
in the LETOR format (lines such as ``2 qid:7 1:0.3 2:0.8``), replace `make_ranking` by
``load_letor("train.txt")``. The result has the same entries ``X``, ``y`` and ``groups``.
"""

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
# Each row is a document that was found for a query. `groups` has the query of each row. Whole
# queries are held out for the test, because a ranker will be used on queries that it has not seen.
#
# `CalibratedRanker` is trained for NDCG@10. This metric counts the grades of the first ten
# documents of a query. The first place counts most, and the order by the true grades has the value
# 1. The ranker knows two things that a regression does not know: which documents compete in one
# query, and which metric matters.

train, test = groups < 300, groups >= 300
ranker = CalibratedRanker(loss="ndcg@10", random_state=0)
ranker.fit(X[train], y[train], groups=groups[train])
scores = ranker.decision_function(X[test], groups=groups[test])

# %%
# The baseline predicts the grade of a document from its columns, and sorts by the prediction. It
# uses boosted trees, as most of the ranker does. A second baseline also gets columns that compare
# each document with the other documents of its query. `CalibratedRanker` adds such columns by
# itself.

regression = HistGradientBoostingRegressor(max_iter=100, learning_rate=0.05, random_state=0)
grades = regression.fit(X[train], y[train]).predict(X[test])

wide = context_columns(X, groups, "zscore")
grades_wide = regression.fit(wide[train], y[train]).predict(wide[test])

# %%
# Four metrics of the new queries. For the reciprocal rank (``mrr``) and average precision
# (``map``), grades from 3 on count as relevant. The last row is the ranking that is best in
# expectation. It is known here because the data are generated. It does not reach 1, because the
# grades are partly random, and nobody can predict that part.

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
# Is the difference more than chance? `compare_rankings` draws the queries again and again, and
# computes an interval for the mean difference of NDCG@10.

for name, other in {"regression": grades, "regression, more columns": grades_wide}.items():
    print(f"ranker - {name}:")
    print("   ", compare_rankings(y_test, scores, other, groups=groups_test))

# %%
# Both intervals are above 0. Most of the difference disappears when the regression gets the columns
# that compare a document with its query. Two other differences remain: the ranker learns targets
# that are made for NDCG@10, and it combines four models.
#
# The next plot shows NDCG when only the first k documents are counted, with an interval for the
# mean of each ranking. At a single cutoff, the ranking that is best in expectation need not have
# the largest value on 150 queries.

figure, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
shared = {"groups": groups_test, "k": 15, "ax": ax}
MetricAtKDisplay.from_predictions(y_test, ranks=best_ranks, **shared, name="best in expectation")
MetricAtKDisplay.from_predictions(y_test, scores, **shared, name="ranker")
MetricAtKDisplay.from_predictions(y_test, grades, **shared, name="regression")
ax.set(title="NDCG of the first k documents of 150 new queries")
plt.show()

# %%
# The bands of the plot do not say whether one ranking is better than another, because the same
# queries are difficult for all of them. The next plot compares two rankings query by query. Each
# bar is a query, and its height is the NDCG@10 of the ranker minus that of the regression. The
# legend counts the queries: the ranker is better on most of them, and worse on some.

figure, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
display = QueryDifferencesDisplay.from_predictions(
    y_test, scores, grades, groups=groups_test, names=("ranker", "regression"), ax=ax
)
ax.set(title="Ranker against regression, query by query")
plt.show()

# %%
# A mean hides the queries that fail. With ``return_per_query=True`` the metrics become a table with
# one row per query, and the worst queries come first if it is sorted. The column ``best`` is the
# NDCG@10 of the ranking that is best in expectation. Where it is low as well, the grades are hard
# to predict from the columns. Where it is much higher, there may be more to learn.

options = {"groups": groups_test, "metrics": "ndcg@10", "return_per_query": True}
report = pd.DataFrame(evaluate_rankings(y_test, scores, **options)).set_index("query")
report["best"] = evaluate_rankings(y_test, ranks=best_ranks, **options)["ndcg@10"]
graded = pd.Series(y_test).groupby(groups_test)
report["documents"], report["highest grade"] = graded.size(), graded.max()
report = report.sort_values("ndcg@10")
print(report.head(6).round(2).to_string())

# %%
# What is at the top of the worst query? `predict_order` lists the first documents of each query,
# and `to_frame` makes a table of them. Its column ``row`` is the row of the document in the data
# that were passed. The last line has the grades of all documents of the query. With real data, the
# next step would be to look at the documents with good grades that are not at the top, and to ask
# which column could tell them apart from the others.

top = ranker.predict_order(X[test], groups=groups_test, k=5).to_frame()
top["grade"] = y_test[top["row"]]
top["score"] = scores[top["row"]].round(3)
worst = report.index[0]
print(top[top["query"] == worst].to_string(index=False))
print("grades of the query:", sorted(y_test[groups_test == worst].tolist(), reverse=True))
