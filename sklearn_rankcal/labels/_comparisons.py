"""The comparisons and orders that judgements contain, as flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels._rankings import relevance_preferences
from sklearn_rankcal.queries import Queries

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Comparisons(NamedTuple):
    """The comparisons of all judgements, those of judgement 0 first.

    Attributes
    ----------
    winner, loser : ndarray of shape (n_comparisons,)
        Rows of the preferred and of the other item.
    weight : ndarray of shape (n_comparisons,) or None
        Weight of each comparison; None means 1 for each. A tie between two items is two opposite
        comparisons of weight 1/2.
    offsets : ndarray of shape (n_judgements + 1,) or None
        Judgement m has the comparisons ``offsets[m]`` to ``offsets[m + 1] - 1``. None means that
        each judgement has exactly one.
    """

    winner: Ints
    loser: Ints
    weight: Floats | None
    offsets: Ints | None


class Orders(NamedTuple):
    """The orders of all judgements, those of judgement 0 first.

    Attributes
    ----------
    item : ndarray of shape (n_entries,)
        Rows of the items that each judgement orders, best first.
    tier : ndarray of shape (n_entries,)
        The tier of the item in its judgement, 0 = best; tied items are in the same tier.
    offsets : ndarray of shape (n_judgements + 1,)
        Judgement m has the entries ``offsets[m]`` to ``offsets[m + 1] - 1``, at least one.
    """

    item: Ints
    tier: Ints
    offsets: Ints


def compare_tiers(orders: Orders, half_ties: bool) -> Comparisons:
    """Compare all items of different tiers of each order, and tied ones if `half_ties`."""
    item, tier, offsets = orders
    found = relevance_preferences(-tier.astype(np.float64), Queries(offsets))
    winner, loser, ends = found.winner, found.loser, found.pair_offsets
    if not half_ties:
        return Comparisons(item[winner], item[loser], None, ends)
    # Each tier is treated as a query whose entries have different relevance.
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    new = np.append(True, (owner[1:] != owner[:-1]) | (tier[1:] != tier[:-1]))
    tiers = Queries(np.append(np.flatnonzero(new), len(item)))
    ties = relevance_preferences(np.arange(len(item), dtype=np.float64), tiers)
    of_pair = np.repeat(np.arange(len(offsets) - 1), np.diff(ends))
    judgement = np.concatenate([of_pair, owner[ties.winner], owner[ties.winner]])
    order = np.argsort(judgement, kind="stable")
    counts = np.bincount(judgement, minlength=len(offsets) - 1)
    return Comparisons(
        item[np.concatenate([winner, ties.winner, ties.loser])][order],
        item[np.concatenate([loser, ties.loser, ties.winner])][order],
        np.repeat([1.0, 0.5], [len(winner), 2 * len(ties.winner)])[order],
        np.append(0, np.cumsum(counts)),
    )
