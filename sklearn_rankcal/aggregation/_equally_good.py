"""What the rankings that contradict the least weight of comparisons have in common."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels import Preferences

Floats = NDArray[np.float64]

#: Up to this number of items, all rankings that contradict the least weight are considered.
MAX_CONSIDERED = 10


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
    if r <= MAX_CONSIDERED:
        return bool((~decided_pairs(net[None]))[0][np.triu_indices(r, 1)].any())
    upper = np.triu(net, 1)
    down = np.where(upper.cumsum(axis=1) <= noise, 1, 0)  # move an item below the next ones
    up = np.where(upper[::-1].cumsum(axis=0)[::-1] <= noise, 1, 0)  # and above those before it
    if (np.triu(down, 1) + np.triu(up, 1)).any():
        return True
    return None


def decided_pairs(net: Floats) -> NDArray[np.bool_]:
    """Return which item is above which other one in all rankings that contradict the least weight.

    Parameters
    ----------
    net : ndarray of shape (n_problems, r, r)
        The weight with which the item of a row beats that of a column, minus the reverse.

    Returns
    -------
    above : ndarray of bool of shape (n_problems, r, r)

    Notes
    -----
    The weight that a ranking contradicts is, up to a constant, half the sum of net[i, j] over the
    pairs in which i is below j. Let f(S) be the least part of it for the items of a set S on top,
    and g(S) that for the others below them. A ranking that contradicts the least weight can have
    the set S on top if f(S) + g(S) is that least weight. Item i is above j in all of them if none
    of these sets contains j without i. The cost is O(2^r r^2) for each problem.
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
    above: NDArray[np.bool_] = (with_other @ (1.0 - member)).transpose(0, 2, 1) == 0
    above[:, np.arange(r), np.arange(r)] = False
    return above
