"""Preference data from files: PrefLib orders, and lists of edges between documents."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from sklearn_rankcal._queries import Queries

Floats = NDArray[np.float64]
_PREFLIB_TYPES = ("soc", "soi", "toc", "toi")
_TIER = r"(?:\d+|\{\d+(?:,\d+)*\})"
_ORDER = re.compile(rf"(\d+):({_TIER}(?:,{_TIER})*)")


class PrefLibOrders(Bunch):
    """What `read_preflib` returns: orders over alternatives, and how many voters gave each."""

    def preferences(self, unlisted: str = "ignore") -> Floats:
        """How many voters prefer one alternative to another.

        Parameters
        ----------
        unlisted : {"ignore", "last"}, default="ignore"
            What an order says of alternatives it does not list: nothing, or that they are below
            all it lists (and tied), as in a list of favourites.

        Returns
        -------
        weights : ndarray of shape (r, r)
            ``weights[i, j]``: voters who put alternative i above alternative j; for
            `decoders.decode_preferences`. O(n_orders r^2) time, O(n_orders r) memory.

        Raises
        ------
        ValueError
            An unknown `unlisted`.
        """
        if unlisted not in ("ignore", "last"):
            raise ValueError(f"Unknown unlisted {unlisted!r}. Known: 'ignore', 'last'.")
        ranks = self.ranks
        if unlisted == "last":
            ranks = np.where(np.isnan(ranks), np.inf, ranks)
        counts = self.counts.astype(np.float64)
        rows = [counts @ (ranks[:, [i]] < ranks) for i in range(ranks.shape[1])]  # r passes
        return np.array(rows)


def read_preflib(path: str | PathLike[str]) -> PrefLibOrders:
    """Read orders in the format of PrefLib: ``.soc``, ``.soi``, ``.toc`` and ``.toi``.

    Parameters
    ----------
    path : path
        A file, plain or ``.gz``: metadata in lines that begin with ``#``, then a line
        ``count: order`` for each order, with alternatives numbered from 1, best first, and ties
        in braces.

    Returns
    -------
    data : PrefLibOrders
        A Bunch with ``alternatives`` (the names; the number, where the file has no name),
        ``orders`` (for each a list of tiers, best first, each tier a list of indices into
        `alternatives`), ``counts`` (voters of each order, int64), ``ranks`` (n_orders, r) the same
        as ranks (1 = best, ties share the best rank of their tier, NaN where not listed),
        ``title``, ``data_type``, and a method ``preferences()``: the (r, r) weights.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        A line that is no order, an alternative listed twice or beyond the number of alternatives
        of the header, another type of data, or no order at all; the error names the line.

    Notes
    -----
    What the file holds counts, not what its header announces: headers of edited files are often
    out of date. The numbers of voters and orders of the header are therefore not compared.

    References
    ----------
    N. Mattei, T. Walsh: PrefLib: a library for preferences. Algorithmic Decision Theory, 2013.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn_rankcal.labels import read_preflib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "tea.toi")
    ...     _ = file.write_text("# ALTERNATIVE NAME 1: tea\\n3: 1,{2,3}\\n2: 3\\n")
    ...     data = read_preflib(file)
    >>> data.alternatives, data.orders, data.counts.tolist()
    (['tea', '2', '3'], [[[0], [1, 2]], [[2]]], [3, 2])
    >>> data.preferences()[0].tolist(), data.preferences(unlisted="last")[2].tolist()
    ([0.0, 3.0, 3.0], [2.0, 2.0, 0.0])
    """
    header: dict[str, str] = {}
    orders: list[list[list[int]]] = []
    counts: list[int] = []
    lines = _read_lines(path)
    for number, line in lines:
        if line.startswith("#"):
            key, _, value = line[1:].partition(":")
            header.setdefault(key.strip().upper(), value.strip())
            continue
        found = _ORDER.fullmatch(re.sub(r"\s", "", line))
        if found is None:
            raise ValueError(
                f"{path}, line {number}: {line!r} is no order. PrefLib writes 'count: 3,{{1,2}},4'."
            )
        tiers = re.findall(_TIER, found[2])
        order = [[int(k) - 1 for k in tier.strip("{}").split(",")] for tier in tiers]
        listed = [k for tier in order for k in tier]
        if len(set(listed)) < len(listed):
            raise ValueError(f"{path}, line {number}: an alternative is listed twice in {line!r}.")
        if min(listed) < 0:
            raise ValueError(f"{path}, line {number}: alternatives are numbered from 1.")
        orders.append(order)
        counts.append(int(found[1]))
    data_type = header.get("DATA TYPE", "").lower()
    if data_type and data_type not in _PREFLIB_TYPES:
        raise ValueError(
            f"{path} has DATA TYPE {data_type}; known are {', '.join(_PREFLIB_TYPES)}."
        )
    if not orders:
        raise ValueError(f"{path} has no orders.")
    names = _alternative_names(header, path)
    listed_last = 1 + max(k for order in orders for tier in order for k in tier)
    last = max(listed_last, *names, 0)
    r = _announced(header, last, path)
    if last > r:
        raise ValueError(f"{path} has {r} alternatives, but lists or names number {last}.")
    ranks = np.full((len(orders), r), np.nan)
    for row, order in enumerate(orders):
        position = 1
        for tier in order:
            ranks[row, tier] = position
            position += len(tier)
    return PrefLibOrders(
        alternatives=[names.get(k, str(k)) for k in range(1, r + 1)],
        orders=orders,
        counts=np.array(counts, dtype=np.int64),
        ranks=ranks,
        title=header.get("TITLE", ""),
        data_type=data_type,
    )


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
        A text file, plain or ``.gz``, of one preference a line, separated by commas or else by
        white space, lines that begin with ``#`` left out; or the rows themselves, ids of any
        hashable type. Document ids are those of a query: two queries may use the same.
    groups, documents : array-like of shape (n_rows,), default=None
        Query id and document id of each row of X, both or neither; ids of a file are compared
        with them as text. Without them the documents that occur are numbered by first appearance.

    Returns
    -------
    data : Bunch
        ``pairs`` (n_pairs, 2) row numbers and ``weight`` (n_pairs,) or None, for
        ``preference_labels(data.pairs, data.groups, data.weight)``; and ``groups`` and
        ``documents`` of those rows, as given, or (n_documents,) the ids to look the rows of X up
        by. Ids from a file are integers where all of a column are, else text.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        Lines that do not have 3 or 4 entries each, a weight that is no number, an unknown
        document, a document given twice, only one of `groups` and `documents`, no rows.

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
    weight = _weights(columns[3]) if len(columns) == 4 else None
    if groups is None or documents is None:
        rows = Queries.from_groups(list(zip(owners, ends, strict=True)))
        ids = [rows.ids[k] for k in range(rows.n_queries)]
        return Bunch(
            pairs=rows.codes.reshape(-1, 2),
            weight=weight,
            groups=_column([q for q, _ in ids], from_file),
            documents=_column([document for _, document in ids], from_file),
        )
    known_q, known_d = (np.asarray(ids).tolist() for ids in (groups, documents))
    if len(known_q) != len(known_d):
        raise ValueError(f"groups has {len(known_q)} entries, but documents has {len(known_d)}.")
    if from_file:
        known_q, known_d = list(map(str, known_q)), list(map(str, known_d))
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
        groups=np.asarray(groups),
        documents=np.asarray(documents),
    )


def _read_lines(path: str | PathLike[str]) -> list[tuple[int, str]]:
    """(number from 1, text) of the lines that are not blank."""
    opener: Any = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig") as file:
        try:
            stripped = [(number, line.strip()) for number, line in enumerate(file, 1)]
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not text in UTF-8: {error}.") from error
    return [(number, line) for number, line in stripped if line]


def _alternative_names(header: dict[str, str], path: str | PathLike[str]) -> dict[int, str]:
    """Name of each number that has one."""
    names = {}
    for key, value in header.items():
        found = re.fullmatch(r"ALTERNATIVE NAME (\d+)", key)
        if found:
            if int(found[1]) < 1:
                raise ValueError(f"{path}: alternatives are numbered from 1.")
            names[int(found[1])] = value
    return names


def _announced(header: dict[str, str], default: int, path: str | PathLike[str]) -> int:
    """The number of alternatives that the header tells."""
    value = header.get("NUMBER ALTERNATIVES", str(default))
    if not value.isdecimal():
        raise ValueError(f"{path}: NUMBER ALTERNATIVES is {value!r}.")
    return int(value)


def _read_columns(path: Any) -> list[list[Any]]:
    """Columns of an edge file, as text."""
    lines = [(number, line) for number, line in _read_lines(path) if not line.startswith("#")]
    if not lines:
        raise ValueError(f"{path} has no preferences.")
    separator = "," if "," in lines[0][1] else None
    rows = [[entry.strip() for entry in line.split(separator)] for _, line in lines]
    width = len(rows[0])
    for (number, line), row in zip(lines, rows, strict=True):
        if len(row) not in (3, 4) or len(row) != width:
            raise ValueError(
                f"{path}, line {number}: {line!r} has {len(row)} entries. Every line must be "
                "query, preferred, other, or all of them with a weight as well."
            )
    return [list(column) for column in zip(*rows, strict=True)]


def _columns_of_rows(source: Any) -> list[list[Any]]:
    """Columns of edges given as rows."""
    values = source.to_numpy() if hasattr(source, "to_numpy") else source
    rows = values.tolist() if isinstance(values, np.ndarray) else [tuple(row) for row in values]
    if not rows:
        raise ValueError("source has no preferences.")
    widths = {len(row) if isinstance(row, (list, tuple)) else 0 for row in rows}
    if widths not in ({3}, {4}):
        raise ValueError(
            "source must have rows of 3 or 4 entries: query, preferred, other[, weight]; "
            f"it has rows of {sorted(widths)}."
        )
    return [list(column) for column in zip(*rows, strict=True)]


def _weights(column: list[Any]) -> Floats:
    try:
        return np.array(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weight must be a number: {error}.") from error


def _column(ids: list[Any], from_file: bool) -> NDArray[Any]:
    """Ids as an array: integers where all text of a file is, objects where types differ."""
    if from_file:
        whole = all(re.fullmatch(r"-?(0|[1-9]\d{0,17})", value) for value in ids)
        return np.array(ids, dtype=np.int64 if whole else None)
    if len({type(value) for value in ids}) == 1 and isinstance(ids[0], (str, int, float)):
        return np.array(ids)
    values = np.empty(len(ids), dtype=object)
    values[:] = ids
    return values
