"""`_compiled_subsets.pyx` in NumPy. The docstring there describes the function and its cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def subset_dp(
    cost: Floats, own: Floats, scale: Floats, limit: float, sum_remaining: bool
) -> tuple[Ints, float]:
    r = len(cost)
    flip = (1 << r) - 1 if sum_remaining else 0
    low_bits = r // 2
    mask = (1 << low_bits) - 1
    low, high = _sums(cost, own, 0, low_bits), _sums(cost, np.zeros(r), low_bits, r - low_bits)
    best = np.full(1 << r, np.inf)
    best[0] = 0.0
    # Process all sets of k documents at once, for k = 0, 1, ...: a set is final in its turn.
    size = np.zeros(1 << r, dtype=np.uint8)
    for bit in range(r):
        size[1 << bit : 2 << bit] = size[: 1 << bit] + 1
    for k in range(r):
        # Sorting all sets by size would take as long in total, but would delay Ctrl-C.
        layer = np.flatnonzero(size == k)
        layer = layer[(best[layer] <= limit) & (best[layer] < np.inf)]
        for v in range(r):
            sets = layer[(layer >> v) & 1 == 0]
            summed = sets ^ flip
            value = best[sets] + scale[k] * (low[summed & mask, v] + high[summed >> low_bits, v])
            sets = sets | (1 << v)
            best[sets] = np.minimum(best[sets], value)
    s = (1 << r) - 1
    if best[s] == np.inf:
        raise ValueError("no order costs at most limit")
    value = float(best[s])
    order = np.empty(r, dtype=np.int64)
    # Walk back from the full set: the last document is the largest one that explains the value.
    for k in range(r - 1, -1, -1):
        for v in range(r - 1, -1, -1):
            rest = s ^ (1 << v)
            summed = rest ^ flip
            added = scale[k] * (low[summed & mask, v] + high[summed >> low_bits, v])
            if rest < s and best[rest] + added == best[s]:
                order[k], s = v, rest
                break
    return order, value


def _sums(cost: Floats, own: Floats, first: int, n_bits: int) -> Floats:
    """Compute own[v] + sum_{w in S} cost[v, w] for each set S of n_bits documents from `first`."""
    table = np.empty((1 << n_bits, len(cost)))
    table[0] = own
    for bit in range(n_bits):
        np.add(table[: 1 << bit], cost[:, first + bit], out=table[1 << bit : 2 << bit])
    return table
