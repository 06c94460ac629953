"""Positional measures: sum_i u_i(y) phi(sigma(i)), with a utility u and a discount phi.

u_i(y) is the utility of document i given the labels y of its query, sigma(i) is the place of the
document, and phi(j) is the discount of place j. A ranking and its labels come in; one value per
query comes out.

This file has the sum, the base classes, and a measure whose utility and discount the user gives.
The other positional measures are in `_positional_binary`, `_positional_graded` and `_spearman`.
Each of them is one class that defines its utility and its discount.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.measures._base import Measure, divide, inverse
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.utils._numbers import read_numbers

#: Utilities must be smaller than this. Their sum over any query that fits into memory is finite.
LARGEST_GAIN = 1e300


def positional(
    ranking: Ranking, utility: NDArray[np.float64], discount: Callable[[int], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The sum over documents i of utility_i phi(sigma(i)), one value per query.

    `utility` is in row layout, and ``discount(n)`` returns phi(1) .. phi(n). The discount of a row
    in a block of ties is the mean of the discounts of the places of the block. The sum is then the
    mean over the orders of the block, because it is linear in the discounts.
    """
    phi = discount(int(ranking.queries.sizes.max()))
    ranking = ranking.head(_depth(phi))
    if ranking.start is None or ranking.stop is None:
        return ranking.sum(ranking.take(utility) * phi[ranking.queries.place])
    # The discounts of each block are added up separately. A difference of running sums would lose
    # the digits of discounts that are small in comparison with those above them.
    at = phi[ranking.queries.place]
    first = np.flatnonzero(ranking.queries.place == ranking.start)
    length = np.diff(np.append(first, len(at)))
    mean = np.repeat(np.add.reduceat(at, first) / length, length)
    return ranking.sum(ranking.take(utility) * mean)


def ideal(
    queries: Queries, utility: NDArray[np.float64], discount: Callable[[int], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The maximum over rankings of sum_i utility_i phi(sigma(i)), one value per query.

    Sorting by descending utility reaches it, because phi does not increase.
    """
    phi = discount(int(queries.sizes.max()))
    best = Ranking(queries, np.arange(queries.n_rows)).head(_depth(phi))
    values = best.take(queries.sort_values(utility))
    return best.sum(values * phi[best.queries.place])


def _depth(phi: NDArray[np.float64]) -> int:
    """Number of places up to the last one whose discount is not 0, at least 1."""
    return int(np.flatnonzero(phi)[-1]) + 1 if phi.any() else 1


def first_places(n_places: int, k: int | None) -> NDArray[np.bool_]:
    """Whether each of the places 1 .. n_places is among the first k."""
    return np.arange(n_places) < (n_places if k is None else k)


class PositionalMeasure(Measure):
    """Base class of the positional measures. A subclass implements `utilities` and `discounts`.

    Where scores tie, the value is the mean over the orders of the tied documents.
    """

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        """The discounts phi(1) .. phi(n_places), which must not increase."""
        raise NotImplementedError

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        """The utility u(y) of every row: what the document adds at a place whose discount is 1."""
        raise NotImplementedError

    def per_query(self, ranking: Ranking, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        queries = ranking.queries
        value = positional(ranking, self.utilities(labels, queries), self.discounts)
        return np.where(self.defined(labels, queries), value, np.nan)


class GainMeasure(PositionalMeasure):
    """Base class of positional measures whose utility of a document depends only on its own label.

    A subclass implements `gains` and `discounts`.
    """

    def gains(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        """The gain of every row, which is its utility unless a normalizer divides it."""
        raise NotImplementedError

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return self.gains(relevance)


class NormalizedMeasure(GainMeasure):
    """Base class of positional measures whose utilities are gains over a normalizer of the query.

    A subclass implements `gains`, `normalizer` and `discounts`. The measure is undefined for a
    query whose normalizer is 0.
    """

    def normalizer(self, gains: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        """The normalizer of each query, 0 where the measure is undefined."""
        raise NotImplementedError

    def offset(self, gains: NDArray[np.float64], queries: Queries) -> NDArray[np.float64] | float:
        """The part of the measure that does not depend on the ranking, times the normalizer."""
        return 0.0

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        gains = self.gains(relevance)
        return gains * queries.broadcast(inverse(self.normalizer(gains, queries)))

    def defined(self, labels: NDArray[np.float64], queries: Queries) -> NDArray[np.bool_]:
        return self.normalizer(self.gains(labels), queries) > 0

    def per_query(self, ranking: Ranking, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        gains = self.gains(labels)
        value = positional(ranking, gains, self.discounts) + self.offset(gains, ranking.queries)
        return divide(value, self.normalizer(gains, ranking.queries))


@dataclass(frozen=True, kw_only=True)
class Positional(PositionalMeasure):
    """A positional measure whose utility and discount the user gives.

    Parameters
    ----------
    utility : callable, default=None
        ``utility(relevance, queries)`` returns the utilities, an array of shape (n_documents,).
        None takes the relevance itself.
    discount : callable or array-like, default=None
        The discount phi, which must not increase: a function of the array of places 1, 2, ..., or
        its first values, followed by 0. None is 1 / log2(1 + place).

    Notes
    -----
    The measure is defined for every query. Where scores tie, the value is the mean over the orders
    of the tied documents.
    """

    utility: Callable[[NDArray[np.float64], Queries], ArrayLike] | None = None
    discount: Callable[[NDArray[np.float64]], ArrayLike] | ArrayLike | None = None

    def check(self, labels: NDArray[np.float64]) -> None:
        super().check(labels)
        self.discounts(1)

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        if self.utility is None:
            return relevance
        # a copy: a function that writes into its argument must not change the labels
        try:
            made = self.utility(relevance.copy(), queries)
        except TypeError as error:
            raise TypeError(
                f"utility is called as utility(relevance, queries), and raised: {error}. A "
                "function of the labels alone is passed as "
                "utility=lambda relevance, queries: numpy.sqrt(relevance)."
            ) from error
        values = read_numbers(made, "what utility returned")
        if values.shape != relevance.shape or not np.isfinite(values).all():
            raise ValueError(
                f"utility must return one finite number per document, shape {relevance.shape}; "
                f"got shape {values.shape}"
                + ("." if values.shape != relevance.shape else ", with NaN or infinity.")
            )
        if not (np.abs(values) < LARGEST_GAIN).all():
            raise ValueError(
                f"utility returned {np.abs(values).max():g}, so that sums overflow. Return smaller "
                "numbers."
            )
        return values

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        places = np.arange(1.0, n_places + 1)
        if self.discount is None:
            phi = 1 / np.log2(1 + places)
        elif callable(self.discount):
            phi = read_numbers(self.discount(places), "what discount returned")
        else:
            given = read_numbers(self.discount, "discount")
            phi = np.zeros(max(n_places, given.size))
            phi[: given.size] = given.ravel()
        if phi.ndim != 1 or len(phi) < n_places:
            raise ValueError(f"discount must give one value per place; got shape {phi.shape}.")
        if not np.isfinite(phi).all() or (np.diff(phi) > 0).any():
            raise ValueError(
                "discount must be finite and must not increase with the place, because only then "
                f"sorting is optimal. It starts with {phi[:5].tolist()}."
            )
        return phi[:n_places]
