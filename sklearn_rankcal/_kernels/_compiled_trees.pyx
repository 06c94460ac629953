# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The sum of regression trees for some rows, in one pass over all trees."""

from libc.math cimport isnan
from libc.stdint cimport int32_t, uint8_t


def add_trees(
    const double[:, ::1] X,
    const int32_t[::1] roots,
    const int32_t[::1] features,
    const double[::1] thresholds,
    const int32_t[::1] lefts,
    const int32_t[::1] rights,
    const uint8_t[::1] missing_left,
    const double[::1] values,
    double[::1] total,
):
    """Add the prediction of each tree for each row to `total`. A leaf has the feature -1."""
    cdef Py_ssize_t row, tree
    cdef int32_t node
    cdef double x
    with nogil:
        for row in range(X.shape[0]):
            for tree in range(roots.shape[0]):
                node = roots[tree]
                while features[node] >= 0:
                    x = X[row, features[node]]
                    if x <= thresholds[node] or (missing_left[node] and isnan(x)):
                        node = lefts[node]
                    else:
                        node = rights[node]
                total[row] += values[node]
