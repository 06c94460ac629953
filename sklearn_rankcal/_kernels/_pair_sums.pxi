"""Sums over the pairs of documents of each query of a convex function of their margin.

`surrogates._pair_sums` describes the arguments, and has the same function in NumPy.
"""

from libc.math cimport exp, fabs, log, log1p
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

cdef enum:
    LOGISTIC = 0
    EXPONENTIAL = 1
    HINGE = 2
    SQUARED_HINGE = 3
    SMOOTH_HINGE = 4

cdef enum:
    UTILITY = 0
    BINARY = 1
    DIFFERENCE = 2

cdef enum:
    FACTORS = 512  # numbers from 1 to 2 to multiply before taking a logarithm

#: If the scores of a query differ by more, they are not converted to ratios of exponentials.
cdef double WIDEST = 600.0


def pair_sums(
    const double[::1] v,
    const double[::1] s,
    const int64_t[::1] offsets,
    Py_ssize_t first,
    Py_ssize_t last,
    int margin,
    int weighting,
    int required,
    double[::1] value,
    double[::1] gradient,
    double[::1] curvature,
):
    """Sum the pairs of the queries from `first` to `last` (excluded)."""
    cdef Py_ssize_t q, i, r, start, longest = 1
    cdef double low, high
    cdef double *work
    for q in range(first, last):
        if offsets[q + 1] - offsets[q] > longest:
            longest = offsets[q + 1] - offsets[q]
    work = <double *> malloc(3 * longest * sizeof(double))
    if work == NULL:
        raise MemoryError()
    with nogil:
        for q in range(first, last):
            start = offsets[q]
            r = offsets[q + 1] - start
            value[q] = 0.0
            for i in range(r):
                gradient[start + i] = 0.0
                curvature[start + i] = 0.0
            low = s[start]
            high = s[start]
            for i in range(r):
                low = s[start + i] if s[start + i] < low else low
                high = s[start + i] if s[start + i] > high else high
            if margin == LOGISTIC and required < 0 and high - low < WIDEST:
                value[q] = _logistic(
                    &v[start], &s[start], r, high, weighting, &gradient[start],
                    &curvature[start], work, work + longest, work + 2 * longest,
                )
            else:
                value[q] = _any(
                    &v[start], &s[start], r, margin, weighting, required, &gradient[start],
                    &curvature[start],
                )
    free(work)


cdef double _logistic(
    const double *v, const double *s, Py_ssize_t r, double high, int weighting,
    double *gradient, double *curvature, double *up, double *down, double *product,
) noexcept nogil:
    """Sum logistic margins with one exponential for each document.

    With up_i = e^(s_i - high), the derivative of the margin of i over j is -up_j / (up_i + up_j),
    and its value is the logarithm of (up_i + up_j) / up_i. This is max(s_j - s_i, 0) plus the
    logarithm of (up_i + up_j) / max(up_i, up_j), a number from 1 to 2. To save logarithms, these
    numbers are multiplied as long as their product cannot overflow.
    """
    cdef Py_ssize_t i, j, n_factors
    cdef double total = 0.0, own, over, under, both, t, p, d, factor, g, h, a, b
    for i in range(r):
        up[i] = exp(s[i] - high)
        down[i] = 1.0 / up[i]
        product[i] = 1.0
    for i in range(r):
        own = 1.0
        n_factors = 0
        g = 0.0
        h = 0.0
        for j in range(i + 1, r):
            if weighting == UTILITY:
                over = v[i]
                under = v[j]
            else:
                d = v[i] - v[j]
                if d == 0.0:
                    continue
                if weighting == BINARY:
                    over = 1.0 if d > 0.0 else 0.0
                    under = 1.0 - over
                else:
                    over = d if d > 0.0 else 0.0
                    under = -d if d < 0.0 else 0.0
            t = up[i] + up[j]
            p = up[j] / t  # the derivative of the margin of j over i; for i over j, it is 1 - p
            a = over * p
            b = under * (1.0 - p)
            g += b - a
            gradient[j] += a - b
            both = a * (1.0 - p) + b * p
            h += both
            curvature[j] += both
            factor = t * (down[i] if down[i] < down[j] else down[j])
            d = s[j] - s[i]
            total += over * d if d > 0.0 else -under * d
            if weighting == UTILITY:
                own *= factor
                product[j] *= factor
            elif weighting == BINARY:
                own *= factor
            else:
                total += (over + under) * log(factor)
            # Excluded pairs do not reach this line: j does not count the factors.
            n_factors += 1
            if n_factors % FACTORS == 0:
                total += (v[i] if weighting == UTILITY else 1.0) * log(own)
                own = 1.0
        gradient[i] += g
        curvature[i] += h
        total += (v[i] if weighting == UTILITY else 1.0) * log(own)
        if weighting == UTILITY and (i + 1) % FACTORS == 0:
            for j in range(r):
                total += v[j] * log(product[j])
                product[j] = 1.0
    if weighting == UTILITY:
        for j in range(r):
            total += v[j] * log(product[j])
    return total


cdef double _any(
    const double *v, const double *s, Py_ssize_t r, int margin, int weighting, int required,
    double *gradient, double *curvature,
) noexcept nogil:
    """Sum the margins of all ordered pairs with a weight, one pair at a time."""
    cdef Py_ssize_t i, j
    cdef double total = 0.0, weight, d, value = 0.0, slope = 0.0, bend = 0.0, g, h, low, e
    for i in range(r):
        g = 0.0
        h = 0.0
        for j in range(r):
            d = v[i] - v[j]
            if weighting == UTILITY:
                weight = v[i] if i != j else 0.0
            elif weighting == BINARY:
                weight = 1.0 if d > 0.0 else 0.0
            else:
                weight = d if d > 0.0 else 0.0
            if weight == 0.0:
                continue
            if required == BINARY:
                d = 1.0
            elif required < 0:
                d = 0.0
            d = s[i] - s[j] - d
            if margin == LOGISTIC:
                e = exp(-fabs(d))
                low = e / (1.0 + e)
                value = log1p(e) + (-d if d < 0.0 else 0.0)
                slope = -low if d > 0.0 else low - 1.0
                bend = low * (1.0 - low)
            elif margin == EXPONENTIAL:
                e = exp(-d if d > -400.0 else 400.0)  # a straight line below d = -400
                value = e if d > -400.0 else e * (-399.0 - d)
                slope = -e
                bend = e
            elif margin == HINGE:
                value = 1.0 - d if d < 1.0 else 0.0
                slope = -1.0 if d < 1.0 else 0.0
                bend = 0.0
            elif margin == SQUARED_HINGE:
                e = 1.0 - d if d < 1.0 else 0.0
                value = e * e
                slope = -2.0 * e
                bend = 2.0 if d < 1.0 else 0.0
            else:
                e = 1.0 - d if d < 1.0 else 0.0
                value = 0.5 * e * e if e <= 1.0 else e - 0.5
                slope = -e if e <= 1.0 else -1.0
                bend = 1.0 if e > 0.0 and e < 1.0 else 0.0
            total += weight * value
            g += weight * slope
            h += weight * bend
            gradient[j] -= weight * slope
            curvature[j] += weight * bend
        gradient[i] += g
        curvature[i] += h
    return total
