"""Fits of the model of contests for all queries of judgements, and intervals without resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.special import ndtri

from sklearn_rankcal.aggregation._contest_model import ContestFit, fit_contests
from sklearn_rankcal.aggregation._contests import Contests, contests_of, count_votes
from sklearn_rankcal.aggregation._evidence import Evidence, Judges
from sklearn_rankcal.aggregation._graphs import MAIN, number_components, settled_items
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, is_largest


@dataclass(frozen=True)
class Intervals:
    """The intervals of all items, in row layout, and how sure the order of each pair is.

    `level`, the scores, the ranks and the numbers of resamples are attributes of `Aggregate`.
    """

    level: float
    score_low: Floats | None
    score_high: Floats | None
    rank_low: Ints
    rank_high: Ints
    #: for each query, its pairs i < j in the order of `PAIRS`: the normal quantile of the
    #: probability that item i is above item j
    z: Floats
    kind: str | None = None  # "information" or "robust"
    #: for each query, the effective number of judges behind each item and each effect
    judges: list[tuple[Floats, Floats]] | None = None
    n_resamples: int = 0
    resample: str | None = None
    n_disconnected: Ints | None = None
    n_unbounded: Ints | None = None

    def around(self, ranks: Ints) -> Intervals:
        """Extend the intervals of ranks to these ranks."""
        low, high = np.minimum(self.rank_low, ranks), np.maximum(self.rank_high, ranks)
        return replace(self, rank_low=low, rank_high=high)


def is_clear(z: Floats, alpha: Floats | float) -> Bools:
    """Whether statements with these quantiles are wrong with probability at most alpha."""
    return np.asarray(z >= -ndtri(alpha) * (1 - 1e-9))


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
        The standard error and the ends of the interval; NaN without intervals. Each end survives
        one more vote against it, with a covariate of the usual size (the root mean square without
        zeros), and one more judge. It is infinite if the votes or judges do not bound the effect.
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
    orders: Any = None  # `OrderJudges`, if the judgements are orders

    @property
    def scores(self) -> Floats:
        return np.asarray(self.map @ self.fit.weights)

    def of_scores(self, covariance: Floats) -> Floats:
        """Return the covariance of the scores, from the covariance of the parameters."""
        return np.asarray(self.map @ covariance @ self.map.T)


def fit_boards(judgements: Judgements, structure: Any) -> list[Board]:
    """Fit the model to the contests of each query."""
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
        boards.append(fit_board(local, X[mine], names, rows, judgements, structure))
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
    **options: Any,
) -> Board:
    """Fit the model to the contests of one query, with items in these rows.

    `options` are those of `fit_contests`.
    """
    n = len(rows)
    part, ridge = penalties_of(wins_of(contests), n, structure)
    if not structure.own_effects:
        ridge[:] = 0.0
    votes = count_votes(contests, X)
    fit = fit_contests(votes, n, names, structure, ridge, part, **options)
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


def penalties_of(wins: tuple[Ints, Ints], n_items: int, structure: Any) -> tuple[Ints, Floats]:
    """Return the component of each item by its wins and losses, and the penalty of its score."""
    part = number_components(*wins, n_items, "weak")
    block = number_components(*wins, n_items, "strong")
    strong = np.bincount(part[np.unique(block, return_index=True)[1]]) == 1
    return part, np.asarray(structure._penalties(strong))[part]


def intervals_of(
    judgements: Judgements,
    boards: list[Board],
    structure: Any,
    kind: str,
    level: float,
    parts: Ints,
    few: Sequence[tuple[float, float] | None] = (),
    main: float = MAIN,
) -> tuple[Intervals, list[Coefficient]]:
    """Compute the intervals of all queries, "information" or "robust", and of all effects.

    `parts` are the components of the rows. `few` has the number and the degrees of freedom of the
    judges of each query, for fits whose covariance allows for judges. `settled_items` has `main`.
    O(n_items^2) memory for each query.
    """
    low, high = np.empty((2, judgements.queries.n_rows))
    ranks = np.empty((2, judgements.queries.n_rows), dtype=np.int64)
    found, listed, judges = [], [], []
    for q, board in enumerate(boards):  # a loop over queries
        known = evidence_of(judgements, board, structure, kind, level, few[q] if few else None)
        scores, rivals = board.scores, main_part(parts[board.rows])
        best = int(rivals[is_largest(scores[rivals])][0]) if len(rivals) else 0
        z = known.of_pairs(best, rivals[rivals != best])
        found.append(z[np.triu_indices(len(z), 1)])  # the order of `PAIRS`
        ranks[:, board.rows] = clear_ranks(z, (1 - level) / 2)
        own = board.fit.part
        settled = settled_items(*wins_of(board.contests), own, main)
        middle = np.bincount(own, scores * settled) / np.bincount(own, settled)
        ends = [end + middle[own] for end in known.of_scores(settled)]
        low[board.rows] = np.minimum(ends[0], scores)
        high[board.rows] = np.maximum(ends[1], scores)
        numbers = np.zeros(0)
        if len(known.center) > len(z):
            effects, numbers = _effects_of(board, known, judgements.queries.ids[q])
            listed += effects
        if known.judges is not None and known.judges.judge is not None:
            items = known.of_items()
            assert items is not None
            judges.append((items[0].number, numbers))
    low[parts == 0] = high[parts == 0] = np.nan  # not compared, without a score
    z = np.concatenate(found)
    return Intervals(level, low, high, ranks[0], ranks[1], z, kind, judges or None), listed


def evidence_of(
    judgements: Judgements,
    board: Board,
    structure: Any,
    kind: str,
    level: float,
    few: tuple[float, float] | None = None,
) -> Evidence:
    """Return what the votes of a query say of contrasts of its scores."""
    judges = None
    fit, contests = board.fit, board.contests
    if board.orders is not None:
        fit, _, _, profiles = board.orders
        judges = board.orders if kind == "robust" else None
        return Evidence(fit, board.map, level, judges=judges, profiles=profiles)
    if kind == "robust" and fit.information is None:
        judge = None
        if judgements.judge is not None:
            judge = np.unique(judgements.judge[contests.judgement], return_inverse=True)[1]
        own = fit._replace(votes=count_votes(contests, board.X, merge=False))
        judges = Judges(own, judge, contests.outcome, contests.weight, contests.square)
    penalty = 0.0 if isinstance(structure.penalty, str) else float(structure.penalty)
    return Evidence(fit, board.map, level, penalty, judges, few)


def _effects_of(board: Board, known: Evidence, group: Any) -> tuple[list[Coefficient], Floats]:
    """Return the effects of a query with intervals, and the numbers of their judges."""
    fit, n = board.fit, board.fit.n_items
    names = effect_names(board)
    # a vote against an effect has a covariate of the usual size
    size = np.ones(len(names))
    for k, x in enumerate(board.fit.votes.X.T):
        size[k] = np.sqrt(x @ x / max(np.count_nonzero(x), 1)) or 1.0
    size /= known.unit[n:]
    contrasts = np.eye(len(names), len(known.center), n) * size[:, None]
    scale = size * known.unit[n:]
    # With many items, the profile likelihood of an effect has a bias, which Firth's fit has not.
    exact = known.small or fit.recession is not None
    low, high = known.ends(contrasts, exact)
    if fit.has_tie and not exact:  # Firth's fit has no additional ties
        low[-1:], high[-1:] = known.ends(contrasts[-1:])
    low, high = low / scale, high / scale
    error, numbers = known.errors(contrasts)
    value = fit.weights[n:]
    found = zip(
        names, value.tolist(), (error / scale).tolist(), low.tolist(), high.tolist(), strict=True
    )
    return [
        Coefficient(name, at, one, min(below, at), max(beyond, at), group)
        for name, at, one, below, beyond in found
    ], numbers


def effect_names(board: Board) -> tuple[str, ...]:
    """Return the names of the covariates, and "ties" if ties have a parameter."""
    return (*board.names, "ties") if board.fit.has_tie else board.names


def coefficients_of(boards: list[Board], ids: Any) -> list[Coefficient]:
    """List the coefficients of all queries, without intervals."""
    nan = np.nan
    return [
        Coefficient(name, float(value), nan, nan, nan, ids[q])
        for q, board in enumerate(boards)
        for name, value in zip(
            effect_names(board), board.fit.weights[board.fit.n_items :], strict=True
        )
    ]


def wins_of(contests: Contests) -> tuple[Ints, Ints]:
    """Return the wins of all contests; a tie is a win in each direction."""
    first, second, outcome, *_ = contests
    winner, loser = np.where(outcome == 1, second, first), np.where(outcome == 1, first, second)
    tied = outcome == 2
    return np.append(winner, loser[tied]), np.append(loser, winner[tied])


def clear_ranks(z: Floats, alpha: float) -> tuple[Ints, Ints]:
    """Return the best and the worst rank of each item, by the pairs that are clear."""
    above = is_clear(z, alpha)
    np.fill_diagonal(above, False)
    return 1 + above.sum(axis=0), len(z) - above.sum(axis=1)


def rank_intervals(z: Floats, queries: Queries, level: float) -> tuple[Ints, Ints]:
    """Do the same as `clear_ranks` for the pairs of all queries, in row layout."""
    alpha = (1 - level) / 2
    sure = is_clear(z, alpha).astype(np.float64) - is_clear(-z, alpha)
    low = np.ones(queries.n_rows, dtype=np.int64)
    high = queries.repeat(queries.sizes).astype(np.int64)
    starts = np.append(0, np.cumsum(PAIRS.n_entries(queries.sizes)))
    for inside in queries.equal_pair_blocks():
        r = inside.shape[1]
        entries = starts[queries.codes[inside[:, :1]]] + np.arange(PAIRS.n_entries(r))
        matrices = PAIRS.matrices(sure[entries], r)
        low[inside] += (matrices < 0).sum(axis=2)
        high[inside] -= (matrices > 0).sum(axis=2)
    return queries.scatter(low), queries.scatter(high)


def main_part(parts: Ints) -> Ints:
    """Return the items of the part with more than half of the compared items, or none."""
    main = np.flatnonzero(parts == 1)
    return main if 2 * len(main) > np.count_nonzero(parts) else main[:0]


# ---------------------------------------------------------------- the first place

# An interval for a fixed number of votes is wrong too often if it is checked after each vote until
# it is clear. `anytime_bound` holds for all numbers of votes at the same time.

#: Standard deviation of the normal mixture of the bound. The bound holds for all differences, and
#: is tightest for differences of about this size in log-odds.
_SPREAD = 0.5


def anytime_bound(error: Floats, alpha: float) -> Floats:
    """Return the bound that the error of an estimate ever exceeds with probability at most alpha.

    The inverse square of the standard error is the information I. The estimate times I behaves like
    a Brownian motion at time I, and Robbins' normal mixture gives, for both signs together,
    I bound = sqrt((I + r) (log((I + r) / r) - 2 log(alpha))) with r = 1 / 0.5^2.
    """
    ratio = _SPREAD**2 / np.square(error)  # I / r
    return np.asarray(error * np.sqrt((1 + 1 / ratio) * (np.log1p(ratio) - 2 * np.log(alpha))))


def is_first_certain(z: Floats, ahead: Floats, level: float) -> bool:
    """Whether the best item is first at this level, at any time.

    `z` and `ahead` have the quantiles and the leads over its rivals.
    """
    # The true first item occurs in len(z) differences. If another item is declared first, one of
    # these differences is wrong.
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(z > 0, ahead / z, np.inf)
    return bool((ahead > anytime_bound(error, (1 - level) / max(len(z), 1))).all())


def may_be_first(z: Floats, level: float, clear: Bools | None) -> Bools:
    """Return which items are in a set that contains the best item.

    An item is left out if another item is significantly above it, with Bonferroni's correction for
    its own pairs. `z` refers to items in descending order of scores. `clear` marks items that the
    first item is clearly above at the same time; they are left out as well. If `clear` is None, the
    closest rival of the first item stays.
    """
    n = len(z)
    below: Bools = np.any(is_clear(z, (1 - level) / (2 * max(n - 1, 1))), axis=0)
    below[0] = False
    if clear is not None:
        below |= clear
    if clear is None and n > 1 and below[1:].all():
        below[1:][is_largest(-z[0, 1:])] = False
    return ~below
