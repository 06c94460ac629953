"""Pairs, weights and judgements come in as a user gave them; checked arrays come out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal._queries import Queries

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def check_pairs(pairs: ArrayLike, queries: Queries) -> Ints:
    """Pairs of rows of the same query, int64."""
    values = np.asarray(pairs)
    if values.size == 0:
        raise ValueError("pairs is empty: at least one preference is needed.")
    if values.ndim != 2 or values.shape[1] != 2:
        raise ValueError(
            "pairs must have shape (n_pairs, 2): preferred row, other row. It has "
            f"{values.shape}. Weights go into weight=."
        )
    if np.ma.is_masked(pairs):
        raise ValueError("pairs has masked entries: drop such pairs.")
    whole = values.dtype.kind in "iu" or (
        values.dtype.kind == "f" and np.array_equal(values, np.floor(values))
    )
    if not whole:
        raise ValueError(
            f"pairs must hold row numbers, which are whole; got dtype {values.dtype}."
        )
    unknown = ((values < 0) | (values >= queries.n_rows)).any(axis=1)
    if unknown.any():
        k = int(np.argmax(unknown))
        raise ValueError(
            f"Pair {k} is {tuple(values[k].tolist())}, but groups has the rows 0 to "
            f"{queries.n_rows - 1}."
        )
    rows = values.astype(np.int64)
    itself = rows[:, 0] == rows[:, 1]
    if itself.any():
        k = int(np.argmax(itself))
        raise ValueError(f"Pair {k} prefers row {rows[k, 0]} to itself.")
    codes = queries.codes[rows]
    across = codes[:, 0] != codes[:, 1]
    if across.any():
        k = int(np.argmax(across))
        one, other = (queries.ids[code] for code in codes[k])
        raise ValueError(
            f"{int(across.sum())} of {len(rows)} pairs are across queries: pair {k}, rows "
            f"{tuple(rows[k].tolist())}, is of queries {one!s} and {other!s}."
        )
    return rows


def check_weight(weight: ArrayLike | None, n_pairs: int) -> Floats:
    """Weight of each pair, finite and >= 0."""
    if weight is None:
        return np.ones(n_pairs)
    values = _per_pair(weight, n_pairs, "weight")
    if values.dtype.kind not in "biuf":
        raise ValueError(f"weight must be numbers; its dtype is {values.dtype}.")
    weights = values.astype(np.float64)
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"weight must be finite and >= 0; that of pair {k} is {weights[k]}.")
    if weights.max() > np.finfo(np.float64).max / len(weights):
        raise ValueError("The sum of weight overflows: scale the weights down.")
    return weights


def check_judgement(judgement: ArrayLike, n_pairs: int) -> Ints:
    """Number of the judgement of each pair."""
    values = _per_pair(judgement, n_pairs, "judgement")
    if values.dtype.kind not in "iu":
        raise ValueError(f"judgement must be whole numbers; its dtype is {values.dtype}.")
    return values.astype(np.int64)


def _per_pair(values: ArrayLike, n_pairs: int, name: str) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries: drop such pairs.")
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one per pair; it has shape {array.shape}.")
    if len(array) != n_pairs:
        raise ValueError(f"{name} has {len(array)} entries, but pairs has {n_pairs} rows.")
    return array
