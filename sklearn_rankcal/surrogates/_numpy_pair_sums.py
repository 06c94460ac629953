"""Sums over the pairs of documents of each query of a convex function of their margin, in NumPy.

`_compiled_pair_sums.pyx` has the same function. The results of the two agree up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates._margins import Margin
from sklearn_rankcal.utils._memory import rows_per_block

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_N_TEMPORARIES = 8  # arrays of the size of a block of pairs that exist at the same time


def pair_sums(
    v: Floats,
    s: Floats,
    queries: Queries,
    margin: Margin,
    weight: Callable[[Floats], Floats] | None,
    required: Callable[[Floats], Floats] | None,
) -> tuple[Floats, Floats, Floats]:
    """Compute sum_ij w_ij phi(s_i - s_j - h_ij) of each query, with its derivatives.

    Parameters
    ----------
    v, s : ndarray of shape (n_rows,)
        Utilities and scores. The rows of each query are contiguous.
    queries : Queries
    margin : Margin
        The function phi.
    weight : callable or None
        ``weight(v_i - v_j)`` returns w_ij for the pairs with v_i > v_j; other pairs have weight 0.
        None means w_ij = v_i for all i and j with i != j.
    required : callable or None
        ``required(v_i - v_j)`` returns h_ij for these pairs. None means 0.

    Returns
    -------
    value : ndarray of shape (n_queries,)
    gradient, curvature : ndarray of shape (n_rows,)

    Notes
    -----
    The time is O(r^2) for a query of r documents, and the memory is that of one block of pairs.
    """
    if margin.name == "exponential":
        return _exponential_sums(v, s, queries, weight, required)
    value, gradient, curvature = np.zeros(queries.n_queries), np.zeros_like(s), np.zeros_like(s)
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    for upper, lower, w, d in _weighted_pairs(v, s, queries, weight, required):
        np.add.at(value, query[upper[:, 0]], (w * margin.value(d)).sum(axis=(1, 2)))
        slope = w * margin.slope(d)
        np.add.at(gradient, upper, slope.sum(axis=2))
        np.add.at(gradient, lower, -slope.sum(axis=1))
        bend = w * margin.curvature(d)
        np.add.at(curvature, upper, bend.sum(axis=2))
        np.add.at(curvature, lower, bend.sum(axis=1))
    return value, gradient, curvature


def _exponential_sums(
    v: Floats,
    s: Floats,
    queries: Queries,
    weight: Callable[[Floats], Floats] | None,
    required: Callable[[Floats], Floats] | None,
) -> tuple[Floats, Floats, Floats]:
    """Add up exponential margins by their logarithms, so that infinity minus infinity is a number.

    As the winner of its pairs a document adds sum_j w_ij e^-d_ij, and as their loser
    sum_j w_ji e^-d_ji.
    """
    won, lost = np.full(len(s), -np.inf), np.full(len(s), -np.inf)
    for upper, lower, w, d in _weighted_pairs(v, s, queries, weight, required):
        with np.errstate(divide="ignore"):
            exponent = np.log(w) - d
        np.logaddexp.at(won, upper, np.logaddexp.reduce(exponent, axis=2))
        np.logaddexp.at(lost, lower, np.logaddexp.reduce(exponent, axis=1))
    return (
        queries.reduce(np.add, np.exp(won)),
        difference_of_exponentials(lost, won),
        np.exp(won) + np.exp(lost),
    )


def difference_of_exponentials(a: Floats, b: Floats) -> Floats:
    """Compute e^a - e^b, which is infinite but not NaN if both exponentials overflow."""
    high = np.maximum(a, b)
    apart = (a != b) & (high > -np.inf)
    gap = np.where(apart, np.where(apart, a, 0.0) - np.where(apart, b, 0.0), 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.exp(high) * -np.expm1(-np.abs(gap))
    return np.where(apart, np.sign(gap) * size, 0.0)


def _weighted_pairs(
    v: Floats,
    s: Floats,
    queries: Queries,
    weight: Callable[[Floats], Floats] | None,
    required: Callable[[Floats], Floats] | None,
) -> Iterator[tuple[Ints, Ints, Floats, Floats]]:
    """Yield for blocks of pairs the places of i and of j, the weights w_ij and the margins d_ij."""
    for upper, lower, pairs in _blocks(queries):
        difference = v[upper][:, :, None] - v[lower][:, None, :]
        if weight is None:
            pairs &= upper[:, :, None] != lower[:, None, :]
            w = np.where(pairs, v[upper][:, :, None], 0.0)
        else:
            pairs &= difference > 0
            w = np.zeros(pairs.shape)
            w[pairs] = weight(difference[pairs])
        d = s[upper][:, :, None] - s[lower][:, None, :]
        if required is not None:
            d[pairs] -= required(difference[pairs])
        yield upper, lower, w, d


def _blocks(queries: Queries) -> Iterator[tuple[Ints, Ints, NDArray[np.bool_]]]:
    """Yield the places (n, a) of some documents of n queries, (n, b) of all, and valid pairs."""
    for inside, valid in queries.buckets():
        width = inside.shape[1]
        n_rows = rows_per_block(_N_TEMPORARIES * 8 * width)
        n_queries, n_documents = max(1, n_rows // width), min(width, n_rows)
        for first in range(0, len(inside), n_queries):
            part = slice(first, first + n_queries)
            for top in range(0, width, n_documents):
                some = slice(top, top + n_documents)
                pairs = valid[part, some, None] & valid[part, None, :]
                yield inside[part, some], inside[part], pairs
