"""Names of labels in the `y` of a label ranker: the columns of a frame, or orders of names.

An order of names is a string such as "b > a = c", or a sequence of names, best first. A nested
sequence is a tie. A frame or a 2-D array of names has one order per row. A frame with a single
column is treated like the column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels._doubtful_ranks import OFTEN
from sklearn_rankcal.utils._column_advice import text_columns
from sklearn_rankcal.utils._messages import RARE, counted, one_edit, plain_name, warn
from sklearn_rankcal.utils._numbers import Floats, frame_columns, is_missing

Tiers = list[list[str]]

#: Characters that users write for '>', and that are hardly ever a part of a name in an order.
_SEPARATORS = ",;|<≻≺＞＜"  # noqa: RUF001
#: These are, but not if all parts are names of their own.
_OTHER_SEPARATORS = re.compile(f"[{re.escape(_SEPARATORS)}→≽≥/\\t]")


def read_names(
    y: Any, y_type: str = "auto", known: NDArray[Any] | None = None
) -> tuple[Any, NDArray[Any] | None]:
    """Return `y` without names, and the names of its columns, or None if it has no names.

    Orders of names become ranks of the sorted names, with NaN for names that are missing from a
    row. If names are `known`, the columns have their order, and an unknown name raises an error.
    """
    orders = _find_orders(y)
    if orders is not None:
        if y_type not in ("auto", "ranks"):
            raise ValueError(f"y has orders of names, but y_type is {y_type!r}; use 'ranks'.")
        return _ranks_of_orders(orders, known)
    if frame_columns(y) is None:
        return y, None
    if found := text_columns(y):
        column, example = found[0]
        raise ValueError(
            f"Column {column!r} of y contains text or times (such as {example!r}), but "
            "other entries are numbers. Drop it from y. If a rank is missing, write NaN."
        )
    names = _name_array(y.columns)
    if len(set(names)) < len(names):
        raise ValueError(f"The columns of y, which name the labels, are not unique: {list(names)}.")
    if known is None:
        return y, names
    place = {name: number for number, name in enumerate(names)}
    for name in (*known, *names):
        if name not in place or name not in set(known):
            raise ValueError(
                f"The columns of y must be the labels of fit, {list(known)}; they are "
                f"{list(names)}."
            )
    order = [place[name] for name in known]
    return (y.iloc[:, order] if hasattr(y, "iloc") else y[:, order]), known


def make_frame(values: NDArray[Any], names: NDArray[Any], container: str, X: Any) -> Any:
    """Return a data frame of numbers with column names, and with the row index of X if it has one.

    Raise ImportError if the library is not installed.
    """
    if container == "polars":
        import polars as pl

        return pl.DataFrame(values, schema=[str(name) for name in names])
    import pandas as pd

    return pd.DataFrame(values, columns=names, index=X.index if hasattr(X, "iloc") else None)


def _name_array(names: Iterable[Any]) -> NDArray[Any]:
    listed = list(names)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def _find_orders(y: Any) -> list[Any] | None:
    """Return the rows of `y` if they are orders of names, judging by the first entry."""
    columns = frame_columns(y)
    if columns is not None and len(columns) == 1:
        y, columns = columns[0], None
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if columns is not None:
        rows = list(zip(*columns, strict=True)) if any(map(_maybe_text, columns)) else []
    elif isinstance(y, np.ndarray):
        rows = y.tolist() if y.dtype.kind in "OUT" and y.ndim in (1, 2) else []
    elif hasattr(y, "to_list"):  # a column of pandas or polars
        rows = y.to_list() if _maybe_text(y) else []
    else:
        rows = list(y) if isinstance(y, list | tuple) else []
    for row in rows:
        cells = row if isinstance(row, list | tuple | np.ndarray) else [row]
        for cell in cells:
            first = next(iter(cell), None) if isinstance(cell, list | tuple | set) else cell
            if isinstance(first, str):
                return None if _is_number(first) else rows
            if not is_missing(first):
                return None
    return None


def _maybe_text(column: Any) -> bool:
    return getattr(column.dtype, "kind", "O") not in "biufcMm"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _ranks_of_orders(rows: list[Any], known: NDArray[Any] | None) -> tuple[Floats, NDArray[Any]]:
    """Return the position of each name in each order, of shape (n_rows, n_names), and the names."""
    orders = [text_tiers(row, f"Row {number} of y") for number, row in enumerate(rows)]
    if known is None:
        _check_separators(rows)
        check_names(rows, orders, "Row {} of y")
    found = {name for tiers in orders for tier in tiers for name in tier}
    names = _name_array(sorted(found)) if known is None else known
    if known is None:
        _warn_of_misspelt(orders)
    place = {name: number for number, name in enumerate(names)}
    ranks = np.full((len(orders), len(names)), np.nan)
    for number, tiers in enumerate(orders):
        position = 1
        for tier in tiers:
            for name in tier:
                if name not in place:
                    raise ValueError(
                        f"Row {number} of y has the label {name!r}, which fit did not see. The "
                        f"labels are {list(names)}."
                    )
                if not np.isnan(ranks[number, place[name]]):
                    raise ValueError(f"Row {number} of y has the label {name!r} twice.")
                ranks[number, place[name]] = position
            position += len(tier)
    return ranks, names


def _warn_of_misspelt(orders: list[Tiers]) -> None:
    """Warn of two spellings of a label that no row has both: they differ in case only, or a rare
    name is one letter away from a frequent one.
    """
    rows = [{name for tier in tiers for name in tier} for tiers in orders]
    n_rows = Counter(name for row in rows for name in row)
    spellings: dict[str, list[str]] = {}
    for name in sorted(n_rows, key=lambda name: (n_rows[name], name)):
        spellings.setdefault(plain_name(name), []).append(name)
    pairs = [pair for alike in spellings.values() for pair in combinations(alike, 2)]
    for name in sorted(name for name, n in n_rows.items() if n <= RARE):
        alike = [k for k, n in n_rows.items() if n >= OFTEN * n_rows[name] and one_edit(name, k)]
        pairs += [(name, other) for other in alike]
    for name, other in pairs:
        if not any(name in row and other in row for row in rows):
            warn(
                f"The label {name!r} is in {counted(n_rows[name], 'row')} of y, never in the "
                f"same row as {other!r}, which is in {counted(n_rows[other], 'row')}. If it is "
                "misspelt, correct it: each spelling is a separate label."
            )
            return


def _check_separators(rows: list[Any]) -> None:
    """Raise an error for texts that seem to list several names without '>'."""
    texts = [row for row in rows if isinstance(row, str)]
    if any(">" in text or "=" in text for text in texts):
        return
    for text in texts:
        if any(separator in text for separator in _SEPARATORS):
            raise ValueError(
                f"y has the text {text!r} without '>'. Write orders as 'b > a = c', best first. If "
                "names contain other separators, pass lists: [['Salt, pepper'], ...]."
            )


def check_names(rows: list[Any], orders: list[Tiers], where: str) -> None:
    """Raise an error for a rare name in a text that consists of names of other rows.

    It is then likely that a few rows have another separator. A name with a comma that many rows
    have is one name.
    """
    places: dict[str, list[int]] = {}
    listed = [{name for tier in tiers for name in tier} for tiers in orders]
    for number, row in enumerate(rows):
        if isinstance(row, str):
            for name in sorted(listed[number]):
                places.setdefault(name, []).append(number)
    for name, own in places.items():
        parts = [part.strip() for part in _OTHER_SEPARATORS.split(name)]
        if len(parts) == 1 or len(own) > RARE:
            continue
        if any(part in listed[number] for part in parts for number in own):
            continue  # a name and its part are two names
        if all(set(places.get(part, own)) - set(own) for part in parts):
            raise ValueError(
                f"{where.format(own[0])} has the name {name!r}, but its parts are names in other "
                "rows. Write orders as 'b > a = c', best first. If it is one name, pass all orders "
                "as lists: [['b', 'a'], ...]."
            )


def text_tiers(row: Any, where: str) -> Tiers:
    """Return the tiers of an order, best first. Each tier is a list of tied names."""
    if isinstance(row, str):
        if "->" in row:
            raise ValueError(
                f"{where}, {row!r}, has '->'. Write orders as 'b > a = c', best first. If a name "
                "ends with '-', write a blank behind it."
            )
        tiers = [[name.strip() for name in tier.split("=")] for tier in row.split(">")]
        if tiers == [[""]]:
            return []
    elif isinstance(row, list | tuple | np.ndarray):
        tiers = [
            list(cell) if isinstance(cell, list | tuple | set | frozenset) else [cell]
            for cell in row
            if not is_missing(cell)
        ]
        tiers = [[n.strip() if isinstance(n, str) else n for n in tier] for tier in tiers]
    elif is_missing(row):
        return []
    else:
        raise ValueError(f"{where} is {row!r}, but other rows are orders of names.")
    for tier in tiers:
        for name in tier:
            if not isinstance(name, str) or not name:
                raise ValueError(
                    f"{where}, {row!r}, is no order of names like 'b > a = c' or ['b', 'a']."
                )
    return tiers
