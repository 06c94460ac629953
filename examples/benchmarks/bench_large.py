"""The default ranker against boosted rankers with early stopping, from 3,000 to a million rows.

The data are six generated worlds of different kinds (`_worlds.LARGE_WORLDS`), with at least 300
test queries each. On request, there are also five worlds where columns have to match, and one of
purchases.

Every peer has at most 1,000 trees and stops after 50 without a better NDCG@10 on one query of
seven. LightGBM and XGBoost have 31 leaves, learning rate 0.05 and three tenths of the columns for
each tree. CatBoost has depth 6 and learning rate 0.1. Each is fitted on the columns of X alone and
with z-scores inside the query; the one with the better held-out result is compared.

The default is a weighted sum of models. "two weighted" is one too: lambdarank and QueryRMSE, with
weights by non-negative least squares of the held-out gains. Intervals are paired over test queries.
Costs are processor seconds of `fit` on one thread (for peers, of the better fit alone).

    python examples/benchmarks/bench_large.py
    python examples/benchmarks/bench_large.py --rows 0.3
    python examples/benchmarks/bench_large.py --sizes 3000 30000 300000 --peers lambdarank

``--rows`` trains on a share of the training queries. ``--sizes`` trains on these numbers of rows of
another world, with 40 columns, five grades and 600 test queries.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
from _harness import Differences, difference, print_table, values_of_queries
from _worlds import FIVE_GRADES, LARGE_MATCHES, LARGE_WORLDS, MANY_PURCHASES, World, features
from bench_mq2008 import sizes
from bench_peers import centered
from bench_stacking import take
from scipy.optimize import nnls
from sklearn.utils import Bunch

from sklearn_rankcal import CalibratedRanker, context_columns

Predict = Callable[[np.ndarray], np.ndarray]
Method = Callable[..., Any]
TREES = {"n_estimators": 1000, "learning_rate": 0.05}
TWO = ("lambdarank", "QueryRMSE")
WORLDS = {**LARGE_WORLDS, **LARGE_MATCHES, **MANY_PURCHASES}
PLOTTED = ("default", "QueryRMSE")


class Fit(NamedTuple):
    """Scores of the test rows and, for peers, of the held-out rows; processor seconds."""

    test: np.ndarray
    held_out: np.ndarray
    seconds: float


def default(train: Bunch, held_out: Bunch, test: Bunch, **parameters: Any) -> Fit:
    """The default draws its own held-out queries from all of them."""
    X, y, groups = (np.concatenate([train[n], held_out[n]]) for n in ("X", "y", "groups"))
    started = time.process_time()
    ranker = CalibratedRanker(**parameters).fit(X, y, groups=groups)
    seconds = time.process_time() - started
    return Fit(ranker.decision_function(test.X, groups=test.groups), np.zeros(0), seconds)


def lightgbm(train: Bunch, held_out: Bunch, objective: str) -> Predict:
    from lightgbm import LGBMRanker, early_stopping

    model = LGBMRanker(
        objective=objective, **TREES, num_leaves=31, colsample_bytree=0.3, n_jobs=1, verbose=-1,
        random_state=0,
    )  # fmt: skip
    model.fit(
        train.X, train.y.astype(int), group=sizes(train.groups),
        eval_set=[(held_out.X, held_out.y.astype(int))], eval_group=[sizes(held_out.groups)],
        eval_at=[10], callbacks=[early_stopping(50, verbose=False)],
    )  # fmt: skip
    return model.predict


def xgboost(train: Bunch, held_out: Bunch, objective: str) -> Predict:
    from xgboost import XGBRanker

    model = XGBRanker(
        objective=objective, **TREES, max_leaves=31, max_depth=0, grow_policy="lossguide",
        tree_method="hist", colsample_bytree=0.3, n_jobs=1, eval_metric="ndcg@10",
        early_stopping_rounds=50, random_state=0,
    )  # fmt: skip
    model.fit(
        train.X, train.y.astype(int), group=sizes(train.groups),
        eval_set=[(held_out.X, held_out.y.astype(int))], eval_group=[sizes(held_out.groups)],
        verbose=False,
    )  # fmt: skip
    return model.predict


def catboost(train: Bunch, held_out: Bunch, objective: str) -> Predict:
    from catboost import CatBoostRanker, Pool

    model = CatBoostRanker(
        loss_function=objective, iterations=1000, learning_rate=0.1, depth=6, thread_count=1,
        eval_metric="NDCG:top=10;type=Exp", early_stopping_rounds=50, random_seed=0,
        verbose=False, allow_writing_files=False,
    )  # fmt: skip
    pools = [Pool(part.X, part.y, group_id=part.groups) for part in (train, held_out)]
    model.fit(pools[0], eval_set=pools[1])
    return model.predict


def with_or_without_context(
    train: Bunch, held_out: Bunch, test: Bunch, *, method: Method, objective: str
) -> Fit:
    """The better of two fits, chosen on the held-out queries."""
    fits = []
    for context in (False, True):
        parts = [
            Bunch(
                X=context_columns(part.X, part.groups) if context else part.X,
                y=part.y,
                groups=part.groups,
            )
            for part in (train, held_out, test)
        ]
        started = time.process_time()
        predict = method(*parts[:2], objective=objective)
        seconds = time.process_time() - started
        out = predict(parts[1].X)
        found = values_of_queries("ndcg@10", held_out.y, out, held_out.groups)
        fits.append((np.nanmean(found), Fit(predict(parts[2].X), out, seconds)))
    return max(fits, key=lambda fit: fit[0])[1]


def weighted(fits: list[Fit], held_out: Bunch, test: Bunch) -> Fit:
    """The weighted sum of fits that is closest to the gains of the held-out queries."""
    columns = [centered(fit.held_out, held_out.groups) for fit in fits]
    weights, _ = nnls(np.column_stack(columns), centered(2.0**held_out.y - 1, held_out.groups))
    scores = np.column_stack([centered(fit.test, test.groups) for fit in fits]) @ weights
    return Fit(scores, np.zeros(0), sum(fit.seconds for fit in fits))


def methods() -> dict[str, Method]:
    found: dict[str, Method] = {
        "default": default,
        "'boosting'": partial(default, regressor="boosting"),
    }
    peers = {
        "lightgbm": (lightgbm, ("lambdarank", "rank_xendcg")),
        "xgboost": (xgboost, ("rank:ndcg",)),
        "catboost": (catboost, ("QueryRMSE",)),
    }
    for library, (method, objectives) in peers.items():
        if find_spec(library) is None:
            print(f"{library} is not installed, and is left out.")
            continue
        for objective in objectives:
            found[objective] = partial(with_or_without_context, method=method, objective=objective)
    return found


def of_sizes(sizes: list[int]) -> dict[str, World]:
    """A world with each number of training rows, in queries of 30, and 600 test queries."""
    worlds = {}
    for size in sizes:
        n_train = size // 30
        make = partial(
            features, n_queries=n_train + 600, n_documents=30, n_columns=40, shares=FIVE_GRADES,
            shift=0.3, level=0.3,
        )  # fmt: skip
        worlds[f"{size:,}"] = World(make, n_train / (n_train + 600))
    return worlds


def draw(points: dict[str, list[tuple[float, float, float, str]]], path: Path) -> None:
    """What each ranker gains over lambdarank, and its seconds of fit, in one color a ranker."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
    ax.axhline(0, color="0.5", linewidth=1)
    for (name, found), color, side in zip(
        points.items(), ("tab:red", "tab:blue"), (1, -1), strict=True
    ):
        seconds, gain, half, worlds = zip(*found, strict=True)
        ax.errorbar(seconds, gain, yerr=half, fmt="o", color=color, capsize=3, label=name)
        for x, y, rows in zip(seconds, gain, worlds, strict=True):
            ax.annotate(
                rows, (x, y), (5 * side, 3), textcoords="offset points", fontsize=8, color=color,
                ha="left" if side > 0 else "right",
            )  # fmt: skip
    ax.set(
        xscale="log", xlabel="processor seconds of fit",
        ylabel="NDCG@10 minus lambdarank,\n95 % intervals",
    )  # fmt: skip
    ax.legend(title="rows beside each point", fontsize=8, title_fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150, transparent=True)  # the site has a dark theme, too
    print(f"drawn: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1.0, help="share of the training queries")
    parser.add_argument("--seed", type=int, default=0, help="of the worlds (default: 0)")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(LARGE_WORLDS))
    parser.add_argument("--sizes", type=int, nargs="+", help="rows of the world of any size")
    parser.add_argument("--peers", nargs="+", help="the peers that are fitted (default: all)")
    parser.add_argument("--plot", type=Path, help="draw gain over lambdarank against seconds")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "The argument 'eval_set' is deprecated")
    tried = methods()
    if arguments.peers:
        tried = {name: tried[name] for name in ("default", *arguments.peers)}
    if arguments.plot is not None and not set(TWO) <= set(tried):
        parser.error(f"--plot compares with {' and '.join(TWO)}, which are not among the peers.")
    rows, pooled, points = [], {}, {}
    worlds = {name: WORLDS[name] for name in arguments.worlds}
    if arguments.sizes:
        worlds = of_sizes(arguments.sizes)
    for world_name, world in worlds.items():
        X, y, groups = world.make(arguments.seed)
        ids = np.random.default_rng(arguments.seed).permutation(np.unique(groups))
        n_train = int(world.train * len(ids))
        some = ids[: int(arguments.rows * n_train)]
        held = np.isin(groups, some[: len(some) // 7])
        trains = np.isin(groups, some[len(some) // 7 :])
        data = Bunch(X=X, y=y, groups=groups)
        train, held_out = take(data, trains), take(data, held)
        test = take(data, np.isin(groups, ids[n_train:]))
        fits = {name: method(train, held_out, test) for name, method in tried.items()}
        if set(TWO) <= set(fits):
            fits["two weighted"] = weighted([fits[name] for name in TWO], held_out, test)
        values = {
            name: values_of_queries("ndcg@10", test.y, fit.test, test.groups)
            for name, fit in fits.items()
        }
        if arguments.plot is not None:
            for name in PLOTTED:
                gain = difference(values[name], values["lambdarank"])
                points.setdefault(name, []).append((fits[name].seconds, *gain, world_name))
        ours = values.pop("default")
        row = [world_name, f"{trains.sum() + held.sum():,}", f"{np.nanmean(ours):.4f}"]
        for name, others in values.items():
            row.append(pooled.setdefault(name, Differences()).add(ours, others))
        rows.append([*row, " ".join(f"{fit.seconds:.0f}" for fit in fits.values())])
        print(*rows[-1], flush=True)
    print_table(
        "NDCG@10 of the default on test queries, its differences with 95 % intervals (* does not "
        f"hold 0), and seconds of fit of {', '.join(fits)}",
        ["world", "rows", "default", *(f"against {name}" for name in pooled), "seconds"],
        [*rows, ["mean", "", "", *(found.mean() for found in pooled.values()), ""]],
    )
    if arguments.plot is not None:
        draw(points, arguments.plot)


if __name__ == "__main__":
    main()
