"""Plot the differences between two rankings, query by query."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.losses import get_measure
from sklearn_rankcal.metrics import Comparison, paired_bootstrap
from sklearn_rankcal.metrics._checks import Ties, read_compared
from sklearn_rankcal.utils._axes import make_axes, place_legend, shorten
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._rounding import exceeds

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
        The difference of the means with its interval, from `metrics.paired_bootstrap`.
    metric : str, default="metric"
        Name of the metric.
    names : tuple of two str, default=("first", "second")
        Names of the two rankings.
    greater_is_better : bool, default=True
        Whether a larger value of the metric means a better ranking.

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
        as_ranks : bool, default=False
            Whether `first` and `second` are positions, 1 = top, instead of scores.
        metric : str, default="ndcg@10"
            Name of a metric, optionally with a cutoff.
        confidence_level : float, default=0.95
            Confidence level of the interval, as in `metrics.paired_bootstrap`.
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

        Raises
        ------
        ValueError, TypeError
            If the metric or one of its parameters is not valid; if labels and queries do not match;
            or if the metric is undefined on all queries.
        ImportError
            If matplotlib is not installed.
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
        comparison = paired_bootstrap(*values, weight=weight, confidence_level=confidence_level)
        defined = ~np.isnan(values[0]) & ~np.isnan(values[1])
        a, b = (each[defined] for each in values)
        differs = exceeds(np.abs(a - b), 0.0, np.maximum(np.abs(a), np.abs(b)))
        difference = np.where(differs, a - b, 0.0)
        display = cls(
            difference,
            data[0].ranking.queries.ids[defined],
            comparison,
            metric=metric,
            names=(names[0], names[1]),
            greater_is_better=measure.greater_is_better,
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
