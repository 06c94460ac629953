"""The plot of preferences as a graph: items, and arrows from preferred items to others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.measures._base import check_cutoff
from sklearn_rankcal.plotting._axes import make_axes, settle, shorten
from sklearn_rankcal.plotting._matrix import read_matrix
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: Up to this number of documents, all arrows are drawn by default.
_FEW = 10
#: Colours of arrows. Vermillion is of Okabe and Ito; colour-blind people can tell it from grey.
_AGREES, _AGAINST = "0.35", "#D55E00"
_GAP = 4.0  # between names and arrows, in points


def plot_preference_graph(
    preferences: ArrayLike,
    ranks: ArrayLike | None = None,
    *,
    names: ArrayLike | None = None,
    max_edges: int | None = None,
    ax: Any = None,
) -> Any:
    """Plot preferences as arrows between documents, and which of them a ranking contradicts.

    Parameters
    ----------
    preferences : array-like of shape (r, r)
        Preference weights or differences of them. Each arrow points from the preferred document to
        the other one. Its width is proportional to ``preferences - preferences.T``.
    ranks : array-like of shape (r,), default=None
        The position of each document, 1 = top. The documents are then a list with the best one on
        top, with the preferences that agree with the ranking on the left, and those that it
        contradicts on the right, in orange. If None, the documents stand on a circle.
    names : array-like of shape (r,), default=None
        The names of the documents. If None, they are the numbers 0 to r - 1.
    max_edges : int, default=None
        The largest number of arrows, or with `ranks` of arrows on each side. The strongest are
        drawn. If None, all are drawn up to 10 documents; of more documents, the r strongest, but up
        to 2 r of those that the ranking contradicts.
    ax : matplotlib axes, default=None
        The axes to draw on, whose size decides that of the letters. If None, a new figure is made,
        which is as high as the number of documents needs.

    Returns
    -------
    ax : matplotlib axes

    Raises
    ------
    ValueError
        If `preferences` is not a square matrix of finite numbers, or if `ranks`, `names` or
        `max_edges` do not fit it.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    Three teams of which each beats the next one. Every ranking contradicts one of the three:

    >>> from sklearn_rankcal.plotting import plot_preference_graph
    >>> wins = [[0, 7, 4], [3, 0, 8], [6, 2, 0]]
    >>> ax = plot_preference_graph(wins, ranks=[1, 2, 3], names=["Ajax", "Brann", "Celtic"])
    >>> [text.get_text() for text in ax.texts][-2:]
    ['agree with the ranking:\\nall 2', 'contradicted:\\nall 1']
    """
    matrix, order = read_matrix(preferences, ranks)
    check_cutoff("max_edges", max_edges)
    r = len(matrix)
    given = np.arange(r) if names is None else np.asarray(names, dtype=object)
    if given.shape != (r,):
        raise ValueError(f"names must hold one name for each of the {r} documents; got {names!r}.")
    labels = [shorten(name) for name in given[order]]
    # From here on, documents are numbered by their places, best first.
    d = (matrix - matrix.T)[np.ix_(order, order)]
    most = max_edges if max_edges is not None else r * r if r <= _FEW else r
    most_against = 2 * r if max_edges is None and r > _FEW else most
    if ax is None:
        ax = make_axes(figsize=(6.4, float(np.clip(1.2 + 0.22 * r, 3.6, 24))))
    ax.axis("off")
    if ranks is None:
        _draw_circle(ax, d, labels, most)
    else:
        _draw_list(ax, d, labels, most, most_against)
    return ax


def _draw_list(ax: Any, d: Floats, labels: list[str], most: int, most_against: int) -> None:
    """Draw the documents below each other, with arrows on both sides of their names."""
    from matplotlib.path import Path
    from matplotlib.transforms import ScaledTranslation

    r = len(d)
    # Step 1: the names, one row each, below the titles of both sides, which are 30 points high.
    settle(ax)
    frame, points = ax.get_window_extent(), 72 / ax.figure.dpi
    row_height = max(frame.height * points - 30, 30) / r
    head = 30 / row_height
    ax.set(xlim=(-1, 1), ylim=(r - 0.5, -0.5 - head))
    size = float(np.clip(0.75 * row_height, 5, 10))
    texts = [
        ax.text(0, row, label, ha="center", va="center", fontsize=size)
        for row, label in enumerate(labels)
    ]
    half = max(text.get_window_extent().width for text in texts) * points / 2 + _GAP
    # Step 2: the arrows. An arrow over more rows is wider. On each side, x is 0 at the edge of the
    # names, which lies a fixed number of points from the middle, and 1 at the edge of the axes.
    room = max(0.5 * frame.width * points - half, 10.0) / (0.5 * frame.width * points)
    above = np.arange(r)[:, None] < np.arange(r)
    for side, kept, limit, color, title in (
        (-1, (d > 0) & above, most, _AGREES, "agree with the ranking"),
        (1, (d > 0) & ~above, most_against, _AGAINST, "contradicted"),
    ):
        shift = ScaledTranslation(side * half / 72, 0, ax.figure.dpi_scale_trans)
        chosen, n_all = _strongest(d, kept, limit)
        for i, j in chosen:
            # A cubic curve whose inner points are at x reaches 3/4 of x.
            x = side * room * 0.92 * 4 / 3 * (0.15 + 0.85 * (abs(i - j) / max(r - 1, 1)) ** 0.8)
            curve = Path([(0, i), (x, i), (x, j), (0, j)], [1, 4, 4, 4])
            _add_arrow(ax, curve, ax.transData + shift, d[i, j] / d.max(), color, r)
        text = f"{title}:\n{_count(len(chosen), n_all)}"
        ax.text(
            side * (1 - room / 2),
            -0.45 - head,
            text,
            ha="center",
            va="top",
            color=color,
            fontsize=9,
        )


def _draw_circle(ax: Any, d: Floats, labels: list[str], most: int) -> None:
    """Draw the documents on a circle, with their names outside of it and arrows inside."""
    from matplotlib.path import Path

    r = len(d)
    chosen, n_all = _strongest(d, d > 0, most)
    angle = np.pi / 2 - 2 * np.pi * np.arange(r) / r
    spots = np.column_stack([np.cos(angle), np.sin(angle)]).round(12)
    # Step 1: the names and the radius of the circle. Names are horizontal if there is room for
    # that. Otherwise they are turned in the direction of the radius.
    settle(ax)
    note = 14.0 if len(chosen) < n_all else 0.0
    radius, texts = _place_names(ax, labels, spots, note, turned=False)
    if _overlap(texts):
        for text in texts:
            text.remove()
        radius, texts = _place_names(ax, labels, spots, note, turned=True)
    # Step 2: the documents, as dots that do not touch each other.
    dot = min(9.0, 0.6 * 2 * np.pi * radius / r)
    ax.scatter(*spots.T, s=dot**2, color="black", zorder=3)
    # Step 3: the arrows, slightly bent towards the middle, from dot to dot.
    margin = (0.5 * dot + 1.5) / radius
    for i, j in chosen:
        middle = 0.35 * (spots[i] + spots[j])
        ends = [spots[a] + margin * _unit(middle - spots[a]) for a in (i, j)]
        curve = Path([ends[0], middle, ends[1]], [1, 3, 3])
        _add_arrow(ax, curve, ax.transData, d[i, j] / d.max(), _AGREES, r)
    if note:
        text = f"{_count(len(chosen), n_all)} preferences"
        low = ax.get_ylim()[0]
        ax.text(0, low, text, ha="center", va="bottom", color=_AGREES, fontsize=9)


def _place_names(
    ax: Any, labels: list[str], spots: Floats, note: float, turned: bool
) -> tuple[float, list[Any]]:
    """Write names around the unit circle, and set limits of the axes so that they fit into them.

    `note` is the height, in points, that is left free at the bottom. Returned are the radius of the
    circle in points and the names.
    """
    frame, points = ax.get_window_extent(), 72 / ax.figure.dpi
    width, height = frame.width * points, frame.height * points - note
    size, r = 10.0, len(labels)
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
    # Letters become smaller, down to 5 points, until a third of the axes is left to the circle.
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
    return radius, texts


def _overlap(texts: list[Any]) -> bool:
    """Whether any two of the texts overlap. All pairs are compared, in O(r^2) time."""
    low, high = (
        np.array([getattr(text.get_window_extent(), corner) for text in texts])
        for corner in ("min", "max")
    )
    apart = (low[:, None] >= high) | (high[:, None] <= low)
    return bool((~apart.any(axis=2) & ~np.eye(len(texts), dtype=bool)).any())


def _strongest(d: Floats, kept: Bools, most: int) -> tuple[Ints, int]:
    """Return the pairs (i, j) of the largest differences, weakest first, and how many there are."""
    pairs = np.argwhere(kept)
    order = np.argsort(d[kept], kind="stable")
    return pairs[order][-most:], len(pairs)


def _count(shown: int, n_all: int) -> str:
    if shown < n_all:
        return f"the {shown} strongest of {n_all}"
    return f"all {n_all}" if n_all else "none"


def _add_arrow(
    ax: Any, curve: Any, transform: Any, strength: float, color: str, n_documents: int
) -> None:
    """Draw an arrow along a curve. `strength` is in (0, 1]; arrows of many documents are thin."""
    from matplotlib.patches import FancyArrowPatch

    thin = np.clip(_FEW / n_documents, 0.45, 1.0)
    arrow = FancyArrowPatch(
        path=curve,
        transform=transform,
        arrowstyle="-|>",
        mutation_scale=(7 + 4 * strength) * thin**0.5,
        linewidth=max((0.5 + 2.0 * strength) * thin, 0.6),
        color=color,
        alpha=0.5 + 0.5 * strength,
        clip_on=False,
    )
    ax.add_patch(arrow)


def _alignment(spot: Floats, turned: bool) -> dict[str, Any]:
    """Return how the text at a spot of the circle is aligned and rotated, so that it points out."""
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
