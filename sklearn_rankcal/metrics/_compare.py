"""Compare rankings by a paired bootstrap over queries.

Labels and two or more rankings come in. Each metric is computed for each query and each ranking,
and the values go to `paired_bootstrap`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.measures import get_measures
from sklearn_rankcal.metrics._bootstrap import Comparison, paired_bootstrap
from sklearn_rankcal.metrics._checks import Ties, read_ranking
from sklearn_rankcal.utils._names import checks_keywords


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
        Scores, where larger is better. With ``as_ranks=True``, positions.
    metric : str or sequence of str, default="ndcg@10"
        The name of a metric, or several names. They are those of `get_ranking_scorer`, but without
        the prefix ``neg_``.
    as_ranks : bool, default=False
        Whether `first` and `second` are positions, 1 = top, instead of scores.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. If None, the queries are found as in the metric functions.
    ties : {"average", "first", "worst", "best"}, default="average"
        How equal scores are ranked, as in the metric functions.
    sample_weight : array-like of shape (n_documents,), default=None
        Weight of each row. The weight of a query is the mean of the weights of its rows.
    n_resamples : int, default=10000
        Number of bootstrap samples.
    confidence_level : float, default=0.95
        Confidence level of the interval.
    random_state : int, RandomState instance or None, default=0
        Determines the bootstrap samples.
    **parameters
        Parameters of the metric, such as ``threshold``. If there are several metrics, each
        parameter is passed to those that have it.

    Returns
    -------
    comparison : Comparison, or dict of str to Comparison
        If `metric` is a sequence, a dict from each name to its comparison.

    Raises
    ------
    ValueError
        If labels, rankings and groups do not fit together, if the metric is unknown, if its cutoff
        is missing or not valid, or if the metric is undefined on all queries.
    TypeError
        If the metric does not have one of the parameters.

    See Also
    --------
    compare_systems : Compare several rankings by several metrics, and correct the p-values for the
        number of comparisons.

    Notes
    -----
    Queries on which the metric is undefined are left out. Whether it is defined depends only on the
    labels, so that the same queries are left out for both rankings.

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
        It maps the name of each system to its scores, where larger is better. With
        ``as_ranks=True``, it maps the name to the positions. At least two systems are needed.
    baseline : str, default=None
        Name of the system with which each of the others is compared. If None, all pairs of systems
        are compared.
    metrics : str or sequence of str, default="ndcg@10"
        Names of metrics. They are those of `get_ranking_scorer`, but without the prefix ``neg_``.
    correction : {"holm", None}, default="holm"
        How ``adjusted_p_value`` accounts for the number of comparisons, over all systems and
        metrics. Holm's method bounds the probability that at least one true hypothesis is
        rejected, however the comparisons depend on each other. None applies no correction.
    as_ranks, groups, ties, sample_weight, n_resamples, confidence_level, random_state
        As in `compare_rankings`. A p-value is at least 1 / n_resamples, and the smallest adjusted
        p-value is at least the number of comparisons times that. Increase `n_resamples` if there
        are many comparisons.
    **parameters
        Parameters of the metrics. Each is passed to those metrics that have it.

    Returns
    -------
    table : dict of str to ndarray of shape (n_comparisons,)
        One row for each comparison. The columns are ``"metric"``, ``"first"`` and ``"second"``
        (the names of the systems), ``"first_mean"``, ``"second_mean"``, ``"difference"`` (first
        minus second), ``"low"``, ``"high"``, ``"p_value"``, ``"adjusted_p_value"`` and
        ``"n_queries"``. The interval from ``"low"`` to ``"high"`` is that of a single comparison.
        It is not corrected for their number.

    Raises
    ------
    ValueError
        If there are fewer than two systems, if the baseline is not one of them, or if the
        correction is unknown. Also in the cases of `compare_rankings`.
    TypeError
        If none of the metrics has one of the parameters, or if the systems have no names.

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
    """Adjust m p-values by Holm's step-down method.

    The i-th smallest p-value, for i = 1 .. m, is multiplied by m - i + 1. A running maximum then
    keeps the adjusted values in the order of the p-values.
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
    """Return the value of each query by system and metric, and the weights of the queries."""
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
