"""A tree of gradient boosting from binned columns, by the rules of scikit-learn's grower.

The node with the best split is split next. A split has the largest gain of a Newton step. Each node
draws its own columns. A histogram has the sums of gradients and hessians, and the number of rows,
of each bin. Unlike scikit-learn, only these columns are counted:

- of the smaller child, the columns that it drew, and those of the larger child that the parent has;
- of the larger child, the columns that it drew and that cannot be had by subtraction.

Rows that are not learned from pass through the tree, too, so that their scores are known.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcpy, memset

cdef double _LEAST_HESSIAN = 1e-3  # the constants of scikit-learn
cdef double _LEAST_SUPPORT = 10.0


cdef struct GrownNode:
    int32_t left, right, depth, slot, feature, bin
    bint missing_left
    Py_ssize_t start, stop, held_start, held_stop
    double gradient, hessian, value, gain, left_gradient, left_hessian
    uint32_t left_codes[8]


cdef struct RankedCode:
    double value
    int32_t code


cdef struct Grower:
    Py_ssize_t n_rows, n_columns, n_bins
    const uint8_t* bins
    const int32_t* starts
    const uint8_t* lacks
    const uint8_t* categorical
    uint32_t* rows
    double* pairs  # gradient and hessian, in the order of `rows`
    bint weighted  # whether hessians are not all 1
    double* sums  # gradient and hessian of each bin, for each slot
    uint32_t* counts
    uint8_t* known
    Py_ssize_t least
    double l2


cdef inline void add_row(
    double* sums, size_t place, double gradient, double hessian
) noexcept nogil:
    # as two locals, such that compilers add both numbers at once
    cdef double* cell = sums + 2 * place
    cdef double first = cell[0] + gradient, second = cell[1] + hessian
    cell[0], cell[1] = first, second


cdef void count_bins(
    Grower* t, GrownNode* node, const int32_t* columns, Py_ssize_t n_columns
) noexcept nogil:
    """Compute the histograms of some columns from the rows of a node.

    Four columns are counted at a time, such that rows and gradients are read a quarter as often.
    """
    cdef Py_ssize_t first = node.slot * t.n_bins, i, k, width, column, size
    cdef const uint32_t* rows = t.rows
    cdef const double* pairs = t.pairs
    cdef const uint8_t* bins[4]
    cdef double* sums[4]
    cdef const uint8_t* bins_0
    cdef const uint8_t* bins_1
    cdef const uint8_t* bins_2
    cdef const uint8_t* bins_3
    cdef double* sums_0
    cdef double* sums_1
    cdef double* sums_2
    cdef double* sums_3
    cdef uint32_t* counts[4]
    cdef uint32_t* counts_0
    cdef uint32_t* counts_1
    cdef uint32_t* counts_2
    cdef uint32_t* counts_3
    cdef uint32_t row
    cdef double gradient, hessian
    cdef Py_ssize_t done = 0
    while done < n_columns:
        width = min(4, n_columns - done)
        for k in range(4):
            column = columns[done + min(k, width - 1)]
            bins[k] = t.bins + column * t.n_rows
            sums[k] = t.sums + 2 * (first + t.starts[column])
            size = t.starts[column + 1] - t.starts[column]
            memset(sums[k], 0, 2 * size * sizeof(double))
            counts[k] = t.counts + first + t.starts[column]
            if t.weighted:
                memset(counts[k], 0, size * sizeof(uint32_t))
        if width == 4:
            bins_0, bins_1, bins_2, bins_3 = bins[0], bins[1], bins[2], bins[3]
            sums_0, sums_1, sums_2, sums_3 = sums[0], sums[1], sums[2], sums[3]
            counts_0, counts_1, counts_2, counts_3 = counts[0], counts[1], counts[2], counts[3]
            for i in range(node.start, node.stop):
                row, gradient, hessian = rows[i], pairs[2 * i], pairs[2 * i + 1]
                add_row(sums_0, bins_0[row], gradient, hessian)
                add_row(sums_1, bins_1[row], gradient, hessian)
                add_row(sums_2, bins_2[row], gradient, hessian)
                add_row(sums_3, bins_3[row], gradient, hessian)
            if t.weighted:
                for i in range(node.start, node.stop):
                    row = rows[i]
                    counts_0[bins_0[row]] += 1
                    counts_1[bins_1[row]] += 1
                    counts_2[bins_2[row]] += 1
                    counts_3[bins_3[row]] += 1
        else:
            for k in range(width):
                bins_0, sums_0, counts_0 = bins[k], sums[k], counts[k]
                for i in range(node.start, node.stop):
                    add_row(sums_0, bins_0[rows[i]], pairs[2 * i], pairs[2 * i + 1])
                if t.weighted:
                    for i in range(node.start, node.stop):
                        counts_0[bins_0[rows[i]]] += 1
        done += width


cdef void subtract_bins(
    Grower* t, GrownNode* large, GrownNode* small, Py_ssize_t column
) noexcept nogil:
    """Turn the histogram of the parent into that of the larger child, which has the same slot."""
    cdef Py_ssize_t first = large.slot * t.n_bins + t.starts[column]
    cdef Py_ssize_t other = small.slot * t.n_bins + t.starts[column]
    cdef Py_ssize_t i, size = t.starts[column + 1] - t.starts[column]
    cdef double* sums = t.sums + 2 * first
    cdef double* less = t.sums + 2 * other
    for i in range(2 * size):
        sums[i] -= less[i]
    if t.weighted:
        for i in range(size):
            t.counts[first + i] -= t.counts[other + i]


cdef inline double gain_of(
    double left_gradient, double left_hessian, double right_gradient, double right_hessian,
    double l2, double loss,
) noexcept nogil:
    cdef double gain = loss
    gain -= left_gradient * (-left_gradient / (left_hessian + l2 + 1e-15))
    gain -= right_gradient * (-right_gradient / (right_hessian + l2 + 1e-15))
    return gain


cdef inline bint may_gain(
    double left_gradient, double left_hessian, double right_gradient, double right_hessian,
    double l2, double best,
) noexcept nogil:
    """Whether a split may be better than the best, without a division."""
    cdef double left = left_hessian + l2 + 1e-15
    cdef double right = right_hessian + l2 + 1e-15
    return (
        left_gradient * left_gradient * right + right_gradient * right_gradient * left
        > best * (1.0 - 1e-12) * left * right
    )


cdef void split_numbers(
    Grower* t, GrownNode* node, Py_ssize_t column, bint backwards
) noexcept nogil:
    """Improve the split of a node by the thresholds of a column.

    Rows with a missing value go to the right, or to the left if `backwards`.
    """
    cdef Py_ssize_t first = node.slot * t.n_bins + t.starts[column]
    cdef const double* sums = t.sums + 2 * first
    cdef const uint32_t* counts = t.counts + first
    cdef Py_ssize_t n_bins = t.starts[column + 1] - t.starts[column] - 1
    cdef Py_ssize_t n_other, n_own = 0, n = node.stop - node.start, step, b, n_steps = n_bins - 1
    cdef double gradient = 0.0, hessian = 0.0, other_gradient, other_hessian, gain
    cdef double loss = node.value * node.gradient
    cdef bint constant = not t.weighted
    if not backwards:
        n_steps += t.lacks[column]
    for step in range(n_steps):
        b = n_bins - 1 - step if backwards else step
        gradient += sums[2 * b]
        hessian += sums[2 * b + 1]
        n_own = <Py_ssize_t>hessian if constant else n_own + counts[b]
        n_other = n - n_own
        if n_own < t.least or hessian < _LEAST_HESSIAN:
            continue
        other_gradient = node.gradient - gradient
        other_hessian = node.hessian - hessian
        if n_other < t.least or other_hessian < _LEAST_HESSIAN:
            break
        if not may_gain(
            gradient, hessian, other_gradient, other_hessian, t.l2, node.gain - loss
        ):
            continue
        if backwards:
            gain = gain_of(other_gradient, other_hessian, gradient, hessian, t.l2, loss)
        else:
            gain = gain_of(gradient, hessian, other_gradient, other_hessian, t.l2, loss)
        if gain > node.gain:
            node.gain, node.feature, node.bin = gain, column, b - backwards
            node.missing_left = backwards
            node.left_gradient = other_gradient if backwards else gradient
            node.left_hessian = other_hessian if backwards else hessian


cdef int compare_codes(const void* one, const void* other) noexcept nogil:
    cdef const RankedCode* a = <const RankedCode*>one
    cdef const RankedCode* b = <const RankedCode*>other
    if a.value != b.value:
        return -1 if a.value < b.value else 1
    return a.code - b.code


cdef void split_codes(Grower* t, GrownNode* node, Py_ssize_t column) noexcept nogil:
    """Improve the split of a node by a set of categories, in the order of their mean gradients."""
    cdef Py_ssize_t first = node.slot * t.n_bins + t.starts[column]
    cdef const double* sums = t.sums + 2 * first
    cdef const uint32_t* counts = t.counts + first
    cdef Py_ssize_t size = t.starts[column + 1] - t.starts[column]
    cdef Py_ssize_t n_own, n = node.stop - node.start, n_used = 0, b, i, k, n_steps
    cdef double gradient, hessian, other_gradient, other_hessian, gain
    cdef double loss = node.value * node.gradient, factor = n / node.hessian
    cdef RankedCode ranked[256]
    cdef bint constant = not t.weighted
    cdef int backwards
    if not t.lacks[column]:
        size -= 1
    for b in range(size):
        if sums[2 * b + 1] * factor >= _LEAST_SUPPORT:
            ranked[n_used].value = sums[2 * b] / (sums[2 * b + 1] + _LEAST_SUPPORT)
            ranked[n_used].code = b
            n_used += 1
    if n_used <= 1:
        return
    qsort(ranked, n_used, sizeof(RankedCode), compare_codes)
    for backwards in range(2):
        gradient, hessian, n_own = 0.0, 0.0, 0
        n_steps = (n_used + 1) // 2 - backwards
        for i in range(n_steps):
            b = ranked[n_used - 1 - i if backwards else i].code
            gradient += sums[2 * b]
            hessian += sums[2 * b + 1]
            n_own = <Py_ssize_t>hessian if constant else n_own + counts[b]
            if n_own < t.least or hessian < _LEAST_HESSIAN:
                continue
            other_gradient = node.gradient - gradient
            other_hessian = node.hessian - hessian
            if n - n_own < t.least or other_hessian < _LEAST_HESSIAN:
                break
            gain = gain_of(gradient, hessian, other_gradient, other_hessian, t.l2, loss)
            if gain > node.gain:
                node.gain, node.feature, node.bin = gain, column, 0
                node.left_gradient, node.left_hessian = gradient, hessian
                node.missing_left = False
                memset(node.left_codes, 0, 32)
                for k in range(i + 1):
                    b = ranked[n_used - 1 - k if backwards else k].code
                    if b == t.starts[column + 1] - t.starts[column] - 1:
                        node.missing_left = True
                    else:
                        node.left_codes[b >> 5] |= <uint32_t>1 << (b & 31)


cdef void split_column(Grower* t, GrownNode* node, Py_ssize_t column) noexcept nogil:
    if t.categorical[column]:
        split_codes(t, node, column)
        return
    split_numbers(t, node, column, False)
    if t.lacks[column]:
        split_numbers(t, node, column, True)


cdef Py_ssize_t part_rows(
    Grower* t, GrownNode* node, uint32_t* rows, Py_ssize_t start, Py_ssize_t stop, uint32_t* spare
) noexcept nogil:
    """Move the rows of the left child before the others, and return where these start."""
    cdef const uint8_t* bins = t.bins + node.feature * t.n_rows
    cdef int32_t missing = t.starts[node.feature + 1] - t.starts[node.feature] - 1
    cdef uint8_t goes_left[256]
    cdef Py_ssize_t i, n_left = 0, n_right = 0
    cdef uint32_t row
    cdef int32_t b
    for b in range(missing):
        if t.categorical[node.feature]:
            goes_left[b] = (node.left_codes[b >> 5] >> (b & 31)) & 1
        else:
            goes_left[b] = b <= node.bin
    goes_left[missing] = node.missing_left
    for i in range(start, stop):
        row = rows[i]
        b = goes_left[bins[row]]
        rows[start + n_left] = row
        spare[n_right] = row
        n_left += b
        n_right += 1 - b
    memcpy(rows + start + n_left, spare, n_right * sizeof(uint32_t))
    return start + n_left


cdef void draw_columns(
    uint8_t* drawn, Py_ssize_t n_columns, Py_ssize_t n_drawn, uint64_t* state
) noexcept nogil:
    """Draw columns without replacement, by xorshift64*. Every set is equally likely."""
    cdef Py_ssize_t column
    cdef uint64_t number
    for column in range(n_columns):
        state[0] ^= state[0] >> 12
        state[0] ^= state[0] << 25
        state[0] ^= state[0] >> 27
        number = (state[0] * <uint64_t>2685821657736338717) >> 32
        drawn[column] = (number * <uint64_t>(n_columns - column)) >> 32 < <uint64_t>n_drawn
        n_drawn -= drawn[column]


def grow_tree(
    const uint8_t[::1, :] bins,
    const int32_t[::1] starts,
    const uint8_t[::1] lacks,
    const uint8_t[::1] categorical,
    const uint32_t[::1] learned,
    const uint32_t[::1] held,
    const float[::1] gradients,
    const float[::1] hessians,
    double[::1] raw,
    Py_ssize_t n_leaves,
    Py_ssize_t least,
    double l2,
    double rate,
    Py_ssize_t n_drawn,
    uint64_t[::1] state,
    double[::1] sums,
    double[:, ::1] numbers,
    int32_t[:, ::1] integers,
    uint32_t[:, ::1] left_codes,
):
    """Grow one tree, add its values to `raw`, and return its number of nodes.

    Parameters
    ----------
    bins : array of shape (n_rows, n_columns)
        Bin of each value. The last bin of each column is for missing values.
    starts : array of shape (n_columns + 1,)
        Cumulative numbers of bins, starting with 0.
    lacks, categorical : arrays of shape (n_columns,)
        Whether the learned rows of a column have missing values; whether bins are categories.
    learned, held : arrays
        Rows to learn from, and other rows to predict.
    gradients, hessians : arrays of shape (n_rows,)
        An empty `hessians` stands for ones.
    raw : array of shape (n_rows,)
        Scores of the rows, changed in place.
    n_leaves, least, l2, rate : numbers
        Largest number of leaves, at least 2, fewest rows of a leaf, penalty and learning rate.
    n_drawn : int
        Number of columns to draw for each node.
    state : array of shape (1,)
        State of the random numbers, not 0, changed in place.
    sums : array of at least 5 / 2 * n_leaves * starts[-1] numbers
        Memory for the histograms.
    numbers : array of shape (2 * n_leaves - 1, 2)
        The result: value and gain of each node, in the order of scikit-learn. Leaves include the
        learning rate.
    integers : array of shape (2 * n_leaves - 1, 7)
        The result: left and right child (0 for a leaf), depth, column, bin, whether missing values
        go to the left, and number of learned rows.
    left_codes : array of shape (2 * n_leaves - 1, 8)
        The result: categories that go to the left, as bits.
    """
    cdef Grower t
    cdef Py_ssize_t n = learned.shape[0], n_held = held.shape[0], i, column, middle
    cdef Py_ssize_t n_columns = bins.shape[1], n_nodes = 1, n_grown = 1, n_slots = 1, waiting
    cdef GrownNode* nodes
    cdef GrownNode* node
    cdef GrownNode* small
    cdef GrownNode* large
    cdef uint32_t* spare
    cdef uint32_t* held_rows
    cdef uint8_t* drawn  # of the left child and of the right child
    cdef uint8_t* drawn_small
    cdef uint8_t* drawn_large
    cdef uint8_t* known_small
    cdef uint8_t* known_large
    cdef int32_t* of_small  # columns to count for each child
    cdef int32_t* of_large
    cdef int32_t* stack
    cdef Py_ssize_t best, n_small, n_large
    cdef double value
    cdef void* memory = malloc(
        2 * n_leaves * (sizeof(GrownNode) + sizeof(int32_t))
        + 2 * n * sizeof(double)
        + 2 * (n + n_held + n_columns) * sizeof(int32_t)
        + (n_leaves + 2) * n_columns
    )
    if memory == NULL:
        raise MemoryError
    with nogil:
        t.n_rows, t.n_columns, t.n_bins = bins.shape[0], n_columns, starts[n_columns]
        t.bins, t.starts = &bins[0, 0], &starts[0]
        t.lacks, t.categorical = &lacks[0], &categorical[0]
        t.least, t.l2 = least, l2
        t.sums = &sums[0]
        t.counts = <uint32_t*>(t.sums + 2 * n_leaves * t.n_bins)
        nodes = <GrownNode*>memory
        t.pairs = <double*>(nodes + 2 * n_leaves)
        t.rows = <uint32_t*>(t.pairs + 2 * n)
        held_rows, spare = t.rows + n, t.rows + n + n_held
        stack = <int32_t*>(spare + n + n_held)
        of_small, of_large = stack + 2 * n_leaves, stack + 2 * n_leaves + n_columns
        t.known = <uint8_t*>(of_large + n_columns)
        drawn = t.known + n_leaves * n_columns
        t.weighted = hessians.shape[0] > 0
        memcpy(t.rows, &learned[0], n * sizeof(uint32_t))
        if n_held:
            memcpy(held_rows, &held[0], n_held * sizeof(uint32_t))
        # Step 1: the root.
        node = nodes
        memset(node, 0, sizeof(GrownNode))
        node.feature, node.stop, node.held_stop = -1, n, n_held
        for i in range(n):
            t.pairs[2 * i] = gradients[t.rows[i]]
            t.pairs[2 * i + 1] = hessians[t.rows[i]] if t.weighted else 1.0
            node.gradient += t.pairs[2 * i]
            node.hessian += t.pairs[2 * i + 1]
        if n >= 2 * least:
            draw_columns(drawn, n_columns, n_drawn, &state[0])
            memcpy(t.known, drawn, n_columns)
            n_small = 0
            for column in range(n_columns):
                if drawn[column]:
                    of_small[n_small] = column
                    n_small += 1
            count_bins(&t, node, of_small, n_small)
            for i in range(n_small):
                split_column(&t, node, of_small[i])
        # Step 2: split the node with the largest gain.
        while n_grown < n_leaves:
            best = -1
            for i in range(n_nodes):
                if nodes[i].left == 0 and nodes[i].feature >= 0:
                    if best < 0 or nodes[i].gain > nodes[best].gain:
                        best = i
            if best < 0:
                break
            node = &nodes[best]
            middle = part_rows(&t, node, t.rows, node.start, node.stop, spare)
            node.left, node.right = n_nodes, n_nodes + 1
            if not t.lacks[node.feature]:  # only rows to predict may lack a value
                node.missing_left = middle - node.start > node.stop - middle
            memset(&nodes[n_nodes], 0, 2 * sizeof(GrownNode))
            small, large = &nodes[n_nodes], &nodes[n_nodes + 1]  # left and right, up to here
            small.depth = large.depth = node.depth + 1
            small.feature = large.feature = -1
            small.start, small.stop = node.start, middle
            large.start, large.stop = middle, node.stop
            middle = part_rows(&t, node, held_rows, node.held_start, node.held_stop, spare)
            small.held_start, small.held_stop = node.held_start, middle
            large.held_start, large.held_stop = middle, node.held_stop
            small.gradient, small.hessian = node.left_gradient, node.left_hessian
            large.gradient = node.gradient - node.left_gradient
            large.hessian = node.hessian - node.left_hessian
            small.value = -small.gradient / (small.hessian + l2 + 1e-15)
            large.value = -large.gradient / (large.hessian + l2 + 1e-15)
            n_nodes += 2
            n_grown += 1
            if n_grown == n_leaves:
                break
            # Step 3: find the splits of its children.
            drawn_small, drawn_large = drawn, drawn + n_columns
            memset(drawn, 0, 2 * n_columns)
            if small.stop - small.start >= 2 * least:
                draw_columns(drawn_small, n_columns, n_drawn, &state[0])
            if large.stop - large.start >= 2 * least:
                draw_columns(drawn_large, n_columns, n_drawn, &state[0])
            if small.stop - small.start >= large.stop - large.start:
                small, large = large, small
                drawn_small, drawn_large = drawn_large, drawn_small
            if large.stop - large.start < 2 * least:
                continue
            large.slot, small.slot = node.slot, n_slots
            if small.stop - small.start >= 2 * least:
                n_slots += 1
            for i in range(node.start, node.stop):
                t.pairs[2 * i] = gradients[t.rows[i]]
            if t.weighted:
                for i in range(node.start, node.stop):
                    t.pairs[2 * i + 1] = hessians[t.rows[i]]
            known_small = t.known + small.slot * n_columns
            known_large = t.known + large.slot * n_columns  # of the parent, up to here
            n_small, n_large = 0, 0
            for column in range(n_columns):
                known_small[column] = drawn_small[column] or (
                    drawn_large[column] and known_large[column]
                )
                if known_small[column]:
                    of_small[n_small] = column
                    n_small += 1
                if drawn_large[column] and not known_large[column]:
                    of_large[n_large] = column
                    n_large += 1
            count_bins(&t, small, of_small, n_small)
            count_bins(&t, large, of_large, n_large)
            for column in range(n_columns):
                if known_small[column] and known_large[column]:
                    subtract_bins(&t, large, small, column)
                else:
                    known_large[column] = drawn_large[column]
                if drawn_small[column]:
                    split_column(&t, small, column)
                if drawn_large[column]:
                    split_column(&t, large, column)
        # Step 4: write the nodes, the left branch of each before the right, and the scores.
        stack[0], waiting, n_nodes = 0, 1, 0
        nodes[0].slot = -1
        while waiting:
            waiting -= 1
            node = &nodes[stack[waiting]]
            value = node.value
            if node.slot >= 0:  # a right child has the place of its parent here
                integers[node.slot, 1] = n_nodes
            memset(&integers[n_nodes, 0], 0, 7 * sizeof(int32_t))
            memset(&left_codes[n_nodes, 0], 0, 32)
            if node.left:
                nodes[node.left].slot, nodes[node.right].slot = -1, n_nodes
                stack[waiting], stack[waiting + 1] = node.right, node.left
                waiting += 2
                integers[n_nodes, 0] = n_nodes + 1
                integers[n_nodes, 3] = node.feature
                integers[n_nodes, 4] = node.bin
                integers[n_nodes, 5] = node.missing_left
                if t.categorical[node.feature]:
                    memcpy(&left_codes[n_nodes, 0], node.left_codes, 32)
            else:
                value *= rate
                for i in range(node.start, node.stop):
                    raw[t.rows[i]] += value
                for i in range(node.held_start, node.held_stop):
                    raw[held_rows[i]] += value
            integers[n_nodes, 2] = node.depth
            integers[n_nodes, 6] = node.stop - node.start
            numbers[n_nodes, 0] = value
            numbers[n_nodes, 1] = node.gain if node.feature >= 0 else -1.0
            n_nodes += 1
    free(memory)
    return n_nodes
