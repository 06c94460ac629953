"""Random preferences of users, and a check that compares `Preferences` with loops."""

import itertools

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from . import oracles

G = ["a", "b", "a", "a", "b", "c"]
PAIRS = [[0, 2], [2, 0], [3, 0], [0, 2], [4, 1]]
drawn = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def judged(draw, min_pairs=1):
    """Draw groups of any layout, pairs with repeats and cycles, and the weights of the pairs."""
    groups = draw(st.lists(st.integers(0, 3), min_size=2, max_size=16))
    within = [p for part in oracles.split(groups) for p in itertools.permutations(part, 2)]
    if not within:
        groups, within = [7, 7], [(0, 1), (1, 0)]
    pairs = draw(st.lists(st.sampled_from(within), min_size=min_pairs, max_size=25))
    weight = draw(st.lists(st.integers(0, 5), min_size=len(pairs), max_size=len(pairs)))
    return groups, pairs, weight


def preferences_of_ranks(ranks):
    """Return 1 where row n has label i above label j, by its ranks, of shape (n, r, r)."""
    ranks = np.asarray(ranks, dtype=float)
    return (ranks[:, :, None] < ranks[:, None, :]).astype(float)


def table(pairs, weight, n_rows):
    """Return the matrix of the weights y_ij of all rows, summed by a loop."""
    y = np.zeros((n_rows, n_rows))
    for (i, j), w in zip(pairs, weight, strict=True):
        y[i, j] += w
    return y


def table_of(preferences):
    y = np.zeros((preferences.n_rows, preferences.n_rows))
    y[preferences.winner, preferences.loser] = preferences.weight
    return y


def check(preferences, groups, y):
    """Compare every answer of `preferences` with loops over the matrix y of all rows."""
    parts = oracles.split(groups)
    np.testing.assert_array_equal(table_of(preferences), y)
    assert preferences.n_rows == len(groups)
    assert preferences.winner.dtype == preferences.loser.dtype == np.int64
    assert preferences.weight.dtype == np.float64
    number = {row: n for n, part in enumerate(parts) for row in part}
    triples = [
        (number[i], i, j)
        for i, j in zip(preferences.winner.tolist(), preferences.loser.tolist(), strict=True)
    ]
    assert triples == sorted(set(triples))
    owners = [q for q, _, _ in triples]
    counts = [owners.count(q) for q in range(len(parts))]
    assert np.diff(preferences.pair_offsets).tolist() == counts
    np.testing.assert_allclose(preferences.total(), [y[np.ix_(p, p)].sum() for p in parts])
    assert preferences.total().dtype == np.float64
    for inside, valid in preferences.queries.buckets():
        for matrix, places, some in zip(preferences.matrices(inside), inside, valid, strict=True):
            order = preferences.queries.order
            rows = places[some] if order is None else order[places[some]]
            padded = np.zeros_like(matrix)
            padded[: len(rows), : len(rows)] = y[np.ix_(rows, rows)]
            np.testing.assert_array_equal(matrix, padded)
