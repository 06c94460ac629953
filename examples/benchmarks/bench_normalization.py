"""Listwise surrogates with the normalization of NDCG and with their own.

Ravikumar, Tewari and Yang (2011) normalize the gains of a query as NDCG does, before they take
expectations. Squared error, cosine distance and cross-entropy are then consistent for NDCG. With
the normalizations of their original publications, they are not. This script compares both versions:

mq2008
    Five parts of shuffled queries, each tested once by rankers trained on the remaining parts.
    Rankers are linear (`LinearRanker`) or boosted (`BoostedRanker`).
world
    Queries of two documents. NDCG's normalization gives one the larger expected gain, and the
    surrogate's own normalization the other. A query has one of two pairs of labels, chosen for each
    surrogate to make the two versions differ most. NDCG is exact: the expectation over both pairs,
    for the ranking by the exact expected targets.

A last table counts the differences as table 1 of their supplement does, with its column for MQ2008.

NDCG@1 to @10 are means over queries. A paired permutation test over queries tests a difference. Its
p-value is the chance of a difference at least as large if the two versions are interchangeable in
every query.

    python examples/benchmarks/bench_normalization.py --data ../shared/data --plot normalization.svg
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
from _harness import print_table, values_of_queries
from bench_mq2008 import REPOSITORY
from bench_stacking import N_PARTS, read_all, shuffled_folds
from scipy.stats import permutation_test
from sklearn.utils import Bunch

from sklearn_rankcal import BoostedRanker, LinearRanker
from sklearn_rankcal.losses import NDCG
from sklearn_rankcal.metrics import ndcg_score
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import Cosine, PointwiseSquared, Softmax

CUTOFFS = range(1, 11)
SHOWN = (1, 5, 10)  # the cutoffs of the paper's table 1
LISTWISE = {"squared error": PointwiseSquared, "cosine": Cosine, "cross-entropy": Softmax}
NORMALIZATIONS = {"NDCG": "loss", "own": "own"}


def rankers(kind: str, surrogate: Any) -> Any:
    loss = NDCG(shrinkage=0.0)  # the normalization of the paper
    if kind == "linear":
        return LinearRanker(surrogate, loss=loss, alpha=1.0)
    return BoostedRanker(surrogate, loss=loss)


# -------------------------------------------------------------------- the world


def mean_differences(kind: Any, labels: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
    """E[v_2 - v_1] over its standard deviation, by the loss's normalization and by its own.

    `labels` are the two label vectors of a query, one a row, and p are chances of the first.
    """
    queries = Queries.uniform(2, 2)
    found = []
    for parameter in NORMALIZATIONS.values():
        v = kind(parameter).targets(NDCG(shrinkage=0.0), labels.ravel(), queries).reshape(2, 2)
        first, second = v[:, 1] - v[:, 0]
        spread = np.sqrt(p * (1 - p)) * abs(first - second)
        found.append((p * first + (1 - p) * second) / spread)
    return found


def most_contested(kind: Any) -> tuple[np.ndarray, float]:
    """The labels and the probability that make the normalizations disagree most clearly."""
    p = np.linspace(0.01, 0.99, 99)
    best: tuple[float, np.ndarray, float] = (0.0, np.zeros((2, 2)), 0.0)
    for grades in itertools.product(range(1, 6), repeat=4):
        labels = np.array(grades, dtype=np.float64).reshape(2, 2)
        if not (labels[0, 0] < labels[0, 1] and labels[1, 0] > labels[1, 1]):
            continue
        by_loss, by_own = mean_differences(kind, labels, p)
        clear = np.where(by_loss * by_own < 0, np.minimum(abs(by_loss), abs(by_own)), 0.0)
        if clear.max() > best[0]:
            best = (float(clear.max()), labels, float(p[clear.argmax()]))
    return best[1], best[2]


def expected_ndcg(kind: Any, labels: np.ndarray, p: float) -> list[float]:
    """The expected NDCG of the ranking by each normalization, if all expectations are known."""
    found = []
    for difference in mean_differences(kind, labels, np.array([p])):
        ranks = [[2, 1]] if difference[0] > 0 else [[1, 2]]
        each = [ndcg_score([pair], ranks=ranks) for pair in labels]
        found.append(p * each[0] + (1 - p) * each[1])
    return found


# -------------------------------------------------------------------- comparison


def ndcg_of_queries(ranker: Any, train: Bunch, test: Bunch, ks: Any) -> np.ndarray:
    """NDCG@k of each test query, of shape (n_cutoffs, n_queries); NaN where it is undefined."""
    ranker.fit(train.X, train.y, groups=train.groups)
    scores = -ranker.predict(test.X, groups=test.groups)
    return np.array([values_of_queries(f"ndcg@{k}", test.y, scores, test.groups) for k in ks])


def permutation_p(difference: np.ndarray) -> float:
    """The p-value of a paired permutation test that the mean difference is 0."""
    result = permutation_test(
        (difference, np.zeros(len(difference))),
        lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=9999,
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue)


def compare(
    parts: Callable[[], Iterator[tuple[Bunch, Bunch]]], make: Callable[[str], Any], ks: Any
) -> dict[str, np.ndarray]:
    """The values of all test queries for each normalization, of shape (n_cutoffs, n_queries)."""
    return {
        name: np.hstack(
            [ndcg_of_queries(make(parameter), train, test, ks) for train, test in parts()]
        )
        for name, parameter in NORMALIZATIONS.items()
    }


def rows_of_table(
    what: str, values: dict[str, np.ndarray], cutoffs: Iterable[int]
) -> list[list[str]]:
    """One row for each cutoff. Values of a single cutoff have one row too."""
    rows = []
    for k in cutoffs:
        ndcg, own = (values[name][min(k, len(values[name])) - 1] for name in NORMALIZATIONS)
        defined = ~np.isnan(ndcg)
        difference = (ndcg - own)[defined]
        rows.append(
            [
                f"{what}, NDCG@{k}",
                f"{np.mean(ndcg[defined]):.4f}",
                f"{np.mean(own[defined]):.4f}",
                f"{np.mean(difference):+.4f}",
                f"{permutation_p(difference):.3f}",
            ]
        )
    return rows


def summary(values: dict[str, dict[str, np.ndarray]]) -> list[str]:
    """How many comparisons differ at the 5 % level, and the mean relative change, in percent."""
    better = same = worse = 0
    changes = []
    for one in values.values():
        for k in SHOWN:
            ndcg, own = (one[name][k - 1] for name in NORMALIZATIONS)
            difference = (ndcg - own)[~np.isnan(ndcg)]
            clear = permutation_p(difference) < 0.05
            better += clear and difference.mean() > 0
            worse += clear and difference.mean() < 0
            same += not clear
            changes.append(100 * difference.mean() / np.nanmean(own))
    return [str(better), str(same), str(worse), f"{np.mean(changes):+.2f} %"]


def plot(found: dict[str, dict[str, np.ndarray]], file: Path) -> None:
    import matplotlib.pyplot as plt

    # in a size that a phone can show: a column for linear, and one for boosted rankers
    figure, axes = plt.subplots(
        len(found) // 2, 2, figsize=(5.2, 6.6), sharex=True, sharey=True, layout="constrained"
    )
    for axis, (what, values) in zip(axes.T.flat, found.items(), strict=True):
        for name, style in zip(NORMALIZATIONS, ("o-", "s--"), strict=True):
            axis.plot(list(CUTOFFS), np.nanmean(values[name], axis=1), style, label=name)
        axis.set_title(what, fontsize="medium")
        axis.set_xticks([1, 3, 5, 10])
    for axis in axes[-1]:
        axis.set_xlabel("cutoff k")
    for axis in axes[:, 0]:
        axis.set_ylabel("NDCG@k")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        title="normalization",
        loc="outside lower center",
        ncols=2,
        framealpha=0,
    )
    figure.savefig(file, transparent=True)  # the site has a dark theme, too


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared" / "data")
    parser.add_argument("--shuffles", type=int, default=2, help="of MQ2008 (default: 2)")
    parser.add_argument("--plot", type=Path, help="write a figure of NDCG@1 to @10 to this file")
    arguments = parser.parse_args()
    header = ["version", "NDCG's", "own", "difference", "p-value"]
    folder = arguments.data / "letor" / "mq2008"
    if folder.is_dir():
        data, found, rows = read_all(folder), {}, []
        for kind in ("linear", "boosted"):
            for what, surrogate in LISTWISE.items():
                values = compare(
                    lambda: shuffled_folds(data, arguments.shuffles),
                    lambda name, kind=kind, surrogate=surrogate: rankers(kind, surrogate(name)),
                    CUTOFFS,
                )
                # a query's value is the mean over the shuffles
                values = {name: _mean_of_shuffles(data, one, arguments.shuffles)
                          for name, one in values.items()}  # fmt: skip
                found[f"{what}, {kind}"] = values
                rows += rows_of_table(f"{what}, {kind}", values, SHOWN)
        print_table(
            f"MQ2008, {N_PARTS} parts, {arguments.shuffles} shuffles of the queries", header, rows
        )
        print_table(
            "NDCG's normalization against their own, at NDCG@1, @5 and @10",
            ["", "better", "same", "worse", "mean change"],
            [["P4, table 1", "0", "4", "5", "-2.02 %"]]
            + [
                [f"ours, {kind}", *summary({w: v for w, v in found.items() if w.endswith(kind)})]
                for kind in ("linear", "boosted")
            ],
        )
        if arguments.plot is not None:
            plot(found, arguments.plot)
    else:
        print(f"No folder {folder}: MQ2008 is skipped.")
    rows = []
    for what, surrogate in LISTWISE.items():
        labels, p = most_contested(surrogate)
        ndcg, own = expected_ndcg(surrogate, labels, p)
        rows.append(
            [
                f"{what}, {_shown(labels)} with p = {p:.2f}",
                *(f"{ndcg:.4f}", f"{own:.4f}", f"{ndcg - own:+.4f}"),
            ]
        )
    print_table("The world in which the normalizations disagree, exactly", header[:4], rows)


def _shown(labels: np.ndarray) -> str:
    return " or ".join(f"({a:g}, {b:g})" for a, b in labels)


def _mean_of_shuffles(data: Bunch, values: np.ndarray, n_shuffles: int) -> np.ndarray:
    """Average the values of each query over the shuffles. Each shuffle tests every query once."""
    ids = np.concatenate(
        [list(dict.fromkeys(test.groups.tolist())) for _, test in shuffled_folds(data, n_shuffles)]
    )
    order = np.argsort(ids, kind="stable")
    return values[:, order].reshape(len(values), -1, n_shuffles).mean(axis=2)


if __name__ == "__main__":
    main()
