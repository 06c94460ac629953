"""A regressor of many outputs that averages a local and two smooth models: for label ranking.

Nothing is refitted to weigh them: the trees are judged out of bag, the kernels by their closed-form
leave-one-out predictions.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from sklearn_rankcal.utils._parameters import check_count
from sklearn_rankcal.utils._pickles import VersionedPickle
from sklearn_rankcal.utils._scales import mean_one, target_exponent

Floats = NDArray[np.float64]
KERNELS = ("rbf", "laplacian")
# Multiples of 1 / n_features for gamma; the penalty is per row of mean weight 1.
GAMMAS = 2.0 ** np.arange(-5, 4, 2)
ALPHAS = 10.0 ** np.arange(-4, 2.5, 0.5)
MAX_LEVERAGE = 1 - 1e-6  # a row that fits itself alone says nothing of the others


def ridge_leave_one_out(
    Z: Floats, y: Floats, weight: Floats
) -> tuple[float, Floats, Floats, Floats]:
    """Ridge with an intercept, its penalty chosen by leave-one-out squared error.

    One eigendecomposition of the (m, m) Gram matrix serves all penalties. Returns the error, the
    leave-one-out predictions, the coefficients and the intercept.
    """
    z_mean, y_mean = (np.average(a, axis=0, weights=weight) for a in (Z, y))
    Z, y = Z - z_mean, y - y_mean
    values, vectors = np.linalg.eigh(Z.T @ (weight[:, None] * Z))
    Q = Z @ vectors
    moments = Q.T @ (weight[:, None] * y)
    shrink = 1 / (np.maximum(values, 0) + ALPHAS[:, None])
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


class _KernelMap:
    """Features Z with Z Z' = K(X, B) K(B, B)^-1 K(B, X), B the basis: K itself on X = B.

    As Nystroem, by Cholesky instead of an SVD; a jitter stands for repeated rows.
    """

    def __init__(self, kernel: str, gamma: float, basis: Floats) -> None:
        self.kernel, self.gamma, self.basis = kernel, gamma, basis
        gram = pairwise_kernels(basis, metric=kernel, gamma=gamma)
        gram.flat[:: len(basis) + 1] += 1e-8 * len(basis)
        self.factor = cholesky(gram, lower=True)

    def __call__(self, X: Floats) -> Floats:
        K = pairwise_kernels(self.basis, X, metric=self.kernel, gamma=self.gamma)
        return solve_triangular(self.factor, K, lower=True, overwrite_b=True).T


class BlendedRegressor(VersionedPickle, RegressorMixin, BaseEstimator):
    """Extra trees and two kernel ridges, averaged with weights learned without refitting.

    Smooth and local regressors err differently. The weights w >= 0 of the three minimise
    mean (y - sum_k w_k U_k)^2 + shrinkage * mean y^2 * ||w - 1/3||^2 over held-out predictions U_k
    (out-of-bag for the trees, leave-one-out for Gaussian and Laplacian kernel ridge), and are then
    scaled to sum 1.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees, grown on bootstrap samples, so that each row has out-of-bag predictions.
    min_samples_leaf : int, default=1
        Of the trees.
    max_features : float, int or str, default=1.0
        Of the trees.
    n_components : int, default=500
        Columns of the kernels' features; up to that many rows, kernel ridge is exact.
    max_samples : int, default=20_000
        Kernel ridge and the weights see at most that many rows, drawn at random: memory is about
        ``3 * max_samples * n_components * 8`` bytes.
    max_search : int, default=2000
        A kernel's width is chosen on at most that many rows.
    shrinkage : float, default=0.05
        0 is plain non-negative least squares, infinity the plain average.
    n_jobs : int, default=None
        For the trees.
    random_state : int, RandomState instance or None, default=None
        Seeds the trees and the draws.

    Attributes
    ----------
    weights_ : ndarray of shape (3,)
        Of the trees, the Gaussian and the Laplacian kernel.
    forest_ : ExtraTreesRegressor
        The trees.
    scaler_ : StandardScaler
        What the kernels see X through.

    Notes
    -----
    Beside the trees: O(n m^2 + m^3) for each of ten kernels, n at most `max_samples` (`max_search`
    while searching), m at most `n_components`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_rankcal.models import BlendedRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BlendedRegressor(random_state=0).fit(X[:300], y[:300])
    >>> model.weights_.shape, bool(model.score(X[300:], y[300:]) > 0.4)
    ((3,), True)
    """

    _scales_weights = True  # by itself, so that weights of any scale do

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        min_samples_leaf: int = 1,
        max_features: float | int | str = 1.0,
        n_components: int = 500,
        max_samples: int = 20_000,
        max_search: int = 2000,
        shrinkage: float = 0.05,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.n_components = n_components
        self.max_samples = max_samples
        self.max_search = max_search
        self.shrinkage = shrinkage
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BlendedRegressor:
        """Fit the three regressors and weigh them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. Only their ratios count.

        Returns
        -------
        self : BlendedRegressor
        """
        for name in ("n_components", "max_samples", "max_search"):
            check_count(getattr(self, name), name)
        shrinkage: Any = self.shrinkage
        if not isinstance(shrinkage, Real) or not float(shrinkage) >= 0:
            raise ValueError(f"shrinkage must be a number >= 0; got {shrinkage!r}.")
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight is 0 for every row.")
        self._flat = y.ndim == 1
        y = y.astype(np.float64).reshape(len(X), -1)
        # errors are squares, which of tiny targets underflow: see target_exponent
        self._exponent = target_exponent(y)
        y = np.ldexp(y, -self._exponent)
        scaled = mean_one(weight)
        weight = np.ones(len(X)) if scaled is None else scaled
        rng = check_random_state(self.random_state)
        seed = rng.randint(2**31 - 1)
        judged = len(X) >= 5  # below, hardly a row is out of bag: plain average
        self.forest_ = ExtraTreesRegressor(
            self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            bootstrap=True,
            oob_score=judged,
            n_jobs=self.n_jobs,
            random_state=seed,
        ).fit(X, y if y.shape[1] > 1 else y.ravel(), scaled)
        rows = np.flatnonzero(weight)
        if len(rows) > self.max_samples:
            rows = np.sort(rng.choice(rows, self.max_samples, replace=False))
        X, y, weight = X[rows], y[rows], weight[rows] / weight[rows].mean()
        self.scaler_ = StandardScaler().fit(X, sample_weight=weight)
        X = self.scaler_.transform(X)
        basis = X[rng.permutation(len(X))[: self.n_components]]
        search: Any = slice(None)
        if len(X) > self.max_search:
            search = rng.choice(len(X), self.max_search, replace=False)
        held_out, self.kernels_ = [], []
        for kernel in KERNELS:
            maps = [_KernelMap(kernel, gamma, basis) for gamma in GAMMAS / X.shape[1]]
            results = [ridge_leave_one_out(f(X[search]), y[search], weight[search]) for f in maps]
            k = np.argmin([r[0] for r in results])
            if len(X) > self.max_search:
                results[k] = ridge_leave_one_out(maps[k](X), y, weight)
            _, loo, coef, intercept = results[k]
            held_out.append(loo)
            self.kernels_.append((maps[k], coef, intercept))
        self.weights_ = np.full(3, 1 / 3)
        if judged:
            oob = self.forest_.oob_prediction_.reshape(-1, y.shape[1])[rows]
            self.weights_ = self._blend(np.stack([oob, *held_out]), y, weight)
        return self

    def _blend(self, held_out: Floats, y: Floats, weight: Floats) -> Floats:
        A = np.einsum("kno,lno,n->kl", held_out, held_out, weight, optimize=True) / y.size
        b = np.einsum("kno,no,n->k", held_out, y, weight, optimize=True) / y.size
        size = np.average(y**2, axis=0, weights=weight).mean()
        if size == 0 or self.shrinkage == np.inf:
            return np.full(len(b), 1 / len(b))
        penalty = max(self.shrinkage, 1e-9) * size  # the floor keeps A definite
        L = np.linalg.cholesky(A + penalty * np.eye(len(b)))
        w = nnls(L.T, np.linalg.solve(L, b + penalty / len(b)))[0]
        return w / w.sum() if w.any() else np.full(len(b), 1 / len(b))

    def predict(self, X: Any) -> Floats:
        """The weighted mean of the three predictions, of the shape of y.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        u = np.empty((len(X), len(self.kernels_[0][2])))
        for batch in gen_batches(len(X), 10_000):  # bounds the (rows, n_components) features
            scaled = self.scaler_.transform(X[batch])
            u[batch] = self.weights_[0] * self.forest_.predict(X[batch]).reshape(len(scaled), -1)
            for w, (features, coef, intercept) in zip(
                self.weights_[1:], self.kernels_, strict=True
            ):
                u[batch] += w * (features(scaled) @ coef + intercept)
        u = np.ldexp(u, self._exponent)
        return u.ravel() if self._flat else u

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
