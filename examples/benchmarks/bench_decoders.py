"""Speed and quality of the decoders, compared with alternatives in one run.

    python examples/benchmarks/bench_decoders.py
    python examples/benchmarks/bench_decoders.py --parts greedy batch quality effort exact peers map

greedy   Algorithm 1 for one query: deleting edges one by one with networkx, as in the paper,
         against ours, with compiled kernels and in NumPy. The thresholds must agree.
batch    2,000 queries of 100 documents in one call.
quality  The lost preference weight (beyond the sum of min(u_ij, u_ji), which every order loses), as
         a ratio to a random topological order of what Algorithm 1 keeps, and to the optimum, if
         "exact" proves it.
effort   Local search on uniform matrices by the number of steps: time, and the gap to the best
         result of longer searches.
exact    Seconds to a proved optimum, by size and noise.
lolib    The input-output instances of LOLIB in --lolib, "exact" and "local_search".
peers    igraph's feedback_arc_set (Eades' heuristic, its integer program), time and lost weight.
map      Average precision: SciPy's quadratic_assignment (faq, 2opt) against ours.

networkx and igraph are optional: without them, their lines are left out.
Matrices: "btl" are noisy comparisons of documents with scores s: sigmoid(s_i - s_j) + noise, with
the noise in the name; "uniform" are random entries, the worst case.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _harness import interleaved, print_table
from scipy.optimize import quadratic_assignment

from sklearn_rankcal._kernels import KERNELS, _numpy
from sklearn_rankcal.decoders import (
    _decode_average_precision,
    _decode_preferences,
    decode_average_precision,
    decode_preferences,
)

PARTS = ("greedy", "batch", "quality", "effort", "exact", "lolib", "peers", "map")


@contextmanager
def numpy_kernels() -> Iterator[None]:
    """Use the NumPy versions instead of the compiled kernels."""
    compiled = _decode_preferences.kernels
    for module in (_decode_preferences, _decode_average_precision):
        module.kernels = _numpy
    try:
        yield
    finally:
        for module in (_decode_preferences, _decode_average_precision):
            module.kernels = compiled


def btl(r: int, noise: float, rng: np.random.Generator) -> np.ndarray:
    scores = rng.normal(size=r)
    return 1 / (1 + np.exp(scores[None, :] - scores[:, None])) + noise * rng.normal(size=(r, r))


def make(kind: str, r: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random((r, r)) if kind == "uniform" else btl(r, float(kind.split()[1]), rng)


def unavoidable(u: np.ndarray) -> float:
    return float(np.minimum(u, u.T)[np.triu_indices(len(u), 1)].sum())


def timed(function: Any, *args: Any, **options: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    value = function(*args, **options)
    return time.perf_counter() - started, value


# -------------------------------------------------------------------- Algorithm 1


def literal_with_networkx(u: np.ndarray) -> tuple[float, Any]:
    """Delete the lightest edge until the graph is acyclic; the last weight deleted, the graph."""
    import networkx

    d = u - u.T
    edges = sorted((d[i, j], i, j) for i, j in zip(*np.nonzero(d > 0), strict=True))
    graph = networkx.DiGraph((i, j) for _, i, j in edges)
    threshold = 0.0
    for weight, i, j in edges:
        if networkx.is_directed_acyclic_graph(graph):
            break
        graph.remove_edge(i, j)
        threshold = weight
    return threshold, graph


def greedy(repeats: int) -> None:
    try:
        import networkx  # noqa: F401
    except ImportError:
        print("networkx is not installed: part 'greedy' left out")
        return
    rows = []
    for kind in ("btl 0.1", "uniform"):
        for r in (30, 100):
            u = make(kind, r, np.random.default_rng(r))
            ours = decode_preferences(u, "greedy_dag")
            seconds, (threshold, _) = timed(literal_with_networkx, u)
            assert threshold == ours.threshold, (threshold, ours.threshold)
            # many copies in one call: the cost of a query, not of a call
            many = np.repeat(u[None], 200, axis=0)
            tasks = {
                order: lambda order=order, many=many: decode_preferences(
                    many, "greedy_dag", order=order
                )
                for order in ("topological", "ranked_pairs")
            }
            ours_seconds = interleaved(tasks, repeats)
            with numpy_kernels():
                twin_seconds = interleaved(tasks, repeats)
            for order in tasks:
                compiled, twin = ours_seconds[order] / len(many), twin_seconds[order] / len(many)
                rows.append(
                    [
                        f"{kind}, r = {r}, {order}",
                        f"{1e6 * seconds:.0f}",
                        f"{1e6 * compiled:.0f}",
                        f"{1e6 * twin:.0f}",
                        f"{seconds / compiled:.0f}",
                        f"{seconds / twin:.0f}",
                    ]
                )
    print_table(
        f"greedy_dag, microseconds a query (kernels: {KERNELS})",
        ["graph", "networkx", "ours", "NumPy", "ratio", "ratio NumPy"],
        rows,
    )


def batch(repeats: int) -> None:
    rows = []
    for kind in ("btl 0.1", "uniform"):
        rng = np.random.default_rng(0)
        us = np.stack([make(kind, 100, rng) for _ in range(2000)])
        for order in ("topological", "ranked_pairs"):
            tasks = {
                str(n_jobs): lambda n_jobs=n_jobs, order=order, us=us: decode_preferences(
                    us, "greedy_dag", order=order, n_jobs=n_jobs
                )
                for n_jobs in (1, 2)
            }
            seconds = interleaved(tasks, repeats)
            rows.append([f"{kind}, {order}", *(f"{seconds[name]:.3f}" for name in tasks)])
    print_table("2,000 queries of 100 documents, seconds", ["graph", "n_jobs=1", "n_jobs=2"], rows)


# -------------------------------------------------------------------- quality


def random_topological(u: np.ndarray, threshold: float, rng: np.random.Generator) -> np.ndarray:
    """A random topological order of the edges above the threshold, as ranks."""
    kept = (u - u.T) > threshold
    left, order = np.ones(len(u), bool), []
    while left.any():
        free = np.flatnonzero(left & ~kept[left].any(axis=0))
        order.append(rng.choice(free))
        left[order[-1]] = False
    ranks = np.empty(len(u), int)
    ranks[order] = np.arange(1, len(u) + 1)
    return ranks


def lost(u: np.ndarray, ranks: np.ndarray) -> float:
    return float((u * (ranks[:, None] > ranks)).sum()) - unavoidable(u)


def quality(n_instances: int) -> None:
    rows = []
    methods = ("greedy_dag", "borda", "copeland", "sort", "local_search")
    for kind, r in (("btl 0.1", 50), ("btl 0.1", 100), ("btl 0.3", 50), ("uniform", 25)):
        rng = np.random.default_rng(r)
        found: dict[str, list[float]] = {name: [] for name in (*methods, "first descent", "exact")}
        proved = hit = 0
        for _ in range(n_instances):
            u = make(kind, r, rng)
            threshold = decode_preferences(u, "greedy_dag").threshold
            base = np.mean([lost(u, random_topological(u, threshold, rng)) for _ in range(20)])
            losses = {name: lost(u, decode_preferences(u, name).ranks) for name in methods}
            losses["first descent"] = lost(
                u, decode_preferences(u, "local_search", n_perturbations=0).ranks
            )
            exact = decode_preferences(u, "exact", time_limit=60)
            losses["exact"] = lost(u, exact.ranks)
            if exact.optimal:
                proved += 1
                hit += losses["local_search"] <= losses["exact"] + 1e-9
            for name, value in losses.items():
                found[name].append(value / base)
        best = np.array(found["exact"])
        rows.append(
            [
                f"{kind}, r = {r}",
                *(f"{np.mean(found[name]):.3f}" for name in found),
                f"{100 * np.mean(np.array(found['first descent']) / best - 1):.2f} %",
                f"{hit}/{proved}",
            ]
        )
    print_table(
        f"lost weight, ratio to a random topological order of Algorithm 1 ({n_instances} each)",
        ["graph", *found, "descent - optimum", "iterated = optimum"],
        rows,
    )


def effort(n_instances: int) -> None:
    steps = (0, 60, 400, 1600)
    rows = []
    for r in (50, 75, 100, 150, 200):
        rng = np.random.default_rng(r)
        us = [make("uniform", r, rng) for _ in range(n_instances)]
        kept = np.array([np.maximum(u, u.T)[np.triu_indices(r, 1)].sum() for u in us])
        best = np.min(
            [
                decode_preferences(
                    us, "local_search", n_perturbations=4000, random_state=s
                ).objective
                for s in (1, 2)
            ],
            axis=0,
        )
        cells = []
        for n in steps:
            seconds, found = timed(decode_preferences, us, "local_search", n_perturbations=n)
            above = 100 * np.mean((found.objective - best) / kept)
            cells.append(f"{1e3 * seconds / n_instances:.1f} ms {above:.3f} %")
        rows.append([f"uniform, r = {r}", *cells])
    print_table(
        "local search: milliseconds, and above the best found, relative to the kept weight",
        ["graph", *(f"{n} steps" for n in steps)],
        rows,
    )


def exact(n_instances: int) -> None:
    rows = []
    sizes = {
        "btl 0.1": (24, 50, 75, 100),
        "btl 0.15": (50, 75),
        "btl 0.3": (24, 50),
        "uniform": (16, 20, 24, 30),
    }
    for kind, all_sizes in sizes.items():
        for r in all_sizes:
            rng = np.random.default_rng(r)
            us = [make(kind, r, rng) for _ in range(n_instances)]
            runs = [timed(decode_preferences, u, "exact", time_limit=60) for u in us]
            seconds = [run[0] for run in runs]
            rows.append(
                [
                    f"{kind}, r = {r}",
                    f"{median(seconds):.3f}",
                    f"{max(seconds):.3f}",
                    f"{sum(run[1].optimal for run in runs)}/{n_instances}",
                ]
            )
    print_table("exact, seconds", ["graph", "median", "largest", "proved"], rows)


def lolib(folder: Path) -> None:
    if not folder.is_dir():
        print(f"{folder} is not there: part 'lolib' left out")
        return
    with (folder / "optima.csv").open() as lines:
        optima = {row["instance"]: float(row["optimum"]) for row in csv.DictReader(lines)}
    rows, hits, proved, gaps = [], 0, 0, []
    for name, optimum in optima.items():
        path = next(folder.glob(f"*{name}.txt"))
        numbers = path.read_text().split()
        n = int(numbers[0])
        matrix = np.array(numbers[1 : 1 + n * n], float).reshape(n, n)
        np.fill_diagonal(matrix, 0.0)
        exact_seconds, best = timed(decode_preferences, matrix, "exact", time_limit=60)
        search_seconds, found = timed(decode_preferences, matrix, "local_search", time_limit=0.1)
        reached = matrix.sum() - found.objective
        gaps.append((optimum - reached) / optimum)
        hits += reached == optimum
        proved += best.optimal and matrix.sum() - best.objective == optimum
        rows.append(
            [
                f"{name} ({n})",
                f"{optimum:.0f}",
                f"{matrix.sum() - best.objective:.0f}",
                str(best.optimal),
                f"{exact_seconds:.2f}",
                f"{100 * gaps[-1]:.4f} %",
                f"{search_seconds:.3f}",
            ]
        )
    print_table(
        "LOLIB",
        ["instance", "optimum", "exact", "proved", "seconds", "search below", "seconds"],
        rows,
    )
    print(
        f"exact: {proved}/{len(rows)} proved; local search: {hits}/{len(rows)} optimal, at most "
        f"{100 * max(gaps):.4f} % below"
    )


# -------------------------------------------------------------------- peers


def igraph_lost(u: np.ndarray, algorithm: str) -> float:
    import igraph

    d = u - u.T
    i, j = np.nonzero(d > 0)
    graph = igraph.Graph(n=len(u), edges=np.c_[i, j].tolist(), directed=True)
    weights = d[i, j]
    removed = graph.feedback_arc_set(weights.tolist(), algorithm)
    return float(weights[removed].sum())


def peers(n_instances: int) -> None:
    try:
        import igraph  # noqa: F401
    except ImportError:
        print("igraph is not installed: part 'peers' left out")
        return
    rows = []
    for kind, r in (
        ("btl 0.1", 10), ("btl 0.1", 20), ("btl 0.1", 50), ("btl 0.1", 100), ("btl 0.1", 200),
        ("uniform", 10), ("uniform", 16), ("uniform", 50), ("uniform", 100), ("uniform", 200),
    ):  # fmt: skip
        rng = np.random.default_rng(r)
        us = [make(kind, r, rng) for _ in range(n_instances)]
        columns: dict[str, tuple[list[float], list[float]]] = {}
        names = ["sort", "greedy_dag", "local_search", "eades"]
        if r <= 20 and (kind != "uniform" or r <= 16):  # the integer program takes minutes beyond
            names += ["exact", "ip"]
        for name in names:
            theirs = name in ("eades", "ip")
            method = igraph_lost if theirs else decode_preferences
            method(us[0], name)
            runs = [min((timed(method, u, name) for _ in range(3)), key=itemgetter(0)) for u in us]
            losses = [
                run[1] if theirs else lost(u, run[1].ranks) for u, run in zip(us, runs, strict=True)
            ]
            columns[name] = ([run[0] for run in runs], losses)
        for name in names:
            seconds, losses = columns[name]
            rows.append(
                [
                    f"{kind}, r = {r}, {'igraph ' if name in ('eades', 'ip') else ''}{name}",
                    f"{1e3 * median(seconds):.3f}",
                    f"{np.mean(losses):.4f}",
                    f"{np.mean(losses) / np.mean(columns['eades'][1]):.3f}",
                ]
            )
    print_table(
        f"against igraph ({n_instances} graphs each)",
        ["graph and method", "milliseconds", "lost weight", "ratio to eades"],
        rows,
    )


def expected_precision_matrix(r: int, rng: np.random.Generator) -> np.ndarray:
    """E[y_i y_j / sum y] over eight label vectors."""
    labels = rng.random((8, r)) < rng.uniform(0.05, 0.5, size=(8, 1))
    labels[:, 0] |= ~labels.any(axis=1)
    weights = rng.dirichlet(np.ones(8))
    y = labels.astype(float)
    return np.einsum("k,ki,kj->ij", weights / y.sum(axis=1), y, y)


def assigned(u: np.ndarray, method: str) -> float:
    """Expected AP of SciPy's quadratic assignment."""
    r = len(u)
    places = np.arange(1, r + 1)
    # pairs count twice in the assignment problem, the diagonal once
    flow = (u + np.diag(np.diag(u))) / 2
    share = 1.0 / np.maximum(places[:, None], places[None, :])
    options = {"maximize": True, "rng" if "rng" in quadratic_assignment.__doc__ else "seed": 0}
    found = quadratic_assignment(flow, share, method=method, options=options)
    ranks = places[found.col_ind]
    return float((flow / np.maximum(ranks[:, None], ranks[None, :])).sum())


def map_decoders(n_instances: int) -> None:
    rows = []
    for r in (12, 16, 20, 24):
        u = expected_precision_matrix(r, np.random.default_rng(r))
        seconds = median(timed(decode_average_precision, u, "exact")[0] for _ in range(5))
        with numpy_kernels():
            twin = timed(decode_average_precision, u, "exact")[0] if r <= 20 else np.nan
        rows.append([f"r = {r}", f"{1e3 * seconds:.2f}", f"{1e3 * twin:.1f}"])
    print_table("MAP, exact, milliseconds", ["size", KERNELS, "NumPy"], rows)
    rows = []
    for kind in ("labels", "uniform"):
        for r in (20, 50, 100):
            rng = np.random.default_rng(r)
            us = []
            for _ in range(n_instances if r < 100 else max(2, n_instances // 5)):
                u = rng.random((r, r))
                us.append((u + u.T) / 2 if kind == "uniform" else expected_precision_matrix(r, rng))
            methods = {
                "diagonal": lambda u: 1 - decode_average_precision(u, "diagonal").objective,
                "local_search, n_perturbations=0": lambda u: (
                    1 - decode_average_precision(u, "local_search", n_perturbations=0).objective
                ),
                "local_search": lambda u: 1 - decode_average_precision(u, "local_search").objective,
                "SciPy faq": lambda u: assigned(u, "faq"),
                "SciPy 2opt": lambda u: assigned(u, "2opt"),
            }
            if r <= 20:
                methods["exact"] = lambda u: 1 - decode_average_precision(u, "exact").objective
            values, times = {}, {}
            for name, method in methods.items():
                runs = [timed(method, u) for u in us]
                times[name] = median(run[0] for run in runs)
                values[name] = np.array([run[1] for run in runs])
            best = np.max(list(values.values()), axis=0)
            for name in methods:
                rows.append(
                    [
                        f"{kind}, r = {r}, {name}",
                        f"{1e3 * times[name]:.2f}",
                        f"{100 * np.mean(1 - values[name] / best):.4f} %",
                        f"{times['SciPy 2opt'] / times[name]:.0f}",
                    ]
                )
    print_table(
        "MAP: below the best found, and times faster than 2opt",
        ["matrix and method", "milliseconds", "below best", "faster"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument(
        "--lolib", type=Path, default=Path(__file__).parents[3] / "shared/data/linear_ordering"
    )
    args = parser.parse_args()
    tasks = {
        "greedy": lambda: greedy(args.repeats),
        "batch": lambda: batch(args.repeats),
        "quality": lambda: quality(args.instances),
        "effort": lambda: effort(max(3, args.instances // 5)),
        "exact": lambda: exact(max(3, args.instances // 4)),
        "lolib": lambda: lolib(args.lolib),
        "peers": lambda: peers(max(3, args.instances // 4)),
        "map": lambda: map_decoders(max(4, args.instances // 2)),
    }
    for part in args.parts:
        tasks[part]()


if __name__ == "__main__":
    main()
