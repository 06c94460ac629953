"""Effect of early stopping on validation queries: MQ2008, five LETOR folds.

Each regressor is fitted with 100 trees, with 1,000 trees, and with at most 1,000 trees and early
stopping. The validation queries are a fifth of the training queries, averaged over several random
seeds; or the validation part of the collection (fold 1: train S1 S2 S3, validation S4, test S5).
"Refitted" means that a fifth of the queries determines the number of trees, and that the regressor
is then fitted to all training queries with this number. NDCG@10 is averaged over the test queries
with a relevant document. Differences to 100 trees have 95 % intervals of a paired bootstrap over
queries. The seconds of `fit` are medians over the folds.

A second table is about the default regressor on generated data with 200 to 5,000 training queries
and 1,000 test queries.

A third table (``--few``) is about 10 to 500 validation queries in worlds of `_worlds`. It has the
NDCG@10 on 400 test queries if training continues while the measure or the error of the targets
improves, minus the NDCG@10 if it continues only while the measure improves. The validation queries
are parts of 500 queries.

    python examples/benchmarks/bench_validation.py --data ../shared/data
    python examples/benchmarks/bench_validation.py --few
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _harness import difference, print_table, values_of_queries
from _harness import interval as centered
from _worlds import WORLDS, Data, matches
from bench_mq2008 import FILES, N_FEATURES, N_FOLDS, REPOSITORY, interval, n_threads, read_folds
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils import Bunch

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.datasets import load_letor, make_ranking
from sklearn_rankcal.models import default_regressor
from sklearn_rankcal.models._model import Validation
from sklearn_rankcal.queries import Queries

HUNDRED, THOUSAND = "100 trees", "1,000 trees"
SHARE, REFITTED, PART = "a fifth held out", "a fifth, refitted", "validation part"
N_POOL, N_TEST = 500, 400
#: Worlds, and how many of their queries train.
FEW = {"80 queries": 80, "noisy labels": 450, "measurements": 510}
MATCHES = ("category", "price", "taste")
COLUMNS = ["trees", "NDCG@10", "against 100 trees", "mean number of trees", "seconds"]


def make_regressors(n_rows: int) -> dict[str, tuple[Any, str]]:
    """Name to a regressor and the name of its number of trees."""
    large = HistGradientBoostingRegressor(early_stopping=False)  # 31 leaves, learning rate 0.1
    regressors: dict[str, tuple[Any, str]] = {
        "default regressor": (default_regressor(n_rows), "max_iter"),
        "scikit-learn's own settings": (large, "max_iter"),
    }
    if find_spec("lightgbm") is None:
        print("LightGBM is not installed and is skipped.")
    else:
        from lightgbm import LGBMRegressor

        lightgbm = LGBMRegressor(verbose=-1, n_jobs=n_threads())
        regressors["LightGBM's own settings"] = (lightgbm, "n_estimators")
    return regressors


def track(
    regressor: Any, size: str, how: str, train: Bunch, validation: Bunch, test: Bunch, n_seeds: int
) -> tuple[np.ndarray, float, float]:
    """NDCG@10 of each test query, mean number of trees, mean seconds of `fit`."""
    n_trees = 100 if how == HUNDRED else 1000
    regressor = clone(regressor).set_params(**{size: n_trees})
    passed = {}
    if how == PART:
        passed = {"X_val": validation.X, "y_val": validation.y, "groups_val": validation.groups}
    values, trees, seconds = [], [], []
    for seed in range(n_seeds if how in (SHARE, REFITTED) else 1):
        share = 0.2 if how in (SHARE, REFITTED) else None
        ranker = CalibratedRanker(regressor, validation_queries=share, random_state=seed)
        started = time.perf_counter()
        ranker.fit(train.X, train.y, groups=train.groups, **passed)
        used = getattr(ranker, "n_iter_", n_trees)
        if how == REFITTED:
            regressor.set_params(**{size: used})
            ranker = CalibratedRanker(regressor, random_state=seed)
            ranker.fit(train.X, train.y, groups=train.groups)
            regressor.set_params(**{size: n_trees})
        seconds.append(time.perf_counter() - started)
        scores = ranker.decision_function(test.X, groups=test.groups)
        values.append(values_of_queries("ndcg@10", test.y, scores, test.groups))
        trees.append(used)
    return np.mean(values, axis=0), float(np.mean(trees)), float(np.mean(seconds))


def track_generated(n_seeds: int) -> list[list[str]]:
    """The rows of the table of generated data."""
    rows = []
    for n_queries in (200, 1000, 5000):
        data = make_ranking(n_queries + 1000, (10, 30), 10, random_state=1)
        part = data.groups < n_queries
        train, test = (
            Bunch(X=data.X[own], y=data.y[own], groups=data.groups[own]) for own in (part, ~part)
        )
        regressor = default_regressor(len(train.y))
        base = np.zeros(0)
        for how in (HUNDRED, SHARE, REFITTED):
            result = track(regressor, "max_iter", how, train, Bunch(), test, n_seeds)
            values, trees, seconds = result
            base = values if how == HUNDRED else base
            against = "" if how == HUNDRED else interval(values, base)
            value = f"{np.nanmean(values):.4f}"
            rows.append([str(n_queries), how, value, against, f"{trees:.0f}", f"{seconds:.2f}"])
    return rows


def make_few(name: str, seed: int) -> tuple[Bunch, Bunch, Bunch]:
    """Training queries, queries to draw validation queries from, and test queries."""
    if name in MATCHES:
        n_train, make = 600, partial(matches, n_documents=16, kind=name)
    else:
        n_train, make = FEW[name], WORLDS[name].make
    data: Data = partial(make, n_queries=n_train + N_POOL + N_TEST)(seed)
    X, y, groups = data
    parts = np.digitize(groups, [n_train, n_train + N_POOL])
    train, pool, test = (
        Bunch(X=X[parts == k], y=y[parts == k], groups=groups[parts == k]) for k in range(3)
    )
    return train, pool, test


def curves(train: Bunch, pool: Bunch, test: Bunch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """NDCG@10 and minus the squared error of each query after each of 1,000 trees, and scores.

    The first two are about the queries of the pool, and the scores about the test rows.
    """
    ranker = CalibratedRanker(default_regressor(len(train.y), stops_early=True), loss="ndcg@10")
    model = ranker.fit(train.X, train.y, groups=train.groups).model_
    queries, others = Queries.from_groups(pool.groups), Queries.from_groups(test.groups)
    targets = queries.center(ranker.loss_.training_targets(pool.y, queries))
    tables = [model._table(pool.X, queries)[0], model._table(test.X, others)[0]]
    measures, errors, scores = [], [], []
    for found, tested in zip(*map(model.regressor_.staged_predict, tables), strict=True):
        u = model._scaled_back(found)
        measures.append(values_of_queries("ndcg@10", pool.y, u, pool.groups))
        errors.append(-queries.mean((queries.center(u) - targets) ** 2))
        scores.append(tested)
    return np.array(measures), np.array(errors), np.array(scores)


def track_few(n_draws: int) -> list[list[str]]:
    """The rows of the table of few validation queries."""
    rows: dict[int, list[list[str]]] = {10: [], 30: [], 100: [], 500: []}
    for name in (*FEW, *MATCHES):
        found: dict[tuple[int, bool, int], list[np.ndarray]] = {}
        trees: dict[tuple[int, bool], list[int]] = {}
        for draw in range(n_draws):
            train, pool, test = make_few(name, 50 + draw)
            measures, errors, scores = curves(train, pool, test)
            defined = np.flatnonzero(~np.isnan(measures[0]))
            drawn = np.random.default_rng(draw).permutation(defined)
            values: dict[int, np.ndarray] = {}
            for n in rows:
                for own in np.split(drawn, range(n, len(drawn), n))[
                    : max(1, min(20, len(drawn) // n))
                ]:
                    for steady in (False, True):
                        kept = stopped(
                            measures[:, own].mean(axis=1), errors[:, own].mean(axis=1), steady
                        )
                        if kept not in values:
                            u = scores[kept - 1]
                            values[kept] = values_of_queries("ndcg@10", test.y, u, test.groups)
                        trees.setdefault((n, steady), []).append(kept)
                        found.setdefault((n, steady, draw), []).append(values[kept])
        for n, table in rows.items():
            new, old = (
                np.concatenate([np.mean(found[n, steady, draw], axis=0) for draw in range(n_draws)])
                for steady in (True, False)
            )
            change = centered(*difference(new, old))
            means = [f"{np.mean(trees[n, steady]):.0f}" for steady in (False, True)]
            table.append([f"{n}, {name}", f"{np.nanmean(old):.4f}", change, *means])
    return [row for table in rows.values() for row in table]


def stopped(measure: Any, steady: Any, by_both: bool) -> int:
    """The number of trees that are kept."""
    validation = Validation(
        None, measure.__getitem__, 50, steady=steady.__getitem__ if by_both else None
    )
    for place in range(len(measure)):
        validation.record(place)
        if validation.stops:
            break
    return validation.n_iter


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=REPOSITORY / ".." / "shared" / "data")
    parser.add_argument("--folds", type=int, choices=range(1, N_FOLDS + 1), default=N_FOLDS)
    parser.add_argument("--seeds", type=int, default=3, help="draws of a fifth (default: 3)")
    parser.add_argument("--few", action="store_true", help="only few validation queries")
    parser.add_argument("--draws", type=int, default=4, help="draws of each world (default: 4)")
    arguments = parser.parse_args()
    if arguments.few:
        print_table(
            f"NDCG@10, {arguments.draws} draws (* does not hold 0)",
            ["validation queries, world", "by the measure", "by both", "trees", "trees by both"],
            track_few(arguments.draws),
        )
        return
    print_table(
        f"NDCG@10, generated data, {n_threads()} threads (* does not hold 0)",
        ["training queries", *COLUMNS],
        track_generated(arguments.seeds),
    )
    folder = arguments.data / "letor" / "mq2008"
    if not all((folder / name).is_file() for name in FILES):
        print(
            f"No MQ2008 ({FILES[0]} .. {FILES[-1]}) in {folder}: nothing measured. Point --data "
            "at the folder that holds letor/mq2008."
        )
        return
    folds = read_folds(folder, arguments.folds)
    rows = []
    for name, (regressor, size) in make_regressors(len(folds[0][0].y)).items():
        results: dict[str, list[tuple[np.ndarray, float, float]]] = {}
        for number, (train, test) in enumerate(folds):
            validation = load_letor(folder / FILES[(number + 3) % N_FOLDS], n_features=N_FEATURES)
            for how in (HUNDRED, THOUSAND, SHARE, REFITTED, PART):
                result = track(regressor, size, how, train, validation, test, arguments.seeds)
                results.setdefault(how, []).append(result)
        base = np.concatenate([values for values, _, _ in results[HUNDRED]])
        for how, of_folds in results.items():
            values = np.concatenate([values for values, _, _ in of_folds])
            rows.append(
                [
                    name,
                    how,
                    f"{np.nanmean(values):.4f}",
                    "" if how == HUNDRED else interval(values, base),
                    f"{np.mean([trees for _, trees, _ in of_folds]):.0f}",
                    f"{median(seconds for _, _, seconds in of_folds):.2f}",
                ]
            )
    print_table(
        f"NDCG@10, {arguments.folds} folds, {n_threads()} threads (* does not hold 0)",
        ["regressor", *COLUMNS],
        rows,
    )


if __name__ == "__main__":
    main()
