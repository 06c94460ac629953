"""Subsets of the judgements of each query, for U-statistics of order k."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, islice
from math import comb
from typing import Any, NamedTuple

import numpy as np

from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: Function from judgements of copies of queries to targets of documents, NaN without a score.
Encode = Callable[[Any], Floats]

#: Rows of the copies in a block.
_BLOCK_ROWS = 1 << 21


class SubsetPlan(NamedTuple):
    """How many subsets of each query are taken, and how.

    A round divides the judgements of a query, in random order, into disjoint subsets.
    """

    size: Ints  # judgements of a subset: k, or all if there are fewer
    per_round: Ints  # subsets of a round
    n_rounds: Ints  # 0 for queries without judgements
    exact: Bools  # whether all subsets are taken, each equally often


def plan(n_judgements: Ints, k: int | None, n_subsets: int) -> SubsetPlan:
    """Decide how many subsets of k judgements (None: all) of each query are taken."""
    n = np.asarray(n_judgements, dtype=np.int64)
    size = n if k is None else np.minimum(n, k)
    per_round = np.where(size > 0, n // np.maximum(size, 1), 0)
    # One round has all subsets if there is only one, or if each has one judgement.
    exact = (size == n) | (size == 1)
    # At least two rounds: their differences give the standard error of the mean.
    rounds = np.where(exact, 1, np.maximum(2, -(-n_subsets // np.maximum(per_round, 1))))
    # Few subsets are listed. `listed` is small, because a query with many judgements has many.
    for m, s in set(zip(n[~exact].tolist(), size[~exact].tolist(), strict=True)):
        if comb(m, s) <= n_subsets:
            listed = (n == m) & (size == s) & ~exact
            exact = exact | listed
            per_round = np.where(listed, comb(m, s), per_round)
            rounds = np.where(listed, 1, rounds)
    return SubsetPlan(size, per_round, np.where(n > 0, rounds, 0), exact)


def expand_counts(judgements: Any) -> Any:
    """Repeat each judgement by its count, because subsets contain single judgements."""
    if judgements.count is None:
        return judgements
    numbers = np.repeat(np.arange(judgements.n_judgements), judgements.count.astype(np.int64))
    queries = np.arange(judgements.queries.n_queries)
    expanded = judgements.resample(numbers, judgements.query[numbers], queries)
    # `resample` groups the rows by query, but here they must stay in place.
    if judgements.queries.order is not None:
        expanded = expanded.take_rows(
            judgements.queries.scatter(np.arange(judgements.queries.n_rows)), judgements.queries
        )
    expanded.count = None
    return expanded


def subset_blocks(
    judgements: Any, plan: SubsetPlan, random: np.random.RandomState
) -> Iterator[tuple[Any, Ints, bool]]:
    """Yield copies of queries with one subset each, their queries, and whether a round ends."""
    order = np.argsort(judgements.query, kind="stable")
    counts = np.bincount(judgements.query, minlength=judgements.queries.n_queries)
    starts = np.cumsum(counts) - counts
    listed = plan.exact & (plan.size > 1) & (plan.size < counts)
    if listed.any():
        yield from _blocks(judgements, *_list_subsets(order, starts, counts, plan, listed))
    divided = (plan.n_rounds > 0) & ~listed
    for number in range(int(plan.n_rounds[divided].max(initial=0))):  # a loop over rounds
        active = divided & (plan.n_rounds > number)
        taken, copy, parent = _divide(order, starts, counts, plan, active, random)
        yield from _blocks(judgements, taken, copy, parent)


def _divide(
    order: Ints,
    starts: Ints,
    counts: Ints,
    plan: SubsetPlan,
    active: Bools,
    random: np.random.RandomState,
) -> tuple[Ints, Ints, Ints]:
    """Divide the judgements of some queries, in random order, into disjoint subsets."""
    queries = np.flatnonzero(active)
    n = counts[queries]
    owner = np.repeat(np.arange(len(queries)), n)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(n) - n, n)
    # Sorting (query + uniform number) permutes the judgements inside each query.
    shuffled = np.argsort(owner + random.uniform(size=len(owner)))
    size, per_round = plan.size[queries], plan.per_round[queries]
    kept = place < (size * per_round)[owner]
    number = place // np.maximum(size, 1)[owner]
    first = np.cumsum(per_round) - per_round
    source = shuffled[kept]  # shuffling stays within queries
    taken = order[starts[queries][owner[source]] + place[source]]
    return taken, (first[owner] + number)[kept], np.repeat(queries, per_round)


def _list_subsets(
    order: Ints, starts: Ints, counts: Ints, plan: SubsetPlan, listed: Bools
) -> tuple[Ints, Ints, Ints]:
    """List all subsets of some queries with few judgements."""
    taken, copies, parents, n_copies = [], [], [], 0
    kinds = set(zip(counts[listed].tolist(), plan.size[listed].tolist(), strict=True))
    for n, size in sorted(kinds):  # a loop over the different numbers of judgements
        queries = np.flatnonzero(listed & (counts == n) & (plan.size == size))
        places = np.array(list(combinations(range(n), size)))
        of_query = order[starts[queries][:, None, None] + places]  # (queries, subsets, size)
        new = len(queries) * len(places)
        taken.append(of_query.reshape(-1))
        copies.append(n_copies + np.repeat(np.arange(new), size))
        parents.append(np.repeat(queries, len(places)))
        n_copies += new
    return np.concatenate(taken), np.concatenate(copies), np.concatenate(parents)


def _blocks(
    judgements: Any, taken: Ints, copy: Ints, parent: Ints
) -> Iterator[tuple[Any, Ints, bool]]:
    """Split the copies of a round, in ascending order, into blocks of bounded size."""
    rows = np.cumsum(judgements.queries.sizes[parent])
    first = 0
    while first < len(parent):
        before = rows[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(rows, before + _BLOCK_ROWS, side="right")))
        inside = slice(*np.searchsorted(copy, [first, last]))
        part = parent[first:last]
        block = judgements.resample(taken[inside], copy[inside] - first, part)
        yield block, part, last >= len(parent)
        first = last


def _sample(n: int, k: int, random: np.random.RandomState) -> Ints:
    """Draw k different numbers below n, uniformly over all sets."""
    if 2 * k > n:
        return random.permutation(n)[:k]
    # The distinct values of draws with replacement, in order of appearance, are a sample without
    # replacement.
    found: dict[int, None] = {}
    while len(found) < k:
        found.update(dict.fromkeys(random.randint(n, size=k - len(found)).tolist()))
    return np.fromiter(islice(found, k), dtype=np.int64, count=k)


class MeanTargets(NamedTuple):
    """Mean of the targets over subsets of the judgements of each query.

    Attributes
    ----------
    targets : ndarray of shape (n_documents,)
        The mean targets; NaN for documents without a target in any subset.
    standard_error : ndarray of shape (n_documents,)
        Standard error of the mean from sampling subsets, 0 if all subsets are taken.
    exact : ndarray of bool of shape (n_queries,)
        Whether all subsets of the query were taken.
    n_subsets : ndarray of shape (n_queries,)
        Number of subsets of the query.
    """

    targets: Floats
    standard_error: Floats
    exact: Bools
    n_subsets: Ints


def mean_over_subsets(
    judgements: Any, encode: Encode, size: int | None, n_subsets: int, random: np.random.RandomState
) -> MeanTargets:
    """Compute the mean of the targets over at least `n_subsets` subsets of each query, or all.

    A size of None means one subset with all judgements.
    """
    queries = judgements.queries
    single = expand_counts(judgements)
    planned = plan(np.bincount(single.query, minlength=queries.n_queries), size, n_subsets)
    # sums over the subsets of a round, and sums over rounds of the means and squared means
    count, total, rounds, sums, squares = (np.zeros(queries.n_rows) for _ in range(5))
    for copies, parent, last in subset_blocks(single, planned, random):
        targets = encode(copies)
        known = ~np.isnan(targets)
        rows = queries.copies(parent)[1][known]
        values = targets[known]
        count += np.bincount(rows, minlength=queries.n_rows)
        total += np.bincount(rows, values, queries.n_rows)
        if last:
            some = count > 0
            means = total[some] / count[some]
            rounds += some
            sums[some] += means
            squares[some] += means**2
            count[:], total[:] = 0.0, 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / rounds
        variance = np.maximum(squares / rounds - mean**2, 0.0) / (rounds - 1)
    exact = queries.broadcast(planned.exact)
    # The error is unknown for a document with a score in only one round.
    error = np.where(exact, 0.0, np.where(rounds > 1, np.sqrt(variance), np.inf))
    return MeanTargets(mean, error, planned.exact, planned.per_round * planned.n_rounds)


class SubsetDraws:
    """Draw the targets of one subset of k judgements per query, in O(k) time each.

    For the parameters, see `mean_over_subsets`.
    """

    def __init__(
        self, judgements: Any, encode: Encode, size: int | None, random: np.random.RandomState
    ) -> None:
        self.judgements = expand_counts(judgements)
        self.encode = encode
        self.size = size
        self.random = random
        self._order = np.argsort(self.judgements.query, kind="stable")
        self._counts = np.bincount(self.judgements.query, minlength=judgements.queries.n_queries)
        self._starts = np.cumsum(self._counts) - self._counts

    def __call__(self, numbers: Ints) -> Floats:
        counts = self._counts[numbers]
        sizes = counts if self.size is None else np.minimum(counts, self.size)
        places = zip(self._starts[numbers], counts.tolist(), sizes.tolist(), strict=True)
        # Drawing some extra with replacement and redrawing duplicates takes O(k), unless k is
        # nearly n; then permute all.
        taken = [start + _sample(n, k, self.random) for start, n, k in places]
        chosen = self._order[np.concatenate([*taken, np.zeros(0, dtype=np.int64)])]
        copy = np.repeat(np.arange(len(numbers)), sizes)
        copies = self.judgements.resample(chosen, copy, numbers)
        return np.nan_to_num(self.encode(copies), nan=0.0)
