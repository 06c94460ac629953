"""A model that fits a regressor to one row per document, and predicts a score for each document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

from sklearn_rankcal.models._classes import ClassReader, last_step, make_task, takes_weights
from sklearn_rankcal.models._context_table import ContextTableModel
from sklearn_rankcal.models._early_stopping import can_stop_early, check_stopping
from sklearn_rankcal.models._folds import fill_empty_columns
from sklearn_rankcal.models._sums import DocumentSums, Sums
from sklearn_rankcal.models._training import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._catboost import clone
from sklearn_rankcal.utils._features import (
    column_values,
    is_dataframe,
    numeric_table,
    take_rows,
)
from sklearn_rankcal.utils._memory import PREDICTION_BYTES, rows_per_block
from sklearn_rankcal.utils._parameters import check_flag, check_methods
from sklearn_rankcal.utils._scales import check_weight_range, mean_one, target_unit
from sklearn_rankcal.utils._sklearn_compat import FlatTrees, tags_of
from sklearn_rankcal.utils._threads import ROWS_FOR_THREADS, allowed_threads, threads_for
from sklearn_rankcal.utils._typing import Floats, Ints

_POISSON = ("poisson", "count:poisson")  # the names in scikit-learn, LightGBM and XGBoost
_BOOSTING = (HistGradientBoostingRegressor, HistGradientBoostingClassifier)
# Bytes of a table for the `predict` of histogram boosting. It walks through the whole table once
# for each tree, and faster if the table stays in the processor's cache. But several threads wait
# for each other after each tree and block, which takes long on a machine that is busy with other
# work, so that they get larger blocks.
_BOOSTING_BYTES = 1 << 22
_BOOSTING_BYTES_OF_THREADS = 1 << 25


def default_regressor(n_rows: int, *, stops_early: bool = False) -> HistGradientBoostingRegressor:
    """Return the regressor that is used when none is given.

    It is histogram gradient boosting with 100 trees, learning rate 0.05 and
    ``l2_regularization=50``. The trees have 7 leaves up to 10,000 rows, 15 leaves up to 100,000
    rows and 31 leaves above. :ref:`defaults` describes how these settings were chosen.

    Parameters
    ----------
    n_rows : int
        Number of training rows.
    stops_early : bool, default=False
        Whether validation queries determine the number of trees. If so, there are at most 1,000.

    Returns
    -------
    regressor : HistGradientBoostingRegressor

    Examples
    --------
    >>> from sklearn_rankcal.models import default_regressor
    >>> default_regressor(5000).max_leaf_nodes
    7
    """
    return HistGradientBoostingRegressor(
        learning_rate=0.05,
        max_iter=1000 if stops_early else 100,
        max_leaf_nodes=7 if n_rows <= 10_000 else 15 if n_rows <= 100_000 else 31,
        # scikit-learn's default is 20, which would forbid every split of few rows.
        min_samples_leaf=min(20, max(1, n_rows // 50)),
        l2_regularization=50.0,
        early_stopping=False,
    )


@dataclass(frozen=True, eq=False)
class ZscoreSlopes(Sums):
    """The sum over queries of the slopes of z-scores, one for each described column."""

    total: Floats
    n_queries: int


@dataclass(frozen=True, eq=False)
class ClosedFormSums(Sums):
    """What `DocumentModel.solve` needs of some queries."""

    documents: DocumentSums
    slopes: ZscoreSlopes


class DocumentModel(ContextTableModel):
    """Fit a regressor to one row per document, and predict a score for each document.

    Parameters
    ----------
    regressor : estimator, default=None
        The regressor, which is cloned and fitted on (row, target). None means `default_regressor`.
        A classifier is fitted to weighted classes, and the model computes expected targets from its
        `predict_proba`; see the notes.
    center : bool, default=True
        Whether to subtract from every target the (weighted) mean of the targets of its query, which
        changes no ranking. It is ignored for classifiers, and for regressors that minimise the
        Poisson deviance, which is a Bregman divergence, so that they learn the expectations too.
    context : None, str, list of str or "auto", default=None
        Context columns to add, which compare a document with the other documents of its query.
        "zscore" is (x - mean) / sd, "difference" is x - mean, and "rank" is the rank of x, all
        within the query. "share" describes the columns of categories of a data frame: the share of
        the query's rows that have the same category. ``"auto"`` adds the z-scores of those columns
        whose level or spread differs between the queries of `fit`, and shares, see the notes.

    Attributes
    ----------
    context_ : dict of str to list
        The kinds of context that were added, and for each the columns of X that it describes:
        indices, or names if X is a data frame. Empty if no context was added. Parameters of the
        regressor that name columns can exclude some (:ref:`column-parameters`).
    regressor_ : estimator
        The fitted regressor.
    levels_ : ndarray of shape (n_levels,)
        The distinct targets, in ascending order. Only if a classifier learned them as classes.
    eta_ : float
        The largest utility. Only if a classifier learned shares of it as weights.

    Notes
    -----
    ``context="auto"`` leaves out a column if the share of its variance that lies between queries
    is below 0.02 by more than two standard errors, and queries have ten documents or more in the
    mean. Its z-scores then say nearly the same as the column itself. A column of categories gets
    shares, also those of ``"share"``, unless all rows of each query have the same category. A
    missing category is a category.

    :ref:`classifiers` describes how a classifier learns targets: each distinct target is a class,
    if there are at most 100 that depend on the labels of the documents alone, and otherwise each
    document has class 1 with the weight v / eta, and class 0 with the weight 1 - v / eta, where v
    is its target and eta the largest one.

    Examples
    --------
    The first column has a level of its own in each query, and the second does not.

    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal.models import DocumentModel, Training
    >>> from sklearn_rankcal.queries import Queries
    >>> rng, queries = np.random.default_rng(0), Queries.uniform(200, 50)
    >>> X = rng.normal(size=(10_000, 2))
    >>> X[:, 0] += queries.repeat(rng.normal(size=200))
    >>> DocumentModel(Ridge(), context="auto").fit(Training(X, X[:, 1], queries)).context_
    {'zscore': [0]}
    """

    _reader: ClassReader | None

    def __init__(
        self,
        regressor: Any = None,
        *,
        center: bool = True,
        context: str | Sequence[str] | None = None,
    ) -> None:
        self.regressor = regressor
        self.center = center
        self.context = context

    def fit(self, training: Training) -> Self:
        """Fit the regressor.

        Parameters
        ----------
        training : Training
            Its validation queries, if there are any, determine the number of iterations of a
            boosted regressor.

        Returns
        -------
        self : DocumentModel

        Raises
        ------
        ValueError
            If `context` is given for a table without columns that it describes, if the regressor
            does not take weights that are needed, or if a classifier cannot learn the targets.
        TypeError
            If there are validation queries and the regressor cannot stop early.
        """
        check_flag(self.center, "center")
        check_methods(self.regressor, "regressor", "a regressor", "fit", "predict")
        early = training.validation is not None
        if self.regressor is None:
            regressor = default_regressor(training.X.shape[0], stops_early=early)
        else:
            regressor = clone(self.regressor)
        check_stopping(regressor, early)
        self._choose_columns(training.X, training.queries)
        if not early and self._fits_in_blocks(regressor, training.X):
            try:
                return self._fit_in_blocks(training)
            except ValueError:
                # NaN, products that overflow, or a matrix that rounding makes singular. Ridge
                # itself, which is fitted below, solves such a system or says what is wrong.
                pass
        return self._fit_regressor(regressor, training)

    @property
    def stops_early(self) -> bool:  # type: ignore[override]
        """Whether validation queries can choose the number of iterations of the regressor."""
        return can_stop_early(self.regressor)

    def _fits_in_blocks(self, regressor: Any, X: Any) -> bool:
        """Whether to add up sums of blocks, and never make the whole table with its context."""
        if type(regressor) is not Ridge or not isinstance(X, np.ndarray):
            return False
        # Ridge checks its parameters, and has several solvers: only the penalty may be another.
        usual = {**regressor.get_params(), "alpha": 1.0} == Ridge().get_params()
        positive = isinstance(regressor.alpha, int | float) and 0 < regressor.alpha < np.inf
        return bool(self._kinds) and len(X) >= ROWS_FOR_THREADS and usual and positive

    def _fit_in_blocks(self, training: Training) -> Self:
        X = training.X
        weight_arguments(self.regressor, training.weight)
        self.prepare(X, self._columns, float(np.abs(self._centred(training)).max()))
        width = X.shape[1] + len(self._columns) * len(self._kinds)
        step = rows_per_block(8 * width, PREDICTION_BYTES)
        some = replace(training, labels=None)
        parts = (self.sums(some.take(*part)) for part in training.queries.chunks(step))
        return self.solve(reduce(add, parts))

    def _centred(self, training: Training) -> Floats:
        """Return the targets that a regressor of means learns, in their own unit."""
        if not self.center:
            return training.targets
        return training.queries.center(training.targets, training.weight)

    def _fit_regressor(self, regressor: Any, training: Training) -> Self:
        """Fit a regressor to the table of X with the context columns that were chosen."""
        X, queries = training.X, training.queries
        self.match_parameters(regressor, X)
        rows, fitted, weight = self._encode(regressor, training)
        weights = weight_arguments(regressor, weight, is_default=self.regressor is None)
        # Histogram boosting converts every array to float64. A table of float64 saves that copy.
        self._dtype = np.float64 if isinstance(regressor, _BOOSTING) else None
        table, slopes = self._table(X, queries)
        if rows is not None:
            table = take_rows(table, rows)
        if isinstance(regressor, _BOOSTING):
            table = fill_empty_columns(table)
        as_scores = self._scaled_back if self._reader is None else self._reader.as_scores
        with threads_for(len(fitted)):
            self.regressor_ = self._fit_to_table(
                regressor, table, fitted, weights, training.validation, as_scores
            )
        self._inverse_scale = slopes
        return self

    def prepare(self, X: Any, columns: list[Any], largest: float) -> Self:
        """Set what all data together determine, before parts of them are read one by one.

        X is a table of the form of all parts, which may have no rows, `columns` are those that
        context columns describe, and `largest` is the largest absolute (centred) target.
        """
        self._set_columns(X, columns)
        self._forget_classes()
        self._dtype, self._unit = None, target_unit(largest)
        return self

    def _forget_classes(self) -> None:
        """Remove what an earlier fit of a classifier has set."""
        self._reader = None
        for name in ("levels_", "eta_"):
            self.__dict__.pop(name, None)

    def read(self, training: Training) -> tuple[Any, Floats, ZscoreSlopes]:
        """Return the table and the targets that the regressor sees of some queries, and slopes.

        The slopes of all parts, added, are needed by `finish`.
        """
        n_queries = training.queries.n_queries
        table, mean = self._table(training.X, training.queries)
        mean = np.zeros(len(self._columns)) if mean is None else mean
        slopes = ZscoreSlopes(mean * n_queries, n_queries)
        return table, self._centred(training) / self._unit, slopes

    def finish(self, regressor: Any, slopes: ZscoreSlopes) -> Self:
        """Predict from now on by a regressor that was fitted to what `read` returned."""
        self.regressor_ = regressor
        self._inverse_scale = slopes.total / slopes.n_queries if self._kinds else None
        return self

    def sums(self, training: Training) -> ClosedFormSums:
        """Compute what `solve` needs of some queries, after `prepare`. Such sums can be added.

        It is for the regressors `Ridge` and `LinearRegression`.
        """
        table, targets, slopes = self.read(training)
        documents = DocumentSums.of(numeric_table(table), targets, training.weight)
        return ClosedFormSums(documents, slopes)

    def solve(self, sums: ClosedFormSums) -> Self:
        """Fit the regressor in closed form to the queries of the sums."""
        return self.finish(sums.documents.solve(self.regressor), sums.slopes)

    def _encode(
        self, regressor: Any, training: Training
    ) -> tuple[Ints | None, NDArray[Any], Floats | None]:
        """Return the rows to which the regressor is fitted (None: all), their targets and weights.

        The attributes that convert its predictions to scores are set.
        """
        self._forget_classes()
        if learns_counts(regressor):
            fitted = as_counts(training.targets, training.queries)
            # A penalty of the leaves is about a sum of second derivatives, which are the means.
            self._unit = float(np.average(fitted, weights=training.weight)) or 1.0
            return None, fitted / self._unit, training.weight
        if not is_classifier(regressor):
            centred = self._centred(training)
            self._unit = target_unit(float(np.abs(centred).max()))
            return None, centred / self._unit, training.weight
        task = make_task(regressor, training)
        self._reader = task.reader
        if task.reader.of_shares:
            self.eta_ = float(task.reader.levels[1])
        else:
            self.levels_ = task.reader.levels
        return task.rows, task.classes, task.weight

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the score of each document, of shape (n_documents,), in blocks of rows."""
        n_bytes = PREDICTION_BYTES
        if isinstance(self.regressor_, _BOOSTING):
            alone = queries.n_rows < ROWS_FOR_THREADS or allowed_threads() == 1
            n_bytes = _BOOSTING_BYTES if alone else _BOOSTING_BYTES_OF_THREADS
        with threads_for(queries.n_rows):
            return self._predict_blocks(X, queries, self._predict, n_bytes)

    def _predict(self, table: Any) -> Floats:
        if self._reader is not None:
            return self._reader.predict(self.regressor_, table)
        return self._scaled_back(self._regressed(table))

    def _regressed(self, table: Any) -> Any:
        """Return what the regressor predicts, without a call for each tree where that is slow."""
        regressor = self.regressor_
        if table.shape[0] >= ROWS_FOR_THREADS or not FlatTrees.suits(regressor):
            return regressor.predict(table)
        if is_dataframe(table):
            table = column_values(table, list(table.columns))
        kept = self.__dict__.get("_flat")
        if kept is None or kept[0] is not regressor:
            kept = self._flat = (regressor, FlatTrees(regressor))
        return kept[1].predict(np.ascontiguousarray(table, dtype=np.float64))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = tags_of(default_regressor(1) if self.regressor is None else self.regressor)
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.categorical = inner.input_tags.categorical
        described = self.context not in (None, "auto")  # columns of a sparse table cannot be
        tags.input_tags.sparse = self.needs_dense or (inner.input_tags.sparse and not described)
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_flat", None)
        return state

    def _scaled_back(self, predicted: Any) -> Floats:
        """Scores from what the regressor predicts."""
        return np.asarray(predicted, dtype=np.float64).reshape(-1) * self._unit

    def own_coefficients(self) -> Floats:
        """Return the slope of each input column inside a query.

        The coefficient of a "difference" column is added to that of its input column. So is that of
        a "zscore" column, multiplied by the mean of 1 / sd over the queries. "rank" columns have no
        slope, which is an AttributeError. "share" columns are left out: categories have no slope.
        """
        if "rank" in self._kinds:
            raise AttributeError(
                "With context='rank' there is no coefficient per input column. The coefficients "
                "of the regressor are in model_.regressor_.coef_."
            )
        factors = {"difference": 1.0, "zscore": self._inverse_scale, "share": 0.0}
        slopes = self._sum_by_column(self.regressor_.coef_, factors)
        return slopes if is_classifier(self.regressor_) else slopes * self._unit


def learns_counts(regressor: Any) -> bool:
    """Whether a regressor minimises the Poisson deviance, so that its targets are not negative."""
    last, _ = last_step(regressor)
    given = [getattr(last, name, None) for name in ("loss", "objective")]
    return any(isinstance(one, str) and one in _POISSON for one in given)


def as_counts(targets: Floats, queries: Queries) -> Floats:
    """Targets without negative ones: the least of a query is subtracted if it is negative."""
    return targets - queries.broadcast(np.minimum(queries.min(targets), 0.0))


def weight_arguments(
    regressor: Any, sample_weight: Floats | None, is_default: bool = False
) -> dict[str, Any]:
    """Return the keyword arguments that pass `sample_weight` to `regressor.fit`; maybe none.

    If the regressor is the default of this package, the weights are scaled to mean 1, so that its
    penalty does not depend on their scale, and are left out if all are equal. A regressor of the
    user gets them unchanged; they are left out if all are 1, and refused (ValueError) if it takes
    no weights or if the largest one is not between 1e-12 and 1e12.
    """
    if sample_weight is None or (sample_weight == 1).all():
        return {}
    if is_default:
        sample_weight = mean_one(sample_weight)
        if sample_weight is None:
            return {}
    # Without metadata routing, a Pipeline passes <step>__sample_weight to the named step.
    last, prefix = last_step(regressor)
    if not takes_weights(last):
        raise ValueError(
            f"{type(last).__name__} does not take sample_weight; use a regressor that does, or "
            "fit without weights."
        )
    if not is_default and not getattr(last, "_scales_weights", False):
        check_weight_range(sample_weight, type(last).__name__)
    routed = get_config()["enable_metadata_routing"]
    return {"sample_weight" if routed else f"{prefix}sample_weight": sample_weight}
