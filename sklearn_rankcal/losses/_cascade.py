"""Expected reciprocal rank, of the cascade model: a user stops at the first good document."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.base import clone

from sklearn_rankcal.losses._base import Loss
from sklearn_rankcal.losses._gains import Gain, apply_gain, exp2_minus_1
from sklearn_rankcal.losses._tied_cascade import (
    LONG_BLOCK,
    block_value,
    by_documents,
    discounted_block_value,
)
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.utils._numbers import read_numbers
from sklearn_rankcal.utils._parameters import check_count, check_number
from sklearn_rankcal.utils._typing import Floats

#: A discount F: a function of the array of places 1, 2, ..., or None for the places themselves.
Discount = Callable[[Floats], Floats] | None


class ERR(Loss):
    """Expected reciprocal rank: sum_j (1 / F(j)) R_(j) prod_{l < j} (1 - R_(l)).

    R_(j) = G(y) is the probability that the document at place j, whose label is y, satisfies the
    user.

    Parameters
    ----------
    k : int, default=None
        Number of places that count in the measure. If None, every place counts.
    max_relevance : float, default=None
        The top grade of the whole collection. If None, it is the largest label that is passed to
        `fit` or to a metric, which may lack the top grade. It must be None if `gain` is a function.
    gain : {"exp2", "linear"} or callable, default="exp2"
        G: ``(2**y - 1) / 2**max_relevance``, ``y / max_relevance``, or a function that maps an
        array of labels to an array of probabilities.
    discount : callable, default=None
        F, a function that maps the array of places 1, 2, ... to numbers of at least 1 which do not
        decrease. None is the place itself. The targets do not depend on it.

    Notes
    -----
    The targets are the probabilities R_i of the documents. They are calibrated if the labels of the
    documents of a query are independent given the query (Duchi, Mackey and Jordan, 2013, equation
    16 and lemma 1), but not for every distribution (Calauzènes et al., 2013, theorem 3.3). For
    example, let the labels be (1, 1, 0, 0) or (0, 0, 1, 1) with probability one half each. The
    expected scores tie, but the ranking 1, 3, 2, 4 has a larger expected ERR (43/96) than
    1, 2, 3, 4 (41/96).
    """

    calibrated_everywhere = False
    graded_targets = True
    calibrated_over = (
        "product distributions, in which labels are independent given the query (Duchi et al., "
        "2013, lemma 1); not all distributions (Calauzènes et al., 2013, theorem 3.3)"
    )

    def __init__(
        self,
        k: int | None = None,
        *,
        max_relevance: float | None = None,
        gain: Gain = "exp2",
        discount: Discount = None,
    ) -> None:
        self.k = k
        self.max_relevance = max_relevance
        self.gain = gain
        self.discount = discount

    @property
    def non_negative(self) -> bool:  # type: ignore[override]
        return not callable(self.gain)

    def encode(self, relevance: Floats, queries: Queries) -> Floats:
        """Compute the probabilities R."""
        return self.satisfaction(relevance)

    def check(self, labels: Floats) -> None:
        check_count(self.k, "k", or_none=True)
        if self.max_relevance is not None:
            check_number(self.max_relevance, "max_relevance", "[0, 1000]")
        self.divisors(2)
        if callable(self.gain):
            if self.max_relevance is not None:
                raise ValueError(
                    f"max_relevance={self.max_relevance!r} has no effect on a gain that is a "
                    "function. Leave it out."
                )
            super().check(labels)
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
        elif top > self.max_relevance:
            raise ValueError(
                f"Relevance {top:g} exceeds max_relevance={self.max_relevance:g}. Pass the top "
                "grade of the whole collection, ERR(max_relevance=...), because training data may "
                "lack it."
            )

    def for_labels(self, labels: Floats) -> ERR:
        """Return the loss with the largest label as top grade, if `max_relevance` is None."""
        if self.max_relevance is not None or callable(self.gain):
            return self
        return clone(self).set_params(max_relevance=float(labels.max()))

    def satisfaction(self, relevance: Floats) -> Floats:
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

    def divisors(self, n_places: int) -> Floats:
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

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        """The sum over places j <= k; tied rows are averaged over their orders (`_tied_cascade`).

        The cost is O(n) without ties. A block of m tied rows costs O(m^2) up to `LONG_BLOCK` rows,
        and O(m) times a constant beyond. If the cutoff k ends inside a longer block, the block
        costs O(m k) at most. With a discount, it costs O(m t), where t is the number of its places
        that users can reach with a probability that is not negligible.
        """
        satisfaction = self.satisfaction(labels)
        ranking = ranking.head(self.k)
        queries = ranking.queries
        passing = 1.0 - ranking.take(satisfaction)
        # probability that the user reaches each place: the product of 1 - R over the places above
        reach = np.empty(queries.n_rows)
        for inside, valid in queries.buckets():
            product = np.ones(inside.shape)
            np.cumprod(passing[inside[:, :-1]], axis=1, out=product[:, 1:])
            reach[inside[valid]] = product[valid]
        if ranking.start is None or ranking.stop is None:
            # the same order of operations as with ties, so that both give the same bits
            divisor = self.divisors(int(queries.sizes.max()))[queries.place]
            value = reach * ((1.0 - passing) / divisor)
        else:
            base = queries.repeat(queries.offsets[:-1])
            value = reach[ranking.start + base] * self._tied_values(passing, ranking)
        if self.k is not None:
            value = np.where(queries.place < self.k, value, 0.0)
        return ranking.sum(value)

    def _tied_values(self, passing: Floats, ranking: Ranking) -> Floats:
        """(E_(t-1) - E_t) / F(k0 + t) at the t-th place of each block, if the user reaches it.

        See `_tied_cascade` for the symbols. The whole value of a long block is at its first place,
        and its other places have 0.
        """
        assert ranking.start is not None and ranking.stop is not None
        drop = 1.0 - passing
        lengths = ranking.stop - ranking.start
        # short blocks: all blocks of the same length m at once
        first = np.flatnonzero((ranking.queries.place == ranking.start) & (lengths > 1))
        for m in np.unique(lengths[first]):
            if m < LONG_BLOCK:
                inside = first[lengths[first] == m][:, None] + np.arange(m)
                drop[inside] = -np.diff(by_documents(passing[inside], m), axis=1)
        divisor = self.divisors(int(ranking.stop.max()))
        value = drop / divisor[ranking.queries.place]
        # long blocks: one at a time, up to the cutoff
        for place in first[lengths[first] >= LONG_BLOCK]:
            m, above = int(lengths[place]), int(ranking.start[place])
            counted = m if self.k is None else min(m, self.k - above)
            value[place : place + m] = 0.0
            block = passing[place : place + m]
            if self.discount is None:
                value[place] = block_value(block, above, counted)
            else:
                value[place] = discounted_block_value(block, divisor[above : above + counted])
        return value
