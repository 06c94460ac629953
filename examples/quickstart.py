"""Compare the default ranker with simpler models: python examples/quickstart.py [train.txt ...]

Pass your own LETOR files (SVMlight with qid:, plain or .gz). Without files, the script generates
data, and the best possible ranking is known. It holds out some queries, and compares the default
ranker on them with single models that get the same columns. One of these is LightGBM's lambdarank,
if LightGBM is installed.
"""

import argparse
import time

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from sklearn_rankcal import CalibratedRanker, context_columns
from sklearn_rankcal.datasets import load_letor, make_ranking
from sklearn_rankcal.metrics import compare_rankings, evaluate_rankings, ndcg_score

DEFAULT, SINGLE, PLAIN = "CalibratedRanker()", 'CalibratedRanker("boosting")', "plain regression"
LAMBDARANK = "LightGBM lambdarank"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="LETOR files (default: generated data)")
    arguments = parser.parse_args()
    if arguments.files:
        data = load_letor(arguments.files)
        train = ~np.isin(data.groups, np.unique(data.groups)[::4])
    else:
        data = make_ranking(800, (10, 30), 25, noise=1.0, random_state=0)
        train = data.groups < 200
        print("No file given: generating data with noisy grades from 0 to 4.")
    X, y, groups, test = data.X, data.y, data.groups, ~train
    n_train, n_test = (len(np.unique(groups[part])) for part in (train, test))
    print(
        f"{len(y):,} documents with {X.shape[1]} features: {n_train} training queries, "
        f"{n_test} held-out queries.\n"
    )

    print(f"Fitting {DEFAULT}, which combines boosted trees for several targets:")
    fits = {DEFAULT: timed(CalibratedRanker(verbose=2), X, y, groups, train, test)}
    print("\nFitting single models on the same columns, with z-scores within each query ...")
    fits[SINGLE] = timed(CalibratedRanker("boosting"), X, y, groups, train, test)
    table = context_columns(X, groups, "zscore")
    fits[PLAIN] = timed(HistGradientBoostingRegressor(), table, y, None, train, test)
    peer = lambdarank(groups[train])
    if peer is not None:
        fits[LAMBDARANK] = timed(peer, table, y, None, train, test)

    before_and_after(y[test], groups[test], fits[DEFAULT][0])
    compare(y[test], groups[test], fits, data.latent[test] if "latent" in data else None)
    if peer is None:
        print("Install LightGBM to compare its lambdarank, too.")
    print(
        "\nNext steps: fit your own table with CalibratedRanker().fit(X, y, groups=query_of_row), "
        "compare\nrankers with metrics.compare_rankings, and tune parameters with "
        "GridSearchCV(..., cv=QueryKFold(5))."
    )


def timed(model, X, y, groups, train, test):
    """Return the scores of the held-out rows, and the seconds that fit took on one thread.

    The threads of small fits wait for each other, for longer than the fits take on a busy machine.
    """
    with threadpool_limits(1):
        started = time.perf_counter()
        model.fit(X[train], y[train], **({} if groups is None else {"groups": groups[train]}))
        seconds = time.perf_counter() - started
    if groups is None:
        return model.predict(X[test]), seconds
    return model.decision_function(X[test], groups=groups[test]), seconds


def lambdarank(groups):
    """Return LightGBM's ranker with queries sorted for it; None if LightGBM is not installed."""
    try:
        from lightgbm import LGBMRanker
    except ImportError:
        return None

    class SortedRanker(LGBMRanker):
        def fit(self, X, y):
            order = np.argsort(groups, kind="stable")
            sizes = np.unique(groups, return_counts=True)[1]
            return super().fit(X[order], y[order].astype(int), group=sizes)

    return SortedRanker(n_estimators=100, learning_rate=0.05, num_leaves=7, n_jobs=1, verbose=-1)


def before_and_after(y, groups, scores):
    """Print the grades of one query in the order of the file, and in the order of the ranker."""
    found = evaluate_rankings(y, scores, groups=groups, metrics="ndcg@10", return_per_query=True)
    known = np.flatnonzero(np.isfinite(found["ndcg@10"]))  # queries with a relevant document
    middle = found["query"][known[np.argsort(found["ndcg@10"][known])[len(known) // 2]]]
    mine = groups == middle
    grades, order = y[mine], np.argsort(-scores[mine], kind="stable")
    listed = [("before", grades), ("after", grades[order]), ("best", np.sort(grades)[::-1])]
    print(f"\nGrades of the first ten documents of query {middle}, the median by NDCG@10:")
    for name, some in listed:
        value = ndcg_score(some, -np.arange(len(some)), groups=np.zeros(len(some)), k=10)
        print(f"  {name:7}{' '.join(f'{grade:g}' for grade in some[:10])}   NDCG@10 {value:.3f}")


def compare(y, groups, fits, latent):
    """Print the mean of each method, and its difference to the default with an interval."""
    metrics = ["ndcg@10", "err@10"]
    print(
        f"\n{'Held-out queries':30}{'NDCG@10':>9}{'ERR@10':>8}{'fit':>8}   default minus this one"
    )
    rows = {name: scores for name, (scores, _) in fits.items()}
    if latent is not None:
        rows["best possible"] = latent
    verdicts = []
    for name, scores in rows.items():
        values = evaluate_rankings(y, scores, groups=groups, metrics=metrics)
        line = f"{name:30}{values['ndcg@10']:9.4f}{values['err@10']:8.4f}"
        line += f"{fits[name][1]:6.1f} s" if name in fits else " " * 8
        if name in fits and name != DEFAULT:
            found = compare_rankings(y, fits[DEFAULT][0], scores, metric="ndcg@10", groups=groups)
            line += f"   {found.difference:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"
            verdict = "ahead of" if found.low > 0 else "behind" if found.high < 0 else "level with"
            verdicts.append(f"{verdict} {name}")
        print(line)
    print(
        f"\nThe default is {', '.join(verdicts)}.\nIntervals are for NDCG@10, 95 %, paired over "
        "queries. If one contains 0, the difference is not clear.\nThe seconds are of one fit on "
        "one thread."
    )


if __name__ == "__main__":
    main()
