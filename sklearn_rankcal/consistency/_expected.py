"""Expected values of a surrogate under many distributions of the labels of one query."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sklearn_rankcal.consistency._distributions import LabelDistribution, as_queries
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.losses._base import without_shrinkage
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import Surrogate
from sklearn_rankcal.utils._typing import Floats, Ints

#: Scores that are infinite at the infimum are replaced by scores so far beyond the other ones.
#: Exponentials of such differences are below the rounding error of the others.
FAR = 40.0


class ExpectedSurrogates:
    """The expected values E[psi(v(Y), s)] of n distributions, as functions of scores (n, r).

    The parameters of the surrogate are set. `targets` are the utilities (m, r) or the preference
    weights (m, r, r) of m labels, of which distribution n mixes ``labels[n]`` with the
    probabilities ``chance[n]``. `expected` are the expected utilities (n, r), or None for
    preferences.
    """

    def __init__(self, surrogate: Surrogate, targets: Floats, labels: Ints, chance: Floats) -> None:
        self.surrogate, self.targets, self.labels, self.chance = surrogate, targets, labels, chance
        self.n, self.r = len(labels), targets.shape[1]
        # Only labels of positive probability are evaluated: `row` is the distribution of each.
        self._row, column = np.nonzero(chance > 0)
        self._first = np.searchsorted(self._row, np.arange(self.n))
        used = targets[labels[self._row, column]]
        self._share = chance[self._row, column]
        self._values, self._queries = as_queries(used)
        self.expected: Floats | None = None
        if targets.ndim == 2:
            self.expected = self._add(used)

    @classmethod
    def of_distribution(cls, distribution: LabelDistribution, loss: Loss, surrogate: Any) -> Self:
        """Return the expected surrogate of one distribution, with parameters set by its labels."""
        surrogate, targets = resolved_targets(surrogate, loss, distribution.labels)
        m = len(targets)
        return cls(surrogate, targets, np.arange(m)[None], distribution.probabilities[None])

    def take(self, rows: Ints) -> ExpectedSurrogates:
        """Return the functions of some distributions, which may be repeated."""
        return ExpectedSurrogates(
            self.surrogate, self.targets, self.labels[rows], self.chance[rows]
        )

    def evaluate(self, scores: Floats, derivatives: int = 1) -> tuple[Floats, Floats | None]:
        """Return the expected values (n,) at scores (n, r), and their gradients (n, r)."""
        result = self.surrogate.evaluate(
            self._values, scores[self._row].ravel(), self._queries, derivatives=derivatives
        )
        gradient = result.gradient
        if gradient is not None:
            gradient = self._add(gradient.reshape(-1, self.r))
        return self._add(result.value), gradient

    def value(self, scores: Floats) -> Floats:
        """Return the expected values (n,) at scores (n, r)."""
        return self.evaluate(scores, derivatives=0)[0]

    def gradient(self, scores: Floats) -> Floats:
        """Return the gradients (n, r) at scores (n, r)."""
        gradient = self.evaluate(scores)[1]
        assert gradient is not None
        return gradient

    def scale(self) -> Floats:
        """Return the size (n,) of derivatives: the expected largest one at scores of 0.

        It is at least a hundredth of the expected value there, in case all of them are 0.
        """
        zero = np.zeros(self._queries.n_rows)
        value, gradient, _ = self.surrogate.evaluate(
            self._values, zero, self._queries, derivatives=1
        )
        assert gradient is not None
        largest = np.abs(gradient).reshape(-1, self.r).max(axis=1)
        size = self._add(np.maximum(largest, np.abs(value) / 100))
        return np.where(size > 0, size, 1.0)

    def closed_form(self, expected: Floats | None) -> Floats | None:
        """Return the minimisers (n, r) for expected utilities (n, r), or None without a formula."""
        if expected is None:
            return None
        queries = Queries.uniform(len(expected), self.r)
        scores = self.surrogate.minimizer(expected.ravel(), queries)
        return None if scores is None else _finite(scores.reshape(expected.shape))

    def _add(self, terms: Floats) -> Floats:
        """Add the terms of the labels of each distribution, times their probabilities."""
        weighted = terms * (self._share if terms.ndim == 1 else self._share[:, None])
        total: Floats = np.add.reduceat(weighted, self._first)
        return total


def resolved_targets(surrogate: Surrogate, loss: Loss, labels: Floats) -> tuple[Surrogate, Floats]:
    """Return the surrogate with its parameters set, and the targets of m labels.

    They are those of unlimited data, without shrinkage: (m, r), or preferences (m, r, r) if the
    surrogate takes them.
    """
    read, queries = as_queries(labels)
    targets = surrogate.targets(without_shrinkage(loss), read, queries)
    ready = surrogate.resolve(targets)
    if isinstance(targets, np.ndarray):
        return ready, targets.reshape(labels.shape[:2])
    return ready, labels


def _finite(scores: Floats) -> Floats:
    """Replace infinite scores by scores far beyond the finite ones of the same row."""
    if np.isfinite(scores).all():
        return scores
    finite = np.where(np.isfinite(scores), scores, 0.0)
    low, high = finite.min(axis=1, keepdims=True), finite.max(axis=1, keepdims=True)
    return np.clip(scores, low - FAR, high + FAR)
