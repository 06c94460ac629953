"""LowRankClassifier: predict what costs least, for any matrix of costs.

labels -> rows of alpha -> regressor -> predictions u of E[alpha] -> the target of least
<u, beta_t>: P1's theorem 3 for the problems that are not rankings.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import (
    check_array,
    check_consistent_length,
    column_or_1d,
    gen_batches,
    get_tags,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_rankcal.cost_sensitive._low_rank import CHUNK, LowRankLoss, _read_matrix
from sklearn_rankcal.models import BlendedRegressor
from sklearn_rankcal.models._document import weight_arguments
from sklearn_rankcal.queries._weights import check_weight
from sklearn_rankcal.rankers._base import seeded
from sklearn_rankcal.utils._features import check_features, take_rows
from sklearn_rankcal.utils._numbers import check_no_mask
from sklearn_rankcal.utils._pickles import VersionedPickle
from sklearn_rankcal.utils._scales import below_one, mean_one, target_exponent
from sklearn_rankcal.utils._sklearn_compat import HasMethods, _fit_context

Floats = NDArray[np.float64]
Costs = ArrayLike | LowRankLoss
Names = NDArray[Any]
MAX_RECALIBRATED = 100  # classes


class LowRankClassifier(VersionedPickle, ClassifierMixin, BaseEstimator):
    """Predict the target of least expected cost, by regressing on what the costs depend on.

    A matrix of costs, of labels by targets, is a product of vectors alpha_y of the labels and
    beta_t of the targets. A regressor predicts u for alpha_y, with as many outputs as the matrix
    has rank beside its means, and the target of least expected cost, which is linear in u, is
    predicted. It suits costs of confusion, ordered or hierarchical classes, and targets that are no
    labels, such as abstaining.

    Parameters
    ----------
    regressor : estimator, default=None
        A regressor. One that takes a single output is wrapped in `MultiOutputRegressor`. None is
        `models.BlendedRegressor`.
    loss_matrix : array-like, LowRankLoss or callable, default=None
        What predictions cost.

        - None: 1 for a wrong class, 0 for the right one.
        - array-like of shape (n_classes, n_targets): the cost of each target, a column, for each
          class, a row, in the order of ``classes_``.
        - `LowRankLoss`: the same, factored. Only this keeps memory and time from growing with
          n_classes * n_targets in `fit`, and can approximate.
        - a callable that is handed ``classes_`` and returns one of those.
    targets : array-like of shape (n_targets,), default=None
        Names of the targets, which `predict` returns. None is the classes, where there are as many.
    classes : array-like of shape (n_classes,), default=None
        Names of the rows of `loss_matrix`. None is the sorted classes of y; name them where y may
        lack some, as the folds of a cross-validation can.
    n_folds : int or None, default=5
        Folds for held-out predictions u, on which a logistic regression of the class learns
        probabilities q. Its mean of alpha, sum_y q_y alpha_y, replaces u where it has the smaller
        held-out squared error; the notes say why. None: u as it is. Not used for 0-1 loss, where it
        does not pay, and beyond 100 classes, where it would not be fast.
    random_state : int, RandomState instance or None, default=None
        Seeds every ``random_state`` of (a clone of) the regressor.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    targets_ : ndarray of shape (n_targets,)
        What `predict` chooses from.
    loss_ : LowRankLoss
        The costs. ``loss_.error`` and ``loss_.regret_constant()`` bound what is lost.
    regressor_ : estimator or None
        The regressor, fitted to alpha_y. None where one target costs least whatever the class is:
        there is nothing to learn.
    recalibrator_ : estimator or None
        The logistic regression on u, where it is better than u itself.
    constant_regressor_ : estimator or None
        A second one, fitted to the part of the cost that depends on the label alone, where there is
        one and no `recalibrator_` to tell it. It decides nothing; `predict_cost` adds it.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of X, where it has them.

    See Also
    --------
    make_cost_scorer : The mean cost, for model selection.

    Notes
    -----
    Calibrated over every distribution of the labels (P1, theorem 3): with enough data no
    classifier has a lower expected cost, if the regressor can express E[alpha_Y | x]. The
    prediction for a row costs at most
    ``loss_.regret_constant() * ||u - E[alpha_Y | x]|| + 2 * loss_.error`` more than the best one,
    in expectation.

    With little data regressors are too cautious: they draw u to the mean of alpha, as if
    the class were in doubt, and unequal costs then decide what need not be decided. `n_folds` is
    against that. The smaller held-out surrogate risk chooses, so nothing is lost in the limit.

    The sum of squared errors weighs outputs by what they matter to costs, where the columns of
    beta are orthonormal, as `LowRankLoss.from_matrix` makes them: do not scale the outputs.

    References
    ----------
    .. [1] H. G. Ramaswamy, S. Agarwal and A. Tewari (2013). Convex calibrated surrogates for
       low-rank loss matrices with applications to subset ranking losses. NIPS. Theorem 3.

    Examples
    --------
    To miss class 2 costs ten times as much as other errors, and to abstain 0.4:

    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn_rankcal import LowRankClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> costs = [[0, 1, 1, 0.4], [1, 0, 1, 0.4], [10, 10, 0, 0.4]]
    >>> clf = LowRankClassifier(
    ...     make_pipeline(StandardScaler(), Ridge()), loss_matrix=costs, targets=[0, 1, 2, -1]
    ... ).fit(X[::2], y[::2])
    >>> clf.loss_.alpha.shape, clf.predict_cost(X[1::2]).shape
    ((3, 2), (89, 4))
    >>> clf.predict(X[1::2])[::9].tolist()
    [0, 0, -1, -1, 1, 1, 1, 1, 2, 2]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "regressor": [None, HasMethods(["fit", "predict"])],
        "loss_matrix": [None, "array-like", LowRankLoss, callable],
        "targets": [None, "array-like"],
        "classes": [None, "array-like"],
        "n_folds": [None, Integral],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        regressor: Any = None,
        *,
        loss_matrix: Costs | Callable[[Names], Costs] | None = None,
        targets: Sequence[Any] | Names | None = None,
        classes: Sequence[Any] | Names | None = None,
        n_folds: int | None = 5,
        random_state: Any = None,
    ) -> None:
        self.regressor = regressor
        self.loss_matrix = loss_matrix
        self.targets = targets
        self.classes = classes
        self.n_folds = n_folds
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LowRankClassifier:
        """Fit the regressor to the targets of the labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Whatever the regressor takes.
        y : array-like of shape (n_samples,)
            Classes, of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights, for the regressor.

        Returns
        -------
        self : LowRankClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            A classifier as regressor; a single class; a class that is not in `classes`; costs that
            are not finite, or whose rows are not the classes and columns not the targets; costs
            that do not depend on the target.
        """
        if self.regressor is not None and is_classifier(self.regressor):
            raise ValueError(
                f"{type(self.regressor).__name__} is a classifier; the targets are numbers, which "
                "a regressor learns."
            )
        X = check_features(X)
        check_no_mask(y, "y")
        validate_data(self, X=X, y=y, skip_check_array=True)
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
        check_consistent_length(X, y)
        check_classification_targets(y)
        weight = check_weight(sample_weight, len(y))
        if weight is not None:
            rows = np.flatnonzero(weight)
            X, y, weight = take_rows(X, rows), y[rows], weight[rows]
        seen = np.unique(y)
        if len(seen) < 2:
            raise ValueError(
                f"y has one class, {seen.tolist()[0]!r}, with a weight: two or more are needed."
            )
        self.classes_ = seen if self.classes is None else _names(self.classes, "classes")
        if self.n_folds is not None and self.n_folds < 2:
            raise ValueError(f"n_folds must be at least 2, or None; got {self.n_folds}.")
        labels = _numbers(y, self.classes_, "y", "the classes")
        costs = _read_costs(self.loss_matrix, self.classes_)
        self.targets_ = _target_names(self.targets, costs, self.classes_)
        self.loss_ = costs if isinstance(costs, LowRankLoss) else LowRankLoss.from_matrix(costs)
        alpha = self.loss_.encode(labels)
        if not alpha.shape[1] and not np.ptp(self.loss_.intercept):
            raise ValueError("loss_matrix does not depend on the target: nothing is to be chosen.")
        if not isinstance(costs, LowRankLoss):
            _warn_of_free_targets(costs, self.targets_)
        self._exponent = target_exponent(alpha)  # regressors see targets times 2^-exponent
        self.regressor_: Any = None
        if alpha.shape[1]:
            self.regressor_ = self._fit_one(X, np.ldexp(alpha, -self._exponent), weight)
        self.recalibrator_: Any = None
        self.constant_regressor_: Any = None
        few = len(seen) <= MAX_RECALIBRATED
        learnt = self.regressor_ is not None
        if self.n_folds is not None and self.loss_matrix is not None and few and learnt:
            self.recalibrator_ = self._recalibrate(X, labels, weight, self.n_folds)
        c = np.broadcast_to(self.loss_.c, len(self.classes_))
        if self.recalibrator_ is None and np.ptp(c) > 1e-12 * np.abs(c).max():
            constant = c[labels][:, None]
            self._constant_exponent = target_exponent(constant)
            constant = np.ldexp(constant, -self._constant_exponent)
            self.constant_regressor_ = self._fit_one(X, constant, weight)
        return self

    def _recalibrate(
        self, X: Any, labels: NDArray[np.int64], weight: Floats | None, n_folds: int
    ) -> Any:
        """The logistic regression of the label on held-out u; None where u is the better."""
        alpha = np.ldexp(self.loss_.encode(labels), -self._exponent)
        u, means = np.empty_like(alpha), np.empty_like(alpha)
        fold = np.empty(len(labels), dtype=np.int64)  # each label is spread over all folds
        fold[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % n_folds
        splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold)]
        for train, test in splits:
            part = None if weight is None else weight[train]
            fitted = self._fit_one(take_rows(X, train), alpha[train], part)
            u[test] = fitted.predict(take_rows(X, test)).reshape(len(test), -1)
        for train, test in splits:
            part = None if weight is None else weight[train]
            q = _fit_logistic(u[train], labels[train], part)
            if q is None:
                return None
            of_class = np.ldexp(self.loss_.encode(q.classes_), -self._exponent)
            means[test] = q.predict_proba(u[test]) @ of_class
        mass = None if weight is None else below_one(weight)
        errors = [np.average(((v - alpha) ** 2).sum(axis=1), weights=mass) for v in (u, means)]
        return _fit_logistic(u, labels, weight) if errors[1] < errors[0] else None

    def _fit_one(self, X: Any, targets: Floats, weight: Floats | None) -> Any:
        regressor = BlendedRegressor() if self.regressor is None else clone(self.regressor)
        regressor = seeded(regressor, self.random_state)
        if targets.shape[1] == 1:
            targets = targets.ravel()
        elif not get_tags(regressor).target_tags.multi_output:
            regressor = MultiOutputRegressor(regressor)
        weights = weight_arguments(regressor, weight, is_default=self.regressor is None)
        return regressor.fit(X, targets, **weights)

    def _predict_alpha(self, X: Any) -> tuple[Any, Floats, Floats | None]:
        """The table, u, and probabilities of the labels that the recalibrator knows."""
        check_is_fitted(self)
        X = check_features(X)
        validate_data(self, X=X, reset=False, skip_check_array=True)
        if self.regressor_ is None:
            return X, np.empty((X.shape[0], 0)), None
        u = np.asarray(self.regressor_.predict(X), dtype=np.float64).reshape(X.shape[0], -1)
        if self.recalibrator_ is None:
            return X, np.ldexp(u, self._exponent), None
        q = self.recalibrator_.predict_proba(u)
        return X, q @ self.loss_.encode(self.recalibrator_.classes_), q

    def predict(self, X: Any) -> Names:
        """Return the target of least expected cost.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Whatever the regressor takes.

        Returns
        -------
        targets : ndarray of shape (n_samples,)
            Of ``targets_``; of those that tie, the first.
        """
        _, u, _ = self._predict_alpha(X)
        return self.targets_[self.loss_.decode(u)]

    def predict_cost(self, X: Any) -> Floats:
        """Return the expected cost of every target.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Whatever the regressor takes.

        Returns
        -------
        cost : ndarray of shape (n_samples, n_targets)
            Columns in the order of ``targets_``. Without a `recalibrator_` these are estimates by
            least squares, which can leave the range of the costs.
        """
        X, u, q = self._predict_alpha(X)
        c = np.broadcast_to(self.loss_.c, len(self.classes_))
        if q is not None:
            return self.loss_.expected_cost(u, q @ c[self.recalibrator_.classes_])
        if self.constant_regressor_ is not None:
            constant = np.asarray(self.constant_regressor_.predict(X), dtype=np.float64)
            return self.loss_.expected_cost(u, np.ldexp(constant, self._constant_exponent))
        return self.loss_.expected_cost(u, c[0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return 1 - the mean cost of the predictions: the accuracy, for 0-1 loss; at most 1.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Whatever the regressor takes.
        y : array-like of shape (n_samples,)
            Classes. With a `loss_matrix`, those of ``classes_`` only: others have no cost.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        score : float
            Larger is better; negative where costs exceed 1. Where the least cost of a class is
            negative, its costs count from that one (adding a number to all costs of a class changes
            no prediction), so that 1 is the score of the cheapest answer to every row.
            `make_cost_scorer` has minus the mean cost itself.

        Raises
        ------
        ValueError
            A class without a cost.
        """
        predicted = self.predict(X)
        if self.loss_matrix is None and self.targets is None:  # classes that fit did not see count
            weight = check_weight(sample_weight, len(predicted))
            weight = None if weight is None else below_one(weight)
            return float(accuracy_score(y, predicted, sample_weight=weight))
        check_consistent_length(X, y)
        y = column_or_1d(y)
        rows = _numbers(y, self.classes_, "y_true", "the classes")
        chosen = _numbers(predicted, self.targets_, "y_pred", "the targets")
        above = self.loss_.cost(rows, chosen) - np.minimum(_least_costs(self.loss_), 0.0)[rows]
        costs = np.maximum(above, 0.0)  # rounding
        weight = check_weight(sample_weight, len(rows))
        weight = None if weight is None else below_one(weight)
        return float(1 - np.average(costs, weights=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(BlendedRegressor() if self.regressor is None else self.regressor)
        tags.input_tags = inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        return tags


def _least_costs(loss: LowRankLoss) -> Floats:
    """The least cost of every label, some labels at a time."""
    n_labels, n_targets = loss.shape
    least = np.empty(n_labels)
    for rows in gen_batches(n_labels, max(1, CHUNK // n_targets)):
        c = np.broadcast_to(loss.c, n_labels)[rows]
        costs = loss.expected_cost(loss.encode(np.arange(n_labels)[rows]), c)
        least[rows] = costs.min(axis=1)
    return least


def _warn_of_free_targets(costs: Floats, targets: Names) -> None:
    """Warn of targets that cost nothing whatever the class is, where no cost is negative."""
    free = ~costs.any(axis=0)
    if costs.min() >= 0 and free.any():
        warnings.warn(
            f"Targets {targets[free].tolist()} cost nothing whatever the class is: their columns "
            "of loss_matrix are all 0, and the first of them is always predicted. An abstention "
            "needs a cost, between those of a right and of a wrong answer.",
            UserWarning,
            stacklevel=4,
        )


def _fit_logistic(u: Floats, labels: NDArray[np.int64], weight: Floats | None) -> Any:
    """A logistic regression of the labels on u; None where there is a single one."""
    if len(np.unique(labels)) < 2:
        return None
    weight = None if weight is None else mean_one(weight)  # its penalty is worth a row of weight 1
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return model.fit(u, labels, logisticregression__sample_weight=weight)


def mean_cost_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    loss_matrix: Costs | Callable[[Names], Costs],
    *,
    classes: Sequence[Any] | Names,
    targets: Sequence[Any] | Names | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean cost of predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Classes. Some may be missing.
    y_pred : array-like of shape (n_samples,)
        Predictions, of `targets`.
    loss_matrix : array-like of shape (n_classes, n_targets), LowRankLoss or callable
        As in `LowRankClassifier`.
    classes : array-like of shape (n_classes,)
        Names of the rows of `loss_matrix`.
    targets : array-like of shape (n_targets,), default=None
        Names of its columns. None is the classes, where there are as many.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights.

    Returns
    -------
    cost : float
        Smaller is better.

    Raises
    ------
    ValueError
        Names or lengths that do not fit.

    Examples
    --------
    >>> from sklearn_rankcal import mean_cost_loss
    >>> costs = [[0, 1, 0.2], [5, 0, 0.2]]
    >>> mean_cost_loss(
    ...     ["well", "ill", "ill"],
    ...     ["well", "well", "don't know"],
    ...     costs,
    ...     classes=["well", "ill"],
    ...     targets=["well", "ill", "don't know"],
    ... )
    1.73...
    """
    names = _names(classes, "classes")
    costs = _read_costs(loss_matrix, names)
    check_no_mask(y_true, "y_true")
    check_no_mask(y_pred, "y_pred")
    check_consistent_length(y_true, y_pred)
    if len(column_or_1d(y_true)) == 0:
        raise ValueError("y_true is empty: there is no mean cost.")
    rows = _numbers(column_or_1d(y_true), names, "y_true", "the classes")
    columns = _target_names(targets, costs, names)
    chosen = _numbers(column_or_1d(y_pred), columns, "y_pred", "the targets")
    values = costs.cost(rows, chosen) if isinstance(costs, LowRankLoss) else costs[rows, chosen]
    weight = check_weight(sample_weight, len(rows))
    return float(np.average(values, weights=None if weight is None else below_one(weight)))


def make_cost_scorer(
    loss_matrix: Costs | Callable[[Names], Costs],
    *,
    classes: Sequence[Any] | Names,
    targets: Sequence[Any] | Names | None = None,
) -> Callable[..., float]:
    """Make a scorer of minus the mean cost, for `GridSearchCV` and the like.

    Any classifier can be scored. Costs go by the names of classes, not by their position, so that
    folds may lack some.

    Parameters
    ----------
    loss_matrix : array-like of shape (n_classes, n_targets), LowRankLoss or callable
        As in `LowRankClassifier`.
    classes : array-like of shape (n_classes,)
        Names of the rows of `loss_matrix`.
    targets : array-like of shape (n_targets,), default=None
        Names of its columns. None is the classes, where there are as many.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, sample_weight=None)``; larger is better.

    Raises
    ------
    ValueError
        Names and costs that do not fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn_rankcal import make_cost_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = make_cost_scorer([[0, 1, 1], [1, 0, 1], [1, 5, 0]], classes=[0, 1, 2])
    >>> cross_val_score(LogisticRegression(max_iter=1000), X, y, scoring=scorer).shape
    (5,)
    """
    names = _names(classes, "classes")
    _target_names(targets, _read_costs(loss_matrix, names), names)
    return make_scorer(
        mean_cost_loss,
        greater_is_better=False,
        loss_matrix=loss_matrix,
        classes=classes,
        targets=targets,
    )


def _read_costs(costs: Any, classes: Names) -> LowRankLoss | Floats:
    """A loss or a finite matrix, with a row for each class."""
    if costs is None:
        return LowRankLoss.zero_one(len(classes))
    if callable(costs):
        costs = costs(classes)
        if costs is None:
            raise ValueError("loss_matrix returned None; a matrix of costs is needed.")
    if not isinstance(costs, LowRankLoss):
        costs = _read_matrix(costs)
    if costs.shape[0] != len(classes):
        raise ValueError(
            f"loss_matrix has {costs.shape[0]} rows, but there are {len(classes)} classes: "
            f"{classes[:20].tolist()}. classes= names the rows where y may lack some of them."
        )
    return costs


def _target_names(targets: Any, costs: LowRankLoss | Floats, classes: Names) -> Names:
    """A name for each column of the costs."""
    n_targets = costs.shape[1]
    if targets is None and n_targets == len(classes):
        return classes
    if targets is None:
        raise ValueError(
            f"loss_matrix has {n_targets} columns, but there are {len(classes)} classes: name what "
            "the columns stand for, by targets=."
        )
    names = _names(targets, "targets")
    if len(names) != n_targets:
        raise ValueError(f"{len(names)} targets for the {n_targets} columns of loss_matrix.")
    return names


def _names(values: Any, what: str) -> Names:
    """Different names, each of the type that it has."""
    check_no_mask(values, what)
    names = np.asarray(values)
    if names.dtype.kind in "US" and not all(isinstance(v, str | bytes) for v in values):
        names = np.array(values, dtype=object)  # numbers next to strings stay numbers
    if names.ndim != 1 or len(set(names.tolist())) < len(names):
        raise ValueError(f"{what} must be different names in one dimension; got {values!r}.")
    return names


def _numbers(values: Names, names: Names, what: str, known: str) -> NDArray[np.int64]:
    """The place of every value among the names."""
    place = {name: i for i, name in enumerate(names.tolist())}
    found = np.array([place.get(value, -1) for value in values.tolist()], dtype=np.int64)
    if (found < 0).any():
        raise ValueError(
            f"{what} has {values[found < 0].tolist()[0]!r}, which is not among {known}: "
            f"{names[:20].tolist()}{' ...' if len(names) > 20 else ''}."
        )
    return found
