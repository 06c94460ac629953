"""Gradients and curvatures of a surrogate, on the scale that boosting libraries expect.

Utilities of a data set come in once. In each iteration of boosting, scores come in, and two numbers
for each document go out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import Surrogate

Floats = NDArray[np.float64]

# A curvature is at least this share of the mean curvature of its query at the start.
_LEAST_CURVATURE = 0.01
# Gradients and curvatures are at most this, where the mean curvature is 1. Libraries store them as
# float32, and the squares of their sums over any table stay finite.
_LARGEST = 1e12
_LARGEST_START = 50.0  # a constant score at which no exponential overflows


class Derivatives:
    """Gradients and curvatures of a surrogate for the documents of one data set.

    A library fits each tree by steps of Newton's method: the value of a leaf is the sum of the
    gradients over the sum of the curvatures, and its penalties and limits are compared with these
    sums. So both are multiplied by a number for which the mean curvature is 1 at the start, as for
    half the squared error. The defaults of the libraries then mean for every surrogate, and for
    every scale of the utilities and weights, what they mean for regression.

    Parameters
    ----------
    surrogate : Surrogate
        `Surrogate.resolve` sets its parameters that depend on data.
    targets : ndarray of shape (n_documents,) or Preferences
        What `Surrogate.targets` returned.
    queries : Queries
    weight : ndarray of shape (n_queries,), default=None
        The weight of each query, larger than 0.

    Attributes
    ----------
    start : float
        The constant score that minimises the surrogate, at which boosting starts. It is 0 if the
        surrogate does not depend on it, and 1 for surrogates that only depend on the direction of
        the scores, which have no derivatives at 0.

    Notes
    -----
    A curvature of 0 or below gives no step. A curvature is therefore at least 1/100 of the mean
    curvature of its query at the start. If that mean is 0, as for the hinge of `RankSVM`, the
    curvature is at least the mean absolute gradient of the query at the start, so that boosting
    makes steps of length about 1 along the gradient.

    Gradients and curvatures above 1e12 are cut off there. Surrogates of which that is true, sums of
    exponentials, have gradients about as large as their curvatures, so that the step has a length
    of about 1.

    Raises
    ------
    ValueError
        If a parameter of the surrogate is out of range, or if it does not take the targets.

    Examples
    --------
    The squared error has the gradient s - v and the curvature 1, and starts at the mean utility:

    >>> import numpy as np
    >>> from sklearn_rankcal.boosting import Derivatives
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import PointwiseSquared
    >>> v = np.array([1.0, 0.0, 0.0, 3.0])
    >>> derivatives = Derivatives(PointwiseSquared(), v, Queries.uniform(2, 2))
    >>> gradient, curvature = derivatives(np.zeros(4))
    >>> derivatives.start, gradient.tolist(), curvature.tolist()
    (1.0, [0.0, 1.0, 1.0, -2.0], [1.0, 1.0, 1.0, 1.0])
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
        assert gradient is not None and curvature is not None
        return gradient, curvature

    def __call__(self, scores: NDArray[Any]) -> tuple[Floats, Floats]:
        """Compute gradient and curvature.

        Parameters
        ----------
        scores : ndarray of shape (n_documents,)
            The predictions of the library, to which `start` is added.

        Returns
        -------
        gradient, curvature : ndarray of shape (n_documents,)
        """
        gradient, curvature = self._evaluate(np.asarray(scores, dtype=np.float64))
        gradient = np.clip(gradient * self._factor, -_LARGEST, _LARGEST)
        curvature = np.clip(curvature * self._factor, self._least, _LARGEST)
        return gradient, curvature


def _constant_score(surrogate: Surrogate, targets: Any, mass: Floats) -> float:
    """Return the score that minimises the surrogate if all documents have the same score.

    The gradients of surrogates that are sums over documents are affine in the utility. The best
    constant is therefore that of a single document with the mean utility.
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
            above = surrogate.gradient(mean, [middle], alone)[0] > 0
            low, high = (low, middle) if above else (middle, high)
        score = low
    return score if abs(score) < _LARGEST_START else 0.0
