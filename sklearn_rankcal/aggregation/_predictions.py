"""Predictions of a fit: votes, Elo's scale, and the next comparisons."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order
from scipy.special import expit

from sklearn_rankcal.aggregation._base import Structure, tie_scores
from sklearn_rankcal.aggregation._boards import Board, fit_boards, open_scores, wins_of
from sklearn_rankcal.aggregation._contest_model import ContestFit
from sklearn_rankcal.aggregation._contests import contests_of
from sklearn_rankcal.aggregation._errors import ScoreErrors
from sklearn_rankcal.aggregation._graphs import number_components
from sklearn_rankcal.aggregation._judgements import Judgements, find_id
from sklearn_rankcal.aggregation._likelihoods import result_probabilities, vote_information
from sklearn_rankcal.aggregation._maximum_likelihood import BradleyTerry
from sklearn_rankcal.labels._item_ids import content_ranks
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import check_choice, did_you_mean
from sklearn_rankcal.utils._numbers import Floats, Ints, is_largest

#: Points per unit of a score, and the score of the mean item without an anchor.
SCALES = {"elo": (400 / np.log(10), 1000.0), "logit": (1.0, 0.0)}
#: Structures with log-odds as scores.
LOGITS = ("BradleyTerry", "PlackettLuce", "LeastSquares")


class VoteProbabilities(NamedTuple):
    """Probabilities of the results of a vote: the first item wins, a tie, the second item wins.

    `tie` is None if the data have ties and the model counts a tie as half a win for each item.
    """

    first: float
    tie: float | None
    second: float


def predict_vote(
    lead: float, board: Board | None, judgements: Judgements, q: int, covariates: dict[str, Any]
) -> VoteProbabilities:
    """Predict a vote of query q, where `lead` is the score difference of the two items.

    `board` is the fit of the query, if it has covariates or ties.
    """
    ties, tie = "half", np.nan
    known: dict[str, float] = {}
    if board is not None:
        n = len(board.names) - len(judgements.feature_names)  # the scores contain the features
        known = dict(zip(board.names[:n], board.fit.coefficients.tolist(), strict=False))
        ties, tie = board.fit.model, board.fit.tie
    for key, value in covariates.items():
        if key not in known:
            raise ValueError(
                f"There is no covariate {key!r}.{did_you_mean(str(key), known)} "
                f"There are: {', '.join(map(repr, known)) or 'none'}."
            )
        if not isinstance(value, Real) or not np.isfinite(float(value)):
            raise ValueError(f"The covariate {key!r} must be a finite number; got {value!r}.")
        lead += known[key] * float(value)
    win, lose, tied = result_probabilities(np.array([lead]), ties, tie)[:, 0].tolist()
    if ties == "half" and _has_ties(judgements, q):
        tied = None
    return VoteProbabilities(win, tied, lose)


def _has_ties(judgements: Judgements, q: int) -> bool:
    """Whether a query has ties: pairs of opposite comparisons of the same weight."""
    if judgements.orders is not None:
        return False
    try:
        contests = contests_of(judgements)
    except ValueError:  # several comparisons are one judgement
        return False
    return bool((contests.outcome[judgements.query[contests.judgement] == q] == 2).any())


def read_scale(method: Structure, scale: str) -> tuple[float, float]:
    """Return the points per unit of a score, and the score of the mean item."""
    check_choice(scale, "scale", SCALES)
    if type(method).__name__ not in LOGITS:
        raise ValueError(
            f"The scores of {method!r} are not log-odds and cannot be rescaled. Use one of "
            f"{', '.join(LOGITS)}."
        )
    return SCALES[scale]


def read_anchor(anchor: Any) -> tuple[Any, float]:
    """Return the item and its score."""
    if not isinstance(anchor, tuple) or len(anchor) != 2:
        raise ValueError(
            f"anchor must be a pair (item, score) such as ('owl', 1000); got {anchor!r}."
        )
    item, value = anchor
    if isinstance(value, bool | str) or not np.isscalar(value) or not np.isfinite(value):
        raise ValueError(f"The score of an anchor must be a finite number; got {value!r}.")
    return item, float(value)  # type: ignore[arg-type]


def find_in_queries(judgements: Judgements, item: Any) -> Ints:
    """Return the row of an item in each query."""
    found = []
    for q in range(judgements.queries.n_queries):  # a loop over queries
        rows = judgements.rows_of_query(q)
        found.append(rows[find_id(judgements.items[rows], item, "item")])
    return np.array(found)


def relative_intervals(
    scores: Floats, boards: list[Board], errors: list[ScoreErrors], held: Ints, level: float
) -> tuple[Floats, Floats]:
    """Return the interval of the difference to the anchor, plus the anchor's score.

    `held` is the row of the anchor of each query.

    The likelihood bounds the difference from above if a chain of wins leads from the anchor to the
    item, and from below if a chain leads from the item to the anchor.
    """
    low, high = scores.copy(), scores.copy()
    for one, error, row in zip(boards, errors, held, strict=True):  # a loop over queries
        place = int(np.flatnonzero(one.rows == row)[0])
        below, beyond = error.relative_widths(place, level)
        winner, loser = wins_of(one.contests)
        n = len(one.rows)
        anchor = np.zeros((n, n))
        anchor[:, place] = 1.0
        moved = open_scores(one, anchor)
        for ends, start, end, half, open_end, sign in (
            (high, winner, loser, beyond, moved[1], 1),
            (low, loser, winner, below, moved[0], -1),
        ):
            graph = csr_array((np.ones(len(start)), (start, end)), shape=(n, n))
            bounded = np.zeros(n, dtype=bool)
            bounded[breadth_first_order(graph, place, return_predecessors=False)] = True
            if not one.fit.own_effects:  # features connect all items
                bounded[:] = True
            ends[one.rows] += sign * np.where(bounded & ~open_end, half, np.inf)
    return low, high


# ---------------------------------------------------------------- next comparisons

# Let S be the covariance of the scores, u = S (e_i - e_j), and v = u_i - u_j the variance of the
# difference of items i and j. A vote between them with information w changes S to
# S - (w / (1 + w v)) u u^T (Sherman, Morrison). This does not depend on the winner: several votes
# can be planned in advance.


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
