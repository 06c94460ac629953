"""The sums of regression trees for the rows of a table, without a branch for each node."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint32_t, uint64_t

from sklearn_rankcal._kernels._bitsets cimport lowest_bit


def add_trees(
    const double[:, ::1] X,
    const int32_t[::1] starts,
    const int32_t[::1] features,
    const double[::1] thresholds,
    const uint64_t[::1] right_leaves,
    const int32_t[::1] sets,
    const uint32_t[:, ::1] left_codes,
    const int32_t[::1] first_leaves,
    const double[::1] values,
    double[:, ::1] columns,
    double[::1] total,
):
    """Add the prediction of each tree for each row to `total`.

    A tree has at most 64 leaves, numbered from left to right. If a row goes to the right at a node,
    whether or not it reaches the node, it is in none of the leaves on its left: `right_leaves` has
    the others as bits. The first leaf that all nodes leave over is the leaf of the row (Lucchese et
    al., 2015, QuickScorer). The nodes of `tree` begin at ``starts[tree]``, its leaves in `values` at
    ``first_leaves[tree]``.

    The features after the last column are the columns again, for nodes that send missing values to
    the left. `columns` is memory for both, for 32 rows at a time: compilers make vector
    instructions of a loop of this length.

    A split of categories sends the codes of a row of `left_codes`, as bits, to the left. `sets` has
    this row for each node, and -1 for splits of numbers.
    """
    cdef Py_ssize_t first, tree, node, k, n, column, width = X.shape[1]
    cdef const double* x
    cdef double threshold
    cdef int32_t code
    cdef uint64_t others, every = ~<uint64_t>0
    cdef uint64_t leaves[32]
    with nogil:
        for first in range(0, X.shape[0], 32):
            n = min(32, X.shape[0] - first)
            for k in range(n):
                for column in range(width):
                    columns[column, k] = columns[width + column, k] = X[first + k, column]
                    if X[first + k, column] != X[first + k, column]:
                        columns[width + column, k] = -INFINITY
            for tree in range(first_leaves.shape[0]):
                for k in range(32):
                    leaves[k] = every
                for node in range(starts[tree], starts[tree + 1]):
                    x = &columns[features[node], 0]
                    others = right_leaves[node]
                    if sets[node] < 0:
                        threshold = thresholds[node]
                        for k in range(32):
                            leaves[k] &= every if x[k] <= threshold else others
                        continue
                    for k in range(n):
                        if x[k] >= 0:
                            code = <int32_t>x[k]
                            if (left_codes[sets[node], code >> 5] >> (code & 31)) & 1:
                                continue
                        elif x[k] < 0:  # missing, to the left
                            continue
                        leaves[k] &= others
                for k in range(n):
                    total[first + k] += values[first_leaves[tree] + lowest_bit(leaves[k])]
