"""The mean cost of predictions, as a loss and as a scorer for model selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import make_scorer
from sklearn.utils import check_consistent_length, column_or_1d

from sklearn_rankcal.cost_sensitive._costs import (
    Costs,
    Names,
    numbers_of_names,
    read_costs,
    read_names,
    read_target_names,
)
from sklearn_rankcal.cost_sensitive._low_rank import LowRankLoss
from sklearn_rankcal.queries import check_weight
from sklearn_rankcal.utils._numbers import check_no_mask


def mean_cost_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    loss_matrix: Costs,
    *,
    classes: Sequence[Any] | Names,
    targets: Sequence[Any] | Names | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean cost of predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The true classes. It need not contain every class.
    y_pred : array-like of shape (n_samples,)
        The predictions, each of which is one of `targets`.
    loss_matrix : array-like of shape (n_classes, n_targets), LowRankLoss or callable
        The costs, as in `LowRankClassifier`.
    classes : array-like of shape (n_classes,)
        The names of the rows of `loss_matrix`.
    targets : array-like of shape (n_targets,), default=None
        The names of the columns of `loss_matrix`. If None, the columns stand for the classes, and
        there must be as many columns as rows.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights. If None, every row has weight 1.

    Returns
    -------
    cost : float
        The mean cost; smaller is better.

    Raises
    ------
    ValueError
        If a name in `y_true` or `y_pred` is unknown, if lengths differ, or if there are no rows.

    Examples
    --------
    >>> from sklearn_rankcal import mean_cost_loss
    >>> costs = [[0, 1, 0.2], [5, 0, 0.2]]
    >>> mean_cost_loss(
    ...     ["well", "ill", "ill"],
    ...     ["well", "well", "don't know"],
    ...     costs,
    ...     classes=["well", "ill"],
    ...     targets=["well", "ill", "don't know"],
    ... )
    1.73...
    """
    class_names = read_names(classes, "classes")
    costs = read_costs(loss_matrix, class_names)
    check_no_mask(y_true, "y_true")
    check_no_mask(y_pred, "y_pred")
    check_consistent_length(y_true, y_pred)
    if len(column_or_1d(y_true)) == 0:
        raise ValueError("y_true is empty, so there is no mean cost.")
    rows = numbers_of_names(column_or_1d(y_true), class_names, "y_true", "the classes")
    target_names = read_target_names(targets, costs, class_names)
    columns = numbers_of_names(column_or_1d(y_pred), target_names, "y_pred", "the targets")
    values = costs.cost(rows, columns) if isinstance(costs, LowRankLoss) else costs[rows, columns]
    weight = check_weight(sample_weight, len(rows))
    return float(np.average(values, weights=weight))


def make_cost_scorer(
    loss_matrix: Costs,
    *,
    classes: Sequence[Any] | Names,
    targets: Sequence[Any] | Names | None = None,
) -> Callable[..., float]:
    """Make a scorer that returns minus the mean cost, for `GridSearchCV` and similar tools.

    The scorer evaluates any classifier. It finds the costs by the names of the classes and not by
    their positions, so that a fold of a cross-validation may lack some classes.

    Parameters
    ----------
    loss_matrix, classes, targets
        As in `mean_cost_loss`.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, sample_weight=None)``; larger is better.

    Raises
    ------
    ValueError
        If the numbers of names do not agree with the shape of the costs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn_rankcal import make_cost_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = make_cost_scorer([[0, 1, 1], [1, 0, 1], [1, 5, 0]], classes=[0, 1, 2])
    >>> cross_val_score(LogisticRegression(max_iter=1000), X, y, scoring=scorer).shape
    (5,)
    """
    names = read_names(classes, "classes")
    read_target_names(targets, read_costs(loss_matrix, names), names)
    return make_scorer(
        mean_cost_loss,
        greater_is_better=False,
        loss_matrix=loss_matrix,
        classes=classes,
        targets=targets,
    )
