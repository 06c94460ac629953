"""The default label ranker against rivals that are tuned inside each training fold.

Every data set has ten folds. Every rival predicts the signs of all pairs of labels, with parameters
chosen by three folds of the training rows. With ``--missing`` a share of the training ranks is
removed at random; rivals treat the unknown pairs as ties, as usual. The value of a row is Kendall's
tau, and intervals of the differences are paired over rows. The data sets come from Cheng et al.
(2009); the folder has csv.gz files with features A1, A2, ... and ranks L1, L2, ... Sets called
``weak4``, ``weak6`` and so on are generated: 2,465 rows of 24 features and 4 or 6 labels, with
rankings that are mostly noise.

    python examples/benchmarks/bench_label_rivals.py --missing 0 0.3 0.6
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
from _harness import half_interval, print_table
from bench_label_ranking import read, taus
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import CalibratedLabelRanker
from sklearn_rankcal.datasets import make_label_ranking
from sklearn_rankcal.decoders import decode_preferences

WEAK_NOISE = 2.0  # Kendall's tau of the best ranking is then .33 for 4 labels
SETS = ["iris", "wine", "glass", "vowel", "housing", "stock"]


class PairwiseLogistic(RegressorMixin, BaseEstimator):
    """A logistic regression for each pair, on the rows that know it; predicts 2 p - 1."""

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, X: np.ndarray, Y: np.ndarray) -> PairwiseLogistic:
        self.models_ = []
        for column in Y.T:
            known = column != 0
            if len(set(column[known])) < 2:
                self.models_.append(float(column[known].mean()) if known.any() else 0.0)
            else:
                model = LogisticRegression(C=self.C, max_iter=500)
                self.models_.append(model.fit(X[known], column[known] > 0))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        columns = [
            np.full(len(X), model)
            if isinstance(model, float)
            else 2 * model.predict_proba(X)[:, 1] - 1
            for model in self.models_
        ]
        return np.column_stack(columns)


RIVALS: dict[str, tuple[Any, dict[str, list[Any]]]] = {
    "nearest neighbours": (KNeighborsRegressor(weights="distance"),
                           {"n_neighbors": [3, 5, 10, 20, 40]}),
    "pairwise logistic": (PairwiseLogistic(), {"C": [0.1, 1.0, 10.0, 100.0]}),
    "kernel ridge": (KernelRidge(kernel="rbf"),
                     {"alpha": [0.01, 0.1, 1.0], "gamma": [0.01, 0.03, 0.1, 0.3]}),
    "extra trees": (ExtraTreesRegressor(100, random_state=0),
                    {"max_features": [0.3, 0.6, 1.0], "min_samples_leaf": [1, 3]}),
    "boosting": (MultiOutputRegressor(HistGradientBoostingRegressor(max_iter=60)),
                 {"estimator__learning_rate": [0.05, 0.15]}),
    "perceptron": (MLPRegressor(max_iter=400, random_state=0),
                   {"alpha": [1e-3, 1e-1, 1.0], "hidden_layer_sizes": [(50,), (100,)]}),
}  # fmt: skip


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    if not name.startswith("weak"):
        return read(folder / f"{name}.csv.gz")
    made = make_label_ranking(2465, int(name[4:]), 24, noise=WEAK_NOISE, random_state=0)
    return made.X, made.Y


def pair_signs(Y: np.ndarray) -> np.ndarray:
    """1 if the first label of a pair is ranked above the second, -1 if below, 0 if unknown."""
    i, j = np.triu_indices(Y.shape[1], 1)
    return np.nan_to_num(np.sign(Y[:, j] - Y[:, i]))


def ranks_of(signs: np.ndarray, r: int) -> np.ndarray:
    i, j = np.triu_indices(r, 1)
    matrices = np.zeros((len(signs), r, r))
    matrices[:, i, j], matrices[:, j, i] = signs, -signs
    return np.array([decode_preferences((matrix + 1) / 2).ranks for matrix in matrices])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path(__file__).parents[3] / "shared" / "data" / "label_ranking"
    parser.add_argument("--data", type=Path, default=data, help="folder of the sets")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--missing", nargs="+", type=float, default=[0.0])
    parser.add_argument("--folds", type=int, default=10)
    arguments = parser.parse_args()
    if not arguments.data.is_dir() and not all(name.startswith("weak") for name in arguments.sets):
        print(f"No sets in {arguments.data}: nothing measured. Pass --data.")
        return
    rows = []
    for missing in arguments.missing:
        for name in arguments.sets:
            X, Y = load(arguments.data, name)
            values: dict[str, np.ndarray] = {}
            seconds: dict[str, float] = {}
            folds = KFold(arguments.folds, shuffle=True, random_state=0)
            for train, test in folds.split(X):
                hidden = np.random.default_rng(len(train)).random(Y[train].shape) < missing
                known = np.where(hidden, np.nan, Y[train])
                for method in ("default", *RIVALS):
                    started = time.process_time()
                    if method == "default":
                        ranker = CalibratedLabelRanker(random_state=0, n_jobs=1)
                        some = (~np.isnan(known)).sum(axis=1) > 0
                        found = ranker.fit(X[train][some], known[some]).predict(X[test])
                    else:
                        rival, grid = RIVALS[method]
                        step = type(rival).__name__.lower()
                        search = GridSearchCV(
                            make_pipeline(StandardScaler(), rival),
                            {f"{step}__{key}": options for key, options in grid.items()},
                            cv=KFold(3, shuffle=True, random_state=1),
                            scoring="neg_mean_squared_error",
                        ).fit(X[train], pair_signs(known))
                        found = ranks_of(search.predict(X[test]), Y.shape[1])
                    seconds[method] = seconds.get(method, 0.0) + time.process_time() - started
                    of_rows = values.setdefault(method, np.zeros(len(X)))
                    of_rows[test] = taus(np.asarray(found), Y[test])
            ours = values.pop("default")
            row = [name, f"{100 * missing:.0f} %", f"{ours.mean():.3f}"]
            for other in values.values():
                gap = ours - other
                half = half_interval(gap)
                mark = "*" if abs(gap.mean()) > half else " "
                row.append(f"{gap.mean():+.3f} +-{half:.3f}{mark}")
            rows.append(row)
            print(*row, " ".join(f"{one:.0f}" for one in seconds.values()), flush=True)
    print_table(
        "Kendall's tau of the default, and by how much it is larger than that of tuned rivals "
        "(* the 95 % interval over rows does not hold 0)",
        ["set", "missing", "default", *RIVALS],
        rows,
    )


if __name__ == "__main__":
    main()
