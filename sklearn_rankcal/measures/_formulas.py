"""Ranking: the labels of every query read best first. What every metric is computed from.

Scores or ranks come in; an order of the rows and, where scores tie, the blocks of equal scores
come out. The formulas shared by losses and metrics follow: each takes a `Ranking` and returns one
value per query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from sklearn_rankcal.measures._tied_cascade import LONG_BLOCK, block_value, by_documents
from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.utils._numbers import read_whole

_FEW_LEVELS = 32  # distinct labels up to which a pass per level beats a radix partition
TIES = ("average", "first", "worst", "best")


@dataclass
class Ranking:
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
    ) -> Ranking:
        """Sort scores; `ties` says what equal scores mean (see `sklearn_rankcal.metrics`)."""
        order = queries.sort(scores)
        if ties == "first":
            return cls(queries, order)
        tied = equal_neighbours(scores[order], queries)
        if not tied.any():
            return cls(queries, order)
        ranked = cls(queries, order, *_blocks(tied, queries))
        if ties == "average":
            return ranked
        assert relevance is not None
        return ranked.break_ties(-relevance if ties == "best" else relevance)

    @classmethod
    def from_ranks(cls, ranks: NDArray[np.int64], queries: Queries) -> Ranking:
        """From positions, 1 = top, a permutation of 1 .. r in each query (trusted)."""
        order = np.empty(queries.n_rows, dtype=np.int64)
        grouped = queries.gather(ranks) - 1 + queries.repeat(queries.offsets[:-1])
        order[grouped] = np.arange(queries.n_rows) if queries.order is None else queries.order
        return cls(queries, order)

    def break_ties(self, key: NDArray[Any]) -> Ranking:
        """The same with ties broken by ascending `key` (row layout); equal keys keep row order."""
        if self.start is None:
            return self
        block = self.start + self.queries.repeat(self.queries.offsets[:-1])
        return Ranking(self.queries, self.order[np.lexsort((key[self.order], block))])

    def head(self, k: int | None) -> Ranking:
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
        top = Ranking(Queries(offsets), self.order[at])
        if self.start is not None and self.stop is not None:
            top.start, top.stop = self.start[at], self.stop[at]
        return top

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Row layout to best-first layout."""
        return values[self.order]

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over each query of an array in best-first layout."""
        return self.queries.reduce(np.add, values)


def equal_neighbours(grouped: NDArray[Any], queries: Queries) -> NDArray[np.bool_]:
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
    ranked: Ranking, utility: NDArray[np.float64], discount: Callable[[int], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """sum_i utility_i phi(sigma(i)) of each query; tied rows share their block's mean discount."""
    phi = discount(int(ranked.queries.sizes.max()))
    ranked = ranked.head(_depth(phi))
    if ranked.start is None or ranked.stop is None:
        return ranked.sum(ranked.take(utility) * phi[ranked.queries.place])
    # each block's discounts are added up by themselves: in a difference of running sums a small
    # discount drowns in the large ones above it
    at = phi[ranked.queries.place]
    first = np.flatnonzero(ranked.queries.place == ranked.start)
    length = np.diff(np.append(first, len(at)))
    mean = np.repeat(np.add.reduceat(at, first) / length, length)
    return ranked.sum(ranked.take(utility) * mean)


def ideal(
    queries: Queries, utility: NDArray[np.float64], discount: Callable[[int], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """max over rankings of sum_i utility_i phi(sigma(i)), one value per query."""
    phi = discount(int(queries.sizes.max()))
    best = Ranking(queries, np.arange(queries.n_rows)).head(_depth(phi))
    values = best.take(queries.sort_values(utility))
    return best.sum(values * phi[best.queries.place])


def _depth(phi: NDArray[np.float64]) -> int:
    """Number of places up to the last one that counts, at least 1."""
    return int(np.flatnonzero(phi)[-1]) + 1 if phi.any() else 1


# -------------------------------------------------------------------- binary relevance


def _tied_counts(
    ranked: Ranking, relevant: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Per place: relevant rows above its block, in its block, and the block's length."""
    assert ranked.start is not None and ranked.stop is not None
    base = ranked.queries.repeat(ranked.queries.offsets[:-1])
    total = np.concatenate([[0], np.cumsum(relevant)])
    above = total[ranked.start + base]
    inside = total[ranked.stop + base] - above
    return above - total[base], inside, ranked.stop - ranked.start


def average_precision(
    ranked: Ranking, relevant: NDArray[np.bool_], k: int | None = None
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
    ranked: Ranking, relevant: NDArray[np.bool_], k: int | None = None
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
    ranked: Ranking,
    relevance: NDArray[np.float64],
    satisfaction: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    k: int | None = None,
) -> NDArray[np.float64]:
    """sum over places j <= k of (1 / j) R_j prod over places above of (1 - R), R in [0, 1].

    Equal scores are averaged over their orders, see `_tied_cascade`. O(n) without ties. A block of
    m tied rows costs O(m^2) up to `LONG_BLOCK` rows, and O(m) times a constant beyond, unless the
    cutoff k ends inside the block: then O(m k) at most.
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
        value = reach * ((1.0 - passing) / position)  # in the order of the tied case
    else:
        base = queries.repeat(queries.offsets[:-1])
        value = reach[ranked.start + base] * _tied_values(passing, ranked, k)
    if k is not None:
        value = np.where(position <= k, value, 0.0)
    return ranked.sum(value)


def _tied_values(
    passing: NDArray[np.float64], ranked: Ranking, k: int | None
) -> NDArray[np.float64]:
    """(E_(t-1) - E_t) / (k0 + t) at the t-th place of each block; a long block's sum at its first.

    For a user who reaches the block; see `_tied_cascade` for the symbols.
    """
    assert ranked.start is not None and ranked.stop is not None
    drop = 1.0 - passing
    lengths = ranked.stop - ranked.start
    first = np.flatnonzero((ranked.queries.place == ranked.start) & (lengths > 1))
    for m in np.unique(lengths[first]):
        if m >= LONG_BLOCK:
            continue
        inside = first[lengths[first] == m][:, None] + np.arange(m)
        drop[inside] = -np.diff(by_documents(passing[inside], m), axis=1)
    value = drop / (ranked.queries.place + 1)
    for place in first[lengths[first] >= LONG_BLOCK]:
        m, above = int(lengths[place]), int(ranked.start[place])
        counted = m if k is None else min(m, k - above)
        value[place : place + m] = 0.0
        value[place] = block_value(passing[place : place + m], above, counted)
    return value


# -------------------------------------------------------------------- pairs


def discordant_weight(
    ranked: Ranking, relevance: NDArray[np.float64], graded: bool = False
) -> NDArray[np.float64]:
    """Total weight of the pairs y_i > y_j whose row i is not above row j; a tie costs half.

    A pair weighs 1, or y_i - y_j if `graded`. Pairs are counted in integers, never formed: a pass
    per level where labels are few, O(n log(number of levels)) by a radix partition where not.

    If `graded`, y_i - y_j is the sum of the gaps between neighbouring labels of the query that lie
    between the two, so that the weight is the sum over the query's gaps of gap times the number of
    discordant pairs across it. The counts are exact, no term is negative, and each query is added
    up by itself in ascending order of its labels: the value of a query does not depend on the
    others by a single bit, and never exceeds `preference_weight`.
    """
    levels = np.unique(relevance)
    if len(levels) <= _FEW_LEVELS:
        return _discordant_by_level(ranked, ranked.take(relevance), levels, graded)
    if not graded:
        return _discordant_by_radix(ranked, relevance)
    grouped, across = _discordant_across(ranked, relevance)
    return _sum_of_gaps(ranked.queries, grouped, across)


def _discordant_by_level(
    ranked: Ranking, value: NDArray[np.float64], levels: NDArray[np.float64], graded: bool
) -> NDArray[np.float64]:
    """For each level, the lower labels that stand above it, or above all labels from it on."""
    queries = ranked.queries
    total = np.zeros(queries.n_queries)
    running = np.zeros(len(value) + 1, dtype=np.int64)
    gaps = _Gaps(queries.n_queries)
    if ranked.start is not None and ranked.stop is not None:
        base = queries.repeat(queries.offsets[:-1])
        start, stop = ranked.start + base, ranked.stop + base
    for level in levels[0 if graded else 1 :]:
        low = value < level
        same = value == level
        high = ~low if graded else same
        np.cumsum(low, out=running[1:])
        if ranked.start is None:
            above = running[:-1] * high
        else:  # of the low labels in its own block half are above
            above = (running[start] + running[stop]) * (high / 2)
        before_query = running[queries.offsets[:-1]]
        count = ranked.sum(above) - before_query * ranked.sum(high.astype(np.int64))
        total += (
            gaps.up_to(level, ranked.sum(same.astype(np.int32)) > 0, count) if graded else (count)
        )
    return total


class _Gaps:
    """Walks up the levels of all queries and measures each query's gap below its own labels."""

    def __init__(self, n_queries: int) -> None:
        self.below = np.zeros(n_queries)  # the largest label so far of each query that had one
        self.started = np.zeros(n_queries, dtype=bool)

    def up_to(
        self, level: float, present: NDArray[np.bool_], count: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Gap times count, 0 in a query that has no such label or none below it."""
        counted = present & self.started
        term = np.zeros(len(present))
        term[counted] = (level - self.below[counted]) * count[counted]
        self.below[present] = level
        self.started |= present
        return term


def _sum_of_gaps(
    queries: Queries, ascending: NDArray[np.float64], across: NDArray[Any]
) -> NDArray[np.float64]:
    """Sum over neighbouring labels of each query of gap times the pairs counted across it.

    `ascending` has the labels of each query in ascending order, `across` the count across the gap
    that follows each. Terms are added one after the other, as `_Gaps` adds them.
    """
    gap = np.zeros(len(ascending))
    inner = np.ones(len(ascending), dtype=bool)  # the last label of a query has no gap above it
    inner[queries.offsets[1:] - 1] = False
    np.subtract(ascending[1:], ascending[:-1], out=gap[:-1], where=inner[:-1])
    owner = queries.repeat(np.arange(queries.n_queries))
    total = np.bincount(owner, gap * across, queries.n_queries)
    return total.astype(np.float64, copy=False)


def _discordant_by_radix(ranked: Ranking, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The number of discordant pairs: half of what the rows of each query take part in."""
    if ranked.start is not None:  # a tied pair costs 0 in one of these orders and 1 in the other
        best = _discordant_by_radix(ranked.break_ties(-relevance), relevance)
        worst = _discordant_by_radix(ranked.break_ties(relevance), relevance)
        return (best + worst) / 2
    _, low_above, _ = _partition(ranked, relevance, both_sides=False)
    return ranked.queries.reduce(np.add, low_above).astype(np.float64)


def _discordant_across(
    ranked: Ranking, relevance: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Labels of each query in ascending order, and the discordant pairs across each gap."""
    if ranked.start is not None:  # a tied pair costs 0 in one of these orders and 1 in the other
        grouped, best = _discordant_across(ranked.break_ties(-relevance), relevance)
        _, worst = _discordant_across(ranked.break_ties(relevance), relevance)
        return grouped, (best + worst) / 2
    grouped, low_above, high_below = _partition(ranked, relevance)
    # a pair is across the gap while its lower label has been passed and its higher has not
    return grouped, ranked.queries.cumsum(high_below - low_above)


def _partition(
    ranked: Ranking, relevance: NDArray[np.float64], both_sides: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Labels of each query in ascending order, and each row's discordant pairs, without ties.

    Of each row: the lower labels above it, and with `both_sides` the higher labels below it (else
    0). Rows are partitioned by the bits of their labels' ranks, from the highest bit down. The two
    rows of a pair part at one bit, and the pair is counted there.
    """
    queries = ranked.queries
    levels, codes = np.unique(relevance, return_inverse=True)
    code = codes[ranked.order]
    group = queries.repeat(queries.offsets[:-1])  # place at which the row's current group begins
    low_above = np.zeros(len(group), dtype=np.int64)
    high_below = np.zeros(len(group), dtype=np.int64)
    for bit in reversed(range((len(levels) - 1).bit_length())):
        high = (code >> bit) & 1
        low = 1 - high
        low_before = _exclusive(np.cumsum(low), low, group)
        is_first = group == np.arange(len(group))
        number = np.cumsum(is_first) - 1
        starts = np.flatnonzero(is_first)
        n_low = np.add.reduceat(low, starts)[number]
        place = np.arange(len(group)) - group
        low_above += high * low_before
        if both_sides:
            size = np.diff(np.append(starts, len(group)))[number]
            high_below += low * ((size - n_low) - (place - low_before))
        # stable partition of every group: low labels first, then high ones
        target = group + np.where(high == 1, n_low + place - low_before, low_before)
        moved = np.empty_like(target)
        moved[target] = np.arange(len(target))
        group = (group + high * n_low)[moved]
        code, low_above = code[moved], low_above[moved]
        if both_sides:
            high_below = high_below[moved]
    return levels[code], low_above, high_below


def _exclusive(
    running: NDArray[np.int64], counts: NDArray[np.int64], group: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sum of the counts before each place in its group, from the global running sum."""
    return running - counts - (running - counts)[group]


def preference_weight(
    queries: Queries, relevance: NDArray[np.float64], graded: bool = False
) -> NDArray[np.float64]:
    """Total weight of the pairs y_i > y_j of each query (see `discordant_weight`)."""
    levels = np.unique(relevance)
    if len(levels) <= _FEW_LEVELS:
        grouped, total = queries.gather(relevance), np.zeros(queries.n_queries)
        gaps = _Gaps(queries.n_queries)
        low = np.zeros(queries.n_queries, dtype=np.int64)
        for level in levels:
            count = queries.reduce(np.add, (grouped == level).astype(np.int32)).astype(np.int64)
            if graded:
                total += gaps.up_to(level, count > 0, low * (queries.sizes - low))
            else:
                total += low * count
            low += count
        return total
    descending = queries.sort_values(relevance)
    if graded:
        # the i-th largest label and those before it, against the rest
        ascending = -queries.sort_values(-relevance)
        passed = queries.place + 1
        return _sum_of_gaps(queries, ascending, passed * (queries.repeat(queries.sizes) - passed))
    # the place in its run of equal labels counts the equal pairs a row closes
    same = equal_neighbours(descending, queries)
    start, _ = _blocks(same, queries)
    equal = queries.reduce(np.add, queries.place - start)
    return (queries.sizes * (queries.sizes - 1) / 2 - equal).astype(np.float64)


def scaled_labels(relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
    """Labels over a power of two of their query, where sums of them overflow or lose digits.

    It changes no ratio of weights of one query, and only queries whose largest label is beyond
    2^500, or below 2^-500, where half of a difference may not be a number any more.
    """
    largest = queries.max(np.abs(relevance))
    extreme = (largest > 0) & ((largest >= 2.0**500) | (largest < 2.0**-500))
    if not extreme.any():
        return relevance
    exponent = np.where(extreme, np.frexp(largest)[1], 0)
    return np.ldexp(relevance, -queries.broadcast(exponent))


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
        bad = np.flatnonzero(
            ~queries.reduce(np.logical_and, seen)
            if not outside.any()
            else queries.reduce(np.logical_or, outside)
        )[0]
        shown = grouped[queries.offsets[bad] : queries.offsets[bad + 1]][:10]
        raise ValueError(
            f"ranks must be a permutation of 1 .. r in every query (1 = top); in query "
            f"{queries.ids[bad]!r} of {queries.sizes[bad]} rows they are {shown.tolist()}... "
            "Pass scores as y_score instead."
        )
    return positions
