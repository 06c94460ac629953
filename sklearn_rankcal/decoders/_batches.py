"""What the decoders share: results, options of the search, and batches of matrices.

A `MatrixInput` converts a user's matrices, and a `MatrixDecoder` the predictions of a ranker, to
batches of equal size, which are decoded one by one. Both convert the results back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklearn_rankcal._kernels import KERNELS, WANTED, kernels
from sklearn_rankcal.exceptions import UncompiledKernelsWarning
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS, Space
from sklearn_rankcal.utils._memory import CACHE_BYTES, rows_per_block
from sklearn_rankcal.utils._messages import check_choice, check_count, warn
from sklearn_rankcal.utils._numbers import LARGEST, Floats, Ints, read_numbers, read_whole


@dataclass
class DecodeResult:
    """Rankings, and bounds on their distance from the best ones.

    For a single matrix, the attributes are scalars. For a batch, they are arrays with one entry per
    query.

    Attributes
    ----------
    ranks : ndarray of int64, or list of them
        Position of each document in its query, 1 = top. The shape is (r,) for one matrix, and
        (n_queries, r) for a padded array, with 0 in the padding. For a list of matrices, it is a
        list of arrays. Decoder objects return shape (n_documents,), in the order of the rows.
    objective : float or ndarray of shape (n_queries,)
        Value of the objective for this ranking. NaN for a sort of scores, which minimises every
        positional loss (Calauzènes et al., 2013, theorem 3.2).
    lower_bound : float or ndarray of shape (n_queries,)
        Lower bound on the objective of every ranking, up to the rounding that ``optimal`` allows.
    optimal : bool or ndarray of shape (n_queries,)
        Whether the ranking is proved to minimise the objective, up to rounding. For preferences: no
        ranking contradicts less weight, up to 1e-11 of the contradicted weight. The proof is strict
        if all weights are multiples of a common unit, such as integers, decimals or averages of
        votes, and the contradicted weight is less than 1e10 units. For average precision: no
        ranking has a larger value, up to 1e-13 of the value for absolute entries.
    method : str or ndarray of shape (n_queries,)
        The method that was used. For ``"auto"``, the method that it chose.
    n_iter : int or ndarray of shape (n_queries,)
        Number of sweeps of the local search, plus the number of linear programs and dynamic
        programs solved. 0 for other methods.
    threshold : float or ndarray of shape (n_queries,), or None
        Weight of the heaviest edge that ``"greedy_dag"`` deleted, 0 without cycles. None for other
        methods.
    broken : list of list of str, or None
        Soft rules that the ranking of each query breaks. None without rules.
    violation : int or ndarray of shape (n_queries,), or None
        Number of places, pairs and documents by which it breaks soft rules. The objective includes
        the cost ``soft`` for each. None without rules.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import decode_preferences
    >>> result = decode_preferences([[0, 7, 10], [3, 0, 10], [0, 0, 0]])
    >>> result.ranks.tolist(), result.objective, result.gap, result.optimal
    ([1, 2, 3], 3.0, 0.0, True)
    """

    ranks: Any
    objective: Any
    lower_bound: Any
    optimal: Any
    method: Any
    n_iter: Any = 0
    threshold: Any = None
    broken: Any = None
    violation: Any = None

    @property
    def gap(self) -> Any:
        """Largest possible distance from the smallest objective: ``objective - lower_bound``."""
        return self.objective - self.lower_bound


def not_a_result(decoder: Any, result: Any) -> TypeError:
    """Return the error for the result of a user's decoder that has no ranks."""
    return TypeError(
        f"{type(decoder).__name__}.decode must return a decoders.DecodeResult; it returned "
        f"{type(result).__name__}. Return DecodeResult(ranks, objective, lower_bound, optimal, "
        "method), with the position of each row as ranks, 1 = top."
    )


@dataclass
class Decoded:
    """Result for a batch of m queries of r documents, with orders instead of ranks."""

    order: NDArray[np.int64]  # (m, r): the document at each place, best first
    objective: NDArray[np.float64]
    lower_bound: NDArray[np.float64]
    optimal: NDArray[np.bool_]
    method: list[str]
    n_iter: NDArray[np.int64]
    threshold: NDArray[np.float64] | None = None
    # (m, r): the position, from 1, of the document at each place; None: 1, 2, ..., r
    first: NDArray[np.int64] | None = None
    # under rules: what each ranking breaks, and by how much
    broken: list[list[str]] | None = None
    violation: NDArray[np.int64] | None = None

    @property
    def positions(self) -> NDArray[np.int64]:
        """The position of the document at each place, of shape (m, r)."""
        if self.first is not None:
            return self.first
        return np.broadcast_to(np.arange(1, self.order.shape[1] + 1), self.order.shape)


#: Limit for descents, which could cycle because of rounding errors.
MAX_SWEEPS = 1000
#: Largest number of perturbations. They take 38 MB.
MAX_PERTURBATIONS = 100_000
#: Warn if all calls of a process together are expected to spend more seconds in NumPy's kernels.
WORTH_A_WARNING = 1.0
_expected = 0.0


class SearchOptions(NamedTuple):
    """Options of iterated local search, after validation."""

    n_perturbations: int
    seed: int
    time_limit: float | None = None


def check_options(
    method: str,
    methods: Iterable[str],
    n_perturbations: int,
    time_limit: float | None,
    random_state: int | np.random.RandomState | None,
) -> SearchOptions:
    """Validate the options of a decoding function and resolve the random state to a seed."""
    check_choice(method, "method", methods)
    check_count(n_perturbations, "n_perturbations", least=0)
    if n_perturbations > MAX_PERTURBATIONS:
        raise ValueError(
            f"n_perturbations must be at most {MAX_PERTURBATIONS:,}; got {n_perturbations!r}. "
            "For a longer search, decode with several values of random_state and keep the best "
            "result."
        )
    timed = isinstance(time_limit, Real) and not isinstance(time_limit, bool)
    if time_limit is not None and not (timed and time_limit > 0):  # infinity is no limit
        raise ValueError(f"time_limit must be a positive number of seconds; got {time_limit!r}.")
    if isinstance(random_state, Integral) and 0 <= random_state < 2**32:
        seed = int(random_state)  # creating a RandomState takes longer than decoding a small query
    else:
        seed = int(check_random_state(random_state).randint(2**31 - 1))
    return SearchOptions(
        int(n_perturbations), seed, None if time_limit is None else float(time_limit)
    )


def rounding(matrix: Floats) -> float:
    """Return a bound on the rounding error of sums along rows. Smaller gains do not count."""
    return float(np.finfo(np.float64).eps * np.abs(matrix).sum())


def deadline_check(deadline: float | None) -> Callable[[], bool] | None:
    """Return a function that says whether `deadline` has passed, or None without a deadline."""
    return None if deadline is None else lambda: time.monotonic() > deadline


def warn_if_slow(seconds: float) -> None:
    """Warn once per process if the calls announced so far take long with NumPy's kernels.

    Do not warn with compiled kernels, or if SKLEARN_RANKCAL_KERNELS=numpy requests NumPy.
    """
    global _expected
    if KERNELS == "compiled" or WANTED == "numpy" or _expected > WORTH_A_WARNING:
        return
    _expected += seconds
    if _expected > WORTH_A_WARNING:
        warn(
            "The decoders run without compiled kernels. Exact and greedy decoding therefore take "
            "5 to 40 times as long, and local search takes 50 to 300 times as long. "
            "Install the package with a C compiler (pip install --no-binary sklearn_rankcal "
            "sklearn_rankcal), or set the environment variable SKLEARN_RANKCAL_KERNELS=numpy to "
            "use the NumPy kernels without this warning.",
            UncompiledKernelsWarning,
        )


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
        for name, value in vars(result).items():
            if name != "ranks" and value is not None:
                one = value[0]
                setattr(result, name, one.item() if isinstance(one, np.generic) else one)
        return result


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


class MatrixDecoder(BaseEstimator):
    """Base class of decoders whose predictions are one matrix per query.

    A subclass defines `space`, `_decode`, and `_methods` or `_options`.
    """

    space: Space
    method: str
    n_perturbations: int
    time_limit: float | None
    random_state: int | np.random.RandomState | None
    _methods: Iterable[str]
    #: Whether `decode` supports rules, and minimises the objective of its space under them.
    takes_rules = False

    def decode(
        self,
        u: Floats,
        queries: Queries,
        tie_breakers: Callable[[Ints], NDArray[Any]] | None = None,
        n_jobs: int | None = None,
        rules: Any = None,
    ) -> DecodeResult:
        """Compute rankings from surrogate predictions.

        Parameters
        ----------
        u : ndarray of shape (n_entries,)
            Predictions, query by query: for `targets.PAIRS` the r (r - 1) / 2 differences ``u_ij -
            u_ji`` for i < j, and for `targets.SYMMETRIC_PAIRS` the r (r + 1) / 2 entries ``u_ij``
            for i <= j, in the order of ``numpy.triu_indices``.
        queries : Queries
            The rows of each query.
        tie_breakers : callable, default=None
            ``tie_breakers(rows)`` returns a secondary sort key for each row. It decides between
            equally good rankings. None means the order of the rows.
        n_jobs : int, default=None
            Number of batches of queries to decode in parallel.
        rules : Rules, default=None
            Rules that the rankings keep (:ref:`rules`).

        Returns
        -------
        result : DecodeResult
            ``ranks`` has shape (n_documents,), in the order of the rows. Other attributes have one
            entry per query. For `targets.PAIRS`, the objective is the weight of the differences
            that the ranking contradicts.
        """
        options = self._options()
        sizes, offsets = queries.sizes, queries.offsets
        n_entries = self.space.n_entries(sizes)
        starts = np.cumsum(n_entries) - n_entries
        values = read_numbers(u, "u", keep_float32=True)
        if values.shape != (n_entries.sum(),):
            shown = ", ".join(map(str, sizes[:5])) + (", ..." if len(sizes) > 5 else "")
            raise ValueError(
                f"u must have shape ({n_entries.sum()},), one entry per pair of documents, "
                f"for queries of {shown} documents; it has shape {values.shape}."
            )
        if not np.abs(values).max(initial=0.0) <= LARGEST:  # true for NaN as well
            raise ValueError(
                f"u contains NaN, infinity or an entry beyond {LARGEST:g}. If it is too large, "
                "divide u by a common factor."
            )
        rows = np.arange(queries.n_rows) if queries.order is None else queries.order
        # With tie breakers, number[offset + k] is the row within the query of the document with the
        # k-th smallest key. The matrices have the documents in this order.
        owner, number = np.repeat(np.arange(queries.n_queries), sizes), None
        if tie_breakers is not None:
            number = np.lexsort((tie_breakers(rows), owner)) - offsets[owner]

        def make_batch(which: Ints, r: int) -> Floats:
            width = self.space.n_entries(r)
            flat = values[starts[which][:, None] + np.arange(width)]
            flat = np.ascontiguousarray(flat, dtype=np.float64)
            if self.space == PAIRS:  # the kernel is 15 times as fast
                matrices = kernels.from_upper_triangle(flat, r)
            else:
                matrices = self.space.matrices(flat, r)
            if number is None:
                return matrices
            by_key = number[offsets[which][:, None] + np.arange(r)]
            return matrices[
                np.arange(len(which))[:, None, None], by_key[:, :, None], by_key[:, None, :]
            ]

        decoded = decode_batches(partial(self._decode, options=options), make_batch, sizes, n_jobs)
        if rules is not None:
            if not self.takes_rules:
                raise TypeError(f"{type(self).__name__} does not support rules.")
            space, method = self.space, self.method
            rules.keep(decoded, make_batch, space, queries, method, options, number)
        result = collect_results(decoded, sizes)
        if number is not None:
            rows = rows[offsets[owner] + number]
        by_row = np.empty_like(result.ranks)
        by_row[rows] = result.ranks
        result.ranks = by_row
        return result

    def _options(self) -> SearchOptions:
        """Check the parameters, and return the options of the search."""
        return check_options(
            self.method,
            self._methods,
            self.n_perturbations,
            self.time_limit,
            self.random_state,
        )

    def _decode(self, matrices: Floats, options: SearchOptions) -> Decoded:
        """Decode a batch of matrices."""
        raise NotImplementedError
