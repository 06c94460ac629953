"""The choice of ``context="auto"``: columns that differ between queries in level or spread.

If a column has the same distribution in every query, its z-scores have almost no new information,
but take training time. Category columns get shares unless all shares are 1.
"""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import (
    category_codes,
    category_columns,
    column_values,
    is_dataframe,
    take_rows,
)
from sklearn_rankcal.utils._row_hashes import hash_rows, hash_values
from sklearn_rankcal.utils._threads import allowed_threads, map_in_order
from sklearn_rankcal.utils._typing import Floats, Ints

#: A column is omitted only if queries surely explain a smaller share of its variance.
SMALLEST_SHARE = 0.02
SAMPLE_ROWS = 50_000  # number of rows to sample, about
_FEWEST_QUERIES = 50  # fewest queries to sample, if there are enough
_FEWEST_ROWS = 10_000  # threads are not worth their start for fewer rows
_N_BINS = 256  # number of quantiles that replace the values
_COMMON = 0.1  # if more of the rows have the same value, also test the other rows alone
_STANDARD_ERRORS = 2.0
# In smaller queries, means vary by chance, and a value says little about the place of a document in
# its query. z-scores gained .025 in sets of six cars.
_FEW_DOCUMENTS = 10


def columns_that_differ(X: Any, columns: list[Any], queries: Queries) -> list[Any]:
    """Return the columns that differ, or may differ, between queries in level or spread.

    The intraclass correlation is the share of the variance between queries. It is estimated for the
    ranks of the column among all rows (level), and for the distances of these ranks from their
    middle (spread). If more than a tenth of the rows have the same value, both are also estimated
    from the other rows alone. A column is omitted if all estimates plus two standard errors are
    below `SMALLEST_SHARE` and queries have ten or more documents on average, or if it is constant
    within each query. A category column is omitted only if it is constant within each query. For
    more than 50,000 rows, a sample of about 50,000 decides; see `sampled_queries` and
    `thinned_rows`.
    """
    if not columns:
        return []
    part = queries
    if queries.n_rows > SAMPLE_ROWS:
        chosen = np.zeros(queries.n_queries, dtype=bool)
        chosen[sampled_queries(hash_values(queries.ids), queries.sizes)] = True
        kept, part = queries.select(chosen)
        X = take_rows(X, kept)
        if (step := part.n_rows // SAMPLE_ROWS) > 1:
            kept, part = thinned_rows(X, part, step)
            X = take_rows(X, kept)
    return columns_of_sample_that_differ(X, columns, part)


def columns_of_sample_that_differ(X: Any, columns: list[Any], queries: Queries) -> list[Any]:
    """Return the result of `columns_that_differ` from all rows of X."""
    codes, categories = queries.codes, set(category_columns(X))
    numbers = [name for name in columns if name not in categories]
    values = column_values(X, numbers) if numbers else np.empty((queries.n_rows, 0))
    place = {name: n for n, name in enumerate(numbers)} if is_dataframe(X) else {}

    def differs(column: Any) -> bool:
        if column in categories:
            of_rows = category_codes(X, column)
            return bool((queries.max(of_rows) > queries.min(of_rows)).any())
        own = values[:, place.get(column, column)].astype(np.float64)
        return _varies(own, queries) if few else _differs(own, codes)

    few = queries.n_rows < _FEW_DOCUMENTS * queries.n_queries
    n_threads = allowed_threads() if len(values) > _FEWEST_ROWS else 1
    return list(compress(columns, map_in_order(differs, columns, n_threads)))


def sampled_queries(hashes: NDArray[np.uint64], sizes: Ints) -> Ints:
    """Choose the fewest queries with `SAMPLE_ROWS` rows, but at least 50 if possible.

    They are the queries with the smallest hashes of their ids, in this order. The choice does not
    depend on the order of the queries or on parts in which they are stored: applied to the queries
    chosen from each part, the function chooses the same queries as from all.
    """
    order = np.lexsort((sizes, hashes))
    enough = int(np.searchsorted(np.cumsum(sizes[order]), SAMPLE_ROWS)) + 1
    return order[: max(enough, _FEWEST_QUERIES)]


def thinned_rows(X: Any, queries: Queries, step: int) -> tuple[Ints, Queries]:
    """Keep every `step`-th row of each query, at least one; return the rows and their queries.

    Rows are counted in the order of hashes of their contents. The choice therefore does not depend
    on the order of the rows.
    """
    order = np.lexsort((hash_rows(X, np.arange(queries.n_rows)), queries.codes))
    rows = order[queries.place % step == 0]
    offsets = np.append(0, np.cumsum(-(-queries.sizes // step)))
    return rows, Queries(offsets, None, queries.ids)


def _varies(values: Floats, queries: Queries) -> bool:
    """Whether a column has different numbers in some query."""
    known = np.isfinite(values)
    largest = queries.max(np.where(known, values, -np.inf))
    return bool((largest > queries.min(np.where(known, values, np.inf))).any())


def _differs(values: Floats, codes: Ints) -> bool:
    """Whether the level or the spread of one column may differ between queries."""
    finite = np.isfinite(values)
    if not finite.all():
        values, codes = values[finite], codes[finite]
    if not len(values):
        return False
    bins = _bins(values)
    if _level_or_spread(bins, codes):
        return True
    # if most values are 0, the scale of the other values hardly changes the ranks
    counts = np.bincount(bins)
    others = bins != counts.argmax()
    return counts.max() > _COMMON * len(bins) and _level_or_spread(bins[others], codes[others])


def _bins(values: Floats) -> Ints:
    """Return the bin of each value. Quantiles bound the bins."""
    bounds = np.unique(np.sort(values)[:: max(1, len(values) // _N_BINS)])
    return kernels.find_bins(bounds, values)


def _level_or_spread(bins: Ints, codes: Ints) -> bool:
    counts = np.bincount(bins)
    ranks = (np.cumsum(counts) - counts / 2)[bins]  # equal ones get their mean rank
    return _may_differ(ranks, codes) or _may_differ(np.abs(ranks - len(ranks) / 2), codes)


def _may_differ(values: Floats, codes: Ints) -> bool:
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
