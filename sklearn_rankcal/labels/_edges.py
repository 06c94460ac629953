"""Reader of edge lists: preferences between documents, given by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from sklearn_rankcal.labels._item_ids import check_weight, ids_of_list
from sklearn_rankcal.queries._queries import number_objects, number_values
from sklearn_rankcal.utils._numbers import check_no_mask, frame_columns


def read_edges(source: ArrayLike | Iterable[Any]) -> Bunch:
    """Read a list of preferences between documents: (query, preferred, other[, weight]).

    The function replaces document ids by row numbers. Document ids are only compared within a
    query. Different queries may use the same ids.

    Parameters
    ----------
    source : data frame, or array-like of shape (n_pairs, 3) or (n_pairs, 4)
        One preference per row, with ids of any hashable type. Read a file with
        ``pandas.read_csv(path, header=None)``.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``pairs``, of shape (n_pairs, 2): the row numbers of the preferred and the other document.
        - ``weight``, of shape (n_pairs,), or None if the list has no weights.
        - ``groups`` and ``documents``, of shape (n_documents,): the query id and the document id of
          each row, in order of first appearance. They are integers if all ids are integers, and
          objects otherwise.

        Sort the rows of X in this order. For a data frame with the index (query, document), use
        ``X.loc[list(zip(data.groups, data.documents))]``.

    Raises
    ------
    ValueError
        If a row does not have 3 or 4 entries, if a weight is not a number >= 0, if an id is
        missing, or if there are no preferences.

    Examples
    --------
    >>> from sklearn_rankcal.labels import preference_labels, read_edges
    >>> edges = [("cats", "tom", "felix", 2), ("dogs", "rex", "tom", 1)]
    >>> data = read_edges(edges)
    >>> data.pairs.tolist(), data.groups.tolist(), data.documents.tolist()
    ([[0, 1], [2, 3]], ['cats', 'cats', 'dogs', 'dogs'], ['tom', 'felix', 'rex', 'tom'])
    >>> labels = preference_labels(data.pairs, data.groups, data.weight)
    """
    columns = _columns_of_rows(source)
    query, ends = list(columns[0]), list(chain.from_iterable(zip(*columns[1:3], strict=True)))
    weight = check_weight(columns[3], len(query), "weight", "source") if len(columns) == 4 else None

    q_codes, q_ids = number_objects(query, "source", partial(_missing, 1))
    d_codes, d_ids = number_objects(ends, "source", partial(_missing, 2))
    rows, keys = number_values(np.repeat(q_codes, 2) * len(d_ids) + d_codes)
    q, d = np.divmod(keys, len(d_ids))
    return Bunch(
        pairs=rows.reshape(-1, 2),
        weight=weight,
        groups=ids_of_list(q_ids[q].tolist()),
        documents=ids_of_list(d_ids[d].tolist()),
    )


def _missing(per_row: int, place: int, value: Any) -> ValueError:
    row = place // per_row
    return ValueError(f"source has a missing or infinite id ({value!r}) in row {row}.")


def _columns_of_rows(source: Any) -> list[Any]:
    """Return the columns of rows or of a data frame."""
    check_no_mask(source, "source")
    frame = frame_columns(source)
    # Read a data frame column by column. In an array of its rows, the integers of one column would
    # become floats if another column contains floats.
    if frame is not None:
        columns = [column.to_list() for column in frame] if len(source) else []
    else:
        if isinstance(source, (str, PathLike, Mapping)) or not isinstance(source, Iterable):
            raise ValueError(
                f"source must be rows of (query, preferred, other[, weight]); got {source!r}."
            )
        if isinstance(source, np.ndarray):  # Python's own numbers and dates
            source = (source.astype(object) if source.dtype.kind in "mM" else source).tolist()
        kinds = (list, tuple, np.ndarray, np.void)
        rows = [list(row) if isinstance(row, kinds) else [row] for row in source]  # type: ignore[arg-type]
        if len(set(map(len, rows))) > 1:
            raise ValueError("source must have 3 or 4 entries in each row, the same number in all.")
        columns = list(map(list, zip(*rows, strict=True)))
    if not columns:
        raise ValueError("source has no preferences.")
    if len(columns) not in (3, 4):
        raise ValueError(
            "source must have 3 or 4 entries in each row: query, preferred, other[, weight]; "
            f"got {len(columns)}."
        )
    return columns
