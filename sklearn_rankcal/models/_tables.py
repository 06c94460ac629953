"""The tables of numbers that models of pairs read, and the blocks of rows in which models work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from sklearn_rankcal.utils._memory import CACHE_BYTES, rows_per_block

# Bytes of a table that is passed to a regressor's `predict`. These blocks are larger than those of
# our own loops, because each call of `predict` has a fixed cost (threads, checks of the input).
PREDICTION_BYTES = 1 << 27


def numeric_table(X: Any) -> NDArray[Any]:
    """Check that X is dense, finite and numeric; return it as an array of float32 or float64."""
    return check_array(X, dtype=[np.float64, np.float32], input_name="X")


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield blocks of rows of a table, each small enough to stay in the processor's cache."""
    step = rows_per_block(8 * n_columns, CACHE_BYTES)
    return (slice(first, first + step) for first in range(0, n_rows, step))


def stored_columns(X: Any) -> int:
    """Return the number of columns; if sparse, the mean stored entries per row, rounded up."""
    return 1 + X.nnz // max(1, X.shape[0]) if sparse.issparse(X) else X.shape[1]
