"""The bootstrap over queries: how certain a mean over queries, or the difference of two, is."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import bootstrap
from sklearn.utils import check_random_state

from sklearn_rankcal.utils._numbers import LARGEST, read_numbers

_CELLS = 1 << 22  # resampled queries in memory at a time
_MOST_RESAMPLES = 10_000_000  # the mean of each takes 8 bytes


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two rankings by a paired bootstrap over queries.

    Attributes
    ----------
    first, second : float
        Mean of the metric over the queries on which it is defined, for each of the two rankings.
    difference : float
        The mean of the first ranking minus the mean of the second.
    low, high : float
        Bounds of the bootstrap percentile interval of the difference.
    p_value : float
        Two-sided bootstrap p-value of the hypothesis that the difference is 0: twice the smaller
        share of the resampled differences, those <= 0 or those >= 0, and at least 1 / n_resamples.
    n_queries : int
        Number of queries that were compared.
    confidence_level : float
        Confidence level of the interval.
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float
    n_queries: int
    confidence_level: float

    def __str__(self) -> str:
        return (
            f"{self.first:.4f} - {self.second:.4f} = {self.difference:+.4f} "
            f"[{self.low:+.4f}, {self.high:+.4f}] ({100 * self.confidence_level:g} % interval, "
            f"{self.n_queries} queries)"
        )


@dataclass(frozen=True)
class MeanInterval:
    """The mean of a metric over queries, with a bootstrap interval, of `evaluate_rankings`.

    Attributes
    ----------
    mean : float
        Mean of the metric over the queries on which it is defined.
    low, high, n_queries, confidence_level
        As in `Comparison`, for the mean.
    """

    mean: float
    low: float
    high: float
    n_queries: int
    confidence_level: float

    def __str__(self) -> str:
        return (
            f"{self.mean:.4f} [{self.low:.4f}, {self.high:.4f}] "
            f"({100 * self.confidence_level:g} % interval, {self.n_queries} queries)"
        )


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    random_state: Any = 0,
) -> Comparison:
    """Compare the values of a metric on each query, for example gathered over folds.

    `evaluate_rankings` returns such values with ``return_per_query=True``.

    Parameters
    ----------
    first, second : array-like of shape (n_queries,)
        Values of the same metric on the same queries, for each of two rankings. A query for which
        either value is NaN is left out.
    weight : array-like of shape (n_queries,), default=None
        Weight of each query. By default all weights are equal.
    n_resamples : int, default=10000
        Number of bootstrap samples, at most 10,000,000.
    confidence_level : float, default=0.95
        Confidence level of the interval.
    random_state : int, RandomState instance or None, default=0
        Determines the bootstrap samples, which are those of `scipy.stats.bootstrap`.

    Returns
    -------
    comparison : Comparison

    Raises
    ------
    ValueError
        If shapes differ, if a value, a weight or a parameter is not valid, or if there is no query
        on which both values are defined.

    Examples
    --------
    The second ranking is worse on each of three queries:

    >>> from sklearn_rankcal.metrics import paired_bootstrap
    >>> comparison = paired_bootstrap([0.5, 0.75, 1.0], [0.25, 0.5, 0.75])
    >>> comparison.difference, comparison.low, comparison.high
    (0.25, 0.25, 0.25)
    """
    a, b = read_numbers(first, "first"), read_numbers(second, "second")
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(
            "first and second must be 1-D arrays of the same length, with one value per query; "
            f"got the shapes {a.shape} and {b.shape}."
        )
    if max(np.abs(each[~np.isnan(each)]).max(initial=0.0) for each in (a, b)) > LARGEST**2:
        raise ValueError(
            "first and second must hold a finite number for each query, or NaN where the metric is "
            f"undefined; numbers are at most {LARGEST**2:g} in absolute value."
        )
    check_resampling(n_resamples, confidence_level)
    weights = np.ones_like(a) if weight is None else read_numbers(weight, "weight")
    if weights.shape != a.shape or not ((weights >= 0) & np.isfinite(weights)).all():
        raise ValueError("weight must hold one finite, non-negative number per query.")
    kept = ~(np.isnan(a) | np.isnan(b)) & (weights > 0)
    if not kept.any():
        raise ValueError(
            "No query of positive weight has a defined value. NDCG, for example, is undefined if "
            "all labels of a query are 0."
        )
    a, b, weights = a[kept], b[kept], weights[kept] / weights[kept].max()  # only ratios count
    drawn = _resampled_means(a - b, weights, n_resamples, check_random_state(random_state))
    tail = (1 - confidence_level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    side = min(np.mean(drawn <= 0), np.mean(drawn >= 0))
    mean_a, mean_b = np.average(a, weights=weights), np.average(b, weights=weights)
    return Comparison(
        first=float(mean_a),
        second=float(mean_b),
        difference=float(mean_a - mean_b),
        low=float(low),
        high=float(high),
        p_value=float(np.clip(2 * side, 1 / n_resamples, 1.0)),
        n_queries=len(a),
        confidence_level=confidence_level,
    )


def check_resampling(n_resamples: int, confidence_level: float) -> None:
    """Raise an error unless the number of samples and the confidence level are valid."""
    if not isinstance(confidence_level, Real) or not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1); got {confidence_level!r}.")
    whole = isinstance(n_resamples, Integral) and not isinstance(n_resamples, bool)
    if not whole or not 1 <= n_resamples <= _MOST_RESAMPLES:
        raise ValueError(
            f"n_resamples must be a whole number from 1 to {_MOST_RESAMPLES}; got {n_resamples!r}."
        )


def _resampled_means(
    values: NDArray[np.float64], weights: NDArray[np.float64], n_resamples: int, random: Any
) -> NDArray[np.float64]:
    """Weighted means of bootstrap samples of the queries, shape (n_resamples,)."""
    if len(values) == 1:  # SciPy needs two queries; each sample of one query is that query
        return np.full(n_resamples, values[0])
    result = bootstrap(
        (values * weights, weights),
        lambda weighted, weights, axis: weighted.sum(axis=axis) / weights.sum(axis=axis),
        n_resamples=max(n_resamples, 2),  # SciPy also computes a standard error
        batch=max(1, _CELLS // len(values)),
        vectorized=True,
        paired=True,
        method="percentile",
        random_state=random,
    )
    return result.bootstrap_distribution[:n_resamples]
