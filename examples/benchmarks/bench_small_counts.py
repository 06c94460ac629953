"""Reliability of statements about few votes and few judges, where the truth is known.

    python examples/benchmarks/bench_small_counts.py
    python examples/benchmarks/bench_small_counts.py --parts judges --worlds 1000

votes   A new item joins a board of three items with 200 votes for each pair. In truth it equals the
        best two. Columns, by the number of its votes: "first" is how often it is reported as first,
        which should be at most 2.5 %; "alone" how often no other item may be first; and "held" how
        often its 95 % interval contains the true score.
judges  Sixty judges compare eight items, in 1,500 votes. One item has 60 votes, all by few judges.
        "held" is how often the 95 % interval of this item contains the score that infinitely many
        judges would give it, and "length" the median length of this interval. Each judge adds
        normal numbers with the standard deviation "taste" to the scores.
queries Two rankings without a true difference, by the number of queries. "p < .05" should be at
        most 5 %, and "held" is how often the 95 % interval contains 0. Differences follow the
        normal distribution or Student's with 2 degrees of freedom, or are 0 in 80 % of the queries
        and normal in the rest.
effects A covariate that is nonzero in few votes, with the true effect b. "held" is how often the
        interval contains it, and "open" how often the votes do not bound it.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from typing import Any

import numpy as np
from _harness import print_table

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.metrics import compare_rankings

PARTS = ("votes", "judges", "effects", "queries")
KINDS = ("information", "robust", "resamples")


def draw(rng: Any, lead: Any) -> Any:
    return rng.random(len(lead)) < 1 / (1 + np.exp(-lead))


def board_of(votes: Any, kind: str, **options: Any) -> Any:
    if kind == "resamples":
        return aggregate(votes, n_resamples=400, **options)
    return aggregate(votes, intervals=kind)


def report_votes(n_worlds: int) -> None:
    rows = []
    true = np.array([1.0, 1.0, 0.0, 1.0]) * np.log(3)
    true -= true.mean()
    for kind, n in itertools.product(KINDS, (1, 2, 3, 5, 7, 10, 30)):
        rng = np.random.default_rng(n)
        first = alone = held = 0
        worlds = n_worlds if kind != "resamples" else n_worlds // 4
        for _ in range(worlds):
            i, j = (np.repeat(side, 200) for side in ((0, 0, 1), (1, 2, 2)))
            i, j = np.append(i, np.full(n, 3)), np.append(j, rng.integers(2, size=n))
            won = draw(rng, true[i] - true[j])
            board = board_of(np.column_stack([np.where(won, i, j), np.where(won, j, i)]), kind)
            best = board.items[board.rows_of()[0]]
            first += best == 3 and board.is_first_clear()
            alone += board.may_be_first().tolist() == [3]
            row = board.items.tolist().index(3)
            held += board.score_low[row] <= true[3] <= board.score_high[row]
        shares = [f"{count / worlds:.1%}" for count in (first, alone, held)]
        rows.append([kind, str(n), *shares])
    print_table("a new item", ["", "votes", "first", "alone", "held"], rows)


def expected_scores(scores: Any, taste: float) -> Any:
    """The scores of the votes of infinitely many judges."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    i, j = np.nonzero(~np.eye(len(scores), dtype=bool))
    gap = scores[i] - scores[j] + np.sqrt(2) * taste * nodes[:, None]
    share = weights @ (1 / (1 + np.exp(-gap))) / weights.sum()
    result = aggregate(Judgements.from_pairs(np.column_stack([i, j]), weight=share))
    return result.scores[np.argsort(result.items)]


def report_judges(n_worlds: int) -> None:
    rows = []
    r, item, scores = 8, 4, np.linspace(-1, 1, 8)
    for taste, kind, m in itertools.product(
        (0.0, 0.7), ("information", "robust", "judges"), (1, 2, 3, 5, 10, 30)
    ):
        rng, true = np.random.default_rng(m), expected_scores(scores, taste)
        held, others, lengths = [], [], []
        for _ in range(n_worlds if kind != "judges" else n_worlds // 4):
            own = scores + taste * rng.standard_normal((60, r))
            judge, i = rng.integers(60, size=1500), rng.integers(r, size=1500)
            j = (i + rng.integers(1, r, size=1500)) % r
            kept = (i != item) & (j != item)
            rival = rng.integers(r - 1, size=60)
            judge = np.append(judge[kept], rng.choice(60, m, replace=False)[np.arange(60) % m])
            i, j = (
                np.append(i[kept], np.full(60, item)),
                np.append(j[kept], rival + (rival >= item)),
            )
            won = draw(rng, own[judge, i] - own[judge, j])
            pairs = np.column_stack([np.where(won, i, j), np.where(won, j, i)])
            votes = Judgements.from_pairs(pairs, judge=judge)
            if kind == "judges":
                board = aggregate(votes, n_resamples=200, resample="judges")
            else:
                board = aggregate(votes, intervals=kind)
            order = np.argsort(board.items)
            low, high = board.score_low[order], board.score_high[order]
            inside = (low <= true) & (true <= high)
            held.append(inside[item])
            others.append(np.delete(inside, item).mean())
            lengths.append(high[item] - low[item])
        shares = f"{np.mean(held):.1%}", f"{np.median(lengths):.2f}", f"{np.mean(others):.1%}"
        rows.append([f"taste {taste:g}, {kind}", str(m), *shares])
    header = ["", "judges", "held", "length", "other items"]
    print_table("an item of few judges", header, rows)


def report_effects(n_worlds: int) -> None:
    rows = []
    scores = np.linspace(-1, 1, 5)
    for b, m in itertools.product((0.0, -1.0, -4.0), (3, 5, 10, 20)):
        held, unbounded = dict.fromkeys(KINDS[:2], 0), 0
        rng = np.random.default_rng(m)
        for _ in range(n_worlds):
            i = rng.integers(5, size=300)
            j = (i + rng.integers(1, 5, size=300)) % 5
            x = np.where(np.arange(300) < m, 1.0, 0.0)
            winner = np.where(draw(rng, scores[i] - scores[j] + b * x), "model_a", "model_b")
            votes = Judgements.from_votes(i, j, winner, covariates=x[:, None])
            for kind in held:
                one = aggregate(votes, intervals=kind).coefficients[0]
                held[kind] += one.low <= b <= one.high
            unbounded += bool(np.isinf([one.low, one.high]).any())
        shares = [f"{count / n_worlds:.1%}" for count in (*held.values(), unbounded)]
        rows.append([f"b = {b:g}", str(m), *shares])
    print_table("a sparse covariate", ["", "votes", *(f"held, {k}" for k in held), "open"], rows)


def report_queries(n_worlds: int) -> None:
    rows = []
    for kind, n in itertools.product(("normal", "heavy tails", "zeros"), (2, 3, 5, 8, 15, 30)):
        rng = np.random.default_rng(n)
        significant = held = 0
        for _ in range(n_worlds):
            d = rng.standard_t(2, size=n) if kind == "heavy tails" else rng.normal(size=n)
            if kind == "zeros":
                d *= rng.random(n) < 0.2
            compared = compare_rankings(None, d, np.zeros(n), n_resamples=1000)
            significant += compared.p_value < 0.05
            held += compared.low <= 0 <= compared.high
        shares = [f"{count / n_worlds:.1%}" for count in (significant, held)]
        rows.append([kind, str(n), *shares])
    print_table("rankings that are equal", ["", "queries", "p < .05", "held"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--worlds", type=int, default=400, help="boards of each kind")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # about few queries, the topic of this script
    if "votes" in args.parts:
        report_votes(args.worlds)
    if "judges" in args.parts:
        report_judges(args.worlds)
    if "effects" in args.parts:
        report_effects(args.worlds)
    if "queries" in args.parts:
        report_queries(args.worlds)


if __name__ == "__main__":
    main()
