"""Find the violations of the conditions P_reinforce and P_f for many queries at a time.

Matrices of expected targets come in, one for each of n queries of r documents. An array comes out,
which is true for each pair of documents that violates the condition. `satisfies_reinforce` and
`satisfies_score_condition` apply these functions to one distribution, and
`CalibratedRanker.diagnose` applies them to predictions. Ramaswamy et al. (2013) define both
conditions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def reinforce_violations(
    u: Floats, lead_slack: Floats | float, total_slack: Floats | float
) -> NDArray[np.bool_]:
    """Return whether pairs (i, j) violate P_reinforce (theorem 4).

    The condition says that for all i and j, u_ii >= u_jj implies
    u_ii >= u_jj + sum over g not in {i, j} of (u_jg - u_ig)_+.

    Parameters
    ----------
    u : ndarray of shape (n, r, r)
        Symmetric matrices.
    lead_slack : float or ndarray that broadcasts to (n, r, r)
        The first inequality holds if it is missed by at most this amount, for each pair.
    total_slack : float or ndarray that broadcasts to (n, r, r)
        The same for the second inequality.

    Returns
    -------
    violated : ndarray of bool of shape (n, r, r)

    Notes
    -----
    The time is O(n r^3). One pass for each i keeps the memory at O(n r^2).
    """
    n, r, _ = u.shape
    lead_slack = np.broadcast_to(lead_slack, u.shape)
    total_slack = np.broadcast_to(total_slack, u.shape)
    own = np.einsum("qii->qi", u)
    violated = np.empty((n, r, r), dtype=bool)
    for i in range(r):
        shortfall = np.maximum(u - u[:, i : i + 1, :], 0.0)  # [q, j, g] = (u_jg - u_ig)_+
        shortfall[:, :, i] = 0.0  # the sum leaves out g = i
        np.einsum("qjj->qj", shortfall)[...] = 0.0  # and g = j
        lead = own[:, i : i + 1] - own  # [q, j] = u_ii - u_jj
        sorted_first = lead >= -lead_slack[:, i]
        violated[:, i] = sorted_first & (lead < shortfall.sum(axis=2) - total_slack[:, i])
    return violated


def score_violations(
    differences: Floats,
    scores: Floats,
    slack: Floats | float,
    score_slack: Floats | float,
) -> NDArray[np.bool_]:
    """Return whether pairs (i, j) violate P_f (theorem 6).

    The condition says that a positive expected difference d_ij = E[Y_ij] - E[Y_ji] implies
    that the expected score of i is larger than that of j.

    Parameters
    ----------
    differences : ndarray of shape (n, r, r)
        Expected differences d_ij.
    scores : ndarray of shape (n, r)
        Expected scores.
    slack : float or ndarray that broadcasts to (n, r, r)
        Differences up to this size count as 0.
    score_slack : float or ndarray that broadcasts to (n, r, r)
        Differences of scores up to this size count as 0.

    Returns
    -------
    violated : ndarray of bool of shape (n, r, r)
    """
    lead = scores[:, :, None] - scores[:, None, :]
    return (differences > slack) & ~(lead > score_slack)
