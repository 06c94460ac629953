"""Average precision: a symmetric matrix in, the order of the largest expected AP out.

That is a quadratic assignment problem of a special kind: what the document at place k adds depends
only on the set of documents above it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.decoders._backend import expect, kernels
from sklearn_rankcal.decoders._batches import Matrices, run
from sklearn_rankcal.decoders._result import Decoded, DecodeResult
from sklearn_rankcal.decoders._search import SearchOptions, check_options, search

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Kicks of the local search, which has few valleys here.
N_PERTURBATIONS = 60
#: "auto" is exact up to this size: a few milliseconds a query.
DP_SIZE = 16
#: "exact" goes no further: 128 MB and about a second, compiled.
DP_LARGEST = 24
#: Seconds that NumPy takes for the subsets of r documents, divided by 2^r r.
SECONDS_NUMPY_SUBSETS = 2.5e-8
#: Relative error that the bound and the value, sums over the same entries, may have.
ROUNDING = 1e-13


def decode_average_precision(
    u: ArrayLike | Sequence[ArrayLike],
    method: str = "auto",
    *,
    sizes: ArrayLike | None = None,
    n_perturbations: int = N_PERTURBATIONS,
    time_limit: float | None = None,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
) -> DecodeResult:
    """Rank for the largest expected average precision.

    Minimises ``1 - sum_{j <= i} u_ij / max(rank_i, rank_j)`` (j <= i includes i): the decoder of
    P1, section 6. With ``u_ij = E[y_i y_j / sum y]`` that is one minus the expected average
    precision. A score for each document cannot be enough: u has to be a matrix.

    Parameters
    ----------
    u : array-like of shape (r, r), list of them, or array-like of shape (n_queries, r, r)
        Symmetric. Entries may be negative.
    method : str, default="auto"
        - ``"auto"``: ``"exact"`` up to 16 documents, ``"local_search"`` beyond.
        - ``"exact"``: subset dynamic programming, up to 24 documents.
        - ``"local_search"``: insertion local search from the diagonal, from the row sums, and from
          putting last, again and again, the smallest row sum that remains, each iterated; the
          best of them. Not exact; see `lower_bound`.
        - ``"diagonal"``: sort by ``u_ii`` (P1, theorem 4). Exact where a larger diagonal entry
          makes up for what it lacks in shared relevance (the condition P_reinforce); not exact in
          general, see the examples.
    sizes : array-like of shape (n_queries,), default=None
        With an array (n_queries, r, r): the documents of each query. What lies beyond is ignored.
    n_perturbations : int, default=60
        Local searches after the first ones, up to 100,000, each from a random disturbance of the
        best order.
    time_limit : float, default=None
        Seconds for each query, for ``"local_search"``. It overruns the limit by half a second at
        most, plus passes over the matrix and the lower bound (on 2,000 documents 0.4 s, and 1.5 s
        without compiled kernels). Ctrl-C interrupts any decoder as soon.
    random_state : int, RandomState instance or None, default=0
        Seeds the kicks. The same for every query, so that a ranking does not depend on the batch.
    n_jobs : int, default=None
        Queries decoded at the same time, through joblib.

    Returns
    -------
    result : DecodeResult
        `ranks`, `objective`, `lower_bound` (for methods that are not exact, from the heaviest rows
        of each size; O(r^2 log r), and close only near matrices of rank one), `optimal`,
        `method`, `n_iter`.

    Raises
    ------
    ValueError
        A matrix that is not square or not symmetric (to 1e-8 of its largest entry), has no
        documents, or holds NaN or infinity; sizes out of range; an unknown method; a time limit
        that is not positive; ``"exact"`` for more than 24 documents.

    Notes
    -----
    O(2^r r) time and 2^r floats for ``"exact"``; O(r^2) for each sweep of the local search.

    References
    ----------
    .. [1] H. G. Ramaswamy, S. Agarwal and A. Tewari (2013). Convex calibrated surrogates for
       low-rank loss matrices with applications to subset ranking losses. NIPS. Theorem 4.

    Examples
    --------
    Relevant are the third document with probability .3, the other three with .7:

    >>> import numpy as np
    >>> from sklearn_rankcal.decoders import decode_average_precision
    >>> rare, common = np.array([0, 0, 1, 0]), np.array([1, 1, 0, 1])
    >>> u = 0.3 * np.outer(rare, rare) + 0.7 * np.outer(common, common) / 3
    >>> best = decode_average_precision(u)
    >>> best.ranks.tolist(), round(1 - best.objective, 4), best.optimal
    ([1, 2, 4, 3], 0.775, True)

    By the diagonal the third comes first, which costs:

    >>> by_diagonal = decode_average_precision(u, "diagonal")
    >>> by_diagonal.ranks.tolist(), round(1 - by_diagonal.objective, 4)
    ([2, 3, 1, 4], 0.7472)
    """
    matrices = Matrices(u, sizes)
    options = check_options(method, METHODS, n_perturbations, time_limit, random_state)
    solve = partial(_decode_matrices, method=method, options=options)
    return matrices.result(run(solve, matrices.stack, matrices.sizes, n_jobs))


def _decode_matrices(u: Floats, method: str, options: SearchOptions) -> Decoded:
    turned = u.transpose(0, 2, 1)
    uneven = np.abs(u - turned)
    allowed = 1e-8 * np.abs(u).max(axis=(1, 2), keepdims=True)
    if (uneven > allowed).any():
        q, i, j = np.argwhere(uneven > allowed)[0]
        raise ValueError(
            f"u must be symmetric: entries [{i}, {j}] and [{j}, {i}] of a matrix of {u.shape[1]} "
            f"documents are {u[q, i, j]:.6g} and {u[q, j, i]:.6g}. For preferences use "
            "decode_preferences."
        )
    # half of the smallest number is 0: equal entries are not averaged
    return decode_symmetric(np.where(u == turned, u, (u + turned) / 2), method, options)


def decode_symmetric(u: Floats, method: str, options: SearchOptions) -> Decoded:
    """Decode a stack (m, r, r) of symmetric matrices."""
    if method == "auto":
        method = "exact" if u.shape[1] <= DP_SIZE else "local_search"
    # by a power of 2, exactly, to entries of about 1: shares of the smallest numbers would vanish
    exponent = np.frexp(np.abs(u).max(axis=(1, 2)))[1]
    u = np.ldexp(u, -exponent[:, None, None])
    order, n_iter = METHODS[method](u, options)
    value = _value(u, order)
    bound = value if method == "exact" else np.maximum(_value_bound(u), value)
    optimal = bound - value <= ROUNDING * _value(np.abs(u), order)
    bound = np.ldexp(np.where(optimal, value, bound), exponent)
    value = np.ldexp(value, exponent)
    return Decoded(order, 1.0 - value, 1.0 - bound, optimal, [method] * len(u), n_iter)


def _value(u: Floats, order: Ints) -> Floats:
    """sum_{j <= i} u_ij / max(rank_i, rank_j) of each order."""
    every = np.arange(len(u))[:, None, None]
    placed = np.ascontiguousarray(u[every, order[:, :, None], order[:, None, :]])
    # rows of a contiguous array: the rounding must not depend on the size of the batch
    return (np.tril(placed).sum(axis=2) / np.arange(1, u.shape[1] + 1)).sum(axis=1)


def _value_bound(u: Floats) -> Floats:
    """No order has a larger value.

    The value is a sum of V_k (1/k - 1/(k + 1)), V_k the weight inside the first k documents. V_k is
    at most that of the k documents with the heaviest k - 1 other entries each, and at most the
    whole less what the r - k lightest documents take away.
    """
    m, r = u.shape[:2]
    own = np.diagonal(u, axis1=1, axis2=2).copy()
    others = np.ascontiguousarray(u[:, ~np.eye(r, dtype=bool)]).reshape(m, r, r - 1)
    heavy = np.zeros((m, r, r))  # heavy[:, d, k]: the k heaviest others of d
    np.cumsum(-np.sort(-others, axis=2), axis=2, out=heavy[:, :, 1:])
    inside = -np.sort(-(own[:, :, None] + heavy / 2), axis=1)
    removed = np.sort((own + others.sum(axis=2))[:, :, None] - heavy / 2, axis=1)
    places = np.arange(r)
    kept = np.cumsum(inside, axis=1)[:, places, places]  # V_{k + 1}
    taken = np.cumsum(removed, axis=1)[:, places, places]  # by k + 1 documents
    whole = own.sum(axis=1) + others.sum(axis=2).sum(axis=1) / 2
    kept[:, -1] = whole
    kept[:, :-1] = np.minimum(kept[:, :-1], whole[:, None] - taken[:, -2::-1])
    fall = 1.0 / np.arange(1, r + 1) - np.append(1.0 / np.arange(2, r + 1), 0.0)
    return np.cumsum(kept * fall, axis=1)[:, -1]


def _diagonal(u: Floats, options: SearchOptions) -> tuple[Ints, Ints]:
    return _by_diagonal(u), np.zeros(len(u), np.int64)


def _by_diagonal(u: Floats) -> Ints:
    return np.argsort(-np.diagonal(u, axis1=1, axis2=2), axis=1, kind="stable")


def _by_peeling(u: Floats) -> Ints:
    """Put last the smallest row sum among the documents that remain."""
    m, r = u.shape[:2]
    every = np.arange(m)
    sums = u.sum(axis=2)
    order = np.empty((m, r), dtype=np.int64)
    for k in range(r - 1, -1, -1):
        v = r - 1 - sums[:, ::-1].argmin(axis=1)  # of equal ones the last document
        order[:, k] = v
        sums -= u[every, v]
        sums[every, v] = np.inf
    return order


def _local_search(u: Floats, options: SearchOptions) -> tuple[Ints, Ints]:
    starts = np.stack(
        [
            _by_diagonal(u),
            np.argsort(-u.sum(axis=2), axis=1, kind="stable"),
            _by_peeling(u),
        ],
        axis=1,
    )
    orders = np.empty(u.shape[:2], dtype=np.int64)
    n_iter = np.empty(len(u), dtype=np.int64)
    # a loop over queries: each is a search of its own, O(r^2) a sweep
    for q, matrix in enumerate(u):
        ends = None if options.time_limit is None else time.monotonic() + options.time_limit

        def cost(found: Ints, matrix: Floats = matrix) -> Floats:
            return -_value(np.repeat(matrix[None], len(found), axis=0), found)

        orders[q], n_iter[q] = search(
            kernels.average_precision_search, matrix, starts[q], cost, options, ends
        )
    return orders, n_iter


def _exact(u: Floats, options: SearchOptions) -> tuple[Ints, Ints]:
    m, r = u.shape[:2]
    if r > DP_LARGEST:
        raise ValueError(
            f"method='exact' takes 2^r steps and goes to {DP_LARGEST} documents; a query has {r}. "
            "Use method='local_search'."
        )
    orders = np.empty((m, r), dtype=np.int64)
    share = 1.0 / np.arange(1, r + 1)
    expect(SECONDS_NUMPY_SUBSETS * m * r * 2.0**r)
    for q, matrix in enumerate(u):
        orders[q] = kernels.subset_dp(-matrix, -np.diagonal(matrix), share, np.inf, False)[0]
    return orders, np.ones(m, np.int64)


METHODS: dict[str, Callable[[Floats, SearchOptions], tuple[Ints, Ints]]] = {
    "auto": _local_search,  # replaced by what fits the size
    "exact": _exact,
    "local_search": _local_search,
    "diagonal": _diagonal,
}
