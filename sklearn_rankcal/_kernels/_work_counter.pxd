# cython: language_level=3
"""A counter of elementary steps, used by long loops to notice Ctrl-C and time limits.

A loop that takes more than one pass over a matrix reports its steps with `count_steps`. About once
per millisecond, the counter lets Python handle signals, and Ctrl-C raises KeyboardInterrupt. If the
caller passed a function that tells whether the time limit has passed, the counter also calls it.
"""

from cpython.exc cimport PyErr_CheckSignals

cdef enum:
    STEPS_BETWEEN_CHECKS = 1 << 18  # a step takes about a nanosecond

cdef struct WorkCounter:
    Py_ssize_t steps  # since the last check
    void *time_is_up  # a Python function without arguments, which the caller keeps alive, or NULL


cdef inline WorkCounter new_counter(object time_is_up) noexcept:
    cdef WorkCounter counter
    counter.steps = 0
    counter.time_is_up = NULL if time_is_up is None else <void *> time_is_up
    return counter


cdef inline int check_now(WorkCounter *counter) except -1 nogil:
    """Raise KeyboardInterrupt after Ctrl-C; return 1 if the time is up, otherwise 0."""
    cdef int stop = 0
    counter.steps = 0
    with gil:
        PyErr_CheckSignals()
        if counter.time_is_up != NULL:
            stop = bool((<object> counter.time_is_up)())
    return stop


cdef inline int count_steps(WorkCounter *counter, Py_ssize_t steps) except -1 nogil:
    """Add steps, and check signals and the clock when enough steps have been counted."""
    counter.steps += steps
    return 0 if counter.steps < STEPS_BETWEEN_CHECKS else check_now(counter)
