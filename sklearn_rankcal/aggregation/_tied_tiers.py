"""The probability that tied items precede all lower items in the Plackett-Luce model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]

_BLOCK = 1 << 20  # numbers in the largest temporary array


def tier_nodes(m: int) -> Floats:
    """Return the logarithms s of the quadrature nodes for tiers of m items.

    As a function of s = log(t), the integrand is log-concave and analytic, so that the trapezoidal
    rule converges faster than any power of its step. The step follows the width of a gamma density
    of m + 1 degrees. What is cut off below t = exp(-25) is at most 1.4e-11 of the integral.
    """
    step = 0.33 / np.sqrt(1 + m / 6)
    return np.arange(-25.0, np.log(m + 14 * np.sqrt(m) + 40), step)


def tier_probabilities(z: Floats) -> tuple[Floats, Floats, Floats]:
    """Compute log P, its gradient and the negative of its Hessian matrix, for several tiers.

    P is the probability that all m items of a tier precede all lower items, in any order. With the
    weights w_i of the items, W of the lower items together, and z_i = log(w_i / W), it is the
    integral over t > 0 of exp(-t) product over i of (1 - exp(-exp(z_i) t)): items arrive at rates
    w_i, and t is the first arrival among the lower ones, in units of 1 / W. The relative error is
    below 1e-9. `z` has shape (n_tiers, m). The time is O(n_tiers m^2 n_nodes), with about 100 nodes
    for m = 2, and the square root of m as many for more.
    """
    n, m = z.shape
    s = tier_nodes(m)
    log_p, gradient = np.empty(n), np.empty((n, m))
    curvature = np.empty((n, m, m))
    size = max(1, _BLOCK // (m * len(s)))
    for start in range(0, n, size):
        block = slice(start, start + size)
        # y_i = exp(z_i) t, of shape (n_block, m, n_nodes). Beyond exp(6.5), 1 - exp(-y) is 1.
        y = np.exp(np.minimum(z[block, :, None] + s, 6.5))
        log_f = np.log(-np.expm1(-y)).sum(axis=1) + (s - np.exp(s))
        total = logsumexp(log_f, axis=1)
        density = np.exp(log_f - total[:, None])
        first = y / np.expm1(y)  # of log(1 - exp(-exp(z))) by z
        second = first * (1 - y - first)
        log_p[block] = total + np.log(s[1] - s[0])
        gradient[block] = np.einsum("nik,nk->ni", first, density)
        weighted = first * density[:, None, :]
        products = weighted @ first.transpose(0, 2, 1)
        mean = gradient[block]
        curvature[block] = mean[:, :, None] * mean[:, None, :] - products
        diagonal = np.arange(m)
        curvature[block, diagonal, diagonal] -= np.einsum("nik,nk->ni", second, density)
    return log_p, gradient, curvature
