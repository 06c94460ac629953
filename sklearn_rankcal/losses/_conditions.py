"""Find pairs of documents that violate the conditions for sorting by scores to be optimal."""

from __future__ import annotations

import numpy as np

from sklearn_rankcal.utils._typing import Bools, Floats


def reinforce_violations(
    u: Floats, lead_slack: Floats | float, total_slack: Floats | float
) -> Bools:
    """Return which pairs (i, j) violate P_reinforce, for symmetric matrices (n, r, r).

    The slacks of the two inequalities broadcast to this shape. One pass for each i limits the
    memory to O(n r^2).
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
    differences: Floats, scores: Floats, slack: Floats | float, score_slack: Floats | float
) -> Bools:
    """Return which pairs (i, j) violate P_f, for differences (n, r, r) and scores (n, r)."""
    lead = scores[:, :, None] - scores[:, None, :]
    return (differences > slack) & ~(lead > score_slack)
