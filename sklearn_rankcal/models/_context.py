"""Context columns, which compare a document with the rest of its query.

A calibrated surrogate maps a whole query to scores, but a regressor sees one row at a time. Context
columns give any regressor information about the query. ``context="auto"`` chooses columns that
differ between queries, and `ContextTableModel` fits a regressor to the table with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingRegressor

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.models import _column_parameters
from sklearn_rankcal.models._held_out import BoostingRun, fit_until_best
from sklearn_rankcal.models._model import Model, Page, Training, Validation
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils import _column_advice, _estimators, _features
from sklearn_rankcal.utils._memory import (
    CACHE_BYTES,
    PREDICTION_BYTES,
    allowed_threads,
    map_in_order,
    rows_per_block,
)
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints
from sklearn_rankcal.utils._sklearn_compat import HISTOGRAMS

_FEWEST_BLOCKS = 8  # threads are not worth their start for fewer blocks

SHARE = "share"  # the kind for category columns; the other kinds are for numeric columns
_NOTHING_TO_DESCRIBE = (
    "context={!r} needs at least one numeric column of a dense table; pass context=None.",
    "context={!r} needs a data frame with at least one category column. Convert text columns, "
    "such as X.astype({{'brand': 'category'}}), or omit this kind.",
)
CONTEXTS = ("zscore", "difference", "rank", SHARE)


def check_context(context: Any) -> tuple[str, ...]:
    """Return the kinds of context as a tuple without repetitions; empty for None."""
    if context is None:
        return ()
    if not isinstance(context, str | list | tuple):
        raise ValueError(
            f"context must be None, a name or a list of names; got {context!r}. Known: "
            f"{', '.join(map(repr, CONTEXTS))}."
        )
    kinds = (context,) if isinstance(context, str) else tuple(context)
    unknown = [kind for kind in kinds if kind not in CONTEXTS]
    if unknown:
        raise ValueError(
            f"Unknown context {unknown[0]!r}. Known: None, {', '.join(map(repr, CONTEXTS))}, or a "
            "list of these. CalibratedRanker and DocumentModel also accept 'auto'."
        )
    return tuple(dict.fromkeys(kinds))


def context_columns(X: Any, groups: ArrayLike, context: Any = "zscore") -> Any:
    """Add the context columns of `CalibratedRanker` to a table.

    Use this function to compare with a learner of another package on the same columns, or to
    process the columns in a pipeline.

    Parameters
    ----------
    X : {array-like, data frame} of shape (n_documents, n_features)
        A dense table with at least one numeric column. For ``"share"``, a data frame with at least
        one category column.
    groups : array-like of shape (n_documents,)
        Query id of each row, in any order.
    context : str or list of str, default="zscore"
        ``"zscore"``: (x - mean) / sd within the query. ``"difference"``: x - mean. ``"rank"``: rank
        of x. ``"share"``: share of the rows of the query with the same category; missing values are
        a category.

    Returns
    -------
    table : {ndarray, data frame} of shape (n_documents, n_features + n_added)
        The columns of X, followed, for each kind, by one column per numeric column or, for
        ``"share"``, per category column. New columns of a data frame are named
        ``<column>__<kind>``.

    Notes
    -----
    Every category column gets shares, so tables of training and test queries have the same columns.
    A ranker omits shares of columns that are constant within each query of `fit`.

    Examples
    --------
    >>> from sklearn_rankcal import context_columns
    >>> context_columns([[1.0], [3.0], [7.0]], groups=["a", "a", "b"]).tolist()
    [[1.0, -1.0], [3.0, 1.0], [7.0, 0.0]]
    >>> import pandas as pd
    >>> X = pd.DataFrame({"kind": ["phone", "phone", "case", "case"]}, dtype="category")
    >>> context_columns(X, [1, 1, 1, 2], context="share")["kind__share"].round(2).tolist()
    [0.67, 0.67, 0.33, 1.0]
    """
    kinds = check_context(context)
    if not kinds:
        raise ValueError(f"context must name at least one of {', '.join(map(repr, CONTEXTS))}.")
    table = _features.check_features(X)
    return add_context(table, Queries.from_groups(groups, table.shape[0]), kinds)[0]


def columns_of_kinds(X: Any, kinds: tuple[str, ...]) -> dict[str, list[Any]]:
    """Return all columns of X that can have context columns of each kind."""
    numbers = _features.numeric_columns(X)
    return {kind: _features.category_columns(X) if kind == SHARE else numbers for kind in kinds}


def add_context(
    X: Any, queries: Queries, described: dict[str, list[Any]] | tuple[str, ...], dtype: Any = None
) -> tuple[Any, Floats]:
    """Add context columns of each kind; return the table and the mean slopes of z-scores.

    Let q be the query of row i. "difference" is x_i - mean_q(x). "zscore" is this difference
    divided by the standard deviation sd_q(x), or 0 if all values of the query are equal. "rank" is
    the share of the values of the query below x_i, where equal values count one half, minus one
    half. NaN and infinite values are kept, and do not count for means. NaN does not count for
    ranks. "share" is the share of the rows of the query with the category of row i. Missing is a
    category.

    `described` has the columns of each kind, in the order of `X`, or only the kinds, for all
    possible columns. All kinds for numbers have the same columns. By default, the dtype is float32
    if the numbers of `X` are float32, and otherwise float64. The slopes are the means over queries
    of 1 / sd_q for each numeric column, where sd_q = 0 contributes 0. The columns of a row do not
    depend on the order of the rows, on other queries or on the number of threads, even in the last
    digit.
    """
    if not isinstance(described, dict):
        described = columns_of_kinds(X, described)
    for kind, own in described.items():
        if not own:
            raise ValueError(_NOTHING_TO_DESCRIBE[kind == SHARE].format(kind))
    numbers = [kind for kind in described if kind != SHARE]
    columns: list[Any] = described[numbers[0]] if numbers else []
    frame = _features.is_dataframe(X)
    values = _features.column_values(X, columns) if columns else np.empty((queries.n_rows, 0))
    n_rows, n_columns = values.shape
    width = len(columns)
    first = 0 if frame else n_columns
    start, stop = {}, first
    for kind, own in described.items():
        start[kind], stop = stop, stop + len(own)
    if dtype is None:
        dtype = np.float32 if values.dtype == np.float32 else np.float64
    table = np.empty((n_rows, stop), dtype=dtype)
    slope = np.zeros(width)
    if columns:
        slope = _describe_numbers(values, columns, queries, start, table, frame)
    if shares := described.get(SHARE):
        for number, codes in enumerate(_features.category_codes(X, shares).T):
            table[:, start[SHARE] + number] = _shares(codes, queries)
    if not frame:
        return table, slope
    return _features.append_columns(X, table, _names(X, described)), slope


def _describe_numbers(
    values: NDArray[Any],
    columns: list[Any],
    queries: Queries,
    start: dict[str, int],
    table: NDArray[Any],
    frame: bool,
) -> Floats:
    """Write the context columns of numbers to the table from `start` on; return the mean slopes.

    Also copy the columns of an array to the table.
    """
    n_rows, n_columns = values.shape
    width = len(columns)
    some = slice(None) if n_columns == width else np.array(columns)
    slope = np.zeros(width)
    if "rank" in start:  # larger blocks, because each sort has a fixed cost
        step = rows_per_block(8 * n_columns)
    else:
        step = rows_per_block(kernels.N_TEMPORARIES * 8 * n_columns, CACHE_BYTES)
    places = start.get("zscore", -1), start.get("difference", -1)
    if not frame and queries.order is not None:  # faster than by scattered rows
        table[:, :n_columns] = values
    # `describe` needs adjacent columns of these types
    dtype = np.float32 if values.dtype == np.float32 else np.float64

    def fill(block: tuple[slice | Ints, Queries]) -> Floats:
        """Write the rows of some queries; return 1 / sd of each query and column."""
        rows, part = block
        slopes = np.empty((part.n_queries, width))
        if not frame and isinstance(rows, slice):
            table[rows, :n_columns] = values[rows]
        own = np.require(values[rows][:, some], dtype, ["C", "ALIGNED"])
        kernels.describe(own, slice(0, part.n_rows), part.offsets, table, rows, *places, slopes)
        if "rank" in start:
            ranks = slice(start["rank"], start["rank"] + width)
            table[rows, ranks] = _ranks(own, np.isnan(own), part)
        return slopes

    # several large blocks of ranks at a time would need too much memory
    several = "rank" not in start and n_rows > _FEWEST_BLOCKS * step
    blocks: Any = queries.chunks(step)
    for slopes in map_in_order(fill, blocks, allowed_threads()) if several else map(fill, blocks):
        # `accumulate` adds query by query, so the last digit does not depend on the blocks
        slopes[0] += slope
        slope = np.add.accumulate(slopes, axis=0)[-1]
    return slope / queries.n_queries


def _shares(codes: Ints, queries: Queries) -> Floats:
    """Return the share of the rows of the query with the code of each row."""
    least = codes.min()
    keys = queries.codes * (codes.max() - least + 1) + (codes - least)
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[place] / queries.broadcast(queries.sizes)


def _names(X: Any, described: dict[str, list[Any]]) -> list[Any]:
    """Return the names of the new columns of a data frame."""
    present = list(X.columns)
    if not all(isinstance(name, str) for name in present):
        # scikit-learn ignores names that are not strings, but refuses mixed types
        return list(range(len(present), len(present) + sum(map(len, described.values()))))
    names = [f"{column}__{kind}" for kind, own in described.items() for column in own]
    taken = set(names) & set(present)
    if taken:
        raise ValueError(
            f"X has a column {min(taken)!r}, which is the name of a context column. Rename it or "
            "pass context=None."
        )
    return names


def _ranks(block: NDArray[Any], missing: Bools, queries: Queries) -> Floats:
    """Return the share of values of the query below each value (ties count half) minus 1/2."""
    from sklearn_rankcal.queries import Ranking

    result = np.empty(block.shape)
    for column in range(block.shape[1]):  # one sort per feature
        values = np.where(missing[:, column], np.inf, block[:, column])
        ranked = Ranking.from_scores(-values, queries)  # ascending values, missing ones last
        known = queries.repeat(queries.reduce(np.add, (~missing[:, column]).astype(np.float64)))
        place = (
            queries.place + 0.5
            if ranked.start is None or ranked.stop is None
            else (ranked.start + np.minimum(ranked.stop, known)) / 2  # +inf ties with missing ones
        )
        share = place / np.maximum(known, 1.0) - 0.5
        result[ranked.order, column] = share
    result[missing] = np.nan
    return result


#: A column is omitted only if queries surely explain a smaller share of its variance.
SMALLEST_SHARE = 0.02
SAMPLE_ROWS = 50_000  # number of rows to sample, about
_FEWEST_QUERIES = 50  # fewest queries to sample, if there are enough
_FEWEST_ROWS = 10_000  # threads are not worth their start for fewer rows
_N_BINS = 256  # number of quantiles that replace the values
_COMMON = 0.1  # if more of the rows have the same value, also test the other rows alone
_STANDARD_ERRORS = 2.0
# In shorter queries, means vary by chance, and a value says little about the place of a document in
# its query. The standard deviation of a few values is noise: differences rank better than z-scores.
FEW_DOCUMENTS = 10


def columns_that_differ(X: Any, columns: list[Any], queries: Queries) -> list[Any]:
    """Return the columns that differ, or may differ, between queries in level or spread.

    The intraclass correlation is the share of the variance between queries. It is estimated for the
    ranks of the column among all rows (level), and for the distances of these ranks from their
    middle (spread). If more than a tenth of the rows have the same value, both are also estimated
    from the other rows alone. A column is omitted if all estimates plus two standard errors are
    below `SMALLEST_SHARE` and queries have ten or more documents on average, or if it is constant
    within each query. A category column is omitted only if it is constant within each query.
    """
    codes, categories = queries.codes, set(_features.category_columns(X))
    numbers = [name for name in columns if name not in categories]
    values = _features.column_values(X, numbers) if numbers else np.empty((queries.n_rows, 0))
    place = {name: n for n, name in enumerate(numbers)} if _features.is_dataframe(X) else {}

    def differs(column: Any) -> bool:
        if column in categories:
            return not queries.have_equal(_features.category_codes(X, [column])[:, 0])
        own = values[:, place.get(column, column)].astype(np.float64)
        return not queries.have_equal(np.nan_to_num(own)) if short else _differs(own, codes)

    short = queries.sizes.mean() < FEW_DOCUMENTS
    if len(values) <= _FEWEST_ROWS:
        return list(compress(columns, map(differs, columns)))
    return list(compress(columns, map_in_order(differs, columns, allowed_threads())))


def sample(X: Any, queries: Queries) -> tuple[Any, Queries]:
    """Return about `SAMPLE_ROWS` rows; see `sampled_queries` and `thinned_rows`."""
    chosen = np.zeros(queries.n_queries, dtype=bool)
    chosen[sampled_queries(_features.hash_values(queries.ids), queries.sizes)] = True
    kept, part = queries.select(chosen)
    X = _features.take_rows(X, kept)
    if (step := part.n_rows // SAMPLE_ROWS) > 1:
        kept, part = thinned_rows(X, part, step)
        X = _features.take_rows(X, kept)
    return X, part


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
    order = np.lexsort((_features.hash_rows(X, np.arange(queries.n_rows)), queries.codes))
    rows = order[queries.place % step == 0]
    offsets = np.append(0, np.cumsum(-(-queries.sizes // step)))
    return rows, Queries(offsets, None, queries.ids)


def _differs(values: Floats, codes: Ints) -> bool:
    """Whether the level or the spread of one column may differ between queries."""
    finite = np.isfinite(values)
    if not finite.all():
        values, codes = values[finite], codes[finite]
    if not len(values):
        return False
    # quantiles bound the bins
    bounds = np.unique(np.sort(values)[:: max(1, len(values) // _N_BINS)])
    bins = kernels.find_bins(bounds, values)
    if _level_or_spread(bins, codes):
        return True
    # if most values are 0, the scale of the other values hardly changes the ranks
    counts = np.bincount(bins)
    others = bins != counts.argmax()
    return counts.max() > _COMMON * len(bins) and _level_or_spread(bins[others], codes[others])


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


class ContextTableModel(Model):
    """Base class of models of scores that fit one regressor to a table with context columns.

    A subclass has the parameters `regressor` and `context`. Its `fit` calls `_choose_columns`
    first, and `match_parameters` before it fits the regressor.
    """

    regressor: Any
    regressor_: Any
    has_table = True
    context: str | Sequence[str] | None
    #: dtype of tables with context columns. None keeps float32 and converts the rest to float64.
    _dtype: Any = None

    @property
    def needs_queries(self) -> bool:  # type: ignore[override]
        """Whether the score of a document depends on the other documents of its query."""
        return self.context == "auto" or bool(check_context(self.context))

    @property
    def needs_dense(self) -> bool:  # type: ignore[override]
        """Whether the regressor is the default, which needs a dense table."""
        return self.regressor is None

    @property
    def takes_categories(self) -> bool:  # type: ignore[override]
        """Whether the regressor is the default, which supports categories of a data frame."""
        return self.regressor is None

    def _choose_columns(self, training: Training) -> None:
        """Choose the columns that get context columns, and set `context_`."""
        doubtful, columns = self.candidates(training.X)
        short = False
        if doubtful:
            shown = training.page or training
            X, queries = shown.X, shown.queries
            some = (X, queries) if queries.n_rows <= SAMPLE_ROWS else sample(X, queries)
            columns = columns + columns_that_differ(some[0], doubtful, some[1])
            short = some[1].sizes.mean() < FEW_DOCUMENTS
        self._set_columns(training.X, columns, short)

    def candidates(self, X: Any) -> tuple[list[Any], list[Any]]:
        """Return the columns that get context columns if they differ, and those that always do."""
        numbers = _features.numeric_columns(X)
        if self.context != "auto":
            categories = (
                _features.category_columns(X) if SHARE in check_context(self.context) else []
            )
            return categories, numbers
        # an encoder for a table of only categories would encode the shares, too
        encoded = not numbers and hasattr(self.regressor, "steps")
        return (numbers if encoded else numbers + _features.category_columns(X)), []

    def _set_columns(self, X: Any, columns: list[Any], short: bool = False) -> None:
        """Set `context_` for these columns of tables of the form of X."""
        names = list(X.columns) if _features.is_dataframe(X) else range(X.shape[1])
        place = {name: number for number, name in enumerate(names)}
        categories = set(_features.category_columns(X))
        # Most regressors have no parameters of columns. Constraints hold for differences, but not
        # for z-scores.
        given = bool(_column_parameters.given_parameters(self.regressor))
        kinds = self.context
        auto = self.context == "auto"
        if auto:
            constrained = (
                _column_parameters.constrained_places(self.regressor, X)
                if given and columns
                else set()
            )
            signed = constrained and constrained & {place[name] for name in columns}
            kinds = ["difference" if signed or short else "zscore", SHARE]
        self.context_: dict[str, list[Any]] = {}
        self._columns: list[Any] = []  # numeric columns with context columns
        kinds = check_context(kinds)
        for kind in kinds:
            left_out: set[int] = set()
            if given and kind == SHARE:
                left_out = _column_parameters.ignored_places(self.regressor, X)
            elif given:
                left_out = _column_parameters.places_without_context(self.regressor, X, kinds)
            kept = [
                name
                for name in columns
                if (name in categories) == (kind == SHARE) and place[name] not in left_out
            ]
            # `add_context` raises an error for a requested kind without any possible column
            if kept or not (auto or columns_of_kinds(X, (kind,))[kind]):
                self.context_[kind] = kept
                self._columns = self._columns if kind == SHARE else kept
        #: the most frequent categories of columns with more than histograms have bins. For
        #: scikit-learn, a missing text is a category of its own.
        self._frequent: dict[Any, list[Any]] = {}
        if _features.is_dataframe(X) and (
            self.regressor is None or isinstance(self.regressor, HISTOGRAMS)
        ):
            regressor = (
                HistGradientBoostingRegressor() if self.regressor is None else self.regressor
            )
            self._frequent = _features.frequent_categories(X, regressor.max_bins - 1)
        self._of_catboost = _column_parameters.library_of(self.regressor) == "catboost"
        self._kinds = tuple(self.context_)
        self._n_columns = X.shape[1]
        #: `context_` with places in X, whose later tables may be arrays of its numbers
        self._places = {kind: [place[k] for k in own] for kind, own in self.context_.items()}
        #: kind of each context column, and place of its column of X
        self._added = [(kind, k) for kind, own in self._places.items() for k in own]

    def match_parameters(self, regressor: Any, X: Any) -> None:
        """Extend parameters of columns, such as monotone constraints, to context columns."""
        nested = hasattr(regressor, "get_params") and len(regressor.get_params()) > len(
            regressor.get_params(deep=False)
        )
        if (
            nested
            or _column_parameters.given_parameters(regressor)
            or _column_parameters.library_of(regressor) == "catboost"
        ):
            _column_parameters.match_parameters(regressor, X, [place for _, place in self._added])

    def _table(
        self, X: Any, queries: Queries, page: Page | None = None
    ) -> tuple[Any, Floats | None]:
        """Return the table of the regressor, and the mean slopes of z-scores.

        With a `page`, the rows of X are compared with all documents on it.
        """
        slopes = None
        if self._kinds and page is not None:
            X, slopes = add_context(page.X, page.queries, self.context_, self._dtype)
            X = _features.take_rows(X, page.rows)
        elif self._kinds:
            described = self._places if type(X) is np.ndarray else self.context_
            X, slopes = add_context(X, queries, described, self._dtype)
        if self._frequent:
            X = _features.keep_categories(X, self._frequent)
        if self._of_catboost:
            X = _estimators.readable_table(self.regressor, X)
        return X, slopes

    def _fit_to_table(
        self,
        regressor: Any,
        table: Any,
        targets: NDArray[Any],
        weights: dict[str, Any],
        validation: Validation | None,
        as_scores: Callable[[Any], Floats],
    ) -> Any:
        """Fit a regressor. Validation queries, if any, choose the number of iterations."""
        try:
            if validation is None:
                return regressor.fit(table, targets, **weights)
            held = validation.held_out
            held_out, _ = self._table(held.X, held.queries, held.page)
            return fit_until_best(
                BoostingRun(regressor, table, targets, weights, validation, held_out, as_scores)
            )
        except (TypeError, ValueError) as error:
            _column_advice.note_columns(error, table)
            raise

    def table_names(self, names: list[str]) -> list[str]:
        """Return the column names of the table of the regressor, given the names of X."""
        return [*names, *(f"{names[place]}__{kind}" for kind, place in self._added)]

    def _predict_blocks(
        self,
        X: Any,
        queries: Queries,
        predict: Callable[[Any], Floats],
        n_bytes: int = PREDICTION_BYTES,
    ) -> Floats:
        """Predict the score of each document in blocks of about `n_bytes` bytes."""
        n_columns = len(self._added) + (
            _features.stored_columns(X) if sparse.issparse(X) else X.shape[1]
        )
        step = rows_per_block(8 * n_columns, n_bytes)
        if queries.n_rows <= step:
            return predict(self._table(X, queries)[0])
        scores = np.empty(queries.n_rows)
        # without context columns, blocks need not consist of whole queries
        parts = queries if self._kinds else Queries.uniform(queries.n_rows, 1)
        for rows, part in parts.chunks(step):
            table, _ = self._table(_features.take_rows(X, rows), part)
            scores[rows] = predict(table)
        return scores

    def own_importances(self) -> NDArray[Any]:
        """Return the importances of the fitted regressor per column of X."""
        regressor = self.regressor_
        if not hasattr(regressor, "feature_importances_"):
            raise AttributeError(
                f"{type(regressor).__name__} has no feature_importances_, so a ranker or stack "
                "with it has none. inspection.permutation_importance supports all rankers."
            )
        factors = dict.fromkeys(self._kinds, 1.0)
        return self._sum_by_column(regressor.feature_importances_, factors)

    def _sum_by_column(self, values: NDArray[Any], factors: dict[str, Any]) -> NDArray[Any]:
        """Add each context column, times the factor of its kind, to its column of X."""
        values = np.asarray(values)
        total = np.array(values[..., : self._n_columns], dtype=np.float64)
        if not self._kinds:
            return total
        added = values[..., self._n_columns :]
        if added.shape[-1] != len(self._added):
            raise AttributeError("The columns of the regressor do not match those of X.")
        for kind, places in self._places.items():
            own, added = np.split(added, [len(places)], axis=-1)
            total[..., places] += own * factors[kind]
        return total
