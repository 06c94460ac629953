"""`Ranking`: the rows of every query, best first, with blocks of tied rows.

Beside it are the checks of scores, positions, orders and weights, and means over queries with
their intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit
from sklearn.exceptions import UndefinedMetricWarning

from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.utils import _numbers
from sklearn_rankcal.utils._messages import all_of, counted, warn
from sklearn_rankcal.utils._numbers import Floats

#: How a measure orders tied documents: mean over all orders, order in the data, worst, best.
TIES = ("average", "first", "worst", "best")
#: How a measure counts rows that nobody judged.
UNJUDGED = ("irrelevant", "skip")


@dataclass
class Ranking:
    """The rows of every query, best first.

    An array in *best-first layout* has one entry per row: the rows of query 0 from best to worst,
    then the rows of query 1, and so on. Places within a query are numbered from 0.

    Parameters
    ----------
    queries : Queries
        The queries of the rows.
    order : ndarray of shape (n_rows,)
        The row at each place, in best-first layout.
    start, stop : ndarray of shape (n_rows,) or None
        Rows of a query with equal scores form a block. For each place, `start` is the first place
        of its block within the query, and `stop` is the last place + 1. Both are None if there are
        no ties.
    ranked : ndarray of shape (n_rows,) of bool, or None
        Whether the row at each place was ranked. Unranked rows are last in their queries, and
        `take` sets their values to 0. An example is a relevant document that a run did not find. If
        None, all rows were ranked.
    scores : ndarray of shape (n_rows,) or None
        The scores of the rows, if the ranking was made from scores.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries, Ranking
    >>> ranking = Ranking.from_scores(np.array([0.1, 0.7, 0.7]), Queries.single(3))
    >>> ranking.order.tolist(), ranking.start.tolist(), ranking.stop.tolist()
    ([1, 2, 0], [0, 0, 2], [2, 2, 3])
    """

    queries: Queries
    order: NDArray[np.int64]
    start: NDArray[np.int64] | None = None
    stop: NDArray[np.int64] | None = None
    ranked: NDArray[np.bool_] | None = None
    scores: NDArray[Any] | None = None

    @classmethod
    def from_scores(
        cls,
        scores: NDArray[Any],
        queries: Queries,
        ties: str = "average",
        relevance: NDArray[np.float64] | None = None,
    ) -> Ranking:
        """Make a ranking by sorting finite scores in row layout, larger is better.

        `ties` determines the order of rows with equal scores. With ``"average"``, the ranking keeps
        them as blocks, and measures are averaged over their orders. ``"first"`` keeps the order of
        the rows. ``"worst"`` and ``"best"`` sort them by ascending or descending `relevance`
        (n_rows,).
        """
        order = queries.sort(scores)
        tied = equal_neighbours(scores[order], queries)
        if ties == "first" or not tied.any():
            return cls(queries, order, scores=scores)
        ranking = cls(queries, order, *blocks(tied, queries), scores=scores)
        if ties == "average":
            return ranking
        assert relevance is not None
        return ranking.break_ties(-relevance if ties == "best" else relevance)

    @classmethod
    def from_found(
        cls, scores: NDArray[Any], found: NDArray[np.bool_], queries: Queries, ties: str
    ) -> Ranking:
        """Make a ranking in which only rows in `found` are ranked."""
        scores = np.where(found, scores, -np.inf)
        order = queries.sort(scores)
        ranked = found[order]
        tied = equal_neighbours(scores[order], queries) & ranked
        if ties == "first" or not tied.any():
            return cls(queries, order, ranked=ranked)
        return cls(queries, order, *blocks(tied, queries), ranked=ranked)

    @classmethod
    def from_ranks(cls, ranks: NDArray[np.int64], queries: Queries) -> Ranking:
        """Make a ranking from positions, 1 = top, in row layout.

        The positions of a query with r rows must be a permutation of 1 .. r, or tied rows must
        share the best of their positions. `check_ranks` checks permutations.
        """
        order = np.full(queries.n_rows, -1)
        grouped = queries.gather(ranks) - 1 + queries.repeat(queries.offsets[:-1])
        order[grouped] = np.arange(queries.n_rows) if queries.order is None else queries.order
        return cls(queries, order) if order.min() >= 0 else cls.from_scores(-ranks, queries)

    def break_ties(self, key: NDArray[Any]) -> Ranking:
        """Return a ranking without ties, in which each block is sorted by ascending `key`.

        `key` is in row layout. Rows with equal keys keep their order.
        """
        if self.start is None:
            return self
        block = self.start + self.queries.repeat(self.queries.offsets[:-1])
        order = self.order[np.lexsort((key[self.order], block))]
        # a block is ranked as a whole
        return Ranking(self.queries, order, ranked=self.ranked, scores=self.scores)

    def judged(
        self, relevance: NDArray[np.float64], unjudged: str
    ) -> tuple[Ranking, NDArray[np.float64], NDArray[np.int64]]:
        """Return the ranking and the relevance of judged queries, and their rows.

        NaN in `relevance` marks rows that nobody judged. They become irrelevant, or, if `unjudged`
        is "skip", are removed before places are counted. Queries without a judged row are removed.
        """
        known = ~np.isnan(relevance)
        kept = known if unjudged == "skip" else self.queries.broadcast(self.queries.max(known))
        rows, place = np.flatnonzero(kept), np.empty(self.queries.n_rows, dtype=np.int64)
        place[self.order] = self.queries.place if self.start is None else self.start
        ranking = Ranking.from_scores(-place[rows], self.queries.take(rows))
        ranking.scores = None if self.scores is None else self.scores[rows]
        return ranking, np.where(known, relevance, 0.0)[rows], rows

    def head(self, k: int | None) -> Ranking:
        """Return the ranking of the first k places of every query.

        A block that begins among these places is kept as a whole.
        """
        if k is None or k >= self.queries.sizes.max():
            return self
        if self.start is None or self.stop is None:
            kept = np.minimum(self.queries.sizes, k)
        else:
            kept = self.sum((self.start < k).astype(np.int64))
        offsets = np.append(0, np.cumsum(kept))
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], kept)
        at = place + np.repeat(self.queries.offsets[:-1], kept)
        top = Ranking(Queries(offsets), self.order[at])
        if self.start is not None and self.stop is not None:
            top.start, top.stop = self.start[at], self.stop[at]
        if self.ranked is not None:
            top.ranked = self.ranked[at]
        return top

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Convert an array from row layout to best-first layout, with 0 for unranked rows."""
        taken = values[self.order]
        return taken if self.ranked is None else taken * self.ranked

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Add up an array in best-first layout over each query."""
        return self.queries.reduce(np.add, values)


def tie_rounded(
    scores: NDArray[Any], queries: Queries, tolerance: NDArray[np.float64] | None = None
) -> NDArray[Any]:
    """Make scores of a query equal if they differ by at most the tolerance of the query.

    In descending order, each score is made equal to the previous score if they differ by at most
    the tolerance. NaN is last and stays NaN. If `tolerance` is None, it is the rounding of the
    largest score: rows with equal features may get scores that differ in the last bits, in an
    order that depends on the processor.
    """
    order = queries.sort(np.where(np.isnan(scores), -np.inf, scores))
    ordered = scores[order]
    first, last = queries.offsets[:-1], queries.offsets[1:] - 1
    if tolerance is None:
        tolerance = _numbers.ROUNDING * np.maximum(np.abs(ordered[first]), np.abs(ordered[last]))
    new = np.ones(len(ordered), dtype=bool)
    gap = ordered[:-1] - ordered[1:]
    new[1:] = ~(gap <= queries.repeat(tolerance)[1:])
    new[first] = True
    if new.all():
        return scores
    tied = np.empty_like(scores)
    tied[order] = ordered[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return tied


def equal_neighbours(grouped: NDArray[Any], queries: Queries) -> NDArray[np.bool_]:
    """Return whether each entry of a grouped array equals the previous entry of its query."""
    same = np.empty(len(grouped), dtype=bool)
    same[0] = False
    np.equal(grouped[1:], grouped[:-1], out=same[1:])
    same[queries.offsets[:-1]] = False
    return same


def blocks(
    tied: NDArray[np.bool_], queries: Queries
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return `start` and `stop` of a `Ranking`.

    `tied` is true for each place with the same score as the previous place.
    """
    first = np.flatnonzero(~tied)
    length = np.diff(np.append(first, len(tied)))
    start = np.repeat(queries.place[first], length)
    return start, start + np.repeat(length, length)


def check_scores(scores: ArrayLike | None, n_rows: int | None, name: str) -> NDArray[np.float64]:
    """Check scores and return them as a 1-D array of finite floats. Errors start with `name`.

    An array of shape (n_rows, 1) is accepted. float16 and float32 are not converted to float64.
    """
    values = _numbers.read_numbers(scores, name, keep_float32=True)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one score per row; it has shape {values.shape}.")
    if n_rows is not None and len(values) != n_rows:
        raise ValueError(
            f"{name} has {counted(len(values), 'entry')}, but there are {counted(n_rows, 'row')}."
        )
    if len(values) == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"{name} contains NaN or infinity (first at row {row}).")
    return values


def lacks_positions(numbers: NDArray[np.int64], queries: Queries) -> NDArray[np.bool_]:
    """Return for each query whether its numbers are no permutation of 1 .. r."""
    grouped = queries.gather(numbers)
    inside = (grouped >= 1) & (grouped <= queries.repeat(queries.sizes))
    seen = np.zeros(queries.n_rows, dtype=bool)
    seen[(grouped - 1 + queries.repeat(queries.offsets[:-1]))[inside]] = True
    return ~queries.reduce(np.logical_and, seen)


def check_ranks(ranks: ArrayLike | None, queries: Queries) -> NDArray[np.int64]:
    """Return positions (n_rows,) as int64, after a check that each query has 1 .. r, 1 = top."""
    positions = _numbers.read_whole(ranks, "ranks")
    if positions.shape != (queries.n_rows,):
        raise ValueError(
            f"ranks has shape {positions.shape}, but y_true has {counted(queries.n_rows, 'row')}."
        )
    wrong = lacks_positions(positions, queries)
    if wrong.any():
        bad = int(np.argmax(wrong))
        shown = queries.gather(positions)[queries.offsets[bad] : queries.offsets[bad + 1]][:10]
        raise ValueError(
            f"ranks must be a permutation of 1 .. r in every query (1 = top); query "
            f"{queries.ids[bad]!r} of {counted(queries.sizes[bad], 'row')} has "
            f"{shown.tolist()}... Pass scores as y_score instead."
        )
    return positions


#: Without n_rows, `sizes_to_groups` raises an error if the sizes add up to more rows.
_MANY_ROWS = 10**8


def sizes_to_groups(sizes: ArrayLike, n_rows: int | None = None) -> NDArray[np.int64]:
    """Convert group sizes, as LightGBM uses them, to one group id per row.

    Parameters
    ----------
    sizes : array-like of shape (n_queries,)
        Number of consecutive rows of each query, at least 1 each.
    n_rows : int, default=None
        Number of rows, ``len(X)``. If given, it must equal the sum of the sizes, which detects
        query ids passed by mistake. It is required for more than 100 million rows.

    Returns
    -------
    groups : ndarray of shape (sum(sizes),)
        Number of the query of each row, from 0.

    Examples
    --------
    >>> from sklearn_rankcal import sizes_to_groups
    >>> sizes_to_groups([2, 1, 3]).tolist()
    [0, 0, 1, 2, 2, 2]
    """
    counts = _numbers.read_whole(sizes, "sizes")
    if counts.ndim != 1 or len(counts) == 0:
        raise ValueError(f"sizes must be a non-empty 1-D array; it has shape {counts.shape}.")
    if counts.min() < 1:
        raise ValueError(
            f"sizes must be at least 1; got {counts.min()}. If these are query ids, pass them as "
            "groups=."
        )
    total = sum(counts.tolist())
    if n_rows is not None and total != n_rows:
        raise ValueError(
            f"sizes add up to {counted(total, 'row')}, but n_rows is {n_rows}. If these are query "
            "ids, pass them as groups=."
        )
    if n_rows is None and total > _MANY_ROWS:
        raise ValueError(
            f"{len(counts)} sizes add up to {counted(total, 'row')}. If these are query ids, pass "
            "them as groups=. If they are sizes, confirm it with n_rows=len(X)."
        )
    return np.repeat(np.arange(len(counts)), counts)


def order_to_ranks(order: ArrayLike) -> NDArray[np.int64]:
    """Convert an order of row indices, best first, to the positions of the rows, 1 = top.

    Parameters
    ----------
    order : array-like of shape (n_rows,)
        A permutation of ``0 .. n_rows - 1``: ``order[0]`` is the best row.

    Returns
    -------
    ranks : ndarray of shape (n_rows,)
        ``ranks[i]`` is the position of row i, from 1.

    Examples
    --------
    >>> from sklearn_rankcal import order_to_ranks
    >>> order_to_ranks([2, 0, 1]).tolist()
    [2, 3, 1]
    """
    return np.argsort(_check_permutation(order, 0, "order")) + 1


def ranks_to_order(ranks: ArrayLike) -> NDArray[np.int64]:
    """Convert positions of rows, 1 = top, to the order of row indices, best first.

    This is the inverse of `order_to_ranks`.

    Parameters
    ----------
    ranks : array-like of shape (n_rows,)
        A permutation of ``1 .. n_rows``: ``ranks[i]`` is the position of row i.

    Returns
    -------
    order : ndarray of shape (n_rows,)
        ``order[0]`` is the best row, as an index from 0.

    Examples
    --------
    >>> from sklearn_rankcal import ranks_to_order
    >>> ranks_to_order([2, 3, 1]).tolist()
    [2, 0, 1]
    """
    return np.argsort(_check_permutation(ranks, 1, "ranks"))


def _check_permutation(values: ArrayLike, lowest: int, name: str) -> NDArray[np.int64]:
    array = _numbers.read_whole(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a 1-D array; it has shape {array.shape}.")
    if not np.array_equal(np.sort(array), lowest + np.arange(len(array))):
        raise ValueError(
            f"{name} must be a permutation of {lowest} .. {lowest + len(array) - 1}; got {array!r}."
        )
    return array


def check_weight(weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Return `sample_weight` as float64, after a check, or None for None.

    There must be one finite, non-negative weight for each row, and not all may be 0.
    """
    if weight is None:
        return None
    values = _numbers.read_numbers(weight, "sample_weight")
    if values.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {values.shape}, expected {(n_rows,)}: one weight per row. "
            "Give the weight of a query to each of its rows: "
            "pandas.Series(weight, index=query_ids)[groups].to_numpy()."
        )
    if not np.isfinite(values).all():
        raise ValueError("Input sample_weight contains NaN or infinity.")
    if values.min() < 0:
        raise ValueError(f"Negative values in data passed to sample_weight: {values.min():g}.")
    if not values.any():
        raise ValueError("sample_weight is zero for every row.")
    _numbers.check_range(values, "sample_weight")
    return values


def mean_over_queries(
    values: NDArray[np.float64],
    queries: Queries,
    weight: NDArray[np.float64] | None,
    name: str,
    factor: NDArray[np.float64] | None = None,
) -> float:
    """Return the mean of a measure over the queries on which it is defined.

    NaN marks undefined values, shape (n_queries,). If all are undefined, the mean is NaN, with an
    `UndefinedMetricWarning` that contains `name`. `weight` has one entry per row: a query has the
    mean weight of its rows, times `factor` (`Loss.query_weight`). Factors of 0 leave queries out.
    Raises ValueError if the weight is 0 on every query on which the measure is defined.
    """
    defined = ~np.isnan(values)
    if factor is not None:
        defined &= factor > 0
    if not defined.any():
        warn(
            f"{name} is undefined on {all_of(len(values), 'query')}; its mean is set to NaN.",
            UndefinedMetricWarning,
        )
        return float("nan")
    if weight is None and factor is None:
        return float(values[defined].mean())
    per_query = np.ones(defined.sum())
    if weight is not None:
        per_query = queries.mean(weight)[defined]
        if not per_query.any():
            raise ValueError(f"sample_weight is 0 on every query where {name} is defined.")
    if factor is not None:
        per_query = per_query * factor[defined]
    return float(np.average(values[defined], weights=per_query))


def interval_of_mean(
    values: Floats, level: float, weight: Floats | None = None, bounds: Any = (-np.inf, np.inf)
) -> tuple[float, float]:
    """Return the ends of an interval of a mean, which survive one more query against them.

    The lower end is that of Student's interval of the values and one more at the lower bound, the
    upper end that with one more at the upper bound. The weight of the additional value is
    (c - 1) / (n - 1) if the commonest of n values occurs c times. If all values differ, or without
    bounds, this is Student's interval. It ends at the bounds.

    With weights, n is the effective number of queries, 1 / (the sum of the squared shares of the
    weights) (Kish, 1965). (c - 1) / (n - 1) is the share of the other queries that have the same
    value, and this share is computed from the weights. The weights must be positive.
    """
    share = np.full(len(values), 1 / len(values)) if weight is None else weight / weight.sum()
    n, mean = 1 / (share**2).sum(), np.average(values, weights=weight)
    sign, finite = np.array([-1, 1]), np.isfinite(bounds)
    ends = np.array([min(bounds[0], values.min()), max(bounds[1], values.max())])
    more = finite * (_share_of_equals(values, share, ends[finite]) if finite.any() else 0.0)
    reach = np.where(finite, ends, mean) - mean
    part = more / (n + more)  # the share of the additional value in all weights
    variance = (1 - part) * ((share * (values - mean) ** 2).sum() + part * reach**2)
    freedom = n + more - 1
    half = stdtrit(freedom, (1 + level) / 2) * np.sqrt(variance / np.maximum(freedom, 0.2))
    half[freedom < 0.2] = np.inf  # one query has nearly all the weight, and there is no bound
    low, high = np.clip(mean + part * reach + sign * half, *ends)
    return float(low), float(high)


def _share_of_equals(values: Floats, share: Floats, ends: Floats) -> float:
    """Return the share of the other queries that have the same value, for the commonest value.

    Values are equal up to rounding, relative to the values and their finite bounds.
    """
    order = np.argsort(values)
    values, share = values[order], share[order]
    differs = _numbers.exceeds(values[1:], values[:-1], np.abs([*values[[0, -1]], *ends]).max())
    start = np.append(0, 1 + np.flatnonzero(differs))
    sums, squares = np.add.reduceat(share, start), np.add.reduceat(share**2, start)
    others = 1 - squares.sum()
    return float((sums - squares / sums).max() / others) if others > _numbers.ROUNDING else 1.0
