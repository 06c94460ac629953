"""Choose the next comparisons: those that reduce the uncertainty of the target most.

Let S be the covariance of the scores, u = S (e_i - e_j), and v = u_i - u_j the variance of the
difference of items i and j. A vote between them with information w changes S to S - (w / (1 + w v))
u u^T (Sherman and Morrison). This does not depend on the winner: several votes can be planned in
advance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from sklearn_rankcal.aggregation._base import Structure, tie_scores
from sklearn_rankcal.aggregation._bradley_terry import BradleyTerry
from sklearn_rankcal.aggregation._contest_boards import Board, fit_boards
from sklearn_rankcal.aggregation._contest_model import ContestFit
from sklearn_rankcal.aggregation._graphs import number_components
from sklearn_rankcal.aggregation._judgements import Judgements, find_id
from sklearn_rankcal.aggregation._vote_models import vote_information
from sklearn_rankcal.labels._item_ids import content_ranks
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._rounding import is_largest
from sklearn_rankcal.utils._typing import Floats, Ints

#: The assumed standard deviation of the difference between unconnected items.
_UNCONNECTED = 3.0


def plan_comparisons(
    scores: Floats, covariance: Floats, worth: Floats, n: int, target: int | str
) -> Ints:
    """Choose pairs of items sequentially, each as if the pairs before had been answered.

    Parameters
    ----------
    scores : ndarray of shape (..., n_items)
        The scores of each board. Equal scores are exactly equal.
    covariance : ndarray of shape (..., n_items, n_items)
        Their covariance.
    worth : ndarray of shape (..., n_items, n_items)
        The information of a vote between two items about their difference.
    n : int
        Number of pairs.
    target : {"first", "all"} or int
        What to make certain: the first place, all places, or the score of one item.

    Returns
    -------
    pairs : ndarray of shape (..., n, 2)
        Numbers of items, the smaller number first. Ties up to rounding are broken by the smallest
        numbers. O(n_items^3) time for each pair.
    """
    m, shape = scores.shape[-1], scores.shape[:-1]
    scores, S = scores.reshape(-1, m), covariance.reshape(-1, m, m).copy()
    worth, board = worth.reshape(-1, m, m), np.arange(len(scores))
    pairs = np.empty((len(scores), n, 2), dtype=np.int64)
    for step in range(n):  # a loop over the pairs; each depends on the pairs before
        variance = np.maximum(_of_differences(S), 0.0)
        if isinstance(target, str):
            L = _weights(scores, variance, target)
            laplacian = L.sum(axis=1)[:, None] * np.eye(m) - L
            shrinks = _of_differences(S @ laplacian @ S)  # u^T (Laplacian of L) u
        else:  # the square of the target's entry of u
            shrinks = (S[:, target, :, None] - S[:, target, None]) ** 2
        gain = np.triu(shrinks * worth / (1 + worth * variance), 1)
        i, j = np.divmod(np.argmax(is_largest(gain.reshape(len(S), -1)), axis=1), m)
        u, w = S[board, i] - S[board, j], worth[board, i, j]
        shrink = w / (1 + w * variance[board, i, j])
        S -= shrink[:, None, None] * u[:, :, None] * u[:, None]
        pairs[:, step] = np.column_stack([i, j])
    return pairs.reshape(*shape, n, 2)


def _of_differences(covariance: Floats) -> Floats:
    """Return the variance of the difference of each pair of entries, of shape (n_boards, m, m)."""
    own = np.diagonal(covariance, axis1=1, axis2=2)
    return own[:, :, None] + own[:, None] - 2 * covariance


def _weights(scores: Floats, variance: Floats, target: str) -> Floats:
    """Return the cost of the variance of each difference, up to a common factor.

    If a difference has mean d and variance v, deciding for the sign of d has the expected loss E
    max(0, -sign(d) difference) = sqrt(v) phi(z) - |d| Phi(-z), where z = |d| / sqrt(v). The
    derivative of this by v is phi(z) / (2 sqrt(v)).
    """
    difference = scores[..., :, None] - scores[..., None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        power = -(difference**2) / variance / 2 - np.log(variance) / 2
    power[~(variance > 0)] = -np.inf
    if target == "first":
        best = scores == scores.max(axis=-1, keepdims=True)  # several can share the first place
        power[~(best[..., :, None] | best[..., None, :])] = -np.inf
    power[..., np.eye(scores.shape[-1], dtype=bool)] = -np.inf
    return np.exp(power - power.max(axis=(-2, -1), keepdims=True))


def next_comparisons(
    judgements: Judgements,
    structure: Structure,
    scores: Floats,
    boards: list[Board] | None,
    n: int,
    target: Any,
    q: int | None,
) -> list[tuple[Any, ...]]:
    """Plan comparisons of a query, or of all queries if `q` is None; see `Aggregate`.

    `boards` are the fits of all queries, if there are any.
    """
    queries = judgements.queries
    if q is None and target not in ("first", "all"):
        raise ValueError(
            f"target={target!r} needs a query, and there are several queries. Pass group=, "
            "or target='first' or 'all'."
        )
    if not isinstance(structure, BradleyTerry):
        raise ValueError(
            "next_comparisons needs the covariance of BradleyTerry, but the method is "
            f"{structure!r}. Use aggregate(judgements, 'btl')."
        )
    if q is None:
        if boards is None and structure._takes_sums(judgements):
            return _plans_of_all(judgements, structure, scores, n, target)
        return [
            (queries.ids[q : q + 1].tolist()[0], *pair)
            for q in np.flatnonzero(queries.sizes > 1).tolist()
            for pair in next_comparisons(judgements, structure, scores, boards, n, target, q)
        ]
    if boards is None:
        read, rows = judgements.of_query(q)
        one = fit_boards(read, structure)[0]
        one = one._replace(rows=rows[one.rows])
    else:
        one = boards[q]
    ids = judgements.items[one.rows]
    if len(ids) < 2:
        raise ValueError("next_comparisons needs at least 2 items; there is only 1.")
    if not isinstance(target, str) or target not in ("first", "all"):
        target = find_id(ids, target, "item")
    # Number items from the best, with ties broken by id: the plan must not depend on the order of
    # the votes.
    scores = tie_scores(one.scores, structure, Queries.single(len(ids)))
    order = np.lexsort((content_ranks(ids), -scores))
    if not isinstance(target, str):
        target = int(np.flatnonzero(order == target)[0])
    scores, covariance = scores[order], _covariance(one)[np.ix_(order, order)]
    pairs = plan_comparisons(scores, covariance, _worth(scores, one.fit), n, target)
    items = ids[order].tolist()
    return [(items[i], items[j]) for i, j in pairs.tolist()]


def _plans_of_all(
    read: Judgements, structure: BradleyTerry, scores: Floats, n: int, target: str
) -> list[tuple[Any, ...]]:
    """Plan n comparisons of each query in batches, for votes without covariates."""
    queries, preferences = read.queries, read.preferences()
    positive = preferences.weight > 0
    links = preferences.winner[positive], preferences.loser[positive]
    part = number_components(*links, queries.n_rows, "weak")
    block = number_components(*links, queries.n_rows, "strong")
    strong = np.bincount(part[np.unique(block, return_index=True)[1]]) == 1
    ridge = structure._penalties(strong)[part]
    scores = tie_scores(np.nan_to_num(scores), structure, queries)
    order = np.lexsort((content_ranks(read.items), -scores, queries.codes))  # rows, best first
    place = queries.scatter(np.arange(queries.n_rows))
    planned = []
    for inside in queries.equal_pair_blocks():
        if inside.shape[1] < 2:
            continue
        rows = order[inside]
        at = place[rows] - inside[:, :1]
        weight = preferences.matrices(inside)
        weight += weight.swapaxes(1, 2)
        weight = weight[np.arange(len(at))[:, None, None], at[:, :, None], at[:, None]]
        s = scores[rows]
        difference = s[:, :, None] - s[:, None]
        worth = expit(difference) * expit(-difference)
        same = part[rows][:, :, None] == part[rows][:, None]
        # the information, with ones added within each part (scores add up to 0) to make it regular
        information = same - weight * worth
        at_diagonal = np.arange(inside.shape[1])
        information[:, at_diagonal, at_diagonal] += (weight * worth).sum(axis=2) + ridge[rows]
        covariance = np.linalg.inv(information)
        center = np.eye(inside.shape[1]) - same / same.sum(axis=2, keepdims=True)
        covariance = center @ covariance @ center
        covariance += _UNCONNECTED**2 * (same & ~same.all(axis=(1, 2), keepdims=True))
        pairs = plan_comparisons(s, covariance, worth, n, target)
        query = np.repeat(queries.codes[rows[:, 0]], n)
        found = np.take_along_axis(rows, pairs.reshape(len(rows), -1), axis=1).reshape(-1, 2)
        planned.append(np.column_stack([query, found]))
    if not planned:
        raise ValueError(
            "next_comparisons needs a query with at least 2 items; each query has only 1."
        )
    q, one, other = (found := np.concatenate(planned))[np.argsort(found[:, 0], kind="stable")].T
    columns = queries.ids[q], read.items[one], read.items[other]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _covariance(board: Board) -> Floats:
    """Return the covariance of the scores, with the assumed variance between components."""
    covariance = board.of_scores(board.fit.inverse())
    part = board.fit.part
    if (part != part[0]).any():
        covariance += _UNCONNECTED**2 * (part[:, None] == part)
    return covariance


def _worth(scores: Floats, fit: ContestFit) -> Floats:
    """Return the information of a vote between each pair of items, at covariates of 0."""
    difference = scores[:, None] - scores
    values = vote_information(difference.ravel(), fit.model, fit.tie)
    return values.reshape(difference.shape)
