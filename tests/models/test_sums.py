"""Models in closed form: solving the sums of parts, added, equals fitting the whole."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Lasso, LinearRegression, Ridge

from sklearn_rankcal.models import BilinearPairs, PairwiseRidge, Training
from sklearn_rankcal.models._held_out import query_folds  # sums of parts, as workers add them
from sklearn_rankcal.models._sums import DocumentSums, has_closed_form
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import RelevanceDifferences, RelevanceProducts

SIZES = [1, 2, 5, 3, 8, 4, 2, 7]


def make_data(seed):
    """Rows of eight queries in random order, with weights of which one is 0."""
    rng = np.random.default_rng(seed)
    n = sum(SIZES)
    groups = rng.permutation(np.repeat(np.arange(len(SIZES)), SIZES))
    X, y = rng.normal(size=(n, 3)) + groups[:, None], rng.integers(0, 3, size=n).astype(float)
    weight = rng.uniform(0.1, 3.0, size=n) * 10.0 ** rng.integers(-48, 49)
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
    model=st.sampled_from(
        [PairwiseRidge(0.01), BilinearPairs(alpha=0.01), BilinearPairs(symmetric=True, alpha=0.01)]
    ),
)
def test_parts_add_up_to_the_whole(part_of, seed, weighted, model):
    """Models are fitted to four parts of the queries, one after another, and to all at once."""
    X, y, groups, weight = make_data(seed)
    symmetric = model.space.symmetric
    parts = [
        np.flatnonzero(np.isin(groups, np.flatnonzero(np.equal(part_of, k)))) for k in range(4)
    ]
    data = []
    for rows in [part for part in parts if len(part)]:
        queries, targets = make_targets(y[rows], groups[rows], symmetric)
        data.append(Training(X[rows], targets, queries, weight[rows] if weighted else None))
    whole_queries, whole_targets = make_targets(y, groups, symmetric)
    whole = clone(model).fit(
        Training(X, whole_targets, whole_queries, weight if weighted else None)
    )
    model = clone(model)
    if isinstance(model, PairwiseRidge):
        added = reduce(add, [model.sums(part) for part in data])
        np.testing.assert_array_equal(added.largest, np.abs(X).max(axis=0))
        model.solve(added)
        assert relative_error(model.coef_, whole.coef_) < 1e-9
        return
    model.set_features(reduce(add, [model.spread(part) for part in data]))
    model.solve(reduce(add, [model.sums(part) for part in data]))
    found, wanted = (one.predict(X, whole_queries) for one in (model, whole))
    assert relative_error(found, wanted) < 1e-7


def test_the_penalty_is_chosen_by_the_folds_of_all_parts():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 6)
    X, y = rng.normal(size=(180, 4)), rng.integers(0, 3, size=180).astype(float)
    queries, targets = make_targets(y, groups, False)
    whole = BilinearPairs().fit(Training(X, targets, queries))
    folds, model = query_folds(X, queries, 5), BilinearPairs()
    assert (model.n_folds(30), model.n_folds(9)) == (5, 1)
    data = []
    for some in (slice(0, 10), slice(10, 30)):
        rows = slice(some.start * 6, some.stop * 6)
        part_queries, part_targets = make_targets(y[rows], groups[rows], False)
        data.append((Training(X[rows], part_targets, part_queries), folds[some], 5))
    model.set_features(reduce(add, [model.spread(part) for part, *_ in data]))
    model.solve(reduce(add, [model.sums(*part) for part in data]))
    assert model.alpha_ == whole.alpha_
    found, wanted = (one.predict(X, queries) for one in (model, whole))
    assert relative_error(found, wanted) < 1e-9


def test_a_part_of_weight_zero_adds_nothing():
    X, y, groups, weight = make_data(0)
    queries, targets = make_targets(y, groups, symmetric=False)
    whole = PairwiseRidge().sums(Training(X, targets, queries, weight * 1e-30))
    nothing = PairwiseRidge().sums(Training(X, targets, queries, 0.0 * weight))
    np.testing.assert_array_equal((nothing + whole).gram, whole.gram)
    np.testing.assert_array_equal((whole + nothing).moment, whole.moment)
    assert (nothing + nothing).pair_mass == 0


def test_sums_of_different_models_are_refused():
    X, y, groups, _ = make_data(0)
    queries, targets = make_targets(y, groups, symmetric=False)
    one = PairwiseRidge().sums(Training(X, targets, queries))
    with pytest.raises(ValueError, match=r"cannot be added: gram has the shapes \(3, 3\) and \(2"):
        one + PairwiseRidge().sums(Training(X[:, :2], targets, queries))
    form = BilinearPairs().fit(Training(X, targets, queries))
    with pytest.raises(TypeError):
        one + form.sums(Training(X, targets, queries))


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
    sums = [DocumentSums.of(X[p], t[p], None if v is None else v[p]) for p in parts]
    found = reduce(add, sums).solve(regressor)
    wanted = regressor.fit(X, t, sample_weight=v)
    tolerance = 1e-6 if shift else 1e-9
    np.testing.assert_allclose(found.predict(X), wanted.predict(X), atol=tolerance)
    if not shift:
        np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-9)
        np.testing.assert_allclose(found.intercept_, wanted.intercept_, atol=1e-9)
    assert found.n_features_in_ == 4


def test_sums_of_dependent_columns():
    """LinearRegression finds the coefficients of the smallest norm."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2))
    X, t = np.c_[x, x.sum(axis=1), np.ones(50)], rng.normal(size=50)
    found = DocumentSums.of(X, t).solve(LinearRegression())
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


def test_sums_of_other_columns_cannot_be_added():
    one, two = (DocumentSums.of(np.ones((3, d)), np.ones(3)) for d in (1, 2))
    with pytest.raises(ValueError, match="1 columns cannot be added to sums of 2 columns"):
        one + two
