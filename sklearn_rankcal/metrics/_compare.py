"""`compare_rankings`: compare two or more rankings query by query, with intervals and p-values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.losses import Measure, get_measures
from sklearn_rankcal.metrics._checks import Unjudged, read_compared
from sklearn_rankcal.metrics._evaluate_run import evaluate_run
from sklearn_rankcal.metrics._intervals import Comparison, bounds_of, compare
from sklearn_rankcal.metrics._runs import is_qrels, is_several
from sklearn_rankcal.utils._messages import checks_keywords
from sklearn_rankcal.utils._numbers import LARGEST, Floats, read_numbers

#: The values of metrics on each query: values[ranking][metric].
Values = Mapping[str, Mapping[str, Floats]]


@overload
def compare_rankings(
    y_true: Any, first: Mapping[str, Any], second: None = None, **options: Any
) -> ComparisonTable: ...
@overload
def compare_rankings(
    y_true: Any,
    first: Any,
    second: Any,
    *,
    metric: list[str | Measure] | tuple[str | Measure, ...],
    **options: Any,
) -> ComparisonTable: ...
@overload
def compare_rankings(
    y_true: Any, first: Any, second: Any, *, metric: str | Measure = "ndcg@10", **options: Any
) -> Comparison: ...
@checks_keywords
def compare_rankings(
    y_true: Any,
    first: Any,
    second: Any = None,
    *,
    metric: str | Measure | Sequence[str | Measure] = "ndcg@10",
    baseline: str | None = None,
    as_ranks: bool = False,
    groups: ArrayLike | None = None,
    ties: str = "average",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    random_state: Any = 0,
    **parameters: Any,
) -> Comparison | ComparisonTable:
    """Compare two or more rankings of the same queries, with intervals and p-values.

    The rankings are scores or positions of the rows of `y_true`, or retrieval runs if `y_true` are
    qrels (judgements), or values of any metric on each query if `y_true` is None.

    The interval of the difference is explained in :ref:`intervals_of_means`. If the p-value is
    larger than ``1 - confidence_level``, it is widened to include 0.

    The p-value comes from a sign-flip test. It is the share of all sign combinations of the
    differences whose mean is at least as far from 0 as the observed mean. With more than 16 nonzero
    differences, `n_resamples` sign combinations are sampled, and the p-value is at least
    1 / (n_resamples + 1). With five queries or fewer, no p-value is below 0.0625.

    Parameters
    ----------
    y_true : array-like of shape (n_documents,), qrels or None
        Relevance, as in the metric functions such as `ndcg_score`. Or qrels, in any format of
        `evaluate_run`. If None, the rankings are given by their values of a metric on each query,
        for example from ``evaluate_rankings(..., return_per_query=True)``; NaN marks queries to
        leave out.
    first, second : array-like of shape (n_documents,), run, or array-like of shape (n_queries,)
        Scores, larger is better, or positions if ``as_ranks=True``; or runs; or values. To compare
        two or more by name, pass a dict from names to rankings as `first` alone.
    metric : str, Measure or sequence of these, default="ndcg@10"
        One metric or several, as in `evaluate_rankings` and `evaluate_run`. With values, any name;
        the interval uses the bounds of the metric if it is known.
    baseline : str, default=None
        Name of the ranking to compare all others with. If None, all pairs are compared.
    as_ranks : bool, default=False
        Whether the rankings are positions, 1 = top, instead of scores.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row, as in the metric functions.
    ties : {"average", "first", "worst", "best"}, default="average"
        How equal scores are ranked. For runs also ``"trec_eval"``.
    sample_weight : array-like of shape (n_documents,), default=None
        Weight of each row. The weight of a query is the mean weight of its rows. With values, it is
        the weight of each query.
    unjudged : {"irrelevant", "skip"}, default="irrelevant"
        How to treat documents that nobody judged, with NaN in `y_true` or not in the qrels, as in
        `evaluate_run`.
    n_resamples : int, default=10000
        Number of sampled sign combinations. At most 10,000,000.
    confidence_level : float, default=0.95
        Confidence level of the intervals.
    random_state : int, RandomState instance or None, default=0
        Seed of the sampled signs.
    **parameters
        Parameters of named metrics, such as ``threshold``. Each is passed to the metrics that have
        it. For runs also ``missing`` and ``zero_division`` of `evaluate_run`.

    Returns
    -------
    comparison : Comparison or dict
        For two rankings and one metric, a `Comparison`. For a dict of rankings or several metrics,
        a table with one row per metric and pair of rankings: a dict of arrays that prints as a
        table, which ``pandas.DataFrame`` accepts. Its keys are ``"metric"``, ``"first"`` and
        ``"second"`` (names of the rankings), ``"first_mean"``, ``"second_mean"``, ``"difference"``
        (first minus second), ``"low"``, ``"high"``, ``"p_value"``, ``"adjusted_p_value"`` and
        ``"n_queries"``. The p-values are adjusted by Holm's method, the intervals are not. Queries
        on which the metric is undefined are left out.

    Notes
    -----
    The smallest adjusted p-value is at least the number of comparisons times the smallest possible
    p-value. With eight queries the latter is 0.0078: seven comparisons cannot reach the level 0.05.

    References
    ----------
    Fisher (1935). The design of experiments. Section 21, on the sign-flip test.

    Phipson and Smyth (2010). Permutation p-values should never be zero. Statistical Applications in
    Genetics and Molecular Biology 9(1).

    Examples
    --------
    The first ranking is better on nine of twelve queries and equally good on three. Only two of the
    2 ** 9 sign combinations are as extreme as the observed one:

    >>> from sklearn_rankcal.metrics import compare_rankings
    >>> ours, theirs = [0.5, 0.75, 1.0, 0.25] * 3, [0.25, 0.5, 0.75, 0.25] * 3
    >>> comparison = compare_rankings(None, ours, theirs)
    >>> comparison.difference, comparison.p_value
    (0.1875, 0.00390625)

    Several metrics or rankings make a table:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> groups, y = np.repeat(np.arange(50), 10), rng.integers(0, 3, size=500)
    >>> scores = {"good": y + rng.normal(size=500), "noise": rng.normal(size=500)}
    >>> table = compare_rankings(y, scores, groups=groups, metric=["ndcg@5", "mrr"], threshold=2)
    >>> table["metric"].tolist(), (table["adjusted_p_value"] < 0.05).tolist()
    (['ndcg@5', 'mrr'], [True, True])
    """
    rankings = named_rankings(first, second)
    of_rows = y_true is not None and not is_qrels(y_true)
    if not of_rows and (as_ranks or groups is not None):
        raise TypeError(
            "groups and as_ranks belong to the rows of y_true. They cannot be passed with qrels, "
            "or without y_true."
        )
    weight = None
    if y_true is None:
        several = [metric] if isinstance(metric, str | Measure) else metric
        bounds = {str(each): bounds_of(each) for each in several}
        values, weight = _given_values(rankings, list(bounds), sample_weight, parameters)
    elif not of_rows:
        if not is_several(rankings) or sample_weight is not None:
            raise TypeError(
                "With qrels, pass runs without sample_weight, by name as in {'bm25': a, 'ours': "
                "b}. For a single run, call evaluate_run."
            )
        of_runs = {"metrics": metric, "ties": ties, "unjudged": unjudged, **parameters}
        evaluated: Any = evaluate_run(y_true, rankings, **of_runs)
        values = {name: one.per_query for name, one in evaluated.items()}
        bounds = next(iter(evaluated.values()))._bounds
    else:
        measures = get_measures(metric, parameters)
        bounds = {name: measure.bounds for name, measure in measures.items()}
        values = {}
        for name, ranking in rankings.items():
            data = read_compared(y_true, ranking, as_ranks, groups, ties, sample_weight, unjudged)
            values[name] = {of: data.values(measure) for of, measure in measures.items()}
            weight = data.query_weight()
    resampling = (n_resamples, confidence_level, random_state)
    if second is not None and isinstance(metric, str | Measure):
        a, b = (values[name][str(metric)] for name in rankings)
        return compare(a, b, weight, bounds[str(metric)], *resampling)
    return compare_values(values, weight, bounds, baseline, *resampling)


def named_rankings(first: Any, second: Any) -> Mapping[str, Any]:
    """Return the rankings to compare by name."""
    if second is not None:
        return {"first": first, "second": second}
    if isinstance(first, Mapping):
        return first
    raise TypeError(
        "Pass two rankings, or a dict that maps the name of each ranking to it, as in "
        f"{{'ours': a, 'theirs': b}}; got one {type(first).__name__}."
    )


def _given_values(
    rankings: Mapping[str, Any],
    names: list[str],
    weight: ArrayLike | None,
    parameters: Mapping[str, Any],
) -> tuple[Values, Floats | None]:
    """Check values of a metric on each query, and the weights of the queries."""
    if len(names) > 1 or parameters:
        raise TypeError(
            "Without y_true, the rankings are values of a single metric, which has no parameters."
        )
    values = {name: read_numbers(given, name) for name, given in rankings.items()}
    shapes = {array.shape for array in values.values()}
    if len(shapes) > 1 or len(next(iter(shapes))) != 1:
        raise ValueError(
            f"{' and '.join(values)} must be 1-D arrays of the same length, with one value per "
            f"query; got the shapes {' and '.join(str(each.shape) for each in values.values())}."
        )
    if any(np.abs(each[~np.isnan(each)]).max(initial=0.0) > LARGEST**2 for each in values.values()):
        raise ValueError(
            f"{' and '.join(values)} must hold a finite number for each query, or NaN where the "
            f"metric is undefined; numbers are at most {LARGEST**2:g} in absolute value."
        )
    of_queries = None
    if weight is not None:
        of_queries = read_numbers(weight, "sample_weight")
        finite = (of_queries >= 0) & np.isfinite(of_queries)
        if {of_queries.shape} != shapes or not finite.all():
            raise ValueError(
                "sample_weight must hold one finite, non-negative number per query if y_true is "
                "None."
            )
    return {name: {names[0]: each} for name, each in values.items()}, of_queries


def compare_values(
    values: Values,
    weight: Floats | None,
    bounds: Mapping[str, tuple[float, float]],
    baseline: str | None,
    n_resamples: int,
    confidence_level: float,
    random_state: Any,
) -> ComparisonTable:
    """Compare rankings pairwise by each metric, a key of `bounds`."""
    if len(values) < 2:
        raise ValueError(f"There must be at least two rankings; got {len(values)}.")
    if baseline is None:
        pairs = list(itertools.combinations(values, 2))
    elif baseline in values:
        pairs = [(name, baseline) for name in values if name != baseline]
    else:
        raise ValueError(
            f"baseline must be the name of one of the rankings, {', '.join(map(repr, values))}; "
            f"got {baseline!r}."
        )
    rows = [(name, first, second) for name in bounds for first, second in pairs]
    found = [
        compare(
            values[first][name],
            values[second][name],
            weight,
            bounds[name],
            n_resamples,
            confidence_level,
            random_state,
        )
        for name, first, second in rows
    ]
    p_value = np.array([each.p_value for each in found])
    return ComparisonTable(
        metric=np.array([row[0] for row in rows]),
        first=np.array([row[1] for row in rows]),
        second=np.array([row[2] for row in rows]),
        first_mean=np.array([each.first for each in found]),
        second_mean=np.array([each.second for each in found]),
        difference=np.array([each.difference for each in found]),
        low=np.array([each.low for each in found]),
        high=np.array([each.high for each in found]),
        p_value=p_value,
        adjusted_p_value=_holm(p_value),
        n_queries=np.array([each.n_queries for each in found]),
    )


class ComparisonTable(dict[str, NDArray[Any]]):
    """A dict of columns (name to array) that prints as a table.

    ``pandas.DataFrame(table)`` converts it to a data frame.
    """

    def __str__(self) -> str:
        columns = [[name, *map(_text_as(name), values)] for name, values in self.items()]
        widths = [max(map(len, column)) for column in columns]
        left = [values.dtype.kind not in "iuf" for values in self.values()]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if is_left else cell.rjust(width)
                for cell, width, is_left in zip(row, widths, left, strict=True)
            ).rstrip()
            for row in zip(*columns, strict=True)
        )

    __repr__ = __str__


def _text_as(column: str) -> Callable[[Any], str]:
    form = "{:+.4f}" if column in ("difference", "low", "high") else "{:.4f}"
    return lambda value: form.format(value) if isinstance(value, float) else str(value)


def _holm(p_value: Floats) -> Floats:
    """Adjust m p-values by Holm's step-down method.

    The i-th smallest p-value, for i = 1 .. m, is multiplied by m - i + 1. A running maximum then
    keeps the adjusted values in the order of the p-values.
    """
    order = np.argsort(p_value, kind="stable")
    adjusted = np.empty_like(p_value)
    factors = np.arange(len(p_value), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_value[order] * factors), 1.0)
    return adjusted
