"""Time of one query at predict, and size of a saved ranker.

The rankers are trained on 10,000 rows of 46 columns in 100 queries, on one thread. A ranker of
LightGBM has 100 trees of 31 leaves, and another chooses their number on 20 of the queries. The
tasks take turns, and the table has medians. For LightGBM, the time is of `LGBMRanker.predict`,
which returns scores. With ``--frame``, the tables are data frames: of numbers in pandas or polars,
which LightGBM does not read, or with two columns of categories in pandas.

    python examples/benchmarks/bench_latency.py
    python examples/benchmarks/bench_latency.py --frame pandas
"""

from __future__ import annotations

import argparse
import os
import pickle
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
import pandas as pd
from _harness import interleaved, print_table
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.datasets import make_ranking

SIZES = (10, 50, 200, 1000, 100_000)


def with_categories(X: Any) -> pd.DataFrame:
    """Return a frame whose last two columns are brands: intervals of the numbers."""
    table = pd.DataFrame(X).add_prefix("x")
    known = [f"brand {k}" for k in range(21)]
    for name in table.columns[-2:]:
        codes = np.clip(10 + 4 * table[name], 0, 20).astype(int)
        table[name] = pd.Categorical.from_codes(codes, known)
    return table


def as_frame(X: Any, kind: str | None) -> Any:
    """Return numbers as the kind of frame of the option ``--frame``, or unchanged without it."""
    if kind == "categories":
        return with_categories(X)
    names = [f"x{k}" for k in range(X.shape[1])]
    if kind == "polars":
        import polars as pl

        return pl.DataFrame(X, schema=names)
    return pd.DataFrame(X, columns=names) if kind == "pandas" else X


def fitted(data: Any, frame: str | None) -> dict[str, tuple[Any, Callable[..., Any]]]:
    """Name to a fitted ranker, and what predicts one query with it."""
    rankers = {
        "CalibratedRanker()": CalibratedRanker(),
        "'boosting'": CalibratedRanker("boosting"),
    }
    if frame is None:  # the forest of a stack, and Ridge, read numbers
        rankers["'stacked'"] = CalibratedRanker("stacked")
        rankers["Ridge, with z-scores"] = CalibratedRanker(Ridge(), context="zscore")
    found: dict[str, tuple[Any, Callable[..., Any]]] = {}
    for name, ranker in rankers.items():
        ranker.fit(data.X, data.y, groups=data.groups)
        found[name] = ranker, lambda X, ranker=ranker: ranker.predict(X, groups=np.zeros(len(X)))
    if find_spec("lightgbm") is not None and frame != "polars":
        from lightgbm import LGBMRanker, early_stopping

        y, sizes = data.y.astype(int), np.bincount(data.groups)
        other = LGBMRanker(n_estimators=100, num_leaves=31, n_jobs=1, verbose=-1)
        other.fit(data.X, y, group=sizes)
        found["LGBMRanker"] = other, other.predict
        n = sizes[:80].sum()
        stopped = LGBMRanker(n_estimators=1000, num_leaves=31, n_jobs=1, verbose=-1)
        stopped.fit(
            data.X[:n],
            y[:n],
            group=sizes[:80],
            eval_X=data.X[n:],
            eval_y=y[n:],
            eval_group=[sizes[80:]],
            eval_at=[10],
            callbacks=[early_stopping(50, verbose=False)],
        )
        found[f"LGBMRanker, stopped after {stopped.best_iteration_}"] = stopped, stopped.predict
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=200, help="of a query of 50 (default: 200)")
    parser.add_argument("--frame", choices=["pandas", "polars", "categories"], help="of which kind")
    options = parser.parse_args()
    repeats, frame = options.repeats, options.frame
    data = make_ranking(100, 100, 46, random_state=0)
    data.X = as_frame(data.X, frame)
    found = fitted(data, frame)
    rng = np.random.default_rng(0)
    seconds: dict[str, list[float]] = {name: [] for name in found}
    for size in SIZES:
        X = as_frame(rng.standard_normal((size, 46)), frame)
        tasks = {name: partial(predict, X) for name, (_, predict) in found.items()}
        times = interleaved(tasks, max(3, repeats * 50 // max(size, 50)))
        for name, one in times.items():
            seconds[name].append(one)
    rows = []
    for name, (ranker, _) in found.items():
        cells = [f"{1e3 * one:.2f}" for one in seconds[name]]
        if "LGBMRanker" in found:
            theirs = seconds["LGBMRanker"]
            cells += [f"{seconds[name][place] / theirs[place]:.1f}" for place in (1, -1)]
        rows.append([name, *cells, f"{len(pickle.dumps(ranker)) / 1e6:.2f}"])
    ratios = ["50, ratio", "100,000, ratio"] if "LGBMRanker" in found else []
    print_table(
        "Milliseconds of a query by number of documents, ratios to LGBMRanker, and MB of a pickle",
        ["ranker", *(f"{size:,}" for size in SIZES), *ratios, "MB"],
        rows,
    )


if __name__ == "__main__":
    main()
