"""Votes saved by `Aggregate.next_comparisons`.

    python examples/benchmarks/bench_next_comparisons.py
    python examples/benchmarks/bench_next_comparisons.py --models 20 --arenas 50 --plot FILE

Arenas of models with normal scores of standard deviation 0.7 begin with 10 votes for each model on
random pairs. Then they request batches of votes in one of these ways:

uniform  Random pairs.
even     The pairs with the fewest comparisons.
first, all, item
         `next_comparisons` with this target; the item is the one in the middle.

After each batch, the columns are means over all arenas: the share of arenas with a first place that
is clear at any time (`is_first_clear(anytime=True)`) and right; the share with a first place that
is clear and wrong; the mean distance between the ranks and the true ranks; and the length of the 95
% interval of the item in the middle. The last table shows how many votes uniform pairs need to
match planned pairs with a third of all votes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from _harness import print_table
from joblib import Parallel, delayed

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.queries import order_to_ranks

WAYS = ("uniform", "even", "first", "all", "item")
COLUMNS = ("first place clear", "clear and wrong", "rank error", "interval of the item")


def ask(way: str, board: Any, votes: Any, m: int, n: int, rng: Any) -> Any:
    """Return n pairs, of shape (n, 2)."""
    if way == "uniform":
        first = rng.integers(m, size=n)
        return np.column_stack([first, (first + rng.integers(1, m, size=n)) % m])
    if way == "even":
        i, j = np.triu_indices(m, 1)
        times = np.zeros((m, m))
        np.add.at(times, (votes.min(axis=1), votes.max(axis=1)), 1)
        copies = -(-n // len(i))  # a pair can be drawn several times
        counts = (times[i, j] + np.arange(copies)[:, None]).ravel()
        order = np.lexsort((rng.random(len(counts)), counts))[:n] % len(i)
        return np.column_stack([i[order], j[order]])
    return np.array(board.next_comparisons(n, target=m // 2 if way == "item" else way))


def run(way: str, seed: int, m: int, batch: int, n_batches: int) -> Any:
    """One arena: the columns after each batch, of shape (n_batches + 1, n_columns)."""
    rng = np.random.default_rng(seed)
    scores = np.sort(rng.normal(scale=0.7, size=m))[::-1]
    votes, rows = np.empty((0, 2), dtype=np.int64), []
    asked = ask("uniform", None, votes, m, 10 * m, rng)
    for _ in range(n_batches + 1):
        gap = scores[asked[:, 0]] - scores[asked[:, 1]]
        lost = rng.random(len(asked)) > 1 / (1 + np.exp(-gap))
        asked[lost] = asked[lost, ::-1]
        votes = np.concatenate([votes, asked])
        read = Judgements.from_pairs(votes, items=list(range(m)))
        board = aggregate(read, intervals="information")
        true_ranks = order_to_ranks(np.argsort(-scores[board.items]))
        clear = board.is_first_clear(anytime=True)
        right = board.items[board.rows_of()[0]] == 0
        item = np.flatnonzero(board.items == m // 2)[0]
        length = board.score_high[item] - board.score_low[item]
        error = np.abs(board.ranks - true_ranks).mean()
        rows.append((clear and right, clear and not right, error, length))
        asked = ask(way, board, votes, m, batch, rng)
    return np.array(rows, dtype=float)


def measure(args: Any) -> dict[str, Any]:
    """The mean columns of each way."""
    found = {}
    for way in WAYS:
        arenas = Parallel(n_jobs=args.jobs)(
            delayed(run)(way, seed, args.models, args.batch, args.batches)
            for seed in range(args.arenas)
        )
        found[way] = np.mean(arenas, axis=0)
    return found


def votes_for(found: dict[str, Any], total: Any) -> list[list[str]]:
    """The votes that uniform pairs need to match planned pairs with a third of all votes."""
    rows = []
    for way, column, sign in (("first", 0, 1), ("all", 2, -1), ("item", 3, -1)):
        place = len(total) // 3
        uniform = sign * found["uniform"][:, column]
        reached = np.flatnonzero(uniform >= sign * found[way][place, column])
        needed = f"{total[reached[0]]:,}" if len(reached) else f"more than {total[-1]:,}"
        value = f"{found[way][place, column]:.3f}"
        rows.append([f"{way}: {COLUMNS[column]} {value}", f"{total[place]:,}", needed])
    return rows


def plot(found: dict[str, Any], total: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    for ax, column, way in zip(axes, (0, 2, 3), ("first", "all", "item"), strict=True):
        for name, label in (("uniform", "random pairs"), (way, f"target={way}")):
            ax.plot(total, found[name][:, column], label=label)
        ax.set(xlabel="votes", ylabel=COLUMNS[column])
        ax.legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--arenas", type=int, default=200)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    found = measure(args)
    total = 10 * args.models + args.batch * np.arange(args.batches + 1)
    shown = np.linspace(0, args.batches, 7).astype(int)
    for k, column in enumerate(COLUMNS):
        rows = [[way, *(f"{found[way][t, k]:.3f}" for t in shown)] for way in WAYS]
        print_table(column, ["votes", *(f"{total[t]:,}" for t in shown)], rows)
    header = ["target", "planned votes", "votes on random pairs"]
    print_table("Votes for the same certainty", header, votes_for(found, total))
    if args.plot:
        plot(found, total, args.plot)


if __name__ == "__main__":
    main()
