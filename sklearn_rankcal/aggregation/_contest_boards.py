"""Fits of the model of contests for all queries of judgements, and intervals without resamples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.special import ndtr, stdtr, stdtrit

from sklearn_rankcal.aggregation._contest_model import ContestFit, count_votes, fit_contests
from sklearn_rankcal.aggregation._graphs import number_components
from sklearn_rankcal.aggregation._intervals import rank_intervals
from sklearn_rankcal.aggregation._unanimous import MAIN, open_ends
from sklearn_rankcal.labels import Judgements
from sklearn_rankcal.labels._contests import Contests, contests_of
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._typing import Floats, Ints

_DEGREES = 1e6  # of freedom, with which Student's t distribution is the normal one


class Coefficient(NamedTuple):
    """The effect of a covariate, or the parameter of ties, in units of the scores.

    Attributes
    ----------
    name : str
        The name of the covariate, ``"position"`` or ``"ties"``.
    value : float
        The estimate. A vote in which the covariate is larger by 1 is won by the first item as if
        its score were larger by this number.
    standard_error, low, high : float
        The standard error, and the ends of the interval; NaN without intervals. The middle of the
        interval is the estimate minus its bias (Cox and Snell, 1968), which is not small where
        items have few votes.
    group : object
        The query.
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
    map: csr_array  # (n_items, n_parameters); the scores are this times the parameters
    X: Floats  # the covariates of the contests
    contests: Contests  # of items numbered from 0

    @property
    def scores(self) -> Floats:
        return np.asarray(self.map @ self.fit.weights)

    def of_scores(self, covariance: Floats) -> Floats:
        """Return the covariance of the scores, given that of the parameters."""
        return np.asarray(self.map @ covariance @ self.map.T)


class BoardIntervals(NamedTuple):
    """Intervals of all queries, in grouped layout as those of the bootstrap."""

    score_low: Floats
    score_high: Floats
    rank_low: Ints
    rank_high: Ints
    above: Floats
    errors: list[Floats]  # the covariance of the parameters of each query
    degrees: list[float]


def fit_boards(judgements: Judgements, structure: Any, *, merge: bool = True) -> list[Board]:
    """Fit the model to the contests of each query.

    Without `merge`, contests are fitted one by one, so that they have a judge each.
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
    for q in range(queries.n_queries):  # a loop over queries, each with a model of its own
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
) -> Board:
    """Fit the model to the contests of one query, whose items are these rows."""
    n = len(rows)
    part, ridge = penalties_of(contests, n, structure)
    if not structure.own_effects:
        ridge[:] = 0.0
    votes = count_votes(contests, X, merge=merge)
    fit = fit_contests(
        votes, n, names, ties=structure.ties, ridge=ridge, part=part,
        own_effects=structure.own_effects, tol=structure.tol, max_iter=structure.max_iter,
    )  # fmt: skip
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

    With judges, robust intervals are those of clusters, with quantiles of Student's t distribution.
    `parts` are the components of the rows, and `open_ends` has `main`. O(n_items^2) memory for each
    query.
    """
    queries = judgements.queries
    low, high = np.empty((2, queries.n_rows))
    above, errors, degrees = [], [], []
    for board in boards:  # a loop over queries
        fit, contests = board.fit, board.contests
        n, place = fit.n_items, queries.scatter(np.arange(queries.n_rows))[board.rows]
        free = degrees_of(judgements, contests, kind)
        covariance = covariance_of(judgements, fit, contests, kind)
        of_scores = board.of_scores(covariance)
        quantile = float(stdtrit(free, (1 + level) / 2))
        half = quantile * np.sqrt(np.maximum(np.diag(of_scores), 0.0))
        low[place], high[place] = board.scores - half, board.scores + half
        winner, loser = wins_of(contests)
        if len(winner):
            open_low, open_high = open_ends(winner, loser, fit.part, main)
            compared = np.bincount(fit.part)[fit.part] > 1
            low[place[open_low & compared]], high[place[open_high & compared]] = -np.inf, np.inf
        one, other = PAIRS.indices(n)
        difference = board.scores[one] - board.scores[other]
        error = pair_errors(of_scores)[one, other]
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(error > 0, difference / error, np.sign(difference) * 40.0)
        chance = ndtr(z) if free == _DEGREES else stdtr(free, z)
        part = parts[board.rows]
        low[place[part == 0]] = high[place[part == 0]] = np.nan  # not compared, without a score
        above.append(np.where(part[one] == part[other], chance, 0.5))
        errors.append(covariance)
        degrees.append(free)
    joined = np.concatenate(above) if above else np.empty(0)
    ranks = rank_intervals(joined, queries, level)
    return BoardIntervals(low, high, *ranks, joined, errors, degrees)


def covariance_of(judgements: Judgements, fit: ContestFit, contests: Contests, kind: str) -> Floats:
    """Return the covariance of the parameters: "information", or "robust" with known judges."""
    if kind == "information":
        return fit.inverse()
    if judgements.judge is None:
        return fit.robust(None, None)
    judge = _judges_of(judgements, contests)
    return fit.robust(judge, (contests.outcome, contests.weight))


def degrees_of(judgements: Judgements, contests: Contests, kind: str) -> float:
    """Return the degrees of freedom of the intervals of a query."""
    if kind != "robust" or judgements.judge is None:
        return _DEGREES
    return max(1.0, float(_judges_of(judgements, contests).max()))


def _judges_of(judgements: Judgements, contests: Contests) -> Ints:
    """Return the judge of each contest, numbered from 0."""
    assert judgements.judge is not None
    numbers = np.unique(judgements.judge[contests.judgement], return_inverse=True)[1]
    return np.asarray(numbers, dtype=np.int64)


def pair_errors(covariance: Floats) -> Floats:
    """Return the standard error of the difference of each two scores."""
    variance = np.diag(covariance)
    return np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0.0))


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
            biases = fit.bias(found.errors[q])
        for k, name in enumerate(names):
            value, error, half = float(fit.weights[n + k]), np.nan, np.nan
            middle = value - float(biases[n + k])
            if found is not None:
                error = float(np.sqrt(found.errors[q][n + k, n + k]))
                half = float(stdtrit(found.degrees[q], (1 + level) / 2)) * error
            listed.append(Coefficient(name, value, error, middle - half, middle + half, ids[q]))
    return listed


def wins_of(contests: Contests) -> tuple[Ints, Ints]:
    """Return the wins of all contests, of which a tie is one in each direction."""
    first, second, outcome, *_ = contests
    winner, loser = np.where(outcome == 1, second, first), np.where(outcome == 1, first, second)
    tied = outcome == 2
    return np.append(winner, loser[tied]), np.append(loser, winner[tied])
