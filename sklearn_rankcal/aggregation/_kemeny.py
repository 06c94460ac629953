"""`Kemeny`: the ranking that contradicts the least weight of comparisons."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from sklearn_rankcal.aggregation._base import ComparisonStructure, Solution
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.decoders import DecodeResult, PreferenceDecoder
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._item_ids import content_ranks
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, exceeds

#: Up to this number of compared items, a query is solved as a whole, in batches.
MAX_TOGETHER = 10
#: Up to this number of items connected by ties and cycles, all best rankings are considered.
MAX_CONNECTED = 16


class BestRankings(NamedTuple):
    """The optimal rankings of each query, in row layout."""

    ranks: Ints  # one of them
    low: Ints  # the best and the worst position of each item in all of them
    high: Ints
    exact: Bools  # False for queries where `low` and `high` are only bounds


class Proof(NamedTuple):
    """How good the ranking of each query is; see `Aggregate`. `exact` as in `BestRankings`."""

    objective: Floats
    lower_bound: Floats
    optimal: Bools
    best_low: Ints | None = None
    best_high: Ints | None = None
    exact: Bools | None = None


class Kemeny(ComparisonStructure):
    """The ranking that contradicts the least weight of comparisons.

    A ranking contradicts a comparison if it puts the loser above the winner. `decode_preferences`
    computes the ranking from the sums of all comparisons. The score of an item is the number of
    items below it.

    Often several rankings are optimal. `aggregate` returns one of them, and the best and the worst
    position of each item in all of them. It fills the places from the top. Of the items that come
    next in some optimal ranking, it takes the item with the largest net weight (won minus lost), or
    the first by id. `scores` uses the middle between the best and the worst position: items that
    can be exchanged get equal scores.

    Parameters
    ----------
    method : str, default="auto"
        A method of `decode_preferences`. ``"exact"`` finds and proves an optimal ranking.
        ``"auto"`` does the same if cycles of majorities connect at most 16 items; otherwise it runs
        a local search and reports a lower bound.
    time_limit : float, default=None
        Time limit for each query in seconds. None means no limit; ``"exact"`` then raises an error
        for queries in which cycles connect more than 100 items.

    Notes
    -----
    ``"auto"`` and ``"exact"`` know the positions in all optimal rankings if tied or cyclic
    majorities connect at most 16 items, or any number of items without a cycle. Otherwise the
    positions are bounds, and the scores are from one ranking. Items without comparisons are last.
    Resamples give intervals of ranks, but not of scores, which change in steps.

    The problem is NP-hard. ``"exact"`` can take very long if cycles connect more than 16 items. A
    query of r items takes O(r^2) memory.

    References
    ----------
    Kemeny (1959), Mathematics without numbers; Ramaswamy et al. (2013), section 7.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import Kemeny
    >>> pairs = [("a", "b")] * 3 + [("b", "c")] * 2 + [("c", "a")]
    >>> votes = Judgements.from_pairs(pairs)
    >>> votes.items.tolist(), Kemeny().scores(votes).tolist()  # contradicts only (c, a)
    (['a', 'b', 'c'], [2.0, 1.0, 0.0])
    """

    _steps = True

    _scores_are_gains = True

    def __init__(self, method: str = "auto", *, time_limit: float | None = None) -> None:
        self.method = method
        self.time_limit = time_limit

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        self._decoder()._options()

    def _decoder(self) -> PreferenceDecoder:
        return PreferenceDecoder(self.method, time_limit=self.time_limit)

    def _decode(
        self, preferences: Preferences, n_jobs: int | None = None, place: Ints | None = None
    ) -> DecodeResult:
        """Rank the items; the objectives are the weights that the rankings contradict.

        `place` in ascending order breaks ties between equally good rankings.
        """
        queries = preferences.queries
        queries.check_pairs_fit()
        winner, loser, weight = preferences.winner, preferences.loser, preferences.weight
        won, lost, margin = _of_each_pair(preferences)
        key = _by_net_wins(preferences) if place is None else place
        result = self._decoder().decode(margin, queries, lambda rows: key[rows], n_jobs)
        # Every ranking contradicts at least the smaller weight of each pair.
        owner = PAIRS.owners(queries)
        unavoidable = np.bincount(owner, np.minimum(won, lost), queries.n_queries)
        result.objective = result.objective + unavoidable
        result.lower_bound = result.lower_bound + unavoidable
        compared = np.zeros(queries.n_rows)
        compared[winner[weight > 0]] = compared[loser[weight > 0]] = queries.n_rows
        # Items without comparisons can be anywhere: moving them down costs nothing.
        result.ranks = queries.rank(queries.sort(compared - result.ranks))
        return result

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        queries = preferences.queries
        place = _by_net_wins(preferences)
        ranks = self._decode(preferences, place=place).ranks
        position = ranks.astype(np.float64)
        # of many resamples, in which larger parts would take too long
        found = self._best_rankings(preferences, ranks, place, MAX_TOGETHER)
        if found is not None:
            middle = (found.low + found.high) / 2
            position = np.where(queries.broadcast(found.exact), middle, position)
        return queries.broadcast(queries.sizes) - position

    def _solve(
        self, judgements: Judgements, parts: Ints, intervals: str | None, level: float, n_jobs: Any
    ) -> Solution:
        """Rank the items, independently of the order of items and judgements."""
        preferences, queries = judgements.preferences(), judgements.queries
        place = _by_net_wins(preferences, judgements.items)
        result = self._decode(preferences, n_jobs, place)
        proof = Proof(result.objective, result.lower_bound, result.optimal)
        found = self._best_rankings(preferences, result.ranks, place, MAX_CONNECTED)
        if found is not None:
            result.ranks, proof = found.ranks, Proof(*proof[:3], *found[1:])
        scores = (queries.broadcast(queries.sizes) - result.ranks).astype(np.float64)
        return Solution(scores, proof=proof)

    def _best_rankings(
        self, preferences: Preferences, ranks: Ints, place: Ints, limit: int
    ) -> BestRankings | None:
        """Find the positions in all best rankings, given the `ranks` of one of them.

        The exact positions are found if ties and cycles connect at most `limit` items. The returned
        ranking is then the first best ranking in the lexicographic order of `place`, otherwise
        `ranks`.
        """
        if self.method not in ("auto", "exact"):
            return None
        queries = preferences.queries
        margin = _of_each_pair(preferences)[2]
        n_entries = PAIRS.n_entries(queries.sizes)
        starts = np.cumsum(n_entries) - n_entries
        compared = np.zeros(queries.n_rows)
        positive = preferences.weight > 0
        compared[preferences.winner[positive]] = compared[preferences.loser[positive]] = 1
        n_compared = queries.sum(compared).astype(np.int64)
        key, position = queries.gather(place), queries.gather(ranks)
        shown, low, high = position.copy(), position.copy(), position.copy()
        alone = queries.gather(compared) == 0
        low[alone] = queries.repeat(n_compared + 1)[alone]
        high[alone] = queries.repeat(queries.sizes)[alone]
        exact = np.ones(queries.n_queries, dtype=bool)
        # A loop over sizes and numbers of compared items. Compared items are first in the ranking.
        kinds = np.unique(np.column_stack([queries.sizes, n_compared]), axis=0)
        for r, m in kinds[kinds[:, 1] > 1].tolist():
            member = np.flatnonzero((queries.sizes == r) & (n_compared == m))
            step = rows_per_block(8 * max(4 * m << min(m, MAX_TOGETHER), r * r))
            for some in (member[k : k + step] for k in range(0, len(member), step)):
                net = PAIRS.matrices(margin[starts[some][:, None] + np.arange(r * (r - 1) // 2)], r)
                inside = queries.offsets[some][:, None] + np.arange(r)
                order = np.argsort(position[inside], axis=1)[:, :m]
                # If all majorities agree with the ranking, it is the only best one.
                ordered = _take(net, order)
                open_ = ~(ordered[:, *np.triu_indices(m, 1)] > 0).all(axis=1)
                if not open_.any():
                    continue
                some, inside = some[open_], inside[open_]
                # The compared items in the order of `place`, which breaks ties.
                order = np.take_along_axis(inside, order[open_], axis=1)
                order = np.take_along_axis(order, np.argsort(key[order], axis=1), axis=1)
                net = _take(net[open_], order - inside[:, :1])
                if m <= MAX_TOGETHER:
                    shown[order], low[order], high[order] = best_positions(net)
                    continue
                for one, rows, q in zip(net, order, some, strict=True):
                    *found, exact[q] = _positions_of_parts(one, position[rows], limit)
                    shown[rows], low[rows], high[rows] = found
        shown, low, high = (queries.scatter(grouped) for grouped in (shown, low, high))
        return BestRankings(shown, low, high, exact)


def _by_net_wins(preferences: Preferences, ids: NDArray[Any] | None = None) -> Ints:
    """Order all items by weight won minus weight lost, then by id or row."""
    queries, n = preferences.queries, preferences.n_rows
    won = np.bincount(preferences.winner, preferences.weight, n)
    lost = np.bincount(preferences.loser, preferences.weight, n)
    net = won - lost
    # Equal sums of weights can differ by rounding: these form one level.
    size = np.where(_size_of_terms(preferences.weight) > 0, won + lost, 0.0)
    size = queries.broadcast(queries.max(size))
    order = queries.sort(net)
    new = exceeds(net[order][:-1], net[order][1:], size[order][1:])
    level = np.empty(n, dtype=np.int64)
    level[order] = np.append(0, np.cumsum(new))
    by_id = np.arange(n) if ids is None else content_ranks(ids)
    place = np.empty(n, dtype=np.int64)
    place[np.lexsort((by_id, level))] = np.arange(n)
    return place


def _size_of_terms(terms: Floats, axis: Any = None) -> Floats:
    """The size of the terms of sums for `exceeds`; 0 for integers, which have exact sums."""
    size = np.abs(terms).sum(axis=axis)
    whole = (terms == np.rint(terms)).all(axis=axis) & (size < 2.0**52)
    return np.where(whole, 0.0, size)


def _take(net: Floats, order: Ints) -> Floats:
    """Take items of matrices (n, r, r) in the order (n, m)."""
    net = np.take_along_axis(net, order[:, :, None], axis=1)
    return np.take_along_axis(net, order[:, None, :], axis=2)


def _of_each_pair(preferences: Preferences) -> tuple[Floats, Floats, Floats]:
    """Return w_ij, w_ji and their difference without rounding, for the entries of `PAIRS`."""
    queries = preferences.queries
    n_entries = PAIRS.n_entries(queries.sizes)
    starts = np.cumsum(n_entries) - n_entries
    place = queries.scatter(queries.place)
    winner, loser = place[preferences.winner], place[preferences.loser]
    i, j = np.minimum(winner, loser), np.maximum(winner, loser)
    q = queries.codes[preferences.winner]
    # Before row i of the upper triangle, there are i (2 r - i - 1) / 2 entries.
    entry = starts[q] + i * (2 * queries.sizes[q] - i - 1) // 2 + j - i - 1
    weights = np.zeros((2, int(n_entries.sum())))
    weights[np.where(winner < loser, 0, 1), entry] = preferences.weight
    won, lost = weights
    margin = won - lost
    size = _size_of_terms(weights, axis=0)
    return won, lost, np.where(exceeds(np.abs(margin), 0.0, size), margin, 0.0)


def others_are_as_good(preferences: Preferences, order: Ints) -> bool | None:
    """Return whether another ranking contradicts as little weight; None if no move finds one.

    `order` has the rows of one query in an optimal order, best first. For rankings with positions
    that `BestRankings` does not know exactly.
    """
    queries = preferences.queries
    q = int(queries.codes[order[0]])
    rows = queries.gather(np.arange(queries.n_rows))[queries.offsets[q] : queries.offsets[q + 1]]
    net = preferences.take_rows(rows, type(queries).single(len(rows)))
    where = np.argsort(rows)[np.searchsorted(np.sort(rows), order)]
    net = _take(PAIRS.matrices(_of_each_pair(net)[2][None], len(rows)), where[None])[0]
    if (np.diagonal(net, 1) == 0).any():  # neighbours can be swapped
        return True
    size = _size_of_terms(net)
    upper = np.triu(net, 1)
    down = ~exceeds(upper.cumsum(axis=1), 0.0, size)  # move an item below the items that follow
    up = ~exceeds(upper[::-1].cumsum(axis=0)[::-1], 0.0, size)  # and above the items before it
    return True if np.triu(down | up, 1).any() else None


def best_positions(net: Floats) -> tuple[Ints, Ints, Ints]:
    """Return the ranks of one optimal ranking, and the best and worst positions in all of them.

    `net` (n_problems, r, r) is the weight for the row item minus the weight for the column item. Up
    to a constant, the contradicted weight is half the sum of net[i, j] over the pairs with i below
    j. Let f(S) be its minimum for the items of a set S on top, and g(S) its minimum for the
    remaining items below S. Item j is directly below the set S in an optimal ranking if f(S), the
    cost of j there, and g(S with j) add up to the least weight. The first item that can be next is
    taken at each place. The cost is O(2^r r) for each problem.
    """
    n, r = net.shape[:2]
    rounding = _size_of_terms(net, axis=(1, 2))
    sets = np.arange(1 << r)
    member = (sets[:, None] >> np.arange(r)) & 1
    # the contradicted weight if the column item is next below the set
    cost = (net.sum(axis=1)[:, None, :] - member.astype(np.float64) @ net) / 2
    size = member.sum(axis=1)
    layers = [sets[size == k] for k in range(r + 1)]
    every, bits = np.arange(r), 1 << np.arange(r)
    f, g = np.full((2, n, 1 << r), np.inf)
    f[:, 0] = g[:, -1] = 0.0
    for layer in layers[1:]:  # infinite until computed
        before = layer[:, None] ^ bits
        f[:, layer] = (f[:, before] + cost[:, before, every]).min(axis=2)
    for layer in layers[-2::-1]:
        g[:, layer] = (cost[:, layer] + g[:, layer[:, None] | bits]).min(axis=2)
    least = f[:, -1]
    total = f[:, :, None] + cost + g[:, sets[:, None] | bits]
    best = ~exceeds(total.T, least, rounding).T & (member == 0)
    low = np.where(best, size[:, None], r).min(axis=1) + 1
    high = np.where(best, size[:, None], -1).max(axis=1) + 1
    ranks = np.empty((n, r), dtype=np.int64)
    problem, top, spent = np.arange(n), np.zeros(n, dtype=np.int64), np.zeros(n)
    for k in range(r):
        total = spent[:, None] + cost[problem, top] + g[problem[:, None], top[:, None] | bits]
        total[member[top] == 1] = np.inf
        chosen = np.argmax(~exceeds(total.T, least, rounding).T, axis=1)
        spent += cost[problem, top, chosen]
        top = top | 1 << chosen
        ranks[problem, chosen] = k + 1
    return ranks, low, high


def _positions_of_parts(net: Floats, position: Ints, limit: int) -> tuple[Ints, Ints, Ints, bool]:
    """Do the same for one query with many items; the last value tells whether it was possible.

    `position` is the position of each item in a best ranking. An item with a strict majority over
    each item of another part is above all of them in every best ranking.
    """
    part = connected_components(net >= 0, connection="strong")[1]
    shown, low, high, exact = position.copy(), position.copy(), position.copy(), True
    for one in np.unique(part):
        items = np.flatnonzero(part == one)
        others = np.flatnonzero(part != one)
        start = int((net[items[:1]][:, others] < 0).sum())
        inner = net[np.ix_(items, items)]
        if len(items) <= limit:
            found = best_positions(inner[None])
            shown[items], low[items], high[items] = (start + values[0] for values in found)
            continue
        # No best ranking contradicts a majority between items that no cycle connects.
        cycle = connected_components(inner > 0, connection="strong")[1]
        forced = (inner > 0) & (cycle[:, None] != cycle)
        exact &= len(np.unique(cycle)) == len(items)
        for k in np.argsort(position[items]):  # the items above have all of theirs already
            forced[:, k] |= forced[:, forced[:, k]].any(axis=1)
        low[items] = start + 1 + forced.sum(axis=0)
        high[items] = start + len(items) - forced.sum(axis=1)
    return shown, low, high, exact
