"""Objectives and metrics of LightGBM: functions of labels, scores, weights and query sizes."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sklearn_rankcal.boosting._derivatives import LibraryMetric, LibraryObjective, codes_of_sizes
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.surrogates import Surrogate
from sklearn_rankcal.utils._numbers import Floats


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

    Raises
    ------
    ValueError
        If the surrogate or the loss is unknown.

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
