"""Compare rankings by a paired bootstrap over queries."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_rankcal.measures import get_measures
from sklearn_rankcal.metrics._checks import Ties, read_ranking
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._numbers import read_numbers

_CELLS = 1 << 22  # resampled queries in memory at a time
_MOST_RESAMPLES = 10_000_000  # the mean of each takes 8 bytes
_LARGEST = 1e290  # sums of smaller numbers over queries remain finite


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


@checks_keywords
def compare_rankings(
    y_true: Any,
    first: ArrayLike,
    second: ArrayLike,
    *,
    metric: str | Sequence[str] = "ndcg@10",
    as_ranks: bool = False,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    random_state: Any = 0,
    **parameters: Any,
) -> Comparison | dict[str, Comparison]:
    """Compare two rankings of the same queries by a paired bootstrap over queries.

    Parameters
    ----------
    y_true : array-like of shape (n_documents,)
        Relevance, or the structured array of `relevance_labels`.
    first, second : array-like of shape (n_documents,)
        Scores, larger is better; or positions with ``as_ranks=True``.
    metric : str or sequence of str, default="ndcg@10"
        Name as in `get_ranking_scorer`, without ``neg_``; or several.
    as_ranks : bool, default=False
        Whether `first` and `second` are positions, 1 = top.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row.
    ties : {"average", "first", "worst", "best"}, default="average"
        How equal scores are ranked, as in the metric functions.
    sample_weight : array-like of shape (n_documents,), default=None
        Weight of each row. The weight of a query is the mean of the weights of its rows.
    n_resamples : int, default=10000
        Bootstrap samples.
    confidence_level : float, default=0.95
        Confidence level of the interval.
    random_state : int, RandomState instance or None, default=0
        Seed.
    **parameters
        Parameters of the metric, such as ``threshold``. Each is passed to those of several metrics
        that have it.

    Returns
    -------
    comparison : Comparison, or dict of str to Comparison
        A dict with the comparison of each name if `metric` is a sequence.

    Raises
    ------
    ValueError
        Labels, rankings and groups do not fit together, the metric is unknown, its cutoff is
        missing or not valid, or the metric is undefined on all queries.
    TypeError
        The metric does not have a given parameter.

    See Also
    --------
    compare_systems : Several rankings and metrics, with p-values corrected for their number.

    Notes
    -----
    Queries on which the metric is undefined are left out. Whether it is defined depends on the
    labels only, so that both rankings lose the same queries.

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
    >>> several = compare_rankings(
    ...     y, good, noise, groups=groups, metric=["ndcg@5", "map"], threshold=2
    ... )
    >>> {name: comparison.difference > 0 for name, comparison in several.items()}
    {'ndcg@5': True, 'map': True}
    """
    names = [metric] if isinstance(metric, str) else metric
    values, weight = _values_per_query(
        y_true,
        {"first": first, "second": second},
        names,
        parameters,
        as_ranks=as_ranks,
        groups=groups,
        ties=ties,
        sample_weight=sample_weight,
    )
    found = {
        name: paired_bootstrap(
            values["first"][name],
            values["second"][name],
            weight=weight,
            n_resamples=n_resamples,
            confidence_level=confidence_level,
            random_state=random_state,
        )
        for name in names
    }
    return found[metric] if isinstance(metric, str) else found


@checks_keywords
def compare_systems(
    y_true: Any,
    systems: Mapping[str, ArrayLike],
    *,
    baseline: str | None = None,
    metrics: str | Sequence[str] = "ndcg@10",
    correction: str | None = "holm",
    as_ranks: bool = False,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    random_state: Any = 0,
    **parameters: Any,
) -> dict[str, NDArray[Any]]:
    """Compare several rankings by several metrics, and correct for the number of comparisons.

    Parameters
    ----------
    y_true : array-like of shape (n_documents,)
        Relevance, or the structured array of `relevance_labels`.
    systems : mapping of str to array-like of shape (n_documents,)
        Name of each system to its scores, larger is better; or to its positions with
        ``as_ranks=True``. At least two.
    baseline : str, default=None
        Name of the system that each of the others is compared with. If None, all pairs are
        compared.
    metrics : str or sequence of str, default="ndcg@10"
        Names as in `get_ranking_scorer`, without ``neg_``.
    correction : {"holm", None}, default="holm"
        How ``adjusted_p_value`` accounts for the number of comparisons, over all systems and
        metrics. Holm's method bounds the probability of at least one false rejection, for any
        dependence between the comparisons. None applies no correction.
    as_ranks, groups, ties, sample_weight, n_resamples, confidence_level, random_state
        As in `compare_rankings`. No p-value is below 1 / n_resamples, and no adjusted p-value is
        below the number of comparisons times that. Increase `n_resamples` for many comparisons.
    **parameters
        Parameters of the metrics. Each is passed to those that have it.

    Returns
    -------
    table : dict of str to ndarray of shape (n_comparisons,)
        Columns ``"metric"``, ``"first"`` and ``"second"`` (names of the systems),
        ``"first_mean"``, ``"second_mean"``, ``"difference"`` (first minus second), ``"low"``,
        ``"high"``, ``"p_value"``, ``"adjusted_p_value"``, ``"n_queries"``; one row for each
        comparison. The interval is that of the single comparison, without correction.

    Raises
    ------
    ValueError
        There are fewer than two systems, the baseline is none of them, or the correction is
        unknown. Also in the cases of `compare_rankings`.
    TypeError
        None of the metrics has a given parameter, or the systems have no names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.metrics import compare_systems
    >>> rng = np.random.default_rng(0)
    >>> groups, y = np.repeat(np.arange(50), 10), rng.integers(0, 3, size=500)
    >>> systems = {
    ...     "good": y + rng.normal(size=500),
    ...     "noise": rng.normal(size=500),
    ...     "other noise": rng.normal(size=500),
    ... }
    >>> table = compare_systems(y, systems, groups=groups, metrics=["ndcg@5", "mrr"], threshold=2)
    >>> for row in zip(
    ...     table["metric"], table["first"], table["second"], table["adjusted_p_value"] < 0.05
    ... ):
    ...     print(*row)
    ndcg@5 good noise True
    ndcg@5 good other noise True
    ndcg@5 noise other noise False
    mrr good noise True
    mrr good other noise True
    mrr noise other noise False
    """
    if not isinstance(systems, Mapping):
        raise TypeError(
            "systems must map the name of each system to its scores, as in {'ours': a, 'theirs': "
            f"b}}; got {type(systems).__name__}."
        )
    if len(systems) < 2:
        raise ValueError(f"systems must hold at least two rankings; got {len(systems)}.")
    if correction not in ("holm", None):
        raise ValueError(f"correction must be 'holm' or None; got {correction!r}.")
    if baseline is None:
        pairs = list(itertools.combinations(systems, 2))
    elif baseline in systems:
        pairs = [(name, baseline) for name in systems if name != baseline]
    else:
        raise ValueError(
            f"baseline must be the name of one of the systems, {', '.join(map(repr, systems))}; "
            f"got {baseline!r}."
        )
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    values, weight = _values_per_query(
        y_true,
        systems,
        names,
        parameters,
        as_ranks=as_ranks,
        groups=groups,
        ties=ties,
        sample_weight=sample_weight,
    )
    rows = [(name, first, second) for name in names for first, second in pairs]
    found = [
        paired_bootstrap(
            values[first][name],
            values[second][name],
            weight=weight,
            n_resamples=n_resamples,
            confidence_level=confidence_level,
            random_state=random_state,
        )
        for name, first, second in rows
    ]
    p_value = np.array([comparison.p_value for comparison in found])
    return {
        "metric": np.array([row[0] for row in rows]),
        "first": np.array([row[1] for row in rows]),
        "second": np.array([row[2] for row in rows]),
        "first_mean": np.array([comparison.first for comparison in found]),
        "second_mean": np.array([comparison.second for comparison in found]),
        "difference": np.array([comparison.difference for comparison in found]),
        "low": np.array([comparison.low for comparison in found]),
        "high": np.array([comparison.high for comparison in found]),
        "p_value": p_value,
        "adjusted_p_value": _holm(p_value) if correction == "holm" else p_value.copy(),
        "n_queries": np.array([comparison.n_queries for comparison in found]),
    }


def _holm(p_value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Holm's step-down adjustment of m p-values.

    The i-th smallest (i = 1 .. m) is multiplied by m - i + 1. A running maximum then keeps the
    adjusted values in the order of the p-values.
    """
    order = np.argsort(p_value, kind="stable")
    adjusted = np.empty_like(p_value)
    factors = np.arange(len(p_value), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_value[order] * factors), 1.0)
    return adjusted


def _values_per_query(
    y_true: Any,
    systems: Mapping[str, ArrayLike],
    metrics: Sequence[str],
    parameters: dict[str, Any],
    *,
    as_ranks: bool,
    groups: ArrayLike | None,
    ties: Ties,
    sample_weight: ArrayLike | None,
) -> tuple[dict[str, dict[str, NDArray[np.float64]]], NDArray[np.float64] | None]:
    """Each system's values of each metric, and the weights of the queries."""
    built = get_measures(metrics, parameters)
    values: dict[str, dict[str, NDArray[np.float64]]] = {}
    weight = None
    for system, ranking in systems.items():
        scores, ranks = (None, ranking) if as_ranks else (ranking, None)
        data = read_ranking(
            y_true,
            scores,
            ranks,
            groups,
            ties,
            sample_weight,
            positions_as="rankings with as_ranks=True",
            stacklevel=5,
        )
        values[system] = {
            name: data.values(measure) for name, measure in zip(metrics, built, strict=True)
        }
        weight = None if data.weight is None else data.ranking.queries.mean(data.weight)
    return values, weight


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
        Confidence level of the interval.
    random_state : int, RandomState instance or None, default=0
        Seed.

    Returns
    -------
    comparison : Comparison

    Raises
    ------
    ValueError
        Shapes differ, no query has both values, or the confidence level is outside (0, 1).

    Notes
    -----
    The bootstrap takes O(n_queries * n_resamples) time and bounded working memory.
    """
    a, b = read_numbers(first, "first"), read_numbers(second, "second")
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"Values per query must be 1-D and as many; got {a.shape} and {b.shape}.")
    for name, values in (("first", a), ("second", b)):
        if (np.abs(values[~np.isnan(values)]) >= _LARGEST).any():
            raise ValueError(
                f"{name} must hold a number below {_LARGEST:g} for each query, or NaN where the "
                "metric is undefined; it has a larger one, or infinity."
            )
    if not isinstance(confidence_level, Real) or not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1); got {confidence_level!r}.")
    whole = isinstance(n_resamples, Integral) and not isinstance(n_resamples, bool)
    if not whole or not 1 <= n_resamples <= _MOST_RESAMPLES:
        raise ValueError(
            f"n_resamples must be a whole number from 1 to {_MOST_RESAMPLES}; got {n_resamples!r}."
        )
    weights = np.ones_like(a) if weight is None else read_numbers(weight, "weight")
    if weights.shape != a.shape or not ((weights >= 0) & np.isfinite(weights)).all():
        raise ValueError("weight must hold one finite, non-negative number per query.")
    kept = ~(np.isnan(a) | np.isnan(b)) & (weights > 0)
    if not kept.any():
        raise ValueError("There is no query on which both values are defined.")
    # Only ratios of weights count. The largest becomes 1, so that no sum of weights overflows or
    # underflows.
    a, b, weights = a[kept], b[kept], weights[kept] / weights[kept].max()
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
