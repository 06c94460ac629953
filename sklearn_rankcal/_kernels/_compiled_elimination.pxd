# cython: language_level=3
from libc.stdint cimport int64_t

from sklearn_rankcal._kernels._work_counter cimport WorkCounter

cdef Py_ssize_t sort_topologically(
    const double *d, Py_ssize_t r, int64_t *order, int64_t *waiting
) noexcept nogil

cdef int eliminate(
    const double *d, Py_ssize_t r, int64_t *order, double *threshold, double *heaviest,
    int64_t *work, WorkCounter *counter,
) except -1 nogil
