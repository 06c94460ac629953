"""Shared parts of plots: new axes, line styles, item names, and legends that cover no data."""

from __future__ import annotations

from typing import Any

#: Line, marker and colour of each further ranker. Colour-blind people can distinguish the colours
#: (Okabe and Ito). Lines and markers differ too, for prints in grey.
STYLES = (
    ("-", "o", "#0072B2"),
    ("--", "s", "#D55E00"),
    ("-.", "^", "#009E73"),
    (":", "D", "#CC79A7"),
    ((0, (5, 1, 1, 1, 1, 1)), "v", "#000000"),
    ((0, (8, 2)), "P", "#E69F00"),
)


def make_axes(n_rows: int = 1, n_columns: int = 1, **options: Any) -> Any:
    """Make a new figure and return its axes. If matplotlib is missing, say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'sklearn_rankcal[plot]'.") from error
    return plt.subplots(n_rows, n_columns, layout="constrained", **options)[1]


def settle(ax: Any) -> None:
    """Run the layout of the figure, to make sizes in pixels final."""
    ax.figure.canvas.figure.draw_without_rendering()  # for a subfigure, draw the whole figure


def place_legend(ax: Any) -> None:
    """Add a legend at the top right, and raise the upper limit of y to keep it from covering data.

    If a legend is wider than the axes or higher than 60 % of them, its letters are reduced, down to
    5 points. The size of the figure is taken at the time of the call.
    """
    for size in (10, 9, 8, 7, 6, 5):
        legend = ax.legend(loc="upper right", framealpha=1.0, fontsize=size)
        legend.set_in_layout(False)  # it is inside the axes, and needs no extra room
        settle(ax)
        box, frame = legend.get_window_extent(), ax.get_window_extent()
        inside = box.x0 >= frame.x0 and box.x1 <= frame.x1
        if inside and box.height <= 0.6 * frame.height:
            break
    # Move the highest data point below the legend. If the legend is almost as high as the axes,
    # leave at least a third of the height to the data.
    aim = max((box.y0 - frame.y0) / frame.height - 0.03, 1 / 3)
    low, high = ax.get_ylim()
    ax.set_ylim(low, max(high, low + (ax.dataLim.y1 - low) / aim))


def shorten(item: Any) -> str:
    """Return the name of an item in at most 30 letters, as plain text."""
    text = str(item).replace("$", r"\$")  # matplotlib treats text between dollars as a formula
    return text if len(text) <= 30 else text[:27] + "..."
