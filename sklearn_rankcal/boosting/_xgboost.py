"""Objectives and metrics of XGBoost, which passes labels and scores but no queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.boosting._derivatives import KeepingFunction, LibraryMetric, LibraryObjective
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import Surrogate
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._numbers import Floats, Ints


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
    surrogate : str or Surrogate, default="softmax"
        A name in `surrogates.SURROGATES`, or an object.
    loss : str or Loss, default="ndcg"
        The loss that defines the utilities.
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
