"""The probes of an audit for many small boards together.

A board with few votes does not support the test of a model. These probes need no model: they
compare a sum over the pairs or triangles of all queries with its value without the fault.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtr

from sklearn_rankcal.aggregation._audit_data import Found, Probe
from sklearn_rankcal.aggregation._audit_probes import share_without_answer
from sklearn_rankcal.aggregation._contests import Contests, contests_of
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.queries._queries import number_values
from sklearn_rankcal.utils._messages import counted, percent
from sklearn_rankcal.utils._rounding import exceeds


def pooled_probes(board: Any, level: float) -> tuple[list[Probe], float]:
    """Return the pooled probes of all queries of an `Aggregate`, and the number of votes.

    O(n_votes) time, and O(n_items^2) for the triangles of each query, a few queries at a time.
    """
    read = board.judgements
    contests = contests_of(read)
    tied = contests.outcome == 2
    share = float(contests.weight[tied].sum() / contests.weight.sum())
    probes = [
        Probe("few votes", *_few_votes(board, contests)),
        Probe("position", *_position(read, contests, level)),
        Probe("ties", False, f"{percent(share)} of the votes are ties."),
        Probe("cycles", *_cycles(read)),
    ]
    if board.category_spread is None:  # of votes without an answer, the category is not known
        probes.append(Probe("no answer", *share_without_answer(read)))
    return probes, float(contests.weight.sum())


def _few_votes(board: Any, contests: Contests) -> Found:
    queries = board.judgements.queries
    votes = np.bincount(queries.codes[contests.first], contests.weight, queries.n_queries)
    split = np.zeros(queries.n_queries, dtype=bool)
    split[queries.codes[board.parts != 1]] = True
    split &= queries.sizes > 1
    unit = "query" if board.category_spread is None else "category"
    text = (
        f"{counted(queries.n_queries, unit)}, each with {counted(float(np.median(votes)), 'vote')} "
        f"on {counted(float(np.median(queries.sizes)), 'item')} (medians); "
        f"pass group= to examine one {unit}."
    )
    if not split.any():
        return False, text + f" In each {unit}, votes connect all items."
    apart = counted(int(split.sum()), unit)
    text += f" In {apart} ({percent(split.mean())}), votes do not connect all items."
    return True, text


def _position(read: Judgements, contests: Contests, level: float) -> Found:
    """Whether the first item wins too often, among the pairs that were shown in both orders.

    Let b be the effect of the first place and d the difference of the scores. The first item wins
    with odds exp(d + b) in one order and exp(d - b) in the other order. The odds ratio exp(2 b) is
    the same for all pairs. It is estimated as in Mantel and Haenszel (1959), with an error that
    allows for differences between queries.
    """
    if read.details is None:
        text = "Unknown: read the votes with Judgements.from_votes, which records who was first."
        return None, text
    decided = contests.outcome < 2
    first, second, outcome, weight, _, _ = contests.take(decided)
    if not len(first):
        return None, "Unknown: all votes are ties."
    one, other = np.minimum(first, second), np.maximum(first, second)
    pair, keys = number_values(one * read.queries.n_rows + other)
    swapped, won = first != one, (outcome == 0) == (first == one)  # by the item `one`
    cell = np.bincount(4 * pair + 2 * swapped + won, weight, 4 * len(keys)).reshape(
        -1, 2, 2
    )  # pair, order, whether `one` won
    both = (cell.sum(axis=2) > 0).all(axis=1)
    if not both.any():
        ahead = float(weight[outcome == 0].sum() / weight.sum())
        text = (
            f"Unknown: the first item wins {percent(ahead)} of the decided votes, but no "
            "pair was shown in both orders. Show some pairs in both."
        )
        return None, text
    cell, total = cell[both], cell[both].sum(axis=(1, 2))
    up = cell[:, 0, 1] * cell[:, 1, 0] / total  # the first won in both orders
    down = cell[:, 0, 0] * cell[:, 1, 1] / total
    query = read.queries.codes[keys[both] // read.queries.n_rows]
    ups, downs = (np.bincount(query, values) for values in (up, down))
    agree = cell[:, 0, 1] * cell[:, 1, 1] + cell[:, 0, 0] * cell[:, 1, 0]
    agree = agree / cell.sum(axis=2).prod(axis=1)
    text = f"{percent(agree.mean())} of the pairs that were shown in both orders"
    text = f"{text} ({len(agree):,}) have the same winner both times."
    spread = float(np.sqrt(((ups - downs) ** 2).sum()))
    free = np.count_nonzero(ups + downs) - 1
    z = abs(ups.sum() - downs.sum()) / spread if spread > 0 else 0.0
    p = float(2 * stdtr(free, -z)) if free > 0 else 1.0
    if p >= level:
        return False, f"{text} No effect of the order was found (p = {p:.2g}).", p
    with np.errstate(divide="ignore"):
        effect = float(np.log(ups.sum()) - np.log(downs.sum())) / 2
    text += f" The first item wins as if its score were {effect:.2f} larger (p = {p:.2g})."
    return True, text + " Show pairs in random order, or in both orders.", p


def _cycles(read: Judgements) -> Found:
    """The share of triangles of decided pairs that are cyclic: 1/4 for votes by coin flips."""
    preferences = read.preferences()
    cyclic = triangles = 0.0
    for inside, _ in read.queries.pair_blocks(pair_bytes=32):
        weight = preferences.matrices(inside)
        against = weight.swapaxes(1, 2)
        beats = exceeds(weight, against, weight + against).astype(np.float64)
        met = beats + beats.swapaxes(1, 2)
        # a cyclic triangle gives three closed walks of wins, any triangle six of meetings
        cyclic += float(np.einsum("qij,qji->", beats @ beats, beats)) / 3
        triangles += float(np.einsum("qij,qji->", met @ met, met)) / 6
    if not triangles:
        return None, "Unknown: no three items were compared with each other."
    share = cyclic / triangles
    text = f"{percent(share)} of {counted(triangles, 'triangle')} are cyclic;"
    return not exceeds(0.25, share, 1.0), f"{text} votes by coin flips would give 25 %."
