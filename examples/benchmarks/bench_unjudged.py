"""Rows that nobody judged: kept with NaN, dropped, or set to 0, where the rest of the page counts.

    python examples/benchmarks/bench_unjudged.py
    python examples/benchmarks/bench_unjudged.py --draws 8 --rankers boosting

Pages of 20 offers have a price level of their own. Relevance depends on the rating and the
popularity of an offer, and on its price compared with the page: the cheapest offers are the best,
or those of average price. Judges see two thirds of the offers of each training page: at random, the
most popular ones, or the cheapest ones. NDCG@10 is measured on new pages where every offer is
judged. Differences are paired over the pages of all draws, with 95 % intervals.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np
from _harness import difference, interval, print_table, values_of_queries
from _worlds import FIVE_GRADES, to_grades
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker

SIZE, N_TEST = 20, 300
RANKERS: dict[str, Any] = {
    "default": None,
    "boosting": "boosting",
    "Ridge": Ridge(),
}
#: How relevance depends on the z-score of the price.
PRICES = {"cheap is best": lambda z: -1.5 * z, "average is best": lambda z: -2.0 * np.abs(z)}
GAPS = ("at random", "unpopular", "expensive")


def make_pages(n_pages: int, of_price: Any, rng: Any) -> tuple[Any, Any, Any]:
    """Return columns (log price, rating, popularity, ...), grades and page numbers."""
    groups = np.repeat(np.arange(n_pages), SIZE)
    z = rng.standard_normal((n_pages, SIZE))
    level = rng.uniform(1, 6, n_pages)[:, None]
    price = np.exp(level + rng.uniform(0.1, 0.8, n_pages)[:, None] * z).ravel()
    rating, popularity = rng.standard_normal((2, len(groups)))
    latent = rating + 0.7 * popularity + of_price(z).ravel() + rng.standard_normal(len(groups))
    others = rng.standard_normal((len(groups), 5))
    X = np.column_stack([np.log(price), rating, popularity, others])
    return X, to_grades(latent, FIVE_GRADES), groups


def unjudged_rows(gap: str, X: Any, rng: Any) -> Any:
    """The third of each page that is not judged."""
    keys = {"at random": rng.random(len(X)), "unpopular": X[:, 2], "expensive": -X[:, 0]}[gap]
    places = keys.reshape(-1, SIZE).argsort(axis=1).argsort(axis=1)
    return (places < round(SIZE / 3)).ravel()


def ways(y: Any, missing: Any) -> dict[str, tuple[Any, Any]]:
    """Return the labels and the rows that `fit` receives."""
    every = np.arange(len(y))
    return {
        "NaN": (np.where(missing, np.nan, y), every),
        "dropped": (y, every[~missing]),
        "0": (np.where(missing, 0.0, y), every),
        "all judged": (y, every),
    }


def report(name: str, n_pages: int, n_draws: int) -> None:
    rows = []
    for (world, of_price), gap in itertools.product(PRICES.items(), GAPS):
        found: dict[str, list[Any]] = {}
        for draw in range(n_draws):
            rng = np.random.default_rng(draw)
            X, y, groups = make_pages(n_pages + N_TEST, of_price, rng)
            train = groups < n_pages
            missing = unjudged_rows(gap, X[train], rng)
            for way, (labels, kept) in ways(y[train], missing).items():
                ranker = CalibratedRanker(RANKERS[name])
                ranker.fit(X[train][kept], labels[kept], groups=groups[train][kept])
                scores = ranker.decision_function(X[~train], groups[~train])
                values = values_of_queries("ndcg@10", y[~train], scores, groups[~train])
                found.setdefault(way, []).append(values)
        of_pages = {way: np.concatenate(values) for way, values in found.items()}
        kept = of_pages["NaN"]
        pairs = (kept, of_pages["dropped"]), (kept, of_pages["0"]), (of_pages["all judged"], kept)
        cells = [interval(*difference(*pair)) for pair in pairs]
        rows.append([f"{world}, {gap}", f"{np.nanmean(kept):.4f}", *cells])
    header = ["not judged", "NaN", "minus dropped", "minus 0", "all judged minus NaN"]
    print_table(f"{name}, {n_pages} training pages, {n_draws} draws", header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--rankers", nargs="+", choices=RANKERS, default=list(RANKERS))
    arguments = parser.parse_args()
    for name in arguments.rankers:
        report(name, arguments.pages, arguments.draws)


if __name__ == "__main__":
    main()
