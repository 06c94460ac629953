"""The cascade: expected reciprocal rank, where a user stops at the first satisfying document."""

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

    R = (2^y - 1) / 2^max_relevance is the probability that a document satisfies the user.
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
                "grade of the whole collection: ERR(max_relevance=...), since training data may "
                "lack it."
            )

    def resolve(self, labels: NDArray[np.float64]) -> ERR:
        """The measure with the largest label as top grade, where none is given."""
        if self.max_relevance is not None:
            return self
        return replace(self, max_relevance=float(labels.max()))

    def satisfaction(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        """R: the probability that a document satisfies the user."""
        top = relevance.max() if self.max_relevance is None else self.max_relevance
        return exp2_minus_1(relevance) / np.exp2(top)

    def per_query(self, ranking: Ranking, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        # satisfaction is asked for part of the labels, but the top grade is that of all
        return expected_reciprocal_rank(ranking, labels, self.resolve(labels).satisfaction, self.k)


def expected_reciprocal_rank(
    ranking: Ranking,
    relevance: NDArray[np.float64],
    satisfaction: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    k: int | None = None,
) -> NDArray[np.float64]:
    """sum over places j <= k of (1 / j) R_j prod over places above of (1 - R), R in [0, 1].

    Equal scores are averaged over their orders, see `_tied_cascade`. O(n) without ties. A block of
    m tied rows costs O(m^2) up to `LONG_BLOCK` rows, and O(m) times a constant beyond, unless the
    cutoff k ends inside the block: then O(m k) at most.
    """
    ranking = ranking.head(k)
    queries = ranking.queries
    passing = 1.0 - satisfaction(ranking.take(relevance))
    position = queries.place + 1
    reach = np.empty(queries.n_rows)
    for inside, valid in queries.buckets():
        product = np.ones(inside.shape)
        np.cumprod(passing[inside[:, :-1]], axis=1, out=product[:, 1:])
        reach[inside[valid]] = product[valid]
    if ranking.start is None or ranking.stop is None:
        value = reach * ((1.0 - passing) / position)  # in the order of the tied case
    else:
        base = queries.repeat(queries.offsets[:-1])
        value = reach[ranking.start + base] * _tied_values(passing, ranking, k)
    if k is not None:
        value = np.where(position <= k, value, 0.0)
    return ranking.sum(value)


def _tied_values(
    passing: NDArray[np.float64], ranking: Ranking, k: int | None
) -> NDArray[np.float64]:
    """(E_(t-1) - E_t) / (k0 + t) at the t-th place of each block; a long block's sum at its first.

    For a user who reaches the block; see `_tied_cascade` for the symbols.
    """
    assert ranking.start is not None and ranking.stop is not None
    drop = 1.0 - passing
    lengths = ranking.stop - ranking.start
    first = np.flatnonzero((ranking.queries.place == ranking.start) & (lengths > 1))
    for m in np.unique(lengths[first]):
        if m >= LONG_BLOCK:
            continue
        inside = first[lengths[first] == m][:, None] + np.arange(m)
        drop[inside] = -np.diff(by_documents(passing[inside], m), axis=1)
    value = drop / (ranking.queries.place + 1)
    for place in first[lengths[first] >= LONG_BLOCK]:
        m, above = int(lengths[place]), int(ranking.start[place])
        counted = m if k is None else min(m, k - above)
        value[place : place + m] = 0.0
        value[place] = block_value(passing[place : place + m], above, counted)
    return value
