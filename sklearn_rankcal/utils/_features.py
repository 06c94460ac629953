"""Containers of features: an array, a sparse matrix, or a pandas or polars frame.

The functions select rows and columns of `X` without changing its type. This way, a regressor
receives the column names and dtypes that the user passed. Hashes of rows depend on the values of a
row and not on its place in `X`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._numbers import check_no_mask


def is_dataframe(X: Any) -> bool:
    """Return whether `X` is a pandas or polars data frame."""
    return hasattr(X, "iloc") or hasattr(X, "with_columns")


def _is_polars(X: Any) -> bool:
    return hasattr(X, "with_columns")


def container_of(y: Any) -> str | None:
    """Return "pandas" or "polars" if `y` is a data frame or a column of one, else None."""
    if hasattr(y, "iloc"):
        return "pandas"
    return "polars" if type(y).__module__.partition(".")[0] == "polars" else None


def in_container(X: Any, container: str) -> Any:
    """Convert a data frame to one of pandas or polars, with text in the place of categories."""
    texts = set(category_columns(X))
    if container == "pandas":
        import pandas as pd

        return pd.DataFrame(
            {name: X[name].cast(str).to_list() if name in texts else X[name] for name in X.columns}
        )
    import polars as pl

    def values(column: Any) -> Any:
        if column.name not in texts and getattr(column.dtype, "kind", "O") in "biuf":
            has_gaps = column.isna().any()
            return column.to_numpy(float, na_value=np.nan) if has_gaps else column.to_numpy()
        return column.astype(object).where(column.notna(), None).tolist()

    return pl.DataFrame({name: values(X[name]) for name in X.columns})


def check_features(X: Any) -> Any:
    """Return `X` as a data frame, a CSR matrix or a 2-D array of any dtype.

    NaN and infinity are allowed: the regressor decides whether to accept them. Raises ValueError or
    TypeError if `X` is not two-dimensional, is empty, or has complex numbers or masked entries.
    """
    if is_dataframe(X):
        if hasattr(X, "collect"):
            raise TypeError("X is a lazy frame; call .collect() first.")
        if len(X.shape) != 2:
            raise ValueError(f"Expected a 2-dimensional container but got {type(X)} instead.")
        if X.shape[0] < 1 or X.shape[1] < 1:
            # raises scikit-learn's error for an empty array
            check_array(np.empty(X.shape), ensure_all_finite=False)
        return _infer_numbers(X)
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "biuf":
        return X  # check_array would return it too, but takes as long as a small prediction
    check_no_mask(X, "X")
    table = check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    if table.dtype == object and not any(isinstance(cell, str) for cell in table.flat):
        with contextlib.suppress(TypeError, ValueError):  # the regressor raises its own error later
            table = table.astype(np.float64)
    return table


def _infer_numbers(X: Any) -> Any:
    """Convert the columns of a pandas frame with numbers of dtype object to a numeric dtype."""
    if not hasattr(X, "iloc") or not X.columns.is_unique or "object" not in map(str, X.dtypes):
        return X
    from pandas.api.types import infer_dtype

    objects = [name for name, dtype in X.dtypes.items() if str(dtype) == "object"]
    kinds = ("integer", "floating", "mixed-integer-float", "decimal", "boolean")
    numbers = {}
    for name in objects:
        column = X[name]
        if infer_dtype(column) in kinds:
            column = column.infer_objects()
            if column.dtype == object:  # pandas.NA, or decimal numbers
                column = column.where(column.notna(), np.nan).astype(float)
            numbers[name] = column
    return _replace(X, numbers) if numbers else X


def warn_of_other_order(**values: Any) -> None:
    """Warn about pandas objects whose indexes have the same labels in different orders.

    As in scikit-learn, rows are paired by position. Labels then belong to the wrong rows.
    """
    indexes = {name: one.index for name, one in values.items() if hasattr(one, "iloc")}
    first = next(iter(indexes), "")
    for name, index in indexes.items():
        if other_order(indexes[first], index):
            warn(
                f"The indexes of {first} and {name} have the same labels in different orders, but "
                "rows are paired by position, not by label. Take both from the same "
                f"data frame, or pass {name}.loc[{first}.index]. If the positions are right, call "
                "reset_index(drop=True) on both."
            )
            return


def other_order(index: Any, other: Any) -> bool:
    """Whether two indexes of pandas have the same unique labels in different orders."""
    if not (hasattr(index, "equals") and hasattr(other, "equals")):
        return False
    if len(index) != len(other) or index.equals(other):
        return False
    return bool(index.is_unique and other.is_unique and index.isin(other).all())


def split_column(X: Any, name: str) -> tuple[Any, Any]:
    """Return the data frame without the column `name`, and this column."""
    if not is_dataframe(X):
        raise ValueError(
            f"group_column={name!r} needs X as a data frame with that column; got "
            f"{type(X).__name__}. In a pipeline, keep them with set_output(transform='pandas'). "
            "If a tool converts data frames to arrays, as RFECV does, carry the ids in "
            "y: relevance_labels(y, groups)."
        )
    if name not in list(X.columns):
        # a ColumnTransformer adds the name of the transformer as a prefix
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


def take_columns(X: Any, names: list[str], kept: Any) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Split the columns `names` off a data frame, which still keeps those in `kept`."""
    missing = [name for name in names if not is_dataframe(X) or name not in list(X.columns)]
    if missing:
        raise ValueError(
            f"The rules name the column {missing[0]!r}, which X does not have. Pass a data frame "
            "with that column, or arrays with one value for each row."
        )
    columns = {name: np.asarray(X[name]) for name in names}
    known = set(kept)
    extra = [name for name in names if name not in known]
    return X.drop(extra) if _is_polars(X) else X.drop(columns=extra), columns


def insert_column(X: Any, place: int, source: Any, name: str) -> Any:
    """Insert the column `name` of another data frame into `X` at a place."""
    if _is_polars(X):
        return X.clone().insert_column(place, source[name])
    table = X.copy()
    table.insert(place, name, source[name].array)
    return table


def category_columns(X: Any) -> list[Any]:
    """Return the names of the categorical columns of a data frame."""
    if _is_polars(X):
        return [name for name, dtype in X.schema.items() if str(dtype).startswith(("Cat", "Enum"))]
    return list(X.select_dtypes("category").columns) if hasattr(X, "iloc") else []


def category_codes(X: Any, column: Any) -> NDArray[np.int64]:
    """Return an integer for each row of a column of a data frame, equal for equal values.

    Missing values are -1.
    """
    _check_present(X, [column])
    if _is_polars(X):
        codes = X[column].to_physical().cast(int).fill_null(-1).to_numpy()
    else:
        codes = X[column].factorize()[0]
    return codes.astype(np.int64, copy=False)


def used_categories(X: Any) -> dict[Any, set[Any]]:
    """Return the categories that occur in each categorical column of a data frame."""
    columns = {name: X[name] for name in category_columns(X)}
    known = "drop_nulls" if _is_polars(X) else "dropna"
    return {name: set(getattr(values, known)().unique()) for name, values in columns.items()}


def frequent_categories(X: Any, most: int) -> dict[Any, list[Any]]:
    """Return the `most` frequent categories of each column of a data frame that has more.

    Equally frequent ones are kept in the order of their texts.
    """
    found = {}
    for name in category_columns(X):
        column = X[name]
        if _is_polars(X):
            counts = column.drop_nulls().cast(str).value_counts().rows()
        else:
            counts = list(column.value_counts().items())
        counts = [(value, number) for value, number in counts if number]
        if len(counts) > most:
            order = sorted(counts, key=lambda pair: (-pair[1], str(pair[0])))
            found[name] = [value for value, _ in order[:most]]
    return found


def keep_categories(X: Any, kept: dict[Any, list[Any]]) -> Any:
    """Make all but these categories missing, in these columns of a data frame."""
    if not kept:
        return X
    if _is_polars(X):
        import polars as pl

        return X.with_columns(
            pl.col(name).cast(pl.String).cast(pl.Enum(categories), strict=False)
            for name, categories in kept.items()
        )
    return _replace(X, {name: X[name].cat.set_categories(kept[name]) for name in kept})


def _replace(X: Any, columns: dict[Any, Any]) -> Any:
    """Return a frame of pandas with other columns of these names, which need not be text."""
    table = X.copy(deep=False)
    for name, column in columns.items():
        table[name] = column
    return table


def cast_texts(X: Any, dtypes: dict[Any, Any]) -> Any:
    """Convert columns of a data frame to these categorical dtypes, if they are text or empty.

    Numbers are converted if the categories are numbers. What is not a category becomes missing.
    """
    found = {name: dtype for name, dtype in dtypes.items() if _can_be(X[name], dtype)}
    if not found:
        return X
    if _is_polars(X):
        return X.with_columns(X[name].cast(dtype, strict=False) for name, dtype in found.items())
    known = {name: X[name].where(X[name].isin(dtype.categories)) for name, dtype in found.items()}
    return _replace(X, {name: known[name].astype(dtype) for name, dtype in found.items()})


def _can_be(column: Any, dtype: Any) -> bool:
    """Whether the values of a column can be these categories, which it does not have as dtype."""
    if str(column.dtype).startswith(("object", "str", "String")):
        return True
    if hasattr(column, "to_physical"):
        return column.null_count() == len(column)
    numbers = getattr(dtype.categories.dtype, "kind", "O") in "biuf"
    if hasattr(column, "cat"):  # numbers in the place of texts, which encoders cannot compare
        return (getattr(column.cat.categories.dtype, "kind", "O") in "biuf") != numbers
    return bool(numbers and column.dtype.kind in "biuf") or bool(column.isna().all())


def take_rows(X: Any, rows: slice | NDArray[np.int64]) -> Any:
    """Take rows of `X`, in a container of the same type."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def column_at(X: Any, place: int) -> NDArray[Any]:
    """Return the values of the column at a place of `X`."""
    if is_dataframe(X):
        return np.asarray(X.iloc[:, place] if hasattr(X, "iloc") else X.to_series(place))
    return X[:, [place]].toarray()[:, 0] if sparse.issparse(X) else X[:, place]


def replace_column(X: Any, column: Any, rows: NDArray[np.int64]) -> Any:
    """Return a copy of `X` where row i of a column has the value of row ``rows[i]``."""
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
    table = X.tocsc()
    parts = [table[:, :column], table[:, [column]][rows], table[:, column + 1 :]]
    return sparse.hstack([part for part in parts if part.shape[1]], dtype=X.dtype).tocsr()


def take_cells(X: Any, rows: Callable[[int], NDArray[np.int64]]) -> Any:
    """Return a table of the type of `X` where column j has the values of the rows ``rows(j)``."""
    if hasattr(X, "iloc"):
        import pandas as pd

        columns = [X.iloc[:, j].iloc[rows(j)].reset_index(drop=True) for j in range(X.shape[1])]
        return pd.concat(columns, axis=1)
    if is_dataframe(X):
        return X.select([X[name][rows(j)] for j, name in enumerate(X.columns)])
    if sparse.issparse(X):
        table = X.tocsc()
        return sparse.hstack([table[:, [j]][rows(j)] for j in range(X.shape[1])]).tocsr()
    columns = [X[rows(j), j] for j in range(X.shape[1])]
    return np.stack(columns, axis=1)


def stack_rows(tables: list[Any]) -> Any:
    """Concatenate tables with the same columns vertically."""
    first = tables[0]
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(tables, ignore_index=True)
    if is_dataframe(first):
        import polars as pl

        return pl.concat(tables)
    return sparse.vstack(tables).tocsr() if sparse.issparse(first) else np.concatenate(tables)


def numeric_columns(X: Any) -> list[Any]:
    """Return the columns of numbers or booleans, by index or name. Categories do not count."""
    if not is_dataframe(X):
        dense = not sparse.issparse(X) and X.dtype.kind in "biuf"
        return list(range(X.shape[1])) if dense else []
    if _is_polars(X):
        schema = X.schema.items()
        return [name for name, dtype in schema if dtype.is_numeric() or str(dtype) == "Boolean"]
    return list(X.select_dtypes(include=["number", "bool", "boolean"]).columns)


def append_columns(X: Any, values: NDArray[Any], names: list[str]) -> Any:
    """Return a data frame with columns appended on the right."""
    if _is_polars(X):
        import polars as pl

        return X.hstack(pl.DataFrame(values, schema=names))
    import pandas as pd

    return pd.concat([X, pd.DataFrame(values, columns=names, index=X.index)], axis=1)


def column_values(X: Any, columns: list[Any]) -> NDArray[Any]:
    """Return columns as one array of numbers, with NaN for missing values."""
    if not is_dataframe(X):
        if sparse.issparse(X):
            raise ValueError(
                "X is sparse, but the ranker was fitted on dense X with context columns."
            )
        return X if X.dtype.kind in "iuf" else X.astype(np.float64)
    present = list(X.columns)
    if present != columns:
        _check_present(X, columns)
    if _is_polars(X):
        booleans = [name for name in columns if str(X.schema[name]) == "Boolean"]
        return X.select(columns).cast(dict.fromkeys(booleans, int)).to_numpy()
    part = X
    if present != columns:
        places = {name: place for place, name in enumerate(present)}
        unique = len(places) == len(present)  # faster than by names
        part = X.take([places[name] for name in columns], axis=1) if unique else X[columns]
    dtypes = set(part.dtypes)
    # Columns of nullable dtypes with a missing entry would become an array of objects.
    same = all(isinstance(dtype, np.dtype) and dtype.kind in "fiu" for dtype in dtypes)
    if same and len(dtypes) == 1:
        return part.to_numpy()
    return part.to_numpy(dtype=np.float64, na_value=np.nan)


def _check_present(X: Any, columns: list[Any]) -> None:
    """Raise ValueError if X lacks one of these columns."""
    present = list(X.columns) if is_dataframe(X) else []
    absent = [name for name in columns if name not in present]
    if absent:
        raise ValueError(f"The ranker was fitted with the columns {absent}, which X does not have.")


DENSE_BYTES = 2**32  # 4 GiB: up to this size, sparse X is converted for regressors that need it


def dense_table(X: Any) -> Any:
    """Convert sparse `X` to a dense array, for a regressor that requires it, up to `DENSE_BYTES`.

    Other containers are returned unchanged.
    """
    if not sparse.issparse(X):
        return X
    size = X.shape[0] * X.shape[1] * X.dtype.itemsize
    if size > DENSE_BYTES:
        raise ValueError(
            f"X is sparse. The regressor needs a dense table, and {X.shape[0]:,} rows of "
            f"{X.shape[1]:,} columns would take {size / 2**30:.1f} GiB. The ranker only converts "
            f"X up to {DENSE_BYTES / 2**30:g} GiB. Pass a regressor that takes sparse tables, such "
            "as sklearn.linear_model.Ridge() or lightgbm.LGBMRegressor(), or fewer columns."
        )
    return X.toarray()


def numeric_table(X: Any) -> NDArray[Any]:
    """Check that X is dense, finite and numeric; return it as an array of float32 or float64."""
    return check_array(X, dtype=[np.float64, np.float32], input_name="X")


def stored_columns(X: Any) -> int:
    """Return the number of columns. For sparse X, the mean entries per row, rounded up."""
    return 1 + X.nnz // max(1, X.shape[0]) if sparse.issparse(X) else X.shape[1]


_CHUNK = 1 << 16  # rows copied at a time
# constants of splitmix64, a generator of random numbers
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


def hash_rows(X: Any, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a hash of each row that depends only on the values of the row.

    Arrays, sparse matrices and data frames with the same values have the same hashes, for any
    dtypes. The hash of a row is the sum over its cells of a hash of (column, value). Zeros add
    nothing, and can be skipped in sparse matrices. `rows` has row numbers of X.
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
        keys += _mix(as_numbers(values), np.uint64(number))
    return keys


def hash_values(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a hash of each value, such as a query id, like `hash_rows` for one column.

    A number and the same number as text have the same hash. Other collisions are rare.
    """
    return _mix(as_numbers(values), np.uint64(0))


def as_numbers(values: NDArray[Any]) -> NDArray[np.float64]:
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
