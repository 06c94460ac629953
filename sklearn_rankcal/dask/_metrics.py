"""Metrics of rankings in dask collections.

Labels, one or two rankings and query ids come in, in any partitions. Each metric is computed where
the rows of a query are, and the mean over queries comes out, with an interval if it is asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask
import numpy as np
import pandas as pd
from dask import delayed
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_random_state

from sklearn_rankcal.dask._columns import (
    RELEVANCE,
    WEIGHT,
    positions_named,
    read_columns,
    scores_named,
)
from sklearn_rankcal.dask._documents import (
    ROW,
    add_up,
    check_whole,
    group_frames,
    ids_of_partition,
)
from sklearn_rankcal.dask._training import queries_of
from sklearn_rankcal.measures import Measure, get_measures
from sklearn_rankcal.metrics._bootstrap import (
    Comparison,
    MeanInterval,
    check_resampling,
    paired_bootstrap,
)
from sklearn_rankcal.metrics._checks import (
    LONG_QUERY,
    RankingData,
    Ties,
    ZeroDivision,
    are_positions,
    contradicted_shares,
    fill_undefined,
    warn_of_positions,
)
from sklearn_rankcal.queries import TIES, Queries, Ranking, check_ranks
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._parameters import check_choice, check_flag

Floats = NDArray[np.float64]
#: The exponent of weights that are all 0, which is below those of all others.
_NO_WEIGHT = -10_000


@checks_keywords
def evaluate_rankings(
    y_true: Any,
    y_score: Any = None,
    *,
    ranks: Any = None,
    groups: Any = None,
    metrics: str | Sequence[str] = ("ndcg@10", "mrr"),
    whole_queries: bool = False,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: Any = None,
    confidence_level: float | None = None,
    n_resamples: int = 10_000,
    random_state: Any = 0,
    compute: bool = True,
    **parameters: Any,
) -> Any:
    """Compute several metrics of one ranking in dask collections.

    The values are those of `metrics.evaluate_rankings` up to rounding, whatever the partitions are.

    Parameters
    ----------
    y_true : dask series or array of shape (n_documents,)
        Relevance, where larger is better.
    y_score : dask series or array of shape (n_documents,), default=None
        Scores, where larger is better. Pass either `y_score` or `ranks`.
    ranks : dask series or array of shape (n_documents,), default=None
        Position of each row inside its query, 1 = top, without ties, such as what
        `DaskCalibratedRanker.predict` returns.
    groups : dask series or array of shape (n_documents,)
        Query id of each row: numbers, times or text.
    metrics : str or sequence of str, default=("ndcg@10", "mrr")
        Names of metrics with their cutoffs, for example ``"map"`` or ``"precision@5"``.
    whole_queries : bool, default=False
        Whether every query is in a single partition. If it is False, labels, scores and ids are
        moved between workers (a shuffle of about 40 bytes a row). If it is True, nothing is moved,
        and a query in several partitions is an error.
    ties : {"average", "first", "worst", "best"}, default="average"
        How equal scores are ranked, as in `metrics.evaluate_rankings`. ``"first"`` is the order of
        the rows in the collection.
    zero_division : {"skip", 0, 1}, default="skip"
        The value that is used for queries on which the metric is undefined. ``"skip"`` leaves
        these queries out of the mean.
    sample_weight : dask series or array of shape (n_documents,), default=None
        Weight of each row. The weight of a query is the mean of the weights of its rows.
    confidence_level : float, default=None
        Compute also a bootstrap interval over queries for the mean of each metric. For example,
        0.95 returns intervals of 95 %.
    n_resamples : int, default=10000
        Number of bootstrap samples.
    random_state : int, RandomState instance or None, default=0
        Determines the bootstrap samples. An integer gives the same samples for every metric.
    compute : bool, default=True
        Whether to compute the values at once. If it is False, a delayed object is returned.
    **parameters
        Parameters of the metrics, such as ``threshold`` and ``gain``. Each is passed to those of
        `metrics` that have it.

    Returns
    -------
    values : dict
        It maps the name of each metric to the mean over queries. With `confidence_level`, it maps
        the name to a `metrics.MeanInterval`, which also has the number of queries of positive
        weight on which the metric is defined.

    Raises
    ------
    TypeError
        If something is not a dask series or array, or if none of the metrics has one of the
        parameters.
    ValueError
        If partitions differ, if there are no query ids, or if a metric is unknown. When the values
        are computed: if labels, scores, positions, weights or ids are not valid, or if a query is
        in several partitions although `whole_queries` is True.

    See Also
    --------
    sklearn_rankcal.metrics.evaluate_rankings : The same for data in memory.
    compare_rankings : Compare two rankings of dask collections.

    Notes
    -----
    Without `confidence_level`, each partition is reduced to a few sums. With it, one value for each
    query and metric is gathered in this process: 8 bytes, which is 80 MB a metric for 10 million
    queries, and two more columns. The queries are put in the order of their first rows, so that the
    samples depend neither on the partitions nor on the number of workers, and are those of
    `metrics.paired_bootstrap`. The bootstrap takes O(n_queries * n_resamples) time in this process,
    about 0.15 microseconds for each draw of a query and each metric: 150 s for a million queries
    and 1,000 samples. Use fewer samples for millions of queries.

    The parameter ``max_relevance`` of ``"err"`` is the largest label of all partitions. To find it,
    labels are read once more, at once. Pass it to save that.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from sklearn_rankcal.dask import evaluate_rankings
    >>> frame = pd.DataFrame(
    ...     {"qid": ["a", "b", "a", "b"], "y": [1, 0, 0, 1], "score": [0.2, 0.1, 0.9, 0.8]}
    ... )
    >>> frame = dd.from_pandas(frame, npartitions=2)
    >>> given = {"groups": frame["qid"], "metrics": ["mrr", "precision@1"]}
    >>> values = evaluate_rankings(frame["y"], frame["score"], **given)
    >>> {name: round(value, 3) for name, value in values.items()}
    {'mrr': 0.75, 'precision@1': 0.5}
    >>> values = evaluate_rankings(frame["y"], frame["score"], **given, confidence_level=0.95)
    >>> print(values["mrr"])
    0.7500 [0.5000, 1.0000] (95 % interval, 2 queries)
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    measures = get_measures(names, parameters)
    if (y_score is None) == (ranks is None):
        raise ValueError(
            "Pass either y_score (larger is better) or ranks= (positions, 1 = top), not "
            + ("both." if ranks is not None else "neither.")
        )
    check_choice(ties, "ties", TIES)
    fill_undefined(np.zeros(1), zero_division)
    check_flag(compute, "compute")
    if confidence_level is not None:
        check_resampling(n_resamples, confidence_level)
        check_random_state(random_state)
    given = {"y_score": y_score} if ranks is None else {"ranks": ranks}
    parts, checked = _values_of_queries(
        y_true,
        given,
        groups,
        sample_weight,
        measures,
        whole_queries,
        as_ranks=ranks is not None,
        ties=ties,
        zero_division=zero_division,
    )
    if confidence_level is None:
        total = add_up([delayed(_Sums.of)(part) for part in parts], _Sums.plus)
        finish: Any = partial(_means, names)
    else:
        total = delayed(_gather)(parts)
        finish = partial(_intervals, names, confidence_level, n_resamples, random_state)
    if not compute:
        return delayed(finish)(total, checked)
    return finish(*dask.compute(total, checked))


@checks_keywords
def compare_rankings(
    y_true: Any,
    first: Any,
    second: Any,
    *,
    metric: str | Sequence[str] = "ndcg@10",
    as_ranks: bool = False,
    groups: Any = None,
    whole_queries: bool = False,
    ties: Ties = "average",
    sample_weight: Any = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    random_state: Any = 0,
    **parameters: Any,
) -> Comparison | dict[str, Comparison]:
    """Compare two rankings in dask collections by a paired bootstrap over queries.

    The result is that of `metrics.compare_rankings` up to rounding, whatever the partitions are.

    Parameters
    ----------
    y_true : dask series or array of shape (n_documents,)
        Relevance, where larger is better.
    first, second : dask series or array of shape (n_documents,)
        Scores, where larger is better. With ``as_ranks=True``, positions.
    metric : str or sequence of str, default="ndcg@10"
        The name of a metric, or several names.
    as_ranks : bool, default=False
        Whether `first` and `second` are positions, 1 = top, instead of scores.
    groups : dask series or array of shape (n_documents,)
        Query id of each row: numbers, times or text.
    whole_queries : bool, default=False
        Whether every query is in a single partition, as in `evaluate_rankings`.
    ties : {"average", "first", "worst", "best"}, default="average"
        How equal scores are ranked, as in `evaluate_rankings`.
    sample_weight : dask series or array of shape (n_documents,), default=None
        Weight of each row. The weight of a query is the mean of the weights of its rows.
    n_resamples : int, default=10000
        Number of bootstrap samples.
    confidence_level : float, default=0.95
        Confidence level of the interval.
    random_state : int, RandomState instance or None, default=0
        Determines the bootstrap samples.
    **parameters
        Parameters of the metrics. Each is passed to those that have it.

    Returns
    -------
    comparison : metrics.Comparison, or dict of str to metrics.Comparison
        If `metric` is a sequence, a dict from each name to its comparison.

    Raises
    ------
    TypeError, ValueError
        As in `evaluate_rankings`, and if a metric is undefined on all queries.

    See Also
    --------
    sklearn_rankcal.metrics.compare_rankings : The same for data in memory.

    Notes
    -----
    The values of both rankings for each query are gathered in this process, as in
    `evaluate_rankings` with intervals.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn_rankcal.dask import compare_rankings
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"qid": np.repeat(np.arange(50), 10), "y": rng.integers(0, 3, 500)})
    >>> frame["good"] = frame["y"] + rng.normal(size=500)
    >>> frame["noise"] = rng.normal(size=500)
    >>> frame = dd.from_pandas(frame, npartitions=3)
    >>> comparison = compare_rankings(
    ...     frame["y"], frame["good"], frame["noise"], groups=frame["qid"]
    ... )
    >>> comparison.low > 0, comparison.n_queries
    (True, 50)
    """
    names = [metric] if isinstance(metric, str) else list(metric)
    measures = get_measures(names, parameters)
    check_choice(ties, "ties", TIES)
    check_flag(as_ranks, "as_ranks")
    check_resampling(n_resamples, confidence_level)
    parts, checked = _values_of_queries(
        y_true,
        {"first": first, "second": second},
        groups,
        sample_weight,
        measures,
        whole_queries,
        as_ranks=as_ranks,
        ties=ties,
        zero_division="skip",
    )
    gathered, _ = dask.compute(delayed(_gather)(parts), checked)
    gathered = _some(gathered)
    _warn_of_positions(gathered.positions, "rankings with as_ranks=True")
    found = {
        name: paired_bootstrap(
            gathered.values[0, number],
            gathered.values[1, number],
            weight=gathered.weight,
            n_resamples=n_resamples,
            confidence_level=confidence_level,
            random_state=random_state,
        )
        for number, name in enumerate(names)
    }
    return found[metric] if isinstance(metric, str) else found


def _values_of_queries(
    y_true: Any,
    rankings: dict[str, Any],
    groups: Any,
    sample_weight: Any,
    measures: list[Measure],
    whole_queries: bool,
    **options: Any,
) -> tuple[list[Any], Any]:
    """Return delayed values of the queries of each partition, and the delayed check of the ids."""
    check_flag(whole_queries, "whole_queries")
    if groups is None:
        raise ValueError(
            "No query ids. Pass groups=<a dask series or array with the query id of each row>, "
            "such as frame['qid']."
        )
    kind = positions_named if options["as_ranks"] else scores_named
    given = {"y_true": (y_true, RELEVANCE)}
    given |= {name: (values, kind(name)) for name, values in rankings.items()}
    if sample_weight is not None:
        given["sample_weight"] = (sample_weight, WEIGHT)
    frames, meta = read_columns(given, groups)
    measures = _resolve(measures, {"y_true": (y_true, RELEVANCE)}, groups)
    checked: Any = None
    if whole_queries:
        # The ids of the partitions are compared at the end, so that no partition has to be kept.
        checked = delayed(check_whole)([delayed(ids_of_partition)(frame) for frame in frames])
    else:
        frames = group_frames(frames, meta)
    measure = delayed(
        partial(_measure, measures=measures, rankings=tuple(rankings), **options), pure=False
    )
    return [measure(frame) for frame in frames], checked


def _resolve(measures: list[Measure], labels: Any, groups: Any) -> list[Measure]:
    """Set the parameters of measures that depend on all labels."""
    two = np.array([0.0, 1.0])
    if all(measure.resolve(two) is measure for measure in measures):
        return measures
    frames, _ = read_columns(labels, groups)
    extremes = add_up([delayed(_extremes)(frame) for frame in frames], _wider)
    (found,) = dask.compute(extremes)
    return measures if found is None else [measure.resolve(np.array(found)) for measure in measures]


def _extremes(frame: pd.DataFrame) -> tuple[float, float] | None:
    labels = frame["y_true"].to_numpy()
    return (float(labels.min()), float(labels.max())) if len(labels) else None


def _wider(one: tuple[float, float], two: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], two[0]), max(one[1], two[1])


# ---------------------------------------------------------------- partitions


@dataclass(frozen=True)
class _Positions:
    """Whether scores are probably positions; see `metrics._checks.looks_like_positions`.

    Attributes
    ----------
    everywhere : bool
        Whether the scores of every query are a permutation of 1 .. r.
    n_queries, longest : int
        The number of queries with several documents, and the documents of the longest query.
    lost, n_defined : float
        Sum over queries of the share of pairs that the scores contradict, and the number of these
        queries.
    """

    everywhere: bool = False
    n_queries: int = 0
    longest: int = 0
    lost: float = 0.0
    n_defined: int = 0

    @classmethod
    def of(cls, scores: Floats, relevance: Floats, queries: Queries) -> _Positions:
        if not are_positions(scores, queries):
            return cls()
        lost = contradicted_shares(scores, relevance, queries)
        n_queries = int((queries.sizes > 1).sum())
        return cls(True, n_queries, int(queries.sizes.max()), float(lost.sum()), len(lost))

    def plus(self, other: _Positions) -> _Positions:
        return _Positions(
            self.everywhere and other.everywhere,
            self.n_queries + other.n_queries,
            max(self.longest, other.longest),
            self.lost + other.lost,
            self.n_defined + other.n_defined,
        )

    @property
    def are_likely(self) -> bool:
        several = self.n_queries >= 2 or self.longest >= LONG_QUERY
        return self.everywhere and several and 0 < self.n_defined <= 2 * self.lost


@dataclass(frozen=True)
class _Values:
    """Measures of the queries of a partition, or of all.

    Attributes
    ----------
    values : ndarray of shape (n_rankings, n_measures, n_queries)
        NaN where a measure is undefined.
    weight : ndarray of shape (n_queries,) or None
    rows : ndarray of shape (n_queries,)
        The number of the first row of each query.
    positions : tuple of _Positions
        For each ranking; empty if the rankings are positions.
    """

    values: Floats
    weight: Floats | None
    rows: NDArray[np.int64]
    positions: tuple[_Positions, ...]


def _measure(
    frame: pd.DataFrame,
    measures: list[Measure],
    rankings: tuple[str, ...],
    as_ranks: bool,
    ties: str,
    zero_division: str | float,
) -> _Values | None:
    """Return the values of the queries of a partition, or None if it has no rows."""
    if not len(frame):
        return None
    queries = queries_of(frame)
    relevance = frame["y_true"].to_numpy()
    values, positions = [], []
    for name in rankings:
        column = frame[name].to_numpy()
        if as_ranks:
            ranking = Ranking.from_ranks(check_ranks(column, queries), queries)
        else:
            ranking = Ranking.from_scores(column, queries, ties, relevance)
            positions.append(_Positions.of(column, relevance, queries))
        data = RankingData(relevance, ranking, None)
        values.append([fill_undefined(data.values(measure), zero_division) for measure in measures])
    weight = None
    if "sample_weight" in frame:
        given = frame["sample_weight"].to_numpy()
        largest = given.max() or 1.0
        weight = queries.mean(given / largest) * largest  # scaled, so that no sum overflows
    rows = queries.min(frame[ROW].to_numpy())
    return _Values(np.array(values), weight, rows, tuple(positions))


def _gather(parts: list[_Values | None]) -> _Values | None:
    """Join the values of all queries, in the order of their first rows."""
    some = [part for part in parts if part is not None]
    if not some:
        return None
    rows = np.concatenate([part.rows for part in some])
    order = np.argsort(rows)
    weights = [part.weight for part in some if part.weight is not None]
    positions = some[0].positions
    for part in some[1:]:
        positions = _plus_positions(positions, part.positions)
    return _Values(
        np.concatenate([part.values for part in some], axis=2)[:, :, order],
        np.concatenate(weights)[order] if weights else None,
        rows[order],
        positions,
    )


def _plus_positions(
    one: tuple[_Positions, ...], two: tuple[_Positions, ...]
) -> tuple[_Positions, ...]:
    return tuple(a.plus(b) for a, b in zip(one, two, strict=True))


@dataclass(frozen=True)
class _Sums:
    """Weighted sums of measures over queries.

    Attributes
    ----------
    weighted, weight : ndarray of shape (n_measures,)
        Sums over the queries on which a measure is defined, of weight * value and of the weight.
        Both are divided by 2^exponent, so that they do not overflow.
    n_defined : ndarray of shape (n_measures,)
        The number of these queries.
    n_queries, exponent : int
    positions : tuple of _Positions
    """

    weighted: Floats
    weight: Floats
    n_defined: NDArray[np.int64]
    n_queries: int
    exponent: int
    positions: tuple[_Positions, ...]

    @classmethod
    def of(cls, part: _Values | None) -> _Sums | None:
        if part is None:
            return None
        values, n_queries = part.values[0], len(part.rows)
        weight, exponent = np.ones(n_queries), 0
        if part.weight is not None:
            largest = part.weight.max()
            exponent = int(np.frexp(largest)[1]) if largest else _NO_WEIGHT
            weight = np.ldexp(part.weight, -exponent) if largest else part.weight
        defined = ~np.isnan(values)
        return cls(
            np.where(defined, values, 0) @ weight,
            defined @ weight,
            defined.sum(axis=1),
            n_queries,
            exponent,
            part.positions,
        )

    def plus(self, other: _Sums) -> _Sums:
        exponent = max(self.exponent, other.exponent)
        one, two = self.exponent - exponent, other.exponent - exponent
        return _Sums(
            np.ldexp(self.weighted, one) + np.ldexp(other.weighted, two),
            np.ldexp(self.weight, one) + np.ldexp(other.weight, two),
            self.n_defined + other.n_defined,
            self.n_queries + other.n_queries,
            exponent,
            _plus_positions(self.positions, other.positions),
        )


# ---------------------------------------------------------------- results


def _some(total: Any) -> Any:
    if total is None:
        raise ValueError("y_true has no rows: every partition is empty.")
    return total


def _warn_of_positions(positions: tuple[_Positions, ...], remedy: str) -> None:
    if any(one.are_likely for one in positions):
        warn_of_positions(remedy, stacklevel=6)


def _means(names: list[str], total: _Sums | None, checked: None) -> dict[str, float]:
    """Return the mean of each metric."""
    total = _some(total)
    _warn_of_positions(total.positions, "ranks=")
    means = {}
    for name, weighted, weight, n_defined in zip(
        names, total.weighted, total.weight, total.n_defined, strict=True
    ):
        _check_mean(name, int(n_defined), float(weight), total.n_queries)
        means[name] = float(weighted / weight) if n_defined else float("nan")
    return means


def _check_mean(name: str, n_defined: int, weight: float, n_queries: int) -> None:
    if not n_defined:
        warnings.warn(
            f"{name} is undefined on all {n_queries} queries; its mean is set to NaN.",
            UndefinedMetricWarning,
            stacklevel=5,
        )
    elif not weight:
        raise ValueError(f"sample_weight is 0 on every query where {name} is defined.")


def _intervals(
    names: list[str],
    confidence_level: float,
    n_resamples: int,
    random_state: Any,
    total: _Values | None,
    checked: None,
) -> dict[str, MeanInterval]:
    """Return the mean of each metric and its interval."""
    total = _some(total)
    _warn_of_positions(total.positions, "ranks=")
    intervals = {}
    for name, values in zip(names, total.values[0], strict=True):
        defined = ~np.isnan(values)
        weight = None if total.weight is None else total.weight[defined]
        mass = 1.0 if weight is None else float(weight.max(initial=0))
        _check_mean(name, int(defined.sum()), mass, len(values))
        if not defined.any():
            intervals[name] = MeanInterval(np.nan, np.nan, np.nan, 0, confidence_level)
            continue
        found = paired_bootstrap(
            values[defined],
            np.zeros(defined.sum()),
            weight=weight,
            n_resamples=n_resamples,
            confidence_level=confidence_level,
            random_state=random_state,
        )
        intervals[name] = MeanInterval(
            found.first, found.low, found.high, found.n_queries, confidence_level
        )
    return intervals
