"""Kendall's tau on the label ranking benchmark: regressors and decoders, ten-fold, repeated.

A regressor is fitted once for each fold, and its predictions are decoded by every decoder. The
parts of the default (trees, kernel ridge regressions, logistic regression) are measured as the
default fitted them. "whole cyclic part" is the default with `cyclic_weight_` set to 1. "tuned
trees" are extra trees chosen by a grid search inside each training fold. "against default" is the
mean difference on the same folds, with half its 95 % interval over these folds. The folds of
different repeats share rows: the true interval is somewhat wider. The data sets come from Cheng et
al. (2009). The folder has csv.gz files with features A1, A2, ... and ranks L1, L2, ...

    python examples/benchmarks/bench_label_ranking.py --tuned-folds 10
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _harness import half_interval, print_table
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, RepeatedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import CalibratedLabelRanker
from sklearn_rankcal.decoders import decode_preferences

SETS = ["iris", "wine", "glass", "vowel", "housing", "stock", "cpu", "calhousing"]
# In the order of the weights of the default.
PARTS = ["its trees", "its Gaussian ridge", "its Laplacian ridge", "its logistic regression"]
DECODERS = ["auto", "greedy_dag", "borda"]
GRID = {"regressor__max_features": [0.3, 0.6, 1.0], "regressor__min_samples_leaf": [1, 3]}


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(path, "rt") as lines:
        header = lines.readline().strip().split(",")
        table = np.loadtxt(lines, delimiter=",")
    is_label = np.array([column.startswith("L") for column in header])
    return table[:, ~is_label], table[:, is_label]


def taus(ranks: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Kendall's tau of complete rankings, row by row."""
    i, j = np.triu_indices(Y.shape[1], 1)
    return (np.sign(ranks[:, i] - ranks[:, j]) * np.sign(Y[:, i] - Y[:, j])).mean(axis=1)


def predicted(
    X: np.ndarray, Y: np.ndarray, new: np.ndarray, tune: bool
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of each regressor and the preferences that it predicts."""
    default = CalibratedLabelRanker(random_state=0).fit(X, Y)
    yield "default", default.predict_preferences(new)
    default.cyclic_weight_ = 1.0
    yield "whole cyclic part", default.predict_preferences(new)
    # A part alone is the average in which it has all of the weight.
    for name, weights in zip(PARTS, np.eye(len(PARTS)), strict=True):
        default.regressor_.weights_ = weights
        yield name, default.predict_preferences(new)
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))
    yield "ridge", CalibratedLabelRanker(ridge).fit(X, Y).predict_preferences(new)
    if tune:
        trees = CalibratedLabelRanker(ExtraTreesRegressor(100), random_state=0)
        yield (
            "tuned trees",
            GridSearchCV(trees, GRID, cv=3).fit(X, Y).best_estimator_.predict_preferences(new),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tuned-folds", type=int, help="tune in the first folds only")
    parser.add_argument(
        "--folder", type=Path, default=Path(__file__).parents[3] / "shared/data/label_ranking"
    )
    args = parser.parse_args()
    for name in args.sets:
        X, Y = read(args.folder / f"{name}.csv.gz")
        folds = RepeatedKFold(n_splits=10, n_repeats=args.repeats, random_state=1234)
        found: dict[str, list[list[float]]] = {}
        for number, (train, test) in enumerate(folds.split(X)):
            tune = args.tuned_folds is None or number < args.tuned_folds
            for regressor, differences in predicted(X[train], Y[train], X[test], tune):
                found.setdefault(regressor, []).append(
                    [
                        taus(decode_preferences(differences, method).ranks, Y[test]).mean()
                        for method in DECODERS
                    ]
                )
        default = np.array(found["default"])
        rows = []
        for regressor, values in found.items():
            against = np.subtract(values, default[: len(values)])[:, 0]  # on the same folds
            spread = half_interval(against)
            means = (f"{mean:.4f}" for mean in np.mean(values, axis=0))
            rows.append(
                [regressor, *means, f"{against.mean():+.4f} ± {spread:.4f}", str(len(values))]
            )
        print_table(
            f"{name}: {len(Y)} rows, {X.shape[1]} columns, {Y.shape[1]} labels",
            ["regressor", *DECODERS, "against default", "folds"],
            rows,
        )


if __name__ == "__main__":
    main()
