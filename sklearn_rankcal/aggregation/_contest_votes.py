"""Contests with how often each result occurred: what the Bradley-Terry model is fitted to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sklearn_rankcal.aggregation._contests import Contests
from sklearn_rankcal.queries._groups import number_values
from sklearn_rankcal.utils._numbers import add_up
from sklearn_rankcal.utils._typing import Bools, Floats, Ints


class Votes(NamedTuple):
    """Contests of one query, of items 0 to n_items - 1, with how often each result occurred.

    `counts` has shape (3, n): the weight of contests that the first item won, that the second won,
    and of ties; `squares` has the sums of the squared weights of their votes. `X` has shape (n,
    n_covariates).
    """

    first: Ints
    second: Ints
    counts: Floats
    squares: Floats
    X: Floats

    @property
    def total(self) -> Floats:
        return self.counts.sum(axis=0)

    def leads(self, weights: Floats, n_items: int) -> Floats:
        """Return by how much the first item is ahead, if these are scores and coefficients."""
        effects = weights[n_items : n_items + self.X.shape[1]]
        return weights[self.first] - weights[self.second] + self.X @ effects

    def take(self, some: Ints | Bools) -> Votes:
        first, second, counts, squares, X = self
        return Votes(first[some], second[some], counts[:, some], squares[:, some], X[some])


def count_votes(contests: Contests, X: Floats, *, merge: bool = True) -> Votes:
    """Merge contests of the same items in the same order, if all have the same covariates.

    O(n) time where there are fewer pairs of items than votes.
    """
    first, second, outcome, weight, square, _ = contests
    if not merge or (X.shape[1] and (X != X[:1]).any()):
        counts, squares = np.zeros((2, 3, len(first)))
        at = outcome, np.arange(len(first))
        counts[at], squares[at] = weight, square
        return Votes(first, second, counts, squares, X)
    pair, first, second = number_pairs(first, second)
    n = len(first)
    counts, squares = (
        add_up(outcome * n + pair, values, 3 * n).reshape(3, n) for values in (weight, square)
    )
    return Votes(first, second, counts, squares, np.repeat(X[:1], n, axis=0))


def number_pairs(first: Ints, second: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the number of the pair of each vote, and the items of each pair."""
    n = int(max(first.max(initial=0), second.max(initial=0))) + 1
    pair, keys = number_values(first * n + second) if len(first) else (first, first)
    return pair, keys // n, keys % n
