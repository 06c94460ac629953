"""Train, cross-validate and evaluate a ranker: ``python examples/quickstart.py [train.txt ...]``.

Give LETOR files (SVMlight with qid:, plain or .gz); without one, a generated data set is used whose
best possible ranking is known. A quarter of the queries is held out; context columns and
centring are chosen by cross-validation over the other queries; then it is compared with plain
least squares on the labels (the same trees) and, where installed, LightGBM's lambdarank.
"""

import argparse

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit

from sklearn_rankcal import CalibratedRanker, QueryKFold, relevance_labels
from sklearn_rankcal.datasets import load_letor, make_ranking
from sklearn_rankcal.metrics import compare_rankings, evaluate_rankings, get_ranking_scorer
from sklearn_rankcal.models import default_regressor

METRICS = ["ndcg@10", "map", "mrr", "err@10", "pairwise_disagreement"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="LETOR files; none: generated data")
    parser.add_argument("--folds", type=int, default=4, help="cross-validation folds")
    parser.add_argument("--threshold", type=float, default=1.0, help="relevance that is relevant")
    arguments = parser.parse_args()
    if arguments.files:
        data = load_letor(arguments.files)
    else:
        data = make_ranking(400, (8, 30), 25, query_effect=1.5, random_state=0)
        print("No file given: generated data, features shifted per query.")
    X, y, groups = data.X, data.y, data.groups
    split = GroupShuffleSplit(1, test_size=0.25, random_state=0)
    train, test = next(split.split(X, y, groups))
    print(
        f"{len(y)} documents, {X.shape[1]} features; {len(set(groups[train]))} queries to learn "
        f"from, {len(set(groups[test]))} held out.\n"
    )

    # labels that carry their query: nothing else is needed inside GridSearchCV
    labels = relevance_labels(y[train], groups[train])
    search = GridSearchCV(
        CalibratedRanker(default_regressor(len(train)), loss="ndcg@10"),
        {"context": [None, "zscore"], "center": [True, False]},
        scoring=get_ranking_scorer("ndcg@10"),
        cv=QueryKFold(arguments.folds, shuffle=True, random_state=0),
    ).fit(X[train], labels)
    print("Cross-validated NDCG@10 on the learning queries:")
    results = search.cv_results_
    for place in np.argsort(results["rank_test_score"]):
        mean, sd = results["mean_test_score"][place], results["std_test_score"][place]
        print(f"  {mean:.4f} +- {sd:.4f}  {results['params'][place]}")

    ranker = search.best_estimator_
    baseline = clone(ranker.regressor).fit(X[train], y[train])
    scores = {
        "least squares on labels": baseline.predict(X[test]),
        **lambdarank(X[train], y[train], groups[train], X[test]),
        "CalibratedRanker": ranker.decision_function(X[test], groups=groups[test]),
    }
    if "latent" in data:
        scores["best possible"] = data.latent[test]

    print("\nHeld-out queries:")
    print(" " * 25 + "".join(f"{'PD' if name[0:4] == 'pair' else name:>10}" for name in METRICS))
    for name, score in scores.items():
        values = evaluate_rankings(
            y[test], score, groups=groups[test], metrics=METRICS, threshold=arguments.threshold
        )
        print(f"{name:25}" + "".join(f"{values[metric]:10.4f}" for metric in METRICS))
    print("(PD, the share of pairs in the wrong order: smaller is better.)")

    print("\nCalibratedRanker against, NDCG@10, paired bootstrap over queries:")
    for name, score in scores.items():
        if name not in ("CalibratedRanker", "best possible"):
            outcome = compare_rankings(
                y[test], scores["CalibratedRanker"], score, metric="ndcg@10", groups=groups[test]
            )
            print(f"  {name:25}{outcome}")


def lambdarank(X, y, groups, X_test):
    """Scores of LightGBM's lambdarank with as many trees, or nothing where it is not installed."""
    try:
        from lightgbm import LGBMRanker
    except ImportError:
        print("\n(LightGBM is not installed: no comparison with lambdarank.)")
        return {}
    order = np.argsort(groups, kind="stable")
    sizes = np.unique(groups, return_counts=True)[1]
    model = LGBMRanker(n_estimators=100, learning_rate=0.05, num_leaves=15, verbose=-1)
    model.fit(X[order], y[order].astype(int), group=sizes)
    return {"LightGBM lambdarank": model.predict(X_test)}


if __name__ == "__main__":
    main()
