"""`_compiled_graphs.pyx` in NumPy. The docstrings there describe each function and its cost.

Unlike `sum`, `cumsum` adds one number at a time, in the order of the compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TimeIsUp = Callable[[], bool] | None

# ------------------------------------------------------------------ matrices


def differences(u: Floats) -> tuple[Floats, Floats]:
    d = u - u.transpose(0, 2, 1)
    rows, columns = np.triu_indices(u.shape[1], 1)
    low = np.where(
        u[:, rows, columns] < u[:, columns, rows], u[:, rows, columns], u[:, columns, rows]
    )
    unavoidable = np.cumsum(low, axis=1)[:, -1] if len(rows) else np.zeros(len(u))
    return d, unavoidable


def from_upper_triangle(values: Floats, r: int) -> Floats:
    d = np.zeros((len(values), r, r))
    rows, columns = np.triu_indices(r, 1)
    d[:, rows, columns] = values
    d[:, columns, rows] = -values
    return d


def lost_weight(d: Floats, order: Ints) -> Floats:
    later, earlier = np.tril_indices(d.shape[1], -1)
    if not len(later):
        return np.zeros(len(d))
    weight = d[np.arange(len(d))[:, None], order[:, later], order[:, earlier]]
    return np.cumsum(np.maximum(weight, 0.0), axis=1)[:, -1]


# ------------------------------------------------------------------ graphs


def components(d: Floats) -> tuple[Ints, Ints]:
    m, r = d.shape[:2]
    labels = np.empty((m, r), dtype=np.int64)
    counts = np.empty(m, dtype=np.int64)
    # Loop over queries: connected_components accepts only one graph.
    for q in range(m):
        edges = d[q] > 0
        found, label = connected_components(edges, directed=True, connection="strong")
        smallest = np.full(found, r)
        np.minimum.at(smallest, label, np.arange(r))
        # between[a, b] is the number of edges from component a to component b.
        by_label = np.argsort(label, kind="stable")
        starts = np.searchsorted(label[by_label], np.arange(found))
        between = np.add.reduceat(edges[by_label], starts, axis=0, dtype=np.int64)
        between = np.add.reduceat(between[:, by_label], starts, axis=1)
        np.fill_diagonal(between, 0)
        incoming = between.sum(axis=0)
        # Next is the component with the smallest document, among the unnumbered components
        # without edges from other unnumbered components.
        number = np.empty(found, dtype=np.int64)
        for placed in range(found):
            best = int(np.argmin(np.where(incoming == 0, smallest, r + 1)))
            number[best] = placed
            incoming -= between[best]
            incoming[best] = -1
        labels[q], counts[q] = number[label], found
    return labels, counts


def binary_insertion(d: Floats) -> Ints:
    m, r = d.shape[:2]
    order = np.empty((m, r), dtype=np.int64)
    for q, wins in enumerate((d > 0).tolist()):
        listed: list[int] = []
        for v in range(r):
            low, high = 0, v
            while low < high:
                middle = (low + high) // 2
                if wins[v][listed[middle]]:
                    high = middle
                else:
                    low = middle + 1
            listed.insert(low, v)
        order[q] = listed
    return order


def triangle_bound(d: Floats, time_is_up: TimeIsUp = None) -> float:
    r = len(d)
    left = np.maximum(d, 0.0)
    bound = 0.0
    for i in range(r):
        if time_is_up is not None and time_is_up():
            break
        for j in range(i + 1, r - 1):
            first, second = (i, j) if left[i, j] > 0.0 else (j, i)
            edge = left[first, second]
            if edge <= 0.0:
                continue
            # All cycles first -> second -> k -> first with k > j at once. used[k] is the weight
            # that the cycles before k have taken from the edge first -> second.
            onward, back = left[second, j + 1 :], left[j + 1 :, first]
            spare = np.minimum(onward, back)
            used = np.cumsum(np.r_[0.0, spare])
            take = np.minimum(np.maximum(edge - used[:-1], 0.0), spare)
            onward -= take
            back -= take
            bound = np.cumsum(np.r_[bound, take])[-1]
            left[first, second] = max(edge - used[-1], 0.0)
    return float(bound)
