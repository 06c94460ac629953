"""The cyclic part of predicted preferences, and how much of it held-out predictions confirm.

A prediction u_ij for every pair of labels is the sum of two parts. The first is the difference
s_i - s_j of scores, where s_i is the mean of u_ij over all labels j, with u_ii = 0. The second, the
cyclic part, is what remains. It is orthogonal to all differences of scores. Sorting by s ignores
the cyclic part, and an exact decoder does not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.targets import PAIRS

Floats = NDArray[np.float64]


def net_scores(u: Floats, r: int) -> Floats:
    """Scores s of shape (n, r): the net Borda scores over r, from (n, n_pairs) predictions."""
    return PAIRS.matrices(u, r).sum(axis=2) / r


def cyclic_part(u: Floats, r: int) -> Floats:
    """Subtract from predictions the closest differences of scores; shape (n, n_pairs)."""
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
    """Return the factor for the cyclic part of predictions that fits the targets best.

    Noise in the predictions has a cyclic part of its own, which held-out predictions and targets do
    not share. The factor minimises the squared distance between targets and held-out predictions
    whose cyclic part is multiplied by it.

    Parameters
    ----------
    held_out : ndarray of shape (n, n_pairs)
        Held-out predictions. Rows with NaN are left out.
    targets : ndarray of shape (n, n_pairs)
    r : int
        Number of labels.
    judged : ndarray of bool of shape (n, n_pairs), default=None
        The pairs whose targets count. None means all.
    weight : ndarray of shape (n,), default=None
        Non-negative weights of the rows.

    Returns
    -------
    share : float
        Between 0 and 1. It is 1 if the predictions have no cyclic part.
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
