"""Insertion of edges into an acyclic graph with a transitive closure stored as bits.

The kernels of `_graphs.pxi` call these functions; Python cannot see them. `bits` holds two
relations of r sets of `words` words each: `below` (the documents that must come after a document)
and then `above` (the documents that must come before it). Documents are named by their places in
the order of the elimination: `order[place]` is a document.
"""

from libc.math cimport INFINITY, fabs, isfinite
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from sklearn_rankcal._kernels._bitsets cimport add_all, contains, count_bits, lowest_bit
from sklearn_rankcal._kernels._work_counter cimport WorkCounter, count_steps


cdef Py_ssize_t insert_edge(
    uint64_t *below, uint64_t *above, Py_ssize_t words, Py_ssize_t i, Py_ssize_t j
) noexcept nogil:
    """Add the edge i -> j and its transitive consequences; return the number of steps.

    Afterwards below[a] includes j and below[j] for a = i and for every a above i, and above[b]
    includes i and above[i] for b = j and for every b below j.
    """
    cdef Py_ssize_t word, a, steps = 3 * words
    cdef uint64_t higher, lower
    for word in range(words):
        # Documents above j already have all of below[j] by transitivity, and documents below i
        # already have all of above[i]. Only the remaining documents change.
        higher = above[i * words + word] & ~above[j * words + word]
        lower = below[j * words + word] & ~below[i * words + word]
        while higher:
            a = word * 64 + lowest_bit(higher)
            higher &= higher - 1
            add_all(below + a * words, below + j * words, words, j)
            steps += words
        while lower:
            a = word * 64 + lowest_bit(lower)
            lower &= lower - 1
            add_all(above + a * words, above + i * words, words, i)
            steps += words
    add_all(below + i * words, below + j * words, words, j)
    add_all(above + j * words, above + i * words, words, i)
    return steps


cdef int insert_equal_edges(
    const double *d, Py_ssize_t r, Py_ssize_t words, double threshold, const int64_t *order,
    uint64_t *bits, int64_t *place, WorkCounter *counter,
) except -1 nogil:
    """Insert the edges with the weight of the threshold, until one would close a cycle.

    Algorithm 1 deletes equal edges in document order, row by row: insert them in reverse.
    """
    cdef Py_ssize_t k, i, j
    for k in range(r):
        place[order[k]] = k
    for k in range(r * r - 1, -1, -1):
        if d[k] == threshold:
            i = place[k // r]
            j = place[k % r]
            if contains(bits, words, j, i):
                return 0
            if not contains(bits, words, i, j):
                if count_steps(counter, insert_edge(bits, bits + r * words, words, i, j)):
                    return 1
    return 0


cdef int insert_light_edges(
    const double *permuted, Py_ssize_t r, Py_ssize_t words, double heaviest, const int64_t *order,
    uint64_t *bits, double *weight, int64_t *edges, WorkCounter *counter,
) except -1 nogil:
    """Insert every edge up to the threshold, heaviest first, unless it closes a cycle.

    This is the ranked pairs rule. `permuted` is the matrix d with rows and columns in the order of
    the elimination. An edge i -> j is packed into one integer, (i << 32) | j.
    """
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
    # Collect the edges between pairs that the closure has not decided yet.
    for i in range(r):
        for word in range(i >> 6, words):
            mask = ~(bits[i * words + word] | above[i * words + word])
            if word == i >> 6:
                mask &= ~(<uint64_t> 1) << (i & 63)  # each pair once: j > i
            if word == words - 1 and r & 63:
                mask &= ((<uint64_t> 1) << (r & 63)) - 1
            while mask:
                j = word * 64 + lowest_bit(mask)
                mask &= mask - 1
                # Avoid a branch, because half of these tests go either way: `turned` exchanges i
                # and j if d_ij < 0, and n grows by 1 only if the edge is kept.
                w = permuted[i * r + j]
                turned = (i ^ j) & -(<int64_t> (w < 0.0))
                w = fabs(w)
                edges[n] = ((i ^ turned) << 32) | (j ^ turned)
                scratch[n] = w
                n += (w > 0.0) & (w <= heaviest)
    for k in range(n):
        if scratch[k] < lightest:
            lightest = scratch[k]
    # Distribute the edges to buckets of weights, the heaviest first. Sorting is only needed within
    # a bucket, and most light edges are decided before their bucket is reached.
    n_buckets = min(n // 16 + 1, 2 * r)
    scale = n_buckets / (heaviest - lightest) if heaviest > lightest else 0.0
    if not isfinite(scale):
        scale = 0.0
    # Counting sort: compute the sizes and starts of buckets, then place the edges.
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
        stop = end[b]  # now one past the last edge of bucket b
        # Drop the edges decided since then, sort the rest, and insert them in turn.
        left = start
        for k in range(start, stop):
            i = bucketed[k] >> 32
            j = <uint32_t> bucketed[k]
            weight[left] = weight[k]
            bucketed[left] = bucketed[k]
            left += 1 - (contains(bits, words, i, j) | contains(bits, words, j, i))
        if _sort_edges(
            weight + start, bucketed + start, scratch, spare, left - start, order, counter
        ):
            return 1
        for k in range(start, left):
            i = bucketed[k] >> 32
            j = <uint32_t> bucketed[k]
            if not contains(bits, words, i, j) and not contains(bits, words, j, i):
                if count_steps(counter, insert_edge(bits, above, words, i, j)):
                    return 1
        start = stop
    return 0


cdef inline bint _goes_first(
    double wa, int64_t ea, double wb, int64_t eb, const int64_t *order
) noexcept nogil:
    """Return whether edge a goes before edge b: the heavier, or the later in document order."""
    if wa != wb:
        return wa > wb
    if ea >> 32 != eb >> 32:
        return order[ea >> 32] > order[eb >> 32]
    return order[<uint32_t> ea] > order[<uint32_t> eb]


cdef int _sort_edges(
    double *w, int64_t *e, double *w2, int64_t *e2, Py_ssize_t n, const int64_t *order,
    WorkCounter *counter,
) except -1 nogil:
    """Sort edges by `_goes_first`: a merge sort, with insertion sort for short parts."""
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
    if _sort_edges(w, e, w2, e2, half, order, counter):
        return 1
    if _sort_edges(w + half, e + half, w2, e2, n - half, order, counter):
        return 1
    # Merge: the first half moves out of the way, and the result fills the space from the start.
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
    return count_steps(counter, 4 * n)


cdef void smallest_topological_order(
    const uint64_t *bits, Py_ssize_t r, Py_ssize_t words, int64_t *order, int64_t *work
) noexcept nogil:
    """Replace `order` by the lexicographically smallest topological order of the closure."""
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
    # If every pair is decided, only one order exists: the place of k is the number above it.
    if 2 * decided == r * (r - 1):
        for k in range(r):
            listed[waiting[k]] = order[k]
        memcpy(order, listed, r * sizeof(int64_t))
        return
    for k in range(r):
        place[order[k]] = k
    # Otherwise the first document with nothing above it comes next, r times.
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
