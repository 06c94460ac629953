"""Elimination: compute an order of the documents where every heavy edge points down.

The kernels of `_graphs.pxi` call these functions; Python cannot see them. d is the matrix of
differences d_ij = u_ij - u_ji of one query, by rows. An edge i -> j is an entry d_ij > 0.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.string cimport memset

from sklearn_rankcal._kernels._work_counter cimport WorkCounter, count_steps

cdef enum:
    REFRESHES = 8  # times r^2: steps of `eliminate` before `_eliminate_by_witness` takes over


cdef Py_ssize_t sort_topologically(
    const double *d, Py_ssize_t r, int64_t *order, int64_t *waiting
) noexcept nogil:
    """Write the lexicographically smallest topological order; return how many documents it places.

    This number is r if and only if the graph has no cycle. Takes two passes over the matrix.
    """
    # waiting[w]: number of documents preferred to w that are not placed yet; -1 if w is placed
    cdef Py_ssize_t k, v, w
    cdef const double *row
    memset(waiting, 0, r * sizeof(int64_t))
    for v in range(r):
        row = d + v * r
        for w in range(r):
            waiting[w] += row[w] > 0.0
    for k in range(r):
        # The first document that waits for none comes next. If none exists, the rest has a cycle.
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


cdef int eliminate(
    const double *d, Py_ssize_t r, int64_t *order, double *threshold, double *heaviest,
    int64_t *work, WorkCounter *counter,
) except -1 nogil:
    """Find the threshold t of Algorithm 1 without sorting the edges; return 1 if the time is up.

    Repeatedly choose the document whose heaviest edge to the remaining documents is lightest,
    remove it, and place it behind all of them. t is the heaviest of the edges that decided a
    removal. Every edge heavier than t then points from an earlier to a later place of `order`:
    these edges have no cycle. Every smaller threshold leaves a cycle: when t was attained, each
    remaining document had an edge of weight t or more to another remaining document.
    """
    # Invariant: order[:n] are the remaining documents, and heaviest[a] is the weight of the
    # heaviest edge from order[a] to them.
    cdef Py_ssize_t n = r, a, least, steps, refreshed = 0
    cdef int64_t v
    cdef double t = 0.0, weight, lightest
    cdef const double *row
    for a in range(r):
        order[a] = a
    for a in range(r):
        heaviest[a] = _heaviest_edge(d + a * r, order, r)
    while n and refreshed <= REFRESHES * r * r:
        # Choose the document to remove.
        least = 0
        lightest = heaviest[0]
        for a in range(1, n):
            if heaviest[a] < lightest:
                lightest = heaviest[a]
                least = a
        if lightest > t:
            t = lightest
        # Exchange it with the last remaining document, which keeps the invariant for n - 1.
        n -= 1
        v = order[least]
        order[least] = order[n]
        heaviest[least] = heaviest[n]
        order[n] = v
        # Look for a new heaviest edge only if the edge to v was the heaviest.
        row = d + v * r
        steps = n
        for a in range(n):
            weight = -row[order[a]]  # d[order[a], v], the weight of the edge to v
            if weight == heaviest[a] and weight > 0.0:
                heaviest[a] = _heaviest_edge(d + order[a] * r, order, n)
                steps += n
        refreshed += steps
        if count_steps(counter, steps):
            return 1
    threshold[0] = t
    return _eliminate_by_witness(d, r, n, order, threshold, work, counter) if n else 0


cdef inline double _heaviest_edge(
    const double *row, const int64_t *left, Py_ssize_t n
) noexcept nogil:
    """Return the weight of the heaviest edge to the remaining documents, or 0 if there is none."""
    # Four independent maxima let the processor overlap the comparisons.
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
    WorkCounter *counter,
) except -1 nogil:
    """Finish the elimination of the n remaining documents, in O(r^2) steps for each t.

    `eliminate` is slow if many documents have their heaviest edges to the same document, because
    each removal makes all of them look again. Here a document can be removed if all its edges to
    the remaining documents weigh at most t. If no document can be removed, t rises to the smallest
    of the heaviest edges. The order of the removable documents does not matter. For each document,
    it is therefore enough to know one edge heavier than t that prevents its removal: its witness.
    t never falls and documents never come back: an edge that has failed as a witness never becomes
    one again. Each document therefore scans its row only once.
    """
    # witness[v]: column of v's witness; no earlier column of row v can ever be one again
    # free_now[:n_free]: documents that can be removed
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
    gone = -1  # -1: every document looks for a witness
    while n:
        # Documents that lost their witness look for the next one.
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
        if count_steps(counter, steps):
            return 1
        # Remove a free document, if there is one.
        if n_free:
            n_free -= 1
            gone = free_now[n_free]
            is_left[gone] = 0
            # Put the last document of the list into its place.
            a = 0
            while order[a] != gone:
                a += 1
            n -= 1
            order[a] = order[n]
            order[n] = gone
            continue
        # If no document is free, raise t to the smallest of the heaviest edges. Stop scanning a row
        # when it can no longer be the smallest.
        least = INFINITY
        for a in range(n):
            row = d + order[a] * r
            most = 0.0
            w = witness[order[a]]  # earlier edges weigh at most t
            first = w
            while w < r and most < least:
                if row[w] > most and is_left[w]:
                    most = row[w]
                w += 1
            if most < least:
                least = most
            if count_steps(counter, w - first):
                return 1
        t = least
        gone = -1
    threshold[0] = t
    return 0
