"""`Aggregate`: the result of `aggregate`, a leaderboard for each query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.aggregation._base import Structure
from sklearn_rankcal.aggregation._leaderboard_text import write_leaderboard
from sklearn_rankcal.labels import Judgements
from sklearn_rankcal.labels._item_ids import show_id
from sklearn_rankcal.plotting import plot_aggregate
from sklearn_rankcal.targets import PAIRS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(repr=False, eq=False)
class Aggregate:
    """Scores and ranks of the items of each query, aggregated from judgements.

    The text of the object, which ``print`` shows, is a leaderboard.

    Attributes
    ----------
    items : ndarray of shape (n_items,)
        The id of each item.
    groups : ndarray of shape (n_items,)
        The query id of each item. It is 0 for all of them if the judgements have no query ids.
    scores : ndarray of shape (n_items,)
        The score of each item; larger is better. Scores of different queries cannot be compared.
        It is NaN for an item that no judgement compares with another.
    ranks : ndarray of shape (n_items,)
        The position of each item in its query, 1 = best: one more than the number of items with a
        larger score, so that items with equal scores share the best of their positions. Items
        without a score share the position after all others.
    parts : ndarray of shape (n_items,)
        Which part of its query each item belongs to. Items are in the same part if a chain of
        comparisons connects them, and only then can their scores and ranks be compared. Parts are
        numbered from 1, those with more items first. It is 0 for an item that no judgement compares
        with another.
    method : Structure
        The structure that computed the scores.
    judgements : Judgements
        The judgements.
    objective, lower_bound : ndarray of shape (n_queries,) or None
        For Kemeny, the weight of the comparisons that the ranking of each query contradicts, and
        a weight that every ranking contradicts at least. None for other methods.
    optimal : ndarray of shape (n_queries,) or None
        For Kemeny, whether the ranking of each query is proved to contradict the least weight. None
        for other methods.
    score_low, score_high : ndarray of shape (n_items,) or None
        The interval of each score. An end is infinite where the data do not bound the score; see
        `aggregate`. It is NaN for items without a score. None, like all following attributes, if
        there are no resamples.
    rank_low, rank_high : ndarray of shape (n_items,) or None
        The best and the worst position of each item that the resamples allow.
    n_resamples : int
    resample : {"judgements", "judges"} or None
        What was drawn.
    confidence_level : float or None
        The confidence level of each interval; it is not one for all items at the same time.
    unanimous : ndarray of bool of shape (n_queries,) or None
        Whether nobody contradicts some of the comparisons of each query. A share of them is turned
        round in each resample then, which depends on how many judgements they are; see `aggregate`.
    n_disconnected : ndarray of shape (n_queries,) or None
        The number of resamples of each query whose comparisons do not connect some items that the
        data connect.
    n_unbounded : ndarray of shape (n_queries,) or None
        The number of resamples of each query in which some items lost no comparison against the
        other items that they are connected with, such as an item that won all its comparisons. The
        likelihood of `BradleyTerry` and `PlackettLuce` has no finite maximum there, and their
        penalty decides.

    Examples
    --------
    >>> from sklearn_rankcal import aggregate
    >>> print(aggregate([("owl", "cat"), ("owl", "cat"), ("cat", "owl"), ("cat", "eel")], "borda"))
    3 items, 4 judgements, Borda()
    rank  item  score
       1  owl   0.2500
       2  cat   0.0000
       3  eel  -0.2500
    """

    items: NDArray[Any]
    groups: NDArray[Any]
    scores: Floats
    ranks: Ints
    parts: Ints
    method: Structure
    judgements: Judgements
    objective: Floats | None = None
    lower_bound: Floats | None = None
    optimal: NDArray[np.bool_] | None = None
    score_low: Floats | None = None
    score_high: Floats | None = None
    rank_low: Ints | None = None
    rank_high: Ints | None = None
    n_resamples: int = 0
    resample: str | None = None
    confidence_level: float | None = None
    unanimous: NDArray[np.bool_] | None = None
    n_disconnected: Ints | None = None
    n_unbounded: Ints | None = None
    # the probabilities of the pairs i < j of each query, in the order of the entries of `PAIRS`
    _above: Floats | None = None

    # ---------------------------------------------------------------- parts

    def rows_of(self, group: Any = None) -> Ints:
        """Return the numbers of the items of a query, best first.

        Parameters
        ----------
        group : object, default=None
            The id of the query. It can be left out if there is only one.

        Returns
        -------
        rows : ndarray of shape (n_items_of_query,)
            Items of the same rank are in their own order.

        Raises
        ------
        ValueError
            If there is no such query, or if there are several and none is given.
        """
        rows = self._rows_of(self._query(group))
        return rows[np.argsort(self.ranks[rows], kind="stable")]

    def _query(self, group: Any) -> int:
        """Return the number of a query."""
        queries = self.judgements.queries
        if group is None and queries.n_queries > 1:
            raise ValueError(
                f"There are {queries.n_queries} queries. Pass group=, the id of one of them, such "
                f"as {show_id(queries.ids[0])}."
            )
        return 0 if group is None else _find(queries.ids, group, "query")

    def _rows_of(self, q: int) -> Ints:
        """Return the rows of a query, in their own order."""
        queries = self.judgements.queries
        places = np.arange(queries.offsets[q], queries.offsets[q + 1])
        return places if queries.order is None else queries.order[places]

    def _rows_by_part(self, group: Any = None) -> Ints:
        """Return the rows of a query part by part, best first; those without a score are last."""
        rows = self.rows_of(group)
        parts = np.where(self.parts[rows] > 0, self.parts[rows], len(rows) + 1)
        return rows[np.argsort(parts, kind="stable")]

    def probability_matrix(self, group: Any = None) -> Floats:
        """Return the probability of each pair of items of a query that one is above the other.

        Parameters
        ----------
        group : object, default=None
            The id of the query. It can be left out if there is only one.

        Returns
        -------
        probabilities : ndarray of shape (n_items_of_query, n_items_of_query)
            The entry (i, j) is the share of resamples in which the i-th best item has a larger
            score than the j-th best. Items are in the order of `rows_of`. A resample counts one
            half if the scores are equal, or if its comparisons do not connect the two items. The
            entry is NaN if the comparisons of the data do not connect them, and 1/2 on the
            diagonal.

        Raises
        ------
        ValueError
            If there are no resamples, or as in `rows_of`.
        """
        q = self._query(group)
        above = self._above_of(q)
        r = int(self.judgements.queries.sizes[q])
        matrix = np.full((r, r), 0.5)
        upper = PAIRS.indices(r)
        matrix[upper] = above
        matrix.T[upper] = 1.0 - matrix[upper]
        rows = self._rows_of(q)
        matrix[_apart(self.parts[rows])] = np.nan
        order = np.argsort(self.ranks[rows], kind="stable")
        return matrix[np.ix_(order, order)]

    def _above_of(self, q: int) -> Floats:
        """Return the probabilities of the pairs i < j of a query."""
        if self._above is None:
            raise ValueError("There are no resamples. Pass n_resamples=1000 to aggregate.")
        n_entries = PAIRS.n_entries(self.judgements.queries.sizes)
        start = int(n_entries[:q].sum())
        return self._above[start : start + n_entries[q]]

    def probability_above(self, one: Any, other: Any, group: Any = None) -> float:
        """Return the share of resamples in which an item has a larger score than another one.

        Parameters
        ----------
        one, other : object
            Ids of two items of the same query.
        group : object, default=None
            The id of the query. It can be left out if there is only one.

        Returns
        -------
        probability : float
            An entry of `probability_matrix`, which is NaN if no chain of comparisons connects the
            two items.

        Raises
        ------
        ValueError
            If there are no resamples, or no such item or query.
        """
        q = self._query(group)
        rows = self._rows_of(q)
        one, other = (rows[_find(self.items[rows], item, "item")] for item in (one, other))
        return self._share_above(q, one, other)

    def _share_above(self, q: int, one: int, other: int) -> float:
        """Return the probability that a row of a query is above another one."""
        above = self._above_of(q)
        if one == other:
            return 0.5
        if _apart(self.parts[[one, other]])[0, 1]:
            return float("nan")
        place = self.judgements.queries.scatter(self.judgements.queries.place)
        i, j = place[[one, other]].tolist()
        r = int(self.judgements.queries.sizes[q])
        return float(above[_entry(i, j, r)] if i < j else 1 - above[_entry(j, i, r)])

    def is_first_clear(self, group: Any = None) -> bool:
        """Return whether the resamples leave only one item for the first place.

        Parameters
        ----------
        group : object, default=None
            The id of the query. It can be left out if there is only one.

        Returns
        -------
        clear : bool
            Whether the best item is above each other one in a share of at least
            ``(1 + confidence_level) / 2`` of the resamples, which is 97.5 % by default. Its
            interval of ranks is then 1 to 1. It is False if no chain of comparisons connects the
            best item with some other one.

        Raises
        ------
        ValueError
            If there are no resamples, or as in `rows_of`.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 9 + [("cat", "owl")] * 3 + [("cat", "eel")] * 9
        >>> votes += [("eel", "cat")] * 3
        >>> result = aggregate(votes, n_resamples=1000)
        >>> result.is_first_clear()
        False
        >>> result.probability_above("owl", "cat") < 0.975
        True
        """
        self._above_of(0)
        assert self.rank_high is not None
        return bool(self.rank_high[self.rows_of(group)[0]] == 1)

    def plot(self, group: Any = None, *, ax: Any = None) -> Any:
        """Plot the leaderboard of a query.

        Parameters
        ----------
        group, ax
            As in `plotting.plot_aggregate`.

        Returns
        -------
        ax : matplotlib axes
        """
        return plot_aggregate(self, group, ax=ax)

    def to_frame(self) -> Any:
        """Return the leaderboards as a pandas data frame, query by query, best first.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_items, n_columns)
            The columns are ``query``, ``rank``, ``item`` and ``score``, and with resamples
            ``score_low``, ``score_high``, ``rank_low`` and ``rank_high``. If the items of a query
            are in several parts, ``part`` is the attribute `parts`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas: pip install pandas. The attributes items, groups, scores "
                "and ranks hold the same data as arrays."
            ) from error
        order = np.lexsort((self.ranks, self.judgements.queries.codes))
        return pd.DataFrame({name: values[order] for name, values in self._columns().items()})

    def _columns(self) -> dict[str, NDArray[Any]]:
        columns = {
            "query": self.groups,
            "rank": self.ranks,
            "item": self.items,
            "score": self.scores,
        }
        if (self.parts > 1).any():
            columns["part"] = self.parts
        for name in ("score_low", "score_high", "rank_low", "rank_high"):
            if getattr(self, name) is not None:
                columns[name] = getattr(self, name)
        return columns

    def __repr__(self) -> str:
        return write_leaderboard(self)


def _apart(parts: Ints) -> NDArray[np.bool_]:
    """Return which pairs of different items no chain of comparisons connects."""
    apart = (parts[:, None] != parts) | (parts == 0)
    np.fill_diagonal(apart, False)
    return np.asarray(apart)


def _entry(i: int, j: int, r: int) -> int:
    """Return the place of the pair i < j among those of r items."""
    return i * (2 * r - i - 1) // 2 + j - i - 1


def _find(ids: NDArray[Any], wanted: Any, kind: str) -> int:
    """Return the place of an id among ids, or raise ValueError."""
    listed = ids.tolist()
    if isinstance(wanted, np.generic) and ids.dtype == wanted.dtype:
        wanted = wanted.item()
    for place, one in enumerate(listed):  # a search among the ids of one query, or of the queries
        if one is wanted or (type(one) is type(wanted) and one == wanted):
            return place
    for place, one in enumerate(listed):
        if bool(np.all(one == wanted)):
            return place
    shown = ", ".join(map(show_id, listed[:5])) + (", ..." if len(listed) > 5 else "")
    raise ValueError(f"There is no {kind} {show_id(wanted)}. There are: {shown}.")
