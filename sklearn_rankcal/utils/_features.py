"""Tables: what `X` may be (array, sparse matrix, pandas or polars frame), handled in one place.

Rows and columns are taken without changing the container, so that a regressor gets the column
names and dtypes that the user gave.
"""

from __future__ import annotations

import contextlib
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from sklearn_rankcal.utils._numbers import check_no_mask


def is_dataframe(X: Any) -> bool:
    """Whether `X` is a pandas or polars data frame."""
    return hasattr(X, "iloc") or hasattr(X, "with_columns")


def _is_polars(X: Any) -> bool:
    return hasattr(X, "with_columns")


def check_features(X: Any) -> Any:
    """`X` as a frame, a CSR matrix or a 2-D array of any dtype; NaN is left to the regressor.

    Raises
    ------
    ValueError, TypeError
        Not two-dimensional, no rows or columns, complex numbers, masked entries.
    """
    if is_dataframe(X):
        if hasattr(X, "collect"):
            raise TypeError("X is a lazy frame; call .collect() first.")
        if len(X.shape) != 2:
            raise ValueError(f"Expected a 2-dimensional container but got {type(X)} instead.")
        if X.shape[0] < 1 or X.shape[1] < 1:
            # scikit-learn's own words for an empty table
            check_array(np.empty(X.shape), ensure_all_finite=False)
        return X
    check_no_mask(X, "X")
    table = check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    if table.dtype == object and not any(isinstance(cell, str) for cell in table.flat):
        with contextlib.suppress(TypeError, ValueError):  # else the regressor says what it thinks
            table = table.astype(np.float64)
    return table


def split_column(X: Any, name: str) -> tuple[Any, Any]:
    """The frame without column `name`, and that column."""
    if not is_dataframe(X):
        raise ValueError(
            f"group_column={name!r} needs X as a data frame with that column; got "
            f"{type(X).__name__}. In a pipeline, keep frames with set_output(transform='pandas'); "
            "where a tool makes arrays of them, as RFECV does, carry the ids in "
            "y: relevance_labels(y, groups)."
        )
    if name not in list(X.columns):
        # a ColumnTransformer puts the name of the transformer before that of the column
        prefixed = [other for other in X.columns if str(other).endswith(f"__{name}")]
        hint = (
            f" Did you mean group_column={prefixed[0]!r}? A ColumnTransformer with "
            "verbose_feature_names_out=False keeps the name."
            if prefixed
            else ""
        )
        raise ValueError(
            f"group_column={name!r} is not among the columns {list(X.columns)[:20]}.{hint}"
        )
    if len(X.columns) == 1:
        raise ValueError(
            f"X has no column besides group_column={name!r}: at least one feature is needed."
        )
    if _is_polars(X):
        return X.drop(name), X[name]
    return X.drop(columns=name), X[name]


def take_rows(X: Any, rows: slice | NDArray[np.int64]) -> Any:
    """Rows of a table, in the same container."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def replace_column(X: Any, column: Any, rows: NDArray[np.int64]) -> Any:
    """A copy of the table in which one column has the values of other rows.

    Parameters
    ----------
    X : array, CSR matrix or data frame of shape (n_rows, n_columns)
    column : int, or a name of a frame
    rows : ndarray of shape (n_rows,)
        A permutation: row i gets the value of row ``rows[i]``.

    Returns
    -------
    table : of the type of X
    """
    if hasattr(X, "iloc"):
        table = X.copy()
        table[column] = X[column].iloc[rows].set_axis(X.index)
        return table
    if is_dataframe(X):
        return X.with_columns(X[column][rows])
    if not sparse.issparse(X):
        table = X.copy()
        table[:, column] = X[rows, column]
        return table
    table = X.tocsc(copy=True)
    stored = slice(table.indptr[column], table.indptr[column + 1])
    goes_to = np.empty(len(rows), dtype=table.indices.dtype)
    goes_to[rows] = np.arange(len(rows))
    table.indices[stored] = goes_to[table.indices[stored]]
    table.has_sorted_indices = False
    return table.tocsr()


def numeric_columns(X: Any) -> list[Any]:
    """Columns with numbers (not booleans, not categories): indices, or names of a frame."""
    if not is_dataframe(X):
        dense = not sparse.issparse(X) and X.dtype.kind in "iuf"
        return list(range(X.shape[1])) if dense else []
    if _is_polars(X):
        return [name for name, dtype in X.schema.items() if dtype.is_numeric()]
    return list(X.select_dtypes(include="number").columns)


def append_columns(X: Any, values: NDArray[Any], names: list[str]) -> Any:
    """A frame with columns added on the right."""
    if _is_polars(X):
        import polars as pl

        return X.hstack(pl.DataFrame(values, schema=names))
    import pandas as pd

    return pd.concat([X, pd.DataFrame(values, columns=names, index=X.index)], axis=1)


def column_values(X: Any, columns: list[Any]) -> NDArray[Any]:
    """Columns as one array of numbers, missing values as NaN.

    Raises
    ------
    ValueError
        A sparse table, a column that is not there, or that is not numbers.
    """
    if not is_dataframe(X):
        if sparse.issparse(X):
            raise ValueError(
                "X is sparse, but the ranker was fitted on a dense table, with context columns."
            )
        return X if X.dtype.kind in "iuf" else X.astype(np.float64)
    absent = [name for name in columns if name not in list(X.columns)]
    if absent:
        raise ValueError(f"X lacks the columns {absent}, which the ranker was fitted with.")
    if _is_polars(X):
        return X.select(columns).to_numpy()
    part = X[columns]
    kinds = {getattr(dtype, "kind", "O") for dtype in part.dtypes}
    same = len(set(map(str, part.dtypes))) == 1 and kinds <= {"f", "i", "u"}
    return part.to_numpy() if same else part.to_numpy(dtype=np.float64, na_value=np.nan)


DENSE_BYTES = 2**32  # 4 GiB: a sparse table is made dense up to that size


def dense_table(X: Any) -> Any:
    """A sparse table as a dense one, for a model that takes no other; other tables as they are.

    Raises
    ------
    ValueError
        It would take more than `DENSE_BYTES` in its own dtype.
    """
    if not sparse.issparse(X):
        return X
    size = X.shape[0] * X.shape[1] * X.dtype.itemsize
    if size > DENSE_BYTES:
        raise ValueError(
            f"X is sparse. The regressor needs a dense table, and {X.shape[0]:,} rows of "
            f"{X.shape[1]:,} columns would take {size / 2**30:.1f} GiB, which is beyond the "
            f"{DENSE_BYTES / 2**30:g} GiB up to which the ranker makes one. Pass a regressor "
            "that takes sparse tables, such as sklearn.linear_model.Ridge() or "
            "lightgbm.LGBMRegressor(), drop columns, or make X dense yourself, X.toarray(); "
            "predict can also be called on some queries at a time."
        )
    return X.toarray()


def text_columns(X: Any) -> list[tuple[Any, Any]]:
    """Columns that hold text which is no number, or times: (name or index, a value of it).

    Categories of pandas and polars are not text.
    """
    if sparse.issparse(X) or (not is_dataframe(X) and X.dtype.kind not in "OSU"):
        return []
    found = []
    for column in X.columns if is_dataframe(X) else range(X.shape[1]):
        values = X[column] if is_dataframe(X) else X[:, column]
        if getattr(values, "ndim", 1) != 1:  # two columns of one name: the regressor will say so
            continue
        dtype = values.dtype
        if _is_polars(X):
            looked_at = not (dtype.is_numeric() or str(dtype).startswith(("Bool", "Cat", "Enum")))
        else:
            looked_at = getattr(dtype, "kind", "O") not in "biufc" and not hasattr(values, "cat")
        if looked_at:
            texts = (v for v in values if not _like_a_number(v))
            found += [(column, example) for example in [next(texts, None)] if example is not None]
    return found


def _like_a_number(value: Any) -> bool:
    """Whether a cell is neither a time nor text that float() does not take."""
    if not isinstance(value, str):
        return not isinstance(value, date | timedelta | np.datetime64 | np.timedelta64)
    try:
        float(value)
    except ValueError:
        return False
    return True


def check_no_text(X: Any, who: str) -> None:
    """Raise where a column holds text, and say which."""
    for column, example in text_columns(X):
        name = f"{column!r}" if is_dataframe(X) else f"number {column}"
        ids = f"If it holds query ids, say group_column={column!r}; " if is_dataframe(X) else ""
        raise ValueError(
            f"Column {name} of X holds text or times (as {example!r}), but {who} takes numbers. "
            f"{ids}otherwise drop the column or encode it, for example with sklearn's "
            "OrdinalEncoder or TargetEncoder, in a pipeline before the ranker."
        )
