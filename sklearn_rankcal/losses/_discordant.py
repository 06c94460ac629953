"""Compute the weight of the pairs that a ranking puts in the wrong order, without forming pairs.

A pair of rows of a query with y_i > y_j is discordant if row i is not above row j. Its weight is 1,
or y_i - y_j if `graded`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.queries._ranking import blocks, equal_neighbours

#: Up to this number of distinct labels, one pass per label is faster than a radix partition.
_FEW_LEVELS = 32


def discordant_weight(
    ranking: Ranking, relevance: NDArray[np.float64], graded: bool = False
) -> NDArray[np.float64]:
    """Return the total weight of the discordant pairs of every query; a tied pair counts half.

    Pairs are counted in integers and never formed: with one pass over the rows per label if there
    are at most `_FEW_LEVELS` distinct labels, otherwise by a radix partition in
    O(n log(number of labels)).

    If `graded`, each gap between neighbouring labels of a query is multiplied by the number of
    discordant pairs across it, and the products are added in ascending order. The result is
    therefore bitwise independent of other queries, and never exceeds `preference_weight`.
    """
    levels = np.unique(relevance)
    if len(levels) <= _FEW_LEVELS:
        return _discordant_by_level(ranking, ranking.take(relevance), levels, graded)
    if not graded:
        return _discordant_by_radix(ranking, relevance)
    grouped, across = _discordant_across(ranking, relevance)
    return _sum_of_gaps(ranking.queries, grouped, across)


def _discordant_by_level(
    ranking: Ranking, value: NDArray[np.float64], levels: NDArray[np.float64], graded: bool
) -> NDArray[np.float64]:
    """Compute `discordant_weight` with one pass per level.

    A pass counts the pairs in which a lower label is ranked above this level. If `graded`, it
    counts the pairs across the gap below this level: a lower label is ranked above this or a higher
    level.
    """
    queries = ranking.queries
    total = np.zeros(queries.n_queries)
    running = np.zeros(len(value) + 1, dtype=np.int64)
    gaps = _Gaps(queries.n_queries)
    if ranking.start is not None and ranking.stop is not None:
        base = queries.repeat(queries.offsets[:-1])
        start, stop = ranking.start + base, ranking.stop + base
    for level in levels[0 if graded else 1 :]:
        low = value < level
        same = value == level
        high = ~low if graded else same
        np.cumsum(low, out=running[1:])
        if ranking.start is None:
            above = running[:-1] * high
        else:  # half of the low labels in a row's own block of ties count as above it
            above = (running[start] + running[stop]) * (high / 2)
        before_query = running[queries.offsets[:-1]]
        count = ranking.sum(above) - before_query * ranking.sum(high.astype(np.int64))
        total += (
            gaps.up_to(level, ranking.sum(same.astype(np.int32)) > 0, count) if graded else count
        )
    return total


class _Gaps:
    """The gap between the current level and the next lower label of each query, going up."""

    def __init__(self, n_queries: int) -> None:
        self.below = np.zeros(n_queries)  # the largest label of each query so far
        self.started = np.zeros(n_queries, dtype=bool)  # whether the query had a label so far

    def up_to(
        self, level: float, present: NDArray[np.bool_], count: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return gap * count; 0 in a query without this label or without a lower label."""
        counted = present & self.started
        term = np.zeros(len(present))
        term[counted] = (level - self.below[counted]) * count[counted]
        self.below[present] = level
        self.started |= present
        return term


def _sum_of_gaps(
    queries: Queries, ascending: NDArray[np.float64], across: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the sum over the gaps of each query of gap * number of pairs across it.

    `ascending` holds the labels of each query in ascending order, and `across` the number of pairs
    across the gap after each label. Terms are added in the order of `_Gaps`, for the same bits.
    """
    gap = np.zeros(len(ascending))
    inner = np.ones(len(ascending), dtype=bool)  # no gap follows the last label of a query
    inner[queries.offsets[1:] - 1] = False
    np.subtract(ascending[1:], ascending[:-1], out=gap[:-1], where=inner[:-1])
    owner = queries.repeat(np.arange(queries.n_queries))
    total = np.bincount(owner, gap * across, queries.n_queries)
    return total.astype(np.float64, copy=False)


def _discordant_by_radix(ranking: Ranking, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the number of discordant pairs of each query, by a radix partition."""
    if ranking.start is not None:  # a tied pair counts 0 in one of these orders and 1 in the other
        best = _discordant_by_radix(ranking.break_ties(-relevance), relevance)
        worst = _discordant_by_radix(ranking.break_ties(relevance), relevance)
        return (best + worst) / 2
    _, low_above, _ = _partition(ranking, relevance, both_sides=False)
    return ranking.queries.reduce(np.add, low_above).astype(np.float64)


def _discordant_across(
    ranking: Ranking, relevance: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the sorted labels of each query, and the discordant pairs across each gap."""
    if ranking.start is not None:  # a tied pair counts 0 in one of these orders and 1 in the other
        grouped, best = _discordant_across(ranking.break_ties(-relevance), relevance)
        _, worst = _discordant_across(ranking.break_ties(relevance), relevance)
        return grouped, (best + worst) / 2
    grouped, low_above, high_below = _partition(ranking, relevance)
    # Going up the labels, a pair is added at its lower label and subtracted at its higher label. In
    # between, it is across the current gap.
    return grouped, ranking.queries.cumsum(high_below - low_above)


def _partition(
    ranking: Ranking, relevance: NDArray[np.float64], both_sides: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the labels of each query in ascending order, and the discordant pairs of each row.

    The ranking must have no ties. For each row, the function returns the number of lower labels
    above it and, with `both_sides`, the number of higher labels below it (otherwise 0). Distinct
    labels are numbered, and rows are partitioned by the bits of these numbers, from the highest bit
    to the lowest. Invariant: rows with equal higher bits form a group, in the order of the ranking.
    A discordant pair is counted once, at the bit that separates its rows.
    """
    queries = ranking.queries
    levels, codes = np.unique(relevance, return_inverse=True)
    code = codes[ranking.order]
    group = queries.repeat(queries.offsets[:-1])  # place at which the current group of a row begins
    low_above = np.zeros(len(group), dtype=np.int64)
    high_below = np.zeros(len(group), dtype=np.int64)
    for bit in reversed(range((len(levels) - 1).bit_length())):
        high = (code >> bit) & 1
        low = 1 - high
        # for each row: the rows of its group with bit 0 that are above it
        low_before = _exclusive(np.cumsum(low), low, group)
        is_first = group == np.arange(len(group))
        number = np.cumsum(is_first) - 1
        starts = np.flatnonzero(is_first)
        n_low = np.add.reduceat(low, starts)[number]
        place = np.arange(len(group)) - group
        low_above += high * low_before
        if both_sides:  # rows with bit 1 below a row with bit 0: all, less the rows above it
            size = np.diff(np.append(starts, len(group)))[number]
            high_below += low * ((size - n_low) - (place - low_before))
        # stable partition of every group: rows with bit 0 first, then those with bit 1
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
    """Return the sum of the counts before each place in its group, given their running sum."""
    return running - counts - (running - counts)[group]


def preference_weight(
    queries: Queries, relevance: NDArray[np.float64], graded: bool = False
) -> NDArray[np.float64]:
    """Return the total weight of all pairs with y_i > y_j of each query."""
    levels = np.unique(relevance)
    if len(levels) <= _FEW_LEVELS:
        grouped, total = queries.gather(relevance), np.zeros(queries.n_queries)
        gaps = _Gaps(queries.n_queries)
        low = np.zeros(queries.n_queries, dtype=np.int64)  # rows with a lower label
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
        # the pairs across the gap after the i-th label: i lower rows times r - i higher rows
        ascending = -queries.sort_values(-relevance)
        passed = queries.place + 1
        return _sum_of_gaps(queries, ascending, passed * (queries.repeat(queries.sizes) - passed))
    # The t-th row of a run of equal labels forms t - 1 equal pairs with the rows before it. These
    # are subtracted from all r (r - 1) / 2 pairs.
    same = equal_neighbours(descending, queries)
    start, _ = blocks(same, queries)
    equal = queries.reduce(np.add, queries.place - start)
    return (queries.sizes * (queries.sizes - 1) / 2 - equal).astype(np.float64)
