"""The plot of the differences of two rankings, query by query."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.measures import Measure, get_measure
from sklearn_rankcal.metrics import Comparison, paired_bootstrap
from sklearn_rankcal.metrics._checks import Ties, read_ranking
from sklearn_rankcal.metrics._scorers import predicted_ranking
from sklearn_rankcal.plotting._axes import make_axes, place_legend, shorten
from sklearn_rankcal.queries import Queries, check_weight
from sklearn_rankcal.utils._names import checks_keywords

Floats = NDArray[np.float64]
#: Colours of Okabe and Ito, which colour-blind people can tell apart.
_FIRST, _SECOND, _MEAN = "#0072B2", "#D55E00", "black"


class QueryDifferencesDisplay:
    """The difference of a metric between two rankings on each query, as bars in descending order.

    Two means hide whether one ranking is a little better everywhere, or much better on a few
    queries and worse on many. Use `from_estimators` or `from_predictions` to make a display.

    Parameters
    ----------
    difference : array-like of shape (n_queries,)
        The metric of the first ranking minus that of the second, for each query on which it is
        defined.
    query : array-like of shape (n_queries,)
        The id of each of these queries.
    comparison : Comparison
        The difference of the means with its interval, from `metrics.paired_bootstrap`.
    metric : str, default="metric"
        The name of the metric.
    names : tuple of two str, default=("first", "second")
        The names of the two rankings.
    greater_is_better : bool, default=True
        Whether a larger value of the metric means a better ranking.

    Attributes
    ----------
    won, tied, lost : int
        The number of queries on which the first ranking is better, equally good, and worse.
        Differences of at most 1e-9 of the larger value count as ties.
    ax_, figure_, bars_, line_
        The axes of matplotlib, their figure, the bars of the queries on which the first ranking is
        better and those of the others, and the line at the mean difference.

    See Also
    --------
    MetricAtKDisplay : A metric against its cutoff, for several rankers.
    sklearn_rankcal.metrics.compare_rankings : The comparison as numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.plotting import QueryDifferencesDisplay
    >>> rng = np.random.default_rng(0)
    >>> groups, y = np.repeat(np.arange(50), 10), rng.integers(0, 3, size=500)
    >>> good, noise = y + rng.normal(size=500), rng.normal(size=500)
    >>> display = QueryDifferencesDisplay.from_predictions(
    ...     y, good, noise, groups=groups, names=("good", "noise")
    ... )
    >>> display.won + display.tied + display.lost, display.comparison.low > 0
    (50, True)

    The query on which the first ranking loses most:

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
        metric: str = "metric",
        names: tuple[str, str] = ("first", "second"),
        greater_is_better: bool = True,
    ):
        self.difference = np.asarray(difference)
        self.query = np.asarray(query)
        self.comparison = comparison
        self.metric = metric
        self.names = names
        self.greater_is_better = greater_is_better
        gained = self.difference if greater_is_better else -self.difference
        self.won = int((gained > 0).sum())
        self.tied = int((gained == 0).sum())
        self.lost = int((gained < 0).sum())

    @classmethod
    @checks_keywords
    def from_estimators(
        cls,
        first: Any,
        second: Any,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        *,
        metric: str = "ndcg@10",
        sample_weight: ArrayLike | None = None,
        n_resamples: int = 10_000,
        confidence_level: float = 0.95,
        random_state: Any = 0,
        names: tuple[str, str] = ("first", "second"),
        ax: Any = None,
        **parameters: Any,
    ) -> Self:
        """Plot the differences of two fitted rankers on the same queries.

        If they need different columns, pass their predictions to `from_predictions`.

        Parameters
        ----------
        first, second : estimator
            Two fitted rankers, pipelines or searches that end in one, or any estimators whose
            `predict` returns scores, such as `LGBMRanker` or a regressor.
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        y : array-like of shape (n_documents,)
            Relevance, or the structured array of `relevance_labels`, or for some metrics that of
            `preference_labels`. In label ranking, what `CalibratedLabelRanker` takes.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row. Required unless `y` or the ranker's `group_column` contains it.
        metric : str, default="ndcg@10"
            The name of a metric, with its cutoff.
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each row. The weight of a query is the mean of the weights of its rows, which
            changes the mean difference, but not the numbers of queries won and lost.
        n_resamples : int, default=10000
            Number of bootstrap samples.
        confidence_level : float, default=0.95
            Confidence level of the interval.
        random_state : int, RandomState instance or None, default=0
            Determines the bootstrap samples.
        names : tuple of two str, default=("first", "second")
            The names of the two rankers.
        ax : matplotlib axes, default=None
            The axes to draw on. If None, a new figure is made.
        **parameters
            Parameters of the metric, such as ``threshold``.

        Returns
        -------
        display : QueryDifferencesDisplay

        Raises
        ------
        ValueError
            If the metric is unknown, if labels and queries do not fit, or if the metric is
            undefined on all queries.
        TypeError
            If the metric does not have one of the parameters.
        ImportError
            If matplotlib is not installed.
        """
        measure = get_measure(metric, **parameters)
        values: list[Floats] = []
        for estimator in (first, second):
            labels, ranking, rows = predicted_ranking(
                estimator, X, y, groups, measure, "QueryDifferencesDisplay"
            )
            measure.check(labels)
            values.append(measure.per_query(ranking, labels))
        weight = check_weight(sample_weight, rows.n_rows)
        options = n_resamples, confidence_level, random_state
        display = cls._of_values(values, rows, weight, measure, metric, names, *options)
        return display.plot(ax)

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
        metric: str = "ndcg@10",
        ties: Ties = "average",
        sample_weight: ArrayLike | None = None,
        n_resamples: int = 10_000,
        confidence_level: float = 0.95,
        random_state: Any = 0,
        names: tuple[str, str] = ("first", "second"),
        ax: Any = None,
        **parameters: Any,
    ) -> Self:
        """Plot the differences of two rankings of the same queries.

        Parameters
        ----------
        first, second : array-like of shape (n_documents,)
            Scores, where larger is better. With ``as_ranks=True``, positions.
        as_ranks : bool, default=False
            Whether `first` and `second` are positions, 1 = top, instead of scores.
        y_true, groups, ties
            As in the metric functions, such as `metrics.ndcg_score`.
        metric, sample_weight, n_resamples, confidence_level, random_state, names, ax
            As in `from_estimators`.
        **parameters
            Parameters of the metric, such as ``threshold``.

        Returns
        -------
        display : QueryDifferencesDisplay

        Raises
        ------
        ValueError, TypeError, ImportError
            As in `from_estimators`.
        """
        measure = get_measure(metric, **parameters)
        values: list[Floats] = []
        for given in (first, second):
            data = read_ranking(
                y_true,
                None if as_ranks else given,
                given if as_ranks else None,
                groups,
                ties,
                sample_weight,
                positions_as="rankings with as_ranks=True",
            )
            values.append(data.values(measure))
        queries = data.ranking.queries
        options = n_resamples, confidence_level, random_state
        display = cls._of_values(values, queries, data.weight, measure, metric, names, *options)
        return display.plot(ax)

    @classmethod
    def _of_values(
        cls,
        values: list[Floats],
        queries: Queries,
        weight: Floats | None,
        measure: Measure,
        metric: str,
        names: tuple[str, str],
        n_resamples: int,
        confidence_level: float,
        random_state: Any,
    ) -> Self:
        """Make a display from the values of each query for both rankings."""
        if isinstance(names, str) or len(names) != 2:
            raise ValueError(f"names must be the names of the two rankings; got {names!r}.")
        comparison = paired_bootstrap(
            *values,
            weight=None if weight is None else queries.mean(weight / weight.max()),
            n_resamples=n_resamples,
            confidence_level=confidence_level,
            random_state=random_state,
        )
        defined = ~np.isnan(values[0]) & ~np.isnan(values[1])
        a, b = (each[defined] for each in values)
        difference = a - b
        difference[np.abs(difference) <= 1e-9 * np.maximum(np.abs(a), np.abs(b))] = 0.0
        return cls(
            difference,
            queries.ids[defined],
            comparison,
            metric=metric,
            names=(names[0], names[1]),
            greater_is_better=measure.greater_is_better,
        )

    def plot(self, ax: Any = None) -> Self:
        """Plot the differences in descending order, with their mean.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            The axes to draw on. If None, a new figure is made.

        Returns
        -------
        display : QueryDifferencesDisplay
            This display.
        """
        ax = make_axes() if ax is None else ax
        heights, n = np.sort(self.difference)[::-1], len(self.difference)
        edges = np.arange(n + 1) + 0.5
        one, other = (shorten(name) for name in self.names)
        counts = self.won, self.lost
        if not self.greater_is_better:  # the bars above 0 are then those that the first loses
            counts = self.lost, self.won
            one, other = other, one
        colors = (_FIRST, _SECOND) if self.greater_is_better else (_SECOND, _FIRST)
        above = ax.stairs(
            np.maximum(heights, 0),
            edges,
            fill=True,
            color=colors[0],
            label=f"{one} is better: {counts[0]}",
        )
        below = ax.stairs(
            np.minimum(heights, 0),
            edges,
            fill=True,
            color=colors[1],
            hatch="////",
            edgecolor="white",
            linewidth=0,
            label=f"{other} is better: {counts[1]}",
        )
        ax.plot([], [], " ", label=f"equal: {self.tied}")
        self.bars_ = (above, below) if self.greater_is_better else (below, above)
        found = self.comparison
        interval = f"{100 * found.confidence_level:g} % interval"
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
