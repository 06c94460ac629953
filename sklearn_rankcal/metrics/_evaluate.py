"""Several metrics of one ranking, and comparisons of rankings over queries."""

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
    """Compute several metrics of one ranking, which is sorted only once.

    Parameters
    ----------
    {shared}
    metrics : str or sequence of str, default=("ndcg@10", "mrr")
        Names of metrics with their cutoffs, for example ``"map"`` or ``"precision@5"``.
    return_per_query : bool, default=False
        Whether to return one value per query instead of their mean, and the ids of the queries.
        The queries are in order of first appearance. The value is NaN for a query on which the
        metric is undefined, unless `zero_division` replaces it.
    confidence_level : float, default=None
        Confidence level of an interval for each mean, for example 0.95, as in `paired_bootstrap`;
        it does not include the randomness of the training. None computes no intervals.
    n_resamples : int, default=10000
        Number of bootstrap samples.
    random_state : int, RandomState instance or None, default=0
        Determines the bootstrap samples.
    **parameters
        Parameters of the metrics, such as ``threshold``. Each is passed to those that have it.

    Returns
    -------
    values : dict
        It maps the name of each metric to the mean over queries; with `return_per_query` to an
        array with one value per query, and ``"query"`` to their ids; with `confidence_level` to a
        `MeanInterval`. Smaller is better only for ``"pairwise_disagreement"``.

    Raises
    ------
    ValueError, TypeError
        If the input, a metric, a cutoff or a parameter is not valid, if `return_per_query` and
        `confidence_level` are both given, or if a metric with an interval is undefined everywhere.

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
        raise ValueError(
            "Pass either return_per_query=True or confidence_level=. An interval belongs to a mean."
        )
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
    """Compare two rankings of the same queries by an interval and a p-value over queries.

    `paired_bootstrap` says how they are computed, and what few queries can show.

    Parameters
    ----------
    y_true, groups, ties, sample_weight
        As in the metric functions, such as `ndcg_score`.
    first, second : array-like of shape (n_documents,)
        Scores, where larger is better. With ``as_ranks=True``, positions.
    metric : str or sequence of str, default="ndcg@10"
        The name of a metric, or several names, as in `evaluate_rankings`.
    as_ranks : bool, default=False
        Whether `first` and `second` are positions, 1 = top, instead of scores.
    n_resamples, confidence_level, random_state
        As in `paired_bootstrap`.
    **parameters
        Parameters of the metrics, such as ``threshold``. Each is passed to those that have it.

    Returns
    -------
    comparison : Comparison, or dict of str to Comparison
        If `metric` is a sequence, a dict from each name to its comparison. Queries on which the
        metric is undefined are left out.

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
    """Compare several rankings by several metrics, and correct for the number of comparisons.

    Parameters
    ----------
    y_true, as_ranks, groups, ties, sample_weight, n_resamples, confidence_level, random_state
        As in `compare_rankings`. If p-values are drawn, each is at least 1 / (n_resamples + 1), and
        the smallest adjusted p-value is at least the number of comparisons times that. Eight
        queries cannot show more than 0.0078, so that seven comparisons of them show nothing.
    systems : mapping of str to array-like of shape (n_documents,)
        It maps the name of each of at least two systems to its scores, where larger is better,
        or to its positions with ``as_ranks=True``.
    baseline : str, default=None
        Name of the system with which each of the others is compared. If None, all pairs of systems
        are compared.
    metrics : str or sequence of str, default="ndcg@10"
        Names of metrics, as in `evaluate_rankings`.
    **parameters
        Parameters of the metrics. Each is passed to those metrics that have it.

    Returns
    -------
    table : ComparisonTable
        A dict of columns, arrays of shape (n_comparisons,), that prints as a table with one row for
        each comparison. The columns are ``"metric"``, ``"first"`` and ``"second"``
        (the names of the systems), ``"first_mean"``, ``"second_mean"``, ``"difference"`` (first
        minus second), ``"low"``, ``"high"``, ``"p_value"``, ``"adjusted_p_value"`` and
        ``"n_queries"``. The interval from ``"low"`` to ``"high"`` is not corrected.

    Raises
    ------
    ValueError, TypeError
        If the systems or the baseline are not valid, and in the cases of
        `compare_rankings`.

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
    """The values of each system and metric for each query, and the weights of the queries."""
    built = get_measures(metrics, parameters)
    values: dict[str, dict[str, Floats]] = {}
    for system, ranking in systems.items():
        data = read_compared(y_true, ranking, as_ranks, groups, ties, sample_weight)
        of_metrics = zip(metrics, built, strict=True)
        values[system] = {name: data.values(measure) for name, measure in of_metrics}
    return values, data.query_weight()
