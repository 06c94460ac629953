"""Fits of the Bradley-Terry model of few items with one contrast fixed, or one more vote."""

import numpy as np
from libc.math cimport exp, fabs, log1p, sqrt
from libc.stdint cimport int64_t, uint8_t

# as in `aggregation._evidence`
cdef enum:
    NEWTON_STEPS = 40
    STEP_HALVINGS = 30


cdef double evaluate_profile(
    const int64_t[::1] first,
    const int64_t[::1] second,
    const double[::1] won,
    const double[::1] lost,
    const double[::1] ridge,
    const double[::1] c,
    double at,
    bint fixed,
    const double *x,
    double *gradient,
    double *hessian,
) noexcept nogil:
    """Return minus the log-likelihood, and fill its derivatives (the lower triangle of rows)."""
    cdef Py_ssize_t i, j, v, n = ridge.shape[0]
    cdef double value = 0.0, lead, distance, small, unlikely, total, against, slope, bend, ahead
    for i in range(n):
        value += ridge[i] * x[i] * x[i] / 2
        gradient[i] = ridge[i] * x[i]
        for j in range(i):
            hessian[i * n + j] = 0.0
        hessian[i * n + i] = ridge[i]
    for v in range(first.shape[0]):
        i, j = first[v], second[v]
        lead = x[i] - x[j]
        distance = fabs(lead)
        total = won[v] + lost[v]
        small = exp(-distance)
        unlikely = small / (1 + small)
        against = lost[v] if lead >= 0 else won[v]
        value += total * log1p(small) + against * distance
        slope = against - total * unlikely
        if lead < 0:
            slope = -slope
        bend = total * unlikely * (1 - unlikely)
        gradient[i] += slope
        gradient[j] -= slope
        hessian[i * n + i] += bend
        hessian[j * n + j] += bend
        hessian[max(i, j) * n + min(i, j)] -= bend
    if fixed:
        return value
    ahead = -at
    for i in range(n):
        ahead += c[i] * x[i]
    small = exp(-fabs(ahead))
    value += log1p(small) + max(ahead, 0.0)
    slope = (1.0 if ahead >= 0 else small) / (1 + small)
    bend = small / ((1 + small) * (1 + small))
    for i in range(n):
        gradient[i] += slope * c[i]
        for j in range(i + 1):
            hessian[i * n + j] += bend * c[i] * c[j]
    return value


cdef void factorize(double *a, Py_ssize_t n) noexcept nogil:
    """Overwrite the lower triangle of a positive definite matrix with its Cholesky factor."""
    cdef Py_ssize_t i, j, k
    cdef double total
    for i in range(n):
        for j in range(i + 1):
            total = a[i * n + j]
            for k in range(j):
                total -= a[i * n + k] * a[j * n + k]
            a[i * n + j] = total / a[j * n + j] if i > j else sqrt(max(total, 1e-300))


cdef void divide(const double *a, const double *b, double *x, Py_ssize_t n) noexcept nogil:
    """Solve L L^T x = b."""
    cdef Py_ssize_t i, k
    cdef double total
    for i in range(n):
        total = b[i]
        for k in range(i):
            total -= a[i * n + k] * x[k]
        x[i] = total / a[i * n + i]
    for i in range(n - 1, -1, -1):
        total = x[i]
        for k in range(i + 1, n):
            total -= a[k * n + i] * x[k]
        x[i] = total / a[i * n + i]


def fit_profiles(
    const int64_t[::1] first,
    const int64_t[::1] second,
    const double[::1] won,
    const double[::1] lost,
    const double[::1] ridge,
    const double[:, ::1] contrasts,
    const double[::1] at,
    const uint8_t[::1] fixed,
    double[:, ::1] x,
    double[::1] values,
    double[::1] slopes,
):
    """Minimise from `x`, in place, for each contrast. Also return the values and the slopes.

    Newton's method with a line search, in O(n_pairs + n_items^3) time a step.
    """
    cdef Py_ssize_t n = ridge.shape[0], line, i, step, halving
    cdef double value, trial_value = 0.0, decrement, across, along, reach, largest, slope
    memory = np.empty(5 * n + 2 * n * n)
    cdef double[::1] work = memory
    cdef double *gradient = &work[0]
    cdef double *move = gradient + n
    cdef double *pull = move + n
    cdef double *trial = pull + n
    cdef double *trial_gradient = trial + n
    cdef double *hessian = trial_gradient + n
    cdef double *trial_hessian = hessian + n * n
    with nogil:
        for line in range(contrasts.shape[0]):
            value = evaluate_profile(
                first, second, won, lost, ridge, contrasts[line], at[line], fixed[line],
                &x[line, 0], gradient, hessian,
            )
            for step in range(NEWTON_STEPS):
                factorize(hessian, n)
                divide(hessian, gradient, move, n)
                if fixed[line]:
                    divide(hessian, &contrasts[line, 0], pull, n)
                    across = along = 0.0
                    for i in range(n):
                        across += contrasts[line, i] * move[i]
                        along += contrasts[line, i] * pull[i]
                    for i in range(n):
                        pull[i] /= along
                        move[i] -= across * pull[i]
                decrement = largest = 0.0
                for i in range(n):
                    decrement += gradient[i] * move[i]
                    largest = max(largest, fabs(move[i]))
                reach = min(1.0, 5.0 / max(largest, 1e-300))
                for halving in range(STEP_HALVINGS):
                    for i in range(n):
                        trial[i] = x[line, i] - reach * move[i]
                    trial_value = evaluate_profile(
                        first, second, won, lost, ridge, contrasts[line], at[line], fixed[line],
                        trial, trial_gradient, trial_hessian,
                    )
                    if trial_value <= value - 1e-4 * reach * decrement + 1e-12:
                        break
                    reach /= 2
                value = trial_value
                for i in range(n):
                    x[line, i] = trial[i]
                gradient, trial_gradient = trial_gradient, gradient
                hessian, trial_hessian = trial_hessian, hessian
                if decrement <= 1e-7:
                    break
            values[line] = value
            slope = 0.0
            if fixed[line]:
                for i in range(n):
                    slope += gradient[i] * pull[i]
            slopes[line] = slope
