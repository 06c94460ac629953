"""Log-loss of choice probabilities beside conditional logit, QuerySoftMax and rank_xendcg.

Generated choices have 3 to 7 alternatives with five to eight attributes, and three attributes of
the person. Choices follow a logit model with one of six utilities:

linear
    A sum of attributes.
weak
    A sum with small coefficients: most of a choice is chance.
products
    A sum, a product of an attribute and one of the person, and a sine.
sharp
    A large sum and product: little is chance.
cheapest
    The smallest value of a column within the choice counts in addition.
bends
    Absolute values and squares of attributes.

With ``--data``, also the choices of that folder, in three parts, each of which is kept apart once.
Peers stop early on one choice in seven. Columns are the same for all but conditional logit, which
gets those that are identified. ``error`` is the mean absolute error of the probabilities, and
``bins`` the mean distance of predicted and true probabilities in ten bins (observed shares for the
real ones). Intervals are over choices, and leave out how fits to other choices would vary.

    python examples/benchmarks/bench_choices.py
    python examples/benchmarks/bench_choices.py --data ../shared/data
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _harness import difference, interval, print_table
from bench_cost import read

from sklearn_rankcal import CalibratedRanker, LinearRanker
from sklearn_rankcal.losses import ChoiceLogLoss
from sklearn_rankcal.metrics import ndcg_score
from sklearn_rankcal.queries import Queries, Ranking

KINDS = ("linear", "weak", "products", "sharp", "cheapest", "bends")
NEW = 2_000  # choices to score
HEADER = ("method", "log-loss", "minus choice", "error", "bins", "NDCG@10", "seconds")


def utility(kind: str, X: np.ndarray, queries: Queries) -> np.ndarray:
    own, person = X[:, :8], X[:, 8:]
    linear = own[:, :5] @ [1.0, 0.7, 0.5, 0.3, 0.2]
    lowest = own[:, 0] == -queries.broadcast(queries.max(-own[:, 0]))
    found: np.ndarray = {
        "linear": linear,
        "weak": 0.25 * linear,
        "products": linear + 0.7 * own[:, 0] * person[:, 0] + 0.8 * np.sin(2 * own[:, 1]),
        "sharp": 3 * own[:, 0] + 2 * own[:, 1] * own[:, 2],
        "cheapest": -0.5 * own[:, 0] + 1.5 * lowest + 0.5 * own[:, 1],
        "bends": np.abs(own[:, 0]) - 0.5 * own[:, 1] ** 2 + 0.5 * own[:, 2],
    }[kind]
    return found


def draw(kind: str, n_choices: int, seed: int) -> tuple[Any, ...]:
    """Return the table, what was chosen, the choices, and the true probabilities."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    sizes = rng.integers(3, 8, n_choices)
    queries = Queries.from_groups(np.repeat(np.arange(n_choices), sizes))
    X = np.column_stack(
        [rng.normal(size=(queries.n_rows, 8)), rng.normal(size=(n_choices, 3))[queries.codes]]
    )
    scores = utility(kind, X, queries)
    drawn = scores + rng.gumbel(size=queries.n_rows)
    chosen = (drawn == queries.broadcast(queries.max(drawn))).astype(int)
    return X, chosen, queries.codes, softmax(scores, queries)


def softmax(scores: np.ndarray, queries: Queries) -> np.ndarray:
    odds = np.exp(scores - queries.broadcast(queries.max(scores)))
    return odds / queries.broadcast(queries.sum(odds))


def choice(X: Any, y: Any, groups: Any, new: Any, asked: Queries) -> Any:
    ranker = CalibratedRanker(loss="choice", n_jobs=1).fit(X, y, groups=groups)
    return ranker.choice_probabilities(new, asked.codes)


def logit(X: Any, y: Any, groups: Any, new: Any, asked: Queries) -> Any:
    queries = Queries.from_groups(groups)
    inside = np.column_stack([queries.center(column) for column in X.T])
    kept: list[int] = []
    for column in range(X.shape[1]):
        if np.linalg.matrix_rank(inside[:, [*kept, column]]) > len(kept):
            kept.append(column)
    ranker = LinearRanker("softmax", alpha=0).fit(X[:, kept], y, groups=groups)
    return ranker.choice_probabilities(new[:, kept], asked.codes)


def softmax_by_catboost(X: Any, y: Any, groups: Any, new: Any, asked: Queries) -> Any:
    from catboost import CatBoostRanker, Pool

    held, order = divide(groups)
    fit, stop = order[~held[order]], order[held[order]]
    model = CatBoostRanker(
        loss_function="QuerySoftMax", iterations=1000, thread_count=1, verbose=0, random_seed=0,
        early_stopping_rounds=50, allow_writing_files=False,
    )  # fmt: skip
    model.fit(
        X[fit], y[fit], group_id=groups[fit], eval_set=Pool(X[stop], y[stop], group_id=groups[stop])
    )
    return softmax(model.predict(new), asked)


def xendcg(X: Any, y: Any, groups: Any, new: Any, asked: Queries) -> Any:
    from lightgbm import LGBMRanker, early_stopping

    held, order = divide(groups)
    fit, stop = order[~held[order]], order[held[order]]
    sizes = [np.unique(groups[part], return_counts=True)[1] for part in (fit, stop)]
    model = LGBMRanker(
        objective="rank_xendcg", n_estimators=1000, learning_rate=0.05, num_leaves=15, n_jobs=1,
        verbose=-1, random_state=0,
    )  # fmt: skip
    model.fit(
        X[fit], y[fit], group=sizes[0], eval_set=[(X[stop], y[stop])], eval_group=sizes[1:],
        callbacks=[early_stopping(50, verbose=False)],
    )  # fmt: skip
    return softmax(model.predict(new), asked)


def default(X: Any, y: Any, groups: Any, new: Any, asked: Queries) -> Any:
    """Ranks for NDCG. Its scores are no probabilities."""
    return CalibratedRanker(n_jobs=1).fit(X, y, groups=groups).decision_function(new, asked.codes)


def divide(groups: Any) -> tuple[Any, Any]:
    _, codes = np.unique(groups, return_inverse=True)
    held = np.random.default_rng(0).permutation(codes.max() + 1)[codes] % 7 == 0
    return held, np.argsort(codes, kind="stable")


METHODS = {
    "choice": choice, "conditional logit": logit, "QuerySoftMax": softmax_by_catboost,
    "rank_xendcg": xendcg, "default": default,
}  # fmt: skip


def bins(p: np.ndarray, truth: np.ndarray) -> float:
    parts = np.array_split(np.argsort(p, kind="stable"), 10)
    return float(np.mean([abs(p[part].mean() - truth[part].mean()) for part in parts]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", nargs="*", type=int, default=[500, 2_000, 10_000])
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tasks: list[Any] = [(kind, n) for n in options.sizes for kind in options.kinds]
    if options.data is not None:
        tasks = [(path, 0) for path in sorted((options.data / "choices").glob("*.csv.gz"))]
    means: dict[str, list[float]] = {name: [] for name in options.methods}
    for task, n in tasks:
        losses: dict[str, list[np.ndarray]] = {name: [] for name in options.methods}
        others: dict[str, list[Any]] = {name: [] for name in options.methods}
        for seed in range(options.draws if n else 3):
            if n:
                X, y, groups, truth = draw(task, n + NEW, seed)
                out = groups >= n
            else:
                X, y, groups = read(task)
                ids, codes = np.unique(groups, return_inverse=True)
                truth = y
                out = np.random.default_rng(0).permutation(len(ids))[codes] % 3 == seed
            asked = Queries.from_groups(groups[out])
            for name in options.methods:
                started = time.process_time()
                p = METHODS[name](X[~out], y[~out], groups[~out], X[out], asked)
                seconds = time.process_time() - started
                ndcg = ndcg_score(y[out], p, groups=groups[out], k=10)
                if name == "default":  # the shares of its scores, where these are positive
                    p = softmax(np.log(np.maximum(p, 1e-3)), asked)
                ranking = Ranking.from_scores(p, asked)
                losses[name].append(ChoiceLogLoss().per_query(ranking, y[out].astype(float)))
                others[name].append(
                    (np.abs(p - truth[out]).mean(), bins(p, truth[out]), ndcg, seconds)
                )
        first, rows = np.concatenate(losses["choice"]), []
        for name in options.methods:
            loss = np.concatenate(losses[name])
            means[name].append(float(loss.mean()))
            error, off, ndcg, seconds = np.mean(others[name], axis=0)
            shown = f"{error:.4f}" if n else ""
            apart = interval(*difference(loss, first))
            row = name, f"{loss.mean():.4f}", apart, shown, f"{off:.4f}", f"{ndcg:.4f}"
            rows.append((*row, f"{seconds:.2f}"))
        title = f"{n} choices, {task}" if n else f"{task.name}, each third of the choices"
        print_table(title, HEADER, rows)
    rows = []
    for name, each in means.items():
        apart = interval(*difference(np.array(each), np.array(means["choice"])))
        rows.append((name, f"{np.mean(each):.4f}", apart))
    print_table("mean over the tables", ("method", "log-loss", "minus choice"), rows)


if __name__ == "__main__":
    main()
