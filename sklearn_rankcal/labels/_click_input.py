"""Reading of the lists and the clicks that a user passes to `click_labels`, in any of three forms.

What comes in is a list of lists, a 2-D array, or one entry per impression, where an impression is
one document that was shown in one session. What goes out is one entry per impression, sorted by
session and, inside a session, in the order shown.
"""

from __future__ import annotations

from collections.abc import Sized
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import check_no_mask, read_numbers, read_whole

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FORMS = (
    "Pass one list of row numbers per session, a 2-D array with one row per session, or a 1-D "
    "array with one entry per impression together with sessions=."
)


def read_shown(shown: Any, sessions: ArrayLike | None) -> tuple[Ints, Ints, Ints | None]:
    """Read what was shown.

    Parameters
    ----------
    shown, sessions : array-like
        As in `click_labels`.

    Returns
    -------
    rows : ndarray of shape (n_impressions,)
        The documents that were shown, sorted by session.
    offsets : ndarray of shape (n_sessions + 1,)
        Session s has the impressions ``offsets[s]`` to ``offsets[s + 1] - 1``.
    order : ndarray of shape (n_impressions,) or None
        Where each of them stands in `shown` if it is a 1-D array and was not sorted. None means
        ``arange(n_impressions)``.

    Raises
    ------
    ValueError
        If there are no sessions, if a session has an empty list, or if row numbers are not whole.
    """
    if sessions is not None:
        rows = read_whole(shown, "shown")
        if rows.ndim != 1:
            raise ValueError(
                "With sessions=, shown must be a 1-D array with one entry per impression; it has "
                f"shape {rows.shape}."
            )
        if len(rows) == 0:
            raise ValueError("shown is empty: at least one session is needed.")
        length = len(sessions) if isinstance(sessions, Sized) else 0
        if length != len(rows):
            raise ValueError(
                f"sessions must be a 1-D array with one entry per impression, that is {len(rows)}; "
                f"it has {length} entries."
            )
        try:
            parts = Queries.from_groups(sessions, length)
        except ValueError as error:
            raise ValueError(f"sessions cannot be read as ids: {error}") from error
        return parts.gather(rows), parts.offsets, parts.order
    if isinstance(shown, np.ndarray) and shown.dtype.kind != "O":
        if shown.ndim != 2:
            raise ValueError(f"shown has shape {shown.shape}. {_FORMS}")
        rows = read_whole(shown, "shown")
        lengths = np.full(len(rows), rows.shape[1])
        rows = rows.reshape(-1)
    else:
        listed, lengths = _lists(shown, "shown", "row numbers")
        rows = _flat(listed, "shown")
    if len(lengths) == 0:
        raise ValueError("shown is empty: at least one session is needed.")
    if (lengths == 0).any():
        s = int(np.argmin(lengths))
        raise ValueError(f"Session {s} has an empty list: it must show at least one document.")
    return rows, np.append(0, np.cumsum(lengths)), None


def read_clicked(clicked: Any, offsets: Ints, order: Ints | None, flat: bool) -> Bools:
    """Read which impressions were clicked.

    Parameters
    ----------
    clicked : array-like
        As in `click_labels`.
    offsets, order : ndarray
        As `read_shown` returns them.
    flat : bool
        Whether there is one entry per impression, which is the form with ``sessions=``.

    Returns
    -------
    clicked : ndarray of bool of shape (n_impressions,)
        In the order of the rows of `read_shown`.

    Raises
    ------
    ValueError
        If a length differs from that of `shown`, or if a position is not a whole number, lies
        outside its list, or occurs twice in its session.
    """
    n_impressions = int(offsets[-1])
    if flat:
        marks = _marks(clicked)
        if marks.shape != (n_impressions,):
            raise ValueError(
                f"clicked must be a 1-D array with one entry per impression, that is "
                f"{n_impressions}; it has shape {marks.shape}."
            )
        return marks if order is None else marks[order]
    n_sessions = len(offsets) - 1
    if isinstance(clicked, np.ndarray) and clicked.dtype == bool:
        width = n_impressions // n_sessions
        if clicked.shape != (n_sessions, width) or width * n_sessions != n_impressions:
            raise ValueError(
                f"clicked has shape {clicked.shape}, but shown has {n_sessions} sessions with "
                f"{n_impressions} impressions. An array of booleans needs the shape of shown."
            )
        check_no_mask(clicked, "clicked")
        return np.asarray(clicked).reshape(-1)
    listed, counts = _lists(clicked, "clicked", "positions", single=True)
    if len(counts) != n_sessions:
        raise ValueError(f"clicked has {len(counts)} entries, but shown has {n_sessions} sessions.")
    lengths = np.diff(offsets)
    if _all_booleans(listed):
        if not np.array_equal(counts, lengths):
            s = int(np.argmax(counts != lengths))
            raise ValueError(
                f"clicked has {counts[s]} booleans for session {s}, which shows {lengths[s]} "
                "documents."
            )
        return np.concatenate([np.asarray(each, dtype=bool) for each in listed])
    positions = _flat(listed, "clicked")
    session = np.repeat(np.arange(n_sessions), counts)
    outside = (positions < 1) | (positions > lengths[session])
    if outside.any():
        k = int(np.argmax(outside))
        raise ValueError(
            f"Session {session[k]} has a click at position {positions[k]}, but it shows "
            f"{lengths[session[k]]} documents, at the positions 1 to {lengths[session[k]]}."
        )
    at = offsets[session] + positions - 1
    times = np.bincount(at, minlength=n_impressions)
    if (times > 1).any():
        first = int(np.argmax(times > 1))
        s = int(np.searchsorted(offsets, first, side="right")) - 1
        raise ValueError(
            f"Session {s} has {times[first]} clicks at position {first - offsets[s] + 1}. List "
            "each clicked position once."
        )
    return times.astype(bool)


def check_impressions(rows: Ints, offsets: Ints, queries: Queries) -> None:
    """Check that a session shows different rows of one query.

    Raises
    ------
    ValueError
    """
    lengths = np.diff(offsets)
    session = np.repeat(np.arange(len(lengths)), lengths)
    unknown = (rows < 0) | (rows >= queries.n_rows)
    if unknown.any():
        k = int(np.argmax(unknown))
        raise ValueError(
            f"Session {session[k]} shows the row {rows[k]}, but the rows of groups are numbered 0 "
            f"to {queries.n_rows - 1}."
        )
    codes = queries.codes[rows]
    across = codes != np.repeat(codes[offsets[:-1]], lengths)
    if across.any():
        k = int(np.argmax(across))
        s = session[k]
        raise ValueError(
            f"Session {s} shows documents of different queries: row {rows[offsets[s]]} of query "
            f"{queries.ids[codes[offsets[s]]]!s} and row {rows[k]} of query "
            f"{queries.ids[codes[k]]!s}."
        )
    twice = _repeated(rows, session, queries)
    if twice is not None:
        raise ValueError(f"Session {session[twice]} shows the row {rows[twice]} twice.")


def check_count(count: ArrayLike | None, n_sessions: int) -> Floats | None:
    """Check that each session has a finite count >= 0; None stays None."""
    if count is None:
        return None
    counts = read_numbers(count, "count")
    if counts.shape != (n_sessions,):
        raise ValueError(
            f"count must be a 1-D array with one entry per session, that is {n_sessions}; it has "
            f"shape {counts.shape}."
        )
    bad = ~np.isfinite(counts) | (counts < 0)
    if bad.any():
        s = int(np.argmax(bad))
        raise ValueError(f"count must be finite and >= 0; that of session {s} is {counts[s]}.")
    if counts.max() > np.finfo(np.float64).max / n_sessions:
        raise ValueError("The sum of the counts overflows float64. Scale the counts down.")
    return counts


def _repeated(rows: Ints, session: Ints, queries: Queries) -> int | None:
    """Return the number of an impression of a row that its session also shows elsewhere."""
    # The bits of a mask of 64 places say which documents of its query a session has shown. Queries
    # of more than 64 documents take several masks. This is faster than a sort.
    place = queries.scatter(queries.place)[rows]
    starts = np.flatnonzero(np.append(True, session[1:] != session[:-1]))
    lengths = np.diff(np.append(starts, len(session)))
    suspects = np.zeros(len(starts), dtype=bool)
    for part in range(int(place.max()) // 64 + 1):
        here = place >> 6 == part
        bit = np.where(here, np.uint64(1) << (place & 63).astype(np.uint64), np.uint64(0))
        mask = np.bitwise_or.reduceat(bit, starts)
        suspects |= np.bitwise_count(mask) < np.add.reduceat(here, starts, dtype=np.int64)
    if not suspects.any():
        return None
    s = int(np.argmax(suspects))
    inside = rows[starts[s] : starts[s] + lengths[s]]
    later = np.setdiff1d(np.arange(lengths[s]), np.unique(inside, return_index=True)[1])
    return int(starts[s] + later[0])


def _lists(values: Any, name: str, contents: str, single: bool = False) -> tuple[list[Any], Ints]:
    """Return one sequence per session and their lengths; None is an empty one, if `single`.

    With `single`, an entry may also be a single number.
    """
    if isinstance(values, (str, bytes, dict, set)) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} is {values!r}, not one list of {contents} per session.")
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        raise ValueError(
            f"{name} is a data frame, whose columns are not sessions. Pass its columns: "
            "shown=frame['row'], clicked=frame['clicked'], sessions=frame['session']."
        )
    check_no_mask(values, name)
    if isinstance(values, np.ndarray) and values.dtype.kind != "O" and values.ndim == 2:
        return [read_whole(values, name).reshape(-1)], np.full(len(values), values.shape[1])
    listed = list(values)
    if single:
        listed = [
            () if each is None else each if hasattr(each, "__len__") else [each] for each in listed
        ]
    for s, each in enumerate(listed):
        if isinstance(each, np.ndarray) and each.ndim != 1:
            raise ValueError(f"Entry {s} of {name} has shape {each.shape}; a list is 1-D.")
        if isinstance(each, (str, bytes, dict, set)) or not hasattr(each, "__len__"):
            raise ValueError(
                f"Entry {s} of {name} is {each!r}, not a list of {contents}."
                + ("" if single else f" {_FORMS}")
            )
    return listed, np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))


def _all_booleans(listed: list[Any]) -> bool:
    """Whether the entries of all lists are booleans, and there is at least one."""
    kinds = {
        each.dtype.type if isinstance(each, np.ndarray) else kind
        for each in listed
        for kind in ([None] if isinstance(each, np.ndarray) else set(map(type, each)))
        if len(each)
    }
    return bool(kinds) and kinds <= {bool, np.bool_}


def _flat(listed: list[Any], name: str) -> Ints:
    """Concatenate lists of whole numbers."""
    if listed and all(isinstance(each, np.ndarray) for each in listed):
        arrays = [each for each in listed if each.size]
        return read_whole(np.concatenate(arrays), name) if arrays else np.empty(0, dtype=np.int64)
    joined = list(chain.from_iterable(listed))
    if not joined:
        return np.empty(0, dtype=np.int64)
    numbers = read_whole(joined, name)
    if numbers.ndim != 1:
        raise ValueError(
            f"The lists of {name} must be lists of whole numbers, without lists inside."
        )
    return numbers


def _marks(clicked: Any) -> Bools:
    """Read booleans, or the numbers 0 and 1."""
    numbers = read_numbers(clicked, "clicked")
    wrong = (numbers != 0) & (numbers != 1)
    if wrong.any():
        raise ValueError(
            "With sessions=, clicked must say for each impression whether it was clicked, as "
            f"booleans or as 0 and 1; it has {numbers[wrong][0]}."
        )
    return numbers.astype(bool)
