"""Rows and weights that a member of a stack is fitted to, and a forest that reads any number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor

from sklearn_rankcal.utils._features import column_values, is_dataframe, take_rows
from sklearn_rankcal.utils._row_hashes import _as_numbers as as_numbers

Floats = NDArray[np.float64]


# scikit-learn's trees read float32, and refuse infinity and numbers above 3e38. They also add up
# all numbers of a table, and 10^8 numbers up to this limit do not overflow.
_LARGEST = 1e30


class ClippedExtraTrees(ExtraTreesRegressor):
    """Extremely randomised trees that take infinity and numbers that float32 cannot hold.

    Numbers above 1e30 count as 1e30, and numbers below -1e30 as -1e30. Tables may be arrays and
    data frames of numbers.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ClippedExtraTrees:
        """Fit the trees."""
        return super().fit(_clipped(X), y, sample_weight)

    def predict(self, X: Any) -> Any:
        """Predict the mean of the trees."""
        return super().predict(_clipped(X))


def _clipped(X: Any) -> Any:
    """Return the numbers of X within the limits, and NaN as it is."""
    values = column_values(X, list(X.columns)) if is_dataframe(X) else X
    return values if suits_forests(values) else np.clip(values, -_LARGEST, _LARGEST)


def suits_forests(values: Any) -> bool:
    """Whether all numbers of an array are between -1e30 and 1e30, or NaN."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return True  # the largest integers are far smaller
    return not (np.abs(values) > _LARGEST).any()


def without_sparse_columns(X: Any) -> Any:
    """Return a pandas frame with dense columns in the place of sparse ones, or X itself.

    scikit-learn makes a sparse matrix of a frame if all columns are sparse, which histogram
    boosting refuses.
    """
    if not hasattr(X, "iloc"):
        return X
    dense = {
        name: dtype.subtype
        for name, dtype in X.dtypes.items()
        if hasattr(dtype, "subtype") and hasattr(dtype, "fill_value")
    }
    return X.astype(dense) if dense else X


def part_of_table(X: Any, rows: Any) -> Any:
    """Take rows of X to fit a model to, with 0 in columns that have no number in any of them.

    scikit-learn's histogram boosting refuses a column that contains only NaN. A constant column
    tells no regressor anything.
    """
    part = take_rows(X, rows)
    if hasattr(part, "iloc"):
        # scikit-learn takes a category without a value.
        others = part.select_dtypes(exclude="category")
        empty = list(others.columns[others.isna().all()])
        if empty:
            part = part.copy()
            part[empty] = 0.0
        return part
    if is_dataframe(part):
        empty = [name for name in part.columns if _is_empty_in_polars(part[name])]
        return part.with_columns(**dict.fromkeys(empty, 0.0)) if empty else part
    if not isinstance(part, np.ndarray) or part.dtype.kind not in "fOSU":
        return part
    candidates = np.flatnonzero(np.isnan(as_numbers(part[0])))
    lacking = [place for place in candidates if np.isnan(as_numbers(part[:, place])).all()]
    if lacking:
        part = part.copy()
        part[:, lacking] = 0.0
    return part


def _is_empty_in_polars(column: Any) -> bool:
    """Whether a column is neither a category nor has a value; polars has both null and NaN."""
    if str(column.dtype).startswith(("Cat", "Enum")):
        return False
    lacking = column.is_null()
    return bool((lacking | column.is_nan() if column.dtype.is_float() else lacking).all())


def part_of_weights(weight: Floats | None, rows: Any) -> Floats | None:
    """Take the weights of some rows, scaled to the mean of all weights.

    Only ratios of weights count. But a regressor with a penalty learns less from smaller weights,
    so that its scores would differ in scale between the folds if their weights do.
    """
    return None if weight is None else weight[rows] * (weight.mean() / weight[rows].mean())
