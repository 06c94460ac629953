"""Classifiers with and without normalized targets: MQ2008, five LETOR folds, NDCG@10.

Each classifier is fitted in two ways. *Weights* is ``CalibratedRanker(classifier, loss="ndcg")``:
the normalized targets are weights of two classes. *Levels* is the same with ``loss="dcg"``, fitted
to the queries with a relevant document: the grades are the classes, and documents are sorted by
their expected gain, which has no normalizer.

The folds are the same as in ``bench_mq2008.py``: three parts train, one tests, and nothing is
tuned. NDCG@10 is computed for each test query with a relevant document, and pooled over the folds.
Differences have 95 % intervals of a paired bootstrap over queries, not adjusted for the number of
comparisons. Seconds are for fit and predict, summed over the folds.

    python examples/benchmarks/bench_classifiers.py --data ../shared/data
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from _harness import print_table, values_of_queries
from bench_mq2008 import N_FOLDS, REPOSITORY, interval, n_threads, read_folds
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.svm import LinearSVC
from sklearn.utils import Bunch

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.losses import NDCG
from sklearn_rankcal.queries import Queries

TREES: dict[str, Any] = {"learning_rate": 0.05}


def classifiers() -> dict[str, Any]:
    """The classifiers, with as many trees and leaves as the default regressor has."""
    found = {
        "LogisticRegression": LogisticRegression(max_iter=2000),
        "HistGradientBoosting": HistGradientBoostingClassifier(
            max_iter=100, max_leaf_nodes=7, early_stopping=False, **TREES
        ),
        "HistGradientBoosting, its defaults": HistGradientBoostingClassifier(early_stopping=False),
    }
    if find_spec("lightgbm") is not None:
        from lightgbm import LGBMClassifier

        found["LightGBM"] = LGBMClassifier(
            n_estimators=100, num_leaves=7, n_jobs=n_threads(), verbose=-1, **TREES
        )
    return found


def with_relevance(train: Bunch) -> Bunch:
    """The rows of the queries on which NDCG is defined."""
    queries = Queries.from_groups(train.groups)
    kept = queries.broadcast(NDCG().defined(train.y.astype(float), queries))
    return Bunch(**{name: values[kept] for name, values in train.items()})


def by_query(model: Any, loss: str, train: Bunch, test: Bunch) -> np.ndarray:
    ranker = CalibratedRanker(model, loss=loss).fit(train.X, train.y, groups=train.groups)
    scores = ranker.decision_function(test.X, groups=test.groups)
    return values_of_queries("ndcg@10", test.y, scores, test.groups)


def over_folds(model: Any, loss: str, folds: list[tuple[Bunch, Bunch]]) -> tuple[np.ndarray, float]:
    started = time.perf_counter()
    values = np.concatenate([by_query(model, loss, train, test) for train, test in folds])
    return values, time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=REPOSITORY / ".." / "shared" / "data")
    folder = parser.parse_args().data / "letor" / "mq2008"
    if not folder.is_dir():
        print(f"No {folder}: nothing measured. Point --data at the folder that holds letor/mq2008.")
        return
    folds = [(with_relevance(train), test) for train, test in read_folds(folder, N_FOLDS)]
    rows = []
    for name, model in classifiers().items():
        levels, before = over_folds(model, "dcg", folds)
        weights, after = over_folds(model, "ndcg", folds)
        means = [f"{np.nanmean(values):.4f}" for values in (levels, weights)]
        difference = interval(weights, levels)
        rows.append([name, *means, difference, f"{before:.1f}", f"{after:.1f}"])
    regressors = {
        "LinearSVC": LinearSVC(),
        "RidgeClassifier": RidgeClassifier(),
        "Ridge": Ridge(),
        "the default regressor": "boosting",
    }
    for name, model in regressors.items():
        values, seconds = over_folds(model, "ndcg", folds)
        rows.append([name, "", f"{np.nanmean(values):.4f}", "", "", f"{seconds:.1f}"])
    print_table(
        f"NDCG@10, {N_FOLDS} folds, {n_threads()} threads",
        ["model", "levels", "weights", "difference", "s levels", "s weights"],
        rows,
    )


if __name__ == "__main__":
    main()
