"""`Kemeny`: the ranking of each query that contradicts the least weight of comparisons."""

from __future__ import annotations

import numpy as np

from sklearn_rankcal.aggregation._base import ComparisonStructure
from sklearn_rankcal.decoders import DECODERS, DecodeResult
from sklearn_rankcal.decoders._search import check_options
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: Up to this number of items, all rankings that contradict the least weight are considered.
MAX_CONSIDERED = 10
_METHODS = {name: decoder for (space, name), decoder in DECODERS.items() if space == PAIRS}


class Kemeny(ComparisonStructure):
    """The ranking of each query that contradicts the least weight of comparisons.

    A comparison is contradicted if the ranking puts its loser above its winner. The ranking is that
    of `decode_preferences` for the sums of all comparisons. The score of an item is the number of
    the other items that are not above it in all such rankings. If there is only one, this is the
    number of items below.

    Parameters
    ----------
    method : str, default="auto"
        A method of `decode_preferences`. ``"exact"`` proves that no ranking contradicts less
        weight. ``"auto"`` does the same if cycles of majorities connect at most 16 items, and
        otherwise searches without a proof, and gives a lower bound.
    time_limit : float, default=None
        Seconds for each query. By default there is no limit, and ``"exact"`` refuses queries in
        which cycles connect more than 100 items.

    Notes
    -----
    Items whose order the comparisons leave open share a rank, whatever the order of the judgements,
    for queries of up to 10 compared items and ``"auto"`` or ``"exact"``. Otherwise the scores are
    those of one ranking, in which the weight won minus the weight lost, and then the order of the
    items, decide where the decoder does not. Items without comparisons are last.

    The problem is NP-hard, and ``"exact"`` can take arbitrarily long where cycles connect more than
    16 items. The memory is O(r^2) for a query of r items.

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

    _scores_are_gains = True

    def __init__(self, method: str = "auto", *, time_limit: float | None = None) -> None:
        self.method = method
        self.time_limit = time_limit

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        check_options(self.method, _METHODS, 0, self.time_limit, 0)

    def _decode(self, preferences: Preferences, n_jobs: int | None = None) -> DecodeResult:
        """Rank the items; the objectives are the weights that the rankings contradict."""
        self.check()
        queries = preferences.queries
        queries.check_pairs_fit()
        winner, loser, weight = preferences.winner, preferences.loser, preferences.weight
        net = np.bincount(winner, weight, queries.n_rows)
        net -= np.bincount(loser, weight, queries.n_rows)
        won, lost, margin = _of_each_pair(preferences)
        decoder = _METHODS[self.method]()
        if "time_limit" in decoder.get_params():
            decoder.set_params(time_limit=self.time_limit)
        result: DecodeResult = decoder.decode(margin, queries, lambda rows: -net[rows], n_jobs)
        # Of each pair, every ranking contradicts the smaller weight of the two directions.
        owner = PAIRS.owners(queries)
        unavoidable = np.bincount(owner, np.minimum(won, lost), queries.n_queries)
        result.objective = result.objective + unavoidable
        result.lower_bound = result.lower_bound + unavoidable
        compared = np.zeros(queries.n_rows)
        compared[winner[weight > 0]] = compared[loser[weight > 0]] = queries.n_rows
        # The items without comparisons can be anywhere, so that moving them down costs nothing.
        result.ranks = queries.rank(queries.sort(compared - result.ranks))
        return result

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        return self._scores_of_ranks(preferences, self._decode(preferences).ranks)

    def _scores_of_ranks(self, preferences: Preferences, ranks: Ints) -> Floats:
        """Compute the scores from the ranks of `decode`, which are those of one best ranking."""
        queries = preferences.queries
        scores = (queries.repeat(queries.sizes) - queries.gather(ranks)).astype(np.float64)
        if self.method not in ("auto", "exact"):
            return queries.scatter(scores)
        margin = _of_each_pair(preferences)[2]
        n_entries = PAIRS.n_entries(queries.sizes)
        starts = np.cumsum(n_entries) - n_entries
        compared = np.zeros(queries.n_rows)
        positive = preferences.weight > 0
        compared[preferences.winner[positive]] = compared[preferences.loser[positive]] = 1
        n_compared = queries.sum(compared).astype(np.int64)
        # A loop over sizes and numbers of compared items, which are the first in the ranking.
        kinds = np.unique(np.column_stack([queries.sizes, n_compared]), axis=0)
        for r, m in kinds[(kinds[:, 1] > 1) & (kinds[:, 1] <= MAX_CONSIDERED)].tolist():
            member = np.flatnonzero((queries.sizes == r) & (n_compared == m))
            step = rows_per_block(8 * max((m + 4) << m, r * r))
            for some in (member[k : k + step] for k in range(0, len(member), step)):
                net = PAIRS.matrices(margin[starts[some][:, None] + np.arange(r * (r - 1) // 2)], r)
                inside = queries.offsets[some][:, None] + np.arange(r)
                order = np.argsort(queries.gather(ranks)[inside], axis=1)[:, :m]
                net = np.take_along_axis(net, order[:, :, None], axis=1)
                net = np.take_along_axis(net, order[:, None, :], axis=2)
                # Where all majorities agree with the ranking, there is no other as good.
                open_ = ~(net[:, *np.triu_indices(m, 1)] > 0).all(axis=1)
                if open_.any():
                    above = decided_pairs(net[open_]).sum(axis=1)
                    places = np.take_along_axis(inside[open_], order[open_], axis=1)
                    scores[places] = r - 1.0 - above
        return queries.scatter(scores)


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
    return won, lost, np.where(np.abs(margin) > 1e-12 * (won + lost), margin, 0.0)


def others_are_as_good(preferences: Preferences, order: Ints) -> bool | None:
    """Return whether another ranking contradicts as little weight, or None if this is not known.

    `order` are rows of one query, best first, that contradict the least weight. It is never None
    for up to 10 items, nor if no strict majority is contradicted.
    """
    r = len(order)
    place = np.full(preferences.n_rows, -1)
    place[order] = np.arange(r)
    winner, loser = place[preferences.winner], place[preferences.loser]
    inside = (winner >= 0) & (loser >= 0)
    net = np.zeros((r, r))  # the weight with which the item of a row beats that of a column
    np.add.at(net, (winner[inside], loser[inside]), preferences.weight[inside])
    net = net - net.T
    noise = 1e-12 * max(float(np.abs(net).sum()), 1e-300)
    if (np.diagonal(net, 1) <= noise).any():  # neighbours can be swapped
        return True
    if (np.triu(net) >= -noise).all():
        # No strict majority is contradicted. Another ranking as good contradicts none either, so it
        # keeps the order of all neighbours, between which there is one: it is the same.
        return False
    if r <= MAX_CONSIDERED:
        return bool((~decided_pairs(net[None]))[0][np.triu_indices(r, 1)].any())
    upper = np.triu(net, 1)
    down = np.where(upper.cumsum(axis=1) <= noise, 1, 0)  # move an item below the next ones
    up = np.where(upper[::-1].cumsum(axis=0)[::-1] <= noise, 1, 0)  # and above those before it
    if (np.triu(down, 1) + np.triu(up, 1)).any():
        return True
    return None


def decided_pairs(net: Floats) -> Bools:
    """Return which item is above which in all rankings that contradict the least weight.

    `net` (n_problems, r, r) is the weight for the item of a row minus that for the one of a column.
    The contradicted weight is, up to a constant, half the sum of net[i, j] over the pairs with i
    below j. Let f(S) be the least part of it for the items of a set S on top, and g(S) that for the
    others below them. S can be on top of a best ranking if f(S) + g(S) is the least weight, and
    item i is above j in all of them if none of these sets contains j without i. The cost is O(2^r
    r^2) for each problem.
    """
    n, r = net.shape[:2]
    noise = 1e-12 * np.maximum(np.abs(net).sum(axis=(1, 2)), 1e-300)
    sets = np.arange(1 << r)
    member = (sets[:, None] >> np.arange(r)) & 1
    # the weight that is contradicted if the next item below the set is that of the column
    cost = (net.sum(axis=1)[:, None, :] - member.astype(np.float64) @ net) / 2
    size = member.sum(axis=1)
    f, g = np.full((2, n, 1 << r), np.inf)
    f[:, 0] = g[:, -1] = 0.0
    for k in range(r):
        for j in range(r):
            smaller = sets[(size == k) & (member[:, j] == 0)]
            larger = smaller | 1 << j
            f[:, larger] = np.minimum(f[:, larger], f[:, smaller] + cost[:, smaller, j])
            # the same for g, from the largest sets down
            smaller = sets[(size == r - 1 - k) & (member[:, j] == 0)]
            found = g[:, smaller | 1 << j] + cost[:, smaller, j]
            g[:, smaller] = np.minimum(g[:, smaller], found)
    possible = (f + g <= (f[:, -1] + noise)[:, None]).astype(np.float64)
    with_other = (possible[:, :, None] * member).transpose(0, 2, 1)  # the sets that contain j
    above: Bools = (with_other @ (1.0 - member)).transpose(0, 2, 1) == 0
    above[:, np.arange(r), np.arange(r)] = False
    return above
