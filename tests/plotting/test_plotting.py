"""Plots: what is drawn where, and which input is refused."""

import builtins
import itertools

import numpy as np
import pytest

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning
from sklearn_rankcal.plotting import (
    MetricAtKDisplay,
    QueryDifferencesDisplay,
    plot_aggregate,
    plot_choice_calibration,
    plot_matrix,
    plot_preference_graph,
    plot_probability_above,
)

from ..covering import covering

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")
FancyArrowPatch = pytest.importorskip("matplotlib.patches").FancyArrowPatch
Path = pytest.importorskip("matplotlib.path").Path
BEATS = np.array([[0, 7, 4], [3, 0, 8], [6, 2, 0]])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_matrix_is_in_the_order_of_the_ranking():
    d = BEATS - BEATS.T
    ax = plot_matrix(d, ranks=[2, 3, 1])
    np.testing.assert_array_equal(ax.images[0].get_array(), d[np.ix_([2, 0, 1], [2, 0, 1])])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "0", "1"]
    np.testing.assert_array_equal(plot_matrix(d).images[0].get_array(), d)


def arrows(ax):
    """The arrows of a graph: from the weakest to the strongest."""
    found = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    return sorted(found, key=lambda arrow: arrow.get_linewidth())


def colour(arrow):
    return matplotlib.colors.to_hex(arrow.get_edgecolor())


def test_arrows_against_the_ranking_are_orange():
    ax = plot_preference_graph(BEATS, ranks=[1, 2, 3])
    drawn = arrows(ax)
    # 1 beats 2 by 6, 0 beats 1 by 4, and 2 beats 0 by 2, which the ranking contradicts
    widths = [arrow.get_linewidth() for arrow in drawn]
    np.testing.assert_allclose(widths, [0.5 + 2 * d / 6 for d in (2, 4, 6)])
    assert [colour(arrow) for arrow in drawn] == ["#d55e00", "#595959", "#595959"]
    assert [dots_of(ax, arrow) for arrow in drawn] == [[2, 0], [0, 1], [1, 2]]
    note = "the ranking contradicts {} of {} preferences"
    assert [text.get_text() for text in ax.texts] == ["0", "1", "2", note.format(1, 3)]
    nothing = plot_preference_graph(np.zeros((2, 2)), ranks=[1, 2])
    assert nothing.texts[-1].get_text() == note.format(0, 0)
    unranked = plot_preference_graph(BEATS)
    assert {colour(arrow) for arrow in arrows(unranked)} == {"#595959"} and len(unranked.texts) == 3


def dots_of(ax, arrow):
    """The places on the circle from which and to which an arrow goes, 0 = top."""
    dots = ax.collections[0].get_offsets()
    ends = arrow._path_original.vertices[[0, -1]]
    return [int(np.argmin(np.hypot(*(dots - end).T))) for end in ends]


def test_names_follow_the_ranking_from_the_top():
    ax = plot_preference_graph(BEATS, ranks=[3, 1, 2], names=["a", "b", "$c$"])
    assert [text.get_text() for text in ax.texts][:3] == ["b", r"\$c\$", "a"]
    top = [text.get_window_extent().y0 for text in ax.texts[:3]]
    assert np.argmax(top) == 0
    assert dots_of(ax, arrows(ax)[-1]) == [0, 1]  # 1 beats 2 by 6: from the first to the second
    plain = plot_preference_graph(BEATS, names=np.array(["a", "b", "c"]))
    assert [text.get_text() for text in plain.texts] == ["a", "b", "c"]
    assert dots_of(plain, arrows(plain)[-1]) == [1, 2]


def test_of_many_documents_the_strongest_preferences_are_drawn():
    random = np.random.default_rng(0)
    w = random.random((30, 30))
    d = w - w.T
    ranks = random.permutation(30) + 1
    ax = plot_preference_graph(w, ranks)
    drawn = arrows(ax)
    widths = np.maximum((0.5 + 2 * np.sort(d[d > 0])[-30:] / d.max()) * 0.45, 0.6)
    np.testing.assert_allclose([a.get_linewidth() for a in drawn], widths)
    best = np.argsort(ranks)
    for arrow in drawn:
        i, j = dots_of(ax, arrow)
        assert d[best[i], best[j]] > 0 and colour(arrow) == ("#d55e00" if i > j else "#595959")
    n_against = ((d > 0) & (ranks[:, None] > ranks)).sum()
    assert ax.texts[-1].get_text() == (
        f"the ranking contradicts {n_against} of 435 preferences\n"
        "the 30 strongest of 435 preferences"
    )
    assert len(arrows(plot_preference_graph(w, ranks, max_edges=3))) == 3
    every = plot_preference_graph(w, max_edges=435)
    assert len(arrows(every)) == 435 and len(every.texts) == 30
    assert len(arrows(plot_preference_graph(w[:10, :10]))) == 45


@pytest.mark.parametrize(
    ("ranked", "r", "width"),
    covering(
        itertools.product([False, True], [1, 3, 8, 9, 30], [3.6, 6.4, 12.8]),
        lambda ranked, r, width: ((ranked, r), width),
    ),
)
def test_the_graph_can_be_read(ranked, r, width):
    """No two texts overlap, no arrow or dot lies on a name, and nothing leaves the figure."""
    random = np.random.default_rng(r)
    names = ["item " + "x" * random.integers(1, 9) for _ in range(r)]
    ranks = random.permutation(r) + 1 if ranked else None
    ax = plt.subplots(figsize=(width, width if r > 10 else 0.75 * width), layout="constrained")[1]
    plot_preference_graph(random.random((r, r)), ranks, names=names, ax=ax)
    ax.figure.canvas.draw()
    outlines = [corners_of(text) for text in ax.texts]
    bounds = ax.figure.bbox
    for place, outline in enumerate(outlines):
        corners = outline.vertices
        assert (corners >= bounds.min - 1).all() and (corners <= bounds.max + 1).all()
        assert not any(overlap(outline, other) for other in outlines[:place])
    for arrow in arrows(ax):
        path = arrow.get_transform().transform_path(arrow._path_original)
        assert not any(outline.intersects_path(path, filled=False) for outline in outlines[:r])
    dots = ax.transData.transform(ax.collections[0].get_offsets())
    size = np.sqrt(ax.collections[0].get_sizes()[0]) * ax.figure.dpi / 72
    apart = np.hypot(*(dots[:, None] - dots).T) + 1e9 * np.eye(r)
    assert apart.min() > size
    assert not any(outline.contains_point(dot) for outline in outlines for dot in dots)


def overlap(one, other):
    """Whether two outlines overlap. matplotlib 3.9 says so of distant ones with sides in line."""
    boxes = one.get_extents(), other.get_extents()
    return matplotlib.transforms.Bbox.intersection(*boxes) is not None and one.intersects_path(
        other
    )


def corners_of(text):
    """The outline of a text, which may be rotated, as a path in pixels."""
    angle = text.get_rotation()
    text.set_rotation(0)
    box = text.get_window_extent().padded(-1)  # texts have an empty margin
    text.set_rotation(angle)
    anchor = text.get_transform().transform(text.get_unitless_position())
    if isinstance(text, matplotlib.text.Annotation):
        anchor = text.get_transform().transform((text.xyann[0], text.xyann[1]))
    turn = matplotlib.transforms.Affine2D().rotate_deg_around(*anchor, angle)
    corners = [(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)]
    return turn.transform_path(Path([*corners, corners[0]]))


def test_the_graph_refuses_wrong_names_and_numbers():
    with pytest.raises(ValueError, match="one name for each of the 3 documents"):
        plot_preference_graph(BEATS, names=["a", "b"])
    with pytest.raises(ValueError, match="one name for each of the 3 documents"):
        plot_preference_graph(BEATS, names="abc")
    with pytest.raises(ValueError, match="max_edges must be a whole number >= 1"):
        plot_preference_graph(BEATS, max_edges=0)


@pytest.mark.parametrize("plot", [plot_matrix, plot_preference_graph])
def test_bad_input(plot):
    with pytest.raises(ValueError, match="square matrix"):
        plot(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"NaN|finite|nan"):
        plot([[0, np.nan], [0, 0]])
    with pytest.raises(ValueError, match="must be a permutation of 1"):
        plot(BEATS, ranks=[0, 1, 2])


@pytest.mark.parametrize(
    "plot",
    [
        lambda: plot_matrix(BEATS),
        lambda: plot_preference_graph(BEATS),
        lambda: MetricAtKDisplay.from_predictions([1, 0], [2, 1], groups=[0, 0]),
        lambda: QueryDifferencesDisplay.from_predictions([1, 0], [2, 1], [1, 2], groups=[0, 0]),
    ],
)
def test_without_matplotlib_the_error_names_the_extra(plot, monkeypatch):
    found = builtins.__import__

    def missing(name, *args, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return found(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"sklearn_rankcal\[plot\]"):
        plot()


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


def test_intervals_without_an_end_are_arrows():
    result = aggregate([("a", "b")] * 10, intervals="information")
    assert np.isinf(result.score_high[0]) and np.isinf(result.score_low[1])
    ax = result.plot()
    low, high = (one.get_offsets()[0] for one in ax.collections[1:])
    ends = np.array([[s[0][0], s[1][0]] for s in ax.collections[0].get_segments()])
    assert np.isfinite(ends).all() and ends[0, 0] == result.score_low[0]
    assert ends[0, 1] == high[0] > result.scores.max() and ends[1, 0] == low[0] < ends[0, 0]
    assert (low[1], high[1]) == (1, 0)
    ax.figure.canvas.draw()


def test_a_leaderboard_without_resamples_and_of_many_items():
    ax = plot_aggregate(leaderboard())
    assert not ax.collections and ax.get_xlabel() == "score"
    assert [label.get_text() for label in ax.figure.axes[1].get_yticklabels()] == list("1234")
    board = leaderboard(100)
    many = plot_aggregate(board)
    assert many.figure.get_figheight() > 20
    axes = matplotlib.pyplot.subplots(figsize=(4, 4))[1]
    assert plot_aggregate(board, ax=axes) is axes
    assert axes.get_yticklabels()[0].get_fontsize() == 5


def test_a_leaderboard_of_one_query_of_several_and_items_without_a_score():
    orders = [["$a$", "b" * 60], ["c", "d"]]
    judgements = Judgements.from_orders(orders, groups=["x", "y"], unlisted="ignore")
    result = aggregate(judgements, "borda", n_resamples=5)
    with pytest.raises(ValueError, match="as group="):
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


def test_parts_that_no_comparison_connects_are_separated():
    pairs = [("a", "b")] * 3 + [("b", "c")] * 2 + [("c", "a")] + [("x", "y")] * 9 + [("y", "x")]
    judgements = Judgements.from_pairs(pairs, items=["none", *"ayxbc"])
    with pytest.warns(DisconnectedComparisonsWarning):
        result = aggregate(judgements, "btl", n_resamples=30)
    ax = plot_aggregate(result)
    places = dict(zip([t.get_text() for t in ax.get_yticklabels()], ax.get_yticks(), strict=True))
    assert places == {"a": 0, "b": 1, "c": 2, "x": 4, "y": 5, "none": 7}
    lines = [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"]
    assert lines == [3, 6]
    notes = {text.get_position()[1]: text.get_text() for text in ax.texts}
    assert notes == {3: "not compared with the items above", 6: "in no comparison"}
    shown = plot_probability_above(result)
    assert [t.get_text() for t in shown.get_yticklabels()] == list(places)
    empty = np.isnan(np.asarray(shown.images[0].get_array().filled(np.nan)))
    assert not empty[:3, :3][~np.eye(3, dtype=bool)].any() and empty[:3, 3:].all()
    assert not plot_aggregate(leaderboard()).texts


def test_clear_probabilities_are_bold():
    result = leaderboard(12, n_resamples=100)
    percent = 100 * result.probability_matrix()
    weights = []
    for text in plot_probability_above(result).texts:
        other, one = text.get_position()
        clear = max(percent[one, other], percent[other, one]) >= 97.5
        assert text.get_weight() == ("bold" if clear else "normal")
        weights.append(text.get_weight())
    assert set(weights) == {"bold", "normal"}


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
    with pytest.raises(ValueError, match="no intervals"):
        plot_probability_above(leaderboard())


def points_and_bars(ax):
    """Place and share of each point, and the ends of its bar."""
    points = [line.get_xydata()[0] for line in ax.lines[:-1]]
    bars = np.array([bar.get_segments()[0] for bar in ax.collections])
    np.testing.assert_array_equal(bars[:, 0, 0], np.transpose(points)[0])
    return np.column_stack([points, bars[:, :, 1]])


@pytest.mark.parametrize("n_queries", [1, 3, 10])
def test_bars_of_choice_calibration_have_the_share_that_right_probabilities_give(n_queries):
    rng, outside, draws = np.random.default_rng(n_queries), 0, 40
    for _ in range(draws):
        groups = np.repeat(np.arange(n_queries), 4)
        p = rng.dirichlet([0.5] * 4, n_queries)
        chosen = (rng.random((n_queries, 1)) < p.cumsum(axis=1)).argmax(axis=1)
        ax = plot_choice_calibration(np.eye(4)[chosen].ravel(), p.ravel(), groups, n_bins=2)
        x, share, low, high = points_and_bars(ax).T
        assert [x.mean(), share.mean()] == pytest.approx([0.25, 0.25])  # two bins of equal size
        assert (0 <= low).all() and (low <= high).all() and (high <= 1).all()
        outside += np.sum((share < low - 1e-9) | (share > high + 1e-9))
        plt.close("all")
    assert outside <= 0.05 * 2 * draws


def test_choice_calibration_shows_probabilities_that_are_too_sure():
    groups = np.repeat(np.arange(200), 2)
    ax = plot_choice_calibration(np.tile([1, 0, 0, 1], 100), np.tile([0.9, 0.1], 200), groups)
    _, share, low, high = points_and_bars(ax).T
    assert ((share < low) | (share > high)).all()
    with pytest.raises(ValueError, match="needs probabilities"):
        plot_choice_calibration([1, 0], [2.0, 1.0], [0, 0])
