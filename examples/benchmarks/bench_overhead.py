"""Cost of the package on top of its regressor: seconds, memory, and grouping.

overhead
    One `CalibratedRanker.fit`, `predict` and `score` with gradient boosting. The regressor is a
    subclass that adds up the seconds of its own fit and predict INSIDE those calls. The remaining
    time (reading, targets, grouping, context, decoding, measure) is therefore exact, and not a
    difference of two noisy runs. It is given in percent of the regressor's own fit and one predict,
    of the same run. Seconds are processor seconds over all threads, which depend less on other work
    on the machine. With context columns, the regressor itself gets twice the columns and takes
    longer: a separate line has the ratio of its seconds.

    A virtual machine gets memory from its host at the first touch, and may return it a second or
    two after it was freed. For the table with context columns, this takes up to several seconds in
    any program. Therefore the same amount of memory is touched and freed before each fit, and these
    seconds are printed separately.
memory
    Peak resident memory (`resource.getrusage`) of fit, predict and score, each in its own process,
    minus the memory in use once the data were ready, in multiples of the bytes of X. It is measured
    for the regressor alone on X and centred labels, the ranker without context, and with its
    default context; for gradient boosting and for ridge regression.
groups
    `Queries.from_groups` on contiguous and shuffled ids, integers and strings, against
    `numpy.unique(ids, return_inverse=True)`.

Rows are float32 features of queries of 120 documents, which share a shift.

    python examples/benchmarks/bench_overhead.py --documents 1200000 --trees 100
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
from _harness import interleaved, print_table
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.utils import Bunch

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.models import default_regressor
from sklearn_rankcal.queries import Queries

QUERY_SIZE = 120
CHUNK = 1 << 14
PAGE = 1 << 12  # bytes; the smallest page of memory on most systems
PARTS = ("memory", "overhead", "groups")
CONTEXTS = {"context=None": None, "default context": "auto"}
WORKERS = ("regressor alone", "ranker, context=None", "ranker, default context")


def make_data(n_documents: int, n_features: int, shuffled: bool, seed: int = 0) -> Bunch:
    """Grades 0 to 4 that follow eight features; made in chunks, to add no peak of memory."""
    rng = np.random.default_rng(seed)
    n_queries = max(1, n_documents // QUERY_SIZE)
    groups = np.repeat(np.arange(n_queries), QUERY_SIZE)
    if shuffled:
        rng.shuffle(groups)
    shift = rng.random((n_queries, n_features), dtype=np.float32)
    X = np.empty((len(groups), n_features), dtype=np.float32)
    latent = np.empty(len(groups), dtype=np.float32)
    for rows in _slices(len(groups)):
        rng.random(out=X[rows], dtype=np.float32)
        latent[rows] = np.square(X[rows, :8]).sum(axis=1) + rng.random(rows.stop - rows.start)
        X[rows] += shift[groups[rows]]
    y = np.searchsorted(np.quantile(latent, [0.5, 0.75, 0.9, 0.97]), latent).astype(np.float64)
    return Bunch(X=X, y=y, groups=groups)


def _slices(n_rows: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK, n_rows)) for start in range(0, n_rows, CHUNK))


def make_regressor(arguments: argparse.Namespace, name: str = "hgb") -> Any:
    """The package's default regressor at the number of trees asked for, or ridge regression."""
    if name == "ridge":
        return Ridge()
    return default_regressor(arguments.documents).set_params(max_iter=arguments.trees)


# -------------------------------------------------------------------- seconds


class TimedBoosting(HistGradientBoostingRegressor):
    """Adds up the seconds of fit and of predict over all instances, since rankers clone it."""

    seconds = 0.0

    def fit(self, X: Any, y: Any) -> TimedBoosting:
        started = time.process_time()
        super().fit(X, y)
        TimedBoosting.seconds += time.process_time() - started
        return self

    def predict(self, X: Any) -> np.ndarray:
        started = time.process_time()
        scores = super().predict(X)
        TimedBoosting.seconds += time.process_time() - started
        return scores


def touch_memory(n_bytes: int) -> float:
    """Touch every page of new memory and free it; return the seconds."""
    started = time.process_time()
    np.empty(n_bytes, dtype=np.uint8)[::PAGE] = 0
    return time.process_time() - started


def track_overhead(data: Bunch, regressor: Any, context: Any) -> dict[str, tuple[float, float]]:
    """Of each call: seconds inside the regressor, and seconds around it."""
    ranker = CalibratedRanker(TimedBoosting(**regressor.get_params()), context=context)
    calls = {
        "fit": lambda: ranker.fit(data.X, data.y, groups=data.groups),
        "predict": lambda: ranker.predict(data.X, groups=data.groups),
        "score": lambda: ranker.score(data.X, data.y, groups=data.groups),
    }
    seconds = {}
    for name, call in calls.items():
        TimedBoosting.seconds = 0.0
        started = time.process_time()
        call()
        inside = TimedBoosting.seconds
        seconds[name] = (inside, time.process_time() - started - inside)
    return seconds


def report_overhead(arguments: argparse.Namespace) -> None:
    data = make_data(arguments.documents, arguments.features, arguments.shuffled)
    runs: dict[str, list[dict[str, tuple[float, float]]]] = {name: [] for name in CONTEXTS}
    table_bytes = 8 * 2 * data.X.size  # float64, each column and its z-score
    touches = []
    for repeat in range(arguments.repeats):
        for name, context in CONTEXTS.items():
            print(f"repeat {repeat + 1}: {name}", file=sys.stderr, flush=True)
            touches.append(touch_memory(table_bytes))
            runs[name].append(track_overhead(data, make_regressor(arguments), context))
    own = [run["fit"][0] + run["predict"][0] for run in runs["context=None"]]
    rows = []
    for name, of_context in runs.items():
        for call in ("fit", "predict", "score"):
            around = [run[call][1] for run in of_context]
            rows.append(
                [
                    f"{name}: {call}",
                    f"{median(run[call][0] for run in of_context):.2f}",
                    f"{median(around):.3f}",
                    f"{median(100 * a / b for a, b in zip(around, own, strict=True)):.2f} %",
                ]
            )
        around = [sum(run[call][1] for call in run) for run in of_context]
        rows.append(
            [
                f"{name}: all",
                f"{median(sum(run[call][0] for call in run) for run in of_context):.2f}",
                f"{median(around):.3f}",
                f"{median(100 * a / b for a, b in zip(around, own, strict=True)):.2f} %",
            ]
        )
    print_table(
        f"{len(data.y)} x {arguments.features} float32{_order(arguments)}, {arguments.trees} trees "
        f"of {make_regressor(arguments).max_leaf_nodes} leaves; medians of {arguments.repeats}.\n"
        "Percent of the regressor's own fit and one predict without context",
        ["call", "regressor, s", "around it, s", "around / regressor"],
        rows,
    )
    slower = [
        (run["fit"][0] + run["predict"][0]) / base
        for run, base in zip(runs["default context"], own, strict=True)
    ]
    print(f"The regressor's fit and predict, default context / none: {median(slower):.2f}x")
    print(
        f"Touching {table_bytes / 2**20:.0f} MiB before each fit: "
        f"{', '.join(f'{seconds:.2f}' for seconds in touches)} s"
    )


def _order(arguments: argparse.Namespace) -> str:
    return " in random order" if arguments.shuffled else ""


# -------------------------------------------------------------------- memory


def peakmem_worker(arguments: argparse.Namespace) -> None:
    """Run in a separate process: print the bytes above the data, and the bytes of X."""
    regressor_name, what = arguments.worker
    data = make_data(arguments.documents, arguments.features, arguments.shuffled)
    regressor = make_regressor(arguments, regressor_name)
    centred = Queries.from_groups(data.groups).center(data.y)
    before = _peak_bytes()
    if what == WORKERS[0]:
        regressor.fit(data.X, centred)
        scores = regressor.predict(data.X)
        assert np.isfinite(scores).all()
    else:
        context = CONTEXTS[what.removeprefix("ranker, ")]
        ranker = CalibratedRanker(regressor, context=context)
        ranker.fit(data.X, data.y, groups=data.groups)
        ranker.predict(data.X, groups=data.groups)
        ranker.score(data.X, data.y, groups=data.groups)
    print(json.dumps({"extra": _peak_bytes() - before, "table": data.X.nbytes}))


def _peak_bytes() -> int:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def report_memory(arguments: argparse.Namespace) -> None:
    if find_spec("resource") is None:
        print("No module 'resource' on this platform: memory is skipped.")
        return
    rows = []
    for regressor in ("hgb", "ridge"):
        alone = float("nan")
        for what in WORKERS:
            command = [sys.executable, __file__, "--worker", regressor, what]
            for name in ("documents", "features"):
                command += [f"--{name}", str(getattr(arguments, name))]
            command += ["--trees", str(arguments.memory_trees)]
            command += ["--shuffled"] if arguments.shuffled else []
            result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(result.stdout)
            extra = found["extra"] / found["table"]
            alone = extra if what == WORKERS[0] else alone
            rows.append([f"{regressor}: {what}", f"{extra:.2f}", f"{extra / alone:.2f}x"])
    table = arguments.documents * arguments.features * 4 / 2**20
    print_table(
        f"Peak memory above the data, in multiples of X ({table:.0f} MiB{_order(arguments)}); "
        f"{arguments.memory_trees} trees",
        ["process", "extra / X", "ratio to regressor alone"],
        rows,
    )


# -------------------------------------------------------------------- grouping


def time_from_groups(ids: np.ndarray) -> Queries:
    return Queries.from_groups(ids)


def time_unique(ids: np.ndarray) -> Any:
    return np.unique(ids, return_inverse=True)


def report_groups(arguments: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    n_queries = max(1, arguments.documents // QUERY_SIZE)
    names = np.array([f"query-{number}" for number in range(n_queries)])
    contiguous = np.repeat(np.arange(n_queries), QUERY_SIZE)
    shuffled = rng.permutation(contiguous)
    layouts = {
        "contiguous ints": contiguous,
        "shuffled ints": shuffled,
        "contiguous strings": names[contiguous],
        "shuffled strings": names[shuffled],
        "shuffled strings, objects": names.astype(object)[shuffled],
    }
    rows = []
    for name, ids in layouts.items():
        tasks = {"ours": partial(time_from_groups, ids), "unique": partial(time_unique, ids)}
        seconds = interleaved(tasks, arguments.group_repeats)
        rows.append(
            [name, f"{1000 * seconds['ours']:.1f}", f"{seconds['unique'] / seconds['ours']:.1f}x"]
        )
    print_table(
        f"Queries.from_groups, {len(contiguous)} rows, medians of {arguments.group_repeats}",
        ["ids", "ms", "numpy.unique / ours"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=1_200_000, help="(default: 1200000)")
    parser.add_argument("--features", type=int, default=136, help="(default: 136)")
    parser.add_argument("--trees", type=int, default=100, help="for seconds (default: 100)")
    parser.add_argument(
        "--memory-trees",
        type=int,
        default=5,
        help="for memory, which hardly depends on them (default: 5)",
    )
    parser.add_argument("--repeats", type=int, default=3, help="of the overhead (default: 3)")
    parser.add_argument("--group-repeats", type=int, default=5, help="(default: 5)")
    parser.add_argument("--shuffled", action="store_true", help="rows in random order")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="(default: all)")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        peakmem_worker(arguments)
        return
    # first: a child's peak begins at what its parent holds when it starts it
    if "memory" in arguments.parts:
        report_memory(arguments)
    if "overhead" in arguments.parts:
        report_overhead(arguments)
    if "groups" in arguments.parts:
        report_groups(arguments)


if __name__ == "__main__":
    main()
