"""The cyclic part of predicted preferences between labels, which no scores can express.

Predictions u (n, n_pairs) are the sum of differences of scores and of a part orthogonal to them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.targets import PAIRS

Floats = NDArray[np.float64]


def net_scores(u: Floats, r: int) -> Floats:
    """Scores s (n, r): s_i is the mean of the predictions u_ij over all j, with u_ii = 0."""
    return PAIRS.matrices(u, r).sum(axis=2) / r


def cyclic_part(u: Floats, r: int) -> Floats:
    """Subtract from predictions (n, n_pairs) the closest differences of scores s_i - s_j."""
    scores = net_scores(u, r)
    i, j = np.triu_indices(r, 1)
    return u - (scores[:, i] - scores[:, j])


def confirmed_share(
    held_out: Floats,
    targets: Floats,
    r: int,
    judged: NDArray[np.bool_] | None = None,
    weight: Floats | None = None,
) -> float:
    """Return the factor, in [0, 1], for the cyclic part of predictions that fits the targets best.

    Noise in the predictions has a cyclic part of its own, which held-out predictions and targets
    (n, n_pairs) do not share. Rows of NaN are left out, and only `judged` pairs count.
    """
    rows = np.isfinite(held_out).all(axis=1)
    if r < 3 or not rows.any():
        return 1.0
    held_out = held_out[rows]
    cyclic = cyclic_part(held_out, r)
    counts = np.ones_like(cyclic) if judged is None else judged[rows].astype(np.float64)
    if weight is not None:
        counts *= (weight[rows] / weight[rows].max())[:, None]
    size = (counts * cyclic**2).sum()
    if size <= 1e-20 * (counts * held_out**2).sum():  # nothing but rounding errors
        return 1.0
    gain = (counts * cyclic * (targets[rows] - (held_out - cyclic))).sum()
    return float(np.clip(gain / size, 0, 1))
