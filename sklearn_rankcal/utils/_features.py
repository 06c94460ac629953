"""Containers of features: an array, a sparse matrix, or a pandas or polars frame.

The functions select rows and columns of `X` without changing its type. This way, a regressor
receives the column names and dtypes that the user passed. Hashes of rows depend on the values of a
row and not on its place in `X`.
"""

from __future__ import annotations

import contextlib
import re
from itertools import compress
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from sklearn_rankcal.utils._messages import did_you_mean, warn
from sklearn_rankcal.utils._numbers import as_frame, check_no_mask, is_missing


def is_dataframe(X: Any) -> bool:
    """Return whether `X` is a pandas or polars data frame."""
    return hasattr(X, "iloc") or hasattr(type(X), "with_columns")


def _is_polars(X: Any) -> bool:
    return hasattr(type(X), "with_columns")  # pandas looks for attributes in its columns


def container_of(y: Any) -> str | None:
    """Return "pandas" or "polars" if `y` is a data frame or a column of one, else None."""
    if hasattr(y, "iloc"):
        return "pandas"
    return "polars" if type(y).__module__.partition(".")[0] == "polars" else None


def in_container(X: Any, container: str | None, names: Any = ()) -> Any:
    """Convert to a frame, with categories as their values; `names` are those of an array."""
    numbers = set(numeric_columns(X))
    columns = {
        name: column_values(X, [name])[:, 0]
        if name in numbers
        else [None if is_missing(value) else value for value in np.asarray(X[name]).tolist()]
        for name in getattr(X, "columns", ())
    } or dict(zip(names, X.T, strict=True))
    if container == "pandas":
        import pandas as pd

        return pd.DataFrame(columns)
    import polars as pl

    return pl.DataFrame(columns, strict=False)


def check_features(X: Any, ids: str | None = None) -> Any:
    """Return `X` as a data frame, a CSR matrix or a 2-D array of any dtype.

    This is the only way in for tables. Arrow tables and DuckDB relations become data frames, and
    numbers and booleans of all dtypes those of NumPy (of polars in polars). This way, the same
    values are the same table in every container. Text, times, categories and `ids` keep theirs.

    NaN and infinity are allowed: the regressor decides whether to accept them. Raises ValueError or
    TypeError if `X` is not two-dimensional, is empty or not in memory, or has masked entries,
    complex numbers, lists or other values that are not single numbers, texts or times.
    """
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "biuf":
        return X  # check_array would return it too, but takes as long as a small prediction
    X = as_frame(X)
    if is_dataframe(X):
        if len(X.shape) != 2:
            raise ValueError(f"Expected a 2-dimensional container but got {type(X)} instead.")
        if X.shape[0] < 1 or X.shape[1] < 1:
            # raises scikit-learn's error for an empty array
            check_array(np.empty(X.shape), ensure_all_finite=False)
        return _plain_of_polars(X, ids) if _is_polars(X) else _plain_of_pandas(X, ids)
    check_no_mask(X, "X")
    table = check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    if table.dtype == object:
        for place, column in enumerate(table.T):
            _refuse_cells(column, place)
        if not any(isinstance(cell, str) for cell in table.flat):
            with contextlib.suppress(TypeError, ValueError):  # times: later errors name the column
                table = table.astype(np.float64)
    return table


def _plain_of_pandas(X: Any, ids: str | None) -> Any:
    """Convert the columns of a pandas frame with numbers to dtypes of NumPy."""
    plain = {}
    for place, dtype in enumerate(X.dtypes.tolist()):
        if (isinstance(dtype, np.dtype) and dtype.kind in "biufmM") or hasattr(dtype, "categories"):
            continue
        name, column = X.columns[place], X.iloc[:, place]
        if name == ids:
            continue
        _refuse(name, str(dtype), dtype)
        if dtype.kind in "biuf":
            exact = dtype.subtype if hasattr(dtype, "subtype") else dtype.numpy_dtype  # if sparse
            gaps = exact.kind != "f" and column.isna().any()
            plain[name] = column.to_numpy(float if gaps else exact, na_value=np.nan)
        elif str(dtype).startswith("dictionary"):
            numbers = _plain_objects(column, name)
            is_text = numbers is column
            plain[name] = column.astype(object).astype("category") if is_text else numbers
        elif dtype.kind == "O" and dtype.type is not str:
            plain[name] = _plain_objects(column, name)
    return replace_columns(X, plain) if X.columns.is_unique else X


def _plain_objects(column: Any, name: Any) -> Any:
    """Convert a pandas column of objects to numbers, if it has no others."""
    from pandas.api.types import infer_dtype

    objects = column.astype(object)
    if infer_dtype(objects) == "string":
        return column
    _refuse_cells(objects, name)
    numbers = None if str in {*map(type, objects)} else _as_floats(objects.to_numpy())
    exact = objects.infer_objects()  # integers and booleans without gaps
    return exact if numbers is None or exact.dtype != object else numbers


def _plain_of_polars(X: Any, ids: str | None) -> Any:
    """Convert the columns of a polars frame with numbers to dtypes that NumPy has."""
    kinds = {dtype.base_type() for dtype in X.dtypes}
    if all(kind.is_numeric() and not kind.is_decimal() for kind in kinds):
        return X
    plain = []
    for name, dtype in X.schema.items():
        if dtype.is_decimal() or _name(dtype) == "Null":
            plain.append(X[name].cast(float))
        elif not dtype.is_numeric() and name != ids:
            _refuse(name, _name(dtype), dtype)
    return X.with_columns(plain)


def _name(dtype: Any) -> str:
    """Return the name of a dtype of polars, without its parameters, such as all categories."""
    return str(dtype.base_type().__name__)


#: What no model reads as a number or as a category, by the name of a dtype or the type of a cell.
_REFUSED = {
    kind: (what, remedy)
    for kinds, what, remedy in (
        ("complex", "complex numbers", "Make one column of each part, the real and the imaginary."),
        ("period", "periods", "Convert them to numbers, for example to days since a date."),
        ("interval", "intervals", "Make them categories, or one column of each end."),
        ("bytes binary", "bytes", "Decode them to text."),
        ("list array ndarray tuple", "lists", "Make one column of each component."),
        ("struct dict map", "structs", "Make one column of each field."),
        ("object", "Python objects", "Convert them to numbers or text."),
    )
    for kind in kinds.split()
}


def _refuse(name: Any, kind: str, dtype: Any) -> None:
    """Raise an error if values of a kind, or of a dtype with this name, cannot be features."""
    match = re.match("(?:large_|fixed_size_)?([a-z]+)", kind.lower())
    if match and match[1] in _REFUSED and str(dtype) != "object":
        what, remedy = _REFUSED[match[1]]
        where = f"Column number {name}" if isinstance(name, int) else f"Column {name!r}"
        raise TypeError(
            f"{where} of X has {what} (dtype {dtype}), but an argument must be a string or a "
            f"number. {remedy}"
        )


def _refuse_cells(values: Any, name: Any) -> None:
    for kind in {*map(type, values)}:
        _refuse(name, kind.__name__, f"object, with {kind.__name__}")


def read_text(X: Any, kept: Any) -> tuple[Any, list[Any]]:
    """Convert columns of text to numbers, except `kept` ones.

    Return also the columns that have text without a number, or times: by name or place.
    """
    if not is_dataframe(X):
        if kept or sparse.issparse(X) or X.dtype.kind in "biuf":
            return X, []
        columns = [_as_floats(column) for column in X.T]
        other = [place for place, column in enumerate(columns) if column is None]
        return (X, other) if other else (np.transpose(columns), [])  # type: ignore[arg-type]
    plain = {*numeric_columns(X), *kept}
    names = [name for name in X.columns if name not in plain]
    if names and len(set(X.columns)) < len(X.columns):  # two of one name: the regressor's error
        return X, []
    numbers = {name: _as_floats(np.asarray(X[name])) for name in names}
    other = [name for name in names if numbers[name] is None]
    return replace_columns(X, {k: v for k, v in numbers.items() if v is not None}), other


def _as_floats(values: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return objects as numbers, NaN if missing, or None if one is not a number or its text."""
    if values.dtype.kind in "mM":
        return None
    try:
        listed = values.tolist()
        return np.array([np.nan if is_missing(value) else float(value) for value in listed])
    except (OverflowError, TypeError, ValueError):
        return None


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
            else did_you_mean(name, [one for one in X.columns if isinstance(one, str)])
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


def category_columns(X: Any) -> list[Any]:
    """Return the names of the categorical columns of a data frame."""
    if _is_polars(X):
        return [n for n, dtype in X.schema.items() if _name(dtype) in ("Categorical", "Enum")]
    kinds = [hasattr(dtype, "categories") for dtype in getattr(X, "dtypes", ())]
    return list(compress(getattr(X, "columns", ()), kinds))


def category_codes(X: Any, columns: list[Any]) -> NDArray[np.int64]:
    """Return an integer for each row of each categorical column, equal for equal values of it.

    Missing values are -1. The result has the shape (n_rows, n_columns).
    """
    _check_present(X, columns)
    if _is_polars(X):
        import polars as pl

        numbers = pl.col(columns).to_physical().cast(pl.Int64).fill_null(-1)
        return np.asarray(X.select(numbers).to_numpy())
    arrays = [X[name].array for name in columns]  # Dask has already made some of them codes
    codes = [one.codes if hasattr(one, "codes") else one.factorize()[0] for one in arrays]
    return np.stack(codes, axis=1).astype(np.int64)


def used_categories(X: Any) -> dict[Any, Any]:
    """Return the dtype of each categorical column, with only the categories that occur."""
    used = {}
    for name in category_columns(X):
        column = X[name]
        if _is_polars(X):
            import polars as pl

            found = set(column.cast(pl.String).drop_nulls())
            listed = column.dtype.categories if isinstance(column.dtype, pl.Enum) else sorted(found)
            used[name] = pl.Enum([category for category in listed if category in found])
        else:
            used[name] = column.cat.remove_unused_categories().dtype
    return used


def _as_enum(name: str, dtype: Any) -> Any:
    """Return the expression that makes text of a polars column an Enum, other values missing."""
    import polars as pl

    return pl.col(name).cast(pl.String).cast(dtype, strict=False)


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

        return X.with_columns(_as_enum(name, pl.Enum(known)) for name, known in kept.items())
    return replace_columns(X, {name: X[name].cat.set_categories(kept[name]) for name in kept})


def replace_columns(X: Any, columns: dict[Any, Any]) -> Any:
    """Return a data frame with other columns of these names, which need not be text in pandas."""
    if not columns:
        return X
    if _is_polars(X):
        return X.with_columns(**columns)
    table = X.copy(deep=False)
    for name, column in columns.items():
        table[name] = column
    return table


def as_categories(X: Any, dtypes: dict[Any, Any]) -> tuple[Any, dict[Any, list[Any]]]:
    """Convert columns of a data frame to dtypes with categories, by value.

    Other values become missing. Return also the values of columns that have no known value.
    """
    columns, unknown = {}, {}
    if _is_polars(X):  # its categories are texts
        import polars as pl

        for name, dtype in dtypes.items():
            if _name(X[name].dtype) not in ("String", "Categorical", "Enum"):
                known = list(dtype.categories)
                texts = [[*known, None][place] for place in places_of(X[name].to_list(), known)]
                columns[name] = pl.Series(texts, dtype=pl.String)
        table = replace_columns(X, columns).with_columns(map(_as_enum, dtypes, dtypes.values()))
        for name in dtypes:
            if table[name].null_count() == len(X) > X[name].null_count():
                unknown[name] = X[name].drop_nulls().unique().to_list()
        return table, unknown
    import pandas as pd

    for name, dtype in dtypes.items():
        codes, different = X[name].factorize()
        if hasattr(X[name], "cat"):
            codes, different = X[name].array.codes, X[name].array.categories
        values = different.tolist()
        places = np.array([*places_of(values, list(dtype.categories)), -1])
        columns[name] = pd.Categorical.from_codes(places[codes], dtype=dtype)
        used = np.unique(codes[codes >= 0])
        if len(used) and places[used].max() < 0:
            unknown[name] = [values[code] for code in used]
    return replace_columns(X, columns), unknown


def places_of(values: list[Any], known: list[Any]) -> list[int]:
    """Return the place of each value among known categories, or -1: by its text, or as a number."""
    texts = {str(value): place for place, value in enumerate(known)}
    numbers = {as_number(value): place for place, value in enumerate(known)}
    return [
        texts.get(value, -1) if isinstance(value, str) else numbers.get(as_number(value), -1)
        for value in values
    ]


def take_rows(X: Any, rows: slice | NDArray[np.int64]) -> Any:
    """Take rows of `X`, in a container of the same type."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def column_at(X: Any, place: int) -> NDArray[Any]:
    """Return the values of the column at a place of `X`."""
    if is_dataframe(X):
        return np.asarray(X.iloc[:, place] if hasattr(X, "iloc") else X.to_series(place))
    return X[:, [place]].toarray()[:, 0] if sparse.issparse(X) else X[:, place]


def numeric_columns(X: Any) -> list[Any]:
    """Return the columns of numbers or booleans, by index or name. Categories do not count."""
    if not is_dataframe(X):
        dense = not sparse.issparse(X) and X.dtype.kind in "biuf"
        return list(range(X.shape[1])) if dense else []
    if _is_polars(X):
        kinds = [dtype.is_numeric() or _name(dtype) == "Boolean" for dtype in X.dtypes]
    else:
        kinds = [dtype.kind in "biuf" for dtype in X.dtypes.tolist()]
    return list(compress(X.columns, kinds))


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
        part = X if present == columns else X.select(columns)
        flags = [
            n for n, kind in zip(columns, part.dtypes, strict=True) if _name(kind) == "Boolean"
        ]
        return (part.cast(dict.fromkeys(flags, int)) if flags else part).to_numpy()
    part = X
    if present != columns:
        places = {name: place for place, name in enumerate(present)}
        unique = len(places) == len(present)  # faster than by names
        part = X.take([places[name] for name in columns], axis=1) if unique else X[columns]
    single = {*part.dtypes.tolist()} == {np.dtype(np.float32)}
    return part.to_numpy(np.float32 if single else np.float64)


def _check_present(X: Any, columns: list[Any]) -> None:
    """Raise ValueError if X lacks one of these columns."""
    present = list(X.columns) if is_dataframe(X) else []
    absent = [name for name in columns if name not in present]
    if absent:
        raise ValueError(f"The ranker was fitted with the columns {absent}, which X does not have.")


DENSE_BYTES = 2**32  # 4 GiB: up to this size, sparse X is converted for regressors that need it
MOST_TO_BOOST = 1000  # most columns of sparse X: LightGBM bundles them, boosting here does not


def dense_table(X: Any, boosted: bool) -> Any:
    """Convert sparse `X` to a dense array for a regressor, up to `DENSE_BYTES` and `MOST_TO_BOOST`.

    Other containers are returned unchanged.
    """
    if not sparse.issparse(X):
        return X
    size = X.shape[0] * X.shape[1] * X.dtype.itemsize
    if size > DENSE_BYTES or (boosted and X.shape[1] > MOST_TO_BOOST):
        raise ValueError(
            f"X is sparse. The regressor needs a dense table, and {X.shape[0]:,} rows of "
            f"{X.shape[1]:,} columns would take {size / 2**30:.1f} GiB. The ranker only converts X "
            f"up to {DENSE_BYTES / 2**30:g} GiB and, for boosting, {MOST_TO_BOOST:,} columns. Pass "
            "fewer, for example by SelectKBest(f_regression, k=300) in a pipeline, X.toarray() for "
            "a long fit, or a regressor that takes sparse tables, such as Ridge() or LightGBM's."
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
    """Convert values to float64, missing ones to NaN. Text without a number becomes its hash."""
    if values.dtype.kind not in "OSUmMV":
        return values.astype(np.float64)
    listed = values.tolist()
    table = {value: as_number(value) for value in set(listed)}
    for value, number in table.items():
        if not isinstance(number, float):
            table[value] = float(crc32(str(value).encode("utf-8", "surrogatepass")))
    return np.array([table[value] for value in listed])


def as_number(value: Any) -> Any:
    """Return a number, or the number that a text is, as a float; NaN if missing; else the value."""
    try:
        return np.nan if is_missing(value) else float(value)
    except (OverflowError, TypeError, ValueError):
        return value


def _mix(values: NDArray[np.float64], column: Any) -> NDArray[np.uint64]:
    """Hash (column, value) by the last step of splitmix64. The value 0 has the hash 0."""
    with np.errstate(over="ignore"):
        values = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN; -0.0 becomes 0.0
        bits = np.ascontiguousarray(values).view(np.uint64) ^ ((column + np.uint64(1)) * _ODD)
        bits = (bits ^ (bits >> np.uint64(30))) * _MIX
        bits = bits ^ (bits >> np.uint64(31))
        return np.where(values == 0, np.uint64(0), bits)
