"""A model that learns the scores of another: one fast regressor in the place of a stack."""

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

# The student's table has at most so many rows; of more rows, fewer copies are drawn, down to none.
_MOST_ROWS = 200_000
_COPIES, _MOST_COPIES, _DRAWN_ROWS = 1, 40, 20_000  # how many are drawn if not given
_ROWS_OF_LEAF = 30  # among which the cells of a row are exchanged
_HELD_OUT_OF = 5  # one query of five is new to the student that `unexplained_` is measured with


class DistilledModel(DocumentModel):
    """Fit a regressor to the scores of a fitted model, its teacher, and forget the teacher.

    The regressor, the student, replaces many models by one [1]_. It is fitted to the scores that
    the teacher predicts on the training rows and on drawn rows, centred in each query. Drawn rows
    are copies of the training queries in which some cells have the value of another row, and
    columns that are constant in every query have the values of another query. The teacher has not
    been fitted to drawn rows, and they cost no labels.

    Parameters
    ----------
    teacher : model, default=None
        A model of scores. It is cloned and fitted to the targets first. None means
        `StackedModel`.
    regressor : estimator, default=None
        The student: a regressor of any library. None means `default_student`.
    context : None, "auto", str or list of str, default="auto"
        Context columns of the student, as in `DocumentModel`. None makes a student that can score
        one row at a time.
    n_copies : int, default=None
        How many copies of each training query are drawn. None draws one, of fewer rows so many that
        there are 20,000 drawn rows, but at most 40. There are always fewer if the student would be
        fitted to more than 200,000 rows.
    swap : float, default=0.3
        The probability with which a cell of a copy has the value of another row.
    random_state : int, default=0
        Seed of the draw. The draw does not depend on the order of the rows.
    verbose : int, default=0
        If positive, `fit` prints what it does and how long it takes.

    Attributes
    ----------
    regressor_ : estimator
        The fitted student.
    unexplained_ : float
        The share of the variance of the teacher's scores inside queries that a student does not
        explain on copies of queries that it has not seen. This student learns four of five queries
        and fewer copies, so that the one that is kept usually misses a little less. It repeats the
        teacher if the share is 0. With fewer than five queries, none are held out.
    n_drawn_ : int
        The number of drawn rows.
    context_
        As in `DocumentModel`.

    Notes
    -----
    By the triangle inequality, the distance between the student's scores and the conditional
    expectations of the targets is at most that between student and teacher plus that between
    teacher and expectations. So the regret bounds of :doc:`/theory` hold with the sum, and the
    first part can be measured without labels. If the teacher is consistent and the regressor can
    express its limit, the student is consistent.

    The cost of `fit` is that of the teacher, its prediction of the drawn rows, one fit of the
    student to all rows, and one to about a third of them, for `unexplained_`.

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
        """Fit the teacher to the targets, and then the student to the teacher.

        Parameters
        ----------
        training : Training
            The student's rows have the weights of the rows that they are copies of. The labels are
            for a teacher such as `StackedModel`.

        Returns
        -------
        self : DistilledModel

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
                f"DocumentModel(regressor); got {self.teacher!r}. The function distill takes "
                "rankers that are already fitted."
            )
        started = time.perf_counter()
        training = replace(training, X=without_sparse_columns(training.X))
        teacher = clone(teacher).fit(training)
        print_progress(self, f"fitted the teacher {type(teacher).__name__}", started)
        queries = training.queries
        return self.learn(lambda table: teacher.predict(table, queries), training)

    @property
    def needs_dense(self) -> bool:  # type: ignore[override]
        """Whether the teacher takes only dense tables of numbers."""
        return self.teacher is None or getattr(self.teacher, "needs_dense", False)

    def learners(self) -> Iterator[Any]:
        """Yield those of the teacher, as scores of a teacher are not random."""
        if self.teacher is not None:
            yield from self.teacher.learners()

    def _check(self) -> None:
        check_methods(self.regressor, "regressor", "a regressor", "fit", "predict")
        if self.regressor is not None and is_classifier(self.regressor):
            raise TypeError(
                "The student learns scores, which are real numbers, and "
                f"{type(self.regressor).__name__} is a classifier. Pass a regressor."
            )
        if self.n_copies is not None and (isinstance(self.n_copies, bool) or self.n_copies != 0):
            check_count(self.n_copies, "n_copies", or_none=True)
        check_number(self.swap, "swap", "[0, inf)")
        if self.swap > 1:
            raise ValueError(f"swap is a probability; got {self.swap!r}.")

    def learn(self, scores: Callable[[Any], Floats], training: Training) -> Self:
        """Fit the student to the scores of a function, for X and for drawn copies of X.

        `scores` receives a table with the queries of X, and returns the teacher's score of each
        row. Targets are not needed.
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
        self._choose_columns(X, queries)  # drawn rows would hide what differs between queries
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
        """Return what a student misses of the scores of queries that it has not seen.

        It learns four of five queries and a third of their copies, which takes about a third of the
        time of the student that is kept, and is tested on a copy of the fifth query. Of fewer than
        five queries it learns and is tested on all.
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
    """Return the regressor of `DistilledModel` if none is given: 100 trees of 31 leaves.

    Its settings are for targets without noise, which the scores of a model are.
    """
    return HistGradientBoostingRegressor(
        max_iter=100, max_leaf_nodes=31, learning_rate=0.1, min_samples_leaf=5,
        early_stopping=False, random_state=0,
    )  # fmt: skip


class _Drawing:
    """Draws copies of a table in which some cells have the value of a similar row.

    Rows are similar if a regression tree of the teacher's scores puts them into the same leaf. Each
    copy has a tree of its own.
    """

    def __init__(self, X: Any, scores: Floats, queries: Queries, swap: float, seed: int) -> None:
        self._X, self._swap, self._seed = X, swap, seed
        # The draw is of rows in the order of their contents, not in that of the user.
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
        # Columns of the query come from one other query, as no query has two users at once.
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
    """Return which columns have the same value in all rows of each query."""
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
