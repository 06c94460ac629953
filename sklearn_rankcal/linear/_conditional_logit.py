"""Conditional logit: Newton's method for softmax, and what the choices say of its coefficients.

The model of McFadden (1974) chooses row i of a query with the probability e^(x_i w) / sum_j
e^(x_j w). Minus its log-likelihood is the softmax surrogate without a penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.optimize import OptimizeResult, linprog
from scipy.special import stdtr, stdtrit

from sklearn_rankcal.linear._linear_objective import (
    _ROUNDING,
    Batch,
    LinearObjective,
    Point,
    Progress,
    _moments,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import ranges
from sklearn_rankcal.surrogates._additive import log_sum_exp
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints

#: The most columns for Newton's method with a penalty, and for a fit without one. An iteration
#: takes O(n_documents n_features^2) time, and one of L-BFGS O(n_documents n_features).
NEWTON_COLUMNS, FREE_COLUMNS = 100, 1000
#: Columns are constant in queries if the part of their squares within them is below the first
#: number, and collinear if an eigenvalue of their correlations is below the second.
_CONSTANT, _COLLINEAR = 1e-24, 1e-12
#: Newton's method hardly needs this number of steps to a maximum. On the way to infinity, scores
#: move by 1 with each step.
_STEPS = 14
#: A cluster with a larger share of the information counts as the only one.
_ALL = 0.99


class NotIdentified(ValueError):
    """No finite coefficients are the only ones with the largest likelihood."""

    def __init__(self, columns: Bools, why: str, names: Sequence[Any] = ()) -> None:
        found = [(names or range(len(columns)))[one] for one in np.flatnonzero(columns).tolist()]
        super().__init__(f"With alpha=0, columns {found} have {why}, or set alpha > 0.")
        self.columns, self.why = columns, why


def newton(
    objective: LinearObjective, start: Point, max_iter: int, progress: Progress
) -> tuple[Point, OptimizeResult]:
    """Minimise the softmax surrogate plus the penalty, to the precision of its value.

    Without a penalty, raise `NotIdentified` if the minimum is not unique or not finite.
    """
    data = objective.data
    if objective.alpha == 0 and sparse.issparse(data.X):  # its sums of squares lose half the digits
        data.X = data.X.toarray()
    if not sparse.issparse(data.X):
        # only differences within queries count: do not lose their digits to large means
        data.center = data.X.mean(axis=0, dtype=np.float64)
    coef, found = start[0], objective.evaluate(*start)
    zero = np.zeros(len(coef))
    precision = _ROUNDING * objective.evaluate(zero, 0.0).value
    if objective.alpha == 0:
        refuse_undetermined(objective, information(objective, zero))
    for number in range(1, max_iter + 1):
        white = _whitener(information(objective, coef) + objective.alpha * np.eye(len(coef)))
        slope = white @ found.of_coef
        step, fall = -white.T @ slope, float(slope @ slope)
        parts = (data.read(rows) for b in objective._batches for _, rows in data.blocks(b))
        success = fall <= precision and all(abs(part @ step).max() < 0.01 for part in parts)
        if objective.alpha == 0 and number == _STEPS:
            refuse_infinite(objective)
        # halve the step until the value falls by a part of what its slope promises
        for length in 0.5 ** np.arange(60.0):
            trial = objective.evaluate(coef + length * step, 0.0)
            most = found.value * (1 + _ROUNDING) + precision - 1e-4 * length * fall
            if trial.finite and trial.value <= most:
                break
        coef, found = coef + length * step, trial
        progress(number, found.value, float(np.abs(slope).max(initial=0.0)))
        if success:
            break
    return (coef, 0.0), OptimizeResult(nit=number, success=success, message="not at the minimum")


def information(objective: LinearObjective, coef: Floats, power: int = 1) -> Floats:
    """Return the Hessian matrix of the surrogate, with the weights to this power."""
    total = np.zeros((len(coef), len(coef)))
    for batch in objective._batches:
        bend = batch.queries.repeat(batch.weight ** (power - 1)) * _expected(objective, batch, coef)
        total += _moments(objective.data, batch, bend, True, True)[1]
    return total


def _expected(objective: LinearObjective, batch: Batch, coef: Floats) -> Floats:
    """Return the expected weight of the choices of each row, in grouped layout."""
    data, queries = objective.data, batch.queries
    scores = np.concatenate([data.read(rows) @ coef for _, rows in data.blocks(batch)])
    mass = np.log(batch.weight) + np.log(np.maximum(queries.reduce(np.add, batch.targets), 1e-300))
    expected: Floats = np.exp(scores + queries.repeat(mass - log_sum_exp(scores, queries)))
    return expected


# ---------------------------------------------------------------- collinear and separated columns


def refuse_undetermined(objective: LinearObjective, equal: Floats) -> None:
    """Raise `NotIdentified` for columns that are constant in all queries, or collinear.

    `equal` is the information at w = 0: the products of the columns, centred in each query.
    """
    equal_shares = ((b, _expected(objective, b, np.zeros(len(equal)))) for b in objective._batches)
    squares = sum(_moments(objective.data, *pair, False, False)[1] for pair in equal_shares)
    columns = np.diag(equal) <= _CONSTANT * squares
    if not columns.any():
        size = np.sqrt(np.diag(equal))
        values, vectors = np.linalg.eigh(equal / size / size[:, None])
        columns = (np.abs(vectors[:, values < _COLLINEAR]) > 1e-6).any(axis=1)
    if columns.any():
        raise NotIdentified(
            columns,
            "no unique coefficients, because a linear combination of them is constant in each "
            "query. Multiply attributes of a person by indicators of alternatives, leave out one "
            "alternative or column",
        )


def refuse_infinite(objective: LinearObjective) -> None:
    """Raise `NotIdentified` if the likelihood rises for ever in some direction (separation).

    That is, if some w gives no row a larger score than a chosen row of its query, and not only
    equal scores (Albert and Anderson, 1984).
    """
    found = []
    for batch in objective._batches:  # the chosen rows minus the other rows of their queries
        table, queries = objective.data.read(batch.rows), batch.queries
        chosen = np.flatnonzero(batch.targets)
        query = np.repeat(np.arange(queries.n_queries), queries.sizes)[chosen]
        differences = np.repeat(table[chosen], queries.sizes[query], axis=0)
        differences -= table[ranges(queries.offsets, query)[0]]
        found.append(differences[differences.any(axis=1)])
    leads: Floats = np.concatenate(found)
    leads /= np.abs(leads).max(axis=0)
    columns: Bools = np.all(leads >= 0, axis=0) | np.all(leads <= 0, axis=0)
    if not columns.any():
        # the sparsest w without a negative lead, and with the mean lead 1
        both = np.hstack([leads, -leads])
        best = linprog(
            np.ones(both.shape[1]), -both, np.zeros(len(both)), both.mean(axis=0)[None], [1.0]
        )
        if best.status != 0:
            return
        columns = np.abs(np.subtract(*np.split(best.x, 2))) > 1e-6 * best.x.max()
    raise NotIdentified(
        columns,
        "no finite coefficients, because by a linear combination of them no row comes before the "
        "chosen row of its query (separation). Look for columns that follow from the choice, leave "
        "out alternatives and attributes that are never chosen",
    )


def _whitener(matrix: Floats) -> Floats:
    """Return W with W matrix W' = 1, for columns in any units."""
    size = np.sqrt(np.diag(matrix)) + np.finfo(float).tiny
    # the information may vanish in some direction, before the minimum or on the way to infinity
    root = np.linalg.cholesky(matrix / size / size[:, None] + 1e-13 * np.eye(len(size)))
    return np.asarray(solve_triangular(root, np.diag(1 / size), lower=True))


# ---------------------------------------------------------------- standard errors


def find_evidence(
    objective: LinearObjective, coef: Floats, clusters: Ints | None
) -> ChoiceSummary | None:
    """Return what the choices say of the coefficients with the largest likelihood.

    `clusters` has a number for each row. None if the targets are not numbers of choices.
    """
    data = objective.data
    if (data.targets % 1).any():
        return None
    chosen = Queries(data.queries.offsets).sum(data.targets)
    counts = (chosen > 0) & (data.queries.sizes > 1)
    unit = float(data.weight[counts].mean())  # the unit of weights does not matter
    equal, best = (-objective.evaluate(w, 0.0).value / unit for w in (0 * coef, coef))
    white = _whitener(information(objective, coef))
    degrees, n_clusters = np.full(len(coef), np.inf), None
    if clusters is None:  # the covariance of the scores if the model is right: squared weights
        meat = white @ information(objective, coef, power=2) @ white.T
    else:
        if not data.queries.have_equal(clusters):
            raise ValueError("All rows of a query must have the same value in clusters.")
        of_query, numbers = data.queries.max(clusters), np.flatnonzero(counts)
        parts = Queries.from_codes(np.unique(of_query[numbers], return_inverse=True)[1])
        members = np.split(numbers[parts.order], parts.offsets[1:-1])
        n_clusters = len(members)
        meat, degrees = _by_cluster(objective, coef, white, members)
    covariance = white.T @ meat @ white
    covariance[degrees == 0] = covariance[:, degrees == 0] = np.nan
    n_choices, size = round(float(chosen[counts].sum())), len(coef)
    fit = 1 - best / equal, 2 * (size - best), float(np.log(n_choices)) * size - 2 * best
    counts_of = n_choices, int((~counts).sum()), n_clusters
    return ChoiceSummary(np.arange(size), coef, covariance, degrees, best, equal, *fit, *counts_of)


def _by_cluster(
    objective: LinearObjective, coef: Floats, white: Floats, members: list[Ints]
) -> tuple[Floats, Floats]:
    """Return the covariance of the scores of clusters, and the degrees of freedom of coefficients.

    In the coordinates with the information 1, the score u of a cluster with the information J has
    the covariance J - J^2 instead of J, because the fit uses it, too. (1 - J)^(-1/2) u corrects
    that (CR2 of Bell and McCaffrey, 2002, Survey Methodology 28). O(n_clusters n_features^3) time.
    """
    meat, shares = np.zeros_like(white), np.empty((len(members), len(coef)))
    for cluster, numbers in enumerate(members):
        batch = objective.data.take(numbers)
        queries, weight = batch.queries, batch.row_weight()
        table, bend = objective.data.read(batch.rows), _expected(objective, batch, coef)
        mean = queries.reduce(np.add, bend[:, None] * table) / queries.reduce(np.add, bend)[:, None]
        table = (table - queries.repeat(mean)) @ white.T
        values, vectors = np.linalg.eigh(table.T @ (bend[:, None] * table))
        score = vectors.T @ (table.T @ (weight * batch.targets - bend))
        # what the cluster alone informs has no residual
        left = np.maximum(1 - values, 1e-8)
        score = vectors @ np.where(left > 1e-8, score / np.sqrt(left), 0.0)
        meat += np.outer(score, score)
        shares[cluster] = values @ np.square(vectors.T @ white)
    # Satterthwaite's approximation, n - 1 for n equal shares
    square = np.square(shares / np.square(white).sum(axis=0))
    over = square / (1 - np.minimum(np.sqrt(square), _ALL))
    inverse = square.sum(axis=0) + over.sum(axis=0) ** 2 - np.square(over).sum(axis=0)
    return meat, np.where(square.max(axis=0) > _ALL**2, 0.0, 1 / inverse)


@dataclass(repr=False)
class ChoiceSummary:
    """The table of a conditional logit: coefficients, standard errors, and the fit.

    `LinearRanker.summary` returns it, and ``print`` shows it.

    Attributes
    ----------
    columns, coef : ndarray of shape (n_features,)
        Names of the columns, and coefficients.
    covariance : ndarray of shape (n_features, n_features)
        Covariance of the coefficients.
    degrees : ndarray of shape (n_features,)
        Degrees of freedom: infinite without clusters, and 0 (with the covariance NaN) if one
        cluster decides a coefficient alone.
    log_likelihood, log_likelihood_equal : float
        Log-likelihood of the fit, and of equal shares of the rows of a query. Weights are scaled to
        the mean 1.
    mcfadden_r2, aic, bic : float
        McFadden's R2, 1 - log_likelihood / log_likelihood_equal, and information criteria.
    n_choices, n_silent, n_clusters : int
        Numbers of choices, of queries without a choice or with one row, and of clusters or None.
    confidence_level : float
        Confidence level of the intervals.
    """

    columns: NDArray[Any]
    coef: Floats
    covariance: Floats
    degrees: Floats
    log_likelihood: float
    log_likelihood_equal: float
    mcfadden_r2: float
    aic: float
    bic: float
    n_choices: int
    n_silent: int
    n_clusters: int | None
    confidence_level: float = 0.95

    @property
    def table(self) -> dict[str, NDArray[Any]]:
        """The columns of `to_frame`."""
        known, free = self.degrees > 0, np.clip(self.degrees, 1e-9, 1e9)
        error = np.where(known, np.sqrt(np.diag(self.covariance)), np.inf)
        z, quantile = self.coef / error, stdtrit(free, (1 + self.confidence_level) / 2)
        width = np.where(known, quantile, 1.0) * error
        table = {"column": self.columns, "coef": self.coef, "std_error": error, "z": z}
        table["p_value"] = 2 * stdtr(free, -np.abs(z))
        table |= {"low": self.coef - width, "high": self.coef + width}
        return table if self.n_clusters is None else table | {"degrees": self.degrees}

    def to_frame(self) -> Any:
        """Convert the table to a pandas data frame.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_features, n_columns)
            The columns are ``column``, ``coef``, ``std_error``, ``z`` (the ratio of the two),
            ``p_value`` (two-sided, of a coefficient of 0), ``low`` and ``high`` (the interval), and
            with clusters ``degrees``. With these, z has Student's distribution.
        """
        import pandas as pd

        return pd.DataFrame(self.table)

    def __repr__(self) -> str:
        clusters = self.n_clusters
        errors = "the information" if clusters is None else counted(clusters, "cluster")
        silent = f", {counted(self.n_silent, 'query')} without a choice" if self.n_silent else ""
        width = max(len(str(name)) for name in self.columns)
        lines = [
            f"Conditional logit of {counted(self.n_choices, 'choice')}{silent}",
            f"log-likelihood {self.log_likelihood:.3f}, of equal shares "
            f"{self.log_likelihood_equal:.3f}",
            f"McFadden's R2 {self.mcfadden_r2:.4f}, AIC {self.aic:.2f}, BIC {self.bic:.2f}",
            f"standard errors from {errors}, intervals of {100 * self.confidence_level:g} %",
            " " * width + "".join(f"{head:>11}" for head in [*self.table][1:]),
        ]
        for name, *row in zip(*self.table.values(), strict=True):
            lines.append(f"{name!s:{width}}" + "".join(f"{value:11.4g}" for value in row))
        return "\n".join(lines)
