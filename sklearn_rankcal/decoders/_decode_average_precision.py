"""Decode average precision: find the order with the largest expected average precision.

`decode_average_precision` is for matrices of a user, and `AveragePrecisionDecoder` for rankers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.decoders import _batches
from sklearn_rankcal.decoders._batches import DecodeResult
from sklearn_rankcal.targets import SYMMETRIC_PAIRS
from sklearn_rankcal.utils._numbers import Floats, Ints

#: Default number of perturbations. The objective has few local optima.
N_PERTURBATIONS = 60
#: "auto" is exact up to this number of documents, which takes a few milliseconds for each query.
DP_SIZE = 16
#: Largest number of documents for "exact". It takes 128 MB, and about a second with compiled
#: kernels.
DP_LARGEST = 24
#: Seconds that NumPy's kernels take for a descent on r documents, divided by r^2, and for the
#: subsets of r documents, divided by 2^r r.
SECONDS_NUMPY, SECONDS_NUMPY_SUBSETS = 5e-6, 2.5e-8
#: Smallest and largest number of documents that a perturbation moves, and the largest distance of a
#: move as a fraction of the list. These values found known optima more often than other values.
MOVES = (8, 24)
REACH = 0.2
#: Relative rounding error that the bound and the value may have. Both sum the same entries.
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
    rules: Any = None,
) -> DecodeResult:
    """Find the ranking with the largest expected average precision.

    It minimises ``1 - sum_{j <= i} u_ij / max(rank_i, rank_j)``, where j <= i includes j = i
    (Ramaswamy et al., 2013, section 6). With ``u_ij = E[y_i y_j / sum y]``, this is one minus the
    expected average precision. One score per document does not determine the best ranking in
    general, so u is a matrix. Read more in :doc:`/decoders`.

    Parameters
    ----------
    u : array-like of shape (r, r), list of them, or array-like of shape (n_queries, r, r)
        Symmetric matrices. Entries may be negative.
    method : str, default="auto"
        - ``"auto"``: ``"exact"`` up to 16 documents, ``"local_search"`` for more.
        - ``"exact"``: subset dynamic programming, up to 24 documents.
        - ``"local_search"``: iterated local search by insertion from three starts: the orders of
          the diagonal and of the row sums, and one built from the last place to the first. It is
          not exact; see ``lower_bound``.
        - ``"diagonal"``: sort by ``u_ii`` (theorem 4). It is exact only under the condition
          P_reinforce; see the examples.
    n_perturbations : int, default=60
        Number of random perturbations of the local search, at most 100,000. A descent follows
        each.
    time_limit : float, default=None
        Seconds per query, for ``"local_search"``. None means no limit. Decoding takes at most half
        a second longer, plus the lower bound and some passes over the matrix. Ctrl-C is as quick.
    sizes, random_state, n_jobs, rules
        As in `decode_preferences`.

    Returns
    -------
    result : DecodeResult
        ``ranks``, ``objective``, ``lower_bound``, ``optimal``, ``method`` and ``n_iter``. For
        methods that are not exact, ``lower_bound`` takes O(r^2 log r) time, and is close only for
        matrices of nearly rank one.

    Raises
    ------
    ValueError
        If a matrix is not symmetric (up to 1e-8 of its largest entry) or has an entry beyond 1e50.
        If a query has more than 24 documents, for ``"exact"``.

    Notes
    -----
    ``"exact"`` takes O(2^r r) time and 2^r floats. Each sweep of the local search takes O(r^2).

    Examples
    --------
    With probability 0.3, only the third document is relevant. With probability 0.7, the other three
    are:

    >>> import numpy as np
    >>> from sklearn_rankcal.decoders import decode_average_precision
    >>> rare, common = np.array([0, 0, 1, 0]), np.array([1, 1, 0, 1])
    >>> u = 0.3 * np.outer(rare, rare) + 0.7 * np.outer(common, common) / 3
    >>> best = decode_average_precision(u)
    >>> best.ranks.tolist(), round(1 - best.objective, 4), best.optimal
    ([1, 2, 4, 3], 0.775, True)

    Sorting by the diagonal ranks the third document higher, and its value is smaller:

    >>> by_diagonal = decode_average_precision(u, "diagonal")
    >>> by_diagonal.ranks.tolist(), round(1 - by_diagonal.objective, 4)
    ([2, 3, 1, 4], 0.7472)
    """
    matrices = _batches.MatrixInput(u, sizes)
    options = _batches.check_options(method, METHODS, n_perturbations, time_limit, random_state)
    solve = partial(_decode_matrices, method=method, options=options)
    decoded = _batches.decode_batches(solve, matrices.batch, matrices.sizes, n_jobs)
    if rules is not None:
        rules.keep(decoded, matrices.batch, SYMMETRIC_PAIRS, matrices.queries, method, options)
    return matrices.result(decoded)


def _decode_matrices(u: Floats, method: str, options: _batches.SearchOptions) -> _batches.Decoded:
    turned = u.transpose(0, 2, 1)
    uneven = np.abs(u - turned)
    allowed = 1e-8 * np.abs(u).max(axis=(1, 2), keepdims=True)
    if (uneven > allowed).any():
        q, i, j = np.argwhere(uneven > allowed)[0]
        raise ValueError(
            f"u must be symmetric; the entries [{i}, {j}] and [{j}, {i}] of a matrix of "
            f"{u.shape[1]} documents are {u[q, i, j]:.6g} and {u[q, j, i]:.6g}. For preferences, "
            "use decode_preferences."
        )
    # equal entries are not averaged, because half of the smallest float is 0
    return decode_symmetric(np.where(u == turned, u, (u + turned) / 2), method, options)


def decode_symmetric(u: Floats, method: str, options: _batches.SearchOptions) -> _batches.Decoded:
    """Decode a batch (m, r, r) of symmetric matrices."""
    if method == "auto":
        method = "exact" if u.shape[1] <= DP_SIZE else "local_search"
    order, n_iter = METHODS[method](u, options)
    value = _value(u, order)
    bound = value if method == "exact" else np.maximum(_value_bound(u), value)
    optimal = bound - value <= ROUNDING * _value(np.abs(u), order)
    return _batches.Decoded(
        order,
        1.0 - value,
        1.0 - np.where(optimal, value, bound),
        optimal,
        [method] * len(u),
        n_iter,
    )


def _value(u: Floats, order: Ints) -> Floats:
    """The value sum_{j <= i} u_ij / max(rank_i, rank_j) of each order."""
    every = np.arange(len(u))[:, None, None]
    placed = np.ascontiguousarray(u[every, order[:, :, None], order[:, None, :]])
    # sums along rows of a contiguous array do not depend on the batch size
    return (np.tril(placed).sum(axis=2) / np.arange(1, u.shape[1] + 1)).sum(axis=1)


def _value_bound(u: Floats) -> Floats:
    """An upper bound on the value of every order.

    The value is the sum over k of V_k (1/k - 1/(k + 1)), where V_k = sum_{j <= i} u_ij over the
    first k documents. V_k is at most the sum of the k largest values of u_dd plus half of d's k - 1
    largest other entries. It is also V_r minus what the other r - k documents take away: document d
    at least u_dd plus the sum of its other entries minus half of its r - k - 1 largest ones.
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


def _diagonal(u: Floats, options: _batches.SearchOptions) -> tuple[Ints, Ints]:
    return _by_diagonal(u), np.zeros(len(u), np.int64)


def _by_diagonal(u: Floats) -> Ints:
    """Orders of the documents by descending diagonal entry."""
    return np.argsort(-np.diagonal(u, axis1=1, axis2=2), axis=1, kind="stable")


def _by_peeling(u: Floats) -> Ints:
    """Return orders built from the last place to the first.

    Each place gets the document with the smallest sum over the documents without a place.
    """
    m, r = u.shape[:2]
    every = np.arange(m)
    sums = u.sum(axis=2)
    order = np.empty((m, r), dtype=np.int64)
    for k in range(r - 1, -1, -1):
        v = r - 1 - sums[:, ::-1].argmin(axis=1)  # the last one of equal row sums
        order[:, k] = v
        sums -= u[every, v]
        sums[every, v] = np.inf
    return order


def _local_search(u: Floats, options: _batches.SearchOptions) -> tuple[Ints, Ints]:
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
    perturbations = _draw_perturbations(options.n_perturbations, options.seed)
    for q, matrix in enumerate(u):
        orders[q], n_iter[q] = _search(matrix, starts[q], perturbations, options.time_limit)
    return orders, n_iter


def _search(
    u: Floats, starts: Ints, perturbations: Floats, time_limit: float | None
) -> tuple[Ints, int]:
    """Run iterated local search on u (r, r); return the best order and the number of sweeps.

    The perturbations are divided among the starts (n_starts, r): several short chains of descents
    find better orders than one long chain, which stays near one local optimum. Up to rounding, more
    perturbations never give a worse order.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    time_is_up = _batches.deadline_check(deadline)
    _batches.warn_if_slow((len(perturbations) + len(starts)) * SECONDS_NUMPY * len(u) ** 2)
    tolerance = _batches.rounding(u)
    found: list[Ints] = []
    sweeps = 0

    def descend(order: Ints, own: Floats) -> None:
        nonlocal sweeps
        order, more = kernels.average_precision_search(
            u, order, own, tolerance, _batches.MAX_SWEEPS, time_is_up
        )
        found.append(order)
        sweeps += more

    # First descend from every start. Then apply the perturbations to the results.
    for start in starts:
        if found and time_is_up is not None and time_is_up():
            break
        descend(start, perturbations[:0])
    n_descents = len(found)
    for chain in range(n_descents):
        if time_is_up is not None and time_is_up():
            break
        descend(found[chain], np.ascontiguousarray(perturbations[chain :: len(starts)]))
    # Perturbations also move between orders of equal value. Prefer the result of the first descents
    # unless a perturbed order is strictly better.
    values = _value(np.repeat(u[None], len(found), axis=0), np.array(found))
    best = values[:n_descents].argmax()
    if len(found) == n_descents:
        return found[best], sweeps
    perturbed = n_descents + values[n_descents:].argmax()
    return found[perturbed if values[perturbed] > values[best] + tolerance else best], sweeps


def _draw_perturbations(n_perturbations: int, seed: int) -> Floats:
    """Draw moves (from, to) as fractions of the number of documents, the same for every query.

    Returns an array of shape (n_perturbations, 2 * MOVES[1]), with from and to in turn.
    """
    least, most = MOVES
    # one row of numbers per perturbation: the first ones do not depend on n_perturbations
    numbers = np.random.default_rng(seed).random((n_perturbations, 2 * most + 1))
    moves = numbers[:, 1:].reshape(n_perturbations, most, 2).copy()
    start, by = moves[..., 0], REACH * (2 * moves[..., 1] - 1)
    # a perturbation with fewer than MOVES[1] moves is padded with moves that change nothing
    idle = np.arange(most) >= (least + numbers[:, :1] * (most - least + 1)).astype(np.int64)
    moves[..., 1] = np.where(idle, start, np.clip(start + by, 0.0, np.nextafter(1.0, 0.0)))
    return moves.reshape(n_perturbations, 2 * most)


def _exact(u: Floats, options: _batches.SearchOptions) -> tuple[Ints, Ints]:
    m, r = u.shape[:2]
    if r > DP_LARGEST:
        raise ValueError(
            f"method='exact' takes 2^r steps and is limited to {DP_LARGEST} documents; a query has "
            f"{r}. Use method='local_search'."
        )
    orders = np.empty((m, r), dtype=np.int64)
    share = 1.0 / np.arange(1, r + 1)
    _batches.warn_if_slow(SECONDS_NUMPY_SUBSETS * m * r * 2.0**r)
    for q, matrix in enumerate(u):
        orders[q] = kernels.subset_dp(-matrix, -np.diagonal(matrix), share, np.inf, False)[0]
    return orders, np.ones(m, np.int64)


METHODS: dict[str, Callable[[Floats, _batches.SearchOptions], tuple[Ints, Ints]]] = {
    "auto": _local_search,  # `decode_symmetric` replaces "auto" by the method that fits the size
    "exact": _exact,
    "local_search": _local_search,
    "diagonal": _diagonal,
}


class AveragePrecisionDecoder(_batches.MatrixDecoder):
    """Decoder for ``loss="map"``: the ranking with the largest expected average precision.

    It is `decode_average_precision` for rankers. Not all methods are exact; see there.

    Parameters
    ----------
    method : str, default="auto"
        A method of `decode_average_precision`, such as ``"exact"`` or ``"diagonal"``.
    n_perturbations : int, default=60
        Number of random perturbations of the local search.
    time_limit : float, default=None
        Seconds per query, for ``"local_search"``. None means no limit.
    random_state : int, RandomState instance or None, default=0
        Seed for the perturbations.

    See Also
    --------
    decode_average_precision : The same for matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.decoders import AveragePrecisionDecoder
    >>> u = np.array([0.2, 0.1, 0.0, 0.5, 0.2, 0.3])  # u_00, u_01, u_02, u_11, u_12, u_22
    >>> AveragePrecisionDecoder("exact").decode(u, Queries.single(3)).ranks.tolist()
    [3, 1, 2]
    """

    space = SYMMETRIC_PAIRS
    takes_rules = True
    _methods = METHODS

    def __init__(
        self,
        method: str = "auto",
        *,
        n_perturbations: int = N_PERTURBATIONS,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.method = method
        self.n_perturbations = n_perturbations
        self.time_limit = time_limit
        self.random_state = random_state

    def _decode(self, matrices: Floats, options: _batches.SearchOptions) -> _batches.Decoded:
        return decode_symmetric(matrices, self.method, options)
