"""Time of one query at predict, and size of a saved ranker.

The rankers are trained on 10,000 rows of 46 columns in 100 queries, on one thread. All boosters
have 100 trees. LightGBM's ranker has 31 leaves, like the default of `CalibratedRanker`. The tasks
take turns, and the table has medians. For LightGBM, the time is of `LGBMRanker.predict`, which
returns scores. With ``--frame``, the tables are data frames with two columns of categories.

    python examples/benchmarks/bench_latency.py
    python examples/benchmarks/bench_latency.py --frame
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


def fitted(data: Any, frame: bool) -> dict[str, tuple[Any, Callable[..., Any]]]:
    """Name to a fitted ranker, and what predicts one query with it."""
    rankers = {
        "CalibratedRanker()": CalibratedRanker(),
        "'boosting'": CalibratedRanker("boosting"),
    }
    if not frame:  # the forest of a stack, and Ridge, read numbers
        rankers["'stacked'"] = CalibratedRanker("stacked")
        rankers["Ridge, with z-scores"] = CalibratedRanker(Ridge(), context="zscore")
    found: dict[str, tuple[Any, Callable[..., Any]]] = {}
    for name, ranker in rankers.items():
        ranker.fit(data.X, data.y, groups=data.groups)
        found[name] = ranker, lambda X, ranker=ranker: ranker.predict(X, groups=np.zeros(len(X)))
    if find_spec("lightgbm") is not None:
        from lightgbm import LGBMRanker

        other = LGBMRanker(n_estimators=100, num_leaves=31, n_jobs=1, verbose=-1)
        other.fit(data.X, data.y.astype(int), group=np.bincount(data.groups))
        found["LGBMRanker"] = other, other.predict
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=200, help="of a query of 50 (default: 200)")
    parser.add_argument("--frame", action="store_true", help="data frames with categories")
    options = parser.parse_args()
    repeats, frame = options.repeats, options.frame
    data = make_ranking(100, 100, 46, random_state=0)
    if frame:
        data.X = with_categories(data.X)
    found = fitted(data, frame)
    rng = np.random.default_rng(0)
    seconds: dict[str, list[float]] = {name: [] for name in found}
    for size in SIZES:
        X = rng.standard_normal((size, 46))
        X = with_categories(X) if frame else X
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
