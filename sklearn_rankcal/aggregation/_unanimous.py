"""Votes against unanimous comparisons, which plain resamples never contain.

If all n judgements that compare two items agree, the share of judgements that disagree is below 1 -
a^(1/n) with confidence 1 - a (Clopper and Pearson). A resample therefore reverses a share q of
their weight, where q = 1 - U^(1/n) with U uniform on (0, 1). All comparisons between two *blocks*
have the same q. Blocks are the strongly connected components of a graph: an item points to each
item that at least one judgement, or one judge, places below it on balance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from sklearn_rankcal.aggregation._graphs import number_components
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

_ROUNDING = 1e-12  # relative to the weight of a pair
#: The share of the items of a connected component that its main block contains at least.
MAIN = 0.9


class Unanimous(NamedTuple):
    """The comparisons between blocks of items, which resamples reverse in part.

    `column` has pairs (winner, loser). A group is the set of pairs between the same two blocks.
    """

    column: Ints
    group: Ints  # of each column
    sign: Ints  # of each column: 1, or -1 for one direction of ties
    votes: Floats  # the judgements, or judges, that compare the two blocks of each group
    tied: Bools  # whether all comparisons of a group are ties; q then has a random sign
    query: Ints  # of each group, ascending
    touched: Bools  # whether comparisons connect a row with one of a column
    only: Bools  # whether all comparisons of a row are in columns
    open_low: Bools  # of each row, as `open_ends` returns them
    open_high: Bools

    def draw(self, n_resamples: int, seed: list[int]) -> Floats:
        """Draw q for each resample and group; with a random sign for tied groups.

        The draws of a group are stratified: each of `n_resamples` equal parts of (0, 1) contains
        one uniform number. They do not depend on other queries.
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
        """Move a share of the weight of pairs (n_resamples, n_pairs) to the reversed pairs.

        Return the weights against each column that would have the same effect if added.
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
    """Find blocks with unanimous comparisons between them; None if each component is one block.

    `contents` (n_units, n_pairs) has the weight of each pair (winner, loser) in each unit, and
    `counts` the number of each unit in the data. `codes` are the queries of the rows.
    """
    n_rows = len(codes)
    units = csr_array((counts > 0).astype(np.float64)[None])
    contents = contents.multiply(units.T).tocsr()
    contents.eliminate_zeros()
    total = counts @ contents
    first, second = np.minimum(winner, loser), np.maximum(winner, loser)
    keys, pair = np.unique(first * n_rows + second, return_inverse=True)
    # the net weight for the first item of each pair, in each unit
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
    only = touched.copy()
    same = block[winner] == block[loser]
    only[winner[same]] = only[loser[same]] = False
    return Unanimous(
        column,
        group,
        np.where(tied[group], sign, 1),
        counts @ compares,
        tied,
        query[new],
        touched,
        only,
        *open_ends(winner, loser, part),
    )


def open_ends(winner: Ints, loser: Ints, part: Ints, main: float = MAIN) -> tuple[Bools, Bools]:
    """Return the rows with scores that the likelihood does not bound from below, and from above.

    Relative to a strongly connected block, the likelihood bounds a score from above if a chain of
    wins leads from the block to the item. It bounds a score from below if a chain leads from the
    item to the block. Scores are relative to a block with at least the share `main` of a component,
    if there is one. Otherwise they are relative to the mean: then only a single lowest block is
    bounded from above, and only a single highest block from below. `part` has the components of the
    rows.
    """
    n = len(part)
    start: Ints
    block = number_components(winner, loser, n, "strong")
    size = np.bincount(block)[block]
    large = _main_blocks(block, part, main)
    across = block[winner] != block[loser]
    ends = []
    for one, other in ((winner, loser), (loser, winner)):
        # the items that chains from the main blocks reach, from an auxiliary node above these
        # blocks
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


def _main_blocks(block: Ints, part: Ints, main: float) -> Ints:
    """Return an item of each strongly connected block of the share `main` of its component."""
    size = np.bincount(block)[block]
    order = np.lexsort((-size, part))
    largest = order[np.append(True, part[order][1:] != part[order][:-1])]  # of each component
    share = size[largest] / np.bincount(part)[part[largest]]
    return np.asarray(largest[(size[largest] > 1) & (share >= main)])


def reference_of(winner: Ints, loser: Ints, part: Ints, main: float = MAIN) -> Floats:
    """Return the weights of the items in the mean that each score is relative to, one row each.

    These are the items of the main block of the component, or all items of the component; see
    `open_ends`.
    """
    block = number_components(winner, loser, len(part), "strong")
    large = _main_blocks(block, part, main)
    mean = np.asarray(
        (part[:, None] == part) & (~np.isin(part, part[large]) | np.isin(block, block[large]))
    )
    return mean / mean.sum(axis=1, keepdims=True)
