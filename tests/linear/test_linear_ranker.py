"""LinearRanker: closed forms, other libraries, solvers that agree, and the ways it can be used."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from sklearn_rankcal import CalibratedRanker, LinearRanker, preference_labels
from sklearn_rankcal.linear import LinearModel, _linear_objective  # a limit that tests lower
from sklearn_rankcal.losses import ERR
from sklearn_rankcal.models import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import (
    SURROGATES,
    Bregman,
    Cosine,
    PointwiseMargin,
    Softmax,
    Surrogate,
    WeightedComparisons,
    get_surrogate,
)

from ..linear_tools import SHUFFLE, UTILITIES, fit, objective_of, query_weights
from ..ranker_data import G, X, Y


def preferred_pairs():
    """The rows (i, j) of all pairs of one query with a larger label of i."""
    pairs = [(i, j) for i in range(len(Y)) for j in np.flatnonzero(G == G[i]) if Y[i] > Y[j]]
    return np.array(pairs).T


@pytest.mark.parametrize("weight", [None, query_weights()], ids=["plain", "weights"])
def test_pointwise_squared_is_ridge(weight):
    ranker = fit("pointwise_squared", 3.0, weight=weight)
    queries = Queries.from_groups(G)
    kept = queries.broadcast(UTILITIES.defined(Y, queries))
    targets = UTILITIES.encode(Y, queries)
    ridge = Ridge(1.5, solver="cholesky").fit(
        X[kept], targets[kept], None if weight is None else weight[kept]
    )
    np.testing.assert_allclose(ranker.coef_, ridge.coef_, rtol=1e-6)
    assert ranker.intercept_ == pytest.approx(ridge.intercept_, rel=1e-6)


def test_pairwise_squared_is_ridge_on_centred_queries_of_weight_r():
    ranker = fit("pairwise_squared", 3.0, weight=query_weights())
    queries = Queries.from_groups(G)
    targets = UTILITIES.encode(Y, queries)
    table = np.column_stack([queries.center(column) for column in X.T])
    kept = UTILITIES.defined(Y, queries)
    size = queries.broadcast(queries.sizes * kept) * query_weights()
    ridge = Ridge(1.5, fit_intercept=False, solver="cholesky")
    ridge.fit(table, queries.center(targets), size)
    np.testing.assert_allclose(ranker.coef_, ridge.coef_, rtol=1e-6)
    assert ranker.intercept_ == 0


@pytest.mark.parametrize("margin", ["squared_hinge", "hinge"])
def test_hinges_of_comparisons_are_a_support_vector_machine_on_pairs(margin):
    surrogate = WeightedComparisons(margin, "binary")
    ranker = fit(surrogate, 2.0, tol=1e-6)
    i, j = preferred_pairs()
    sign = np.where(np.arange(len(i)) % 2, 1, -1)
    # liblinear's own iterations end at random for the hinge, unless there are many
    peer = LinearSVC(
        C=0.5, loss=margin, fit_intercept=False, tol=1e-8, max_iter=10**6, random_state=0
    )
    peer.fit((X[i] - X[j]) * sign[:, None], sign)
    w = peer.coef_[0]
    short = np.maximum(1 - (X[i] - X[j]) @ w, 0)
    best = (short**2 if margin == "squared_hinge" else short).sum() + w @ w
    found = objective_of(ranker)
    if margin == "squared_hinge":
        np.testing.assert_allclose(ranker.coef_, w, rtol=1e-4, atol=1e-6)
        assert found <= best * (1 + 1e-9)
    else:
        assert found <= best * (1 + 1e-3)
        hinge = fit("ranksvm", 2.0, tol=1e-6)
        np.testing.assert_array_equal(hinge.coef_, ranker.coef_)


def test_preferences_are_logistic_regression_on_their_pairs():
    i, j = preferred_pairs()
    random = np.random.RandomState(0)
    weight = random.uniform(0.1, 2, len(i))
    labels = preference_labels(np.column_stack([i, j]), G, weight=weight)
    ranker = LinearRanker("weighted_comparisons", loss="pd_by_scores", tol=1e-9).fit(X, labels)
    peer = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000)
    sign = np.where(np.arange(len(i)) % 2, 1, -1)
    peer.fit((X[i] - X[j]) * sign[:, None], sign, weight)
    np.testing.assert_allclose(ranker.coef_, peer.coef_[0], rtol=1e-5)
    # the same with the rows of a query apart, and by steps of one query and of several
    place = np.argsort(SHUFFLE)
    pairs = np.column_stack([place[i], place[j]])
    apart = preference_labels(pairs, G[SHUFFLE], weight=weight)
    again = clone(ranker).fit(X[SHUFFLE], apart)
    np.testing.assert_allclose(again.coef_, ranker.coef_, rtol=1e-6)
    for batch_size in (1, 4):
        steps = clone(ranker).set_params(
            solver="sgd", max_iter=60, batch_size=batch_size, random_state=0
        )
        np.testing.assert_allclose(steps.fit(X[SHUFFLE], apart).coef_, ranker.coef_, atol=0.05)


# ------------------------------------------------------------------ every surrogate


@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_every_surrogate_of_the_registry_fits_and_improves_its_objective(name, solver):
    surrogate = get_surrogate(name)
    ranker = LinearRanker(name, solver=solver, random_state=0, max_iter={"sgd": 5}.get(solver))
    if surrogate.scale_invariant and solver == "sgd":
        with pytest.raises(ValueError, match="depends on the scale of the scores"):
            ranker.fit(X, Y, groups=G)
        return
    ranker.fit(X, Y, groups=G)
    assert ranker.n_iter_ >= 1 and isinstance(ranker.surrogate_, Surrogate)
    assert (ranker.intercept_ == 0) == surrogate.shift_invariant
    queries = Queries.from_groups(G)
    kept = ranker.loss_.defined(Y, queries)
    targets = ranker.surrogate_.targets(ranker.loss_, Y, queries)
    constants = [
        ranker.surrogate_.evaluate(targets, np.full(len(Y), b), queries).value[kept].sum()
        for b in np.linspace(-2, 2, 41)
    ]
    assert objective_of(ranker) < min(constants) - 0.01
    noise = np.random.RandomState(0).permutation(len(Y)).astype(float)
    by_chance = ranker.loss_.metric(Y, queries.rank(queries.sort(noise)), queries)[kept].mean()
    assert ranker.score(X, Y, groups=G) > by_chance


@pytest.mark.parametrize("name", sorted({*SURROGATES} - {"ranksvm", "required_margin", "cosine"}))
def test_the_gradient_is_zero_at_the_solution(name):
    alpha, weight = 0.8, query_weights()
    ranker = fit(name, alpha, weight=weight, tol=1e-7)
    queries = Queries.from_groups(G)
    targets = ranker.surrogate_.targets(ranker.loss_, Y, queries)
    scores = ranker.decision_function(X, groups=G)
    kept = queries.broadcast(ranker.loss_.defined(Y, queries))
    slope = np.where(
        kept, weight * ranker.surrogate_.evaluate(targets, scores, queries).gradient, 0
    )
    size = np.abs(X.T) @ np.abs(slope) + alpha * np.abs(ranker.coef_)
    assert (np.abs(X.T @ slope + alpha * ranker.coef_) < 1e-5 * size).all()
    assert abs(slope.sum()) < 1e-5 * np.abs(slope).sum()


def test_a_surrogate_of_a_user():
    class Quartic(Surrogate):
        takes_negative = True

        def _evaluate(self, v, s, queries, derivatives, n_jobs):
            from sklearn_rankcal.surrogates import Evaluation

            return Evaluation(queries.reduce(np.add, (s - v) ** 4), 4 * (s - v) ** 3)

    ranker = fit(Quartic(), 0.1)
    queries = Queries.from_groups(G)
    targets = UTILITIES.encode(Y, queries)
    kept = queries.broadcast(UTILITIES.defined(Y, queries))
    slope = kept * 4 * (ranker.decision_function(X, groups=G) - targets) ** 3
    np.testing.assert_allclose(X.T @ slope, -0.1 * ranker.coef_, atol=1e-5)
    bregman = fit(
        Bregman(np.square, lambda x: 2 * x, lambda x: 0 * x + 2, np.positive, np.ones_like)
    )
    np.testing.assert_allclose(bregman.coef_, fit("pointwise_squared").coef_, rtol=1e-6)


# ------------------------------------------------------------------ the same fit in other ways


@pytest.mark.parametrize("surrogate", ["softmax", "pointwise_logistic", "ranknet"])
def test_sparse_dense_float32_order_of_rows_and_threads(surrogate, monkeypatch):
    table = np.where(np.abs(X) > 0.5, X, 0.0).astype(np.float32)
    ranker = fit(surrogate, X=table.astype(np.float64))
    for kind in (np.asarray, sparse.csr_matrix, sparse.csc_array, pd.DataFrame):
        rows = SHUFFLE
        other = fit(surrogate, X=kind(table[rows]), y=Y[rows], groups=G[rows], n_jobs=2)
        np.testing.assert_allclose(other.coef_, ranker.coef_, rtol=1e-6, atol=1e-9)
    monkeypatch.setattr(_linear_objective, "_BLOCK_BYTES", 8 * 6 * 5)  # shorter than most queries
    for kind, rows in ((np.asarray, SHUFFLE), (sparse.csr_matrix, np.arange(len(Y)))):
        other = fit(surrogate, X=kind(table[rows]), y=Y[rows], groups=G[rows], n_jobs=3)
        np.testing.assert_allclose(other.coef_, ranker.coef_, rtol=1e-6, atol=1e-9)
        assert other.n_iter_ == pytest.approx(ranker.n_iter_, abs=3)


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_units_of_the_columns_do_not_matter_without_a_penalty(solver):
    units = np.array([1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9])
    for surrogate in ("pairwise_logistic", "pointwise_squared"):
        options = {"alpha": 1e-14, "tol": 1e-4, "solver": solver, "random_state": 0}
        plain = fit(surrogate, **options)
        other = fit(surrogate, X=X * units + 5 * units, **options)
        np.testing.assert_allclose(other.coef_ * units, plain.coef_, rtol=1e-3, atol=1e-4)
        assert abs(other.n_iter_ - plain.n_iter_) <= 2


@pytest.mark.parametrize("surrogate", ["softmax", "pointwise_squared"])
def test_weights_of_queries_are_repetitions(surrogate):
    times = np.random.RandomState(2).randint(0, 4, 60)
    weighted = fit(surrogate, weight=times[G].astype(float))
    rows = np.concatenate([np.flatnonzero(G == q) for q in range(60) for _ in range(times[q])])
    copy = np.repeat(np.arange(times.sum()), np.repeat(np.bincount(G), times))
    repeated = fit(surrogate, X=X[rows], y=Y[rows], groups=copy)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)
    # The weight of a query is the mean of its rows' weights.
    uneven = query_weights()
    uneven += np.where(np.arange(len(Y)) % 2, 0.1, -0.1)
    means = (np.bincount(G, uneven) / np.bincount(G))[G]
    np.testing.assert_allclose(
        fit(surrogate, weight=uneven).coef_, fit(surrogate, weight=means).coef_, rtol=1e-6
    )
    # Weights of another unit are as a penalty of another unit.
    np.testing.assert_allclose(
        fit(surrogate, 1.0, weight=np.full(len(Y), 1e9)).coef_,
        fit(surrogate, 1e-9).coef_,
        rtol=1e-6,
    )


# ------------------------------------------------------------------ L-BFGS


def test_too_few_iterations_warn():
    with pytest.warns(ConvergenceWarning, match=r"after 2 iterations .* max_iter=2"):
        ranker = LinearRanker(max_iter=2, tol=1e-9).fit(X, Y, groups=G)
    assert ranker.n_iter_ == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 2 < LinearRanker().fit(X, Y, groups=G).n_iter_ < 50


def test_warm_start():
    ranker = LinearRanker("ranknet", alpha=1e-3, warm_start=True).fit(X, Y, groups=G)
    cold = ranker.n_iter_
    coef = ranker.coef_.copy()
    assert ranker.fit(X, Y, groups=G).n_iter_ <= 1 < cold
    np.testing.assert_allclose(ranker.coef_, coef, rtol=1e-3)
    assert ranker.set_params(alpha=2e-3).fit(X, Y, groups=G).n_iter_ < cold
    with pytest.raises(ValueError, match="the last fit had 6 columns, and X has 5"):
        ranker.fit(X[:, :5], Y, groups=G)
    assert ranker.set_params(warm_start=False).fit(X[:, :5], Y, groups=G).coef_.shape == (5,)


@pytest.mark.parametrize("surrogate", ["pairwise_exponential", "rankboost", "generalized_kl"])
def test_infinite_exponentials_do_not_end_in_nan(surrogate):
    """A warm start from coefficients that are far too large, and outliers in X."""
    wild = X.copy()
    wild[::50] *= 1e4
    ranker = LinearRanker(surrogate, alpha=1e-6, warm_start=True).fit(wild, Y, groups=G)
    assert np.isfinite(ranker.coef_).all() and np.isfinite(objective_of(ranker, wild))
    ranker = LinearRanker(surrogate, tol=1e-7, warm_start=True).fit(X, Y, groups=G)
    coef = ranker.coef_.copy()
    ranker.model_.coef_ = coef * 30  # scores of some tens
    assert np.isfinite(objective_of(ranker))
    np.testing.assert_allclose(ranker.fit(X, Y, groups=G).coef_, coef, rtol=1e-3, atol=1e-4)
    ranker.model_.coef_ = coef * 1e4
    with np.errstate(over="ignore"):
        assert objective_of(ranker) > 1e100
    np.testing.assert_allclose(ranker.fit(X, Y, groups=G).coef_, coef, rtol=1e-3, atol=1e-4)


def test_no_signal_and_tiny_data():
    constant = np.ones((6, 2))
    groups = np.repeat([0, 1], 3)
    y = np.array([1.0, 0, 0, 2, 1, 0])
    for solver in ("lbfgs", "sgd"):
        for surrogate in ("softmax", "pointwise_logistic"):
            ranker = LinearRanker(surrogate, solver=solver)
            with pytest.warns(UserWarning, match="no column of X has different values"):
                ranker.fit(constant, y, groups=groups)
            np.testing.assert_allclose(ranker.coef_, 0, atol=1e-6)
    one = LinearRanker().fit(X[:2], np.array([1.0, 0.0]), groups=[0, 0])
    assert one.predict(X[:2], groups=[0, 0]).tolist() == [1, 2]


# ------------------------------------------------------------------ the cosine


def test_the_penalty_of_a_cosine_determines_the_start_only():
    squared = fit("pointwise_squared", 2.0)
    cosine = fit("cosine", 2.0, tol=1e-6)
    queries = Queries.from_groups(G)
    targets = UTILITIES.encode(Y, queries)

    def value(ranker):
        return Cosine().evaluate(targets, ranker.decision_function(X), queries).value.sum()

    assert value(cosine) < value(squared) - 0.01
    slope = Cosine().evaluate(targets, cosine.decision_function(X), queries).gradient
    assert np.abs(X.T @ slope).max() < 1e-4 * (np.abs(X.T) @ np.abs(slope)).max()
    assert value(fit("cosine", 1e3, tol=1e-6)) == pytest.approx(value(cosine), abs=1e-3)


# ------------------------------------------------------------------ as an estimator


def test_what_it_is_calibrated_over():
    def over(surrogate, loss="ndcg"):
        return LinearRanker(surrogate, loss=loss).fit(X, Y, groups=G).calibrated_over_

    assert over("softmax").startswith("every distribution")
    assert "the surrogate is order preserving" in over("softmax")
    assert "independent" in over("pairwise_margin", ERR())
    for surrogate in ("ranksvm", Softmax("own")):
        assert over(surrogate) == get_surrogate(surrogate).theorem
        assert over(surrogate).startswith("not")
    inner = CalibratedRanker(LinearModel("ranknet")).fit(X, Y, groups=G)
    assert inner.calibrated_over_.startswith("no distributions")
    inner = CalibratedRanker(LinearModel("softmax")).fit(X, Y, groups=G)
    assert inner.calibrated_over_ == inner.loss_.calibrated_over
    np.testing.assert_array_equal(inner.coef_, LinearRanker().fit(X, Y, groups=G).coef_)
    assert inner.decision_function(X).shape == Y.shape


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0, "surrogate": "ranknet"}, "alpha=0 needs 'softmax', 'lbfgs' and at most"),
        ({"alpha": -1.0}, "'alpha' parameter of LinearRanker must be a float in the range"),
        ({"alpha": np.inf}, "'alpha' parameter of LinearRanker must be a float in the range"),
        ({"solver": "newton"}, "'solver' parameter of LinearRanker must be a str among"),
        ({"step_size": "linear"}, "'step_size' parameter of LinearRanker must be a str among"),
        ({"surrogate": "softmx"}, "Unknown surrogate 'softmx'. Did you mean 'softmax'?"),
        ({"surrogate": "listnet"}, "There is no 'listnet' here; the nearest is 'softmax'"),
        ({"surrogate": PointwiseMargin("logistic", -1.0)}, "eta must be a finite number > 0"),
        ({"loss": "spearman"}, "Softmax needs utilities >= 0"),
        ({"loss": "pd"}, "Softmax is a function of scores, but PD learns pairs of documents"),
        ({"max_iter": 0}, "'max_iter' parameter of LinearRanker must be"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace("?", r"\?")):
        LinearRanker(**options).fit(X, Y, groups=G)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": True}, "alpha must be a finite number >= 0; got True"),
        ({"tol": 0.0}, "tol must be a finite number > 0"),
        ({"largest_step": np.nan}, "largest_step must be a finite number > 0"),
        ({"solver": "sdg"}, "Unknown solver 'sdg'. Did you mean 'sgd'? Known: lbfgs, sgd."),
        ({"step_size": None}, "Unknown step_size None. Known: sqrt, inverse."),
        ({"batch_size": 0}, "batch_size must be a whole number >= 1"),
        ({"warm_start": 1}, "warm_start must be True or False"),
    ],
)
def test_bad_parameters_of_the_model(options, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        LinearModel(**options).fit(Training(X, Y, Queries.from_groups(G)))


def test_bad_input():
    with pytest.raises(ValueError, match="Input X contains NaN"):
        LinearRanker().fit(np.where(X > 2, np.nan, X), Y, groups=G)
    with pytest.raises(ValueError, match="contains text or times"):
        LinearRanker().fit(pd.DataFrame(X, columns=list("abcdef")).assign(g="a"), Y, groups=G)
    with pytest.raises(ValueError, match="largest sample_weight is 1e-20"):
        LinearRanker().fit(X, Y, groups=G, sample_weight=np.full(len(Y), 1e-20))
    for surrogate in ("pairwise_squared", "pointwise_squared"):
        with pytest.raises(ValueError, match=r"squares of a column of X, .* are infinite"):
            LinearRanker(surrogate).fit(X * 1e160, Y, groups=G)


def test_group_column_and_frames():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame.insert(2, "qid", G)
    ranker = LinearRanker(group_column="qid").fit(frame, Y)
    plain = LinearRanker().fit(X, Y, groups=G)
    np.testing.assert_allclose(np.delete(ranker.coef_, 2), plain.coef_, rtol=1e-12)
    assert ranker.coef_[2] == 0 and ranker.n_features_in_ == 7
    np.testing.assert_array_equal(ranker.predict(frame), plain.predict(X, groups=G))


def test_progress_is_printed(capsys):
    LinearRanker("ranksvm", verbose=1, tol=1e-9).fit(X, Y, groups=G)
    text = capsys.readouterr().out
    assert "[LinearModel] iteration 10: objective " in text and "iteration 9" not in text
    assert "[LinearRanker] fitted LinearModel" in text
    LinearRanker(verbose=2).fit(X, Y, groups=G)
    assert "iteration 1:" in capsys.readouterr().out
    LinearRanker(verbose=1, solver="sgd", max_iter=2).fit(X, Y, groups=G)
    assert "[LinearModel] pass 2: " in capsys.readouterr().out
    LinearRanker().fit(X, Y, groups=G)
    assert capsys.readouterr().out == ""
