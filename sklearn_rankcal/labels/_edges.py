"""Readers of edge lists: preferences between documents, from a file, rows or a data frame."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from sklearn_rankcal.labels._item_ids import check_weight, ids_of_list
from sklearn_rankcal.queries._groups import number_objects, number_values
from sklearn_rankcal.utils._numbers import check_no_mask, frame_columns
from sklearn_rankcal.utils._text_files import LineReader, parse_number


def read_edges(source: str | PathLike[str] | ArrayLike | Iterable[Any]) -> Bunch:
    """Read a list of preferences (query, preferred document, other document[, weight]).

    The documents are given by ids, which this function replaces by row numbers. A document id only
    has a meaning within its query, so two queries may use the same document ids.

    Parameters
    ----------
    source : path, or array-like of shape (n_pairs, 3) or (n_pairs, 4)
        The path of a text file, plain, ``.gz`` or ``.bz2``, with one preference per line. Lines
        that begin with ``#`` are ignored. The first other line determines how entries are
        separated: by commas if it contains one (entries may then be quoted), else by tabs if it
        contains one, else by white space. Or the rows themselves as a list, an array or a data
        frame, with ids of any hashable type.

    Returns
    -------
    data : Bunch
        A dictionary-like object with ``pairs`` of shape (n_pairs, 2), the row numbers of the
        preferred and the other document; ``weight`` of shape (n_pairs,), or None if the list has no
        weights; and ``groups`` and ``documents``, the query id and the document id of each row, in
        order of first appearance, as integers if all are, else as objects. The rows of X must have
        this order, which ``X.loc[list(zip(data.groups, data.documents))]`` brings about for a data
        frame with the index (query, document).

    Raises
    ------
    ValueError
        If a line or a row does not have 3 or 4 entries, if a weight is not a number >= 0, if an id
        is missing, if there are no preferences, or if a compressed file is damaged. For a file, the
        error names the line.

    Examples
    --------
    >>> from sklearn_rankcal.labels import preference_labels, read_edges
    >>> edges = [("cats", "tom", "felix", 2), ("dogs", "rex", "tom", 1)]
    >>> data = read_edges(edges)
    >>> data.pairs.tolist(), data.groups.tolist(), data.documents.tolist()
    ([[0, 1], [2, 3]], ['cats', 'cats', 'dogs', 'dogs'], ['tom', 'felix', 'rex', 'tom'])
    >>> labels = preference_labels(data.pairs, data.groups, data.weight)
    """
    from_file = isinstance(source, (str, PathLike))
    columns = _columns_of_file(source) if from_file else _columns_of_rows(source)
    query, ends = list(columns[0]), list(chain.from_iterable(zip(*columns[1:3], strict=True)))
    weight = check_weight(columns[3], len(query), "weight", "source") if len(columns) == 4 else None

    q_codes, q_ids = number_objects(query, "source", partial(_missing, 1))
    d_codes, d_ids = number_objects(ends, "source", partial(_missing, 2))
    rows, keys = number_values(np.repeat(q_codes, 2) * len(d_ids) + d_codes)
    q, d = np.divmod(keys, len(d_ids))
    return Bunch(
        pairs=rows.reshape(-1, 2),
        weight=weight,
        groups=_whole_numbers(q_ids[q].tolist(), from_file),
        documents=_whole_numbers(d_ids[d].tolist(), from_file),
    )


def _missing(per_row: int, place: int, value: Any) -> ValueError:
    row = place // per_row
    return ValueError(f"source has a missing or infinite id ({value!r}) in row {row}.")


def _columns_of_file(path: Any) -> list[Any]:
    """Return the columns of an edge file: ids as text, weights as floats."""
    columns: list[list[Any]] = []
    separator: str | None = None
    lines = LineReader(path)
    for line in lines:
        text = line.strip()
        if text.startswith("#"):
            continue
        if not columns:
            separator = "," if "," in line else "\t" if "\t" in text else None
        # `csv` takes 3.5 times as long as `split`, so that only quoted lines go to it
        if separator == "," and '"' in line:
            try:
                row: list[Any] = next(csv.reader([text], strict=True, skipinitialspace=True))
            except csv.Error as error:
                raise lines.error(f"{text[:80]!r}: {error}.") from None
        else:
            row = line.split(separator)
        row = [entry.strip() for entry in row]
        if not columns and len(row) in (3, 4):
            columns = [[] for _ in row]
        if len(row) != len(columns):
            raise lines.error(
                f"{text[:80]!r} has {len(row)} entries. Every line must contain the query, the "
                "preferred and the other document, and either every line or none a weight. The "
                "first line determines whether commas, tabs or white space separate the entries."
            )
        if "" in row:
            raise lines.error(f"entry {row.index('') + 1} of {text[:80]!r} is empty.")
        if len(row) == 4:
            try:
                row[3] = parse_number(row[3])
            except ValueError as error:
                raise lines.error(f"weight must be a number: {error}") from None
            if row[3] < 0:
                raise lines.error(f"weight must be >= 0; it is {row[3]:g}.")
        for column, entry in zip(columns, row, strict=True):
            column.append(entry)
    if not columns:
        raise ValueError(f"{path} has no preferences.")
    return columns


def _columns_of_rows(source: Any) -> list[Any]:
    """Return the columns of edges that are rows or a data frame."""
    check_no_mask(source, "source")
    frame = frame_columns(source)
    # A data frame is read column by column. In an array of its rows, the integers of one column
    # would become floats if another column contains floats.
    if frame is not None:
        columns = [column.to_list() for column in frame] if len(source) else []
    else:
        if isinstance(source, Mapping) or not isinstance(source, Iterable):
            raise ValueError(
                "source must be the name of a file, or rows of (query, preferred, other[, "
                f"weight]); got {source!r}."
            )
        if isinstance(source, np.ndarray):  # Python's own numbers and dates
            source = (source.astype(object) if source.dtype.kind in "mM" else source).tolist()
        kinds = (list, tuple, np.ndarray, np.void)
        rows = [list(row) if isinstance(row, kinds) else [row] for row in source]  # type: ignore[arg-type]
        if len(set(map(len, rows))) > 1:
            raise ValueError("source must have rows of 3 or 4 entries, and all of the same number.")
        columns = list(map(list, zip(*rows, strict=True)))
    if not columns:
        raise ValueError("source has no preferences.")
    if len(columns) not in (3, 4):
        raise ValueError(
            "source must have rows of 3 or 4 entries: query, preferred, other[, weight]; "
            f"it has rows of {len(columns)} entries."
        )
    return columns


def _whole_numbers(ids: list[Any], from_file: bool) -> NDArray[Any]:
    """Return ids as integers if all are, or all are the text of one; else as objects."""
    if from_file and all(re.fullmatch(r"0|-?[1-9]\d{0,17}", value, re.ASCII) for value in ids):
        ids = list(map(int, ids))
    return ids_of_list(ids)
