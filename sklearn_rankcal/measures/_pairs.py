"""Pairwise measures: the weight of the preferences that a ranking contradicts, and Kendall's tau."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._rankings import PairWeight, check_pair_weight, weigh_pairs
from sklearn_rankcal.measures._base import Measure, divide
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.queries._ranking import blocks, equal_neighbours


@dataclass(frozen=True, kw_only=True)
class _PairwiseMeasure(Measure):
    """What the pairwise measures share.

    `pair_weight` is the weight of the preference for document i over document j where y_i > y_j: 1
    if ``"binary"``, y_i - y_j if ``"graded"``, else a function of that difference. Labels that are
    `Preferences` have weights of their own.
    """

    takes_preferences = True

    pair_weight: PairWeight = "binary"

    def check(self, labels: Any) -> None:
        check_pair_weight(self.pair_weight)

    def total(self, labels: Any, queries: Queries) -> NDArray[np.float64]:
        """Weight of all preferences of each query."""
        return total_weight(labels, queries, self.pair_weight)

    def contradicted(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        """Weight of the preferences of each query that the ranking contradicts."""
        return contradicted_weight(ranking, labels, self.pair_weight)

    def share(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        """Share of each query's preference weight that is contradicted; NaN where there is none."""
        # binary weights only compare labels, and scaling could round small ones to a tie
        if isinstance(self.pair_weight, str) and self.pair_weight == "graded":
            if not isinstance(labels, Preferences):
                labels = scaled_labels(labels, ranking.queries)
        lost = self.contradicted(ranking, labels)
        return divide(lost, self.total(labels, ranking.queries))


@dataclass(frozen=True, kw_only=True)
class PairwiseDisagreement(_PairwiseMeasure):
    """The preference weight that a ranking contradicts; its share of all weight if `normalize`."""

    greater_is_better = False

    normalize: bool = True

    def defined(self, labels: Any, queries: Queries) -> NDArray[np.bool_]:
        if not self.normalize:
            return super().defined(labels, queries)
        return self.total(labels, queries) > 0

    def per_query(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        return self.share(ranking, labels) if self.normalize else self.contradicted(ranking, labels)


class PairwiseAgreement(_PairwiseMeasure):
    """The share of the preference weight that a ranking does not contradict."""

    def defined(self, labels: Any, queries: Queries) -> NDArray[np.bool_]:
        return self.total(labels, queries) > 0

    def per_query(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        return 1 - self.share(ranking, labels)


class KendallTau(PairwiseAgreement):
    """Kendall's tau: 1 - 2 times the share of the preference weight that a ranking contradicts.

    With ties in the labels, 1 can still be reached.
    """

    def per_query(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        return 1 - 2 * self.share(ranking, labels)


def total_weight(labels: Any, queries: Queries, pair_weight: PairWeight) -> NDArray[np.float64]:
    """Weight of all preferences of each query."""
    if isinstance(labels, Preferences):
        return labels.total()
    if callable(pair_weight):
        return _weight_by_pairs(labels, queries, pair_weight, None)
    with np.errstate(over="ignore", invalid="ignore"):
        return _finite(preference_weight(queries, labels, pair_weight == "graded"), queries)


def contradicted_weight(
    ranking: Ranking, labels: Any, pair_weight: PairWeight
) -> NDArray[np.float64]:
    """Preference weight of each query that the ranking contradicts; a tied pair costs half."""
    queries = ranking.queries
    if isinstance(labels, Preferences):
        i, j = labels.winner, labels.loser
        place = np.empty(queries.n_rows, dtype=np.int64)  # that of its block, if tied
        place[ranking.order] = queries.place if ranking.start is None else ranking.start
        share = (np.sign(place[i] - place[j]) + 1) / 2
        lost = np.bincount(queries.codes[i], labels.weight * share, queries.n_queries)
        return lost.astype(np.float64, copy=False)
    if not callable(pair_weight):
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite(discordant_weight(ranking, labels, pair_weight == "graded"), queries)
    if ranking.start is not None:
        # a tied pair costs nothing in the first of these orders and all its weight in the second
        best = contradicted_weight(ranking.break_ties(-labels), labels, pair_weight)
        worst = contradicted_weight(ranking.break_ties(labels), labels, pair_weight)
        return (best + worst) / 2
    return _weight_by_pairs(labels, queries, pair_weight, queries.rank(ranking.order))


def _weight_by_pairs(
    relevance: NDArray[np.float64],
    queries: Queries,
    pair_weight: PairWeight,
    ranks: NDArray[np.int64] | None,
) -> NDArray[np.float64]:
    """Weight of the preferences of each query, or of those that ranks contradict. O(sum r^2)."""
    value = queries.gather(relevance)
    place = None if ranks is None else queries.gather(ranks)
    total = np.zeros(queries.n_queries)
    owner = np.repeat(np.arange(queries.n_queries), queries.sizes)
    for inside, valid in queries.pair_blocks():
        weight = weigh_pairs(value[inside], valid, pair_weight)
        if place is not None:
            weight *= place[inside][:, :, None] > place[inside][:, None, :]
        total[owner[inside[:, 0]]] = weight.sum(axis=(1, 2))
    return total


_FEW_LEVELS = 32  # distinct labels up to which a pass per level beats a radix partition


def discordant_weight(
    ranking: Ranking, relevance: NDArray[np.float64], graded: bool = False
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
        return _discordant_by_level(ranking, ranking.take(relevance), levels, graded)
    if not graded:
        return _discordant_by_radix(ranking, relevance)
    grouped, across = _discordant_across(ranking, relevance)
    return _sum_of_gaps(ranking.queries, grouped, across)


def _discordant_by_level(
    ranking: Ranking, value: NDArray[np.float64], levels: NDArray[np.float64], graded: bool
) -> NDArray[np.float64]:
    """For each level, the lower labels that stand above it, or above all labels from it on."""
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
        else:  # of the low labels in its own block half are above
            above = (running[start] + running[stop]) * (high / 2)
        before_query = running[queries.offsets[:-1]]
        count = ranking.sum(above) - before_query * ranking.sum(high.astype(np.int64))
        total += (
            gaps.up_to(level, ranking.sum(same.astype(np.int32)) > 0, count) if graded else (count)
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


def _discordant_by_radix(ranking: Ranking, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The number of discordant pairs: half of what the rows of each query take part in."""
    if ranking.start is not None:  # a tied pair costs 0 in one of these orders and 1 in the other
        best = _discordant_by_radix(ranking.break_ties(-relevance), relevance)
        worst = _discordant_by_radix(ranking.break_ties(relevance), relevance)
        return (best + worst) / 2
    _, low_above, _ = _partition(ranking, relevance, both_sides=False)
    return ranking.queries.reduce(np.add, low_above).astype(np.float64)


def _discordant_across(
    ranking: Ranking, relevance: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Labels of each query in ascending order, and the discordant pairs across each gap."""
    if ranking.start is not None:  # a tied pair costs 0 in one of these orders and 1 in the other
        grouped, best = _discordant_across(ranking.break_ties(-relevance), relevance)
        _, worst = _discordant_across(ranking.break_ties(relevance), relevance)
        return grouped, (best + worst) / 2
    grouped, low_above, high_below = _partition(ranking, relevance)
    # a pair is across the gap while its lower label has been passed and its higher has not
    return grouped, ranking.queries.cumsum(high_below - low_above)


def _partition(
    ranking: Ranking, relevance: NDArray[np.float64], both_sides: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Labels of each query in ascending order, and each row's discordant pairs, without ties.

    Of each row: the lower labels above it, and with `both_sides` the higher labels below it (else
    0). Rows are partitioned by the bits of their labels' ranks, from the highest bit down. The two
    rows of a pair part at one bit, and the pair is counted there.
    """
    queries = ranking.queries
    levels, codes = np.unique(relevance, return_inverse=True)
    code = codes[ranking.order]
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
    start, _ = blocks(same, queries)
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


def _finite(weight: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
    """The weights of the queries, unless their sums overflow."""
    if not np.isfinite(weight).all():
        q = int(np.argmin(np.isfinite(weight)))
        raise ValueError(
            f"The differences of the labels of query {queries.ids[q]!r} add up to more than the "
            "largest number that can be stored. Divide the labels by a constant."
        )
    return weight
