"""Readers of edge lists: preferences between documents, from a file, rows or a data frame."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._groups import object_array
from sklearn_rankcal.utils._numbers import (
    LARGEST_WHOLE,
    check_no_mask,
    frame_columns,
    is_missing,
    read_numbers,
)
from sklearn_rankcal.utils._text_files import LineReader, parse_number


def read_edges(
    source: str | PathLike[str] | ArrayLike | Iterable[Any],
    *,
    groups: ArrayLike | None = None,
    documents: ArrayLike | None = None,
) -> Bunch:
    """Read a list of preferences (query, preferred document, other document[, weight]).

    The preferences can be seen as the edges of a graph whose nodes are the documents. The documents
    are given by ids, which this function replaces by row numbers.

    Parameters
    ----------
    source : path, or array-like of shape (n_pairs, 3) or (n_pairs, 4)
        A path is the path of a text file, plain or ``.gz``, with one preference per line. Lines
        that begin with ``#`` are ignored. The first other line determines how entries are
        separated: by commas if it contains one (entries may then be quoted), else by tabs if it
        contains one, else by white space. Instead of a path, the rows themselves can be passed as
        a list, an array or a data frame, with ids of any hashable type. A document id only has a
        meaning within its query, so two queries may use the same document ids.
    groups, documents : array-like of shape (n_rows,), default=None
        Query id and document id of each row of X. Pass both or neither. The ids of a file are text,
        so they are compared with these ids converted to text. If both are None, the documents of
        the list are numbered in order of first appearance.

    Returns
    -------
    data : Bunch
        A dictionary-like object with these entries:

        - ``pairs``, of shape (n_pairs, 2): row numbers of the preferred and the other document.
        - ``weight``, of shape (n_pairs,), or None if the list has no weights.
        - ``groups`` and ``documents``, of shape (n_documents,): the arguments of these names as
          arrays. If they were not passed, they are the query ids and document ids of the documents
          in the list, and the rows of X must be in this order. If all ids of an array are integers,
          or all are floats, it has that dtype; otherwise its dtype is object. Ids from a file
          become integers if all ids in the column are integers, and otherwise remain text.

        Pass them on as ``preference_labels(data.pairs, data.groups, data.weight)``.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If a line does not have 3 or 4 entries or has an empty one; if a weight is not a number, or
        is negative, NaN or infinite; if an id is missing, or is a float beyond 2^53; if a document
        is unknown or is given twice; if only one of `groups` and `documents` is passed; if there
        are no preferences; or if a compressed file is damaged or cut short. For a file, the error
        names the line.

    Notes
    -----
    The cost is O(n_pairs + n_rows), because each document of a pair is looked up in a dictionary.

    Examples
    --------
    >>> from sklearn_rankcal.labels import preference_labels, read_edges
    >>> edges = [("cats", "tom", "felix", 2), ("dogs", "rex", "tom", 1)]
    >>> data = read_edges(edges)
    >>> data.pairs.tolist(), data.groups.tolist(), data.documents.tolist()
    ([[0, 1], [2, 3]], ['cats', 'cats', 'dogs', 'dogs'], ['tom', 'felix', 'rex', 'tom'])
    >>> labels = preference_labels(data.pairs, data.groups, data.weight)
    """
    if (groups is None) != (documents is None):
        raise ValueError("groups and documents are only useful together. Pass both, or neither.")
    from_file = isinstance(source, (str, PathLike))
    columns = _read_columns(source) if from_file else _columns_of_rows(source)
    query, preferred, other = columns[:3]
    # the ends of all pairs one after the other, and the query of each end
    ends = [end for pair in zip(preferred, other, strict=True) for end in pair]
    owners = [q for q in query for _ in range(2)]
    weight = np.array(columns[3], dtype=np.float64) if len(columns) == 4 else None
    if groups is None or documents is None:
        # number each different (query, document) in order of first appearance
        rows = Queries.from_groups(list(zip(owners, ends, strict=True)))
        ids = [rows.ids[k] for k in range(rows.n_queries)]
        return Bunch(
            pairs=rows.codes.reshape(-1, 2),
            weight=weight,
            groups=_column([q for q, _ in ids], from_file),
            documents=_column([document for _, document in ids], from_file),
        )
    given_q, given_d = _listed(groups, "groups"), _listed(documents, "documents")
    if len(given_q) != len(given_d):
        raise ValueError(f"groups has {len(given_q)} entries, but documents has {len(given_d)}.")
    known_q, known_d = given_q, given_d
    if from_file:
        known_q, known_d = list(map(str, given_q)), list(map(str, given_d))
    # the row of each (query, document)
    place = {key: row for row, key in enumerate(zip(known_q, known_d, strict=True))}
    if len(place) < len(known_q):
        raise ValueError("A document is given twice. Each pair (group, document) must be unique.")
    try:
        pairs = [place[key] for key in zip(owners, ends, strict=True)]
    except KeyError as error:
        raise ValueError(
            f"(query, document) {error.args[0]!r} is in the edges, but not in groups and documents."
        ) from None
    return Bunch(
        pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        weight=weight,
        groups=_column(given_q, False),
        documents=_column(given_d, False),
    )


# ---------------------------------------------------------------- columns of edges


def _read_columns(path: Any) -> list[list[Any]]:
    """Return the columns of an edge file: ids as text, weights as floats."""
    columns: list[list[Any]] = []
    separator: str | None = None
    texts: dict[str, str] = {}  # an id that occurs many times is stored once
    lines = LineReader(path, bytes_per_line=400)
    for _, line in lines:
        if line.lstrip().startswith("#"):
            continue
        if not columns:
            separator = "," if "," in line else "\t" if "\t" in line.strip() else None
        row = _split(line, separator, lines)
        if not columns and len(row) in (3, 4):
            columns = [[] for _ in row]
        if len(row) != len(columns):
            raise lines.error(
                f"{line.strip()[:80]!r} has {len(row)} entries. Every line must contain the query, "
                "the preferred and the other document, and either every line or none a weight. The "
                "first line determines whether commas, tabs or white space separate the entries."
            )
        if "" in row:
            raise lines.error(f"entry {row.index('') + 1} of {line.strip()[:80]!r} is empty.")
        for column, entry in zip(columns, row[:3], strict=False):
            column.append(texts.setdefault(entry, entry))
        if len(row) == 4:
            try:
                columns[3].append(parse_number(row[3]))
            except ValueError as error:
                raise lines.error(f"weight must be a number: {error}") from None
            if columns[3][-1] < 0:
                raise lines.error(f"weight must be >= 0; it is {row[3]}.")
    if not columns:
        raise ValueError(f"{path} has no preferences.")
    return columns


def _split(line: str, separator: str | None, lines: LineReader) -> list[str]:
    """Split a line into entries. `csv` takes 3.5 times as long, so only quoted lines go to it."""
    if separator == "," and '"' in line:
        try:
            row = next(csv.reader([line], strict=True, skipinitialspace=True))
        except csv.Error as error:
            raise lines.error(f"{line.strip()[:80]!r}: {error}.") from None
    else:
        row = line.split(separator)
    return [entry.strip() for entry in row]


def _columns_of_rows(source: Any) -> list[list[Any]]:
    """Return the columns of edges that are rows or a data frame: ids, and weights as floats."""
    check_no_mask(source, "source")
    frame = frame_columns(source)
    # A data frame is read column by column. In an array of its rows, the integers of one column
    # would become floats if another column contains floats.
    if frame is not None:
        columns = [column.to_list() for column in frame]
        if not len(source):
            raise ValueError("source has no preferences.")
        widths = {len(columns)}
    else:
        rows = _rows(source)
        if not rows:
            raise ValueError("source has no preferences.")
        widths = {len(row) for row in rows}
        columns = [list(column) for column in zip(*rows, strict=False)]
    if widths not in ({3}, {4}):
        raise ValueError(
            "source must have rows of 3 or 4 entries: query, preferred, other[, weight]; "
            f"it has rows of {sorted(widths)} entries."
        )
    for name, column in zip(("query", "preferred", "other"), columns, strict=False):
        _check_ids(column, f"the {name} of source")
    if len(columns) == 4:
        columns[3] = _weights(columns[3])
    return columns


def _rows(source: Any) -> list[Any]:
    """Return the rows as lists. Anything that is not a row becomes an empty list."""
    if isinstance(source, Mapping):
        raise ValueError(
            "source is a dictionary. Pass a list of rows (query, preferred, other, weight)."
        )
    if isinstance(source, np.ndarray) and source.dtype.kind not in "mM":
        # tolist gives Python's own numbers. It would turn dates into numbers, so they are left out.
        source = source.tolist()
    if not isinstance(source, Iterable):
        raise ValueError(
            "source must be the name of a file, or rows of (query, preferred, other[, weight]); "
            f"got {source!r}."
        )
    rows = list(source)
    for row in rows:
        check_no_mask(row, "source")
    kinds = (list, tuple, np.ndarray, np.void)
    return [list(row) if isinstance(row, kinds) else [] for row in rows]  # type: ignore[arg-type]


def _listed(ids: ArrayLike, name: str) -> list[Any]:
    """Check the ids of rows, and return them as a list without changing their types."""
    check_no_mask(ids, name)
    if isinstance(ids, (str, bytes, Mapping, set, frozenset)) or np.isscalar(ids):
        raise ValueError(f"{name} must contain one id per row, in the order of the rows.")
    if hasattr(ids, "to_list"):
        listed = ids.to_list()
    elif isinstance(ids, np.ndarray):
        if ids.ndim != 1:
            raise ValueError(
                f"{name} must be a 1-D array with one id per row; it has shape {ids.shape}."
            )
        listed = list(ids) if ids.dtype.kind in "mM" else ids.tolist()
    else:
        listed = list(ids)  # type: ignore[arg-type]
    _check_ids(listed, name)
    return listed


def _check_ids(ids: Iterable[Any], name: str) -> None:
    """Refuse ids that are missing or not hashable, and floats too large to be exact integers."""
    try:
        different: dict[Any, None] = dict.fromkeys(ids)
    except TypeError as error:
        raise ValueError(f"{name} must contain hashable ids: {error}.") from None
    for value in different:
        if is_missing(value):
            row = next(k for k, other in enumerate(ids) if other is value)
            raise ValueError(
                f"{name} is missing in row {row} ({value!r}). Drop the rows without ids."
            )
        if isinstance(value, (float, np.floating)) and not abs(float(value)) < LARGEST_WHOLE:
            raise ValueError(
                f"{name} has the id {value!r}, a float beyond 2^53. As floats, different integers "
                "of that size become equal. Pass the ids as integers or text."
            )


def _weights(column: list[Any]) -> list[float]:
    """Check weights, which are numbers or all are decimal numbers as text; return floats."""
    if all(isinstance(value, str) for value in column):
        try:
            return list(map(parse_number, column))
        except ValueError as error:
            raise ValueError(f"weight must be a number: {error}") from None
    weights = read_numbers(column, "weight")
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"weight must be finite and >= 0; the weight of row {row} is {weights[row]}."
        )
    return list(weights.tolist())


def _column(ids: list[Any], from_file: bool) -> NDArray[Any]:
    """Return ids as an array of integers, of floats or of objects.

    If all ids are integers, or all are floats, the array has that dtype. Text is stored as objects,
    because every entry of an array of text takes as much memory as the longest entry.
    """
    if from_file and all(re.fullmatch(r"0|-?[1-9]\d{0,17}", value, re.ASCII) for value in ids):
        return np.array(list(map(int, ids)), dtype=np.int64)
    whole = [isinstance(value, Integral) and not isinstance(value, bool) for value in ids]
    if all(whole) and -(2**63) <= min(ids) and max(ids) < 2**63:
        return np.array(ids, dtype=np.int64)
    if all(isinstance(value, float) for value in ids):
        return np.array(ids)
    return object_array(ids)
