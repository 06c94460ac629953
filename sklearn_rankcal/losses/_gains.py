"""Gains of graded relevance, and the losses DCG and NDCG."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sklearn_rankcal.losses._positional import (
    GainLoss,
    NormalizedPositionalLoss,
    first_places,
    ideal,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import LARGEST, check_range, read_numbers
from sklearn_rankcal.utils._parameters import check_count
from sklearn_rankcal.utils._typing import Floats

#: A gain G by name, "exp2" or "linear", or a function of an array of labels.
Gain = str | Callable[[Floats], Floats]

#: How to choose the linear gain, for errors and warnings.
LINEAR_GAIN = (
    "Pass gain='linear' to the loss object, as in loss=NDCG(k=10, gain='linear') of "
    "sklearn_rankcal.losses. Pass it also to scorers and metrics, as in "
    "get_ranking_scorer('ndcg@10', gain='linear')."
)


def apply_gain(relevance: Floats, gain: Gain) -> Floats:
    """Return the gains G(y) of an array of labels. Gains must be numbers from 0 to 1e50."""
    if callable(gain):
        # pass a copy, because the function might write into its argument
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
    """Return 2**y - 1, with full precision for small y."""
    with np.errstate(over="ignore"):  # the callers raise an error if this overflows
        large = np.exp2(relevance) - 1
        small = np.expm1(relevance * np.log(2))
    return np.where(np.abs(relevance) < 0.5, small, large)


class DCG(GainLoss):
    """Discounted cumulative gain: the sum over the first k places j of G(y_(j)) / log2(1 + j).

    y_(j) is the label of the document at place j.

    Parameters
    ----------
    k : int, default=None
        Cutoff: only the first k places count. If None, every place counts.
    gain : {"exp2", "linear"} or callable, default="exp2"
        The function G. ``"exp2"`` is ``2**y - 1``, and ``"linear"`` is ``y``. A function maps an
        array of labels to gains >= 0.

    Notes
    -----
    The targets are G(y_i).

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import DCG
    >>> ranker = CalibratedRanker(loss=DCG(k=10, gain="linear"))
    """

    def __init__(self, k: int | None = None, *, gain: Gain = "exp2") -> None:
        self.k = k
        self.gain = gain

    @property
    def non_negative(self) -> bool:  # type: ignore[override]
        return not callable(self.gain)

    def check(self, labels: Floats) -> None:
        check_count(self.k, "k", or_none=True)
        super().check(labels)
        # the named gains increase with y
        apply_gain(labels if callable(self.gain) else labels.max(keepdims=True), self.gain)

    def gains(self, relevance: Floats) -> Floats:
        """Return G(y) of every row."""
        return apply_gain(relevance, self.gain)

    def discounts(self, n_places: int) -> Floats:
        """Return 1 / log2(1 + j) for the first k places j, and 0 for all other places."""
        return first_places(n_places, self.k) / np.log2(np.arange(n_places) + 2.0)


class NDCG(DCG, NormalizedPositionalLoss):
    """Normalized DCG: DCG@k divided by the DCG@k of the best ranking.

    Parameters
    ----------
    k : int, default=None
        Cutoff: only the first k places count. If None, every place counts.
    gain : {"exp2", "linear"} or callable, default="exp2"
        As in `DCG`. If labels are amounts, such as money or numbers of clicks, use ``"linear"`` in
        the loss, in metrics and in scorers.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` shrinks the normalizer of each query towards the mean over queries, which
        lowers the variance of the targets. ``"auto"`` decreases with the number of queries. With a
        fixed number above 0, the loss is no longer calibrated. The measure is not affected. See
        `NormalizedLoss`.

    Notes
    -----
    The targets are G(y_i) / Z_k(y), where Z_k(y) is the DCG@k of the best ranking. Gains are
    normalized before expectations are taken, which makes regression consistent (Ravikumar, Tewari
    and Yang, 2011). The measure is undefined for a query in which every gain is 0.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import NDCG
    >>> ranker = CalibratedRanker(loss=NDCG(k=10, gain="linear"))
    """

    def __init__(
        self, k: int | None = None, *, gain: Gain = "exp2", shrinkage: str | float = "auto"
    ) -> None:
        super().__init__(k, gain=gain)
        self.shrinkage = shrinkage

    def normalizer(self, gains: Floats, queries: Queries) -> Floats:
        """Return the DCG@k of the best ranking of each query."""
        return ideal(queries, gains, self.discounts)
