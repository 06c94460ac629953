"""The default and its stack against LightGBM's rankers with the same treatment, on small data.

The data are MQ2008 and the generated worlds of `_worlds.py`, divided as in `bench_distilled.py`.
The peers are tuned, averaged and stacked in the same way as `CalibratedRanker`: three folds of the
training queries choose the leaves, and whether to add z-scores inside the query, by the NDCG@10 of
lambdarank. The results are one model, the mean of five with different seeds, and a stack of
lambdarank, rank_xendcg and a forest. The stack has weights by non-negative least squares to the
gains, and averages the models of the folds. Costs are processor seconds of `fit` on one thread,
without the search of the peers.

    python examples/benchmarks/bench_peers.py --data ../shared/data
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
from _harness import Differences, print_table, values_of_queries
from bench_distilled import MADE, collections
from bench_mq2008 import REPOSITORY, sizes
from bench_stacking import LEAVES, calibrated, lightgbm, tables, take
from scipy.optimize import nnls
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.utils import Bunch

from sklearn_rankcal.queries import Queries

Setting = tuple[int, bool]  # leaves, and whether there are z-scores
Scores = tuple[np.ndarray, float]  # of the test rows, and the seconds of fit
REFERENCE = "CalibratedRanker()"


def centered(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Values minus the mean of their query."""
    return Queries.from_groups(groups).center(values)


def boosted(
    train: Bunch, test: Bunch, setting: Setting, objective: str = "lambdarank", seed: int = 0
) -> np.ndarray:
    X, X_test = tables(train, test, setting[1])
    model = lightgbm(objective, setting[0]).set_params(
        random_state=seed, subsample=0.8, subsample_freq=1, colsample_bytree=0.8
    )
    model.fit(X, train.y.astype(int), group=sizes(train.groups))
    return centered(model.predict(X_test), test.groups)


def forest(train: Bunch, test: Bunch, setting: Setting) -> np.ndarray:
    X, X_test = tables(train, test, setting[1])
    model = ExtraTreesRegressor(200, min_samples_leaf=5, max_features=0.3, random_state=0)
    return centered(model.fit(X, 2.0**train.y - 1).predict(X_test), test.groups)


MEMBERS: list[Callable[[Bunch, Bunch, Setting], np.ndarray]] = [
    boosted,
    lambda train, test, setting: boosted(train, test, setting, "rank_xendcg"),
    forest,
]


def peers(train: Bunch, test: Bunch) -> dict[str, Scores]:
    ids, code = np.unique(train.groups, return_inverse=True)
    part = (np.random.default_rng(0).permutation(len(ids)) % 3)[code]
    folds = [(part == k, take(train, part != k), take(train, part == k)) for k in range(3)]

    def quality(setting: Setting) -> float:
        out = np.empty(len(train.y))
        for held, inner, outer in folds:
            out[held] = boosted(inner, outer, setting)
        return float(np.nanmean(values_of_queries("ndcg@10", train.y, out, train.groups)))

    best = max(itertools.product(LEAVES, (False, True)), key=quality)
    started = time.process_time()
    single = [boosted(train, test, best)]
    seconds = [time.process_time() - started]
    single += [boosted(train, test, best, seed=seed) for seed in range(1, 5)]
    seconds.append(time.process_time() - started)
    started = time.process_time()
    out, of_test = np.empty((len(train.y), 3)), np.zeros((len(test.y), 3))
    for held, inner, outer in folds:
        both = Bunch(
            X=np.concatenate([outer.X, test.X]),
            groups=np.concatenate([outer.groups, test.groups + train.groups.max() + 1]),
        )
        for m, member in enumerate(MEMBERS):
            scores = member(inner, both, best)
            out[held, m] = scores[: len(outer.y)]
            of_test[:, m] += scores[len(outer.y) :]
    weights, _ = nnls(out, centered(2.0**train.y - 1, train.groups))
    return {
        "lambdarank, tuned": (single[0], seconds[0]),
        "five averaged": (np.mean(single, axis=0), seconds[1]),
        "peers stacked": (of_test @ weights, time.process_time() - started),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=REPOSITORY / ".." / "shared" / "data",
        help="folder that contains letor/mq2008/S1.txt.gz .. S5.txt.gz",
    )  # fmt: skip
    parser.add_argument("--shuffles", type=int, default=1, help="(default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the first world (default: 0)")
    parser.add_argument(
        "--worlds", nargs="+", choices=("MQ2008", *MADE), default=("MQ2008", *MADE),
        metavar="WORLD", help="the collections (default: all)",
    )  # fmt: skip
    arguments = parser.parse_args()
    shuffles = range(arguments.seed, arguments.seed + arguments.shuffles)
    rows, pooled, costs = [], {}, {}
    folder = arguments.data / "letor" / "mq2008"
    for collection, folds in collections(folder, shuffles, arguments.worlds):
        values: dict[str, dict[int, list[float]]] = {}
        seconds: dict[str, float] = {}
        for train, test in folds:
            found = {
                REFERENCE: calibrated(train, test),
                "'stacked'": calibrated(train, test, regressor="stacked"),
                **peers(train, test),
            }
            ids = Queries.from_groups(test.groups).ids.tolist()
            for name, (scores, took) in found.items():
                seconds[name] = seconds.get(name, 0.0) + took
                of_fold = values_of_queries("ndcg@10", test.y, scores, test.groups)
                for query, value in zip(ids, of_fold.tolist(), strict=True):
                    values.setdefault(name, {}).setdefault(query, []).append(value)
        means = {name: np.array([np.mean(v) for v in of.values()]) for name, of in values.items()}
        default = means.pop(REFERENCE)
        row = [collection, f"{np.nanmean(default):.4f}"]
        for name, others in means.items():
            row.append(pooled.setdefault(name, Differences()).add(default, others))
        for name, took in seconds.items():
            costs.setdefault(name, []).append(took / seconds["lambdarank, tuned"])
        rows.append(row)
        print(*row, flush=True)
    print_table(
        f"NDCG@10 of {REFERENCE}, and what it is ahead of others, with 95 % intervals",
        ["collection", "default", *(f"against {name}" for name in pooled)],
        [*rows, ["mean", "", *(found.mean() for found in pooled.values())]],
    )
    print("Median cost of fit, as a ratio to lambdarank:")
    print(*(f"{name} {np.median(found):.1f}" for name, found in costs.items()), sep=", ")


if __name__ == "__main__":
    main()
