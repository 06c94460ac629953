"""What objectives and metrics compute once for each data set of a boosting library."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.boosting._derivatives import Derivatives
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.queries import Queries, Ranking, mean_over_queries
from sklearn_rankcal.surrogates import Surrogate, get_surrogate
from sklearn_rankcal.utils._messages import all_of, counted
from sklearn_rankcal.utils._typing import Floats, Ints

_N_KEPT = 4  # data sets; a metric is called for the training set and some validation sets in turn


class KeepingFunction:
    """Base class of objectives and metrics, which keep what they made of the last few data sets.

    Data sets are compared by their entries. Copies and pickles do not contain data.
    """

    _entries: tuple[tuple[tuple[Any, ...], Any], ...] = ()

    def _prepare(self, *arrays: Any) -> Any:
        raise NotImplementedError

    def _kept(self, *arrays: Any) -> Any:
        """Return what `_prepare` returns, which is called if the arrays are new."""
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


class Objective(KeepingFunction):
    """Base class of the objectives of a library."""

    def __init__(self, surrogate: str | Surrogate, loss: str | Loss) -> None:
        get_surrogate(surrogate), get_loss(loss)  # unknown names are errors
        self.surrogate = surrogate
        self.loss = loss

    def _prepare(
        self, labels: NDArray[Any], query_codes: Ints, weight: NDArray[Any] | None
    ) -> tuple[Derivatives, Any]:
        """Return the derivatives, and the rows to which they apply: None if they are all rows."""
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


class Metric(KeepingFunction):
    """Base class of the metrics of a library: the mean that `score` of a ranker reports."""

    def __init__(self, loss: str | Loss) -> None:
        self.loss = loss
        self.greater_is_better = get_loss(loss).greater_is_better
        # XGBoost reads the name of a function
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
    """Return one weight for each query, from one for each row or one for each query."""
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
    """Return the number of the query of each row, from the numbers of rows of the queries."""
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
