"""Plots: what is drawn where, and which input is refused."""

import builtins

import numpy as np
import pytest

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning
from sklearn_rankcal.plotting import (
    plot_aggregate,
    plot_matrix,
    plot_preference_graph,
    plot_probability_above,
)

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


def leaderboard(n_items=4, **options):
    """A few votes, in which the items with smaller numbers win more often."""
    random = np.random.RandomState(0)
    pairs = [random.permutation(n_items)[:2] for _ in range(40 * n_items)]
    pairs = [(i, j) if (i < j) == (random.uniform() < 0.8) else (j, i) for i, j in pairs]
    return aggregate([(f"item {i}", f"item {j}") for i, j in pairs], "btl", **options)


def test_a_leaderboard_shows_scores_intervals_and_ranks():
    result = leaderboard(n_resamples=50)
    ax = result.plot()
    rows = result.rows_of()
    assert [label.get_text() for label in ax.get_yticklabels()] == result.items[rows].tolist()
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), result.scores[rows])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the best item, at 0, is on top
    ends = [[segment[0][0], segment[1][0]] for segment in ax.collections[0].get_segments()]
    np.testing.assert_array_equal(
        ends, np.column_stack([result.score_low, result.score_high])[rows]
    )
    right = ax.figure.axes[1]
    bounds = zip(result.rank_low[rows], result.rank_high[rows], strict=True)
    expected = [f"{low}" if low == high else f"{low}\N{EN DASH}{high}" for low, high in bounds]
    assert [label.get_text() for label in right.get_yticklabels()] == expected
    assert "95 % intervals" in ax.get_xlabel() and "95 % intervals" in right.get_ylabel()


def test_a_leaderboard_without_resamples_and_of_many_items():
    ax = plot_aggregate(leaderboard())
    assert not ax.collections and ax.get_xlabel() == "score"
    assert [label.get_text() for label in ax.figure.axes[1].get_yticklabels()] == list("1234")
    many = plot_aggregate(leaderboard(100))
    assert many.figure.get_figheight() > 20
    axes = matplotlib.pyplot.subplots(figsize=(4, 4))[1]
    assert plot_aggregate(leaderboard(100), ax=axes) is axes
    assert axes.get_yticklabels()[0].get_fontsize() == 5


def test_a_leaderboard_of_one_query_of_several_and_items_without_a_score():
    orders = [["$a$", "b" * 60], ["c", "d"]]
    judgements = Judgements.from_orders(orders, ["x", "y"], unlisted="ignore")
    result = aggregate(judgements, "borda", n_resamples=5)
    with pytest.raises(ValueError, match="Pass group="):
        plot_aggregate(result)
    ax = plot_aggregate(result, "x")
    ax.figure.canvas.draw()  # dollars are no formula
    texts = [label.get_text() for label in ax.get_yticklabels()]
    assert texts == [r"\$a\$", "b" * 27 + "..."]
    with pytest.warns(DisconnectedComparisonsWarning):
        alone = aggregate(
            Judgements.from_orders([["a", "b"]], items=["a", "b", "c"]), "borda", n_resamples=5
        )
    points = plot_aggregate(alone).lines[0].get_xdata()
    assert np.isfinite(points[:2]).all() and np.isnan(points[2])


def test_probabilities_are_a_matrix_in_the_order_of_the_ranks():
    result = leaderboard(n_resamples=50)
    ax = plot_probability_above(result)
    shown = ax.images[0].get_array()
    expected = 100 * result.probability_matrix()
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_array_equal(np.asarray(shown.filled(np.nan)), expected)
    assert [t.get_text() for t in ax.get_yticklabels()] == result.items[result.rows_of()].tolist()
    texts = {(t.get_position()[1], t.get_position()[0]): t.get_text() for t in ax.texts}
    assert len(texts) == 12 and texts[0, 3] == f"{expected[0, 3]:.0f}"
    assert not plot_probability_above(leaderboard(20, n_resamples=20)).texts
    with pytest.raises(ValueError, match="no resamples"):
        plot_probability_above(leaderboard())
