"""The score functions of `PDByScores`: weights of pairs come in, a score of each document out."""

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

# Each receives the differences of all pairs and the smoothing c, which only "log_odds" uses.


def _borda(targets: Differences, c: float) -> Floats:
    return targets.row_sums() / targets.queries.broadcast(targets.queries.sizes)


def _least_squares(targets: Differences, c: float) -> Floats:
    # With relevance, a document is compared with all documents of other relevance. If n documents
    # have the relevance of document i, the normal equation of its score x_i is
    # (r - n) x_i - sum over the compared j of x_j = b_i, where b_i = sum_j (y_ij - y_ji). These n
    # documents have the same score, and all scores sum to 0, so the sum over j is -n x_i. The
    # equation becomes r x_i = b_i, which is the Borda score.
    if isinstance(targets, RelevanceDifferences) and not callable(targets.kind):
        return _borda(targets, c)
    return scores_by_matrices(targets, least_squares_scores)


def _mean_share(
    targets: Differences, c: float, share: Callable[..., Floats], degree: int | None
) -> Floats:
    """Compute the scores sum_j share(y_ij, y_ji, c) / r, where share(0, 0, c) = 0.

    `degree` is the number d with share(a y, a z, c) = a^d share(y, z, c) for all a > 0, or None.
    """
    queries = targets.queries
    if isinstance(targets, PreferenceDifferences):
        # Add the shares of the pairs that are compared; those of other pairs are 0.
        i, j, y, opposed = targets.comparisons()
        rows, shares = np.append(i, j), np.append(share(y, opposed, c), share(opposed, y, c))
        sums = add_up(rows, shares, queries.n_rows)
    elif targets.kind == "binary" or (targets.kind == "graded" and degree is not None):
        # With relevance, at least one of y_ij and y_ji is 0. The other is the factor of the query,
        # times the difference of relevance if graded. A share of degree 1 is proportional to the
        # difference, and a share of degree 0 does not depend on it. The sum over j is therefore the
        # share of a weight equal to the factor, times a number of documents or a sum of
        # differences.
        below, above = targets.below_and_above(graded=targets.kind == "graded" and degree == 1)
        weight = queries.broadcast(targets.factor)
        sums = below * share(weight, 0 * weight, c) + above * share(0 * weight, weight, c)
    else:
        return scores_by_matrices(targets, lambda y: share(y, y.transpose(0, 2, 1), c).mean(axis=2))
    return sums / queries.broadcast(queries.sizes)


def _winner(y: Floats, opposed: Floats) -> Floats:
    """1, -1 or 0; sums of weights that are equal can differ by rounding."""
    return np.where(exceeds(np.abs(y - opposed), 0.0, y + opposed), np.sign(y - opposed), 0.0)


def _log_odds(y: Floats, opposed: Floats, c: float) -> Floats:
    # log((y + c) / (opposed + c)), without loss of digits where the quotient is close to 1
    more, less = np.maximum(y, opposed), np.minimum(y, opposed)
    return np.copysign(np.log1p((more - less) / (less + c)), y - opposed)


def scores_by_matrices(targets: Differences, f: Callable[[Floats], Floats]) -> Floats:
    """Apply f to the weights of every query with a preference, and check the scores it returns."""
    grouped = np.zeros(targets.queries.n_rows)
    for inside in targets.queries.equal_pair_blocks():
        weights = targets.weights(inside)
        some = weights.any(axis=(1, 2))
        if not some.any():
            continue
        scores = read_numbers(f(weights[some]), "the return value of score_function")
        if scores.shape != inside[some].shape:
            raise ValueError(
                f"score_function returned an array of shape {scores.shape} for weights of shape "
                f"{weights[some].shape}; it must return a score for each document, in an array of "
                f"shape {inside[some].shape}."
            )
        if not np.isfinite(scores).all():
            q = int(np.argmin(np.isfinite(scores).all(axis=1)))
            raise ValueError(
                f"score_function must return finite scores; it returned {scores[q].tolist()} for "
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
    # Step 1: the connected parts of the graphs of all queries, as one graph of n * r nodes.
    q, i, j = np.nonzero(compared)
    graph = sparse.coo_array((np.ones(len(q)), (q * r + i, q * r + j)), shape=(n * r, n * r))
    part = connected_components(graph, directed=False)[1].reshape(n, r)
    # Step 2: L is singular, because adding a constant to a part changes no difference. With 1 added
    # to L_ij for all i and j of the same part, it is regular, and x has mean 0 in each part.
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
