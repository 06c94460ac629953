"""`DistilledModel`: one fast regressor that imitates another model."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from sklearn_rankcal.models._document import DocumentModel
from sklearn_rankcal.models._folds import (
    LARGEST,
    hash_queries,
    query_folds,
    without_sparse_columns,
)
from sklearn_rankcal.models._model import Model
from sklearn_rankcal.models._training import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.stacking._stacked import StackedModel
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.utils._catboost import clone
from sklearn_rankcal.utils._features import (
    column_values,
    numeric_columns,
    stack_rows,
    take_cells,
    take_rows,
)
from sklearn_rankcal.utils._messages import print_progress
from sklearn_rankcal.utils._parameters import check_count, check_methods, check_number
from sklearn_rankcal.utils._row_hashes import hash_rows
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

_MOST_ROWS = 200_000  # largest number of rows that the student is fitted to
_COPIES, _MOST_COPIES, _DRAWN_ROWS = 1, 40, 20_000  # number of copies if n_copies is None
_ROWS_OF_LEAF = 30  # number of similar rows that exchange cells
_HELD_OUT_OF = 5  # one query in five is held out for `unexplained_`


class DistilledModel(DocumentModel):
    """Model of scores: a regressor, the student, that imitates another model, the teacher.

    One regressor replaces many models [1]_. `fit` fits the teacher to the targets, and the student
    to the scores of the teacher, centred in each query. The student learns the training rows and
    modified copies of them, which need no labels. In a copy, some cells have the value of another
    row, and columns that are constant within queries have the values of another query.

    Parameters
    ----------
    teacher : model, default=None
        A model of scores. `fit` fits a clone of it. None means `StackedModel`.
    regressor : estimator, default=None
        The student: a regressor of any library. None means `default_student`.
    context : None, "auto", str or list of str, default="auto"
        Context columns of the student, as in `DocumentModel`. With None, the student can score one
        row at a time.
    n_copies : int, default=None
        Number of copies of each training query. None means 1, or, for few rows, as many as give
        20,000 rows in copies, but at most 40. Copies are omitted if the student would otherwise
        be fitted to more than 200,000 rows.
    swap : float, default=0.3
        Probability that a cell of a copy has the value of another row.
    random_state : int, default=0
        Seed for the copies. They do not depend on the order of the rows.
    verbose : int, default=0
        If positive, `fit` prints each step and its time.

    Attributes
    ----------
    regressor_ : estimator
        The fitted student.
    unexplained_ : float
        Share of the variance of the teacher's scores, within queries, that a student does not
        explain on copies of new queries. 0 means that it repeats the teacher. The share is measured
        for a second student, fitted to four of five queries and fewer copies, so `regressor_` is
        usually a little better. With fewer than five queries, none are held out.
    n_drawn_ : int
        Number of rows in copies.
    context_ : dict of str to list
        As in `DocumentModel`.

    Notes
    -----
    By the triangle inequality, the distance between the student's scores and the expected targets
    is at most the distance between student and teacher plus the distance between teacher and
    expected targets. The regret bounds of :doc:`/theory` therefore hold with this sum, and its
    first part can be measured without labels. If the teacher is consistent and the regressor can
    represent its limit, the student is consistent.

    `fit` costs as much as the fit of the teacher, its predictions for the copies, one fit of the
    student to all rows, and one to about a third of them for `unexplained_`.

    References
    ----------
    .. [1] C. Bucila, R. Caruana and A. Niculescu-Mizil (2006). Model compression. KDD.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.models import DistilledModel
    >>> data = make_ranking(n_queries=60, random_state=0)
    >>> ranker = CalibratedRanker(DistilledModel()).fit(data.X, data.y, groups=data.groups)
    >>> type(ranker.model_.regressor_).__name__
    'HistGradientBoostingRegressor'
    """

    stops_early = False  # the student learns all scores of its teacher

    def __init__(
        self,
        teacher: Any = None,
        regressor: Any = None,
        *,
        context: str | Sequence[str] | None = "auto",
        n_copies: int | None = None,
        swap: float = 0.3,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(regressor, context=context)
        self.teacher = teacher
        self.n_copies = n_copies
        self.swap = swap
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, training: Training) -> Self:
        """Fit the teacher to the targets, and then the student to the scores of the teacher.

        Parameters
        ----------
        training : Training
            Documents, targets and queries, and labels if the teacher needs them. Rows of copies
            have the weights of the original rows.

        Returns
        -------
        self : DistilledModel
            The fitted model.

        Raises
        ------
        ValueError
            If a parameter is out of range, or if the teacher predicts NaN or infinity.
        TypeError
            If the student is a classifier, or if the teacher is not a model of scores.
        """
        self._check()
        teacher = StackedModel() if self.teacher is None else self.teacher
        if not isinstance(teacher, Model) or teacher.space != SCORES:
            raise TypeError(
                "teacher must be a model of scores, such as StackedModel() or "
                f"DocumentModel(regressor); got {self.teacher!r}. For a fitted ranker, use the "
                "function distill."
            )
        started = time.perf_counter()
        training = replace(training, X=without_sparse_columns(training.X))
        teacher = clone(teacher).fit(training)
        print_progress(self, f"fitted the teacher {type(teacher).__name__}", started)
        queries = training.queries
        return self.learn(lambda table: teacher.predict(table, queries), training)

    @property
    def needs_dense(self) -> bool:  # type: ignore[override]
        """Whether the teacher needs a dense table of numbers."""
        return self.teacher is None or getattr(self.teacher, "needs_dense", False)

    def learners(self) -> Iterator[Any]:
        """Yield the learners of the teacher. The student learns scores without noise."""
        if self.teacher is not None:
            yield from self.teacher.learners()

    def _check(self) -> None:
        check_methods(self.regressor, "regressor", "a regressor", "fit", "predict")
        if self.regressor is not None and is_classifier(self.regressor):
            raise TypeError(
                f"The student learns scores, but {type(self.regressor).__name__} is a classifier. "
                "Pass a regressor."
            )
        if self.n_copies is not None and (isinstance(self.n_copies, bool) or self.n_copies != 0):
            check_count(self.n_copies, "n_copies", or_none=True)
        check_number(self.swap, "swap", "[0, inf)")
        if self.swap > 1:
            raise ValueError(f"swap must be a probability; got {self.swap!r}.")

    def learn(self, scores: Callable[[Any], Floats], training: Training) -> Self:
        """Fit the student to the scores of a function, for X and for copies of X.

        Parameters
        ----------
        scores : callable
            ``scores(table)`` returns the teacher's score of each row. The table has the columns and
            queries of X.
        training : Training
            X, queries and weights. Targets are not needed.

        Returns
        -------
        self : DistilledModel
            The fitted model.
        """
        X, queries = training.X, training.queries
        self._check()
        started = time.perf_counter()
        own = _checked(scores(X), queries)
        n_copies = self.n_copies
        if n_copies is None:
            n_copies = min(_MOST_COPIES, max(_COPIES, _DRAWN_ROWS // queries.n_rows))
        n_copies = min(n_copies, max(0, _MOST_ROWS // queries.n_rows - 1))
        drawing = _Drawing(X, own, queries, self.swap, self.random_state)
        copies = [drawing.copy(number) for number in range(n_copies)]
        learned = [own, *(_checked(scores(drawn), queries) for drawn in copies)]
        print_progress(self, f"the teacher scored {n_copies} drawn copies", started)
        self._choose_columns(X, queries)  # copies would hide differences between queries
        test = drawing.copy(n_copies)
        wanted = _checked(scores(test), queries)
        self.unexplained_ = self._unexplained(
            [X, *copies], learned, test, wanted, queries, training.weight
        )
        self._fit_student([X, *copies], learned, queries, training.weight)
        self.n_drawn_ = n_copies * queries.n_rows
        return self

    def _fit_student(
        self, tables: list[Any], learned: list[Floats], queries: Queries, weight: Floats | None
    ) -> None:
        """Fit a student to the teacher's scores of several tables of the same queries."""
        codes = [queries.codes + number * queries.n_queries for number in range(len(tables))]
        repeated = Queries.from_groups(np.concatenate(codes))
        if weight is not None:
            weight = np.tile(weight, len(tables))
        student = default_student() if self.regressor is None else clone(self.regressor)
        self._fit_regressor(
            student, Training(stack_rows(tables), np.concatenate(learned), repeated, weight)
        )

    def _unexplained(
        self,
        tables: list[Any],
        learned: list[Floats],
        test: Any,
        wanted: Floats,
        queries: Queries,
        weight: Floats | None,
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
        check._fit_student(
            [take_rows(table, rows) for table in tables[:kept]],
            [given[rows] for given in learned[:kept]],
            some,
            None if weight is None else weight[rows],
        )
        wanted = wanted[held]
        missed = wanted - tested.center(check.predict(take_rows(test, held), tested))
        return float(missed @ missed / ((wanted @ wanted) or 1.0))


def default_student() -> HistGradientBoostingRegressor:
    """Get the default student of `DistilledModel` and `distill`.

    It is histogram gradient boosting with 100 trees of 31 leaves. These settings suit targets
    without noise, like the scores of a model.

    Returns
    -------
    regressor : HistGradientBoostingRegressor
        The unfitted regressor.

    Examples
    --------
    >>> from sklearn_rankcal.models import default_student
    >>> default_student().max_leaf_nodes
    31
    """
    return HistGradientBoostingRegressor(
        max_iter=100, max_leaf_nodes=31, learning_rate=0.1, min_samples_leaf=5,
        early_stopping=False, random_state=0,
    )  # fmt: skip


class _Drawing:
    """Creates copies of a table in which some cells have the value of a similar row.

    Rows are similar if they are in the same leaf of a regression tree fitted to the teacher's
    scores. Each copy uses a new tree.
    """

    def __init__(self, X: Any, scores: Floats, queries: Queries, swap: float, seed: int) -> None:
        self._X, self._swap, self._seed = X, swap, seed
        # rows are drawn in the order of their contents, not in the order of the user
        rows = np.arange(queries.n_rows)
        per_query, _ = hash_queries(X, queries.gather(rows), queries)
        self._rows = np.lexsort((hash_rows(X, rows), per_query[queries.codes]))
        columns = numeric_columns(X)
        self._numbers = None
        if columns:
            numbers = np.asarray(column_values(X, columns)[self._rows], dtype=np.float64)
            self._numbers = np.clip(numbers, -LARGEST, LARGEST)
        self._scores = scores[self._rows]
        self._constant = _constant_columns(X, queries)
        self._first = queries.gather(rows)[queries.offsets[:-1]]  # a row of each query
        self._order, self._codes = np.argsort(per_query, kind="stable"), queries.codes

    def copy(self, number: int) -> Any:
        """Return a copy with the columns of X and the same queries."""
        random = np.random.default_rng((self._seed, number))
        n_rows = len(self._rows)
        leaf_of = np.zeros(n_rows, dtype=np.int64)
        if self._numbers is not None:
            tree = DecisionTreeRegressor(
                min_samples_leaf=_ROWS_OF_LEAF, max_features=0.3, random_state=number
            )
            leaf_of = tree.fit(self._numbers, self._scores).apply(self._numbers)
        by_leaf = np.argsort(leaf_of, kind="stable")
        size = np.bincount(leaf_of)
        first = (np.cumsum(size) - size)[leaf_of]

        n_queries = len(self._order)
        # columns of the query are swapped together, because they describe one query
        drawn_queries, codes = np.arange(n_queries), self._codes
        swapped_queries = self._order[random.random(n_queries) < self._swap]
        drawn_queries[swapped_queries] = self._order[
            random.integers(0, n_queries, len(swapped_queries))
        ]

        def rows_of_cells(column: int) -> Ints:
            if self._constant[column]:
                return self._first[drawn_queries[codes]]
            drawn = by_leaf[first + (random.random(n_rows) * size[leaf_of]).astype(np.int64)]
            swapped = random.random(n_rows) < self._swap
            rows = np.empty(n_rows, dtype=np.int64)
            rows[self._rows] = self._rows[np.where(swapped, drawn, np.arange(n_rows))]
            return rows

        return take_cells(self._X, rows_of_cells)


def _constant_columns(X: Any, queries: Queries) -> Bools:
    """Return which columns are constant within each query."""
    constant = np.zeros(X.shape[1], dtype=bool)
    if sparse.issparse(X):
        return constant
    rows = np.arange(queries.n_rows)
    for column in range(X.shape[1]):
        if hasattr(X, "iloc"):
            table = X.iloc[:, [column]]
        else:
            table = X[:, [column]]
        constant[column] = queries.have_equal(hash_rows(table, rows))
    return constant


def _checked(scores: Any, queries: Queries) -> Floats:
    """Return the scores of a teacher, centred in each query."""
    scores = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(scores).all():
        raise ValueError("The teacher predicts NaN or infinity.")
    return queries.center(scores)
