"""Rankings with undecided pairs: documents of one tier share a position."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.decoders import _batches
from sklearn_rankcal.decoders._batches import DecodeResult
from sklearn_rankcal.decoders._decode_preferences import decode_differences
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._messages import check_number
from sklearn_rankcal.utils._numbers import ROUNDING, Floats, Ints, exceeds, is_largest

#: Largest query for dynamic programming over pairs of sets: O(3^r) time, about 20 ms.
_EXACT_SIZE = 10
_N_PERTURBATIONS = 20


def decode_tiers(
    u: ArrayLike | Sequence[ArrayLike],
    margin: float,
    *,
    sizes: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
) -> DecodeResult:
    """Rank only where preferences are clear: divide documents into ordered tiers.

    Documents of one tier share a position, and their pairs are undecided. The tiers minimise the
    sum of ``margin - (u_ij - u_ji)`` over the decided pairs i above j, so a decision must be worth
    `margin`. Up to a constant, this is twice the expected pairwise disagreement, in which an
    undecided pair loses half of its weight like a coin flip, plus `margin` per decided pair.

    For votes, ``aggregate(votes, n_resamples=1000).tiers()`` needs no matrix and no margin.

    Parameters
    ----------
    u : array-like of shape (r, r), list of them, or array-like of shape (n_queries, r, r)
        ``u[i, j]`` is the weight of the preference for document i over document j.
    margin : float
        Cost of a decision, in the unit of the differences ``u[i, j] - u[j, i]``; at least 0. For
        shares of votes, 0.2 decides a pair by itself if one document has more than 60 % of them.
        With 0, the result is as in `decode_preferences`. With the largest difference, all
        documents share position 1.
    sizes, random_state, n_jobs
        As in `decode_preferences`.

    Returns
    -------
    result : DecodeResult
        The rank of a document is the number of documents in higher tiers plus 1. With up to 10
        documents, the result is optimal. With more, a local search moves single documents and
        divides the best order again, and `lower_bound` decides each pair by itself.

    See Also
    --------
    Tiers : The same as a decoder for rankers.

    Examples
    --------
    Seven of ten judges prefer a to b, and all of them prefer a and b to c:

    >>> from sklearn_rankcal.decoders import decode_tiers
    >>> u = [[0, 7, 10], [3, 0, 10], [0, 0, 0]]
    >>> decode_tiers(u, margin=2).ranks.tolist(), decode_tiers(u, margin=5).ranks.tolist()
    ([1, 2, 3], [1, 1, 3])
    """
    matrices = _batches.MatrixInput(u, sizes)
    options = _check_parameters(margin, random_state)

    def solve(batch: Floats) -> _batches.Decoded:
        return _decode(kernels.differences(batch)[0], float(margin), options)

    return matrices.result(_batches.decode_batches(solve, matrices.batch, matrices.sizes, n_jobs))


class Tiers(_batches.MatrixDecoder):
    """Decoder that leaves unclear pairs undecided: documents of one tier share a position.

    Use it with the loss on preferences: ``CalibratedRanker(loss="pd", decoder=Tiers(margin=0.2))``.
    `decode_tiers` describes the objective. The decoder is exact for up to 10 documents per query.

    Parameters
    ----------
    margin : float
        Cost of a decision, in the unit of the predicted differences; at least 0.
    random_state : int, RandomState instance or None, default=0
        Seed for the perturbations of the local search.

    See Also
    --------
    decode_tiers : The same for matrices of preferences.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.decoders import Tiers
    >>> d = np.array([0.4, 1.0, 1.0])  # d_01, d_02 and d_12
    >>> Tiers(margin=0.5).decode(d, Queries.single(3)).ranks.tolist()
    [1, 1, 3]
    """

    space = PAIRS
    calibrated_over = (
        "no distributions for rankings: Tiers minimises another loss, in which documents can "
        "share a position"
    )

    def __init__(
        self, margin: float, *, random_state: int | np.random.RandomState | None = 0
    ) -> None:
        self.margin = margin
        self.random_state = random_state

    def _options(self) -> _batches.SearchOptions:
        return _check_parameters(self.margin, self.random_state)

    def _decode(self, matrices: Floats, options: _batches.SearchOptions) -> _batches.Decoded:
        return _decode(matrices, float(self.margin), options)


def _check_parameters(
    margin: Any, random_state: int | np.random.RandomState | None
) -> _batches.SearchOptions:
    check_number(margin, "margin", "[0, inf)")
    return _batches.check_options("auto", ("auto",), 0, None, random_state)


# ------------------------------------------------------------------ one batch of queries


def _decode(d: Floats, margin: float, options: _batches.SearchOptions) -> _batches.Decoded:
    """Decode a batch (m, r, r) of differences."""
    m, r = d.shape[:2]
    pairs = np.triu_indices(r, 1)
    # each pair by itself gains at least as much as any tiers
    bound = np.maximum(np.abs(d[:, pairs[0], pairs[1]]) - margin, 0.0).sum(axis=1)
    exact = r <= _EXACT_SIZE
    if not exact:
        free = decode_differences(
            d, np.zeros(m), "auto", "ranked_pairs", options._replace(n_perturbations=400)
        ).order
    order, first = np.empty((m, r), dtype=np.int64), np.empty((m, r), dtype=np.int64)
    gain = np.empty(m)
    for q in range(m):
        gains = d[q] - margin
        np.fill_diagonal(gains, 0.0)
        tiers = _best_tiers(gains) if exact else _search(gains, free[q], options.seed)
        gain[q] = _value(gains, tiers)
        order[q] = np.concatenate(tiers)
        sizes = [len(tier) for tier in tiers]
        first[q] = np.repeat(np.append(0, np.cumsum(sizes)[:-1]) + 1, sizes)
    proved = exact | ~exceeds(bound, gain, np.abs(d).sum(axis=(1, 2)))
    return _batches.Decoded(
        order,
        -gain,
        -np.where(proved, gain, bound),
        proved,
        ["exact" if exact else "local_search"] * m,
        np.zeros(m, dtype=np.int64),
        first=first,
    )


def _value(gains: Floats, tiers: list[Ints]) -> float:
    """Return the sum of the gains of the decided pairs."""
    tier = np.repeat(np.arange(len(tiers)), [len(one) for one in tiers])
    order = np.concatenate(tiers)
    decided = tier[:, None] < tier
    return float(gains[np.ix_(order, order)][decided].sum())


def _best_tiers(gains: Floats) -> list[Ints]:
    """Return the best tiers by dynamic programming over a top set S and the next tier T.

    T gains the sum over t in T of the gains of all decisions of S above t.
    """
    r = len(gains)
    n_sets = 1 << r
    best = np.full(n_sets, -np.inf)
    best[0] = 0.0
    before = np.zeros(n_sets, dtype=np.int64)
    above = np.zeros((n_sets, r))  # above[S, t]: gain of all of S above t
    for i in range(r):
        above[1 << i : 1 << (i + 1)] = above[: 1 << i] + gains[i]
    few = ROUNDING * np.abs(gains).sum()  # prefers fewer tiers among equal divisions
    for s in range(n_sets - 1):  # O(3^r) entries in all
        tiers, worth = np.zeros(1, dtype=np.int64), np.full(1, best[s] - few)
        for t in range(r):
            if not s >> t & 1:
                tiers = np.concatenate([tiers, tiers | 1 << t])
                worth = np.concatenate([worth, worth + above[s, t]])
        tiers, worth = tiers[1:] | s, worth[1:]
        better = worth > best[tiers] + few / 2
        best[tiers[better]] = worth[better]
        before[tiers[better]] = s
    found, last = [], n_sets - 1
    while last:
        inside = last & ~int(before[last])
        found.append(np.flatnonzero(inside >> np.arange(r) & 1))
        last = int(before[last])
    return found[::-1]


def _search(gains: Floats, order: Ints, seed: int) -> list[Ints]:
    """Divide an order, move single documents, and repeat from perturbed orders."""
    rng = np.random.RandomState(seed)
    best = _improve(gains, order)
    value = _value(gains, best)
    for _ in range(_N_PERTURBATIONS):
        perturbed = np.concatenate(best)
        for _ in range(4):
            p, q = rng.randint(len(order), size=2)
            perturbed = np.insert(np.delete(perturbed, p), q, perturbed[p])
        found = _improve(gains, perturbed)
        if exceeds(_value(gains, found), value, np.abs(gains).sum()):
            best, value = found, _value(gains, found)
    return best


def _improve(gains: Floats, order: Ints) -> list[Ints]:
    """Divide an order into its best tiers and move single documents until nothing improves."""
    tiers = _divide(gains, order)
    value = _value(gains, tiers)
    tolerance = ROUNDING * np.abs(gains).sum()
    while True:
        tiers = _move(gains, tiers, tolerance)
        divided = _divide(gains, np.concatenate(tiers))
        again = _value(gains, divided)
        if again <= value + tolerance:
            return divided if exceeds(again, _value(gains, tiers), np.abs(gains).sum()) else tiers
        tiers, value = divided, again


def _divide(gains: Floats, order: Ints) -> list[Ints]:
    """Return the best division of an order into tiers, by dynamic programming in O(r^2)."""
    r, size = len(order), np.abs(gains).sum()
    # over[j, k]: gain of the first j documents above the document at place k
    over = np.zeros((r + 1, r))
    np.cumsum(gains[np.ix_(order, order)], axis=0, out=over[1:])
    best, start = np.zeros(r + 1), np.zeros(r + 1, dtype=np.int64)
    # sums[j, k] - sums[j, j]: gain of the first j documents above those at places j .. k - 1
    sums = np.concatenate([np.zeros((r + 1, 1)), np.cumsum(over, axis=1)], axis=1)
    for k in range(1, r + 1):
        worth = best[:k] + sums[np.arange(k), k] - sums[np.arange(k), np.arange(k)]
        start[k] = np.argmax(is_largest(worth, size))  # the first maximum gives the fewest tiers
        best[k] = worth[start[k]]
    edges = [r]
    while edges[-1]:
        edges.append(int(start[edges[-1]]))
    return [order[a:b] for a, b in pairwise(edges[::-1])]


def _move(gains: Floats, tiers: list[Ints], tolerance: float) -> list[Ints]:
    """Move single documents to another tier or a new one until nothing improves."""
    r = len(gains)
    tier = np.empty(r, dtype=np.int64)
    for number, one in enumerate(tiers):
        tier[one] = number
    changed = True
    while changed:
        changed = False
        for x in range(r):
            n = int(tier.max()) + 1
            own = int(tier[x])
            others = np.arange(r) != x
            below = np.bincount(tier[others], gains[others, x], n)  # gain of each tier above x
            above = np.bincount(tier[others], gains[x, others], n)  # gain of x above each tier
            sum_below = np.append(0.0, np.cumsum(below))
            sum_above = above.sum() - np.append(0.0, np.cumsum(above))
            joined = sum_below[:-1] + sum_above[1:]
            alone = sum_below + sum_above  # in a new tier before each tier, and after the last
            now = joined[own]
            place = int(np.argmax(joined))
            new = int(np.argmax(alone))
            if alone[new] > max(joined[place], now) + tolerance:
                tier[tier >= new] += 1
                tier[x] = new
            elif joined[place] > now + tolerance:
                tier[x] = place
            else:
                continue
            changed = True
            tier = np.unique(tier, return_inverse=True)[1]  # a tier may be empty now
    return [np.flatnonzero(tier == number) for number in range(int(tier.max()) + 1)]
