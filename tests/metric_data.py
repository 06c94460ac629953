"""Queries with known best rankings, and one small query, for the tests of metrics."""

from functools import partial

import numpy as np

from sklearn_rankcal import metrics
from sklearn_rankcal.datasets import make_ranking

Y, S = [1, 0, 1], [0.1, 0.2, 0.3]


QUERIES = make_ranking(40, (2, 12), random_state=0)
GOOD_RANKS = QUERIES.bayes_ranks
SIZES = np.bincount(QUERIES.groups)[QUERIES.groups]

#: The metric function of each measure.
FUNCTIONS = {
    "auc": metrics.auc_score,
    "dcg": metrics.dcg_score,
    "err": metrics.err_score,
    "eru": metrics.eru_score,
    "kendall_tau": metrics.kendall_tau_score,
    "map": metrics.map_score,
    "mrr": metrics.mrr_score,
    "ndcg": metrics.ndcg_score,
    "pairwise_disagreement": metrics.pairwise_disagreement_loss,
    "precision": metrics.precision_at_k_score,
    "recall": metrics.recall_at_k_score,
    "spearman": metrics.spearman_score,
}


def per_query(metric, *args, **options):
    """Return the value of each query; `metric` is a metric function, a partial one or a name."""
    if isinstance(metric, partial):
        return per_query(metric.func, *args, **(metric.keywords | options))
    name = metric if isinstance(metric, str) else {f: n for n, f in FUNCTIONS.items()}[metric]
    if name in ("precision", "recall"):
        options.setdefault("k", 10)
    found = metrics.evaluate_rankings(*args, metrics=name, return_per_query=True, **options)
    return found[name]
