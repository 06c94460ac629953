"""Checks of the pairs, weights and judgements that a user passes to `preference_labels`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import check_range, read_array, read_numbers, read_whole

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def check_pairs(pairs: ArrayLike, queries: Queries) -> Ints:
    """Check that every pair holds two different rows of the same query, and return int64."""
    values = read_array(pairs, "pairs")
    if values.size == 0:
        raise ValueError("pairs is empty: at least one preference is needed.")
    if values.ndim != 2 or values.shape[1] != 2:
        raise ValueError(
            "pairs must have shape (n_pairs, 2), the preferred row and the other row; got shape "
            f"{values.shape}. Pass weights as weight=."
        )
    rows = read_whole(values, "pairs")
    unknown = ((rows < 0) | (rows >= queries.n_rows)).any(axis=1)
    if unknown.any():
        k = int(np.argmax(unknown))
        raise ValueError(
            f"Pair {k} is {tuple(rows[k].tolist())}, but the rows of groups are numbered 0 to "
            f"{queries.n_rows - 1}."
        )
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
            f"{int(across.sum())} of {len(rows)} pairs have rows of different queries. The rows "
            f"{tuple(rows[k].tolist())} of pair {k} belong to the queries {one!s} and {other!s}."
        )
    return rows


def check_weight(weight: ArrayLike | None, n_pairs: int) -> Floats:
    """Check that each pair has a finite weight >= 0. If `weight` is None, return 1 for each."""
    if weight is None:
        return np.ones(n_pairs)
    weights = read_numbers(weight, "weight")
    _check_per_pair(weights, n_pairs, "weight")
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"weight must be finite and >= 0; the weight of pair {k} is {weights[k]}.")
    check_range(weights, "weight")
    return weights


def check_judgement(judgement: ArrayLike, n_pairs: int) -> Ints:
    """Check that the judgement of each pair is a whole number, and return int64."""
    numbers = read_whole(judgement, "judgement")
    _check_per_pair(numbers, n_pairs, "judgement")
    return numbers


def _check_per_pair(array: NDArray[Any], n_pairs: int, name: str) -> None:
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be a 1-D array with one entry per pair; it has shape {array.shape}."
        )
    if len(array) != n_pairs:
        raise ValueError(f"{name} has {len(array)} entries, but pairs has {n_pairs} rows.")
