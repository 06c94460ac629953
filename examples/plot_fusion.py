"""
Combine two search engines
==========================

A word index and a vector index search the same documents. Each finds documents that the other
misses, and their scores have different scales. How do you combine them? Reciprocal rank fusion adds
up 1 / (60 + rank) and learns nothing. If old queries have judgements, a trained ranker does better:
it learns how much a score of each index is worth. This example compares both on new queries with
the metrics of trec_eval, which count judged documents that neither index found.
"""


# %%
# The searches are simulated. To use your own TREC files, pass their paths instead of the dicts.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_rankcal import CalibratedRanker, LinearRanker
from sklearn_rankcal.metrics import compare_rankings, evaluate_run, runs_table, to_run

# %%
# Simulate two indexes
# --------------------
#
# Each query has 2,000 documents, and few of them are relevant. Half of the documents use other
# words than the query, and the word index hardly sees them. The vector index sees all documents,
# but less sharply. Each index returns its first 100 documents. Judges grade the first 20 of each
# index and a sample of the remaining documents.

rng = np.random.default_rng(0)
qrels, words, vectors = {}, {}, {}
for query in range(450):
    match = rng.normal(size=2000)
    grade = (match > 2).astype(int) + (match > 2.7)
    other_words = rng.random(2000) < 0.5
    by_words = 10 * rng.gamma(2) * np.exp(np.where(other_words, 0.2, 0.9) * match
                                          + 0.5 * rng.normal(size=2000))  # fmt: skip
    by_vectors = np.tanh(0.4 * match + 0.35 * rng.normal(size=2000))
    found = [np.argsort(-scores)[:100] for scores in (by_words, by_vectors)]
    judged = np.unique(np.concatenate([found[0][:20], found[1][:20], rng.choice(2000, 40)]))
    qrels[query] = {f"d{d}": int(grade[d]) for d in judged}
    words[query] = {f"d{d}": float(by_words[d]) for d in found[0]}
    vectors[query] = {f"d{d}": float(by_vectors[d]) for d in found[1]}

train = {query: qrels[query] for query in range(300)}
test = {query: qrels[query] for query in range(300, 450)}
print(evaluate_run(test, words))

# %%
# Train a ranker on both runs
# ---------------------------
#
# `runs_table` returns one row for each document that at least one index found for a query. We train
# only on judged documents of the old queries, because an unjudged document may be relevant.

table = runs_table({"words": words, "vectors": vectors})
features = ["score_words", "rank_words", "score_vectors", "rank_vectors"]
judged = pd.DataFrame(
    [(str(q), d, grade) for q, listed in train.items() for d, grade in listed.items()],
    columns=["query_id", "doc_id", "grade"],
)
old = table.merge(judged, on=["query_id", "doc_id"])
new = table[table["query_id"].astype(int) >= 300]
print(old.groupby("query_id").head(2).head(4).round(2).to_string(index=False))

ranker = CalibratedRanker(loss="ndcg@10", random_state=0)
ranker.fit(old[features], old["grade"], groups=old["query_id"])

# %%
# Train a linear ranker
# ---------------------
#
# A linear ranker is enough for a weighted sum. Its columns are logarithms of ranks. Documents that
# an index did not find get rank 200.

places = ["rank_words", "rank_vectors"]
log_old, log_new = (-np.log(part[places].fillna(200)) for part in (old, new))
linear = LinearRanker().fit(log_old, old["grade"], groups=old["query_id"])
print(dict(zip(places, linear.coef_.round(2).tolist(), strict=True)))

# %%
# Evaluate the runs
# -----------------
#
# `to_run` turns scores back into runs.

ids = {"groups": new["query_id"], "document_ids": new["doc_id"]}
fused = {
    "words": words,
    "vectors": vectors,
    "reciprocal ranks": to_run((1 / (60 + new[places])).sum(axis=1), **ids),
    "linear": to_run(linear.decision_function(log_new, groups=new["query_id"]), **ids),
    "learned": to_run(ranker.decision_function(new[features], groups=new["query_id"]), **ids),
}
metrics = ["ndcg@10", "map", "recall@20"]
values = evaluate_run(test, fused, metrics=metrics)
print(pd.DataFrame(values).T.round(3).to_string())

# %%
# Compare with reciprocal rank fusion
# -----------------------------------
#
# Both rankers beat reciprocal rank fusion. Its constant 60 makes the first ranks almost equal, but
# here the first rank of an index means much more than its twentieth.

outcome = compare_rankings(test, fused, baseline="reciprocal ranks", metric="ndcg@10")
middle, place = outcome["difference"], np.arange(4)
errors = [middle - outcome["low"], outcome["high"] - middle]
fig, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
ax.errorbar(middle, place, xerr=errors, fmt="o", capsize=3)
ax.axvline(0, color="grey", linewidth=1)
ax.set(xlabel="NDCG@10 minus NDCG@10 of reciprocal rank fusion, 95 % intervals")
ax.set_yticks(place, outcome["first"])
ax.margins(y=0.15)
ax.invert_yaxis()
ax.spines[["top", "right", "left"]].set_visible(False)
plt.show()
