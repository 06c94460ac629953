"""Plots of predicted preferences, rankings, leaderboards and early stopping.

They need matplotlib, which the extra ``plot`` of this package installs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.queries._ranking import check_scores
from sklearn_rankcal.utils._numbers import read_numbers, read_whole

Floats = NDArray[np.float64]


def make_axes(n_rows: int = 1, n_columns: int = 1, **options: Any) -> Any:
    """Make a new figure, and return its axes.

    Parameters
    ----------
    n_rows, n_columns : int, default=1
        The number of rows and of columns of axes.
    **options
        Keyword arguments of `matplotlib.pyplot.subplots`.

    Returns
    -------
    axes : matplotlib axes or ndarray of them

    Raises
    ------
    ImportError
        If matplotlib is not installed. The error names the extra to install.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'sklearn_rankcal[plot]'.") from error
    return plt.subplots(n_rows, n_columns, layout="constrained", **options)[1]


def plot_matrix(u: ArrayLike, ranks: ArrayLike | None = None, *, ax: Any = None) -> Any:
    """Plot predictions for pairs as a coloured matrix, with documents in the order of a ranking.

    Parameters
    ----------
    u : array-like of shape (r, r)
        A matrix of differences of preferences, or a symmetric matrix, such as
        `CalibratedRanker.predict_preferences` returns.
    ranks : array-like of shape (r,), default=None
        The position of each document, 1 = top. If u is antisymmetric, a red entry above the
        diagonal is a preference with which the ranking agrees, and a blue one is a preference that
        it contradicts. If None, the documents keep their order.
    ax : matplotlib axes, default=None
        The axes to draw on. If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If u is not a square matrix of finite numbers, or if `ranks` is not a ranking of its
        documents.
    ImportError
        If matplotlib is not installed.
    """
    matrix, order = _read(u, ranks)
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


def plot_preference_graph(
    preferences: ArrayLike, ranks: ArrayLike | None = None, *, ax: Any = None
) -> Any:
    """Plot preferences as arrows. Arrows that a ranking contradicts are red.

    Parameters
    ----------
    preferences : array-like of shape (r, r)
        Preference weights or differences of them. The plot depends on
        ``preferences - preferences.T`` only. Each arrow points from the preferred document to the
        other one, and its width is proportional to the difference.
    ranks : array-like of shape (r,), default=None
        The position of each document, 1 = top. Documents are drawn from left to right in this
        order. If None, they are drawn on a circle.
    ax : matplotlib axes, default=None
        The axes to draw on. If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If `preferences` is not a square matrix of finite numbers, or if `ranks` is not a ranking of
        its documents.
    ImportError
        If matplotlib is not installed.
    """
    matrix, order = _read(preferences, ranks)
    ax = make_axes() if ax is None else ax
    d = matrix - matrix.T
    r = len(d)
    # Step 1: the spots of the documents, on a circle or on a line in the order of the ranking.
    place = np.empty(r, dtype=np.int64)
    place[order] = np.arange(r)
    if ranks is None:
        angle = np.pi / 2 - 2 * np.pi * place / r
        spots = np.column_stack([np.cos(angle), np.sin(angle)])
        margin = 0.25
    else:
        spots = np.column_stack([place, np.zeros(r)]).astype(np.float64)
        margin = 0.5
    # Step 2: an arrow for each pair, from the preferred document to the other one.
    for i, j in np.argwhere(d > 0):
        against = ranks is not None and place[i] > place[j]
        # Arrows that agree with the ranking are bent to one side of the line of documents, and
        # arrows that contradict it to the other. Arrows to the next document are straight.
        bend = 0.12 if ranks is None else -0.45 if abs(place[i] - place[j]) > 1 or against else 0.0
        ax.annotate(
            "",
            xy=spots[j],
            xytext=spots[i],
            arrowprops={
                "arrowstyle": "-|>",
                "connectionstyle": f"arc3,rad={bend}",
                "linewidth": 0.5 + 3.0 * d[i, j] / np.abs(d).max(),
                "color": "tab:red" if against else "0.45",
                "shrinkA": 11,
                "shrinkB": 11,
            },
        )
    # Step 3: the documents, with their numbers.
    ax.scatter(*spots.T, s=420, color="white", edgecolor="black", zorder=3)
    for i, (x, y) in enumerate(spots):
        ax.text(x, y, str(i), ha="center", va="center", zorder=4)
    low, high = spots.min(axis=0) - margin, spots.max(axis=0) + margin
    if ranks is not None:
        low[1], high[1] = -0.3 * r, 0.3 * r
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.axis("off")
    return ax


def plot_validation_scores(ranker: Any, *, ax: Any = None) -> Any:
    """Plot the value of the rankings of validation queries after each iteration of a regressor.

    Parameters
    ----------
    ranker : CalibratedRanker
        A ranker that was fitted with validation queries.
    ax : matplotlib axes, default=None
        If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes
        A line for ``ranker.validation_scores_``, and a vertical line at ``ranker.n_iter_``, the
        number of iterations that the regressor keeps.

    Raises
    ------
    ValueError
        If the ranker is not fitted or had no validation queries.
    ImportError
        If matplotlib is not installed.
    """
    scores = getattr(ranker, "validation_scores_", None)
    if scores is None:
        raise ValueError(
            "The ranker has no validation_scores_. Fit it with validation queries: with the "
            "parameter validation_queries=0.2, or with X_val, y_val and groups_val in fit."
        )
    ax = make_axes() if ax is None else ax
    ax.plot(np.arange(1, len(scores) + 1), scores, color="0.2")
    ax.axvline(ranker.n_iter_, color="tab:red", linestyle="--", label=f"kept: {ranker.n_iter_}")
    name = type(ranker.loss_).__name__
    ax.set(xlabel="iteration", ylabel=f"validation {name}")
    ax.legend()
    return ax


def plot_aggregate(aggregate: Any, group: Any = None, *, ax: Any = None) -> Any:
    """Plot a leaderboard: the score of each item and, if there are resamples, its error bars.

    Parameters
    ----------
    aggregate : Aggregate
        The result of `aggregate`.
    group : object, default=None
        The id of the query to plot. It can be left out if there is only one.
    ax : matplotlib axes, default=None
        The axes to draw on. If None, a new figure is made, which is as high as the number of items
        needs.

    Returns
    -------
    ax : matplotlib axes
        A dot for the score of each item, best on top, and a line for its interval. On the right is
        the rank of each item, or its interval if there are resamples. Items without a score have no
        dot.

    Raises
    ------
    ValueError
        If there is no such query, or if there are several and none is given.
    ImportError
        If matplotlib is not installed.
    """
    rows = aggregate.rows_of(group)
    n = len(rows)
    if ax is None:
        ax = make_axes(figsize=(6.5, 1.2 + 0.24 * n))
    y = np.arange(n)
    if aggregate.score_low is not None:
        ends = aggregate.score_low[rows], aggregate.score_high[rows]
        ax.hlines(y, *ends, color="tab:blue", alpha=0.45, linewidth=3)
        ranks = zip(aggregate.rank_low[rows], aggregate.rank_high[rows], strict=True)
        labels = [str(low) if low == high else f"{low}\N{EN DASH}{high}" for low, high in ranks]
        level = f"{100 * aggregate.confidence_level:g} %"
        titles = f"score, with {level} intervals", f"ranks, {level} intervals"
    else:
        labels, titles = [str(rank) for rank in aggregate.ranks[rows]], ("score", "rank")
    ax.plot(aggregate.scores[rows], y, "o", color="tab:blue", markersize=5)
    # The size of the letters follows the room that a row has, from 10 points down to 5.
    points = ax.get_window_extent().height / ax.figure.dpi * 72 / n
    size = float(np.clip(0.75 * points, 5, 10))
    ax.set_yticks(y, [_shorten(item) for item in aggregate.items[rows].tolist()], fontsize=size)
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


def plot_probability_above(aggregate: Any, group: Any = None, *, ax: Any = None) -> Any:
    """Plot with which probability each item is above each other one, by the resamples.

    Parameters
    ----------
    aggregate : Aggregate
        The result of `aggregate` with ``n_resamples``.
    group : object, default=None
        The id of the query to plot. It can be left out if there is only one.
    ax : matplotlib axes, default=None
        The axes to draw on. If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes
        The matrix `Aggregate.probability_matrix`, with the best item on top and on the left. Up to
        15 items, the probabilities are written in percent.

    Raises
    ------
    ValueError
        If there are no resamples or no such query, or if there are several and none is given.
    ImportError
        If matplotlib is not installed.
    """
    matrix = aggregate.probability_matrix(group)
    names = [_shorten(item) for item in aggregate.items[aggregate.rows_of(group)].tolist()]
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
            text = f"{shown[i, j]:.0f}"
            ax.text(j, i, text, ha="center", va="center", color=color, fontsize=8)
    return ax


def _shorten(item: Any) -> str:
    """Return the name of an item in at most 30 letters, as plain text."""
    text = str(item).replace("$", r"\$")  # matplotlib reads formulas between dollars
    return text if len(text) <= 30 else text[:27] + "..."


def _read(matrix: ArrayLike, ranks: ArrayLike | None) -> tuple[Floats, NDArray[np.int64]]:
    """Check the matrix and the ranking; return the matrix and its documents, best first."""
    values = read_numbers(matrix, "the matrix")
    if values.ndim != 2 or values.shape[0] != values.shape[1] or values.size == 0:
        raise ValueError(
            "A square matrix is needed, with a row and a column for each document; it has shape "
            f"{values.shape}."
        )
    check_scores(values.reshape(-1), None, "the matrix")
    r = len(values)
    if ranks is None:
        return values, np.arange(r)
    given = read_whole(ranks, "ranks")
    if given.shape != (r,) or sorted(given.tolist()) != list(range(1, r + 1)):
        raise ValueError(f"ranks must contain the positions 1 to {r} once each; got {ranks!r}.")
    return values, np.argsort(given)
