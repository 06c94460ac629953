"""Rankers from clicks with position bias: MQ2008 with simulated clicks, against true relevance.

The queries of MQ2008 are divided into five parts. Each part tests rankers trained on the remaining
four. A weak linear ranker, fitted to one training query in a hundred, logs clicks: each session
draws a training query and shows ten documents, in a random order around the scores of this ranker.
Users examine position k with probability 1 / k. They click on an examined document with probability
0.1 + 0.9 (2^y - 1) / 3 (`datasets.make_clicks`). Rankers are trained on

* the click probabilities of examined documents, which is full information;
* the share of sessions with a click on the document (`ClickThroughRate`), without a correction;
* `InversePropensity`, with the propensities 1 / k, or with propensities that regression-EM
  estimates from the same clicks;
* `CascadeSatisfaction`, a correction for a different user model than the simulated one;
* the doubly robust `estimate_relevance`, with known and with estimated propensities, which also
  learns from the features;
* the clicks themselves: LightGBM's lambdarank without and with the field `position` of its Dataset,
  and XGBoost's rank:ndcg without and with ``lambdarank_unbiased``. These peers treat every session
  as a query, with one row per impression, and only run up to ``--peer-sessions``.

All rankers except these peers are `CalibratedRanker`. Its loss is ``DCG(gain="linear")`` on full
information and on doubly robust relevance, and an `AggregatedLoss` of it on clicks. This aggregates
all sessions of a query at once, and gives weight 0 to documents that were never shown. All rankers
have the columns of X alone, the same number of trees and leaves, and the same learning rate.

Values use the true grades of the test queries. Each is the mean over several logs (over one log for
the peers from 100,000 sessions on). Intervals come from a paired bootstrap over queries. A method
is within the margin of 0.01 of NDCG@10 if the whole interval of its difference to full information
is.

    python examples/benchmarks/bench_clicks.py --data ../shared/data
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
from _harness import print_table, values_of_queries
from bench_mq2008 import FILES, REPOSITORY, interval
from bench_stacking import read_all, shuffled_folds
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.utils import Bunch

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.aggregation import (
    AggregatedLoss,
    CascadeSatisfaction,
    ClickThroughRate,
    InversePropensity,
    Structure,
    estimate_relevance,
)
from sklearn_rankcal.clicks import estimate_propensities
from sklearn_rankcal.clicks._clicks import read_clicks
from sklearn_rankcal.datasets import make_clicks
from sklearn_rankcal.losses import DCG, Loss
from sklearn_rankcal.metrics import compare_rankings, ndcg_score

TREES, LEAVES, LEARNING_RATE = 100, 7, 0.05
N_SHOWN = 10
THETA = 1 / np.arange(1, N_SHOWN + 1)
FULL, RATE, KNOWN = "full information", "click-through rate", "inverse propensity, known"
ROBUST = "doubly robust, known"
MARGIN = 0.01  # of NDCG@10
METRICS = {"NDCG@10": "ndcg@10", "DCG": "dcg"}


def standardized(scores: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Scores minus the mean of their query, divided by their standard deviation in it."""
    code = np.unique(groups, return_inverse=True)[1]
    n = np.bincount(code)
    centred = scores - (np.bincount(code, scores) / n)[code]
    deviation = np.sqrt(np.bincount(code, centred**2) / n)[code]
    return centred / np.where(deviation > 0, deviation, 1)


def logging_scores(train: Bunch, seed: int) -> np.ndarray:
    """Scores of a linear ranker that is fitted to one training query in a hundred."""
    ids = np.unique(train.groups[train.y > 0])  # queries from which something can be learned
    random = np.random.default_rng(seed)
    few = np.isin(train.groups, random.choice(ids, max(2, len(np.unique(train.groups)) // 100)))
    ranker = CalibratedRanker(Ridge(1.0), loss=DCG(gain="linear"), context=None)
    ranker.fit(train.X[few], train.y[few], groups=train.groups[few])
    return standardized(ranker.decision_function(train.X, groups=train.groups), train.groups)


# -------------------------------------------------------------------- (log, train, test) -> scores


def calibrated(loss: Loss, y: np.ndarray, train: Bunch, test: Bunch) -> np.ndarray:
    regressor = HistGradientBoostingRegressor(
        max_iter=TREES, max_leaf_nodes=LEAVES, learning_rate=LEARNING_RATE,
        l2_regularization=50.0, early_stopping=False,
    )  # fmt: skip
    ranker = CalibratedRanker(regressor, loss=loss, context=None)
    return ranker.fit(train.X, y, groups=train.groups).decision_function(test.X, groups=test.groups)


def full_information(log: Bunch, train: Bunch, test: Bunch) -> np.ndarray:
    return calibrated(DCG(gain="linear"), log.probabilities, train, test)


def aggregated(log: Bunch, train: Bunch, test: Bunch, *, structure: Structure) -> np.ndarray:
    loss = AggregatedLoss(DCG(gain="linear"), structure, subset_size="all")
    return calibrated(loss, log.y, train, test)


def doubly_robust(log: Bunch, train: Bunch, test: Bunch, *, propensities: Any) -> np.ndarray:
    relevance = estimate_relevance(log.y, train.X, propensities)
    return calibrated(DCG(gain="linear"), relevance, train, test)


def lightgbm(log: Bunch, train: Bunch, test: Bunch, *, position: bool) -> np.ndarray:
    """Lambdarank on one row per impression, where a session is a query."""
    import lightgbm

    lengths = np.bincount(log.sessions)
    data = lightgbm.Dataset(
        train.X[log.shown], label=log.clicked.astype(int), group=lengths,
        position=_positions(lengths) if position else None,
    )  # fmt: skip
    parameters = {
        "objective": "lambdarank", "num_leaves": LEAVES, "learning_rate": LEARNING_RATE,
        "num_threads": 1, "seed": 0, "verbose": -1,
    }  # fmt: skip
    return lightgbm.train(parameters, data, TREES).predict(test.X)


def xgboost(log: Bunch, train: Bunch, test: Bunch, *, unbiased: bool) -> np.ndarray:
    """Rank:ndcg on one row per impression, in the order shown."""
    from xgboost import XGBRanker

    model = XGBRanker(
        objective="rank:ndcg", lambdarank_unbiased=unbiased, n_estimators=TREES,
        max_leaves=LEAVES, max_depth=0, grow_policy="lossguide", tree_method="hist",
        learning_rate=LEARNING_RATE, n_jobs=1,
    )  # fmt: skip
    model.fit(train.X[log.shown], log.clicked.astype(int), qid=log.sessions)
    return model.predict(test.X)


def _positions(lengths: np.ndarray) -> np.ndarray:
    starts = np.cumsum(lengths) - lengths
    return (np.arange(lengths.sum()) - np.repeat(starts, lengths)).astype(np.int32)


def errors(log: Bunch, train: Bunch) -> str:
    """Root mean square errors of relevance, of the documents that were shown."""
    inverse = InversePropensity(THETA).scores(read_clicks(log.y))
    shown = ~np.isnan(inverse)
    found = {
        "inverse propensity": inverse,
        "clicks per examination": estimate_relevance(log.y, train.X, THETA, min_exposure=0),
        "doubly robust": estimate_relevance(log.y, train.X, THETA),
    }
    return ", ".join(
        f"{name} {np.sqrt(np.mean((values - log.probabilities)[shown] ** 2)):.3f}"
        for name, values in found.items()
    )


METHODS: dict[str, Callable[..., np.ndarray]] = {
    FULL: full_information,
    RATE: partial(aggregated, structure=ClickThroughRate()),
    KNOWN: partial(aggregated, structure=InversePropensity(THETA)),
    "inverse propensity, estimated": partial(aggregated, structure=InversePropensity()),
    "cascade satisfaction": partial(aggregated, structure=CascadeSatisfaction()),
    ROBUST: partial(doubly_robust, propensities=THETA),
    "doubly robust, estimated": partial(doubly_robust, propensities="estimate"),
}
PEERS: dict[str, Callable[..., np.ndarray]] = {
    "LightGBM lambdarank": partial(lightgbm, position=False),
    "LightGBM lambdarank, position": partial(lightgbm, position=True),
    "XGBoost rank:ndcg": partial(xgboost, unbiased=False),
    "XGBoost rank:ndcg, unbiased": partial(xgboost, unbiased=True),
}


# -------------------------------------------------------------------- what is measured


def measure(
    folds: list[tuple[Bunch, Bunch]],
    n_sessions: int,
    *,
    n_logs: int,
    temperature: float,
    peers: bool,
) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, float]]:
    """Method to metric to values of all test queries; method to seconds of a fit."""
    values: dict[str, dict[str, list[np.ndarray]]] = {}
    seconds: dict[str, list[float]] = {}
    for number, (train, test) in enumerate(folds):
        of_fold: dict[str, dict[str, list[np.ndarray]]] = {}
        for seed in range(n_logs):
            log = make_clicks(
                train.y, train.groups, n_sessions, n_shown=N_SHOWN, propensities=THETA,
                ranking=logging_scores(train, 100 * number + seed), temperature=temperature,
                random_state=100 * number + seed,
            )  # fmt: skip
            if number == seed == 0:
                ratio = estimate_propensities(log.y).propensities / log.propensities
                print(f"Estimated propensities / true ones: {' '.join(f'{r:.2f}' for r in ratio)}")
                print(
                    f"Errors of the relevance of documents shown: {errors(log, train)}", flush=True
                )
            few = peers and (seed == 0 or n_sessions < 100_000)
            for name, method in {**METHODS, **(PEERS if few else {})}.items():
                started = time.process_time()
                scores = method(log, train, test)
                seconds.setdefault(name, []).append(time.process_time() - started)
                for metric, name_of_metric in METRICS.items():
                    found = values_of_queries(name_of_metric, test.y, scores, test.groups)
                    of_fold.setdefault(name, {}).setdefault(metric, []).append(found)
        for name, of_metric in of_fold.items():
            for metric, found in of_metric.items():
                values.setdefault(name, {}).setdefault(metric, []).append(np.mean(found, axis=0))
    pooled = {
        name: {metric: np.concatenate(parts) for metric, parts in of_metric.items()}
        for name, of_metric in values.items()
    }
    return pooled, {name: float(np.median(took)) for name, took in seconds.items()}


def report(
    values: dict[str, dict[str, np.ndarray]], seconds: dict[str, float], n_sessions: int
) -> None:
    defined = ~np.isnan(values[FULL]["NDCG@10"])
    rows = [
        [
            name,
            *(f"{np.mean(of[metric][defined]):.4f}" for metric in METRICS),
            "" if name == FULL else interval(of["NDCG@10"], values[FULL]["NDCG@10"]),
            "" if name == KNOWN else interval(of["NDCG@10"], values[KNOWN]["NDCG@10"]),
            "" if name == ROBUST else interval(values[ROBUST]["NDCG@10"], of["NDCG@10"]),
            f"{seconds[name]:.1f}",
        ]
        for name, of in values.items()
    ]
    print_table(
        f"{n_sessions:,} sessions; means over {np.count_nonzero(defined)} test queries with a "
        "relevant document, differences of NDCG@10 with 95 % intervals (* does not contain 0)",
        ["trained on", *METRICS, f"less {FULL}", f"less {KNOWN}", f"{ROBUST}, less it", "seconds"],
        rows,
    )
    for name in values:
        lost = compare_rankings(None, values[FULL]["NDCG@10"], values[name]["NDCG@10"])
        if name != FULL:
            word = "within" if lost.high < MARGIN else "not within"
            print(f"{name}: {word} {MARGIN} of full information")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=REPOSITORY / ".." / "shared" / "data",
        help="folder that contains letor/mq2008/S1.txt.gz .. S5.txt.gz",
    )  # fmt: skip
    parser.add_argument(
        "--sessions", type=int, nargs="+", default=[10_000, 100_000, 1_000_000],
        help="numbers of sessions (default: 10000 100000 1000000)",
    )  # fmt: skip
    parser.add_argument("--logs", type=int, default=3, help="click logs per fold (default: 3)")
    parser.add_argument(
        "--peer-sessions", type=int, default=100_000,
        help="largest number of sessions for LightGBM and XGBoost (default: 100000)",
    )  # fmt: skip
    parser.add_argument(
        "--temperature", type=float, default=0.5,
        help="of the logged rankings, in standard deviations of the scores of a query "
        "(default: 0.5)",
    )  # fmt: skip
    arguments = parser.parse_args()
    folder = arguments.data / "letor" / "mq2008"
    if not all((folder / name).is_file() for name in FILES):
        print(f"No MQ2008 ({FILES[0]} .. {FILES[-1]}) in {folder}: nothing measured.")
        return
    folds = list(shuffled_folds(read_all(folder), 1))
    for number, (train, _) in enumerate(folds[:1]):
        scores = logging_scores(train, 100 * number)
        ndcg = ndcg_score(train.y, scores, groups=train.groups, k=10)
        print(f"NDCG@10 of the logging ranker of the first fold, on its queries: {ndcg:.4f}")
    for n_sessions in arguments.sessions:
        values, seconds = measure(
            folds, n_sessions, n_logs=arguments.logs, temperature=arguments.temperature,
            peers=n_sessions <= arguments.peer_sessions,
        )  # fmt: skip
        report(values, seconds, n_sessions)


if __name__ == "__main__":
    main()
