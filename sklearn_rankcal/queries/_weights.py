"""Weights of rows, and means over queries."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.utils._numbers import check_range, read_numbers


def check_weight(weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Check that there is one finite, non-negative weight per row, and that not all are 0.

    Parameters
    ----------
    weight : array-like of shape (n_rows,) or None
        Weight of each row, `sample_weight`.
    n_rows : int
        The number of rows.

    Returns
    -------
    weight : ndarray of shape (n_rows,) or None
        The weights as float64; None if `weight` is None.

    Raises
    ------
    ValueError
        If the shape is wrong, or if the weights are negative, NaN, infinite or all 0.
    """
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
    check_range(values, "sample_weight")
    return values


def mean_over_queries(
    values: NDArray[np.float64],
    queries: Queries,
    weight: NDArray[np.float64] | None,
    name: str,
    factor: NDArray[np.float64] | None = None,
) -> float:
    """Return the mean of a measure over the queries on which it is defined.

    Parameters
    ----------
    values : ndarray of shape (n_queries,)
        The measure of each query; NaN where it is undefined.
    queries : Queries
        The partition of the rows into queries.
    weight : ndarray of shape (n_rows,) or None
        Weight of each row. The weight of a query is the mean of the weights of its rows.
    name : str
        The name of the measure, for messages.
    factor : ndarray of shape (n_queries,), default=None
        A factor of the weight of each query (`Loss.query_weight`). The measure counts as undefined
        where it is 0.

    Returns
    -------
    mean : float
        NaN, with an `UndefinedMetricWarning`, if the measure is undefined on all queries.

    Raises
    ------
    ValueError
        If the weights are 0 on all queries on which the measure is defined.
    """
    defined = ~np.isnan(values)
    if factor is not None:
        defined &= factor > 0
    if not defined.any():
        warnings.warn(
            f"{name} is undefined on all {len(values)} queries; its mean is set to NaN.",
            UndefinedMetricWarning,
            stacklevel=3,
        )
        return float("nan")
    if weight is None and factor is None:
        return float(values[defined].mean())
    per_query = np.ones(defined.sum())
    if weight is not None:  # scaled, so that no sum overflows
        per_query = queries.mean(weight / weight.max())[defined]
        if not per_query.any():
            raise ValueError(f"sample_weight is 0 on every query where {name} is defined.")
    if factor is not None:
        factor = factor[defined]
        per_query = per_query * (factor / factor[per_query > 0].max())
    return float(np.average(values[defined], weights=per_query))
