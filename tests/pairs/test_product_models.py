"""Average precision with r^2 targets: models of symmetric pairs, and rankings from them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.decoders import decode_average_precision
from sklearn_rankcal.losses import MAP, MAPByScores
from sklearn_rankcal.metrics import map_score
from sklearn_rankcal.models import (
    BilinearPairs,
    DocumentModel,
    PairModel,
    ResidualProductModel,
    Training,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import RelevanceProducts

pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture
def data():
    """Queries of 1 to 8 documents in random order, each with at least one relevant document."""
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(20), rng.integers(1, 9, size=20)))
    X = rng.normal(size=(len(groups), 3))
    y = (X[:, 0] + rng.normal(size=len(groups)) > 0).astype(float)
    y[np.unique(groups, return_index=True)[1]] = 1.0
    return X, y, groups, rng.uniform(0.2, 2, size=len(groups))


def products(y, groups):
    queries = Queries.from_groups(groups)
    return RelevanceProducts(y, queries, queries.sum(y)), queries


def matrices_of(flat, queries):
    """Return the matrix of each query, given its upper triangle."""
    start = 0
    for r in queries.sizes:
        matrix = np.zeros((r, r))
        stop = start + r * (r + 1) // 2
        matrix[np.triu_indices(r)] = flat[start:stop]
        yield matrix
        start = stop


@pytest.mark.parametrize("weighted", [False, True])
def test_products_of_scores_are_least_squares(data, weighted):
    """A huge penalty on the form of pairs leaves only the formula in the scores."""
    X, y, groups, weight = data
    targets, queries = products(y, groups)
    model = ResidualProductModel(
        DocumentModel(LinearRegression()), BilinearPairs(symmetric=True, alpha=1e12)
    ).fit(Training(X, targets, queries, weight if weighted else None))
    s = model.scores_.predict(X, queries)
    terms, goal, mass, wanted = [], [], [], []
    for g in dict.fromkeys(groups):
        rows = np.flatnonzero(groups == g)
        for a, i in enumerate(rows):
            wanted += [(i, j) for j in rows[a:]]
            for j in rows[rows != i]:
                terms.append([1, s[i] + s[j], s[i] * s[j]])
                goal.append(y[i] * y[j] / y[rows].sum())
                mass.append(weight[i] * weight[j] if weighted else 1.0)
    root = np.sqrt(mass)
    slopes = np.linalg.lstsq(np.array(terms) * root[:, None], goal * root, rcond=None)[0]
    np.testing.assert_allclose(model.slopes_, slopes, rtol=1e-5)
    a, b, c = slopes
    u = [s[i] if i == j else a + b * (s[i] + s[j]) + c * s[i] * s[j] for i, j in wanted]
    np.testing.assert_allclose(model.predict(X, queries), u, atol=1e-6)


def test_the_form_of_pairs_fits_the_residuals_of_products(data):
    X, y, groups, _ = data
    targets, queries = products(y, groups)
    model = ResidualProductModel(
        DocumentModel(LinearRegression()), BilinearPairs(symmetric=True, alpha=1e-6)
    ).fit(Training(X, targets, queries))
    alone = clone(model).set_params(pairs__alpha=1e12).fit(Training(X, targets, queries))
    t = targets.flat()
    assert ((model.predict(X, queries) - t) ** 2).sum() < (
        (alone.predict(X, queries) - t) ** 2
    ).sum()
    first = np.cumsum(queries.sizes * (queries.sizes + 1) // 2)[:-1]
    difference = model.predict(X, queries) - alone.predict(X, queries)
    np.testing.assert_allclose(difference[np.append(0, first)], 0, atol=1e-6)  # entries (0, 0)


def test_equal_scores_have_no_slope(data):
    X, y, groups, _ = data
    targets, queries = products(y, groups)
    model = ResidualProductModel(DocumentModel(LinearRegression()))
    model.fit(Training(np.zeros_like(X), targets, queries))
    off = [m[np.triu_indices(len(m), 1)] for m in matrices_of(targets.flat(), queries)]
    u = model.predict(np.zeros_like(X), queries)
    means = [m[np.triu_indices(len(m), 1)] for m in matrices_of(u, queries)]
    np.testing.assert_allclose(np.concatenate(means), np.concatenate(off).mean(), rtol=1e-6)


def test_pair_model_is_symmetric(data):
    X, y, groups, weight = data
    targets, queries = products(y, groups)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0)
    model = PairModel(tree, symmetric=True).fit(Training(X, targets, queries, weight))
    flat = model.predict(X, queries)
    diagonal = clone(tree).fit(X, targets.diagonal(), weight).predict(X)
    at = 0
    for g in dict.fromkeys(groups):
        rows = np.flatnonzero(groups == g)
        for a, i in enumerate(rows):
            for j in rows[a:]:
                both = [
                    model.regressor_.predict(np.hstack([X[[p]], X[[q]]]))[0]
                    for p, q in ((i, j), (j, i))
                ]
                wanted = diagonal[i] if i == j else np.mean(both)
                assert flat[at] == pytest.approx(wanted, abs=1e-12)
                at += 1
    assert at == len(flat) and model.space == "symmetric_pairs"


def test_diagonal_of_any_targets(data):
    _, y, groups, _ = data
    targets, _ = products(y, groups)
    np.testing.assert_allclose(
        super(RelevanceProducts, targets).diagonal(), targets.diagonal(), atol=1e-15
    )
    np.testing.assert_allclose(targets.diagonal(), y / np.bincount(groups, y)[groups], atol=1e-15)


# ------------------------------------------------------------------ in the ranker


def two_intents(n_queries, seed):
    """Draw queries of three documents of one kind and one of another; one kind is relevant."""
    rng = np.random.default_rng(seed)
    kind = rng.permuted(np.tile([1.0, 1.0, 0.0, 1.0], (n_queries, 1)), axis=1)
    wanted = rng.random(n_queries) < 0.7
    y = np.where(wanted[:, None], kind, 1 - kind).ravel()
    return kind.reshape(-1, 1), y, np.repeat(np.arange(n_queries), 4)


@pytest.mark.parametrize(
    "regressor",
    [
        BilinearPairs(symmetric=True),
        PairModel(DecisionTreeRegressor(), symmetric=True),
        DecisionTreeRegressor(),
        ResidualProductModel(DocumentModel(DecisionTreeRegressor(), center=False)),
    ],
    ids=str,
)
def test_models_of_pairs_find_rankings_that_scores_cannot(regressor):
    """The condition P_reinforce of Ramaswamy et al. (2013) does not hold.

    Sorting by scores reaches an average precision of .7472, and models of pairs reach .775.
    """
    X, y, groups = two_intents(3000, 0)

    def expected(ranker):
        ranks = ranker.fit(X, y, groups=groups).predict(X, groups=groups)
        either = [X[:, 0], 1 - X[:, 0]]
        values = [map_score(label, ranks=ranks, groups=groups) for label in either]
        return np.dot([0.7, 0.3], values)

    scores = CalibratedRanker(DecisionTreeRegressor(), loss=MAPByScores(shrinkage=0))
    assert expected(scores) == pytest.approx(0.7472, abs=1e-4)
    pairs = CalibratedRanker(regressor, loss=MAP(shrinkage=0))
    assert expected(pairs) == pytest.approx(0.775)
    pairs.set_params(decoder="diagonal")
    assert expected(pairs) == pytest.approx(0.7472, abs=1e-4)


def test_predictions_report_and_score_agree_with_the_ranking(data, monkeypatch):
    X, y, groups, _ = data
    monkeypatch.setattr("sklearn_rankcal.rankers._predict._PAIRS_AT_A_TIME", 50)
    ranker = CalibratedRanker(BilinearPairs(symmetric=True, alpha=1e-3), loss="map")
    ranker.fit(X, y, groups=groups)
    ranks = ranker.predict(X, groups=groups)
    matrices = ranker.predict_preferences(X, groups=groups)
    report = ranker.decode_report(X, groups=groups)
    assert "cyclic" not in report and not hasattr(ranker, "decision_function")
    decoded = decode_average_precision(matrices, "exact")
    for q, g in enumerate(dict.fromkeys(groups)):
        u, own = matrices[q], ranks[groups == g]
        np.testing.assert_array_equal(u, u.T)
        value = (np.tril(u) / np.maximum(own[:, None], own)).sum()
        assert report["objective"][q] == pytest.approx(1 - value, abs=1e-12)
        assert report["objective"][q] == pytest.approx(decoded.objective[q], abs=1e-12)
    assert report["optimal"].all()
    assert ranker.score(X, y, groups=groups) == pytest.approx(
        map_score(y, ranks=ranks, groups=groups)
    )


@pytest.mark.parametrize("loss", ["map", "pd"])
def test_jobs_change_nothing(loss):
    data = make_ranking(40, (2, 30), 6, n_levels=2, random_state=0)
    ranker = CalibratedRanker(loss=loss, n_jobs=2).fit(data.X, data.y, groups=data.groups)
    ranks = ranker.predict(data.X, groups=data.groups)
    report = ranker.decode_report(data.X, groups=data.groups)
    ranker.set_params(n_jobs=None)
    np.testing.assert_array_equal(ranker.predict(data.X, groups=data.groups), ranks)
    again = ranker.decode_report(data.X, groups=data.groups)
    for name, column in report.items():
        np.testing.assert_array_equal(again[name], column, name)


def test_a_model_of_another_symmetry_is_refused(data):
    X, y, groups, _ = data
    with pytest.raises(ValueError, match="predicts pairs, but loss='map' needs symmetric_pairs"):
        CalibratedRanker(BilinearPairs(), loss="map").fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="binary relevance, 0 or 1; got 2"):
        CalibratedRanker(loss="map").fit(X, y * 2, groups=groups)


@pytest.mark.filterwarnings("ignore:.* has learned nothing")
def test_pairs_that_do_not_fit_in_memory_are_refused():
    """The error comes before anything is allocated, and names the number and the parameter."""
    X, y = np.zeros((400_000, 1)), np.arange(400_000) % 2
    one = np.zeros(400_000)
    with pytest.raises(ValueError, match=r"79,999,800,000 pairs of 2 features .* Set max_pairs"):
        model = PairModel(LinearRegression(), max_pairs=None)
        CalibratedRanker(model, loss="pd").fit(X, y, groups=one)
    for loss in ("pd", "map"):
        with pytest.raises(ValueError, match=r"query with 400,000 documents .* GiB.* by scores"):
            CalibratedRanker(LinearRegression(), loss=loss).fit(X, y, groups=one)
    ranker = CalibratedRanker(LinearRegression(), loss="pd").fit(X[:10], y[:10], groups=one[:10])
    with pytest.raises(ValueError, match="query with 400,000 documents"):
        ranker.predict_preferences(X, groups=one)
    assert ranker.predict(X, groups=one).max() == 400_000  # sorts the scores of a linear regressor
