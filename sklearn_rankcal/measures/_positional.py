"""Positional measures: sum_i u_i(y) phi(sigma(i)), with a utility u and a discount phi.

u_i(y) is the utility of document i given the labels y of its query, sigma(i) is the place of the
document, and phi(j) is the discount of place j.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.measures._base import (
    BinaryMeasure,
    Floats,
    Measure,
    check_cutoff,
    check_real,
    divide,
    inverse,
)
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.utils._numbers import LARGEST, check_range, read_numbers

#: A gain G by name, "exp2" or "linear", or a function of an array of labels.
Gain = str | Callable[[Floats], Floats]
Discounts = Callable[[int], Floats]

#: Where the linear gain is chosen, for errors and warnings.
LINEAR_GAIN = (
    "Pass gain='linear' to the loss object, as in loss=NDCG(k=10, gain='linear') of "
    "sklearn_rankcal.losses, and to the scorer and the metrics, as in "
    "get_ranking_scorer('ndcg@10', gain='linear')."
)

# ---------------------------------------------------------------- sums over places


def positional(ranking: Ranking, utility: Floats, discount: Discounts) -> Floats:
    """The sum over documents i of utility_i phi(sigma(i)), one value per query.

    ``discount(n)`` returns phi(1) .. phi(n). The discount of a row in a block of ties is the mean
    of the discounts of the places of the block. The sum is then the mean over the orders of the
    block, because it is linear in the discounts.
    """
    phi = discount(int(ranking.queries.sizes.max()))
    ranking = ranking.head(_depth(phi))
    at = phi[ranking.queries.place]
    if ranking.start is not None:
        # The discounts of each block are added up separately. A difference of running sums would
        # lose the digits of discounts that are small in comparison with those above them.
        first = np.flatnonzero(ranking.queries.place == ranking.start)
        length = np.diff(np.append(first, len(at)))
        at = np.repeat(np.add.reduceat(at, first) / length, length)
    return ranking.sum(ranking.take(utility) * at)


def ideal(queries: Queries, utility: Floats, discount: Discounts) -> Floats:
    """The maximum over rankings of `positional`, which sorting by descending utility reaches."""
    phi = discount(int(queries.sizes.max()))
    best = Ranking(queries, np.arange(queries.n_rows)).head(_depth(phi))
    values = best.take(queries.sort_values(utility))
    return best.sum(values * phi[best.queries.place])


def _depth(phi: Floats) -> int:
    """Number of places up to the last one whose discount is not 0, at least 1."""
    return int(np.flatnonzero(phi)[-1]) + 1 if phi.any() else 1


def _first_places(n_places: int, k: int | None) -> NDArray[np.bool_]:
    """Whether each of the places 1 .. n_places is among the first k."""
    return np.arange(n_places) < (n_places if k is None else k)


# ---------------------------------------------------------------- base classes


class PositionalMeasure(Measure):
    """Base class of the positional measures. A subclass implements `utilities` and `discounts`.

    Where scores tie, the value is the mean over the orders of the tied documents.
    """

    def discounts(self, n_places: int) -> Floats:
        """The discounts phi(1) .. phi(n_places), which must not increase."""
        raise NotImplementedError

    def utilities(self, relevance: Floats, queries: Queries) -> Floats:
        """The utility u(y) of every row: what the document adds at a place whose discount is 1."""
        raise NotImplementedError

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        queries = ranking.queries
        value = positional(ranking, self.utilities(labels, queries), self.discounts)
        return np.where(self.defined(labels, queries), value, np.nan)


class GainMeasure(PositionalMeasure):
    """Base class of positional measures whose utility of a document depends only on its own label.

    A subclass implements `gains` and `discounts`.
    """

    def gains(self, relevance: Floats) -> Floats:
        """The gain of every row, which is its utility unless a normalizer divides it."""
        raise NotImplementedError

    def utilities(self, relevance: Floats, queries: Queries) -> Floats:
        return self.gains(relevance)


class NormalizedMeasure(GainMeasure):
    """Base class of positional measures whose utilities are gains over a normalizer of the query.

    A subclass implements `gains`, `normalizer` and `discounts`. The measure is undefined for a
    query whose normalizer is 0.
    """

    def normalizer(self, gains: Floats, queries: Queries) -> Floats:
        """The normalizer of each query, 0 where the measure is undefined."""
        raise NotImplementedError

    def offset(self, gains: Floats, queries: Queries) -> Floats | float:
        """The part of the measure that does not depend on the ranking, times the normalizer."""
        return 0.0

    def utilities(self, relevance: Floats, queries: Queries) -> Floats:
        gains = self.gains(relevance)
        return gains * queries.broadcast(inverse(self.normalizer(gains, queries)))

    def defined(self, labels: Floats, queries: Queries) -> NDArray[np.bool_]:
        return self.normalizer(self.gains(labels), queries) > 0

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        gains = self.gains(labels)
        value = positional(ranking, gains, self.discounts) + self.offset(gains, ranking.queries)
        return divide(value, self.normalizer(gains, ranking.queries))


# ---------------------------------------------------------------- binary relevance


@dataclass(frozen=True, kw_only=True)
class Precision(BinaryMeasure, GainMeasure):
    """Precision@k: the share of relevant documents among the first k."""

    k: int = 10

    def check(self, labels: Floats) -> None:
        check_cutoff("k", self.k, required=True)
        super().check(labels)

    def discounts(self, n_places: int) -> Floats:
        return _first_places(n_places, self.k) / self.k


@dataclass(frozen=True, kw_only=True)
class Recall(BinaryMeasure, NormalizedMeasure):
    """Recall@k: the share of the relevant documents that stand among the first k."""

    k: int = 10

    def check(self, labels: Floats) -> None:
        check_cutoff("k", self.k, required=True)
        super().check(labels)

    def normalizer(self, gains: Floats, queries: Queries) -> Floats:
        return queries.sum(gains)

    def discounts(self, n_places: int) -> Floats:
        return _first_places(n_places, self.k).astype(np.float64)


class AUC(BinaryMeasure, NormalizedMeasure):
    """Area under the ROC curve of each query. A pair whose scores tie counts half."""

    def normalizer(self, gains: Floats, queries: Queries) -> Floats:
        positive = queries.sum(gains)
        return positive * (queries.sizes - positive)

    def discounts(self, n_places: int) -> Floats:
        return -np.arange(1.0, n_places + 1)

    def offset(self, gains: Floats, queries: Queries) -> Floats:
        # A relevant row at position p has r - p rows below it. Summed over the n relevant rows that
        # is n r - sum p, and n (n - 1) / 2 of these pairs consist of two relevant rows.
        positive = queries.sum(gains)
        return positive * (queries.sizes - (positive - 1) / 2)


# ---------------------------------------------------------------- graded relevance


def apply_gain(relevance: Floats, gain: Gain) -> Floats:
    """The gains G(y) of an array of labels, which must be numbers from 0 to 1e50."""
    if callable(gain):
        # a copy: a function that writes into its argument must not change the labels
        gains = read_numbers(gain(relevance.copy()), "what gain returned")
        if gains.shape != relevance.shape:
            raise ValueError(f"gain must keep the shape {relevance.shape}; got {gains.shape}.")
        if np.isnan(gains).any():
            undefined = relevance[np.isnan(gains)][0]
            raise ValueError(f"gain returned NaN for the relevance {undefined:g}.")
        check_range(gains, "what gain returned")
    elif isinstance(gain, str) and gain == "exp2":
        gains = exp2_minus_1(relevance)
    elif isinstance(gain, str) and gain == "linear":
        gains = relevance
    else:
        raise ValueError(f"gain must be 'exp2', 'linear' or a callable; got {gain!r}.")
    if gains.size and gains.max() > LARGEST**2:
        remedy = f"{LINEAR_GAIN} Or rescale" if gain == "exp2" else "Rescale"
        raise ValueError(
            f"gain={gain!r} exceeds {LARGEST**2:g}: the largest relevance is {relevance.max():g}. "
            f"{remedy} the labels."
        )
    if gains.size and gains.min() < 0:
        raise ValueError(f"Negative values in data passed to the gain: got {gains.min():g}.")
    return gains


def exp2_minus_1(relevance: Floats) -> Floats:
    """The gain 2**y - 1, with full precision even where y is so small that 2**y rounds to 1."""
    with np.errstate(over="ignore"):  # the callers refuse labels for which this overflows
        large = np.exp2(relevance) - 1
        small = np.expm1(relevance * np.log(2))
    return np.where(np.abs(relevance) < 0.5, small, large)


@dataclass(frozen=True, kw_only=True)
class DCG(GainMeasure):
    """Discounted cumulative gain: the sum over the first k places j of G(y_(j)) / log2(1 + j)."""

    non_negative = True

    k: int | None = None
    gain: Gain = "exp2"

    def check(self, labels: Floats) -> None:
        check_cutoff("k", self.k)
        if callable(self.gain):
            apply_gain(labels, self.gain)
        else:
            super().check(labels)
            apply_gain(labels.max(keepdims=True), self.gain)  # the named gains increase with y

    def gains(self, relevance: Floats) -> Floats:
        return apply_gain(relevance, self.gain)

    def discounts(self, n_places: int) -> Floats:
        return _first_places(n_places, self.k) / np.log2(np.arange(n_places) + 2.0)


class NDCG(NormalizedMeasure, DCG):
    """Normalized DCG: DCG@k over the largest DCG@k that the labels of the query allow."""

    def normalizer(self, gains: Floats, queries: Queries) -> Floats:
        return ideal(queries, gains, self.discounts)


@dataclass(frozen=True, kw_only=True)
class ERU(GainMeasure):
    """Expected rank utility: sum_i max(y_i - neutral, 0) 2^((1 - sigma(i)) / (half_life - 1))."""

    neutral: float = 0.0
    half_life: float = 5.0

    def check(self, labels: Floats) -> None:
        check_real("half_life", self.half_life)
        if not self.half_life > 1:
            raise ValueError(f"half_life must be finite and > 1; got {self.half_life!r}.")
        check_real("neutral", self.neutral)
        check_range(np.array([self.neutral], dtype=np.float64), "neutral")

    def gains(self, relevance: Floats) -> Floats:
        return np.maximum(relevance - self.neutral, 0.0)

    def discounts(self, n_places: int) -> Floats:
        return np.exp2(-np.arange(n_places) / (self.half_life - 1))


# ---------------------------------------------------------------- the order of labels


def position_scale(sizes: Any) -> Any:
    """r times the standard deviation of the positions 1 .. r of a query of r documents.

    For r = 1, where Spearman's rho is undefined, it is 1.
    """
    return np.where(np.asarray(sizes) > 1, sizes * np.sqrt((np.square(sizes) - 1) / 12), 1.0)


class Spearman(PositionalMeasure):
    """Spearman's rank correlation: Pearson's correlation of midranks of labels with positions.

    The utility of a document is its standardized midrank, and the discount of place j is -j.
    """

    def standardized_midranks(self, relevance: Floats, queries: Queries) -> Floats:
        """(mean - midrank_i) / standard deviation for every row i, over the midranks of its query.

        These numbers are 0 in a query in which all labels are equal.
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

    def utilities(self, relevance: Floats, queries: Queries) -> Floats:
        midranks = self.standardized_midranks(relevance, queries)
        return midranks / queries.broadcast(position_scale(queries.sizes))

    def discounts(self, n_places: int) -> Floats:
        return -np.arange(1.0, n_places + 1)

    def defined(self, labels: Floats, queries: Queries) -> NDArray[np.bool_]:
        return queries.max(labels) > queries.min(labels)


# ---------------------------------------------------------------- utility and discount of the user


@dataclass(frozen=True, kw_only=True)
class Positional(PositionalMeasure):
    """A positional measure whose utility and discount the user gives; see `losses.Positional`."""

    utility: Callable[[Floats, Queries], ArrayLike] | None = None
    discount: Callable[[Floats], ArrayLike] | ArrayLike | None = None

    def check(self, labels: Floats) -> None:
        super().check(labels)
        self.discounts(1)

    def utilities(self, relevance: Floats, queries: Queries) -> Floats:
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
        check_range(values, "what utility returned")
        return values

    def discounts(self, n_places: int) -> Floats:
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
        if not (np.abs(phi) <= LARGEST).all() or (np.diff(phi) > 0).any():
            raise ValueError(
                f"discount must be finite, at most {LARGEST:g} in absolute value, and must not "
                "increase with the place, because only then sorting is optimal. It starts with "
                f"{phi[:5].tolist()}."
            )
        return phi[:n_places]
