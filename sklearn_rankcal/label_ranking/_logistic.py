"""Multi-output logistic regression between bounds, with leave-one-out predictions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_rankcal.utils._rounding import exceeds, first_smallest
from sklearn_rankcal.utils._typing import Floats

# Candidate penalties, for weights of mean 1. In descending order, each solution is a good start for
# the next.
PENALTIES = 10.0 ** np.arange(3, -4, -1)
# Maximum number of columns of Z. The time of a Newton step grows with its square.
MAX_COLUMNS = 100
# Without a penalty, the intercept of a target that is always at a bound would be infinite.
_INTERCEPT_PENALTY = 1e-3
# The iterations end if the Newton decrement (twice the expected decrease of the negative log
# likelihood) is at most this.
_TOLERANCE = 1e-4
_MAX_ITERATIONS = 50
_MAX_LEVERAGE = 1 - 1e-6


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
    leverage = np.minimum(spread * curvature, _MAX_LEVERAGE)
    return z + spread * weight[:, None] * (p - targets) / (1 - leverage)
