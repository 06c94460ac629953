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
from sklearn_rankcal.measures._positional_graded import Gain, apply_gain
from sklearn_rankcal.measures._tied_cascade import (
    LONG_BLOCK,
    block_value,
    by_documents,
    discounted_block_value,
)
from sklearn_rankcal.queries import Ranking
from sklearn_rankcal.utils._numbers import read_numbers

#: A discount F: a function of the array of places 1, 2, ..., or None for the places themselves.
Discount = Callable[[NDArray[np.float64]], NDArray[np.float64]] | None


@dataclass(frozen=True, kw_only=True)
class ERR(Measure):
    """Expected reciprocal rank: sum_j (1 / F(j)) R_(j) prod_{l < j} (1 - R_(l)).

    R = G(y) is the probability that a document of relevance y satisfies the user, and R_(j) is that
    of the document at place j. By default G(y) = (2^y - 1) / 2^max_relevance, and F(j) = j.

    Parameters
    ----------
    k : int, default=None
        Number of places that count. None counts every place.
    max_relevance : float, default=None
        The top grade of the whole collection. None: the largest label that is passed. It must be
        None if `gain` is a function.
    gain : {"exp2", "linear"} or callable, default="exp2"
        G: ``(2**y - 1) / 2**max_relevance``, ``y / max_relevance``, or a function that maps an
        array of labels to an array of probabilities, numbers in [0, 1].
    discount : callable, default=None
        F, a function that maps the array of places 1, 2, ... to numbers of at least 1 which do not
        decrease. None is the place itself.

    Notes
    -----
    This is the family of equation (16) of Duchi, Mackey and Jordan (2013). The measure is defined
    for every query; it is 0 if no document can satisfy the user. With a gain given by name, labels
    must be >= 0. Where scores tie, the value is the mean over the orders of the tied documents.
    """

    non_negative = True

    k: int | None = None
    max_relevance: float | None = None
    gain: Gain = "exp2"
    discount: Discount = None

    def check(self, labels: NDArray[np.float64]) -> None:
        check_cutoff("k", self.k)
        if self.max_relevance is not None:
            check_real("max_relevance", self.max_relevance)
        self.divisors(2)
        if callable(self.gain):
            if self.max_relevance is not None:
                raise ValueError(
                    f"max_relevance={self.max_relevance!r} has no effect on a gain that is a "
                    "function. Leave it out."
                )
            self.satisfaction(labels)
            return
        if not isinstance(self.gain, str) or self.gain not in ("exp2", "linear"):
            raise ValueError(f"gain must be 'exp2', 'linear' or a callable; got {self.gain!r}.")
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
        if self.max_relevance is not None or callable(self.gain):
            return self
        return replace(self, max_relevance=float(labels.max()))

    def satisfaction(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        """R: the probability that each document satisfies the user."""
        if callable(self.gain):
            chances = apply_gain(relevance, self.gain)
            if (chances > 1).any():
                raise ValueError(
                    "gain must return probabilities, numbers in [0, 1], for ERR; got "
                    f"{chances.max():g}."
                )
            return chances
        top = relevance.max() if self.max_relevance is None else self.max_relevance
        if self.gain == "linear":
            return relevance / top if top > 0 else np.zeros(len(relevance))
        return exp2_minus_1(relevance) / np.exp2(top)

    def divisors(self, n_places: int) -> NDArray[np.float64]:
        """F of the places 1 .. n_places."""
        places = np.arange(1.0, n_places + 1)
        if self.discount is None:
            return places
        if not callable(self.discount):
            raise ValueError(f"discount must be a function or None; got {self.discount!r}.")
        values = read_numbers(self.discount(places.copy()), "what discount returned")
        if values.shape != places.shape:
            raise ValueError(
                f"discount must return one value for each place, shape {places.shape}; got shape "
                f"{values.shape}."
            )
        if not np.isfinite(values).all() or values[0] < 1 or (np.diff(values) < 0).any():
            raise ValueError(
                "discount of ERR divides, so that it must be finite, at least 1 at the first "
                "place, and must not decrease with the place. It starts with "
                f"{values[:5].tolist()}."
            )
        return values

    def per_query(self, ranking: Ranking, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        # `satisfaction` is called with the labels of the first places only, but the top grade is
        # the largest of all labels: it has to be set before
        resolved = self.resolve(labels)
        divisors = None if self.discount is None else self.divisors
        return expected_reciprocal_rank(ranking, labels, resolved.satisfaction, self.k, divisors)


def expected_reciprocal_rank(
    ranking: Ranking,
    relevance: NDArray[np.float64],
    satisfaction: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    k: int | None = None,
    divisors: Callable[[int], NDArray[np.float64]] | None = None,
) -> NDArray[np.float64]:
    """The sum over places j <= k of R_j / F(j) prod_{l < j} (1 - R_l), one value per query.

    R_j is what `satisfaction` returns for the relevance of the row at place j, in [0, 1], and
    ``divisors(n)`` returns F(1) .. F(n); None stands for F(j) = j.

    Tied rows are averaged over their orders; see `_tied_cascade`. The cost is O(n) without ties. A
    block of m tied rows costs O(m^2) up to `LONG_BLOCK` rows, and O(m) times a constant beyond. If
    the cutoff k ends inside a longer block, the block costs O(m k) at most. With `divisors`, a
    block costs O(m t), where t is the number of its places that users can reach with a probability
    that is not negligible.
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
        divisor = position if divisors is None else divisors(int(position.max()))[queries.place]
        value = reach * ((1.0 - passing) / divisor)
    else:
        base = queries.repeat(queries.offsets[:-1])
        value = reach[ranking.start + base] * _tied_values(passing, ranking, k, divisors)
    if k is not None:
        value = np.where(position <= k, value, 0.0)
    return ranking.sum(value)


def _tied_values(
    passing: NDArray[np.float64],
    ranking: Ranking,
    k: int | None,
    divisors: Callable[[int], NDArray[np.float64]] | None,
) -> NDArray[np.float64]:
    """(E_(t-1) - E_t) / F(k0 + t) at the t-th place of each block, given that the user reaches it.

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
    n_places = int(ranking.stop.max())
    divisor = np.arange(1.0, n_places + 1) if divisors is None else divisors(n_places)
    value = drop / divisor[ranking.queries.place]
    # long blocks: one at a time, up to the cutoff
    for place in first[lengths[first] >= LONG_BLOCK]:
        m, above = int(lengths[place]), int(ranking.start[place])
        counted = m if k is None else min(m, k - above)
        value[place : place + m] = 0.0
        block = passing[place : place + m]
        if divisors is None:
            value[place] = block_value(block, above, counted)
        else:
            value[place] = discounted_block_value(block, divisor[above : above + counted])
    return value
