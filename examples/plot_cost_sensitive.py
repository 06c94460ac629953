"""
Classify when errors have different costs
=========================================

Some errors cost more than others, and sometimes asking a person is cheaper than guessing.
`LowRankClassifier` predicts the answer with the lowest expected cost. On digits it is cheaper than
a classifier that ignores the costs, and than the usual recipe of multiplying predicted
probabilities by the cost matrix. It also handles a thousand classes if the cost matrix has a low
rank.
"""


# %%
# Three cost matrices for digits
# ------------------------------
#
# * *missing a nine*: missing a nine costs 10, any other error costs 1.
# * *asking*: an error costs 1, and asking a person costs 0.2.
# * *confusions and asking*: each confusion has its own cost, and asking a person costs 0.5.
#
# All methods use the same kind of trees.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import ShuffleSplit

from sklearn_rankcal import LowRankClassifier
from sklearn_rankcal.cost_sensitive import LowRankLoss

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
misses = 1 - np.eye(10)
misses[9, :9] = 10
confusions = rng.integers(1, 10, size=(10, 10)) * (1 - np.eye(10))
problems = {
    "missing a nine": misses,
    "asking": np.c_[1 - np.eye(10), np.full(10, 0.2)],
    "confusions and asking": np.c_[confusions, np.full(10, 0.5)],
}
trees, forest = ExtraTreesRegressor(50, random_state=0), ExtraTreesClassifier(50, random_state=0)

costs = {}
splits = ShuffleSplit(3, train_size=600, random_state=0)
for train, test in splits.split(X):
    known, hidden = (X[train], y[train]), y[test]
    most_probable = LowRankClassifier(trees).fit(*known).predict(X[test])
    probability = forest.fit(*known).predict_proba(X[test])
    calibrated = CalibratedClassifierCV(forest, cv=5).fit(*known).predict_proba(X[test])
    for problem, L in problems.items():
        options = {"loss_matrix": L, "targets": range(L.shape[1])}
        bare = LowRankClassifier(trees, n_folds=None, **options).fit(*known)
        clf = LowRankClassifier(trees, **options).fit(*known)
        for name, predicted in {
            "most probable class": most_probable,
            "predict_proba @ costs": (probability @ L).argmin(axis=1),
            "the same, CalibratedClassifierCV": (calibrated @ L).argmin(axis=1),
            "LowRankClassifier(n_folds=None)": bare.predict(X[test]),
            "LowRankClassifier()": clf.predict(X[test]),
        }.items():
            costs.setdefault((problem, name), []).append(L[hidden, predicted])

# %%
# Compare the costs
# -----------------
#
# All methods predict the same held-out digits, so the cost differences are paired. With 600
# training digits, least squares is too cautious, as are the probabilities predicted by the trees.
# Multiplying cautious probabilities by the costs is worse than ignoring the costs. By default,
# `LowRankClassifier` corrects this with a logistic regression on held-out predictions, and reaches
# the lowest mean cost.

names = list(dict.fromkeys(name for _, name in costs))
figure, panels = plt.subplots(1, 3, figsize=(7.6, 2.6), sharey=True, layout="constrained")
for axes, problem in zip(panels, problems, strict=True):
    ours = np.array(costs[problem, names[-1]])
    print(f"\n{problem}: mean cost, and difference to LowRankClassifier() +- its standard error")
    for place, name in enumerate(names):
        values = np.array(costs[problem, name])
        difference = (values - ours).mean(axis=1)  # of each split
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        print(f"  {name:34} {values.mean():.4f}  {difference.mean():+.4f} +- {error:.4f}")
        axes.barh(place, values.mean(), color="tab:blue" if name == names[-1] else "0.75")
    axes.set(title=problem.replace(" and ", "\nand "), xlabel="mean cost")
panels[0].set_yticks(range(len(names)), names)
panels[0].invert_yaxis()

# %%
# A thousand classes
# ------------------
#
# Each of a thousand classes is a point in four dimensions. Confusing two classes costs the squared
# distance between their points. Such a cost matrix has rank at most 6, and its factors are known.
# `LowRankLoss` takes them. It keeps the squared length of the true point in `c`, because no
# prediction changes it. The regressor then has five outputs instead of a thousand.

n_classes, n_samples = 1000, 10_000
place = rng.normal(size=(n_classes, 4))
square = (place**2).sum(axis=1)
alpha = np.c_[-2 * place, np.ones(n_classes)]  # ||a - b||^2 = |a|^2 - 2 <a, b> + |b|^2
beta = np.c_[place, square]
y = rng.integers(n_classes, size=n_samples)
X = np.c_[place[y], np.zeros((n_samples, 16))] + 0.5 * rng.normal(size=(n_samples, 20))
train, test = slice(0, 8000), slice(8000, None)
print()
for name, loss in {"0-1 loss": None, "rank 5": LowRankLoss(alpha, beta, c=square)}.items():
    started = time.perf_counter()
    clf = LowRankClassifier(Ridge(), loss_matrix=loss, classes=range(n_classes))
    clf.fit(X[train], y[train])
    fitted = time.perf_counter()
    predicted = clf.predict(X[test])
    done = time.perf_counter()
    apart = ((place[predicted] - place[y[test]]) ** 2).sum(axis=1)
    print(
        f"{name:8}  {clf.loss_.shape[0]} classes, {len(clf.regressor_.coef_)} outputs: "
        f"{8 * clf.regressor_.coef_.shape[0] * len(X[train]) / 2**20:.1f} MiB of targets, fit "
        f"{fitted - started:.2f} s, predict {done - fitted:.2f} s, mean square distance "
        f"{apart.mean():.2f}, accuracy {np.mean(predicted == y[test]):.3f}"
    )
plt.show()
