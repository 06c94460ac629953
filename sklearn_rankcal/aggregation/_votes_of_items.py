"""The numbers of judgements, wins and losses of the items of a leaderboard."""

from __future__ import annotations

from typing import Any

import numpy as np

from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.utils._numbers import add_up
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: A leaderboard marks items with fewer votes than this.
FEW_VOTES = 30


def count_votes_of_items(judgements: Judgements, some: Bools) -> tuple[Ints, Ints, Floats]:
    """Return the judgements of each item, and the number of votes of each item."""
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


def vote_columns(judgements: Judgements) -> dict[str, Any]:
    """Count the votes of each item: columns of `Aggregate.to_frame`.

    Returns
    -------
    columns : dict of ndarray of shape (n_items,)
        ``votes`` is the number of judgements that contain the item, and ``few_votes`` whether this
        is below 30. ``win_share`` is the share of the weight of its comparisons that the item won.
        ``first_vote`` and ``last_vote`` are times, if they are known. Linear in the entries of the
        judgements.
    """
    n = judgements.queries.n_rows
    columns: dict[str, Any] = {}
    row, owner, times = count_votes_of_items(judgements, np.ones(n, dtype=bool))
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
            columns[name][row[chosen]] = time[owner[chosen]]  # the last assignment remains
    return columns


def few_votes(judgements: Judgements) -> dict[int, float]:
    """Return the rows of items with fewer than 30 votes, and their numbers of votes.

    Empty if all items have few votes, or if the judgements are orders.
    """
    if judgements.orders is not None:
        return {}
    winner, loser, *_ = judgements.comparisons
    n = judgements.queries.n_rows
    # a vote is at most two comparisons: only items with few comparisons can have few votes
    some = add_up(winner, None, n) + add_up(loser, None, n) < 2 * FEW_VOTES
    if some.all():
        return {}
    votes = count_votes_of_items(judgements, some)[2]
    few = np.flatnonzero((votes > 0) & (votes < FEW_VOTES))
    return {int(k): float(votes[k]) for k in few[np.argsort(votes[few], kind="stable")]}
