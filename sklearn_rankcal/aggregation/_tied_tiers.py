"""The probability that tied items precede all lower items in the Plackett-Luce model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]

_BLOCK = 1 << 20  # numbers in the largest temporary array


def tier_nodes(m: int) -> Floats:
    """Return the logarithms s of the quadrature nodes for tiers of m items.

    The integrand, as a function of s = log(t), is log-concave and analytic, and at both ends falls
    at least as fast as exp(-abs(s)). For such functions the trapezoidal rule converges faster than
    any power of its step. The step follows the width of a gamma density of m + 1 degrees. What is
    cut off below t = exp(-25) is at most 1.4e-11 of the integral.
    """
    step = 0.33 / np.sqrt(1 + m / 6)
    return np.arange(-25.0, np.log(m + 14 * np.sqrt(m) + 40), step)


def tier_probabilities(z: Floats) -> tuple[Floats, Floats, Floats]:
    """Compute log P, its gradient and the negative of its Hessian matrix, for several tiers.

    P is the probability that all m items of a tier precede all lower items, in whatever order among
    themselves. With weights w_i of the items and W of the lower items together, and z_i = log(w_i /
    W), it is

        P = integral over t > 0 of exp(-t) product over i of (1 - exp(-exp(z_i) t)) dt,

    which is the integral over u in (0, 1) of product of (1 - u^(w_i / W)), with u = exp(-t). Items
    arrive after exponential times with rates w_i; t is the time, in units of 1 / W, of the first
    arrival among the lower items.

    Parameters
    ----------
    z : ndarray of shape (n_tiers, m)

    Returns
    -------
    log_p : ndarray of shape (n_tiers,)
    gradient : ndarray of shape (n_tiers, m)
        Derivatives of log P by z, positive.
    curvature : ndarray of shape (n_tiers, m, m)
        The negative of the second derivatives, positive semidefinite because log P is concave: P is
        the integral of a log-concave function (Prekopa), namely the density of the logarithms of
        the times on the convex set where the items of the tier precede the others.

    Notes
    -----
    The relative error is below 1e-9. The number of nodes is about 100 for two items and grows with
    the square root of m. The cost is O(n_tiers m (n_nodes + m)), and O(n_tiers m^2 n_nodes) for the
    curvature.

    Examples
    --------
    Two items, and one lower item, all with the same weight:

    >>> import numpy as np
    >>> from sklearn_rankcal.aggregation._tied_tiers import tier_probabilities
    >>> log_p, gradient, _ = tier_probabilities(np.zeros((1, 2)))
    >>> np.exp(log_p).round(8).tolist(), gradient.round(8).tolist()
    ([0.33333333], [[0.41666667, 0.41666667]])
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
