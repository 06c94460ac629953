"""The objective of linear models: a surrogate of linear scores, and a penalty."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # scikit-learn depends on it

from sklearn_rankcal.models._linear_metric import Metric, make_metric
from sklearn_rankcal.models._query_batches import Batch, QueryBatches
from sklearn_rankcal.surrogates import Surrogate

Floats = NDArray[np.float64]


class Value(NamedTuple):
    """The value of the objective and its gradient; `finite` says whether all numbers are."""

    value: float
    of_coef: Floats
    of_intercept: float
    finite: bool


class LinearObjective:
    """f(w, b) = sum over queries of w_q psi(v_q, X_q w + b) + alpha / 2 ||w||^2.

    The parameters of the surrogate psi are those that `Surrogate.resolve` set, and `n_jobs` threads
    share the queries.
    """

    def __init__(
        self, data: QueryBatches, surrogate: Surrogate, alpha: float, n_jobs: int | None = None
    ) -> None:
        self.data = data
        self.surrogate = surrogate
        self.alpha = alpha
        self.fits_intercept = not surrogate.shift_invariant
        self._batches = data.runs()
        n_threads = min(effective_n_jobs(n_jobs), len(self._batches))
        sizes = np.cumsum([batch.queries.n_rows for batch in self._batches])
        edges = np.searchsorted(sizes, sizes[-1] * np.arange(1, n_threads) / n_threads)
        edges = np.unique([0, *edges, len(self._batches)])
        # Each thread adds up a run of batches, so that the sums do not depend on their speed.
        self._shares = [self._batches[first:last] for first, last in pairwise(edges)]

    def evaluate(self, coef: Floats, intercept: float) -> Value:
        """Compute the value and the gradient."""
        if len(self._shares) == 1:
            parts = [_add(self.data, self.surrogate, self._shares[0], coef, intercept)]
        else:
            # The products of each thread run on one processor.
            with threadpool_limits(limits=1, user_api="blas"):
                parts = Parallel(n_jobs=len(self._shares), prefer="threads")(
                    delayed(_add)(self.data, self.surrogate, share, coef, intercept)
                    for share in self._shares
                )
        with np.errstate(over="ignore", invalid="ignore"):
            value = sum(part[0] for part in parts) + self.alpha / 2 * float(coef @ coef)
            slopes = np.sum([part[1] for part in parts], axis=0) + self.alpha * coef
            of_intercept = sum(part[2] for part in parts)
            finite = bool(np.isfinite(value + of_intercept) and np.isfinite(slopes).all())
        return Value(value, slopes, of_intercept, finite)

    def at_constant(self, intercept: float) -> tuple[float, float]:
        """Compute the value and its derivative where all scores are equal, without products."""
        value, slope = 0.0, 0.0
        for batch in self._batches:
            scores = np.full(batch.queries.n_rows, intercept)
            with np.errstate(over="ignore", under="ignore"):
                own, gradient, _ = self.surrogate._evaluate(
                    batch.targets, scores, batch.queries, 1, None
                )
            assert gradient is not None
            value += float(batch.weight @ own)
            slope += float(batch.row_weight() @ gradient)
        return value, slope

    def metric(self, coef: Floats, intercept: float, penalty: float) -> Metric:
        """Return coordinates for solvers, from the curvature at a point plus a positive penalty."""

        def curvature(batch: Batch) -> Floats:
            own = _curvature(self.data, self.surrogate, batch, coef, intercept)
            return batch.row_weight() * own

        return make_metric(self.data, self._batches, curvature, penalty, self.fits_intercept)


def _add(
    data: QueryBatches, surrogate: Surrogate, batches: list[Batch], coef: Floats, intercept: float
) -> tuple[float, Floats, float]:
    """Add up the values and gradients of some batches, without the penalty."""
    value, of_coef, of_intercept = 0.0, np.zeros(len(coef)), 0.0
    for batch in batches:
        own, slopes, shift = batch_gradient(data, surrogate, batch, coef, intercept)
        value += own
        of_coef += slopes
        of_intercept += shift
    return value, of_coef, of_intercept


def batch_gradient(
    data: QueryBatches, surrogate: Surrogate, batch: Batch, coef: Floats, intercept: float
) -> tuple[float, Floats, float]:
    """Return the weighted sum of a surrogate over a batch, and its slopes by w and b.

    Numbers are infinite or NaN if exponentials overflow.
    """
    blocks = list(data.blocks(batch))
    # Rows that fit in one block are read once for both products.
    table = data.read(batch.rows) if len(blocks) == 1 else None
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if table is not None:
            scores = table @ coef + intercept
        else:
            scores = np.concatenate([data.read(rows) @ coef for _, rows in blocks]) + intercept
        if not np.isfinite(scores).all():
            return np.inf, np.full(len(coef), np.nan), np.nan
        value, gradient, _ = surrogate._evaluate(batch.targets, scores, batch.queries, 1, 1)
        assert gradient is not None
        weighted = batch.row_weight() * gradient
        if table is not None:
            of_coef = table.T @ weighted
        else:
            of_coef = np.sum([data.read(rows).T @ weighted[b] for b, rows in blocks], axis=0)
        return float(batch.weight @ value), of_coef, float(weighted.sum())


def _curvature(
    data: QueryBatches, surrogate: Surrogate, batch: Batch, coef: Floats, intercept: float
) -> Floats:
    """Return a number >= 0 for each row: the curvature or, where it is 0 everywhere, the slope."""
    if coef.any():
        scores = np.concatenate([data.read(rows) @ coef for _, rows in data.blocks(batch)])
    else:
        scores = np.zeros(batch.queries.n_rows)
    with np.errstate(over="ignore", under="ignore"):
        result = surrogate._evaluate(batch.targets, scores + intercept, batch.queries, 2, 1)
    bend: Any = result.curvature
    if bend is not None:
        bend = np.where(np.isfinite(bend), np.maximum(bend, 0.0), 0.0)
        if bend.any():
            return bend
    assert result.gradient is not None
    return np.abs(result.gradient)
