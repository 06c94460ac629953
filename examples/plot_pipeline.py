"""
Build a pipeline from a data frame
==================================

A travel site logs which hotels it showed for each search, with categories and missing values. How
do you get from this data frame to a ranker in production? Put preprocessing and ranker into one
pipeline. `GridSearchCV` then tunes both together. The example tests the pipeline on later searches,
and uses a saved file to rank the hotels of a new search.
"""


# %%
# Simulate the log
# ----------------
#
# The log has one row for each hotel that was shown. Searches are in the order of time.

import numpy as np
import pandas as pd


def simulate_log(n_searches, seed):
    """Return one row for each hotel shown, with 0 if ignored, 1 if opened, 2 if booked."""
    rng = np.random.default_rng(seed)
    search = np.repeat(np.arange(n_searches), rng.integers(6, 26, n_searches))
    n = len(search)
    level = rng.normal(4.6, 0.5, n_searches)[search]  # some cities are expensive
    stars = rng.integers(1, 6, n)
    kinds = np.array(["hotel", "hostel", "flat", "resort"])
    kind = rng.choice(4, n, p=[0.5, 0.15, 0.25, 0.1])
    review = np.clip(rng.normal(6.4 + 0.4 * stars, 1.0), 1, 10)
    distance = rng.exponential(3.0, n)
    dearness = rng.normal(0.25 * (stars - 3), 0.35)
    liking = 0.8 * (review - 8) - 1.6 * dearness + 0.25 * stars - 0.5 * np.sqrt(distance)
    liking += np.array([0.0, -0.6, 0.3, 0.1])[kind]
    seen = liking + rng.logistic(scale=0.5, size=n)
    frame = pd.DataFrame(
        {
            "search_id": search,
            "price": np.exp(level + dearness).round(),
            "stars": np.where(kind == 2, np.nan, stars),  # flats have no stars
            "review": np.where(rng.random(n) < 0.15, np.nan, review.round(1)),
            "distance_km": distance.round(1),
            "kind": pd.Categorical(kinds[kind]),
        }
    )
    return frame, (seen > 0.6).astype(int) + (seen > 1.8)


log, outcome = simulate_log(500, seed=0)
print(log.head().to_string())
print(log.dtypes.to_string())
print(f"missing: {log.isna().mean().round(2).to_dict()}")
print("ignored, opened, booked:", np.bincount(outcome))

# %%
# Build the pipeline
# ------------------
#
# Two columns have missing values, and one is a category. The boosted trees of the ranker accept
# both. Only the price is transformed: the ranker adds columns with the differences between a hotel
# and the other hotels of its search, but for prices, ratios say more than differences. The
# logarithm turns ratios into differences.
#
# The search ids stay in the frame, and ``group_column`` tells the ranker where they are.
# `ColumnTransformer` passes them through under the same name, because its output is a pandas frame
# without prefixes. Any part of the frame, such as a fold of a cross-validation, then has the right
# ids.

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.losses import NDCG

log_price = FunctionTransformer(np.log, feature_names_out="one-to-one")
preprocessing = ColumnTransformer(
    [("log", log_price, ["price"])], remainder="passthrough", verbose_feature_names_out=False
).set_output(transform="pandas")
ranker = CalibratedRanker("boosting", loss=NDCG(), group_column="search_id")
pipeline = Pipeline([("preprocessing", preprocessing), ("ranker", ranker)])

# %%
# Tune the pipeline
# -----------------
#
# The last quarter of the searches is held out for the test. On the rest, `GridSearchCV` decides how
# many places count in the loss (all or the first five) and whether the ranker adds columns that
# compare hotels. `QueryKFold` keeps the rows of a search together. The scorer judges all settings
# by NDCG@5. Without ``scoring=``, each setting would be judged by its own loss.

from sklearn.model_selection import GridSearchCV

from sklearn_rankcal import QueryKFold
from sklearn_rankcal.metrics import get_ranking_scorer

is_early = log["search_id"] < 375
train, y_train = log[is_early], outcome[is_early]
test, y_test = log[~is_early], outcome[~is_early]

grid = {
    "ranker__loss__k": [None, 5],
    "ranker__context": [None, "auto"],
}
folds = QueryKFold(3, shuffle=True, random_state=0)
search = GridSearchCV(pipeline, grid, scoring=get_ranking_scorer("ndcg@5"), cv=folds)
search.fit(train, y_train, groups=train["search_id"])

table = pd.DataFrame(search.cv_results_["params"], dtype=object).fillna("None")
table.columns = table.columns.str.removeprefix("ranker__")
table["NDCG@5"] = search.cv_results_["mean_test_score"].round(4)
print(table.sort_values("NDCG@5", ascending=False).to_string(index=False))

# %%
# Compare with simple orders
# --------------------------
#
# Columns that compare the hotels of a search matter here. The number of places in the loss hardly
# matters.
#
# `GridSearchCV` has fitted the best pipeline again, to all early searches. On the later searches we
# compare it with two orders that need no training: best reviews first, and lowest prices first.
# `MetricAtKDisplay` finds the searches in the frame, as the pipeline does.

import matplotlib.pyplot as plt

from sklearn_rankcal.plotting import MetricAtKDisplay

best = search.best_estimator_
searches = test["search_id"]
by_review, by_price = test["review"].fillna(0), -test["price"]

figure, ax = plt.subplots(figsize=(5.2, 4), layout="constrained")
MetricAtKDisplay.from_estimator(best, test, y_test, ax=ax, name="pipeline")
for name, scores in {"best reviews first": by_review, "lowest prices first": by_price}.items():
    MetricAtKDisplay.from_predictions(y_test, scores, groups=searches, ax=ax, name=name)
ax.set(title="NDCG of the first k hotels of 125 later searches")
plt.show()

# %%
# See which columns matter
# ------------------------
#
# `permutation_importance` shuffles a column among the hotels of each search, and measures by how
# much NDCG@5 falls. It shuffles the columns of the frame, before the preprocessing. The pipeline
# depends most on the reviews.

from sklearn_rankcal.inspection import permutation_importance

columns = test.columns.drop("search_id")
options = {"groups": searches, "metric": "ndcg@5", "random_state": 0}
found = permutation_importance(best, test, y_test, **options)
importance = pd.Series(found.importances_mean, found.feature_names)[columns].sort_values()

figure, ax = plt.subplots(figsize=(5.2, 3), layout="constrained")
ax.barh(importance.index, importance)
ax.set_xlabel("loss of NDCG@5 if it is shuffled")
figure.suptitle("How much the ranking depends on each column")
plt.show()

# %%
# Save and load the pipeline
# --------------------------
#
# The service that ranks new searches loads a saved pipeline. Load such files only from people you
# trust, and with the package versions that wrote them. The loaded pipeline returns the same ranks.

import tempfile
from pathlib import Path

import joblib

with tempfile.TemporaryDirectory() as folder:
    joblib.dump(best, Path(folder, "hotels.joblib"))
    loaded = joblib.load(Path(folder, "hotels.joblib"))
print("same ranks:", np.array_equal(loaded.predict(test), best.predict(test)))

# %%
# Rank a new search
# -----------------
#
# A new search has no outcome yet. `predict` returns the position of each hotel, where 1 is the top.

new, _ = simulate_log(1, seed=7)
new["search_id"] = 500
new.insert(0, "position", loaded.predict(new))
print(new.sort_values("position").head(8).to_string(index=False))
