"""Plots of predicted preferences: a matrix and a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.plotting._axes import make_axes
from sklearn_rankcal.queries._ranking import check_scores
from sklearn_rankcal.utils._numbers import read_numbers, read_whole

Floats = NDArray[np.float64]


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
