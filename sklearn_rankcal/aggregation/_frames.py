"""What a leaderboard says beside scores and ranks: predicted votes, and Elo's scale."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from sklearn_rankcal.aggregation._contest_boards import open_scores, wins_of
from sklearn_rankcal.aggregation._contests import contests_of
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.aggregation._vote_models import result_probabilities
from sklearn_rankcal.labels._item_ids import show_id
from sklearn_rankcal.utils._names import did_you_mean
from sklearn_rankcal.utils._parameters import check_choice
from sklearn_rankcal.utils._typing import Floats

if TYPE_CHECKING:
    from sklearn_rankcal.aggregation._result import Aggregate

#: Points per unit of a score, and the score of the mean item where there is no anchor.
SCALES = {"elo": (400 / np.log(10), 1000.0), "logit": (1.0, 0.0)}
#: Structures whose scores are log-odds.
_LOGITS = ("BradleyTerry", "PlackettLuce", "LeastSquares")


class VoteProbabilities(NamedTuple):
    """The probabilities that the first item of a vote wins, of a tie, and that the second wins.

    `tie` is None if there are ties, and the model takes each for half a win of both items.
    """

    first: float
    tie: float | None
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
    if ties == "half" and _has_ties(board.judgements, q):
        tied = None
    return VoteProbabilities(win, tied, lose)


def _has_ties(judgements: Judgements, q: int) -> bool:
    """Whether some votes of a query are ties: pairs of opposite comparisons of the same weight."""
    if judgements.orders is not None:
        return False
    try:
        contests = contests_of(judgements)
    except ValueError:  # several comparisons are one judgement
        return False
    return bool((contests.outcome[judgements.query[contests.judgement] == q] == 2).any())


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
        if board._errors is None or board._boards is None:
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
    assert board._boards is not None and board._errors is not None
    low, high = board.scores.copy(), board.scores.copy()
    for q, row in held.items():  # a loop over queries
        one = board._boards[q]
        place = int(np.flatnonzero(one.rows == row)[0])
        below, beyond = board._errors[q].relative_widths(place, board.confidence_level or 0)
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
