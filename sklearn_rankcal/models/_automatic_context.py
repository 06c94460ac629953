"""Which columns ``context="auto"`` describes: those whose level or spread differs between queries.

If a column has the same distribution in every query, its z-scores tell a regressor almost nothing
new, but trees take as long for them as for any other column. Categories are described by their
shares wherever these can differ from 1.
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

#: A column is left out only if queries surely explain a smaller share of its variance than this.
SMALLEST_SHARE = 0.02
SAMPLE_ROWS = 50_000  # about so many rows are looked at
_FEWEST_QUERIES = 50  # of at least so many queries, if there are so many
_FEWEST_ROWS = 10_000  # for which starting threads takes less time than the threads save
_N_BINS = 256  # numbers are replaced by their ranks among so many quantiles
_COMMON = 0.1  # a share of the rows; if more have the same value, the other rows count alone too
_STANDARD_ERRORS = 2.0
# With so few documents, the mean of a query is far from that of all by chance, and a value says
# little about the place of a document among the others: z-scores gained .025 in sets of six cars.
_FEW_DOCUMENTS = 10


def columns_that_differ(X: Any, columns: list[Any], queries: Queries) -> list[Any]:
    """Return the columns whose level or spread differs between queries, or may differ.

    The intraclass correlation, the share of the variance that lies between queries, is estimated
    for the ranks of the column among all rows (the level), and for the distances of these ranks
    from their middle (the spread). If more than a tenth of the rows have the same value, both are
    also estimated from the other rows alone. A column is left out if all estimates, plus two
    standard errors each, are below `SMALLEST_SHARE` and queries have ten documents or more in the
    mean, or if it is constant in every query. A column of categories is left out only if it is
    constant in every query. A table of more than 50,000 rows is judged by about 50,000, see
    `sampled_queries` and `thinned_rows`.
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
    """Return what `columns_that_differ` returns, looking at all rows of X."""
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
    """Choose the fewest queries with `SAMPLE_ROWS` rows, but at least 50 if there are so many.

    They are the queries with the smallest hashes of their ids, in this order, so that the choice
    depends neither on the order of the queries nor on the parts in which they are stored. Of the
    queries chosen from each of several parts, the same function chooses those of all queries.
    """
    order = np.lexsort((sizes, hashes))
    enough = int(np.searchsorted(np.cumsum(sizes[order]), SAMPLE_ROWS)) + 1
    return order[: max(enough, _FEWEST_QUERIES)]


def thinned_rows(X: Any, queries: Queries, step: int) -> tuple[Ints, Queries]:
    """Keep one of `step` rows of each query, and at least one; return them and their queries.

    The rows of a query are counted in the order of hashes of their contents, so that the choice
    does not depend on the order of the rows.
    """
    order = np.lexsort((hash_rows(X, np.arange(queries.n_rows)), queries.codes))
    rows = order[queries.place % step == 0]
    offsets = np.append(0, np.cumsum(-(-queries.sizes // step)))
    return rows, Queries(offsets, None, queries.ids)


def _varies(values: Floats, queries: Queries) -> bool:
    """Whether one column has different numbers in a query."""
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
    # Where most values are 0, a different scale of the others hardly changes the ranks of all.
    counts = np.bincount(bins)
    others = bins != counts.argmax()
    return counts.max() > _COMMON * len(bins) and _level_or_spread(bins[others], codes[others])


def _bins(values: Floats) -> Ints:
    """Bins of the values. Quantiles are the bounds of the bins."""
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
