"""Compute the contribution of a block of tied documents to ERR, averaged over all their orders.

A block of m tied documents is below k0 documents. Its documents stop the user with probabilities
R_1, .., R_m. Let E_t be the mean of prod (1 - R) over all subsets of t documents of the block. A
user who reaches the block stops at its t-th place with probability E_(t-1) - E_t. The block
therefore adds

    V = sum over t = 1 .. T of (E_(t-1) - E_t) / (k0 + t)

to the measure. T is m, or less if a cutoff is inside the block. There are three algorithms:

- `by_documents` computes V in O(m T).
- `by_places` takes T vectorised steps. It is used for T^2 <= m, because its rounding errors can
  grow like exp(T^2 / m).
- `by_quadrature` requires T = m, and takes O(m) times a fixed number of nodes.

The formula of `by_quadrature` is derived as follows. Let the documents arrive at independent
uniform times, and let the order of arrival be their order. Write 1 / (k0 + 1 + N) as the integral
of s^(k0 + N) over s in [0, 1], where N is the number of documents that arrived before. Then V is
the integral over x and s in [0, 1] of

    s^k0 sum_i R_i prod over j != i of (1 - x + x s (1 - R_j)).

With u = 1 - x + x s and y = x s / u, each factor is u (1 - y R_j). Therefore V is the integral over
y of -B'(y) K(y), with B(y) = prod_j (1 - y R_j) and

    K(y) = integral over w > 0 of (1 + (e^w - 1) / y)^(-k0) / (y + e^w - 1) e^(-m w) dw.

Every factor is positive, so nothing cancels. With y = 1 / (1 + e^-q) and w = e^p, both integrands
are analytic and bounded where the imaginary parts of q and p are below pi / 2, because
|1 - y R| <= 1 and |y / (y + e^w - 1)| <= 1 there. The trapezoidal rule with step h then has an
error of about exp(-pi^2 / h), below 1e-21 of the size of the integrand.
"""

from __future__ import annotations

import numpy as np

from sklearn_rankcal.utils._typing import Floats

_STEP = 0.2  # step h of both trapezoidal rules
_NEGLIGIBLE = 45.0  # terms below exp(-45) = 3e-20 of the total are left out
_CELLS = 1 << 22  # largest number of entries of a table of nodes and documents at a time
LONG_BLOCK = 1000  # with at least this many documents, quadrature is faster than the recursion


def block_value(passing: Floats, above: int, places: int) -> float:
    """Return V of one block, given 1 - R of its documents, k0 = `above` and T = `places`."""
    # The places after T add at most E_T to V, and E_T <= E_1^T by Maclaurin's inequality. If this
    # is negligible, V of the whole block is computed instead.
    mean = float(passing.mean())
    if places < len(passing) and mean > 0 and -places * np.log(mean) < _NEGLIGIBLE:
        by = by_places if places**2 <= len(passing) else by_documents
        stopping = -np.diff(by(passing, places))
        return float((stopping / (above + np.arange(1, places + 1))).sum())
    return by_quadrature(passing, above)


def discounted_block_value(passing: Floats, divisor: Floats) -> float:
    """Return the value of one block with the discounts 1 / `divisor` for its places."""
    places, mean = len(divisor), float(passing.mean())
    if mean == 0:
        places = 1
    elif mean < 1:  # by Maclaurin's inequality, as in `block_value`; F is at least 1
        places = min(places, int(np.ceil(-_NEGLIGIBLE / np.log(mean))))
    stopping = -np.diff(by_documents(passing, places))
    return float((stopping / divisor[:places]).sum())


def by_documents(passing: Floats, places: int) -> Floats:
    """Return E_0 .. E_T along the last axis of `passing`, adding one document at a time.

    Document s is in a share t / s of the subsets of t of the first s documents. Therefore
    E_t(s) = ((s - t) E_t(s - 1) + t (1 - R_s) E_(t-1)(s - 1)) / s.
    """
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
    """Return E_0 .. E_T of one block, from the means of the block without one document.

    Let W_t(i) be E_t of the block without document i. A random subset of t documents consists of a
    random document i and a random subset of t - 1 other documents. Therefore E_t is the mean over i
    of (1 - R_i) W_(t-1)(i). W_t follows from m E_t = t (1 - R_i) W_(t-1)(i) + (m - t) W_t(i).
    """
    m = len(passing)
    mean = np.ones(places + 1)
    without = np.ones(m)  # W_t
    for t in range(1, places + 1):
        mean[t] = (passing * without).mean()
        if t < m:
            without = (m * mean[t] - t * passing * without) / (m - t)
    return mean


def by_quadrature(passing: Floats, above: int) -> float:
    """Return V of a whole block (T = m), as the integral of -B'(y) K(y)."""
    m = len(passing)
    distinct, count = np.unique(passing, return_counts=True)
    satisfaction = 1.0 - distinct
    total = float((count * satisfaction).sum())
    if total == 0.0:
        return 0.0
    # Range of q. Lower end: the integrand is at most y sum(R). Upper end: B(y) <= exp(-y sum(R)).
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
        # compute 1 - y R as (1 - y) + y (1 - R): nothing cancels, and it is above 0 for R = 1
        factor = rest[part, None] + y[part, None] * distinct
        log_product = (count * np.log(factor)).sum(axis=1)
        density[part] = np.exp(log_product) * (count * satisfaction / factor).sum(axis=1)
    return float((density * _kernel(y, m, above) * y * rest).sum() * _STEP)


def _kernel(y: Floats, m: int, above: int) -> Floats:
    """Return the function K(y) of the module's docstring, at every node y."""
    high = np.log(_NEGLIGIBLE / m)
    scale = np.log(y[0] / (m * y[0] + above + 1))  # below this p the integrand falls like w
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
