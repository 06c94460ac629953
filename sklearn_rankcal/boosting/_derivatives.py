"""Objectives of LightGBM and XGBoost, gradients and curvatures of a surrogate, and metrics.

Objectives and metrics of the libraries cache what they computed for each data set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.queries import Queries, Ranking, mean_over_queries
from sklearn_rankcal.surrogates import Surrogate, get_surrogate
from sklearn_rankcal.utils._messages import all_of, counted
from sklearn_rankcal.utils._numbers import Floats, Ints

# Minimum curvature, as a fraction of the mean curvature of the query at the start.
_LEAST_CURVATURE = 0.01
# Maximum of gradients and curvatures, where the mean curvature is 1. Libraries store them as
# float32, and the square of the sum over 10^7 rows, 1e38, stays finite.
_LARGEST = 1e12
_LARGEST_START = 50.0  # maximum constant score; its exponential does not overflow
_N_KEPT = 4  # data sets; a metric is called for the training set and some validation sets in turn


class Derivatives:
    """Gradients and curvatures of a surrogate for the documents of one data set.

    Both are scaled to a mean curvature of 1 at the start, as for half the squared error. The
    defaults of the libraries then mean the same for every surrogate and unit.

    A curvature is at least 1/100 of the mean curvature of its query at the start. If that mean is
    0, like for the hinge and surrogates without a curvature, it is at least the mean absolute
    gradient of the query, which gives steps of a length of about 1. `weight` (n_queries,) must be
    positive.

    Boosting starts at the constant score `start` that minimises the surrogate. It is 0 if no
    constant minimises it, and 1 for scale-invariant surrogates, which have no derivatives at 0.
    """

    def __init__(
        self, surrogate: Surrogate, targets: Any, queries: Queries, weight: Floats | None = None
    ) -> None:
        self._surrogate = surrogate.resolve(targets)
        self._targets = targets
        self._queries = queries
        self._factor = np.ones(queries.n_queries) if weight is None else weight / weight.max()
        mass = queries.broadcast(self._factor)
        self.start = _constant_score(self._surrogate, targets, mass)
        gradient, curvature = self._evaluate(np.zeros(queries.n_rows))
        bend, slope = queries.mean(np.maximum(curvature, 0.0)), queries.mean(np.abs(gradient))
        unit = np.where(bend > 0, bend, slope)
        mean = float(np.average(unit * self._factor, weights=queries.sizes))
        if mean > 0:
            self._factor = self._factor / mean
        least = np.where(bend > 0, _LEAST_CURVATURE * bend, slope) * self._factor
        self._factor, self._least = queries.broadcast(self._factor), queries.broadcast(least)

    def _evaluate(self, scores: Floats) -> tuple[Floats, Floats]:
        _, gradient, curvature = self._surrogate.evaluate(
            self._targets, scores + self.start, self._queries
        )
        return gradient, np.zeros_like(gradient) if curvature is None else curvature

    def __call__(self, scores: NDArray[Any]) -> tuple[Floats, Floats]:
        """Compute gradient and curvature at predictions relative to `start`."""
        gradient, curvature = self._evaluate(np.asarray(scores, dtype=np.float64))
        gradient = np.clip(gradient * self._factor, -_LARGEST, _LARGEST)
        curvature = np.clip(curvature * self._factor, self._least, _LARGEST)
        return gradient, curvature


def _constant_score(surrogate: Surrogate, targets: Any, mass: Floats) -> float:
    """Return the score that minimises the surrogate if all documents have the same score.

    A gradient that is a sum over documents is affine in the utility. The best score is therefore
    the one of a single document with the mean utility.
    """
    if surrogate.scale_invariant:
        return 1.0
    if surrogate.shift_invariant or surrogate.takes_preferences:
        return 0.0
    mean = np.array([float(np.average(targets, weights=mass))])
    alone = Queries.single(1)
    best = surrogate.minimizer(mean, alone)
    if best is not None:
        score = float(best[0])
    else:
        low, high = -_LARGEST_START, _LARGEST_START
        for _ in range(60):  # bisection: the gradient increases with the score
            middle = (low + high) / 2
            above = surrogate.evaluate(mean, [middle], alone, derivatives=1).gradient[0] > 0
            low, high = (low, middle) if above else (middle, high)
        score = low
    return score if abs(score) < _LARGEST_START else 0.0


# ---------------------------------------------------------------- functions of libraries


class KeepingFunction:
    """Base class of objectives and metrics, with a cache for the last few data sets.

    Data sets are compared by their entries. Copies and pickles do not contain data.
    """

    _entries: tuple[tuple[tuple[Any, ...], Any], ...] = ()

    def __init__(self, groups: ArrayLike | None = None) -> None:
        #: The query of each row of the only data set, if the library does not pass queries.
        self._codes = None if groups is None else Queries.from_groups(groups).codes

    def _prepare(self, *arrays: Any) -> Any:
        raise NotImplementedError

    def _kept(self, *arrays: Any) -> Any:
        """Return the result of `_prepare`, which is called only for new arrays."""
        entries = self._entries  # threads may share this object
        for known, value in entries:
            if all(map(np.array_equal, known, arrays)):
                return value
        copies = tuple(None if one is None else one.copy() for one in arrays)
        value = self._prepare(*copies)
        self._entries = ((copies, value), *entries[: _N_KEPT - 1])
        return value

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_entries"}


class LibraryObjective(KeepingFunction):
    """Base class of the objectives of a library."""

    def __init__(
        self, surrogate: str | Surrogate, loss: str | Loss, groups: ArrayLike | None = None
    ) -> None:
        super().__init__(groups)
        get_surrogate(surrogate), get_loss(loss)  # raise an error for unknown names
        self.surrogate = surrogate
        self.loss = loss

    def _prepare(
        self, labels: NDArray[Any], query_codes: Ints, weight: NDArray[Any] | None
    ) -> tuple[Derivatives, Any]:
        """Return the derivatives and the rows they apply to, where None means all rows."""
        queries = Queries.from_groups(query_codes, len(labels))
        labels = labels.astype(np.float64)
        loss = get_loss(self.loss).resolve(labels)
        per_query = weight_of_queries(weight, queries)
        counts = loss.defined(labels, queries)
        if per_query is not None:
            counts &= per_query > 0
        if not counts.any():
            raise ValueError(
                f"{type(loss).__name__} is undefined on {all_of(queries.n_queries, 'query')}, "
                "so there is nothing to learn from."
            )
        rows = None
        if not counts.all():
            rows, queries = queries.select(counts)
            labels = labels[rows]
            per_query = None if per_query is None else per_query[counts]
        surrogate = get_surrogate(self.surrogate)
        targets = surrogate.targets(loss, labels, queries)
        return Derivatives(surrogate, targets, queries, per_query), rows

    def _derivatives(
        self,
        labels: NDArray[Any],
        scores: NDArray[Any],
        query_codes: Ints,
        weight: NDArray[Any] | None,
    ) -> tuple[Floats, Floats]:
        """Compute gradient and curvature of all documents, 0 where the loss is undefined."""
        derivatives, rows = self._kept(labels, query_codes, weight)
        if rows is None:
            result: tuple[Floats, Floats] = derivatives(scores)
            return result
        gradient, curvature = np.zeros((2, len(labels)))
        gradient[rows], curvature[rows] = derivatives(scores[rows])
        return gradient, curvature


class LibraryMetric(KeepingFunction):
    """Base class of the metrics of a library, equal to the mean reported by `score` of a ranker."""

    def __init__(self, loss: str | Loss, groups: ArrayLike | None = None) -> None:
        super().__init__(groups)
        self.loss = loss
        self.greater_is_better = get_loss(loss).greater_is_better
        # XGBoost reads the name of a function.
        self.__name__ = loss if isinstance(loss, str) else type(loss).__name__.lower()

    def _prepare(
        self, labels: NDArray[Any], query_codes: Ints
    ) -> tuple[Any, Floats, Queries, Floats | None]:
        labels = labels.astype(np.float64)
        loss = get_loss(self.loss)
        loss.check(labels)
        queries = Queries.from_groups(query_codes, len(labels))
        return loss.for_labels(labels), labels, queries, loss.query_weight(labels, queries)

    def _value(
        self,
        labels: NDArray[Any],
        scores: NDArray[Any],
        query_codes: Ints,
        weight: NDArray[Any] | None,
    ) -> float:
        measure, numbers, queries, factor = self._kept(labels, query_codes)
        values = measure.per_query(Ranking.from_scores(scores, queries), numbers)
        per_query = weight_of_queries(weight, queries)
        per_row = None if per_query is None else queries.broadcast(per_query)
        return mean_over_queries(values, queries, per_row, self.__name__, factor)


def weight_of_queries(weight: NDArray[Any] | None, queries: Queries) -> Floats | None:
    """Return one weight for each query, given one weight per row or one per query."""
    if weight is None or len(weight) == 0:
        return None
    if len(weight) == queries.n_rows:
        return queries.mean(weight.astype(np.float64))
    if len(weight) == queries.n_queries:
        return weight.astype(np.float64)
    raise ValueError(
        f"There are {len(weight)} weights, but {counted(queries.n_rows, 'row')} in "
        f"{queries.n_queries} queries."
    )


def codes_of_sizes(sizes: ArrayLike | None, n_rows: int) -> Ints:
    """Return the query number of each row, given the number of rows of each query."""
    if sizes is None or not np.size(sizes):
        raise ValueError(
            "There are no query sizes. Use LGBMRanker, whose fit takes group=<sizes of the "
            "queries>, or lightgbm.Dataset(..., group=...)."
        )
    counts = np.asarray(sizes).astype(np.int64)
    if counts.min() < 1 or counts.sum() != n_rows:
        raise ValueError(
            f"The query sizes add up to {counts.sum()}, but there are {counted(n_rows, 'row')}. "
            "group holds the number of rows of each query, in the order of the rows."
            if counts.min() >= 1
            else f"Every query needs at least one row; group has a size of {counts.min()}."
        )
    return np.repeat(np.arange(len(counts)), counts)


class _LightGBMObjective(LibraryObjective):
    def __call__(
        self, y_true: NDArray[Any], y_pred: NDArray[Any], weight: Any, group: Any
    ) -> tuple[Floats, Floats]:
        codes = codes_of_sizes(group, len(y_true))
        return self._derivatives(y_true, y_pred, codes, weight)

    def __repr__(self) -> str:
        return f"lightgbm_objective({self.surrogate!r}, loss={self.loss!r})"


class _LightGBMMetric(LibraryMetric):
    def __call__(
        self, y_true: NDArray[Any], y_pred: NDArray[Any], weight: Any, group: Any
    ) -> tuple[str, float, bool]:
        codes = codes_of_sizes(group, len(y_true))
        return self.__name__, self._value(y_true, y_pred, codes, weight), self.greater_is_better

    def __repr__(self) -> str:
        return f"lightgbm_metric({self.loss!r})"


def lightgbm_objective(
    surrogate: str | Surrogate = "softmax", loss: str | Loss = "ndcg"
) -> _LightGBMObjective:
    """Make an objective for ``LGBMRanker(objective=...)`` that minimises a surrogate.

    `BoostedRanker` wraps this in an estimator, with context columns and query ids.

    Parameters
    ----------
    surrogate : str or Surrogate, default="softmax"
        A name in `surrogates.SURROGATES`, or an object.
    loss : str or Loss, default="ndcg"
        The loss that defines the utilities, such as ``"ndcg@10"`` or ``"map_by_scores"``.

    Returns
    -------
    objective : callable
        ``objective(y_true, y_pred, weight, group)`` returns the gradient and the curvature, two
        arrays of shape (n_documents,). The weight of a query is the mean weight of its rows. The
        function raises ValueError for wrong query sizes, or if the surrogate does not accept the
        labels. Copies and pickles contain no data.

    Notes
    -----
    Gradients and curvatures are scaled to a mean curvature of 1 at the start. This gives
    ``min_child_weight`` and ``reg_lambda`` the same meaning as in regression. Predicted scores are
    relative to the best constant score. LightGBM's own NDCG metric only accepts whole numbers up to
    30 as labels; for other labels, pass ``metric="None"``.

    Examples
    --------
    >>> from lightgbm import LGBMRanker  # doctest: +SKIP
    >>> from sklearn_rankcal.boosting import lightgbm_metric, lightgbm_objective
    >>> objective = lightgbm_objective("softmax", loss="ndcg@10")
    >>> ranker = LGBMRanker(objective=objective, metric="None")  # doctest: +SKIP
    >>> validation = {"eval_X": X_val, "eval_y": y_val, "eval_group": [sizes]}  # doctest: +SKIP
    >>> validation["eval_metric"] = lightgbm_metric("ndcg@10")  # doctest: +SKIP
    >>> ranker.fit(X, y, group=sizes, **validation)  # doctest: +SKIP

    One query with a relevant and an irrelevant document:

    >>> import numpy as np
    >>> gradient, curvature = objective(np.array([1, 0]), np.zeros(2), None, np.array([2]))
    >>> gradient.tolist(), curvature.tolist()
    ([-2.0, 2.0], [1.0, 1.0])
    """
    return _LightGBMObjective(surrogate, loss)


def lightgbm_metric(loss: str | Loss = "ndcg") -> _LightGBMMetric:
    """Make a metric for ``LGBMRanker.fit(eval_metric=...)``: the mean of the measure of a loss.

    Pass ``metric="None"`` to the ranker. Otherwise `LGBMRanker` also computes its own NDCG, and
    early stopping follows whichever metric stops improving first.

    Parameters
    ----------
    loss : str or Loss, default="ndcg"
        The loss, such as ``"ndcg@10"`` or ``"map_by_scores"``.

    Returns
    -------
    metric : callable
        ``metric(y_true, y_pred, weight, group)`` returns the name, the value, and whether larger is
        better. Ties and weights are treated like in the metric functions.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.boosting import lightgbm_metric
    >>> metric = lightgbm_metric("ndcg@10")
    >>> name, value, larger_is_better = metric(
    ...     np.array([1, 0, 0, 1]), np.array([2.0, 1.0, 4.0, 3.0]), None, np.array([2, 2])
    ... )
    >>> name, round(value, 4), larger_is_better
    ('ndcg@10', 0.8155, True)
    """
    return _LightGBMMetric(loss)


def _codes_of(function: KeepingFunction, n_rows: int, matrix: Any) -> Ints:
    """Return the query of each row, from `groups` or from the ``qid`` of a `DMatrix`."""
    codes = function._codes
    if codes is None:
        ends = [] if matrix is None else matrix.get_uint_info("group_ptr")
        if len(ends) < 2:
            raise ValueError(
                f"{function!r} does not know the queries. Pass groups=<query id of each row>, or "
                "xgboost.DMatrix(..., qid=...) to xgboost.train."
            )
        return Queries(np.asarray(ends).astype(np.int64)).codes
    if len(codes) != n_rows:
        raise ValueError(
            f"groups has {counted(len(codes), 'entry')}, but XGBoost passed "
            f"{counted(n_rows, 'row')}. groups "
            "holds the query of each row of the one data set for which the function is called; "
            "several sets need xgboost.DMatrix(..., qid=...) and groups=None."
        )
    return codes


def _arguments(one: Any, other: Any, weight: Any) -> tuple[Any, Any, Any, Any]:
    """Return labels, scores, weights and the `DMatrix` (None if there is none).

    `xgboost.train` passes (scores, matrix), and estimators pass (labels, scores).
    """
    if not hasattr(other, "get_label"):
        return np.asarray(one), np.asarray(other), weight, None
    return other.get_label(), np.asarray(one), other.get_weight(), other


class _XGBoostObjective(LibraryObjective):
    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> tuple[Floats, Floats]:
        labels, scores, weight, matrix = _arguments(y_true, y_pred, sample_weight)
        return self._derivatives(labels, scores, _codes_of(self, len(labels), matrix), weight)

    def __repr__(self) -> str:
        return f"xgboost_objective({self.surrogate!r}, loss={self.loss!r})"


class _XGBoostMetric(LibraryMetric):
    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        labels, scores, weight, matrix = _arguments(y_true, y_pred, sample_weight)
        value = self._value(labels, scores, _codes_of(self, len(labels), matrix), weight)
        return value if matrix is None else (self.__name__, value)

    def __repr__(self) -> str:
        return f"xgboost_metric({self.loss!r})"


def xgboost_objective(
    surrogate: str | Surrogate = "softmax",
    loss: str | Loss = "ndcg",
    groups: ArrayLike | None = None,
) -> _XGBoostObjective:
    """Make an objective for `xgboost.train` and ``XGBRegressor(objective=...)``.

    `XGBRanker` does not accept functions as objectives. `BoostedRanker` with
    ``regressor="xgboost"`` wraps it in a ranker.

    Parameters
    ----------
    surrogate, loss
        As in `lightgbm_objective`.
    groups : array-like of shape (n_documents,), default=None
        Query id of each training row, in any order. If None, read the queries from
        ``DMatrix(..., qid=...)``, which works only with `xgboost.train`.

    Returns
    -------
    objective : callable
        ``objective(y_true, y_pred, sample_weight=None)`` or, with a `DMatrix`,
        ``objective(y_pred, matrix)``. It returns the gradient and the curvature, like
        `lightgbm_objective`. There may be one weight per query or one per row. Pass
        ``base_score=0`` to XGBoost.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.boosting import xgboost_objective
    >>> y, groups = np.array([1, 0, 0, 1]), [7, 8, 7, 8]
    >>> objective = xgboost_objective("softmax", "ndcg", groups)
    >>> from xgboost import XGBRegressor  # doctest: +SKIP
    >>> XGBRegressor(objective=objective, base_score=0).fit(X, y)  # doctest: +SKIP
    >>> objective(y, np.zeros(4))[0].tolist()
    [-2.0, 2.0, 2.0, -2.0]
    """
    return _XGBoostObjective(surrogate, loss, groups)


def xgboost_metric(loss: str | Loss = "ndcg", groups: ArrayLike | None = None) -> _XGBoostMetric:
    """Make a metric for `xgboost.train` and ``XGBRegressor(eval_metric=...)``.

    XGBoost minimises unknown metrics. For early stopping, pass the callback
    ``xgboost.callback.EarlyStopping(rounds=50, maximize=True)``.

    Parameters
    ----------
    loss : str or Loss, default="ndcg"
        The loss, such as ``"ndcg@10"`` or ``"map_by_scores"``.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row of the only validation set. None as in `xgboost_objective`.

    Returns
    -------
    metric : callable
        ``metric(y_true, y_pred, sample_weight=None)`` returns the mean over queries of the measure
        of the loss. With a `DMatrix`, ``metric(y_pred, matrix)`` returns its name and this mean.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.boosting import xgboost_metric
    >>> metric = xgboost_metric("ndcg@10", groups=[0, 0, 1, 1])
    >>> metric(np.array([1, 0, 0, 1]), np.array([2.0, 1.0, 3.0, 4.0]))
    1.0
    """
    return _XGBoostMetric(loss, groups)
