"""Sums over queries or documents, for fits in closed form."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, solve
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

from sklearn_rankcal.utils._memory import row_blocks
from sklearn_rankcal.utils._numbers import Floats


def solve_nonnegative(gram: Floats, moment: Floats, penalty: float, center: Any) -> Floats:
    """Minimise w'Gw - 2 w'm + penalty ||w - center||^2 over w >= 0."""
    # With the Cholesky factor LL' of G + penalty I, this is ||L'w - L^-1 (m + penalty center)||^2.
    factor = np.linalg.cholesky(gram + penalty * np.eye(len(gram)))
    return nnls(factor.T, np.linalg.solve(factor, moment + penalty * center))[0]


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the queries of a part of the data. Add the sums of two parts with ``+``."""

    #: fields combined by maximum instead of sum
    _maxima: ClassVar[tuple[str, ...]] = ()

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        added = {}
        for name in (field.name for field in fields(self)):
            one, two = getattr(self, name), getattr(other, name)
            if np.shape(one) != np.shape(two):
                raise ValueError(
                    f"Sums of different columns cannot be added: {name} has the shapes "
                    f"{np.shape(one)} and {np.shape(two)}."
                )
            added[name] = np.maximum(one, two) if name in self._maxima else one + two
        return type(self)(**added)


@dataclass(frozen=True, eq=False)
class DocumentSums:
    """Means and products of the columns of a table and its targets.

    Products of differences from the mean lose no digits for columns with a large mean.
    """

    mass: float  # sum of the weights v_i of the rows
    mean: Floats  # weighted mean of z_i = (x_i, t_i), the columns of row i followed by its target
    products: Floats  # sum of v_i (z_i - mean)(z_i - mean)'

    @classmethod
    def of(cls, X: NDArray[Any], targets: Floats, weight: Floats | None = None) -> DocumentSums:
        """Sum over rows in O(n d^2) time, with O(d^2) memory plus a block of rows."""
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
        """Return a clone of the regressor, as if fitted to all rows."""
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
        # without a penalty and with dependent columns, LinearRegression finds the coefficients of
        # smallest norm
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

    True for `Ridge` with a single `alpha` and for `LinearRegression`, unless ``positive=True``.
    """
    if type(regressor) not in (Ridge, LinearRegression) or regressor.positive:
        return False
    return type(regressor) is LinearRegression or np.ndim(regressor.alpha) == 0
