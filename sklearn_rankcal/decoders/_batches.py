"""Convert a user's matrices to batches of equal size, decode them, and convert the results back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal._kernels import KERNELS
from sklearn_rankcal.decoders._result import Decoded, DecodeResult
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._memory import CACHE_BYTES, rows_per_block
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._numbers import LARGEST, read_numbers, read_whole
from sklearn_rankcal.utils._typing import Floats, Ints


class MatrixInput:
    """Matrices of a user: one square matrix, a list of them, or a padded array."""

    def __init__(self, u: Any, sizes: ArrayLike | None) -> None:
        self.form = "array"  # or "one", or "list"
        self.matrices: Any  # (n, r, r), or a list
        if isinstance(u, (list, tuple)) and (len(u) == 0 or np.ndim(u[0]) == 2):
            self.form = "list"
            self.matrices = [read_numbers(matrix, f"u[{q}]") for q, matrix in enumerate(u)]
        else:
            whole = read_numbers(u, "u")
            if whole.ndim == 2:
                self.form, whole = "one", whole[None]
            if whole.ndim != 3:
                raise ValueError(
                    "u must be a matrix of shape (r, r), a list of them, or an array of shape "
                    f"(n_queries, r, r); it has shape {np.shape(u)}."
                )
            self.matrices = whole
        if len(self.matrices) == 0:
            raise ValueError("u is empty; pass at least one matrix.")
        for q, matrix in enumerate(self.matrices if self.form == "list" else self.matrices[:1]):
            name = f"u[{q}]" if self.form == "list" else "u"
            if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
                raise ValueError(
                    f"{name} must be square, with one row and one column per document; it has "
                    f"shape {matrix.shape}."
                )
            if len(matrix) == 0:
                raise ValueError(f"{name} has no documents (r = 0).")
        self.sizes = self._check_sizes(sizes)

    @property
    def queries(self) -> Queries:
        """The documents, matrix by matrix, as the rows of queries."""
        return Queries.from_groups(np.repeat(np.arange(len(self.sizes)), self.sizes))

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
                f"sizes must have {n} integers, one per matrix; it has shape {given.shape}."
            )
        if given.min() < 1 or given.max() > widest:
            wrong = given[(given < 1) | (given > widest)][0]
            raise ValueError(f"sizes must be between 1 and {widest}, the width of u; got {wrong}.")
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
        if not largest <= LARGEST:  # true for NaN as well
            if np.isfinite(stacked).all():
                raise ValueError(f"u has entries beyond {LARGEST:g}. Divide u by a common factor.")
            q, i, j = np.argwhere(~np.isfinite(stacked))[0]
            where = f"[{i}, {j}]" if self.form == "one" else f"[{which[q]}][{i}, {j}]"
            raise ValueError(f"u contains NaN or infinity (first at u{where}).")
        return stacked

    def result(self, decoded: list[tuple[Ints, Decoded]]) -> DecodeResult:
        """Return the result in the form and order of the input."""
        result = collect_results(decoded, self.sizes)
        if self.form == "list":
            result.ranks = np.split(result.ranks, np.cumsum(self.sizes)[:-1])
            return result
        if self.form == "array":
            padded = np.zeros(self.matrices.shape[:2], dtype=np.int64)
            padded[np.arange(padded.shape[1]) < self.sizes[:, None]] = result.ranks
            result.ranks = padded
            return result
        return DecodeResult(
            result.ranks,
            float(result.objective[0]),
            float(result.lower_bound[0]),
            bool(result.optimal[0]),
            str(result.method[0]),
            int(result.n_iter[0]),
            None if result.threshold is None else float(result.threshold[0]),
            None if result.broken is None else result.broken[0],
            None if result.violation is None else result.violation[0],
        )


def collect_results(decoded: list[tuple[Ints, Decoded]], sizes: Ints) -> DecodeResult:
    """Collect the results of decoded batches as arrays over queries of these sizes.

    The ranks are listed query by query. Warn if ``"exact"`` rankings are not proved optimal.
    """
    n, one = len(sizes), decoded[0][1]
    starts = np.cumsum(sizes) - sizes
    result = DecodeResult(
        np.empty(sizes.sum(), dtype=np.int64),
        np.empty(n),
        np.empty(n),
        np.empty(n, dtype=bool),
        np.empty(n, dtype=object),
        np.zeros(n, dtype=np.int64),
        None if one.threshold is None else np.zeros(n),
        None if one.broken is None else [[] for _ in range(n)],
        None if one.violation is None else np.zeros(n, dtype=np.int64),
    )
    for which, part in decoded:
        result.ranks[starts[which][:, None] + part.order] = part.positions
        result.objective[which] = part.objective
        result.lower_bound[which] = part.lower_bound
        result.optimal[which] = part.optimal
        result.method[which] = part.method
        result.n_iter[which] = part.n_iter
        if part.threshold is not None:
            result.threshold[which] = part.threshold
        if part.broken is not None:
            result.violation[which] = part.violation
            for q, texts in zip(which, part.broken, strict=True):
                result.broken[q] = texts
    unproved = (result.method == "exact") & ~result.optimal
    if unproved.any():
        warn(
            f"{unproved.sum()} of {n} rankings are not proved optimal: time_limit passed before "
            "the proof ended, or more than 500 documents form one strongly connected component, "
            "for which no proof is tried. lower_bound shows how far these rankings can be from "
            "the optimum.",
            ConvergenceWarning,
        )
    return result


def equal_size_batches(sizes: Ints, n_jobs: int | None) -> Iterator[tuple[int, Ints]]:
    """Yield (r, queries of r documents) in batches that fit in the processor's cache.

    With several jobs, yield at least four batches per job.
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

    ``make_batch(which, r)`` creates the batch of the queries `which`. Compiled kernels release
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
