"""Quality of the rankings: MQ2008, five LETOR folds, against LightGBM and XGBoost.

Every method is fitted on three parts of the collection and tested on a fourth (fold 1: train S1
S2 S3, test S5; the validation part S4 is not used, nothing is tuned). NDCG@10 (gains 2^y - 1), MAP
(relevant: y >= 1) and ERR (top grade 2) are computed for each test query with a relevant document,
averaged over ties, and pooled over the folds. Differences have 95 % intervals of a paired bootstrap
over queries, not adjusted for the number of comparisons. An interval that contains 0 shows no
difference.

The peers have the same number of trees and leaves and the same learning rate as the package's
default regressor on fold 1 (or as the options say). They have the same columns: X and its z-scores
inside each query (without in rows "X alone"). Otherwise they are at their defaults. The package's
default was chosen on validation queries of this collection, unlike theirs. Therefore one row gives
the ranker scikit-learn's boosting with the peers' size and no other setting. Least squares on plain
labels, with the same columns and centring, is ``loss=DCG(gain="linear")``. rank_xendcg uses random
numbers: a query's value is the mean over several seeds. Seconds of fit and predict are ratios to
the first peer present, medians over the folds.

    python examples/benchmarks/bench_mq2008.py --data ../shared/data
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _harness import print_table, values_of_queries
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils import Bunch

from sklearn_rankcal import CalibratedRanker, context_columns, sizes_to_groups
from sklearn_rankcal.datasets import load_letor
from sklearn_rankcal.losses import DCG, MAP, MAPByScores
from sklearn_rankcal.metrics import compare_rankings
from sklearn_rankcal.models import BilinearPairs, PairwiseRidge

REPOSITORY = Path(__file__).resolve().parents[2]
N_FEATURES = 46
N_FOLDS = 5
FILES = [f"S{number}.txt.gz" for number in range(1, N_FOLDS + 1)]
METRICS: dict[str, Callable[..., Any]] = {
    "NDCG@10": partial(values_of_queries, "ndcg@10"),
    "MAP": partial(values_of_queries, "map", threshold=1),
    "ERR": partial(values_of_queries, "err", max_relevance=2),
    "1 - PD": lambda *args: 1 - values_of_queries("pairwise_disagreement", *args),
}
DEFAULT = "CalibratedRanker('boosting')"
STACKED = "CalibratedRanker('stacked')"
LABELS = "  loss=DCG(gain='linear'), labels"
LAMBDARANK = "LightGBM lambdarank"
XENDCG = "LightGBM rank_xendcg"
XGBOOST = "XGBoost rank:ndcg"


def read_folds(folder: Path, n_folds: int) -> list[tuple[Bunch, Bunch]]:
    """(train, test) of the LETOR folds."""
    parts = [load_letor(folder / name, n_features=N_FEATURES) for name in FILES]
    folds = []
    for fold in range(n_folds):
        three = [parts[(fold + step) % N_FOLDS] for step in range(3)]
        train = {name: np.concatenate([part[name] for part in three]) for name in parts[0]}
        folds.append((Bunch(**train), parts[(fold + 4) % N_FOLDS]))
    return folds


# -------------------------------------------------------------------- (train, test) -> scores


def calibrated(train: Bunch, test: Bunch, **parameters: Any) -> np.ndarray:
    ranker = CalibratedRanker(**{"regressor": "boosting", **parameters}).fit(
        train.X, train.y, groups=train.groups
    )
    return ranker.decision_function(test.X, groups=test.groups)


def by_pairs(train: Bunch, test: Bunch, **parameters: Any) -> np.ndarray:
    """Minus the positions: rankings of a loss on pairs, for metrics that take scores."""
    parameters = {
        "regressor": "boosting", "loss": "pd", "decoder": "greedy_dag", **parameters
    }  # fmt: skip
    ranker = CalibratedRanker(**parameters).fit(train.X, train.y, groups=train.groups)
    return -ranker.predict(test.X, groups=test.groups)


def least_squares(train: Bunch, test: Bunch, *, regressor: Any) -> np.ndarray:
    return clone(regressor).fit(train.X, train.y).predict(test.X)


def tables(train: Bunch, test: Bunch, context: bool) -> tuple[np.ndarray, np.ndarray]:
    """The columns of the ranker's default regressor, X and its z-scores; or X alone."""
    if not context:
        return train.X, test.X
    return context_columns(train.X, train.groups), context_columns(test.X, test.groups)


def lightgbm(
    train: Bunch, test: Bunch, *, seed: int = 0, context: bool = True, **parameters: Any
) -> np.ndarray:
    from lightgbm import LGBMRanker

    X, X_test = tables(train, test, context)
    model = LGBMRanker(random_state=seed, n_jobs=n_threads(), verbose=-1, **parameters)
    return model.fit(X, train.y, group=sizes(train.groups)).predict(X_test)


def xgboost(train: Bunch, test: Bunch, *, context: bool = True, **parameters: Any) -> np.ndarray:
    from xgboost import XGBRanker

    X, X_test = tables(train, test, context)
    # max_leaves binds only when trees grow by loss, without a limit of depth
    model = XGBRanker(
        tree_method="hist", grow_policy="lossguide", max_depth=0, n_jobs=n_threads(), **parameters
    )
    qid = sizes_to_groups(sizes(train.groups))  # it wants ascending ids
    return model.fit(X, train.y, qid=qid).predict(X_test)


def xgboost_map(train: Bunch, test: Bunch, **parameters: Any) -> np.ndarray:
    """rank:map, which takes binary labels only."""
    binary = Bunch(X=train.X, y=train.y >= 1, groups=train.groups)
    return xgboost(binary, test, objective="rank:map", **parameters)


def sizes(groups: np.ndarray) -> np.ndarray:
    """Documents per query of contiguous queries."""
    starts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    return np.diff(np.append(starts, len(groups)))


def n_threads() -> int:
    """The threads that scikit-learn's OpenMP uses, for the peers."""
    return int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))


def make_methods(
    regressor: Any, trees: int, learning_rate: float, leaves: int
) -> dict[str, Callable[..., Any]]:
    """Name to a function of (train, test), the peers that are not installed left out."""
    size = {"n_estimators": trees, "learning_rate": learning_rate}
    plain = HistGradientBoostingRegressor(
        max_iter=trees, learning_rate=learning_rate, max_leaf_nodes=leaves, early_stopping=False
    )
    methods: dict[str, Callable[..., Any]] = {
        DEFAULT: calibrated,
        STACKED: partial(calibrated, regressor="stacked"),
        "  loss='ndcg@10'": partial(calibrated, loss="ndcg@10"),
        LABELS: partial(calibrated, loss=DCG(gain="linear")),
        "  context=None": partial(calibrated, context=None),
        "  regressor of the peers' size": partial(calibrated, regressor=plain),
        "  loss='pd_by_scores'": partial(calibrated, loss="pd_by_scores"),
        "  loss='pd'": by_pairs,
        "  loss='pd', decoder='auto'": partial(by_pairs, decoder="auto"),
        "  loss='pd', PairwiseRidge()": partial(by_pairs, regressor=PairwiseRidge()),
        "  loss='pd', BilinearPairs()": partial(by_pairs, regressor=BilinearPairs()),
        "  loss=MAPByScores(threshold=1)": partial(calibrated, loss=MAPByScores(threshold=1)),
        "  loss=MAP(threshold=1)": partial(by_pairs, loss=MAP(threshold=1), decoder="auto"),
        "  loss=MAP(threshold=1), BilinearPairs": partial(
            by_pairs, loss=MAP(threshold=1), decoder="auto", regressor=BilinearPairs(symmetric=True)
        ),
        "its regressor on y, X alone": partial(least_squares, regressor=regressor),
    }
    if find_spec("lightgbm") is None:
        print("LightGBM is not installed: lambdarank and rank_xendcg are skipped.")
    else:
        size_lgb = {**size, "num_leaves": leaves}
        methods[LAMBDARANK] = partial(lightgbm, objective="lambdarank", **size_lgb)
        methods["  X alone, lambdarank"] = partial(methods[LAMBDARANK], context=False)
        methods[XENDCG] = partial(lightgbm, objective="rank_xendcg", **size_lgb)
        methods["  X alone, rank_xendcg"] = partial(methods[XENDCG], context=False)
    if find_spec("xgboost") is None:
        print("XGBoost is not installed: rank:ndcg is skipped.")
    else:
        size_xgb = {**size, "max_leaves": leaves}
        methods[XGBOOST] = partial(xgboost, objective="rank:ndcg", **size_xgb)
        methods["  X alone, rank:ndcg"] = partial(methods[XGBOOST], context=False)
        methods["XGBoost rank:pairwise"] = partial(xgboost, objective="rank:pairwise", **size_xgb)
        methods["XGBoost rank:map, y >= 1"] = partial(xgboost_map, **size_xgb)
    return methods


# -------------------------------------------------------------------- what is measured


def track_quality(
    method: Callable[..., Any], train: Bunch, test: Bunch
) -> tuple[dict[str, np.ndarray], float]:
    """Each metric per test query, NaN without a relevant document; seconds of fit and predict."""
    started = time.perf_counter()
    scores = method(train, test)
    seconds = time.perf_counter() - started
    values = {name: metric(test.y, scores, test.groups) for name, metric in METRICS.items()}
    # ERR is 0, not undefined, without a relevant document: every ranking is equal there
    values["ERR"] = np.where(np.isnan(values["NDCG@10"]), np.nan, values["ERR"])
    return values, seconds


def track_all(
    methods: dict[str, Callable[..., Any]], folds: list[tuple[Bunch, Bunch]], n_seeds: int
) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, list[float]]]:
    """Method to metric to values of all test queries; method to seconds of each fold."""
    parts: dict[str, list[dict[str, np.ndarray]]] = {name: [] for name in methods}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for train, test in folds:
        for name, method in methods.items():
            random = "rank_xendcg" in name
            runs = [
                track_quality(partial(method, seed=seed) if random else method, train, test)
                for seed in range(n_seeds if random else 1)
            ]
            parts[name].append(
                {
                    metric: np.mean([values[metric] for values, _ in runs], axis=0)
                    for metric in METRICS
                }
            )
            seconds[name].append(float(np.mean([took for _, took in runs])))
    pooled = {
        name: {metric: np.concatenate([part[metric] for part in of_folds]) for metric in METRICS}
        for name, of_folds in parts.items()
    }
    return pooled, seconds


def interval(first: np.ndarray, second: np.ndarray) -> str:
    """The difference with its interval, marked if the interval does not contain 0."""
    result = compare_rankings(None, first, second)
    mark = " *" if result.low > 0 or result.high < 0 else "  "
    return f"{result.difference:+.4f} [{result.low:+.4f}, {result.high:+.4f}]{mark}"


def report(
    values: dict[str, dict[str, np.ndarray]], seconds: dict[str, list[float]], n_folds: int
) -> None:
    peers = [name for name in (LAMBDARANK, XGBOOST) if name in values]
    base = peers[0] if peers else DEFAULT
    n_queries = int(np.count_nonzero(~np.isnan(values[DEFAULT]["NDCG@10"])))
    rows = []
    for name, of_metric in values.items():
        means = [np.nanmean(of_metric[metric]) for metric in METRICS]
        ratio = means[0] / np.nanmean(values[base]["NDCG@10"])
        slower = median(a / b for a, b in zip(seconds[name], seconds[base], strict=True))
        rows.append([name, *(f"{mean:.4f}" for mean in means), f"{ratio:.3f}", f"{slower:.2f}"])
    print_table(
        f"Means over {n_queries} test queries with a relevant document, {n_folds} folds; ratios "
        f"to {base}",
        ["method", *METRICS, "NDCG ratio", "seconds ratio"],
        rows,
    )
    others = list(dict.fromkeys([base, DEFAULT]))
    for metric in METRICS:
        rows = [
            [
                name,
                *(
                    "" if name == other else interval(of_metric[metric], values[other][metric])
                    for other in others
                ),
            ]
            for name, of_metric in values.items()
        ]
        print_table(
            f"{metric}: difference and 95 % interval (* does not hold 0)",
            ["method", *(f"against {other}" for other in others)],
            rows,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=REPOSITORY / ".." / "shared" / "data",
        help="folder that holds letor/mq2008/S1.txt.gz .. S5.txt.gz (default: ../shared/data, "
        "from the repository root)",
    )
    parser.add_argument("--folds", type=int, choices=range(1, N_FOLDS + 1), default=N_FOLDS)
    parser.add_argument("--trees", type=int, help="of the peers (default: as the ranker's)")
    parser.add_argument("--learning-rate", type=float, help="(default: as the ranker's)")
    parser.add_argument("--leaves", type=int, help="(default: as the ranker's)")
    parser.add_argument("--seeds", type=int, default=5, help="for rank_xendcg (default: 5)")
    arguments = parser.parse_args()
    folder = arguments.data / "letor" / "mq2008"
    if not all((folder / name).is_file() for name in FILES):
        print(
            f"No MQ2008 ({FILES[0]} .. {FILES[-1]}) in {folder}: nothing measured. Point --data "
            "at the folder that holds letor/mq2008."
        )
        return
    folds = read_folds(folder, arguments.folds)
    train = folds[0][0]
    default = CalibratedRanker("boosting").fit(train.X, train.y, groups=train.groups)  # warms up
    regressor = clone(default.model_.regressor_)
    trees = arguments.trees or getattr(regressor, "max_iter", 100)
    learning_rate = arguments.learning_rate or getattr(regressor, "learning_rate", 0.05)
    leaves = arguments.leaves or getattr(regressor, "max_leaf_nodes", 15)
    print(f"The default regressor: {' '.join(repr(regressor).split())}")
    print(
        f"The peers: {trees} trees of {leaves} leaves, learning rate {learning_rate:g}; "
        f"{n_threads()} threads"
    )
    methods = make_methods(regressor, trees, learning_rate, leaves)
    values, seconds = track_all(methods, folds, arguments.seeds)
    report(values, seconds, arguments.folds)


if __name__ == "__main__":
    main()
