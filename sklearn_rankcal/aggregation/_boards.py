"""Fits of the model of contests for all queries of judgements, and intervals without resamples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.special import ndtr

from sklearn_rankcal.aggregation._contest_model import ContestFit, fit_contests
from sklearn_rankcal.aggregation._contests import Contests, contests_of, count_votes
from sklearn_rankcal.aggregation._errors import (
    FREE,
    Intervals,
    JudgeShares,
    ScoreErrors,
    clustered_covariance,
    exact_effect_excess,
    exact_excess,
    main_part,
    open_interval,
    pooled_variances,
    probability_first,
    sandwich,
    student_quantile,
    student_width,
)
from sklearn_rankcal.aggregation._graphs import MAIN, number_components, open_ends, reference_of
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, exceeds, is_largest

#: Up to this number of items, linear programs find the scores that move with unbounded effects.
_MOST_MOVED = 100


class Coefficient(NamedTuple):
    """The effect of a covariate or of the position, or the parameter of ties.

    Attributes
    ----------
    name : str
        The name of the covariate, ``"position"`` or ``"ties"``.
    value : float
        The estimate, in units of the scores. A covariate that is larger by 1 has the same effect on
        a vote as a score of the first item that is larger by `value`.
    standard_error, low, high : float
        The standard error and the ends of the interval; NaN without intervals. The interval is
        centred at the estimate minus its bias (Cox and Snell, 1968), which can be large if items
        have few votes. An end is infinite if the votes do not bound the effect, or if it rests on a
        single judge.
    group : object
        The query id.
    """

    name: str
    value: float
    standard_error: float
    low: float
    high: float
    group: Any


class Board(NamedTuple):
    """The fit of one query, with the map from parameters to scores."""

    fit: ContestFit
    rows: Ints
    names: tuple[str, ...]
    map: csr_array  # (n_items, n_parameters); scores = matrix @ parameters
    X: Floats  # the covariates of the contests
    contests: Contests  # of items numbered from 0

    @property
    def scores(self) -> Floats:
        return np.asarray(self.map @ self.fit.weights)

    def of_scores(self, covariance: Floats) -> Floats:
        """Return the covariance of the scores, from the covariance of the parameters."""
        return np.asarray(self.map @ covariance @ self.map.T)


class EffectErrors(NamedTuple):
    """The errors of the effects of one query.

    `covariance` is for all parameters, and `error` is the standard error of each effect. `below`
    and `beyond` are the lengths of its interval on both sides, infinite if it rests on a single
    judge. `clustered` is whether the errors allow for judges.
    """

    covariance: Floats
    error: Floats
    below: Floats
    beyond: Floats
    clustered: bool


def fit_boards(judgements: Judgements, structure: Any, *, merge: bool = True) -> list[Board]:
    """Fit the model to the contests of each query.

    Without `merge`, equal contests are not merged, and each contest has its judge.
    """
    contests = contests_of(judgements)
    queries = judgements.queries
    place = queries.scatter(np.arange(queries.n_rows))
    X, names = covariates_of(judgements, contests)
    query = queries.codes[contests.first]
    one = queries.n_queries == 1  # all contests, in their order
    order = query if one else np.argsort(query, kind="stable")
    ends = np.append(0, np.cumsum(np.bincount(query, minlength=queries.n_queries)))
    boards = []
    for q in range(queries.n_queries):  # a loop over queries, each with its own model
        mine: Any = slice(None) if one else order[ends[q] : ends[q + 1]]
        start, n = int(queries.offsets[q]), int(queries.sizes[q])
        local = contests if one else contests.take(mine)
        local = local._replace(first=place[local.first] - start, second=place[local.second] - start)
        rows = np.arange(start, start + n)
        rows = rows if queries.order is None else queries.order[rows]
        boards.append(fit_board(local, X[mine], names, rows, judgements, structure, merge))
    return boards


def scores_of(boards: list[Board], judgements: Judgements) -> Floats:
    """Return the scores of all rows."""
    scores = np.zeros(judgements.queries.n_rows)
    for board in boards:
        scores[board.rows] = board.scores
    return scores


def covariates_of(judgements: Judgements, contests: Contests) -> tuple[Floats, tuple[str, ...]]:
    """Return the covariates of each contest, with features of items, and their names."""
    columns: list[Floats] = []
    names: tuple[str, ...] = ()
    if judgements.details is not None and judgements.details.names:
        columns.append(judgements.details.covariates[contests.judgement])
        names += judgements.details.names
    if judgements.item_features is not None:
        values = judgements.item_features
        columns.append(values[contests.first] - values[contests.second])
        names += judgements.feature_names
    if not columns:
        return np.zeros((len(contests.first), 0)), names
    return np.hstack(columns), names


def fit_board(
    contests: Contests,
    X: Floats,
    names: tuple[str, ...],
    rows: Ints,
    judgements: Judgements,
    structure: Any,
    merge: bool,
    effect_ridge: Floats | None = None,
) -> Board:
    """Fit the model to the contests of one query, with items in these rows."""
    n = len(rows)
    part, ridge = penalties_of(contests, n, structure)
    if not structure.own_effects:
        ridge[:] = 0.0
    votes = count_votes(contests, X, merge=merge)
    fit = fit_contests(
        votes,
        n,
        names,
        structure,
        ridge,
        part,
        effect_ridge=effect_ridge,
    )
    size = len(fit.weights)
    features = judgements.item_features
    scores = eye_array(n, size, format="csr")
    if features is not None:
        q = features.shape[1]
        own, known = features[rows], n + X.shape[1] - q
        blank = np.zeros((n, size - known - q))
        alone = np.eye(n, known) if structure.own_effects else np.zeros((n, known))
        scores = csr_array(np.hstack([alone, own - own.mean(axis=0), blank]))
    return Board(fit, rows, names, scores, X, contests)


def penalties_of(contests: Contests, n_items: int, structure: Any) -> tuple[Ints, Floats]:
    """Return the connected component of each item, and the penalty of its score."""
    part = number_components(contests.first, contests.second, n_items, "weak")
    block = number_components(*wins_of(contests), n_items, "strong")
    strong = np.bincount(part[np.unique(block, return_index=True)[1]]) == 1
    return part, np.asarray(structure._penalties(strong))[part]


def intervals_of(
    judgements: Judgements,
    boards: list[Board],
    kind: str,
    level: float,
    parts: Ints,
    main: float = MAIN,
) -> tuple[Intervals, list[EffectErrors | None]]:
    """Compute the intervals of all queries, "information" or "robust", and the errors of effects.

    `parts` are the components of the rows, and `open_ends` has `main`. O(n_items^2) memory for each
    query.
    """
    certain = (1 + level) / 2
    low, high = np.empty((2, judgements.queries.n_rows))
    ranks = np.empty((2, judgements.queries.n_rows), dtype=np.int64)
    first = np.full(len(boards), np.nan)
    above, errors, effects, judges = [], [], [], []
    for q, board in enumerate(boards):  # a loop over queries
        part, (winner, loser) = parts[board.rows], wins_of(board.contests)
        scores, of_effects, of_judges = errors_of(judgements, board, kind, level, winner, loser)
        below, beyond = scores.widths(level)
        low[board.rows], high[board.rows] = board.scores - below, board.scores + beyond
        if scores.block.max() > board.fit.part.max() or board.fit.recession is not None:
            open_low, open_high = _open_ends(board, winner, loser, main)
            low[board.rows[open_low]], high[board.rows[open_high]] = -np.inf, np.inf
        z = scores.z()
        one, other = PAIRS.indices(len(part))
        chances = np.where(part[one] == part[other], ndtr(z[one, other]), 0.5)
        clear = np.zeros(z.shape, dtype=bool)  # whether the row item is clearly above the column
        clear[one, other] = ~exceeds(certain, chances, 1.0)
        clear[other, one] = ~exceeds(certain, 1 - chances, 1.0)
        ranks[:, board.rows] = 1 + clear.sum(axis=0), len(part) - clear.sum(axis=1)
        above.append(chances)
        rivals = main_part(part)
        if len(rivals):
            best = int(rivals[is_largest(scores.scores[rivals])][0])
            others = rivals[rivals != best]
            first[q] = probability_first(z, scores.covariance, best, others, certain)
        errors.append(scores)
        effects.append(of_effects)
        if of_judges is not None:
            judges.append(of_judges)
    low[parts == 0] = high[parts == 0] = np.nan  # not compared, without a score
    joined = np.concatenate(above)
    ends = low, high, ranks[0], ranks[1]
    found = Intervals(level, *ends, joined, first, kind, errors, judges or None)
    return found, effects


def _open_ends(board: Board, winner: Ints, loser: Ints, main: float) -> tuple[Bools, Bools]:
    """Return which scores the votes do not bound from below, and from above."""
    fit = board.fit
    if not fit.own_effects:  # features connect all items
        low, high = open_scores(board, np.zeros((fit.n_items, fit.n_items)))
    else:
        low, high = open_ends(winner, loser, fit.part, main)
        if fit.recession is not None:
            moved = open_scores(board, reference_of(winner, loser, fit.part, main))
            low, high = low | moved[0], high | moved[1]
    compared = np.bincount(fit.part)[fit.part] > 1
    return low & compared, high & compared


def open_scores(board: Board, mean: Floats) -> tuple[Bools, Bools]:
    """Return which scores can fall, and which can rise, with unbounded effects.

    Scores are relative to a mean; row i of `mean` has the weights of the items in the mean of item
    i. False for more than 100 items with own effects.
    """
    recession = board.fit.recession
    if recession is None or (board.fit.own_effects and len(mean) > _MOST_MOVED):
        return np.zeros((2, board.fit.n_items), dtype=bool)  # type: ignore[return-value]
    contrasts = (np.eye(len(mean)) - mean) @ board.map.toarray()
    ends = [recession.moves(row) for row in contrasts]  # a loop over items
    low, high = np.array(ends, dtype=bool).T
    return low, high


def errors_of(
    judgements: Judgements, board: Board, kind: str, level: float, winner: Ints, loser: Ints
) -> tuple[ScoreErrors, EffectErrors | None, tuple[Floats, Floats] | None]:
    """Return the errors of the scores and of the effects of one query, and the numbers of judges.

    Robust errors are clustered by judge, if judges are known. `level` is the confidence level of
    the exact intervals for items with few votes.
    """
    fit, contests, n = board.fit, board.contests, board.fit.n_items
    inverse = fit.inverse()
    covariance, degrees = inverse, np.full(len(fit.weights), np.inf)
    shares = None
    if kind == "robust":
        covariance, shares = robust_covariance(judgements, fit, contests, inverse)
        if shares is not None:
            degrees = np.concatenate(shares.degrees())
        # weights are not numbers of votes
        inverse = inverse * float(fit.votes.squares.sum() / fit.votes.counts.sum())
    information = board.of_scores(inverse)
    of_scores = information if kind == "information" else board.of_scores(covariance)
    own, pooled = degrees[:n], np.diag(information)
    if not fit.own_effects and len(degrees) > n:
        own = np.full(n, degrees[n:].min())
    if shares is not None:
        pooled = pooled_variances(fit, shares, np.diag(of_scores), pooled)
    block = number_components(winner, loser, n, "strong")
    covariances = of_scores, information, *exact_excess(fit, level)
    scores = ScoreErrors(board.scores, *covariances, own, pooled, fit.part, block)
    effects = None
    if len(degrees) > n:
        spread = np.zeros(len(degrees) - n) if shares is None else shares.spread
        found = _effect_errors(fit, covariance, inverse, degrees[n:], spread, level)
        effects = EffectErrors(*found, shares is not None)
    return scores, effects, None if shares is None else shares.numbers()


def robust_covariance(
    judgements: Judgements, fit: ContestFit, contests: Contests, inverse: Floats
) -> tuple[Floats, JudgeShares | None]:
    """Return the robust covariance of the parameters, clustered by judge if judges are known.

    `inverse` is the inverse of the information.
    """
    if judgements.judge is None:
        return sandwich(inverse, fit.meat()), None
    judge = np.unique(judgements.judge[contests.judgement], return_inverse=True)[1]
    return clustered_covariance(fit, judge, contests.outcome, contests.weight, inverse)


def _effect_errors(
    fit: ContestFit,
    covariance: Floats,
    inverse: Floats,
    degrees: Floats,
    spread: Floats,
    level: float,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the first fields of `EffectErrors`, given both covariances of all parameters.

    If an effect rests on few judges, its variance is at least the `spread` of their own effects.
    """
    n = fit.n_items
    error = np.sqrt(np.maximum(np.diag(covariance)[n:], 0.0))
    widths = []
    for extra in exact_effect_excess(fit, level):
        width = student_quantile(np.full(len(error), np.inf), level)
        width = width * np.sqrt(np.maximum(np.diag(inverse)[n:], 0.0) + extra + spread)
        if covariance is not inverse:
            found = student_width(error, degrees, level)
            few = (degrees < FREE) | (extra > 0)
            width = np.where(few, np.maximum(width, found), found)
        widths.append(width)
    return covariance, error, widths[0], widths[1]


def coefficients_of(
    boards: list[Board],
    ids: Any,
    found: Intervals | None = None,
    effects: Sequence[EffectErrors | None] = (),
) -> list[Coefficient]:
    """List the coefficients of all queries, with intervals if there are any."""
    listed = []
    for q, board in enumerate(boards):
        fit, n = board.fit, board.fit.n_items
        names = board.names + (("ties",) if fit.has_tie else ())
        biases, errors = np.zeros(len(fit.weights)), None
        if found is not None and found.errors is not None and names:
            errors = effects[q]
            assert errors is not None
            # without a penalty, the likelihood may have no maximum
            open_ = fit.own_effects and found.errors[q].block.max() > fit.part.max()
            if fit.information is None and not (open_ and not fit.ridge[:n].any()):
                biases = fit.bias(errors.covariance)
                # a larger bias is not a useful approximation
                biases[n:] = np.clip(biases[n:], -errors.error, errors.error)
        for k, name in enumerate(names):
            value = float(fit.weights[n + k])
            error = low = high = np.nan
            if found is not None and errors is not None:
                error, middle = float(errors.error[k]), value - float(biases[n + k])
                low, high = middle - errors.below[k], middle + errors.beyond[k]
                if fit.recession is not None:
                    ends = open_interval(fit, k, (low, high), found.level)
                    if not errors.clustered:
                        low = high = value
                    # votes of few judges are not independent
                    low, high = min(low, value, ends[0]), max(high, value, ends[1])
                    error = np.inf if np.isinf([low, high]).any() else error
            listed.append(Coefficient(name, value, error, low, high, ids[q]))
    return listed


def wins_of(contests: Contests) -> tuple[Ints, Ints]:
    """Return the wins of all contests; a tie is a win in each direction."""
    first, second, outcome, *_ = contests
    winner, loser = np.where(outcome == 1, second, first), np.where(outcome == 1, first, second)
    tied = outcome == 2
    return np.append(winner, loser[tied]), np.append(loser, winner[tied])
