"""Ranked: the labels of every query read best first. What every metric is computed from.

Scores or ranks come in; an order of the rows and, where scores tie, the blocks of equal scores
come out. The formulas shared by losses and metrics follow: each takes a `Ranked` and returns one
value per query.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from sklearn_rankcal._numbers import read_whole
from sklearn_rankcal._queries import Queries

_FEW_LEVELS = 32  # distinct labels up to which a pass per level beats a radix partition
TIES = ("average", "first", "worst", "best")


@dataclass
class Ranked:
    """Rows of every query, best first.

    Parameters
    ----------
    queries : Queries
    order : ndarray of shape (n_rows,)
        Row at each place of the grouped layout, best first inside each query.
    start, stop : ndarray of shape (n_rows,) or None
        Of each place, the first place (inside the query, 0-based) of its block of equal scores and
        the place after its last. None when no two scores tie.
    """

    queries: Queries
    order: NDArray[np.int64]
    start: NDArray[np.int64] | None = None
    stop: NDArray[np.int64] | None = None

    @classmethod
    def from_scores(
        cls,
        scores: NDArray[Any],
        queries: Queries,
        ties: str = "average",
        relevance: NDArray[np.float64] | None = None,
    ) -> Ranked:
        """Sort scores; `ties` says what equal scores mean (see `sklearn_rankcal.metrics`)."""
        order = queries.sort(scores)
        if ties == "first":
            return cls(queries, order)
        tied = queries_equal_neighbours(scores[order], queries)
        if not tied.any():
            return cls(queries, order)
        ranked = cls(queries, order, *_blocks(tied, queries))
        if ties == "average":
            return ranked
        assert relevance is not None
        return ranked.broken_by(-relevance if ties == "best" else relevance)

    @classmethod
    def from_ranks(cls, ranks: NDArray[np.int64], queries: Queries) -> Ranked:
        """From positions, 1 = top, a permutation of 1 .. r in each query (trusted)."""
        order = np.empty(queries.n_rows, dtype=np.int64)
        grouped = queries.gather(ranks) - 1 + queries.repeat(queries.offsets[:-1])
        order[grouped] = np.arange(queries.n_rows) if queries.order is None else queries.order
        return cls(queries, order)

    def broken_by(self, key: NDArray[Any]) -> Ranked:
        """The same with ties broken by ascending `key` (row layout); equal keys keep row order."""
        if self.start is None:
            return self
        block = self.start + self.queries.repeat(self.queries.offsets[:-1])
        return Ranked(self.queries, self.order[np.lexsort((key[self.order], block))])

    def head(self, k: int | None) -> Ranked:
        """The first k places of every query alone, with whole blocks where ties reach across."""
        if k is None or k >= self.queries.sizes.max():
            return self
        if self.start is None or self.stop is None:
            kept = np.minimum(self.queries.sizes, k)
        else:
            kept = self.sum((self.start < k).astype(np.int64))
        offsets = np.append(0, np.cumsum(kept))
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], kept)
        at = place + np.repeat(self.queries.offsets[:-1], kept)
        top = Ranked(Queries(offsets), self.order[at])
        if self.start is not None and self.stop is not None:
            top.start, top.stop = self.start[at], self.stop[at]
        return top

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Row layout to best-first layout."""
        return values[self.order]

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over each query of an array in best-first layout."""
        return self.queries.reduce(np.add, values)


def queries_equal_neighbours(grouped: NDArray[Any], queries: Queries) -> NDArray[np.bool_]:
    """Whether each place of a grouped array equals the place before it in the same query."""
    same = np.empty(len(grouped), dtype=bool)
    same[0] = False
    np.equal(grouped[1:], grouped[:-1], out=same[1:])
    same[queries.offsets[:-1]] = False
    return same


def _blocks(
    tied: NDArray[np.bool_], queries: Queries
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First place and place after the last of each place's block, inside its query."""
    first = np.flatnonzero(~tied)
    length = np.diff(np.append(first, len(tied)))
    start = np.repeat(queries.place[first], length)
    return start, start + np.repeat(length, length)


# -------------------------------------------------------------------- positional measures


def positional(
    ranked: Ranked, utility: NDArray[np.float64], discount: Callable[[int], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """sum_i utility_i phi(sigma(i)) of each query; tied rows share their block's mean discount."""
    phi = discount(int(ranked.queries.sizes.max()))
    ranked = ranked.head(_depth(phi))
    if ranked.start is None or ranked.stop is None:
        return ranked.sum(ranked.take(utility) * phi[ranked.queries.place])
    total = np.concatenate([[0.0], np.cumsum(phi)])
    length = ranked.stop - ranked.start
    mean = np.where(
        length == 1, phi[ranked.start], (total[ranked.stop] - total[ranked.start]) / length
    )
    return ranked.sum(ranked.take(utility) * mean)


def ideal(
    queries: Queries, utility: NDArray[np.float64], discount: Callable[[int], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """max over rankings of sum_i utility_i phi(sigma(i)), one value per query."""
    phi = discount(int(queries.sizes.max()))
    best = Ranked(queries, np.arange(queries.n_rows)).head(_depth(phi))
    values = best.take(queries.sort_values(utility))
    return best.sum(values * phi[best.queries.place])


def _depth(phi: NDArray[np.float64]) -> int:
    """Number of places up to the last one that counts, at least 1."""
    return int(np.flatnonzero(phi)[-1]) + 1 if phi.any() else 1


# -------------------------------------------------------------------- binary relevance


def _tied_counts(
    ranked: Ranked, relevant: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Per place: relevant rows above its block, in its block, and the block's length."""
    assert ranked.start is not None and ranked.stop is not None
    base = ranked.queries.repeat(ranked.queries.offsets[:-1])
    total = np.concatenate([[0], np.cumsum(relevant)])
    above = total[ranked.start + base]
    inside = total[ranked.stop + base] - above
    return above - total[base], inside, ranked.stop - ranked.start


def average_precision(
    ranked: Ranked, relevant: NDArray[np.bool_], k: int | None = None
) -> NDArray[np.float64]:
    """(1 / number relevant) sum over relevant rows at places <= k of the precision there.

    Undefined (NaN) without a relevant row. Ties in closed form: in a block of m rows with n
    relevant, below k0 rows with c0 relevant, the t-th row contributes on average
    (n / m) (c0 + 1 + (t - 1)(n - 1) / (m - 1)) / (k0 + t).
    """
    queries = ranked.queries
    hits = ranked.take(relevant).astype(np.int64)
    position = queries.place + 1
    if ranked.start is None:
        value = hits * queries.cumsum(hits) / position
    else:
        above, inside, length = _tied_counts(ranked, hits)
        others = (position - 1 - ranked.start) * (inside - 1) / np.maximum(length - 1, 1)
        value = inside / length * (above + 1 + others) / position
    if k is not None:
        value = np.where(position <= k, value, 0.0)
    return _divide(ranked.sum(value), ranked.sum(hits))


def reciprocal_rank(
    ranked: Ranked, relevant: NDArray[np.bool_], k: int | None = None
) -> NDArray[np.float64]:
    """1 / position of the first relevant row (0 beyond k), the mean of it over ties.

    Undefined (NaN) without a relevant row. In the block that holds the first relevant row, with m
    rows of which n are relevant, it stands t-th with probability C(m - t, n - 1) / C(m, n).
    """
    queries = ranked.queries
    hits = ranked.take(relevant).astype(np.int64)
    position = queries.place + 1
    if ranked.start is None:
        value = (hits == 1) & (queries.cumsum(hits) == 1)
        chance = value.astype(np.float64)
    else:
        above, n, m = _tied_counts(ranked, hits)
        t = position - ranked.start
        possible = (above == 0) & (n > 0) & (t <= m - n + 1)
        t, n_, m_ = np.where(possible, t, 1), np.where(possible, n, 1), np.where(possible, m, 1)
        log_chance = _log_binomial(m_ - t, n_ - 1) - _log_binomial(m_, n_)
        chance = np.where(possible, np.exp(log_chance), 0.0)
    if k is not None:
        chance = np.where(position <= k, chance, 0.0)
    found = ranked.sum(chance / position)
    return np.where(ranked.sum(hits) > 0, found, np.nan)


def _log_binomial(n: NDArray[Any], k: NDArray[Any]) -> NDArray[np.float64]:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


# -------------------------------------------------------------------- the cascade


def expected_reciprocal_rank(
    ranked: Ranked,
    relevance: NDArray[np.float64],
    satisfaction: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    k: int | None = None,
) -> NDArray[np.float64]:
    """sum over places j <= k of (1 / j) R_j prod over places above of (1 - R), R in [0, 1].

    Ties in closed form: below k0 rows, with S the probability to reach the block and E_t the mean
    over t-subsets of the block of prod (1 - R), place t contributes S (E_(t-1) - E_t) / (k0 + t).
    O(n) without ties, O(sum of squared block lengths) with them.
    """
    ranked = ranked.head(k)
    queries = ranked.queries
    passing = 1.0 - satisfaction(ranked.take(relevance))
    position = queries.place + 1
    reach = np.empty(queries.n_rows)
    for inside, valid in queries.buckets():
        product = np.ones(inside.shape)
        np.cumprod(passing[inside[:, :-1]], axis=1, out=product[:, 1:])
        reach[inside[valid]] = product[valid]
    if ranked.start is None or ranked.stop is None:
        stops_here = reach * (1.0 - passing)
    else:
        base = queries.repeat(queries.offsets[:-1])
        stops_here = reach[ranked.start + base] * _stopping(passing, ranked)
    if k is not None:
        stops_here = np.where(position <= k, stops_here, 0.0)
    return ranked.sum(stops_here / position)


def _stopping(passing: NDArray[np.float64], ranked: Ranked) -> NDArray[np.float64]:
    """E_(t-1) - E_t at each place, t its place in its block (1-based)."""
    assert ranked.start is not None and ranked.stop is not None
    drop = 1.0 - passing
    t = ranked.queries.place - ranked.start
    lengths = ranked.stop - ranked.start
    first = np.flatnonzero((t == 0) & (lengths > 1))
    for m in np.unique(lengths[first]):
        inside = first[lengths[first] == m][:, None] + np.arange(m)
        block = passing[inside]
        mean = np.zeros((len(inside), m + 1))  # E_0 .. E_m of the rows seen so far
        mean[:, 0] = 1.0
        for seen in range(1, m + 1):  # the recursion is the algorithm: O(m^2) per block
            size = np.arange(1, seen + 1)
            mean[:, 1 : seen + 1] = (
                (seen - size) * mean[:, 1 : seen + 1]
                + size * block[:, seen - 1 : seen] * mean[:, :seen]
            ) / seen
        drop[inside] = mean[:, :-1] - mean[:, 1:]
    return drop


# -------------------------------------------------------------------- pairs


def discordant_weight(
    ranked: Ranked, relevance: NDArray[np.float64], graded: bool = False
) -> NDArray[np.float64]:
    """Total weight of the pairs y_i > y_j whose row i is not above row j; a tie costs half.

    A pair weighs 1, or y_i - y_j if `graded`. Counted by running sums, never over pairs: a pass
    per level where labels are few, O(n log(number of levels)) by a radix partition where not.
    """
    levels = np.unique(relevance)
    if len(levels) <= _FEW_LEVELS:
        return _discordant_by_level(ranked, ranked.take(relevance), levels, graded)
    return _discordant_by_radix(ranked, relevance, graded)


def _discordant_by_level(
    ranked: Ranked, value: NDArray[np.float64], levels: NDArray[np.float64], graded: bool
) -> NDArray[np.float64]:
    """For each level, the lower labels above it. y_i - y_j is the sum of the steps between."""
    queries = ranked.queries
    total = np.zeros(queries.n_queries)
    running = np.zeros(len(value) + 1, dtype=np.int64)
    if ranked.start is not None and ranked.stop is not None:
        base = queries.repeat(queries.offsets[:-1])
        start, stop = ranked.start + base, ranked.stop + base
    for below, level in itertools.pairwise(levels):
        low = value < level
        high = ~low if graded else value == level
        np.cumsum(low, out=running[1:])
        if ranked.start is None:
            above = running[:-1] * high
        else:  # of the low labels in its own block half are above
            above = (running[start] + running[stop]) * (high / 2)
        before_query = running[queries.offsets[:-1]]
        count = ranked.sum(above) - before_query * ranked.sum(high.astype(np.int64))
        total += count * (level - below) if graded else count
    return total


def _discordant_by_radix(
    ranked: Ranked, relevance: NDArray[np.float64], graded: bool
) -> NDArray[np.float64]:
    """Partition by the bits of the labels' ranks, from the highest down, counting at each bit."""
    if ranked.start is not None:  # a tied pair costs 0 in one of these orders and 1 in the other
        best = _discordant_by_radix(ranked.broken_by(-relevance), relevance, graded)
        worst = _discordant_by_radix(ranked.broken_by(relevance), relevance, graded)
        return (best + worst) / 2
    queries = ranked.queries
    levels, codes = np.unique(relevance, return_inverse=True)
    code = codes[ranked.order]
    value = ranked.take(relevance)
    group = queries.repeat(queries.offsets[:-1])  # place at which the row's current group begins
    total = np.zeros(queries.n_queries)
    for bit in reversed(range((len(levels) - 1).bit_length())):
        high = (code >> bit) & 1
        low = 1 - high
        low_before = _exclusive(np.cumsum(low), low, group)
        cost = low_before * high
        if graded:
            low_value = value * low
            cost = cost * value - high * _exclusive(np.cumsum(low_value), low_value, group)
        total += queries.reduce(np.add, cost)
        # stable partition of every group: low labels first, then high ones
        is_first = group == np.arange(len(group))
        number = np.cumsum(is_first) - 1
        n_low = np.add.reduceat(low, np.flatnonzero(is_first))[number]
        place = np.arange(len(group)) - group
        target = group + np.where(high == 1, n_low + place - low_before, low_before)
        moved = np.empty_like(target)
        moved[target] = np.arange(len(target))
        group = (group + high * n_low)[moved]
        code, value = code[moved], value[moved]
    return total


def _exclusive(
    running: NDArray[Any], values: NDArray[Any], group: NDArray[np.int64]
) -> NDArray[Any]:
    """Sum of the values before each place in its group, from the global running sum."""
    return running - values - (running - values)[group]


def preference_weight(
    queries: Queries, relevance: NDArray[np.float64], graded: bool = False
) -> NDArray[np.float64]:
    """Total weight of the pairs y_i > y_j of each query (see `discordant_weight`)."""
    levels = np.unique(relevance)
    if len(levels) <= _FEW_LEVELS:
        grouped, total = queries.gather(relevance), np.zeros(queries.n_queries)
        for below, level in itertools.pairwise(levels):
            low = queries.reduce(np.add, (grouped < level).astype(np.int32))
            if graded:
                total += (level - below) * low * (queries.sizes - low)
            else:
                total += low * queries.reduce(np.add, (grouped == level).astype(np.int32))
        return total
    descending = queries.sort_values(relevance)
    if graded:
        balance = queries.repeat(queries.sizes) - 1 - 2 * queries.place
        return queries.reduce(np.add, balance * descending)
    # the place in its run of equal labels counts the equal pairs a row closes
    same = queries_equal_neighbours(descending, queries)
    start, _ = _blocks(same, queries)
    equal = queries.reduce(np.add, queries.place - start)
    return (queries.sizes * (queries.sizes - 1) / 2 - equal).astype(np.float64)


def _divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    """Numerator / denominator, NaN where the denominator is 0."""
    defined = denominator != 0
    return np.where(defined, numerator / np.where(defined, denominator, 1), np.nan)


def check_ranks(ranks: ArrayLike, queries: Queries) -> NDArray[np.int64]:
    """Positions as int64, each query a permutation of 1 .. r."""
    positions = read_whole(ranks, "ranks")
    if positions.shape != (queries.n_rows,):
        raise ValueError(
            f"ranks has shape {positions.shape}, but y_true has {queries.n_rows} rows."
        )
    grouped = queries.gather(positions)
    seen = np.zeros(queries.n_rows, dtype=bool)
    outside = (grouped < 1) | (grouped > queries.repeat(queries.sizes))
    if not outside.any():
        seen[grouped - 1 + queries.repeat(queries.offsets[:-1])] = True
    if outside.any() or not seen.all():
        bad = np.flatnonzero(~queries.reduce(np.logical_and, seen) if not outside.any() else
                             queries.reduce(np.logical_or, outside))[0]
        shown = grouped[queries.offsets[bad] : queries.offsets[bad + 1]][:10]
        raise ValueError(
            f"ranks must be a permutation of 1 .. r in every query (1 = top); in query "
            f"{queries.ids[bad]!r} of {queries.sizes[bad]} rows they are {shown.tolist()}... "
            "Pass scores as y_score instead."
        )
    return positions
