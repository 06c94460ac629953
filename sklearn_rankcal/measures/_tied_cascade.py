"""Expected reciprocal rank of documents whose scores tie: the mean over all orders of the block.

A block of m tied documents stands below k0 others. Its documents stop the user with probabilities
R_1, .., R_m. Let E_t be the mean over the t-subsets of the block of prod (1 - R). A user who
reaches the block stops at its t-th place with probability E_(t-1) - E_t, so that the block adds

    V = sum over t = 1 .. T of (E_(t-1) - E_t) / (k0 + t)

to the measure, with T = m, or fewer where a cutoff ends inside the block. Three ways to compute it:

* `by_documents`: add one document after the other to E_0 .. E_T. O(m T), for any T.
* `by_places`: E_1, E_2, .. in turn, each from the means without one document. O(m T) too, but in
  T vectorised steps. Its rounding errors can grow like exp(T^2 / m), so it is used for T^2 <= m.
* `by_quadrature`: for T = m. O(m) times a number of nodes that does not depend on m.

The formula of the last one. Let the documents arrive at independent uniform times, the order of
arrival being their order. Write 1 / (k0 + 1 + N) as the integral of s^(k0 + N) over s in [0, 1],
where N counts the documents that arrived before. Then V is the integral over x and s in [0, 1] of

    s^k0 sum_i R_i prod over j != i of (1 - x + x s (1 - R_j)).

With u = 1 - x + x s and y = x s / u each factor is u (1 - y R_j), so that V is the integral over y
of -B'(y) K(y), with B(y) = prod_j (1 - y R_j) and

    K(y) = integral over w > 0 of (1 + (e^w - 1) / y)^(-k0) / (y + e^w - 1) e^(-m w) dw.

Every factor is positive, so nothing cancels. Both integrals become integrals over the real line by
y = 1 / (1 + e^-q) and w = e^p, of functions that are analytic and bounded where the imaginary part
of q and p is below pi / 2: there |1 - y R| <= 1 and |y / (y + e^w - 1)| <= 1. The trapezoidal rule
with step h has then an error of about exp(-pi^2 / h), below 1e-21 of the size of the integrand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEP = 0.2  # of both trapezoidal rules
_NEGLIGIBLE = 45.0  # exp(-45) = 3e-20: what is smaller than that is left out
_CELLS = 1 << 22  # entries of a table of nodes and documents held at a time
LONG_BLOCK = 1000  # documents from which the quadrature is faster than the recursion


def block_value(passing: Floats, above: int, places: int) -> float:
    """V of one block.

    Parameters
    ----------
    passing : ndarray of shape (m,)
        1 - R of the documents of the block.
    above : int
        k0, the number of documents that stand above the block.
    places : int
        T, the number of places of the block that count, 1 <= T <= m.

    Returns
    -------
    value : float
        The mean over the orders of the block of what it adds, for a user who reaches it.
    """
    # Maclaurin's inequality: E_t <= E_1^t, and what the places beyond T add is at most E_T
    mean = float(passing.mean())
    if places < len(passing) and mean > 0 and -places * np.log(mean) < _NEGLIGIBLE:
        by = by_places if places**2 <= len(passing) else by_documents
        stopping = -np.diff(by(passing, places))
        return float((stopping / (above + np.arange(1, places + 1))).sum())
    return by_quadrature(passing, above)


def by_documents(passing: Floats, places: int) -> Floats:
    """E_0 .. E_T of the last axis of `passing`, one document added after the other."""
    m = passing.shape[-1]
    mean = np.zeros((*passing.shape[:-1], places + 1))
    mean[..., 0] = 1.0
    for seen in range(1, m + 1):
        size = np.arange(1, min(seen, places) + 1)
        last = size[-1]
        mean[..., 1 : last + 1] = (
            (seen - size) * mean[..., 1 : last + 1]
            + size * passing[..., seen - 1 : seen] * mean[..., :last]
        ) / seen
    return mean


def by_places(passing: Floats, places: int) -> Floats:
    """E_0 .. E_T of one block, by the means of the block without one document."""
    m = len(passing)
    mean = np.ones(places + 1)
    without = np.ones(m)  # E_t of the block without document i
    for t in range(1, places + 1):
        mean[t] = (passing * without).mean()
        if t < m:
            without = (m * mean[t] - t * passing * without) / (m - t)
    return mean


def by_quadrature(passing: Floats, above: int) -> float:
    """V of a whole block, T = m, as the integral of -B'(y) K(y)."""
    m = len(passing)
    distinct, count = np.unique(passing, return_counts=True)
    satisfaction = 1.0 - distinct
    total = float((count * satisfaction).sum())
    if total == 0.0:
        return 0.0
    # y: the integrand is at most y times the sum of R, and B(y) at most exp(-y times that sum)
    low = -np.log(total) - _NEGLIGIBLE - np.log(m)
    high = _NEGLIGIBLE
    if total > 2 * _NEGLIGIBLE:
        high = np.log(_NEGLIGIBLE) - np.log(total - _NEGLIGIBLE)
    q = np.arange(low, high + _STEP, _STEP)
    y, rest = 1.0 / (1.0 + np.exp(-q)), 1.0 / (1.0 + np.exp(q))  # rest = 1 - y
    density = np.empty_like(y)
    step = max(1, _CELLS // len(distinct))
    for first in range(0, len(y), step):
        part = slice(first, first + step)
        # 1 - y R = (1 - y) + y (1 - R): no cancellation, and above 0 also where R is 1
        factor = rest[part, None] + y[part, None] * distinct
        log_product = (count * np.log(factor)).sum(axis=1)
        density[part] = np.exp(log_product) * (count * satisfaction / factor).sum(axis=1)
    return float((density * _kernel(y, m, above) * y * rest).sum() * _STEP)


def _kernel(y: Floats, m: int, above: int) -> Floats:
    """K(y)."""
    high = np.log(_NEGLIGIBLE / m)
    scale = np.log(y[0] / (m * y[0] + above + 1))  # below it the integrand falls like w
    p = np.arange(high, scale - _NEGLIGIBLE, -_STEP)
    w = np.exp(p)
    grown = np.expm1(w)
    kernel = np.empty_like(y)
    step = max(1, _CELLS // len(p))
    for first in range(0, len(y), step):
        part = y[first : first + step, None]
        log_value = p - m * w - above * np.log1p(grown / part) - np.log(part + grown)
        kernel[first : first + step] = np.exp(log_value).sum(axis=1)
    return kernel * _STEP
