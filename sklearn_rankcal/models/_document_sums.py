"""Sums over documents from which `Ridge` and `LinearRegression` of scikit-learn are solved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, solve
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

from sklearn_rankcal.models._tables import row_blocks

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DocumentSums:
    """The means and the products of the columns of a table and its targets.

    The products are those of differences from the mean, and not of the columns themselves, so that
    columns with a large mean lose no digits.

    Attributes
    ----------
    mass : float
        Sum of the weights v_i of the rows.
    mean : ndarray of shape (n_columns + 1,)
        Weighted mean of z_i = (x_i, t_i), the columns of row i followed by its target.
    products : ndarray of shape (n_columns + 1, n_columns + 1)
        Sum of v_i (z_i - mean)(z_i - mean)'.
    """

    mass: float
    mean: Floats
    products: Floats

    @classmethod
    def of(cls, X: NDArray[Any], targets: Floats, weight: Floats | None = None) -> DocumentSums:
        """Add up rows in O(n d^2) time, and in O(d^2) memory in addition to a block of rows."""
        d = X.shape[1] + 1
        total = cls(0.0, np.zeros(d), np.zeros((d, d)))
        for rows in row_blocks(len(X), d):
            z = np.column_stack([X[rows], targets[rows]]).astype(np.float64, copy=False)
            v = np.ones(len(z)) if weight is None else weight[rows]
            mass = float(v.sum())
            mean = v @ z / (mass or 1.0)
            z -= mean
            z *= np.sqrt(v)[:, None]
            total = total + cls(mass, mean, z.T @ z)
        return total

    def __add__(self, other: DocumentSums) -> DocumentSums:
        if len(self.mean) != len(other.mean):
            raise ValueError(
                f"Sums of {len(self.mean) - 1} columns cannot be added to sums of "
                f"{len(other.mean) - 1} columns."
            )
        mass = self.mass + other.mass
        share = other.mass / (mass or 1.0)
        apart = other.mean - self.mean
        # (Chan, Golub and LeVeque, 1979): products of two parts around their common mean
        products = self.products + other.products
        products += (self.mass * share) * np.outer(apart, apart)
        return DocumentSums(mass, self.mean + share * apart, products)

    def solve(self, regressor: Ridge | LinearRegression) -> Any:
        """Return a clone of the regressor, fitted as its `fit` would be on all rows."""
        fitted = clone(regressor)
        mean, products = self.mean, self.products
        if not fitted.fit_intercept:
            products = products + self.mass * np.outer(mean, mean)
            mean = np.zeros_like(mean)
        gram, moment = products[:-1, :-1].copy(), products[:-1, -1]
        if isinstance(fitted, Ridge):
            gram[np.diag_indices_from(gram)] += float(fitted.alpha)
            fitted.solver_ = "cholesky"
            fitted.n_iter_ = None
        # Without a penalty, and for columns that depend on each other, the coefficients of the
        # smallest norm are those that LinearRegression finds.
        if isinstance(fitted, Ridge) and fitted.alpha > 0:
            fitted.coef_ = solve(gram, moment, assume_a="pos")
        else:
            # The eigenvalues of the products are squares of the singular values of the table.
            tol = getattr(fitted, "tol", 0.0) if isinstance(fitted, LinearRegression) else 0.0
            cutoff = max(len(gram) * np.finfo(np.float64).eps, tol**2)
            fitted.coef_, _, rank, values = lstsq(gram, moment, cond=cutoff)
            if isinstance(fitted, LinearRegression):
                fitted.rank_, fitted.singular_ = int(rank), np.sqrt(values)
        fitted.intercept_ = float(mean[-1] - mean[:-1] @ fitted.coef_)
        if not fitted.fit_intercept:
            fitted.intercept_ = 0.0
        fitted.n_features_in_ = len(gram)
        return fitted


def has_closed_form(regressor: Any) -> bool:
    """Return whether `DocumentSums` determine the fit of the regressor.

    This is so for `Ridge` with one number as `alpha`, and for `LinearRegression`, unless
    coefficients must be positive.
    """
    if type(regressor) not in (Ridge, LinearRegression) or regressor.positive:
        return False
    return type(regressor) is LinearRegression or np.ndim(regressor.alpha) == 0
