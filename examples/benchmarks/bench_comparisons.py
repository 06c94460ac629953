"""Learn from comparisons of two documents, alone or aggregated: figures 2 to 4 of the paper.

Duchi, Mackey and Jordan (2013), section 6, generate comparisons from the relevance of a LETOR
collection: a random query, a random pair, and a Bradley-Terry-Luce model (their equations 26 and
27). They compare linear rankers by their NDCG risk under the asymptotic scores: 1 - NDCG with the
gains G(score). The paper does not say which G it uses. Scores can be negative, which rules out
2^score - 1; the default here is 2^score (--base). The collection is MQ2008 (784 queries and 46
standardised columns). The rankers are

aggregated
    Squared error to the targets of NDCG, averaged over subsets of k comparisons of the same query
    (their equations 18 and 28). Each query is centred, because a shift of all scores of a query
    changes no ranking. There is one such ranker for each kind of smoothing.
pairwise logistic
    The logistic loss of all comparisons (their equation 29): once with little regularization, and
    once with the multiplier that has the best reported risk, in its favour.
full information
    Squared error to the targets of the asymptotic scores themselves.

A multiplier is the lambda in lambda / 2 ||w||^2, which is added to a mean over comparisons or
queries, as in the paper.

Figures
    3: risk against k, for several numbers n of comparisons.
    4: risk of the aggregated ranker against its multiplier.
    2: the optimality gap of the surrogate after some steps of the stochastic gradient method, with
       one random query and k of its comparisons per step. For a quadratic objective, the gap
       follows from the distance to its minimiser, which L-BFGS finds for the mean targets. The
       paper estimates absolute gaps by the losses of the last 100 steps. Here the tables have the
       absolute gap times 10^6, and at 0 steps the gap of w = 0. Small subsets have small targets,
       hence small gaps, and noise that is larger in proportion.

Repetitions draw new comparisons. Intervals use the t distribution over repetitions. Risk is
measured on the queries with compared documents, as in the paper. With --held-out, it is measured
on one of five parts, each part once, and only queries of the remaining parts are compared.

Figure 3 with 3 repetitions, the default, takes about 2 minutes. Figure 4 takes 1 minute, and figure
2 takes 5 minutes.

    python examples/benchmarks/bench_comparisons.py --data ../shared/data --figure 3 --repeats 3
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
from _harness import print_table
from bench_mq2008 import FILES, N_FEATURES, REPOSITORY
from scipy.stats import t as student
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from sklearn_rankcal import LinearRanker
from sklearn_rankcal.aggregation import AggregatedLoss, Judgements, LogOdds
from sklearn_rankcal.datasets import load_letor, make_comparisons
from sklearn_rankcal.losses import NDCG
from sklearn_rankcal.metrics import ndcg_score
from sklearn_rankcal.surrogates import WeightedComparisons

NUMBERS = (200_000, 400_000, 800_000, 1_600_000)
SIZES: tuple[int | str, ...] = (1, 3, 10, 30, 100, 300, "auto", "all")
SMOOTHING = ("conditional", "counts", "fractions")
#: Smoothing of fractions of the k comparisons, which the paper does not state; 0.5 for the rest.
OF_FRACTIONS = 0.01
MULTIPLIERS = (1e-4, 1e-3, 1e-2, 1e-1)  # of the pairwise logistic loss; the first is "little"
REGRESSION = 0.1  # the multiplier of the other rankers in figures 2 and 3
FIGURE_4 = (1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 10.0)
PASSES = (1, 2, 4, 8, 16)
NDCG_OF_PAPER = NDCG(gain="linear", shrinkage=0.0)


class Data(NamedTuple):
    """Standardised columns, relevance, query ids, and the number of documents of each row's query.

    `keep` marks the queries whose documents are compared, and `tested` those that are ranked.
    """

    X: np.ndarray
    relevance: np.ndarray
    groups: np.ndarray
    size: np.ndarray
    keep: np.ndarray
    tested: np.ndarray


def read(folder: Path, held_out: bool) -> list[Data]:
    """One world with all queries, or five worlds that test one part each."""
    parts = [load_letor(folder / name, n_features=N_FEATURES) for name in FILES]
    whole = {name: np.concatenate([part[name] for part in parts]) for name in ("X", "y", "groups")}
    part = np.repeat(np.arange(len(parts)), [len(one.y) for one in parts])
    X = whole["X"].astype(np.float64)
    _, query, count = np.unique(whole["groups"], return_inverse=True, return_counts=True)
    every = np.ones(len(X), dtype=bool)
    splits = [(part != k, part == k) for k in range(len(parts))] if held_out else [(every, every)]
    return [
        Data(
            StandardScaler().fit(X[keep]).transform(X),
            whole["y"].astype(np.float64),
            whole["groups"],
            count[query].astype(np.float64),
            keep,
            tested,
        )
        for keep, tested in splits
    ]


class Setting(NamedTuple):
    """The noise of the comparisons, the base of the gains, and the number of subsets."""

    noise: float
    base: float
    subsets: int

    def gain(self, scores: np.ndarray) -> np.ndarray:
        return self.base**scores


def compare(data: Data, n: int, setting: Setting, seed: int) -> Bunch:
    """Comparisons of the kept queries, with their rows X, their sizes and the setting."""
    keep = data.keep
    drawn = make_comparisons(
        data.relevance[keep], data.groups[keep], n, noise=setting.noise, random_state=seed
    )
    drawn.X, drawn.size, drawn.setting = data.X[keep], data.size[keep], setting
    drawn.n_queries = len(np.unique(drawn.groups))
    return drawn


# -------------------------------------------------------------------- rankers and their risk


def risk(ranker: LinearRanker, data: Data, setting: Setting) -> float:
    """1 - NDCG of the tested queries, with the gains of their asymptotic scores."""
    rows = data.tested
    scores = make_comparisons(
        data.relevance[rows], data.groups[rows], 1, noise=setting.noise, random_state=0
    ).scores
    predicted = ranker.decision_function(data.X[rows], groups=data.groups[rows])
    gains = setting.gain(scores)
    value = ndcg_score(gains, predicted, groups=data.groups[rows], gain="linear")
    return float(1 - value)


def logistic(drawn: Bunch, multiplier: float) -> LinearRanker:
    """Equation (29) on all comparisons."""
    ranker = LinearRanker(
        WeightedComparisons("logistic"),
        loss="pd_by_scores",
        alpha=multiplier * len(drawn.pairs),
        tol=1e-6,
    )
    return ranker.fit(drawn.X, drawn.y)


def squared(drawn: Bunch, multiplier: float, loss: Any, **solver: Any) -> LinearRanker:
    """Equation (28), centred: a ranker that is not fitted.

    The surrogate of a query of m documents is m sum (centred error)^2, and its weight is 1 / m^2.
    That is twice equation (28), so the multiplier counts twice too.
    """
    alpha = 2 * multiplier * drawn.n_queries
    return LinearRanker("pairwise_squared", loss=loss, alpha=alpha, **solver)


def aggregated_loss(drawn: Bunch, k: int | str, smoothing: str, **options: Any) -> AggregatedLoss:
    c = OF_FRACTIONS if smoothing == "fractions" else 0.5
    options = {"n_subsets": drawn.setting.subsets, "gain": drawn.setting.gain, **options}
    return AggregatedLoss(NDCG_OF_PAPER, LogOdds(c, added_to=smoothing), subset_size=k, **options)


def fit_aggregated(
    drawn: Bunch, k: int | str, smoothing: str, multiplier: float = REGRESSION, **options: Any
) -> LinearRanker:
    loss = aggregated_loss(drawn, k, smoothing, **options)
    ranker = squared(drawn, multiplier, loss, tol=1e-6)
    return ranker.fit(drawn.X, drawn.y, sample_weight=drawn.size**-2.0)


def fit_full(drawn: Bunch, multiplier: float = REGRESSION) -> LinearRanker:
    """The same with the asymptotic scores, and the same weights n_q of the queries."""
    number = Judgements.from_labels(drawn.y).per_query
    query = drawn.y["query"]
    weight = number[query] / number.mean() / drawn.size**2
    ranker = squared(drawn, multiplier, NDCG_OF_PAPER, tol=1e-6)
    gains = drawn.setting.gain(drawn.scores)
    return ranker.fit(drawn.X, gains, groups=drawn.groups, sample_weight=weight)


def half_length(values: Any, level: float = 0.95) -> float:
    """Half the length of the interval of the mean over repetitions; NaN for a single one."""
    n = len(values)
    if n < 2:
        return float("nan")
    return float(student.ppf((1 + level) / 2, n - 1) * np.std(values, ddof=1) / n**0.5)


def interval(values: Any, level: float = 0.95, digits: int = 4) -> str:
    return f"{np.mean(values):.{digits}f} ± {half_length(values, level):.{digits}f}"


def signed(differences: np.ndarray) -> str:
    """The mean difference, marked if its interval over repetitions does not contain 0."""
    mark = "*" if abs(differences.mean()) > half_length(differences) else " "
    return f"{differences.mean():+.4f}{mark}"


# -------------------------------------------------------------------- figure 3


def repetitions(worlds: list[Data], n: int, setting: Setting, repeats: int) -> Iterator[Any]:
    """For each repetition, pairs of a world and its comparisons."""
    for seed in range(repeats):
        yield [(data, compare(data, n, setting, seed)) for data in worlds]


def figure_3(worlds: list[Data], setting: Setting, arguments: argparse.Namespace) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for n in arguments.numbers:
        values: dict[Any, list[float]] = {}
        for pairs in repetitions(worlds, n, setting, arguments.repeats):
            rankers: dict[Any, Any] = {
                ("logistic", m): (lambda drawn, m=m: logistic(drawn, m)) for m in MULTIPLIERS
            }
            rankers["full"] = fit_full
            for smoothing in arguments.smoothing:
                for k in SIZES:
                    rankers[smoothing, k] = lambda drawn, k=k, smoothing=smoothing: fit_aggregated(
                        drawn, k, smoothing
                    )
            for name, make in rankers.items():
                risks = [risk(make(drawn), data, setting) for data, drawn in pairs]
                values.setdefault(name, []).append(float(np.mean(risks)))
        found[n] = values
        best = min(MULTIPLIERS, key=lambda m: np.mean(values["logistic", m]))
        n_judgements = Judgements.from_labels(pairs[0][1].y).per_query.sum()
        auto = max(1, int(np.ceil(2.0 * n_judgements**0.45)))  # subset_size="auto"
        per_query = n / pairs[0][1].n_queries
        baseline = np.array(values["logistic", best])
        rows = [
            [f"k = {k}" + (f" ({auto})" if k == "auto" else "")]
            + [
                text
                for smoothing in arguments.smoothing
                for text in (
                    interval(values[smoothing, k]),
                    signed(np.array(values[smoothing, k]) - baseline),
                )
            ]
            for k in SIZES
        ]
        header = ["aggregated"]
        for smoothing in arguments.smoothing:
            header += [smoothing, "minus logistic"]
        print_table(
            f"Figure 3, n = {n:,}, {per_query:.0f} comparisons of a query: NDCG risk, "
            f"{arguments.repeats} repetition(s)",
            header,
            rows,
        )
        print_table(
            "References",
            ["ranker", "risk"],
            [
                [f"pairwise logistic, multiplier {m:g}" + " (best)" * (m == best),
                 interval(values["logistic", m])]
                for m in (MULTIPLIERS[0], best)
            ]
            + [["full information", interval(values["full"])]],
        )  # fmt: skip
    return found


# -------------------------------------------------------------------- figure 4


def figure_4(worlds: list[Data], setting: Setting, arguments: argparse.Namespace) -> None:
    n, k = 800_000, 100
    header = ["multiplier", *arguments.smoothing, "pairwise logistic"]
    values: dict[Any, list[float]] = {}
    for pairs in repetitions(worlds, n, setting, arguments.repeats):
        for multiplier in FIGURE_4:
            for name in header[1:]:
                fits = [
                    logistic(drawn, multiplier)
                    if name == header[-1]
                    else fit_aggregated(drawn, k, name, multiplier)
                    for _, drawn in pairs
                ]
                risks = [
                    risk(one, data, setting) for one, (data, _) in zip(fits, pairs, strict=True)
                ]
                values.setdefault((name, multiplier), []).append(float(np.mean(risks)))
    print_table(
        f"Figure 4, n = {n:,}, k = {k}: NDCG risk, {arguments.repeats} repetition(s)",
        header,
        [[f"{m:g}", *(interval(values[name, m]) for name in header[1:])] for m in FIGURE_4],
    )


# -------------------------------------------------------------------- figure 2


def gaps(data: Data, n: int, k: int, setting: Setting, seed: int) -> np.ndarray:
    """The gap of the objective of w = 0, and after each of `PASSES`."""
    drawn = compare(data, n, setting, seed)
    weight = drawn.size**-2.0
    minimum = fit_aggregated(drawn, k, "conditional", n_subsets=200)
    number = Judgements.from_labels(drawn.y).per_query
    row_weight = (number / number.mean())[drawn.y["query"]] * weight * drawn.size

    def excess(coef: np.ndarray) -> float:
        """The objective per query minus its minimum, a quadratic function of coef - minimum."""
        step = coef - minimum.coef_
        scores = drawn.X @ step
        mean = np.bincount(drawn.y["query"], scores) / np.bincount(drawn.y["query"])
        centred = scores - mean[drawn.y["query"]]
        return float(row_weight @ centred**2 + minimum.alpha / 2 * step @ step) / drawn.n_queries

    found = [excess(np.zeros(drawn.X.shape[1]))]
    for passes in PASSES:
        loss = aggregated_loss(drawn, k, "conditional", random_state=seed)
        ranker = squared(
            drawn,
            REGRESSION,
            loss,
            solver="sgd",
            step_size="inverse",
            max_iter=passes,
            random_state=seed,
        )
        ranker.fit(drawn.X, drawn.y, sample_weight=weight)
        found.append(excess(ranker.coef_))
    return 1e6 * np.array(found)


def figure_2(worlds: list[Data], setting: Setting, arguments: argparse.Namespace) -> None:
    data = worlds[0]
    n_queries = len(np.unique(data.groups[data.keep]))
    for what, settings in (
        ("n = 400,000", {f"k = {k}": (400_000, k) for k in (1, 10, 100, 300)}),
        ("k = 100", {f"n = {n:,}": (n, 100) for n in arguments.numbers}),
    ):
        columns = [
            np.array([gaps(data, n, k, setting, seed) for seed in range(arguments.repeats)])
            for n, k in settings.values()
        ]
        print_table(
            f"Figure 2, {what}: optimality gap x 10^6, mean and 90 % interval over "
            f"{arguments.repeats} repetition(s)",
            ["steps", *settings],
            [
                [f"{passes * n_queries:,}", *(interval(column[:, p], 0.9, 2) for column in columns)]
                for p, passes in enumerate((0, *PASSES))
            ],
        )


# -------------------------------------------------------------------- plot and command line


def plot(found: dict[int, Any], smoothing: list[str], file: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(found), figsize=(3.2 * len(found), 3.4), sharey=True, layout="constrained"
    )
    sizes = [k for k in SIZES if k != "auto"]
    for axis, (n, values) in zip(np.atleast_1d(axes), found.items(), strict=True):
        for name, marker in zip(smoothing, "osd", strict=False):
            table = np.array([values[name, k] for k in sizes])
            half = [half_length(values) for values in table]
            axis.errorbar(
                range(len(sizes)), table.mean(axis=1), half, marker=marker, capsize=3, label=name
            )
        best = min(MULTIPLIERS, key=lambda m: np.mean(values["logistic", m]))
        for m, style in ((MULTIPLIERS[0], "--"), (best, "-.")):
            axis.axhline(
                np.mean(values["logistic", m]), color="k", ls=style, label=f"logistic, {m:g}"
            )
        axis.axhline(np.mean(values["full"]), color="grey", ls=":", label="full information")
        axis.set(title=f"n = {n:,}", xlabel="subset size k")
        axis.set_xticks(range(len(sizes)), [str(k) for k in sizes], rotation=60)
    np.atleast_1d(axes)[0].set_ylabel("NDCG risk")
    np.atleast_1d(axes)[-1].legend(fontsize=7)
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared" / "data")
    parser.add_argument("--figure", type=int, nargs="+", choices=(2, 3, 4), default=[3])
    parser.add_argument("--repeats", type=int, default=3, help="of each setting (default: 3)")
    parser.add_argument("--numbers", type=int, nargs="+", default=list(NUMBERS))
    parser.add_argument("--smoothing", nargs="+", choices=SMOOTHING, default=list(SMOOTHING[:2]))
    parser.add_argument("--subsets", type=int, default=20, help="n_subsets (default: 20)")
    parser.add_argument(
        "--noise", type=float, default=1.0, help="of the comparisons; 0.5 doubles the grades"
    )
    parser.add_argument("--base", type=float, default=2.0, help="of the gains (default: 2)")
    parser.add_argument("--held-out", action="store_true", help="test on parts that do not train")
    parser.add_argument("--plot", type=Path, help="write figure 3 to this file")
    arguments = parser.parse_args()
    folder = arguments.data / "letor" / "mq2008"
    if not all((folder / name).is_file() for name in FILES):
        print(
            f"No MQ2008 ({FILES[0]} .. {FILES[-1]}) in {folder}: nothing measured. Point --data "
            "at the folder that holds letor/mq2008."
        )
        return
    worlds = read(folder, arguments.held_out)
    setting = Setting(arguments.noise, arguments.base, arguments.subsets)
    if 3 in arguments.figure:
        found = figure_3(worlds, setting, arguments)
        if arguments.plot is not None:
            plot(found, arguments.smoothing, arguments.plot)
    if 4 in arguments.figure:
        figure_4(worlds, setting, arguments)
    if 2 in arguments.figure:
        figure_2(worlds, setting, arguments)


if __name__ == "__main__":
    main()
