"""Plots: what is drawn where, and which input is refused."""

import builtins

import numpy as np
import pytest

from sklearn_rankcal.plotting import plot_matrix, plot_preference_graph

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
BEATS = np.array([[0, 7, 4], [3, 0, 8], [6, 2, 0]])


def test_matrix_is_in_the_order_of_the_ranking():
    d = BEATS - BEATS.T
    ax = plot_matrix(d, ranks=[2, 3, 1])
    np.testing.assert_array_equal(ax.images[0].get_array(), d[np.ix_([2, 0, 1], [2, 0, 1])])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "0", "1"]
    np.testing.assert_array_equal(plot_matrix(d).images[0].get_array(), d)


def test_arrows_against_the_ranking_are_red():
    ax = plot_preference_graph(BEATS, ranks=[1, 2, 3])
    arrows = [text.arrow_patch for text in ax.texts if getattr(text, "arrow_patch", None)]
    red = [a for a in arrows if a.get_edgecolor()[:3] == matplotlib.colors.to_rgb("tab:red")]
    assert len(arrows) == 3 and len(red) == 1  # of 0 > 1 > 2 > 0 the ranking breaks 2 > 0
    widths = sorted(a.get_linewidth() for a in arrows)
    np.testing.assert_allclose(widths, [0.5 + 3 * d / 6 for d in (2, 4, 6)])
    circle = plot_preference_graph(BEATS)
    assert len([text for text in circle.texts if text.get_text() in "012" and text.get_text()]) == 3


@pytest.mark.parametrize("plot", [plot_matrix, plot_preference_graph])
def test_bad_input(plot, monkeypatch):
    with pytest.raises(ValueError, match="square matrix"):
        plot(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"NaN|finite|nan"):
        plot([[0, np.nan], [0, 0]])
    with pytest.raises(ValueError, match="positions 1 to 3"):
        plot(BEATS, ranks=[0, 1, 2])
    found = builtins.__import__

    def missing(name, *args, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return found(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"sklearn_rankcal\[plot\]"):
        plot(BEATS)
