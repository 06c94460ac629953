"""The default ranker against boosted rankers and a stack of them, on real public collections.

Films, sushi, persons met, songs, cars, tennis players, racing drivers and horses: the tables of
`_real_collections.py`, each built from raw files under ``--data`` by one function. Three folds of
queries test once each. A query's value is NDCG@10, and intervals are paired over queries.

Every peer is fitted as in `bench_large.py`: early stopping on one query of seven, on X alone and on
X with z-scores inside the query; the one with the better held-out result counts. The "peers
stacked" are lambdarank, rank_xendcg and a forest of randomized trees, each fitted on three folds of
the training queries, with weights by non-negative least squares of the held-out gains; the models
of the folds are averaged. Costs are processor seconds of `fit` on one thread (for peers, of the
better fit alone), as ratios to lambdarank.

From larger collections, random queries with 20,000 rows in total are taken; ``--rows`` changes
this.

    python examples/benchmarks/bench_real.py --data ../shared/data/real
    python examples/benchmarks/bench_real.py --data ../shared/data/real --collections tennis sushi

The folder holds one folder of raw files for each collection. No raw file is part of this
repository: a run lists missing files, with their origin and licence.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
from _harness import Differences, print_table, values_of_queries
from _real_collections import SOURCES
from bench_large import (
    Fit,
    Method,
    Predict,
    catboost,
    default,
    lightgbm,
    methods,
    weighted,
    with_or_without_context,
)
from bench_mq2008 import REPOSITORY
from bench_stacking import take
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.utils import Bunch

from sklearn_rankcal.queries import Queries

REFERENCE, BASE = "default", "lambdarank"
N_STACK_FOLDS = 3


def forest(train: Bunch, held_out: Bunch, objective: str) -> Predict:
    """A forest of gains; the held-out rows only choose its columns."""
    model = ExtraTreesRegressor(100, min_samples_leaf=5, max_features=0.3, random_state=0)
    return model.fit(train.X, 2.0**train.y - 1).predict


MEMBERS: list[tuple[Callable[..., Predict], str]] = [
    (lightgbm, "lambdarank"),
    (lightgbm, "rank_xendcg"),
    (forest, "squared error"),
]


def part_of_queries(groups: np.ndarray, n_parts: int, seed: int) -> np.ndarray:
    """The part of each row, in which whole queries are dealt out in random order."""
    ids, code = np.unique(groups, return_inverse=True)
    return (np.random.default_rng(seed).permutation(len(ids)) % n_parts)[code]


def peers_stacked(train: Bunch, held_out: Bunch, test: Bunch) -> Fit:
    data = Bunch(**{n: np.concatenate([train[n], held_out[n]]) for n in ("X", "y", "groups")})
    part = part_of_queries(data.groups, N_STACK_FOLDS, seed=0)
    members = [Fit(np.zeros(len(test.y)), np.zeros(len(data.y)), 0.0) for _ in MEMBERS]
    for fold in range(N_STACK_FOLDS):
        held = part == fold
        inner, outer = take(data, ~held), take(data, held)
        for m, (method, objective) in enumerate(MEMBERS):
            fit = with_or_without_context(inner, outer, test, method=method, objective=objective)
            members[m].held_out[held] = fit.held_out
            members[m] = members[m]._replace(
                test=members[m].test + fit.test, seconds=members[m].seconds + fit.seconds
            )
    return weighted(members, data, test)


def rankers() -> dict[str, Method]:
    found = methods()
    ours = {name: found.pop(name) for name in list(found)[:2]}
    ours["'stacked'"] = partial(default, regressor="stacked")
    if "QueryRMSE" in found:
        found["YetiRank"] = partial(with_or_without_context, method=catboost, objective="YetiRank")
    if BASE in found:
        found["peers stacked"] = peers_stacked
    return {**ours, **found}


def read(folder: Path, names: list[str], n_rows: int) -> dict[str, Bunch]:
    """The collections with all files, cut to random queries with a maximum number of rows."""
    found = {}
    for name in names:
        source = SOURCES[name]
        missing = [file for file in source.files if not (folder / name / file).is_file()]
        if missing:
            print(
                f"{name} is left out, because {folder / name} does not contain "
                f"{', '.join(missing)}. Its raw files come from {source.address} (licence: "
                f"{source.licence})."
            )
            continue
        X, y, groups = source.build(folder / name)
        ids, sizes = np.unique(groups, return_counts=True)
        order = np.random.default_rng(0).permutation(len(ids))
        ids = ids[order[np.cumsum(sizes[order]) <= n_rows]]
        found[name] = take(Bunch(X=X, y=y, groups=groups), np.isin(groups, ids))
    return found


def measure(
    data: Bunch, tried: dict[str, Method], draws: list[int], n_folds: int
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """NDCG@10 of each query, its mean over the draws, and the seconds of all fits."""
    ids = np.unique(data.groups)
    values = {name: np.empty((len(draws), len(ids))) for name in tried}
    seconds = dict.fromkeys(tried, 0.0)
    for draw, seed in enumerate(draws):
        part = part_of_queries(data.groups, n_folds, seed)
        for fold in range(n_folds):
            test, rest = take(data, part == fold), take(data, part != fold)
            held = part_of_queries(rest.groups, 7, seed + 1) == 0
            train, held_out = take(rest, ~held), take(rest, held)
            place = np.searchsorted(ids, Queries.from_groups(test.groups).ids)
            for name, method in tried.items():
                fit = method(train, held_out, test)
                seconds[name] += fit.seconds
                values[name][draw, place] = values_of_queries(
                    "ndcg@10", test.y, fit.test, test.groups
                )
    return {name: found.mean(axis=0) for name, found in values.items()}, seconds


def draw(found: dict[str, list[tuple[float, float]]], names: list[str], path: Path) -> None:
    """The default minus each ranker on each collection, with intervals, for a phone's width."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5.4, 0.9 + 0.42 * len(names)), layout="constrained")
    ax.axvline(0, color="0.35", linewidth=1)
    for number, (ranker, differences) in enumerate(found.items()):
        centers, halves = np.transpose(differences)
        places = np.arange(len(names)) + 0.2 * (number - (len(found) - 1) / 2)
        ax.errorbar(centers, places, xerr=halves, fmt="o", markersize=4, capsize=2, label=ranker)
    ax.set_yticks(np.arange(len(names)), names)
    ax.invert_yaxis()
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel("NDCG@10 of the default minus theirs, 95 % intervals")
    ax.legend(fontsize=8, frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150, transparent=True)  # the site has a dark theme, too
    print(f"drawn: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=REPOSITORY / ".." / "shared" / "data" / "real",
        help="folder with a folder of raw files for each collection",
    )  # fmt: skip
    parser.add_argument("--collections", nargs="+", choices=SOURCES, default=list(SOURCES))
    parser.add_argument("--peers", nargs="+", help="the rankers that are compared (default: all)")
    parser.add_argument("--folds", type=int, default=3, help="(default: 3)")
    parser.add_argument(
        "--draws", type=int, nargs="+", default=[0], help="the permutations of queries (default: 0)"
    )
    parser.add_argument(
        "--rows", type=int, default=20_000,
        help="rows of a collection, at most: queries beyond are left out (default: 20,000)",
    )  # fmt: skip
    parser.add_argument("--plot", type=Path, help="draw the differences into this file")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "The argument 'eval_set' is deprecated")
    tried = rankers()
    if arguments.peers:
        tried = {name: tried[name] for name in (REFERENCE, *arguments.peers)}
    collections = read(arguments.data, arguments.collections, arguments.rows)
    if not collections:
        print("Nothing is measured.")
        return
    cells: dict[str, list[str]] = {name: [] for name in tried}
    costs: dict[str, list[float]] = {name: [] for name in tried}
    pooled = {name: Differences() for name in tried if name != REFERENCE}
    for name, data in collections.items():
        values, seconds = measure(data, tried, arguments.draws, arguments.folds)
        ours = values[REFERENCE]
        cells[REFERENCE].append(f"{np.nanmean(ours):.4f}")
        for other, differences in pooled.items():
            cells[other].append(differences.add(ours, values[other]))
        for other, took in seconds.items():
            costs[other].append(took)
        for other, took in seconds.items():
            print(f"{name}, {other}: {cells[other][-1]}, {took:.0f} s", flush=True)
    header = ["", *collections]
    shapes = [
        ["queries", *(f"{len(np.unique(data.groups)):,}" for data in collections.values())],
        ["rows", *(f"{len(data.y):,}" for data in collections.values())],
        ["columns", *(str(data.X.shape[1]) for data in collections.values())],
    ]
    rows = [[REFERENCE, *cells[REFERENCE], ""]]
    rows += [[f"minus {name}", *cells[name], found.mean()] for name, found in pooled.items()]
    print_table(
        "NDCG@10 of the default on test queries, and its differences to other rankers with 95 % "
        "intervals (* does not hold 0)",
        [*header, "mean"],
        [*([*row, ""] for row in shapes), *rows],
    )
    base = BASE if BASE in costs else REFERENCE
    ratios = {
        name: [took / unit for took, unit in zip(found, costs[base], strict=True)]
        for name, found in costs.items()
    }
    print_table(
        f"Processor seconds of fit, as ratios to {base}",
        [*header, "median"],
        [
            [name, *(f"{ratio:.1f}" for ratio in found), f"{np.median(found):.1f}"]
            for name, found in ratios.items()
        ],
    )
    if arguments.plot is not None:
        draw({name: each.found for name, each in pooled.items()}, list(collections), arguments.plot)


if __name__ == "__main__":
    main()
