"""Targets and models of pairs, compared with explicit loops over the pairs."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from sklearn_rankcal import CalibratedLabelRanker, CalibratedRanker
from sklearn_rankcal.decoders import decode_preferences
from sklearn_rankcal.labels import preference_labels
from sklearn_rankcal.labels._labels import read_preferences  # labels as losses see them
from sklearn_rankcal.losses import MAP, PD, PDByScores
from sklearn_rankcal.metrics import pairwise_disagreement_loss
from sklearn_rankcal.models import (
    BilinearPairs,
    DocumentModel,
    PairModel,
    PairwiseRidge,
    ResidualPairModel,
    Training,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PairTargets, RelevanceDifferences, RelevanceProducts

from ..metric_data import per_query
from ..pair_data import make_pair_data, ordered_pairs, target

H = {"binary": "binary", "graded": "graded", "square": lambda difference: difference**2}

pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture
def data():
    return make_pair_data()


@pytest.mark.parametrize("entries", [1, 40, 2**21])
@pytest.mark.parametrize("h", H)
def test_differences_of_relevance(monkeypatch, data, h, entries):
    monkeypatch.setattr("sklearn_rankcal.utils._memory.BLOCK_BYTES", 8 * entries)
    _, y, groups, weight = data
    queries = Queries.from_groups(groups)
    factor = np.random.default_rng(1).random(queries.n_queries)
    targets = RelevanceDifferences(y, queries, H[h], factor)
    scale = dict(zip(queries.ids, factor, strict=True))
    flat, sums, weighted = [], np.zeros(len(y)), np.zeros(len(y))
    for i, j in ordered_pairs(groups):
        value = scale[groups[i]] * target(h, y, i, j)
        sums[i] += value
        weighted[i] += weight[j] * value
        if i < j:
            flat.append(value)
    np.testing.assert_allclose(targets.flat(), flat, atol=1e-12)
    for given in (targets.row_sums, lambda *args: PairTargets.row_sums(targets, *args)):
        np.testing.assert_allclose(given(), sums, atol=1e-12)
        np.testing.assert_allclose(given(weight), weighted, atol=1e-12)


def test_products_of_relevance(data):
    _, y, groups, _ = data
    relevant, queries = (y > 1).astype(float), Queries.from_groups(groups)
    flat = RelevanceProducts(relevant, queries, queries.sum(relevant)).flat()
    wanted = [
        relevant[i] * relevant[j] / max(relevant[groups == groups[i]].sum(), 1)
        for i, j in ordered_pairs(groups, equal=True)
        if i <= j
    ]
    np.testing.assert_allclose(flat, wanted, atol=1e-12)


# ------------------------------------------------------------------ any regressor


def test_pair_model_is_antisymmetric(data):
    X, y, groups, weight = data
    queries = Queries.from_groups(groups)
    targets = RelevanceDifferences(y, queries, "binary", np.ones(queries.n_queries))
    model = PairModel(DecisionTreeRegressor(max_depth=4, random_state=0))
    model.fit(Training(X, targets, queries, weight))
    assert model.n_pairs_ == len(targets.flat())
    pair = Queries.single(2)
    for i, j in [(0, 1), (3, 9)]:
        there, back = model.predict(X[[i, j]], pair), model.predict(X[[j, i]], pair)
        assert there.shape == (1,) and there[0] == -back[0]


class Remember(LinearRegression):
    """A regressor that keeps the data on which it was fitted."""

    def fit(self, X, y, sample_weight=None):
        self.shown_ = np.column_stack([X, y, np.ones(len(y)) if sample_weight is None
                                       else sample_weight])  # fmt: skip
        return super().fit(X, y, sample_weight)


def test_pair_model_draws_all_pairs_with_equal_probability():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), rng.integers(2, 30, size=30))
    queries = Queries.from_groups(groups)
    y = rng.integers(0, 3, size=len(groups)).astype(float)
    targets = RelevanceDifferences(y, queries, "binary", np.ones(30))
    X = np.c_[np.arange(len(y)), groups].astype(float)
    n_pairs = len(targets.flat())
    model = PairModel(Remember(), max_pairs=n_pairs // 4, random_state=1).fit(
        Training(X, targets, queries)
    )
    assert abs(model.n_pairs_ - n_pairs / 4) < 5 * np.sqrt(n_pairs / 4)
    shown = model.regressor_.shown_
    assert (shown[:, 1] == shown[:, 3]).all() and (shown[:, 0] != shown[:, 2]).all()
    turned = (shown[:, 0] > shown[:, 2]).mean()
    assert 0.4 < turned < 0.6
    per_query = np.bincount(shown[:, 1].astype(int), minlength=30)
    expected = queries.sizes * (queries.sizes - 1) / 8
    assert (np.abs(per_query - expected) < 5 * np.sqrt(expected + 1)).all()


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_pairs", [None, 60])
@pytest.mark.parametrize("symmetric", [False, True])
def test_a_fit_does_not_depend_on_the_order_of_rows(symmetric, max_pairs, weighted, normalize):
    """This holds even if documents of different relevance, or queries, have equal features."""
    rng = np.random.default_rng(0)
    n = 96
    X = rng.integers(0, 3, (n, 2)).astype(float)
    groups, y = np.repeat(np.arange(16), 6), rng.integers(0, 4, n).astype(float)
    X[6:12], y[6:12] = X[:6], y[:6]  # a query twice
    X[12:18] = X[:6]  # and with other labels
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    loss = MAP(threshold=2) if symmetric else PD("graded", equal_queries=normalize)
    model = PairModel(Remember(), symmetric=symmetric, max_pairs=max_pairs)
    shown = []
    for seed in range(4):
        rows = rng.permutation(n) if seed else np.arange(n)
        ids = rng.permutation(16)[groups[rows]] if seed else groups
        ranker = CalibratedRanker(model, loss=loss)
        ranker.fit(X[rows], y[rows], ids, None if weight is None else weight[rows])
        fitted = [ranker.model_.regressor_.shown_]
        fitted += [ranker.model_.diagonal_.shown_] if symmetric else []
        shown.append(np.concatenate([part.ravel() for part in fitted]))
    for other in shown[1:]:
        np.testing.assert_allclose(other, shown[0], rtol=1e-12)


def test_which_pairs_are_drawn_depends_on_the_seed():
    rng = np.random.default_rng(0)
    X, groups, y = rng.normal(size=(60, 2)), np.repeat(range(6), 10), rng.integers(0, 3, 60)
    seen = []
    for seed in (0, 0, 1):
        model = PairModel(Remember(), max_pairs=50, random_state=seed)
        ranker = CalibratedRanker(model, loss="pd").fit(X, y, groups)
        seen.append(ranker.model_.regressor_.shown_)
        assert len(seen[-1]) == 50
    np.testing.assert_array_equal(seen[0], seen[1])
    assert not np.isin(seen[2][:, 0], seen[0][:, 0]).all()


def test_pairs_of_equal_queries_are_drawn_independently():
    """Queries with equal features and labels do not all show the same pairs in the same order."""
    X, groups = np.tile(np.arange(5.0), 400)[:, None], np.repeat(range(400), 5)
    for y in (np.tile([0, 1, 2, 3, 4], 400), np.random.default_rng(0).integers(0, 3, 2000)):
        ranker = CalibratedRanker(PairModel(Remember(), max_pairs=1000), loss=PD("graded"))
        shown = ranker.fit(X, y, groups).model_.regressor_.shown_
        counts = np.zeros((5, 5))
        np.add.at(counts, tuple(shown[:, :2].astype(int).T), 1)
        assert (np.diag(counts) == 0).all()
        rest = counts[~np.eye(5, dtype=bool)]  # 20 ordered pairs, 50 times each
        assert rest.sum() == 1000 and rest.min() > 20 and rest.max() < 90


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PairModel(max_pairs=0), "max_pairs must be a whole number >= 1, or None; got 0"),
        (LogisticRegression(), "is a classifier"),
        (PairwiseRidge(alpha="auto"), "alpha must be a finite number >= 0; got 'auto'"),
        (BilinearPairs(alpha=-1), "alpha must be 'auto' or a finite number >= 0; got -1"),
        (BilinearPairs(alpha=np.inf), "finite number >= 0; got inf"),
        (BilinearPairs(n_components=0), "n_components must be a whole number >= 1; got 0"),
        (
            ResidualPairModel(pairs=BilinearPairs(symmetric=True)),
            "pairs must predict pairs, not sym",
        ),
    ],
)
def test_bad_parameters(data, model, message):
    X, y, groups, _ = data
    with pytest.raises(ValueError, match=message):
        CalibratedRanker(model, loss="pd").fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("h", "message"),
    [
        ("cubed", "Unknown pair_weight 'cubed'"),
        (lambda d: -d, "finite weights >= 0"),
        (lambda d: d[:1], "returned an array of shape"),
    ],
)
def test_bad_weights_of_preferences(data, h, message):
    X, y, groups, _ = data
    with pytest.raises(ValueError, match=message):
        CalibratedRanker(PairwiseRidge(), loss=PD(h)).fit(X, y, groups=groups)


def test_no_pair_at_all():
    targets = RelevanceDifferences(np.ones(3), Queries.uniform(3, 1), "binary", np.ones(3))
    with pytest.raises(ValueError, match="No query has two documents"):
        PairModel().fit(Training(np.ones((3, 2)), targets, Queries.uniform(3, 1)))


# ------------------------------------------------------------------ the ranker


def test_the_users_line(data):
    X, y, groups, _ = data
    ranker = CalibratedRanker(loss="pd", decoder="greedy_dag").fit(X, y, groups=groups)
    ranks = ranker.predict(X, groups=groups)
    for g in np.unique(groups):
        assert sorted(ranks[groups == g]) == [*range(1, (groups == g).sum() + 1)]
    assert not hasattr(ranker, "decision_function")
    lost, total = (
        per_query(pairwise_disagreement_loss, y, s, groups=groups, normalize=False)
        for s in (-ranks, -y)
    )
    assert ranker.score(X, y, groups=groups) == pytest.approx(1 - lost.sum() / total.sum())


def test_preferences_and_report_agree_with_the_ranking(data, monkeypatch):
    X, y, groups, _ = data
    monkeypatch.setattr("sklearn_rankcal.rankers._predict._PAIRS_AT_A_TIME", 50)
    ranker = CalibratedRanker(BilinearPairs(alpha=1e-3), loss="pd").fit(X, y, groups=groups)
    ranks = ranker.predict(X, groups=groups)
    differences = ranker.predict_preferences(X, groups=groups)
    report = ranker.decode_report(X, groups=groups)
    assert report["query"].tolist() == list(dict.fromkeys(groups))
    decoded = decode_preferences([np.maximum(d, 0) for d in differences], "exact")
    for q, g in enumerate(dict.fromkeys(groups)):
        d, own = differences[q], ranks[groups == g]
        np.testing.assert_array_equal(d, -d.T)
        assert np.maximum(d, 0)[own[:, None] > own].sum() == pytest.approx(
            report["objective"][q], abs=1e-12
        )
        assert report["objective"][q] == pytest.approx(decoded.objective[q], abs=1e-12)
        assert report["cyclic"][q] == (decoded.objective[q] > 1e-12)
        assert report["n_documents"][q] == len(d)
    assert report["optimal"].all() and (report["gap"] == 0).all()
    with pytest.raises(AttributeError, match="decode_report"):
        CalibratedRanker().fit(X, y, groups=groups).decode_report(X, groups)


@pytest.mark.parametrize(
    ("ranker", "method", "words"),
    [
        (
            CalibratedRanker(loss="pd"),
            "decision_function",
            ["'pd' has no scores", "predict_preferences", "decode_preferences", "'pd_by_scores'"],
        ),
        (
            CalibratedRanker(loss="map"),
            "decision_function",
            ["predict_preferences", "decode_average_precision", "'map_by_scores'"],
        ),
        (CalibratedRanker(), "predict_preferences", ["'ndcg'", "decision_function", "'pd'"]),
        (CalibratedRanker(), "decode_report", ["'ndcg'", "decision_function", "'pd'"]),
        (CalibratedLabelRanker(loss="dcg"), "predict_preferences", ["'dcg'", "predict sorts"]),
        (CalibratedRanker(loss="no"), "decision_function", ["Unknown loss 'no'"]),
    ],
)
def test_the_error_of_a_missing_method_has_the_reason_as_its_cause(ranker, method, words):
    assert not hasattr(ranker, method)
    with pytest.raises(AttributeError, match=f"no attribute '{method}'") as caught:
        getattr(ranker, method)
    reason = str(caught.value.__cause__)
    assert all(word in reason for word in words), reason


@pytest.mark.parametrize(
    "regressor",
    [
        None,
        PairwiseRidge(),
        BilinearPairs(),
        ResidualPairModel(DocumentModel(LinearRegression(), context="zscore")),
        PairModel(DecisionTreeRegressor(max_depth=4, random_state=0)),
        make_pipeline(StandardScaler(), LinearRegression()),
    ],
    ids=str,
)
def test_any_row_order_and_any_neighbours(data, regressor):
    X, y, groups, _ = data
    ranker = CalibratedRanker(regressor, loss=PD("graded", equal_queries=True))
    ranker.fit(X, y, groups=groups)
    ranks = ranker.predict(X, groups=groups)
    shuffle = np.random.default_rng(1).permutation(len(y))
    np.testing.assert_array_equal(
        ranker.predict(X[shuffle], groups=groups[shuffle]), ranks[shuffle]
    )
    some = np.isin(groups, groups[:5])
    np.testing.assert_array_equal(ranker.predict(X[some], groups=groups[some]), ranks[some])


def test_a_model_of_another_space_is_refused(data):
    X, y, groups, _ = data
    with pytest.raises(ValueError, match="predicts scores, but loss='pd' needs pairs"):
        CalibratedRanker(DocumentModel(), loss="pd").fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="predicts pairs, but loss='ndcg' needs scores"):
        CalibratedRanker(PairwiseRidge()).fit(X, y, groups=groups)


def circle(n_queries, r, rng):
    """Cyclic preferences: a document beats the documents up to half a turn ahead of it."""
    angle = rng.uniform(0, 2 * np.pi, size=(n_queries, r))
    return angle, np.sin(angle[:, None, :] - angle[:, :, None])


@pytest.mark.parametrize("weighted", [False, True])
def test_differences_of_scores_leave_no_residuals(data, weighted):
    """The scores are those of least squares: the relevance, less its mean over the query."""
    X, y, groups, weight = data
    queries, weight = Queries.from_groups(groups), weight if weighted else None
    assert len(set(queries.sizes.tolist())) > 1  # the sizes divide the row sums
    memory = DocumentModel(DecisionTreeRegressor(random_state=0), center=False)
    targets = RelevanceDifferences(y, queries, "graded", np.ones(queries.n_queries))
    model = ResidualPairModel(memory).fit(Training(X, targets, queries, weight))
    np.testing.assert_allclose(
        model.scores_.predict(X, queries), queries.center(y.astype(float), weight), atol=1e-12
    )
    np.testing.assert_allclose(model.pairs_.matrix_, 0.0, atol=1e-12)
    np.testing.assert_allclose(model.predict(X, queries), targets.flat(), atol=1e-12)


def test_cycles_need_more_than_a_score():
    """Models of pairs fit cyclic preferences, and a score does not.

    The target of a score would be the lead of a document over the mean direction of its query,
    which no feature shows.
    """
    rng = np.random.default_rng(0)
    angle, difference = circle(300, 6, rng)
    queries, X = Queries.uniform(300, 6), np.c_[np.cos(angle.ravel()), np.sin(angle.ravel())]

    class Circle(PairTargets):
        def matrices(self, inside, valid):
            return difference[inside[:, 0] // 6]

    skew = BilinearPairs(alpha=1e-6).fit(Training(X, Circle(queries), queries)).predict(X, queries)
    rows, columns = np.triu_indices(6, 1)
    np.testing.assert_allclose(skew, difference[:, rows, columns].ravel(), atol=1e-3)
    score = PairwiseRidge().fit(Training(X, Circle(queries), queries)).predict(X, queries)
    assert np.abs(score).max() < 0.2
    both = ResidualPairModel(DocumentModel(LinearRegression())).fit(
        Training(X, Circle(queries), queries)
    )
    found = both.predict(X, queries)
    assert np.corrcoef(found, difference[:, rows, columns].ravel())[0, 1] > 0.9


# ------------------------------------------------------------------ labels made of preferences


@pytest.fixture
def preferences(data):
    _, y, groups, _ = data
    pairs = [(i, j) for i, j in ordered_pairs(groups) if y[i] > y[j]]
    weight = [abs(y[i] - y[j]) for i, j in pairs]
    return pairs, weight


def test_preferences_of_relevance_are_relevance(data, preferences):
    """Explicit preferences give the same targets, models, rankings and scores as relevance."""
    X, y, groups, weight = data
    labels = preference_labels(preferences[0], groups, preferences[1])
    queries = Queries.from_groups(groups)
    for loss in (PD("graded"), PD("graded", equal_queries=True), PDByScores("graded")):
        ours, theirs = (loss.encode(z, queries) for z in (read_preferences(labels), y))
        if loss.space == "pairs":
            np.testing.assert_allclose(ours.flat(), theirs.flat(), atol=1e-12)
            np.testing.assert_allclose(ours.row_sums(weight), theirs.row_sums(weight), atol=1e-12)
        else:
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
        regressor = BilinearPairs() if loss.space == "pairs" else LinearRegression()
        by_pairs = CalibratedRanker(regressor, loss=loss).fit(X, labels)
        by_relevance = CalibratedRanker(regressor, loss=loss).fit(X, y, groups=groups)
        assert by_pairs.n_queries_dropped_ == by_relevance.n_queries_dropped_
        ranks = by_pairs.predict(X, groups=groups)
        np.testing.assert_array_equal(ranks, by_relevance.predict(X, groups=groups))
        assert by_pairs.score(X, labels) == pytest.approx(by_relevance.score(X, y, groups=groups))


def test_rows_of_weight_zero_take_their_pairs_along(data, preferences):
    X, y, groups, _ = data
    labels = preference_labels(preferences[0], groups, preferences[1])
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    kept = weight > 0
    model = CalibratedRanker(PairwiseRidge(), loss=PD("graded"))
    with_zeros = clone(model).fit(X, labels, sample_weight=weight).model_.coef_
    without = clone(model).fit(X[kept], y[kept], groups=groups[kept]).model_.coef_
    np.testing.assert_allclose(with_zeros, without, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.* has learned nothing")
def test_cyclic_preferences_are_labels_like_others():
    groups, X = np.repeat(np.arange(5), 3), np.random.default_rng(0).normal(size=(15, 2))
    pairs = [(3 * q + i, 3 * q + (i + 1) % 3) for q in range(5) for i in range(3)]
    labels = preference_labels(pairs, groups)
    ranker = CalibratedRanker(BilinearPairs(), loss="pd", decoder="exact").fit(X, labels)
    assert ranker.score(X, labels) >= 1 / 3
    assert CalibratedRanker(LinearRegression(), loss="pd_by_scores").fit(X, labels).score(X, labels)


def test_other_losses_refuse_preferences(data, preferences):
    X, _, groups, _ = data
    labels = preference_labels(preferences[0], groups)
    with pytest.raises(ValueError, match="NDCG needs a relevance of every row"):
        CalibratedRanker().fit(X, labels)
    with pytest.raises(ValueError, match="ERR needs a relevance of every row"):
        CalibratedRanker(loss="err").fit(X, labels)
    with pytest.raises(ValueError, match="undefined on the only query"):
        nothing = preference_labels([[0, 1]], np.zeros(len(X)), [0.0])
        CalibratedRanker(PairwiseRidge(), loss="pd").fit(X, nothing)
