"""`DocumentModel`: a regressor fitted to one row per document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from inspect import Parameter, signature
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor, Ridge, RidgeClassifier, SGDClassifier
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.utils.validation import has_fit_parameter

from sklearn_rankcal.models._column_parameters import library_of
from sklearn_rankcal.models._context import SHARE, ContextTableModel
from sklearn_rankcal.models._held_out import can_stop_early, check_stopping, fill_empty_columns
from sklearn_rankcal.models._model import Training
from sklearn_rankcal.models._sums import DocumentSums, Sums
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils import _estimators, _features, _memory, _messages
from sklearn_rankcal.utils._numbers import Floats, Ints, check_weight_range, mean_one, target_unit
from sklearn_rankcal.utils._sklearn_compat import HISTOGRAMS, FlatTrees

_POISSON = ("poisson", "count:poisson", "Poisson")  # the names in different libraries
# Bytes of a block of rows for the `predict` of histogram boosting. It reads the block once per
# tree, faster if the block fits in the processor's cache.
_BOOSTING_BYTES = 1 << 22


def default_regressor(n_rows: int, *, stops_early: bool = False) -> HistGradientBoostingRegressor:
    """Get the default regressor for a number of rows.

    It is histogram gradient boosting with 100 trees, learning rate 0.05 and
    ``l2_regularization=50``. Trees have 7 leaves for up to 10,000 rows, 15 leaves for up to 100,000
    rows, and 31 leaves for more rows.

    Parameters
    ----------
    n_rows : int
        Number of training rows.
    stops_early : bool, default=False
        Whether validation queries choose the number of trees. The limit is then 1,000.

    Returns
    -------
    regressor : HistGradientBoostingRegressor
        The unfitted regressor.

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
        # the default of scikit-learn, 20, allows no split of few rows
        min_samples_leaf=min(20, max(1, n_rows // 50)),
        l2_regularization=50.0,
        early_stopping=False,
    )


@dataclass(frozen=True, eq=False)
class ZscoreSlopes(Sums):
    """Sum over queries of 1 / sd, for each column with z-scores."""

    total: Floats
    n_queries: int


@dataclass(frozen=True, eq=False)
class ClosedFormSums(Sums):
    """Sums over some queries for `DocumentModel.solve`."""

    documents: DocumentSums
    slopes: ZscoreSlopes


class DocumentModel(ContextTableModel):
    """Model of scores: a regressor fitted to one row per document.

    Parameters
    ----------
    regressor : estimator, default=None
        The regressor. A clone is fitted to the rows and their targets. None means
        `default_regressor`. A classifier is fitted to weighted classes, and the model computes
        expected targets from `predict_proba` (:ref:`classifiers`).
    center : bool, default=True
        Whether to subtract from each target the (weighted) mean of its query. This changes no
        ranking. Ignored for classifiers and for regressors that minimise the Poisson deviance.
    context : None, str, list of str or "auto", default=None
        Context columns to add. They compare a document with the rest of its query: ``"zscore"`` is
        (x - mean) / sd, ``"difference"`` is x - mean, ``"rank"`` is the rank of x, and ``"share"``
        is, for category columns of a data frame, the share of the rows of the query with the same
        category. ``"auto"`` adds z-scores for columns whose level or spread differs between the
        queries of `fit`, or differences if these are short, and shares; see Notes.

    Attributes
    ----------
    context_ : dict of str to list
        For each kind of context columns, the columns of X that have them: indices, or names if X is
        a data frame. Empty without context columns. Parameters of the regressor can exclude columns
        (:ref:`column-parameters`).
    regressor_ : estimator
        The fitted regressor.
    levels_ : ndarray of shape (n_levels,)
        Distinct targets, in increasing order. Only if they are the classes of a classifier.
    eta_ : float
        Largest target. Only if a classifier learned targets as weights of two classes.

    Notes
    -----
    ``context="auto"`` gives no z-scores to a column if queries explain less than 2 % of its
    variance, by more than two standard errors. They would be nearly the same as the column. If
    queries have fewer than ten documents on average, all columns that vary in queries get
    differences instead (:ref:`bench-context`). A category column gets shares unless it is
    constant within each query. Missing values are a category of their own. If a column has more
    categories than histogram gradient boosting has bins (255 by default, one of them for missing
    text), the rarest count as missing for the regressor.

    A classifier learns each distinct target as a class, if targets depend only on the label of the
    document and at most 100 are distinct. Otherwise, each document has class 1 with the weight
    v / eta and class 0 with the weight 1 - v / eta, where v is its target and eta the largest
    target.

    Examples
    --------
    Only the first column differs between queries, in its level:

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
            Documents, targets and queries. Validation queries, if any, choose the number of
            iterations of a boosted regressor.

        Returns
        -------
        self : DocumentModel
            The fitted model.
        """
        if not isinstance(self.center, bool | np.bool_):
            _messages.check_flag(self.center, "center")
        if isinstance(self.regressor, type) or not hasattr(self.regressor, "predict"):
            _messages.check_methods(self.regressor, "regressor", "a regressor", "fit", "predict")
        early = training.validation is not None
        if self.regressor is None:
            regressor = default_regressor(training.X.shape[0], stops_early=early)
        else:
            regressor = _estimators.clone(self.regressor)
        for name in ("levels_", "eta_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if early or library_of(regressor) in ("lightgbm", "xgboost"):
            check_stopping(regressor, early)
        self._choose_columns(training)
        large = training.queries.n_rows >= _memory.ROWS_FOR_THREADS
        if large and not early and self._fits_in_blocks(regressor, training.X):
            try:
                return self._fit_in_blocks(training)
            except ValueError:
                # NaN, overflow, or a matrix that is singular because of rounding. Below, Ridge
                # itself solves such a system or raises an error.
                pass
        return self._fit_regressor(regressor, training)

    @property
    def stops_early(self) -> bool:  # type: ignore[override]
        """Whether validation queries can choose the number of iterations of the regressor."""
        return can_stop_early(self.regressor)

    def _fits_in_blocks(self, regressor: Any, X: Any) -> bool:
        """Whether to fit from sums over blocks, without creating the whole table."""
        if type(regressor) is not Ridge or not isinstance(X, np.ndarray):
            return False
        # only the penalty may differ from the default parameters of Ridge
        usual = {**regressor.get_params(), "alpha": 1.0} == Ridge().get_params()
        positive = isinstance(regressor.alpha, int | float) and 0 < regressor.alpha < np.inf
        return bool(self._kinds) and usual and positive

    def _fit_in_blocks(self, training: Training) -> Self:
        X = training.X
        if training.weight is not None:
            weight_arguments(self.regressor, training.weight)  # checks them
        largest = float(np.abs(self._centred(training)).max())
        self._reader, self._dtype, self._unit = None, None, target_unit(largest)
        width = X.shape[1] + len(self._columns) * len(self._kinds)
        step = _memory.rows_per_block(8 * width, _memory.PREDICTION_BYTES)
        some = replace(training, labels=None)
        parts = (self.sums(some.take(*part)) for part in training.queries.chunks(step))
        return self.solve(reduce(add, parts))

    def _centred(self, training: Training) -> Floats:
        """Return the targets, centred in each query if `center`."""
        if not self.center:
            return training.targets
        return training.queries.center(training.targets, training.weight)

    def _fit_regressor(self, regressor: Any, training: Training) -> Self:
        """Fit a regressor to the table of X with the chosen context columns."""
        X, queries = training.X, training.queries
        self.match_parameters(regressor, X)
        rows, weight, weights = None, training.weight, {}
        self._reader = None
        if is_classifier(regressor):
            rows, fitted, weight = self._as_classes(regressor, training)
        elif learns_counts(regressor):
            fitted = as_counts(training.targets, queries)
            # the penalty of leaves is relative to second derivatives, which are the means
            self._unit = float(np.average(fitted, weights=weight)) or 1.0
            fitted = fitted / self._unit
        else:
            fitted = queries.center(training.targets, weight) if self.center else training.targets
            self._unit = target_unit(float(np.abs(fitted).max()))
            fitted = fitted / self._unit
        if weight is not None:
            weights = weight_arguments(regressor, weight, is_default=self.regressor is None)
        # a float64 table saves the conversion by histogram boosting
        self._dtype = np.float64 if isinstance(regressor, HISTOGRAMS) else None
        table, slopes = self._table(X, queries, training.page)
        if rows is not None:
            table = _features.take_rows(table, rows)
        if isinstance(regressor, HISTOGRAMS):
            table = fill_empty_columns(table)
        as_scores = self._scaled_back if self._reader is None else self._reader.as_scores
        with _memory.threads_for(len(fitted)):
            self.regressor_ = self._fit_to_table(
                regressor, table, fitted, weights, training.validation, as_scores
            )
        self._inverse_scale = slopes
        return self

    def prepare(self, X: Any, columns: list[Any], short: bool, largest: float) -> Self:
        """Prepare to fit the model part by part, with what all data together determine.

        `X` is a table of the form of all parts and may be empty, `columns` get context columns,
        `short` is whether queries are, and `largest` is the largest absolute value of the (centred)
        targets.
        """
        self._set_columns(X, columns, short)
        self._reader, self._dtype, self._unit = None, None, target_unit(largest)
        return self

    def read(self, training: Training) -> tuple[Any, Floats, ZscoreSlopes]:
        """Return the table, targets and z-score slopes of some queries, for `finish`."""
        n_queries = training.queries.n_queries
        table, mean = self._table(training.X, training.queries, training.page)
        mean = np.zeros(len(self._columns)) if mean is None else mean
        slopes = ZscoreSlopes(mean * n_queries, n_queries)
        return table, self._centred(training) / self._unit, slopes

    def finish(self, regressor: Any, slopes: ZscoreSlopes) -> Self:
        """Set the regressor, fitted to what `read` returned, and the added slopes."""
        self.regressor_ = regressor
        self._inverse_scale = slopes.total / slopes.n_queries if self._kinds else None
        return self

    def sums(self, training: Training) -> ClosedFormSums:
        """Compute sums over some queries for `solve`, after `prepare`. Add them with ``+``.

        Only for the regressors `Ridge` and `LinearRegression`.
        """
        table, targets, slopes = self.read(training)
        documents = DocumentSums.of(_features.numeric_table(table), targets, training.weight)
        return ClosedFormSums(documents, slopes)

    def solve(self, sums: ClosedFormSums) -> Self:
        """Fit the regressor in closed form from the sums of all queries."""
        return self.finish(sums.documents.solve(self.regressor), sums.slopes)

    def _as_classes(
        self, classifier: Any, training: Training
    ) -> tuple[Ints | None, NDArray[Any], Floats | None]:
        """Return the rows that a classifier is fitted to (None: all), their classes and weights."""
        task = make_task(classifier, training)
        self._reader = task.reader
        if task.reader.of_shares:
            self.eta_ = float(task.reader.levels[1])
        else:
            self.levels_ = task.reader.levels
        return task.rows, task.classes, task.weight

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the score of each document."""
        numbers = hasattr(X, "columns") and SHARE not in self._kinds
        if numbers and FlatTrees.suits(self.regressor_, None):  # columns are slow to add to a frame
            X = _features.column_values(X, list(X.columns))
        boosted = isinstance(self.regressor_, HISTOGRAMS)
        n_bytes = _BOOSTING_BYTES if boosted else _memory.PREDICTION_BYTES
        with _memory.threads_for(queries.n_rows):
            return self._predict_blocks(X, queries, self._predict, n_bytes)

    def _predict(self, table: Any) -> Floats:
        regressor = self.regressor_
        if self._reader is not None:
            return self._reader.predict(regressor, table)
        if isinstance(regressor, HISTOGRAMS):
            return self._scaled_back(self._boosted(regressor, table))
        return np.asarray(regressor.predict(table), dtype=np.float64).reshape(-1) * self._unit

    def _boosted(self, regressor: Any, table: Any) -> Any:
        """Return the predictions of histogram boosting, faster than it does."""
        if not FlatTrees.suits(regressor, table):
            return regressor.predict(table)
        kept = self.__dict__.setdefault("_flat", {})
        # a regressor in the place of another can have its id
        if kept.get(id(regressor), (None,))[0] is not regressor:
            kept[id(regressor)] = regressor, FlatTrees(regressor)
        return kept[id(regressor)][1].predict(table)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = _estimators.tags_of(
            default_regressor(1) if self.regressor is None else self.regressor
        )
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.categorical = inner.input_tags.categorical
        described = self.context not in (None, "auto")  # not for sparse tables
        tags.input_tags.sparse = self.needs_dense or (inner.input_tags.sparse and not described)
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_flat", None)
        return state

    def _scaled_back(self, predicted: Any) -> Floats:
        """Convert predictions of the regressor to scores."""
        return np.asarray(predicted, dtype=np.float64).reshape(-1) * self._unit

    def own_coefficients(self) -> Floats:
        """Return the average slope of each column of X within a query.

        It is the sum of the coefficients of the column and its context columns. The coefficient of
        a "zscore" column is multiplied by the mean of 1 / sd over queries. "share" columns do not
        count. "rank" columns have no slope and raise AttributeError.
        """
        if "rank" in self._kinds:
            raise AttributeError(
                "With context='rank', there is no coefficient per column of X. See "
                "model_.regressor_.coef_ for the coefficients of the regressor."
            )
        factors = {"difference": 1.0, "zscore": self._inverse_scale, "share": 0.0}
        slopes = self._sum_by_column(self.regressor_.coef_, factors)
        return slopes if is_classifier(self.regressor_) else slopes * self._unit


def learns_counts(regressor: Any) -> bool:
    """Whether a regressor minimises the Poisson deviance and needs targets >= 0."""
    while hasattr(regressor, "steps"):
        regressor = regressor.steps[-1][1]
    if isinstance(regressor, PoissonRegressor):
        return True
    for name in ("loss", "objective", "loss_function"):
        given = getattr(regressor, name, None)
        if isinstance(given, str) and given in _POISSON:
            return True
    return False


def as_counts(targets: Floats, queries: Queries) -> Floats:
    """Return targets >= 0: subtract the smallest target of a query if it is negative."""
    return targets - queries.broadcast(np.minimum(queries.min(targets), 0.0))


def weight_arguments(
    regressor: Any, sample_weight: Floats | None, is_default: bool = False
) -> dict[str, Any]:
    """Return the keyword arguments that pass `sample_weight` to `regressor.fit`.

    For the default regressor, scale the weights to mean 1, because of its fixed penalty, and omit
    equal weights. A regressor of the user gets the weights unchanged, or none if all are 1. Raise
    ValueError if it does not support weights, or if the largest is not between 1e-12 and 1e12.
    """
    if sample_weight is None or (sample_weight == 1).all():
        return {}
    if is_default:
        sample_weight = mean_one(sample_weight)
        if sample_weight is None:
            return {}
    # without metadata routing, a Pipeline passes <step>__sample_weight to the step
    last, prefix = last_step(regressor)
    if not takes_weights(last):
        raise ValueError(
            f"{type(last).__name__} does not support sample_weight. Use a regressor that does, or "
            "fit without weights."
        )
    if not is_default and not getattr(last, "_scales_weights", False):
        check_weight_range(sample_weight, type(last).__name__)
    routed = get_config()["enable_metadata_routing"]
    return {"sample_weight" if routed else f"{prefix}sample_weight": sample_weight}


_MAX_LEVELS = 100  # largest number of distinct targets that are classes

#: Classifiers whose decision function s estimates the probability of class 1 by (1 + s) / 2, with
#: the values of their parameter `loss` for which this holds, or None if they have a single loss.
#:
#: With the share p = E[v] / eta, the expected loss p phi(s) + (1 - p) phi(-s) is least at
#: s = 2 p - 1 for the squared error, and if 0 < p < 1 for the squared hinge and the modified Huber
#: loss, so that the best scores increase with E[v] (theorem 5.2 of Calauzènes et al., 2013). The
#: hinge of `SVC` is least at -1 for every p < 1/2 and at 1 for every p > 1/2.
_MARGINS: dict[type, tuple[str, ...] | None] = {
    LinearSVC: ("squared_hinge",),
    SGDClassifier: ("squared_hinge", "squared_error", "modified_huber"),
    RidgeClassifier: None,
}
# libsvm fits its probabilities (Platt scaling) without weights, and the two classes of a document
# would cancel each other.
_FITS_PROBABILITIES_WITHOUT_WEIGHTS = (SVC, NuSVC)


class ClassReader(NamedTuple):
    """Computes expected targets from the predictions of a classifier.

    `levels` are the targets of the classes in increasing order. For shares, they are 0 and the
    largest target eta. If `by_margins`, the decision function estimates the probability of class 1.
    """

    levels: Floats
    of_shares: bool
    by_margins: bool = False

    def predict(self, classifier: Any, table: Any) -> Floats:
        """Predict the expected target of each row."""
        if self.by_margins:
            margins = np.asarray(classifier.decision_function(table), dtype=np.float64)
            return self.levels[1] * ((1.0 + margins.reshape(-1)) / 2)
        return classifier.predict_proba(table) @ self.levels[classifier.classes_]

    def as_scores(self, chances: NDArray[Any]) -> Floats:
        """Compute expected targets from the probabilities of all classes.

        LightGBM and XGBoost omit the first of two classes.
        """
        if chances.ndim == 1:
            chances = np.column_stack([1.0 - chances, chances])
        return chances @ self.levels


class ClassTask(NamedTuple):
    """Training data of a classifier.

    `rows` has the row of the table for each example. None means each row once. `classes` are
    numbers from 0, and `weight` is None if all weights are equal.
    """

    rows: Ints | None
    classes: Ints
    weight: Floats | None
    reader: ClassReader


def make_task(classifier: Any, training: Training) -> ClassTask:
    """Convert targets of documents to a task for an unfitted classifier.

    Raise ValueError if all targets are equal, if the classifier needs weights but does not support
    them, or if it has neither probabilities nor a decision function that estimates them.
    """
    targets, queries, sample_weight = training.targets, training.queries, training.weight
    by_margins = _estimates_by_margins(classifier)
    if not by_margins and not hasattr(classifier, "predict_proba"):
        raise ValueError(
            f"{type(classifier).__name__} has no predict_proba, and sorting by its "
            "decision_function does not sort by expected targets. Use a classifier with "
            "predict_proba, one with a squared loss (such as LinearSVC with "
            "loss='squared_hinge' or RidgeClassifier), or a regressor."
        )
    if training.graded_targets and not by_margins:
        levels, codes = np.unique(targets, return_inverse=True)
        if len(levels) <= _MAX_LEVELS:
            return ClassTask(None, codes, sample_weight, ClassReader(levels, of_shares=False))
    last, _ = last_step(classifier)
    if isinstance(last, _FITS_PROBABILITIES_WITHOUT_WEIGHTS):
        raise ValueError(
            f"{type(last).__name__} fits its probabilities without weights, but a classifier "
            "learns these targets as weights. Use LinearSVC(loss='squared_hinge') or a regressor."
        )
    # Shares must not be negative, but targets of Spearman's rho and net Borda scores can be.
    # So subtract c(y) = min(0, min_j alpha_j(y)) from the targets alpha_i(y) of a query with
    # the labels y. As c(y) is the same for all its documents, E[alpha_i(Y) - c(Y)] - E[alpha_j(Y) -
    # c(Y)] = E[alpha_i(Y)] - E[alpha_j(Y)] for every distribution of Y, and the order is the same.
    utilities = targets - queries.broadcast(np.minimum(queries.min(targets), 0.0))
    eta = float(utilities.max())
    share = utilities / (eta or 1.0)
    reader = ClassReader(np.array([0.0, eta]), of_shares=True, by_margins=by_margins)
    if share.min() == share.max():
        raise ValueError(
            f"All {len(share)} documents have the same target, so {type(classifier).__name__} "
            "would have only one class."
        )
    task = _weighted_classes(share, sample_weight, reader)
    if task.weight is not None and not takes_weights(last):
        raise ValueError(
            f"{type(last).__name__} does not support sample_weight. A classifier learns these "
            "targets as weights: use one that supports weights, or a regressor."
        )
    return task


def _weighted_classes(
    share: Floats, sample_weight: Floats | None, reader: ClassReader
) -> ClassTask:
    """Give each document class 1 with weight `share` and class 0 with weight 1 - `share`.

    First come all rows, with a class of positive weight. Then the rows with two positive weights
    are repeated, with class 0.
    """
    again = np.flatnonzero((share > 0) & (share < 1))
    classes = (share > 0).astype(np.int64)
    weight = np.where(share > 0, share, 1.0)
    rows = None
    if len(again):
        rows = np.concatenate([np.arange(len(share)), again])
        classes = np.concatenate([classes, np.zeros(len(again), dtype=np.int64)])
        weight = np.concatenate([weight, 1.0 - share[again]])
    if sample_weight is not None:
        weight = weight * (sample_weight if rows is None else sample_weight[rows])
    return ClassTask(rows, classes, None if (weight == 1).all() else weight, reader)


def _estimates_by_margins(classifier: Any) -> bool:
    """Whether (1 + s) / 2 estimates the probability of class 1, with the decision function s."""
    last, _ = last_step(classifier)
    for kind in type(last).__mro__:
        if kind in _MARGINS:
            losses = _MARGINS[kind]
            return losses is None or last.loss in losses
    return False


def last_step(estimator: Any) -> tuple[Any, str]:
    """Return the estimator at the end of a pipeline, and the prefix of its arguments of `fit`."""
    last, prefix = estimator, ""
    while hasattr(last, "steps"):
        prefix += f"{last.steps[-1][0]}__"
        last = last.steps[-1][1]
    return last, prefix


def takes_weights(estimator: Any) -> bool:
    """Whether the `fit` of an estimator, not a pipeline, supports weights."""
    kinds = {parameter.kind for parameter in signature(estimator.fit).parameters.values()}
    return has_fit_parameter(estimator, "sample_weight") or Parameter.VAR_KEYWORD in kinds
