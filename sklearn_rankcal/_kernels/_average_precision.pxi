"""Insertion local search for average precision. `_numpy.py` does the same in NumPy."""

import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from sklearn_rankcal._kernels._work_counter cimport WorkCounter, count_steps, new_counter


def average_precision_search(
    const double[:, ::1] u, const int64_t[::1] start, const double[:, ::1] perturbations,
    double tolerance, Py_ssize_t max_sweeps, time_is_up=None,
):
    """Iterated local search for the order that maximises sum_{j <= i} u_ij / max(rank_i, rank_j).

    The first descent begins at `start`. Each row of `perturbations` then disturbs the order by its
    moves (from, to), given as fractions of r, and a further descent follows. The result of the
    descent replaces the order if it is not worse, up to `tolerance`; otherwise the order before
    the perturbation is restored. Returns the order and the number of sweeps. If ``time_is_up()``
    becomes true, returns the best order so far.

    The document v at place p (0-based) contributes prefix[v] / (p + 1). prefix[v] is u_vv plus
    the sum of u_vw over the documents w before v. One unit of prefix gains
    step[p] = 1 / (p + 1) - 1 / (p + 2) by moving from place p + 1 up to place p.
    """
    cdef Py_ssize_t r = u.shape[0], n_perturbations = perturbations.shape[0], k, c
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
    cdef WorkCounter counter = new_counter(time_is_up)
    cdef int stopped
    with nogil:
        _prefixes(&u[0, 0], &order[0], &prefix[0], r)
        stopped = _average_precision_descent(
            &u[0, 0], &order[0], &prefix[0], &step[0], r, tolerance, max_sweeps, &sweeps, &gain,
            &counter,
        )
        memcpy(&kept[0], &order[0], r * sizeof(int64_t))
        memcpy(&kept_prefix[0], &prefix[0], r * sizeof(double))
        for k in range(n_perturbations):
            if stopped:
                break
            gain = 0.0
            for c in range(0, perturbations.shape[1], 2):
                gain += _average_precision_move(
                    &u[0, 0], &order[0], &prefix[0], &step[0], r,
                    <Py_ssize_t> (perturbations[k, c] * r),
                    <Py_ssize_t> (perturbations[k, c + 1] * r),
                )
            stopped = _average_precision_descent(
                &u[0, 0], &order[0], &prefix[0], &step[0], r, tolerance, max_sweeps, &sweeps, &gain,
                &counter,
            )
            if gain >= -tolerance:
                memcpy(&kept[0], &order[0], r * sizeof(int64_t))
                memcpy(&kept_prefix[0], &prefix[0], r * sizeof(double))
            else:
                memcpy(&order[0], &kept[0], r * sizeof(int64_t))
                memcpy(&prefix[0], &kept_prefix[0], r * sizeof(double))
    return kept_array, sweeps


cdef void _prefixes(
    const double *u, const int64_t *order, double *prefix, Py_ssize_t r
) noexcept nogil:
    """Write prefix[v] = u_vv + sum of u_vw over the documents w before v."""
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
    """Move the document at place a to place b; return the change of the sum.

    The move exchanges v with one neighbour w after another. Exchanging places p and p + 1 moves
    u_vw from the prefix of the document that goes up to the prefix of the document that goes down:

        up:    gain = (prefix[v] - u_vw - prefix[w]) step[p]
        down:  gain = (prefix[w] - u_vw - prefix[v]) step[p]
    """
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
    double tolerance, Py_ssize_t max_sweeps, int64_t *sweeps, double *total, WorkCounter *counter,
) except -1 nogil:
    """Move each document in turn to its best place, until none has a better place.

    Ends when r documents in a row stay in place, after `max_sweeps` sweeps, or when the time is up
    (it then returns 1). Adds the change of the sum to `total`. The gains are as in
    `_average_precision_move`. A sweep takes O(r^2) time.
    """
    # `still` counts the documents looked at since the last move.
    cdef Py_ssize_t v, p, b, place, sweep, still = 0
    cdef int64_t w
    cdef double own, gain, most, raised = 0.0, shared
    cdef int stopped = 0
    cdef const double *row
    for sweep in range(max_sweeps):
        sweeps[0] += 1
        for v in range(r):
            row = u + v * r
            p = 0
            while order[p] != v:
                p += 1
            # Compute the gains of all moves upwards, then downwards; own is prefix[v] on the way.
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
            stopped = count_steps(counter, 2 * r)
            if stopped or still >= r:
                break
        if stopped or still >= r:
            break
    total[0] += raised
    return stopped
