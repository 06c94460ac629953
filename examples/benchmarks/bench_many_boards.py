"""Time of the steps from votes on pairs of documents to a ranker, for many small queries.

    python examples/benchmarks/bench_many_boards.py
    python examples/benchmarks/bench_many_boards.py --queries 1000 --votes 30

Each query has 10 documents. Pairs are random, 10 % of the votes are ties, and 2 % have no answer.
"GiB" is the peak memory of the process so far.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from _harness import print_table
from scipy.special import expit
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker, Judgements, aggregate
from sklearn_rankcal.aggregation import AggregatedLoss, BradleyTerry
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning

SIZE = 10


def make_votes(n_queries: int, n_votes: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Return the scores of all documents, and a table of votes."""
    rng = np.random.default_rng(0)
    scores, n = rng.normal(size=(n_queries, SIZE)), n_queries * n_votes
    query, first = np.repeat(np.arange(n_queries), n_votes), rng.integers(SIZE, size=n)
    second = (first + rng.integers(1, SIZE, size=n)) % SIZE
    won = rng.random(n) < expit(scores[query, first] - scores[query, second] + 0.3)
    winner = np.where(won, "model_a", "model_b").astype(object)
    winner[rng.random(n) < 0.1], winner[rng.random(n) < 0.02] = "tie", "refused"
    table = {"query": query, "first": first, "second": second, "winner": winner}
    return scores, pd.DataFrame(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--votes", type=int, default=15, help="votes of each query")
    options = parser.parse_args()
    warnings.simplefilter("ignore", DisconnectedComparisonsWarning)
    rows: list[tuple[str, str, str]] = []

    def timed(name: str, step: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = step()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        rows.append((name, f"{time.perf_counter() - start:.1f}", f"{peak:.2f}"))
        return result

    scores, table = timed("make the votes", lambda: make_votes(options.queries, options.votes))
    columns = table["first"], table["second"], table["winner"]
    votes = timed(
        "Judgements.from_votes",
        lambda: Judgements.from_votes(*columns, groups=table["query"], refused="refused"),
    )
    board = timed("aggregate", lambda: aggregate(votes, BradleyTerry(penalty=1)))
    timed("audit", board.audit)
    timed("next_comparisons, 5 of each query", lambda: board.next_comparisons(5, target="all"))
    groups = np.repeat(np.arange(options.queries), SIZE)
    documents = np.tile(np.arange(SIZE), options.queries)
    y = timed("to_labels", lambda: votes.to_labels(groups, documents))
    X = scores.reshape(-1, 1) + np.random.default_rng(1).normal(size=(len(y), 5))
    loss = AggregatedLoss("ndcg", BradleyTerry(penalty=1), subset_size="all")
    ranker = CalibratedRanker(Ridge(), loss=loss, context=None)
    timed("fit", lambda: ranker.fit(X, y, groups=groups))
    title = f"{options.queries:,} queries of {SIZE} documents, {options.votes} votes each"
    print_table(title, ["step", "seconds", "GiB"], rows)


if __name__ == "__main__":
    main()
