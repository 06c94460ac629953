"""Insertion local search for preferences: move one document at a time to its best place.

`_numpy.py` does the same in NumPy.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memmove

from sklearn_rankcal._kernels._work_counter cimport WorkCounter, count_steps, new_counter

cdef enum:
    POPULATION = 12  # maximum number of orders kept to be perturbed and combined
    PATIENCE = 150  # steps without improvement before the search begins a new population
    FEWEST_MOVES = 8  # a perturbation moves 8 to 24 documents
    MORE_MOVES = 16
#: Largest distance of a move of a perturbation, as a fraction of the number of documents. On
#: matrices with a known optimum, these values found it more often than shorter or longer moves.
cdef double REACH = 0.2


cdef struct Search:
    const double *d  # (r, r)
    Py_ssize_t r
    double tolerance  # smaller gains are ignored
    Py_ssize_t max_looks  # maximum number of documents that a descent looks at
    int64_t *order  # (r,): the order that the search works on
    int64_t *place  # (r,): the place of each document in it
    int64_t *queue  # (r,): a circular list of the documents that a descent must still look at
    char *queued  # (r,): whether a document is in the queue
    int64_t looks  # number of documents looked at by all descents
    uint64_t random  # state of the random numbers
    WorkCounter counter


def preference_search(
    const double[:, ::1] d, const int64_t[:, ::1] starts, Py_ssize_t n_perturbations,
    uint64_t seed, double tolerance, Py_ssize_t max_sweeps, time_is_up=None,
):
    """Memetic search for the order that contradicts the least weight of differences d.

    A memetic search combines orders of a population and improves the results by descents. The
    population begins with the results of a descent from each of `starts` (n_starts, r). Each of
    `n_perturbations` steps then makes one more order, and descends from it:

    * Even steps perturb an order of the population: the better of two random ones. The result
      replaces this order if it is not worse, up to `tolerance`.
    * Odd steps combine two random orders of the population. The first 12 of these steps shuffle the
      first start instead, to fill the population. The result joins the population, unless an order
      there has the same cost. If the population is full, the result must be better than the worst
      order there, and replaces it.

    After 150 steps without an improvement of the population, a new one begins with a shuffled
    order. The steps do not depend on the number of later steps, and the best order is kept. More
    steps therefore never end with a worse order. If ``time_is_up()`` becomes true, returns the best
    order so far.

    Returns the best order, and the number of documents that all descents looked at, divided by r.
    A step takes O(r^2) time in practice. The search takes O(r^2) memory including `d`.

    References
    ----------
    Schiavinotto, T. and Stützle, T. (2004). The linear ordering problem: instances, search space
    analysis and algorithms. Journal of Mathematical Modelling and Algorithms 3, 367-402.
    """
    cdef Py_ssize_t r = d.shape[0], first = -starts.shape[0], step, size = 0, source, member
    cdef Py_ssize_t begun = 0, improved = 0  # steps of the start and last change of the population
    best_array = np.array(starts[0], dtype=np.int64)
    cdef int64_t[::1] best = best_array
    cdef int64_t[:, ::1] population = np.empty((POPULATION, r), dtype=np.int64)
    cdef double[::1] costs = np.empty(POPULATION)
    cdef int64_t[:, ::1] work = np.zeros((3, r), dtype=np.int64)
    cdef char[::1] queued = np.zeros(r, dtype=np.int8)
    cdef double cost, change, best_cost = 0.0
    cdef int stopped = 0
    cdef Search s
    s.d, s.r, s.tolerance, s.max_looks = &d[0, 0], r, tolerance, max_sweeps * r
    s.order, s.place, s.queue = &work[0, 0], &work[1, 0], &work[2, 0]
    s.queued, s.looks, s.random = &queued[0], 0, seed
    s.counter = new_counter(time_is_up)
    with nogil:
        for step in range(first, n_perturbations):
            if step - improved > PATIENCE:
                size = 0
                begun = improved = step
            # 1. Make an order. `source` is the member of the population that it replaces, or -1.
            source = -1
            change = 0.0
            if step < 0:
                memcpy(s.order, &starts[step - first, 0], r * sizeof(int64_t))
            elif size == 0 or (step % 2 and step - begun < 2 * POPULATION):
                memcpy(s.order, &starts[0, 0], r * sizeof(int64_t))
                _shuffle(&s)
            elif step % 2 and size > 1:
                source = _below(&s, size)
                member = _below(&s, size - 1)
                member += member >= source
                _combine(&s, &population[source, 0], &population[member, 0])
                source = -1
            else:
                source = _below(&s, size)
                member = _below(&s, size)
                if costs[member] < costs[source]:
                    source = member
                memcpy(s.order, &population[source, 0], r * sizeof(int64_t))
                change = _perturb(&s)
            # 2. Descend. Descend to a local optimum from a start or a new best order.
            stopped = _descent(&s, &change)
            if source >= 0 and change > tolerance:
                if stopped:
                    break
                continue
            cost = _cost(&s)
            if step < 0 or cost < best_cost - tolerance:
                stopped = stopped or _descend_to_the_end(&s)
                cost = _cost(&s)
            if step == first or cost < best_cost - tolerance:
                memcpy(&best[0], s.order, r * sizeof(int64_t))
                best_cost = cost
            if stopped:
                break
            # 3. Insert the order into the population.
            member = source if source >= 0 else _vacancy(&costs[0], size, cost, tolerance)
            if member >= 0:
                if source < 0 or cost < costs[member] - tolerance:
                    improved = max(step, 0)
                memcpy(&population[member, 0], s.order, r * sizeof(int64_t))
                costs[member] = cost
                size += member == size
    return best_array, (s.looks + r - 1) // r


cdef Py_ssize_t _vacancy(
    const double *costs, Py_ssize_t size, double cost, double tolerance
) noexcept nogil:
    """Return the index in the population where an order of this cost belongs, or -1."""
    cdef Py_ssize_t k, worst = 0
    for k in range(size):
        if fabs(costs[k] - cost) <= tolerance:
            return -1
        if costs[k] > costs[worst]:
            worst = k
    if size < POPULATION:
        return size
    return worst if cost < costs[worst] else -1


cdef double _uniform(Search *s) noexcept nogil:
    """Return a random number in [0, 1), by SplitMix64 of Steele, Lea and Flood (2014)."""
    cdef uint64_t z
    s.random += 0x9E3779B97F4A7C15ULL
    z = s.random
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL
    return <double> ((z ^ (z >> 31)) >> 11) * 2.0 ** -53


cdef Py_ssize_t _below(Search *s, Py_ssize_t n) noexcept nogil:
    """Return a random integer from 0 to n - 1."""
    return <Py_ssize_t> (_uniform(s) * n)


cdef void _shuffle(Search *s) noexcept nogil:
    """Shuffle the documents (Fisher and Yates)."""
    cdef Py_ssize_t a, b
    cdef int64_t v
    for a in range(s.r):
        b = a + _below(s, s.r - a)
        v = s.order[a]
        s.order[a] = s.order[b]
        s.order[b] = v


cdef double _perturb(Search *s) noexcept nogil:
    """Move documents at random by up to `REACH`; return the change of the lost weight."""
    cdef Py_ssize_t k, a, b
    cdef double start, end, change = 0.0
    for k in range(FEWEST_MOVES + _below(s, MORE_MOVES + 1)):
        start = _uniform(s)
        end = start + REACH * (2.0 * _uniform(s) - 1.0)
        a = <Py_ssize_t> (start * s.r)
        b = min(max(<Py_ssize_t> (end * s.r), 0), s.r - 1)
        change += _preference_move(s, a, b)
    return change


cdef void _combine(Search *s, const int64_t *one, const int64_t *other) noexcept nogil:
    """Rearrange the documents at about half of the places of `one` in their order in `other`.

    This is the order-based crossover (OB) of Schiavinotto and Stützle. `queued` marks documents.
    """
    cdef Py_ssize_t p, k = 0
    cdef int64_t v
    for p in range(s.r):
        s.order[p] = one[p]
        s.queued[one[p]] = _uniform(s) < 0.5
    for p in range(s.r):
        v = other[p]
        if s.queued[v]:
            s.queue[k] = v
            k += 1
    k = 0
    for p in range(s.r):
        if s.queued[s.order[p]]:
            s.queued[s.order[p]] = 0
            s.order[p] = s.queue[k]
            k += 1


cdef double _cost(Search *s) noexcept nogil:
    """Return the weight of the preferences that the order contradicts."""
    cdef Py_ssize_t p, b
    cdef double total = 0.0, of_row
    cdef const double *row
    for p in range(s.r):
        row = s.d + s.order[p] * s.r
        of_row = 0.0
        for b in range(p):
            of_row += row[s.order[b]] if row[s.order[b]] > 0.0 else 0.0
        total += of_row
    return total


cdef double _preference_move(Search *s, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """Move the document at place a to place b; return the change of the lost weight.

    Passing document w upwards changes the lost weight by -d_vw, and downwards by d_vw.
    """
    cdef int64_t v = s.order[a]
    cdef const double *row = s.d + v * s.r
    cdef double change = 0.0
    cdef Py_ssize_t p
    if b < a:
        for p in range(a - 1, b - 1, -1):
            change -= row[s.order[p]]
        memmove(s.order + b + 1, s.order + b, (a - b) * sizeof(int64_t))
    else:
        for p in range(a + 1, b + 1):
            change += row[s.order[p]]
        memmove(s.order + a, s.order + a + 1, (b - a) * sizeof(int64_t))
    s.order[b] = v
    return change


cdef int _descend_to_the_end(Search *s) except -1 nogil:
    """Repeat descents until one changes nothing; return 1 if the time is up."""
    cdef double change = -1.0
    cdef int stopped = 0
    while change < 0.0 and not stopped:
        change = 0.0
        stopped = _descent(s, &change)
    return stopped


cdef int _descent(Search *s, double *total) except -1 nogil:
    """Move each document to its best place. After a move, look again at the documents it passed.

    A move changes the costs of the documents it passes most. The best place of another document can
    change too: the result need not be a local optimum, but it takes half the time. Ends when the
    queue is empty, after `max_looks` documents, or when the time is up (it then returns 1). Adds
    the change of the lost weight to `total`.
    """
    cdef Py_ssize_t r = s.r, head = 0, length = r, p, b, best, looks = 0
    cdef int64_t v
    cdef double change, least, lowered = 0.0
    cdef int stopped = 0
    cdef const double *row
    for p in range(r):
        s.queue[p] = v = s.order[p]
        s.place[v] = p
        s.queued[v] = 1
    while length and looks < s.max_looks and not stopped:
        v = s.queue[head]
        head = head + 1 if head + 1 < r else 0
        length -= 1
        looks += 1
        s.queued[v] = 0
        # Compute the changes of all moves upwards, then downwards, as running sums along row v.
        row = s.d + v * r
        p = best = s.place[v]
        least = 0.0
        change = 0.0
        for b in range(p - 1, -1, -1):
            change -= row[s.order[b]]
            if change < least:
                least = change
                best = b
        change = 0.0
        for b in range(p + 1, r):
            change += row[s.order[b]]
            if change < least:
                least = change
                best = b
        if least < -s.tolerance:
            _preference_move(s, p, best)
            lowered += least
            for b in range(min(p, best), max(p, best) + 1):
                v = s.order[b]
                s.place[v] = b
                if not s.queued[v]:
                    s.queued[v] = 1
                    s.queue[head + length if head + length < r else head + length - r] = v
                    length += 1
        stopped = count_steps(&s.counter, 2 * r)
    while length:  # leave no marks behind
        s.queued[s.queue[head]] = 0
        head = head + 1 if head + 1 < r else 0
        length -= 1
    s.looks += looks
    total[0] += lowered
    return stopped
