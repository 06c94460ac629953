"""Weights of rows, and means over queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.utils._messages import all_of, warn
from sklearn_rankcal.utils._numbers import check_range, read_numbers


def check_weight(weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Check that `sample_weight` has one finite, non-negative weight per row, not all 0.

    Parameters
    ----------
    weight : array-like of shape (n_rows,) or None
        Weight of each row.
    n_rows : int
        Number of rows.

    Returns
    -------
    weight : ndarray of shape (n_rows,) or None
        The weights as float64, or None if `weight` is None.

    Raises
    ------
    ValueError
        If the shape is wrong, or if the weights are negative, NaN, infinite, all 0 or out of range.

    Examples
    --------
    >>> from sklearn_rankcal.queries import check_weight
    >>> check_weight([1, 0, 2], 3).tolist()
    [1.0, 0.0, 2.0]
    """
    if weight is None:
        return None
    values = read_numbers(weight, "sample_weight")
    if values.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {values.shape}, expected {(n_rows,)}: one weight per row. "
            "Give the weight of a query to each of its rows: "
            "pandas.Series(weight, index=query_ids)[groups].to_numpy()."
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
    """Compute the mean of a measure over the queries on which it is defined.

    Parameters
    ----------
    values : ndarray of shape (n_queries,)
        Value of each query, NaN if undefined.
    queries : Queries
        The queries.
    weight : ndarray of shape (n_rows,) or None
        Weight of each row. The weight of a query is the mean weight of its rows.
    name : str
        Name of the measure, for warnings and errors.
    factor : ndarray of shape (n_queries,), default=None
        Factor of the weight of each query (`Loss.query_weight`). Queries with the factor 0 are left
        out.

    Returns
    -------
    mean : float
        The mean. If the measure is undefined on all queries, NaN with an `UndefinedMetricWarning`.

    Raises
    ------
    ValueError
        If the weight is 0 on every query on which the measure is defined.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries, mean_over_queries
    >>> queries = Queries.from_groups(["a", "a", "b", "c"])
    >>> mean_over_queries(np.array([1.0, 0.5, np.nan]), queries, None, "ndcg")
    0.75
    """
    defined = ~np.isnan(values)
    if factor is not None:
        defined &= factor > 0
    if not defined.any():
        warn(
            f"{name} is undefined on {all_of(len(values), 'query')}; its mean is set to NaN.",
            UndefinedMetricWarning,
        )
        return float("nan")
    if weight is None and factor is None:
        return float(values[defined].mean())
    per_query = np.ones(defined.sum())
    if weight is not None:
        per_query = queries.mean(weight)[defined]
        if not per_query.any():
            raise ValueError(f"sample_weight is 0 on every query where {name} is defined.")
    if factor is not None:
        per_query = per_query * factor[defined]
    return float(np.average(values[defined], weights=per_query))
