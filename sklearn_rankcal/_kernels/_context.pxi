"""Z-scores and differences from the mean inside queries, and the bins of values.

`_numpy.py` has the same functions in NumPy, with the same results to the last bit. Its
docstrings describe the arguments, and its comments give the reasons for the steps.
"""

import numpy as np

from libc.math cimport INFINITY, frexp, isfinite, ldexp, sqrt
from libc.stdint cimport int64_t

cdef enum:
    TILE = 256  # columns at a time; the numbers per column then stay in the fastest cache

ctypedef fused number:
    float
    double

ctypedef fused written:
    float
    double


def describe(
    const number[:, :] values,
    source,
    const int64_t[::1] offsets,
    written[:, :] out,
    target,
    Py_ssize_t zscore,
    Py_ssize_t difference,
    double[:, ::1] slopes,
):
    """Write the z-scores and the differences from the mean of whole queries."""
    cdef const int64_t[::1] source_rows = _row_numbers(source), target_rows = _row_numbers(target)
    cdef Py_ssize_t width = values.shape[1], q, first, stop, start
    cdef Py_ssize_t step = values.strides[0] // <Py_ssize_t> sizeof(number)
    cdef Py_ssize_t out_step = out.strides[0] // <Py_ssize_t> sizeof(written)
    if values.strides[1] != sizeof(number) or out.strides[1] != sizeof(written):
        raise ValueError("The columns of values and of out must be adjacent in memory.")
    with nogil:
        for q in range(offsets.shape[0] - 1):
            start = offsets[q]
            first = 0
            while first < width:
                stop = first + TILE if first + TILE < width else width
                _describe_tile(
                    &values[0, first], step, &source_rows[start], offsets[q + 1] - start,
                    stop - first, &out[0, first], out_step, &target_rows[start],
                    zscore, difference, &slopes[q, first],
                )
                first = stop


def _row_numbers(rows):
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


cdef void _describe_tile(
    const number *values, Py_ssize_t step, const int64_t *source, Py_ssize_t n_rows,
    Py_ssize_t width, written *out, Py_ssize_t out_step, const int64_t *target,
    Py_ssize_t zscore, Py_ssize_t difference, double *slopes,
) noexcept nogil:
    """Describe one query in at most TILE columns; rows are `step` numbers apart."""
    cdef double low[TILE]  # the smallest value; from step 2 on, times 2^-exponent
    cdef double high[TILE]  # the largest value
    cdef double count[TILE]  # of finite values, but at least 1
    cdef double factor[TILE]  # 2^-exponent
    cdef double total[TILE]
    cdef double mean[TILE]
    cdef double inverse[TILE]  # 1 / sd, in the unit 2^exponent
    cdef int exponent[TILE]
    cdef double v, constant
    cdef bint some_missing = False
    cdef int bits
    cdef Py_ssize_t i, j
    # 1. The smallest and the largest value. v - v is NaN if v is not finite, and 0 otherwise.
    for j in range(width):
        low[j] = INFINITY
        high[j] = -INFINITY
        total[j] = 0.0
    for i in range(n_rows):
        _find_range(values + source[i] * step, width, low, high, total)
    for j in range(width):
        count[j] = n_rows
        some_missing |= total[j] != 0.0
    if some_missing:
        _find_finite_range(values, step, source, n_rows, width, low, high, count)
    # 2. The smallest power of two above the spread.
    for j in range(width):
        v = high[j] - low[j]
        frexp(v if isfinite(v) else 0.5 * high[j] - 0.5 * low[j], &exponent[j])
        exponent[j] += not isfinite(v)
        if exponent[j] < -1023:
            exponent[j] = -1023
        factor[j] = ldexp(1.0, -exponent[j])
        low[j] *= factor[j]
        total[j] = 0.0
    # 3. The mean and the standard deviation.
    frexp(<double> n_rows, &bits)
    constant = ldexp(1.5, bits + 1)
    for i in range(n_rows):
        if some_missing:
            _add_finite(values + source[i] * step, width, factor, low, constant, total)
        else:
            _add(values + source[i] * step, width, factor, low, constant, total)
    for j in range(width):
        mean[j] = total[j] / count[j]
        total[j] = 0.0
    for i in range(n_rows):
        if some_missing:
            _add_finite_squares(values + source[i] * step, width, factor, low, mean, constant, total)
        else:
            _add_squares(values + source[i] * step, width, factor, low, mean, constant, total)
    for j in range(width):
        v = sqrt(total[j] / count[j])
        inverse[j] = 1.0 / v if v > 0.0 else 0.0
        v = ldexp(inverse[j], -exponent[j])
        slopes[j] = v if isfinite(v) else 0.0
    # 4. The columns.
    if zscore >= 0:
        for i in range(n_rows):
            _write(
                values + source[i] * step, width, factor, low, mean, inverse,
                out + target[i] * out_step + zscore,
            )
    if difference >= 0:
        # 2^1024 and 2^1025 exceed the largest number: multiply by 2^1000 and then by the rest.
        for j in range(width):
            bits = exponent[j] if exponent[j] < 1000 else 1000
            inverse[j] = ldexp(1.0, bits)
            high[j] = ldexp(1.0, exponent[j] - bits)
        for i in range(n_rows):
            _write_difference(
                values + source[i] * step, width, factor, low, mean, inverse, high,
                out + target[i] * out_step + difference,
            )
    if some_missing:
        for i in range(n_rows):
            if zscore >= 0:
                _copy_missing(values + source[i] * step, width, out + target[i] * out_step + zscore)
            if difference >= 0:
                _copy_missing(values + source[i] * step, width, out + target[i] * out_step + difference)


# Each of the following functions handles one row. The loops over its columns are simple enough for
# compilers to use vector instructions.


cdef inline void _find_range(
    const number *row, Py_ssize_t width, double *low, double *high, double *odd
) noexcept nogil:
    cdef Py_ssize_t j
    cdef double v
    for j in range(width):
        v = row[j]
        low[j] = v if v < low[j] else low[j]
        high[j] = v if v > high[j] else high[j]
        odd[j] += v - v


cdef void _find_finite_range(
    const number *values, Py_ssize_t step, const int64_t *source, Py_ssize_t n_rows,
    Py_ssize_t width, double *low, double *high, double *count,
) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double v
    for j in range(width):
        low[j] = INFINITY
        high[j] = -INFINITY
        count[j] = 0.0
    for i in range(n_rows):
        for j in range(width):
            v = values[source[i] * step + j]
            if isfinite(v):
                low[j] = v if v < low[j] else low[j]
                high[j] = v if v > high[j] else high[j]
                count[j] += 1.0
    for j in range(width):
        if count[j] == 0.0:
            low[j] = 0.0
            high[j] = 0.0
            count[j] = 1.0


cdef inline void _add(
    const number *row, Py_ssize_t width, const double *factor, const double *low,
    double constant, double *total,
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(width):
        total[j] += (row[j] * factor[j] - low[j] + constant) - constant


cdef inline void _add_finite(
    const number *row, Py_ssize_t width, const double *factor, const double *low,
    double constant, double *total,
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(width):
        if isfinite(row[j]):
            total[j] += (row[j] * factor[j] - low[j] + constant) - constant


cdef inline void _add_squares(
    const number *row, Py_ssize_t width, const double *factor, const double *low,
    const double *mean, double constant, double *total,
) noexcept nogil:
    cdef Py_ssize_t j
    cdef double v
    for j in range(width):
        v = row[j] * factor[j] - low[j] - mean[j]
        total[j] += (v * v + constant) - constant


cdef inline void _add_finite_squares(
    const number *row, Py_ssize_t width, const double *factor, const double *low,
    const double *mean, double constant, double *total,
) noexcept nogil:
    cdef Py_ssize_t j
    cdef double v
    for j in range(width):
        if isfinite(row[j]):
            v = row[j] * factor[j] - low[j] - mean[j]
            total[j] += (v * v + constant) - constant


cdef inline void _write(
    const number *row, Py_ssize_t width, const double *factor, const double *low,
    const double *mean, const double *inverse, written *target,
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(width):
        target[j] = <written> ((row[j] * factor[j] - low[j] - mean[j]) * inverse[j])


cdef inline void _write_difference(
    const number *row, Py_ssize_t width, const double *factor, const double *low,
    const double *mean, const double *unit, const double *rest, written *target,
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(width):
        target[j] = <written> ((row[j] * factor[j] - low[j] - mean[j]) * unit[j] * rest[j])


cdef inline void _copy_missing(
    const number *row, Py_ssize_t width, written *target
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(width):
        if not isfinite(row[j]):
            target[j] = <written> row[j]


def find_bins(const double[::1] bounds, const double[::1] values):
    """Return the number of bounds that are not above each value.

    This binary search does the same work for every value. NumPy's search branches if a bound is
    above the value, which processors cannot predict, and takes six times as long.
    """
    cdef Py_ssize_t i, first, left, half
    cdef double v
    result = np.empty(values.shape[0], dtype=np.int64)
    cdef int64_t[::1] bins = result
    with nogil:
        for i in range(values.shape[0]):
            v = values[i]
            # The bounds before `first` are not above v; those from `first + left` on are above v.
            first = 0
            left = bounds.shape[0]
            while left > 1:
                half = left >> 1
                first = first + half if bounds[first + half - 1] <= v else first
                left -= half
            bins[i] = first + (bounds[first] <= v)
    return result
