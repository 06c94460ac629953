"""Plots of leaderboards, and of preferences as a matrix or as a graph with arrows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from sklearn_rankcal.labels._item_ids import content_ranks
from sklearn_rankcal.losses import Choice, ChoiceLogLoss
from sklearn_rankcal.metrics._checks import read_ranking
from sklearn_rankcal.queries._ranking import check_scores, ranks_to_order
from sklearn_rankcal.utils._axes import STYLES, make_axes, settle, shorten
from sklearn_rankcal.utils._messages import check_count, check_number
from sklearn_rankcal.utils._numbers import Floats, Ints, exceeds, order_from_largest, read_numbers


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

    The plot shows `Aggregate.probability_matrix`: how probable it is that the item of the row is
    above the item of the column. The best item is at the top left. With up to 15 items, the cells
    contain percentages, in bold if the order of the pair is clear: if one of its items is above the
    other with probability (1 + confidence_level) / 2. Pairs that no comparisons connect are empty.

    Parameters
    ----------
    aggregate : Aggregate
        The result of `aggregate` with intervals.
    group : object, default=None
        Query id. Not needed if there is only one query.
    ax : matplotlib axes, default=None
        Axes to plot on. If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements, aggregate
    >>> from sklearn_rankcal.datasets import make_arena
    >>> from sklearn_rankcal.plotting import plot_probability_above
    >>> data = make_arena(500, n_models=4, random_state=0)
    >>> votes = Judgements.from_votes(data.model_a, data.model_b, data.winner)
    >>> ax = plot_probability_above(aggregate(votes, intervals="robust"))
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
    ax.figure.colorbar(image, ax=ax, shrink=0.7, label="probability that row is above column, %")
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


def plot_choice_calibration(
    y_true: Any,
    y_prob: Any,
    groups: Any = None,
    *,
    n_bins: int = 10,
    confidence_level: float = 0.95,
    ax: Any = None,
) -> Any:
    """Plot how often documents with a predicted choice probability were chosen.

    Documents are divided into bins of about equal size by their probability. A point shows the mean
    probability of a bin, and the share of its documents that were chosen. The bar at the point is
    where this share falls with probability `confidence_level` if the probabilities are right [1]_.
    Points outside their bars show that they are not. Use choices that were not in `fit`.

    Parameters
    ----------
    y_true, y_prob, groups
        As in `metrics.choice_log_loss`. Numbers of choices count as shares.
    n_bins : int, default=10
        Number of bins.
    confidence_level : float, default=0.95
        Confidence level of the bars.
    ax : matplotlib axes, default=None
        Axes to plot on. If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Notes
    -----
    A choice falls into a bin at most once. The number of chosen documents of a bin is therefore a
    sum of independent trials, one per query. It varies at most as much as with as many trials of
    equal probability [2]_, whose quantiles are the ends of the bar.

    References
    ----------
    .. [1] J. Bröcker and L. A. Smith (2007). Increasing the reliability of reliability diagrams.
       Weather and Forecasting 22, 651-661.
    .. [2] W. Hoeffding (1956). On the distribution of the number of successes in independent
       trials. Annals of Mathematical Statistics 27, 713-721.

    Examples
    --------
    >>> from sklearn_rankcal.plotting import plot_choice_calibration
    >>> ax = plot_choice_calibration([1, 0, 0, 1], [0.6, 0.4, 0.3, 0.7], [0, 0, 1, 1], n_bins=2)
    """
    check_count(n_bins, "n_bins")
    check_number(confidence_level, "confidence_level", "(0, 1)")
    data = read_ranking(y_true, y_prob, None, groups)
    queries, chances = data.ranking.queries, np.asarray(data.ranking.scores)
    known = queries.broadcast(~np.isnan(data.values(ChoiceLogLoss())))
    shares = Choice().utilities(data.relevance, queries)[known]
    chances, codes = chances[known], queries.codes[known]
    if not len(chances):
        raise ValueError("In no choice of several alternatives, one was chosen.")
    ends = np.quantile(chances, np.arange(1, n_bins) / n_bins)
    bins = np.searchsorted(ends, chances, side="right")
    if ax is None:
        ax = make_axes(figsize=(5, 5))
    for rows in (np.flatnonzero(bins == number) for number in np.unique(bins)):
        _, trials = np.unique(codes[rows], return_inverse=True)
        each, x = np.bincount(trials, chances[rows]), chances[rows].mean()
        ends = binom.interval(confidence_level, len(each), min(1.0, each.mean()))
        ax.vlines(x, *np.array(ends) / len(rows), linewidth=4, color="tab:blue", alpha=0.45)
        ax.plot(x, shares[rows].mean(), "o", color="tab:blue", markersize=5)
    ax.axline((0, 0), slope=1, color="0.6", linewidth=1, linestyle="--")
    ax.set(xlabel="predicted probability", ylabel="share that was chosen")
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


#: Up to this number of documents, all arrows are plotted by default.
_FEW = 10
#: Colours of arrows. Vermillion (Okabe and Ito) differs from grey for colour-blind people.
_AGREES, _AGAINST = "0.35", "#D55E00"
_GAP = 4.0  # between names and arrows, in points
#: Up to this number of documents, names are horizontal.
_MOST_LEVEL = 8


def plot_matrix(u: ArrayLike, ranks: ArrayLike | None = None, *, ax: Any = None) -> Any:
    """Plot predictions for pairs as a coloured matrix, with documents in the order of a ranking.

    Parameters
    ----------
    u : array-like of shape (r, r)
        Matrix of differences of preferences, or symmetric matrix, for example from
        `CalibratedRanker.predict_preferences`.
    ranks : array-like of shape (r,), default=None
        Position of each document, 1 = top. If u contains differences, the ranking agrees with red
        entries above the diagonal and contradicts blue entries. If None, documents keep their
        order.
    ax : matplotlib axes, default=None
        Axes to plot on. If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Examples
    --------
    >>> from sklearn_rankcal.plotting import plot_matrix
    >>> ax = plot_matrix([[0, 1, 0.5], [-1, 0, -0.2], [-0.5, 0.2, 0]], ranks=[1, 3, 2])
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['0', '2', '1']
    """
    matrix, order = read_matrix(u, ranks)
    ax = make_axes() if ax is None else ax
    size = np.abs(matrix).max() or 1.0
    shown = matrix[np.ix_(order, order)]
    image = ax.imshow(shown, cmap="RdBu_r", vmin=-size, vmax=size)
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    if len(order) <= 30:
        ax.set_xticks(range(len(order)), order.tolist())
        ax.set_yticks(range(len(order)), order.tolist())
    ax.set(xlabel="document", ylabel="document")
    return ax


def read_matrix(matrix: ArrayLike, ranks: ArrayLike | None) -> tuple[Floats, Ints]:
    """Check the matrix and the ranking; return the matrix and its documents, best first."""
    values = read_numbers(matrix, "the matrix")
    if values.ndim != 2 or values.shape[0] != values.shape[1] or values.size == 0:
        raise ValueError(
            "A square matrix is needed, with a row and a column for each document; got shape "
            f"{values.shape}."
        )
    check_scores(values.reshape(-1), None, "the matrix")
    r = len(values)
    if ranks is None:
        return values, np.arange(r)
    order = ranks_to_order(ranks)
    if len(order) != r:
        raise ValueError(f"ranks has {len(order)} entries, but the matrix has {r} rows.")
    return values, order


def plot_preference_graph(
    preferences: ArrayLike,
    ranks: ArrayLike | None = None,
    *,
    names: ArrayLike | None = None,
    max_edges: int | None = None,
    ax: Any = None,
) -> Any:
    """Plot preferences as arrows between documents, and highlight those that a ranking contradicts.

    Parameters
    ----------
    preferences : array-like of shape (r, r)
        Preference weights, or their differences. Each arrow points from the preferred document to
        the other document. Its width increases with ``preferences - preferences.T``.
    ranks : array-like of shape (r,), default=None
        Position of each document, 1 = top. The documents are placed on a circle in this order,
        clockwise from the top. Preferences that the ranking contradicts are orange. If None,
        documents keep their order and all arrows are grey.
    names : array-like of shape (r,), default=None
        Names of the documents. If None, the numbers 0 to r - 1.
    max_edges : int, default=None
        Largest number of arrows. The strongest preferences are plotted. If None, all preferences
        are plotted for up to 10 documents, and the r strongest for more documents.
    ax : matplotlib axes, default=None
        Axes to plot on. Their size determines the font size. If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Examples
    --------
    Each of three teams beats the next. Every ranking contradicts at least one preference:

    >>> from sklearn_rankcal.plotting import plot_preference_graph
    >>> wins = [[0, 7, 4], [3, 0, 8], [6, 2, 0]]
    >>> ax = plot_preference_graph(wins, ranks=[1, 2, 3], names=["Ajax", "Brann", "Celtic"])
    >>> [text.get_text() for text in ax.texts]
    ['Ajax', 'Brann', 'Celtic', 'the ranking contradicts 1 of 3 preferences']
    """
    matrix, order = read_matrix(preferences, ranks)
    check_count(max_edges, "max_edges", or_none=True)
    r = len(matrix)
    given = np.arange(r) if names is None else np.asarray(names, dtype=object)
    if given.shape != (r,):
        raise ValueError(f"names must hold one name for each of the {r} documents; got {names!r}.")
    labels = [shorten(name) for name in given[order]]
    # Below, documents are numbered by their places, best first.
    d = (matrix - matrix.T)[np.ix_(order, order)]
    most = max_edges if max_edges is not None else r * r if r <= _FEW else r
    pairs = np.argwhere(d > 0)
    chosen = pairs[np.argsort(d[d > 0], kind="stable")][-most:]  # the weakest first
    notes = [f"the {most} strongest of {len(pairs)} preferences"] if most < len(pairs) else []
    if ranks is not None:
        against = int((pairs[:, 0] > pairs[:, 1]).sum())
        notes.insert(0, f"the ranking contradicts {against} of {len(pairs)} preferences")
    ax = make_axes() if ax is None else ax
    ax.axis("off")
    _draw(ax, d, chosen, labels, ranks is not None, "\n".join(notes))
    return ax


def _draw(ax: Any, d: Floats, chosen: Ints, labels: list[str], ranked: bool, note: str) -> None:
    """Draw the documents on a circle, with names outside and arrows inside."""
    from matplotlib.path import Path

    r = len(d)
    angle = np.pi / 2 - 2 * np.pi * np.arange(r) / r
    spots = np.column_stack([np.cos(angle), np.sin(angle)]).round(12)
    # Step 1: names. They determine the radius of the circle.
    settle(ax)
    height = 14.0 * (note.count("\n") + 1) if note else 0.0
    radius = _place_names(ax, labels, spots, height)
    # Step 2: documents, as dots that do not touch.
    dot = min(9.0, 0.6 * 2 * np.pi * radius / r)
    ax.scatter(*spots.T, s=dot**2, color="black", zorder=3)
    # Step 3: arrows from dot to dot, slightly bent towards the middle.
    margin = (0.5 * dot + 1.5) / radius
    for i, j in chosen:
        middle = 0.35 * (spots[i] + spots[j])
        ends = [spots[a] + margin * _unit(middle - spots[a]) for a in (i, j)]
        curve = Path([ends[0], middle, ends[1]], [1, 3, 3])
        color = _AGAINST if ranked and i > j else _AGREES
        _add_arrow(ax, curve, d[i, j] / d.max(), color, r)
    if note:
        ax.text(0, ax.get_ylim()[0], note, ha="center", va="bottom", color=_AGREES, fontsize=9)


def _place_names(ax: Any, labels: list[str], spots: Floats, note: float) -> float:
    """Write names around the unit circle, and set the limits of the axes to fit them.

    If there are many documents, names are rotated to the direction of the radius. `note` is the
    free height at the bottom, in points. Return the radius of the circle in points.
    """
    frame, points = ax.get_window_extent(), 72 / ax.figure.dpi
    width, height = frame.width * points, frame.height * points - note
    size, r = 10.0, len(labels)
    turned = r > _MOST_LEVEL
    if turned:  # as many lines of text as documents around a circle of about this radius
        size = float(np.clip(0.75 * 2 * np.pi * 0.3 * min(width, height) / r, 5, 10))
    texts = [
        ax.annotate(
            label,
            spot,
            xytext=tuple(spot * (6 + _GAP)),
            textcoords="offset points",
            fontsize=size,
            rotation_mode="anchor",
            **_alignment(spot, turned),
        )
        for label, spot in zip(labels, spots, strict=True)
    ]
    # Reduce the font size, down to 5 points, until the circle takes a third of the axes.
    while True:
        boxes = [text.get_window_extent() for text in texts]
        across, up = (
            max(getattr(box, side) for box in boxes) * points for side in ("width", "height")
        )
        radius = min(width / 2 - across, height / 2 - up) - 6 - 2 * _GAP
        if radius >= 0.17 * min(width, height) or size <= 5:
            break
        size = max(size - 1, 5)
        for text in texts:
            text.set_fontsize(size)
    radius = max(radius, 0.15 * min(width, height))
    right, top = width / 2 / radius, height / 2 / radius
    ax.set(xlim=(-right, right), ylim=(-top - note / radius, top), aspect="equal")
    return radius


def _add_arrow(ax: Any, curve: Any, strength: float, color: str, n_documents: int) -> None:
    """Draw an arrow along a curve. `strength` is in (0, 1]. With many documents, it is thin."""
    from matplotlib.patches import FancyArrowPatch

    thin = np.clip(_FEW / n_documents, 0.45, 1.0)
    arrow = FancyArrowPatch(
        path=curve,
        transform=ax.transData,
        arrowstyle="-|>",
        mutation_scale=(7 + 4 * strength) * thin**0.5,
        linewidth=max((0.5 + 2.0 * strength) * thin, 0.6),
        color=color,
        alpha=0.5 + 0.5 * strength,
        clip_on=False,
    )
    ax.add_patch(arrow)


def _alignment(spot: Floats, turned: bool) -> dict[str, Any]:
    """Return the alignment and rotation of a text that points outwards from the circle."""
    if turned:
        angle = np.degrees(np.arctan2(spot[1], spot[0]))
        on_left = spot[0] < -1e-9
        return {
            "rotation": angle + 180 if on_left else angle,
            "ha": "right" if on_left else "left",
            "va": "center",
        }
    ha = "center" if abs(spot[0]) < 0.2 else "left" if spot[0] > 0 else "right"
    va = "center" if abs(spot[1]) < 0.8 else "bottom" if spot[1] > 0 else "top"
    return {"ha": ha, "va": va}


def _unit(vector: Floats) -> Floats:
    return vector / max(np.hypot(*vector), 1e-12)
