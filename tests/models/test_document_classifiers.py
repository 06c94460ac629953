"""Classifiers in the place of a regressor: rows, classes and weights, and scores from predictions.

`tests/consistency/test_calibration.py` shows that the rankings are calibrated.
"""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.losses import NDCG, Positional, get_loss
from sklearn_rankcal.models import DocumentModel, Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import PointwiseMargin

from ..covering import covering
from ..ranker_data import G, X, Y

RELEVANT = np.isin(G, [g for g in np.unique(G) if Y[G == g].any()])
QUERIES = Queries.from_groups(G[RELEVANT])
#: The targets of NDCG for the queries on which it is defined.
V = NDCG().training_targets(Y[RELEVANT].astype(float), QUERIES)


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier that only remembers what it was fitted to."""

    def fit(self, X, y, sample_weight=None):
        self.table_, self.y_, self.weight_ = X, y, sample_weight
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(X.shape[0])

    def predict_proba(self, X):
        return np.full((X.shape[0], 2), 0.5)


def fitted(table, targets, queries, weight=None, **arguments):
    training = Training(table, targets, queries, weight, **arguments)
    return DocumentModel(Recorder()).fit(training).regressor_


# -------------------------------------------------------------------- rows, classes and weights


def test_each_document_has_both_classes_with_weights_that_add_up_to_one():
    table = np.arange(6.0)[:, None]
    targets = np.array([0.0, 1.0, 4.0, 0.0, 3.0, 0.0])
    task = fitted(table, targets, Queries.uniform(2, 3))
    np.testing.assert_array_equal(task.table_.ravel(), [0, 1, 2, 3, 4, 5, 1, 4])
    np.testing.assert_array_equal(task.y_, [0, 1, 1, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(task.weight_, [1, 0.25, 1, 1, 0.75, 1, 0.75, 0.25])
    weighted = fitted(table, targets, Queries.uniform(2, 3), np.array([1, 2, 3, 4, 5, 6.0]))
    np.testing.assert_array_equal(weighted.weight_, task.weight_ * [1, 2, 3, 4, 5, 6, 2, 5])
    model = DocumentModel(Recorder()).fit(Training(table, targets, Queries.uniform(2, 3)))
    assert model.eta_ == 4 and not hasattr(model, "levels_")
    np.testing.assert_array_equal(model.predict(table, Queries.uniform(2, 3)), np.full(6, 2.0))


@pytest.mark.parametrize("loss", ["ndcg", "spearman", "pd_by_scores"])
def test_only_rows_with_two_positive_weights_are_copied(loss):
    targets = get_loss(loss).training_targets(Y[RELEVANT].astype(float), QUERIES)
    shifted = targets - np.minimum(0, QUERIES.broadcast(QUERIES.min(targets)))
    inside = (0 < shifted) & (shifted < shifted.max())
    task = fitted(X[RELEVANT], targets, QUERIES)
    assert 0 < inside.sum() < len(targets)
    assert len(task.y_) == len(task.table_) == len(task.weight_) == len(targets) + inside.sum()
    np.testing.assert_array_equal(task.table_[len(targets) :], X[RELEVANT][inside])
    weight = np.zeros((2, len(targets)))
    rows = np.concatenate([np.arange(len(targets)), np.flatnonzero(inside)])
    np.add.at(weight, (task.y_, rows), task.weight_)
    np.testing.assert_allclose(weight[1], shifted / shifted.max())
    np.testing.assert_allclose(weight.sum(axis=0), 1)


def test_nothing_is_copied_if_utilities_are_binary():
    table, targets = np.arange(6.0)[:, None], np.array([0, 2, 2, 0, 2, 0.0])
    for shift in (0, -2):  # negative targets are shifted up
        task = fitted(table, targets + shift, Queries.single(6))
        assert task.table_ is table and task.weight_ is None
        np.testing.assert_array_equal(task.y_, targets > 0)
    weight = np.arange(1, 7.0)
    np.testing.assert_array_equal(fitted(table, targets, Queries.single(6), weight).weight_, weight)


def test_tables_keep_their_type():
    targets, queries = np.array([0.0, 1.0, 2.0]), Queries.single(3)
    rows = [0, 1, 2, 1]
    table = fitted(sparse.csr_matrix(np.eye(3)), targets, queries).table_
    assert sparse.issparse(table)
    np.testing.assert_array_equal(table.toarray(), np.eye(3)[rows])
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.Categorical(["x", "y", "x"])})
    table = fitted(frame, targets, queries).table_
    assert table["b"].dtype == frame["b"].dtype
    assert table.to_numpy().tolist() == frame.iloc[rows].to_numpy().tolist()


def test_graded_targets_are_classes_up_to_100():
    queries, targets = Queries.single(150), np.arange(150.0)
    levels = DocumentModel(Recorder()).fit(
        Training(targets[:, None], targets % 100, queries, graded_targets=True)
    )
    np.testing.assert_array_equal(levels.levels_, np.arange(100))
    np.testing.assert_array_equal(levels.regressor_.y_, targets % 100)
    more = DocumentModel(Recorder()).fit(
        Training(targets[:, None], targets, queries, graded_targets=True)
    )
    assert more.eta_ == 149 and set(more.regressor_.y_) == {0, 1}
    again = more.fit(Training(targets[:, None], targets % 2, queries, graded_targets=True))
    assert not hasattr(again, "eta_") and again.levels_.tolist() == [0, 1]


# -------------------------------------------------------------------- the surrogate


def least(value_and_gradient, n):
    result = minimize(
        value_and_gradient, np.zeros(n), jac=True, method="L-BFGS-B",
        options={"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    return result.x


def test_logistic_regression_minimises_the_logistic_surrogate():
    model = DocumentModel(LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000))
    model.fit(Training(X[RELEVANT], V, QUERIES))
    surrogate = PointwiseMargin("logistic", eta=V.max())
    table = X[RELEVANT]

    def objective(w):
        found = surrogate.evaluate(V, table @ w[1:] + w[0], QUERIES, derivatives=1)
        slope = 0.5 / V.max() * np.append(found.gradient.sum(), table.T @ found.gradient)
        slope[1:] += w[1:]
        return 0.5 / V.max() * found.value.sum() + w[1:] @ w[1:] / 2, slope

    wanted = least(objective, X.shape[1] + 1)
    inner = model.regressor_
    np.testing.assert_allclose(np.append(inner.intercept_, inner.coef_), wanted, atol=1e-6)
    assert np.abs(inner.coef_).max() > 0.1
    eta_times_chance = V.max() / (1 + np.exp(-(table @ wanted[1:] + wanted[0])))
    np.testing.assert_allclose(model.predict(table, QUERIES), eta_times_chance, atol=1e-6)


def test_a_linear_svm_minimises_the_squared_hinge_surrogate():
    svm = LinearSVC(C=0.5, fit_intercept=False, dual=False, tol=1e-10, max_iter=10_000)
    model = DocumentModel(svm).fit(Training(X[RELEVANT], V, QUERIES))
    surrogate, table = PointwiseMargin("squared_hinge", eta=V.max()), X[RELEVANT]

    def objective(w):  # the scores of the surrogate are (1 + s) / 2
        found = surrogate.evaluate(V, (1 + table @ w) / 2, QUERIES, derivatives=1)
        slope = 2 / V.max() * table.T @ found.gradient / 2 + w
        return 2 / V.max() * found.value.sum() + w @ w / 2, slope

    wanted = least(objective, X.shape[1])
    np.testing.assert_allclose(model.regressor_.coef_.ravel(), wanted, atol=1e-6)
    expected = V.max() * (1 + table @ wanted) / 2
    np.testing.assert_allclose(model.predict(table, QUERIES), expected, atol=1e-6)


def test_a_ridge_classifier_is_least_squares_on_the_targets():
    """Its margins are 2 v / eta - 1 in the mean over the two classes of a document."""
    from sklearn.linear_model import Ridge

    one = CalibratedRanker(RidgeClassifier(2.0), context=None).fit(X, Y, G)
    other = CalibratedRanker(Ridge(2.0), center=False, context=None).fit(X, Y, G)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-10)


def test_weights_of_rows_count_as_repeated_rows():
    repeats = np.random.default_rng(0).integers(1, 4, len(Y))
    classifier = LogisticRegression(tol=1e-10, max_iter=10_000)
    loss = Positional(lambda y, queries: y / 3)  # its targets do not depend on the other rows
    one = CalibratedRanker(classifier, loss=loss, context=None)
    one.fit(X, Y, G, sample_weight=repeats)
    rows = np.repeat(np.arange(len(Y)), repeats)
    other = CalibratedRanker(classifier, loss=loss, context=None).fit(X[rows], Y[rows], G[rows])
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    assert one.coef_.shape == (1, X.shape[1])


# -------------------------------------------------------------------- classifiers


CLASSIFIERS = [
    LogisticRegression(max_iter=1000),
    make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5),
    GradientBoostingClassifier(n_estimators=10),
    GradientBoostingClassifier(loss="exponential", n_estimators=10),
    RandomForestClassifier(10, min_samples_leaf=5, random_state=0),
    AdaBoostClassifier(n_estimators=10, random_state=0),
    GaussianNB(),
    LinearSVC(dual=False),
    make_pipeline(StandardScaler(), LinearSVC()),
    RidgeClassifier(),
    SGDClassifier("log_loss", random_state=0),
    SGDClassifier("modified_huber", alpha=0.01, random_state=0),
    SGDClassifier("squared_hinge", alpha=0.1, learning_rate="adaptive", eta0=0.01, random_state=0),
    SGDClassifier("squared_error", alpha=0.1, learning_rate="adaptive", eta0=0.01, random_state=0),
]


@pytest.mark.parametrize(
    ("classifier", "loss"),
    covering(itertools.product(CLASSIFIERS, ["ndcg@5", "spearman"])),
    ids=lambda value: repr(value)[:40],
)
def test_classifiers_learn_to_rank(classifier, loss):
    ranker = CalibratedRanker(classifier, loss=loss).fit(X, Y, G)
    reverse = CalibratedRanker(classifier, loss=loss)
    vars(reverse).update(vars(ranker), decoder_=_Reversed(ranker.decoder_))
    assert ranker.score(X, Y, G) > reverse.score(X, Y, G) + 0.2
    assert np.isfinite(ranker.decision_function(X, G)).all()


def test_metadata_routing_passes_the_weights():
    last = LogisticRegression(max_iter=1000)
    one = CalibratedRanker(make_pipeline(StandardScaler(), last)).fit(X, Y, G)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        last = last.set_fit_request(sample_weight=True)
        other = CalibratedRanker(make_pipeline(scaler, last)).fit(X, Y, G)
    np.testing.assert_array_equal(one.decision_function(X, G), other.decision_function(X, G))


class _Reversed:
    def __init__(self, decoder):
        self.decoder = decoder

    def decode(self, u, queries, *arguments):
        return self.decoder.decode(-u, queries, *arguments)


@pytest.mark.parametrize("loss", ["ndcg", "dcg"])
@pytest.mark.parametrize(
    "classifier",
    [
        SVC(),
        LinearSVC(loss="hinge"),
        SGDClassifier(),
        SGDClassifier("perceptron"),
        GridSearchCV(LinearSVC(), {"C": [1.0, 2.0]}),
        make_pipeline(StandardScaler(), LinearSVC(loss="hinge")),
    ],
)
def test_the_decision_function_of_the_hinge_is_refused(classifier, loss):
    with pytest.raises(ValueError, match="has no predict_proba, and sorting by its decision_func"):
        CalibratedRanker(classifier, loss=loss).fit(X, Y, G)


@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")  # deprecated in 1.9
def test_probabilities_that_are_fitted_without_weights_are_refused():
    """Both classes of a document count the same in them, so that they can have a wrong slope."""
    for svc in (SVC(probability=True), make_pipeline(StandardScaler(), NuSVC(probability=True))):
        with pytest.raises(ValueError, match=r"SVC fits its probabilities without .* LinearSVC"):
            CalibratedRanker(svc, loss="spearman").fit(X, Y, G)
    CalibratedRanker(SVC(probability=True), loss="dcg").fit(X, Y, G)


def test_a_classifier_without_weights_is_refused_unless_all_are_one():
    nearest = KNeighborsClassifier(5)
    with pytest.raises(
        ValueError, match=r"KNeighborsClassifier does not support sample_weight\. A"
    ):
        CalibratedRanker(nearest).fit(X, Y, G)
    with pytest.raises(ValueError, match="KNeighborsClassifier does not support sample_weight"):
        CalibratedRanker(make_pipeline(StandardScaler(), nearest)).fit(X, Y, G)
    CalibratedRanker(nearest, loss="dcg").fit(X, Y, G)
    binary = Positional(lambda y, queries: y > 0)
    CalibratedRanker(nearest, loss=binary).fit(X, Y, G)


@pytest.mark.parametrize("classifier", [LogisticRegression(), RandomForestClassifier(2)])
@pytest.mark.parametrize("utility", [0.0, 1.0, -2.0])
def test_a_single_class_is_refused(classifier, utility):
    loss = Positional(lambda y, queries: np.full(len(y), utility))
    with pytest.raises(ValueError, match=r"have the same target, so .* only one class"):
        CalibratedRanker(classifier, loss=loss).fit(X, Y, G)


def test_scores_are_finite_for_extreme_targets():
    for scale in (1e-280, 1e280):
        model = DocumentModel(LogisticRegression()).fit(Training(X[RELEVANT], V * scale, QUERIES))
        scores = model.predict(X[RELEVANT], QUERIES) / scale
        wanted = DocumentModel(LogisticRegression()).fit(Training(X[RELEVANT], V, QUERIES))
        np.testing.assert_allclose(scores, wanted.predict(X[RELEVANT], QUERIES), rtol=1e-6)


def test_one_query_is_enough():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CalibratedRanker(LogisticRegression()).fit(X[:20], Y[:20]).predict(X[:20])
