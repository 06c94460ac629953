"""Speed of structures on millions of comparisons, and of `choix` on one large problem.

queries
    Each structure on `--comparisons` comparisons of random pairs of `--queries` queries. A query
    has 10 to 30 items. The comparisons follow a Bradley-Terry-Luce model. The first rows are the
    seconds to read the pairs into `Judgements` and to add up equal comparisons, which happens once
    for all structures. The last column is the millions of comparisons per second, including the
    time to add them up.
large
    Each structure on one query of `--items` items and 20 random comparisons per item. Most pairs of
    items are never compared.
choix
    Maximum likelihood of one query of `--choix-items` items with `--choix-comparisons` comparisons:
    `BradleyTerry`, and the spectral solver of the package choix, its fastest. Then all exact
    solvers of choix on a query of 100 items with 20,000 comparisons. The gap is the log-likelihood
    per comparison of the best scores minus the one of the solver's scores. The ratio is between
    seconds. The solvers of choix run until their default tolerance. `BradleyTerry` gets row numbers
    of items, as they do, and its time includes adding up equal comparisons.
orders
    Maximum likelihood of `--orders` orders of 5 of 200 items: `PlackettLuce`, and two
    solvers of choix.

    python examples/benchmarks/bench_aggregation.py
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _harness import interleaved, print_table
from scipy.special import expit

from sklearn_rankcal.aggregation import (
    STRUCTURES,
    BradleyTerry,
    Judgements,
    LeastSquares,
    PlackettLuce,
)
from sklearn_rankcal.aggregation._aggregate import get_structure
from sklearn_rankcal.labels._rankings import Comparisons, Orders
from sklearn_rankcal.queries import Queries

PARTS = ("queries", "large", "choix", "orders")


def draw_pairs(sizes: np.ndarray, n: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """The winner and the loser of n comparisons of random pairs, the first row of each query."""
    rng = np.random.default_rng(seed)
    first = np.cumsum(sizes) - sizes
    truth = rng.normal(size=sizes.sum())
    q = rng.integers(len(sizes), size=n)
    i = rng.integers(sizes[q])
    j = (i + rng.integers(1, sizes[q])) % sizes[q] + first[q]
    i = i + first[q]
    won = rng.random(n) < expit(truth[i] - truth[j])
    return np.where(won, i, j), np.where(won, j, i), q


def make_judgements(sizes: np.ndarray, winner: Any, loser: Any, q: np.ndarray) -> Judgements:
    queries = Queries(np.append(0, np.cumsum(sizes)))
    comparisons = Comparisons(winner, loser, None, None)
    return Judgements(queries, np.arange(queries.n_rows), q, comparisons=comparisons)


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def structures() -> dict[str, Any]:
    """All structures of comparisons and orders but Kemeny's rule, which is a search."""
    named: dict[str, Any] = {
        name: get_structure(name)
        for name, kind in STRUCTURES.items()
        if kind.takes != "clicks" and name != "kemeny"
    }
    named["least_squares, weighted"] = LeastSquares(weighted=True)
    named["btl, penalty=0.1"] = BradleyTerry(penalty=0.1)
    return named


def report_queries(arguments: argparse.Namespace) -> None:
    n = arguments.comparisons
    sizes = np.random.default_rng(1).integers(10, 31, arguments.queries)
    winner, loser, q = draw_pairs(sizes, n)
    pairs = np.stack([winner, loser], axis=1)
    read = seconds(lambda: Judgements.from_pairs(pairs, groups=q))
    judgements = make_judgements(sizes, winner, loser, q)
    summed = seconds(judgements.preferences)
    tasks = {name: lambda s=s: s.scores(judgements) for name, s in structures().items()}
    times = interleaved(tasks, arguments.repeats)
    rows = [["read pairs", f"{read:.2f}", ""], ["add up", f"{summed:.2f}", ""]]
    rows += [[name, f"{t:.2f}", f"{n / (t + summed) / 1e6:.1f}"] for name, t in times.items()]
    distinct = len(judgements.preferences().winner)
    print_table(
        f"{n / 1e6:g} million comparisons, {arguments.queries} queries of 10 to 30 items, "
        f"{distinct / 1e6:.1f} million different",
        ["structure", "seconds", "million / s"],
        rows,
    )


def report_large(arguments: argparse.Namespace) -> None:
    sizes = np.array([arguments.items])
    judgements = make_judgements(sizes, *draw_pairs(sizes, 20 * arguments.items))
    summed = seconds(judgements.preferences)
    tasks = {name: lambda s=s: s.scores(judgements) for name, s in structures().items()}
    rows = [["add up", f"{summed:.2f}"]]
    rows += [[name, f"{t:.2f}"] for name, t in interleaved(tasks, arguments.repeats).items()]
    print_table(
        f"One query of {arguments.items} items, {20 * arguments.items} comparisons",
        ["structure", "seconds"],
        rows,
    )


def compare(title: str, tasks: dict[str, Any], value: Callable[[Any], float], repeats: int) -> None:
    """Print the seconds of each task, and how far its log-likelihood is below the best."""
    found: dict[str, Any] = {}

    def keep(name: str) -> None:
        found[name] = tasks[name]()

    times = interleaved({name: lambda name=name: keep(name) for name in tasks}, repeats)
    values = {name: value(scores) for name, scores in found.items()}
    best, ours = max(values.values()), next(iter(times.values()))
    rows = [
        [name, f"{t:.3f}", f"{best - values[name]:.1e}", f"{t / ours:.1f}"]
        for name, t in times.items()
    ]
    print_table(title, ["solver", "seconds", "gap", "ratio"], rows)


def report_choix(arguments: argparse.Namespace) -> None:
    import choix

    for r, n, slow in (
        (arguments.choix_items, arguments.choix_comparisons, False),
        (100, 20_000, True),
    ):
        winner, loser, q = draw_pairs(np.array([r]), n)
        data = list(zip(winner.tolist(), loser.tolist(), strict=True))
        judged = np.array([r]), winner, loser, q
        tasks = {
            "BradleyTerry": lambda judged=judged: BradleyTerry().scores(make_judgements(*judged)),
            "choix.ilsr_pairwise": lambda r=r, data=data: choix.ilsr_pairwise(r, data),
        }
        for method in ("Newton-CG", "BFGS") if slow else ():
            options = {"n_items": r, "data": data, "method": method}
            tasks[f"choix.opt_pairwise, {method}"] = lambda o=options: choix.opt_pairwise(**o)

        def value(scores: np.ndarray, winner: Any = winner, loser: Any = loser) -> float:
            return -float(np.logaddexp(0.0, scores[loser] - scores[winner]).mean())

        title = f"Bradley-Terry-Luce: one query of {r} items, {n} comparisons"
        compare(title, tasks, value, arguments.repeats)


def report_orders(arguments: argparse.Namespace) -> None:
    import choix

    r, n, length = 200, arguments.orders, 5
    rng = np.random.default_rng(0)
    truth = rng.normal(size=r)
    shown = (rng.integers(r, size=(n, 1)) + np.cumsum(rng.integers(1, r // 5, (n, length)), 1)) % r
    places = np.argsort(-truth[shown] - rng.gumbel(size=shown.shape), axis=1)
    orders = np.take_along_axis(shown, places, axis=1)
    data = orders.tolist()
    tier = np.tile(np.arange(length), n)
    entries = Orders(orders.reshape(-1), tier, np.arange(n + 1) * length)
    judgements = Judgements(
        Queries.single(r), np.arange(r), np.zeros(n, dtype=np.int64), orders=entries
    )
    tasks = {
        "PlackettLuce": lambda: PlackettLuce().scores(judgements),
        "choix.ilsr_rankings": lambda: choix.ilsr_rankings(r, data),
        "choix.opt_rankings, Newton-CG": lambda: choix.opt_rankings(r, data),
    }

    def value(scores: np.ndarray) -> float:
        ordered = scores[orders][:, ::-1]
        return float((ordered - np.logaddexp.accumulate(ordered, axis=1)).sum(axis=1).mean())

    title = f"Plackett-Luce: one query of {r} items, {n} orders of {length}"
    compare(title, tasks, value, arguments.repeats)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--comparisons", type=int, default=10_000_000, help="(default: 10000000)")
    parser.add_argument("--queries", type=int, default=10_000, help="(default: 10000)")
    parser.add_argument("--items", type=int, default=20_000, help="(default: 20000)")
    parser.add_argument("--choix-items", type=int, default=500, help="(default: 500)")
    parser.add_argument("--choix-comparisons", type=int, default=2_000_000)
    parser.add_argument("--orders", type=int, default=10_000, help="(default: 10000)")
    parser.add_argument("--repeats", type=int, default=3, help="(default: 3)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="(default: all)")
    arguments = parser.parse_args()
    if hasattr(os, "getloadavg"):
        print(f"load of the last minute: {os.getloadavg()[0]:.1f}, of {os.cpu_count()} processors")
    for part in arguments.parts:
        globals()[f"report_{part}"](arguments)


if __name__ == "__main__":
    main()
