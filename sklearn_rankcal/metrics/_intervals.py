"""Intervals of means over queries, and comparisons of two rankings with p-values.

The intervals come from `queries.interval_of_mean`. P-values come from a sign-flip test: if two
rankings are equally good, the difference on a query is as likely to be negative as positive. The
level of this test holds for any number of queries, also with heavy tails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sklearn_rankcal.losses import MEASURES, Measure
from sklearn_rankcal.queries import interval_of_mean
from sklearn_rankcal.utils._messages import check_count, check_number, counted
from sklearn_rankcal.utils._numbers import Floats, exceeds

_MOST_DRAWS = 10_000_000  # the sum of each takes 8 bytes
_MOST_EXACT = 16  # up to this number of nonzero differences, all sign combinations are tried
_BITS = 8  # number of queries whose signs come from one random byte
_BYTES = 1 << 24  # random bytes in memory at a time


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
        Two-sided p-value of a sign-flip test. The null hypothesis is that each difference is as
        likely to be negative as positive.
    n_queries : int
        Number of compared queries.
    confidence_level : float
        Confidence level of the interval.

    Examples
    --------
    >>> from sklearn_rankcal.metrics import compare_rankings
    >>> ours, theirs = [0.9, 0.75, 1.0, 0.6, 0.8, 0.7], [0.5, 0.6, 0.9, 0.35, 0.42, 0.5]
    >>> print(compare_rankings(None, ours, theirs))
    0.7917 - 0.5450 = +0.2467 [+0.1187, +0.3746] (95 % interval, 6 queries)
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
    """The mean of a metric over queries, with an interval.

    Attributes
    ----------
    mean : float
        Mean of the metric over the queries on which it is defined.
    low, high : float
        Bounds of the interval of the mean.
    n_queries : int
        Number of queries on which the metric is defined.
    confidence_level : float
        Confidence level of the interval.

    See Also
    --------
    evaluate_rankings : Returns such intervals if `confidence_level` is passed.
    RunEvaluation.intervals : Returns such intervals for retrieval runs.

    Examples
    --------
    >>> from sklearn_rankcal.metrics import MeanInterval
    >>> print(MeanInterval(0.75, 0.7, 0.8, n_queries=200, confidence_level=0.95))
    0.7500 [0.7000, 0.8000] (95 % interval, 200 queries)
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


def compare(
    a: Floats,
    b: Floats,
    weight: Floats | None,
    bounds: tuple[float, float],
    n_resamples: int,
    confidence_level: float,
    random_state: Any,
) -> Comparison:
    """Compare two rankings by the values of a metric on each query, NaN where it is undefined."""
    check_comparison(n_resamples, confidence_level)
    a, b, weights = _of_defined(a, b, weight)
    span = bounds[1] - bounds[0]
    low, high = interval_of_mean(a - b, confidence_level, weights, (-span, span))
    p_value = sign_flip_p_value(a, b, weights, n_resamples, check_random_state(random_state))
    if p_value > 1 - confidence_level:  # the interval must not say more than the test
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


def mean_interval(
    values: Floats, weight: Floats | None, bounds: tuple[float, float], confidence_level: float
) -> MeanInterval:
    """Return the mean over queries with its interval; NaN marks undefined values."""
    check_number(confidence_level, "confidence_level", "(0, 1)")
    values, _, weights = _of_defined(values, values, weight)
    low, high = interval_of_mean(values, confidence_level, weights, bounds)
    mean = float(np.average(values, weights=weights))
    return MeanInterval(mean, low, high, len(values), confidence_level)


def bounds_of(metric: str | Measure) -> tuple[float, float]:
    """Return the bounds of a measure or of a known name; infinite bounds for any other name."""
    if isinstance(metric, Measure):
        return metric.bounds
    kind = MEASURES.get(str(metric).partition("@")[0])
    return Measure.bounds if kind is None else kind().bounds


def check_comparison(n_resamples: int, confidence_level: float) -> None:
    """Check the number of sampled sign combinations and the confidence level."""
    check_number(confidence_level, "confidence_level", "(0, 1)")
    check_count(n_resamples, "n_resamples", most=_MOST_DRAWS)


def _of_defined(a: Floats, b: Floats, weight: Floats | None) -> tuple[Floats, Floats, Floats]:
    """Keep the queries with positive weight and two defined values."""
    weights = np.ones_like(a) if weight is None else weight
    kept = ~(np.isnan(a) | np.isnan(b)) & (weights > 0)
    if not kept.any():
        raise ValueError(
            "No query with positive weight has a defined value. NDCG, for example, is undefined if "
            "all labels of a query are 0."
        )
    return a[kept], b[kept], weights[kept] / weights[kept].max()  # only ratios count


# ---------------------------------------------------------------- the sign-flip test


def sign_flip_p_value(
    first: Floats, second: Floats, weights: Floats, n_draws: int, random: Any
) -> float:
    """Return the share of sign combinations with a weighted mean at least as far from 0.

    With more than 16 nonzero differences, `n_draws` sign combinations are sampled. The observed
    signs count as one more draw, which keeps the level for any number of draws (Phipson and Smyth,
    2010). The arrays have the shape (n_queries,).
    """
    # Step 1: drop differences that are 0 up to rounding. They have no sign.
    sizes = np.abs(first) + np.abs(second)
    differs = exceeds(np.abs(first - second), 0.0, sizes)
    flipped, sizes = ((first - second) * weights)[differs], (sizes * weights)[differs]
    # Step 2: sort by size, because the result must not depend on the order of the queries or of
    # the two rankings.
    observed, size = abs(flipped.sum()), sizes.sum()
    flipped = np.sort(np.abs(flipped))
    # Step 3: count the sums that are as far from 0. Equal sums may differ by rounding.
    if len(flipped) <= _MOST_EXACT:
        # by symmetry, the first difference can keep its sign
        sums = flipped[:1].sum() + _signed_sums(flipped[1:])
        return float(np.mean(~exceeds(observed, np.abs(sums), size)))
    count = np.count_nonzero(
        ~exceeds(observed, np.abs(_drawn_sums(flipped, n_draws, random)), size)
    )
    return float((1 + count) / (1 + n_draws))


def _signed_sums(values: Floats) -> Floats:
    """Return the sums of the values for all sign combinations, shape (..., 2 ** n_values)."""
    sums = np.zeros((*values.shape[:-1], 1))
    for column in range(values.shape[-1]):
        value = values[..., column, np.newaxis]
        sums = np.concatenate([sums + value, sums - value], axis=-1)
    return sums


def _drawn_sums(values: Floats, n_draws: int, random: Any) -> Floats:
    """Return sums of the values with random signs, shape (n_draws,).

    Each random byte selects one of the 256 signed sums of eight values.
    """
    padded = np.pad(values, (0, -len(values) % _BITS)).reshape(-1, _BITS)
    sums = np.zeros(n_draws)
    step = max(1, _BYTES // n_draws)
    for start in range(0, len(padded), step):
        tables = _signed_sums(padded[start : start + step])
        drawn = random.randint(0, 1 << _BITS, size=(len(tables), n_draws), dtype=np.uint8)
        for table, row in zip(tables, drawn, strict=True):
            sums += table[row]
    return sums
