"""Positional measures of graded relevance: DCG, NDCG and expected rank utility.

A document is relevant to a degree. A ranking and its labels come in; one value per query comes out.
The sum that all positional measures share is in `_positional`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.measures._base import check_cutoff, check_real, exp2_minus_1
from sklearn_rankcal.measures._positional import (
    LARGEST_GAIN,
    GainMeasure,
    NormalizedMeasure,
    first_places,
    ideal,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import read_numbers

#: A gain G by name, "exp2" or "linear", or a function of an array of labels.
Gain = str | Callable[[NDArray[np.float64]], NDArray[np.float64]]

#: Where the linear gain is chosen, for errors and warnings.
LINEAR_GAIN = (
    "Pass gain='linear' to the loss object, as in loss=NDCG(k=10, gain='linear') of "
    "sklearn_rankcal.losses, and to the scorer and the metrics, as in "
    "get_ranking_scorer('ndcg@10', gain='linear')."
)


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
            f"{LINEAR_GAIN} Or rescale the labels." if gain == "exp2" else "Rescale the labels."
        )
        raise ValueError(
            f"gain={gain!r} overflows: the largest relevance is {relevance.max():g}. {remedy}"
        )
    if gains.size and gains.min() < 0:
        raise ValueError(f"Negative values in data passed to the gain: got {gains.min():g}.")
    return gains


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
        return first_places(n_places, self.k) / np.log2(np.arange(n_places) + 2.0)


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
