"""BoostedRanker against LambdaMART and other boosted rankers: quality on MQ2008, and time.

Quality: the queries are divided into five parts. Each part tests rankers trained on the remaining
four. All rankers have 100 trees and learning rate 0.05. All are searched over 7 and 15 leaves, and
over the columns of X alone and with z-scores inside the query. The setting of each ranker has the
best NDCG@10 on validation queries, a quarter of the training queries; the ranker is then fitted to
all training queries. The row "best of the templates" also chooses the surrogate on these queries.
Values are means over test queries. Intervals are paired over queries.

Time: 240,000 rows of 136 columns in queries of 120, with 100 trees of 31 leaves. All objectives are
fitted by `LGBMRanker` with the same settings: only the objective differs.

    python examples/benchmarks/bench_boosted.py --data ../shared/data
    python examples/benchmarks/bench_boosted.py --time
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
from _harness import print_table
from bench_mq2008 import FILES, METRICS, REPOSITORY, interval
from bench_stacking import (
    LEARNING_RATE,
    LEAVES,
    N_THREADS,
    TREES,
    Method,
    make_peers,
    measure,
    read_all,
    shuffled_folds,
    take,
    timed,
)
from lightgbm import LGBMRanker, LGBMRegressor
from sklearn.utils import Bunch

from sklearn_rankcal import BoostedRanker
from sklearn_rankcal.boosting import lightgbm_objective
from sklearn_rankcal.datasets import make_ranking

TEMPLATES = (
    "softmax",
    "pairwise_logistic",
    "pairwise_squared",
    "pointwise_logistic",
    "cosine",
    "ranknet",
)
LIGHTGBM = ("lambdarank", "rank_xendcg")
#: Objectives whose gradients take O(r) or O(r log r) time for a query of r documents, and others.
FAST = (
    "softmax",
    "pointwise_squared",
    "pointwise_logistic",
    "pointwise_squared_hinge",
    "pairwise_squared",
    "pairwise_exponential",
    "cosine",
    "generalized_kl",
)
PAIRWISE = ("pairwise_logistic", "pairwise_margin", "weighted_comparisons", "ranknet", "ranksvm")
BEST = "best of the templates"


def boosted(
    train: Bunch, test: Bunch, *, surrogate: str, leaves: int, context: bool
) -> tuple[np.ndarray, float]:
    """(scores of the test rows, seconds of fit)."""
    ranker = BoostedRanker(
        surrogate,
        regressor=LGBMRegressor(
            n_estimators=TREES, learning_rate=LEARNING_RATE, num_leaves=leaves,
            n_jobs=N_THREADS, random_state=0, verbose=-1,
        ),
        context="zscore" if context else None,
    )  # fmt: skip
    ranker, seconds = timed(lambda: ranker.fit(train.X, train.y, groups=train.groups))
    return ranker.decision_function(test.X, groups=test.groups), seconds


def make_templates() -> dict[str, dict[str, Method]]:
    """Map the name of the surrogate to the same settings as in `make_peers`."""
    return {
        f"BoostedRanker {name}": {
            f"{leaves} leaves, {'with z-scores' if context else 'X alone'}": partial(
                boosted, surrogate=name, leaves=leaves, context=context
            )
            for leaves in LEAVES
            for context in (False, True)
        }
        for name in TEMPLATES
    }


def validation_fold(train: Bunch, seed: int) -> tuple[Bunch, Bunch]:
    """Hold out a quarter of the training queries."""
    ids = np.random.default_rng(seed).permutation(np.unique(train.groups))
    out = np.isin(train.groups, ids[: len(ids) // 4])
    return take(train, ~out), take(train, out)


def searched(
    settings: dict[str, Method], folds: list[tuple[Bunch, Bunch]]
) -> tuple[dict[str, list[np.ndarray]], list[float], list[str]]:
    """For each fold, the values per query, the best validation value, and the chosen setting."""
    parts: dict[str, list[np.ndarray]] = {}
    best, names = [], []
    for number, (train, test) in enumerate(folds):
        inner = [validation_fold(train, number)]
        found = {
            name: float(np.nanmean(measure(method, inner)[0]["NDCG@10"]))
            for name, method in settings.items()
        }
        chosen = max(found, key=found.__getitem__)
        best.append(found[chosen])
        names.append(chosen)
        values, _ = measure(settings[chosen], [(train, test)])
        for metric, per_query in values.items():
            parts.setdefault(metric, []).append(per_query)
    return parts, best, names


def compare(folds: list[tuple[Bunch, Bunch]]) -> None:
    """Every template and every peer after the same search."""
    found = {}
    for name, settings in (make_templates() | make_peers()).items():
        found[name] = searched(settings, folds)
        print(f"{name}: {'; '.join(found[name][2])}", flush=True)
    ours = [name for name in found if name.startswith("BoostedRanker")]
    chosen = [max(ours, key=lambda name: found[name][1][fold]) for fold in range(len(folds))]
    print(f"{BEST}: {', '.join(name.partition(' ')[2] for name in chosen)}")
    values: dict[str, dict[str, np.ndarray]] = {
        name: {metric: np.concatenate(parts) for metric, parts in of_fold.items()}
        for name, (of_fold, _, _) in found.items()
    }
    values[BEST] = {
        metric: np.concatenate([found[name][0][metric][fold] for fold, name in enumerate(chosen)])
        for metric in METRICS
    }
    rows = [
        [
            name,
            *(f"{np.nanmean(of[metric]):.4f}" for metric in METRICS),
            *(
                "" if name == BEST else interval(values[BEST][metric], of[metric])
                for metric in ("NDCG@10", "MAP", "ERR")
            ),
        ]
        for name, of in values.items()
    ]
    print_table(
        f"Means over {np.count_nonzero(~np.isnan(values[BEST]['NDCG@10']))} queries of MQ2008; "
        f"differences of '{BEST}' to the row with their 95 % intervals (* does not hold 0)",
        ["ranker", *METRICS, "by NDCG@10", "by MAP", "by ERR"],
        rows,
    )


def time_objectives(n_queries: int, repeats: int) -> None:
    """Seconds of fit with each objective, as ratios to LightGBM's lambdarank in the same run."""
    data = make_ranking(n_queries, 120, 136, random_state=0)
    sizes = np.full(n_queries, 120)

    def fit(objective: Any) -> Any:
        return LGBMRanker(
            objective=objective, n_estimators=100, num_leaves=31, n_jobs=1, verbose=-1
        ).fit(data.X, data.y.astype(int), group=sizes)

    names = (*LIGHTGBM, *FAST, *PAIRWISE)
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(repeats):  # the objectives take turns
        for name in names:
            objective = name if name in LIGHTGBM else lightgbm_objective(name)
            found[name].append(timed(partial(fit, objective))[1])
            print(f"{name} {found[name][-1]:.1f}", flush=True)
    seconds = {name: median(values) for name, values in found.items()}
    base = seconds["lambdarank"]
    print_table(
        f"Processor seconds of LGBMRanker.fit, {len(data.y):,} rows of 136 columns, queries of "
        f"120, 100 trees of 31 leaves, one thread, median of {repeats}; load of the machine "
        f"{os.getloadavg()[0]:.1f}",
        ["objective", "seconds", "ratio to lambdarank"],
        [[name, f"{took:.1f}", f"{took / base:.2f}"] for name, took in seconds.items()],
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=REPOSITORY / ".." / "shared" / "data",
        help="folder that contains letor/mq2008/S1.txt.gz .. S5.txt.gz",
    )  # fmt: skip
    parser.add_argument("--time", action="store_true", help="measure time instead")
    parser.add_argument("--queries", type=int, default=2000, help="of the timing (default: 2000)")
    parser.add_argument("--repeats", type=int, default=3, help="of the timing (default: 3)")
    arguments = parser.parse_args()
    if arguments.time:
        time_objectives(arguments.queries, arguments.repeats)
        return
    folder = arguments.data / "letor" / "mq2008"
    if not all((folder / name).is_file() for name in FILES):
        print(f"No MQ2008 ({FILES[0]} .. {FILES[-1]}) in {folder}: nothing measured.")
        return
    compare(list(shuffled_folds(read_all(folder), 1)))


if __name__ == "__main__":
    main()
