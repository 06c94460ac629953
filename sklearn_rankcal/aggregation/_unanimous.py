"""Votes against unanimous comparisons, which no resample of the judgements would contain.

If all n judgements that compare two items agree, so do those of every resample, however small n is.
What they say about other judgements is the interval of Clopper and Pearson: with confidence 1 - a,
the share of judgements that disagree is below 1 - a^(1/n). A resample therefore turns round a share
q of the weight of these comparisons, and q is drawn as 1 - U^(1/n) with U uniform on (0, 1). With
n = 1, the one vote is turned round in half of the resamples; from n = 6 on, the majority is turned
round in less than 2.5 % of them.

The same share is drawn for all comparisons between two *blocks* of items. Blocks are the strongly
connected components of the graph in which an item points to those that at least one judgement, or
one judge, prefers it to on balance. Between two blocks, no judgement prefers an item of the one,
and inside a block there are judgements on both sides, so that their resamples differ.

References
----------
.. [1] C. J. Clopper and E. S. Pearson (1934). The use of confidence or fiducial limits illustrated
   in the case of the binomial. Biometrika 26, 404-413.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from sklearn_rankcal.aggregation._graphs import number_components

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_ROUNDING = 1e-12  # relative to the weight of a pair
#: The share of the items of a connected component that its main block contains at least.
_MAIN = 0.9


class Unanimous(NamedTuple):
    """The comparisons between blocks of items, which are turned round in part.

    Attributes
    ----------
    column : ndarray of shape (n_columns,)
        The pairs (winner, loser) between two blocks.
    group : ndarray of shape (n_columns,)
        The two blocks of each of them, numbered by query.
    sign : ndarray of shape (n_columns,)
        1; but 1 for one of the directions and -1 for the other if all of them are ties.
    votes : ndarray of shape (n_groups,)
        The number n of the judgements, or judges, that compare the two blocks.
    tied : ndarray of bool of shape (n_groups,)
        Whether these comparisons are ties. The side that q strengthens is then drawn as well.
    query : ndarray of shape (n_groups,)
        Ascending.
    touched : ndarray of bool of shape (n_rows,)
        Whether a chain of comparisons connects the row with one that such a comparison compares.
    open_low, open_high : ndarray of bool of shape (n_rows,)
        What `open_ends` returns.
    """

    column: Ints
    group: Ints
    sign: Ints
    votes: Floats
    tied: Bools
    query: Ints
    touched: Bools
    open_low: Bools
    open_high: Bools

    def draw(self, n_resamples: int, seed: list[int]) -> Floats:
        """Draw q for each resample and group; where the groups are tied, with a random sign.

        The draws of a group are stratified: each of `n_resamples` equal parts of (0, 1) contains
        one of the uniform numbers. They do not depend on other queries.
        """
        shares = np.empty((n_resamples, len(self.votes)))
        starts = np.flatnonzero(np.append(True, self.query[1:] != self.query[:-1]))
        for groups in np.split(np.arange(len(self.votes)), starts[1:]):  # a loop over queries
            random = np.random.default_rng(seed)
            part = np.tile(np.arange(n_resamples), (len(groups), 1))
            place = random.permuted(part, axis=1) + random.random(part.shape)
            sign = np.where(random.random(place.shape) < 0.5, -1.0, 1.0)
            sign[~self.tied[groups]] = 1.0
            q = 1.0 - (place / n_resamples) ** (1.0 / self.votes[groups, None])
            shares[:, groups] = (sign * q).T
        return shares

    def turn_round(self, weight: Floats, shares: Floats, mirror: Ints) -> Floats:
        """Move a share of the weight of pairs to the reversed pairs, in place.

        Parameters
        ----------
        weight : ndarray of shape (n_resamples, n_pairs)
        shares : ndarray of shape (n_resamples, n_groups)
            What `draw` returned.
        mirror : ndarray of shape (n_pairs,)
            The number of the reversed pair of each pair.

        Returns
        -------
        against : ndarray of shape (n_resamples, n_columns)
            The weight that would have to be added to the reversed pairs, with nothing taken away
            from the pairs, for the same shares.
        """
        share = np.clip(self.sign * shares[:, self.group], 0.0, 1 - 1e-9)
        before = weight[:, self.column]
        moved = before * share
        weight[:, self.column] -= moved
        weight[:, mirror[self.column]] += moved
        return before * (share / (1 - share))


def find_unanimous(
    winner: Ints, loser: Ints, contents: csr_array, counts: Floats, codes: Ints
) -> Unanimous | None:
    """Find the blocks of items between which nobody disagrees.

    Parameters
    ----------
    winner, loser : ndarray of shape (n_pairs,)
        Different pairs of rows.
    contents : csr_array of shape (n_units, n_pairs)
        The weight of each pair in a judgement, or in all judgements of a judge.
    counts : ndarray of shape (n_units,)
        How often the data contain each unit.
    codes : ndarray of shape (n_rows,)
        The query of each row.

    Returns
    -------
    unanimous : Unanimous or None
        None if there is one block for each connected component. The cost is linear in the entries
        of `contents`, apart from sorts.
    """
    n_rows = len(codes)
    units = csr_array((counts > 0).astype(np.float64)[None])
    contents = contents.multiply(units.T).tocsr()
    contents.eliminate_zeros()
    total = counts @ contents
    first, second = np.minimum(winner, loser), np.maximum(winner, loser)
    keys, pair = np.unique(first * n_rows + second, return_inverse=True)
    # the weight for the first item of each pair minus that for the second, in each unit
    shape = (len(winner), len(keys))
    start = np.arange(len(winner) + 1)
    net = contents @ csr_array((np.where(winner < loser, 1.0, -1.0), pair, start), shape=shape)
    net = net.tocoo()
    decided = np.abs(net.data) > _ROUNDING * max(float(total.max(initial=0.0)), 1e-300)
    one, other = keys[net.coords[1][decided]] // n_rows, keys[net.coords[1][decided]] % n_rows
    ahead = net.data[decided] > 0
    start, end = np.where(ahead, one, other), np.where(ahead, other, one)
    block = number_components(start, end, n_rows, "strong")
    column = np.flatnonzero((block[winner] != block[loser]) & (total > 0))
    if not len(column):
        return None
    low = np.minimum(block[winner[column]], block[loser[column]])
    high = np.maximum(block[winner[column]], block[loser[column]])
    query = codes[winner[column]]
    order = np.lexsort((high, low, query))
    column, low, high, query = column[order], low[order], high[order], query[order]
    new = np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1]))
    group = np.cumsum(new) - 1
    sign = np.where(block[winner[column]] == low, 1, -1)
    sums = np.bincount(group, sign * total[column])
    tied = np.abs(sums) <= _ROUNDING * np.bincount(group, total[column])
    shape = (len(winner), int(group[-1]) + 1)
    member = csr_array((np.ones(len(column)), (column, group)), shape=shape)
    compares = contents.astype(bool).astype(np.float64) @ member
    compares.data[:] = 1.0
    some = winner[column]
    winner, loser = winner[total > 0], loser[total > 0]
    part = number_components(winner, loser, n_rows, "weak")
    touched = np.isin(part, part[some])
    return Unanimous(
        column,
        group,
        np.where(tied[group], sign, 1),
        counts @ compares,
        tied,
        query[new],
        touched,
        *open_ends(winner, loser, part),
    )


def open_ends(winner: Ints, loser: Ints, part: Ints) -> tuple[Bools, Bools]:
    """Find the items whose likelihood does not bound their scores from below, or from above.

    Let the blocks of a connected component be its strongly connected components. The likelihood
    bounds the score of an item from above, relative to a block, if a chain of wins leads from the
    block to the item, and from below if one leads from the item to the block. If a block contains
    nine tenths of the items, scores are taken relative to it. Otherwise they are relative to the
    mean: then only the lowest block is bounded from above, if there is a single one, and only the
    highest from below.

    Parameters
    ----------
    winner, loser : ndarray of shape (n_pairs,)
    part : ndarray of shape (n_rows,)
        The connected component of each row.
    """
    n = len(part)
    start: Ints
    block = number_components(winner, loser, n, "strong")
    size = np.bincount(block)[block]
    order = np.lexsort((-size, part))
    reference = order[np.append(True, part[order][1:] != part[order][:-1])]  # of each component
    share = size[reference] / np.bincount(part)[part[reference]]
    large = reference[(size[reference] > 1) & (share >= _MAIN)]
    across = block[winner] != block[loser]
    ends = []
    for one, other in ((winner, loser), (loser, winner)):
        # the items that chains from the main blocks reach, from a node that leads to these blocks
        start, end = np.append(one, np.full(len(large), n)), np.append(other, large)
        graph = csr_array((np.ones(len(start)), (start, end)), shape=(n + 1, n + 1))
        bounded = np.zeros(n + 1, dtype=bool)
        bounded[breadth_first_order(graph, n, return_predecessors=False)] = True
        leaves = np.zeros(n, dtype=bool)
        leaves[block[one[across]]] = True
        last = ~leaves[block]  # no chain leads away from these items
        alone = np.bincount(part[last], minlength=n)[part] == size
        relative = np.isin(part, part[large])
        ends.append(np.where(relative, ~bounded[:n], ~(last & alone)))
    return ends[1], ends[0]
