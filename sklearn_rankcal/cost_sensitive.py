"""Classification that minimises expected costs, for any matrix of costs.

By theorem 3 of Ramaswamy, Agarwal and Tewari (2013), least squares on factors of the
costs, one vector for each class, is calibrated for every distribution of the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_consistent_length, column_or_1d, gen_batches, get_tags
from sklearn.utils.extmath import svd_flip
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_rankcal.label_ranking import BlendedRegressor, _outputs
from sklearn_rankcal.queries import check_weight
from sklearn_rankcal.utils import _estimators, _numbers
from sklearn_rankcal.utils._features import check_features, take_rows
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._messages import check_count, counted
from sklearn_rankcal.utils._numbers import Floats, Ints
from sklearn_rankcal.utils._sklearn_compat import HasMethods, Interval, _fit_context

__all__ = ["LowRankClassifier", "LowRankLoss", "make_cost_scorer", "mean_cost_loss"]

Names = NDArray[Any]
#: With more classes than this, `fit` does not try a logistic regression on u.
MAX_RECALIBRATED = 100
#: Rounding errors of an expected cost are below ||u|| ||beta|| + |intercept| times this number.
TIED = 1e-12
#: A singular value below this number times the norm of the matrix of costs is rounding.
NOISE = 1e-13


class LowRankLoss:
    """A loss <alpha_y, beta_t> + c_y + b_t of a label y and a target t, both numbered from 0.

    Least squares on the vectors alpha_y estimates u = E[alpha_Y], and `decode` returns the target
    with the smallest <u, beta_t> + b_t. For any u, its regret is at most
    ``regret_constant() * ||u - E[alpha_Y]|| + 2 * error``; see :ref:`low_rank`.

    Parameters
    ----------
    alpha : array-like of shape (n_labels, rank)
        The regression targets of each label.
    beta : array-like of shape (n_targets, rank)
        The vector of each target. Its product with the regression targets is the cost.
    c : float or array-like of shape (n_labels,), default=0.0
        Part of the cost that depends only on the label. It does not affect decoding.

    Examples
    --------
    Six grades have a matrix of distances of rank 5. Two regression targets approximate it well:

    >>> import numpy as np
    >>> from sklearn_rankcal.cost_sensitive import LowRankLoss
    >>> L = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    >>> loss = LowRankLoss.from_matrix(L, rank=2)
    >>> p = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.1])
    >>> u = p @ loss.alpha
    >>> round(loss.error, 2), loss.decode(u[None]).item(), int(np.argmin(p @ L))  # the median
    (0.52, 2, 2)
    """

    def __init__(self, alpha: ArrayLike, beta: ArrayLike, c: ArrayLike = 0.0) -> None:
        self.alpha, self.beta = _read_matrix(alpha, "alpha"), _read_matrix(beta, "beta")
        n, k = self.shape = len(self.alpha), len(self.beta)
        read = _numbers.read_numbers(c, "c")
        if read.shape not in ((), (n,)) or not np.isfinite(read).all():
            raise ValueError(f"c must be a finite number, or {n} of them; got {c!r}.")
        self.c = np.broadcast_to(read, n)
        self.intercept = np.zeros(k)  # b, the part of the cost that depends only on the target
        self.error = 0.0  # largest difference from the costs that this loss approximates
        if self.alpha.shape[1] != self.beta.shape[1]:
            shapes = f"{self.alpha.shape} and {self.beta.shape}"
            raise ValueError(f"alpha and beta need the same number of columns; got {shapes}.")

    @classmethod
    def from_matrix(cls, L: ArrayLike, rank: int | None = None) -> LowRankLoss:
        """Factor a matrix of costs, in O(n_labels n_targets min(n_labels, n_targets)) time.

        Parameters
        ----------
        L : array-like of shape (n_labels, n_targets)
            ``L[y, t]`` is the cost of target t for label y: 0, or from 1e-50 to 1e50.
        rank : int, default=None
            Maximum number of regression targets. If the matrix needs more, it is approximated. None
            means as many as the matrix needs, and at least one.

        Returns
        -------
        loss : LowRankLoss
            Its `intercept` has the column means, and its `error` is the largest error of a cost.
        """
        matrix = _read_matrix(L, "loss_matrix")
        _numbers.check_range(matrix, "loss_matrix")
        check_count(rank, "rank", or_none=True)
        # Let H = I - 11'/n subtract the column means. H (L - 1 b' - M) = H L - H M for all b and M,
        # and H never increases a norm or a rank. Therefore no intercept b leaves a smaller rank, or
        # a smaller squared error at that rank, than the column means, which leave H L.
        b = matrix.mean(axis=0)
        left, values, right = np.linalg.svd(matrix - b, full_matrices=False)
        left, right = svd_flip(left, right)
        values[values <= NOISE * np.linalg.norm(matrix)] = 0.0
        d = max(np.count_nonzero(values[:rank]), 1)
        loss = cls(left[:, :d] * values[:d], right[:d].T)
        loss.intercept = b
        loss.error = float(np.abs(loss._expected_cost(loss.alpha) - matrix).max())
        return loss

    def decode(self, u: ArrayLike) -> Ints:
        """Return the target with the smallest <u, beta_t> + b_t for each row of u.

        Parameters
        ----------
        u : array-like of shape (n_samples, rank)
            Estimates of E[alpha_Y].

        Returns
        -------
        targets : ndarray of shape (n_samples,)
            The first of the smallest targets that tie up to rounding, numbered from 0.
        """
        u = _read_matrix(u, "u")
        best = np.empty(len(u), dtype=np.int64)
        lengths = np.linalg.norm(self.beta, axis=1)
        # At most four arrays of shape (rows, n_targets) exist at the same time.
        for rows in gen_batches(len(u), rows_per_block(4 * 8 * len(self.beta))):
            cost = self._expected_cost(u[rows])
            # A target ties with the smallest if the intervals of their rounding errors overlap.
            slack = np.linalg.norm(u[rows], axis=1, keepdims=True) * lengths
            slack = TIED * (slack + np.abs(self.intercept))
            least = (cost + slack).min(axis=1, keepdims=True)
            best[rows] = np.argmax(cost - slack <= least, axis=1)
        return best

    def _expected_cost(self, u: Floats) -> Floats:
        """Return the expected cost of each target, without the part c."""
        return u @ self.beta.T + self.intercept

    def regret_constant(self) -> float:
        """Return the largest distance between two rows of beta, in O(n_targets^2 rank) time.

        Returns
        -------
        constant : float
        """
        batches = gen_batches(len(self.beta), rows_per_block(8 * len(self.beta)))
        return max(float(cdist(self.beta[rows], self.beta).max()) for rows in batches)


#: Types of the parameter `loss_matrix` other than None.
Costs = ArrayLike | LowRankLoss | Callable[[Names], ArrayLike | LowRankLoss]


class LowRankClassifier(_estimators.SiteLink, ClassifierMixin, BaseEstimator):
    """Classifier that predicts the target of least expected cost, by least squares.

    The costs are factored into a `LowRankLoss`, a regressor predicts its u = E[alpha_y], and
    `predict` decodes u. Targets need not be classes: one can be to abstain. See :ref:`low_rank`.

    Parameters
    ----------
    regressor : estimator, default=None
        The regressor. If it supports only one output, it is wrapped in `MultiOutputRegressor`. None
        means `label_ranking.BlendedRegressor`.
    loss_matrix : array-like of shape (n_classes, n_targets), LowRankLoss or callable, default=None
        The cost of each target (column) for each class (row, in the order of ``classes_``), maybe
        factored. A callable receives ``classes_`` and returns one of these. None means the 0-1
        loss: 1 for a wrong class and 0 for the right one.
    targets : array-like of shape (n_targets,), default=None
        Names of the targets, which `predict` returns. None means the classes.
    classes : array-like of shape (n_classes,), default=None
        Names of the rows of `loss_matrix`. None means the sorted classes of y. Pass the names if y
        may lack some classes, for example in a cross-validation fold.
    n_folds : int or None, default=5
        Number of folds, at least 2, for the correction of few rows (:ref:`low_rank`). None disables
        it, and so do the 0-1 loss and more than 100 classes.
    random_state : int, RandomState instance or None, default=None
        Seed of every ``random_state`` in the clones of the regressor.

    Attributes
    ----------
    classes_, targets_ : ndarray of shape (n_classes,) and (n_targets,)
        The names of the rows and columns of the costs.
    loss_ : LowRankLoss
        The costs in factored form, with a bound on the regret of predictions.
    regressor_ : estimator
        The fitted regressor of alpha_y.
    recalibrator_ : estimator or None
        The logistic regression of the class y on u, or None. Its mean of alpha_y replaces u.

    Examples
    --------
    Missing class 2 costs ten times as much as any other error. Abstaining costs 0.4:

    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import LowRankClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> costs = [[0, 1, 1, 0.4], [1, 0, 1, 0.4], [10, 10, 0, 0.4]]
    >>> clf = LowRankClassifier(Ridge(), loss_matrix=costs, targets=[0, 1, 2, -1])
    >>> clf.fit(X[::2], y[::2]).predict(X[1::2])[::9].tolist()
    [0, 0, -1, 0, -1, 1, 1, 1, 2, 2]
    """

    __reduce__ = _estimators.reduce_with_versions
    __sklearn_clone__ = _estimators.clone_with_catboost

    _parameter_constraints: dict[str, list[Any]] = {
        "regressor": [None, HasMethods(["fit", "predict"])],
        "n_folds": [None, Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        regressor: Any = None,
        *,
        loss_matrix: Costs | None = None,
        targets: Any = None,
        classes: Any = None,
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
            Non-negative weight of each row. If None, every row has weight 1.

        Returns
        -------
        self : LowRankClassifier
        """
        if self.regressor is not None and is_classifier(self.regressor):
            raise ValueError(f"{type(self.regressor).__name__} is a classifier, not a regressor.")
        X = check_features(X)
        _numbers.check_no_mask(y, "y")
        validate_data(self, X=X, y=y, skip_check_array=True)
        X = _estimators.readable_table(self.regressor, X)
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
        check_consistent_length(X, y)
        check_classification_targets(y)
        weight = check_weight(sample_weight, len(y))
        weight = np.ones(len(y)) if weight is None else weight
        rows = np.flatnonzero(weight)
        X, y, weight = take_rows(X, rows), y[rows], weight[rows]
        classes = np.unique(y) if self.classes is None else self.classes
        costs, self.classes_, self.targets_ = _read_problem(self.loss_matrix, classes, self.targets)
        self.loss_ = costs if isinstance(costs, LowRankLoss) else LowRankLoss.from_matrix(costs)
        labels = _places(y, self.classes_, "y", "the classes")
        # Divide by a unit, because some regressors cannot learn very small or very large costs.
        self._unit = _numbers.target_unit(float(np.abs(self.loss_.alpha).max()))
        alpha = self.loss_.alpha / self._unit
        self.regressor_ = self._fit_one(X, alpha[labels], weight)
        self.recalibrator_ = None
        small = len(alpha) <= MAX_RECALIBRATED and self.loss_matrix is not None
        if self.n_folds and small and len(np.unique(labels)) > 1:
            # Deal the rows of each class to the folds in turn.
            fold = np.argsort(np.argsort(labels, kind="stable")) % self.n_folds
            u = np.empty((len(labels), alpha.shape[1]))
            for k in np.unique(fold):
                train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
                fitted = self._fit_one(take_rows(X, train), alpha[labels[train]], weight[train])
                u[test] = fitted.predict(take_rows(X, test)).reshape(len(test), -1)
            self.recalibrator_ = _recalibrate(u, labels, alpha, weight, fold)
        return self

    def _fit_one(self, X: Any, targets: Floats, weight: Floats) -> Any:
        """Fit a clone of the regressor to the columns of `targets`."""
        regressor, weights = _outputs.prepare_regressor(
            self.regressor, X, weight, self.random_state
        )
        y = targets[:, 0] if targets.shape[1] == 1 else targets
        return _outputs.fit_outputs(regressor, X, y, weights)

    def _predict_alpha(self, X: Any) -> Floats:
        """Return estimates of E[alpha_Y | x]."""
        check_is_fitted(self)
        X = check_features(X)
        validate_data(self, X=X, reset=False, skip_check_array=True)
        u = self.regressor_.predict(_estimators.readable_table(self.regressor, X))
        u = np.asarray(u, dtype=np.float64).reshape(X.shape[0], -1)
        if self.recalibrator_ is None:
            return u * self._unit
        q = self.recalibrator_.predict_proba(u)
        return np.asarray(q @ self.loss_.alpha[self.recalibrator_.classes_])

    def predict(self, X: Any) -> Names:
        """Predict the target of least expected cost for each row of X.

        Parameters
        ----------
        X
            As in `fit`.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Names of targets. If several targets tie, the first of them.
        """
        u = self._predict_alpha(X)
        return self.targets_[self.loss_.decode(u)]

    def predict_cost(self, X: Any) -> Floats:
        """Estimate the expected cost of every target for each row of X.

        Parameters
        ----------
        X
            As in `fit`.

        Returns
        -------
        cost : ndarray of shape (n_samples, n_targets)
            The expected costs, without the part `c` of a `LowRankLoss`. They can lie outside the
            range of the given costs if there is no `recalibrator_`.
        """
        return self.loss_._expected_cost(_read_matrix(self._predict_alpha(X), "u"))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return 1 minus the mean cost of the predictions, the accuracy for the 0-1 loss.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. With a `loss_matrix`, the classes must be among ``classes_``.

        Returns
        -------
        score : float
        """
        if self.loss_matrix is None and self.targets is None:
            return float(super().score(X, y, sample_weight))
        named = {"classes": self.classes_, "targets": self.targets_, "sample_weight": sample_weight}
        return 1 - mean_cost_loss(y, self.predict(X), self.loss_matrix, **named)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(BlendedRegressor() if self.regressor is None else self.regressor)
        tags.input_tags = inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        return tags


def mean_cost_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    loss_matrix: Costs | None,
    *,
    classes: Any,
    targets: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean cost of predictions; smaller is better.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        The true classes, and the predicted targets.
    loss_matrix : array-like of shape (n_classes, n_targets), LowRankLoss, callable or None
        The cost of each target for each class, as in `LowRankClassifier`.
    classes : array-like of shape (n_classes,)
        Names of the rows of `loss_matrix`.
    targets : array-like of shape (n_targets,), default=None
        Names of its columns, which are the possible predictions. None means the classes.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weight of each row. If None, every row has weight 1.

    Returns
    -------
    cost : float
        The mean cost.

    Examples
    --------
    >>> from sklearn_rankcal import mean_cost_loss
    >>> costs = [[0, 1, 0.2], [5, 0, 0.2]]
    >>> names = {"classes": ["well", "ill"], "targets": ["well", "ill", "don't know"]}
    >>> mean_cost_loss(["well", "ill", "ill"], ["well", "well", "don't know"], costs, **names)
    1.73...
    """
    costs, class_names, target_names = _read_problem(loss_matrix, classes, targets)
    check_consistent_length(y_true, y_pred)
    rows = _places(y_true, class_names, "y_true", "the classes")
    columns = _places(y_pred, target_names, "y_pred", "the targets")
    if isinstance(costs, LowRankLoss):
        product = np.einsum("...d,...d->...", costs.alpha[rows], costs.beta[columns])
        values = product + costs.c[rows] + costs.intercept[columns]
    else:
        values = costs[rows, columns]
    return float(np.average(values, weights=check_weight(sample_weight, len(rows))))


def make_cost_scorer(
    loss_matrix: Costs, *, classes: Any, targets: Any = None
) -> Callable[..., float]:
    """Make a scorer that returns minus the mean cost, for `GridSearchCV` and similar tools.

    The scorer accepts any classifier. It looks up costs by the names of the classes, which also
    works if a cross-validation fold lacks some classes.

    Parameters
    ----------
    loss_matrix, classes, targets
        As in `mean_cost_loss`.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)`` returns minus the mean cost.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn_rankcal import make_cost_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = make_cost_scorer([[0, 1, 1], [1, 0, 1], [1, 5, 0]], classes=[0, 1, 2])
    >>> scores = cross_val_score(LogisticRegression(max_iter=500), X, y, scoring=scorer)
    >>> bool(scores.max() <= 0)
    True
    """
    names = {"loss_matrix": loss_matrix, "classes": classes, "targets": targets}
    _read_problem(**names)  # raise errors here, because a search converts them to NaN
    return make_scorer(mean_cost_loss, greater_is_better=False, **names)


def _read_problem(
    loss_matrix: Costs | None, classes: Any, targets: Any
) -> tuple[LowRankLoss | Floats, Names, Names]:
    """Return the costs as a `LowRankLoss` or a matrix, and the names of their rows and columns."""
    rows = _read_names(classes, "classes")
    columns = rows if targets is None else _read_names(targets, "targets")
    given: Any = loss_matrix(rows) if callable(loss_matrix) else loss_matrix
    if loss_matrix is None:  # two classes need a single output
        n = len(rows)
        given = 1 - np.eye(2)
        if n != 2:
            given = LowRankLoss(np.eye(n), -np.eye(n))
            given.intercept += 1.0
    costs = given if isinstance(given, LowRankLoss) else _read_matrix(given, "loss_matrix")
    if costs.shape != (len(rows), len(columns)):
        raise ValueError(
            f"loss_matrix has the shape {costs.shape}, but there are {counted(len(rows), 'class')} "
            f"(rows: {rows[:20].tolist()}) and {counted(len(columns), 'target')}. If y may lack "
            "some of the classes, pass classes=. If the targets are not the classes, pass targets=."
        )
    return costs, rows, columns


def _read_names(values: Any, what: str) -> Names:
    """Return distinct names as an array. NumPy would convert a mixture with strings to strings."""
    _numbers.check_no_mask(values, what)
    names = np.asarray(values)
    if names.dtype.kind in "US" and not all(isinstance(v, str | bytes) for v in values):
        names = np.array(values, dtype=object)
    if names.ndim != 1 or len(set(names.tolist())) < len(names):
        raise ValueError(f"{what} must be different names in one dimension; got {values!r}.")
    return names


def _places(values: ArrayLike, names: Names, what: str, known: str) -> Ints:
    """Return the index in `names` of each value. The error uses `what` and `known`."""
    _numbers.check_no_mask(values, what)
    listed = column_or_1d(check_array(values, ensure_2d=False, dtype=None)).tolist()
    place = {name: i for i, name in enumerate(names.tolist())}
    unknown = [value for value in listed if value not in place]
    if unknown:
        raise ValueError(f"{what} contains {unknown[0]!r}, not among {known}: {names.tolist()}.")
    return np.array([place[value] for value in listed], dtype=np.int64)


def _recalibrate(u: Floats, labels: Ints, alpha: Floats, weight: Floats, fold: Ints) -> Any:
    """Fit a logistic regression on held-out u, or return None if u itself has a smaller error."""
    means = np.empty_like(u)
    for k in np.unique(fold):
        train, test = fold != k, fold == k
        if len(np.unique(labels[train])) < 2:
            return None
        q = _fit_logistic(u[train], labels[train], weight[train])
        means[test] = q.predict_proba(u[test]) @ alpha[q.classes_]
    errors = [weight @ ((v - alpha[labels]) ** 2).sum(axis=1) for v in (u, means)]
    return _fit_logistic(u, labels, weight) if errors[1] < errors[0] else None


def _fit_logistic(u: Floats, labels: Ints, weight: Floats) -> Any:
    # Scale weights to mean 1 to make the penalty independent of their scale.
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return model.fit(u, labels, logisticregression__sample_weight=_numbers.mean_one(weight))


def _read_matrix(values: ArrayLike, name: str) -> Floats:
    """Check a matrix of finite numbers."""
    return np.asarray(
        check_array(_numbers.read_numbers(values, name), dtype=np.float64, input_name=name)
    )
