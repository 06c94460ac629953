"""Random documents and their pairs, for the tests of models of pairs."""

import numpy as np


def make_pair_data():
    """Features, relevance, groups and weights of 14 queries of 1 to 8 documents, in any order."""
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(14), rng.integers(1, 9, size=14)))
    n = len(groups)
    X = rng.normal(size=(n, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, 0]
    return X, rng.integers(0, 4, size=n).astype(float), groups, rng.uniform(0.2, 2, size=n)


def target(h, y, i, j):
    """The target of the pair (i, j): h of the difference of their relevance, with its sign."""
    size = abs(y[i] - y[j])
    return np.sign(y[i] - y[j]) * {"binary": 1, "graded": size, "square": size**2}[h]


def ordered_pairs(groups, equal=False):
    """All ordered pairs of rows of the same query; with equal=True also the pairs (i, i)."""
    return [
        (i, j)
        for rows in (np.flatnonzero(groups == g) for g in dict.fromkeys(groups))
        for i in rows
        for j in rows
        if equal or i != j
    ]
