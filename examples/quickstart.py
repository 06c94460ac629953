"""Train, cross-validate and evaluate a ranker: ``python examples/quickstart.py [train.txt ...]``.

The arguments are LETOR files (SVMlight with qid:, plain or .gz). Without arguments, the data are
generated, and their best possible ranking is known. A quarter of the queries is held out. Context
columns and centring are chosen by cross-validation over the other queries. Then the ranker is
compared with least squares on the labels, by the same trees, and with LightGBM's lambdarank if it
is installed. Both get the chosen columns, and least squares also gets the chosen centring, so the
remaining difference is due to the targets. Two more rows show the two methods on the columns of the
file alone.
"""

import argparse

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit

from sklearn_rankcal import CalibratedRanker, QueryKFold, context_columns, relevance_labels
from sklearn_rankcal.datasets import load_letor, make_ranking
from sklearn_rankcal.losses import DCG
from sklearn_rankcal.metrics import compare_rankings, evaluate_rankings, get_ranking_scorer
from sklearn_rankcal.models import default_regressor

LABELS, LAMBDARANK = "labels, same columns", "lambdarank, same columns"
METRICS = ["ndcg@10", "map", "mrr", "err@10", "pairwise_disagreement"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="LETOR files (default: data are generated)")
    parser.add_argument("--folds", type=int, default=4, help="number of cross-validation folds")
    parser.add_argument(
        "--threshold", type=float, default=1.0, help="smallest label of a relevant document"
    )
    arguments = parser.parse_args()
    if arguments.files:
        data = load_letor(arguments.files)
    else:
        data = make_ranking(400, (8, 30), 25, query_effect=1.5, random_state=0)
        print("No file was given, so data are generated. The features of each query are shifted.")
    X, y, groups = data.X, data.y, data.groups
    split = GroupShuffleSplit(1, test_size=0.25, random_state=0)
    train, test = next(split.split(X, y, groups))
    print(
        f"{len(y)} documents with {X.shape[1]} features; {len(set(groups[train]))} training "
        f"queries and {len(set(groups[test]))} held-out queries.\n"
    )

    # These labels contain the query of each row, so GridSearchCV needs no other argument.
    labels = relevance_labels(y[train], groups[train])
    search = GridSearchCV(
        CalibratedRanker(default_regressor(len(train)), loss="ndcg@10"),
        {"context": [None, "zscore"], "center": [True, False]},
        scoring=get_ranking_scorer("ndcg@10"),
        cv=QueryKFold(arguments.folds, shuffle=True, random_state=0),
    ).fit(X[train], labels)
    print("Cross-validated NDCG@10 on the training queries:")
    results = search.cv_results_
    for place in np.argsort(results["rank_test_score"]):
        mean, sd = results["mean_test_score"][place], results["std_test_score"][place]
        print(f"  {mean:.4f} +- {sd:.4f}  {results['params'][place]}")

    ranker = search.best_estimator_
    # This ranker has the same trees, columns and centring, but its targets are the labels.
    labels_alike = clone(ranker).set_params(loss=DCG(gain="linear"))
    labels_alike.fit(X[train], y[train], groups=groups[train])
    alone = clone(ranker.regressor).fit(X[train], y[train])
    tables = X
    if ranker.context is not None:
        tables = context_columns(X, groups, ranker.context)
    scores = {
        "labels, columns of X": alone.predict(X[test]),
        **lambdarank(X, y, groups, train, test, "lambdarank, columns of X"),
        LABELS: labels_alike.decision_function(X[test], groups=groups[test]),
        **lambdarank(tables, y, groups, train, test, LAMBDARANK),
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
    print("(PD is the share of pairs in the wrong order; smaller is better.)")

    held_out = sorted(set(groups[test]))
    without = [query for query in held_out if not y[groups == query].any()]
    if without:
        print(
            f"\nNo document is relevant in {len(without)} of the {len(held_out)} held-out queries. "
            "NDCG is\nundefined for them, so its mean and the comparison leave them out."
        )
    print("\nNDCG@10 of CalibratedRanker minus that of another method with the same columns, by a")
    print("paired bootstrap over queries (an interval that contains 0 shows no clear difference):")
    for name, score in scores.items():
        if name in (LABELS, LAMBDARANK):
            outcome = compare_rankings(
                y[test], scores["CalibratedRanker"], score, metric="ndcg@10", groups=groups[test]
            )
            print(f"  {name:25}{outcome}")


def lambdarank(X, y, groups, train, test, name):
    """Return the scores of LightGBM's lambdarank with as many trees; none if it is missing."""
    try:
        from lightgbm import LGBMRanker
    except ImportError:
        print(f"\n(LightGBM is not installed, so {name!r} is left out.)")
        return {}
    rows = train[np.argsort(groups[train], kind="stable")]
    sizes = np.unique(groups[train], return_counts=True)[1]
    model = LGBMRanker(n_estimators=100, learning_rate=0.05, num_leaves=15, verbose=-1)
    model.fit(X[rows], y[rows].astype(int), group=sizes)
    return {name: model.predict(X[test])}


if __name__ == "__main__":
    main()
