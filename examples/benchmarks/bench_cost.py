"""What a fit of the default costs beside LightGBM's lambdarank, from 1,000 to 500,000 rows.

Generated collections of 20 documents per query: a sum of columns and a product, whose level differs
between queries. The peer stops early on one query in seven. Each fit runs in a process of its own.
Seconds are processor seconds of one thread, and seconds of the clock with all processors; memory is
what the process needs at most, less what it had before `fit`.

With ``--data``, the tables are MQ2008, choices and label rankings of that folder, where they exist;
the documents of a label ranking are the labels.

    python examples/benchmarks/bench_cost.py
    python examples/benchmarks/bench_cost.py --tables 20000x1500
    python examples/benchmarks/bench_cost.py --data ../shared/data
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _harness import print_table
from bench_stacking import read_all

SHAPES = "1000x20 4000x20 20000x20 20000x50 40000x50 100000x50 500000x30".split()


def draw(n_rows: int, n_columns: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    groups = np.arange(n_rows) // 20
    X = rng.normal(size=(n_rows, n_columns))
    utility = X[:, :8] @ rng.normal(size=8) + np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    utility += 2 * rng.normal(size=groups[-1] + 1)[groups] + 2 * rng.normal(size=n_rows)
    return X, np.searchsorted(np.quantile(utility, [0.6, 0.85, 0.95]), utility), groups


def read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read a folder of LETOR, choices or label rankings, with the rows in random order."""
    if path.is_dir():
        data = read_all(path)
        X, y, groups = data.X, data.y.astype(int), data.groups
    elif path.parent.name == "choices":
        table = pd.read_csv(path)
        if "alt" not in table:  # a row for each household, with two costs for each alternative
            chosen, kinds = table["depvar"], [c[3:] for c in table if c.startswith("ic.")]
            parts = [table[[f"ic.{kind}", f"oc.{kind}"]].to_numpy().tolist() for kind in kinds]
            X = np.array(parts, dtype=float).swapaxes(0, 1).reshape(-1, 2)
            X = np.column_stack([X, np.tile(np.eye(len(kinds)), (len(table), 1))])
            y = np.column_stack([chosen == kind for kind in kinds]).ravel().astype(int)
            groups = np.repeat(np.arange(len(table)), len(kinds))
        else:
            X = pd.get_dummies(table.drop(columns=["id", "choice"]), dtype=float).to_numpy()
            y, groups = table["choice"].to_numpy().astype(int), table["id"].to_numpy()
    else:
        table = pd.read_csv(path).head(800)
        columns = [[c for c in table if c[0] == kind] for kind in "AL"]
        features, ranks = (table[names].to_numpy(dtype=float) for names in columns)
        n, n_labels = ranks.shape
        groups = np.repeat(np.arange(n), n_labels)
        X = np.column_stack([features[groups], np.tile(np.eye(n_labels), (n, 1))])
        y = (n_labels - ranks).ravel().astype(int)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order], groups[order]


def fit(name: str, table: str, n_jobs: int, pipe: Any) -> None:
    warnings.simplefilter("ignore")
    path = Path(table)
    X, y, groups = read(path) if path.exists() else draw(*map(int, table.split("x")), seed=0)
    make = {"default": fit_default, "lambdarank": fit_lambdarank}[name]
    make(X[:400], y[:400], groups[:400], n_jobs)  # loads libraries
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock, processor = time.perf_counter(), time.process_time()
    make(X, y, groups, n_jobs)
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    pipe.send((time.process_time() - processor, time.perf_counter() - clock, more / 1024))


def fit_default(X: np.ndarray, y: np.ndarray, groups: np.ndarray, n_jobs: int) -> None:
    from sklearn_rankcal import CalibratedRanker

    CalibratedRanker(n_jobs=n_jobs).fit(X, y, groups=groups)


def fit_lambdarank(X: np.ndarray, y: np.ndarray, groups: np.ndarray, n_jobs: int) -> None:
    from lightgbm import LGBMRanker, early_stopping

    order = np.argsort(groups, kind="stable")
    X, y, groups = X[order], y[order], groups[order]
    held = np.random.default_rng(0).permutation(groups.max() + 1)[groups] % 7 == 0
    sizes = [np.unique(groups[part], return_counts=True)[1] for part in (~held, held)]
    model = LGBMRanker(
        n_estimators=1000, learning_rate=0.05, num_leaves=15, n_jobs=n_jobs, verbose=-1,
        random_state=0,
    )  # fmt: skip
    model.fit(
        X[~held], y[~held], group=sizes[0], eval_set=[(X[held], y[held])], eval_group=sizes[1:],
        eval_at=[10], callbacks=[early_stopping(50, verbose=False)],
    )  # fmt: skip


def measured(name: str, table: str, n_threads: int) -> tuple[float, float, float]:
    os.environ["OMP_NUM_THREADS"] = str(n_threads)  # a new process reads it
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=fit, args=(name, table, n_threads, sender))
    process.start()
    result: tuple[float, float, float] = receiver.recv()
    process.join()
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", nargs="+", default=SHAPES)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    tables = given.tables
    if given.data:
        found = [given.data / "letor" / "mq2008", *given.data.glob("choices/*.csv.gz")]
        found += sorted(given.data.glob("label_ranking/*.csv.gz"))
        tables = [str(path) for path in found if path.exists()]
    rows = []
    for table in tables:
        row = [Path(table).name]
        seconds = []
        for name in ("default", "lambdarank"):
            processor, _, memory = measured(name, table, 1)
            _, clock, _ = measured(name, table, os.cpu_count() or 1)
            seconds.append(processor)
            row += [f"{processor:.2f}", f"{clock:.2f}", f"{memory:,.0f}"]
        rows.append([*row, f"{seconds[0] / seconds[1]:.1f}"])
    parts = [f"{name}: {what}" for name in ("default", "peer") for what in ("s", "clock", "MiB")]
    print_table("Cost of a fit", ["table", *parts, "ratio"], rows)


if __name__ == "__main__":
    main()
