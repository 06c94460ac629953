"""`DaskCalibratedRanker` against the Dask rankers of LightGBM and XGBoost: time, memory, NDCG@10.

    python examples/benchmarks/bench_dask.py --folder FOLDER
    python examples/benchmarks/bench_dask.py --folder FOLDER --documents 10000000
    python examples/benchmarks/bench_dask.py --folder FOLDER --documents 1000000 --costs

Data: parquet files in `--folder`, written by the script if missing. They have float64 columns,
whole queries in each file, and labels 0 to 4. The labels are a nonlinear function of eight columns,
plus noise. Then the first two fifths of the columns, including these eight, get a level and a
spread in each query that are not informative about the labels. The held-out queries are a tenth as
many as the training queries, in separate files.

Contenders: each is fitted on its own `LocalCluster`, with `--workers` processes of one thread each.
Seconds are wall seconds of `fit`, including reading the files. The peak is the largest resident
memory of all workers together, sampled every 20 milliseconds, minus the memory before `fit`, with
the libraries already imported. It is given in MB and as a share of the bytes of the training
columns. The peak of the client is the peak of the process that calls `fit`. Differences of NDCG@10
from DaskLGBMRanker are paired over the held-out queries.

The rankers of the libraries get the columns of X. With "+context" they also get the z-scores that
``context="auto"`` adds for our ranker. They need whole queries in each partition, which the files
have.

Costs: with `--costs`, the script instead prints the seconds of each stage for a million rows on one
thread, and the seconds, peak and number of tasks of passes over the data on the cluster.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import dask
import dask.dataframe as dd
import lightgbm
import numpy as np
import pandas as pd
import psutil
import xgboost
import xgboost.dask
from _harness import print_table, values_of_queries
from bench_mq2008 import interval
from distributed import Client, LocalCluster
from sklearn.linear_model import Ridge, SGDRegressor

from sklearn_rankcal import context_columns
from sklearn_rankcal.dask import DaskCalibratedRanker, group_queries
from sklearn_rankcal.dask._collections import Rows, add_labels, add_up, for_each, read_collections
from sklearn_rankcal.dask._training import Counts, TrainingPlan, documents, extremes
from sklearn_rankcal.models import BilinearPairs, PairwiseRidge, Training

QUERY, LABEL = "qid", "label"
LOSS = "ndcg@10"
SHARE_WITH_LEVELS = 0.4  # of the columns
QUANTILES = (0.5, 0.75, 0.9, 0.97)
PEER = "DaskLGBMRanker"
Scores = Callable[[pd.DataFrame], np.ndarray]


# -------------------------------------------------------------------- data


def make_part(number: int, arguments: argparse.Namespace, first_query: int) -> pd.DataFrame:
    """Return the documents of one file."""
    rng = np.random.default_rng((arguments.seed, number))
    n_queries = arguments.rows_per_file // arguments.per_query
    n_columns = arguments.features
    inside = rng.standard_normal((n_queries, arguments.per_query, n_columns))
    z = [inside[:, :, k].reshape(-1) for k in range(8)]
    relevance = np.tanh(2 * z[0]) + np.tanh(2 * z[1]) * z[2] + np.abs(z[3]) + 0.5 * z[4]
    relevance += np.minimum(z[5], z[6]) + 0.5 * z[7]
    relevance += rng.standard_normal(len(relevance)) * 1.5
    n_levels = int(SHARE_WITH_LEVELS * n_columns)
    inside[:, :, :n_levels] *= np.exp(0.5 * rng.standard_normal((n_queries, 1, n_levels)))
    inside[:, :, :n_levels] += rng.standard_normal((n_queries, 1, n_levels))
    frame = pd.DataFrame(inside.reshape(-1, n_columns), columns=feature_names(arguments))
    frame[QUERY] = np.repeat(first_query + np.arange(n_queries), arguments.per_query)
    frame[LABEL] = relevance
    return frame


def feature_names(arguments: argparse.Namespace) -> list[str]:
    return [f"x{number}" for number in range(arguments.features)]


def level_names(arguments: argparse.Namespace) -> list[str]:
    """Return the columns with levels, to which ``context="auto"`` adds z-scores."""
    return feature_names(arguments)[: int(SHARE_WITH_LEVELS * arguments.features)]


def write_data(arguments: argparse.Namespace) -> tuple[Path, Path]:
    """Write the files that are not there; return the folders for training and for the test."""
    per_file = arguments.rows_per_file // arguments.per_query
    n_files = max(1, arguments.documents // arguments.rows_per_file)
    settings = ("documents", "features", "per_query", "rows_per_file", "seed")
    folder = Path(arguments.folder) / "-".join(str(getattr(arguments, name)) for name in settings)
    edges = np.quantile(make_part(10**6, arguments, 0)[LABEL], QUANTILES)
    for name, numbers in (
        ("train", range(n_files)),
        ("test", range(n_files, n_files + -(-n_files // 10))),
    ):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in numbers:
            path = folder / name / f"part-{number:05d}.parquet"
            if path.exists():
                continue
            frame = make_part(number, arguments, number * per_file)
            frame[LABEL] = np.searchsorted(edges, frame[LABEL])
            frame.to_parquet(path.with_suffix(".tmp"), compression=None, index=False)
            path.with_suffix(".tmp").rename(path)
    return folder / "train", folder / "test"


def read_train(folder: Path) -> Any:
    return dd.read_parquet(folder, aggregate_files=False, split_row_groups=False)


def read_for_peers(folder: Path) -> Any:
    """Return a frame with series that keep its partitions.

    LightGBM pairs the partitions of X, labels and groups by number. But if few columns of parquet
    files are read, dask merges partitions.
    """
    frame = read_train(folder)
    parts = frame.simplify().to_delayed(optimize_graph=False)
    return dd.from_delayed(parts, meta=frame._meta, verify_meta=True)


# -------------------------------------------------------------------- cluster and memory


class Peak:
    """The largest resident bytes of some processes together."""

    def __init__(self, pids: list[int], seconds: float = 0.02) -> None:
        self.processes = [psutil.Process(pid) for pid in pids]
        self.seconds = seconds

    def now(self) -> int:
        try:
            return sum(process.memory_info().rss for process in self.processes)
        except psutil.NoSuchProcess:  # a worker that was killed has been replaced
            return 0

    def __enter__(self) -> Peak:
        self.before = self.peak = self.now()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._sample, daemon=True)
        self.thread.start()
        return self

    def _sample(self) -> None:
        while not self.done.wait(self.seconds):
            self.peak = max(self.peak, self.now())

    def __exit__(self, *error: Any) -> None:
        self.done.set()
        self.thread.join()

    @property
    def above(self) -> int:
        return max(self.peak - self.before, 0)


def import_libraries() -> int:
    """Import in a worker what any contender needs, and return its number."""
    for name in ("lightgbm.dask", "xgboost.dask", "pyarrow.parquet", "sklearn_rankcal.dask"):
        import_module(name)
    return os.getpid()


@contextmanager
def cluster(arguments: argparse.Namespace) -> Iterator[tuple[Client, list[int]]]:
    """Yield the client of a new cluster, and the process ids of its workers."""
    with (
        LocalCluster(
            n_workers=arguments.workers,
            threads_per_worker=1,
            memory_limit=arguments.memory_limit,
            dashboard_address=":0",
            local_directory=arguments.folder,
        ) as started,
        Client(started) as client,
    ):
        yield client, list(client.run(import_libraries).values())


# -------------------------------------------------------------------- contenders


def ours(regressor: Any, *, grouped: bool = False, **parameters: Any) -> Any:
    """Return a function that fits our ranker and returns one that scores pandas frames.

    If `grouped`, rows are moved although the files have whole queries, in each pass over the data.
    """

    def fit(folder: Path, arguments: argparse.Namespace) -> Scores:
        frame = read_train(folder)
        if grouped:
            frame = group_queries(frame, QUERY)
        ranker = DaskCalibratedRanker(
            regressor(arguments),
            group_column=QUERY,
            verbose=arguments.verbose,
            **{"loss": LOSS, **parameters},
        ).fit(frame.drop(columns=LABEL), frame[LABEL])
        local = ranker.ranker_
        return lambda test: -local.predict(test.drop(columns=LABEL)).astype(float)

    return fit


def boosting(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"n_estimators": arguments.trees, "learning_rate": 0.1, "n_jobs": 1, "random_state": 0}


def lightgbm_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    return {**boosting(arguments), "num_leaves": arguments.leaves, "verbose": -1}


def xgboost_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        **boosting(arguments),
        "max_leaves": arguments.leaves,
        "max_depth": 0,
        "grow_policy": "lossguide",
        "tree_method": "hist",
    }


def with_context(frame: pd.DataFrame, names: list[str], columns: list[str]) -> pd.DataFrame:
    """Return the columns of X and the z-scores of some of them."""
    table = context_columns(frame[columns], frame[QUERY], "zscore")
    return pd.concat([frame[names], table.drop(columns=columns)], axis=1)


def sizes_of(frame: pd.DataFrame) -> pd.Series:
    """Return the number of rows of each query of a partition, in the order of the rows."""
    return frame.groupby(QUERY, sort=False).size().reset_index(drop=True)


def peer(kind: str, context: bool) -> Any:
    """Return a function that fits a ranker of a library, like `ours`."""

    def fit(folder: Path, arguments: argparse.Namespace) -> Scores:
        names, columns = feature_names(arguments), level_names(arguments)

        def table(frame: pd.DataFrame) -> pd.DataFrame:
            return with_context(frame, names, columns) if context else frame[names]

        frame = read_for_peers(folder)
        X = frame.map_partitions(table) if context else frame[names]
        if kind == "lightgbm":
            ranker = lightgbm.DaskLGBMRanker(**lightgbm_parameters(arguments))
            group = frame.map_partitions(sizes_of, meta=pd.Series([], dtype=np.int64))
            ranker.fit(X, frame[LABEL], group=group)
            local = ranker.to_local()
        else:
            # True is right because no query is in two partitions. False, the default, would make
            # a partition of every query.
            ranker = xgboost.dask.DaskXGBRanker(
                objective="rank:ndcg", allow_group_split=True, **xgboost_parameters(arguments)
            )
            ranker.fit(X, frame[LABEL], qid=frame[QUERY])
            local = xgboost.XGBRanker()
            local.load_model(ranker.get_booster().save_raw())
        return lambda test: local.predict(table(test))

    return fit


CONTENDERS: dict[str, Callable[[Path, argparse.Namespace], Scores]] = {
    "Ridge": ours(lambda _: Ridge()),
    "Ridge, group_queries": ours(lambda _: Ridge(), grouped=True),
    "Ridge, context=None": ours(lambda _: Ridge(), context=None),
    "SGDRegressor": ours(lambda _: SGDRegressor(random_state=0, eta0=1e-3)),
    "PairwiseRidge, pd": ours(lambda _: PairwiseRidge(), loss="pd"),
    "BilinearPairs, pd": ours(lambda _: BilinearPairs(), loss="pd"),
    "DaskLGBMRegressor": ours(lambda a: lightgbm.DaskLGBMRegressor(**lightgbm_parameters(a))),
    "DaskXGBRegressor": ours(lambda a: xgboost.dask.DaskXGBRegressor(**xgboost_parameters(a))),
    "DaskLGBMRanker": peer("lightgbm", False),
    "DaskLGBMRanker+context": peer("lightgbm", True),
    "DaskXGBRanker": peer("xgboost", False),
    "DaskXGBRanker+context": peer("xgboost", True),
}


def compare(arguments: argparse.Namespace) -> None:
    """Fit the contenders one after another and print the table."""
    train, test_folder = write_data(arguments)
    n_bytes = 8 * arguments.documents * arguments.features
    found: dict[str, tuple[list[str], np.ndarray]] = {}
    for name in arguments.contenders:
        with cluster(arguments) as (_, pids), Peak(pids) as workers, Peak([os.getpid()]) as own:
            started = time.perf_counter()
            try:
                scores = CONTENDERS[name](train, arguments)
            except Exception as error:  # the remaining ones are still worth measuring
                print(f"{name} failed: {error!r}"[:2000], file=sys.stderr, flush=True)
                continue
            seconds = time.perf_counter() - started
        values = np.concatenate(
            [ndcg_of_file(path, scores) for path in sorted(test_folder.glob("*.parquet"))]
        )
        cells = [
            f"{seconds:.1f}",
            f"{workers.above / 1e6:.0f}",
            f"{workers.above / n_bytes:.2f}",
            f"{own.above / 1e6:.0f}",
            f"{np.nanmean(values):.4f}",
        ]
        found[name] = cells, values
        idle = f"idle {workers.before / 1e6:.0f} MB"
        print(
            f"{name}: {' '.join(cells)}; {idle}; load {os.getloadavg()[0]:.1f}",
            file=sys.stderr,
            flush=True,
        )
    base = next((values for name, (_, values) in found.items() if name.startswith(PEER)), None)
    print_table(
        f"{arguments.documents:,} x {arguments.features} documents ({n_bytes / 1e6:,.0f} MB) in "
        f"{arguments.documents // arguments.per_query:,} queries and "
        f"{arguments.documents // arguments.rows_per_file} files, {arguments.trees} trees of "
        f"{arguments.leaves} leaves; {arguments.workers} workers of one thread and "
        f"{arguments.memory_limit}; load of the machine {os.getloadavg()[0]:.1f}",
        ["contender", "fit, s", "peak, MB", "of data", "client, MB", "NDCG@10", f"- {PEER}"],
        [
            [name, *cells, "" if base is None or values is base else interval(values, base)]
            for name, (cells, values) in found.items()
        ],
    )


def ndcg_of_file(path: Path, scores: Scores) -> np.ndarray:
    test = pd.read_parquet(path)
    return values_of_queries("ndcg@10", test[LABEL], scores(test), test[QUERY])


# -------------------------------------------------------------------- costs


def report_costs(arguments: argparse.Namespace) -> None:
    """Print what the stages cost for a million rows, in this process and on workers."""
    train, _ = write_data(arguments)
    frame = read_train(train)
    X, y = frame.drop(columns=LABEL), frame[LABEL]
    ranker = DaskCalibratedRanker(Ridge(), loss=LOSS, group_column=QUERY)
    with dask.config.set(scheduler="synchronous"):
        ranker.fit(X, y)
        local = ranker.ranker_
        data = read_collections(X, QUERY)
        add_labels(data, y, None)
        labels = data.map(partial(documents, table=data.table), table=False)
        sums = add_up(for_each(partial(Counts.of, loss=local.loss_), labels)).sums
        plan = TrainingPlan(data.table, local.loss_, sums, None)
        report_stages(data, plan, local, arguments)
    report_cluster(train, arguments)


def report_stages(data: Any, plan: TrainingPlan, local: Any, arguments: argparse.Namespace) -> None:
    """Print seconds of the stages of a partition, in this process."""
    sgd = SGDRegressor(random_state=0, eta0=1e-3)

    def labels(part: Rows) -> None:
        every = documents(part._replace(given={}), plan.table)
        extremes(every, plan.loss)
        Counts.of(every, plan.loss)
        plan.largest(every, True)

    def rows(part: Rows) -> Training:
        read = plan.data(documents(part, plan.table))
        return replace(read, targets=plan.targets(read))

    def learn(part: Rows) -> None:
        table, targets, *_ = local.model_.read(rows(part))
        sgd.partial_fit(table, targets)

    stages: dict[str, Callable[[Rows], Any]] = {
        "reductions over labels": labels,
        "targets and context": lambda part: local.model_.read(rows(part)),
        "targets, context and moments": lambda part: local.model_.sums(rows(part)),
        "targets, context and partial_fit": learn,
        "predict": lambda part: local.predict(**part.given),
    }
    parts = data.map(lambda part: part)[: arguments.cost_parts]
    seconds: dict[str, list[float]] = {"read and check a partition": []}
    for delayed_part in parts:
        started = time.perf_counter()
        part = delayed_part.compute()
        n_rows = part.queries.n_rows
        seconds["read and check a partition"].append((time.perf_counter() - started) / n_rows)
        for name, stage in stages.items():
            started = time.perf_counter()
            stage(part)
            took = time.perf_counter() - started
            seconds.setdefault(name, []).append(took / n_rows)
    print_table(
        f"Stages for partitions of {arguments.rows_per_file:,} x {arguments.features} documents, "
        f"one thread, medians over {len(parts)} partitions; load of the machine "
        f"{os.getloadavg()[0]:.1f}",
        ["stage", "s per million rows"],
        [[name, f"{1e6 * median(values):.2f}"] for name, values in seconds.items()],
    )


def count_rows(part: Rows) -> int:
    """Return the number of rows of a partition."""
    return part.queries.n_rows


def count_tasks(dask_scheduler: Any) -> int:
    """Return how many tasks have been computed."""
    prefixes = dask_scheduler.task_prefixes.values()
    return sum(prefix.state_counts["memory"] for prefix in prefixes)


def report_cluster(train: Path, arguments: argparse.Namespace) -> None:
    """Print seconds of passes over the data on the workers, and the tasks of `fit`."""
    frame = read_train(train)
    grouped = group_queries(frame, QUERY)
    data, moved = (read_collections(each.drop(columns=LABEL), QUERY) for each in (frame, grouped))
    parts = {"read": data.map(count_rows), "read and group_queries": moved.map(count_rows)}
    n_documents = data.n_partitions * arguments.rows_per_file

    def numbers(seconds: float, peak: Peak, n_tasks: int) -> list[str]:
        per_partition = n_tasks / data.n_partitions
        per_million = 1e6 * seconds / n_documents
        return [f"{per_million:.2f}", f"{peak.above / 1e6:.0f}", f"{per_partition:.1f}"]

    rows = []
    for name, counted in parts.items():
        with cluster(arguments) as (client, pids), Peak(pids) as peak:
            started = time.perf_counter()
            dask.compute(*counted)
            took = time.perf_counter() - started
            n_tasks = client.run_on_scheduler(count_tasks)
        rows.append([name, *numbers(took, peak, n_tasks)])
    for name, each in (("fit of Ridge", frame), ("group_queries and fit of Ridge", grouped)):
        with cluster(arguments) as (client, pids), Peak(pids) as peak:
            ranker = DaskCalibratedRanker(Ridge(), loss=LOSS, group_column=QUERY)
            started = time.perf_counter()
            ranker.fit(each.drop(columns=LABEL), each[LABEL])
            took = time.perf_counter() - started
            n_tasks = client.run_on_scheduler(count_tasks)
        rows.append([name, *numbers(took, peak, n_tasks)])
    print_table(
        f"Passes over {n_documents:,} x {arguments.features} documents in {data.n_partitions} "
        f"files on {arguments.workers} workers; load of the machine {os.getloadavg()[0]:.1f}",
        ["pass", "wall s per million rows", "peak, MB", "tasks per partition"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", required=True, help="for the data and for spilled memory")
    parser.add_argument("--documents", type=int, default=200_000, help="(default: 200000)")
    parser.add_argument("--per-query", type=int, default=100, help="documents (default: 100)")
    parser.add_argument("--features", type=int, default=50, help="(default: 50)")
    parser.add_argument("--rows-per-file", type=int, default=50_000, help="(default: 50000)")
    parser.add_argument("--trees", type=int, default=100, help="(default: 100)")
    parser.add_argument("--leaves", type=int, default=31, help="(default: 31)")
    parser.add_argument("--workers", type=int, default=2, help="(default: 2)")
    parser.add_argument("--memory-limit", default="6GB", help="of each worker (default: 6GB)")
    parser.add_argument("--seed", type=int, default=0, help="of the data (default: 0)")
    parser.add_argument("--verbose", type=int, default=0, help="passed to our rankers")
    parser.add_argument("--costs", action="store_true", help="print the costs of stages instead")
    parser.add_argument("--cost-parts", type=int, default=8, help="partitions (default: 8)")
    parser.add_argument("--delete", action="store_true", help="delete the folder at the end")
    parser.add_argument(
        "--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), metavar="NAME",
        help=f"of {', '.join(map(repr, CONTENDERS))} (default: all)",
    )  # fmt: skip
    arguments = parser.parse_args()
    if arguments.costs:
        report_costs(arguments)
    else:
        compare(arguments)
    if arguments.delete:
        shutil.rmtree(arguments.folder)


if __name__ == "__main__":
    main()
