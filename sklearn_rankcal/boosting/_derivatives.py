"""Gradients and curvatures of a surrogate, on the scale that boosting libraries expect.

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
    0, like for the hinge, it is at least the mean absolute gradient of the query, which gives steps
    of a length of about 1. `weight` (n_queries,) must be positive.

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
        assert gradient is not None and curvature is not None
        return gradient, curvature

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
            above = surrogate.gradient(mean, [middle], alone)[0] > 0
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
