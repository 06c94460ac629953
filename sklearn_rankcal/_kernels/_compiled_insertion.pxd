# cython: language_level=3
from libc.stdint cimport int64_t, uint64_t

from sklearn_rankcal._kernels._work_counter cimport WorkCounter

cdef int insert_equal_edges(
    const double *d, Py_ssize_t r, Py_ssize_t words, double threshold, const int64_t *order,
    uint64_t *bits, int64_t *place, WorkCounter *counter,
) except -1 nogil

cdef int insert_light_edges(
    const double *permuted, Py_ssize_t r, Py_ssize_t words, double heaviest, const int64_t *order,
    uint64_t *bits, double *weight, int64_t *edges, WorkCounter *counter,
) except -1 nogil

cdef void smallest_topological_order(
    const uint64_t *bits, Py_ssize_t r, Py_ssize_t words, int64_t *order, int64_t *work
) noexcept nogil
