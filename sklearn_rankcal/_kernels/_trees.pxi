"""The sum of regression trees for some rows, in one pass over all trees."""

from libc.math cimport isnan
from libc.stdint cimport int32_t, uint8_t, uint32_t


def add_trees(
    const double[:, ::1] X,
    const int32_t[::1] roots,
    const int32_t[::1] features,
    const double[::1] thresholds,
    const int32_t[::1] lefts,
    const int32_t[::1] rights,
    const uint8_t[::1] missing_left,
    const double[::1] values,
    const int32_t[::1] sets,
    const uint32_t[:, ::1] left_codes,
    double[::1] total,
):
    """Add the prediction of each tree for each row to `total`. A leaf has the feature -1.

    A split of categories sends the codes of a row of `left_codes`, as bits, to the left. `sets` has
    this row for each node, and -1 for splits of numbers.
    """
    cdef Py_ssize_t row, tree
    cdef int32_t node, code
    cdef double x
    cdef bint left
    with nogil:
        for row in range(X.shape[0]):
            for tree in range(roots.shape[0]):
                node = roots[tree]
                while features[node] >= 0:
                    x = X[row, features[node]]
                    if isnan(x):
                        left = missing_left[node]
                    elif sets[node] < 0:
                        left = x <= thresholds[node]
                    else:
                        code = <int32_t>x
                        left = (left_codes[sets[node], code >> 5] >> (code & 31)) & 1
                    node = lefts[node] if left else rights[node]
                total[row] += values[node]
