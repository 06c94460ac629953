"""What the tests of linear rankers share."""

import numpy as np

from sklearn_rankcal import LinearRanker
from sklearn_rankcal.losses import NDCG
from sklearn_rankcal.queries import Queries

from .ranker_data import G, X, Y

UTILITIES = NDCG(shrinkage=0.0)
SHUFFLE = np.random.RandomState(0).permutation(len(Y))  # rows of a query stand apart


def fit(surrogate, alpha=1.0, X=X, y=Y, groups=G, weight=None, **options):
    options = {"tol": 1e-9, "loss": UTILITIES} | options
    ranker = LinearRanker(surrogate, alpha=alpha, **options)
    return ranker.fit(X, y, groups=groups, sample_weight=weight)


def query_weights():
    return np.random.RandomState(1).uniform(0.2, 3.0, 60)[G]


def objective_of(ranker, X=X, y=Y, groups=G):
    """The objective of a fitted ranker without weights, computed by the surrogate itself."""
    queries = Queries.from_groups(groups)
    defined = ranker.loss_.defined(y, queries)
    targets = ranker.surrogate_.targets(ranker.loss_, y, queries)
    scores = ranker.decision_function(X, groups=groups)
    values = ranker.surrogate_.evaluate(targets, scores, queries).value
    return values[defined].sum() + ranker.alpha / 2 * ranker.coef_ @ ranker.coef_
