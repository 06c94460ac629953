"""Ranks of all items at the same time, and the items that may be first."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtri, stdtrit

from sklearn_rankcal.aggregation._contest_boards import pair_errors
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

_DRAWS = 10_000
#: Above so many items, the quantile of Bonferroni is taken, which is a little larger.
_MAX_ITEMS = 400


def simultaneous_ranks(
    scores: Floats, covariance: Floats, degrees: float, level: float
) -> tuple[Ints, Ints]:
    """Return the best and the worst rank of each item, all of them right with this confidence.

    An item is above another if the difference of their scores, divided by its standard error,
    exceeds a quantile of the largest such ratio of all pairs (Mogstad et al., 2024). The quantile
    is that of 10,000 draws up to 400 items. O(n_draws n_items^2) time.
    """
    n = len(scores)
    error = pair_errors(covariance)
    z = _ratios(scores, error)
    limit = _quantile(covariance, error, degrees, level, None) if n > 1 else 0.0
    above = z > limit  # entry (i, j): i is above j
    return 1 + above.sum(axis=0), n - above.sum(axis=1)


def may_be_first(scores: Floats, covariance: Floats, degrees: float, level: float) -> Bools:
    """Return which items are in a set that contains the best item with this confidence.

    An item is in the set unless another one is above it by more than a quantile of the largest
    ratio of its own differences (Mogstad et al., 2024).
    """
    n = len(scores)
    if n == 1:
        return np.ones(1, dtype=bool)
    error = pair_errors(covariance)
    largest = _ratios(scores, error).max(axis=0)
    return np.array([
        largest[j] <= _quantile(covariance, error, degrees, level, j) for j in range(n)
    ])  # fmt: skip


def _ratios(scores: Floats, error: Floats) -> Floats:
    """Return the differences s_i - s_j divided by their standard errors; 0 on the diagonal."""
    difference = scores[:, None] - scores
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / error
    return np.where(error > 0, z, np.where(difference == 0, 0.0, np.copysign(np.inf, difference)))


def _quantile(
    covariance: Floats, error: Floats, degrees: float, level: float, item: int | None
) -> float:
    """Return a quantile of the largest ratio: over all pairs in both directions, or of an item."""
    n = len(error)
    if n > _MAX_ITEMS:
        pairs = n * (n - 1) / 2 if item is None else n - 1
        tail = (1 - level) / (2 * pairs if item is None else pairs)
        return float(-ndtri(tail)) if degrees >= 1e6 else float(-stdtrit(degrees, tail))
    values, vectors = eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    random = np.random.default_rng(0)
    with np.errstate(divide="ignore"):
        inverse = np.where(error > 0, 1 / error, 0.0)
    found = []
    step = rows_per_block(8 * n * (n if item is None else 1))
    for start in range(0, _DRAWS, step):
        m = min(step, _DRAWS - start)
        draw = random.standard_normal((m, n)) @ root.T
        if degrees < 1e6:
            draw /= np.sqrt(random.chisquare(degrees, size=(m, 1)) / degrees)
        if item is None:
            ratios = (draw[:, :, None] - draw[:, None, :]) * inverse
            found.append(ratios.reshape(m, -1).max(axis=1))
        else:
            found.append(((draw - draw[:, item, None]) * inverse[item]).max(axis=1))
    return float(np.quantile(np.concatenate(found), level))
