# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Inner loops of the decoders. `_kernels_numpy.py` has the same functions with the same results.

The same to the last bit: sums run in one fixed order in both, and the build forbids the compiler to
contract a multiplication and an addition. d is the (r, r) matrix of differences u_ij - u_ji, u the
symmetric matrix of average precision; a leading axis m is a batch of queries of equal size.

What takes more than a pass over a matrix looks up about once a millisecond: it lets Python handle
Ctrl-C, and asks `late`, if that is given, whether time is up.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, fabs, isfinite
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove, memset

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static int lowest_bit(unsigned long long x) {
        unsigned long i; _BitScanForward64(&i, x); return (int) i;
    }
    static int count_bits(unsigned long long x) {
        int n = 0; while (x) { x &= x - 1; n++; } return n;
    }
    #else
    static int lowest_bit(unsigned long long x) { return __builtin_ctzll(x); }
    static int count_bits(unsigned long long x) { return __builtin_popcountll(x); }
    #endif
    """
    int lowest_bit(uint64_t x) nogil
    int count_bits(uint64_t x) nogil


# ------------------------------------------------------------------ signals and the clock

cdef enum:
    STEPS_A_LOOK = 1 << 18  # elementary steps, of a nanosecond or so
    REFRESHES = 8  # times r^2: steps of the first kind of elimination, before the second takes over

cdef struct Pace:
    Py_ssize_t steps  # since the last look
    void *late  # a Python callable of the caller, or NULL


cdef Pace _pace(object late) noexcept:
    cdef Pace pace
    pace.steps = 0
    pace.late = NULL if late is None else <void *> late
    return pace


cdef int _look(Pace *pace) except -1 nogil:
    cdef int is_late = 0
    pace.steps = 0
    with gil:
        PyErr_CheckSignals()
        if pace.late != NULL:
            is_late = bool((<object> pace.late)())
    return is_late


cdef inline int _went(Pace *pace, Py_ssize_t steps) except -1 nogil:
    """Count steps; raise on Ctrl-C, return 1 if time is up."""
    pace.steps += steps
    return 0 if pace.steps < STEPS_A_LOOK else _look(pace)


# ------------------------------------------------------------------ matrices


def differences(const double[:, :, ::1] u):
    """d = u - u', and sum over i < j of min(u_ij, u_ji); one pass."""
    cdef Py_ssize_t m = u.shape[0], r = u.shape[1], q, i, j
    d_array = np.empty((m, r, r))
    floor_array = np.empty(m)
    cdef double[:, :, ::1] d = d_array
    cdef double[::1] floor = floor_array
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
            floor[q] = low
    return d_array, floor_array


def antisymmetric(const double[:, ::1] values, Py_ssize_t r):
    """(m, r, r) differences from their entries above the diagonal, (m, r (r - 1) / 2)."""
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
    """Weight of the preferences that each order contradicts, summed in the order of the places."""
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
    """Strongly connected components, numbered in topological order.

    Among components that may come next, the one with the smallest document comes first. Tarjan's
    algorithm on the dense matrix: O(r^2) a query. Returns labels (m, r) and counts (m,).
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


cdef int64_t _components(const double *d, Py_ssize_t r, int64_t *label, int64_t *work) noexcept nogil:
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
            w = child[v]
            while w < r:
                if d[v * r + w] > 0.0:
                    if index[w] < 0:
                        break
                    if label[w] < 0 and index[w] < low[v]:
                        low[v] = index[w]
                w += 1
            if w < r:
                child[v] = w + 1
                depth += 1
                path[depth] = w
                child[w] = 0
                index[w] = low[w] = clock
                clock += 1
                stack[top] = w
                top += 1
                continue
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
    # renumber: repeatedly the free component with the smallest document
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


def greedy_dag(const double[:, :, ::1] d, bint ranked_pairs, late=None):
    """P1's Algorithm 1: order (m, r), and the weight of the heaviest edge it deletes (m,).

    Of an acyclic graph it deletes nothing: the topological sort, O(r^2), is the answer. Of another,
    elimination finds the weight t without sorting: remove the document whose heaviest edge to
    another that is left is lightest; t is the heaviest of these edges. The edges above t have no
    cycle: their closure is made at once, as bits. Then edges go in one by one, from the heaviest
    to the lightest, equal ones in reverse document order. The first that would close a cycle is
    the last that Algorithm 1 deletes: there the insertion ends, or, for `ranked_pairs`, skips it
    and goes on. The order is the lexicographically smallest topological one.
    O(r^2) typically, O(r^3) at worst; ranked pairs O(r^3 / 64) more at worst. Raises TimeoutError
    as soon as `late()` is true.
    """
    cdef Py_ssize_t m = d.shape[0], r = d.shape[1], q, words = (r + 63) // 64
    order_array = np.empty((m, r), dtype=np.int64)
    threshold_array = np.empty(m)
    cdef int64_t[:, ::1] order = order_array
    cdef double[::1] threshold = threshold_array
    cdef Pace pace = _pace(late)
    cdef int is_late = 0
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
                if _sort_topologically(&d[q, 0, 0], r, &order[q, 0], edges) == r:
                    continue
                is_late = _greedy_dag(
                    &d[q, 0, 0], r, words, ranked_pairs, &order[q, 0], &threshold[q], bits,
                    permuted, weight, edges, &pace,
                )
                if is_late:
                    break
    finally:
        free(bits)
        free(permuted)
        free(weight)
        free(edges)
    if is_late:
        raise TimeoutError("time is up")
    return order_array, threshold_array


cdef Py_ssize_t _sort_topologically(
    const double *d, Py_ssize_t r, int64_t *order, int64_t *waiting
) noexcept nogil:
    """How many documents, r if acyclic, the smallest topological order places; two passes."""
    # waiting[w]: documents preferred to w that are not placed yet; -1 of a placed one
    cdef Py_ssize_t k, v, w
    cdef const double *row
    memset(waiting, 0, r * sizeof(int64_t))
    for v in range(r):
        row = d + v * r
        for w in range(r):
            waiting[w] += row[w] > 0.0
    for k in range(r):
        v = 0
        while v < r and waiting[v] != 0:
            v += 1
        if v == r:
            return k
        order[k] = v
        waiting[v] = -1
        row = d + v * r
        for w in range(r):
            waiting[w] -= row[w] > 0.0
    return r


cdef int _greedy_dag(
    const double *d, Py_ssize_t r, Py_ssize_t words, bint ranked_pairs, int64_t *order,
    double *heaviest, uint64_t *bits, double *permuted, double *weight, int64_t *edges, Pace *pace,
) except -1 nogil:
    """Order and `heaviest` deleted edge of a cyclic graph; returns whether time was up before."""
    # places in the order of the elimination stand for documents until the last line
    cdef uint64_t *below = bits
    cdef uint64_t *above = bits + r * words
    cdef Py_ssize_t a, b, word, steps
    cdef uint64_t mask
    cdef const double *row
    cdef double threshold
    if _eliminate(d, r, order, heaviest, weight, edges, pace):
        return 1
    threshold = heaviest[0]
    memset(bits, 0, 2 * r * words * sizeof(uint64_t))
    for a in range(r):
        row = d + order[a] * r
        for b in range(r):
            permuted[a * r + b] = row[order[b]]
    for a in range(r - 1, -1, -1):
        row = permuted + a * r
        steps = r
        for b in range(a + 1, r):  # nearest first: most of the others are implied by then
            if row[b] > threshold and not _reaches(below, words, a, b):
                _union(below + a * words, below + b * words, words, b)
                steps += words
        for word in range(words):
            mask = below[a * words + word]
            while mask:
                b = word * 64 + lowest_bit(mask)
                mask &= mask - 1
                above[b * words + (a >> 6)] |= (<uint64_t> 1) << (a & 63)
        if _went(pace, steps):
            return 1
    if ranked_pairs:
        if _insert_light(permuted, r, words, threshold, order, bits, weight, edges, pace):
            return 1
    elif _insert_equal(d, r, words, threshold, order, bits, edges, pace):
        return 1
    _first_topological(bits, r, words, order, edges)
    return 0


cdef int _eliminate(
    const double *d, Py_ssize_t r, int64_t *order, double *threshold, double *heaviest,
    int64_t *work, Pace *pace,
) except -1 nogil:
    """Order in which every edge above the `threshold` points down; whether time was up."""
    # order[:n] are the documents that are left, heaviest[a] the heaviest edge from order[a] to them
    cdef Py_ssize_t n = r, a, least, steps, refreshed = 0
    cdef int64_t v
    cdef double t = 0.0, weight, lightest
    cdef const double *row
    for a in range(r):
        order[a] = a
    for a in range(r):
        heaviest[a] = _most(d + a * r, order, r)
    while n and refreshed <= REFRESHES * r * r:
        least = 0
        lightest = heaviest[0]
        for a in range(1, n):
            if heaviest[a] < lightest:
                lightest = heaviest[a]
                least = a
        if lightest > t:
            t = lightest
        n -= 1
        v = order[least]
        order[least] = order[n]
        heaviest[least] = heaviest[n]
        order[n] = v
        row = d + v * r
        steps = n
        for a in range(n):
            weight = -row[order[a]]  # of the edge to v
            if weight == heaviest[a] and weight > 0.0:
                heaviest[a] = _most(d + order[a] * r, order, n)
                steps += n
        refreshed += steps
        if _went(pace, steps):
            return 1
    threshold[0] = t
    return _eliminate_by_witness(d, r, n, order, threshold, work, pace) if n else 0


cdef inline double _most(const double *row, const int64_t *left, Py_ssize_t n) noexcept nogil:
    """The heaviest edge to the documents that are left; four chains, to overlap."""
    cdef double a = 0.0, b = 0.0, c = 0.0, e = 0.0, x
    cdef Py_ssize_t k = 0
    while k + 4 <= n:
        x = row[left[k]]
        a = x if x > a else a
        x = row[left[k + 1]]
        b = x if x > b else b
        x = row[left[k + 2]]
        c = x if x > c else c
        x = row[left[k + 3]]
        e = x if x > e else e
        k += 4
    while k < n:
        x = row[left[k]]
        a = x if x > a else a
        k += 1
    a = b if b > a else a
    c = e if e > c else c
    return c if c > a else a


cdef int _eliminate_by_witness(
    const double *d, Py_ssize_t r, Py_ssize_t n, int64_t *order, double *threshold, int64_t *work,
    Pace *pace,
) except -1 nogil:
    """Go on with the n documents that are left, where many have their heaviest edges to the same.

    A document whose edges to those that are left weigh at most t goes last. Where there is none, t
    rises to the least of the heaviest edges. Any document may go that can, so each needs but one
    witness, an edge above t, that it cannot. As t rises and documents go, what failed as a witness
    never is one again: all searches for witnesses take O(r^2) together.
    """
    cdef int64_t *witness = work
    cdef int64_t *free_now = work + r
    cdef int64_t *is_left = work + 2 * r
    cdef Py_ssize_t n_free = 0, a, w, first, steps
    cdef int64_t v, gone
    cdef double t = threshold[0], most, least
    cdef const double *row
    memset(is_left, 0, r * sizeof(int64_t))
    for a in range(n):
        is_left[order[a]] = 1
        witness[order[a]] = 0
    gone = -1  # at first every document looks for a witness
    while n:
        steps = n
        for a in range(n):
            v = order[a]
            w = witness[v]
            if gone < 0 or w == gone:
                first = w
                row = d + v * r
                while w < r and not (row[w] > t and is_left[w]):
                    w += 1
                witness[v] = w
                steps += w - first
                if w == r:
                    free_now[n_free] = v
                    n_free += 1
        if _went(pace, steps):
            return 1
        if n_free:
            n_free -= 1
            gone = free_now[n_free]
            is_left[gone] = 0
            # its place in the list: filled with the last of it
            a = 0
            while order[a] != gone:
                a += 1
            n -= 1
            order[a] = order[n]
            order[n] = gone
            continue
        least = INFINITY
        for a in range(n):
            row = d + order[a] * r
            most = 0.0
            w = witness[order[a]]  # what comes before weighs t at most
            first = w
            while w < r and most < least:
                if row[w] > most and is_left[w]:
                    most = row[w]
                w += 1
            if most < least:
                least = most
            if _went(pace, w - first):
                return 1
        t = least
        gone = -1
    threshold[0] = t
    return 0


cdef inline bint _reaches(
    const uint64_t *below, Py_ssize_t words, Py_ssize_t i, Py_ssize_t j
) noexcept nogil:
    return (below[i * words + (j >> 6)] >> (j & 63)) & 1


cdef inline void _union(
    uint64_t *into, const uint64_t *other, Py_ssize_t words, Py_ssize_t one
) noexcept nogil:
    cdef Py_ssize_t word
    for word in range(words):
        into[word] |= other[word]
    into[one >> 6] |= (<uint64_t> 1) << (one & 63)


cdef Py_ssize_t _insert(
    uint64_t *below, uint64_t *above, Py_ssize_t words, Py_ssize_t i, Py_ssize_t j
) noexcept nogil:
    """Close the relation under a new edge i -> j; the steps that took."""
    cdef Py_ssize_t word, a, steps = 3 * words
    cdef uint64_t higher, lower
    for word in range(words):
        # documents above j know all that is below j already, and so for i
        higher = above[i * words + word] & ~above[j * words + word]
        lower = below[j * words + word] & ~below[i * words + word]
        while higher:
            a = word * 64 + lowest_bit(higher)
            higher &= higher - 1
            _union(below + a * words, below + j * words, words, j)
            steps += words
        while lower:
            a = word * 64 + lowest_bit(lower)
            lower &= lower - 1
            _union(above + a * words, above + i * words, words, i)
            steps += words
    _union(below + i * words, below + j * words, words, j)
    _union(above + j * words, above + i * words, words, i)
    return steps


cdef int _insert_equal(
    const double *d, Py_ssize_t r, Py_ssize_t words, double threshold, const int64_t *order,
    uint64_t *bits, int64_t *place, Pace *pace,
) except -1 nogil:
    """Insert the edges of the threshold's weight, up to the first that closes a cycle."""
    cdef Py_ssize_t k, i, j
    for k in range(r):
        place[order[k]] = k
    for k in range(r * r - 1, -1, -1):
        if d[k] == threshold:
            i = place[k // r]
            j = place[k % r]
            if _reaches(bits, words, j, i):
                return 0
            if not _reaches(bits, words, i, j):
                if _went(pace, _insert(bits, bits + r * words, words, i, j)):
                    return 1
    return 0


cdef int _insert_light(
    const double *permuted, Py_ssize_t r, Py_ssize_t words, double heaviest, const int64_t *order,
    uint64_t *bits, double *weight, int64_t *edges, Pace *pace,
) except -1 nogil:
    """Insert every edge that is not above the threshold and closes no cycle."""
    cdef Py_ssize_t n_pairs = r * (r - 1) // 2
    cdef double *scratch = weight + n_pairs
    cdef int64_t *bucketed = edges + n_pairs
    cdef int64_t *bucket = edges + 2 * n_pairs
    cdef int64_t *spare = edges + 3 * n_pairs
    cdef int64_t *end = edges + 4 * n_pairs
    cdef uint64_t *above = bits + r * words
    cdef Py_ssize_t i, j, k, b, word, n = 0, n_buckets, start, stop, left
    cdef uint64_t mask
    cdef int64_t turned
    cdef double w, lightest = INFINITY, scale
    for i in range(r):
        for word in range(i >> 6, words):
            mask = ~(bits[i * words + word] | above[i * words + word])
            if word == i >> 6:
                mask &= ~(<uint64_t> 1) << (i & 63)  # j > i
            if word == words - 1 and r & 63:
                mask &= ((<uint64_t> 1) << (r & 63)) - 1
            while mask:
                j = word * 64 + lowest_bit(mask)
                mask &= mask - 1
                # without a branch: half of these tests go either way
                w = permuted[i * r + j]
                turned = (i ^ j) & -(<int64_t> (w < 0.0))
                w = fabs(w)
                edges[n] = ((i ^ turned) << 32) | (j ^ turned)
                scratch[n] = w
                n += (w > 0.0) & (w <= heaviest)
    for k in range(n):
        if scratch[k] < lightest:
            lightest = scratch[k]
    # buckets of weights, heaviest first: most light edges are decided before they need sorting
    n_buckets = min(n // 16 + 1, 2 * r)
    scale = n_buckets / (heaviest - lightest) if heaviest > lightest else 0.0
    if not isfinite(scale):
        scale = 0.0
    memset(end, 0, (n_buckets + 1) * sizeof(int64_t))
    for k in range(n):
        b = <Py_ssize_t> ((heaviest - scratch[k]) * scale)
        if b >= n_buckets:
            b = n_buckets - 1
        bucket[k] = b
        end[b + 1] += 1
    for b in range(n_buckets):
        end[b + 1] += end[b]
    for k in range(n):
        b = bucket[k]
        weight[end[b]] = scratch[k]
        bucketed[end[b]] = edges[k]
        end[b] += 1
    start = 0
    for b in range(n_buckets):
        stop = end[b]  # by now one past the last of bucket b
        left = start
        for k in range(start, stop):
            i = bucketed[k] >> 32
            j = <uint32_t> bucketed[k]
            weight[left] = weight[k]
            bucketed[left] = bucketed[k]
            left += 1 - (_reaches(bits, words, i, j) | _reaches(bits, words, j, i))
        if _sort_edges(
            weight + start, bucketed + start, scratch, spare, left - start, order, pace
        ):
            return 1
        for k in range(start, left):
            i = bucketed[k] >> 32
            j = <uint32_t> bucketed[k]
            if not _reaches(bits, words, i, j) and not _reaches(bits, words, j, i):
                if _went(pace, _insert(bits, above, words, i, j)):
                    return 1
        start = stop
    return 0


cdef inline bint _goes_first(
    double wa, int64_t ea, double wb, int64_t eb, const int64_t *order
) noexcept nogil:
    """The heavier edge; of equal ones the later in document order."""
    if wa != wb:
        return wa > wb
    if ea >> 32 != eb >> 32:
        return order[ea >> 32] > order[eb >> 32]
    return order[<uint32_t> ea] > order[<uint32_t> eb]


cdef int _sort_edges(
    double *w, int64_t *e, double *w2, int64_t *e2, Py_ssize_t n, const int64_t *order, Pace *pace
) except -1 nogil:
    """Merge sort into insertion order, insertion sort for the short."""
    cdef Py_ssize_t half, i, j, k
    cdef double wx
    cdef int64_t ex
    if n <= 24:
        for i in range(1, n):
            wx = w[i]
            ex = e[i]
            j = i
            while j > 0 and _goes_first(wx, ex, w[j - 1], e[j - 1], order):
                w[j] = w[j - 1]
                e[j] = e[j - 1]
                j -= 1
            w[j] = wx
            e[j] = ex
        return 0
    half = n // 2
    if _sort_edges(w, e, w2, e2, half, order, pace):
        return 1
    if _sort_edges(w + half, e + half, w2, e2, n - half, order, pace):
        return 1
    memcpy(w2, w, half * sizeof(double))
    memcpy(e2, e, half * sizeof(int64_t))
    i = 0
    j = half
    k = 0
    while i < half:
        if j < n and _goes_first(w[j], e[j], w2[i], e2[i], order):
            w[k] = w[j]
            e[k] = e[j]
            j += 1
        else:
            w[k] = w2[i]
            e[k] = e2[i]
            i += 1
        k += 1
    return _went(pace, 4 * n)


cdef void _first_topological(
    const uint64_t *bits, Py_ssize_t r, Py_ssize_t words, int64_t *order, int64_t *work
) noexcept nogil:
    """The lexicographically smallest topological order of a closure of places in `order`."""
    cdef const uint64_t *above = bits + r * words
    cdef int64_t *waiting = work
    cdef int64_t *place = work + r
    cdef int64_t *listed = work + 2 * r
    cdef Py_ssize_t k, v, word
    cdef int64_t decided = 0
    cdef uint64_t mask
    for k in range(r):
        waiting[k] = 0
        for word in range(words):
            mask = above[k * words + word]
            waiting[k] += count_bits(mask)
        decided += waiting[k]
    if 2 * decided == r * (r - 1):  # one order is left
        for k in range(r):
            listed[waiting[k]] = order[k]
        memcpy(order, listed, r * sizeof(int64_t))
        return
    for k in range(r):
        place[order[k]] = k
    for k in range(r):
        v = 0
        while waiting[place[v]] != 0:
            v += 1
        listed[k] = v
        waiting[place[v]] = -1
        for word in range(words):
            mask = bits[place[v] * words + word]
            while mask:
                waiting[word * 64 + lowest_bit(mask)] -= 1
                mask &= mask - 1
    memcpy(order, listed, r * sizeof(int64_t))


def binary_insertion(const double[:, :, ::1] d):
    """Sort by comparing two documents at a time: no neighbours in the result are out of order."""
    cdef Py_ssize_t m = d.shape[0], r = d.shape[1], q, v, low, high, middle
    order_array = np.empty((m, r), dtype=np.int64)
    cdef int64_t[:, ::1] order = order_array
    with nogil:
        for q in range(m):
            for v in range(r):
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


def triangle_bound(const double[:, ::1] d, late=None):
    """A lower bound of the lost weight: a packing of 3-cycles, O(r^3), so far when late."""
    cdef Py_ssize_t r = d.shape[0], i, j, k, first, second
    left_array = np.maximum(d, 0.0)
    cdef double[:, ::1] left = left_array
    cdef double bound = 0.0, edge, used, take, spare
    cdef Pace pace = _pace(late)
    with nogil:
        for i in range(r):
            for j in range(i + 1, r):
                if _went(&pace, r - j):
                    break
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


# ------------------------------------------------------------------ subset dynamic programming


def subset_dp(
    const double[:, ::1] cost, const double[::1] own, const double[::1] scale, double limit,
    bint of_rest,
):
    """Cheapest order when placing v after the set S costs scale[|S|] (own_v + sum_S cost[v, .]).

    With `of_rest` the sum runs over the documents that are left instead; cost[v, v] is then 0.
    Sets whose cost exceeds `limit` are given up. Of equal orders the one that places the largest
    document last, and so on backwards. O(2^r r) time at most, 2^r floats. Returns order, value.
    """
    cdef Py_ssize_t r = cost.shape[0], low_bits = r // 2, high_bits = r - low_bits, v, k, size
    cdef uint64_t full = (<uint64_t> 1) << r, mask = ((<uint64_t> 1) << low_bits) - 1
    cdef uint64_t s, rest, summed, turn = full - 1 if of_rest else 0
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
    cdef Pace pace = _pace(None)
    best[0] = 0.0
    with nogil:
        for s in range(full - 1):
            if s & 4095 == 4095:
                _went(&pace, 4096 * r)
            at = best[s]
            if at > limit or at == INFINITY:
                continue
            size = count_bits(s)
            factor = scale[size]
            summed = s ^ turn
            of_low = &low[summed & mask, 0]
            of_high = &high[summed >> low_bits, 0]
            rest = ~s & (full - 1)
            while rest:
                v = lowest_bit(rest)
                value = at + factor * (of_low[v] + of_high[v])
                if value < best[s | (rest & (~rest + 1))]:
                    best[s | (rest & (~rest + 1))] = value
                rest &= rest - 1
    if best[full - 1] == INFINITY:
        raise ValueError("no order costs at most limit")
    s = full - 1
    for k in range(r - 1, -1, -1):
        for v in range(r - 1, -1, -1):
            if (s >> v) & 1:
                rest = s ^ ((<uint64_t> 1) << v)
                summed = rest ^ turn
                value = low[summed & mask, v] + high[summed >> low_bits, v]
                if best[rest] + scale[k] * value == best[s]:
                    order[k] = v
                    s = rest
                    break
    return order_array, best[full - 1]


def _sums(const double[:, ::1] cost, const double[::1] own, Py_ssize_t first, Py_ssize_t n_bits):
    """own_v + sum over the documents of a set, for the sets of n_bits documents from `first`."""
    table = np.empty((1 << n_bits, cost.shape[0]))
    table[0] = own
    for bit in range(n_bits):
        column = np.asarray(cost)[:, first + bit]
        np.add(table[: 1 << bit], column, out=table[1 << bit : 2 << bit])
    return table


# ------------------------------------------------------------------ insertion local search


def preference_search(
    const double[:, ::1] d, const int64_t[::1] start, const double[:, ::1] kicks, double tolerance,
    Py_ssize_t max_sweeps, late=None,
):
    """Insertion local search from `start`, then one more after each kick that does no harm.

    A row of `kicks` holds moves (from, to) as fractions of r. Returns order and sweeps made: the
    best order so far as soon as `late()` is true.
    """
    cdef Py_ssize_t r = d.shape[0], n_perturbations = kicks.shape[0], k, c, a, b
    order_array = np.array(start, dtype=np.int64)
    kept_array = order_array.copy()
    cdef int64_t[::1] order = order_array
    cdef int64_t[::1] kept = kept_array
    cdef int64_t sweeps = 0
    cdef double change = 0.0
    cdef Pace pace = _pace(late)
    cdef int is_late
    with nogil:
        is_late = _preference_descent(
            &d[0, 0], &order[0], r, tolerance, max_sweeps, &sweeps, &change, &pace
        )
        memcpy(&kept[0], &order[0], r * sizeof(int64_t))
        for k in range(n_perturbations):
            if is_late:
                break
            change = 0.0
            for c in range(0, kicks.shape[1], 2):
                a = <Py_ssize_t> (kicks[k, c] * r)
                b = <Py_ssize_t> (kicks[k, c + 1] * r)
                change += _preference_move(&d[0, 0], &order[0], r, a, b)
            is_late = _preference_descent(
                &d[0, 0], &order[0], r, tolerance, max_sweeps, &sweeps, &change, &pace
            )
            if change <= tolerance:
                memcpy(&kept[0], &order[0], r * sizeof(int64_t))
            else:
                memcpy(&order[0], &kept[0], r * sizeof(int64_t))
    return kept_array, sweeps


cdef double _preference_move(
    const double *d, int64_t *order, Py_ssize_t r, Py_ssize_t a, Py_ssize_t b
) noexcept nogil:
    """Move the document at place a to place b; the change of the lost weight."""
    cdef int64_t v = order[a]
    cdef double change = 0.0
    cdef Py_ssize_t p
    if b < a:
        for p in range(a - 1, b - 1, -1):
            change -= d[v * r + order[p]]
        memmove(order + b + 1, order + b, (a - b) * sizeof(int64_t))
    else:
        for p in range(a + 1, b + 1):
            change += d[v * r + order[p]]
        memmove(order + a, order + a + 1, (b - a) * sizeof(int64_t))
    order[b] = v
    return change


cdef int _preference_descent(
    const double *d, int64_t *order, Py_ssize_t r, double tolerance, Py_ssize_t max_sweeps,
    int64_t *sweeps, double *total, Pace *pace,
) except -1 nogil:
    """Each document in turn to its best place, until none has a better one or time is up."""
    cdef Py_ssize_t v, p, b, place, sweep, still = 0
    cdef double change, least, lowered = 0.0
    cdef int is_late = 0
    cdef const double *row
    for sweep in range(max_sweeps):
        sweeps[0] += 1
        for v in range(r):
            row = d + v * r
            p = 0
            while order[p] != v:
                p += 1
            least = 0.0
            place = p
            change = 0.0
            for b in range(p - 1, -1, -1):
                change -= row[order[b]]
                if change < least:
                    least = change
                    place = b
            change = 0.0
            for b in range(p + 1, r):
                change += row[order[b]]
                if change < least:
                    least = change
                    place = b
            if least < -tolerance:
                _preference_move(d, order, r, p, place)
                lowered += least
                still = 0
            else:
                still += 1
            is_late = _went(pace, 2 * r)
            if is_late or still >= r:  # every document has been looked at since the last move
                break
        if is_late or still >= r:
            break
    total[0] += lowered
    return is_late


def average_precision_search(
    const double[:, ::1] u, const int64_t[::1] start, const double[:, ::1] kicks, double tolerance,
    Py_ssize_t max_sweeps, late=None,
):
    """As `preference_search`, for sum_{j <= i} u_ij / max(rank_i, rank_j), to be large."""
    cdef Py_ssize_t r = u.shape[0], n_perturbations = kicks.shape[0], k, c
    order_array = np.array(start, dtype=np.int64)
    kept_array = order_array.copy()
    prefix_array = np.empty(r)
    kept_prefix_array = np.empty(r)
    step_array = 1.0 / np.arange(1, r + 1) - 1.0 / np.arange(2, r + 2)
    cdef int64_t[::1] order = order_array
    cdef int64_t[::1] kept = kept_array
    cdef double[::1] prefix = prefix_array
    cdef double[::1] kept_prefix = kept_prefix_array
    cdef const double[::1] step = step_array
    cdef int64_t sweeps = 0
    cdef double gain = 0.0
    cdef Pace pace = _pace(late)
    cdef int is_late
    with nogil:
        _prefixes(&u[0, 0], &order[0], &prefix[0], r)
        is_late = _average_precision_descent(
            &u[0, 0], &order[0], &prefix[0], &step[0], r, tolerance, max_sweeps, &sweeps, &gain,
            &pace,
        )
        memcpy(&kept[0], &order[0], r * sizeof(int64_t))
        memcpy(&kept_prefix[0], &prefix[0], r * sizeof(double))
        for k in range(n_perturbations):
            if is_late:
                break
            gain = 0.0
            for c in range(0, kicks.shape[1], 2):
                gain += _average_precision_move(
                    &u[0, 0], &order[0], &prefix[0], &step[0], r,
                    <Py_ssize_t> (kicks[k, c] * r), <Py_ssize_t> (kicks[k, c + 1] * r),
                )
            is_late = _average_precision_descent(
                &u[0, 0], &order[0], &prefix[0], &step[0], r, tolerance, max_sweeps, &sweeps, &gain,
                &pace,
            )
            if gain >= -tolerance:
                memcpy(&kept[0], &order[0], r * sizeof(int64_t))
                memcpy(&kept_prefix[0], &prefix[0], r * sizeof(double))
            else:
                memcpy(&order[0], &kept[0], r * sizeof(int64_t))
                memcpy(&prefix[0], &kept_prefix[0], r * sizeof(double))
    return kept_array, sweeps


cdef void _prefixes(const double *u, const int64_t *order, double *prefix, Py_ssize_t r) noexcept nogil:
    """prefix[v] = u_vv + sum of u_vw over the documents w placed before v."""
    cdef Py_ssize_t a, b
    cdef int64_t v
    cdef double total
    for a in range(r):
        v = order[a]
        total = 0.0
        for b in range(a):
            total += u[v * r + order[b]]
        prefix[v] = total + u[v * r + v]


cdef double _average_precision_move(
    const double *u, int64_t *order, double *prefix, const double *step, Py_ssize_t r,
    Py_ssize_t a, Py_ssize_t b,
) noexcept nogil:
    """Move the document at place a to place b; the change of the sum."""
    cdef int64_t v = order[a], w
    cdef double gain = 0.0, own = prefix[v], shared
    cdef Py_ssize_t p
    if b < a:
        for p in range(a - 1, b - 1, -1):
            w = order[p]
            shared = u[v * r + w]
            own -= shared
            gain += (own - prefix[w]) * step[p]
            prefix[w] += shared
            order[p + 1] = w
    else:
        for p in range(a, b):
            w = order[p + 1]
            shared = u[v * r + w]
            prefix[w] -= shared
            gain += (prefix[w] - own) * step[p]
            own += shared
            order[p] = w
    order[b] = v
    prefix[v] = own
    return gain


cdef int _average_precision_descent(
    const double *u, int64_t *order, double *prefix, const double *step, Py_ssize_t r,
    double tolerance, Py_ssize_t max_sweeps, int64_t *sweeps, double *total, Pace *pace,
) except -1 nogil:
    cdef Py_ssize_t v, p, b, place, sweep, still = 0
    cdef int64_t w
    cdef double own, gain, most, raised = 0.0, shared
    cdef int is_late = 0
    cdef const double *row
    for sweep in range(max_sweeps):
        sweeps[0] += 1
        for v in range(r):
            row = u + v * r
            p = 0
            while order[p] != v:
                p += 1
            most = 0.0
            place = p
            own = prefix[v]
            gain = 0.0
            for b in range(p - 1, -1, -1):
                w = order[b]
                own -= row[w]
                gain += (own - prefix[w]) * step[b]
                if gain > most:
                    most = gain
                    place = b
            own = prefix[v]
            gain = 0.0
            for b in range(p, r - 1):
                w = order[b + 1]
                shared = row[w]
                gain += ((prefix[w] - shared) - own) * step[b]
                own += shared
                if gain > most:
                    most = gain
                    place = b + 1
            if most > tolerance:
                raised += _average_precision_move(u, order, prefix, step, r, p, place)
                still = 0
            else:
                still += 1
            is_late = _went(pace, 2 * r)
            if is_late or still >= r:
                break
        if is_late or still >= r:
            break
    total[0] += raised
    return is_late
