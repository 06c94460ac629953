"""Queries with known best rankings, and one small query, for the tests of metrics."""

import numpy as np

from sklearn_rankcal.datasets import make_ranking

Y, S = [1, 0, 1], [0.1, 0.2, 0.3]


QUERIES = make_ranking(40, (2, 12), random_state=0)
GOOD_RANKS = QUERIES.bayes_ranks
SIZES = np.bincount(QUERIES.groups)[QUERIES.groups]
