"""Pairwise disagreement: a matrix of preferences in, the order that contradicts least of it out.

That is the minimum feedback arc set, or linear ordering, problem. Only the differences
d_ij = u_ij - u_ji matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.decoders._backend import expect, kernels
from sklearn_rankcal.decoders._batches import Matrices, run
from sklearn_rankcal.decoders._linear_ordering import solve_linear_ordering
from sklearn_rankcal.decoders._result import Decoded, DecodeResult
from sklearn_rankcal.decoders._search import SearchOptions, check_options, search, until

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Kicks of the local search: nearly always the optimum up to 100 documents, in milliseconds.
N_PERTURBATIONS = 300
#: Components up to this size go to subset dynamic programming: a few milliseconds.
DP_SIZE = 16
#: Seconds that NumPy takes for Algorithm 1, divided by r^2; for subsets, divided by 2^r r.
SECONDS_NUMPY, SECONDS_NUMPY_SUBSETS = 1e-6, 2.5e-8
#: Relative error that sums of weights may have.
ROUNDING = 1e-12
#: "exact" refuses larger components without a time limit.
EXACT_SIZE = 100
#: Components are bounded, and searched for a proof, up to this size; beyond, O(r^3) is too much.
BOUND_SIZE = 500


def decode_preferences(
    u: ArrayLike | Sequence[ArrayLike],
    method: str = "auto",
    *,
    sizes: ArrayLike | None = None,
    order: str = "ranked_pairs",
    n_perturbations: int = N_PERTURBATIONS,
    time_limit: float | None = None,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
) -> DecodeResult:
    """Rank so as to contradict the least preference weight.

    Minimises ``sum_{i != j} u_ij 1[rank_i > rank_j]``, the pairwise disagreement: the decoder of
    P1, section 7. u need be neither antisymmetric nor non-negative, because the ranking depends
    on ``d_ij = u_ij - u_ji`` alone; a ranking that contradicts no d_ij > 0 is optimal.

    Parameters
    ----------
    u : array-like of shape (r, r), list of them, or array-like of shape (n_queries, r, r)
        ``u[i, j]`` is the weight with which document i is preferred to document j. The diagonal
        does not count. Integers beyond 2^53, fractions and long doubles are subtracted from each
        other before float64 rounds them.
    method : str, default="auto"
        - ``"auto"``: a topological order where d is acyclic; else ``"exact"`` when no strongly
          connected component has more than 16 documents, and ``"local_search"`` beyond.
        - ``"exact"``: strongly connected components, then subset dynamic programming or the
          linear ordering program with 3-cycle cuts, until the order is proved optimal.
        - ``"local_search"``: insertion local search from the orders of ranked pairs and of Borda,
          iterated. Not exact: it can end above the minimum; see `lower_bound`.
        - ``"greedy_dag"``: Algorithm 1 of P1: delete the lightest edge until no cycle is left,
          edges of equal weight in document order (row-major). Calibrated where the expected
          preferences are acyclic (P1, theorem 7). Not exact on cyclic ones; see the examples.
        - ``"borda"``: by row sums of d; ``"copeland"``: by pairs won minus pairs lost; ``"sort"``:
          binary insertion sort that asks of two documents at a time which is preferred. For
          comparison; none is exact even on acyclic preferences, the last two are where no pair is
          tied, d_ij != 0.
    sizes : array-like of shape (n_queries,), default=None
        With an array (n_queries, r, r): the documents of each query. What lies beyond is ignored.
    order : {"ranked_pairs", "topological"}, default="ranked_pairs"
        Which topological order of the edges that ``"greedy_dag"`` keeps: the one that keeps
        deleted edges too, from the heaviest to the lightest, where that closes no cycle; or the
        first in document order.
    n_perturbations : int, default=300
        Local searches after the first ones, up to 100,000, each from a random disturbance of the
        best order; a third of them from the Borda order, the others from ranked pairs.
    time_limit : float, default=None
        Seconds for each query, for ``"exact"`` and ``"local_search"``. When they have passed
        ``"exact"`` returns the best order found, with a lower bound and a `ConvergenceWarning`;
        beyond 500 documents in one component that is the local search's. A decoder overruns the
        limit by half a second at most, plus passes over the matrix (on 3,000 documents these take
        0.3 s, and 2 s without compiled kernels). Ctrl-C interrupts any decoder as soon; with SciPy
        before 1.15, ``"exact"`` not before the linear program under way ends.
    random_state : int, RandomState instance or None, default=0
        Seeds the kicks. The same for every query, so that a ranking does not depend on the batch.
    n_jobs : int, default=None
        Queries decoded at the same time, through joblib.

    Returns
    -------
    result : DecodeResult
        `ranks`, `objective`, `lower_bound`, `optimal`, `method`, `n_iter`, and `threshold` for
        ``"greedy_dag"``. With that method, ``"borda"`` and ``"copeland"`` documents that nothing
        tells apart keep their order.

    Raises
    ------
    ValueError
        A matrix that is not square, has no documents, or holds NaN or infinity; integers whose
        differences lie beyond 2^53 and cannot be held by float64; sizes out of range; an unknown
        method or order; more than 100,000 kicks; a time limit that is not positive; for
        ``"exact"`` without one, a strongly connected component of more than 100 documents.

    Notes
    -----
    A query of r documents takes O(r^2) time by ``"greedy_dag"`` (typically; ranked pairs
    O(r^3 / 64) at worst), O(r log r) comparisons by ``"sort"``, O(r^2) for each sweep of a local
    search, O(2^c c) time by dynamic programming for a component of c <= 16 documents. The
    problem is NP-hard: beyond, ``"exact"`` can take arbitrarily long.

    References
    ----------
    .. [1] H. G. Ramaswamy, S. Agarwal and A. Tewari (2013). Convex calibrated surrogates for
       low-rank loss matrices with applications to subset ranking losses. NIPS. Theorem 7.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import decode_preferences
    >>> u = [[0, 1, 3, 0], [0, 0, 0, 4], [0, 5, 0, 0], [6, 0, 2, 0]]
    >>> result = decode_preferences(u)
    >>> result.ranks.tolist(), result.objective, result.optimal
    ([2, 4, 3, 1], 4.0, True)

    Algorithm 1 deletes the edges of weight 1, 2 and 3 before no cycle is left, and loses more:

    >>> result = decode_preferences(u, "greedy_dag")
    >>> result.ranks.tolist(), result.objective, result.threshold
    ([4, 2, 1, 3], 6.0, 3.0)
    """
    matrices = Matrices(u, sizes, only_differences=True)
    options = check_options(method, METHODS, n_perturbations, time_limit, random_state)
    check_order(order)
    solve = partial(_decode_matrices, method=method, order=order, options=options)
    return matrices.result(run(solve, matrices.stack, matrices.sizes, n_jobs))


def check_order(order: str) -> None:
    """Refuse an unknown kind of topological order."""
    if order not in ("ranked_pairs", "topological"):
        raise ValueError(f"Unknown order {order!r}. Known: ranked_pairs, topological.")


def _decode_matrices(u: Floats, method: str, order: str, options: SearchOptions) -> Decoded:
    d, floor = kernels.differences(u)
    return decode_differences(d, floor, method, order, options)


def decode_differences(
    d: Floats, floor: Floats, method: str, order: str, options: SearchOptions
) -> Decoded:
    """Decode a stack (m, r, r) of differences; `floor` (m,) is what every ranking loses."""
    found = METHODS[method](d, order, options)
    lost = kernels.lost_weight(d, found.order)
    # a bound of the solver can exceed what the order loses by rounding
    bound = np.minimum(found.bound, lost)
    return Decoded(
        found.order,
        floor + lost,
        floor + np.where(found.proved, lost, bound),
        found.proved | (lost == 0),
        found.method,
        found.n_iter,
        found.threshold,
    )


class _Found(NamedTuple):
    order: Ints
    bound: Floats
    proved: NDArray[np.bool_]
    method: list[str]
    n_iter: Ints
    threshold: Floats | None = None


def _heuristic(name: str, order: Ints, threshold: Floats | None = None) -> _Found:
    m = len(order)
    return _Found(
        order, np.zeros(m), np.zeros(m, bool), [name] * m, np.zeros(m, np.int64), threshold
    )


def _greedy_dag(d: Floats, order: str, options: SearchOptions) -> _Found:
    expect(SECONDS_NUMPY * d.size)
    return _heuristic("greedy_dag", *kernels.greedy_dag(d, order == "ranked_pairs"))


def _borda(d: Floats, order: str, options: SearchOptions) -> _Found:
    return _heuristic("borda", np.argsort(-d.sum(axis=2), axis=1, kind="stable"))


def _copeland(d: Floats, order: str, options: SearchOptions) -> _Found:
    return _heuristic("copeland", np.argsort(-np.sign(d).sum(axis=2), axis=1, kind="stable"))


def _sort(d: Floats, order: str, options: SearchOptions) -> _Found:
    return _heuristic("sort", kernels.binary_insertion(d))


class _Solved(NamedTuple):
    """An order of one strongly connected component."""

    order: Ints
    bound: float
    proved: bool
    n_iter: int


def _exact(d: Floats, order: str, options: SearchOptions) -> _Found:
    return _by_component(d, _solve_exactly, options, "exact")


def _local_search(d: Floats, order: str, options: SearchOptions) -> _Found:
    return _by_component(d, _solve_locally, options, "local_search")


def _auto(d: Floats, order: str, options: SearchOptions) -> _Found:
    return _by_component(d, _solve_cheaply, options, None)


def _by_component(
    d: Floats,
    solve: Callable[[Floats, SearchOptions, float | None], _Solved],
    options: SearchOptions,
    name: str | None,
) -> _Found:
    """Strongly connected components in topological order, each solved by itself: that is exact."""
    labels, counts = kernels.components(d)
    orders = np.argsort(labels, axis=1, kind="stable")
    m, r = labels.shape
    bound, proved = np.zeros(m), np.ones(m, bool)
    n_iter = np.zeros(m, np.int64)
    method = [name or "topological"] * m
    # a loop over the cyclic queries and their components: each is a search of its own
    for q in np.flatnonzero(counts < r):
        ends = None if options.time_limit is None else time.monotonic() + options.time_limit
        sizes = np.bincount(labels[q])
        starts = np.cumsum(sizes) - sizes
        if name is None:
            method[q] = "exact" if sizes.max() <= DP_SIZE else "local_search"
        for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True):
            members = orders[q, start : start + size]
            inner = np.ascontiguousarray(d[q][np.ix_(members, members)])
            solved = solve(inner, options, ends)
            orders[q, start : start + size] = members[solved.order]
            bound[q] += solved.bound
            proved[q] &= solved.proved
            n_iter[q] += solved.n_iter
    return _Found(orders, bound, proved, method, n_iter)


def _solve_cheaply(d: Floats, options: SearchOptions, ends: float | None) -> _Solved:
    solve = _solve_by_subsets if len(d) <= DP_SIZE else _solve_locally
    return solve(d, options, ends)


def _solve_locally(d: Floats, options: SearchOptions, ends: float | None) -> _Solved:
    late = until(ends)
    borda = np.argsort(-d.sum(axis=1), kind="stable")
    try:
        ranked_pairs = kernels.greedy_dag(d[None], True, late)[0][0]
    except TimeoutError:
        ranked_pairs = borda
    starts = np.stack([ranked_pairs, borda, ranked_pairs])

    def cost(orders: Ints) -> Floats:
        return np.array([kernels.lost_weight(d[None], order[None])[0] for order in orders])

    clipped = _clip(d, float(cost(starts).min()))
    order, n_iter = search(kernels.preference_search, clipped, starts, cost, options, ends)
    bound = kernels.triangle_bound(d, late) if len(d) <= BOUND_SIZE else 0.0
    lost = float(cost(order[None])[0])
    # sums of weights, none negative: equal up to their rounding is a proof
    return _Solved(order, bound, lost - bound <= ROUNDING * lost, n_iter)


def _clip(d: Floats, lost: float) -> Floats:
    """d for the search of an order that loses less than `lost`.

    No such order contradicts a preference as heavy as that: weights beyond it may as well be all
    alike, and as they are would drown the others in rounding.
    """
    limit = np.ldexp(1.0, int(np.frexp(lost)[1]))  # a power of 2 above `lost`
    return np.clip(d, -limit, limit)


def _solve_by_subsets(d: Floats, options: SearchOptions, ends: float | None) -> _Solved:
    """Dynamic programming; a set is given up when it costs more than ranked pairs do."""
    expect(SECONDS_NUMPY_SUBSETS * len(d) * 2.0 ** len(d))
    known = kernels.lost_weight(d[None], kernels.greedy_dag(d[None], True)[0])[0]
    # placing v contradicts the preferences that all later documents have over it
    order, value = kernels.subset_dp(
        np.ascontiguousarray(np.maximum(d, 0.0).T),
        np.zeros(len(d)),
        np.ones(len(d)),
        known * (1 + 1e-9),
        True,
    )
    return _Solved(order, value, True, 1)


def _solve_exactly(d: Floats, options: SearchOptions, ends: float | None) -> _Solved:
    if len(d) <= DP_SIZE:
        return _solve_by_subsets(d, options, ends)
    if len(d) > EXACT_SIZE and ends is None:
        raise ValueError(
            f"{len(d)} documents form one strongly connected component, too many to promise an "
            "end: pass time_limit= (the best order found comes with a lower bound), or use "
            "method='local_search' or 'greedy_dag'."
        )
    started = _solve_locally(d, options, ends)
    if started.proved or len(d) > BOUND_SIZE:
        return started
    left = None if ends is None else max(ends - time.monotonic(), 1e-3)
    lost = kernels.lost_weight(d[None], started.order[None])[0]
    exponent = int(np.frexp(lost)[1])
    scaled = np.ldexp(_clip(d, lost), -exponent)
    solved = solve_linear_ordering(scaled, started.order, left)
    # The solver returns an order that loses no more than the one it started from. Where the two
    # lose the same, their sums can differ by rounding: what is proved of one holds of the other.
    better = kernels.lost_weight(d[None], solved.order[None])[0] <= lost
    order = solved.order if better else started.order
    bound = max(float(np.ldexp(solved.lower_bound, exponent)), started.bound)
    return _Solved(order, bound, solved.optimal, started.n_iter + solved.n_iter)


METHODS: dict[str, Callable[[Floats, str, SearchOptions], _Found]] = {
    "auto": _auto,
    "greedy_dag": _greedy_dag,
    "exact": _exact,
    "local_search": _local_search,
    "borda": _borda,
    "copeland": _copeland,
    "sort": _sort,
}
