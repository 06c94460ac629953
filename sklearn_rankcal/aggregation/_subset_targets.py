"""Targets of subsets of the judgements of each query: their mean, or one subset at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.aggregation._subsets import (
    draw_subsets,
    expand_counts,
    plan,
    subset_blocks,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: From judgements about copies of queries to the targets of their documents, NaN without a score.
Encode = Callable[[Any], Floats]


class MeanTargets(NamedTuple):
    """The mean of the targets over subsets of the judgements of each query.

    Attributes
    ----------
    targets : ndarray of shape (n_documents,)
        NaN for documents about which no subset says anything.
    standard_error : ndarray of shape (n_documents,)
        The standard error of the mean that comes from drawing subsets, 0 where all are taken. It
        is estimated from the differences between rounds. In a round, the judgements of a query are
        divided at random into disjoint subsets.
    exact : ndarray of bool of shape (n_queries,)
        Whether all subsets of the query are taken.
    n_subsets : ndarray of shape (n_queries,)
        The number of subsets of the query.
    """

    targets: Floats
    standard_error: Floats
    exact: NDArray[np.bool_]
    n_subsets: Ints


def mean_over_subsets(
    judgements: Any,
    encode: Encode,
    size: int | None,
    n_subsets: int,
    random: np.random.RandomState,
) -> MeanTargets:
    """Compute the mean of the targets over subsets of the judgements of each query.

    Parameters
    ----------
    judgements : Judgements or Clicks
    encode : callable
    size : int or None
        The size of the subsets; None takes all judgements as a single subset.
    n_subsets : int
        At least so many subsets of each query are taken, or all if there are no more.
    random : RandomState
    """
    queries = judgements.queries
    single = expand_counts(judgements)
    planned = plan(np.bincount(single.query, minlength=queries.n_queries), size, n_subsets)
    # sums over the subsets of a round, and over rounds the sums of its means and their squares
    count, total, rounds, sums, squares = (np.zeros(queries.n_rows) for _ in range(5))
    for copies, parent, last in subset_blocks(single, planned, random):
        targets = encode(copies)
        known = ~np.isnan(targets)
        rows = queries.copies(parent)[1][known]
        values = targets[known]
        count += np.bincount(rows, minlength=queries.n_rows)
        total += np.bincount(rows, values, queries.n_rows)
        if last:
            some = count > 0
            means = total[some] / count[some]
            rounds += some
            sums[some] += means
            squares[some] += means**2
            count[:], total[:] = 0.0, 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / rounds
        variance = np.maximum(squares / rounds - mean**2, 0.0) / (rounds - 1)
    exact = queries.broadcast(planned.exact)
    # A document that has a score in a single round leaves its error unknown.
    error = np.where(exact, 0.0, np.where(rounds > 1, np.sqrt(variance), np.inf))
    return MeanTargets(mean, error, planned.exact, planned.per_round * planned.n_rounds)


class SubsetDraws:
    """The function of `RedrawnTargets` that draws the targets of one subset of each query.

    Parameters
    ----------
    judgements, encode, size, random
        As in `mean_over_subsets`.
    """

    def __init__(
        self, judgements: Any, encode: Encode, size: int | None, random: np.random.RandomState
    ) -> None:
        self.judgements = expand_counts(judgements)
        self.encode = encode
        self.size = size
        self.random = random
        self._order = np.argsort(self.judgements.query, kind="stable")
        self._counts = np.bincount(self.judgements.query, minlength=judgements.queries.n_queries)
        self._starts = np.cumsum(self._counts) - self._counts

    def __call__(self, numbers: Ints) -> Floats:
        copies = draw_subsets(
            self.judgements,
            self._order,
            self._starts,
            self._counts,
            numbers,
            self.size,
            self.random,
        )
        return np.nan_to_num(self.encode(copies), nan=0.0)
