"""Parts of judgements: resamples of them, and those about some of the items.

Each function returns a dictionary of the arguments of the constructor. `Judgements` documents them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels._comparisons import Comparisons, Orders, ranges, take_entries
from sklearn_rankcal.queries import Queries

if TYPE_CHECKING:
    from sklearn_rankcal.labels._judgements import Judgements

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arguments = dict[str, Any]


def resample(judgements: Judgements, taken: Ints, copy: Ints, parent: Ints) -> Arguments:
    queries, rows, shift = judgements.queries.copies(parent)
    place = judgements.queries.scatter(np.arange(judgements.queries.n_rows))
    moved = shift[copy]
    comparisons, orders = judgements._comparisons, judgements.orders
    if orders is not None:
        entries, starts = ranges(orders.offsets, taken)
        owner = np.repeat(moved, np.diff(starts))
        orders = Orders(place[orders.item[entries]] + owner, orders.tier[entries], starts)
        comparisons = None
    if comparisons is not None:
        chosen, owner, ends = taken, moved, None
        if comparisons.offsets is not None:
            chosen, ends = ranges(comparisons.offsets, taken)
            owner = np.repeat(moved, np.diff(ends))
        comparisons = Comparisons(
            place[comparisons.winner[chosen]] + owner,
            place[comparisons.loser[chosen]] + owner,
            None if comparisons.weight is None else comparisons.weight[chosen],
            ends,
        )
    return {
        "queries": queries,
        "items": judgements.items[rows],
        "query": copy,
        "comparisons": comparisons,
        "orders": orders,
        "half_ties": judgements._half_ties,
        "count": None if judgements.count is None else judgements.count[taken],
        "judge": None if judgements.judge is None else judgements.judge[taken],
        "judges": judgements.judges,
    }


def with_pairs(judgements: Judgements, winner: Ints, loser: Ints, count: Floats) -> Arguments:
    comparisons, orders, n = None, judgements.orders, len(winner)
    if orders is not None:
        item = np.append(orders.item, np.column_stack([winner, loser]))
        tier = np.append(orders.tier, np.tile([0, 1], n))
        order_ends = np.append(orders.offsets, orders.offsets[-1] + 2 * np.arange(1, n + 1))
        orders = Orders(item, tier, order_ends)
    else:
        old = judgements.comparisons
        weight, ends = old.weight, old.offsets
        comparisons = Comparisons(
            np.append(old.winner, winner),
            np.append(old.loser, loser),
            None if weight is None else np.append(weight, np.ones(n)),
            None if ends is None else np.append(ends, ends[-1] + np.arange(1, n + 1)),
        )
    given = np.ones(judgements.n_judgements) if judgements.count is None else judgements.count
    return {
        "queries": judgements.queries,
        "items": judgements.items,
        "query": np.append(judgements.query, judgements.queries.codes[winner]),
        "comparisons": comparisons,
        "orders": orders,
        "half_ties": judgements._half_ties,
        "count": np.append(given, count),
    }


def take_rows(judgements: Judgements, rows: Ints, queries: Queries) -> Arguments:
    new = np.full(judgements.queries.n_rows, -1)
    new[rows] = np.arange(len(rows))
    number = np.full(judgements.queries.n_queries, -1)  # the new number of each query
    number[judgements.queries.codes[rows]] = queries.codes
    query = number[judgements.query]
    winner, loser, weight, offsets = judgements.comparisons
    winner, loser = new[winner], new[loser]
    inside = (winner >= 0) & (loser >= 0)
    owner = judgements.of_comparison
    owner = np.arange(judgements.n_judgements) if owner is None else owner
    counts = np.bincount(owner[inside], minlength=judgements.n_judgements)
    # A judgement that contained no comparison before, such as a single tier, still counts.
    left = counts > 0
    if offsets is not None:
        left |= np.diff(offsets) == 0
    if judgements.orders is not None:
        entry_owner = np.repeat(
            np.arange(judgements.n_judgements), np.diff(judgements.orders.offsets)
        )
        listed = np.bincount(entry_owner, new[judgements.orders.item] >= 0, judgements.n_judgements)
        left &= listed > 0
    kept = np.flatnonzero((query >= 0) & left)
    counts = counts[kept]
    comparisons = Comparisons(
        winner[inside],
        loser[inside],
        None if weight is None else weight[inside],
        None if (counts == 1).all() else np.append(0, np.cumsum(counts)),
    )
    orders = None if judgements.orders is None else take_entries(judgements.orders, new, kept)
    return {
        "queries": queries,
        "items": judgements.items[rows],
        "query": query[kept],
        "comparisons": comparisons,
        "orders": orders,
        "half_ties": judgements._half_ties,
        "count": None if judgements.count is None else judgements.count[kept],
        "judge": None if judgements.judge is None else judgements.judge[kept],
        "judges": judgements.judges,
    }
