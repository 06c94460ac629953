"""Convert relevance, orders and (partial) rankings to comparisons and preferences."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.labels._labels import Preferences, preference_labels
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import checks_keywords, counted
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, read_numbers

PairWeight = str | Callable[[Floats], ArrayLike]
#: Weights of pairs by name: functions of positive differences of relevance.
PAIR_WEIGHTS: dict[str, Callable[[Floats], Floats]] = {
    "binary": np.ones_like,
    "graded": lambda difference: difference,
}
_BLOCK_BYTES = 1 << 23  # memory of the arrays of pairs in one block


def relevance_preferences(relevance: Floats, queries: Queries) -> Preferences:
    """Return all pairs of rows of the same query with different relevance, with weight 1.

    The cost is O(sum of r^2) time and memory for queries with r documents.
    """
    grouped = queries.gather(relevance)
    counts = _count_unequal(relevance, queries)
    stops = np.cumsum(counts)
    starts = stops - counts
    winner, loser = (np.empty(stops[-1], dtype=np.int64) for _ in range(2))
    for inside, valid in queries.pair_blocks(block_bytes=_BLOCK_BYTES):
        values = grouped[inside]
        above = values[:, :, None] > values[:, None, :]
        above &= valid[:, :, None] & valid[:, None, :]
        # Pairs in the order of query, i, j. Pair number m of query q is stored at starts[q] + m.
        member, i, j = np.nonzero(above)
        q = np.searchsorted(queries.offsets, inside[:, 0], side="right") - 1
        n = counts[q]
        at = np.arange(len(member)) + np.repeat(starts[q] - (np.cumsum(n) - n), n)
        winner[at], loser[at] = inside[member, i], inside[member, j]
    rows = queries.order
    if rows is not None:
        winner, loser = rows[winner], rows[loser]
    return Preferences(queries, winner, loser, np.ones(len(winner)))


class Comparisons(NamedTuple):
    """The comparisons of all judgements, in the order of the judgements.

    Attributes
    ----------
    winner, loser : ndarray of shape (n_comparisons,)
        Rows of the preferred and the other item.
    weight : ndarray of shape (n_comparisons,) or None
        Weight of each comparison. If None, every weight is 1. A tie between two items consists of
        two opposite comparisons with weight 1/2.
    offsets : ndarray of shape (n_judgements + 1,) or None
        Judgement m has the comparisons ``offsets[m]`` to ``offsets[m + 1] - 1``. If None, each
        judgement has exactly one comparison.
    """

    winner: Ints
    loser: Ints
    weight: Floats | None
    offsets: Ints | None


class Orders(NamedTuple):
    """The orders of all judgements, in the order of the judgements.

    Attributes
    ----------
    item : ndarray of shape (n_entries,)
        Rows of the items of each judgement, best first.
    tier : ndarray of shape (n_entries,)
        Tier of each item in its judgement, 0 = best. Tied items are in the same tier.
    offsets : ndarray of shape (n_judgements + 1,)
        Judgement m has the entries ``offsets[m]`` to ``offsets[m + 1] - 1``, at least one.
    """

    item: Ints
    tier: Ints
    offsets: Ints


def compare_tiers(orders: Orders, half_ties: bool) -> Comparisons:
    """Compare all items of different tiers of each order, and tied items if `half_ties`."""
    item, tier, offsets = orders
    found = relevance_preferences(-tier.astype(np.float64), Queries(offsets))
    winner, loser, ends = found.winner, found.loser, found.pair_offsets
    if not half_ties:
        return Comparisons(item[winner], item[loser], None, ends)
    # Treat each tier as a query of entries with different relevance.
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    new = np.append(True, (owner[1:] != owner[:-1]) | (tier[1:] != tier[:-1]))
    tiers = Queries(np.append(np.flatnonzero(new), len(item)))
    ties = relevance_preferences(np.arange(len(item), dtype=np.float64), tiers)
    of_pair = np.repeat(np.arange(len(offsets) - 1), np.diff(ends))
    judgement = np.concatenate([of_pair, owner[ties.winner], owner[ties.winner]])
    order = np.argsort(judgement, kind="stable")
    counts = np.bincount(judgement, minlength=len(offsets) - 1)
    return Comparisons(
        item[np.concatenate([winner, ties.winner, ties.loser])][order],
        item[np.concatenate([loser, ties.loser, ties.winner])][order],
        np.repeat([1.0, 0.5], [len(winner), 2 * len(ties.winner)])[order],
        np.append(0, np.cumsum(counts)),
    )


@checks_keywords
def ranking_labels(ranks: ArrayLike, groups: ArrayLike) -> NDArray[np.void]:
    """Make preference labels from (partial) rankings of the documents of each query.

    Parameters
    ----------
    ranks : array-like of shape (n_documents,) or (n_documents, n_judgements)
        Position of each row in its query, 1 = best, with one column per judgement. Only the order
        of the positions matters: tied rows have no preference between them, and gaps are allowed.
        NaN or a masked entry means that the row was not judged.
    groups : array-like of shape (n_documents,)
        Query id of each row, as in `preference_labels`.

    Returns
    -------
    labels : structured ndarray of shape (n_documents,)
        The array of `preference_labels` for all pairs with different ranks, with weight 1. If
        `ranks` is 2-D, the field ``judgement`` holds the number of the column.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.labels import ranking_labels
    >>> labels = ranking_labels([[1, np.nan], [2, 1], [2, 2]], groups=["q", "q", "q"])
    >>> [wins.tolist() for wins in labels["wins"]], labels["judgement"][1].tolist()
    ([[1, 2], [2], []], [1])
    """
    positions = check_ranks(ranks)
    queries = Queries.from_groups(groups)
    if queries.n_rows != len(positions):
        raise ValueError(
            f"groups has {counted(queries.n_rows, 'entry')}, but ranks has {len(positions)}."
        )
    # treat each judgement of a query as a separate query
    columns = positions.reshape(len(positions), -1).T
    column, row = np.nonzero(~np.isnan(columns))
    if len(row):
        parts = Queries.from_groups(column * queries.n_queries + queries.codes[row])
        found = relevance_preferences(-columns[column, row], parts)
        winner, loser = found.winner, found.loser
    if not len(row) or not len(winner):
        raise ValueError("The rankings contain no preference. At least one preference is needed.")
    judgement = None if positions.ndim == 1 else column[winner]
    return preference_labels(np.column_stack([row[winner], row[loser]]), groups, None, judgement)


def check_ranks(ranks: ArrayLike) -> Floats:
    """Check that ranks are at least 1, or NaN if not judged; return float64, 1-D or 2-D."""
    positions = read_numbers(ranks, "ranks", missing=True)
    if positions.ndim not in (1, 2) or positions.size == 0:
        raise ValueError(
            f"ranks must be a non-empty 1-D or 2-D array; it has shape {positions.shape}."
        )
    if np.isinf(positions).any():
        raise ValueError("ranks must be finite, or NaN for entries that were not judged.")
    if (positions < 1).any():
        place = np.unravel_index(int(np.nanargmin(positions)), positions.shape)
        where = " and ".join(f"{k} {n}" for k, n in zip(("row", "column"), place, strict=False))
        lowest = positions[place]
        advice = (
            "If they count from 0, add 1. Convert an order of indices to ranks with order_to_ranks."
        )
        if lowest < 0 or (positions[~np.isnan(positions)] % 1 != 0).any():
            advice = (
                "Convert scores (larger is better) to ranks with "
                "scipy.stats.rankdata(-scores, axis=-1, nan_policy='omit')."
            )
        raise ValueError(
            f"ranks start at 1 (best); got {lowest:g} in {where}, counted from 0. {advice}"
        )
    return positions


def check_pair_weight(pair_weight: PairWeight) -> Callable[[Floats], ArrayLike]:
    """Return `pair_weight` as a function of positive differences."""
    if callable(pair_weight):
        return pair_weight
    if not isinstance(pair_weight, str) or pair_weight not in PAIR_WEIGHTS:
        raise ValueError(
            f"Unknown pair_weight {pair_weight!r}. Known: "
            f"{', '.join(map(repr, PAIR_WEIGHTS))}, or a function of positive differences."
        )
    return PAIR_WEIGHTS[pair_weight]


def weigh(function: Callable[[Floats], ArrayLike], difference: Floats) -> Floats:
    """Compute the weights of positive differences, and check that they are finite and >= 0."""
    weight = read_numbers(function(difference), "the return value of pair_weight")
    if weight.shape != difference.shape:
        raise ValueError(
            f"pair_weight returned an array of shape {weight.shape} for differences of shape "
            f"{difference.shape}."
        )
    bad = ~np.isfinite(weight) | (weight < 0)
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(
            f"pair_weight must return finite weights >= 0; got {weight[k]} for a difference of "
            f"{difference[k]}."
        )
    return weight


def _count_unequal(y: Floats, queries: Queries) -> Ints:
    """Count the pairs of different values in each query in O(n log r)."""
    # In sorted queries, equal values form runs. A run of t values has t (t - 1) / 2 equal pairs,
    # which are subtracted from the r (r - 1) / 2 pairs of the query.
    values = queries.sort_values(y)
    new = np.append(True, values[1:] != values[:-1])
    new[queries.offsets[:-1]] = True
    starts = np.flatnonzero(new)
    ties = np.diff(np.append(starts, len(values)))
    first = np.searchsorted(starts, queries.offsets[:-1])
    tied = np.add.reduceat(ties * (ties - 1) // 2, first)
    return queries.sizes * (queries.sizes - 1) // 2 - tied


def weigh_pairs(relevance: Floats, valid: Bools, pair_weight: PairWeight) -> Floats:
    """Compute the preference weights, shape (n, r, r), of n queries padded to r documents.

    Entry (q, i, j) is the weight of the preference for document i over document j. It is 0 unless i
    has more relevance than j, and 0 in the padding.
    """
    difference = relevance[:, :, None] - relevance[:, None, :]
    preferred = (difference > 0) & valid[:, :, None] & valid[:, None, :]
    weights = np.zeros_like(difference)
    weights[preferred] = weigh(check_pair_weight(pair_weight), difference[preferred])
    return weights
