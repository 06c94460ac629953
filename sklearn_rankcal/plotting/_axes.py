"""What plots share: new axes, styles of lines, names of items, legends that cover nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Line, marker and colour of each further ranker. The colours are those of Okabe and Ito, which
#: colour-blind people can tell apart. Lines and markers differ too, for prints in grey.
STYLES = (
    ("-", "o", "#0072B2"),
    ("--", "s", "#D55E00"),
    ("-.", "^", "#009E73"),
    (":", "D", "#CC79A7"),
    ((0, (5, 1, 1, 1, 1, 1)), "v", "#000000"),
    ((0, (8, 2)), "P", "#E69F00"),
)


def make_axes(n_rows: int = 1, n_columns: int = 1, **options: Any) -> Any:
    """Make a new figure, and return its axes; ImportError says how to install matplotlib."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'sklearn_rankcal[plot]'.") from error
    return plt.subplots(n_rows, n_columns, layout="constrained", **options)[1]


def settle(ax: Any) -> None:
    """Run the layout of the figure, so that sizes in pixels are those of the picture."""
    ax.figure.canvas.figure.draw_without_rendering()  # of a subfigure, this is the whole figure


def place_legend(ax: Any, loc: str = "upper right", **options: Any) -> Any:
    """Add a legend, and make room for it above the lines and areas, so that it covers nothing.

    The upper limit of the y axis (linear) is raised as much as needed. A legend wider than the axes
    or higher than 60 % of them gets smaller letters, down to 5 points. The size of the figure at
    the time of the call counts.
    """
    for size in (10, 9, 8, 7, 6, 5):
        legend = ax.legend(loc=loc, framealpha=1.0, fontsize=size, **options)
        legend.set_in_layout(False)  # it is inside the axes, which need no other room for it
        settle(ax)
        box, frame = legend.get_window_extent(), ax.get_window_extent()
        inside = box.x0 >= frame.x0 and box.x1 <= frame.x1
        if inside and box.height <= 0.6 * frame.height:
            break
    top = _highest_pixel(ax, box.x0, box.x1)
    gap = 4 * ax.figure.dpi / 72
    if top > box.y0 - gap:
        # What is at the height `top` must come to lie below the legend, at `aim`. If the legend is
        # almost as high as the axes, at least a third of the height is left to the data.
        aim = max(box.y0 - gap - frame.y0, frame.height / 3)
        low, high = ax.get_ylim()
        ax.set_ylim(low, low + (high - low) * (top - frame.y0) / aim)
    return legend


def _highest_pixel(ax: Any, left: float, right: float) -> float:
    """Return the largest y of the lines and areas of axes between two values of x, in pixels."""
    artists = [(line, [line.get_path()]) for line in ax.lines]
    artists += [(patch, [patch.get_path()]) for patch in ax.patches]
    artists += [(collection, collection.get_paths()) for collection in ax.collections]
    top = -np.inf
    for artist, paths in artists:
        for path in paths:
            points = artist.get_transform().transform_path(path).vertices
            if len(points) < 2:
                continue
            # each piece between two neighbouring points, from the one on the left to the other one
            x, y = np.stack([points[:-1], points[1:]]).transpose(2, 0, 1)
            turned = x[0] > x[1]
            x, y = np.where(turned, x[::-1], x), np.where(turned, y[::-1], y)
            kept = (x[0] <= right) & (x[1] >= left) & np.isfinite(y).all(axis=0)
            x, y = x[:, kept], y[:, kept]
            # its height where it enters and leaves the interval; of a vertical piece, both ends
            width = x[1] - x[0]
            share = (np.clip(x, left, right) - x[0]) / np.where(width > 0, width, 1)
            share[1, width == 0] = 1.0
            top = max(top, (y[0] + share * (y[1] - y[0])).max(initial=-np.inf))
    return float(top)


def shorten(item: Any) -> str:
    """Return the name of an item in at most 30 letters, as plain text."""
    text = str(item).replace("$", r"\$")  # matplotlib reads formulas between dollars
    return text if len(text) <= 30 else text[:27] + "..."
