"""The measure ERR, expected reciprocal rank, of the cascade model of users.

In the cascade model a user reads a ranking from the top and stops at the first satisfying document.
A ranking and its labels come in; the expected reciprocal rank of every query comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.measures._base import Measure, check_cutoff, check_real, exp2_minus_1
from sklearn_rankcal.measures._tied_cascade import LONG_BLOCK, block_value, by_documents
from sklearn_rankcal.queries import Ranking


@dataclass(frozen=True, kw_only=True)
class ERR(Measure):
    """Expected reciprocal rank: sum_j (1 / j) R_(j) prod_{l < j} (1 - R_(l)).

    R = (2^y - 1) / 2^max_relevance is the probability that a document of relevance y satisfies the
    user, and R_(j) is that of the document at place j.

    Parameters
    ----------
    k : int, default=None
        Number of places that count. None counts every place.
    max_relevance : float, default=None
        The top grade of the whole collection. None: the largest label that is passed.

    Notes
    -----
    The measure is defined for every query; it is 0 if no document has a positive label. Labels must
    be >= 0. Where scores tie, the value is the mean over the orders of the tied documents.
    """

    non_negative = True

    k: int | None = None
    max_relevance: float | None = None

    def check(self, labels: NDArray[np.float64]) -> None:
        check_cutoff("k", self.k)
        if self.max_relevance is not None:
            check_real("max_relevance", self.max_relevance)
        super().check(labels)
        top = labels.max()
        if self.max_relevance is None:
            if top > 1000:
                raise ValueError(
                    f"Relevance of {top:g} overflows 2**y. Rescale the labels to a few grades."
                )
        elif not 0 <= self.max_relevance <= 1000:
            raise ValueError(f"max_relevance must be in [0, 1000]; got {self.max_relevance!r}.")
        elif top > self.max_relevance:
            raise ValueError(
                f"Relevance {top:g} exceeds max_relevance={self.max_relevance:g}. Pass the top "
                "grade of the whole collection, ERR(max_relevance=...), because training data may "
                "lack it."
            )

    def resolve(self, labels: NDArray[np.float64]) -> ERR:
        """The measure with the largest label as top grade, if `max_relevance` is None."""
        if self.max_relevance is not None:
            return self
        return replace(self, max_relevance=float(labels.max()))

    def satisfaction(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        """R: the probability that each document satisfies the user."""
        top = relevance.max() if self.max_relevance is None else self.max_relevance
        return exp2_minus_1(relevance) / np.exp2(top)

    def per_query(self, ranking: Ranking, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        # `satisfaction` is called with the labels of the first places only, but the top grade is
        # the largest of all labels: it has to be set before
        return expected_reciprocal_rank(ranking, labels, self.resolve(labels).satisfaction, self.k)


def expected_reciprocal_rank(
    ranking: Ranking,
    relevance: NDArray[np.float64],
    satisfaction: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    k: int | None = None,
) -> NDArray[np.float64]:
    """The sum over places j <= k of (1 / j) R_j prod_{l < j} (1 - R_l), one value per query.

    R_j is what `satisfaction` returns for the relevance of the row at place j, in [0, 1].

    Tied rows are averaged over their orders; see `_tied_cascade`. The cost is O(n) without ties. A
    block of m tied rows costs O(m^2) up to `LONG_BLOCK` rows, and O(m) times a constant beyond. If
    the cutoff k ends inside a longer block, the block costs O(m k) at most.
    """
    ranking = ranking.head(k)
    queries = ranking.queries
    passing = 1.0 - satisfaction(ranking.take(relevance))
    position = queries.place + 1
    # probability that the user reaches each place: the product of 1 - R over the places above
    reach = np.empty(queries.n_rows)
    for inside, valid in queries.buckets():
        product = np.ones(inside.shape)
        np.cumprod(passing[inside[:, :-1]], axis=1, out=product[:, 1:])
        reach[inside[valid]] = product[valid]
    if ranking.start is None or ranking.stop is None:
        # the same order of operations as with ties, so that both give the same bits
        value = reach * ((1.0 - passing) / position)
    else:
        base = queries.repeat(queries.offsets[:-1])
        value = reach[ranking.start + base] * _tied_values(passing, ranking, k)
    if k is not None:
        value = np.where(position <= k, value, 0.0)
    return ranking.sum(value)


def _tied_values(
    passing: NDArray[np.float64], ranking: Ranking, k: int | None
) -> NDArray[np.float64]:
    """(E_(t-1) - E_t) / (k0 + t) at the t-th place of each block, given that the user reaches it.

    See `_tied_cascade` for the symbols. The whole value of a long block is at its first place, and
    its other places have 0.
    """
    assert ranking.start is not None and ranking.stop is not None
    drop = 1.0 - passing
    lengths = ranking.stop - ranking.start
    # short blocks: all blocks of the same length m at once
    first = np.flatnonzero((ranking.queries.place == ranking.start) & (lengths > 1))
    for m in np.unique(lengths[first]):
        if m >= LONG_BLOCK:
            continue
        inside = first[lengths[first] == m][:, None] + np.arange(m)
        drop[inside] = -np.diff(by_documents(passing[inside], m), axis=1)
    value = drop / (ranking.queries.place + 1)
    # long blocks: one at a time, up to the cutoff
    for place in first[lengths[first] >= LONG_BLOCK]:
        m, above = int(lengths[place]), int(ranking.start[place])
        counted = m if k is None else min(m, k - above)
        value[place : place + m] = 0.0
        value[place] = block_value(passing[place : place + m], above, counted)
    return value
