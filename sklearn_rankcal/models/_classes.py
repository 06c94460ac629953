"""Convert targets to classes for a classifier, and its predictions to scores.

Either each distinct target is a class (levels), or a document with target v has class 1 with weight
v / eta and class 0 with weight 1 - v / eta, where eta is the largest target (shares).
"""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier, SGDClassifier
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.utils.validation import has_fit_parameter

from sklearn_rankcal.models._training import Training
from sklearn_rankcal.utils._typing import Floats, Ints

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
