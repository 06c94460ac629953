"""Plots of leaderboards: scores with error bars, and probabilities of one item above another."""

from __future__ import annotations

from typing import Any

import numpy as np

from sklearn_rankcal.labels._item_ids import content_ranks
from sklearn_rankcal.utils._axes import STYLES, make_axes, shorten
from sklearn_rankcal.utils._numbers import exceeds, order_from_largest


def plot_aggregate(aggregate: Any, group: Any = None, *, ax: Any = None) -> Any:
    """Plot a leaderboard: the score of each item, with error bars if there are intervals.

    The best item is on top. Arrows mark infinite intervals. The ranks, or their intervals, are on
    the right. A dashed line separates items that no comparisons connect.

    Parameters
    ----------
    aggregate : Aggregate
        The result of `aggregate`.
    group : object, default=None
        Query id. Not needed if there is only one query. If None, the result of
        `aggregate_categories <aggregation.aggregate_categories>` is plotted with all categories in
        one row per item, sorted by mean score.
    ax : matplotlib axes, default=None
        Axes to plot on. If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Raises
    ------
    ValueError
        If there is no such query, or if there are several queries and `group` is None.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements, aggregate
    >>> from sklearn_rankcal.datasets import make_arena
    >>> from sklearn_rankcal.plotting import plot_aggregate
    >>> data = make_arena(500, n_models=4, random_state=0)
    >>> votes = Judgements.from_votes(data.model_a, data.model_b, data.winner)
    >>> ax = plot_aggregate(aggregate(votes))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['m3', 'm0', 'm2', 'm1']
    """
    if group is None and aggregate.category_spread is not None:
        return _plot_categories(aggregate, ax)
    rows = aggregate._rows_by_part(group)
    parts = aggregate.parts[rows]
    starts = np.flatnonzero(parts[1:] != parts[:-1]) + 1  # where a new part begins
    y = np.arange(len(rows)) + np.searchsorted(starts, np.arange(len(rows)), side="right")
    n = int(y[-1]) + 1  # a line for each item, and one between two parts
    if ax is None:
        ax = make_axes(figsize=(6.5, 1.2 + 0.24 * n))
    if aggregate.score_low is not None:
        low, high = aggregate.score_low[rows], aggregate.score_high[rows]
        edge = _edges(aggregate.scores[rows], low, high)
        _draw_intervals(ax, y, low, high, edge, color="tab:blue", alpha=0.45)
        ranks = zip(aggregate.rank_low[rows], aggregate.rank_high[rows], strict=True)
        labels = [str(low) if low == high else f"{low}\N{EN DASH}{high}" for low, high in ranks]
        level = f"{100 * aggregate.confidence_level:g} %"
        titles = f"score, with {level} intervals", f"ranks, {level} intervals"
    else:
        labels, titles = [str(rank) for rank in aggregate.ranks[rows]], ("score", "rank")
    ax.plot(aggregate.scores[rows], y, "o", color="tab:blue", markersize=5)
    # The font size depends on the height of a row, between 5 and 10 points.
    points = ax.get_window_extent().height / ax.figure.dpi * 72 / n
    size = float(np.clip(0.75 * points, 5, 10))
    ax.set_yticks(y, [shorten(item) for item in aggregate.items[rows].tolist()], fontsize=size)
    for start in starts:
        text = "not compared with the items above" if parts[start] else "in no comparison"
        ax.axhline(y[start] - 1, color="0.4", linewidth=1, linestyle="--")
        box = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 1}
        place = ax.get_yaxis_transform()  # the middle of the axes, at this height
        ax.text(
            0.5, y[start] - 1, text, size=size, ha="center", va="center", transform=place, bbox=box
        )
    ax.grid(axis="y", color="0.92")
    ax.set_axisbelow(True)
    ax.set(xlabel=titles[0], ylim=(n - 0.4, -0.6))
    right = ax.twinx()
    right.set_yticks(y, labels, fontsize=size)
    right.set_ylabel(titles[1], labelpad=8)
    right.set(ylim=ax.get_ylim())
    for side in (ax, right):
        side.tick_params(axis="y", length=0)
        side.spines[["top", "left", "right"]].set_visible(False)
    return ax


def _edges(*values: Any) -> Any:
    """Return the places of the arrows that mark infinite intervals."""
    known = np.concatenate(values)
    known = known[np.isfinite(known)]
    edge = np.array([known.min(initial=np.inf), known.max(initial=-np.inf)])
    return edge + 0.1 * np.array([-1, 1]) * max(edge[1] - edge[0], 1e-3)


def _draw_intervals(ax: Any, y: Any, low: Any, high: Any, edge: Any, **style: Any) -> None:
    """Draw lines from low to high, with arrows at infinite ends."""
    ax.hlines(y, *np.clip([low, high], *edge), linewidth=3, **style)
    for end, x, marker in ((low, edge[0], "<"), (high, edge[1], ">")):
        where = y[np.isinf(end)]
        ax.scatter(np.full(len(where), x), where, marker=marker, **style)


def _plot_categories(aggregate: Any, ax: Any) -> Any:
    """Plot the scores of all categories, with one item per row."""
    ids = aggregate.judgements.queries.ids
    n, k = len(aggregate.items) // len(ids), len(ids)
    scores, low, high = (
        values.reshape(k, n)  # each category has all items, in the same order
        for values in (aggregate.scores, aggregate.score_low, aggregate.score_high)
    )
    known = np.isfinite(scores)
    mean = np.where(known, scores, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    order = order_from_largest(mean, content_ranks(aggregate.items[:n]))
    if ax is None:
        ax = make_axes(figsize=(8, 1.2 + n * (0.15 + 0.13 * k)))
    edge = _edges(scores.ravel(), low.ravel(), high.ravel())
    for c in range(k):
        y = np.arange(n) + 0.8 * ((c + 0.5) / k - 0.5)
        colour, marker = STYLES[c % len(STYLES)][2], STYLES[(c + c // len(STYLES)) % len(STYLES)][1]
        _draw_intervals(ax, y, low[c, order], high[c, order], edge, color=colour, alpha=0.45)
        label = shorten(ids[c])
        ax.plot(scores[c, order], y, marker, color=colour, markersize=5, label=label)
    ax.set_yticks(np.arange(n), [shorten(item) for item in aggregate.items[order].tolist()])
    level = f"{100 * aggregate.confidence_level:g} %"
    ax.hlines(np.arange(n - 1) + 0.5, *edge, color="0.9", linewidth=1, zorder=0)
    ax.set(xlabel=f"score, with {level} intervals", ylim=(n - 0.5, -0.5))
    ax.legend(title="category", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "left", "right"]].set_visible(False)
    return ax


def plot_probability_above(aggregate: Any, group: Any = None, *, ax: Any = None) -> Any:
    """Plot the probability that one item is above another, for all pairs of items.

    The plot shows `Aggregate.probability_matrix`, the share of resamples in which the item of the
    row is above the item of the column. The best item is at the top left. With up to 15 items, the
    cells contain percentages, in bold if one item of the pair is above the other in at least a
    share (1 + confidence_level) / 2 of the resamples. Pairs that no comparisons connect are empty.

    Parameters
    ----------
    aggregate : Aggregate
        The result of `aggregate` with ``n_resamples``.
    group : object, default=None
        Query id. Not needed if there is only one query.
    ax : matplotlib axes, default=None
        Axes to plot on. If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Raises
    ------
    ValueError
        If there are no resamples, if there is no such query, or if there are several queries and
        `group` is None.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements, aggregate
    >>> from sklearn_rankcal.datasets import make_arena
    >>> from sklearn_rankcal.plotting import plot_probability_above
    >>> data = make_arena(500, n_models=4, random_state=0)
    >>> votes = Judgements.from_votes(data.model_a, data.model_b, data.winner)
    >>> ax = plot_probability_above(aggregate(votes, n_resamples=100, random_state=0))
    """
    matrix = aggregate.probability_matrix(group)
    rows = aggregate._rows_by_part(group)
    place = {row: k for k, row in enumerate(aggregate.rows_of(group).tolist())}
    order = [place[row] for row in rows.tolist()]
    matrix = matrix[np.ix_(order, order)]
    names = [shorten(item) for item in aggregate.items[rows].tolist()]
    n = len(names)
    if ax is None:
        side = float(np.clip(2 + 0.4 * n, 4, 14))
        ax = make_axes(figsize=(side + 1, side))
    shown = 100 * matrix
    np.fill_diagonal(shown, np.nan)
    image = ax.imshow(shown, cmap="RdBu_r", vmin=0, vmax=100)
    ax.figure.colorbar(image, ax=ax, shrink=0.7, label="% of resamples with row above column")
    size = 10 if n <= 30 else 5
    ax.set_xticks(range(n), names, rotation=90, fontsize=size)
    ax.set_yticks(range(n), names, fontsize=size)
    if n <= 15:
        for i, j in np.argwhere(~np.isnan(shown)):
            color = "white" if abs(shown[i, j] - 50) > 30 else "black"
            clear = not exceeds(aggregate.confidence_level / 2, abs(matrix[i, j] - 0.5), 0.5)
            style = {"color": color, "fontsize": 9, "weight": "bold" if clear else "normal"}
            ax.text(j, i, f"{shown[i, j]:.0f}", ha="center", va="center", **style)
    return ax


def plot_alternatives(audit: Any, *, ax: Any = None) -> Any:
    """Plot how the ranks of a leaderboard change under alternative models of its votes.

    Each of the first 20 items is a line from model to model. Items with changing ranks are
    coloured.

    Parameters
    ----------
    audit : Audit
        The result of `Aggregate.audit`.
    ax : matplotlib axes, default=None
        Axes to plot on. If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Raises
    ------
    ValueError
        If the audit covers several queries.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements, aggregate
    >>> from sklearn_rankcal.datasets import make_arena
    >>> from sklearn_rankcal.plotting import plot_alternatives
    >>> data = make_arena(500, n_models=4, random_state=0)
    >>> votes = Judgements.from_votes(data.model_a, data.model_b, data.winner)
    >>> audit = aggregate(votes).audit()
    >>> ax = plot_alternatives(audit)
    >>> list(audit.alternatives)[:2]
    ['as fitted', 'with position']
    """
    names = list(audit.alternatives)
    if not names:
        raise ValueError("An audit of several queries has no ranks. Pass group= to audit.")
    ranks = np.array([audit.alternatives[name] for name in names])[:, :20]
    n = ranks.shape[1]
    if ax is None:
        ax = make_axes(figsize=(1.4 + 1.25 * len(names), 1.2 + 0.26 * n))
    x = np.arange(len(names))
    for k in range(n):
        moved = bool((ranks[:, k] != ranks[0, k]).any())
        colour = STYLES[k % len(STYLES)][2]
        style = {"color": colour, "linewidth": 2.2} if moved else {"color": "0.7"}
        ax.plot(x, ranks[:, k], marker="o", markersize=4, zorder=3 if moved else 2, **style)
    labels = [shorten(item) for item in audit.items[:n].tolist()]
    ax.set_yticks(ranks[0], labels, fontsize=9)
    titles = [name.replace(": ", ":\n").replace(" ", "\n", 1) for name in names]
    ax.set_xticks(x, titles, fontsize=8)
    ax.xaxis.tick_top()
    ax.set(xlim=(-0.2, len(names) - 0.8), ylim=(max(n, ranks.max()) + 0.6, 0.4))
    ax.spines[["right", "bottom"]].set_visible(False)
    right = ax.twinx()
    right.set_yticks(np.unique(ranks))
    right.tick_params(labelsize=8)
    right.set(ylim=ax.get_ylim(), ylabel="rank")
    right.spines[["left", "bottom", "top"]].set_visible(False)
    ax.grid(axis="x", color="0.92")
    ax.set_axisbelow(True)
    return ax
