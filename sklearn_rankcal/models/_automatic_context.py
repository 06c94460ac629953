"""Which columns ``context="auto"`` describes: those whose level or spread differs between queries.

If a column has the same distribution in every query, its z-score inside the query is nearly the
same linear function of the column in all queries. It then tells a regressor almost nothing new, but
trees take as long for it as for any other column.
"""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.models._context_kernels import find_bins
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import column_values, is_dataframe, take_rows
from sklearn_rankcal.utils._threads import allowed_threads, map_in_order

#: A column is left out only if queries surely explain a smaller share of its variance than this.
SMALLEST_SHARE = 0.02
_SAMPLE_ROWS = 50_000  # about so many rows are looked at
_FEWEST_QUERIES = 50  # of at least so many queries, if there are so many
_FEWEST_ROWS = 10_000  # for which starting threads takes less time than the threads save
_N_BINS = 256  # numbers are replaced by their ranks among so many quantiles
_COMMON = 0.1  # a share of the rows; if more have the same value, the other rows count alone too
_STANDARD_ERRORS = 2.0


def columns_that_differ(X: Any, columns: list[Any], queries: Queries) -> list[Any]:
    """Return the columns whose level or spread differs between queries, or may differ.

    The intraclass correlation of a quantity is the share of its variance that lies between queries.
    It is estimated for the ranks of the column among all rows (the level), and for the distances of
    these ranks from their middle (the spread). If more than a tenth of the rows have the same
    value, both are also estimated from the other rows alone. A column is left out if all
    estimates, plus two standard errors each, are below `SMALLEST_SHARE`. It is also left out if it
    is constant in every query, because its z-scores are then 0. In a small table the standard
    errors are large, and all other columns stay.

    Parameters
    ----------
    X : array or data frame of shape (n_rows, n_features)
    columns : list
        The candidates, as `numeric_columns` names them.
    queries : Queries

    Returns
    -------
    chosen : list
        Some of `columns`, in the same order.

    Notes
    -----
    A table of more than 50,000 rows is judged by about 50,000 rows. They are whole queries, taken
    at equal distances in the order of the queries. If these would be fewer than 50 queries, they
    are some rows of 50 queries. One thread then takes about 1 ms per column with the
    compiled kernel, and 3 ms with NumPy. If there are more than 10,000 rows, several threads judge
    a column each.
    """
    if not columns:
        return []
    rows, codes = _sample(queries)
    values = column_values(take_rows(X, rows), columns)
    places = range(len(columns)) if is_dataframe(X) else columns

    def differs(place: int) -> bool:
        return _differs(values[:, place].astype(np.float64), codes)

    n_threads = allowed_threads() if len(values) > _FEWEST_ROWS else 1
    return list(compress(columns, map_in_order(differs, places, n_threads)))


def _sample(queries: Queries) -> tuple[slice | NDArray[np.int64], NDArray[np.int64]]:
    """Choose about `_SAMPLE_ROWS` rows; return them, and the number of the query of each."""
    share = _SAMPLE_ROWS / queries.n_rows
    if share >= 1:
        return slice(None), queries.codes
    share = min(1.0, max(share, _FEWEST_QUERIES / queries.n_queries))
    number = np.floor(np.arange(1, queries.n_queries + 1) * share)
    rows, part = queries.select(np.diff(number, prepend=0) > 0)
    # If the queries are few and long, some rows of each are enough.
    some = slice(None, None, max(1, len(rows) // _SAMPLE_ROWS))
    return part.gather(rows)[some], part.repeat(np.arange(part.n_queries))[some]


def _differs(values: NDArray[np.float64], codes: NDArray[np.int64]) -> bool:
    """Whether the level or the spread of one column may differ between queries."""
    finite = np.isfinite(values)
    if not finite.all():
        values, codes = values[finite], codes[finite]
    if not len(values):
        return False
    bins = _bins(values)
    if _level_or_spread(bins, codes):
        return True
    # Where most values are 0, a different scale of the others hardly changes the ranks of all.
    counts = np.bincount(bins)
    others = bins != counts.argmax()
    return counts.max() > _COMMON * len(bins) and _level_or_spread(bins[others], codes[others])


def _bins(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Bins of the values. Quantiles are the bounds of the bins."""
    bounds = np.unique(np.sort(values)[:: max(1, len(values) // _N_BINS)])
    return find_bins(bounds, values)


def _level_or_spread(bins: NDArray[np.int64], codes: NDArray[np.int64]) -> bool:
    counts = np.bincount(bins)
    ranks = (np.cumsum(counts) - counts / 2)[bins]  # equal ones get their mean rank
    return _may_differ(ranks, codes) or _may_differ(np.abs(ranks - len(ranks) / 2), codes)


def _may_differ(values: NDArray[np.float64], codes: NDArray[np.int64]) -> bool:
    """Whether the intraclass correlation may reach `SMALLEST_SHARE`."""
    # A one-way analysis of variance, with k queries of n rows in all:
    # ratio = (variance between queries) / (variance within queries); 1 is expected if the
    # distribution is the same in every query.
    sizes = np.bincount(codes)
    n, k = len(values), np.count_nonzero(sizes)
    means = np.bincount(codes, values) / np.maximum(sizes, 1)
    within = np.square(values - means[codes]).sum()
    if within == 0:
        return False
    if k == 1:
        return True
    ratio = (sizes * np.square(means - values.mean())).sum() / (k - 1) / (within / (n - k))
    size = (n - np.square(sizes).sum() / n) / (k - 1)  # the size of the queries, in effect
    share = (ratio - 1) / (ratio - 1 + size)
    # For a share near 0, the variance of the ratio is about 2 / (k - 1) + 2 / (n - k).
    error = np.sqrt(2 / (k - 1) + 2 / (n - k)) / size
    return bool(share + _STANDARD_ERRORS * error >= SMALLEST_SHARE)
