"""Speed of the metrics: five metrics in one call, against a loop over scikit-learn for one.

`evaluate_rankings` with ndcg@10, map, err@20, precision@10 and kendall_tau (relevant: y >= 1),
including grouping and sort, is timed against `sklearn.metrics.ndcg_score(k=10)` called query by
query. This is scikit-learn's way to rank many queries of different sizes. The loop only runs over
the first queries, and its time is SCALED LINEARLY to all of them. It is given the gains 2^y - 1:
both compute the same number, and the largest difference per query is printed.

Scores are distinct, or heavily tied (rounded to a few levels, like the scores of a few trees); both
average over ties. Queries have one size, or sizes between a fifth and nine fifths of it. If all
sizes are equal, scikit-learn also gets a 2-D array. This is its fastest way, with ignore_ties=True
for distinct scores.

The second table splits the same call: each metric alone, with the reading, grouping and sort of
every call.

`--runs` compares `evaluate_run` with ir_measures instead: ndcg@10, map, recall@100 and mrr of a run
of 1,000 queries and 1,000 documents each, 20 of them judged, as a data frame and as nested dicts.

    python examples/benchmarks/bench_metrics.py --queries 10000 --documents 120
    python examples/benchmarks/bench_metrics.py --runs
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
from _harness import interleaved, print_table
from sklearn.metrics import ndcg_score as sklearn_ndcg_score
from sklearn.utils import Bunch

from sklearn_rankcal import sizes_to_groups
from sklearn_rankcal.losses import MEASURES
from sklearn_rankcal.losses._base import BinaryMeasure
from sklearn_rankcal.metrics import evaluate_rankings, evaluate_run

METRICS = ("ndcg@10", "map", "err@20", "precision@10", "kendall_tau")


def make_rankings(
    n_queries: int, n_documents: int, varied: bool, n_levels: int | None, seed: int = 0
) -> Bunch:
    """Grades 0 to 4, and scores that follow them with noise; `n_levels` distinct scores or all."""
    rng = np.random.default_rng(seed)
    sizes = np.full(n_queries, n_documents)
    if varied:
        sizes = rng.integers(max(1, n_documents // 5), 9 * n_documents // 5 + 1, size=n_queries)
    groups = sizes_to_groups(sizes)
    y = rng.choice(5, size=len(groups), p=[0.5, 0.3, 0.12, 0.06, 0.02])
    scores = y + rng.normal(scale=2.0, size=len(groups))
    if n_levels is not None:
        edges = np.quantile(scores, np.linspace(0, 1, n_levels + 1)[1:-1])
        scores = np.searchsorted(edges, scores).astype(np.float64)
    return Bunch(y=y, scores=scores, groups=groups, sizes=sizes)


# -------------------------------------------------------------------- what is measured


def time_evaluate_rankings(data: Bunch, metrics: tuple[str, ...] = METRICS) -> dict[str, Any]:
    binary = any(issubclass(MEASURES[name.split("@")[0]], BinaryMeasure) for name in metrics)
    threshold = {"threshold": 1} if binary else {}
    return evaluate_rankings(data.y, data.scores, groups=data.groups, metrics=metrics, **threshold)


def time_sklearn_loop(data: Bunch, n_queries: int) -> np.ndarray:
    """scikit-learn's NDCG@10 of the first queries, one call each."""
    gains = np.exp2(data.y) - 1.0
    stops = np.cumsum(data.sizes[:n_queries])
    return np.array(
        [
            sklearn_ndcg_score(gains[None, start:stop], data.scores[None, start:stop], k=10)
            for start, stop in zip(stops - data.sizes[:n_queries], stops, strict=True)
        ]
    )


def time_sklearn_array(data: Bunch, ignore_ties: bool) -> float:
    """scikit-learn's NDCG@10 of all queries, of one size, in one call."""
    shape = (len(data.sizes), -1)
    gains = np.exp2(data.y) - 1.0
    return sklearn_ndcg_score(
        gains.reshape(shape), data.scores.reshape(shape), k=10, ignore_ties=ignore_ties
    )


def track_agreement(data: Bunch, n_queries: int) -> float:
    """Largest difference of NDCG@10 between the two on those queries, where it is defined."""
    ours = evaluate_rankings(
        data.y, data.scores, groups=data.groups, metrics=["ndcg@10"], return_per_query=True
    )["ndcg@10"][:n_queries]
    defined = ~np.isnan(ours)
    return float(np.abs(ours - time_sklearn_loop(data, n_queries))[defined].max(initial=0.0))


def print_runs(repeats: int, n_queries: int = 1000, n_documents: int = 1000) -> None:
    """`evaluate_run` and ir_measures on the same tables: their times, and how much they differ."""
    import ir_measures
    import pandas as pd

    rng = np.random.default_rng(0)
    query = np.repeat([f"query{q}" for q in range(n_queries)], n_documents)
    document = [rng.choice(10**5, n_documents, replace=False) for _ in range(n_queries)]
    frame = pd.DataFrame({"query_id": query, "doc_id": np.concatenate(document).astype(str)})
    frame["score"] = rng.normal(size=len(frame))
    judged = frame.groupby("query_id", sort=False).head(20)[["query_id", "doc_id"]]
    qrels = judged.assign(relevance=rng.integers(0, 3, len(judged)))
    as_dict = {
        q: dict(zip(part["doc_id"], part["score"], strict=True))
        for q, part in frame.groupby("query_id", sort=False)
    }
    theirs = {
        "ndcg@10": ir_measures.nDCG @ 10,
        "map": ir_measures.AP,
        "recall@100": ir_measures.R @ 100,
        "mrr": ir_measures.RR,
    }
    rows = []
    for name, run in (("data frame", frame), ("dict of dicts", as_dict)):
        tasks = {
            "ours": partial(
                evaluate_run, qrels, run, metrics=list(theirs), ties="trec_eval", gain="linear"
            ),
            "theirs": partial(ir_measures.calc_aggregate, theirs.values(), qrels, run),
        }
        seconds = interleaved(tasks, repeats)
        ours, wanted = tasks["ours"](), tasks["theirs"]()
        differs = max(abs(ours[metric] - wanted[theirs[metric]]) for metric in theirs)
        rows.append(
            [
                name,
                f"{seconds['ours']:.2f}",
                f"{seconds['theirs']:.2f}",
                f"{seconds['theirs'] / seconds['ours']:.1f}x",
                f"{differs:.0e}",
            ]
        )
    print_table(
        f"a run of {n_queries} queries of {n_documents}: evaluate_run against ir_measures "
        f"{ir_measures.__version__}, medians of {repeats}",
        ["run", "ours, s", "theirs, s", "theirs / ours", "differ by"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=10_000, help="(default: 10000)")
    parser.add_argument("--documents", type=int, default=120, help="per query (default: 120)")
    parser.add_argument("--levels", type=int, default=20, help="of tied scores (default: 20)")
    parser.add_argument(
        "--loop", type=int, default=500, help="queries of scikit-learn's loop (default: 500)"
    )
    parser.add_argument("--repeats", type=int, default=5, help="(default: 5)")
    parser.add_argument("--runs", action="store_true", help="evaluate_run against ir_measures")
    arguments = parser.parse_args()
    if arguments.runs:
        print_runs(arguments.repeats)
        return
    n_queries, n_loop = arguments.queries, min(arguments.loop, arguments.queries)
    rows, parts = [], []
    for varied in (False, True):
        for n_levels in (None, arguments.levels):
            data = make_rankings(n_queries, arguments.documents, varied, n_levels)
            name = f"{'varied sizes' if varied else 'one size'}, " + (
                "distinct scores" if n_levels is None else f"{n_levels} score levels"
            )
            tasks = {
                "five": partial(time_evaluate_rankings, data),
                "loop": partial(time_sklearn_loop, data, n_loop),
                **{metric: partial(time_evaluate_rankings, data, (metric,)) for metric in METRICS},
            }
            if not varied:
                tasks["array"] = partial(time_sklearn_array, data, n_levels is None)
            seconds = interleaved(tasks, arguments.repeats)
            loop, five = seconds["loop"] * n_queries / n_loop, seconds["five"]
            rows.append(
                [
                    name,
                    f"{five:.3f}",
                    f"{loop:.2f}",
                    f"{loop / five:.1f}x",
                    "-" if varied else f"{seconds['array'] / five:.1f}x",
                    f"{track_agreement(data, n_loop):.0e}",
                ]
            )
            parts.append([name, *(f"{loop / seconds[metric]:.0f}x" for metric in METRICS)])
    print_table(
        f"{n_queries} queries of {arguments.documents}: five metrics in one call against a loop "
        f"over sklearn.metrics.ndcg_score\n(measured on {n_loop} queries and scaled linearly), "
        f"medians of {arguments.repeats}",
        [
            "rankings",
            "five, s",
            "loop for one, s",
            "loop / five",
            "2-D call / five",
            "NDCG differs by",
        ],
        rows,
    )
    print_table(
        "One metric alone, sort and grouping included: the loop's time for NDCG over it",
        ["rankings", *METRICS],
        parts,
    )


if __name__ == "__main__":
    main()
