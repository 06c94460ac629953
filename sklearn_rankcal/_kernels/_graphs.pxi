"""Matrices of preferences and the graphs of their differences.

`_numpy.py` has the same functions in NumPy. An array with a leading axis m is a batch of
queries of equal size r. d is the matrix of differences d_ij = u_ij - u_ji. Its graph has an edge
i -> j of weight d_ij if d_ij > 0: document i is then preferred to document j.
"""

import numpy as np

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memmove, memset

from sklearn_rankcal._kernels._bitsets cimport add_all, contains, lowest_bit
from sklearn_rankcal._kernels._work_counter cimport WorkCounter, count_steps, new_counter

# ------------------------------------------------------------------ matrices


def differences(const double[:, :, ::1] u):
    """Return d = u - u^T, and the loss that no order avoids: sum over i < j of min(u_ij, u_ji)."""
    cdef Py_ssize_t m = u.shape[0], r = u.shape[1], q, i, j
    d_array = np.empty((m, r, r))
    unavoidable_array = np.empty(m)
    cdef double[:, :, ::1] d = d_array
    cdef double[::1] unavoidable = unavoidable_array
    cdef double a, b, low
    with nogil:
        for q in range(m):
            low = 0.0
            for i in range(r):
                d[q, i, i] = 0.0
                for j in range(i + 1, r):
                    a = u[q, i, j]
                    b = u[q, j, i]
                    d[q, i, j] = a - b
                    d[q, j, i] = b - a
                    low += a if a < b else b
            unavoidable[q] = low
    return d_array, unavoidable_array


def from_upper_triangle(const double[:, ::1] values, Py_ssize_t r):
    """Return differences (m, r, r) from their entries above the diagonal, (m, r (r - 1) / 2)."""
    cdef Py_ssize_t m = values.shape[0], q, i, j, at
    d_array = np.empty((m, r, r))
    cdef double[:, :, ::1] d = d_array
    with nogil:
        for q in range(m):
            at = 0
            for i in range(r):
                d[q, i, i] = 0.0
                for j in range(i + 1, r):
                    d[q, i, j] = values[q, at]
                    d[q, j, i] = -values[q, at]
                    at += 1
    return d_array


def lost_weight(const double[:, :, ::1] d, const int64_t[:, ::1] order):
    """Return the weight of the preferences that each order contradicts, shape (m,).

    The weights are added place by place, which makes the rounding independent of the batch.
    """
    cdef Py_ssize_t m = d.shape[0], r = d.shape[1], q, a, b
    lost_array = np.empty(m)
    cdef double[::1] lost = lost_array
    cdef double total, weight
    with nogil:
        for q in range(m):
            total = 0.0
            for a in range(1, r):
                for b in range(a):
                    weight = d[q, order[q, a], order[q, b]]
                    total += weight if weight > 0.0 else 0.0
            lost[q] = total
    return lost_array


# ------------------------------------------------------------------ graphs


def components(const double[:, :, ::1] d):
    """Number the strongly connected components in topological order.

    Among the components that can come next, the one with the smallest document comes first. Takes
    O(r^2) per query, plus O(r) per component. Returns the component of each document, (m, r), and
    the number of components, (m,).
    """
    cdef Py_ssize_t m = d.shape[0], r = d.shape[1], q
    label_array = np.empty((m, r), dtype=np.int64)
    count_array = np.empty(m, dtype=np.int64)
    cdef int64_t[:, ::1] label = label_array
    cdef int64_t[::1] count = count_array
    cdef int64_t *work = <int64_t *> malloc((8 * r + 1) * sizeof(int64_t))
    if work == NULL:
        raise MemoryError
    try:
        with nogil:
            for q in range(m):
                count[q] = _components(&d[q, 0, 0], r, &label[q, 0], work)
    finally:
        free(work)
    return label_array, count_array


cdef int64_t _components(
    const double *d, Py_ssize_t r, int64_t *label, int64_t *work
) noexcept nogil:
    """Tarjan's algorithm (1972) without recursion, on a dense matrix; return how many it finds."""
    # index[v]: when the search reached v, -1 before; low[v]: the smallest index of a document on
    # `stack` that is known to be reachable from v. `path` is the way from the root to the current
    # document, and child[v] is the next document to look at from v.
    cdef int64_t *index = work
    cdef int64_t *low = work + r
    cdef int64_t *stack = work + 2 * r
    cdef int64_t *path = work + 3 * r
    cdef int64_t *child = work + 4 * r
    cdef int64_t *incoming = work + 5 * r
    cdef int64_t *number = work + 6 * r
    cdef int64_t *smallest = work + 7 * r
    cdef Py_ssize_t root, v, w, top = 0, depth, c, best
    cdef int64_t clock = 0, found = 0, placed
    for v in range(r):
        index[v] = -1
        label[v] = -1
    for root in range(r):
        if index[root] >= 0:
            continue
        depth = 0
        path[0] = root
        child[root] = 0
        index[root] = low[root] = clock
        clock += 1
        stack[top] = root
        top += 1
        while depth >= 0:
            v = path[depth]
            # Look for an edge to a document that has not been reached. An edge to a document on
            # the stack (reached, but without a component) lowers low[v].
            w = child[v]
            while w < r:
                if d[v * r + w] > 0.0:
                    if index[w] < 0:
                        break
                    if label[w] < 0 and index[w] < low[v]:
                        low[v] = index[w]
                w += 1
            if w < r:  # go down to w
                child[v] = w + 1
                depth += 1
                path[depth] = w
                child[w] = 0
                index[w] = low[w] = clock
                clock += 1
                stack[top] = w
                top += 1
                continue
            # v is done. If it reaches nothing earlier, v and everything above it on the stack are a
            # component.
            if low[v] == index[v]:
                while True:
                    top -= 1
                    w = stack[top]
                    label[w] = found
                    if w == v:
                        break
                found += 1
            depth -= 1
            if depth >= 0 and low[v] < low[path[depth]]:
                low[path[depth]] = low[v]
    # Renumber the components. incoming[c] counts the edges into c from components without a number.
    # Among the components without such edges, the one with the smallest document is next.
    for c in range(found):
        incoming[c] = 0
        number[c] = -1
        smallest[c] = r
    for v in range(r):
        if v < smallest[label[v]]:
            smallest[label[v]] = v
        for w in range(r):
            if d[v * r + w] > 0.0 and label[v] != label[w]:
                incoming[label[w]] += 1
    for placed in range(found):
        best = -1
        for c in range(found):
            if number[c] < 0 and incoming[c] == 0 and (best < 0 or smallest[c] < smallest[best]):
                best = c
        number[best] = placed
        for v in range(r):
            if label[v] == best:
                for w in range(r):
                    if d[v * r + w] > 0.0 and label[w] != best:
                        incoming[label[w]] -= 1
    for v in range(r):
        label[v] = number[label[v]]
    return found


def greedy_dag(const double[:, :, ::1] d, bint ranked_pairs, time_is_up=None):
    """Algorithm 1 of Ramaswamy et al. (2013): delete the lightest edge until no cycle is left.

    Returns the orders (m, r) and the weight of the heaviest edge that was deleted, (m,), 0 if the
    graph has no cycle. The steps, for each query:

    1. Sort topologically, O(r^2). If the graph has no cycle, nothing is deleted, and the result is
       this lexicographically smallest order.
    2. Find the weight t of the heaviest deleted edge by elimination (`eliminate`). The edges
       heavier than t have no cycle.
    3. Compute the transitive closure of the edges heavier than t, as bits.
    4. Insert further edges from the heaviest to the lightest, equal edges in reverse document
       order. The first edge that would close a cycle is the last one that Algorithm 1 deletes.
       Without `ranked_pairs`, stop there. With `ranked_pairs`, skip every edge that would close a
       cycle, and continue to the lightest edge.
    5. Return the lexicographically smallest topological order of the closure.

    Takes O(r^2) time typically and O(r^3) at worst; ranked pairs take O(r^3 / 64) more at worst.
    Raises TimeoutError as soon as ``time_is_up()`` is true.
    """
    cdef Py_ssize_t m = d.shape[0], r = d.shape[1], q, words = (r + 63) // 64
    order_array = np.empty((m, r), dtype=np.int64)
    threshold_array = np.empty(m)
    cdef int64_t[:, ::1] order = order_array
    cdef double[::1] threshold = threshold_array
    cdef WorkCounter counter = new_counter(time_is_up)
    cdef int stopped = 0
    cdef Py_ssize_t n_pairs = r * (r - 1) // 2
    cdef uint64_t *bits = <uint64_t *> malloc(2 * r * words * sizeof(uint64_t))
    cdef double *permuted = <double *> malloc(r * r * sizeof(double))
    cdef double *weight = <double *> malloc((2 * n_pairs + r) * sizeof(double))
    cdef int64_t *edges = <int64_t *> malloc((4 * n_pairs + 3 * r + 5) * sizeof(int64_t))
    if bits == NULL or permuted == NULL or weight == NULL or edges == NULL:
        free(bits)
        free(permuted)
        free(weight)
        free(edges)
        raise MemoryError
    try:
        with nogil:
            for q in range(m):
                threshold[q] = 0.0
                if sort_topologically(&d[q, 0, 0], r, &order[q, 0], edges) == r:
                    continue
                stopped = _greedy_dag(
                    &d[q, 0, 0], r, words, ranked_pairs, &order[q, 0], &threshold[q], bits,
                    permuted, weight, edges, &counter,
                )
                if stopped:
                    break
    finally:
        free(bits)
        free(permuted)
        free(weight)
        free(edges)
    if stopped:
        raise TimeoutError("The time limit has passed.")
    return order_array, threshold_array


cdef int _greedy_dag(
    const double *d, Py_ssize_t r, Py_ssize_t words, bint ranked_pairs, int64_t *order,
    double *heaviest, uint64_t *bits, double *permuted, double *weight, int64_t *edges,
    WorkCounter *counter,
) except -1 nogil:
    """Steps 2 to 5 of `greedy_dag` for a cyclic graph; return 1 if the time is up.

    Writes `order` and `heaviest`, the weight of the heaviest edge that was deleted.
    """
    # From step 3 on, documents are named by their places in the order of the elimination. All edges
    # heavier than the threshold then lead to larger numbers. `smallest_topological_order` converts
    # back to documents.
    cdef uint64_t *below = bits
    cdef uint64_t *above = bits + r * words
    cdef Py_ssize_t a, b, word, steps
    cdef uint64_t mask
    cdef const double *row
    cdef double threshold
    if eliminate(d, r, order, heaviest, weight, edges, counter):
        return 1
    threshold = heaviest[0]
    memset(bits, 0, 2 * r * words * sizeof(uint64_t))
    for a in range(r):
        row = d + order[a] * r
        for b in range(r):
            permuted[a * r + b] = row[order[b]]
    # The closure, from the last place to the first: below[b] is complete for every b > a.
    # Therefore below[a] is the union of {b} and below[b] over the heavy edges a -> b. Near places
    # come first, because their sets already contain most of the farther places.
    for a in range(r - 1, -1, -1):
        row = permuted + a * r
        steps = r
        for b in range(a + 1, r):
            if row[b] > threshold and not contains(below, words, a, b):
                add_all(below + a * words, below + b * words, words, b)
                steps += words
        # `above` is the transpose of `below`.
        for word in range(words):
            mask = below[a * words + word]
            while mask:
                b = word * 64 + lowest_bit(mask)
                mask &= mask - 1
                above[b * words + (a >> 6)] |= (<uint64_t> 1) << (a & 63)
        if count_steps(counter, steps):
            return 1
    if ranked_pairs:
        if insert_light_edges(permuted, r, words, threshold, order, bits, weight, edges, counter):
            return 1
    elif insert_equal_edges(d, r, words, threshold, order, bits, edges, counter):
        return 1
    smallest_topological_order(bits, r, words, order, edges)
    return 0


def binary_insertion(const double[:, :, ::1] d):
    """Sort by binary insertion, which compares two documents at a time.

    Of two neighbours in the result, the second is never preferred to the first, cycles or not.
    """
    cdef Py_ssize_t m = d.shape[0], r = d.shape[1], q, v, low, high, middle
    order_array = np.empty((m, r), dtype=np.int64)
    cdef int64_t[:, ::1] order = order_array
    with nogil:
        for q in range(m):
            for v in range(r):
                # Find a place for v among the documents 0, ..., v - 1 that are sorted already.
                low = 0
                high = v
                while low < high:
                    middle = (low + high) // 2
                    if d[q, v, order[q, middle]] > 0.0:
                        high = middle
                    else:
                        low = middle + 1
                memmove(&order[q, 0] + low + 1, &order[q, 0] + low, (v - low) * sizeof(int64_t))
                order[q, low] = v
    return order_array


def triangle_bound(const double[:, ::1] d, time_is_up=None):
    """Return a lower bound on the weight that any order of one query contradicts, in O(r^3).

    Every order contradicts at least one edge of a cycle of three edges. If each edge of a cycle has
    at least weight w left, add w to the bound and subtract it from all three edges. If
    ``time_is_up()`` becomes true, return the bound from the cycles seen so far.
    """
    cdef Py_ssize_t r = d.shape[0], i, j, k, first, second
    left_array = np.maximum(d, 0.0)
    cdef double[:, ::1] left = left_array
    cdef double bound = 0.0, edge, used, take, spare
    cdef WorkCounter counter = new_counter(time_is_up)
    with nogil:
        for i in range(r):
            for j in range(i + 1, r):
                if count_steps(&counter, r - j):
                    break
                # The edge between i and j leads from `first` to `second`. Look for a third document
                # k > j that closes the cycle first -> second -> k -> first.
                first = i if left[i, j] > 0.0 else j
                second = i + j - first
                edge = left[first, second]
                if edge <= 0.0:
                    continue
                used = 0.0
                for k in range(j + 1, r):
                    spare = left[second, k]
                    if left[k, first] < spare:
                        spare = left[k, first]
                    if spare <= 0.0:
                        continue
                    # take = min(weight left on the edge, on second -> k, and on k -> first)
                    take = edge - used
                    if take <= 0.0:
                        break
                    used += spare
                    if spare < take:
                        take = spare
                    left[second, k] -= take
                    left[k, first] -= take
                    bound += take
                left[first, second] = edge - used if used < edge else 0.0
            else:
                continue
            break
    return bound
