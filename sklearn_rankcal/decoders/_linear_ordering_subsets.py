"""Linear ordering: dynamic programming over sets of documents that closes a gap.

The excess of an order is its loss beyond the bound of a subproblem of the linear ordering
relaxation, a sum of terms >= 0. The search finds the order of least excess within a budget.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from sklearn_rankcal.utils._memory import CACHE_BYTES, rows_per_block
from sklearn_rankcal.utils._typing import Floats, Ints

#: Largest number of sets of one size. More sets take longer than the two sides of a branch.
_MAX_SETS = 1 << 17
#: Largest number of sets before equal ones are merged. They take about 50 MB.
_MAX_CANDIDATES = 1 << 20


def search_subsets(
    excess: Floats,
    cycles: Ints,
    multipliers: Floats,
    budget: float,
    give_up: Callable[[], bool],
) -> tuple[bool, Ints | None]:
    """Find the order of least excess, if its excess is at most `budget`.

    The excess of an order is the sum of ``excess[i, j]`` over the documents i before j, plus the
    sum over `cycles` a, b, c (n_cuts, 3) of their multiplier * (2 - x_ab - x_bc - x_ca), where x_ij
    = 1 if i is before j and 0 otherwise. All terms are >= 0.

    Placing document v after the documents of a set S adds ``excess[v, k]`` for each document k that
    is left, and the multiplier of each cut v, s, k with s in S and k left, because of its three
    variables the order s, v, k has only x_sk = 1. Both depend on the set S alone. It is therefore
    enough to know the smallest excess of each set (Held and Karp, 1962).

    Return whether the search is complete, and the order (r,), or None if every order exceeds the
    budget. It is not complete if there are too many sets or ``give_up()`` is true.
    """
    r = len(excess)
    active = multipliers > 0
    multipliers, cycles = multipliers[active], cycles[active]
    v, s, k = (np.roll(cycles, -shift, axis=1).T.ravel() for shift in range(3))
    # cuts[v, c]: sum of the multipliers of the cuts v, s, k, where (s, k) is the c-th pair of
    # `split`. They count when v is placed if s is in S and k is left.
    split, column = np.unique(s * r + k, return_inverse=True)
    s, k = np.divmod(split, r)
    cuts = csr_array((np.tile(multipliers, 3), (v, column)), (r, len(split)))
    # keys: each set as integers of 63 bits, to compare sets with.
    documents = np.arange(r)
    bits = np.zeros((-(-r // 63), r), dtype=np.int64)
    bits[documents // 63, documents] = 1 << (documents % 63)

    sets, totals = np.zeros((r, 1), dtype=bool), np.zeros(1)  # a column for each set
    keys = np.zeros((len(bits), 1), dtype=np.int64)
    block = rows_per_block(8 * (len(split) + r), 2 * CACHE_BYTES)
    steps: list[tuple[Ints, Ints]] = []
    # One step for each size of sets: extend every set by every document within the budget, then
    # keep the smallest excess of equal sets.
    while len(steps) < r:
        grown: list[tuple[Ints, Ints, Floats]] = []
        for first in range(0, len(totals), block):
            here = sets[:, first : first + block]
            total = excess @ ~here + cuts @ (here[s] & ~here[k]).astype(np.float64)
            total += totals[first : first + block]
            last, source = np.nonzero(~here & (total <= budget))
            grown.append((source + first, last, total[last, source]))
            if sum(len(g[0]) for g in grown) > _MAX_CANDIDATES or give_up():
                return False, None
        source, last, totals = (np.concatenate(part) for part in zip(*grown, strict=True))
        keys = keys[:, source] | bits[:, last]
        by_set = np.lexsort((totals, *keys))
        is_new = (np.diff(keys[:, by_set], axis=1, prepend=-1) != 0).any(axis=0)
        best = by_set[is_new]
        if not 0 < len(best) <= _MAX_SETS:
            return len(best) == 0, None
        source, last, totals, keys = source[best], last[best], totals[best], keys[:, best]
        sets = sets[:, source]
        sets[last, np.arange(len(best))] = True
        steps.append((source, last))
    # Walk back from the set of all documents.
    order, state = np.zeros(r, dtype=np.int64), 0
    for place in reversed(range(r)):
        source, last = steps[place]
        order[place], state = last[state], source[state]
    return True, order
