"""PairwiseRidge and BilinearPairs: least squares over all pairs of every query."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.losses import MAP
from sklearn_rankcal.models import BilinearPairs, DocumentModel, PairwiseRidge, Training
from sklearn_rankcal.models._held_out import query_folds  # folds, for a search by hand
from sklearn_rankcal.pairs._closed_forms import _PENALTIES
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import RelevanceDifferences, RelevanceProducts

from ..covering import covering
from ..pair_data import make_pair_data, ordered_pairs


@pytest.fixture
def data():
    return make_pair_data()


@pytest.mark.parametrize("weighted", [False, True])
def test_pairwise_ridge_is_least_squares_on_all_pairs(data, weighted):
    X, y, groups, weight = data
    queries = Queries.from_groups(groups)
    targets = RelevanceDifferences(y, queries, "binary", np.ones(queries.n_queries))
    pairs = np.array(ordered_pairs(groups))
    i, j = pairs.T
    mass = weight[i] * weight[j] if weighted else np.ones(len(pairs))
    goal = np.sign(y[i] - y[j])
    model = PairwiseRidge(alpha=0).fit(Training(X, targets, queries, weight if weighted else None))
    reference = LinearRegression(fit_intercept=False).fit(X[i] - X[j], goal, mass)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-7)
    scores = X @ reference.coef_
    wanted = [scores[i] - scores[j] for i, j in pairs if i < j]
    np.testing.assert_allclose(model.predict(X, queries), wanted, atol=1e-7)
    # The penalty is the one that the docstring states.
    difference = X[i] - X[j]
    spread = np.sqrt((mass[:, None] * difference**2).sum(axis=0) / mass.sum())
    ridge = PairwiseRidge(alpha=0.3).fit(
        Training(X, targets, queries, weight if weighted else None)
    )
    gram = difference.T @ (difference * mass[:, None]) / mass.sum() + 0.3 * np.diag(spread**2)
    moment = difference.T @ (goal * mass) / mass.sum()
    np.testing.assert_allclose(ridge.coef_, np.linalg.solve(gram, moment), rtol=1e-7)
    shifted = PairwiseRidge(alpha=0.3).fit(
        Training(X + 1e4, targets, queries, weight if weighted else None)
    )
    np.testing.assert_allclose(shifted.coef_, ridge.coef_, rtol=1e-5)


def mean_ridge(shown, goal, mass, penalty):
    """The w that minimises the weighted mean of (shown w - goal)^2 + sum_k penalty_k w_k^2."""
    share = mass / mass.sum()
    gram = shown.T @ (shown * share[:, None]) + np.diag(penalty)
    return np.linalg.solve(gram, shown.T @ (share * goal))


@pytest.mark.parametrize(
    ("symmetric", "dtype", "weighted", "alpha"),
    covering(
        product([False, True], [np.float32, np.float64], [False, True], [0.0, 0.3, "auto"]),
        lambda symmetric, dtype, weighted, alpha: ((symmetric, alpha), (dtype, weighted)),
    ),
)
def test_bilinear_pairs_are_least_squares_on_all_pairs(data, symmetric, dtype, weighted, alpha):
    X, y, groups, weight = data
    X, weight = X.astype(dtype), weight if weighted else np.ones(len(y))
    queries = Queries.from_groups(groups)
    assert {1, 2} <= set(queries.sizes)
    if symmetric:
        targets = RelevanceProducts((y > 1).astype(float), queries, np.ones(queries.n_queries))
    else:
        targets = RelevanceDifferences(y, queries, "graded", np.ones(queries.n_queries))
    model = BilinearPairs(symmetric=symmetric, alpha=alpha)
    model.fit(Training(X, targets, queries, weight if weighted else None))
    z = model._features(X, np.arange(len(X)))
    assert z.shape == (len(X), 5)
    size = alpha
    if alpha == "auto":
        size = 300 / queries.n_queries if symmetric else model.alpha_
    # A is fitted to the pairs i != j.
    i, j = np.array(ordered_pairs(groups)).T
    a, b = np.triu_indices(5, 0 if symmetric else 1)
    if symmetric:
        goal = (y[i] > 1) * (y[j] > 1) * 1.0
        shown = z[i][:, a] * z[j][:, b] + (a != b) * z[i][:, b] * z[j][:, a]
    else:
        goal = y[i] - y[j]
        shown = z[i][:, a] * z[j][:, b] - z[i][:, b] * z[j][:, a]
    mass = weight[i] * weight[j]
    share = mass.sum() / (queries.sum(weight) ** 2).sum()  # the mean is over pairs i = j, too
    spread = np.average((z[i] - z[j]) ** 2, axis=0, weights=mass) * share
    np.testing.assert_allclose(spread, [0, 1, 1, 1, 1], atol=1e-6)
    of_pairs = mean_ridge(shown, goal, mass, size / share * (a + b > 0))
    np.testing.assert_allclose(model.matrix_[a, b], of_pairs, atol=1e-7)
    np.testing.assert_array_equal(model.matrix_, model.matrix_.T if symmetric else -model.matrix_.T)
    # w is fitted to the documents themselves.
    wanted = dict(zip(zip(i, j, strict=True), shown @ of_pairs, strict=True))
    if symmetric:
        alone = mean_ridge(z, (y > 1) * 1.0, weight, size * (np.arange(5) > 0))
        np.testing.assert_allclose(model.diagonal_, alone, atol=1e-7)
        wanted |= {(i, i): value for i, value in enumerate(z @ alone)}
    else:
        assert model.diagonal_ is None
    flat = [wanted[pair] for pair in ordered_pairs(groups, symmetric) if pair[0] <= pair[1]]
    np.testing.assert_allclose(model.predict(X, queries), flat, atol=1e-6)


def test_the_penalty_has_the_smallest_error_in_folds_of_queries():
    """Two random data sets, of which the last one is noise; folds depend on content only."""
    queries, chosen = Queries.uniform(20, 4), []
    for seed in (0, 3):
        rng = np.random.default_rng(seed)
        X = rng.choice([-1.0, 1.0], size=(80, 3))
        X[:, 0] *= 1 + 1e-9 * rng.random(80)  # and yet no two rows alike
        y = rng.normal(size=80) + (3 * X[:, 0] if seed < 3 else 0)

        def targets(rows, part, y=y):
            return RelevanceDifferences(y[rows], part, "graded", np.ones(part.n_queries))

        model = BilinearPairs().fit(Training(X, targets(slice(None), queries), queries))
        fold_of = query_folds(X, queries, 5)
        assert np.bincount(fold_of).tolist() == [4] * 5
        shuffle = rng.permutation(80)
        other = Queries.from_groups(np.repeat(np.arange(20), 4)[shuffle])
        turned = RelevanceDifferences(y[shuffle], other, "graded", np.ones(20))
        again = BilinearPairs().fit(Training(X[shuffle], turned, other))
        assert again.alpha_ == pytest.approx(model.alpha_)
        u, other_u = model.predict(X, queries), again.predict(X, queries)
        np.testing.assert_allclose(other_u, u, atol=1e-9)
        errors = dict.fromkeys(_PENALTIES, 0.0)
        for k in range(5):
            train, test = queries.select(fold_of != k), queries.select(fold_of == k)
            for alpha in _PENALTIES:
                fitted = BilinearPairs(alpha=alpha)
                fitted.set_features(fitted.spread(Training(X, None, queries)))  # of all folds
                fitted.solve(fitted.sums(Training(X[train[0]], targets(*train), train[1])))
                u = fitted.predict(X[test[0]], test[1])
                errors[alpha] += ((u - targets(*test).flat()) ** 2).sum()
        assert model.alpha_ == pytest.approx(min(errors, key=errors.get))
        chosen.append(model.alpha_)
    assert chosen[0] < 0.1 and chosen[1] > 10


@pytest.mark.parametrize("symmetric", [False, True])
def test_columns_that_are_constant_inside_queries_are_not_used(symmetric):
    """The differences of such a column are rounding errors, which must not be standardised."""
    for seed in range(2):
        rng = np.random.RandomState(seed)
        groups = np.repeat(np.arange(50), rng.randint(3, 30, 50))
        own = rng.randn(len(groups), 3)
        both = StandardScaler().fit_transform(np.c_[own, rng.randn(50)[groups]])
        y = (own[:, 0] > 0) * 1.0
        y[np.unique(groups, return_index=True)[1]] = 1.0
        loss = "map" if symmetric else "pd"
        for model in (BilinearPairs(symmetric=symmetric), PairwiseRidge())[: 2 - symmetric]:
            ranker = CalibratedRanker(model, loss=loss)
            one, two = (
                ranker.fit(X, y, groups=groups).predict(X, groups=groups)
                for X in (both, StandardScaler().fit_transform(own))
            )
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("symmetric", [False, True])
def test_units_of_columns_do_not_matter(data, symmetric):
    X, y, groups, _ = data
    loss = MAP(threshold=2) if symmetric else "pd"
    scales = [1.0, 1e100, np.array([1e-6, 1e4, 1.0, 1e9])]
    ranks = [
        CalibratedRanker(BilinearPairs(symmetric=symmetric), loss=loss)
        .fit(X * scale, y, groups=groups)
        .predict(X * scale, groups=groups)
        for scale in scales
    ]
    assert (ranks[1] == ranks[0]).mean() > 0.95 and (ranks[2] == ranks[0]).mean() > 0.95


def test_the_diagonal_takes_a_weight_for_a_number_of_copies(data):
    X, y, _, _ = data
    copies = np.random.default_rng(0).integers(1, 3, size=len(y))
    rows = np.repeat(np.arange(len(y)), copies)
    given, repeated = Queries.single(len(y)), Queries.single(len(rows))

    def fitted(rows, queries, weight):
        targets = RelevanceProducts((y[rows] > 1).astype(float), queries, np.ones(1))
        model = BilinearPairs(symmetric=True, alpha=0.1)
        return model.fit(Training(X[rows], targets, queries, weight))

    by_weight = fitted(np.arange(len(y)), given, copies.astype(float))
    by_rows = fitted(rows, repeated, None)
    np.testing.assert_allclose(by_weight.diagonal_, by_rows.diagonal_, rtol=1e-9)


def test_documents_alone_in_their_queries_have_a_constant_only(data):
    X, y, _, _ = data
    queries = Queries.uniform(len(y), 1)
    targets = RelevanceProducts((y > 1).astype(float), queries, np.ones(len(y)))
    model = BilinearPairs(symmetric=True, alpha=0).fit(Training(X, targets, queries))
    np.testing.assert_allclose(model.matrix_, 0, atol=1e-6)
    np.testing.assert_allclose(model.predict(X, queries), (y > 1).mean(), atol=1e-7)


@pytest.mark.parametrize("model", [PairwiseRidge(), BilinearPairs(), BilinearPairs(symmetric=True)])
def test_blocks_and_dtypes_change_nothing(monkeypatch, data, model):
    X, y, groups, weight = data
    X, queries = X.astype(np.float32), Queries.from_groups(groups)
    if model.space == "pairs":
        targets = RelevanceDifferences(y, queries, "binary", np.ones(queries.n_queries))
    else:
        targets = RelevanceProducts((y > 1).astype(float), queries, np.ones(queries.n_queries))
    wanted = (
        clone(model)
        .fit(Training(X.astype(np.float64), targets, queries, weight))
        .predict(X, queries)
    )
    monkeypatch.setattr("sklearn_rankcal.utils._memory.BLOCK_BYTES", 8 * 40)
    with config_context(working_memory=320 / 2**20):
        found = clone(model).fit(Training(X, targets, queries, weight)).predict(X, queries)
    np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_principal_components_do_not_depend_on_units(data):
    X, y, groups, _ = data
    queries = Queries.from_groups(groups)
    targets = RelevanceDifferences(y, queries, "binary", np.ones(queries.n_queries))
    model = BilinearPairs(n_components=3).fit(Training(X, targets, queries))
    assert model.matrix_.shape == (4, 4)
    other = BilinearPairs(n_components=3).fit(Training(X * [1, 1e3, 1e-3, 1] + 7, targets, queries))
    np.testing.assert_allclose(
        other.predict(X * [1, 1e3, 1e-3, 1] + 7, queries), model.predict(X, queries), atol=1e-6
    )
    constant = BilinearPairs().fit(Training(np.c_[X, np.ones(len(X))], targets, queries))
    assert constant.matrix_.shape == (5, 5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("context", ["zscore", ["difference", "rank"]])
def test_large_arrays_are_fitted_to_sums_of_blocks(context, weighted, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4)) + rng.normal(size=(400, 1)).repeat(50, axis=0)
    groups = rng.permutation(np.repeat(np.arange(400), 50))
    y = rng.integers(0, 4, 20_000)
    weight = rng.random(20_000) if weighted else None
    fits = []
    for solver in ("svd", "auto"):  # sums are solved as "cholesky" is
        monkeypatch.setattr("sklearn_rankcal.utils._memory.PREDICTION_BYTES", 100_000)
        ranker = CalibratedRanker(Ridge(2.0, solver=solver), context=context)
        fits.append(ranker.fit(X, y, groups=groups, sample_weight=weight))
    whole, blocks = (ranker.decision_function(X, groups=groups) for ranker in fits)
    assert fits[1].model_.regressor_.solver_ == "cholesky"
    largest = np.abs(whole).max()
    np.testing.assert_allclose(blocks / largest, whole / largest, atol=1e-9)
    if context == "zscore":
        np.testing.assert_allclose(fits[1].coef_, fits[0].coef_, rtol=1e-7)
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        CalibratedRanker(Ridge(), context=context).fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("parameters", "entry", "weight", "message"),
    [
        ({"alpha": "much"}, 0.0, 1.0, "'alpha' parameter of Ridge"),
        ({"max_iter": "many"}, 0.0, 1.0, "'max_iter' parameter of Ridge"),
        ({}, np.nan, 1.0, "Ridge does not accept missing values"),
        ({}, 0.0, 1e13, "a largest weight between 1e-12"),
    ],
)
def test_ridge_of_a_large_table_says_what_is_wrong(parameters, entry, weight, message):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 2)), rng.normal(size=20_000)
    X[5, 1] = entry
    model = DocumentModel(Ridge(**parameters), context="zscore")
    queries = Queries(np.arange(0, 20_001, 10))
    with pytest.raises(ValueError, match=message):
        model.fit(Training(X, y, queries, np.full(20_000, weight)))


def test_ridge_of_a_large_table_solves_a_singular_system():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 2)), rng.normal(size=20_000)
    X = np.column_stack([X, X])
    queries = Queries(np.arange(0, 20_001, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        model = DocumentModel(Ridge(alpha=1e-300), context="zscore").fit(Training(X, y, queries))
    assert np.isfinite(model.predict(X, queries)).all()


def test_sums_of_blocks_replace_the_fit_of_a_classifier():
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(20_000, 2)), Queries.uniform(400, 50)
    y = (rng.random(20_000) < 0.3).astype(float)
    model = DocumentModel(LogisticRegression(), context="zscore").fit(Training(X, y, queries))
    assert hasattr(model, "levels_") or hasattr(model, "eta_")
    model.set_params(regressor=Ridge()).fit(Training(X, y, queries))
    assert not hasattr(model, "levels_") and not hasattr(model, "eta_")
    fresh = DocumentModel(Ridge(), context="zscore").fit(Training(X, y, queries))
    np.testing.assert_array_equal(model.predict(X, queries), fresh.predict(X, queries))
