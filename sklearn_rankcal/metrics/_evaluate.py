"""Evaluate a ranking by several metrics, and compare rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from numpy.typing import ArrayLike

from sklearn_rankcal.losses._registry import get_measures
from sklearn_rankcal.metrics._bootstrap import (
    Comparison,
    ComparisonTable,
    compare,
    compare_values,
    interval_of_mean,
)
from sklearn_rankcal.metrics._checks import (
    Ties,
    ZeroDivision,
    documented_metric,
    fill_undefined,
    read_compared,
    read_ranking,
)
from sklearn_rankcal.queries import mean_over_queries
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._typing import Floats


@documented_metric
def evaluate_rankings(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    metrics: str | Sequence[str] = ("ndcg@10", "mrr"),
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
    confidence_level: float | None = None,
    n_resamples: int = 10_000,
    random_state: Any = 0,
    **parameters: Any,
) -> dict[str, Any]:
    """Compute several metrics of one ranking.

    The ranking is sorted once for all metrics.

    Parameters
    ----------
    {shared}
    metrics : str or sequence of str, default=("ndcg@10", "mrr")
        Names of metrics with their cutoffs, for example ``"map"`` or ``"precision@5"``.
    return_per_query : bool, default=False
        Whether to return the value of each query instead of the mean. The queries are in order of
        first appearance. The value is NaN if the metric is undefined on the query, unless
        `zero_division` replaces it.
    confidence_level : float, default=None
        If given, return an interval for each mean with this confidence level, for example 0.95.
        The intervals are computed as in `paired_bootstrap`. They do not include the randomness of
        training.
    n_resamples : int, default=10000
        Number of bootstrap samples.
    random_state : int, RandomState instance or None, default=0
        Seed of the bootstrap samples.
    **parameters
        Parameters of the metrics, such as ``threshold``. Each is passed to the metrics that have
        it.

    Returns
    -------
    values : dict
        The mean over queries of each metric, by name. With `confidence_level`, each entry is a
        `MeanInterval`. With `return_per_query`, each entry is an array with one value per query,
        and the entry ``"query"`` holds the query ids. Larger is better, except for
        ``"pairwise_disagreement"``.

    Raises
    ------
    ValueError, TypeError
        If the input, a metric, a cutoff or a parameter is not valid; if both `return_per_query` and
        `confidence_level` are given; or if an interval is requested for a metric that is undefined
        on all queries.

    Examples
    --------
    >>> from sklearn_rankcal.metrics import evaluate_rankings
    >>> y, scores, groups = [1, 0, 0, 1], [0.2, 0.9, 0.1, 0.8], ["a", "a", "b", "b"]
    >>> values = evaluate_rankings(y, scores, groups=groups, metrics="mrr", return_per_query=True)
    >>> values["query"].tolist(), values["mrr"].tolist()
    (['a', 'b'], [0.5, 1.0])

    The interval of a mean over ten queries is wide:

    >>> y, scores, groups = y * 5, scores * 5, [f"{n}{q}" for n in range(5) for q in groups]
    >>> values = evaluate_rankings(y, scores, groups=groups, metrics="mrr", confidence_level=0.95)
    >>> print(values["mrr"])
    0.7500 [0.5615, 0.9385] (95 % interval, 10 queries)
    """
    if return_per_query and confidence_level is not None:
        raise ValueError("Pass either return_per_query=True or confidence_level=, not both.")
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    built = get_measures(names, parameters)
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    queries = data.ranking.queries
    result: dict[str, Any] = {"query": queries.ids} if return_per_query else {}
    for name, measure in zip(names, built, strict=True):
        values = fill_undefined(data.values(measure), zero_division)
        if return_per_query:
            result[name] = values
        elif confidence_level is None:
            result[name] = mean_over_queries(values, queries, data.weight, name)
        else:
            result[name] = interval_of_mean(
                values, data.query_weight(), n_resamples, confidence_level, random_state
            )
    return result


@overload
def compare_rankings(
    y_true: Any,
    first: ArrayLike,
    second: ArrayLike,
    *,
    metric: str = "ndcg@10",
    as_ranks: bool = False,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    random_state: Any = 0,
    **parameters: Any,
) -> Comparison: ...
@overload
def compare_rankings(
    y_true: Any,
    first: ArrayLike,
    second: ArrayLike,
    *,
    metric: list[str] | tuple[str, ...],
    as_ranks: bool = False,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    random_state: Any = 0,
    **parameters: Any,
) -> dict[str, Comparison]: ...
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
    """Compare two rankings of the same queries, with an interval and a p-value.

    `paired_bootstrap` describes how both are computed.

    Parameters
    ----------
    y_true, groups, ties, sample_weight
        As in the metric functions, such as `ndcg_score`.
    first, second : array-like of shape (n_documents,)
        Scores, larger is better, or positions if ``as_ranks=True``.
    metric : str or sequence of str, default="ndcg@10"
        Name of a metric, or several names, as in `evaluate_rankings`.
    as_ranks : bool, default=False
        Whether `first` and `second` are positions, 1 = top, instead of scores.
    n_resamples, confidence_level, random_state
        As in `paired_bootstrap`.
    **parameters
        Parameters of the metrics, such as ``threshold``. Each is passed to the metrics that have
        it.

    Returns
    -------
    comparison : Comparison, or dict of str to Comparison
        The comparison, or a dict of comparisons by metric if `metric` is a sequence. Queries on
        which the metric is undefined are left out.

    Raises
    ------
    ValueError, TypeError
        If the input, the metric, its cutoff or a parameter is not valid, or if the metric is
        undefined on all queries.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.metrics import compare_rankings
    >>> rng = np.random.default_rng(0)
    >>> groups, y = np.repeat(np.arange(50), 10), rng.integers(0, 3, size=500)
    >>> good, noise = y + rng.normal(size=500), rng.normal(size=500)
    >>> several = compare_rankings(
    ...     y, good, noise, groups=groups, metric=["ndcg@5", "map"], threshold=2
    ... )
    >>> {name: comparison.low > 0 for name, comparison in several.items()}
    {'ndcg@5': True, 'map': True}
    """
    names = [metric] if isinstance(metric, str) else metric
    systems = {"first": first, "second": second}
    values, weight = _values(
        y_true, systems, names, parameters, as_ranks, groups, ties, sample_weight
    )
    a, b = values["first"], values["second"]
    found = {
        name: compare(a[name], b[name], weight, n_resamples, confidence_level, random_state)
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
    as_ranks: bool = False,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    random_state: Any = 0,
    **parameters: Any,
) -> ComparisonTable:
    """Compare several rankings by several metrics, and correct for multiple comparisons.

    Parameters
    ----------
    y_true, as_ranks, groups, ties, sample_weight, n_resamples, confidence_level, random_state
        As in `compare_rankings`.
    systems : mapping of str to array-like of shape (n_documents,)
        Scores of at least two systems by name, larger is better, or positions if
        ``as_ranks=True``.
    baseline : str, default=None
        Name of the system to compare all other systems with. If None, all pairs of systems are
        compared.
    metrics : str or sequence of str, default="ndcg@10"
        Names of metrics, as in `evaluate_rankings`.
    **parameters
        Parameters of the metrics. Each is passed to the metrics that have it.

    Returns
    -------
    table : ComparisonTable
        One row per metric and pair of systems. It is a dict of arrays of shape (n_comparisons,)
        with the keys ``"metric"``, ``"first"`` and ``"second"`` (names of the systems),
        ``"first_mean"``, ``"second_mean"``, ``"difference"`` (first minus second), ``"low"``,
        ``"high"``, ``"p_value"``, ``"adjusted_p_value"`` and ``"n_queries"``. The p-values are
        adjusted by Holm's method. The intervals from ``"low"`` to ``"high"`` are not corrected.

    Raises
    ------
    ValueError, TypeError
        If the systems or the baseline are not valid, and in the cases of `compare_rankings`.

    Notes
    -----
    The smallest adjusted p-value is at least the number of comparisons times the smallest possible
    p-value. The latter is 1 / (n_resamples + 1) if sign combinations are sampled. With eight
    queries it is 0.0078: seven comparisons cannot reach the level 0.05.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.metrics import compare_systems
    >>> rng = np.random.default_rng(0)
    >>> groups, y = np.repeat(np.arange(50), 10), rng.integers(0, 3, size=500)
    >>> systems = {"good": y + rng.normal(size=500), "noise": rng.normal(size=500)}
    >>> table = compare_systems(y, systems, groups=groups, metrics=["ndcg@5", "mrr"], threshold=2)
    >>> table["metric"].tolist(), (table["adjusted_p_value"] < 0.05).tolist()
    (['ndcg@5', 'mrr'], [True, True])
    """
    if not isinstance(systems, Mapping):
        raise TypeError(
            "systems must map the name of each system to its scores, as in {'ours': a, 'theirs': "
            f"b}}; got {type(systems).__name__}."
        )
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    values, weight = _values(
        y_true, systems, names, parameters, as_ranks, groups, ties, sample_weight
    )
    return compare_values(
        values, weight, names, baseline, n_resamples, confidence_level, random_state
    )


def _values(
    y_true: Any,
    systems: Mapping[str, ArrayLike],
    metrics: Sequence[str],
    parameters: dict[str, Any],
    as_ranks: bool,
    groups: ArrayLike | None,
    ties: Ties,
    sample_weight: ArrayLike | None,
) -> tuple[dict[str, dict[str, Floats]], Floats | None]:
    """Return values[system][metric], one value per query, and the weights of the queries."""
    built = get_measures(metrics, parameters)
    values: dict[str, dict[str, Floats]] = {}
    for system, ranking in systems.items():
        data = read_compared(y_true, ranking, as_ranks, groups, ties, sample_weight)
        of_metrics = zip(metrics, built, strict=True)
        values[system] = {name: data.values(measure) for name, measure in of_metrics}
    return values, data.query_weight()
