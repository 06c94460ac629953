"""Preference labels: pairs of rows come in; weighted preferences inside queries come out.

A user's pairs travel as the structured array of `preference_labels`, row by row, so that they
survive every splitter of scikit-learn. `read_preferences` turns what a splitter left of it into
`Preferences`, which losses and models read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.labels._checks import check_judgement, check_pairs, check_weight
from sklearn_rankcal.labels._relevance import (
    bare_pairs,
    is_structured,
    put_together,
    whole_queries,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import check_no_mask

PREFERENCE_DTYPE = np.dtype(
    [
        ("query", "i8"),
        ("row", "i8"),
        ("size", "i8"),
        ("wins", "O"),
        ("weights", "O"),
        ("judgement", "O"),
    ]
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def preference_labels(
    pairs: ArrayLike,
    groups: ArrayLike,
    weight: ArrayLike | None = None,
    judgement: ArrayLike | None = None,
) -> NDArray[Any]:
    """Preferences between rows of a query, for use as `y` anywhere in scikit-learn.

    Each row carries the rows it is preferred to. The array can be sliced, permuted and split with
    the rows of X; its ``row`` field lets `fit` find the partners again, and ``size`` lets it
    refuse a query that a splitter has cut in two. Contradictions and cycles are legal: many
    judgements together are seldom free of them.

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2)
        Row numbers into X: (preferred row, other row), both in the same query. A pair given
        several times counts several times.
    groups : array-like of shape (n_documents,)
        Query id of each row of X: any type, any order, not necessarily contiguous.
    weight : array-like of shape (n_pairs,), default=None
        Weight of each pair, finite and >= 0; None: 1 each.
    judgement : array-like of shape (n_pairs,), default=None
        Whole number of the judgement (the annotator, the session) that each pair belongs to, for
        methods that aggregate judgements; losses add them up.

    Returns
    -------
    labels : structured ndarray of shape (n_documents,)
        Fields ``query`` (int64, numbered by first appearance), ``row`` (int64, the row number),
        ``size`` (int64, the rows of that query), and of the pairs in which the row is preferred,
        sorted by the other row: ``wins`` (object: int64 array of the other rows), ``weights``
        (object: float64 array) and ``judgement`` (object: int64 array, or None throughout).

    Raises
    ------
    ValueError
        No pairs, a wrong shape, lengths that differ; row numbers that are not whole or not those
        of rows, a row preferred to itself, a pair across queries; a negative, NaN or infinite
        weight; a missing group id.

    See Also
    --------
    ranking_labels : From (partial) rankings of the documents of each query.
    relevance_labels : From one relevance per row.

    Notes
    -----
    O(n_pairs log n_pairs + n_documents) time, O(n_pairs + n_documents) memory.

    Examples
    --------
    >>> from sklearn_rankcal.labels import preference_labels
    >>> labels = preference_labels([[0, 2], [2, 0], [0, 3]], ["a", "b", "a", "a"], [3, 1, 1])
    >>> labels["size"].tolist(), labels["wins"][0].tolist(), labels["weights"][0].tolist()
    ([3, 1, 3, 3], [2, 3], [3.0, 1.0])

    A subset of whole queries is valid labels; part of a query is refused by `fit`:

    >>> labels[labels["query"] == 0]["row"].tolist()
    [0, 2, 3]
    """
    queries = Queries.from_groups(groups)
    n_rows = queries.n_rows
    rows = check_pairs(pairs, queries)
    weights = check_weight(weight, len(rows))
    judgements = None if judgement is None else check_judgement(judgement, len(rows))
    order = np.argsort(rows[:, 0] * n_rows + rows[:, 1], kind="stable")
    stops = np.cumsum(np.bincount(rows[:, 0], minlength=n_rows))
    labels = np.empty(n_rows, dtype=PREFERENCE_DTYPE)
    labels["query"] = queries.codes
    labels["row"] = np.arange(n_rows)
    labels["size"] = queries.broadcast(queries.sizes)
    labels["wins"] = _cut(rows[order, 1], stops)
    labels["weights"] = _cut(weights[order], stops)
    labels["judgement"] = None if judgements is None else _cut(judgements[order], stops)
    return labels


def read_preferences(y: Any, n_rows: int | None = None) -> Preferences:
    """Preferences between the rows present, from what `preference_labels` made.

    Parameters
    ----------
    y : structured ndarray of shape (n_rows,)
        The array of `preference_labels`, or whole queries of it, in any order of rows.
    n_rows : int, default=None
        Expected length.

    Returns
    -------
    preferences : Preferences
        With its `queries`; row numbers are those of `y` as it is.

    Raises
    ------
    ValueError
        Anything but that: other labels, bare pairs, a wrong length, a query cut by a splitter,
        repeated rows, arrays of several calls put together.

    Notes
    -----
    O(n_pairs log n_pairs + n_rows + largest row number); without the logarithm when rows still
    have their order and no pair occurs twice.

    Examples
    --------
    >>> from sklearn_rankcal.labels import preference_labels, read_preferences
    >>> labels = preference_labels([[0, 2], [2, 0], [0, 2], [1, 3]], list("abab"))
    >>> preferences = read_preferences(labels[[2, 0]])
    >>> preferences.winner.tolist(), preferences.loser.tolist(), preferences.weight.tolist()
    ([0, 1], [1, 0], [1.0, 2.0])
    """
    function = "preference_labels"
    wanted = "Preferences come as preference_labels(pairs, groups)."
    if y is None:
        raise ValueError(f"This ranker requires y to be passed, but the target y is None. {wanted}")
    if not is_structured(y):
        shape = np.shape(y)
        if len(shape) == 2 and shape[1] == 2:
            raise bare_pairs(shape, "Preferences need one entry per row.")
        raise ValueError(f"y has shape {shape} and says nothing about pairs. {wanted}")
    if y.dtype.names != PREFERENCE_DTYPE.names:
        raise ValueError(
            f"Structured labels have the fields {y.dtype.names}; those of {function}(pairs, "
            f"groups) are {PREFERENCE_DTYPE.names}."
        )
    check_no_mask(y, "y")
    if y.ndim != 1:
        raise ValueError(f"y must be 1-D, one entry per row; it has shape {y.shape}.")
    if n_rows is not None and len(y) != n_rows:
        raise ValueError(f"y has {len(y)} entries, but X has {n_rows} rows.")
    if len(y) == 0:
        raise ValueError("y is empty: at least one row is needed.")
    queries = whole_queries(y, function)
    rows = y["row"]
    here = np.full(int(rows.max()) + 1, -1)  # place in y of each original row
    here[rows] = np.arange(len(rows))
    if not np.array_equal(here[rows], np.arange(len(rows))):
        raise put_together("a row occurs twice", function)
    counts = np.fromiter(map(len, y["wins"]), dtype=np.int64, count=len(y))
    winner = np.repeat(np.arange(len(y)), counts)
    beaten = np.concatenate(y["wins"])
    codes = queries.codes
    known = beaten < len(here)
    loser = here[np.where(known, beaten, 0)]
    if not known.all() or (loser < 0).any() or (codes[winner] != codes[loser]).any():
        raise put_together("a row is preferred to one that its query does not have", function)
    return Preferences.from_pairs(winner, loser, np.concatenate(y["weights"]), queries)


class Preferences:
    """Weighted preferences between documents of the same query.

    Use `from_pairs`; the constructor trusts its input. y_ij below is the weight with which row i
    is preferred to row j, 0 where no pair says so; y_ij and y_ji can both be positive.

    Parameters
    ----------
    queries : Queries
        Of the n_rows rows.
    winner, loser : ndarray of shape (n_pairs,)
        Rows (int64, row layout): distinct pairs of the same query, sorted by query, then winner,
        then loser.
    weight : ndarray of shape (n_pairs,)
        y_ij >= 0 of each pair (float64).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.labels._preferences import Preferences
    >>> rows = np.array([[1, 0], [0, 2], [1, 0]])
    >>> preferences = Preferences.from_pairs(*rows.T, np.ones(3), Queries.single(3))
    >>> preferences.weight.tolist(), preferences.differences().tolist()
    ([1.0, 2.0], [-2.0, 1.0, 0.0])
    """

    def __init__(self, queries: Queries, winner: Ints, loser: Ints, weight: Floats) -> None:
        self.queries = queries
        self.winner = winner
        self.loser = loser
        self.weight = weight
        self.n_rows = queries.n_rows
        self._pair_query = queries.codes[winner]  # ascending
        self._pair_offsets: Ints | None = None

    @classmethod
    def from_pairs(cls, winner: Ints, loser: Ints, weight: Floats, queries: Queries) -> Preferences:
        """Sort pairs of rows and add up the weights of equal ones. O(n_pairs log n_pairs)."""
        place = queries.scatter(np.arange(queries.n_rows))
        key = place[winner] * queries.n_rows + loser
        if (key[1:] <= key[:-1]).any():
            order = np.argsort(key, kind="stable")
            key = key[order]
            starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
            first = order[starts]
            winner, loser = winner[first], loser[first]
            weight = np.add.reduceat(weight[order], starts)
        return cls(queries, winner, loser, weight)

    @property
    def pair_offsets(self) -> Ints:
        """Pairs of query q are ``pair_offsets[q]`` to ``pair_offsets[q + 1] - 1``."""
        if self._pair_offsets is None:
            counts = np.bincount(self._pair_query, minlength=self.queries.n_queries)
            self._pair_offsets = np.concatenate([[0], np.cumsum(counts)])
        return self._pair_offsets

    def total(self) -> Floats:
        """Weight of all pairs of each query, (n_queries,). O(n_pairs)."""
        return _sum_at(self._pair_query, self.weight, self.queries.n_queries)

    def borda(self) -> Floats:
        """Net weight ``sum_j (y_ij - y_ji)`` of each row, (n_rows,). O(n_pairs)."""
        won = _sum_at(self.winner, self.weight, self.n_rows)
        return won - _sum_at(self.loser, self.weight, self.n_rows)

    def differences(self) -> Floats:
        """``y_ij - y_ji`` of all pairs i < j of every query, as decoders take them.

        Documents of a query are numbered as in the grouped layout; its pairs stand in the order
        of ``np.triu_indices(r, 1)``; queries follow one another. O(n_pairs + sum of r^2).
        """
        queries, q = self.queries, self._pair_query
        place = queries.scatter(queries.place)
        won, lost = place[self.winner], place[self.loser]
        i, j, r = np.minimum(won, lost), np.maximum(won, lost), queries.sizes[q]
        stops = np.cumsum(queries.sizes * (queries.sizes - 1) // 2)
        starts = np.append(0, stops[:-1])
        index = starts[q] + i * (2 * r - i - 1) // 2 + (j - i - 1)
        signed = np.where(won < lost, self.weight, -self.weight)
        return _sum_at(index, signed, int(stops[-1]))

    def matrices(self, inside: Ints) -> Floats:
        """y of some queries as (n, width, width) matrices, 0 beyond a query's size.

        Parameters
        ----------
        inside : ndarray of shape (n, width)
            Whole queries as `Queries.buckets` yields them, or some of its rows.

        Returns
        -------
        matrices : ndarray of shape (n, width, width)
            ``matrices[m, i, j]`` is the weight with which document i of query m is preferred to
            document j, documents as in the grouped layout. O(n width^2).
        """
        n, width = inside.shape
        queries, offsets = self.queries, self.pair_offsets
        q = np.searchsorted(queries.offsets, inside[:, 0], side="right") - 1
        counts = offsets[q + 1] - offsets[q]
        before = np.cumsum(counts) - counts
        pair = np.arange(counts.sum()) + np.repeat(offsets[q] - before, counts)
        place = queries.scatter(queries.place)
        matrices = np.zeros((n, width, width))
        member = np.repeat(np.arange(n), counts)
        matrices[member, place[self.winner[pair]], place[self.loser[pair]]] = self.weight[pair]
        return matrices

    def select(self, keep: NDArray[np.bool_]) -> tuple[Ints, Preferences]:
        """Rows (ascending) of the queries kept, and the `Preferences` of those rows alone.

        As `Queries.select`. O(n_rows + n_pairs).
        """
        rows, queries = self.queries.select(keep)
        new = np.empty(self.n_rows, dtype=np.int64)
        new[rows] = np.arange(len(rows))
        kept = keep[self._pair_query]
        winner, loser = new[self.winner[kept]], new[self.loser[kept]]
        return rows, Preferences(queries, winner, loser, self.weight[kept])


def _sum_at(index: Ints, values: Floats, length: int) -> Floats:
    """Sum of the values of each index, float64 also where there are none."""
    return np.bincount(index, values, length).astype(np.float64, copy=False)


def _cut(values: NDArray[Any], stops: Ints) -> NDArray[Any]:
    """An object array whose k-th entry is ``values[stops[k - 1] : stops[k]]``, a view."""
    parts = np.empty(len(stops), dtype=object)
    start = 0
    # objects can only be put in one by one: about 0.2 microseconds a row
    for row, stop in enumerate(stops.tolist()):
        parts[row] = values[start:stop]
        start = stop
    return parts
