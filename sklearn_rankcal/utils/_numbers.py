"""Conversion of a user's array-likes to arrays of numbers, with checks.

Every array of numbers from outside the package (labels, scores, ranks, weights, costs, row
numbers) passes through one of these functions. NumPy's own conversion is too generous for them: it
ignores masks, converts dates and text to numbers, treats NaT as the smallest number, lets integers
beyond 2^53 become equal, and wraps unsigned integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

#: Up to this number, float64 represents every integer exactly.
LARGEST_WHOLE = 2**53
_KINDS = {
    "U": "text",
    "S": "bytes",
    "T": "text",
    "M": "dates",
    "m": "time differences",
    "V": "records",
}
_REMEDIES = {
    "text": "Convert it first, for example by numpy.asarray(values).astype(float).",
    "bytes": "Convert them first, for example by numpy.asarray(values).astype(float).",
    "dates": "Subtract a date and divide by a unit of time.",
    "time differences": "Divide by a unit, for example numpy.timedelta64(1, 's').",
    "records": "Pass one field of them.",
}


def read_numbers(
    values: Any, name: str, *, missing: bool = False, keep_float32: bool = False
) -> NDArray[Any]:
    """Convert real numbers to float64 and keep their shape; NaN and infinity are allowed.

    Parameters
    ----------
    values : array-like
        Numbers in an array, nested lists or a data frame (read column by column).
    name : str
        The name of the argument. Errors begin with it.
    missing : bool, default=False
        Whether masked entries, None and pandas' NA become NaN. Otherwise they are refused.
    keep_float32 : bool, default=False
        Whether float16 and float32 are not converted.

    Returns
    -------
    numbers : ndarray
        Possibly `values` itself, not a copy.

    Raises
    ------
    ValueError
        If there are masked or missing entries, text, dates, complex numbers or other objects; if
        nested lists have different lengths; or if float64 cannot distinguish numbers: integers that
        it would round, and long floats, fractions or decimals that would become equal.
    TypeError
        If `values` is a sparse matrix.

    Examples
    --------
    >>> from sklearn_rankcal.utils._numbers import read_numbers
    >>> read_numbers([[1, True], [0.5, 3]], "y").tolist()
    [[1.0, 1.0], [0.5, 3.0]]
    >>> read_numbers([2**53 + 1, 0.5], "y")
    Traceback (most recent call last):
    ValueError: y has the integer 9007199254740993, which float64 would round...
    """
    columns = frame_columns(values)
    if columns is not None:
        read = [read_numbers(column, name, missing=missing) for column in columns]
        return np.column_stack(read) if read else np.empty((len(values), 0))
    mask = None
    if missing and isinstance(values, np.ma.MaskedArray):
        mask, values = np.ma.getmaskarray(values), values.data
    array = read_array(values, name, missing=missing)
    if array.dtype.kind == "f" and (
        array.dtype == np.float64 or (keep_float32 and array.dtype.itemsize < 8)
    ):
        numbers = array
    elif array.dtype.kind == "O":
        numbers = _floats_of_objects(array, name)
    else:
        with np.errstate(over="ignore"):  # the caller refuses infinity
            numbers = array.astype(np.float64)
        if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
            _check_rounding(array, name)
        elif array.dtype.itemsize > 8:
            _check_distinct(array[np.isfinite(array)].tolist(), name)
    if mask is not None and mask.any():
        numbers = np.where(mask, np.nan, numbers)
    return numbers


def read_whole(values: Any, name: str) -> NDArray[np.int64]:
    """Convert whole numbers to int64 without rounding, and keep their shape.

    Floats are accepted if they are whole and float64 can represent all integers of their size.

    Raises
    ------
    ValueError
        As in `read_numbers`, but without its limit of 2^53 on integers. Also if there are NaN,
        infinity, fractions, booleans, or integers beyond int64.
    TypeError
        If `values` is a sparse matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.utils._numbers import read_whole
    >>> read_whole([3.0, 1.0], "ranks").tolist()
    [3, 1]
    >>> read_whole(np.array([2**63], dtype=np.uint64), "judgement")
    Traceback (most recent call last):
    ValueError: judgement has 9223372036854775808, which is beyond the 64-bit integers.
    """
    columns = frame_columns(values)
    if columns is not None:
        read = [read_whole(column, name) for column in columns]
        return np.column_stack(read) if read else np.empty((len(values), 0), dtype=np.int64)
    array = read_array(values, name)
    kind = array.dtype.kind
    if kind == "b" and array.size:
        raise ValueError(f"{name} must be whole numbers; the entries are booleans.")
    if kind == "f":
        whole = np.isfinite(array) & (array == np.floor(array))
        if not whole.all():
            raise ValueError(f"{name} must be whole numbers; it has {array[~whole][0]}.")
        large = np.abs(array) >= LARGEST_WHOLE
        if large.any():
            raise ValueError(
                f"{name} has {array[large][0]:.0f} as a float. Floats of that size do not "
                "represent every integer. Pass integers."
            )
        return array.astype(np.int64)
    if kind == "O":
        listed = array.reshape(-1).tolist()
        for value in listed:
            if isinstance(value, (bool, np.bool_)) or not _is_whole(value):
                raise ValueError(f"{name} must be whole numbers; it has {value!r}.")
        ints = [int(value) for value in listed]
    else:
        ints = [int(array.max())] if kind == "u" and array.size else []
    for value in ints:
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{name} has {value}, which is beyond the 64-bit integers.")
    return (
        np.array(ints, dtype=np.int64).reshape(array.shape)
        if kind == "O"
        else array.astype(np.int64)
    )


def read_array(values: Any, name: str, *, missing: bool = False) -> NDArray[Any]:
    """Return real numbers in a dtype that represents them exactly: bool, integer, float or object.

    Every entry of an object array is a real number. With `missing`, None and pandas' NA become NaN.
    The errors are those of `read_numbers`, except for rounding, which does not happen here.
    """
    if issparse(values):
        raise TypeError(f"{name} is a sparse matrix; call its toarray() first.")
    if isinstance(values, np.ma.MaskedArray):
        check_no_mask(values, name)
        values = values.data
    columns = frame_columns(values)
    if columns is not None:  # columns of different dtypes may have no common dtype without rounding
        read = [read_array(column, name, missing=missing) for column in columns]
        same = len({column.dtype for column in read}) == 1
        return np.column_stack(read if same else [part.astype(object) for part in read])
    if isinstance(values, (list, tuple)):
        _check_list(values, name)
    elif isinstance(values, (str, bytes)):
        raise _wrong(name, repr(values[:40]), "text")
    try:
        array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of real numbers: {error}.") from error
    if array.dtype.kind == "f" and not isinstance(values, np.ndarray):
        with np.errstate(invalid="ignore"):
            large = bool((np.abs(array) >= LARGEST_WHOLE).any())
        if large and array.ndim:  # numpy may have rounded integers among floats: read them again
            objects = np.array(list(values), dtype=object)
            if any(isinstance(value, Integral) for value in objects.reshape(-1).tolist()):
                array = objects
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must be real numbers.")
    if array.dtype.kind in _KINDS:
        what = _KINDS[array.dtype.kind]
        raise _wrong(name, f"the dtype is {array.dtype}", what)
    return _real_objects(array, name, missing) if array.dtype.kind == "O" else array


def check_no_mask(values: Any, name: str) -> None:
    """Refuse a masked array with masked entries; it may be a structured array.

    Raises
    ------
    ValueError
        If an entry, or a field of an entry, is masked.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return
    mask = np.ascontiguousarray(np.ma.getmaskarray(values))
    if mask.size and mask.view(np.bool_).any():  # one boolean for each field
        raise ValueError(
            f"{name} has masked entries. Drop them, or fill them in by its method filled()."
        )


def is_missing(value: Any) -> bool:
    """Whether an object is a missing value: None, NaN, NaT, pandas' NA or a masked entry."""
    if value is None or value is np.ma.masked:
        return True
    try:
        return not bool(value == value)
    except (TypeError, ValueError):  # comparisons of NA have no truth value
        return type(value).__name__ == "NAType"


def frame_columns(values: Any) -> list[Any] | None:
    """Return the columns of a pandas or polars data frame, or None for anything else."""
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        return [values.iloc[:, k] for k in range(values.shape[1])]
    if hasattr(values, "with_columns") and hasattr(values, "get_columns"):
        return list(values.get_columns())
    return None


def _check_list(values: Iterable[Any], name: str) -> None:
    """Refuse text and masked entries in (nested) lists, before numpy converts them."""
    kinds = set(map(type, values))
    nested = False
    for kind in kinds:
        if issubclass(kind, (str, bytes)):
            shown = next(value for value in values if isinstance(value, kind))
            raise _wrong(name, f"it has {shown[:40]!r}", "text")
        nested = nested or issubclass(kind, (list, tuple, np.ma.MaskedArray))
    if nested:
        for value in values:
            if isinstance(value, (list, tuple)):
                _check_list(value, name)
            else:
                check_no_mask(value, name)


def _wrong(name: str, came: str, what: str) -> ValueError:
    return ValueError(f"{name} must be real numbers, not {what}; {came}. {_REMEDIES[what]}")


def _real_objects(array: NDArray[Any], name: str, missing: bool) -> NDArray[Any]:
    """Check that every entry of an object array is a real number."""
    listed = array.reshape(-1).tolist()
    odd = {
        kind for kind in set(map(type, listed)) if not issubclass(kind, (Real, Decimal, np.bool_))
    }
    if not odd:
        return array
    read = listed.copy()
    for place, value in enumerate(listed):
        if type(value) in odd:
            if value is not None and type(value).__name__ != "NAType":
                _refuse_object(value, name, place)
            if not missing:
                raise ValueError(
                    f"{name} has a missing entry ({value!r}, number {place}). Drop it or fill it "
                    "in."
                )
            read[place] = np.nan
    result = np.empty(len(read), dtype=object)
    result[:] = read
    return result.reshape(array.shape)


def _refuse_object(value: Any, name: str, place: int) -> NoReturn:
    if isinstance(value, (str, bytes)):
        raise _wrong(name, f"it has {value[:40]!r}", "text")
    if isinstance(value, (complex, np.complexfloating)):
        raise ValueError(f"Complex data not supported: {name} must be real numbers.")
    raise ValueError(
        f"{name} must be real numbers; entry number {place} is of type {type(value).__name__}."
    )


def _floats_of_objects(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    listed = array.reshape(-1).tolist()
    floats = np.empty(len(listed))
    for place, value in enumerate(listed):
        try:
            floats[place] = value
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError(
                f"{name} has a number that float64 cannot hold (number {place}): {error}."
            ) from error
    for value in listed:
        if isinstance(value, Integral) and int(float(value)) != value:
            raise _rounded(int(value), name)
    if not set(map(type, listed)) <= {int, float, bool}:
        _check_distinct([v for v, f in zip(listed, floats, strict=True) if np.isfinite(f)], name)
    return floats.reshape(array.shape)


def _check_rounding(integers: NDArray[Any], name: str) -> None:
    """Refuse 64-bit integers that float64 would round."""
    if not integers.size or (integers.max() <= LARGEST_WHOLE and integers.min() >= -LARGEST_WHOLE):
        return
    for value in integers.reshape(-1).tolist():
        if int(float(value)) != value:
            raise _rounded(value, name)


def _rounded(value: int, name: str) -> ValueError:
    shown = str(value) if abs(value) < 10**40 else f"{str(value)[:20]}..."
    return ValueError(
        f"{name} has the integer {shown}, which float64 would round, so that different numbers "
        "could become equal. Subtract a common offset, or convert to floats yourself."
    )


def _check_distinct(numbers: list[Any], name: str) -> None:
    """Refuse numbers with more precision than float64 if two of them become equal."""
    if len(set(numbers)) > len(set(map(float, numbers))):
        raise ValueError(
            f"{name} has different numbers that become equal as float64. Scale or round them first."
        )


def _is_whole(value: Any) -> bool:
    if isinstance(value, Integral):
        return True
    try:
        return float(value).is_integer() and abs(value) < LARGEST_WHOLE and int(value) == value
    except (OverflowError, TypeError, ValueError):
        return False
