"""Gradients and curvatures of a surrogate, on the scale that boosting libraries expect."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import Surrogate
from sklearn_rankcal.utils._typing import Floats

# A curvature is at least this share of the mean curvature of its query at the start.
_LEAST_CURVATURE = 0.01
# Gradients and curvatures are at most this, where the mean curvature is 1. Libraries store them as
# float32, and the squares of their sums over any table stay finite.
_LARGEST = 1e12
_LARGEST_START = 50.0  # a constant score at which no exponential overflows


class Derivatives:
    """Gradients and curvatures of a surrogate for the documents of one data set.

    Both are multiplied by a number for which the mean curvature is 1 at the start, as for half the
    squared error: the defaults of the libraries then mean the same for every surrogate and unit. A
    curvature is at least 1/100 of the mean curvature of its query at the start. If that mean is 0,
    as for the hinge, it is at least the mean absolute gradient of the query, so that steps have a
    length of about 1. `weight` (n_queries,) is larger than 0. Boosting starts at the constant score
    `start` that minimises the surrogate: 0 if none does, and 1 for surrogates of the direction of
    the scores, which have no derivatives at 0.
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
        """Compute gradient and curvature where predictions are relative to `start`."""
        gradient, curvature = self._evaluate(np.asarray(scores, dtype=np.float64))
        gradient = np.clip(gradient * self._factor, -_LARGEST, _LARGEST)
        curvature = np.clip(curvature * self._factor, self._least, _LARGEST)
        return gradient, curvature


def _constant_score(surrogate: Surrogate, targets: Any, mass: Floats) -> float:
    """Return the score that minimises the surrogate if all documents have the same score.

    Gradients that are sums over documents are affine in the utility, so that it is that of a single
    document with the mean utility.
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
