"""Lists of preferences between documents, in files, rows or data frames: pairs of rows come out."""

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
from sklearn_rankcal.utils._text_files import Lines, parse_number


def read_edges(
    source: str | PathLike[str] | ArrayLike | Iterable[Any],
    *,
    groups: ArrayLike | None = None,
    documents: ArrayLike | None = None,
) -> Bunch:
    """Read a list of preferences (query, preferred document, other document[, weight]).

    Parameters
    ----------
    source : path, or array-like of shape (n_pairs, 3) or (n_pairs, 4)
        A text file, plain or ``.gz``, of one preference a line, lines that begin with ``#`` left
        out. The first line says what separates the entries: commas where it has one (entries may
        then be quoted), else tabs where it has one, else white space. Or the rows themselves or a
        data frame, with ids of any hashable type. Document ids are those of a query: two queries
        may use the same.
    groups, documents : array-like of shape (n_rows,), default=None
        Query id and document id of each row of X, both or neither; ids of a file are compared
        with them as text. Without them the documents that occur are numbered by first appearance.

    Returns
    -------
    data : Bunch
        ``pairs`` (n_pairs, 2) row numbers and ``weight`` (n_pairs,) or None, for
        ``preference_labels(data.pairs, data.groups, data.weight)``; and ``groups`` and
        ``documents`` of those rows, as given, or (n_documents,) the ids to look the rows of X up
        by: arrays of integers or floats where all ids are, else of objects. Ids from a file are
        integers where all of a column are, else text.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        Lines that do not have 3 or 4 entries each or have an empty one, a weight that is no
        number, negative, NaN or infinite, a missing id, an id as a float beyond 2^53, an unknown
        document, a document given twice, only one of `groups` and `documents`, no rows; a
        compressed file that is damaged or cut short. Of a file the error names the line.

    Notes
    -----
    O(n_pairs + n_rows), one dictionary pass.

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
        raise ValueError("groups and documents go together: pass both, or neither.")
    from_file = isinstance(source, (str, PathLike))
    columns = _read_columns(source) if from_file else _columns_of_rows(source)
    query, preferred, other = columns[:3]
    ends = [end for pair in zip(preferred, other, strict=True) for end in pair]
    owners = [q for q in query for _ in range(2)]
    weight = np.array(columns[3], dtype=np.float64) if len(columns) == 4 else None
    if groups is None or documents is None:
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
    place = {key: row for row, key in enumerate(zip(known_q, known_d, strict=True))}
    if len(place) < len(known_q):
        raise ValueError("A document is given twice: (groups, documents) must tell rows apart.")
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
    """Columns of an edge file: ids as text, weights as floats."""
    columns: list[list[Any]] = []
    separator: str | None = None
    texts: dict[str, str] = {}  # an id that occurs many times is kept once
    lines = Lines(path, bytes_per_line=400)
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
                f"{line.strip()[:80]!r} has {len(row)} entries. Every line must be query, "
                "preferred, other, or all of them with a weight as well; the first line says "
                "whether commas, tabs or other white space separates them."
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


def _split(line: str, separator: str | None, lines: Lines) -> list[str]:
    if separator == "," and '"' in line:
        try:
            row = next(csv.reader([line], strict=True, skipinitialspace=True))
        except csv.Error as error:
            raise lines.error(f"{line.strip()[:80]!r}: {error}.") from None
    else:
        row = line.split(separator)
    return [entry.strip() for entry in row]


def _columns_of_rows(source: Any) -> list[list[Any]]:
    """Columns of edges given as rows or as a data frame: ids, and weights as floats."""
    check_no_mask(source, "source")
    frame = frame_columns(source)
    if frame is not None:  # column by column: side by side, integers would become floats
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
            f"it has rows of {sorted(widths)}."
        )
    for name, column in zip(("query", "preferred", "other"), columns, strict=False):
        _check_ids(column, f"the {name} of source")
    if len(columns) == 4:
        columns[3] = _weights(columns[3])
    return columns


def _rows(source: Any) -> list[Any]:
    """Rows as lists or tuples; what is none of them as an empty row."""
    if isinstance(source, Mapping):
        raise ValueError(
            "source is a dictionary: pass its rows (query, preferred, other, weight) in a list."
        )
    if isinstance(source, np.ndarray) and source.dtype.kind not in "mM":
        source = source.tolist()  # numbers of Python; dates would become numbers
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
    """Ids of rows as a list, with the types that they have."""
    check_no_mask(ids, name)
    if isinstance(ids, (str, bytes, Mapping, set, frozenset)) or np.isscalar(ids):
        raise ValueError(f"{name} must hold one id per row, in the order of the rows.")
    if hasattr(ids, "to_list"):
        listed = ids.to_list()
    elif isinstance(ids, np.ndarray):
        if ids.ndim != 1:
            raise ValueError(f"{name} must be 1-D, one id per row; it has shape {ids.shape}.")
        listed = list(ids) if ids.dtype.kind in "mM" else ids.tolist()
    else:
        listed = list(ids)  # type: ignore[arg-type]
    _check_ids(listed, name)
    return listed


def _check_ids(ids: Iterable[Any], name: str) -> None:
    """Refuse ids that are missing, that cannot be looked up, or that a float may have merged."""
    try:
        different: dict[Any, None] = dict.fromkeys(ids)
    except TypeError as error:
        raise ValueError(f"{name} must hold hashable ids: {error}.") from None
    for value in different:
        if is_missing(value):
            row = next(k for k, other in enumerate(ids) if other is value)
            raise ValueError(f"{name} is missing in row {row} ({value!r}). Drop such rows.")
        if isinstance(value, (float, np.floating)) and not abs(float(value)) < LARGEST_WHOLE:
            raise ValueError(
                f"{name} has the id {value!r}, a float beyond 2^53, where different integers "
                "become equal. Pass the ids as integers or text."
            )


def _weights(column: list[Any]) -> list[float]:
    """Weights of rows: numbers, or all of them decimal numbers as text."""
    if all(isinstance(value, str) for value in column):
        try:
            return list(map(parse_number, column))
        except ValueError as error:
            raise ValueError(f"weight must be a number: {error}") from None
    weights = read_numbers(column, "weight")
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"weight must be finite and >= 0; that of row {row} is {weights[row]}.")
    return list(weights.tolist())


def _column(ids: list[Any], from_file: bool) -> NDArray[Any]:
    """Ids as an array: of integers or floats where all are, else of objects.

    Text is kept as objects: an array of text is as wide as its longest entry.
    """
    if from_file and all(re.fullmatch(r"0|-?[1-9]\d{0,17}", value, re.ASCII) for value in ids):
        return np.array(list(map(int, ids)), dtype=np.int64)
    whole = [isinstance(value, Integral) and not isinstance(value, bool) for value in ids]
    if all(whole) and -(2**63) <= min(ids) and max(ids) < 2**63:
        return np.array(ids, dtype=np.int64)
    if all(isinstance(value, float) for value in ids):
        return np.array(ids)
    return object_array(ids)
