"""Closed-form models of pairs for a million documents: seconds, memory, and their breakdown.

    python examples/benchmarks/bench_million.py
    python examples/benchmarks/bench_million.py --parts fit predict map default --repeats 5

fit      `PairwiseRidge` and `BilinearPairs` against scikit-learn's Ridge on the same documents.
         Also all-pairs ridge against the pairs i < j written out, one query at a time, and added up
         to normal equations: products in float32, and in float64 as ours. It runs on --part of the
         queries, and its seconds are divided by that.
predict  `CalibratedRanker` of both models with ``loss="pd", decoder="greedy_dag"``, as multiples of
         the fit of its model and of one HistGradientBoostingRegressor.predict (100 trees of 31
         leaves) on the same documents. Then a breakdown in percent: the order of rows inside
         queries (by content, to make ties independent of the user's order), features or scores of
         documents, predicted pairs, and decoding.
map      The same for ``loss="map"`` with `BilinearPairs`, decoded by the diagonal, and by local
         search on --part of the queries, times the inverse.
default  The same for the default model of ``loss="pd"``: gradient boosting, and a form fitted to
         its residuals. Takes minutes.

Seconds are medians of --repeats; the tasks take turns. Memory is the peak of resident memory,
sampled every 5 milliseconds, minus the memory in use once the data were ready, in multiples of the
bytes of X, or "-" without /proc. Set OMP_NUM_THREADS to compare on one core. Documents are float32
features that share a shift in a query; grades 0 to 4 depend on eight of them.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from _harness import interleaved, print_table
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.utils import Bunch

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.losses import MAP, PD
from sklearn_rankcal.models import BilinearPairs, DocumentModel, PairwiseRidge
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers import _diagnosis, _predict

PARTS = ("fit", "predict", "map", "default")
STATM = Path("/proc/self/statm")
STEPS = ("row order", "features", "pairs", "decoding", "rest")


def make_data(n_queries: int, n_documents: int, n_features: int) -> Bunch:
    """Made in place, to add no peak of memory."""
    rng = np.random.default_rng(0)
    X = np.empty((n_queries, n_documents, n_features), dtype=np.float32)
    rng.standard_normal(out=X, dtype=np.float32)
    latent = np.square(X[:, :, :8]).sum(axis=2) + 2 * X[:, :, 0] * X[:, :, 1]
    latent += rng.standard_normal(latent.shape, dtype=np.float32)
    X += rng.standard_normal((n_queries, 1, n_features), dtype=np.float32)
    edges = np.quantile(latent, [0.5, 0.75, 0.9, 0.97])
    y = np.searchsorted(edges, latent).astype(np.float64).reshape(-1)
    queries = Queries.uniform(n_queries, n_documents)
    return Bunch(
        X=X.reshape(-1, n_features), y=y, queries=queries, groups=queries.codes, used=resident()
    )


def resident() -> int:
    """Bytes of the process that are in memory; 0 where that is not known."""
    if not STATM.exists():
        return 0
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def track(
    tasks: dict[str, Callable[[], Any]], data: Bunch, repeats: int
) -> dict[str, tuple[float, str]]:
    """Median seconds of each task, and its peak memory above the data in multiples of X."""
    peaks = dict.fromkeys(tasks, 0)

    def watched(name: str) -> None:
        done = threading.Event()

        def sample() -> None:
            while not done.wait(0.005):
                peaks[name] = max(peaks[name], resident())

        sampler = threading.Thread(target=sample)
        sampler.start()
        try:
            tasks[name]()
        finally:
            done.set()
            sampler.join()

    seconds = interleaved({name: partial(watched, name) for name in tasks}, repeats)
    return {
        name: (
            seconds[name],
            f"{(peaks[name] - data.used) / data.X.nbytes:.2f}" if peaks[name] else "-",
        )
        for name in tasks
    }


@contextmanager
def clocks(places: dict[str, list[tuple[Any, str]]]) -> Iterator[dict[str, float]]:
    """Seconds spent inside functions, given as owner and attribute, while the context lasts."""
    seconds = dict.fromkeys(places, 0.0)

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            started = time.perf_counter()
            value = function(*args, **options)
            seconds[name] += time.perf_counter() - started
            return value

        return call

    with ExitStack() as stack:
        for name, functions in places.items():
            for owner, attribute in functions:
                function = timed(name, getattr(owner, attribute))
                stack.enter_context(patch.object(owner, attribute, function))
        yield seconds


# -------------------------------------------------------------------- fit


def pairs_in_chunks(
    X: np.ndarray, y: np.ndarray, queries: Queries, alpha: float, dtype: Any
) -> np.ndarray:
    """`PairwiseRidge` from the pairs i < j themselves, a query at a time."""
    d = X.shape[1]
    gram, moment, n_pairs = np.zeros((d, d)), np.zeros(d), 0
    for first, last in pairwise(queries.offsets):
        i, j = np.triu_indices(last - first, 1)
        table, labels = X[first:last].astype(dtype), y[first:last].astype(dtype)
        difference = table[i] - table[j]
        gram += difference.T @ difference
        moment += np.sign(labels[i] - labels[j]) @ difference
        n_pairs += len(i)
    gram /= n_pairs
    gram[np.diag_indices(d)] *= 1 + alpha
    return np.linalg.solve(gram, moment / n_pairs)


def report_fit(data: Bunch, arguments: argparse.Namespace) -> None:
    X, y, queries = data.X, data.y, data.queries
    targets = PD().encode(y, queries)
    products = MAP(threshold=3).encode(y, queries)
    some = Queries.uniform(max(1, round(queries.n_queries * arguments.part)), arguments.documents)
    part = slice(some.n_rows)
    models = {
        "PairwiseRidge": (PairwiseRidge(), targets),
        "BilinearPairs": (BilinearPairs(n_components=32), targets),
        "BilinearPairs, symmetric": (BilinearPairs(n_components=32, symmetric=True), products),
    }
    tasks: dict[str, Callable[[], Any]] = {"Ridge (scikit-learn)": lambda: Ridge().fit(X, y)}
    for name, (model, of_loss) in models.items():
        tasks[name] = partial(model.fit, X, of_loss, queries)
    ridge = models["PairwiseRidge"][0]
    for name in tuple(models)[:2]:
        ranker = CalibratedRanker(models[name][0], loss="pd")
        tasks[f"CalibratedRanker, {name}"] = partial(ranker.fit, X, y, groups=data.groups)
    wanted = PairwiseRidge().fit(X[part], PD().encode(y[part], some), some).coef_
    peers = {
        f"pairs in chunks, {dtype.__name__}": partial(
            pairs_in_chunks, X[part], y[part], some, ridge.alpha, dtype
        )
        for dtype in (np.float32, np.float64)
    }
    for peer in peers.values():
        np.testing.assert_allclose(peer(), wanted, atol=1e-5)
    found = track(tasks | peers, data, arguments.repeats)
    for name in peers:
        found[name] = (found[name][0] * queries.n_queries / some.n_queries, found[name][1])
    base, own = found["Ridge (scikit-learn)"][0], found["PairwiseRidge"][0]
    rows = [
        [name, f"{seconds:.2f}", f"{seconds / base:.2f}x", f"{seconds / own:.2f}x", peak]
        for name, (seconds, peak) in found.items()
    ]
    print_table(
        f"fit; pairs in chunks: {some.n_queries} queries, seconds and ratios for all of them",
        ["model", "seconds", "/ Ridge", "/ PairwiseRidge", "memory / X"],
        rows,
    )


# -------------------------------------------------------------------- predict


def predict(ranker: CalibratedRanker, X: np.ndarray, groups: np.ndarray) -> dict[str, float]:
    """The share of each step in the seconds of one `predict`."""
    places = {
        "row order": [(_predict, "hash_rows"), (_diagnosis, "hash_rows")],
        "features": [
            (PairwiseRidge, "predict_scores"),
            (BilinearPairs, "_features"),
            (DocumentModel, "predict"),
        ],
        "pairs": [(type(ranker.model_), "predict")],
        "decoding": [(type(ranker.decoder_), "decode")],
    }
    started = time.perf_counter()
    with clocks(places) as seconds:
        ranker.predict(X, groups=groups)
    total = time.perf_counter() - started
    seconds["pairs"] -= seconds["features"]
    seconds["rest"] = total - sum(seconds.values())
    return {step: value / total for step, value in seconds.items()}


def report_predict(
    title: str,
    rankers: dict[str, tuple[CalibratedRanker, float]],
    y: np.ndarray,
    data: Bunch,
    arguments: argparse.Namespace,
) -> None:
    """Of rankers, and the part of the queries that each predicts."""
    X, groups = data.X, data.groups
    boosting = HistGradientBoostingRegressor(max_iter=100, max_leaf_nodes=31, early_stopping=False)
    boosting.fit(X[:100_000], data.y[:100_000])
    tasks: dict[str, Callable[[], Any]] = {"boosting": lambda: boosting.predict(X)}
    shares: dict[str, dict[str, float]] = {}
    scale = {}
    for name, (ranker, part) in rankers.items():
        n_rows = max(1, round(part * data.queries.n_queries)) * arguments.documents
        scale[name] = len(y) / n_rows

        def track_predict(name: str = name, ranker: Any = ranker, n_rows: int = n_rows) -> None:
            shares[name] = predict(ranker, X[:n_rows], groups[:n_rows])

        tasks[f"{name}: fit"] = partial(ranker.fit, X, y, groups=groups)
        tasks[f"{name}: predict"] = track_predict
    found = track(tasks, data, arguments.repeats)
    rows = []
    for name, of_step in shares.items():
        (of_fit, fit_peak), (of_predict, peak) = (found[f"{name}: {x}"] for x in ("fit", "predict"))
        of_predict *= scale[name]
        rows.append(
            [
                name if scale[name] == 1 else f"{name}, times {scale[name]:.0f}",
                f"{of_fit:.2f}",
                fit_peak,
                f"{of_predict:.2f}",
                peak,
                f"{of_predict / of_fit:.2f}x",
                f"{of_predict / found['boosting'][0]:.2f}x",
                *(f"{100 * of_step[step]:.0f} %" for step in STEPS),
            ]
        )
    print_table(
        f"{title}; boosting predicts in {found['boosting'][0]:.2f} s",
        ["CalibratedRanker", "fit, s", "/ X", "predict, s", "/ X", "/ fit", "/ boosting", *STEPS],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=10_000, help="(default: 10000)")
    parser.add_argument("--documents", type=int, default=120, help="of a query (default: 120)")
    parser.add_argument("--features", type=int, default=136, help="(default: 136)")
    parser.add_argument("--repeats", type=int, default=2, help="(default: 2)")
    parser.add_argument(
        "--part",
        type=float,
        default=0.02,
        help="of the queries, for what takes too long on all (default: 0.02)",
    )
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=PARTS[:3], help="(default: all but default)"
    )
    arguments = parser.parse_args()
    data = make_data(arguments.queries, arguments.documents, arguments.features)
    print(
        f"{arguments.queries} queries of {arguments.documents} documents, {arguments.features} "
        f"float32 features: {data.X.nbytes / 2**20:.0f} MiB"
    )
    greedy = partial(CalibratedRanker, loss=PD(), decoder="greedy_dag")
    bilinear = BilinearPairs(n_components=32)
    products = partial(CalibratedRanker, BilinearPairs(n_components=32, symmetric=True))
    if "fit" in arguments.parts:
        report_fit(data, arguments)
    if "predict" in arguments.parts:
        rankers = {
            "PairwiseRidge": (greedy(PairwiseRidge()), 1.0),
            "BilinearPairs": (greedy(bilinear), 1.0),
        }
        report_predict("pairwise disagreement, greedy_dag", rankers, data.y, data, arguments)
    if "map" in arguments.parts:
        rankers = {
            "diagonal": (products(loss=MAP(), decoder="diagonal"), 1.0),
            "local search": (products(loss=MAP(), decoder="auto"), arguments.part),
        }
        relevant = (data.y >= 3).astype(np.float64)
        report_predict("average precision, BilinearPairs", rankers, relevant, data, arguments)
    if "default" in arguments.parts:
        rankers = {"default": (greedy(), 1.0)}
        report_predict("pairwise disagreement, greedy_dag", rankers, data.y, data, arguments)


if __name__ == "__main__":
    main()
