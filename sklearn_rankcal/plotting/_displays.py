"""Displays of metrics: a metric against its cutoff, and the differences of two rankings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_rankcal.losses import MEASURES, Measure, get_measure
from sklearn_rankcal.losses._registry import settable_parameters
from sklearn_rankcal.metrics import Comparison
from sklearn_rankcal.metrics._checks import Ties, read_compared, read_ranking
from sklearn_rankcal.metrics._intervals import compare, mean_interval
from sklearn_rankcal.metrics._ranking_scorer import predicted_ranking
from sklearn_rankcal.utils._axes import STYLES, make_axes, place_legend, shorten
from sklearn_rankcal.utils._estimators import innermost_estimator
from sklearn_rankcal.utils._messages import checks_keywords
from sklearn_rankcal.utils._numbers import Floats, Ints, exceeds, read_whole


class MetricAtKDisplay:
    """Visualisation of the mean of a metric against its cutoff k, with an interval.

    Use `from_estimator` or `from_predictions` to make one. To plot several rankers, pass the
    ``ax_`` of the first display as ``ax`` to the next ones. Do not compare rankers by their
    intervals; use `QueryDifferencesDisplay`.

    Parameters
    ----------
    k : array-like of int of shape (n_cutoffs,)
        The cutoffs, in ascending order.
    mean : array-like of float of shape (n_cutoffs,)
        Mean of the metric over queries at each cutoff.
    low, high : array-like of float of shape (n_cutoffs,)
        Bounds of the interval of each mean.
    metric : str
        Name of the metric, without a cutoff.
    name : str, default=None
        Name of the ranker in the legend. If None, it is not in the legend.
    n_queries : int, default=None
        Number of queries on which the metric is defined.
    confidence_level : float, default=0.95
        Confidence level of the intervals.

    Attributes
    ----------
    ax_ : matplotlib axes
        The axes of the plot.
    figure_ : matplotlib figure
        The figure of the axes.
    line_ : matplotlib line
        The curve.
    interval_ : matplotlib collection
        The band of the intervals.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.plotting import MetricAtKDisplay
    >>> data = make_ranking(n_queries=60, random_state=0)
    >>> ranker = CalibratedRanker(Ridge()).fit(data.X, data.y, data.groups)
    >>> display = MetricAtKDisplay.from_estimator(
    ...     ranker, data.X, data.y, data.groups, k=5, name="ridge"
    ... )
    >>> second = MetricAtKDisplay.from_predictions(
    ...     data.y, data.X[:, 0], groups=data.groups, k=5, name="first column", ax=display.ax_
    ... )
    >>> [text.get_text() for text in second.ax_.get_legend().get_texts()]
    ['ridge', 'first column']
    """

    def __init__(
        self,
        k: ArrayLike,
        mean: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        *,
        metric: str,
        name: str | None = None,
        n_queries: int | None = None,
        confidence_level: float = 0.95,
    ):
        self.k = np.asarray(k)
        self.mean = np.asarray(mean)
        self.low = np.asarray(low)
        self.high = np.asarray(high)
        self.metric = metric
        self.name = name
        self.n_queries = n_queries
        self.confidence_level = confidence_level

    @classmethod
    @checks_keywords
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        *,
        metric: str | Measure = "ndcg",
        k: int | Sequence[int] | NDArray[Any] = 10,
        sample_weight: ArrayLike | None = None,
        confidence_level: float = 0.95,
        name: str | None = None,
        ax: Any = None,
        line_kw: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> Self:
        """Plot a metric of a fitted ranker against the cutoff.

        Parameters
        ----------
        estimator : estimator
            A fitted ranker, or any fitted estimator with scores as predictions.
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        y : array-like of shape (n_documents,)
            Relevance, or the structured array of `relevance_labels`.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row. Required unless `y` or the ranker's `group_column` contains it.
        metric : str or Measure, default="ndcg"
            Name of a metric with a cutoff, without the cutoff: ``"dcg"``, ``"err"``, ``"map"``,
            ``"mrr"``, ``"ndcg"``, ``"precision"`` or ``"recall"``. Or an object with a parameter
            `k`, which is set to each cutoff.
        k : int or array-like of int, default=10
            The cutoffs. An int means all cutoffs from 1 to this number.
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each row. The weight of a query is the mean weight of its rows.
        confidence_level : float, default=0.95
            Confidence level of the intervals, which are computed as in `metrics.evaluate_rankings`.
        name : str, default=None
            Name of the ranker in the legend. If None, the name of its class.
        ax, line_kw
            As in `plot`.
        **parameters
            Parameters of the metric, such as ``threshold``.

        Returns
        -------
        display : MetricAtKDisplay
            The display, after plotting.
        """
        metric, cutoffs, measures = _measures(metric, k, parameters)
        labels, ranking, _, of_query = predicted_ranking(
            estimator, X, y, groups, sample_weight, measures[0], "MetricAtKDisplay"
        )
        measures[0].check(labels)
        values = [measure.per_query(ranking, labels) for measure in measures]
        name = type(innermost_estimator(estimator)).__name__ if name is None else name
        bounds = measures[0].bounds
        display = cls._of_values(cutoffs, values, of_query, bounds, metric, name, confidence_level)
        return display.plot(ax, line_kw=line_kw)

    @classmethod
    @checks_keywords
    def from_predictions(
        cls,
        y_true: Any,
        y_score: ArrayLike | None = None,
        *,
        ranks: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        metric: str | Measure = "ndcg",
        k: int | Sequence[int] | NDArray[Any] = 10,
        ties: Ties = "average",
        sample_weight: ArrayLike | None = None,
        confidence_level: float = 0.95,
        name: str | None = None,
        ax: Any = None,
        line_kw: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> Self:
        """Plot a metric of scores or positions against the cutoff.

        Parameters
        ----------
        y_true, y_score, ranks, groups, ties, sample_weight
            As in the metric functions, such as `metrics.ndcg_score`.
        metric, k, confidence_level, ax, line_kw, **parameters
            As in `from_estimator`.
        name : str, default=None
            Name of the ranker in the legend. If None, it is not in the legend.

        Returns
        -------
        display : MetricAtKDisplay
            The display, after plotting.
        """
        metric, cutoffs, measures = _measures(metric, k, parameters)
        data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
        values, weight = [data.values(measure) for measure in measures], data.query_weight()
        bounds = measures[0].bounds
        display = cls._of_values(cutoffs, values, weight, bounds, metric, name, confidence_level)
        return display.plot(ax, line_kw=line_kw)

    @classmethod
    def _of_values(
        cls,
        cutoffs: Ints,
        values: list[Floats],
        weight: Floats | None,
        bounds: tuple[float, float],
        metric: str,
        name: str | None,
        confidence_level: float,
    ) -> Self:
        """Make a display from the values of each query."""
        found = [mean_interval(each, weight, bounds, confidence_level) for each in values]
        return cls(
            cutoffs,
            [each.mean for each in found],
            [each.low for each in found],
            [each.high for each in found],
            metric=metric,
            name=name,
            n_queries=found[0].n_queries,
            confidence_level=confidence_level,
        )

    def plot(self, ax: Any = None, *, line_kw: dict[str, Any] | None = None) -> Self:
        """Plot the curve with the band of its intervals.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Axes to plot on. If None, a new figure is made. Each curve in the same axes has its own
            colour, line style and marker.
        line_kw : dict, default=None
            Keyword arguments of `matplotlib.axes.Axes.plot` for the curve.

        Returns
        -------
        display : MetricAtKDisplay
            This display.
        """
        ax = make_axes() if ax is None else ax
        style, marker, color = STYLES[len(ax.lines) % len(STYLES)]
        options: dict[str, Any] = {
            "linestyle": style,
            "marker": marker,
            "markersize": 5,
            "color": color,
            # matplotlib omits labels that start with an underscore from legends
            "label": "_" if self.name is None else shorten(self.name).lstrip("_"),
        }
        (self.line_,) = ax.plot(self.k, self.mean, **(options | (line_kw or {})))
        self.interval_ = ax.fill_between(
            self.k, self.low, self.high, color=self.line_.get_color(), alpha=0.15, linewidth=0
        )
        title = self.metric.upper() if self.metric in _CAPITALS else self.metric.removesuffix("()")
        level = f"{100 * self.confidence_level:g} %"
        ax.set(xlabel="cutoff k", ylabel=f"{title}@k, with {level} intervals")
        if len(self.k) <= 12 and self.k[-1] <= 12:
            ax.set_xticks(self.k)
        else:
            ax.xaxis.get_major_locator().set_params(integer=True)
        self.ax_, self.figure_ = ax, ax.figure
        if ax.get_legend_handles_labels()[1]:
            ax.autoscale(axis="y")  # remove the room of an earlier legend
            place_legend(ax)
        return self


_MOST_CUTOFFS = 1000  # each has a metric of all queries
#: Metrics with abbreviations as names.
_CAPITALS = ("dcg", "err", "map", "mrr", "ndcg")


def _measures(metric: Any, k: Any, parameters: dict[str, Any]) -> tuple[str, Ints, list[Measure]]:
    """Return the name of the metric, the cutoffs in ascending order, and a measure for each."""
    if isinstance(metric, str):
        base, _, cutoff = metric.partition("@")
        having = [name for name in MEASURES if "k" in settable_parameters(name)]
        if "k" not in settable_parameters(metric):
            raise ValueError(
                f"The metric {metric!r} has no cutoff. Choose one of {', '.join(having)}."
            )
        if cutoff:
            raise ValueError(
                f"metric={metric!r} has a cutoff. To plot all cutoffs from 1 to {cutoff}, pass "
                f"metric={base!r} and k={cutoff}."
            )
        parameters = {"k": 1, **parameters}
    measure = get_measure(metric, **parameters)
    cutoffs = np.unique(read_whole(k, "k"))
    if not len(cutoffs) or cutoffs[0] < 1:
        raise ValueError(f"k must hold whole numbers >= 1; got {k!r}.")
    if max(len(cutoffs), cutoffs[0] if np.ndim(k) == 0 else 0) > _MOST_CUTOFFS:
        raise ValueError(f"k has more than {_MOST_CUTOFFS} cutoffs. Pass a shorter list.")
    if np.ndim(k) == 0:
        cutoffs = np.arange(1, cutoffs[0] + 1)
    measures = [clone(measure).set_params(k=each) for each in (None, *cutoffs.tolist())]
    return metric if isinstance(metric, str) else str(measures[0]), cutoffs, measures[1:]


#: Colours of Okabe and Ito, which differ for colour-blind people.
_FIRST, _SECOND, _MEAN = "#0072B2", "#D55E00", "black"


class QueryDifferencesDisplay:
    """Visualisation of the difference between two rankings on each query, as sorted bars.

    The plot shows whether one ranking is slightly better on most queries, or much better on a few
    queries and worse on many. Use `from_predictions` to make one.

    Parameters
    ----------
    difference : array-like of shape (n_queries,)
        Metric of the first ranking minus metric of the second ranking, for each query on which the
        metric is defined.
    query : array-like of shape (n_queries,)
        Query id of each difference.
    comparison : Comparison
        The difference of the means with its interval, from `metrics.compare_rankings`.
    metric : str or Measure, default="metric"
        The metric, or its name.
    names : tuple of two str, default=("first", "second")
        Names of the two rankings.

    Attributes
    ----------
    won, tied, lost : int
        Number of queries on which the first ranking is better, equally good (up to 1e-9 of the
        larger value), and worse.
    ax_ : matplotlib axes
        The axes of the plot.
    figure_ : matplotlib figure
        The figure of the axes.
    bars_ : tuple of two matplotlib patches
        The bars of the queries on which the first ranking is better, and of all other queries.
    line_ : matplotlib line
        The line at the mean difference.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.plotting import QueryDifferencesDisplay
    >>> rng = np.random.default_rng(0)
    >>> groups, y = np.repeat(np.arange(50), 10), rng.integers(0, 3, size=500)
    >>> good, noise = y + rng.normal(size=500), rng.normal(size=500)
    >>> display = QueryDifferencesDisplay.from_predictions(y, good, noise, groups=groups)
    >>> display.won + display.tied + display.lost, display.comparison.low > 0
    (50, True)

    Find the query on which the first ranking is worst compared with the second:

    >>> worst = np.argmin(display.difference)
    >>> int(display.query[worst]), round(float(display.difference[worst]), 2)
    (27, -0.15)
    """

    def __init__(
        self,
        difference: ArrayLike,
        query: ArrayLike,
        comparison: Comparison,
        *,
        metric: str | Measure = "metric",
        names: tuple[str, str] = ("first", "second"),
    ):
        self.difference = np.asarray(difference)
        self.query = np.asarray(query)
        self.comparison = comparison
        self.metric = str(metric)
        self.names = names
        kind: Any = metric
        if isinstance(metric, str):
            kind = MEASURES.get(metric.partition("@")[0])
        self.greater_is_better = kind is None or kind.greater_is_better
        gained = self.difference if self.greater_is_better else -self.difference
        self.won = int((gained > 0).sum())
        self.tied = int((gained == 0).sum())
        self.lost = int((gained < 0).sum())

    @classmethod
    @checks_keywords
    def from_predictions(
        cls,
        y_true: Any,
        first: ArrayLike,
        second: ArrayLike,
        *,
        as_ranks: bool = False,
        groups: ArrayLike | None = None,
        metric: str | Measure = "ndcg@10",
        ties: Ties = "average",
        sample_weight: ArrayLike | None = None,
        confidence_level: float = 0.95,
        names: tuple[str, str] = ("first", "second"),
        ax: Any = None,
        **parameters: Any,
    ) -> Self:
        """Plot the differences between two rankings of the same queries.

        Parameters
        ----------
        y_true, groups, ties, sample_weight
            As in the metric functions, such as `metrics.ndcg_score`. Weights affect the mean
            difference, but not the numbers of queries won and lost.
        first, second : array-like of shape (n_documents,)
            Scores, larger is better, or positions if ``as_ranks=True``.
        as_ranks, confidence_level
            As in `metrics.compare_rankings`.
        metric : str or Measure, default="ndcg@10"
            Name of a metric, optionally with a cutoff, or an object such as ``NDCG(k=10)``.
        names : tuple of two str, default=("first", "second")
            Names of the two rankings.
        ax : matplotlib axes, default=None
            Axes to plot on. If None, a new figure is made.
        **parameters
            Parameters of the metric, such as ``threshold``.

        Returns
        -------
        display : QueryDifferencesDisplay
            The display, after plotting.
        """
        if isinstance(names, str) or len(names) != 2:
            raise ValueError(f"names must be the names of the two rankings; got {names!r}.")
        measure = get_measure(metric, **parameters)
        data = [
            read_compared(y_true, given, as_ranks, groups, ties, sample_weight)
            for given in (first, second)
        ]
        values = [each.values(measure) for each in data]
        weight = data[0].query_weight()
        a, b = values
        comparison = compare(a, b, weight, measure.bounds, 10_000, confidence_level, 0)
        defined = ~np.isnan(a) & ~np.isnan(b)
        a, b = a[defined], b[defined]
        differs = exceeds(np.abs(a - b), 0.0, np.maximum(np.abs(a), np.abs(b)))
        difference = np.where(differs, a - b, 0.0)
        display = cls(
            difference,
            data[0].ranking.queries.ids[defined],
            comparison,
            metric=metric,
            names=(names[0], names[1]),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Plot the differences in descending order, with their mean.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Axes to plot on. If None, a new figure is made.

        Returns
        -------
        display : QueryDifferencesDisplay
            This display.
        """
        ax = make_axes() if ax is None else ax
        heights, n = np.sort(self.difference)[::-1], len(self.difference)
        edges = np.arange(n + 1) + 0.5
        labels = [
            f"{shorten(name)} is better: {count}"
            for name, count in zip(self.names, (self.won, self.lost), strict=True)
        ]
        hatch = {"hatch": "////", "edgecolor": "white", "linewidth": 0}
        sides = [np.maximum(heights, 0), np.minimum(heights, 0)]
        looks: list[dict[str, Any]] = [
            {"color": _FIRST, "label": labels[0]},
            {"color": _SECOND, "label": labels[1]},
        ]
        if not self.greater_is_better:  # the first ranking is worse if the bar is above 0
            looks.reverse()
        looks[1] |= hatch
        bars = [
            ax.stairs(side, edges, fill=True, **look)
            for side, look in zip(sides, looks, strict=True)
        ]
        ax.plot([], [], " ", label=f"equal: {self.tied}")
        self.bars_ = tuple(bars if self.greater_is_better else reversed(bars))
        found = self.comparison
        interval = f"{100 * found.confidence_level:g} % interval"
        if np.isfinite([found.low, found.high]).all():  # infinite for a single query
            ax.axhspan(found.low, found.high, color=_MEAN, alpha=0.25, linewidth=0)
        self.line_ = ax.axhline(
            found.difference,
            color=_MEAN,
            linestyle="--",
            linewidth=1.2,
            label=f"mean difference {found.difference:+.3g}\n"
            f"{interval} [{found.low:+.3g}, {found.high:+.3g}]",
        )
        ax.axhline(0, color="0.3", linewidth=0.8)
        ax.set(
            xlim=(edges[0], edges[-1]),
            xlabel="queries, sorted by difference",
            ylabel=f"difference of {self.metric}",
        )
        ax.xaxis.get_major_locator().set_params(integer=True)
        self.ax_, self.figure_ = ax, ax.figure
        place_legend(ax)
        return self
