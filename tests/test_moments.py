"""Moments of models in closed form: adding those of parts of the data equals fitting the whole."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso, LinearRegression, Ridge

from sklearn_rankcal.models import (
    BilinearMoments,
    BilinearPairs,
    DocumentMoments,
    PairMoments,
    PairwiseRidge,
)
from sklearn_rankcal.models._document_moments import has_closed_form
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import RelevanceDifferences, RelevanceProducts

SIZES = [1, 2, 5, 3, 8, 4, 2, 7]


def make_data(seed):
    """Rows of eight queries in random order, with weights of which one is 0."""
    rng = np.random.default_rng(seed)
    n = sum(SIZES)
    groups = rng.permutation(np.repeat(np.arange(len(SIZES)), SIZES))
    X, y = rng.normal(size=(n, 3)) + groups[:, None], rng.integers(0, 3, size=n).astype(float)
    weight = rng.uniform(0.1, 3.0, size=n) * 10.0 ** rng.integers(-20, 20)
    weight[0] = 0.0
    return X, y, groups, weight


def make_targets(y, groups, symmetric):
    queries = Queries.from_groups(groups)
    if symmetric:
        return queries, RelevanceProducts((y > 1) * 1.0, queries, np.ones(queries.n_queries))
    return queries, RelevanceDifferences(y, queries, "graded", np.ones(queries.n_queries))


def relative_error(found, wanted):
    error, size = np.abs(found - wanted).max(), np.abs(wanted).max()
    return error / size if size > 0 else error  # coefficients that are all 0 must be found


@settings(max_examples=25, deadline=None)
@given(
    part_of=st.lists(st.integers(0, 3), min_size=len(SIZES), max_size=len(SIZES)),
    seed=st.integers(0, 100),
    weighted=st.booleans(),
    model=st.sampled_from(["pairwise ridge", "skew-symmetric", "symmetric"]),
)
def test_parts_add_up_to_the_whole(part_of, seed, weighted, model):
    """Queries are split into parts, and each part scales its weights by its own power of two."""
    X, y, groups, weight = make_data(seed)
    symmetric = model == "symmetric"

    def moments_of(rows):
        queries, targets = make_targets(y[rows], groups[rows], symmetric)
        v = weight[rows] if weighted else None
        if model == "pairwise ridge":
            return PairMoments.of(X[rows], targets, queries, v)
        Z = np.c_[np.ones(len(rows)), X[rows]]
        return BilinearMoments.of(Z.__getitem__, targets, queries, v)

    parts = [
        np.flatnonzero(np.isin(groups, np.flatnonzero(np.equal(part_of, k)))) for k in range(4)
    ]
    added = reduce(add, [moments_of(rows) for rows in parts if len(rows)])
    whole = moments_of(np.arange(len(groups)))
    if model == "pairwise ridge":
        assert relative_error(added.solve(0.01), whole.solve(0.01)) < 1e-9
        np.testing.assert_allclose(added.center, whole.center, rtol=1e-9)
        np.testing.assert_allclose(added.scale, whole.scale, rtol=1e-9)
        return
    sizes = whole.feature_sizes()
    np.testing.assert_allclose(added.feature_sizes(), sizes, rtol=1e-9)
    for found, wanted in zip(added.solve(0.01, sizes), whole.solve(0.01, sizes), strict=True):
        assert (found is None and wanted is None) or relative_error(found, wanted) < 1e-8


def test_the_models_are_fitted_through_the_moments():
    X, y, groups, weight = make_data(0)
    queries, targets = make_targets(y, groups, symmetric=False)
    found = PairMoments.of(X, targets, queries, weight).solve(0.1)
    np.testing.assert_array_equal(PairwiseRidge(0.1).fit(X, targets, queries, weight).coef_, found)
    for symmetric in (False, True):
        queries, targets = make_targets(y, groups, symmetric)
        model = BilinearPairs(symmetric=symmetric, alpha=0.1).fit(X, targets, queries, weight)
        moments = BilinearMoments.of(
            lambda rows, model=model: model._features(X, rows), targets, queries, weight
        )
        A, w = moments.solve(0.1)
        np.testing.assert_array_equal(model.matrix_, A)
        np.testing.assert_array_equal(model.diagonal_, w)


def test_a_part_of_weight_zero_adds_nothing():
    """The exponent of weights that are all 0 must not push the other part out of range."""
    X, y, groups, weight = make_data(0)
    queries, targets = make_targets(y, groups, symmetric=False)
    whole = PairMoments.of(X, targets, queries, weight * 1e-300)
    nothing = PairMoments.of(X, targets, queries, 0.0 * weight)
    np.testing.assert_array_equal((nothing + whole).gram, whole.gram)
    np.testing.assert_array_equal((whole + nothing).moment, whole.moment)
    assert (nothing + nothing).pair_mass == 0


def test_moments_of_different_models_are_refused():
    X, y, groups, _ = make_data(0)
    queries, targets = make_targets(y, groups, symmetric=False)
    one = PairMoments.of(X, targets, queries)
    with pytest.raises(ValueError, match="Moments of 3 columns cannot be added to moments of 2"):
        one + PairMoments.of(X[:, :2], targets, queries)
    skew = BilinearMoments.of(X.__getitem__, targets, queries)
    with pytest.raises(TypeError):
        one + skew
    symmetric = BilinearMoments.of(X.__getitem__, make_targets(y, groups, True)[1], queries)
    with pytest.raises(ValueError, match="3 features with symmetric=False, and 3 features with s"):
        skew + symmetric


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    part_of=st.lists(st.integers(0, 3), min_size=30, max_size=30),
    seed=st.integers(0, 100),
    weighted=st.booleans(),
    shift=st.sampled_from([0.0, 1e6]),
    regressor=st.sampled_from(
        [
            Ridge(),
            Ridge(alpha=100.0, fit_intercept=False),
            Ridge(alpha=0.0),
            LinearRegression(),
            LinearRegression(fit_intercept=False),
        ]
    ),
)
def test_linear_regressors_of_scikit_learn(part_of, seed, weighted, shift, regressor):
    """Rows are split into parts, and some parts are empty; columns can be far from 0."""
    rng = np.random.default_rng(seed)
    if not regressor.fit_intercept:
        shift = min(shift, 1e3)  # columns farther from 0 count as dependent on each other
    X, t = rng.normal(size=(30, 4)) + shift, rng.normal(size=30)
    v = rng.integers(0, 3, size=30) * 1.0 if weighted else None
    if weighted:
        v[:6] = 1.0  # there are more rows than columns
    parts = [np.flatnonzero(np.equal(part_of, k)) for k in range(4)]
    moments = [DocumentMoments.of(X[p], t[p], None if v is None else v[p]) for p in parts]
    found = reduce(add, moments).fit(regressor)
    wanted = regressor.fit(X, t, sample_weight=v)
    tolerance = 1e-6 if shift else 1e-9
    np.testing.assert_allclose(found.predict(X), wanted.predict(X), atol=tolerance)
    if not shift:
        np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-9)
        np.testing.assert_allclose(found.intercept_, wanted.intercept_, atol=1e-9)
    assert found.n_features_in_ == 4


def test_moments_of_dependent_columns():
    """LinearRegression finds the coefficients of the smallest norm."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2))
    X, t = np.c_[x, x.sum(axis=1), np.ones(50)], rng.normal(size=50)
    found = DocumentMoments.of(X, t).fit(LinearRegression())
    wanted = LinearRegression().fit(X, t)
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-9)
    assert found.rank_ == wanted.rank_ == 2


def test_which_regressors_have_a_closed_form():
    assert all(map(has_closed_form, [Ridge(), Ridge(0.0), LinearRegression()]))
    others = [
        Lasso(),
        Ridge(positive=True),
        Ridge(alpha=[1.0, 2.0]),
        LinearRegression(positive=True),
    ]
    assert not any(map(has_closed_form, others))


def test_moments_of_other_columns_cannot_be_added():
    one, two = (DocumentMoments.of(np.ones((3, d)), np.ones(3)) for d in (1, 2))
    with pytest.raises(ValueError, match="1 columns cannot be added to moments of 2 columns"):
        one + two
