"""Displays: a metric against its cutoff, and the differences of two rankings query by query."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import CalibratedRanker, relevance_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.exceptions import MissingGroupsWarning
from sklearn_rankcal.losses import NDCG, get_measure
from sklearn_rankcal.metrics import (
    compare_rankings,
    evaluate_rankings,
    pairwise_disagreement_loss,
    precision_at_k_score,
)
from sklearn_rankcal.plotting import MetricAtKDisplay, QueryDifferencesDisplay
from sklearn_rankcal.utils._axes import place_legend  # the place of all legends

from ..covering import covering
from ..metric_data import per_query
from .test_plotting import close_figures  # noqa: F401, a fixture of every test

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")

DATA = make_ranking(60, (3, 14), 8, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups
RANDOM = np.random.default_rng(0)
GOOD, POOR = Y + RANDOM.normal(size=len(Y)), Y + 3 * RANDOM.normal(size=len(Y))


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def covered(ax):
    """The number of points of curves, areas and bars that lie under the legend.

    The points are taken close to each other along each outline.
    """
    ax.figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    artists = [(line, [line.get_path()]) for line in ax.lines]
    artists += [(patch, [patch.get_path()]) for patch in ax.patches]
    artists += [(area, area.get_paths()) for area in ax.collections]
    number = 0
    for artist, paths in artists:
        for path in paths:
            if not len(path.vertices):  # matplotlib 3.9 cannot interpolate an empty path
                continue
            points = artist.get_transform().transform_path(path).interpolated(200).vertices
            number += box.count_contains(points)
    return number


@pytest.mark.parametrize("metric", ["dcg", "err", "map", "mrr", "ndcg", "precision", "recall"])
def test_the_curve_is_the_metric_at_each_cutoff(metric):
    options = {} if metric in ("dcg", "err", "ndcg") else {"threshold": 2}
    display = MetricAtKDisplay.from_predictions(
        Y, GOOD, groups=G, metric=metric, k=[5, 1, 3], **options
    )
    names = [f"{metric}@{k}" for k in (1, 3, 5)]
    values = evaluate_rankings(Y, GOOD, metrics=names, groups=G, confidence_level=0.95, **options)
    assert display.k.tolist() == [1, 3, 5]
    assert display.n_queries == values[names[0]].n_queries
    for name, mean, low, high in zip(names, display.mean, display.low, display.high, strict=True):
        own = values[name]
        np.testing.assert_allclose([mean, low, high], [own.mean, own.low, own.high], rtol=1e-12)
    np.testing.assert_array_equal(display.line_.get_xydata().T, [display.k, display.mean])
    corners = display.interval_.get_paths()[0].vertices
    assert {(1.0, low) for low in display.low[:1]} <= {tuple(corner) for corner in corners}
    assert {(5.0, high) for high in display.high[2:]} <= {tuple(corner) for corner in corners}
    assert display.ax_.get_legend() is None  # there is no name
    assert f"{metric}@k".lower() in display.ax_.get_ylabel().lower()
    measure = get_measure(names[0], **options)
    of_object = MetricAtKDisplay.from_predictions(Y, GOOD, groups=G, metric=measure, k=[5, 1, 3])
    assert of_object.mean.tolist() == display.mean.tolist()
    assert type(measure).__name__ in of_object.ax_.get_ylabel()


def test_estimators_and_predictions_give_the_same_curve():
    labels = relevance_labels(Y, G)
    ranker = CalibratedRanker(Ridge(), loss="ndcg").fit(X, Y, groups=G)
    ranks = ranker.predict(X, groups=G)
    expected = MetricAtKDisplay.from_predictions(Y, ranks=ranks, groups=G, name="of positions")
    found = MetricAtKDisplay.from_estimator(ranker, X, Y, G, ax=expected.ax_)
    np.testing.assert_array_equal(found.mean, expected.mean)
    np.testing.assert_array_equal(found.high, expected.high)
    assert found.k.tolist() == list(range(1, 11))
    assert texts(found.ax_) == ["of positions", "CalibratedRanker"]
    lines = found.line_, expected.line_
    for look in ("get_color", "get_linestyle", "get_marker"):  # distinct in colour and in grey
        assert getattr(lines[0], look)() != getattr(lines[1], look)()
    pipe = make_pipeline(StandardScaler(), CalibratedRanker(Ridge(), loss="ndcg")).fit(X, labels)
    again = MetricAtKDisplay.from_estimator(pipe, X, labels, line_kw={"color": "red"})
    np.testing.assert_allclose(again.mean, found.mean, rtol=0.01)
    assert again.line_.get_color() == "red" and again.name == "CalibratedRanker"
    plain = LinearRegression().fit(X, Y)
    scores = MetricAtKDisplay.from_predictions(Y, plain.predict(X), groups=G)
    np.testing.assert_array_equal(MetricAtKDisplay.from_estimator(plain, X, Y, G).mean, scores.mean)


def test_weights_of_rows_weigh_the_queries():
    weight = np.where(G < 20, 3.0, 1.0)
    options = {"groups": G, "sample_weight": weight}
    expected = precision_at_k_score(Y, GOOD, k=2, threshold=2, **options)
    display = MetricAtKDisplay.from_predictions(
        Y, GOOD, metric="precision", threshold=2, k=[2], **options
    )
    assert display.mean[0] == pytest.approx(expected)
    plain = MetricAtKDisplay.from_predictions(Y, GOOD, metric="precision", threshold=2, groups=G)
    assert display.mean[0] != plain.mean[1]
    fitted = LinearRegression().fit(X, Y)
    of_estimator = MetricAtKDisplay.from_estimator(fitted, X, Y, k=[2], **options)
    of_scores = MetricAtKDisplay.from_predictions(Y, fitted.predict(X), k=[2], **options)
    assert of_estimator.low[0] == of_scores.low[0]
    first = QueryDifferencesDisplay.from_predictions(Y, GOOD, POOR, **options)
    comparison = compare_rankings(Y, GOOD, POOR, **options)
    assert first.comparison.difference == pytest.approx(comparison.difference)
    assert first.comparison.high == pytest.approx(comparison.high)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "ndcg@10"}, "cutoffs from 1 to 10, pass metric='ndcg' and k=10"),
        ({"metric": "auc"}, "has no cutoff. Choose one of dcg, "),
        ({"metric": NDCG(), "gain": "linear"}, "Set the parameters of this object"),
        ({"k": 0}, "whole numbers >= 1"),
        ({"k": []}, "whole numbers >= 1"),
        ({"k": [1, 2.5]}, "whole numbers"),
        ({"k": 10**9}, "more than 1000 cutoffs"),
        ({"metric": "precision"}, "needs binary relevance"),
        ({"confidence_level": 1.5}, "confidence_level"),
    ],
)
def test_metric_at_k_refuses(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        MetricAtKDisplay.from_predictions(Y, GOOD, groups=G, **options)
    with pytest.raises((TypeError, ValueError), match=message):
        MetricAtKDisplay.from_estimator(LinearRegression().fit(X, Y), X, Y, G, **options)
    assert not plt.get_fignums()  # the error comes before a figure is made


def test_queries_that_cannot_be_determined():
    fitted = LinearRegression().fit(X, Y)
    with pytest.raises(ValueError, match="MetricAtKDisplay cannot determine which rows"):
        MetricAtKDisplay.from_estimator(fitted, X, Y)
    with pytest.raises(TypeError, match=r"Pass groups=<query id of each row>"):
        MetricAtKDisplay.from_predictions(Y, GOOD, qid=G)
    with pytest.raises(TypeError, match="has no parameter 'gian'"):
        QueryDifferencesDisplay.from_predictions(Y, GOOD, POOR, groups=G, gian="linear")
    for call in (
        lambda: MetricAtKDisplay.from_predictions(Y, GOOD),
        lambda: QueryDifferencesDisplay.from_predictions(Y, GOOD, POOR),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        caught = [each for each in caught if each.category is MissingGroupsWarning]
        assert caught and all(each.filename == __file__ for each in caught)


def test_differences_are_those_of_each_query():
    display = QueryDifferencesDisplay.from_predictions(
        Y, GOOD, POOR, groups=[f"query {g}" for g in G], metric="ndcg@5", names=("good", "poor")
    )
    values = [
        evaluate_rankings(Y, s, groups=G, metrics="ndcg@5", return_per_query=True)["ndcg@5"]
        for s in (GOOD, POOR)
    ]
    kept = ~np.isnan(values[0])
    expected = (values[0] - values[1])[kept]
    np.testing.assert_allclose(display.difference, expected, atol=1e-9)
    assert display.query.tolist() == [f"query {g}" for g in np.flatnonzero(kept)]
    assert display.comparison == compare_rankings(Y, GOOD, POOR, groups=G, metric="ndcg@5")
    counts = [int((sign * expected > 1e-9).sum()) for sign in (1, -1)]
    assert [display.won, display.lost] == counts and min(counts) > 0
    assert display.won + display.tied + display.lost == kept.sum() and display.tied > 0
    won, lost = (bars.get_data().values for bars in display.bars_)
    np.testing.assert_array_equal(won + lost, np.sort(display.difference)[::-1])
    assert (won >= 0).all() and (lost <= 0).all()
    assert display.line_.get_ydata()[0] == display.comparison.difference
    shown = texts(display.ax_)
    assert shown[:3] == [
        f"good is better: {counts[0]}",
        f"poor is better: {counts[1]}",
        f"equal: {display.tied}",
    ]
    assert f"mean difference {display.comparison.difference:+.3g}\n95 % interval" in shown[3]
    band = display.ax_.patches[2].get_window_extent().transformed(display.ax_.transData.inverted())
    np.testing.assert_allclose(
        [band.y0, band.y1], [display.comparison.low, display.comparison.high]
    )


def test_a_metric_of_which_smaller_is_better():
    options = {"groups": G, "metric": "pairwise_disagreement", "names": ("good", "poor")}
    display = QueryDifferencesDisplay.from_predictions(Y, GOOD, POOR, **options)
    better, worse = (per_query(pairwise_disagreement_loss, Y, s, groups=G) for s in (GOOD, POOR))
    assert display.won == (better < worse - 1e-9).sum() > display.lost > 0
    assert texts(display.ax_)[0] == f"poor is better: {display.lost}"  # the bars above 0
    assert display.bars_[0].get_data().values.max() <= 0
    assert display.bars_[0].get_facecolor() != display.bars_[1].get_facecolor()
    ordinary = QueryDifferencesDisplay.from_predictions(Y, GOOD, POOR, groups=G)
    assert ordinary.bars_[0].get_facecolor() == display.bars_[0].get_facecolor()


def test_differences_of_a_ranking_from_itself():
    positions = CalibratedRanker(Ridge(), loss="ndcg").fit(X, Y, groups=G).predict(X, groups=G)
    same = QueryDifferencesDisplay.from_predictions(
        Y, positions, positions, as_ranks=True, groups=G
    )
    assert same.tied == len(same.difference) and same.comparison.p_value == 1
    same.figure_.canvas.draw()
    with pytest.raises(ValueError, match="names must be the names of the two"):
        QueryDifferencesDisplay.from_predictions(Y, GOOD, POOR, groups=G, names="ab")


@pytest.mark.parametrize(
    ("width", "layout"), covering(itertools.product([3.6, 6.4, 12.8], ["constrained", None]))
)
def test_legends_cover_nothing(width, layout):
    """Also where every bar is above 0 and every curve ends under the corner of the legend."""
    size = {"figsize": (width, 0.75 * width), "layout": layout}
    ax = plt.subplots(**size)[1]
    for number, scores in enumerate([Y + 0.0, GOOD, POOR, GOOD + POOR]):
        MetricAtKDisplay.from_predictions(
            Y, scores, groups=G, name=f"ranker with a name {number}", ax=ax
        )
    assert covered(ax) == 0
    for first, second in ((Y, POOR), (GOOD, POOR), (POOR, Y)):
        ax = plt.subplots(**size)[1]
        QueryDifferencesDisplay.from_predictions(
            Y, first, second, groups=G, names=("the calibrated one", "boosting"), ax=ax
        )
        assert covered(ax) == 0
        box, frame = ax.get_legend().get_window_extent(), ax.get_window_extent()
        assert box.x0 >= frame.x0 and box.y0 > frame.y0 + 0.3 * frame.height


def test_a_legend_raises_the_upper_limit_where_it_must():
    ax = plt.subplots()[1]
    ax.plot([0, 1], [0, 1], label="rising")
    low, high = ax.get_ylim()
    place_legend(ax)
    raised = ax.get_ylim()
    assert raised[0] == low and raised[1] > high and covered(ax) == 0
    place_legend(ax)
    assert ax.get_ylim() == pytest.approx(raised)
    ax.set_ylim(0, 10)
    place_legend(ax)
    assert ax.get_ylim() == (0, 10) and covered(ax) == 0


def test_labels_that_are_all_0_are_no_matter_of_two_values():
    with pytest.raises(ValueError, match="NDCG, for example, is undefined if all labels") as error:
        MetricAtKDisplay.from_predictions([0, 0], [1.0, 2.0], groups=[0, 0])
    assert "both" not in str(error.value)


def test_the_interval_of_one_query():
    given = {"y_true": [1, 0, 0], "groups": [0, 0, 0]}
    for metric, interval in (("ndcg", "[-1, +1]"), ("dcg", "[-inf, +inf]")):
        bars = QueryDifferencesDisplay.from_predictions(
            first=[3, 2, 1], second=[1, 2, 3], metric=metric, **given
        )
        assert interval in texts(bars.ax_)[-1]
        assert all(np.isfinite(bars.ax_.get_ylim()))
    curve = MetricAtKDisplay.from_predictions(y_score=[3, 2, 1], metric="dcg", k=2, **given)
    assert (curve.low == 0).all() and (curve.high == np.inf).all()
    for display in (bars, curve):
        display.figure_.canvas.draw()
        assert all(np.isfinite(display.ax_.get_ylim()))
