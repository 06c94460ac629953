"""One regressor that imitates the scores of the stack, against the stack and single models.

The data are MQ2008 (five folds) and generated worlds of `_worlds.py` (one split), new in each
shuffle. A query's value is the mean over the shuffles. Intervals are paired over queries. The last
row is the mean over all collections, with equal weights.

    python examples/benchmarks/bench_distilled.py --data ../shared/data
    python examples/benchmarks/bench_distilled.py --rows

The second command compares students that score one row at a time, as most search engines do.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
from _harness import Differences, print_table
from _worlds import MATCHES, PURCHASES, WORLDS
from bench_mq2008 import FILES, REPOSITORY
from bench_stacking import calibrated, lightgbm, measure, peer, read_all, shuffled_folds, take
from sklearn.utils import Bunch

from sklearn_rankcal import CalibratedRanker, distill

Folds = list[tuple[Bunch, Bunch]]
Values = dict[str, np.ndarray]
METRIC = "NDCG@10"


def student(
    train: Bunch, test: Bunch, context: object = "auto", own: object = None
) -> tuple[np.ndarray, float]:
    """A student of a stack, both with or without context columns."""
    teacher = CalibratedRanker("stacked", context=context)
    teacher.fit(train.X, train.y, groups=train.groups)
    student = distill(teacher, train.X, train.groups, context=own)
    return student.decision_function(test.X, groups=test.groups), 0.0


def methods(rows: bool) -> dict[str, Callable[[Bunch, Bunch], tuple[np.ndarray, float]]]:
    """The rankers, beginning with the stack, the reference."""
    found = {"stack": partial(calibrated, regressor="stacked")}
    found["student"] = partial(student, own="auto")
    if rows:
        found["rows, of the stack"] = student
        found["rows, of a stack of rows"] = partial(student, context=None)
        found["boosting of rows"] = partial(calibrated, regressor="boosting", context=None)
        return found
    found["boosting"] = partial(calibrated, regressor="boosting")
    if find_spec("lightgbm") is not None:
        options = {"objective": "lambdarank", "leaves": 7, "context": False}
        found["lambdarank, 7 leaves"] = partial(peer, make=lightgbm, **options)
    return found


MADE = WORLDS | MATCHES | PURCHASES


def collections(
    folder: Path, shuffles: range, names: Sequence[str] = ("MQ2008", *MADE)
) -> Iterator[tuple[str, Folds]]:
    """Name and (train, test) pairs of each collection."""
    present = all((folder / name).is_file() for name in FILES)
    if "MQ2008" in names and present:
        yield "MQ2008", list(shuffled_folds(read_all(folder), len(shuffles)))
    elif "MQ2008" in names:
        print(f"No MQ2008 ({FILES[0]} .. {FILES[-1]}) in {folder}: left out.")
    for name, world in MADE.items():
        if name not in names:
            continue
        folds = []
        for seed in shuffles:
            X, y, groups = world.make(seed)
            ids = np.random.default_rng(seed).permutation(np.unique(groups))
            trains = np.isin(groups, ids[: int(world.train * len(ids))])
            # queries of other draws are other queries
            data = Bunch(X=X, y=y, groups=groups + 1_000_000 * (seed - shuffles[0]))
            folds.append((take(data, trains), take(data, ~trains)))
        yield name, folds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=REPOSITORY / ".." / "shared" / "data",
        help="folder that contains letor/mq2008/S1.txt.gz .. S5.txt.gz",
    )  # fmt: skip
    parser.add_argument("--shuffles", type=int, default=3, help="(default: 3)")
    parser.add_argument("--seed", type=int, default=0, help="of the first world (default: 0)")
    parser.add_argument("--rows", action="store_true", help="compare students of rows instead")
    arguments = parser.parse_args()
    folder = arguments.data / "letor" / "mq2008"
    shuffles = range(arguments.seed, arguments.seed + arguments.shuffles)
    tried = methods(arguments.rows)
    rows, pooled = [], {name: Differences() for name in list(tried)[1:]}
    for collection, folds in collections(folder, shuffles):
        values = {name: measure(method, folds)[0][METRIC] for name, method in tried.items()}
        stack = values.pop("stack")
        row = [collection, f"{np.nanmean(stack):.4f}"]
        for name, others in values.items():
            row.append(pooled[name].add(others, stack))
        rows.append(row)
        print(*row, flush=True)
    print_table(
        f"{METRIC} of the stack, and the differences of others from it with 95 % intervals",
        ["collection", "stack", *(f"{name} minus it" for name in pooled)],
        [*rows, ["mean", "", *(found.mean() for found in pooled.values())]],
    )


if __name__ == "__main__":
    main()
