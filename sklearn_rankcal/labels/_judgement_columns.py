"""Check the columns of judgements: groups, judges, weights, ties and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.labels._item_ids import number_ids, read_ids, show_id
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._groups import check_groups
from sklearn_rankcal.utils._numbers import LARGEST_WHOLE, check_no_mask, read_numbers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def sequences(values: Any, name: str) -> list[Any]:
    """Return a user's sequence of sequences as a list."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a sequence of sequences of items; got {values!r}.")
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if not listed:
        raise ValueError(f"{name} is empty: at least one entry is needed.")
    for m, order in enumerate(listed):
        if isinstance(order, (str, bytes, Mapping, set)) or not isinstance(order, Iterable):
            raise ValueError(f"Entry {m} of {name} is {order!r}, which is not a list of items.")
    return listed


def read_groups(groups: ArrayLike | None, n: int, name: str) -> tuple[Ints, NDArray[Any]]:
    if groups is None:
        return np.zeros(n, dtype=np.int64), np.zeros(1, dtype=np.int64)
    values = check_groups(groups, None)
    check_length(values, n, "groups", name)
    queries = Queries.from_groups(values)
    return queries.codes, queries.ids


def read_judges(
    judge: ArrayLike | None, n: int, name: str
) -> tuple[Ints | None, NDArray[Any] | None]:
    if judge is None:
        return None, None
    codes, judges = number_ids(read_ids(judge, "judge"), "judge")
    check_length(codes, n, "judge", name)
    return codes, judges


def read_tied(tied: Any, n: int) -> NDArray[np.bool_]:
    check_no_mask(tied, "tied")
    if hasattr(tied, "to_numpy"):
        tied = tied.to_numpy()
    values = tied if isinstance(tied, np.ndarray) else np.array(tied, dtype=object)
    check_length(values, n, "tied", "pairs")
    if values.dtype != bool:
        for k, value in enumerate(values.tolist()):  # a loop over objects of the user's
            if not isinstance(value, (bool, np.bool_)):
                what = f"entry {k} (counted from 0) is {show_id(value)}"
                hint = " Write tied=(column == 'tie')." if isinstance(value, str) else ""
                raise ValueError(f"tied must be True or False for each pair; {what}.{hint}")
    return values.astype(bool)


def read_count(count: ArrayLike, n: int, name: str) -> Floats:
    counts = read_numbers(count, "count")
    check_length(counts, n, "count", name)
    bad = ~np.isfinite(counts) | (counts < 0) | (counts != np.floor(counts))
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"count must be whole numbers >= 0; entry {k} is {counts[k]}.")
    # the largest first: a sum could overflow
    if counts.max(initial=0) > LARGEST_WHOLE or counts.sum() > LARGEST_WHOLE:
        raise ValueError("The sum of the counts is beyond 2^53.")
    return counts


def check_same_index(columns: Mapping[str, Any]) -> None:
    """Refuse pandas objects with different indexes: their rows do not belong together."""
    indexed = {name: values for name, values in columns.items() if hasattr(values, "iloc")}
    for name, values in indexed.items():
        first = next(iter(indexed))
        if len(values) == len(indexed[first]) and not values.index.equals(indexed[first].index):
            raise ValueError(
                f"{name} and {first} have different indexes, so that their rows may not belong "
                "together. Take both from the same data frame; or sort both by their index, with "
                "sort_index(); or, if their rows are in the same order already, call "
                "reset_index(drop=True) on both."
            )


def check_length(values: NDArray[Any], n: int, name: str, other: str) -> None:
    if values.ndim != 1:
        raise ValueError(f"{name} must be a 1-D array; it has shape {values.shape}.")
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} entries, but {other} has {n}.")
