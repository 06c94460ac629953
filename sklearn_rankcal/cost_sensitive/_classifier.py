"""LowRankClassifier, which predicts the target of least expected cost for any matrix of costs."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_rankcal.cost_sensitive._costs import (
    Costs,
    Names,
    numbers_of_names,
    read_costs,
    read_names,
    read_target_names,
    warn_of_free_targets,
)
from sklearn_rankcal.cost_sensitive._low_rank import LowRankLoss
from sklearn_rankcal.label_ranking import BlendedRegressor
from sklearn_rankcal.models._column_parameters import match_parameters
from sklearn_rankcal.models._document import weight_arguments
from sklearn_rankcal.queries import check_weight
from sklearn_rankcal.utils._catboost import ClonesCatBoost, clone, readable_table
from sklearn_rankcal.utils._features import check_features, take_rows
from sklearn_rankcal.utils._nested import set_random_states
from sklearn_rankcal.utils._numbers import check_no_mask
from sklearn_rankcal.utils._pickles import reduce_with_versions
from sklearn_rankcal.utils._scales import mean_one, target_unit
from sklearn_rankcal.utils._site import SiteLink
from sklearn_rankcal.utils._sklearn_compat import HasMethods, Interval, _fit_context
from sklearn_rankcal.utils._typing import Floats, Ints

#: With more classes than this, `fit` does not try a logistic regression of the class on u.
MAX_RECALIBRATED = 100


class LowRankClassifier(SiteLink, ClassifierMixin, ClonesCatBoost):
    """Classifier that predicts the target of least expected cost, by least squares.

    A matrix of costs has a row for each class y and a column for each target t. It is factored into
    vectors alpha_y and beta_t whose products are the costs. A regressor predicts u, an estimate of
    the expectation of alpha_y given the features; it has as many outputs as the rank of the matrix
    without the means of its rows and columns. `predict` returns the target of least expected cost,
    which is linear in u. The classifier suits unequal confusions, ordered or hierarchical classes,
    and targets that are not classes, such as abstaining.

    Parameters
    ----------
    regressor : estimator, default=None
        A regressor. If it supports a single output only, it is wrapped in `MultiOutputRegressor`.
        If None, `label_ranking.BlendedRegressor` is used.
    loss_matrix : array-like, LowRankLoss or callable, default=None
        The costs of predictions:

        - None: the 0-1 loss, which is 1 for a wrong class and 0 for the right one.
        - array-like of shape (n_classes, n_targets): the cost of each target (column) for each
          class (row, in the order of ``classes_``).
        - `LowRankLoss`: the same in factored form, so that memory and time do not grow with
          n_classes * n_targets.
        - a callable that receives ``classes_`` and returns one of these.
    targets : array-like of shape (n_targets,), default=None
        Names of the targets, which `predict` returns. If None, the targets are the classes, and
        `loss_matrix` must be square.
    classes : array-like of shape (n_classes,), default=None
        Names of the rows of `loss_matrix`. If None, these are the sorted classes of y. Pass the
        names if y may lack some classes, as can happen in the folds of a cross-validation.
    n_folds : int or None, default=5
        The number of folds, at least 2, for held-out predictions u, from which a logistic
        regression estimates probabilities q of the classes. The mean sum_y q_y alpha_y replaces u
        if its held-out squared error is smaller; see the notes. None never replaces u, and neither
        do the 0-1 loss and more than 100 classes.
    random_state : int, RandomState instance or None, default=None
        Seed of every ``random_state`` of the clones of the regressor.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, which are the rows of the costs.
    targets_ : ndarray of shape (n_targets,)
        The targets that `predict` chooses from, which are the columns of the costs.
    loss_ : LowRankLoss
        The costs. ``loss_.error`` and ``loss_.regret_constant()`` appear in the bound of the notes.
    regressor_ : estimator or None
        The regressor, fitted to alpha_y. It is None if the same target costs least for every class.
    recalibrator_ : estimator or None
        The logistic regression on u, or None if u itself is used.
    constant_regressor_ : estimator or None
        A second regressor, for `predict_cost`, fitted to the part of the cost that depends on the
        class alone. It is None if there is no such part, or if `recalibrator_` estimates it.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of X, if it has any.

    See Also
    --------
    make_cost_scorer : A scorer of the mean cost, for model selection.

    Notes
    -----
    The classifier is calibrated for every distribution of the classes (theorem 3 of [1]_). The
    expected cost of the prediction for a row exceeds that of the best target by at most
    ``loss_.regret_constant() * ||u - E[alpha_Y | x]|| + 2 * loss_.error``.

    With little data, regressors shrink u towards the mean of alpha, as if the class were in doubt,
    and unequal costs then decide rows that are not in doubt. The recalibration by `n_folds`
    counters this, and nothing is lost in the limit. Do not scale the outputs: if the columns of
    beta are orthonormal, as `LowRankLoss.from_matrix` makes them, squared errors weight them by
    their effect on costs.

    References
    ----------
    .. [1] H. G. Ramaswamy, S. Agarwal and A. Tewari (2013). Convex calibrated surrogates for
       low-rank loss matrices with applications to subset ranking losses. NIPS. Theorem 3.

    Examples
    --------
    Missing class 2 costs ten times as much as any other error, and abstaining costs 0.4:

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

    __reduce__ = reduce_with_versions

    n_features_in_: int
    feature_names_in_: np.ndarray[Any, Any]
    _parameter_constraints: dict[str, list[Any]] = {
        "regressor": [None, HasMethods(["fit", "predict"])],
        "loss_matrix": [None, "array-like", LowRankLoss, callable],
        "targets": [None, "array-like"],
        "classes": [None, "array-like"],
        "n_folds": [None, Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        regressor: Any = None,
        *,
        loss_matrix: Costs | None = None,
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
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the regressor to the vectors alpha of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The features, in any form that the regressor supports.
        y : array-like of shape (n_samples,)
            The classes, of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights for the regressor. If None, every row has weight 1.

        Returns
        -------
        self : LowRankClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If the regressor is a classifier; if y has a single class, or a class that is not in
            `classes`; if the costs are not finite, do not depend on the target, or have a shape
            other than the numbers of classes and targets.
        """
        if self.regressor is not None and is_classifier(self.regressor):
            raise ValueError(
                f"{type(self.regressor).__name__} is a classifier, but a regressor is needed, "
                "because the vectors that encode the classes are real numbers."
            )
        X = check_features(X)
        check_no_mask(y, "y")
        validate_data(self, X=X, y=y, skip_check_array=True)
        X = readable_table(self.regressor, X)
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
                f"y has one class with a positive weight, {seen.tolist()[0]!r}, but at least two "
                "classes are needed."
            )
        self.classes_ = seen if self.classes is None else read_names(self.classes, "classes")
        labels = numbers_of_names(y, self.classes_, "y", "the classes")
        costs = read_costs(self.loss_matrix, self.classes_)
        self.targets_ = read_target_names(self.targets, costs, self.classes_)
        self.loss_ = costs if isinstance(costs, LowRankLoss) else LowRankLoss.from_matrix(costs)
        alpha = self.loss_.encode(labels)
        if not alpha.shape[1] and not np.ptp(self.loss_.intercept):
            raise ValueError(
                "loss_matrix does not depend on the target, so there is nothing to choose."
            )
        if not isinstance(costs, LowRankLoss):
            warn_of_free_targets(costs, self.targets_)
        # Regressors are fitted to alpha / unit, so that its scale does not matter to them.
        self._unit = target_unit(float(np.abs(alpha).max(initial=0.0)))
        self.regressor_: Any = None
        if alpha.shape[1]:
            self.regressor_ = self._fit_one(X, alpha / self._unit, weight)
        self.recalibrator_: Any = None
        self.constant_regressor_: Any = None
        few = len(seen) <= MAX_RECALIBRATED
        learnt = self.regressor_ is not None
        if self.n_folds is not None and self.loss_matrix is not None and few and learnt:
            self.recalibrator_ = self._recalibrate(X, labels, weight, self.n_folds)
        # The part c_y of the cost needs a regressor only if it varies by more than rounding.
        c = np.broadcast_to(self.loss_.c, len(self.classes_))
        if self.recalibrator_ is None and np.ptp(c) > 1e-12 * np.abs(c).max():
            self._constant_unit = target_unit(float(np.abs(c).max()))
            constant = c[labels][:, None] / self._constant_unit
            self.constant_regressor_ = self._fit_one(X, constant, weight)
        return self

    def _recalibrate(self, X: Any, labels: Ints, weight: Floats | None, n_folds: int) -> Any:
        """Fit a logistic regression of the class on u; return None if u itself has less error."""
        alpha = self.loss_.encode(labels) / self._unit
        u, means = np.empty_like(alpha), np.empty_like(alpha)
        # The folds are stratified: the rows of each class are dealt to the folds in turn.
        fold = np.empty(len(labels), dtype=np.int64)
        fold[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % n_folds
        splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold)]
        # Step 1: predict u for each fold by a regressor that is fitted to the other folds.
        for train, test in splits:
            part = None if weight is None else weight[train]
            fitted = self._fit_one(take_rows(X, train), alpha[train], part)
            u[test] = fitted.predict(take_rows(X, test)).reshape(len(test), -1)
        # Step 2: replace u in each fold by sum_y q_y alpha_y, with probabilities q that a logistic
        # regression has learnt from the held-out u of the other folds.
        for train, test in splits:
            part = None if weight is None else weight[train]
            q = _fit_logistic(u[train], labels[train], part)
            if q is None:
                return None
            of_class = self.loss_.encode(q.classes_) / self._unit
            means[test] = q.predict_proba(u[test]) @ of_class
        # Step 3: compare the held-out squared errors of u and of its replacement.
        errors = [np.average(((v - alpha) ** 2).sum(axis=1), weights=weight) for v in (u, means)]
        return _fit_logistic(u, labels, weight) if errors[1] < errors[0] else None

    def _fit_one(self, X: Any, targets: Floats, weight: Floats | None) -> Any:
        """Fit a clone of the regressor to the columns of `targets`."""
        regressor = BlendedRegressor() if self.regressor is None else clone(self.regressor)
        match_parameters(regressor, X)
        regressor = set_random_states(regressor, self.random_state)
        if targets.shape[1] == 1:
            targets = targets.ravel()
        elif not get_tags(regressor).target_tags.multi_output:
            regressor = MultiOutputRegressor(regressor)
        weights = weight_arguments(regressor, weight, is_default=self.regressor is None)
        return regressor.fit(X, targets, **weights)

    def _predict_alpha(self, X: Any) -> tuple[Any, Floats, Floats | None]:
        """Return the checked X, u, and the recalibrator's probabilities of classes, or None."""
        check_is_fitted(self)
        X = check_features(X)
        validate_data(self, X=X, reset=False, skip_check_array=True)
        X = readable_table(self.regressor, X)
        if self.regressor_ is None:
            return X, np.empty((X.shape[0], 0)), None
        u = np.asarray(self.regressor_.predict(X), dtype=np.float64).reshape(X.shape[0], -1)
        if self.recalibrator_ is None:
            return X, u * self._unit, None
        q = self.recalibrator_.predict_proba(u)
        return X, q @ self.loss_.encode(self.recalibrator_.classes_), q

    def predict(self, X: Any) -> Names:
        """Return the target of least expected cost.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            As in `fit`.

        Returns
        -------
        targets : ndarray of shape (n_samples,)
            Entries of ``targets_``. If several targets tie, the first of them.
        """
        _, u, _ = self._predict_alpha(X)
        return self.targets_[self.loss_.decode(u)]

    def predict_cost(self, X: Any) -> Floats:
        """Return the expected cost of every target.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            As in `fit`.

        Returns
        -------
        cost : ndarray of shape (n_samples, n_targets)
            The columns are in the order of ``targets_``. Without a `recalibrator_`, the costs are
            estimated by least squares, and can lie outside the range of the given costs.
        """
        X, u, q = self._predict_alpha(X)
        c = np.broadcast_to(self.loss_.c, len(self.classes_))
        if q is not None:
            return self.loss_.expected_cost(u, q @ c[self.recalibrator_.classes_])
        if self.constant_regressor_ is not None:
            constant = np.asarray(self.constant_regressor_.predict(X), dtype=np.float64)
            return self.loss_.expected_cost(u, constant * self._constant_unit)
        return self.loss_.expected_cost(u, c[0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return 1 minus the mean cost of the predictions; for the 0-1 loss it is the accuracy.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. If there is a `loss_matrix`, classes of y must be among ``classes_``,
            because other classes have no cost.

        Returns
        -------
        score : float
            Larger is better, at most 1; negative if the mean cost exceeds 1. A negative least cost
            of a class is subtracted from all costs of the class, so that 1 means that every row got
            its cheapest target. `make_cost_scorer` returns minus the mean cost itself.
        """
        predicted = self.predict(X)
        if self.loss_matrix is None and self.targets is None:
            # For the 0-1 loss, classes that `fit` did not see have a cost too: it is always 1.
            weight = check_weight(sample_weight, len(predicted))
            return float(accuracy_score(y, predicted, sample_weight=weight))
        check_consistent_length(X, y)
        y = column_or_1d(y)
        rows = numbers_of_names(y, self.classes_, "y_true", "the classes")
        chosen = numbers_of_names(predicted, self.targets_, "y_pred", "the targets")
        above = self.loss_.cost(rows, chosen) - np.minimum(self.loss_._least_costs(), 0.0)[rows]
        costs = np.maximum(above, 0.0)  # rounding can make them negative
        weight = check_weight(sample_weight, len(rows))
        return float(1 - np.average(costs, weights=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(BlendedRegressor() if self.regressor is None else self.regressor)
        tags.input_tags = inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        return tags


def _fit_logistic(u: Floats, labels: Ints, weight: Floats | None) -> Any:
    """Fit a logistic regression of the classes on u; return None if there is a single class."""
    if len(np.unique(labels)) < 2:
        return None
    # The penalty of the logistic regression is measured in rows of weight 1. Weights of mean 1 make
    # the fit independent of the scale of the weights.
    weight = None if weight is None else mean_one(weight)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return model.fit(u, labels, logisticregression__sample_weight=weight)
