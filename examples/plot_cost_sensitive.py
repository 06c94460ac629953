"""
Costs of confusion, abstaining, and a thousand classes
======================================================

`LowRankClassifier` predicts the target of least expected cost. This example classifies digits under
three matrices of costs. In the first, missing a nine costs ten times as much as any other error. In
the second, a person can be asked at a cost of 0.2. In the third, each confusion has a cost of its
own, and a person can be asked at a cost of 0.5. The classifier is compared with one that does not
know the costs, and with the usual recipe, which multiplies predicted probabilities by the matrix of
costs. All of them use the same kind of trees.
"""

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
# The differences of the costs are paired, because every method predicts the same held-out digits.
# With 600 training digits, least squares is too cautious, and so are the probabilities of the
# trees. If cautious probabilities are multiplied by the costs, the predictions cost more than those
# of a classifier that ignores the costs. The logistic regression on held-out predictions, which
# `LowRankClassifier` uses by default, corrects this: its predictions have the lowest mean cost.

names = list(dict.fromkeys(name for _, name in costs))
figure, panels = plt.subplots(3, 1, figsize=(5.2, 6.6), layout="constrained")
for axes, problem in zip(panels, problems, strict=True):
    ours = np.array(costs[problem, names[-1]])
    print(f"\n{problem}: mean cost, and how much more than LowRankClassifier(), +- standard error")
    for place, name in enumerate(names):
        values = np.array(costs[problem, name])
        difference = (values - ours).mean(axis=1)  # of each split
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        print(f"  {name:34} {values.mean():.4f}  {difference.mean():+.4f} +- {error:.4f}")
        axes.barh(place, values.mean(), color=f"C{place}")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(title=problem, xlabel="mean cost")

# %%
# The second part has a thousand classes, each of which is a point in four dimensions. The cost of
# confusing two classes is the squared distance of their points. Such a matrix of costs has rank at
# most 6, and its factors are known. `LowRankLoss` keeps the squared length of the true point, which
# no prediction changes, in `c`, so only five outputs are regressed instead of a thousand.

n_classes, n_samples = 1000, 10_000
place = rng.normal(size=(n_classes, 4))
square = (place**2).sum(axis=1)
alpha = np.c_[-2 * place, np.ones(n_classes)]  # ||a - b||^2 = |a|^2 - 2 <a, b> + |b|^2
beta = np.c_[place, square]
y = rng.integers(n_classes, size=n_samples)
X = np.c_[place[y], np.zeros((n_samples, 16))] + 0.5 * rng.normal(size=(n_samples, 20))
train, test = slice(0, 8000), slice(8000, None)
print()
for name, loss in {"0-1 loss": None, "rank 5": LowRankLoss(alpha, beta, square)}.items():
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
