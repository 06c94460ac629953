"""Subset dynamic programming: the cheapest order when costs depend on the set already placed.

`_numpy.py` has the same function in NumPy.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint64_t

from sklearn_rankcal._kernels._bitsets cimport count_bits, lowest_bit
from sklearn_rankcal._kernels._work_counter cimport WorkCounter, count_steps, new_counter


def subset_dp(
    const double[:, ::1] cost, const double[::1] own, const double[::1] scale, double limit,
    bint sum_remaining,
):
    """Find the cheapest order by dynamic programming over the sets of documents placed first.

    Placing document v after the documents of a set S costs

        scale[|S|] * (own[v] + sum of cost[v, w] over w in S).

    With `sum_remaining`, the sum is over the documents outside S instead, and cost[v, v] must be 0.
    The cheapest cost of a set satisfies best[S + v] = min over v of best[S] + the cost of v. Sets
    that cost more than `limit` are not continued. Among several cheapest orders, the result has the
    largest last document, then the largest document before it, and so on.

    Takes O(2^r r) time at most and 2^r floats. Returns the order and its cost. Raises ValueError if
    no order costs at most `limit`.
    """
    cdef Py_ssize_t r = cost.shape[0], low_bits = r // 2, high_bits = r - low_bits, v, k, size
    cdef uint64_t full = (<uint64_t> 1) << r, mask = ((<uint64_t> 1) << low_bits) - 1
    cdef uint64_t s, rest, summed, flip = full - 1 if sum_remaining else 0
    best_array = np.full(full, np.inf)
    low_array = _sums(cost, own, 0, low_bits)
    high_array = _sums(cost, np.zeros(r), low_bits, high_bits)
    order_array = np.empty(r, dtype=np.int64)
    cdef double[::1] best = best_array
    cdef const double[:, ::1] low = low_array
    cdef const double[:, ::1] high = high_array
    cdef int64_t[::1] order = order_array
    cdef double at, value, factor
    cdef const double *of_low
    cdef const double *of_high
    cdef WorkCounter counter = new_counter(None)
    # A set is an integer: bit v is document v. The sum over a set is the sum over its low bits plus
    # the sum over its high bits. Both are looked up in tables of 2^(r / 2) rows.
    # Process sets in ascending order: every subset of s is a smaller integer, and best[s] is final.
    best[0] = 0.0
    with nogil:
        for s in range(full - 1):
            if s & 4095 == 4095:
                count_steps(&counter, 4096 * r)
            at = best[s]
            if at > limit or at == INFINITY:
                continue
            size = count_bits(s)
            factor = scale[size]
            summed = s ^ flip  # the set to sum over
            of_low = &low[summed & mask, 0]
            of_high = &high[summed >> low_bits, 0]
            rest = ~s & (full - 1)
            # Place each remaining document; rest & (~rest + 1) is the bit of document v.
            while rest:
                v = lowest_bit(rest)
                value = at + factor * (of_low[v] + of_high[v])
                if value < best[s | (rest & (~rest + 1))]:
                    best[s | (rest & (~rest + 1))] = value
                rest &= rest - 1
    if best[full - 1] == INFINITY:
        raise ValueError("no order costs at most limit")
    # Walk back from the full set. The last document is the largest v where best[S] + the cost of v
    # is exactly the stored value: the forward pass computed the same expression.
    s = full - 1
    for k in range(r - 1, -1, -1):
        for v in range(r - 1, -1, -1):
            if (s >> v) & 1:
                rest = s ^ ((<uint64_t> 1) << v)
                summed = rest ^ flip
                value = low[summed & mask, v] + high[summed >> low_bits, v]
                if best[rest] + scale[k] * value == best[s]:
                    order[k] = v
                    s = rest
                    break
    return order_array, best[full - 1]


def _sums(const double[:, ::1] cost, const double[::1] own, Py_ssize_t first, Py_ssize_t n_bits):
    """Return own[v] + sum_{w in S} cost[v, w] for every set S of documents first, first + 1, ...

    The result has shape (2^n_bits, r); each bit doubles the filled part.
    """
    table = np.empty((1 << n_bits, cost.shape[0]))
    table[0] = own
    for bit in range(n_bits):
        column = np.asarray(cost)[:, first + bit]
        np.add(table[: 1 << bit], column, out=table[1 << bit : 2 << bit])
    return table
