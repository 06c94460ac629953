"""`Aggregate`: the result of `aggregate`, a leaderboard for each query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.aggregation._base import Structure
from sklearn_rankcal.labels import Judgements
from sklearn_rankcal.labels._item_ids import show_id

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Rows of a leaderboard that the text of a result shows, for one query and for one of many.
_ROWS, _ROWS_OF_MANY = 20, 5
#: The longest name that the text shows in full.
_NAME = 30


@dataclass(repr=False)
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
    method: Structure
    judgements: Judgements
    objective: Floats | None = None
    lower_bound: Floats | None = None
    optimal: NDArray[np.bool_] | None = None

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
        queries = self.judgements.queries
        if group is None and queries.n_queries > 1:
            raise ValueError(
                f"There are {queries.n_queries} queries. Pass group=, the id of one of them, such "
                f"as {show_id(queries.ids[0])}."
            )
        q = 0 if group is None else _find(queries.ids, group, "query")
        places = np.arange(queries.offsets[q], queries.offsets[q + 1])
        rows = places if queries.order is None else queries.order[places]
        return rows[np.argsort(self.ranks[rows], kind="stable")]

    def to_frame(self) -> Any:
        """Return the leaderboards as a pandas data frame, query by query, best first.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_items, n_columns)
            The columns are ``query``, ``rank``, ``item`` and ``score``.

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
        return {
            "query": self.groups,
            "rank": self.ranks,
            "item": self.items,
            "score": self.scores,
        }

    # ---------------------------------------------------------------- text

    def __repr__(self) -> str:
        queries = self.judgements.queries
        several = queries.n_queries > 1
        total = f"{int(self.judgements.per_query.sum()):,} judgements"
        head = f"{len(self.items):,} items, {total}, {self.method!r}"
        if several:
            head = f"{queries.n_queries:,} queries, {head}"
        lines = [head, *self._certificate()]
        if several:
            lines.append(f"query {show_id(queries.ids[0])}:")
        rows = self.rows_of(queries.ids[0])
        shown = rows[: _ROWS_OF_MANY if several else _ROWS]
        lines += self._table(shown)
        left = [
            f"{len(rows) - len(shown):,} more items" if len(rows) > len(shown) else "",
            f"{queries.n_queries - 1:,} more queries" if several else "",
        ]
        if any(left):
            lines.append(f"... {' and '.join(filter(None, left))}; to_frame() has all")
        return "\n".join(lines)

    def _table(self, rows: Ints) -> list[str]:
        names = [_shorten(name) for name in self.items[rows].tolist()]
        columns = [
            _column("rank", [str(rank) for rank in self.ranks[rows]], right=True),
            _column("item", names),
            _column("score", _decimals(self.scores)(self.scores[rows]), right=True),
        ]
        return ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]

    def _certificate(self) -> list[str]:
        if self.optimal is None or self.objective is None or self.lower_bound is None:
            return []
        if len(self.optimal) > 1:
            return [
                f"{self.optimal.sum():,} of {len(self.optimal):,} rankings are proved to "
                "contradict the least weight of comparisons"
            ]
        weight, bound = float(self.objective[0]), float(self.lower_bound[0])
        text = f"the ranking contradicts comparisons of weight {weight:g}"
        if self.optimal[0]:
            return [f"{text}; it is proved that none contradicts less"]
        return [f"{text}; every ranking contradicts at least {bound:g}"]


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


def _shorten(name: Any) -> str:
    text = str(name).replace("\n", " ")
    return text if len(text) <= _NAME else text[: _NAME - 3] + "..."


def _decimals(scores: Floats) -> Any:
    """Return a function that writes scores with four digits of the largest, all of them alike."""
    finite = np.abs(scores[np.isfinite(scores)])
    largest = float(finite.max(initial=0.0))
    digits = 4 if largest == 0 else int(np.clip(3 - np.floor(np.log10(largest)), 0, 10))
    # -0.0 is shown as 0
    return lambda values: [f"{round(value, digits) + 0.0:.{digits}f}" for value in values.tolist()]


def _column(title: str, cells: list[str], right: bool = False) -> list[str]:
    """Pad the cells of a column to the same width."""
    width = max(map(len, [title, *cells]))
    return [cell.rjust(width) if right else cell.ljust(width) for cell in [title, *cells]]
