"""`diagnose`, compared with the consistency module and with known distributions."""

import itertools

import numpy as np
import pytest
from scipy.special import stdtrit
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker, preference_labels
from sklearn_rankcal.consistency import satisfies_reinforce, satisfies_score_condition
from sklearn_rankcal.datasets import make_preferences, make_ranking
from sklearn_rankcal.losses import DCG, MAP, PD, get_loss
from sklearn_rankcal.models import BilinearPairs
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._diagnosis import scores_suffice, squared_errors  # by enumeration
from sklearn_rankcal.targets import PAIRS, SYMMETRIC_PAIRS


def matrices(u, queries, symmetric):
    start = 0
    for r in queries.sizes:
        i, j = np.triu_indices(r, 0 if symmetric else 1)
        matrix = np.zeros((r, r))
        matrix[j, i] = u[start : start + len(i)] * (1 if symmetric else -1)
        matrix[i, j] = u[start : start + len(i)]
        start += len(i)
        yield matrix


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("entries", [1, 2**21])
def test_scores_suffice_where_the_theorems_condition_holds(monkeypatch, symmetric, entries):
    monkeypatch.setattr("sklearn_rankcal.utils._memory.BLOCK_BYTES", 8 * entries)
    rng = np.random.default_rng(0)
    queries = Queries.from_groups(np.repeat(np.arange(200), rng.integers(1, 6, size=200)))
    counts = queries.sizes * (queries.sizes + (1 if symmetric else -1)) // 2
    noise = np.repeat(rng.choice([0.0, 0.1, 1.0], size=200), counts)
    p = rng.random(queries.n_rows).round(1)
    parts = []
    for a, b in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        i, j = np.triu_indices(b - a, 0 if symmetric else 1)
        own = p[a:b]
        parts.append(np.where(i == j, own[i], own[i] * own[j]) if symmetric else own[i] - own[j])
    u = (np.concatenate(parts) + noise * rng.normal(size=counts.sum())).round(2)
    wanted = []
    for matrix in matrices(u, queries, symmetric):
        if symmetric:
            wanted.append(bool(satisfies_reinforce(matrix)))
        else:
            wanted.append(
                len(matrix) < 2 or bool(satisfies_score_condition(matrix, matrix.sum(axis=1)))
            )
    assert 40 < sum(wanted) < 180
    assert scores_suffice(u, queries, SYMMETRIC_PAIRS if symmetric else PAIRS).tolist() == wanted


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("loss", [DCG(gain="linear"), PD("graded"), MAP(), get_loss("recall@2")])
def test_several_labels_give_the_squared_distance_without_bias(loss, m):
    """Compare the mean over many copies of one query with the expectation written out."""
    rng = np.random.default_rng(0)
    n, r = 20_000, 4
    queries = Queries.uniform(n, r)
    worlds = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [1, 1, 1, 0], [0, 0, 1, 0.0]])
    chance = [0.4, 0.3, 0.2, 0.1]
    draws = [worlds[rng.choice(4, size=n, p=chance)].ravel() for _ in range(m)]

    def flat(y):
        targets = loss.encode(np.asarray(y, dtype=float), Queries.single(r))
        return targets if loss.space == "scores" else targets.flat()

    expected = sum(c * flat(y) for c, y in zip(chance, worlds, strict=True))
    u = expected + rng.normal(size=len(expected))
    difference = u - expected
    if loss.space == "scores":
        difference -= difference.mean()
    if loss.space == "symmetric_pairs":
        own = np.equal(*np.triu_indices(r))
        for kind in (own, ~own):
            difference[kind] -= difference[kind].mean()
    true = (difference**2).sum()
    estimate = squared_errors(loss, np.tile(u, n), draws, queries)
    assert estimate.mean() == pytest.approx(true, rel=0.02)
    once = squared_errors(loss, np.tile(u, n), draws[:1], queries)
    assert once.mean() > 1.02 * estimate.mean()


@pytest.fixture(scope="module")
def world():
    data = make_ranking(500, (1, 9), 6, random_state=0)
    train = data.groups < 100
    ranker = CalibratedRanker(Ridge(), loss="dcg").fit(
        data.X[train], data.y[train], groups=data.groups[train]
    )
    return data, ~train, ranker


def test_the_bound_holds_and_several_labels_sharpen_it(world):
    data, test, ranker = world
    X, groups, chance = data.X[test], data.groups[test], data.probabilities[test]
    gains = chance @ (2.0 ** np.arange(chance.shape[1]) - 1)
    ranks = ranker.predict(X, groups=groups)
    scores = ranker.decision_function(X, groups=groups)
    regrets, distances = [], []
    for g in np.unique(groups):
        own = groups == g
        discounts = 1 / np.log2(1 + np.arange(1, own.sum() + 1))
        best = np.sort(gains[own])[::-1] @ discounts
        regrets.append(best - gains[own] @ discounts[ranks[own] - 1])
        rest = scores[own] - gains[own]
        distances.append(((rest - rest.mean()) ** 2).sum())
    rng = np.random.RandomState(0)
    y = np.stack([[rng.choice(len(p), p=p) for p in chance] for _ in range(10)], axis=1)
    once, often = ranker.diagnose(X, groups, y[:, 0]), ranker.diagnose(X, groups, y)
    assert 0 < np.mean(regrets) < often.regret_bound < once.regret_bound
    assert once.regret_estimate < once.regret_bound
    assert often.per_query["squared_error"].mean() == pytest.approx(np.mean(distances), rel=0.2)
    constant = [ranker.loss_.regret_constant(r) for r in often.per_query["n_documents"]]
    np.testing.assert_allclose(
        often.per_query["squared_bound"],
        np.square(constant) * often.per_query["squared_error"],
    )
    assert "expected regret at most" in repr(once) and not once.shares


def test_pairs_have_shares_gaps_and_agree_with_the_report():
    options = {"n_documents": 6, "n_features": 3, "kind": "cyclic", "noise": 0.3}
    train, test = (make_preferences(60, **options, random_state=seed) for seed in (0, 1))
    ranker = CalibratedRanker(BilinearPairs(), loss="pd", decoder="greedy_dag")
    ranker.fit(train.X, train.y)
    report = ranker.decode_report(test.X, groups=test.groups)
    diagnosis = ranker.diagnose(test.X, test.groups)
    for name, column in report.items():
        if name != "cyclic":
            np.testing.assert_array_equal(diagnosis.per_query[name], column)
    np.testing.assert_array_equal(diagnosis.per_query["acyclic"], ~report["cyclic"])
    assert 0 < diagnosis.shares["acyclic"] < 1
    assert (diagnosis.per_query["acyclic"] >= diagnosis.per_query["scores_suffice"]).all()
    assert np.isnan(diagnosis.regret_bound) and "acyclic" in repr(diagnosis)
    labelled = ranker.diagnose(test.X, y=test.y)
    u = ranker.predict_preferences(test.X, groups=test.groups)
    first = test.pairs[test.groups[test.pairs[:, 0]] == 0]
    signs = np.zeros((6, 6))
    signs[first[:, 0], first[:, 1]] = 1
    rest = (u[0] - (signs - signs.T))[np.triu_indices(6, 1)]
    assert labelled.per_query["squared_error"][0] == pytest.approx((rest**2).sum())
    squares, gap = 15 * labelled.per_query["squared_error"], report["gap"]
    estimate = np.sqrt(squares.mean()) + gap.mean()
    assert labelled.regret_estimate == pytest.approx(estimate)
    half = stdtrit(59, 0.95) / np.sqrt(60)
    upper = np.sqrt(squares.mean() + half * squares.std(ddof=1))
    assert labelled.regret_bound == pytest.approx(upper + gap.mean() + half * gap.std(ddof=1))


def test_several_labels_of_preferences_remove_their_noise():
    """If the same judgements are given twice, their variance and the estimated noise are 0."""
    options = {"n_documents": 6, "n_features": 3, "kind": "cyclic", "noise": 0.3}
    train, test = (make_preferences(60, **options, random_state=seed) for seed in (0, 1))
    ranker = CalibratedRanker(BilinearPairs(), loss="pd").fit(train.X, train.y)
    once, twice = ranker.diagnose(test.X, y=test.y), ranker.diagnose(test.X, y=[test.y, test.y])
    np.testing.assert_allclose(twice.per_query["squared_error"], once.per_query["squared_error"])


def test_queries_left_out_of_the_bound_do_not_reduce_the_gap():
    """Algorithm 1 contradicts 6 of 21 and the best ranking 4.

    Queries of one document are added, which are left out of the bound.
    """
    weights = {(3, 0): 6, (2, 1): 5, (1, 3): 4, (0, 2): 3, (3, 2): 2, (0, 1): 1}
    pairs = [(4 * q + i, 4 * q + j) for q in range(40) for i, j in weights]
    groups = np.append(np.repeat(np.arange(40), 4), 40 + np.arange(400))
    X = np.zeros((560, 4))
    X[:160] = np.tile(np.eye(4), (40, 1))
    labels = preference_labels(pairs, groups, np.tile([*weights.values()], 40))
    model = BilinearPairs(alpha=1e-9)
    ranker = CalibratedRanker(model, loss=PD(equal_queries=True), decoder="greedy_dag").fit(
        X, labels
    )
    diagnosis = ranker.diagnose(X, y=labels)
    assert diagnosis.regret_estimate >= 2 / 21 - 1e-3
    alone = ranker.diagnose(X[160:], groups[160:], labels[160:])
    assert not alone.shares and np.isnan(alone.regret_bound)


def test_queries_without_a_measure_are_left_out_of_the_bound():
    data = make_ranking(60, 4, 6, n_levels=2, random_state=0)
    ranker = CalibratedRanker(loss="map").fit(data.X, data.y, groups=data.groups)
    y = data.y.copy()
    y[data.groups == 3] = 0
    diagnosis = ranker.diagnose(data.X, data.groups, y)
    assert np.isnan(diagnosis.per_query["squared_error"][3])
    assert np.isfinite(diagnosis.regret_bound)
    both = ranker.diagnose(data.X, data.groups, np.stack([y, data.y], axis=1))
    assert np.isfinite(both.per_query["squared_error"][3])


def test_a_loss_that_is_not_calibrated_everywhere_has_no_bound(world):
    data, test, _ = world
    ranker = CalibratedRanker(Ridge(), loss="err").fit(data.X, data.y, groups=data.groups)
    diagnosis = ranker.diagnose(data.X[test], data.groups[test], data.y[test])
    assert np.isnan(diagnosis.regret_bound) and "no regret bound" in repr(diagnosis)


def test_bad_labels_are_refused(world):
    data, test, ranker = world
    X, groups, y = data.X[test], data.groups[test], data.y[test]
    with pytest.raises(ValueError, match=r"rows|length|samples"):
        ranker.diagnose(X, groups, y[:-1])
    with pytest.raises(ValueError, match=">= 0"):
        ranker.diagnose(X, groups, y - 1)
    with pytest.raises(ValueError, match="no column"):
        ranker.diagnose(X, groups, np.zeros((len(X), 0)))
    with pytest.raises(ValueError, match="fitted with query ids"):
        ranker.diagnose(X)


def test_frame_and_plot(world):
    pd = pytest.importorskip("pandas")
    data, test, ranker = world
    X, groups, y = data.X[test], data.groups[test], data.y[test]
    diagnosis = ranker.diagnose(X, groups, y)
    frame = diagnosis.to_frame()
    assert isinstance(frame, pd.DataFrame) and len(frame) == len(np.unique(groups))
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    left, right = diagnosis.plot()
    assert right.get_xlabel() == "documents" and len(right.lines) == 2
    pairs = CalibratedRanker(Ridge(), loss="pd").fit(X, y, groups=groups)
    left, right = pairs.diagnose(X, groups).plot()
    assert len(left.patches) == 3 and len(right.lines) == 1


@pytest.mark.parametrize("width", [6.4, 12.8])
def test_the_legend_of_the_plot_covers_no_query(world, width):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    data, test, ranker = world
    X, groups, y = data.X[test], data.groups[test], data.y[test]
    figure, axes = plt.subplots(1, 2, figsize=(width, 0.4 * width), layout="constrained")
    left, right = ranker.diagnose(X, groups, y).plot(axes)
    assert "sorts scores" in left.texts[0].get_text()  # there are no certificates to show
    figure.canvas.draw()
    legend = right.get_legend().get_window_extent()
    points = right.transData.transform(right.lines[0].get_xydata())
    assert not any(legend.contains(*point) for point in points)
    assert right.lines[1].get_window_extent().y1 < legend.y0
    # the texts of the bars and the numbers beside the bars stay inside of the figure
    pairs = CalibratedRanker(Ridge(), loss="pd").fit(X, y, groups=groups)
    figure, axes = plt.subplots(1, 2, figsize=(width, 0.4 * width), layout="constrained")
    left, right = pairs.diagnose(X, groups).plot(axes)
    figure.canvas.draw()
    for text in (*left.get_yticklabels(), *left.texts):
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= right.get_window_extent().x0
    assert all(text.get_window_extent().x1 <= left.bbox.x1 for text in left.texts)
    ends = [text.get_window_extent() for text in left.get_yticklabels()]
    assert all(a.y0 > b.y1 for a, b in itertools.pairwise(ends))
    plt.close("all")


def test_a_cycle_of_rounding_errors_does_not_count(monkeypatch):
    """Preferences that scores explain are acyclic (P_f implies P_DAG), also if documents tie."""
    data = make_ranking(n_queries=20, n_documents=5, random_state=0)
    ranker = CalibratedRanker(BilinearPairs(), loss="pd").fit(data.X, data.y, groups=data.groups)
    X, groups = np.arange(8.0)[:, None] * np.ones(data.X.shape[1]), np.repeat([0, 1], 4)
    noise = np.zeros((4, 4))
    noise[[0, 1, 2], [1, 2, 0]] = 1e-17  # documents 0, 1 and 2 tie, and 3 is last
    noise -= noise.T
    noise[:3, 3], noise[3, :3] = 1.0, -1.0
    real = noise * np.where(np.abs(noise) < 1e-9, 1e13, 1)
    u = np.concatenate([matrix[np.triu_indices(4, 1)] for matrix in (noise, real)])
    monkeypatch.setattr(type(ranker.model_), "predict", lambda self, X, queries: u)
    assert ranker.decode_report(X, groups)["cyclic"].tolist() == [False, True]
    diagnosis = ranker.diagnose(X, groups)
    assert diagnosis.per_query["acyclic"].tolist() == [True, False]
    assert diagnosis.per_query["scores_suffice"].tolist() == [True, False]
