"""How far to shrink normalizers towards their mean: NDCG on narrow and wide labels.

The targets of NDCG are gains divided by the ideal DCG of the query. If there are few queries, the
default, ``shrinkage="auto"``, makes their ideal DCGs more alike, each in the unit of the largest
gain of its query. It is compared with ``shrinkage=0``, and with the same shrinkage of ideal DCGs
without such units.

MQ2008
    Five parts of shuffled queries, each tested once by rankers trained on the remaining parts.
bookings
    Searches for hotels with some bookings. The label is the amount paid, divided into grades from 0
    to 4, 10 or 30. All are tested on 600 new searches for each seed.

For recall, AUC and MAP by scores the largest gain is 1: the unit makes no difference. All rankers
are ``CalibratedRanker("boosting")``. A query's value is the mean over the shuffles, and intervals
are paired over queries.

    python examples/benchmarks/bench_shrinkage.py --data ../shared/data
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
from _harness import print_table, values_of_queries
from bench_mq2008 import REPOSITORY, interval
from bench_stacking import read_all, shuffled_folds
from sklearn.utils import Bunch

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.losses import AUC, NDCG, Loss, MAPByScores, Recall

Folds = list[tuple[Bunch, Bunch]]
N_TEST = 600
NUMBERS_OF_GRADES = (4, 10, 30)
BINARY: dict[str, tuple[type[Loss], dict[str, int], str]] = {
    "AUC": (AUC, {"threshold": 1}, "auc"),
    "recall@10": (Recall, {"k": 10, "threshold": 1}, "recall"),
    "MAP by scores": (MAPByScores, {"threshold": 1}, "map"),
}


class MeanOfNormalizers(NDCG):
    """NDCG that moves the ideal DCG towards its mean, which a few queries can dominate."""

    def shrunken_normalizer(self, gains: Any, queries: Any, share: float, mean: Any = None) -> Any:
        normalizer = self.normalizer(gains, queries)
        defined = normalizer > 0
        return np.where(defined, (1 - share) * normalizer + share * normalizer[defined].mean(), 0)


def bookings(n_train: int, n_grades: int, seed: int) -> tuple[Bunch, Bunch]:
    """Up to three hotels of a search are booked, at a multiple of their price up to 500."""
    rng = np.random.default_rng(seed)
    n_queries = n_train + N_TEST
    groups = np.repeat(np.arange(n_queries), rng.integers(5, 41, n_queries))
    n_rows = len(groups)
    price = np.exp(rng.normal(4.7, 0.5, n_rows))
    stars = rng.integers(1, 6, n_rows)
    distance = rng.gamma(2, 2, n_rows)
    review = np.clip(rng.normal(7.5, 1.2, n_rows), 1, 10)
    worth = -0.012 * price + 0.5 * stars - 0.25 * distance + 0.6 * review + rng.gumbel(size=n_rows)
    order = np.lexsort((-worth, groups))
    starts = np.searchsorted(groups, np.arange(n_queries))
    place = np.empty(n_rows, dtype=int)
    place[order] = np.arange(n_rows) - starts[groups]
    booked = place < rng.choice([0, 1, 1, 1, 2, 3], n_queries)[groups]
    amount = np.minimum(booked * price * rng.integers(1, 6, n_rows), 500)
    X = np.column_stack([price, stars, distance, review])
    y = np.ceil(amount / 500 * n_grades)
    train = groups < n_train
    ids = groups + seed * n_queries  # the queries of two seeds differ
    return tuple(Bunch(X=X[m], y=y[m], groups=ids[m]) for m in (train, ~train))  # type: ignore


def values_of(loss: Loss, folds: Folds, metric: str, **parameters: Any) -> np.ndarray:
    """The metric of each test query, its mean over the shuffles; NaN where it is undefined."""
    values: dict[Any, list[float]] = {}
    for train, test in folds:
        ranker = CalibratedRanker("boosting", loss=loss, random_state=0)
        ranker.fit(train.X, train.y, groups=train.groups)
        scores = ranker.decision_function(test.X, groups=test.groups)
        per_query = values_of_queries(metric, test.y, scores, test.groups, **parameters)
        ids = dict.fromkeys(test.groups.tolist())
        for query, value in zip(ids, per_query.tolist(), strict=True):
            values.setdefault(query, []).append(value)
    return np.array([np.mean(values[query]) for query in sorted(values)])


def row_of(what: str, n_train: int, k: int, folds: Folds) -> list[str]:
    auto, zero, former = (
        values_of(loss, folds, "ndcg", k=k)
        for loss in (NDCG(k), NDCG(k, shrinkage=0), MeanOfNormalizers(k))
    )
    return [what, str(n_train), f"{np.nanmean(auto):.4f}"] + [
        interval(auto, other) for other in (zero, former)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared" / "data")
    parser.add_argument("--shuffles", type=int, default=2, help="of MQ2008 (default: 2)")
    parser.add_argument("--seeds", type=int, default=4, help="of the bookings (default: 4)")
    parser.add_argument("--queries", type=int, nargs="+", default=[400, 4000])
    arguments = parser.parse_args()
    folder = arguments.data / "letor" / "mq2008"
    rows, binary = [], []
    if folder.is_dir():
        folds = list(shuffled_folds(read_all(folder), arguments.shuffles))
        rows.append(row_of("MQ2008, grades 0 to 2", len(np.unique(folds[0][0].groups)), 10, folds))
        for name, (kind, parameters, metric) in BINARY.items():
            auto, zero = (
                values_of(kind(shrinkage=a, **parameters), folds, metric, **parameters)
                for a in ("auto", 0)
            )
            binary.append([name, f"{np.nanmean(auto):.4f}", interval(auto, zero)])
    else:
        print(f"No folder {folder}: MQ2008 is skipped.")
    for n_train in arguments.queries:
        for n_grades in NUMBERS_OF_GRADES:
            folds = [bookings(n_train, n_grades, seed) for seed in range(arguments.seeds)]
            rows.append(row_of(f"bookings, grades 0 to {n_grades}", n_train, 5, folds))
    print_table(
        "NDCG, @10 on MQ2008 and @5 on bookings, gain 2^y - 1",
        ["data", "queries", "'auto'", "minus shrinkage=0", "minus mean of ideal DCGs"],
        rows,
    )
    if binary:
        print_table("MQ2008, other measures", ["measure", "'auto'", "minus shrinkage=0"], binary)


if __name__ == "__main__":
    main()
