"""Which comparisons to ask for next: those that shrink the uncertainty that matters most.

If s is the vector of scores with the covariance S, a vote between items i and j with the
information w changes S to S - (w / (1 + w v)) u u^T, where u = S (e_i - e_j), and v = u_i - u_j is
the variance of their difference (Sherman and Morrison). It does not depend on who wins, so that
votes can be planned one after the other before any of them is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sklearn_rankcal.aggregation._base import tie_scores
from sklearn_rankcal.aggregation._bradley_terry import BradleyTerry
from sklearn_rankcal.aggregation._contest_boards import Board, fit_boards
from sklearn_rankcal.aggregation._contest_model import ContestFit, vote_information
from sklearn_rankcal.labels._item_ids import content_ranks
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._parameters import check_count
from sklearn_rankcal.utils._rounding import is_largest
from sklearn_rankcal.utils._typing import Floats, Ints

if TYPE_CHECKING:
    from sklearn_rankcal.aggregation._result import Aggregate

#: The standard deviation of the unknown difference between items that no comparison connects.
_UNCONNECTED = 3.0


def plan_comparisons(
    scores: Floats, covariance: Floats, worth: Floats, n: int, target: int | str
) -> Ints:
    """Choose pairs of items one after the other, each as if the ones before had been answered.

    Parameters
    ----------
    scores : ndarray of shape (n_items,)
        The scores. Equal ones are exactly equal.
    covariance : ndarray of shape (n_items, n_items)
        Their covariance.
    worth : ndarray of shape (n_items, n_items)
        The information of a vote between two items about their difference.
    n : int
        The number of pairs.
    target : {"first", "all"} or int
        What is to become certain: the first place, all places, or the score of one item.

    Returns
    -------
    pairs : ndarray of shape (n, 2)
        Numbers of items, the smaller one first. Of pairs that are equally good up to rounding, the
        one with the smallest numbers is chosen. O(n_items^3) time for each pair.
    """
    S, m = covariance.copy(), len(scores)
    pairs = np.empty((n, 2), dtype=np.int64)
    for step in range(n):  # a loop over the pairs; each depends on the ones before
        variance = np.maximum(np.diag(S)[:, None] + np.diag(S) - 2 * S, 0.0)
        if isinstance(target, str):
            L = _weights(scores, variance, target)
            Q = S @ (np.diag(L.sum(axis=0)) - L) @ S
            shrinks = np.diag(Q)[:, None] + np.diag(Q) - 2 * Q  # u^T (Laplacian of L) u
        else:
            shrinks = (S[target][:, None] - S[target]) ** 2  # the square of the target's entry of u
        gain = np.triu(shrinks * worth / (1 + worth * variance), 1)
        i, j = np.divmod(int(np.argmax(is_largest(gain.ravel()))), m)
        u = S[i] - S[j]
        S -= worth[i, j] / (1 + worth[i, j] * variance[i, j]) * np.outer(u, u)
        pairs[step] = i, j
    return pairs


def _weights(scores: Floats, variance: Floats, target: str) -> Floats:
    """Return what the variance of each difference costs, times a common factor.

    If a difference has the mean d and the variance v, then by deciding for the sign of d one loses
    E max(0, -sign(d) difference) = sqrt(v) phi(z) - |d| Phi(-z), where z = |d| / sqrt(v). The
    derivative of this by v is phi(z) / (2 sqrt(v)).
    """
    difference = scores[:, None] - scores
    with np.errstate(divide="ignore", invalid="ignore"):
        power = -(difference**2) / variance / 2 - np.log(variance) / 2
    power[~(variance > 0)] = -np.inf
    if target == "first":
        best = scores == scores.max()  # several items can share the first place
        power[~(best[:, None] | best)] = -np.inf
    np.fill_diagonal(power, -np.inf)
    return np.exp(power - power.max())


def next_comparisons(board: Aggregate, n: int, target: Any, group: Any) -> list[tuple[Any, Any]]:
    """Plan comparisons; `Aggregate.next_comparisons` has the parameters."""
    check_count(n, "n")
    q = board._query(group)
    if not isinstance(board.method, BradleyTerry):
        raise ValueError(
            f"next_comparisons needs the covariance of BradleyTerry, but the method is "
            f"{board.method!r}. Make the leaderboard by aggregate(judgements, 'btl')."
        )
    fitted = board._boards
    if fitted is None:
        fitted = fit_boards(board.judgements, board.method)
    one = fitted[q]
    if len(one.rows) < 2:
        raise ValueError("There is only one item, and nothing to compare it with.")
    if not isinstance(target, str) or target not in ("first", "all"):
        target = board._find_item(target, one.rows)
    # The best item has the number 0, and ids decide between equal scores: the plan must not depend
    # on the order of the votes.
    scores = tie_scores(one.scores, board.method, Queries.single(len(one.rows)))
    order = np.lexsort((content_ranks(board.items[one.rows]), -scores))
    if not isinstance(target, str):
        target = int(np.flatnonzero(order == target)[0])
    scores, covariance = scores[order], _covariance(one)[np.ix_(order, order)]
    pairs = plan_comparisons(scores, covariance, _worth(scores, one.fit), int(n), target)
    items = board.items[one.rows[order]].tolist()
    return [(items[i], items[j]) for i, j in pairs.tolist()]


def _covariance(board: Board) -> Floats:
    """Return the covariance of the scores, with what is unknown between components."""
    covariance = board.of_scores(board.fit.inverse())
    part = board.fit.part
    if (part != part[0]).any():
        covariance += _UNCONNECTED**2 * (part[:, None] == part)
    return covariance


def _worth(scores: Floats, fit: ContestFit) -> Floats:
    """Return the information of a vote between each two items, where covariates are 0."""
    difference = scores[:, None] - scores
    values = vote_information(difference.ravel(), fit.model, fit.tie)
    return values.reshape(difference.shape)
