"""Positional measures: sum_i u_i(y) phi(sigma(i)), with a utility u and a discount phi.

u_i(y) is the utility of document i given the labels y of its query, sigma(i) is the place of the
document, and phi(j) is the discount of place j. A ranking and its labels come in; one value per
query comes out. Each measure is one class that defines its utility and its discount.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.measures._base import (
    BinaryMeasure,
    Measure,
    check_cutoff,
    check_real,
    divide,
    exp2_minus_1,
    inverse,
)
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.utils._numbers import read_numbers


def positional(
    ranking: Ranking, utility: NDArray[np.float64], discount: Callable[[int], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The sum over i of utility_i phi(sigma(i)), one value per query.

    Every row of a block of ties gets the mean of the discounts of the block's places. That is the
    mean over the orders of the block, because the measure is linear in the discounts.
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
    """Number of places up to the last one that counts, at least 1."""
    return int(np.flatnonzero(phi)[-1]) + 1 if phi.any() else 1


#: Utilities must be smaller than this. Their sum over any query that fits into memory is finite.
LARGEST_GAIN = 1e300


#: A gain G by name, "exp2" or "linear", or a function of an array of labels.
Gain = str | Callable[[NDArray[np.float64]], NDArray[np.float64]]


def _top(n_places: int, k: int | None) -> NDArray[np.bool_]:
    """Whether each of the places 1 .. n_places is among the first k."""
    return np.arange(n_places) < (n_places if k is None else k)


def position_scale(sizes: Any) -> Any:
    """r times the standard deviation of the positions 1 .. r of a query of r documents.

    For r = 1, where Spearman's rho is undefined, it is 1.
    """
    return np.where(np.asarray(sizes) > 1, sizes * np.sqrt((np.square(sizes) - 1) / 12), 1.0)


def apply_gain(relevance: NDArray[np.float64], gain: Gain) -> NDArray[np.float64]:
    """The gains G(y) of an array of labels.

    Raises
    ------
    ValueError
        If the gain is unknown, or if a gain is NaN, negative or at least `LARGEST_GAIN`.
    """
    if callable(gain):
        # a copy: a function that writes into its argument must not change the labels
        gains = read_numbers(gain(relevance.copy()), "what gain returned")
        if gains.shape != relevance.shape:
            raise ValueError(f"gain must keep the shape {relevance.shape}; got {gains.shape}.")
    elif isinstance(gain, str) and gain == "exp2":
        gains = exp2_minus_1(relevance)
    elif isinstance(gain, str) and gain == "linear":
        gains = relevance
    else:
        raise ValueError(f"gain must be 'exp2', 'linear' or a callable; got {gain!r}.")
    if np.isnan(gains).any():
        row = int(np.flatnonzero(np.isnan(gains))[0])
        raise ValueError(f"gain returned NaN for the relevance {relevance[row]:g}.")
    # Sums of gains must stay finite as well, and their products with discounts precise.
    if not (np.abs(gains) < LARGEST_GAIN).all():
        remedy = (
            "Use gain='linear', or rescale the labels."
            if gain == "exp2"
            else ("Rescale the labels.")
        )
        raise ValueError(
            f"gain={gain!r} overflows: the largest relevance is {relevance.max():g}. {remedy}"
        )
    if gains.size and gains.min() < 0:
        raise ValueError(f"Negative values in data passed to the gain: got {gains.min():g}.")
    return gains


# -------------------------------------------------------------------- the measures


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


class _BinaryGains(BinaryMeasure, GainMeasure):
    """Base class of positional measures whose gain is 1 for a relevant document and 0 otherwise."""

    def gains(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.relevant(relevance).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Precision(_BinaryGains):
    """Precision@k: the share of relevant documents among the first k.

    Parameters
    ----------
    k : int, default=10
        Number of places that count. The number of relevant documents is divided by k even if the
        query has fewer documents.
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. None: labels must be 0 or 1.

    Notes
    -----
    The measure is defined for every query. Where scores tie, the value is the mean over the orders
    of the tied documents.
    """

    k: int = 10

    def check(self, labels: NDArray[np.float64]) -> None:
        check_cutoff("k", self.k, required=True)
        super().check(labels)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return _top(n_places, self.k) / self.k


@dataclass(frozen=True, kw_only=True)
class ERU(GainMeasure):
    """Expected rank utility: sum_i max(y_i - neutral, 0) 2^((1 - sigma(i)) / (half_life - 1)).

    Parameters
    ----------
    neutral : float, default=0.0
        Neutral relevance. A document adds to the measure only if its relevance is larger.
    half_life : float, default=5.0
        The place whose discount is one half; it must be larger than 1.

    Notes
    -----
    The measure is defined for every query. Where scores tie, the value is the mean over the orders
    of the tied documents.
    """

    neutral: float = 0.0
    half_life: float = 5.0

    def check(self, labels: NDArray[np.float64]) -> None:
        check_real("half_life", self.half_life)
        if not self.half_life > 1:
            raise ValueError(f"half_life must be finite and > 1; got {self.half_life!r}.")
        check_real("neutral", self.neutral)
        super().check(labels)
        with np.errstate(over="ignore"):
            largest = labels.max() - self.neutral
        if not largest < LARGEST_GAIN:
            raise ValueError(
                f"Relevance of {labels.max():g} is too large for ERU, because sums overflow. "
                "Rescale the labels."
            )

    def gains(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(relevance - self.neutral, 0.0)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return np.exp2(-np.arange(n_places) / (self.half_life - 1))


@dataclass(frozen=True, kw_only=True)
class DCG(GainMeasure):
    """Discounted cumulative gain: the sum over the first k places j of G(y_(j)) / log2(1 + j).

    y_(j) is the label of the document at place j, and G is the gain.

    Parameters
    ----------
    k : int, default=None
        Number of places that count. None counts every place.
    gain : {"exp2", "linear"} or callable, default="exp2"
        G: ``2**y - 1``, ``y``, or a function that maps an array of labels to an array of
        non-negative gains.

    Notes
    -----
    The measure is defined for every query. With a gain given by name, labels must be >= 0. Where
    scores tie, the value is the mean over the orders of the tied documents.
    """

    non_negative = True

    k: int | None = None
    gain: Gain = "exp2"

    def check(self, labels: NDArray[np.float64]) -> None:
        check_cutoff("k", self.k)
        if callable(self.gain):
            apply_gain(labels, self.gain)
        else:
            super().check(labels)
            apply_gain(labels.max(keepdims=True), self.gain)  # the named gains increase with y

    def gains(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        return apply_gain(relevance, self.gain)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return _top(n_places, self.k) / np.log2(np.arange(n_places) + 2.0)


class NDCG(NormalizedMeasure, DCG):
    """Normalized DCG: DCG@k over the largest DCG@k that the labels of the query allow.

    Parameters
    ----------
    k : int, default=None
        Number of places that count, also in the denominator. None counts every place.
    gain : {"exp2", "linear"} or callable, default="exp2"
        G: ``2**y - 1``, ``y``, or a function that maps an array of labels to an array of
        non-negative gains.

    Notes
    -----
    The measure is undefined for a query in which every gain is 0. Where scores tie, the value is
    the mean over the orders of the tied documents.
    """

    def normalizer(self, gains: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return ideal(queries, gains, self.discounts)


@dataclass(frozen=True, kw_only=True)
class Recall(NormalizedMeasure, _BinaryGains):
    """Recall@k: the share of the relevant documents that stand among the first k.

    Parameters
    ----------
    k : int, default=10
        Number of places that count.
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. None: labels must be 0 or 1.

    Notes
    -----
    The measure is undefined for a query without a relevant document. Where scores tie, the value is
    the mean over the orders of the tied documents.
    """

    k: int = 10

    def check(self, labels: NDArray[np.float64]) -> None:
        check_cutoff("k", self.k, required=True)
        super().check(labels)

    def normalizer(self, gains: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return queries.sum(gains)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return _top(n_places, self.k).astype(np.float64)


class AUC(NormalizedMeasure, _BinaryGains):
    """Area under the ROC curve of each query.

    It is the share of pairs of a relevant and an irrelevant document in which the relevant document
    stands above the other.

    Parameters
    ----------
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. None: labels must be 0 or 1.

    Notes
    -----
    The measure is undefined for a query in which all documents are relevant or none is. A pair
    whose scores tie counts half.
    """

    def normalizer(self, gains: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        positive = queries.sum(gains)
        return positive * (queries.sizes - positive)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return -np.arange(1.0, n_places + 1)

    def offset(self, gains: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        # A relevant row at position p has r - p rows below it. Summed over the n relevant rows that
        # is n r - sum p, and n (n - 1) / 2 of these pairs consist of two relevant rows.
        positive = queries.sum(gains)
        return positive * (queries.sizes - (positive - 1) / 2)


class Spearman(PositionalMeasure):
    """Spearman's rank correlation between the ranking and the order of the labels.

    Equal labels share the mean of their positions, which is called their midrank. The measure is
    Pearson's correlation of midranks with positions, as in `scipy.stats.spearmanr`.

    Notes
    -----
    The measure is undefined for a query in which all labels are equal. Where scores tie, the value
    is the mean over the orders of the tied documents, which is not the correlation of two sets of
    midranks.
    """

    def standardized_midranks(
        self, relevance: NDArray[np.float64], queries: Queries
    ) -> NDArray[np.float64]:
        """(mean - midrank_i) / standard deviation, which has unit variance in every query.

        It is 0 in a query in which all labels are equal.
        """
        ranking = Ranking.from_scores(relevance, queries)
        middle = queries.repeat((queries.sizes - 1) / 2)
        if ranking.start is None or ranking.stop is None:
            above = middle - queries.place.astype(np.float64)
        else:
            above = middle - (ranking.start + ranking.stop - 1) / 2
        deviation = np.sqrt(ranking.sum(above**2) / queries.sizes)
        values = np.empty(queries.n_rows)
        values[ranking.order] = above / queries.repeat(np.where(deviation > 0, deviation, 1.0))
        return values

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        midranks = self.standardized_midranks(relevance, queries)
        return midranks / queries.broadcast(position_scale(queries.sizes))

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return -np.arange(1.0, n_places + 1)

    def defined(self, labels: NDArray[np.float64], queries: Queries) -> NDArray[np.bool_]:
        return queries.max(labels) > queries.min(labels)


@dataclass(frozen=True, kw_only=True)
class Positional(PositionalMeasure):
    """A positional measure with a utility of the labels and a discount of the places of your own.

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
        values = read_numbers(self.utility(relevance.copy(), queries), "what utility returned")
        if values.shape != relevance.shape or not np.isfinite(values).all():
            raise ValueError(
                f"utility must return one finite number per document, shape {relevance.shape}; "
                f"got shape {values.shape}"
                + ("." if values.shape != relevance.shape else " with NaN or infinity.")
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
