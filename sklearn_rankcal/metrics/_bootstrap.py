"""The bootstrap over queries: how certain a mean over queries, or the difference of two, is.

The bootstrap alone is too certain of few queries. Its interval is therefore joined with Student's
below 100 queries, and p-values come from flipping the signs of the differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from scipy.stats import bootstrap
from sklearn.utils import check_random_state

from sklearn_rankcal.metrics._sign_flips import sign_flip_p_value
from sklearn_rankcal.utils._messages import counted, warn
from sklearn_rankcal.utils._numbers import LARGEST, read_numbers
from sklearn_rankcal.utils._rounding import exceeds
from sklearn_rankcal.utils._typing import Floats

_CELLS = 1 << 22  # resampled queries in memory at a time
_MOST_RESAMPLES = 10_000_000  # the mean of each takes 8 bytes
_WARNS = 10  # effective number of queries below which there is a warning
_AS_ONE = 1.2  # below which Student's quantiles, with a fifth of a degree of freedom, say nothing
_JOINS = 100  # effective number of queries below which intervals are no shorter than Student's


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two rankings of the same queries.

    Attributes
    ----------
    first, second : float
        Mean of the metric over the queries on which it is defined, for each of the two rankings.
    difference : float
        The mean of the first ranking minus the mean of the second.
    low, high : float
        Bounds of the interval of the difference. If the p-value is larger than
        1 - confidence_level, the interval contains 0.
    p_value : float
        Two-sided p-value of the hypothesis that each difference is as likely to be negative as
        positive, by flipping signs.
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
            f"{counted(self.n_queries, 'query')})"
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
            f"({100 * self.confidence_level:g} % interval, {counted(self.n_queries, 'query')})"
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

    The interval is the percentile interval of the bootstrap. Below 100 queries it is joined with
    Student's interval, and it contains 0 if the p-value is larger than ``1 - confidence_level``. It
    is infinite for one query. The p-value is the share of all ways to give the differences signs
    that move their mean from 0 at least as far as the mean observed. With more than 16 differences
    that are not 0, `n_resamples` random ways are drawn, and p is at least
    1 / (n_resamples + 1). Five queries or fewer have no p-value below 0.0625.

    Parameters
    ----------
    first, second : array-like of shape (n_queries,)
        Values of the same metric on the same queries, for each of two rankings. A query for which
        either value is NaN is left out.
    weight : array-like of shape (n_queries,), default=None
        Weight of each query. By default all weights are equal.
    n_resamples : int, default=10000
        Number of bootstrap samples, and of random signs, at most 10,000,000.
    confidence_level : float, default=0.95
        Confidence level of the interval.
    random_state : int, RandomState instance or None, default=0
        Determines the bootstrap samples, which are those of `scipy.stats.bootstrap`, and signs.

    Returns
    -------
    comparison : Comparison

    Raises
    ------
    ValueError
        If shapes differ, if a value, a weight or a parameter is not valid, or if there is no query
        on which both values are defined.

    Warns
    -----
    UserWarning
        If there are fewer than 10 queries, or unequal weights make as few of more.

    References
    ----------
    Fisher (1935). The design of experiments. Section 21, on the test by flipping signs.

    Phipson and Smyth (2010). Permutation p-values should never be zero. Statistical Applications in
    Genetics and Molecular Biology 9(1).

    Examples
    --------
    The first ranking is better on ten of twelve queries, and equally good on two. Each of the
    2 ** 10 ways to give the ten differences signs is as likely:

    >>> from sklearn_rankcal.metrics import paired_bootstrap
    >>> comparison = paired_bootstrap([0.5, 0.75, 1.0, 0.25] * 3, [0.25, 0.5, 0.75, 0.25] * 3)
    >>> comparison.difference, comparison.p_value
    (0.1875, 0.00390625)
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
    a, b, weights = _of_defined(a, b, weights)
    random = check_random_state(random_state)
    low, high = _interval(a - b, weights, n_resamples, confidence_level, random)
    p_value = sign_flip_p_value(a, b, weights, n_resamples, random)
    if p_value > 1 - confidence_level:  # of few differences that are not 0, the interval is short
        low, high = min(low, 0.0), max(high, 0.0)
    mean_a, mean_b = np.average(a, weights=weights), np.average(b, weights=weights)
    return Comparison(
        first=float(mean_a),
        second=float(mean_b),
        difference=float(mean_a - mean_b),
        low=low,
        high=high,
        p_value=p_value,
        n_queries=len(a),
        confidence_level=confidence_level,
    )


def interval_of_mean(
    values: Floats,
    weight: Floats | None,
    *,
    n_resamples: int,
    confidence_level: float,
    random_state: Any = 0,
) -> MeanInterval:
    """Return the mean of the values of queries, NaN where undefined, with its interval."""
    check_resampling(n_resamples, confidence_level)
    weights = np.ones_like(values) if weight is None else weight
    values, _, weights = _of_defined(values, values, weights)
    random = check_random_state(random_state)
    low, high = _interval(values, weights, n_resamples, confidence_level, random)
    mean = float(np.average(values, weights=weights))
    return MeanInterval(mean, low, high, len(values), confidence_level)


def check_resampling(n_resamples: int, confidence_level: float) -> None:
    """Raise an error unless the number of samples and the confidence level are valid."""
    if not isinstance(confidence_level, Real) or not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1); got {confidence_level!r}.")
    whole = isinstance(n_resamples, Integral) and not isinstance(n_resamples, bool)
    if not whole or not 1 <= n_resamples <= _MOST_RESAMPLES:
        raise ValueError(
            f"n_resamples must be a whole number from 1 to {_MOST_RESAMPLES}; got {n_resamples!r}."
        )


def _of_defined(a: Floats, b: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Keep the queries of positive weight on which both values are defined."""
    kept = ~(np.isnan(a) | np.isnan(b)) & (weights > 0)
    if not kept.any():
        raise ValueError(
            "No query of positive weight has a defined value. NDCG, for example, is undefined if "
            "all labels of a query are 0."
        )
    return a[kept], b[kept], weights[kept] / weights[kept].max()  # only ratios count


def _interval(
    values: Floats, weights: Floats, n_resamples: int, level: float, random: Any
) -> tuple[float, float]:
    """Return an interval of the weighted mean, no shorter than Student's if queries are few.

    The bootstrap of n queries has (n - 1) / n of the variance, and tails that are too light.
    Queries of unequal weight count as 1 / (the sum of their squared shares) queries (Kish, 1965).
    """
    share = weights / weights.sum()
    n_effective = float(1 / (share @ share))
    if exceeds(_WARNS, n_effective, _WARNS):
        n = f"{len(values)} quer{'y' if len(values) == 1 else 'ies'}"
        if round(n_effective) < len(values):
            n += f", which by their weights count as {n_effective:.1f}"
        warn(
            f"An interval of {n}: it is right only if their values are normally distributed, and "
            "no difference of 5 queries or fewer has a p-value below 0.05. Evaluate on at least "
            f"{_WARNS} queries."
        )
    if n_effective < _AS_ONE:
        return -np.inf, np.inf
    drawn = _resampled_means(values, weights, n_resamples, random)
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    if exceeds(_JOINS, n_effective, _JOINS):
        mean = share @ values
        variance = share @ (values - mean) ** 2 / (n_effective - 1)  # of the mean
        half = stdtrit(n_effective - 1, 1 - tail) * np.sqrt(variance)
        low, high = min(low, mean - half), max(high, mean + half)
    return float(low), float(high)


def _resampled_means(values: Floats, weights: Floats, n_resamples: int, random: Any) -> Floats:
    """Weighted means of bootstrap samples of at least two queries, shape (n_resamples,)."""
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
