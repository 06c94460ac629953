"""Cost of context columns: seconds and memory of the columns, and of fit and predict with them.

Seconds are processor seconds, summed over all threads.

columns
    `add_context` with z-scores into a table of float64, with the compiled kernel and with NumPy.
    The reference is copying X twice into such a table, the least work that any method does. Memory
    is the peak that `tracemalloc` measures in addition to the table, in multiples of X. Rows are
    contiguous or in random order.
auto
    Fit and predict of the default ranker (``context="auto"``), without context, and with the
    z-scores of all columns. The reference is LightGBM's lambdarank, if installed, on X alone with
    the same number of trees and leaves. In one table, features have the same distribution in every
    query, and context cannot help; in another, they have a level of their own in each query.
    Predict is also compared with one `predict` of the ranker's regressor on the finished table.
    NDCG@10 is measured on new queries.
shares
    NDCG@10 on new queries with the shares of categories that ``context="auto"`` adds, minus without
    context, with the processor seconds of both fits. Queries have 20 documents, three numeric
    columns and a categorical one. Relevance depends on whether a document has the category that its
    query looks for (most of its documents do), or on the category itself, or on neither.
choices
    Reciprocal rank of the chosen alternative in new queries of 3 to 6 alternatives, with the
    differences that ``context="auto"`` adds to short queries, minus the same with z-scores and
    without context. The utility has Gumbel noise, so that choices follow a logit model.

    python examples/benchmarks/bench_context.py --documents 240000 --trees 100
    python examples/benchmarks/bench_context.py --parts shares
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from _harness import half_interval, interval, print_table, values_of_queries
from sklearn.utils import Bunch

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal._kernels import KERNELS, _numpy
from sklearn_rankcal._kernels import kernels as running
from sklearn_rankcal.metrics import ndcg_score
from sklearn_rankcal.models import default_regressor
from sklearn_rankcal.models._context import add_context
from sklearn_rankcal.queries import Queries

QUERY_SIZE = 120
PARTS = ("columns", "auto", "shares", "choices")
RANKERS = "boosting"
#: How relevance depends on categories: the gain of the category that the query looks for, the
#: standard deviation of gains of categories, whether most documents have the category of the query,
#: and the number of categories.
SHOPS = {
    "the category looked for": (1.2, 0.0, True, 12),
    "all others": (-1.2, 0.0, True, 12),
    "looked for, and its own gain": (0.8, 0.8, True, 12),
    "its own gain": (0.0, 0.8, True, 12),
    "its own gain, random": (0.0, 0.8, False, 12),
    "nothing": (0.0, 0.0, True, 12),
    "nothing, random, 5 levels": (0.0, 0.0, False, 5),
    "nothing, random, 50 levels": (0.0, 0.0, False, 50),
    "nothing, random, 120 levels": (0.0, 0.0, False, 120),
}
#: Utilities of choices; each word is one change of the linear utility or of its attributes.
CHOICES = (
    "linear",
    "linear, skewed",
    "linear, levels",
    "linear, levels, person",
    "linear, person",
    "linear, middle",
    "nonlinear",
    "interactions",
    "interactions, levels",
    "nonlinear, interactions, person",
)


def make_data(n_documents: int, n_features: int, level: float, seed: int) -> Bunch:
    """Grades 0 to 4 that follow eight features, to which queries add a level."""
    rng = np.random.default_rng(seed)
    n_queries = max(2, n_documents // QUERY_SIZE)
    groups = np.repeat(np.arange(n_queries), QUERY_SIZE)
    X = rng.random((len(groups), n_features), dtype=np.float32)
    latent = np.square(X[:, :8]).sum(axis=1) + rng.random(len(groups))
    shift = level * rng.random((n_queries, n_features), dtype=np.float32)
    for query in range(n_queries):  # one query at a time adds no peak of memory
        X[query * QUERY_SIZE : (query + 1) * QUERY_SIZE] += shift[query]
    y = np.searchsorted(np.quantile(latent, [0.5, 0.75, 0.9, 0.97]), latent).astype(np.float64)
    return Bunch(X=X, y=y, groups=groups)


def processor_seconds(tasks: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Least processor seconds of each task, over all threads; the tasks take turns.

    The first touch of new memory can take longer than all computations, and happens by chance.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            started = time.process_time()
            task()
            seconds[name].append(time.process_time() - started)
    return {name: min(values) for name, values in seconds.items()}


# -------------------------------------------------------------------- the columns


def time_columns(X: np.ndarray, queries: Queries, describe: Any, n_temporaries: int) -> Any:
    kept = running.describe, running.N_TEMPORARIES
    running.describe, running.N_TEMPORARIES = describe, n_temporaries
    try:
        return add_context(X, queries, ("zscore",), dtype=np.float64)[0]
    finally:
        running.describe, running.N_TEMPORARIES = kept


def time_copies(X: np.ndarray) -> np.ndarray:
    table = np.empty((len(X), 2 * X.shape[1]))
    for start in range(0, len(X), 1024):
        rows = slice(start, start + 1024)
        table[rows, : X.shape[1]] = X[rows]
        table[rows, X.shape[1] :] = X[rows]
    return table


def peakmem_columns(call: Callable[[], Any]) -> int:
    """Peak bytes in addition to the result."""
    tracemalloc.start()
    try:
        result = call()
        return tracemalloc.get_traced_memory()[1] - result.nbytes
    finally:
        tracemalloc.stop()


def report_columns(arguments: argparse.Namespace) -> None:
    data = make_data(arguments.documents, arguments.features, 1.0, 0)
    layouts = {
        "contiguous": Queries.from_groups(data.groups),
        "random order": Queries.from_groups(np.random.default_rng(0).permutation(data.groups)),
    }
    kernels = {"NumPy": (_numpy.describe, _numpy.N_TEMPORARIES)}
    if KERNELS == "compiled":
        kernels = {"compiled": (running.describe, running.N_TEMPORARIES), **kernels}
    rows = []
    for dtype in (np.float32, np.float64):
        X = data.X.astype(dtype, copy=False)
        for layout, queries in layouts.items():
            tasks = {
                name: partial(time_columns, X, queries, *kernel) for name, kernel in kernels.items()
            }
            tasks["two copies"] = partial(time_copies, X)
            seconds = processor_seconds(tasks, arguments.repeats)
            for name, task in tasks.items():
                rows.append(
                    [
                        f"{np.dtype(dtype).name}, {layout}: {name}",
                        f"{seconds[name]:.3f}",
                        f"{seconds[name] / seconds['two copies']:.2f}x",
                        f"{peakmem_columns(task) / X.nbytes:.3f}",
                    ]
                )
    print_table(
        f"Z-scores of {len(data.y)} x {arguments.features}; least of {arguments.repeats}",
        ["X and kernel", "seconds", "/ two copies", "memory / X"],
        rows,
    )


# -------------------------------------------------------------------- fit and predict


def fit_ranker(data: Bunch, trees: int, context: Any) -> CalibratedRanker:
    regressor = default_regressor(len(data.y)).set_params(max_iter=trees)
    return CalibratedRanker(regressor, context=context).fit(data.X, data.y, groups=data.groups)


def fit_lambdarank(data: Bunch, trees: int) -> Any:
    from lightgbm import LGBMRanker

    model = LGBMRanker(
        n_estimators=trees,
        num_leaves=default_regressor(len(data.y)).max_leaf_nodes,
        learning_rate=0.05,
        n_jobs=int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)),
        verbose=-1,
    )
    return model.fit(data.X, data.y, group=np.bincount(data.groups))


def keep(fitted: dict[str, Any], name: str, fit: Callable[[], Any]) -> None:
    fitted[name] = fit()


def report_auto(arguments: argparse.Namespace) -> None:
    for level, title in ((0.0, "the same distribution"), (1.0, "a level of its own")):
        data, test = (make_data(arguments.documents, arguments.features, level, s) for s in (0, 1))
        fits: dict[str, Callable[[], Any]] = {
            f"context={context!r}": partial(fit_ranker, data, arguments.trees, context)
            for context in ("auto", None, "zscore")
        }
        if find_spec("lightgbm") is not None:
            fits["lambdarank, X alone"] = partial(fit_lambdarank, data, arguments.trees)
        fitted: dict[str, Any] = {}
        tasks = {name: partial(keep, fitted, name, fit) for name, fit in fits.items()}
        seconds = processor_seconds(tasks, arguments.repeats)
        rows = []
        for name, ranker in fitted.items():
            if name.startswith("context"):
                scores = ranker.decision_function(test.X, groups=test.groups)
                queries = Queries.from_groups(test.groups)
                table = ranker.model_._table(test.X, queries)[0]
                predicts = {
                    "ours": partial(ranker.decision_function, test.X, groups=test.groups),
                    "regressor": partial(ranker.model_.regressor_.predict, table),
                }
                took = processor_seconds(predicts, arguments.repeats)
                del table
                columns = str(len(ranker.model_.context_.get("zscore", [])))
                predict, ratio = f"{took['ours']:.2f}", f"{took['ours'] / took['regressor']:.2f}x"
            else:
                scores = ranker.predict(test.X)
                took = processor_seconds(
                    {"ours": partial(ranker.predict, test.X)}, arguments.repeats
                )
                columns, predict, ratio = "", f"{took['ours']:.2f}", ""
            ndcg = ndcg_score(test.y, scores, groups=test.groups, k=10)
            base = seconds[next(reversed(tasks))]
            rows.append(
                [
                    name,
                    columns,
                    f"{seconds[name]:.2f}",
                    f"{seconds[name] / base:.2f}x",
                    predict,
                    ratio,
                    f"{ndcg:.4f}",
                ]
            )
        print_table(
            f"Every query has {title}: {len(data.y)} x {arguments.features}, {arguments.trees} "
            f"trees; least of {arguments.repeats}",
            ["", "z-scores", "fit, s", "/ last row", "predict, s", "/ regressor", "NDCG@10"],
            rows,
        )


# -------------------------------------------------------------------- shares of categories


def make_shop(world: str, n_queries: int, seed: int) -> Bunch:
    """Grades 0 to 3 of documents with a category; rows are in random order."""
    gain, spread, mostly, n_categories = SHOPS[world]
    rng = np.random.default_rng(seed)
    own = spread * rng.normal(size=n_categories)
    groups = rng.permutation(np.repeat(np.arange(n_queries), 20))
    wanted = rng.integers(n_categories, size=n_queries)[groups]
    has_it = rng.random(len(groups)) < rng.uniform(0.3, 0.8, n_queries)[groups]
    category = rng.integers(n_categories, size=len(groups))
    category = np.where(has_it, wanted, category) if mostly else category
    numbers = rng.normal(size=(len(groups), 3))
    latent = 0.7 * numbers[:, 0] + 0.4 * numbers[:, 1] + rng.normal(size=len(groups))
    latent += gain * (category == wanted) + own[category]
    X = pd.DataFrame(numbers, columns=["a", "b", "c"]).assign(
        category=pd.Categorical([f"category {number}" for number in category])
    )
    y = np.digitize(latent, np.quantile(latent, [0.6, 0.8, 0.93])).astype(np.float64)
    return Bunch(X=X, y=y, groups=groups)


def report_shares(arguments: argparse.Namespace) -> None:
    rows = []
    for world in SHOPS:
        for regressor in arguments.rankers:
            differences, seconds, level = [], {"auto": 0.0, None: 0.0}, []
            for draw in range(arguments.draws):
                data = make_shop(world, 2 * arguments.queries, 1000 + draw)
                train = data.groups < arguments.queries
                values = {}
                for context in seconds:
                    started = time.process_time()
                    ranker = CalibratedRanker(regressor, context=context)
                    ranker.fit(data.X[train], data.y[train], groups=data.groups[train])
                    seconds[context] += time.process_time() - started
                    groups = data.groups[~train]
                    scores = ranker.decision_function(data.X[~train], groups=groups)
                    values[context] = values_of_queries("ndcg@10", data.y[~train], scores, groups)
                differences.append(values["auto"] - values[None])
                level.append(np.nanmean(values[None]))
            found = np.concatenate(differences)
            found = found[~np.isnan(found)]
            cells = [f"{np.mean(level):.4f}", interval(found.mean(), half_interval(found))]
            cells += [f"{seconds[context]:.1f}" for context in seconds]
            rows.append([f"{world}, {regressor}", *cells])
    print_table(
        f"Relevance depends on ...: {arguments.draws} draws of {arguments.queries} queries",
        ["", "no context", "with shares", "fit, s", "without, s"],
        rows,
    )


# -------------------------------------------------------------------- choices of a few alternatives


def make_choices(world: str, n_queries: int, seed: int) -> Bunch:
    """Choices of 3 to 6 alternatives with six attributes; label 1 for the chosen one."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 7, n_queries)
    groups = np.repeat(np.arange(n_queries), sizes)
    X = rng.normal(size=(len(groups), 6))
    if "levels" in world:  # such as the length of a trip
        X[:, :3] += rng.normal(size=(n_queries, 3))[groups]
    if "skewed" in world:
        X[:, :2] = np.exp(X[:, :2])
    tastes = 0.8 * rng.normal(size=6)
    utility = X @ tastes
    if "nonlinear" in world:
        steps = np.tanh(1.5 * X[:, 0]) + tastes[2] * (X[:, 2] > 0.5)
        utility = 2.4 * steps - 1.2 * tastes[1] * np.abs(X[:, 1]) + 1.2 * np.sin(2 * X[:, 3])
    if "interactions" in world:
        utility = 0.6 * utility + X[:, 0] * X[:, 1] - 0.8 * X[:, 2] * X[:, 3]
    if "person" in world:  # attributes of the person, equal for all alternatives of a query
        person = rng.normal(size=(n_queries, 3))[groups]
        utility = 0.7 * utility + person[:, 0] * X[:, 0] + 0.8 * (person[:, 1] > 0) * X[:, 1]
        X = np.column_stack([X, person])
    if "middle" in world:  # a value far from the mean of the query is disliked
        utility -= 1.2 * np.abs(X[:, 0] - (np.bincount(groups, X[:, 0]) / sizes)[groups])
    utility += rng.gumbel(size=len(groups))
    best = np.maximum.reduceat(utility, np.append(0, np.cumsum(sizes)[:-1]))
    return Bunch(X=X, y=(utility == best[groups]) * 1.0, groups=groups)


def report_choices(arguments: argparse.Namespace) -> None:
    rows = []
    for world in CHOICES:
        values: dict[str, list[np.ndarray]] = {"auto": [], "zscore": [], "None": []}
        for draw in range(arguments.draws):
            data = make_choices(world, 900 + 4000, draw)
            train = data.groups < 900
            for name, found in values.items():
                ranker = CalibratedRanker(context=None if name == "None" else name)
                ranker.fit(data.X[train], data.y[train], groups=data.groups[train])
                groups = data.groups[~train]
                scores = ranker.decision_function(data.X[~train], groups=groups)
                found.append(values_of_queries("mrr", data.y[~train], scores, groups))
        auto, *others = (np.concatenate(found) for found in values.values())
        gains = [interval((auto - other).mean(), half_interval(auto - other)) for other in others]
        rows.append([world, f"{auto.mean():.4f}", *gains])
    print_table(
        f"Reciprocal rank of the chosen one of 3 to 6: {arguments.draws} draws of 900 queries",
        ["utility", "auto", "minus z-scores", "minus no context"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=300_000, help="(default: 300000)")
    parser.add_argument("--features", type=int, default=136, help="(default: 136)")
    parser.add_argument("--trees", type=int, default=100, help="(default: 100)")
    parser.add_argument("--repeats", type=int, default=3, help="(default: 3)")
    parser.add_argument("--queries", type=int, default=400, help="of shares (default: 400)")
    parser.add_argument("--draws", type=int, default=4, help="of generated data (default: 4)")
    parser.add_argument("--rankers", nargs="+", choices=RANKERS, default=RANKERS, help="of shares")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="(default: all)")
    arguments = parser.parse_args()
    if "columns" in arguments.parts:
        report_columns(arguments)
    if "auto" in arguments.parts:
        report_auto(arguments)
    if "shares" in arguments.parts:
        report_shares(arguments)
    if "choices" in arguments.parts:
        report_choices(arguments)


if __name__ == "__main__":
    main()
