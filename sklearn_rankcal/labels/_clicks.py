"""Click labels: a user passes what was shown and clicked, and structures receive `Clicks`.

`click_labels` stores the sessions of a click log in a structured array with one entry per row,
which survives every splitter of scikit-learn that keeps queries whole. `read_clicks` turns the part
of that array that a splitter has kept into `Clicks`. A *session* is one list that was shown to one
user, with its clicks; an *impression* is one document of such a list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.labels._click_input import (
    check_count,
    check_impressions,
    read_clicked,
    read_shown,
)
from sklearn_rankcal.labels._click_log import Clicks
from sklearn_rankcal.labels._preferences import cut
from sklearn_rankcal.labels._relevance import put_together, read_structure
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._groups import stable_order

CLICK_DTYPE = np.dtype(
    [
        ("query", "i8"),
        ("row", "i8"),
        ("size", "i8"),
        ("sessions", "O"),
        ("positions", "O"),
        ("clicks", "O"),
        ("counts", "O"),
    ]
)

Ints = NDArray[np.int64]


def click_labels(
    shown: Any,
    clicked: Any,
    groups: ArrayLike,
    *,
    sessions: ArrayLike | None = None,
    count: ArrayLike | None = None,
) -> NDArray[Any]:
    """Make click labels, which can be used as `y` anywhere in scikit-learn.

    A session is a list of documents of one query that was shown to one user, with the clicks of
    this user. The entry of each row contains the sessions that showed it. The array can be sliced,
    permuted and split together with the rows of X. Its ``row`` and ``size`` fields let `fit` find
    the other rows of a session, and refuse a query if a splitter has kept only a part of it.

    Parameters
    ----------
    shown : list of lists, or array-like of shape (n_sessions, n_shown) or (n_impressions,)
        Row numbers of X, in the order in which they were shown, in one of three forms: one list per
        session; a 2-D array with one row per session, if all lists have the same length; or, for
        millions of sessions of different lengths, a 1-D array with one entry per impression, that
        is per document that was shown in a session, together with `sessions`. A session shows
        different documents of one query, and at least one.
    clicked : list, or array-like of bool of the shape of `shown`
        For each session the clicked positions, 1 = top: a list of them, a single position, or None
        or an empty list if nothing was clicked. Or booleans in the shape of `shown`, True where a
        document was clicked. If `shown` is 1-D, then `clicked` must be booleans, or 0 and 1.
    groups : array-like of shape (n_documents,)
        Query id of each row of X. Ids can be of any type and in any order; the rows of a query
        need not be contiguous.
    sessions : array-like of shape (n_impressions,), default=None
        Id of the session of each entry of a 1-D `shown`. The entries of a session need not be
        contiguous; their order is the order shown. Sessions are numbered in order of first
        appearance.
    count : array-like of shape (n_sessions,), default=None
        How often each session occurred, finite and >= 0. None means once each.

    Returns
    -------
    labels : structured ndarray of shape (n_documents,)
        The fields are

        - ``query`` (int64), queries numbered in order of first appearance;
        - ``row`` (int64), the row number;
        - ``size`` (int64), the number of rows of the query;
        - ``sessions`` (object), an int64 array of the sessions that showed this row, ascending;
        - ``positions`` (object), an int64 array of its positions in these sessions, 1 = top;
        - ``clicks`` (object), a boolean array that says whether it was clicked there;
        - ``counts`` (object), a float64 array of the counts of these sessions, or None throughout.

    Raises
    ------
    ValueError
        If there are no sessions or an empty list was shown; if a session shows a document twice, a
        row that does not exist, or documents of different queries; if a clicked position is not a
        whole number, lies outside its list or is repeated; if lengths differ; if a count is
        negative, NaN or infinite; or if a group id is missing.

    See Also
    --------
    read_clicks : Read the array, or a part of it.
    sklearn_rankcal.aggregation.InversePropensity : Relevance from clicks with position bias.
    sklearn_rankcal.aggregation.CascadeSatisfaction : Probabilities of satisfaction from clicks.

    Notes
    -----
    The cost is O(n_impressions log n_impressions + n_documents) time and O(n_impressions +
    n_documents) memory, about 25 bytes per impression. Lists are read object by object. Arrays are
    not, and take about a second for ten million impressions.

    Examples
    --------
    Three sessions of two queries. In the first, the document at position 2 was clicked:

    >>> from sklearn_rankcal.labels import click_labels
    >>> labels = click_labels([[2, 0], [0, 2], [1]], [[2], None, 1], ["a", "b", "a"])
    >>> labels["sessions"][0].tolist(), labels["positions"][0].tolist()
    ([0, 1], [2, 1])
    >>> labels["clicks"][0].tolist()
    [True, False]

    The same log as columns with one entry per impression:

    >>> same = click_labels(
    ...     [2, 0, 0, 2, 1], [0, 1, 0, 0, 1], ["a", "b", "a"], sessions=[7, 7, 8, 8, 9]
    ... )
    >>> [clicks.tolist() for clicks in same["clicks"]] == [c.tolist() for c in labels["clicks"]]
    True
    """
    queries = Queries.from_groups(groups)
    rows, offsets, order = read_shown(shown, sessions)
    check_impressions(rows, offsets, queries)
    marks = read_clicked(clicked, offsets, order, sessions is not None)
    lengths = np.diff(offsets)
    counts = check_count(count, len(lengths))
    session = np.repeat(np.arange(len(lengths)), lengths)
    position = np.arange(len(rows)) - np.repeat(offsets[:-1] - 1, lengths)
    # sort by row and then by session: the sessions that showed a row are then next to each other
    by_row = stable_order(rows)
    stops = np.cumsum(np.bincount(rows, minlength=queries.n_rows))
    labels = np.empty(queries.n_rows, dtype=CLICK_DTYPE)
    labels["query"] = queries.codes
    labels["row"] = np.arange(queries.n_rows)
    labels["size"] = queries.broadcast(queries.sizes)
    labels["sessions"] = cut(session[by_row], stops)
    labels["positions"] = cut(position[by_row], stops)
    labels["clicks"] = cut(marks[by_row], stops)
    labels["counts"] = None if counts is None else cut(counts[session[by_row]], stops)
    return labels


def read_clicks(y: Any, n_rows: int | None = None) -> Clicks:
    """Read an array that `click_labels` returned, or its entries for some whole queries.

    Parameters
    ----------
    y : structured ndarray of shape (n_rows,)
        The array of `click_labels`, or its entries for some whole queries, in any order.
    n_rows : int, default=None
        The expected length.

    Returns
    -------
    clicks : Clicks
        The sessions of these queries. Rows are numbered by their place in `y`. Sessions are sorted
        by query, and those of the same query keep their order.

    Raises
    ------
    ValueError
        If `y` is None or is not an array of `click_labels`; if it has the wrong length; if a
        splitter has removed a part of a query; if rows are repeated; or if arrays of several calls
        were concatenated.

    Notes
    -----
    The cost is O(n_impressions + n_rows + S log S), where S is the number of sessions in the call
    of `click_labels`.

    Examples
    --------
    >>> from sklearn_rankcal.labels import click_labels, read_clicks
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
    # Number the sessions anew: those of the first query come first.
    query_of = np.full(int(session.max(initial=-1)) + 1, -1)
    query_of[session] = code
    present = np.flatnonzero(query_of >= 0)
    present = present[stable_order(query_of[present])]
    new = np.empty(len(query_of), dtype=np.int64)
    new[present] = np.arange(len(present))
    number = new[session]
    offsets = np.append(0, np.cumsum(np.bincount(number, minlength=len(present))))
    # The positions of a session are 1, 2, ..., so they say where each impression belongs.
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
    return Clicks(queries, rows, clicked, offsets, query_of[present], count)
