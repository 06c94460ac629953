"""Kendall's tau on the label ranking benchmark, in ten-fold cross-validation, repeated.

The default `CalibratedLabelRanker`, decoded exactly and by Borda, and the same ranker around one
untuned forest, beside the best published figures known to us (Cheng et al. 2009, Zhou and Qiu 2016,
Korba et al. 2018; quoted from memory). --folder holds the sets as csv.gz: features A1.., ranks L1..

    python examples/benchmarks/bench_label_ranking.py --repeats 5 --sets iris wine glass
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np
from _harness import print_table
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import RepeatedKFold

from sklearn_rankcal import CalibratedLabelRanker
from sklearn_rankcal.decoders import Borda

PUBLISHED = {
    "iris": 0.97, "wine": 0.953, "glass": 0.89, "vowel": 0.92, "housing": 0.797, "stock": 0.927,
    "cpu": 0.515, "calhousing": 0.367,
}  # fmt: skip


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(path, "rt") as lines:
        header = lines.readline().strip().split(",")
        table = np.loadtxt(lines, delimiter=",")
    is_label = np.array([column.startswith("L") for column in header])
    return table[:, ~is_label], table[:, is_label]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--folder", type=Path, default=Path(__file__).parents[3] / "shared/data/label_ranking"
    )
    args = parser.parse_args()
    rankers = {
        "default": CalibratedLabelRanker(random_state=0),
        "forest": CalibratedLabelRanker(ExtraTreesRegressor(100), random_state=0),
    }
    rows = []
    for name in args.sets:
        X, Y = read(args.folder / f"{name}.csv.gz")
        folds = RepeatedKFold(n_splits=10, n_repeats=args.repeats, random_state=1234)
        taus: dict[str, list[float]] = {}
        for train, test in folds.split(X):
            for kind, ranker in rankers.items():
                fitted = clone(ranker).fit(X[train], Y[train])
                taus.setdefault(kind, []).append(fitted.score(X[test], Y[test]))
                fitted.decoder_ = Borda()
                taus.setdefault(f"{kind}, Borda", []).append(fitted.score(X[test], Y[test]))
        means = {kind: np.mean(values) for kind, values in taus.items()}
        rows.append([
            f"{name} ({Y.shape[1]} labels, {len(Y)} rows)", f"{PUBLISHED[name]:.3f}",
            *(f"{mean:.4f}" for mean in means.values()),
            f"{means['default'] - PUBLISHED[name]:+.4f}",
        ])
        print_table(f"{args.repeats} x 10 folds", ["set", "published", *means, "ahead"], rows[-1:])
    print_table(f"{args.repeats} x 10 folds", ["set", "published", *means, "ahead"], rows)


if __name__ == "__main__":
    main()
