"""Whether other rankings contradict as little as a ranking that contradicts the least."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels import Preferences

Floats = NDArray[np.float64]

#: Up to this number of items, the rankings that contradict the least weight are counted.
_MAX_COUNTED = 10


def others_are_as_good(preferences: Preferences, order: NDArray[np.int64]) -> bool | None:
    """Return whether another ranking contradicts as little weight, or None if this is not known.

    Parameters
    ----------
    preferences : Preferences
        The sums of the weights of all comparisons.
    order : ndarray of shape (n_ranked,)
        Rows of one query, best first, that contradict the least weight of their comparisons.

    Returns
    -------
    others : bool or None
        It is never None for up to 10 items, nor if the ranking contradicts no strict majority, nor
        if moving a single item leads to another ranking that is as good. The cost is O(r^2) for r
        items, and that of 2^r sets of items for up to 10 items.
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
    if r <= _MAX_COUNTED:
        return _count_best(net, noise) > 1
    upper = np.triu(net, 1)
    down = np.where(upper.cumsum(axis=1) <= noise, 1, 0)  # move an item below the next ones
    up = np.where(upper[::-1].cumsum(axis=0)[::-1] <= noise, 1, 0)  # and above those before it
    if (np.triu(down, 1) + np.triu(up, 1)).any():
        return True
    return None


def _count_best(net: Floats, noise: float) -> int:
    """Count the rankings that contradict the least weight, by the sets of the items on top.

    The weight that a ranking contradicts is, up to a constant, half the sum of net[i, j] over the
    pairs in which i is below j. O(2^r r^2) for r items.
    """
    r = len(net)
    best, count = np.full(1 << r, np.inf), np.zeros(1 << r, dtype=np.int64)
    best[0], count[0] = 0.0, 1
    for top in range(1 << r):
        rest = [i for i in range(r) if not top >> i & 1]
        for j in rest:  # the next item below those on top
            cost = best[top] + net[rest, j].sum() / 2
            larger = top | 1 << j
            if cost < best[larger] - noise:
                best[larger], count[larger] = cost, count[top]
            elif cost <= best[larger] + noise:
                count[larger] += count[top]
    return int(count[-1])
