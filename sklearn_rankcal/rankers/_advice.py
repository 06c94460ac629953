"""Advice: what a user may have mistaken in the data of `fit`.

`fit` makes a cheap check before it calls each of these functions. None of them changes the ranker.
`FittedQueries` serves the same question of `score`: were these queries fitted with other rows?
"""

from __future__ import annotations

import re
from itertools import compress
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sklearn_rankcal.losses import Loss
from sklearn_rankcal.losses._positional import LINEAR_GAIN
from sklearn_rankcal.models import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._predict import predicted_pairs, scores_to_sort_by
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils import _features
from sklearn_rankcal.utils._messages import counted, warn
from sklearn_rankcal.utils._numbers import ROUNDING, is_largest

#: Larger labels are probably amounts. The largest grade of LightGBM is 30, of XGBoost 31.
LARGEST_GRADE = 31
_ROWS_TO_TRY = 200
_ROWS_AT_FIRST = 256  # rows to check for all columns, before single columns
_FEWEST_QUERIES = 3  # a column of zeros and ones can be the ids of two queries by chance
_FEWEST_LABELS = 20  # a column of zeros and ones can be the labels of a few rows by chance
#: With this number of queries, different consecutive numbers, or texts, are no coincidence.
_MANY_QUERIES, _MANY_TEXTS = 10, 50
_NAME_OF_IDS = re.compile(r"(^|[^A-Za-z])[Ii][Dd]$|[a-z]I[Dd]$|[QqUu]id$")
_COLUMNS = 2  # number of columns of X to hash; all would take as long as the fit of Ridge


def advise(ranker: Any, rows: Training) -> None:
    """Warn about mistakes in the data of `fit`, before an error that these may cause."""
    X, labels, queries = rows.X, rows.labels, rows.queries
    if queries.n_queries >= _FEWEST_QUERIES and not sparse.issparse(X):
        warn_of_ids(X, queries, ranker.group_column)
    graded = isinstance(labels, np.ndarray) and labels.ndim == 1
    if graded and _features.is_dataframe(X) and len(labels) >= _FEWEST_LABELS:
        warn_of_label(X, labels)
    regressor: Any = getattr(ranker, "regressor", None)
    if queries.n_queries > 1 and hasattr(regressor, "get_params"):
        if [name for name in regressor.get_params() if name.endswith("validation_fraction")]:
            warn_of_cut_queries(regressor, queries.n_rows)


def warn_of_single_rows(n_queries: int) -> None:
    """Warn that every query has a single row."""
    warn(
        f"Each of the {counted(n_queries, 'row')} is a query of its own, so there is nothing to "
        "rank. The parameter groups has the query id of each row, not the row number."
    )


def warn_if_nothing_was_learned(ranker: Any, data: Training) -> None:
    """Warn if the fitted ranker ties all documents of each training query, and say why."""
    nothing = f"{type(ranker).__name__} has learned nothing"
    labels = data.labels
    if isinstance(labels, np.ndarray) and data.queries.have_equal(labels):
        n_queries = data.queries.n_queries
        copied = n_queries > 1 and len(np.unique(labels)) == n_queries
        warn(
            f"{nothing}, because all documents of {'each' if n_queries > 1 else 'the'} query have "
            "the same label. "
            + (
                "Did you pass the labels as groups? groups must have the query id of each row."
                if copied
                else "Every ranking of them is equally good."
            )
        )
        return
    # smallest queries first: a ranker that ties them has seldom learned anything
    sizes = np.where(data.queries.sizes > 1, data.queries.sizes, np.inf)
    few, by_size = np.zeros(len(sizes), dtype=bool), np.argsort(sizes, kind="stable")
    few[by_size[np.cumsum(sizes[by_size]) <= _ROWS_TO_TRY]] = True
    if few.any() and not _ties_all(ranker, data.take(*data.queries.select(few))):
        return
    # do not predict all pairs of large queries
    if ranker.loss_.space.is_pairwise:
        if not few.any():
            return
    elif not few.all() and not _ties_all(ranker, data):
        return
    if data.queries.have_equal(_features.hash_rows(data.X, np.arange(data.X.shape[0]))):
        why = "no column of X has different values in a query"
    else:
        model = type(getattr(ranker.model_, "regressor_", ranker.model_)).__name__
        why = (
            f"{model} predicts the same for all documents of a query. For trees, the smallest "
            f"number of rows per leaf may be too large for {data.X.shape[0]:,} rows "
            "(min_child_samples of LightGBM and min_samples_leaf of histogram boosting are 20 by "
            "default). For linear models, the penalty may be too large"
        )
    warn(f"{nothing}: {why}. Documents are ranked by a hash of the features, or by row.")


def _ties_all(ranker: Any, data: Training) -> bool:
    """Return whether the predictions leave all documents of each query tied."""
    shown = data.page or data
    queries = shown.queries
    try:
        if not ranker.loss_.space.is_pairwise:
            scores = ranker.model_.predict(shown.X, queries)
            low, high = queries.min(scores), queries.max(scores)
            # neighbours of a tied query differ by one rounding at most
            step = ROUNDING * np.maximum(np.abs(low), np.abs(high))
            if (high - low > queries.sizes * step).any():
                return False
        scores = scores_to_sort_by(ranker, shown.X, queries)
        if scores is not None:
            return queries.have_equal(scores)
        preferences = ranker.loss_.space == PAIRS
        for _, _, u in predicted_pairs(ranker, shown.X, queries):
            if u.any() and (preferences or not is_largest(u).all()):
                return False
    except Exception:
        return False  # a regressor that cannot predict raises in predict, not in fit
    return True


def warn_of_amounts(loss: Loss) -> None:
    """Warn if the gain is 2**y - 1, given that a label y is above `LARGEST_GRADE`."""
    gain = getattr(loss, "gain", None)
    if isinstance(gain, str) and gain == "exp2" and not loss.takes_judgements:
        warn(
            f"A label is above {LARGEST_GRADE}. With the gain 2**y - 1, only the largest labels of "
            f"a query matter. Are the labels amounts? {LINEAR_GAIN}",
        )


def warn_of_cut_queries(regressor: Any, n_rows: int) -> None:
    """Warn if the regressor, or one inside it, holds out rows for its own early stopping."""
    for part in (regressor, *regressor.get_params().values()):
        if not hasattr(part, "get_params") or isinstance(part, type):
            continue
        parameters = part.get_params(deep=False)
        # None: early stopping uses the training rows
        if parameters.get("validation_fraction") is None:
            continue
        stops = parameters.get("early_stopping", parameters.get("n_iter_no_change") is not None)
        if stops == "auto":  # histogram boosting of scikit-learn
            stops = n_rows > 10_000
        if isinstance(stops, bool | np.bool_) and stops:
            warn(
                f"{type(part).__name__} stops early on rows that it holds out itself. This splits "
                "queries between training and validation, and does not use the measure of the "
                "loss. Turn it off, for example with early_stopping=False. To hold out whole "
                "queries for boosted regressors, use validation_queries of CalibratedRanker.",
            )
            return


def warn_of_ids(X: Any, queries: Queries, group_column: str | None) -> None:
    """Warn of the first column with query ids as values.

    Such a column has one value per query, different for each query. Other columns can have this
    property, such as the time of a query or, with few queries, its number of documents. The column
    must therefore also equal the ids, be consecutive whole numbers, be text, or have a name of ids.
    """
    rows = np.arange(queries.n_rows) if queries.order is None else queries.order
    starts = np.zeros(queries.n_rows, dtype=bool)
    starts[queries.offsets[:-1]] = True
    first, begins = rows[:_ROWS_AT_FIRST], starts[1:_ROWS_AT_FIRST]
    head = _features.take_rows(X, first)
    if _features.is_dataframe(X):
        columns = (_column(head, place) for place in range(X.shape[1]))
        same = np.array([np.array_equal(_changes(column), begins) for column in columns])
    else:
        same = ((head[1:] != head[:-1]) == begins[:, None]).all(axis=0)
    for place in np.flatnonzero(same).tolist():
        column = _column(X, place)[rows]
        if not np.array_equal(_changes(column), starts[1:]):
            continue
        values = column[starts]
        if len(set(values.tolist())) != len(values):
            continue
        name = str(X.columns[place]) if _features.is_dataframe(X) else ""
        ids = np.asarray(queries.ids)
        if values.dtype.kind in "iuf" and ids.dtype.kind in "iuf":
            equal = np.array_equal(values, ids)
        else:
            equal = list(map(str, values)) == list(map(str, ids))
        if not equal and not _like_ids(values, name):
            continue
        what = "has the query id of each row"
        if not equal:
            what = "looks like a query id: it has a different value in every query"
        remedy = "Drop it from X."
        if name and group_column is None:
            remedy = (
                f"Pass group_column={name!r}, which reads the queries from the column and removes "
                "it from the features, or drop it from X."
            )
        warn(
            f"Column {repr(name) if name else place} of X {what}. The ranker would learn the "
            f"training queries, which does not help for new queries. {remedy}"
        )
        return


def warn_of_label(X: Any, labels: Any) -> None:
    """Warn of a column of a data frame with the labels as values."""
    if (labels == labels[0]).all():
        return
    numbers = _features.numeric_columns(X)
    head = _features.column_values(_features.take_rows(X, slice(0, _FEWEST_LABELS)), numbers)
    for column in compress(numbers, (head == labels[:_FEWEST_LABELS, None]).all(axis=0)):
        if np.array_equal(_features.column_values(X, [column])[:, 0], labels):
            warn(
                f"Column {str(column)!r} of X has the label of each row, y. A ranker with this "
                "column learns nothing else, and new documents have no label. Drop it from X."
            )
            return


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a row differs from the previous row."""
    return np.asarray(values[1:] != values[:-1], dtype=bool)


def _column(X: Any, place: int) -> NDArray[Any]:
    column = _features.column_at(X, place)
    # missing values of pandas cannot be compared
    return column.astype(str) if column.dtype == object else column


def _like_ids(values: NDArray[Any], name: str) -> bool:
    if len(values) < _MANY_QUERIES:
        return False
    text = values.dtype.kind in "OSUT"
    if not text and (values.dtype.kind not in "iuf" or (values != np.floor(values)).any()):
        return False
    if _NAME_OF_IDS.search(name):
        return True
    if text:
        return len(values) >= _MANY_TEXTS
    return float(values.max()) - float(values.min()) == len(values) - 1


class FittedQueries:
    """Hashes of the ids, the features and the labels of the queries of a table.

    Hashes of features and labels are sums over the rows of a query, so the order of rows does not
    matter. Labels are only hashed if they are relevance grades.
    """

    def __init__(self, queries: Queries, X: Any, labels: Any) -> None:
        hashes = _hash_ids(queries)
        self.order = np.argsort(hashes)
        self.ids = hashes[self.order]
        # modulo 2^64; 1 counts the rows
        self.features = queries.sum(_hash_some_columns(X) + np.uint64(1))[self.order]
        self.labels = self.features
        if isinstance(labels, np.ndarray):
            self.labels = queries.sum(_features.hash_values(labels) + np.uint64(1))[self.order]

    def share_ids(self, queries: Queries) -> bool:
        """Whether the tables have a query id in common."""
        return bool(np.isin(_hash_ids(queries), self.ids).any())

    def count_fitted(self, queries: Queries, X: Any, labels: Any) -> int:
        """Return the number of queries with the same rows as a query of this table."""
        other = FittedQueries(queries, X, labels)
        fitted = np.isin(other.features, self.features)
        if self.labels is not self.features:
            fitted &= np.isin(other.labels, self.labels)
        return int(fitted.sum())

    def describe_cut(self, queries: Queries, X: Any, labels: Any) -> str | None:
        """Return a warning text if queries to score were fitted with other rows, else None.

        Rows are the same if their features or their labels are equal: transformers of a pipeline
        can change features between `fit` and `score`. Equal sums over all queries mean that a
        column was permuted, as by `permutation_importance`.
        """
        scored = FittedQueries(queries, X, labels)
        _, here, there = np.intersect1d(self.ids, scored.ids, return_indices=True)
        other = self.features[here] != scored.features[there]
        changed = other & (self.labels[here] != scored.labels[there])
        if not changed.any() or self.features[here].sum() == scored.features[there].sum():
            return None
        example = queries.ids[scored.order[there[changed.argmax()]]]
        example = example.item() if isinstance(example, np.generic) else example
        return (
            f"{other.sum()} of {counted(queries.n_queries, 'query')} to be scored, such as "
            f"{example!r}, were fitted with other rows. The rest of a fitted query does not test "
            "new queries, and the measure of a part of a query is usually larger, because a "
            "shorter query is easier to rank. Split by query: cv=QueryKFold(), or GroupKFold() or "
            "GroupShuffleSplit() with groups=. Give different queries different ids. If the split "
            "is intended, for example to predict the next choice of each user: "
            'warnings.filterwarnings("ignore", category=CutQueriesWarning).'
        )


def _hash_ids(queries: Queries) -> NDArray[np.int64]:
    ids = queries.ids
    if ids.dtype.kind in "iu":
        return ids.astype(np.int64)
    return np.array([_hash_id(one) for one in ids.tolist()], dtype=np.int64)


def _hash_id(one: Any) -> int:
    """Return whole numbers of any type as they are, and hash everything else."""
    whole = int(one) if issubclass(type(one), Real) else None
    if whole is not None and whole == one and -(2**63) <= whole < 2**63:
        return whole
    return hash((one, str(one)))  # str, because Python hashes a long double like the nearest double


def _hash_some_columns(X: Any) -> NDArray[np.uint64]:
    """Return a hash of a few columns of each row."""
    hashes = np.zeros(X.shape[0], dtype=np.uint64)
    for column in np.unique(np.linspace(0, X.shape[1] - 1, _COLUMNS).astype(int)).tolist():
        values = X[:, column] if type(X) is np.ndarray else _features.column_at(X, column)
        hashes = hashes * np.uint64(3) + _features.hash_values(values)
    return hashes
