"""Metrics of rankings in dask collections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import dask
import numpy as np
import pandas as pd
from dask import delayed

from sklearn_rankcal.dask._collections import (
    Collections,
    Rows,
    check_whole,
    delayed_sum,
    ids_of,
    read_weight,
)
from sklearn_rankcal.labels._labels import check_relevance
from sklearn_rankcal.losses import Measure, get_measures
from sklearn_rankcal.metrics._checks import (
    Ties,
    ZeroDivision,
    contradicted_shares,
    fill_undefined,
    has_positions,
    warn_of_positions,
)
from sklearn_rankcal.metrics._compare import compare_values, named_rankings
from sklearn_rankcal.metrics._intervals import (
    MeanInterval,
    check_comparison,
    compare,
    mean_interval,
)
from sklearn_rankcal.queries import TIES, Queries, Ranking, check_ranks, mean_over_queries
from sklearn_rankcal.queries._ranking import check_scores
from sklearn_rankcal.utils._messages import check_choice, check_flag, check_number, checks_keywords
from sklearn_rankcal.utils._numbers import Floats, read_whole


@checks_keywords
def evaluate_rankings(
    y_true: Any,
    y_score: Any = None,
    *,
    ranks: Any = None,
    groups: Any = None,
    metrics: str | Measure | Sequence[str | Measure] = "ndcg@10",
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: Any = None,
    confidence_level: float | None = None,
    **parameters: Any,
) -> Any:
    """Compute several metrics of one ranking in dask collections.

    The result equals `metrics.evaluate_rankings` up to rounding, for any partitioning.

    Parameters
    ----------
    y_true, y_score, ranks, sample_weight : dask series or array of shape (n_documents,)
        As in `metrics.evaluate_rankings`. `DaskCalibratedRanker.predict` returns `ranks`.
    groups : dask series or array of shape (n_documents,)
        Query id of each row: numbers, times or text. All rows of a query must be in one partition
        (see `group_queries`).
    metrics, ties, zero_division, confidence_level, **parameters
        As in `metrics.evaluate_rankings`.

    Returns
    -------
    values : dict
        The mean over queries for each metric name, or a `metrics.MeanInterval` if
        `confidence_level` is given.

    Notes
    -----
    This process gathers one value per query and metric, and a few more columns: 80 MB per metric
    for 10 million queries. Labels and ids are read once beforehand, to compare the ids of
    partitions and to find parameters that depend on all labels, such as ``max_relevance`` of
    ``"err"``.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from sklearn_rankcal.dask import evaluate_rankings
    >>> frame = pd.DataFrame(
    ...     {"qid": ["a", "a", "b", "b"], "y": [1, 0, 0, 1], "score": [0.2, 0.9, 0.1, 0.8]}
    ... )
    >>> frame = dd.from_pandas(frame, npartitions=2)
    >>> given = {"groups": frame["qid"], "metrics": ["mrr", "precision@1"]}
    >>> values = evaluate_rankings(frame["y"], frame["score"], **given)
    >>> {name: round(value, 3) for name, value in values.items()}
    {'mrr': 0.75, 'precision@1': 0.5}
    """
    measures = get_measures(metrics, parameters)
    if (y_score is None) == (ranks is None):
        raise ValueError(
            "Pass either y_score (larger is better) or ranks= (positions, 1 = top), not "
            + ("both." if ranks is not None else "neither.")
        )
    fill_undefined(np.zeros(1), zero_division)
    if confidence_level is not None:
        check_number(confidence_level, "confidence_level", "(0, 1)")
    ranking = "y_score" if ranks is None else "ranks"
    parts = _query_values(
        y_true,
        {ranking: y_score if ranks is None else ranks},
        groups,
        sample_weight,
        measures=measures,
        as_ranks=ranks is not None,
        ties=ties,
        zero_division=zero_division,
    )
    table = _gather(parts, "ranks=")
    results: dict[str, Any] = {}
    for name, built in measures.items():
        values, weight = table[f"{ranking} {name}"], table["weight"]
        mean = mean_of_queries(name, values, weight)
        if confidence_level is None:
            results[name] = mean
        elif np.isnan(mean):
            results[name] = MeanInterval(np.nan, np.nan, np.nan, 0, confidence_level)
        else:
            results[name] = mean_interval(values, weight, built.bounds, confidence_level)
    return results


@checks_keywords
def compare_rankings(
    y_true: Any,
    first: Any,
    second: Any = None,
    *,
    metric: str | Measure | Sequence[str | Measure] = "ndcg@10",
    baseline: str | None = None,
    as_ranks: bool = False,
    groups: Any = None,
    ties: Ties = "average",
    sample_weight: Any = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    random_state: Any = 0,
    **parameters: Any,
) -> Any:
    """Compare two or more rankings in dask collections by intervals and p-values over queries.

    The result equals `metrics.compare_rankings` up to rounding, for any partitioning. This process
    gathers one value per query for each ranking.

    Parameters
    ----------
    y_true, first, second : dask series or array of shape (n_documents,)
        As in `metrics.compare_rankings`. `first` alone can be a dict from names to rankings.
    groups, sample_weight : dask series or array of shape (n_documents,)
        As in `evaluate_rankings`.
    metric, baseline, as_ranks, ties, n_resamples, confidence_level, random_state, **parameters
        As in `metrics.compare_rankings`.

    Returns
    -------
    comparison : metrics.Comparison or dict
        For two rankings and one metric, a `metrics.Comparison`. For a dict of rankings or several
        metrics, a table, as in `metrics.compare_rankings`.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from sklearn_rankcal.dask import compare_rankings
    >>> frame = pd.DataFrame({"qid": sorted(list(range(20)) * 2), "y": [1, 0, 0, 1] * 10})
    >>> frame = frame.assign(a=[0.9, 0.1, 0.2, 0.8] * 10, b=[0.1, 0.9] * 20)
    >>> frame = dd.from_pandas(frame, npartitions=2)
    >>> given = {"groups": frame["qid"], "metric": "mrr", "random_state": 0}
    >>> compare_rankings(frame["y"], frame["a"], frame["b"], **given).difference
    0.25
    """
    measures = get_measures(metric, parameters)
    check_flag(as_ranks, "as_ranks")
    check_comparison(n_resamples, confidence_level)
    rankings = named_rankings(first, second)
    keys = {name: name if second is not None else f"ranking {name!r}" for name in rankings}
    parts = _query_values(
        y_true,
        {keys[name]: one for name, one in rankings.items()},
        groups,
        sample_weight,
        measures=measures,
        as_ranks=as_ranks,
        ties=ties,
    )
    table = _gather(parts, "rankings with as_ranks=True")
    values = {name: {of: table[f"{keys[name]} {of}"] for of in measures} for name in rankings}
    resampling = (n_resamples, confidence_level, random_state)
    bounds = {name: measure.bounds for name, measure in measures.items()}
    if second is not None and isinstance(metric, str | Measure):
        a, b = (of[str(metric)] for of in values.values())
        return compare(a, b, table["weight"], bounds[str(metric)], *resampling)
    return compare_values(values, table["weight"], bounds, baseline, *resampling)


def _query_values(
    y_true: Any,
    rankings: dict[str, Any],
    groups: Any,
    sample_weight: Any,
    *,
    measures: dict[str, Measure],
    as_ranks: bool,
    ties: str,
    zero_division: str | float = "skip",
) -> list[Any]:
    """Return the result of `_measure` for each partition."""
    check_choice(ties, "ties", TIES)
    if groups is None:
        raise ValueError(
            "No query ids. Pass groups=<a dask series or array with the query id of each row>, "
            "such as frame['qid']."
        )
    data = Collections(None, None)
    data.add("y_true", y_true, check_relevance)
    data.add("groups", groups)
    # Check the ids first: the rankings and the ids can have different partitions.
    largest = data.map(lambda rows: np.array([(y := rows.numbers["y_true"]).max(), (-y).max()]))
    first_pass = data.map(ids_of), delayed_sum(largest, np.maximum)
    for name, values in rankings.items():
        check = read_whole if as_ranks else partial(check_scores, n_rows=None)
        data.add(name, values, partial(check, name=name))
    if sample_weight is not None:
        data.add("sample_weight", sample_weight, read_weight)
    ids, found = dask.compute(*first_pass)
    data.whole = delayed(check_whole(ids), traverse=False)
    if found is not None:
        extremes = np.array([-found[1], found[0]])
        measures = {name: measure.for_labels(extremes) for name, measure in measures.items()}
    measure = partial(
        _measure,
        rankings=tuple(rankings),
        measures=measures,
        as_ranks=as_ranks,
        ties=ties,
        zero_division=zero_division,
    )
    return dask.compute(data.map(measure))[0]


def _measure(
    rows: Rows,
    rankings: tuple[str, ...],
    measures: dict[str, Measure],
    as_ranks: bool,
    ties: str,
    zero_division: str | float,
) -> tuple[pd.DataFrame, list[Floats | None]]:
    """Return a table of the queries of a partition, and a list.

    The table has the weight of each query, and the value of each measure for each ranking. The list
    has an entry for each ranking with positions as scores: the share of pairs that contradict the
    labels, for each query with pairs.
    """
    queries, relevance = rows.queries, rows.numbers["y_true"]
    columns = {"weight": rows.query_weight}
    lost: list[Floats | None] = []
    for name in rankings:
        column = rows.numbers[name]
        if as_ranks:
            ranking = Ranking.from_ranks(check_ranks(column, queries), queries)
        else:
            ranking = Ranking.from_scores(column, queries, ties, relevance)
            positions = has_positions(column, queries)
            lost.append(contradicted_shares(column, relevance, queries) if positions else None)
        for of, measure in measures.items():
            measure.check(relevance)
            values = measure.per_query(ranking, relevance)
            columns[f"{name} {of}"] = fill_undefined(values, zero_division)
    return pd.DataFrame(columns), lost


# ---------------------------------------------------------------- results


def _gather(parts: list[Any], positions_as: str) -> dict[str, Floats]:
    """Concatenate the tables of all partitions, with queries in their original order.

    Warn if scores look like positions; see `metrics._checks.looks_like_positions`.
    """
    some = [part for part in parts if part is not None]
    if not some:
        raise ValueError("y_true has no rows: every partition is empty.")
    for lost in zip(*(lost for _, lost in some), strict=True):
        if not any(part is None for part in lost):
            every = np.concatenate(lost)
            if len(every) and every.mean() >= 0.5:
                warn_of_positions(positions_as)
    table = pd.concat([table for table, _ in some], ignore_index=True)
    return {name: table[name].to_numpy() for name in table.columns}


def mean_of_queries(
    name: str, values: Floats, weight: Floats, factor: Floats | None = None
) -> float:
    """Return the weighted mean over the queries on which a measure is defined."""
    if not weight.any():
        raise ValueError("sample_weight is zero for every row.")
    return mean_over_queries(values, Queries.uniform(len(values), 1), weight, name, factor)
