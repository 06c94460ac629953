"""The fewest votes without which another item would be first."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from scipy.special import comb

from sklearn_rankcal.aggregation._audit_data import AuditData
from sklearn_rankcal.aggregation._base import tie_scores
from sklearn_rankcal.aggregation._contest_boards import fit_board
from sklearn_rankcal.aggregation._contests import Contests
from sklearn_rankcal.labels._item_ids import content_ranks
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import add_up
from sklearn_rankcal.utils._rounding import ROUNDING, exceeds, order_from_largest
from sklearn_rankcal.utils._typing import Floats, Ints

#: Number of rivals with gradients, and number of rivals that are tried: those that need the fewest
#: votes by their gradients.
_NEAREST, _RIVALS = 51, 3
#: Maximum number of sets of votes that are tried one by one.
_MAX_SETS = 2000


class Influence(NamedTuple):
    """The smallest set of votes that was found to change the first place if removed.

    Attributes
    ----------
    n_votes : float
        Number of removed votes.
    at_least : int
        No set of fewer votes changes the first place, as all of them were tried.
    first, rival : int
        The item that is first with all votes, and the item that is first without these votes.
    votes : ndarray of int
        Numbers of the removed votes in the judgements.
    """

    n_votes: float
    at_least: int
    first: int
    rival: int
    votes: Ints


def fewest_votes(data: AuditData) -> Influence | None:
    """Find the smallest set of votes that decides the first place; None without a first item.

    Without these votes, another item alone is first in the main part of the items; a tie does not
    count. Votes are removed in the order of their effects on the lead of the first item, by one
    Newton step. The model is then refitted to the remaining votes, to verify that the first place
    changes. If there are at most 2,000 smaller sets of different votes, all are tried, and the
    number is exact: `at_least` is `n_votes`. Otherwise `at_least` is 1.
    """
    fit, contests = data.board.fit, data.contests
    scores, ids = data.board.scores, content_ranks(data.items)
    best: tuple[float, int, Floats] | None = None
    first = data.first(data.ranks)
    if first is None or len(data.main) < 2:
        return None
    rivals = data.main[np.lexsort((ids[data.main], data.ranks[data.main]))][1:]
    kinds, of_kind, counts, at = _kinds_of_votes(data)
    own = (kinds.first == first) | (kinds.second == first)
    leader = _leader(data, kinds, np.where(own, 0.0, counts), at)
    if leader is not None:  # an item without remaining votes is not first
        best = (float(np.ceil(counts[own].sum())), leader, np.where(own, counts, 0.0))
    outcome = contests.outcome[at]
    slopes = fit.slopes()
    lead, tie = slopes.lead[outcome, at], slopes.tie[outcome, at]
    tries, needed = [], []
    for rival in rivals[:_NEAREST].tolist():
        contrast = (data.board.map[[first]] - data.board.map[[rival]]).toarray()[0]
        pull = fit.solve(contrast)
        effect = lead * fit.votes.leads(pull, fit.n_items)[at]
        if fit.has_tie:
            effect += tie * pull[-1]
        ranked = order_from_largest(effect)  # break ties of equal effects by kind
        helps = exceeds(effect, 0.0, np.abs(effect).max())
        total = np.cumsum(np.where(helps, effect, 0.0)[ranked] * counts[ranked])
        gap = float(scores[first] - scores[rival])
        # the number of votes with effects that sum to the gap, up to rounding
        reach = int(exceeds(gap, total, gap).sum())
        needed.append(float(counts[ranked[: reach + 1]].sum()) if reach < len(total) else np.inf)
        tries.append(ranked[helps[ranked]])
    nearest = order_from_largest(-np.array(needed), ids[rivals[: len(needed)]])
    for k in nearest[:_RIVALS].tolist():
        found = _shortest_prefix(data, kinds, counts, at, tries[k], first, best)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    if best is None:
        return None
    n_votes, rival, removed = best
    at_least = 1
    smaller_sets = comb(len(counts) + int(n_votes) - 1, int(n_votes) - 1)
    small = n_votes <= 20 and smaller_sets <= _MAX_SETS
    while small and at_least < n_votes:
        smaller = _some_set_changes(data, kinds, counts, at, first, at_least)
        if smaller is not None:
            n_votes, rival, removed = float(at_least), smaller[0], smaller[1]
            break
        at_least += 1
    votes = np.concatenate(
        [np.flatnonzero(of_kind == k)[: int(np.ceil(removed[k]))] for k in np.flatnonzero(removed)]
    )
    return Influence(n_votes, at_least, first, rival, contests.judgement[votes])


def _kinds_of_votes(data: AuditData) -> tuple[Contests, Ints, Floats, Ints]:
    """Return one vote of each kind, the kind of each vote, and the number of votes per kind.

    The order of the kinds depends on the ids of items and on covariates, not on the order of the
    votes. The last array has the index of a vote of each kind.
    """
    contests, X = data.contests, data.board.X
    ids, n = content_ranks(data.items), len(data.items)
    key = (ids[contests.first] * n + ids[contests.second]) * 3 + contests.outcome
    if X.shape[1] and (X != X[:1]).any():
        place = np.lexsort((*X.T, key))
        of_kind = np.empty_like(place)
        of_kind[place] = np.arange(len(place))
    else:
        place, of_kind = np.unique(key, return_index=True, return_inverse=True)[1:]
    counts = add_up(of_kind, contests.weight, len(place))
    return contests.take(place), of_kind, counts, place


def _leader(data: AuditData, kinds: Contests, counts: Floats, places: Ints) -> int | None:
    """Fit the model to these numbers of votes per kind, and return the unique first item.

    Only items of the main part that the remaining votes connect can be first. None without a unique
    first item.
    """
    kept = counts > ROUNDING * np.abs(data.contests.weight).max()
    if not kept.any():
        return None
    left = kinds._replace(weight=counts, square=counts).take(kept)
    X = data.board.X[places][kept]
    try:
        board = fit_board(
            left, X, data.board.names, data.board.rows, data.judgements, data.structure, False,
            effect_ridge=data.board.fit.ridge[data.board.fit.n_items :],
        )  # fmt: skip
    except ValueError:  # the remaining votes do not determine the covariates
        return None
    seen = np.intersect1d(data.main, np.append(left.first, left.second))
    if not len(seen) or len(np.unique(board.fit.part[seen])) > 1:
        return None
    tied = tie_scores(board.scores[seen], data.structure, Queries.single(len(seen)))
    top = seen[tied == tied.max()]
    return int(top[0]) if len(top) == 1 else None


def _shortest_prefix(
    data: AuditData,
    kinds: Contests,
    counts: Floats,
    places: Ints,
    ranked: Ints,
    first: int,
    best: tuple[float, int, Floats] | None,
) -> tuple[float, int, Floats] | None:
    """Find by bisection the number of votes of a list that must be removed."""
    ends = np.cumsum(counts[ranked])
    if not len(ends):
        return None

    def remove(m: float) -> Floats:
        left = counts.copy()
        left[ranked] -= np.clip(m - (ends - counts[ranked]), 0.0, counts[ranked])
        return left

    low, high = 0, int(np.floor(ends[-1]))
    if best is not None:
        high = min(high, int(best[0]) - 1)
    if high < 1:
        return None
    leader = _leader(data, kinds, remove(high), places)
    while leader is None and high > 1:
        high //= 2
        leader = _leader(data, kinds, remove(high), places)
    if leader is None or leader == first:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        now = _leader(data, kinds, remove(middle), places)
        if now is not None and now != first:
            high, leader = middle, now
        else:
            low = middle
    return float(high), leader, counts - remove(high)


def _some_set_changes(
    data: AuditData, kinds: Contests, counts: Floats, places: Ints, first: int, size: int
) -> tuple[int, Floats] | None:
    """Try all sets of this number of votes; return the new first item and the removed votes."""
    for some in combinations_with_replacement(range(len(counts)), size):
        taken = np.bincount(some, minlength=len(counts)).astype(np.float64)
        if (taken > counts).any():
            continue
        leader = _leader(data, kinds, counts - taken, places)
        if leader is not None and leader != first:
            return leader, taken
    return None
