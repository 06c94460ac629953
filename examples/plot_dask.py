"""
Train on more data than memory with Dask
========================================

Your parquet files are larger than the memory of your machine, or are stored on a cluster. Can you
still train a ranker? Yes: `DaskCalibratedRanker` reads them in parts with `Dask
<https://docs.dask.org>`_. This example brings the rows of each query together, trains rankers on
several workers, and writes ranked files. :doc:`/guide/more_data_than_memory` explains each step.

It also shows when more data help. A linear ranker of ten columns learns all it can from the first
file. With 300 columns it needs more data, and then ranks better.
"""

import logging
import tempfile
from pathlib import Path

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from dask.distributed import Client, LocalCluster
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge

from sklearn_rankcal.dask import DaskCalibratedRanker, group_queries
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.metrics import ndcg_score

# %%
# Start a client
# --------------
#
# A *client* sends work to *workers*. Here the two workers are threads of this process, because a
# gallery page cannot start other processes. On your machine, leave out ``processes=False``, and
# move the code into a function that you call below ``if __name__ == "__main__":``. On a cluster,
# only the client changes: ``client = Client("tcp://scheduler:8786")``.

cluster = LocalCluster(
    n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", memory_limit="2GB"
)
client = Client(cluster)
logging.getLogger("distributed.shuffle").setLevel("ERROR")  # it reports every move of rows
print(len(client.nthreads()), "workers")

# %%
# Read the files
# --------------
#
# Twelve small generated files contain documents with ten features, the query and the grade. As in
# many collections, a query can continue in the next file.

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
data = make_ranking(6000, n_features=10, query_effect=0, random_state=0)
features = [f"x{column}" for column in range(10)]
table = pd.DataFrame(data.X, columns=features).assign(qid=data.groups, label=data.y)
(folder / "documents").mkdir()
for number in range(12):
    rows = slice(number * len(table) // 12, (number + 1) * len(table) // 12)
    table.iloc[rows].to_parquet(folder / "documents" / f"{number:02}.parquet")

frame = dd.read_parquet(folder / "documents")
print(f"{len(frame)} documents in {frame.npartitions} partitions")

# %%
# Bring the rows of each query together
# -------------------------------------
#
# Each file becomes a *partition*. A document is compared with all documents of its query, so all
# rows of a query have to be in one partition. `group_queries` moves them. Do this once, and save
# the result.

group_queries(frame, "qid").to_parquet(folder / "queries", write_index=False)
queries = dd.read_parquet(folder / "queries", split_row_groups=False)
training, test = queries.partitions[:10], queries.partitions[10:]

# %%
# Train a linear ranker
# ---------------------
#
# This linear ranker is trained for NDCG@10. Only sums over partitions are kept in memory, and the
# coefficients are those that one machine with enough memory would find. The ranker checks that no
# query is in two partitions.

ranker = DaskCalibratedRanker(Ridge(), loss="ndcg@10", group_column="qid")
ranker.fit(training.drop(columns="label"), training["label"])
X_test, y_test = test.drop(columns="label"), test["label"]
print(f"{ranker.n_queries_} training queries")
print(f"NDCG@10 of new queries: {ranker.score(X_test, y_test):.4f}")

# %%
# Write ranked files
# ------------------
#
# The ranked files contain the rows of the test files and the position of each document in its
# query. Here are the first three documents of one query:

ranked = test.assign(position=ranker.predict(X_test))
ranked.to_parquet(folder / "ranked")
top = dd.read_parquet(folder / "ranked", filters=[("position", "<=", 3)])
first = top.partitions[0].compute()
first = first[first["qid"] == first["qid"].iloc[0]].sort_values("position")
print(first[["qid", "position", "label", "x0", "x1"]].round(2).to_string(index=False))

# %%
# Add columns one partition at a time
# -----------------------------------
#
# The grades are not a linear function of the columns. scikit-learn's `Nystroem` computes 300 smooth
# functions of the ten columns. A linear model of these can follow curves. `Nystroem` is fitted to a
# sample in memory. ``map_partitions`` then transforms each partition when it is needed, so the wide
# table never exists as a whole.

sample = training.partitions[0].compute()
mapper = Nystroem(n_components=300, gamma=0.02, random_state=0).fit(sample[features])
columns = [f"z{column}" for column in range(300)]


def widen(part):
    """Replace the features of a partition by many functions of them."""
    wide = mapper.transform(part[features]).astype("float32")
    wide = pd.DataFrame(wide, columns=columns, index=part.index)
    return wide.assign(qid=part["qid"], label=part["label"])


wide = queries.map_partitions(widen, meta=widen(sample).iloc[:0])
print(f"{len(wide.columns) - 2} columns")

# %%
# Train both on more and more data
# --------------------------------
#
# Both rankers learn from the first one, two, five and ten partitions. Context columns are switched
# off, because the columns have the same level in all queries here.

n_partitions = [1, 2, 5, 10]
scores = {"10 columns": [], "300 columns": []}
for name, collection, alpha in (("10 columns", queries, 1), ("300 columns", wide, 0.01)):
    ranker.set_params(regressor=Ridge(alpha), context=None)
    held_out = collection.partitions[10:]
    for n in n_partitions:
        part = collection.partitions[:n]
        ranker.fit(part.drop(columns="label"), part["label"])
        scores[name].append(ranker.score(held_out.drop(columns="label"), held_out["label"]))

scores = pd.DataFrame(scores, index=pd.Index(n_partitions, name="partitions"))
print(scores.round(4).to_string())

# %%
# The ranker with ten columns gains nothing after the first partition. The ranker with 300 columns
# needs more data and is then better. The dashed line is the ranking that is best in expectation. It
# is known because the data are generated.

in_test = np.isin(data.groups, X_test["qid"].compute())
best_score = ndcg_score(
    data.y[in_test], ranks=data.bayes_ranks[in_test], groups=data.groups[in_test], k=10
)

figure, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
for (name, values), marker in zip(scores.items(), "os", strict=True):
    ax.plot(values.index, values, marker=marker, label=name)
ax.axhline(best_score, color="black", linestyle="--", label="best in expectation")
ax.set(xlabel="training partitions", ylabel="NDCG@10 of new queries", xticks=n_partitions)
ax.set_title("More data help if there are more columns")
ax.legend(loc="upper right", bbox_to_anchor=(1, 0.93))
plt.show()

# %%
# Use the ranker without Dask
# ---------------------------
#
# The fitted ranker needs no cluster. ``ranker.ranker_`` is a `CalibratedRanker`, which ranks pandas
# frames and can be saved.

positions = ranker.ranker_.predict(widen(sample).drop(columns="label"))
print(positions[:8])

client.close()
cluster.close()
temporary.cleanup()
