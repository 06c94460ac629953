"""`distill`: replace a fitted ranker with one regressor that learned its scores."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from sklearn_rankcal.decoders._registry import get_decoder
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.models import DocumentModel, Training
from sklearn_rankcal.models._held_out import LARGEST, hash_queries, query_folds
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._calibrated import CalibratedRanker, check_is_no_ranker, chosen_context
from sklearn_rankcal.rankers._input import Schema
from sklearn_rankcal.rankers._wrappers import predict_scores
from sklearn_rankcal.utils import _estimators, _features
from sklearn_rankcal.utils._messages import check_methods, checks_keywords, print_progress
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints

_UNKNOWN = "no distributions: the teacher does not say what it was fitted to"
_MOST_ROWS = 200_000  # largest number of rows that the student is fitted to
# Number of copies of X: the fewest, or as many as give this number of rows.
_COPIES, _MOST_COPIES, _DRAWN_ROWS = 1, 40, 20_000
_SWAP = 0.3  # probability that a cell of a copy has the value of another row
_ROWS_OF_LEAF = 30  # number of similar rows that exchange cells
_HELD_OUT_OF = 5  # one query in five is held out for `unexplained_`


@checks_keywords
def distill(
    ranker: Any,
    X: Any,
    groups: ArrayLike | None = None,
    regressor: Any = None,
    *,
    context: Any = "auto",
    random_state: int = 0,
    verbose: int = 0,
) -> CalibratedRanker:
    """Fit a small, fast ranker that imitates a fitted ranker.

    A regressor, the student, is fitted to the scores of the ranker, the teacher [1]_. The result
    ranks like the teacher if the regressor can represent its scores, and is as small and fast as
    the regressor. No labels are needed, so you can add queries without labels to X. Read more in
    :ref:`distilling`.

    Parameters
    ----------
    ranker : estimator
        The teacher: a fitted ranker with scores, a pipeline or search that ends in one, or a ranker
        of another library, such as `LGBMRanker`.
    X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
        Rows with the columns that the teacher was fitted to. The student also learns copies of
        them, in which three cells in ten have the value of a similar row, and columns of a query
        the values of another query. There is one copy, or, for few rows, up to 40.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row, in any order. With None, the queries are read from the `group_column`
        of the teacher, if it has one. Otherwise, all rows are one query.
    regressor : estimator, default=None
        The student: a regressor of any library. None means histogram gradient boosting with 100
        trees of 31 leaves, which suit scores without noise.
    context : None, "auto", str or list of str, default="auto"
        Context columns of the student, as in `CalibratedRanker`. With None, the student scores one
        row at a time, as most search engines do.
    random_state : int, default=0
        Seed for the copies. They do not depend on the order of the rows.
    verbose : int, default=0
        If positive, print each step and its time.

    Returns
    -------
    student : CalibratedRanker
        A fitted ranker. ``student.model_.regressor_`` is the fitted regressor, and
        ``student.model_.unexplained_`` the share of the variance of the teacher's scores, within
        queries, that a student does not explain on copies of new queries. The share is measured for
        a second student, fitted to four of five queries and fewer copies, so the first is usually a
        little better.

    Notes
    -----
    By the triangle inequality, the distance between the student's scores and the expected targets
    is at most the distance between student and teacher plus the distance between teacher and
    expected targets. The regret bounds of :doc:`/theory` therefore hold with this sum. If the
    teacher is consistent and the regressor can represent its limit, the student is consistent.

    References
    ----------
    .. [1] C. Bucila, R. Caruana and A. Niculescu-Mizil (2006). Model compression. KDD.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker, distill
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=60, random_state=0)
    >>> ranker = CalibratedRanker().fit(data.X, data.y, groups=data.groups)
    >>> student = distill(ranker, data.X, data.groups, Ridge(), context=None)
    >>> student.model_.regressor_.coef_.shape == (data.X.shape[1],)
    True
    """
    check_is_no_ranker(regressor)
    check_methods(regressor, "regressor", "a regressor", "fit", "predict")
    if regressor is not None and is_classifier(regressor):
        raise TypeError(
            f"The student learns scores, but {type(regressor).__name__} is a classifier. Pass a "
            "regressor."
        )
    teacher = _estimators.innermost_estimator(ranker)
    name = getattr(teacher, "group_column", None)
    loss = getattr(teacher, "loss_", "ndcg")
    student = CalibratedRanker(
        regressor,
        loss=loss if isinstance(loss, Loss) else "ndcg",
        context=context,
        group_column=name,
        random_state=random_state,
        verbose=verbose,
    )
    needs = student._table_needs(get_loss(student.loss))
    schema, table, queries = Schema.of(X, groups, name, needs)
    _check_categories(teacher, schema.dtypes)
    schema.keep(student)
    student.grouped_ = queries is not None
    if queries is None:
        queries = Queries.single(table.shape[0])

    kind = getattr(teacher, "_scores_are", None)

    def scores(rows: Any) -> Floats:
        if rows is table:
            rows = X
        elif name is not None:
            rows = _insert_column(rows, list(X.columns).index(name), X, name)
        found = np.asarray(predict_scores(ranker, rows, groups), dtype=np.float64)
        if not np.isfinite(found).all():
            raise ValueError("The teacher predicts NaN or infinity.")
        if kind == "shares":
            found = np.log(np.maximum(found, np.finfo(np.float64).tiny))
        return queries.center(found)

    if regressor is None:
        regressor = HistGradientBoostingRegressor(
            max_iter=100, max_leaf_nodes=31, learning_rate=0.1, min_samples_leaf=5,
            early_stopping=False, random_state=0,
        )  # fmt: skip
    model = _Student(regressor, context=chosen_context(context, student.grouped_, table))
    started = time.perf_counter()
    drawing = _Drawing(table, scores(table), queries, random_state)
    student.model_ = model.imitate(scores, drawing)
    print_progress(student, f"imitated scores of X and {model.n_copies_} copies", started)
    student.model_.scores_are = "logarithms" if kind else None
    student.loss_ = get_loss(student.loss)
    student.decoder_ = get_decoder("auto", student.loss_.space)
    student.model_.calibrated_over = getattr(teacher, "calibrated_over_", _UNKNOWN)
    student.n_queries_, student.n_queries_dropped_ = queries.n_queries, 0
    return student


def _check_categories(teacher: Any, dtypes: dict[Any, Any]) -> None:
    """Raise ValueError for categories that the teacher was not fitted to."""
    known = teacher._schema.dtypes if hasattr(teacher, "_schema") else {}
    for name in dtypes.keys() & known.keys():
        values = list(dtypes[name].categories)
        places = _features.places_of(values, list(known[name].categories))
        new = [value for value, place in zip(values, places, strict=True) if place < 0]
        if new:
            raise ValueError(
                f"Column {name!r} has categories that the teacher was not fitted to, such as "
                f"{min(new, key=str)!r}. Remove these rows, or set these entries to missing."
            )


class _Student(DocumentModel):
    """A regressor of rows, fitted to the scores of a teacher."""

    scores_are: str | None  # "logarithms" of shares of choices
    calibrated_over: str  # that of the teacher
    unexplained_: float
    n_copies_: int

    def imitate(self, scores: Callable[[Any], Floats], drawing: _Drawing) -> Self:
        """Fit the regressor to the teacher's centred `scores` of X and of copies of X."""
        X, queries = drawing.X, drawing.queries
        n_copies = min(_MOST_COPIES, max(_COPIES, _DRAWN_ROWS // queries.n_rows))
        n_copies = self.n_copies_ = min(n_copies, max(0, _MOST_ROWS // queries.n_rows - 1))
        tables = [X, *(drawing.copy(number) for number in range(n_copies))]
        learned = [drawing.scores, *(scores(table) for table in tables[1:])]
        self._choose_columns(Training(X, None, queries))  # copies would hide differences of queries
        test = drawing.copy(n_copies)
        self.unexplained_ = self._unexplained(tables, learned, test, scores(test), queries)
        return self._fit_tables(tables, learned, queries)

    def _fit_tables(self, tables: list[Any], learned: list[Floats], queries: Queries) -> Self:
        """Fit the regressor to the scores of several tables of the same queries."""
        codes = [queries.codes + number * queries.n_queries for number in range(len(tables))]
        repeated = Queries.from_groups(np.concatenate(codes))
        data = Training(_stack_rows(tables), np.concatenate(learned), repeated)
        return self._fit_regressor(_estimators.clone(self.regressor), data)

    def _unexplained(
        self, tables: list[Any], learned: list[Floats], test: Any, wanted: Floats, queries: Queries
    ) -> float:
        """Return the share of the scores of new queries that a student does not explain.

        This student learns four of five queries and a third of their copies, in about a third of
        the time of the final student. It is tested on a copy of the fifth query. With fewer than
        five queries, it is trained and tested on all.
        """
        check, rows, held = copy.copy(self), np.arange(queries.n_rows), np.arange(queries.n_rows)
        some = tested = queries
        if queries.n_queries >= _HELD_OUT_OF:
            out = query_folds(tables[0], queries, _HELD_OUT_OF) == 0
            (rows, some), (held, tested) = queries.select(~out), queries.select(out)
        kept = 1 + (len(tables) - 1) // 3
        check._fit_tables(
            [_features.take_rows(table, rows) for table in tables[:kept]],
            [given[rows] for given in learned[:kept]],
            some,
        )
        wanted = wanted[held]
        missed = wanted - tested.center(check.predict(_features.take_rows(test, held), tested))
        return float(missed @ missed / ((wanted @ wanted) or 1.0))


class _Drawing:
    """Creates copies of a table in which some cells have the value of a similar row.

    Rows are similar if they are in the same leaf of a regression tree fitted to the teacher's
    scores. Each copy uses a new tree.
    """

    def __init__(self, X: Any, scores: Floats, queries: Queries, seed: int) -> None:
        self.X, self.scores, self.queries, self._seed = X, scores, queries, seed
        # rows are drawn in the order of their contents, not in the order of the user
        rows = np.arange(queries.n_rows)
        per_query, _ = hash_queries(X, queries.gather(rows), queries)
        self._rows = np.lexsort((_features.hash_rows(X, rows), per_query[queries.codes]))
        columns = _features.numeric_columns(X)
        self._numbers = None
        if columns:
            numbers = np.asarray(_features.column_values(X, columns)[self._rows], dtype=np.float64)
            self._numbers = np.clip(numbers, -LARGEST, LARGEST)
        self._constant = _constant_columns(X, queries)
        self._first = queries.gather(rows)[queries.offsets[:-1]]  # a row of each query
        self._order = np.argsort(per_query, kind="stable")

    def copy(self, number: int) -> Any:
        """Return a copy with the columns of X and the same queries."""
        random = np.random.default_rng((self._seed, number))
        n_rows = len(self._rows)
        leaf_of = np.zeros(n_rows, dtype=np.int64)
        if self._numbers is not None:
            tree = DecisionTreeRegressor(
                min_samples_leaf=_ROWS_OF_LEAF, max_features=0.3, random_state=number
            )
            leaf_of = tree.fit(self._numbers, self.scores[self._rows]).apply(self._numbers)
        by_leaf = np.argsort(leaf_of, kind="stable")
        size = np.bincount(leaf_of)
        first = (np.cumsum(size) - size)[leaf_of]

        n_queries = len(self._order)
        # columns of the query are swapped together, because they describe one query
        drawn_queries = np.arange(n_queries)
        swapped_queries = self._order[random.random(n_queries) < _SWAP]
        drawn_queries[swapped_queries] = self._order[
            random.integers(0, n_queries, len(swapped_queries))
        ]

        def rows_of_cells(column: int) -> Ints:
            if self._constant[column]:
                return self._first[drawn_queries[self.queries.codes]]
            drawn = by_leaf[first + (random.random(n_rows) * size[leaf_of]).astype(np.int64)]
            swapped = random.random(n_rows) < _SWAP
            rows = np.empty(n_rows, dtype=np.int64)
            rows[self._rows] = self._rows[np.where(swapped, drawn, np.arange(n_rows))]
            return rows

        return _take_cells(self.X, rows_of_cells)


def _constant_columns(X: Any, queries: Queries) -> Bools:
    """Return which columns are constant within each query."""
    constant = np.zeros(X.shape[1], dtype=bool)
    if sparse.issparse(X):
        return constant
    for column in range(X.shape[1]):
        keys = _features.hash_values(_features.column_at(X, column))
        constant[column] = queries.have_equal(keys)
    return constant


def _insert_column(X: Any, place: int, source: Any, name: str) -> Any:
    """Insert the column `name` of another data frame into `X` at a place."""
    if not hasattr(X, "iloc"):
        return X.clone().insert_column(place, source[name])
    table = X.copy()
    table.insert(place, name, source[name].array)
    return table


def _stack_rows(tables: list[Any]) -> Any:
    """Concatenate tables with the same columns vertically."""
    first = tables[0]
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(tables, ignore_index=True)
    if _features.is_dataframe(first):
        import polars as pl

        return pl.concat(tables)
    return sparse.vstack(tables).tocsr() if sparse.issparse(first) else np.concatenate(tables)


def _take_cells(X: Any, rows: Callable[[int], Ints]) -> Any:
    """Return a table of the type of `X` where column j has the values of the rows ``rows(j)``."""
    if hasattr(X, "iloc"):
        import pandas as pd

        columns = [X.iloc[:, j].iloc[rows(j)].reset_index(drop=True) for j in range(X.shape[1])]
        return pd.concat(columns, axis=1)
    if _features.is_dataframe(X):
        return X.select([X[name][rows(j)] for j, name in enumerate(X.columns)])
    if sparse.issparse(X):
        table = X.tocsc()
        return sparse.hstack([table[:, [j]][rows(j)] for j in range(X.shape[1])]).tocsr()
    columns = [X[rows(j), j] for j in range(X.shape[1])]
    return np.stack(columns, axis=1)
