"""The score functions of `PDByScores`, which map weights of pairs to scores of documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sklearn_rankcal.targets import PreferenceDifferences, RelevanceDifferences
from sklearn_rankcal.utils._numbers import add_up, read_numbers
from sklearn_rankcal.utils._rounding import exceeds
from sklearn_rankcal.utils._typing import Floats

Differences = RelevanceDifferences | PreferenceDifferences

# Parameters: the differences of all pairs, and the smoothing c, which only "log_odds" uses.


def _borda(targets: Differences, c: float) -> Floats:
    return targets.row_sums() / targets.queries.broadcast(targets.queries.sizes)


def _least_squares(targets: Differences, c: float) -> Floats:
    # With relevance, a document is compared with all documents of different relevance. If n
    # documents have the relevance of document i, the normal equation of its score x_i is
    # (r - n) x_i - sum over the compared j of x_j = b_i, where b_i = sum_j (y_ij - y_ji). These n
    # documents have the same score, and all scores sum to 0. The sum over j is therefore -n x_i,
    # and the equation becomes r x_i = b_i, the Borda score.
    if isinstance(targets, RelevanceDifferences) and not callable(targets.kind):
        return _borda(targets, c)
    return scores_by_matrices(targets, least_squares_scores)


def _mean_share(
    targets: Differences, c: float, share: Callable[..., Floats], degree: int | None
) -> Floats:
    """Compute the scores sum_j share(y_ij, y_ji, c) / r, where share(0, 0, c) = 0.

    `degree` is the degree of homogeneity d, share(a y, a z, c) = a^d share(y, z, c) for all a > 0,
    or None.
    """
    queries = targets.queries
    if isinstance(targets, PreferenceDifferences):
        # Only compared pairs have a share that is not 0.
        i, j, y, opposed = targets.comparisons()
        rows, shares = np.append(i, j), np.append(share(y, opposed, c), share(opposed, y, c))
        sums = add_up(rows, shares, queries.n_rows)
    elif targets.kind == "binary" or (targets.kind == "graded" and degree is not None):
        # With relevance, at least one of y_ij and y_ji is 0. A nonzero weight is the factor of the
        # query, times the difference of relevance if graded. A share of degree 1 is proportional to
        # the difference, and a share of degree 0 does not depend on it. The sum over j is therefore
        # the share of the factor times a number of documents or a sum of differences.
        below, above = targets.below_and_above(graded=targets.kind == "graded" and degree == 1)
        weight = queries.broadcast(targets.factor)
        sums = below * share(weight, 0 * weight, c) + above * share(0 * weight, weight, c)
    else:
        return scores_by_matrices(targets, lambda y: share(y, y.transpose(0, 2, 1), c).mean(axis=2))
    return sums / queries.broadcast(queries.sizes)


def _winner(y: Floats, opposed: Floats) -> Floats:
    """Return 1, -1 or 0; equal sums of weights may differ by rounding."""
    return np.where(exceeds(np.abs(y - opposed), 0.0, y + opposed), np.sign(y - opposed), 0.0)


def _log_odds(y: Floats, opposed: Floats, c: float) -> Floats:
    # log((y + c) / (opposed + c)), without cancellation if the quotient is close to 1
    more, less = np.maximum(y, opposed), np.minimum(y, opposed)
    return np.copysign(np.log1p((more - less) / (less + c)), y - opposed)


def scores_by_matrices(targets: Differences, f: Callable[[Floats], Floats]) -> Floats:
    """Apply f to the weights of every query with a preference, and check the returned scores."""
    grouped = np.zeros(targets.queries.n_rows)
    for inside in targets.queries.equal_pair_blocks():
        weights = targets.weights(inside)
        some = weights.any(axis=(1, 2))
        if not some.any():
            continue
        scores = read_numbers(f(weights[some]), "the return value of score_function")
        if scores.shape != inside[some].shape:
            raise ValueError(
                f"score_function must return one score per document, shape {inside[some].shape}; "
                f"got shape {scores.shape} for weights of shape {weights[some].shape}."
            )
        if not np.isfinite(scores).all():
            q = int(np.argmin(np.isfinite(scores).all(axis=1)))
            raise ValueError(
                f"score_function must return finite scores; got {scores[q].tolist()} for "
                f"the weights {weights[some][q].tolist()}."
            )
        grouped[inside[some]] = scores
    return targets.queries.scatter(grouped)


def least_squares_scores(weights: Floats) -> Floats:
    """Compute the Thurstone-Mosteller scores (n, r) of n queries from their weights (n, r, r).

    The normal equations are L x = b, with L the Laplacian of the graph of compared pairs and
    b_i = sum_j (y_ij - y_ji).
    """
    n, r, _ = weights.shape
    turned = weights.transpose(0, 2, 1)
    compared = ((weights > 0) | (turned > 0)).astype(np.float64)
    # Step 1: find the connected components of all queries, as one graph with n * r nodes.
    q, i, j = np.nonzero(compared)
    graph = sparse.coo_array((np.ones(len(q)), (q * r + i, q * r + j)), shape=(n * r, n * r))
    part = connected_components(graph, directed=False)[1].reshape(n, r)
    # Step 2: L is singular, because adding a constant to a component changes no difference. Adding
    # 1 to L_ij for all i and j of the same component makes it regular, and x has mean 0 in each
    # component.
    system = (part[:, :, None] == part[:, None, :]) - compared
    system[:, np.arange(r), np.arange(r)] += compared.sum(axis=2)
    net = (weights - turned).sum(axis=2)
    return np.linalg.solve(system, net[:, :, None])[:, :, 0]


#: The score functions of `PDByScores` by name. They map differences and c to scores of all rows.
SCORES: dict[str, Callable[[Differences, float], Floats]] = {
    "borda": _borda,
    "copeland": partial(_mean_share, share=lambda y, z, c: _winner(y, z), degree=0),
    "row_sums": partial(_mean_share, share=lambda y, z, c: y, degree=1),
    "log_odds": partial(_mean_share, share=_log_odds, degree=None),
    "least_squares": _least_squares,
}
