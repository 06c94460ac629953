"""Decoding under rules against a greedy choice of the best permitted document, and its time.

Each document has random groups: a brand, with skewed shares, and whether its seller is new. Greedy
re-ranking takes the best document that exceeds no upper bound. Once lower bounds need all remaining
places of a prefix, it takes a document that they need. Both methods get the scores (for PD, the
matrices) of the same ranker. "Lost" is the measure of the decoder minus the one of greedy
re-ranking, as the mean over test queries with its 95 % interval, on the labels of the queries. The
measure is NDCG@10 for scores, and the share of uncontradicted preferences for PD. "Impossible" are
queries that the greedy choice cannot complete without breaking a rule.

    python examples/benchmarks/bench_rules.py --data ../shared/data
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries are loaded

import numpy as np
from _harness import difference, interval, print_table, values_of_queries
from bench_distilled import collections
from bench_mq2008 import REPOSITORY
from sklearn.utils import Bunch

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.decoders import Quota, Rules, decode_scores
from sklearn_rankcal.queries import Queries

Bounds = list[tuple[np.ndarray, int, int, int]]  # members, prefix, at least, at most


def make_rules(data: Bunch, rng: np.random.Generator) -> dict[str, Rules]:
    n = len(data.y)
    brand = rng.choice(6, n, p=[0.35, 0.25, 0.15, 0.1, 0.1, 0.05])
    new = rng.random(n) < 0.3
    brands = Quota(brand, first=10, at_most=3)
    return {
        "at most 3 of a brand": Rules(quotas=[brands], soft=10.0),
        "and 3 new sellers": Rules(quotas=[brands, Quota(new, first=10, at_least=3)], soft=10.0),
        "and 1, 2, 4 new ones": Rules(
            quotas=[brands, Quota(new, first=[2, 5, 10], at_least=[1, 2, 4])], soft=10.0
        ),
    }


def greedy(preferred: np.ndarray, bounds: Bounds) -> np.ndarray | None:
    """The order that takes the best permitted document next, or None if it cannot go on."""
    left, order = preferred.tolist(), []
    for place in range(len(left)):
        allowed = left
        for members, prefix, least, most in bounds:
            if place >= prefix:
                continue
            inside = members[order].sum()
            if inside >= most:
                allowed = [i for i in allowed if not members[i]]
            elif least - inside >= prefix - place:
                allowed = [i for i in allowed if members[i]]
        if not allowed:
            return None
        order.append(allowed[0])
        left.remove(allowed[0])
    return np.array(order)


def bounds_of(rules: Rules, rows: np.ndarray) -> Bounds:
    found = []
    for quota in rules.quotas:
        of = np.asarray(quota.of)[rows]
        for name in [True] if of.dtype == bool else np.unique(of):
            for prefix, least, most in quota.bounds(name):
                members = of == name
                most = len(rows) if most is None or prefix >= len(rows) else most
                found.append((members, min(prefix, len(rows)), least or 0, most))
    return found


def compare(data: Bunch, ranker: CalibratedRanker, rules: Rules) -> tuple[str, str, str]:
    """What greedy re-ranking loses, queries that it cannot rank, and milliseconds of decoding."""
    queries = Queries.from_groups(data.groups)
    free = ranker.predict(data.X, groups=data.groups)
    started = time.process_time()
    best = ranker.predict(data.X, groups=data.groups, rules=rules)
    seconds = time.process_time() - started
    report = ranker.rules_report(data.X, data.groups, rules=rules)
    ranks, impossible = free.copy(), 0
    for q in range(queries.n_queries):
        begin, end = queries.offsets[q : q + 2]
        rows = np.arange(begin, end) if queries.order is None else queries.order[begin:end]
        order = greedy(np.argsort(free[rows]), bounds_of(rules, rows))
        if order is None or report["broken"][q]:
            impossible += not report["broken"][q]
            ranks[rows] = best[rows]
        else:
            ranks[rows[order]] = np.arange(1, len(rows) + 1)
    metric = "pairwise_disagreement" if ranker.loss == "pd" else "ndcg@10"
    sign = -1 if ranker.loss == "pd" else 1
    found = [sign * values_of_queries(metric, data.y, -r, data.groups) for r in (best, ranks)]
    each = 1e3 * seconds / queries.n_queries
    return interval(*difference(*found)), str(impossible), f"{each:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=REPOSITORY / ".." / "shared" / "data",
        help="folder that contains letor/mq2008/S1.txt.gz .. S5.txt.gz",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of the worlds (default: 0)")
    arguments = parser.parse_args()
    rows = []
    wanted = ("MQ2008", "shifted features", "levels", "measurements")
    shuffles = range(arguments.seed, arguments.seed + 1)
    for name, folds in collections(arguments.data / "letor" / "mq2008", shuffles):
        if name not in wanted:
            continue
        train, test = folds[0]
        for loss in ("ndcg", "pd"):
            ranker = CalibratedRanker("boosting", loss=loss)
            ranker.fit(train.X, train.y, groups=train.groups)
            drawn = make_rules(test, np.random.default_rng(arguments.seed))
            for text, rules in drawn.items():
                rows.append([name, loss, text, *compare(test, ranker, rules)])
                print(*rows[-1], flush=True)
    print_table(
        "What greedy re-ranking loses",
        ["collection", "loss", "rules", "lost", "impossible", "ms a query"],
        rows,
    )
    rng = np.random.default_rng(0)
    scores, groups = rng.standard_normal(1_000_000), np.repeat(np.arange(10_000), 100)
    quota = Quota(rng.integers(0, 20, len(scores)), first=10, at_most=2)
    long, of = rng.standard_normal(1000), rng.integers(0, 20, 1000)
    prefixes = Quota(of, first=[10, 20, 50, 100, 200], at_least=[0, 0, 1, 3, 7],
                     at_most=[2, 3, 5, 8, 13])  # fmt: skip
    tasks = {
        "10,000 queries of 100, at most 2 of 20 brands in the first 10": (scores, groups, quota),
        "1,000 documents of 20 groups, bounds for five prefixes": (long, None, prefixes),
    }
    for text, (values, ids, quotas) in tasks.items():
        started = time.process_time()
        decode_scores(values, ids, rules=Rules(quotas=[quotas]))
        print(f"{text}: {time.process_time() - started:.2f} s")


if __name__ == "__main__":
    main()
