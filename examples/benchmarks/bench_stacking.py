"""The default ranker and its stack against LambdaMART and other boosted rankers, on MQ2008.

The protocol: the queries are shuffled and divided into five parts. Each part tests rankers trained
on the remaining four: every query is tested once in each shuffle. A query's value is the mean over
the shuffles, and intervals are paired over queries.

All boosted rankers have 100 trees and learning rate 0.05. Each peer is fitted with 7 and with 15
leaves, on the columns of X alone and with z-scores inside the query, as in `CalibratedRanker`. A
table shows the best of these four settings, chosen on the test queries themselves, in the peer's
favour. `CalibratedRanker` is at its defaults.

Costs are processor seconds of `fit` on one thread, as ratios to lambdarank with its best setting in
the same run.

    python examples/benchmarks/bench_stacking.py --data ../shared/data
    python examples/benchmarks/bench_stacking.py --losses

`bench_distilled.py` and `bench_large.py` compare on generated data.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
from _harness import print_table
from bench_mq2008 import FILES, METRICS, N_FEATURES, REPOSITORY, interval, sizes
from sklearn.utils import Bunch

from sklearn_rankcal import CalibratedRanker, context_columns, sizes_to_groups
from sklearn_rankcal.datasets import load_letor
from sklearn_rankcal.losses import MAP, MAPByScores
from sklearn_rankcal.models import BoostingCV

N_PARTS = 5
TREES, LEARNING_RATE = 100, 0.05
LEAVES = (7, 15)
N_THREADS = int(os.environ["OMP_NUM_THREADS"])
DEFAULT = "CalibratedRanker()"
LAMBDARANK = "LightGBM lambdarank"
Method = Callable[[Bunch, Bunch], tuple[np.ndarray, float]]


# -------------------------------------------------------------------- data


def read_all(folder: Path) -> Bunch:
    """All rows of MQ2008."""
    parts = [load_letor(folder / name, n_features=N_FEATURES) for name in FILES]
    return Bunch(
        **{name: np.concatenate([p[name] for p in parts]) for name in ("X", "y", "groups")}
    )


def shuffled_folds(data: Bunch, n_shuffles: int) -> Iterator[tuple[Bunch, Bunch]]:
    """Yield (train, test), five for each shuffle; every query tests once in each shuffle."""
    ids, code = np.unique(data.groups, return_inverse=True)
    for seed in range(n_shuffles):
        part_of = np.random.default_rng(seed).permutation(len(ids)) % N_PARTS
        for part in range(N_PARTS):
            inside = part_of[code] == part
            yield take(data, ~inside), take(data, inside)


def take(data: Bunch, keep: np.ndarray) -> Bunch:
    return Bunch(X=data.X[keep], y=data.y[keep], groups=data.groups[keep])


# -------------------------------------------------------------------- rankers


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    fitted = fit()
    return fitted, time.process_time() - started


def calibrated(train: Bunch, test: Bunch, **parameters: Any) -> tuple[np.ndarray, float]:
    """(minus the positions of the test rows, seconds of fit)."""
    ranker = CalibratedRanker(**parameters)
    ranker, seconds = timed(lambda: ranker.fit(train.X, train.y, groups=train.groups))
    return -ranker.predict(test.X, groups=test.groups), seconds


def tables(train: Bunch, test: Bunch, context: bool) -> tuple[np.ndarray, np.ndarray]:
    if not context:
        return train.X, test.X
    return context_columns(train.X, train.groups), context_columns(test.X, test.groups)


def lightgbm(objective: str, leaves: int) -> Any:
    from lightgbm import LGBMRanker

    return LGBMRanker(
        objective=objective, n_estimators=TREES, learning_rate=LEARNING_RATE, num_leaves=leaves,
        n_jobs=N_THREADS, random_state=0, verbose=-1,
    )  # fmt: skip


def xgboost(objective: str, leaves: int) -> Any:
    from xgboost import XGBRanker

    # max_leaves binds only when trees grow by loss, without a limit of depth
    return XGBRanker(
        objective=objective, n_estimators=TREES, learning_rate=LEARNING_RATE, max_leaves=leaves,
        tree_method="hist", grow_policy="lossguide", max_depth=0, n_jobs=N_THREADS,
    )  # fmt: skip


def catboost(objective: str, leaves: int) -> Any:
    from catboost import CatBoostRanker

    return CatBoostRanker(
        loss_function=objective, iterations=TREES, learning_rate=LEARNING_RATE, max_leaves=leaves,
        grow_policy="Lossguide", thread_count=N_THREADS, random_seed=0, verbose=False,
        allow_writing_files=False,
    )  # fmt: skip


def peer(
    train: Bunch, test: Bunch, *, make: Callable[[str, int], Any], objective: str, leaves: int,
    context: bool,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """(scores of the test rows, seconds of fit)."""
    X, X_test = tables(train, test, context)
    y, counts = train.y.astype(int), sizes(train.groups)
    # CatBoost takes the query of each row. Other libraries take the size of each query.
    queries = {"group_id": sizes_to_groups(counts)} if make is catboost else {"group": counts}
    model = make(objective, leaves)  # outside the timing, because it imports the library
    model, seconds = timed(lambda: model.fit(X, y, **queries))
    return model.predict(X_test), seconds


def make_peers() -> dict[str, dict[str, Method]]:
    """Name to its settings; peers that are not installed are left out."""
    libraries = {
        "lightgbm": (lightgbm, "LightGBM", ["lambdarank", "rank_xendcg"]),
        "xgboost": (xgboost, "XGBoost", ["rank:ndcg", "rank:pairwise"]),
        "catboost": (catboost, "CatBoost", ["QueryRMSE", "YetiRank"]),
    }
    peers: dict[str, dict[str, Method]] = {}
    for module, (make, name, objectives) in libraries.items():
        if find_spec(module) is None:
            print(f"{name} is not installed, and is left out.")
            continue
        for objective in objectives:
            peers[f"{name} {objective}"] = {
                f"{leaves} leaves, {'with z-scores' if context else 'X alone'}": partial(
                    peer, make=make, objective=objective, leaves=leaves, context=context
                )
                for leaves in LEAVES
                for context in (False, True)
            }
    return peers


def make_stacks() -> dict[str, Method]:
    """The models on the curve of gain against cost, cheapest first."""

    stacks = {
        "'boosting', one model": "boosting",
        "targets + labels + forest, 3 folds": BoostingCV(
            (None, "labels", "forest"), context="auto"
        ),
        "'stacked', 5 folds": "stacked",
    }
    return {name: partial(calibrated, regressor=model) for name, model in stacks.items()}


LOSSES: dict[str, dict[str, Any]] = {
    "loss='ndcg@10'": {"loss": "ndcg@10"},
    "loss='pd_by_scores'": {"loss": "pd_by_scores"},
    "loss='pd'": {"loss": "pd"},
    "loss='err'": {"loss": "err"},
    "loss=MAPByScores(threshold=1)": {"loss": MAPByScores(threshold=1)},
    "loss=MAP(threshold=1)": {"loss": MAP(threshold=1)},
}


# -------------------------------------------------------------------- measuring


def measure(
    method: Method, folds: list[tuple[Bunch, Bunch]]
) -> tuple[dict[str, np.ndarray], float]:
    """Each metric per query, the mean over shuffles; median seconds of fit."""
    seconds: list[float] = []
    # ERR of bench_mq2008 is for the grades 0, 1 and 2.
    known = all(train.y.max() <= 2 and test.y.max() <= 2 for train, test in folds)
    metrics = {name: of for name, of in METRICS.items() if name != "ERR" or known}
    values: dict[str, dict[Any, list[float]]] = {name: {} for name in metrics}
    for train, test in folds:
        scores, took = method(train, test)
        seconds.append(took)
        ids = list(dict.fromkeys(test.groups.tolist()))
        of_metric = {name: metric(test.y, scores, test.groups) for name, metric in metrics.items()}
        if known:
            # ERR is 0, not undefined, without a relevant document: every ranking is equal there.
            of_metric["ERR"] = np.where(np.isnan(of_metric["NDCG@10"]), np.nan, of_metric["ERR"])
        for name, per_query in of_metric.items():
            for query, value in zip(ids, per_query.tolist(), strict=True):
                values[name].setdefault(query, []).append(value)
    order = sorted(values["NDCG@10"])
    return {n: np.array([np.mean(of[q]) for q in order]) for n, of in values.items()}, median(
        seconds
    )


def best_setting(
    settings: dict[str, Method], folds: list[tuple[Bunch, Bunch]]
) -> tuple[str, dict[str, np.ndarray], float]:
    """The setting with the best NDCG@10 on the test queries."""
    results = {name: measure(method, folds) for name, method in settings.items()}
    best = max(results, key=lambda name: np.nanmean(results[name][0]["NDCG@10"]))
    return best, *results[best]


def compare(folds: list[tuple[Bunch, Bunch]], plot: Path | None) -> None:
    """Peers, the default, and the curve of gain against cost."""
    default, cost = measure(calibrated, folds)
    found: dict[str, tuple[dict[str, np.ndarray], float]] = {DEFAULT: (default, cost)}
    for name, method in make_stacks().items():
        found[f"  {name}"] = measure(method, folds)
    for name, settings in make_peers().items():
        setting, *result = best_setting(settings, folds)
        found[f"{name} ({setting})"] = (result[0], result[1])
    base = next((name for name in found if name.startswith(LAMBDARANK)), DEFAULT)
    rows = []
    for name, (values, seconds) in found.items():
        rows.append([
            name,
            *(f"{np.nanmean(values[metric]):.4f}" for metric in METRICS),
            *(
                "" if name == other else interval(values["NDCG@10"], found[other][0]["NDCG@10"])
                for other in (base, DEFAULT)
            ),
            f"{seconds / found[base][1]:.1f}",
        ])  # fmt: skip
    print_table(
        f"Means over {np.count_nonzero(~np.isnan(default['NDCG@10']))} queries; difference of "
        "NDCG@10 with its 95 % interval (* does not hold 0); seconds of fit as a ratio to "
        "lambdarank",
        ["ranker", *METRICS, "against lambdarank", f"against {DEFAULT}", "cost"],
        rows,
    )
    if plot is not None:
        draw({n: (v["NDCG@10"], s / found[base][1]) for n, (v, s) in found.items()}, plot)


def draw(points: dict[str, tuple[np.ndarray, float]], path: Path) -> None:
    """NDCG@10 next to the cost of fit, in a size that a phone can show."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    values = {name: float(np.nanmean(of_queries)) for name, (of_queries, _) in points.items()}
    names = sorted(points, key=values.__getitem__)
    colors = ["tab:red" if name.startswith((" ", DEFAULT)) else "0.35" for name in names]
    places = np.arange(len(names))
    figure, (left, right) = plt.subplots(
        1, 2, sharey=True, figsize=(5.2, 0.8 + 0.28 * len(names)), layout="constrained"
    )
    left.scatter([values[name] for name in names], places, color=colors, zorder=2)
    right.scatter([points[name][1] for name in names], places, color=colors, zorder=2)
    # without the settings of the peers, which the table has
    left.set_yticks(places, [name.strip().partition(" (")[0] for name in names])
    left.set(xlabel="NDCG@10,\nMQ2008")
    left.xaxis.set_major_locator(plt.MaxNLocator(3))
    right.set(xscale="log", xlabel="cost of fit, as a ratio\nto lambdarank")
    right.set_xticks([0.5, 2, 10, 50], ["0.5", "2", "10", "50"])
    right.minorticks_off()
    for ax in (left, right):
        ax.grid(color="0.9")
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150, transparent=True)  # the site has a dark theme, too
    print(f"drawn: {path}")


def compare_losses(folds: list[tuple[Bunch, Bunch]]) -> None:
    """Whether the loss that is named is at least as good as the default on its own measure."""
    default, _ = measure(calibrated, folds)
    rows = [[DEFAULT, *(f"{np.nanmean(default[metric]):.4f}" for metric in METRICS)]]
    for name, parameters in LOSSES.items():
        values, _ = measure(partial(calibrated, **parameters), folds)
        rows.append([name, *(interval(values[metric], default[metric]) for metric in METRICS)])
    print_table(
        "The default, and the difference of other losses with its 95 % interval",
        ["loss", *METRICS],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=REPOSITORY / ".." / "shared" / "data",
        help="folder that contains letor/mq2008/S1.txt.gz .. S5.txt.gz",
    )  # fmt: skip
    parser.add_argument("--shuffles", type=int, default=3, help="(default: 3)")
    parser.add_argument("--plot", type=Path, help="draw NDCG@10 against cost into this file")
    parser.add_argument("--losses", action="store_true", help="compare the losses instead")
    arguments = parser.parse_args()
    folder = arguments.data / "letor" / "mq2008"
    if not all((folder / name).is_file() for name in FILES):
        print(f"No MQ2008 ({FILES[0]} .. {FILES[-1]}) in {folder}: nothing measured.")
        return
    folds = list(shuffled_folds(read_all(folder), arguments.shuffles))
    if arguments.losses:
        compare_losses(folds)
    else:
        compare(folds, arguments.plot)


if __name__ == "__main__":
    main()
