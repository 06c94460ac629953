"""Click logs: `Clicks`, and click labels made from displays and clicks.

A *session* is one list that was shown to one user, with its clicks. An *impression* is one document
of such a list.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.labels._item_ids import (
    check_rows,
    check_weight,
    read_marks,
    reading_rows,
    show_id,
)
from sklearn_rankcal.labels._labels import cut, put_together, ranges, read_structure
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import stable_order
from sklearn_rankcal.utils._messages import checks_keywords, counted, warn
from sklearn_rankcal.utils._numbers import (
    Bools,
    Floats,
    Ints,
    check_no_mask,
    read_array,
    read_numbers,
    read_whole,
)

CLICK_DTYPE = np.dtype(
    [
        ("query", "i8"),
        ("row", "i8"),
        ("size", "i8"),
        ("sessions", "O"),
        ("positions", "O"),
        ("clicks", "O"),
        ("counts", "O"),
        ("probabilities", "O"),
    ]
)


_MANY_IMPRESSIONS = 50  # with fewer, all can be clicked, or in order, by chance


@checks_keywords
def click_labels(
    shown: Any,
    clicked: Any,
    groups: ArrayLike,
    *,
    sessions: ArrayLike | None = None,
    positions: ArrayLike | None = None,
    count: ArrayLike | None = None,
    probability: Any = None,
) -> NDArray[Any]:
    """Make click labels for use as `y`.

    The entry of each row contains the sessions that showed it. Any tool of scikit-learn can
    therefore slice, permute and split the labels together with the rows of X. `fit` raises an error
    if a splitter keeps only a part of a query.

    Parameters
    ----------
    shown : list of lists, or array-like of shape (n_sessions, n_shown) or (n_impressions,)
        Row numbers of X, in the order shown. Pass one list per session, or a 2-D array with one row
        per session if all lists have the same length. For millions of sessions of different
        lengths, pass a 1-D array with one entry per impression, together with `sessions`. A session
        shows at least one document, all of one query, and none twice.
    clicked : list, or array-like of bool of the shape of `shown`
        The clicked positions of each session, 1 = top: a list, a single position, or None or an
        empty list if nothing was clicked. Or booleans in the shape of `shown`, True for a click. If
        `shown` is 1-D, pass booleans, or 0 and 1.
    groups : array-like of shape (n_documents,)
        Query id of each row of X, of any type and in any order.
    sessions : array-like of shape (n_impressions,), default=None
        Session id of each entry of a 1-D `shown`. The entries of a session need not be contiguous.
        Their order is the order shown, unless `positions` are passed.
    positions : array-like of shape (n_impressions,), default=None
        Position of each entry of a 1-D `shown` in its session, 1 = top. Pass it if the log is
        sorted differently. Each session needs all positions from 1 to its last.
    count : array-like of shape (n_sessions,), default=None
        Number of occurrences of each session, >= 0. None means 1.
    probability : list of lists, or array-like of the shape of `shown`, default=None
        The probability, in (0, 1], that the system shows this document in this session, given its
        information at the time. Pass it if the system learned from the clicks of earlier sessions.
        Each click is then also divided by this probability, and relevance is the sum over the
        sessions of the query divided by their number.

    Returns
    -------
    labels : structured ndarray of shape (n_documents,)
        The fields are

        - ``query`` (int64): query number, in order of first appearance;
        - ``row``: row number;
        - ``size``: number of rows of the query;
        - ``sessions``: array of the numbers of the sessions that showed the row, ascending;
        - ``positions``: array of its positions in these sessions, 1 = top;
        - ``clicks``: array, whether the row was clicked in these sessions;
        - ``counts``: array of the counts of these sessions, or None;
        - ``probabilities``: array of the probabilities of display in these sessions, or None.

    Raises
    ------
    ValueError
        If a session is empty, shows a document twice, shows a row that does not exist, or shows
        documents of different queries. If a clicked position is outside its list or repeated, or if
        positions have a gap. If lengths differ, if a count is neither 0 nor between 1e-50 and 1e50,
        or if a probability is not in (0, 1].

    Warns
    -----
    UserWarning
        If every document was clicked, or if all of many sessions are in row order, although
        documents change their places.

    Examples
    --------
    Three sessions of two queries. In the first, the document at position 2 was clicked:

    >>> from sklearn_rankcal.clicks import click_labels
    >>> labels = click_labels([[2, 0], [0, 2], [1]], [[2], None, 1], ["a", "b", "a"])
    >>> labels["sessions"][0].tolist(), labels["positions"][0].tolist()
    ([0, 1], [2, 1])

    The same log as columns with one entry per impression:

    >>> same = click_labels(
    ...     [2, 0, 0, 2, 1], [0, 1, 0, 0, 1], ["a", "b", "a"], sessions=[7, 7, 8, 8, 9]
    ... )
    >>> [clicks.tolist() for clicks in same["clicks"]] == [c.tolist() for c in labels["clicks"]]
    True
    """
    queries = Queries.from_groups(groups)
    rows, marks, offsets = _read_log(shown, clicked, sessions)
    lengths = np.diff(offsets)
    session = np.repeat(np.arange(len(lengths)), lengths)
    order = slice(None) if positions is None else _order_shown(sessions, positions)
    rows, marks = rows[order], marks[order]
    _warn_of_doubtful_logs(rows, marks, session, sessions is not None and positions is None)
    check_rows(rows, session, offsets[session], queries, "Session")
    counts = None if count is None else check_weight(count, len(lengths), "count", "shown")
    chances = None if probability is None else _read_chances(probability, sessions, lengths)[order]
    position = np.arange(len(rows)) - np.repeat(offsets[:-1] - 1, lengths)
    # sort by row, then by session: the sessions that showed a row are then contiguous
    by_row = stable_order(rows)
    sessions_of, stops = session[by_row], np.cumsum(np.bincount(rows, minlength=queries.n_rows))
    twice = np.flatnonzero(sessions_of[1:] == sessions_of[:-1])
    twice = twice[rows[by_row[twice + 1]] == rows[by_row[twice]]]
    if len(twice):
        k = by_row[twice[0]]
        raise ValueError(f"Session {session[k]} shows the row {rows[k]} twice.")
    labels = np.empty(queries.n_rows, dtype=CLICK_DTYPE)
    labels["query"] = queries.codes
    labels["row"] = np.arange(queries.n_rows)
    labels["size"] = queries.broadcast(queries.sizes)
    labels["sessions"] = cut(sessions_of, stops)
    labels["positions"] = cut(position[by_row], stops)
    labels["clicks"] = cut(marks[by_row], stops)
    labels["counts"] = None if counts is None else cut(counts[sessions_of], stops)
    labels["probabilities"] = None if chances is None else cut(chances[by_row], stops)
    return labels


def _order_shown(sessions: ArrayLike | None, positions: ArrayLike) -> Ints:
    """Return the order shown of the impressions of `_read_log`."""
    if sessions is None:
        raise ValueError(
            "positions needs sessions= and a 1-D shown. Lists are in the order shown and "
            "need no positions."
        )
    place, parts = read_whole(positions, "positions"), Queries.from_groups(sessions)
    if place.shape != (parts.n_rows,):
        raise ValueError(
            f"positions must have one number for each of the {parts.n_rows} entries of "
            f"sessions; got shape {place.shape}."
        )
    place = parts.gather(place)
    order = np.lexsort((place, parts.repeat(np.arange(parts.n_queries))))
    wrong = np.flatnonzero(place[order] != parts.place + 1)
    if len(wrong):
        k = wrong[0]
        name = parts.ids[np.searchsorted(parts.offsets, k, side="right") - 1]
        raise ValueError(
            f"The positions of session {show_id(name)} must be 1, 2, 3 and so on, but it has "
            f"{place[order][k]} instead of {parts.place[k] + 1}. The log needs all documents that "
            "were shown, clicked or not; if positions start at 0, add 1."
        )
    return order


def _warn_of_doubtful_logs(rows: Ints, marks: Bools, session: Ints, by_column: bool) -> None:
    """Warn about a log of clicked documents only, and about a log in row order."""
    if len(rows) >= _MANY_IMPRESSIONS and marks.all():
        warn(
            f"All {len(rows):,} documents of the log were clicked. Pass all documents that "
            "were shown, clicked or not: without them, relevance and position bias cannot "
            "be estimated."
        )
        return
    if not by_column or len(rows) < _MANY_IMPRESSIONS:
        return
    inside = session[1:] == session[:-1]
    place = np.arange(len(rows)) - np.searchsorted(session, session)
    top = np.zeros(rows.max() + 1, dtype=np.int64)
    top[rows] = place
    # If each document always has the same place, queries may have fixed lists.
    if (top[rows] != place).any() and (rows[1:] > rows[:-1])[inside].all():
        warn(
            "In every session the documents are in row order: the log may be sorted by document. "
            "Entries are read in the order shown; pass positions= if this is another order."
        )


def _read_log(shown: Any, clicked: Any, sessions: ArrayLike | None) -> tuple[Ints, Bools, Ints]:
    """Return the row of each impression, sorted by session, its clicks, and offsets.

    Session s has the impressions ``offsets[s]`` to ``offsets[s + 1] - 1``, in the order shown.
    """
    if sessions is not None:
        with reading_rows("shown"):
            rows = read_whole(shown, "shown")
        marks = read_marks(clicked, "clicked")
        if rows.size == 0:
            raise ValueError("shown is empty: at least one session is needed.")
        try:
            parts = Queries.from_groups(sessions)
        except ValueError as error:
            raise ValueError(f"sessions cannot be read as ids: {error}") from error
        if not rows.shape == marks.shape == (parts.n_rows,):
            raise ValueError(
                "With sessions=, shown, clicked and sessions must be 1-D arrays with one "
                f"entry per impression; got shapes {rows.shape}, {marks.shape} and "
                f"({parts.n_rows},)."
            )
        return parts.gather(rows), parts.gather(marks), parts.offsets
    with reading_rows("shown"):
        numbers, lengths = _flat(shown, "shown", "row numbers")
        rows = read_whole(numbers, "shown")
    if len(lengths) == 0:
        raise ValueError("shown is empty: at least one session is needed.")
    if (lengths == 0).any():
        s = int(np.argmin(lengths))
        raise ValueError(f"Session {s} has an empty list. It must show at least one document.")
    offsets = np.append(0, np.cumsum(lengths))
    if hasattr(clicked, "__iter__") and not hasattr(clicked, "columns"):
        if not isinstance(clicked, np.ndarray) or clicked.ndim != 2:
            clicked = [
                () if each is None else each if hasattr(each, "__len__") else [each]
                for each in clicked
            ]
    positions, counts = _flat(clicked, "clicked", "positions")
    if len(counts) != len(lengths):
        raise ValueError(
            f"clicked has {counted(len(counts), 'entry')}, but shown has "
            f"{counted(len(lengths), 'session')}."
        )
    if positions.dtype == bool and len(positions):
        if (counts != lengths).any():
            s = int(np.argmax(counts != lengths))
            raise ValueError(
                f"clicked has {counts[s]} booleans for session {s}, which shows {lengths[s]} "
                "documents."
            )
        return rows, positions, offsets
    positions = read_whole(positions, "clicked")
    session = np.repeat(np.arange(len(counts)), counts)
    outside = (positions < 1) | (positions > lengths[session])
    if outside.any():
        k = int(np.argmax(outside))
        raise ValueError(
            f"Session {session[k]} has a click at position {positions[k]}, but it shows "
            f"{counted(lengths[session[k]], 'document')}, at positions 1 to "
            f"{lengths[session[k]]}."
        )
    at = offsets[session] + positions - 1
    times = np.bincount(at, minlength=len(rows))
    if (times > 1).any():
        k = int(np.argmax(times[at] > 1))
        raise ValueError(
            f"Session {session[k]} has {times[at[k]]} clicks at position {positions[k]}. List each "
            "clicked position once."
        )
    return rows, times.astype(bool), offsets


def _read_chances(probability: Any, sessions: ArrayLike | None, lengths: Ints) -> Floats:
    """Return the probability of display of each impression, in the order of `_read_log`."""
    if sessions is None:
        numbers, counts = _flat(probability, "probability", "probabilities")
        values = read_numbers(numbers, "probability")
        fits = np.array_equal(counts, lengths)
    else:
        values = read_numbers(probability, "probability")
        fits = values.shape == (lengths.sum(),)
        if fits:
            values = Queries.from_groups(sessions).gather(values)
    if not fits:
        raise ValueError("probability must have one number for each document in shown.")
    wrong = ~((values > 0) & (values <= 1))
    if wrong.any():
        raise ValueError(
            "probability must be in (0, 1], because clicks are divided by it; it has "
            f"{values[np.argmax(wrong)]}."
        )
    return values


def _flat(values: Any, name: str, contents: str) -> tuple[NDArray[Any], Ints]:
    """Return the concatenated numbers of all lists, and the lengths of the lists."""
    check_no_mask(values, name)
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return read_array(values, name).reshape(-1), np.full(len(values), values.shape[1])
    listed = list(values) if hasattr(values, "__iter__") else [values]
    for s, each in enumerate(listed):
        if isinstance(each, (str, bytes, dict, set)) or not hasattr(each, "__len__"):
            raise ValueError(
                f"Entry {s} of {name} is {each!r}, not a list of {contents}. Pass one list "
                "per session, a 2-D array with one row per session, or columns with one "
                "entry per impression: shown=frame['row'], clicked=frame['clicked'], "
                "sessions=frame['session']."
            )
    lengths = np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))
    arrays = [each for each in listed if isinstance(each, np.ndarray) and each.size]
    if arrays and len(arrays) == len(listed):
        return read_array(np.concatenate(arrays), name), lengths
    numbers = read_array(list(chain.from_iterable(listed)), name)
    if numbers.ndim != 1:
        raise ValueError(f"The lists of {name} must contain whole numbers.")
    return numbers, lengths


def read_clicks(y: Any, n_rows: int | None = None) -> Clicks:
    """Read an array made by `click_labels`, or its entries for some complete queries.

    Parameters
    ----------
    y : structured ndarray of shape (n_rows,)
        The array from `click_labels`, or its entries for some complete queries, in any order.
    n_rows : int, default=None
        The expected length.

    Returns
    -------
    clicks : Clicks
        The sessions of these queries. Row numbers refer to `y`. Sessions are sorted by query, in
        the original order within a query.

    Examples
    --------
    >>> from sklearn_rankcal.clicks import click_labels, read_clicks
    >>> labels = click_labels([[2, 0], [1], [0, 2]], [[2], 1, None], ["a", "b", "a"])
    >>> clicks = read_clicks(labels[[2, 0]])
    >>> clicks.row.tolist(), clicks.offsets.tolist(), clicks.clicked.tolist()
    ([0, 1, 1, 0], [0, 2, 4], [False, True, False, False])
    """
    queries = read_structure(
        y, CLICK_DTYPE, "clicks", "click_labels(shown, clicked, groups)", n_rows
    )
    if len(np.unique(y["row"])) < len(y):
        raise put_together("a row occurs twice", "click_labels")
    per_row = np.fromiter(map(len, y["sessions"]), dtype=np.int64, count=len(y))
    session = np.concatenate(y["sessions"])
    row = np.repeat(np.arange(len(y)), per_row)
    code = queries.codes[row]
    # Renumber the sessions by query.
    query_of = np.full(int(session.max(initial=-1)) + 1, -1)
    query_of[session] = code
    present = np.flatnonzero(query_of >= 0)
    present = present[stable_order(query_of[present])]
    new = np.empty(len(query_of), dtype=np.int64)
    new[present] = np.arange(len(present))
    number = new[session]
    offsets = np.append(0, np.cumsum(np.bincount(number, minlength=len(present))))
    # The positions of a session are 1, 2, ..., and give the place of each impression.
    at = offsets[number] + np.concatenate(y["positions"]) - 1
    known = (at >= 0) & (at < len(at))
    if (
        (query_of[session] != code).any()
        or not known.all()
        or (np.bincount(at, minlength=len(at)) != 1).any()
    ):
        raise put_together("a session lacks one of its documents", "click_labels")
    rows, clicked = np.empty_like(row), np.empty(len(row), dtype=bool)
    rows[at] = row
    clicked[at] = np.concatenate(y["clicks"]).astype(bool)
    count = None
    if y["counts"][0] is not None:
        count = np.empty(len(present))
        count[number] = np.concatenate(y["counts"])
    probability = None
    if y["probabilities"][0] is not None:
        probability = np.empty(len(row))
        probability[at] = np.concatenate(y["probabilities"])
    return Clicks(
        queries, rows, clicked, offsets, query_of[present], count, probability=probability
    )


# ---------------------------------------------------------------- the log


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

        `queries` is the partition of the taken rows. Impressions keep their positions, and sessions
        keep their last click. Sessions without remaining impressions are dropped.
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
