"""Plot preferences between documents as a matrix, or as a graph with arrows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.queries._ranking import check_scores, ranks_to_order
from sklearn_rankcal.utils._axes import make_axes, settle, shorten
from sklearn_rankcal.utils._messages import check_count
from sklearn_rankcal.utils._numbers import Floats, Ints, read_numbers

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

    Raises
    ------
    ValueError
        If u is not a square matrix of finite numbers, or if `ranks` is not a ranking of r
        documents.
    ImportError
        If matplotlib is not installed.

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

    Raises
    ------
    ValueError
        If `preferences` is not a square matrix of finite numbers, or if `ranks`, `names` or
        `max_edges` do not match it.
    ImportError
        If matplotlib is not installed.

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
