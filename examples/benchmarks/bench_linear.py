"""Time of `LinearRanker` for all pairs of a million documents.

solvers
    `LinearRanker("pairwise_logistic")` on float32 features of queries of 120 documents: L-BFGS with
    one and with several threads, and the stochastic gradient method with one and with ten passes.
    Each row has the seconds of `fit`, the processor seconds of all threads, and the quality of the
    fit: the remaining share of the decrease of the objective from w = 0, and NDCG@10 of new
    queries. The last column is the ratio of processor seconds to L-BFGS with one thread in the same
    run, because other processes change the seconds. One table has independent columns. Another has
    mixtures of them in other units. The condition number of their correlations is `--conditions`
    squared, which is harder for both solvers.
pairs
    The same objective as scikit-learn's `LinearSVC`, the squared hinge of all preferred pairs, on
    the number of queries with a million preferred pairs. `LinearSVC` gets the differences of the
    features of each pair, in a table with one row per pair. Its seconds for all queries of the
    first part are extrapolated by the number of pairs.

    python examples/benchmarks/bench_linear.py --documents 1200000 --n-jobs 2
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from typing import Any

import numpy as np
from _harness import print_table
from bench_overhead import make_data
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils import Bunch

from sklearn_rankcal import LinearRanker
from sklearn_rankcal.metrics import ndcg_score
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import WeightedComparisons

PARTS = ("solvers", "pairs")
QUERY_SIZE, CHUNK = 120, 1 << 14


def timed(call: Any) -> tuple[Any, float, float]:
    """The result of a call, its seconds, and the processor seconds of all threads."""
    started, busy = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - started, time.process_time() - busy


def objective(ranker: LinearRanker, data: Bunch, coef: np.ndarray) -> float:
    """The objective of a fitted ranker at other coefficients."""
    queries = Queries.from_groups(data.groups)
    targets = ranker.surrogate_.targets(ranker.loss_, data.y, queries)
    blocks = (data.X[start : start + CHUNK] for start in range(0, len(data.y), CHUNK))
    scores = np.concatenate([block.astype(np.float64) @ coef for block in blocks])
    values = ranker.surrogate_.evaluate(targets, scores, queries, derivatives=0).value
    return float(values.sum() + ranker.alpha / 2 * coef @ coef)


def mix_columns(X: np.ndarray, condition: float) -> None:
    """Replace the columns by mixtures of them. The scores stay linear functions of the columns."""
    n_features = X.shape[1]
    rng = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(rng.normal(size=(n_features, n_features)))
    spread = np.logspace(0, -np.log10(condition), n_features)
    again, _ = np.linalg.qr(rng.normal(size=(n_features, n_features)))
    units = 10.0 ** rng.uniform(-3, 3, n_features)
    mixture = (rotation * spread) @ again * units
    for start in range(0, len(X), CHUNK):
        X[start : start + CHUNK] = X[start : start + CHUNK] @ mixture


def report_solvers(arguments: argparse.Namespace, condition: float) -> None:
    data = make_data(arguments.documents, arguments.features, shuffled=False)
    test = make_data(120_000, arguments.features, shuffled=False, seed=1)
    if condition > 1:
        mix_columns(data.X, condition)
        mix_columns(test.X, condition)
    stochastic = {"solver": "sgd", "random_state": 0}
    tasks = {
        "L-BFGS, 1 thread": {"n_jobs": 1},
        f"L-BFGS, {arguments.n_jobs} threads": {"n_jobs": arguments.n_jobs},
        "stochastic gradient, 1 pass": {**stochastic, "max_iter": 1},
        "stochastic gradient, 10 passes": {**stochastic, "max_iter": 10},
    }
    fits = {}
    for name, options in tasks.items():
        ranker = LinearRanker(
            "pairwise_logistic", alpha=arguments.alpha, verbose=arguments.verbose, **options
        )
        fits[name] = timed(lambda ranker=ranker: ranker.fit(data.X, data.y, groups=data.groups))
    reference = fits["L-BFGS, 1 thread"][0]
    best = objective(reference, data, reference.coef_)
    fall = objective(reference, data, np.zeros(arguments.features)) - best
    rows = []
    for name, (ranker, seconds, busy) in fits.items():
        left = (objective(ranker, data, ranker.coef_) - best) / fall
        scores = ranker.decision_function(test.X, groups=test.groups)
        ndcg = ndcg_score(test.y, scores, groups=test.groups, k=10)
        rows.append(
            [
                name,
                f"{seconds:.1f}",
                f"{busy:.1f}",
                str(ranker.n_iter_),
                f"{left:.1e}",
                f"{ndcg:.4f}",
                f"{busy / fits['L-BFGS, 1 thread'][2]:.2f}",
            ]
        )
    n_pairs = len(data.y) * (QUERY_SIZE - 1) // 2
    print_table(
        f"Pairwise logistic, {len(data.y)} x {arguments.features} float32, "
        f"{n_pairs / 1e6:.0f} million pairs, condition {condition:g}",
        ["solver", "fit, s", "processors, s", "iterations", "left", "NDCG@10", "ratio"],
        rows,
    )


def report_pairs(arguments: argparse.Namespace) -> None:
    # About two fifths of the pairs have two labels that differ.
    n_queries = 1 + arguments.pairs // 4000
    data = make_data(n_queries * QUERY_SIZE, arguments.features, shuffled=False)
    pieces, n_pairs, used = [], 0, 0
    for start in range(0, len(data.y), QUERY_SIZE):  # a loop over queries, to make their pairs
        y, X = data.y[start : start + QUERY_SIZE], data.X[start : start + QUERY_SIZE]
        i, j = np.nonzero(y[:, None] > y)
        if n_pairs + len(i) > arguments.pairs:
            break
        pieces.append((X[i] - X[j]).astype(np.float64))
        n_pairs, used = n_pairs + len(i), start + QUERY_SIZE
    sign = np.where(np.arange(n_pairs) % 2, 1.0, -1.0)
    table = np.concatenate(pieces) * sign[:, None]
    subset = Bunch(X=data.X[:used], y=data.y[:used], groups=data.groups[:used])
    peer = LinearSVC(C=1.0, loss="squared_hinge", fit_intercept=False, dual=False)
    surrogate = WeightedComparisons("squared_hinge", "binary")
    # Each squared hinge has weight 1, and the penalty is half the square in both.
    ranker = LinearRanker(surrogate, alpha=1.0, n_jobs=1, verbose=arguments.verbose)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        _, _, of_peer = timed(lambda: peer.fit(table, sign))
    _, _, ours = timed(lambda: ranker.fit(subset.X, subset.y, groups=subset.groups))
    values = [objective(ranker, subset, coef) for coef in (peer.coef_[0], ranker.coef_)]
    all_pairs = n_pairs * arguments.documents / used
    note = " (not converged)" if caught else ""
    print_table(
        f"Squared hinge of {n_pairs} preferred pairs of {used} documents; scaled by the number of "
        f"pairs to {arguments.documents} documents with {all_pairs / 1e6:.0f} million",
        ["", "fit, s", "table, GiB", "objective", "scaled, s", "scaled table, GiB", "ratio"],
        [
            [
                f"LinearSVC on pairs{note}",
                f"{of_peer:.2f}",
                f"{table.nbytes / 2**30:.2f}",
                f"{values[0]:.6g}",
                f"{of_peer * all_pairs / n_pairs:.0f}",
                f"{table.nbytes / 2**30 * all_pairs / n_pairs:.0f}",
                f"{of_peer / ours:.1f}",
            ],
            [
                "LinearRanker",
                f"{ours:.2f}",
                f"{subset.X.nbytes / 2**30:.4f}",
                f"{values[1]:.6g}",
                f"{ours * all_pairs / n_pairs:.0f}",
                f"{subset.X.nbytes / 2**30 * all_pairs / n_pairs:.1f}",
                "1",
            ],
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=1_200_000, help="(default: 1200000)")
    parser.add_argument("--features", type=int, default=136, help="(default: 136)")
    parser.add_argument("--pairs", type=int, default=1_000_000, help="(default: 1000000)")
    parser.add_argument("--alpha", type=float, default=1e-6, help="the penalty (default: 1e-6)")
    parser.add_argument("--n-jobs", type=int, default=2, help="threads (default: 2)")
    parser.add_argument("--verbose", type=int, default=0, help="of the rankers (default: 0)")
    parser.add_argument(
        "--conditions", nargs="+", type=float, default=[1, 100], help="(default: 1 100)"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="(default: all)")
    arguments = parser.parse_args()
    if hasattr(os, "getloadavg"):
        print(f"load of the last minute: {os.getloadavg()[0]:.1f}, of {os.cpu_count()} processors")
    if "solvers" in arguments.parts:
        for condition in arguments.conditions:
            report_solvers(arguments, condition)
    if "pairs" in arguments.parts:
        report_pairs(arguments)


if __name__ == "__main__":
    main()
