"""Functions of scores that are log-odds: predicted votes, and Elo's scale."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from sklearn_rankcal.aggregation._base import Structure
from sklearn_rankcal.aggregation._contest_boards import Board, open_scores, wins_of
from sklearn_rankcal.aggregation._contests import contests_of
from sklearn_rankcal.aggregation._errors import ScoreErrors
from sklearn_rankcal.aggregation._judgements import Judgements, find_id
from sklearn_rankcal.aggregation._vote_models import result_probabilities
from sklearn_rankcal.utils._names import did_you_mean
from sklearn_rankcal.utils._parameters import check_choice
from sklearn_rankcal.utils._typing import Floats, Ints

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
