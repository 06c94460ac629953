"""What a leaderboard says beside scores and ranks: the votes of each item, and Elo's scale."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order
from scipy.special import stdtrit

from sklearn_rankcal.aggregation._contest_boards import degrees_of, pair_errors, wins_of
from sklearn_rankcal.aggregation._contest_model import result_probabilities
from sklearn_rankcal.aggregation._graphs import add_up
from sklearn_rankcal.labels import Judgements
from sklearn_rankcal.labels._item_ids import show_id
from sklearn_rankcal.utils._names import did_you_mean
from sklearn_rankcal.utils._parameters import check_choice
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from sklearn_rankcal.aggregation._result import Aggregate

#: Below this number of votes, the normal approximation of an interval is doubtful.
FEW_VOTES = 30
#: Points per unit of a score, and the score of the mean item where there is no anchor.
SCALES = {"elo": (400 / np.log(10), 1000.0), "logit": (1.0, 0.0)}
#: Structures whose scores are log-odds.
_LOGITS = ("BradleyTerry", "PlackettLuce", "LeastSquares")


def vote_columns(judgements: Judgements) -> dict[str, Any]:
    """Count the votes of each item: columns of `Aggregate.to_frame`.

    Returns
    -------
    columns : dict of ndarray of shape (n_items,)
        ``votes`` is the number of judgements that contain the item, and ``few_votes`` whether these
        are fewer than 30. Of comparisons, ``win_share`` is the weight of those that the item won,
        divided by the weight of all of its comparisons. ``first_vote`` and ``last_vote`` are times,
        if they are known. Linear in the entries of the judgements.
    """
    n = judgements.queries.n_rows
    columns: dict[str, Any] = {}
    row, owner, times = _count_votes(judgements, np.ones(n, dtype=bool))
    columns["votes"] = times.astype(np.int64) if (times == np.rint(times)).all() else times
    columns["few_votes"] = times < FEW_VOTES
    if judgements.orders is None:
        found = judgements.preferences()
        won = np.bincount(found.winner, found.weight, n)
        total = won + np.bincount(found.loser, found.weight, n)
        columns["win_share"] = np.divide(won, total, np.full(n, np.nan), where=total > 0)
    if judgements.details is not None and judgements.details.time is not None:
        time = judgements.details.time
        order = np.argsort(time[owner], kind="stable")
        for name, chosen in (("first_vote", order[::-1]), ("last_vote", order)):
            missing = "NaT" if time.dtype.kind == "M" else np.nan
            columns[name] = np.full(n, missing, dtype=time.dtype)
            columns[name][row[chosen]] = time[owner[chosen]]  # the last assignment stays
    return columns


def _count_votes(judgements: Judgements, some: Bools) -> tuple[Ints, Ints, Floats]:
    """Return which of some items are in which judgement, and the number of votes of each item."""
    n = judgements.queries.n_rows
    if judgements.orders is not None:
        row, _, offsets = judgements.orders
        owner = np.repeat(np.arange(judgements.n_judgements), np.diff(offsets))
    else:
        winner, loser, _, _ = judgements.comparisons
        owners = judgements.of_comparison
        owner = np.arange(len(winner)) if owners is None else owners
        one, other = some[winner], some[loser]
        row, owner = np.append(winner[one], loser[other]), np.append(owner[one], owner[other])
        if owners is not None:  # an item can be in several comparisons of a judgement
            owner, row = np.divmod(np.unique(owner * n + row), n)
    times = None if judgements.count is None else judgements.count[owner]
    return row, owner, add_up(row, times, n)


def few_votes(judgements: Judgements) -> dict[int, float]:
    """Return the rows of items with fewer than 30 votes, and how many these are.

    Nothing if all items have few, or if the judgements are orders.
    """
    if judgements.orders is not None:
        return {}
    winner, loser, *_ = judgements.comparisons
    n = judgements.queries.n_rows
    # a vote is at most two comparisons, so that only items with few comparisons can have few votes
    some = add_up(winner, None, n) + add_up(loser, None, n) < 2 * FEW_VOTES
    if some.all():
        return {}
    votes = _count_votes(judgements, some)[2]
    few = np.flatnonzero((votes > 0) & (votes < FEW_VOTES))
    return {int(k): float(votes[k]) for k in few[np.argsort(votes[few], kind="stable")]}


class VoteProbabilities(NamedTuple):
    """The probabilities that the first item of a vote wins, of a tie, and that the second wins."""

    first: float
    tie: float
    second: float


def predict_vote(
    board: Aggregate, first: Any, second: Any, covariates: Any, group: Any
) -> VoteProbabilities:
    """Predict a vote; `Aggregate.predict_vote` has the parameters."""
    name = type(board.method).__name__
    if name not in _LOGITS[:2] or board._rescaled:
        raise ValueError(
            "Votes are predicted from log-odds: those of BradleyTerry or PlackettLuce, before they "
            f"are rescaled. This board has the scores of {board.method!r}."
        )
    q = board._query(group)
    rows = board._rows_of(q)
    one, other = (int(rows[board._find_item(item, rows)]) for item in (first, second))
    if board.parts[one] != board.parts[other] or board.parts[one] == 0:
        raise ValueError(f"The comparisons do not connect {show_id(first)} and {show_id(second)}.")
    lead, ties, tie = float(board.scores[one] - board.scores[other]), "half", np.nan
    known: dict[str, float] = {}
    if board._boards is not None:
        fit, names = board._boards[q].fit, board._boards[q].names
        n = len(names) - len(board.judgements.feature_names)  # the scores contain the features
        known = dict(zip(names[:n], fit.coefficients.tolist(), strict=False))
        ties, tie = fit.model, fit.tie
    for key, value in dict(covariates or {}).items():
        if key not in known:
            raise ValueError(
                f"There is no covariate {key!r}.{did_you_mean(str(key), known)} "
                f"There are: {', '.join(map(repr, known)) or 'none'}."
            )
        if not isinstance(value, Real) or not np.isfinite(float(value)):
            raise ValueError(f"The covariate {key!r} must be a finite number; got {value!r}.")
        lead += known[key] * float(value)
    win, lose, tied = result_probabilities(np.array([lead]), ties, tie)[:, 0].tolist()
    return VoteProbabilities(win, tied, lose)


def rescale(board: Aggregate, scale: str, anchor: tuple[Any, float] | None) -> Aggregate:
    """Return a leaderboard on another scale; `Aggregate.rescale` has the parameters."""
    check_choice(scale, "scale", SCALES)
    name = type(board.method).__name__
    if name not in _LOGITS:
        raise ValueError(
            f"The scores of {board.method!r} are not log-odds, so that they have no points on this "
            f"scale. Those of {', '.join(_LOGITS)} are."
        )
    if board._rescaled:
        raise ValueError("These scores are on another scale already. Rescale those of aggregate.")
    if (board.parts > 1).any():
        raise ValueError(
            "The comparisons do not connect all items, so that no common scale exists. Aggregate "
            "the judgements of each part by themselves."
        )
    factor, at = SCALES[scale]
    zero = np.zeros(len(board.items))  # the score that becomes `at`
    held: dict[int, int] = {}  # the row of the anchor of each query
    text = f"{scale} scale, where the items have the mean {at:g}"
    if anchor is not None:
        item, at = _read_anchor(anchor)
        text = f"{scale} scale, where {show_id(item)} has {at:g}"
        for q in range(board.judgements.queries.n_queries):  # a loop over queries
            rows = board._rows_of(q)
            held[q] = int(rows[board._find_item(item, rows)])
            if np.isnan(board.scores[held[q]]):
                raise ValueError(f"The anchor {show_id(item)} has no score: nothing compares it.")
            zero[rows] = board.scores[held[q]]
    low, high = board.score_low, board.score_high
    if low is not None and high is not None and held:
        if board._covariances is None or board._boards is None:
            text += "; the intervals are those of the scores, and not of differences to the anchor"
        else:
            text += "; the intervals are those of differences to the anchor"
            low, high = _relative_intervals(board, held)
    new: dict[str, Any] = {"scores": at + factor * (board.scores - zero)}
    if low is not None and high is not None:
        new |= {"score_low": at + factor * (low - zero), "score_high": at + factor * (high - zero)}
    if board.coefficients is not None:
        new["coefficients"] = [
            one._replace(**{k: factor * getattr(one, k) for k in one._fields[1:-1]})
            for one in board.coefficients
        ]
    return replace(board, **new, notes=(*board.notes, text), _rescaled=True)


def _read_anchor(anchor: Any) -> tuple[Any, float]:
    if not isinstance(anchor, tuple) or len(anchor) != 2:
        raise ValueError(
            f"anchor must be a pair (item, score), like ('owl', 1000); got {anchor!r}."
        )
    item, value = anchor
    if isinstance(value, bool | str) or not np.isscalar(value) or not np.isfinite(value):
        raise ValueError(f"The score of an anchor must be a finite number; got {value!r}.")
    return item, float(value)  # type: ignore[arg-type]


def _relative_intervals(board: Aggregate, held: dict[int, int]) -> tuple[Floats, Floats]:
    """Return the interval of the difference to the anchor, plus the anchor's score.

    The likelihood bounds the difference from above if a chain of wins leads from the anchor to the
    item, and from below if one leads from the item to the anchor.
    """
    assert board._boards is not None and board._covariances is not None
    low, high = board.scores.copy(), board.scores.copy()
    for q, row in held.items():  # a loop over queries
        one = board._boards[q]
        of_scores = one.of_scores(board._covariances[q])
        place = int(np.flatnonzero(one.rows == row)[0])
        free = degrees_of(board.judgements, one.contests, board.intervals or "")
        quantile = float(stdtrit(free, (1 + (board.confidence_level or 0)) / 2))
        half = quantile * pair_errors(of_scores)[:, place]
        winner, loser = wins_of(one.contests)
        n = len(one.rows)
        for ends, start, end, sign in ((high, winner, loser, 1), (low, loser, winner, -1)):
            graph = csr_array((np.ones(len(start)), (start, end)), shape=(n, n))
            bounded = breadth_first_order(graph, place, return_predecessors=False)
            width = np.full(n, np.inf)
            width[bounded] = half[bounded]
            ends[one.rows] += sign * width
    return low, high
