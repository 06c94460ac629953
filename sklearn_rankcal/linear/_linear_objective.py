"""The objective of linear models (a surrogate of linear scores plus a penalty) and its data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from sklearn.utils.validation import check_array
from threadpoolctl import threadpool_limits  # scikit-learn depends on it

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import ranges
from sklearn_rankcal.surrogates import Surrogate
from sklearn_rankcal.targets._targets import RedrawnTargets
from sklearn_rankcal.utils._features import stored_columns
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._numbers import Floats, Ints

#: Bytes of a block of rows in float64. A block stays in the processor's cache between the product
#: with the coefficients and the product with the gradient.
_BLOCK_BYTES = 1 << 22


def linear_table(X: Any) -> Any:
    """Check that X is finite and numeric; return an array or a CSR matrix of float32 or float64."""
    return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")


def block_rows(X: Any) -> int:
    """Return the number of rows in a block of a table."""
    return rows_per_block(8 * max(1, stored_columns(X)), _BLOCK_BYTES)


def row_scores(X: Any, coef: Floats) -> Floats:
    """Compute X coef in float64, with equal scores for equal rows at any position."""
    if sparse.issparse(X):
        return X @ coef
    scores = np.empty(X.shape[0])
    step = block_rows(X)
    for first in range(0, len(scores), step):
        block = np.asarray(X[first : first + step], dtype=np.float64)
        # A matrix product sums the last rows of a block in a different order than earlier rows.
        scores[first : first + step] = np.einsum("ij,j->i", block, coef)
    return scores


class Batch(NamedTuple):
    """Some queries in grouped layout, each with its rows of the table, targets and a weight."""

    rows: slice | Ints
    queries: Queries
    targets: Any
    weight: Floats

    def row_weight(self) -> Floats:
        """The weight of the query of each row."""
        return self.queries.repeat(self.weight)


class QueryBatches:
    """Checked training data, split into runs or lists of queries.

    X is the output of `linear_table`. It is read in float64 blocks and not copied. Targets are in
    row layout. The weight of a query is the mean weight of its rows.
    """

    def __init__(
        self, X: Any, targets: Any, queries: Queries, sample_weight: Floats | None = None
    ) -> None:
        self.X = X
        self.queries = queries
        self._block_rows = block_rows(X)
        if sample_weight is None:
            self.weight = np.ones(queries.n_queries)
        else:
            self.weight = queries.mean(sample_weight)
        self._draw = None
        if isinstance(targets, RedrawnTargets):
            targets, self._draw = targets
        if isinstance(targets, Preferences):
            if queries.order is not None:
                place = queries.scatter(np.arange(queries.n_rows))
                grouped = Queries(queries.offsets)
                targets = Preferences(
                    grouped, place[targets.winner], place[targets.loser], targets.weight
                )
        else:
            targets = queries.gather(np.asarray(targets, dtype=np.float64))
            if self._draw is not None:
                targets = targets.copy()  # `redraw` writes into it
        self.targets = targets
        self._of_size: dict[int, Queries] = {}

    @property
    def n_queries(self) -> int:
        return self.queries.n_queries

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def runs(self) -> list[Batch]:
        """Split the queries into runs of consecutive queries with about one block of rows each."""
        sizes = [part.n_queries for _, part in self.queries.chunks(self._block_rows)]
        return [
            self.take(run) for run in np.split(np.arange(self.n_queries), np.cumsum(sizes)[:-1])
        ]

    def take(self, numbers: Ints) -> Batch:
        """Return the queries with these numbers, in this order."""
        starts, sizes = self.queries.offsets[numbers], self.queries.sizes[numbers]
        if len(numbers) == 1:
            part = self._single(int(sizes[0]))
        else:
            part = Queries(np.append(0, np.cumsum(sizes)))
        if (np.diff(numbers) == 1).all():
            places: slice | Ints = slice(int(starts[0]), int(starts[0]) + part.n_rows)
        else:
            places, _ = ranges(self.queries.offsets, numbers)
        order = self.queries.order
        rows = places if order is None else order[places]
        targets = self.targets
        if isinstance(targets, Preferences):
            of_query = targets.pair_offsets
            counts = of_query[numbers + 1] - of_query[numbers]
            pairs, _ = ranges(of_query, numbers)
            shift = np.repeat(part.offsets[:-1] - starts, counts)
            targets = Preferences(
                part,
                targets.winner[pairs] + shift,
                targets.loser[pairs] + shift,
                targets.weight[pairs],
            )
        else:
            targets = targets[places]
        return Batch(rows, part, targets, self.weight[numbers])

    @property
    def redraws(self) -> bool:
        """Whether new targets can be drawn."""
        return self._draw is not None

    def redraw(self, numbers: Ints) -> None:
        """Replace the targets of some queries by newly drawn ones."""
        assert self._draw is not None
        places, _ = ranges(self.queries.offsets, numbers)
        self.targets[places] = self._draw(numbers)

    def _single(self, size: int) -> Queries:
        """Return one query of this size, cached because sgd uses it in thousands of steps."""
        if size not in self._of_size:
            self._of_size[size] = Queries.single(size)
        return self._of_size[size]

    def read(self, rows: slice | Ints) -> Any:
        """Return rows of the table as float64, or as a CSR matrix."""
        part = self.X[rows]
        return part if sparse.issparse(part) else np.asarray(part, dtype=np.float64)

    def blocks(self, batch: Batch) -> Iterator[tuple[slice, slice | Ints]]:
        """Yield, for each block of the batch, its positions in the batch and rows of the table."""
        step, n_rows = self._block_rows, batch.queries.n_rows
        for first in range(0, n_rows, step):
            inside = slice(first, min(first + step, n_rows))
            if isinstance(batch.rows, slice):
                start = batch.rows.start
                yield inside, slice(start + inside.start, start + inside.stop)
            else:
                yield inside, batch.rows[inside]


class Value(NamedTuple):
    """The value and gradient of the objective, and whether all of these numbers are finite."""

    value: float
    of_coef: Floats
    of_intercept: float
    finite: bool


class LinearObjective:
    """f(w, b) = sum over queries of w_q psi(v_q, X_q w + b) + alpha / 2 ||w||^2.

    The surrogate psi must be resolved (`Surrogate.resolve`). `n_jobs` threads share the queries.
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
        # Each thread sums a fixed run of batches: the sums do not depend on the threads' speed.
        self._shares = [self._batches[first:last] for first, last in pairwise(edges)]

    def evaluate(self, coef: Floats, intercept: float) -> Value:
        """Compute the value and the gradient."""
        if len(self._shares) == 1:
            parts = [_add(self.data, self.surrogate, self._shares[0], coef, intercept)]
        else:
            # Each thread uses one processor for its matrix products.
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
        """Compute the value and its derivative for equal scores, without matrix products."""
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

    def curvature(self, coef: Floats, intercept: float) -> Iterator[tuple[Batch, Floats]]:
        """Yield batches, each with the weighted second derivative by the score of each row.

        Where the second derivatives are all 0, use the absolute slopes instead.
        """
        for batch in self._batches:
            if coef.any():
                blocks = self.data.blocks(batch)
                scores = np.concatenate([self.data.read(rows) @ coef for _, rows in blocks])
            else:
                scores = np.zeros(batch.queries.n_rows)
            with np.errstate(over="ignore", under="ignore"):
                result = self.surrogate._evaluate(
                    batch.targets, scores + intercept, batch.queries, 2, 1
                )
            assert result.gradient is not None
            bend: Any = result.curvature
            if bend is not None:
                bend = np.where(np.isfinite(bend), np.maximum(bend, 0.0), 0.0)
            if bend is None or not bend.any():
                bend = np.abs(result.gradient)
            yield batch, batch.row_weight() * bend


def _add(
    data: QueryBatches, surrogate: Surrogate, batches: list[Batch], coef: Floats, intercept: float
) -> tuple[float, Floats, float]:
    """Sum the values and gradients of some batches, without the penalty."""
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
    """Return the weighted sum of a surrogate over a batch, and its derivatives by w and b.

    The results are infinite or NaN if exponentials overflow.
    """
    blocks = list(data.blocks(batch))
    # Read rows that fit in one block only once for both products.
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
