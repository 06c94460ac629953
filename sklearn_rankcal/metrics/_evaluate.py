"""Several metrics of one ranking.

Labels and one ranking come in, which are checked and sorted once; the value of each metric comes
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.measures import get_measures
from sklearn_rankcal.metrics._bootstrap import MeanInterval, paired_bootstrap
from sklearn_rankcal.metrics._checks import Ties, ZeroDivision, documented_metric, read_ranking


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
    confidence_level : float, default=None
        Confidence level of an interval for each mean, for example 0.95. The interval is a bootstrap
        over queries: it says how much the mean would change with other queries of the same kind.
        It does not include the randomness of the training. None computes no intervals.
    n_resamples : int, default=10000
        Number of bootstrap samples.
    random_state : int, RandomState instance or None, default=0
        Determines the bootstrap samples.
    **parameters
        Parameters of the metrics, such as ``threshold`` and ``gain``. Each is passed to those of
        `metrics` that have it.

    Returns
    -------
    values : dict
        It maps the name of each metric to the mean over queries. Smaller is better for
        ``"pairwise_disagreement"``, and larger is better for all other metrics. With
        `return_per_query`, it maps the name to an array with one value per query, and ``"query"``
        to the ids of the queries in the same order. ``pandas.DataFrame(values)`` is then a table
        with one row per query. With `confidence_level`, it maps the name to a `MeanInterval`, which
        also has the number of queries behind the mean.

    Raises
    ------
    ValueError
        If the input is not valid for one of the metrics, if a metric is unknown, or if a cutoff is
        missing or not valid. Also if `return_per_query` and `confidence_level` are both given, or
        if a metric of which an interval is wanted is undefined on all queries.
    TypeError
        If none of the metrics has one of the parameters.

    Notes
    -----
    The ranking is sorted in O(n log r) time, for n documents in queries of at most r documents.
    Most metrics then take O(n) time. The interval of each takes O(n_queries * n_resamples) time.

    Examples
    --------
    >>> from sklearn_rankcal.metrics import evaluate_rankings
    >>> y, scores, groups = [1, 0, 0, 1], [0.2, 0.9, 0.1, 0.8], ["a", "a", "b", "b"]
    >>> values = evaluate_rankings(y, scores, groups=groups, metrics=["mrr", "precision@1"])
    >>> {name: round(value, 3) for name, value in values.items()}
    {'mrr': 0.75, 'precision@1': 0.5}
    >>> values = evaluate_rankings(y, scores, groups=groups, metrics="mrr", return_per_query=True)
    >>> values["query"].tolist(), values["mrr"].tolist()
    (['a', 'b'], [0.5, 1.0])

    The interval of a mean over two queries is wide:

    >>> values = evaluate_rankings(y, scores, groups=groups, metrics="mrr", confidence_level=0.95)
    >>> print(values["mrr"])
    0.7500 [0.5000, 1.0000] (95 % interval, 2 queries)
    """
    if return_per_query and confidence_level is not None:
        raise ValueError(
            "Pass either return_per_query=True or confidence_level=. An interval belongs to a mean."
        )
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    built = get_measures(names, parameters)
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    values: dict[str, Any] = {"query": data.ranking.queries.ids} if return_per_query else {}
    for name, measure in zip(names, built, strict=True):
        if confidence_level is None:
            values[name] = data.score(measure, name, zero_division, return_per_query)
            continue
        each = data.score(measure, name, zero_division, return_per_query=True)
        found = paired_bootstrap(
            each,
            np.zeros_like(each),
            weight=data.query_weight(),
            n_resamples=n_resamples,
            confidence_level=confidence_level,
            random_state=random_state,
        )
        values[name] = MeanInterval(
            found.first, found.low, found.high, found.n_queries, confidence_level
        )
    return values
