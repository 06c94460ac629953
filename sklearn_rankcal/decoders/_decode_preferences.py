"""Decode preferences: find the order of documents that contradicts the least weight.

`decode_preferences` is for matrices of a user, and `PreferenceDecoder` for rankers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.decoders import _batches
from sklearn_rankcal.decoders._batches import DecodeResult
from sklearn_rankcal.decoders._linear_ordering import power_of_2, solve_linear_ordering
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._messages import check_choice
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, tie

#: Topological orders that "greedy_dag" can return.
ORDERS = ("ranked_pairs", "topological")
#: Default number of steps of the local search. For up to 100 documents they take milliseconds and
#: nearly always find the optimum where it is known.
N_PERTURBATIONS = 400
#: Largest component that subset dynamic programming solves. It takes a few milliseconds.
DP_SIZE = 16
#: Seconds that NumPy's kernels take for Algorithm 1, divided by r^2, for subset dynamic
#: programming, divided by 2^r r, and for a descent of the local search, divided by r.
SECONDS_NUMPY, SECONDS_NUMPY_SUBSETS, SECONDS_NUMPY_SEARCH = 1e-6, 2.5e-8, 2e-4
#: Relative rounding error that sums of weights may have.
ROUNDING = 1e-12
#: Without a time limit, "exact" refuses larger components.
EXACT_SIZE = 100
#: Larger components get no lower bound and no search for a proof, which take O(r^3) time.
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
    rules: Any = None,
) -> DecodeResult:
    """Find the ranking that contradicts the least weight of preferences.

    It minimises ``sum_{i != j} u_ij 1[rank_i > rank_j]``, the pairwise disagreement (Ramaswamy et
    al., 2013, section 7). Only the differences ``d_ij = u_ij - u_ji`` matter. They define a graph:
    if ``d_ij > 0``, there is an edge from i to j of this weight. Two documents are in the same
    strongly connected component if a cycle passes through both. Read more in :doc:`/decoders`.

    Parameters
    ----------
    u : array-like of shape (r, r), list of them, or array-like of shape (n_queries, r, r)
        ``u[i, j]`` is the weight of the preference for document i over document j. The diagonal is
        ignored.
    method : str, default="auto"
        - ``"auto"``: a topological order if the graph has no cycle. Otherwise ``"exact"`` if all
          strongly connected components have at most 16 documents, else ``"local_search"``.
        - ``"exact"``: decode each strongly connected component by subset dynamic programming, or by
          the linear ordering program with cuts for cycles of three edges, until the order is proved
          optimal.
        - ``"local_search"``: a memetic local search by insertion, from the orders of ranked pairs
          and Borda. It is not exact; see ``lower_bound``.
        - ``"greedy_dag"``: Algorithm 1 of Ramaswamy et al. (2013). It deletes the lightest edge,
          with ties in document order, until no cycle is left. It is calibrated if the expected
          preferences have no cycle (theorem 7). With cycles it is not exact; see the examples.
        - ``"borda"``: sort by the row sums of d.
        - ``"copeland"``: sort by the number of pairs won minus the number of pairs lost.
        - ``"sort"``: binary insertion sort by comparisons of two documents.

        The last three are for comparison. ``"copeland"`` and ``"sort"`` are exact if the graph has
        no cycle and no pair is tied. ``"borda"`` is not exact even then.
    sizes : array-like of shape (n_queries,), default=None
        Number of documents of each query, for an array of shape (n_queries, r, r). Entries beyond
        the size of a query are ignored.
    order : {"ranked_pairs", "topological"}, default="ranked_pairs"
        Topological order of the edges that ``"greedy_dag"`` keeps. ``"ranked_pairs"`` restores
        deleted edges, from the heaviest to the lightest, unless this closes a cycle.
        ``"topological"`` returns the first topological order in document order.
    n_perturbations : int, default=400
        Number of random steps of the local search, at most 100,000. Up to rounding, more steps
        never give a worse order.
    time_limit : float, default=None
        Seconds per query, for ``"exact"`` and ``"local_search"``. None means no limit. After this
        time, ``"exact"`` returns the best order found, with a lower bound and a
        `ConvergenceWarning`. Decoding takes at most half a second longer, plus some passes over the
        matrix. Ctrl-C is as quick, except during a linear program with SciPy before 1.15.
    random_state : int, RandomState instance or None, default=0
        Seed for the perturbations. They are the same for every query of a batch.
    n_jobs : int, default=None
        Number of batches of queries to decode in parallel.
    rules : Rules, default=None
        Rules that the rankings keep (:ref:`rules`). Their rows are the documents of all
        matrices, one matrix after another.

    Returns
    -------
    result : DecodeResult
        ``ranks``, ``objective``, ``lower_bound``, ``optimal``, ``method``, ``n_iter``, and
        ``threshold`` for ``"greedy_dag"``. Documents that ``"greedy_dag"``, ``"borda"`` or
        ``"copeland"`` cannot distinguish keep their order.

    Raises
    ------
    ValueError
        If an entry is beyond 1e50. If a strongly connected component has more than 100 documents,
        for ``"exact"`` without a time limit.

    Notes
    -----
    For a query of r documents, ``"greedy_dag"`` typically takes O(r^2) time (with ranked pairs, at
    worst O(r^3 / 64)), ``"sort"`` takes O(r log r) comparisons, and a step of the local search
    takes O(r^2) in practice. Dynamic programming takes O(2^c c) time for a component of c <= 16
    documents. The problem is NP-hard, so ``"exact"`` can take arbitrarily long for larger
    components. Components of more than 500 documents get no lower bound.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import decode_preferences
    >>> u = [[0, 1, 3, 0], [0, 0, 0, 4], [0, 5, 0, 0], [6, 0, 2, 0]]
    >>> result = decode_preferences(u)
    >>> result.ranks.tolist(), result.objective, result.optimal
    ([2, 4, 3, 1], 4.0, True)

    Algorithm 1 deletes the edges of weight 1, 2 and 3. Its order contradicts more weight:

    >>> result = decode_preferences(u, "greedy_dag")
    >>> result.ranks.tolist(), result.objective, result.threshold
    ([4, 2, 1, 3], 6.0, 3.0)
    """
    matrices = _batches.MatrixInput(u, sizes)
    options = _batches.check_options(method, METHODS, n_perturbations, time_limit, random_state)
    check_choice(order, "order", ORDERS)
    solve = partial(_decode_matrices, method=method, order=order, options=options)
    decoded = _batches.decode_batches(solve, matrices.batch, matrices.sizes, n_jobs)
    if rules is not None:

        def differences(which: Ints, r: int) -> Floats:
            return kernels.differences(matrices.batch(which, r))[0]

        rules.keep(decoded, differences, PAIRS, matrices.queries, method, options)
    return matrices.result(decoded)


def _decode_matrices(
    u: Floats, method: str, order: str, options: _batches.SearchOptions
) -> _batches.Decoded:
    d, unavoidable = kernels.differences(u)
    return decode_differences(d, unavoidable, method, order, options)


def decode_differences(
    d: Floats, unavoidable: Floats, method: str, order: str, options: _batches.SearchOptions
) -> _batches.Decoded:
    """Decode a batch (m, r, r) of differences.

    `unavoidable` (m,) is the loss of every ranking: the sum over pairs of min(u_ij, u_ji). The
    objective is this sum plus the weight of the contradicted edges.
    """
    found = METHODS[method](d, order, options)
    lost = kernels.lost_weight(d, found.order)
    # because of rounding, a bound of the solver can exceed the lost weight
    bound = np.minimum(found.bound, lost)
    return _batches.Decoded(
        found.order,
        unavoidable + lost,
        unavoidable + np.where(found.proved, lost, bound),
        found.proved | (lost == 0),
        found.method,
        found.n_iter,
        found.threshold,
    )


class _Found(NamedTuple):
    """The result of a method for a batch of m queries of r documents."""

    order: Ints  # (m, r)
    bound: Floats
    proved: Bools
    method: list[str]
    n_iter: Ints
    threshold: Floats | None = None


def _heuristic(name: str, order: Ints, threshold: Floats | None = None) -> _Found:
    """Return the result of a method without a lower bound except 0."""
    m = len(order)
    return _Found(
        order, np.zeros(m), np.zeros(m, bool), [name] * m, np.zeros(m, np.int64), threshold
    )


def _greedy_dag(d: Floats, order: str, options: _batches.SearchOptions) -> _Found:
    _batches.warn_if_slow(SECONDS_NUMPY * d.size)
    return _heuristic("greedy_dag", *kernels.greedy_dag(d, order == "ranked_pairs"))


def _borda(d: Floats, order: str, options: _batches.SearchOptions) -> _Found:
    sums = tie(d.sum(axis=2), np.abs(d).sum(axis=2).max(axis=1))
    return _heuristic("borda", np.argsort(-sums, axis=1, kind="stable"))


def _copeland(d: Floats, order: str, options: _batches.SearchOptions) -> _Found:
    return _heuristic("copeland", np.argsort(-np.sign(d).sum(axis=2), axis=1, kind="stable"))


def _sort(d: Floats, order: str, options: _batches.SearchOptions) -> _Found:
    return _heuristic("sort", kernels.binary_insertion(d))


class _Solved(NamedTuple):
    """An order of the documents of one strongly connected component."""

    order: Ints  # (r,)
    bound: float
    proved: bool
    n_iter: int


def _by_component(
    d: Floats,
    order: str,
    options: _batches.SearchOptions,
    *,
    solve: Callable[[Floats, _batches.SearchOptions, float | None], _Solved],
    name: str | None,
) -> _Found:
    """Sort the strongly connected components topologically, and solve each one by itself.

    No edge between components is then contradicted. Optimal orders of the components therefore give
    an optimal order of all documents, and the bounds add up. If `name` is None, the method of each
    query depends on the size of its largest component.
    """
    labels, counts = kernels.components(d)
    orders = np.argsort(labels, axis=1, kind="stable")
    m, r = labels.shape
    bound, proved = np.zeros(m), np.ones(m, bool)
    n_iter = np.zeros(m, np.int64)
    method = [name or "topological"] * m
    for q in np.flatnonzero(counts < r):
        deadline = None if options.time_limit is None else time.monotonic() + options.time_limit
        sizes = np.bincount(labels[q])
        starts = np.cumsum(sizes) - sizes
        if name is None:
            method[q] = "exact" if sizes.max() <= DP_SIZE else "local_search"
        for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True):
            members = orders[q, start : start + size]
            inner = np.ascontiguousarray(d[q][np.ix_(members, members)])
            solved = solve(inner, options, deadline)
            orders[q, start : start + size] = members[solved.order]
            bound[q] += solved.bound
            proved[q] &= solved.proved
            n_iter[q] += solved.n_iter
    return _Found(orders, bound, proved, method, n_iter)


def _solve_cheaply(d: Floats, options: _batches.SearchOptions, deadline: float | None) -> _Solved:
    solve = _solve_by_subsets if len(d) <= DP_SIZE else _solve_locally
    return solve(d, options, deadline)


def _solve_locally(d: Floats, options: _batches.SearchOptions, deadline: float | None) -> _Solved:
    time_is_up = _batches.deadline_check(deadline)
    borda = np.argsort(-d.sum(axis=1), kind="stable")
    try:
        ranked_pairs = kernels.greedy_dag(d[None], True, time_is_up)[0][0]
    except TimeoutError:
        ranked_pairs = borda
    starts = np.stack([ranked_pairs, borda])
    lost = min(kernels.lost_weight(d[None], start[None])[0] for start in starts)
    clipped = _clip(d, float(lost))
    n_perturbations = options.n_perturbations
    _batches.warn_if_slow((n_perturbations + len(starts)) * SECONDS_NUMPY_SEARCH * len(d))
    # `_local_search.pxi` describes this search.
    order, n_iter = kernels.preference_search(
        clipped,
        starts,
        n_perturbations,
        options.seed,
        _batches.rounding(clipped),
        _batches.MAX_SWEEPS,
        time_is_up,
    )
    bound = kernels.triangle_bound(d, time_is_up) if len(d) <= BOUND_SIZE else 0.0
    lost = float(kernels.lost_weight(d[None], order[None])[0])
    # both are sums of non-negative weights: equal up to rounding means optimal
    return _Solved(order, bound, lost - bound <= ROUNDING * lost, n_iter)


def _clip(d: Floats, lost: float) -> Floats:
    """Limit the weights of d for the search of an order that contradicts less than `lost`.

    Such an order contradicts no edge of weight `lost` or more, so larger weights can be made equal.
    Otherwise, light edges would be smaller than the rounding errors of heavy ones.
    """
    limit = 2 * power_of_2(lost)
    return np.clip(d, -limit, limit)


def _solve_by_subsets(
    d: Floats, options: _batches.SearchOptions, deadline: float | None
) -> _Solved:
    """Run subset dynamic programming over sets that cost less than the ranked pairs order."""
    _batches.warn_if_slow(SECONDS_NUMPY_SUBSETS * len(d) * 2.0 ** len(d))
    known = kernels.lost_weight(d[None], kernels.greedy_dag(d[None], True)[0])[0]
    # Placing v contradicts the edges from all later documents to v.
    order, value = kernels.subset_dp(
        np.ascontiguousarray(np.maximum(d, 0.0).T),
        np.zeros(len(d)),
        np.ones(len(d)),
        known * (1 + 1e-9),
        True,
    )
    return _Solved(order, value, True, 1)


def _solve_exactly(d: Floats, options: _batches.SearchOptions, deadline: float | None) -> _Solved:
    if len(d) <= DP_SIZE:
        return _solve_by_subsets(d, options, deadline)
    if len(d) > EXACT_SIZE and deadline is None:
        raise ValueError(
            f"{len(d)} documents form one strongly connected component. For more than "
            f"{EXACT_SIZE}, method='exact' could take arbitrarily long. Pass time_limit to get the "
            "best order found and a lower bound, or use method='local_search' or 'greedy_dag'."
        )
    # the local search often proves its own order optimal
    started = _solve_locally(d, options, deadline)
    if started.proved or len(d) > BOUND_SIZE:
        return started
    left = None if deadline is None else max(deadline - time.monotonic(), 1e-3)
    lost = kernels.lost_weight(d[None], started.order[None])[0]
    solved = solve_linear_ordering(_clip(d, lost), started.order, left)
    # The order of the solver is at least as good as its start. If both contradict the same weight,
    # their sums can differ by rounding. Then keep the start, for which the proof holds, too.
    better = kernels.lost_weight(d[None], solved.order[None])[0] <= lost
    order = solved.order if better else started.order
    bound = max(solved.lower_bound, started.bound)
    return _Solved(order, bound, solved.optimal, started.n_iter + solved.n_iter)


METHODS: dict[str, Callable[[Floats, str, _batches.SearchOptions], _Found]] = {
    "auto": partial(_by_component, solve=_solve_cheaply, name=None),
    "greedy_dag": _greedy_dag,
    "exact": partial(_by_component, solve=_solve_exactly, name="exact"),
    "local_search": partial(_by_component, solve=_solve_locally, name="local_search"),
    "borda": _borda,
    "copeland": _copeland,
    "sort": _sort,
}


class PreferenceDecoder(_batches.MatrixDecoder):
    """Decoder for ``loss="pd"``: the ranking that contradicts the least weight of preferences.

    It is `decode_preferences` for rankers. Most methods are not exact; see there.

    Parameters
    ----------
    method : str, default="auto"
        A method of `decode_preferences`, such as ``"exact"`` or ``"greedy_dag"``.
    order : {"ranked_pairs", "topological"}, default="ranked_pairs"
        Topological order that ``"greedy_dag"`` returns.
    n_perturbations : int, default=400
        Number of random steps of the local search.
    time_limit : float, default=None
        Seconds per query, for ``"exact"`` and ``"local_search"``. None means no limit.
    random_state : int, RandomState instance or None, default=0
        Seed for the random steps.

    See Also
    --------
    decode_preferences : The same for matrices of preferences.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.decoders import PreferenceDecoder
    >>> d = np.array([1.0, -1.0, 2.0])  # d_01, d_02 and d_12: the cycle 0 -> 1 -> 2 -> 0
    >>> PreferenceDecoder("greedy_dag").decode(d, Queries.single(3)).ranks.tolist()
    [3, 1, 2]
    """

    space = PAIRS
    takes_rules = True
    _methods = METHODS

    def __init__(
        self,
        method: str = "auto",
        *,
        order: str = "ranked_pairs",
        n_perturbations: int = N_PERTURBATIONS,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.method = method
        self.order = order
        self.n_perturbations = n_perturbations
        self.time_limit = time_limit
        self.random_state = random_state

    def _options(self) -> _batches.SearchOptions:
        check_choice(self.order, "order", ORDERS)
        return super()._options()

    def _decode(self, matrices: Floats, options: _batches.SearchOptions) -> _batches.Decoded:
        unavoidable = np.zeros(len(matrices))  # unknown, because u has only differences
        return decode_differences(matrices, unavoidable, self.method, self.order, options)
