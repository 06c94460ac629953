"""`BlendedRegressor`: a multi-output regressor, averaged from trees, kernels and a linear part.

The weights of the average are learned from held-out predictions that need no second fit. Between
bounds, the linear part is a logistic regression.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import check_random_state, gen_batches, validation

from sklearn_rankcal.models._sums import solve_nonnegative
from sklearn_rankcal.pairs._pair_models import TableEncoder
from sklearn_rankcal.utils._estimators import reduce_with_versions
from sklearn_rankcal.utils._features import check_features
from sklearn_rankcal.utils._memory import PREDICTION_BYTES, rows_per_block
from sklearn_rankcal.utils._numbers import Floats, exceeds, first_smallest, mean_one, power_above

KERNELS = ("rbf", "laplacian")
# Candidate widths of the kernels: gamma is one of these numbers divided by n_features.
GAMMAS = 2.0 ** np.arange(-5, 4, 2)
# Candidate penalties of ridge regressions, for weights of mean 1.
ALPHAS = 10.0 ** np.arange(-4, 2.5, 0.5)
# The leave-one-out residual is the residual over 1 - leverage, which must not be 0.
MAX_LEVERAGE = 1 - 1e-6
N_COMPONENTS = 500  # of a kernel; kernel ridge regression is exact up to this number of rows
MAX_SAMPLES = 20_000  # maximum number of rows for all parts except the trees
MAX_SEARCH = 2000  # number of rows to choose the kernel widths and arcsinh
# A tree has about two nodes for each row, with 8 bytes for each output. Above this size of all
# trees, leaves get more rows.
FOREST_BYTES = 1 << 28
SHRINKAGE = 2.0  # strength of the shrinkage to equal weights
# Candidate penalties of logistic regressions. In descending order, each solution is a good start
# for the next.
PENALTIES = 10.0 ** np.arange(3, -4, -1)
# Maximum number of columns of Z. The time of a Newton step grows with its square.
MAX_COLUMNS = 100
# Without a penalty, the intercept of a target that is always at a bound would be infinite.
_INTERCEPT_PENALTY = 1e-3
# The iterations end if the Newton decrement (twice the expected decrease of the negative log
# likelihood) is at most this.
_TOLERANCE = 1e-4
_MAX_ITERATIONS = 50


def ridge_leave_one_out(
    Z: Floats, y: Floats, weight: Floats
) -> tuple[float, Floats, Floats, Floats]:
    """Fit ridge regression with an intercept; choose the penalty by leave-one-out squared error.

    Return the weighted mean squared leave-one-out error, the leave-one-out predictions, the
    coefficients and the intercepts. scikit-learn's `RidgeCV` takes four times as long: it
    decomposes Z (n, m) instead of an (m, m) matrix.
    """
    z_mean, y_mean = (np.average(a, axis=0, weights=weight) for a in (Z, y))
    Z, y = Z - z_mean, y - y_mean
    # With Z'VZ = U diag(values) U', where V = diag(weight), and Q = ZU, the predictions of every
    # penalty are Q diag(1 / (values + alpha)) Q'Vy.
    values, vectors = np.linalg.eigh(Z.T @ (weight[:, None] * Z))
    Q = Z @ vectors
    moments = Q.T @ (weight[:, None] * y)
    shrink = 1 / (np.maximum(values, 0) + ALPHAS[:, None])
    # The leverage of a row is the derivative of its prediction by its own target. The second term
    # is the leverage on the intercept.
    leverages = weight[:, None] * (Q**2 @ shrink.T + 1 / weight.sum())
    best: tuple[Any, ...] = (np.inf,)
    for d, leverage in zip(shrink, np.minimum(leverages, MAX_LEVERAGE).T, strict=True):
        residual = (y - Q @ (d[:, None] * moments)) / (1 - leverage)[:, None]
        error = np.average((residual**2).mean(axis=1), weights=weight)
        if error < best[0]:
            best = (error, residual, d)
    error, residual, d = best
    coef = vectors @ (d[:, None] * moments)
    return error, y + y_mean - residual, coef, y_mean - z_mean @ coef


class BlendedRegressor(RegressorMixin, BaseEstimator):
    """Weighted average of extra trees, two kernel ridge regressions and a logistic regression.

    The four weights w >= 0 minimise mean (y - sum_k w_k U_k)^2 + (2 / n) * s^2 * ||w - 1/4||^2, and
    are then scaled to sum 1. U_k are held-out predictions: out-of-bag for the trees, leave-one-out
    for the rest. The mean squared error of the average with equal weights is s^2. The number of
    rows is n; with `sample_weight` v, n is (sum v)^2 / sum v^2.

    Logistic regression scales each output to [0, 1] by its smallest and largest target, and
    estimates its conditional mean. Its inputs are the standardised features or, if the
    leave-one-out error is smaller, their arcsinh.

    Each of the 32 most frequent categories of a column becomes a column of 0 and 1. The trees
    support missing numbers. For the other three regressors, missing numbers are replaced with the
    mean, and an indicator column is added.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees, each fitted to a bootstrap sample.
    n_jobs : int, default=None
        Number of jobs to fit the trees.
    random_state : int, RandomState instance or None, default=None
        Determines the trees and the random subsets of rows.

    Attributes
    ----------
    weights_ : ndarray of shape (4,)
        Weights of the trees, the Gaussian kernel, the Laplacian kernel and the logistic regression.
    forest_ : ExtraTreesRegressor
        The trees. Their targets are divided by a power of two that makes the largest target between
        0.5 and 1.
    scaler_ : StandardScaler
        The scaler of X for the kernels and the logistic regression.

    Notes
    -----
    In addition to the trees, fitting takes O(n m^2 + m^3) time for each of ten kernels, where m =
    500 is the number of components of the Nystroem approximation. With more than 20,000 rows, a
    random subset of 20,000 rows is used for the kernels, the logistic regression and the weights,
    and 2,000 rows to choose their parameters. The logistic regression takes about 60 Newton steps
    of O(n d^2) for each output. d is the number of features or, with more than 100 features, of
    principal components.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_rankcal.label_ranking import BlendedRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BlendedRegressor(random_state=0).fit(X[:300], y[:300])
    >>> model.weights_.shape, bool(model.score(X[300:], y[300:]) > 0.4)
    ((4,), True)
    """

    _scales_weights = True  # `fit` scales the weights: any scale is valid

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.n_jobs = n_jobs
        self.random_state = random_state

    __reduce__ = reduce_with_versions

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the four regressors and their weights.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
            Numbers, categories and text (read as categories). Values may be missing.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. Only their ratios count.

        Returns
        -------
        self : BlendedRegressor
        """
        self.fit_held_out(X, y, sample_weight)
        return self

    def fit_held_out(self, X: Any, y: Any, sample_weight: Any = None) -> Floats:
        """Fit, and return held-out predictions.

        Parameters
        ----------
        X, y, sample_weight : array-like
            As in `fit`.

        Returns
        -------
        held_out : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Held-out predictions of the average, in the shape of `y`. NaN for rows outside the
            random subset, for rows of weight 0, and for fewer than 5 rows.
        """
        X, y, weight = self._read(X, y, sample_weight)
        n_rows, n_outputs = y.shape
        rng = check_random_state(self.random_state)
        seed = rng.randint(2**31 - 1)
        # Step 1: fit the trees to all rows. With fewer than 5 rows, almost none is out of bag.
        learn_weights = n_rows >= 5
        self.forest_ = ExtraTreesRegressor(
            self.n_estimators,
            bootstrap=True,
            min_samples_leaf=-(-16 * self.n_estimators * y.size // FOREST_BYTES),
            oob_score=learn_weights,
            n_jobs=self.n_jobs,
            random_state=seed,
        ).fit(X, y if n_outputs > 1 else y.ravel(), weight)
        # Step 2: fit the other parts to a subset of rows, imputed and standardised.
        weight = np.ones(n_rows) if weight is None else weight
        rows = np.flatnonzero(weight)
        if len(rows) > MAX_SAMPLES:
            rows = np.sort(rng.choice(rows, MAX_SAMPLES, replace=False))
        X, y, weight = X[rows], y[rows], weight[rows] / weight[rows].mean()
        missing = np.isnan(X)
        self._incomplete, self._empty = missing.any(axis=0), missing.all(axis=0)
        X = self._mark_missing(X)
        self.scaler_ = StandardScaler().fit(X, sample_weight=weight)
        X = self._scale(X)
        basis = X[rng.permutation(len(X))[:N_COMPONENTS]]
        search = None
        if len(X) > MAX_SEARCH:
            search = rng.choice(len(X), MAX_SEARCH, replace=False)
        fits = [_fit_kernel(kernel, basis, X, y, weight, search) for kernel in KERNELS]
        self.kernels_ = [fitted for _, fitted in fits]
        of_logistic, self.columns_, self.logistic_ = fit_logistic(X, y, weight, seed, search)
        # Step 3: learn the weights from the held-out predictions.
        self.weights_ = np.full(4, 1 / 4)
        blended = np.full((n_rows, n_outputs), np.nan)
        if learn_weights:
            oob = self.forest_.oob_prediction_.reshape(n_rows, n_outputs)[rows]
            U = np.stack([oob, *(held_out for held_out, _ in fits), of_logistic])
            self.weights_ = self._blend(U, y, weight)
            blended[rows] = np.tensordot(self.weights_, U, axes=1) * self._unit
        return blended.ravel() if self._flat else blended

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats | None]:
        """Return numbers, targets below 1 in two dimensions, and weights of mean 1 or None."""
        table = check_features(X)
        validation.validate_data(self, X=table, y=y, skip_check_array=True)
        self._encoder = TableEncoder().fit(table)
        X, y = validation.check_X_y(
            self._encoder.transform(table),
            y,
            dtype=np.float64,
            multi_output=True,
            y_numeric=True,
            ensure_all_finite="allow-nan",
        )
        weight = validation._check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        if not weight.any():
            raise ValueError("sample_weight is 0 for every row.")
        self._flat = y.ndim == 1
        y = y.astype(np.float64).reshape(len(X), -1)
        # The logistic regression needs targets below 1.
        self._unit = power_above(float(np.abs(y).max()))
        weight = mean_one(weight)
        if weight is not None:
            # Weights times a constant have other rounding errors, which the kernels would magnify.
            mantissa, exponent = np.frexp(weight)
            weight = np.ldexp(np.round(mantissa, 7), exponent)
        return X, y / self._unit, weight

    def _mark_missing(self, X: Floats) -> Floats:
        """Append an indicator for each column with missing values in `fit`."""
        if not self._incomplete.any():
            return X
        numbers = np.where(self._empty, 0.0, X)  # a column without any number has no mean
        return np.hstack([numbers, np.isnan(X[:, self._incomplete])])

    def _scale(self, X: Floats) -> Floats:
        """Standardise the result of `_mark_missing`; missing values become 0, the mean."""
        return np.nan_to_num(self.scaler_.transform(X), copy=False)

    def _blend(self, held_out: Floats, y: Floats, weight: Floats) -> Floats:
        """Compute the weights of the average from held-out predictions (4, n, n_outputs)."""
        # A and b are mean products.
        A = np.einsum("kno,lno,n->kl", held_out, held_out, weight, optimize=True) / y.size
        b = np.einsum("kno,no,n->k", held_out, y, weight, optimize=True) / y.size
        equal = np.full(len(b), 1 / len(b))
        size, error = (
            np.average((a**2).mean(axis=1), weights=weight) for a in (y, y - held_out.mean(axis=0))
        )
        if size == 0 or error == 0:
            return equal
        n_effective = weight.sum() ** 2 / (weight**2).sum()
        # The second term makes the matrix definite.
        penalty = SHRINKAGE * error / n_effective + 1e-9 * size
        w = solve_nonnegative(A, b, penalty, equal)
        return w / w.sum() if w.any() else equal

    def predict(self, X: Any) -> Floats:
        """Predict the weighted average of the four regressors.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
            The columns of `fit`.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions in the shape of `y` in `fit`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_rankcal.label_ranking import BlendedRegressor
        >>> X = np.arange(40.0)[:, None]
        >>> model = BlendedRegressor(random_state=0).fit(X, np.column_stack([X, -X]))
        >>> model.predict(X[:3]).shape
        (3, 2)
        """
        validation.check_is_fitted(self)
        table = check_features(X)
        validation.validate_data(self, X=table, reset=False, skip_check_array=True)
        encoded = self._encoder.transform(table)
        X = validation.check_array(
            encoded, dtype=np.float64, ensure_all_finite="allow-nan", input_name="X"
        )
        u = np.empty((len(X), len(self.kernels_[0][2])))
        # Memory: the kernel, its features and a temporary array of their size.
        n_columns = 3 * max(len(coef) for _, coef, _ in self.kernels_)
        for batch in gen_batches(len(X), rows_per_block(8 * n_columns, PREDICTION_BYTES)):
            scaled = self._scale(self._mark_missing(X[batch]))
            u[batch] = self.weights_[0] * self.forest_.predict(X[batch]).reshape(len(scaled), -1)
            for w, (features, coef, intercept) in zip(
                self.weights_[1:-1], self.kernels_, strict=True
            ):
                u[batch] += w * (features.transform(scaled) @ coef + intercept)
            u[batch] += self.weights_[-1] * self.logistic_.predict(self.columns_.transform(scaled))
        u *= self._unit
        return u.ravel() if self._flat else u

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = True
        return tags


def _fit_kernel(
    kernel: str, basis: Floats, X: Floats, y: Floats, weight: Floats, search: Any
) -> tuple[Floats, tuple[Nystroem, Floats, Floats]]:
    """Fit ridge regression of the best width; return held-out predictions, map and coefficients.

    If `search` lists rows, only these choose the width.
    """
    rows = slice(None) if search is None else search
    maps = [
        # All rows of the basis are used. The seed only determines their order.
        Nystroem(kernel=kernel, gamma=gamma, n_components=len(basis), random_state=0).fit(basis)
        for gamma in GAMMAS / X.shape[1]
    ]
    results = [ridge_leave_one_out(f.transform(X[rows]), y[rows], weight[rows]) for f in maps]
    best = first_smallest([error for error, *_ in results])
    if search is not None:
        results[best] = ridge_leave_one_out(maps[best].transform(X), y, weight)
    _, held_out, coef, intercept = results[best]
    return held_out, (maps[best], coef, intercept)


def make_columns(X: Floats, compress: bool, seed: int) -> Pipeline:
    """Fit the map of standardised features to columns: arcsinh if `compress`, and a projection."""
    steps: list[Any] = [FunctionTransformer(np.arcsinh if compress else None)]
    if X.shape[1] > MAX_COLUMNS:
        steps.append(PCA(min(MAX_COLUMNS, len(X)), random_state=seed))
    return make_pipeline(*steps).fit(X)


class Logistic(NamedTuple):
    """low + span * expit(z @ coef + intercept) for a row z; alpha is the penalty of the fit."""

    coef: Floats
    intercept: Floats
    low: Floats
    span: Floats
    alpha: float

    def predict(self, Z: Floats) -> Floats:
        """Predict the (n, n_outputs) targets of the rows of Z."""
        return self.low + self.span * expit(Z @ self.coef + self.intercept)


def fit_logistic(
    X: Floats, y: Floats, weight: Floats, seed: int, search: Any = None
) -> tuple[Floats, Pipeline, Logistic]:
    """Fit logistic regression to the features and to their arcsinh, and keep the better fit.

    X (n, d) has standardised features, y has shape (n, n_outputs), and `weight` (n,) has mean 1. If
    `search` lists rows, these decide, and all rows are fitted only with penalties near the best.
    Return the leave-one-out predictions, the columns and the model.
    """
    rows = slice(None) if search is None else search
    fits = []
    for compress in (False, True):
        columns = make_columns(X, compress, seed)
        Z = columns.transform(X[rows])
        error, held_out, model = logistic_leave_one_out(Z, y[rows], weight[rows])
        fits.append((error, held_out, columns, model))
    _, held_out, columns, model = fits[first_smallest([error for error, *_ in fits])]
    if search is not None:
        near = model.alpha * np.array([10, 1, 0.1])
        _, held_out, model = logistic_leave_one_out(columns.transform(X), y, weight, near)
    return held_out, columns, model


def logistic_leave_one_out(
    Z: Floats, y: Floats, weight: Floats, penalties: Floats | None = None
) -> tuple[float, Floats, Logistic]:
    """Fit logistic regression to targets in an interval; choose the penalty by leave-one-out error.

    The interval of an output ranges from its smallest to its largest target. A target in the
    interval counts as a probability. For any distribution of the target, the expected cross-entropy
    has its minimum at the conditional mean: like least squares, predictions estimate conditional
    means [1]_. scikit-learn's `LogisticRegression` supports only classes, and one output at a time.

    Z has shape (n, m), y has shape (n, n_outputs), weights have mean 1, and penalties descend.
    Return the weighted mean squared leave-one-out error of the chosen penalty, approximate
    leave-one-out predictions (a Newton step from the solution of all rows [2]_), and the model. A
    Newton step takes O(n m^2) time per output.

    References
    ----------
    .. [1] L. E. Papke and J. M. Wooldridge (1996). Econometric methods for fractional response
       variables with an application to 401(k) plan participation rates. Journal of Applied
       Econometrics 11.
    .. [2] K. Rahnama Rad and A. Maleki (2020). A scalable estimate of the out-of-sample prediction
       error via approximate leave-one-out cross-validation. Journal of the Royal Statistical
       Society B 82.
    """
    low = y.min(axis=0)
    span = y.max(axis=0) - low
    # A constant target has span 0: its prediction is always `low`.
    targets = np.where(span > 0, (y - low) / np.where(span > 0, span, 1), 0.5)
    Z = np.column_stack([Z, np.ones(len(Z))])
    coef = np.zeros((Z.shape[1], y.shape[1]))
    fits: list[tuple[float, Floats, Logistic]] = []
    for alpha in PENALTIES if penalties is None else penalties:
        penalty = np.append(np.full(Z.shape[1] - 1, alpha), _INTERCEPT_PENALTY)
        coef = _newton(Z, targets, weight, penalty, coef)
        held_out = low + span * expit(_leave_one_out(Z, targets, weight, penalty, coef))
        error = float(np.average(((y - held_out) ** 2).mean(axis=1), weights=weight))
        model = Logistic(coef[:-1], coef[-1], low, span, float(alpha))
        fits.append((error, held_out, model))
        if len(fits) > 1 and not exceeds(fits[-2][0], error, error):
            break  # the error first falls with the penalty and then rises
    return fits[first_smallest([error for error, *_ in fits])]


def _objective(Z: Floats, targets: Floats, weight: Floats, penalty: Floats, coef: Floats) -> Floats:
    """The penalised negative log likelihood of each output."""
    z = Z @ coef
    return weight @ (np.logaddexp(0, z) - targets * z) + penalty @ coef**2 / 2


def _newton(Z: Floats, targets: Floats, weight: Floats, penalty: Floats, start: Floats) -> Floats:
    """Minimise the objective of each output by Newton's method with step halving."""
    coef, left = start.copy(), np.arange(targets.shape[1])
    value = _objective(Z, targets, weight, penalty, coef)
    for _ in range(_MAX_ITERATIONS):
        own, goals = coef[:, left], targets[:, left]
        p = expit(Z @ own)
        gradient = Z.T @ (weight[:, None] * (p - goals)) + penalty[:, None] * own
        hessians = _hessians(Z, weight[:, None] * p * (1 - p), penalty)
        step = np.linalg.solve(hessians, gradient.T[:, :, None])[:, :, 0].T
        decrement = (gradient * step).sum(axis=0)  # twice the expected decrease of a full step
        length = np.ones(len(left))
        for _ in range(30):  # halve a step that does not lower the objective enough
            new = own - length * step
            found = _objective(Z, goals, weight, penalty, new)
            slack = 1e-12 * np.abs(value[left])  # of rounding
            long = found > value[left] - 1e-4 * length * decrement + slack
            if not long.any():
                break
            length[long] /= 2
        coef[:, left], value[left] = new, found
        left = left[decrement > _TOLERANCE]
        if not len(left):
            break
    return coef


def _hessians(Z: Floats, curvature: Floats, penalty: Floats) -> Floats:
    """The (n_outputs, m, m) matrices Z' diag(curvature) Z + diag(penalty)."""
    # A loop over outputs; each takes a matrix product of O(n m^2).
    return np.stack([(Z.T * own) @ Z for own in curvature.T]) + np.diag(penalty)


def _leave_one_out(
    Z: Floats, targets: Floats, weight: Floats, penalty: Floats, coef: Floats
) -> Floats:
    """The approximate leave-one-out logits of rows, of shape (n, n_outputs)."""
    z = Z @ coef
    p = expit(z)
    curvature = weight[:, None] * p * (1 - p)
    inverses = np.linalg.inv(_hessians(Z, curvature, penalty))
    # z' H^-1 z for each row and output
    spread = np.column_stack([np.einsum("ij,ij->i", Z @ inverse, Z) for inverse in inverses])
    leverage = np.minimum(spread * curvature, MAX_LEVERAGE)
    return z + spread * weight[:, None] * (p - targets) / (1 - leverage)
