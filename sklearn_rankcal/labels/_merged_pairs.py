"""`merge_pairs`: add up the weights of equal pairs of rows, of all queries at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: A table with one entry for each possible pair is used if it has at most this many entries for
#: each given pair. Above it, filling and reading the table takes longer than sorting the pairs.
_TABLE_ENTRIES_PER_PAIR = 4


def merge_pairs(
    first: Ints, second: Ints, weights: tuple[Floats, ...], queries: Queries
) -> tuple[Ints, tuple[Floats, ...]]:
    """Add up the weights of equal pairs, and sort the distinct pairs.

    Parameters
    ----------
    first, second : ndarray of shape (n_pairs,)
        Places (int64) in the grouped layout of `queries`. Both are of the same query.
    weights : tuple of ndarray of shape (n_pairs,)
        Any number of weights of each pair. Each of them is summed on its own.
    queries : Queries

    Returns
    -------
    chosen : ndarray of shape (n_distinct,)
        The number of one of the equal pairs, for each distinct pair. The distinct pairs are in the
        order of (first, second).
    sums : tuple of ndarray of shape (n_distinct,)
        The sum of each of `weights` over the equal pairs.

    Notes
    -----
    A query of r rows has r^2 possible pairs. If there are not many more possible pairs than given
    pairs, the cost is O(n_pairs + sum of r^2). Otherwise it is that of a sort.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.labels._merged_pairs import merge_pairs
    >>> from sklearn_rankcal.queries import Queries
    >>> first, second = np.array([1, 0, 1]), np.array([0, 2, 0])
    >>> chosen, (sums,) = merge_pairs(
    ...     first, second, (np.array([1.0, 2.0, 4.0]),), Queries.single(3)
    ... )
    >>> first[chosen].tolist(), second[chosen].tolist(), sums.tolist()
    ([0, 1], [2, 0], [2.0, 5.0])
    """
    n_pairs, sizes = len(first), queries.sizes
    n_possible = float((sizes.astype(np.float64) ** 2).sum())
    if n_possible <= _TABLE_ENTRIES_PER_PAIR * n_pairs:
        # `row_start[p]` is where the pairs with the first place p begin in a table of all possible
        # pairs, minus the place at which the query of p begins.
        row_start = np.cumsum(queries.repeat(sizes)) - queries.repeat(sizes + queries.offsets[:-1])
        key = row_start[first] + second
        length = int(n_possible)
        table = np.full(length, -1)
        table[key] = np.arange(n_pairs)
        kept = np.flatnonzero(table >= 0)
        # without pairs, bincount returns integers
        sums = tuple(
            np.bincount(key, weight, length)[kept].astype(np.float64) for weight in weights
        )
        return table[kept], sums
    key = first * queries.n_rows + second
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    if len(starts) == len(key):
        return order, tuple(weight[order] for weight in weights)
    return order[starts], tuple(np.add.reduceat(weight[order], starts) for weight in weights)
