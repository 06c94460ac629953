"""Weights of rows come in; the mean of a measure over queries comes out."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.utils._numbers import read_numbers


def check_weight(weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Non-negative finite weights, one per row, not all 0."""
    if weight is None:
        return None
    values = read_numbers(weight, "sample_weight")
    if values.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {values.shape}, expected {(n_rows,)}: one weight per row."
        )
    if not np.isfinite(values).all():
        raise ValueError("Input sample_weight contains NaN or infinity.")
    if values.min() < 0:
        raise ValueError(f"Negative values in data passed to sample_weight: {values.min():g}.")
    if not values.any():
        raise ValueError("sample_weight is zero for every row.")
    return values


def mean_over_queries(
    values: NDArray[np.float64],
    queries: Queries,
    weight: NDArray[np.float64] | None,
    name: str,
) -> float:
    """Mean of a measure over the queries where it is defined; NaN with a warning if nowhere."""
    defined = ~np.isnan(values)
    if not defined.any():
        warnings.warn(
            f"{name} is undefined on all {len(values)} queries; its mean is set to NaN.",
            UndefinedMetricWarning,
            stacklevel=3,
        )
        return float("nan")
    if weight is None:
        return float(values[defined].mean())
    per_query = queries.mean(weight / weight.max())[defined]  # no sum overflows
    if not per_query.any():
        raise ValueError(f"sample_weight is 0 on every query where {name} is defined.")
    return float(np.average(values[defined], weights=per_query))
