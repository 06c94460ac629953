"""Fits of the model of contests for all queries of judgements, and intervals without resamples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.special import ndtr

from sklearn_rankcal.aggregation._contest_design import count_votes
from sklearn_rankcal.aggregation._contest_model import ContestFit, fit_contests
from sklearn_rankcal.aggregation._contests import Contests, contests_of
from sklearn_rankcal.aggregation._errors import (
    FREE,
    ScoreErrors,
    probability_first,
    student_quantile,
    student_width,
)
from sklearn_rankcal.aggregation._exact_ends import (
    exact_effect_excess,
    exact_excess,
    open_interval,
)
from sklearn_rankcal.aggregation._graphs import number_components
from sklearn_rankcal.aggregation._intervals import rank_intervals
from sklearn_rankcal.aggregation._judge_shares import (
    JudgeShares,
    clustered_covariance,
    pooled_variances,
    sandwich,
)
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.aggregation._unanimous import MAIN, open_ends, reference_of
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._rounding import is_largest
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

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


class BoardIntervals(NamedTuple):
    """Intervals of all queries, in grouped layout."""

    score_low: Floats
    score_high: Floats
    rank_low: Ints
    rank_high: Ints
    above: Floats
    first: Floats  # for each query, the probability that its best item is above the rest
    errors: list[ScoreErrors]
    effects: list[EffectErrors]


class EffectErrors(NamedTuple):
    """The errors of the effects of one query.

    `covariance` is for all parameters, and `error` is the standard error of each effect. `below`
    and `beyond` are the lengths of its interval on both sides, infinite if it rests on a single
    judge.
    """

    covariance: Floats
    error: Floats
    below: Floats
    beyond: Floats
    judges: tuple[Floats, Floats] | None  # the effective number for each item and each effect


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
        local = contests.take(mine)
        local = local._replace(first=place[local.first] - start, second=place[local.second] - start)
        rows = np.arange(start, start + n)
        rows = rows if queries.order is None else queries.order[rows]
        boards.append(fit_board(local, X[mine], names, rows, judgements, structure, merge))
    return boards


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
) -> BoardIntervals:
    """Compute the intervals of all queries: "information" or "robust".

    `parts` are the components of the rows, and `open_ends` has `main`. O(n_items^2) memory for each
    query.
    """
    queries = judgements.queries
    low, high = np.empty((2, queries.n_rows))
    first = np.ones(queries.n_queries)
    above, errors, effects = [], [], []
    place_of = queries.scatter(np.arange(queries.n_rows))
    for q, board in enumerate(boards):  # a loop over queries
        fit, contests = board.fit, board.contests
        n, place, part = fit.n_items, place_of[board.rows], parts[board.rows]
        scores, of_effects = errors_of(judgements, board, kind, level)
        below, beyond = scores.widths(level)
        low[place], high[place] = board.scores - below, board.scores + beyond
        winner, loser = wins_of(contests)
        if len(winner):
            open_low, open_high = open_ends(winner, loser, fit.part, main)
            if not fit.own_effects:  # features connect all items
                open_low, open_high = open_scores(board, np.zeros((n, n)))
            elif fit.recession is not None:
                mean = reference_of(winner, loser, fit.part, main)
                moved = open_scores(board, mean)
                open_low, open_high = open_low | moved[0], open_high | moved[1]
            compared = np.bincount(fit.part)[fit.part] > 1
            low[place[open_low & compared]], high[place[open_high & compared]] = -np.inf, np.inf
        low[place[part == 0]] = high[place[part == 0]] = np.nan  # not compared, without a score
        z = scores.z()
        one, other = PAIRS.indices(n)
        above.append(np.where(part[one] == part[other], ndtr(z[one, other]), 0.5))
        rivals = main_part(part)
        if len(rivals):
            best = int(rivals[is_largest(scores.scores[rivals])][0])
            others = rivals[rivals != best]
            certain = (1 + level) / 2
            first[q] = probability_first(z, scores.covariance, best, others, certain)
        else:
            first[q] = np.nan
        errors.append(scores)
        effects.append(of_effects)
    joined = np.concatenate(above) if above else np.empty(0)
    ranks = rank_intervals(joined, queries, level)
    return BoardIntervals(low, high, *ranks, joined, first, errors, effects)


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


def main_part(parts: Ints) -> Ints:
    """Return the items of the part with more than half of the compared items, or none."""
    main = np.flatnonzero(parts == 1)
    return main if 2 * len(main) > np.count_nonzero(parts) else main[:0]


def errors_of(
    judgements: Judgements, board: Board, kind: str, level: float
) -> tuple[ScoreErrors, EffectErrors]:
    """Return the errors of the scores and of the effects of one query.

    Robust errors are clustered by judge, if judges are known. `level` is the confidence level of
    the exact intervals for items with few votes.
    """
    fit, contests, n = board.fit, board.contests, board.fit.n_items
    inverse = fit.inverse()
    covariance, degrees = inverse, np.full(len(fit.weights), np.inf)
    judges = pooled = shares = None
    if kind == "robust":
        covariance, shares = robust_covariance(judgements, fit, contests, inverse)
        if shares is not None:
            degrees, judges = np.concatenate(shares.degrees()), shares.numbers()
        # weights are not numbers of votes
        inverse = inverse * float(fit.votes.squares.sum() / fit.votes.counts.sum())
    low, high, shared = exact_excess(fit, level)
    information = board.of_scores(inverse)
    own = degrees[:n]
    if not fit.own_effects and len(degrees) > n:
        own = np.full(n, degrees[n:].min())
    winner, loser = wins_of(contests)
    of_scores = information if kind == "information" else board.of_scores(covariance)
    if shares is not None:
        pooled = pooled_variances(fit, shares, np.diag(of_scores), np.diag(information))
    scores = ScoreErrors(
        board.scores,
        of_scores,
        information,
        low,
        high,
        shared,
        own,
        np.diag(information) if pooled is None else pooled,
        fit.part,
        number_components(winner, loser, n, "strong"),
    )
    spread = np.zeros(len(degrees) - n) if shares is None else shares.spread
    return scores, _effect_errors(fit, covariance, inverse, degrees[n:], spread, judges, level)


def robust_covariance(
    judgements: Judgements, fit: ContestFit, contests: Contests, inverse: Floats
) -> tuple[Floats, JudgeShares | None]:
    """Return the robust covariance of the parameters, clustered by judge if judges are known.

    `inverse` is the inverse of the information.
    """
    if judgements.judge is None:
        return sandwich(inverse, fit.meat()), None
    judge = _judges_of(judgements, contests)
    return clustered_covariance(fit, judge, contests.outcome, contests.weight, inverse)


def _effect_errors(
    fit: ContestFit,
    covariance: Floats,
    inverse: Floats,
    degrees: Floats,
    spread: Floats,
    judges: tuple[Floats, Floats] | None,
    level: float,
) -> EffectErrors:
    """Return the errors of effects, given both covariances of all parameters.

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
    return EffectErrors(covariance, error, widths[0], widths[1], judges)


def _judges_of(judgements: Judgements, contests: Contests) -> Ints:
    """Return the judge of each contest, numbered from 0."""
    assert judgements.judge is not None
    numbers = np.unique(judgements.judge[contests.judgement], return_inverse=True)[1]
    return np.asarray(numbers, dtype=np.int64)


def coefficients_of(
    boards: list[Board], found: BoardIntervals | None, level: float, ids: Any
) -> list[Coefficient]:
    """List the coefficients of all queries, with intervals if there are any."""
    listed = []
    for q, board in enumerate(boards):
        fit, n = board.fit, board.fit.n_items
        names = board.names + (("ties",) if fit.has_tie else ())
        biases = np.zeros(len(fit.weights))
        if found is not None and names and fit.information is None:
            most = found.effects[q].error
            if not _is_unbounded(fit, found.errors[q].block):
                biases = fit.bias(found.effects[q].covariance)
                # a larger bias is not a useful approximation
                biases[n:] = np.clip(biases[n:], -most, most)
        for k, name in enumerate(names):
            value = float(fit.weights[n + k])
            error = low = high = np.nan
            if found is not None:
                of_effects, middle = found.effects[q], value - float(biases[n + k])
                error = float(of_effects.error[k])
                low, high = middle - of_effects.below[k], middle + of_effects.beyond[k]
            if found is not None and fit.recession is not None:
                ends = open_interval(fit, k, (low, high), level)
                if found.effects[q].judges is None:
                    low = high = value
                # votes of few judges are not independent
                low, high = min(low, value, ends[0]), max(high, value, ends[1])
                error = np.inf if np.isinf([low, high]).any() else error
            listed.append(Coefficient(name, value, error, low, high, ids[q]))
    return listed


def _is_unbounded(fit: ContestFit, block: Ints) -> bool:
    """Return whether the likelihood has no maximum and there is no penalty.

    `block` are the strongly connected components of the items.
    """
    n_parts, n_blocks = len(np.unique(fit.part)), len(np.unique(block))
    return fit.own_effects and n_blocks > n_parts and not fit.ridge[: fit.n_items].any()


def wins_of(contests: Contests) -> tuple[Ints, Ints]:
    """Return the wins of all contests; a tie is a win in each direction."""
    first, second, outcome, *_ = contests
    winner, loser = np.where(outcome == 1, second, first), np.where(outcome == 1, first, second)
    tied = outcome == 2
    return np.append(winner, loser[tied]), np.append(loser, winner[tied])
