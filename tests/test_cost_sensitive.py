"""LowRankClassifier, its costs compared with frequencies, and LowRankLoss by enumeration."""

import pickle
import tracemalloc
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_rankcal import CalibratedRanker, LowRankClassifier, make_cost_scorer, mean_cost_loss
from sklearn_rankcal.cost_sensitive import LowRankLoss
from sklearn_rankcal.label_ranking import BlendedRegressor

from .covering import REST, covering_checks
from .named import named

ROUNDING = 1e-10


@named
def distance(classes):
    places = np.arange(len(classes))
    return np.abs(np.subtract.outer(places, places)).astype(float)


@named
def seldom_one(classes):
    """Costs that are partly negative, and partly depend on the label alone."""
    return distance(classes) * (1.0 + np.arange(len(classes)))[:, None] - 1


@covering_checks(
    parametrize_with_checks(
        [
            LowRankClassifier(Ridge()),
            LowRankClassifier(Ridge(), loss_matrix=distance, n_folds=None),
            LowRankClassifier(ExtraTreesRegressor(10), loss_matrix=seldom_one, n_folds=None),
            LowRankClassifier(Ridge(), loss_matrix=seldom_one),
            LowRankClassifier(HistGradientBoostingRegressor(max_iter=5)),
            LowRankClassifier(BlendedRegressor(n_estimators=10)),
        ]
    )
)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_scikit_learn_checks(estimator, check):
    # An estimator that draws rows or folds treats weights as repetitions only in expectation.
    # Whether the few predictions of this check differ depends on the version.
    drawn = isinstance(estimator.regressor, BlendedRegressor) or (
        estimator.loss_matrix is seldom_one and estimator.n_folds is not None
    )
    if drawn and check.func.__name__ == "check_sample_weight_equivalence_on_dense_data":
        pytest.xfail("bootstrap samples and folds are drawn from rows, whatever their weight")
    check(estimator)


def cells(n_cells, n_classes, size, rng):
    """Draw indicators of a cell, and classes from the distribution of the cell."""
    cell = np.append(np.arange(n_cells), rng.integers(n_cells, size=size))
    p = rng.dirichlet(np.full(n_classes, 0.7), size=n_cells)
    y = np.array([rng.choice(n_classes, p=p[i]) for i in cell])
    y[:n_classes] = np.arange(n_classes)
    return np.eye(n_cells)[cell], y


@pytest.mark.parametrize("kind", ["real", "abstaining", "ordinal", "one target", "zero-one"])
@pytest.mark.parametrize("weighted", [False, True])
def test_decisions_minimise_the_expected_cost_of_the_frequencies(kind, weighted):
    """A regressor that gives the frequencies leads to their mean costs and to the best target."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 5):
        X, y = cells(8, n, 300, rng)
        weight = rng.uniform(0, 3, size=len(y)) if weighted else None
        L = {
            "real": rng.normal(size=(n, n + 2)),
            "abstaining": np.c_[3 * (1 - np.eye(n)), np.full(n, 0.7)],
            "ordinal": distance(range(n)) ** 2,
            "one target": np.c_[rng.normal(size=n), np.ones(n), rng.normal(size=n)],
            "zero-one": 1 - np.eye(n),
        }[kind]
        costs = None if kind == "zero-one" else L
        targets = np.arange(L.shape[1])
        clf = LowRankClassifier(
            LinearRegression(fit_intercept=False), loss_matrix=costs, targets=targets, n_folds=None
        ).fit(X, y, weight)
        joint = X.T @ (np.eye(n)[y] if weight is None else weight[:, None] * np.eye(n)[y])
        expected = joint / joint.sum(axis=1, keepdims=True) @ L
        np.testing.assert_allclose(clf.predict_cost(np.eye(8)), expected, atol=1e-10)
        chosen = clf.predict(np.eye(8))
        np.testing.assert_allclose(expected[np.arange(8), chosen], expected.min(axis=1), atol=1e-10)
        values = L[y, clf.predict(X)]
        assert clf.score(X, y, weight) == pytest.approx(1 - np.average(values, weights=weight))
        assert clf.score(X, y) == pytest.approx(1 - values.mean())


def test_the_regressor_has_only_the_outputs_that_costs_need():
    rng = np.random.default_rng(0)
    X, y = cells(5, 4, 100, rng)
    for costs, outputs in (
        (None, 4),
        (1 - np.eye(4), 3),
        (np.outer([1.0, -1, 2, 3], [1.0, 2, 0, 4]), 1),
        (distance(range(4)) + np.arange(4.0), 3),
        (LowRankLoss(np.arange(4.0)[:, None], np.ones((4, 1)), c=np.arange(4.0)), 1),
    ):
        clf = LowRankClassifier(Ridge(), loss_matrix=costs, n_folds=None).fit(X, y)
        assert np.atleast_2d(clf.regressor_.coef_).shape == (outputs, 5)
    assert LowRankClassifier(Ridge()).fit(X, y > 1).regressor_.coef_.shape == (5,)  # two classes


def test_regressors_of_one_output_are_wrapped():
    X, y = load_iris(return_X_y=True)
    boosted = HistGradientBoostingRegressor(max_iter=5)
    clf = LowRankClassifier(boosted, random_state=0).fit(X, y)
    assert isinstance(clf.regressor_, MultiOutputRegressor)
    assert all(part.random_state is not None for part in clf.regressor_.estimators_)
    assert isinstance(LowRankClassifier(boosted).fit(X, y == 1).regressor_, type(boosted))
    piped = make_pipeline(StandardScaler(), Ridge())
    assert LowRankClassifier(piped).fit(X, y).regressor_[-1].coef_.shape == (3, 4)
    weight = np.ones(len(y))
    assert (clf.predict(X) == clone(clf).fit(X, y, weight).predict(X)).all()


@pytest.mark.parametrize("load, least", [(load_wine, 0.96), (load_iris, 0.94)])
def test_the_default_is_good(load, least):
    X, y = load(return_X_y=True)
    folds = KFold(3, shuffle=True, random_state=0)
    assert cross_val_score(LowRankClassifier(random_state=0), X, y, cv=folds).mean() > least


def test_a_thousand_classes_take_five_outputs():
    """No array of samples by classes is held; the largest chunks have 2^22 numbers."""
    rng = np.random.default_rng(0)
    n_classes, n = 10_000, 25_000
    alpha, beta = rng.normal(size=(n_classes, 5)), rng.normal(size=(n_classes, 5))
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=n - n_classes))
    X = alpha[y] + 0.1 * rng.normal(size=(n, 5))
    clf = LowRankClassifier(LinearRegression(), loss_matrix=LowRankLoss(alpha, beta))
    tracemalloc.start()
    predicted = clf.fit(X, y).predict(X[:2000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert clf.regressor_.coef_.shape == (5, 5)
    assert peak < 2.5 * 2**22 * 8 < 2000 * n_classes * 8
    regret = np.einsum("nd,nd->n", X[:2000], beta[predicted]) - (X[:2000] @ beta.T).min(axis=1)
    assert np.median(regret) < 0.1


# ---------------------------------------------------------------- names


def test_classes_and_targets_of_any_type():
    X, y = load_iris(return_X_y=True)
    costs = np.c_[1 - np.eye(3), np.full(3, 0.3)]
    words = np.array(["setosa", "versicolor", "virginica"])
    plain = LowRankClassifier(Ridge(), loss_matrix=costs, targets=[0, 1, 2, -1]).fit(X, y)
    chosen = plain.predict(X)
    assert plain.targets_.dtype.kind == "i" and set(chosen) == {0, 1, 2, -1}
    for names in (words, words.astype(object)):
        clf = clone(plain).set_params(targets=[*words, "don't know"]).fit(X, names[y])
        np.testing.assert_array_equal(clf.classes_, words)
        np.testing.assert_array_equal(clf.predict(X), np.append(words, "don't know")[chosen])
        assert clf.score(X, names[y]) == plain.score(X, y)
    mixed = clone(plain).set_params(targets=[0, 1, 2, "don't know"]).fit(X, y)
    assert mixed.targets_.tolist() == [0, 1, 2, "don't know"]
    assert mixed.score(X, y) == plain.score(X, y)


def test_rows_are_those_of_classes():
    X, y = load_iris(return_X_y=True)
    costs = np.array([[0, 1.0, 1], [1, 0, 1], [9, 3, 0]])
    plain = LowRankClassifier(Ridge(), loss_matrix=costs).fit(X, y)
    turned = LowRankClassifier(Ridge(), loss_matrix=costs[::-1, ::-1], classes=[2, 1, 0]).fit(X, y)
    assert turned.classes_.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(plain.predict(X), turned.predict(X))
    few = LowRankClassifier(Ridge(), loss_matrix=costs, classes=[0, 1, 2]).fit(X[:100], y[:100])
    assert set(few.predict(X)) <= {0, 1} and few.predict_cost(X).shape == (150, 3)
    assert few.score(X, y) == pytest.approx(1 - costs[y, few.predict(X)].mean())


def test_accuracy_of_zero_one_loss_counts_unseen_classes():
    X, y = load_iris(return_X_y=True)
    clf = LowRankClassifier(Ridge()).fit(X[:100], y[:100])
    assert clf.score(X, y) == accuracy_score(y, clf.predict(X)) < 2 / 3 + 1e-9


def test_data_frames_and_sparse_text():
    pd = pytest.importorskip("pandas")
    frame, y = load_wine(as_frame=True, return_X_y=True)
    clf = LowRankClassifier(HistGradientBoostingRegressor(max_iter=5)).fit(frame, y)
    np.testing.assert_array_equal(clf.feature_names_in_, frame.columns)
    assert clf.score(frame, pd.Series(y.to_numpy(), index=frame.index[::-1])) > 0.9
    documents = ["good film", "bad film", "good good", "bad bad bad"] * 3
    words = CountVectorizer().fit_transform(documents)
    labels = ["pos", "neg", "pos", "neg"] * 3
    assert LowRankClassifier(Ridge()).fit(words, labels).score(words, labels) == 1
    with_nan = frame.mask(frame > 1.5 * frame.mean())
    assert clf.fit(with_nan, y).score(with_nan, y) > 0.9


# ---------------------------------------------------------------- model selection


def test_grid_search_by_cost_over_folds_that_lack_a_class():
    """The data are not shuffled, so that each test fold of iris is a class that training lacks."""
    X, y = load_iris(return_X_y=True)
    costs = np.array([[0, 1.0, 5], [1, 0, 1], [2, 1, 0]])
    scorer = make_cost_scorer(costs, classes=[0, 1, 2])
    search = GridSearchCV(
        make_pipeline(
            StandardScaler(), LowRankClassifier(Ridge(), loss_matrix=costs, classes=[0, 1, 2])
        ),
        {"lowrankclassifier__regressor__alpha": [0.1, 1e6]},
        scoring=scorer,
        cv=KFold(3),
        error_score="raise",
    ).fit(X, y)
    for i, (train, test) in enumerate(KFold(3).split(X)):
        predicted = clone(search.estimator).set_params(**search.cv_results_["params"][0]).fit(
            X[train], y[train]
        ).predict(X[test])  # fmt: skip
        score = search.cv_results_[f"split{i}_test_score"][0]
        assert score == -costs[y[test], predicted].mean()
    others = cross_val_score(LogisticRegression(max_iter=500), X, y, scoring=scorer, cv=KFold(3))
    assert np.isfinite(others).all() and (others < 0).any()
    choices = {"loss_matrix": [None, LowRankLoss.from_matrix(costs), distance]}
    searched = GridSearchCV(LowRankClassifier(Ridge()), choices, scoring=scorer).fit(X, y)
    assert pickle.loads(pickle.dumps(searched)).predict(X).shape == (150,)


def test_mean_cost_by_name():
    costs = [[0, 2, 0.5], [7, 0, 0.5]]
    names = {"classes": ["b", "a"], "targets": ["b", "a", "?"]}
    y_true, y_pred = ["a", "a", "b", "b"], ["b", "?", "a", "b"]
    assert mean_cost_loss(y_true, y_pred, costs, **names) == (7 + 0.5 + 2 + 0) / 4
    weighted = mean_cost_loss(y_true, y_pred, costs, **names, sample_weight=[0, 1, 1, 0])
    assert weighted == 2.5 / 2
    for other in (LowRankLoss.from_matrix(costs), lambda classes: costs):
        assert mean_cost_loss(y_true, y_pred, other, **names) == pytest.approx(9.5 / 4)
    assert mean_cost_loss([1, 2], [1, 1], [[0, 1], [4, 0]], classes=[1, 2]) == 2


@pytest.mark.parametrize("weighted", [False, True])
def test_recalibration_equals_its_formula_written_out(weighted):
    """Classes missing from y have probability 0."""
    rng = np.random.default_rng(0)
    X, y = load_iris(return_X_y=True)
    y += y > 0  # class 1 is missing
    weight = rng.integers(0, 4, size=150).astype(float) if weighted else np.ones(150)
    costs = distance(range(4)) ** 2 + np.arange(4.0)[:, None]
    clf = LowRankClassifier(Ridge(), loss_matrix=costs, classes=range(4), n_folds=3)
    clf.fit(X, y, weight if weighted else None)
    X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
    fold, alpha = np.empty(len(y), dtype=int), clf.loss_.alpha[y]
    for label in range(4):
        before = np.sum(y < label)
        fold[y == label] = (before + np.arange(np.sum(y == label))) % 3
    held_out = np.empty_like(alpha)
    for k in range(3):
        part = Ridge().fit(X[fold != k], alpha[fold != k], weight[fold != k])
        held_out[fold == k] = part.predict(X[fold == k]).reshape(-1, alpha.shape[1])
    scaler = StandardScaler().fit(held_out)
    logistic = LogisticRegression(max_iter=1000)
    logistic.fit(scaler.transform(held_out), y, weight / weight.mean())
    u = Ridge().fit(X, alpha, weight).predict(X).reshape(alpha.shape)
    q = np.insert(logistic.predict_proba(scaler.transform(u)), 1, 0.0, axis=1)
    np.testing.assert_allclose(clf.predict_cost(X), q @ costs, rtol=1e-4)


def test_recalibration_is_used_only_where_it_is_better():
    """The frequencies of cells are exact, so that recalibration could only add noise."""
    rng = np.random.default_rng(0)
    chosen = []
    for _ in range(3):
        X, y = cells(30, 3, 3000, rng)
        clf = LowRankClassifier(LinearRegression(fit_intercept=False), loss_matrix=distance)
        chosen.append(clf.fit(X, y).recalibrator_ is not None)
    assert not any(chosen)
    few = clone(clf).set_params(n_folds=10).fit(X[:4], [0, 1, 0, 1])
    assert few.predict(X).shape == (len(X),)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "parameters, message",
    [
        (
            {"loss_matrix": 1 - np.eye(4)},
            r"shape \(4, 4\), but there are 3 classes \(rows: \[0, 1, 2\]\) .* classes=",
        ),
        ({"loss_matrix": np.ones((3, 4))}, r"\(3, 4\), but there are .* 3 targets.* targets="),
        (
            {"loss_matrix": np.ones((3, 4)), "targets": [1, 2]},
            r"shape \(3, 4\), but there are 3 classes .* and 2 targets",
        ),
        ({"loss_matrix": np.ones((3, 2)), "targets": [1, 1]}, "targets must be different names"),
        ({"loss_matrix": np.c_[1 - np.eye(3), np.zeros(3)], "targets": "abcd"}, "targets"),
        ({"loss_matrix": np.full((3, 3), np.nan)}, "loss_matrix contains NaN"),
        ({"loss_matrix": LowRankLoss(np.eye(5), np.eye(5))}, r"shape \(5, 5\)"),
        ({"loss_matrix": lambda classes: np.ones(3)}, "Expected 2D array"),
        ({"classes": [0, 1]}, r"y contains 2, not among the classes: \[0, 1\]"),
        ({"classes": [0, 1, 1, 2]}, "classes must be different names"),
        ({"regressor": "ridge"}, "regressor"),
        ({"n_folds": 1}, r"'n_folds' parameter .* in the range \[2, inf\)"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        LowRankClassifier(**({"regressor": Ridge()} | parameters)).fit(X, y)


def test_equal_differences_of_costs_in_all_classes():
    X, y = load_iris(return_X_y=True)
    costs = np.array([[2.0, 1.0, 3.0], [5.0, 4.0, 6.0], [2.5, 1.5, 3.5]])
    clf = LowRankClassifier(Ridge(), loss_matrix=costs, targets=list("abc"), n_folds=None)
    clf.fit(X, y)
    assert set(clf.predict(X).tolist()) == {"b"}
    np.testing.assert_allclose(clf.predict_cost(X).mean(axis=0), costs.mean(axis=0))
    constant = clf.set_params(loss_matrix=np.ones((3, 3)), n_folds=5).fit(X, y)
    assert set(constant.predict(X).tolist()) == {"a"} and constant.recalibrator_ is None
    np.testing.assert_allclose(constant.predict_cost(X), 1)


def test_a_score_is_1_minus_the_mean_of_the_given_costs():
    """Factored costs of right answers would be 0 up to rounding only."""
    rng = np.random.default_rng(0)
    X, y = np.eye(6), np.arange(6)
    for _ in range(20):
        costs = rng.exponential(size=(6, 6)) * (1 - np.eye(6))
        clf = LowRankClassifier(LinearRegression(), loss_matrix=costs, n_folds=None).fit(X, y)
        assert clf.score(X, y) == 1
    gains = LowRankClassifier(LinearRegression(), loss_matrix=-np.eye(6), n_folds=None).fit(X, y)
    assert gains.score(X, y) == 2 and gains.score(X, (y + 1) % 6) == 1
    scorer = make_cost_scorer(-np.eye(6), classes=range(6))
    assert scorer(gains, X, y) == 1


def test_bad_data():
    X, y = load_iris(return_X_y=True)
    clf = LowRankClassifier(Ridge())
    assert set(clf.fit(X[:50], y[:50]).predict(X)) == {0}  # there is one class
    clf = LowRankClassifier(Ridge(), loss_matrix=distance).fit(X, y)
    with pytest.raises(ValueError, match="y_true contains 7, not among the classes"):
        clf.score(X[:2], [0, 7])
    with pytest.raises(ValueError, match="inconsistent"):
        clf.score(X, y[:-1])
    with pytest.raises(ValueError, match="inconsistent"):
        clf.fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"shape \(3, 3\), but there are 2 classes"):
        make_cost_scorer(distance(range(3)), classes=[0, 1])
    with pytest.raises(ValueError, match="y_pred contains '\\?', not among the targets"):
        mean_cost_loss(["a"], ["?"], [[0, 1], [1, 0]], classes=["a", "b"])
    with pytest.raises(ValueError, match="loss_matrix has a missing entry"):
        LowRankClassifier(loss_matrix=lambda classes: None).fit(X, y)
    with pytest.raises(ValueError, match="LogisticRegression is a classifier"):
        LowRankClassifier(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="does not support sample_weight"):
        LowRankClassifier(KNeighborsRegressor()).fit(X, y, sample_weight=np.arange(1.0, 151))
    with pytest.raises(ValueError, match="0 sample"):
        mean_cost_loss([], [], 1 - np.eye(2), classes=[0, 1])


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**100])
def test_expected_costs_are_in_the_unit_of_the_costs(unit):
    X, y = load_wine(return_X_y=True)
    costs = seldom_one(np.arange(3)) + np.array([[0], [5], [1]])
    one, other = (
        LowRankClassifier(Ridge(), loss_matrix=u * costs, n_folds=None).fit(X, y)
        for u in (1.0, unit)
    )
    wanted = unit * one.predict_cost(X)
    np.testing.assert_allclose(other.predict_cost(X), wanted, rtol=1e-9, atol=1e-9 * unit)


def steps_apart(parent, a, b):
    """Count the edges between two leaves of a tree.

    `parent` holds the parent of each node, and the parent of the root is the root.
    """
    above = []
    for node in (a, b):
        path = [node]
        while parent[node] != node:
            node = parent[node]
            path.append(node)
        above.append(path)
    return len(set(above[0]) ^ set(above[1]))


def random_costs(kind, rng):
    """Draw a loss matrix with at most six labels and six targets."""
    n, k = rng.integers(2, 7, size=2)
    if kind == "real":
        return rng.normal(size=(n, k))
    if kind == "integer":
        return rng.integers(1, 4, size=(n, k)).astype(float)
    if kind == "low rank":
        d = rng.integers(1, 3)
        return rng.normal(size=(n, d)) @ rng.normal(size=(d, k)) + rng.normal(size=(n, 1))
    if kind == "cost-sensitive":
        return rng.exponential(size=(n, 1)) * (1 - np.eye(n)) * rng.integers(1, 9, size=(n, n))
    if kind == "ordinal":
        return np.abs(np.subtract.outer(np.arange(n), np.arange(n))) ** rng.choice([0.5, 1, 2])
    if kind == "hierarchical":
        parent = np.append([0, 0, 0], rng.integers(0, 3, size=n))
        return np.array([[steps_apart(parent, a, b) for a in range(3, 3 + n)]
                         for b in range(3, 3 + n)], dtype=float)  # fmt: skip
    return np.c_[1 - np.eye(n), np.full(n, rng.uniform(0.05, 0.9))]  # abstaining


KINDS = (
    "real", "integer", "low rank", "cost-sensitive", "ordinal", "hierarchical", "abstaining"
)  # fmt: skip


def zero_one(n):
    """The 0-1 loss, whose regression targets are indicators of the labels."""
    loss = LowRankLoss(np.eye(n), -np.eye(n))
    loss.intercept += 1.0
    return loss


def costs_of(loss):
    return loss.alpha @ loss.beta.T + loss.c[:, None] + loss.intercept


def distributions(n, rng, size=12):
    """Draw distributions, some with few labels, and add the distributions of a single label."""
    some = rng.dirichlet(np.full(n, rng.choice([0.2, 1.0, 5.0])), size=size)
    return np.concatenate([some, np.eye(n)])


def regrets(L, p, targets):
    risks = p @ L
    return risks[np.arange(len(p)), targets] - risks.min(axis=1)


def adversarial(loss, u, rng):
    """Return predictions at which a random target has just overtaken the best target of u.

    They are, but for a factor of 1.001, the nearest predictions to u at which the two tie.
    """
    best = loss.decode(u)
    other = rng.integers(len(loss.beta), size=len(u))
    apart = loss.beta[other] - loss.beta[best]
    gap = np.einsum("nd,nd->n", u, apart)
    square = np.maximum((apart**2).sum(axis=1), 1e-300)
    return u - 1.001 * (gap / square)[:, None] * apart


@pytest.mark.parametrize("n_draws", [25, pytest.param(400, marks=REST)])
@pytest.mark.parametrize("kind", KINDS)
def test_theorem_3(kind, n_draws):
    """Given E[alpha] the decoder minimises the risk; given any u its regret is within the bound."""
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(n_draws):
        L = random_costs(kind, rng)
        n = len(L)
        loss = LowRankLoss.from_matrix(L)
        np.testing.assert_allclose(costs_of(loss), L, atol=1e-12)
        assert loss.error < 1e-12
        p = distributions(n, rng)
        u = p @ loss.alpha
        np.testing.assert_allclose(u @ loss.beta.T + loss.intercept, p @ L, atol=1e-12)
        assert regrets(L, p, loss.decode(u)).max() < ROUNDING
        noise = rng.normal(size=u.shape) * rng.exponential(size=(len(u), 1))
        for v in (u + noise, adversarial(loss, u, rng), -u, rng.normal(size=u.shape)):
            bound = loss.regret_constant() * np.linalg.norm(v - u, axis=1)
            assert (regrets(L, p, loss.decode(v)) <= bound + ROUNDING).all()


def test_the_regret_bound_is_attained():
    """All targets of 0-1 loss are equally far apart; half way between two, either is decoded."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 6):
        loss, L = zero_one(n), 1 - np.eye(n)
        p = rng.dirichlet(np.ones(n), size=500)
        u = p @ loss.alpha
        v = adversarial(loss, u, rng)
        ratio = regrets(L, p, loss.decode(v)) / np.linalg.norm(v - u, axis=1).clip(1e-12)
        assert 0.998 < ratio.max() / loss.regret_constant() <= 1


@pytest.mark.parametrize("n_draws", [20, pytest.param(300, marks=REST)])
@pytest.mark.parametrize("kind", KINDS)
def test_an_approximation_loses_at_most_twice_its_error(kind, n_draws):
    rng = np.random.default_rng(10 + KINDS.index(kind))
    for _ in range(n_draws):
        L = random_costs(kind, rng)
        n, k = L.shape
        loss = LowRankLoss.from_matrix(L, rank=int(rng.integers(1, min(n, k) + 1)))
        approximation = costs_of(loss)
        assert loss.error == pytest.approx(np.abs(approximation - L).max(), abs=1e-12)
        p = distributions(n, rng)
        u = p @ loss.alpha
        assert regrets(L, p, loss.decode(u)).max() <= 2 * loss.error + ROUNDING
        for v in (adversarial(loss, u, rng), u + rng.normal(size=u.shape)):
            bound = loss.regret_constant() * np.linalg.norm(v - u, axis=1) + 2 * loss.error
            assert (regrets(L, p, loss.decode(v)) <= bound + ROUNDING).all()


def test_no_other_intercept_leaves_a_smaller_squared_error():
    rng = np.random.default_rng(0)
    for _ in range(100):
        L = rng.normal(size=(6, 6)) + rng.choice([0, 5]) * rng.normal(size=6)
        loss = LowRankLoss.from_matrix(L, rank=2)
        approximation = costs_of(loss)
        for b in (0, L.mean(axis=0) + 0.3 * rng.normal(size=6), rng.normal(size=6)):
            values = np.linalg.svd(L - b, compute_uv=False)
            assert ((approximation - L) ** 2).sum() <= (values[2:] ** 2).sum() + 1e-12


def test_the_rank_is_the_least_possible():
    """Constructed ranks are found, and no other intercept gives a lower rank."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        n, k = rng.integers(4, 12, size=2)
        d = rng.integers(1, min(n, k) - 1)
        L = rng.normal(size=(n, d)) @ rng.normal(size=(d, k))
        b = rng.normal(size=k)
        assert LowRankLoss.from_matrix(L).alpha.shape == (n, d)
        loss = LowRankLoss.from_matrix(L + b)
        assert loss.alpha.shape == (n, d) and loss.beta.shape == (k, d)
        np.testing.assert_allclose(loss.beta.T @ loss.beta, np.eye(d), atol=1e-12)
        for other in (0, L[0], rng.normal(size=k)):
            assert np.linalg.matrix_rank(L + b - other, tol=1e-9) >= d
    for kind in KINDS:
        for _ in range(20):
            L = random_costs(kind, rng)
            least = max(np.linalg.matrix_rank(L - L.mean(axis=0), tol=1e-9), 1)
            assert LowRankLoss.from_matrix(L).alpha.shape[1] == least
            assert np.linalg.matrix_rank(L - rng.normal(size=L.shape[1]), tol=1e-9) >= least


def test_an_intercept_is_copied_and_counts_for_ties():
    loss = LowRankLoss([[1.0], [0.0]], [[1.0], [2.0]])
    loss.intercept = np.array([1.0, 0.5])
    assert deepcopy(loss).decode([[1.0], [0.0], [0.5]]).tolist() == [0, 1, 0]


# ---------------------------------------------------------------- the object


def test_many_targets_are_decoded_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    loss = LowRankLoss(rng.normal(size=(9, 3)), rng.normal(size=(50, 3)))
    u = rng.normal(size=(23, 3))
    targets, exact = loss.decode(u), loss.regret_constant()
    np.testing.assert_array_equal(targets, np.argmin(u @ loss.beta.T, axis=1))
    pairs = loss.beta[:, None] - loss.beta
    assert exact == pytest.approx(np.linalg.norm(pairs, axis=2).max())
    monkeypatch.setattr("sklearn_rankcal.utils._memory.BLOCK_BYTES", 8 * 170)
    np.testing.assert_array_equal(loss.decode(u), targets)
    assert loss.regret_constant() == exact


def test_ties_go_to_the_first_target():
    """Equal columns tie, although their factors are rounded differently."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        L = rng.uniform(size=(5, 4))
        loss = LowRankLoss.from_matrix(np.c_[L, L])
        p = rng.dirichlet(np.ones(5), size=20)
        assert loss.decode(p @ loss.alpha).max() < 4
    loss = zero_one(4)
    assert loss.decode([[0, 0.5, 0.5, 0], [0.25] * 4]).tolist() == [1, 0]
    assert LowRankLoss.from_matrix(1 - np.eye(4)).decode(np.zeros((2, 3))).tolist() == [0, 0]


def test_a_loss_is_a_value():
    """Searches copy the losses among their parameters."""
    loss = LowRankLoss.from_matrix([[0, 1, 5], [1, 0, 1], [9, 1, 0.0]], rank=1)
    for twin in (deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert twin.error == loss.error > 0
        np.testing.assert_array_equal(twin.decode([[1.0], [-1.0]]), loss.decode([[1.0], [-1.0]]))


def test_targets_may_be_free():
    """Any matrix has factors. A target that never costs anything is always decoded."""
    free = LowRankLoss.from_matrix([[0, 1, 0, 0], [1, 0, 0, 2]])
    p = np.random.default_rng(0).dirichlet(np.ones(2), size=50)
    assert set(free.decode(p @ free.alpha).tolist()) == {2}
    assert LowRankLoss.from_matrix(np.zeros((3, 2))).decode(np.zeros((1, 1))).tolist() == [0]
    assert LowRankLoss.from_matrix([[-1.0, 2.0, 0.0], [2.0, -1.0, 0.0]]).shape == (2, 3)
    assert LowRankLoss.from_matrix([[0.0, 1.0]]).decode(np.zeros((1, 1))).tolist() == [0]


@pytest.mark.parametrize(
    "call, arguments, message",
    [
        (LowRankLoss.from_matrix, [[[0, np.nan], [1, 0]]], "loss_matrix contains NaN"),
        (
            LowRankLoss.from_matrix,
            [[[0, 1, np.inf], [1, 0, np.inf]]],
            "loss_matrix contains infinity",
        ),
        (LowRankLoss.from_matrix, [[0.0, 1.0]], "Expected 2D array"),
        (LowRankLoss.from_matrix, [np.zeros((0, 2))], "0 sample"),
        (LowRankLoss.from_matrix, [np.zeros((2, 0))], "0 feature"),
        *(
            (
                LowRankLoss.from_matrix,
                [1 - np.eye(4)[:3], rank],
                "rank must be a whole number >= 1, or None",
            )
            for rank in (0, -1, 1.5, True, "2")
        ),
        (
            LowRankLoss,
            ([[1.0]], [[1.0, 2.0]]),
            r"same number of columns; got \(1, 1\) and \(1, 2\)",
        ),
        (LowRankLoss, ([1.0], [[1.0]]), "Expected 2D array"),
        (LowRankLoss, ([[1.0]], np.zeros((0, 1))), r"0 sample"),
        (LowRankLoss, ([[np.nan]], [[1.0]]), "alpha contains NaN"),
        (LowRankLoss, ([[1.0]], [[np.inf]]), "beta contains infinity"),
        (
            LowRankLoss,
            ([[1.0]], [[1.0]], [1.0, 2.0]),
            "c must be a finite number, or 1 of them; got",
        ),
        (LowRankLoss.decode, [zero_one(3), np.zeros((2, 2))], "3 is different from 2"),
        (LowRankLoss.decode, [zero_one(3), np.full((1, 3), np.nan)], "u contains NaN"),
    ],
)
def test_bad_losses_and_predictions(call, arguments, message):
    with pytest.raises(ValueError, match=message):
        call(*arguments)


def test_a_ranker_refuses_it():
    with pytest.raises((TypeError, ValueError), match="loss"):
        CalibratedRanker(loss=zero_one(3)).fit(np.eye(4), [0, 1, 2, 1], groups=[0] * 4)


def test_small_costs_count_beside_large_ones():
    L = np.array([[0, 1, 1e10], [1, 0, 1], [1, 1, 0]])
    loss = LowRankLoss.from_matrix(L)
    for p in np.random.default_rng(0).dirichlet(np.ones(3), size=200) * [1, 1, 0]:
        p /= p.sum()
        assert loss.decode(p @ loss.alpha[None])[0] == np.argmin(p @ L)
    with pytest.raises(ValueError, match=r"must be between 1e-50 and 1e\+50"):
        LowRankLoss.from_matrix(1.7e308 * (1 - np.eye(3)))
    assert LowRankLoss(np.eye(2), [[1, 0], [0, 1], [1e13, 1e13]]).decode([[0.9, 0.1]])[0] == 1
