"""Is one ranking better than another? A paired bootstrap over queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_rankcal._numbers import read_numbers
from sklearn_rankcal.metrics._checks import read_ranking
from sklearn_rankcal.metrics._registry import get_metric

_CELLS = 1 << 22  # resampled queries held at a time


@dataclass(frozen=True)
class Comparison:
    """Outcome of `compare_rankings`.

    Attributes
    ----------
    first, second : float
        Mean of the metric over the queries where it is defined.
    difference : float
        first - second.
    low, high : float
        Bounds of the bootstrap percentile interval of the difference.
    p_value : float
        Two-sided bootstrap p-value of "no difference": twice the smaller share of resamples on
        either side of 0, at most 1 and at least 1 / n_resamples.
    n_queries : int
        Queries compared.
    confidence_level : float
        Of the interval.
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


def compare_rankings(
    y_true: Any,
    first: ArrayLike,
    second: ArrayLike,
    *,
    metric: str = "ndcg@10",
    as_ranks: bool = False,
    groups: ArrayLike | None = None,
    ties: str = "average",
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    random_state: Any = 0,
    **parameters: Any,
) -> Comparison:
    """Compare two rankings of the same queries by a paired bootstrap over queries.

    Parameters
    ----------
    y_true : array-like of shape (n_documents,)
        Relevance, or the structured array of `relevance_labels`.
    first, second : array-like of shape (n_documents,)
        Scores, larger is better; or positions with ``as_ranks=True``.
    metric : str, default="ndcg@10"
        Name as in `get_ranking_scorer`, without ``neg_``.
    as_ranks : bool, default=False
        Whether `first` and `second` are positions, 1 = top.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row.
    ties : {"average", "first", "worst", "best"}, default="average"
        What equal scores mean.
    sample_weight : array-like of shape (n_documents,), default=None
        A query's weight is the mean of its rows' weights.
    n_resamples : int, default=10000
        Bootstrap samples.
    confidence_level : float, default=0.95
        Of the interval.
    random_state : int, RandomState instance or None, default=0
        Seed.
    **parameters
        Parameters of the metric, such as ``threshold``.

    Returns
    -------
    comparison : Comparison

    Notes
    -----
    Queries where the metric is undefined are left out: it is undefined for both rankings alike.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.metrics import compare_rankings
    >>> rng = np.random.default_rng(0)
    >>> groups, y = np.repeat(np.arange(50), 10), rng.integers(0, 3, size=500)
    >>> good, noise = y + rng.normal(size=500), rng.normal(size=500)
    >>> comparison = compare_rankings(y, good, noise, groups=groups)
    >>> comparison.low > 0, comparison.n_queries
    (True, 50)
    """
    per_query, _ = get_metric(metric, **parameters)
    values = []
    for ranking in (first, second):
        scores, ranks = (None, ranking) if as_ranks else (ranking, None)
        data = read_ranking(y_true, scores, ranks, groups, ties, sample_weight)
        values.append(per_query(data.ranked, data.relevance))
    weight = None if data.weight is None else data.ranked.queries.mean(data.weight)
    return paired_bootstrap(
        values[0],
        values[1],
        weight=weight,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        random_state=random_state,
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
    """Compare per-query values (``return_per_query=True``), for example gathered over folds.

    Parameters
    ----------
    first, second : array-like of shape (n_queries,)
        Values of the same metric on the same queries; queries with a NaN are left out.
    weight : array-like of shape (n_queries,), default=None
        Weights of the queries.
    n_resamples : int, default=10000
        Bootstrap samples.
    confidence_level : float, default=0.95
        Of the interval.
    random_state : int, RandomState instance or None, default=0
        Seed.

    Returns
    -------
    comparison : Comparison

    Raises
    ------
    ValueError
        Shapes that differ, no query with both values, a confidence level outside (0, 1).

    Notes
    -----
    O(n_queries * n_resamples) time, a bounded working memory.
    """
    a, b = read_numbers(first, "first"), read_numbers(second, "second")
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"Values per query must be 1-D and as many; got {a.shape} and {b.shape}.")
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1); got {confidence_level!r}.")
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1; got {n_resamples!r}.")
    weights = np.ones_like(a) if weight is None else read_numbers(weight, "weight")
    if weights.shape != a.shape or not (weights >= 0).all():
        raise ValueError("weight must hold one non-negative number per query.")
    kept = ~(np.isnan(a) | np.isnan(b)) & (weights > 0)
    if not kept.any():
        raise ValueError("There is no query on which both values are defined.")
    a, b, weights = a[kept], b[kept], weights[kept]
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


def _resampled_means(
    values: NDArray[np.float64], weights: NDArray[np.float64], n_resamples: int, random: Any
) -> NDArray[np.float64]:
    """Weighted means of bootstrap samples of the queries."""
    n = len(values)
    means = np.empty(n_resamples)
    step = max(1, _CELLS // n)
    for start in range(0, n_resamples, step):
        stop = min(start + step, n_resamples)
        rows = random.randint(0, n, size=(stop - start, n))
        means[start:stop] = (values * weights)[rows].sum(axis=1) / weights[rows].sum(axis=1)
    return means
