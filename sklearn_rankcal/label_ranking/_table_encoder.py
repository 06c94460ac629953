"""Convert a table of numbers, categories and text to numbers, for regressors that need them."""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.utils._features import is_dataframe, text_columns
from sklearn_rankcal.utils._numbers import frame_columns, is_missing, read_numbers

Floats = NDArray[np.float64]
#: The categories of a column that get a column of their own, the most frequent first.
MAX_CATEGORIES = 32


class TableEncoder:
    """Numbers stay as they are, with NaN where they are missing. Each category is a column of 0, 1.

    A missing category is a category. One that `fit` did not see, or that is not among the 32 most
    frequent of its column, is 0 in all columns.
    """

    def fit(self, X: Any) -> Self:
        """Learn the categories of each column of a table that `check_features` returned."""
        #: For each column None if it has numbers, else the place of each category; None if all do.
        self.places_: list[dict[Any, int] | None] | None = None
        if not is_dataframe(X) and X.dtype.kind in "biuf":
            return self
        for column, example in text_columns(X):
            if not isinstance(example, str):
                raise ValueError(
                    f"Column {column!r} of X contains times, such as {example!r}. Convert them to "
                    "numbers, for example to days since a date, or drop the column."
                )
        self.places_ = []
        for values in _columns(X):
            if _has_numbers(values):
                self.places_.append(None)
                continue
            common = Counter(_categories(values)).most_common(MAX_CATEGORIES)
            self.places_.append({category: place for place, (category, _) in enumerate(common)})
        return self

    def transform(self, X: Any) -> Any:
        """Return an array of numbers, of shape (n_rows, n_numbers + n_categories)."""
        if self.places_ is None:
            columns = frame_columns(X)
            if columns is None:
                return X
            places: list[dict[Any, int] | None] = [None] * len(columns)
        else:
            places = self.places_
        names = X.columns if is_dataframe(X) else range(X.shape[1])
        parts = [
            _numbers(values, f"Column {name!r} of X")[:, None]
            if known is None
            else _one_hot(values, known)
            for name, values, known in zip(names, _columns(X), places, strict=True)
        ]
        return np.hstack(parts)


def _columns(X: Any) -> list[Any]:
    columns = frame_columns(X)
    return list(X.T) if columns is None else columns


def _has_numbers(values: Any) -> bool:
    """Whether a column has numbers or booleans, or nothing at all."""
    dtype = values.dtype
    if hasattr(dtype, "is_numeric"):  # polars
        return dtype.is_numeric() or str(dtype) in ("Boolean", "Null")
    if getattr(dtype, "kind", "O") in "biuf" and not hasattr(values, "cat"):
        return True
    return not hasattr(values, "cat") and not any(isinstance(v, str) for v in values)


def _numbers(values: Any, name: str) -> Floats:
    if isinstance(values, np.ndarray):
        if values.dtype == object:
            values = np.array([np.nan if is_missing(v) else v for v in values], dtype=object)
        return values.astype(np.float64)  # the error for other objects is numpy's
    return read_numbers(values, name, missing=True)


def _categories(values: Any) -> list[Any]:
    return [None if is_missing(value) else value for value in values]


def _one_hot(values: Any, places: dict[Any, int]) -> Floats:
    # A loop over the rows; the rest of a prediction takes longer.
    found = np.array([places.get(category, -1) for category in _categories(values)], dtype=np.int64)
    return (found[:, None] == np.arange(len(places))).astype(np.float64)
