"""Convert a user's matrices to batches of equal size, decode them, and convert the results back.

A batch is an array of shape (m, r, r): the matrices of m queries with r documents each.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.decoders._backend import KERNELS
from sklearn_rankcal.decoders._result import Decoded, DecodeResult
from sklearn_rankcal.utils._memory import CACHE_BYTES, rows_per_block
from sklearn_rankcal.utils._numbers import read_array, read_whole

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Sums over a matrix whose entries are smaller stay finite.
LARGEST_ENTRY = 1e290
#: Integers up to this one are exact in float64.
LARGEST_INTEGER = 2.0**53


class MatrixInput:
    """The matrices that a user passed: one square matrix, a list of them, or a padded array.

    Parameters
    ----------
    u : array-like of shape (r, r), list of them, or array-like of shape (n_queries, r, r)
    sizes : array-like of shape (n_queries,) or None
        Numbers of documents of a padded array.
    only_differences : bool, default=False
        Whether only the differences u_ij - u_ji matter. Numbers that float64 cannot hold (integers
        beyond 2^53, fractions, long doubles) are then subtracted in their own arithmetic: u is
        replaced by the positive part of u_ij - u_ji.

    Attributes
    ----------
    sizes : ndarray of shape (n_queries,)
    unavoidable : ndarray of shape (n_queries,)
        The sum of min(u_ij, u_ji) that the subtraction took away from the objective, 0 if there was
        none. Every ranking loses it.
    """

    def __init__(self, u: Any, sizes: ArrayLike | None, only_differences: bool = False) -> None:
        self.form = "array"  # or "one", or "list"
        self.matrices: Any  # (n, r, r), or a list
        if isinstance(u, (list, tuple)) and (len(u) == 0 or np.ndim(u[0]) == 2):
            self.form = "list"
            self.matrices = [_numbers(matrix, f"u[{q}]") for q, matrix in enumerate(u)]
        else:
            whole = _numbers(u, "u")
            if whole.ndim == 2:
                self.form, whole = "one", whole[None]
            if whole.ndim != 3:
                raise ValueError(
                    "u must be a matrix of shape (r, r), a list of them, or an array of shape "
                    f"(n_queries, r, r); it has shape {np.shape(u)}."
                )
            self.matrices = whole
        if len(self.matrices) == 0:
            raise ValueError("u is empty: at least one matrix is needed.")
        for q, matrix in enumerate(self.matrices if self.form == "list" else self.matrices[:1]):
            name = f"u[{q}]" if self.form == "list" else "u"
            if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
                raise ValueError(
                    f"{name} must be square, with one row and one column for each document; it has "
                    f"shape {matrix.shape}."
                )
            if len(matrix) == 0:
                raise ValueError(f"{name} has no documents (r = 0).")
        self.sizes = self._check_sizes(sizes)
        self.unavoidable = np.zeros(len(self.sizes))
        if only_differences:
            self._subtract_first()

    def _subtract_first(self) -> None:
        """Replace matrices that float64 cannot hold by the positive part of their differences."""
        if self.form != "list" and self.matrices.dtype == np.float64:
            return
        replaced = list(self.matrices)
        wide = [q for q, matrix in enumerate(replaced) if not _fits_float64(matrix)]
        for q in wide:
            r = self.sizes[q]
            name = "u" if self.form == "one" else f"u[{q}]"
            replaced[q], self.unavoidable[q] = _differences_first(replaced[q][:r, :r], name)
        if wide and self.form != "list":
            # Entries beyond the size of a query are ignored.
            whole = np.zeros(self.matrices.shape)
            for q, r in enumerate(self.sizes):
                whole[q, :r, :r] = replaced[q][:r, :r]
            self.matrices = whole
        elif wide:
            self.matrices = replaced

    def _check_sizes(self, sizes: ArrayLike | None) -> Ints:
        if sizes is None:
            return np.array([len(matrix) for matrix in self.matrices], dtype=np.int64)
        if self.form != "array":
            raise ValueError(
                "sizes is allowed only if u is a padded array of shape (n_queries, r, r)."
            )
        given = read_whole(sizes, "sizes")
        n, widest = self.matrices.shape[:2]
        if given.shape != (n,):
            raise ValueError(
                f"sizes must hold {n} integers, one for each matrix; it has shape {given.shape}."
            )
        if given.min() < 1 or given.max() > widest:
            wrong = given[(given < 1) | (given > widest)][0]
            raise ValueError(f"sizes must lie between 1 and {widest}, the width of u; got {wrong}.")
        return given

    def batch(self, which: Ints, r: int) -> Floats:
        """Return the matrices of the queries `which`, of r documents each, as a contiguous batch.

        Raises ValueError if an entry is NaN, infinite or too large.
        """
        stacked: Floats
        if self.form == "list":
            stacked = np.stack([self.matrices[q] for q in which])
        else:
            first, last = which[0], which[-1] + 1
            run = last - first == len(which)
            stacked = self.matrices[first:last] if run else self.matrices[which]
            stacked = stacked[:, :r, :r]
        stacked = np.ascontiguousarray(stacked, dtype=np.float64)
        largest = max(-stacked.min(), stacked.max())
        if not largest < LARGEST_ENTRY:  # true for NaN as well
            if np.isfinite(stacked).all():
                raise ValueError(
                    f"u has entries beyond {LARGEST_ENTRY:.0e}, whose sums would overflow. Divide "
                    "u by a common factor."
                )
            q, i, j = np.argwhere(~np.isfinite(stacked))[0]
            where = f"[{i}, {j}]" if self.form == "one" else f"[{which[q]}][{i}, {j}]"
            raise ValueError(f"u contains NaN or infinity (first at u{where}).")
        return stacked

    def result(self, decoded: list[tuple[Ints, Decoded]]) -> DecodeResult:
        """Put the decoded batches back into the form and order of the input."""
        n = len(self.sizes)
        if self.form == "list":
            ranks: Any = [np.empty(r, dtype=np.int64) for r in self.sizes]
            for which, part in decoded:
                for q, order in zip(which, part.order, strict=True):
                    ranks[q][order] = np.arange(1, len(order) + 1)
        else:
            ranks = np.zeros((n, self.matrices.shape[1]), dtype=np.int64)
            for which, part in decoded:
                ranks[which[:, None], part.order] = np.arange(1, part.order.shape[1] + 1)
        result = collect_results(decoded, n, ranks)
        result.objective += self.unavoidable
        result.lower_bound += self.unavoidable
        if self.form != "one":
            return result
        return DecodeResult(
            ranks[0],
            float(result.objective[0]),
            float(result.lower_bound[0]),
            bool(result.optimal[0]),
            str(result.method[0]),
            int(result.n_iter[0]),
            None if result.threshold is None else float(result.threshold[0]),
        )


def _numbers(matrix: Any, name: str) -> Floats:
    """Read a matrix of real numbers; float64 unless it cannot hold them exactly."""
    if issparse(matrix):
        raise ValueError(f"{name} must be a dense matrix; it is sparse. Call toarray() first.")
    if np.ma.is_masked(matrix):
        raise ValueError(
            f"{name} has masked entries. Every pair needs a weight; fill them with 0 for no "
            "preference."
        )
    array = read_array(matrix, name)
    if array.dtype.kind == "f":
        return array
    try:
        floats = array.astype(np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} has numbers that float64 cannot hold: {error}.") from error
    # Integers beyond 2^53 and fractions keep their type until they are subtracted.
    if array.dtype.kind == "O":
        return floats if (array == floats).all() else array
    large = array.dtype.kind in "iu" and (np.abs(floats) > LARGEST_INTEGER).any()
    return array if large else floats


def _fits_float64(matrix: Any) -> bool:
    """Whether float64 holds the entries of a matrix exactly."""
    if matrix.dtype.kind == "f" and matrix.dtype.itemsize <= 8:
        return True
    return matrix.dtype.kind in "f" and bool((matrix == matrix.astype(np.float64)).all())


def _differences_first(matrix: Any, name: str) -> tuple[Floats, float]:
    """Subtract in the arithmetic of the entries, and only then round to float64.

    Returns the positive part of u_ij - u_ji, and the sum over pairs of min(u_ij, u_ji).
    """
    if matrix.dtype.kind == "f":
        exact, whole = matrix, False
        if not np.isfinite(matrix.astype(np.float64)).all():
            return matrix.astype(np.float64), 0.0  # `MatrixInput.batch` raises the error
    else:
        try:
            exact = np.vectorize(_as_exact, otypes=[object])(matrix)
        except (TypeError, ValueError, OverflowError):  # NaN, infinity
            return matrix.astype(np.float64), 0.0  # `MatrixInput.batch` raises the error
        whole = True
    differences = exact - exact.T
    d = differences.astype(np.float64)
    if whole:
        for i, j in np.argwhere(np.abs(d) > LARGEST_INTEGER):
            if differences[i, j].denominator == 1 and int(d[i, j]) != differences[i, j]:
                raise ValueError(
                    f"{name} holds integers whose differences float64 cannot hold. The entries "
                    f"[{i}, {j}] and [{j}, {i}] differ by {differences[i, j]}, beyond 2^53. Divide "
                    f"{name} by a common factor, or pass it as floats to accept their rounding."
                )
    upper = np.triu_indices(len(matrix), 1)
    unavoidable = np.minimum(exact[upper], exact.T[upper]).sum() if len(upper[0]) else 0
    return np.maximum(d, 0.0), float(unavoidable)


def _as_exact(value: Any) -> Fraction:
    """A number as a fraction, without rounding; raises for NaN and infinity."""
    return Fraction(int(value)) if isinstance(value, np.integer) else Fraction(value)


def collect_results(decoded: list[tuple[Ints, Decoded]], n: int, ranks: Any) -> DecodeResult:
    """Collect the objectives, bounds and counts of decoded batches as arrays over n queries.

    Warns if ``"exact"`` was asked for and some rankings are not proved optimal.
    """
    result = DecodeResult(
        ranks,
        np.empty(n),
        np.empty(n),
        np.empty(n, dtype=bool),
        np.empty(n, dtype=object),
        np.zeros(n, dtype=np.int64),
        None if decoded[0][1].threshold is None else np.zeros(n),
    )
    for which, part in decoded:
        result.objective[which] = part.objective
        result.lower_bound[which] = part.lower_bound
        result.optimal[which] = part.optimal
        result.method[which] = part.method
        result.n_iter[which] = part.n_iter
        if part.threshold is not None:
            result.threshold[which] = part.threshold
    unproved = (result.method == "exact") & ~result.optimal
    if unproved.any():
        warnings.warn(
            f"{unproved.sum()} of {n} rankings are not proved optimal: time_limit passed before "
            "the proof ended, or more than 500 documents form one strongly connected component, "
            "for which no proof is tried. See lower_bound for how far these rankings can be from "
            "the optimum.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return result


def equal_size_batches(sizes: Ints, n_jobs: int | None) -> Iterator[tuple[int, Ints]]:
    """Yield (r, queries of r documents) so that each batch stays in the processor's cache.

    With several jobs, the batches are so small that there are at least four for each job.
    """
    if len(sizes) == 1:
        yield int(sizes[0]), np.zeros(1, dtype=np.int64)
        return
    workers = effective_n_jobs(n_jobs)
    order = np.argsort(sizes, kind="stable")
    edges = np.flatnonzero(np.diff(sizes[order], prepend=-1, append=-1))
    for first, last in pairwise(edges):
        r = int(sizes[order[first]])
        step = rows_per_block(8 * r * r, CACHE_BYTES)
        if workers > 1:
            step = min(step, -(-len(sizes) // (4 * workers)))
        for start in range(first, last, step):
            yield r, order[start : min(start + step, last)]


def decode_batches(
    decode: Callable[[Floats], Decoded],
    make_batch: Callable[[Ints, int], Floats],
    sizes: Ints,
    n_jobs: int | None,
) -> list[tuple[Ints, Decoded]]:
    """Decode batch by batch, in parallel with `n_jobs`; return queries and results of each batch.

    ``make_batch(which, r)`` makes the batch of the queries `which`. Compiled kernels release
    Python's lock and run in threads. NumPy's kernels need processes.
    """
    if n_jobs is not None and (
        not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0
    ):
        raise ValueError(f"n_jobs must be None or an integer other than 0; got {n_jobs!r}.")
    pieces = list(equal_size_batches(sizes, n_jobs))
    workers = min(effective_n_jobs(n_jobs), len(pieces))
    if workers == 1:
        return [(which, decode(make_batch(which, r))) for r, which in pieces]
    prefer = "threads" if KERNELS == "compiled" else "processes"
    parts = Parallel(n_jobs=workers, prefer=prefer)(
        delayed(decode)(make_batch(which, r)) for r, which in pieces
    )
    return [(which, part) for (_, which), part in zip(pieces, parts, strict=True)]
