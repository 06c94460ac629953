"""`Clicks`: the sessions of a click log, which structures convert to scores."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import ranges
from sklearn_rankcal.utils._numbers import read_numbers
from sklearn_rankcal.utils._typing import Bools, Floats, Ints


class Clicks:
    """The sessions of a click log: documents in the order shown, and clicks.

    `read_clicks` makes this object from labels; the constructor does not check its arguments. An
    *impression* is one document that was shown in one session.

    Parameters
    ----------
    queries : Queries
        The partition of the n_rows documents into queries.
    row : ndarray of shape (n_impressions,)
        The row (int64) of each impression, sorted by session, in the order shown.
    clicked : ndarray of bool of shape (n_impressions,)
        Whether each impression was clicked.
    offsets : ndarray of shape (n_judgements + 1,)
        Session s has the impressions ``offsets[s]`` to ``offsets[s + 1] - 1``.
    query : ndarray of shape (n_judgements,)
        The query number of each session.
    count : ndarray of shape (n_judgements,), default=None
        Number of occurrences of each session. None means 1.
    items : ndarray of shape (n_rows,), default=None
        The id of each document. None means its row number.
    probability : ndarray of shape (n_impressions,), default=None
        The probability of display of each impression. None means that it is unknown.

    Attributes
    ----------
    n_rows, n_judgements : int
        Number of documents, and number of sessions. A session is one judgement of its query.

    Examples
    --------
    >>> from sklearn_rankcal.clicks import click_labels, read_clicks
    >>> clicks = read_clicks(click_labels([[0, 1], [1, 0], [2]], [1, 1, None], ["a", "a", "b"]))
    >>> clicks.n_judgements, clicks.per_query.tolist(), clicks.position.tolist()
    (3, [2.0, 1.0], [1, 2, 1, 2, 1])
    """

    def __init__(
        self,
        queries: Queries,
        row: Ints,
        clicked: Bools,
        offsets: Ints,
        query: Ints,
        count: Floats | None = None,
        items: NDArray[Any] | None = None,
        probability: Floats | None = None,
    ) -> None:
        self.queries = queries
        self.row = row
        self.clicked = clicked
        self.offsets = offsets
        self.query = query
        self.count = count
        self.items = np.arange(queries.n_rows) if items is None else items
        self.probability = probability
        self.n_rows = queries.n_rows
        self.n_judgements = len(query)

    def __repr__(self) -> str:
        return (
            f"Clicks(n_judgements={self.n_judgements}, n_rows={self.n_rows}, "
            f"n_queries={self.queries.n_queries})"
        )

    @cached_property
    def position(self) -> Ints:
        """The position of each impression in its session, 1 = top, of shape (n_impressions,)."""
        return np.arange(len(self.row)) - np.repeat(self.offsets[:-1] - 1, np.diff(self.offsets))

    @cached_property
    def last_click(self) -> Ints:
        """The position of the last click of each session, 0 if none; of shape (n_judgements,)."""
        if self.n_judgements == 0:
            return np.zeros(0, dtype=np.int64)
        return np.maximum.reduceat(self.position * self.clicked, self.offsets[:-1])

    @property
    def weight(self) -> Floats | None:
        """The count of the session of each impression; None if every session occurred once."""
        return None if self.count is None else np.repeat(self.count, np.diff(self.offsets))

    @cached_property
    def per_query(self) -> Floats:
        """Number of sessions of each query, weighted by count, of shape (n_queries,)."""
        sums = np.bincount(self.query, self.count, self.queries.n_queries)
        return sums.astype(np.float64, copy=False)

    def resample(self, judgements: Ints, copy: Ints, parent: Ints) -> Clicks:
        """Take sessions, possibly several times, into copies of their queries.

        This is `Judgements.resample` with sessions as judgements. The rows are the documents of
        each copy, one copy after the other.

        Parameters
        ----------
        judgements, copy, parent : ndarray
            As in `Judgements.resample`.

        Returns
        -------
        clicks : Clicks

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_rankcal.clicks import click_labels, read_clicks
        >>> clicks = read_clicks(click_labels([[0, 1], [1, 0]], [1, 2], ["a", "a"]))
        >>> drawn = clicks.resample(np.array([1, 1, 0]), np.array([0, 0, 1]), np.array([0, 0]))
        >>> drawn.row.tolist(), drawn.items.tolist()
        ([1, 0, 1, 0, 2, 3], [0, 1, 0, 1])
        """
        queries, rows, shift = self.queries.copies(parent)
        place = self.queries.scatter(np.arange(self.n_rows))
        taken, starts = ranges(self.offsets, judgements)
        part = Clicks(
            queries,
            place[self.row[taken]] + np.repeat(shift[copy], np.diff(starts)),
            self.clicked[taken],
            starts,
            copy,
            None if self.count is None else self.count[judgements],
            self.items[rows],
            None if self.probability is None else self.probability[taken],
        )
        return self._keep_positions(part, taken, judgements)

    def take_rows(self, rows: Ints, queries: Queries) -> Clicks:
        """Take some documents, and drop the impressions of other documents.

        Parameters
        ----------
        rows : ndarray of shape (n_taken,)
            Row numbers.
        queries : Queries
            The partition of the taken rows into queries.

        Returns
        -------
        clicks : Clicks
            Impressions keep their positions, and sessions keep their last click. Sessions without
            remaining impressions are dropped.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_rankcal.clicks import click_labels, read_clicks
        >>> from sklearn_rankcal.queries import Queries
        >>> clicks = read_clicks(click_labels([[0, 1], [1, 0]], [[2], None], [7, 7]))
        >>> part = clicks.take_rows(np.array([1]), Queries.from_groups([7]))
        >>> part.position.tolist(), part.clicked.tolist()
        ([2, 1], [True, False])
        """
        new = np.full(self.n_rows, -1)  # the new number of each row, -1 if it is not taken
        new[rows] = np.arange(len(rows))
        row = new[self.row]
        session = np.repeat(np.arange(self.n_judgements), np.diff(self.offsets))
        inside = row >= 0
        left = np.bincount(session[inside], minlength=self.n_judgements)
        kept = np.flatnonzero(left)
        starts = np.append(0, np.cumsum(left[kept]))
        part = Clicks(
            queries,
            row[inside],
            self.clicked[inside],
            starts,
            queries.codes[row[inside][starts[:-1]]],
            None if self.count is None else self.count[kept],
            self.items[rows],
            None if self.probability is None else self.probability[inside],
        )
        if (
            self.probability is not None
        ):  # with probabilities, sums are divided by the number of all sessions
            part.per_query[queries.codes] = self.per_query[self.queries.codes[rows]]
        return self._keep_positions(part, inside, kept)

    def _keep_positions(self, part: Clicks, impressions: Any, sessions: Ints) -> Clicks:
        """Give a subset the positions of its impressions in the full sessions."""
        part.position, part.last_click = self.position[impressions], self.last_click[sessions]
        return part


def check_propensities(propensities: Any) -> Floats:
    """Check that propensities are a 1-D array in (0, 1], and return float64."""
    values = read_numbers(propensities, "propensities")
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            "propensities must be a 1-D array with one number per position; it has shape "
            f"{values.shape}."
        )
    wrong = ~((values > 0) & (values <= 1))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(
            "propensities must be in (0, 1], because clicks are divided by them; position "
            f"{k + 1} has {values[k]}."
        )
    return values
