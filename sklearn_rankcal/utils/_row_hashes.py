"""Hashes of rows, which depend on the values of a row and not on its place in `X`."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sklearn_rankcal.utils._features import is_dataframe, take_rows

_CHUNK = 1 << 16  # rows copied at a time
# constants of splitmix64, a generator of random numbers
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


def hash_rows(X: Any, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a hash of each row that depends only on the values of the row.

    Arrays, sparse matrices and data frames with the same values have the same hashes, for any
    dtypes. The hash of a row is the sum over its cells of a hash of (column, value). Zeros add
    nothing, and can be skipped in sparse matrices.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_features)
    rows : ndarray of shape (n,)
        Row numbers.

    Returns
    -------
    hashes : ndarray of shape (n,)
        Unsigned 64-bit integers.
    """
    if len(rows) > _CHUNK:
        starts = range(0, len(rows), _CHUNK)
        return np.concatenate([hash_rows(X, rows[a : a + _CHUNK]) for a in starts])
    part = take_rows(X, rows)
    keys = np.zeros(len(rows), dtype=np.uint64)
    if sparse.issparse(part):
        part = part.tocsr()
        # sums over rows as differences of a cumulative sum, which is exact modulo 2^64
        cells = _mix(part.data.astype(np.float64), part.indices.astype(np.uint64))
        total = np.append(np.uint64(0), np.cumsum(cells, dtype=np.uint64))
        return total[part.indptr[1:]] - total[part.indptr[:-1]]
    columns = list(part.columns) if is_dataframe(part) else range(part.shape[1])
    for number, column in enumerate(columns):
        values = np.asarray(part[column]) if is_dataframe(part) else part[:, column]
        keys += _mix(_as_numbers(values), np.uint64(number))
    return keys


def hash_values(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a hash of each value, such as a query id, like `hash_rows` for one column.

    A number and the same number as text have the same hash. Other collisions are rare.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Numbers, text or other objects.

    Returns
    -------
    hashes : ndarray of shape (n,)
        Unsigned 64-bit integers.
    """
    return _mix(_as_numbers(values), np.uint64(0))


def _as_numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Convert values to float64. Text that is not a number becomes a hash of the text."""
    if values.dtype.kind not in "OSUmMV":
        return values.astype(np.float64)
    listed = values.tolist()
    table = {text: _as_number(text) for text in set(map(str, listed))}
    return np.array([table[str(value)] for value in listed])


def _as_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float(crc32(text.encode("utf-8", "surrogatepass")))


def _mix(values: NDArray[np.float64], column: Any) -> NDArray[np.uint64]:
    """Hash (column, value) by the last step of splitmix64. The value 0 has the hash 0."""
    with np.errstate(over="ignore"):
        values = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN; -0.0 becomes 0.0
        bits = np.ascontiguousarray(values).view(np.uint64) ^ ((column + np.uint64(1)) * _ODD)
        bits = (bits ^ (bits >> np.uint64(30))) * _MIX
        bits = bits ^ (bits >> np.uint64(31))
        return np.where(values == 0, np.uint64(0), bits)
