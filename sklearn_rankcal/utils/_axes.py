"""What plots share: new axes, styles of lines, names of items, legends that cover nothing."""

from __future__ import annotations

from typing import Any

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


def place_legend(ax: Any) -> None:
    """Add a legend on the top right, and raise the upper limit of y so that it covers no data.

    A legend wider than the axes or higher than 60 % of them gets smaller letters, down to 5 points.
    The size of the figure at the time of the call counts.
    """
    for size in (10, 9, 8, 7, 6, 5):
        legend = ax.legend(loc="upper right", framealpha=1.0, fontsize=size)
        legend.set_in_layout(False)  # it is inside the axes, which need no other room for it
        settle(ax)
        box, frame = legend.get_window_extent(), ax.get_window_extent()
        inside = box.x0 >= frame.x0 and box.x1 <= frame.x1
        if inside and box.height <= 0.6 * frame.height:
            break
    # What is highest must come to lie below the legend. If the legend is almost as high as the
    # axes, at least a third of the height is left to the data.
    aim = max((box.y0 - frame.y0) / frame.height - 0.03, 1 / 3)
    low, high = ax.get_ylim()
    ax.set_ylim(low, max(high, low + (ax.dataLim.y1 - low) / aim))


def shorten(item: Any) -> str:
    """Return the name of an item in at most 30 letters, as plain text."""
    text = str(item).replace("$", r"\$")  # matplotlib reads formulas between dollars
    return text if len(text) <= 30 else text[:27] + "..."
