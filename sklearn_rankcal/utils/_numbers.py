"""Numbers: checked conversion of array-likes, comparison up to rounding, and ranges of sizes.

NumPy's own conversion is too permissive: it ignores masks, and converts dates and text to numbers.

Two numbers that are mathematically equal, such as the scores of items with mirrored records, can
have different rounding errors. The errors depend on the processor, the order of the rows and the
unit. All comparisons of computed numbers therefore use `exceeds`, `is_largest` or `tie`, except for
scores of items (`tie_scores`). Given numbers and sums of small whole numbers need no tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


#: Up to this number, float64 represents every integer exactly.
LARGEST_WHOLE = 2**53
#: Limits of the absolute values of nonzero labels, weights and costs. With them, products of up to
#: six factors neither overflow nor underflow.
SMALLEST, LARGEST = 1e-50, 1e50
_KINDS = {
    "U": "text",
    "T": "text",
    "S": "bytes",
    "M": "dates",
    "m": "time differences",
    "V": "records",
}
_REMEDY = (
    "Convert the entries first: text of numbers by numpy.asarray(values).astype(float), yes and no "
    "by values == 'yes', grades in words by values.map({'bad': 0, 'good': 1}) of pandas, dates by "
    "subtracting a date and dividing by a unit of time."
)


def read_numbers(
    values: Any, name: str, *, missing: bool = False, keep_float32: bool = False
) -> NDArray[Any]:
    """Convert real numbers to float64 and keep their shape. NaN and infinity are allowed.

    If `missing`, masked entries, None and pandas' NA become NaN; otherwise they raise an error. If
    `keep_float32`, float16 and float32 are not converted. The result may be `values` itself.
    """
    array = read_array(values, name, missing=missing)
    if array.dtype.kind == "f" and keep_float32 and array.dtype.itemsize < 8:
        return array
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        largest = max(int(array.max()), -int(array.min()))
        if largest > LARGEST_WHOLE:
            raise _rounded(largest, name)
    return array.astype(np.float64, copy=False)


def check_range(numbers: NDArray[np.float64], name: str) -> None:
    """Reject finite nonzero numbers with an absolute value outside 1e-50 to 1e50."""
    sizes = np.abs(numbers)
    bad = np.isfinite(sizes) & (sizes != 0) & ((sizes < SMALLEST) | (sizes > LARGEST))
    if bad.any():
        raise ValueError(
            f"{name} has {numbers[bad][0]:g}. Numbers other than 0 must be between {SMALLEST:g} "
            f"and {LARGEST:g} in absolute value. Multiply all by a common factor."
        )


def read_whole(values: Any, name: str) -> NDArray[np.int64]:
    """Convert whole numbers to int64 without rounding and keep their shape. Floats may be whole.

    Raises the errors of `read_numbers`, and ValueError for NaN, infinity, fractions, booleans,
    floats beyond 2^53 and integers beyond int64.
    """
    array = read_array(values, name)
    kind = array.dtype.kind
    if kind == "b" and array.size:
        raise ValueError(f"{name} must be whole numbers; the entries are booleans.")
    if kind == "f":
        whole = np.isfinite(array) & (array == np.floor(array))
        if not whole.all():
            raise ValueError(f"{name} must be whole numbers; it has {array[~whole][0]}.")
        if (np.abs(array) >= LARGEST_WHOLE).any():
            raise ValueError(
                f"{name} has floats beyond 2^53, which do not represent every integer. Pass "
                "integers."
            )
    elif kind == "u" and array.size and array.max() >= 2**63:
        raise ValueError(f"{name} has {array.max()}, which is beyond the 64-bit integers.")
    return array.astype(np.int64)


def read_array(values: Any, name: str, *, missing: bool = False) -> NDArray[Any]:
    """Return real numbers as booleans, integers or floats, with the errors of `read_numbers`.

    If `missing`, masked entries, None and pandas' NA become NaN.
    """
    if issparse(values):
        raise TypeError(f"{name} is a sparse matrix; call its toarray() first.")
    if isinstance(values, str):
        check_no_name(values, name)
    if isinstance(values, np.ma.MaskedArray):
        if missing:
            values = np.ma.filled(values.astype(np.float64), np.nan)
        else:
            check_no_mask(values, name)
    if isinstance(values, list | tuple):
        kinds = set(map(type, values))
        if any(issubclass(kind, str | bytes) for kind in kinds):  # their array could be huge
            raise ValueError(f"{name} must be real numbers, not text. {_REMEDY}")
        if any(issubclass(kind, np.ma.MaskedArray) for kind in kinds):  # numpy ignores their masks
            for row in values:
                check_no_mask(row, name)
    try:
        array = np.asarray(as_array(values) if hasattr(values, "to_numpy") else values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of real numbers: {error}.") from error
    kind = array.dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: {name} must be real numbers.")
    if kind not in "biufO":
        raise ValueError(f"{name} must be real numbers, not {_KINDS[kind]}. {_REMEDY}")
    if kind == "f" and isinstance(values, list | tuple) and (np.abs(array) >= LARGEST_WHOLE).any():
        # numpy may have rounded integers in a list
        array, kind = np.array(values, dtype=object), "O"
    return _read_objects(array, name, missing) if kind == "O" else array


def _read_objects(array: NDArray[Any], name: str, missing: bool) -> NDArray[Any]:
    listed = array.reshape(-1).tolist()
    for place, value in enumerate(listed):
        if value is None or value is np.ma.masked or type(value).__name__ == "NAType":
            if not missing:
                raise ValueError(
                    f"{name} has a missing entry ({value!r}, number {place}). Drop it or fill it "
                    "in."
                )
            listed[place] = np.nan
        elif isinstance(value, complex):
            raise ValueError(f"Complex data not supported: {name} must be real numbers.")
        elif isinstance(value, str | bytes):
            raise ValueError(f"{name} must be real numbers, not text. {_REMEDY}")
        elif not hasattr(value, "__float__"):
            raise ValueError(
                f"{name} must be real numbers; entry number {place} is of type "
                f"{type(value).__name__}. {_REMEDY}"
            )
    try:
        if listed and all(isinstance(value, Integral) for value in listed):
            return np.array(listed, dtype=np.int64).reshape(array.shape)
        numbers = np.array([float(value) for value in listed])
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{name} has a number of the wrong size: {error}.") from error
    for value, number in zip(listed, numbers.tolist(), strict=True):
        if LARGEST_WHOLE <= abs(number) < np.inf and not isinstance(value, float | np.floating):
            if int(abs(value)) > LARGEST_WHOLE:
                raise _rounded(int(abs(value)), name)
    return numbers.reshape(array.shape)


def _rounded(largest: int, name: str) -> ValueError:
    return ValueError(
        f"{name} has integers of size {largest}. Beyond 2^53, float64 would round them. Subtract a "
        "common offset, or convert to floats yourself."
    )


def check_no_name(values: Any, name: str) -> None:
    """Reject a text in the place of a column: probably the name of a column of a data frame."""
    if isinstance(values, str):
        raise ValueError(
            f"{name} must be the column itself, and not its name; got {values!r}. Pass, for "
            f"example, {name}=data[{values!r}]."
        )


def check_no_mask(values: Any, name: str) -> None:
    """Reject a masked array with masked entries, including structured arrays."""
    if not isinstance(values, np.ma.MaskedArray):
        return
    mask = np.ascontiguousarray(np.ma.getmaskarray(values))
    if mask.size and mask.view(np.bool_).any():  # one boolean for each field
        raise ValueError(
            f"{name} has masked entries. Drop them, or fill them in by its method filled()."
        )


def is_missing(value: Any) -> bool:
    """Return whether an object is missing: None, NaN, NaT, pandas' NA or a masked entry."""
    if value is None or value is np.ma.masked:
        return True
    try:
        return not bool(value == value)
    except (TypeError, ValueError):  # comparisons with NA have no truth value
        return type(value).__name__ == "NAType"


def as_array(column: Any) -> NDArray[Any]:
    """Return a column of pandas, polars or Arrow as an array."""
    arrow = hasattr(column, "to_pylist")  # it refuses to copy unless it is told to
    return np.asarray(column.to_numpy(zero_copy_only=False) if arrow else column.to_numpy())


def as_frame(X: Any) -> Any:
    """Return a table of Arrow or DuckDB as a data frame, and anything else unchanged.

    The frame is one of pandas or, without pandas, of polars. Dictionaries of text become
    categories; those of numbers are a way to store numbers.
    """
    if hasattr(X, "dask"):
        raise TypeError(
            "X is a Dask collection. Pass it to dask.DaskCalibratedRanker, or call its compute()."
        )
    if hasattr(X, "collect"):
        raise TypeError("X is a lazy frame; call .collect() first.")
    if hasattr(X, "iloc") or hasattr(X, "get_columns") or not hasattr(X, "__arrow_c_stream__"):
        return X
    try:
        frame = (X.to_pandas if hasattr(X, "to_pandas") else X.df)()
        for name, dtype in frame.dtypes.items() if frame.ndim == 2 else ():
            if hasattr(dtype, "categories") and dtype.categories.dtype.kind in "biuf":
                frame[name] = frame[name].astype(object)
        return frame
    except ImportError:
        import polars as pl

        return pl.DataFrame(X)


def frame_columns(values: Any) -> list[Any] | None:
    """Return the columns of a data frame or an Arrow table, or None for anything else."""
    values = as_frame(values)
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        return [values.iloc[:, k] for k in range(values.shape[1])]
    if hasattr(values, "with_columns") and hasattr(values, "get_columns"):
        return list(values.get_columns())
    return None


def add_up(places: Ints, values: NDArray[Any] | None, length: int) -> Floats:
    """Sum values by place, or count places. Without values, bincount returns integers."""
    return np.bincount(places, values, length).astype(np.float64, copy=False)


# The largest absolute target passed to a regressor is between these limits. scikit-learn's trees do
# not split a node of variance 2e-16, and its histogram boosting has 32-bit gradients.
_SMALLEST_TARGET, _LARGEST_TARGET = 2.0**-16, 2.0**64
# Beyond these limits, predictions in the unit of the targets would lose digits or overflow.
_SMALLEST_UNIT, _LARGEST_UNIT = 1e-290, 1e290
# A user's regressor receives the weights unscaled, or products of two weights for pairs. It may
# convert them to 32 bits.
_SMALLEST_WEIGHT, _LARGEST_WEIGHT = 1e-12, 1e12


def mean_one(weight: Floats) -> Floats | None:
    """Scale weights to mean 1. Return None if all are equal, which is the same as no weights."""
    if (weight == weight[0]).all():
        return None
    return weight / weight.mean()


def power_above(value: float) -> float:
    """Return the smallest power of two above a number, or 1 for 0."""
    return float(np.ldexp(1.0, np.frexp(value)[1]))


def target_unit(largest: float) -> float:
    """Return a power of two to divide targets by for regressors, 1 if they are moderate.

    `largest` is the largest absolute target.
    """
    if largest == 0 or _SMALLEST_TARGET <= largest <= _LARGEST_TARGET:
        return 1.0
    return power_above(largest)


def check_unit(largest: float) -> None:
    """Raise ValueError if the largest absolute target is outside the range and not 0."""
    if largest != 0 and not _SMALLEST_UNIT <= largest <= _LARGEST_UNIT:
        up = "up" if largest < 1 else "down"
        raise ValueError(
            f"The largest target computed from the labels is {largest:g}. It must be between "
            f"{_SMALLEST_UNIT:g} and {_LARGEST_UNIT:g} for float64. Scale the labels, or the "
            f"weights of preferences, {up}."
        )


def check_weight_range(weight: Floats, regressor: str) -> None:
    """Raise ValueError if a user's regressor may not work with the weights."""
    largest = float(weight.max())
    if not _SMALLEST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise ValueError(
            f"The largest sample_weight is {largest:g}. {regressor} receives the weights unscaled "
            f"and needs a largest weight between {_SMALLEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}. "
            "Scale the weights to mean 1: sample_weight / sample_weight.mean()."
        )


#: Numbers are equal if their difference is at most this number times their size.
ROUNDING = 1e-9


def exceeds(one: ArrayLike, other: ArrayLike, size: ArrayLike) -> Bools:
    """Return where one number is larger than another by more than rounding.

    `size` is the size of the terms that the numbers were computed from. It can be larger than the
    numbers, for example if they are differences.
    """
    return np.asarray(np.asarray(one) - other > ROUNDING * np.asarray(size))


def first_smallest(values: Sequence[float] | Floats) -> int:
    """Return the place of the first value that equals the smallest value up to rounding."""
    return int(is_largest(-np.asarray(values, dtype=np.float64)).argmax())


def is_largest(values: Floats, size: ArrayLike | None = None) -> Bools:
    """Return which values equal the largest along the last axis, up to rounding.

    By default, `size` is the largest finite absolute value.
    """
    top = values.max(axis=-1, keepdims=True)
    if size is None:
        size = np.abs(np.where(np.isfinite(values), values, 0.0)).max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        close = top - values <= ROUNDING * np.asarray(size)
    return np.asarray((values == top) | close)


def tie(values: Floats, size: ArrayLike) -> Floats:
    """Make neighbouring values equal if they differ only by rounding, along the last axis.

    Neighbours are taken in descending order. `size`, as in `exceeds`, has one entry per vector.
    """
    order = np.argsort(-values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    first = np.zeros(values.shape, dtype=np.int64)  # the place of the first value of the level
    new = exceeds(ordered[..., :-1], ordered[..., 1:], np.asarray(size)[..., None])
    first[..., 1:] = np.where(new, np.arange(1, values.shape[-1]), 0)
    first = np.maximum.accumulate(first, axis=-1)
    tied = np.empty_like(ordered)
    np.put_along_axis(tied, order, np.take_along_axis(ordered, first, axis=-1), axis=-1)
    return tied


def order_from_largest(values: Floats, *then: Ints) -> Ints:
    """Return the order from the largest value to the smallest.

    In descending order, a value equals the one before it if they differ only by rounding. Equal
    values are ordered by `then`, from small to large.
    """
    values = np.asarray(values)
    size = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    order = np.argsort(-values, kind="stable")
    with np.errstate(invalid="ignore"):
        new = exceeds(values[order[:-1]], values[order[1:]], size)
    place = np.zeros(len(values), dtype=np.int64)
    place[order[1:]] = np.cumsum(new)
    return np.lexsort((*then[::-1], place))
